/* Settings do what they say: seen in the requests that brokers get, or in what comes of them. Those
 * not here have their effect in another file (buffer.memory, linger.ms, delivery.timeout.ms ...).
 */
#include "client/client_test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <kafka/admin.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/fault_proxy.h"
#include "protocol/batch_builder.h"
#include "protocol/errors.h"
#include "protocol/msg/fetch.h"
#include "protocol/msg/join_group.h"
#include "protocol/msg/offset_fetch.h"
#include "protocol/msg/produce.h"

enum { PATIENCE_MS = 30000 };

static int64_t now_ms(void)
{
    return clock_mono_ms(clock_real());
}

/* What was seen last. */
struct seen {
    char client_id[64], rack[32], instance[32], protocols[128];
    int16_t acks;
    int32_t produce_timeout, max_wait, min_bytes, max_bytes, partition_bytes;
    int32_t session_timeout, rebalance_timeout;
    int8_t isolation;
    bool stable;
    size_t batch_bytes;
    int64_t created_ms[8]; /* CreateTopics */
    int created;
};

static void put(char *to, size_t size, struct str s)
{
    snprintf(to, size, "%.*s", s.len > 0 ? (int)s.len : 0, s.len > 0 ? s.p : "");
}

static void see_fetch(struct seen *s, const struct fetch_request *q)
{
    put(s->rack, sizeof s->rack, q->rack_id);
    s->max_wait = q->max_wait_ms;
    s->min_bytes = q->min_bytes;
    s->max_bytes = q->max_bytes;
    s->isolation = q->isolation_level;
    if (q->topics.n > 0 && q->topics.v[0].partitions.n > 0)
        s->partition_bytes = q->topics.v[0].partitions.v[0].partition_max_bytes;
}

static void see_join(struct seen *s, const struct join_group_request *q)
{
    put(s->instance, sizeof s->instance, q->group_instance_id);
    s->session_timeout = q->session_timeout_ms;
    s->rebalance_timeout = q->rebalance_timeout_ms;
    s->protocols[0] = 0;
    for (int32_t i = 0; i < q->protocols.n; i++) {
        size_t n = strlen(s->protocols);
        put(s->protocols + n, sizeof s->protocols - n - 2, q->protocols.v[i].name);
        strcat(s->protocols, " ");
    }
}

static void see(void *arg, const struct request_header *head, const void *request)
{
    struct seen *s = arg;
    const struct produce_request *produce = request;
    switch (head->api_key) {
    case API_PRODUCE:
        put(s->client_id, sizeof s->client_id, head->client_id);
        s->acks = produce->acks;
        s->produce_timeout = produce->timeout_ms;
        s->batch_bytes = produce->topic_data.v[0].partition_data.v[0].records.len;
        break;
    case API_FETCH:
        put(s->client_id, sizeof s->client_id, head->client_id);
        see_fetch(s, request);
        break;
    case API_JOIN_GROUP:
        see_join(s, request);
        break;
    case API_OFFSET_FETCH:
        s->stable = ((const struct offset_fetch_request *)request)->require_stable;
        break;
    case API_CREATE_TOPICS:
        if (s->created < 8)
            s->created_ms[s->created++] = now_ms();
        break;
    default:
        break;
    }
}

/* ---- producer ---- */

static void produce_requests_carry_what_was_set(void **state)
{
    struct mock *m = mock_start(1);
    struct seen s = {0};
    mock_topic(m, "t", 1);
    mock_watch(m, see, &s);
    kafka_producer_t *p = test_producer(
        m, (const char *[]){"client.id", "me", "acks", "1", "request.timeout.ms", "12345", NULL});
    kafka_record_t r = {.topic = "t", .partition = 0, .timestamp = KAFKA_TIMESTAMP_NOW};
    assert_int_equal(kafka_producer_send_sync(p, &r, NULL), KAFKA_OK);
    kafka_producer_close(p, -1);
    mock_stop(m);
    assert_string_equal(s.client_id, "me");
    assert_int_equal(s.acks, 1);
    assert_int_equal(s.produce_timeout, 12345);
}

