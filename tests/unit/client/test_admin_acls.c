/* The admin client's ACLs against a mock broker. */
#include "client/client_test.h"

#include "protocol/errors.h"

struct acls_test {
    struct mock *m;
    kafka_admin_t *a;
    char message[128];
};

static void begin(struct acls_test *t)
{
    t->m = mock_start(2);
    t->a = test_admin(test_conf(t->m, NULL));
}

static void end(struct acls_test *t)
{
    kafka_admin_close(t->a);
    mock_stop(t->m);
}

static kafka_acl_t topic_acl(const char *name, int pattern, const char *principal, int operation)
{
    return (kafka_acl_t){.resource_type = KAFKA_ACL_RESOURCE_TOPIC,
                         .pattern_type = pattern,
                         .name = name,
                         .principal = principal,
                         .host = "*",
                         .operation = operation,
                         .permission = KAFKA_ACL_ALLOW};
}

static const kafka_acl_t everything = {.resource_type = KAFKA_ACL_RESOURCE_ANY,
                                       .pattern_type = KAFKA_ACL_PATTERN_ANY,
                                       .operation = KAFKA_ACL_ANY,
                                       .permission = KAFKA_ACL_PERMISSION_ANY};

static kafka_err_t create(struct acls_test *t, const kafka_acl_t *acls, size_t n, kafka_err_t *errs)
{
    return kafka_admin_create_acls(t->a, acls, n, 60000, errs, t->message, sizeof t->message);
}

static kafka_err_t describe(struct acls_test *t, const kafka_acl_t *filter, kafka_acls_t **out)
{
    return kafka_admin_describe_acls(t->a, filter, 60000, t->message, sizeof t->message, out);
}

