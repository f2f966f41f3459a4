/* Who gets which partition. Partitions are written as topic and number: "t0 t3". */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/assignor.h"

enum { MOST_MEMBERS = 6, MOST_PARTS = 16, MOST_TOPICS = 4 };

struct who {
    const char *id, *topics; /* "a b" */
    const char *owned;       /* NULL: new */
    int generation;          /* of that */
    const char *instance;
    const char *rack;
};

struct setting {
    kafka_topic_size_t topics[MOST_TOPICS];
    size_t topics_n;
    kafka_group_member_t members[MOST_MEMBERS];
    size_t members_n;
    char text[4096]; /* what the strings point into */
    size_t text_n;
    const char *names[MOST_MEMBERS][MOST_TOPICS];
    kafka_topic_partition_t owned[MOST_MEMBERS][MOST_PARTS];
    struct buf user_data[MOST_MEMBERS];
};

static char *keep(struct setting *s, const char *text, size_t n)
{
    char *to = s->text + s->text_n;
    assert_true(s->text_n + n + 1 <= sizeof s->text);
    memcpy(to, text, n);
    to[n] = 0;
    s->text_n += n + 1;
    return to;
}

/* Next word of blanks-separated text; NULL at the end. */
static char *word(struct setting *s, const char **at)
{
    *at += strspn(*at, " ");
    size_t n = strcspn(*at, " ");
    if (n == 0)
        return NULL;
    char *w = keep(s, *at, n);
    *at += n;
    return w;
}

/* "orders7" -> name and number. */
static int split(char *w)
{
    size_t n = strcspn(w, "0123456789");
    int number = atoi(w + n);
    w[n] = 0;
    return number;
}

static void add_topics(struct setting *s, const char *topics)
{
    char *w;
    while ((w = word(s, &topics))) {
        int n = split(w);
        s->topics[s->topics_n++] = (kafka_topic_size_t){w, n, NULL};
    }
}

static void add_member(struct setting *s, const struct who *who)
{
    size_t i = s->members_n++, n = 0;
    kafka_group_member_t *m = &s->members[i];
    const char *topics = who->topics, *owned = who->owned ? who->owned : "";
    char *w;
    *m = (kafka_group_member_t){
        .member_id = who->id, .instance_id = who->instance, .rack = who->rack};
    while ((w = word(s, &topics)))
        s->names[i][m->topics_n++] = w;
    while ((w = word(s, &owned))) {
        int number = split(w);
        s->owned[i][n++] = (kafka_topic_partition_t){w, number};
    }
    m->topics = s->names[i];
    m->owned = s->owned[i];
    m->owned_n = n;
    m->generation = who->owned ? who->generation : -1;
    if (who->owned) { /* in both forms: each assignor reads its own */
        sticky_data_encode(s->owned[i], n, who->generation, &s->user_data[i]);
        m->user_data = s->user_data[i].p;
        m->user_data_len = s->user_data[i].len;
    }
}

static struct setting *setting_new(const char *topics, const struct who *who)
{
    struct setting *s = calloc(1, sizeof *s);
    assert_non_null(s);
    add_topics(s, topics);
    for (; who->id; who++)
        add_member(s, who);
    assignor_sort_members(s->members, s->members_n);
    return s;
}

static void setting_free(struct setting *s)
{
    for (int i = 0; i < MOST_MEMBERS; i++)
        buf_free(&s->user_data[i]);
    free(s);
}

typedef kafka_err_t (*assign_fn)(const kafka_group_member_t *, size_t, const kafka_topic_size_t *,
                                 size_t, kafka_assignment_t *, void *);

/* "A: t0 t3; B: t1", members by id. */
static void print_result(const struct setting *s, kafka_assignment_t *made, char *out)
{
    char id = 'A';
    size_t left = made->n;
    assignment_sort(made);
    for (; left > 0 && id <= 'Z'; id++) {
        bool any = false;
        for (size_t i = 0; i < made->n; i++) {
            if (s->members[made->v[i].member].member_id[0] != id)
                continue;
            out += sprintf(out, "%s%s%d", any ? " " : "", made->v[i].topic, made->v[i].partition);
            any = true;
            left--;
        }
        out += sprintf(out, "; ");
    }
}

