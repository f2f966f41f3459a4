/* Messages that other programs encoded (tests/unit/data, with the scripts that made them): we read
 * them to the same values and write them to the same bytes.
 *
 * A line is  MESSAGE VERSION HEX [TEXT]  with TEXT as msg_print writes it, made by the other side.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "project_paths.h"
#include "protocol/api.h"
#include "unit.h"

static const struct {
    const char *name;
    bool values_only; /* the other side has names of its own: texts without names and braces */
} files[] = {
    {"golden_kio.txt", false}, {"golden_python_kafka.txt", true}, {"golden_records.txt", false}};

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
        else if (w.unsupported || w.buf.len != n || (n && memcmp(w.buf.p, p, n) != 0))
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
    /* and every version of every message was among them */
    const struct msg_desc *const *all = msg_all(&n);
    for (int i = 0; i < n; i++)
        for (int v = all[i]->min; v <= all[i]->max; v++)
            if (!seen[i][v])
                fail_msg("no golden %s version %d", all[i]->name, v);
}

/* --- whole frames */

/* Reads and writes header and body; `out` then holds our bytes. False when it cannot be read. */
static bool pass_request(struct reader *r, struct arena *a, struct writer *out)
{
    struct request_header h;
    if (request_header_decode(r, &h))
        return false;
    const struct msg_desc *d = api_find(h.api_key)->request;
    void *m = arena_alloc(a, d->body->size);
    if (msg_decode(d, h.api_version, r, a, m))
        return false;
    request_header_encode(out, &h);
    msg_encode(d, h.api_version, out, m);
    return true;
}

static bool pass_response(struct reader *r, const struct api_desc *api, int version,
                          struct arena *a, struct writer *out)
{
    int32_t id;
    int header = api_response_header_version(api, version);
    void *m = arena_alloc(a, api->response->body->size);
    if (response_header_decode(r, header, &id) || msg_decode(api->response, version, r, a, m))
        return false;
    response_header_encode(out, header, id);
    msg_encode(api->response, version, out, m);
    return true;
}

static void recorded_frames_come_back_to_the_byte(void **state)
{
    FILE *f = fopen(TEST_DATA_DIR "/golden_librdkafka.txt", "r");
    assert_non_null(f);
    static char line[4096];
    static uint8_t bytes[2048];
    int requests = 0, responses = 0;
    while (fgets(line, sizeof(line), f)) {
        struct arena a;
        struct writer out = WRITER_INIT;
        arena_init(&a, 0);
        int key, version, at = 0;
        size_t n = 0;
        bool ok = true;
        struct reader r = reader_of(NULL, 0);
        if (line[0] == '>') {
            n = unhex(line + 2, bytes);
            r = reader_of(bytes, n);
            ok = pass_request(&r, &a, &out);
            requests++;
        } else if (sscanf(line, "< %d %d %n", &key, &version, &at) == 2) {
            n = unhex(line + at, bytes);
            r = reader_of(bytes, n);
            ok = pass_response(&r, api_find((int16_t)key), version, &a, &out);
            responses++;
        }
        if (reader_left(&r)) {
            /* librdkafka 2.0.2 has one byte too many behind ListGroups 4 */
            if (get_be32(bytes) != (API_LIST_GROUPS << 16 | 4))
                fail_msg("%zu bytes left over: %s", reader_left(&r), line);
            n -= reader_left(&r);
        }
        if (!ok || out.unsupported || out.buf.len != n || (n && memcmp(out.buf.p, bytes, n) != 0))
            fail_msg("%s: %s", ok ? "other bytes" : "not read", line);
        writer_free(&out);
        arena_free(&a);
    }
    fclose(f);
    assert_true(requests > 100 && responses > 80);
}

UNIT_MAIN(unit_test(other_programs_messages_mean_the_same_to_us),
          unit_test(recorded_frames_come_back_to_the_byte))
