/* tool_dump_state.c - .snapshot (producers) and .txnindex (aborted transactions) files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/producer_state.h"
#include "log/txn_index.h"
#include "tools/tool_dump.h"
#include "tools/tool_io.h"

enum { FILE_MAX_BYTES = 1 << 30, READ_ENTRIES = 256 };

static void print_producer(const struct producer_snapshot_entry *e)
{
    printf("producerId: %" PRId64 " producerEpoch: %d coordinatorEpoch: %" PRId32
           " currentTxnFirstOffset: ",
           e->id, e->epoch, e->coordinator_epoch);
    if (e->txn_first_offset >= 0)
        printf("OptionalLong[%" PRId64 "]", e->txn_first_offset);
    else
        fputs("OptionalLong.empty", stdout);
    printf(" lastTimestamp: %" PRId64 " ", e->last_timestamp);
    if (e->last_offset >= 0)
        printf("firstSequence: %" PRId32 " lastSequence: %" PRId32 " lastOffset: %" PRId64
               " offsetDelta: %" PRId32 " timestamp: %" PRId64,
               sequence_sub(e->last_sequence, e->offset_delta), e->last_sequence, e->last_offset,
               e->offset_delta, e->last_timestamp);
    putchar('\n');
}

void dump_producer_snapshot(struct dump *d, const char *path)
{
    char *bytes;
    size_t size;
    struct reader entries;
    int32_t n;
    int err = fs_read_all(fs_posix(), path, FILE_MAX_BYTES, &bytes, &size);
    if (err) {
        dump_failed(d, path, "%s", strerror(-err));
        return;
    }
    const char *wrong = producer_snapshot_open(bytes, size, &entries, &n);
    if (wrong) { /* as in Kafka, no failure of the tool */
        fflush(stdout);
        fprintf(d->complaints, "%s: the snapshot is corrupt: %s\n", path, wrong);
    }
    for (int32_t i = 0; !wrong && i < n && tool_output_ok(); i++) {
        struct producer_snapshot_entry e = producer_snapshot_next(&entries);
        print_producer(&e);
    }
    free(bytes);
}

/* false: nothing behind can be read either. */
static bool print_txn(struct dump *d, const char *path, const uint8_t *p, int64_t pos)
{
    struct txn_entry e;
    if (!txn_entry_decode(p, &e)) {
        dump_failed(d, path, "at position %" PRId64 ": Unexpected aborted transaction version %d",
                    pos, (int16_t)get_be16(p));
        return false;
    }
    printf("version: 0 producerId: %" PRId64 " firstOffset: %" PRId64 " lastOffset: %" PRId64
           " lastStableOffset: %" PRId64 "\n",
           e.producer_id, e.first_offset, e.last_offset, e.last_stable_offset);
    return true;
}

void dump_txn_index(struct dump *d, const char *path)
{
    uint8_t bytes[READ_ENTRIES * TXN_ENTRY_BYTES];
    int64_t size, pos = 0;
    struct file *f = dump_open(d, path, &size);
    while (f && pos < size && tool_output_ok()) {
        ssize_t got = file_pread(f, bytes, sizeof bytes, pos);
        if (got < 0)
            dump_failed(d, path, "%s", strerror((int)-got));
        ssize_t at = 0;
        for (; at + TXN_ENTRY_BYTES <= got; at += TXN_ENTRY_BYTES)
            if (!print_txn(d, path, bytes + at, pos + at))
                break;
        pos += at;
        if (at + TXN_ENTRY_BYTES <= got)
            break;
        if (got < (ssize_t)sizeof bytes) {
            if (got > at)
                dump_failed(d, path, "%zd bytes of a torn entry at position %" PRId64, got - at,
                            pos);
            break;
        }
    }
    file_unref(f);
}
