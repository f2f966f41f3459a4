/* sim_cluster.c - see sim_cluster.h. */
#include "controller/sim_cluster.h"

#include "base/logline.h"
#include "metadata/bootstrap.h"
#include "protocol/api.h"
#include "protocol/msg/leader_and_isr.h"
#include "protocol/msg/stop_replica.h"
#include "protocol/msg/update_metadata.h"

static int level(const struct sim_cluster *c)
{
    return c->ibp ? c->ibp : IBP_DEFAULT;
}

static bool ids_are_told(const struct sim_cluster *c)
{
    return ibp_leader_and_isr_version(level(c)) >= 5;
}

/* Channels. */

struct sim_call {
    struct list link;
    int16_t api_key;
    int version;
    const void *request;
    channel_cb cb;
    void *arg;
};

struct sim_channel {
    struct broker_channel base;
    struct list link; /* in the broker's channels */
    struct sim_broker *to;
    struct list calls;
    struct task task;
    bool posted, closed;
};

static void pump(struct sim_channel *ch);

static struct sim_replica *find(struct sim_broker *b, struct str topic, int32_t partition)
{
    list_each (at, &b->disk) {
        struct sim_replica *r = list_entry(at, struct sim_replica, link);
        if (r->partition == partition && str_eqz(topic, r->topic))
            return r;
    }
    return NULL;
}

static int64_t own_epoch(const struct sim_broker *b)
{
    return b->registrar ? broker_registrar_epoch(b->registrar) : -1;
}

/* Stale requests change nothing. */
static int16_t check_epochs(struct sim_broker *b, int64_t broker_epoch, int32_t controller_epoch)
{
    if (broker_epoch != -1 && broker_epoch < own_epoch(b))
        return KERR_STALE_BROKER_EPOCH;
    if (controller_epoch < b->controller_epoch)
        return KERR_STALE_CONTROLLER_EPOCH;
    b->controller_epoch = controller_epoch;
    return 0;
}

static int16_t become(struct sim_broker *b, const struct leader_and_isr_request_topic_state *t,
                      const struct leader_and_isr_request_partition_state *p)
{
    struct sim_replica *r = find(b, t->topic_name, p->partition_index);
    bool here = false;
    for (int i = 0; i < p->replicas.n; i++)
        here |= p->replicas.v[i] == b->id;
    assert_true(p->isr.n > 0);
    if (b->dead_topic && str_eqz(t->topic_name, b->dead_topic))
        return KERR_KAFKA_STORAGE_ERROR;
    if (!here)
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    b->lisr_partitions++;
    b->lisr_new += p->is_new;
    if (!r) {
        r = calloc(1, sizeof(*r));
        snprintf(r->topic, sizeof(r->topic), "%.*s", STR_ARG(t->topic_name));
        r->partition = p->partition_index;
        r->id = t->topic_id;
        r->leader_epoch = -1;
        list_push_back(&b->disk, &r->link);
    }
    if (!uuid_is_zero(t->topic_id) && !uuid_eq(r->id, t->topic_id))
        return KERR_INCONSISTENT_TOPIC_ID;
    if (p->leader_epoch <= r->leader_epoch)
        return KERR_STALE_CONTROLLER_EPOCH;
    r->leader = p->leader;
    r->leader_epoch = p->leader_epoch;
    r->stopped = false;
    return 0;
}

/* The answer of old versions, by name and in one list. */
static void apply_lisr_flat(struct sim_broker *b, const struct leader_and_isr_request *q,
                            struct arena *a, struct leader_and_isr_response *out)
{
    int n = 0;
    for (int i = 0; i < q->topic_states.n; i++)
        n += q->topic_states.v[i].partition_states.n;
    out->partition_errors.v = leader_and_isr_response_partition_error_new(a, n);
    out->partition_errors.n = n;
    struct leader_and_isr_response_partition_error *e = out->partition_errors.v;
    for (int i = 0; i < q->topic_states.n; i++) {
        const struct leader_and_isr_request_topic_state *t = &q->topic_states.v[i];
        for (int k = 0; k < t->partition_states.n; k++, e++) {
            e->topic_name = t->topic_name;
            e->partition_index = t->partition_states.v[k].partition_index;
            e->error_code = become(b, t, &t->partition_states.v[k]);
        }
    }
}

