/* zookeeper_log.h - what the ZooKeeper library has to say, as lines of our own log. */
#ifndef METADATA_ZOOKEEPER_LOG_H
#define METADATA_ZOOKEEPER_LOG_H

/* Give it to zookeeper_init2. While servers cannot be reached the library complains at each try:
 * one line in ten seconds comes through, the others at level DEBUG. @thread any */
void zookeeper_log(const char *message);
/* How much the library is to say at all: warnings, or with DEBUG on everything. Process-wide. */
void zookeeper_log_init(void);

#endif
