/* group_poll.c - the user's side of a membership: what poll does before it looks for records. See
 * group.h. */
#include <stdlib.h>
#include <string.h>

#include "client/cluster_private.h"
#include "client/consumer_private.h"
#include "client/group.h"
#include "client/lists.h"

/* ---- sets of partitions ---- */

struct part_set {
    kafka_topic_partition_t *v; /* malloc'ed; names borrowed from the consumer's partitions */
    size_t n;
};

static bool in_list(const kafka_partition_list_t *list, const char *topic, int32_t partition)
{
    kafka_topic_partition_t key = {topic, partition};
    return list && list->n &&
           bsearch(&key, list->v, list->n, sizeof key, topic_partition_cmp) != NULL;
}

/* The consumer's partitions for which keep says so, sorted. */
static struct part_set select_parts(kafka_consumer_t *c,
                                    bool (*keep)(struct group *, struct cpart *))
{
    struct part_set s = {NULL, 0};
    size_t most = 1;
    list_each (it, &c->parts)
        most++;
    s.v = malloc(most * sizeof *s.v);
    list_each (it, &c->parts) {
        struct cpart *p = list_entry(it, struct cpart, link);
        if (s.v && keep(c->group, p))
            s.v[s.n++] = (kafka_topic_partition_t){p->topic, p->partition};
    }
    if (s.n)
        qsort(s.v, s.n, sizeof *s.v, topic_partition_cmp);
    return s;
}

static bool every(struct group *g, struct cpart *p)
{
    return true;
}

static bool not_subscribed(struct group *g, struct cpart *p)
{
    return !consumer_wants_topic(g->c, p->topic);
}

static bool subscribed(struct group *g, struct cpart *p)
{
    return !not_subscribed(g, p);
}

static bool not_in_next(struct group *g, struct cpart *p)
{
    return !in_list(g->next, p->topic, p->partition);
}

static bool in_next(struct group *g, struct cpart *p)
{
    return !not_in_next(g, p);
}

/* ---- the listener ---- */

typedef void (*listener_fn)(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n,
                            void *arg);

/* The lock is let go around it. */
static void call(kafka_consumer_t *c, listener_fn fn, const struct part_set *s)
{
    if (!fn)
        return;
    bool inside = c->in_callback;
    c->in_callback = true;
    pthread_mutex_unlock(&c->lock);
    fn(c, s->v, s->n, c->listener.arg);
    pthread_mutex_lock(&c->lock);
    c->in_callback = inside;
}

static void call_gone(kafka_consumer_t *c, bool lost, const struct part_set *s)
{
    if (s->n == 0)
        return;
    call(c, lost && c->listener.lost ? c->listener.lost : c->listener.revoked, s);
}

/* Those that `keep` says so stay, with their positions. */
static void keep_only(kafka_consumer_t *c, bool (*keep)(struct group *, struct cpart *))
{
    struct part_set s = select_parts(c, keep);
    consumer_set_parts(c, s.v, s.n);
    free(s.v);
}

static bool none(struct group *g, struct cpart *p)
{
    return false;
}

/* ---- before joining ---- */

/* The commit before a rebalance; true when it is over. */
static bool prepare_commit(kafka_consumer_t *c)
{
    struct group *g = c->group;
    kafka_err_t err;
    if (!g->preparing) {
        g->preparing = true;
        if (g->auto_commit && group_is_member(g))
            g->prepare_commit = commit_positions(c, g->max_poll_ms, false);
        if (g->prepare_commit)
            commit_hold(g->prepare_commit);
    }
    if (!g->prepare_commit)
        return true;
    if (!commit_is_done(g->prepare_commit, &err))
        return false;
    if (err != KAFKA_OK)
        client_log(2, "group %s: automatic commit before the rebalance failed: %s (%s)", g->id,
                   kafka_err_text(err), kafka_err_name(err));
    commit_drop(c, g->prepare_commit);
    g->prepare_commit = NULL;
    return true;
}

/* What must be given up before JoinGroup is. */
static void revoke_parts(kafka_consumer_t *c)
{
    struct group *g = c->group;
    bool lost = g->generation < 0;
    bool all = lost || !g->cooperative;
    struct part_set s = select_parts(c, all ? every : not_subscribed);
    call_gone(c, lost, &s);
    free(s.v);
    keep_only(c, all ? none : subscribed);
}

static void prepare(kafka_consumer_t *c)
{
    struct group *g = c->group;
    if (c->mode == CONSUMER_PATTERN && !c->pattern_ready)
        return; /* which topics there are is not known yet */
    if (!prepare_commit(c))
        return;
    g->preparing = true;
    revoke_parts(c);
    g->preparing = false;
    g->rejoin = false;
    g->attempts = 0;
    g->retry_at_ms = 0;
    group_set_state(g, GROUP_JOINING);
    group_wake(g);
}

