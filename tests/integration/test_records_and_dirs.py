"""DeleteRecords, DescribeLogDirs, DescribeTopicPartitions, DescribeProducers: every version, every outcome."""
import os
import unittest

import harness
import kwire
from kwire import create_topic, fetch, list_offset, produce_one, records, simple_batch

OUT_OF_RANGE, UNKNOWN_TOPIC, INVALID_TOPIC, INVALID_REQUEST, POLICY_VIOLATION, STORAGE_ERROR = 1, 3, 17, 42, 44, 56


class Base(harness.BrokerTest):
    def setUp(self):
        self.conn = kwire.Conn(self.broker.port)
        self.topic = self.id().rsplit(".", 1)[1]

    def tearDown(self):
        self.conn.close()

    def make(self, partitions=1, **configs):
        return create_topic(self.conn, self.topic, partitions, {k.replace("_", "."): v for k, v in configs.items()})

    def put(self, n, partition=0, size=10):
        for _ in range(n):
            produce_one(self.conn, self.topic, partition, simple_batch(b"x" * size))


class DeleteRecords(Base):
    def delete(self, offset, version=2, partition=0, topic=None, timeout_ms=30000):
        answer = self.conn.call("DeleteRecords", version, timeout_ms=timeout_ms, topics=[
            {"name": topic or self.topic, "partitions": [{"partition_index": partition, "offset": offset}]}])
        self.assertEqual(answer["throttle_time_ms"], 0)
        self.assertEqual(answer["topics"][0]["name"], topic or self.topic)
        p, = answer["topics"][0]["partitions"]
        self.assertEqual(p["partition_index"], partition)
        return p["error_code"], p["low_watermark"]

    def test_the_start_moves_and_stays(self):
        self.make()
        self.put(10)
        for version in range(3):
            self.assertEqual(self.delete(3 + version, version), (0, 3 + version))
            self.assertEqual(self.delete(1, version), (0, 3 + version))  # lower: nothing happens
            self.assertEqual(list_offset(self.conn, 5, self.topic, 0, -2)["offset"], 3 + version)
        self.assertEqual(fetch(self.conn, 11, [(self.topic, 0, 4)])[0][2]["error_code"], OUT_OF_RANGE)
        answer = fetch(self.conn, 11, [(self.topic, 0, 5)])[0][2]
        self.assertEqual(answer["log_start_offset"], 5)
        self.assertEqual(next(iter(records(answer["records"])))[0], 5)
        self.assertEqual(self.delete(-1), (0, 10))
        self.assertEqual(list_offset(self.conn, 5, self.topic, 0, -2)["offset"], 10)
        self.put(1)
        self.conn.close()
        self.broker.restart()
        self.conn = kwire.Conn(self.broker.port)
        self.assertEqual(list_offset(self.conn, 5, self.topic, 0, -2)["offset"], 10)
        self.assertEqual(list_offset(self.conn, 5, self.topic, 0, -1)["offset"], 11)

    def test_inside_a_batch(self):
        self.make()
        produce_one(self.conn, self.topic, 0, simple_batch(b"a", b"b", b"c", b"d"))
        self.assertEqual(self.delete(2), (0, 2))
        answer = fetch(self.conn, 11, [(self.topic, 0, 2)])[0][2]
        self.assertEqual([r[0] for r in records(answer["records"])], [0, 1, 2, 3])  # whole batches, as ever

    def test_errors_in_every_version(self):
        self.make()
        self.put(2)
        create_topic(self.conn, self.topic + ".compacted", configs={"cleanup.policy": "compact"})
        create_topic(self.conn, "__consumer_offsets", configs={"cleanup.policy": "compact"})
        for version in range(3):
            self.assertEqual(self.delete(3, version), (OUT_OF_RANGE, -1))
            self.assertEqual(self.delete(-2, version), (OUT_OF_RANGE, -1))
            self.assertEqual(self.delete(0, version, topic="no-such"), (UNKNOWN_TOPIC, -1))
            self.assertEqual(self.delete(0, version, partition=7), (UNKNOWN_TOPIC, -1))
            self.assertEqual(self.delete(0, version, topic=self.topic + ".compacted"), (POLICY_VIOLATION, -1))
            self.assertEqual(self.delete(0, version, topic="__consumer_offsets"), (INVALID_TOPIC, -1))
        self.assertEqual(list_offset(self.conn, 5, self.topic, 0, -2)["offset"], 0)

    def test_partitions_stand_alone(self):
        self.make(3)
        for p in range(3):
            self.put(2, p)
        answer = self.conn.call("DeleteRecords", 2, timeout_ms=1000, topics=[
            {"name": self.topic, "partitions": [{"partition_index": 2, "offset": 1}, {"partition_index": 9, "offset": 1},
                                                {"partition_index": 0, "offset": -1}]},
            {"name": "no-such", "partitions": [{"partition_index": 0, "offset": 1}]}])
        self.assertEqual([[(p["partition_index"], p["error_code"], p["low_watermark"]) for p in t["partitions"]]
                          for t in answer["topics"]], [[(2, 0, 1), (9, UNKNOWN_TOPIC, -1), (0, 0, 2)],
                                                       [(0, UNKNOWN_TOPIC, -1)]])
        self.assertEqual(self.conn.call("DeleteRecords", 2, timeout_ms=1000, topics=[])["topics"], [])


