/* kafka/admin.h - looking at and changing a cluster. Every call blocks, at most timeout_ms (-1:
 * default.api.timeout.ms), and retries on its own what heals by itself (a moved controller, a lost
 * connection), at most `retries` times. Results are
 * freed with the function they name. */
#ifndef KAFKA_ADMIN_H
#define KAFKA_ADMIN_H

#include <kafka/common.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kafka_admin kafka_admin_t;
KAFKA_API kafka_admin_t *kafka_admin_new(const kafka_conf_t *conf, char *err, size_t err_n);
KAFKA_API void kafka_admin_close(kafka_admin_t *a);

typedef struct {
    const char *name, *value;
} kafka_config_t;

typedef struct {
    int32_t partition;
    const int32_t *brokers;
    size_t brokers_n;
} kafka_replica_assignment_t;

/* partitions / replication_factor -1: the broker's defaults. message (may be NULL): the broker's
 * words, cut to fit. */
KAFKA_API kafka_err_t kafka_admin_create_topic(kafka_admin_t *a, const char *topic,
                                               int32_t partitions, int16_t replication_factor,
                                               const kafka_replica_assignment_t *assignment,
                                               size_t assignment_n, const kafka_config_t *configs,
                                               size_t configs_n, int64_t timeout_ms, char *message,
                                               size_t message_n);
KAFKA_API kafka_err_t kafka_admin_delete_topic(kafka_admin_t *a, const char *topic,
                                               int64_t timeout_ms, char *message, size_t message_n);
/* total: the number wanted afterwards. */
KAFKA_API kafka_err_t kafka_admin_create_partitions(kafka_admin_t *a, const char *topic,
                                                    int32_t total,
                                                    const kafka_replica_assignment_t *assignment,
                                                    size_t assignment_n, int64_t timeout_ms,
                                                    char *message, size_t message_n);

typedef struct {
    int32_t id;
    const char *host, *rack; /* rack NULL = none */
    int32_t port;
} kafka_node_t;

typedef struct {
    kafka_err_t err;
    int32_t partition, leader, leader_epoch; /* leader -1 = none */
    const int32_t *replicas, *isr, *offline;
    size_t replicas_n, isr_n, offline_n;
} kafka_partition_info_t;

typedef struct {
    kafka_err_t err;
    const char *name;
    uint8_t id[16]; /* zero when the broker has none */
    int internal;
    const kafka_partition_info_t *partitions;
    size_t partitions_n;
} kafka_topic_info_t;

typedef struct {
    const char *cluster_id;
    int32_t controller; /* -1 unknown */
    const kafka_node_t *nodes;
    size_t nodes_n;
    const kafka_topic_info_t *topics; /* in order of name */
    size_t topics_n;
} kafka_cluster_info_t;

/* topics NULL: all. Never creates topics. Free with kafka_cluster_info_free. */
KAFKA_API kafka_err_t kafka_admin_describe(kafka_admin_t *a, const char *const *topics,
                                           size_t topics_n, int64_t timeout_ms,
                                           kafka_cluster_info_t **out);
KAFKA_API void kafka_cluster_info_free(kafka_cluster_info_t *info);

enum { KAFKA_RESOURCE_TOPIC = 2, KAFKA_RESOURCE_BROKER = 4, KAFKA_RESOURCE_BROKER_LOGGER = 8 };
/* Where a setting's value comes from. */
enum {
    KAFKA_SOURCE_TOPIC = 1,
    KAFKA_SOURCE_BROKER = 2,         /* dynamic, of this broker */
    KAFKA_SOURCE_DEFAULT_BROKER = 3, /* dynamic, of all brokers */
    KAFKA_SOURCE_STATIC = 4,         /* the broker's file */
    KAFKA_SOURCE_DEFAULT = 5,
    KAFKA_SOURCE_BROKER_LOGGER = 6,
};
typedef struct {
    const char *name, *value;
    int source;
} kafka_config_synonym_t;
typedef struct {
    const char *name, *value; /* value NULL = null or sensitive */
    int source;
    int read_only, sensitive;
    const kafka_config_synonym_t *synonyms; /* the value in force first; none from old brokers */
    size_t synonyms_n;
} kafka_config_entry_t;
typedef struct {
    const kafka_config_entry_t *entries;
    size_t entries_n;
} kafka_config_entries_t;
/* Of a topic, of a broker by its id, or (the empty name) of all brokers. Free with
 * kafka_config_entries_free. */
