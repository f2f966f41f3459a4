/* authorizer.c - see authorizer.h.
 *
 * The ACLs are kept twice: as a table, which changes (under the lock), and as the index made of it,
 * which decides. A new index takes the place of the old one, which is freed when nobody decides by
 * it any more: whoever decides counts himself in one of a few counters, spread over threads, so
 * that it costs no shared cache line; who has published waits until he has seen each at zero. A
 * decision takes a microsecond, and waits for nothing. */
#include "server/authorizer.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl_store.h"
#include "base/hmap.h"
#include "base/logline.h"
#include "net/seldom.h"

static const char component[] = "Authorizer";

enum { COUNTERS = 32, LINE = 64 };

struct super_user {
    struct hnode node;
    char *name;
};

struct row { /* of the table */
    struct hnode node;
    struct acl_resource *r;
};

struct counter {
    atomic_int deciding;
    char rest[LINE - sizeof(atomic_int)];
};

struct authorizer {
    _Alignas(LINE) struct counter counters[COUNTERS];
    struct acl_index *_Atomic index;
    _Atomic uint64_t state; /* counts up behind each change of the index */
    struct hmap super_users;
    bool allow_everyone;
    const struct clock *clock;
    struct seldom seldom;
    pthread_mutex_t lock;
    struct hmap table; /* of struct row */
    bool changed;      /* the table, since the index was made */
};

/* ---- who is above it ---- */

static bool name_equals(const struct hnode *h, const void *key)
{
    return str_eqz(*(const struct str *)key, hmap_entry(h, struct super_user, node)->name);
}

static bool is_super(const struct authorizer *z, struct str user, uint64_t hash)
{
    return z->super_users.n && hmap_find(&z->super_users, hash, name_equals, &user);
}

static int add_super(struct authorizer *z, struct str user)
{
    uint64_t hash = hash_str(user);
    if (is_super(z, user, hash))
        return 0;
    struct super_user *u = calloc(1, sizeof(*u));
    if (u)
        u->name = str_dup(user);
    if (!u || !u->name || hmap_put(&z->super_users, &u->node, hash) != 0) {
        if (u)
            free(u->name);
        free(u);
        return -ENOMEM;
    }
    return 0;
}

static struct str trim(struct str s)
{
    while (s.len && (unsigned char)s.p[0] <= ' ')
        s = (struct str){s.p + 1, s.len - 1};
    while (s.len && (unsigned char)s.p[s.len - 1] <= ' ')
        s.len--;
    return s;
}

/* One of the list. Principals of another type than User are nobody's here. */
static int take_super(struct authorizer *z, struct str principal, char *err, size_t err_n)
{
    struct str user = acl_user_of(principal);
    if (!principal.len)
        return 0;
    if (!acl_principal_ok(principal)) {
        snprintf(err, err_n,
                 "super.users: \"%.*s\" is no principal; it must be of the form User:name, and "
                 "several are separated by ';'",
                 STR_ARG(principal));
        return -EINVAL;
    }
    if (str_is_null(user)) {
        say_warn(component, "super.users: no client has the principal %.*s, their type is User",
                 STR_ARG(principal));
        return 0;
    }
    return add_super(z, user);
}

static int take_supers(struct authorizer *z, const char *list, char *err, size_t err_n)
{
    int rc = 0;
    for (const char *at = list ? list : ""; *at && !rc;) {
        size_t n = strcspn(at, ";");
        rc = take_super(z, trim((struct str){at, (int32_t)n}), err, err_n);
        at += n + (at[n] == ';');
    }
    if (rc == -ENOMEM)
        snprintf(err, err_n, "super.users: out of memory");
    return rc;
}

/* ---- life ---- */

int authorizer_new(const struct authorizer_options *o, struct authorizer **out, char *err,
                   size_t err_n)
{
    struct authorizer *z = aligned_alloc(LINE, sizeof(*z));
    struct acl_index *none = acl_index_new(NULL, 0);
    *out = NULL;
    if (!z || !none) {
        free(z);
        acl_index_free(none);
        snprintf(err, err_n, "authorizer: out of memory");
        return -ENOMEM;
    }
    memset(z, 0, sizeof(*z));
    atomic_init(&z->index, none);
    atomic_init(&z->state, 1);
    for (int i = 0; i < COUNTERS; i++)
        atomic_init(&z->counters[i].deciding, 0);
    z->allow_everyone = o->allow_everyone;
    z->clock = o->clock;
    seldom_init(&z->seldom);
    pthread_mutex_init(&z->lock, NULL);
    hmap_init(&z->super_users);
    hmap_init(&z->table);
    int rc = take_supers(z, o->super_users, err, err_n);
    if (rc)
        authorizer_free(z);
    else
        *out = z;
    return rc;
}

