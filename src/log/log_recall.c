/* log_recall.c - what producers wrote right before the snapshot that a start began with.
 *
 * A snapshot keeps the newest batch of a producer. One that had several in flight when the broker
 * ended sends all of them again, and the older ones would be refused as out of order although they
 * are there. So when that happens, and only then, the end of the log in front of the snapshot is
 * read once, heads only, and the batches before are known again: a start costs nothing more, and a
 * producer loses nothing that is within reach.
 *
 * Under the log's mutex; RECALL_BYTES bounds what is read. */
#include "log/log_private.h"
#include "log/segment_recover.h"

enum { RECALL_BYTES = 8 << 20 };

/* Offset from which the segment's last `bytes` are walked; its base when it has no more. */
static int walk_from(struct segment *s, int64_t bytes, int64_t *from)
{
    struct index_view v;
    struct offset_position at;
    int64_t size = segment_size(s);
    *from = s->base;
    if (size <= bytes)
        return 0;
    int err = segment_offsets(s, &v);
    /* an entry that does not exist: the walk from the last one is shorter still */
    if (!err && !offset_index_from_position(&v, s->base, size - bytes, &at))
        at = v.n ? offset_index_at(&v, s->base, v.n - 1) : (struct offset_position){s->base, 0};
    if (!err && !v.error)
        *from = at.offset;
    index_view_close(&v);
    if (err)
        return err;
    return segment_failed(s, LOG_FILE_INDEX, v.error, "read");
}

void log_recall_producers(struct log *log)
{
    struct segment_list *l = log_pin(log);
    struct producer_state old;
    int64_t upto = log->restored_at, from = upto, left = RECALL_BYTES;
    int last = segment_list_floor(l, upto - 1), first = last;
    int err = 0;
    producer_state_init(&old);
    for (int i = last; i >= 0 && left > 0 && !err; i--) {
        err = walk_from(l->v[i], left, &from);
        left -= segment_size(l->v[i]);
        first = i;
    }
    for (int i = first; i >= 0 && i <= last && !err; i++)
        err = segment_replay_producers(l->v[i], from, upto, &old);
    if (!err) /* else the producer is told that its batch is out of order, as without this */
        producer_recall(&log->producers, &old);
    producer_state_free(&old);
    segment_list_unpin(l);
}