KAFKA_API kafka_err_t kafka_admin_describe_configs(kafka_admin_t *a, int resource_type,
                                                   const char *resource, int64_t timeout_ms,
                                                   kafka_config_entries_t **out);
KAFKA_API void kafka_config_entries_free(kafka_config_entries_t *e);

enum {
    KAFKA_CONFIG_SET = 0,
    KAFKA_CONFIG_DELETE = 1,
    KAFKA_CONFIG_APPEND = 2,   /* to a list */
    KAFKA_CONFIG_SUBTRACT = 3, /* from a list */
};
typedef struct {
    int op;
    const char *name, *value; /* value NULL only with DELETE */
} kafka_config_op_t;
/* Changes the settings that are named. message as above. */
KAFKA_API kafka_err_t kafka_admin_alter_configs(kafka_admin_t *a, int resource_type,
                                                const char *resource, const kafka_config_op_t *ops,
                                                size_t ops_n, int64_t timeout_ms, char *message,
                                                size_t message_n);
/* Replaces all settings of the resource by these. */
KAFKA_API kafka_err_t kafka_admin_replace_configs(kafka_admin_t *a, int resource_type,
                                                  const char *resource,
                                                  const kafka_config_t *configs, size_t configs_n,
                                                  int64_t timeout_ms, char *message,
                                                  size_t message_n);

/* ---- client quotas ---- */
typedef struct {
    const char *type; /* "user", "client-id", "ip" */
    const char *name; /* NULL = the default */
} kafka_quota_entity_t;
typedef struct {
    const char *key;
    double value;
    int remove;
} kafka_quota_op_t;
KAFKA_API kafka_err_t kafka_admin_alter_quotas(kafka_admin_t *a, const kafka_quota_entity_t *entity,
                                               size_t entity_n, const kafka_quota_op_t *ops,
                                               size_t ops_n, int64_t timeout_ms, char *message,
                                               size_t message_n);
enum { KAFKA_MATCH_EXACT = 0, KAFKA_MATCH_DEFAULT = 1, KAFKA_MATCH_ANY = 2 };
typedef struct {
    const char *type;
    int match;
    const char *name; /* EXACT only */
} kafka_quota_filter_t;
typedef struct {
    const char *key;
    double value;
} kafka_quota_value_t;
typedef struct {
    const kafka_quota_entity_t *entity;
    size_t entity_n;
    const kafka_quota_value_t *values;
    size_t values_n;
} kafka_quota_entry_t;
typedef struct {
    const kafka_quota_entry_t *entries;
    size_t entries_n;
} kafka_quotas_t;
/* strict: entities must have no other types than the filter names. Free with kafka_quotas_free. */
KAFKA_API kafka_err_t kafka_admin_describe_quotas(kafka_admin_t *a,
                                                  const kafka_quota_filter_t *filter,
                                                  size_t filter_n, int strict, int64_t timeout_ms,
                                                  char *message, size_t message_n,
                                                  kafka_quotas_t **out);
KAFKA_API void kafka_quotas_free(kafka_quotas_t *q);

/* ---- SCRAM credentials of users ---- */
enum { KAFKA_SCRAM_SHA_256 = 1, KAFKA_SCRAM_SHA_512 = 2 };
typedef struct {
    const char *user;
    int mechanism;
    int remove;           /* takes it away: the two below have no meaning */
    int iterations;       /* 4096 to 16384; 0 = 4096 */
    const char *password; /* salted here: it is not sent */
} kafka_scram_change_t;
/* A user's changes are made together or not at all, whatever becomes of other users. errs[i] is the
 * outcome of changes[i]; the message is of the first that failed, or of the whole. The result
 * itself tells of what concerns all of them. */
