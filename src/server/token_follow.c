/* token_follow.c - see token_follow.h. */
#include "server/token_follow.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/logline.h"
#include "metadata/change_notices.h"
#include "metadata/flow.h"

static const char component[] = "DelegationTokens";

enum { AGAIN_MS = 1000 };

struct token_follow {
    struct flow flow; /* reads all again */
    struct store *store;
    struct executor *ex;
    const struct clock *clock;
    struct tokens *tokens;
    struct change_notices *notices;
    struct task start_task, again_task;
    atomic_bool asked; /* again_task is posted */
    struct timer again_timer;
    int refs;         /* the reader of notices, the flow while it runs, tasks, the owner */
    bool busy, again; /* the flow */
    bool closing;
};

static void unref(struct token_follow *f)
{
    if (--f->refs == 0)
        free(f);
}

/* ---- one token ---- */

/* What the store answered to a GET of the token's node. 0, or what makes it worth another try. */
static int take(struct tokens *t, struct str id, int status, struct bytes data)
{
    struct arena a;
    struct token_info info;
    if (status == -ENOENT) {
        tokens_remove(t, id);
        return 0;
    }
    if (status)
        return status;
    arena_init(&a, 0);
    int rc = token_node_decode(data, &a, &info);
    if (!rc && !str_eq(info.id, id))
        rc = -EBADMSG;
    if (rc == -EBADMSG) {
        say_error(component,
                  PATH_TOKENS "/%.*s is no token that this broker can read: it counts "
                              "as none, and stays",
                  STR_ARG(id));
        tokens_remove(t, id);
        rc = 0;
    } else if (!rc) {
        rc = tokens_put(t, &info);
    }
    arena_free(&a);
    return rc;
}

/* ---- all of them ---- */

static struct token_follow *follow_of(struct flow *flow)
{
    return container_of(flow, struct token_follow, flow);
}

static struct str id_of_path(const char *path)
{
    return str_of(path + sizeof(PATH_TOKENS "/") - 1);
}

static void add_get(struct store_batch *ask, struct str id, struct arena *a)
{
    char *path = token_node_path(id, a);
    if (path)
        store_batch_add(ask, store_op_get(path, false));
    else
        ask->failed = true;
}

static void list_ids(struct flow *flow)
{
    store_batch_add(flow_ask(flow), store_op_children(PATH_TOKENS, false));
}

/* Those that are there, and those that were: they may be gone. */
static void read_nodes(struct flow *flow)
{
    struct token_follow *f = follow_of(flow);
    struct token_info *known;
    int n;
    if (tokens_list(f->tokens, &flow->arena, &known, &n) != 0) {
        flow_fail(flow, -ENOMEM);
        return;
    }
    store_batch_each (r, flow_answers(flow)) {
        if (r->status && r->status != -ENOENT)
            flow_fail(flow, r->status);
        for (int i = 0; !r->status && i < r->ops[0].names_n; i++)
            add_get(flow_ask(flow), str_of(r->ops[0].names[i]), &flow->arena);
    }
    for (int i = 0; i < n; i++)
        add_get(flow_ask(flow), known[i].id, &flow->arena);
}

static void take_nodes(struct flow *flow)
{
    struct token_follow *f = follow_of(flow);
    store_batch_each (r, flow_answers(flow)) {
        int rc = take(f->tokens, id_of_path(r->ops[0].path), r->status, r->ops[0].result);
        if (rc)
            flow_fail(flow, rc);
    }
}

static const flow_step steps[] = {list_ids, read_nodes, take_nodes, NULL};

static void read_all(struct token_follow *f);

static void later(struct token_follow *f)
{
    if (!f->closing)
        executor_timer_start(f->ex, &f->again_timer, AGAIN_MS);
}

static void all_read(struct flow *flow)
{
    struct token_follow *f = follow_of(flow);
    f->busy = false;
    if (flow->error && flow->error != -ESTALE && !f->closing) {
        say_error(component, "reading all tokens again: %s", strerror(-flow->error));
        later(f);
    }
    if (f->again && !f->closing)
        read_all(f);
    unref(f);
}

static void read_all(struct token_follow *f)
{
    f->again = f->busy;
    if (f->busy)
        return;
    f->busy = true;
    f->refs++;
    flow_start(&f->flow, f->store, f->ex, steps, all_read);
}

static void try_again(struct timer *t)
{
    read_all(container_of(t, struct token_follow, again_timer));
}

