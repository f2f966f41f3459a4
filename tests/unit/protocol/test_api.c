/* The table of APIs against the protocol's facts, typed in here once more; headers; error codes. */
#include "protocol/api.h"

#include <errno.h>
#include <stdio.h>

#include "protocol/errors.h"
#include "unit.h"

enum { NONE = 32767 };

/* key, name, highest version, first flexible version */
static const struct fact {
    int16_t key;
    const char *name;
    int16_t max, flexible;
} facts[] = {
    {0, "Produce", 11, 9},
    {1, "Fetch", 17, 12},
    {2, "ListOffsets", 9, 6},
    {3, "Metadata", 12, 9},
    {4, "LeaderAndIsr", 7, 4},
    {5, "StopReplica", 4, 2},
    {6, "UpdateMetadata", 8, 6},
    {7, "ControlledShutdown", 3, 3},
    {8, "OffsetCommit", 9, 8},
    {9, "OffsetFetch", 9, 6},
    {10, "FindCoordinator", 6, 3},
    {11, "JoinGroup", 9, 6},
    {12, "Heartbeat", 4, 4},
    {13, "LeaveGroup", 5, 4},
    {14, "SyncGroup", 5, 4},
    {15, "DescribeGroups", 5, 5},
    {16, "ListGroups", 5, 3},
    {17, "SaslHandshake", 1, NONE},
    {18, "ApiVersions", 4, 3},
    {19, "CreateTopics", 7, 5},
    {20, "DeleteTopics", 6, 4},
    {21, "DeleteRecords", 2, 2},
    {22, "InitProducerId", 5, 2},
    {23, "OffsetForLeaderEpoch", 4, 4},
    {24, "AddPartitionsToTxn", 5, 3},
    {25, "AddOffsetsToTxn", 4, 3},
    {26, "EndTxn", 4, 3},
    {27, "WriteTxnMarkers", 1, 1},
    {28, "TxnOffsetCommit", 4, 3},
    {29, "DescribeAcls", 3, 2},
    {30, "CreateAcls", 3, 2},
    {31, "DeleteAcls", 3, 2},
    {32, "DescribeConfigs", 4, 4},
    {33, "AlterConfigs", 2, 2},
    {34, "AlterReplicaLogDirs", 2, 2},
    {35, "DescribeLogDirs", 4, 2},
    {36, "SaslAuthenticate", 2, 2},
    {37, "CreatePartitions", 3, 2},
    {38, "CreateDelegationToken", 3, 2},
    {39, "RenewDelegationToken", 2, 2},
    {40, "ExpireDelegationToken", 2, 2},
    {41, "DescribeDelegationToken", 3, 2},
    {42, "DeleteGroups", 2, 2},
    {43, "ElectLeaders", 2, 2},
    {44, "IncrementalAlterConfigs", 1, 1},
    {45, "AlterPartitionReassignments", 0, 0},
    {46, "ListPartitionReassignments", 0, 0},
    {47, "OffsetDelete", 0, NONE},
    {48, "DescribeClientQuotas", 1, 1},
    {49, "AlterClientQuotas", 1, 1},
    {50, "DescribeUserScramCredentials", 0, 0},
    {51, "AlterUserScramCredentials", 0, 0},
    {56, "AlterPartition", 3, 0},
    {57, "UpdateFeatures", 1, 0},
    {58, "Envelope", 0, 0},
    {60, "DescribeCluster", 1, 0},
    {61, "DescribeProducers", 0, 0},
    {65, "DescribeTransactions", 0, 0},
    {66, "ListTransactions", 1, 0},
    {67, "AllocateProducerIds", 0, 0},
    {68, "ConsumerGroupHeartbeat", 1, 0}, /* v1 is 4.0's */
    {69, "ConsumerGroupDescribe", 1, 0},
    {75, "DescribeTopicPartitions", 0, 0},
};
static const int facts_n = sizeof(facts) / sizeof(facts[0]);

