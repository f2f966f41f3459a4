"""Tools before brokers that are none: nobody there, nobody who answers, somebody who speaks another protocol. Each ends by
itself within the time it was given, with 1 and a line that names the address."""
import os
import shutil
import socket
import tempfile
import threading
import time
import unittest

import harness
from tool_test import run_tool

TIMEOUT_MS = 400
ROOM_S = 25  # for a slow machine; the default limits are 60 s


class Server:
    """Listens and, for each connection: says nothing, closes at once, or answers with what it was made with."""

    def __init__(self, answer):
        self.answer = answer
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.open = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                c, _ = self.socket.accept()
            except OSError:
                return
            if self.answer is None:
                self.open.append(c)  # silence
                continue
            if self.answer:
                threading.Thread(target=self.serve, args=(c,), daemon=True).start()
            else:
                c.close()

    def serve(self, c):
        try:
            c.recv(65536)
            c.sendall(self.answer)
            time.sleep(0.05)
        except OSError:
            pass
        c.close()

    def close(self):
        self.socket.close()
        for c in self.open:
            c.close()


class FailuresTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="kafkad-test-")
        cls.config = os.path.join(cls.folder, "client.properties")
        with open(cls.config, "w") as f:
            f.write("default.api.timeout.ms=%d\nrequest.timeout.ms=%d\nmax.block.ms=%d\ndelivery.timeout.ms=%d\nlinger.ms=0\n"
                    "reconnect.backoff.max.ms=100\n" % (TIMEOUT_MS, TIMEOUT_MS // 2, TIMEOUT_MS, TIMEOUT_MS))
        partitions = os.path.join(cls.folder, "partitions.json")
        with open(partitions, "w") as f:
            f.write('{"partitions": [{"topic": "t", "partition": 0, "offset": 1}]}')
        config = ["--command-config", cls.config]
        cls.tools = [
            ("kafka-topics", ["--list", *config]), ("kafka-topics", ["--describe", *config]),
            ("kafka-topics", ["--create", "--topic", "t", *config]), ("kafka-topics", ["--delete", "--topic", "t", *config]),
            ("kafka-configs", ["--describe", "--topic", "t", *config]),
            ("kafka-configs", ["--alter", "--topic", "t", "--add-config", "retention.ms=1", *config]),
            ("kafka-get-offsets", ["--topic", "t", *config]),
            ("kafka-consumer-groups", ["--list", *config, "--timeout", TIMEOUT_MS]),
            ("kafka-consumer-groups", ["--describe", "--group", "g", *config, "--timeout", TIMEOUT_MS]),
            ("kafka-delete-records", ["--offset-json-file", partitions, *config]),
            ("kafka-log-dirs", ["--describe", *config]), ("kafka-cluster", ["cluster-id", "--config", cls.config]),
            ("kafka-broker-api-versions", config), ("kafka-acls", ["--list", *config]),
            ("kafka-leader-election", ["--election-type", "preferred", "--all-topic-partitions", "--admin.config", cls.config]),
            ("kafka-preferred-replica-election", ["--admin.config", cls.config]),
            ("kafka-reassign-partitions", ["--list", *config]),
            ("kafka-console-producer", ["--topic", "t", "--sync", "--producer.config", cls.config, "--max-block-ms", TIMEOUT_MS,
                                        "--request-timeout-ms", TIMEOUT_MS // 2]),
        ]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def check(self, address):
        for name, args in self.tools:
            with self.subTest(name + " " + " ".join(map(str, args[:2]))):
                start = time.monotonic()
                r = run_tool(name, "--bootstrap-server", address, *args, input="a line\n", deadline=ROOM_S)
                self.assertEqual(r.status, 1, r.text + r.err)
                self.assertIn(address, r.text + r.err)
                self.assertLess(time.monotonic() - start, ROOM_S)
                self.assertNotRegex(r.err, r"(?i)sanitizer|assert")

    def check_workers(self, address):
        """Those that send, read or measure: failures are told with the address, whatever the exit status means to them."""
        at = ["--bootstrap-server", address, "--topic", "t"]
        for name, args, status in (
                ("kafka-verifiable-producer", [*at, "--max-messages", 1, "--producer.config", self.config], 0),
                ("kafka-e2e-latency", [address, "t", 1, 1, 10, self.config], 1),
                ("kafka-producer-perf-test", ["--topic", "t", "--num-records", 1, "--throughput", -1, "--record-size", 10,
                                              "--producer.config", self.config, "--producer-props",
                                              "bootstrap.servers=" + address], 1),
                ("kafka-consumer-perf-test", [*at, "--messages", 1, "--timeout", TIMEOUT_MS, "--consumer.config", self.config],
                 0)):
            with self.subTest(name):
                r = run_tool(name, *args, deadline=ROOM_S)
                self.assertEqual(r.status, status, r.text + r.err)
                self.assertIn(address, r.text + r.err)

    def test_nobody_listens(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            address = "127.0.0.1:%d" % s.getsockname()[1]
        self.check(address)
        self.check_workers(address)

    def test_nobody_answers(self):
        s = Server(None)
        self.addCleanup(s.close)
        self.check(s.address)

    def test_the_connection_is_closed(self):
        s = Server(b"")
        self.addCleanup(s.close)
        self.check(s.address)
        self.check_workers(s.address)

    def test_another_protocol(self):
        for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x03\x00\x02\x02\x28", b"\0\0\0\x10" + b"\xff" * 16):
            s = Server(answer)
            self.addCleanup(s.close)
            self.check(s.address)

    def test_names_that_nobody_knows(self):
        """Told at once, also where the limit is a minute."""
        host = "no.such.host.invalid"
        tools = self.tools + [("kafka-console-producer", ["--topic", "t"]), ("kafka-console-consumer", ["--topic", "t"])]
        for name, args in tools:
            with self.subTest(name + " " + " ".join(map(str, args[:2]))):
                r = run_tool(name, "--bootstrap-server", host + ":9092,also.%s:1" % host, *args, input="a line\n", deadline=ROOM_S)
                self.assertEqual(r.status, 1, r.text + r.err)
                self.assertIn("No resolvable bootstrap urls given in bootstrap.servers: " + host, r.err)
                self.assertIn("Couldn't resolve server also.%s:1 from bootstrap.servers" % host, r.err)

    def test_consumers_wait_no_longer_than_told(self):
        s = Server(None)
        self.addCleanup(s.close)
        r = run_tool("kafka-console-consumer", "--bootstrap-server", s.address, "--topic", "t", "--timeout-ms", 500,
                     "--consumer.config", self.config, deadline=ROOM_S + 30)
        self.assertIn("Processed a total of 0 messages", r.err)


if __name__ == "__main__":
    harness.main()
