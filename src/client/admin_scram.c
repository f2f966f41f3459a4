/* admin_scram.c - the admin client's SCRAM credentials of users. Passwords are salted here: what is
 * sent is of no use at another server. */
#include <stdlib.h>

#include <kafka/admin.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "client/admin_private.h"
#include "protocol/errors.h"
#include "protocol/msg/alter_user_scram_credentials.h"
#include "protocol/msg/describe_user_scram_credentials.h"
#include "sasl/scram.h"

enum { SALT_BYTES = 20 };

/* ---- changes ---- */

struct altering {
    struct admin_said said;
    const kafka_scram_change_t *changes;
    size_t n;
    kafka_err_t *errs;
};

static kafka_err_t on_altered(struct op *op, int version, const void *response)
{
    const struct alter_user_scram_credentials_response *m = response;
    struct altering *a = op->arg;
    for (int32_t i = 0; i < m->results.n; i++)
        if (m->results.v[i].error_code == KERR_NOT_CONTROLLER)
            return KERR_NOT_CONTROLLER;
    for (size_t i = 0; i < a->n; i++) {
        const struct alter_user_scram_credentials_response_result *r = NULL;
        for (int32_t k = 0; k < m->results.n; k++)
            if (str_eqz(m->results.v[k].user, a->changes[i].user))
                r = &m->results.v[k];
        if (!r)
            return KAFKA_ERR_BAD_RESPONSE;
        a->errs[i] = r->error_code;
    }
    for (int32_t k = 0; k < m->results.n; k++) {
        if (!m->results.v[k].error_code)
            continue;
        admin_say(&a->said, m->results.v[k].error_code, m->results.v[k].error_message);
        break;
    }
    return KAFKA_OK;
}

/* Salts the password. */
static kafka_err_t fill_one(struct alter_user_scram_credentials_request_upsertion *u,
                            const kafka_scram_change_t *c, struct arena *mem)
{
    enum sasl_mechanism m;
    uint8_t *salt = arena_alloc(mem, SALT_BYTES);
    struct scram_key *salted = arena_new(mem, struct scram_key);
    int iterations = c->iterations ? c->iterations : SCRAM_MIN_ITERATIONS;
    if (!salt || !salted || RAND_bytes(salt, SALT_BYTES) != 1)
        return KAFKA_ERR_NO_MEMORY;
    if (!c->user || !c->password || iterations < 0 || iterations > SCRAM_MOST_ITERATIONS)
        return client_fail(KAFKA_ERR_INVALID_ARG,
                           "a SCRAM credential needs a user, a password, and at most a million "
                           "iterations");
    /* Of a mechanism that it does not know the broker says so. */
    (void)scram_of_code((int8_t)c->mechanism, &m);
    struct bytes s = {salt, SALT_BYTES};
    if (!scram_salted_password(m, str_of(c->password), s, iterations, salted))
        return KAFKA_ERR_NO_MEMORY;
    u->name = str_of(c->user);
    u->mechanism = (int8_t)c->mechanism;
    u->iterations = iterations;
    u->salt = s;
    u->salted_password = (struct bytes){salted->b, scram_hash_len(m)};
    return KAFKA_OK;
}

static kafka_err_t fill(struct alter_user_scram_credentials_request *req,
                        const kafka_scram_change_t *changes, size_t n, struct arena *mem)
{
    req->deletions.v = alter_user_scram_credentials_request_deletion_new(mem, (int32_t)n);
    req->upsertions.v = alter_user_scram_credentials_request_upsertion_new(mem, (int32_t)n);
    kafka_err_t err = req->deletions.v && req->upsertions.v ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
    for (size_t i = 0; i < n && err == KAFKA_OK; i++) {
        if (!changes[i].remove) {
            err = fill_one(&req->upsertions.v[req->upsertions.n++], &changes[i], mem);
            continue;
        }
        req->deletions.v[req->deletions.n++] =
            (struct alter_user_scram_credentials_request_deletion){
                .name = str_of(changes[i].user), .mechanism = (int8_t)changes[i].mechanism};
    }
    return err;
}

