/* Reading by offset: every limit, against a plain model of what was appended. */
#include "log_util.h"

/* What was appended: batch i holds offsets [first[i], last[i]] and takes bytes[i]. */
struct model {
    int64_t first[4096], last[4096];
    uint32_t bytes[4096];
    int n;
};

static void append_modelled(struct log_test *t, struct model *m, int records, size_t value_n)
{
    struct append_info info;
    struct records r = records_of(records);
    r.value_n = value_n;
    r.timestamp = T0 + m->n;
    int64_t before = log_size(t->log);
    assert_int_equal(append_info(t, &r, &info), KERR_NONE);
    m->first[m->n] = info.first_offset;
    m->last[m->n] = info.last_offset;
    m->bytes[m->n++] = (uint32_t)(log_size(t->log) - before);
}

static int batch_of(const struct model *m, int64_t offset)
{
    for (int i = 0; i < m->n; i++)
        if (m->last[i] >= offset)
            return i;
    return -1;
}

/* Reads and compares with the model: the first batch, the length, where the segment ends it. */
static void read_like_the_model(struct log_test *t, const struct model *m, int64_t offset,
                                int64_t limit, uint32_t max, bool min_one, bool hard)
{
    struct log_slice s;
    assert_int_equal(log_read(t->log, offset, max, limit, min_one, hard, &s), KERR_NONE);
    int i = batch_of(m, offset);
    bool some = i >= 0 && offset < limit && m->last[i] < limit;
    if (!some) {
        assert_int_equal(s.len, 0);
        assert_null(s.file);
        assert_int_equal(s.first_offset, -1);
        assert_false(s.first_incomplete);
        return;
    }
    assert_int_equal(s.first_offset, m->first[i]);
    if (!hard && m->bytes[i] > max && !min_one) {
        assert_int_equal(s.len, 0);
        assert_null(s.file);
        assert_true(s.first_incomplete);
        return;
    }
    /* what could come at most: to the limit, or to the segment's end */
    struct segment_list *l = log_pin(t->log);
    int at = segment_list_floor(l, m->first[i]);
    int64_t next = at + 1 < l->n ? l->v[at + 1]->base : INT64_MAX;
    segment_list_unpin(l);
    uint64_t have = 0;
    for (int j = i; j < m->n && m->last[j] < limit && m->first[j] < next; j++)
        have += m->bytes[j];
    uint64_t want = !hard && m->bytes[i] > max ? m->bytes[i] : max;
    assert_int_equal(s.len, have < want ? have : want);
    if (s.len) {
        uint8_t head[ENTRY_PREFIX];
        assert_int_equal(file_pread(s.file, head, sizeof(head), s.pos), sizeof(head));
        assert_int_equal(get_be64(head), m->first[i]);
    }
    file_unref(s.file);
}

static void every_offset_and_limit_agree_with_a_model(void **state)
{
    struct log_test t;
    struct model *m = calloc(1, sizeof(*m));
    uint64_t random = 7;
    setup(&t);
    t.config.segment_bytes = 20000;
    t.config.index_interval_bytes = 1000;
    assert_int_equal(try_create(&t), 0);
    for (int i = 0; i < 120; i++)
        append_modelled(&t, m, 1 + (int)(test_random(&random) % 5), test_random(&random) % 1200);
    check(&t);
    int64_t end = log_end_offset(t.log);
    for (int clean = 0; clean < 2; clean++) {
        for (int64_t offset = 0; offset <= end; offset++)
            for (int k = 0; k < 4; k++) {
                int64_t limit =
                    k == 0 ? end : (int64_t)(test_random(&random) % (uint64_t)(end + 1));
                uint32_t max = (uint32_t)(test_random(&random) % 8000);
                read_like_the_model(&t, m, offset, limit, max, k & 1, false);
                read_like_the_model(&t, m, offset, limit, max, false, true);
            }
        read_like_the_model(&t, m, 0, end, UINT32_MAX, true, false);
        reopen_clean(&t);
    }
    free(m);
    teardown(&t);
}

