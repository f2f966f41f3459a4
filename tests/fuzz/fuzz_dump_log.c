/* fuzz_dump_log.c - kafka-dump-log on files that hold anything: it ends, with lines or complaints.
 *
 * INPUT  byte 0: bits 0-2 the kind of file, bits 3-4 the decoder, bit 5 verify only, bit 6 sanity
 *        check, bit 7 put the checksum of a batch (or snapshot) right. byte 1: where a file of an
 *        index ends and the log beside it begins, in fourths of a byte. Then the file.
 *
 * Rooms: tools */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"
#include "tools/tool_dump.h"

#include "fuzz.h"

static char folder[64];
static FILE *nowhere;

static void remove_all(void)
{
    fs_remove_tree(fs_posix(), folder);
}

/* The lines go nowhere. */
static void start(void)
{
    if (*folder)
        return;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    nowhere = fopen("/dev/null", "w");
    must(nowhere && null >= 0 && dup2(null, STDOUT_FILENO) >= 0);
    close(null);
    snprintf(folder, sizeof folder, "/dev/shm/kafkad-fuzz-XXXXXX");
    must(mkdtemp(folder) != NULL);
    atexit(remove_all);
}

static void put(const char *suffix, const uint8_t *p, size_t n, char path[128])
{
    snprintf(path, 128, "%s/00000000000000000100%s", folder, suffix);
    FILE *f = fopen(path, "wb");
    must(f != NULL && fwrite(p, 1, n, f) == n && fclose(f) == 0);
}

static void mend(uint8_t *p, size_t n, bool snapshot)
{
    if (snapshot && n >= 6)
        put_be32(p + 2, crc32c(p + 6, n - 6));
    else if (!snapshot && n > BATCH_HEAD && p[BATCH_AT_MAGIC] == 2)
        put_be32(p + BATCH_AT_CRC, crc32c(p + BATCH_AT_ATTRIBUTES, n - BATCH_AT_ATTRIBUTES));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const struct {
        const char *suffix;
        void (*dump)(struct dump *d, const char *path);
    } kinds[] = {{".log", dump_log},
                 {".index", dump_offset_index},
                 {".timeindex", dump_time_index},
                 {".snapshot", dump_producer_snapshot},
                 {".txnindex", dump_txn_index}};
    char path[128], log[128];
    if (n < 2 || (p[0] & 7) >= sizeof kinds / sizeof *kinds)
        return 0;
    start();
    int kind = p[0] & 7;
    size_t len = n - 2, own = kind == 1 || kind == 2 ? len * p[1] / 256 : len;
    uint8_t *file = malloc(len + 1);
    must(file != NULL);
    memcpy(file, p + 2, len);
    if (p[0] & 128)
        mend(file, len, kind == 3);
    put(".log", file + own % (len + 1), len - own % (len + 1), log);
    put(kinds[kind].suffix, file, own, path);
    struct dump d = {.deep = true,
                     .complaints = nowhere,
                     .contents = true,
                     .verify_only = p[0] & 32,
                     .sanity_only = p[0] & 64,
                     .max_bytes = DUMP_ALL_BYTES,
                     .max_message = 1 << 20,
                     .decoder = dump_decoder_new((enum dump_topic)(p[0] >> 3 & 3), NULL, NULL)};
    kinds[kind].dump(&d, path);
    buf_free(&d.notes);
    dump_decoder_free(d.decoder);
    unlink(path);
    unlink(log);
    free(file);
    return 0;
}
