/* Random logs, compacted again and again, beside a plain model of what must be left.
 *
 * CLEANER_SEEDS sets how many seeds are run, CLEANER_SEED the only one; both tell which is at work.
 */
#include "cleaner_util.h"

#include <unistd.h>

enum { KEYS = 12, PRODUCERS = 3, RECORDS = 4000, RETENTION_MS = 1000 };

enum fate { PLAIN, OPEN, COMMITTED, ABORTED };

struct written {
    int key; /* -1: a marker */
    int producer;
    char value[24]; /* "-" for null */
    int64_t timestamp;
    enum fate fate;
    int64_t covered_ms; /* time of the first compaction that covered it; -1 */
};

struct model {
    struct clean_test c;
    uint64_t random;
    struct written v[RECORDS]; /* by offset */
    int64_t n;
    int32_t sequence[PRODUCERS], epoch;
    int64_t open_since[PRODUCERS]; /* -1: no transaction */
    bool small_map;                /* one compaction does not cover all that is dirty */
};

static uint64_t below(struct model *m, uint64_t n)
{
    return test_random(&m->random) % n;
}

/* ---- writing ---- */

static void write_batch(struct model *m)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct append_info info;
    int n = 1 + (int)below(m, 5), id = (int)below(m, PRODUCERS + 2);
    bool txn = id < PRODUCERS && (m->open_since[id] >= 0 || below(m, 2));
    o.codec = (enum codec)below(m, CODECS);
    if (id < PRODUCERS) {
        o.producer_id = 100 + id;
        o.producer_epoch = 0;
        o.base_sequence = m->sequence[id];
        o.transactional = txn;
        m->sequence[id] += n;
    }
    struct batch_builder *b = batch_builder_new(&o);
    for (int i = 0; i < n; i++) {
        struct written *w = &m->v[m->n + i];
        char key[16];
        *w = (struct written){.key = (int)below(m, KEYS),
                              .producer = id,
                              .timestamp =
                                  clock_wall_ms(&m->c.t.clock.clock) - (int64_t)below(m, 100),
                              .fate = txn ? OPEN : PLAIN,
                              .covered_ms = -1};
        snprintf(key, sizeof(key), "key%d", w->key);
        snprintf(w->value, sizeof(w->value), below(m, 4) ? "v%" PRId64 : "-", m->n + i);
        assert_int_equal(batch_builder_add(b, i, w->timestamp, text(key),
                                           w->value[0] == '-' ? BYTES_NULL : text(w->value), NULL,
                                           0),
                         0);
    }
    struct buf bytes = BUF_INIT;
    assert_int_equal(batch_builder_finish(b, &bytes), 0);
    batch_builder_free(b);
    assert_int_equal(append_bytes(&m->c.t, &bytes, m->epoch, APPEND_CLIENT, &info), KERR_NONE);
    assert_int_equal(info.first_offset, m->n);
    buf_free(&bytes);
    if (txn && m->open_since[id] < 0)
        m->open_since[id] = m->n;
    m->n += n;
}

static void write_marker(struct model *m)
{
    int id = (int)below(m, PRODUCERS);
    bool commit = below(m, 2);
    struct buf b = BUF_INIT;
    struct append_info info;
    if (m->open_since[id] < 0 && below(m, 4))
        return; /* an empty transaction now and then */
    assert_int_equal(
        batch_build_marker(commit, 0, clock_wall_ms(&m->c.t.clock.clock), 0, 100 + id, 0, 0, &b),
        0);
    assert_int_equal(append_bytes(&m->c.t, &b, m->epoch, APPEND_COORDINATOR, &info), KERR_NONE);
    buf_free(&b);
    for (int64_t i = m->open_since[id]; m->open_since[id] >= 0 && i < m->n; i++)
        if (m->v[i].producer == id && m->v[i].fate == OPEN)
            m->v[i].fate = commit ? COMMITTED : ABORTED;
    m->v[m->n++] = (struct written){.key = -1, .producer = id};
    m->open_since[id] = -1;
}

static void write_some(struct model *m)
{
    for (uint64_t i = 5 + below(m, 40); i > 0; i--) {
        uint64_t what = below(m, 10);
        if (what < 2)
            write_marker(m);
        else if (what == 2 && below(m, 3) == 0)
            assert_int_equal(log_begin_epoch(m->c.t.log, ++m->epoch), KERR_NONE);
        else
            write_batch(m);
    }
    commit_all(&m->c);
    if (below(m, 3))
        roll(&m->c);
}

