/* tool_groups_list.c - kafka-consumer-groups --list. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/tool_groups.h"
#include "tools/tool_visible.h"

enum { FILTERS = 16 };

static const char *const states[] = {
    "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty",
    "Assigning",          "Reconciling"};
static const char *const types[] = {"Classic", "Consumer"};

/* The known names of a list, by commas; ends the process at one that is not known. */
static size_t read_filter(struct groups *g, const char *what, const char *text,
                          const char *const *known, size_t known_n, const char *out[FILTERS])
{
    size_t n = 0;
    for (const char *at = text; at && *at && n < FILTERS; at += *at == ',') {
        at += strspn(at, " ");
        size_t len = strcspn(at, ","), word = len, i = 0;
        while (word && at[word - 1] == ' ')
            word--;
        while (i < known_n && (strlen(known[i]) != word || strncasecmp(known[i], at, word) != 0))
            i++;
        if (i == known_n) {
            char all[256] = "";
            for (size_t k = 0; k < known_n; k++)
                snprintf(all + strlen(all), sizeof all - strlen(all), k ? ", %s" : "%s", known[k]);
            tool_usage_error(g->tool, "Invalid %s list '%s'. Valid %ss are: %s", what, text, what,
                             all);
        }
        out[n++] = known[i];
        at += len;
    }
    return n;
}

/* "classic" as "Classic". */
static const char *type_text(const char *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcasecmp(types[i], type) == 0)
            return types[i];
    return *type ? type : "Unknown";
}

static void print_row(struct groups *g, int width, const char *group, const char *type,
                      const char *state)
{
    printf("%-*s", width, tool_shown(group));
    if (g->args->type)
        printf(" %-20s", type);
    if (g->args->state)
        printf(" %-20s", state);
    putchar('\n');
}

static void print_table(struct groups *g, const kafka_group_list_t *list)
{
    size_t width = 15;
    for (size_t i = 0; i < list->n; i++)
        if (groups_is_of_consumers(&list->v[i]) && strlen(tool_shown(list->v[i].group_id)) > width)
            width = strlen(tool_shown(list->v[i].group_id));
    print_row(g, (int)width + 10, "GROUP", "TYPE", "STATE");
    for (size_t i = 0; i < list->n; i++) {
        const kafka_group_listing_t *l = &list->v[i];
        if (groups_is_of_consumers(l))
            print_row(g, (int)width + 10, l->group_id, type_text(l->type),
                      *l->state ? l->state : "Unknown");
    }
}

void groups_list(struct groups *g)
{
    const char *state_filter[FILTERS], *type_filter[FILTERS];
    kafka_group_list_t *list;
    size_t states_n = read_filter(g, "state", g->args->state, states,
                                  sizeof states / sizeof *states, state_filter);
    size_t types_n =
        read_filter(g, "type", g->args->type, types, sizeof types / sizeof *types, type_filter);
    groups_check(kafka_admin_list_groups(g->admin, state_filter, states_n, type_filter, types_n,
                                         g->timeout_ms, &list));
    if (g->args->state || g->args->type)
        print_table(g, list);
    for (size_t i = 0; i < list->n && !g->args->state && !g->args->type; i++)
        if (groups_is_of_consumers(&list->v[i]))
            puts(tool_shown(list->v[i].group_id));
    groups_check_list(list);
    kafka_group_list_free(list);
}
