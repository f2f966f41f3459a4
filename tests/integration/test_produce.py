"""Produce end to end: every version, old formats, damage, acks, connections that carry several requests."""
import os
import struct
import time
import unittest

import harness
import kwire
from kwire import batch, create_topic, entries, fetch, message, produce, produce_one, records, simple_batch, wrapper

NOW = int(time.time() * 1000)


def all_records(conn, topic, partition=0, version=11):
    """Every record of a partition, read in several fetches."""
    out, at = [], 0
    while True:
        answer = fetch(conn, version, [(topic, partition, at)])[0][2]
        assert answer["error_code"] == 0, answer
        got = [r for r in records(answer["records"]) if r[0] >= at]
        if not got:
            return out
        out += got
        at = got[-1][0] + 1


class Produce(harness.BrokerTest):
    def setUp(self):
        self.conn = kwire.Conn(self.broker.port)
        self.topic = self.id().rsplit(".", 1)[1]

    def tearDown(self):
        self.conn.close()

    def make(self, partitions=1, **configs):
        return create_topic(self.conn, self.topic, partitions,
                            {k.replace("_", "."): v for k, v in configs.items()})

    def test_every_version_and_acks(self):
        self.make()
        expected = []
        for version in range(12):
            for acks in (-1, 1):
                value = b"v%d acks %d" % (version, acks)
                data = simple_batch(value) if version >= 3 else message(0, None, value, timestamp=NOW)
                offset = produce_one(self.conn, self.topic, 0, data, version, acks=acks)
                self.assertEqual(offset, len(expected))
                expected.append(value)
        self.assertEqual([r[3] for r in all_records(self.conn, self.topic)], expected)

    def test_bytes_come_back_as_they_were_sent(self):
        self.make()
        value = os.urandom(900000)
        data = batch([(NOW, b"k", value, [("h", b"1"), ("h", None), ("", b"")]), (NOW + 1, None, None)])
        self.assertEqual(produce_one(self.conn, self.topic, 0, data), 0)
        self.assertEqual(produce_one(self.conn, self.topic, 0, data), 2)
        got = fetch(self.conn, 11, [(self.topic, 0, 0, {"partition_max_bytes": 1 << 25})])[0][2]["records"]
        for i, (offset, magic, raw) in enumerate(entries(got)):
            self.assertEqual((offset, magic), (2 * i, 2))
            # base offset and leader epoch are the broker's; all else, and the CRC, the producer's
            self.assertEqual(raw[8:12] + raw[16:], data[8:12] + data[16:])
        self.assertEqual(got[12:16], b"\0\0\0\0")

    def test_acks_0_leaves_no_byte_and_errors_close(self):
        self.make()
        request = kwire.produce_request([(self.topic, 0, simple_batch(b"a"))], acks=0)
        self.conn.send("Produce", 9, **request)
        # The next answer on the wire is that of the next request.
        self.assertEqual(produce_one(self.conn, self.topic, 0, simple_batch(b"b"), acks=1), 1)
        for bad in ((self.topic, 7, simple_batch(b"a")), ("no-such-topic", 0, simple_batch(b"a")),
                    (self.topic, 0, simple_batch(b"a", good_crc=False))):
            with kwire.Conn(self.broker.port) as conn:
                mark = self.broker.mark()
                conn.send("Produce", 9, **kwire.produce_request([(self.topic, 0, simple_batch(b"c")), bad], acks=0))
                self.assertTrue(conn.is_closed())
                self.broker.wait_line("acks=0", after=mark)
        self.assertEqual([r[3] for r in all_records(self.conn, self.topic)], [b"a", b"b", b"c", b"c", b"c"])

    def test_other_acks_are_refused(self):
        self.make()
        for acks in (2, -2, 32767):
            answer = produce(self.conn, 9, [(self.topic, 0, simple_batch(b"a"))], acks=acks)[0]
            self.assertEqual((answer["error_code"], answer["base_offset"]), (21, -1))
        self.assertEqual(all_records(self.conn, self.topic), [])

    def test_one_oversized_batch_fails_alone(self):
        self.make(2, max_message_bytes=2000)
        big = simple_batch(b"x" * 5000)
        answers = produce(self.conn, 7, [(self.topic, 0, big), (self.topic, 1, simple_batch(b"small"))])
        self.assertEqual([a["error_code"] for a in answers], [10, 0])
        self.assertEqual(produce_one(self.conn, self.topic, 0, simple_batch(b"x" * 5000, codec=1)), 0)

    def test_damage_is_refused_and_leaves_no_trace(self):
        self.make()
        good = simple_batch(b"a")
        now = [(NOW, None, b"a")]
        cases = [
            (batch(now, good_crc=False), 2), (good[:-1] + b"\xff", 2), (batch(now, count=2), 87),
            (batch(now, count=0), 87), (batch(now, last_delta=5), 87), (batch(now, last_delta=-1), 87),
            (batch([], count=0), 87), (batch(now, count=1 << 30), 87), (batch(now, attributes=0x20), 87),
            (batch(now, base_offset=7), 87), (batch(now, magic=3), 2), (good + good, 87), (b"", 87), (None, 87),
            (good[:40], 87), (message(0, None, b"old"), 87), (batch(now, codec=5), 87),
            (struct.pack(">qi", 0, -5) + good[12:], 2), (os.urandom(200), 2)]
        for data, code in cases:
            answer = produce(self.conn, 9, [(self.topic, 0, data)])[0]
            self.assertIn(answer["error_code"], (code, 2, 87), data and data[:80])
            self.assertEqual(answer["base_offset"], -1)
        self.assertEqual(produce_one(self.conn, self.topic, 0, good), 0)

    def test_bad_records_are_named(self):
        self.make(cleanup_policy="compact")
        answer = produce(self.conn, 8, [(self.topic, 0, batch([(NOW, b"k", b"v"), (NOW, None, b"v")]))])[0]
        self.assertEqual(answer["error_code"], 87)
        self.assertEqual([e["batch_index"] for e in answer["record_errors"]], [1])
        self.assertTrue(answer["error_message"])
        self.assertTrue(answer["record_errors"][0]["batch_index_error_message"])

    def test_timestamps_outside_the_limits(self):
        self.make(message_timestamp_after_max_ms=3600000, message_timestamp_before_max_ms=3600000)
        for shift, code in ((7200000, 32), (-7200000, 32), (0, 0), (-1800000, 0)):
            answer = produce(self.conn, 9, [(self.topic, 0, batch([(NOW + shift, None, b"v")]))])[0]
            self.assertEqual(answer["error_code"], code, shift)

    def test_log_append_time(self):
        self.make(message_timestamp_type="LogAppendTime")
        answer = produce(self.conn, 9, [(self.topic, 0, batch([(5, None, b"v"), (9, None, b"w")]))])[0]
        self.assertEqual(answer["error_code"], 0)
        self.assertGreaterEqual(answer["log_append_time_ms"], NOW)
        for record in all_records(self.conn, self.topic):
            self.assertEqual(record[1], answer["log_append_time_ms"])

    def test_old_formats_become_new(self):
        self.make()
        plain = b"".join(message(i, b"k%d" % i, b"v%d" % i, 1, NOW + i) for i in range(3))
        packed = wrapper([(NOW + i, None, b"w%d" % i) for i in range(3)], 1)
        magic0 = b"".join(message(i, None, b"z%d" % i, 0) for i in range(2))
        offsets = [produce_one(self.conn, self.topic, 0, data, version)
                   for data, version in ((plain, 2), (packed, 2), (magic0, 0))]
        self.assertEqual(offsets, [0, 3, 6])
        expected = [(i, NOW + i, b"k%d" % i, b"v%d" % i) for i in range(3)] + \
            [(3 + i, NOW + i, None, b"w%d" % i) for i in range(3)] + [(6 + i, -1, None, b"z%d" % i) for i in range(2)]
        self.assertEqual([r[:4] for r in all_records(self.conn, self.topic)], expected)
        for version, magic in ((4, 2), (3, 1), (2, 1), (1, 0), (0, 0)):
            raw = fetch(self.conn, version, [(self.topic, 0, 0)])[0][2]["records"]
            self.assertEqual({e[1] for e in entries(raw)}, {magic})
            got = [(o, None if magic == 0 else t, k, v) for o, t, k, v, _ in records(raw)]
            self.assertEqual(got, [(o, None if magic == 0 else t, k, v) for o, t, k, v in expected])

    def test_codec_of_the_topic_wins(self):
        self.make(compression_type="gzip")
        produce_one(self.conn, self.topic, 0, simple_batch(*[b"x" * 1000] * 10))
        raw = fetch(self.conn, 11, [(self.topic, 0, 0)])[0][2]["records"]
        self.assertLess(len(raw), 2000)
        self.assertEqual(struct.unpack_from(">h", raw, 21)[0] & 7, 1)
        self.assertEqual([r[0] for r in records(raw)], list(range(10)))

    def test_idempotent_producer(self):
        self.make()
        def ask():
            return self.conn.call("InitProducerId", 1, transactional_id=None, transaction_timeout_ms=1000)

        # the first answer may be that a block of ids is on its way
        pid = harness.until("a producer id", lambda: [a["producer_id"] for a in [ask()] if a["error_code"] == 0])[0]

        def send(sequence, n=2, epoch=0):
            data = batch([(NOW, None, b"v")] * n, producer_id=pid, producer_epoch=epoch, sequence=sequence)
            answer = produce(self.conn, 9, [(self.topic, 0, data)])[0]
            return answer["error_code"], answer["base_offset"]

        self.assertEqual(send(0), (0, 0))
        self.assertEqual(send(2), (0, 2))
        self.assertEqual(send(2), (0, 2))      # again: what it was
        self.assertEqual(send(0), (0, 0))
        self.assertEqual(send(6)[0], 45)       # a gap
        self.assertEqual(send(4), (0, 4))
        self.assertEqual(send(0, epoch=1), (0, 6))
        self.assertEqual(send(6, epoch=0)[0], 47)
        self.assertEqual(len(all_records(self.conn, self.topic)), 8)

    def test_partition_twice_and_order_of_answers(self):
        self.make(3)
        order = [2, 0, 1, 0]
        answers = produce(self.conn, 9, [(self.topic, p, simple_batch(b"v")) for p in order])
        self.assertEqual([(a["index"], a["error_code"]) for a in answers], [(p, 0) for p in order])

    def test_internal_topics_are_closed(self):
        answer = produce(self.conn, 9, [("__consumer_offsets", 0, simple_batch(b"v"))])[0]
        self.assertIn(answer["error_code"], (3, 17))  # 3 while nobody needed it yet

    def test_many_requests_in_flight_are_answered_in_order(self):
        self.make()
        ids = [self.conn.send("Produce", 9, **kwire.produce_request([(self.topic, 0, simple_batch(b"%d" % i))]))
               for i in range(50)]
        for i, correlation_id in enumerate(ids):
            answer = self.conn.receive("Produce", 9, correlation_id)
            self.assertEqual(answer["responses"][0]["partition_responses"][0]["base_offset"], i)


