"""What runs out: descriptors. Existing clients go on, new ones wait or are let go, one line says so, and all is well when
there are some again."""
import resource
import socket
import unittest

import harness
import kwire
from kwire import create_topic, fetch, list_offset, produce_one, records, simple_batch

LIMIT = 64


def limited():
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))


class Descriptors(unittest.TestCase):
    def setUp(self):
        self.broker = harness.Broker(start=False, overrides={"log.segment.bytes": "20000", "num.network.threads": "1",
                                                             "num.io.threads": "2", "log.cleaner.enable": "false"})
        self.broker.before_exec = limited
        self.broker.start()
        self.conn = kwire.Conn(self.broker.port)
        self.crowd = []

    def tearDown(self):
        self.leave()
        self.conn.close()
        self.broker.close()

    def leave(self):
        for s in self.crowd:
            s.close()
        self.crowd = []

    def fill(self):
        """Connections until the broker has no descriptor left; and its own files want some."""
        for _ in range(LIMIT):
            self.crowd.append(socket.create_connection(("127.0.0.1", self.broker.port)))
        self.broker.wait_line("cannot accept connections")

    def serves(self):
        try:
            with kwire.Conn(self.broker.port) as c:
                c.call("ApiVersions", 0)
            return True
        except (kwire.Closed, OSError):
            return False

    def test_those_who_are_in_go_on(self):
        create_topic(self.conn, "t")
        produce_one(self.conn, "t", 0, simple_batch(b"before"))
        self.fill()
        for i in range(100):
            produce_one(self.conn, "t", 0, simple_batch(b"%d" % i))
        self.assertEqual(self.broker.count_lines("cannot accept connections"), 1)
        self.leave()
        harness.until("there is room again", self.serves)
        self.assertEqual(list_offset(self.conn, 5, "t", 0, -1)["offset"], 101)

    def test_segments_that_cannot_be_made_are_an_error_and_no_end(self):
        """A roll without descriptors is refused to the producer; the log dir stays, and later it works."""
        create_topic(self.conn, "t")
        self.fill()
        told, ok = 0, 0
        for i in range(40):
            answer, = kwire.produce(self.conn, 9, [("t", 0, simple_batch(b"%05d" % i + b"x" * 2000))])
            code = answer["error_code"]
            ok += code == 0
            told += code != 0
        self.assertTrue(self.broker.has_line("cannot accept connections"))
        self.leave()
        harness.until("there is room again", self.serves)
        produce_one(self.conn, "t", 0, simple_batch(b"after"))
        ok += 1
        self.assertEqual(list_offset(self.conn, 5, "t", 0, -1)["offset"], ok)
        offset, seen = 0, 0
        while offset < ok:
            for r in records(fetch(self.conn, 11, [("t", 0, offset)])[0][2]["records"]):
                if r[0] >= offset:
                    offset, seen = r[0] + 1, seen + 1
        self.assertEqual(seen, ok)
        self.assertFalse(self.broker.has_line("goes offline"))

    def test_topics_cannot_be_made_for_a_while(self):
        self.fill()
        answer = self.conn.call("CreateTopics", 4, timeout_ms=3000, validate_only=False, topics=[
            {"name": "new", "num_partitions": 20, "replication_factor": 1, "assignments": [], "configs": []}])
        self.assertEqual(len(answer["topics"]), 1)
        self.leave()
        harness.until("there is room again", self.serves)
        create_topic(self.conn, "other", partitions=2)
        produce_one(self.conn, "other", 1, simple_batch(b"x"))
        self.assertFalse(self.broker.has_line("goes offline"))

    def test_the_stop_is_clean_all_the_same(self):
        create_topic(self.conn, "t", partitions=3)
        for p in range(3):
            produce_one(self.conn, "t", p, simple_batch(b"x"))
        self.fill()
        self.conn.close()
        self.broker.restart()
        self.conn = kwire.Conn(self.broker.port)
        for p in range(3):
            self.assertEqual(list_offset(self.conn, 5, "t", p, -1)["offset"], 1)


class Workers(unittest.TestCase):
    """queued.max.requests: while so many wait for a worker no further ones are read; all get their answer."""

    def test_few_workers_and_many_requests(self):
        with harness.Broker(overrides={"queued.max.requests": "1", "num.io.threads": "1", "num.network.threads": "2"}) as b:
            conns = [kwire.Conn(b.port) for _ in range(20)]
            create_topic(conns[0], "t", partitions=4, configs={"flush.messages": 1})
            waiting = kwire.Conn(b.port)  # it only waits, which is no work
            late = waiting.send("Fetch", 11, **kwire.fetch_request(11, [("t", 3, 0)], max_wait_ms=20000))
            sent = []
            for i in range(15):
                for n, c in enumerate(conns):
                    if (i + n) % 3:
                        sent.append((c, "Produce", 8, c.send("Produce", 8, transactional_id=None, acks=-1, timeout_ms=20000, topic_data=[
                            {"name": "t", "partition_data": [{"index": n % 3, "records": simple_batch(b"x")}]}])))
                    else:
                        sent.append((c, "ListOffsets", 5, c.send("ListOffsets", 5, replica_id=-1, isolation_level=0, topics=[
                            {"name": "t", "partitions": [{"partition_index": n % 3, "current_leader_epoch": -1, "timestamp": 1}]}])))
            taken = 0
            for c, api, version, number in sent:
                answer = c.receive(api, version, number)
                if api == "Produce":
                    taken += 1
                    self.assertEqual(answer["responses"][0]["partition_responses"][0]["error_code"], 0)
                else:
                    self.assertEqual(answer["topics"][0]["partitions"][0]["error_code"], 0)
            self.assertEqual(sum(list_offset(conns[0], 5, "t", p, -1)["offset"] for p in range(3)), taken)
            produce_one(conns[0], "t", 3, simple_batch(b"x"))
            self.assertEqual(len(waiting.receive("Fetch", 11, late)["responses"]), 1)
            for c in conns + [waiting]:
                c.close()


if __name__ == "__main__":
    unittest.main()
