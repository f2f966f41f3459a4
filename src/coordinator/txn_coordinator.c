/* txn_coordinator.c - see txn_coordinator.h: the partitions and the ids. */
#include "coordinator/txn_coordinator_private.h"

#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/key_partition.h"

/* ---- ids ---- */

static bool is_id(const struct hnode *n, const void *key)
{
    return str_eq(hmap_entry(n, struct txn, node)->id, *(const struct str *)key);
}

struct txn *txn_coordinator_id(const struct txn_coordinator *c, struct str id)
{
    struct hnode *n = c->ids.n ? hmap_find(&c->ids, hash_str(id), is_id, &id) : NULL;
    return n ? hmap_entry(n, struct txn, node) : NULL;
}

const struct txn *txn_coordinator_find(const struct txn_coordinator *c, struct str id)
{
    return txn_coordinator_id(c, id);
}

size_t txn_coordinator_count(const struct txn_coordinator *c)
{
    return c->ids.n;
}

int txn_coordinator_markers_waiting(const struct txn_coordinator *c)
{
    return txn_markers_waiting(c->markers);
}

/* Takes the reference; -ENOMEM leaves it with the caller. */
static int put(struct txn_coordinator *c, struct txn *t)
{
    if (hmap_put(&c->ids, &t->node, hash_str(t->id)) != 0)
        return -ENOMEM;
    list_push_back(&c->partitions[t->partition].ids, &t->link);
    return 0;
}

struct txn *txn_coordinator_add(struct txn_coordinator *c, struct str id, int32_t partition)
{
    struct txn *t = txn_new(id, partition);
    if (t && put(c, t) != 0) {
        txn_unref(t);
        return NULL;
    }
    return t;
}

void txn_coordinator_remove(struct txn_coordinator *c, struct txn *t)
{
    hmap_remove(&c->ids, &t->node);
    list_remove(&t->link);
    txn_write_give_up(t);
    txn_unref(t);
}

/* ---- partitions ---- */

enum kerr txn_coordinator_admit(const struct txn_coordinator *c, struct str id, int32_t *partition)
{
    *partition = key_partition(id, c->o.partitions_n);
    switch (c->partitions[*partition].home) {
    case TXN_HERE:
        return KERR_NONE;
    case TXN_LOADING:
        return KERR_COORDINATOR_LOAD_IN_PROGRESS;
    default:
        return KERR_NOT_COORDINATOR;
    }
}

bool txn_coordinator_owns(const struct txn_coordinator *c, const struct txn *t, uint64_t load)
{
    const struct txn_partition *p = &c->partitions[t->partition];
    return p->home == TXN_HERE && p->load == load && list_linked(&t->link);
}

static bool is_ours(const struct txn_coordinator *c, int32_t partition)
{
    return partition >= 0 && partition < c->o.partitions_n;
}

static void set_home(struct txn_coordinator *c, struct txn_partition *p, enum txn_home to)
{
    c->loading_n += (to == TXN_LOADING) - (p->home == TXN_LOADING);
    p->home = to;
}

static void begin_load(struct txn_coordinator *c, int32_t partition)
{
    struct txn_partition *p = &c->partitions[partition];
    p->again = false;
    p->load = ++c->loads;
    p->load_ms = executor_now_ms(c->o.ex);
    set_home(c, p, TXN_LOADING);
    c->o.load(c->o.arg, partition, p->epoch, p->load);
}

void txn_coordinator_elected(struct txn_coordinator *c, int32_t partition, int32_t leader_epoch)
{
    if (!c->active || !is_ours(c, partition))
        return;
    struct txn_partition *p = &c->partitions[partition];
    if (leader_epoch < p->epoch) {
        say_info(TXN_TAG, "__transaction_state-%d: election of epoch %d is old news, epoch is %d",
                 (int)partition, (int)leader_epoch, (int)p->epoch);
        return;
    }
    p->epoch = leader_epoch;
    if (p->home != TXN_ELSEWHERE)
        return; /* its log has not been anybody else's meanwhile */
    begin_load(c, partition);
}

void txn_coordinator_load_again(struct txn_coordinator *c)
{
    for (int32_t i = 0; i < c->o.partitions_n; i++)
        if (c->partitions[i].again)
            begin_load(c, i);
}

static void unload(struct txn_coordinator *c, int32_t partition)
{
    txn_markers_drop(c->markers, partition);
    list_each_safe (l, &c->partitions[partition].ids)
        txn_coordinator_remove(c, list_entry(l, struct txn, link));
}

