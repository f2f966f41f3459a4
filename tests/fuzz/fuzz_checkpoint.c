/* fuzz_checkpoint.c - text files of a log dir and of a log: refused or read, never a crash; what is
 * read, written again, reads the same.
 *
 * INPUT  byte 0: which file: 0 offset checkpoint, 1 leader epochs, 2 partition.metadata, 3
 *        meta.properties. Then it.
 *
 * Rooms: log */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/checkpoint.h"
#include "log/epoch_cache.h"
#include "log/meta_properties.h"
#include "log/partition_metadata.h"

#include "fuzz.h"

/* In memory of its own, as a file that was read: owned by who parses it. */
static char *copy(const void *p, size_t n)
{
    char *text = malloc(n + 1);
    must(text != NULL);
    memcpy(text, p, n);
    text[n] = 0;
    return text;
}

static void offsets(const uint8_t *p, size_t n)
{
    struct offset_checkpoint c, again;
    struct buf out = BUF_INIT;
    int err = offset_checkpoint_parse(copy(p, n), n, &c);
    must(err == 0 || err == -EBADMSG);
    if (err)
        return;
    int64_t v;
    for (size_t i = 0; i < c.n; i++)
        must(offset_checkpoint_get(&c, c.v[i].topic, c.v[i].partition, &v));
    offset_checkpoint_text(c.v, c.n, &out);
    must(offset_checkpoint_parse(copy(out.p, out.len), out.len, &again) == 0);
    must(again.n == c.n);
    offset_checkpoint_free(&again);
    offset_checkpoint_free(&c);
    buf_free(&out);
}

static void epochs(const uint8_t *p, size_t n)
{
    struct epoch_cache c;
    struct epoch_entry last = {-1, -1};
    char *text = copy(p, n);
    epoch_cache_init(&c);
    int err = epoch_cache_parse(&c, text, n);
    must(err == 0 || err == -EBADMSG);
    must(!err || epoch_cache_count(&c) == 0);
    for (int i = 0; i < epoch_cache_count(&c); i++) {
        struct epoch_entry e = epoch_cache_at(&c, i);
        must(e.epoch > last.epoch && e.start > last.start);
        must(epoch_cache_of_offset(&c, e.start) == e.epoch);
        last = e;
    }
    int32_t found;
    int64_t end;
    epoch_cache_end_offset(&c, last.epoch, INT64_MAX, &found, &end);
    must(found == last.epoch);
    epoch_cache_cut_end(&c, last.start);
    epoch_cache_cut_start(&c, last.start / 2);
    epoch_cache_free(&c);
    free(text);
}

static void metadata(const uint8_t *p, size_t n)
{
    struct uuid id;
    char *text = copy(p, n);
    int err = partition_metadata_parse(text, n, &id);
    must(err == 0 || err == -EBADMSG);
    must(err || !uuid_is_zero(id));
    free(text);
}

/* As a file: the ids that it tells are kept by an update, as is all else that it says. */
static void meta(const uint8_t *p, size_t n)
{
    char dir[PATH_MAX], path[PATH_MAX + 32], err[512];
    const char *tmp = getenv("TMPDIR");
    struct meta_properties m, again;
    snprintf(dir, sizeof(dir), "%s/fuzz-meta-XXXXXX", tmp ? tmp : "/tmp");
    must(mkdtemp(dir) != NULL);
    snprintf(path, sizeof(path), "%s/" META_PROPERTIES_NAME, dir);
    must(fs_replace_unsynced(fs_posix(), path, p, n) == 0);
    int rc = meta_properties_read(fs_posix(), dir, &m, err, sizeof(err));
    must(rc == 0 || rc == -EINVAL);
    if (rc == 0) {
        int32_t id = m.broker_id < 0 ? 7 : m.broker_id;
        must(meta_properties_update(fs_posix(), dir, &m, id,
                                    m.cluster_id[0] ? m.cluster_id : "c") == 0);
        must(meta_properties_read(fs_posix(), dir, &again, err, sizeof(err)) == 0);
        must(again.broker_id == id);
        must(strcmp(again.cluster_id, m.cluster_id[0] ? m.cluster_id : "c") == 0);
        meta_properties_free(&again);
        meta_properties_free(&m);
    }
    must(fs_remove_tree(fs_posix(), dir) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static void (*const kinds[])(const uint8_t *, size_t) = {offsets, epochs, metadata, meta};
    if (n >= 1)
        kinds[p[0] % 4](p + 1, n - 1);
    return 0;
}
