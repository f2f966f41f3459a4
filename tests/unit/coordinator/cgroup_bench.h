/* cgroup_bench.h - groups of the new protocol on the bench: topics as the cluster has them, and
 * members that heartbeat. */
#ifndef TESTS_COORDINATOR_CGROUP_BENCH_H
#define TESTS_COORDINATOR_CGROUP_BENCH_H

#include "coordinator/cgroup_private.h"
#include "group_bench.h"
#include "protocol/msg/update_metadata.h"

/* ---- topics: one letter each; ids are made of it ---- */

static inline struct uuid topic_id(char letter)
{
    struct uuid u = UUID_ZERO;
    u.b[0] = (uint8_t)letter;
    u.b[15] = 1;
    return u;
}

/* "t:3 u:2": these topics have so many partitions from now on; 0 = it is deleted. */
static inline void bench_topics(struct bench *b, const char *text)
{
    for (const char *at = text; *at; at += strcspn(at, " "), at += *at == ' ') {
        struct arena a;
        struct update_metadata_request r;
        struct update_metadata_request_topic_state t;
        static const int32_t replicas[] = {0};
        static char names[128][2];
        int n = atoi(at + 2), from = n;
        arena_init(&a, 0);
        update_metadata_request_init(&r);
        update_metadata_request_topic_state_init(&t);
        names[(int)*at][0] = *at;
        t.topic_name = (struct str){names[(int)*at], 1};
        t.topic_id = topic_id(*at);
        if (n == 0)
            from = 64;
        t.partition_states.v = update_metadata_request_partition_state_new(&a, from);
        for (int p = 0; p < from; p++) {
            struct update_metadata_request_partition_state *s = &t.partition_states.v[p];
            s->partition_index = p;
            s->leader = n == 0 ? -2 : 0; /* -2: it is being deleted */
            s->replicas.v = (int32_t *)replicas;
            s->replicas.n = 1;
            s->isr = (typeof(s->isr)){(int32_t *)replicas, 1};
        }
        t.partition_states.n = from;
        r.topic_states.v = &t;
        r.topic_states.n = 1;
        assert_int_equal(metadata_cache_update(b->metadata, &r), 0);
        arena_free(&a);
    }
    atomic_fetch_add(&b->metadata_version, 1);
}

/* "t0-2,u1" as a set. */
static inline struct part_set parts_of(const char *text)
{
    struct part_set s = PART_SET_EMPTY;
    for (const char *at = text; *at; at += strcspn(at, ","), at += *at == ',') {
        int from = 0, to = 0, n = sscanf(at + 1, "%d-%d", &from, &to);
        for (int p = from; p <= (n == 2 ? to : from); p++)
            assert_int_equal(part_set_add(&s, topic_id(*at), p), 0);
    }
    part_set_sort(&s);
    return s;
}

/* As text, "t0,t1". Static. */
static inline const char *parts_text(const struct part_set *s)
{
    static char text[4][1024];
    static int turn;
    char *at = text[turn++ % 4], *begin = at;
    *at = 0;
    for (int i = 0; i < s->n && at - begin < 1000; i++)
        at += sprintf(at, "%s%c%d", i ? "," : "", s->v[i].topic.b[0], (int)s->v[i].partition);
    return begin;
}

/* ---- heartbeats ---- */

struct beat_args {
    int version; /* 0 = v0 */
    const char *group, *member, *instance, *rack, *assignor, *regex, *client;
    int32_t epoch;
    int rebalance_ms;  /* 0 = not said, but for a join 60000 */
    const char *names; /* letters; NULL = not said, but for a join "t" */
    const char *owned; /* NULL = not said, but for a join "" */
    bool bare;         /* a join says nothing of itself either */
    uint64_t rights;   /* group_call.h */
};

static inline void put_owned(struct call *c, const char *text)
{
    struct consumer_group_heartbeat_request *in = &c->in.beat;
    struct part_set s = parts_of(text);
    in->topic_partitions.v =
        consumer_group_heartbeat_request_topic_partition_new(&c->arena, part_set_topics(&s) + 1);
    in->topic_partitions.n = 0;
    for (int i = 0, end; i < s.n; i = end) {
        end = part_set_run(&s, i);
        struct consumer_group_heartbeat_request_topic_partition *to =
            &in->topic_partitions.v[in->topic_partitions.n++];
        to->topic_id = s.v[i].topic;
        to->partitions.v = arena_array(&c->arena, int32_t, (size_t)(end - i));
        for (int j = i; j < end; j++)
            to->partitions.v[to->partitions.n++] = s.v[j].partition;
    }
    part_set_free(&s);
}

