/* Compaction of one log: what stays, what goes, and how it looks on disk. */
#include "cleaner_util.h"

static void keeps_newest_value_of_each_key(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    put(&c, "a", "1");
    put(&c, "b", "1");
    put(&c, "a", "2");
    roll(&c);
    put(&c, "c", "1");
    put(&c, "b", "2");
    roll(&c);
    put(&c, "a", "9"); /* in the active segment: not looked at */
    clean(&c);
    assert_string_equal(contents(&c), "2:a=2 3:c=1 4:b=2 5:a=9");
    assert_int_equal(c.result.end_offset, 5);
    assert_int_equal(log_cleaned_to(c.t.log), 5);
    assert_int_equal(log_segment_count(c.t.log), 2); /* both became one */
    assert_int_equal(read_all(&c.t, 1 << 20), 2);
    assert_false(look(&c).eligible);
    teardown_clean(&c);
}

static void drops_records_inside_batches(void **state)
{
    static const enum codec codecs[] = {CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4,
                                        CODEC_ZSTD};
    for (size_t i = 0; i < sizeof(codecs) / sizeof(*codecs); i++) {
        struct clean_test c;
        struct batch_options o = BATCH_OPTIONS_DEFAULT;
        const struct kv v[] = {
            {"a", "1", T0 + 5}, {"b", "1", T0 + 9}, {"c", "1", T0 + 2}, {"a", "2", T0 + 3}};
        setup_clean(&c);
        o.codec = codecs[i];
        put_kvs(&c, &o, APPEND_CLIENT, v, 4);
        put(&c, "b", "2");
        roll(&c);
        clean(&c);
        assert_string_equal(contents(&c), "2:c=1 3:a=2 4:b=2");
        struct got g = read_back(&c.t);
        assert_int_equal(g.batches_n, 2);
        const struct batch *b = &g.batches[0].b;
        assert_int_equal(b->codec, codecs[i]);
        assert_int_equal(b->base_offset, 0); /* the range it had */
        assert_int_equal(b->last_offset, 3);
        assert_int_equal(b->record_count, 2);
        assert_int_equal(b->base_timestamp, T0 + 2); /* of the first one kept */
        assert_int_equal(b->max_timestamp, T0 + 3);  /* of those kept */
        assert_int_equal(b->leader_epoch, 0);
        assert_int_equal(g.records[0].timestamp, T0 + 2);
        assert_int_equal(g.records[1].timestamp, T0 + 3);
        got_free(&g);
        teardown_clean(&c);
    }
}

/* What nothing is taken from stays byte for byte. */
static void copies_whole_batches_as_they_are(void **state)
{
    struct clean_test c;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    const struct kv v[] = {{"a", "1", 0}, {"b", "1", 0}};
    uint8_t before[200], after[200];
    setup_clean(&c);
    o.codec = CODEC_GZIP;
    put_kvs(&c, &o, APPEND_CLIENT, v, 2);
    int64_t n = size_of(&c.t, "00000000000000000000.log");
    struct file *f;
    assert_int_equal(segment_file(c.t.log->segments.now->v[0], &f), 0);
    assert_int_equal(file_pread(f, before, (size_t)n, 0), n);
    file_unref(f);
    put(&c, "c", "1");
    put(&c, "c", "2");
    roll(&c);
    clean(&c);
    assert_int_equal(segment_file(c.t.log->segments.now->v[0], &f), 0);
    assert_int_equal(file_pread(f, after, (size_t)n, 0), n);
    file_unref(f);
    assert_memory_equal(before, after, (size_t)n);
    assert_string_equal(contents(&c), "0:a=1 1:b=1 3:c=2");
    teardown_clean(&c);
}

