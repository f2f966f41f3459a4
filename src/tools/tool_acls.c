/* tool_acls.c - kafka-acls' three actions, and the brokers as who is asked. See tool_acls.h. */
#include "tools/tool_acls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_java.h"
#include "tools/tool_visible.h"

void *acls_alloc(struct acls *t, size_t n, size_t size)
{
    void *p = arena_calloc(&t->mem, n + 1, size);
    if (!p)
        tool_die("out of memory");
    return p;
}

void acls_die(const char *exception, const char *text)
{
    tool_print_visible(stdout, "Error while executing ACL command: %s%s%s\n",
                       exception ? exception : "", exception ? ": " : "", text);
    exit(tool_finish(1));
}

/* ---- the brokers ---- */

static void check(kafka_err_t err, const char *message)
{
    char exception[128];
    if (err != KAFKA_OK)
        acls_die(tool_java_exception(err, exception),
                 message && *message ? message : tool_error(err));
}

static const char *keep(struct acls *t, const char *text)
{
    const char *copy = text ? arena_str(&t->mem, str_of(text)).p : NULL;
    if (text && !copy)
        tool_die("out of memory");
    return copy;
}

static void describe(struct acls *t, const kafka_acl_t *filter, kafka_acls_t *out)
{
    char message[512] = "";
    kafka_acls_t *found;
    check(
        kafka_admin_describe_acls(t->admin, filter, t->timeout_ms, message, sizeof message, &found),
        message);
    kafka_acl_t *v = acls_alloc(t, out->n + found->n, sizeof *v);
    if (out->n)
        memcpy(v, out->v, out->n * sizeof *v);
    for (size_t i = 0; i < found->n; i++) {
        v[out->n + i] = found->v[i];
        v[out->n + i].name = keep(t, found->v[i].name);
        v[out->n + i].principal = keep(t, found->v[i].principal);
        v[out->n + i].host = keep(t, found->v[i].host);
    }
    *out = (kafka_acls_t){v, out->n + found->n};
    kafka_acls_free(found);
}

static void create(struct acls *t, const kafka_acl_t *v, size_t n)
{
    char message[512] = "";
    check(kafka_admin_create_acls(t->admin, v, n, t->timeout_ms, NULL, message, sizeof message),
          message);
}

static void delete (struct acls *t, const kafka_acl_t *filters, size_t n)
{
    kafka_acl_deletions_t *d;
    check(kafka_admin_delete_acls(t->admin, filters, n, t->timeout_ms, &d), NULL);
    for (size_t i = 0; i < d->n; i++) {
        if (d->v[i].err != KAFKA_OK)
            check(d->v[i].err, d->v[i].message ? d->v[i].message : kafka_err_text(d->v[i].err));
        for (size_t k = 0; k < d->v[i].n; k++)
            if (d->v[i].v[k].err != KAFKA_OK)
                check(d->v[i].v[k].err, d->v[i].v[k].message ? d->v[i].v[k].message
                                                             : kafka_err_text(d->v[i].v[k].err));
    }
    kafka_acl_deletions_free(d);
}

const struct acls_source acls_of_brokers = {describe, create, delete};

/* ---- what is printed ---- */

const char *acls_resource_text(struct acls *t, const kafka_acl_t *r)
{
    const char *text = arena_printf(
        &t->mem, "ResourcePattern(resourceType=%s, name=%s, patternType=%s)",
        kafka_acl_resource_name(r->resource_type), r->name ? tool_shown(r->name) : "<any>",
        kafka_acl_pattern_name(r->pattern_type));
    if (!text)
        tool_die("out of memory");
    return text;
}

/* " \t(..)\n\t(..) \n": what Kafka's tools make of a list. */
static void print_entries(const kafka_acl_t *v, size_t n)
{
    putchar(' ');
    for (size_t i = 0; i < n; i++)
        printf("%s\t(principal=%s, host=%s, operation=%s, permissionType=%s)", i ? "\n" : "",
               tool_shown(v[i].principal), tool_shown(v[i].host),
               kafka_acl_operation_name(v[i].operation),
               kafka_acl_permission_name(v[i].permission));
    puts(" ");
}

static void print_block(struct acls *t, const char *what, const kafka_acl_t *resource,
                        const kafka_acl_t *v, size_t n)
{
    printf("%s ACLs for resource `%s`: \n", what, acls_resource_text(t, resource));
    print_entries(v, n);
    putchar('\n');
}

