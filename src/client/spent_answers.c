/* spent_answers.c - memory of Fetch answers: counted while records in it are in use, then kept for
 * the next answers. */
#include <stdlib.h>

#include "client/consumer_private.h"

struct spent_answers *spent_new(void)
{
    struct spent_answers *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    atomic_init(&s->refs, 1);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void spent_unref(struct spent_answers *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void spent_close(struct spent_answers *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    while (s->n > 0)
        peer_response_free(s->v[--s->n]);
    pthread_mutex_unlock(&s->lock);
    spent_unref(s);
}

/* Keeps it, if there is someone who will use it. */
static void spent_put(struct spent_answers *s, struct peer_response *response)
{
    pthread_mutex_lock(&s->lock);
    bool keep = !s->closed && s->n < SPENT_MAX;
    if (keep)
        s->v[s->n++] = response;
    pthread_mutex_unlock(&s->lock);
    if (!keep)
        peer_response_free(response);
}

struct peer_response *spent_take(struct spent_answers *s)
{
    pthread_mutex_lock(&s->lock);
    struct peer_response *r = s->n > 0 ? s->v[--s->n] : NULL;
    pthread_mutex_unlock(&s->lock);
    return r;
}

struct fetch_memory *fetch_memory_new(struct spent_answers *s)
{
    struct fetch_memory *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    atomic_init(&m->refs, 1);
    atomic_fetch_add(&s->refs, 1);
    m->spent = s;
    return m;
}

void fetch_memory_unref(struct fetch_memory *m)
{
    if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
        return;
    if (m->response)
        spent_put(m->spent, m->response);
    spent_unref(m->spent);
    free(m);
}
