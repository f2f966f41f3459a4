/* handle_alter_replica_log_dirs.c - AlterReplicaLogDirs: replicas of this broker are to lie in
 * other log dirs. The answer says whether a move has begun, not that it is over. On a worker. */
#include "protocol/msg/alter_replica_log_dirs.h"
#include "replica/log_mover.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/request_later.h"

struct alter_op {
    struct request *req;
    const struct alter_replica_log_dirs_request *in;
    struct alter_replica_log_dirs_response out; /* a result for each topic of each dir */
    struct job job;
};

static void work(struct job *job)
{
    struct alter_op *op = container_of(job, struct alter_op, job);
    struct alter_replica_log_dirs_response_result *result = op->out.results.v;
    for (int32_t d = 0; d < op->in->dirs.n; d++) {
        struct str path = arena_str(op->req->arena, op->in->dirs.v[d].path);
        for (int32_t t = 0; t < op->in->dirs.v[d].topics.n; t++, result++) {
            for (int32_t i = 0; i < result->partitions.n; i++) {
                struct topic_partition tp = {result->topic_name,
                                             result->partitions.v[i].partition_index};
                result->partitions.v[i].error_code =
                    (int16_t)(path.p ? log_mover_move(broker_log_mover(op->req->broker), tp, path.p)
                                     : KERR_UNKNOWN_SERVER_ERROR);
            }
        }
    }
}

static void worked(struct job *job)
{
    struct alter_op *op = container_of(job, struct alter_op, job);
    struct broker *b = op->req->broker;
    request_respond(op->req, &op->out);
    broker_async_end(b);
}

static bool lay_out(struct alter_op *op)
{
    struct arena *a = op->req->arena;
    int32_t n = 0;
    for (int32_t d = 0; d < op->in->dirs.n; d++)
        n += op->in->dirs.v[d].topics.n;
    alter_replica_log_dirs_response_init(&op->out);
    op->out.results.v = alter_replica_log_dirs_response_result_new(a, n);
    op->out.results.n = n;
    struct alter_replica_log_dirs_response_result *to = op->out.results.v;
    for (int32_t d = 0; to && d < op->in->dirs.n; d++) {
        for (int32_t t = 0; t < op->in->dirs.v[d].topics.n; t++, to++) {
            const struct alter_replica_log_dirs_request_topic *from =
                &op->in->dirs.v[d].topics.v[t];
            to->topic_name = from->name;
            to->partitions.v = alter_replica_log_dirs_response_partition_new(a, from->partitions.n);
            to->partitions.n = from->partitions.n;
            if (!to->partitions.v)
                return false;
            for (int32_t i = 0; i < from->partitions.n; i++) {
                to->partitions.v[i].partition_index = from->partitions.v[i];
                to->partitions.v[i].error_code = (int16_t)op->req->refused;
            }
        }
    }
    return op->out.results.v != NULL;
}

void handle_alter_replica_log_dirs(struct request *req)
{
    struct alter_op *op = arena_new(req->arena, struct alter_op);
    if (op) {
        op->req = req;
        op->in = req->body;
    }
    if (!op || !lay_out(op)) {
        request_no_memory(req);
        return;
    }
    if (req->refused != KERR_NONE)
        request_respond(req, &op->out);
    else
        request_work(req, &op->job, work, worked);
}