KAFKA_API kafka_err_t kafka_admin_alter_scram(kafka_admin_t *a, const kafka_scram_change_t *changes,
                                              size_t n, int64_t timeout_ms, kafka_err_t *errs,
                                              char *message, size_t message_n);
typedef struct {
    int mechanism;
    int iterations;
} kafka_scram_info_t;
typedef struct {
    const char *user;
    kafka_err_t err;
    const char *message; /* with err; or NULL */
    const kafka_scram_info_t *infos;
    size_t infos_n;
} kafka_scram_user_t;
typedef struct {
    const kafka_scram_user_t *users;
    size_t users_n;
} kafka_scram_users_t;
/* users NULL: all that have a credential. Free with kafka_scram_users_free. */
KAFKA_API kafka_err_t kafka_admin_describe_scram(kafka_admin_t *a, const char *const *users,
                                                 size_t n, int64_t timeout_ms, char *message,
                                                 size_t message_n, kafka_scram_users_t **out);
KAFKA_API void kafka_scram_users_free(kafka_scram_users_t *users);

/* ---- delegation tokens (KIP-48): logins of a user that end by themselves, for whom he gives them
 * to. The broker must have a delegation.token.secret.key, and the client have logged in by SASL or
 * with a certificate, and not with a token. Principals are texts "User:name". ---- */
typedef struct {
    const char *id;
    const char *owner;     /* who one is after a login with it */
    const char *requester; /* who made it; a broker before 3.3 does not tell: the owner */
    const char *const *renewers;
    size_t renewers_n;
    int64_t issue_ms, expiry_ms, max_ms; /* since 1970; it must be renewed before expiry_ms */
    /* In base64. SCRAM-SHA-256 or -512 with the id as the user, this as the password, and
     * tokenauth=true in sasl.jaas.config. It is also what a token is renewed and ended by. */
    const char *secret;
} kafka_token_t;
typedef struct {
    const kafka_token_t *v;
    size_t n;
} kafka_tokens_t;
/* One, in out->v[0]. owner NULL: oneself; for somebody else the right CREATE_TOKENS on him is
 * needed. max_life_ms: it ends for good then, -1 = the broker's delegation.token.max.lifetime.ms.
 * When an answer gets lost, a second token may have been made. Free with kafka_tokens_free. */
KAFKA_API kafka_err_t kafka_admin_create_token(kafka_admin_t *a, const char *owner,
                                               const char *const *renewers, size_t renewers_n,
                                               int64_t max_life_ms, int64_t timeout_ms,
                                               kafka_tokens_t **out);
/* For period_ms from now (-1: the broker's delegation.token.expiry.time.ms), not beyond its end; by
 * its owner and its renewers. expiry_ms (may be NULL): until when it is good now. */
KAFKA_API kafka_err_t kafka_admin_renew_token(kafka_admin_t *a, const char *secret,
                                              int64_t period_ms, int64_t timeout_ms,
                                              int64_t *expiry_ms);
/* It expires period_ms from now; -1: it is removed at once, also when it has expired. */
KAFKA_API kafka_err_t kafka_admin_expire_token(kafka_admin_t *a, const char *secret,
                                               int64_t period_ms, int64_t timeout_ms,
                                               int64_t *expiry_ms);
/* Those that one may see, and of these those that an owner of the list owns, asked for or may
 * renew; owners NULL: all. Free with kafka_tokens_free. */
KAFKA_API kafka_err_t kafka_admin_describe_tokens(kafka_admin_t *a, const char *const *owners,
                                                  size_t n, int64_t timeout_ms,
                                                  kafka_tokens_t **out);
KAFKA_API void kafka_tokens_free(kafka_tokens_t *tokens); /* wipes the secrets */

