/* tool_groups_reset.c - kafka-consumer-groups --reset-offsets: the new offsets of each group by one
 * of eight scenarios, shown, and with --execute committed. Only a group without members can be
 * reset: others would overwrite it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "protocol/errors.h"
#include "tools/tool_groups.h"
#include "tools/tool_groups_plan.h"
#include "tools/tool_io.h"
#include "tools/tool_when.h"

/* The partitions of one group and where they are to stand. */
struct reset {
    const char *group;
    struct groups_parts parts;
    int64_t *offsets;   /* as many */
    int64_t *committed; /* -1: nothing */
};

struct resetting {
    struct groups *g;
    struct plan_file file;
    struct reset *done; /* the groups that could be reset */
    size_t done_n;
};

/* ---- offsets of the logs ---- */

static void find_offsets(struct groups *g, const struct reset *r, int64_t time, const char *what,
                         int64_t *out)
{
    kafka_err_t *errs = groups_array(r->parts.n, sizeof *errs);
    groups_log_offsets(g, r->parts.v, r->parts.n, time, out, errs);
    for (size_t i = 0; i < r->parts.n; i++)
        if (errs[i] != KAFKA_OK)
            tool_usage_error(g->tool, "Error getting %s offset of topic partition: %s-%d: %s", what,
                             r->parts.v[i].topic, r->parts.v[i].partition, kafka_err_text(errs[i]));
    free(errs);
}

/* Offsets outside the log are moved to its end on that side. */
static void clamp(struct groups *g, struct reset *r)
{
    int64_t *starts = groups_array(r->parts.n, sizeof *starts);
    int64_t *ends = groups_array(r->parts.n, sizeof *ends);
    find_offsets(g, r, KAFKA_OFFSET_BEGINNING, "starting", starts);
    find_offsets(g, r, KAFKA_OFFSET_END, "ending", ends);
    for (size_t i = 0; i < r->parts.n; i++) {
        bool low = r->offsets[i]<starts[i], high = r->offsets[i]> ends[i];
        int64_t to = low ? starts[i] : ends[i];
        if (!low && !high)
            continue;
        tool_log_warning("New offset (%" PRId64 ") is %s offset for topic partition %s-%d. Value "
                         "will be set to %" PRId64,
                         r->offsets[i], low ? "lower than earliest" : "higher than latest",
                         r->parts.v[i].topic, r->parts.v[i].partition, to);
        r->offsets[i] = to;
    }
    free(starts);
    free(ends);
}

/* ---- scenarios ---- */

static void to_time(struct groups *g, struct reset *r, int64_t time)
{
    int64_t *ends = groups_array(r->parts.n, sizeof *ends);
    find_offsets(g, r, time, "timestamp", r->offsets);
    find_offsets(g, r, KAFKA_OFFSET_END, "ending", ends);
    for (size_t i = 0; i < r->parts.n; i++) {
        if (r->offsets[i] >= 0)
            continue;
        fprintf(g->args->export_csv ? stderr : stdout,
                "\nWarn: Partition %d from topic %s is empty. Falling back to latest known "
                "offset.\n",
                r->parts.v[i].partition, r->parts.v[i].topic);
        r->offsets[i] = ends[i];
    }
    free(ends);
}

static void to_datetime(struct groups *g, struct reset *r)
{
    int64_t ms;
    if (!tool_when_datetime(g->args->to_datetime, &ms))
        tool_usage_error(g->tool,
                         "--to-datetime %s: a time like 2024-02-29T12:30:00.000 is wanted, in UTC "
                         "unless a zone like +01:00 follows",
                         g->args->to_datetime);
    to_time(g, r, ms);
}

static void by_duration(struct groups *g, struct reset *r)
{
    int64_t ms, now = clock_wall_ms(clock_real());
    if (!tool_when_duration(g->args->by_duration, &ms))
        tool_usage_error(g->tool, "--by-duration %s: a duration like P1DT2H30M or PT10S is wanted",
                         g->args->by_duration);
    if (__builtin_sub_overflow(now, ms, &ms) || ms < 0)
        ms = 0;
    to_time(g, r, ms);
}

static void to_earliest(struct groups *g, struct reset *r)
{
    find_offsets(g, r, KAFKA_OFFSET_BEGINNING, "starting", r->offsets);
}

