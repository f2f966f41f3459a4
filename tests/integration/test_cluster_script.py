"""scripts/cluster.sh, as somebody uses it who wants to see a cluster: up, kill, restart, stop, down."""
import os
import shutil
import socket
import tempfile
import unittest

import harness

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "cluster.sh")
ZOOKEEPER = os.path.join(os.environ.get("ZOOKEEPER_HOME", "/usr/share/zookeeper"), "bin", "zkServer.sh")


def free_ports(n):
    """The first of n ports in a row that are free now."""
    for first in range(20000 + os.getpid() % 9000, 32000, n):
        held = []
        try:
            for port in range(first, first + n):
                s = socket.socket()
                held.append(s)
                s.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for s in held:
                s.close()
    raise AssertionError("no free ports")


@unittest.skipUnless(os.path.exists(ZOOKEEPER), "ZooKeeper is not installed")
class ClusterScript(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kafkad-test-")
        self.port = free_ports(4)
        self.env = dict(os.environ, KAFKAD_CLUSTER=os.path.join(self.folder, "cluster"), KAFKAD_BIN=harness.bin_dir(),
                        KAFKAD_PORT=str(self.port), KAFKAD_ZOOKEEPER_PORT=str(self.port + 3))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.addCleanup(self.script, "down", "--delete")

    def script(self, *args, fails=False):
        r = harness.subprocess.run([SCRIPT, *args], env=self.env, capture_output=True, text=True, timeout=120)
        self.assertEqual(r.returncode != 0, fails, (args, r.stdout, r.stderr))
        return r.stdout + r.stderr

    def running(self):
        """{number: runs} of the brokers"""
        lines = [line.split() for line in self.script("status").splitlines() if line.startswith("broker")]
        return {int(words[1]): words[3] == "process" for words in lines}

    def described(self, port):
        return harness.run([harness.program("kafka-topics"), "--bootstrap-server", "127.0.0.1:%d" % port, "--describe",
                            "--topic", "t"])[1]

    def test_a_broker_dies_and_returns(self):
        self.script("up", "2")
        self.assertEqual(self.running(), {1: True, 2: True})
        harness.run([harness.program("kafka-topics"), "--bootstrap-server", "127.0.0.1:%d" % self.port, "--create",
                     "--topic", "t", "--partitions", "4", "--replication-factor", "2"])
        self.assertIn("was killed", self.script("kill", "1"))
        self.assertEqual(self.running(), {1: False, 2: True})
        harness.until("broker 2 leads all", lambda: self.described(self.port + 1).count("Leader: 2") == 4)
        self.script("restart", "1")  # at once: no crash is taken for a start that failed
        self.assertEqual(self.running(), {1: True, 2: True})
        harness.until("broker 1 is in sync", lambda: self.described(self.port + 1).count("Isr: 2,1") == 4)
        self.assertIn("started", self.script("logs", "1"))
        self.script("stop", "2")
        self.assertEqual(self.running(), {1: True, 2: False})
        self.assertEqual(self.described(self.port).count("Leader: 1"), 4)

    def test_what_is_not_there_is_named(self):
        self.assertIn("7", self.script("kill", "7", fails=True))
        self.script("status")


if __name__ == "__main__":
    unittest.main(verbosity=0)
