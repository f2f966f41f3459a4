#include "log/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS_MAX = 3, FILE_MAX_BYTES = 256 << 20 };

/* The next line without its end; false behind the last. A line may end in \n or \r\n. */
static bool next_line(struct str *rest, struct str *line)
{
    if (rest->len == 0)
        return false;
    const char *nl = memchr(rest->p, '\n', (size_t)rest->len);
    int32_t n = nl ? (int32_t)(nl - rest->p) : rest->len;
    *line = (struct str){rest->p, n};
    int32_t used = nl ? n + 1 : n;
    rest->p += used;
    rest->len -= used;
    if (line->len && line->p[line->len - 1] == '\r')
        line->len--;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Number of fields, at most `max` of them stored. A line that begins with a space has an empty
 * first field, as Java splits it. */
static int split(struct str line, struct str *fields, int max)
{
    int n = 0;
    int32_t at = 0;
    while (at < line.len) {
        int32_t from = at;
        while (at < line.len && !is_space(line.p[at]))
            at++;
        if (n < max)
            fields[n] = (struct str){line.p + from, at - from};
        n++;
        while (at < line.len && is_space(line.p[at]))
            at++;
    }
    return n;
}

bool checkpoint_int(struct str s, int64_t min, int64_t max, int64_t *out)
{
    int32_t at = 0;
    bool minus = s.len > 0 && s.p[0] == '-';
    if (minus || (s.len > 0 && s.p[0] == '+'))
        at++;
    if (at >= s.len)
        return false;
    int64_t v = 0; /* kept negative: INT64_MIN has no positive twin */
    for (; at < s.len; at++) {
        if (s.p[at] < '0' || s.p[at] > '9')
            return false;
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, s.p[at] - '0', &v))
            return false;
    }
    if (!minus && __builtin_sub_overflow((int64_t)0, v, &v))
        return false;
    *out = v;
    return v >= min && v <= max;
}

int checkpoint_parse(const char *text, size_t len, int fields_n,
                     int (*each)(void *arg, const struct str *fields), void *arg)
{
    if (len > FILE_MAX_BYTES || memchr(text, 0, len))
        return -EBADMSG; /* zeros: what a crash leaves of a file that was never synced */
    struct str rest = {text, (int32_t)len};
    struct str line, fields[FIELDS_MAX];
    int64_t version, count, seen = 0;
    if (!next_line(&rest, &line))
        return 0;
    if (!checkpoint_int(line, 0, 0, &version))
        return -EBADMSG;
    if (!next_line(&rest, &line))
        return 0;
    if (!checkpoint_int(line, 0, INT32_MAX, &count))
        return -EBADMSG;
    while (next_line(&rest, &line)) {
        if (split(line, fields, fields_n) != fields_n || ++seen > count)
            return -EBADMSG;
        int err = each(arg, fields);
        if (err)
            return err;
    }
    return seen == count ? 0 : -EBADMSG;
}

static int entry_cmp(const void *a, const void *b)
{
    const struct offset_entry *x = a, *y = b;
    int c = str_cmp(x->topic, y->topic);
    return c ? c : (x->partition > y->partition) - (x->partition < y->partition);
}

static int add_entry(void *arg, const struct str *fields)
{
    struct offset_checkpoint *c = arg;
    int64_t partition, offset;
    if (fields[0].len == 0 || !checkpoint_int(fields[1], 0, INT32_MAX, &partition) ||
        !checkpoint_int(fields[2], INT64_MIN, INT64_MAX, &offset))
        return -EBADMSG;
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 16;
        struct offset_entry *v = realloc(c->v, cap * sizeof(*v));
        if (!v)
            return -ENOMEM;
        c->v = v;
        c->cap = cap;
    }
    c->v[c->n++] = (struct offset_entry){fields[0], (int32_t)partition, offset};
    return 0;
}

int offset_checkpoint_parse(char *text, size_t len, struct offset_checkpoint *out)
{
    *out = (struct offset_checkpoint){.text = text};
    int err = checkpoint_parse(text, len, 3, add_entry, out);
    if (err) {
        offset_checkpoint_free(out);
        return err;
    }
    if (out->n)
        qsort(out->v, out->n, sizeof(out->v[0]), entry_cmp);
    return 0;
}

int offset_checkpoint_read(struct fs *fs, const char *path, struct offset_checkpoint *out)
{
    char *text;
    size_t len;
    *out = (struct offset_checkpoint){0};
    int err = fs_read_all(fs, path, FILE_MAX_BYTES, &text, &len);
    if (err)
        return err == -ENOENT ? 0 : err;
    return offset_checkpoint_parse(text, len, out);
}

bool offset_checkpoint_get(const struct offset_checkpoint *c, struct str topic, int32_t partition,
                           int64_t *offset)
{
    struct offset_entry key = {topic, partition, 0};
    if (!c->n)
        return false;
    const struct offset_entry *e = bsearch(&key, c->v, c->n, sizeof(key), entry_cmp);
    if (e)
        *offset = e->offset;
    return e != NULL;
}

void offset_checkpoint_free(struct offset_checkpoint *c)
{
    free(c->v);
    free(c->text);
    *c = (struct offset_checkpoint){0};
}

void offset_checkpoint_text(const struct offset_entry *v, size_t n, struct buf *out)
{
    buf_printf(out, "0\n%zu\n", n);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%.*s %" PRId32 " %" PRId64 "\n", STR_ARG(v[i].topic), v[i].partition,
                   v[i].offset);
}

int offset_checkpoint_write(struct fs *fs, const char *path, const struct offset_entry *v, size_t n)
{
    struct buf text = BUF_INIT;
    offset_checkpoint_text(v, n, &text);
    int err = text.failed ? -ENOMEM : fs_replace(fs, path, text.p, text.len);
    buf_free(&text);
    return err;
}
