/* fetcher.c - a fetcher's life and its turns. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "replica/fetcher_private.h"

enum {
    FIRST_DELAY_MS = 20, /* then twice as long each time, up to the backoff of the settings */
    KICK_MS = 20,        /* a fetch that is out longer is waiting: a new partition need not */
    HELD_BACK_MS = 100   /* all are held back by a quota: look again */
};

/* ---- the map ---- */

static bool is_part(const struct hnode *node, const void *key)
{
    const struct followed *p = hmap_entry(node, struct followed, node);
    return topic_partition_eq(p->tp, *(const struct topic_partition *)key);
}

static struct followed *find(struct fetcher *f, struct topic_partition tp)
{
    struct hnode *n = hmap_find(&f->map, topic_partition_hash(tp), is_part, &tp);
    return n ? hmap_entry(n, struct followed, node) : NULL;
}

struct id_key {
    struct uuid id;
    int32_t partition;
};

static uint64_t hash_of_id(struct id_key k)
{
    return hash_bytes(k.id.b, sizeof(k.id.b)) ^ hash_int((uint32_t)k.partition);
}

static bool has_id(const struct hnode *node, const void *key)
{
    const struct followed *p = hmap_entry(node, struct followed, id_node);
    const struct id_key *k = key;
    return p->tp.partition == k->partition && uuid_eq(p->id, k->id);
}

struct followed *fetcher_find(struct fetcher *f, struct str topic, struct uuid id,
                              int32_t partition)
{
    if (str_is_null(topic)) {
        struct id_key k = {id, partition};
        struct hnode *n = hmap_find(&f->by_id, hash_of_id(k), has_id, &k);
        return n ? hmap_entry(n, struct followed, id_node) : NULL;
    }
    return find(f, (struct topic_partition){topic, partition});
}

struct followed *fetcher_asked(struct fetcher *f, struct str topic, struct uuid id,
                               int32_t partition)
{
    struct followed *p = fetcher_find(f, topic, id, partition);
    return p && p->asked ? p : NULL;
}

/* 0 or -ENOMEM. */
static int set_id(struct fetcher *f, struct followed *p, struct uuid id)
{
    if (uuid_eq(p->id, id))
        return 0;
    session_forget_part(f, p);
    if (!uuid_is_zero(p->id))
        hmap_remove(&f->by_id, &p->id_node);
    p->id = id;
    if (uuid_is_zero(id))
        return 0;
    int r = hmap_put(&f->by_id, &p->id_node, hash_of_id((struct id_key){id, p->tp.partition}));
    if (r)
        p->id = UUID_ZERO;
    return r;
}

static void drop(struct fetcher *f, struct followed *p)
{
    session_forget_part(f, p);
    if (p->state == FOLLOW_FAILED)
        atomic_fetch_sub(&f->failed_n, 1);
    if (!uuid_is_zero(p->id))
        hmap_remove(&f->by_id, &p->id_node);
    hmap_remove(&f->map, &p->node);
    list_remove(&p->link);
    partition_unref(p->partition);
    free(p);
}

/* ---- states ---- */

bool followed_ready(const struct fetcher *f, const struct followed *p)
{
    return p->state != FOLLOW_FAILED && !p->again &&
           p->delayed_until <= executor_now_ms(f->o.place.ex);
}

void followed_delay(struct fetcher *f, struct followed *p)
{
    p->delay_ms = p->delay_ms ? p->delay_ms * 2 : FIRST_DELAY_MS;
    if (p->delay_ms > f->s->backoff_ms)
        p->delay_ms = f->s->backoff_ms;
    p->delayed_until = executor_now_ms(f->o.place.ex) + p->delay_ms;
}

void followed_fail(struct fetcher *f, struct followed *p, const char *doing, enum kerr e)
{
    /* An epoch that has passed is no trouble: the order of the next one is on its way. */
    enum logline_level level = e == KERR_FENCED_LEADER_EPOCH ? LOGLINE_INFO : LOGLINE_ERROR;
    logline(level, f->component,
            "%.*s-%d: cannot %s: %s; it is not followed until it is told to again",
            STR_ARG(p->tp.topic), (int)p->tp.partition, doing, kerr_name((int16_t)e));
    if (p->state != FOLLOW_FAILED)
        atomic_fetch_add(&f->failed_n, 1);
    p->state = FOLLOW_FAILED;
}