/* ---- list ---- */

static int by_resource(const kafka_acl_t *a, const kafka_acl_t *b)
{
    if (a->resource_type != b->resource_type)
        return a->resource_type - b->resource_type;
    int names = strcmp(a->name, b->name);
    return names ? names : a->pattern_type - b->pattern_type;
}

/* Kafka's tools have them in no order that one could count on. */
static int in_order(const void *x, const void *y)
{
    const kafka_acl_t *a = x, *b = y;
    int c = by_resource(a, b);
    if (!c)
        c = strcmp(a->principal, b->principal);
    if (!c)
        c = strcmp(a->host, b->host);
    if (!c)
        c = a->permission - b->permission;
    return c ? c : a->operation - b->operation;
}

/* One block for each resource; of one principal, or (NULL) of all. Several filters may have found
 * the same. */
static void print_all(struct acls *t, const kafka_acls_t *all, const char *principal)
{
    kafka_acl_t *v = acls_alloc(t, all->n, sizeof *v);
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < all->n; i++)
        if (!principal || strcmp(all->v[i].principal, principal) == 0)
            v[n++] = all->v[i];
    qsort(v, n, sizeof *v, in_order);
    for (size_t i = 0; i < n; i++)
        if (!kept || in_order(&v[kept - 1], &v[i]))
            v[kept++] = v[i];
    for (size_t from = 0, to; from < kept; from = to) {
        for (to = from + 1; to < kept && by_resource(&v[from], &v[to]) == 0; to++)
            ;
        print_block(t, "Current", &v[from], v + from, to - from);
    }
}

static kafka_acl_t any_acl_of(const kafka_acl_t *resource)
{
    kafka_acl_t filter = *resource;
    filter.operation = KAFKA_ACL_ANY;
    filter.permission = KAFKA_ACL_PERMISSION_ANY;
    return filter;
}

static kafka_acls_t find(struct acls *t, const struct acls_wishes *w)
{
    kafka_acls_t all = {NULL, 0};
    for (size_t i = 0; i < w->n; i++) {
        kafka_acl_t filter = any_acl_of(&w->v[i].resource);
        t->source->describe(t, &filter, &all);
    }
    return all;
}

void acls_list(struct acls *t)
{
    const struct tool_texts *principals = &t->args->principals;
    kafka_acls_t all = find(t, &t->wishes);
    if (!principals->n)
        print_all(t, &all, NULL);
    for (size_t i = 0; i < principals->n; i++) {
        printf("ACLs for principal `%s`\n", principals->v[i]);
        print_all(t, &all, principals->v[i]);
    }
}

/* ---- add, remove ---- */

void acls_add(struct acls *t)
{
    for (size_t i = 0; i < t->wishes.n; i++) {
        const struct acls_wish *w = &t->wishes.v[i];
        print_block(t, "Adding", &w->resource, w->v, w->n);
        fflush(stdout);
        t->source->create(t, w->v, w->n);
    }
}

static bool confirmed(const struct acls *t)
{
    char *line = NULL;
    size_t room = 0;
    fflush(stdout);
    ssize_t n = getline(&line, &room, stdin);
    while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
        line[--n] = 0;
    bool yes = n == 1 && (*line == 'y' || *line == 'Y');
    free(line);
    return yes;
}

static bool ask(struct acls *t, const struct acls_wish *w)
{
    if (t->args->force)
        return true;
    if (w->n == 0) {
        printf("Are you sure you want to delete all ACLs for resource filter `%s`? (y/n)\n",
               acls_resource_text(t, &w->resource));
    } else {
        puts("Are you sure you want to remove ACLs: ");
        print_entries(w->v, w->n);
        printf(" from resource filter `%s`? (y/n)\n", acls_resource_text(t, &w->resource));
    }
    return confirmed(t);
}

void acls_remove(struct acls *t)
{
    for (size_t i = 0; i < t->wishes.n; i++) {
        const struct acls_wish *w = &t->wishes.v[i];
        kafka_acl_t all = any_acl_of(&w->resource);
        if (ask(t, w))
            t->source->delete (t, w->n ? w->v : &all, w->n ? w->n : 1);
    }
}
