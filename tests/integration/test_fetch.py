"""Fetch end to end: every version, limits, waiting, sessions, topic ids, clients that behave badly."""
import os
import struct
import threading
import time
import unittest

import harness
import kwire
from cluster import Cluster
from kwire import create_topic, fetch, fetched, produce_one, records, simple_batch


class Fetch(harness.BrokerTest):
    def setUp(self):
        self.conn = kwire.Conn(self.broker.port)
        self.topic = self.id().rsplit(".", 1)[1]

    def tearDown(self):
        self.conn.close()

    def make(self, partitions=1, name=None, **configs):
        return create_topic(self.conn, name or self.topic, partitions,
                            {k.replace("_", "."): v for k, v in configs.items()})

    def put(self, *values, partition=0, topic=None):
        for value in values:
            produce_one(self.conn, topic or self.topic, partition, simple_batch(value))

    def test_every_version(self):
        topic_id = self.make()
        self.put(b"a", b"b", b"c")
        for version in range(18):
            name = topic_id if version >= 13 else self.topic
            (topic, partition, answer), = fetch(self.conn, version, [(name, 0, 1)])
            self.assertEqual((topic, partition, answer["error_code"]), (name, 0, 0))
            self.assertEqual(answer["high_watermark"], 3)
            self.assertEqual([(r[0], r[3]) for r in records(answer["records"])], [(1, b"b"), (2, b"c")])
            if version >= 4:
                self.assertEqual(answer["last_stable_offset"], 3)
                self.assertIsNone(answer["aborted_transactions"])

    def test_read_committed(self):
        self.make()
        self.put(b"a")
        answer = fetch(self.conn, 11, [(self.topic, 0, 0)], isolation_level=1)[0][2]
        self.assertEqual(answer["aborted_transactions"], [])
        self.assertEqual([r[3] for r in records(answer["records"])], [b"a"])

    def test_offsets_outside_the_log(self):
        self.make()
        self.put(b"a", b"b")
        for version in (0, 4, 11, 12):
            for offset, code in ((-1, 1), (0, 0), (2, 0), (3, 1), (1 << 62, 1)):
                answer = fetch(self.conn, version, [(self.topic, 0, offset)], max_wait_ms=0)[0][2]
                self.assertEqual(answer["error_code"], code, (version, offset))
                if code:
                    self.assertEqual(answer["records"], b"")

    def test_mixed_topics_shuffled(self):
        self.make(3)
        self.make(3, self.topic + "-b")
        self.put(b"a")
        self.put(b"b", partition=2)
        self.put(b"c", partition=1, topic=self.topic + "-b")
        a, b, unknown = self.topic, self.topic + "-b", "nowhere"
        asked = [(b, 1), (a, 2), (unknown, 0), (a, 0), (b, 0), (a, 1), (b, 2), (a, 0)]
        for version in (4, 11):
            got = {(t, p): r for t, p, r in fetch(self.conn, version, [(t, p, 0) for t, p in asked])}
            self.assertEqual(set(got), set(asked))
            for (topic, partition), answer in got.items():
                self.assertEqual(answer["error_code"], 3 if topic == unknown else 0)
            values = {k: [r[3] for r in records(v["records"])] for k, v in got.items() if v["records"]}
            self.assertEqual(values, {(a, 0): [b"a"], (a, 2): [b"b"], (b, 1): [b"c"]})

    def test_limits(self):
        self.make(2)
        size = len(simple_batch(b"x" * 1000))
        self.put(*[b"x" * 1000] * 3)
        self.put(*[b"y" * 1000] * 3, partition=1)
        for max_bytes, part, expected in ((1, 1 << 20, (1, 0)), (1 << 20, 1, (1, 0)), (2 * size, 1 << 20, (2, 0)),
                                          (4 * size, 1 << 20, (3, 1)), (1 << 20, 2 * size, (2, 2)), (0, 0, (1, 0))):
            parts = [(self.topic, p, 0, {"partition_max_bytes": part}) for p in range(2)]
            got = fetch(self.conn, 11, parts, max_bytes=max_bytes)
            self.assertEqual(tuple(len(list(records(r["records"]))) for _, _, r in got), expected)

    def test_waits_for_min_bytes_and_no_longer_than_told(self):
        self.make()
        size = len(simple_batch(b"1"))
        start = time.monotonic()
        answer = fetch(self.conn, 11, [(self.topic, 0, 0)], max_wait_ms=200)[0][2]
        self.assertGreaterEqual(time.monotonic() - start, 0.199)
        self.assertEqual((answer["error_code"], answer["records"]), (0, b""))
        with kwire.Conn(self.broker.port) as waiting:
            request = kwire.fetch_request(11, [(self.topic, 0, 0)], max_wait_ms=600000, min_bytes=3 * size)
            correlation_id = waiting.send("Fetch", 11, **request)
            self.put(b"1", b"2", b"3")
            answer = fetched(waiting.receive("Fetch", 11, correlation_id))[0][2]
            self.assertEqual([r[3] for r in records(answer["records"])], [b"1", b"2", b"3"])

    def test_many_waiters_hear_of_one_record(self):
        self.make()
        conns = [kwire.Conn(self.broker.port) for _ in range(30)]
        request = kwire.fetch_request(11, [(self.topic, 0, 0)], max_wait_ms=600000)
        ids = [c.send("Fetch", 11, **request) for c in conns]
        self.put(b"news")
        for c, correlation_id in zip(conns, ids):
            answer = fetched(c.receive("Fetch", 11, correlation_id))[0][2]
            self.assertEqual([r[3] for r in records(answer["records"])], [b"news"])
            c.close()

    def test_clients_that_leave_while_they_wait(self):
        self.make()
        request = kwire.fetch_request(11, [(self.topic, 0, 0)], max_wait_ms=600000)
        before = self.broker.descriptors()
        for _ in range(100):
            with kwire.Conn(self.broker.port) as c:
                c.send("Fetch", 11, **request)
        harness.until("connections are gone", lambda: self.broker.descriptors() <= before)
        self.put(b"a")
        self.assertEqual(len(list(records(fetch(self.conn, 11, [(self.topic, 0, 0)])[0][2]["records"]))), 1)

    def test_deletion_of_the_topic_ends_the_wait(self):
        self.make()
        with kwire.Conn(self.broker.port) as waiting:
            request = kwire.fetch_request(11, [(self.topic, 0, 0)], max_wait_ms=600000)
            correlation_id = waiting.send("Fetch", 11, **request)
            self.conn.call("DeleteTopics", 3, topic_names=[self.topic], timeout_ms=30000)
            answer = fetched(waiting.receive("Fetch", 11, correlation_id))[0][2]
            self.assertIn(answer["error_code"], (3, 6))

    def test_old_id_never_gives_records_of_the_new_topic(self):
        old = self.make()
        self.put(b"old")
        self.conn.call("DeleteTopics", 3, topic_names=[self.topic], timeout_ms=30000)
        new = self.make()
        self.put(b"new")
        self.assertNotEqual(old, new)
        answer = fetch(self.conn, 13, [(old, 0, 0)])[0][2]
        self.assertIn(answer["error_code"], (100, 103))
        self.assertEqual(answer["records"], b"")
        answer = fetch(self.conn, 13, [(new, 0, 0)])[0][2]
        self.assertEqual([r[3] for r in records(answer["records"])], [b"new"])

    def test_epochs(self):
        self.make()
        self.put(b"a")
        for version in (9, 12):
            for epoch, code in ((0, 0), (1, 75), (5, 75)):
                answer = fetch(self.conn, version, [(self.topic, 0, 0, {"current_leader_epoch": epoch})])[0][2]
                self.assertEqual(answer["error_code"], code)
        answer = fetch(self.conn, 12, [(self.topic, 0, 9, {"last_fetched_epoch": 0})])[0][2]
        self.assertEqual((answer["error_code"], answer["diverging_epoch"]), (0, {"epoch": 0, "end_offset": 1}))

    def test_large_data_byte_for_byte(self):
        self.make(segment_bytes=1 << 20)
        sent = [simple_batch(os.urandom(100000)) for _ in range(40)]
        ids = [self.conn.send("Produce", 9, **kwire.produce_request([(self.topic, 0, data)])) for data in sent]
        for correlation_id in ids:
            self.conn.receive("Produce", 9, correlation_id)
        got = []
        while len(got) < len(sent):
            parts = [(self.topic, 0, len(got), {"partition_max_bytes": 650000})]
            for offset, _, raw in kwire.entries(fetch(self.conn, 11, parts)[0][2]["records"]):
                self.assertEqual(offset, len(got))
                got.append(raw)
        self.assertEqual([raw[16:] for raw in got], [data[16:] for data in sent])

    # -- sessions

    def session(self, conn, epoch, session_id=0, parts=(), forgotten=(), version=12, **options):
        request = kwire.fetch_request(version, parts, **options)
        request.update(session_id=session_id, session_epoch=epoch, forgotten_topics_data=[
            {"topic": t, "partitions": [p]} for t, p in forgotten])
        return conn.call("Fetch", version, **request)

    def test_session_delivers_what_fetches_deliver(self):
        self.make(3)
        for p in range(3):
            self.put(*[b"%d-%d" % (p, i) for i in range(5)], partition=p)
        at, got, epoch, sid, empty = [0, 0, 0], [[], [], []], 0, 0, 0
        moved = {0, 1, 2}
        while sum(at) < 15:
            answer = self.session(self.conn, epoch, sid, [(self.topic, p, at[p]) for p in moved], max_bytes=1)
            self.assertEqual(answer["error_code"], 0)
            sid, epoch, moved = answer["session_id"], epoch + 1, set()
            for _, p, part in fetched(answer):
                for record in records(part["records"]):
                    self.assertEqual(record[0], at[p])
                    got[p].append(record[3])
                    at[p] += 1
                    moved.add(p)
            empty = empty + 1 if not moved else 0
            self.assertLess(empty, 2)
            self.assertLessEqual(max(at) - min(at), 2)  # all have their turn
        self.assertEqual(got, [[b"%d-%d" % (p, i) for i in range(5)] for p in range(3)])

    def test_session_errors(self):
        topic_id = self.make()
        parts = [(self.topic, 0, 0)]
        sid = self.session(self.conn, 0, parts=parts)["session_id"]
        self.assertGreater(sid, 0)
        for epoch, session_id, version, code in ((1, sid ^ 1, 12, 70), (2, sid, 12, 71), (1, sid, 13, 106)):
            ask = parts if version < 13 else [(topic_id, 0, 0)]
            answer = self.session(self.conn, epoch, session_id, ask, version=version)
            self.assertEqual((answer["error_code"], answer["session_id"], answer["responses"]), (code, 0, []))
        answer = self.session(self.conn, 1, sid)
        self.assertEqual((answer["error_code"], answer["session_id"], answer["responses"]), (0, sid, []))
        self.assertEqual(self.session(self.conn, 1, sid)["error_code"], 71)
        answer = self.session(self.conn, 2, sid, forgotten=[(self.topic, 0)])
        self.assertEqual((answer["error_code"], answer["session_id"]), (0, 0))
        self.assertEqual(self.session(self.conn, 3, sid)["error_code"], 70)

    # -- conversion

    def test_conversion_keeps_to_what_old_clients_know(self):
        self.make()
        now = int(time.time() * 1000)
        produce_one(self.conn, self.topic, 0, kwire.batch([(now + i, b"k", b"v%d" % i, [("h", b"x")]) for i in range(5)]))
        produce_one(self.conn, self.topic, 0, kwire.batch([(now + i, None, b"w%d" % i) for i in range(5)], codec=1))
        for version, magic in ((0, 0), (1, 0), (2, 1), (3, 1)):
            answer = fetch(self.conn, version, [(self.topic, 0, 3)])[0][2]
            got = [r for r in records(answer["records"])]
            self.assertEqual({e[1] for e in kwire.entries(answer["records"])}, {magic})
            self.assertEqual([r[0] for r in got], [3, 4, 5, 6, 7, 8, 9])
            self.assertEqual([r[3] for r in got[:2]], [b"v3", b"v4"])

    def test_conversion_switched_off(self):
        self.make(message_downconversion_enable="false")
        self.put(b"a")
        self.assertEqual(fetch(self.conn, 3, [(self.topic, 0, 0)])[0][2]["error_code"], 35)
        self.assertEqual(fetch(self.conn, 4, [(self.topic, 0, 0)])[0][2]["error_code"], 0)

    def test_zstd_topic_and_old_clients(self):
        self.make(compression_type="zstd")
        self.put(b"a")
        for version, code in ((2, 76), (4, 76), (9, 76), (10, 0), (11, 0)):
            self.assertEqual(fetch(self.conn, version, [(self.topic, 0, 0)])[0][2]["error_code"], code)


