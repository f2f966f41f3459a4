#!/usr/bin/env python3
"""make_log_corpus.py - makes corpus/checkpoint, corpus/producer_snapshot and corpus/index_files: good files, and a
few that are damaged on purpose."""
import os
import struct

here = os.path.dirname(os.path.abspath(__file__))
T = 1700000000000
NONE = None


def write(folder, name, content):
    os.makedirs(os.path.join(here, "corpus", folder), exist_ok=True)
    with open(os.path.join(here, "corpus", folder, name), "wb") as file:
        file.write(content)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def varint(v):
    v = v << 1 ^ v >> 63
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    out.append(v)
    return bytes(out)


def record(delta, key, value):
    body = b"\0" + varint(delta) + varint(delta)
    for part in (key, value):
        body += varint(len(part)) + part
    body += varint(0)
    return varint(len(body)) + body


def batch(base, records, epoch=0, producer=(-1, -1, -1), attributes=0):
    tail = struct.pack(">hiqqqhii", attributes, len(records) - 1, T + base, T + base + len(records) - 1, *producer,
                       len(records))
    tail += b"".join(records)
    return struct.pack(">qiib", base, 9 + len(tail), epoch, 2) + struct.pack(">I", crc32c(tail)) + tail


def marker(base, producer, commit):
    return batch(base, [record(0, struct.pack(">hh", 0, commit), struct.pack(">hi", 0, 5))], 0,
                 (producer, 0, -1), 0x30)


def snapshot(entries):
    body = struct.pack(">i", len(entries)) + b"".join(struct.pack(">qhiqiqiq", *e) for e in entries)
    return struct.pack(">hI", 1, crc32c(body)) + body


def folder(flags, point, *files):
    out = bytes([flags, point])
    for f in files:
        out += struct.pack(">H", 65535) if f is NONE else struct.pack(">H", len(f)) + f
    return out


def index_files():
    two = [record(0, b"k0", b"v"), record(1, b"k1", b"v")]
    log, starts = b"", []
    for i in range(3):
        starts.append(len(log))
        log += batch(2 * i, two, i // 2)
    starts.append(len(log))
    log += batch(6, two, 1, (9, 0, 0), 0x10)
    log += marker(8, 9, 0)
    index = struct.pack(">iiii", 3, starts[1], 7, starts[3])
    times = struct.pack(">qiqi", T + 3, 3, T + 8, 8)
    txns = struct.pack(">hqqqq", 0, 9, 6, 8, 9)
    producers = snapshot([(9, 0, 1, 7, 1, T, 5, 6)])
    epochs = b"0\n2\n0 0\n1 4\n"
    write("index_files", "clean", folder(1, 9, log, index, times, txns, producers, epochs))
    write("index_files", "unclean", folder(0, 4, log, index + bytes(64), times + bytes(60), txns, NONE, epochs))
    write("index_files", "mended", folder(2, 0, log, NONE, NONE, NONE, NONE, b""))
    write("index_files", "compacted", folder(5, 9, log[:starts[1]] + log[starts[2]:], b"", b"", NONE, NONE, epochs))
    write("index_files", "torn", folder(0, 0, log[:-20], index, times, txns[:-7], producers, b"0\n9\n"))
    write("index_files", "empty", folder(1, 0, b"", bytes(4096), bytes(4092), NONE, NONE, NONE))
    old = struct.pack(">qiIbbqi", 0, 27, 0, 1, 0, T, -1) + struct.pack(">i", 1) + b"x"
    write("index_files", "magic1", folder(1, 0, old, b"", b"", NONE, NONE, NONE))


def checkpoints():
    for name, text in (("offsets", b"0\n2\norders 0 1064\n__consumer_offsets 17 5\n"), ("none", b""),
                       ("count", b"0\n3\na 0 1\n"), ("spaces", b"0\r\n1\r\na\t0  1 \r\n")):
        write("checkpoint", name, b"\0" + text)
    for name, text in (("epochs", b"0\n2\n0 0\n3 1057\n"), ("falling", b"0\n2\n3 0\n0 9\n")):
        write("checkpoint", name, b"\1" + text)
    write("checkpoint", "metadata", b"\2version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w")
    write("checkpoint", "meta_all", b"\3version=0\nbroker.id=5\ncluster.id=abc\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA\n")
    write("checkpoint", "meta_odd", b"\3#comment\nversion: 0\nbroker.id : -1\n")
    write("checkpoint", "meta_bad", b"\3version=9\nbroker.id=zz\n")


def snapshots():
    one = (4000, 3, 24, 1060, 4, T, 9, -1)
    two = (4001, 0, 2, 1063, 2, T + 10, -1, 1061)
    write("producer_snapshot", "two", b"\0" + snapshot([one, two]))
    write("producer_snapshot", "twice", b"\1" + snapshot([one, one]))
    write("producer_snapshot", "none", b"\0" + snapshot([]))
    write("producer_snapshot", "cut", b"\1" + snapshot([one, two])[:-3])


if __name__ == "__main__":
    index_files()
    checkpoints()
    snapshots()
