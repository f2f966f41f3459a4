#include "log/log_load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/logline.h"
#include "log/log_private.h"
#include "log/partition_metadata.h"
#include "log/segment_recover.h"

/* One folder on its way to becoming a log. */
struct loader {
    const struct log_open_args *args;
    struct log *log;
    struct log_names names;
    struct segment **segments; /* by base; a reference each */
    int n;
    int64_t end;           /* behind the last record */
    bool recovered;        /* the last segment was read through: its end is known */
    bool producers_gone;   /* snapshots were removed: state must come from the batches */
    bool recollect_epochs; /* the epoch file says nothing or nonsense */
    bool save_epochs;
};

/* ---- segments from names ---- */

static bool has_name(const struct log_names *names, int64_t base, enum log_file_kind kind)
{
    for (int i = 0; i < names->n; i++)
        if (names->v[i].base == base && names->v[i].kind == kind &&
            names->v[i].stage == LOG_STAGE_LIVE)
            return true;
    return false;
}

static int remove_orphans(struct loader *ld)
{
    struct log *log = ld->log;
    for (int i = 0; i < ld->names.n; i++) {
        const struct log_file_name *f = &ld->names.v[i];
        if (f->kind == LOG_FILE_DATA || f->kind == LOG_FILE_SNAPSHOT ||
            has_name(&ld->names, f->base, LOG_FILE_DATA))
            continue;
        char path[LOG_PATH_MAX];
        log_file_path(path, log_path(log), f->base, f->kind, LOG_STAGE_LIVE);
        say_warn("log", "%s belongs to no segment: removed", path);
        int err = fs_unlink(log_fs(log), path);
        if (err && err != -ENOENT) {
            log_dir_fail(log->folder.dir, err, "remove %s", path);
            return err;
        }
    }
    return 0;
}

static int add_segment(struct loader *ld, int64_t base, bool last)
{
    struct log *log = ld->log;
    char path[LOG_PATH_MAX];
    struct file_stat st;
    log_file_path(path, log_path(log), base, LOG_FILE_DATA, LOG_STAGE_LIVE);
    int err = fs_stat(log_fs(log), path, &st);
    if (!err && st.size > INT32_MAX)
        err = -EFBIG; /* positions in the index have 31 bits */
    if (err) {
        log_dir_fail(log->folder.dir, err, "stat %s", path);
        return err;
    }
    struct segment *s =
        segment_existing(&log->folder, base, st.size, has_name(&ld->names, base, LOG_FILE_TXN),
                         last, &log->config->c);
    if (!s)
        return -ENOMEM;
    ld->segments[ld->n++] = s;
    return 0;
}

static int make_segments(struct loader *ld)
{
    int count = 0, last = -1, err = 0;
    for (int i = 0; i < ld->names.n; i++)
        if (ld->names.v[i].kind == LOG_FILE_DATA) {
            count++;
            last = i;
        }
    ld->segments = calloc((size_t)count + 1, sizeof(struct segment *));
    if (!ld->segments)
        return -ENOMEM;
    for (int i = 0; i < ld->names.n && !err; i++)
        if (ld->names.v[i].kind == LOG_FILE_DATA)
            err = add_segment(ld, ld->names.v[i].base, i == last);
    return err;
}

/* Removes segments [first, n), files too. */
static int drop_from(struct loader *ld, int first)
{
    int err = 0;
    while (ld->n > first && !err) {
        struct segment *s = ld->segments[--ld->n];
        err = segment_doom(s, 0);
        segment_unref(s);
        atomic_store(&ld->log->names_dirty, true);
    }
    return err;
}

/* What segment_existing(active) makes of the last segment now: it may have become the last one. */
static void make_last_growable(struct loader *ld)
{
    struct segment *s = ld->segments[ld->n - 1];
    s->offsets.growable = s->times.growable = true;
}

/* ---- indexes after a clean stop ---- */

