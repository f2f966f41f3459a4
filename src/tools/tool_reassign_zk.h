/* tool_reassign_zk.h - the nodes that the 2.x form of kafka-reassign-partitions reads and writes.
 * Failures end the process. @blocks */
#ifndef TOOLS_TOOL_REASSIGN_ZK_H
#define TOOLS_TOOL_REASSIGN_ZK_H

#include "metadata/store.h"
#include "tools/tool_reassign.h"

/* "Partitions reassignment failed due to ...": the store's answer about a node. */
void reassign_zk_fail(struct reassign *r, const char *path, int status) __attribute__((noreturn));

/* All partitions of the topics; topics that are not there are left out. */
struct reassign_plan reassign_zk_topics(struct reassign *r, struct store *s, const char **topics,
                                        size_t n);
/* Brokers that are registered, ascending; names and hosts are not filled in. */
kafka_node_t *reassign_zk_brokers(struct reassign *r, struct store *s, size_t *n);
/* What is under way; false: there is no such node. */
bool reassign_zk_moving(struct reassign *r, struct store *s, struct named_partitions *out);
void reassign_zk_begin(struct reassign *r, struct store *s, const struct reassign_plan *plan);
/* The settings of "topics/t" or "brokers/1": sets these (value NULL: takes it away), and lets the
 * brokers know. Has anything changed? */
bool reassign_zk_configure(struct reassign *r, struct store *s, const char *entity,
                           const kafka_config_t *configs, size_t n);

#endif