/* Bytes of one batch of the same 2,000 records. */
static size_t batch_bytes(const char *codec, const char *key, const char *level)
{
    struct mock *m = mock_start(1);
    struct seen s = {0};
    mock_topic(m, "t", 1);
    mock_watch(m, see, &s);
    kafka_producer_t *p =
        test_producer(m, (const char *[]){"compression.type", codec, key, level, "linger.ms",
                                          "20000", "batch.size", "1000000", NULL});
    unsigned random = 1;
    for (int i = 0; i < 2000; i++) {
        char value[100];
        int n = 0;
        while (n < 80) { /* words of a small language */
            random = random * 1103515245u + 12345u;
            n += snprintf(value + n, sizeof value - (size_t)n, "w%u ", (random >> 16) % 500);
        }
        kafka_record_t r = {
            .topic = "t", .partition = 0, .timestamp = 1000, .value = value, .value_len = 80};
        assert_int_equal(kafka_producer_send(p, &r, NULL, NULL), KAFKA_OK);
    }
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    assert_int_equal(mock_batches(m, "t", 0), 1);
    kafka_producer_close(p, -1);
    mock_stop(m);
    return s.batch_bytes;
}

static void levels_of_compression_count(void **state)
{
    assert_true(batch_bytes("gzip", "compression.gzip.level", "9") <
                batch_bytes("gzip", "compression.gzip.level", "1"));
    assert_true(batch_bytes("lz4", "compression.lz4.level", "17") <
                batch_bytes("lz4", "compression.lz4.level", "1"));
    assert_true(batch_bytes("zstd", "compression.zstd.level", "19") <
                batch_bytes("zstd", "compression.zstd.level", "-50"));
}

static void keys_can_be_without_influence(void **state)
{
    struct mock *m = mock_start(1);
    mock_topic(m, "t", 4);
    kafka_producer_t *p = test_producer(
        m, (const char *[]){"partitioner.ignore.keys", "true", "batch.size", "1", NULL});
    kafka_record_t r = {.topic = "t",
                        .partition = KAFKA_PARTITION_ANY,
                        .timestamp = KAFKA_TIMESTAMP_NOW,
                        .key = "k",
                        .key_len = 1};
    for (int i = 0; i < 100; i++)
        assert_int_equal(kafka_producer_send(p, &r, NULL, NULL), KAFKA_OK);
    kafka_producer_close(p, -1);
    for (int i = 0; i < 4; i++)
        assert_true(mock_end(m, "t", i) > 0);
    mock_stop(m);
}

/* Records without a key that go to partition 0 of two, whose queue is long. */
static int64_t to_the_long_queue(const char *adaptive)
{
    enum { LONG = 300, MORE = 60 };
    struct mock *m = mock_start(1);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 2);
    mock_script(m, API_PRODUCE, MOCK_HOLD, 0, 1);
    kafka_producer_t *p = test_producer(
        m, (const char *[]){"partitioner.adaptive.partitioning.enable", adaptive, "batch.size", "1",
                            "max.in.flight.requests.per.connection", "1", NULL});
    for (int i = 0; i < LONG; i++)
        assert_int_equal(test_send(p, "t", 0, i, &log), KAFKA_OK);
    for (int i = 0; i < MORE; i++)
        assert_int_equal(test_send(p, "t", KAFKA_PARTITION_ANY, i, &log), KAFKA_OK);
    mock_await(m, API_PRODUCE, 1);
    mock_release(m);
    kafka_producer_close(p, -1);
    int64_t there = mock_end(m, "t", 0) - LONG;
    assert_int_equal(there + mock_end(m, "t", 1), MORE);
    mock_stop(m);
    return there;
}

static void long_queues_get_less(void **state)
{
    assert_true(to_the_long_queue("true") < 10);
    assert_true(to_the_long_queue("false") >= 10);
}

static int delivered(struct deliveries *log)
{
    pthread_mutex_lock(&log->lock);
    int n = log->n;
    pthread_mutex_unlock(&log->lock);
    return n;
}

