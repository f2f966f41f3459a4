/* Numbers and exceptions as Java prints them. */
#include "tools/tool_java.h"

#include <math.h>
#include <stdio.h>

#include "protocol/errors.h"
#include "unit.h"

static void numbers_read_as_java_writes_them(void **state)
{
    static const struct {
        double v;
        const char *text;
    } t[] = {{0, "0.0"},
             {1, "1.0"},
             {-2.5, "-2.5"},
             {1024, "1024.0"},
             {1048576, "1048576.0"},
             {9999999, "9999999.0"},
             {10000000, "1.0E7"},
             {12345678, "1.2345678E7"},
             {1e9, "1.0E9"},
             {9223372036854775807.0, "9.223372036854776E18"},
             {0.5, "0.5"},
             {0.1, "0.1"},
             {12.75, "12.75"},
             {123456.789, "123456.789"},
             {0.001, "0.001"},
             {0.0125, "0.0125"},
             {0.00099, "9.9E-4"},
             {1.7976931348623157e308, "1.7976931348623157E308"},
             {INFINITY, "Infinity"},
             {NAN, "NaN"}};
    char out[48];
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        assert_string_equal(tool_java_double(t[i].v, out), t[i].text);
}

static void exceptions_have_their_class_names(void **state)
{
    static const struct {
        kafka_err_t err;
        const char *name;
    } t[] = {{KERR_OFFSET_OUT_OF_RANGE, "OffsetOutOfRange"},
             {KERR_UNKNOWN_TOPIC_OR_PARTITION, "UnknownTopicOrPartition"},
             {KERR_INVALID_TOPIC_EXCEPTION, "InvalidTopic"},
             {KERR_KAFKA_STORAGE_ERROR, "KafkaStorage"},
             {KERR_NOT_LEADER_OR_FOLLOWER, "NotLeaderOrFollower"},
             {KERR_POLICY_VIOLATION, "PolicyViolation"},
             {KERR_INVALID_REQUEST, "InvalidRequest"},
             {KERR_INVALID_CONFIG, "InvalidConfiguration"},
             {KERR_UNKNOWN_SERVER_ERROR, "UnknownServer"},
             {KERR_REQUEST_TIMED_OUT, "Timeout"},
             {KERR_NON_EMPTY_GROUP, "GroupNotEmpty"},
             {KERR_GROUP_AUTHORIZATION_FAILED, "GroupAuthorization"},
             {KERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "OutOfOrderSequence"},
             {KERR_GROUP_ID_NOT_FOUND, "GroupIdNotFound"},
             {KAFKA_ERR_TIMED_OUT, "Timeout"}};
    char out[128], expected[128];
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        snprintf(expected, sizeof expected, "org.apache.kafka.common.errors.%sException",
                 t[i].name);
        assert_string_equal(tool_java_exception(t[i].err, out), expected);
    }
}

UNIT_MAIN(unit_test(numbers_read_as_java_writes_them), unit_test(exceptions_have_their_class_names))