static void apply_lisr(struct sim_broker *b, int version, const struct leader_and_isr_request *q,
                       struct arena *a, struct leader_and_isr_response *out)
{
    leader_and_isr_response_init(out);
    b->lisr++;
    out->error_code = check_epochs(b, q->broker_epoch, q->controller_epoch);
    if (out->error_code)
        return;
    if (version < 5) {
        apply_lisr_flat(b, q, a, out);
        return;
    }
    out->topics.v = leader_and_isr_response_topic_new(a, q->topic_states.n);
    out->topics.n = q->topic_states.n;
    for (int i = 0; i < q->topic_states.n; i++) {
        const struct leader_and_isr_request_topic_state *t = &q->topic_states.v[i];
        int n = t->partition_states.n;
        struct leader_and_isr_response_partition_error *e =
            leader_and_isr_response_partition_error_new(a, n);
        out->topics.v[i].topic_id = t->topic_id;
        out->topics.v[i].partition_errors.v = e;
        out->topics.v[i].partition_errors.n = n;
        for (int k = 0; k < n; k++) {
            e[k].partition_index = t->partition_states.v[k].partition_index;
            e[k].error_code = become(b, t, &t->partition_states.v[k]);
        }
    }
}

static void apply_umr(struct sim_broker *b, const struct update_metadata_request *q,
                      struct update_metadata_response *out)
{
    update_metadata_response_init(out);
    b->umr++;
    out->error_code = check_epochs(b, q->broker_epoch, q->controller_epoch);
    if (out->error_code)
        return;
    for (int i = 0; i < q->topic_states.n; i++)
        b->umr_partitions += q->topic_states.v[i].partition_states.n;
    assert_int_equal(metadata_cache_update(b->cache, q), 0);
}

static void stop_one(struct sim_broker *b, struct str topic, int32_t partition,
                     int32_t leader_epoch, bool del,
                     struct stop_replica_response_partition_error *e)
{
    struct sim_replica *r = find(b, topic, partition);
    e->topic_name = topic;
    e->partition_index = partition;
    if (del && b->stop_error) {
        e->error_code = b->stop_error;
    } else if (r && leader_epoch >= 0 && leader_epoch < r->leader_epoch) {
        e->error_code = KERR_FENCED_LEADER_EPOCH;
    } else if (r && del) {
        list_remove(&r->link);
        free(r);
    } else if (r) {
        r->stopped = true;
    }
}

static void apply_sr(struct sim_broker *b, const struct stop_replica_request *q, struct arena *a,
                     struct stop_replica_response *out)
{
    stop_replica_response_init(out);
    b->sr++;
    out->error_code = check_epochs(b, q->broker_epoch, q->controller_epoch);
    int n = 0;
    for (int i = 0; i < q->topic_states.n; i++)
        n += q->topic_states.v[i].partition_states.n;
    for (int i = 0; i < q->topics.n; i++)
        n += q->topics.v[i].partition_indexes.n;
    if (out->error_code)
        return;
    struct stop_replica_response_partition_error *e =
        stop_replica_response_partition_error_new(a, n);
    out->partition_errors.v = e;
    out->partition_errors.n = n;
    for (int i = 0; i < q->topic_states.n; i++)
        for (int k = 0; k < q->topic_states.v[i].partition_states.n; k++) {
            const struct stop_replica_request_partition_state *p =
                &q->topic_states.v[i].partition_states.v[k];
            stop_one(b, q->topic_states.v[i].topic_name, p->partition_index, p->leader_epoch,
                     p->delete_partition, e++);
        }
    for (int i = 0; i < q->topics.n; i++)
        for (int k = 0; k < q->topics.v[i].partition_indexes.n; k++)
            stop_one(b, q->topics.v[i].name, q->topics.v[i].partition_indexes.v[k], -1,
                     q->delete_partitions, e++);
}

/* The request as it would arrive: through its bytes. */
static void *over_the_wire(const struct sim_call *call, struct arena *a, struct writer *w)
{
    const struct api_desc *api = api_find(call->api_key);
    void *copy = arena_calloc(a, 1, api->request->body->size);
    msg_encode(api->request, call->version, w, call->request);
    assert_false(w->buf.failed);
    assert_false(w->unsupported);
    struct reader r = reader_of(w->buf.p, w->buf.len);
    assert_int_equal(msg_decode(api->request, call->version, &r, a, copy), 0);
    assert_int_equal(reader_left(&r), 0);
    return copy;
}

