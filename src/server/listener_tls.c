/* listener_tls.c - see listener_tls.h. */
#include "server/listener_tls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hmap.h"
#include "base/logline.h"

struct lookup {
    const struct config *c;
    const char *listener;
    uint64_t print;
};

static const char *look_up(void *arg, const char *key)
{
    struct lookup *l = arg;
    const char *value = config_listener_string(l->c, l->listener, NULL, key);
    l->print = hash_int(l->print * 31 + (value ? hash_str(str_of(value)) : 1));
    return value;
}

/* When it was written last, and what it was. */
static uint64_t file_print(const char *path)
{
    struct stat st;
    if (!path || stat(path, &st) != 0)
        return 0;
    return hash_int((uint64_t)st.st_mtim.tv_sec * 1000000007 + (uint64_t)st.st_mtim.tv_nsec +
                    (uint64_t)st.st_ino * 31 + (uint64_t)st.st_size);
}

static uint64_t read_settings(const struct config *c, const char *listener, struct tls_settings *s)
{
    struct lookup l = {c, listener, 7};
    tls_settings_read(s, look_up, &l);
    uint64_t files = file_print(s->keystore_location) * 31 + file_print(s->truststore_location);
    uint64_t print = hash_int(l.print + files);
    return print ? print : 1;
}

/* Says whose settings they are. */
static int told(int rc, const char *listener, const char *line, char *err, size_t err_n)
{
    if (rc)
        snprintf(err, err_n, "listener %s: %s", listener, line);
    return rc;
}

int listener_tls_load(struct listener_tls *t, const struct config *c, const char *listener,
                      char *err, size_t err_n)
{
    struct tls_settings s;
    char line[800] = "out of memory";
    uint64_t print = read_settings(c, listener, &s);
    if (print == t->loaded)
        return 0;
    if (!t->server)
        t->server = tls_new(true);
    if (!t->client)
        t->client = tls_new(false);
    int rc = t->server && t->client ? 0 : -ENOMEM;
    if (!rc)
        rc = tls_check(false, &s, line, sizeof(line)); /* both, or none */
    if (!rc)
        rc = tls_load(t->server, &s, line, sizeof(line));
    if (!rc)
        rc = tls_load(t->client, &s, line, sizeof(line));
    if (!rc && t->loaded)
        say_info("SocketServer", "listener %s: new connections use the changed TLS settings",
                 listener);
    if (!rc)
        t->loaded = print;
    return told(rc, listener, line, err, err_n);
}

int listener_tls_check(const struct listener_tls *t, const struct config *c, const char *listener,
                       char *err, size_t err_n)
{
    struct tls_settings s;
    char line[800] = "out of memory";
    struct tls_change allowed = {config_bool(c, "ssl.allow.dn.changes"),
                                 config_bool(c, "ssl.allow.san.changes")};
    if (t && read_settings(c, listener, &s) == t->loaded)
        return 0;
    if (!t)
        read_settings(c, listener, &s);
    int rc = tls_check(true, &s, line, sizeof(line));
    if (!rc)
        rc = tls_check(false, &s, line, sizeof(line));
    if (!rc && t && t->server)
        rc = tls_check_change(t->server, &s, allowed, line, sizeof(line));
    return told(rc, listener, line, err, err_n);
}

void listener_tls_clear(struct listener_tls *t)
{
    tls_unref(t->server);
    tls_unref(t->client);
    *t = (struct listener_tls){0};
}
