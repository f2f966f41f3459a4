#!/usr/bin/env python3
"""make_txn_corpus.py - makes corpus/txn_records: partitions of __transaction_state, good ones and damaged ones."""
import os
import struct
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "integration"))
import kwire  # noqa: E402

T = 1700000000000


def write(name, content):
    os.makedirs(os.path.join(here, "corpus", "txn_records"), exist_ok=True)
    with open(os.path.join(here, "corpus", "txn_records", name), "wb") as f:
        f.write(content)


def key(id):
    return struct.pack(">h", 0) + kwire.encode("TransactionLogKey", 0, dict(transactional_id=id))


def value(state, version=0, pid=7, epoch=3, topics=None, start=T, updated=T):
    return struct.pack(">h", version) + kwire.encode("TransactionLogValue", version, dict(
        producer_id=pid, producer_epoch=epoch, transaction_timeout_ms=10000, transaction_status=state,
        transaction_partitions=topics, transaction_last_update_timestamp_ms=updated,
        transaction_start_timestamp_ms=start))


def batches(*records):
    out = b""
    for offset, r in enumerate(records):
        out += kwire.batch([(T, *r)], base_offset=offset)
    return out


def main():
    some = [dict(topic="t", partition_ids=[0, 1, 3]), dict(topic="u", partition_ids=[0])]
    write("states", batches(*((key("id-%d" % s), value(s, topics=some if 0 < s < 4 else None)) for s in range(6))))
    write("later_words", batches((key("a"), value(0)), (key("a"), value(1, topics=some)), (key("b"), value(0)),
                                 (key("b"), None), (key("a"), value(2, topics=some))))
    write("flexible", batches((key("a"), value(1, version=1, topics=some)), (key("b"), value(3, version=1, topics=some))))
    write("ends_of_epochs", batches(*((key("e%d" % e), value(s, epoch=e, topics=some if s == 1 else None))
                                      for e in (-1, 0, 32765, 32766, 32767) for s in (0, 1))))
    write("times", batches(*((key("t%d" % i), value(s, start=x, updated=x, topics=some if s == 1 else None))
                             for i, x in enumerate((-(1 << 63), -1, 0, (1 << 63) - 1)) for s in (1, 4))))
    write("never_written", batches(*((key("n%d" % s), value(s)) for s in (6, 7, 8, -1, 127))))
    write("damage", batches((key("a"), value(1, topics=some)[:20]), (b"\0", b""), (None, value(0)), (b"\0\1\0\1x", value(0)),
                            (key("a"), b"\0\5\0"), (key(""), value(0)), (key("c"), value(0))))
    write("one_batch", kwire.batch([(T, key("id-%d" % i), value(i % 6, topics=some if 0 < i % 6 < 4 else None)) for i in range(20)]))
    write("repeated_partitions", batches((key("a"), value(1, topics=[dict(topic="t", partition_ids=[1, 1, -1, 1 << 30]),
                                                                     dict(topic="t", partition_ids=[1, 0]),
                                                                     dict(topic="", partition_ids=[])]))))


if __name__ == "__main__":
    main()