static void out_of_range_is_said(void **state)
{
    struct log_test t;
    struct log_slice s;
    setup_log(&t);
    append_many(&t, 4, 5);
    log_set_high_watermark(t.log, 20);
    assert_int_equal(log_raise_start_offset(t.log, 7), KERR_NONE);
    assert_int_equal(log_read(t.log, 6, 100, 20, true, false, &s), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(log_read(t.log, 21, 100, 20, true, false, &s), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(log_read(t.log, -1, 100, 20, true, false, &s), KERR_OFFSET_OUT_OF_RANGE);
    /* at the end, and between the limit and the end: nothing, no error */
    assert_int_equal(log_read(t.log, 20, 100, 20, true, false, &s), KERR_NONE);
    assert_int_equal(s.len, 0);
    assert_int_equal(log_read(t.log, 15, 100, 10, true, false, &s), KERR_NONE);
    assert_int_equal(s.len, 0);
    /* inside a batch at the start: the whole batch comes */
    assert_int_equal(read_at(&t, 7, 1), 10);
    teardown(&t);
}

static void a_slice_survives_rolling_and_deleting(void **state)
{
    struct log_test t;
    struct log_slice s;
    uint8_t a[200], b[200];
    setup(&t);
    t.config.segment_bytes = 300;
    t.config.file_delete_delay_ms = 0;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 10, 1);
    log_set_high_watermark(t.log, 10);
    assert_int_equal(log_read(t.log, 0, 200, 10, true, false, &s), KERR_NONE);
    assert_true(s.len >= 70 && s.len <= 200);
    assert_int_equal(file_pread(s.file, a, s.len, s.pos), s.len);
    assert_int_equal(log_raise_start_offset(t.log, 9), KERR_NONE);
    assert_true(log_retention(t.log, T0) > 0);
    log_dir_remove_due(t.dir);
    assert_int_equal(size_of(&t, "00000000000000000000.log"), -ENOENT);
    assert_int_equal(size_of(&t, "00000000000000000000.log.deleted"), -ENOENT);
    assert_int_equal(file_pread(s.file, b, s.len, s.pos), s.len);
    assert_memory_equal(a, b, s.len);
    file_unref(s.file);
    check(&t);
    teardown(&t);
}

/* A log at rest has nothing open; reading opens only what it needs. */
static void files_are_opened_on_first_use(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 300;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 30, 1);
    int segments = log_segment_count(t.log);
    assert_true(segments > 8);
    reopen_clean(&t);
    for (int i = 0; i < segments; i++) {
        assert_null(atomic_load(&t.log->segments.now->v[i]->file));
        assert_null(atomic_load(&t.log->segments.now->v[i]->offsets.map));
        assert_null(atomic_load(&t.log->segments.now->v[i]->times.map));
    }
    assert_true(read_at(&t, 0, 100) > 0);
    assert_non_null(atomic_load(&t.log->segments.now->v[0]->file));
    assert_null(atomic_load(&t.log->segments.now->v[1]->file));
    teardown(&t);
}

static void bytes_between_is_near_the_truth(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 5000;
    t.config.index_interval_bytes = 500;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 200, 1);
    int64_t all = log_size(t.log), one = all / 200;
    assert_int_equal(log_bytes_between(t.log, 0, 200), all);
    assert_int_equal(log_bytes_between(t.log, 5, 5), 0);
    assert_int_equal(log_bytes_between(t.log, 9, 5), 0);
    for (int64_t from = 0; from < 200; from += 7)
        for (int64_t to = from; to <= 200; to += 13) {
            int64_t diff = log_bytes_between(t.log, from, to) - (to - from) * one;
            assert_true(diff > -1200 && diff < 1200);
        }
    teardown(&t);
}

/* ---- aborted transactions ---- */

static bool reported(const struct aborted_txn *v, int n, int64_t id, int64_t first)
{
    for (int i = 0; i < n; i++)
        if (v[i].producer_id == id && v[i].first_offset == first)
            return true;
    return false;
}

/* Random transactions of several producers over several segments: whoever reads a slice must be
 * told of every aborted transaction with a record in it. Telling too much is harmless. */
