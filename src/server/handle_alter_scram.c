/* handle_alter_scram.c - AlterUserScramCredentials: at the controller, in the queue of settings.
 * What is stored is made of the salted password that the client sends; the password itself never
 * comes here. */
#include "server/broker.h"
#include "server/entity_configs.h"
#include "server/handlers.h"
#include "server/quota_entity.h"
#include "server/request_later.h"
#include "server/scram_change.h"

typedef struct alter_user_scram_credentials_response_result result;

struct alter_op {
    struct request *req;
    struct scram_changes changes;
    struct alter_user_scram_credentials_response out;
    struct control_op queued;
};

static enum kerr alter_user(struct alter_op *op, struct scram_user_change *u)
{
    struct arena *a = op->req->arena;
    struct broker *b = op->req->broker;
    struct quota_entity e = {0};
    struct config_list old, new;
    e.part[QUOTA_USER].given = true;
    e.part[QUOTA_USER].name = u->user;
    char *path = quota_entity_path(&e, a);
    if (!path || entity_configs_read(b, str_of(path), a, &old) != 0)
        return KERR_UNKNOWN_SERVER_ERROR;
    enum kerr error = scram_change_make(u, old, a, &new);
    return error == KERR_NONE ? entity_configs_write(b, str_of(path), new) : error;
}

static void work(struct control_op *queued)
{
    struct alter_op *op = container_of(queued, struct alter_op, queued);
    int32_t n = 0;
    list_each (at, &op->changes.users) {
        struct scram_user_change *u = list_entry(at, struct scram_user_change, link);
        result *to = &op->out.results.v[n++];
        if (u->error == KERR_NONE)
            u->error = alter_user(op, u);
        to->user = u->user;
        to->error_code = (int16_t)u->error;
        to->error_message = u->error == KERR_NONE ? STR_NULL
                            : u->message          ? str_of(u->message)
                                                  : str_of(kerr_text((int16_t)u->error));
    }
    op->out.results.n = n;
}

static void done(struct control_op *queued)
{
    struct alter_op *op = container_of(queued, struct alter_op, queued);
    struct broker *b = op->req->broker;
    scram_changes_free(&op->changes);
    request_respond(op->req, &op->out);
    broker_async_end(b);
}

static bool prepare(struct alter_op *op)
{
    bool here = broker_is_controller(op->req->broker);
    if (scram_changes_read(op->req->body, op->req->arena, &op->changes) != 0)
        return false;
    list_each (at, &op->changes.users) {
        struct scram_user_change *u = list_entry(at, struct scram_user_change, link);
        if (here && op->req->refused == KERR_NONE)
            continue;
        u->error = here ? op->req->refused : KERR_NOT_CONTROLLER;
        u->message = NULL;
    }
    op->out.results.v =
        alter_user_scram_credentials_response_result_new(op->req->arena, op->changes.n);
    return op->out.results.v != NULL;
}

void handle_alter_user_scram_credentials(struct request *req)
{
    struct alter_op *op = arena_new(req->arena, struct alter_op);
    if (!op) {
        request_no_memory(req);
        return;
    }
    op->req = req;
    alter_user_scram_credentials_response_init(&op->out);
    if (!prepare(op)) {
        scram_changes_free(&op->changes);
        request_no_memory(req);
        return;
    }
    request_configure(req, &op->queued, work, done);
}