/* ---- ACLs: who may do what. The broker must have an authorizer (SECURITY_DISABLED else), and the
 * client the right to Describe, or Alter, the cluster (CLUSTER_AUTHORIZATION_FAILED else). ---- */

/* The numbers are the protocol's. Those that are marked stand in filters only. */
enum {
    KAFKA_ACL_RESOURCE_ANY = 1, /* filters */
    KAFKA_ACL_RESOURCE_TOPIC = 2,
    KAFKA_ACL_RESOURCE_GROUP = 3,
    KAFKA_ACL_RESOURCE_CLUSTER = 4, /* there is one: KAFKA_ACL_CLUSTER_NAME */
    KAFKA_ACL_RESOURCE_TRANSACTIONAL_ID = 5,
    KAFKA_ACL_RESOURCE_DELEGATION_TOKEN = 6,
    KAFKA_ACL_RESOURCE_USER = 7,
};
#define KAFKA_ACL_CLUSTER_NAME "kafka-cluster"
enum {
    KAFKA_ACL_PATTERN_ANY = 1,      /* filters: literal and prefixed, with just this name */
    KAFKA_ACL_PATTERN_MATCH = 2,    /* filters: all that apply to a resource of this name */
    KAFKA_ACL_PATTERN_LITERAL = 3,  /* the name, or "*" for all names */
    KAFKA_ACL_PATTERN_PREFIXED = 4, /* all names that begin so */
};
enum {
    KAFKA_ACL_ANY = 1, /* filters */
    KAFKA_ACL_ALL = 2,
    KAFKA_ACL_READ = 3,
    KAFKA_ACL_WRITE = 4,
    KAFKA_ACL_CREATE = 5,
    KAFKA_ACL_DELETE = 6,
    KAFKA_ACL_ALTER = 7,
    KAFKA_ACL_DESCRIBE = 8,
    KAFKA_ACL_CLUSTER_ACTION = 9,
    KAFKA_ACL_DESCRIBE_CONFIGS = 10,
    KAFKA_ACL_ALTER_CONFIGS = 11,
    KAFKA_ACL_IDEMPOTENT_WRITE = 12,
    KAFKA_ACL_CREATE_TOKENS = 13,
    KAFKA_ACL_DESCRIBE_TOKENS = 14,
};
enum {
    KAFKA_ACL_PERMISSION_ANY = 1, /* filters */
    KAFKA_ACL_DENY = 2,
    KAFKA_ACL_ALLOW = 3,
};
/* "TOPIC", "PREFIXED", "DESCRIBE_CONFIGS", "ALLOW"; "UNKNOWN" for a number that there is none of.
 * Static. */
KAFKA_API const char *kafka_acl_resource_name(int resource_type);
KAFKA_API const char *kafka_acl_pattern_name(int pattern_type);
KAFKA_API const char *kafka_acl_operation_name(int operation);
KAFKA_API const char *kafka_acl_permission_name(int permission);

/* An ACL; or a filter, where a text that is NULL, and what is marked above, fits all. */
typedef struct {
    int resource_type, pattern_type;
    const char *name;      /* of the resource, or how it begins */
    const char *principal; /* "User:alice"; "User:*": everybody */
    const char *host;      /* an address; "*": from everywhere */
    int operation, permission;
} kafka_acl_t;
typedef struct {
    const kafka_acl_t *v; /* those of a resource behind each other, as the broker tells them */
    size_t n;
} kafka_acls_t;
/* message (may be NULL): the broker's words, cut to fit. Free with kafka_acls_free. */
KAFKA_API kafka_err_t kafka_admin_describe_acls(kafka_admin_t *a, const kafka_acl_t *filter,
                                                int64_t timeout_ms, char *message, size_t message_n,
                                                kafka_acls_t **out);
KAFKA_API void kafka_acls_free(kafka_acls_t *acls); /* NULL is fine */

/* Each is made, or refused, by itself; one that is there already counts as made. errs[i] (errs may
 * be NULL) is the outcome of acls[i]; the result is the first error, the message that one's. Where
 * no broker gave an answer all of errs are the result. */
