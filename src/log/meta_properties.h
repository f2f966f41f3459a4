/* meta_properties.h - meta.properties of a log dir: whose it is.
 *
 * Keys: version=0, broker.id, cluster.id; others (directory.id) are kept when it is rewritten.
 *
 * THREADS    the one that starts the broker.
 *
 * OWNERSHIP  the value's, until meta_properties_free. */
#ifndef LOG_META_PROPERTIES_H
#define LOG_META_PROPERTIES_H

#include "base/file.h"
#include "base/props.h"

#define META_PROPERTIES_NAME "meta.properties"
#define CLUSTER_ID_MAX 64 /* with the NUL */

struct meta_properties {
    struct props *props;             /* all that the file says; empty when there is none */
    int32_t broker_id;               /* -1: not there */
    char cluster_id[CLUSTER_ID_MAX]; /* "": not there */
};

/* No file: a value without ids. 0; -EINVAL with a line for people in err (what is wrong, found,
 * allowed); -errno of reading. */
int meta_properties_read(struct fs *fs, const char *dir, struct meta_properties *out, char *err,
                         size_t err_n);
void meta_properties_free(struct meta_properties *m);
/* Writes the file when these ids differ from what it says. cluster_id NULL: left out. */
int meta_properties_update(struct fs *fs, const char *dir, struct meta_properties *m,
                           int32_t broker_id, const char *cluster_id);

#endif
