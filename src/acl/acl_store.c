/* acl_store.c - see acl_store.h. */
#include "acl/acl_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/hmap.h"
#include "base/logline.h"
#include "metadata/store_batch.h"

static const char component[] = "AclStore";

enum { TRIES = 10, PAUSE_MS = 20, PAUSE_MORE_MS = 80 };

static const struct {
    enum acl_pattern_type kind;
    const char *path;
} trees[] = {{ACL_LITERAL, PATH_ACL}, {ACL_PREFIXED, PATH_ACL_PREFIXED}};
enum { TREES = sizeof(trees) / sizeof(trees[0]) };

int acl_store_paths(struct store *s)
{
    int err = store_create_path(s, PATH_ACL_CHANGES, BYTES_NULL, NULL);
    if (!err)
        err = store_create_path(s, PATH_ACL_PREFIXED_CHANGES, BYTES_NULL, NULL);
    for (int t = 0; !err && t < TREES; t++) {
        for (int type = ACL_RESOURCE_FIRST; !err && type < ACL_RESOURCES; type++) {
            char path[64];
            snprintf(path, sizeof(path), "%s/%s", trees[t].path, acl_resource_name(type));
            err = store_create_path(s, path, BYTES_NULL, NULL);
        }
    }
    return err;
}

/* ---- reading ---- */

void acl_stored_of(const struct acl_pattern *pattern, int status, struct bytes data,
                   const struct store_stat *stat, struct arena *a, struct acl_stored *out)
{
    *out = (struct acl_stored){.pattern = *pattern, .status = status, .version = stat->version};
    if (!status)
        out->status = acl_node_decode(data, a, &out->node);
    if (out->status != -EBADMSG && !out->node.strange_n)
        return;
    char *path = acl_node_path(pattern, a);
    if (out->status == -EBADMSG)
        say_error(component, "%s is not a list of ACLs (version 1): it allows nothing, and stays",
                  path ? path : "a node");
    else
        say_warn(component, "%s: %d entries that are not known here are passed over, as %.*s",
                 path ? path : "a node", out->node.strange_n, STR_ARG(out->node.strange[0]));
}

int acl_store_read(struct store *s, const struct acl_pattern *pattern, struct arena *a,
                   struct acl_stored *out)
{
    char *path = acl_node_path(pattern, a);
    if (!path) {
        *out = (struct acl_stored){.pattern = *pattern, .status = -ENOMEM};
        return -ENOMEM;
    }
    struct store_op op = store_op_get(path, false);
    struct store_request r = {.ops = &op, .ops_n = 1};
    store_run(s, &r);
    acl_stored_of(pattern, r.status, op.result, &op.stat, a, out);
    store_request_clear(&r);
    return out->status;
}

