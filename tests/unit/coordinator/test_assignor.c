/* The broker's own assignors: the same members, topics and former targets give the same result, and
 * partitions change hands only where that makes it fairer. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "coordinator/assignor.h"

enum { MOST = 8 };

static struct assign_topic topics[MOST];
static int topics_n;
static struct assign_member members[MOST];
static int subscribed[MOST][MOST];
static struct part_set olds[MOST];
static int members_n;

static struct uuid id_of(const char *name)
{
    struct uuid u = {{0}};
    u.b[0] = (uint8_t)(255 - name[0]); /* ids lie in another order than names */
    return u;
}

/* "t:3 u:2": topics in order of name, with their partitions. */
static void given_topics(const char *text)
{
    static char names[MOST][2];
    topics_n = 0;
    for (const char *at = text; *at; at += strcspn(at, " "), at += *at == ' ') {
        names[topics_n][0] = *at;
        topics[topics_n] = (struct assign_topic){{names[topics_n], 1}, id_of(at), atoi(at + 2)};
        topics_n++;
    }
}

static void reset(void)
{
    for (int i = 0; i < members_n; i++) {
        part_set_free(&members[i].out);
        part_set_free(&olds[i]);
    }
    members_n = 0;
}

static int topic_of(char c)
{
    for (int t = 0; t < topics_n; t++)
        if (topics[t].name.p[0] == c)
            return t;
    fail_msg("no topic %c", c);
    return -1;
}

/* "t0-2,u0": a run of partitions of a topic, comma separated. */
static void parse(const char *text, struct part_set *out)
{
    for (const char *at = text; *at; at += strcspn(at, ","), at += *at == ',') {
        int from = 0, to, n = sscanf(at + 1, "%d-%d", &from, &to);
        for (int p = from; p <= (n == 2 ? to : from); p++)
            assert_int_equal(part_set_add(out, id_of(at), p), 0);
    }
    part_set_sort(out);
}

/* In order of id. `reads` names topics by letter; `old` as parse reads it. */
static void given(const char *id, const char *instance, const char *reads, const char *old)
{
    int i = members_n++;
    members[i] = (struct assign_member){.id = str_of(id), .instance = str_of(instance)};
    for (const char *r = reads; *r; r++)
        subscribed[i][members[i].topics_n++] = topic_of(*r);
    parse(old, &olds[i]);
    members[i].topics = subscribed[i];
    members[i].old = &olds[i];
}

static bool all_read_all(void)
{
    for (int i = 0; i < members_n; i++)
        if (members[i].topics_n != topics_n)
            return false;
    return true;
}

static void assign(const char *how)
{
    struct assign_spec s = {topics, topics_n, members, members_n, all_read_all()};
    for (int i = 0; i < members_n; i++)
        part_set_free(&members[i].out);
    assert_int_equal(assignor_find(str_of(how))->assign(&s), 0);
}

static void gets(const char *id, const char *expected)
{
    struct part_set want = PART_SET_EMPTY;
    parse(expected, &want);
    for (int i = 0; i < members_n; i++) {
        if (!str_eqz(members[i].id, id))
            continue;
        if (!part_set_equal(&want, &members[i].out)) {
            for (int k = 0; k < members[i].out.n; k++)
                print_message("%s has %c%d\n", id, 255 - members[i].out.v[k].topic.b[0],
                              (int)members[i].out.v[k].partition);
            fail_msg("%s should have %s", id, expected);
        }
    }
    part_set_free(&want);
}

/* The result becomes the former target. */
static void again(const char *how)
{
    for (int i = 0; i < members_n; i++)
        part_set_move(&olds[i], &members[i].out);
    assign(how);
}

static void range_gives_runs(void **state)
{
    given_topics("t:7 u:2");
    given("A", NULL, "tu", "");
    given("B", NULL, "tu", "");
    given("C", NULL, "tu", "");
    assign("range");
    gets("A", "t0-2,u0");
    gets("B", "t3,t4,u1");
    gets("C", "t5,t6");
    reset();
    given_topics("t:1");
    given("A", NULL, "t", "");
    given("B", NULL, "t", "");
    assign("range");
    gets("A", "t0");
    gets("B", "");
    reset();
    given_topics("t:3 u:4");
    given("A", NULL, "t", "");
    given("B", NULL, "tu", "");
    given("C", NULL, "u", "");
    assign("range");
    gets("A", "t0,t1");
    gets("B", "t2,u0,u1");
    gets("C", "u2,u3");
    reset();
}

