#include "log/meta_properties.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/checkpoint.h"
#include "log/log_names.h"

enum { FILE_MAX_BYTES = 1 << 20 };

static int bad(char *err, size_t err_n, const char *path, const char *key, const char *found,
               const char *allowed)
{
    snprintf(err, err_n, "%s: %s is \"%s\", allowed is %s", path, key, found, allowed);
    return -EINVAL;
}

static int take_values(struct meta_properties *m, const char *path, char *err, size_t err_n)
{
    int64_t v;
    const char *version = props_get(m->props, "version");
    if (version && !checkpoint_int(str_of(version), 0, 0, &v))
        return bad(err, err_n, path, "version", version, "0");
    const char *id = props_get(m->props, "broker.id");
    if (id && !checkpoint_int(str_of(id), 0, INT32_MAX, &v))
        return bad(err, err_n, path, "broker.id", id, "a number from 0 on");
    if (id)
        m->broker_id = (int32_t)v;
    const char *cluster = props_get(m->props, "cluster.id");
    if (cluster && (!*cluster || strlen(cluster) >= CLUSTER_ID_MAX))
        return bad(err, err_n, path, "cluster.id", cluster, "a text of 1 to 63 characters");
    if (cluster)
        snprintf(m->cluster_id, sizeof(m->cluster_id), "%s", cluster);
    return 0;
}

int meta_properties_read(struct fs *fs, const char *dir, struct meta_properties *out, char *err,
                         size_t err_n)
{
    char path[LOG_PATH_MAX];
    char *text = NULL;
    size_t len = 0;
    *out = (struct meta_properties){.props = props_new(), .broker_id = -1};
    log_path_join(path, dir, META_PROPERTIES_NAME);
    int rc = out->props ? fs_read_all(fs, path, FILE_MAX_BYTES, &text, &len) : -ENOMEM;
    if (rc == -ENOENT)
        return 0;
    if (!rc) {
        int line = 0;
        rc = props_parse(out->props, text, len, &line);
        if (rc == -EINVAL)
            snprintf(err, err_n, "%s: line %d is not a line of a properties file", path, line);
    }
    free(text);
    if (!rc)
        rc = take_values(out, path, err, err_n);
    if (rc)
        meta_properties_free(out);
    return rc;
}

void meta_properties_free(struct meta_properties *m)
{
    if (m->props)
        props_free(m->props);
    m->props = NULL;
}

int meta_properties_update(struct fs *fs, const char *dir, struct meta_properties *m,
                           int32_t broker_id, const char *cluster_id)
{
    char path[LOG_PATH_MAX], id[16];
    const char *cluster = cluster_id ? cluster_id : m->cluster_id;
    if (props_get(m->props, "version") && m->broker_id == broker_id &&
        strcmp(m->cluster_id, cluster) == 0)
        return 0;
    snprintf(id, sizeof(id), "%" PRId32, broker_id);
    int err = props_set(m->props, "version", "0");
    if (!err)
        err = props_set(m->props, "broker.id", id);
    if (!err && *cluster)
        err = props_set(m->props, "cluster.id", cluster);
    struct buf text = BUF_INIT;
    if (!err) {
        props_write(m->props, &text);
        log_path_join(path, dir, META_PROPERTIES_NAME);
        err = text.failed ? -ENOMEM : fs_replace(fs, path, text.p, text.len);
    }
    buf_free(&text);
    if (!err) {
        m->broker_id = broker_id;
        if (cluster != m->cluster_id)
            snprintf(m->cluster_id, sizeof(m->cluster_id), "%s", cluster);
    }
    return err;
}
