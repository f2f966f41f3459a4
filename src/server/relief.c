/* relief.c - see relief.h. */
#include "server/relief.h"

#include <errno.h>
#include <string.h>

#include "base/logline.h"
#include "protocol/errors.h"

static const char component[] = "ControlledShutdown";

static void attempt(struct relief *r);

static void again(struct timer *t)
{
    attempt(container_of(t, struct relief, timer));
}

static void failed(struct relief *r, const char *why)
{
    bool last = r->tried >= r->o.attempts;
    say_warn(component, "attempt %d of %d: %s%s", r->tried, r->o.attempts, why,
             last ? "; stopping without relief" : "");
    if (last)
        r->o.done(r->o.arg, false);
    else
        executor_timer_start(r->o.ex, &r->timer, r->o.pause_ms);
}

static void look_at(struct relief *r, const struct controlled_shutdown_response *answer)
{
    if (answer->error_code) {
        failed(r, kerr_name(answer->error_code));
    } else if (answer->remaining_partitions.n) {
        say_warn(component, "%d partitions have no other leader yet, %.*s-%d among them",
                 answer->remaining_partitions.n,
                 STR_ARG(answer->remaining_partitions.v[0].topic_name),
                 answer->remaining_partitions.v[0].partition_index);
        failed(r, "partitions are left");
    } else {
        r->o.done(r->o.arg, true);
    }
}

static bool answered(struct controller_request *request, int status, int version,
                     const void *response)
{
    struct relief *r = container_of(request, struct relief, request);
    const struct controlled_shutdown_response *answer = response;
    (void)version;
    if (status)
        failed(r, status == -ETIMEDOUT ? "the controller does not answer" : strerror(-status));
    else if (answer->error_code == KERR_STALE_CONTROLLER_EPOCH)
        return true; /* it is not the controller any more */
    else
        look_at(r, answer);
    return false;
}

static void attempt(struct relief *r)
{
    r->tried++;
    if (!r->o.controller_known(r->o.arg)) {
        failed(r, "no controller is known");
        return;
    }
    r->request = (struct controller_request){.api_key = 7,
                                             .min_version = r->o.version,
                                             .max_version = r->o.version,
                                             .request = &r->body,
                                             .limit_ms = r->o.limit_ms,
                                             .done = answered};
    r->o.send(r->o.arg, &r->request);
}

void relief_ask(struct relief *r, const struct relief_options *o)
{
    *r = (struct relief){.o = *o};
    timer_init(&r->timer, again);
    controlled_shutdown_request_init(&r->body);
    r->body.broker_id = o->broker_id;
    r->body.broker_epoch = o->broker_epoch;
    if (o->attempts <= 0)
        o->done(o->arg, false);
    else
        attempt(r);
}