bool followed_went_well(struct fetcher *f, struct followed *p, const char *doing, enum kerr e)
{
    switch (e) {
    case KERR_NONE:
        return true;
    case KERR_NOT_LEADER_OR_FOLLOWER: /* the order that says so is on its way here */
        p->state = FOLLOW_FAILED;
        atomic_fetch_add(&f->failed_n, 1);
        return false;
    case KERR_OFFSET_OUT_OF_RANGE: /* another fetcher changed it: the one before this */
        followed_delay(f, p);
        p->again = true;
        return false;
    case KERR_CORRUPT_MESSAGE:
    case KERR_INVALID_RECORD:
    case KERR_UNKNOWN_SERVER_ERROR: /* no memory, no descriptors */
        say_warn(f->component, "%.*s-%d: cannot %s at offset %lld: %s; trying again",
                 STR_ARG(p->tp.topic), (int)p->tp.partition, doing, (long long)p->offset,
                 kerr_name((int16_t)e));
        followed_delay(f, p);
        return false;
    default:
        followed_fail(f, p, doing, e);
        return false;
    }
}

void followed_look(struct followed *p, const struct follow_view *view)
{
    p->offset = view->log_end;
    p->cuts = view->cuts;
    p->log_start = view->log_start;
    p->last_epoch = view->latest_epoch;
}

/* Where to begin. A log without epochs is trusted up to what is known to be committed. Without the
 * means to cut the rest nothing is asked for, until another try has done it. */
static void begin(struct fetcher *f, struct followed *p)
{
    struct follow_view view;
    enum kerr e = partition_follow_view(p->partition, p->leader_epoch, &view);
    p->behind = true;
    p->again = false;
    p->state = FOLLOW_FETCHING;
    if (e == KERR_NONE && view.latest_epoch < 0 && view.log_end > view.high_watermark)
        e = partition_follow_truncate(p->partition, p->leader_epoch,
                                      (struct follow_seen){view.log_end, view.cuts},
                                      view.high_watermark, &view);
    if (!followed_went_well(f, p, "begin", e)) {
        p->again = p->state != FOLLOW_FAILED;
        return;
    }
    followed_look(p, &view);
    if (view.latest_epoch >= 0 && !ibp_truncates_on_fetch(f->s->ibp))
        p->state = FOLLOW_ASK_EPOCH;
}

/* ---- commands ---- */

static void apply_forget(struct fetcher *f, struct followed *p)
{
    if (p)
        drop(f, p);
}

static struct followed *add(struct fetcher *f, struct partition *partition)
{
    struct followed *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->tp = partition_tp(partition);
    if (hmap_put(&f->map, &p->node, topic_partition_hash(p->tp))) {
        free(p);
        return NULL;
    }
    p->partition = partition_ref(partition);
    p->leader_epoch = -1;
    list_push_back(&f->parts, &p->link);
    return p;
}

static void apply_follow(struct fetcher *f, const struct follow_command *c, struct followed *p)
{
    if (p && p->partition != c->partition) { /* deleted and made again */
        drop(f, p);
        p = NULL;
    }
    if (!p)
        p = add(f, c->partition);
    if (!p || set_id(f, p, c->id)) {
        say_error(f->component, "no memory to follow %.*s-%d",
                  STR_ARG(partition_tp(c->partition).topic),
                  (int)partition_tp(c->partition).partition);
        if (p)
            drop(f, p);
        return;
    }
    if (p->leader_epoch == c->leader_epoch)
        return;
    p->leader_epoch = c->leader_epoch;
    p->asked = false;
    if (p->state == FOLLOW_FAILED)
        atomic_fetch_sub(&f->failed_n, 1);
    p->delay_ms = p->delayed_until = 0;
    begin(f, p);
    f->urgent = true;
}

static void command_free(struct follow_command *c)
{
    partition_unref(c->partition);
    free(c);
}

/* A fetch may wait at the leader for records of its partitions; new ones are not to wait for that.
 * Its answer, if one is on its way, comes again. */
static void interrupt(struct fetcher *f)
{
    remote_close(f->remote);
    f->remote = NULL;
    session_restart(f);
}

