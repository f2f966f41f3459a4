/* log_copy.c - see log_copy.h. */
#include "replica/log_copy.h"

#include <stdlib.h>

#include "base/logline.h"
#include "replica/partition_follow.h"
#include "replica/partition_private.h"

static enum copy_result failed(struct log *to, const char *doing, enum kerr e)
{
    struct topic_partition tp = log_topic_partition(to);
    say_error("LogMover", "%.*s-%d: %s: %s", STR_ARG(tp.topic), (int)tp.partition, doing,
              kerr_name((int16_t)e));
    return COPY_FAILED;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- what both have in common ---- */

/* Up to where `to` is the same as `from`, seen from the epoch of its last record. *sure: that is
 * all; else another look is due after the cut. */
static int64_t common_end(struct log *from, struct log *to, bool *sure)
{
    int32_t epoch, last = log_latest_epoch(to);
    int64_t end = log_end_offset(to), theirs;
    *sure = true;
    if (last < 0) /* no epochs (old formats): what is committed is the same */
        return least(end, log_high_watermark(from));
    log_end_offset_for_epoch(from, last, &epoch, &theirs);
    if (epoch < 0)
        return log_start_offset(from);
    if (epoch == last)
        return least(end, theirs);
    *sure = false;
    int64_t ours;
    log_end_offset_for_epoch(to, epoch, &last, &ours);
    return last < 0 ? log_start_offset(from) : least(least(ours, theirs), end);
}

static enum kerr align(struct log *from, struct log *to)
{
    bool sure = false;
    enum kerr e = KERR_NONE;
    while (!sure && e == KERR_NONE && log_end_offset(to) > log_start_offset(to)) {
        int64_t end = common_end(from, to, &sure);
        if (end >= log_end_offset(to))
            break;
        e = log_truncate_to(to, end);
    }
    if (e == KERR_NONE && log_end_offset(to) < log_start_offset(from))
        e = log_truncate_fully(to, log_start_offset(from));
    return e;
}

/* ---- bytes ---- */

static enum kerr append(struct log *to, uint8_t *bytes, size_t n)
{
    struct arena a;
    struct prepared pr;
    struct append_info info = {0};
    arena_init(&a, 0);
    enum kerr e = records_prepare(&partition_replicated, bytes, n, &a, &pr);
    if (e == KERR_NONE && pr.batches_n == 0)
        e = KERR_CORRUPT_MESSAGE; /* not one whole batch */
    if (e == KERR_NONE)
        e = log_append_as_follower(to, &pr, &info);
    prepared_free(&pr);
    arena_free(&a);
    if (e == KERR_NONE && info.rolled)
        e = log_flush(to);
    return e;
}

/* As above, but for the first batch of a copy: it may begin below the log start, when records were
 * deleted up to its middle. The start is raised again when the marks follow. */
static enum kerr append_first(struct log *to, uint8_t *bytes, size_t n)
{
    struct batch b;
    enum kerr e = append(to, bytes, n);
    if (e != KERR_OFFSET_OUT_OF_RANGE || log_end_offset(to) != log_start_offset(to) ||
        batch_decode(bytes, n, n, &b) != BATCH_OK || b.base_offset >= log_end_offset(to))
        return e;
    e = log_truncate_fully(to, b.base_offset);
    return e == KERR_NONE ? append(to, bytes, n) : e;
}

/* Up to `bytes`, at least one batch. *copied 0: there is nothing. */
static enum kerr copy(struct log *from, struct log *to, uint32_t bytes, int64_t *copied)
{
    struct log_slice s;
    *copied = 0;
    enum kerr e = log_read(from, log_end_offset(to), bytes, log_end_offset(from), true, false, &s);
    if (e != KERR_NONE || s.len == 0) {
        if (e == KERR_NONE)
            file_unref(s.file);
        return e;
    }
    uint8_t *p = malloc(s.len);
    e = KERR_UNKNOWN_SERVER_ERROR;
    if (p) {
        ssize_t got = file_pread(s.file, p, s.len, s.pos);
        if (got < 0)
            log_dir_fail(log_dir_of(from), (int)got, "read a log that is moved");
        e = got < 0 ? KERR_KAFKA_STORAGE_ERROR : append_first(to, p, (size_t)got);
    }
    free(p);
    file_unref(s.file);
    if (e == KERR_NONE)
        *copied = s.len;
    return e;
}

/* Positions that are no records. */
static enum kerr follow_marks(struct log *from, struct log *to)
{
    log_set_high_watermark(to, log_high_watermark(from));
    int64_t start = least(log_start_offset(from), log_high_watermark(to));
    return log_raise_start_offset(to, start);
}

/* ---- the swap ---- */

/* The settings of `from`, which may change meanwhile. */
static void follow_settings(struct log *from, struct log *to)
{
    bool same = false;
    while (!same) {
        const struct log_config *c = log_config_ref(from);
        log_set_config(to, c);
        const struct log_config *now = log_config_ref(from);
        same = now == c;
        log_config_unref(now);
        log_config_unref(c);
    }
}

/* Nobody appends to `from`: the rest is copied, and `to` takes its place. Under the partition's
 * lock. */
static enum kerr take_place(struct partition *p, struct log *to, struct log_manager *logs)
{
    struct log *from = p->log;
    int64_t copied = 1;
    enum kerr e = align(from, to);
    while (e == KERR_NONE && copied > 0)
        e = copy(from, to, 1 << 20, &copied);
    if (e == KERR_NONE)
        e = follow_marks(from, to);
    if (e == KERR_NONE && log_end_offset(to) != log_end_offset(from))
        e = KERR_UNKNOWN_SERVER_ERROR;
    /* An epoch without records is known to the leader alone. */
    if (e == KERR_NONE && atomic_load(&p->role) == PARTITION_LEADER)
        e = log_begin_epoch(to, atomic_load(&p->leader_epoch));
    /* Some of it was perhaps acknowledged as synced, and where it is synced goes. */
    if (e == KERR_NONE)
        e = log_flush(to);
    if (e != KERR_NONE)
        return e;
    follow_settings(from, to);
    e = log_manager_swap_future(logs, from, to);
    if (e == KERR_NONE) {
        p->log = log_ref(to);
        log_unref(from);
    }
    return e;
}

static enum copy_result swap(struct partition *p, struct log *from, struct log *to,
                             struct log_manager *logs)
{
    enum copy_result r = COPY_MORE;
    enum kerr e = log_flush(to); /* what can be done before appends have to wait */
    if (e != KERR_NONE)
        return failed(to, "flush the copy", e);
    pthread_rwlock_wrlock(&p->lock);
    if (p->log == from) { /* else its role has just changed: look again */
        e = take_place(p, to, logs);
        r = e == KERR_NONE                  ? COPY_DONE
            : e == KERR_OFFSET_OUT_OF_RANGE ? COPY_WAIT /* its start has moved: look again */
                                            : COPY_FAILED;
    }
    pthread_rwlock_unlock(&p->lock);
    if (r == COPY_FAILED)
        return failed(to, "take the log's place", e);
    if (r == COPY_DONE)
        partition_wake(p);
    return r;
}

enum copy_result log_copy_piece(struct partition *p, struct log *from, struct log *to,
                                struct log_manager *logs, uint32_t bytes, int64_t *copied)
{
    *copied = 0;
    enum kerr e = align(from, to);
    if (e == KERR_NONE)
        e = copy(from, to, bytes, copied);
    if (e == KERR_OFFSET_OUT_OF_RANGE)
        return COPY_WAIT; /* the log was cut, or its start has moved: look again */
    if (e == KERR_NONE)
        e = follow_marks(from, to);
    if (e != KERR_NONE)
        return failed(to, "copy", e);
    /* The rest, and what comes meanwhile, is copied while appends wait. */
    bool near = log_bytes_between(from, log_end_offset(to), log_end_offset(from)) <= bytes;
    return near ? swap(p, from, to, logs) : COPY_MORE;
}