static void serve(struct sim_broker *b, struct sim_call *call)
{
    struct arena a;
    struct writer w = WRITER_INIT;
    union {
        struct leader_and_isr_response lisr;
        struct update_metadata_response umr;
        struct stop_replica_response sr;
    } out;
    arena_init(&a, 0);
    void *q = over_the_wire(call, &a, &w);
    if (call->api_key == API_LEADER_AND_ISR)
        apply_lisr(b, call->version, q, &a, &out.lisr);
    else if (call->api_key == API_UPDATE_METADATA)
        apply_umr(b, q, &out.umr);
    else
        apply_sr(b, q, &a, &out.sr);
    call->cb(call->arg, 0, &out);
    arena_free(&a);
    writer_free(&w);
}

static void channel_run(struct task *t)
{
    struct sim_channel *ch = container_of(t, struct sim_channel, task);
    struct sim_broker *b = ch->to;
    ch->posted = false;
    if (ch->closed) {
        struct list *at;
        while ((at = list_pop(&ch->calls))) {
            struct sim_call *call = list_entry(at, struct sim_call, link);
            call->cb(call->arg, -ECANCELED, NULL);
            free(call);
        }
        list_remove(&ch->link);
        free(ch);
        return;
    }
    if (!b->up || b->hold || list_empty(&ch->calls))
        return; /* a broker that is not there answers nothing, until the channel is closed */
    struct sim_call *call = list_entry(list_pop(&ch->calls), struct sim_call, link);
    serve(b, call);
    free(call);
    pump(ch);
}

static void pump(struct sim_channel *ch)
{
    if (ch->posted)
        return;
    ch->posted = true;
    executor_post(ch->to->cluster->ex, &ch->task);
}

static void channel_send(struct broker_channel *base, int16_t api_key, int version,
                         const void *request, channel_cb cb, void *arg)
{
    struct sim_channel *ch = container_of(base, struct sim_channel, base);
    struct sim_call *call = calloc(1, sizeof(*call));
    assert_false(ch->closed);
    *call = (struct sim_call){
        .api_key = api_key, .version = version, .request = request, .cb = cb, .arg = arg};
    list_push_back(&ch->calls, &call->link);
    pump(ch);
}

static void channel_close(struct broker_channel *base)
{
    struct sim_channel *ch = container_of(base, struct sim_channel, base);
    assert_false(ch->closed);
    ch->closed = true;
    pump(ch);
}

static struct broker_channel *open_channel(void *arg, const struct broker_info *info)
{
    int32_t broker = info->id;
    struct sim_broker *from = arg;
    struct sim_channel *ch = calloc(1, sizeof(*ch));
    assert_true(broker >= 0 && broker < SIM_BROKERS);
    ch->base = (struct broker_channel){broker, channel_send, channel_close, NULL};
    ch->to = &from->cluster->brokers[broker];
    list_init(&ch->calls);
    task_init(&ch->task, channel_run);
    list_push_back(&ch->to->channels, &ch->link);
    return &ch->base;
}

/* Brokers. */

static void on_registered(void *arg, int status, int64_t epoch)
{
    assert_int_equal(status, 0);
}

static void on_fatal(void *arg, const char *why)
{
    ((struct sim_broker *)arg)->fatal = true;
}

static void on_ready(void *arg)
{
    ((struct sim_broker *)arg)->ready = true;
}

static bool unclean_allowed(void *arg, struct str topic)
{
    return ((struct sim_broker *)arg)->cluster->unclean;
}

static char *any_config(void *arg, struct str name, struct str value)
{
    return NULL;
}

static int32_t one_partition(void *arg)
{
    return 1;
}

static int16_t one_replica(void *arg)
{
    return 1;
}