static void range_goes_by_instance(void **state)
{
    given_topics("t:5");
    given("a", NULL, "t", "");
    given("b", "z", "t", "");
    given("c", "y", "t", "");
    assign("range");
    gets("c", "t0,t1");
    gets("b", "t2,t3");
    gets("a", "t4");
    reset();
}

static void uniform_deals_and_keeps(void **state)
{
    given_topics("t:3 u:2");
    given("A", NULL, "tu", "");
    given("B", NULL, "tu", "");
    assign("uniform");
    gets("A", "t0-2");
    gets("B", "u0,u1");
    given("C", NULL, "tu", "");
    again("uniform");
    gets("A", "t0,t1");
    gets("B", "u0,u1");
    gets("C", "t2");
    reset();
    given("A", NULL, "tu", "t0,t1"); /* B has left */
    given("C", NULL, "tu", "t2");
    assign("uniform");
    gets("A", "t0,t1,u0");
    gets("C", "t2,u1");
    reset();
}

static void uniform_moves_what_is_too_much(void **state)
{
    given_topics("t:6");
    given("A", NULL, "t", "t0-5");
    given("B", NULL, "t", "");
    assign("uniform");
    gets("A", "t0-2");
    gets("B", "t3-5");
    reset();
    given_topics("t:5");
    given("A", NULL, "t", "t0,t1");
    given("B", NULL, "t", "t2-4");
    assign("uniform");
    gets("A", "t0,t1,t4");
    gets("B", "t2,t3");
    reset();
}

static void uniform_forgets_what_is_gone(void **state)
{
    given_topics("t:2");
    given("A", NULL, "t", "t0-5,x0"); /* partitions and a topic that are no more */
    given("B", NULL, "t", "");
    assign("uniform");
    gets("A", "t0");
    gets("B", "t1");
    reset();
}

static void mixed_deals_the_rarely_read_first(void **state)
{
    given_topics("t:3 u:3");
    given("A", NULL, "t", "");
    given("B", NULL, "tu", "");
    assign("uniform");
    gets("A", "t0-2");
    gets("B", "u0-2");
    reset();
    given_topics("t:6 u:3");
    given("A", NULL, "t", "");
    given("B", NULL, "tu", "");
    given("C", NULL, "u", "");
    assign("uniform");
    gets("A", "t0,t2,t4");
    gets("B", "t1,t3,t5");
    gets("C", "u0-2");
    reset();
}

static void mixed_balances(void **state)
{
    given_topics("t:6 u:1");
    given("A", NULL, "t", "t0-5");
    given("B", NULL, "tu", "u0");
    assign("uniform");
    gets("A", "t2-5");
    gets("B", "t0,t1,u0");
    reset();
    given_topics("a:1 b:2 c:3");
    given("C0", NULL, "a", "");
    given("C1", NULL, "ab", "");
    given("C2", NULL, "abc", "");
    assign("uniform");
    gets("C0", "a0");
    gets("C1", "b0,b1");
    gets("C2", "c0-2");
    reset();
    given("C1", NULL, "ab", "b0,b1");
    given("C2", NULL, "abc", "c0-2");
    assign("uniform");
    gets("C1", "a0,b0,b1");
    gets("C2", "c0-2");
    reset();
}

static void nobody_and_nothing(void **state)
{
    given_topics("");
    assign("range");
    assign("uniform");
    given("A", NULL, "", "");
    assign("range");
    assign("uniform");
    gets("A", "");
    given_topics("t:3");
    given("B", NULL, "t", "");
    assign("uniform");
    gets("A", "");
    gets("B", "t0-2");
    reset();
}

/* Whatever was before: every partition that is read has one owner, who reads it; a second run over
 * the result changes nothing much; equal readers differ by one at most. */