static void keeps_headers_and_append_time(void **state)
{
    struct clean_test c;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct record_header h = {{"h", 1}, text("x")};
    struct buf bytes = BUF_INIT;
    setup_clean(&c);
    c.t.config.log_append_time = true;
    log_set_config(c.t.log, &c.t.config);
    struct batch_builder *b = batch_builder_new(&o);
    batch_builder_add(b, 0, T0 - 7, text("a"), text("1"), NULL, 0);
    batch_builder_add(b, 1, T0 - 8, text("b"), text("1"), &h, 1);
    assert_int_equal(batch_builder_finish(b, &bytes), 0);
    batch_builder_free(b);
    struct append_info info;
    assert_int_equal(append_bytes(&c.t, &bytes, 0, APPEND_CLIENT, &info), KERR_NONE);
    buf_free(&bytes);
    put(&c, "a", "2");
    roll(&c);
    clean(&c);
    struct got g = read_back(&c.t);
    assert_true(g.batches[0].b.attributes & BATCH_LOG_APPEND_TIME);
    assert_int_equal(g.batches[0].b.max_timestamp, T0);
    assert_int_equal(g.records[0].timestamp, T0);
    assert_int_equal(g.records[0].offset, 1);
    got_free(&g);

    uint8_t raw[400];
    struct file *f;
    struct batch head;
    struct record_iter *it;
    struct record r;
    size_t n = (size_t)segment_size(c.t.log->segments.now->v[0]);
    assert_int_equal(segment_file(c.t.log->segments.now->v[0], &f), 0);
    assert_int_equal(file_pread(f, raw, n, 0), n);
    file_unref(f);
    assert_int_equal(batch_decode(raw, n, n, &head), BATCH_OK);
    assert_int_equal(record_iter_open(&head, &it), 0);
    assert_int_equal(record_iter_next(it, &r), 1);
    struct reader at = reader_of(r.headers.p, (size_t)r.headers.len);
    struct record_header got;
    assert_true(record_header_next(&at, &got));
    assert_memory_equal(got.key.p, "h", 1);
    assert_memory_equal(got.value.p, "x", 1);
    record_iter_close(it);
    teardown_clean(&c);
}

/* ---- tombstones ---- */

static void tombstone_goes_behind_its_horizon(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    put(&c, "a", "1");
    put_at(&c, "a", NULL, T0 + 3);
    put(&c, "z", "1");
    roll(&c);
    clean(&c); /* stamps it */
    assert_string_equal(contents(&c), "1:a=- 2:z=1");
    struct got g = read_back(&c.t);
    assert_int_equal(g.batches[0].horizon, T0 + 1000);
    assert_int_equal(g.records[0].timestamp, T0 + 3);
    assert_int_equal(g.batches[0].b.max_timestamp, T0 + 3);
    got_free(&g);

    sim_clock_advance(&c.t.clock, 999);
    clean_again(&c); /* its time is not over, and does not begin anew */
    g = read_back(&c.t);
    assert_int_equal(g.batches[0].horizon, T0 + 1000);
    assert_int_equal(g.records[0].timestamp, T0 + 3);
    got_free(&g);

    sim_clock_advance(&c.t.clock, 1);
    clean_again(&c);
    assert_string_equal(contents(&c), "2:z=1");
    teardown_clean(&c);
}

/* The horizon of a batch is the first tombstone's; what is dropped from it later keeps it. */
static void horizon_stays_when_the_batch_shrinks(void **state)
{
    struct clean_test c;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    const struct kv v[] = {{"a", NULL, T0 + 1}, {"b", "1", T0 + 2}};
    setup_clean(&c);
    put_kvs(&c, &o, APPEND_CLIENT, v, 2);
    roll(&c);
    clean(&c);
    sim_clock_advance(&c.t.clock, 500);
    put(&c, "b", "2");
    roll(&c);
    clean(&c);
    struct got g = read_back(&c.t);
    assert_int_equal(g.batches[0].horizon, T0 + 1000);
    assert_int_equal(g.batches[0].n, 1);
    assert_int_equal(g.records[0].timestamp, T0 + 1);
    got_free(&g);
    teardown_clean(&c);
}

static void tombstone_of_an_old_key_hides_it_at_once(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    put(&c, "a", "1");
    roll(&c);
    clean(&c);
    put(&c, "a", NULL);
    roll(&c);
    clean(&c);
    assert_string_equal(contents(&c), "1:a=-");
    teardown_clean(&c);
}

/* ---- keys ---- */

static void drops_records_without_key(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    c.t.config.cleanup_policy = CLEANUP_DELETE; /* what they stem from */
    log_set_config(c.t.log, &c.t.config);
    put(&c, NULL, "1");
    put(&c, "", "1");
    put(&c, "", "2");
    roll(&c);
    c.t.config.cleanup_policy = CLEANUP_COMPACT;
    log_set_config(c.t.log, &c.t.config);
    clean(&c);
    assert_string_equal(contents(&c), "");
    struct got g = read_back(&c.t);
    assert_int_equal(g.records_n, 1); /* the empty key is one */
    assert_int_equal(g.records[0].offset, 2);
    got_free(&g);
    assert_int_equal(c.result.keyless, 1);
    teardown_clean(&c);
}