class FullCache(harness.BrokerTest):
    OVERRIDES = {"max.incremental.fetch.session.cache.slots": "100"}

    def test_flood_of_sessions(self):
        with kwire.Conn(self.broker.port) as live, kwire.Conn(self.broker.port) as other:
            create_topic(live, "t")

            def ask(conn, epoch, session_id=0, parts=()):
                request = kwire.fetch_request(7, parts, session_id=session_id)
                request["session_epoch"] = epoch
                return conn.call("Fetch", 7, **request)

            parts = [("t", 0, 0)]
            session_id = ask(live, 0, parts=parts)["session_id"]
            self.assertGreater(session_id, 0)
            made, epoch = 0, 1
            for i in range(2000):
                made += ask(other, 0, parts=parts)["session_id"] > 0
                if i % 100 == 0:
                    self.assertEqual(ask(live, epoch, session_id)["error_code"], 0)
                    epoch += 1
            self.assertEqual(made, 99)


class Follower(unittest.TestCase):
    """The test plays controller, as the one of now, and follower: acks=all, high watermark, topic ids, epochs, over
    the wire."""

    def control(self, conn, epoch, **p):
        state = {"partition_index": 0, "controller_epoch": self.epoch, "leader": 1, "leader_epoch": epoch,
                 "isr": [1, 7], "partition_epoch": epoch, "replicas": [1, 7], "is_new": False}
        state.update(p)
        topic_id = state.pop("topic_id", self.topic_id)
        answer = conn.call("LeaderAndIsr", 7, controller_id=1, controller_epoch=self.epoch, broker_epoch=-1, type=0,
                           topic_states=[{"topic_name": "t", "topic_id": topic_id, "partition_states": [state]}])
        self.assertEqual(answer["error_code"], 0)
        return answer["topics"][0]["partition_errors"][0]["error_code"]

    def follow(self, conn, offset, version=15, epoch=1):
        values = kwire.fetch_request(version, [(self.topic_id, 0, offset, {"current_leader_epoch": epoch})],
                                     replica_state={"replica_id": 7, "replica_epoch": 1})
        return fetched(conn.call("Fetch", version, **values))[0][2]

    def test_acks_all_with_a_follower(self):
        with Cluster(1, {"replica.lag.time.max.ms": "3600000"}) as c, c.conn() as conn, c.conn() as producer:
            broker = c.broker(1)
            with c.zk.client() as z:
                self.epoch = int(z.get("/controller_epoch"))
            self.topic_id = create_topic(conn, "t", 1, {"min.insync.replicas": 2})
            brokers = [{"id": i, "endpoints": [{"port": broker.port + i - 1, "host": "127.0.0.1", "listener": "PLAINTEXT",
                                                "security_protocol": 0}]} for i in (1, 7)]
            state = {"partition_index": 0, "controller_epoch": self.epoch, "leader": 1, "leader_epoch": 1, "isr": [1, 7],
                     "zk_version": 1, "replicas": [1, 7]}
            answer = conn.call("UpdateMetadata", 8, controller_id=1, controller_epoch=self.epoch, broker_epoch=-1,
                               topic_states=[{"topic_name": "t", "topic_id": self.topic_id,
                                              "partition_states": [state]}], live_brokers=brokers)
            self.assertEqual(answer["error_code"], 0)
            self.assertEqual(self.control(conn, 1), 0)
            self.assertEqual(self.control(conn, 1), 11)
            self.assertEqual(self.control(conn, 2, topic_id=b"x" * 16), 103)

            # acks=all is answered when the follower asks for what is behind the record
            first = producer.send("Produce", 9, **kwire.produce_request([("t", 0, simple_batch(b"a"))]))
            self.assertEqual(fetch(conn, 11, [("t", 0, 0)])[0][2]["high_watermark"], 0)
            got = self.follow(conn, 0)
            while not got["records"]:
                got = self.follow(conn, 0)
            self.assertEqual([r[3] for r in records(got["records"])], [b"a"])
            self.assertEqual(self.follow(conn, 1)["error_code"], 0)
            answer = producer.receive("Produce", 9, first)
            self.assertEqual(answer["responses"][0]["partition_responses"][0]["error_code"], 0)
            self.assertEqual(fetch(conn, 11, [("t", 0, 0)])[0][2]["high_watermark"], 1)

            # later requests of a connection are appended while an earlier one waits
            ids = [producer.send("Produce", 9, **kwire.produce_request([("t", 0, simple_batch(b"b"))]))
                   for _ in range(3)]
            harness.until("all three are appended",
                          lambda: sum(1 for _ in records(self.follow(conn, 1)["records"])) == 3)
            self.follow(conn, 4)
            for i, correlation_id in enumerate(ids):
                answer = producer.receive("Produce", 9, correlation_id)
                self.assertEqual(answer["responses"][0]["partition_responses"][0]["base_offset"], 1 + i)

            # the time runs out; the data stay
            answer = kwire.produce(producer, 9, [("t", 0, simple_batch(b"late"))], timeout_ms=100)[0]
            self.assertEqual(answer["error_code"], 7)
            # epochs, strangers
            self.assertEqual(self.follow(conn, 4, epoch=0)["error_code"], 74)
            self.assertEqual(self.follow(conn, 4, epoch=2)["error_code"], 75)

            # the ISR shrinks below the minimum: acks=all is refused, acks=1 is not
            self.assertEqual(self.control(conn, 2, isr=[1]), 0)
            self.assertEqual(kwire.produce(producer, 9, [("t", 0, simple_batch(b"x"))])[0]["error_code"], 19)
            self.assertEqual(kwire.produce(producer, 9, [("t", 0, simple_batch(b"x"))], acks=1)[0]["error_code"], 0)

            # another leads: a waiting producer is told, with the new leader's address
            self.assertEqual(self.control(conn, 3), 0)
            waiting = producer.send("Produce", 10, **kwire.produce_request([("t", 0, simple_batch(b"y"))]))
            harness.until("it is appended",
                          lambda: any(r[3] == b"y" for r in records(self.follow(conn, 4, epoch=3)["records"])))
            self.assertEqual(self.control(conn, 4, leader=7), 0)
            answer = producer.receive("Produce", 10, waiting)
            part = answer["responses"][0]["partition_responses"][0]
            self.assertEqual((part["error_code"], part["current_leader"]), (6, {"leader_id": 7, "leader_epoch": 4}))
            self.assertEqual([(n["node_id"], n["port"]) for n in answer["node_endpoints"]], [(7, broker.port + 6)])
            broker.kill()


if __name__ == "__main__":
    unittest.main()
