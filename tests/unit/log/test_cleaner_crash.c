/* Compaction when any call fails, and when the machine crashes at any call: each exchange of
 * segments is there as a whole or not at all, nothing that should stay is lost, and the next
 * compaction comes to the same end. */
#include "cleaner_util.h"

#include <unistd.h>

/* Two groups of segments, with everything that compaction treats in its own way. */
static void fill(struct clean_test *c)
{
    char key[8];
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    for (int i = 0; i < 24; i++) {
        snprintf(key, sizeof(key), "k%d", i % 5);
        const struct kv v[] = {{key, i % 7 == 3 ? NULL : "value", T0 + i}, {"often", "x", T0 + i}};
        if (i % 4 == 1) {
            put_produced(c, 7, i / 4 * 2, true, v, 2);
            put_marker(c, 7, i % 8 == 1);
        } else {
            o.codec = i % 4 == 2 ? CODEC_LZ4 : CODEC_NONE;
            put_kvs(c, &o, APPEND_CLIENT, v, 2);
        }
        if (i % 4 == 3) {
            roll(c);
            assert_int_equal(log_flush(c->t.log), KERR_NONE);
        }
    }
    assert_int_equal(fs_sync_dir(c->t.fs, c->t.data), 0);
    note_checkpoints(&c->t);
}

/* many: each group becomes several segments, as if it had too much for one. */
static void setup_filled(struct clean_test *c, bool many)
{
    setup_clean(c);
    c->t.config.segment_bytes = 1600;
    log_set_config(c->t.log, &c->t.config);
    if (many)
        c->work.out.bytes_max = 200;
    fill(c);
}

static bool has_record(const struct got *g, const struct got_record *r)
{
    for (int i = 0; i < g->records_n; i++)
        if (g->records[i].offset == r->offset)
            return g->records[i].timestamp == r->timestamp &&
                   strcmp(g->records[i].key, r->key) == 0 &&
                   strcmp(g->records[i].value, r->value) == 0;
    return false;
}

static bool within(const struct got *part, const struct got *all)
{
    for (int i = 0; i < part->records_n; i++)
        if (!has_record(all, &part->records[i]))
            return false;
    return true;
}

/* The log before, and after an undisturbed compaction. */
struct sides {
    struct got old, new;
    char new_text[4096];
    int old_segments, new_segments;
};

static void learn(struct sides *s, bool many)
{
    struct clean_test c;
    setup_filled(&c, many);
    s->old = read_back(&c.t);
    s->old_segments = log_segment_count(c.t.log);
    clean(&c);
    s->new = read_back(&c.t);
    s->new_segments = log_segment_count(c.t.log);
    snprintf(s->new_text, sizeof(s->new_text), "%s", contents(&c));
    if (many)
        assert_true(s->new_segments > 5);
    else
        assert_true(s->new_segments > 2 && s->new_segments < s->old_segments);
    assert_true(s->new.records_n < s->old.records_n);
    teardown_clean(&c);
}

static void no_leftovers(struct clean_test *c)
{
    struct log_names names;
    assert_int_equal(log_names_list(c->t.fs, log_path(c->t.log), &names), 0);
    for (int i = 0; i < names.n; i++)
        if (names.v[i].stage != LOG_STAGE_LIVE && names.v[i].stage != LOG_STAGE_DELETED)
            fail_msg("file %d of stage %d is left", (int)names.v[i].base, names.v[i].stage);
    log_names_free(&names);
}

/* What the log is after a restart in the middle: between old and new; and it can go on. */
static void check_between(struct clean_test *c, const struct sides *s)
{
    struct got g = read_back(&c->t);
    if (!within(&s->new, &g) || !within(&g, &s->old))
        fail_msg("neither old nor new: %s", contents(c));
    got_free(&g);
    assert_int_equal(log_end_offset(c->t.log), s->old.records[s->old.records_n - 1].offset + 1);
    check(&c->t);
    no_leftovers(c);
    commit_all(c);
    atomic_store(&c->t.log->cleaned_to, 0);
    clean(c);
    assert_string_equal(contents(c), s->new_text);
    int64_t expected_sequence = 11;
    const struct producer *p = NULL;
    hmap_each (n, &c->t.log->producers.by_id)
        p = hmap_entry(n, struct producer, node);
    assert_non_null(p);
    assert_int_equal(p->batches[p->newest].last_sequence, expected_sequence);
}

static void any_call_may_fail(void **state)
{
    struct sides s;
    int failed = 0;
    learn(&s, false);
    for (uint64_t n = 1;; n++) {
        struct clean_test c;
        setup_filled(&c, false);
        fs_fault_fail_at(c.t.fault, n, EIO);
        int err = try_clean(&c);
        fs_fault_fail_at(c.t.fault, 0, 0);
        bool offline = log_dir_offline(c.t.dir);
        /* what failed and was not needed is no failure */
        assert_true(offline || err == 0);
        if (!offline) {
            assert_string_equal(contents(&c), s.new_text);
            teardown_clean(&c);
            break;
        }
        failed++;
        fresh_dir(&c.t);
        assert_int_equal(try_open(&c.t, false), 0);
        check_between(&c, &s);
        teardown_clean(&c);
    }
    assert_true(failed > 100);
    got_free(&s.old);
    got_free(&s.new);
}

