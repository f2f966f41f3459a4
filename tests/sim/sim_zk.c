/* sim_zk.c - see sim_zk.h. */
#include "sim_zk.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#include "sim_net.h"

enum { WATCH_NODE, WATCH_CHILDREN };
enum op_type { OP_CREATE, OP_SET, OP_DELETE, OP_GET, OP_EXISTS, OP_CHILDREN, OP_MULTI };
/* Numbers of the protocol, which zoo_op_t carries. */
enum { PROTO_CREATE = 1, PROTO_DELETE = 2, PROTO_SET = 5, PROTO_CHECK = 13 };

struct watch {
    struct list link;
    char *path;
    int kind;
};

struct session {
    struct list link;
    int64_t id;
    int64_t timeout;         /* ns */
    int64_t away_since;      /* no connection since; -1: has one */
    struct list watches;     /* of struct watch */
    struct list missed;      /* of struct message: events while it was away */
    struct _zhandle *handle; /* its connection's other end; NULL: none */
    uint64_t connection;     /* counts them */
    struct sim_host *host;
    bool over;
};

/* From the server to the library, or from the library to itself. */
enum message_type { MESSAGE_ANSWER, MESSAGE_EVENT, MESSAGE_SESSION };
struct message {
    struct list link;
    enum message_type type;
    int event, state; /* EVENT, SESSION */
    char *path;
    struct call *call; /* ANSWER */
    int rc;
    /* what the server says */
    char *value;
    int value_len;
    struct Stat stat;
    struct String_vector names;
    bool has_stat;
};

struct part { /* one operation, copied when it is sent */
    int type;
    char *path, *data;
    int data_len, version, flags;
};

struct call {
    struct list link; /* the handle's, in order */
    enum op_type type;
    struct _zhandle *zh;
    uint64_t connection;
    struct part *parts;
    int parts_n;
    bool watch;
    const void *completion;
    const void *data;
    /* multi: the caller's memory, filled when the answer is handed over */
    const zoo_op_t *ops;
    zoo_op_result_t *results;
    /* what the server did */
    int *codes;
    char **made;
    struct Stat *stats;
};

struct _zhandle {
    struct list link; /* while it is open */
    struct sim_host *host;
    watcher_fn watcher;
    void *context;
    int timeout_ms;
    clientid_t id;
    int state;
    bool connected, closing, over;
    uint64_t connection;
    struct session *session;
    struct list calls; /* struct call, sent and not answered */
    struct list inbox; /* struct message, for the completion thread */
    struct fiber *completions;
    int64_t last_out, last_in; /* order of what is on its way */
};

static struct zk {
    struct tree tree;
    struct list sessions, handles;
    int64_t next_session, zxid;
    uint64_t changes, expired;
} Z;

const int ZOO_PERSISTENT = 0;
const int ZOO_EPHEMERAL = 1;
const int ZOO_SEQUENCE = 2;
const int ZOO_EXPIRED_SESSION_STATE = -112;
const int ZOO_AUTH_FAILED_STATE = -113;
const int ZOO_CONNECTING_STATE = 1;
const int ZOO_CONNECTED_STATE = 3;
const int ZOO_CREATED_EVENT = 1;
const int ZOO_DELETED_EVENT = 2;
const int ZOO_CHANGED_EVENT = 3;
const int ZOO_CHILD_EVENT = 4;
const int ZOO_SESSION_EVENT = -1;

void sim_zk_init(void)
{
    tree_init(&Z.tree);
    list_init(&Z.sessions);
    list_init(&Z.handles);
    Z.next_session = 0x1000;
}

const struct tree *sim_zk_tree(void)
{
    return &Z.tree;
}

struct bytes sim_zk_get(const char *path, int32_t *version)
{
    const struct tree_node *n = tree_find(&Z.tree, path);
    if (!n)
        return BYTES_NULL;
    if (version)
        *version = n->version;
    return (struct bytes){n->data, n->data_len};
}

uint64_t sim_zk_changes(void)
{
    return Z.changes;
}

