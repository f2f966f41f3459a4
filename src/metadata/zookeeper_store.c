/* zookeeper_store.c - session, queue and window of the store at ZooKeeper; what one request says to
 * the library is in zookeeper_call.c.
 *
 * REQUESTS   queue (nobody has sent them) -> window (at most max_in_flight; sent, or lost and to be
 *            sent again, or done) -> answered from the window's front, so that answers keep the
 *            order in spite of what is sent twice.
 * SESSION    OPENING (no session yet: requests wait) -> LIVE (cut off or not) -> TELLING (expired;
 *            -ESTALE to all until every listener has heard it) -> OPENING ..., and from any state
 *            -> GONE by close.
 * HANDLE     the library's; made and closed on our thread only, since a callback must not close the
 *            handle that calls it. Once it is closed, nothing of it calls any more.
 * ORPHANS    calls whose request was answered at the expiry; the library still has them.
 * ORDER      the library's completion thread brings answers, watches and the session's changes in
 *            the order in which they came from the server; they are handed on in that order. */
#include "metadata/zookeeper_store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cond.h"
#include "base/logline.h"
#include "base/thread.h"
#include "metadata/session_listeners.h"
#include "metadata/store_answer.h"
#include "metadata/watches.h"
#include "metadata/zookeeper_call.h"
#include "metadata/zookeeper_connect.h"
#include "metadata/zookeeper_log.h"

static const char component[] = "ZooKeeperClient";
enum {
    RESOLVE_WHEN_LOST = -1, /* else the library asks for all servers' addresses at each request, on
                               the thread that keeps the session alive */
    RETRY_MS = 1000,        /* between tries to make a handle */
    AGAIN_MS = 100,         /* until a request that the server put off is sent again */
    CLOSE_MS = 5000,        /* at the close: for what is under way */
    LOOK_MS = 100,          /* between looks at deadlines, while something is under way */
    LOST_MAX = 3,           /* times that a request may take its connection with it ... */
    SERVER_BYTES = (1 << 20) - 1024 /* ... when it is larger than this */
};

enum state { STATE_OPENING, STATE_LIVE, STATE_TELLING, STATE_GONE };

struct zk_store {
    struct store store;
    /* Fixed. */
    struct zookeeper_options o;
    struct zookeeper_connect where;
    char *digest;
    struct watches *watches;
    struct session_listeners *listeners;
    pthread_t thread;
    struct store_counts counts;

    pthread_mutex_t lock;   /* all below */
    pthread_cond_t wake;    /* for our thread */
    pthread_cond_t changed; /* connected, refused, idle: for open and close */
    enum state state;
    zhandle_t *zh;
    bool ready;     /* the handle may be used */
    bool connected; /* as far as we know */
    bool renew;     /* the handle's session is over: another one */
    bool announce;  /* tell CONNECTED when connected */
    bool refused;   /* the server does not accept who we are */
    bool closing;
    bool again;   /* something in the window waits for another try */
    bool no_wait; /* nothing waits while cut off: the end is near */
    bool dated;   /* something that waits may have a deadline */
    int64_t session;
    struct list queue;  /* of store_request by task.link */
    struct list window; /* of zookeeper_call */
    int window_n;
    struct list orphans;
    int refs;
};

static int64_t now_ms(void)
{
    return clock_mono_ms(clock_real());
}

static struct zk_store *zk_of(struct store *s)
{
    return container_of(s, struct zk_store, store);
}

static void zk_free(struct zk_store *s)
{
    watches_free(s->watches);
    session_listeners_free(s->listeners);
    zookeeper_connect_clear(&s->where);
    free(s->digest);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->wake);
    pthread_cond_destroy(&s->changed);
    free(s);
}

/* Lets go of the lock and of one reference. */
static void unlock_unref(struct zk_store *s)
{
    bool last = --s->refs == 0;
    pthread_mutex_unlock(&s->lock);
    if (last)
        zk_free(s);
}

/* ---- requests; the lock is held in all of these ---- */

