/* fetch_convert.c - records for clients that know message formats 0 and 1 only (Fetch v0-v3).
 *
 * Reads and rewrites on a worker, in chunks, and stops when the answer is large enough: a client of
 * these versions asks again for the rest. So the memory of one answer is bounded whatever the
 * client allows, but for the first batch, which always goes whole. It is reserved before, so that
 * pipelined requests do not have many such answers made at once. What is left when all was
 * dropped (control batches) or cut (a hard limit inside the first batch) is an entry that old
 * clients take for a message larger than their buffer. */
#include <stdlib.h>

#include "protocol/record_batch.h"
#include "protocol/records_convert.h"
#include "server/broker_metrics.h"
#include "server/fetch_op.h"
#include "server/request_later.h"

#define CHUNK (128 * 1024)              /* source bytes read at a time */
#define ANSWER_ENOUGH (4 * 1024 * 1024) /* source bytes after which no further chunk is begun */
#define FILLER_LEAST 12

struct source {
    const struct log_slice *slice;
    uint32_t at; /* converted so far */
    uint8_t *chunk;
    size_t cap;
};

/* Reads `want` bytes, or what is left, from where we are. The count, or -1. */
static ssize_t read_chunk(struct source *src, size_t want)
{
    uint32_t left = src->slice->len - src->at;
    if (want > left)
        want = left;
    if (want > src->cap) {
        uint8_t *larger = realloc(src->chunk, want);
        if (!larger)
            return -1;
        src->chunk = larger;
        src->cap = want;
    }
    ssize_t n = file_pread(src->slice->file, src->chunk, want, src->slice->pos + src->at);
    return n < 0 ? -1 : n;
}

static uint64_t converted_records(const uint8_t *p, size_t n, int magic)
{
    struct batch b;
    uint64_t count = 0;
    for (size_t at = 0; at < n && batch_decode(p + at, n - at, n - at, &b) == BATCH_OK;
         at += b.size)
        count += b.magic > magic && !batch_is_control(&b)
                     ? (uint64_t)(b.last_offset - b.base_offset) + 1
                     : 0;
    return count;
}

/* Converts one chunk. *used 0: nothing whole is left. */
static enum kerr convert_chunk(struct source *src, int magic, int64_t from, struct buf *out,
                               size_t *used)
{
    *used = 0;
    ssize_t n = read_chunk(src, CHUNK);
    if (n > ENTRY_PREFIX) { /* a first entry that is longer than the chunk comes whole */
        int64_t entry = (int64_t)(int32_t)get_be32(src->chunk + 8) + ENTRY_PREFIX;
        if (entry > n && entry <= (int64_t)(src->slice->len - src->at))
            n = read_chunk(src, (size_t)entry);
    }
    if (n < 0)
        return KERR_KAFKA_STORAGE_ERROR;
    return records_down_convert(src->chunk, (size_t)n, magic, from, out, used);
}

static enum kerr convert_slice(struct broker_metrics *m, struct fetch_slot *s, int64_t from,
                               int magic, size_t *budget)
{
    struct source src = {.slice = &s->read.slice};
    enum kerr e = KERR_NONE;
    size_t used;
    do {
        e = convert_chunk(&src, magic, from, &s->converted, &used);
        src.at += (uint32_t)used;
        metrics_topic(m, s->partition, TOPIC_FETCH_CONVERSIONS,
                      m ? converted_records(src.chunk, used, magic) : 0);
        *budget = used < *budget ? *budget - used : 0;
    } while (e == KERR_NONE && used > 0 && src.at<src.slice->len && * budget> 0);
    free(src.chunk);
    if (e != KERR_NONE && s->converted.len > 0)
        e = KERR_NONE; /* a batch that cannot be converted ends the answer; the next one tells */
    if (e == KERR_NONE && s->converted.len == 0 && records_filler(FILLER_LEAST, &s->converted))
        e = KERR_UNKNOWN_SERVER_ERROR;
    if (e == KERR_NONE && s->converted.failed)
        e = KERR_UNKNOWN_SERVER_ERROR;
    return e;
}

static bool allowed(struct fetch_op *op, struct fetch_slot *s)
{
    struct log *log = partition_log(s->partition);
    if (!log)
        return true;
    const struct log_config *c = log_config_ref(log);
    bool yes = op->replica_id >= 0 || c->down_conversion;
    log_config_unref(c);
    log_unref(log);
    return yes;
}

struct convert_job {
    struct job job;
    struct fetch_op *op;
    int magic;
};

static void convert_work(struct job *job)
{
    struct convert_job *c = container_of(job, struct convert_job, job);
    struct fetch_op *op = c->op;
    size_t budget = ANSWER_ENOUGH;
    for (int i = 0; i < op->context.wants_n; i++) {
        struct fetch_slot *s = &op->slots[i];
        if (s->read.slice.len == 0)
            continue;
        s->converted_form = true;
        if (!allowed(op, s))
            s->error = KERR_UNSUPPORTED_VERSION;
        else if (budget > 0)
            s->error = convert_slice(broker_metrics(op->req->broker), s,
                                     op->context.wants[i].offset, c->magic, &budget);
    }
}

static void convert_done(struct job *job)
{
    struct fetch_op *op = container_of(job, struct convert_job, job)->op;
    struct broker *b = op->req->broker;
    fetch_answer(op);
    broker_async_end(b);
}

void fetch_convert(struct fetch_op *op, int magic)
{
    struct convert_job *c = arena_new(op->req->arena, struct convert_job);
    if (!c) {
        fetch_release_reads(op);
        fetch_answer(op);
        return;
    }
    c->op = op;
    c->magic = magic;
    net_request_reserve(op->req->net, op->found_bytes < ANSWER_ENOUGH ? (uint32_t)op->found_bytes
                                                                      : ANSWER_ENOUGH);
    request_work(op->req, &c->job, convert_work, convert_done);
}
