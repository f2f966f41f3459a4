/* tool_groups_plan.h - kafka-consumer-groups --reset-offsets: the file of --from-file, and
 * the plan as CSV. A row is topic,partition,offset when there is one group, else
 * group,topic,partition,offset; fields may be quoted. */
#ifndef TOOLS_TOOL_GROUPS_PLAN_H
#define TOOLS_TOOL_GROUPS_PLAN_H

#include <stdio.h>

#include "tools/tool_groups.h"

struct plan_row {
    char *group; /* NULL: the only one */
    char *topic;
    int32_t partition;
    int64_t offset;
};
struct plan_file {
    struct plan_row *v;
    size_t n, cap;
};

/* Ends the process, naming file and line, when it cannot be read. one_group: rows may leave the
 * group out. */
struct plan_file plan_file_read(const char *path, bool one_group);
void plan_file_free(struct plan_file *f);
/* A field, quoted if it has to be. */
void plan_put_field(FILE *out, const char *text);

#endif
