/* sim_source.c - see sim_source.h. */
#include "sim_source.h"

#include "base/logline.h"
#include "protocol/msg/fetch.h"
#include "protocol/msg/list_offsets.h"
#include "protocol/msg/offset_for_leader_epoch.h"

/* ---- calls on their way ---- */

struct sim_remote {
    struct remote base;
    struct list link; /* sim_node.remotes */
    struct sim_node *to;
    struct list calls;
    struct task task;
    struct timer timer;
    bool posted, waiting, closed;
    int moves; /* of the node, when it was opened: it is not there any more after another */
};

struct sim_call {
    struct list link;
    int16_t api_key;
    int version;
    struct arena arena;
    struct writer bytes; /* that the request points into */
    void *request;
    peer_cb cb;
    void *arg;
    bool looked, expired; /* a fetch that waits */
    bool held;
    struct writer answer; /* while held */
};

static struct executor *ex_of(struct sim_node *n)
{
    return sim_executor_ex(n->b.sim);
}

static void pump(struct sim_remote *r)
{
    if (!r->posted)
        executor_post(ex_of(r->to), &r->task);
    r->posted = true;
}

static void call_free(struct sim_call *c)
{
    arena_free(&c->arena);
    writer_free(&c->bytes);
    writer_free(&c->answer);
    free(c);
}

static void finish(struct sim_call *c, int status, const void *response)
{
    list_remove(&c->link);
    c->cb(c->arg, status, c->version, response);
    call_free(c);
}

/* The bytes of the answer are there. */
static void arrive(struct sim_call *c)
{
    const struct api_desc *api = api_find(c->api_key);
    struct writer w = c->answer;
    struct arena a;
    arena_init(&a, 0);
    struct reader r = reader_of(w.buf.p, w.buf.len);
    void *copy = arena_calloc(&a, 1, api->response->body->size);
    assert_int_equal(msg_decode(api->response, c->version, &r, &a, copy), 0);
    c->answer = WRITER_INIT;
    finish(c, 0, copy);
    arena_free(&a);
    writer_free(&w);
}

static void answer(struct sim_node *n, struct sim_call *c, const void *response)
{
    msg_encode(api_find(c->api_key)->response, c->version, &c->answer, response);
    assert_false(c->answer.buf.failed);
    assert_false(c->answer.unsupported);
    c->held = n->hold;
    if (!c->held)
        arrive(c);
}

/* ---- sessions ---- */

static struct sim_session *session_of(struct sim_node *n, int32_t id)
{
    for (int i = 0; i < n->sessions_n; i++)
        if (n->sessions[i].id == id && id)
            return &n->sessions[i];
    return NULL;
}

static struct str name_of(struct sim_node *n, struct uuid id)
{
    const struct metadata_snapshot *s = metadata_acquire(n->b.metadata);
    const struct topic_info *t = metadata_topic_by_id(s, id);
    metadata_release(s);
    return t ? STR_LIT("t") : STR_NULL; /* the only one there is */
}

static struct sim_session_part *part_of(struct sim_session *s, struct str topic, struct uuid id,
                                        int32_t partition)
{
    for (int i = 0; i < s->n; i++)
        if (s->parts[i].partition == partition &&
            (s->ids ? uuid_eq(s->parts[i].id, id) : str_eqz(topic, s->parts[i].topic)))
            return &s->parts[i];
    return NULL;
}

static int32_t fetcher_id(const struct fetch_request *q, int version)
{
    return version >= 15 ? q->replica_state.replica_id : q->replica_id;
}

