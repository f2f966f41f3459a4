/* framing.c - the state of one incoming frame: length bytes, begun, complete. */
#include "net/framing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

enum { LARGE_FRAME = 32 * 1024, LOOK_AHEAD = 1024 };

void framing_init(struct framing *f, uint32_t max_frame)
{
    *f = (struct framing){.max_frame = max_frame};
}

static void next_frame(struct framing *f)
{
    f->last_len = f->len;
    f->head_n = 0;
    f->begun = false;
    f->len = f->got = 0;
}

void framing_free(struct framing *f, struct frame_pool *fp)
{
    frame_pool_put(fp, &f->mem);
    next_frame(f);
}

static bool length_good(const struct framing *f)
{
    return f->len <= f->max_frame && f->len <= INT32_MAX;
}

/* Copies what belongs to the body. false without memory. */
static bool feed_body(struct framing *f, struct frame_pool *fp, const uint8_t **p, size_t *n)
{
    while (framing_in_body(f) && *n > 0) {
        size_t room;
        uint8_t *to = framing_direct(f, fp, &room);
        if (!to)
            return false;
        size_t take = *n < room ? *n : room;
        memcpy(to, *p, take);
        framing_took(f, take);
        *p += take;
        *n -= take;
    }
    return true;
}

enum framing_event framing_feed(struct framing *f, struct frame_pool *fp, const uint8_t **p,
                                size_t *n)
{
    while (f->head_n < sizeof(f->head)) {
        if (*n == 0)
            return FRAMING_MORE;
        f->head[f->head_n++] = *(*p)++;
        (*n)--;
    }
    if (!f->begun) {
        f->len = get_be32(f->head);
        return length_good(f) ? FRAMING_LENGTH : FRAMING_BAD;
    }
    if (!feed_body(f, fp, p, n))
        return FRAMING_NOMEM;
    return f->got == f->len ? FRAMING_FRAME : FRAMING_MORE;
}

int framing_begin(struct framing *f, struct frame_pool *fp)
{
    int err = frame_pool_get(fp, f->len, &f->mem);
    f->begun = err == 0;
    return err;
}

uint32_t framing_take(struct framing *f, struct frame_pool *fp, struct frame_mem *out)
{
    uint32_t len = f->len;
    frame_pool_arrived(fp, &f->mem);
    *out = f->mem;
    f->mem = (struct frame_mem){0};
    next_frame(f);
    return len;
}

uint8_t *framing_direct(struct framing *f, struct frame_pool *fp, size_t *n)
{
    if (f->got == f->mem.cap && frame_pool_grow(fp, f->len, &f->mem) < 0)
        return NULL;
    size_t end = f->mem.cap < f->len ? f->mem.cap : f->len;
    *n = end - f->got;
    return f->mem.p + f->got;
}

int framing_places(struct framing *f, struct frame_pool *fp, void *scratch, size_t scratch_n,
                   struct iovec iov[2])
{
    int n = 0;
    uint32_t like = f->last_len;
    if (framing_in_body(f)) {
        size_t room = 0;
        iov[n].iov_base = framing_direct(f, fp, &room);
        iov[n].iov_len = room;
        if (!iov[n++].iov_base)
            return 0;
        if (room < f->len - f->got)
            return n; /* must grow before anything can follow it */
        like = f->len;
    }
    if (like >= LARGE_FRAME && scratch_n > LOOK_AHEAD)
        scratch_n = LOOK_AHEAD;
    iov[n++] = (struct iovec){scratch, scratch_n};
    return n;
}

size_t framing_placed(struct framing *f, const struct iovec iov[2], size_t got)
{
    if (!framing_in_body(f))
        return got;
    size_t in_place = got < iov[0].iov_len ? got : iov[0].iov_len;
    framing_took(f, in_place);
    return got - in_place;
}

/* ---- what it might have been ---- */

static const struct {
    char head[5];
    const char *what;
} strangers[] = {
    {"\x16\x03", "a TLS ClientHello"}, {"\x15\x03", "a TLS alert"}, {"GET ", "an HTTP request"},
    {"POST", "an HTTP request"},       {"HEAD", "an HTTP request"}, {"PUT ", "an HTTP request"},
    {"DELE", "an HTTP request"},       {"OPTI", "an HTTP request"}, {"PATC", "an HTTP request"},
    {"CONN", "an HTTP request"},       {"TRAC", "an HTTP request"}, {"PRI ", "an HTTP/2 preface"},
    {"SSH-", "an SSH client"},
};

void framing_complaint(const struct framing *f, char *out, size_t n)
{
    const char *what = NULL;
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]) && !what; i++)
        if (memcmp(f->head, strangers[i].head, strlen(strangers[i].head)) == 0)
            what = strangers[i].what;
    snprintf(out, n, "frame length %d is not within 0..%u%s%s%s", (int)f->len, f->max_frame,
             what ? " (this looks like " : "", what ? what : "", what ? ")" : "");
}
