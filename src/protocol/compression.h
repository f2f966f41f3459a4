/* compression.h - the four codecs of record batches, as streams with a cap on what comes out.
 *
 * FRAMING  gzip: RFC 1952 members, one or more. snappy: xerial framing or one bare block. lz4: one
 *          LZ4 frame; its header check is not looked at for magic 0 (old clients took it wrongly),
 *          its content size and checksum never. zstd: standard frames, window at most 128 MiB.
 * BOMBS    Output is produced in steps, memory grows only as real bytes arrive; passing `cap` is an
 *          error.
 * THREADS  contexts (z_stream, ZSTD_DCtx, ...) live in a thread-local cache; any thread may call.
 */
#ifndef PROTOCOL_COMPRESSION_H
#define PROTOCOL_COMPRESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

enum codec { CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD, CODECS };

/* "none", "gzip", ... Static. */
const char *codec_name(enum codec c);
/* Accepts "none" and "uncompressed". -EINVAL for others. */
int codec_parse(struct str name, enum codec *out);

/* level: CODEC_LEVEL_DEFAULT or the codec's own range. `magic` matters for lz4 (0: the old header
 * check). Appends to out. 0; -ENOMEM; -EINVAL for a level out of range. */
#define CODEC_LEVEL_DEFAULT INT32_MIN
int codec_compress(enum codec c, int level, int magic, const void *p, size_t n, struct buf *out);

/* Appends to out at most `cap` bytes. 0; -EBADMSG malformed; -EFBIG over the cap; -ENOMEM. */
int codec_decompress(enum codec c, int magic, const void *p, size_t n, size_t cap, struct buf *out);

/* As a stream, for checks that need not keep the bytes: read() fills up to n bytes; returns the
 * count, 0 at the end, or an error as above. */
struct codec_stream;
int codec_stream_open(enum codec c, int magic, const void *p, size_t n, size_t cap,
                      struct codec_stream **out);
ssize_t codec_stream_read(struct codec_stream *s, void *p, size_t n);
void codec_stream_close(struct codec_stream *s); /* NULL is fine */

/* Whoever decompresses whole batches for strangers does it up to CODEC_GIANT at first. A batch that
 * has more in it waits for its turn: one of these at a time in the process, so that many bombs at
 * once take no more memory than one. begin and end on one thread. @blocks */
#define CODEC_GIANT ((size_t)64 << 20)
void codec_giant_begin(void);
void codec_giant_end(void);

/* The cap for one batch of `compressed` bytes: min(1 GiB, max(64 MiB, 1100 x compressed)). */
size_t codec_cap(size_t compressed);

#endif
