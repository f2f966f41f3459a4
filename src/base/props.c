/* props.c - Java's .properties format, as java.util.Properties reads and stores it.
 *
 * Three layers, each as Java has it: logical lines (comments and blank lines dropped, continuations
 * joined), key and value of a line, escapes. Java takes the file's bytes for Latin-1, so a byte of
 * 128 or more becomes that character in UTF-8 here; \u escapes become UTF-8 too. A NUL character
 * cannot be kept in a C string and is refused.
 *
 * Entries stand in an array in order of first appearance and in a hash map by key. */
#include "base/props.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hmap.h"
#include "base/wipe.h"

enum { FILE_MAX_BYTES = 16 << 20 };

struct entry {
    struct hnode node;
    char *key;
    char *value;
};

struct props {
    struct hmap by_key;
    struct entry **entries;
    size_t n, cap;
};

struct props *props_new(void)
{
    return calloc(1, sizeof(struct props));
}

static void entry_free(struct entry *e)
{
    if (!e)
        return;
    free(e->key);
    text_wipe_free(e->value);
    free(e);
}

void props_free(struct props *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        entry_free(p->entries[i]);
    free(p->entries);
    hmap_free(&p->by_key);
    free(p);
}

static bool key_equals(const struct hnode *node, const void *key)
{
    return strcmp(hmap_entry(node, struct entry, node)->key, key) == 0;
}

static struct entry *find(const struct props *p, const char *key)
{
    struct hnode *n = hmap_find(&p->by_key, hash_str(str_of(key)), key_equals, key);
    return n ? hmap_entry(n, struct entry, node) : NULL;
}

static int add(struct props *p, const char *key, const char *value)
{
    if (p->n == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 16;
        struct entry **entries = realloc(p->entries, cap * sizeof(struct entry *));
        if (!entries)
            return -ENOMEM;
        p->entries = entries;
        p->cap = cap;
    }
    struct entry *e = calloc(1, sizeof(*e));
    if (!e || !(e->key = strdup(key)) || !(e->value = strdup(value)) ||
        hmap_put(&p->by_key, &e->node, hash_str(str_of(key)))) {
        entry_free(e);
        return -ENOMEM;
    }
    p->entries[p->n++] = e;
    return 0;
}

int props_set(struct props *p, const char *key, const char *value)
{
    struct entry *e = find(p, key);
    if (!e)
        return add(p, key, value);
    char *copy = strdup(value);
    if (!copy)
        return -ENOMEM;
    text_wipe_free(e->value);
    e->value = copy;
    return 0;
}

void props_remove(struct props *p, const char *key)
{
    struct entry *e = find(p, key);
    if (!e)
        return;
    hmap_remove(&p->by_key, &e->node);
    size_t i = 0;
    while (p->entries[i] != e)
        i++;
    p->n--;
    memmove(&p->entries[i], &p->entries[i + 1], (p->n - i) * sizeof(struct entry *));
    entry_free(e);
}

const char *props_get(const struct props *p, const char *key)
{
    const struct entry *e = find(p, key);
    return e ? e->value : NULL;
}

size_t props_count(const struct props *p)
{
    return p->n;
}

struct props *props_copy(const struct props *p)
{
    struct props *copy = p ? props_new() : NULL;
    for (size_t i = 0; copy && i < p->n; i++) {
        if (props_set(copy, p->entries[i]->key, p->entries[i]->value) != 0) {
            props_free(copy);
            copy = NULL;
        }
    }
    return copy;
}

void props_at(const struct props *p, size_t i, const char **key, const char **value)
{
    *key = p->entries[i]->key;
    *value = p->entries[i]->value;
}

/* Reading: logical lines */

