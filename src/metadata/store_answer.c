/* store_answer.c - see store_answer.h. */
#include "metadata/store_answer.h"

bool store_request_well_formed(const struct store_request *r)
{
    if (!r->multi)
        return r->ops_n == 1 && r->ops[0].type <= STORE_CHILDREN;
    for (int i = 0; i < r->ops_n; i++)
        if (r->ops[i].type > STORE_CHECK)
            return false;
    return r->ops_n > 0;
}

void store_request_reset(struct store_request *r)
{
    r->status = 0;
    list_init(&r->told);
    for (int i = 0; i < r->ops_n; i++) {
        r->ops[i].status = 0;
        r->ops[i].result = BYTES_NULL;
        r->ops[i].names = NULL;
        r->ops[i].names_n = 0;
    }
}

void store_request_refuse(struct store_request *r, int status)
{
    store_request_clear(r);
    for (int i = 0; i < r->ops_n; i++)
        r->ops[i].status = status;
    r->status = status;
}

static void run_done(struct task *t)
{
    struct store_request *r = container_of(t, struct store_request, task);
    r->done(r);
}

void store_request_answer(struct store_request *r)
{
    task_init(&r->task, run_done);
    executor_post(r->done_on, &r->task);
}