/* Another life of the source, maybe: nothing that was known of it counts. Takes the host. */
static void move_to(struct fetcher *f, struct str host, int port)
{
    say_info(f->component, "broker %d is at %.*s:%d now", f->o.source, STR_ARG(host), port);
    free((char *)f->o.host.p);
    f->o.host = host;
    f->o.port = port;
    interrupt(f);
    f->session_id = 0;
    list_each (it, &f->parts) {
        struct followed *p = list_entry(it, struct followed, link);
        p->delay_ms = p->delayed_until = 0;
    }
}

/* Does what was asked for. true: the fetcher is to end. */
static bool apply_commands(struct fetcher *f)
{
    struct list commands = LIST_INIT(commands);
    pthread_mutex_lock(&f->lock);
    f->posted = false;
    list_splice(&commands, &f->commands);
    bool closing = f->closing;
    struct str host = f->new_host;
    int port = f->new_port;
    f->new_host = STR_NULL;
    pthread_mutex_unlock(&f->lock);
    if (!str_is_null(host))
        move_to(f, host, port);
    for (struct list *it; (it = list_pop(&commands)) != NULL;) {
        struct follow_command *c = list_entry(it, struct follow_command, link);
        struct followed *p = find(f, partition_tp(c->partition));
        if (closing)
            ;
        else if (c->leader_epoch < 0)
            apply_forget(f, p);
        else
            apply_follow(f, c, p);
        command_free(c);
    }
    return closing;
}

/* ---- turns ---- */

static void end(struct fetcher *f)
{
    f->ended = true;
    executor_timer_stop(f->o.place.ex, &f->timer);
    remote_close(f->remote); /* answers what is out */
    f->remote = NULL;
    while (!list_empty(&f->parts))
        drop(f, list_entry(f->parts.next, struct followed, link));
    session_restart(f);
    hmap_free(&f->map);
    hmap_free(&f->by_id);
    arena_free(&f->arena);
    struct fetcher_options o = f->o;
    pthread_mutex_destroy(&f->lock);
    free((char *)f->o.host.p);
    free((char *)f->new_host.p);
    free(f);
    o.ended(o.arg, o.place);
}

int64_t fetcher_next_ready_ms(const struct fetcher *f)
{
    int64_t now = executor_now_ms(f->o.place.ex), next = -1;
    list_each (it, &f->parts) {
        const struct followed *p = list_entry(it, struct followed, link);
        if (p->state == FOLLOW_FAILED || p->asked)
            continue;
        int64_t in = p->delayed_until > now ? p->delayed_until - now : HELD_BACK_MS;
        if (next < 0 || in < next)
            next = in;
    }
    return next;
}

/* Those whose log is not as it was left, and those that could not begin: after their delay. */
static void look_again(struct fetcher *f)
{
    int64_t now = executor_now_ms(f->o.place.ex);
    list_each (it, &f->parts) {
        struct followed *p = list_entry(it, struct followed, link);
        if (p->again && p->state != FOLLOW_FAILED && p->delayed_until <= now)
            begin(f, p);
    }
}

static void ask_something(struct fetcher *f)
{
    f->urgent = false;
    executor_timer_stop(f->o.place.ex, &f->timer);
    look_again(f);
    if (fetcher_ask_epochs(f) || fetcher_ask_offsets(f, FOLLOW_ASK_LATEST) ||
        fetcher_ask_offsets(f, FOLLOW_ASK_EARLIEST) || fetcher_fetch(f))
        return;
    int64_t in = fetcher_next_ready_ms(f);
    if (in >= 0)
        executor_timer_start(f->o.place.ex, &f->timer, in);
}

static void turn(struct fetcher *f)
{
    if (apply_commands(f)) {
        end(f);
        return;
    }
    if (f->busy && f->urgent) {
        int64_t left = f->sent_at + KICK_MS - executor_now_ms(f->o.place.ex);
        if (left > 0) {
            executor_timer_start(f->o.place.ex, &f->timer, left);
            return;
        }
        interrupt(f);
    }
    if (!f->busy)
        ask_something(f);
}

static void run(struct task *t)
{
    turn(container_of(t, struct fetcher, task));
}

/* Under the lock. */
static void post(struct fetcher *f)
{
    if (!f->posted)
        executor_post(f->o.place.ex, &f->task);
    f->posted = true;
}

/* By the task, which may be on its way already. */
static void on_timer(struct timer *t)
{
    struct fetcher *f = container_of(t, struct fetcher, timer);
    pthread_mutex_lock(&f->lock);
    post(f);
    pthread_mutex_unlock(&f->lock);
}

/* ---- requests ---- */

