/* controller.c - queue and life of the controller; what its events do is in the files named in
 * controller_private.h.
 *
 * QUEUE    one event at a time, to its end; the next begins from a task of its own, so that posted
 *          watches and answers are seen in between.
 * EXPIRY   (session) queued events are dropped, the one under way is cancelled, the controller
 *          resigns; the new session registers the broker and elects.
 * STOP     as an expiry, for good. The memory goes with the last reference: an event under way, a
 *          request at a channel, a posted task. */
#include "controller/controller.h"

#include <stdio.h>
#include <stdlib.h>

#include "controller/controller_private.h"

enum { REGISTER_PAUSE_MS = 1000 };

void controller_unref(struct controller *c)
{
    if (--c->refs)
        return;
    free(c->metadata);
    free((char *)c->o.listener.p);
    free(c);
}

void controller_fatal(struct controller *c, const char *why)
{
    if (c->fatal_told)
        return;
    c->fatal_told = true;
    say_fatal(c->component, "%s", why);
    c->o.fatal(c->o.arg, why);
}

void controller_watch_on(struct controller *c, struct store_watch *w, const char *path,
                         bool children, void (*fired)(struct store_watch *w))
{
    *w = (struct store_watch){.path = path, .children = children, .on = c->o.ex, .fired = fired};
    if (store_watch(c->o.store, w))
        controller_fatal(c, "no memory for a watch");
}

void controller_resign(struct controller *c, const char *why)
{
    if (!atomic_load(&c->active))
        return;
    say_info(c->component, "resigns, epoch %d: %s", c->epoch, why);
    atomic_store(&c->active, false);
    c->reign++;
    store_unwatch(c->o.store, &c->brokers_watch);
    store_unwatch(c->o.store, &c->topics_watch);
    store_unwatch(c->o.store, &c->deletions_watch);
    store_unwatch(c->o.store, &c->isr_changes_watch);
    store_unwatch(c->o.store, &c->log_dirs_watch);
    store_unwatch(c->o.store, &c->preferred_watch);
    store_unwatch(c->o.store, &c->reassign_watch);
    executor_timer_stop(c->o.ex, &c->rebalance_timer);
    /* what this reign sent to ourselves gets no answer that counts: the start waits for the next
     * election */
    c->own_sent = c->own_answered = c->ready_at = 0;
    batch_clear(c);
    struct hnode *h;
    while ((h = hmap_first(&c->ctx.topics)))
        topic_forget(c, hmap_entry(h, struct ctl_topic, node));
    while (c->ctx.brokers_n)
        broker_end(c, c->ctx.brokers[c->ctx.brokers_n - 1]);
    context_clear(&c->ctx);
    c->topics_as_of = 0;
    c->ignored_topics = 0;
}

/* Telling that the start is over. */

static void tell_ready(struct controller *c)
{
    if (c->ready_told || c->stopping)
        return;
    c->ready_told = true;
    if (c->o.ready)
        c->o.ready(c->o.arg);
}

void controller_own_answered(struct controller *c)
{
    c->own_answered++;
    if (c->ready_at && c->own_answered >= c->ready_at)
        tell_ready(c);
}

/* The first election is over; if won, what was sent to ourselves has yet to be answered. */
static void first_election_over(struct controller *c)
{
    bool active = atomic_load(&c->active);
    if (c->ready_told || c->ready_at)
        return;
    if (active && c->own_answered < c->own_sent)
        c->ready_at = c->own_sent;
    else
        tell_ready(c);
}

/* Queue. */

static void job_free(struct job *j)
{
    call_refuse(j);
    arena_free(&j->inputs);
    free(j);
}

static void clear_queue(struct controller *c)
{
    for (struct list *at; (at = list_pop(&c->queue));)
        job_free(list_entry(at, struct job, link));
}

/* An expiry or the stop. No step of the event under way runs any more, so what it works on may go;
 * it ends when the store has answered it. */
static void end_life(struct controller *c, int error, const char *why)
{
    clear_queue(c);
    executor_timer_stop(c->o.ex, &c->register_timer);
    if (c->current)
        flow_cancel(&c->current->flow, error);
    controller_resign(c, why);
}

