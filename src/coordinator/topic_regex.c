/* topic_regex.c - see topic_regex.h. */
#include "coordinator/topic_regex.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>

#include "base/buf.h"

enum {
    PATTERN_MAX = 4096,
    REPEAT_MAX = 1000, /* as RE2's, and of all counts in one pattern multiplied */
    NAME_MAX_LEN = 249,
    DEPTH_MAX = 100
};

#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define NOTHING "[@]" /* no name has one */

struct topic_regex {
    regex_t compiled;
};

struct translation {
    const char *at, *end;
    struct buf out;
    long repeats;
    int depth;
    bool bad, repeatable; /* repeatable: a quantifier may follow */
};

typedef bool char_set[128];

static int peek(const struct translation *t)
{
    return t->at < t->end ? (unsigned char)*t->at : -1;
}

static int next(struct translation *t)
{
    return t->at < t->end ? (unsigned char)*t->at++ : -1;
}

static void put(struct translation *t, const char *text)
{
    buf_put(&t->out, text, strlen(text));
}

/* ---- classes ---- */

static void add_all(char_set s, const char *chars)
{
    for (const char *p = chars; *p; p++)
        s[(unsigned char)*p] = true;
}

static void complement(char_set s)
{
    for (int c = 0; c < 128; c++)
        s[c] = !s[c];
}

static void put_set(struct translation *t, const char_set s)
{
    size_t begin = t->out.len;
    put(t, "[");
    for (const char *p = NAME_CHARS; *p; p++) /* '-' comes last, where it is itself */
        if (s[(unsigned char)*p])
            buf_put(&t->out, p, 1);
    if (t->out.len == begin + 1)
        put(t, "@");
    put(t, "]");
}

/* \d, \w, \s and their opposites; false: another escape. */
static bool class_escape(int c, char_set s)
{
    char_set one = {false};
    switch (c) {
    case 'd':
    case 'D':
        add_all(one, "0123456789");
        break;
    case 'w':
    case 'W':
        add_all(one, NAME_CHARS);
        one['.'] = one['-'] = false;
        break;
    case 's':
    case 'S':
        add_all(one, " \t\n\f\r");
        break;
    default:
        return false;
    }
    if (c < 'a')
        complement(one);
    for (int i = 0; i < 128; i++)
        s[i] |= one[i];
    return true;
}

