/* leader_hints.h - telling a client who leads now (KIP-951): leader and epoch beside the error, and
 * once for each such leader its endpoint on the listener that the client used.
 *
 * THREADS  one. */
#ifndef SERVER_LEADER_HINTS_H
#define SERVER_LEADER_HINTS_H

#include "base/arena.h"
#include "log/log.h"

struct broker;

struct leader_endpoint {
    int32_t id;
    struct str host;
    int32_t port;
    struct str rack; /* null = none */
};
struct leader_hints {
    struct broker *broker;
    struct str listener;
    struct arena *arena;
    struct leader_endpoint *endpoints; /* in the arena */
    int n, cap;
};

static inline struct leader_hints leader_hints_of(struct broker *b, struct str listener,
                                                  struct arena *a)
{
    return (struct leader_hints){b, listener, a, NULL, 0, 0};
}
/* Who leads tp: the replica here knows best, else the metadata cache; (-1, -1) when nobody knows.
 */
void leader_hints_add(struct leader_hints *h, struct topic_partition tp, int32_t *leader,
                      int32_t *epoch);

#endif