/* ---- old formats ---- */

static void put_old(struct clean_test *c, int8_t magic, enum codec codec, const struct kv *v, int n)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.magic = magic;
    o.codec = codec;
    put_kvs(c, &o, APPEND_REPLICATION, v, n);
}

static void compacts_old_message_sets(void **state)
{
    static const enum codec codecs[] = {CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4};
    for (int8_t magic = 0; magic < 2; magic++)
        for (size_t i = 0; i < sizeof(codecs) / sizeof(*codecs); i++) {
            struct clean_test c;
            const struct kv v[] = {
                {"a", "1", T0 + 5}, {"b", "1", T0 + 6}, {"a", "2", T0 + 7}, {"c", "1", T0 + 1}};
            const struct kv w[] = {{"c", "2", T0 + 8}};
            setup_clean(&c);
            put_old(&c, magic, codecs[i], v, 4);
            put_old(&c, magic, codecs[i], w, 1);
            roll(&c);
            clean(&c);
            assert_string_equal(contents(&c), "1:b=1 2:a=2 4:c=2");
            struct got g = read_back(&c.t);
            assert_int_equal(g.batches[0].b.magic, magic);
            assert_int_equal(g.batches[0].b.codec, codecs[i]);
            if (magic == 1)
                assert_int_equal(g.records[1].timestamp, T0 + 7);
            if (codecs[i] != CODEC_NONE)
                assert_int_equal(g.batches[0].b.last_offset, 2); /* of the last one kept */
            got_free(&g);
            teardown_clean(&c);
        }
}

/* They have no horizon: the age of the file decides, beside that of the newest clean one. */
static void old_tombstones_go_by_the_age_of_their_file(void **state)
{
    struct clean_test c;
    const struct kv v[] = {{"a", NULL, T0}};
    const struct kv w[] = {{"b", "1", T0}};
    setup_clean(&c);
    c.t.config.segment_bytes = 60; /* two messages do not become one segment */
    log_set_config(c.t.log, &c.t.config);
    put_old(&c, 1, CODEC_NONE, v, 1);
    roll(&c);
    assert_int_equal(segment_set_mtime(c.t.log->segments.now->v[0], T0 - 5000), 0);
    put_old(&c, 1, CODEC_NONE, w, 1);
    roll(&c);
    assert_int_equal(segment_set_mtime(c.t.log->segments.now->v[1], T0 - 4001), 0);
    clean(&c); /* nothing is clean yet */
    put_old(&c, 1, CODEC_NONE, w, 1);
    roll(&c);
    assert_string_equal(contents(&c), "0:a=- 1:b=1 2:b=1");
    clean(&c); /* 999 ms older than the newest clean file */
    assert_string_equal(contents(&c), "0:a=- 2:b=1");
    assert_int_equal(segment_set_mtime(c.t.log->segments.now->v[0], T0 - 5001), 0);
    assert_int_equal(segment_set_mtime(c.t.log->segments.now->v[2], T0 - 4001), 0);
    put_old(&c, 1, CODEC_NONE, w, 1);
    roll(&c);
    clean(&c);
    assert_string_equal(contents(&c), "3:b=1");
    teardown_clean(&c);
}

/* ---- producers ---- */

static const struct kv a1 = {"a", "1", 0}, b1 = {"b", "1", 0};