/* Node 0 holds what it has, node 1 answers: when that lasts, nothing more is chosen for node 0. */
static void a_broker_that_takes_nothing_is_passed_over(void **state)
{
    enum { ROUND = 40 };
    struct mock *m = mock_start(2);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 2);
    mock_move_leader(m, "t", 1, 1);
    mock_move_leader(m, "t", 0, 0);
    mock_script(m, API_PRODUCE, MOCK_HOLD, 0, 1);
    kafka_producer_t *p =
        test_producer(m, (const char *[]){"partitioner.availability.timeout.ms", "50", "batch.size",
                                          "1", "max.in.flight.requests.per.connection", "1", NULL});
    assert_int_equal(test_send(p, "t", 0, 0, &log), KAFKA_OK);
    mock_await(m, API_PRODUCE, 1);
    assert_int_equal(test_send(p, "t", 0, 1, &log), KAFKA_OK);
    bool passed_over = false;
    for (int64_t until = now_ms() + PATIENCE_MS; !passed_over && now_ms() < until;) {
        int before = delivered(&log);
        for (int i = 0; i < ROUND; i++)
            assert_int_equal(test_send(p, "t", KAFKA_PARTITION_ANY, i, &log), KAFKA_OK);
        for (int64_t soon = now_ms() + 500; !passed_over && now_ms() < soon; poll(NULL, 0, 1))
            passed_over = delivered(&log) == before + ROUND;
    }
    assert_true(passed_over);
    mock_release(m);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

/* ---- consumer ---- */

static void fetch_requests_carry_what_was_set(void **state)
{
    struct mock *m = mock_start(1);
    struct seen s = {0};
    kafka_topic_partition_t tp = {"t", 0};
    kafka_messages_t *got;
    mock_topic(m, "t", 1);
    mock_watch(m, see, &s);
    kafka_conf_t *conf =
        test_conf(m, (const char *[]){"client.id", "me", "client.rack", "r1", "fetch.min.bytes",
                                      "7", "fetch.max.wait.ms", "123", "fetch.max.bytes", "4567",
                                      "max.partition.fetch.bytes", "89", "isolation.level",
                                      "read_committed", "auto.offset.reset", "earliest", NULL});
    char err[256] = "";
    kafka_consumer_t *c = kafka_consumer_new(conf, err, sizeof err);
    assert_non_null(c);
    kafka_conf_free(conf);
    assert_int_equal(kafka_consumer_assign(c, &tp, 1), KAFKA_OK);
    assert_int_equal(kafka_consumer_poll(c, 0, &got), KAFKA_OK);
    mock_await(m, API_FETCH, 1);
    kafka_consumer_close(c);
    mock_stop(m);
    assert_string_equal(s.client_id, "me");
    assert_string_equal(s.rack, "r1");
    assert_int_equal(s.min_bytes, 7);
    assert_int_equal(s.max_wait, 123);
    assert_int_equal(s.max_bytes, 4567);
    assert_int_equal(s.partition_bytes, 89);
    assert_int_equal(s.isolation, 1);
}

static void checksums_are_verified_where_asked(void **state)
{
    for (int check = 0; check < 2; check++) {
        struct mock *m = mock_start(1);
        struct batch_options o = BATCH_OPTIONS_DEFAULT;
        struct batch_builder *b = batch_builder_new(&o);
        struct buf out = BUF_INIT;
        kafka_topic_partition_t tp = {"t", 0};
        kafka_messages_t *got = NULL;
        mock_topic(m, "t", 1);
        assert_int_equal(batch_builder_add(b, 0, 1000, BYTES_NULL, BYTES_NULL, NULL, 0), 0);
        assert_int_equal(batch_builder_finish(b, &out), 0);
        mock_append(m, "t", 0, out.p, out.len);
        batch_builder_free(b);
        buf_free(&out);
        mock_damage(m, "t", 0, 17); /* a byte of the checksum */
        kafka_consumer_t *c =
            test_consumer(m, (const char *[]){"check.crcs", check ? "true" : "false", NULL});
        assert_int_equal(kafka_consumer_assign(c, &tp, 1), KAFKA_OK);
        kafka_err_t err = kafka_consumer_poll(c, PATIENCE_MS, &got);
        assert_int_equal(err, check ? KERR_CORRUPT_MESSAGE : KAFKA_OK);
        assert_int_equal(got ? kafka_messages_count(got) : 0, check ? 0 : 1);
        kafka_messages_free(got);
        kafka_consumer_close(c);
        mock_stop(m);
    }
}

