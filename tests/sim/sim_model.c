/* sim_model.c - see sim_model.h. */
#include "sim_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/log_check.h"
#include "metadata/znode.h"
#include "replica/partition_private.h"
#include "replica/replica_manager.h"
#include "server/broker.h"
#include "sim_broker.h"
#include "sim_keyed.h"
#include "sim_zk.h"

enum { TOPIC_MAX = 32, ACKS_MAX = 4096 };

struct entry { /* one committed batch */
    int64_t base, last;
    int32_t epoch;
    uint32_t crc;
    int64_t producer;
    int32_t sequence, last_sequence;
    int16_t producer_epoch;
    bool control;
};

struct epoch_leader {
    int32_t epoch, leader;
};

struct model {
    struct list link;
    char topic[TOPIC_MAX];
    struct uuid id;
    int32_t partition;
    bool unclean, compacted;
    struct keyed *keyed; /* of a compacted one */
    struct entry *v;
    size_t n, cap;
    struct epoch_leader *leaders;
    size_t leaders_n, leaders_cap;
    /* The store's state, as last seen. */
    int32_t state_version, leader, leader_epoch, controller_epoch;
    int32_t isr[SIM_HOSTS];
    int isr_n;
};

/* What was seen of one replica, in one life of its broker. */
struct view {
    struct list link;
    struct partition *p; /* compared only */
    struct log *log;     /* the same */
    uint32_t life;
    struct model *m;
    int32_t epoch;
    bool leads;
    int64_t hw, top, start, end, verified; /* top: the highest watermark so far */
    uint64_t seen;                         /* the look in which it was last there */
};

struct ack {
    struct model *m;
    int broker;
    int64_t producer;
    int32_t sequence;
    int64_t base;
};

static struct {
    struct ack acks[ACKS_MAX];
    size_t acks_n;
    struct list models;
    struct list views[SIM_HOSTS];
    char unclean[8][TOPIC_MAX];
    int unclean_n;
    bool ready;
    uint64_t looks, zk_changes, records;
    uint64_t looked_at, passed_over; /* brokers, because they were in the midst of something */
    int32_t controller_epoch;
    char why[256];
} M;

static void ready(void)
{
    if (M.ready)
        return;
    M.ready = true;
    list_init(&M.models);
    for (int i = 0; i < SIM_HOSTS; i++)
        list_init(&M.views[i]);
}

void sim_model_unclean(const char *topic)
{
    snprintf(M.unclean[M.unclean_n++], TOPIC_MAX, "%s", topic);
}

uint64_t sim_model_records(void)
{
    return M.records;
}

static bool is_unclean(const char *topic)
{
    for (int i = 0; i < M.unclean_n; i++)
        if (strcmp(M.unclean[i], topic) == 0)
            return true;
    return false;
}

static struct model *find(struct str topic, struct uuid id, int32_t partition)
{
    list_each (it, &M.models) {
        struct model *m = list_entry(it, struct model, link);
        if (m->partition == partition && uuid_eq(m->id, id) && str_eqz(topic, m->topic))
            return m;
    }
    return NULL;
}

static struct model *find_or_make(struct str topic, struct uuid id, int32_t partition)
{
    struct model *m = find(topic, id, partition);
    if (m)
        return m;
    m = calloc(1, sizeof(*m));
    snprintf(m->topic, sizeof(m->topic), "%.*s", STR_ARG(topic));
    m->id = id;
    m->partition = partition;
    m->unclean = is_unclean(m->topic);
    m->compacted =
        strcmp(m->topic, "__consumer_offsets") == 0 || strcmp(m->topic, "__transaction_state") == 0;
    m->keyed = m->compacted ? keyed_new() : NULL;
    m->state_version = -1;
    m->leader = m->leader_epoch = m->controller_epoch = -1;
    list_push_front(&M.models, &m->link); /* the newest of a name comes first */
    return m;
}

static int64_t model_end(const struct model *m)
{
    return m->n ? m->v[m->n - 1].last + 1 : 0;
}

