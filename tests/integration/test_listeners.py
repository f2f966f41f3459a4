"""Listeners that come, change and go while the broker runs: sockets, connections, limits, what Metadata tells, what is
refused, what a restart finds."""
import os
import re
import socket
import unittest

import harness
import kwire
from kwire import create_topic, fetch, produce_one, simple_batch

SET, DELETE = 0, 1
INVALID_REQUEST = 42
MAP = "listener.security.protocol.map"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Listeners(unittest.TestCase):
    def setUp(self):
        self.broker = harness.Broker(overrides={"broker.id": "3"})
        self.conn = kwire.Conn(self.broker.port)

    def tearDown(self):
        self.conn.close()
        self.broker.close()

    def alter(self, conn=None, name="3", **ops):
        """Keys have _ for dots; None deletes."""
        return self.alter_keys({k.replace("_", "."): v for k, v in ops.items()}, conn, name)

    def alter_keys(self, values, conn=None, name="3"):
        configs = [{"name": k, "config_operation": DELETE if v is None else SET, "value": v} for k, v in values.items()]
        answer = (conn or self.conn).call("IncrementalAlterConfigs", 1, validate_only=False, resources=[
            {"resource_type": 4, "resource_name": name, "configs": configs}])
        r, = answer["responses"]
        return r["error_code"], r["error_message"]

    def first(self):
        return "PLAINTEXT://127.0.0.1:0"

    def add(self, *listeners, conn=None):
        """NAME://host:port each, all PLAINTEXT, beside the first."""
        names = ["PLAINTEXT"] + [x.split(":")[0] for x in listeners]
        self.assertEqual(self.alter_keys({"listeners": ",".join((self.first(),) + listeners),
                                          MAP: ",".join("%s:PLAINTEXT" % n for n in names)}, conn), (0, None))

    def bound(self, name, after):
        return int(re.search(r":(\d+)$", self.broker.wait_line(r" listening on %s://" % name, after=after)).group(1))

    def told(self, conn):
        """host and port of this broker as Metadata has them on this connection's listener"""
        b = conn.call("Metadata", 9, topics=[], allow_auto_topic_creation=False,
                      include_cluster_authorized_operations=False,
                      include_topic_authorized_operations=False)["brokers"]
        return [(x["host"], x["port"]) for x in b]

    def until_told(self, conn, host, port):
        harness.until("Metadata tells of it", lambda: self.told(conn) == [(host, port)])

    def refused(self, text, **ops):
        code, message = self.alter(**ops)
        self.assertEqual(code, INVALID_REQUEST, message)
        self.assertIn(text, message)

    def test_one_that_is_added_serves_and_is_told(self):
        create_topic(self.conn, "t")
        mark = self.broker.mark()
        self.add("EXTRA://127.0.0.1:0")
        port = self.bound("EXTRA", mark)
        with kwire.Conn(port) as extra:
            self.until_told(extra, "127.0.0.1", port)
            produce_one(extra, "t", 0, simple_batch(b"x"))
            self.assertEqual(self.told(self.conn), [("127.0.0.1", self.broker.port)])
        self.assertEqual(fetch(self.conn, 11, [("t", 0, 0)])[0][2]["error_code"], 0)
        self.assertEqual(self.broker.count_lines(" listening on PLAINTEXT"), 1)

    def test_one_that_is_removed_is_gone_with_its_connections(self):
        mark = self.broker.mark()
        self.add("EXTRA://127.0.0.1:0")
        port = self.bound("EXTRA", mark)
        idle, asking = kwire.Conn(port), kwire.Conn(port)
        waiting = kwire.Conn(port)
        create_topic(self.conn, "t")
        harness.until("it is there", lambda: kwire.fetch(self.conn, 11, [("t", 0, 0)])[0][2]["error_code"] == 0)
        waiting.send("Fetch", 11, **kwire.fetch_request(11, [("t", 0, 0)], max_wait_ms=60000))
        # the answer to the change still comes, on the listener that it closes
        self.assertEqual(self.alter(listeners=None, conn=asking), (0, None))
        for c in (idle, asking, waiting):
            harness.until("it is closed", c.is_closed)
            c.close()
        with self.assertRaises(ConnectionRefusedError):
            kwire.Conn(port)
        self.assertEqual(self.told(self.conn), [("127.0.0.1", self.broker.port)])
        self.broker.wait_line("no longer listening on EXTRA")

    def test_an_address_changes_and_a_port_changes_hands(self):
        a, b = free_port(), free_port()
        self.add("EXTRA://127.0.0.1:%d" % a)
        before = kwire.Conn(a)
        self.add("EXTRA://127.0.0.1:%d" % b)
        harness.until("it is closed", before.is_closed)
        before.close()
        with kwire.Conn(b) as c:
            self.until_told(c, "127.0.0.1", b)
        self.add("OTHER://127.0.0.1:%d" % b)
        with kwire.Conn(b) as c:
            self.until_told(c, "127.0.0.1", b)
        with self.assertRaises(ConnectionRefusedError):
            kwire.Conn(a)

    def test_what_is_advertised_changes(self):
        self.assertEqual(self.alter(advertised_listeners="PLAINTEXT://elsewhere.example:1234"), (0, None))
        self.until_told(self.conn, "elsewhere.example", 1234)
        self.assertEqual(self.alter(advertised_listeners=None), (0, None))
        self.until_told(self.conn, "127.0.0.1", self.broker.port)

    def test_a_restart_finds_them(self):
        a = free_port()
        self.add("EXTRA://127.0.0.1:%d" % a)
        self.assertEqual(self.alter_keys({"listener.name.extra.max.connections": "1"}), (0, None))
        for kill in (False, True):
            self.conn.close()
            if kill:
                self.broker.kill()
                self.broker.start()
            else:
                self.broker.restart()
            self.conn = kwire.Conn(self.broker.port)
            self.assertEqual(self.broker.ports["EXTRA"], a)
            with kwire.Conn(a) as c:
                self.assertEqual(self.told(c), [("127.0.0.1", a)])

    def test_limits_of_a_listener_are_its_own_and_change(self):
        mark = self.broker.mark()
        self.assertEqual(self.alter_keys({
            "listeners": self.first() + ",EXTRA://127.0.0.1:0", MAP: "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT",
            "listener.name.extra.max.connections": "1",
            "listener.name.extra.max.connection.creation.rate": "1000"}), (0, None))
        port = self.bound("EXTRA", mark)
        with kwire.Conn(port) as first, kwire.Conn(port) as second:
            first.call("ApiVersions", 0)
            second.send("ApiVersions", 0)
            with kwire.Conn(self.broker.port) as others:
                others.call("ApiVersions", 0)  # others are not held back
            self.assertEqual(self.alter_keys({"listener.name.extra.max.connections": "2"}), (0, None))
            second.receive("ApiVersions", 0, 1)  # it waited in the backlog

    def test_overrides_per_address_change_and_are_checked(self):
        self.assertEqual(self.alter_keys({"max.connections.per.ip.overrides": "127.0.0.1:2"}, name=""), (0, None))
        with kwire.Conn(self.broker.port) as second:
            second.call("ApiVersions", 0)
            with kwire.Conn(self.broker.port) as third:
                self.assertTrue(third.is_closed())
            self.assertEqual(self.alter_keys({"max.connections.per.ip.overrides": "127.0.0.1:3,10.1.2.3:1"}, name=""),
                             (0, None))
            with kwire.Conn(self.broker.port) as third:
                third.call("ApiVersions", 0)
        for bad in ("127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1", ":5", "a b:5", "h:99999999999"):
            code, message = self.alter_keys({"max.connections.per.ip.overrides": bad}, name="")
            self.assertEqual(code, INVALID_REQUEST, (bad, message))
            self.assertIn("max.connections.per.ip.overrides", message)

    def test_what_is_refused(self):
        one = self.first()
        busy = socket.socket()
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        both = {MAP: "PLAINTEXT:PLAINTEXT,X:PLAINTEXT,S:SSL"}
        for text, values in (
                ("no protocol in", {"listeners": one + ",X://127.0.0.1:0"}),
                ("each listener must have a name of its own", {"listeners": one + "," + one}),
                ("must be a list of NAME://host:port", {"listeners": one + ",X"}),
                ("must name at least one", {"listeners": ""}),
                ("must be the name of an advertised listener", {"listeners": "X://127.0.0.1:0", **both}),
                ("listeners has no listener X", {"advertised.listeners": one + ",X://h:1"}),
                ("0.0.0.0", {"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}),
                ("must be a list of NAME:PROTOCOL", {MAP: "PLAINTEXT:NONE"}),
                ("cannot bind", {"listeners": one + ",X://127.0.0.1:%d" % busy.getsockname()[1], **both}),
                ("cannot bind", {"listeners": one + ",X://203.0.113.77:7001", **both}),
                ("listener.name.x.max.connections", {"listener.name.x.max.connections": "-1"}),
                ("listener.name.x.max.connections", {"listener.name.x.max.connections": "many"})):
            code, message = self.alter_keys(values)
            self.assertEqual(code, INVALID_REQUEST, (values, message))
            self.assertIn(text, message)
        busy.close()
        code, message = self.alter_keys({"listeners": one}, name="")
        self.assertEqual(code, INVALID_REQUEST)
        self.assertIn("broker id must be specified", message)
        code, message = self.alter_keys({"listener.name.plaintext.sasl.enabled.mechanisms": "PLAIN"})
        self.assertEqual(code, INVALID_REQUEST)
        self.assertIn("Configs cannot be updated dynamically for existing listener PLAINTEXT", message)
        code, message = self.alter_keys({MAP: "PLAINTEXT:SASL_PLAINTEXT"})
        self.assertEqual(code, INVALID_REQUEST)
        self.assertEqual(self.told(self.conn), [("127.0.0.1", self.broker.port)])
        self.assertEqual(self.broker.count_lines(" listening on"), 1)

    def test_network_threads_change(self):
        """By half or double at most; those who are served go on, wherever they are."""
        def threads():
            folder = "/proc/%d/task" % self.broker.pid
            names = []
            for task in os.listdir(folder):
                with open("%s/%s/comm" % (folder, task)) as f:
                    names.append(f.read().strip())
            return sum(n.startswith("net-") for n in names)
        self.assertEqual(threads(), 3)
        others = [kwire.Conn(self.broker.port) for _ in range(6)]
        for n, there in (("6", 6), ("12", 12), ("6", 12), ("3", 12)):
            self.assertEqual(self.alter_keys({"num.network.threads": n}, name=""), (0, None))
            self.assertEqual(threads(), there)
            others.append(kwire.Conn(self.broker.port))
            for c in others:
                c.call("ApiVersions", 0)
        for n in ("7", "0", "-1", "x"):
            self.assertEqual(self.alter_keys({"num.network.threads": n}, name="")[0], INVALID_REQUEST)
        for c in others:
            c.close()

    def test_many_changes_leave_nothing_behind(self):
        def change():
            self.add("A://127.0.0.1:0", "B://127.0.0.1:0")
            self.add("B://127.0.0.1:0", "C://127.0.0.1:0")
            self.add()
        change()
        before = self.broker.descriptors()
        for _ in range(20):
            change()
        harness.until("no more descriptors than before", lambda: self.broker.descriptors() <= before)


if __name__ == "__main__":
    unittest.main()
