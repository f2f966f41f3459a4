/* tool_reading.h - reading whole topics without a group: all partitions of a topic, or of all
 * topics that match a pattern, are assigned; new ones are taken up as they appear. */
#ifndef TOOLS_TOOL_READING_H
#define TOOLS_TOOL_READING_H

#include <kafka/admin.h>
#include <kafka/consumer.h>

#include "tools/tool_regex.h"

struct reading {
    kafka_consumer_t *consumer; /* owned */
    kafka_admin_t *admin;       /* owned; with a pattern */
    const char *topic;          /* NULL: by pattern */
    struct tool_regex pattern;
    kafka_topic_partition_t *parts; /* owned, with their names */
    size_t parts_n;
    int64_t refresh_ms, next_refresh_ms;
    bool told; /* that the topic is missing */
};

/* Either topic or pattern. Makes the clients, or ends the process. */
void reading_open(struct reading *r, const kafka_conf_t *conf, const char *topic,
                  const char *pattern);
void reading_close(struct reading *r);
/* Looks, when it is time, what partitions there are, and assigns those that are new. Blocks while
 * no broker can be reached, at most default.api.timeout.ms; kafka_consumer_wakeup ends that.
 * Missing topics are waited for, with one warning. */
kafka_err_t reading_refresh(struct reading *r);
/* One partition only, no refreshes. Ends the process when the topic does not have it. */
kafka_err_t reading_one(struct reading *r, int32_t partition, int64_t offset);
/* As kafka_consumer_poll, with refreshes in between. */
kafka_err_t reading_poll(struct reading *r, int64_t timeout_ms, kafka_messages_t **out);

#endif