static void last_batch_of_a_producer_leaves_its_head(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    put_produced(&c, 7, 0, false, &a1, 1);
    put_produced(&c, 7, 1, false, &a1, 1);
    put(&c, "a", "2");
    roll(&c);
    clean(&c);
    struct got g = read_back(&c.t);
    assert_int_equal(g.batches_n, 2); /* the one at 0 is gone */
    const struct batch *b = &g.batches[0].b;
    assert_int_equal(b->base_offset, 1);
    assert_int_equal(b->size, BATCH_HEAD);
    assert_int_equal(b->record_count, 0);
    assert_int_equal(b->producer_id, 7);
    assert_int_equal(b->base_sequence, 1);
    assert_int_equal(b->base_timestamp, -1);
    assert_int_equal(b->max_timestamp, T0);
    got_free(&g);

    clean_again(&c); /* still the last one */
    assert_int_equal(c.result.bytes_before, c.result.bytes_after);
    reopen_clean(&c.t); /* and it is what the sequence is known from */
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct append_info info;
    o.producer_id = 7;
    o.producer_epoch = 0;
    o.base_sequence = 5; /* does not follow */
    struct buf bytes = build_kvs(&o, 0, &a1, 1);
    assert_int_equal(append_bytes(&c.t, &bytes, 0, APPEND_CLIENT, &info),
                     KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    buf_free(&bytes);
    put_produced(&c, 7, 2, false, &b1, 1);
    roll(&c);
    clean(&c); /* now there is a later one */
    g = read_back(&c.t);
    assert_int_equal(g.batches[0].b.base_offset, 2);
    got_free(&g);
    teardown_clean(&c);
}

/* Commits inside transactions have no sequence: which batch is the last goes by its offset. */
static void batches_without_sequence_do_not_pile_up(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    for (int i = 0; i < 50; i++) {
        put_produced(&c, 7, -1, true, &a1, 1);
        put_marker(&c, 7, true);
        if (i % 10 == 9)
            roll(&c);
    }
    clean(&c);
    sim_clock_advance(&c.t.clock, 1000);
    clean_again(&c); /* stamps the markers */
    sim_clock_advance(&c.t.clock, 1000);
    clean_again(&c);
    assert_string_equal(contents(&c), "98:a=1");
    struct got g = read_back(&c.t);
    assert_int_equal(g.batches_n, 2); /* and its marker */
    got_free(&g);
    teardown_clean(&c);
}

/* ---- transactions ---- */

static int txn_entries(struct clean_test *c)
{
    int n = 0;
    struct segment_list *l = log_pin(c->t.log);
    for (int i = 0; i < l->n; i++)
        n += atomic_load(&l->v[i]->txns.n);
    segment_list_unpin(l);
    return n;
}

static void aborted_data_goes_and_its_marker_later(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    put(&c, "a", "0");
    put_produced(&c, 7, 0, true, &a1, 1);
    put_marker(&c, 7, false);
    put_produced(&c, 7, 1, true, &b1, 1); /* so that the aborted batch is not the last */
    put_marker(&c, 7, true);
    roll(&c);
    clean(&c);
    assert_string_equal(contents(&c), "0:a=0 3:b=1"); /* the aborted value replaces nothing */
    struct got g = read_back(&c.t);
    assert_int_equal(g.batches_n, 4);
    assert_int_equal(g.batches[1].b.base_offset, 2);
    assert_int_equal(g.batches[1].horizon, -1); /* its data was still there when it was met */
    assert_int_equal(g.batches[3].horizon, -1);
    got_free(&g);
    assert_int_equal(txn_entries(&c), 1);

    clean_again(&c);
    g = read_back(&c.t);
    assert_int_equal(g.batches[1].b.base_offset, 2);
    assert_int_equal(g.batches[1].horizon, T0 + 1000);
    assert_int_equal(g.batches[1].n, 1);
    got_free(&g);
    assert_int_equal(txn_entries(&c), 0);

    sim_clock_advance(&c.t.clock, 1000);
    clean_again(&c);
    g = read_back(&c.t);
    assert_int_equal(g.batches_n, 3);
    assert_int_equal(g.batches[1].b.base_offset, 3);
    assert_int_equal(g.batches[2].horizon, -1); /* data of a committed one is there */
    got_free(&g);
    teardown_clean(&c);
}

/* The head that is left of aborted data is data still: its marker stays and says how it ended. */
static void marker_stays_with_the_head_of_its_data(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    put_produced(&c, 7, 0, true, &a1, 1);
    put_marker(&c, 7, false);
    put(&c, "z", "1");
    roll(&c);
    for (int i = 0; i < 3; i++) {
        clean_again(&c);
        sim_clock_advance(&c.t.clock, 2000);
        struct got g = read_back(&c.t);
        assert_int_equal(g.batches_n, 3);
        assert_int_equal(g.batches[0].b.record_count, 0);
        assert_int_equal(g.batches[0].b.base_sequence, 0);
        assert_true(batch_is_control(&g.batches[1].b));
        assert_int_equal(g.batches[1].n, 1);
        assert_int_equal(g.batches[1].horizon, -1);
        got_free(&g);
        assert_int_equal(txn_entries(&c), 1);
    }
    teardown_clean(&c);
}

/* A producer that is known by markers only keeps the last epoch's. */
static void marker_alone_leaves_its_head(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    for (int i = 0; i < 100; i++)
        put_marker(&c, 7, i % 2); /* empty transactions */
    assert_int_equal(log_last_stable_offset(c.t.log), 100);
    put(&c, "z", "1");
    roll(&c);
    clean(&c);
    struct got g = read_back(&c.t);
    assert_int_equal(g.batches_n, 101);
    assert_int_equal(g.batches[0].horizon, T0 + 1000);
    got_free(&g);
    assert_int_equal(txn_entries(&c), 0);
    sim_clock_advance(&c.t.clock, 1000);
    clean_again(&c);
    g = read_back(&c.t);
    for (int i = 0; i < g.batches_n - 1; i++) {
        assert_true(batch_is_control(&g.batches[i].b));
        assert_int_equal(g.batches[i].b.record_count, 0);
        assert_int_equal(g.batches[i].horizon, -1);
    }
    got_free(&g);
    reopen_clean(&c.t); /* such batches load */
    c.t.recovery_point = 0;
    drop_log(&c.t);
    assert_int_equal(try_open(&c.t, false), 0);
    assert_int_equal(log_end_offset(c.t.log), 101);
    commit_all(&c);
    assert_int_equal(log_last_stable_offset(c.t.log), 101);
    check(&c.t);
    teardown_clean(&c);
}

static void open_transaction_holds_compaction_back(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    put(&c, "a", "0");
    roll(&c);
    put_produced(&c, 7, 0, true, &a1, 1);
    roll(&c);
    put(&c, "a", "2");
    roll(&c);
    assert_int_equal(log_last_stable_offset(c.t.log), 1);
    struct cleaner_choice ch = look(&c);
    assert_int_equal(ch.first_uncleanable, 1);
    assert_int_equal(ch.upto, 1);
    clean(&c);
    assert_string_equal(contents(&c), "0:a=0 1:a=1 2:a=2");
    teardown_clean(&c);
}

/* A transaction over several segments, of which the first go into other groups. */
static void transactions_span_groups(void **state)
{
    struct clean_test c;
    const struct kv big[] = {{"x", "0123456789012345678901234567890123456789", 0}};
    setup_clean(&c);
    c.t.config.segment_bytes = 250;
    log_set_config(c.t.log, &c.t.config);
    put(&c, "x", "0");
    for (int i = 0; i < 6; i++)
        put_produced(&c, 7, i, true, big, 1);
    put_marker(&c, 7, false);
    put_produced(&c, 7, 6, false, &b1, 1);
    roll(&c);
    assert_true(log_segment_count(c.t.log) > 4);
    clean(&c);
    assert_string_equal(contents(&c), "0:x=0 8:b=1");
    assert_int_equal(txn_entries(&c), 1);
    clean_again(&c);
    assert_int_equal(txn_entries(&c), 0);
    teardown_clean(&c);
}

/* Pass 1 begins in the middle of a segment, behind the end of an aborted transaction: what its
 * producer wrote later is not part of it. */
static void an_aborted_transaction_ends_in_front_of_the_dirty_part(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    c.t.config.index_interval_bytes = 0; /* so that the walk begins at the very batch */
    log_set_config(c.t.log, &c.t.config);
    put_produced(&c, 7, 0, true, &a1, 1);
    put_marker(&c, 7, false);
    put(&c, "b", "0");
    put(&c, "x", "1");
    put_produced(&c, 7, 1, true, &b1, 1);
    put_marker(&c, 7, true);
    put_produced(&c, 7, 2, true, &a1, 1);
    put_marker(&c, 7, true);
    roll(&c);
    atomic_store(&c.t.log->cleaned_to, 3);
    clean(&c);
    assert_string_equal(contents(&c), "3:x=1 4:b=1 6:a=1");
    teardown_clean(&c);
}

/* ---- the map ---- */

/* A full map ends pass 1: the rest is left for next time, and not a record of it is touched. */
static void goes_on_where_a_full_map_ended(void **state)
{
    struct clean_test c;
    char key[16];
    setup_clean(&c);
    cleaner_work_free(&c.work);
    work_init(&c, 24 * 10, 4096); /* 9 keys */
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof(key), "k%d", i % 20);
        put(&c, key, "v");
    }
    roll(&c);
    int64_t ends[10];
    int n = 0;
    while (look(&c).eligible) {
        clean(&c);
        ends[n++] = c.result.end_offset;
        struct got g = read_back(&c.t);
        int at_and_above = 0;
        for (int i = 0; i < g.records_n; i++)
            at_and_above += g.records[i].offset >= c.result.end_offset;
        assert_int_equal(at_and_above, 40 - c.result.end_offset);
        got_free(&g);
    }
    assert_int_equal(n, 5);
    assert_int_equal(ends[0], 9);
    assert_int_equal(ends[4], 40);
    struct got g = read_back(&c.t);
    assert_int_equal(g.records_n, 20);
    for (int i = 0; i < 20; i++)
        assert_int_equal(g.records[i].offset, 20 + i);
    got_free(&g);
    teardown_clean(&c);
}

