/* group_regex.c - see group_regex.h. A pattern becomes a program; matching tries its ways in their
 * order, and goes from no place of the program at no place of the text twice: what failed once
 * would fail again, so the work is bounded.
 *
 * Jumps are relative, so a piece of program can be copied and moved. */
#include "net/group_regex.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAM_MAX = 4000, REPEAT_MAX = 1000, DEPTH_MAX = 50, VISITS_MAX = 64 << 20 /* bits */ };

enum op { OP_SET, OP_SPLIT, OP_JUMP, OP_SAVE, OP_BEGIN, OP_END, OP_MATCH };

struct step {
    enum op op;
    int x, y;        /* SPLIT: first x, then y; JUMP: x; SAVE: slot x */
    uint32_t set[8]; /* SET: bytes */
};

struct group_regex {
    struct step *steps;
    int n, groups;
};

struct compiler {
    const char *at, *end;
    struct group_regex *r;
    int depth;
    int rc;
    const char *problem;
};

/* ---- emitting ---- */

static void fail(struct compiler *c, int rc, const char *problem)
{
    if (!c->rc) {
        c->rc = rc;
        c->problem = problem;
    }
}

/* Room for n steps at `where`; what is behind moves. NULL when the pattern is refused. */
static struct step *open_gap(struct compiler *c, int where, int n)
{
    struct group_regex *r = c->r;
    if (c->rc || r->n + n > PROGRAM_MAX) {
        fail(c, -EINVAL, "it is too long");
        return NULL;
    }
    struct step *more = realloc(r->steps, (size_t)(r->n + n) * sizeof(*more));
    if (!more) {
        fail(c, -ENOMEM, "out of memory");
        return NULL;
    }
    r->steps = more;
    memmove(more + where + n, more + where, (size_t)(r->n - where) * sizeof(*more));
    r->n += n;
    memset(more + where, 0, (size_t)n * sizeof(*more));
    return more + where;
}

static void put(struct compiler *c, int where, enum op op, int x, int y)
{
    struct step *s = open_gap(c, where, 1);
    if (!c->rc)
        *s = (struct step){.op = op, .x = x, .y = y};
}

static void set_add(uint32_t set[8], int from, int to)
{
    for (int b = from; b <= to; b++)
        set[b / 32] |= UINT32_C(1) << (b % 32);
}

static void set_flip(uint32_t set[8])
{
    for (int i = 0; i < 8; i++)
        set[i] = ~set[i];
}

static void put_set(struct compiler *c, const uint32_t set[8])
{
    struct step *s = open_gap(c, c->r->n, 1);
    if (c->rc)
        return;
    s->op = OP_SET;
    memcpy(s->set, set, sizeof(s->set));
}

/* ---- parsing ---- */

static bool class_set(char letter, uint32_t set[8])
{
    memset(set, 0, 8 * sizeof(*set));
    switch (letter | 0x20) {
    case 'd':
        set_add(set, '0', '9');
        break;
    case 'w':
        set_add(set, '0', '9');
        set_add(set, 'A', 'Z');
        set_add(set, 'a', 'z');
        set_add(set, '_', '_');
        break;
    case 's':
        set_add(set, '\t', '\r');
        set_add(set, ' ', ' ');
        break;
    default:
        return false;
    }
    if (letter < 'a')
        set_flip(set);
    return true;
}

static bool is_alnum(char ch)
{
    return (ch >= '0' && ch <= '9') || ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'z');
}

/* Behind a backslash: a class (true), or one byte in *ch. */
static bool escape(struct compiler *c, uint32_t set[8], int *ch)
{
    if (c->at == c->end) {
        fail(c, -EINVAL, "nothing follows the backslash");
        return true;
    }
    char letter = *c->at++;
    if (class_set(letter, set))
        return true;
    *ch = letter == 't' ? '\t' : (unsigned char)letter;
    if (is_alnum(letter) && letter != 't')
        fail(c, -EINVAL, "of \\ with a letter or digit only \\d \\w \\s \\t are known");
    return false;
}

static void parse_set(struct compiler *c)
{
    uint32_t set[8] = {0}, one[8];
    bool inverse = c->at < c->end && *c->at == '^';
    c->at += inverse;
    for (bool first = true;; first = false) {
        int from, to;
        if (c->at == c->end) {
            fail(c, -EINVAL, "[ has no ]");
            return;
        }
        from = (unsigned char)*c->at++;
        if (from == ']' && !first)
            break;
        if (from == '[' || (from == '&' && c->at < c->end && *c->at == '&')) {
            fail(c, -EINVAL, "a set within a set is not known");
            return;
        }
        if (from == '\\' && escape(c, one, &from)) {
            for (int i = 0; i < 8; i++)
                set[i] |= one[i];
            continue;
        }
        to = from;
        if (c->end - c->at >= 2 && *c->at == '-' && c->at[1] != ']') {
            to = (unsigned char)c->at[1];
            c->at += 2;
            if (to == '\\' && escape(c, one, &to))
                fail(c, -EINVAL, "a range ends with a class");
        }
        if (to < from)
            fail(c, -EINVAL, "a range goes backwards");
        set_add(set, from, to);
    }
    if (inverse)
        set_flip(set);
    put_set(c, set);
}