static kafka_consumer_t *member(struct mock *m, const char *const *pairs)
{
    char err[256] = "";
    const char *topics[] = {"t"};
    kafka_conf_t *conf = test_conf(m, pairs);
    test_set(conf, "group.id", "g");
    test_set(conf, "auto.offset.reset", "earliest");
    test_set(conf, "fetch.max.wait.ms", "20");
    kafka_consumer_t *c = kafka_consumer_new(conf, err, sizeof err);
    if (!c)
        fail_msg("%s", err);
    kafka_conf_free(conf);
    assert_int_equal(kafka_consumer_subscribe(c, topics, 1, NULL), KAFKA_OK);
    return c;
}

/* Polls until the broker has seen so many requests of the API. */
static void poll_until_seen(kafka_consumer_t *c, struct mock *m, int16_t api, int count)
{
    for (int64_t until = now_ms() + PATIENCE_MS; mock_seen(m, api) < count;) {
        kafka_messages_t *got = NULL;
        assert_true(now_ms() < until);
        assert_int_equal(kafka_consumer_poll(c, 5, &got), KAFKA_OK);
        kafka_messages_free(got);
    }
}

static void members_tell_what_was_set(void **state)
{
    struct mock *m = mock_start(1);
    struct seen s = {0};
    mock_topic(m, "t", 1);
    mock_watch(m, see, &s);
    kafka_consumer_t *c =
        member(m, (const char *[]){"session.timeout.ms", "12345", "max.poll.interval.ms", "54321",
                                   "group.instance.id", "one", "partition.assignment.strategy",
                                   "sticky,org.apache.kafka.clients.consumer.RangeAssignor",
                                   "heartbeat.interval.ms", "10", NULL});
    poll_until_seen(c, m, API_HEARTBEAT, 4); /* with 3 s between them that would be too long */
    kafka_consumer_close(c);
    mock_stop(m);
    assert_int_equal(s.session_timeout, 12345);
    assert_int_equal(s.rebalance_timeout, 54321);
    assert_string_equal(s.instance, "one");
    assert_string_equal(s.protocols, "sticky range ");
}

static void positions_are_committed_in_their_time(void **state)
{
    struct mock *m = mock_start(1);
    mock_topic(m, "t", 1);
    kafka_consumer_t *c = member(
        m, (const char *[]){"auto.commit.interval.ms", "10", "heartbeat.interval.ms", "10", NULL});
    poll_until_seen(c, m, API_OFFSET_COMMIT, 3);
    kafka_consumer_close(c);
    mock_stop(m);
}

static void leaving_is_as_set(void **state)
{
    for (int leave = 0; leave < 2; leave++) {
        struct mock *m = mock_start(1);
        mock_topic(m, "t", 1);
        kafka_consumer_t *c =
            member(m, (const char *[]){"internal.leave.group.on.close", leave ? "true" : "false",
                                       "heartbeat.interval.ms", "10", NULL});
        poll_until_seen(c, m, API_HEARTBEAT, 1);
        kafka_consumer_close(c);
        assert_int_equal(mock_seen(m, API_LEAVE_GROUP), leave);
        mock_stop(m);
    }
}

static void unstable_offsets_of_old_brokers_can_be_an_error(void **state)
{
    for (int strict = 0; strict < 2; strict++) {
        struct mock *m = mock_start(1);
        kafka_topic_partition_t tp = {"t", 0};
        kafka_offset_list_t *list = NULL;
        kafka_messages_t *got = NULL;
        kafka_err_t err = KAFKA_OK;
        mock_topic(m, "t", 1);
        mock_cap_version(m, API_OFFSET_FETCH, 6);
        kafka_consumer_t *c =
            member(m, (const char *[]){"internal.throw.on.fetch.stable.offset.unsupported",
                                       strict ? "true" : "false", NULL});
        assert_int_equal(kafka_consumer_committed(c, &tp, 1, -1, &list),
                         strict ? KAFKA_ERR_UNSUPPORTED : KAFKA_OK);
        kafka_offset_list_free(list);
        for (int64_t until = now_ms() + PATIENCE_MS;
             err == KAFKA_OK && now_ms() < until && mock_seen(m, API_FETCH) == 0;) {
            err = kafka_consumer_poll(c, 5, &got);
            kafka_messages_free(got);
        }
        assert_int_equal(err, strict ? KAFKA_ERR_UNSUPPORTED : KAFKA_OK);
        kafka_consumer_close(c);
        mock_stop(m);
    }
}