/* expected: each member's partitions in order of id (A, B ...), each followed by "; ". */
static void expect(assign_fn fn, const char *topics, const struct who *who, const char *expected)
{
    struct setting *s = setting_new(topics, who);
    kafka_assignment_t made;
    char got[1024] = "";
    assignment_init(&made, s->members_n, s->topics, s->topics_n);
    assert_int_equal(fn(s->members, s->members_n, s->topics, s->topics_n, &made, NULL), KAFKA_OK);
    assert_false(made.failed);
    print_result(s, &made, got);
    assert_string_equal(got, expected);
    assignment_free(&made);
    setting_free(s);
}

#define NEW(id, topics)                     \
    {                                       \
        (id), (topics), NULL, 0, NULL, NULL \
    }
#define HAS(id, topics, owned, generation)                \
    {                                                     \
        (id), (topics), (owned), (generation), NULL, NULL \
    }
#define STATIC(id, topics, instance)              \
    {                                             \
        (id), (topics), NULL, 0, (instance), NULL \
    }
#define IN_RACK(id, topics, owned, generation, rack)        \
    {                                                       \
        (id), (topics), (owned), (generation), NULL, (rack) \
    }
#define WHO(...) ((const struct who[]){__VA_ARGS__, {NULL, NULL, NULL, 0, NULL, NULL}})

static void range_gives_runs_topic_by_topic(void **state)
{
    expect(assign_range, "logs2 orders7",
           WHO(NEW("A", "logs orders"), NEW("B", "logs orders"), NEW("C", "logs orders")),
           "logs0 orders0 orders1 orders2; logs1 orders3 orders4; orders5 orders6; ");
    expect(assign_range, "t3 u4", WHO(NEW("A", "t"), NEW("B", "t u"), NEW("C", "u")),
           "t0 t1; t2 u0 u1; u2 u3; ");
}

static void range_puts_instances_first(void **state)
{
    expect(assign_range, "t5", WHO(STATIC("A", "t", "i2"), NEW("B", "t"), STATIC("C", "t", "i1")),
           "t2 t3; t4; t0 t1; ");
}

static void roundrobin_deals_in_a_circle(void **state)
{
    expect(assign_roundrobin, "x3 y2", WHO(NEW("A", "x y"), NEW("B", "x y")), "x0 x2 y1; x1 y0; ");
    expect(assign_roundrobin, "x2 y3 z2", WHO(NEW("A", "x y"), NEW("B", "y"), NEW("C", "x z")),
           "x0 y0 y2; y1; x1 z0 z1; ");
}

static void sticky_deals_to_new_members(void **state)
{
    expect(assign_sticky, "t7", WHO(NEW("A", "t"), NEW("B", "t"), NEW("C", "t")),
           "t0 t3 t6; t1 t4; t2 t5; ");
    expect(assign_sticky, "t7", WHO(HAS("A", "t", "t0 t3 t6", 1), HAS("C", "t", "t2 t5", 1)),
           "t0 t3 t4 t6; ; t1 t2 t5; ");
}

static void a_newcomer_gets_what_is_above_the_share(void **state)
{
    const struct who *four =
        WHO(HAS("A", "t", "t0 t3 t4 t6", 2), HAS("C", "t", "t1 t2 t5", 2), NEW("D", "t"));
    expect(assign_sticky, "t7", four, "t0 t3 t4; ; t1 t2; t5 t6; ");
    expect(assign_cooperative, "t7", four, "t0 t3 t4; ; t1 t2; ");
    expect(assign_cooperative, "t7",
           WHO(HAS("A", "t", "t0 t3 t4", 3), HAS("C", "t", "t1 t2", 3), HAS("D", "t", "", 3)),
           "t0 t3 t4; ; t1 t2; t5 t6; ");
    const struct who *two_topics =
        WHO(HAS("A", "t u", "t0 t2 u0 u2", 1), HAS("B", "t u", "t1 t3 u1 u3", 1), NEW("C", "t u"));
    expect(assign_sticky, "t4 u4", two_topics, "t0 t2 u0; t1 t3 u1; u2 u3; ");
    expect(assign_cooperative, "t4 u4", two_topics, "t0 t2 u0; t1 t3 u1; ");
}

