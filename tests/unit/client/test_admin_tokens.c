/* The admin client's delegation tokens against a mock broker. */
#include "client/client_test.h"

#include "protocol/errors.h"

struct tokens_test {
    struct mock *m;
    kafka_admin_t *a;
};

static void begin(struct tokens_test *t)
{
    t->m = mock_start(2);
    t->a = test_admin(test_conf(t->m, NULL));
}

static void end(struct tokens_test *t)
{
    kafka_admin_close(t->a);
    mock_stop(t->m);
}

static void assert_token(const kafka_token_t *t, const char *owner, const char *requester,
                         int64_t max_ms, size_t renewers_n)
{
    assert_string_equal(t->owner, owner);
    assert_string_equal(t->id, strchr(owner, ':') + 1);
    assert_string_equal(t->requester, requester);
    assert_int_equal(t->max_ms, max_ms);
    assert_int_equal(t->renewers_n, renewers_n);
}

static void made_for_oneself_and_others(void **state)
{
    static const char *const renewers[] = {"User:bob", "User:CN=a:b"};
    struct tokens_test t;
    kafka_tokens_t *made;
    begin(&t);
    assert_int_equal(kafka_admin_create_token(t.a, NULL, renewers, 2, -1, 60000, &made), KAFKA_OK);
    assert_int_equal(made->n, 1);
    assert_token(&made->v[0], "User:me", "User:me", 3000, 2);
    assert_string_equal(made->v[0].renewers[1], "User:CN=a:b");
    assert_int_equal(made->v[0].issue_ms, 1000);
    assert_int_equal(made->v[0].expiry_ms, 2000);
    assert_string_equal(made->v[0].secret, "bWU="); /* me */
    kafka_tokens_free(made);
    assert_int_equal(kafka_admin_create_token(t.a, "User:zoe", NULL, 0, 7, 60000, &made), KAFKA_OK);
    assert_token(&made->v[0], "User:zoe", "User:me", 1007, 0);
    kafka_tokens_free(made);
    kafka_tokens_free(NULL);
    end(&t);
}

/* A broker that cannot be told of an owner is not asked: the token would be one's own. */
static void old_brokers(void **state)
{
    struct tokens_test t;
    kafka_tokens_t *made;
    begin(&t);
    mock_cap_version(t.m, API_CREATE_DELEGATION_TOKEN, 2);
    mock_cap_version(t.m, API_DESCRIBE_DELEGATION_TOKEN, 2);
    assert_int_equal(kafka_admin_create_token(t.a, "User:zoe", NULL, 0, -1, 60000, &made),
                     KAFKA_ERR_UNSUPPORTED);
    assert_null(made);
    assert_int_equal(kafka_admin_create_token(t.a, NULL, NULL, 0, -1, 60000, &made), KAFKA_OK);
    assert_token(&made->v[0], "User:me", "User:me", 3000, 0);
    kafka_tokens_free(made);
    assert_int_equal(kafka_admin_describe_tokens(t.a, NULL, 0, 60000, &made), KAFKA_OK);
    assert_token(&made->v[0], "User:me", "User:me", 3000, 0);
    kafka_tokens_free(made);
    end(&t);
}

static void renewed_and_ended(void **state)
{
    struct tokens_test t;
    int64_t expiry = 0;
    begin(&t);
    assert_int_equal(kafka_admin_renew_token(t.a, "bWU=", 50, 60000, &expiry), KAFKA_OK);
    assert_int_equal(expiry, 5050);
    assert_int_equal(kafka_admin_expire_token(t.a, "bWU=", -1, 60000, &expiry), KAFKA_OK);
    assert_int_equal(expiry, 5999);
    assert_int_equal(kafka_admin_expire_token(t.a, "bWU=", -1, 60000, NULL), KAFKA_OK);
    assert_int_equal(kafka_admin_renew_token(t.a, "Z29uZQ==", 50, 60000, &expiry),
                     KERR_DELEGATION_TOKEN_NOT_FOUND);
    assert_int_equal(kafka_admin_expire_token(t.a, "Z29uZQ==", 50, 60000, &expiry),
                     KERR_DELEGATION_TOKEN_NOT_FOUND);
    assert_int_equal(expiry, 5999);                                /* as it was */
    mock_script(t.m, API_RENEW_DELEGATION_TOKEN, MOCK_DROP, 0, 1); /* heals */
    assert_int_equal(kafka_admin_renew_token(t.a, "bWU=", 51, 60000, &expiry), KAFKA_OK);
    assert_int_equal(expiry, 5051);
    end(&t);
}

