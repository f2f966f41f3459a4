/* api_table.c - what this broker serves: one row an API, in order of key. An API is advertised
 * exactly when it has a row. */
#include "server/handlers.h"
#include "server/rights.h"

static const struct api_row rows[] = {
    /* key, versions, flags, right on the cluster, handler */
    {API_PRODUCE, 0, 11, 0, 0, handle_produce},
    {API_FETCH, 0, 17, 0, 0, handle_fetch},
    {API_LIST_OFFSETS, 0, 9, 0, 0, handle_list_offsets},
    {API_METADATA, 0, 12, API_LARGE_ANSWER | API_TELLS_CLUSTER, 0, handle_metadata},
    {API_LEADER_AND_ISR, 0, 7, API_CLUSTER_ACTION | API_MEMBERS_ONLY, ACL_CLUSTER_ACTION,
     handle_leader_and_isr},
    {API_STOP_REPLICA, 0, 4, API_CLUSTER_ACTION | API_MEMBERS_ONLY, ACL_CLUSTER_ACTION,
     handle_stop_replica},
    {API_UPDATE_METADATA, 0, 8, API_CLUSTER_ACTION | API_MEMBERS_ONLY, ACL_CLUSTER_ACTION,
     handle_update_metadata},
    {API_CONTROLLED_SHUTDOWN, 0, 3, API_CLUSTER_ACTION | API_MEMBERS_ONLY, ACL_CLUSTER_ACTION,
     handle_controlled_shutdown},
    {API_OFFSET_COMMIT, 0, 9, 0, 0, handle_offset_commit},
    {API_OFFSET_FETCH, 0, 9, API_LARGE_ANSWER, 0, handle_offset_fetch},
    {API_FIND_COORDINATOR, 0, 6, 0, 0, handle_find_coordinator},
    {API_JOIN_GROUP, 0, 9, 0, 0, handle_join_group},
    {API_HEARTBEAT, 0, 4, 0, 0, handle_heartbeat},
    {API_LEAVE_GROUP, 0, 5, 0, 0, handle_leave_group},
    {API_SYNC_GROUP, 0, 5, 0, 0, handle_sync_group},
    {API_DESCRIBE_GROUPS, 0, 5, API_LARGE_ANSWER, 0, handle_describe_groups},
    {API_LIST_GROUPS, 0, 5, API_LARGE_ANSWER, 0, handle_list_groups},
    {API_SASL_HANDSHAKE, 0, 1, API_BEFORE_AUTH, 0, handle_sasl_handshake},
    {API_API_VERSIONS, 0, 4, API_BEFORE_AUTH, 0, handle_api_versions},
    {API_CREATE_TOPICS, 0, 7, API_CONTROLLER_ONLY, 0, handle_create_topics},
    {API_DELETE_TOPICS, 0, 6, API_CONTROLLER_ONLY, 0, handle_delete_topics},
    {API_DELETE_RECORDS, 0, 2, 0, 0, handle_delete_records},
    {API_INIT_PRODUCER_ID, 0, 5, 0, 0, handle_init_producer_id},
    {API_OFFSET_FOR_LEADER_EPOCH, 0, 4, 0, 0, handle_offset_for_leader_epoch},
    {API_ADD_PARTITIONS_TO_TXN, 0, 5, 0, 0, handle_add_partitions_to_txn},
    {API_ADD_OFFSETS_TO_TXN, 0, 4, 0, 0, handle_add_offsets_to_txn},
    {API_END_TXN, 0, 4, 0, 0, handle_end_txn},
    {API_WRITE_TXN_MARKERS, 0, 1, API_CLUSTER_ACTION, 0, handle_write_txn_markers},
    {API_TXN_OFFSET_COMMIT, 0, 4, 0, 0, handle_txn_offset_commit},
    {API_DESCRIBE_ACLS, 0, 3, API_LARGE_ANSWER, 0, handle_describe_acls},
    {API_CREATE_ACLS, 0, 3, 0, 0, handle_create_acls},
    {API_DELETE_ACLS, 0, 3, API_LARGE_ANSWER, 0, handle_delete_acls},
    {API_DESCRIBE_CONFIGS, 0, 4, API_LARGE_ANSWER, 0, handle_describe_configs},
    {API_ALTER_CONFIGS, 0, 2, 0, 0, handle_alter_configs},
    {API_ALTER_REPLICA_LOG_DIRS, 0, 2, API_TELLS_EACH, ACL_ALTER, handle_alter_replica_log_dirs},
    {API_DESCRIBE_LOG_DIRS, 0, 4, API_LARGE_ANSWER, ACL_DESCRIBE, handle_describe_log_dirs},
    {API_SASL_AUTHENTICATE, 0, 2, API_BEFORE_AUTH, 0, handle_sasl_authenticate},
    {API_CREATE_PARTITIONS, 0, 3, API_CONTROLLER_ONLY, 0, handle_create_partitions},
    {API_CREATE_DELEGATION_TOKEN, 0, 3, 0, 0, handle_create_delegation_token},
    {API_RENEW_DELEGATION_TOKEN, 0, 2, 0, 0, handle_renew_delegation_token},
    {API_EXPIRE_DELEGATION_TOKEN, 0, 2, 0, 0, handle_expire_delegation_token},
    {API_DESCRIBE_DELEGATION_TOKEN, 0, 3, API_LARGE_ANSWER, 0, handle_describe_delegation_token},
    {API_DELETE_GROUPS, 0, 2, 0, 0, handle_delete_groups},
    {API_ELECT_LEADERS, 0, 2, API_CONTROLLER_ONLY | API_TELLS_EACH, ACL_ALTER,
     handle_elect_leaders},
    {API_INCREMENTAL_ALTER_CONFIGS, 0, 1, 0, 0, handle_incremental_alter_configs},
    {API_ALTER_PARTITION_REASSIGNMENTS, 0, 0, API_CONTROLLER_ONLY, ACL_ALTER,
     handle_alter_partition_reassignments},
    {API_LIST_PARTITION_REASSIGNMENTS, 0, 0, API_CONTROLLER_ONLY, ACL_DESCRIBE,
     handle_list_partition_reassignments},
    {API_OFFSET_DELETE, 0, 0, 0, 0, handle_offset_delete},
    {API_DESCRIBE_CLIENT_QUOTAS, 0, 1, API_LARGE_ANSWER, ACL_DESCRIBE_CONFIGS,
     handle_describe_client_quotas},
    {API_ALTER_CLIENT_QUOTAS, 0, 1, API_TELLS_EACH, ACL_ALTER_CONFIGS, handle_alter_client_quotas},
    {API_DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, API_LARGE_ANSWER, ACL_DESCRIBE,
     handle_describe_user_scram_credentials},
    {API_ALTER_USER_SCRAM_CREDENTIALS, 0, 0, API_CONTROLLER_ONLY | API_TELLS_EACH, ACL_ALTER,
     handle_alter_user_scram_credentials},
    {API_ALTER_PARTITION, 0, 3, API_CLUSTER_ACTION | API_MEMBERS_ONLY, ACL_CLUSTER_ACTION,
     handle_alter_partition},
    {API_DESCRIBE_CLUSTER, 0, 1, API_TELLS_CLUSTER, 0, handle_describe_cluster},
    {API_DESCRIBE_PRODUCERS, 0, 0, API_LARGE_ANSWER, 0, handle_describe_producers},
    {API_DESCRIBE_TRANSACTIONS, 0, 0, API_LARGE_ANSWER, 0, handle_describe_transactions},
    {API_LIST_TRANSACTIONS, 0, 1, API_LARGE_ANSWER, 0, handle_list_transactions},
    {API_ALLOCATE_PRODUCER_IDS, 0, 0, API_CLUSTER_ACTION, ACL_CLUSTER_ACTION,
     handle_allocate_producer_ids},
    {API_CONSUMER_GROUP_HEARTBEAT, 0, 1, 0, 0, handle_consumer_group_heartbeat},
    {API_CONSUMER_GROUP_DESCRIBE, 0, 1, API_LARGE_ANSWER, 0, handle_consumer_group_describe},
    {API_DESCRIBE_TOPIC_PARTITIONS, 0, 0, API_LARGE_ANSWER | API_TELLS_CLUSTER, 0,
     handle_describe_topic_partitions},
};

enum { ROWS_N = sizeof(rows) / sizeof(*rows) };

const struct api_row *api_served(int *n)
{
    *n = ROWS_N;
    return rows;
}

const struct api_row *api_row_find(int16_t key)
{
    int low = 0, high = ROWS_N;
    while (low < high) {
        int mid = (low + high) / 2;
        if (rows[mid].key < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low < ROWS_N && rows[low].key == key ? &rows[low] : NULL;
}