static void note_leader(struct model *m, int32_t epoch, int32_t leader)
{
    for (size_t i = m->leaders_n; i-- > 0;) {
        if (m->leaders[i].epoch != epoch)
            continue;
        if (m->leaders[i].leader != leader)
            sim_violation("M1: %s-%d has two leaders in epoch %d: %d and %d", m->topic,
                          m->partition, epoch, m->leaders[i].leader, leader);
        return;
    }
    if (m->leaders_n == m->leaders_cap) {
        m->leaders_cap = m->leaders_cap ? 2 * m->leaders_cap : 16;
        m->leaders = realloc(m->leaders, m->leaders_cap * sizeof(*m->leaders));
    }
    m->leaders[m->leaders_n++] = (struct epoch_leader){epoch, leader};
}

/* ---- which replica is looked at: for words only ---- */

static struct {
    const struct model *m; /* NULL: `what` says it */
    const char *what;
    int host;
    int32_t epoch;
    bool leads;
    int64_t hw, end;
} subject;

static const char *who(void)
{
    static char text[128];
    if (!subject.m)
        return subject.what;
    snprintf(text, sizeof(text), "%s-%d on b%d (epoch %d, %s, high watermark %lld, end %lld)",
             subject.m->topic, subject.m->partition, subject.host, subject.epoch,
             subject.leads ? "leader" : "follower", (long long)subject.hw, (long long)subject.end);
    return text;
}

static void speak_of(const char *what)
{
    subject.m = NULL;
    subject.what = what;
}

/* ---- committed records ---- */

static const struct entry *entry_at(const struct model *m, int64_t offset)
{
    size_t low = 0, high = m->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (m->v[mid].last < offset)
            low = mid + 1;
        else
            high = mid;
    }
    return low < m->n ? &m->v[low] : NULL;
}

static struct entry entry_of(const struct batch *b)
{
    return (struct entry){.base = b->base_offset,
                          .last = b->last_offset,
                          .epoch = b->leader_epoch,
                          .crc = b->crc,
                          .producer = b->producer_id,
                          .sequence = b->base_sequence,
                          .last_sequence = b->last_sequence,
                          .producer_epoch = b->producer_epoch,
                          .control = batch_is_control(b)};
}

static bool same(const struct entry *a, const struct entry *b)
{
    return a->base == b->base && a->last == b->last && a->epoch == b->epoch && a->crc == b->crc;
}

/* M7. A producer's epochs rise, and with each its numbers begin anew; markers have an epoch only.
 * What coordinators write for producers has no numbers. */
static void check_sequence(const struct model *m, const struct entry *e)
{
    if (e->producer < 0 || m->unclean || m->compacted)
        return;
    for (size_t i = m->n; i-- > 0;) {
        if (m->v[i].producer != e->producer)
            continue;
        if (e->producer_epoch < m->v[i].producer_epoch)
            sim_violation("M7: %s-%d: producer %lld has epoch %d at %lld after %d at %lld",
                          m->topic, m->partition, (long long)e->producer, e->producer_epoch,
                          (long long)e->base, m->v[i].producer_epoch, (long long)m->v[i].base);
        if (e->control)
            return;
        if (e->producer_epoch > m->v[i].producer_epoch)
            break;
        if (m->v[i].control)
            continue;
        if (e->sequence != m->v[i].last_sequence + 1)
            sim_violation("M7: %s-%d: producer %lld has sequence %d at %lld after %d at %lld",
                          m->topic, m->partition, (long long)e->producer, e->sequence,
                          (long long)e->base, m->v[i].last_sequence, (long long)m->v[i].base);
        return;
    }
    if (e->sequence != 0 && !e->control)
        sim_violation("M7: %s-%d: producer %lld begins with sequence %d at %lld", m->topic,
                      m->partition, (long long)e->producer, e->sequence, (long long)e->base);
}

static void commit(struct model *m, const struct entry *e, const struct batch *b)
{
    check_sequence(m, e);
    if (m->compacted)
        keyed_add(m->keyed, b);
    if (m->n == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 64;
        m->v = realloc(m->v, m->cap * sizeof(*m->v));
    }
    m->v[m->n++] = *e;
    M.records += (uint64_t)(e->last - e->base + 1);
}

typedef void (*each_batch)(void *arg, const struct entry *e, const struct batch *b);

