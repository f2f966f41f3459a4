/* store_offsets.c - see store_offsets.h. */
#include "server/store_offsets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

/* One step of a path: nothing that would lead elsewhere. */
static bool is_step(struct str s)
{
    if (s.len <= 0 || str_eqz(s, ".") || str_eqz(s, ".."))
        return false;
    for (int32_t i = 0; i < s.len; i++)
        if (s.p[i] == '/' || (unsigned char)s.p[i] < ' ' || s.p[i] == 0x7F)
            return false;
    return true;
}

static enum kerr path_of(struct arena *a, struct str group, struct str topic, int32_t partition,
                         char **path)
{
    if (!is_step(group) || !is_step(topic))
        return KERR_INVALID_GROUP_ID;
    *path = arena_printf(a, "/consumers/%.*s/offsets/%.*s/%d", (int)group.len, group.p,
                         (int)topic.len, topic.p, (int)partition);
    return *path ? KERR_NONE : KERR_UNKNOWN_SERVER_ERROR;
}

static enum kerr put(struct store *s, const char *path, struct bytes data)
{
    bool created;
    if (store_create_path(s, path, data, &created) != 0)
        return KERR_UNKNOWN_SERVER_ERROR;
    if (created)
        return KERR_NONE;
    struct store_op op = store_op_set(path, data, STORE_ANY_VERSION);
    struct store_request r = {.ops = &op, .ops_n = 1};
    int rc = store_run(s, &r);
    store_request_clear(&r);
    return rc ? KERR_UNKNOWN_SERVER_ERROR : KERR_NONE;
}

enum kerr store_offset_put(struct store *s, struct str group, struct str topic, int32_t partition,
                           int64_t offset)
{
    char text[24], *path;
    struct arena a;
    arena_init(&a, 0);
    int n = snprintf(text, sizeof(text), "%" PRId64, offset);
    enum kerr e = path_of(&a, group, topic, partition, &path);
    if (e == KERR_NONE)
        e = put(s, path, (struct bytes){(const uint8_t *)text, n});
    arena_free(&a);
    return e;
}

static enum kerr get(struct store *s, const char *path, int64_t *offset)
{
    struct bytes data;
    struct store_stat stat;
    int rc = store_get(s, path, &data, &stat);
    if (rc == -ENOENT)
        return KERR_NONE;
    if (rc)
        return KERR_UNKNOWN_SERVER_ERROR;
    char text[24] = "", *end = text;
    if (data.len > 0 && (size_t)data.len < sizeof(text)) {
        memcpy(text, data.p, (size_t)data.len);
        text[data.len] = '\0';
        *offset = strtoll(text, &end, 10);
    }
    free((void *)data.p);
    if (end != text && *end == '\0')
        return KERR_NONE;
    *offset = -1;
    return KERR_UNKNOWN_SERVER_ERROR;
}

enum kerr store_offset_get(struct store *s, struct str group, struct str topic, int32_t partition,
                           int64_t *offset)
{
    char *path;
    struct arena a;
    arena_init(&a, 0);
    *offset = -1;
    enum kerr e = path_of(&a, group, topic, partition, &path);
    if (e == KERR_NONE)
        e = get(s, path, offset);
    arena_free(&a);
    return e;
}