void sim_broker_start(struct sim_cluster *c, int32_t id)
{
    struct sim_broker *b = &c->brokers[id];
    struct endpoint e[] = {{STR_LIT("CLIENT"), STR_LIT("pub"), 20000 + id, 0},
                           {STR_LIT("INTERNAL"), STR_LIT("b"), 10000 + id, 0}};
    struct broker_info self = {id, c->racks ? (struct str){c->racks + id, 1} : STR_NULL, e, 2};
    assert_false(b->up);
    b->up = true;
    b->ready = false;
    b->cache = metadata_cache_new();
    assert_int_equal(embedded_store_attach(c->base, &b->session), 0);
    struct broker_registrar_options ro = {.store = b->session,
                                          .ex = c->ex,
                                          .clock = &c->clock.clock,
                                          .self = &self,
                                          .jmx_port = -1,
                                          .wait_ms = 18000};
    assert_int_equal(broker_registrar_new(&ro, &b->registrar), 0);
    broker_registrar_register(b->registrar, on_registered, NULL);
    struct topic_admin_options ao = {.store = b->session,
                                     .metadata = b->cache,
                                     .ex = c->ex,
                                     .topic_ids = ibp_has_topic_ids(level(c)),
                                     .check_config = any_config,
                                     .default_partitions = one_partition,
                                     .default_replication = one_replica,
                                     .seed = 1};
    assert_int_equal(topic_admin_new(&ao, &b->admin), 0);
    sim_drain(c);
    struct controller_options co = {.broker_id = id,
                                    .store = b->session,
                                    .ex = c->ex,
                                    .registrar = b->registrar,
                                    .listener = STR_LIT("INTERNAL"),
                                    .ibp = c->ibp,
                                    .delete_topics = true,
                                    .rebalance_ms = c->rebalance_ms,
                                    .imbalance_percent = 10,
                                    .unclean = unclean_allowed,
                                    .channel = open_channel,
                                    .fatal = on_fatal,
                                    .ready = on_ready,
                                    .arg = b};
    assert_int_equal(controller_start(&co, &b->controller), 0);
}

void sim_broker_kill(struct sim_cluster *c, int32_t id, bool clean)
{
    struct sim_broker *b = &c->brokers[id];
    assert_true(b->up);
    b->up = false;
    controller_stop(b->controller);
    broker_registrar_free(b->registrar);
    b->registrar = NULL;
    if (!clean) /* what is queued is not done */
        embedded_store_expire_session(b->session);
    store_close(b->session);
    sim_drain(c); /* its own answers come in, and nobody looks at them */
    topic_admin_free(b->admin);
    metadata_cache_free(b->cache);
    b->controller_epoch = 0;
}

void sim_bounce(struct sim_cluster *c, int32_t id)
{
    char path[32];
    struct bytes data;
    snprintf(path, sizeof(path), "/brokers/ids/%d", (int)id);
    assert_int_equal(store_get(c->base, path, &data, NULL), 0);
    struct store_op ops[] = {store_op_delete(path, STORE_ANY_VERSION),
                             store_op_create(path, data, 0)};
    struct store_request r = {.ops = ops, .ops_n = 2, .multi = true};
    assert_int_equal(store_run(c->base, &r), 0);
    free((void *)data.p);
}

void sim_drain(struct sim_cluster *c)
{
    int steps = 0;
    while (sim_executor_step(c->e))
        assert_true(++steps < 5000000);
}

void sim_start(struct sim_cluster *c, int brokers)
{
    const char *racks = c->racks;
    int ibp = c->ibp;
    int64_t rebalance_ms = c->rebalance_ms;
    memset(c, 0, sizeof(*c));
    c->racks = racks;
    c->ibp = ibp;
    c->rebalance_ms = rebalance_ms;
    logline_set_level(LOGLINE_FATAL);
    sim_clock_init(&c->clock, 1700000000000);
    c->e = sim_executor_new(&c->clock);
    c->ex = sim_executor_ex(c->e);
    c->base = open_in_memory(c->ex);
    arena_init(&c->arena, 0);
    assert_int_equal(bootstrap_paths(c->base), 0);
    c->brokers_n = brokers;
    for (int i = 0; i < SIM_BROKERS; i++) {
        c->brokers[i].cluster = c;
        c->brokers[i].id = i;
        list_init(&c->brokers[i].disk);
        list_init(&c->brokers[i].channels);
    }
    for (int i = 0; i < brokers; i++) {
        sim_broker_start(c, i);
        sim_drain(c);
    }
}