uint64_t sim_zk_expired(void)
{
    return Z.expired;
}

/* ---- what goes to a handle, in order ---- */

struct carried {
    struct session *s;
    struct _zhandle *zh;
    uint64_t connection;
    struct message *m;
};

static void message_free(struct message *m)
{
    free(m->path);
    free(m->value);
    for (int i = 0; i < m->names.count; i++)
        free(m->names.data[i]);
    free(m->names.data);
    free(m);
}

static void hand_over(struct _zhandle *zh, struct message *m)
{
    if (zh->over)
        return message_free(m);
    list_push_back(&zh->inbox, &m->link);
    fiber_wake_all(zh->host, zh);
}

static void send_event(struct session *s, struct message *m);

static void carried_in(void *arg)
{
    struct carried *c = arg;
    if (sim_net_is_cut(SIM_ZK, c->zh->host->id) && c->zh->connected &&
        c->zh->connection == c->connection) { /* sent again and again */
        sim_after(100 * SIM_MS, c->zh->host, carried_in, c);
        return;
    }
    if (c->zh->connected && c->zh->connection == c->connection)
        hand_over(c->zh, c->m);
    else if (c->m->type == MESSAGE_EVENT && !c->s->over) /* its watch is set again, and fires */
        send_event(c->s, c->m);
    else
        message_free(c->m);
    free(c);
}

static void send_in(struct session *s, struct message *m)
{
    struct _zhandle *zh = s->handle;
    struct carried *c = malloc(sizeof(*c));
    int64_t due = sim_now() + sim_net_delay();
    if (due <= zh->last_in)
        due = zh->last_in + 1;
    zh->last_in = due;
    *c = (struct carried){s, zh, s->connection, m};
    sim_after(due - sim_now(), zh->host, carried_in, c);
}

/* At once, or when its client is back. */
static void send_event(struct session *s, struct message *m)
{
    if (s->handle)
        send_in(s, m);
    else
        list_push_back(&s->missed, &m->link);
}

static struct message *message_new(enum message_type type)
{
    struct message *m = calloc(1, sizeof(*m));
    m->type = type;
    return m;
}

/* ---- watches ---- */

static void watch_free(struct watch *w)
{
    list_remove(&w->link);
    free(w->path);
    free(w);
}

static void arm(struct session *s, const char *path, int kind)
{
    list_each (it, &s->watches) {
        struct watch *w = list_entry(it, struct watch, link);
        if (w->kind == kind && strcmp(w->path, path) == 0)
            return;
    }
    struct watch *w = calloc(1, sizeof(*w));
    w->path = strdup(path);
    w->kind = kind;
    list_push_back(&s->watches, &w->link);
}

static void fire(const char *path, int kind, int event)
{
    list_each (it, &Z.sessions) {
        struct session *s = list_entry(it, struct session, link);
        list_each_safe (at, &s->watches) {
            struct watch *w = list_entry(at, struct watch, link);
            if (w->kind != kind || strcmp(w->path, path) != 0)
                continue;
            watch_free(w);
            struct message *m = message_new(MESSAGE_EVENT);
            m->event = event;
            m->state = ZOO_CONNECTED_STATE;
            m->path = strdup(path);
            send_event(s, m);
        }
    }
}

