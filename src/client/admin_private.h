/* admin_private.h - the inside of an admin client. */
#ifndef CLIENT_ADMIN_PRIVATE_H
#define CLIENT_ADMIN_PRIVATE_H

#include <stdatomic.h>

#include "base/arena.h"
#include "client/cluster.h"
#include "client/coordinator.h"

typedef struct kafka_admin kafka_admin_t;

struct kafka_admin {
    struct cluster *cluster;
    kafka_conf_t *conf;
    atomic_bool no_consumer_describe; /* the brokers know no ConsumerGroupDescribe */
};

/* Where the broker's words about the one thing of a request go. */
struct admin_said {
    char *message; /* may be NULL */
    size_t n;
    struct arena *mem; /* of a result; NULL when the outcome is all */
    void *result;
};
/* Keeps the broker's message, or the code's own text. Returns the code. */
kafka_err_t admin_say(struct admin_said *s, int16_t code, struct str message);
/* A copy in the arena; NULL for null. */
const char *admin_keep(struct arena *a, struct str s);
int32_t admin_request_timeout(int64_t timeout_ms);
/* One operation on the coordinator of a group, or of a transactional id. */
struct admin_group {
    struct coordinator coordinator;
    kafka_admin_t *admin;
};
void admin_group_begin(struct admin_group *g, kafka_admin_t *a, const char *group);
void admin_txn_begin(struct admin_group *g, kafka_admin_t *a, const char *id);
kafka_err_t admin_group_run(struct admin_group *g, struct op *op, int64_t timeout_ms);
void admin_group_end(struct admin_group *g); /* @blocks briefly */

/* UNKNOWN_TOPIC_OR_PARTITION as an outcome that is not retried; turned back before the user sees
 * it. */
#define ADMIN_UNKNOWN_TOPIC (-299)

#endif
