"""ListOffsets and OffsetForLeaderEpoch end to end."""
import time
import unittest

import harness
import kwire
from kwire import batch, create_topic, list_offset, produce_one, simple_batch

T = int(time.time() * 1000)


class ListOffsets(harness.BrokerTest):
    def setUp(self):
        self.conn = kwire.Conn(self.broker.port)
        self.topic = self.id().rsplit(".", 1)[1]

    def tearDown(self):
        self.conn.close()

    def ask(self, version, timestamp, **fields):
        answer = list_offset(self.conn, version, self.topic, 0, timestamp, **fields)
        return answer["error_code"], answer.get("offset"), answer.get("timestamp")

    def test_times_and_places(self):
        create_topic(self.conn, self.topic)
        produce_one(self.conn, self.topic, 0, batch([(T + 5, None, b"a"), (T + 9, None, b"b"), (T + 9, None, b"c")]))
        produce_one(self.conn, self.topic, 0, batch([(T + 2, None, b"d"), (T + 7, None, b"e")], codec=1))
        for version in range(1, 10):
            self.assertEqual(self.ask(version, -1), (0, 5, -1))
            self.assertEqual(self.ask(version, -2), (0, 0, -1))
            self.assertEqual(self.ask(version, T), (0, 0, T + 5))
            self.assertEqual(self.ask(version, T + 6), (0, 1, T + 9))
            self.assertEqual(self.ask(version, T + 86400000), (0, -1, -1))
            self.assertEqual(self.ask(version, -3), (0, 1, T + 9) if version >= 7 else (35, -1, -1))
            self.assertEqual(self.ask(version, -4), (0, 0, -1) if version >= 8 else (35, -1, -1))
            self.assertEqual(self.ask(version, -5), (0, -1, -1) if version >= 9 else (35, -1, -1))
            self.assertEqual(self.ask(version, -9), (35, -1, -1))

    def test_largest_timestamp_is_the_first_record_that_has_it(self):
        for codec in (0, 1):
            self.topic += "-%d" % codec
            create_topic(self.conn, self.topic)
            self.assertEqual(self.ask(7, -3), (0, -1, -1))
            produce_one(self.conn, self.topic, 0, batch([(T + t, None, b"v") for t in (5, 9, 9)], codec=codec))
            self.assertEqual(self.ask(7, -3), (0, 1, T + 9))

    def test_empty_topic(self):
        create_topic(self.conn, self.topic)
        for version in range(1, 10):
            self.assertEqual(self.ask(version, T), (0, -1, -1))
            self.assertEqual(self.ask(version, -1), (0, 0, -1))

    def test_version_0_is_a_list_of_segments(self):
        create_topic(self.conn, self.topic, 1, {"segment.bytes": 3000})
        for _ in range(3):
            produce_one(self.conn, self.topic, 0, simple_batch(b"x" * 2500))

        def starts(timestamp, n):
            answer = list_offset(self.conn, 0, self.topic, 0, timestamp, max_num_offsets=n)
            self.assertEqual(answer["error_code"], 0)
            return answer["old_style_offsets"]

        self.assertEqual(starts(-1, 10), [3, 2, 1, 0])
        self.assertEqual(starts(-1, 2), [3, 2])
        self.assertEqual(starts(-2, 10), [0])
        self.assertEqual(starts(T + 86400000, 10), [3, 2, 1, 0])
        self.assertEqual(starts(0, 10), [])

    def test_errors(self):
        create_topic(self.conn, self.topic)
        for version in range(1, 10):
            ask = [{"partition_index": p, "timestamp": -1} for p in (0, 5, 0)]
            answer = self.conn.call("ListOffsets", version, replica_id=-1,
                                    topics=[{"name": self.topic, "partitions": ask},
                                            {"name": "nowhere", "partitions": ask[:1]}])
            codes = [[p["error_code"] for p in t["partitions"]] for t in answer["topics"]]
            self.assertEqual(codes, [[42, 3, 42], [3]])
        self.assertEqual(self.ask(4, -1, current_leader_epoch=1)[0], 75)
        self.assertEqual(self.ask(4, -1, current_leader_epoch=0)[0], 0)

    def test_epoch_ends(self):
        create_topic(self.conn, self.topic)
        produce_one(self.conn, self.topic, 0, simple_batch(b"a", b"b"))
        for version in range(5):
            for topic, epoch, expected in ((self.topic, 0, (0, 2)), (self.topic, 1, (0, -1)), ("nowhere", 0, (3, -1))):
                answer = self.conn.call("OffsetForLeaderEpoch", version, topics=[
                    {"topic": topic, "partitions": [{"partition": 0, "leader_epoch": epoch}]}])
                part = answer["topics"][0]["partitions"][0]
                self.assertEqual((part["error_code"], part["end_offset"]), expected)


if __name__ == "__main__":
    unittest.main()
