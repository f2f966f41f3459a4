/* What was counted for topics: as long as one of their partitions is here. */
#include "replica/topic_counts.h"

#include <pthread.h>

#include "unit.h"

static void partitions_of_a_topic_share_and_the_last_takes_it_along(void **state)
{
    struct hmap set;
    hmap_init(&set);
    struct topic_counts *a = topic_counts_enter(&set, STR_LIT("a"));
    struct topic_counts *b = topic_counts_enter(&set, STR_LIT("b"));
    struct topic_counts *again = topic_counts_enter(&set, STR_LIT("a"));
    assert_ptr_equal(a, again);
    assert_ptr_not_equal(a, b);
    assert_int_equal(set.n, 2);
    topic_counts_add(a, TOPIC_BYTES_IN, 7);
    topic_counts_leave(&set, a);
    topic_counts_unref(a); /* one partition is gone, and its object too */
    assert_int_equal(topic_counts_read(again, TOPIC_BYTES_IN), 7);
    assert_int_equal(set.n, 2);
    topic_counts_leave(&set, again); /* its object still is held: */
    assert_int_equal(set.n, 1);
    topic_counts_add(again, TOPIC_BYTES_IN, 1);
    topic_counts_unref(again);
    /* A topic of that name comes again: it begins at 0. */
    a = topic_counts_enter(&set, STR_LIT("a"));
    assert_int_equal(topic_counts_read(a, TOPIC_BYTES_IN), 0);
    assert_true(str_eqz(topic_counts_topic(a), "a"));
    topic_counts_leave(&set, a);
    topic_counts_unref(a);
    topic_counts_leave(&set, b);
    topic_counts_unref(b);
    topic_counts_leave(&set, NULL);
    topic_counts_unref(NULL);
    assert_int_equal(set.n, 0);
    hmap_free(&set);
}

enum { THREADS = METRICS_SLOTS + 4, ADDS = 1000 };

static void *add_many(void *arg)
{
    for (int i = 0; i < ADDS; i++)
        topic_counts_add(arg, TOPIC_MESSAGES_IN, 1);
    return NULL;
}

/* More of them than slots, so that some make the same block at once. */
static void threads_add_up(void **state)
{
    struct hmap set;
    pthread_t threads[THREADS];
    hmap_init(&set);
    struct topic_counts *c = topic_counts_enter(&set, STR_LIT("t"));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, c), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(topic_counts_read(c, TOPIC_MESSAGES_IN), THREADS * ADDS);
    assert_int_equal(topic_counts_read(c, TOPIC_BYTES_IN), 0);
    topic_counts_leave(&set, c);
    topic_counts_unref(c);
    hmap_free(&set);
}

UNIT_MAIN(unit_test(threads_add_up),
          unit_test(partitions_of_a_topic_share_and_the_last_takes_it_along))
