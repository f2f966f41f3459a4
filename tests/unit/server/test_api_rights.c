/* What the API table says of rights: the APIs between brokers need CLUSTER_ACTION, and a refusal
 * without the handler finds its place in the answer, in every version that has one. */
#include "server/authorizer.h"
#include "server/request.h"
#include "unit.h"

static const struct field_desc *field_of(const struct msg_desc *m, const char *name)
{
    for (int i = 0; i < m->body->fields_n; i++)
        if (strcmp(m->body->fields[i].name, name) == 0)
            return &m->body->fields[i];
    return NULL;
}

/* WriteTxnMarkers has two rights that will do, one of them, which its handler asks about. */
static void apis_between_brokers_need_cluster_action(void **state)
{
    int n;
    const struct api_row *rows = api_served(&n);
    for (int i = 0; i < n; i++)
        if ((rows[i].flags & API_CLUSTER_ACTION) && rows[i].key != API_WRITE_TXN_MARKERS)
            assert_int_equal(rows[i].needs, ACL_CLUSTER_ACTION);
}

static void what_is_refused_without_its_handler_has_an_error_of_the_whole(void **state)
{
    int n;
    const struct api_row *rows = api_served(&n);
    for (int i = 0; i < n; i++) {
        if (!rows[i].needs || (rows[i].flags & API_TELLS_EACH))
            continue;
        const struct api_desc *api = api_find(rows[i].key);
        if (!field_of(api->response, "error_code"))
            fail_msg("%s has no error_code", api->name);
    }
}

static void rights_are_ones_that_exist_for_the_cluster(void **state)
{
    int n;
    const struct api_row *rows = api_served(&n);
    for (int i = 0; i < n; i++)
        if (rows[i].needs)
            assert_true(acl_operations_of(ACL_CLUSTER) & UINT32_C(1) << rows[i].needs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(apis_between_brokers_need_cluster_action),
        cmocka_unit_test(what_is_refused_without_its_handler_has_an_error_of_the_whole),
        cmocka_unit_test(rights_are_ones_that_exist_for_the_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
