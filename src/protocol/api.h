/* api.h - the protocol's APIs: keys, names, versions, message tables, header versions. One row an
 * API (api.c, made from messages/<api>.msg); which of them this broker serves is the server's
 * table. */
#ifndef PROTOCOL_API_H
#define PROTOCOL_API_H

#include "protocol/codec.h"

enum api_key {
    API_PRODUCE = 0,
    API_FETCH = 1,
    API_LIST_OFFSETS = 2,
    API_METADATA = 3,
    API_LEADER_AND_ISR = 4,
    API_STOP_REPLICA = 5,
    API_UPDATE_METADATA = 6,
    API_CONTROLLED_SHUTDOWN = 7,
    API_OFFSET_COMMIT = 8,
    API_OFFSET_FETCH = 9,
    API_FIND_COORDINATOR = 10,
    API_JOIN_GROUP = 11,
    API_HEARTBEAT = 12,
    API_LEAVE_GROUP = 13,
    API_SYNC_GROUP = 14,
    API_DESCRIBE_GROUPS = 15,
    API_LIST_GROUPS = 16,
    API_SASL_HANDSHAKE = 17,
    API_API_VERSIONS = 18,
    API_CREATE_TOPICS = 19,
    API_DELETE_TOPICS = 20,
    API_DELETE_RECORDS = 21,
    API_INIT_PRODUCER_ID = 22,
    API_OFFSET_FOR_LEADER_EPOCH = 23,
    API_ADD_PARTITIONS_TO_TXN = 24,
    API_ADD_OFFSETS_TO_TXN = 25,
    API_END_TXN = 26,
    API_WRITE_TXN_MARKERS = 27,
    API_TXN_OFFSET_COMMIT = 28,
    API_DESCRIBE_ACLS = 29,
    API_CREATE_ACLS = 30,
    API_DELETE_ACLS = 31,
    API_DESCRIBE_CONFIGS = 32,
    API_ALTER_CONFIGS = 33,
    API_ALTER_REPLICA_LOG_DIRS = 34,
    API_DESCRIBE_LOG_DIRS = 35,
    API_SASL_AUTHENTICATE = 36,
    API_CREATE_PARTITIONS = 37,
    API_CREATE_DELEGATION_TOKEN = 38,
    API_RENEW_DELEGATION_TOKEN = 39,
    API_EXPIRE_DELEGATION_TOKEN = 40,
    API_DESCRIBE_DELEGATION_TOKEN = 41,
    API_DELETE_GROUPS = 42,
    API_ELECT_LEADERS = 43,
    API_INCREMENTAL_ALTER_CONFIGS = 44,
    API_ALTER_PARTITION_REASSIGNMENTS = 45,
    API_LIST_PARTITION_REASSIGNMENTS = 46,
    API_OFFSET_DELETE = 47,
    API_DESCRIBE_CLIENT_QUOTAS = 48,
    API_ALTER_CLIENT_QUOTAS = 49,
    API_DESCRIBE_USER_SCRAM_CREDENTIALS = 50,
    API_ALTER_USER_SCRAM_CREDENTIALS = 51,
    API_ALTER_PARTITION = 56,
    API_UPDATE_FEATURES = 57,
    API_ENVELOPE = 58,
    API_DESCRIBE_CLUSTER = 60,
    API_DESCRIBE_PRODUCERS = 61,
    API_DESCRIBE_TRANSACTIONS = 65,
    API_LIST_TRANSACTIONS = 66,
    API_ALLOCATE_PRODUCER_IDS = 67,
    API_CONSUMER_GROUP_HEARTBEAT = 68,
    API_CONSUMER_GROUP_DESCRIBE = 69,
    API_DESCRIBE_TOPIC_PARTITIONS = 75,
    API_KEY_MAX = 75,
};

struct api_desc {
    int16_t key;
    const char *name; /* "Produce" */
    const struct msg_desc *request, *response;
};

/* NULL for a key that is not in the table. Static. */
const struct api_desc *api_find(int16_t key);
/* All rows in order of key. */
const struct api_desc *api_all(int *n);

/* Header version of a request (0, 1, 2) and of a response (0, 1); exceptions: ControlledShutdown v0
 * requests have header 0, ApiVersions responses always have header 0. */
int api_request_header_version(const struct api_desc *api, int version);
int api_response_header_version(const struct api_desc *api, int version);

struct request_header {
    int16_t api_key, api_version;
    int32_t correlation_id;
    struct str client_id; /* borrowed from the frame; may be null */
};
/* Reads the header at the start of a frame (without the length). 0; -EPROTO malformed; -ENOTSUP
 * unknown key, or a version outside what the table has (then key, version, correlation id and,
 * where it can be read, client id are filled in all the same). */
int request_header_decode(struct reader *r, struct request_header *h);
void request_header_encode(struct writer *w, const struct request_header *h);
/* Correlation id and, for header version 1, an empty tag section. */
void response_header_encode(struct writer *w, int header_version, int32_t correlation_id);
int response_header_decode(struct reader *r, int header_version, int32_t *correlation_id);

#endif