KAFKA_API kafka_err_t kafka_admin_create_acls(kafka_admin_t *a, const kafka_acl_t *acls, size_t n,
                                              int64_t timeout_ms, kafka_err_t *errs, char *message,
                                              size_t message_n);

typedef struct {
    kafka_acl_t acl;
    kafka_err_t err;     /* of a deletion that failed: it is there still */
    const char *message; /* with err; or NULL */
} kafka_deleted_acl_t;
typedef struct {
    kafka_err_t err;              /* the filter was refused */
    const char *message;          /* with err; or NULL */
    const kafka_deleted_acl_t *v; /* what it fitted */
    size_t n;
} kafka_acl_deletion_t;
typedef struct {
    const kafka_acl_deletion_t *v; /* as the filters */
    size_t n;
} kafka_acl_deletions_t;
/* Deletes all ACLs that fit a filter. The result tells of what concerns all of them. Free with
 * kafka_acl_deletions_free. */
KAFKA_API kafka_err_t kafka_admin_delete_acls(kafka_admin_t *a, const kafka_acl_t *filters,
                                              size_t n, int64_t timeout_ms,
                                              kafka_acl_deletions_t **out);
KAFKA_API void kafka_acl_deletions_free(kafka_acl_deletions_t *d); /* NULL is fine */

/* ---- records and log dirs ---- */
/* Deletes the records below offsets[i] (-1: all that are committed) of each partition. The outcome
 * of each is in errs[i] and, when that is KAFKA_OK, low_watermarks[i]. The result itself tells of
 * what concerns all of them. */
KAFKA_API kafka_err_t kafka_admin_delete_records(kafka_admin_t *a,
                                                 const kafka_topic_partition_t *partitions,
                                                 const int64_t *offsets, size_t n,
                                                 int64_t timeout_ms, int64_t *low_watermarks,
                                                 kafka_err_t *errs);

typedef struct {
    const char *topic;
    int32_t partition;
    int64_t size, offset_lag;
    int future; /* a copy that is to become the replica */
} kafka_log_dir_replica_t;
typedef struct {
    kafka_err_t err;
    const char *path;
    int64_t total_bytes, usable_bytes; /* of the disk; -1 unknown */
    const kafka_log_dir_replica_t *replicas;
    size_t replicas_n;
} kafka_log_dir_t;
typedef struct {
    const kafka_log_dir_t *dirs;
    size_t dirs_n;
} kafka_log_dirs_t;
/* All log dirs of one broker. Free with kafka_log_dirs_free. */
KAFKA_API kafka_err_t kafka_admin_describe_log_dirs(kafka_admin_t *a, int32_t broker,
                                                    int64_t timeout_ms, kafka_log_dirs_t **out);
KAFKA_API void kafka_log_dirs_free(kafka_log_dirs_t *d);

typedef struct {
    int16_t key, min, max;
    const char *name; /* "Produce"; NULL for a key this library does not know */
} kafka_api_version_t;
typedef struct {
    kafka_node_t node;
    kafka_err_t err;
    const kafka_api_version_t *apis;
    size_t apis_n;
} kafka_broker_versions_t;
/* Asks every broker. Free with kafka_broker_versions_free(out, n). */
KAFKA_API kafka_err_t kafka_admin_broker_versions(kafka_admin_t *a, int64_t timeout_ms,
                                                  kafka_broker_versions_t **out, size_t *n);
KAFKA_API void kafka_broker_versions_free(kafka_broker_versions_t *v, size_t n);

/* ---- consumer groups ---- */