static void parse_alternatives(struct compiler *c);

static void parse_group(struct compiler *c)
{
    int slot = -1;
    if (c->end - c->at >= 2 && c->at[0] == '?' && c->at[1] == ':')
        c->at += 2;
    else if (c->at < c->end && *c->at == '?')
        fail(c, -EINVAL, "of (? only (?: is known");
    else if (++c->r->groups < GROUP_REGEX_MAX)
        slot = 2 * c->r->groups;
    else
        fail(c, -EINVAL, "it has more than 9 groups");
    if (++c->depth > DEPTH_MAX)
        fail(c, -EINVAL, "groups are nested too deep");
    if (c->rc)
        return;
    if (slot >= 0)
        put(c, c->r->n, OP_SAVE, slot, 0);
    parse_alternatives(c);
    if (slot >= 0)
        put(c, c->r->n, OP_SAVE, slot + 1, 0);
    c->depth--;
    if (c->at == c->end || *c->at != ')')
        fail(c, -EINVAL, "( has no )");
    else
        c->at++;
}

static void parse_atom(struct compiler *c)
{
    uint32_t set[8] = {0};
    int ch = (unsigned char)*c->at++;
    switch (ch) {
    case '(':
        parse_group(c);
        return;
    case '[':
        parse_set(c);
        return;
    case '^':
        put(c, c->r->n, OP_BEGIN, 0, 0);
        return;
    case '$':
        put(c, c->r->n, OP_END, 0, 0);
        return;
    case '.':
        set_add(set, 0, 255);
        break;
    case '*':
    case '+':
    case '?':
    case '{':
        fail(c, -EINVAL, "nothing stands before a quantifier");
        return;
    case '\\':
        if (!escape(c, set, &ch))
            set_add(set, ch, ch);
        break;
    default:
        set_add(set, ch, ch);
    }
    put_set(c, set);
}

static int parse_number(struct compiler *c)
{
    int n = -1;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        n = (n < 0 ? 0 : n) * 10 + (*c->at++ - '0');
        if (n > REPEAT_MAX) {
            fail(c, -EINVAL, "a repetition is over 1000");
            return REPEAT_MAX;
        }
    }
    return n;
}

/* {m}, {m,}, {m,n}, behind the brace. *max -1 = no limit. */
static void parse_braces(struct compiler *c, int *min, int *max)
{
    *min = *max = parse_number(c);
    if (c->at < c->end && *c->at == ',') {
        c->at++;
        *max = parse_number(c);
    }
    if (*min < 0 || (*max >= 0 && *max < *min) || c->at == c->end || *c->at != '}')
        fail(c, -EINVAL, "a repetition is not {m}, {m,} or {m,n}");
    else
        c->at++;
}

static void put_split(struct compiler *c, int where, int in, int past, bool lazy)
{
    put(c, where, OP_SPLIT, lazy ? past : in, lazy ? in : past);
}

/* Puts the n steps of `piece` once more at the end. */
static void repeat(struct compiler *c, const struct step *piece, int n)
{
    struct step *to = open_gap(c, c->r->n, n);
    if (!c->rc && n > 0)
        memcpy(to, piece, (size_t)n * sizeof(*piece));
}

/* The steps from `start` are what is repeated. */
static void quantify(struct compiler *c, int start, int min, int max, bool lazy)
{
    int n = c->r->n - start;
    struct step *piece = malloc((size_t)(n > 0 ? n : 1) * sizeof(*piece));
    if (!piece) {
        fail(c, -ENOMEM, "out of memory");
        return;
    }
    memcpy(piece, c->r->steps + start, (size_t)n * sizeof(*piece));
    c->r->n = start;
    for (int i = 0; i < min && !c->rc; i++)
        repeat(c, piece, n);
    if (max < 0) {
        put_split(c, c->r->n, 1, n + 2, lazy);
        repeat(c, piece, n);
        put(c, c->r->n, OP_JUMP, -(n + 1), 0);
    }
    for (int left = max - min; left > 0 && !c->rc; left--) { /* each leads past all that follow */
        put_split(c, c->r->n, 1, left * (n + 1), lazy);
        repeat(c, piece, n);
    }
    free(piece);
}

static void parse_sequence(struct compiler *c)
{
    while (!c->rc && c->at < c->end && *c->at != '|' && *c->at != ')') {
        int start = c->r->n, min = 1, max = 1;
        parse_atom(c);
        if (c->rc || c->at == c->end || !strchr("*+?{", *c->at))
            continue;
        char q = *c->at++;
        if (q == '{')
            parse_braces(c, &min, &max);
        else
            min = q == '+', max = q == '?' ? 1 : -1;
        bool lazy = c->at < c->end && *c->at == '?';
        c->at += lazy;
        if (c->at < c->end && strchr("*+?{", *c->at))
            fail(c, -EINVAL, "a quantifier follows a quantifier");
        if (!c->rc)
            quantify(c, start, min, max, lazy);
    }
}

