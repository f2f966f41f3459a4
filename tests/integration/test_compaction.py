"""Compaction end to end: what is left of compacted topics, on the wire and on disk, beside restarts, crashes,
deletions and changes of settings. The event to wait for is the cleaner's checkpoint file."""
import glob
import os
import random
import time
import unittest

import harness
import kwire
from kwire import batch, create_topic, fetch, list_offset, produce_one, records

FAST = {"log.cleaner.backoff.ms": "50", "log.cleaner.min.cleanable.ratio": "0.01", "log.segment.delete.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": "2097152", "log.cleaner.io.buffer.size": "65536",
        "log.index.size.max.bytes": "65536"}


def now_ms():
    return int(time.time() * 1000)


def checkpoint(broker, topic):
    """How far the cleaner has come, by its file; 0 without a line."""
    path = os.path.join(broker.data, "cleaner-offset-checkpoint")
    if not os.path.exists(path):
        return 0
    with open(path) as f:
        for line in f.read().splitlines()[2:]:
            name, partition, offset = line.split()
            if name == topic and partition == "0":
                return int(offset)
    return 0


def read_all(conn, topic, isolation=0):
    """[(offset, key, value)] of the whole log, in order."""
    out, at = [], list_offset(conn, 7, topic, 0, -2)["offset"]
    end = list_offset(conn, 7, topic, 0, -1)["offset"]
    while at < end:
        answer = fetch(conn, 11, [(topic, 0, at)], isolation_level=isolation)[0][2]
        assert answer["error_code"] == 0, answer
        data = answer["records"]
        if not data:
            break
        out += [(o, k, v) for o, _, k, v, *_ in records(data) if o >= at]
        at = next_offset(data, at)
    return out


def next_offset(data, at):
    """Behind the last whole batch."""
    pos = 0
    while pos + 61 <= len(data):
        base, length = int.from_bytes(data[pos:pos + 8], "big"), int.from_bytes(data[pos + 8:pos + 12], "big")
        if pos + 12 + length > len(data):
            break
        at = base + int.from_bytes(data[pos + 23:pos + 27], "big") + 1
        pos += 12 + length
    return at


class Writer:
    """Writes records by key and remembers them."""

    def __init__(self, conn, topic, seed=1):
        self.conn, self.topic, self.random = conn, topic, random.Random(seed)
        self.latest, self.all = {}, []

    def put(self, *pairs, codec=0):
        base = produce_one(self.conn, self.topic, 0, batch([(now_ms(), k, v) for k, v in pairs], codec=codec))
        for i, (k, v) in enumerate(pairs):
            self.latest[k] = (base + i, v)
            self.all.append((base + i, k, v))

    def some(self, batches, keys=20, size=60, tombstones=False):
        for _ in range(batches):
            self.put(*[(b"key-%d" % self.random.randrange(keys),
                        None if tombstones and self.random.random() < 0.1 else self.random.randbytes(size))
                       for _ in range(self.random.randrange(1, 6))], codec=self.random.choice((0, 0, 1)))

    def end(self):
        return self.all[-1][0] + 1


