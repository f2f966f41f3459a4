/* group_topics.c - see group_topics.h. */
#include "coordinator/group_topics.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"

struct topic_name {
    struct hnode node;
    int32_t len;
    char p[];
};

void group_topics_init(struct group_topics *s)
{
    hmap_init(&s->map);
}

void group_topics_free(struct group_topics *s)
{
    for (struct hnode *n = hmap_first(&s->map), *next; n; n = next) {
        next = hmap_next(&s->map, n);
        free(hmap_entry(n, struct topic_name, node));
    }
    hmap_free(&s->map);
}

static bool is_name(const struct hnode *n, const void *key)
{
    const struct topic_name *t = hmap_entry(n, struct topic_name, node);
    return str_eq((struct str){t->p, t->len}, *(const struct str *)key);
}

bool group_topics_has(const struct group_topics *s, struct str name)
{
    return hmap_find(&s->map, hash_str(name), is_name, &name) != NULL;
}

int group_topics_add(struct group_topics *s, struct str name)
{
    if (group_topics_has(s, name))
        return 0;
    struct topic_name *t = malloc(sizeof(*t) + (size_t)name.len);
    if (!t)
        return -ENOMEM;
    t->len = name.len;
    memcpy(t->p, name.p, (size_t)name.len);
    int rc = hmap_put(&s->map, &t->node, hash_str(name));
    if (rc)
        free(t);
    return rc;
}

int group_topics_add_subscription(struct group_topics *s, struct bytes subscription)
{
    struct reader r =
        reader_of(subscription.p, subscription.len < 0 ? 0 : (size_t)subscription.len);
    reader_i16(&r);
    int32_t n = reader_i32(&r);
    for (int32_t i = 0; i < n && !r.bad; i++) {
        int16_t len = reader_i16(&r);
        const char *p = len < 0 ? NULL : (const char *)reader_take(&r, (size_t)len);
        int rc = p ? group_topics_add(s, (struct str){p, len}) : -EBADMSG;
        if (rc)
            return rc;
    }
    int32_t user_data = reader_i32(&r); /* negative = null */
    if (user_data > 0)
        reader_take(&r, (size_t)user_data);
    return r.bad || n < 0 ? -EBADMSG : 0;
}