static void any_input_comes_out_sound(void **state)
{
    uint32_t seed = 1;
#define NEXT(n) ((seed = seed * 1103515245u + 12345u) >> 16) % (n)
    for (int round = 0; round < 3000; round++) {
        char text[64] = "", name[] = "t:0 ";
        static const char *const ids[] = {"A", "B", "C", "D", "E", "F"};
        int n = 1 + (int)NEXT(4), people = 1 + (int)NEXT(6), owner[MOST][8];
        bool same = NEXT(2);
        for (int t = 0; t < n; t++) {
            name[0] = (char)('t' + t);
            name[2] = (char)('0' + NEXT(8));
            strcat(text, name);
        }
        given_topics(text);
        for (int t = 0; t < MOST; t++)
            for (int p = 0; p < 8; p++)
                owner[t][p] = (int)NEXT(8);
        for (int i = 0; i < people; i++) {
            char reads[8] = "", old[256] = "";
            for (int t = 0; t < n; t++)
                if (same || NEXT(2))
                    reads[strlen(reads)] = (char)('t' + t); /* zeros follow */
            for (int t = 0; t < n; t++)
                for (int p = 0; p < 8; p++)
                    if (owner[t][p] == i)
                        snprintf(old + strlen(old), sizeof(old) - strlen(old), "%c%d,", 't' + t, p);
            given(ids[i], NULL, reads, old);
        }
        const char *how = round % 3 ? "uniform" : "range";
        assign(how);
        int owners[MOST][8] = {{0}}, most = 0, least = 99;
        for (int i = 0; i < people; i++) {
            most = members[i].out.n > most ? members[i].out.n : most;
            least = members[i].out.n < least ? members[i].out.n : least;
            for (int k = 0; k < members[i].out.n; k++) {
                int t = topic_of((char)(255 - members[i].out.v[k].topic.b[0]));
                bool reads = false;
                for (int j = 0; j < members[i].topics_n; j++)
                    reads |= subscribed[i][j] == t;
                if (!reads)
                    fail_msg("round %d, %s: %s has %c%d, topics %s", round, how, ids[i], 't' + t,
                             (int)members[i].out.v[k].partition, text);
                assert_in_range(members[i].out.v[k].partition, 0, topics[t].partitions - 1);
                assert_int_equal(owners[t][members[i].out.v[k].partition]++, 0);
            }
        }
        for (int t = 0; t < n; t++) {
            bool read = false;
            for (int i = 0; i < people; i++)
                for (int j = 0; j < members[i].topics_n; j++)
                    read |= subscribed[i][j] == t;
            for (int p = 0; p < topics[t].partitions; p++)
                assert_int_equal(owners[t][p], read);
        }
        if (same && round % 3)
            assert_true(most - least <= 1);
        reset();
    }
#undef NEXT
}

static void names_order_as_in_java(void **state)
{
    assert_true(java_cmp(STR_LIT("a"), STR_LIT("b")) < 0);
    assert_true(java_cmp(STR_LIT("a"), STR_LIT("aa")) < 0);
    assert_int_equal(java_cmp(STR_LIT("a"), STR_LIT("a")), 0);
    assert_true(java_cmp(STR_LIT("\xEF\xBD\xA1"), STR_LIT("\xF0\x9F\x98\x80")) > 0);
    assert_true(java_cmp(STR_LIT("\xF0\x9F\x98\x80"), STR_LIT("\xEE\x80\x80")) < 0);
    assert_true(java_cmp(STR_LIT("\xED\x9F\xBF"), STR_LIT("\xF0\x9F\x98\x80")) < 0);
}

static void assignors_have_two_names(void **state)
{
    assert_string_equal(
        assignor_of_class(STR_LIT("org.apache.kafka.coordinator.group.assignor.RangeAssignor"))
            ->name,
        "range");
    assert_null(assignor_find(STR_LIT("sticky")));
    assert_null(assignor_find(STR_NULL));
    assert_null(assignor_of_class(STR_LIT("range")));
}

UNIT_MAIN(unit_test(range_gives_runs), unit_test(range_goes_by_instance),
          unit_test(uniform_deals_and_keeps), unit_test(uniform_moves_what_is_too_much),
          unit_test(uniform_forgets_what_is_gone), unit_test(mixed_deals_the_rarely_read_first),
          unit_test(mixed_balances), unit_test(nobody_and_nothing),
          unit_test(any_input_comes_out_sound), unit_test(names_order_as_in_java),
          unit_test(assignors_have_two_names))
