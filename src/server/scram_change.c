/* scram_change.c - see scram_change.h. */
#include "server/scram_change.h"

#include <errno.h>

typedef struct alter_user_scram_credentials_request_deletion deletion;
typedef struct alter_user_scram_credentials_request_upsertion upsertion;

static enum sasl_mechanism mechanism_of(int kind)
{
    return kind == 0 ? SASL_SCRAM_SHA_256 : SASL_SCRAM_SHA_512;
}

static const char *key_of(int kind)
{
    return sasl_mechanism_name(mechanism_of(kind));
}

static bool has_name(const struct hnode *node, const void *name)
{
    return str_eq(hmap_entry(node, struct scram_user_change, node)->user,
                  *(const struct str *)name);
}

static struct scram_user_change *user_of(struct scram_changes *c, struct str name, struct arena *a)
{
    uint64_t hash = hash_str(name);
    struct hnode *there = hmap_find(&c->by_name, hash, has_name, &name);
    if (there)
        return hmap_entry(there, struct scram_user_change, node);
    struct scram_user_change *u = arena_new(a, struct scram_user_change);
    if (!u || hmap_put(&c->by_name, &u->node, hash) != 0)
        return NULL;
    u->user = name;
    list_push_back(&c->users, &u->link);
    c->n++;
    return u;
}

/* What is wrong with a single change wins over one that comes twice. */
static void refuse(struct scram_user_change *u, enum kerr error, const char *message)
{
    if (u->error != KERR_NONE && u->error != KERR_DUPLICATE_RESOURCE)
        return;
    if (u->error == KERR_DUPLICATE_RESOURCE && error == KERR_DUPLICATE_RESOURCE)
        return;
    u->error = error;
    u->message = message;
}

/* The kind; -1: the change is refused. */
static int check(struct scram_user_change *u, int8_t mechanism)
{
    enum sasl_mechanism m;
    if (u->user.len <= 0) {
        refuse(u, KERR_UNACCEPTABLE_CREDENTIAL, "Username must not be empty");
        return -1;
    }
    if (!scram_of_code(mechanism, &m)) {
        refuse(u, KERR_UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism");
        return -1;
    }
    int kind = m == SASL_SCRAM_SHA_512;
    if (!u->put[kind] && !u->drop[kind])
        return kind;
    refuse(u, KERR_DUPLICATE_RESOURCE,
           "A user credential cannot be altered twice in the same "
           "request");
    return -1;
}

static void take_upsertion(struct scram_user_change *u, const upsertion *p)
{
    int kind = check(u, p->mechanism);
    if (kind < 0)
        return;
    u->put[kind] = p;
    if (p->iterations > SCRAM_MAX_ITERATIONS)
        refuse(u, KERR_UNACCEPTABLE_CREDENTIAL, "Too many iterations");
    else if (p->iterations < SCRAM_MIN_ITERATIONS)
        refuse(u, KERR_UNACCEPTABLE_CREDENTIAL, "Too few iterations");
    else if (p->salt.len <= 0 || p->salt.len > SCRAM_SALT_MAX)
        refuse(u, KERR_UNACCEPTABLE_CREDENTIAL, "The salt must have 1 to 256 bytes");
    else if (p->salted_password.len != scram_hash_len(mechanism_of(kind)))
        refuse(u, KERR_UNACCEPTABLE_CREDENTIAL,
               "The salted password must have as many bytes as the mechanism's hash");
}

int scram_changes_read(const struct alter_user_scram_credentials_request *in, struct arena *a,
                       struct scram_changes *out)
{
    *out = (struct scram_changes){0};
    list_init(&out->users);
    hmap_init(&out->by_name);
    for (int32_t i = 0; i < in->deletions.n; i++) {
        const deletion *d = &in->deletions.v[i];
        struct scram_user_change *u = user_of(out, d->name, a);
        if (!u)
            return -ENOMEM;
        int kind = check(u, d->mechanism);
        if (kind >= 0)
            u->drop[kind] = true;
    }
    for (int32_t i = 0; i < in->upsertions.n; i++) {
        struct scram_user_change *u = user_of(out, in->upsertions.v[i].name, a);
        if (!u)
            return -ENOMEM;
        take_upsertion(u, &in->upsertions.v[i]);
    }
    return 0;
}

void scram_changes_free(struct scram_changes *c)
{
    hmap_free(&c->by_name);
}

/* ---- the settings afterwards ---- */

static bool drop(struct config_list *l, const char *key)
{
    for (int i = 0; i < l->n; i++) {
        if (!str_eqz(l->v[i].name, key))
            continue;
        l->v[i] = l->v[--l->n];
        return true;
    }
    return false;
}

static struct str credential_text(int kind, const upsertion *p, struct arena *a)
{
    struct scram_key salted;
    struct scram_credential c;
    memcpy(salted.b, p->salted_password.p, (size_t)p->salted_password.len);
    if (!scram_credential_of_salted(mechanism_of(kind), &salted, p->salt, p->iterations, &c))
        return STR_NULL;
    return scram_credential_format(mechanism_of(kind), &c, a);
}

enum kerr scram_change_make(struct scram_user_change *u, struct config_list old, struct arena *a,
                            struct config_list *out)
{
    out->n = old.n;
    out->v = arena_array(a, struct config_pair, (size_t)old.n + SCRAM_KINDS);
    if (!out->v)
        return u->error = KERR_UNKNOWN_SERVER_ERROR;
    if (old.n)
        memcpy(out->v, old.v, (size_t)old.n * sizeof(*out->v));
    for (int kind = 0; kind < SCRAM_KINDS; kind++) {
        bool was = (u->put[kind] || u->drop[kind]) && drop(out, key_of(kind));
        if (u->drop[kind] && !was)
            refuse(u, KERR_RESOURCE_NOT_FOUND,
                   "Attempt to delete a user credential that does not exist");
        if (!u->put[kind])
            continue;
        struct str text = credential_text(kind, u->put[kind], a);
        if (!text.p)
            return u->error = KERR_UNKNOWN_SERVER_ERROR;
        out->v[out->n++] = (struct config_pair){str_of(key_of(kind)), text};
    }
    return u->error;
}