static void full_map_may_end_inside_a_batch(void **state)
{
    struct clean_test c;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    const struct kv v[] = {{"a", "1", 0}, {"a", "2", 0}, {"b", "1", 0}, {"c", "1", 0},
                           {"d", "1", 0}, {"a", "3", 0}, {"b", NULL, 0}};
    setup_clean(&c);
    cleaner_work_free(&c.work);
    work_init(&c, 24 * 4, 4096); /* 3 keys */
    put_kvs(&c, &o, APPEND_CLIENT, v, 7);
    roll(&c);
    clean(&c);
    assert_int_equal(c.result.end_offset, 4);
    assert_string_equal(contents(&c), "1:a=2 2:b=1 3:c=1 4:d=1 5:a=3 6:b=-");
    clean(&c);
    assert_int_equal(c.result.end_offset, 7);
    assert_string_equal(contents(&c), "3:c=1 4:d=1 5:a=3 6:b=-");
    teardown_clean(&c);
}

/* ---- segments ---- */

static void groups_by_size_and_keeps_empty_ones(void **state)
{
    struct clean_test c;
    char value[1000];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    setup_clean(&c);
    c.t.config.segment_bytes = 2300; /* two batches */
    log_set_config(c.t.log, &c.t.config);
    for (int i = 0; i < 12; i++)
        put(&c, "a", value);
    roll(&c);
    assert_int_equal(log_segment_count(c.t.log), 7);
    clean(&c);
    assert_int_equal(log_segment_count(c.t.log), 7); /* full ones do not merge before they shrink */
    assert_int_equal(segment_size(c.t.log->segments.now->v[0]), 0);
    assert_int_equal(size_of(&c.t, "00000000000000000000.log"), 0);
    assert_int_equal(size_of(&c.t, "00000000000000000000.index"), 0);
    assert_int_equal(read_at(&c.t, 0, 1 << 20), 12);
    reopen_clean(&c.t);
    commit_all(&c);
    check(&c.t);
    clean_again(&c);
    assert_int_equal(log_segment_count(c.t.log), 2);
    assert_int_equal(c.t.log->segments.now->v[0]->base, 0);
    reopen_clean(&c.t);
    assert_int_equal(read_at(&c.t, 0, 1 << 20), 12);
    check(&c.t);
    teardown_clean(&c);
}