static void acls_are_made_and_told(void **state)
{
    struct acls_test t;
    kafka_acls_t *all;
    begin(&t);
    kafka_acl_t acls[] = {topic_acl("a", KAFKA_ACL_PATTERN_LITERAL, "User:u", KAFKA_ACL_READ),
                          topic_acl("b", KAFKA_ACL_PATTERN_PREFIXED, "User:u", KAFKA_ACL_WRITE),
                          {.resource_type = KAFKA_ACL_RESOURCE_CLUSTER,
                           .pattern_type = KAFKA_ACL_PATTERN_LITERAL,
                           .name = KAFKA_ACL_CLUSTER_NAME,
                           .principal = "User:v",
                           .host = "10.0.0.1",
                           .operation = KAFKA_ACL_DESCRIBE_TOKENS,
                           .permission = KAFKA_ACL_DENY}};
    kafka_err_t errs[] = {9, 9, 9};
    assert_int_equal(create(&t, acls, 3, errs), KAFKA_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(errs[i], KAFKA_OK);
    assert_int_equal(describe(&t, &everything, &all), KAFKA_OK);
    assert_int_equal(all->n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(all->v[i].resource_type, acls[i].resource_type);
        assert_int_equal(all->v[i].pattern_type, acls[i].pattern_type);
        assert_int_equal(all->v[i].operation, acls[i].operation);
        assert_int_equal(all->v[i].permission, acls[i].permission);
        assert_string_equal(all->v[i].name, acls[i].name);
        assert_string_equal(all->v[i].principal, acls[i].principal);
        assert_string_equal(all->v[i].host, acls[i].host);
    }
    kafka_acls_free(all);
    kafka_acl_t filter = everything;
    filter.principal = "User:u";
    filter.operation = KAFKA_ACL_WRITE;
    assert_int_equal(describe(&t, &filter, &all), KAFKA_OK);
    assert_int_equal(all->n, 1);
    assert_string_equal(all->v[0].name, "b");
    kafka_acls_free(all);
    filter.name = "none";
    assert_int_equal(describe(&t, &filter, &all), KAFKA_OK);
    assert_int_equal(all->n, 0);
    kafka_acls_free(all);
    end(&t);
}

static void each_creation_has_its_outcome(void **state)
{
    struct acls_test t;
    begin(&t);
    kafka_acl_t acls[] = {topic_acl("a", KAFKA_ACL_PATTERN_LITERAL, "User:u", KAFKA_ACL_READ),
                          topic_acl("refused", KAFKA_ACL_PATTERN_LITERAL, "u", KAFKA_ACL_READ),
                          topic_acl("b", KAFKA_ACL_PATTERN_LITERAL, "User:u", KAFKA_ACL_READ)};
    kafka_err_t errs[3];
    assert_int_equal(create(&t, acls, 3, errs), KERR_INVALID_REQUEST);
    assert_string_equal(t.message, "not this one");
    assert_string_equal(kafka_last_error(), "not this one");
    assert_int_equal(errs[0], KAFKA_OK);
    assert_int_equal(errs[1], KERR_INVALID_REQUEST);
    assert_int_equal(errs[2], KAFKA_OK);
    assert_int_equal(create(&t, acls, 3, NULL), KERR_INVALID_REQUEST);
    /* what no broker was asked */
    acls[1].principal = NULL;
    assert_int_equal(create(&t, acls, 3, errs), KAFKA_ERR_INVALID_ARG);
    assert_int_equal(errs[0], KAFKA_ERR_INVALID_ARG);
    assert_string_equal(t.message, "");
    mock_script(t.m, API_CREATE_ACLS, MOCK_ERROR, KERR_CLUSTER_AUTHORIZATION_FAILED, 1);
    assert_int_equal(create(&t, acls, 1, errs), KERR_CLUSTER_AUTHORIZATION_FAILED);
    assert_int_equal(errs[0], KERR_CLUSTER_AUTHORIZATION_FAILED);
    assert_string_equal(t.message, kafka_err_text(KERR_CLUSTER_AUTHORIZATION_FAILED));
    end(&t);
}

static void deletions_tell_what_they_fitted(void **state)
{
    struct acls_test t;
    kafka_acl_deletions_t *d;
    begin(&t);
    kafka_acl_t acls[] = {topic_acl("half", KAFKA_ACL_PATTERN_LITERAL, "User:u", KAFKA_ACL_READ),
                          topic_acl("half", KAFKA_ACL_PATTERN_PREFIXED, "User:u", KAFKA_ACL_ALL)};
    assert_int_equal(create(&t, acls, 2, NULL), KAFKA_OK);
    kafka_acl_t filters[] = {everything, everything, everything};
    filters[0].name = "half";
    filters[1].name = "refused";
    filters[2].name = "none";
    assert_int_equal(kafka_admin_delete_acls(t.a, filters, 3, 60000, &d), KAFKA_OK);
    assert_int_equal(d->n, 3);
    assert_int_equal(d->v[0].err, KAFKA_OK);
    assert_int_equal(d->v[0].n, 2);
    assert_int_equal(d->v[0].v[0].err, KERR_UNKNOWN_SERVER_ERROR);
    assert_string_equal(d->v[0].v[0].message, "only half");
    assert_int_equal(d->v[0].v[1].err, KAFKA_OK);
    assert_null(d->v[0].v[1].message);
    assert_int_equal(d->v[0].v[1].acl.pattern_type, KAFKA_ACL_PATTERN_PREFIXED);
    assert_int_equal(d->v[0].v[1].acl.operation, KAFKA_ACL_ALL);
    assert_string_equal(d->v[0].v[1].acl.principal, "User:u");
    assert_int_equal(d->v[1].err, KERR_INVALID_REQUEST);
    assert_string_equal(d->v[1].message, "not this one");
    assert_int_equal(d->v[2].err, KAFKA_OK);
    assert_int_equal(d->v[2].n, 0);
    kafka_acl_deletions_free(d);
    kafka_acl_deletions_free(NULL);
    end(&t);
}

static void errors_of_the_whole(void **state)
{
    struct acls_test t;
    kafka_acls_t *all;
    begin(&t);
    mock_script(t.m, API_DESCRIBE_ACLS, MOCK_ERROR, KERR_SECURITY_DISABLED, 1);
    assert_int_equal(describe(&t, &everything, &all), KERR_SECURITY_DISABLED);
    assert_null(all);
    assert_string_equal(t.message, "as the script says");
    mock_script(t.m, API_DESCRIBE_ACLS, MOCK_DROP, 0, 1); /* heals */
    assert_int_equal(describe(&t, &everything, &all), KAFKA_OK);
    kafka_acls_free(all);
    kafka_acls_free(NULL);
    end(&t);
}

/* Before 2.0 there were no patterns: what needs them is not sent as something else. */
static void patterns_are_not_for_old_brokers(void **state)
{
    struct acls_test t;
    kafka_acls_t *all;
    begin(&t);
    mock_cap_version(t.m, API_CREATE_ACLS, 0);
    mock_cap_version(t.m, API_DESCRIBE_ACLS, 0);
    kafka_acl_t acls[] = {topic_acl("a", KAFKA_ACL_PATTERN_PREFIXED, "User:u", KAFKA_ACL_READ)};
    kafka_acl_t filter = everything;
    assert_int_equal(create(&t, acls, 1, NULL), KAFKA_ERR_UNSUPPORTED);
    assert_int_equal(describe(&t, &filter, &all), KAFKA_ERR_UNSUPPORTED);
    acls[0].pattern_type = filter.pattern_type = KAFKA_ACL_PATTERN_LITERAL;
    assert_int_equal(create(&t, acls, 1, NULL), KAFKA_OK);
    assert_int_equal(describe(&t, &filter, &all), KAFKA_OK);
    assert_int_equal(all->n, 1);
    assert_int_equal(all->v[0].pattern_type, KAFKA_ACL_PATTERN_LITERAL);
    kafka_acls_free(all);
    end(&t);
}

static void numbers_have_names(void **state)
{
    assert_string_equal(kafka_acl_resource_name(KAFKA_ACL_RESOURCE_USER), "USER");
    assert_string_equal(kafka_acl_resource_name(8), "UNKNOWN");
    assert_string_equal(kafka_acl_pattern_name(KAFKA_ACL_PATTERN_PREFIXED), "PREFIXED");
    assert_string_equal(kafka_acl_pattern_name(-1), "UNKNOWN");
    assert_string_equal(kafka_acl_operation_name(KAFKA_ACL_DESCRIBE_TOKENS), "DESCRIBE_TOKENS");
    assert_string_equal(kafka_acl_operation_name(15), "UNKNOWN");
    assert_string_equal(kafka_acl_permission_name(KAFKA_ACL_DENY), "DENY");
    assert_string_equal(kafka_acl_permission_name(0), "UNKNOWN");
}

UNIT_MAIN(unit_test(acls_are_made_and_told), unit_test(each_creation_has_its_outcome),
          unit_test(deletions_tell_what_they_fitted), unit_test(errors_of_the_whole),
          unit_test(patterns_are_not_for_old_brokers), unit_test(numbers_have_names))
