/* bench_groups.c - load on the group coordinator of a running broker; scripts/perf.sh reads the
 * broker's CPU and memory around it.
 *
 *   bench_groups PORT rebalance N     N members of the classic protocol: a first generation, and
 *                                     one more after a member has left
 *
 *   bench_groups PORT consumers N     N members of the new protocol join and settle
 *
 *   bench_groups PORT commits S C     C connections commit one offset at a time for S seconds
 *
 *   bench_groups PORT fill N P        N groups that each keep P offsets
 *
 *   bench_groups PORT loaded          waits until all groups are loaded
 *
 * Prints one line of JSON. The topic "bench-groups" with enough partitions must be there. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "protocol/api.h"
#include "protocol/msg/consumer_group_heartbeat.h"
#include "protocol/msg/find_coordinator.h"
#include "protocol/msg/heartbeat.h"
#include "protocol/msg/join_group.h"
#include "protocol/msg/leave_group.h"
#include "protocol/msg/list_groups.h"
#include "protocol/msg/offset_commit.h"
#include "protocol/msg/sync_group.h"

#define TOPIC STR_LIT("bench-groups")

enum { MEMBERS_MAX = 4000, LOADING = 14, REBALANCE = 27, ID_REQUIRED = 79 };

struct conn {
    int fd;
    uint8_t *in;
    size_t cap;
    struct arena arena;
    struct str id; /* of the member on it; owned */
};

static int port;

static void die(const char *what)
{
    fprintf(stderr, "bench_groups: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1e6;
}

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1e6;
}

/* ---- the wire ---- */

static void conn_open(struct conn *c)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *c = (struct conn){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0)
        die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    arena_init(&c->arena, 0);
}

static void conn_close(struct conn *c)
{
    close(c->fd);
    free(c->in);
    free((void *)c->id.p);
    arena_free(&c->arena);
}

static void request(struct conn *c, int16_t key, int16_t version, const void *m)
{
    struct writer w = WRITER_INIT;
    struct request_header h = {
        .api_key = key, .api_version = version, .client_id = STR_LIT("bench")};
    buf_put_i32(&w.buf, 0);
    request_header_encode(&w, &h);
    msg_encode(api_find(key)->request, version, &w, m);
    put_be32(w.buf.p, (uint32_t)w.buf.len - 4);
    for (size_t at = 0; at < w.buf.len;) {
        ssize_t n = write(c->fd, w.buf.p + at, w.buf.len - at);
        if (n <= 0)
            die("write");
        at += (size_t)n;
    }
    writer_free(&w);
}

static void read_all(struct conn *c, uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t got = read(c->fd, p, n);
        if (got <= 0)
            die("read");
        p += got;
        n -= (size_t)got;
    }
}

/* The answer; good until the next one on this connection. */
static void response(struct conn *c, int16_t key, int16_t version, void *m)
{
    uint8_t head[4];
    int32_t id;
    const struct api_desc *api = api_find(key);
    read_all(c, head, 4);
    size_t n = get_be32(head);
    if (n > c->cap) {
        free(c->in);
        c->in = malloc(n);
        c->cap = n;
        if (!c->in)
            die("malloc");
    }
    read_all(c, c->in, n);
    struct reader r = reader_of(c->in, n);
    arena_reset(&c->arena);
    if (response_header_decode(&r, api_response_header_version(api, version), &id) != 0 ||
        msg_decode(api->response, version, &r, &c->arena, m) != 0)
        die("an answer that cannot be read");
}

static void set_id(struct conn *c, struct str id)
{
    char *copy = str_dup(id);
    free((void *)c->id.p);
    c->id = (struct str){copy, id.len};
}

