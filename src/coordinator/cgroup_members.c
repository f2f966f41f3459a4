/* cgroup_members.c - members of a group of the new protocol: what they read, counted by name, and
 * what they own, noted by partition. */
#include <errno.h>
#include <stdlib.h>

#include "coordinator/cgroup_private.h"

/* ---- names ---- */

void cnames_free(struct cnames *n)
{
    free(n->v);
    *n = (struct cnames){0};
}

static int order_names(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

int cnames_make(struct cnames *out, const struct str *v, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += (size_t)v[i].len;
    *out = (struct cnames){.v = malloc((size_t)n * sizeof(*v) + bytes + 1)};
    if (!out->v)
        return -ENOMEM;
    if (n > 0)
        memcpy(out->v, v, (size_t)n * sizeof(*v));
    if (n > 1)
        qsort(out->v, (size_t)n, sizeof(*v), order_names);
    char *at = (char *)(out->v + n);
    for (int i = 0; i < n; i++) {
        struct str s = out->v[i];
        if (out->n > 0 && str_eq(out->v[out->n - 1], s))
            continue;
        memcpy(at, s.p, (size_t)s.len);
        out->v[out->n++] = (struct str){at, s.len};
        at += s.len;
    }
    return 0;
}

bool cnames_equal(const struct cnames *a, const struct cnames *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++)
        if (!str_eq(a->v[i], b->v[i]))
            return false;
    return true;
}

int cgroup_set_str(struct str *at, struct str s)
{
    char *copy = str_dup(s);
    if (!copy && !str_is_null(s))
        return -ENOMEM;
    free((void *)at->p);
    *at = (struct str){copy, s.len};
    return 0;
}

static bool is_name(const struct hnode *n, const void *key)
{
    return str_eq(hmap_entry(n, struct cname, node)->name, *(const struct str *)key);
}

static struct cname *find_name(const struct cgroup *cg, struct str name)
{
    struct hnode *n = cg->names.n ? hmap_find(&cg->names, hash_str(name), is_name, &name) : NULL;
    return n ? hmap_entry(n, struct cname, node) : NULL;
}

const struct cname *cgroup_find_name(const struct cgroup *cg, struct str name)
{
    return find_name(cg, name);
}

static int count_name(struct cgroup *cg, struct str name)
{
    struct cname *c = find_name(cg, name);
    if (c) {
        c->members++;
        return 0;
    }
    c = calloc(1, sizeof(*c) + (size_t)name.len);
    if (!c)
        return -ENOMEM;
    memcpy(c + 1, name.p, (size_t)name.len);
    c->name = (struct str){(const char *)(c + 1), name.len};
    c->members = 1;
    c->place = -1;
    if (hmap_put(&cg->names, &c->node, hash_str(name)) == 0)
        return 0;
    free(c);
    return -ENOMEM;
}

static void uncount_names(struct cgroup *cg, const struct cnames *names, int n)
{
    for (int i = 0; i < n; i++) {
        struct cname *c = find_name(cg, names->v[i]);
        if (--c->members > 0)
            continue;
        hmap_remove(&cg->names, &c->node);
        free(c);
    }
}

/* Takes *reads in any case. */
static int set_reads(struct cmember *m, struct cnames *reads)
{
    for (int i = 0; i < reads->n; i++)
        if (count_name(m->cg, reads->v[i]) != 0) {
            uncount_names(m->cg, reads, i);
            cnames_free(reads);
            return -ENOMEM;
        }
    uncount_names(m->cg, &m->reads, m->reads.n);
    cnames_free(&m->reads);
    m->reads = *reads;
    *reads = (struct cnames){0};
    return 0;
}

int cmember_read(struct cmember *m)
{
    static const struct cnames none;
    const struct cnames *matched = m->pattern ? &m->pattern->matched : &none;
    struct cnames reads;
    size_t n = (size_t)m->names.n + (size_t)matched->n;
    struct str *all = malloc((n + 1) * sizeof(*all));
    if (!all)
        return -ENOMEM;
    for (int i = 0; i < m->names.n; i++)
        all[i] = m->names.v[i];
    for (int i = 0; i < matched->n; i++)
        all[m->names.n + i] = matched->v[i];
    int rc = cnames_make(&reads, all, (int)n);
    free(all);
    if (rc)
        return rc;
    if (!cnames_equal(&reads, &m->reads))
        return set_reads(m, &reads) == 0 ? 1 : -ENOMEM;
    cnames_free(&reads);
    return 0;
}

int cmember_set_names(struct cmember *m, struct cnames *names)
{
    cnames_free(&m->names);
    m->names = *names;
    *names = (struct cnames){0};
    return cmember_read(m) < 0 ? -ENOMEM : 0;
}

/* ---- patterns ---- */

static bool is_regex(const struct hnode *n, const void *key)
{
    return str_eq(hmap_entry(n, struct cregex, node)->text, *(const struct str *)key);
}

