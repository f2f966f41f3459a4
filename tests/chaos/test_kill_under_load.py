"""kill -9 at random moments while clients write, read, commit, delete and compact: what was acknowledged is there
afterwards, at the offset that was told, with the bytes that were sent; and nothing is there twice of an idempotent
producer. The kernel survives, so what was written is there whether it was synced or not."""
import os
import random
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import harness  # noqa: E402
import kwire  # noqa: E402
from kwire import create_topic, fetch, list_offset, produce, records  # noqa: E402
from test_listeners import free_port  # noqa: E402

SEED = int(os.environ.get("KAFKAD_CHAOS_SEED", random.randrange(1 << 30)))
KILLS = int(os.environ.get("KAFKAD_CHAOS_KILLS", 8))
DUPLICATE, RETRIABLE = 46, {3, 5, 6, 7, 14, 15, 16, 56}


def patient(make):
    """A connection as soon as there is a broker."""
    while True:
        try:
            return make()
        except OSError:
            time.sleep(0.02)


class Producer(threading.Thread):
    """Writes numbered records with acks=all to its own partition, idempotent, in order, and again until acknowledged."""

    def __init__(self, port, topic, partition, seed):
        super().__init__(daemon=True)
        self.port, self.topic, self.partition = port, topic, partition
        self.random = random.Random(seed)
        self.acked = []  # (base offset or None, first number, count)
        self.number = self.sequence = 0
        self.error = None
        self.stop = threading.Event()

    def run(self):
        try:
            while not self.stop.is_set():
                self.live()
        except Exception as e:  # told by the test
            self.error = e

    def live(self):
        try:
            with patient(lambda: kwire.Conn(self.port, timeout=20)) as c:
                if self.number == 0 and not hasattr(self, "id"):
                    answer = c.call("InitProducerId", 2, transactional_id=None, transaction_timeout_ms=60000)
                    if answer["error_code"]:
                        return
                    self.id = answer["producer_id"]
                while not self.stop.is_set():
                    if not self.write(c):
                        return
        except (OSError, kwire.Closed):
            pass

    def write(self, c):
        n = self.count = getattr(self, "count", None) or self.random.randint(1, 20)
        rows = [(1, b"%d" % ((self.number + i) % 50), b"%08d" % (self.number + i) + b"x" * ((self.number + i) % 700))
                for i in range(n)]
        data = kwire.batch(rows, producer_id=self.id, producer_epoch=0, sequence=self.sequence)
        answer, = produce(c, 9, [(self.topic, self.partition, data)])
        code = answer["error_code"]
        if code in RETRIABLE:
            time.sleep(0.02)
            return False
        if code not in (0, DUPLICATE):
            raise AssertionError("%s-%d: error %d" % (self.topic, self.partition, code))
        self.acked.append((answer["base_offset"] if code == 0 else None, self.number, n))
        self.number += n
        self.sequence += n
        self.count = None
        return True


def all_records(conn, topic, partition):
    """{offset: value}"""
    out, offset = {}, list_offset(conn, 5, topic, partition, -2)["offset"]
    end = list_offset(conn, 5, topic, partition, -1)["offset"]
    while offset < end:
        answer = fetch(conn, 11, [(topic, partition, offset, {"partition_max_bytes": 4 << 20})])[0][2]
        assert answer["error_code"] == 0, answer
        found = [r for r in records(answer["records"]) if r[0] >= offset]
        assert found, "nothing at %d of %d" % (offset, end)
        for r in found:
            out[r[0]] = r[3]
        offset = found[-1][0] + 1
    return out