static void update_session(struct sim_node *n, struct sim_session *s, int version,
                           const struct fetch_request *q)
{
    for (int32_t t = 0; t < q->topics.n; t++)
        for (int32_t i = 0; i < q->topics.v[t].partitions.n; i++) {
            const struct fetch_request_topic *topic = &q->topics.v[t];
            const struct fetch_request_partition *p = &topic->partitions.v[i];
            struct sim_session_part *to = part_of(s, topic->topic, topic->topic_id, p->partition);
            if (!to) {
                assert_true(s->n < SIM_PARTS_MAX);
                to = &s->parts[s->n++];
                *to = (struct sim_session_part){.id = topic->topic_id,
                                                .partition = p->partition,
                                                .sent_hw = -1,
                                                .sent_start = -1};
                struct str name = version >= 13 ? name_of(n, topic->topic_id) : topic->topic;
                snprintf(to->topic, sizeof(to->topic), "%.*s", STR_ARG(name));
            }
            n->parts_told++;
            to->args = (struct partition_read_args){.replica_id = fetcher_id(q, version),
                                                    .offset = p->fetch_offset,
                                                    .current_leader_epoch = p->current_leader_epoch,
                                                    .last_fetched_epoch = p->last_fetched_epoch,
                                                    .fetcher_log_start = p->log_start_offset,
                                                    .max_bytes = (uint32_t)p->partition_max_bytes,
                                                    .leader_only = true};
        }
    for (int32_t t = 0; t < q->forgotten_topics_data.n; t++)
        for (int32_t i = 0; i < q->forgotten_topics_data.v[t].partitions.n; i++) {
            const struct fetch_request_forgotten_topic *g = &q->forgotten_topics_data.v[t];
            struct sim_session_part *p = part_of(s, g->topic, g->topic_id, g->partitions.v[i]);
            assert_non_null(p); /* only what the session has can be forgotten */
            *p = s->parts[--s->n];
        }
}

/* The session to serve, or NULL and an error. */
static struct sim_session *begin_session(struct sim_node *n, int version,
                                         const struct fetch_request *q, int16_t *error)
{
    struct sim_session *s = session_of(n, q->session_id);
    *error = 0;
    if (q->session_epoch == 0) {
        n->full_fetches++;
        if (!s) {
            assert_true(n->sessions_n < 8);
            s = &n->sessions[n->sessions_n++];
        }
        *s = (struct sim_session){
            .id = 100 * n->id + n->full_fetches, .epoch = 0, .ids = version >= 13};
    } else if (!s) {
        *error = KERR_FETCH_SESSION_ID_NOT_FOUND;
        return NULL;
    } else if (s->epoch != q->session_epoch) {
        *error = KERR_INVALID_FETCH_SESSION_EPOCH;
        return NULL;
    }
    assert_int_equal(s->ids, version >= 13);
    update_session(n, s, version, q);
    s->epoch++;
    return s;
}

/* ---- Fetch ---- */

struct found {
    enum kerr error;
    struct partition_read read;
};

static void read_part(struct sim_node *n, struct sim_session_part *p, bool reread,
                      struct found *out)
{
    memset(out, 0, sizeof(*out));
    out->read.diverging_epoch = -1;
    if (n->part_errors > 0) {
        n->part_errors--;
        out->error = (enum kerr)n->part_error;
        return;
    }
    struct partition *x =
        replica_manager_find(n->b.m, bench_tp(p->topic, p->partition), &out->error);
    if (!x)
        return;
    struct partition_read_args args = p->args;
    args.min_one = true;
    args.reread = reread;
    out->error = partition_read(x, &args, NULL, &out->read);
    partition_unref(x);
}

static void fill_part(struct sim_node *n, struct arena *a, const struct sim_session_part *p,
                      struct found *f, struct fetch_response_partition *out)
{
    out->partition_index = p->partition;
    out->error_code = (int16_t)f->error;
    out->high_watermark = -1;
    out->aborted_transactions.n = -1;
    out->records = (struct records){.p = (const uint8_t *)"", .len = 0};
    if (f->error)
        return;
    out->high_watermark = f->read.high_watermark;
    out->last_stable_offset = f->read.last_stable_offset;
    out->log_start_offset = f->read.log_start_offset;
    out->diverging_epoch.epoch = f->read.diverging_epoch;
    out->diverging_epoch.end_offset = f->read.diverging_end_offset;
    if (f->read.slice.len == 0)
        return;
    uint8_t *bytes = arena_alloc(a, f->read.slice.len);
    assert_int_equal(file_pread(f->read.slice.file, bytes, f->read.slice.len, f->read.slice.pos),
                     f->read.slice.len);
    if (n->corrupt > 0) {
        n->corrupt--;
        bytes[f->read.slice.len - 1] ^= 1;
    }
    out->records = (struct records){.p = bytes, .len = (int32_t)f->read.slice.len};
}

