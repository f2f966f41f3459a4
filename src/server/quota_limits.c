/* quota_limits.c - see quota_limits.h. An entry is found by its level and the names that the level
 * has; levels in which no entry sets a kind are not looked up. */
#include "server/quota_limits.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/logline.h"

static const struct kind_row {
    const char *key;
    bool whole;
} kinds[] = {
    [QUOTA_PRODUCE] = {"producer_byte_rate", true},
    [QUOTA_FETCH] = {"consumer_byte_rate", true},
    [QUOTA_REQUEST] = {"request_percentage", false},
    [QUOTA_MUTATION] = {"controller_mutation_rate", false},
};

static const struct kind_row *kind_of(struct str key)
{
    for (int i = 0; i < QUOTA_KINDS; i++)
        if (str_eqz(key, kinds[i].key))
            return &kinds[i];
    return NULL;
}

const bool *quota_key_whole(struct str key)
{
    const struct kind_row *k = kind_of(key);
    return k ? &k->whole : NULL;
}

struct limit_key {
    enum quota_level level;
    struct str user, client; /* null where the level has no name */
};

struct limit_entry {
    struct hnode node;
    struct limit_key key;
    double values[QUOTA_KINDS]; /* NAN = not set */
    char names[];
};

static uint64_t hash_key(const struct limit_key *k)
{
    return hash_int((uint64_t)k->level ^ hash_str(k->user) * 3 ^ hash_str(k->client));
}

static bool key_equals(const struct hnode *h, const void *key)
{
    const struct limit_key *a = &hmap_entry(h, struct limit_entry, node)->key, *b = key;
    return a->level == b->level && str_eq(a->user, b->user) && str_eq(a->client, b->client);
}

static struct limit_entry *find(const struct quota_limits *l, const struct limit_key *k)
{
    struct hnode *h = hmap_find(&l->entries, hash_key(k), key_equals, k);
    return h ? hmap_entry(h, struct limit_entry, node) : NULL;
}

void quota_limits_init(struct quota_limits *l)
{
    *l = (struct quota_limits){0};
    hmap_init(&l->entries);
}

static void count(struct quota_limits *l, const struct limit_entry *e, int by)
{
    for (int i = 0; i < QUOTA_KINDS; i++)
        if (!isnan(e->values[i]))
            l->counts[i][e->key.level] += by;
}

static void drop(struct quota_limits *l, struct limit_entry *e)
{
    count(l, e, -1);
    hmap_remove(&l->entries, &e->node);
    free(e);
}

void quota_limits_free(struct quota_limits *l)
{
    for (struct hnode *h; (h = hmap_first(&l->entries));)
        drop(l, hmap_entry(h, struct limit_entry, node));
    hmap_free(&l->entries);
}

static enum quota_level level_of(const struct quota_entity *e)
{
    bool user = e->part[QUOTA_USER].given, any_user = str_is_null(e->part[QUOTA_USER].name);
    bool client = e->part[QUOTA_CLIENT].given, any = str_is_null(e->part[QUOTA_CLIENT].name);
    if (!user)
        return any ? QUOTA_ANY_CLIENT : QUOTA_CLIENT_ALONE;
    if (!client)
        return any_user ? QUOTA_ANY_USER : QUOTA_USER_ALONE;
    if (any_user)
        return any ? QUOTA_ANY_USER_ANY_CLIENT : QUOTA_ANY_USER_AND_CLIENT;
    return any ? QUOTA_USER_ANY_CLIENT : QUOTA_USER_AND_CLIENT;
}

static struct str name_of(const struct quota_entity *e, enum quota_part part)
{
    return e->part[part].given ? e->part[part].name : STR_NULL;
}