static void fire_parent(const char *path)
{
    char parent[TREE_PATH_MAX];
    snprintf(parent, sizeof(parent), "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash == parent)
        slash[1] = '\0';
    else
        *slash = '\0';
    fire(parent, WATCH_CHILDREN, ZOO_CHILD_EVENT);
}

/* ---- requests at the server ---- */

static int code_of(int status)
{
    switch (status) {
    case 0:
        return ZOK;
    case -ENOENT:
        return ZNONODE;
    case -EEXIST:
        return ZNODEEXISTS;
    case -ENOTEMPTY:
        return ZNOTEMPTY;
    case STORE_BAD_VERSION:
        return ZBADVERSION;
    default:
        return ZBADARGUMENTS;
    }
}

static void fill_stat(const struct tree_node *n, struct Stat *st)
{
    struct store_stat s;
    tree_stat(n, &s);
    *st = (struct Stat){.czxid = s.czxid,
                        .mzxid = s.mzxid,
                        .ctime = s.ctime_ms,
                        .mtime = s.mtime_ms,
                        .version = s.version,
                        .cversion = (int32_t)n->made,
                        .ephemeralOwner = s.owner,
                        .dataLength = n->data_len > 0 ? n->data_len : 0,
                        .numChildren = s.children_n,
                        .pzxid = s.mzxid};
}

static int apply_part(struct tree_txn *x, struct session *s, struct part *p, char **made,
                      struct Stat *st)
{
    struct bytes data = {(const uint8_t *)p->data, p->data_len};
    struct tree_node *n = NULL;
    int rc = 0;
    if (p->type == PROTO_CREATE) {
        rc = tree_create(x, p->path, data, p->flags & 1 ? s->id : 0, p->flags & 2, &n);
        if (!rc) {
            char path[TREE_PATH_MAX + 16];
            tree_path(n, path, sizeof(path));
            *made = strdup(path);
        }
    } else if (p->type == PROTO_SET) {
        rc = tree_set(x, p->path, data, p->version, &n);
    } else if (p->type == PROTO_DELETE) {
        rc = tree_delete(x, p->path, p->version);
    } else {
        rc = tree_verify(&Z.tree, p->path, p->version);
    }
    if (!rc && n)
        fill_stat(n, st);
    return code_of(rc);
}

static void tell_part(const struct part *p, const char *made)
{
    if (p->type == PROTO_CREATE) {
        fire(made, WATCH_NODE, ZOO_CREATED_EVENT);
        fire_parent(made);
    } else if (p->type == PROTO_SET) {
        fire(p->path, WATCH_NODE, ZOO_CHANGED_EVENT);
    } else if (p->type == PROTO_DELETE) {
        fire(p->path, WATCH_NODE, ZOO_DELETED_EVENT);
        fire(p->path, WATCH_CHILDREN, ZOO_DELETED_EVENT);
        fire_parent(p->path);
    }
}

/* All or nothing; the code of the first that failed. */
static int apply_writes(struct session *s, struct call *c)
{
    struct tree_txn x;
    int rc = ZOK;
    tree_begin(&x, &Z.tree, ++Z.zxid, sim_wall_ms());
    for (int i = 0; i < c->parts_n && rc == ZOK; i++) {
        rc = apply_part(&x, s, &c->parts[i], &c->made[i], &c->stats[i]);
        if (rc != ZOK)
            for (int k = 0; k < c->parts_n; k++)
                c->codes[k] = k < i ? ZOK : k == i ? rc : ZRUNTIMEINCONSISTENCY;
    }
    if (rc != ZOK) {
        tree_rollback(&x);
        return rc;
    }
    tree_commit(&x);
    Z.changes++;
    for (int i = 0; i < c->parts_n; i++)
        tell_part(&c->parts[i], c->made[i]);
    return rc;
}

static int apply_read(struct session *s, struct call *c, struct message *m)
{
    const char *path = c->parts[0].path;
    const struct tree_node *n = tree_find(&Z.tree, path);
    if (c->watch && (n || c->type == OP_EXISTS))
        arm(s, path, c->type == OP_CHILDREN ? WATCH_CHILDREN : WATCH_NODE);
    if (!n)
        return ZNONODE;
    fill_stat(n, &m->stat);
    m->has_stat = true;
    if (c->type == OP_GET) {
        m->value_len = n->data_len;
        m->value = malloc((size_t)(n->data_len > 0 ? n->data_len : 0) + 1);
        if (n->data_len > 0)
            memcpy(m->value, n->data, (size_t)n->data_len);
    } else if (c->type == OP_CHILDREN) {
        m->names.data = calloc(n->children.n + 1, sizeof(char *));
        list_each (it, &n->ages)
            m->names.data[m->names.count++] =
                strdup(list_entry(it, struct tree_node, by_age)->name);
    }
    return ZOK;
}

static void arrived(void *arg)
{
    struct call *c = arg;
    struct _zhandle *zh = c->zh;
    if (!zh->connected || zh->connection != c->connection)
        return; /* lost on its way: the handle has told */
    if (sim_net_is_cut(zh->host->id, SIM_ZK)) {
        sim_after(100 * SIM_MS, zh->host, arrived, c);
        return;
    }
    struct session *s = zh->session;
    if (!s || s->over || s->handle != zh)
        return;
    struct message *m = message_new(MESSAGE_ANSWER);
    m->call = c;
    sim_trace((uint64_t)c->type);
    if (c->type >= OP_GET && c->type <= OP_CHILDREN)
        m->rc = apply_read(s, c, m);
    else
        m->rc = apply_writes(s, c);
    if (m->rc == ZOK && c->type <= OP_SET) {
        m->stat = c->stats[0];
        m->has_stat = true;
        m->value = c->made[0] ? strdup(c->made[0]) : NULL;
    }
    send_in(s, m);
}

/* ---- sessions ---- */

static void delete_node(const char *path)
{
    struct tree_txn x;
    struct part p = {.type = PROTO_DELETE, .path = (char *)path};
    tree_begin(&x, &Z.tree, ++Z.zxid, sim_wall_ms());
    if (tree_delete(&x, path, -1) == 0) {
        tree_commit(&x);
        Z.changes++;
        tell_part(&p, NULL);
    } else {
        tree_rollback(&x);
    }
}

struct owned {
    int64_t owner;
    char *paths[64];
    int n;
};

static int note_owned(void *arg, const struct tree_node *n)
{
    struct owned *o = arg;
    char path[TREE_PATH_MAX];
    if (n->owner == o->owner && o->n < 64 && tree_path(n, path, sizeof(path)))
        o->paths[o->n++] = strdup(path);
    return 0;
}

static void session_end(struct session *s)
{
    struct owned o = {.owner = s->id};
    s->over = true;
    while (!list_empty(&s->watches))
        watch_free(list_entry(s->watches.next, struct watch, link));
    struct list *it;
    while ((it = list_pop(&s->missed)))
        message_free(list_entry(it, struct message, link));
    list_remove(&s->link);
    tree_each(&Z.tree, note_owned, &o);
    for (int i = 0; i < o.n; i++) {
        delete_node(o.paths[i]);
        free(o.paths[i]);
    }
}

static void look_at_session(void *arg)
{
    struct session *s = arg;
    if (s->over || s->away_since < 0)
        return;
    int64_t left = s->away_since + s->timeout - sim_now();
    if (left > 0) {
        sim_after(left, NULL, look_at_session, s);
        return;
    }
    sim_say("zk: session 0x%llx of %s has expired", (unsigned long long)s->id, s->host->name);
    Z.expired++;
    session_end(s);
}

/* The server has lost sight of its client. */
static void session_away(struct session *s)
{
    if (s->over || s->away_since >= 0)
        return;
    s->away_since = sim_now();
    s->handle = NULL;
    sim_after(s->timeout, NULL, look_at_session, s);
}

/* ---- connections of a handle ---- */

static void try_connect(void *arg);

static void tell_state(struct _zhandle *zh, int state)
{
    struct message *m = message_new(MESSAGE_SESSION);
    zh->state = state;
    m->event = ZOO_SESSION_EVENT;
    m->state = state;
    hand_over(zh, m);
}

/* What was under way ends, in order; then the state is told. */
static void lose_connection(struct _zhandle *zh)
{
    if (!zh->connected || zh->over)
        return;
    zh->connected = false;
    zh->connection++;
    if (zh->session)
        session_away(zh->session);
    list_each (it, &zh->calls) {
        struct message *m = message_new(MESSAGE_ANSWER);
        m->call = list_entry(it, struct call, link);
        m->rc = ZCONNECTIONLOSS;
        /* an answer that is in the inbox already stands: the call is off the list then */
        hand_over(zh, m);
    }
    tell_state(zh, ZOO_CONNECTING_STATE);
    sim_after(sim_between(10 * SIM_MS, 1000 * SIM_MS), zh->host, try_connect, zh);
}

/* Heartbeats: each end gives the other up after a while without any. */
static void heartbeat(void *arg)
{
    struct _zhandle *zh = arg;
    if (zh->over || !zh->connected)
        return;
    bool cut = sim_net_is_cut(SIM_ZK, zh->host->id) || sim_net_is_cut(zh->host->id, SIM_ZK);
    if (cut)
        lose_connection(zh);
    else
        sim_after(zh->timeout_ms / 3 * SIM_MS, zh->host, heartbeat, zh);
}

static void try_connect(void *arg)
{
    struct _zhandle *zh = arg;
    if (zh->over || zh->connected || zh->state == ZOO_EXPIRED_SESSION_STATE)
        return;
    if (sim_net_is_cut(SIM_ZK, zh->host->id) || sim_net_is_cut(zh->host->id, SIM_ZK)) {
        sim_after(sim_between(100 * SIM_MS, 1000 * SIM_MS), zh->host, try_connect, zh);
        return;
    }
    struct session *s = zh->session;
    if (s && s->over) {
        tell_state(zh, ZOO_EXPIRED_SESSION_STATE);
        return;
    }
    if (!s) {
        s = calloc(1, sizeof(*s)); /* left at its end: events hold it */
        s->id = ++Z.next_session;
        s->timeout = zh->timeout_ms * SIM_MS;
        s->host = zh->host;
        list_init(&s->watches);
        list_init(&s->missed);
        list_push_back(&Z.sessions, &s->link);
        zh->session = s;
        zh->id.client_id = s->id;
    }
    s->away_since = -1;
    s->handle = zh;
    zh->connected = true;
    s->connection = ++zh->connection;
    tell_state(zh, ZOO_CONNECTED_STATE);
    struct list *it;
    while ((it = list_pop(&s->missed)))
        send_in(s, list_entry(it, struct message, link));
    sim_after(zh->timeout_ms / 3 * SIM_MS, zh->host, heartbeat, zh);
}

void sim_zk_disconnect(struct sim_host *h)
{
    list_each (it, &Z.handles) {
        struct _zhandle *zh = list_entry(it, struct _zhandle, link);
        if (!h || zh->host == h)
            lose_connection(zh);
    }
}

void sim_zk_expire(struct sim_host *h)
{
    list_each_safe (it, &Z.sessions) {
        struct session *s = list_entry(it, struct session, link);
        if (s->host != h)
            continue;
        Z.expired++;
        session_end(s);
    }
    sim_zk_disconnect(h);
}

void sim_zk_host_died(struct sim_host *h)
{
    list_each_safe (it, &Z.handles) {
        struct _zhandle *zh = list_entry(it, struct _zhandle, link);
        if (zh->host != h)
            continue;
        zh->over = true;
        zh->connected = false;
        list_remove(&zh->link);
        if (zh->session)
            session_away(zh->session);
    }
}

/* It has slept: whether its connection is still there it finds out a little later. */
static void woke_up(void *arg)
{
    struct _zhandle *zh = arg;
    if (!zh->over && zh->connected && (!zh->session || zh->session->handle != zh))
        lose_connection(zh);
}

void sim_zk_host_paused(struct sim_host *h, bool paused)
{
    list_each (it, &Z.handles) {
        struct _zhandle *zh = list_entry(it, struct _zhandle, link);
        if (zh->host != h)
            continue;
        if (paused && zh->session)
            session_away(zh->session);
        else if (!paused)
            sim_after(sim_between(0, 500 * SIM_MS), h, woke_up, zh);
    }
}

/* ---- the library ---- */

static void call_free(struct call *c)
{
    for (int i = 0; i < c->parts_n; i++) {
        free(c->parts[i].path);
        free(c->parts[i].data);
        free(c->made[i]);
    }
    free(c->parts);
    free(c->codes);
    free(c->made);
    free(c->stats);
}

static void fill_results(struct call *c, int rc)
{
    for (int i = 0; i < c->parts_n; i++) {
        c->results[i].err = rc == ZOK ? ZOK : rc == ZCONNECTIONLOSS ? rc : c->codes[i];
        if (rc != ZOK)
            continue;
        if (c->ops[i].type == PROTO_CREATE)
            snprintf(c->ops[i].create_op.buf, (size_t)c->ops[i].create_op.buflen, "%s", c->made[i]);
        else if (c->ops[i].type == PROTO_SET)
            *c->ops[i].set_op.stat = c->stats[i];
    }
}

static void complete(struct message *m)
{
    struct call *c = m->call;
    struct Stat *st = m->has_stat ? &m->stat : NULL;
    list_remove(&c->link);
    switch (c->type) {
    case OP_CREATE:
        ((string_stat_completion_t)c->completion)(m->rc, m->value, st, c->data);
        break;
    case OP_SET:
    case OP_EXISTS:
        ((stat_completion_t)c->completion)(m->rc, st, c->data);
        break;
    case OP_DELETE:
        ((void_completion_t)c->completion)(m->rc, c->data);
        break;
    case OP_GET:
        ((data_completion_t)c->completion)(m->rc, m->value, m->rc == ZOK ? m->value_len : -1, st,
                                           c->data);
        break;
    case OP_CHILDREN:
        ((strings_stat_completion_t)c->completion)(m->rc, m->rc == ZOK ? &m->names : NULL, st,
                                                   c->data);
        break;
    case OP_MULTI:
        fill_results(c, m->rc);
        ((void_completion_t)c->completion)(m->rc, c->data);
        break;
    }
    call_free(c); /* its memory stays: something of it may be on its way */
}

static bool still_waits(const struct _zhandle *zh, const struct call *c)
{
    list_each (it, &zh->calls)
        if (list_entry(it, struct call, link) == c)
            return true;
    return false;
}

static void *completions(void *arg)
{
    struct _zhandle *zh = arg;
    for (;;) {
        while (list_empty(&zh->inbox) && !zh->closing)
            fiber_block(zh);
        if (zh->closing)
            return NULL;
        struct message *m = list_entry(list_pop(&zh->inbox), struct message, link);
        if (m->type != MESSAGE_ANSWER)
            zh->watcher(zh, m->event, m->state, m->path ? m->path : "", zh->context);
        else if (still_waits(zh, m->call))
            complete(m);
        message_free(m);
    }
}

zhandle_t *zookeeper_init2(const char *host, watcher_fn fn, int recv_timeout,
                           const clientid_t *clientid, void *context, int flags,
                           log_callback_fn log_callback)
{
    (void)host, (void)clientid, (void)flags, (void)log_callback;
    struct _zhandle *zh = calloc(1, sizeof(*zh)); /* left at its end: events hold it */
    zh->host = sim_here();
    zh->watcher = fn;
    zh->context = context;
    zh->timeout_ms = recv_timeout;
    zh->state = ZOO_CONNECTING_STATE;
    list_init(&zh->calls);
    list_init(&zh->inbox);
    list_push_back(&Z.handles, &zh->link);
    zh->completions = fiber_start(zh->host, "zk-completion", completions, zh);
    sim_after(sim_net_delay(), zh->host, try_connect, zh);
    return zh;
}

int zookeeper_close(zhandle_t *zh)
{
    zh->closing = true;
    fiber_wake_all(zh->host, zh);
    fiber_join(zh->completions);
    zh->over = true;
    list_remove(&zh->link);
    if (zh->session && !zh->session->over && zh->connected)
        session_end(zh->session);
    else if (zh->session)
        session_away(zh->session);
    zh->connected = false;
    zh->connection++;
    while (!list_empty(&zh->calls)) {
        struct message m = {.type = MESSAGE_ANSWER, .rc = ZCLOSING};
        m.call = list_entry(zh->calls.next, struct call, link);
        complete(&m);
    }
    return ZOK;
}

const clientid_t *zoo_client_id(zhandle_t *zh)
{
    return &zh->id;
}

int zoo_recv_timeout(zhandle_t *zh)
{
    return zh->timeout_ms;
}

const char *zoo_get_current_server(zhandle_t *zh)
{
    (void)zh;
    return "zk:2181";
}

const char *zerror(int c)
{
    (void)c;
    return "error";
}

int zoo_add_auth(zhandle_t *zh, const char *scheme, const char *cert, int len,
                 void_completion_t completion, const void *data)
{
    (void)zh, (void)scheme, (void)cert, (void)len, (void)completion, (void)data;
    return ZOK;
}

void zoo_set_debug_level(ZooLogLevel level)
{
    (void)level;
}

int zoo_set_servers_resolution_delay(zhandle_t *zh, int delay_ms)
{
    (void)zh, (void)delay_ms;
    return ZOK;
}

struct sockaddr *zookeeper_get_connected_host(zhandle_t *zh, struct sockaddr *addr,
                                              socklen_t *addr_len)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(2181)};
    (void)zh;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(addr, &at, sizeof(at));
    *addr_len = sizeof(at);
    return addr;
}

