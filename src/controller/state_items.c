/* state_items.c - see state_items.h. */
#include "controller/state_items.h"

enum { MULTI_ITEMS = 64, MULTI_BYTES = 1 << 17 };

/* What the answer to a multi is for. Each item has `each` operations, its state's is the last. */
struct multi {
    int n, each;
    struct state_item *items[MULTI_ITEMS];
};

/* A multi while it is filled: the fence, then the items' operations. */
struct filling {
    struct multi what;
    enum state_phase phase; /* of all its items */
    int ops_n;
    size_t bytes;
    struct store_op ops[1 + 2 * MULTI_ITEMS];
};

struct partition_node state_known(const struct ctl_partition *p)
{
    return (struct partition_node){.controller_epoch = p->controller_epoch,
                                   .leader = p->leader,
                                   .leader_epoch = p->leader_epoch,
                                   .isr = p->isr,
                                   .recovering = p->recovering};
}

void state_write(struct state_item *it, struct partition_node node, int32_t epoch)
{
    it->node = node;
    it->epoch = epoch;
    it->phase = STATE_WRITE;
}

static char *state_path(struct flow *f, const struct ctl_partition *p)
{
    return path_state(&f->arena, p->topic->name, p->number);
}

/* Asking. */

static void ask_read(struct flow *f, struct state_item *it)
{
    struct store_request *r = job_ask(f, store_op_get(state_path(f, it->partition), false));
    if (r)
        r->user = it;
}

static void send_multi(struct flow *f, struct filling *m)
{
    if (!m->what.n || f->error)
        return;
    struct multi *what = arena_new(&f->arena, struct multi);
    struct store_request *r = what ? store_batch_add_multi(flow_ask(f), m->ops, m->ops_n) : NULL;
    if (r) {
        *what = m->what;
        r->user = what;
    } else {
        flow_fail(f, -ENOMEM);
    }
    m->what.n = 0;
}

static void add_op(struct flow *f, struct filling *m, struct store_op op)
{
    m->ops[m->ops_n++] = op;
    if (op.path)
        m->bytes += strlen(op.path) + (op.data.len > 0 ? (size_t)op.data.len : 0);
    else
        flow_fail(f, -ENOMEM);
}

/* The node above a state; the topic's "partitions", once for all its partitions in a row. These may
 * be there already. */
static void ask_parents(struct flow *f, const struct state_item *it,
                        const struct state_item *before)
{
    const struct ctl_topic *t = it->partition->topic;
    if (!before || before->partition->topic != t)
        job_ask_fenced(f, store_op_create(path_partitions(&f->arena, t->name), BYTES_NULL, 0));
    if (it->alone)
        job_ask_fenced(f, store_op_create(path_partition(&f->arena, t->name, it->partition->number),
                                          BYTES_NULL, 0));
}

static void add_item(struct flow *f, struct filling *m, struct state_item *it)
{
    struct bytes data = znode_partition_encode(&it->node, &f->arena);
    if (!data.p) {
        flow_fail(f, -ENOMEM);
        return;
    }
    if (!m->what.n) {
        m->phase = it->phase;
        m->what.each = it->phase == STATE_CREATE && !it->alone ? 2 : 1;
        m->bytes = 0;
        m->ops_n = 0;
        m->ops[m->ops_n++] = store_op_check(PATH_CONTROLLER_EPOCH, controller_of(f)->epoch_version);
    }
    m->what.items[m->what.n++] = it;
    const struct ctl_partition *p = it->partition;
    if (m->what.each == 2)
        add_op(
            f, m,
            store_op_create(path_partition(&f->arena, p->topic->name, p->number), BYTES_NULL, 0));
    add_op(f, m,
           it->phase == STATE_WRITE ? store_op_set(state_path(f, p), data, it->epoch)
                                    : store_op_create(state_path(f, p), data, 0));
}

bool state_ask(struct flow *f, struct state_item *items, int n)
{
    struct filling m = {.what.n = 0};
    const struct state_item *created = NULL;
    bool any = false;
    for (int i = 0; i < n && !f->error; i++) {
        struct state_item *it = &items[i];
        any |= it->phase != STATE_OVER;
        if (it->phase == STATE_READ)
            ask_read(f, it);
        if (it->phase != STATE_CREATE && it->phase != STATE_WRITE)
            continue;
        bool full = m.what.n == MULTI_ITEMS || m.bytes > MULTI_BYTES;
        if (full || it->alone || it->phase != m.phase)
            send_multi(f, &m);
        if (it->phase == STATE_CREATE) {
            ask_parents(f, it, created);
            created = it;
        }
        add_item(f, &m, it);
        if (it->alone)
            send_multi(f, &m);
    }
    send_multi(f, &m);
    return any;
}

/* Answers. */

static void give_up(struct flow *f, struct state_item *it, const char *what)
{
    const struct ctl_partition *p = it->partition;
    say_error(controller_of(f)->component, "the state of partition %.*s-%d %s",
              STR_ARG(p->topic->name), p->number, what);
    it->phase = STATE_OVER;
}

static void take_read(struct flow *f, const struct store_request *r,
                      const struct state_answers *how)
{
    struct state_item *it = r->user;
    const struct controller *c = controller_of(f);
    struct partition_node now;
    if (r->status)
        give_up(f, it, "is missing");
    else if (znode_partition_decode(r->ops[0].result, &f->arena, &now))
        give_up(f, it, "is malformed");
    else if (now.controller_epoch > c->epoch)
        give_up(f, it, "was written by a later controller");
    else
        how->read(f, it, &now, r->ops[0].stat.version);
}

/* By itself. An earlier controller may have come as far; the leader may have changed the ISR. */
static void take_failed(struct flow *f, struct state_item *it, int status)
{
    if (status == -EEXIST || status == STORE_BAD_VERSION)
        it->phase = STATE_READ;
    else
        give_up(f, it, status == -ENOENT ? "has no place: its topic is gone" : "cannot be written");
}

static void take_multi(struct flow *f, const struct store_request *r,
                       const struct state_answers *how)
{
    const struct multi *m = r->user;
    for (int i = 0; i < m->n && !f->error; i++) {
        struct state_item *it = m->items[i];
        const struct store_op *op = &r->ops[(i + 1) * m->each];
        if (!r->status)
            how->written(f, it, op->type == STORE_SET ? op->stat.version : 0);
        else if (it->alone || (m->n == 1 && m->each == 1))
            take_failed(f, it, op->status);
        else
            it->alone = true;
    }
}

void state_take(struct flow *f, const struct state_answers *how)
{
    if (!job_answered(f))
        return;
    store_batch_each (r, flow_answers(f)) {
        if (f->error)
            return;
        if (!r->multi)
            take_read(f, r, how);
        else if (r->user)
            take_multi(f, r, how);
        /* else a node above a state: if it is not there, the state's own answer tells */
    }
}