static void of_two_claims_the_newer_wins_and_equal_ones_cancel(void **state)
{
    const struct who *equal = WHO(HAS("A", "t", "t0 t1", 3), HAS("B", "t", "t1 t2", 3));
    expect(assign_sticky, "t4", equal, "t0 t1; t2 t3; ");
    expect(assign_cooperative, "t4", equal, "t0; t2 t3; ");
    const struct who *newer = WHO(HAS("A", "t", "t0 t1", 3), HAS("B", "t", "t1 t2", 4));
    expect(assign_cooperative, "t4", newer, "t0 t3; t1 t2; ");
}

static void different_subscriptions_are_evened_out(void **state)
{
    expect(assign_sticky, "a1 b2 c3", WHO(NEW("A", "a"), NEW("B", "a b"), NEW("C", "a b c")),
           "a0; b0 b1; c0 c1 c2; ");
    expect(assign_sticky, "a1 b2 c3",
           WHO(HAS("B", "a b", "b0 b1", 1), HAS("C", "a b c", "c0 c1 c2", 1)),
           "; a0 b0 b1; c0 c1 c2; ");
    const struct who *loaded = WHO(HAS("A", "t", "t0 t1 t2 t3 t4 t5", 1), HAS("B", "t u", "u0", 1));
    expect(assign_sticky, "t6 u1", loaded, "t2 t3 t4 t5; t0 t1 u0; ");
    expect(assign_cooperative, "t6 u1", loaded, "t2 t3 t4 t5; u0; ");
    const struct who *three =
        WHO(HAS("A", "t", "t0 t1 t2 t3 t4 t5", 1), NEW("B", "t u"), HAS("C", "u", "u0 u1", 1));
    expect(assign_sticky, "t6 u2", three, "t3 t4 t5; t0 t1 t2; u0 u1; ");
    expect(assign_cooperative, "t6 u2", three, "t3 t4 t5; ; u0 u1; ");
}

static void what_is_not_wanted_any_more_moves(void **state)
{
    const struct who *w = WHO(HAS("A", "t", "t0 t1 u0 u1", 1), HAS("B", "t u", "t2 t3 u2 u3", 1));
    expect(assign_sticky, "t4 u4", w, "t0 t1 t2 t3; u0 u1 u2 u3; ");
    expect(assign_cooperative, "t4 u4", w, "t0 t1; u2 u3; ");
}

static void claims_on_what_is_gone_do_not_count(void **state)
{
    expect(assign_sticky, "t2", WHO(HAS("A", "t", "gone0 t0 t9", 1), NEW("B", "t")), "t0; t1; ");
    expect(assign_cooperative, "t2", WHO(HAS("A", "t", "t0 t0", 1), NEW("B", "t")), "t0; t1; ");
    expect(assign_sticky, "t2", WHO(NEW("A", "other")), "");
}

/* Everything is given once, to a member who wants it, and evenly; a second run moves nothing. */
static void check_random(unsigned seed, assign_fn fn, bool equal)
{
    struct setting *s = calloc(1, sizeof *s);
    int members = 1 + (int)(seed % 5), count[MOST_MEMBERS] = {0};
    srand(seed);
    add_topics(s, "a3 b5 c2");
    for (int i = 0; i < members; i++) {
        char id[2] = {(char)('A' + i), 0};
        const char *wants[] = {"a b c", "a b", "b c", "b"};
        struct who w = {keep(s, id, 1), wants[equal ? 0 : rand() % 4], NULL, 0, NULL, NULL};
        add_member(s, &w);
    }
    for (int round = 0; round < 2; round++) {
        kafka_assignment_t made;
        int given = 0;
        assignment_init(&made, s->members_n, s->topics, s->topics_n);
        assert_int_equal(fn(s->members, s->members_n, s->topics, s->topics_n, &made, NULL),
                         KAFKA_OK);
        memset(count, 0, sizeof count);
        assignment_sort(&made);
        for (size_t i = 0; i < made.n; i++) {
            const struct given *g = &made.v[i];
            kafka_group_member_t *m = &s->members[g->member];
            assert_true(assignor_is_subscribed(m, g->topic));
            count[g->member]++;
            given++;
        }
        if (round == 1)
            for (size_t i = 0, k = 0; i < made.n; i++) { /* as it was */
                k = i > 0 && made.v[i].member == made.v[i - 1].member ? k + 1 : 0;
                assert_int_equal(s->owned[made.v[i].member][k].partition, made.v[i].partition);
            }
        for (size_t m = 0; m < s->members_n; m++)
            s->members[m].owned_n = 0;
        for (size_t i = 0; i < made.n; i++)
            s->owned[made.v[i].member][s->members[made.v[i].member].owned_n++] =
                (kafka_topic_partition_t){made.v[i].topic, made.v[i].partition};
        for (size_t m = 0; m < s->members_n; m++) {
            s->user_data[m].len = 0;
            s->members[m].generation = 1;
            sticky_data_encode(s->owned[m], s->members[m].owned_n, 1, &s->user_data[m]);
            s->members[m].user_data = s->user_data[m].p;
            s->members[m].user_data_len = s->user_data[m].len;
        }
        if (equal) {
            assert_int_equal(given, 10);
            for (size_t m = 0; m < s->members_n; m++)
                assert_in_range(count[m], 10 / members, (10 + members - 1) / members);
        }
        assignment_free(&made);
    }
    setting_free(s);
}

