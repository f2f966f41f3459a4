/* session_listeners.c - see session_listeners.h. */
#include "metadata/session_listeners.h"

#include <pthread.h>
#include <stdlib.h>

enum { STATES = STORE_EXPIRED + 1 };

struct listener;

/* One state on its way to one listener. */
struct word {
    struct task task;
    struct listener *to;
    enum store_session state;
    bool posted;
};

struct listener {
    struct session_listeners *owner;
    struct list link; /* not linked: removed, lives until no word is posted */
    struct executor *on;
    void (*cb)(void *arg, enum store_session state);
    void *arg;
    struct word words[STATES];
};

struct session_listeners {
    pthread_mutex_t lock; /* all below, and all listeners */
    struct list all;
    int refs; /* the owner and each listener */
    struct {
        int left;
        void (*all_told)(void *arg);
        void *arg;
    } round[STATES];
};

struct session_listeners *session_listeners_new(void)
{
    struct session_listeners *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    pthread_mutex_init(&l->lock, NULL);
    list_init(&l->all);
    l->refs = 1;
    return l;
}

/* Lets go of the lock and of one reference. */
static void unlock_unref(struct session_listeners *l)
{
    bool last = --l->refs == 0;
    pthread_mutex_unlock(&l->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* Not listening any more and nothing posted: frees it, with the lock; else only unlocks. */
static void unlock_reap(struct listener *x)
{
    struct session_listeners *l = x->owner;
    bool posted = false;
    for (int i = 0; i < STATES; i++)
        posted |= x->words[i].posted;
    if (posted || list_linked(&x->link)) {
        pthread_mutex_unlock(&l->lock);
        return;
    }
    free(x);
    unlock_unref(l);
}

/* On the listener's executor. */
static void word_run(struct task *t)
{
    struct word *w = container_of(t, struct word, task);
    struct listener *x = w->to;
    struct session_listeners *l = x->owner;
    enum store_session state = w->state;
    pthread_mutex_lock(&l->lock);
    bool listens = list_linked(&x->link);
    pthread_mutex_unlock(&l->lock);
    if (listens) /* and cannot stop meanwhile: that happens on this executor */
        x->cb(x->arg, state);
    pthread_mutex_lock(&l->lock);
    w->posted = false;
    bool last = --l->round[state].left == 0;
    void (*all_told)(void *) = last ? l->round[state].all_told : NULL;
    void *arg = l->round[state].arg;
    unlock_reap(x);
    if (all_told)
        all_told(arg);
}

int session_listeners_add(struct session_listeners *l, struct executor *on,
                          void (*cb)(void *arg, enum store_session state), void *arg)
{
    struct listener *x = calloc(1, sizeof(*x));
    if (!x)
        return -ENOMEM;
    *x = (struct listener){.owner = l, .on = on, .cb = cb, .arg = arg};
    for (int i = 0; i < STATES; i++) {
        task_init(&x->words[i].task, word_run);
        x->words[i].to = x;
        x->words[i].state = (enum store_session)i;
    }
    pthread_mutex_lock(&l->lock);
    list_push_back(&l->all, &x->link);
    l->refs++;
    pthread_mutex_unlock(&l->lock);
    return 0;
}

static struct listener *find(struct session_listeners *l,
                             void (*cb)(void *arg, enum store_session state), void *arg)
{
    list_each (at, &l->all) {
        struct listener *x = list_entry(at, struct listener, link);
        if (x->cb == cb && x->arg == arg)
            return x;
    }
    return NULL;
}

void session_listeners_remove(struct session_listeners *l,
                              void (*cb)(void *arg, enum store_session state), void *arg)
{
    pthread_mutex_lock(&l->lock);
    struct listener *x = find(l, cb, arg);
    if (!x) {
        pthread_mutex_unlock(&l->lock);
        return;
    }
    list_remove(&x->link);
    unlock_reap(x);
}

void session_listeners_free(struct session_listeners *l)
{
    if (!l)
        return;
    for (;;) {
        pthread_mutex_lock(&l->lock);
        struct list *at = list_pop(&l->all);
        if (!at)
            break;
        unlock_reap(list_entry(at, struct listener, link));
    }
    unlock_unref(l);
}

int session_listeners_tell(struct session_listeners *l, enum store_session state,
                           void (*all_told)(void *arg), void *arg)
{
    pthread_mutex_lock(&l->lock);
    int n = 0;
    l->round[state].all_told = all_told;
    l->round[state].arg = arg;
    list_each (at, &l->all) {
        struct listener *x = list_entry(at, struct listener, link);
        struct word *w = &x->words[state];
        w->posted = true;
        l->round[state].left++;
        n++;
        executor_post(x->on, &w->task);
    }
    pthread_mutex_unlock(&l->lock);
    return n;
}
