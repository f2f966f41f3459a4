/* test_group_records.c - where a group belongs, and the bytes of its records. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/group_records.h"
#include "coordinator/group_topics.h"
#include "coordinator/key_partition.h"
#include "unit.h"

static size_t unhex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    for (; *hex; hex++) {
        if (*hex == ' ')
            continue;
        unsigned v;
        assert_int_equal(sscanf(hex, "%2x", &v), 1);
        out[n++] = (uint8_t)v;
        hex++;
    }
    return n;
}

static void assert_hex(const struct buf *b, const char *hex)
{
    uint8_t want[512];
    size_t n = unhex(hex, want);
    assert_int_equal(b->len, n);
    assert_memory_equal(b->p, want, n);
}

static struct bytes bytes_of(const char *hex, uint8_t *room)
{
    return (struct bytes){room, (int32_t)unhex(hex, room)};
}

/* ---- hash ---- */

static void hashes_as_java_does(void **state)
{
    static const struct {
        const char *id;
        int32_t hash, of50, of3;
    } rows[] = {
        {"", 0, 0, 0},
        {"g", 103, 3, 1},
        {"group", 98629247, 47, 2},
        {"my-group", -1906497762, 12, 0},
        {"test-group", 627841412, 12, 2},
        {"console-consumer-12345", 158455506, 6, 0},
        {"my-tx", 104315461, 11, 1},
        {"txn-1", 110810510, 10, 2},
        {"polygenelubricants", INT32_MIN, 0, 0},
        {"\xC3\xA9t\xC3\xA9", 227742, 42, 0},
        {"\xF0\x9F\x98\x80", 1772899, 49, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct str s = str_of(rows[i].id);
        assert_int_equal(utf16_hash(s), rows[i].hash);
        assert_int_equal(key_partition(s, 50), rows[i].of50);
        assert_int_equal(key_partition(s, 3), rows[i].of3);
    }
}

static void counts_utf16_units(void **state)
{
    static const struct {
        const char *text;
        int32_t units;
    } rows[] = {{"", 0},
                {"abc", 3},
                {"\xC3\xA9", 1},
                {"\xE2\x82\xAC", 1},
                {"\xF0\x9F\x98\x80", 2},
                {"\xFF", 1},
                {"\xC3", 1},
                {"\xC3(", 2},
                {"\xE2\x82", 2},
                {"\xC0\x80", 2},
                {"\xED\xA0\x80", 3},
                {"\xF4\x90\x80\x80", 4},
                {"\x80\x80", 2}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_int_equal(utf16_length(str_of(rows[i].text)), rows[i].units);
    assert_int_equal(utf16_length(STR_NULL), 0);
    assert_int_equal(utf16_hash(STR_NULL), 0);
}

/* ---- keys ---- */

static void keys_are_kafkas(void **state)
{
    struct buf b = BUF_INIT;
    struct group_key k;
    group_key_put_offset(&b, STR_LIT("g"), STR_LIT("t"), 0);
    assert_hex(&b, "0001 000167 000174 00000000");
    assert_int_equal(group_key_decode((struct bytes){b.p, (int32_t)b.len}, &k), 0);
    assert_int_equal(k.kind, GROUP_KEY_OFFSET);
    assert_true(str_eqz(k.group, "g") && str_eqz(k.topic, "t") && k.partition == 0);
    b.len = 0;
    group_key_put_offset(&b, STR_LIT("my-group"), STR_LIT("orders"), 3);
    assert_hex(&b, "000100086d792d67726f757000066f726465727300000003");
    b.len = 0;
    group_key_put_group(&b, STR_LIT("g"));
    assert_hex(&b, "0002 000167");
    assert_int_equal(group_key_decode((struct bytes){b.p, (int32_t)b.len}, &k), 0);
    assert_int_equal(k.kind, GROUP_KEY_GROUP);
    assert_true(str_eqz(k.group, "g"));
    buf_free(&b);
}

static void keys_of_other_kinds_and_damaged_ones(void **state)
{
    static const struct {
        const char *hex;
        int rc;
        enum group_key_kind kind;
    } rows[] = {
        {"0000 000167 000174 00000007", 0, GROUP_KEY_OFFSET},
        {"0003 000167", 0, GROUP_KEY_CONSUMERS},
        {"0008 000167 00016d", 0, GROUP_KEY_CONSUMERS},
        {"0008 000167", -EBADMSG, GROUP_KEY_OTHER},
        {"0009 000167", 0, GROUP_KEY_OTHER},
        {"0010 000167 00016d", 0, GROUP_KEY_OTHER},
        {"7fff", 0, GROUP_KEY_OTHER},
        {"", -EBADMSG, GROUP_KEY_OTHER},
        {"00", -EBADMSG, GROUP_KEY_OTHER},
        {"ffff 000167", -EBADMSG, GROUP_KEY_OTHER},
        {"0001 000167 000174", -EBADMSG, GROUP_KEY_OTHER},
        {"0001 ffff 000174 00000000", -EBADMSG, GROUP_KEY_OTHER},
        {"0002 000567", -EBADMSG, GROUP_KEY_OTHER},
    };
    uint8_t room[64];
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct group_key k;
        assert_int_equal(group_key_decode(bytes_of(rows[i].hex, room), &k), rows[i].rc);
        if (rows[i].rc == 0)
            assert_int_equal(k.kind, rows[i].kind);
    }
}

/* ---- offset values ---- */

static void offset_values_are_kafkas(void **state)
{
    struct buf b = BUF_INIT;
    struct offset_value v = {
        .offset = 42, .leader_epoch = -1, .commit_ms = 1700000000000, .expire_ms = -1};
    v.metadata = STR_LIT("");
    offset_value_put(&b, 3, &v);
    assert_hex(&b, "0003 000000000000002a ffffffff 0000 0000018bcfe56800");
    b.len = 0;
    offset_value_put(&b, 2, &v);
    assert_hex(&b, "0002 000000000000002a 0000 0000018bcfe56800");
    b.len = 0;
    v = (struct offset_value){12345, 6, STR_LIT("meta"), 1700000000000, -1};
    offset_value_put(&b, 3, &v);
    assert_hex(&b, "000300000000000030390000000600046d6574610000018bcfe56800");
    b.len = 0;
    v = (struct offset_value){12345, 6, STR_NULL, 1700000000000, 1700000060000};
    offset_value_put(&b, 3, &v); /* an expiry makes it version 1 */
    assert_hex(&b, "0001000000000000303900000000018bcfe568000000018bcfe65260");
    buf_free(&b);
}

static void offset_values_of_all_versions_are_read(void **state)
{
    static const struct {
        const char *hex;
        int rc;
        int32_t epoch;
        int64_t expire_ms;
        const char *metadata;
    } rows[] = {
        {"0000 000000000000002a 0001 6d 0000018bcfe56800", 0, -1, -1, "m"},
        {"0001 000000000000002a 0000 0000018bcfe56800 0000018bcfe65260", 0, -1, 1700000060000, ""},
        {"0001 000000000000002a 0000 0000018bcfe56800 ffffffffffffffff", 0, -1, -1, ""},
        {"0002 000000000000002a 0000 0000018bcfe56800", 0, -1, -1, ""},
        {"0003 000000000000002a 00000005 0002 6d6d 0000018bcfe56800", 0, 5, -1, "mm"},
        {"0004 000000000000002a 00000005 02 6d 0000018bcfe56800 00", 0, 5, -1, "m"},
        {"0004 000000000000002a 00000005 02 6d 0000018bcfe56800 01 09 01 ff", 0, 5, -1, "m"},
        {"0005 000000000000002a", -ENOTSUP, 0, 0, NULL},
        {"ffff 000000000000002a", -ENOTSUP, 0, 0, NULL},
        {"0003 000000000000002a 00000005", -EBADMSG, 0, 0, NULL},
        {"0003 000000000000002a 00000005 ffff 0000018bcfe56800", -EBADMSG, 0, 0, NULL},
        {"", -EBADMSG, 0, 0, NULL},
    };
    uint8_t room[128];
    struct arena a;
    arena_init(&a, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct offset_value v;
        assert_int_equal(offset_value_decode(bytes_of(rows[i].hex, room), &a, &v), rows[i].rc);
        if (rows[i].rc)
            continue;
        assert_int_equal(v.offset, 42);
        assert_int_equal(v.commit_ms, 1700000000000);
        assert_int_equal(v.leader_epoch, rows[i].epoch);
        assert_int_equal(v.expire_ms, rows[i].expire_ms);
        assert_true(str_eqz(v.metadata, rows[i].metadata));
    }
    arena_free(&a);
}

/* ---- group values ---- */

#define MEMBER_TAIL "0003 636c69 000a 2f3132372e302e302e31"
#define BYTES_2 "00000002 0102 00000001 03"
static const struct {
    int16_t version;
    const char *hex;
    int32_t rebalance;
    bool instance, state_time;
} group_values[] = {
    {0,
     "0000 0008 636f6e73756d6572 00000007 0005 72616e6765 0001 6d 00000001 "
     "0001 6d " MEMBER_TAIL " 00002710 " BYTES_2,
     10000, false, false},
    {1,
     "0001 0008 636f6e73756d6572 00000007 0005 72616e6765 0001 6d 00000001 "
     "0001 6d " MEMBER_TAIL " 0000ea60 00002710 " BYTES_2,
     60000, false, false},
    {2,
     "0002 0008 636f6e73756d6572 00000007 0005 72616e6765 0001 6d 0000018bcfe56800 00000001 "
     "0001 6d " MEMBER_TAIL " 0000ea60 00002710 " BYTES_2,
     60000, false, true},
    {3,
     "0003 0008 636f6e73756d6572 00000007 0005 72616e6765 0001 6d 0000018bcfe56800 00000001 "
     "0001 6d 0001 69 " MEMBER_TAIL " 0000ea60 00002710 " BYTES_2,
     60000, true, true},
    {4,
     "0004 09 636f6e73756d6572 00000007 06 72616e6765 02 6d 0000018bcfe56800 02 "
     "02 6d 02 69 04 636c69 0b 2f3132372e302e302e31 0000ea60 00002710 03 0102 02 03 00 00",
     60000, true, true},
};

static void group_values_of_all_versions(void **state)
{
    uint8_t room[256];
    struct arena a;
    arena_init(&a, 0);
    for (size_t i = 0; i < sizeof(group_values) / sizeof(*group_values); i++) {
        struct group_metadata_value v;
        assert_int_equal(group_value_decode(bytes_of(group_values[i].hex, room), &a, &v), 0);
        assert_true(str_eqz(v.protocol_type, "consumer") && str_eqz(v.protocol, "range") &&
                    str_eqz(v.leader, "m"));
        assert_int_equal(v.generation, 7);
        assert_int_equal(v.current_state_timestamp,
                         group_values[i].state_time ? 1700000000000 : -1);
        assert_int_equal(v.members.n, 1);
        const struct group_metadata_value_member *m = v.members.v;
        assert_true(str_eqz(m->member_id, "m") && str_eqz(m->client_id, "cli") &&
                    str_eqz(m->client_host, "/127.0.0.1"));
        assert_true(str_eqz(m->group_instance_id, group_values[i].instance ? "i" : NULL));
        assert_int_equal(m->session_timeout, 10000);
        assert_int_equal(m->rebalance_timeout, group_values[i].rebalance);
        assert_int_equal(m->subscription.len, 2);
        assert_int_equal(m->assignment.len, 1);
        struct buf b = BUF_INIT; /* and written again, it is the same */
        assert_true(group_value_put(&b, group_values[i].version, &v));
        assert_hex(&b, group_values[i].hex);
        buf_free(&b);
    }
    arena_free(&a);
}

static void a_group_value_cut_anywhere_is_refused(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    for (size_t i = 0; i < sizeof(group_values) / sizeof(*group_values); i++) {
        uint8_t room[256];
        struct bytes whole = bytes_of(group_values[i].hex, room);
        for (int32_t n = 0; n < whole.len; n++) {
            struct group_metadata_value v;
            uint8_t *cut = malloc((size_t)n + 1); /* so that reading past the end is noticed */
            memcpy(cut, room, (size_t)n);
            assert_int_equal(group_value_decode((struct bytes){cut, n}, &a, &v), -EBADMSG);
            free(cut);
        }
    }
    arena_free(&a);
}

static void what_is_written_follows_the_cluster(void **state)
{
    static const struct {
        int ibp, iv;
        int16_t offset, group;
    } rows[] = {{10, 0, 1, 0},  {11, 2, 1, 1},  {200, 1, 1, 1}, {201, 0, 2, 2}, {201, 1, 3, 2},
                {201, 2, 3, 2}, {202, 1, 3, 2}, {203, 0, 3, 3}, {309, 0, 3, 3}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct group_record_versions v = group_record_versions_of(rows[i].ibp, rows[i].iv);
        assert_int_equal(v.offset, rows[i].offset);
        assert_int_equal(v.group, rows[i].group);
    }
}

/* ---- subscriptions ---- */

static void topics_of_subscriptions(void **state)
{
    static const struct {
        const char *hex;
        int rc;
        size_t n;
    } rows[] = {
        {"0000 00000001 000174 ffffffff", 0, 1},
        {"0001 00000001 000174 ffffffff 00000001 000174 00000002 00000000 00000001", 0, 1},
        {"0003 00000001 000174 ffffffff 00000000 ffffffff ffff", 0, 1},
        {"0063 00000002 000174 000175 00000001 ff", 0, 2},
        {"0000 00000000 ffffffff", 0, 0},
        {"0000 00000003 000174 000174 000174 ffffffff", 0, 1},
        {"0000 00000001 000174", -EBADMSG, 0},
        {"0000 00000002 000174 ffffffff", -EBADMSG, 0},
        {"0000 7fffffff 000174 ffffffff", -EBADMSG, 0},
        {"0000 ffffffff ffffffff", -EBADMSG, 0},
        {"0000 00000001 ffff ffffffff", -EBADMSG, 0},
        {"0000 00000001 000174 00000009 00", -EBADMSG, 0},
        {"", -EBADMSG, 0},
    };
    uint8_t room[64];
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct group_topics s;
        group_topics_init(&s);
        assert_int_equal(group_topics_add_subscription(&s, bytes_of(rows[i].hex, room)),
                         rows[i].rc);
        if (rows[i].rc == 0)
            assert_int_equal(s.map.n, rows[i].n);
        if (rows[i].rc == 0 && rows[i].n)
            assert_true(group_topics_has(&s, STR_LIT("t")));
        assert_false(group_topics_has(&s, STR_LIT("x")));
        group_topics_free(&s);
    }
}

UNIT_MAIN(unit_test(hashes_as_java_does), unit_test(counts_utf16_units), unit_test(keys_are_kafkas),
          unit_test(keys_of_other_kinds_and_damaged_ones), unit_test(offset_values_are_kafkas),
          unit_test(offset_values_of_all_versions_are_read),
          unit_test(group_values_of_all_versions), unit_test(a_group_value_cut_anywhere_is_refused),
          unit_test(what_is_written_follows_the_cluster), unit_test(topics_of_subscriptions))
