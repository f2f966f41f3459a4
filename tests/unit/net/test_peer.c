/* Peers against a broker that the test plays itself, byte by byte: the peer has a loop and thread
 * of its own, the test is the other end of its socket. */
#include "net_test.h"

#include <limits.h>

#include "base/uv_executor.h"
#include "net/peer.h"
#include "net/peer_auth.h"
#include "net/peer_private.h"
#include "protocol/errors.h"
#include "protocol/msg/api_versions.h"
#include "protocol/msg/fetch.h"
#include "protocol/msg/metadata.h"
#include "protocol/msg/produce.h"

enum { SLOTS = 256, VERSIONS_MAX = 4 };

struct slot {
    struct peer_test *t;
    int calls, status, version, nth; /* nth: place in the order of all callbacks */
    char text[64];                   /* Metadata's cluster id */
    bool free_peer, send_again, keep;
    struct peer_response *kept;
    const void *response; /* while kept */
};

struct peer_test {
    struct uv_executor *ex;
    struct peer *peer;
    struct peer_options options;
    int listener, port;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot slots[SLOTS];
    int calls;
};

/* ---- the test's side of the loop ---- */

static void send_metadata_here(struct peer_test *t, int slot, int64_t timeout_ms);

static void on_result(void *arg, int status, int version, const void *response)
{
    struct slot *s = arg;
    struct peer_test *t = s->t;
    if (s->keep) {
        s->kept = peer_keep_response(t->peer);
        assert_non_null(s->kept);
        s->response = response;
    } else if (status == 0 && response && !*s->text) {
        const struct metadata_response *m = response;
        snprintf(s->text, sizeof(s->text), "%.*s", STR_ARG(m->cluster_id));
    }
    if (s->send_again)
        send_metadata_here(t, (int)(s - t->slots) + 1, -1);
    if (s->free_peer) {
        peer_free(t->peer);
        t->peer = NULL;
    }
    pthread_mutex_lock(&t->lock);
    s->calls++;
    s->status = status;
    s->version = version;
    s->nth = t->calls++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void wait_slot(struct peer_test *t, int slot)
{
    struct timespec until = {time(NULL) + WAIT_S, 0};
    pthread_mutex_lock(&t->lock);
    while (t->slots[slot].calls == 0 && pthread_cond_timedwait(&t->changed, &t->lock, &until) == 0)
        ;
    int calls = t->slots[slot].calls;
    pthread_mutex_unlock(&t->lock);
    assert_int_equal(calls, 1);
}

static void expect_status(struct peer_test *t, int slot, int status)
{
    wait_slot(t, slot);
    assert_int_equal(t->slots[slot].status, status);
}

struct send_call {
    struct peer_test *t;
    int16_t key;
    int min, max, slot;
    const void *request;
    int64_t timeout_ms;
    bool has_response;
};

static void on_send_call(void *arg)
{
    struct send_call *s = arg;
    struct slot *slot = &s->t->slots[s->slot];
    assert_int_equal(peer_send(s->t->peer, s->key, s->min, s->max, s->request, s->timeout_ms,
                               s->has_response, on_result, slot),
                     0);
    assert_int_equal(slot->calls, 0); /* never before the call returns */
}

static void send_metadata_here(struct peer_test *t, int slot, int64_t timeout_ms)
{
    char name[] = "topic-of-the-caller";
    struct metadata_request_topic topic;
    struct metadata_request m;
    metadata_request_topic_init(&topic);
    metadata_request_init(&m);
    topic.name = str_of(name);
    m.topics.v = &topic;
    m.topics.n = 1;
    struct send_call s = {t, API_METADATA, -1, -1, slot, &m, timeout_ms, true};
    on_send_call(&s);
    memset(name, '#', sizeof(name)); /* the caller's memory is the caller's again */
    memset(&topic, 0xff, sizeof(topic));
    memset(&m, 0xff, sizeof(m));
}

struct metadata_call {
    struct peer_test *t;
    int slot;
    int64_t timeout_ms;
};

static void on_metadata_call(void *arg)
{
    struct metadata_call *m = arg;
    send_metadata_here(m->t, m->slot, m->timeout_ms);
}

static void send_metadata(struct peer_test *t, int slot, int64_t timeout_ms)
{
    struct metadata_call m = {t, slot, timeout_ms};
    call_on(uv_executor_ex(t->ex), on_metadata_call, &m);
}

static void send_any(struct peer_test *t, int slot, int16_t key, int min, int max,
                     const void *request, bool has_response)
{
    struct send_call s = {t, key, min, max, slot, request, -1, has_response};
    call_on(uv_executor_ex(t->ex), on_send_call, &s);
}

static void on_free_call(void *arg)
{
    struct peer_test *t = arg;
    peer_free(t->peer);
    t->peer = NULL;
}

static int listen_local(int *port)
{
    int fd = client_socket();
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static struct peer_test *peer_begin_host(const char *host, struct peer_options o)
{
    struct peer_test *t = calloc(1, sizeof(*t));
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    for (int i = 0; i < SLOTS; i++)
        t->slots[i].t = t;
    t->listener = listen_local(&t->port);
    assert_int_equal(uv_executor_start("peer", &t->ex), 0);
    o.client_id = "tester";
    o.software_name = "unit-test";
    o.software_version = "1.2.3";
    if (!o.request_timeout_ms)
        o.request_timeout_ms = WAIT_S * 1000;
    if (!o.connect_timeout_ms)
        o.connect_timeout_ms = WAIT_S * 1000;
    t->peer = peer_new(uv_executor_loop(t->ex), uv_executor_ex(t->ex), host, t->port, &o);
    assert_non_null(t->peer);
    logline_set_level(LOGLINE_FATAL);
    return t;
}

static struct peer_test *peer_begin(void)
{
    return peer_begin_host("127.0.0.1", (struct peer_options){0});
}

static void peer_end(struct peer_test *t)
{
    call_on(uv_executor_ex(t->ex), on_free_call, t);
    uv_executor_stop(t->ex);
    close(t->listener);
    for (int i = 0; i < SLOTS; i++)
        peer_response_free(t->slots[i].kept);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    logline_set_level(LOGLINE_INFO);
    free(t);
}

/* ---- the broker's side ---- */

struct got_request {
    uint8_t *frame;
    uint32_t n;
    struct request_header header;
    struct reader body;
};

static struct got_request broker_read(int fd)
{
    struct got_request g;
    g.frame = client_recv_frame(fd, &g.n);
    g.body = reader_of(g.frame, g.n);
    assert_int_equal(request_header_decode(&g.body, &g.header), 0);
    assert_true(str_eqz(g.header.client_id, "tester"));
    return g;
}

/* The next request, which must be this API; returns its correlation id. */
static int32_t broker_expect(int fd, int16_t key, int version)
{
    struct got_request g = broker_read(fd);
    assert_int_equal(g.header.api_key, key);
    assert_int_equal(g.header.api_version, version);
    free(g.frame);
    return g.header.correlation_id;
}

static struct buf answer_of(const struct msg_desc *d, int header_version, int version,
                            int32_t correlation_id, const void *m)
{
    struct writer w = WRITER_INIT;
    buf_put_i32(&w.buf, 0);
    response_header_encode(&w, header_version, correlation_id);
    msg_encode(d, version, &w, m);
    assert_false(w.buf.failed || w.unsupported);
    put_be32(w.buf.p, (uint32_t)w.buf.len - 4);
    struct buf b = w.buf;
    w.buf = BUF_INIT;
    writer_free(&w);
    return b;
}

static void broker_answer(int fd, const struct msg_desc *d, int header_version, int version,
                          int32_t correlation_id, const void *m)
{
    struct buf b = answer_of(d, header_version, version, correlation_id, m);
    client_send(fd, b.p, b.len);
    buf_free(&b);
}

static struct api_versions_response_api_key offered[] = {
    {API_PRODUCE, 0, 9},      {API_FETCH, 4, 12}, {API_METADATA, 0, 9},
    {API_API_VERSIONS, 0, 3}, {999, 0, 1}, /* from the future */
};

static void answer_versions(int fd, int version, int32_t correlation_id, int16_t error, int keys)
{
    struct api_versions_response m;
    api_versions_response_init(&m);
    m.error_code = error;
    m.api_keys.v = keys == 1 ? &offered[3] : offered;
    m.api_keys.n = keys;
    broker_answer(fd, &api_versions_response_desc, 0, version, correlation_id, &m);
}

static int broker_accept(struct peer_test *t)
{
    int fd = accept(t->listener, NULL, NULL);
    assert_true(fd >= 0);
    struct timeval wait = {WAIT_S, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    return fd;
}

static int broker_ready(struct peer_test *t)
{
    int fd = broker_accept(t);
    int32_t id = broker_expect(fd, API_API_VERSIONS, VERSIONS_MAX);
    answer_versions(fd, VERSIONS_MAX, id, 0, 5);
    return fd;
}

static struct buf metadata_answer(int32_t correlation_id, const char *cluster)
{
    struct metadata_response m;
    metadata_response_init(&m);
    m.cluster_id = str_of(cluster);
    return answer_of(&metadata_response_desc, 1, 9, correlation_id, &m);
}

static void answer_metadata(int fd, int32_t correlation_id, const char *cluster)
{
    struct buf b = metadata_answer(correlation_id, cluster);
    client_send(fd, b.p, b.len);
    buf_free(&b);
}

/* ---- tests: versions ---- */

/* What the peer says of itself, asked on its loop. */
static void before_it_is_connected(void *arg)
{
    struct peer *p = ((struct peer_test *)arg)->peer;
    int16_t min, max;
    assert_false(peer_connected(p));
    assert_false(peer_answered(p));
    assert_int_equal(peer_version(p, API_METADATA, -1, -1), -1);
    assert_false(peer_api_range(p, API_FETCH, &min, &max));
    assert_int_equal(peer_in_flight(p), 2);
}

static void when_it_is_connected(void *arg)
{
    struct peer *p = ((struct peer_test *)arg)->peer;
    int16_t min, max;
    assert_true(peer_connected(p));
    assert_true(peer_answered(p));
    assert_int_equal(peer_in_flight(p), 0);
    assert_true(peer_api_range(p, API_FETCH, &min, &max));
    assert_int_equal(min, 4);
    assert_int_equal(max, 12);
    assert_false(peer_api_range(p, API_JOIN_GROUP, &min, &max));
    assert_false(peer_api_range(p, -1, &min, &max));
    assert_int_equal(peer_version(p, API_METADATA, -1, -1), 9);
    assert_int_equal(peer_version(p, API_METADATA, -1, 5), 5);
    assert_int_equal(peer_version(p, API_METADATA, 10, -1), -1);
    assert_int_equal(peer_version(p, API_FETCH, 0, 3), -1);
    assert_int_equal(peer_version(p, API_JOIN_GROUP, -1, -1), -1);
}

static void when_it_is_disconnected(void *arg)
{
    assert_false(peer_connected(((struct peer_test *)arg)->peer));
    assert_true(peer_answered(((struct peer_test *)arg)->peer));
}

static void negotiates_then_sends_what_waited(void **state)
{
    struct peer_test *t = peer_begin();
    send_metadata(t, 0, -1);
    send_metadata(t, 1, -1);
    call_on(uv_executor_ex(t->ex), before_it_is_connected, t);

    int fd = broker_accept(t);
    struct got_request g = broker_read(fd);
    assert_int_equal(g.header.api_key, API_API_VERSIONS);
    struct api_versions_request v;
    assert_int_equal(api_versions_request_decode(&v, VERSIONS_MAX, &g.body, NULL), 0);
    assert_true(str_eqz(v.client_software_name, "unit-test"));
    assert_true(str_eqz(v.client_software_version, "1.2.3"));
    char byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1); /* nothing else before the answer */
    answer_versions(fd, VERSIONS_MAX, g.header.correlation_id, 0, 5);
    free(g.frame);

    for (int i = 0; i < 2; i++) {
        g = broker_read(fd);
        assert_int_equal(g.header.api_version, 9); /* the broker's, below ours */
        struct arena a;
        struct metadata_request m;
        arena_init(&a, 0);
        assert_int_equal(metadata_request_decode(&m, 9, &g.body, &a), 0);
        assert_true(str_eqz(m.topics.v[0].name, "topic-of-the-caller"));
        arena_free(&a);
        answer_metadata(fd, g.header.correlation_id, i ? "second" : "first");
        free(g.frame);
        expect_status(t, i, 0);
        assert_int_equal(t->slots[i].version, 9);
        assert_string_equal(t->slots[i].text, i ? "second" : "first");
    }
    call_on(uv_executor_ex(t->ex), when_it_is_connected, t);
    close(fd);
    peer_end(t);
}

static void falls_back_when_apiversions_is_too_new(void **state)
{
    /* with the broker's range, and (before Kafka 2.4) without */
    for (int with_range = 0; with_range < 2; with_range++) {
        struct peer_test *t = peer_begin();
        send_metadata(t, 0, -1);
        int fd = broker_accept(t);
        int32_t id = broker_expect(fd, API_API_VERSIONS, VERSIONS_MAX);
        answer_versions(fd, 0, id, KERR_UNSUPPORTED_VERSION, with_range);
        int second = with_range ? 3 : 0;
        id = broker_expect(fd, API_API_VERSIONS, second);
        answer_versions(fd, second, id, 0, 5);
        answer_metadata(fd, broker_expect(fd, API_METADATA, 9), "x");
        expect_status(t, 0, 0);
        close(fd);
        peer_end(t);
    }
}

static void a_failed_negotiation_is_told(void **state)
{
    static const struct {
        int16_t code;
        int status;
    } cases[] = {{KERR_UNSUPPORTED_VERSION, -ENOTSUP}, {KERR_INVALID_REQUEST, -EPROTO}};
    for (int i = 0; i < 2; i++) {
        struct peer_test *t = peer_begin();
        send_metadata(t, 0, -1);
        send_metadata(t, 1, -1);
        int fd = broker_accept(t);
        int32_t id = broker_expect(fd, API_API_VERSIONS, VERSIONS_MAX);
        if (i == 0) { /* not even version 0 */
            answer_versions(fd, 0, id, cases[i].code, 0);
            id = broker_expect(fd, API_API_VERSIONS, 0);
            answer_versions(fd, 0, id, cases[i].code, 0);
        } else {
            answer_versions(fd, VERSIONS_MAX, id, cases[i].code, 0);
        }
        expect_status(t, 0, cases[i].status);
        expect_status(t, 1, cases[i].status);
        client_expect_end(fd);
        close(fd);
        peer_end(t);
    }
}

static void no_common_version_fails_alone(void **state)
{
    struct peer_test *t = peer_begin();
    struct fetch_request fetch;
    fetch_request_init(&fetch);
    struct metadata_request all;
    metadata_request_init(&all);
    all.topics.n = -1; /* null: version 0 has none */
    send_metadata(t, 0, -1);
    send_any(t, 1, API_FETCH, 13, -1, &fetch, true); /* waits, then finds out */
    int fd = broker_ready(t);
    int32_t id = broker_expect(fd, API_METADATA, 9);
    expect_status(t, 1, -ENOTSUP);
    send_any(t, 2, API_FETCH, 0, 3, &fetch, true);
    send_any(t, 3, 9999, -1, -1, &fetch, true);
    send_any(t, 4, API_METADATA, 0, 0, &all, true);
    for (int i = 2; i < 5; i++)
        expect_status(t, i, -ENOTSUP);
    answer_metadata(fd, id, "unharmed");
    expect_status(t, 0, 0);
    close(fd);
    peer_end(t);
}

/* ---- tests: answers ---- */

static void many_in_flight(void **state)
{
    struct peer_test *t = peer_begin();
    int32_t ids[SLOTS];
    for (int i = 0; i < SLOTS; i++)
        send_metadata(t, i, -1);
    int fd = broker_ready(t);
    for (int i = 0; i < SLOTS; i++)
        ids[i] = broker_expect(fd, API_METADATA, 9);
    struct buf all = BUF_INIT;
    for (int i = 0; i < SLOTS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        struct buf b = metadata_answer(ids[i], name);
        buf_put(&all, b.p, b.len);
        buf_free(&b);
    }
    client_send(fd, all.p, all.len);
    buf_free(&all);
    for (int i = 0; i < SLOTS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        expect_status(t, i, 0);
        assert_string_equal(t->slots[i].text, name);
        assert_int_equal(t->slots[i].nth, i);
    }
    close(fd);
    peer_end(t);
}

static void an_answer_in_pieces(void **state)
{
    struct peer_test *t = peer_begin();
    send_metadata(t, 0, -1);
    int fd = broker_ready(t);
    struct buf b = metadata_answer(broker_expect(fd, API_METADATA, 9), "pieces");
    for (size_t i = 0; i < b.len; i++) {
        client_send(fd, b.p + i, 1);
        call_on(uv_executor_ex(t->ex), do_nothing, NULL);
    }
    buf_free(&b);
    expect_status(t, 0, 0);
    assert_string_equal(t->slots[0].text, "pieces");
    close(fd);
    peer_end(t);
}

static void large_answers_are_kept_on_request(void **state)
{
    struct peer_test *t = peer_begin();
    enum { RECORDS = 12 << 20 };
    uint8_t *records = malloc(RECORDS);
    for (size_t i = 0; i < RECORDS; i++)
        records[i] = (uint8_t)(i * 7 + (i >> 12));
    struct fetch_request request;
    fetch_request_init(&request);
    t->slots[0].keep = t->slots[1].keep = true;
    send_any(t, 0, API_FETCH, 12, 12, &request, true);
    send_any(t, 1, API_FETCH, 12, 12, &request, true);
    int fd = broker_ready(t);
    for (int i = 0; i < 2; i++) {
        struct fetch_response_partition part;
        fetch_response_partition_init(&part);
        part.partition_index = i;
        part.records = (struct records){records, RECORDS, NULL, 0};
        struct fetch_response_response topic;
        fetch_response_response_init(&topic);
        topic.topic = str_of("t");
        topic.partitions.v = &part;
        topic.partitions.n = 1;
        struct fetch_response m;
        fetch_response_init(&m);
        m.responses.v = &topic;
        m.responses.n = 1;
        broker_answer(fd, &fetch_response_desc, 1, 12, broker_expect(fd, API_FETCH, 12), &m);
    }
    for (int i = 0; i < 2; i++) {
        expect_status(t, i, 0);
        const struct fetch_response *m = t->slots[i].response;
        const struct fetch_response_partition *part = &m->responses.v[0].partitions.v[0];
        assert_int_equal(part->partition_index, i);
        assert_int_equal(part->records.len, RECORDS);
        assert_memory_equal(part->records.p, records, RECORDS);
    }
    free(records);
    close(fd);
    peer_end(t);
}

static void a_request_without_answer_is_done_when_it_has_left(void **state)
{
    struct peer_test *t = peer_begin();
    enum { RECORDS = 30 << 20 };
    uint8_t *records = calloc(1, RECORDS);
    struct produce_request_partition_data part;
    produce_request_partition_data_init(&part);
    part.records = (struct records){records, RECORDS, NULL, 0};
    struct produce_request_topic_data topic;
    produce_request_topic_data_init(&topic);
    topic.name = str_of("t");
    topic.partition_data.v = &part;
    topic.partition_data.n = 1;
    struct produce_request m;
    produce_request_init(&m);
    m.topic_data.v = &topic;
    m.topic_data.n = 1;
    send_any(t, 0, API_PRODUCE, 9, 9, &m, false);
    int fd = broker_ready(t);
    send_metadata(t, 1, -1);
    free(records);
    for (int i = 0; i < 4; i++)
        call_on(uv_executor_ex(t->ex), do_nothing, NULL);
    pthread_mutex_lock(&t->lock);
    assert_int_equal(t->slots[0].calls, 0); /* 30 MB do not fit in socket buffers */
    pthread_mutex_unlock(&t->lock);
    struct got_request g = broker_read(fd);
    assert_true(g.n > RECORDS);
    free(g.frame);
    expect_status(t, 0, 0);
    answer_metadata(fd, broker_expect(fd, API_METADATA, 9), "behind it");
    expect_status(t, 1, 0);
    part.records.len = 0;
    send_any(t, 2, API_PRODUCE, 9, 9, &m, false); /* leaves within the call */
    expect_status(t, 2, 0);
    close(fd);
    peer_end(t);
}

static void a_callback_may_send(void **state)
{
    struct peer_test *t = peer_begin();
    for (int i = 0; i < 50; i++)
        t->slots[i].send_again = true;
    send_metadata(t, 0, -1);
    int fd = broker_ready(t);
    for (int i = 0; i <= 50; i++) {
        answer_metadata(fd, broker_expect(fd, API_METADATA, 9), "again");
        expect_status(t, i, 0);
    }
    close(fd);
    peer_end(t);
}

/* ---- tests: failures ---- */

/* What the broker says instead of a proper answer, and what becomes of the request. */
static void bad_answer(const uint8_t *bytes, size_t n, int32_t max_response)
{
    struct peer_test *t =
        peer_begin_host("127.0.0.1", (struct peer_options){.max_response = (uint32_t)max_response});
    send_metadata(t, 0, -1);
    send_metadata(t, 1, -1);
    int fd = broker_ready(t);
    broker_expect(fd, API_METADATA, 9);
    broker_expect(fd, API_METADATA, 9);
    client_send(fd, bytes, n);
    expect_status(t, 0, -EPROTO);
    wait_slot(t, 1);
    assert_true(t->slots[1].status == -ECONNRESET || t->slots[1].status == -EPROTO);
    client_expect_end(fd);
    close(fd);
    /* and a new connection is as good as ever */
    send_metadata(t, 2, -1);
    fd = broker_ready(t);
    answer_metadata(fd, broker_expect(fd, API_METADATA, 9), "fresh");
    expect_status(t, 2, 0);
    close(fd);
    peer_end(t);
}

static void bad_answers_close(void **state)
{
    /* correlation ids: 0 was ApiVersions, 1 and 2 are Metadata */
    static const char wrong_id[] = "\0\0\0\x08\0\0\0\2xxxx";
    static const char negative[] = "\xff\xff\xff\xff";
    static const char too_long[] = "\0\0\x40\0";
    static const char no_id[] = "\0\0\0\2\0\0";
    static const char empty[] = "\0\0\0\0";
    static const char cut[] = "\0\0\0\7\0\0\0\1\0\0\0";
    static const char lying_count[] = "\0\0\0\x0e\0\0\0\1\0\0\0\0\0\xff\xff\xff\xff\x0f";
    static const char http[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
#define BAD(bytes) bad_answer((const uint8_t *)(bytes), sizeof(bytes) - 1, 10000)
    BAD(wrong_id);
    BAD(negative);
    BAD(too_long);
    BAD(no_id);
    BAD(empty);
    BAD(cut);
    BAD(lying_count);
    BAD(http);
}

static void an_answer_that_nobody_asked_for(void **state)
{
    struct peer_test *t = peer_begin();
    send_metadata(t, 0, -1);
    int fd = broker_ready(t);
    answer_metadata(fd, broker_expect(fd, API_METADATA, 9), "x");
    expect_status(t, 0, 0);
    answer_metadata(fd, 7, "unasked");
    client_expect_end(fd);
    close(fd);
    peer_end(t);
}

static void an_end_fails_what_is_in_flight(void **state)
{
    struct peer_test *t = peer_begin();
    send_metadata(t, 0, -1);
    close(broker_accept(t)); /* in the negotiation */
    expect_status(t, 0, -ECONNRESET);
    send_metadata(t, 1, -1);
    send_metadata(t, 2, -1);
    int fd = broker_ready(t);
    int32_t first = broker_expect(fd, API_METADATA, 9);
    broker_expect(fd, API_METADATA, 9);
    answer_metadata(fd, first, "in time");
    close(fd);
    expect_status(t, 1, 0);
    expect_status(t, 2, -ECONNRESET);
    call_on(uv_executor_ex(t->ex), when_it_is_disconnected, t);
    /* an end while nothing is in flight disturbs nobody */
    send_metadata(t, 3, -1);
    fd = broker_ready(t);
    answer_metadata(fd, broker_expect(fd, API_METADATA, 9), "x");
    expect_status(t, 3, 0);
    close(fd);
    for (int i = 0; i < 4; i++)
        call_on(uv_executor_ex(t->ex), do_nothing, NULL);
    send_metadata(t, 4, -1);
    fd = broker_ready(t);
    answer_metadata(fd, broker_expect(fd, API_METADATA, 9), "x");
    expect_status(t, 4, 0);
    close(fd);
    peer_end(t);
}

static void a_timeout_takes_the_connection(void **state)
{
    struct peer_test *t = peer_begin();
    send_metadata(t, 0, -1);
    int fd = broker_ready(t);
    answer_metadata(fd, broker_expect(fd, API_METADATA, 9), "x");
    expect_status(t, 0, 0);
    send_metadata(t, 1, -1);
    send_metadata(t, 2, 20);
    expect_status(t, 2, -ETIMEDOUT);
    expect_status(t, 1, -ECONNRESET);
    broker_expect(fd, API_METADATA, 9);
    broker_expect(fd, API_METADATA, 9);
    char byte;
    assert_int_equal(read(fd, &byte, 1), -1); /* a reset: nothing comes late */
    assert_int_equal(errno, ECONNRESET);
    close(fd);
    peer_end(t);
}

static void a_silent_negotiation_times_out(void **state)
{
    struct peer_test *t =
        peer_begin_host("127.0.0.1", (struct peer_options){.request_timeout_ms = 30});
    send_metadata(t, 0, WAIT_S * 1000);
    send_metadata(t, 1, 10); /* over before the connection is */
    expect_status(t, 1, -ETIMEDOUT);
    expect_status(t, 0, -ETIMEDOUT);
    peer_end(t);
}

static void nobody_listens(void **state)
{
    struct peer_test *t = peer_begin();
    int port;
    int fd = listen_local(&port);
    close(fd);
    close(t->listener);
    t->listener = -1;
    send_metadata(t, 0, -1);
    send_metadata(t, 1, -1);
    expect_status(t, 0, -ECONNREFUSED);
    expect_status(t, 1, -ECONNREFUSED);
    peer_end(t);
}

static void connecting_times_out(void **state)
{
    struct peer_test *t =
        peer_begin_host("127.0.0.1", (struct peer_options){.connect_timeout_ms = 50});
    assert_int_equal(listen(t->listener, 0), 0);
    int fill[8]; /* more than the kernel keeps for us: further ones get no answer */
    for (int i = 0; i < 8; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        client_dial(fill[i], t->port);
    }
    send_metadata(t, 0, -1);
    expect_status(t, 0, -ETIMEDOUT);
    for (int i = 0; i < 8; i++)
        close(fill[i]);
    peer_end(t);
}

static void connecting_is_given_more_time_after_each_failure(void **state)
{
    static const int64_t want[] = {100, 200, 400, 700, 700};
    struct peer p = {.options = {.connect_timeout_ms = 100, .connect_timeout_max_ms = 700}};
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++, p.dial_failures++)
        assert_int_equal(peer_connect_timeout(&p), want[i]);
    p.dial_failures = INT_MAX;
    assert_int_equal(peer_connect_timeout(&p), 700);
    p.options.connect_timeout_max_ms = 50; /* the first is never shorter than it was set */
    assert_int_equal(peer_connect_timeout(&p), 100);
    p.options.connect_timeout_ms = 0; /* none */
    p.options.connect_timeout_max_ms = 700;
    assert_int_equal(peer_connect_timeout(&p), 0);
}

static void names_are_looked_up_and_all_addresses_tried(void **state)
{
    /* "localhost" may be ::1 first, where nobody listens */
    struct peer_test *t = peer_begin_host("localhost", (struct peer_options){0});
    send_metadata(t, 0, -1);
    int fd = broker_ready(t);
    answer_metadata(fd, broker_expect(fd, API_METADATA, 9), "found");
    expect_status(t, 0, 0);
    close(fd);
    peer_end(t);

    t = peer_begin_host("no host name", (struct peer_options){0});
    send_metadata(t, 0, -1);
    expect_status(t, 0, -EHOSTUNREACH);
    peer_end(t);
}

/* ---- tests: the end of a peer ---- */

static void freed_in_every_state(void **state)
{
    for (int when = 0; when < 5; when++) {
        struct peer_test *t =
            peer_begin_host(when == 4 ? "localhost" : "127.0.0.1", (struct peer_options){0});
        send_metadata(t, 0, -1);
        send_metadata(t, 1, -1);
        int fd = -1;
        if (when == 1) { /* in the negotiation */
            fd = broker_accept(t);
            broker_expect(fd, API_API_VERSIONS, VERSIONS_MAX);
        } else if (when == 2) { /* in flight */
            fd = broker_ready(t);
            broker_expect(fd, API_METADATA, 9);
        } else if (when == 3) { /* one is about to be told that it fails */
            struct metadata_request m;
            metadata_request_init(&m);
            send_any(t, 2, 9999, -1, -1, &m, true);
        }
        call_on(uv_executor_ex(t->ex), on_free_call, t);
        expect_status(t, 0, -ECANCELED);
        expect_status(t, 1, -ECANCELED);
        if (when == 3)
            wait_slot(t, 2);
        if (fd >= 0)
            close(fd);
        peer_end(t);
    }
}

static void freed_in_a_callback(void **state)
{
    for (int with_error = 0; with_error < 2; with_error++) {
        struct peer_test *t = peer_begin();
        t->slots[1].free_peer = true;
        for (int i = 0; i < 4; i++)
            send_metadata(t, i, -1);
        int fd = broker_ready(t), ids[4];
        for (int i = 0; i < 4; i++)
            ids[i] = broker_expect(fd, API_METADATA, 9);
        if (!with_error)
            for (int i = 0; i < 4; i++)
                answer_metadata(fd, ids[i], "x");
        close(fd);
        expect_status(t, 0, with_error ? -ECONNRESET : 0);
        expect_status(t, 1, with_error ? -ECONNRESET : 0);
        expect_status(t, 2, -ECANCELED);
        expect_status(t, 3, -ECANCELED);
        peer_end(t);
    }
}

static void freed_without_use(void **state)
{
    peer_end(peer_begin());
    peer_free(NULL);
}

/* ---- tests: logging in ---- */

/* Says "one", then "two", and is in when both were answered with "yes". */
struct test_login {
    struct peer_exchange base;
    bool again;
    int said;
    int64_t again_after_ms;
    bool works, worked;
    pthread_t loop;
};

struct test_auth {
    struct peer_auth base;
    int64_t again_after_ms;
    int first_error; /* what the first step gives; 0 = goes on */
    bool works;
};

static int login_step(struct peer_exchange *x, const void *in, size_t n, struct writer *out,
                      char *why, size_t why_n)
{
    struct test_login *l = container_of(x, struct test_login, base);
    if (l->said < 0)
        return l->said;
    if (l->works && l->said == 1 && n == 3) {
        l->works = false;
        l->loop = pthread_self();
        return PEER_AUTH_WORK;
    }
    if (l->worked) {
        assert_int_equal(n, 0);
        l->worked = false;
        in = "yes";
        n = 3;
    }
    if (l->said > 0 && (n != 3 || memcmp(in, "yes", 3) != 0)) {
        snprintf(why, why_n, "the broker says %.*s", (int)n, (const char *)in);
        return -EACCES;
    }
    if (l->said == 2)
        return PEER_AUTH_DONE;
    const char *text = l->again ? (l->said ? "TWO" : "ONE") : l->said ? "two" : "one";
    l->said++;
    buf_put(&out->buf, text, 3);
    return PEER_AUTH_MORE;
}

static int64_t login_again_after(const struct peer_exchange *x)
{
    return container_of(x, struct test_login, base)->again_after_ms;
}

static void login_free(struct peer_exchange *x)
{
    free(container_of(x, struct test_login, base));
}

/* Between "one" and "two" there is slow work, on another thread. */
static void login_work(struct peer_exchange *x)
{
    struct test_login *l = container_of(x, struct test_login, base);
    assert_false(pthread_equal(pthread_self(), l->loop));
    l->worked = true;
}

static const struct peer_exchange_ops login_ops = {
    .step = login_step,
    .work = login_work,
    .again_after_ms = login_again_after,
    .free = login_free,
};

static struct peer_exchange *login_begin(const struct peer_auth *a,
                                         const struct peer_auth_with *with)
{
    const struct test_auth *auth = container_of(a, struct test_auth, base);
    struct test_login *l = calloc(1, sizeof(*l));
    assert_string_equal(with->client_id, "tester");
    assert_string_equal(with->host, "127.0.0.1");
    *l = (struct test_login){.base = {&login_ops},
                             .again = with->again,
                             .said = auth->first_error,
                             .again_after_ms = auth->again_after_ms,
                             .works = auth->works};
    return &l->base;
}

static const struct peer_auth_ops auth_ops = {login_begin};

static struct peer_test *peer_begin_with(const struct test_auth *auth)
{
    return peer_begin_host("127.0.0.1", (struct peer_options){.security = {.auth = &auth->base}});
}

static void broker_login(int fd, const char *one, const char *two)
{
    client_expect(fd, one);
    client_send_frame(fd, "yes");
    client_expect(fd, two);
    client_send_frame(fd, "yes");
}

struct connected_call {
    struct peer_test *t;
    bool is;
};

static void on_connected_call(void *arg)
{
    struct connected_call *c = arg;
    c->is = peer_connected(c->t->peer);
}

static bool asked_connected(struct peer_test *t)
{
    struct connected_call c = {t, false};
    call_on(uv_executor_ex(t->ex), on_connected_call, &c);
    return c.is;
}

static void logs_in_before_all_else(void **state)
{
    struct test_auth auth = {.base = {&auth_ops}};
    struct peer_test *t = peer_begin_with(&auth);
    for (int round = 0; round < 2; round++) { /* on each connection anew */
        send_metadata(t, round, -1);
        int fd = broker_accept(t);
        broker_login(fd, "one", "two");
        answer_versions(fd, VERSIONS_MAX, broker_expect(fd, API_API_VERSIONS, VERSIONS_MAX), 0, 5);
        answer_metadata(fd, broker_expect(fd, API_METADATA, 9), "in");
        expect_status(t, round, 0);
        close(fd);
        while (round == 0 && asked_connected(t)) /* until it knows of the end */
            ;
    }
    peer_end(t);
}

static void a_refused_login_is_told(void **state)
{
    struct test_auth auth = {.base = {&auth_ops}};
    struct peer_test *t = peer_begin_with(&auth);
    send_metadata(t, 0, -1);
    send_metadata(t, 1, -1);
    int fd = broker_accept(t);
    client_expect(fd, "one");
    client_send_frame(fd, "no");
    expect_status(t, 0, -EACCES);
    expect_status(t, 1, -EACCES);
    assert_string_equal(peer_failure(t->peer), "authentication failed: the broker says no");
    client_expect_end(fd);
    close(fd);
    peer_end(t);
}

static void what_the_broker_says_is_one_line(void **state)
{
    struct test_auth auth = {.base = {&auth_ops}};
    struct peer_test *t = peer_begin_with(&auth);
    send_metadata(t, 0, -1);
    int fd = broker_accept(t);
    client_expect(fd, "one");
    client_send_frame(fd, "no\r\nFATAL \x1b[2J\x7f\t\xc3\xa9");
    expect_status(t, 0, -EACCES);
    assert_string_equal(peer_failure(t->peer),
                        "authentication failed: the broker says no??FATAL ?[2J??\xc3\xa9");
    client_expect_end(fd);
    close(fd);
    peer_end(t);
}

static void slow_work_of_a_login_is_done_elsewhere(void **state)
{
    struct test_auth auth = {.base = {&auth_ops}, .works = true};
    struct peer_test *t = peer_begin_with(&auth);
    send_metadata(t, 0, -1);
    int fd = broker_accept(t);
    broker_login(fd, "one", "two");
    answer_versions(fd, VERSIONS_MAX, broker_expect(fd, API_API_VERSIONS, VERSIONS_MAX), 0, 5);
    answer_metadata(fd, broker_expect(fd, API_METADATA, 9), "in");
    expect_status(t, 0, 0);
    close(fd);
    peer_end(t);
}

/* The connection, or the peer, may go while the work is under way. */
static void slow_work_for_nobody(void **state)
{
    struct test_auth auth = {.base = {&auth_ops}, .works = true};
    for (int round = 0; round < 20; round++) {
        struct peer_test *t = peer_begin_with(&auth);
        send_metadata(t, 0, -1);
        int fd = broker_accept(t);
        client_expect(fd, "one");
        client_send_frame(fd, "yes");
        if (round % 2)
            close(fd);
        peer_end(t);
        if (round % 2 == 0)
            close(fd);
    }
}

static void a_login_that_cannot_begin(void **state)
{
    struct test_auth auth = {.base = {&auth_ops}, .first_error = -ENOTSUP};
    struct peer_test *t = peer_begin_with(&auth);
    send_metadata(t, 0, -1);
    expect_status(t, 0, -ENOTSUP);
    peer_end(t);
}

/* What was asked before is answered first, what is asked meanwhile waits. */
static void a_login_is_renewed_with_the_next_request(void **state)
{
    struct test_auth auth = {.base = {&auth_ops}, .again_after_ms = 1};
    struct peer_test *t = peer_begin_with(&auth);
    send_metadata(t, 0, -1);
    int fd = broker_accept(t);
    broker_login(fd, "one", "two");
    answer_versions(fd, VERSIONS_MAX, broker_expect(fd, API_API_VERSIONS, VERSIONS_MAX), 0, 5);
    int32_t first = broker_expect(fd, API_METADATA, 9);
    struct timespec over = {0, 5000000}; /* the session's end has come */
    nanosleep(&over, NULL);
    send_metadata(t, 1, -1);
    client_expect(fd, "ONE");
    answer_metadata(fd, first, "before");
    expect_status(t, 0, 0);
    assert_string_equal(t->slots[0].text, "before");
    send_metadata(t, 2, -1);
    client_send_frame(fd, "yes");
    client_expect(fd, "TWO");
    client_send_frame(fd, "yes");
    for (int i = 1; i <= 2; i++) {
        answer_metadata(fd, broker_expect(fd, API_METADATA, 9), i == 1 ? "b" : "c");
        expect_status(t, i, 0);
    }
    assert_string_equal(t->slots[2].text, "c");
    close(fd);
    peer_end(t);
}

static void freed_while_logging_in(void **state)
{
    struct test_auth auth = {.base = {&auth_ops}};
    struct peer_test *t = peer_begin_with(&auth);
    send_metadata(t, 0, -1);
    int fd = broker_accept(t);
    client_expect(fd, "one");
    call_on(uv_executor_ex(t->ex), on_free_call, t);
    expect_status(t, 0, -ECANCELED);
    close(fd);
    peer_end(t);
}

UNIT_MAIN(unit_test(negotiates_then_sends_what_waited),
          unit_test(falls_back_when_apiversions_is_too_new),
          unit_test(a_failed_negotiation_is_told), unit_test(no_common_version_fails_alone),
          unit_test(many_in_flight), unit_test(an_answer_in_pieces),
          unit_test(large_answers_are_kept_on_request),
          unit_test(a_request_without_answer_is_done_when_it_has_left),
          unit_test(a_callback_may_send), unit_test(bad_answers_close),
          unit_test(an_answer_that_nobody_asked_for), unit_test(an_end_fails_what_is_in_flight),
          unit_test(a_timeout_takes_the_connection), unit_test(a_silent_negotiation_times_out),
          unit_test(nobody_listens), unit_test(connecting_times_out),
          unit_test(connecting_is_given_more_time_after_each_failure),
          unit_test(names_are_looked_up_and_all_addresses_tried), unit_test(freed_in_every_state),
          unit_test(freed_in_a_callback), unit_test(freed_without_use),
          unit_test(logs_in_before_all_else), unit_test(a_refused_login_is_told),
          unit_test(what_the_broker_says_is_one_line), unit_test(a_login_that_cannot_begin),
          unit_test(slow_work_of_a_login_is_done_elsewhere), unit_test(slow_work_for_nobody),
          unit_test(a_login_is_renewed_with_the_next_request), unit_test(freed_while_logging_in))