/* ---- what must be left ---- */

static bool counts(const struct written *w)
{
    return w->key >= 0 && w->fate != ABORTED;
}

/* The newest record of the key below `upto`; -1 without one. */
static int64_t newest(const struct model *m, int key, int64_t upto)
{
    for (int64_t i = upto - 1; i >= 0; i--)
        if (m->v[i].key == key && counts(&m->v[i]))
            return i;
    return -1;
}

static void check_records(struct model *m, int64_t end)
{
    struct got g = read_back(&m->c.t);
    bool *there = calloc((size_t)m->n, 1);
    int64_t now = clock_wall_ms(&m->c.t.clock.clock);
    for (int i = 0; i < g.records_n; i++) {
        const struct got_record *r = &g.records[i];
        const struct written *w = &m->v[r->offset];
        char key[16];
        if (w->key < 0)
            continue;
        snprintf(key, sizeof(key), "key%d", w->key);
        assert_string_equal(r->key, key);
        assert_string_equal(r->value, w->value);
        assert_int_equal(r->timestamp, w->timestamp);
        assert_true(i == 0 || r->offset > g.records[i - 1].offset);
        there[r->offset] = true;
    }
    for (int64_t i = 0; i < m->n; i++) {
        const struct written *w = &m->v[i];
        if (!counts(w))
            continue;
        bool last = newest(m, w->key, end) == i, tombstone = w->value[0] == '-';
        bool must = i >= end || (last && (!tombstone || now < w->covered_ms + RETENTION_MS));
        /* the map may have ended in its batch: then its time began before it was covered */
        if (tombstone && m->small_map && i < end)
            must = false;
        bool must_not = i < end && (!last || (tombstone && now >= w->covered_ms + RETENTION_MS));
        if (must && !there[i])
            fail_msg("the record at %d is missing, end %d", (int)i, (int)end);
        if (must_not && there[i])
            fail_msg("the record at %d is still there, end %d", (int)i, (int)end);
    }
    free(there);
    got_free(&g);
}

/* What a read_committed consumer makes of the log: the last value of each key. */
struct view {
    int64_t at[KEYS]; /* offset of the value; -1: none, or a tombstone */
};

static bool aborted(const struct aborted_txn *v, int n, const struct batch *b)
{
    for (int i = 0; i < n; i++)
        if (v[i].producer_id == b->producer_id && v[i].first_offset <= b->base_offset)
            return true;
    return false;
}

/* An ABORT marker ends the producer's first transaction of the list. */
static void end_txn(struct aborted_txn *v, int *n, const struct batch *b)
{
    struct txn_marker marker;
    assert_int_equal(txn_marker_parse(b, &marker), 0);
    int first = -1;
    for (int i = 0; marker.valid && !marker.commit && i < *n; i++)
        if (v[i].producer_id == b->producer_id && v[i].first_offset <= b->base_offset &&
            (first < 0 || v[i].first_offset < v[first].first_offset))
            first = i;
    if (first >= 0)
        v[first] = v[--*n];
}

static void take_slice(const struct model *m, struct view *view, const uint8_t *p, uint32_t len,
                       struct aborted_txn *v, int n, int64_t *at)
{
    struct batch b;
    for (uint32_t pos = 0; batch_decode(p + pos, len - pos, len - pos, &b) == BATCH_OK;
         pos += b.size) {
        struct record_iter *it;
        struct record r;
        *at = b.last_offset + 1;
        if (batch_is_control(&b)) {
            end_txn(v, &n, &b);
            continue;
        }
        if (batch_is_transactional(&b) && aborted(v, n, &b))
            continue;
        assert_int_equal(record_iter_open(&b, &it), 0);
        while (record_iter_next(it, &r) == 1) {
            assert_int_not_equal(m->v[r.offset].fate, ABORTED);
            view->at[m->v[r.offset].key] = r.value.len < 0 ? -1 : r.offset;
        }
        record_iter_close(it);
    }
}

static void check_committed_view(struct model *m)
{
    struct view got, want;
    int64_t lso = log_last_stable_offset(m->c.t.log), at = 0;
    memset(&got, -1, sizeof(got));
    while (at < lso) {
        struct log_slice s;
        struct aborted_txn *v;
        int n;
        arena_reset(&m->c.t.arena);
        assert_int_equal(log_read_committed(m->c.t.log, at, 1 + (uint32_t)below(m, 3000), lso, true,
                                            false, &m->c.t.arena, &s, &v, &n),
                         KERR_NONE);
        if (!s.len)
            break; /* nothing is left up to there */
        uint8_t *p = malloc(s.len);
        assert_int_equal(file_pread(s.file, p, s.len, s.pos), s.len);
        take_slice(m, &got, p, s.len, v, n, &at);
        file_unref(s.file);
        free(p);
    }
    for (int k = 0; k < KEYS; k++) {
        int64_t last = newest(m, k, lso);
        want.at[k] = last < 0 || m->v[last].value[0] == '-' ? -1 : last;
        assert_int_equal(got.at[k], want.at[k]);
    }
}

