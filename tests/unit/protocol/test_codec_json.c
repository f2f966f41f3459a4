/* Messages as JSON: names, order, escapes, base64, nulls, what a version or a tag leaves out. */
#include <stdio.h>

#include "protocol/msg/consumer_group_records.h"
#include "protocol/msg/group_metadata_record.h"
#include "protocol/msg/offset_commit_record.h"
#include "unit.h"

static void assert_json(const struct msg_desc *d, int version, const void *m, msg_json_bytes bytes,
                        const char *text)
{
    struct buf out = BUF_INIT;
    msg_print_json(d, version, m, bytes, &out);
    buf_put(&out, "", 1);
    assert_false(out.failed);
    assert_string_equal((const char *)out.p, text);
    buf_free(&out);
}

static void fields_are_those_of_the_version(void **state)
{
    struct offset_commit_value v;
    offset_commit_value_init(&v);
    v.offset = INT64_MAX;
    v.metadata = STR_LIT("m");
    v.commit_timestamp = -1;
    assert_json(&offset_commit_value_desc, 0, &v, NULL,
                "{\"offset\":9223372036854775807,\"metadata\":\"m\",\"commitTimestamp\":-1}");
    assert_json(&offset_commit_value_desc, 1, &v, NULL,
                "{\"offset\":9223372036854775807,\"metadata\":\"m\",\"commitTimestamp\":-1,"
                "\"expireTimestamp\":-1}");
    assert_json(&offset_commit_value_desc, 3, &v, NULL,
                "{\"offset\":9223372036854775807,\"leaderEpoch\":-1,\"metadata\":\"m\","
                "\"commitTimestamp\":-1}");
}

static void strings_are_escaped(void **state)
{
    static const struct {
        const char *in, *out;
    } t[] = {{"plain", "\"plain\""},
             {"q\" b\\ s/", "\"q\\\" b\\\\ s/\""},
             {"\b\f\n\r\t\x01\x1f\x7f", "\"\\b\\f\\n\\r\\t\\u0001\\u001F\x7f\""},
             {"\xe2\x98\x83\xff", "\"\xe2\x98\x83\xef\xbf\xbd\""}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct buf out = BUF_INIT;
        json_put_str(&out, str_of(t[i].in));
        buf_put(&out, "", 1);
        assert_string_equal((const char *)out.p, t[i].out);
        buf_free(&out);
    }
}

static bool shout(const char *field, struct bytes b, struct buf *out)
{
    if (strcmp(field, "assignment") != 0)
        return false;
    buf_printf(out, "[%d]", b.len);
    return true;
}

static void bytes_are_base64_or_what_the_caller_makes_of_them(void **state)
{
    struct arena a;
    struct group_metadata_value v;
    arena_init(&a, 0);
    group_metadata_value_init(&v);
    v.members.v = group_metadata_value_member_new(&a, 2);
    v.members.n = 2;
    v.members.v[0].subscription = (struct bytes){(const uint8_t *)"\xfb\xff\xfe", 3};
    v.members.v[0].assignment = (struct bytes){(const uint8_t *)"ab", 2};
    v.members.v[1].subscription = (struct bytes){(const uint8_t *)"a", 1};
    assert_json(&group_metadata_value_desc, 0, &v, shout,
                "{\"protocolType\":\"\",\"generation\":0,\"protocol\":\"\",\"leader\":\"\","
                "\"members\":[{\"memberId\":\"\",\"clientId\":\"\",\"clientHost\":\"\","
                "\"sessionTimeout\":0,\"subscription\":\"+//+\",\"assignment\":[2]},"
                "{\"memberId\":\"\",\"clientId\":\"\",\"clientHost\":\"\",\"sessionTimeout\":0,"
                "\"subscription\":\"YQ==\",\"assignment\":[0]}]}");
    arena_free(&a);
}

static void tagged_fields_at_their_default_are_left_out(void **state)
{
    struct consumer_group_member_metadata_value v;
    struct consumer_group_member_metadata_value_classic_member_metadata classic;
    consumer_group_member_metadata_value_init(&v);
    v.instance_id = STR_NULL;
    v.subscribed_topic_names.n = -1;
    const char *front =
        "{\"instanceId\":null,\"rackId\":\"\",\"clientId\":\"\",\"clientHost\":\"\","
        "\"subscribedTopicNames\":null,\"subscribedTopicRegex\":\"\","
        "\"rebalanceTimeoutMs\":-1,\"serverAssignor\":\"\"";
    char text[512];
    snprintf(text, sizeof text, "%s}", front);
    assert_json(&consumer_group_member_metadata_value_desc, 0, &v, NULL, text);
    consumer_group_member_metadata_value_classic_member_metadata_init(&classic);
    v.classic_member_metadata = &classic;
    snprintf(text, sizeof text,
             "%s,\"classicMemberMetadata\":{\"sessionTimeoutMs\":0,\"supportedProtocols\":[]}}",
             front);
    assert_json(&consumer_group_member_metadata_value_desc, 0, &v, NULL, text);
}

UNIT_MAIN(unit_test(fields_are_those_of_the_version), unit_test(strings_are_escaped),
          unit_test(bytes_are_base64_or_what_the_caller_makes_of_them),
          unit_test(tagged_fields_at_their_default_are_left_out))