static void results_are_whole_even_and_stay(void **state)
{
    for (unsigned seed = 0; seed < 300; seed++) {
        check_random(seed, assign_sticky, true);
        check_random(seed, assign_cooperative, true);
        check_random(seed, assign_sticky, false);
        check_random(seed, assign_cooperative, false);
    }
}

/* ---- racks (KIP-881) ---- */

/* Racks are single letters: topics[i]'s partitions are in racks[i], "ab b a" partition by
 * partition. */
static void put_racks(struct setting *s, const char *const *racks,
                      const char *lists[MOST_TOPICS][MOST_PARTS][4],
                      const char *const *by_part[MOST_TOPICS][MOST_PARTS])
{
    for (size_t t = 0; t < s->topics_n; t++) {
        const char *at = racks[t], *w;
        for (int p = 0; (w = word(s, &at)); p++) {
            int n = 0;
            for (; *w; w++)
                lists[t][p][n++] = keep(s, w, 1);
            lists[t][p][n] = NULL;
            by_part[t][p] = lists[t][p];
        }
        s->topics[t].racks = by_part[t];
    }
}

static void expect_racks(assign_fn fn, const char *topics, const char *const *racks,
                         const struct who *who, const char *expected)
{
    struct setting *s = setting_new(topics, who);
    kafka_assignment_t made;
    char got[1024] = "";
    const char *lists[MOST_TOPICS][MOST_PARTS][4];
    const char *const *by_part[MOST_TOPICS][MOST_PARTS];
    put_racks(s, racks, lists, by_part);
    assignment_init(&made, s->members_n, s->topics, s->topics_n);
    assert_int_equal(fn(s->members, s->members_n, s->topics, s->topics_n, &made, NULL), KAFKA_OK);
    assert_false(made.failed);
    print_result(s, &made, got);
    assert_string_equal(got, expected);
    assignment_free(&made);
    setting_free(s);
}
#define RACKS(...) ((const char *const[]){__VA_ARGS__})

static void range_matches_racks_within_the_shares(void **state)
{
    const struct who *two = WHO(IN_RACK("A", "t", NULL, 0, "b"), IN_RACK("B", "t", NULL, 0, "a"));
    expect_racks(assign_range, "t4", RACKS("a b a b"), two, "t1 t3; t0 t2; ");
    expect_racks(assign_range, "t4", RACKS("a a a b"), two, "t2 t3; t0 t1; ");
    /* all partitions have replicas in all racks: nothing to choose */
    expect_racks(assign_range, "t4", RACKS("ab ab ab ab"), two, "t0 t1; t2 t3; ");
    /* nobody sits in a rack of the replicas */
    expect_racks(assign_range, "t4", RACKS("c d c d"), two, "t0 t1; t2 t3; ");
    /* one without a rack is near to all */
    expect_racks(assign_range, "t4", RACKS("a b a b"),
                 WHO(NEW("A", "t"), IN_RACK("B", "t", NULL, 0, "a")), "t0 t1; t2 t3; ");
    /* odd sizes: shares stay */
    expect_racks(assign_range, "t5", RACKS("a a a a b"), two, "t3 t4; t0 t1 t2; ");
}

