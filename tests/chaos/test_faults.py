"""Each fault has its effect: one that silently does nothing would prove nothing. Two machines and one broker; needs what
run.py needs, else it is skipped."""
import os
import queue
import re
import socket
import struct
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import harness  # noqa: E402
import kwire  # noqa: E402
import topology  # noqa: E402

PORT = 7000


def socket_in(node, address):
    """A datagram socket of another network namespace: sockets stay where they were made."""
    out = queue.Queue()

    def make():
        topology.move_in(node)
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
        s.bind((address, PORT))
        s.settimeout(harness.DEADLINE)
        out.put(s)
    threading.Thread(target=make).start()
    return out.get(timeout=harness.DEADLINE)


class Networks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.net = topology.Network(1, ["x", "y"])
        cls.sockets = {n: socket_in(n, cls.net.address(n)) for n in "xy"}

    @classmethod
    def tearDownClass(cls):
        for s in cls.sockets.values():
            s.close()
        cls.net.close()

    def tearDown(self):
        self.net.clear()

    def send(self, source, target, number):
        self.sockets[source].sendto(struct.pack(">i", number), (self.net.address(target), PORT))

    def passed(self, source, target, n, **rule):
        """What arrives of 0 to n - 1 under the rule: as much as the switch says, and nothing behind it."""
        made = self.net.rule(source, target, **rule)
        before = self.net.stats()   # (the switch has read what was written before)
        for i in range(n):
            self.send(source, target, i)
        harness.until("the switch has them", lambda: sum(self.net.stats()[k] for k in ("passed", "lost")) >= self.frames + n)
        self.net.mend(made)
        after = self.net.stats()
        out = [self.receive(target) for _ in range(sum(after[k] - before[k] for k in ("passed", "duplicated")))]
        self.send(source, target, -1)
        self.assertEqual(self.receive(target), -1)
        self.frames += n + 1
        return out

    def receive(self, target):
        return struct.unpack(">i", self.sockets[target].recv(4))[0]

    def setUp(self):
        s = self.net.stats()
        self.frames = s["passed"] + s["lost"]

    def test_all_arrives(self):
        for a, b in ("xy", "yx"):
            self.assertEqual(self.passed(a, b, 20), list(range(20)))

    def test_a_cut_has_one_direction(self):
        self.assertEqual(self.passed("x", "y", 20, loss=1.0), [])
        self.net.rule("x", "y", loss=1.0)
        self.assertEqual(self.passed("y", "x", 20), list(range(20)))

    def test_a_newer_rule_hides_an_older_one(self):
        self.net.rule("x", "y", loss=1.0)
        newer = self.net.rule("x", "y")
        self.net.stats()
        self.send("x", "y", 1)
        self.assertEqual(self.receive("y"), 1)
        self.net.mend(newer)
        before = self.net.stats()["lost"]
        self.send("x", "y", 2)
        harness.until("the older cut holds again", lambda: self.net.stats()["lost"] > before)

    def test_loss(self):
        self.assertTrue(100 < len(self.passed("x", "y", 400, loss=0.5)) < 300)

    def test_twice(self):
        self.assertTrue(450 < len(self.passed("x", "y", 400, duplicate=0.5)) < 800)

    def test_out_of_order(self):
        got = self.passed("x", "y", 400, reorder=0.3)
        self.assertEqual(sorted(got), list(range(400)))
        self.assertNotEqual(got, sorted(got))

    def test_delay(self):
        self.net.rule("x", "y", delay_ms=150, jitter_ms=50)
        self.net.stats()
        since = time.monotonic()
        self.send("x", "y", 1)
        self.sockets["y"].recv(4)
        self.assertGreaterEqual(time.monotonic() - since, 0.15)