/* Walks bytes of a log; each(arg, ...) of whole batches. Where it stands then. */
static int64_t walk(const uint8_t *p, size_t n, int64_t from, each_batch each, void *arg)
{
    struct batch b;
    while (batch_decode(p, n, n, &b) == BATCH_OK) {
        if (!batch_crc_ok(&b))
            sim_violation("%s: the batch at %lld has a wrong checksum", who(),
                          (long long)b.base_offset);
        struct entry e = entry_of(&b);
        if (e.last >= from) {
            each(arg, &e, &b);
            from = e.last + 1;
        }
        p += b.size;
        n -= b.size;
    }
    return from;
}

/* Reads a log from an offset to a bound, whatever segments lie between. Of one that is cleaned
 * there may be nothing left. */
static int64_t read_log(struct log *log, int64_t from, int64_t to, bool cleaned, each_batch each,
                        void *arg)
{
    while (from < to) {
        struct log_slice s;
        enum kerr e = log_read(log, from, 1 << 20, to, true, false, &s);
        if (e != KERR_NONE)
            sim_violation("%s: reading at %lld of %lld: %s", who(), (long long)from, (long long)to,
                          kerr_name(e));
        uint8_t *bytes = malloc(s.len + 1);
        ssize_t got = s.len ? file_pread(s.file, bytes, s.len, s.pos) : 0;
        file_unref(s.file);
        int64_t next = got == (ssize_t)s.len ? walk(bytes, s.len, from, each, arg) : from;
        free(bytes);
        if (next == from && s.len == 0 && cleaned)
            return to;
        if (next == from)
            sim_violation("%s: nothing to read at %lld, below %lld", who(), (long long)from,
                          (long long)to);
        from = next;
    }
    return from;
}

struct comparison {
    struct model *m;
    int64_t to;
    struct keyed_look keyed; /* of a compacted one */
};

/* The same, whose cleaner may have been there. Who was away may keep a record of an epoch that was
 * over: if all that took its place has been cleaned away, and the leader has copied what was left,
 * no end of an epoch tells it (nor Apache Kafka's) to cut it off. */
static void compare_keyed(struct comparison *c, const struct entry *e, const struct batch *b)
{
    const struct entry *known = entry_at(c->m, e->base);
    if (!known)
        commit(c->m, e, b);
    else if (e->epoch < known->epoch)
        return; /* see below; what was committed there must be older than something else */
    else if (known->epoch != e->epoch || e->last > known->last)
        sim_violation("M4: %s has at %lld-%lld epoch %d, committed was %lld-%lld epoch %d", who(),
                      (long long)e->base, (long long)e->last, e->epoch, (long long)known->base,
                      (long long)known->last, known->epoch);
    keyed_see(&c->keyed, b, !known || same(known, e));
}

/* M4: a batch of a replica, all of it below its high watermark. */
static void compare(void *arg, const struct entry *e, const struct batch *b)
{
    struct comparison *c = arg;
    struct model *m = c->m;
    if (e->base >= c->to)
        return;
    if (m->compacted) {
        compare_keyed(c, e, b);
        return;
    }
    const struct entry *known = entry_at(m, e->base);
    if (!known && e->base == model_end(m)) {
        commit(m, e, b);
        return;
    }
    if (!known || !same(known, e))
        sim_violation("M4: %s has at %lld-%lld epoch %d checksum %x, committed was %lld-%lld epoch "
                      "%d checksum %x",
                      who(), (long long)e->base, (long long)e->last, e->epoch, e->crc,
                      known ? (long long)known->base : -1LL, known ? (long long)known->last : -1LL,
                      known ? known->epoch : -1, known ? known->crc : 0);
}

/* M4, from one offset to another, which is not above its high watermark. has: see sim_keyed.h. */
static int64_t compare_log(struct model *m, struct log *log, int64_t from, int64_t to, int64_t has)
{
    struct comparison c = {m, to, {m->keyed, from, to, has, who, NULL, 0}};
    int64_t at = read_log(log, from, to, m->compacted, compare, &c);
    if (m->compacted)
        keyed_seen(&c.keyed);
    return at;
}

/* ---- brokers ---- */

static struct view *view_of(struct sim_host *h, struct partition *p, struct log *log,
                            struct model *m)
{
    list_each (it, &M.views[h->id]) {
        struct view *v = list_entry(it, struct view, link);
        if (v->p == p && v->log == log && v->m == m && v->life == h->life)
            return v;
    }
    struct view *v = calloc(1, sizeof(*v));
    *v = (struct view){.p = p, .log = log, .life = h->life, .m = m, .epoch = -1};
    list_push_back(&M.views[h->id], &v->link);
    return v;
}

