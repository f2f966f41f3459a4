#include "log/partition_metadata.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/checkpoint.h"
#include "log/log_names.h"

enum { FILE_MAX_BYTES = 4096 };

/* "name: value" of the next line; false when it is not that. */
static bool field(struct str *rest, const char *name, struct str *value)
{
    const char *nl = rest->len ? memchr(rest->p, '\n', (size_t)rest->len) : NULL;
    struct str line = {rest->p, nl ? (int32_t)(nl - rest->p) : rest->len};
    int32_t used = nl ? line.len + 1 : line.len;
    rest->p += used;
    rest->len -= used;
    int32_t n = (int32_t)strlen(name);
    if (line.len <= n || memcmp(line.p, name, (size_t)n) != 0 || line.p[n] != ':')
        return false;
    int32_t at = n + 1;
    while (at < line.len && (line.p[at] == ' ' || line.p[at] == '\t'))
        at++;
    while (line.len > at && (line.p[line.len - 1] == '\r' || line.p[line.len - 1] == ' '))
        line.len--;
    *value = (struct str){line.p + at, line.len - at};
    return at > n + 1;
}

int partition_metadata_parse(const char *text, size_t len, struct uuid *out)
{
    struct str rest = {text, (int32_t)len}, version, id;
    int64_t v;
    if (len > FILE_MAX_BYTES || !field(&rest, "version", &version) ||
        !checkpoint_int(version, 0, INT32_MAX, &v) || !field(&rest, "topic_id", &id) ||
        uuid_parse(id, out) || uuid_is_zero(*out))
        return -EBADMSG;
    return 0;
}

int partition_metadata_read(struct fs *fs, const char *dir, struct uuid *out)
{
    char path[LOG_PATH_MAX];
    char *text;
    size_t len;
    log_path_join(path, dir, PARTITION_METADATA_NAME);
    int err = fs_read_all(fs, path, FILE_MAX_BYTES, &text, &len);
    if (err)
        return err == -EFBIG ? -EBADMSG : err;
    err = partition_metadata_parse(text, len, out);
    free(text);
    return err;
}

int partition_metadata_write(struct fs *fs, const char *dir, struct uuid id, bool sync)
{
    char path[LOG_PATH_MAX], text[64], id_text[23];
    uuid_format(id, id_text);
    int n = snprintf(text, sizeof(text), "version: 0\ntopic_id: %s", id_text);
    log_path_join(path, dir, PARTITION_METADATA_NAME);
    return (sync ? fs_replace : fs_replace_unsynced)(fs, path, text, (size_t)n);
}
