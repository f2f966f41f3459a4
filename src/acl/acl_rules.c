/* acl_rules.c - see acl_rules.h.
 *
 * A resource's entries are boiled down to grants: per principal and host one mask of operations
 * that are allowed and one of those denied, in order of the principal's hash, everybody's first. A
 * decision collects the masks of all grants that hold, and then looks at the bits. */
#include "acl/acl_rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hmap.h"

#define BIT(op) (UINT32_C(1) << (op))
#define ALL_BITS UINT32_MAX

struct grant {
    uint64_t hash; /* of the user's name */
    struct str user;
    struct in6_addr host;
    bool any_host;
    uint32_t allowed, denied;
};

struct acl_resource {
    atomic_int refs;
    struct acl_pattern pattern;
    uint64_t hash;
    struct acl_entry *entries;
    int entries_n;
    struct grant *grants; /* everybody's, then others' by hash */
    int grants_n, everybody_n;
    /* texts behind */
};

struct lengths { /* of a type's prefixes, each once, in order */
    int32_t *v;
    int n;
};

struct acl_index {
    struct acl_resource **all;
    int n;
    struct acl_resource **slots; /* open addressing */
    size_t mask;
    struct lengths lengths[ACL_RESOURCES];
    struct acl_resource *wildcard[ACL_RESOURCES]; /* literal "*"; NULL: none */
};

/* ---- resources ---- */

int acl_host_parse(struct str text, struct in6_addr *out)
{
    char z[INET6_ADDRSTRLEN];
    const char *zone = text.len > 0 ? memchr(text.p, '%', (size_t)text.len) : NULL;
    size_t n = zone ? (size_t)(zone - text.p) : text.len > 0 ? (size_t)text.len : 0;
    if (!n || n >= sizeof(z))
        return -EINVAL;
    memcpy(z, text.p, n);
    z[n] = 0;
    if (strlen(z) != n)
        return -EINVAL;
    struct in6_addr v6 = {0};
    uint8_t v4[4];
    if (!zone && inet_pton(AF_INET, z, v4) == 1) {
        v6.s6_addr[10] = v6.s6_addr[11] = 0xff;
        memcpy(v6.s6_addr + 12, v4, 4);
    } else if (inet_pton(AF_INET6, z, &v6) != 1) {
        return -EINVAL;
    }
    *out = v6;
    return 0;
}

/* False: it holds for nobody. */
static bool grant_of(const struct acl_entry *e, struct grant *out)
{
    *out = (struct grant){.user = acl_user_of(e->principal), .any_host = str_eqz(e->host, "*")};
    if (out->user.len < 0 || e->operation < ACL_ALL || (int)e->operation >= ACL_OPERATIONS)
        return false;
    if (!out->any_host && acl_host_parse(e->host, &out->host) != 0)
        return false;
    uint32_t bits = e->operation == ACL_ALL ? ALL_BITS : BIT(e->operation);
    out->hash = hash_str(out->user);
    out->allowed = e->permission == ACL_ALLOW ? bits : 0;
    out->denied = e->permission == ACL_DENY ? bits : 0;
    return true;
}

static bool is_everybody(const struct grant *g)
{
    return str_eqz(g->user, "*");
}

static int by_holder(const void *a, const void *b)
{
    const struct grant *x = a, *y = b;
    int order = (int)is_everybody(y) - (int)is_everybody(x);
    if (!order)
        order = (x->hash > y->hash) - (x->hash < y->hash);
    if (!order)
        order = str_cmp(x->user, y->user);
    if (!order)
        order = (int)x->any_host - (int)y->any_host;
    return order ? order : memcmp(&x->host, &y->host, sizeof(x->host));
}