static void session_changed(void *arg, enum store_session state)
{
    if (state == STORE_CONNECTED)
        read_all(arg);
}

static void on_again(struct task *t)
{
    struct token_follow *f = container_of(t, struct token_follow, again_task);
    atomic_store(&f->asked, false);
    if (!f->closing)
        read_all(f);
}

void token_follow_again(struct token_follow *f)
{
    if (!atomic_exchange(&f->asked, true))
        executor_post(f->ex, &f->again_task);
}

/* ---- notices ---- */

static int decode_notice(struct bytes data, struct arena *a, struct str *id)
{
    struct str text = {(const char *)data.p, data.len};
    if (!token_id_ok(text))
        return -EBADMSG;
    *id = arena_str(a, text);
    return id->p ? 0 : -ENOMEM;
}

static bool wants_data(void *arg, struct str id)
{
    (void)arg, (void)id;
    return true;
}

static void on_data(void *arg, struct str id, int status, struct bytes data)
{
    struct token_follow *f = arg;
    if (take(f->tokens, id, status, data) != 0)
        later(f);
}

static void on_closed(void *arg)
{
    unref(arg);
}

static int follow_notices(struct token_follow *f)
{
    struct change_notices_options o = {.store = f->store,
                                       .ex = f->ex,
                                       .clock = f->clock,
                                       .component = component,
                                       .dir = PATH_TOKEN_CHANGES,
                                       .name_prefix = TOKEN_CHANGE_PREFIX,
                                       .node_prefix = PATH_TOKENS "/",
                                       .decode = decode_notice,
                                       .wants_data = wants_data,
                                       .data = on_data,
                                       .closed = on_closed,
                                       .arg = f};
    int rc = change_notices_new(&o, &f->notices);
    if (rc)
        return rc;
    f->refs++;
    change_notices_start(f->notices);
    return 0;
}

/* ---- life ---- */

static int load(struct store *s, struct tokens *t, struct arena *a)
{
    struct store_op list = store_op_children(PATH_TOKENS, false);
    struct store_request r = {.ops = &list, .ops_n = 1};
    struct store_batch ask;
    store_batch_init(&ask, a);
    int rc = store_run(s, &r);
    for (int i = 0; !rc && i < list.names_n; i++)
        add_get(&ask, str_of(list.names[i]), a);
    if (!rc)
        rc = store_batch_run(&ask, s);
    if (!rc)
        store_batch_each (one, &ask)
            if (!rc)
                rc = take(t, id_of_path(one->ops[0].path), one->status, one->ops[0].result);
    store_batch_clear(&ask);
    store_request_clear(&r);
    return rc;
}

int token_follow_load(struct store *s, struct tokens *t)
{
    struct arena a;
    arena_init(&a, 0);
    int rc = store_create_path(s, PATH_TOKENS, BYTES_NULL, NULL);
    if (!rc)
        rc = store_create_path(s, PATH_TOKEN_CHANGES, BYTES_NULL, NULL);
    if (!rc)
        rc = load(s, t, &a);
    arena_free(&a);
    return rc;
}

int token_follow_new(struct store *s, struct executor *ex, const struct clock *clock,
                     struct tokens *t, struct token_follow **out)
{
    struct token_follow *f = calloc(1, sizeof(*f));
    *out = f;
    if (!f)
        return -ENOMEM;
    f->store = s;
    f->ex = ex;
    f->clock = clock;
    f->tokens = t;
    f->refs = 1;
    timer_init(&f->again_timer, try_again);
    task_init(&f->again_task, on_again);
    return 0;
}

static void start(struct task *t)
{
    struct token_follow *f = container_of(t, struct token_follow, start_task);
    int rc = f->closing ? 0 : store_on_session(f->store, f->ex, session_changed, f);
    if (!rc && !f->closing)
        rc = follow_notices(f);
    if (rc)
        say_error(component, "cannot follow changes of tokens: %s", strerror(-rc));
    unref(f);
}

void token_follow_start(struct token_follow *f)
{
    f->refs++; /* nobody else knows of it yet */
    task_init(&f->start_task, start);
    executor_post(f->ex, &f->start_task);
}

void token_follow_close(struct token_follow *f)
{
    if (!f)
        return;
    f->closing = true;
    store_off_session(f->store, session_changed, f);
    executor_timer_stop(f->ex, &f->again_timer);
    if (f->notices)
        change_notices_close(f->notices);
    if (f->busy)
        flow_cancel(&f->flow, -ECANCELED);
    unref(f);
}
