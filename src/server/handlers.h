/* handlers.h - the handlers that the API rows point at, one line each, in order of API key.
 *
 * A handler is called on the connection's reactor with the decoded body and answers exactly once
 * (request.h), at once or later. While it waits it may set req->net->aborted and req->net->user:
 * both are the handler's. The connection's user pointer is Produce's (produce_order.c).
 *
 * OWNERSHIP  the request is the handler's until it has answered.
 *
 * THREADS    the connection's reactor, in which the answer is given, too (request.h). */
#ifndef SERVER_HANDLERS_H
#define SERVER_HANDLERS_H

#include <stdbool.h>

struct request;

void handle_produce(struct request *req);
void handle_fetch(struct request *req);
void handle_list_offsets(struct request *req);
void handle_metadata(struct request *req);
void handle_leader_and_isr(struct request *req);
void handle_stop_replica(struct request *req);
void handle_update_metadata(struct request *req);
void handle_controlled_shutdown(struct request *req);
void handle_offset_commit(struct request *req);
void handle_offset_fetch(struct request *req);
void handle_find_coordinator(struct request *req);
void handle_join_group(struct request *req);
void handle_heartbeat(struct request *req);
void handle_leave_group(struct request *req);
void handle_sync_group(struct request *req);
void handle_describe_groups(struct request *req);
void handle_list_groups(struct request *req);
void handle_sasl_handshake(struct request *req);
void handle_api_versions(struct request *req);
void handle_create_topics(struct request *req);
void handle_delete_topics(struct request *req);
void handle_delete_records(struct request *req);
void handle_init_producer_id(struct request *req);
void handle_offset_for_leader_epoch(struct request *req);
void handle_add_partitions_to_txn(struct request *req);
void handle_add_offsets_to_txn(struct request *req);
void handle_end_txn(struct request *req);
void handle_write_txn_markers(struct request *req);
void handle_txn_offset_commit(struct request *req);
void handle_describe_acls(struct request *req);
void handle_create_acls(struct request *req);
void handle_delete_acls(struct request *req);
void handle_describe_configs(struct request *req);
void handle_alter_configs(struct request *req);
void handle_alter_replica_log_dirs(struct request *req);
void handle_describe_log_dirs(struct request *req);
void handle_sasl_authenticate(struct request *req);
void handle_create_partitions(struct request *req);
void handle_create_delegation_token(struct request *req);
void handle_renew_delegation_token(struct request *req);
void handle_expire_delegation_token(struct request *req);
void handle_describe_delegation_token(struct request *req);
void handle_delete_groups(struct request *req);
void handle_elect_leaders(struct request *req);
void handle_offset_delete(struct request *req);
void handle_incremental_alter_configs(struct request *req);
void handle_describe_client_quotas(struct request *req);
void handle_alter_client_quotas(struct request *req);
void handle_describe_user_scram_credentials(struct request *req);
void handle_alter_user_scram_credentials(struct request *req);
void handle_alter_partition_reassignments(struct request *req);
void handle_list_partition_reassignments(struct request *req);
void handle_alter_partition(struct request *req);
void handle_describe_cluster(struct request *req);
void handle_describe_producers(struct request *req);
void handle_describe_transactions(struct request *req);
void handle_list_transactions(struct request *req);
void handle_allocate_producer_ids(struct request *req);
void handle_consumer_group_heartbeat(struct request *req);
void handle_consumer_group_describe(struct request *req);
void handle_describe_topic_partitions(struct request *req);

/* What an ApiVersions request of a version that is not served gets, in the form of version 0 (which
 * every client can read): UNSUPPORTED_VERSION and the range of this API. */
void handle_api_versions_unsupported(struct request *req);
/* Does it name its client's software as it should? Else the answer is INVALID_REQUEST. */
struct api_versions_request;
bool api_versions_request_valid(const struct api_versions_request *in, int version);

#endif