static void range_matches_topics_that_are_joined_together(void **state)
{
    const struct who *two =
        WHO(IN_RACK("A", "t u", NULL, 0, "b"), IN_RACK("B", "t u", NULL, 0, "a"));
    expect_racks(assign_range, "t2 u2", RACKS("a b", "a b"), two, "t1 u1; t0 u0; ");
    /* only the second partition of both fits one member: the first ones go the same way */
    expect_racks(assign_range, "t2 u2", RACKS("a b", "b b"), two, "t1 u1; t0 u0; ");
    expect_racks(assign_range, "t2 u4", RACKS("a b", "a b b a"), two, "t1 u1 u2; t0 u0 u3; ");
}

static void sticky_deals_by_rack_first(void **state)
{
    const struct who *two = WHO(IN_RACK("A", "t", NULL, 0, "b"), IN_RACK("B", "t", NULL, 0, "a"));
    expect_racks(assign_sticky, "t4", RACKS("a b a b"), two, "t1 t3; t0 t2; ");
    expect_racks(assign_cooperative, "t4", RACKS("a a a b"), two, "t2 t3; t0 t1; ");
    expect_racks(assign_sticky, "t3", RACKS("a b b"), two, "t1 t2; t0; ");
    const struct who *uneven =
        WHO(IN_RACK("A", "t u", NULL, 0, "b"), IN_RACK("B", "t", NULL, 0, "a"));
    expect_racks(assign_sticky, "t4 u1", RACKS("a b a b", "a"), uneven, "t1 t3 u0; t0 t2; ");
}

static void what_is_in_the_wrong_rack_is_not_kept(void **state)
{
    const struct who *swapped =
        WHO(IN_RACK("A", "t", "t0 t2", 1, "b"), IN_RACK("B", "t", "t1 t3", 1, "a"));
    expect_racks(assign_sticky, "t4", RACKS("a b a b"), swapped, "t1 t3; t0 t2; ");
    expect_racks(assign_cooperative, "t4", RACKS("a b a b"), swapped, "");
    const struct who *uneven =
        WHO(IN_RACK("A", "t u", "t0 t2 u0", 1, "b"), IN_RACK("B", "t", "t1 t3", 1, "a"));
    expect_racks(assign_sticky, "t4 u1", RACKS("a b a b", "a"), uneven, "t1 t3 u0; t0 t2; ");
    expect_racks(assign_cooperative, "t4 u1", RACKS("a b a b", "a"), uneven, "u0; ");
}

static void what_nobody_is_near_to_stays(void **state)
{
    const struct who *far =
        WHO(IN_RACK("A", "t", "t1 t3", 1, "b"), IN_RACK("B", "t", "t0 t2", 1, "b"), NEW("C", "u"));
    expect_racks(assign_cooperative, "t4", RACKS("a a a b"),
                 WHO(IN_RACK("A", "t", "t1 t3", 1, "b"), IN_RACK("B", "t", "t0 t2", 1, "b")),
                 "t1 t3; t0 t2; ");
    expect_racks(assign_cooperative, "t4", RACKS("a a a b"), far, "t1 t3; t0 t2; ");
    /* the one near to them is full: they stay where they were, too */
    const struct who *full = WHO(IN_RACK("A", "t", "t1", 1, "b"), IN_RACK("B", "t", "t2", 1, "b"),
                                 IN_RACK("C", "t", "t0", 1, "a"));
    expect_racks(assign_cooperative, "t3", RACKS("a a b"), full, "t1; t2; t0; ");
    expect_racks(assign_sticky, "t3", RACKS("a a b"), full, "t1; t2; t0; ");
}

/* With racks at random: each partition is given once, evenly where all want the same, and after
 * some rounds nothing moves any more. */
