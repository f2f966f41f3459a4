/* quota_entity.c - see quota_entity.h. */
#include "server/quota_entity.h"

#include "metadata/node_name.h"

#define DEFAULT_NAME "<default>"

static const char *const part_names[] = {
    [QUOTA_USER] = "user", [QUOTA_CLIENT] = "client-id", [QUOTA_IP] = "ip"};
static const char *const folders[] = {
    [QUOTA_USER] = "users", [QUOTA_CLIENT] = "clients", [QUOTA_IP] = "ips"};

const char *quota_part_name(enum quota_part part)
{
    return part_names[part];
}

static bool find(const char *const *names, struct str name, enum quota_part *out)
{
    for (int i = 0; i < QUOTA_PARTS; i++) {
        if (str_eqz(name, names[i])) {
            *out = (enum quota_part)i;
            return true;
        }
    }
    return false;
}

bool quota_part_find(struct str name, enum quota_part *out)
{
    return find(part_names, name, out);
}

bool quota_entity_valid(const struct quota_entity *e)
{
    int n = 0;
    for (int i = 0; i < QUOTA_PARTS; i++) {
        if (!e->part[i].given)
            continue;
        n++;
        if (e->part[i].name.len == 0)
            return false;
    }
    return n == 1 || (n == 2 && !e->part[QUOTA_IP].given);
}

/* ---- paths ---- */

static char *add_part(char *path, const struct quota_entity *e, enum quota_part part,
                      struct arena *a)
{
    if (!path || !e->part[part].given)
        return path;
    struct str name = STR_LIT(DEFAULT_NAME);
    if (part == QUOTA_IP && !str_is_null(e->part[part].name))
        name = e->part[part].name; /* an address stands as it is */
    else if (!str_is_null(e->part[part].name))
        name = node_name_encode(e->part[part].name, a);
    if (str_is_null(name))
        return NULL;
    return arena_printf(a, "%s%s%s/%.*s", path, *path ? "/" : "", folders[part], STR_ARG(name));
}

char *quota_entity_path(const struct quota_entity *e, struct arena *a)
{
    char *path = arena_printf(a, "%s", "");
    for (int i = 0; i < QUOTA_PARTS; i++)
        path = add_part(path, e, (enum quota_part)i, a);
    return path;
}

/* The next piece up to a '/', which is passed; false at the end. */
static bool next_piece(struct str *path, struct str *piece)
{
    if (path->len <= 0)
        return false;
    const char *slash = memchr(path->p, '/', (size_t)path->len);
    int32_t n = slash ? (int32_t)(slash - path->p) : path->len;
    *piece = (struct str){path->p, n};
    int32_t used = slash ? n + 1 : n;
    *path = (struct str){path->p + used, path->len - used};
    return true;
}

bool quota_entity_parse(struct str path, struct arena *a, struct quota_entity *out)
{
    struct str folder, name;
    *out = (struct quota_entity){0};
    while (next_piece(&path, &folder)) {
        enum quota_part part;
        if (!find(folders, folder, &part) || out->part[part].given || !next_piece(&path, &name))
            return false;
        if (part == QUOTA_USER && out->part[QUOTA_CLIENT].given)
            return false; /* clients stand below users */
        out->part[part].given = true;
        out->part[part].name = STR_NULL;
        if (str_eqz(name, DEFAULT_NAME))
            continue;
        out->part[part].name = node_name_decode(name, a, NULL);
        if (str_is_null(out->part[part].name))
            return false;
    }
    return quota_entity_valid(out);
}
