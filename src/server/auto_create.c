/* auto_create.c - see auto_create.h.
 *
 * A call takes those names that nobody is creating yet, marks them in `busy`, hands them to
 * topic_admin, and takes the marks away when the store has answered. */
#include "server/auto_create.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "base/logline.h"
#include "controller/topic_admin.h"
#include "server/broker_private.h"

enum { INTERNAL_CONFIGS = 5 };

struct auto_create {
    struct broker *broker;
    pthread_mutex_t lock;
    struct hmap busy; /* of struct creation.node by name; under lock */
};

/* One topic being created. */
struct creation {
    struct hnode node;
    struct str name;          /* the asker's memory */
    struct auto_topic *topic; /* the asker's */
    struct config_pair configs[INTERNAL_CONFIGS];
    char segment_bytes[24], min_isr[24];
};

struct call {
    struct auto_create *owner;
    struct creation *creations;
    struct new_topic *topics;
    int n;
    struct executor *done_on;
    void (*done)(void *arg);
    void *arg;
    struct task task;
};

int auto_create_new(struct broker *b, struct auto_create **out)
{
    struct auto_create *a = calloc(1, sizeof(*a));
    *out = a;
    if (!a)
        return -ENOMEM;
    a->broker = b;
    pthread_mutex_init(&a->lock, NULL);
    hmap_init(&a->busy);
    return 0;
}

void auto_create_free(struct auto_create *a)
{
    if (!a)
        return;
    hmap_free(&a->busy);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static bool is_name(const struct hnode *node, const void *key)
{
    return str_eq(hmap_entry(node, struct creation, node)->name, *(const struct str *)key);
}

/* Marks the name as being created; false when it is already, or without memory. */
static bool take(struct auto_create *a, struct creation *c)
{
    uint64_t hash = hash_str(c->name);
    pthread_mutex_lock(&a->lock);
    bool mine =
        !hmap_find(&a->busy, hash, is_name, &c->name) && hmap_put(&a->busy, &c->node, hash) == 0;
    pthread_mutex_unlock(&a->lock);
    return mine;
}

static void call_free(struct call *call)
{
    free(call->creations);
    free(call->topics);
    free(call);
}

static enum kerr outcome(enum kerr error)
{
    return error == KERR_NONE || error == KERR_TOPIC_ALREADY_EXISTS ? KERR_LEADER_NOT_AVAILABLE
                                                                    : error;
}

static void report(const struct new_topic *t)
{
    if (t->error == KERR_NONE)
        say_info("AutoTopicCreation", "created %.*s with %d partitions", STR_ARG(t->name),
                 t->made_partitions);
    else if (t->error != KERR_TOPIC_ALREADY_EXISTS)
        say_warn("AutoTopicCreation", "cannot create %.*s: %s %s", STR_ARG(t->name),
                 kerr_name((int16_t)t->error), t->message ? t->message : "");
}

static void finish(struct call *call)
{
    struct broker *b = call->owner->broker;
    void (*done)(void *arg) = call->done;
    void *arg = call->arg;
    call_free(call);
    done(arg);
    broker_async_end(b);
}

static void created(void *arg)
{
    struct call *call = arg;
    struct auto_create *a = call->owner;
    pthread_mutex_lock(&a->lock);
    for (int i = 0; i < call->n; i++)
        hmap_remove(&a->busy, &call->creations[i].node);
    pthread_mutex_unlock(&a->lock);
    for (int i = 0; i < call->n; i++) {
        report(&call->topics[i]);
        call->creations[i].topic->error = outcome(call->topics[i].error);
        free(call->topics[i].message);
    }
    finish(call);
}

static void nothing_to_create(struct task *task)
{
    finish(container_of(task, struct call, task));
}

static void put_config(struct new_topic *t, const char *key, const char *value)
{
    ((struct config_pair *)t->configs)[t->configs_n++] =
        (struct config_pair){str_of(key), str_of(value)};
}

/* Partitions, replicas and settings of an internal topic. */
static void internal_topic(const struct config *c, struct creation *cr, struct new_topic *t)
{
    bool offsets = str_eqz(cr->name, "__consumer_offsets");
    t->partitions = (int32_t)config_int(c, offsets ? "offsets.topic.num.partitions"
                                                   : "transaction.state.log.num.partitions");
    t->replication = (int16_t)config_int(c, offsets ? "offsets.topic.replication.factor"
                                                    : "transaction.state.log.replication.factor");
    snprintf(cr->segment_bytes, sizeof(cr->segment_bytes), "%lld",
             (long long)config_int(c, offsets ? "offsets.topic.segment.bytes"
                                              : "transaction.state.log.segment.bytes"));
    snprintf(cr->min_isr, sizeof(cr->min_isr), "%lld",
             (long long)config_int(c, "transaction.state.log.min.isr"));
    t->configs = cr->configs;
    put_config(t, "cleanup.policy", "compact");
    put_config(t, "compression.type", offsets ? "producer" : "uncompressed");
    put_config(t, "segment.bytes", cr->segment_bytes);
    if (offsets)
        return;
    put_config(t, "min.insync.replicas", cr->min_isr);
    put_config(t, "unclean.leader.election.enable", "false");
}

static void fill(const struct config *c, struct creation *cr, struct new_topic *t)
{
    *t = (struct new_topic){
        .name = cr->name, .partitions = -1, .replication = -1, .any_racks = true};
    if (topic_is_internal(cr->name))
        internal_topic(c, cr, t);
}

void auto_create_topics(struct auto_create *a, struct auto_topic *topics, int n,
                        struct executor *done_on, void (*done)(void *arg), void *arg)
{
    struct call *call = calloc(1, sizeof(*call));
    if (!call)
        abort(); /* nothing to answer with: the process is out of memory */
    call->creations = calloc((size_t)n, sizeof(*call->creations));
    call->topics = calloc((size_t)n, sizeof(*call->topics));
    call->owner = a;
    call->done_on = done_on;
    call->done = done;
    call->arg = arg;
    for (int i = 0; i < n; i++) {
        topics[i].error = KERR_UNKNOWN_TOPIC_OR_PARTITION;
        if (!call->creations || !call->topics)
            continue;
        struct creation *cr = &call->creations[call->n];
        cr->name = topics[i].name;
        cr->topic = &topics[i];
        if (take(a, cr)) {
            fill(broker_config(a->broker), cr, &call->topics[call->n]);
            call->topics[call->n].permit = topics[i].permit;
            call->n++;
        }
    }
    broker_async_begin(a->broker);
    if (call->n == 0) {
        task_init(&call->task, nothing_to_create);
        executor_post(done_on, &call->task);
        return;
    }
    topic_admin_create(broker_topic_admin(a->broker), call->topics, call->n, false, done_on,
                       created, call);
}
