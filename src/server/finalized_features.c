#include "server/finalized_features.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "metadata/paths.h"
#include "metadata/znode.h"

struct finalized_features {
    struct store *store;
    struct executor *ex;
    _Atomic int64_t epoch;
    /* the executor's */
    struct store_watch watch;
    struct store_request read;
    struct store_op op;
    struct task begin;
    bool reading, changed, ended;
};

static void read_node(struct finalized_features *f);
static void submit(struct finalized_features *f, struct store_op op);

static void on_read(struct store_request *r)
{
    struct finalized_features *f = container_of(r, struct finalized_features, read);
    int32_t version, status;
    bool absent = r->status == -ENOENT, looked = f->op.type == STORE_EXISTS;
    if (!looked) {
        bool there =
            !r->status && !znode_feature_decode(f->op.result, &version, &status) && status == 1;
        atomic_store(&f->epoch, there ? f->op.stat.version : -1);
    }
    store_request_clear(r);
    f->reading = false;
    if (f->changed || (looked && !absent))
        read_node(f);
    else if (absent && !looked && !f->ended) /* reading what is absent does not watch it */
        submit(f, store_op_exists(PATH_FEATURE, true));
}

static void submit(struct finalized_features *f, struct store_op op)
{
    f->reading = true;
    f->op = op;
    f->read = (struct store_request){.ops = &f->op, .ops_n = 1, .done_on = f->ex, .done = on_read};
    store_submit(f->store, &f->read);
}

static void read_node(struct finalized_features *f)
{
    f->changed = f->reading;
    if (!f->ended && !f->reading)
        submit(f, store_op_get(PATH_FEATURE, true));
}

static void on_change(struct store_watch *w)
{
    read_node(container_of(w, struct finalized_features, watch));
}

static void on_begin(struct task *t)
{
    read_node(container_of(t, struct finalized_features, begin));
}

int finalized_features_new(struct store *store, struct executor *ex,
                           struct finalized_features **out)
{
    struct finalized_features *f = *out = calloc(1, sizeof(*f));
    if (!f)
        return -ENOMEM;
    f->store = store;
    f->ex = ex;
    atomic_init(&f->epoch, -1);
    f->watch = (struct store_watch){.path = PATH_FEATURE, .on = ex, .fired = on_change};
    int rc = store_watch(store, &f->watch);
    if (rc) {
        free(f);
        *out = NULL;
        return rc;
    }
    task_init(&f->begin, on_begin);
    executor_post(ex, &f->begin);
    return 0;
}

int64_t finalized_features_epoch(const struct finalized_features *f)
{
    return f ? atomic_load(&f->epoch) : -1;
}

void finalized_features_end(struct finalized_features *f)
{
    if (!f)
        return;
    f->ended = true;
    store_unwatch(f->store, &f->watch);
}

void finalized_features_free(struct finalized_features *f)
{
    free(f);
}