static void refuse(struct store_request *r, int status)
{
    store_request_reset(r);
    store_request_refuse(r, status);
    store_request_answer(r);
}

static void call_drop(struct zk_store *s, struct zookeeper_call *c)
{
    list_remove(&c->link);
    s->window_n--;
    c->request = NULL;
    if (c->in_library)
        list_push_back(&s->orphans, &c->link);
    else
        zookeeper_call_free(c);
}

static void answer_front(struct zk_store *s)
{
    while (!list_empty(&s->window)) {
        struct zookeeper_call *c = list_entry(s->window.next, struct zookeeper_call, link);
        if (c->state != CALL_DONE)
            break;
        struct store_request *r = c->request;
        call_drop(s, c);
        store_request_answer(r);
    }
    if (list_empty(&s->window) && list_empty(&s->queue))
        pthread_cond_broadcast(&s->changed);
}

/* All that waits or is under way; what has its answer already keeps it. */
static void refuse_all(struct zk_store *s, int status)
{
    while (!list_empty(&s->window)) {
        struct zookeeper_call *c = list_entry(s->window.next, struct zookeeper_call, link);
        struct store_request *r = c->request;
        if (c->state != CALL_DONE) {
            store_request_reset(r);
            store_request_refuse(r, status);
        }
        call_drop(s, c);
        store_request_answer(r);
    }
    for (struct list *at; (at = list_pop(&s->queue));)
        refuse(list_entry(at, struct store_request, task.link), status);
    pthread_cond_broadcast(&s->changed);
}

static void settle(struct zookeeper_call *c, int status)
{
    store_request_reset(c->request);
    store_request_refuse(c->request, status);
    c->state = CALL_DONE;
}

static void send_call(struct zk_store *s, struct zookeeper_call *c)
{
    c->state = CALL_SENT;
    if (!c->sent_ns)
        c->sent_ns = clock_mono_ns(clock_real());
    c->in_library = true;
    int rc = zookeeper_call_send(c, s->zh);
    if (rc == ZOK)
        return;
    c->in_library = false;
    if (rc == ZINVALIDSTATE || rc == ZCLOSING) /* the session's end is about to be told */
        c->state = CALL_UNSENT;
    else
        zookeeper_call_take(c, rc), c->state = CALL_DONE;
}

static void call_over(struct zookeeper_call *c, int rc);
static void on_event(zhandle_t *zh, int type, int state, const char *path, void *context);

/* The next of the queue into the window. False: no memory, later. */
static bool enter_window(struct zk_store *s)
{
    struct store_request *r = list_entry(s->queue.next, struct store_request, task.link);
    struct zookeeper_call *c = zookeeper_call_new(r, s->where.chroot, s->o.protect);
    if (!c && s->window_n)
        return false;
    list_remove(&r->task.link);
    if (!c) {
        refuse(r, -ENOMEM);
        return true;
    }
    c->owner = s;
    c->over = call_over;
    c->watcher = on_event;
    list_push_back(&s->window, &c->link);
    s->window_n++;
    int status = zookeeper_call_check(c);
    if (status)
        settle(c, status);
    else
        send_call(s, c);
    return true;
}

static void pump(struct zk_store *s)
{
    if (!s->connected || !s->ready || s->state != STATE_LIVE)
        return;
    list_each (at, &s->window) {
        struct zookeeper_call *c = list_entry(at, struct zookeeper_call, link);
        if (c->state == CALL_UNSENT)
            send_call(s, c);
    }
    answer_front(s);
    while (!list_empty(&s->queue) && s->window_n < s->o.max_in_flight) {
        if (!enter_window(s))
            break;
        answer_front(s);
    }
}

static void lost(struct zk_store *s, struct zookeeper_call *c, int rc)
{
    c->state = CALL_UNSENT;
    if (rc == ZSESSIONMOVED || rc == ZTHROTTLEDOP) { /* the connection may well stay */
        s->again = true;
        pthread_cond_signal(&s->wake);
    } else if (c->bytes > SERVER_BYTES && ++c->lost >= LOST_MAX) {
        say_error(component,
                  "%s: a request of %zu bytes takes the connection down; the servers' "
                  "jute.maxbuffer must be larger",
                  c->request->ops[0].path, c->bytes);
        settle(c, -E2BIG);
    }
}

