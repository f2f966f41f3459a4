"""Bad input on the port: the right error or a closed connection with one log line, memory bounded, other clients
unaffected."""
import random
import socket
import struct
import threading
import time

import harness
import kwire
from harness import (API_VERSIONS, CREATE_TOPICS, DESCRIBE_CONFIGS, FETCH, FIND_COORDINATOR, LIST_OFFSETS, METADATA,
                     PRODUCE, Closed, Writer)

MIB = 1 << 20


class BadInput(harness.BrokerTest):
    def setUp(self):
        self.other = self.client(client_id="bystander")
        self.assertTrue(self.other.is_open())  # accepted by now, and counted in descriptors()

    def tearDown(self):
        self.assertTrue(self.other.is_open(), "the bystander lost its connection")
        self.other.close()
        super().tearDown()

    def assert_closed_with_line(self, send, *patterns):
        """`send` makes the broker close the connection; one WARN or INFO line about it matches all patterns."""
        mark = self.broker.mark()
        with self.client() as c:
            peer = "127.0.0.1:%d" % c.sock.getsockname()[1]
            send(c)
            c.wait_closed()
            line = self.broker.wait_line(peer.replace(".", r"\."), after=mark)
            for pattern in patterns:
                self.assertRegex(line, pattern)
        # whatever was to be logged is logged once the bystander has been answered
        self.assertTrue(self.other.is_open())
        lines = [x for x in self.broker.lines[mark:] if peer in x]
        self.assertEqual(len(lines), 1, lines)

    # -- frames

    def test_frame_lengths_out_of_range(self):
        for n in (-1, -2147483648, 2147483647, 104857601):
            self.assert_closed_with_line(lambda c: c.send_bytes(struct.pack(">i", n)), str(n))

    def test_the_largest_frame_is_a_matter_of_one_byte(self):
        """socket.request.max.bytes itself is fine: the connection stays open and waits for more."""
        before = self.broker.rss_kb()
        with self.client() as c:
            c.send_bytes(struct.pack(">i", 104857600) + b"\0" * 100)
            self.assertTrue(self.other.is_open())
            self.broker.assert_grown_less(before, 4096)
            c.sock.settimeout(0.05)
            with self.assertRaises(socket.timeout):
                c.sock.recv(1)

    def test_frames_too_short_for_a_header(self):
        for n in range(8):
            self.assert_closed_with_line(lambda c: c.send_frame(b"\0" * n), "header")

    def test_a_header_that_lies_about_its_client_id(self):
        bad = Writer().i16(METADATA).i16(1).i32(7).i16(1000).raw(b"short")
        self.assert_closed_with_line(lambda c: c.send_frame(bad.bytes()), "header")
        bad = Writer().i16(METADATA).i16(9).i32(7).string("x").raw(b"\xff" * 5)  # tags of header 2
        self.assert_closed_with_line(lambda c: c.send_frame(bad.bytes()), "header")

    def test_truncated_frames(self):
        """The client goes away in the middle; nothing is left behind."""
        descriptors = self.broker.descriptors()
        for n in (1, 3, 4, 5, 20):
            with self.client() as c:
                c.send_bytes((struct.pack(">i", 100) + b"\0\x03\0\1" + b"x" * 16)[:n])
        harness.until("descriptors are given back", lambda: self.broker.descriptors() <= descriptors)

    def test_garbage(self):
        rng = random.Random(4711)
        for _ in range(100):
            with self.client() as c:
                data = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 400)))
                try:
                    c.send_bytes(data)
                    c.sock.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                c.wait_closed()

    def test_garbage_behind_good_headers(self):
        """Random bodies for every API and version that is served: an answer, or a closed connection."""
        from test_api_versions import SERVED
        rng = random.Random(4712)
        for key, (low, high) in SERVED.items():
            for version in range(low, high + 1):
                for _ in range(4):
                    with self.client() as c:
                        body = bytes(rng.choice((0, 0, 0, 1, 2, 255, rng.randrange(256)))
                                     for _ in range(rng.randrange(60)))
                        try:
                            c.send(key, version, body)
                            c.sock.shutdown(socket.SHUT_WR)
                        except OSError:
                            pass
                        c.wait_closed()

    # -- requests

    def test_unknown_keys(self):
        for key in (-1, 59, 74, 76, 999, 32767):
            self.assert_closed_with_line(lambda c: c.send_frame(c.header(key, 0, 1)), r"(^|\s)%d\b" % key)

    def test_keys_that_are_not_served(self):
        self.assert_closed_with_line(lambda c: c.send_frame(c.header(harness.JOIN_GROUP, 0, 1)), "JoinGroup")

    def test_unknown_versions(self):
        for key, version, name in ((FETCH, 18, "Fetch"), (FETCH, 999, "Fetch"), (METADATA, 13, "Metadata"),
                                   (METADATA, -1, "Metadata"), (PRODUCE, 12, "Produce")):
            self.assert_closed_with_line(lambda c: c.send(key, version, b"\0" * 40), name, r"(^|\s)%d\b" % version)

    def test_an_unknown_version_behind_a_good_request(self):
        """What was asked properly is still answered, then the connection closes at once."""
        with self.client() as c:
            first = c.send(API_VERSIONS, 0, b"")
            c.send(FETCH, 999, b"")
            c.receive(API_VERSIONS, 0, first)
            began = time.monotonic()
            with self.assertRaises(Closed):
                c.recv_frame()
            self.assertLess(time.monotonic() - began, 10)

    def test_bodies_that_end_too_early(self):
        good = {
            METADATA: (1, Writer().array(["abc"], lambda w, n: w.string(n))),
            FIND_COORDINATOR: (1, Writer().string("group").i8(0)),
            CREATE_TOPICS: (1, Writer().array(["t"], lambda w, n: w.string(n).i32(1).i16(1).i32(0).i32(0))
                            .i32(1000).boolean(True)),
            DESCRIBE_CONFIGS: (1, Writer().array([2], lambda w, t: w.i8(t).string("t").i32(-1)).boolean(False)),
            LIST_OFFSETS: (1, Writer().i32(-1).i32(0)),
            FETCH: (4, Writer().i32(-1).i32(0).i32(1).i32(100).i8(0).i32(0)),
        }
        for key, (version, body) in good.items():
            body = body.bytes()
            with self.client() as c:
                c.request(key, version, body)
            for n in (0, 1, len(body) // 2, len(body) - 1):
                self.assert_closed_with_line(lambda c: c.send(key, version, body[:n]), "malformed",
                                             "version %d" % version)

    def test_array_lengths_that_cannot_be(self):
        for n in (-2, -2147483648, 2147483647, 1000000):
            before = self.broker.rss_kb()
            self.assert_closed_with_line(lambda c: c.send(METADATA, 1, Writer().i32(n)), "malformed Metadata")
            self.broker.assert_grown_less(before, 4096)
        # null where the version has no null
        self.assert_closed_with_line(lambda c: c.send(METADATA, 0, Writer().i32(-1)), "malformed Metadata")
        # compact: 0 is null, 2^32-1 is a lie
        self.assert_closed_with_line(
            lambda c: c.send(METADATA, 9, Writer().uvarint(0xffffffff).raw(b"\0" * 8)), "malformed Metadata")
        # a varint that never ends
        self.assert_closed_with_line(
            lambda c: c.send(METADATA, 9, Writer().raw(b"\xff" * 20)), "malformed Metadata")

    def test_string_lengths_that_cannot_be(self):
        for n in (-2, -32768, 32767):
            body = Writer().i32(1).i16(n).raw(b"abc")
            self.assert_closed_with_line(lambda c: c.send(METADATA, 1, body), "malformed Metadata")

    def test_many_empty_elements_do_not_make_memory(self):
        """A frame of a few MB whose array elements are as small as they can be."""
        before = self.broker.rss_kb()
        n = 2 * MIB
        body = Writer().i32(n).raw(b"\0\0" * n)  # n empty names
        with self.client() as c:
            try:
                c.request(METADATA, 1, body)
            except Closed:
                pass
        self.assertTrue(self.other.is_open())
        self.broker.assert_grown_less(before, 200 << 10)

    # -- other protocols

    def test_a_tls_hello(self):
        hello = bytes.fromhex("16030100c8010000c40303") + b"\x11" * 200
        self.assert_closed_with_line(lambda c: c.send_bytes(hello))

    def test_an_http_request(self):
        self.assert_closed_with_line(lambda c: c.send_bytes(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))

    # -- slow and greedy clients

    def test_a_slow_drip(self):
        """A request that comes byte by byte is answered; meanwhile others are served."""
        with self.client() as c:
            c.correlation = 1
            payload = c.header(API_VERSIONS, 0, 1)
            for byte in struct.pack(">i", len(payload)) + payload:
                c.send_bytes(bytes([byte]))
                self.assertTrue(self.other.is_open())
            c.receive(API_VERSIONS, 0, 1)

    def test_promises_of_large_frames_cost_nothing(self):
        before = self.broker.rss_kb()
        clients = [self.client() for _ in range(100)]
        try:
            for c in clients:
                c.send_bytes(struct.pack(">i", 100 * MIB) + b"\0\0\0\3" + b"\0" * 1000)
            self.assertTrue(self.other.is_open())
            self.broker.assert_grown_less(before, 32 << 10)
        finally:
            for c in clients:
                c.close()

    @staticmethod
    def request_for_much(c):
        """Of 40 bytes; the answer has some 60 KB."""
        request = c.header(DESCRIBE_CONFIGS, 3, 1)
        request += Writer().array([0], lambda w, _: w.i8(4).string("0").i32(-1)).boolean(True).boolean(True).bytes()
        return struct.pack(">i", len(request)) + request

    def test_many_clients_that_never_read(self):
        """What lies in memory for all of them together is bounded, and goes back to the system when they are gone."""
        before = self.broker.rss_kb()
        clients = [self.client(receive_buffer=4096) for _ in range(100)]
        try:
            for c in clients:  # 15 MB of answers each, of which one connection may have 8
                c.send_bytes(self.request_for_much(c) * 250)
                self.assertTrue(self.other.is_open())
            harness.until("much is in memory", lambda: self.broker.rss_kb() > before + (128 << 10))
            for _ in range(50):
                self.assertTrue(self.other.is_open())
            self.broker.assert_grown_less(before, 400 << 10)
        finally:
            for c in clients:
                c.close()
        if not harness.sanitized():
            harness.until("memory is given back", lambda: self.broker.rss_kb() < before + (48 << 10))

    def test_a_client_that_never_reads(self):
        """It is not read any more once its answers pile up; the broker's memory stays where it is."""
        before = self.broker.rss_kb()
        with self.client(receive_buffer=4096) as c:
            c.sock.settimeout(0.5)
            frame = self.request_for_much(c)
            sent = 0
            try:
                while sent < 64 * MIB:
                    sent += c.sock.send(frame * 200)
            except socket.timeout:
                pass
            self.assertLess(sent, 64 * MIB, "the broker read on")
            self.assertTrue(self.other.is_open())
            self.broker.assert_grown_less(before, 48 << 10)
        harness.until("the connection is gone", lambda: self.other.is_open())

    def test_an_old_client_that_never_reads(self):
        """Fetch v2: answers are rewritten in memory, by workers. Pipelined they are not all made at once."""
        topic = "rewritten"
        with kwire.Conn(self.broker.ports["PLAINTEXT"]) as c:
            kwire.create_topic(c, topic)
            data = kwire.batch([(int(time.time() * 1000), b"k", b"v" * 500000)])
            for _ in range(16):
                kwire.produce_one(c, topic, 0, data)
        before = self.broker.rss_kb()
        with kwire.Conn(self.broker.ports["PLAINTEXT"]) as c:
            values = kwire.fetch_request(2, [(topic, 0, 0, {"partition_max_bytes": 100 * MIB})])
            for i in range(64):
                c.send("Fetch", 2, **values)
            # nor later: a reader's answers come behind those in the workers' line
            with kwire.Conn(self.broker.ports["PLAINTEXT"]) as reader:
                for _ in range(8):
                    kwire.fetch(reader, 2, [(topic, 0, 0, {"partition_max_bytes": 100 * MIB})])
            # some 60 MB in turn on several threads' heaps; 64 answers at once are 350 MB and more
            self.broker.assert_grown_less(before, 128 << 10)

    def test_answers_come_in_order_whatever_is_asked(self):
        with self.client() as c:
            sent = [(METADATA, 1, c.send(METADATA, 1, Writer().i32(0))) if i % 2 else
                    (API_VERSIONS, 0, c.send(API_VERSIONS, 0, b"")) for i in range(200)]
            for key, version, n in sent:
                c.receive(key, version, n)

    def test_a_storm_of_connections(self):
        descriptors = self.broker.descriptors()

        def storm():
            for i in range(100):
                c = self.client()
                if i % 3 == 0:
                    c.send_bytes(b"\0\0")
                elif i % 3 == 1:
                    c.send(API_VERSIONS, 0, b"")
                c.close()
        threads = [threading.Thread(target=storm) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        harness.until("descriptors are given back", lambda: self.broker.descriptors() <= descriptors)


class Strangers(harness.BrokerTest):
    """Who plays a controller, or another broker, to a broker that is by itself."""

    def test_orders_are_refused_and_change_nothing(self):
        newest = 2147483647
        with kwire.Conn(self.broker.port) as c:
            kwire.create_topic(c, "t")
            kwire.produce_one(c, "t", 0, kwire.simple_batch(b"a"))
            before = c.call("Metadata", 9, topics=None, allow_auto_topic_creation=False)
            head = {"controller_id": 0, "controller_epoch": newest, "broker_epoch": -1}
            state = {"partition_index": 0, "controller_epoch": newest, "leader": 9, "leader_epoch": newest, "isr": [9],
                     "partition_epoch": newest, "replicas": [9], "is_new": False}
            for epoch in (0, 1, newest):
                head["controller_epoch"] = epoch
                for api, version, fields in (
                        ("UpdateMetadata", 8, dict(head, live_brokers=[], topic_states=[])),
                        ("UpdateMetadata", 0, {"controller_id": 0, "controller_epoch": epoch}),
                        ("LeaderAndIsr", 4, dict(head, topic_states=[{"topic_name": "t", "partition_states": [state]}])),
                        ("StopReplica", 4, dict(head, topic_states=[{"topic_name": "t", "partition_states": [
                            {"partition_index": 0, "leader_epoch": newest, "delete_partition": True}]}])),
                        ("ControlledShutdown", 3, {"broker_id": 0, "broker_epoch": -1}),
                        ("AlterPartition", 2, {"broker_id": 0, "broker_epoch": -1, "topics": []})):
                    self.assertEqual(c.call(api, version, **fields)["error_code"], 31, api)
            self.assertEqual(c.call("Metadata", 9, topics=None, allow_auto_topic_creation=False), before)
            kwire.create_topic(c, "u")
            for topic in "tu":
                kwire.produce_one(c, topic, 0, kwire.simple_batch(b"b"))
            self.assertEqual(kwire.list_offset(c, 5, "t", 0, -1)["offset"], 2)
            c.call("InitProducerId", 4, transaction_timeout_ms=1)
        self.assertTrue(self.broker.wait_line("StopReplica of 127.0.0.1:.* refused"))


class SmallLimits(harness.BrokerTest):
    OVERRIDES = {"socket.request.max.bytes": "1000", "connections.max.idle.ms": "300",
                 "connection.failed.authentication.delay.ms": "10", "max.connections.per.ip": "3"}

    def test_the_frame_limit_is_the_setting(self):
        with self.client() as c:
            c.send_bytes(struct.pack(">i", 1001))
            c.wait_closed()
        with self.client() as c:
            body = c.header(API_VERSIONS, 0, 1)
            c.send_frame(body + b"\0" * (1000 - len(body)))
            c.receive(API_VERSIONS, 0, 1)

    def test_idle_connections_are_closed(self):
        with self.client() as c:
            self.assertTrue(c.is_open())
            began = time.monotonic()
            c.wait_closed()
            self.assertGreaterEqual(time.monotonic() - began, 0.29)

    def test_one_connection_too_many_is_closed(self):
        clients = [self.client() for _ in range(3)]
        try:
            for c in clients:
                self.assertTrue(c.is_open())
            with self.client() as extra:
                extra.wait_closed()
        finally:
            for c in clients:
                c.close()


if __name__ == "__main__":
    harness.main()