static void told(void **state)
{
    static const char *const owners[] = {"User:a", "User:b", "User:c"};
    struct tokens_test t;
    kafka_tokens_t *all;
    begin(&t);
    assert_int_equal(kafka_admin_describe_tokens(t.a, NULL, 0, 60000, &all), KAFKA_OK);
    assert_int_equal(all->n, 1);
    assert_token(&all->v[0], "User:me", "User:asker", 3000, 0);
    kafka_tokens_free(all);
    assert_int_equal(kafka_admin_describe_tokens(t.a, owners, 3, 60000, &all), KAFKA_OK);
    assert_int_equal(all->n, 3);
    assert_token(&all->v[2], "User:c", "User:asker", 3002, 2);
    assert_string_equal(all->v[2].renewers[1], "User:r:1");
    kafka_tokens_free(all);
    assert_int_equal(kafka_admin_describe_tokens(t.a, owners, 0, 60000, &all), KAFKA_OK);
    assert_int_equal(all->n, 0); /* nobody's */
    kafka_tokens_free(all);
    end(&t);
}

static void refused(void **state)
{
    static const char *const bad[] = {"User:a", "nobody"}, *const empty[] = {":a"};
    struct tokens_test t;
    kafka_tokens_t *out;
    begin(&t);
    mock_script(t.m, API_CREATE_DELEGATION_TOKEN, MOCK_ERROR,
                KERR_DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, 1);
    assert_int_equal(kafka_admin_create_token(t.a, NULL, NULL, 0, -1, 60000, &out),
                     KERR_DELEGATION_TOKEN_REQUEST_NOT_ALLOWED);
    assert_null(out);
    mock_script(t.m, API_DESCRIBE_DELEGATION_TOKEN, MOCK_ERROR, KERR_DELEGATION_TOKEN_AUTH_DISABLED,
                1);
    assert_int_equal(kafka_admin_describe_tokens(t.a, NULL, 0, 60000, &out),
                     KERR_DELEGATION_TOKEN_AUTH_DISABLED);
    assert_null(out);
    /* what no broker was asked */
    assert_int_equal(kafka_admin_create_token(t.a, "zoe", NULL, 0, -1, 60000, &out),
                     KAFKA_ERR_INVALID_ARG);
    assert_string_equal(kafka_last_error(),
                        "expected a string in format principalType:principalName but got zoe");
    assert_int_equal(kafka_admin_create_token(t.a, NULL, bad, 2, -1, 60000, &out),
                     KAFKA_ERR_INVALID_ARG);
    assert_int_equal(kafka_admin_describe_tokens(t.a, empty, 1, 60000, &out),
                     KAFKA_ERR_INVALID_ARG);
    assert_int_equal(kafka_admin_renew_token(t.a, "%%%", -1, 60000, NULL), KAFKA_ERR_INVALID_ARG);
    assert_int_equal(kafka_admin_expire_token(t.a, NULL, -1, 60000, NULL), KAFKA_ERR_INVALID_ARG);
    end(&t);
}

UNIT_MAIN(unit_test(made_for_oneself_and_others), unit_test(old_brokers),
          unit_test(renewed_and_ended), unit_test(told), unit_test(refused))