/* Too many open files say nothing about the disk: all is as before, and later it works. */
static void shortage_leaves_all_as_it_was(void **state)
{
    struct sides s;
    learn(&s, false);
    for (int skip = 0;; skip++) {
        struct clean_test c;
        setup_filled(&c, false);
        fs_fault_add(c.t.fault, (struct fs_fault_rule){
                                    .call = FS_OPEN, .skip = skip, .times = 1, .error = EMFILE});
        int err = try_clean(&c);
        fs_fault_clear(c.t.fault);
        assert_false(log_dir_offline(c.t.dir));
        assert_true(err == 0 || err == -EMFILE);
        no_leftovers(&c);
        struct got g = read_back(&c.t);
        assert_true(within(&s.new, &g) && within(&g, &s.old));
        got_free(&g);
        if (err)
            clean(&c);
        assert_string_equal(contents(&c), s.new_text);
        teardown_clean(&c);
        if (!err)
            break;
    }
    got_free(&s.old);
    got_free(&s.new);
}

/* true: compaction was over before the power went. */
static bool crash_at(struct sides *s, bool many, uint64_t n, enum fs_crash how, uint64_t seed)
{
    struct clean_test c;
    setup_filled(&c, many);
    fs_fault_power_off_at(c.t.fault, n);
    bool over = try_clean(&c) == 0;
    if (how != FS_CRASH_KEEP)
        log_dir_remove_due(c.t.dir); /* what was replaced is deleted at once here */
    drop_log(&c.t);
    log_dir_free(c.t.dir);
    assert_int_equal(fs_fault_crash(c.t.fault, c.t.data, how, seed), 0);
    fs_fault_clear(c.t.fault);
    make_dir(&c.t);
    assert_int_equal(try_open(&c.t, false), 0);
    check_between(&c, s);
    teardown_clean(&c);
    return over;
}

static void crash_everywhere(bool many, enum fs_crash how, int seeds)
{
    struct sides s;
    bool over = false;
    learn(&s, many);
    for (uint64_t n = 1; !over; n++)
        for (int seed = 0; seed < seeds; seed++)
            over = crash_at(&s, many, n, how, (uint64_t)seed * 1000 + n);
    got_free(&s.old);
    got_free(&s.new);
}

static void machine_may_lose_what_was_not_synced(void **state)
{
    crash_everywhere(false, FS_CRASH_DROP, 1);
    crash_everywhere(true, FS_CRASH_DROP, 1);
}

static void machine_may_keep_some_of_it(void **state)
{
    const char *seeds = getenv("LOG_CRASH_SEEDS");
    crash_everywhere(false, FS_CRASH_TEAR, seeds ? atoi(seeds) : 3);
    crash_everywhere(true, FS_CRASH_TEAR, seeds ? atoi(seeds) : 1);
}

static void process_may_end_anywhere(void **state)
{
    crash_everywhere(false, FS_CRASH_KEEP, 1);
    crash_everywhere(true, FS_CRASH_KEEP, 1);
}

/* An empty segment does not tell how far it reaches; what has its base must go all the same. */
static void an_empty_replacement_is_completed(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    put_produced(&c, 7, 0, true, &(struct kv){"a", "1", 0}, 1);
    put_marker(&c, 7, false);
    roll(&c);
    assert_int_equal(log_flush(c.t.log), KERR_NONE);
    note_checkpoints(&c.t);
    drop_log(&c.t);
    assert_true(size_of(&c.t, "00000000000000000000.txnindex") > 0);
    write_file(&c.t, "00000000000000000000.log.swap", "", 0);
    write_file(&c.t, "00000000000000000000.index.swap", "", 0);
    write_file(&c.t, "00000000000000000000.timeindex.swap", "", 0);
    assert_int_equal(try_open(&c.t, false), 0);
    assert_int_equal(size_of(&c.t, "00000000000000000000.log"), 0);
    assert_int_equal(size_of(&c.t, "00000000000000000000.txnindex"), -ENOENT);
    check(&c.t);
    teardown_clean(&c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        unit_test(any_call_may_fail),
        unit_test(shortage_leaves_all_as_it_was),
        unit_test(machine_may_lose_what_was_not_synced),
        unit_test(machine_may_keep_some_of_it),
        unit_test(process_may_end_anywhere),
        unit_test(an_empty_replacement_is_completed),
    };
    /* What a sync saves is the fault layer's business; the disk below need not be slow. */
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