static void table_has_the_protocols_facts(void **state)
{
    int n;
    const struct api_desc *apis = api_all(&n);
    assert_int_equal(n, facts_n);
    for (int i = 0; i < n; i++) {
        const struct msg_desc *both[] = {apis[i].request, apis[i].response};
        assert_int_equal(apis[i].key, facts[i].key);
        assert_string_equal(apis[i].name, facts[i].name);
        for (int k = 0; k < 2; k++) {
            char name[64];
            snprintf(name, sizeof(name), "%s%s", apis[i].name, k ? "Response" : "Request");
            assert_string_equal(both[k]->name, name);
            assert_int_equal(both[k]->api_key, apis[i].key);
            assert_int_equal(both[k]->min, 0);
            assert_int_equal(both[k]->max, facts[i].max);
            assert_int_equal(both[k]->flex_min, facts[i].flexible);
        }
    }
}

static void find_knows_every_key_and_no_other(void **state)
{
    int next = 0;
    for (int key = INT16_MIN; key <= INT16_MAX; key++) {
        const struct api_desc *api = api_find((int16_t)key);
        if (next < facts_n && facts[next].key == key)
            assert_int_equal(api->key, facts[next++].key);
        else
            assert_null(api);
    }
    assert_int_equal(next, facts_n);
    assert_int_equal(facts[facts_n - 1].key, API_KEY_MAX);
}

static void header_versions_follow_flexibility_with_two_exceptions(void **state)
{
    for (int i = 0; i < facts_n; i++) {
        const struct api_desc *api = api_find(facts[i].key);
        for (int v = 0; v <= facts[i].max; v++) {
            bool flexible = v >= facts[i].flexible;
            bool shutdown_v0 = api->key == API_CONTROLLED_SHUTDOWN && v == 0;
            assert_int_equal(api_request_header_version(api, v), shutdown_v0 ? 0
                                                                 : flexible  ? 2
                                                                             : 1);
            assert_int_equal(api_response_header_version(api, v),
                             flexible && api->key != API_API_VERSIONS);
        }
    }
}

static void request_header_comes_back_as_sent(void **state)
{
    for (int i = 0; i < facts_n; i++) {
        for (int16_t v = 0; v <= facts[i].max; v++) {
            struct request_header h = {facts[i].key, v, 0x01020304, STR_LIT("me")}, back;
            bool has_id = !(h.api_key == API_CONTROLLED_SHUTDOWN && v == 0);
            struct writer w = WRITER_INIT;
            request_header_encode(&w, &h);
            struct reader r = reader_of(w.buf.p, w.buf.len);
            assert_int_equal(request_header_decode(&r, &back), 0);
            assert_int_equal(reader_left(&r), 0);
            assert_int_equal(back.api_key, h.api_key);
            assert_int_equal(back.api_version, v);
            assert_int_equal(back.correlation_id, h.correlation_id);
            assert_true(has_id ? str_eqz(back.client_id, "me") : str_is_null(back.client_id));
            /* cut anywhere it is malformed */
            for (size_t n = 0; n < w.buf.len; n++) {
                r = reader_of(w.buf.p, n);
                assert_int_equal(request_header_decode(&r, &back), -EPROTO);
            }
            writer_free(&w);
        }
    }
}

static int decode(const void *p, size_t n, struct request_header *h)
{
    struct reader r = reader_of(p, n);
    return request_header_decode(&r, h);
}

static void request_header_bytes(void **state)
{
    struct request_header h;
    /* Metadata 9 is flexible: the client id is still a plain string; a tag section follows, here
     * with an unknown tag */
    static const char flexible[] = "\0\3\0\11\0\0\0\5\0\2me\1\11\2xx";
    assert_int_equal(decode(flexible, sizeof(flexible) - 1, &h), 0);
    assert_true(str_eqz(h.client_id, "me"));
    static const char null_id[] = "\0\3\0\1\0\0\0\5\377\377";
    assert_int_equal(decode(null_id, sizeof(null_id) - 1, &h), 0);
    assert_true(str_is_null(h.client_id));
    static const char bad_id[] = "\0\3\0\1\0\0\0\5\377\376";
    assert_int_equal(decode(bad_id, sizeof(bad_id) - 1, &h), -EPROTO);
    static const char shutdown[] = "\0\7\0\0\0\0\0\5\0\0\0\1"; /* then the body: broker id 1 */
    struct reader r = reader_of(shutdown, sizeof(shutdown) - 1);
    assert_int_equal(request_header_decode(&r, &h), 0);
    assert_int_equal(reader_left(&r), 4);
}