/* ---- its calls ---- */

static int send_out(struct _zhandle *zh, enum op_type type, struct part *parts, int n, bool watch,
                    const void *completion, const void *data, const zoo_op_t *ops,
                    zoo_op_result_t *results)
{
    if (zh->closing || zh->state == ZOO_EXPIRED_SESSION_STATE) {
        for (int i = 0; i < n; i++) {
            free(parts[i].path);
            free(parts[i].data);
        }
        free(parts);
        return ZINVALIDSTATE;
    }
    struct call *c = calloc(1, sizeof(*c));
    *c = (struct call){.type = type,
                       .zh = zh,
                       .connection = zh->connection,
                       .parts = parts,
                       .parts_n = n,
                       .watch = watch,
                       .completion = completion,
                       .data = data,
                       .ops = ops,
                       .results = results};
    c->codes = calloc((size_t)n, sizeof(*c->codes));
    c->made = calloc((size_t)n, sizeof(*c->made));
    c->stats = calloc((size_t)n, sizeof(*c->stats));
    list_push_back(&zh->calls, &c->link);
    if (!zh->connected) {
        struct message *m = message_new(MESSAGE_ANSWER);
        m->call = c;
        m->rc = ZCONNECTIONLOSS;
        hand_over(zh, m);
        return ZOK;
    }
    int64_t due = sim_now() + sim_net_delay();
    if (due <= zh->last_out)
        due = zh->last_out + 1;
    zh->last_out = due;
    sim_after(due - sim_now(), zh->host, arrived, c);
    return ZOK;
}

