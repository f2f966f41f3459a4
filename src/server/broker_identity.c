/* broker_identity.c - the metadata store, and who this broker is: its cluster's id and its own,
 * from the store, the settings and the log dirs' meta.properties.
 *
 * ZOOKEEPER  the cluster's id is ZooKeeper's; a log dir of another cluster stops the start. An id
 *            that is neither given nor stored is generated.
 * EMBEDDED   one broker by itself: the log dirs' cluster id is taken over, the broker id is 0 where
 *            nothing says otherwise. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/logline.h"
#include "metadata/bootstrap.h"
#include "metadata/embedded_store.h"
#include "metadata/paths.h"
#include "metadata/znode.h"
#include "metadata/zookeeper_store.h"
#include "server/broker_private.h"

#define META_LOCK "kafkad-metadata.lock"

int broker_start_failed(char *err, size_t err_n, int rc, const char *what)
{
    snprintf(err, err_n, "%s: %s", what, strerror(-rc));
    return rc;
}

/* ---- the store ---- */

static void store_failed(void *arg, int error)
{
    (void)error; /* the store has logged it */
    broker_fatal(arg, "the metadata journal cannot be written");
}

static int lock_metadata(struct broker *b, const char *dir, char *err, size_t err_n)
{
    int rc = fs_mkdir_p(fs_posix(), dir);
    if (rc) {
        snprintf(err, err_n, "log.dirs: cannot make the folder %s: %s", dir, strerror(-rc));
        return rc;
    }
    if (asprintf(&b->meta_lock_path, "%s/" META_LOCK, dir) < 0) {
        b->meta_lock_path = NULL;
        return broker_start_failed(err, err_n, -ENOMEM, dir);
    }
    int dir_fd = -1;
    rc = fs_lock(b->meta_lock_path, &b->meta_lock_fd);
    if (!rc) /* the log manager locks the folder, too; here it is a look: the file may be a new one
              */
        rc = fs_lock_dir(dir, &dir_fd);
    if (dir_fd >= 0)
        close(dir_fd);
    if (rc == -EAGAIN)
        snprintf(err, err_n,
                 "log.dirs: %s is locked: another process uses this folder; each broker needs "
                 "folders of its own",
                 b->meta_lock_path);
    else if (rc)
        broker_start_failed(err, err_n, rc, b->meta_lock_path);
    return rc;
}

static int open_embedded(struct broker *b, char *err, size_t err_n)
{
    const char *dir = b->config->log_dirs[0];
    say_info("KafkaServer",
             "metadata store: embedded, in %s (zookeeper.connect is not set: a broker by itself)",
             dir);
    int rc = lock_metadata(b, dir, err, err_n);
    if (rc)
        return rc;
    struct embedded_options o = {
        .fs = fs_posix(), .clock = b->clock, .dir = dir, .failed = store_failed, .arg = b};
    return embedded_store_open(&o, &b->store, err, err_n);
}

static int open_zookeeper(struct broker *b, char *err, size_t err_n)
{
    const struct config *c = b->config;
    int64_t session = config_int(c, "zookeeper.session.timeout.ms");
    int64_t connection = config_int(c, "zookeeper.connection.timeout.ms");
    struct zookeeper_options o = {
        .connect = config_string(c, "zookeeper.connect"),
        .session_timeout_ms = (int)session,
        .connection_timeout_ms = (int)(connection == INT64_MIN ? session : connection),
        .max_in_flight = (int)config_int(c, "zookeeper.max.in.flight.requests"),
        .protect = config_bool(c, "zookeeper.set.acl"),
        .digest = config_string(c, "zookeeper.digest.auth"),
    };
    say_info("KafkaServer", "metadata store: ZooKeeper at %s, session timeout %lld ms", o.connect,
             (long long)session);
    return zookeeper_store_open(&o, &b->store, err, err_n);
}

bool broker_on_zookeeper(const struct broker *b)
{
    const char *connect = config_string(b->config, "zookeeper.connect");
    return connect && *connect;
}

static int open_store(struct broker *b, char *err, size_t err_n)
{
    int rc = broker_on_zookeeper(b) ? open_zookeeper(b, err, err_n) : open_embedded(b, err, err_n);
    if (rc)
        return rc;
    rc = bootstrap_paths(b->store);
    return rc ? broker_start_failed(err, err_n, rc, "cannot prepare the metadata store") : 0;
}

/* ---- ids ---- */

/* The embedded store takes over what the log dirs carry. */
static int hand_over_cluster_id(struct broker *b, const char *found)
{
    struct arena a;
    arena_init(&a, 0);
    int rc = store_create_path(b->store, PATH_CLUSTER_ID, znode_cluster_id_encode(found, &a), NULL);
    arena_free(&a);
    return rc;
}

static int find_cluster_id(struct broker *b, const char *found, char *err, size_t err_n)
{
    int rc = *found && !broker_on_zookeeper(b) ? hand_over_cluster_id(b, found) : 0;
    if (!rc)
        rc = bootstrap_cluster_id(b->store, &b->cluster_id);
    if (rc)
        return broker_start_failed(err, err_n, rc,
                                   "cannot read the cluster id of the metadata store");
    if (*found && strcmp(found, b->cluster_id) != 0) {
        snprintf(err, err_n,
                 "log.dirs: meta.properties has cluster.id %s, the metadata store%s%s is of "
                 "cluster %s: it must be the same cluster, or the folders new ones",
                 found, broker_on_zookeeper(b) ? " at zookeeper.connect=" : "",
                 broker_on_zookeeper(b) ? config_string(b->config, "zookeeper.connect") : "",
                 b->cluster_id);
        return -EINVAL;
    }
    return 0;
}

static int find_broker_id(struct broker *b, int32_t found, char *err, size_t err_n)
{
    if (b->id >= 0)
        return 0;
    b->id = found >= 0 ? found : 0;
    if (found >= 0 || !broker_on_zookeeper(b))
        return 0;
    int32_t reserved = (int32_t)config_int(b->config, "reserved.broker.max.id");
    int rc = bootstrap_broker_id(b->store, reserved, &b->id);
    if (rc)
        return broker_start_failed(err, err_n, rc, "broker.id: cannot generate one in ZooKeeper");
    say_info("KafkaServer", "broker.id is not set: %d was generated", b->id);
    return 0;
}

int broker_find_identity(struct broker *b, char *err, size_t err_n)
{
    struct log_manager_options o;
    char found_cluster[64] = "";
    int32_t found_id = -1;
    broker_log_options(b, &o);
    o.cluster_id = NULL;
    int rc = log_manager_read_meta(&o, &found_id, found_cluster, err, err_n);
    if (!rc)
        rc = open_store(b, err, err_n);
    if (!rc)
        rc = find_cluster_id(b, found_cluster, err, err_n);
    if (!rc)
        rc = find_broker_id(b, found_id, err, err_n);
    return rc;
}
