/* Which batches and markers may go, along walks through a log. */
#include "unit.h"

#include "log/cleaner_txns.h"

/* A step of a walk: data or a marker of a producer at an offset; what must come out. */
struct step {
    enum { DATA, PLAIN, ABORT, COMMIT, UNKNOWN, EMPTIED, INDEX } what;
    int64_t producer, offset; /* INDEX: first offset */
    int64_t upto;             /* INDEX: the marker's */
    bool removable, entry;
};

static struct batch batch_of(const struct step *s)
{
    struct batch b = {.magic = 2,
                      .producer_id = s->producer,
                      .base_offset = s->offset,
                      .last_offset = s->offset,
                      .record_count = s->what == EMPTIED ? 0 : 1};
    if (s->what != PLAIN)
        b.attributes |= BATCH_TRANSACTIONAL;
    if (s->what >= ABORT)
        b.attributes |= BATCH_CONTROL;
    return b;
}

static void walk(const struct step *v, size_t n)
{
    struct cleaner_txns t;
    cleaner_txns_init(&t);
    for (size_t i = 0; i < n; i++) {
        const struct step *s = &v[i];
        struct batch b = batch_of(s);
        struct txn_marker m = {.valid = s->what == ABORT || s->what == COMMIT,
                               .commit = s->what == COMMIT};
        struct txn_entry e = {s->producer, s->offset, s->upto, s->upto + 1}, got = {0};
        bool removable = false, has = false;
        int err = 0;
        if (s->what == INDEX) {
            err = cleaner_txns_add(&t, &e);
            cleaner_txns_ready(&t);
        } else if (s->what <= PLAIN) {
            err = cleaner_txns_data(&t, &b, &removable);
        } else {
            err = cleaner_txns_marker(&t, &b, &m, &removable, &got, &has);
        }
        assert_int_equal(err, 0);
        if (s->what != INDEX && (removable != s->removable || has != s->entry))
            fail_msg("step %zu: removable %d, entry %d", i, removable, has);
        if (has)
            assert_int_equal(got.producer_id, s->producer);
    }
    cleaner_txns_free(&t);
}
#define WALK(...)                               \
    do {                                        \
        const struct step v_[] = {__VA_ARGS__}; \
        walk(v_, sizeof(v_) / sizeof(*v_));     \
    } while (0)

#define INDEXED(producer, first, marker)             \
    {                                                \
        INDEX, producer, first, marker, false, false \
    }
#define STAYS(what, producer, at)           \
    {                                       \
        what, producer, at, 0, false, false \
    }
#define GOES(what, producer, at)           \
    {                                      \
        what, producer, at, 0, true, false \
    }
#define ENTRY(what, producer, at)          \
    {                                      \
        what, producer, at, 0, false, true \
    }

static void committed_data_keeps_its_marker(void **state)
{
    WALK(STAYS(DATA, 7, 1), STAYS(DATA, 7, 2), STAYS(COMMIT, 7, 3), GOES(COMMIT, 7, 4));
}

static void aborted_data_goes_its_marker_stays_once(void **state)
{
    WALK(INDEXED(7, 1, 3), GOES(DATA, 7, 1), GOES(DATA, 7, 2), ENTRY(ABORT, 7, 3),
         STAYS(DATA, 7, 4), STAYS(COMMIT, 7, 5));
}

static void marker_without_data_is_removable(void **state)
{
    WALK(INDEXED(7, 1, 3), GOES(ABORT, 7, 3));
    WALK(GOES(ABORT, 7, 3));
    WALK(GOES(COMMIT, 7, 3));
}

static void producers_do_not_meet(void **state)
{
    WALK(INDEXED(7, 1, 9), STAYS(DATA, 8, 2), GOES(DATA, 7, 3), STAYS(DATA, 9, 4),
         STAYS(COMMIT, 8, 5), ENTRY(ABORT, 7, 9), STAYS(COMMIT, 9, 10));
}

static void only_transactional_data_counts(void **state)
{
    WALK(INDEXED(7, 5, 9), STAYS(PLAIN, 7, 3), STAYS(PLAIN, 7, 6), GOES(ABORT, 7, 9));
    WALK(STAYS(PLAIN, 7, 3), GOES(COMMIT, 7, 4));
}

static void one_transaction_after_the_other(void **state)
{
    WALK(INDEXED(7, 1, 2), INDEXED(7, 5, 6), GOES(DATA, 7, 1), ENTRY(ABORT, 7, 2),
         STAYS(DATA, 7, 3), STAYS(COMMIT, 7, 4), GOES(DATA, 7, 5), ENTRY(ABORT, 7, 6),
         STAYS(DATA, 7, 7), STAYS(COMMIT, 7, 8));
}

/* It lies in two segments, and each of them tells. */
static void telling_twice_does_no_harm(void **state)
{
    WALK(INDEXED(7, 1, 9), GOES(DATA, 7, 1), INDEXED(7, 1, 9), GOES(DATA, 7, 5), ENTRY(ABORT, 7, 9),
         STAYS(DATA, 7, 10), STAYS(COMMIT, 7, 11));
    WALK(INDEXED(7, 1, 9), INDEXED(7, 1, 9), GOES(ABORT, 7, 9), STAYS(DATA, 7, 10),
         STAYS(COMMIT, 7, 11));
}

static void index_in_any_order(void **state)
{
    WALK(INDEXED(9, 5, 7), INDEXED(8, 3, 8), INDEXED(7, 1, 9), GOES(DATA, 7, 1), GOES(DATA, 8, 3),
         GOES(DATA, 9, 5), ENTRY(ABORT, 9, 7), ENTRY(ABORT, 8, 8), ENTRY(ABORT, 7, 9));
}

/* The index has lost it: rather keep the marker, which says how the data ended. */
static void marker_stays_with_data_the_index_does_not_know(void **state)
{
    WALK(STAYS(DATA, 7, 1), STAYS(ABORT, 7, 2));
}

static void unknown_and_emptied_markers(void **state)
{
    WALK(STAYS(DATA, 7, 1), STAYS(UNKNOWN, 7, 2), GOES(EMPTIED, 7, 3), STAYS(COMMIT, 7, 4));
}

UNIT_MAIN(unit_test(committed_data_keeps_its_marker),
          unit_test(aborted_data_goes_its_marker_stays_once),
          unit_test(marker_without_data_is_removable), unit_test(producers_do_not_meet),
          unit_test(only_transactional_data_counts), unit_test(one_transaction_after_the_other),
          unit_test(telling_twice_does_no_harm), unit_test(index_in_any_order),
          unit_test(marker_stays_with_data_the_index_does_not_know),
          unit_test(unknown_and_emptied_markers))
