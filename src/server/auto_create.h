/* auto_create.h - topics that come into being because a client asked for them: with the broker's
 * defaults, or (internal topics) with their own. One creation of a name at a time in this process.
 *
 * THREADS  any may ask; the answer comes on the executor named. */
#ifndef SERVER_AUTO_CREATE_H
#define SERVER_AUTO_CREATE_H

#include "base/executor.h"
#include "protocol/errors.h"
#include "server/broker.h"

struct auto_create;

int auto_create_new(struct broker *b, struct auto_create **out);
/* No creation may be under way. */
void auto_create_free(struct auto_create *a);

struct topic_permit;

struct auto_topic {
    struct str name; /* legal, not in the metadata cache */
    /* LEADER_NOT_AVAILABLE: made, or there already; UNKNOWN_TOPIC_OR_PARTITION: being made for
     * somebody else; INVALID_REPLICATION_FACTOR and others: cannot be made */
    enum kerr error;
    const struct topic_permit *permit; /* NULL = none is needed; valid until done */
};
/* `topics` are the caller's memory until done, which comes on done_on, never before the return. */
void auto_create_topics(struct auto_create *a, struct auto_topic *topics, int n,
                        struct executor *done_on, void (*done)(void *arg), void *arg);

#endif
