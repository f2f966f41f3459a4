/* control_gate.c - see control_gate.h.
 *
 * ORDER  a server of ZooKeeper may lag behind; a check (which goes through its leader) before the
 *        read makes the read see what was there when it was asked. */
#include "server/control_gate.h"

#include "metadata/paths.h"
#include "metadata/znode.h"

enum { WAIT_MS = 10000 };

void control_gate_init(struct control_gate *g, struct store *store)
{
    g->store = store;
    atomic_init(&g->epoch, 0);
}

bool control_gate_knows(const struct control_gate *g, int32_t epoch)
{
    return epoch <= atomic_load(&g->epoch);
}

static void on_checked(struct store_request *r)
{
    store_request_clear(r);
}

static void note(struct control_gate *g, int32_t epoch)
{
    int known = atomic_load(&g->epoch);
    while (epoch > known && !atomic_compare_exchange_weak(&g->epoch, &known, epoch))
        ;
}

static void on_read(struct store_request *r)
{
    struct control_ask *a = r->user;
    int status = r->status;
    int32_t epoch = 0;
    if (status == 0 && znode_epoch_decode(a->ops[1].result, &epoch) == 0)
        note(a->gate, epoch);
    store_request_clear(r);
    bool unknown = status != 0 && status != -ENOENT;
    a->done(a, unknown || control_gate_knows(a->gate, a->epoch));
}

void control_gate_ask(struct control_gate *g, struct control_ask *a, struct executor *ex)
{
    int64_t deadline = executor_now_ms(ex) + WAIT_MS;
    a->gate = g;
    a->ops[0] = store_op_check(PATH_CONTROLLER_EPOCH, STORE_ANY_VERSION);
    a->ops[1] = store_op_get(PATH_CONTROLLER_EPOCH, false);
    for (int i = 0; i < 2; i++)
        a->requests[i] = (struct store_request){.ops = &a->ops[i],
                                                .ops_n = 1,
                                                .done_on = ex,
                                                .done = i ? on_read : on_checked,
                                                .user = a,
                                                .deadline_ms = deadline};
    store_submit(g->store, &a->requests[0]);
    store_submit(g->store, &a->requests[1]);
}
