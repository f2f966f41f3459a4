/* handle_describe_log_dirs.c - DescribeLogDirs: each log dir with its logs, their sizes, and the
 * room on its disk. On a worker, since it asks the file system. */
#include <errno.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "protocol/msg/describe_log_dirs.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/index_set.h"
#include "server/request_later.h"

enum { DIRS_MAX = 1024 };

struct found_log {
    struct log_dir *dir;
    struct str topic; /* in the arena */
    int32_t partition;
    int64_t size, lag;
    bool future;
};

struct describe_op {
    struct request *req;
    const struct describe_log_dirs_request *in;
    struct describe_log_dirs_response out;
    struct job job;
    struct topic_partition *asked; /* NULL = all */
    int32_t asked_n;
    struct index_set by_hash; /* of asked */
    struct found_log *found;
    int n, room;
    bool exhausted;
};

/* ---- which logs ---- */

static bool same_log(const void *arg, int32_t a, int32_t b)
{
    const struct topic_partition *v = arg;
    return topic_partition_eq(v[a], v[b]);
}

/* All partitions asked for, to be found by hash. One more place is the one that is looked for. */
static bool gather_asked(struct describe_op *op)
{
    int n = 0;
    if (op->in->topics.n < 0)
        return true;
    for (int32_t t = 0; t < op->in->topics.n; t++)
        n += op->in->topics.v[t].partitions.n;
    op->asked = arena_array(op->req->arena, struct topic_partition, (size_t)n + 1);
    if (!op->asked || !index_set_init(&op->by_hash, op->req->arena, n + 1))
        return false;
    for (int32_t t = 0; t < op->in->topics.n; t++) {
        const struct describe_log_dirs_request_topic *from = &op->in->topics.v[t];
        for (int32_t i = 0; i < from->partitions.n; i++) {
            struct topic_partition tp = {from->topic, from->partitions.v[i]};
            op->asked[op->asked_n] = tp;
            index_set_put(&op->by_hash, topic_partition_hash(tp), op->asked_n++, same_log,
                          op->asked);
        }
    }
    return true;
}

static bool wanted(struct describe_op *op, struct topic_partition tp)
{
    if (!op->asked)
        return true;
    op->asked[op->asked_n] = tp;
    return index_set_find(&op->by_hash, topic_partition_hash(tp), op->asked_n, same_log,
                          op->asked) >= 0;
}

/* How far it is behind what is committed, or, as a copy, behind the log that it copies. */
static int64_t lag_of(struct describe_op *op, struct log *log)
{
    if (!log_is_future(log))
        return log_high_watermark(log) - log_end_offset(log);
    struct log *current = log_manager_find(broker_logs(op->req->broker), log_topic_partition(log));
    int64_t lag = current ? log_end_offset(current) - log_end_offset(log) : 0;
    log_unref(current);
    return lag;
}

static void add_log(void *arg, struct log *log)
{
    struct describe_op *op = arg;
    struct topic_partition tp = log_topic_partition(log);
    if (op->exhausted || op->n == op->room || log_offline(log) || !wanted(op, tp))
        return;
    struct str topic = arena_str(op->req->arena, tp.topic);
    if (!topic.p) {
        op->exhausted = true;
        return;
    }
    int64_t lag = lag_of(op, log);
    op->found[op->n++] = (struct found_log){.dir = log_dir_of(log),
                                            .topic = topic,
                                            .partition = tp.partition,
                                            .size = log_size(log),
                                            .lag = lag > 0 ? lag : 0,
                                            .future = log_is_future(log)};
}

/* By dir, then topic, then number. */
static int compare(const void *x, const void *y)
{
    const struct found_log *a = x, *b = y;
    if (a->dir != b->dir)
        return (uintptr_t)a->dir < (uintptr_t)b->dir ? -1 : 1;
    int by_topic = str_cmp(a->topic, b->topic);
    return by_topic ? by_topic : (a->partition > b->partition) - (a->partition < b->partition);
}

/* ---- the answer ---- */