/* What the batches alone tell of the producers. */
static void check_producers(struct model *m)
{
    struct log *log = m->c.t.log;
    struct producer_state rebuilt;
    struct segment_list *l = log_pin(log);
    producer_state_init(&rebuilt);
    for (int i = 0; i < l->n; i++)
        assert_int_equal(segment_replay_producers(l->v[i], 0, INT64_MAX, &rebuilt), 0);
    segment_list_unpin(l);
    hmap_each (node, &log->producers.by_id) {
        const struct producer *p = hmap_entry(node, struct producer, node), *q = NULL;
        if (p->batches_n == 0)
            continue;
        hmap_each (other, &rebuilt.by_id)
            if (hmap_entry(other, struct producer, node)->id == p->id)
                q = hmap_entry(other, struct producer, node);
        assert_non_null(q);
        assert_int_equal(q->epoch, p->epoch);
        assert_int_equal(q->batches[q->newest].last_sequence, p->batches[p->newest].last_sequence);
        assert_int_equal(q->batches[q->newest].last_offset, p->batches[p->newest].last_offset);
        /* where an open one began; of closed ones nothing is left open */
        assert_int_equal(q->txn_first_offset, p->txn_first_offset);
    }
    producer_state_free(&rebuilt);
}

static void compact(struct model *m)
{
    int64_t now = clock_wall_ms(&m->c.t.clock.clock);
    if (!look(&m->c).eligible)
        return;
    clean(&m->c);
    int64_t end = m->c.result.end_offset;
    for (int64_t i = 0; i < end; i++)
        if (m->v[i].covered_ms < 0)
            m->v[i].covered_ms = now;
    check_records(m, end);
    check_committed_view(m);
    check_producers(m);
    char before[16384];
    strcpy(before, contents(&m->c));
    if (!m->small_map) { /* all at once, so once more is the same */
        clean_again(&m->c);
        assert_string_equal(contents(&m->c), before);
        check_committed_view(m);
        check_producers(m);
    }
}

static void run(uint64_t seed)
{
    struct model *m = calloc(1, sizeof(*m));
    setup_clean(&m->c);
    m->random = seed;
    for (int i = 0; i < PRODUCERS; i++)
        m->open_since[i] = -1;
    if (seed % 4 == 0) {
        m->small_map = true;
        cleaner_work_free(&m->c.work);
        work_init(&m->c, 24 * (4 + below(m, 6)), 4096);
    }
    m->c.t.config.segment_bytes = 1000 + (int32_t)below(m, 5000);
    m->c.t.config.index_interval_bytes = (int32_t)below(m, 1000);
    log_set_config(m->c.t.log, &m->c.t.config);
    for (int round = 0; round < 12 && m->n < RECORDS - 400; round++) {
        write_some(m);
        if (below(m, 4))
            compact(m);
        sim_clock_advance(&m->c.t.clock, (int64_t)below(m, 800));
        int64_t cleaned_to = log_cleaned_to(m->c.t.log);
        if (below(m, 5) == 0) {
            reopen_clean(&m->c.t);
            commit_all(&m->c);
        } else if (below(m, 8) == 0) {
            m->c.t.recovery_point = 0;
            reopen_unclean(&m->c.t);
            commit_all(&m->c);
        }
        atomic_store(&m->c.t.log->cleaned_to, cleaned_to); /* the checkpoint file's */
        check_committed_view(m);
    }
    teardown_clean(&m->c);
    free(m);
}

static void matches_the_model(void **state)
{
    const char *seeds = getenv("CLEANER_SEEDS"), *one = getenv("CLEANER_SEED");
    for (int i = 0; i < (one ? 1 : seeds ? atoi(seeds) : 60); i++) {
        uint64_t seed = one ? strtoull(one, NULL, 0) : (uint64_t)i + 1;
        if (seeds || one)
            print_message("seed %" PRIu64 "\n", seed);
        run(seed);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {unit_test(matches_the_model)};
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