class KillUnderLoad(unittest.TestCase):
    def setUp(self):
        print("seed %d (KAFKAD_CHAOS_SEED)" % SEED, flush=True)
        self.random = random.Random(SEED)
        self.port = free_port()
        self.broker = harness.Broker(start=False, listeners="PLAINTEXT://127.0.0.1:%d" % self.port)
        self.broker.overrides.update({
            "log.dirs": ",".join(os.path.join(self.broker.folder, d) for d in "ab"), "log.segment.bytes": "100000",
            "log.retention.check.interval.ms": "200", "log.cleaner.backoff.ms": "100",
            "log.segment.delete.delay.ms": "0", "log.flush.offset.checkpoint.interval.ms": "300",
            "replica.high.watermark.checkpoint.interval.ms": "300"})
        self.broker.start()

    def tearDown(self):
        self.broker.close()

    def kill_and_start(self):
        time.sleep(self.random.uniform(0.05, 1.2))
        self.broker.kill()
        self.broker.start()

    def check_whole(self, conn, p):
        there = all_records(conn, p.topic, p.partition)
        numbers = [int(there[o][:8]) for o in sorted(there)]
        self.assertEqual(numbers, list(range(len(numbers))), "in order, none lost, none twice")
        self.assertGreaterEqual(len(numbers), p.number)
        for base, first, n in p.acked:
            for i in range(n if base is not None else 0):
                value = there[base + i]
                self.assertEqual(int(value[:8]), first + i)
                self.assertEqual(len(value), 8 + (first + i) % 700)

    def test_nothing_acknowledged_is_lost(self):
        with kwire.Conn(self.port) as c:
            create_topic(c, "t", partitions=4)
        producers = [Producer(self.port, "t", i, SEED + i) for i in range(4)]
        for p in producers:
            p.start()
        for _ in range(KILLS):
            self.kill_and_start()
        for p in producers:
            p.stop.set()
        for p in producers:
            p.join(60)
            self.assertIsNone(p.error)
            self.assertGreater(p.number, 0)
        with kwire.Conn(self.port) as c:
            for p in producers:
                self.check_whole(c, p)
        self.broker.restart()
        with kwire.Conn(self.port) as c:
            for p in producers:
                self.check_whole(c, p)

    def test_retention_compaction_and_moves_meanwhile(self):
        """Beside retention by size, compaction and moves between log dirs: no gap in what is left, the last of each key,
        and what was acknowledged last is there."""
        with kwire.Conn(self.port) as c:
            create_topic(c, "short", configs={"retention.bytes": "300000", "segment.bytes": "50000"})
            create_topic(c, "compact", configs={"cleanup.policy": "compact", "segment.bytes": "50000",
                                                "min.cleanable.dirty.ratio": "0.01"})
            create_topic(c, "moving")
        producers = [Producer(self.port, t, 0, SEED + i) for i, t in enumerate(("short", "compact", "moving"))]
        for p in producers:
            p.start()
        dirs = self.broker.overrides["log.dirs"].split(",")
        for i in range(KILLS):
            try:
                with kwire.Conn(self.port) as c:
                    c.call("AlterReplicaLogDirs", 2, dirs=[
                        {"path": dirs[i % 2], "topics": [{"name": "moving", "partitions": [0]}]}])
            except (OSError, kwire.Closed):
                pass
            self.kill_and_start()
        for p in producers:
            p.stop.set()
        for p in producers:
            p.join(60)
            self.assertIsNone(p.error)
        short, compact, moving = producers
        with kwire.Conn(self.port) as c:
            there = all_records(c, "short", 0)
            numbers = [int(there[o][:8]) for o in sorted(there)]
            self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
            self.assertGreaterEqual(numbers[-1] + 1, short.number)
            latest = {}
            there = all_records(c, "compact", 0)
            for o in sorted(there):
                latest[int(there[o][:8]) % 50] = int(there[o][:8])
            for number in range(max(0, compact.number - 50), compact.number):
                self.assertGreaterEqual(latest[number % 50], number)
            self.check_whole(c, moving)

    def test_with_a_real_client(self):
        """kafka-python's producer, with its own retries."""
        try:
            from kafka import KafkaProducer
        except ImportError:
            self.skipTest("python3-kafka is not there")
        with kwire.Conn(self.port) as c:
            create_topic(c, "real", partitions=3)
        client = KafkaProducer(bootstrap_servers="127.0.0.1:%d" % self.port, acks="all", retries=1000,
                               max_in_flight_requests_per_connection=1, retry_backoff_ms=50, linger_ms=5,
                               request_timeout_ms=30000, max_block_ms=60000, reconnect_backoff_ms=20,
                               reconnect_backoff_max_ms=100)
        acked, failed, stop = [], [], threading.Event()

        def told(number):
            return lambda m: acked.append((m.partition, m.offset, number))

        def write():
            number = 0
            while not stop.is_set():
                client.send("real", b"%08d" % number + b"x" * (number % 300)) \
                    .add_callback(told(number)).add_errback(failed.append)
                number += 1
                if number % 100 == 0:
                    time.sleep(0.02)
        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(KILLS):
            self.kill_and_start()
        stop.set()
        writer.join(60)
        client.flush(60)
        client.close(10)
        self.assertGreater(len(acked), 100)
        with kwire.Conn(self.port) as c:
            there = [all_records(c, "real", p) for p in range(3)]
        for partition, offset, number in acked:
            self.assertEqual(int(there[partition][offset][:8]), number)


class Load(unittest.TestCase):
    def test_quotas_and_retention_under_load(self):
        """A client over its quota is slowed and served, another one is not; retention keeps the size; no error."""
        with harness.Broker(overrides={"log.retention.check.interval.ms": "200", "log.segment.bytes": "200000",
                                       "log.segment.delete.delay.ms": "0", "quota.window.num": "3"}) as broker:
            with kwire.Conn(broker.port) as c:
                create_topic(c, "t", partitions=2, configs={"retention.bytes": "1000000"})
                c.call("AlterClientQuotas", 1, validate_only=False, entries=[
                    {"entity": [{"entity_type": "client-id", "entity_name": "slow"}],
                     "ops": [{"key": "producer_byte_rate", "value": 200000.0, "remove": False}]}])
            sent, throttled, end = {"slow": 0, "fast": 0}, {"slow": 0, "fast": 0}, time.monotonic() + 8

            def write(name, partition):
                with kwire.Conn(broker.port, client_id=name) as c:
                    data = kwire.simple_batch(b"x" * 50000)
                    while time.monotonic() < end:
                        answer = c.call("Produce", 9, **kwire.produce_request([("t", partition, data)]))
                        code = answer["responses"][0]["partition_responses"][0]["error_code"]
                        assert code == 0, code
                        throttled[name] += answer["throttle_time_ms"] > 0
                        sent[name] += len(data)
            threads = [threading.Thread(target=write, args=x) for x in (("slow", 0), ("fast", 1))]
            for t in threads:
                t.start()
            for t in threads:
                t.join(60)
            self.assertGreater(throttled["slow"], 0)
            self.assertEqual(throttled["fast"], 0)
            self.assertLess(sent["slow"], 200000 * 16)
            self.assertGreater(sent["fast"], sent["slow"])

            def size():
                with kwire.Conn(broker.port) as c:
                    return sum(p["partition_size"] for r in c.call("DescribeLogDirs", 4, topics=None)["results"]
                               for t in r["topics"] if t["name"] == "t" for p in t["partitions"])
            harness.until("retention has caught up", lambda: size() <= 2 * 1300000)


if __name__ == "__main__":
    unittest.main()