typedef struct {
    const char *group_id, *protocol_type; /* "consumer"; "" of a group with offsets only */
    const char *state;                    /* "Stable"; "" from brokers that do not tell */
    const char *type;                     /* "classic", "consumer"; "" */
    int32_t coordinator;
} kafka_group_listing_t;
typedef struct {
    int32_t broker;
    kafka_err_t err;
} kafka_broker_error_t;
typedef struct {
    const kafka_group_listing_t *v; /* in order of id */
    size_t n;
    const kafka_broker_error_t *errors; /* brokers whose groups are missing */
    size_t errors_n;
} kafka_group_list_t;
/* Groups of all brokers; filters may be NULL. UNSUPPORTED when a broker knows no filter. */
KAFKA_API kafka_err_t kafka_admin_list_groups(kafka_admin_t *a, const char *const *states,
                                              size_t states_n, const char *const *types,
                                              size_t types_n, int64_t timeout_ms,
                                              kafka_group_list_t **out);
KAFKA_API void kafka_group_list_free(kafka_group_list_t *list);

typedef struct {
    const char *member_id, *instance_id, *rack; /* instance_id, rack: NULL = none */
    const char *client_id, *host;
    int32_t epoch; /* of the consumer protocol; -1 */
    const kafka_topic_partition_t *assigned;
    size_t assigned_n;
    const kafka_topic_partition_t *target; /* of the consumer protocol */
    size_t target_n;
    const char *const *topics; /* subscribed to */
    size_t topics_n;
    const char *pattern; /* NULL: none */
} kafka_member_info_t;
typedef struct {
    kafka_err_t err;           /* GROUP_ID_NOT_FOUND: there is none */
    const char *error_message; /* NULL: none */
    const char *group_id, *protocol_type, *type, *state;
    const char *assignor; /* "range"; "" while there is none */
    kafka_node_t coordinator;
    int32_t epoch, target_epoch;   /* of the consumer protocol; -1 */
    int32_t authorized_operations; /* bits; INT32_MIN: not told */
    const kafka_member_info_t *members;
    size_t members_n;
} kafka_group_info_t;
typedef struct {
    const kafka_group_info_t *v; /* as asked */
    size_t n;
} kafka_group_infos_t;
KAFKA_API kafka_err_t kafka_admin_describe_groups(kafka_admin_t *a, const char *const *groups,
                                                  size_t n, int64_t timeout_ms,
                                                  kafka_group_infos_t **out);
KAFKA_API void kafka_group_infos_free(kafka_group_infos_t *infos);

/* The result, and errs[i], are KAFKA_OK, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND ...; the result is the
 * first error. */
KAFKA_API kafka_err_t kafka_admin_delete_groups(kafka_admin_t *a, const char *const *groups,
                                                size_t n, int64_t timeout_ms, kafka_err_t *errs);

/* What the group has committed; tps NULL: for all partitions. require_stable: wait for transactions
 * to end. Free with kafka_offset_list_free. */
KAFKA_API kafka_err_t kafka_admin_group_offsets(kafka_admin_t *a, const char *group,
                                                const kafka_topic_partition_t *tps, size_t n,
                                                int require_stable, int64_t timeout_ms,
                                                kafka_offset_list_t **out);
/* Only while the group has no members: else UNKNOWN_MEMBER_ID. errs may be NULL; the result is the
 * first error. */
KAFKA_API kafka_err_t kafka_admin_alter_group_offsets(kafka_admin_t *a, const char *group,
                                                      const kafka_offset_t *offsets, size_t n,
                                                      int64_t timeout_ms, kafka_err_t *errs);
/* Only of topics that no member is subscribed to: else GROUP_SUBSCRIBED_TO_TOPIC. */
KAFKA_API kafka_err_t kafka_admin_delete_group_offsets(kafka_admin_t *a, const char *group,
                                                       const kafka_topic_partition_t *tps, size_t n,
                                                       int64_t timeout_ms, kafka_err_t *errs);
/* Static members by their instance ids; NULL: all members there are now (errs is then not used). */
KAFKA_API kafka_err_t kafka_admin_remove_group_members(kafka_admin_t *a, const char *group,
                                                       const char *const *instance_ids, size_t n,
                                                       const char *reason, int64_t timeout_ms,
                                                       kafka_err_t *errs);

/* ---- leaders ---- */