/* ---- connections and metadata ---- */

static void metadata_is_asked_for_again(void **state)
{
    struct mock *m = mock_start(1);
    mock_topic(m, "t", 1);
    kafka_producer_t *p = test_producer(m, (const char *[]){"metadata.max.age.ms", "20", NULL});
    kafka_record_t r = {.topic = "t", .partition = 0, .timestamp = KAFKA_TIMESTAMP_NOW};
    assert_int_equal(kafka_producer_send_sync(p, &r, NULL), KAFKA_OK);
    mock_await(m, API_METADATA, 5);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

/* The broker moves to another address that metadata never told: only who asks the bootstrap
 * addresses again finds it. */
static void the_way_back_is_as_set(void **state)
{
    for (int back = 0; back < 2; back++) {
        struct mock *m = mock_start(1);
        struct fault_proxy *gone = fault_proxy_start(mock_port(m, 0));
        mock_topic(m, "t", 1);
        mock_advertise(m, 0, fault_proxy_port(gone));
        kafka_producer_t *p = test_producer(
            m, (const char *[]){"metadata.recovery.strategy", back ? "Rebootstrap" : "none",
                                "delivery.timeout.ms", back ? "30000" : "500", "request.timeout.ms",
                                "200", NULL});
        kafka_record_t r = {.topic = "t", .partition = 0, .timestamp = KAFKA_TIMESTAMP_NOW};
        assert_int_equal(kafka_producer_send_sync(p, &r, NULL), KAFKA_OK);
        mock_advertise(m, 0, mock_port(m, 0));
        fault_proxy_stop(gone);
        assert_int_equal(kafka_producer_send_sync(p, &r, NULL),
                         back ? KAFKA_OK : KAFKA_ERR_TIMED_OUT);
        kafka_producer_close(p, 0);
        mock_stop(m);
    }
}

static void names_are_looked_up_as_set(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char name[NI_MAXHOST], expected[NI_MAXHOST + 32];
    if (getnameinfo((struct sockaddr *)&a, sizeof a, name, sizeof name, NULL, 0, 0) != 0)
        skip();
    for (int canonical = 0; canonical < 2; canonical++) {
        kafka_cluster_info_t *info;
        kafka_conf_t *conf = kafka_conf_new();
        test_set(conf, "bootstrap.servers", "127.0.0.1:1");
        test_set(conf, "client.dns.lookup",
                 canonical ? "resolve_canonical_bootstrap_servers_only" : "use_all_dns_ips");
        kafka_admin_t *admin = test_admin(conf);
        assert_int_not_equal(kafka_admin_describe(admin, NULL, 0, 300, &info), KAFKA_OK);
        snprintf(expected, sizeof expected, "broker %s:1", canonical ? name : "127.0.0.1");
        if (!strstr(kafka_last_error(), expected))
            fail_msg("%s is not in: %s", expected, kafka_last_error());
        kafka_admin_close(admin);
    }
}

/* Of the socket in this process that is connected to the port; 0: there is none. */
static int socket_option(int port, int option)
{
    DIR *dir = opendir("/proc/self/fd");
    int found = 0;
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) && !found;) {
        struct sockaddr_in to;
        socklen_t n = sizeof to, size = sizeof found;
        int fd = atoi(e->d_name);
        if (getpeername(fd, (struct sockaddr *)&to, &n) == 0 && to.sin_family == AF_INET &&
            ntohs(to.sin_port) == port)
            assert_int_equal(getsockopt(fd, SOL_SOCKET, option, &found, &size), 0);
    }
    closedir(dir);
    return found;
}

