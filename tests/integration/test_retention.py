"""Retention in a running broker: by size, by time, by log start; settings that change while it runs; which files go
and when."""
import os
import time
import unittest

import harness
import kwire
from kwire import create_topic, list_offset, produce, produce_one, simple_batch

NOW = int(time.time() * 1000)
DAY = 24 * 3600 * 1000
INVALID_TIMESTAMP = 32


class Retention(harness.BrokerTest):
    OVERRIDES = {"log.retention.check.interval.ms": "50", "log.initial.task.delay.ms": "0",
                 "log.segment.delete.delay.ms": "0"}

    def setUp(self):
        self.conn = kwire.Conn(self.broker.port)
        self.topic = self.id().rsplit(".", 1)[1]

    def tearDown(self):
        self.conn.close()

    def make(self, **configs):
        configs = {k.replace("_", "."): v for k, v in configs.items()}
        create_topic(self.conn, self.topic, 1, {"segment.bytes": "1000", "retention.ms": "-1", **configs})

    def alter(self, **configs):
        answer = self.conn.call("IncrementalAlterConfigs", 1, validate_only=False, resources=[{
            "resource_type": 2, "resource_name": self.topic, "configs": [
                {"name": k.replace("_", "."), "config_operation": 0, "value": str(v)} for k, v in configs.items()]}])
        self.assertEqual(answer["responses"][0]["error_code"], 0, answer)

    def put(self, n=1, timestamp=NOW, size=700):
        for _ in range(n):  # each fills a segment of its own
            produce_one(self.conn, self.topic, 0, kwire.batch([(timestamp, b"key", b"x" * size)]))

    def start(self):
        return list_offset(self.conn, 5, self.topic, 0, -2)["offset"]

    def end(self):
        return list_offset(self.conn, 5, self.topic, 0, -1)["offset"]

    def files(self, ending):
        return sorted(n for n in os.listdir(os.path.join(self.broker.data, self.topic + "-0")) if n.endswith(ending))

    def until_start(self, offset):
        harness.until("log start %d" % offset, lambda: self.start() == offset)

    def checks(self):
        """Waits for a round of retention that began after this call: it deletes what it must of another topic."""
        other = self.topic + ".checked"
        create_topic(self.conn, other, 1, {"segment.bytes": "1000", "retention.bytes": "0"})
        for _ in range(3):
            produce_one(self.conn, other, 0, kwire.batch([(NOW, None, b"x" * 700)]))
        for _ in range(2):  # one may be under way already
            end = list_offset(self.conn, 5, other, 0, -1)["offset"]
            produce_one(self.conn, other, 0, kwire.batch([(NOW, None, b"x" * 700)]))
            harness.until("a check", lambda: list_offset(self.conn, 5, other, 0, -2)["offset"] >= end)
        self.conn.call("DeleteTopics", 5, timeout_ms=10000, topic_names=[other])

    def test_by_size_as_soon_as_it_is_set(self):
        self.make()
        self.put(10)
        self.checks()
        self.assertEqual(self.start(), 0)
        self.alter(retention_bytes=2000)  # 10 segments of some 770 bytes: never below the limit
        self.until_start(7)
        self.assertEqual(self.end(), 10)
        harness.until("files are gone", lambda: len(self.files(".log")) == 3 and not self.files(".deleted"))
        self.put()
        self.until_start(8)

    def test_by_time_as_soon_as_it_is_set(self):
        self.make()
        self.put(3, NOW - 10 * DAY)
        self.put(2, NOW)
        self.checks()
        self.assertEqual(self.start(), 0)
        self.alter(retention_ms=DAY)
        self.until_start(3)

    def test_an_old_active_segment_is_rolled_and_goes(self):
        self.make(retention_ms=str(DAY))
        self.put(3, NOW - 10 * DAY)
        self.until_start(3)
        self.assertEqual(self.end(), 3)
        self.put(1, NOW)
        self.checks()
        self.assertEqual((self.start(), self.end()), (3, 4))

    def test_seconds_for_milliseconds_are_1970(self):
        self.make(retention_ms=str(7 * DAY))
        self.put(2, 1700000000)
        self.put(1, NOW)
        self.until_start(2)

    def test_without_timestamps_the_file_tells(self):
        self.make(retention_ms=str(7 * DAY))
        self.put(2, -1)
        self.checks()
        self.assertEqual(self.start(), 0)
        folder = os.path.join(self.broker.data, self.topic + "-0")
        for name in self.files(".log"):
            os.utime(os.path.join(folder, name), (NOW / 1000 - 8 * 86400,) * 2)
        self.until_start(2)

    def test_one_record_from_the_future_holds_all_back(self):
        self.make(retention_ms="1000")
        self.put(1, NOW - DAY)
        self.until_start(1)
        mark = self.broker.mark()
        self.put(1, NOW + 365 * DAY)
        self.put(3, NOW - DAY)
        self.checks()
        self.assertEqual(self.start(), 1)
        self.broker.wait_line(r"in the future", after=mark)
        self.checks()
        self.assertEqual(sum("in the future" in line for line in self.broker.lines[mark:]), 1)
        self.alter(retention_bytes=1000)
        self.until_start(5)  # by size all the same, and with it gone the others by time
        self.alter(**{"message.timestamp.after.max.ms": 3600000})
        answer = produce(self.conn, 9, [(self.topic, 0, kwire.batch([(NOW + DAY, None, b"x")]))])[0]
        self.assertEqual(answer["error_code"], INVALID_TIMESTAMP)

    def test_deleted_records_go_whatever_the_policy(self):
        self.make(cleanup_policy="compact,delete")
        self.put(6)
        answer = self.conn.call("DeleteRecords", 2, timeout_ms=10000, topics=[
            {"name": self.topic, "partitions": [{"partition_index": 0, "offset": 4}]}])
        self.assertEqual(answer["topics"][0]["partitions"][0]["error_code"], 0)
        self.alter(cleanup_policy="compact")
        harness.until("segments below the start are gone",
                      lambda: self.files(".log")[0] == "%020d.log" % 4 and not self.files(".deleted"))
        self.assertEqual((self.start(), self.end()), (4, 6))

    def test_files_stay_for_their_delay(self):
        self.make(file_delete_delay_ms="600000")
        self.put(4)
        self.alter(retention_bytes=0)
        harness.until("files are renamed", lambda: len(self.files(".log.deleted")) == 4)
        self.checks()
        self.assertEqual(len(self.files(".log.deleted")), 4)
        self.assertEqual(len(self.files(".log")), 1)


if __name__ == "__main__":
    unittest.main()