static void parse_alternatives(struct compiler *c)
{
    int start = c->r->n;
    parse_sequence(c);
    while (!c->rc && c->at < c->end && *c->at == '|') {
        c->at++;
        int n = c->r->n - start; /* SPLIT, those before, JUMP past the next one */
        put(c, start, OP_SPLIT, 1, n + 2);
        int jump = c->r->n;
        put(c, jump, OP_JUMP, 0, 0);
        parse_sequence(c);
        if (!c->rc)
            c->r->steps[jump].x = c->r->n - jump;
    }
}

int group_regex_new(const char *pattern, size_t n, struct group_regex **out, char *err,
                    size_t err_n)
{
    struct compiler c = {.at = pattern, .end = pattern + n};
    *out = NULL;
    if (!(c.r = calloc(1, sizeof(*c.r))))
        return -ENOMEM;
    parse_alternatives(&c);
    if (!c.rc && c.at < c.end)
        fail(&c, -EINVAL, ") has no (");
    put(&c, c.r->n, OP_MATCH, 0, 0);
    if (c.rc) {
        snprintf(err, err_n, "%s", c.problem);
        group_regex_free(c.r);
        return c.rc;
    }
    *out = c.r;
    return 0;
}

void group_regex_free(struct group_regex *r)
{
    if (!r)
        return;
    free(r->steps);
    free(r);
}

int group_regex_groups(const struct group_regex *r)
{
    return r->groups;
}

/* ---- matching ---- */

/* What is still to be tried; or, with `slot` >= 0, a group's bound to put back before that. */
struct way {
    int pc, at, slot, old;
};

struct matcher {
    const struct group_regex *r;
    const char *text;
    int n;
    uint32_t *visited;
    struct way *ways;
    int ways_n, ways_cap;
    int slots[2 * GROUP_REGEX_MAX];
};

static bool push(struct matcher *m, struct way w)
{
    if (m->ways_n == m->ways_cap) {
        int cap = m->ways_cap ? 2 * m->ways_cap : 64;
        struct way *more = realloc(m->ways, (size_t)cap * sizeof(*more));
        if (!more)
            return false;
        m->ways = more;
        m->ways_cap = cap;
    }
    m->ways[m->ways_n++] = w;
    return true;
}

static bool visit(struct matcher *m, int pc, int at)
{
    size_t bit = (size_t)pc * (size_t)(m->n + 1) + (size_t)at;
    uint32_t mask = UINT32_C(1) << (bit % 32);
    bool first = !(m->visited[bit / 32] & mask);
    m->visited[bit / 32] |= mask;
    return first;
}

static bool holds(const struct step *s, unsigned char ch)
{
    return s->set[ch / 32] >> (ch % 32) & 1;
}

/* Follows one way to its end: 1 = all matches, 0 = it leads nowhere, -ENOMEM. */
static int follow(struct matcher *m, int pc, int at)
{
    while (visit(m, pc, at)) {
        const struct step *s = &m->r->steps[pc];
        switch (s->op) {
        case OP_SET:
            if (at == m->n || !holds(s, (unsigned char)m->text[at]))
                return 0;
            pc++, at++;
            break;
        case OP_SPLIT:
            if (!push(m, (struct way){pc + s->y, at, -1, 0}))
                return -ENOMEM;
            pc += s->x;
            break;
        case OP_JUMP:
            pc += s->x;
            break;
        case OP_SAVE:
            if (!push(m, (struct way){0, 0, s->x, m->slots[s->x]}))
                return -ENOMEM;
            m->slots[s->x] = at;
            pc++;
            break;
        case OP_BEGIN:
        case OP_END:
            if (at != (s->op == OP_BEGIN ? 0 : m->n))
                return 0;
            pc++;
            break;
        case OP_MATCH:
            return at == m->n;
        }
    }
    return 0;
}

static int run(struct matcher *m)
{
    int rc = follow(m, 0, 0);
    while (rc == 0 && m->ways_n > 0) {
        struct way w = m->ways[--m->ways_n];
        if (w.slot >= 0)
            m->slots[w.slot] = w.old;
        else
            rc = follow(m, w.pc, w.at);
    }
    return rc;
}

int group_regex_match(const struct group_regex *r, const char *text, size_t n,
                      struct group_span spans[GROUP_REGEX_MAX])
{
    if (n >= VISITS_MAX / (size_t)(r->n + 1))
        return -ENOMEM;
    struct matcher m = {.r = r, .text = text, .n = (int)n};
    size_t words = (size_t)r->n * (n + 1) / 32 + 1;
    m.visited = calloc(words, sizeof(*m.visited));
    if (!m.visited)
        return -ENOMEM;
    for (int i = 0; i < 2 * GROUP_REGEX_MAX; i++)
        m.slots[i] = -1;
    int rc = run(&m);
    free(m.visited);
    free(m.ways);
    for (int i = 0; i < GROUP_REGEX_MAX; i++)
        spans[i] = (struct group_span){m.slots[2 * i], m.slots[2 * i + 1]};
    spans[0] = (struct group_span){0, (int)n};
    return rc;
}