class LogDirs(Base):
    def dirs(self, version=4, topics=None):
        answer = self.conn.call("DescribeLogDirs", version, topics=topics)
        self.assertEqual((answer["throttle_time_ms"], answer.get("error_code", 0)), (0, 0))
        return answer["results"]

    def partitions(self, result):
        return {(t["name"], p["partition_index"]): p for t in result["topics"] for p in t["partitions"]}

    def test_every_version(self):
        self.make(3)
        self.put(5, 1, size=1000)
        for version in range(5):
            result, = self.dirs(version)
            self.assertEqual((result["error_code"], result["log_dir"]), (0, self.broker.data))
            found = {k: v for k, v in self.partitions(result).items() if k[0] == self.topic}
            self.assertEqual(set(found), {(self.topic, n) for n in range(3)})
            self.assertGreater(found[self.topic, 1]["partition_size"], 5000)
            self.assertLess(found[self.topic, 1]["partition_size"], 6000)
            self.assertEqual(found[self.topic, 0]["partition_size"], 0)
            self.assertEqual({(p["offset_lag"], p["is_future_key"]) for p in found.values()}, {(0, False)})
            if version >= 4:
                room = os.statvfs(self.broker.data)
                self.assertEqual(result["total_bytes"], room.f_blocks * room.f_frsize)
                self.assertGreater(result["usable_bytes"], 0)

    def test_only_those_asked_for(self):
        self.make(3)
        for version in range(5):
            asked = [{"topic": self.topic, "partitions": [2, 7, 0]}, {"topic": "no-such", "partitions": [0]}]
            self.assertEqual(set(self.partitions(self.dirs(version, asked)[0])), {(self.topic, 0), (self.topic, 2)})
            self.assertEqual(self.dirs(version, [])[0]["topics"], [])


class SeveralDirs(harness.BrokerTest):
    def test_each_has_its_own(self):
        with harness.Broker() as b:
            b.stop()
            b.overrides["log.dirs"] = ",".join(os.path.join(b.folder, d) for d in "abc")
            b.start()
            with kwire.Conn(b.port) as c:
                create_topic(c, "t", 6)
                results = c.call("DescribeLogDirs", 4, topics=None)["results"]
                self.assertEqual([os.path.basename(r["log_dir"]) for r in results], list("abc"))
                self.assertEqual([sum(len(t["partitions"]) for t in r["topics"]) for r in results], [2, 2, 2])
                self.assertEqual({p["partition_index"] for r in results for t in r["topics"] for p in t["partitions"]},
                                 set(range(6)))


