"""Tools whose work begins with a second broker: elections, copies that are compared, brokers that are away."""
import glob
import os
import signal
import struct
import subprocess
import tempfile
import unittest

import harness
import kwire
from cluster import Cluster
from harness import until
from tool_test import run_tool


class ClusterToolsTest(unittest.TestCase):
    def tool(self, c, name, *args, status=0, flag="--bootstrap-server"):
        at = ",".join(c.broker(i).address for i in c.running())
        r = run_tool(name, flag, at, *args)
        self.assertEqual(r.status, status, r.text + r.err)
        return r

    def test_preferred_leaders_come_back(self):
        with Cluster(2, overrides={"auto.leader.rebalance.enable": "false"}) as c:
            c.create_topic("t", partitions=1, replication=2, assignment=[[1, 2]])
            c.create_topic("u", partitions=1, replication=2, assignment=[[2, 1]])
            c.wait_isr("t", 1, 2)
            self.assertEqual(self.tool(c, "kafka-leader-election", "--election-type", "preferred",
                                       "--all-topic-partitions").text, "")
            c.broker(1).stop()
            c.wait_state("t", 0, lambda s: s["leader"] == 2)
            r = self.tool(c, "kafka-topics", "--describe", "--topic", "t", "--under-replicated-partitions")
            self.assertEqual(len(r.lines), 1)
            r = self.tool(c, "kafka-leader-election", "--election-type", "preferred", "--topic", "t", "--partition", 0, status=1)
            self.assertIn("PreferredLeaderNotAvailableException", r.text)
            c.broker(1).start()
            c.wait_brokers()
            c.wait_isr("t", 1, 2)
            c.wait_isr("u", 1, 2)
            r = self.tool(c, "kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")
            self.assertEqual(r.text, "Successfully completed leader election (PREFERRED) for partitions t-0\n")
            self.assertEqual(c.leader("t", 0), 1)
            self.assertEqual(self.tool(c, "kafka-topics", "--describe", "--under-replicated-partitions").text, "")

    def test_preferred_leaders_come_back_by_the_tool_of_2(self):
        name = "kafka-preferred-replica-election"
        with Cluster(2, overrides={"auto.leader.rebalance.enable": "false"}) as c, tempfile.NamedTemporaryFile("w") as f:
            f.write('{"partitions": [{"topic": "t", "partition": 0}, {"topic": "gone", "partition": 7}]}')
            f.flush()
            c.create_topic("t", partitions=1, replication=2, assignment=[[1, 2]])
            c.wait_isr("t", 1, 2)

            def move_away():
                c.broker(1).stop()
                c.wait_state("t", 0, lambda s: s["leader"] == 2)
                c.broker(1).start()
                c.wait_brokers()
                c.wait_isr("t", 1, 2)
            move_away()
            r = self.tool(c, name)
            self.assertEqual(r.text, "Successfully completed preferred replica election for partitions t-0\n")
            self.assertEqual(c.leader("t", 0), 1)
            move_away()
            r = run_tool(name, "--zookeeper", c.zk.connect, "--path-to-json-file", f.name)
            self.assertEqual((r.status, r.text), (0,
                "Skipping preferred replica leader election for partition gone-7 since it doesn't exist\n"
                "Created preferred replica election path with t-0\n"
                "Successfully started preferred replica election for partitions Set(t-0)\n"), r.err)
            c.wait_state("t", 0, lambda s: s["leader"] == 1)
            move_away()
            r = run_tool(name, "--zookeeper", c.zk.connect)
            self.assertEqual(r.status, 0, r.err)
            self.assertTrue(r.lines[-1].startswith("Successfully started preferred replica election for partitions Set("))
            c.wait_state("t", 0, lambda s: s["leader"] == 1)
            with c.zk.client() as z:
                until("the controller takes the node away", lambda: z.stat("/admin/preferred_replica_election") is None)

    def test_flags_of_the_tool_of_2(self):
        for args in (("--admin.config", "f"), ("--bootstrap-server", "a:1", "--zookeeper", "b:2")):
            r = run_tool("kafka-preferred-replica-election", *args)
            self.assertEqual(r.status, 1)
            self.assertIn("Exactly one of --bootstrap-server or --zookeeper", r.err)

    def verify(self, c, *args):
        at = ",".join(c.broker(i).address for i in c.running())
        return subprocess.Popen([harness.program("kafka-replica-verification"), "--broker-list", at, "--report-interval-ms",
                                 "100", "--max-wait-ms", "50", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def line(self, p, pattern):
        seen = []
        for _ in range(300):
            seen.append(p.stdout.readline())
            if not seen[-1]:
                self.fail("it has ended: " + p.stderr.read())
            if pattern in seen[-1]:
                return seen[-1]
        self.fail("no line with %s, but %s" % (pattern, seen[-10:]))

    def test_copies_are_compared(self):
        with Cluster(2) as c:
            c.create_topic("t", partitions=2, replication=2, assignment=[[1, 2], [2, 1]])
            c.wait_isr("t", 2, 2)
            for p in (0, 1):
                with c.conn(c.leader("t", p)) as conn:
                    for i in range(5):
                        kwire.produce_one(conn, "t", p, kwire.simple_batch(b"value %d" % i, b"more"))
            p = self.verify(c, "--topics-include", "t", "--time", "-2")
            try:
                self.assertRegex(p.stdout.readline(),
                                 r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}: verification process is started$")
                self.assertRegex(self.line(p, "max lag is 0 for partition t-0 at offset 10"), "among 2 partitions$")
                p.send_signal(signal.SIGINT)
                p.communicate(timeout=60)
                self.assertEqual(p.returncode, 0)
            finally:
                p.kill()
                p.communicate()
            # a copy that is changed behind the broker's back, with a right checksum of its own
            c.broker(2).stop()
            path = glob.glob(os.path.join(c.broker(2).data, "t-0", "*.log"))[0]
            with open(path, "r+b") as f:
                data = f.read()
                size = 12 + struct.unpack_from(">i", data, 8)[0]
                batch = bytearray(data[size:2 * size])
                batch[-2] ^= 1
                batch[17:21] = struct.pack(">I", kwire.crc32c(bytes(batch[21:])))
                f.seek(size)
                f.write(batch)
            c.broker(2).start()
            c.wait_brokers()
            until("both copies are there", lambda: len(c.state("t", 0)["isr"]) == 2)
            p = self.verify(c, "--topics-include", "t", "--time", "-2")
            try:
                self.assertRegex(self.line(p, "unmatched checksum"),
                                 r"partition t-0 has unmatched checksum at offset 3; replica 1's checksum \d+; replica 2's "
                                 r"checksum \d+$")
                self.line(p, "max lag is 0")  # it goes on
            finally:
                p.kill()
                p.communicate()

    def test_flags_of_the_verification(self):
        with harness.Broker() as b:
            r = run_tool("kafka-replica-verification", "--broker-list", b.address, "--topics-include", "none")
            self.assertEqual(r.status, 1)
            self.assertIn("ERROR No topics found. none, if specified, is either filtering out all topics", r.err)
            r = run_tool("kafka-replica-verification")
            self.assertEqual(r.status, 1)
            r = run_tool("kafka-replica-verification", "--broker-list", b.address, "--topics-include", "a",
                         "--topic-white-list", "b")
            self.assertIn("can't be used with", r.err)


if __name__ == "__main__":
    harness.main()