static int rebuild_indexes(struct loader *ld, int i, const char *why)
{
    struct segment *s = ld->segments[i];
    bool last = i == ld->n - 1;
    struct segment_recovery r = {
        .trust_below = INT64_MAX, .keep_data = !last, .config = &ld->log->config->c};
    say_info("log", "%s/%020" PRId64 ": its indexes are made anew (%s)", log_path(ld->log), s->base,
             why);
    int err = segment_recover(s, &r);
    ld->log->touched = true;
    if (!err && r.why)
        say_warn("log", "%s/%020" PRId64 ".log is damaged behind offset %" PRId64 ": %s",
                 log_path(ld->log), s->base, r.next_offset - 1, r.why);
    return err;
}

/* A transaction index that cannot be right needs the producers as of the segment's base. */
static int rebuild_with_producers(struct loader *ld, int i)
{
    struct segment *s = ld->segments[i];
    struct log *log = ld->log;
    int err = log_load_producers(log, ld->segments, i, s->base, false);
    ld->producers_gone = true;
    struct segment_recovery r = {.trust_below = INT64_MAX,
                                 .keep_data = i != ld->n - 1,
                                 .producers = &log->producers,
                                 .config = &log->config->c};
    say_warn("log", "%s/%020" PRId64 ".txnindex is damaged: made anew", log_path(log), s->base);
    if (!err)
        err = segment_recover(s, &r);
    log->touched = true;
    return err;
}

static int check_txn_index(struct loader *ld, int i)
{
    struct segment *s = ld->segments[i];
    char path[LOG_PATH_MAX];
    if (atomic_load(&s->txns.n) == 0)
        return 0;
    segment_path(s, LOG_FILE_TXN, path);
    int sane = txn_index_sane(&s->txns, log_fs(ld->log), path, s->base);
    txn_index_close(&s->txns);
    if (sane == 0)
        return rebuild_with_producers(ld, i);
    return sane < 0 ? segment_failed(s, LOG_FILE_TXN, sane, "read") : 0;
}

static int check_indexes(struct loader *ld, int upto)
{
    int err = 0;
    for (int i = 0; i < upto && !err; i++) {
        int64_t base = ld->segments[i]->base;
        if (!has_name(&ld->names, base, LOG_FILE_INDEX) ||
            !has_name(&ld->names, base, LOG_FILE_TIME))
            err = rebuild_indexes(ld, i, "a file is missing");
        else
            err = check_txn_index(ld, i);
    }
    return err;
}

/* ---- after an unclean stop ---- */

static int recover_one(struct loader *ld, int i, struct segment_recovery *r)
{
    struct log *log = ld->log;
    *r = (struct segment_recovery){.trust_below = ld->args->recovery_point,
                                   .producers = &log->producers,
                                   .epochs = ld->recollect_epochs ? NULL : &log->epochs,
                                   .config = &log->config->c};
    int32_t before = epoch_cache_latest(&log->epochs);
    int err = segment_recover(ld->segments[i], r);
    if (epoch_cache_latest(&log->epochs) != before)
        ld->save_epochs = true;
    if (!err && r->why)
        say_warn("log",
                 "%s/%020" PRId64 ".log: cut behind offset %" PRId64 " (%" PRId64
                 " bytes dropped): the next batch is not valid, %s",
                 log_path(log), ld->segments[i]->base, r->next_offset - 1, r->cut_bytes, r->why);
    return err;
}

/* Between segment i, which ends in front of next_offset, and the next one there may be no records:
 * compaction leaves gaps, whatever cleanup.policy says today, and so does a follower that was cut
 * inside a batch right before a roll. After a crash of the machine a gap may also be the end of a
 * segment that nothing had synced while the next one's name lived on. The two look alike, and what
 * follows may be the only copy of what was acknowledged, so it always stays. */
