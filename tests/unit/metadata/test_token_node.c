/* Nodes of delegation tokens: as Kafka's, byte for byte, and those that are none. */
#include <errno.h>

#include "metadata/token_node.h"
#include "unit.h"

#define TIMES "\"issueTimestamp\":1,\"maxTimestamp\":3,\"expiryTimestamp\":2"
#define NODE(version, more) \
    "{\"version\":" version ",\"owner\":\"User%3Aa\"," more TIMES ",\"tokenId\":\"x-_1\"}"
#define ASKED "\"tokenRequester\":\"User%3Aq\","
#define NOBODY "\"renewers\":[],"

static struct bytes bytes_of(const char *text)
{
    return (struct bytes){(const uint8_t *)text, (int32_t)strlen(text)};
}

static void written_and_read(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 0);
    struct str renewers[] = {STR_LIT("User:b c"), STR_LIT("User:CN=\xc3\xa9,O=*~+")};
    struct token_info t = {.id = STR_LIT("x-_1"),
                           .owner = STR_LIT("User:a"),
                           .requester = STR_LIT("User:q"),
                           .renewers = renewers,
                           .renewers_n = 2,
                           .issue_ms = 1,
                           .max_ms = 3,
                           .expiry_ms = 2};
    struct token_info back;
    struct bytes data = token_node_encode(&t, &a);
    assert_non_null(data.p);
    assert_string_equal(
        (const char *)data.p,
        "{\"version\":3,\"owner\":\"User%3Aa\",\"tokenRequester\":\"User%3Aq\","
        "\"renewers\":[\"User%3Ab%20c\",\"User%3ACN%3D%C3%A9%2CO%3D%2A%7E%2B\"]," TIMES
        ",\"tokenId\":\"x-_1\"}");
    assert_int_equal(token_node_decode(data, &a, &back), 0);
    assert_true(str_eq(back.id, t.id) && str_eq(back.owner, t.owner) &&
                str_eq(back.requester, t.requester));
    assert_int_equal(back.renewers_n, 2);
    for (int i = 0; i < 2; i++)
        assert_true(token_renewed_by(&back, renewers[i]));
    assert_false(token_renewed_by(&back, STR_LIT("User:a")));
    assert_true(token_owned_by(&back, STR_LIT("User:a")));
    assert_int_equal(back.issue_ms, 1);
    assert_int_equal(back.max_ms, 3);
    assert_int_equal(back.expiry_ms, 2);
    arena_free(&a);
}

static void forms(void **state)
{
    static const struct {
        const char *text;
        int rc;
        const char *requester;
    } v[] = {
        {NODE("3", ASKED NOBODY), 0, "User:q"},
        {NODE("1", NOBODY), 0, "User:a"},
        {NODE("2", ASKED NOBODY), 0, "User:a"},
        {NODE("3", NOBODY), -EBADMSG, NULL},
        {NODE("0", NOBODY), -EBADMSG, NULL},
        {NODE("4", ASKED NOBODY), -EBADMSG, NULL},
        {NODE("1", ""), -EBADMSG, NULL},
        {NODE("1", "\"renewers\":\"User:a\","), -EBADMSG, NULL},
        {NODE("1", "\"renewers\":[1],"), -EBADMSG, NULL},
        {NODE("1", "\"renewers\":[\"nobody\"],"), -EBADMSG, NULL},
        {NODE("1", "\"renewers\":[\"User:%\"],"), -EBADMSG, NULL},
        {NODE("1", "\"renewers\":[\"User:%4\"],"), -EBADMSG, NULL},
        {NODE("1", "\"renewers\":[\"User:%4g\"],"), -EBADMSG, NULL},
        {NODE("1", "\"renewers\":[\"User:admin%00x\"],"), -EBADMSG, NULL},
        {NODE("1", "\"renewers\":[\"User:a+b\"],"), 0, "User:a"},
        {"{\"version\":1,\"owner\":\"User%3Aa\",\"renewers\":[]," TIMES ",\"tokenId\":\"../x\"}",
         -EBADMSG, NULL},
        {"{\"version\":1,\"owner\":\"User%3Aa\",\"renewers\":[]," TIMES "}", -EBADMSG, NULL},
        {"{}", -EBADMSG, NULL},
        {"", -EBADMSG, NULL},
        {"[3]", -EBADMSG, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        struct arena a;
        struct token_info t;
        arena_init(&a, 0);
        int rc = token_node_decode(bytes_of(v[i].text), &a, &t);
        if (rc != v[i].rc)
            fail_msg("%s: %d", v[i].text, rc);
        if (!rc && !str_eqz(t.requester, v[i].requester))
            fail_msg("%s: %.*s", v[i].text, STR_ARG(t.requester));
        arena_free(&a);
    }
}

static void ids(void **state)
{
    static const struct {
        const char *id;
        bool ok;
    } v[] = {{"x", true},    {"a-_Z09", true}, {"", false},
             {"a/b", false}, {"..", false},    {"a b", false}};
    (void)state;
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
        if (token_id_ok(str_of(v[i].id)) != v[i].ok)
            fail_msg("%s", v[i].id);
    char many[200];
    memset(many, 'x', sizeof(many));
    assert_false(token_id_ok((struct str){many, sizeof(many)}));
    assert_false(token_id_ok(STR_NULL));
}

UNIT_MAIN(unit_test(written_and_read), unit_test(forms), unit_test(ids))
