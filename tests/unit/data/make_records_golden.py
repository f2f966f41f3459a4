#!/usr/bin/python3
"""Writes records_golden.txt: batches and message sets made by other people's code (kafka-python, and the codec
libraries' Python bindings), with what must be read from them. Form: see record_vectors.txt.

Needs Debian's python3-kafka, python3-lz4, python3-snappy, python3-zstandard, python3-xxhash. Run it only to change the set of cases;
the result is committed, and the tests need no Python.
"""
import gzip
import io
import os
import struct
import sys
import zlib

import kafka.codec
import lz4.frame
import snappy
import zstandard
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.util import calc_crc32c

T = 1700000000000
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ["none", "gzip", "snappy", "lz4", "zstd"]

gzip.time.time = lambda: 0  # the same bytes every day

# (time, key, value, headers)
SMALL = [
    (T, b"k1", b"hello", [("h1", b"\1\2"), ("h1", None), ("", b"")]),
    (T + 5, None, b"world", []),
    (T - 3, b"", b"", []),
    (T + 70000, b"gone", None, [("trace", b"x" * 40)]),
]
SIZES = [0, 10, 1000, 40000, 140000, 5000, 70000]  # one is larger than any window or block
LARGE = [(T + i, b"key-%d" % i, bytes([65 + i]) * n, []) for i, n in enumerate(SIZES)]
MANY = [(T + i // 7, b"%d" % i, b"value %d of many" % i, []) for i in range(150)]
SETS = {"small": SMALL, "large": LARGE, "many": MANY}

out = []


def field(b):
    if b is None:
        return "-"
    if not b:
        return "."
    if len(b) > 60 and b == b[:1] * len(b):
        return "%02x*%d" % (b[0], len(b))
    return b.hex()


def emit(name, data, records, first_offset, magic):
    out.append("batch " + name)
    out.append("hex " + data.hex())
    for i, (time, key, value, headers) in enumerate(records):
        if magic < 2:
            headers = []
        if magic == 0:
            time = -1
        line = "record %d %d create %s %s" % (first_offset + i, time, field(key), field(value))
        for k, v in headers:
            line += " %s=%s" % (k.encode().hex(), field(v))
        out.append(line)
    out.append("")


def v2_head(body, codec, records, base=0):
    times = [r[0] for r in records]
    tail = struct.pack(">hiqqqhii", codec, len(records) - 1, times[0], max(times), -1, -1, -1, len(records)) + body
    head = struct.pack(">qiibI", base, len(tail) + 9, 3, 2, calc_crc32c(tail))
    return head + tail


def v2_body(records):
    b = DefaultRecordBatchBuilder(2, NONE, 0, -1, -1, -1, 10**8)
    for i, (time, key, value, headers) in enumerate(records):
        b.append(i, time, key, value, headers)
    return bytes(b.build())[61:]


def message(magic, codec, offset, time, key, value):
    def data(x):
        return struct.pack(">i", -1) if x is None else struct.pack(">i", len(x)) + x

    body = struct.pack(">bb", magic, codec) + (struct.pack(">q", time) if magic else b"") + data(key) + data(value)
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def message_set(magic, records, offsets):
    return b"".join(message(magic, 0, o, t, k, v) for o, (t, k, v, _) in zip(offsets, records))


def xerial(blocks):
    head = bytes([0x82]) + b"SNAPPY\0" + struct.pack(">ii", 1, 1)
    return head + b"".join(struct.pack(">i", len(c)) + c for c in map(snappy.compress, blocks))


def pieces(data, n):
    return [data[i:i + n] for i in range(0, len(data), n)]


def from_builders():
    kafka.codec.zstd = zstandard
    for set_name, records in SETS.items():
        for codec in (NONE, GZIP, SNAPPY, LZ4, ZSTD):
            if codec == NONE and records is LARGE:
                continue  # half a megabyte of hex that tells nothing
            b = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 10**8)
            for i, (time, key, value, headers) in enumerate(records):
                b.append(i, time, key, value, headers)
            emit("kafka_python_v2_%s_%s" % (NAMES[codec], set_name), bytes(b.build()), records, 0, 2)
        for magic in (0, 1):
            for codec in (GZIP, SNAPPY, LZ4):
                b = LegacyRecordBatchBuilder(magic, codec, 10**8)
                for i, (time, key, value, _) in enumerate(records):
                    b.append(i, time, key, value)
                emit("kafka_python_v%d_%s_%s" % (magic, NAMES[codec], set_name), bytes(b.build()), records, 0, magic)


def framings_v2():
    body = v2_body(LARGE)
    two = [body[:1000], body[1000:]]

    def case(name, codec, data):
        emit("v2_" + name, v2_head(data, codec, LARGE), LARGE, 0, 2)

    case("gzip_two_members", GZIP, gzip.compress(two[0]) + gzip.compress(two[1]))
    named = io.BytesIO()
    with gzip.GzipFile("a name", "wb", 9, named) as z:
        z.write(body)
    case("gzip_file_name", GZIP, named.getvalue())
    case("gzip_trailing_zeros", GZIP, gzip.compress(body) + bytes(16))
    case("snappy_bare", SNAPPY, snappy.compress(body))
    case("snappy_two_streams", SNAPPY, xerial(pieces(two[0], 100)) + xerial(pieces(two[1], 32768)))
    case("snappy_one_large_chunk", SNAPPY, xerial([body]))
    for name, options in {
            "linked_blocks": dict(block_linked=True),
            "content_checksum": dict(content_checksum=True),
            "block_checksum": dict(block_checksum=True, block_linked=False),
            "everything": dict(content_checksum=True, block_checksum=True, store_size=True),
            "4_mib_blocks": dict(block_size=lz4.frame.BLOCKSIZE_MAX4MB),
            "high_compression": dict(compression_level=12),
    }.items():
        case("lz4_" + name, LZ4, lz4.frame.compress(body, **{"store_size": False, **options}))
    good = lz4.frame.compress(body, content_checksum=True, store_size=False)
    case("lz4_wrong_content_checksum", LZ4, good[:-4] + bytes([good[-4] ^ 1]) + good[-3:])
    case("lz4_bytes_behind_frame", LZ4, good + b"more")
    stream = zstandard.ZstdCompressor(write_content_size=False).compress
    case("zstd_no_content_size", ZSTD, stream(body))
    case("zstd_two_frames", ZSTD, stream(two[0]) + zstandard.ZstdCompressor(write_checksum=True).compress(two[1]))
    case("zstd_skippable_frame", ZSTD, struct.pack("<II", 0x184D2A50, 5) + b"skip!" + stream(body))
    case("zstd_level_19", ZSTD, zstandard.ZstdCompressor(level=19).compress(body))


def wrappers():
    for magic in (0, 1):
        first = 1000
        n = len(SMALL)
        absolute = range(first, first + n)
        inner = message_set(magic, SMALL, absolute if magic == 0 else range(n))
        emit("v%d_gzip_assigned" % magic, message(magic, GZIP, first + n - 1, T + 70000, None, gzip.compress(inner)),
             SMALL, first, magic)
        emit("v%d_snappy_bare" % magic, message(magic, SNAPPY, first + n - 1, T, None, snappy.compress(inner)), SMALL,
             first, magic)
    # relative offsets that do not begin at 0, as compaction leaves them
    inner = message_set(1, SMALL, range(2, 2 + len(SMALL)))
    emit("v1_gzip_compacted", message(1, GZIP, 500 + len(SMALL) - 1, T, None, gzip.compress(inner)), SMALL, 500, 1)
    # a wrapper whose offset was left at 0
    inner = message_set(1, SMALL, range(len(SMALL)))
    emit("v1_gzip_wrapper_offset_0", message(1, GZIP, 0, T, None, gzip.compress(inner)), SMALL, 0, 1)


from_builders()
framings_v2()
wrappers()
here = os.path.dirname(os.path.abspath(sys.argv[0]))
with open(os.path.join(here, "records_golden.txt"), "w") as f:
    f.write("# Made by make_records_golden.py; the form is that of record_vectors.txt.\n\n")
    f.write("\n".join(out) + "\n")
