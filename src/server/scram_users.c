/* scram_users.c - see scram_users.h. */
#include "server/scram_users.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "base/logline.h"

enum { KINDS = 2 };
static const enum sasl_mechanism kinds[KINDS] = {SASL_SCRAM_SHA_256, SASL_SCRAM_SHA_512};

struct scram_user {
    struct hnode node;
    bool has[KINDS];
    struct scram_credential credentials[KINDS];
    int32_t len;
    char name[];
};

struct scram_users {
    pthread_rwlock_t lock;
    struct hmap users; /* of scram_user, by name; owned */
};

/* Its keys do not stay behind in freed memory. Accepts NULL. */
static void user_free(struct scram_user *u)
{
    if (!u)
        return;
    OPENSSL_cleanse(u->credentials, sizeof(u->credentials));
    free(u);
}

static bool has_name(const struct hnode *node, const void *name)
{
    const struct scram_user *u = hmap_entry(node, struct scram_user, node);
    return str_eq((struct str){u->name, u->len}, *(const struct str *)name);
}

struct scram_users *scram_users_new(void)
{
    struct scram_users *users = calloc(1, sizeof(*users));
    if (!users)
        return NULL;
    pthread_rwlock_init(&users->lock, NULL);
    hmap_init(&users->users);
    return users;
}

void scram_users_free(struct scram_users *users)
{
    if (!users)
        return;
    for (struct hnode *n = hmap_first(&users->users), *next; n; n = next) {
        next = hmap_next(&users->users, n);
        user_free(hmap_entry(n, struct scram_user, node));
    }
    hmap_free(&users->users);
    pthread_rwlock_destroy(&users->lock);
    free(users);
}

/* Whether there is any. */
static bool read_credentials(struct scram_user *u, struct config_list settings)
{
    bool any = false;
    for (int k = 0; k < KINDS; k++) {
        const char *key = sasl_mechanism_name(kinds[k]);
        for (int i = 0; i < settings.n; i++) {
            struct arena a;
            if (!str_eqz(settings.v[i].name, key))
                continue;
            arena_init(&a, 0);
            a.secret = true;
            u->has[k] =
                scram_credential_parse(kinds[k], settings.v[i].value, &a, &u->credentials[k]);
            arena_free(&a);
            if (!u->has[k])
                say_error("ScramUsers", "the %s credential of user %.*s is malformed and ignored",
                          key, u->len, u->name);
        }
        any |= u->has[k];
    }
    return any;
}

static struct scram_user *user_new(struct str name)
{
    struct scram_user *u = calloc(1, sizeof(*u) + (size_t)name.len + 1);
    if (!u)
        return NULL;
    u->len = name.len;
    memcpy(u->name, name.p, (size_t)name.len);
    return u;
}

/* Takes the place of the one of that name; `u` NULL: there is none any more. 0 or -ENOMEM. */
static int replace(struct scram_users *users, struct str name, struct scram_user *u)
{
    uint64_t hash = hash_str(name);
    int rc = 0;
    pthread_rwlock_wrlock(&users->lock);
    struct hnode *old = hmap_find(&users->users, hash, has_name, &name);
    if (old)
        hmap_remove(&users->users, old);
    if (u && (rc = hmap_put(&users->users, &u->node, hash)) != 0 && old) {
        (void)hmap_put(&users->users, old, hash); /* where it was: needs no memory */
        old = NULL;
    }
    pthread_rwlock_unlock(&users->lock);
    if (old)
        user_free(hmap_entry(old, struct scram_user, node));
    return rc;
}

int scram_users_set(struct scram_users *users, struct str user, struct config_list settings)
{
    struct scram_user *u = user_new(user);
    if (!u)
        return -ENOMEM;
    if (!read_credentials(u, settings)) {
        user_free(u);
        return replace(users, user, NULL);
    }
    int rc = replace(users, user, u);
    if (rc)
        user_free(u);
    return rc;
}

bool scram_users_find(void *arg, enum sasl_mechanism m, struct str user,
                      struct scram_credential *out)
{
    struct scram_users *users = arg;
    int k = m == SASL_SCRAM_SHA_512;
    pthread_rwlock_rdlock(&users->lock);
    const struct hnode *n = hmap_find(&users->users, hash_str(user), has_name, &user);
    const struct scram_user *u = n ? hmap_entry(n, struct scram_user, node) : NULL;
    bool found = u && u->has[k];
    if (found)
        *out = u->credentials[k];
    pthread_rwlock_unlock(&users->lock);
    return found;
}

int scram_users_count(const struct scram_users *users)
{
    return (int)users->users.n;
}