static void takes_over_the_time_of_the_last_segment(void **state)
{
    struct clean_test c;
    int64_t ms;
    setup_clean(&c);
    put(&c, "a", "1");
    roll(&c);
    put(&c, "a", "2");
    roll(&c);
    assert_int_equal(segment_set_mtime(c.t.log->segments.now->v[0], T0 - 200), 0);
    assert_int_equal(segment_set_mtime(c.t.log->segments.now->v[1], T0 - 100), 0);
    clean(&c);
    assert_int_equal(segment_mtime(c.t.log->segments.now->v[0], &ms), 0);
    assert_int_equal(ms, T0 - 100);
    teardown_clean(&c);
}

static void snapshots_go_with_their_segments(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    put(&c, "a", "1");
    roll(&c);
    put(&c, "a", "2");
    roll(&c);
    assert_true(size_of(&c.t, "00000000000000000001.snapshot") > 0);
    clean(&c);
    assert_int_equal(size_of(&c.t, "00000000000000000001.snapshot"), -ENOENT);
    assert_true(size_of(&c.t, "00000000000000000002.snapshot") > 0);
    assert_true(size_of(&c.t, "00000000000000000001.log.deleted") > 0);
    log_dir_remove_due(c.t.dir);
    assert_int_equal(size_of(&c.t, "00000000000000000001.log.deleted"), -ENOENT);
    assert_int_equal(size_of(&c.t, "00000000000000000000.log.deleted"), -ENOENT);
    assert_true(size_of(&c.t, "00000000000000000000.log") > 0);
    assert_false(log_dir_offline(c.t.dir));
    teardown_clean(&c);
}

