/* tool_groups_describe.c - kafka-consumer-groups --describe: offsets, members, state. Every line
 * has its line end in front, so that tables of several groups stand below each other. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/errors.h"
#include "tools/tool_groups.h"
#include "tools/tool_io.h"
#include "tools/tool_visible.h"

/* ---- what can be said of a group at all ---- */

static bool one_of(const char *state, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(*list, state) == 0)
            return true;
    return false;
}

/* Tells what stands above the table; is there one? */
static bool introduce(struct groups *g, const kafka_group_info_t *info, size_t rows)
{
    static const char *const rebalancing[] = {"PreparingRebalance", "CompletingRebalance",
                                              "Assigning", "Reconciling", NULL};
    if (info->err == KERR_GROUP_ID_NOT_FOUND || strcmp(info->state, "Dead") == 0) {
        groups_error(g, "Consumer group '%s' does not exist.", info->group_id);
        return false;
    }
    fflush(stdout);
    if (strcmp(info->state, "Empty") == 0)
        tool_print_visible(stderr, "\nConsumer group '%s' has no active members.\n",
                           info->group_id);
    else if (one_of(info->state, rebalancing))
        tool_print_visible(stderr, "\nWarning: Consumer group '%s' is rebalancing.\n",
                           info->group_id);
    g->open_line = rows > 0;
    return rows > 0;
}

static size_t longer(size_t a, const char *text)
{
    size_t n = text ? strlen(tool_shown(text)) : 0;
    return n > a ? n : a;
}

static const char *or_dash(const char *text)
{
    return text && *text ? tool_shown(text) : "-";
}

/* ---- offsets ---- */

struct row {
    kafka_topic_partition_t tp;
    const kafka_member_info_t *member; /* NULL: nobody has it */
    int64_t committed, end;            /* -1: unknown */
};

struct table {
    const kafka_group_info_t *info;
    struct row *rows;
    size_t n;
};

static int by_count(const void *a, const void *b)
{
    const kafka_member_info_t *const *x = a, *const *y = b;
    if ((*x)->assigned_n != (*y)->assigned_n)
        return (*x)->assigned_n < (*y)->assigned_n ? 1 : -1;
    return strcmp((*x)->member_id, (*y)->member_id);
}

static int by_row(const void *a, const void *b)
{
    return groups_by_partition(&((const struct row *)a)->tp, &((const struct row *)b)->tp);
}

/* Rows of members, those with the most partitions first. */
static void add_assigned(struct table *t)
{
    const kafka_member_info_t **members = groups_array(t->info->members_n, sizeof *members);
    for (size_t i = 0; i < t->info->members_n; i++)
        members[i] = &t->info->members[i];
    if (t->info->members_n)
        qsort(members, t->info->members_n, sizeof *members, by_count);
    for (size_t i = 0; i < t->info->members_n; i++) {
        size_t first = t->n;
        for (size_t k = 0; k < members[i]->assigned_n; k++)
            t->rows[t->n++] = (struct row){members[i]->assigned[k], members[i], -1, -1};
        if (t->n > first)
            qsort(t->rows + first, t->n - first, sizeof *t->rows, by_row);
    }
    free(members);
}

static int by_row_behind(const void *a, const void *b)
{
    return by_row(*(const struct row *const *)a, *(const struct row *const *)b);
}

static void add_committed(struct table *t, const kafka_offset_list_t *offsets)
{
    size_t assigned = t->n;
    struct row **sorted = groups_array(assigned, sizeof *sorted);
    for (size_t i = 0; i < assigned; i++)
        sorted[i] = &t->rows[i];
    if (assigned)
        qsort(sorted, assigned, sizeof *sorted, by_row_behind);
    for (size_t i = 0; i < offsets->n; i++) {
        const kafka_offset_t *o = &offsets->v[i];
        struct row new = {{o->topic, o->partition}, NULL, o->offset, -1}, *key = &new;
        struct row **found =
            assigned ? bsearch(&key, sorted, assigned, sizeof *sorted, by_row_behind) : NULL;
        if (found)
            (*found)->committed = o->offset;
        else if (o->offset >= 0)
            t->rows[t->n++] = new;
    }
    free(sorted);
    if (t->n > assigned)
        qsort(t->rows + assigned, t->n - assigned, sizeof *t->rows, by_row);
}