void txn_coordinator_resigned(struct txn_coordinator *c, int32_t partition, int32_t leader_epoch)
{
    if (!is_ours(c, partition))
        return;
    struct txn_partition *p = &c->partitions[partition];
    if (leader_epoch >= 0 && leader_epoch < p->epoch)
        return;
    p->epoch = leader_epoch >= 0 ? leader_epoch : -1; /* a topic made anew counts from 0 again */
    p->again = false;
    if (p->home == TXN_ELSEWHERE)
        return;
    say_info(TXN_TAG, "__transaction_state-%d: resigned, epoch %d", (int)partition,
             (int)leader_epoch);
    set_home(c, p, TXN_ELSEWHERE);
    unload(c, partition);
}

/* Ids of a partition that is being loaded do not exist: requests wait for it. */
static int adopt(struct txn_coordinator *c, struct txn *t)
{
    return txn_coordinator_id(c, t->id) ? -EEXIST : put(c, t);
}

/* What was prepared goes on. false without memory. */
static bool resume(struct txn_coordinator *c, struct txn_partition *p)
{
    list_each (l, &p->ids) {
        struct txn *t = list_entry(l, struct txn, link);
        bool prepared = t->now.state == TXN_PREPARE_COMMIT || t->now.state == TXN_PREPARE_ABORT;
        if (prepared && !txn_write_resume(c, t))
            return false;
    }
    return true;
}

/* Half a partition would give out epochs that others have. */
static void load_failed(struct txn_coordinator *c, int32_t partition, int error)
{
    struct txn_partition *p = &c->partitions[partition];
    say_error(TXN_TAG, "__transaction_state-%d: could not be loaded; its ids are not served",
              (int)partition);
    /* A want of memory or descriptors passes, a damaged log stays as it is. */
    p->again = error != -EBADMSG && error != -ECANCELED;
    set_home(c, p, TXN_ELSEWHERE);
    unload(c, partition);
}

void txn_coordinator_loaded(struct txn_coordinator *c, int32_t partition, uint64_t number,
                            struct txn **ids, int n, int error)
{
    struct txn_partition *p = &c->partitions[partition];
    bool wanted = p->home == TXN_LOADING && p->load == number && c->active;
    for (int i = 0; i < n; i++) {
        int rc = wanted ? adopt(c, ids[i]) : -ECANCELED;
        if (rc)
            txn_unref(ids[i]);
        if (rc == -ENOMEM)
            error = rc;
    }
    if (!wanted)
        return;
    if (error) {
        load_failed(c, partition, error);
        return;
    }
    coordinator_loads_add(&c->loaded, executor_now_ms(c->o.ex) - p->load_ms);
    set_home(c, p, TXN_HERE);
    if (!resume(c, p))
        load_failed(c, partition, -ENOMEM);
}

void txn_coordinator_metadata_changed(struct txn_coordinator *c)
{
    if (c->active)
        txn_markers_look_again(c->markers);
}

/* ---- life ---- */

int txn_coordinator_new(const struct txn_coordinator_options *o, struct txn_coordinator **out)
{
    struct txn_coordinator *c = *out = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->o = *o;
    c->o.markers.written = txn_write_markers_written;
    c->o.markers.arg = c;
    hmap_init(&c->ids);
    txn_write_init(c);
    txn_cleanup_init(c);
    c->partitions = calloc((size_t)o->partitions_n, sizeof(*c->partitions));
    c->markers = txn_markers_new(&c->o.markers);
    if (!c->partitions || !c->markers) {
        txn_markers_free(c->markers);
        free(c->partitions);
        free(c);
        *out = NULL;
        return -ENOMEM;
    }
    for (int32_t i = 0; i < o->partitions_n; i++) {
        c->partitions[i].epoch = -1;
        list_init(&c->partitions[i].ids);
    }
    c->active = true;
    return 0;
}

void txn_coordinator_start(struct txn_coordinator *c)
{
    txn_cleanup_start(c);
}

void txn_coordinator_shut_down(struct txn_coordinator *c)
{
    c->active = false;
    txn_cleanup_stop(c);
    txn_markers_stop(c->markers);
    txn_write_shut_down(c);
    for (int32_t i = 0; i < c->o.partitions_n; i++) {
        set_home(c, &c->partitions[i], TXN_ELSEWHERE);
        unload(c, i);
    }
}

void txn_coordinator_free(struct txn_coordinator *c)
{
    if (!c)
        return;
    if (c->active)
        txn_coordinator_shut_down(c);
    txn_markers_free(c->markers);
    hmap_free(&c->ids);
    free(c->partitions);
    free(c);
}

/* ---- for metrics ---- */

void txn_coordinator_look(const struct txn_coordinator *c, struct txn_counts *out)
{
    *out = (struct txn_counts){.ids = (int64_t)c->ids.n,
                               .homeless_markers = txn_markers_homeless(c->markers),
                               .loads = c->loaded};
    list_each (l, &c->again)
        out->writes_again++;
}
