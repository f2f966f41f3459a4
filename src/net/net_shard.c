/* net_shard.c - a server's connections on one reactor: closing idle ones, turns, waiting for
 * memory.
 *
 * IDLE    connections stand in order of their last movement, so the one timer is set for the head.
 *
 * HELD    while the server is held no frame begins: its connection waits on `hungry`, too, with the
 *         same order of counting and looking.
 *
 * TURNS   a connection can have frames to hand over though its socket is silent: bytes held back
 *         while it was muted, full, or had used up its turn. It is then put in line, and served in
 *         the loop's next round, after the sockets. A round of turns ends after ROUND_NS, so that
 *         connections that ask for little are not kept waiting by those that ask for much.
 *
 * MEMORY  a frame that does not fit the limit makes its connection wait on `hungry`. Waiters count
 *         in memory_waiters *before* they look at the total again, and who frees memory looks at
 *         the waiters *after* lowering it, so one of the two always notices.
 *
 * STALLED a frame counts at its announced length, so a client that announces and sends nothing
 *         would starve others until it is idle. While some wait for memory (not for the end of a
 *         hold, which no frame can bring about) all shards look at their frames every
 *         max_stall_ms: one that has brought less than STALL_BYTES since the last look, though it
 *         was read, goes with its connection. Likewise while answers are short of memory
 *         (answer_memory.c): connections that hold more than STALL_BYTES and took less. */
#include <stdlib.h>

#include "base/logline.h"
#include "net/server_private.h"

enum { CLOSE_BATCH = 256, STALL_BYTES = 64 * 1024 };

static void on_idle(struct timer *t);
static void on_turn(struct task *t);
static void on_fed(struct task *t);
static void on_starving(struct timer *t);
static void on_secure_time(struct timer *t);
static void on_look(struct task *t);
static void on_stop(struct task *t);
static void on_grace(struct timer *t);

void shard_init(struct net_shard *sh, struct net_server *s, struct reactor *r)
{
    sh->server = s;
    sh->reactor = r;
    list_init(&sh->conns);
    list_init(&sh->turns);
    list_init(&sh->hungry);
    list_init(&sh->spare);
    timer_init(&sh->idle, on_idle);
    timer_init(&sh->grace, on_grace);
    task_init(&sh->turn, on_turn);
    task_init(&sh->fed, on_fed);
    task_init(&sh->look_for_stalled, on_look);
    timer_init(&sh->starving, on_starving);
    timer_init(&sh->secure, on_secure_time);
    list_init(&sh->securing);
    task_init(&sh->stop, on_stop);
}

void shard_free(struct net_shard *sh)
{
    struct list *link;
    while ((link = list_pop(&sh->spare))) {
        struct net_request *r = list_entry(link, struct net_request, link);
        arena_free(&r->arena);
        free(r);
    }
}

struct executor *shard_executor(const struct net_shard *sh)
{
    return reactor_executor(sh->reactor);
}

struct frame_pool *shard_frames(const struct net_shard *sh)
{
    return reactor_frames(sh->reactor);
}

static struct conn *first_conn(const struct net_shard *sh)
{
    return list_entry(sh->conns.next, struct conn, lru);
}

/* ---- idle ---- */

void shard_add(struct net_shard *sh, struct conn *c)
{
    int64_t max_idle = sh->server->limits.max_idle_ms;
    sh->handles++;
    c->active_ms = executor_now_ms(shard_executor(sh));
    list_push_back(&sh->conns, &c->lru);
    if (max_idle > 0 && !timer_armed(&sh->idle))
        executor_timer_start(shard_executor(sh), &sh->idle, max_idle);
}

void shard_touch(struct net_shard *sh, struct conn *c)
{
    c->active_ms = executor_now_ms(shard_executor(sh));
    list_remove(&c->lru);
    list_push_back(&sh->conns, &c->lru);
}

void shard_remove(struct net_shard *sh, struct conn *c)
{
    list_remove(&c->lru);
    list_remove(&c->turn);
    shard_secure_end(sh, c);
    if (list_linked(&c->hungry)) {
        list_remove(&c->hungry);
        atomic_fetch_sub(&sh->server->memory_waiters, 1);
    }
    if (list_empty(&sh->conns))
        executor_timer_stop(shard_executor(sh), &sh->idle);
}