class Compaction(harness.BrokerTest):
    OVERRIDES = FAST

    def setUp(self):
        self.conn = kwire.Conn(self.broker.port)
        self.topic = self.id().rsplit(".", 1)[1]

    def tearDown(self):
        self.conn.close()
        super().tearDown()

    def make(self, **configs):
        settings = {"cleanup.policy": "compact", "segment.bytes": "4096"}
        settings.update({k.replace("_", "."): v for k, v in configs.items()})
        create_topic(self.conn, self.topic, 1, settings)
        return Writer(self.conn, self.topic)

    def await_checkpoint(self, offset, topic=None):
        topic = topic or self.topic
        harness.until("checkpoint of %s at %d" % (topic, offset), lambda: checkpoint(self.broker, topic) >= offset)

    def compare(self, w, got):
        """Nothing that counts is missing, nothing is what it was not; below the checkpoint each key is there once."""
        written = {o: (k, v) for o, k, v in w.all}
        self.assertEqual([o for o, _, _ in got], sorted(o for o, _, _ in got))
        for o, k, v in got:
            self.assertEqual((k, v), written[o])
        there = {o for o, _, _ in got}
        for k, (o, v) in w.latest.items():
            if v is not None:
                self.assertIn(o, there)

    def once_below(self, got, offset):
        keys = [k for o, k, _ in got if o < offset]
        self.assertEqual(len(keys), len(set(keys)))

    def test_newest_values_stay(self):
        w = self.make()
        w.some(400)
        self.await_checkpoint(w.end() - 100)
        done = checkpoint(self.broker, self.topic)
        got = read_all(self.conn, self.topic)
        self.compare(w, got)
        self.once_below(got, done)
        self.assertLess(len(got), len(w.all) / 3)
        # a record that is gone is not an error: the next one comes
        gone = next(o for o, _, _ in w.all if o not in {x for x, _, _ in got})
        answer = fetch(self.conn, 11, [(self.topic, 0, gone)])[0][2]
        self.assertEqual(answer["error_code"], 0)
        self.assertGreater(max(r[0] for r in records(answer["records"])), gone)

    def test_a_real_consumer(self):
        try:
            from kafka import KafkaConsumer, TopicPartition
        except ImportError:
            self.skipTest("python3-kafka is not there")
        w = self.make()
        w.some(300)
        self.await_checkpoint(w.end() - 100)
        consumer = KafkaConsumer(bootstrap_servers=self.broker.address, consumer_timeout_ms=20000,
                                 auto_offset_reset="earliest", enable_auto_commit=False)
        tp = TopicPartition(self.topic, 0)
        consumer.assign([tp])
        consumer.seek_to_beginning(tp)
        got = {}
        for r in consumer:
            got[r.key] = (r.offset, r.value)
            if r.offset == w.end() - 1:
                break
        consumer.close()
        self.assertEqual(got, w.latest)

    def test_tombstones_go_in_time(self):
        w = self.make(delete_retention_ms="200")
        w.put((b"doomed", b"1"))
        w.put((b"doomed", None))
        tombstone = w.end() - 1

        def gone():
            w.some(30)
            self.await_checkpoint(w.end() - 150)
            return tombstone not in {o for o, _, _ in read_all(self.conn, self.topic)}
        w.some(40)
        self.await_checkpoint(tombstone + 1)
        harness.until("the tombstone is gone", gone)
        self.assertNotIn(b"doomed", {k for _, k, _ in read_all(self.conn, self.topic)})
        del w.latest[b"doomed"]
        self.compare(w, read_all(self.conn, self.topic))

    def test_compact_and_delete(self):
        w = self.make(cleanup_policy="compact,delete", retention_bytes="20000")
        w.some(100, keys=20)
        self.await_checkpoint(w.end() - 100)
        # many keys: compaction alone would keep them
        w.some(400, keys=100000)
        harness.until("segments go", lambda: list_offset(self.conn, 7, self.topic, 0, -2)["offset"] > 0)
        self.await_checkpoint(w.end() - 100)
        harness.until("the limit holds", lambda: 0 < self.bytes_on_disk() < 20000 + 3 * 4096)
        start = list_offset(self.conn, 7, self.topic, 0, -2)["offset"]
        w.latest = {k: (o, v) for k, (o, v) in w.latest.items() if o >= start}
        self.compare(w, read_all(self.conn, self.topic))

    def bytes_on_disk(self):
        try:
            return sum(os.path.getsize(p)
                       for p in glob.glob(os.path.join(self.broker.data, self.topic + "-0", "*.log")))
        except FileNotFoundError:
            return 0  # renamed just now

    def test_policy_may_change(self):
        w = self.make(cleanup_policy="delete")
        w.some(100)
        before = read_all(self.conn, self.topic)
        self.assertEqual(len(before), len(w.all))
        self.alter(2, self.topic, "cleanup.policy", "compact")
        self.await_checkpoint(w.end() - 100)
        self.compare(w, read_all(self.conn, self.topic))
        self.assertLess(len(read_all(self.conn, self.topic)), len(before))

    def alter(self, kind, resource, name, value):
        answer = self.conn.call("IncrementalAlterConfigs", 1, validate_only=False, resources=[
            {"resource_type": kind, "resource_name": resource,
             "configs": [{"name": name, "config_operation": 0, "value": value}]}])
        self.assertEqual(answer["responses"][0]["error_code"], 0, answer)

    def test_settings_may_change(self):
        w = self.make()
        for name, value in (("log.cleaner.dedupe.buffer.size", "4194304"), ("log.cleaner.threads", "2"),
                            ("log.cleaner.io.max.bytes.per.second", "10000000"), ("log.cleaner.threads", "1")):
            w.some(100)
            self.alter(4, "", name, value)
        self.await_checkpoint(w.end() - 100)
        self.assertEqual({k: (o, v) for o, k, v in read_all(self.conn, self.topic)}, w.latest)

    def test_deleted_while_it_is_compacted(self):
        for _ in range(5):
            w = self.make()
            w.some(150)
            with self.client() as c:
                self.assertEqual(harness.delete_topic(c, self.topic), 0)
        w = self.make()
        self.assertEqual(checkpoint(self.broker, self.topic), 0)
        w.some(150)
        self.await_checkpoint(w.end() - 100)
        self.compare(w, read_all(self.conn, self.topic))