/* On the library's completion thread. */
static void call_over(struct zookeeper_call *c, int rc)
{
    struct zk_store *s = c->owner;
    pthread_mutex_lock(&s->lock);
    c->in_library = false;
    if (!c->request) {
        list_remove(&c->link);
        zookeeper_call_free(c);
    } else if (zookeeper_call_is_lost(rc)) {
        lost(s, c, rc);
        answer_front(s);
    } else {
        zookeeper_call_take(c, rc);
        c->state = CALL_DONE;
        histogram_add(&s->counts.latency_us,
                      (uint64_t)(clock_mono_ns(clock_real()) - c->sent_ns) / 1000);
        if (zookeeper_call_arms(c->request))
            watches_arm(s->watches, s, c->request->ops[0].path,
                        c->request->ops[0].type == STORE_CHILDREN);
        answer_front(s);
        pump(s);
    }
    pthread_mutex_unlock(&s->lock);
}

static void zk_submit(struct store *store, struct list *requests)
{
    struct zk_store *s = zk_of(store);
    list_each (at, requests)
        list_entry(at, struct store_request, task.link)->store = store;
    pthread_mutex_lock(&s->lock);
    bool over =
        s->state == STATE_TELLING || s->state == STATE_GONE || (s->no_wait && !s->connected);
    while (over && !list_empty(requests))
        refuse(list_entry(list_pop(requests), struct store_request, task.link), -ESTALE);
    list_each (at, requests)
        if (!s->dated && list_entry(at, struct store_request, task.link)->deadline_ms) {
            s->dated = true;
            pthread_cond_signal(&s->wake);
        }
    list_splice(&s->queue, requests);
    pump(s);
    pthread_mutex_unlock(&s->lock);
}

/* Refuses what waited too long; notes whether anything is left that may. */
static void look_at_deadlines(struct zk_store *s)
{
    int64_t now = now_ms();
    s->dated = false;
    list_each_safe (at, &s->window) {
        struct zookeeper_call *c = list_entry(at, struct zookeeper_call, link);
        int64_t deadline = c->state == CALL_DONE ? 0 : c->request->deadline_ms;
        if (deadline && deadline <= now) { /* out of order: what is before it may wait on */
            struct store_request *r = c->request;
            settle(c, -ETIMEDOUT);
            call_drop(s, c);
            store_request_answer(r);
        } else {
            s->dated |= deadline != 0;
        }
    }
    list_each_safe (at, &s->queue) {
        struct store_request *r = list_entry(at, struct store_request, task.link);
        if (r->deadline_ms && r->deadline_ms <= now) {
            list_remove(at);
            refuse(r, -ETIMEDOUT);
        } else {
            s->dated |= r->deadline_ms != 0;
        }
    }
    answer_front(s);
}

/* ---- the session; on the library's completion thread, the lock is held ---- */

static void note_link(struct zk_store *s, enum store_link link, metric *how_often)
{
    atomic_store(&s->counts.link, (int)link);
    metric_add(how_often, 1);
}

static void note_connected(struct zk_store *s, zhandle_t *zh)
{
    int64_t id = zoo_client_id(zh)->client_id;
    char server[ZOOKEEPER_SERVER_TEXT];
    struct sockaddr_storage at;
    socklen_t at_len = sizeof(at);
    const struct sockaddr *found =
        zookeeper_get_connected_host(zh, (struct sockaddr *)&at, &at_len);
    zookeeper_server_text(found, at_len, server);
    s->zh = zh;
    s->connected = true;
    note_link(s, STORE_LINK_CONNECTED, &s->counts.connects);
    s->session = id;
    say_info(component, "connected to %s, session 0x%" PRIx64 ", timeout %d ms", server, id,
             zoo_recv_timeout(zh));
    if (s->state == STATE_OPENING)
        s->state = STATE_LIVE;
    if (s->announce)
        session_listeners_tell(s->listeners, STORE_CONNECTED, NULL, NULL);
    s->announce = false;
    pthread_cond_broadcast(&s->changed);
    pump(s);
}

