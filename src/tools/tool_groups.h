/* tool_groups.h - kafka-consumer-groups: what its actions share.
 *
 * A failure that concerns a group is told on standard output as `Error: ...`, as Kafka does; the
 * other groups go on, and the exit status is 1 (Kafka's is 0, which scripts cannot use). */
#ifndef TOOLS_TOOL_GROUPS_H
#define TOOLS_TOOL_GROUPS_H

#include <kafka/admin.h>
#include <kafka/consumer.h>

#include "tools/tool_options.h"

struct groups_args {
    const char *bootstrap, *command_config, *state, *type, *from_file, *to_datetime, *by_duration;
    bool list, describe, delete_groups, reset, delete_offsets;
    bool all_groups, all_topics, members, offsets, verbose, dry_run, execute, export_csv;
    bool to_earliest, to_latest, to_current;
    int64_t timeout, to_offset, shift_by;
    struct tool_texts group, topic;
};

struct groups {
    const struct tool *tool;
    const struct groups_args *args;
    kafka_admin_t *admin;
    kafka_consumer_t *consumer; /* for offsets of the logs */
    int64_t timeout_ms;
    bool failed;
    bool open_line; /* standard output stands behind a table's last row */
};

void groups_list(struct groups *g);
void groups_describe(struct groups *g);
void groups_delete(struct groups *g);
void groups_reset(struct groups *g);
void groups_delete_offsets(struct groups *g);

/* ---- for these ---- */

/* "\nError: ..." on standard output; failed. */
void groups_error(struct groups *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The command cannot go on: says so and ends the process with 1, unless err is KAFKA_OK. */
void groups_check(kafka_err_t err);
/* The same of one thing among those that a call was about: "topic 'orders'". */
void groups_check_of(const char *kind, const char *name, kafka_err_t err);
/* "org.apache...Exception: text" in `out`. */
const char *groups_exception(kafka_err_t err, char out[512]);

/* The groups of --group or --all-groups, sorted, each once. Free with groups_names_free. */
struct groups_names {
    const char **v;
    size_t n;
    kafka_group_list_t *list; /* with --all-groups: what the names are borrowed from */
};
struct groups_names groups_choose(struct groups *g);
void groups_names_free(struct groups_names *names);
/* Ends the process when some broker did not tell its groups. */
void groups_check_list(const kafka_group_list_t *list);
/* Those that consumers use: not Connect's workers and the like. */
bool groups_is_of_consumers(const kafka_group_listing_t *l);

int groups_by_partition(const void *a, const void *b); /* kafka_topic_partition_t, for qsort */

/* Partitions named by --topic (`t` or `t:0,1`). A topic that does not exist ends the process, or is
 * added to `unknown`, with partition -1, when that is not NULL. Names and rows are owned:
 * groups_parts_free. */
struct groups_parts {
    kafka_topic_partition_t *v;
    size_t n, cap;
};
struct groups_parts groups_parts_of_topics(struct groups *g, struct groups_parts *unknown);
void groups_parts_add(struct groups_parts *p, const char *topic, size_t topic_n, int32_t partition);
void groups_parts_sort(struct groups_parts *p); /* each once */
void groups_parts_free(struct groups_parts *p);

/* Offsets of the logs for a timestamp (or KAFKA_OFFSET_BEGINNING, _END): offsets[i] is -1 where
 * there is none; errs[i] as it is. */
void groups_log_offsets(struct groups *g, const kafka_topic_partition_t *v, size_t n,
                        int64_t timestamp, int64_t *offsets, kafka_err_t *errs);

/* calloc, or the end. */
void *groups_array(size_t n, size_t size);

#endif