static void tell_of_gap(const struct loader *ld, int i, int64_t next_offset)
{
    if (i + 1 < ld->n && ld->segments[i + 1]->base > next_offset &&
        !(ld->log->config->c.cleanup_policy & CLEANUP_COMPACT))
        say_info("log",
                 "%s: no records between offset %" PRId64 " and the next segment, %020" PRId64
                 ".log: compaction or a lost write, nothing is removed",
                 log_path(ld->log), next_offset - 1, ld->segments[i + 1]->base);
}

static int recover_from(struct loader *ld, int first)
{
    struct log *log = ld->log;
    int err = check_indexes(ld, first);
    if (!err)
        err = log_load_producers(log, ld->segments, first, ld->segments[first]->base, false);
    for (int i = first; i < ld->n && !err; i++) {
        struct segment_recovery r;
        err = recover_one(ld, i, &r);
        ld->end = r.next_offset;
        if (!err)
            tell_of_gap(ld, i, r.next_offset);
        if (!err && i + 1 < ld->n && r.cut_bytes > 0) {
            say_warn("log", "%s: what follows offset %" PRId64 " is removed, %d segments",
                     log_path(log), r.next_offset - 1, ld->n - 1 - i);
            err = drop_from(ld, i + 1);
        }
        if (!err && i + 1 < ld->n)
            err = log_take_snapshot(log, ld->segments[i + 1]->base, false);
    }
    ld->recovered = true;
    log->touched = true;
    return err;
}

/* Much to read is for as many at a time as num.recovery.threads.per.data.dir says; many logs with
 * little, which mostly wait for the disk, are not held up by that. */
static int recover(struct loader *ld)
{
    enum { MUCH = 1 << 20, WORTH_A_LINE = 64 << 20 };
    struct log *log = ld->log;
    int64_t bytes = 0;
    int first = ld->n - 1;
    /* the last one that begins below it: if that one was full just then, it was sealed later */
    while (first > 0 && ld->segments[first]->base >= ld->args->recovery_point)
        first--;
    if (ld->n == 0)
        return 0;
    for (int i = first; i < ld->n; i++)
        bytes += segment_size(ld->segments[i]);
    if (bytes <= MUCH)
        return recover_from(ld, first);
    log_dir_begin_recovery(log->folder.dir);
    if (bytes >= WORTH_A_LINE)
        say_info("log", "%s: %d of %d segments are checked, %" PRId64 " MB", log_path(log),
                 ld->n - first, ld->n, bytes >> 20);
    int err = recover_from(ld, first);
    log_dir_end_recovery(log->folder.dir);
    return err;
}

/* ---- epochs, topic id ---- */

static int read_epochs(struct loader *ld)
{
    struct log *log = ld->log;
    bool had_text;
    int err = epoch_cache_read(&log->epochs, log_fs(log), log_path(log), &had_text);
    if (err == -EBADMSG)
        say_warn("log", "%s/" EPOCH_FILE_NAME " is damaged: made anew from the batches",
                 log_path(log));
    else if (err && err != -ENOENT)
        return log_failed(log, err, "read", EPOCH_FILE_NAME);
    ld->recollect_epochs = err || !had_text;
    ld->save_epochs = err != 0;
    return 0;
}

static int settle_epochs(struct loader *ld)
{
    struct log *log = ld->log;
    int err = 0;
    if (ld->recollect_epochs) {
        epoch_cache_clear(&log->epochs);
        for (int i = 0; i < ld->n && !err; i++) {
            if (segment_size(ld->segments[i]) == 0)
                continue;
            ld->save_epochs = true;
            err = segment_collect_epochs(ld->segments[i], &log->epochs);
        }
    }
    /* What is cut off has no records, and is cut off again at each load until the next append, or
     * the next leader, saves what is left; or begins the same epoch there. Then the file has its
     * text already, from a process that may not have synced it. */
    if (!err) {
        if (epoch_cache_cut_end(&log->epochs, ld->end))
            atomic_store(&log->epochs.unsynced, true);
        epoch_cache_cut_start(&log->epochs, log_start_offset(log));
    }
    if (!err && ld->save_epochs)
        err = log_save_epochs(log, false);
    return err;
}

