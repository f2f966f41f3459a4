/* scram_users.h - the SCRAM credentials of all users, as the store has them, for logins.
 *
 * Filled at the start and at each change of a user's settings (entity_apply.c): "SCRAM-SHA-256" and
 * "SCRAM-SHA-512", each with a credential in Kafka's form. One that is malformed is passed over
 * with a line, and the user then has none of that kind.
 *
 * THREADS  any: has its lock. */
#ifndef SERVER_SCRAM_USERS_H
#define SERVER_SCRAM_USERS_H

#include "metadata/znode.h"
#include "sasl/scram.h"

struct scram_users;

struct scram_users *scram_users_new(void);        /* NULL without memory */
void scram_users_free(struct scram_users *users); /* NULL is fine */
/* These are all settings that the user has now. 0 or -ENOMEM (then as before). */
int scram_users_set(struct scram_users *users, struct str user, struct config_list settings);
/* As sasl_server_settings.credential has it; arg: the struct scram_users. */
bool scram_users_find(void *arg, enum sasl_mechanism m, struct str user,
                      struct scram_credential *out);
int scram_users_count(const struct scram_users *users); /* with a credential */

#endif