/* M3. In an epoch that is over already it may hear of late: then it can commit nothing. */
static void leadership_begins(const struct model *m, int32_t epoch, int64_t end)
{
    if (!m->unclean && epoch >= m->leader_epoch && end < model_end(m))
        sim_violation("M3: %s leads in epoch %d with a log that ends at %lld, committed are %lld",
                      who(), epoch, (long long)end, (long long)model_end(m));
}

/* M5. Where a cleaner has taken all records of an epoch, who copied from it does not know that
 * epoch, and as a leader lets followers that do cut theirs off: of no key the latest. */
static void drops(const struct model *m, int64_t end, int64_t top)
{
    if (!m->compacted)
        sim_violation("M5: %s: a high watermark of %lld was known here", who(), (long long)top);
    struct keyed_look l = {m->keyed, end, top, INT64_MAX, who, NULL, 0};
    keyed_seen(&l);
}

static void look_at_replica(void *arg, struct partition *p)
{
    struct sim_host *h = arg;
    int role = atomic_load(&p->role);
    struct log *log = p->log;
    if (!log || (role != PARTITION_LEADER && role != PARTITION_FOLLOWER) || log_offline(log))
        return;
    struct model *m = find_or_make((struct str){p->topic, p->topic_len}, p->topic_id, p->number);
    struct view *v = view_of(h, p, log, m);
    int32_t epoch = atomic_load(&p->leader_epoch);
    int64_t hw = log_high_watermark(log), end = log_end_offset(log);
    bool leads = role == PARTITION_LEADER;
    subject.m = m;
    subject.host = h->id;
    subject.epoch = epoch;
    subject.leads = leads;
    subject.hw = hw;
    subject.end = end;
    v->seen = M.looks;
    if (epoch < v->epoch)
        sim_violation("M8: %s was in epoch %d before", who(), v->epoch);
    if (leads)
        note_leader(m, epoch, h->id);
    if (leads && (!v->leads || v->epoch != epoch))
        leadership_begins(m, epoch, end);
    else if (leads && hw < v->hw)
        sim_violation("M2: %s: its high watermark was %lld", who(), (long long)v->hw);
    if (!m->unclean) {
        if (end < v->top)
            drops(m, end, v->top);
        if (end < v->verified)
            v->verified = end;
        if (hw > v->verified)
            v->verified = compare_log(m, log, v->verified, hw, INT64_MAX);
    }
    v->hw = hw;
    v->start = log_start_offset(log);
    v->top = hw > v->top ? hw : v->top;
    v->end = end;
    v->leads = leads;
    v->epoch = epoch;
}

static void forget_gone(int host)
{
    list_each_safe (it, &M.views[host]) {
        struct view *v = list_entry(it, struct view, link);
        if (v->seen == M.looks)
            continue;
        list_remove(&v->link);
        free(v);
    }
}

/* M6: each leader against the followers of its ISR. */
static const struct view *follower_view(const struct model *m, int host, int32_t epoch)
{
    if (!sim_broker_serves(sim_host(host)))
        return NULL;
    list_each (it, &M.views[host]) {
        const struct view *v = list_entry(it, struct view, link);
        if (v->m == m && !v->leads && v->epoch == epoch && v->life == sim_host(host)->life)
            return v;
    }
    return NULL;
}

static void check_isr(void *arg, struct partition *p)
{
    struct sim_host *h = arg;
    if (atomic_load(&p->role) != PARTITION_LEADER || !p->log)
        return;
    struct model *m = find((struct str){p->topic, p->topic_len}, p->topic_id, p->number);
    if (!m || m->unclean)
        return;
    int64_t hw = log_high_watermark(p->log);
    int32_t epoch = atomic_load(&p->leader_epoch);
    for (int i = 0; i < p->isr_n; i++) {
        const struct view *v = p->isr[i] != h->id ? follower_view(m, p->isr[i], epoch) : NULL;
        if (v && v->end < hw && v->seen == M.looks)
            sim_violation("M6: %s-%d epoch %d: %s leads with high watermark %lld, b%d is in the "
                          "ISR and ends at %lld",
                          m->topic, m->partition, epoch, h->name, (long long)hw, p->isr[i],
                          (long long)v->end);
    }
}