static void socket_buffers_are_as_set(void **state)
{
    struct mock *m = mock_start(1);
    kafka_cluster_info_t *info;
    kafka_admin_t *a = test_admin(test_conf(
        m, (const char *[]){"receive.buffer.bytes", "8192", "send.buffer.bytes", "9000", NULL}));
    assert_int_equal(kafka_admin_describe(a, NULL, 0, -1, &info), KAFKA_OK);
    kafka_cluster_info_free(info);
    assert_int_equal(socket_option(mock_port(m, 0), SO_RCVBUF), 2 * 8192); /* as Linux counts */
    assert_int_equal(socket_option(mock_port(m, 0), SO_SNDBUF), 2 * 9000);
    kafka_admin_close(a);
    a = test_admin(test_conf(m, NULL)); /* Kafka's default or more */
    assert_int_equal(kafka_admin_describe(a, NULL, 0, -1, &info), KAFKA_OK);
    kafka_cluster_info_free(info);
    assert_true(socket_option(mock_port(m, 0), SO_RCVBUF) >= 2 * 65536);
    kafka_admin_close(a);
    mock_stop(m);
}

static int listen_here(int backlog, char *address, size_t n)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
    snprintf(address, n, "127.0.0.1:%d", ntohs(a.sin_port));
    return fd;
}

struct hangups {
    int listener;
    int64_t at_ms[4];
};

static void *hang_up(void *arg)
{
    struct hangups *h = arg;
    for (int i = 0; i < 4; i++) {
        struct pollfd p = {h->listener, POLLIN, 0};
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        int fd = accept(h->listener, NULL, NULL);
        h->at_ms[i] = now_ms();
        close(fd);
    }
    return NULL;
}

/* A broker that hangs up is connected to again only after its backoff. */
static void connections_are_made_again_after_their_backoff(void **state)
{
    char address[32];
    struct hangups h = {.listener = listen_here(8, address, sizeof address)};
    kafka_cluster_info_t *info;
    kafka_conf_t *conf = kafka_conf_new();
    test_set(conf, "bootstrap.servers", address);
    test_set(conf, "reconnect.backoff.ms", "200");
    test_set(conf, "reconnect.backoff.max.ms", "200");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hang_up, &h), 0);
    kafka_admin_t *a = test_admin(conf);
    assert_int_not_equal(kafka_admin_describe(a, NULL, 0, 2000, &info), KAFKA_OK);
    pthread_join(thread, NULL); /* should it need longer, the client's own metadata goes on */
    kafka_admin_close(a);
    close(h.listener);
    for (int i = 1; i < 4; i++)
        assert_true(h.at_ms[i] - h.at_ms[i - 1] >= 199);
}

/* A port whose queue is full answers no connection: each try ends after its time, which doubles up
 * to its limit. */
static void connecting_takes_no_longer_than_set(void **state)
{
    char address[32];
    int listener = listen_here(0, address, sizeof address), port = atoi(strchr(address, ':') + 1);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fill[8];
    for (int i = 0; i < 8; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(fill[i], (struct sockaddr *)&to, sizeof to);
    }
    kafka_cluster_info_t *info;
    kafka_conf_t *conf = kafka_conf_new();
    test_set(conf, "bootstrap.servers", address);
    test_set(conf, "socket.connection.setup.timeout.ms", "100");
    test_set(conf, "socket.connection.setup.timeout.max.ms", "200");
    test_set(conf, "retries", "2");
    kafka_admin_t *a = test_admin(conf);
    int64_t begun = now_ms();
    assert_int_not_equal(kafka_admin_describe(a, NULL, 0, PATIENCE_MS, &info), KAFKA_OK);
    assert_in_range(now_ms() - begun, 100 + 200 + 200 - 1, PATIENCE_MS / 2);
    if (!strstr(kafka_last_error(), address))
        fail_msg("%s", kafka_last_error());
    kafka_admin_close(a);
    for (int i = 0; i < 8; i++)
        close(fill[i]);
    close(listener);
}

/* ---- admin ---- */