/* [:alpha:] */
static void named_class(struct translation *t, char_set s)
{
    static const struct {
        const char *name, *chars;
    } classes[] = {
        {":alnum:]", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"},
        {":alpha:]", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"},
        {":digit:]", "0123456789"},
        {":lower:]", "abcdefghijklmnopqrstuvwxyz"},
        {":upper:]", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
        {":word:]", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"},
        {":xdigit:]", "0123456789ABCDEFabcdef"},
        {":punct:]", "._-"},
    };
    for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
        size_t n = strlen(classes[i].name);
        if ((size_t)(t->end - t->at) < n || memcmp(t->at, classes[i].name, n) != 0)
            continue;
        add_all(s, classes[i].chars);
        t->at += n;
        return;
    }
    t->bad = true;
}

/* One member of a class, or the begin of a range; -1: it was a class of its own. */
static int class_char(struct translation *t, char_set s)
{
    int c = next(t);
    if (c == '[' && peek(t) == ':') {
        named_class(t, s);
        return -1;
    }
    if (c != '\\')
        return c;
    c = next(t);
    if (c < 0 || class_escape(c, s))
        return -1;
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
        t->bad = true; /* \p{..}, \x.. and the like */
    return c;
}

static void bracket(struct translation *t)
{
    char_set s = {false};
    bool negated = peek(t) == '^', first = true;
    t->at += negated;
    for (; !t->bad; first = false) {
        if (t->at == t->end) {
            t->bad = true;
            return;
        }
        if (peek(t) == ']' && !first) {
            t->at++;
            break;
        }
        int from = class_char(t, s), to = from;
        if (from >= 0 && t->end - t->at >= 2 && t->at[0] == '-' && t->at[1] != ']') {
            t->at++;
            to = class_char(t, s);
            t->bad |= to < from;
        }
        for (int c = from; c >= 0 && c <= to && c < 128; c++)
            s[c] = true;
    }
    if (negated)
        complement(s);
    put_set(t, s);
    t->repeatable = true;
}

/* ---- the rest ---- */

static void literal(struct translation *t, int c)
{
    char_set s = {false};
    if (c < 128)
        s[c] = true;
    put_set(t, s);
    if (c >= 0xC0) /* the rest of a character of several bytes, which no name has */
        while (peek(t) >= 0x80 && peek(t) < 0xC0)
            t->at++;
    t->repeatable = true;
}

static void quoted(struct translation *t)
{
    while (t->at < t->end && !(t->end - t->at >= 2 && t->at[0] == '\\' && t->at[1] == 'E'))
        literal(t, next(t));
    t->at += t->end - t->at >= 2 ? 2 : 0;
}

static void escape(struct translation *t)
{
    char_set s = {false};
    int c = next(t);
    if (c == 'A' || c == 'z') {
        put(t, c == 'A' ? "^" : "$");
        t->repeatable = false;
    } else if (c == 'Q') {
        quoted(t);
    } else if (c >= 0 && class_escape(c, s)) {
        put_set(t, s);
        t->repeatable = true;
    } else if (c < 0 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
               (c >= 'a' && c <= 'z')) {
        t->bad = true; /* back references, \p{..}, \b: nothing that names would need */
    } else {
        literal(t, c);
    }
}

/* What a group begins with: a name, "do not capture". */
static void open_group(struct translation *t)
{
    put(t, "(");
    t->repeatable = false;
    t->bad |= ++t->depth > DEPTH_MAX;
    if (peek(t) != '?')
        return;
    t->at++;
    int c = next(t);
    if (c == 'P')
        c = next(t);
    if (c == '<' && peek(t) != '=' && peek(t) != '!') {
        while (t->at < t->end && *t->at != '>')
            t->at++;
        t->bad |= next(t) != '>';
    } else if (c != ':') {
        t->bad = true; /* look-around, flags */
    }
}

static void count(struct translation *t)
{
    const char *begin = t->at - 1;
    char *end;
    long from = strtol(t->at, &end, 10), to = from;
    bool digits = t->at < t->end && *t->at >= '0' && *t->at <= '9';
    t->at = end;
    if (digits && peek(t) == ',') {
        t->at++;
        if (peek(t) != '}') {
            digits = peek(t) >= '0' && peek(t) <= '9';
            to = strtol(t->at, &end, 10);
            t->at = end;
        }
    }
    if (!digits || peek(t) != '}') { /* to RE2 it is text then */
        t->at = begin + 1;
        literal(t, '{');
        return;
    }
    t->at++;
    long most = to > from ? to : from;
    t->repeats *= most > 1 ? most : 1;
    t->bad |= from > REPEAT_MAX || most > REPEAT_MAX || t->repeats > REPEAT_MAX || to < from ||
              !t->repeatable;
    buf_put(&t->out, begin, (size_t)(t->at - begin));
    t->repeatable = false;
}

static void quantifier(struct translation *t, int c)
{
    char text[2] = {(char)c, 0};
    t->bad |= !t->repeatable;
    put(t, text);
    t->repeatable = false;
}

/* Lazy or greedy, the whole name is what counts. */
static void skip_lazy(struct translation *t)
{
    if (peek(t) == '?')
        t->at++;
}

static void step(struct translation *t)
{
    int c = next(t);
    switch (c) {
    case '\\':
        escape(t);
        break;
    case '[':
        bracket(t);
        break;
    case '(':
        open_group(t);
        break;
    case ')':
        t->bad |= t->depth-- == 0;
        put(t, ")");
        t->repeatable = true;
        break;
    case '|':
    case '^':
    case '$':
        buf_put(&t->out, &(char){(char)c}, 1);
        t->repeatable = false;
        break;
    case '.':
        put(t, ".");
        t->repeatable = true;
        break;
    case '*':
    case '+':
    case '?':
        quantifier(t, c);
        skip_lazy(t);
        break;
    case '{':
        count(t);
        if (!t->repeatable)
            skip_lazy(t);
        break;
    default:
        literal(t, c);
    }
}

int topic_regex_new(struct str pattern, struct topic_regex **out)
{
    char text[PATTERN_MAX + 1]; /* with an end, for strtol */
    *out = NULL;
    if (pattern.len < 0 || pattern.len > PATTERN_MAX ||
        memchr(pattern.p, 0, (size_t)pattern.len) != NULL)
        return -EINVAL;
    memcpy(text, pattern.p, (size_t)pattern.len);
    text[pattern.len] = 0;
    struct translation t = {.at = text, .end = text + pattern.len, .repeats = 1};
    put(&t, "^(");
    while (t.at < t.end && !t.bad)
        step(&t);
    put(&t, ")$");
    buf_put_i8(&t.out, 0);
    struct topic_regex *r = calloc(1, sizeof(*r));
    int rc = t.bad || t.depth != 0 ? -EINVAL : !r || t.out.failed ? -ENOMEM : 0;
    if (!rc) {
        int e = regcomp(&r->compiled, (const char *)t.out.p, REG_EXTENDED | REG_NOSUB);
        rc = e == 0 ? 0 : e == REG_ESPACE ? -ENOMEM : -EINVAL;
    }
    buf_free(&t.out);
    if (rc)
        free(r);
    else
        *out = r;
    return rc;
}

void topic_regex_free(struct topic_regex *r)
{
    if (!r)
        return;
    regfree(&r->compiled);
    free(r);
}

bool topic_regex_matches(const struct topic_regex *r, struct str name)
{
    char text[NAME_MAX_LEN + 1];
    if (name.len < 0 || name.len > NAME_MAX_LEN)
        return false;
    memcpy(text, name.p, (size_t)name.len);
    text[name.len] = 0;
    return regexec(&r->compiled, text, 0, NULL, 0) == 0;
}