static void note_cut_off(struct zk_store *s)
{
    if (s->connected)
        say_warn(component, "connection to ZooKeeper lost; requests wait");
    if (s->connected)
        note_link(s, STORE_LINK_CUT_OFF, &s->counts.disconnects);
    s->connected = false;
    if (s->no_wait)
        refuse_all(s, -ESTALE);
    pthread_cond_broadcast(&s->changed);
}

static void want_renewal(struct zk_store *s)
{
    s->state = STATE_OPENING;
    s->announce = true;
    s->renew = true;
    pthread_cond_signal(&s->wake);
}

/* All listeners have heard that it expired. */
static void begin_anew(void *arg)
{
    struct zk_store *s = arg;
    pthread_mutex_lock(&s->lock);
    if (s->state == STATE_TELLING)
        want_renewal(s);
    unlock_unref(s);
}

static void note_expired(struct zk_store *s)
{
    s->connected = false;
    if (s->state == STATE_OPENING) { /* a session that nobody knew of */
        s->renew = true;
        pthread_cond_signal(&s->wake);
    }
    if (s->state != STATE_LIVE)
        return;
    say_warn(component, "session 0x%" PRIx64 " has expired", s->session);
    note_link(s, STORE_LINK_EXPIRED, &s->counts.expiries);
    s->state = STATE_TELLING;
    refuse_all(s, -ESTALE);
    watches_disarm(s->watches, s);
    s->refs++;
    if (session_listeners_tell(s->listeners, STORE_EXPIRED, begin_anew, s))
        return;
    s->refs--;
    want_renewal(s);
}

static void note_refused(struct zk_store *s)
{
    say_error(component, "ZooKeeper does not accept our credentials");
    s->refused = true;
    metric_add(&s->counts.auth_failures, 1);
    pthread_cond_broadcast(&s->changed);
    note_expired(s); /* the library gives the session up */
}

static void note_session(struct zk_store *s, zhandle_t *zh, int state)
{
    if (s->closing || (s->zh && s->zh != zh))
        return;
    if (state == ZOO_CONNECTED_STATE)
        note_connected(s, zh);
    else if (state == ZOO_EXPIRED_SESSION_STATE)
        note_expired(s);
    else if (state == ZOO_AUTH_FAILED_STATE)
        note_refused(s);
    else
        note_cut_off(s);
}

static void note_change(struct zk_store *s, int type, const char *path)
{
    size_t root = strlen(s->where.chroot);
    if (strncmp(path, s->where.chroot, root) != 0)
        return;
    path = path[root] ? path + root : "/";
    if (type != ZOO_CHILD_EVENT)
        watches_note(s->watches, path, false);
    if (type == ZOO_CHILD_EVENT || type == ZOO_DELETED_EVENT)
        watches_note(s->watches, path, true);
    struct list told;
    list_init(&told);
    watches_take(s->watches, &told);
    watches_tell(s->watches, &told);
}

static void on_event(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct zk_store *s = context;
    pthread_mutex_lock(&s->lock);
    if (type == ZOO_SESSION_EVENT)
        note_session(s, zh, state);
    else if (path && !s->renew)
        note_change(s, type, path);
    pthread_mutex_unlock(&s->lock);
}

/* ---- our thread: the handle's life; the lock is held between the calls of the library ---- */

static void wait_ms(struct zk_store *s, pthread_cond_t *cond, int64_t ms)
{
    cond_wait_until(cond, &s->lock, now_ms() + ms);
}

static void close_handle(struct zk_store *s)
{
    zhandle_t *zh = s->zh;
    s->ready = s->connected = false;
    if (zh) {
        pthread_mutex_unlock(&s->lock);
        zookeeper_close(zh); /* waits for its threads, so for their callbacks */
        pthread_mutex_lock(&s->lock);
    }
    s->zh = NULL;
    while (!list_empty(&s->orphans))
        zookeeper_call_free(list_entry(list_pop(&s->orphans), struct zookeeper_call, link));
}

