/* assignor.h - who gets which partition: the assignors that come with the library, custom ones, and
 * the bytes in which members tell the leader what they want and have.
 *
 * Decides only: no clock, socket or lock.
 *
 * Built-in and custom ones share one form (kafka/consumer.h). The members are sorted: those with an
 * instance id first, by it, then the others by member id.
 *
 * THREADS  any: no state; what is passed in belongs to the call. */
#ifndef CLIENT_ASSIGNOR_H
#define CLIENT_ASSIGNOR_H

#include <kafka/consumer.h>

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"

/* Partitions given to each member, as they are handed out. */
struct given {
    size_t member;
    const char *topic; /* the topics array's */
    int32_t partition;
};
struct kafka_assignment {
    struct given *v;
    size_t n, cap;
    size_t members_n;
    const kafka_topic_size_t *topics;
    size_t topics_n;
    struct buf *user_data; /* one per member, or NULL */
    bool failed;           /* something did not fit or was not there */
};

void assignment_init(kafka_assignment_t *a, size_t members_n, const kafka_topic_size_t *topics,
                     size_t topics_n);
void assignment_free(kafka_assignment_t *a);
/* Sorted by member, topic, partition. */
void assignment_sort(kafka_assignment_t *a);

/* "range", "org.apache.kafka.clients.consumer.RangeAssignor": static, or NULL. */
const kafka_assignor_t *assignor_built_in(const char *name);

/* Members as the assignors want them. */
void assignor_sort_members(kafka_group_member_t *members, size_t n);
bool assignor_is_subscribed(const kafka_group_member_t *m, const char *topic);

/* Do racks decide (KIP-881)? Yes when some member (of those subscribed) sits in a rack that has
 * replicas of these topics, and not every partition has replicas in all the same racks. */
bool assignor_racks_matter(const kafka_group_member_t *members, size_t members_n,
                           const kafka_topic_size_t *topics, size_t topics_n);
/* Has the partition a replica in the rack? */
bool assignor_rack_has(const kafka_topic_size_t *topic, int32_t partition, const char *rack);

/* ---- the built-in ones; see kafka_assignor_t.assign ---- */
kafka_err_t assign_range(const kafka_group_member_t *members, size_t members_n,
                         const kafka_topic_size_t *topics, size_t topics_n, kafka_assignment_t *out,
                         void *arg);
kafka_err_t assign_roundrobin(const kafka_group_member_t *members, size_t members_n,
                              const kafka_topic_size_t *topics, size_t topics_n,
                              kafka_assignment_t *out, void *arg);
kafka_err_t assign_sticky(const kafka_group_member_t *members, size_t members_n,
                          const kafka_topic_size_t *topics, size_t topics_n,
                          kafka_assignment_t *out, void *arg);
kafka_err_t assign_cooperative(const kafka_group_member_t *members, size_t members_n,
                               const kafka_topic_size_t *topics, size_t topics_n,
                               kafka_assignment_t *out, void *arg);

/* ---- bytes (protocol type "consumer") ---- */

struct subscription {
    const char *const *topics; /* sorted */
    size_t topics_n;
    const kafka_topic_partition_t *owned; /* sorted */
    size_t owned_n;
    int32_t generation;
    const char *rack; /* NULL: none */
    const void *user_data;
    size_t user_data_len;
};
void subscription_encode(const struct subscription *s, struct buf *out);
/* Into *m (ids untouched), memory from the arena. false when the bytes are not a subscription. */
bool subscription_decode(struct bytes bytes, struct arena *a, kafka_group_member_t *m);
/* tps sorted. */
void assignment_encode(const kafka_topic_partition_t *tps, size_t n, const void *user_data,
                       size_t user_data_len, struct buf *out);
bool assignment_decode(struct bytes bytes, struct arena *a, kafka_topic_partition_t **tps,
                       size_t *n, struct bytes *user_data);

/* The sticky assignor's user data: what a member had, in which generation (-1: not told). */
void sticky_data_encode(const kafka_topic_partition_t *tps, size_t n, int32_t generation,
                        struct buf *out);
bool sticky_data_decode(const void *data, size_t len, struct arena *a,
                        kafka_topic_partition_t **tps, size_t *n, int32_t *generation);

#endif
