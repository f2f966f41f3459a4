/* log_dir_probe.c - see log_dir_probe.h. A folder that is not there is judged by the nearest one
 * above it that is: who may write there can make it, but on file systems of the kernel's own, where
 * root may "write" and nobody can make anything. */
#include "server/log_dir_probe.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/logline.h"
#include "server/config_private.h"

static bool is_kernels_own(const char *path)
{
    static const unsigned long kinds[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC,
                                          CGROUP2_SUPER_MAGIC};
    struct statfs s;
    if (statfs(path, &s) != 0)
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if ((unsigned long)s.f_type == kinds[i])
            return true;
    return false;
}

/* Cuts `path` down to what lies above it; false: nothing does. */
static bool go_up(char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        path[--n] = 0;
    char *slash = strrchr(path, '/');
    if (strcmp(path, "/") == 0 || strcmp(path, ".") == 0)
        return false;
    if (!slash)
        strcpy(path, "."); /* never longer than a name */
    else
        slash[slash == path] = 0;
    return true;
}

/* `path` is there. */
static int judge(const char *path, const struct stat *st)
{
    if (!S_ISDIR(st->st_mode))
        return -ENOTDIR;
    if (is_kernels_own(path))
        return -EROFS;
    return access(path, R_OK | W_OK | X_OK) == 0 ? 0 : -errno;
}

int log_dir_probe(const char *path, char *why, size_t why_n)
{
    struct stat st;
    char *at = strdup(path);
    int rc = at ? 0 : -ENOMEM;
    while (!rc && stat(at, &st) != 0) {
        rc = errno == ENOENT ? 0 : -errno;
        if (!rc && !go_up(at))
            rc = -ENOENT;
    }
    if (!rc)
        rc = judge(at, &st);
    if (rc && at && strcmp(at, path) != 0)
        snprintf(why, why_n, "cannot be made in %s: %s", at, strerror(-rc));
    else if (rc)
        snprintf(why, why_n, "cannot be used: %s", strerror(-rc));
    free(at);
    return rc;
}

int log_dirs_probe(const struct config *c, char *err, size_t err_n)
{
    int first = 0, bad = 0;
    bool alone_without = false; /* the embedded store lies in the first folder */
    struct buf lines = BUF_INIT;
    for (int i = 0; i < c->log_dirs_n; i++) {
        char why[512] = "";
        int rc = log_dir_probe(c->log_dirs[i], why, sizeof(why));
        if (!rc)
            continue;
        buf_printf(&lines, "%slog.dirs: the folder %s %s", bad ? "\n" : "", c->log_dirs[i], why);
        alone_without |= i == 0 && config_is_alone(c);
        first = first ? first : rc;
        bad++;
    }
    bool stops = bad == c->log_dirs_n || alone_without;
    buf_put(&lines, "", 1);
    const char *said = lines.failed ? "log.dirs: out of memory" : (const char *)lines.p;
    if (bad && stops)
        snprintf(err, err_n, "%s", said);
    else if (bad)
        say_warn("kafkad", "%s; the broker would start without it", said);
    buf_free(&lines);
    return stops ? first : 0;
}