static void find_ends(struct groups *g, struct table *t)
{
    kafka_topic_partition_t *tps = groups_array(t->n, sizeof *tps);
    int64_t *ends = groups_array(t->n, sizeof *ends);
    kafka_err_t *errs = groups_array(t->n, sizeof *errs);
    for (size_t i = 0; i < t->n; i++)
        tps[i] = t->rows[i].tp;
    groups_log_offsets(g, tps, t->n, KAFKA_OFFSET_END, ends, errs);
    for (size_t i = 0; i < t->n; i++)
        t->rows[i].end = errs[i] == KAFKA_OK ? ends[i] : -1;
    free(tps);
    free(ends);
    free(errs);
}

static const char *number(int64_t v, bool known, char out[24])
{
    if (known)
        snprintf(out, 24, "%" PRId64, v);
    else
        strcpy(out, "-");
    return out;
}

static void print_offsets(const struct table *t)
{
    size_t group = longer(15, t->info->group_id), topic = 15, id = 15, host = 15;
    for (size_t i = 0; i < t->n; i++) {
        const struct row *r = &t->rows[i];
        topic = longer(topic, r->tp.topic);
        id = longer(id, r->member ? r->member->member_id : NULL);
        host = longer(host, r->member ? r->member->host : NULL);
    }
    printf("\n%-*s %-*s %-10s %-15s %-15s %-15s %-*s %-*s %s", (int)group, "GROUP", (int)topic,
           "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", (int)id, "CONSUMER-ID",
           (int)host, "HOST", "CLIENT-ID");
    for (size_t i = 0; i < t->n; i++) {
        const struct row *r = &t->rows[i];
        char at[24], end[24], lag[24];
        printf("\n%-*s %-*s %-10d %-15s %-15s %-15s %-*s %-*s %s", (int)group,
               tool_shown(t->info->group_id), (int)topic, r->tp.topic, r->tp.partition,
               number(r->committed, r->committed >= 0, at), number(r->end, r->end >= 0, end),
               number(r->end - r->committed, r->committed >= 0 && r->end >= 0, lag), (int)id,
               or_dash(r->member ? r->member->member_id : NULL), (int)host,
               or_dash(r->member ? r->member->host : NULL),
               or_dash(r->member ? r->member->client_id : NULL));
    }
}

static void describe_offsets(struct groups *g, const kafka_group_info_t *info)
{
    struct table t = {.info = info};
    kafka_offset_list_t *offsets = NULL;
    size_t most = 0;
    if (info->err == KAFKA_OK && strcmp(info->state, "Dead") != 0)
        groups_check(kafka_admin_group_offsets(g->admin, info->group_id, NULL, 0, 0, g->timeout_ms,
                                               &offsets));
    for (size_t i = 0; i < info->members_n; i++)
        most += info->members[i].assigned_n;
    t.rows = groups_array(most + (offsets ? offsets->n : 0), sizeof *t.rows);
    add_assigned(&t);
    if (offsets)
        add_committed(&t, offsets);
    if (introduce(g, info, t.n)) {
        find_ends(g, &t);
        print_offsets(&t);
    }
    kafka_offset_list_free(offsets);
    free(t.rows);
}

/* ---- members ---- */

