/* embedded_store.c - sessions, queue and serving thread of the embedded store; what a request does
 * is in embedded_apply.c, what reaches the disk in journal.c.
 *
 * ROUND     take all that is queued; apply requests one by one until they are all done or enough
 *           bytes wait for the journal; append these as one frame; then, request by request, tell
 *           the watches and answer. Reads wait for the frame as well, since they may have seen what
 *           is in it.
 * SESSION   LIVE -> TELLING (expired; every request gets -ESTALE until all listeners ran) -> LIVE,
 *           and from any state -> GONE by close.
 * REFS      the core lives as long as it has sessions or its serve task is posted; a session as
 *           long as it is open or something about it is posted. */
#include "metadata/embedded_store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"
#include "base/thread.h"
#include "metadata/embedded_apply.h"
#include "metadata/journal.h"
#include "metadata/session_listeners.h"
#include "metadata/store_answer.h"

static const char component[] = "MetadataStore";
enum { GROUP_BYTES = 4 << 20, SNAPSHOT_BYTES = 4 << 20 };

struct core {
    /* Fixed after open. */
    struct embedded_options o;
    bool on_disk;
    pthread_t thread; /* unless o.run_on */

    pthread_mutex_t lock; /* all down to `refs` */
    pthread_cond_t wake;  /* something for the thread */
    pthread_cond_t ended; /* a session is GONE */
    struct list queue;    /* of store_request by task.link */
    struct list sessions;
    int64_t next_session;
    bool stop;
    struct task serve_task; /* on o.run_on */
    bool serve_posted;
    int refs;

    /* The serving thread's. */
    struct embedded_state state;
    struct journal journal;
    int failed; /* -EIO for ever */
};

enum session_state { SESSION_LIVE, SESSION_TELLING, SESSION_GONE };

/* Under the core's lock but for what is fixed. */
struct session {
    struct store store;
    struct core *core;
    struct list link;
    struct session_listeners *listeners;
    int64_t id;
    enum session_state state;
    bool expire_wanted, close_wanted;
    int refs;
};

static const struct store_ops embedded_ops;

static struct session *session_of(struct store *s)
{
    return container_of(s, struct session, store);
}

/* The last reference is gone: no thread, no session, nothing posted. */
static void core_free(struct core *c)
{
    watches_free(c->state.watches);
    tree_free(&c->state.tree);
    buf_free(&c->state.txns);
    journal_close(&c->journal);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->wake);
    pthread_cond_destroy(&c->ended);
    free(c);
}

/* Lets go of the lock and one reference to the core. */
static void core_unlock_unref(struct core *c)
{
    bool last = --c->refs == 0;
    pthread_mutex_unlock(&c->lock);
    if (last)
        core_free(c);
}

/* The lock is held and stays held; the core has another reference. */
static void session_unref(struct session *s)
{
    if (--s->refs)
        return;
    session_listeners_free(s->listeners);
    free(s);
}

static void begin_session(struct session *s)
{
    s->id = ++s->core->next_session;
    s->state = SESSION_LIVE;
}

/* All have heard that it expired. */
static void begin_anew(void *arg)
{
    struct session *s = arg;
    struct core *c = s->core;
    pthread_mutex_lock(&c->lock);
    if (s->state == SESSION_TELLING) {
        begin_session(s);
        session_listeners_tell(s->listeners, STORE_CONNECTED, NULL, NULL);
    }
    session_unref(s);
    core_unlock_unref(c);
}

/* The lock is held. */
static void tell_expired(struct session *s)
{
    s->refs++;
    s->core->refs++;
    if (session_listeners_tell(s->listeners, STORE_EXPIRED, begin_anew, s))
        return;
    s->refs--; /* nobody listens */
    s->core->refs--;
    begin_session(s);
}

/* Serving: the lock is not held in any of these. */

