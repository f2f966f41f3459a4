/* Messages that other programs encoded (tests/unit/data, with the scripts that made them): we read
 * them to the same values and write them to the same bytes.
 *
 * A line is  MESSAGE VERSION HEX [TEXT]  with TEXT as msg_print writes it, made by the other side.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/api.h"
#include "unit.h"

static const struct {
    const char *name;
    bool values_only; /* the other side has names of its own: texts without names and braces */
} files[] = {
    {"golden_kio.txt", false}, {"golden_python_kafka.txt", true}, {"golden_librdkafka.txt", false}};

static const struct msg_desc *find(const char *name)
{
    int n;
    const struct msg_desc *const *all = msg_all(&n);
    for (int i = 0; i < n; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

static size_t unhex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    unsigned byte;
    for (; strcmp(hex, "-") != 0 && sscanf(hex, "%2x", &byte) == 1; hex += 2)
        out[n++] = (uint8_t)byte;
    return n;
}

/* `{a=1, b=[{c='x=y'}]}` -> `1, ['x=y']`, in place. */
static void drop_names(char *text)
{
    bool quoted = false;
    char *to = text, *value = text;
    for (const char *from = text; *from; from++) {
        quoted ^= *from == '\'';
        if (!quoted && *from == '=')
            to = value;
        else if (quoted || (*from != '{' && *from != '}'))
            *to++ = *from;
        if (quoted || strchr("{[ ", *from))
            value = to;
    }
    *to = 0;
}

/* NULL, or what is wrong. */
static const char *check(const struct msg_desc *d, int version, const uint8_t *p, size_t n,
                         const char *want_text, bool values_only, struct buf *text)
{
    const char *wrong = NULL;
    struct arena a;
    struct writer w = WRITER_INIT;
    struct reader r = reader_of(p, n);
    arena_init(&a, 0);
    void *m = arena_alloc(&a, d->body->size);
    if (msg_decode(d, version, &r, &a, m)) {
        wrong = "does not decode";
    } else {
        msg_print(d, version, m, text);
        buf_put_i8(text, 0);
        if (values_only)
            drop_names((char *)text->p);
        msg_encode(d, version, &w, m);
        if (reader_left(&r))
            wrong = "has bytes left over";
        else if (*want_text && strcmp((char *)text->p, want_text) != 0)
            wrong = "has other values";
        else if (w.unsupported || w.buf.len != n || memcmp(w.buf.p, p, n) != 0)
            wrong = "is encoded to other bytes";
    }
    writer_free(&w);
    arena_free(&a);
    return wrong;
}

/* Returns the number of lines; marks in `seen` (message x version) what was there. */
static int check_file(const char *name, bool values_only, bool seen[][32], int *failures)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", TEST_DATA_DIR, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    int lines = 0, n;
    const struct msg_desc *const *all = msg_all(&n);
    while ((len = getline(&line, &cap, f)) > 0) {
        if (line[0] == '#')
            continue;
        line[strcspn(line, "\n")] = 0;
        char *rest = line;
        char *message = strsep(&rest, " "), *version = strsep(&rest, " ");
        char *hex = strsep(&rest, " ");
        const struct msg_desc *d = find(message);
        if (!d)
            fail_msg("%s: no message %s", name, message);
        uint8_t *bytes = malloc((size_t)len);
        struct buf text = BUF_INIT;
        const char *wrong =
            check(d, atoi(version), bytes, unhex(hex, bytes), rest ? rest : "", values_only, &text);
        if (wrong && ++*failures <= 20)
            fprintf(stderr, "%s: %s version %s %s\n  bytes %s\n  want  %s\n  got   %s\n", name,
                    message, version, wrong, hex, rest ? rest : "-", text.p ? (char *)text.p : "-");
        for (int i = 0; i < n; i++)
            if (all[i] == d)
                seen[i][atoi(version)] = true;
        buf_free(&text);
        free(bytes);
        lines++;
    }
    free(line);
    fclose(f);
    return lines;
}

static void other_programs_messages_mean_the_same_to_us(void **state)
{
    static bool seen[256][32];
    int failures = 0, n;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        assert_true(check_file(files[i].name, files[i].values_only, seen, &failures) > 0);
    assert_int_equal(failures, 0);
    /* and every version of every request and response was among them */
    const struct msg_desc *const *all = msg_all(&n);
    for (int i = 0; i < n; i++)
        for (int v = all[i]->min; v <= all[i]->max; v++)
            if (all[i]->api_key >= 0 && !seen[i][v])
                fail_msg("no golden %s version %d", all[i]->name, v);
}

UNIT_MAIN(unit_test(other_programs_messages_mean_the_same_to_us))