static bool send_part(const struct sim_session_part *p, const struct found *f, bool full)
{
    return full || f->error || f->read.slice.len > 0 || f->read.diverging_epoch >= 0 ||
           f->read.high_watermark != p->sent_hw || f->read.log_start_offset != p->sent_start;
}

/* false: it waits. */
static bool serve_fetch(struct sim_remote *r, struct sim_call *c)
{
    struct sim_node *n = r->to;
    const struct fetch_request *q = c->request;
    struct fetch_response out;
    fetch_response_init(&out);
    int16_t error = n->session_error;
    struct sim_session *s = NULL;
    if (!c->looked) {
        n->fetches++;
        n->last_version = c->version;
        n->session_error = 0;
        if (!error)
            s = begin_session(n, c->version, q, &error);
        if (s && q->session_epoch == 0) /* for the second look at a request that waits */
            ((struct fetch_request *)q)->session_id = s->id;
    } else {
        error = 0;
        s = session_of(n, q->session_id);
    }
    out.error_code = error;
    if (!s) {
        answer(n, c, &out);
        return true;
    }
    struct found found[SIM_PARTS_MAX];
    int64_t bytes = 0;
    bool must = c->expired || q->session_epoch == 0;
    for (int i = 0; i < s->n; i++) {
        read_part(n, &s->parts[i], c->looked, &found[i]);
        bytes += found[i].read.slice.len;
        must |= found[i].error || found[i].read.diverging_epoch >= 0;
    }
    bool ready = must || bytes >= q->min_bytes || q->max_wait_ms <= 0;
    if (ready) {
        out.session_id = s->id;
        out.responses.v = fetch_response_response_new(&c->arena, s->n);
        for (int i = 0; i < s->n; i++) {
            struct sim_session_part *p = &s->parts[i];
            if (!send_part(p, &found[i], q->session_epoch == 0))
                continue;
            n->parts_sent++;
            struct fetch_response_response *t = &out.responses.v[out.responses.n++];
            t->topic = str_of(p->topic);
            t->topic_id = p->id;
            t->partitions.v = fetch_response_partition_new(&c->arena, 1);
            t->partitions.n = 1;
            fill_part(n, &c->arena, p, &found[i], t->partitions.v);
            p->sent_hw = found[i].error ? -1 : found[i].read.high_watermark;
            p->sent_start = found[i].read.log_start_offset;
        }
    }
    for (int i = 0; i < s->n; i++)
        file_unref(found[i].read.slice.file);
    if (ready) {
        answer(n, c, &out);
    } else {
        if (!c->looked)
            executor_timer_start(ex_of(n), &r->timer, q->max_wait_ms);
        c->looked = true;
        r->waiting = true;
    }
    return ready;
}

/* ---- the other questions ---- */

static void serve_epochs(struct sim_node *n, struct sim_call *c)
{
    const struct offset_for_leader_epoch_request *q = c->request;
    struct offset_for_leader_epoch_response out;
    offset_for_leader_epoch_response_init(&out);
    n->epoch_questions++;
    out.topics.v = offset_for_leader_epoch_response_topic_new(&c->arena, q->topics.n);
    out.topics.n = q->topics.n;
    for (int32_t t = 0; t < q->topics.n; t++) {
        int32_t parts = q->topics.v[t].partitions.n;
        struct offset_for_leader_epoch_response_partition *v =
            offset_for_leader_epoch_response_partition_new(&c->arena, parts);
        out.topics.v[t].topic = q->topics.v[t].topic;
        out.topics.v[t].partitions.v = v;
        out.topics.v[t].partitions.n = parts;
        for (int32_t i = 0; i < parts; i++) {
            const struct offset_for_leader_epoch_request_partition *p =
                &q->topics.v[t].partitions.v[i];
            enum kerr e;
            struct partition *x = replica_manager_find(n->b.m, bench_tp("t", p->partition), &e);
            v[i].partition = p->partition;
            if (x)
                e = partition_epoch_end(x, p->current_leader_epoch, p->leader_epoch,
                                        &v[i].leader_epoch, &v[i].end_offset);
            v[i].error_code = (int16_t)e;
            partition_unref(x);
        }
    }
    answer(n, c, &out);
}