void sim_stop(struct sim_cluster *c)
{
    for (int i = 0; i < SIM_BROKERS; i++) {
        struct sim_broker *b = &c->brokers[i];
        if (b->up)
            sim_broker_kill(c, i, true);
        for (struct list *at; (at = list_pop(&b->disk));)
            free(list_entry(at, struct sim_replica, link));
    }
    store_close(c->base);
    sim_drain(c);
    sim_executor_free(c->e);
    arena_free(&c->arena);
}

struct sim_broker *sim_active(struct sim_cluster *c)
{
    struct sim_broker *active = NULL;
    for (int i = 0; i < SIM_BROKERS; i++) {
        struct sim_broker *b = &c->brokers[i];
        if (!b->up || !controller_is_active(b->controller))
            continue;
        assert_null(active);
        active = b;
    }
    return active;
}

void sim_release(struct sim_cluster *c, int32_t id)
{
    c->brokers[id].hold = false;
    list_each (at, &c->brokers[id].channels)
        pump(list_entry(at, struct sim_channel, link));
}

/* Topics. */

static void on_done(void *arg)
{
    *(bool *)arg = true;
}

static int run_create(struct sim_cluster *c, struct new_topic *t)
{
    bool done = false;
    topic_admin_create(sim_active(c)->admin, t, 1, false, c->ex, on_done, &done);
    sim_drain(c);
    assert_true(done);
    free(t->message);
    return (int)t->error;
}

int sim_create_topic(struct sim_cluster *c, const char *name, int partitions, int replication)
{
    struct new_topic t = {
        .name = str_of(name), .partitions = partitions, .replication = (int16_t)replication};
    return run_create(c, &t);
}

int sim_create_assigned(struct sim_cluster *c, const char *name, const int32_t *brokers, int n)
{
    struct manual_assignment m = {0, brokers, n};
    struct new_topic t = {.name = str_of(name),
                          .partitions = -1,
                          .replication = -1,
                          .assignments = &m,
                          .assignments_n = 1};
    return run_create(c, &t);
}

int sim_delete_topic(struct sim_cluster *c, const char *name)
{
    bool done = false;
    struct topic_deletion d = {.name = str_of(name)};
    topic_admin_delete(sim_active(c)->admin, &d, 1, c->ex, on_done, &done);
    sim_drain(c);
    assert_true(done);
    return (int)d.error;
}

int sim_grow_topic(struct sim_cluster *c, const char *name, int count)
{
    bool done = false;
    struct topic_growth g = {.name = str_of(name), .count = count};
    topic_admin_grow(sim_active(c)->admin, &g, 1, false, c->ex, on_done, &done);
    sim_drain(c);
    assert_true(done);
    free(g.message);
    return (int)g.error;
}

/* Looks. */

struct partition_node sim_state(struct sim_cluster *c, const char *topic, int partition,
                                int32_t *version)
{
    char path[400];
    struct bytes data;
    struct store_stat st = {0};
    struct partition_node node = {.leader = -9};
    snprintf(path, sizeof(path), "/brokers/topics/%s/partitions/%d/state", topic, partition);
    if (store_get(c->base, path, &data, &st) == 0)
        assert_int_equal(znode_partition_decode(data, &c->arena, &node), 0);
    free((void *)data.p);
    if (version)
        *version = st.version;
    return node;
}

struct sim_replica *sim_replica(struct sim_cluster *c, int32_t broker, const char *topic,
                                int partition)
{
    return find(&c->brokers[broker], str_of(topic), partition);
}

bool sim_exists(struct sim_cluster *c, const char *path)
{
    struct store_stat st;
    return stat_of(c->base, path, &st) == 0;
}

/* Checks. */

static bool is_up(struct sim_cluster *c, int32_t id)
{
    return id >= 0 && id < SIM_BROKERS && c->brokers[id].up;
}