static void unknown_key_or_version_still_gives_the_header(void **state)
{
    struct request_header h;
    static const char new_version[] = "\0\22\0\143\0\0\0\7\0\2me\0";
    assert_int_equal(decode(new_version, sizeof(new_version) - 1, &h), -ENOTSUP);
    assert_int_equal(h.api_key, API_API_VERSIONS);
    assert_int_equal(h.api_version, 99);
    assert_int_equal(h.correlation_id, 7);
    assert_true(str_eqz(h.client_id, "me"));
    static const char unknown[] = "\3\377\0\0\0\0\0\7\0\2me";
    assert_int_equal(decode(unknown, sizeof(unknown) - 1, &h), -ENOTSUP);
    assert_int_equal(h.api_key, 1023);
    assert_true(str_eqz(h.client_id, "me"));
    /* no client id to be read: still told apart from a malformed frame */
    assert_int_equal(decode(new_version, 9, &h), -ENOTSUP);
    assert_int_equal(h.correlation_id, 7);
    assert_true(str_is_null(h.client_id));
    static const char negative[] = "\0\3\377\377\0\0\0\7\0\2me";
    assert_int_equal(decode(negative, sizeof(negative) - 1, &h), -ENOTSUP);
}

static void response_header_bytes(void **state)
{
    struct writer w = WRITER_INIT;
    response_header_encode(&w, 0, 258);
    assert_int_equal(w.buf.len, 4);
    response_header_encode(&w, 1, 258);
    assert_int_equal(w.buf.len, 9);
    assert_memory_equal(w.buf.p, "\0\0\1\2\0\0\1\2\0", 9);
    int32_t id;
    struct reader r = reader_of(w.buf.p, w.buf.len);
    assert_int_equal(response_header_decode(&r, 0, &id), 0);
    assert_int_equal(id, 258);
    assert_int_equal(response_header_decode(&r, 1, &id), 0);
    assert_int_equal(id, 258);
    assert_int_equal(response_header_decode(&r, 0, &id), -EPROTO);
    writer_free(&w);
}

static void errors_are_complete(void **state)
{
    for (int16_t code = -1; code <= 128; code++) {
        assert_true(code == -1 || strcmp(kerr_name(code), "UNKNOWN_SERVER_ERROR") != 0);
        size_t n = strlen(kerr_text(code));
        assert_true(n > 5 && kerr_text(code)[n - 1] == '.');
    }
    assert_string_equal(kerr_name(-1), "UNKNOWN_SERVER_ERROR");
    assert_string_equal(kerr_name(129), "UNKNOWN_SERVER_ERROR");
    assert_string_equal(kerr_name(INT16_MIN), "UNKNOWN_SERVER_ERROR");
    assert_string_equal(kerr_name(INT16_MAX), "UNKNOWN_SERVER_ERROR");
    assert_string_equal(kerr_name(KERR_NOT_LEADER_OR_FOLLOWER), "NOT_LEADER_OR_FOLLOWER");
    assert_int_equal(KERR_VOTER_NOT_FOUND, 127);
}

static void retriable_errors(void **state)
{
    static const int16_t yes[] = {2,  3,  5,  6,  7,   9,   13,  14,  15, 16, 19,
                                  20, 41, 51, 56, 70,  71,  72,  74,  75, 78, 80,
                                  83, 84, 88, 89, 100, 103, 106, 122, 123};
    size_t next = 0;
    for (int16_t code = -1; code <= 128; code++) {
        bool want = next < sizeof(yes) / sizeof(yes[0]) && yes[next] == code;
        next += want;
        assert_int_equal(kerr_retriable(code), want);
    }
}

UNIT_MAIN(unit_test(table_has_the_protocols_facts), unit_test(find_knows_every_key_and_no_other),
          unit_test(header_versions_follow_flexibility_with_two_exceptions),
          unit_test(request_header_comes_back_as_sent), unit_test(request_header_bytes),
          unit_test(unknown_key_or_version_still_gives_the_header),
          unit_test(response_header_bytes), unit_test(errors_are_complete),
          unit_test(retriable_errors))
