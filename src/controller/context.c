/* context.c - see context.h. */
#include "controller/context.h"

#include <stdio.h>
#include <stdlib.h>

#include "metadata/paths.h"

const char *partition_state_name(enum partition_state s)
{
    static const char *const names[] = {"New", "Online", "Offline", "NonExistent"};
    return names[s];
}

const char *replica_state_name(enum replica_state s)
{
    static const char *const names[] = {"",
                                        "New",
                                        "Online",
                                        "Offline",
                                        "DeletionStarted",
                                        "DeletionSuccessful",
                                        "DeletionIneligible",
                                        "NonExistent"};
    return names[s];
}

void context_init(struct context *x)
{
    *x = (struct context){.brokers_n = 0};
    hmap_init(&x->topics);
    hmap_init(&x->by_id);
}

void context_clear(struct context *x)
{
    struct hnode *h;
    while (x->brokers_n)
        context_remove_broker(x, x->brokers[x->brokers_n - 1]);
    while ((h = hmap_first(&x->topics)))
        context_remove_topic(x, hmap_entry(h, struct ctl_topic, node));
    free(x->brokers);
    hmap_free(&x->topics);
    hmap_free(&x->by_id);
    context_init(x);
}

/* Room for one more pointer. */
static bool room(void ***v, int n, int *cap)
{
    if (n < *cap)
        return true;
    int more = *cap ? *cap * 2 : 4;
    void **bigger = realloc(*v, (size_t)more * sizeof(void *));
    if (!bigger)
        return false;
    *v = bigger;
    *cap = more;
    return true;
}

/* Brokers. */