static void unuse_regex(struct cgroup *cg, struct cregex *r)
{
    if (!r || --r->members > 0)
        return;
    hmap_remove(&cg->regexes, &r->node);
    topic_regex_free(r->compiled);
    cnames_free(&r->matched);
    free(r);
}

static struct cregex *make_regex(struct cgroup *cg, struct str text)
{
    struct cregex *r = calloc(1, sizeof(*r) + (size_t)text.len);
    if (!r)
        return NULL;
    memcpy(r + 1, text.p, (size_t)text.len);
    r->text = (struct str){(const char *)(r + 1), text.len};
    /* One that cannot be compiled, from a record of another broker, matches nothing. */
    if (topic_regex_new(text, &r->compiled) == -ENOMEM ||
        hmap_put(&cg->regexes, &r->node, hash_str(text)) != 0) {
        topic_regex_free(r->compiled);
        free(r);
        return NULL;
    }
    cg->refresh = true;
    return r;
}

static struct cregex *use_regex(struct cgroup *cg, struct str text)
{
    struct hnode *n =
        cg->regexes.n ? hmap_find(&cg->regexes, hash_str(text), is_regex, &text) : NULL;
    struct cregex *r = n ? hmap_entry(n, struct cregex, node) : make_regex(cg, text);
    if (r)
        r->members++;
    return r;
}

int cmember_set_regex(struct cmember *m, struct str regex)
{
    struct cregex *r = NULL;
    if (regex.len > 0) {
        r = use_regex(m->cg, regex);
        if (!r)
            return -ENOMEM;
    }
    if (cgroup_set_str(&m->regex, regex.len > 0 ? regex : STR_NULL) != 0) {
        unuse_regex(m->cg, r);
        return -ENOMEM;
    }
    unuse_regex(m->cg, m->pattern);
    m->pattern = r;
    return cmember_read(m) < 0 ? -ENOMEM : 0;
}

/* ---- identity ---- */

static bool is_member(const struct hnode *n, const void *key)
{
    return str_eq(hmap_entry(n, struct cmember, by_id)->id, *(const struct str *)key);
}

static bool is_instance(const struct hnode *n, const void *key)
{
    return str_eq(hmap_entry(n, struct cmember, by_instance)->instance, *(const struct str *)key);
}

struct cmember *cgroup_find(const struct cgroup *cg, struct str id)
{
    struct hnode *n = cg->members.n ? hmap_find(&cg->members, hash_str(id), is_member, &id) : NULL;
    return n ? hmap_entry(n, struct cmember, by_id) : NULL;
}

struct cmember *cgroup_find_instance(const struct cgroup *cg, struct str instance)
{
    if (str_is_null(instance) || cg->instances.n == 0)
        return NULL;
    struct hnode *n = hmap_find(&cg->instances, hash_str(instance), is_instance, &instance);
    return n ? hmap_entry(n, struct cmember, by_instance) : NULL;
}

static void cmember_free(struct cmember *m)
{
    cnames_free(&m->names);
    cnames_free(&m->reads);
    free(m->protocols);
    part_set_free(&m->assigned);
    part_set_free(&m->revoking);
    part_set_free(&m->target);
    free((void *)m->id.p);
    free((void *)m->instance.p);
    free((void *)m->rack.p);
    free((void *)m->client_id.p);
    free((void *)m->client_host.p);
    free((void *)m->assignor.p);
    free((void *)m->regex.p);
    free(m);
}

/* In order of id, which the assignors want; ids are mostly random. */
static void enlist(struct cgroup *cg, struct cmember *m)
{
    struct list *at = cg->member_list.prev;
    while (at != &cg->member_list && java_cmp(list_entry(at, struct cmember, link)->id, m->id) > 0)
        at = at->prev;
    list_push_front(at, &m->link); /* behind it */
}

static int put(struct cgroup *cg, struct cmember *m)
{
    if (hmap_put(&cg->members, &m->by_id, hash_str(m->id)) != 0)
        return -ENOMEM;
    if (!str_is_null(m->instance) &&
        hmap_put(&cg->instances, &m->by_instance, hash_str(m->instance)) != 0) {
        hmap_remove(&cg->members, &m->by_id);
        return -ENOMEM;
    }
    enlist(cg, m);
    return 0;
}

struct cmember *cgroup_add(struct cgroup *cg, struct str id, struct str instance)
{
    struct cmember *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->cg = cg;
    m->rebalance_ms = -1;
    m->instance = m->rack = m->client_id = m->client_host = m->assignor = m->regex = STR_NULL;
    list_init(&m->link);
    cmember_init_timers(m);
    if (cgroup_set_str(&m->id, id) == 0 && cgroup_set_str(&m->instance, instance) == 0 &&
        put(cg, m) == 0)
        return m;
    cmember_free(m);
    return NULL;
}