static void open_handle(struct zk_store *s)
{
    pthread_mutex_unlock(&s->lock);
    zhandle_t *zh = zookeeper_init2(s->where.hosts, on_event, s->o.session_timeout_ms, NULL, s,
                                    ZOO_NO_LOG_CLIENTENV, zookeeper_log);
    int error = errno;
    int rc = zh ? zoo_set_servers_resolution_delay(zh, RESOLVE_WHEN_LOST) : ZOK;
    if (zh && rc == ZOK && s->digest)
        rc = zoo_add_auth(zh, "digest", s->digest, (int)strlen(s->digest), NULL, NULL);
    pthread_mutex_lock(&s->lock);
    if (!zh || rc != ZOK) {
        say_warn(component, "cannot start a session at %s: %s", s->where.hosts,
                 zh ? zerror(rc) : strerror(error));
        s->zh = zh;
        close_handle(s);
        if (!s->closing)
            wait_ms(s, &s->wake, RETRY_MS);
        return;
    }
    s->zh = zh;
    s->ready = true;
    pump(s);
}

static void *thread_main(void *arg)
{
    struct zk_store *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->closing) {
        if (s->dated)
            look_at_deadlines(s);
        if (s->renew) {
            close_handle(s);
            s->renew = false;
            if (s->refused && !s->closing)
                wait_ms(s, &s->wake, RETRY_MS);
        } else if (!s->zh) {
            open_handle(s);
        } else if (s->again) {
            wait_ms(s, &s->wake, AGAIN_MS);
            s->again = false;
            pump(s);
        } else if (s->dated) {
            wait_ms(s, &s->wake, LOOK_MS);
        } else {
            pthread_cond_wait(&s->wake, &s->lock);
        }
    }
    close_handle(s);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- the rest of the store's interface ---- */

static int zk_watch(struct store *store, struct store_watch *w)
{
    return watches_add(zk_of(store)->watches, zk_of(store), w);
}

static void zk_unwatch(struct store *store, struct store_watch *w)
{
    watches_remove(zk_of(store)->watches, w);
}

static int zk_on_session(struct store *store, struct executor *on,
                         void (*cb)(void *arg, enum store_session state), void *arg)
{
    return session_listeners_add(zk_of(store)->listeners, on, cb, arg);
}

static void zk_off_session(struct store *store, void (*cb)(void *arg, enum store_session state),
                           void *arg)
{
    session_listeners_remove(zk_of(store)->listeners, cb, arg);
}

static int64_t zk_session_id(struct store *store)
{
    struct zk_store *s = zk_of(store);
    pthread_mutex_lock(&s->lock);
    int64_t id = s->session;
    pthread_mutex_unlock(&s->lock);
    return id;
}

static void zk_end_waits(struct store *store)
{
    struct zk_store *s = zk_of(store);
    pthread_mutex_lock(&s->lock);
    s->no_wait = true;
    if (!s->connected)
        refuse_all(s, -ESTALE);
    pthread_mutex_unlock(&s->lock);
}

static bool zk_cut_off(struct store *store)
{
    struct zk_store *s = zk_of(store);
    pthread_mutex_lock(&s->lock);
    bool cut_off = !s->connected;
    pthread_mutex_unlock(&s->lock);
    return cut_off;
}

static const struct store_counts *zk_counts(struct store *store)
{
    return &zk_of(store)->counts;
}

static void zk_close(struct store *store)
{
    struct zk_store *s = zk_of(store);
    int64_t end = now_ms() + CLOSE_MS;
    pthread_mutex_lock(&s->lock);
    while (s->connected && (s->window_n || !list_empty(&s->queue)) && now_ms() < end)
        wait_ms(s, &s->changed, end - now_ms());
    s->closing = true;
    s->state = STATE_GONE;
    refuse_all(s, -ESTALE);
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_mutex_lock(&s->lock);
    session_listeners_free(s->listeners);
    s->listeners = NULL;
    unlock_unref(s);
}