static bool has_records(const struct loader *ld)
{
    for (int i = 0; i < ld->n; i++)
        if (segment_size(ld->segments[i]) > 0)
            return true;
    return false;
}

/* It is durable before the first record, but not before the folder has its name: a log without
 * records may have lost it. */
static int read_topic_id(struct loader *ld)
{
    struct log *log = ld->log;
    int err;
    if (ld->args->remove_topic_id) {
        char path[LOG_PATH_MAX];
        log_path_join(path, log_path(log), PARTITION_METADATA_NAME);
        err = fs_unlink(log_fs(log), path);
    } else {
        err = partition_metadata_read(log_fs(log), log_path(log), &log->topic_id);
        if (err == -EBADMSG && !ld->args->clean && !has_records(ld)) {
            say_warn("log",
                     "%s/" PARTITION_METADATA_NAME " is damaged: the machine went down while "
                     "the log was made; it is written anew",
                     log_path(log));
            return 0;
        }
    }
    return err == -ENOENT ? 0 : log_failed(log, err, "read", PARTITION_METADATA_NAME);
}

/* ---- the end ---- */

static int find_end(struct loader *ld)
{
    bool sane;
    struct segment *last = ld->segments[ld->n - 1];
    if (ld->recovered)
        return 0;
    int err = segment_settle(last, &ld->end, &sane);
    if (err || sane)
        return err;
    err = rebuild_indexes(ld, ld->n - 1, "they do not fit the data");
    return err ? err : segment_settle(last, &ld->end, &sane);
}

static int begin_at(struct loader *ld, int64_t base)
{
    struct segment *s;
    int err = segment_create(&ld->log->folder, base, &ld->log->config->c, &s);
    if (err)
        return err;
    ld->segments[ld->n++] = s; /* one more fits: make_segments saw to it */
    ld->end = base;
    ld->recovered = true;
    ld->log->touched = true;
    atomic_store(&ld->log->names_dirty, true);
    return 0;
}

/* Never without a segment, and never with an end below the start. */
static int settle_segments(struct loader *ld)
{
    int64_t start = ld->args->start_offset;
    int err = 0;
    if (ld->n) {
        make_last_growable(ld);
        err = find_end(ld);
    }
    if (!err && ld->n && ld->end < start) {
        say_warn("log",
                 "%s ends at offset %" PRId64 ", below its start %" PRId64 ": it begins anew",
                 log_path(ld->log), ld->end, start);
        err = drop_from(ld, 0);
        epoch_cache_clear(&ld->log->epochs);
        producer_state_free(&ld->log->producers);
        ld->save_epochs = true;
    }
    if (!err && ld->n == 0)
        err = begin_at(ld, start > 0 ? start : 0);
    return err;
}

/* Above the recovery point an earlier process has written: epochs, names of files, maybe the folder
 * itself, and where it wrote no record, the topic's id. Nobody knows what of it an fsync covered;
 * the next append or flush does it again. */
static void distrust(struct loader *ld)
{
    struct log *log = ld->log;
    atomic_store(&log->epochs.unsynced, true);
    atomic_store(&log->names_dirty, true);
    atomic_store(&log->unsynced_folder, true);
    log->metadata_pending = !has_records(ld) && !uuid_is_zero(log->topic_id);
    log->touched = true;
}

static int settle_positions(struct loader *ld)
{
    struct log *log = ld->log;
    const struct log_open_args *a = ld->args;
    int64_t start =
        a->start_offset > ld->segments[0]->base ? a->start_offset : ld->segments[0]->base;
    int64_t hw = a->high_watermark < start ? start : a->high_watermark;
    int64_t rp = a->clean || a->recovery_point > ld->end ? ld->end : a->recovery_point;
    atomic_store(&log->start, start);
    atomic_store(&log->end, ld->end);
    atomic_store(&log->high_watermark, hw < ld->end ? hw : ld->end);
    atomic_store(&log->recovery_point, rp);
    atomic_store(&log->saved_recovery_point, a->recovery_point);
    atomic_store(&log->cleaned_to, a->cleaned_to <= ld->end ? a->cleaned_to : 0);
    if (rp < ld->end || (!a->clean && ld->end == 0))
        distrust(ld);
    return 0;
}

