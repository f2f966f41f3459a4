/* fetch_session_cache.c - who gets a session, and what it holds. See fetch_session_cache.h. */
#include "server/fetch_session_cache.h"

#include <stdlib.h>
#include <string.h>

/* ---- sessions ---- */

struct fetch_sessions *fetch_sessions_new(int slots, const struct clock *clock)
{
    struct fetch_sessions *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->clock = clock;
    s->slots = slots;
    s->partitions_max = slots > INT32_MAX / FETCH_SESSION_PARTITIONS_PER_SLOT
                            ? INT32_MAX
                            : slots * FETCH_SESSION_PARTITIONS_PER_SLOT;
    pthread_mutex_init(&s->lock, NULL);
    hmap_init(&s->map);
    list_init(&s->by_use);
    return s;
}

void fetch_sessions_free(struct fetch_sessions *s)
{
    if (!s)
        return;
    list_each_safe (it, &s->by_use)
        session_drop(s, list_entry(it, struct fetch_session, use));
    hmap_free(&s->map);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int fetch_sessions_count(struct fetch_sessions *s)
{
    pthread_mutex_lock(&s->lock);
    int n = s->sessions_n;
    pthread_mutex_unlock(&s->lock);
    return n;
}

uint64_t fetch_sessions_evicted(struct fetch_sessions *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t n = s->evicted;
    pthread_mutex_unlock(&s->lock);
    return n;
}

int fetch_sessions_partitions(struct fetch_sessions *s)
{
    pthread_mutex_lock(&s->lock);
    int n = s->partitions_n;
    pthread_mutex_unlock(&s->lock);
    return n;
}

static bool has_id(const struct hnode *node, const void *key)
{
    return hmap_entry(node, struct fetch_session, node)->id == *(const int32_t *)key;
}

struct fetch_session *session_find(struct fetch_sessions *s, int32_t id)
{
    struct hnode *n = hmap_find(&s->map, hash_int((uint32_t)id), has_id, &id);
    return n ? hmap_entry(n, struct fetch_session, node) : NULL;
}

void session_drop(struct fetch_sessions *s, struct fetch_session *session)
{
    list_each_safe (it, &session->order)
        free(list_entry(it, struct cached_partition, link));
    hmap_free(&session->map);
    hmap_remove(&s->map, &session->node);
    list_remove(&session->use);
    s->sessions_n--;
    s->partitions_n -= session->partitions_n;
    free(session);
}

void session_touch(struct fetch_sessions *s, struct fetch_session *session)
{
    session->used_ms = clock_mono_ms(s->clock);
    list_remove(&session->use);
    list_push_back(&s->by_use, &session->use);
}

/* The order of worth: followers over consumers, then many partitions over few, then the id. */
static bool ranks_lower(bool privileged, int partitions, int32_t id, const struct fetch_session *b)
{
    if (privileged != b->privileged)
        return b->privileged;
    if (partitions != b->partitions_n)
        return partitions < b->partitions_n;
    return id < b->id;
}

static bool may_evict(const struct fetch_session *b, bool for_privileged, int64_t now)
{
    bool old = now - b->created_ms > FETCH_SESSION_EVICT_MS;
    return old || (for_privileged && !b->privileged);
}

/* Full: a session that must go for the newcomer, or NULL. */
static struct fetch_session *victim_for(struct fetch_sessions *s, bool privileged, int partitions)
{
    if (list_empty(&s->by_use))
        return NULL;
    int64_t now = clock_mono_ms(s->clock);
    struct fetch_session *least = list_entry(s->by_use.next, struct fetch_session, use);
    if (now - least->used_ms > FETCH_SESSION_EVICT_MS)
        return least;
    struct fetch_session *low = NULL;
    list_each (it, &s->by_use) {
        struct fetch_session *b = list_entry(it, struct fetch_session, use);
        if (may_evict(b, privileged, now) &&
            (!low || ranks_lower(b->privileged, b->partitions_n, b->id, low)))
            low = b;
    }
    return low && !ranks_lower(privileged, partitions, 0, low) ? low : NULL;
}

/* Positive, unused, and not to be guessed from others. */
static int32_t new_id(struct fetch_sessions *s)
{
    int32_t id;
    do
        id = (int32_t)(hash_int(++s->last_id) & INT32_MAX);
    while (id == 0 || session_find(s, id));
    return id;
}

struct fetch_session *session_make(struct fetch_sessions *s, bool privileged, bool uses_ids,
                                   int partitions)
{
    if (s->slots <= 0)
        return NULL;
    struct fetch_session *victim = NULL;
    if (s->sessions_n >= s->slots && !(victim = victim_for(s, privileged, partitions)))
        return NULL;
    int others = s->partitions_n - (victim ? victim->partitions_n : 0);
    if (partitions > s->partitions_max - others)
        return NULL;
    if (victim)
        session_drop(s, victim);
    s->evicted += victim != NULL;
    struct fetch_session *session = calloc(1, sizeof *session);
    if (!session)
        return NULL;
    session->id = new_id(s);
    session->epoch = 1;
    session->privileged = privileged;
    session->uses_ids = uses_ids;
    session->created_ms = session->used_ms = clock_mono_ms(s->clock);
    hmap_init(&session->map);
    list_init(&session->order);
    if (hmap_put(&s->map, &session->node, hash_int((uint32_t)session->id))) {
        free(session);
        return NULL;
    }
    list_push_back(&s->by_use, &session->use);
    s->sessions_n++;
    return session;
}

/* ---- partitions of a session ---- */

struct cached_key {
    struct str topic; /* empty in sessions with ids */
    struct uuid topic_id;
    int32_t partition;
};

static struct cached_key key_of(const struct fetch_session *session, struct str topic,
                                struct uuid topic_id, int32_t partition)
{
    if (session->uses_ids || str_is_null(topic))
        topic = STR_LIT("");
    return (struct cached_key){topic, session->uses_ids ? topic_id : UUID_ZERO, partition};
}

static uint64_t hash_of(const struct cached_key *k)
{
    return hash_str(k->topic) ^ hash_bytes(k->topic_id.b, 16) ^ hash_int((uint32_t)k->partition);
}

static bool has_key(const struct hnode *node, const void *key)
{
    const struct cached_partition *c = hmap_entry(node, struct cached_partition, node);
    const struct cached_key *k = key;
    return c->partition == k->partition && uuid_eq(c->topic_id, k->topic_id) &&
           c->topic_len == k->topic.len && memcmp(c->topic, k->topic.p, (size_t)c->topic_len) == 0;
}

static struct cached_partition *find_cached(struct fetch_session *session,
                                            const struct cached_key *k, uint64_t hash)
{
    struct hnode *n = hmap_find(&session->map, hash, has_key, k);
    return n ? hmap_entry(n, struct cached_partition, node) : NULL;
}

static struct cached_partition *add_cached(struct fetch_sessions *s, struct fetch_session *session,
                                           const struct cached_key *k, uint64_t hash)
{
    if (s->partitions_n >= s->partitions_max)
        return NULL;
    struct cached_partition *c = calloc(1, sizeof *c + (size_t)k->topic.len);
    if (!c)
        return NULL;
    c->topic_id = k->topic_id;
    c->partition = k->partition;
    c->sent_high_watermark = c->sent_log_start = -1;
    c->topic_len = k->topic.len;
    memcpy(c->topic, k->topic.p, (size_t)k->topic.len);
    if (hmap_put(&session->map, &c->node, hash)) {
        free(c);
        return NULL;
    }
    list_push_back(&session->order, &c->link);
    session->partitions_n++;
    s->partitions_n++;
    return c;
}

/* A partition is named again because it changed at the fetcher. If it goes on behind the records
 * that it was sent, it took that answer, marks and all. Else something else moved it (a new epoch,
 * a cut, a seek), and the answer may have been dropped: what it told is told again, or it would not
 * come until the next record. */
static bool took_answer(const struct cached_partition *c, const struct fetch_want *want)
{
    return c->sent_records && want->offset > c->offset &&
           want->current_leader_epoch == c->current_leader_epoch;
}

struct cached_partition *session_put(struct fetch_sessions *s, struct fetch_session *session,
                                     const struct fetch_want *want)
{
    struct cached_key k = key_of(session, want->topic, want->topic_id, want->partition);
    uint64_t hash = hash_of(&k);
    struct cached_partition *c = find_cached(session, &k, hash);
    if (!c)
        c = add_cached(s, session, &k, hash);
    if (!c)
        return NULL;
    if (!took_answer(c, want))
        c->sent_high_watermark = c->sent_log_start = -1;
    c->max_bytes = want->max_bytes;
    c->offset = want->offset;
    c->fetcher_log_start = want->fetcher_log_start;
    c->current_leader_epoch = want->current_leader_epoch;
    c->last_fetched_epoch = want->last_fetched_epoch;
    return c;
}

void session_forget(struct fetch_sessions *s, struct fetch_session *session, struct str topic,
                    struct uuid topic_id, int32_t partition)
{
    struct cached_key k = key_of(session, topic, topic_id, partition);
    struct cached_partition *c = find_cached(session, &k, hash_of(&k));
    if (!c)
        return;
    hmap_remove(&session->map, &c->node);
    list_remove(&c->link);
    free(c);
    session->partitions_n--;
    s->partitions_n--;
}