static const struct store_ops zookeeper_ops = {
    .submit = zk_submit,
    .watch = zk_watch,
    .unwatch = zk_unwatch,
    .on_session = zk_on_session,
    .off_session = zk_off_session,
    .session_id = zk_session_id,
    .end_waits = zk_end_waits,
    .cut_off = zk_cut_off,
    .counts = zk_counts,
    .close = zk_close,
};

/* ---- opening ---- */

static struct zk_store *zk_new(const struct zookeeper_options *o)
{
    struct zk_store *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->store.ops = &zookeeper_ops;
    s->o = *o;
    s->o.connect = s->o.digest = NULL; /* copied */
    s->refs = 1;
    pthread_mutex_init(&s->lock, NULL);
    cond_init(&s->wake);
    cond_init(&s->changed);
    list_init(&s->queue);
    list_init(&s->window);
    list_init(&s->orphans);
    s->watches = watches_new();
    s->listeners = session_listeners_new();
    s->digest = o->digest ? strdup(o->digest) : NULL;
    if (s->watches && s->listeners && (s->digest || !o->digest))
        return s;
    zk_free(s);
    return NULL;
}

static int wait_for_server(struct zk_store *s, const char *connect, char *err, size_t err_n)
{
    int64_t end = now_ms() + s->o.connection_timeout_ms;
    pthread_mutex_lock(&s->lock);
    while (!s->connected && !s->refused && now_ms() < end)
        wait_ms(s, &s->changed, end - now_ms());
    bool connected = s->connected, refused = s->refused;
    pthread_mutex_unlock(&s->lock);
    if (connected)
        return 0;
    if (refused)
        snprintf(err, err_n, "zookeeper.connect=%s: the server does not accept our credentials",
                 connect);
    else
        snprintf(err, err_n,
                 "zookeeper.connect=%s: no server answered within %d ms "
                 "(zookeeper.connection.timeout.ms)",
                 connect, s->o.connection_timeout_ms);
    return refused ? -EACCES : -ETIMEDOUT;
}

/* It is made from the outside: as paths of a store whose root is ZooKeeper's. */
static int make_chroot(struct zk_store *s, char *err, size_t err_n)
{
    char *chroot = s->where.chroot;
    if (!*chroot)
        return 0;
    pthread_mutex_lock(&s->lock);
    s->where.chroot = "";
    pthread_mutex_unlock(&s->lock);
    int rc = store_create_path(&s->store, chroot, BYTES_NULL, NULL);
    pthread_mutex_lock(&s->lock);
    s->where.chroot = chroot;
    pthread_mutex_unlock(&s->lock);
    if (rc)
        snprintf(err, err_n, "zookeeper.connect: cannot make the folder %s: %s", chroot,
                 strerror(-rc));
    return rc;
}

int zookeeper_store_open(const struct zookeeper_options *o, struct store **out, char *err,
                         size_t err_n)
{
    *out = NULL;
    if (o->protect && !o->digest) {
        snprintf(err, err_n,
                 "zookeeper.set.acl=true: needs credentials towards ZooKeeper, so that the nodes "
                 "have an owner");
        return -EINVAL;
    }
    struct zk_store *s = zk_new(o);
    if (!s) {
        snprintf(err, err_n, "no memory");
        return -ENOMEM;
    }
    int rc = zookeeper_connect_parse(o->connect, &s->where, err, err_n);
    if (rc) {
        zk_free(s);
        return rc;
    }
    zookeeper_log_init();
    rc = thread_start("zookeeper", thread_main, s, &s->thread);
    if (rc) {
        snprintf(err, err_n, "cannot start a thread: %s", strerror(-rc));
        zk_free(s);
        return rc;
    }
    rc = wait_for_server(s, o->connect, err, err_n);
    if (!rc && !o->make_nothing)
        rc = make_chroot(s, err, err_n);
    if (rc)
        store_close(&s->store);
    else
        *out = &s->store;
    return rc;
}
