/* handle_describe_scram.c - DescribeUserScramCredentials: which SCRAM mechanisms users have, with
 * how many iterations, as the store has it. kafka-configs asks for them whenever it describes
 * users. */
#include <errno.h>
#include <string.h>

#include "base/hmap.h"
#include "protocol/msg/describe_user_scram_credentials.h"
#include "server/broker.h"
#include "server/entity_configs.h"
#include "server/handlers.h"
#include "server/quota_entity.h"
#include "server/request_later.h"

typedef struct describe_user_scram_credentials_response_result result;
typedef struct describe_user_scram_credentials_response_credential_info info;

static const struct {
    const char *key;
    int8_t code;
} mechanisms[] = {{"SCRAM-SHA-256", 1}, {"SCRAM-SHA-512", 2}};
enum { MECHANISMS = sizeof(mechanisms) / sizeof(*mechanisms) };

struct stored_user {
    struct list link;
    struct str name;
    info infos[MECHANISMS];
    int n;
};

struct asked_user {
    struct hnode node;
    struct list link;
    struct str name;
    const struct stored_user *stored; /* NULL: has no credential */
    bool again;
};

struct scram_op {
    struct request *req;
    const struct describe_user_scram_credentials_request *in;
    struct describe_user_scram_credentials_response out;
    struct list users; /* of stored_user */
    int32_t users_n;
    struct list asked;   /* of asked_user */
    struct hmap by_name; /* the same */
    struct control_op queued;
    int failed; /* -errno */
};

/* "salt=...,stored_key=...,server_key=...,iterations=4096", in any order; -1: not there. */
static int32_t iterations_of(struct str credential)
{
    static const char key[] = "iterations=";
    enum { KEY = sizeof(key) - 1 };
    for (int32_t at = 0; at + KEY < credential.len; at++) {
        if ((at > 0 && credential.p[at - 1] != ',') || memcmp(credential.p + at, key, KEY) != 0)
            continue;
        int32_t n = 0;
        for (at += KEY; at < credential.len && credential.p[at] >= '0' && credential.p[at] <= '9' &&
                        n < 100000000;
             at++)
            n = n * 10 + (credential.p[at] - '0');
        return n;
    }
    return -1;
}

static int add_user(void *arg, const struct quota_entity *e, struct config_list list)
{
    struct scram_op *op = arg;
    if (e->part[QUOTA_CLIENT].given || str_is_null(e->part[QUOTA_USER].name))
        return 0;
    struct stored_user *u = arena_new(op->req->arena, struct stored_user);
    if (!u)
        return -ENOMEM;
    u->name = e->part[QUOTA_USER].name;
    for (int m = 0; m < MECHANISMS; m++) {
        for (int i = 0; i < list.n; i++) {
            if (!str_eq(list.v[i].name, str_of(mechanisms[m].key)) || str_is_null(list.v[i].value))
                continue;
            int32_t iterations = iterations_of(list.v[i].value);
            if (iterations >= 0)
                u->infos[u->n++] =
                    (info){.mechanism = mechanisms[m].code, .iterations = iterations};
        }
    }
    if (u->n == 0)
        return 0;
    list_push_back(&op->users, &u->link);
    op->users_n++;
    return 0;
}

static void tell(const struct stored_user *u, result *out)
{
    out->user = u->name;
    out->credential_infos.v = (info *)u->infos;
    out->credential_infos.n = u->n;
}

static void refuse(struct arena *a, result *out, enum kerr error, const char *what)
{
    out->error_code = (int16_t)error;
    const char *text = arena_printf(a, "%s: %.*s", what, STR_ARG(out->user));
    out->error_message = text ? str_of(text) : STR_NULL;
}

static bool has_name(const struct hnode *node, const void *name)
{
    return str_eq(hmap_entry(node, struct asked_user, node)->name, *(const struct str *)name);
}

/* Whom the request names: each once, in order, and who of them are named again. */
static int take_names(struct scram_op *op)
{
    for (int32_t i = 0; i < op->in->users.n; i++) {
        struct str name = op->in->users.v[i].name;
        uint64_t hash = hash_str(name);
        struct hnode *there = hmap_find(&op->by_name, hash, has_name, &name);
        if (there) {
            hmap_entry(there, struct asked_user, node)->again = true;
            continue;
        }
        struct asked_user *u = arena_new(op->req->arena, struct asked_user);
        if (!u || hmap_put(&op->by_name, &u->node, hash) != 0)
            return -ENOMEM;
        u->name = name;
        list_push_back(&op->asked, &u->link);
    }
    list_each (at, &op->users) {
        const struct stored_user *u = list_entry(at, struct stored_user, link);
        struct hnode *there = hmap_find(&op->by_name, hash_str(u->name), has_name, &u->name);
        if (there)
            hmap_entry(there, struct asked_user, node)->stored = u;
    }
    return 0;
}

static void answer_one(struct scram_op *op, const struct asked_user *u, result *out)
{
    out->user = u->name;
    if (u->again)
        refuse(op->req->arena, out, KERR_DUPLICATE_RESOURCE,
               "Cannot describe SCRAM credentials for the same user twice in a single request");
    else if (u->stored)
        tell(u->stored, out);
    else
        refuse(op->req->arena, out, KERR_RESOURCE_NOT_FOUND,
               "Attempt to describe a user credential that does not exist");
}

/* Those who were named, or all that there are when none was. */
static int gather(struct scram_op *op)
{
    int32_t most = op->in->users.n > 0 ? op->in->users.n : op->users_n;
    result *v = describe_user_scram_credentials_response_result_new(op->req->arena, most);
    if (!v || take_names(op) != 0)
        return -ENOMEM;
    int32_t n = 0;
    list_each (at, &op->asked)
        answer_one(op, list_entry(at, struct asked_user, link), &v[n++]);
    if (op->in->users.n <= 0)
        list_each (at, &op->users)
            tell(list_entry(at, struct stored_user, link), &v[n++]);
    op->out.results.v = v;
    op->out.results.n = n;
    return 0;
}

static void work(struct control_op *queued)
{
    struct scram_op *op = container_of(queued, struct scram_op, queued);
    op->failed = entity_configs_each(op->req->broker, "users", op->req->arena, add_user, op);
    if (!op->failed)
        op->failed = gather(op);
    hmap_free(&op->by_name);
}

static void done(struct control_op *queued)
{
    struct scram_op *op = container_of(queued, struct scram_op, queued);
    struct broker *b = op->req->broker;
    if (op->failed) {
        op->out.error_code = KERR_UNKNOWN_SERVER_ERROR;
        op->out.error_message = str_of(kerr_text(KERR_UNKNOWN_SERVER_ERROR));
    }
    request_respond(op->req, &op->out);
    broker_async_end(b);
}

void handle_describe_user_scram_credentials(struct request *req)
{
    struct scram_op *op = arena_new(req->arena, struct scram_op);
    if (!op) {
        request_no_memory(req);
        return;
    }
    op->req = req;
    op->in = req->body;
    list_init(&op->users);
    list_init(&op->asked);
    hmap_init(&op->by_name);
    describe_user_scram_credentials_response_init(&op->out);
    op->out.error_message = STR_NULL;
    request_configure(req, &op->queued, work, done);
}