static void admin_tries_again_as_often_and_as_soon_as_set(void **state)
{
    struct mock *m = mock_start(1);
    struct seen s = {0};
    mock_watch(m, see, &s);
    mock_script(m, API_CREATE_TOPICS, MOCK_ERROR, KERR_NOT_CONTROLLER, -1);
    kafka_admin_t *a =
        test_admin(test_conf(m, (const char *[]){"retries", "3", "retry.backoff.ms", "60",
                                                 "retry.backoff.max.ms", "60", NULL}));
    assert_int_equal(kafka_admin_create_topic(a, "t", 1, 1, NULL, 0, NULL, 0, -1, NULL, 0),
                     KERR_NOT_CONTROLLER);
    kafka_admin_close(a);
    mock_stop(m);
    assert_int_equal(s.created, 4);
    for (int i = 1; i < 4; i++)
        assert_true(s.created_ms[i] - s.created_ms[i - 1] >= 59);
}

static void calls_without_a_time_have_the_standard_one(void **state)
{
    kafka_cluster_info_t *info;
    kafka_conf_t *conf = kafka_conf_new();
    test_set(conf, "bootstrap.servers", "127.0.0.1:1");
    test_set(conf, "default.api.timeout.ms", "150");
    kafka_admin_t *a = test_admin(conf);
    int64_t begun = now_ms();
    assert_int_not_equal(kafka_admin_describe(a, NULL, 0, -1, &info), KAFKA_OK);
    assert_in_range(now_ms() - begun, 149, PATIENCE_MS);
    if (!strstr(kafka_last_error(), "default.api.timeout.ms=150"))
        fail_msg("%s", kafka_last_error());
    kafka_admin_close(a);
}

/* ---- what has no effect is told ---- */

struct told {
    char text[4096];
};

static void tell(int level, const char *line, void *arg)
{
    struct told *t = arg;
    size_t n = strlen(t->text);
    snprintf(t->text + n, sizeof t->text - n, "%d %s\n", level, line);
}

static void settings_without_effect_are_told(void **state)
{
    static const char *const expected[] = {
        "2 the setting acsk is not known: it has no effect\n",
        "1 the setting group.id has no effect on this client\n",
        "1 the setting key.serializer has no effect in this library\n",
        "2 the setting interceptor.classes names Java classes and has no effect here",
        "2 the setting ssl.truststore.location has no effect with security.protocol=PLAINTEXT\n",
        "2 the setting sasl.mechanism has no effect with security.protocol=PLAINTEXT\n",
    };
    struct told told = {""};
    struct mock *m = mock_start(1);
    kafka_log_set_sink(tell, &told);
    kafka_producer_t *p =
        test_producer(m, (const char *[]){"acsk", "1", "group.id", "g", "key.serializer", "K",
                                          "interceptor.classes", "I", "ssl.truststore.location",
                                          "/x", "sasl.mechanism", "PLAIN", "acks", "1", NULL});
    kafka_producer_close(p, 0);
    kafka_log_set_sink(NULL, NULL);
    mock_stop(m);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!strstr(told.text, expected[i]))
            fail_msg("%s is not in: %s", expected[i], told.text);
    assert_null(strstr(told.text, "setting acks"));
}

UNIT_MAIN(unit_test(produce_requests_carry_what_was_set), unit_test(levels_of_compression_count),
          unit_test(keys_can_be_without_influence), unit_test(long_queues_get_less),
          unit_test(a_broker_that_takes_nothing_is_passed_over),
          unit_test(fetch_requests_carry_what_was_set),
          unit_test(checksums_are_verified_where_asked), unit_test(members_tell_what_was_set),
          unit_test(positions_are_committed_in_their_time), unit_test(leaving_is_as_set),
          unit_test(unstable_offsets_of_old_brokers_can_be_an_error),
          unit_test(metadata_is_asked_for_again), unit_test(the_way_back_is_as_set),
          unit_test(names_are_looked_up_as_set), unit_test(socket_buffers_are_as_set),
          unit_test(connections_are_made_again_after_their_backoff),
          unit_test(connecting_takes_no_longer_than_set),
          unit_test(admin_tries_again_as_often_and_as_soon_as_set),
          unit_test(calls_without_a_time_have_the_standard_one),
          unit_test(settings_without_effect_are_told))