static void serve_offsets(struct sim_node *n, struct sim_call *c)
{
    const struct list_offsets_request *q = c->request;
    struct list_offsets_response out;
    list_offsets_response_init(&out);
    n->offset_questions++;
    out.topics.v = list_offsets_response_topic_new(&c->arena, q->topics.n);
    out.topics.n = q->topics.n;
    for (int32_t t = 0; t < q->topics.n; t++) {
        int32_t parts = q->topics.v[t].partitions.n;
        struct list_offsets_response_partition *v =
            list_offsets_response_partition_new(&c->arena, parts);
        out.topics.v[t].name = q->topics.v[t].name;
        out.topics.v[t].partitions.v = v;
        out.topics.v[t].partitions.n = parts;
        for (int32_t i = 0; i < parts; i++) {
            const struct list_offsets_request_partition *p = &q->topics.v[t].partitions.v[i];
            enum kerr e;
            struct offset_lookup found = {-1, -1, -1};
            struct partition *x =
                replica_manager_find(n->b.m, bench_tp("t", p->partition_index), &e);
            if (x)
                e = partition_list_offset(x, q->replica_id, READ_UNCOMMITTED, p->timestamp,
                                          p->current_leader_epoch, &found);
            v[i].partition_index = p->partition_index;
            v[i].error_code = (int16_t)e;
            v[i].offset = found.offset;
            partition_unref(x);
        }
    }
    answer(n, c, &out);
}

static void serve(struct task *t)
{
    struct sim_remote *r = container_of(t, struct sim_remote, task);
    r->posted = r->waiting = false;
    if (r->closed) {
        free(r);
        return;
    }
    while (!list_empty(&r->calls) && !r->closed) {
        struct sim_call *c = list_entry(r->calls.next, struct sim_call, link);
        if (c->held)
            return;
        if (r->to->down || r->moves != r->to->moves)
            finish(c, -ECONNREFUSED, NULL);
        else if (c->api_key == API_OFFSET_FOR_LEADER_EPOCH)
            serve_epochs(r->to, c);
        else if (c->api_key == API_LIST_OFFSETS)
            serve_offsets(r->to, c);
        else if (!serve_fetch(r, c))
            return;
        else if (!r->closed)
            executor_timer_stop(ex_of(r->to), &r->timer);
    }
}

static void expired(struct timer *t)
{
    struct sim_remote *r = container_of(t, struct sim_remote, timer);
    if (!list_empty(&r->calls))
        list_entry(r->calls.next, struct sim_call, link)->expired = true;
    pump(r);
}

static int remote_send_call(struct remote *base, int16_t api_key, int min_version, int max_version,
                            const void *request, int64_t timeout_ms, peer_cb cb, void *arg)
{
    struct sim_remote *r = container_of(base, struct sim_remote, base);
    const struct api_desc *api = api_find(api_key);
    struct sim_call *c = calloc(1, sizeof(*c));
    assert_int_equal(min_version, max_version);
    c->api_key = api_key;
    c->version = max_version;
    c->cb = cb;
    c->arg = arg;
    c->bytes = c->answer = WRITER_INIT;
    arena_init(&c->arena, 0);
    msg_encode(api->request, max_version, &c->bytes, request);
    assert_false(c->bytes.unsupported);
    struct reader in = reader_of(c->bytes.buf.p, c->bytes.buf.len);
    c->request = arena_calloc(&c->arena, 1, api->request->body->size);
    assert_int_equal(msg_decode(api->request, max_version, &in, &c->arena, c->request), 0);
    list_push_back(&r->calls, &c->link);
    pump(r);
    return 0;
}

