/* cleaner_util.h - what the tests of compaction share: a compacted log, records by key, one run of
 * the cleaner's work, and the log's records read back. */
#ifndef TESTS_CLEANER_UTIL_H
#define TESTS_CLEANER_UTIL_H

#include "log_util.h"

#include "log/cleaner_facts.h"
#include "log/cleaner_work.h"
#include "log/log_load.h"
#include "log/segment_recover.h"

struct clean_test {
    struct log_test t;
    struct cleaner_work work;
    struct cleaner_result result;
    int moves_left; /* of the work, then it is told to stop; -1: never */
};

UNUSED_FN static bool on_moved(void *arg, size_t n)
{
    struct clean_test *c = arg;
    (void)n;
    if (c->moves_left > 0)
        c->moves_left--;
    return c->moves_left != 0;
}

UNUSED_FN static void work_init(struct clean_test *c, size_t map_bytes, size_t buffer_bytes)
{
    assert_int_equal(cleaner_work_init(&c->work, map_bytes, 0.9, buffer_bytes), 0);
    c->work.moved = on_moved;
    c->work.arg = c;
    c->moves_left = -1;
}

/* A compacted log that is always dirty enough. */
UNUSED_FN static void setup_clean(struct clean_test *c)
{
    memset(c, 0, sizeof(*c));
    setup(&c->t);
    c->t.config.cleanup_policy = CLEANUP_COMPACT;
    c->t.config.min_cleanable_ratio = 0;
    c->t.config.delete_retention_ms = 1000;
    c->t.config.file_delete_delay_ms = 0;
    assert_int_equal(try_create(&c->t), 0);
    work_init(c, 1 << 16, 4096);
}

UNUSED_FN static void teardown_clean(struct clean_test *c)
{
    cleaner_work_free(&c->work);
    teardown(&c->t);
}

/* ---- writing ---- */

UNUSED_FN static struct bytes text(const char *s)
{
    return s ? (struct bytes){(const uint8_t *)s, (int32_t)strlen(s)} : BYTES_NULL;
}

struct kv {
    const char *key, *value; /* NULL = null */
    int64_t timestamp;       /* 0: T0 */
};

UNUSED_FN static struct buf build_kvs(const struct batch_options *o, int64_t first,
                                      const struct kv *v, int n)
{
    struct buf out = BUF_INIT;
    struct batch_builder *b = batch_builder_new(o);
    for (int i = 0; i < n; i++)
        assert_int_equal(batch_builder_add(b, first + i, v[i].timestamp ? v[i].timestamp : T0,
                                           text(v[i].key), text(v[i].value), NULL, 0),
                         0);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    batch_builder_free(b);
    return out;
}

/* Everything that is there is committed. */
UNUSED_FN static void commit_all(struct clean_test *c)
{
    log_set_high_watermark(c->t.log, log_end_offset(c->t.log));
}

UNUSED_FN static void put_kvs(struct clean_test *c, const struct batch_options *o,
                              enum append_origin origin, const struct kv *v, int n)
{
    struct append_info info;
    struct buf b = build_kvs(o, origin == APPEND_REPLICATION ? log_end_offset(c->t.log) : 0, v, n);
    assert_int_equal(append_bytes(&c->t, &b, 0, origin, &info), KERR_NONE);
    buf_free(&b);
    commit_all(c);
}

UNUSED_FN static void put_at(struct clean_test *c, const char *key, const char *value,
                             int64_t timestamp)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct kv v = {key, value, timestamp};
    put_kvs(c, &o, APPEND_CLIENT, &v, 1);
}

UNUSED_FN static void put(struct clean_test *c, const char *key, const char *value)
{
    put_at(c, key, value, T0);
}

/* n records of one producer; sequence -1: as a coordinator writes. */
UNUSED_FN static void put_produced(struct clean_test *c, int64_t id, int32_t sequence, bool txn,
                                   const struct kv *v, int n)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.producer_id = id;
    o.producer_epoch = 0;
    o.base_sequence = sequence;
    o.transactional = txn;
    put_kvs(c, &o, sequence < 0 ? APPEND_COORDINATOR : APPEND_CLIENT, v, n);
}

UNUSED_FN static void put_marker(struct clean_test *c, int64_t id, bool commit)
{
    assert_int_equal(append_marker(&c->t, id, 0, commit, 0), KERR_NONE);
    commit_all(c);
}