class TopicPartitions(Base):
    OVERRIDES = {"max.request.partition.size.limit": "7"}

    def describe(self, topics, limit=2000, cursor=None):
        answer = self.conn.call("DescribeTopicPartitions", 0, topics=[{"name": t} for t in topics],
                                response_partition_limit=limit, cursor=cursor)
        return answer["topics"], answer["next_cursor"]

    def test_all_comes_in_pieces(self):
        sizes = {"a": 3, "b": 1, "c": 12, "d": 2}
        for name, n in sizes.items():
            create_topic(self.conn, name, n)
        for limit in (1, 2, 5, 2000):
            seen, cursor, calls = [], None, 0
            while calls == 0 or cursor:
                topics, cursor = self.describe([], limit, cursor)
                self.assertLessEqual(sum(len(t["partitions"]) for t in topics), min(limit, 7))
                for t in topics:
                    self.assertEqual(t["error_code"], 0)
                    self.assertNotEqual(t["topic_id"], bytes(16))
                    seen += [(t["name"], p["partition_index"]) for p in t["partitions"]]
                calls += 1
            self.assertEqual(seen, [(name, i) for name in sorted(sizes) for i in range(sizes[name])])
        topics, cursor = self.describe(["c", "a", "c", "no-such", "b a d"])
        self.assertEqual([(t["name"], t["error_code"], len(t["partitions"])) for t in topics],
                         [("a", 0, 3), ("b a d", INVALID_TOPIC, 0), ("c", 0, 4)])
        self.assertEqual(cursor, {"topic_name": "c", "partition_index": 4})
        topics, cursor = self.describe(["c", "a", "no-such"], 2000, {"topic_name": "c", "partition_index": 10})
        self.assertEqual([(t["name"], t["error_code"], [p["partition_index"] for p in t["partitions"]])
                          for t in topics], [("c", 0, [10, 11]), ("no-such", UNKNOWN_TOPIC, [])])
        self.assertIsNone(cursor)
        p = self.describe(["b"])[0][0]["partitions"][0]
        self.assertEqual((p["error_code"], p["leader_id"], p["replica_nodes"], p["isr_nodes"], p["offline_replicas"],
                          p["eligible_leader_replicas"], p["last_known_elr"]), (0, 0, [0], [0], [], [], []))

    def test_cursors_that_point_nowhere(self):
        create_topic(self.conn, self.topic, 2)
        topics, cursor = self.describe([self.topic], 10, {"topic_name": self.topic, "partition_index": 99})
        self.assertEqual(([len(t["partitions"]) for t in topics], cursor), ([0], None))
        self.assertEqual(self.describe([self.topic], 10, {"topic_name": "zzz", "partition_index": 0}), ([], None))
        topics, _ = self.describe([self.topic], 10, {"topic_name": self.topic, "partition_index": -1})
        self.assertEqual([t["error_code"] for t in topics], [INVALID_REQUEST])


class Producers(Base):
    def describe(self, topic, *partitions):
        answer = self.conn.call("DescribeProducers", 0, topics=[{"name": topic, "partition_indexes": list(partitions)}])
        return answer["topics"][0]["partitions"]

    def test_producers_are_told(self):
        self.make(2)
        now = 1700000000000
        for n, (pid, epoch) in enumerate(((7, 0), (8, 3))):
            for sequence in range(2):
                produce_one(self.conn, self.topic, 0, kwire.batch([(now + n, None, b"x")], producer_id=pid,
                                                                  producer_epoch=epoch, sequence=sequence))
        first, second = self.describe(self.topic, 0, 1)
        found = sorted((p["producer_id"], p["producer_epoch"], p["last_sequence"], p["last_timestamp"],
                        p["coordinator_epoch"], p["current_txn_start_offset"]) for p in first["active_producers"])
        self.assertEqual(found, [(7, 0, 1, now, -1, -1), (8, 3, 1, now + 1, -1, -1)])
        self.assertEqual((second["error_code"], second["active_producers"]), (0, []))

    def test_errors(self):
        self.make()
        self.assertEqual([p["error_code"] for p in self.describe(self.topic, 5, 0)], [UNKNOWN_TOPIC, 0])
        self.assertEqual(self.describe("no-such", 0)[0]["error_code"], UNKNOWN_TOPIC)


if __name__ == "__main__":
    unittest.main()
