/* fetched.c - walking the records of one fetch answer: whole batches, checks, what is left out. */
#include <stdlib.h>

#include "client/aborted.h"
#include "client/consumer_private.h"
#include "protocol/errors.h"
#include "protocol/msg/fetch.h"

struct fetched *fetched_new(struct fetch_memory *memory, const struct fetch_response_partition *r,
                            int64_t from_offset)
{
    struct fetched *f = calloc(1, sizeof *f);
    if (!f || !aborted_new(r, &f->aborted)) {
        free(f);
        return NULL;
    }
    atomic_init(&f->refs, 1);
    atomic_fetch_add(&memory->refs, 1);
    list_init(&f->link);
    f->memory = memory;
    f->bytes = r->records.p;
    f->len = (size_t)r->records.len;
    f->from_offset = f->next_offset = from_offset;
    return f;
}

static void fetched_free(struct fetched *f)
{
    aborted_free(f->aborted);
    fetch_memory_unref(f->memory);
    free(f);
}

static void drop_ref(struct fetched *f)
{
    if (atomic_fetch_sub(&f->refs, 1) == 1)
        fetched_free(f);
}

void opened_unref(struct opened *o)
{
    if (!o || atomic_fetch_sub(&o->refs, 1) != 1)
        return;
    record_iter_fini(&o->iter);
    drop_ref(o->f);
    free(o);
}

/* The queue's reference: nothing more is read from it. */
void fetched_unref(struct fetched *f)
{
    if (!f)
        return;
    struct opened *open = f->open;
    f->open = NULL;
    opened_unref(open);
    drop_ref(f);
}

static int open_batch(struct fetched *f, const struct batch *b)
{
    struct opened *o = calloc(1, sizeof *o);
    if (!o)
        return KAFKA_ERR_NO_MEMORY;
    if (record_iter_init(&o->iter, b, codec_cap(b->size)) != 0) {
        record_iter_fini(&o->iter);
        free(o);
        return KERR_CORRUPT_MESSAGE;
    }
    atomic_init(&o->refs, 1);
    o->f = f;
    atomic_fetch_add(&f->refs, 1);
    f->open = o;
    return KAFKA_OK;
}

/* Opens the next entry with records for us. 1, 0 at the end, or minus an error. */
static int next_entry(struct fetched *f, bool check_crcs)
{
    for (;;) {
        struct batch *b = &f->head;
        size_t left = f->len - f->at;
        switch (batch_decode(f->bytes + f->at, left, left, b)) {
        case BATCH_END:
            return 0;
        case BATCH_CORRUPT:
            return -KERR_CORRUPT_MESSAGE;
        case BATCH_OK:
            break;
        }
        if (check_crcs && !batch_crc_ok(b))
            return -KERR_CORRUPT_MESSAGE;
        f->at += b->size;
        if (aborted_has(f->aborted, b) || b->last_offset < f->from_offset || batch_is_control(b))
            continue;
        int err = open_batch(f, b);
        return err == KAFKA_OK ? 1 : err > 0 ? -err : err;
    }
}

int fetched_next(struct fetched *f, bool check_crcs, struct record *r, const struct batch **head)
{
    for (;;) {
        if (!f->open) {
            int rc = next_entry(f, check_crcs);
            if (rc <= 0)
                return rc;
        }
        int rc = record_iter_next(&f->open->iter, r);
        if (rc < 0)
            return -KERR_CORRUPT_MESSAGE;
        if (rc == 0) {
            opened_unref(f->open);
            f->open = NULL;
        } else if (r->offset >= f->from_offset) {
            *head = &f->head;
            return 1;
        }
    }
}