enum { KAFKA_ELECTION_PREFERRED = 0, KAFKA_ELECTION_UNCLEAN = 1 };
typedef struct {
    const char *topic;
    int32_t partition;
    kafka_err_t err;           /* KAFKA_OK: another leader; ELECTION_NOT_NEEDED; ... */
    const char *error_message; /* NULL: none */
} kafka_election_t;
typedef struct {
    const kafka_election_t *v; /* in order of topic and partition */
    size_t n;
} kafka_elections_t;
/* Makes the first replica of each partition its leader (PREFERRED), or any that lives where there
 * is no leader (UNCLEAN: may lose records). tps NULL: of all partitions that need it, which are
 * then the ones told of. Free with kafka_elections_free. */
KAFKA_API kafka_err_t kafka_admin_elect_leaders(kafka_admin_t *a, int election_type,
                                                const kafka_topic_partition_t *tps, size_t n,
                                                int64_t timeout_ms, kafka_elections_t **out);
KAFKA_API void kafka_elections_free(kafka_elections_t *e); /* NULL is fine */

/* ---- moving partitions ---- */

typedef struct {
    const char *topic;
    int32_t partition;
    const int32_t *replicas; /* all brokers that are to have a copy, the preferred leader first;
                                NULL: give up the move under way */
    size_t replicas_n;
} kafka_reassignment_t;
typedef struct {
    const char *topic;
    int32_t partition;
    kafka_err_t err;           /* KAFKA_OK: has begun; NO_REASSIGNMENT_IN_PROGRESS; ... */
    const char *error_message; /* NULL: none */
} kafka_reassignment_outcome_t;
typedef struct {
    const kafka_reassignment_outcome_t *v; /* in order of topic and partition */
    size_t n;
} kafka_reassignment_outcomes_t;
/* Begins moves (kafka_admin_list_reassignments tells when they are over), or gives them up. Each
 * partition at most once. Free with kafka_reassignment_outcomes_free. */
KAFKA_API kafka_err_t kafka_admin_alter_reassignments(kafka_admin_t *a,
                                                      const kafka_reassignment_t *v, size_t n,
                                                      int64_t timeout_ms,
                                                      kafka_reassignment_outcomes_t **out);
KAFKA_API void kafka_reassignment_outcomes_free(kafka_reassignment_outcomes_t *o);

typedef struct {
    const char *topic;
    int32_t partition;
    const int32_t *replicas, *adding, *removing; /* replicas: with those that come and go */
    size_t replicas_n, adding_n, removing_n;
} kafka_moving_partition_t;
typedef struct {
    const kafka_moving_partition_t *v; /* in order of topic and partition */
    size_t n;
} kafka_moving_partitions_t;
/* What is on its way; tps NULL: of all partitions. Free with kafka_moving_partitions_free. */
KAFKA_API kafka_err_t kafka_admin_list_reassignments(kafka_admin_t *a,
                                                     const kafka_topic_partition_t *tps, size_t n,
                                                     int64_t timeout_ms,
                                                     kafka_moving_partitions_t **out);
KAFKA_API void kafka_moving_partitions_free(kafka_moving_partitions_t *m);

typedef struct {
    const char *topic;
    int32_t partition;
    const char *dir; /* an absolute path */
} kafka_log_dir_move_t;
/* Replicas of one broker are to lie in other log dirs. errs[i]: KAFKA_OK: has begun, or is there
 * already; REPLICA_NOT_AVAILABLE: the broker has none, but will make it in that dir; ... */
KAFKA_API kafka_err_t kafka_admin_alter_replica_log_dirs(kafka_admin_t *a, int32_t broker,
                                                         const kafka_log_dir_move_t *v, size_t n,
                                                         int64_t timeout_ms, kafka_err_t *errs);

/* ---- transactions ---- */

