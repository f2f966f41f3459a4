/* cgroup_leave.c - how members leave a group of the new protocol: by word, for a while, or by being
 * silent for too long. */
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/cgroup_private.h"

/* ---- going ---- */

void cgroup_take_out(struct cgroup *cg, struct cstep *s, struct cmember *m, const char *why)
{
    say_info(GROUP_TAG, "consumer group %.*s: member %.*s is gone: %s", STR_ARG(cg->g->id),
             STR_ARG(m->id), why);
    cstep_bury_member(s, m->id);
    cgroup_drop(cg, m);
}

void cgroup_taken_out(struct cgroup *cg, struct cstep *s, bool was_new)
{
    if (was_new && cgroup_can_downgrade(cg)) {
        s->downgrade = true;
        return;
    }
    int rc = cgroup_look_up(cg);
    if (rc > 0)
        cstep_put_topics(s);
    s->failed |= rc < 0;
    cg->epoch++;
    cstep_put_epoch(s);
}

void cgroup_remove(struct cgroup *cg, struct cstep *s, struct cmember *m, const char *why)
{
    bool was_new = !m->classic;
    cgroup_take_out(cg, s, m, why);
    cgroup_taken_out(cg, s, was_new);
}

/* A static member that will be back: all stays as it is until its session is over. */
void cgroup_part(struct cgroup *cg, struct cstep *s, struct cmember *m)
{
    struct part_set assigned = PART_SET_EMPTY, none = PART_SET_EMPTY;
    m->epoch = CGROUP_EPOCH_AWAY;
    s->failed |=
        part_set_copy(&m->assigned, &assigned) != 0 || cmember_own(m, &assigned, &none) != 0;
    executor_timer_stop(cg->g->env->ex, &m->rebalance);
    cstep_put_current(s, m);
    say_info(GROUP_TAG, "consumer group %.*s: static member %.*s is away", STR_ARG(cg->g->id),
             STR_ARG(m->id));
}

static void fence(struct cmember *m, const char *why)
{
    struct cgroup *cg = m->cg;
    struct group *g = group_ref(cg->g);
    struct cstep s;
    cstep_begin(&s, cg);
    cgroup_remove(cg, &s, m, why);
    cstep_end(&s, NULL);
    group_unref(g);
}

/* ---- timers ---- */

static void session_over(struct timer *t)
{
    fence(container_of(t, struct cmember, session), "its session is over");
}

static void rebalance_over(struct timer *t)
{
    struct cmember *m = container_of(t, struct cmember, rebalance);
    if (m->epoch == m->rebalance_epoch)
        fence(m, "it does not give up its partitions");
}

static void join_over(struct timer *t)
{
    fence(container_of(t, struct cmember, join), "it does not join again");
}

static void sync_over(struct timer *t)
{
    fence(container_of(t, struct cmember, sync), "it does not ask for its assignment");
}

void cmember_init_timers(struct cmember *m)
{
    timer_init(&m->session, session_over);
    timer_init(&m->rebalance, rebalance_over);
    timer_init(&m->join, join_over);
    timer_init(&m->sync, sync_over);
}

void cmember_stop_timers(struct cmember *m)
{
    struct executor *ex = m->cg->g->env->ex;
    executor_timer_stop(ex, &m->session);
    executor_timer_stop(ex, &m->rebalance);
    executor_timer_stop(ex, &m->join);
    executor_timer_stop(ex, &m->sync);
}

void cmember_touch(struct cmember *m)
{
    int32_t ms = m->classic ? m->session_ms : cgroup_config(m->cg)->session_ms;
    executor_timer_start(m->cg->g->env->ex, &m->session, ms);
}

static int64_t rebalance_ms(const struct cmember *m)
{
    return m->rebalance_ms > 0 ? m->rebalance_ms : 0;
}

void cmember_watch(struct cmember *m)
{
    struct executor *ex = m->cg->g->env->ex;
    if (m->state == CMEMBER_UNREVOKED) {
        m->rebalance_epoch = m->epoch;
        executor_timer_start(ex, &m->rebalance, rebalance_ms(m));
    } else {
        executor_timer_stop(ex, &m->rebalance);
    }
}

void cmember_expect_nothing(struct cmember *m)
{
    executor_timer_stop(m->cg->g->env->ex, &m->join);
    executor_timer_stop(m->cg->g->env->ex, &m->sync);
}

void cmember_expect_join(struct cmember *m)
{
    if (!timer_armed(&m->join))
        executor_timer_start(m->cg->g->env->ex, &m->join, rebalance_ms(m));
}

void cmember_expect_sync(struct cmember *m)
{
    executor_timer_start(m->cg->g->env->ex, &m->sync, rebalance_ms(m));
}
