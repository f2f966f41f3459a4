/* tool_reassign.h - kafka-reassign-partitions: its actions, and what they share.
 *
 * What goes wrong is said on standard output, as Kafka's tool does, and ends the process with 1. */
#ifndef TOOLS_TOOL_REASSIGN_H
#define TOOLS_TOOL_REASSIGN_H

#include "tools/tool_options.h"
#include "tools/tool_reassign_plan.h"

struct reassign_args {
    const char *bootstrap, *zookeeper, *config;
    bool generate, execute, verify, cancel, list;
    const char *plan_file, *topics_file, *brokers;
    int64_t throttle, dir_throttle, wait_ms; /* bytes a second; TOOL_NOT_GIVEN */
    bool additional, preserve_throttles, no_racks;
};

struct reassign {
    const struct reassign_args *args;
    kafka_admin_t *admin;
    int64_t timeout_ms; /* of each call */
    const char *failed; /* what stands in front of a failure: "Error: " */
    struct arena mem;   /* of everything; as long as the process */
};

/* ---- actions ---- */
void reassign_generate(struct reassign *r);
void reassign_execute(struct reassign *r);
void reassign_verify(struct reassign *r);
void reassign_cancel(struct reassign *r);
void reassign_list(struct reassign *r);
/* The actions by `--zookeeper` of the 2.x tools. */
void reassign_by_zookeeper(struct reassign *r);

/* ---- failures ---- */
/* The sentence alone. */
void reassign_refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* `Error: sentence`, then the line of the exception. */
void reassign_fail(struct reassign *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));
/* What a broker, or the client, said; message NULL: the client's last error. */
void reassign_fail_of(struct reassign *r, kafka_err_t err, const char *message)
    __attribute__((noreturn));
/* Its argument, unless that is NULL. */
void *reassign_need(void *p);

/* ---- shared ---- */
/* From the file; ends the process when it is wrong. */
struct reassign_plan reassign_read_plan(struct reassign *r);
const char **reassign_read_topics(struct reassign *r, size_t *n);
/* The plan's partitions as they are now; one that is not there is an error. */
struct reassign_plan reassign_current(struct reassign *r, const struct reassign_plan *plan);
/* What moves; tps of the plan, or NULL: of all. Free it. */
kafka_moving_partitions_t *reassign_moving(struct reassign *r, const struct reassign_plan *plan);
kafka_cluster_info_t *reassign_describe(struct reassign *r, const char **topics, size_t n);
bool reassign_is_there(const kafka_cluster_info_t *info, int32_t broker);
/* "Current partition replica assignment", and how to go back. */
void reassign_print_current(struct reassign *r, const struct reassign_plan *current);
/* New places for all partitions of `current`, on those of the nodes that are allowed. */
struct reassign_plan reassign_propose(struct reassign *r, const struct reassign_plan *current,
                                      const kafka_node_t *nodes, size_t nodes_n,
                                      struct id_list allowed);
void reassign_print_proposal(struct reassign *r, const struct reassign_plan *current,
                             const struct reassign_plan *proposed);

/* ---- throttles (tool_reassign_throttle.c) ---- */
extern const char *const reassign_broker_keys[3]; /* of leaders, followers, log dirs */
extern const char *const reassign_topic_keys[2];  /* of leaders, followers */
void reassign_throttle(struct reassign *r, const struct reassign_moves *m);
void reassign_throttle_dirs(struct reassign *r, const struct reassign_dir_moves *m);
void reassign_clear_throttles(struct reassign *r, const struct reassign_plan *plan);

/* ---- log dirs (tool_reassign_dirs.c) ---- */
enum reassign_dir_state {
    DIR_COMPLETED,
    DIR_MOVING,
    DIR_MOVING_ELSEWHERE, /* to `future` */
    DIR_NOT_MOVING,       /* is in `current` */
    DIR_REPLICA_MISSING,  /* no such replica there, or the broker is not there */
    DIR_MISSING,          /* in no log dir that works */
};
struct reassign_dir_found {
    enum reassign_dir_state state;
    const char *current, *future;
};
/* One for each of m. */
struct reassign_dir_found *reassign_look_at_dirs(struct reassign *r,
                                                 const struct reassign_dir_moves *m);
/* Asks for the moves until all have begun or --timeout is over. */
void reassign_move_dirs(struct reassign *r, struct reassign_dir_moves *m);
/* One round: marks those that have begun. Returns how many are left. */
int reassign_try_dirs(struct reassign *r, struct reassign_dir_moves *m);

#endif
