/* elect.c - becoming the controller: whoever makes /controller (ephemeral) and raises
 * /controller_epoch in the same transaction.
 *
 * An answer may have been lost with the connection, so a failure of that transaction is looked
 * into: if both nodes are as we would have made them, we made them. */
#include "controller/controller_private.h"

static struct store_request *nth_answer(struct flow *f, int n)
{
    struct store_request *r = store_batch_first(flow_answers(f));
    while (n-- > 0 && r)
        r = store_batch_next(flow_answers(f), r);
    return r;
}

/* Node changes are watched whether it is there or not. */
static void ask_controller(struct flow *f)
{
    job_ask(f, store_op_exists(PATH_CONTROLLER, true));
    job_ask(f, store_op_get(PATH_CONTROLLER, false));
}

/* Who is it? -1 nobody. */
static int32_t controller_in(const struct store_request *r)
{
    struct controller_node node;
    if (r->status || znode_controller_decode(r->ops[0].result, &node))
        return -1;
    return node.broker;
}

static void see_controller(struct flow *f)
{
    struct controller *c = controller_of(f);
    if (!job_answered(f))
        return;
    struct store_request *r = nth_answer(f, 1);
    c->seen = controller_in(r);
    if (atomic_load(&c->active) && c->seen != c->o.broker_id)
        controller_resign(c, "another broker is the controller");
    if (!r->status)
        flow_end(f);
}

static void ask_epoch(struct flow *f)
{
    job_ask(f, store_op_get(PATH_CONTROLLER_EPOCH, false));
}

static void see_epoch(struct flow *f)
{
    struct job *j = job_of(f);
    if (!job_answered(f))
        return;
    struct store_request *r = nth_answer(f, 0);
    if (r->status == -ENOENT) {
        job_ask(f, store_op_create(PATH_CONTROLLER_EPOCH, znode_epoch_encode(0, &f->arena), 0));
        return;
    }
    if (r->status || znode_epoch_decode(r->ops[0].result, &j->epoch)) {
        say_error(j->c->component, PATH_CONTROLLER_EPOCH " is malformed");
        flow_fail(f, r->status ? r->status : -EBADMSG);
        return;
    }
    j->epoch_version = r->ops[0].stat.version;
}

/* After an attempt to make the epoch's node: whoever made it, it is read (again). */
static void see_epoch_made(struct flow *f)
{
    if (!store_batch_first(flow_answers(f))) /* it was there */
        return;
    if (job_answered(f))
        flow_goto(f, ask_epoch);
}

static void stand(struct flow *f)
{
    struct job *j = job_of(f);
    struct controller_node me = {j->c->o.broker_id, clock_wall_ms(j->c->o.ex->clock), -1};
    struct store_op ops[] = {
        store_op_create(PATH_CONTROLLER, znode_controller_encode(&me, &f->arena), STORE_EPHEMERAL),
        store_op_set(PATH_CONTROLLER_EPOCH, znode_epoch_encode(j->epoch + 1, &f->arena),
                     j->epoch_version)};
    if (!ops[0].data.p || !ops[1].data.p)
        flow_fail(f, -ENOMEM);
    else
        store_batch_add_multi(flow_ask(f), ops, 2);
}

static void win(struct flow *f, int32_t epoch_version)
{
    struct job *j = job_of(f);
    struct controller *c = j->c;
    c->epoch = j->epoch + 1;
    c->epoch_version = epoch_version;
    c->seen = c->o.broker_id;
    c->reign++;
    atomic_store(&c->active, true);
    say_info(c->component, "elected, epoch %d", c->epoch);
    struct job *failover = job_new(f);
    if (failover)
        job_call(f, failover, failover_steps);
}

static void see_result(struct flow *f)
{
    struct store_request *r = nth_answer(f, 0);
    if (r->status == 0) {
        win(f, r->ops[1].stat.version);
        return;
    }
    if (r->status != -EEXIST && r->status != STORE_BAD_VERSION) {
        flow_fail(f, r->status);
        return;
    }
    job_ask(f, store_op_exists(PATH_CONTROLLER, true));
    job_ask(f, store_op_get(PATH_CONTROLLER, false));
    job_ask(f, store_op_get(PATH_CONTROLLER_EPOCH, false));
}

static void look_closer(struct flow *f)
{
    struct job *j = job_of(f);
    int32_t epoch;
    if (!store_batch_first(flow_answers(f))) /* won, and the failover is over */
        return;
    if (!job_answered(f))
        return;
    struct store_request *r = nth_answer(f, 1), *e = nth_answer(f, 2);
    j->c->seen = controller_in(r);
    if (r->status == 0 && r->ops[0].stat.owner == store_session_id(j->c->o.store) &&
        j->c->seen == j->c->o.broker_id && !e->status &&
        !znode_epoch_decode(e->ops[0].result, &epoch) && epoch == j->epoch + 1)
        win(f, e->ops[0].stat.version);
    else
        say_info(j->c->component, "broker %d was elected", j->c->seen);
}

/* Events. */

static void registered(void *arg, int status, int64_t epoch)
{
    struct job *j = arg;
    if (status)
        flow_fail(&j->flow, status);
    flow_resume(&j->flow);
}

/* A new session: the broker's own node first, since its epoch goes into every request to it. */
static void register_broker(struct flow *f)
{
    struct job *j = job_of(f);
    if (!j->c->o.registrar)
        return;
    flow_wait(f);
    broker_registrar_register(j->c->o.registrar, registered, j);
}

static const flow_step elect_steps[] = {ask_controller, see_controller, ask_epoch,
                                        see_epoch,      see_epoch_made, stand,
                                        see_result,     look_closer,    NULL};
static const flow_step register_steps[] = {
    register_broker, ask_controller, see_controller, ask_epoch,   see_epoch,
    see_epoch_made,  stand,          see_result,     look_closer, NULL};

const struct event_kind event_elect = {"Elect", elect_steps, false, true, CONTROLLER_CHANGE};
const struct event_kind event_register_and_elect = {"RegisterBrokerAndElect", register_steps, false,
                                                    true, CONTROLLER_CHANGE};

/* A controller that cannot do its work makes room for another. */
static void give_up_node(struct flow *f)
{
    job_ask_fenced(f, store_op_delete(PATH_CONTROLLER, STORE_ANY_VERSION));
}

static const flow_step step_down_steps[] = {give_up_node, NULL};
const struct event_kind event_step_down = {"StepDown", step_down_steps, false, true,
                                           CONTROLLER_CHANGE};

static void controller_changed(struct store_watch *w)
{
    controller_event(container_of(w, struct controller, controller_watch), &event_elect);
}

int elect_watch(struct controller *c)
{
    c->controller_watch =
        (struct store_watch){.path = PATH_CONTROLLER, .on = c->o.ex, .fired = controller_changed};
    return store_watch(c->o.store, &c->controller_watch);
}