/* Readers of the old segments go on; what they hold is what it was. */
static void slices_outlive_the_exchange(void **state)
{
    struct clean_test c;
    struct log_slice s;
    uint8_t before[500], after[500];
    setup_clean(&c);
    put(&c, "a", "1");
    put(&c, "a", "2");
    roll(&c);
    assert_int_equal(log_read(c.t.log, 0, 500, 2, true, false, &s), KERR_NONE);
    assert_int_equal(file_pread(s.file, before, s.len, s.pos), s.len);
    clean(&c);
    log_dir_remove_due(c.t.dir);
    assert_int_equal(file_pread(s.file, after, s.len, s.pos), s.len);
    assert_memory_equal(before, after, s.len);
    file_unref(s.file);
    teardown_clean(&c);
}

/* Batches of a million bytes and buffers of 4096. */
static void buffer_grows_to_the_batch(void **state)
{
    struct clean_test c;
    char *value = malloc(1000001);
    memset(value, 'v', 1000000);
    value[1000000] = 0;
    setup_clean(&c);
    put(&c, "a", "1");
    put(&c, "b", value);
    put(&c, "a", "2");
    put(&c, "c", value);
    roll(&c);
    put(&c, "b", "2");
    roll(&c);
    clean(&c);
    struct got g = read_back(&c.t);
    assert_int_equal(g.records_n, 3);
    assert_int_equal(g.batches[1].b.size > 1000000, true);
    got_free(&g);
    assert_int_equal(c.work.in.cap, 4096); /* and shrinks again */
    free(value);
    teardown_clean(&c);
}

static void cleaning_twice_changes_nothing(void **state)
{
    struct clean_test c;
    char first[16384];
    setup_clean(&c);
    for (int i = 0; i < 30; i++) {
        char key[8];
        snprintf(key, sizeof(key), "k%d", i % 7);
        put_produced(&c, 5 + i % 3, i / 3, false, &(struct kv){key, i % 5 ? "v" : NULL, T0 + i}, 1);
        if (i % 8 == 7)
            roll(&c);
    }
    roll(&c);
    clean(&c);
    strcpy(first, contents(&c));
    clean_again(&c);
    assert_string_equal(contents(&c), first);
    assert_int_equal(c.result.bytes_before, c.result.bytes_after);
    teardown_clean(&c);
}

/* ---- positions ---- */

static void checkpoint_out_of_range_is_set_right(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    for (int i = 0; i < 6; i++)
        put(&c, "a", "1");
    roll(&c);
    atomic_store(&c.t.log->cleaned_to, 99);
    struct cleaner_choice ch = look(&c);
    assert_true(ch.reset);
    assert_int_equal(ch.first_dirty, 0);
    assert_int_equal(log_raise_start_offset(c.t.log, 3), KERR_NONE);
    atomic_store(&c.t.log->cleaned_to, 2);
    ch = look(&c);
    assert_true(ch.reset);
    assert_int_equal(ch.first_dirty, 3);
    clean(&c);
    assert_string_equal(contents(&c), "5:a=1");
    teardown_clean(&c);
}

/* What comes anew behind a cut is dirty, however far compaction had been. */
static void truncation_lowers_the_checkpoint(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    for (int i = 0; i < 6; i++) {
        put(&c, "a", "1");
        roll(&c);
    }
    clean(&c);
    assert_int_equal(log_cleaned_to(c.t.log), 6);
    put(&c, "b", "1");
    assert_int_equal(log_truncate_to(c.t.log, 7), KERR_NONE); /* above */
    assert_int_equal(log_cleaned_to(c.t.log), 6);
    assert_int_equal(log_truncate_to(c.t.log, 4), KERR_NONE);
    assert_int_equal(log_cleaned_to(c.t.log), 4);
    assert_int_equal(log_truncate_fully(c.t.log, 2), KERR_NONE);
    assert_int_equal(log_cleaned_to(c.t.log), 2);
    teardown_clean(&c);
}

