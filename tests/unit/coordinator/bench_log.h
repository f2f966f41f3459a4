/* bench_log.h - a coordinator's log that obeys the test: it keeps real record batches, acknowledges
 * when told to, fails when told to. */
#ifndef TESTS_COORDINATOR_BENCH_LOG_H
#define TESTS_COORDINATOR_BENCH_LOG_H

#include "coordinator/group_log.h"
#include "protocol/batch_builder.h"
#include "unit.h"

#define BENCH_START_MS 1700000000000LL

enum { BENCH_PARTITIONS = 50 };

struct bench_log {
    struct group_log log;
    struct executor *ex;
    struct buf batches[BENCH_PARTITIONS];
    int64_t end[BENCH_PARTITIONS]; /* offset of the next record */
    int appends, records;          /* all so far, tombstones too */
    int tombstones;
    bool hold;            /* acknowledgements wait for bench_release */
    enum kerr next_error; /* of the next append; nothing is written then */
    struct list held;
};

static void bench_write(struct bench_log *l, int32_t partition, int64_t producer_id,
                        int16_t producer_epoch, const struct group_record *r, int n)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *b;
    o.producer_id = producer_id;
    o.producer_epoch = producer_epoch;
    o.transactional = producer_id >= 0;
    o.base_sequence = producer_id >= 0 ? 0 : -1;
    b = batch_builder_new(&o);
    assert_non_null(b);
    for (int i = 0; i < n; i++) {
        assert_int_equal(batch_builder_add(b, l->end[partition]++, BENCH_START_MS, r[i].key,
                                           r[i].value, NULL, 0),
                         0);
        l->records++;
        l->tombstones += r[i].value.len < 0;
    }
    assert_int_equal(batch_builder_finish(b, &l->batches[partition]), 0);
    batch_builder_free(b);
    l->appends++;
}

static void bench_ack(struct task *t)
{
    struct group_append *a = container_of(t, struct group_append, task);
    a->done(a);
}

static void bench_append(struct group_log *log, struct group_append *a,
                         const struct group_record *r, int n)
{
    struct bench_log *l = container_of(log, struct bench_log, log);
    a->error = l->next_error;
    a->base_offset = -1;
    l->next_error = KERR_NONE;
    if (a->error == KERR_NONE) {
        a->base_offset = l->end[a->partition];
        bench_write(l, a->partition, a->producer_id, a->producer_epoch, r, n);
    }
    task_init(&a->task, bench_ack);
    list_init(&a->link);
    if (l->hold)
        list_push_back(&l->held, &a->link);
    else
        executor_post(l->ex, &a->task);
}

static enum kerr bench_append_now(struct group_log *log, int32_t partition,
                                  const struct group_record *r, int n)
{
    struct bench_log *l = container_of(log, struct bench_log, log);
    enum kerr e = l->next_error;
    l->next_error = KERR_NONE;
    if (e == KERR_NONE)
        bench_write(l, partition, -1, -1, r, n);
    return e;
}

static const struct group_log_ops bench_log_ops = {bench_append, bench_append_now};

#endif
