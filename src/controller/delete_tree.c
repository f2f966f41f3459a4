/* delete_tree.c - deleting nodes with all that is below them: listed level by level, deleted from
 * the last level up, each under the fence. */
#include "controller/controller_private.h"

void job_add_path(struct flow *f, struct path_list *l, char *path)
{
    if (path && l->n == l->cap) {
        int cap = l->cap ? l->cap * 2 : 64;
        char **v = arena_array(&f->arena, char *, (size_t)cap);
        if (v) {
            if (l->n)
                memcpy(v, l->v, (size_t)l->n * sizeof(*v));
            l->v = v;
            l->cap = cap;
        }
    }
    if (!path || l->n == l->cap)
        flow_fail(f, -ENOMEM);
    else
        l->v[l->n++] = path;
}

struct doomed {
    struct job job;
    int roots;            /* the first paths are what the caller named */
    struct path_list all; /* parents before children */
    int listed;           /* of them, those whose children were asked for */
};

static struct doomed *doomed_of(struct flow *f)
{
    return container_of(job_of(f), struct doomed, job);
}

static void list_level(struct flow *f)
{
    struct doomed *d = doomed_of(f);
    for (; d->listed < d->all.n; d->listed++)
        job_ask(f, store_op_children(d->all.v[d->listed], false));
}

static void next_level(struct flow *f)
{
    struct doomed *d = doomed_of(f);
    if (!job_answered(f))
        return;
    store_batch_each (r, flow_answers(f))
        for (int i = 0; i < r->ops[0].names_n; i++)
            job_add_path(f, &d->all,
                         arena_printf(&f->arena, "%s/%s", r->ops[0].path, r->ops[0].names[i]));
    if (d->listed < d->all.n)
        flow_goto(f, list_level);
}

static void delete_all(struct flow *f)
{
    struct doomed *d = doomed_of(f);
    for (int i = d->all.n; i-- > 0;)
        job_ask_fenced(f, store_op_delete(d->all.v[i], STORE_ANY_VERSION));
}

static void look_at_deletes(struct flow *f)
{
    struct doomed *d = doomed_of(f);
    if (!job_answered(f))
        return;
    bool again = false;
    store_batch_each (r, flow_answers(f)) {
        int status = job_status(r);
        if (status == -ENOTEMPTY) /* somebody made a child meanwhile */
            again = true;
        else if (status && status != -ENOENT)
            flow_fail(f, status);
    }
    if (!again)
        return;
    d->all.n = d->roots;
    d->listed = 0;
    flow_goto(f, list_level);
}

static const flow_step steps[] = {list_level, next_level, delete_all, look_at_deletes, NULL};

void delete_trees(struct flow *f, struct path_list l)
{
    struct doomed *d = l.n ? arena_new(&f->arena, struct doomed) : NULL;
    if (l.n && !d)
        flow_fail(f, -ENOMEM);
    if (!d)
        return;
    d->job.c = controller_of(f);
    d->all = l;
    d->roots = l.n;
    job_call(f, &d->job, steps);
}
