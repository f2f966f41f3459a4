/* job.c - what every job needs: lists, asking the store under the fence, looking over answers. */
#include "controller/controller_private.h"

struct job *job_new(struct flow *caller)
{
    struct job *j = arena_new(&caller->arena, struct job);
    if (!j) {
        flow_fail(caller, -ENOMEM);
        return NULL;
    }
    j->c = controller_of(caller);
    return j;
}

void job_call(struct flow *caller, struct job *j, const flow_step *steps)
{
    flow_call(caller, &j->flow, steps, NULL);
}

/* Room for one more element of `size`; false and a failed flow without memory. */
static bool room(struct flow *f, void **v, int n, int *cap, size_t size)
{
    if (n < *cap)
        return true;
    int more = *cap ? *cap * 2 : 16;
    void *bigger = arena_calloc(&f->arena, (size_t)more, size);
    if (!bigger) {
        flow_fail(f, -ENOMEM);
        return false;
    }
    if (n)
        memcpy(bigger, *v, (size_t)n * size);
    *v = bigger;
    *cap = more;
    return true;
}

void job_add_partition(struct flow *f, struct partition_list *l, struct ctl_partition *p)
{
    if (room(f, (void **)&l->v, l->n, &l->cap, sizeof(*l->v)))
        l->v[l->n++] = p;
}

void job_add_replica(struct flow *f, struct replica_list *l, struct ctl_partition *p,
                     struct ctl_replica *r)
{
    if (room(f, (void **)&l->v, l->n, &l->cap, sizeof(*l->v)))
        l->v[l->n++] = (struct ctl_replica_ref){p, r};
}

void job_add_topic(struct flow *f, struct topic_list *l, struct ctl_topic *t)
{
    if (room(f, (void **)&l->v, l->n, &l->cap, sizeof(*l->v)))
        l->v[l->n++] = t;
}

void job_add_topic_once(struct flow *f, struct topic_list *l, struct ctl_topic *t)
{
    if (t->listed_at < l->n && l->v[t->listed_at] == t)
        return;
    t->listed_at = l->n;
    job_add_topic(f, l, t);
}

void job_add_all_of_topic(struct flow *f, struct ctl_topic *t)
{
    struct job *j = job_of(f);
    for (int i = 0; i < t->partitions_n; i++) {
        struct ctl_partition *p = t->partitions[i];
        job_add_partition(f, &j->partitions, p);
        for (int k = 0; k < p->replicas_n; k++)
            job_add_replica(f, &j->replicas, p, &p->replicas[k]);
    }
}

struct store_request *job_ask(struct flow *f, struct store_op op)
{
    if (!op.path) {
        flow_fail(f, -ENOMEM);
        return NULL;
    }
    return store_batch_add(flow_ask(f), op);
}

struct store_request *job_ask_fenced(struct flow *f, struct store_op op)
{
    bool has_data = op.type != STORE_SET || op.data.p; /* an encoder without memory gives null */
    if (!op.path || !has_data) {
        flow_fail(f, -ENOMEM);
        return NULL;
    }
    return store_batch_add_checked(
        flow_ask(f), store_op_check(PATH_CONTROLLER_EPOCH, controller_of(f)->epoch_version), op);
}

const struct store_op *job_op(const struct store_request *r)
{
    return &r->ops[r->ops_n - 1];
}

int job_status(const struct store_request *r)
{
    return r->ops[r->ops_n - 1].status;
}

static bool fence_broken(const struct store_request *r)
{
    int check = r->ops[0].status;
    return r->multi && (check == STORE_BAD_VERSION || check == -ENOENT);
}

bool job_answered(struct flow *f)
{
    store_batch_each (r, flow_answers(f)) {
        if (fence_broken(r)) {
            flow_fail(f, CONTROLLER_MOVED);
            return false;
        }
        if (r->status == -ESTALE || r->status == -EIO || r->status == -ENOMEM) {
            flow_fail(f, r->status);
            return false;
        }
    }
    return true;
}