static void rounds_with_racks(unsigned seed, assign_fn fn, bool equal)
{
    static const char *const racks[] = {NULL, "a", "b", "c"};
    static const char *const lists[] = {"a", "b", "ab", "bc", "c", "d"};
    struct setting *s = calloc(1, sizeof *s);
    const char *strings[MOST_TOPICS][MOST_PARTS][4];
    const char *const *by_part[MOST_TOPICS][MOST_PARTS];
    char text[3][64] = {"", "", ""};
    const int sizes[] = {3, 5, 2};
    size_t members = 1 + seed % 5;
    bool moved = true;
    srand(seed);
    add_topics(s, "a3 b5 c2");
    for (int t = 0; t < 3; t++)
        for (int p = 0; p < sizes[t]; p++)
            strcat(strcat(text[t], lists[rand() % 6]), " ");
    put_racks(s, RACKS(text[0], text[1], text[2]), strings, by_part);
    for (size_t i = 0; i < members; i++) {
        char id[2] = {(char)('A' + i), 0};
        const char *wants[] = {"a b c", "a b", "b c", "b"};
        struct who w = {keep(s, id, 1),   wants[equal ? 0 : rand() % 4], NULL, 0, NULL,
                        racks[rand() % 4]};
        add_member(s, &w);
    }
    for (int round = 0; round < 8 && moved; round++) {
        kafka_assignment_t made;
        moved = round == 0;
        assignment_init(&made, s->members_n, s->topics, s->topics_n);
        assert_int_equal(fn(s->members, s->members_n, s->topics, s->topics_n, &made, NULL),
                         KAFKA_OK);
        assert_false(made.failed);
        assignment_sort(&made);
        size_t at = 0;
        for (size_t m = 0; m < s->members_n; m++) {
            size_t n = 0;
            for (; at < made.n && made.v[at].member == m; at++, n++) {
                kafka_topic_partition_t *tp = &s->owned[m][n];
                moved |= n >= s->members[m].owned_n || tp->partition != made.v[at].partition ||
                         strcmp(tp->topic, made.v[at].topic) != 0;
                *tp = (kafka_topic_partition_t){made.v[at].topic, made.v[at].partition};
                for (size_t i = 0; i < at; i++)
                    assert_true(made.v[i].topic != made.v[at].topic ||
                                made.v[i].partition != made.v[at].partition);
            }
            moved |= n != s->members[m].owned_n;
            s->members[m].owned_n = n;
            s->user_data[m].len = 0;
            s->members[m].generation = round + 1;
            sticky_data_encode(s->owned[m], n, round + 1, &s->user_data[m]);
            s->members[m].user_data = s->user_data[m].p;
            s->members[m].user_data_len = s->user_data[m].len;
            if (equal && !moved && fn != assign_range)
                assert_in_range(n, 10 / members, (10 + members - 1) / members);
        }
        if (equal && !moved)
            assert_int_equal(made.n, 10);
        assignment_free(&made);
    }
    assert_false(moved);
    setting_free(s);
}

static void with_racks_results_are_whole_and_come_to_rest(void **state)
{
    for (unsigned seed = 0; seed < 2000; seed++) {
        rounds_with_racks(seed, assign_range, true);
        rounds_with_racks(seed, assign_sticky, true);
        rounds_with_racks(seed, assign_cooperative, true);
        rounds_with_racks(seed, assign_range, false);
        rounds_with_racks(seed, assign_sticky, false);
        rounds_with_racks(seed, assign_cooperative, false);
    }
}

/* ---- bytes ---- */

static void expect_hex(const struct buf *b, const char *hex)
{
    char got[512] = "";
    for (size_t i = 0; i < b->len; i++)
        sprintf(got + 2 * i, "%02x", b->p[i]);
    assert_string_equal(got, hex);
}

static void subscriptions_have_their_bytes(void **state)
{
    const char *topics[] = {"t"};
    kafka_topic_partition_t owned[] = {{"t", 0}, {"t", 1}};
    struct subscription s = {topics, 1, owned, 2, 5, "r1", NULL, 0};
    struct buf out = BUF_INIT;
    struct arena a;
    kafka_group_member_t m = {0};
    arena_init(&a, 0);
    subscription_encode(&s, &out);
    expect_hex(&out, "000300000001000174ffffffff00000001000174000000020000000000000001"
                     "0000000500027231");
    assert_true(subscription_decode((struct bytes){out.p, (int32_t)out.len}, &a, &m));
    assert_string_equal(m.topics[0], "t");
    assert_int_equal(m.owned_n, 2);
    assert_int_equal(m.owned[1].partition, 1);
    assert_int_equal(m.generation, 5);
    assert_string_equal(m.rack, "r1");
    put_be16(out.p, 9); /* a later version, with more behind it */
    buf_put(&out, "more", 4);
    m = (kafka_group_member_t){0};
    assert_true(subscription_decode((struct bytes){out.p, (int32_t)out.len}, &a, &m));
    assert_int_equal(m.owned_n, 2);
    for (int32_t cut = 0; cut < 14; cut++)
        assert_false(subscription_decode((struct bytes){out.p, cut}, &a, &m));
    put_be16(out.p, 0xffff);
    assert_false(subscription_decode((struct bytes){out.p, (int32_t)out.len}, &a, &m));
    arena_free(&a);
    buf_free(&out);
}