kafka_err_t kafka_admin_alter_scram(kafka_admin_t *a, const kafka_scram_change_t *changes, size_t n,
                                    int64_t timeout_ms, kafka_err_t *errs, char *message,
                                    size_t message_n)
{
    struct arena mem;
    struct alter_user_scram_credentials_request req;
    struct altering altering = {
        .said = {.message = message, .n = message_n}, .changes = changes, .n = n, .errs = errs};
    arena_init(&mem, 0);
    alter_user_scram_credentials_request_init(&req);
    kafka_err_t err = fill(&req, changes, n, &mem);
    struct op op = {.node = NODE_CONTROLLER,
                    .api_key = API_ALTER_USER_SCRAM_CREDENTIALS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_altered,
                    .arg = &altering};
    if (err == KAFKA_OK)
        err = op_run(a->cluster, &op, timeout_ms);
    for (int32_t i = 0; i < req.upsertions.n; i++)
        OPENSSL_cleanse((void *)req.upsertions.v[i].salted_password.p,
                        req.upsertions.v[i].salted_password.p ? SCRAM_HASH_MAX : 0);
    arena_free(&mem);
    return err;
}

/* ---- description ---- */

struct scram_users_result { /* list first: what the user gets */
    kafka_scram_users_t list;
    struct arena mem;
};

static bool keep_user(struct arena *mem,
                      const struct describe_user_scram_credentials_response_result *from,
                      kafka_scram_user_t *to)
{
    int32_t n = from->credential_infos.n > 0 ? from->credential_infos.n : 0;
    kafka_scram_info_t *infos = arena_array(mem, kafka_scram_info_t, (size_t)n + 1);
    if (!infos)
        return false;
    for (int32_t i = 0; i < n; i++)
        infos[i] = (kafka_scram_info_t){from->credential_infos.v[i].mechanism,
                                        from->credential_infos.v[i].iterations};
    *to = (kafka_scram_user_t){.user = admin_keep(mem, from->user),
                               .err = from->error_code,
                               .message =
                                   from->error_code ? admin_keep(mem, from->error_message) : NULL,
                               .infos = infos,
                               .infos_n = (size_t)n};
    return to->user != NULL;
}

static kafka_err_t on_described(struct op *op, int version, const void *response)
{
    const struct describe_user_scram_credentials_response *m = response;
    struct admin_said *said = op->arg;
    struct scram_users_result *r = said->result;
    if (m->error_code)
        return admin_say(said, m->error_code, m->error_message);
    int32_t n = m->results.n > 0 ? m->results.n : 0;
    arena_reset(&r->mem);
    kafka_scram_user_t *v = arena_array(&r->mem, kafka_scram_user_t, (size_t)n + 1);
    bool complete = v != NULL;
    for (int32_t i = 0; complete && i < n; i++)
        complete = keep_user(&r->mem, &m->results.v[i], &v[i]);
    r->list = (kafka_scram_users_t){v, (size_t)n};
    return complete ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

kafka_err_t kafka_admin_describe_scram(kafka_admin_t *a, const char *const *users, size_t n,
                                       int64_t timeout_ms, char *message, size_t message_n,
                                       kafka_scram_users_t **out)
{
    struct scram_users_result *r = calloc(1, sizeof *r);
    struct arena mem;
    struct describe_user_scram_credentials_request req;
    struct admin_said said = {.message = message, .n = message_n, .result = r};
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    *out = NULL;
    if (!r)
        return err;
    arena_init(&r->mem, 0);
    arena_init(&mem, 0);
    describe_user_scram_credentials_request_init(&req);
    req.users.v = describe_user_scram_credentials_request_user_new(&mem, (int32_t)n);
    req.users.n = users ? (int32_t)n : -1;
    for (size_t i = 0; req.users.v && i < n; i++)
        req.users.v[i].name = str_of(users[i]);
    struct op op = {.node = NODE_ANY,
                    .api_key = API_DESCRIBE_USER_SCRAM_CREDENTIALS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_described,
                    .arg = &said};
    if (req.users.v)
        err = op_run(a->cluster, &op, timeout_ms);
    arena_free(&mem);
    if (err == KAFKA_OK)
        *out = &r->list;
    else
        kafka_scram_users_free(&r->list);
    return err;
}

void kafka_scram_users_free(kafka_scram_users_t *users)
{
    struct scram_users_result *r = (struct scram_users_result *)users;
    if (!r)
        return;
    arena_free(&r->mem);
    free(r);
}
