"""AlterReplicaLogDirs: replicas move between log dirs while they are written to and read, through restarts and kills;
every version, every refusal."""
import os
import threading
import unittest

import harness
import kwire
from kwire import create_topic, fetch, list_offset, produce_one, records, simple_batch

REPLICA_NOT_AVAILABLE, INVALID_TOPIC, LOG_DIR_NOT_FOUND = 9, 17, 57


class Moves(unittest.TestCase):
    def setUp(self):
        self.broker = harness.Broker(start=False)
        self.dirs = [os.path.join(self.broker.folder, d) for d in "ab"]
        self.broker.overrides.update({"log.dirs": ",".join(self.dirs), "log.segment.bytes": "20000",
                                      "log.segment.delete.delay.ms": "0",
                                      "alter.log.dirs.replication.quota.window.size.seconds": "1000"})
        self.broker.start()
        self.conn = kwire.Conn(self.broker.port)

    def tearDown(self):
        self.conn.close()
        self.broker.close()

    def restart(self, kill=False):
        self.conn.close()
        if kill:
            self.broker.kill()
            self.broker.start()
        else:
            self.broker.restart()
        self.conn = kwire.Conn(self.broker.port)

    def limit(self, rate):
        op = {"name": "replica.alter.log.dirs.io.max.bytes.per.second", "config_operation": 1 if rate is None else 0,
              "value": None if rate is None else str(rate)}
        answer = self.conn.call("IncrementalAlterConfigs", 1, validate_only=False, resources=[
            {"resource_type": 4, "resource_name": "", "configs": [op]}])
        self.assertEqual(answer["responses"][0]["error_code"], 0, answer)

    def move(self, path, topic="t", partition=0, version=2):
        answer = self.conn.call("AlterReplicaLogDirs", version, dirs=[
            {"path": path, "topics": [{"name": topic, "partitions": [partition]}]}])
        self.assertEqual(answer["throttle_time_ms"], 0)
        result, = answer["results"]
        self.assertEqual(result["topic_name"], topic)
        p, = result["partitions"]
        self.assertEqual(p["partition_index"], partition)
        return p["error_code"]

    def where(self, topic="t", partition=0):
        """(dir of the log, dir of its copy)"""
        found = [None, None]
        for r in self.conn.call("DescribeLogDirs", 4, topics=None)["results"]:
            for t in r["topics"]:
                for p in t["partitions"]:
                    if (t["name"], p["partition_index"]) == (topic, partition):
                        found[p["is_future_key"]] = r["log_dir"]
        return tuple(found)

    def other(self, topic="t", partition=0):
        return [d for d in self.dirs if d != self.where(topic, partition)[0]][0]

    def until_at(self, path, topic="t"):
        harness.until("the log is in %s" % path, lambda: self.where(topic) == (path, None))

    def fill(self, n, topic="t", size=1000):
        for i in range(n):
            produce_one(self.conn, topic, 0, simple_batch(b"%06d" % i + b"x" * size))

    def values(self, topic="t"):
        out, offset = [], list_offset(self.conn, 5, topic, 0, -2)["offset"]
        while offset < list_offset(self.conn, 5, topic, 0, -1)["offset"]:
            data = fetch(self.conn, 11, [(topic, 0, offset, {"partition_max_bytes": 1 << 20})])[0][2]["records"]
            for r in records(data):
                if r[0] >= offset:
                    out.append(r[3][:6])
                    offset = r[0] + 1
        return out

    def folders(self, topic="t"):
        return sorted(n for d in self.dirs for n in os.listdir(d) if n.startswith(topic + "-"))

    def test_there_and_back(self):
        create_topic(self.conn, "t")
        self.fill(100)
        for version in range(3):
            to = self.other()
            self.assertEqual(self.move(to, version=version), 0)
            self.until_at(to)
            self.assertEqual(self.values(), [b"%06d" % i for i in range(100)])
        harness.until("the old folders are gone", lambda: self.folders() == ["t-0"])
        self.restart()
        self.assertEqual(self.where(), (to, None))
        self.assertEqual(self.values(), [b"%06d" % i for i in range(100)])

    def test_refusals_in_every_version(self):
        create_topic(self.conn, "t")
        long = "x" * 240
        create_topic(self.conn, long)
        here = self.where()[0]
        for version in range(3):
            self.assertEqual(self.move("/no/such", version=version), LOG_DIR_NOT_FOUND)
            self.assertEqual(self.move(here, version=version), 0)
            self.assertEqual(self.move(self.dirs[0], "no-such", version=version), REPLICA_NOT_AVAILABLE)
            self.assertEqual(self.move(self.dirs[0], partition=9, version=version), REPLICA_NOT_AVAILABLE)
            self.assertEqual(self.move(self.other(long), long, version=version), INVALID_TOPIC)
            self.assertEqual(self.conn.call("AlterReplicaLogDirs", version, dirs=[])["results"], [])
        self.assertEqual(self.where(), (here, None))
        create_topic(self.conn, "wanted")  # asked to move before it was there: made in that dir
        self.assertEqual(self.move(self.dirs[1], "later"), REPLICA_NOT_AVAILABLE)
        create_topic(self.conn, "later")
        self.assertEqual(self.where("later"), (self.dirs[1], None))

    def test_while_it_is_written_and_read(self):
        create_topic(self.conn, "t")
        self.fill(50)
        stop, over, written, seen = threading.Event(), threading.Event(), [50], []

        def write():
            with kwire.Conn(self.broker.port) as c:
                while not stop.is_set():
                    produce_one(c, "t", 0, simple_batch(b"%06d" % written[0] + b"x" * 500))
                    written[0] += 1

        def read():
            with kwire.Conn(self.broker.port) as c:
                offset = 0
                while not over.is_set() or offset < written[0]:
                    answer = fetch(c, 11, [("t", 0, offset)], max_wait_ms=100)[0][2]
                    assert answer["error_code"] == 0, answer
                    for r in records(answer["records"]):
                        if r[0] >= offset:
                            seen.append(r[3][:6])
                            offset = r[0] + 1
        threads = [threading.Thread(target=f) for f in (write, read)]
        for t in threads:
            t.start()
        try:
            for _ in range(6):
                to = self.other()
                self.assertEqual(self.move(to), 0)
                self.until_at(to)
        finally:
            stop.set()
            threads[0].join(60)
            over.set()  # nothing more is written
            threads[1].join(60)
        self.assertEqual(seen, [b"%06d" % i for i in range(written[0])])
        self.assertEqual(self.values(), seen)

    def test_a_move_goes_on_after_any_stop(self):
        create_topic(self.conn, "t")
        self.fill(350, size=15000)  # a few pieces of a move: each life copies one before it is held back
        self.limit(1)
        here, to = self.where()[0], self.other()
        self.assertEqual(self.move(to), 0)
        for kill in (False, True):
            self.assertEqual(self.where(), (here, to))
            self.restart(kill)
        self.fill(10)
        self.assertEqual(self.where(), (here, to))
        self.limit(None)
        self.until_at(to)
        self.assertEqual(len(self.values()), 360)

    def test_a_move_can_be_given_up_and_changed(self):
        create_topic(self.conn, "t")
        self.fill(100, size=15000)
        self.limit(1)
        here, to = self.where()[0], self.other()
        self.assertEqual(self.move(to), 0)
        self.assertEqual(self.where(), (here, to))
        self.assertEqual(self.move(to), 0)  # the same again
        self.assertEqual(self.where(), (here, to))
        self.assertEqual(self.move(here), 0)
        self.assertEqual(self.where(), (here, None))
        harness.until("the copy is gone", lambda: self.folders() == ["t-0"])
        self.assertEqual(self.move(to), 0)
        self.conn.call("DeleteTopics", 5, timeout_ms=10000, topic_names=["t"])
        harness.until("log and copy are gone", lambda: self.folders() == [])

    def test_compacted_topics_and_producers_move(self):
        create_topic(self.conn, "t", configs={"cleanup.policy": "compact", "segment.bytes": "2000"})
        for i in range(30):
            produce_one(self.conn, "t", 0, kwire.batch([(i + 1, b"k%d" % (i % 3), b"x" * 300)], producer_id=5,
                                                       producer_epoch=0, sequence=i))
        to = self.other()
        self.assertEqual(self.move(to), 0)
        self.until_at(to)
        produce_one(self.conn, "t", 0, kwire.batch([(99, b"k", b"x")], producer_id=5, producer_epoch=0, sequence=30))
        p, = self.conn.call("DescribeProducers", 0, topics=[
            {"name": "t", "partition_indexes": [0]}])["topics"][0]["partitions"]
        self.assertEqual([(x["producer_id"], x["last_sequence"]) for x in p["active_producers"]], [(5, 30)])


if __name__ == "__main__":
    unittest.main()
