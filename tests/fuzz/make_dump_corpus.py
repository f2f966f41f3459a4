#!/usr/bin/env python3
"""make_dump_corpus.py - makes corpus/dump_log: a file of each kind, with records of the internal topics."""
import os
import struct
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "integration"))
import kwire  # noqa: E402
from kwire import batch  # noqa: E402

T = 1700000000000
LOG, INDEX, TIME, SNAPSHOT, TXN = range(5)
PLAIN, OFFSETS, TRANSACTIONS, METADATA = (i << 3 for i in range(4))
MEND = 128


def write(name, flags, data, split=0):
    folder = os.path.join(here, "corpus", "dump_log")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(bytes([flags, split]) + data)


def versioned(name, version, **values):
    return struct.pack(">h", version) + kwire.encode(name, version, values)


def with_log(entries, log):
    """Entries in front of a log: padded so that the fraction is exact."""
    total = 256 * len(entries)
    assert len(entries) + len(log) <= total, "too long a log"
    return entries + log + bytes(total - len(entries) - len(log))


member = dict(member_id="m", group_instance_id=None, client_id="c", client_host="h", rebalance_timeout=1, session_timeout=2,
              subscription=struct.pack(">h", 0) + kwire.encode("ConsumerProtocolSubscription", 0,
                                                               dict(topics=["t"], user_data=None)),
              assignment=struct.pack(">h", 0) + kwire.encode("ConsumerProtocolAssignment", 0, dict(
                  assigned_partitions=[dict(topic="t", partitions=[0])], user_data=None)))
write("plain", LOG | PLAIN | MEND, batch([(T, b"k", b"v", [("h", b"x")]), (T, None, None)]))
write("gzip", LOG | PLAIN | MEND, batch([(T, b"k", b"v")], codec=1))
write("marker", LOG | PLAIN | MEND, batch([(T, b"\0\0\0\1", b"\0\0\0\0\0\7")], attributes=0x30, producer_id=1))
write("old", LOG | PLAIN, kwire.message(0, b"k", b"v", 1, T) + kwire.wrapper([(T, b"a", b"1"), (T, b"b", None)]))
write("offset", LOG | OFFSETS | MEND, batch([
    (T, versioned("OffsetCommitKey", 1, group="g", topic="t", partition=0),
     versioned("OffsetCommitValue", 3, offset=1, leader_epoch=0, metadata="m", commit_timestamp=T))]))
write("group", LOG | OFFSETS | MEND, batch([
    (T, versioned("GroupMetadataKey", 2, group="g"),
     versioned("GroupMetadataValue", 3, protocol_type="consumer", generation=1, protocol="range", leader="m",
               current_state_timestamp=T, members=[member]))]))
write("new-group", LOG | OFFSETS | MEND, batch([
    (T, versioned("ConsumerGroupCurrentMemberAssignmentKey", 8, group_id="g", member_id="m"),
     versioned("ConsumerGroupCurrentMemberAssignmentValue", 0, member_epoch=1, previous_member_epoch=0, state=0,
               assigned_partitions=[dict(topic_id=bytes(range(16)), partitions=[1])], partitions_pending_revocation=[]))]))
write("txn", LOG | TRANSACTIONS | MEND, batch([
    (T, versioned("TransactionLogKey", 0, transactional_id="x"),
     versioned("TransactionLogValue", 1, producer_id=1, producer_epoch=0, transaction_timeout_ms=1, transaction_status=1,
               transaction_partitions=[dict(topic="t", partition_ids=[0, 1])], transaction_last_update_timestamp_ms=T,
               transaction_start_timestamp_ms=T))]))
write("metadata", LOG | METADATA | MEND, batch([(T, None, b"\1\2\0abc")]))
one, two = batch([(T, None, b"v")], base_offset=100), batch([(T + 1, None, b"v")], base_offset=101)
write("index", INDEX, with_log(struct.pack(">ii", 1, len(one)), one + two), 1)
write("index-sanity", INDEX | 64, struct.pack(">ii", 1, 70), 255)
write("timeindex", TIME, with_log(struct.pack(">qi", T + 1, 1), one + two), 1)
write("timeindex-sanity", TIME | 64, struct.pack(">qi", T + 1, 1), 255)
body = struct.pack(">i", 1) + struct.pack(">qhiqiqiq", 1, 0, 1, 1, 1, T, -1, -1)
write("snapshot", SNAPSHOT | MEND, struct.pack(">hI", 1, kwire.crc32c(body)) + body)
write("txnindex", TXN, struct.pack(">hqqqq", 0, 1, 3, 9, 3) * 2)