/* The coordinator is there, and has loaded the group. */
static void wait_for(struct str group)
{
    struct conn c;
    int16_t error = LOADING;
    conn_open(&c);
    for (int i = 0; error != 0 && i < 1000; i++) {
        struct find_coordinator_request in;
        struct find_coordinator_response out;
        struct heartbeat_request beat;
        struct heartbeat_response beaten;
        find_coordinator_request_init(&in);
        in.key = group;
        request(&c, API_FIND_COORDINATOR, 2, &in);
        response(&c, API_FIND_COORDINATOR, 2, &out);
        error = out.error_code;
        heartbeat_request_init(&beat);
        beat.group_id = group;
        request(&c, API_HEARTBEAT, 3, &beat);
        response(&c, API_HEARTBEAT, 3, &beaten);
        if (error == 0 && beaten.error_code != 25) /* the member is unknown: so it has looked */
            error = LOADING;
        if (error != 0)
            usleep(20000);
    }
    conn_close(&c);
    if (error != 0)
        die("no coordinator");
}

/* One that no earlier run has left members in. */
static struct str own_group(const char *what)
{
    static char name[64];
    snprintf(name, sizeof(name), "bench-%s-%d", what, (int)getpid());
    return str_of(name);
}

/* ---- the classic protocol ---- */

static void send_join(struct conn *c, struct str group)
{
    struct join_group_request in;
    struct join_group_request_protocol p = {
        .name = STR_LIT("range"),
        .metadata = {(const uint8_t *)"\0\0\0\0\0\1\0\14bench-groups\377\377\377\377", 24}};
    join_group_request_init(&in);
    in.group_id = group;
    in.member_id = c->id;
    in.session_timeout_ms = in.rebalance_timeout_ms = 60000;
    in.protocol_type = STR_LIT("consumer");
    in.protocols.v = &p;
    in.protocols.n = 1;
    request(c, API_JOIN_GROUP, 5, &in);
}

static struct join_group_response *read_join(struct conn *c)
{
    static struct join_group_response out;
    response(c, API_JOIN_GROUP, 5, &out);
    if (out.error_code == ID_REQUIRED || out.error_code == 0)
        set_id(c, out.member_id);
    else
        die("JoinGroup was refused");
    return &out;
}

static void send_sync(struct conn *c, struct str group, int32_t generation,
                      const struct conn *members, int n)
{
    struct sync_group_request in;
    static struct sync_group_request_assignment v[MEMBERS_MAX];
    sync_group_request_init(&in);
    in.group_id = group;
    in.member_id = c->id;
    in.generation_id = generation;
    for (int i = 0; i < n; i++) {
        v[i].member_id = members[i].id;
        v[i].assignment = (struct bytes){(const uint8_t *)"\0\0\0\0\0\1\0\14bench-groups", 20};
    }
    in.assignments.v = v;
    in.assignments.n = n;
    request(c, API_SYNC_GROUP, 3, &in);
}

/* From the first JoinGroup to the last assignment. */
static double generation(struct conn *v, int n, struct str group, double *joined)
{
    double begin = now_ms();
    int leader = -1;
    int32_t number = 0;
    for (int i = 0; i < n; i++)
        send_join(&v[i], group);
    for (int i = 0; i < n; i++) {
        struct join_group_response *out = read_join(&v[i]);
        number = out->generation_id;
        if (out->members.n > 0)
            leader = i;
    }
    *joined = now_ms() - begin;
    for (int i = 0; i < n; i++)
        send_sync(&v[i], group, number, v, i == leader ? n : 0);
    for (int i = 0; i < n; i++) {
        struct sync_group_response out;
        response(&v[i], API_SYNC_GROUP, 3, &out);
        if (out.error_code != 0)
            die("SyncGroup was refused");
    }
    return now_ms() - begin;
}

static void rebalance(int n)
{
    struct conn *v = calloc((size_t)n, sizeof(*v));
    struct str group = own_group("rebalance");
    double joined, again_joined;
    if (!v)
        die("calloc");
    wait_for(group);
    for (int i = 0; i < n; i++) {
        conn_open(&v[i]);
        v[i].id = (struct str){strdup(""), 0};
        send_join(&v[i], group);
        read_join(&v[i]); /* only the id */
    }
    double first = generation(v, n, group, &joined);
    struct leave_group_request leave;
    struct leave_group_response left;
    leave_group_request_init(&leave);
    leave.group_id = group;
    leave.member_id = v[n - 1].id;
    request(&v[n - 1], API_LEAVE_GROUP, 2, &leave);
    response(&v[n - 1], API_LEAVE_GROUP, 2, &left);
    double again = generation(v, n - 1, group, &again_joined);
    printf("{\"members\": %d, \"first_ms\": %.1f, \"again_ms\": %.1f, \"again_join_ms\": %.1f}\n",
           n, first, again, again_joined);
    for (int i = 0; i < n; i++)
        conn_close(&v[i]);
    free(v);
}

