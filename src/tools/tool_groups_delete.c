/* tool_groups_delete.c - kafka-consumer-groups --delete and --delete-offsets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/errors.h"
#include "tools/tool_groups.h"
#include "tools/tool_visible.h"

/* 'a, b': those whose outcome is (not) OK. */
static void print_names(const struct groups_names *names, const kafka_err_t *errs)
{
    const char *before = "'";
    for (size_t i = 0; i < names->n; i++) {
        if (errs[i] != KAFKA_OK)
            continue;
        printf("%s%s", before, tool_shown(names->v[i]));
        before = ", ";
    }
    putchar('\'');
}

void groups_delete(struct groups *g)
{
    struct groups_names names = groups_choose(g);
    kafka_err_t *errs = groups_array(names.n, sizeof *errs);
    size_t failed = 0;
    if (names.n) {
        kafka_err_t err =
            kafka_admin_delete_groups(g->admin, names.v, names.n, g->timeout_ms, errs);
        for (size_t i = 0; i < names.n; i++)
            failed += errs[i] != KAFKA_OK;
        if (!failed)
            groups_check(err); /* of what concerns all of them */
    }
    if (failed) {
        groups_error(g, "Deletion of some consumer groups failed:");
        for (size_t i = 0; i < names.n; i++) {
            char why[512];
            if (errs[i] != KAFKA_OK)
                printf("* Group '%s' could not be deleted due to: %s\n", tool_shown(names.v[i]),
                       groups_exception(errs[i], why));
        }
    }
    if (failed < names.n || names.n == 0) {
        fputs(failed ? "\nThese consumer groups were deleted successfully: "
                     : "Deletion of requested consumer groups (",
              stdout);
        print_names(&names, errs);
        fputs(failed ? "\n" : ") was successful.\n", stdout);
    }
    free(errs);
    groups_names_free(&names);
}

/* ---- offsets ---- */

static void print_title(struct groups *g, const char *group, kafka_err_t err)
{
    switch (err) {
    case KAFKA_OK:
        fputs("Request succeed for deleting offsets with topic ", stdout);
        for (size_t i = 0; i < g->args->topic.n; i++)
            printf(i ? ", %s" : "%s", g->args->topic.v[i]);
        printf(" group %s\n", group);
        break;
    case KERR_INVALID_GROUP_ID:
        groups_error(g, "'%s' is not valid.", group);
        break;
    case KERR_GROUP_ID_NOT_FOUND:
        groups_error(g, "'%s' does not exist.", group);
        break;
    case KERR_GROUP_AUTHORIZATION_FAILED:
        groups_error(g, "Access to '%s' is not authorized.", group);
        break;
    case KERR_NON_EMPTY_GROUP:
        groups_error(g,
                     "Deleting offsets of a consumer group '%s' is forbidden if the group is not "
                     "empty.",
                     group);
        break;
    case KERR_GROUP_SUBSCRIBED_TO_TOPIC:
    case KERR_TOPIC_AUTHORIZATION_FAILED:
    case KERR_UNKNOWN_TOPIC_OR_PARTITION:
        groups_error(g, "Encounter some partition level error, see the follow-up details:");
        break;
    default:
        groups_error(g, "Encounter some unknown error: %s", kafka_err_text(err));
    }
}

/* Rows of the table; those of topics that do not exist have no partition, and were not asked for.
 */
struct deletion {
    const struct groups_parts *parts, *unknown;
    const kafka_err_t *errs; /* of parts */
};

static void print_row(const char *topic, int32_t partition, kafka_err_t err)
{
    char number[16] = "-", status[512] = "Successful";
    if (partition >= 0)
        snprintf(number, sizeof number, "%d", (int)partition);
    if (err != KAFKA_OK)
        snprintf(status, sizeof status, "Error: :%s", kafka_err_text(err));
    printf("%-30s %-15s %-15s\n", topic, number, status);
}

/* Both lists are in order of topic. */
static void print_rows(const struct deletion *d)
{
    size_t i = 0, k = 0;
    printf("\n%-30s %-15s %-15s\n", "TOPIC", "PARTITION", "STATUS");
    while (i < d->parts->n || k < d->unknown->n) {
        bool known =
            k == d->unknown->n ||
            (i < d->parts->n && groups_by_partition(&d->parts->v[i], &d->unknown->v[k]) < 0);
        if (known)
            print_row(d->parts->v[i].topic, d->parts->v[i].partition, d->errs[i]);
        else
            print_row(d->unknown->v[k].topic, -1, KERR_UNKNOWN_TOPIC_OR_PARTITION);
        i += known;
        k += !known;
    }
}

static void delete_of(struct groups *g, const char *group, const struct groups_parts *parts,
                      const struct groups_parts *unknown)
{
    kafka_err_t *errs = groups_array(parts->n, sizeof *errs), err = KAFKA_OK;
    if (parts->n)
        err = kafka_admin_delete_group_offsets(g->admin, group, parts->v, parts->n, g->timeout_ms,
                                               errs);
    if (err == KAFKA_ERR_TIMED_OUT || err == KAFKA_ERR_ALL_BROKERS_DOWN)
        groups_check(err);
    if (err == KAFKA_OK && unknown->n)
        err = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    print_title(g, group, err);
    print_rows(&(struct deletion){parts, unknown, errs});
    free(errs);
}

void groups_delete_offsets(struct groups *g)
{
    struct groups_names names = groups_choose(g);
    struct groups_parts unknown = {0}, parts = groups_parts_of_topics(g, &unknown);
    groups_parts_sort(&unknown);
    for (size_t i = 0; i < names.n; i++)
        delete_of(g, names.v[i], &parts, &unknown);
    groups_parts_free(&parts);
    groups_parts_free(&unknown);
    groups_names_free(&names);
}