/* ---- after joining ---- */

static bool all_wanted(kafka_consumer_t *c)
{
    for (size_t i = 0; i < c->group->next->n; i++)
        if (!consumer_wants_topic(c, c->group->next->v[i].topic))
            return false;
    return true;
}

static void give_up_moved(kafka_consumer_t *c)
{
    struct group *g = c->group;
    struct part_set moved = select_parts(c, not_in_next);
    if (moved.n > 0) {
        if (g->auto_commit)
            commit_auto(c);
        call_gone(c, false, &moved);
        keep_only(c, in_next);
        if (!g->modern)
            group_want_rejoin(g, "partitions were given up for other members");
    }
    free(moved.v);
}

/* Takes the new assignment; the listener is told what is new. */
static void apply(kafka_consumer_t *c)
{
    struct group *g = c->group;
    uint64_t round = g->round, number = g->next_number;
    struct part_set added = {malloc((g->next->n + 1) * sizeof *added.v), 0};
    kafka_partition_list_t *next = partition_list_copy(g->next->v, g->next->n);
    if (!added.v || !next) {
        group_reset(g, true);
        group_fail(g, KAFKA_ERR_NO_MEMORY, "taking the assignment");
    } else {
        if (!g->modern && !all_wanted(c))
            group_want_rejoin(g, "the assignment has topics that are not subscribed to");
        if (g->cooperative)
            give_up_moved(c);
        for (size_t i = 0; i < next->n; i++)
            if (!consumer_find_part(c, next->v[i].topic, next->v[i].partition))
                added.v[added.n++] = next->v[i];
        if (g->round == round) /* else the membership ended while the listener was called */
            consumer_set_parts(c, next->v, next->n);
        if (g->round == round && g->state == GROUP_ASSIGNED)
            call(c, c->listener.assigned, &added);
        if (g->round == round && g->state == GROUP_ASSIGNED && g->next_number == number)
            group_set_state(g, GROUP_STABLE); /* else another came meanwhile: again */
        if (g->modern) {
            g->say_owned = g->say_now = true;
            group_wake(g);
        }
        g->auto_commit_due_ms = client_now_ms() + g->auto_commit_ms;
    }
    kafka_partition_list_free(next);
    free(added.v);
}

/* ---- poll ---- */

/* Consumer protocol: the broker is told of another subscription, and assigns. */
static void say_subscription(kafka_consumer_t *c)
{
    struct group *g = c->group;
    if (c->mode == CONSUMER_PATTERN && !c->pattern_ready)
        return;
    g->rejoin = false;
    g->say_all = g->say_now = true;
    group_wake(g);
}

static kafka_err_t take_fatal(struct group *g)
{
    kafka_err_t err = g->fatal;
    g->fatal = KAFKA_OK;
    return err == KAFKA_OK ? err : client_fail(err, "%s", g->fatal_text);
}

/* Moves on as far as it goes without waiting. */
kafka_err_t group_poll(kafka_consumer_t *c)
{
    struct group *g = c->group;
    commits_run_callbacks(c);
    kafka_err_t err = take_fatal(g);
    if (err != KAFKA_OK)
        return err;
    if (consumer_is_subscribed(c)) {
        g->last_poll_ms = client_now_ms();
        if (g->state == GROUP_ASSIGNED)
            apply(c);
        if (g->state == GROUP_OUT || (g->state == GROUP_STABLE && g->rejoin && !g->modern))
            prepare(c);
        else if (g->modern && g->rejoin)
            say_subscription(c);
    }
    if (g->auto_commit && !g->preparing && client_now_ms() >= g->auto_commit_due_ms)
        commit_auto(c);
    return KAFKA_OK;
}

int64_t group_due_ms(kafka_consumer_t *c)
{
    return c->group && c->group->auto_commit ? c->group->auto_commit_due_ms : INT64_MAX;
}

void group_give_up(kafka_consumer_t *c, const char *reason)
{
    struct group *g = c->group;
    struct part_set s = select_parts(c, every);
    call_gone(c, g->generation < 0, &s);
    free(s.v);
    consumer_set_parts(c, NULL, 0);
    if (g->prepare_commit)
        commit_drop(c, g->prepare_commit);
    g->prepare_commit = NULL;
    g->preparing = g->rejoin = false;
    if (g->joining) { /* its answer may take as long as the others' rebalance: not waited for */
        g->forget_coordinator = true;
        group_wake(g);
    }
    if (g->leave_on_close)
        group_leave(g, reason);
    group_reset(g, false);
}
