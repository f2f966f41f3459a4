"""A broker with far fewer descriptors than segments: files that rest are closed and opened again, nothing fails."""
import os
import resource
import unittest

import harness
import kwire
from kwire import create_topic, fetch, list_offset, produce, records, simple_batch

LIMIT, PARTITIONS, ROUNDS = 64, 80, 4


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))


class FewDescriptors(unittest.TestCase):
    def test_many_partitions(self):
        with harness.Broker(start=False, overrides={"num.io.threads": "2", "num.network.threads": "2"}) as broker:
            broker.before_exec = few_descriptors
            broker.start()
            with kwire.Conn(broker.port) as conn:
                create_topic(conn, "t", PARTITIONS, {"segment.bytes": "400"})
                for i in range(ROUNDS):
                    for p in range(PARTITIONS):
                        answer, = produce(conn, 9, [("t", p, simple_batch(b"%d" % i + b"v" * 150))])
                        self.assertEqual(answer["error_code"], 0, (i, p))
                self.read_all(conn)
                # an answer holds a descriptor for each partition in it
                for first in range(0, PARTITIONS, 8):
                    answers = fetch(conn, 11, [("t", p, 0) for p in range(first, first + 8)], max_bytes=1 << 20)
                    self.assertEqual({a[2]["error_code"] for a in answers}, {0})
                    self.assertEqual(sum(len(a[2]["records"]) > 0 for a in answers), 8)
            self.assertLessEqual(len(os.listdir("/proc/%d/fd" % broker.process.pid)), LIMIT)
            segments = sum(name.endswith(".log") for p in range(PARTITIONS)
                           for name in os.listdir("%s/t-%d" % (broker.data, p)))
            self.assertGreater(segments, 2 * LIMIT)
            broker.restart()
            with kwire.Conn(broker.port) as conn:
                self.read_all(conn)
            broker.kill()
            broker.start()
            with kwire.Conn(broker.port) as conn:
                self.read_all(conn)
            self.assertEqual(broker.count_lines(r"goes offline"), 0)

    def read_all(self, conn):
        for p in range(PARTITIONS):
            at = 0
            while at < ROUNDS:
                answer = fetch(conn, 11, [("t", p, at)])[0][2]
                self.assertEqual(answer["error_code"], 0)
                for record in records(answer["records"]):
                    self.assertEqual(record[3][:1], b"%d" % record[0])
                    at = record[0] + 1
            self.assertEqual(list_offset(conn, 5, "t", p, -1)["offset"], ROUNDS)


if __name__ == "__main__":
    unittest.main()