static void on_idle(struct timer *t)
{
    struct net_shard *sh = container_of(t, struct net_shard, idle);
    int64_t max_idle = sh->server->limits.max_idle_ms;
    int64_t now = executor_now_ms(shard_executor(sh));
    net_server_ref(sh->server);
    for (int i = 0; i < CLOSE_BATCH && !list_empty(&sh->conns); i++) {
        struct conn *c = first_conn(sh);
        if (c->active_ms + max_idle > now)
            break;
        if (c->requests_n > 0 && !c->ended)
            shard_touch(sh, c); /* an answer is due: not idle */
        else
            conn_close(c, LOGLINE_DEBUG, "idle (connections.max.idle.ms)");
    }
    if (!list_empty(&sh->conns)) {
        int64_t wait = first_conn(sh)->active_ms + max_idle - now;
        executor_timer_start(shard_executor(sh), &sh->idle, wait > 0 ? wait : 0);
    }
    net_server_unref(sh->server);
}

/* ---- TLS handshakes ---- */

static struct conn *first_securing(const struct net_shard *sh)
{
    return list_empty(&sh->securing) ? NULL : list_entry(sh->securing.next, struct conn, secure);
}

static void on_secure_time(struct timer *t)
{
    struct net_shard *sh = container_of(t, struct net_shard, secure);
    struct conn *c;
    net_server_ref(sh->server);
    while ((c = first_securing(sh))) {
        int64_t left =
            c->opened_ms + sh->server->limits.max_secure_ms - executor_now_ms(shard_executor(sh));
        if (left > 0) {
            executor_timer_start(shard_executor(sh), &sh->secure, left);
            break;
        }
        conn_close(c, LOGLINE_INFO, "its TLS handshake takes too long");
    }
    net_server_unref(sh->server);
}

void shard_secure_begin(struct net_shard *sh, struct conn *c)
{
    c->opened_ms = executor_now_ms(shard_executor(sh));
    list_push_back(&sh->securing, &c->secure);
    if (!timer_armed(&sh->secure))
        executor_timer_start(shard_executor(sh), &sh->secure, sh->server->limits.max_secure_ms);
    if (++sh->securing_n > sh->server->limits.max_securing)
        conn_close(first_securing(sh), LOGLINE_INFO,
                   "too many TLS handshakes are under way, and this is the oldest");
}

void shard_secure_end(struct net_shard *sh, struct conn *c)
{
    if (!list_linked(&c->secure))
        return;
    list_remove(&c->secure);
    if (--sh->securing_n == 0)
        executor_timer_stop(shard_executor(sh), &sh->secure);
}

/* ---- too many ---- */

/* The one idle longest that may be closed for others. */
static struct conn *first_to_go(const struct net_shard *sh)
{
    list_each (at, &sh->conns) {
        struct conn *c = list_entry(at, struct conn, lru);
        if (!admission_exempt(&sh->server->admission, c->listener->limits))
            return c;
    }
    return NULL;
}

void shard_shed(struct net_shard *sh)
{
    struct net_server *s = sh->server;
    struct conn *c;
    while (admission_exceeded(&s->admission, atomic_load(&s->connections)) && (c = first_to_go(sh)))
        conn_close(c, LOGLINE_INFO, "too many connections (max.connections)");
}

/* ---- turns ---- */

static void post_turn(struct net_shard *sh)
{
    net_server_ref(sh->server);
    executor_post(shard_executor(sh), &sh->turn);
}

void shard_schedule(struct net_shard *sh, struct conn *c)
{
    if (list_linked(&c->turn))
        return;
    if (list_empty(&sh->turns))
        post_turn(sh);
    list_push_back(&sh->turns, &c->turn);
}

static void on_turn(struct task *t)
{
    struct net_shard *sh = container_of(t, struct net_shard, turn);
    const struct clock *clock = shard_executor(sh)->clock;
    int64_t end_ns = clock_mono_ns(clock) + ROUND_NS;
    struct list now = LIST_INIT(now);
    /* Those that want another turn meanwhile stand in the new list, and post again. */
    list_splice(&now, &sh->turns);
    struct list *link;
    while ((link = list_pop(&now))) {
        conn_take_turn(list_entry(link, struct conn, turn));
        if (clock_mono_ns(clock) >= end_ns)
            break;
    }
    if (!list_empty(&now)) { /* they are the next, after the sockets */
        if (list_empty(&sh->turns))
            post_turn(sh);
        list_splice(&now, &sh->turns);
        list_splice(&sh->turns, &now);
    }
    net_server_unref(sh->server);
}

