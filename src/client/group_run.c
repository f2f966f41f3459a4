/* group_run.c - the member's background: what is due now, heartbeats, leaving. */
#include <stdlib.h>
#include <string.h>

#include "client/cluster_private.h"
#include "client/consumer_private.h"
#include "client/group.h"
#include "protocol/errors.h"
#include "protocol/msg/heartbeat.h"
#include "protocol/msg/leave_group.h"

static int64_t now_ms(struct group *g)
{
    return executor_now_ms(cluster_executor(g->c->cluster));
}

/* ---- heartbeats ---- */

struct beat {
    struct group *g;
    uint64_t round;
    struct node *to;
};

/* What an answer means while the membership is still the one that asked. */
static void on_beat_error(struct group *g, kafka_err_t err)
{
    switch (err) {
    case KERR_REBALANCE_IN_PROGRESS:
        if (g->state == GROUP_STABLE || g->state == GROUP_ASSIGNED)
            group_want_rejoin(g, "the group is rebalancing");
        g->beat_ok_ms = now_ms(g);
        break;
    case KERR_ILLEGAL_GENERATION:
    case KERR_UNKNOWN_MEMBER_ID:
        client_log(1, "group %s: member %s is out: %s", g->id, g->member_id, kafka_err_name(err));
        group_reset(g, err == KERR_ILLEGAL_GENERATION);
        break;
    case KERR_FENCED_INSTANCE_ID:
    case KERR_GROUP_AUTHORIZATION_FAILED:
        group_reset(g, false);
        group_fail(g, err, "heartbeat");
        break;
    default:
        break; /* a new coordinator, or the next one will do */
    }
}

static void on_beat(void *arg, int status, int version, const void *response)
{
    struct beat b = *(struct beat *)arg;
    struct group *g = b.g;
    const struct heartbeat_response *m = response;
    kafka_err_t err = status == 0 ? m->error_code : client_err_of_status(status);
    free(arg);
    client_log(0, "group %s: heartbeat: %s", g->id, kafka_err_name(err));
    pthread_mutex_lock(&g->c->lock);
    g->beating = false;
    int64_t now = now_ms(g);
    bool current = b.round == g->round;
    if (err == KAFKA_OK)
        g->beat_ok_ms = now;
    else if (current)
        on_beat_error(g, err);
    if (err != KAFKA_OK && err != KERR_REBALANCE_IN_PROGRESS)
        g->beat_due_ms = now + cluster_backoff_ms(g->c->cluster, 0);
    pthread_mutex_unlock(&g->c->lock);
    if (coordinator_is_stale(err) && g->coordinator.node == b.to)
        coordinator_forget(&g->coordinator);
    pthread_mutex_lock(&g->c->lock);
    group_run(g);
    pthread_mutex_unlock(&g->c->lock);
}

static void send_beat(struct group *g, struct node *n)
{
    struct heartbeat_request req;
    struct beat *b = malloc(sizeof *b);
    heartbeat_request_init(&req);
    req.group_id = str_of(g->id);
    req.generation_id = g->generation;
    req.member_id = str_of(g->member_id);
    req.group_instance_id = str_of(g->instance_id);
    g->beat_due_ms = now_ms(g) + g->heartbeat_ms;
    if (!b)
        return;
    *b = (struct beat){g, g->round, n};
    g->beating = node_send(n, API_HEARTBEAT, g->instance_id ? 3 : 0, -1, &req,
                           cluster_request_timeout(g->c->cluster), true, on_beat, b) == 0;
    if (!g->beating)
        free(b);
}

/* ---- leaving ---- */

struct leaving {
    struct op op;
    struct leave_group_request req;
    struct leave_group_request_member member;
    char member_id[]; /* the request's; then the reason */
};

static kafka_err_t on_left(struct op *op, int version, const void *response)
{
    return ((const struct leave_group_response *)response)->error_code;
}

static void leaving_start(struct leaving *l)
{
    struct group *g = l->op.arg;
    op_start(g->c->cluster, &l->op, cluster_request_timeout(g->c->cluster));
}

/* As brokers before 2.4 understand it. */
static void say_it_the_old_way(struct leaving *l)
{
    l->req.members.n = 0;
    l->req.member_id = l->member.member_id;
    l->op.min_version = 0;
    l->op.max_version = 2;
}

static void leaving_done(struct op *op, kafka_err_t result)
{
    struct leaving *l = container_of(op, struct leaving, op);
    struct group *g = op->arg;
    if (result == KAFKA_ERR_UNSUPPORTED && l->req.members.n) {
        say_it_the_old_way(l);
        leaving_start(l);
        return;
    }
    if (result != KAFKA_OK && result != KERR_UNKNOWN_MEMBER_ID)
        client_log(1, "group %s: leaving: %s", g->id, kafka_err_name(result));
    group_left(g);
    free(l);
}

void group_left(struct group *g)
{
    pthread_mutex_lock(&g->c->lock);
    g->leaving--;
    pthread_cond_broadcast(&g->c->news);
    pthread_mutex_unlock(&g->c->lock);
}