static void apply_one(struct core *c, struct store_request *r)
{
    struct session *s = session_of(r->store);
    pthread_mutex_lock(&c->lock);
    bool live = s->state == SESSION_LIVE;
    int64_t id = s->id;
    pthread_mutex_unlock(&c->lock);
    store_request_reset(r);
    if (c->failed)
        store_request_refuse(r, c->failed);
    else if (!live)
        store_request_refuse(r, -ESTALE);
    else
        embedded_apply(&c->state, s, id, r);
    watches_take(c->state.watches, &r->told);
}

/* The journal failed. What is in memory may be ahead of the disk, so nobody sees it any more. */
static void fail(struct core *c, int error)
{
    if (c->failed)
        return;
    c->failed = -EIO;
    say_fatal(component, "%s: %s; no change is accepted any more", c->o.dir, strerror(-error));
    if (c->o.failed)
        c->o.failed(c->o.arg, error);
}

static int make_durable(struct core *c)
{
    struct buf *txns = &c->state.txns;
    int err = 0;
    if (txns->failed)
        err = -ENOMEM;
    else if (txns->len && c->on_disk)
        err = journal_append(&c->journal, txns);
    txns->len = 0;
    txns->failed = false;
    return err;
}

static void snapshot_when_due(struct core *c)
{
    int64_t limit = c->o.snapshot_bytes;
    if (limit < c->journal.snapshot_size) /* so that all snapshots together cost linear time */
        limit = c->journal.snapshot_size;
    if (!c->on_disk || c->failed || c->journal.size <= limit)
        return;
    int err = journal_snapshot(&c->journal, &c->state.tree, c->state.zxid);
    if (err)
        fail(c, err);
}

/* Applies requests from the front of `requests`, makes them durable, answers them. */
static void serve_group(struct core *c, struct list *requests)
{
    struct list applied;
    list_init(&applied);
    do {
        struct list *at = list_pop(requests);
        list_push_back(&applied, at);
        apply_one(c, list_entry(at, struct store_request, task.link));
    } while (!list_empty(requests) && c->state.txns.len < GROUP_BYTES);
    int err = c->failed ? 0 : make_durable(c);
    for (struct list *at; (at = list_pop(&applied));) {
        struct store_request *r = list_entry(at, struct store_request, task.link);
        if (err)
            store_request_refuse(r, -EIO);
        watches_tell(c->state.watches, &r->told);
        store_request_answer(r);
    }
    if (err)
        fail(c, err);
    snapshot_when_due(c);
}

/* A session that is to expire does so before what is queued; one that closes, after. */
static struct session *next_to_end(struct core *c, bool queue_empty)
{
    list_each (at, &c->sessions) {
        struct session *s = list_entry(at, struct session, link);
        if (s->expire_wanted || (s->close_wanted && queue_empty))
            return s;
    }
    return NULL;
}

/* Answers what the expired session had queued. The lock is held. */
static void refuse_queued(struct core *c, struct session *s)
{
    list_each_safe (at, &c->queue) {
        struct store_request *r = list_entry(at, struct store_request, task.link);
        if (r->store != &s->store)
            continue;
        list_remove(at);
        store_request_reset(r);
        store_request_refuse(r, -ESTALE);
        store_request_answer(r);
    }
}

static void end_session(struct core *c, struct session *s)
{
    pthread_mutex_lock(&c->lock);
    bool expired = s->expire_wanted && !s->close_wanted;
    s->expire_wanted = false;
    bool was_live = s->state == SESSION_LIVE;
    s->state = expired ? SESSION_TELLING : SESSION_GONE;
    int64_t id = s->id;
    if (expired)
        refuse_queued(c, s);
    pthread_mutex_unlock(&c->lock);
    if (was_live)
        embedded_end_session(&c->state, id);
    if (expired)
        watches_disarm(c->state.watches, s);
    else
        watches_drop(c->state.watches, s);
    struct list told;
    list_init(&told);
    watches_take(c->state.watches, &told);
    watches_tell(c->state.watches, &told);
    pthread_mutex_lock(&c->lock);
    if (expired && was_live) {
        tell_expired(s);
    } else if (!expired) {
        list_remove(&s->link);
        pthread_cond_broadcast(&c->ended);
    }
    pthread_mutex_unlock(&c->lock);
}

