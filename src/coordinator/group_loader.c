/* group_loader.c - see group_loader.h.
 *
 * Everything up to the log END counts, not only up to the high watermark: what this leader has in
 * its log will be committed, and nothing of it may be lost to the groups. */
#include "coordinator/group_loader.h"

#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"

#define LOADER_TAG "GroupMetadataManager"

struct reading {
    struct partition *partition;
    struct log *log;
    struct group_loading *loading;
    struct buf buffer;
    int64_t offset; /* read next */
};

static bool still_leader(const struct group_load *l, const struct reading *r)
{
    return partition_is_leader(r->partition) &&
           partition_leader_epoch(r->partition) >= l->leader_epoch;
}

static int read_slice(struct reading *r, const struct log_slice *s)
{
    r->buffer.len = 0;
    if (!buf_reserve(&r->buffer, s->len))
        return -ENOMEM;
    ssize_t n = file_pread(s->file, r->buffer.p, s->len, s->pos);
    if (n < 0)
        return (int)n;
    r->buffer.len = (size_t)n;
    return 0;
}

/* The whole batches of the buffer. A partial one at its end is read again. */
static int add_batches(struct reading *r)
{
    struct batch b;
    int64_t before = r->offset;
    for (size_t at = 0; at < r->buffer.len; at += b.size) {
        size_t left = r->buffer.len - at;
        enum batch_walk found = batch_decode(r->buffer.p + at, left, left, &b);
        if (found == BATCH_CORRUPT)
            return -EBADMSG;
        if (found == BATCH_END)
            break;
        if (b.last_offset < r->offset)
            continue; /* before the log start, in its first segment */
        int rc = group_loading_add(r->loading, &b);
        if (rc)
            return rc;
        r->offset = b.last_offset + 1;
    }
    return r->offset > before ? 0 : -EBADMSG;
}

static int read_next(const struct group_load *l, struct reading *r, int64_t end)
{
    struct log_slice s;
    enum kerr e = log_read(r->log, r->offset, (uint32_t)l->buffer_size, end, true, false, &s);
    if (e == KERR_OFFSET_OUT_OF_RANGE && r->offset < log_start_offset(r->log)) {
        r->offset = log_start_offset(r->log); /* it moved meanwhile */
        return 0;
    }
    if (e != KERR_NONE)
        return -EIO;
    if (s.len == 0) { /* compaction took all that was up to here */
        r->offset = end;
        return 0;
    }
    int rc = read_slice(r, &s);
    file_unref(s.file);
    return rc ? rc : add_batches(r);
}

static int read_log(const struct group_load *l, struct reading *r)
{
    int rc = 0;
    int64_t end;
    r->offset = log_start_offset(r->log);
    while (!rc && r->offset < (end = log_end_offset(r->log)))
        rc = still_leader(l, r) ? read_next(l, r, end) : -ECANCELED;
    return rc;
}

static int make_groups(struct group_load *l, struct group_loading *loading)
{
    int n = group_loading_groups(loading);
    l->groups = calloc((size_t)n + 1, sizeof(*l->groups));
    if (!l->groups)
        return -ENOMEM;
    int rc = group_loading_finish(loading, l->env, l->groups);
    l->n = rc ? 0 : n;
    return rc;
}

static void report(const struct group_load *l, const struct reading *r, int64_t ms)
{
    if (l->error == -ECANCELED)
        say_info(LOADER_TAG,
                 "__consumer_offsets-%d: load of epoch %d given up, another broker leads",
                 (int)l->partition, (int)l->leader_epoch);
    else if (l->error)
        say_error(LOADER_TAG, "__consumer_offsets-%d: load of epoch %d failed at offset %lld: %s",
                  (int)l->partition, (int)l->leader_epoch, (long long)r->offset,
                  strerror(-l->error));
    else
        logline(l->n ? LOGLINE_INFO : LOGLINE_DEBUG, LOADER_TAG,
                "__consumer_offsets-%d: loaded %d groups of epoch %d from %lld records in %lld ms",
                (int)l->partition, l->n, (int)l->leader_epoch,
                (long long)group_loading_records(r->loading), (long long)ms);
}

void group_load_run(struct group_load *l)
{
    int64_t begun = clock_mono_ms(l->clock);
    enum kerr why;
    struct topic_partition tp = {STR_LIT("__consumer_offsets"), l->partition};
    struct reading r = {.partition = replica_manager_find(l->replicas, tp, &why)};
    r.log = r.partition ? partition_log(r.partition) : NULL;
    r.loading = group_loading_new(l->partition);
    l->groups = NULL;
    l->n = 0;
    l->error = !r.log ? -ECANCELED : !r.loading ? -ENOMEM : read_log(l, &r);
    if (!l->error)
        l->error = make_groups(l, r.loading);
    if (r.loading)
        report(l, &r, clock_mono_ms(l->clock) - begun);
    group_loading_free(r.loading);
    buf_free(&r.buffer);
    if (r.log)
        log_unref(r.log);
    partition_unref(r.partition);
}