void authorizer_free(struct authorizer *z)
{
    struct hnode *at;
    if (!z)
        return;
    while ((at = hmap_first(&z->super_users))) {
        struct super_user *u = hmap_entry(at, struct super_user, node);
        hmap_remove(&z->super_users, at);
        free(u->name);
        free(u);
    }
    while ((at = hmap_first(&z->table))) {
        struct row *row = hmap_entry(at, struct row, node);
        hmap_remove(&z->table, at);
        acl_resource_unref(row->r);
        free(row);
    }
    hmap_free(&z->super_users);
    hmap_free(&z->table);
    acl_index_free(atomic_load(&z->index));
    seldom_free(&z->seldom);
    pthread_mutex_destroy(&z->lock);
    free(z);
}

/* ---- the snapshot ---- */

static atomic_int *counter_of(struct authorizer *z)
{
    uint64_t thread = (uint64_t)(uintptr_t)pthread_self();
    return &z->counters[(thread * UINT64_C(0x9e3779b97f4a7c15)) >> 59].deciding;
}
_Static_assert(COUNTERS == 1 << (64 - 59), "the shift gives a counter's place");

static const struct acl_index *hold(struct authorizer *z, atomic_int **counter)
{
    *counter = counter_of(z);
    atomic_fetch_add(*counter, 1); /* before the look: who publishes then sees one of both */
    return atomic_load(&z->index);
}

static void let_go(atomic_int *counter)
{
    atomic_fetch_sub(counter, 1);
}

/* The lock is held. Each counter seen at zero once: who comes later has the new index. */
static void await_deciders(struct authorizer *z)
{
    for (int i = 0; i < COUNTERS; i++)
        while (atomic_load(&z->counters[i].deciding))
            sched_yield();
}

/* The lock is held. Nothing has changed: nothing to do. A change made here is heard of twice. */
static int publish(struct authorizer *z)
{
    if (!z->changed)
        return 0;
    struct acl_resource **all = calloc(z->table.n + 1, sizeof(*all));
    int n = 0;
    if (!all)
        return -ENOMEM;
    hmap_each (at, &z->table)
        all[n++] = hmap_entry(at, struct row, node)->r;
    struct acl_index *made = acl_index_new(all, n);
    free(all);
    if (!made)
        return -ENOMEM;
    struct acl_index *old = atomic_exchange(&z->index, made);
    atomic_fetch_add(&z->state, 1);
    z->changed = false;
    await_deciders(z);
    acl_index_free(old);
    return 0;
}

uint64_t authorizer_state(struct authorizer *z)
{
    return atomic_load(&z->state);
}

int authorizer_publish(struct authorizer *z)
{
    pthread_mutex_lock(&z->lock);
    int rc = publish(z);
    pthread_mutex_unlock(&z->lock);
    if (rc)
        say_error(component, "no memory for the ACLs as they are now: they are not in force yet");
    return rc;
}

/* ---- the table ---- */

static bool pattern_equals(const struct hnode *h, const void *key)
{
    return acl_pattern_eq(acl_resource_pattern(hmap_entry(h, struct row, node)->r), key);
}

/* The lock is held. NULL: it has no ACLs. */
static struct row *find_row(const struct authorizer *z, const struct acl_pattern *p)
{
    struct hnode *h = hmap_find(&z->table, acl_pattern_hash(p), pattern_equals, p);
    return h ? hmap_entry(h, struct row, node) : NULL;
}

/* The lock is held. Takes the resource (NULL: it has no ACLs) in the place of what there was. */
static int set_row(struct authorizer *z, const struct acl_pattern *p, struct acl_resource *r)
{
    struct row *row = find_row(z, p);
    if (row && !r) {
        hmap_remove(&z->table, &row->node);
        acl_resource_unref(row->r);
        free(row);
    } else if (row) {
        acl_resource_unref(row->r);
        row->r = r;
    } else if (r) {
        row = calloc(1, sizeof(*row));
        if (row)
            row->r = r;
        if (!row || hmap_put(&z->table, &row->node, acl_pattern_hash(p)) != 0) {
            free(row);
            acl_resource_unref(r);
            return -ENOMEM;
        }
    }
    z->changed = true;
    return 0;
}