static void no_aborted_transaction_is_missed(void **state)
{
    struct {
        int64_t id, first, last;
        bool aborted;
    } done[500];
    struct {
        int64_t first;
        int32_t sequence;
    } open[8];
    struct log_test t;
    int done_n = 0, aborted_n = 0;
    uint64_t random = 3;
    setup(&t);
    t.config.segment_bytes = 3000;
    t.config.index_interval_bytes = 300;
    assert_int_equal(try_create(&t), 0);
    for (int i = 0; i < 8; i++) {
        open[i].first = -1;
        open[i].sequence = 0;
    }
    for (int i = 0; i < 600; i++) {
        int id = (int)(test_random(&random) % 8);
        if (open[id].first >= 0 && test_random(&random) % 4 == 0) {
            bool commit = test_random(&random) % 2;
            assert_int_equal(append_marker(&t, id, 0, commit, 0), KERR_NONE);
            done[done_n].id = id;
            done[done_n].first = open[id].first;
            done[done_n].last = log_end_offset(t.log) - 1;
            done[done_n++].aborted = !commit;
            aborted_n += !commit;
            open[id].first = -1;
        } else {
            struct records r = produced(id, 0, open[id].sequence, 2, true);
            if (open[id].first < 0)
                open[id].first = log_end_offset(t.log);
            assert_int_equal(append(&t, &r), KERR_NONE);
            open[id].sequence += 2;
        }
    }
    assert_true(aborted_n > 20 && log_segment_count(t.log) > 5);
    log_set_high_watermark(t.log, log_end_offset(t.log));
    check(&t);
    for (int clean = 0; clean < 2; clean++) {
        int64_t stable = log_last_stable_offset(t.log);
        for (int64_t at = 0; at < stable; at += 3) {
            struct log_slice s;
            struct aborted_txn *v;
            int n;
            uint32_t max = (uint32_t)(test_random(&random) % 1500);
            arena_reset(&t.arena);
            assert_int_equal(
                log_read_committed(t.log, at, max, stable, true, false, &t.arena, &s, &v, &n),
                KERR_NONE);
            assert_true(s.len > 0);
            uint8_t *p = malloc(s.len);
            assert_int_equal(file_pread(s.file, p, s.len, s.pos), s.len);
            int64_t upto = at;
            struct batch b;
            for (uint32_t o = 0; batch_decode(p + o, s.len - o, s.len - o, &b) == BATCH_OK;
                 o += b.size)
                upto = b.last_offset + 1;
            free(p);
            for (int i = 0; i < done_n; i++)
                if (done[i].aborted && done[i].last >= at && done[i].first < upto)
                    assert_true(reported(v, n, done[i].id, done[i].first));
            for (int i = 0; i < n; i++) { /* and nothing that never was */
                bool known = false;
                for (int j = 0; j < done_n; j++)
                    known |= done[j].aborted && done[j].id == v[i].producer_id &&
                             done[j].first == v[i].first_offset;
                assert_true(known);
            }
            file_unref(s.file);
        }
        reopen_clean(&t);
    }
    struct log_slice none;
    struct aborted_txn *v;
    int n;
    assert_int_equal(log_read_committed(t.log, 0, 100, 0, true, false, &t.arena, &none, &v, &n),
                     KERR_NONE);
    assert_int_equal(none.len, 0);
    assert_int_equal(n, 0);
    teardown(&t);
}

/* A damaged index of an old segment: reads go on, one line names it, the next start makes it anew.
 */
static void a_damaged_old_index_is_left_aside(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 3000;
    t.config.index_interval_bytes = 200;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 100, 1);
    assert_int_equal(log_close(t.log), 0);
    note_checkpoints(&t);
    drop_log(&t);
    int64_t n = size_of(&t, "00000000000000000000.index");
    assert_true(n >= 16);
    for (int64_t i = n - 4; i < n; i++)
        flip_byte(&t, "00000000000000000000.index", i); /* a position far behind the data */
    assert_int_equal(try_open(&t, true), 0);
    assert_int_equal(read_all(&t, 500) > 10, 1);
    assert_non_null(strstr(t.said, "00000000000000000000.index"));
    reopen_clean(&t);
    assert_int_equal(size_of(&t, "00000000000000000000.index"), n);
    check(&t);
    teardown(&t);
}

UNIT_MAIN(unit_test(every_offset_and_limit_agree_with_a_model), unit_test(out_of_range_is_said),
          unit_test(a_slice_survives_rolling_and_deleting),
          unit_test(files_are_opened_on_first_use), unit_test(bytes_between_is_near_the_truth),
          unit_test(no_aborted_transaction_is_missed), unit_test(a_damaged_old_index_is_left_aside))
