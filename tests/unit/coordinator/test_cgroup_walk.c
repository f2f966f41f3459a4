/* A group of the new protocol under random events: members join, leave, crash, come back, lose
 * answers, read other topics; topics grow and go; the broker restarts, its log is slow. At all
 * times no partition is read by two members, epochs only grow; and when the events stop everyone
 * gets to its target.
 *
 * The members here are clients: they believe what they are told, give up what they are asked to,
 * some time later, and never own what they were not given. A walk is replayed by its seed. */
#include "base/logline.h"
#include "cgroup_bench.h"

enum { CLIENTS = 6, STEPS = 250, WALKS = 200, ROUNDS = 60 };

struct client {
    bool in, is_static;
    int lives; /* ids are made of it */
    int32_t epoch;
    struct part_set owned;    /* what it reads */
    struct part_set assigned; /* what it was told last */
    char names[8];            /* that it reads */
    bool said;                /* these names are known to the broker */
    bool all;                 /* the next heartbeat says all: the last one failed */
    bool away;                /* a static one that will come back */
    int64_t heard_ms;         /* when the broker heard it last */
};

static struct bench *b;
static struct client clients[CLIENTS];
static uint32_t seed;
static int32_t group_epoch;
static int parts_n[4]; /* of the topics s, t, u, v; 0 = none */

static uint32_t chance(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static const char *id_of(const struct client *c)
{
    static char id[4][16];
    static int turn;
    char *at = id[turn++ % 4];
    snprintf(at, sizeof(id[0]), "%c%d", 'A' + (int)(c - clients), c->lives);
    return at;
}

static const char *instance_of(const struct client *c)
{
    static char id[4][16];
    static int turn;
    char *at = id[turn++ % 4];
    snprintf(at, sizeof(id[0]), "i%d", (int)(c - clients));
    return c->is_static ? at : NULL;
}

static void lose_all(struct client *c)
{
    part_set_free(&c->owned);
    part_set_free(&c->assigned);
}

/* ---- what must always hold ---- */

static void check(void)
{
    struct cgroup *cg = cgroup_of(b, "g");
    bench_check(b);
    for (int i = 0; i < CLIENTS; i++)
        for (int j = 0; j < i; j++)
            if (part_set_meet(&clients[i].owned, &clients[j].owned))
                fail_msg("%s and %s read the same partition: %s, %s", id_of(&clients[i]),
                         id_of(&clients[j]), parts_text(&clients[i].owned),
                         parts_text(&clients[j].owned));
    if (!cg)
        return;
    if (cg->epoch < group_epoch)
        fail_msg("epoch %d after %d", (int)cg->epoch, (int)group_epoch);
    group_epoch = cg->epoch;
}

/* ---- clients ---- */

/* What it was given and does not read yet, it reads; what it was not, it stops to read. */
static void obey(struct client *c)
{
    part_set_free(&c->owned);
    assert_int_equal(part_set_copy(&c->assigned, &c->owned), 0);
}

static void fenced(struct client *c)
{
    lose_all(c);
    c->in = false;
}

/* Whom the broker has not heard for a session does not read on either. */
static void let_time_pass(int64_t ms)
{
    enum { SESSION_MS = 45000 };
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].in && b->clock.wall_ms + ms - clients[i].heard_ms >= SESSION_MS)
            fenced(&clients[i]);
    bench_advance(b, ms);
}

static void heartbeat_of(struct client *c, bool lost)
{
    bool joins = c->epoch == 0, all = joins || c->all;
    struct beat_answer r =
        BEAT(b, .member = id_of(c), .instance = instance_of(c), .epoch = c->epoch,
             .names = all || !c->said ? c->names : NULL, .rebalance_ms = all ? 60000 : 0,
             .owned = all || chance(2) || !part_set_equal(&c->owned, &c->assigned)
                          ? parts_text(&c->owned)
                          : NULL);
    check();
    if (r.error == KERR_NONE)
        c->heard_ms = b->clock.wall_ms;
    if (lost) {
        /* What it said it does not own may be another's by now: it waits to be told again. */
        part_set_free(&c->assigned);
        assert_int_equal(part_set_copy(&c->owned, &c->assigned), 0);
        c->all = true;
        return;
    }
    switch (r.error) {
    case KERR_NONE:
        c->all = false;
        c->said = true;
        assert_true(r.epoch >= c->epoch);
        c->epoch = r.epoch;
        if (!r.told)
            break;
        part_set_free(&c->assigned);
        c->assigned = parts_of(r.parts);
        break;
    case KERR_FENCED_MEMBER_EPOCH:
    case KERR_UNKNOWN_MEMBER_ID:
    case KERR_FENCED_INSTANCE_ID:
    case KERR_UNRELEASED_INSTANCE_ID:
    case KERR_GROUP_ID_NOT_FOUND:
        fenced(c);
        break;
    default:
        c->all = true; /* again later */
    }
}

static void choose_names(struct client *c)
{
    static const char *const choices[] = {"t", "tu", "stu", "u", "tu", "stuv"};
    snprintf(c->names, sizeof(c->names), "%s", choices[chance(6)]);
    c->said = false;
}