/* ---- the new protocol ---- */

struct beater {
    struct conn c;
    int32_t epoch;
    bool owns_all; /* what it was told, it has */
    struct consumer_group_heartbeat_request_topic_partition owned;
    int32_t partitions[64];
};

static void send_beat(struct beater *b, struct str group, bool full)
{
    struct consumer_group_heartbeat_request in;
    struct str name = TOPIC;
    consumer_group_heartbeat_request_init(&in);
    in.group_id = group;
    in.member_id = b->c.id;
    in.member_epoch = b->epoch;
    in.subscribed_topic_names.n = -1;
    if (full) {
        in.rebalance_timeout_ms = 60000;
        in.subscribed_topic_names.v = &name;
        in.subscribed_topic_names.n = 1;
    }
    b->owned.partitions.v = b->partitions;
    in.topic_partitions.v = &b->owned;
    in.topic_partitions.n = b->owned.partitions.n > 0;
    request(&b->c, API_CONSUMER_GROUP_HEARTBEAT, 0, &in);
}

static bool read_beat(struct beater *b)
{
    struct consumer_group_heartbeat_response out;
    response(&b->c, API_CONSUMER_GROUP_HEARTBEAT, 0, &out);
    if (out.error_code != 0)
        die("ConsumerGroupHeartbeat was refused");
    bool changed = b->epoch != out.member_epoch || out.assignment;
    b->epoch = out.member_epoch;
    if (!b->c.id.p || b->c.id.len == 0)
        set_id(&b->c, out.member_id);
    if (!out.assignment)
        return changed;
    b->owned.partitions.n = 0;
    for (int t = 0; t < out.assignment->topic_partitions.n; t++) {
        b->owned.topic_id = out.assignment->topic_partitions.v[t].topic_id;
        for (int i = 0; i < out.assignment->topic_partitions.v[t].partitions.n; i++)
            if (b->owned.partitions.n < 64)
                b->partitions[b->owned.partitions.n++] =
                    out.assignment->topic_partitions.v[t].partitions.v[i];
    }
    return changed;
}

/* Heartbeats at once, not each interval: what the broker needs, not what clients wait. */
static void consumers(int n)
{
    struct beater *v = calloc((size_t)n, sizeof(*v));
    struct str group = own_group("consumers");
    int rounds = 0;
    bool changed = true;
    if (!v)
        die("calloc");
    wait_for(group);
    for (int i = 0; i < n; i++) {
        conn_open(&v[i].c);
        v[i].c.id = (struct str){strdup(""), 0};
    }
    double begin = now_ms();
    for (int i = 0; i < n; i++)
        send_beat(&v[i], group, true);
    for (int i = 0; i < n; i++)
        read_beat(&v[i]);
    double joined = now_ms() - begin;
    for (; changed && rounds < 100; rounds++) {
        changed = false;
        for (int i = 0; i < n; i++)
            send_beat(&v[i], group, false);
        for (int i = 0; i < n; i++)
            changed |= read_beat(&v[i]);
    }
    printf("{\"members\": %d, \"join_ms\": %.1f, \"settled_ms\": %.1f, \"rounds\": %d}\n", n,
           joined, now_ms() - begin, rounds);
    for (int i = 0; i < n; i++)
        conn_close(&v[i].c);
    free(v);
}

/* ---- offsets ---- */

static void send_commit(struct conn *c, struct str group, int first, int n, int64_t offset)
{
    struct offset_commit_request in;
    struct offset_commit_request_partition parts[256];
    struct offset_commit_request_topic t = {.name = TOPIC, .partitions = {parts, n}};
    offset_commit_request_init(&in);
    in.group_id = group;
    in.topics.v = &t;
    in.topics.n = 1;
    for (int i = 0; i < n; i++) {
        msg_struct_init(&offset_commit_request_partition_struct, &parts[i]);
        parts[i].partition_index = first + i;
        parts[i].committed_offset = offset;
        parts[i].committed_metadata = STR_LIT("");
    }
    request(c, API_OFFSET_COMMIT, 7, &in);
}