static void remote_close_calls(struct remote *base)
{
    struct sim_remote *r = container_of(base, struct sim_remote, base);
    r->closed = true;
    executor_timer_stop(ex_of(r->to), &r->timer);
    list_remove(&r->link);
    while (!list_empty(&r->calls))
        finish(list_entry(r->calls.next, struct sim_call, link), -ECANCELED, NULL);
    pump(r);
}

static struct remote *open_remote(void *arg, struct str host, int port, const char *client_id,
                                  int64_t timeout_ms)
{
    static const struct remote_ops ops = {remote_send_call, remote_close_calls};
    struct sim_node *from = arg;
    struct sim_remote *r = calloc(1, sizeof(*r));
    r->base.ops = &ops;
    r->to = &from->net->nodes[(port - 9001) % 100];
    r->moves = (port - 9001) / 100;
    list_init(&r->calls);
    task_init(&r->task, serve);
    timer_init(&r->timer, expired);
    list_push_back(&r->to->remotes, &r->link);
    return &r->base;
}

/* ---- places ---- */

static bool place_open(void *arg, const char *name, struct fetch_place *out)
{
    struct sim_node *n = arg;
    n->places++;
    *out = (struct fetch_place){ex_of(n), {open_remote, n}};
    return true;
}

static void place_close(void *arg, struct fetch_place place)
{
    ((struct sim_node *)arg)->places_closed++;
}

static int64_t broker_epoch(void *arg)
{
    return 1000 + ((struct sim_node *)arg)->id;
}

static bool may_fetch(void *arg, struct topic_partition tp, bool behind)
{
    return ((struct sim_node *)arg)->rate_held <= 0 || !behind;
}

/* ---- the whole ---- */

void sim_net_open(struct sim_net *net, int nodes, int ibp)
{
    memset(net, 0, sizeof(*net));
    net->n = nodes;
    net->ibp = ibp ? ibp : IBP_DEFAULT;
    logline_set_level(getenv("SIM_LOG") ? LOGLINE_DEBUG : LOGLINE_FATAL);
    for (int i = 0; i < nodes; i++) {
        struct sim_node *n = &net->nodes[i];
        n->net = net;
        n->id = n->b.id = i + 1;
        n->b.shares = i ? &net->nodes[0].b : NULL;
        list_init(&n->remotes);
        struct fetchers_options o = {.settings = {.broker_id = n->id,
                                                  .ibp = net->ibp,
                                                  .max_bytes = 1 << 20,
                                                  .response_max_bytes = 10 << 20,
                                                  .min_bytes = 1,
                                                  .wait_max_ms = 500,
                                                  .backoff_ms = 1000,
                                                  .timeout_ms = 30000,
                                                  .broker_epoch = broker_epoch,
                                                  .may_fetch = may_fetch,
                                                  .arg = n},
                                     .places = {place_open, place_close, n},
                                     .per_source = 1};
        n->b.fetchers = fetchers_new(&o);
        bench_open_as(&n->b, 1);
    }
}

void sim_net_close(struct sim_net *net)
{
    for (int i = 0; i < net->n; i++)
        fetchers_stop(net->nodes[i].b.fetchers);
    sim_net_drain(net);
    for (int i = net->n - 1; i >= 0; i--) {
        struct sim_node *n = &net->nodes[i];
        assert_int_equal(n->places, n->places_closed);
        bench_close(&n->b);
        fetchers_free(n->b.fetchers);
    }
}