int authorizer_put(struct authorizer *z, const struct acl_stored *now)
{
    bool has = now->status == -EBADMSG || (!now->status && now->node.n + now->node.strange_n > 0);
    int rc = 0;
    if (now->status && now->status != -ENOENT && now->status != -EBADMSG)
        return 0;
    pthread_mutex_lock(&z->lock);
    const struct row *row = find_row(z, &now->pattern);
    if (row ? !has || !acl_resource_has(row->r, now->node.entries, now->node.n) : has) {
        struct acl_resource *r =
            has ? acl_resource_new(&now->pattern, now->node.entries, now->node.n) : NULL;
        rc = has && !r ? -ENOMEM : set_row(z, &now->pattern, r);
    }
    pthread_mutex_unlock(&z->lock);
    return rc;
}

int authorizer_add(struct authorizer *z, const struct acl_binding *b)
{
    const struct acl_entry *was = NULL;
    int n = 0;
    pthread_mutex_lock(&z->lock);
    const struct row *row = find_row(z, &b->pattern);
    if (row)
        was = acl_resource_entries(row->r, &n);
    struct acl_entry *all = calloc((size_t)n + 1, sizeof(*all));
    if (all && n)
        memcpy(all, was, (size_t)n * sizeof(*all));
    if (all)
        all[n] = b->entry;
    struct acl_resource *r = all ? acl_resource_new(&b->pattern, all, n + 1) : NULL;
    int rc = r ? set_row(z, &b->pattern, r) : -ENOMEM;
    if (!rc)
        rc = publish(z);
    pthread_mutex_unlock(&z->lock);
    free(all);
    return rc;
}

/* ---- decisions ---- */

bool authorizer_would(struct authorizer *z, struct str user, struct in6_addr host,
                      enum acl_operation op, enum acl_resource_type type, struct str name)
{
    struct acl_subject who = acl_subject_of(user, host);
    atomic_int *counter;
    if (is_super(z, user, who.hash))
        return true;
    const struct acl_index *x = hold(z, &counter);
    bool yes = acl_allows(x, &who, op, type, name, z->allow_everyone);
    let_go(counter);
    return yes;
}

/* Java's text of the address, which ACLs are written with. */
static const char *host_text(const struct request *req, char out[48])
{
    struct in6_addr ip = conn_peer_ip(req->net->conn);
    if (IN6_IS_ADDR_V4MAPPED(&ip))
        return conn_peer_host(req->net->conn);
    int at = 0;
    for (int i = 0; i < 16; i += 2)
        at += snprintf(out + at, 48 - (size_t)at, i ? ":%x" : "%x",
                       ip.s6_addr[i] << 8 | ip.s6_addr[i + 1]);
    return out;
}

static void say(struct authorizer *z, const struct request *req, enum acl_operation op,
                enum acl_resource_type type, const char *kind, struct str name, bool yes)
{
    char what[512], host[48], more[64] = "";
    unsigned kept = 0;
    struct in6_addr ip = conn_peer_ip(req->net->conn);
    snprintf(what, sizeof(what),
             "Principal = User:%.*s is %s operation = %s from host = %s on resource = %s:%s:%.*s",
             STR_ARG(request_user(req)), yes ? "Allowed" : "Denied", acl_operation_name(op),
             host_text(req, host), acl_resource_name(type), kind, STR_ARG(name));
    if (yes) {
        say_debug(component, "%s for request = %s", what, req->api->name);
        return;
    }
    if (!seldom_may(&z->seldom, &ip, what, clock_mono_ms(z->clock), &kept))
        return;
    if (kept)
        snprintf(more, sizeof(more), " (and %u times before, not told)", kept);
    logline(op == ACL_CLUSTER_ACTION ? LOGLINE_WARN : LOGLINE_INFO, component,
            "%s for request = %s%s%s", what, req->api->name, more,
            op == ACL_CLUSTER_ACTION ? ": a broker's principal needs ClusterAction, or must be one "
                                       "of super.users"
                                     : "");
}

bool authorizer_decides(struct authorizer *z, const struct request *req, enum acl_operation op,
                        enum acl_resource_type type, struct str name, bool quiet)
{
    bool yes = authorizer_would(z, request_user(req), conn_peer_ip(req->net->conn), op, type, name);
    if (yes ? logline_enabled(LOGLINE_DEBUG) : !quiet)
        say(z, req, op, type, "LITERAL", name, yes);
    return yes;
}