/* "orders(0,1), users(2)" */
static void print_assignment(const kafka_member_info_t *m)
{
    kafka_topic_partition_t *sorted = groups_array(m->assigned_n, sizeof *sorted);
    if (m->assigned_n) {
        memcpy(sorted, m->assigned, m->assigned_n * sizeof *sorted);
        qsort(sorted, m->assigned_n, sizeof *sorted, groups_by_partition);
    }
    for (size_t i = 0; i < m->assigned_n; i++) {
        bool same = i > 0 && strcmp(sorted[i - 1].topic, sorted[i].topic) == 0;
        if (!same)
            printf(i ? "), %s(" : "%s(", sorted[i].topic);
        printf(same ? ",%d" : "%d", sorted[i].partition);
    }
    fputs(m->assigned_n ? ")" : "-", stdout);
    free(sorted);
}

struct widths {
    int group, id, instance, host, client; /* instance 0: no such column */
};

static void print_member_head(const struct widths *w, const char *group, const char *id,
                              const char *instance, const char *host, const char *client,
                              const char *partitions)
{
    printf("\n%-*s %-*s ", w->group, tool_shown(group), w->id, tool_shown(id));
    if (w->instance)
        printf("%-*s ", w->instance, tool_shown(instance));
    printf("%-*s %-*s %-15s ", w->host, tool_shown(host), w->client, tool_shown(client),
           partitions);
}

static void describe_members(struct groups *g, const kafka_group_info_t *info)
{
    struct widths w = {(int)longer(15, info->group_id), 15, 0, 15, 15};
    if (!introduce(g, info, info->members_n))
        return;
    for (size_t i = 0; i < info->members_n; i++) {
        const kafka_member_info_t *m = &info->members[i];
        w.id = (int)longer((size_t)w.id, m->member_id);
        w.host = (int)longer((size_t)w.host, m->host);
        w.client = (int)longer((size_t)w.client, m->client_id);
        if (m->instance_id)
            w.instance = (int)longer(w.instance ? (size_t)w.instance : 17, m->instance_id);
    }
    print_member_head(&w, "GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID",
                      "#PARTITIONS");
    if (g->args->verbose)
        fputs("ASSIGNMENT", stdout);
    for (size_t i = 0; i < info->members_n; i++) {
        const kafka_member_info_t *m = &info->members[i];
        char count[24];
        print_member_head(&w, info->group_id, m->member_id, m->instance_id ? m->instance_id : "",
                          m->host, m->client_id, number((int64_t)m->assigned_n, true, count));
        if (g->args->verbose)
            print_assignment(m);
    }
}

/* ---- state ---- */

static void describe_state(struct groups *g, const kafka_group_info_t *info)
{
    char coordinator[512];
    if (!introduce(g, info, 1))
        return;
    snprintf(coordinator, sizeof coordinator, "%s:%d  (%d)", info->coordinator.host,
             info->coordinator.port, info->coordinator.id);
    int width = (int)longer(25, coordinator);
    printf("\n%-*s %-25s %-20s %-15s %s", width, "GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY",
           "STATE", "#MEMBERS");
    printf("\n%-*s %-25s %-20s %-15s %zu", width, tool_shown(info->group_id), coordinator,
           tool_shown(info->assignor), info->state, info->members_n);
}

/* ---- all ---- */

void groups_describe(struct groups *g)
{
    struct groups_names names = groups_choose(g);
    kafka_group_infos_t *infos = NULL;
    if (names.n)
        groups_check(
            kafka_admin_describe_groups(g->admin, names.v, names.n, g->timeout_ms, &infos));
    for (size_t i = 0; infos && i < infos->n && tool_output_ok(); i++) {
        const kafka_group_info_t *info = &infos->v[i];
        if (info->err != KERR_GROUP_ID_NOT_FOUND)
            groups_check_of("group", info->group_id, info->err);
        if (g->args->members)
            describe_members(g, info);
        else if (g->args->state)
            describe_state(g, info);
        else
            describe_offsets(g, info);
    }
    if (g->open_line)
        putchar('\n');
    kafka_group_infos_free(infos);
    groups_names_free(&names);
}