void sim_net_lead(struct sim_net *net, int32_t number, int32_t leader, int32_t leader_epoch,
                  int32_t partition_epoch, uint8_t topic_id)
{
    static const int32_t ids[] = {1, 2, 3};
    for (int i = 0; i < net->n; i++) {
        struct bench *b = &net->nodes[i].b;
        if (topic_id)
            bench_metadata_ids(b, "t", topic_id);
        enum kerr e = bench_lead(b, "t", number,
                                 (struct lead){.leader = leader,
                                               .leader_epoch = leader_epoch,
                                               .partition_epoch = partition_epoch,
                                               .isr = ids,
                                               .isr_n = net->n,
                                               .replicas = ids,
                                               .replicas_n = net->n,
                                               .is_new = true,
                                               .id = {{topic_id}}});
        assert_int_equal(e, KERR_NONE);
    }
}

void sim_net_drain(struct sim_net *net)
{
    sim_executor_drain(net->nodes[0].b.sim);
}

void sim_net_advance(struct sim_net *net, int64_t ms)
{
    sim_executor_advance(net->nodes[0].b.sim, ms);
}

int sim_net_release(struct sim_net *net, int32_t node)
{
    struct sim_node *n = &net->nodes[node - 1];
    int arrived = 0;
    n->hold = false;
    list_each_safe (it, &n->remotes) {
        struct sim_remote *r = list_entry(it, struct sim_remote, link);
        struct sim_call *c =
            list_empty(&r->calls) ? NULL : list_entry(r->calls.next, struct sim_call, link);
        if (!c || !c->held)
            continue;
        arrived++;
        arrive(c);
        if (!r->closed)
            pump(r);
    }
    return arrived;
}

struct partition *sim_net_partition(struct sim_net *net, int32_t node, int32_t number)
{
    enum kerr why;
    struct partition *p =
        replica_manager_find(net->nodes[node - 1].b.m, bench_tp("t", number), &why);
    assert_non_null(p);
    return p;
}

void sim_net_append(struct sim_net *net, int32_t node, int32_t number, int records)
{
    struct partition *p = sim_net_partition(net, node, number);
    assert_int_equal(bench_append(&net->nodes[node - 1].b, p, records, 1, NULL), KERR_NONE);
    partition_unref(p);
    list_each (it, &net->nodes[node - 1].remotes)
        if (list_entry(it, struct sim_remote, link)->waiting)
            pump(list_entry(it, struct sim_remote, link));
}

static struct log *log_of(struct sim_net *net, int32_t node, int32_t number)
{
    struct log *log = log_manager_find(net->nodes[node - 1].b.logs, bench_tp("t", number));
    assert_non_null(log);
    return log;
}

int64_t sim_net_end(struct sim_net *net, int32_t node, int32_t number)
{
    struct log *log = log_of(net, node, number);
    int64_t end = log_end_offset(log);
    log_unref(log);
    return end;
}

int64_t sim_net_hw(struct sim_net *net, int32_t node, int32_t number)
{
    struct log *log = log_of(net, node, number);
    int64_t hw = log_high_watermark(log);
    log_unref(log);
    return hw;
}

static uint8_t *bytes_of(struct sim_net *net, int32_t node, int32_t number, uint32_t *len)
{
    struct log *log = log_of(net, node, number);
    struct log_slice s;
    assert_int_equal(
        log_read(log, log_start_offset(log), 1 << 30, log_end_offset(log), true, false, &s),
        KERR_NONE);
    uint8_t *p = malloc(s.len + 1);
    *len = s.len;
    if (s.len)
        assert_int_equal(file_pread(s.file, p, s.len, s.pos), s.len);
    file_unref(s.file);
    log_unref(log);
    return p;
}

bool sim_net_same(struct sim_net *net, int32_t a, int32_t b, int32_t number)
{
    uint32_t n, m;
    uint8_t *x = bytes_of(net, a, number, &n), *y = bytes_of(net, b, number, &m);
    bool same = n == m && memcmp(x, y, n) == 0 &&
                sim_net_end(net, a, number) == sim_net_end(net, b, number);
    free(x);
    free(y);
    return same;
}