class OneReactor(harness.BrokerTest):
    """All connections share one network thread."""
    OVERRIDES = {"num.network.threads": "1"}

    def test_what_inflates_neither_fills_memory_nor_holds_up_others(self):
        bomb = batch([(NOW, None, bytes(60 << 20))], codec=1)
        with kwire.Conn(self.broker.port) as heavy, kwire.Conn(self.broker.port) as light:
            create_topic(light, "t", 2)
            produce_one(light, "t", 1, simple_batch(b"warm"))
            before = self.broker.status_kb("VmHWM")
            ids = [heavy.send("Produce", 9, **kwire.produce_request([("t", 0, bomb)])) for _ in range(8)]
            # the last small one comes behind them on the same connection, and keeps its place
            last = heavy.send("Produce", 9, **kwire.produce_request([("t", 0, simple_batch(b"last"))]))
            for _ in range(20):
                produce_one(light, "t", 1, simple_batch(b"small"))
            for i, correlation_id in enumerate(ids + [last]):
                part = heavy.receive("Produce", 9, correlation_id)["responses"][0]["partition_responses"][0]
                self.assertEqual((part["error_code"], part["base_offset"]), (0, i))
            grown = self.broker.status_kb("VmHWM") - before
            self.assertTrue(grown < 20000 or harness.sanitized(), "memory has grown by %d KiB" % grown)


class Flush(unittest.TestCase):
    def test_acknowledged_means_flushed(self):
        with harness.Broker(overrides={"log.flush.interval.messages": "1"}) as broker:
            with kwire.Conn(broker.port) as conn:
                create_topic(conn, "t")
                ids = [conn.send("Produce", 9, **kwire.produce_request([("t", 0, simple_batch(b"%d" % i))], acks=1))
                       for i in range(40)]
                for i, correlation_id in enumerate(ids):
                    conn.receive("Produce", 9, correlation_id)
            broker.kill()
            broker.start()
            with kwire.Conn(broker.port) as conn:
                # Nobody knows what the killed process had flushed: it is shown when it has been flushed anew.
                harness.until("all is shown again", lambda: len(all_records(conn, "t")) == 40)
                self.assertEqual([r[3] for r in all_records(conn, "t")], [b"%d" % i for i in range(40)])


if __name__ == "__main__":
    unittest.main()