static struct part part_of(int type, const char *path, const char *data, int data_len, int version,
                           int flags)
{
    struct part p = {.type = type,
                     .path = strdup(path),
                     .data_len = data ? data_len : -1,
                     .version = version,
                     .flags = flags};
    if (data && data_len >= 0) {
        p.data = malloc((size_t)data_len + 1);
        memcpy(p.data, data, (size_t)data_len);
    }
    return p;
}

static struct part *one(struct part p)
{
    struct part *copy = malloc(sizeof(p));
    *copy = p;
    return copy;
}

int zoo_acreate2(zhandle_t *zh, const char *path, const char *value, int valuelen,
                 const struct ACL_vector *acl, int mode, string_stat_completion_t completion,
                 const void *data)
{
    (void)acl;
    return send_out(zh, OP_CREATE, one(part_of(PROTO_CREATE, path, value, valuelen, -1, mode)), 1,
                    false, completion, data, NULL, NULL);
}

int zoo_aset(zhandle_t *zh, const char *path, const char *buffer, int buflen, int version,
             stat_completion_t completion, const void *data)
{
    return send_out(zh, OP_SET, one(part_of(PROTO_SET, path, buffer, buflen, version, 0)), 1, false,
                    completion, data, NULL, NULL);
}

int zoo_adelete(zhandle_t *zh, const char *path, int version, void_completion_t completion,
                const void *data)
{
    return send_out(zh, OP_DELETE, one(part_of(PROTO_DELETE, path, NULL, 0, version, 0)), 1, false,
                    completion, data, NULL, NULL);
}