class Restarts(unittest.TestCase):
    def test_checkpoint_and_records_survive(self):
        with harness.Broker(overrides=FAST) as b:
            with kwire.Conn(b.port) as c:
                create_topic(c, "t", 1, {"cleanup.policy": "compact", "segment.bytes": "4096"})
                w = Writer(c, "t")
                w.some(300)
                harness.until("checkpoint", lambda: checkpoint(b, "t") >= w.end() - 100)
                before = read_all(c, "t")
            done = checkpoint(b, "t")
            b.restart()
            self.assertGreaterEqual(checkpoint(b, "t"), done)
            with kwire.Conn(b.port) as c:
                self.assertEqual(read_all(c, "t"), before)
                w.conn = c
                w.some(300)
                harness.until("checkpoint", lambda: checkpoint(b, "t") >= w.end() - 100)
                got = {k: (o, v) for o, k, v in read_all(c, "t")}
                self.assertEqual(got, w.latest)

    def test_killed_at_any_moment(self):
        chance = random.Random(7)
        with harness.Broker(overrides=FAST) as b:
            with kwire.Conn(b.port) as c:
                create_topic(c, "t", 1, {"cleanup.policy": "compact", "segment.bytes": "4096"})
            w = Writer(None, "t")
            for _ in range(8):
                with kwire.Conn(b.port) as c:
                    w.conn = c
                    w.some(chance.randrange(20, 200))
                b.kill()
                b.start()
                with kwire.Conn(b.port) as c:
                    self.assertEqual({k: (o, v) for o, k, v in read_all(c, "t")}, w.latest)

    def test_damage_is_told_and_harms_nobody_else(self):
        off = dict(FAST, **{"log.cleaner.backoff.ms": "3600000"})
        with harness.Broker(overrides=off) as b:
            with kwire.Conn(b.port) as c:
                for name in ("bad", "good"):
                    create_topic(c, name, 1, {"cleanup.policy": "compact", "segment.bytes": "4096"})
                w = Writer(c, "good")
                w.some(200)
                bad = Writer(c, "bad", seed=2)
                bad.some(200)
            b.stop()
            first = sorted(glob.glob(os.path.join(b.data, "bad-0", "*.log")))[1]
            with open(first, "r+b") as f:
                f.seek(100)
                byte = f.read(1)[0]
                f.seek(100)
                f.write(bytes([byte ^ 1]))
            b.overrides = {**b.overrides, **FAST}
            b.start()
            line = b.wait_line(r"bad-0 is not compacted any more until the next start")
            self.assertIn("ERROR", line)
            harness.until("the other topic", lambda: checkpoint(b, "good") >= w.end() - 100)
            self.assertEqual(b.count_lines(r"is not compacted any more"), 1)
            self.assertFalse(b.has_line("goes offline"))

    def test_switched_off(self):
        with harness.Broker(overrides=dict(FAST, **{"log.cleaner.enable": "false"})) as b:
            with kwire.Conn(b.port) as c:
                create_topic(c, "t", 1, {"cleanup.policy": "compact", "segment.bytes": "4096"})
                w = Writer(c, "t")
                w.some(100)
                self.assertEqual(len(read_all(c, "t")), len(w.all))
            b.restart()
            self.assertEqual(checkpoint(b, "t"), 0)

    def test_impossible_settings(self):
        b = harness.Broker(overrides={"log.cleaner.io.buffer.load.factor": "0"}, start=False)
        try:
            b.start(wait=False)
            self.assertNotEqual(b.wait_exit(), 0)
            self.assertTrue(b.has_line(r"log\.cleaner\.io\.buffer\.load\.factor"))
        finally:
            b.close()


if __name__ == "__main__":
    harness.main()