/* Those of one user and host become one. */
static void merge_grants(struct acl_resource *r)
{
    int n = 0;
    if (r->grants_n)
        qsort(r->grants, (size_t)r->grants_n, sizeof(*r->grants), by_holder);
    for (int i = 0; i < r->grants_n; i++) {
        struct grant *g = &r->grants[i];
        if (n && by_holder(&r->grants[n - 1], g) == 0) {
            r->grants[n - 1].allowed |= g->allowed;
            r->grants[n - 1].denied |= g->denied;
        } else {
            r->grants[n++] = *g;
        }
    }
    r->grants_n = n;
    while (r->everybody_n < n && is_everybody(&r->grants[r->everybody_n]))
        r->everybody_n++;
}

static size_t length(struct str s)
{
    return s.len > 0 ? (size_t)s.len : 0;
}

static struct str keep(char **at, struct str s)
{
    struct str copy = {*at, (int32_t)length(s)};
    if (copy.len)
        memcpy(*at, s.p, (size_t)copy.len);
    *at += copy.len;
    return copy;
}

struct acl_resource *acl_resource_new(const struct acl_pattern *pattern,
                                      const struct acl_entry *entries, int n)
{
    size_t count = (size_t)n, texts = length(pattern->name);
    for (int i = 0; i < n; i++)
        texts += length(entries[i].principal) + length(entries[i].host);
    struct acl_resource *r =
        malloc(sizeof(*r) + count * (sizeof(struct grant) + sizeof(*entries)) + texts);
    if (!r)
        return NULL;
    *r = (struct acl_resource){.pattern = *pattern, .entries_n = n};
    atomic_init(&r->refs, 1);
    r->grants = (struct grant *)(r + 1);
    r->entries = (struct acl_entry *)(r->grants + n);
    char *at = (char *)(r->entries + n);
    r->pattern.name = keep(&at, pattern->name);
    r->hash = acl_pattern_hash(pattern);
    for (int i = 0; i < n; i++) {
        r->entries[i] = entries[i];
        r->entries[i].principal = keep(&at, entries[i].principal);
        r->entries[i].host = keep(&at, entries[i].host);
        r->grants_n += grant_of(&r->entries[i], &r->grants[r->grants_n]);
    }
    merge_grants(r);
    return r;
}

struct acl_resource *acl_resource_ref(struct acl_resource *r)
{
    atomic_fetch_add(&r->refs, 1);
    return r;
}

void acl_resource_unref(struct acl_resource *r)
{
    if (r && atomic_fetch_sub(&r->refs, 1) == 1)
        free(r);
}

const struct acl_pattern *acl_resource_pattern(const struct acl_resource *r)
{
    return &r->pattern;
}

const struct acl_entry *acl_resource_entries(const struct acl_resource *r, int *n)
{
    *n = r->entries_n;
    return r->entries;
}

bool acl_resource_has(const struct acl_resource *r, const struct acl_entry *entries, int n)
{
    if (r->entries_n != n)
        return false;
    for (int i = 0; i < n; i++)
        if (!acl_entry_eq(&r->entries[i], &entries[i]))
            return false;
    return true;
}

/* ---- the index ---- */

