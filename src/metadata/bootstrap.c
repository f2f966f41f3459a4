/* bootstrap.c - see bootstrap.h. */
#include "metadata/bootstrap.h"

#include <stdlib.h>

#include "metadata/paths.h"
#include "metadata/znode.h"

static const char *const base_paths[] = {
    "/consumers",      PATH_BROKER_IDS,  PATH_TOPICS,       PATH_CONFIG_CHANGES, PATH_DELETE_TOPICS,
    PATH_BROKER_SEQID, PATH_ISR_CHANGES, PATH_PRODUCER_IDS, PATH_LOG_DIR_EVENTS, PATH_CONFIG_TOPICS,
    "/config/clients", "/config/users",  "/config/brokers", "/config/ips",
};

int bootstrap_paths(struct store *s)
{
    for (size_t i = 0; i < sizeof(base_paths) / sizeof(base_paths[0]); i++) {
        int err = store_create_path(s, base_paths[i], BYTES_NULL, NULL);
        if (err)
            return err;
    }
    return 0;
}

static int read_cluster_id(struct store *s, struct arena *a, char **id)
{
    struct bytes data;
    struct str text;
    int err = store_get(s, PATH_CLUSTER_ID, &data, NULL);
    if (err)
        return err;
    err = znode_cluster_id_decode(data, a, &text);
    free((void *)data.p);
    if (err)
        return err;
    *id = str_dup(text);
    return *id ? 0 : -ENOMEM;
}

int bootstrap_cluster_id(struct store *s, char **id)
{
    struct arena a;
    char made[23];
    *id = NULL;
    arena_init(&a, 0);
    int err = read_cluster_id(s, &a, id);
    if (err == -ENOENT) {
        uuid_format(uuid_random(), made);
        struct bytes data = znode_cluster_id_encode(made, &a);
        err = data.p ? store_create_path(s, PATH_CLUSTER_ID, data, NULL) : -ENOMEM;
        if (!err) /* whoever was first */
            err = read_cluster_id(s, &a, id);
    }
    arena_free(&a);
    return err;
}

int bootstrap_broker_id(struct store *s, int32_t reserved_max, int32_t *id)
{
    struct store_op op =
        store_op_set(PATH_BROKER_SEQID, (struct bytes){(const uint8_t *)"", 0}, STORE_ANY_VERSION);
    struct store_request r = {.ops = &op, .ops_n = 1};
    int err = store_run(s, &r);
    if (err == -ENOENT) {
        err = store_create_path(s, PATH_BROKER_SEQID, BYTES_NULL, NULL);
        if (!err)
            err = store_run(s, &r);
    }
    if (!err)
        *id = reserved_max + op.stat.version;
    return err;
}