/* ---- the store ---- */

static struct uuid id_of_topic(struct bytes data, struct arena *a)
{
    struct topic_node t;
    return znode_topic_decode(data, a, &t) == 0 ? t.id : UUID_ZERO;
}

static bool has(const int32_t *v, int n, int32_t id)
{
    for (int i = 0; i < n; i++)
        if (v[i] == id)
            return true;
    return false;
}

/* M8 */
static void look_at_state(struct model *m, const struct partition_node *s, int32_t version)
{
    if (version == m->state_version)
        return;
    if (s->leader_epoch < m->leader_epoch || s->controller_epoch < m->controller_epoch)
        sim_violation("M8: the state of %s-%d goes back: leader epoch %d -> %d, controller's %d -> "
                      "%d",
                      m->topic, m->partition, m->leader_epoch, s->leader_epoch, m->controller_epoch,
                      s->controller_epoch);
    if (s->leader >= 0 && !id_list_has(s->isr, s->leader))
        sim_violation("M8: the leader %d of %s-%d is not in its ISR", s->leader, m->topic,
                      m->partition);
    bool elected = s->leader >= 0 && s->leader_epoch != m->leader_epoch && m->isr_n > 0;
    if (elected && !m->unclean && !has(m->isr, m->isr_n, s->leader))
        sim_violation("M8: %s-%d: %d leads in epoch %d but was not in the ISR", m->topic,
                      m->partition, s->leader, s->leader_epoch);
    if (s->leader >= 0)
        note_leader(m, s->leader_epoch, s->leader);
    m->state_version = version;
    m->leader = s->leader;
    m->leader_epoch = s->leader_epoch;
    m->controller_epoch = s->controller_epoch;
    m->isr_n = 0;
    for (int i = 0; i < s->isr.n && m->isr_n < SIM_HOSTS; i++)
        m->isr[m->isr_n++] = s->isr.v[i];
}

typedef void (*each_partition)(struct model *m, const struct partition_node *s, int32_t version);

static void each_state(const struct tree_node *topic, struct arena *a, each_partition each)
{
    struct str name = {topic->name, topic->name_len};
    struct uuid id = id_of_topic((struct bytes){topic->data, topic->data_len}, a);
    for (int i = 0; i < 64; i++) {
        char path[256];
        int32_t version;
        struct partition_node s;
        snprintf(path, sizeof(path), "/brokers/topics/%.*s/partitions/%d/state", STR_ARG(name), i);
        struct bytes data = sim_zk_get(path, &version);
        if (data.len < 0)
            break;
        if (znode_partition_decode(data, a, &s) != 0)
            sim_violation("the state of %.*s-%d cannot be read", STR_ARG(name), i);
        each(find_or_make(name, id, i), &s, version);
    }
}

static void each_topic(each_partition each)
{
    const struct tree_node *topics = tree_find(sim_zk_tree(), "/brokers/topics");
    struct arena a;
    if (!topics)
        return;
    arena_init(&a, 0);
    list_each (it, &topics->ages)
        each_state(list_entry(it, struct tree_node, by_age), &a, each);
    arena_free(&a);
}

static void look_at_store(void)
{
    int32_t epoch;
    struct bytes data = sim_zk_get("/controller_epoch", NULL);
    if (data.len >= 0 && znode_epoch_decode(data, &epoch) == 0) {
        if (epoch < M.controller_epoch)
            sim_violation("M8: the controller epoch goes back from %d to %d", M.controller_epoch,
                          epoch);
        M.controller_epoch = epoch;
    }
    each_topic(look_at_state);
}

static void check_acks(bool end);

void sim_model_look(void)
{
    ready();
    if (M.zk_changes != sim_zk_changes()) {
        M.zk_changes = sim_zk_changes();
        look_at_store();
    }
    M.looks++;
    bool looked[SIM_HOSTS] = {false};
    for (int i = 1; i <= sim_cluster.brokers; i++) {
        struct sim_host *h = sim_host(i);
        struct broker *b = sim_broker(h);
        if (b && h->moved)
            *(h->locks_held ? &M.passed_over : &M.looked_at) += 1;
        if (!b || !h->moved || h->locks_held)
            continue;
        looked[i] = true;
        h->moved = false;
        replica_manager_each(broker_replicas(b), look_at_replica, h);
        h->moved = false;
        forget_gone(i);
    }
    for (int i = 1; i <= sim_cluster.brokers; i++)
        if (looked[i])
            replica_manager_each(broker_replicas(sim_broker(sim_host(i))), check_isr, sim_host(i));
    check_acks(false);
}