static void come(struct client *c)
{
    if (c->in)
        return;
    if (!c->away)
        c->is_static = chance(3) == 0;
    c->away = false;
    c->in = true;
    c->lives++;
    c->epoch = 0;
    choose_names(c);
    heartbeat_of(c, chance(8) == 0);
}

static void go(struct client *c)
{
    if (!c->in || c->epoch <= 0)
        return;
    c->away = c->is_static && chance(2);
    lose_all(c);
    BEAT(b, .member = id_of(c), .instance = instance_of(c), .epoch = c->away ? -2 : -1);
    c->in = false;
}

static void crash(struct client *c)
{
    lose_all(c);
    c->in = false;
    c->away = false;
}

/* ---- the world ---- */

static void set_topic(int t, int n)
{
    char text[16];
    snprintf(text, sizeof(text), "%c:%d", 's' + t, n);
    bench_topics(b, text);
    parts_n[t] = n;
}

static void change_topic(void)
{
    int t = (int)chance(4);
    if (parts_n[t] == 0)
        set_topic(t, 1 + (int)chance(5));
    else if (chance(4) == 0)
        set_topic(t, 0);
    else if (parts_n[t] < 12)
        set_topic(t, parts_n[t] + 1 + (int)chance(3));
}

static void slow_log(struct client *c)
{
    if (!c->in || c->epoch <= 0)
        return;
    b->log.next_error = chance(2) ? KERR_NOT_LEADER_OR_FOLLOWER : KERR_NONE;
    heartbeat_of(c, chance(2));
    b->log.next_error = KERR_NONE;
    int32_t p = key_partition(STR_LIT("g"), BENCH_PARTITIONS);
    if (!group_shard_find(b->shard, STR_LIT("g")))
        bench_finish_load(b, p); /* in case it asked for it */
}

static void event(void)
{
    struct client *c = &clients[chance(CLIENTS)];
    switch (chance(16)) {
    case 0:
    case 1:
        come(c);
        break;
    case 2:
        go(c);
        break;
    case 3:
        if (chance(3) == 0)
            crash(c);
        break;
    case 4:
        if (chance(3) == 0)
            change_topic();
        break;
    case 5:
        if (chance(4) == 0)
            bench_restart(b);
        break;
    case 6:
        let_time_pass((int64_t)chance(3000));
        break;
    case 7:
        if (c->in && c->epoch > 0)
            choose_names(c);
        break;
    case 8:
        slow_log(c);
        break;
    case 9:
        obey(c);
        break;
    default:
        if (c->in)
            heartbeat_of(c, chance(8) == 0);
        if (c->in && chance(2))
            obey(c);
    }
    check();
}

/* ---- when all is quiet ---- */

static bool reads(const struct client *c, int t)
{
    return c->in && strchr(c->names, 's' + t) != NULL;
}

/* Each partition that somebody wants has one owner, who wants it. */
static bool all_are_read(void)
{
    for (int t = 0; t < 4; t++)
        for (int p = 0; p < parts_n[t]; p++) {
            struct part one = {topic_id((char)('s' + t)), p};
            int owners = 0, wanted = 0;
            for (int i = 0; i < CLIENTS; i++) {
                bool has = part_set_has(&clients[i].owned, &one);
                owners += has;
                wanted += reads(&clients[i], t);
                if (has && !reads(&clients[i], t))
                    return false;
            }
            if (owners != (wanted > 0))
                return false;
        }
    return true;
}

static void settle(uint32_t walk)
{
    bool stable = false;
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].away || (!clients[i].in && chance(2)))
            come(&clients[i]);
    for (int r = 0; r < ROUNDS && !stable; r++) {
        let_time_pass(5000); /* who has crashed is fenced meanwhile */
        for (int i = 0; i < CLIENTS; i++) {
            struct client *c = &clients[i];
            if (!c->in && c->away)
                come(c);
            if (c->in)
                heartbeat_of(c, false);
            obey(c);
            check();
        }
        stable = r > 12 && all_are_read() &&
                 (strcmp(cstate_of(b, "g"), "Stable") == 0 ||
                  strcmp(cstate_of(b, "g"), "Empty") == 0 || !cgroup_of(b, "g"));
    }
    if (!stable)
        fail_msg("walk %u does not settle: %s", walk, cstate_of(b, "g"));
}

static void walk(uint32_t n)
{
    seed = n * 7919u + 1;
    b = bench_new();
    memset(clients, 0, sizeof(clients));
    group_epoch = 0;
    memset(parts_n, 0, sizeof(parts_n));
    set_topic(1, 4);
    set_topic(2, 2);
    for (int i = 0; i < STEPS; i++)
        event();
    settle(n);
    for (int i = 0; i < CLIENTS; i++)
        lose_all(&clients[i]);
    bench_free(b);
}

static void any_walk_settles(void **state)
{
    logline_set_level(LOGLINE_FATAL);
    for (uint32_t n = 0; n < WALKS; n++)
        walk(n);
}

UNIT_MAIN(unit_test(any_walk_settles))