struct lines {
    const char *at, *end;
    int number; /* natural lines passed */
    struct buf text;
    int first; /* natural line on which the present logical line began */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

/* Past the line end at `at`: \n, \r or \r\n. */
static void skip_line_end(struct lines *l)
{
    if (*l->at++ == '\r' && l->at < l->end && *l->at == '\n')
        l->at++;
    l->number++;
}

static void skip_blanks(struct lines *l)
{
    while (l->at < l->end && is_blank(*l->at))
        l->at++;
}

/* Up to, not past, the line's end. */
static const char *rest_of_line(struct lines *l)
{
    const char *from = l->at;
    while (l->at < l->end && *l->at != '\n' && *l->at != '\r')
        l->at++;
    return from;
}

static bool ends_in_continuation(const char *from, const char *to)
{
    bool odd = false;
    while (to > from && to[-1] == '\\') {
        odd = !odd;
        to--;
    }
    return odd;
}

/* The next logical line into l->text, joined; false at the end. While nothing has been collected, a
 * blank line or a comment is skipped, also behind a lone backslash; that is Java's way. */
static bool next_line(struct lines *l)
{
    l->text.len = 0;
    bool continued = false;
    while (l->at < l->end) {
        skip_blanks(l);
        if (l->at == l->end)
            return l->text.len > 0;
        const char *from = l->at;
        if (l->text.len == 0) {
            l->first = l->number + 1;
            if (*from == '#' || *from == '!') {
                rest_of_line(l);
                if (l->at < l->end)
                    skip_line_end(l);
                continued = false;
                continue;
            }
        }
        rest_of_line(l);
        continued = ends_in_continuation(from, l->at);
        buf_put(&l->text, from, (size_t)(l->at - from) - continued);
        if (l->at < l->end)
            skip_line_end(l);
        if (!continued && l->text.len)
            return true;
    }
    return l->text.len > 0 || continued;
}

/* Reading: escapes */

static void put_utf8(struct buf *b, uint32_t c)
{
    uint8_t u[4];
    size_t n = 0;
    if (c < 0x80) {
        u[n++] = (uint8_t)c;
    } else if (c < 0x800) {
        u[n++] = (uint8_t)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        u[n++] = (uint8_t)(0xe0 | c >> 12);
        u[n++] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    } else {
        u[n++] = (uint8_t)(0xf0 | c >> 18);
        u[n++] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
        u[n++] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    }
    if (c >= 0x80)
        u[n++] = (uint8_t)(0x80 | (c & 0x3f));
    buf_put(b, u, n);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Four hex digits at `at`: a UTF-16 unit, or -1. */
static int32_t hex_unit(const char *at, const char *end)
{
    if (end - at < 4)
        return -1;
    int32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        int v = hex_value(at[i]);
        if (v < 0)
            return -1;
        unit = unit << 4 | v;
    }
    return unit;
}

/* What stands behind "\u", joined with a second escape when the two are a surrogate pair. A half
 * pair has no UTF-8 form and becomes '?', as when Java encodes it. */
static bool unescape_unicode(const char **at, const char *end, struct buf *out)
{
    int32_t c = hex_unit(*at, end);
    if (c <= 0)
        return false;
    *at += 4;
    if (c >= 0xd800 && c < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        int32_t low = hex_unit(*at + 2, end);
        if (low >= 0xdc00 && low < 0xe000) {
            *at += 6;
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    put_utf8(out, c >= 0xd800 && c < 0xe000 ? '?' : (uint32_t)c);
    return true;
}

static bool unescape(const char *at, const char *end, struct buf *out)
{
    static const char names[] = "tnrf", meanings[] = "\t\n\r\f";
    out->len = 0;
    while (at < end) {
        char c = *at++;
        if (c == '\0')
            return false;
        if (c == '\\' && at < end) {
            c = *at++;
            if (c == 'u') {
                if (!unescape_unicode(&at, end, out))
                    return false;
                continue;
            }
            const char *name = c ? strchr(names, c) : NULL;
            if (c == '\0')
                return false;
            if (name)
                c = meanings[name - names];
        }
        put_utf8(out, (uint8_t)c);
    }
    buf_put(out, "", 1);
    return true;
}

/* Reading: key and value */

/* The end of the key: the first separator without a backslash before it. */
static const char *key_end(const char *at, const char *end)
{
    bool escaped = false;
    for (; at < end; at++) {
        if (!escaped && (*at == '=' || *at == ':' || is_blank(*at)))
            break;
        escaped = *at == '\\' && !escaped;
    }
    return at;
}

static const char *value_start(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    if (at < end && (*at == '=' || *at == ':'))
        at++;
    while (at < end && is_blank(*at))
        at++;
    return at;
}

static int parse_line(struct props *p, const struct buf *text, struct buf *key, struct buf *value)
{
    const char *from = text->p ? (const char *)text->p : "", *end = from + text->len;
    const char *stop = key_end(from, end);
    if (!unescape(from, stop, key) || !unescape(value_start(stop, end), end, value))
        return -EINVAL;
    if (key->failed || value->failed)
        return -ENOMEM;
    return props_set(p, (const char *)key->p, (const char *)value->p);
}

int props_parse(struct props *p, const char *text, size_t len, int *line)
{
    struct lines l = {.at = text, .end = text + len, .text.secret = true};
    struct buf key = BUF_INIT, value = {.secret = true};
    int err = 0;
    while (!err && next_line(&l))
        err = l.text.failed ? -ENOMEM : parse_line(p, &l.text, &key, &value);
    if (line)
        *line = l.first;
    buf_free(&key);
    buf_free(&value);
    buf_free(&l.text);
    return err;
}

/* By read(2) and not through a struct fs: the file may be a pipe, and is never the broker's data.
 */
static int read_text(const char *path, struct buf *text)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = 0;
    for (;;) {
        if (!buf_reserve(text, 4096)) {
            err = -ENOMEM;
            break;
        }
        ssize_t got = read(fd, text->p + text->len, text->cap - text->len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            err = got < 0 ? -errno : 0;
            break;
        }
        text->len += (size_t)got;
        if (text->len > FILE_MAX_BYTES) {
            err = -EFBIG;
            break;
        }
    }
    close(fd);
    return err;
}

int props_load(struct props *p, const char *path, int *line)
{
    struct buf text = {.secret = true};
    if (line)
        *line = 0;
    int err = read_text(path, &text);
    if (!err)
        err = props_parse(p, (const char *)text.p, text.len, line);
    buf_free(&text);
    return err;
}

/* Writing */

/* One character of UTF-8 at *z; a byte that is none stands for itself. */
static uint32_t take_utf8(const uint8_t **z)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const uint8_t *s = *z;
    int more = s[0] >= 0xf0 && s[0] < 0xf8   ? 3
               : s[0] >= 0xe0 && s[0] < 0xf0 ? 2
                                             : s[0] >= 0xc0 && s[0] < 0xe0;
    uint32_t c = more ? s[0] & (0x3fu >> more) : s[0];
    int i = 1;
    for (; i <= more && (s[i] & 0xc0) == 0x80; i++)
        c = c << 6 | (s[i] & 0x3f);
    if (i <= more || c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        *z = s + 1;
        return s[0];
    }
    *z = s + i;
    return c;
}

static void put_unit(struct buf *out, uint32_t unit)
{
    buf_printf(out, "\\u%04X", unit);
}

static void put_escaped(struct buf *out, const char *text, bool is_key)
{
    static const char plain[] = "\t\n\r\f", names[] = "tnrf";
    const uint8_t *at = (const uint8_t *)text;
    while (*at) {
        bool first = at == (const uint8_t *)text;
        uint32_t c = take_utf8(&at);
        const char *name = c < 0x80 ? strchr(plain, (int)c) : NULL;
        if (name) {
            buf_put(out, (char[]){'\\', names[name - plain]}, 2);
        } else if (c >= 0x10000) {
            put_unit(out, 0xd800 + ((c - 0x10000) >> 10));
            put_unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
        } else if (c < 0x20 || c > 0x7e) {
            put_unit(out, c);
        } else {
            if (strchr("\\=:#!", (int)c) || (c == ' ' && (is_key || first)))
                buf_put(out, "\\", 1);
            buf_put(out, (char[]){(char)c}, 1);
        }
    }
}

void props_write(const struct props *p, struct buf *out)
{
    for (size_t i = 0; i < p->n; i++) {
        put_escaped(out, p->entries[i]->key, true);
        buf_put(out, "=", 1);
        put_escaped(out, p->entries[i]->value, false);
        buf_put(out, "\n", 1);
    }
}
