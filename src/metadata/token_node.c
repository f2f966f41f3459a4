/* token_node.c - see token_node.h. */
#include "metadata/token_node.h"

#include <ctype.h>
#include <errno.h>

#include "metadata/json.h"
#include "metadata/node_name.h"

enum { VERSION = 3, ID_MAX = 128 };

static bool is_principal(struct str s)
{
    return s.len > 0 && memchr(s.p, ':', (size_t)s.len) && !memchr(s.p, 0, (size_t)s.len);
}

/* ---- nodes ---- */

static json_t *json_of_principal(struct str principal, struct arena *a)
{
    struct str text = node_name_encode(principal, a);
    return text.p ? json_of_str(text) : NULL;
}

static json_t *json_of_renewers(const struct token_info *t, struct arena *a)
{
    json_t *all = json_array();
    for (int i = 0; all && i < t->renewers_n; i++) {
        if (json_array_append_new(all, json_of_principal(t->renewers[i], a)) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

struct bytes token_node_encode(const struct token_info *t, struct arena *a)
{
    json_t *o = json_object();
    bool made = o && json_put(o, "version", json_integer(VERSION)) == 0 &&
                json_put(o, "owner", json_of_principal(t->owner, a)) == 0 &&
                json_put(o, "tokenRequester", json_of_principal(t->requester, a)) == 0 &&
                json_put(o, "renewers", json_of_renewers(t, a)) == 0 &&
                json_put(o, "issueTimestamp", json_integer(t->issue_ms)) == 0 &&
                json_put(o, "maxTimestamp", json_integer(t->max_ms)) == 0 &&
                json_put(o, "expiryTimestamp", json_integer(t->expiry_ms)) == 0 &&
                json_put(o, "tokenId", json_of_str(t->id)) == 0;
    if (made)
        return json_emit(o, a);
    json_decref(o);
    return BYTES_NULL;
}

static int take_principal(const json_t *text, struct arena *a, struct str *out)
{
    bool whole;
    int rc = json_to_str(text, a, out);
    if (rc)
        return rc;
    *out = node_name_decode(*out, a, &whole);
    if (!out->p)
        return -ENOMEM;
    return whole && is_principal(*out) ? 0 : -EBADMSG;
}

static int take_renewers(const json_t *all, struct arena *a, struct token_info *out)
{
    size_t n = json_array_size(all);
    int rc = json_is_array(all) ? 0 : -EBADMSG;
    out->renewers = rc ? NULL : arena_array(a, struct str, n);
    if (!rc && !out->renewers)
        rc = -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++)
        rc = take_principal(json_array_get(all, i), a, &out->renewers[out->renewers_n++]);
    return rc;
}

static int take(const json_t *o, struct arena *a, struct token_info *out)
{
    int32_t version = 0;
    int rc = json_get_i32(o, "version", &version);
    if (!rc && (version < 1 || version > VERSION))
        rc = -EBADMSG;
    if (!rc)
        rc = take_principal(json_object_get(o, "owner"), a, &out->owner);
    out->requester = out->owner;
    if (!rc && version >= VERSION)
        rc = take_principal(json_object_get(o, "tokenRequester"), a, &out->requester);
    if (!rc)
        rc = take_renewers(json_object_get(o, "renewers"), a, out);
    if (!rc)
        rc = json_get_i64(o, "issueTimestamp", &out->issue_ms);
    if (!rc)
        rc = json_get_i64(o, "maxTimestamp", &out->max_ms);
    if (!rc)
        rc = json_get_i64(o, "expiryTimestamp", &out->expiry_ms);
    if (!rc)
        rc = json_get_str(o, "tokenId", a, &out->id);
    return !rc && !token_id_ok(out->id) ? -EBADMSG : rc;
}

int token_node_decode(struct bytes data, struct arena *a, struct token_info *out)
{
    json_t *o = json_parse(data);
    *out = (struct token_info){0};
    int rc = o ? take(o, a, out) : -EBADMSG;
    json_decref(o);
    return rc;
}

/* ---- rules ---- */

bool token_id_ok(struct str id)
{
    if (id.len <= 0 || id.len > ID_MAX)
        return false;
    for (int32_t i = 0; i < id.len; i++)
        if (!isalnum((unsigned char)id.p[i]) && id.p[i] != '-' && id.p[i] != '_')
            return false;
    return true;
}

bool token_renewed_by(const struct token_info *t, struct str principal)
{
    for (int i = 0; i < t->renewers_n; i++)
        if (str_eq(t->renewers[i], principal))
            return true;
    return false;
}
