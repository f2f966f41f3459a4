"""records.py - the workload's records, and a quick way to read them.

A record of a partition tells its number among those of its producer, and the attempt that sent it: the producer is the
partition's only one, so record n must be at offset n, and who has seen attempt 1 of it and later finds attempt 2 has
seen a record that vanished."""
import struct

import kwire

FILL = b"." * 400
ATTEMPTS = 250


def value(number, attempt):
    return b"%010d %03d " % (number, attempt % ATTEMPTS) + FILL[:(number * 7919) % 400]


def parse(data):
    """(number, attempt) of a value."""
    number, attempt = int(data[:10]), int(data[11:14])
    assert data == value(number, attempt), "bytes of a record are not those that were sent: %r" % data[:60]
    return number, attempt


def batch(producer, first, count, attempt):
    return kwire.simple_batch(*[value(first + i, attempt) for i in range(count)], producer_id=producer,
                              producer_epoch=0, sequence=first & 0x7FFFFFFF)


def heads(data):
    """(base offset, last offset, bytes) of each whole batch."""
    at = 0
    while at + 61 <= len(data):
        base, length = struct.unpack_from(">qi", data, at)
        if at + 12 + length > len(data):
            return
        delta = struct.unpack_from(">i", data, at + 23)[0]
        yield base, base + delta, data[at:at + 12 + length]
        at += 12 + length


def values(data, check=False):
    """(offset, value) of each record; its CRC is only looked at on demand: it is slow."""
    for base, _, raw in heads(data):
        if check:
            assert struct.unpack_from(">I", raw, 17)[0] == kwire.crc32c(raw[21:]), "CRC at %d" % base
        r = kwire.Reader(raw[61:])
        for _ in range(struct.unpack_from(">i", raw, 57)[0]):
            r.varint(), r.take(1), r.varint()
            offset = base + r.varint()
            key, body = (None if n < 0 else r.take(n) for n in kwire.iter_lengths(r))
            r.varint()
            yield offset, body
