/* tool_partition_file.h - files that name partitions: {"partitions": [{"topic": "foo",
 * "partition": 1}, ...]}, as several tools read them. */
#ifndef TOOLS_TOOL_PARTITION_FILE_H
#define TOOLS_TOOL_PARTITION_FILE_H

#include <jansson.h>
#include <kafka/common.h>
#include <stdbool.h>

struct partition_file {
    json_t *document; /* the topics' names point into it */
    kafka_topic_partition_t *v;
    int64_t *offsets; /* of each; NULL when no offsets were asked for */
    size_t n;
};

/* Ends the process with a line when the file cannot be read, is not such a document, or names a
 * partition twice. */
struct partition_file partition_file_read(const char *path, bool with_offsets);
void partition_file_free(struct partition_file *f);

#endif
