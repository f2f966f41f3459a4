/* quota_change.h - what clients ask of quotas, decided on lists handed in: changes of one entity,
 * and which entities a description is about. */
#ifndef SERVER_QUOTA_CHANGE_H
#define SERVER_QUOTA_CHANGE_H

#include "metadata/znode.h"
#include "protocol/errors.h"
#include "protocol/msg/alter_client_quotas.h"
#include "protocol/msg/describe_client_quotas.h"
#include "server/quota_entity.h"

/* Errors come with a message in the arena, or static. */

/* Whom an entry of AlterClientQuotas is about. An address is not looked up. */
enum kerr quota_change_entity(const struct alter_client_quotas_request_entry *entry,
                              struct arena *a, struct quota_entity *out, const char **message);
/* The entity's settings after the operations; others' keys (SCRAM) stay. */
enum kerr quota_change_make(const struct alter_client_quotas_request_entry *entry,
                            const struct quota_entity *e, struct config_list old, struct arena *a,
                            struct config_list *out, const char **message);

struct quota_filter {
    struct {
        bool given, exact, is_default; /* neither exact nor default: any */
        struct str name;
    } part[QUOTA_PARTS];
    bool strict; /* parts that are not given must be absent */
};
enum kerr quota_filter_of(const struct describe_client_quotas_request *req, struct arena *a,
                          struct quota_filter *out, const char **message);
bool quota_filter_fits(const struct quota_filter *f, const struct quota_entity *e);

/* The value of a key that is a quota of such an entity; false: it is none, or no number. */
bool quota_value(const struct quota_entity *e, const struct config_pair *pair, double *value);

#endif