/* What a node says of a kind: a positive number, or nothing that could hold anybody back. */
static double value_in(struct config_list list, enum quota_kind kind)
{
    for (int i = 0; i < list.n; i++) {
        if (!str_eqz(list.v[i].name, kinds[kind].key) || list.v[i].value.len <= 0)
            continue;
        char *end, *text = str_dup(list.v[i].value);
        double v = text ? strtod(text, &end) : NAN;
        if (text && (*end || !(v > 0)))
            v = NAN;
        free(text);
        if (isnan(v))
            say_warn("ClientQuotas", "%s=%.*s is no rate and is ignored", kinds[kind].key,
                     STR_ARG(list.v[i].value));
        return v;
    }
    return NAN;
}

/* One that sets nothing yet; in the table. */
static struct limit_entry *entry_add(struct quota_limits *l, const struct limit_key *k)
{
    size_t user_n = k->user.len > 0 ? (size_t)k->user.len : 0;
    size_t client_n = k->client.len > 0 ? (size_t)k->client.len : 0;
    struct limit_entry *e = calloc(1, sizeof(*e) + user_n + client_n);
    if (!e)
        return NULL;
    e->key = *k;
    if (user_n)
        e->key.user.p = memcpy(e->names, k->user.p, user_n);
    if (client_n)
        e->key.client.p = memcpy(e->names + user_n, k->client.p, client_n);
    for (int i = 0; i < QUOTA_KINDS; i++)
        e->values[i] = NAN;
    if (hmap_put(&l->entries, &e->node, hash_key(k)) != 0) {
        free(e);
        return NULL;
    }
    return e;
}

int quota_limits_set(struct quota_limits *l, const struct quota_entity *entity,
                     struct config_list list)
{
    struct limit_key k = {level_of(entity), name_of(entity, QUOTA_USER),
                          name_of(entity, QUOTA_CLIENT)};
    double values[QUOTA_KINDS];
    bool some = false;
    for (int i = 0; i < QUOTA_KINDS; i++) {
        values[i] = value_in(list, (enum quota_kind)i);
        some |= !isnan(values[i]);
    }
    struct limit_entry *e = find(l, &k);
    if (!some) {
        if (e)
            drop(l, e);
        return 0;
    }
    if (!e && !(e = entry_add(l, &k)))
        return -ENOMEM;
    count(l, e, -1);
    memcpy(e->values, values, sizeof(values));
    count(l, e, 1);
    return 0;
}

int quota_limits_set_default(struct quota_limits *l, enum quota_kind kind, double rate)
{
    const struct limit_key k = {QUOTA_FILE, STR_NULL, STR_NULL};
    struct limit_entry *e = find(l, &k);
    if (!e && !(e = entry_add(l, &k)))
        return -ENOMEM;
    count(l, e, -1);
    e->values[kind] = rate;
    count(l, e, 1);
    return 0;
}

bool quota_limits_find(const struct quota_limits *l, enum quota_kind kind, struct str user,
                       struct str client, double *limit, enum quota_level *level)
{
    const struct limit_key keys[] = {
        {QUOTA_USER_AND_CLIENT, user, client},
        {QUOTA_USER_ANY_CLIENT, user, STR_NULL},
        {QUOTA_USER_ALONE, user, STR_NULL},
        {QUOTA_ANY_USER_AND_CLIENT, STR_NULL, client},
        {QUOTA_ANY_USER_ANY_CLIENT, STR_NULL, STR_NULL},
        {QUOTA_ANY_USER, STR_NULL, STR_NULL},
        {QUOTA_CLIENT_ALONE, STR_NULL, client},
        {QUOTA_ANY_CLIENT, STR_NULL, STR_NULL},
        {QUOTA_FILE, STR_NULL, STR_NULL},
    };
    for (int i = 0; i < QUOTA_LEVELS; i++) {
        if (l->counts[kind][i] == 0)
            continue;
        const struct limit_entry *e = find(l, &keys[i]);
        if (e && !isnan(e->values[kind])) {
            *limit = e->values[kind];
            *level = keys[i].level;
            return true;
        }
    }
    return false;
}