/* ---- clients ---- */

static struct model *newest(const char *topic, int32_t partition)
{
    list_each (it, &M.models) {
        struct model *m = list_entry(it, struct model, link);
        if (m->partition == partition && strcmp(m->topic, topic) == 0)
            return m;
    }
    return NULL;
}

static bool is_committed(const struct ack *k)
{
    for (size_t i = k->m->n; i-- > 0;)
        if (k->m->v[i].producer == k->producer && k->m->v[i].sequence == k->sequence)
            return k->base < 0 || k->m->v[i].base == k->base;
    return false;
}

static bool is_there(const char *topic)
{
    char path[64 + TOPIC_MAX];
    snprintf(path, sizeof(path), "/brokers/topics/%s", topic);
    return tree_find(sim_zk_tree(), path) != NULL;
}

/* M9. The leader may not have been looked at while its watermark said so (a slow disk, under a
 * lock), and lead no longer: then another one shows the record, by the end; or a record in its
 * place. */
static void check_acks(bool end)
{
    size_t n = 0;
    for (size_t i = 0; i < M.acks_n; i++) {
        struct ack *k = &M.acks[i];
        if (is_committed(k) || k->m->unclean || !is_there(k->m->topic))
            continue;
        if (end || (k->base >= 0 && model_end(k->m) > k->base))
            sim_violation("M9: %s-%d: batch %d of producer %lld was acknowledged at %lld by b%d, "
                          "and is not among the committed (up to %lld)",
                          k->m->topic, k->m->partition, k->sequence, (long long)k->producer,
                          (long long)k->base, k->broker, (long long)model_end(k->m));
        M.acks[n++] = *k;
    }
    M.acks_n = n;
}

void sim_model_acked(const char *topic, int32_t partition, int broker, int64_t producer,
                     int32_t sequence, int64_t base_offset)
{
    struct model *m = newest(topic, partition);
    if (!m)
        sim_violation("M9: %s-%d is not known, and acknowledged", topic, partition);
    if (M.acks_n == ACKS_MAX)
        return;
    M.acks[M.acks_n++] = (struct ack){m, broker, producer, sequence, base_offset};
}

int32_t sim_model_leads(const char *topic, int32_t partition, int broker)
{
    const struct model *m = newest(topic, partition);
    return m && m->leader == broker ? m->leader_epoch : -1;
}

int sim_model_partitions(const char *topic)
{
    char path[64 + TOPIC_MAX];
    struct topic_node t;
    struct arena a;
    snprintf(path, sizeof(path), "/brokers/topics/%s", topic);
    struct bytes data = sim_zk_get(path, NULL);
    arena_init(&a, 0);
    int n = data.len >= 0 && znode_topic_decode(data, &a, &t) == 0 ? t.partitions_n : 0;
    arena_free(&a);
    return n;
}

struct uuid sim_model_topic_id(const char *topic)
{
    const struct model *m = newest(topic, 0);
    return m ? m->id : UUID_ZERO;
}

int64_t sim_model_end(const char *topic, int32_t partition)
{
    const struct model *m = newest(topic, partition);
    return m ? model_end(m) : 0;
}

void sim_model_tell(const char *topic, int32_t partition, int64_t producer)
{
    struct model *m = newest(topic, partition);
    for (size_t i = m && m->n > 6 ? m->n - 6 : 0; m && i < m->n; i++)
        fprintf(stderr, "  committed %lld-%lld epoch %d producer %lld sequence %d-%d\n",
                (long long)m->v[i].base, (long long)m->v[i].last, m->v[i].epoch,
                (long long)m->v[i].producer, m->v[i].sequence, m->v[i].last_sequence);
    for (size_t i = m ? m->n : 0; i-- > 0;) {
        if (m->v[i].producer != producer)
            continue;
        fprintf(stderr, "  producer %lld: last committed %lld-%lld sequence %d-%d\n",
                (long long)producer, (long long)m->v[i].base, (long long)m->v[i].last,
                m->v[i].sequence, m->v[i].last_sequence);
        return;
    }
}