static void to_latest(struct groups *g, struct reset *r)
{
    find_offsets(g, r, KAFKA_OFFSET_END, "ending", r->offsets);
}

static void to_offset(struct groups *g, struct reset *r)
{
    for (size_t i = 0; i < r->parts.n; i++)
        r->offsets[i] = g->args->to_offset;
    clamp(g, r);
}

static void shift_by(struct groups *g, struct reset *r)
{
    for (size_t i = 0; i < r->parts.n; i++) {
        if (r->committed[i] < 0)
            tool_usage_error(g->tool,
                             "Cannot shift offset for partition %s-%d since there is no current "
                             "committed offset",
                             r->parts.v[i].topic, r->parts.v[i].partition);
        if (__builtin_add_overflow(r->committed[i], g->args->shift_by, &r->offsets[i]))
            r->offsets[i] = g->args->shift_by < 0 ? INT64_MIN : INT64_MAX;
    }
    clamp(g, r);
}

static void to_current(struct groups *g, struct reset *r)
{
    to_latest(g, r);
    for (size_t i = 0; i < r->parts.n; i++)
        if (r->committed[i] >= 0)
            r->offsets[i] = r->committed[i];
}

static bool is_of_group(const struct plan_row *row, const char *group)
{
    return !row->group || strcmp(row->group, group) == 0;
}

/* The partitions of a group in the file. */
static void take_rows(struct resetting *x, struct reset *r)
{
    for (size_t i = 0; i < x->file.n; i++)
        if (is_of_group(&x->file.v[i], r->group))
            groups_parts_add(&r->parts, x->file.v[i].topic, strlen(x->file.v[i].topic),
                             x->file.v[i].partition);
    groups_parts_sort(&r->parts);
}

static void from_file(struct resetting *x, struct reset *r)
{
    for (size_t i = 0; i < x->file.n; i++) {
        const struct plan_row *row = &x->file.v[i];
        kafka_topic_partition_t key = {row->topic, row->partition};
        kafka_topic_partition_t *at =
            is_of_group(row, r->group) && r->parts.n
                ? bsearch(&key, r->parts.v, r->parts.n, sizeof key, groups_by_partition)
                : NULL;
        if (at)
            r->offsets[at - r->parts.v] = row->offset;
    }
    clamp(x->g, r);
}

static void choose_offsets(struct resetting *x, struct reset *r)
{
    const struct groups_args *a = x->g->args;
    if (a->from_file)
        from_file(x, r);
    else if (a->to_offset != TOOL_NOT_GIVEN)
        to_offset(x->g, r);
    else if (a->shift_by != TOOL_NOT_GIVEN)
        shift_by(x->g, r);
    else if (a->to_datetime)
        to_datetime(x->g, r);
    else if (a->by_duration)
        by_duration(x->g, r);
    else if (a->to_earliest)
        to_earliest(x->g, r);
    else if (a->to_latest)
        to_latest(x->g, r);
    else
        to_current(x->g, r);
}

/* ---- one group ---- */

static void choose_parts(struct resetting *x, struct reset *r, const kafka_offset_list_t *committed)
{
    struct groups *g = x->g;
    if (g->args->from_file) {
        take_rows(x, r);
        return;
    }
    if (!g->args->all_topics) {
        r->parts = groups_parts_of_topics(g, NULL);
        return;
    }
    for (size_t i = 0; i < committed->n; i++)
        if (committed->v[i].offset >= 0)
            groups_parts_add(&r->parts, committed->v[i].topic, strlen(committed->v[i].topic),
                             committed->v[i].partition);
    groups_parts_sort(&r->parts);
}

static void note_committed(struct reset *r, const kafka_offset_list_t *committed)
{
    for (size_t i = 0; i < r->parts.n; i++)
        r->committed[i] = -1;
    for (size_t i = 0; i < committed->n; i++) {
        kafka_topic_partition_t key = {committed->v[i].topic, committed->v[i].partition};
        kafka_topic_partition_t *at =
            r->parts.n ? bsearch(&key, r->parts.v, r->parts.n, sizeof key, groups_by_partition)
                       : NULL;
        if (at)
            r->committed[at - r->parts.v] = committed->v[i].offset;
    }
}