static void put_topic(struct describe_op *op, const struct found_log *first, int n,
                      struct describe_log_dirs_response_topic *out)
{
    out->name = first->topic;
    out->partitions.v = describe_log_dirs_response_partition_new(op->req->arena, n);
    if (!out->partitions.v) {
        op->exhausted = true;
        return;
    }
    out->partitions.n = n;
    for (int i = 0; i < n; i++) {
        out->partitions.v[i].partition_index = first[i].partition;
        out->partitions.v[i].partition_size = first[i].size;
        out->partitions.v[i].offset_lag = first[i].lag;
        out->partitions.v[i].is_future_key = first[i].future;
    }
}

static bool same_group(const struct found_log *a, const struct found_log *b)
{
    return a->dir == b->dir && str_eq(a->topic, b->topic);
}

static void put_topics(struct describe_op *op, const struct log_dir *dir,
                       struct describe_log_dirs_response_result *out)
{
    int first = 0, topics = 0;
    while (first < op->n && op->found[first].dir != dir)
        first++;
    for (int i = first; i < op->n && op->found[i].dir == dir; i++)
        topics += i == first || !same_group(&op->found[i - 1], &op->found[i]);
    out->topics.v = describe_log_dirs_response_topic_new(op->req->arena, topics);
    op->exhausted |= !out->topics.v;
    for (int i = first; !op->exhausted && out->topics.n < topics;) {
        int n = 1;
        while (i + n < op->n && same_group(&op->found[i], &op->found[i + n]))
            n++;
        put_topic(op, &op->found[i], n, &out->topics.v[out->topics.n++]);
        i += n;
    }
}

static int64_t bytes_of(uint64_t blocks, uint64_t size)
{
    uint64_t n;
    return __builtin_mul_overflow(blocks, size, &n) || n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static void put_dir(struct describe_op *op, struct log_dir *dir,
                    struct describe_log_dirs_response_result *out)
{
    struct statvfs room;
    out->log_dir = str_of(log_dir_path(dir));
    if (log_dir_offline(dir)) {
        out->error_code = KERR_KAFKA_STORAGE_ERROR;
        return;
    }
    if (statvfs(log_dir_path(dir), &room) == 0) {
        out->total_bytes = bytes_of(room.f_blocks, room.f_frsize);
        out->usable_bytes = bytes_of(room.f_bavail, room.f_frsize);
    }
    put_topics(op, dir, out);
}

static void work(struct job *job)
{
    struct describe_op *op = container_of(job, struct describe_op, job);
    struct log_manager *logs = broker_logs(op->req->broker);
    struct log_dir *dirs[DIRS_MAX];
    int n = log_manager_dirs(logs, dirs, DIRS_MAX);
    n = n < DIRS_MAX ? n : DIRS_MAX;
    /* Those made meanwhile are left out. Each may have a copy. */
    op->room = log_manager_count(logs) * 2;
    op->found = arena_array(op->req->arena, struct found_log, (size_t)op->room);
    op->out.results.v = describe_log_dirs_response_result_new(op->req->arena, n);
    op->exhausted = !op->found || !op->out.results.v || !gather_asked(op);
    if (op->exhausted)
        return;
    op->out.results.n = n;
    log_manager_each(logs, add_log, op);
    log_manager_each_future(logs, add_log, op);
    qsort(op->found, (size_t)op->n, sizeof(*op->found), compare);
    for (int i = 0; i < n && !op->exhausted; i++)
        put_dir(op, dirs[i], &op->out.results.v[i]);
}

static void worked(struct job *job)
{
    struct describe_op *op = container_of(job, struct describe_op, job);
    struct broker *b = op->req->broker;
    if (op->exhausted)
        request_no_memory(op->req);
    else
        request_respond(op->req, &op->out);
    broker_async_end(b);
}

void handle_describe_log_dirs(struct request *req)
{
    struct describe_op *op = arena_new(req->arena, struct describe_op);
    if (!op) {
        request_no_memory(req);
        return;
    }
    op->req = req;
    op->in = req->body;
    describe_log_dirs_response_init(&op->out);
    request_work(req, &op->job, work, worked);
}
