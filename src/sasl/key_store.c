/* key_store.c - see key_store.h. */
#include "sasl/key_store.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"
#include "sasl/jwt_private.h"
#include "sasl/url_file.h"

enum { LEAST_MS = 10000 }; /* between two readings */

struct key_store {
    char *url;
    int64_t refresh_ms;
    atomic_int_fast64_t read_ms; /* when it was read, or tried to be, last */
    pthread_rwlock_t lock;
    struct jwt_keys *keys; /* under the lock */
};

static int load(const char *url, struct jwt_keys **out, char *err, size_t err_n)
{
    struct arena a;
    struct str text;
    const char *problem = NULL;
    arena_init(&a, 0);
    int rc = url_file_read(url, URL_FILE_MAX, &a, &text, &problem);
    if (!rc)
        rc = jwt_keys_new(text, out, &problem);
    if (!rc && jwt_keys_count(*out) == 0) {
        jwt_keys_free(*out);
        problem = "it holds no key for signatures";
        rc = -EINVAL;
    }
    if (rc)
        snprintf(err, err_n, "%s", problem ? problem : "out of memory");
    arena_free(&a);
    return rc;
}

int key_store_new(const char *url, int64_t refresh_ms, int64_t now_ms, struct key_store **out,
                  char *err, size_t err_n)
{
    struct jwt_keys *keys;
    *out = NULL;
    int rc = load(url, &keys, err, err_n);
    if (rc)
        return rc;
    struct key_store *s = calloc(1, sizeof(*s));
    if (!s || !(s->url = strdup(url))) {
        jwt_keys_free(keys);
        free(s);
        return -ENOMEM;
    }
    s->refresh_ms = refresh_ms > LEAST_MS ? refresh_ms : LEAST_MS;
    s->keys = keys;
    atomic_store(&s->read_ms, now_ms);
    pthread_rwlock_init(&s->lock, NULL);
    *out = s;
    return 0;
}

void key_store_free(struct key_store *s)
{
    if (!s)
        return;
    jwt_keys_free(s->keys);
    pthread_rwlock_destroy(&s->lock);
    free(s->url);
    free(s);
}

/* If the last reading is that long ago, and nobody else is at it. Have the keys changed hands? */
static bool reload(struct key_store *s, int64_t now_ms, int64_t age_ms)
{
    char why[300];
    struct jwt_keys *keys;
    int_fast64_t last = atomic_load(&s->read_ms);
    if (now_ms - last < age_ms || !atomic_compare_exchange_strong(&s->read_ms, &last, now_ms))
        return false;
    if (load(s->url, &keys, why, sizeof(why)) != 0) {
        say_error("OAuthBearer", "%s: the keys stay as they are: %s", s->url, why);
        return false;
    }
    pthread_rwlock_wrlock(&s->lock);
    struct jwt_keys *old = s->keys;
    s->keys = keys;
    pthread_rwlock_unlock(&s->lock);
    jwt_keys_free(old);
    return true;
}

static const char *check(struct key_store *s, struct str token, const struct jwt_rules *rules,
                         int64_t now_ms, struct arena *a, struct jwt_claims *out)
{
    pthread_rwlock_rdlock(&s->lock);
    const char *problem = jwt_check(token, s->keys, rules, now_ms, a, out);
    pthread_rwlock_unlock(&s->lock);
    return problem;
}

const char *key_store_check(struct key_store *s, struct str token, const struct jwt_rules *rules,
                            int64_t now_ms, struct arena *a, struct jwt_claims *out)
{
    reload(s, now_ms, s->refresh_ms);
    const char *problem = check(s, token, rules, now_ms, a, out);
    if (problem == jwt_no_key && reload(s, now_ms, LEAST_MS))
        problem = check(s, token, rules, now_ms, a, out);
    return problem;
}