/* ---- memory ---- */

static bool memory_is_short(struct net_server *s)
{
    uint64_t limit = s->limits.max_inflight_bytes;
    return limit > 0 && atomic_load(&s->inflight) >= limit;
}

/* Counts n bytes unless the limit is reached. */
static bool take_inflight(struct net_server *s, uint32_t n)
{
    uint64_t now = atomic_load(&s->inflight);
    do {
        if (now >= s->limits.max_inflight_bytes)
            return false;
    } while (!atomic_compare_exchange_weak(&s->inflight, &now, now + n));
    return true;
}

static bool may_begin(struct net_server *s, uint32_t n)
{
    return !atomic_load(&s->on_hold) && (s->limits.max_inflight_bytes == 0 || take_inflight(s, n));
}

/* Arms the look at what keeps the memory, if that is what those who wait lack. While held it is
 * not: the end of the hold lets all try again, and come here again. Memory that has become free
 * since does the same. */
static void look_for_memory_later(struct net_shard *sh)
{
    struct net_server *s = sh->server;
    if (!atomic_load(&s->on_hold) && memory_is_short(s))
        shard_look_later(sh);
}

void shard_look_later(struct net_shard *sh)
{
    if (!timer_armed(&sh->starving) && !sh->stopping)
        executor_timer_start(shard_executor(sh), &sh->starving, sh->server->limits.max_stall_ms);
}

bool shard_charge(struct net_shard *sh, struct conn *c, uint32_t n)
{
    struct net_server *s = sh->server;
    if (may_begin(s, n))
        return true;
    atomic_fetch_add(&s->memory_waiters, 1);
    if (may_begin(s, n)) {
        atomic_fetch_sub(&s->memory_waiters, 1);
        return true;
    }
    list_push_back(&sh->hungry, &c->hungry);
    look_for_memory_later(sh);
    return false;
}

void shards_feed(struct net_server *s)
{
    if (atomic_load(&s->memory_waiters) == 0)
        return;
    for (int i = 0; i < s->shards_n; i++) {
        struct net_shard *other = &s->shards[i];
        if (atomic_exchange(&other->fed_posted, true))
            continue;
        net_server_ref(s);
        executor_post(shard_executor(other), &other->fed);
    }
}

void shard_uncharge(struct net_shard *sh, uint32_t n)
{
    struct net_server *s = sh->server;
    if (s->limits.max_inflight_bytes == 0)
        return;
    uint64_t left = atomic_fetch_sub(&s->inflight, n) - n;
    if (left < s->limits.max_inflight_bytes)
        shards_feed(s);
}

/* All that wait try again; who fails waits again, in the same order. */
static void on_fed(struct task *t)
{
    struct net_shard *sh = container_of(t, struct net_shard, fed);
    atomic_store(&sh->fed_posted, false);
    struct list *link;
    while ((link = list_pop(&sh->hungry))) {
        atomic_fetch_sub(&sh->server->memory_waiters, 1);
        shard_schedule(sh, list_entry(link, struct conn, hungry));
    }
    net_server_unref(sh->server);
}

/* ---- frames that do not come ---- */

static void on_starving(struct timer *t)
{
    struct net_shard *sh = container_of(t, struct net_shard, starving);
    struct net_server *s = sh->server;
    if (!list_empty(&sh->hungry))
        look_for_memory_later(sh);
    if (answers_short(s))
        shard_look_later(sh);
    if (!timer_armed(&sh->starving))
        return;
    for (int i = 0; i < s->shards_n; i++) {
        struct net_shard *other = &s->shards[i];
        if (atomic_exchange(&other->look_posted, true))
            continue;
        net_server_ref(s);
        executor_post(shard_executor(other), &other->look_for_stalled);
    }
}

/* Is it us who do not read it? */
static bool held_back(const struct conn *c)
{
    return c->muted || c->state != CONN_OPEN || list_linked(&c->turn) || conn_holds(c) ||
           (c->requests_n > 0 && !conn_may_read(c));
}