/* Place of the first broker whose id is not below. */
static int broker_place(const struct context *x, int32_t id)
{
    int from = 0, to = x->brokers_n;
    while (from < to) {
        int mid = (from + to) / 2;
        if (x->brokers[mid]->id < id)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

struct ctl_broker *context_broker(const struct context *x, int32_t id)
{
    int at = broker_place(x, id);
    return at < x->brokers_n && x->brokers[at]->id == id ? x->brokers[at] : NULL;
}

bool context_is_live(const struct context *x, int32_t id)
{
    const struct ctl_broker *b = context_broker(x, id);
    return b && !b->shutting_down;
}

int context_update_broker(struct ctl_broker *b, const struct broker_info *info)
{
    struct arena a;
    arena_init(&a, 0);
    struct endpoint *e = arena_array(&a, struct endpoint, (size_t)info->endpoints_n);
    bool good = e != NULL;
    for (int i = 0; good && i < info->endpoints_n; i++) {
        e[i] = info->endpoints[i];
        e[i].listener = arena_str(&a, e[i].listener);
        e[i].host = arena_str(&a, e[i].host);
        good = e[i].listener.p && e[i].host.p;
    }
    struct str rack = arena_str(&a, info->rack);
    if (!good || (!str_is_null(info->rack) && !rack.p)) {
        arena_free(&a);
        return -ENOMEM;
    }
    arena_free(&b->arena);
    b->arena = a;
    b->info = (struct broker_info){b->id, rack, e, info->endpoints_n};
    return 0;
}

struct ctl_broker *context_add_broker(struct context *x, const struct broker_info *info,
                                      int64_t epoch)
{
    struct ctl_broker *b = calloc(1, sizeof(*b));
    if (!b || !room((void ***)&x->brokers, x->brokers_n, &x->brokers_cap)) {
        free(b);
        return NULL;
    }
    b->id = info->id;
    b->epoch = epoch;
    snprintf(b->path, sizeof(b->path), PATH_BROKER_IDS "/%d", info->id);
    arena_init(&b->arena, 0);
    if (context_update_broker(b, info)) {
        free(b);
        return NULL;
    }
    int at = broker_place(x, b->id);
    memmove(x->brokers + at + 1, x->brokers + at,
            (size_t)(x->brokers_n - at) * sizeof(struct ctl_broker *));
    x->brokers[at] = b;
    x->brokers_n++;
    return b;
}

void context_remove_broker(struct context *x, struct ctl_broker *b)
{
    int at = broker_place(x, b->id);
    x->brokers_n--;
    memmove(x->brokers + at, x->brokers + at + 1,
            (size_t)(x->brokers_n - at) * sizeof(struct ctl_broker *));
    arena_free(&b->arena);
    free(b->outbox.v);
    free(b);
}

/* Topics. */

static bool name_equals(const struct hnode *h, const void *key)
{
    return str_eq(hmap_entry(h, struct ctl_topic, node)->name, *(const struct str *)key);
}

struct ctl_topic *context_topic(const struct context *x, struct str name)
{
    struct hnode *h = hmap_find(&x->topics, hash_str(name), name_equals, &name);
    return h ? hmap_entry(h, struct ctl_topic, node) : NULL;
}

static void topic_free(struct ctl_topic *t)
{
    for (int i = 0; i < t->partitions_n; i++) {
        free(t->partitions[i]->isr.v);
        free(t->partitions[i]->replicas);
        free(t->partitions[i]);
    }
    free(t->partitions);
    free((char *)t->name.p);
    free(t->path);
    free(t);
}

struct ctl_topic *context_add_topic(struct context *x, struct str name, struct uuid id)
{
    struct ctl_topic *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->name = (struct str){str_dup(name), name.len};
    t->order = x->topics_made++;
    if (asprintf(&t->path, PATH_TOPICS "/%.*s", STR_ARG(name)) < 0)
        t->path = NULL;
    if (!t->name.p || !t->path || hmap_put(&x->topics, &t->node, hash_str(name))) {
        topic_free(t);
        return NULL;
    }
    if (context_set_topic_id(x, t, id)) {
        context_remove_topic(x, t);
        return NULL;
    }
    return t;
}

static bool id_equals(const struct hnode *h, const void *key)
{
    return uuid_eq(hmap_entry(h, struct ctl_topic, id_node)->id, *(const struct uuid *)key);
}

struct ctl_topic *context_topic_by_id(const struct context *x, struct uuid id)
{
    struct hnode *h = hmap_find(&x->by_id, hash_bytes(id.b, sizeof(id.b)), id_equals, &id);
    return h ? hmap_entry(h, struct ctl_topic, id_node) : NULL;
}

int context_set_topic_id(struct context *x, struct ctl_topic *t, struct uuid id)
{
    if (uuid_eq(t->id, id))
        return 0;
    if (!uuid_is_zero(t->id))
        hmap_remove(&x->by_id, &t->id_node);
    t->id = UUID_ZERO;
    /* two nodes with one id are somebody's mistake: the first one keeps it here */
    if (uuid_is_zero(id) || context_topic_by_id(x, id))
        return 0;
    if (hmap_put(&x->by_id, &t->id_node, hash_bytes(id.b, sizeof(id.b))))
        return -ENOMEM;
    t->id = id;
    return 0;
}

void context_remove_topic(struct context *x, struct ctl_topic *t)
{
    hmap_remove(&x->topics, &t->node);
    if (!uuid_is_zero(t->id))
        hmap_remove(&x->by_id, &t->id_node);
    topic_free(t);
}

/* Place of the first partition whose number is not below. */
static int partition_place(const struct ctl_topic *t, int32_t number)
{
    int from = 0, to = t->partitions_n;
    if (number >= 0 && number < to && t->partitions[number]->number == number)
        return number; /* no gaps before it, as nearly always */
    while (from < to) {
        int mid = (from + to) / 2;
        if (t->partitions[mid]->number < number)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

struct ctl_partition *context_partition(const struct ctl_topic *t, int32_t number)
{
    int at = partition_place(t, number);
    return at < t->partitions_n && t->partitions[at]->number == number ? t->partitions[at] : NULL;
}

struct ctl_partition *context_add_partition(struct ctl_topic *t,
                                            const struct partition_assignment *a)
{
    struct ctl_partition *p = calloc(1, sizeof(*p));
    struct ctl_replica *replicas = calloc((size_t)a->replicas.n + 1, sizeof(*replicas));
    if (!p || !replicas || !room((void ***)&t->partitions, t->partitions_n, &t->partitions_cap)) {
        free(p);
        free(replicas);
        return NULL;
    }
    *p = (struct ctl_partition){.topic = t,
                                .number = a->partition,
                                .state = PARTITION_NON_EXISTENT,
                                .leader = -1,
                                .replicas = replicas,
                                .replicas_n = a->replicas.n};
    for (int i = 0; i < a->replicas.n; i++)
        replicas[i] = (struct ctl_replica){.broker = a->replicas.v[i],
                                           .state = REPLICA_NON_EXISTENT,
                                           .adding = id_list_has(a->adding, a->replicas.v[i]),
                                           .removing = id_list_has(a->removing, a->replicas.v[i])};
    t->replicas_in[REPLICA_NON_EXISTENT] += a->replicas.n;
    int at = partition_place(t, p->number);
    memmove(t->partitions + at + 1, t->partitions + at,
            (size_t)(t->partitions_n - at) * sizeof(struct ctl_partition *));
    t->partitions[at] = p;
    t->partitions_n++;
    return p;
}

int context_set_known(struct ctl_partition *p, const struct partition_node *node, int32_t epoch)
{
    int32_t *isr = malloc(((size_t)node->isr.n + 1) * sizeof(*isr));
    if (!isr)
        return -ENOMEM;
    memcpy(isr, node->isr.v, (size_t)node->isr.n * sizeof(*isr));
    free(p->isr.v);
    p->isr = (struct id_list){isr, node->isr.n};
    p->known = true;
    p->recovering = node->recovering;
    p->leader = node->leader;
    p->leader_epoch = node->leader_epoch;
    p->controller_epoch = node->controller_epoch;
    p->epoch = epoch;
    return 0;
}

struct ctl_replica *context_replica(const struct ctl_partition *p, int32_t broker)
{
    for (int i = 0; i < p->replicas_n; i++)
        if (p->replicas[i].broker == broker)
            return &p->replicas[i];
    return NULL;
}

void context_set_replica(struct ctl_partition *p, struct ctl_replica *r, enum replica_state to)
{
    p->topic->replicas_in[r->state]--;
    p->topic->replicas_in[to]++;
    r->state = (uint8_t)to;
}

/* Reassignments. */

bool context_is_moving(const struct ctl_partition *p)
{
    for (int i = 0; i < p->replicas_n; i++)
        if (p->replicas[i].adding || p->replicas[i].removing)
            return true;
    return false;
}

static struct id_list without(const struct ctl_partition *p, struct arena *a, bool adding)
{
    struct id_list l = {arena_array(a, int32_t, (size_t)p->replicas_n), 0};
    for (int i = 0; l.v && i < p->replicas_n; i++)
        if (!(adding ? p->replicas[i].adding : p->replicas[i].removing))
            l.v[l.n++] = p->replicas[i].broker;
    return l;
}

struct id_list context_origin(const struct ctl_partition *p, struct arena *a)
{
    return without(p, a, true);
}

struct id_list context_target(const struct ctl_partition *p, struct arena *a)
{
    return without(p, a, false);
}

static struct ctl_replica moved(struct ctl_partition *p, int32_t broker, struct id_list target,
                                struct id_list origin)
{
    const struct ctl_replica *old = context_replica(p, broker);
    struct ctl_replica r = {.broker = broker, .state = REPLICA_NON_EXISTENT};
    if (old)
        r = *old;
    else
        p->topic->replicas_in[REPLICA_NON_EXISTENT]++;
    r.adding = !id_list_has(origin, broker);
    r.removing = !id_list_has(target, broker);
    return r;
}

int context_reassign(struct ctl_partition *p, struct id_list target, struct id_list origin)
{
    size_t room = (size_t)(target.n + origin.n + p->replicas_n) + 1;
    struct ctl_replica *now = calloc(room, sizeof(*now));
    int n = 0;
    if (!now)
        return -ENOMEM;
    context_forget_dropped(p);
    for (int i = 0; i < target.n; i++)
        now[n++] = moved(p, target.v[i], target, origin);
    for (int i = 0; i < origin.n; i++)
        if (!id_list_has(target, origin.v[i]))
            now[n++] = moved(p, origin.v[i], target, origin);
    int dropped = 0;
    for (int i = 0; i < p->replicas_n; i++)
        if (!id_list_has(target, p->replicas[i].broker) &&
            !id_list_has(origin, p->replicas[i].broker))
            now[n + dropped++] = p->replicas[i];
    free(p->replicas);
    p->replicas = now;
    p->replicas_n = n;
    p->dropped_n = dropped;
    return 0;
}

void context_forget_dropped(struct ctl_partition *p)
{
    for (int i = 0; i < p->dropped_n; i++)
        p->topic->replicas_in[p->replicas[p->replicas_n + i].state]--;
    p->dropped_n = 0;
}

void context_keep_dropped(struct ctl_partition *p, struct id_list origin)
{
    for (int i = 0; i < p->replicas_n + p->dropped_n; i++) {
        p->replicas[i].adding = !id_list_has(origin, p->replicas[i].broker);
        p->replicas[i].removing = i >= p->replicas_n;
    }
    p->replicas_n += p->dropped_n;
    p->dropped_n = 0;
}