/* Works until nothing is left to do now. */
static void serve(struct core *c)
{
    for (;;) {
        struct list requests;
        list_init(&requests);
        pthread_mutex_lock(&c->lock);
        struct session *ending = next_to_end(c, list_empty(&c->queue));
        if (!ending)
            list_splice(&requests, &c->queue);
        pthread_mutex_unlock(&c->lock);
        if (ending)
            end_session(c, ending);
        else if (list_empty(&requests))
            return;
        while (!list_empty(&requests))
            serve_group(c, &requests);
    }
}

static void *thread_main(void *arg)
{
    struct core *c = arg;
    pthread_mutex_lock(&c->lock);
    while (!c->stop) {
        if (list_empty(&c->queue) && !next_to_end(c, true)) {
            pthread_cond_wait(&c->wake, &c->lock);
            continue;
        }
        pthread_mutex_unlock(&c->lock);
        serve(c);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void serve_posted(struct task *t)
{
    struct core *c = container_of(t, struct core, serve_task);
    pthread_mutex_lock(&c->lock);
    c->serve_posted = false;
    pthread_mutex_unlock(&c->lock);
    serve(c);
    pthread_mutex_lock(&c->lock);
    core_unlock_unref(c);
}

/* There is something to do. The lock is held. */
static void wake(struct core *c)
{
    if (!c->o.run_on) {
        pthread_cond_signal(&c->wake);
    } else if (!c->serve_posted) {
        c->serve_posted = true;
        c->refs++;
        executor_post(c->o.run_on, &c->serve_task);
    }
}

static void embedded_submit(struct store *store, struct list *requests)
{
    struct core *c = session_of(store)->core;
    list_each (at, requests)
        list_entry(at, struct store_request, task.link)->store = store;
    pthread_mutex_lock(&c->lock);
    list_splice(&c->queue, requests);
    wake(c);
    pthread_mutex_unlock(&c->lock);
}

static int embedded_watch(struct store *store, struct store_watch *w)
{
    struct session *s = session_of(store);
    return watches_add(s->core->state.watches, s, w);
}

static void embedded_unwatch(struct store *store, struct store_watch *w)
{
    watches_remove(session_of(store)->core->state.watches, w);
}

static int embedded_on_session(struct store *store, struct executor *on,
                               void (*cb)(void *arg, enum store_session state), void *arg)
{
    return session_listeners_add(session_of(store)->listeners, on, cb, arg);
}

static void embedded_off_session(struct store *store,
                                 void (*cb)(void *arg, enum store_session state), void *arg)
{
    session_listeners_remove(session_of(store)->listeners, cb, arg);
}

static int64_t embedded_session_id(struct store *store)
{
    struct session *s = session_of(store);
    pthread_mutex_lock(&s->core->lock);
    int64_t id = s->id;
    pthread_mutex_unlock(&s->core->lock);
    return id;
}

void embedded_store_expire_session(struct store *store)
{
    struct session *s = session_of(store);
    pthread_mutex_lock(&s->core->lock);
    s->expire_wanted = true;
    wake(s->core);
    pthread_mutex_unlock(&s->core->lock);
}

static void embedded_drive(struct store *store)
{
    struct core *c = session_of(store)->core;
    if (c->o.run_on)
        serve(c);
}

static void embedded_close(struct store *store)
{
    struct session *s = session_of(store);
    struct core *c = s->core;
    pthread_mutex_lock(&c->lock);
    s->close_wanted = true;
    if (c->o.run_on) {
        pthread_mutex_unlock(&c->lock);
        serve(c);
        pthread_mutex_lock(&c->lock);
    } else {
        pthread_cond_signal(&c->wake);
        while (s->state != SESSION_GONE)
            pthread_cond_wait(&c->ended, &c->lock);
    }
    bool last = list_empty(&c->sessions);
    if (last) {
        c->stop = true;
        pthread_cond_signal(&c->wake);
    }
    session_listeners_free(s->listeners); /* what is posted to them tells nobody */
    s->listeners = NULL;
    session_unref(s);
    pthread_mutex_unlock(&c->lock);
    if (last && !c->o.run_on)
        pthread_join(c->thread, NULL);
    pthread_mutex_lock(&c->lock);
    core_unlock_unref(c);
}

static const struct store_ops embedded_ops = {
    .submit = embedded_submit,
    .watch = embedded_watch,
    .unwatch = embedded_unwatch,
    .on_session = embedded_on_session,
    .off_session = embedded_off_session,
    .session_id = embedded_session_id,
    .close = embedded_close,
    .drive = embedded_drive,
};

/* A session on the core, which gets a reference for it. */
static struct session *session_new(struct core *c)
{
    struct session *s = calloc(1, sizeof(*s));
    struct session_listeners *listeners = session_listeners_new();
    if (!s || !listeners) {
        session_listeners_free(listeners);
        free(s);
        return NULL;
    }
    s->store.ops = &embedded_ops;
    s->core = c;
    s->refs = 1;
    s->listeners = listeners;
    list_init(&s->link);
    pthread_mutex_lock(&c->lock);
    begin_session(s);
    list_push_back(&c->sessions, &s->link);
    c->refs++;
    pthread_mutex_unlock(&c->lock);
    return s;
}

int embedded_store_attach(struct store *store, struct store **out)
{
    struct session *s = session_new(session_of(store)->core);
    *out = s ? &s->store : NULL;
    return s ? 0 : -ENOMEM;
}

/* Reads the files and begins this life's range of transaction ids, durably: ephemeral nodes take
 * ids of it without leaving a trace on disk. */
static int open_journal(struct core *c, char *err, size_t err_n)
{
    struct embedded_state *st = &c->state;
    int e = 0;
    if (c->on_disk)
        e = journal_open(&c->journal, c->o.fs, c->o.dir, &st->tree, &st->zxid, err, err_n);
    if (e)
        return e;
    st->zxid = ((st->zxid >> 32) + 1) << 32;
    c->next_session = st->zxid;
    journal_put_txn(&st->txns, st->zxid, clock_wall_ms(st->clock));
    e = make_durable(c);
    if (e)
        snprintf(err, err_n, "%s: %s", c->on_disk ? c->journal.path : "", strerror(-e));
    return e;
}

static struct core *core_new(const struct embedded_options *o)
{
    struct core *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->o = *o;
    c->on_disk = o->dir != NULL;
    if (!c->o.fs)
        c->o.fs = fs_posix();
    if (!c->o.snapshot_bytes)
        c->o.snapshot_bytes = SNAPSHOT_BYTES;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    pthread_cond_init(&c->ended, NULL);
    list_init(&c->queue);
    list_init(&c->sessions);
    task_init(&c->serve_task, serve_posted);
    c->state.clock = o->clock;
    c->state.watches = watches_new();
    if (tree_init(&c->state.tree) || !c->state.watches) {
        core_free(c);
        return NULL;
    }
    return c;
}

int embedded_store_open(const struct embedded_options *o, struct store **out, char *err,
                        size_t err_n)
{
    *out = NULL;
    struct core *c = core_new(o);
    if (!c) {
        snprintf(err, err_n, "no memory");
        return -ENOMEM;
    }
    int e = open_journal(c, err, err_n);
    struct session *s = e ? NULL : session_new(c);
    if (!e && !s)
        e = -ENOMEM;
    if (!e && !o->run_on)
        e = thread_start("metadata-store", thread_main, c, &c->thread);
    if (e) {
        if (s)
            session_unref(s);
        core_free(c);
        return e;
    }
    *out = &s->store;
    return 0;
}