static int read_out(zhandle_t *zh, int kind, const char *path, watcher_fn watcher,
                    const void *completion, const void *data)
{
    return send_out(zh, kind, one(part_of(0, path, NULL, 0, 0, 0)), 1, watcher != NULL, completion,
                    data, NULL, NULL);
}

int zoo_awget(zhandle_t *zh, const char *path, watcher_fn watcher, void *ctx,
              data_completion_t completion, const void *data)
{
    (void)ctx;
    return read_out(zh, OP_GET, path, watcher, completion, data);
}

int zoo_awexists(zhandle_t *zh, const char *path, watcher_fn watcher, void *ctx,
                 stat_completion_t completion, const void *data)
{
    (void)ctx;
    return read_out(zh, OP_EXISTS, path, watcher, completion, data);
}

int zoo_awget_children2(zhandle_t *zh, const char *path, watcher_fn watcher, void *ctx,
                        strings_stat_completion_t completion, const void *data)
{
    (void)ctx;
    return read_out(zh, OP_CHILDREN, path, watcher, completion, data);
}

void zoo_create_op_init(zoo_op_t *op, const char *path, const char *value, int valuelen,
                        const struct ACL_vector *acl, int mode, char *path_buffer,
                        int path_buffer_len)
{
    *op = (zoo_op_t){.type = PROTO_CREATE};
    op->create_op.path = path;
    op->create_op.data = value;
    op->create_op.datalen = valuelen;
    op->create_op.acl = acl;
    op->create_op.flags = mode;
    op->create_op.buf = path_buffer;
    op->create_op.buflen = path_buffer_len;
}