UNUSED_FN static void roll(struct clean_test *c)
{
    struct log *log = c->t.log;
    pthread_mutex_lock(&log->lock);
    assert_int_equal(log_roll(log, log_end_offset(log)), 0);
    pthread_mutex_unlock(&log->lock);
}

/* ---- compacting ---- */

UNUSED_FN static struct cleaner_choice look(struct clean_test *c)
{
    struct cleaner_choice ch;
    assert_int_equal(cleaner_choose_log(c->t.log, clock_wall_ms(&c->t.clock.clock), &ch), 0);
    return ch;
}

/* 0 or what cleaner_work_run gives. */
UNUSED_FN static int try_clean(struct clean_test *c)
{
    int cuts = log_cuts(c->t.log);
    struct cleaner_choice ch = look(c);
    assert_true(ch.eligible);
    int err = cleaner_work_run(&c->work, c->t.log, &ch, cuts, &c->result);
    if (!err)
        log_set_cleaned(c->t.log, c->result.end_offset, cuts);
    return err;
}

UNUSED_FN static void clean(struct clean_test *c)
{
    assert_int_equal(try_clean(c), 0);
    check(&c->t);
}

/* All from the start once more, as a log that has just become compacted. */
UNUSED_FN static void clean_again(struct clean_test *c)
{
    atomic_store(&c->t.log->cleaned_to, 0);
    clean(c);
}

/* ---- reading back ---- */

struct got_batch {
    struct batch b; /* without bytes */
    int64_t horizon;
    int first, n; /* of its records */
};
struct got_record {
    int64_t offset, timestamp;
    char key[40], value[40]; /* "-" for null */
};
struct got {
    struct got_batch *batches;
    struct got_record *records;
    int batches_n, records_n;
};

UNUSED_FN static void got_free(struct got *g)
{
    free(g->batches);
    free(g->records);
    *g = (struct got){0};
}

UNUSED_FN static void show(char out[40], struct bytes b)
{
    if (b.len < 0)
        strcpy(out, "-");
    else
        snprintf(out, 40, "%.*s", (int)b.len, (const char *)b.p);
}

UNUSED_FN static void got_add(struct got *g, const struct batch *b)
{
    struct record_iter *it;
    struct record r;
    int rc;
    assert_true(batch_crc_ok(b));
    g->batches = realloc(g->batches, (size_t)(g->batches_n + 1) * sizeof(*g->batches));
    g->batches[g->batches_n] =
        (struct got_batch){.b = *b, .horizon = cleaner_horizon(b), .first = g->records_n};
    assert_int_equal(record_iter_open(b, &it), 0);
    while ((rc = record_iter_next(it, &r)) == 1) {
        g->records = realloc(g->records, (size_t)(g->records_n + 1) * sizeof(*g->records));
        struct got_record *x = &g->records[g->records_n++];
        *x = (struct got_record){.offset = r.offset, .timestamp = r.timestamp};
        if (!batch_is_control(b)) {
            show(x->key, r.key);
            show(x->value, r.value);
        }
        g->batches[g->batches_n].n++;
    }
    assert_int_equal(rc, 0);
    record_iter_close(it);
    g->batches_n++;
}

/* All batches of the log, segment by segment. */
UNUSED_FN static struct got read_back(struct log_test *t)
{
    struct got g = {0};
    struct segment_list *l = log_pin(t->log);
    for (int i = 0; i < l->n; i++) {
        struct file *f;
        size_t size = (size_t)segment_size(l->v[i]);
        uint8_t *p = malloc(size + 1);
        assert_int_equal(segment_file(l->v[i], &f), 0);
        assert_int_equal(file_pread(f, p, size, 0), size);
        struct batch b;
        size_t at = 0;
        for (; at < size && batch_decode(p + at, size - at, size - at, &b) == BATCH_OK;
             at += b.size)
            got_add(&g, &b);
        assert_int_equal(at, size);
        file_unref(f);
        free(p);
    }
    segment_list_unpin(l);
    return g;
}

/* "offset:key=value ..." of all data records. */
UNUSED_FN static const char *contents(struct clean_test *c)
{
    static char out[16384];
    struct got g = read_back(&c->t);
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < g.records_n && at < sizeof(out) - 100; i++)
        if (g.records[i].key[0])
            at += (size_t)snprintf(out + at, sizeof(out) - at, "%s%" PRId64 ":%s=%s", at ? " " : "",
                                   g.records[i].offset, g.records[i].key, g.records[i].value);
    got_free(&g);
    return out;
}

#endif
