/* acl_follow.h - keeps somebody's picture of the ACLs as the store has them: notices of change name
 * patterns, whose nodes are read and told; a new session reads all of them again, since notices may
 * have come and gone while nobody listened.
 *
 * ORDER    every node is read and told on the executor, in the order of the store's answers: what
 *          is told of a pattern last is the latest.
 * THREADS  as said. */
#ifndef ACL_ACL_FOLLOW_H
#define ACL_ACL_FOLLOW_H

#include "acl/acl_store.h"
#include "base/clock.h"

struct acl_follow;
struct acl_follow_options {
    struct store *store;
    struct executor *ex;
    const struct clock *clock;
    /* The pattern is so now; told() follows, perhaps after more of them. 0, or -ENOMEM: then all is
     * read and told again a little later. On ex. */
    int (*now)(void *arg, const struct acl_stored *one);
    int (*told)(void *arg);
    /* What patterns does the picture have? In the arena. 0 or -ENOMEM. On ex. */
    int (*known)(void *arg, struct arena *a, struct acl_pattern **out, int *n);
    void (*closed)(void *arg); /* the last call. On ex */
    void *arg;
};
/* 0 or -ENOMEM. The picture is loaded before _start. */
int acl_follow_new(const struct acl_follow_options *o, struct acl_follow **out);
void acl_follow_start(struct acl_follow *f); /* @thread any */
/* Reads the patterns now; they are told when it returns. @blocks @thread any but ex, before
 * _close */
void acl_follow_refresh(struct acl_follow *f, const struct acl_pattern *patterns, int n);
/* Frees, now or when what is under way is answered; then `closed`. NULL is fine. @thread ex */
void acl_follow_close(struct acl_follow *f);

#endif
