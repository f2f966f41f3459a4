#include "tools/tool_replicas.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/record_batch.h"
#include "tools/tool_io.h"

enum { LINE = 512 };

/* The batch of a replica at *at, if it is whole and below the high watermark. */
static bool next_batch(const struct replica *from, size_t at, struct batch *b)
{
    size_t left = from->records.len - at;
    return batch_decode(from->records.p + at, left, left, b) == BATCH_OK &&
           b->last_offset < from->high_watermark;
}

static bool same_offsets(const struct replicated *r, size_t i, const struct batch *first,
                         const struct batch *b, replicas_tell tell, void *arg)
{
    char line[LINE];
    if (first->last_offset == b->last_offset)
        return true;
    snprintf(line, sizeof line,
             "partition %s-%d: replica %d's offset %" PRId64 " doesn't match replica %d's offset "
             "%" PRId64,
             r->topic, r->partition, r->replicas[0].broker, first->last_offset,
             r->replicas[i].broker, b->last_offset);
    tell(line, arg);
    return false;
}

static void compare_checksums(const struct replicated *r, size_t i, const struct batch *first,
                              const struct batch *b, replicas_tell tell, void *arg)
{
    char line[LINE];
    if (first->crc == b->crc)
        return;
    snprintf(line, sizeof line,
             "partition %s-%d has unmatched checksum at offset %" PRId64 "; replica %d's checksum "
             "%" PRIu32 "; replica %d's checksum %" PRIu32,
             r->topic, r->partition, b->last_offset, r->replicas[0].broker, first->crc,
             r->replicas[i].broker, b->crc);
    tell(line, arg);
}

/* One batch of each. 1: compared; 0: some replica has no more; -1: they differ in offsets. */
static int compare_next(struct replicated *r, size_t *at, replicas_tell tell, void *arg)
{
    struct batch first = {0};
    for (size_t i = 0; i < r->replicas_n; i++) {
        struct batch b;
        if (!next_batch(&r->replicas[i], at[i], &b))
            return 0;
        if (i == 0)
            first = b;
        else if (!same_offsets(r, i, &first, &b, tell, arg))
            return -1;
        else
            compare_checksums(r, i, &first, &b, tell, arg);
        at[i] += b.size;
    }
    r->offset = first.last_offset + 1;
    return r->replicas_n > 0;
}

bool replicas_compare(struct replicated *r, replicas_tell tell, void *arg)
{
    size_t *at = calloc(r->replicas_n + 1, sizeof *at);
    int more;
    if (!at)
        tool_die("out of memory");
    do
        more = compare_next(r, at, tell, arg);
    while (more > 0);
    free(at);
    return more == 0;
}

int64_t replicas_lag(const struct replicated *r)
{
    int64_t most = r->offset;
    for (size_t i = 0; i < r->replicas_n; i++)
        if (r->replicas[i].high_watermark > most)
            most = r->replicas[i].high_watermark;
    return most - r->offset;
}