static int by_number(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int note_lengths(struct acl_index *x)
{
    for (int t = 0; t < ACL_RESOURCES; t++) {
        struct lengths *l = &x->lengths[t];
        int n = 0;
        for (int i = 0; i < x->n; i++)
            n += x->all[i]->pattern.type == (enum acl_resource_type)t &&
                 x->all[i]->pattern.kind == ACL_PREFIXED;
        if (!n)
            continue;
        l->v = malloc((size_t)n * sizeof(*l->v));
        if (!l->v)
            return -ENOMEM;
        for (int i = 0; i < x->n; i++)
            if (x->all[i]->pattern.type == (enum acl_resource_type)t &&
                x->all[i]->pattern.kind == ACL_PREFIXED)
                l->v[l->n++] = x->all[i]->pattern.name.len;
        qsort(l->v, (size_t)l->n, sizeof(*l->v), by_number);
        for (int i = n = 0; i < l->n; i++)
            if (!n || l->v[n - 1] != l->v[i])
                l->v[n++] = l->v[i];
        l->n = n;
    }
    return 0;
}

struct acl_index *acl_index_new(struct acl_resource *const *resources, int n)
{
    size_t slots = 8;
    while (slots < (size_t)n * 2)
        slots *= 2;
    struct acl_index *x = calloc(1, sizeof(*x));
    if (!x)
        return NULL;
    x->mask = slots - 1;
    x->all = calloc((size_t)n + 1, sizeof(*x->all));
    x->slots = calloc(slots, sizeof(struct acl_resource *));
    for (; x->all && x->slots && x->n < n; x->n++) {
        struct acl_resource *r = acl_resource_ref(resources[x->n]);
        size_t at = r->hash & x->mask;
        while (x->slots[at])
            at = (at + 1) & x->mask;
        x->all[x->n] = x->slots[at] = r;
        if (r->pattern.kind == ACL_LITERAL && str_eqz(r->pattern.name, ACL_WILDCARD))
            x->wildcard[r->pattern.type] = r;
    }
    if (x->all && x->slots && note_lengths(x) == 0)
        return x;
    acl_index_free(x);
    return NULL;
}

void acl_index_free(struct acl_index *x)
{
    if (!x)
        return;
    for (int i = 0; i < x->n; i++)
        acl_resource_unref(x->all[i]);
    for (int t = 0; t < ACL_RESOURCES; t++)
        free(x->lengths[t].v);
    free(x->slots);
    free(x->all);
    free(x);
}

struct acl_resource *const *acl_index_resources(const struct acl_index *x, int *n)
{
    *n = x->n;
    return x->all;
}

struct acl_resource *acl_index_find(const struct acl_index *x, const struct acl_pattern *pattern)
{
    uint64_t hash = acl_pattern_hash(pattern);
    for (size_t at = hash & x->mask; x->slots[at]; at = (at + 1) & x->mask)
        if (x->slots[at]->hash == hash && acl_pattern_eq(&x->slots[at]->pattern, pattern))
            return x->slots[at];
    return NULL;
}

static struct acl_resource *find(const struct acl_index *x, enum acl_resource_type type,
                                 enum acl_pattern_type kind, struct str name)
{
    return acl_index_find(x, &(struct acl_pattern){type, kind, name});
}

/* ---- decisions ---- */

struct acl_subject acl_subject_of(struct str user, struct in6_addr host)
{
    return (struct acl_subject){user, host, hash_str(user)};
}

struct masks {
    uint32_t allowed, denied;
    bool any_acl;
};

static void add_grant(const struct grant *g, const struct acl_subject *who, struct masks *m)
{
    if (!g->any_host && memcmp(&g->host, &who->host, sizeof(g->host)) != 0)
        return;
    m->allowed |= g->allowed;
    m->denied |= g->denied;
}

/* The first that is not below the hash. */
static int first_of(const struct acl_resource *r, uint64_t hash)
{
    int low = r->everybody_n, high = r->grants_n;
    while (low < high) {
        int mid = low + (high - low) / 2;
        if (r->grants[mid].hash < hash)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void add_resource(const struct acl_resource *r, const struct acl_subject *who,
                         struct masks *m)
{
    if (!r)
        return;
    m->any_acl = true;
    for (int i = 0; i < r->everybody_n; i++)
        add_grant(&r->grants[i], who, m);
    for (int i = first_of(r, who->hash); i < r->grants_n && r->grants[i].hash == who->hash; i++)
        if (str_eq(r->grants[i].user, who->user))
            add_grant(&r->grants[i], who, m);
}

static bool is_type(enum acl_resource_type type)
{
    return type >= ACL_TOPIC && type <= ACL_USER;
}

static struct masks collect(const struct acl_index *x, const struct acl_subject *who,
                            enum acl_resource_type type, struct str name)
{
    struct masks m = {0};
    if (!is_type(type) || name.len < 0)
        return m;
    const struct lengths *l = &x->lengths[type];
    bool is_wildcard = str_eqz(name, ACL_WILDCARD);
    add_resource(x->wildcard[type], who, &m);
    if (x->n && !is_wildcard)
        add_resource(find(x, type, ACL_LITERAL, name), who, &m);
    for (int i = 0; i < l->n && l->v[i] <= name.len; i++)
        add_resource(find(x, type, ACL_PREFIXED, (struct str){name.p, l->v[i]}), who, &m);
    return m;
}

/* What allows the operation, besides ALL. */
static uint32_t allowing(enum acl_operation op)
{
    switch (op) {
    case ACL_DESCRIBE:
        return BIT(ACL_DESCRIBE) | BIT(ACL_READ) | BIT(ACL_WRITE) | BIT(ACL_DELETE) |
               BIT(ACL_ALTER);
    case ACL_DESCRIBE_CONFIGS:
        return BIT(ACL_DESCRIBE_CONFIGS) | BIT(ACL_ALTER_CONFIGS);
    default:
        return BIT(op);
    }
}

static bool decide(const struct masks *m, enum acl_operation op, bool otherwise)
{
    if (!m->any_acl)
        return otherwise;
    return !(m->denied & BIT(op)) && (m->allowed & allowing(op));
}

bool acl_allows(const struct acl_index *x, const struct acl_subject *who, enum acl_operation op,
                enum acl_resource_type type, struct str name, bool otherwise)
{
    struct masks m = collect(x, who, type, name);
    return decide(&m, op, otherwise);
}

uint32_t acl_allowed_operations(const struct acl_index *x, const struct acl_subject *who,
                                enum acl_resource_type type, struct str name, bool otherwise)
{
    struct masks m = collect(x, who, type, name);
    uint32_t all = acl_operations_of(type), out = 0;
    for (int op = ACL_READ; op < ACL_OPERATIONS; op++)
        if ((all & BIT(op)) && decide(&m, (enum acl_operation)op, otherwise))
            out |= BIT(op);
    return out;
}

/* ---- any resource ---- */

static bool denies(const struct acl_resource *r, const struct acl_subject *who,
                   enum acl_operation op)
{
    struct masks m = {0};
    add_resource(r, who, &m);
    return m.denied & BIT(op);
}

/* Does a DENY cover the pattern: of the literal name itself (when it is one), of a prefix? */
static bool covered(const struct acl_index *x, const struct acl_pattern *p,
                    const struct acl_subject *who, enum acl_operation op)
{
    const struct lengths *l = &x->lengths[p->type];
    if (p->kind == ACL_LITERAL && denies(find(x, p->type, ACL_LITERAL, p->name), who, op))
        return true;
    for (int i = 0; i < l->n && l->v[i] <= p->name.len; i++)
        if (denies(find(x, p->type, ACL_PREFIXED, (struct str){p->name.p, l->v[i]}), who, op))
            return true;
    return false;
}

static bool allows_some(const struct acl_index *x, const struct acl_resource *r,
                        const struct acl_subject *who, enum acl_operation op)
{
    struct masks m = {0};
    add_resource(r, who, &m);
    if (!(m.allowed & BIT(op)))
        return false;
    return r == x->wildcard[r->pattern.type] || !covered(x, &r->pattern, who, op);
}

bool acl_allows_any(const struct acl_index *x, const struct acl_subject *who, enum acl_operation op,
                    enum acl_resource_type type, bool otherwise)
{
    if (!is_type(type) || denies(x->wildcard[type], who, op))
        return false;
    for (int i = 0; i < x->n && !otherwise; i++)
        otherwise = x->all[i]->pattern.type == (enum acl_resource_type)type &&
                    allows_some(x, x->all[i], who, op);
    return otherwise;
}
