/* tool_reading.h - how the tools that read records get at them: as a member of a group, or from
 * partitions that are assigned (one, or all of a topic). */
#ifndef TOOLS_TOOL_READING_H
#define TOOLS_TOOL_READING_H

#include <kafka/consumer.h>

struct reading {
    kafka_consumer_t *consumer; /* owned */
    const char *topic;
    kafka_topic_partition_t *parts; /* assigned; owned */
    size_t parts_n;
};

/* Makes the consumer, or ends the process. */
void reading_open(struct reading *r, const kafka_conf_t *conf, const char *topic);
void reading_close(struct reading *r);

/* Joins the group of group.id for the topic, or for those whose names match the pattern (a list of
 * regular expressions, by commas); ends the process when the pattern is none. */
void reading_subscribe(struct reading *r, const char *pattern,
                       const kafka_rebalance_listener_t *listener);
/* A group id as Kafka's tools make one up: the prefix and a number below 100000. */
void reading_random_group(kafka_conf_t *conf, const char *prefix);

/* All partitions of the topic. UNKNOWN_TOPIC_OR_PARTITION while there is none. */
kafka_err_t reading_all(struct reading *r);
/* One partition only. Ends the process when the topic does not have it. */
kafka_err_t reading_one(struct reading *r, int32_t partition, int64_t offset);

/* Records m[from..] were not used: reading goes on with them, and that is what will be committed.
 */
void reading_give_back(struct reading *r, const kafka_messages_t *m, size_t from);

#endif
