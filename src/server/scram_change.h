/* scram_change.h - what a client asks of SCRAM credentials (AlterUserScramCredentials), decided on
 * lists handed in: which of a request's users may be changed, and a user's settings afterwards.
 *
 * A user is changed as a whole or not at all: one thing that is wrong with any of his changes
 * refuses them all; users do not depend on each other.
 *
 * THREADS  one at a time: all belongs to one request. */
#ifndef SERVER_SCRAM_CHANGE_H
#define SERVER_SCRAM_CHANGE_H

#include "base/hmap.h"
#include "metadata/znode.h"
#include "protocol/errors.h"
#include "protocol/msg/alter_user_scram_credentials.h"
#include "sasl/scram.h"

enum { SCRAM_KINDS = 2 };

struct scram_user_change {
    struct hnode node;
    struct list link;
    struct str user;
    enum kerr error;
    const char *message; /* static */
    /* by kind: SCRAM-SHA-256, SCRAM-SHA-512; at most one of each is set */
    const struct alter_user_scram_credentials_request_upsertion *put[SCRAM_KINDS];
    bool drop[SCRAM_KINDS];
};
struct scram_changes {
    struct list users; /* of scram_user_change, each user once, in the request's order */
    int32_t n;
    struct hmap by_name;
};

/* All users that the request names, with what can be said of them without the store. In the arena;
 * free the map with scram_changes_free. 0 or -ENOMEM. */
int scram_changes_read(const struct alter_user_scram_credentials_request *in, struct arena *a,
                       struct scram_changes *out);
void scram_changes_free(struct scram_changes *c);
/* A user's settings afterwards, in the arena; other settings (quotas) stay. Sets the change's error
 * when he has not what is to be deleted. */
enum kerr scram_change_make(struct scram_user_change *u, struct config_list old, struct arena *a,
                            struct config_list *out);

#endif