static void commit(struct groups *g, const struct reset *r)
{
    kafka_offset_t *offsets = groups_array(r->parts.n, sizeof *offsets);
    for (size_t i = 0; i < r->parts.n; i++)
        offsets[i] = (kafka_offset_t){.topic = r->parts.v[i].topic,
                                      .partition = r->parts.v[i].partition,
                                      .leader_epoch = -1,
                                      .offset = r->offsets[i]};
    if (r->parts.n)
        groups_check(kafka_admin_alter_group_offsets(g->admin, r->group, offsets, r->parts.n,
                                                     g->timeout_ms, NULL));
    free(offsets);
}

static void reset_group(struct resetting *x, const char *group)
{
    struct groups *g = x->g;
    struct reset r = {.group = group};
    kafka_offset_list_t *committed;
    groups_check(kafka_admin_group_offsets(g->admin, group, NULL, 0, 0, g->timeout_ms, &committed));
    choose_parts(x, &r, committed);
    r.offsets = groups_array(r.parts.n, sizeof *r.offsets);
    r.committed = groups_array(r.parts.n, sizeof *r.committed);
    note_committed(&r, committed);
    kafka_offset_list_free(committed);
    if (g->args->from_file && r.parts.n == 0)
        groups_error(g, "No reset plan for group %s found", group);
    choose_offsets(x, &r);
    if (g->args->execute)
        commit(g, &r);
    x->done[x->done_n++] = r;
}

/* ---- output ---- */

static void print_table(const struct resetting *x)
{
    printf("\n%-30s %-30s %-10s %-15s\n", "GROUP", "TOPIC", "PARTITION", "NEW-OFFSET");
    for (size_t i = 0; i < x->done_n; i++)
        for (size_t k = 0; k < x->done[i].parts.n; k++)
            printf("%-30s %-30s %-10d %-15" PRId64 "\n", x->done[i].group,
                   x->done[i].parts.v[k].topic, x->done[i].parts.v[k].partition,
                   x->done[i].offsets[k]);
}

static void print_csv(const struct resetting *x, bool one_group)
{
    for (size_t i = 0; i < x->done_n; i++) {
        for (size_t k = 0; k < x->done[i].parts.n; k++) {
            if (!one_group) {
                plan_put_field(stdout, x->done[i].group);
                putchar(',');
            }
            plan_put_field(stdout, x->done[i].parts.v[k].topic);
            printf(",%d,%" PRId64 "\n", x->done[i].parts.v[k].partition, x->done[i].offsets[k]);
        }
    }
}

static bool is_idle(struct groups *g, const kafka_group_info_t *info)
{
    if (info->err == KERR_GROUP_ID_NOT_FOUND)
        return true; /* to be made */
    groups_check_of("group", info->group_id, info->err);
    if (strcmp(info->state, "Empty") == 0 || strcmp(info->state, "Dead") == 0)
        return true;
    groups_error(g,
                 "Assignments can only be reset if the group '%s' is inactive, but the current "
                 "state is %s.",
                 info->group_id, info->state);
    return false;
}

void groups_reset(struct groups *g)
{
    struct groups_names names = groups_choose(g);
    struct resetting x = {.g = g, .done = groups_array(names.n, sizeof *x.done)};
    kafka_group_infos_t *infos = NULL;
    bool one_group = !g->args->all_groups && g->args->group.n == 1;
    if (g->args->from_file)
        x.file = plan_file_read(g->args->from_file, one_group);
    if (names.n)
        groups_check(
            kafka_admin_describe_groups(g->admin, names.v, names.n, g->timeout_ms, &infos));
    for (size_t i = 0; infos && i < infos->n; i++)
        if (is_idle(g, &infos->v[i]))
            reset_group(&x, names.v[i]);
    if (g->args->export_csv)
        print_csv(&x, one_group);
    else
        print_table(&x);
    for (size_t i = 0; i < x.done_n; i++) {
        groups_parts_free(&x.done[i].parts);
        free(x.done[i].offsets);
        free(x.done[i].committed);
    }
    free(x.done);
    plan_file_free(&x.file);
    kafka_group_infos_free(infos);
    groups_names_free(&names);
}