struct reading {
    struct model *m;
};

static void consume(void *arg, const struct entry *e, const struct batch *b)
{
    struct reading *r = arg;
    const struct entry *known = entry_at(r->m, e->base);
    if (known && same(known, e))
        return;
    if (!known && e->base == model_end(r->m)) {
        commit(r->m, e, b); /* its leader has died since */
        return;
    }
    sim_violation("M10: a consumer of %s-%d gets %lld-%lld of epoch %d, committed is %lld-%lld of "
                  "epoch %d (up to %lld)",
                  r->m->topic, r->m->partition, (long long)e->base, (long long)e->last, e->epoch,
                  known ? (long long)known->base : -1LL, known ? (long long)known->last : -1LL,
                  known ? known->epoch : -1, (long long)model_end(r->m));
}

static void pass(void *arg, const struct entry *e, const struct batch *b)
{
    (void)arg, (void)e, (void)b;
}

int64_t sim_model_consumed(const char *topic, int32_t partition, int64_t from, const uint8_t *p,
                           size_t n)
{
    struct reading r = {newest(topic, partition)};
    if (!r.m)
        sim_violation("M10: a consumer gets records of %s-%d, which is not known", topic,
                      partition);
    speak_of("a consumer");
    return walk(p, n, from, r.m->unclean || r.m->compacted ? pass : consume, &r);
}

void sim_model_deleting(const char *topic)
{
    (void)topic;
}

/* ---- the end ---- */

/* All followers have heard of the leader's marks: consumers read from them, too. */
static void lacks_marks(const struct model *m, const struct partition_node *s,
                        const struct view *leader)
{
    for (int i = 0; i < s->isr.n && !*M.why; i++) {
        int id = s->isr.v[i];
        const struct view *v = id != s->leader ? follower_view(m, id, s->leader_epoch) : NULL;
        if (id != s->leader && !v)
            snprintf(M.why, sizeof(M.why), "b%d does not follow %s-%d in epoch %d", id, m->topic,
                     m->partition, s->leader_epoch);
        else if (v && (v->hw < leader->hw || v->start < leader->start) && !m->compacted)
            snprintf(M.why, sizeof(M.why),
                     "%s-%d has high watermark %lld and start %lld on b%d, %lld and %lld on its "
                     "leader b%d",
                     m->topic, m->partition, (long long)v->hw, (long long)v->start, id,
                     (long long)leader->hw, (long long)leader->start, s->leader);
    }
}

static void unhealed(struct model *m, const struct partition_node *s, int32_t version)
{
    char path[256];
    (void)version;
    if (*M.why)
        return;
    if (s->leader < 0) {
        snprintf(M.why, sizeof(M.why), "%s-%d has no leader", m->topic, m->partition);
        return;
    }
    snprintf(path, sizeof(path), "/brokers/topics/%s", m->topic);
    struct arena a;
    struct topic_node t;
    arena_init(&a, 0);
    if (znode_topic_decode(sim_zk_get(path, NULL), &a, &t) == 0 && m->partition < t.partitions_n) {
        const struct partition_assignment *p = &t.partitions[m->partition];
        if (p->replicas.n != s->isr.n)
            snprintf(M.why, sizeof(M.why), "%s-%d has %d of %d replicas in its ISR", m->topic,
                     m->partition, s->isr.n, p->replicas.n);
        else if (p->adding.n || p->removing.n)
            snprintf(M.why, sizeof(M.why), "%s-%d is still being moved", m->topic, m->partition);
    }
    arena_free(&a);
    const struct view *found = NULL;
    struct broker *b = sim_broker(sim_host(s->leader));
    list_each (it, &M.views[s->leader]) {
        const struct view *v = list_entry(it, struct view, link);
        if (v->m == m && v->leads && v->epoch == s->leader_epoch &&
            v->life == sim_host(s->leader)->life && (v->hw == v->end || m->compacted))
            found = v;
    }
    if (!*M.why && (!b || !found))
        snprintf(M.why, sizeof(M.why), "b%d does not lead %s-%d in epoch %d up to its end",
                 s->leader, m->topic, m->partition, s->leader_epoch);
    if (found)
        lacks_marks(m, s, found);
}