static bool stalled(struct conn *c, int64_t now, int64_t max_ms)
{
    if (!c->in.begun || held_back(c)) {
        c->looked_ms = 0;
        return false;
    }
    bool same =
        c->looked_ms && c->in.got >= c->looked_got && c->in.got - c->looked_got < STALL_BYTES;
    if (same && now - c->looked_ms < max_ms)
        return false;
    c->looked_ms = now;
    c->looked_got = c->in.got;
    return same;
}

/* Does it keep memory of answers that it does not take? */
static bool takes_no_answers(struct conn *c, int64_t now, int64_t max_ms)
{
    bool looked = c->answers_looked_ms && now - c->answers_looked_ms <= 3 * max_ms;
    bool same = looked && c->answers_sent < STALL_BYTES;
    if (c->memory < STALL_BYTES || c->out.left == 0) {
        c->answers_looked_ms = 0;
        return false;
    }
    if (same && now - c->answers_looked_ms < max_ms)
        return false;
    c->answers_looked_ms = now;
    c->answers_sent = 0;
    return same;
}

static void on_look(struct task *t)
{
    struct net_shard *sh = container_of(t, struct net_shard, look_for_stalled);
    struct net_server *s = sh->server;
    int64_t now = executor_now_ms(shard_executor(sh)), max = s->limits.max_stall_ms;
    bool frames = !atomic_load(&s->on_hold) && memory_is_short(s), answers = answers_short(s);
    atomic_store(&sh->look_posted, false);
    list_each_safe (at, &sh->conns) {
        struct conn *c = list_entry(at, struct conn, lru);
        if (frames && stalled(c, now, max))
            conn_close(c, LOGLINE_INFO,
                       "its request does not come, and others wait for the memory kept for it "
                       "(queued.max.request.bytes)");
        else if (answers && takes_no_answers(c, now, max))
            conn_close(c, LOGLINE_INFO,
                       "it does not take its answers, which keep the memory for those of others");
    }
    net_server_unref(s);
}

/* ---- stop ---- */

static void drained(struct net_shard *sh)
{
    if (!sh->stopping || sh->handles > 0)
        return;
    executor_timer_stop(shard_executor(sh), &sh->grace);
    executor_timer_stop(shard_executor(sh), &sh->starving);
    executor_timer_stop(shard_executor(sh), &sh->secure);
    sem_post(&sh->server->done);
}

void shard_handle_closed(struct net_shard *sh)
{
    sh->handles--;
    drained(sh);
}

void shard_stop(struct net_shard *sh)
{
    net_server_ref(sh->server);
    executor_post(shard_executor(sh), &sh->stop);
}

void shard_end_listener(struct net_shard *sh, const struct listener *l)
{
    struct list all = LIST_INIT(all);
    list_splice(&all, &sh->conns);
    while (!list_empty(&all)) {
        struct conn *c = list_entry(all.next, struct conn, lru);
        list_remove(&c->lru);
        list_push_back(&sh->conns, &c->lru);
        if (c->listener == l)
            conn_end(c);
    }
    if (!list_empty(&sh->conns) && !timer_armed(&sh->idle) && sh->server->limits.max_idle_ms > 0)
        executor_timer_start(shard_executor(sh), &sh->idle, 0); /* it stopped while they were out */
}

static void on_stop(struct task *t)
{
    struct net_shard *sh = container_of(t, struct net_shard, stop);
    sh->stopping = true;
    executor_timer_start(shard_executor(sh), &sh->grace, sh->server->grace_ms);
    struct list all = LIST_INIT(all);
    list_splice(&all, &sh->conns);
    while (!list_empty(&all)) {
        struct conn *c = list_entry(all.next, struct conn, lru);
        list_remove(&c->lru);
        list_push_back(&sh->conns, &c->lru);
        conn_read_no_more(c);
        conn_settle(c);
    }
    drained(sh);
    net_server_unref(sh->server);
}

static void on_grace(struct timer *t)
{
    struct net_shard *sh = container_of(t, struct net_shard, grace);
    net_server_ref(sh->server);
    while (!list_empty(&sh->conns))
        conn_close(first_conn(sh), LOGLINE_DEBUG, "stopping, and its time is over");
    net_server_unref(sh->server);
}