static void read_commit(struct conn *c)
{
    struct offset_commit_response out;
    response(c, API_OFFSET_COMMIT, 7, &out);
    for (int i = 0; i < out.topics.v[0].partitions.n; i++)
        if (out.topics.v[0].partitions.v[i].error_code != 0)
            die("OffsetCommit was refused");
}

static void commits(int seconds, int n)
{
    struct conn *v = calloc((size_t)n, sizeof(*v));
    char names[64][32];
    long done = 0;
    if (!v || n > 64)
        die("too many connections");
    for (int i = 0; i < n; i++) {
        conn_open(&v[i]);
        snprintf(names[i], sizeof(names[i]), "bench-commits-%d", i);
        wait_for(str_of(names[i]));
    }
    double begin = now_ms(), own = cpu_ms();
    for (int i = 0; i < n; i++)
        send_commit(&v[i], str_of(names[i]), 0, 1, 0);
    while (now_ms() - begin < seconds * 1000.0)
        for (int i = 0; i < n; i++, done++) {
            read_commit(&v[i]);
            send_commit(&v[i], str_of(names[i]), 0, 1, done);
        }
    for (int i = 0; i < n; i++, done++)
        read_commit(&v[i]);
    printf("{\"commits\": %ld, \"seconds\": %.3f, \"own_cpu_s\": %.3f}\n", done,
           (now_ms() - begin) / 1000, (cpu_ms() - own) / 1000);
    for (int i = 0; i < n; i++)
        conn_close(&v[i]);
    free(v);
}

static void fill(int groups, int n)
{
    enum { AHEAD = 64 };
    struct conn c;
    wait_for(STR_LIT("bench-fill-0"));
    conn_open(&c);
    double begin = now_ms();
    for (int i = 0; i < groups + AHEAD; i++) {
        char name[32];
        snprintf(name, sizeof(name), "bench-fill-%d", i);
        if (i < groups)
            send_commit(&c, str_of(name), 0, n, i);
        if (i >= AHEAD)
            read_commit(&c);
    }
    printf("{\"groups\": %d, \"offsets\": %d, \"fill_ms\": %.1f}\n", groups, groups * n,
           now_ms() - begin);
    conn_close(&c);
}

static void loaded(void)
{
    struct conn c;
    int n = 0;
    int16_t error = LOADING;
    conn_open(&c);
    double begin = now_ms();
    for (; error == LOADING; usleep(error == LOADING ? 1000 : 0)) {
        struct list_groups_request in;
        struct list_groups_response out;
        list_groups_request_init(&in);
        request(&c, API_LIST_GROUPS, 3, &in);
        response(&c, API_LIST_GROUPS, 3, &out);
        error = out.error_code;
        n = out.groups.n;
    }
    printf("{\"groups\": %d, \"load_ms\": %.1f}\n", n, now_ms() - begin);
    conn_close(&c);
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[2] : "";
    int a = argc > 3 ? atoi(argv[3]) : 0, b = argc > 4 ? atoi(argv[4]) : 0;
    port = argc > 1 ? atoi(argv[1]) : 0;
    if (strcmp(what, "rebalance") == 0 && a >= 2 && a <= MEMBERS_MAX)
        rebalance(a);
    else if (strcmp(what, "consumers") == 0 && a >= 1 && a <= MEMBERS_MAX)
        consumers(a);
    else if (strcmp(what, "commits") == 0 && a > 0 && b > 0)
        commits(a, b);
    else if (strcmp(what, "fill") == 0 && a > 0 && b > 0 && b <= 256)
        fill(a, b);
    else if (strcmp(what, "loaded") == 0)
        loaded();
    else {
        fprintf(stderr, "usage: bench_groups PORT rebalance|consumers|commits|fill|loaded ...\n");
        return 2;
    }
    return 0;
}