static void a_cut_under_the_work_undoes_it(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    for (int i = 0; i < 6; i++) {
        put(&c, "a", "1");
        roll(&c);
    }
    struct cleaner_choice ch = look(&c);
    int cuts = log_cuts(c.t.log);
    assert_int_equal(log_truncate_to(c.t.log, 3), KERR_NONE);
    assert_int_equal(cleaner_work_run(&c.work, c.t.log, &ch, cuts, &c.result), -ECANCELED);
    log_set_cleaned(c.t.log, 6, cuts);
    assert_int_equal(log_cleaned_to(c.t.log), 0);
    assert_string_equal(contents(&c), "0:a=1 1:a=1 2:a=1");
    assert_false(log_dir_offline(c.t.dir));
    teardown_clean(&c);
}

static void stops_when_told_and_leaves_nothing(void **state)
{
    for (int moves = 1;; moves++) {
        struct clean_test c;
        struct log_names names;
        setup_clean(&c);
        for (int i = 0; i < 3; i++) {
            put(&c, "a", "1");
            roll(&c);
        }
        c.moves_left = moves;
        int err = try_clean(&c);
        if (!err) {
            assert_true(moves > 6);
            teardown_clean(&c);
            break;
        }
        assert_int_equal(err, -ECANCELED);
        assert_string_equal(contents(&c), "0:a=1 1:a=1 2:a=1");
        assert_int_equal(log_names_list(c.t.fs, log_path(c.t.log), &names), 0);
        for (int i = 0; i < names.n; i++)
            assert_int_equal(names.v[i].stage, LOG_STAGE_LIVE);
        log_names_free(&names);
        c.moves_left = -1;
        clean(&c);
        assert_string_equal(contents(&c), "2:a=1");
        teardown_clean(&c);
    }
}

/* The topic was compacted, which left gaps between segments, and is not any more: a start after a
 * kill, whose checkpoints know nothing of all this, must not take the gaps for damage. */
static void gaps_stay_legal_when_the_policy_changes(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    c.t.config.segment_bytes = 200;
    log_set_config(c.t.log, &c.t.config);
    for (int i = 0; i < 8; i++) {
        char last[16];
        snprintf(last, sizeof(last), "l%d", i);
        put(&c, last, "stays");
        put(&c, "same", "goes");
        roll(&c);
    }
    clean(&c);
    c.t.config.cleanup_policy = CLEANUP_DELETE;
    log_set_config(c.t.log, &c.t.config);
    put(&c, "k", "after");
    int64_t end = log_end_offset(c.t.log);
    int segments = log_segment_count(c.t.log);
    assert_true(segments > 2);
    reopen_unclean(&c.t);
    assert_int_equal(log_end_offset(c.t.log), end);
    assert_int_equal(log_segment_count(c.t.log), segments);
    assert_non_null(strstr(c.t.said, "nothing is removed"));
    read_all(&c.t, 1 << 20);
    check(&c.t);
    teardown_clean(&c);
}

UNIT_MAIN(
    unit_test(keeps_newest_value_of_each_key), unit_test(drops_records_inside_batches),
    unit_test(copies_whole_batches_as_they_are), unit_test(keeps_headers_and_append_time),
    unit_test(tombstone_goes_behind_its_horizon), unit_test(horizon_stays_when_the_batch_shrinks),
    unit_test(tombstone_of_an_old_key_hides_it_at_once), unit_test(drops_records_without_key),
    unit_test(compacts_old_message_sets), unit_test(old_tombstones_go_by_the_age_of_their_file),
    unit_test(last_batch_of_a_producer_leaves_its_head),
    unit_test(batches_without_sequence_do_not_pile_up),
    unit_test(aborted_data_goes_and_its_marker_later),
    unit_test(marker_stays_with_the_head_of_its_data), unit_test(marker_alone_leaves_its_head),
    unit_test(open_transaction_holds_compaction_back), unit_test(transactions_span_groups),
    unit_test(an_aborted_transaction_ends_in_front_of_the_dirty_part),
    unit_test(goes_on_where_a_full_map_ended), unit_test(full_map_may_end_inside_a_batch),
    unit_test(groups_by_size_and_keeps_empty_ones),
    unit_test(takes_over_the_time_of_the_last_segment), unit_test(snapshots_go_with_their_segments),
    unit_test(slices_outlive_the_exchange), unit_test(buffer_grows_to_the_batch),
    unit_test(cleaning_twice_changes_nothing), unit_test(checkpoint_out_of_range_is_set_right),
    unit_test(truncation_lowers_the_checkpoint), unit_test(a_cut_under_the_work_undoes_it),
    unit_test(stops_when_told_and_leaves_nothing),
    unit_test(gaps_stay_legal_when_the_policy_changes))