const char *sim_model_unhealed(void)
{
    *M.why = '\0';
    for (int i = 1; i <= sim_cluster.brokers && !*M.why; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/brokers/ids/%d", i);
        if (!sim_broker_serves(sim_host(i)))
            snprintf(M.why, sizeof(M.why), "b%d does not serve", i);
        else if (!tree_find(sim_zk_tree(), path))
            snprintf(M.why, sizeof(M.why), "b%d is not registered", i);
    }
    if (!*M.why && !tree_find(sim_zk_tree(), "/controller"))
        snprintf(M.why, sizeof(M.why), "there is no controller");
    const struct tree_node *deletions = tree_find(sim_zk_tree(), "/admin/delete_topics");
    if (!*M.why && deletions && !list_empty(&deletions->ages))
        snprintf(M.why, sizeof(M.why), "a topic is still being deleted");
    if (!*M.why)
        each_topic(unhealed);
    return *M.why ? M.why : NULL;
}

struct whole {
    struct entry *v;
    size_t n;
};

static void collect(void *arg, const struct entry *e, const struct batch *b)
{
    (void)b;
    struct whole *w = arg;
    w->v = realloc(w->v, (w->n + 1) * sizeof(*w->v));
    w->v[w->n++] = *e;
}

/* By the store. Who was away while it was taken off a partition keeps what it had, and nobody tells
 * it; nor need that be what was committed. */
static bool is_assigned(const struct model *m, int broker)
{
    char path[64 + TOPIC_MAX];
    struct topic_node t;
    struct arena a;
    bool is = false;
    snprintf(path, sizeof(path), "/brokers/topics/%s", m->topic);
    struct bytes data = sim_zk_get(path, NULL);
    arena_init(&a, 0);
    if (data.len >= 0 && znode_topic_decode(data, &a, &t) == 0)
        for (int i = 0; i < t.partitions_n; i++)
            is |= t.partitions[i].partition == m->partition &&
                  id_list_has(t.partitions[i].replicas, broker);
    arena_free(&a);
    return is;
}

static void check_log(void *arg, struct partition *p)
{
    struct sim_host *h = arg;
    char why[256];
    if (!p->log || log_offline(p->log))
        return;
    if (!log_check(p->log, why, sizeof(why)))
        sim_violation("M11: %.*s-%d on %s: %s", p->topic_len, p->topic, p->number, h->name, why);
    struct model *m = find((struct str){p->topic, p->topic_len}, p->topic_id, p->number);
    if (!m || m->unclean || !is_assigned(m, h->id))
        return;
    char what[96];
    snprintf(what, sizeof(what), "%s-%d on %s at the end", m->topic, m->partition, h->name);
    speak_of(what);
    if (m->compacted) { /* its coordinator may be writing still */
        compare_log(m, p->log, log_start_offset(p->log), log_high_watermark(p->log),
                    log_end_offset(p->log));
        return;
    }
    struct whole w = {0};
    read_log(p->log, log_start_offset(p->log), log_end_offset(p->log), false, collect, &w);
    for (size_t i = 0; i < w.n; i++) {
        const struct entry *known = entry_at(m, w.v[i].base);
        if (!known || !same(known, &w.v[i]))
            sim_violation("M11: %s-%d on %s differs at %lld", m->topic, m->partition, h->name,
                          (long long)w.v[i].base);
    }
    free(w.v);
}

/* All brokers, none in the midst of something. */
static void look_at_all(void)
{
    for (int i = 1; i <= sim_cluster.brokers; i++)
        while (sim_host(i)->locks_held && sim_step())
            i = 1;
    for (int i = 1; i <= sim_cluster.brokers; i++)
        sim_host(i)->moved = true;
    sim_model_look();
}

void sim_model_check_end(void)
{
    sim_say("brokers were looked at %llu times, passed over %llu times",
            (unsigned long long)M.looked_at, (unsigned long long)M.passed_over);
    look_at_all();
    check_acks(true);
    for (int i = 1; i <= sim_cluster.brokers; i++)
        replica_manager_each(broker_replicas(sim_broker(sim_host(i))), check_log, sim_host(i));
}
