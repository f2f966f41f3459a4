/* Assignment of replicas: the worked examples, and what must hold for any cluster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metadata/assignment.h"

#include "unit.h"

static struct arena arena;

static int arena_begin(void **state)
{
    arena_init(&arena, 0);
    return 0;
}

static int arena_end(void **state)
{
    arena_free(&arena);
    return 0;
}

/* racks: one letter a broker, or NULL. */
static struct assign_broker *cluster(int n, const char *racks)
{
    struct assign_broker *b = arena_array(&arena, struct assign_broker, (size_t)n);
    for (int i = 0; i < n; i++)
        b[i] = (struct assign_broker){i, racks ? (struct str){racks + i, 1} : STR_NULL};
    return b;
}

static void check(struct assign_args args, const char *const *want)
{
    int32_t *got = assign_replicas(&args, &arena);
    for (int p = 0; p < args.partitions; p++) {
        char text[64] = "";
        for (int j = 0; j < args.replication; j++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), j ? " %d" : "%d",
                     got[p * args.replication + j]);
        assert_string_equal(text, want[p]);
    }
}

static void without_racks_as_worked(void **state)
{
    static const char *const first[] = {"0 1 2", "1 2 3", "2 3 4", "3 4 0", "4 0 1",
                                        "0 2 3", "1 3 4", "2 4 0", "3 0 1", "4 1 2"};
    static const char *const second[] = {"2 1 3", "3 2 4", "4 3 0", "0 4 1", "1 0 2",
                                         "2 3 4", "3 4 0", "4 0 1", "0 1 2", "1 2 3"};
    struct assign_args args = {cluster(5, NULL), 5, false, 0, 10, 3, 0, 0};
    check(args, first);
    args.start = 2;
    args.shift = 3;
    check(args, second);
}

static void with_racks_as_worked(void **state)
{
    static const char *const first[] = {"0 3 1", "3 1 5", "1 5 4", "5 4 2", "4 2 0", "2 0 3",
                                        "0 4 2", "3 2 0", "1 0 3", "5 3 1", "4 1 5", "2 5 4"};
    static const char *const second[] = {"3 5", "1 4", "5 2", "4 0", "2 3", "0 1"};
    struct assign_args args = {cluster(6, "133221"), 6, true, 0, 12, 3, 0, 0};
    check(args, first);
    args.partitions = 6;
    args.replication = 2;
    args.start = 1;
    args.shift = 2;
    check(args, second);
}

static void with_uneven_racks_as_worked(void **state)
{
    static const char *const two[] = {"0 3", "3 1", "1 3", "2 3", "0 3", "3 0"};
    static const char *const three[] = {"0 3 1", "3 1 2", "1 3 2", "2 3 1"};
    struct assign_args args = {cluster(4, "aaab"), 4, true, 0, 6, 2, 0, 0};
    check(args, two);
    args.partitions = 4;
    args.replication = 3;
    check(args, three);
}

static void added_partitions_as_worked(void **state)
{
    static const char *const added[] = {"2 1 3", "3 4 0", "4 0 1"};
    struct assign_broker *b = cluster(5, NULL);
    int start = assign_start_of(b, 5, 3);
    assert_int_equal(start, 3);
    check((struct assign_args){b, 5, false, 4, 3, 3, start, start}, added);
    b[3].id = 7; /* ids 0 1 2 7 4: the first one not below counts */
    assert_int_equal(assign_start_of(b, 4, 3), 3);
    assert_int_equal(assign_start_of(b, 3, 9), 0);
}

static void one_broker_takes_all(void **state)
{
    static const char *const want[] = {"0", "0", "0"};
    check((struct assign_args){cluster(1, NULL), 1, false, 0, 3, 1, 0, 0}, want);
    check((struct assign_args){cluster(1, "a"), 1, true, 0, 3, 1, 0, 0}, want);
}

static void racks_are_all_none_or_some(void **state)
{
    struct assign_broker *b = cluster(3, "abc");
    assert_int_equal(assign_racks(b, 3), ASSIGN_ALL_RACKS);
    b[1].rack = STR_NULL;
    assert_int_equal(assign_racks(b, 3), ASSIGN_SOME_RACKS);
    assert_int_equal(assign_racks(cluster(3, NULL), 3), ASSIGN_NO_RACKS);
}

/* No broker twice in a partition; leaders differ by at most one without racks; racks as promised.
 */
static void any_cluster_keeps_the_promises(void **state)
{
    srandom(7);
    for (int round = 0; round < 400; round++) {
        int n = 1 + (int)(random() % 12), racks_n = 1 + (int)(random() % n);
        char racks[13];
        bool seen_rack[26] = {false};
        int racks_used = 0;
        for (int i = 0; i < n; i++) {
            racks[i] = (char)('a' + random() % racks_n);
            racks_used += !seen_rack[racks[i] - 'a'];
            seen_rack[racks[i] - 'a'] = true;
        }
        struct assign_args args = {cluster(n, racks),        n,
                                   round % 2 == 0,           round % 3 ? 0 : (int)(random() % 20),
                                   1 + (int)(random() % 50), 1 + (int)(random() % n),
                                   (int)(random() % n),      (int)(random() % n)};
        int32_t *got = assign_replicas(&args, &arena);
        int leads[12] = {0}, least = 1 << 20, most = 0;
        for (int p = 0; p < args.partitions; p++) {
            bool has[12] = {false}, rack[26] = {false};
            int distinct = 0;
            for (int j = 0; j < args.replication; j++) {
                int32_t id = got[p * args.replication + j];
                assert_false(has[id]);
                has[id] = true;
                distinct += !rack[racks[id] - 'a'];
                rack[racks[id] - 'a'] = true;
            }
            if (args.use_racks)
                assert_int_equal(distinct,
                                 args.replication < racks_used ? args.replication : racks_used);
            leads[got[p * args.replication]]++;
        }
        for (int i = 0; i < n; i++) {
            least = leads[i] < least ? leads[i] : least;
            most = leads[i] > most ? leads[i] : most;
        }
        assert_true(most - least <= 1);
        arena_reset(&arena);
    }
}

#define arena_test(f) cmocka_unit_test_setup_teardown(f, arena_begin, arena_end)

UNIT_MAIN(arena_test(without_racks_as_worked), arena_test(with_racks_as_worked),
          arena_test(with_uneven_racks_as_worked), arena_test(added_partitions_as_worked),
          arena_test(one_broker_takes_all), arena_test(racks_are_all_none_or_some),
          arena_test(any_cluster_keeps_the_promises))