typedef struct {
    const char *transactional_id, *state; /* "Ongoing", "CompleteCommit" ... */
    int64_t producer_id;
    int32_t coordinator;
} kafka_transaction_listing_t;
typedef struct {
    const kafka_transaction_listing_t *v; /* in order of coordinator and id */
    size_t n;
    const kafka_broker_error_t *errors; /* brokers whose transactions are missing */
    size_t errors_n;
} kafka_transaction_list_t;
/* Transactional ids of all brokers; filters may be NULL. longer_than_ms: only transactions that
 * began longer ago than that (UNSUPPORTED when a broker does not know it); -1: all. Free with
 * kafka_transaction_list_free. */
KAFKA_API kafka_err_t kafka_admin_list_transactions(kafka_admin_t *a, const char *const *states,
                                                    size_t states_n, const int64_t *producer_ids,
                                                    size_t producer_ids_n, int64_t longer_than_ms,
                                                    int64_t timeout_ms,
                                                    kafka_transaction_list_t **out);
KAFKA_API void kafka_transaction_list_free(kafka_transaction_list_t *list); /* NULL is fine */

typedef struct {
    kafka_err_t err; /* TRANSACTIONAL_ID_NOT_FOUND: there is none */
    const char *transactional_id, *state;
    int32_t coordinator; /* -1: not found */
    int64_t producer_id;
    int32_t producer_epoch;
    int32_t timeout_ms;
    int64_t start_ms;                          /* wall; -1: there was none yet */
    const kafka_topic_partition_t *partitions; /* that are in it now */
    size_t partitions_n;
} kafka_transaction_info_t;
typedef struct {
    const kafka_transaction_info_t *v; /* as asked */
    size_t n;
} kafka_transaction_infos_t;
/* Free with kafka_transaction_infos_free. */
KAFKA_API kafka_err_t kafka_admin_describe_transactions(kafka_admin_t *a, const char *const *ids,
                                                        size_t n, int64_t timeout_ms,
                                                        kafka_transaction_infos_t **out);
KAFKA_API void kafka_transaction_infos_free(kafka_transaction_infos_t *infos);

typedef struct {
    int64_t producer_id;
    int32_t producer_epoch;
    int32_t last_sequence;     /* -1: only a marker is left */
    int64_t last_timestamp_ms; /* wall */
    int32_t coordinator_epoch; /* of the last marker; -1: none yet */
    int64_t txn_start_offset;  /* of the open transaction; -1: none */
} kafka_producer_state_t;
typedef struct {
    const char *topic;
    int32_t partition;
    kafka_err_t err;
    const char *error_message; /* NULL: none */
    const kafka_producer_state_t *v;
    size_t n;
} kafka_partition_producers_t;
typedef struct {
    const kafka_partition_producers_t *v; /* as asked */
    size_t n;
} kafka_producers_t;
/* Who has written to the partitions, by what a replica knows: that of `broker`, or (-1) each
 * leader's. Free with kafka_producers_free. */
KAFKA_API kafka_err_t kafka_admin_describe_producers(kafka_admin_t *a, int32_t broker,
                                                     const kafka_topic_partition_t *tps, size_t n,
                                                     int64_t timeout_ms, kafka_producers_t **out);
KAFKA_API void kafka_producers_free(kafka_producers_t *p);

/* Writes an abort marker into one partition, past the transaction's coordinator: for transactions
 * that nobody ends any more. coordinator_epoch -1: none was seen. */
KAFKA_API kafka_err_t kafka_admin_abort_transaction(kafka_admin_t *a, const char *topic,
                                                    int32_t partition, int64_t producer_id,
                                                    int32_t producer_epoch,
                                                    int32_t coordinator_epoch, int64_t timeout_ms);

typedef struct {
    kafka_err_t err;
    int64_t producer_id;
    int32_t producer_epoch;
} kafka_fenced_producer_t;
/* Takes the ids from whoever has them: their transactions are aborted, their producers refused.
 * out[i] is of ids[i]; the result is the first error. */
KAFKA_API kafka_err_t kafka_admin_fence_producers(kafka_admin_t *a, const char *const *ids,
                                                  size_t n, int64_t timeout_ms,
                                                  kafka_fenced_producer_t *out);

#ifdef __cplusplus
}
#endif
#endif