static void check_caches(struct sim_cluster *c, const char *topic, struct uuid id, int partition,
                         const struct partition_node *node, int32_t version)
{
    for (int i = 0; i < SIM_BROKERS; i++) {
        if (!c->brokers[i].up)
            continue;
        const struct metadata_snapshot *s = metadata_acquire(c->brokers[i].cache);
        const struct topic_info *t = metadata_topic(s, str_of(topic));
        const struct partition_info *p = metadata_partition(s, str_of(topic), partition);
        assert_non_null(t);
        assert_non_null(p);
        assert_true(uuid_eq(t->id, ids_are_told(c) ? id : UUID_ZERO));
        assert_int_equal(p->leader, node->leader);
        assert_int_equal(p->leader_epoch, node->leader_epoch);
        assert_int_equal(p->partition_epoch, version);
        metadata_release(s);
    }
}

static void check_partition(struct sim_cluster *c, const char *topic, struct uuid id,
                            const struct partition_assignment *a)
{
    int32_t version;
    struct partition_node node = sim_state(c, topic, a->partition, &version);
    bool some_up = false;
    for (int i = 0; i < a->replicas.n; i++)
        some_up |= is_up(c, a->replicas.v[i]);
    if (node.leader == -9) { /* nobody was there to lead */
        assert_false(some_up);
        return;
    }
    assert_true(node.isr.n > 0);
    assert_true(node.leader == -1 || id_list_has(node.isr, node.leader));
    for (int i = 0; i < node.isr.n; i++)
        assert_true(id_list_has(a->replicas, node.isr.v[i]));
    bool isr_up = false;
    for (int i = 0; i < node.isr.n; i++)
        isr_up |= is_up(c, node.isr.v[i]);
    assert_int_equal(node.leader != -1, isr_up);
    for (int i = 0; i < a->replicas.n; i++) {
        int32_t b = a->replicas.v[i];
        struct sim_replica *r = sim_replica(c, b, topic, a->partition);
        if (!is_up(c, b) || node.leader == -1)
            continue;
        assert_non_null(r);
        assert_int_equal(r->leader, node.leader);
        assert_int_equal(r->leader_epoch, node.leader_epoch);
        assert_false(r->stopped);
        assert_true(uuid_eq(r->id, ids_are_told(c) ? id : UUID_ZERO));
    }
    check_caches(c, topic, id, a->partition, &node, version);
}

static void check_topic(struct sim_cluster *c, const char *topic)
{
    char path[300];
    struct bytes data;
    struct topic_node node;
    snprintf(path, sizeof(path), "/admin/delete_topics/%s", topic);
    if (sim_exists(c, path)) /* on its way out */
        return;
    snprintf(path, sizeof(path), "/brokers/topics/%s", topic);
    assert_int_equal(store_get(c->base, path, &data, NULL), 0);
    assert_int_equal(znode_topic_decode(data, &c->arena, &node), 0);
    free((void *)data.p);
    assert_int_equal(uuid_is_zero(node.id), !ibp_has_topic_ids(level(c)));
    for (int i = 0; i < node.partitions_n; i++)
        check_partition(c, topic, node.id, &node.partitions[i]);
}

void sim_check(struct sim_cluster *c)
{
    sim_drain(c);
    struct sim_broker *active = sim_active(c);
    struct store_op list = store_op_children("/brokers/topics", false);
    bool any_up = false;
    for (int i = 0; i < SIM_BROKERS; i++) {
        any_up |= c->brokers[i].up;
        assert_false(c->brokers[i].fatal);
    }
    assert_int_equal(active != NULL, any_up);
    assert_int_equal(run_op(c->base, &list), 0);
    for (int i = 0; i < list.names_n && active; i++)
        check_topic(c, list.names[i]);
    for (int i = 0; i < SIM_BROKERS && active; i++) {
        if (!c->brokers[i].up)
            continue;
        const struct metadata_snapshot *s = metadata_acquire(c->brokers[i].cache);
        assert_int_equal(metadata_controller(s), active->id);
        for (int k = 0; k < SIM_BROKERS; k++)
            assert_int_equal(metadata_broker(s, k) != NULL, c->brokers[k].up);
        metadata_release(s);
    }
    free(list.names);
}

void sim_start_under(struct sim_cluster *c, int brokers, int32_t controller)
{
    sim_start(c, brokers);
    while (sim_active(c)->id != controller) {
        int32_t id = sim_active(c)->id;
        sim_broker_kill(c, id, false);
        sim_drain(c);
        sim_broker_start(c, id);
        sim_drain(c);
    }
}