class OfABroker(unittest.TestCase):
    def setUp(self):
        import nodes  # (mounts: needs to be inside)
        self.folder = tempfile.TemporaryDirectory()
        self.net = topology.Network(1, ["b1"])
        topology.move_in("b1")
        self.b = nodes.Broker(self.net, 1, self.folder.name, {"log.segment.bytes": "1000000", "num.partitions": "4"})
        self.b.start()
        self.assertTrue(self.b.wait_started(), self.b.tail())

    def tearDown(self):
        self.b.kill()
        for d in self.b.dirs:
            os.system("umount -l %s" % d)
        self.net.close()
        self.folder.cleanup()

    def conn(self):
        return kwire.Conn(9092, host=self.b.address)

    def topic(self):
        with self.conn() as c:
            kwire.create_topic(c, "t", 4)

    def produce(self, c, partition, size=100):
        return kwire.produce(c, 9, [("t", partition, kwire.simple_batch(b"x" * size))], acks=1)[0]["error_code"]

    def state(self):
        with open("/proc/%d/stat" % self.b.process.pid) as f:
            return f.read().rpartition(")")[2].split()[0]

    def test_pause_and_kill(self):
        self.b.pause()
        harness.until("it stands still", lambda: self.state() == "T")
        with self.conn() as c:      # (the kernel takes the connection)
            sent = c.send("ApiVersions", 0)
            c.sock.settimeout(0.3)
            self.assertRaises(socket.timeout, c.read, 4)
            self.b.resume()
            c.sock.settimeout(harness.DEADLINE)
            self.assertEqual(c.receive("ApiVersions", 0, sent)["error_code"], 0)
        self.b.kill()
        self.assertFalse(self.b.running)
        self.assertRaises(OSError, self.conn)

    def test_the_wall_clock_jumps_and_nothing_else(self):
        self.topic()
        with self.conn() as c:
            for seconds in (7200, -7200, 0):
                self.b.shift_clock(seconds)
                c.call("CreateTopics", 5, timeout_ms=10000, topics=[
                    {"name": "at%d" % (seconds + 10000), "num_partitions": 1, "replication_factor": 1,
                     "configs": [{"name": "message.timestamp.type", "value": "LogAppendTime"}]}])
                a = kwire.produce(c, 9, [("at%d" % (seconds + 10000), 0, kwire.simple_batch(b"x"))], acks=1)[0]
                self.assertLess(abs(a["log_append_time_ms"] / 1000 - time.time() - seconds), 600)
        self.b.shift_clock(7200)
        self.b.stop()
        last = re.findall(r"^\S+Z", self.b.this_life(), re.M)[-1]
        self.assertGreater(last, time.strftime("%Y-%m-%dT%H:%M", time.gmtime(time.time() + 3600)))

    def test_a_full_disk(self):
        self.topic()
        with self.conn() as c:
            self.assertEqual([self.produce(c, p) for p in range(4)], [0] * 4)
            self.b.fill(0)
            self.assertEqual(os.statvfs(self.b.dirs[0]).f_bfree, 0)
            codes = [self.produce(c, p, 20000) for p in range(4)]
        on_a = [os.path.isdir(os.path.join(self.b.dirs[0], "t-%d" % p)) for p in range(4)]
        self.assertEqual([code != 0 for code in codes], on_a)
        self.assertIn(True, on_a)
        self.assertIn("No space left", self.b.this_life())
        self.b.empty()
        self.b.kill()
        self.b.start()
        self.assertTrue(self.b.wait_started(), self.b.tail())
        with self.conn() as c:
            self.assertEqual([self.produce(c, p, 20000) for p in range(4)], [0] * 4)

    def test_power(self):
        """All that was not flushed goes, or some of it."""
        self.topic()
        with self.conn() as c:
            for p in range(4):
                for _ in range(10):
                    self.assertEqual(self.produce(c, p), 0)
        self.b.kill()
        some = self.b.lose_unflushed(lambda: 0.5)
        rest = self.b.lose_unflushed(lambda: 0.0)
        self.assertTrue(some > 1000 and rest > 1000, (some, rest))
        self.b.start()
        self.assertTrue(self.b.wait_started(), self.b.tail())
        with self.conn() as c:
            self.assertEqual([kwire.list_offset(c, 5, "t", p, -1, current_leader_epoch=-1)["offset"] for p in range(4)], [0] * 4)


if __name__ == "__main__":
    why = None if os.environ.get(topology.INSIDE) else topology.unavailable()
    if why:
        print("skipped: %s" % why)
        sys.exit(77)
    topology.enter([sys.executable, "-B"] + sys.argv)
    unittest.main()