static inline struct call *beat_with(struct bench *b, struct beat_args a)
{
    struct call *c = call_new(GROUP_CONSUMER_HEARTBEAT, a.version);
    struct consumer_group_heartbeat_request *in = &c->in.beat;
    bool joins = a.epoch == 0 && !a.bare;
    in->group_id = str_of(a.group ? a.group : "g");
    in->member_id = str_of(a.member ? a.member : "");
    in->member_epoch = a.epoch;
    in->instance_id = str_of(a.instance);
    in->rack_id = str_of(a.rack);
    in->server_assignor = str_of(a.assignor);
    in->subscribed_topic_regex = str_of(a.regex);
    in->rebalance_timeout_ms = a.rebalance_ms ? a.rebalance_ms : joins ? 60000 : -1;
    if (!a.names && joins && !a.regex)
        a.names = "t";
    if (!a.owned && joins)
        a.owned = "";
    in->subscribed_topic_names.n = -1;
    in->topic_partitions.n = -1;
    if (a.names) {
        int n = (int)strlen(a.names);
        in->subscribed_topic_names.v = arena_array(&c->arena, struct str, (size_t)n);
        in->subscribed_topic_names.n = n;
        for (int i = 0; i < n; i++)
            in->subscribed_topic_names.v[i] = (struct str){a.names + i, 1};
    }
    if (a.owned)
        put_owned(c, a.owned);
    if (a.client)
        c->c.client_id = str_of(a.client);
    c->c.rights = a.rights;
    return bench_submit(b, c);
}

/* What a member was answered. */
struct beat_answer {
    enum kerr error;
    int32_t epoch, interval;
    char id[64];
    bool told;         /* there is an assignment */
    char parts[1024];  /* as text */
    char message[256]; /* "" = none */
};

static inline struct beat_answer beat_end(struct call *c)
{
    struct consumer_group_heartbeat_response *out = &c->out.beat;
    struct beat_answer r = {.error = out->error_code,
                            .epoch = out->member_epoch,
                            .interval = out->heartbeat_interval_ms,
                            .told = out->assignment != NULL};
    struct part_set s = PART_SET_EMPTY;
    assert_true(c->done);
    if (!str_is_null(out->member_id))
        snprintf(r.id, sizeof(r.id), "%.*s", STR_ARG(out->member_id));
    if (!str_is_null(out->error_message))
        snprintf(r.message, sizeof(r.message), "%.*s", STR_ARG(out->error_message));
    for (int t = 0; out->assignment && t < out->assignment->topic_partitions.n; t++)
        for (int i = 0; i < out->assignment->topic_partitions.v[t].partitions.n; i++)
            part_set_add(&s, out->assignment->topic_partitions.v[t].topic_id,
                         out->assignment->topic_partitions.v[t].partitions.v[i]);
    part_set_sort(&s);
    snprintf(r.parts, sizeof(r.parts), "%s", parts_text(&s));
    part_set_free(&s);
    call_free(c);
    return r;
}
#define BEAT(b, ...) beat_end(beat_with(b, (struct beat_args){__VA_ARGS__}))

/* Is the answer good, at this epoch, with this assignment (NULL = none is told)? */
static inline void expect_beat(struct beat_answer r, int32_t epoch, const char *expected, int line)
{
    struct part_set s = parts_of(expected ? expected : "");
    const char *want = expected ? parts_text(&s) : "nothing";
    const char *got = r.told ? r.parts : "nothing";
    if (r.error != KERR_NONE || r.epoch != epoch || strcmp(want, got) != 0) {
        print_error("line %d: %s, epoch %d and %s, not epoch %d and %s\n", line,
                    kerr_name((int16_t)r.error), (int)r.epoch, got, (int)epoch, want);
        fail();
    }
    part_set_free(&s);
}
#define EXPECT_BEAT(answer, epoch, expected) expect_beat((answer), (epoch), (expected), __LINE__)

static inline struct cgroup *cgroup_of(struct bench *b, const char *group)
{
    struct group *g = group_shard_find(b->shard, str_of(group));
    return g ? group_consumers(g) : NULL;
}

static inline struct cmember *cmember_of(struct bench *b, const char *group, const char *id)
{
    return cgroup_find(cgroup_of(b, group), str_of(id));
}

static inline const char *cstate_of(struct bench *b, const char *group)
{
    struct cgroup *cg = cgroup_of(b, group);
    return cg ? cgroup_state_name(cgroup_state(cg)) : "none";
}

#endif
