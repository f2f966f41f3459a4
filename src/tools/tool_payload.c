/* tool_payload.c - see tool_payload.h. */
#include "tools/tool_payload.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_io.h"

enum { RANDOM_TEXT = 1 << 20, STRIDE = 4099 /* a prime: windows do not line up */ };

struct piece {
    size_t at, n;
};

struct payload {
    char *text;
    size_t text_n;
    size_t size;  /* random */
    size_t spare; /* random: windows begin below */
    struct piece *pieces;
    size_t pieces_n;
    uint64_t random;
    char number[24];
};

/* xorshift64*: enough for text and for picking pieces. */
static uint64_t next_random(struct payload *p)
{
    p->random ^= p->random >> 12;
    p->random ^= p->random << 25;
    p->random ^= p->random >> 27;
    return p->random * 0x2545f4914f6cdd1dULL;
}

static struct payload *payload_new(void)
{
    struct payload *p = calloc(1, sizeof *p);
    if (!p)
        tool_die("out of memory");
    p->random = 0x9e3779b97f4a7c15ULL;
    return p;
}

struct payload *payload_random(size_t size)
{
    struct payload *p = payload_new();
    p->size = size;
    p->spare = RANDOM_TEXT;
    p->text_n = size + RANDOM_TEXT;
    if (!(p->text = malloc(p->text_n)))
        tool_die("out of memory");
    for (size_t i = 0; i < p->text_n; i++)
        p->text[i] = (char)('A' + (next_random(p) >> 33) % 26);
    return p;
}

/* ---- files ---- */

static void read_file(struct payload *p, const char *path)
{
    FILE *in = fopen(path, "rb");
    size_t cap = 0, n;
    if (!in)
        tool_die("%s: %s", path, strerror(errno));
    do {
        if (cap - p->text_n < 65536) {
            cap = cap ? 2 * cap : 1 << 20;
            char *grown = realloc(p->text, cap);
            if (!grown)
                tool_die("%s: out of memory", path);
            p->text = grown;
        }
        n = fread(p->text + p->text_n, 1, cap - p->text_n, in);
        p->text_n += n;
    } while (n > 0);
    if (ferror(in))
        tool_die("%s: %s", path, strerror(errno));
    fclose(in);
}

static size_t unescape(const char *text, char *out, size_t most)
{
    size_t n = 0;
    for (; *text && n < most; text++) {
        char c = *text;
        if (c == '\\' && strchr("nt\\", text[1]) && text[1])
            c = *++text == 'n' ? '\n' : *text == 't' ? '\t' : '\\';
        out[n++] = c;
    }
    return n;
}

static void add_piece(struct payload *p, size_t at, size_t n)
{
    if (n == 0)
        return;
    if ((p->pieces_n & (p->pieces_n - 1)) == 0) {
        size_t cap = p->pieces_n ? 2 * p->pieces_n : 1;
        struct piece *grown = realloc(p->pieces, cap * sizeof *grown);
        if (!grown)
            tool_die("out of memory");
        p->pieces = grown;
    }
    p->pieces[p->pieces_n++] = (struct piece){at, n};
}

struct payload *payload_file(const char *path, const char *delimiter)
{
    struct payload *p = payload_new();
    char mark[256];
    size_t mark_n = unescape(delimiter, mark, sizeof mark), at = 0;
    printf("Reading payloads from: %s\n", path);
    read_file(p, path);
    while (at < p->text_n) {
        char *end = mark_n ? memmem(p->text + at, p->text_n - at, mark, mark_n) : NULL;
        size_t n = end ? (size_t)(end - p->text) - at : p->text_n - at;
        add_piece(p, at, n);
        at += n + mark_n;
    }
    printf("Number of messages read: %zu\n", p->pieces_n);
    if (p->pieces_n == 0)
        tool_die("Payload file is empty or does not contain valid records: %s", path);
    return p;
}

struct payload *payload_numbers(void)
{
    return payload_new();
}

void payload_free(struct payload *p)
{
    free(p->pieces);
    free(p->text);
    free(p);
}

const void *payload_at(struct payload *p, uint64_t i, size_t *n)
{
    if (p->pieces) {
        const struct piece *piece = &p->pieces[next_random(p) % p->pieces_n];
        *n = piece->n;
        return p->text + piece->at;
    }
    if (p->text) {
        *n = p->size;
        return p->text + i * STRIDE % p->spare;
    }
    *n = (size_t)snprintf(p->number, sizeof p->number, "%llu", (unsigned long long)i);
    return p->number;
}
