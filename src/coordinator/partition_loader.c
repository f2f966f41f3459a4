/* partition_loader.c - see partition_loader.h. */
#include "coordinator/partition_loader.h"

#include <errno.h>

struct reading {
    struct partition_load *load;
    struct partition *partition;
    struct log *log;
    struct buf buffer;
};

static bool still_leader(const struct reading *r)
{
    return partition_is_leader(r->partition) &&
           partition_leader_epoch(r->partition) >= r->load->leader_epoch;
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
    struct partition_load *l = r->load;
    struct batch b;
    int64_t before = l->offset;
    for (size_t at = 0; at < r->buffer.len; at += b.size) {
        size_t left = r->buffer.len - at;
        enum batch_walk found = batch_decode(r->buffer.p + at, left, left, &b);
        if (found == BATCH_CORRUPT)
            return -EBADMSG;
        if (found == BATCH_END)
            break;
        if (b.last_offset < l->offset)
            continue; /* before the log start, in its first segment */
        int rc = l->add(l->arg, &b);
        if (rc)
            return rc;
        l->offset = b.last_offset + 1;
    }
    return l->offset > before ? 0 : -EBADMSG;
}

static int read_next(struct reading *r, int64_t end)
{
    struct partition_load *l = r->load;
    struct log_slice s;
    enum kerr e = log_read(r->log, l->offset, (uint32_t)l->buffer_size, end, true, false, &s);
    if (e == KERR_OFFSET_OUT_OF_RANGE && l->offset < log_start_offset(r->log)) {
        l->offset = log_start_offset(r->log); /* it moved meanwhile */
        return 0;
    }
    if (e != KERR_NONE)
        return -EIO;
    if (s.len == 0) { /* compaction took all that was up to here */
        l->offset = end;
        return 0;
    }
    int rc = read_slice(r, &s);
    file_unref(s.file);
    return rc ? rc : add_batches(r);
}

static int read_log(struct reading *r)
{
    int rc = 0;
    int64_t end;
    r->load->offset = log_start_offset(r->log);
    while (!rc && r->load->offset < (end = log_end_offset(r->log)))
        rc = still_leader(r) ? read_next(r, end) : -ECANCELED;
    return rc;
}

int partition_load_run(struct partition_load *l)
{
    enum kerr why;
    struct reading r = {.load = l};
    r.partition =
        replica_manager_find(l->replicas, (struct topic_partition){l->topic, l->partition}, &why);
    r.log = r.partition ? partition_log(r.partition) : NULL;
    l->term = r.log ? partition_term(r.partition) : 0;
    int rc = r.log ? read_log(&r) : -ECANCELED;
    buf_free(&r.buffer);
    if (r.log)
        log_unref(r.log);
    partition_unref(r.partition);
    return rc;
}
