/* tool_elections.c - see tool_elections.h. */
#include "tools/tool_elections.h"

#include <stdio.h>

#include "protocol/errors.h"
#include "tools/tool_java.h"
#include "tools/tool_visible.h"

/* One line of all that ended so; none without any. */
static void print_list(const kafka_elections_t *e, kafka_err_t err, const char *title)
{
    const char *before = title;
    for (size_t i = 0; i < e->n; i++) {
        if (e->v[i].err != err)
            continue;
        printf("%s%s-%d", before, e->v[i].topic, e->v[i].partition);
        before = ", ";
    }
    if (before != title)
        putchar('\n');
}

int tool_elections_print(const kafka_elections_t *e, const char *what, const char *replicas)
{
    char title[128], class[128];
    size_t failed = 0;
    snprintf(title, sizeof title, "Successfully completed %s for partitions ", what);
    print_list(e, KAFKA_OK, title);
    print_list(e, KERR_ELECTION_NOT_NEEDED, "Valid replica already elected for partitions ");
    for (size_t i = 0; i < e->n; i++) {
        const kafka_election_t *p = &e->v[i];
        if (p->err == KAFKA_OK || p->err == KERR_ELECTION_NOT_NEEDED)
            continue;
        tool_print_visible(stdout, "Error completing %s for partition: %s-%d: %s: %s\n", what,
                           p->topic, p->partition, tool_java_exception(p->err, class),
                           p->error_message ? p->error_message : kafka_err_text(p->err));
        failed++;
    }
    fflush(stdout);
    if (failed)
        fprintf(stderr, "%zu %s could not be elected\n", failed, replicas);
    return failed ? 1 : 0;
}