void zoo_delete_op_init(zoo_op_t *op, const char *path, int version)
{
    *op = (zoo_op_t){.type = PROTO_DELETE};
    op->delete_op.path = path;
    op->delete_op.version = version;
}

void zoo_set_op_init(zoo_op_t *op, const char *path, const char *buffer, int buflen, int version,
                     struct Stat *stat)
{
    *op = (zoo_op_t){.type = PROTO_SET};
    op->set_op.path = path;
    op->set_op.data = buffer;
    op->set_op.datalen = buflen;
    op->set_op.version = version;
    op->set_op.stat = stat;
}

void zoo_check_op_init(zoo_op_t *op, const char *path, int version)
{
    *op = (zoo_op_t){.type = PROTO_CHECK};
    op->check_op.path = path;
    op->check_op.version = version;
}

static struct part part_of_op(const zoo_op_t *op)
{
    switch (op->type) {
    case PROTO_CREATE:
        return part_of(op->type, op->create_op.path, op->create_op.data, op->create_op.datalen, -1,
                       op->create_op.flags);
    case PROTO_SET:
        return part_of(op->type, op->set_op.path, op->set_op.data, op->set_op.datalen,
                       op->set_op.version, 0);
    case PROTO_DELETE:
        return part_of(op->type, op->delete_op.path, NULL, 0, op->delete_op.version, 0);
    default:
        return part_of(op->type, op->check_op.path, NULL, 0, op->check_op.version, 0);
    }
}

int zoo_amulti(zhandle_t *zh, int count, const zoo_op_t *ops, zoo_op_result_t *results,
               void_completion_t completion, const void *data)
{
    struct part *parts = calloc((size_t)count, sizeof(*parts));
    for (int i = 0; i < count; i++)
        parts[i] = part_of_op(&ops[i]);
    return send_out(zh, OP_MULTI, parts, count, false, completion, data, ops, results);
}
