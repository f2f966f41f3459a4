"""Clients that end their side behind their requests (shutdown, or close): what they sent is done and answered, and
none of them keeps its connection longer than its requests take."""
import os
import socket
import struct
import unittest

import groupwire
import harness
import kwire
from harness import until

LONG = 2147483647


def framed(api, version, fields):
    frame = kwire.request_frame(api, version, 1, fields)
    return struct.pack(">i", len(frame)) + frame


class HalfClose(harness.BrokerTest):
    OVERRIDES = groupwire.OVERRIDES

    def setUp(self):
        self.conn = kwire.Conn(self.broker.port)
        self.topic = self.id().rsplit(".", 1)[1]
        kwire.create_topic(self.conn, self.topic, 1)
        self.before = self.broker.descriptors()

    def tearDown(self):
        self.conn.close()

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.broker.port), harness.DEADLINE)
        self.addCleanup(s.close)
        return s

    def answers(self, *requests):
        """How many answers come to requests behind which the client ends its side."""
        s = self.connect()
        s.sendall(b"".join(framed(*r) for r in requests))
        s.shutdown(socket.SHUT_WR)
        got = b"".join(iter(lambda: s.recv(1 << 16), b""))
        n = 0
        while got:
            got = got[4 + struct.unpack(">i", got[:4])[0]:]
            n += 1
        return n

    def produce(self, acks=-1):
        batch = kwire.simple_batch(b"x" * 100)
        return "Produce", 9, kwire.produce_request([(self.topic, 0, batch)], acks=acks)

    def end(self):
        return kwire.list_offset(self.conn, 5, self.topic, 0, -1)["offset"]

    def waiting_fetch(self):
        return "Fetch", 11, kwire.fetch_request(11, [(self.topic, 0, 0)], max_wait_ms=LONG, min_bytes=1 << 20)

    def test_work_of_every_kind_is_answered(self):
        topic = {"name": self.topic + "-made", "num_partitions": 1, "replication_factor": 1}
        coordinator = {"key": "g", "key_type": 0}
        by_time = {"replica_id": -1, "topics": [{"name": self.topic, "partitions": [
            {"partition_index": 0, "timestamp": 1}]}]}
        commit = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": "", "topics": [
            {"name": self.topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]}
        delete = {"timeout_ms": LONG, "topics": [{"name": self.topic, "partitions": [{"partition_index": 0, "offset": 0}]}]}
        for request in (("CreateTopics", 5, {"timeout_ms": LONG, "topics": [topic]}),
                        ("DeleteTopics", 3, {"topic_names": [topic["name"]], "timeout_ms": LONG}),
                        ("CreatePartitions", 1, {"timeout_ms": LONG, "topics": [{"name": self.topic, "count": 2}]}),
                        ("FindCoordinator", 2, coordinator), ("ListOffsets", 5, by_time), ("OffsetCommit", 5, commit),
                        ("DeleteRecords", 1, delete), self.produce(), self.produce(acks=1)):
            self.assertEqual(self.answers(request), 1, request[0])
        self.assertEqual(self.end(), 2)
        self.assertEqual(self.answers(*[self.produce()] * 500), 500)
        self.assertEqual(self.end(), 502)
        self.assertEqual(self.answers(*[self.produce(acks=0)] * 500), 0)
        until("all is appended", lambda: self.end() == 1002)

    def test_waits_for_the_clients_sake_end_with_an_answer(self):
        self.assertEqual(self.answers(self.waiting_fetch()), 1)
        self.assertEqual(self.answers(self.produce(), *[self.waiting_fetch()] * 300, self.produce()), 302)
        self.assertEqual(self.end(), 2)
        groupwire.coordinator(self.conn, self.topic)
        join = {"group_id": self.topic, "member_id": "", "session_timeout_ms": 30000, "rebalance_timeout_ms": LONG,
                "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}]}
        groupwire.stable([self.conn], self.topic)
        self.assertEqual(self.answers(("JoinGroup", 3, join)), 1)

    def test_clients_that_are_gone_keep_no_connection(self):
        for what, count, reset in (("one", 1, False), ("one, reset", 1, True), ("a line", 100, False),
                                   ("a line, reset", 100, True), ("more than fits", 200000, False),
                                   ("more than fits, reset", 200000, True)):
            request = framed(*self.waiting_fetch()) * count
            for _ in range(5):
                s = self.connect()
                s.setblocking(False)
                if reset:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.send(request)
                s.close()
            until("connections are gone: " + what, lambda: self.broker.descriptors() <= self.before)

    def test_one_that_does_not_read_is_idle(self):
        b = harness.Broker(overrides={"connections.max.idle.ms": "1000"})
        self.addCleanup(b.close)
        with kwire.Conn(b.port) as conn:
            kwire.create_topic(conn, "t", 1)
            kwire.produce_one(conn, "t", 0, kwire.simple_batch(os.urandom(500000)))
            before = b.descriptors()
            s = socket.create_connection(("127.0.0.1", b.port))
            self.addCleanup(s.close)
            s.sendall(framed("Fetch", 11, kwire.fetch_request(11, [("t", 0, 0)])) * 60)
            s.shutdown(socket.SHUT_WR)
            until("it is served", lambda: b.descriptors() > before)
            until("it is closed", lambda: b.descriptors() <= before)


if __name__ == "__main__":
    unittest.main()