bool authorizer_decides_any(struct authorizer *z, const struct request *req, enum acl_operation op,
                            enum acl_resource_type type)
{
    struct acl_subject who = acl_subject_of(request_user(req), conn_peer_ip(req->net->conn));
    atomic_int *counter;
    if (is_super(z, who.user, who.hash))
        return true;
    const struct acl_index *x = hold(z, &counter);
    bool yes = acl_allows_any(x, &who, op, type, z->allow_everyone);
    let_go(counter);
    if (!yes || logline_enabled(LOGLINE_DEBUG))
        say(z, req, op, type, "ANY", STR_LIT("any"), yes);
    return yes;
}

uint32_t authorizer_allowed(struct authorizer *z, const struct request *req,
                            enum acl_resource_type type, struct str name)
{
    struct acl_subject who = acl_subject_of(request_user(req), conn_peer_ip(req->net->conn));
    atomic_int *counter;
    if (is_super(z, who.user, who.hash))
        return acl_operations_of(type);
    const struct acl_index *x = hold(z, &counter);
    uint32_t bits = acl_allowed_operations(x, &who, type, name, z->allow_everyone);
    let_go(counter);
    return bits;
}

/* ---- what there is ---- */

static int by_pattern(const void *a, const void *b)
{
    const struct acl_pattern *x = acl_resource_pattern(*(struct acl_resource *const *)a);
    const struct acl_pattern *y = acl_resource_pattern(*(struct acl_resource *const *)b);
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    int order = str_cmp(x->name, y->name);
    return order ? order : (int)x->kind - (int)y->kind;
}

/* Those of the table that fit, in order. The lock is held. NULL without memory. */
static struct acl_resource **fitting(struct authorizer *z, const struct acl_filter *f,
                                     struct arena *a, int *n)
{
    struct acl_resource **all = arena_array(a, struct acl_resource *, z->table.n);
    *n = 0;
    if (!all)
        return NULL;
    hmap_each (at, &z->table) {
        struct acl_resource *r = hmap_entry(at, struct row, node)->r;
        if (acl_filter_matches_pattern(f, acl_resource_pattern(r)))
            all[(*n)++] = r;
    }
    if (*n)
        qsort(all, (size_t)*n, sizeof(struct acl_resource *), by_pattern);
    return all;
}

static int copy_binding(const struct acl_pattern *p, const struct acl_entry *e, struct arena *a,
                        struct acl_binding *out)
{
    *out = (struct acl_binding){*p, *e};
    out->entry.principal = arena_str(a, e->principal);
    out->entry.host = arena_str(a, e->host);
    return out->entry.principal.p && out->entry.host.p ? 0 : -ENOMEM;
}

static int copy_fitting(const struct acl_filter *f, const struct acl_resource *r, struct arena *a,
                        struct acl_binding *out, int *n)
{
    struct acl_pattern p = *acl_resource_pattern(r);
    int entries_n, rc = 0;
    const struct acl_entry *e = acl_resource_entries(r, &entries_n);
    p.name = arena_str(a, p.name);
    if (!p.name.p)
        return -ENOMEM;
    for (int i = 0; i < entries_n && !rc; i++)
        if (acl_filter_matches_entry(f, &e[i]))
            rc = copy_binding(&p, &e[i], a, &out[(*n)++]);
    return rc;
}

int authorizer_find(struct authorizer *z, const struct acl_filter *f, struct arena *a,
                    struct acl_binding **out, int *n)
{
    int all_n, most = 0, entries_n, rc = 0;
    *n = 0;
    pthread_mutex_lock(&z->lock);
    struct acl_resource **all = fitting(z, f, a, &all_n);
    for (int i = 0; all && i < all_n; i++) {
        acl_resource_entries(all[i], &entries_n);
        most += entries_n;
    }
    *out = all ? arena_array(a, struct acl_binding, (size_t)most) : NULL;
    if (!*out)
        rc = -ENOMEM;
    for (int i = 0; !rc && i < all_n; i++)
        rc = copy_fitting(f, all[i], a, *out, n);
    pthread_mutex_unlock(&z->lock);
    return rc;
}

int authorizer_patterns(struct authorizer *z, struct arena *a, struct acl_pattern **out, int *n)
{
    int rc = 0;
    *n = 0;
    pthread_mutex_lock(&z->lock);
    *out = arena_array(a, struct acl_pattern, z->table.n);
    if (!*out)
        rc = -ENOMEM;
    hmap_each (at, &z->table) {
        if (rc)
            break;
        struct acl_pattern *p = &(*out)[(*n)++];
        *p = *acl_resource_pattern(hmap_entry(at, struct row, node)->r);
        p->name = arena_str(a, p->name);
        rc = p->name.p ? 0 : -ENOMEM;
    }
    pthread_mutex_unlock(&z->lock);
    return rc;
}
