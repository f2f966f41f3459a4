/* request_configure.c - see request_later.h. Apart from it, so that handlers which change no
 * settings do not bring the whole broker with them. */
#include "server/broker.h"
#include "server/entity_configs.h"
#include "server/request_later.h"

void request_configure(struct request *req, struct control_op *op,
                       void (*work)(struct control_op *op), void (*done)(struct control_op *op))
{
    op->work = work;
    op->done = done;
    op->done_on = request_executor(req);
    broker_async_begin(req->broker);
    entity_configs_submit(req->broker, op);
}
