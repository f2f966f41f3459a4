/* cgroup_step.c - one step's records on their way into the log.
 *
 * The state in memory is ahead of the log by the steps that are being written; what depends on them
 * is answered after them, in order. If one cannot be written, memory and log would differ for good:
 * the shard then loads the partition again. So it does if one is written and not replicated in
 * time: who leads next may not have it, and what is in memory only must not be told. */
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/cgroup_private.h"
#include "coordinator/group_requests.h"

enum { APPEND_BYTES = 256 << 10 /* a step of more goes out in several batches */ };

static const struct { /* what the log says of a step -> what clients are told */
    enum kerr log, client;
} step_errors[] = {
    {KERR_UNKNOWN_TOPIC_OR_PARTITION, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_NOT_ENOUGH_REPLICAS, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_REQUEST_TIMED_OUT, KERR_COORDINATOR_NOT_AVAILABLE},
    {KERR_NOT_LEADER_OR_FOLLOWER, KERR_NOT_COORDINATOR},
    {KERR_KAFKA_STORAGE_ERROR, KERR_NOT_COORDINATOR},
    {KERR_MESSAGE_TOO_LARGE, KERR_UNKNOWN_SERVER_ERROR},
    {KERR_RECORD_LIST_TOO_LARGE, KERR_UNKNOWN_SERVER_ERROR},
    {KERR_INVALID_FETCH_SIZE, KERR_UNKNOWN_SERVER_ERROR},
};

static enum kerr client_error(enum kerr e)
{
    for (size_t i = 0; i < sizeof(step_errors) / sizeof(*step_errors); i++)
        if (step_errors[i].log == e)
            return step_errors[i].client;
    return e;
}

struct cwrite {
    struct list link;    /* cgroup.writes */
    struct group *group; /* one reference */
    struct list calls;   /* of group_call.task.link: to be answered when it is over */
    struct task failed;
    enum kerr error; /* the first that was heard */
    bool lost;       /* some record is not in the log, or may not stay there */
    int under_way;
    int n;
    struct cappend {
        struct group_append append;
        struct cwrite *write;
    } appends[];
};

void cstep_begin(struct cstep *s, struct cgroup *cg)
{
    *s = (struct cstep){.cg = cg};
}

/* ---- the end ---- */

static void write_over(struct cwrite *w)
{
    struct group *g = w->group;
    struct list *l;
    enum kerr e = client_error(w->error);
    if (e == KERR_NONE && group_is(g, GROUP_DEAD) && w->lost)
        e = KERR_NOT_COORDINATOR;
    if (w->error != KERR_NONE)
        say_warn(GROUP_TAG, "consumer group %.*s: a change was not written: %s", STR_ARG(g->id),
                 kerr_name((int16_t)w->error));
    list_remove(&w->link);
    while ((l = list_pop(&w->calls)) != NULL) {
        struct group_call *c = container_of(l, struct group_call, task.link);
        if (e == KERR_NONE)
            group_call_end(c);
        else
            group_call_refuse(c, e);
    }
    if (w->lost && g->env->shard && !group_is(g, GROUP_DEAD))
        group_shard_reload(g->env->shard, g->partition);
    group_unref(g);
    free(w);
}

static void appended(struct group_append *a)
{
    struct cwrite *w = container_of(a, struct cappend, append)->write;
    if (w->error == KERR_NONE)
        w->error = a->error;
    w->lost |= a->error != KERR_NONE;
    if (--w->under_way == 0)
        write_over(w);
}

static void never_appended(struct task *t)
{
    write_over(container_of(t, struct cwrite, failed));
}

/* ---- the beginning ---- */

static struct cstep_end end_of(const struct cstep *s, int i)
{
    struct cstep_end e;
    memcpy(&e, s->ends.p + (size_t)i * sizeof(e), sizeof(e));
    return e;
}

static struct group_record *records_of(const struct cstep *s)
{
    struct group_record *v = calloc((size_t)s->n, sizeof(*v));
    size_t at = 0;
    for (int i = 0; v && i < s->n; i++) {
        struct cstep_end e = end_of(s, i);
        v[i].key = (struct bytes){s->bytes.p + at, (int32_t)(e.key - at)};
        v[i].value = e.value == e.key
                         ? BYTES_NULL
                         : (struct bytes){s->bytes.p + e.key, (int32_t)(e.value - e.key)};
        at = e.value;
    }
    return v;
}

/* How many records from `from` on go into one batch. */
static int batch_of(const struct cstep *s, int from)
{
    size_t begin = from ? end_of(s, from - 1).value : 0;
    int n = 1;
    while (from + n < s->n && end_of(s, from + n).value - begin <= APPEND_BYTES)
        n++;
    return n;
}

static int batches_of(const struct cstep *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i += batch_of(s, i))
        n++;
    return n;
}

static void start(struct cwrite *w, const struct cstep *s, const struct group_record *v)
{
    struct group_log *log = w->group->env->log;
    w->under_way = w->n;
    for (int i = 0, b = 0, n; i < s->n; i += n, b++) {
        n = batch_of(s, i);
        w->appends[b].write = w;
        w->appends[b].append = (struct group_append){.partition = w->group->partition,
                                                     .producer_id = -1,
                                                     .producer_epoch = -1,
                                                     .base_offset = -1,
                                                     .done = appended};
        log->ops->append(log, &w->appends[b].append, v + i, n);
    }
}

static struct cwrite *write_new(struct cgroup *cg, int appends)
{
    struct cwrite *w = calloc(1, sizeof(*w) + (size_t)appends * sizeof(struct cappend));
    if (!w)
        return NULL;
    w->group = group_ref(cg->g);
    w->n = appends;
    list_init(&w->calls);
    list_push_back(&cg->writes, &w->link);
    return w;
}

/* Without memory for the write itself there is nothing that could answer later. */
static void give_up(struct cgroup *cg, struct group_call *c)
{
    say_error(GROUP_TAG, "consumer group %.*s: no memory to write a change", STR_ARG(cg->g->id));
    if (c)
        group_call_refuse(c, KERR_UNKNOWN_SERVER_ERROR);
}

static void write_step(struct cstep *s, struct group_call *c)
{
    bool sound = !s->failed && !s->bytes.failed && !s->ends.failed && s->bytes.len <= INT32_MAX;
    struct group_record *v = sound ? records_of(s) : NULL;
    struct cwrite *w = write_new(s->cg, v ? batches_of(s) : 0);
    if (w && c)
        list_push_back(&w->calls, &c->task.link);
    if (w && v) {
        start(w, s, v);
    } else if (w) {
        w->error = KERR_UNKNOWN_SERVER_ERROR;
        w->lost = true;
        task_init(&w->failed, never_appended);
        executor_post(w->group->env->ex, &w->failed);
    } else {
        give_up(s->cg, c);
    }
    free(v);
}

void cstep_end(struct cstep *s, struct group_call *c)
{
    struct cgroup *cg = s->cg;
    if (s->downgrade)
        cgroup_downgrade(cg, s);
    else
        cgroup_settle(cg, "of its members");
    if (c)
        list_init(&c->task.link);
    if (s->n > 0 || s->failed)
        write_step(s, c);
    else if (c && !list_empty(&cg->writes)) /* what it tells is not in the log yet */
        list_push_back(&list_entry(cg->writes.prev, struct cwrite, link)->calls, &c->task.link);
    else if (c)
        group_call_end(c);
    buf_free(&s->bytes);
    buf_free(&s->ends);
    if (s->downgrade)
        cgroup_downgraded(cg->g);
}