void fetcher_send(struct fetcher *f, int16_t api_key, int version, const void *request, peer_cb cb)
{
    if (!f->remote)
        f->remote =
            remote_open(&f->o.place.opener, f->o.host, f->o.port, f->client_id, f->s->timeout_ms);
    f->busy = true;
    f->sent_at = executor_now_ms(f->o.place.ex);
    int r = f->remote ? remote_send(f->remote, api_key, version, version, request, f->s->timeout_ms,
                                    cb, f)
                      : -ENOMEM;
    if (r)
        fetcher_request_failed(f, api_key, r);
}

void fetcher_answered(struct fetcher *f)
{
    f->busy = false;
    arena_reset(&f->arena);
    list_each (it, &f->parts)
        list_entry(it, struct followed, link)->asked = false;
    pthread_mutex_lock(&f->lock);
    if (!f->ended)
        post(f); /* and not at once: others have a turn, and the stack does not grow */
    pthread_mutex_unlock(&f->lock);
}

void fetcher_request_failed(struct fetcher *f, int16_t api_key, int status)
{
    if (status != -ECANCELED) { /* not our own doing */
        if (!f->troubled)
            say_warn(f->component, "broker %d at %.*s:%d does not answer %s: %s; trying on",
                     f->o.source, STR_ARG(f->o.host), f->o.port, api_find(api_key)->name,
                     strerror(-status));
        f->troubled = true;
        list_each (it, &f->parts) {
            struct followed *p = list_entry(it, struct followed, link);
            if (p->state != FOLLOW_FAILED && p->asked)
                followed_delay(f, p);
        }
    }
    session_restart(f);
    fetcher_answered(f);
}

/* ---- life ---- */

struct fetcher *fetcher_new(const struct fetcher_options *o)
{
    struct fetcher *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    f->o = *o;
    f->s = o->settings;
    f->o.host.p = str_dup(o->host);
    if (!f->o.host.p) {
        free(f);
        return NULL;
    }
    snprintf(f->component, sizeof(f->component), "ReplicaFetcher replicaId=%d leaderId=%d id=%d",
             f->s->broker_id, o->source, o->number);
    snprintf(f->client_id, sizeof(f->client_id), "broker-%d-fetcher-%d", f->s->broker_id,
             o->number);
    f->new_host = STR_NULL;
    pthread_mutex_init(&f->lock, NULL);
    list_init(&f->commands);
    list_init(&f->parts);
    list_init(&f->forgotten);
    hmap_init(&f->map);
    hmap_init(&f->by_id);
    arena_init(&f->arena, 0);
    task_init(&f->task, run);
    timer_init(&f->timer, on_timer);
    return f;
}

static int command(struct fetcher *f, struct partition *p, int32_t leader_epoch, struct uuid id)
{
    struct follow_command *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->partition = partition_ref(p);
    c->leader_epoch = leader_epoch;
    c->id = id;
    pthread_mutex_lock(&f->lock);
    list_push_back(&f->commands, &c->link);
    post(f);
    pthread_mutex_unlock(&f->lock);
    return 0;
}

int fetcher_follow(struct fetcher *f, struct partition *p, int32_t leader_epoch, struct uuid id)
{
    return command(f, p, leader_epoch, id);
}

int fetcher_move_to(struct fetcher *f, struct str host, int port)
{
    char *copy = str_dup(host);
    if (!copy)
        return -ENOMEM;
    pthread_mutex_lock(&f->lock);
    free((char *)f->new_host.p);
    f->new_host = (struct str){copy, host.len};
    f->new_port = port;
    post(f);
    pthread_mutex_unlock(&f->lock);
    return 0;
}

void fetcher_forget(struct fetcher *f, struct partition *p)
{
    /* Without memory it goes on, beside the next fetcher of the partition, until the leader epoch
     * changes: each finds what the other did to the log, and does nothing for that answer. */
    command(f, p, -1, UUID_ZERO);
}

void fetcher_close(struct fetcher *f)
{
    pthread_mutex_lock(&f->lock);
    f->closing = true;
    post(f);
    pthread_mutex_unlock(&f->lock);
}

const struct fetcher_counts *fetcher_counts(const struct fetcher *f)
{
    return &f->counts;
}

int fetcher_failed_count(const struct fetcher *f)
{
    return atomic_load(&((struct fetcher *)f)->failed_n);
}