/* Names below the type's folder become GETs of their nodes. */
static int ask_for_names(struct store_batch *ask, const struct store_op *listed,
                         struct acl_pattern type, struct arena *a)
{
    for (int i = 0; i < listed->names_n; i++) {
        struct acl_pattern *p = arena_new(a, struct acl_pattern);
        if (!p)
            return -ENOMEM;
        *p = type;
        p->name = arena_str(a, str_of(listed->names[i]));
        char *path = acl_node_path(p, a);
        struct store_request *r = path ? store_batch_add(ask, store_op_get(path, false)) : NULL;
        if (!r)
            return -ENOMEM;
        r->user = p;
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_tree(struct store *s, int tree, struct store_batch *ask, struct arena *a)
{
    struct store_op types = store_op_children(trees[tree].path, false);
    struct store_request r = {.ops = &types, .ops_n = 1};
    int err = store_run(s, &r);
    if (types.names_n)
        qsort(types.names, (size_t)types.names_n, sizeof(char *), by_name);
    for (int i = 0; !err && i < types.names_n; i++) {
        struct acl_pattern p = {.type = acl_resource_of_name(str_of(types.names[i])),
                                .kind = trees[tree].kind};
        char *path = arena_printf(a, "%s/%s", trees[tree].path, types.names[i]);
        if (p.type == ACL_RESOURCE_UNKNOWN) {
            say_warn(component, "%s/%s: resource type not known here, passed over",
                     trees[tree].path, types.names[i]);
            continue;
        }
        struct store_op names = store_op_children(path, false);
        struct store_request in = {.ops = &names, .ops_n = 1};
        err = path ? store_run(s, &in) : -ENOMEM;
        if (err == -ENOENT) /* it has just gone; the others have not */
            err = 0;
        if (names.names_n)
            qsort(names.names, (size_t)names.names_n, sizeof(char *), by_name);
        if (!err)
            err = ask_for_names(ask, &names, p, a);
        store_request_clear(&in);
    }
    store_request_clear(&r);
    return err == -ENOENT ? 0 : err;
}

int acl_store_load(struct store *s, struct arena *a, struct acl_stored **out, int *n)
{
    struct store_batch ask;
    int err = 0;
    *n = 0;
    store_batch_init(&ask, a);
    for (int t = 0; !err && t < TREES; t++)
        err = list_tree(s, t, &ask, a);
    *out = err ? NULL : arena_array(a, struct acl_stored, (size_t)ask.n);
    if (!err)
        err = *out ? store_batch_run(&ask, s) : -ENOMEM;
    if (!err) {
        store_batch_each (r, &ask) {
            struct acl_stored *one = &(*out)[*n];
            acl_stored_of(r->user, r->status, r->ops[0].result, &r->ops[0].stat, a, one);
            if (one->status && one->status != -ENOENT && one->status != -EBADMSG)
                err = one->status;
            *n += one->status != -ENOENT;
        }
    }
    store_batch_clear(&ask);
    return err;
}

/* ---- changing ---- */

static void pause_a_little(void)
{
    struct uuid r = uuid_random();
    long ms = PAUSE_MS + r.b[3] % PAUSE_MORE_MS;
    struct timespec t = {.tv_nsec = ms * 1000000};
    nanosleep(&t, NULL);
}

static int write_node(struct store *s, const struct acl_stored *was, const struct acl_node *node,
                      struct arena *a)
{
    char *path = acl_node_path(&was->pattern, a);
    struct bytes notice = acl_notice_encode(&was->pattern, a), data = BYTES_NULL;
    bool any = node->n || node->strange_n;
    if (any)
        data = acl_node_encode(node, a);
    if (!path || !notice.p || (any && !data.p))
        return -ENOMEM;
    struct store_op ops[] = {
        !any                     ? store_op_delete(path, was->version)
        : was->status == -ENOENT ? store_op_create(path, data, 0)
                                 : store_op_set(path, data, was->version),
        store_op_create(acl_notice_path(was->pattern.kind), notice, STORE_SEQUENTIAL)};
    struct store_request r = {.ops = ops, .ops_n = 2, .multi = true};
    int err = store_run(s, &r);
    store_request_clear(&r);
    return err;
}

static bool is_conflict(int err)
{
    return err == STORE_BAD_VERSION || err == -EEXIST || err == -ENOENT;
}

int acl_store_update(struct store *s, const struct acl_pattern *pattern, acl_store_edit edit,
                     void *arg, struct arena *a)
{
    for (int i = 0; i < TRIES; i++) {
        struct acl_stored was;
        int err = acl_store_read(s, pattern, a, &was);
        if (err && err != -ENOENT)
            return err;
        bool exists = !err;
        err = edit(arg, pattern, &was.node, a);
        if (err <= 0)
            return err;
        if (!exists && !was.node.n) /* nothing was, nothing is to be */
            return 0;
        err = write_node(s, &was, &was.node, a);
        if (!err) {
            say_debug(component, "ACLs of %s:%s:%.*s: %d now", acl_resource_name(pattern->type),
                      acl_pattern_upper(pattern->kind), STR_ARG(pattern->name),
                      was.node.n + was.node.strange_n);
            return 1;
        }
        if (!is_conflict(err))
            return err;
        if (err == -ENOENT && acl_store_paths(s)) /* folders that nobody has made yet */
            return err;
        pause_a_little();
    }
    return -EAGAIN;
}

static void note_changed(struct acl_changed *to, const struct acl_pattern *p)
{
    if (to) /* room for all was made before */
        to->v[to->n++] = *p;
}

/* ---- adding ---- */

/* The bindings of one pattern, by their places. */
struct addition {
    struct hnode node;
    struct acl_pattern pattern;
    const struct acl_binding *all;
    int *next; /* of each binding, the next one of the same pattern; -1 none */
    int first, last;
};

static bool same_pattern(const struct hnode *h, const void *key)
{
    return acl_pattern_eq(&hmap_entry(h, struct addition, node)->pattern, key);
}

static int add_entries(void *arg, const struct acl_pattern *pattern, struct acl_node *node,
                       struct arena *a)
{
    const struct addition *add = arg;
    int more = 0, was = node->n, rc = 0;
    struct hmap known;
    (void)pattern;
    for (int i = add->first; i >= 0; i = add->next[i])
        more++;
    struct acl_entry *all = arena_array(a, struct acl_entry, (size_t)node->n + (size_t)more);
    if (!all)
        return -ENOMEM;
    if (node->n)
        memcpy(all, node->entries, (size_t)node->n * sizeof(*all));
    node->entries = all;
    hmap_init(&known);
    for (int i = 0; rc >= 0 && i < was; i++)
        rc = acl_entry_note(&known, &all[i], a);
    for (int i = add->first; rc >= 0 && i >= 0; i = add->next[i]) {
        rc = acl_entry_note(&known, &add->all[i].entry, a);
        if (rc > 0)
            all[node->n++] = add->all[i].entry;
    }
    hmap_free(&known);
    return rc < 0 ? rc : node->n > was;
}

static int group_additions(const struct acl_binding *bindings, int n, struct hmap *by_pattern,
                           struct addition *all, int *all_n, int *next)
{
    for (int i = 0; i < n; i++) {
        const struct acl_pattern *p = &bindings[i].pattern;
        uint64_t hash = acl_pattern_hash(p);
        struct hnode *h = hmap_find(by_pattern, hash, same_pattern, p);
        next[i] = -1;
        if (h) {
            struct addition *add = hmap_entry(h, struct addition, node);
            next[add->last] = i;
            add->last = i;
            continue;
        }
        struct addition *add = &all[*all_n];
        *add =
            (struct addition){.pattern = *p, .all = bindings, .next = next, .first = i, .last = i};
        if (hmap_put(by_pattern, &add->node, hash) != 0)
            return -ENOMEM;
        ++*all_n;
    }
    return 0;
}

int acl_store_add(struct store *s, const struct acl_binding *bindings, int n, int *errors,
                  struct arena *a, struct acl_changed *changed)
{
    struct hmap by_pattern;
    struct addition *all = arena_array(a, struct addition, (size_t)n);
    int *next = arena_array(a, int, (size_t)n), all_n = 0;
    if (changed)
        *changed = (struct acl_changed){.v = arena_array(a, struct acl_pattern, (size_t)n)};
    if (!all || !next || (changed && !changed->v))
        return -ENOMEM;
    hmap_init(&by_pattern);
    int err = group_additions(bindings, n, &by_pattern, all, &all_n, next);
    for (int k = 0; !err && k < all_n; k++) {
        struct arena work;
        arena_init(&work, 0);
        int rc = acl_store_update(s, &all[k].pattern, add_entries, &all[k], &work);
        arena_free(&work);
        for (int i = all[k].first; i >= 0; i = next[i])
            errors[i] = rc < 0 ? rc : 0;
        if (rc)
            note_changed(changed, &all[k].pattern);
    }
    hmap_free(&by_pattern);
    return err;
}

/* ---- deleting ---- */

struct deletion {
    const struct acl_filter *filters;
    const int *fits; /* those filters that the pattern fits, in order */
    int fits_n;
    struct arena *a; /* of what is told */
    struct acl_deleted *found;
    int found_n;
};

static int first_filter(const struct deletion *d, const struct acl_entry *e)
{
    for (int i = 0; i < d->fits_n; i++)
        if (acl_filter_matches_entry(&d->filters[d->fits[i]], e))
            return d->fits[i];
    return -1;
}

static int remove_entries(void *arg, const struct acl_pattern *pattern, struct acl_node *node,
                          struct arena *a)
{
    struct deletion *d = arg;
    int kept = 0, was = node->n;
    (void)a;
    d->found_n = 0;
    d->found = arena_array(d->a, struct acl_deleted, (size_t)was);
    if (!d->found)
        return -ENOMEM;
    for (int i = 0; i < was; i++) {
        int filter = first_filter(d, &node->entries[i]);
        if (filter < 0) {
            node->entries[kept++] = node->entries[i];
            continue;
        }
        struct acl_entry e = node->entries[i];
        e.principal = arena_str(d->a, e.principal);
        e.host = arena_str(d->a, e.host);
        if (!e.principal.p || !e.host.p)
            return -ENOMEM;
        d->found[d->found_n++] = (struct acl_deleted){.binding = {*pattern, e}, .filter = filter};
    }
    node->n = kept;
    return kept < was;
}

struct deleted_list {
    struct acl_deleted *v;
    int n, cap;
};

static int add_deleted(struct deleted_list *to, const struct deletion *d, int error,
                       struct arena *a)
{
    if (to->n + d->found_n > to->cap) {
        int cap = (to->n + d->found_n) * 2;
        struct acl_deleted *v = arena_array(a, struct acl_deleted, (size_t)cap);
        if (!v)
            return -ENOMEM;
        if (to->n)
            memcpy(v, to->v, (size_t)to->n * sizeof(*v));
        to->v = v;
        to->cap = cap;
    }
    for (int i = 0; i < d->found_n; i++) {
        to->v[to->n] = d->found[i];
        to->v[to->n++].error = error;
    }
    return 0;
}

static bool is_of_one(const struct acl_filter *f)
{
    return f->type > ACL_RESOURCE_ANY && f->kind >= ACL_LITERAL && !str_is_null(f->name);
}

struct filter_chain { /* by their places, ascending; -1 none */
    struct hnode node;
    struct acl_pattern pattern;
    int first, last;
};

/* Filters that name one pattern, by it; and all others. */
struct filter_index {
    const struct acl_filter *filters;
    struct hmap by_pattern;
    struct filter_chain *chains, others;
    int *next; /* of each filter, in its chain */
};

static bool same_chain(const struct hnode *h, const void *key)
{
    return acl_pattern_eq(&hmap_entry(h, struct filter_chain, node)->pattern, key);
}

static struct filter_chain *chain_of(const struct filter_index *x, const struct acl_pattern *p)
{
    struct hnode *h = hmap_find(&x->by_pattern, acl_pattern_hash(p), same_chain, p);
    return h ? hmap_entry(h, struct filter_chain, node) : NULL;
}

static void chain_add(struct filter_index *x, struct filter_chain *c, int filter)
{
    x->next[filter] = -1;
    if (c->first < 0)
        c->first = filter;
    else
        x->next[c->last] = filter;
    c->last = filter;
}

/* 0 or -ENOMEM; the map is to be freed in any case. */
static int index_filters(struct filter_index *x, const struct acl_filter *filters, int n,
                         struct arena *a)
{
    *x = (struct filter_index){.filters = filters,
                               .chains = arena_array(a, struct filter_chain, (size_t)n),
                               .others = {.first = -1},
                               .next = arena_array(a, int, (size_t)n)};
    hmap_init(&x->by_pattern);
    if (!x->chains || !x->next)
        return -ENOMEM;
    for (int i = 0; i < n; i++) {
        struct acl_pattern p = {filters[i].type, filters[i].kind, filters[i].name};
        struct filter_chain *c = is_of_one(&filters[i]) ? chain_of(x, &p) : &x->others;
        if (!c) {
            c = &x->chains[i];
            *c = (struct filter_chain){.pattern = p, .first = -1};
            if (hmap_put(&x->by_pattern, &c->node, acl_pattern_hash(&p)) != 0)
                return -ENOMEM;
        }
        chain_add(x, c, i);
    }
    return 0;
}

/* Those that the pattern fits, in order. Their number. */
static int fit(const struct filter_index *x, const struct acl_pattern *p, int *fits)
{
    const struct filter_chain *c = chain_of(x, p);
    int n = 0, own = c ? c->first : -1, other = x->others.first;
    while (own >= 0 || other >= 0) {
        if (other < 0 || (own >= 0 && own < other)) {
            fits[n++] = own;
            own = x->next[own];
            continue;
        }
        if (acl_filter_matches_pattern(&x->filters[other], p))
            fits[n++] = other;
        other = x->next[other];
    }
    return n;
}

/* The patterns that filters name, when each names one, and there are few of them: they need not
 * be looked for. -1: they do. */
static int named_patterns(const struct acl_filter *filters, int n, struct acl_pattern *out)
{
    int out_n = 0;
    for (int i = 0; i < n; i++) {
        struct acl_pattern p = {filters[i].type, filters[i].kind, filters[i].name};
        int at = 0;
        if (!is_of_one(&filters[i]))
            return -1;
        if (acl_name_problem(p.name)) /* no node's: its path would be none, or another one's */
            continue;
        while (at < out_n && !acl_pattern_eq(&out[at], &p))
            at++;
        out[at] = p;
        out_n += at == out_n;
    }
    return out_n;
}

static int patterns_to_look_at(struct store *s, const struct acl_filter *filters, int n,
                               struct arena *a, struct acl_pattern **out)
{
    enum { FEW = 64 };
    struct acl_stored *all;
    int all_n;
    *out = arena_array(a, struct acl_pattern, (size_t)n + 1);
    int named = n <= FEW && *out ? named_patterns(filters, n, *out) : -1;
    if (named >= 0)
        return named;
    int err = acl_store_load(s, a, &all, &all_n);
    if (!err && !(*out = arena_array(a, struct acl_pattern, (size_t)all_n)))
        err = -ENOMEM;
    named = 0;
    for (int i = 0; !err && i < all_n; i++)
        if (!all[i].status)
            (*out)[named++] = all[i].pattern;
    return err ? err : named;
}

int acl_store_delete(struct store *s, const struct acl_filter *filters, int n, struct arena *a,
                     struct acl_deleted **out, int *out_n, struct acl_changed *changed)
{
    struct acl_pattern *all;
    struct deleted_list list = {0};
    struct filter_index index;
    int *fits = arena_array(a, int, (size_t)n);
    int indexed = index_filters(&index, filters, n, a);
    int all_n = fits && !indexed ? patterns_to_look_at(s, filters, n, a, &all) : -ENOMEM;
    int err = all_n < 0 ? all_n : 0;
    if (!err && changed)
        *changed = (struct acl_changed){.v = arena_array(a, struct acl_pattern, (size_t)all_n)};
    if (!err && changed && !changed->v)
        err = -ENOMEM;
    for (int k = 0; !err && k < all_n; k++) {
        struct arena work;
        int fits_n = fit(&index, &all[k], fits);
        if (!fits_n)
            continue;
        struct deletion d = {.filters = filters, .fits = fits, .fits_n = fits_n, .a = a};
        arena_init(&work, 0);
        int rc = acl_store_update(s, &all[k], remove_entries, &d, &work);
        arena_free(&work);
        if (rc == -EINVAL && !d.found_n) /* no name that the store could have */
            continue;
        if (rc < 0 && !d.found_n && rc != -EBADMSG) /* it has not even been read */
            err = rc;
        else
            err = add_deleted(&list, &d, rc < 0 ? rc : 0, a);
        if (rc)
            note_changed(changed, &all[k]);
    }
    hmap_free(&index.by_pattern);
    *out = list.v;
    *out_n = list.n;
    return err;
}

/* ---- finding ---- */

int acl_store_find(struct store *s, const struct acl_filter *f, struct arena *a,
                   struct acl_binding **out, int *n)
{
    struct acl_stored *all;
    int all_n, most = 0, err = acl_store_load(s, a, &all, &all_n);
    *n = 0;
    *out = NULL;
    for (int k = 0; !err && k < all_n; k++)
        most += all[k].node.n;
    if (!err && !(*out = arena_array(a, struct acl_binding, (size_t)most)))
        err = -ENOMEM;
    for (int k = 0; !err && k < all_n; k++) {
        if (!acl_filter_matches_pattern(f, &all[k].pattern))
            continue;
        for (int i = 0; i < all[k].node.n; i++)
            if (acl_filter_matches_entry(f, &all[k].node.entries[i]))
                (*out)[(*n)++] = (struct acl_binding){all[k].pattern, all[k].node.entries[i]};
    }
    return err;
}
