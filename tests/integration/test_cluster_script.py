"""scripts/cluster.sh, as somebody uses it who wants to see a cluster: up, kill, restart, stop, down."""
import os
import shutil
import signal
import socket
import tempfile
import unittest

import harness

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")
SCRIPT = os.path.join(SCRIPTS, "cluster.sh")
QUICKSTART = os.path.join(SCRIPTS, "quickstart.sh")
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
        self.assertIn("brokers 2", self.script("wait"))  # broker 1's session goes on for a while: that does not count
        harness.until("broker 2 leads all", lambda: self.described(self.port + 1).count("Leader: 2") == 4)
        self.script("restart", "1")  # at once: no crash is taken for a start that failed
        self.assertEqual(self.running(), {1: True, 2: True})
        harness.until("broker 1 is in sync", lambda: self.described(self.port + 1).count("Isr: 2,1") == 4)
        self.assertIn("started", self.script("logs", "1"))
        self.script("stop", "2")
        self.assertEqual(self.running(), {1: True, 2: False})
        self.assertEqual(self.described(self.port).count("Leader: 1"), 4)

    def forget(self, *names):
        for name in names:
            del self.env[name]

    def listening(self, port):
        """Somebody else's server on the port."""
        s = socket.socket()
        self.addCleanup(s.close)
        s.bind(("127.0.0.1", port))
        s.listen()
        return s

    def test_the_folder_knows_its_ports_and_programs(self):
        up = self.script("up", "1")
        self.assertNotIn("without effect", up + self.script("logs", "1"))
        self.forget("KAFKAD_PORT", "KAFKAD_ZOOKEEPER_PORT", "KAFKAD_BIN")
        status = self.script("status")
        self.assertRegex(status, r"zookeeper +127\.0\.0\.1:%d +process" % (self.port + 3))
        self.assertRegex(status, r"broker 1 +127\.0\.0\.1:%d +process \d+, registered, controller" % self.port)
        self.assertIn("was killed", self.script("kill", "1"))
        self.assertIn("no broker", self.script("wait", fails=True))
        self.assertIn("1 runs", self.script("restart", "1"))
        self.script("wait")
        self.env["KAFKAD_PORT"] = str(self.port + 1)
        self.assertIn("has the ports %d and %d" % (self.port, self.port + 3), self.script("up", "1", fails=True))
        self.script("down")
        taken = self.listening(self.port)
        self.assertIn("port %d of 1 is in use" % self.port, self.script("restart", "1", fails=True))
        taken.close()

    def test_status_says_what_it_cannot_reach(self):
        self.script("up", "1")
        with open(os.path.join(self.env["KAFKAD_CLUSTER"], "zookeeper", "pid")) as f:
            pid = int(f.read())
        os.kill(pid, signal.SIGSTOP)
        try:
            status = self.script("status")
        finally:
            os.kill(pid, signal.SIGCONT)
        self.assertIn("does not answer", status)
        self.assertIn("ZooKeeper on 127.0.0.1:%d cannot be reached" % (self.port + 3), status)
        self.assertRegex(status, r"broker 1 .*process")

    def test_a_port_that_is_taken_is_named_with_its_variable(self):
        for port, variable in ((self.port + 3, "KAFKAD_ZOOKEEPER_PORT"), (self.port + 1, "KAFKAD_PORT")):
            taken = self.listening(port)
            out = self.script("up", "2", fails=True)
            self.assertRegex(out, r"port %d .*in use: set %s " % (port, variable))
            self.assertNotIn("starting", out)
            self.assertFalse(os.path.exists(self.env["KAFKAD_CLUSTER"]))
            taken.close()

    def test_what_is_not_there_is_named(self):
        self.assertIn("7", self.script("kill", "7", fails=True))
        self.script("status")


class Arguments(unittest.TestCase):
    """What is wrong is said before the usage, and the status is 2."""

    def refused(self, script, *args):
        r = harness.subprocess.run([script, *args], capture_output=True, text=True, timeout=60)
        self.assertEqual((r.returncode, r.stdout), (2, ""), r.stderr)
        first, empty, usage = r.stderr.split("\n", 2)
        self.assertEqual(empty, "")
        self.assertIn(os.path.basename(script), usage)
        return first

    def test_of_the_cluster(self):
        for args, said in (((), "no command"), (("frob",), "'frob'"), (("--bogus",), "'--bogus'"), (("up", "x"), "'x'"),
                           (("up", "1", "2"), "'1 2'"), (("status", "now"), "'now'"), (("wait", "1"), "'1'"),
                           (("down", "all"), "'all'"), (("kill",), "kill needs"), (("stop",), "stop needs"),
                           (("restart",), "restart needs"), (("logs",), "logs needs"), (("kill", "1", "2"), "'1 2'"),
                           (("kill", "one"), "'one'")):
            self.assertIn(said, self.refused(SCRIPT, *args))

    def test_of_the_quickstart(self):
        for args, said in ((("--bogus",), "'--bogus'"), (("frob",), "'frob'"), (("--once", "--bogus"), "'--once --bogus'")):
            self.assertIn(said, self.refused(QUICKSTART, *args))

    def test_the_quickstart_names_its_port(self):
        with socket.socket() as taken, tempfile.TemporaryDirectory(prefix="kafkad-test-") as data:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            r = harness.subprocess.run([QUICKSTART], env=dict(os.environ, KAFKAD_PORT=port, KAFKAD_DATA=data),
                                       capture_output=True, text=True, timeout=60)
        self.assertEqual(r.returncode, 1)
        self.assertRegex(r.stderr, "port %s is in use.*KAFKAD_PORT" % port)
        self.assertEqual(r.stdout, "")  # before anything is built


if __name__ == "__main__":
    unittest.main(verbosity=0)