static void the_first_version_is_read(void **state)
{
    static const uint8_t v0[] = {0, 0, 0, 0, 0, 1, 0, 1, 't', 255, 255, 255, 255};
    struct arena a;
    kafka_group_member_t m = {0};
    arena_init(&a, 0);
    assert_true(subscription_decode((struct bytes){v0, sizeof v0}, &a, &m));
    assert_int_equal(m.topics_n, 1);
    assert_int_equal(m.owned_n, 0);
    assert_int_equal(m.generation, -1);
    assert_null(m.rack);
    arena_free(&a);
}

static void assignments_have_their_bytes(void **state)
{
    static const uint8_t v0[] = {0, 0, 0, 0, 0, 1, 0, 1, 't', 0,   0,   0,  2,
                                 0, 0, 0, 0, 0, 0, 0, 2, 255, 255, 255, 255};
    struct arena a;
    struct buf out = BUF_INIT;
    kafka_topic_partition_t *tps;
    struct bytes user_data;
    size_t n;
    arena_init(&a, 0);
    assert_true(assignment_decode((struct bytes){v0, sizeof v0}, &a, &tps, &n, &user_data));
    assert_int_equal(n, 2);
    assert_int_equal(tps[1].partition, 2);
    assert_true(assignment_decode(BYTES_NULL, &a, &tps, &n, &user_data));
    assert_int_equal(n, 0);
    assignment_encode(NULL, 0, NULL, 0, &out);
    expect_hex(&out, "000300000000ffffffff");
    arena_free(&a);
    buf_free(&out);
}

static void a_result_takes_only_what_there_is(void **state)
{
    kafka_topic_size_t topics[] = {{"t", 2, NULL}};
    kafka_assignment_t made;
    assignment_init(&made, 1, topics, 1);
    assert_int_equal(kafka_assignment_add(&made, 0, "t", 1), KAFKA_OK);
    assert_int_equal(kafka_assignment_add(&made, 0, "t", 2), KAFKA_ERR_INVALID_ARG);
    assert_int_equal(kafka_assignment_add(&made, 1, "t", 0), KAFKA_ERR_INVALID_ARG);
    assert_int_equal(kafka_assignment_add(&made, 0, "u", 0), KAFKA_ERR_INVALID_ARG);
    assert_true(made.failed);
    assignment_free(&made);
}

UNIT_MAIN(unit_test(range_gives_runs_topic_by_topic), unit_test(range_puts_instances_first),
          unit_test(roundrobin_deals_in_a_circle), unit_test(sticky_deals_to_new_members),
          unit_test(a_newcomer_gets_what_is_above_the_share),
          unit_test(of_two_claims_the_newer_wins_and_equal_ones_cancel),
          unit_test(different_subscriptions_are_evened_out),
          unit_test(what_is_not_wanted_any_more_moves),
          unit_test(claims_on_what_is_gone_do_not_count),
          unit_test(results_are_whole_even_and_stay),
          unit_test(range_matches_racks_within_the_shares),
          unit_test(range_matches_topics_that_are_joined_together),
          unit_test(sticky_deals_by_rack_first), unit_test(what_is_in_the_wrong_rack_is_not_kept),
          unit_test(what_nobody_is_near_to_stays),
          unit_test(with_racks_results_are_whole_and_come_to_rest),
          unit_test(subscriptions_have_their_bytes), unit_test(the_first_version_is_read),
          unit_test(assignments_have_their_bytes), unit_test(a_result_takes_only_what_there_is))