static void after_failure(struct controller *c, const struct event_kind *kind, int error)
{
    if (error == CONTROLLER_MOVED) {
        controller_resign(c, "another controller acts");
        controller_event(c, &event_elect);
        return;
    }
    if (error == -ESTALE || error == -ECANCELED) /* the session's end is told as well */
        return;
    say_error(c->component, "%s: %s", kind->name, strerror(-error));
    if (error == -EIO ||
        error == -ENOMEM) { /* what was half done cannot be told from what was not */
        controller_fatal(c, error == -EIO ? "the metadata store failed" : "no memory");
    } else if ((kind == &event_elect || kind == &event_register_and_elect) &&
               atomic_load(&c->active)) {
        controller_resign(c, "it could not take over");
        controller_event(c, &event_step_down);
    } else if (kind == &event_register_and_elect) {
        executor_timer_start(c->o.ex, &c->register_timer, REGISTER_PAUSE_MS);
    }
}

static void begin_next(struct controller *c);

static void event_over(struct flow *f)
{
    struct job *j = job_of(f);
    struct controller *c = j->c;
    const struct event_kind *kind = j->kind;
    int error = f->error;
    c->current = NULL;
    count_over(j);
    job_free(j);
    batch_clear(c);
    if (!c->stopping) {
        if (error)
            after_failure(c, kind, error);
        if (kind == &event_elect || (kind == &event_register_and_elect && !error))
            first_election_over(c);
        begin_next(c);
    }
    controller_unref(c);
}

static void begin_next(struct controller *c)
{
    while (!c->current && !list_empty(&c->queue)) {
        struct job *j = list_entry(list_pop(&c->queue), struct job, link);
        if (j->kind->when_active && !atomic_load(&c->active)) {
            job_free(j);
            continue;
        }
        if (logline_enabled(LOGLINE_DEBUG))
            say_debug(c->component, "event %s", j->kind->name);
        count_begun(j);
        c->current = j;
        c->refs++;
        flow_start(&j->flow, c->o.store, c->o.ex, j->kind->steps, event_over);
    }
}

static bool queued(const struct controller *c, const struct event_kind *kind)
{
    list_each (at, &c->queue)
        if (list_entry(at, struct job, link)->kind == kind)
            return true;
    return false;
}

struct job *controller_event(struct controller *c, const struct event_kind *kind)
{
    if (c->stopping || (kind->once && queued(c, kind)) ||
        (kind->when_active && !atomic_load(&c->active)))
        return NULL;
    struct job *j = calloc(1, sizeof(*j));
    if (!j) {
        controller_fatal(c, "no memory for an event");
        return NULL;
    }
    j->c = c;
    j->kind = kind;
    j->since_ns = clock_mono_ns(c->o.ex->clock);
    arena_init(&j->inputs, 0);
    list_push_back(&c->queue, &j->link);
    begin_next(c); /* which only posts: the caller may still fill in the inputs */
    return j;
}

/* Life. */

static void session_changed(void *arg, enum store_session state)
{
    struct controller *c = arg;
    if (c->stopping)
        return;
    if (state == STORE_EXPIRED) {
        end_life(c, -ESTALE, "the session has expired");
    } else if (state == STORE_CONNECTED) {
        controller_event(c, &event_register_and_elect);
    }
}

static void register_again(struct timer *t)
{
    controller_event(container_of(t, struct controller, register_timer), &event_register_and_elect);
}

static void start(struct task *t)
{
    struct controller *c = container_of(t, struct controller, start_task);
    if (!c->stopping) {
        if (elect_watch(c) || store_on_session(c->o.store, c->o.ex, session_changed, c))
            controller_fatal(c, "no memory for the controller");
        else
            controller_event(c, &event_elect);
    }
    controller_unref(c);
}

int controller_start(const struct controller_options *o, struct controller **out)
{
    struct controller *c = *out = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->o = *o;
    if (!c->o.ibp)
        c->o.ibp = IBP_DEFAULT;
    c->o.listener.p = str_dup(o->listener);
    if (!str_is_null(o->listener) && !c->o.listener.p) {
        free(c);
        *out = NULL;
        return -ENOMEM;
    }
    snprintf(c->component, sizeof(c->component), "Controller id=%d", o->broker_id);
    list_init(&c->queue);
    context_init(&c->ctx);
    c->seen = -1;
    c->refs = 2; /* the owner's, and the task's */
    task_init(&c->start_task, start);
    timer_init(&c->register_timer, register_again);
    timer_init(&c->rebalance_timer, rebalance_due);
    executor_post(o->ex, &c->start_task);
    return 0;
}

void controller_stop(struct controller *c)
{
    if (!c)
        return;
    c->stopping = true;
    store_unwatch(c->o.store, &c->controller_watch);
    store_off_session(c->o.store, session_changed, c);
    end_life(c, -ECANCELED, "shutdown");
    controller_unref(c);
}

bool controller_is_active(const struct controller *c)
{
    return atomic_load(&c->active);
}