int cmember_set_classic(struct cmember *m, struct member_protocol *protocols, int n,
                        int32_t session_ms)
{
    if (protocol_counts_add(&m->cg->protocols, protocols, n) != 0) {
        free(protocols);
        return -ENOMEM;
    }
    protocol_counts_remove(&m->cg->protocols, m->protocols, m->protocols_n);
    m->cg->classic_n += (protocols != NULL) - m->classic;
    free(m->protocols);
    m->classic = protocols != NULL;
    m->protocols = protocols;
    m->protocols_n = n;
    m->session_ms = session_ms;
    return 0;
}

/* ---- owners ---- */

static bool is_owner(const struct hnode *n, const void *key)
{
    return part_cmp(&hmap_entry(n, struct cowner, node)->page, key) == 0;
}

static uint64_t hash_page(const struct part *page)
{
    return hash_bytes(page->topic.b, 16) ^ hash_int((uint64_t)(uint32_t)page->partition);
}

static struct part page_of(const struct part *p)
{
    return (struct part){p->topic, p->partition / COWNER_PARTITIONS};
}

static struct cowner *find_owner(const struct cgroup *cg, const struct part *page)
{
    struct hnode *n = cg->owners.n ? hmap_find(&cg->owners, hash_page(page), is_owner, page) : NULL;
    return n ? hmap_entry(n, struct cowner, node) : NULL;
}

int32_t cgroup_owner(const struct cgroup *cg, const struct part *p)
{
    struct part page = page_of(p);
    const struct cowner *o = p->partition >= 0 ? find_owner(cg, &page) : NULL;
    return o ? o->epochs[p->partition % COWNER_PARTITIONS] : -1;
}

static struct cowner *make_owner(struct cgroup *cg, const struct part *page)
{
    struct cowner *o = calloc(1, sizeof(*o));
    if (!o)
        return NULL;
    o->page = *page;
    for (int i = 0; i < COWNER_PARTITIONS; i++)
        o->epochs[i] = -1;
    if (hmap_put(&cg->owners, &o->node, hash_page(page)) == 0)
        return o;
    free(o);
    return NULL;
}

/* Those of the set from v on that are on the same page as the first: to `epoch`, or -1. Returns how
 * many, or -ENOMEM. */
static int own_page(struct cgroup *cg, const struct part *v, int n, int32_t epoch)
{
    struct part page = page_of(v);
    struct cowner *o = find_owner(cg, &page);
    int i = 0;
    if (!o && epoch != -1 && !(o = make_owner(cg, &page)))
        return -ENOMEM;
    for (; i < n && uuid_eq(v[i].topic, page.topic); i++) {
        if (v[i].partition / COWNER_PARTITIONS != page.partition)
            break;
        int32_t *at = o ? &o->epochs[v[i].partition % COWNER_PARTITIONS] : NULL;
        if (!at)
            continue;
        o->owned += (epoch != -1) - (*at != -1);
        *at = epoch;
    }
    if (o && o->owned == 0) {
        hmap_remove(&cg->owners, &o->node);
        free(o);
    }
    return i;
}

static int own_set(struct cgroup *cg, const struct part_set *s, int32_t epoch)
{
    for (int i = 0, n; i < s->n; i += n) {
        n = own_page(cg, &s->v[i], s->n - i, epoch);
        if (n < 0)
            return n;
    }
    return 0;
}

/* An epoch of -2 or 0 owns as well as any; -1 is free. */
int cmember_own(struct cmember *m, struct part_set *assigned, struct part_set *revoking)
{
    own_set(m->cg, &m->assigned, -1);
    own_set(m->cg, &m->revoking, -1);
    part_set_move(&m->assigned, assigned);
    part_set_move(&m->revoking, revoking);
    int rc = own_set(m->cg, &m->assigned, m->epoch);
    return own_set(m->cg, &m->revoking, m->epoch) ? -ENOMEM : rc;
}

void cgroup_drop(struct cgroup *cg, struct cmember *m)
{
    struct part_set none = PART_SET_EMPTY, nothing = PART_SET_EMPTY;
    cmember_stop_timers(m);
    cmember_own(m, &none, &nothing);
    uncount_names(cg, &m->reads, m->reads.n);
    unuse_regex(cg, m->pattern);
    protocol_counts_remove(&cg->protocols, m->protocols, m->protocols_n);
    cg->classic_n -= m->classic;
    hmap_remove(&cg->members, &m->by_id);
    if (!str_is_null(m->instance))
        hmap_remove(&cg->instances, &m->by_instance);
    list_remove(&m->link);
    cmember_free(m);
}

struct cmember *cgroup_replace(struct cgroup *cg, struct cmember *old, struct str id)
{
    struct str copy = {str_dup(id), id.len};
    if (!copy.p)
        return NULL;
    cmember_stop_timers(old);
    hmap_remove(&cg->members, &old->by_id);
    free((void *)old->id.p);
    old->id = copy;
    old->epoch = old->previous_epoch = 0;
    list_remove(&old->link);
    enlist(cg, old);
    if (hmap_put(&cg->members, &old->by_id, hash_str(old->id)) == 0)
        return old;
    /* A map that had this member has room for it. */
    abort();
}