/* Snapshots without a segment, except the one a clean stop leaves at the end. */
static int remove_stray_snapshots(struct loader *ld)
{
    int64_t newest = -1;
    for (int i = 0; i < ld->names.n; i++)
        if (ld->names.v[i].kind == LOG_FILE_SNAPSHOT)
            newest = ld->names.v[i].base;
    for (int i = 0; i < ld->names.n; i++) {
        const struct log_file_name *f = &ld->names.v[i];
        char path[LOG_PATH_MAX];
        if (f->kind != LOG_FILE_SNAPSHOT || has_name(&ld->names, f->base, LOG_FILE_DATA) ||
            (f->base == newest && f->base >= ld->segments[ld->n - 1]->base))
            continue;
        log_file_path(path, log_path(ld->log), f->base, LOG_FILE_SNAPSHOT, LOG_STAGE_LIVE);
        int err = fs_unlink(log_fs(ld->log), path);
        if (err && err != -ENOENT) {
            log_dir_fail(ld->log->folder.dir, err, "remove %s", path);
            return err;
        }
    }
    return 0;
}

static int settle_producers(struct loader *ld)
{
    struct log *log = ld->log;
    int err = remove_stray_snapshots(ld);
    if (!err)
        err = log_load_producers(log, ld->segments, ld->n, ld->end,
                                 ld->args->clean && !ld->producers_gone);
    if (!err && ld->end > log->last_snapshot && ld->end > log_start_offset(log)) {
        /* not synced, which would make a start of thousands long: a torn one fails its checksum */
        err = log_take_snapshot(log, ld->end, false);
        log->touched = true;
    }
    log_update_unstable(log);
    return err;
}

static int load(struct loader *ld)
{
    struct log *log = ld->log;
    int err = log_failed(log, log_names_list(log_fs(log), log_path(log), &ld->names), "list", NULL);
    if (!err)
        err = log_failed(log, log_finish_swaps(log_fs(log), log_path(log), &ld->names),
                         "finish a swap in", NULL);
    if (!err)
        err = remove_orphans(ld);
    if (!err)
        err = make_segments(ld);
    if (!err)
        err = read_epochs(ld);
    if (!err)
        err = read_topic_id(ld);
    /* snapshots at or below the start are of no use: known from here on */
    atomic_store(&log->start, ld->args->start_offset);
    if (!err)
        err = ld->args->clean ? check_indexes(ld, ld->n) : recover(ld);
    if (!err)
        err = settle_segments(ld);
    if (!err)
        err = settle_positions(ld);
    if (!err)
        err = settle_epochs(ld);
    if (!err)
        err = settle_producers(ld);
    return err;
}

int log_open(const struct log_open_args *a, struct log **out)
{
    char name[FOLDER_NAME_MAX];
    struct loader ld = {.args = a};
    *out = NULL;
    folder_name(name, a->tp.topic, a->tp.partition);
    ld.log = log_new(a->dir, a->folder ? a->folder : name, a->tp, a->config);
    int err = ld.log ? load(&ld) : -ENOMEM;
    if (!err) {
        ld.log->segments.now = segment_list_new(ld.segments, ld.n);
        err = ld.log->segments.now ? 0 : -ENOMEM;
    }
    for (int i = 0; i < ld.n; i++) {
        segment_close_files(ld.segments[i]);
        segment_unref(ld.segments[i]);
    }
    free(ld.segments);
    log_names_free(&ld.names);
    if (err)
        log_unref(ld.log);
    else
        *out = ld.log;
    return err;
}