void group_leave(struct group *g, const char *reason)
{
    if (g->modern) {
        g->leaving += group_modern_leave(g);
        return;
    }
    if (g->instance_id || !g->member_id[0])
        return; /* a static member comes back under its name */
    size_t id_n = strlen(g->member_id) + 1, reason_n = strlen(reason) + 1;
    struct leaving *l = calloc(1, sizeof *l + id_n + reason_n);
    if (!l)
        return; /* the session timeout will do it */
    memcpy(l->member_id, g->member_id, id_n);
    memcpy(l->member_id + id_n, reason, reason_n);
    leave_group_request_init(&l->req);
    leave_group_request_member_init(&l->member);
    l->req.group_id = str_of(g->id);
    l->member.member_id = str_of(l->member_id);
    l->member.reason = str_of(l->member_id + id_n);
    l->req.members.v = &l->member;
    l->req.members.n = 1;
    l->op = (struct op){.coordinator = &g->coordinator,
                        .once = true,
                        .api_key = API_LEAVE_GROUP,
                        .min_version = 3,
                        .max_version = -1,
                        .request = &l->req,
                        .handle = on_left,
                        .finished = leaving_done,
                        .arg = g};
    g->leaving++;
    leaving_start(l);
}

/* ---- what is due ---- */

static bool polls_too_late(struct group *g, int64_t now)
{
    return !g->in_poll && group_is_member(g) && now - g->last_poll_ms > g->max_poll_ms;
}

static void leave_for_lateness(struct group *g)
{
    client_log(2,
               "group %s: poll was not called for longer than max.poll.interval.ms=%lld, so this "
               "member leaves the group; raise it, or lower max.poll.records",
               g->id, (long long)g->max_poll_ms);
    group_leave(g, "consumer poll timeout has expired.");
    group_reset(g, false);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Sends the heartbeat if it is due. Returns when to look again. */
static int64_t run_heartbeat(struct group *g, int64_t now)
{
    if (now - g->beat_ok_ms > g->session_timeout_ms && g->coordinator.node) {
        client_log(1, "group %s: no answer from coordinator %s for session.timeout.ms=%d", g->id,
                   node_address(g->coordinator.node), g->session_timeout_ms);
        g->beat_ok_ms = now;
        g->forget_coordinator = true;
        group_wake(g);
        return INT64_MAX;
    }
    int64_t due = INT64_MAX;
    if (g->coordinator.node) /* else the search for one goes on, and tells when it has ended */
        due = g->beat_ok_ms + g->session_timeout_ms + 1;
    if (!g->in_poll)
        due = earlier(due, g->last_poll_ms + g->max_poll_ms + 1);
    if (g->beating)
        return due;
    struct node *n = coordinator_node(&g->coordinator);
    int64_t wait = 0;
    if (n && !node_ready(n, &wait))
        return earlier(due, now + wait);
    if (n && now >= g->beat_due_ms)
        send_beat(g, n);
    return n ? earlier(due, g->beat_due_ms) : due;
}

void group_run(struct group *g)
{
    int64_t now = now_ms(g), due = INT64_MAX;
    if (g->closing)
        return;
    if (polls_too_late(g, now))
        leave_for_lateness(g);
    if (g->coordinator.err != KAFKA_OK && g->state == GROUP_JOINING) {
        kafka_err_t err = g->coordinator.err;
        g->coordinator.err = KAFKA_OK;
        group_reset(g, false);
        group_fail(g, err, "finding its coordinator");
    }
    if (g->modern)
        due = group_modern_run(g, now);
    else if (g->state == GROUP_JOINING && !g->joining) {
        if (now < g->retry_at_ms)
            due = g->retry_at_ms;
        else
            group_join(g);
    }
    if (!g->modern && group_is_member(g))
        due = earlier(due, run_heartbeat(g, now));
    executor_timer_stop(cluster_executor(g->c->cluster), &g->timer);
    if (due != INT64_MAX)
        executor_timer_start(cluster_executor(g->c->cluster), &g->timer, due > now ? due - now : 0);
}

static void run_unlocked(struct group *g)
{
    pthread_mutex_lock(&g->c->lock);
    bool forget = g->forget_coordinator;
    g->forget_coordinator = g->run_posted = false;
    pthread_mutex_unlock(&g->c->lock);
    if (forget)
        coordinator_forget(&g->coordinator); /* its callbacks take the lock */
    pthread_mutex_lock(&g->c->lock);
    group_run(g);
    pthread_mutex_unlock(&g->c->lock);
}

static void on_task(struct task *t)
{
    run_unlocked(container_of(t, struct group, task));
}

static void on_timer(struct timer *t)
{
    run_unlocked(container_of(t, struct group, timer));
}

static void on_coordinator(void *arg)
{
    struct group *g = arg;
    pthread_mutex_lock(&g->c->lock);
    group_run(g);
    fetcher_wake(g->c); /* committed offsets may wait for it */
    pthread_mutex_unlock(&g->c->lock);
}

void group_init_background(struct group *g)
{
    coordinator_init(&g->coordinator, g->c->cluster, COORDINATOR_GROUP, g->id);
    g->coordinator.changed = on_coordinator;
    g->coordinator.arg = g;
    task_init(&g->task, on_task);
    timer_init(&g->timer, on_timer);
}

void group_on_metadata(struct group *g)
{
    if (g->modern)
        group_modern_resolve(g);
    if (g->state == GROUP_ASSIGNING)
        group_try_assign(g);
    if (group_is_member(g) && g->leader && !g->rejoin && group_watched_changed(g))
        group_want_rejoin(g, "the metadata of the group's topics has changed");
}

void group_stop(struct group *g)
{
    pthread_mutex_lock(&g->c->lock);
    g->closing = true;
    pthread_mutex_unlock(&g->c->lock);
    executor_timer_stop(cluster_executor(g->c->cluster), &g->timer);
    coordinator_close(&g->coordinator);
}
