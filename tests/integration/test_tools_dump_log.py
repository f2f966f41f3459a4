"""kafka-dump-log on files of every kind: as a broker leaves them, made by hand, and damaged."""
import glob
import json
import os
import random
import shutil
import struct
import tempfile
import time
import unittest

import groupwire
import harness
import kwire
from kwire import batch
from tool_test import ToolTest, run_tool

T = 1700000000000
LOG = "00000000000000000000.log"


def dump(*args, **kw):
    return run_tool("kafka-dump-log", *args, **kw)


def snapshot(entries, version=1, crc=None):
    body = struct.pack(">i", len(entries)) + b"".join(struct.pack(">qhiqiqiq", *e) for e in entries)
    return struct.pack(">hI", version, kwire.crc32c(body) if crc is None else crc) + body


def record_value(name, version, **values):
    return struct.pack(">h", version) + kwire.encode(name, version, values)


class FileTest(unittest.TestCase):
    """Files made by hand, in a folder of their own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kafkad-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def put(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def expect(self, path, *args, status=0):
        r = dump("--files", path, *args)
        self.assertEqual(r.status, status, r.text + r.err)
        self.assertEqual(r.lines[0], "Dumping " + path)
        return r

    # -- .log

    def test_batches_and_records(self):
        data = batch([(T, b"k1", b"hello", [("h1", b"x"), ("h2", None)]), (T + 1, b"k2", b"hello")],
                     attributes=0x10, producer_id=1000, producer_epoch=0, sequence=0)
        marker = batch([(T + 2, b"\0\0\0\1", b"\0\0\0\0\0\7")], attributes=0x30, producer_id=1000, producer_epoch=0,
                       base_offset=2)
        nulls = batch([(T + 3, None, None), (T + 3, b"", b"")], base_offset=3, codec=1)
        path = self.put(LOG, data + marker + nulls)
        heads = ["baseOffset: 0 lastOffset: 1 count: 2 baseSequence: 0 lastSequence: 1 producerId: 1000 producerEpoch: 0 "
                 "partitionLeaderEpoch: -1 isTransactional: true isControl: false deleteHorizonMs: OptionalLong.empty "
                 "position: 0 CreateTime: %d size: %d magic: 2 compresscodec: none crc: %d isvalid: true"
                 % (T + 1, len(data), kwire.crc32c(data[21:])),
                 "baseOffset: 2 lastOffset: 2 count: 1 baseSequence: -1 lastSequence: -1 producerId: 1000 producerEpoch: 0 "
                 "partitionLeaderEpoch: -1 isTransactional: true isControl: true deleteHorizonMs: OptionalLong.empty "
                 "position: %d CreateTime: %d size: %d magic: 2 compresscodec: none crc: %d isvalid: true"
                 % (len(data), T + 2, len(marker), kwire.crc32c(marker[21:])),
                 "baseOffset: 3 lastOffset: 4 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
                 "partitionLeaderEpoch: -1 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
                 "position: %d CreateTime: %d size: %d magic: 2 compresscodec: gzip crc: %d isvalid: true"
                 % (len(data) + len(marker), T + 3, len(nulls), kwire.crc32c(nulls[21:]))]
        r = self.expect(path)
        self.assertEqual(r.lines, ["Dumping " + path, "Log starting offset: 0"] + heads)
        metadata = ["| offset: 0 CreateTime: %d keySize: 2 valueSize: 5 sequence: 0 headerKeys: [h1,h2]" % T,
                    "| offset: 1 CreateTime: %d keySize: 2 valueSize: 5 sequence: 1 headerKeys: []" % (T + 1),
                    "| offset: 2 CreateTime: %d keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] endTxnMarker: COMMIT "
                    "coordinatorEpoch: 7" % (T + 2),
                    "| offset: 3 CreateTime: %d keySize: -1 valueSize: -1 sequence: -1 headerKeys: []" % (T + 3),
                    "| offset: 4 CreateTime: %d keySize: 0 valueSize: 0 sequence: -1 headerKeys: []" % (T + 3)]
        contents = [" key: k1 payload: hello", " key: k2 payload: hello", "", "", " key:  payload: "]
        deep = [heads[0], *metadata[:2], heads[1], metadata[2], heads[2], *metadata[3:]]
        self.assertEqual(self.expect(path, "--deep-iteration").lines[2:], deep)
        both = [m + c for m, c in zip(metadata, contents)]
        for flags in [["--print-data-log"], ["--print-data-log", "--deep-iteration"],
                      ["--value-decoder-class", "kafka.serializer.StringDecoder"]]:
            self.assertEqual(self.expect(path, *flags).lines[2:],
                             [heads[0], *both[:2], heads[1], both[2], heads[2], *both[3:]])
        self.assertEqual(self.expect(path, "--print-data-log", "--skip-record-metadata").lines[2:],
                         [heads[0], "| key: k1 payload: hello", "| key: k2 payload: hello", heads[1], "", heads[2], "",
                          "| key:  payload: "])
        self.assertEqual(self.expect(path, "--max-bytes", len(data) + 5).lines[2:], heads[:1])

    def test_times_and_horizons(self):
        appended = batch([(T, None, b"a"), (T + 9, None, b"b")], attributes=8)
        horizon = batch([(T, b"k", None)], attributes=0x40, base_offset=2)
        r = self.expect(self.put(LOG, appended + horizon), "--deep-iteration")
        self.assertIn("position: 0 LogAppendTime: %d " % (T + 9), r.lines[2])
        self.assertIn("| offset: 0 LogAppendTime: %d " % (T + 9), r.lines[3])
        self.assertIn("deleteHorizonMs: OptionalLong[%d] " % T, r.lines[5])

    def test_old_formats(self):
        one = kwire.message(0, b"k", b"v", 1, T)
        zero = kwire.message(1, None, b"old", 0)
        packed = kwire.wrapper([(T, b"a", b"1"), (T + 1, b"b", b"2")], 1, T + 1)
        packed = struct.pack(">q", 3) + packed[8:]
        r = self.expect(self.put(LOG, one + zero + packed), "--print-data-log")
        crc = [struct.unpack_from(">I", m, 12)[0] for m in (one, zero, packed)]
        self.assertEqual(r.lines[2:6], [
            "offset: 0 position: 0 CreateTime: %d size: %d magic: 1 compresscodec: none crc: %d isvalid: true"
            % (T, len(one), crc[0]),
            "| offset: 0 CreateTime: %d keySize: 1 valueSize: 1 isValid: true crc: %d key: k payload: v" % (T, crc[0]),
            "offset: 1 position: %d NoTimestampType: -1 size: %d magic: 0 compresscodec: none crc: %d isvalid: true"
            % (len(one), len(zero), crc[1]),
            "| offset: 1 NoTimestampType: -1 keySize: -1 valueSize: 3 isValid: true crc: %d payload: old" % crc[1]])
        self.assertRegex(r.lines[6], r"^offset: 3 .*compresscodec: gzip crc: %d isvalid: true$" % crc[2])
        self.assertRegex(r.lines[7], r"^\| offset: 2 CreateTime: %d .* isValid: true crc: \d+ key: a payload: 1$" % T)
        self.assertRegex(r.lines[8], r"^\| offset: 3 CreateTime: %d .* key: b payload: 2$" % (T + 1))

    def test_gaps(self):
        data = batch([(T, None, b"a")], base_offset=5) + batch([(T, None, b"b")], base_offset=9)
        path = self.put("00000000000000000005.log", data)
        r = self.expect(path, "--deep-iteration")
        self.assertEqual(r.lines[1], "Log starting offset: 5")
        self.assertEqual(r.err, "Non-consecutive offsets in %s\n  5 is followed by 9\n" % path)
        self.assertEqual(self.expect(path).err, "")

    def test_decoders(self):
        path = self.put(LOG, batch([(T, struct.pack(">i", 7), struct.pack(">q", -8))]))
        r = self.expect(path, "--key-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder", "--value-decoder-class",
                        "kafka.serializer.LongDecoder")
        self.assertTrue(r.lines[-1].endswith(" key: 7 payload: -8"))
        r = self.expect(path, "--key-decoder-class", "LongDecoder", status=1)
        self.assertIn("the record at offset 0: the key is too short", r.err)
        r = self.expect(path, "--value-decoder-class", "DefaultDecoder")
        self.assertTrue(r.lines[-1].endswith(" payload: fffffffffffffff8"))
        r = dump("--files", path, "--value-decoder-class", "my.Own")
        self.assertEqual((r.status, r.out), (1, b""))
        r = self.expect(self.put(LOG, batch([(T, None, b"a\xff\xe2\x98\x83\xe2\x98z")])), "--print-data-log")
        self.assertTrue(r.lines[-1].endswith(" payload: a\ufffd\u2603\ufffdz"), r.lines[-1])

    def test_damaged_logs(self):
        good = batch([(T, None, b"a" * 50)])
        for what, data, args, out, err in [
                ("a tail", good + b"\0" * 17, [], None, "at position %d: Found record size 0 smaller than minimum record "
                 "overhead \\(14\\)" % len(good)),
                ("half a batch", good + good[:40], [], "Found 40 invalid bytes at the end of " + LOG, None),
                ("a few bytes", good + b"\1\2\3", [], "Found 3 invalid bytes at the end of " + LOG, None),
                ("only a few bytes", b"\1\2\3", [], "Found 3 invalid bytes at the end of " + LOG, None),
                ("a few bytes, limited", good + b"\1\2\3", ["--max-bytes", 4096], None, None),
                ("magic", good + good[:16] + b"\7" + good[17:], [], None, "magic 7"),
                ("a checksum", batch([(T, None, b"a")], good_crc=False), [], "isvalid: false", None),
                ("a checksum, deep", batch([(T, None, b"a")], good_crc=False), ["--print-data-log"], "payload: a", None),
                ("too few records", batch([(T, None, b"a")], count=2), ["--deep-iteration"], "isvalid: true",
                 "position 0 \\(offset 0\\)"),
                ("no gzip", batch([(T, None, b"a")], attributes=1), ["--deep-iteration"], "isvalid: true",
                 "compressed data is malformed"),
                ("no codec", batch([(T, None, b"a")], attributes=7), ["--deep-iteration"], "compresscodec: unknown\\(7\\)",
                 "Unknown compression codec")]:
            with self.subTest(what):
                r = self.expect(self.put(LOG, data), *args, status=1 if err else 0)
                self.assertRegex(r.text, out or "Dumping")
                self.assertRegex(r.err, err or "^$")

    def test_files_that_are_none(self):
        r = dump("--files", os.path.join(self.folder, LOG))
        self.assertEqual(r.status, 1)
        self.assertIn(LOG + ": No such file or directory", r.err)
        self.assertEqual(r.lines, ["Dumping " + os.path.join(self.folder, LOG)])  # and nothing of its content
        other = self.put("kafkad-metadata.journal", b"0\n0\n")
        log = self.put(LOG, batch([(T, None, b"x")]))
        r = dump("--files", ",".join([other, os.path.join(self.folder, "1.log"), self.folder + ".log", log]))
        self.assertEqual(r.status, 1)
        self.assertIn("Ignoring unknown file " + other, r.err)
        self.assertIn("baseOffset: 0", r.lines[-1])  # what comes behind is shown
        self.assertEqual(dump("--files", os.path.join(self.folder, "x.log"), "--deep-iteration").status, 1)
        os.mkdir(os.path.join(self.folder, "1.log"))
        self.assertIn("Is a directory", dump("--files", os.path.join(self.folder, "1.log")).err)

    def test_flags(self):
        r = dump()
        self.assertEqual(r.status, 1)
        r = dump("--print-data-log")
        self.assertEqual(r.status, 1)
        self.assertIn('Missing required argument "[files]"', r.err)
        r = dump("--help")
        self.assertEqual(r.status, 0)

    # -- indexes

    def indexed(self):
        """A log of three batches, two of them indexed."""
        data, where = b"", []
        for i in range(3):
            where.append(len(data))
            data += batch([(T + 10 * i, None, b"v" * 20), (T + 10 * i + 1, None, b"v")], base_offset=100 + 2 * i)
        self.put("00000000000000000100.log", data)
        index = struct.pack(">iiii", 3, where[1], 5, where[2])
        times = struct.pack(">qiqi", T + 11, 3, T + 21, 5)
        return where, index, times

    def test_offset_index(self):
        where, index, _ = self.indexed()
        path = self.put("00000000000000000100.index", index)
        lines = ["offset: 103 position: %d" % where[1], "offset: 105 position: %d" % where[2]]
        r = self.expect(path)
        self.assertEqual((r.lines[1:], r.err), (lines, ""))
        self.assertEqual(self.expect(path, "--verify-index-only").lines[1:], [])
        self.assertEqual(self.expect(path, "--index-sanity-check").lines[1:], [path + " passed sanity check."])
        # an index in use has zeros behind its entries
        path = self.put("00000000000000000100.index", index + bytes(800))
        self.assertEqual(self.expect(path).lines[1:], lines)
        self.assertEqual(self.expect(path, "--index-sanity-check").lines[1:], [path + " passed sanity check."])
        path = self.put("00000000000000000100.index", bytes(800))
        r = self.expect(path)
        self.assertEqual((r.lines[1:], r.err), (["offset: 100 position: 0"], ""))
        path = self.put("00000000000000000100.index", b"")
        self.assertEqual(self.expect(path).lines[1:], [path + " is empty."])

    def test_offset_index_that_is_wrong(self):
        where, index, _ = self.indexed()
        path = self.put("00000000000000000100.index", index[:4] + index[4:8] + struct.pack(">ii", 4, where[2]))
        r = self.expect(path)
        self.assertEqual(r.err, "Mismatches in :%s\n  Index offset: 104, log offset: 105\n" % path)
        r = self.expect(path, "--verify-index-only")
        self.assertIn("Index offset: 104", r.err)
        for position in [where[1] + 1, 1 << 20, -5]:
            path = self.put("00000000000000000100.index", struct.pack(">ii", 3, position))
            r = dump("--files", path)
            self.assertIn("103", r.err)
        path = self.put("00000000000000000100.index", index[:8] + struct.pack(">ii", -5, where[2]))
        self.assertIn("is less than the base offset", self.expect(path, "--index-sanity-check", status=1).err)
        path = self.put("00000000000000000100.index", index + b"\0\1\2")
        self.assertIn("no multiple of 8", self.expect(path, "--index-sanity-check", status=1).err)
        path = self.put("00000000000000000100.index", index)
        r = self.expect(path, "--max-message-size", 30, status=1)
        self.assertIn("at most 30 bytes", r.err)
        os.unlink(os.path.join(self.folder, "00000000000000000100.log"))
        self.assertIn("100.log: No such file", self.expect(path, status=1).err)

    def test_time_index(self):
        _, index, times = self.indexed()
        path = self.put("00000000000000000100.timeindex", times)
        lines = ["timestamp: %d offset: 103" % (T + 11), "timestamp: %d offset: 105" % (T + 21)]
        for offsets in [None, index, index + bytes(80)]:
            if offsets is not None:
                self.put("00000000000000000100.index", offsets)
            for tail in [b"", bytes(120)]:
                self.put("00000000000000000100.timeindex", times + tail)
                r = self.expect(path)
                self.assertEqual((r.lines[1:], r.err), (lines, ""))
                self.assertEqual(self.expect(path, "--index-sanity-check").lines[1:], [path + " passed sanity check."])
        self.assertEqual(self.expect(path, "--verify-index-only").lines[1:], [])
        self.put("00000000000000000100.timeindex", struct.pack(">qiqiqi", T + 12, 3, T + 12, 5, T + 30, 4))
        r = self.expect(path)
        self.assertEqual(r.err.splitlines(), [
            "Found timestamp mismatch in :" + path, "  Index timestamp: %d, log timestamp: %d" % (T + 12, T + 11),
            "  Index timestamp: %d, log timestamp: %d" % (T + 12, T + 21),
            "Found out of order timestamp in :" + path,
            "  Index timestamp: %d, Previously indexed timestamp: %d" % (T + 12, T + 12),
            "The following indexed offsets are not found in the log.", "Indexed offset: 104, found log offset: 105"])
        self.put("00000000000000000100.timeindex", times[12:] + times[:12])
        self.assertIn("is less than its first", self.expect(path, "--index-sanity-check", status=1).err)
        self.put("00000000000000000100.timeindex", b"")
        self.assertEqual(self.expect(path).lines[1:], [])

    # -- producers, transactions

    def test_snapshot(self):
        path = self.put("00000000000000000010.snapshot", snapshot([(1000, 0, 1, 1, 1, T, -1, -1), (7, 3, -1, -1, 0, T, 5, 9)]))
        self.assertEqual(self.expect(path).text.split("\n")[1:], [
            "producerId: 1000 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong.empty "
            "lastTimestamp: %d firstSequence: 0 lastSequence: 1 lastOffset: 1 offsetDelta: 1 timestamp: %d" % (T, T),
            "producerId: 7 producerEpoch: 3 coordinatorEpoch: 5 currentTxnFirstOffset: OptionalLong[9] "
            "lastTimestamp: %d " % T, ""])
        for data, why in [(snapshot([], crc=5), "checksum"), (b"\0\1", "too short"), (snapshot([], version=9), "version"),
                          (b"", "too short")]:
            r = self.expect(self.put("00000000000000000010.snapshot", data))
            self.assertIn(why, r.err)

    def test_transaction_index(self):
        entry = struct.pack(">hqqqq", 0, 1000, 3, 9, 3)
        path = self.put("00000000000000000000.txnindex", entry * 300)
        r = self.expect(path)
        self.assertEqual(r.lines[1:], ["version: 0 producerId: 1000 firstOffset: 3 lastOffset: 9 lastStableOffset: 3"] * 300)
        r = self.expect(self.put("00000000000000000000.txnindex", entry + entry[:20]), status=1)
        self.assertIn("20 bytes of a torn entry at position 34", r.err)
        r = self.expect(self.put("00000000000000000000.txnindex", entry + b"\0\1" + entry[2:]), status=1)
        self.assertIn("at position 34: Unexpected aborted transaction version 1", r.err)

    # -- text files

    OFFSETS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint",
               "cleaner-offset-checkpoint")

    def test_text_files(self):
        for name in self.OFFSETS:
            r = self.expect(self.put(name, b"0\n2\na-topic 0 17\nb 12 9223372036854775807\n"))
            self.assertEqual(r.lines[1:], ["topic: a-topic partition: 0 offset: 17",
                                           "topic: b partition: 12 offset: 9223372036854775807"])
            self.assertEqual(self.expect(self.put(name, b"0\n0\n")).lines[1:], [])
        r = self.expect(self.put("leader-epoch-checkpoint", b"0\n2\n0 0\n5 1000\n"))
        self.assertEqual(r.lines[1:], ["epoch: 0 startOffset: 0", "epoch: 5 startOffset: 1000"])
        r = self.expect(self.put("partition.metadata", b"version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w"))
        self.assertEqual(r.lines[1:], ["version: 0 topicId: ABEiM0RVZneImaq7zN3u_w"])
        r = self.expect(self.put("meta.properties", b"#\n#date\nversion=0\nbroker.id=3\ncluster.id=abc\n"))
        self.assertEqual(r.lines[1:], ["version: 0", "broker.id: 3", "cluster.id: abc"])

    def test_text_files_that_are_wrong(self):
        for name, data, shown, where in [
                (self.OFFSETS[0], b"1\n0\n", 0, "line 1 "), (self.OFFSETS[1], b"0\n2\na 0 1\n", 1, "line 4 "),
                (self.OFFSETS[2], b"0\n3\na 0 1\nb 0 2\nc 0\n", 2, "line 5 "),
                (self.OFFSETS[3], b"0\n1\na 0 1\0", 0, "zero byte at position 9"),
                ("leader-epoch-checkpoint", b"0\n2\n0 0\nx 7\n", 1, "line 4 "),
                ("partition.metadata", b"version: 0\n", 0, "topic_id"), ("partition.metadata", b"", 0, "topic_id"),
                ("meta.properties", b"version=0\na=\\u12\n", 1, "line 2:")]:
            with self.subTest(name, data=data):
                path = self.put(name, data)
                r = self.expect(path, status=1)
                self.assertEqual(len(r.lines), 1 + shown, r.text)
                self.assertIn(where, r.err)
                self.assertTrue(r.err.startswith(path + ": "))
        r = dump("--files", os.path.join(self.folder, "none", "meta.properties"))
        self.assertEqual(r.status, 1)
        self.assertIn("No such file", r.err)

    # -- internal topics

    def pairs(self, records, flag):
        """What follows `keySize` .. of each record."""
        path = self.put(LOG, batch([(T, k, v) for k, v in records]))
        r = self.expect(path, flag)
        return [line.split("headerKeys: [] ", 1)[1] for line in r.lines if line.startswith("| ")]

    def test_offsets_decoder(self):
        subscription = struct.pack(">h", 1) + kwire.encode("ConsumerProtocolSubscription", 1, dict(
            topics=["t"], user_data=None, owned_partitions=[dict(topic="t", partitions=[0, 1])]))
        assignment = struct.pack(">h", 0) + kwire.encode("ConsumerProtocolAssignment", 0, dict(
            assigned_partitions=[dict(topic="t", partitions=[2])], user_data=b"\1\2"))
        member = dict(member_id="m-1", group_instance_id=None, client_id="c\n\"", client_host="/127.0.0.1",
                      rebalance_timeout=1, session_timeout=2, subscription=subscription, assignment=assignment)
        group = dict(protocol_type="consumer", generation=3, protocol="range", leader="m-1", current_state_timestamp=T,
                     members=[member])
        key = struct.pack(">h", 1) + kwire.encode("OffsetCommitKey", 1, dict(group="g1", topic="orders", partition=0))
        group_key = struct.pack(">h", 2) + kwire.encode("GroupMetadataKey", 2, dict(group="g1"))
        offset = dict(offset=42, leader_epoch=-1, metadata="", commit_timestamp=T, expire_timestamp=T + 1)
        connect = dict(group, protocol_type="connect", protocol=None, leader=None)
        broken = dict(group, members=[dict(member, subscription=b"\0", assignment=b"")])
        rows = self.pairs([(key, record_value("OffsetCommitValue", 3, **offset)),
                           (key, record_value("OffsetCommitValue", 1, **offset)),
                           (key, record_value("OffsetCommitValue", 4, **offset)), (key, None),
                           (group_key, record_value("GroupMetadataValue", 3, **group)), (group_key, None),
                           (group_key, record_value("GroupMetadataValue", 1, **connect)),
                           (group_key, record_value("GroupMetadataValue", 0, **broken)),
                           (b"\0\x1e" + key, b"x"), (b"\0", b"x"), (key, b"\0\3\0"), (key, b"\0\x63" + bytes(40)),
                           (key[:-2], b"")], "--offsets-decoder")
        data = '{"offset":42,"leaderEpoch":-1,"metadata":"","commitTimestamp":%d}}' % T
        key_text = 'key: {"type":"1","data":{"group":"g1","topic":"orders","partition":0}} payload: '
        group_text = 'key: {"type":"2","data":{"group":"g1"}} payload: '
        self.assertEqual(rows[0], key_text + '{"version":"3","data":' + data)
        self.assertEqual(rows[1], key_text + '{"version":"1","data":{"offset":42,"metadata":"","commitTimestamp":%d,'
                                             '"expireTimestamp":%d}}' % (T, T + 1))
        self.assertEqual(rows[2], key_text + '{"version":"4","data":' + data)
        self.assertEqual(rows[3], key_text + "<DELETE>")
        self.assertEqual(rows[4], group_text + '{"version":"3","data":{"protocolType":"consumer","generation":3,'
                         '"protocol":"range","leader":"m-1","currentStateTimestamp":%d,"members":[{"memberId":"m-1",'
                         '"groupInstanceId":null,"clientId":"c\\n\\"","clientHost":"/127.0.0.1","rebalanceTimeout":1,'
                         '"sessionTimeout":2,"subscription":{"topics":["t"],"userData":null,"ownedPartitions":[{"topic":"t",'
                         '"partitions":[0,1]}]},"assignment":{"assignedPartitions":[{"topic":"t","partitions":[2]}],'
                         '"userData":"AQI="}}]}}' % T)
        self.assertEqual(rows[5], group_text + "<DELETE>")
        self.assertRegex(rows[6], r'"protocol":null,"leader":null,"members":\[.*"subscription":"AAEAAAAB')
        self.assertIn('"subscription":"AA==","assignment":""', rows[7])
        self.assertEqual(rows[8], "key: Unknown record type 30 at offset 8, skipping.")
        self.assertRegex(rows[9], "^key: Error at offset 9, skipping. the key is too short$")
        self.assertRegex(rows[10], "^key: Error at offset 10, skipping. the value is malformed$")
        self.assertRegex(rows[11], "^key: Error at offset 11, skipping. .*99$")
        self.assertRegex(rows[12], "^key: Error at offset 12, skipping. the key is malformed$")
        r = self.expect(self.put(LOG, batch([(T, None, b"x")])), "--offsets-decoder", status=1)
        self.assertIn("the record at offset 0: the key is null", r.err)

    def test_new_group_records(self):
        key = struct.pack(">h", 8) + kwire.encode("ConsumerGroupCurrentMemberAssignmentKey", 8,
                                                  dict(group_id="g", member_id="m"))
        value = record_value("ConsumerGroupCurrentMemberAssignmentValue", 0, member_epoch=5, previous_member_epoch=4, state=1,
                             assigned_partitions=[dict(topic_id=bytes(range(16)), partitions=[1, 2])],
                             partitions_pending_revocation=[])
        self.assertEqual(self.pairs([(key, value)], "--offsets-decoder"), [
            'key: {"type":"8","data":{"groupId":"g","memberId":"m"}} payload: {"version":"0","data":{"memberEpoch":5,'
            '"previousMemberEpoch":4,"state":1,"assignedPartitions":[{"topicId":"AAECAwQFBgcICQoLDA0ODw","partitions":[1,2]}],'
            '"partitionsPendingRevocation":[]}}'])
        member = dict(instance_id=None, rack_id=None, client_id="c", client_host="h", subscribed_topic_names=["t"],
                      subscribed_topic_regex=None, rebalance_timeout_ms=1, server_assignor=None)
        key = struct.pack(">h", 5) + kwire.encode("ConsumerGroupMemberMetadataKey", 5, dict(group_id="g", member_id="m"))
        row = self.pairs([(key, record_value("ConsumerGroupMemberMetadataValue", 0, **member))], "--offsets-decoder")[0]
        self.assertNotIn("classic", row)
        json.loads(row.split("payload: ")[1])

    def test_transaction_log_decoder(self):
        key = struct.pack(">h", 0) + kwire.encode("TransactionLogKey", 0, dict(transactional_id="tx1"))
        value = dict(producer_id=1000, producer_epoch=0, transaction_timeout_ms=60000, transaction_status=1,
                     transaction_partitions=[dict(topic="orders", partition_ids=[0, 1])],
                     transaction_last_update_timestamp_ms=T, transaction_start_timestamp_ms=T - 1)
        empty = dict(value, transaction_status=0, transaction_partitions=None)
        text = "key: transaction_metadata::transactionalId=tx1 payload: producerId:1000,producerEpoch:0,state="
        self.assertEqual(self.pairs([(key, record_value("TransactionLogValue", 0, **value)),
                                     (key, record_value("TransactionLogValue", 1, **empty)), (key, None), (b"\0\5", b"")],
                                    "--transaction-log-decoder"), [
            text + "Ongoing,partitions=[orders-0,orders-1],txnLastUpdateTimestamp=%d,txnTimeoutMs=60000" % T,
            text + "Empty,partitions=[],txnLastUpdateTimestamp=%d,txnTimeoutMs=60000" % T,
            "key: transaction_metadata::transactionalId=tx1 payload: <DELETE>", "key: unknown::version=5"])
        for value in [b"\0\7", b"\0\0\1", b""]:
            r = self.expect(self.put(LOG, batch([(T, key, value)])), "--transaction-log-decoder", status=1)
            self.assertIn("the record at offset 0", r.err)

    def test_metadata_log(self):
        data = batch([(T, b"\0\0\0\3", b"\0\0\0\0\0\0\0\0\0\1")], attributes=0x20) + batch([(T, None, b"\1\2\0\5ab")],
                                                                                        base_offset=1)
        path = self.put("00000000000000000123-0000000007.checkpoint", data)
        r = self.expect(path, "--cluster-metadata-decoder")
        self.assertEqual(r.lines[1], "Snapshot end offset: 123, epoch: 7")
        self.assertIn("controlType: SNAPSHOT_HEADER(3)", r.lines[3])
        self.assertTrue(r.lines[5].endswith(' payload: {"type":"2","version":0,"data":"056162"}'), r.lines[5])
        r = self.expect(self.put(LOG, data), "--remote-log-metadata-decoder")
        self.assertTrue(r.lines[-1].endswith(" payload: 010200056162"))

    # -- damage

    def test_random_damage(self):
        """Nothing that a file holds ends the tool other than by a status of its own."""
        rng = random.Random(int(os.environ.get("SEED", "0")) or time.time_ns())
        seed = rng.randrange(1 << 31)
        print("seed", seed)
        rng = random.Random(seed)
        _, index, times = self.indexed()
        with open(os.path.join(self.folder, "00000000000000000100.log"), "rb") as f:
            log = f.read()
        key = struct.pack(">h", 1) + kwire.encode("OffsetCommitKey", 1, dict(group="g", topic="t", partition=0))
        value = record_value("OffsetCommitValue", 3, offset=1, leader_epoch=0, metadata="m", commit_timestamp=T)
        kinds = {"log": log + batch([(T, key, value), (T, key, None)], codec=1) + kwire.wrapper([(T, b"a", b"b")]),
                 "index": index, "timeindex": times, "snapshot": snapshot([(1, 0, 1, 1, 1, T, -1, -1)]),
                 "txnindex": struct.pack(">hqqqq", 0, 1, 3, 9, 3) * 3}
        flags = {"log": ["--deep-iteration", "--print-data-log", "--offsets-decoder", "--transaction-log-decoder",
                         "--cluster-metadata-decoder"], "index": ["--verify-index-only", "--index-sanity-check"],
                 "timeindex": ["--verify-index-only", "--index-sanity-check"], "snapshot": [], "txnindex": []}
        text = {self.OFFSETS[0]: b"0\n2\na 0 17\nb 1 9\n", "leader-epoch-checkpoint": b"0\n1\n0 0\n",
                "partition.metadata": b"version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w",
                "meta.properties": b"#\nversion=0\ncluster.id=abc\n"}
        kinds.update(text)
        flags.update((name, []) for name in text)
        rounds = 30 if harness.sanitized() else 60
        for i in range(rounds):
            paths, used = [], set()
            for kind, data in kinds.items():
                data = bytearray(data if rng.random() < 0.8 else rng.randbytes(rng.randrange(200)))
                for _ in range(rng.randrange(4)):
                    if data:
                        data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)])
                data = data[:rng.randrange(len(data) + 1)] if rng.random() < 0.3 else data + rng.randbytes(rng.randrange(30))
                if kind == "log" and rng.random() < 0.5:
                    data = self.mend(bytes(data))
                paths.append(self.put(kind if kind in text else "00000000000000000100." + kind, bytes(data)))
                used |= {f for f in flags[kind] if rng.random() < 0.3}
            r = dump("--files", ",".join(paths), *sorted(used))
            self.assertIn(r.status, (0, 1), "seed %d, round %d: %s" % (seed, i, r.err))

    @staticmethod
    def mend(data):
        """Right checksums, so that what lies behind them is reached."""
        out, at = b"", 0
        while at + 17 <= len(data):
            size = 12 + struct.unpack_from(">i", data, at + 8)[0]
            if size < 17 or at + size > len(data):
                break
            magic, raw, at = data[at + 16], data[at:at + size], at + size
            out += raw[:17] + struct.pack(">I", kwire.crc32c(raw[21:])) + raw[21:] if magic == 2 and len(raw) > 21 else raw
        return out + data[at:]


class BrokerFilesTest(ToolTest):
    """What a broker leaves: no complaint about any of it."""
    OVERRIDES = dict(groupwire.OVERRIDES, **{"log.index.interval.bytes": "200", "log.segment.bytes": "20000"})

    def dump_folder(self, folder, *args):
        files = sorted(f for f in glob.glob(os.path.join(self.broker.data, folder, "*"))
                       if f.rsplit(".", 1)[-1] in ("log", "index", "timeindex", "snapshot", "txnindex"))
        self.assertTrue(files)
        r = dump("--files", ",".join(files), *args)
        self.assertEqual((r.status, r.err), (0, ""), folder)
        return r

    def test_a_topic_in_use_and_at_rest(self):
        t = self.topic()
        self.create(t)
        for codec in ["none", "gzip", "snappy", "lz4", "zstd"]:
            text = "".join("%s:%s-%d %s\n" % (codec, codec, i, "x" * 40) for i in range(300))
            self.tool("kafka-console-producer", "--topic", t, "--compression-codec", codec, "--batch-size", 500, "--property",
                      "parse.key=true", "--property", "key.separator=:", input=text)
        for _ in range(2):
            r = self.dump_folder(t + "-0", "--print-data-log")
            self.assertEqual(sum(line.startswith("| ") for line in r.lines), 1500)
            self.assertRegex(r.text, r"\| offset: 1499 CreateTime: \d+ keySize: 4 valueSize: \d+ sequence: \d+ "
                                     r"headerKeys: \[\] key: zstd payload: zstd-299 x+\n")
            self.assertGreater(sum(line.startswith("offset: ") for line in r.lines), 20)
            self.dump_folder(t + "-0", "--index-sanity-check")
            self.broker.restart()

    def test_text_files_of_a_broker_at_rest(self):
        t = self.topic()
        self.create(t)
        self.tool("kafka-console-producer", "--topic", t, input="a\nb\n")
        self.broker.restart()
        names = ["meta.properties"] + ["%s-offset-checkpoint" % k for k in ("recovery-point", "replication")]
        files = [os.path.join(self.broker.data, n) for n in names]
        files += [os.path.join(self.broker.data, t + "-0", n) for n in ("leader-epoch-checkpoint", "partition.metadata")]
        r = dump("--files", ",".join(files))
        self.assertEqual((r.status, r.err), (0, ""))
        for line in ("broker.id: 0", "topic: %s partition: 0 offset: 2" % t, "epoch: 0 startOffset: 0"):
            self.assertIn(line, r.lines)
        self.assertRegex(r.text, r"version: 0 topicId: \S{22}\n")

    def test_committed_offsets(self):
        with kwire.Conn(self.broker.port) as c:
            groupwire.coordinator(c, "dumped")
            t = self.topic()
            self.create(t, 2)
            groupwire.commit(c, "dumped", t, {0: 5, 1: 7})
        folder = "__consumer_offsets-%d" % groupwire.partition_of("dumped")
        r = self.dump_folder(folder, "--offsets-decoder")
        rows = [line.split(" key: ")[1].split(" payload: ") for line in r.lines if " key: " in line]
        found = {json.loads(k)["data"].get("partition"): json.loads(v)["data"] for k, v in rows}
        self.assertEqual((found[0]["offset"], found[1]["offset"]), (5, 7))

    def test_a_reader_that_goes_away(self):
        t = self.topic()
        self.create(t)
        self.tool("kafka-console-producer", "--topic", t, input="".join("%d\n" % i for i in range(20000)))
        paths = sorted(glob.glob(os.path.join(self.broker.data, t + "-0", "*.log")))
        r = self.shell("set -o pipefail; kafka-dump-log.sh --files %s --print-data-log | head -2" % ",".join(paths))
        self.assertEqual(r.lines, ["Dumping " + paths[0], "Log starting offset: 0"])


if __name__ == "__main__":
    harness.main()
