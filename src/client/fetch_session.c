/* fetch_session.c - see fetch_session.h. */
#include "client/fetch_session.h"

#include <stdlib.h>

#include "protocol/errors.h"
#include "protocol/msg/fetch.h"

struct remembered {
    struct hnode hnode;
    struct list link; /* fetch_session.remembered, or forgotten */
    int32_t partition;
    int64_t offset;
    int32_t leader_epoch;
    uint64_t round; /* last wanted in */
    char topic[];
};

struct key {
    const char *topic;
    int32_t partition;
};

static uint64_t hash_of(const char *topic, int32_t partition)
{
    return hash_bytes(topic, strlen(topic)) + hash_int((uint64_t)partition);
}

static bool is_key(const struct hnode *n, const void *key)
{
    const struct remembered *r = container_of(n, struct remembered, hnode);
    const struct key *k = key;
    return r->partition == k->partition && strcmp(r->topic, k->topic) == 0;
}

struct fetch_session *fetch_session_new(int32_t node_id)
{
    struct fetch_session *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->node_id = node_id;
    list_init(&s->link);
    list_init(&s->remembered);
    hmap_init(&s->by_name);
    return s;
}

static void forget_all(struct fetch_session *s)
{
    while (!list_empty(&s->remembered)) {
        struct remembered *r = list_entry(list_pop(&s->remembered), struct remembered, link);
        hmap_remove(&s->by_name, &r->hnode);
        free(r);
    }
}

void fetch_session_free(struct fetch_session *s)
{
    if (!s)
        return;
    list_remove(&s->link);
    forget_all(s);
    hmap_free(&s->by_name);
    free(s);
}

void fetch_session_begin(struct fetch_session *s)
{
    s->round++;
    if (s->epoch == 0)
        forget_all(s);
}

static struct remembered *remember(struct fetch_session *s, const char *topic, int32_t partition)
{
    size_t n = strlen(topic) + 1;
    struct remembered *r = calloc(1, sizeof *r + n);
    if (!r)
        return NULL;
    memcpy(r->topic, topic, n);
    r->partition = partition;
    if (hmap_put(&s->by_name, &r->hnode, hash_of(topic, partition)) < 0) {
        free(r);
        return NULL;
    }
    list_push_back(&s->remembered, &r->link);
    return r;
}

/* Without memory to remember it is named in each request, which is always right. */
bool fetch_session_want(struct fetch_session *s, const char *topic, int32_t partition,
                        int64_t offset, int32_t leader_epoch)
{
    struct key key = {topic, partition};
    struct hnode *n = hmap_find(&s->by_name, hash_of(topic, partition), is_key, &key);
    struct remembered *r = n ? container_of(n, struct remembered, hnode) : NULL;
    bool same = r && r->offset == offset && r->leader_epoch == leader_epoch;
    if (!r)
        r = remember(s, topic, partition);
    if (r) {
        r->offset = offset;
        r->leader_epoch = leader_epoch;
        r->round = s->round;
    }
    return !same;
}

bool fetch_session_fill(struct fetch_session *s, struct arena *a, struct fetch_request *req)
{
    int32_t gone = 0;
    req->session_id = s->id;
    req->session_epoch = s->epoch;
    list_each (it, &s->remembered)
        gone += list_entry(it, struct remembered, link)->round != s->round;
    if (gone == 0)
        return true;
    struct fetch_request_forgotten_topic *topics = fetch_request_forgotten_topic_new(a, gone);
    int32_t *partitions = arena_array(a, int32_t, (size_t)gone);
    if (!topics || !partitions)
        return false;
    req->forgotten_topics_data.v = topics;
    list_each_safe (it, &s->remembered) {
        struct remembered *r = list_entry(it, struct remembered, link);
        if (r->round == s->round)
            continue;
        struct fetch_request_forgotten_topic *t = &topics[req->forgotten_topics_data.n];
        struct str name = arena_str(a, str_of(r->topic));
        if (!name.p)
            return false;
        partitions[req->forgotten_topics_data.n++] = r->partition;
        t->topic = name;
        t->partitions.v = &partitions[req->forgotten_topics_data.n - 1];
        t->partitions.n = 1;
        list_remove(&r->link);
        hmap_remove(&s->by_name, &r->hnode);
        free(r);
    }
    return true;
}

bool fetch_session_is_full(const struct fetch_session *s)
{
    return s->epoch == 0;
}

static int32_t next_epoch(int32_t epoch)
{
    return epoch == INT32_MAX ? 1 : epoch + 1;
}

bool fetch_session_end(struct fetch_session *s, kafka_err_t err, int32_t id)
{
    if (err == KAFKA_OK) {
        s->epoch = id == 0 ? 0 : s->epoch == 0 ? 1 : next_epoch(s->epoch);
        s->id = id;
        return false;
    }
    s->epoch = 0;
    if (err == KERR_FETCH_SESSION_ID_NOT_FOUND)
        s->id = 0;
    return err == KERR_FETCH_SESSION_ID_NOT_FOUND || err == KERR_INVALID_FETCH_SESSION_EPOCH;
}
