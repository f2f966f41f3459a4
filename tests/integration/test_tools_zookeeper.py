"""zookeeper-shell against a real server, and cluster.sh as a user calls it."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import harness
import zookeeper
from harness import program, run


class Shell(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.zk = zookeeper.ZooKeeper()
        with cls.zk.client() as c:
            c.create("/root", None)

    @classmethod
    def tearDownClass(cls):
        cls.zk.close()

    def shell(self, *words, input=None, status=0, connect=None):
        """The lines of the answer, behind the notes about the session."""
        got, out, err = run([program("zookeeper-shell"), connect or self.zk.connect + "/root"] + list(words),
                            input=input)
        self.assertEqual(got, status, out + err)
        self.err = err
        head, _, answer = out.partition("WatchedEvent state:SyncConnected type:None path:null\n")
        self.assertTrue(head.startswith("Connecting to 127.0.0.1:"), out)
        self.assertIn("WATCHER::", head)
        return answer.splitlines()

    def test_nodes_are_made_read_changed_and_removed(self):
        self.assertEqual(self.shell("create", "/a", "one"), ["Created /a"])
        self.assertEqual(self.shell("create", "/a/b"), ["Created /a/b"])
        self.assertEqual(self.shell("create", "-s", "/a/q-", "x"), ["Created /a/q-0000000001"])
        self.assertEqual(self.shell("ls", "/a"), ["[b, q-0000000001]"])
        self.assertEqual(self.shell("ls", "/a/b"), ["[]"])
        self.assertEqual(self.shell("ls", "-R", "/a"), ["/a", "/a/b", "/a/q-0000000001"])
        self.assertEqual(self.shell("get", "/a"), ["one"])
        self.assertEqual(self.shell("get", "/a/b"), ["null"])
        self.assertEqual(self.shell("set", "/a", '{"two": 2}'), [])
        self.assertEqual(self.shell("get", "/a"), ['{"two": 2}'])
        stat = self.shell("stat", "/a")
        self.assertEqual([line.split(" = ")[0] for line in stat],
                         ["cZxid", "ctime", "mZxid", "mtime", "pZxid", "cversion", "dataVersion", "aclVersion",
                          "ephemeralOwner", "dataLength", "numChildren"])
        self.assertIn("dataVersion = 1", stat)
        self.assertIn("dataLength = 10", stat)
        self.assertEqual(self.shell("get", "-s", "/a")[0], '{"two": 2}')
        self.assertEqual(self.shell("getAllChildrenNumber", "/a"), ["2"])
        self.assertEqual(self.shell("set", "-v", "7", "/a", "x", status=1), [])
        self.assertIn("version No is not valid : /a", self.err)
        self.shell("delete", "/a", status=1)
        self.assertIn("Node not empty: /a", self.err)
        self.assertEqual(self.shell("delete", "/a/b"), [])
        self.assertEqual(self.shell("deleteall", "/a"), [])
        for words in (("get", "/a"), ("ls", "/a"), ("stat", "/a"), ("delete", "/a"), ("set", "/a", "x"),
                      ("deleteall", "/a"), ("create", "/a/b")):
            self.shell(*words, status=1)
            self.assertIn("Node does not exist: " + words[1], self.err)

    def test_access_lists(self):
        self.shell("create", "/acl", "x")
        self.assertEqual(self.shell("getAcl", "/acl"), ["'world,'anyone", ": cdrwa"])
        self.assertEqual(self.shell(input=b"addauth digest me:secret\nsetAcl /acl auth::cdrwa\nget /acl\nquit\n")[-1],
                         "x")
        self.shell("get", "/acl", status=1)
        self.assertIn("Insufficient permission: /acl", self.err)
        self.assertEqual(self.shell(input=b"addauth digest me:secret\ngetAcl /acl\n")[-1], ": cdrwa")

    def test_commands_come_from_standard_input(self):
        answer = self.shell(input=b"create /in 'two words'\nget /in\n\nls /\nquit\nget /never\n")
        self.assertEqual(answer[0], "Welcome to ZooKeeper!")
        self.assertEqual(answer[1:3], ["Created /in", "two words"])
        self.assertNotIn("never", self.err)

    def test_a_watch_tells_of_changes(self):
        answer = self.shell(input=b"create /w 1\nget -w /w\nset /w 2\nget /w\nquit\n")
        self.assertIn("WatchedEvent state:SyncConnected type:NodeDataChanged path:/w", answer)

    def test_what_brokers_write(self):
        with self.zk.broker(5) as b:
            self.zk.brokers.remove(b)
            self.assertEqual(self.shell("ls", "/brokers/ids", connect=self.zk.connect), ["[5]"])
            self.assertIn('"brokerid":5', self.shell("get", "/controller", connect=self.zk.connect)[0])

    def test_wrong_calls(self):
        for args in ([], ["-timeout"], ["127.0.0.1:1", "-frobnicate"], ["127.0.0.1:1", "-zk-tls-config-file", "f"]):
            status, out, err = run([program("zookeeper-shell")] + args)
            self.assertEqual(status, 1, args)
            self.assertIn("USAGE:", err)
        status, out, err = run([program("zookeeper-shell"), "no:port:here/x/", "ls", "/"])
        self.assertEqual(status, 1)
        self.assertIn("zookeeper.connect=no:port:here/x/", err)


class OldFlags(unittest.TestCase):
    """--zookeeper of the tools of 2.x: brokers are found through it."""

    @classmethod
    def setUpClass(cls):
        cls.zk = zookeeper.ZooKeeper()
        cls.at = cls.zk.connect + "/old"
        cls.zk.broker(1, connect=cls.at)

    @classmethod
    def tearDownClass(cls):
        cls.zk.close()

    def tool(self, name, *args, status=0, at=None):
        got, out, err = run([program(name), "--zookeeper", at or self.at] + list(args), deadline=60)
        self.assertEqual(got, status, out + err)
        return out if status == 0 else out + err

    def test_topics(self):
        self.assertEqual(self.tool("kafka-topics", "--create", "--topic", "t", "--partitions", "1",
                                   "--replication-factor", "1"), "Created topic t.\n")
        self.assertEqual(self.tool("kafka-topics", "--list"), "t\n")
        self.assertEqual(self.tool("kafka-topics", "--describe", "--topic", "t"),
                         "Topic:t\tPartitionCount:1\tReplicationFactor:1\tConfigs:\n"
                         "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n")
        out = self.tool("kafka-topics", "--alter", "--topic", "t", "--partitions", "2", "--config", "retention.ms=5000")
        self.assertRegex(out, r"^WARNING: .*\n .*\nUpdated config for topic t\.\nWARNING: .*\nAdding partitions succeeded!\n$")
        self.assertTrue(self.tool("kafka-topics", "--describe", "--topic", "t").startswith(
            "Topic:t\tPartitionCount:2\tReplicationFactor:1\tConfigs:retention.ms=5000\n"))
        self.tool("kafka-topics", "--alter", "--topic", "t", "--delete-config", "retention.ms")
        self.assertIn("Configs:\n", self.tool("kafka-topics", "--describe", "--topic", "t"))
        self.assertRegex(self.tool("kafka-topics", "--delete", "--topic", "t"), r"^Topic t is marked for deletion\.\nNote: ")
        self.assertEqual(self.tool("kafka-topics", "--list"), "\n")

    def test_configs(self):
        self.tool("kafka-topics", "--create", "--topic", "c", "--partitions", "1", "--replication-factor", "1")
        self.assertIn("Completed updating config for topic c.", self.tool(
            "kafka-configs", "--alter", "--entity-type", "topics", "--entity-name", "c", "--add-config", "retention.ms=1"))
        self.assertIn("retention.ms=1", self.tool("kafka-configs", "--describe", "--entity-type", "topics",
                                                  "--entity-name", "c"))
        self.tool("kafka-topics", "--delete", "--topic", "c")

    def test_a_wrong_port_is_told_before_the_time_is_over(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))  # bound, and does not listen
            at = "127.0.0.1:%d" % nobody.getsockname()[1]
            for words in (["kafka-configs", "--zookeeper", at, "--describe", "--entity-type", "topics"],
                          ["kafka-topics", "--zookeeper", at, "--list"], ["zookeeper-shell", at, "ls", "/"]):
                p = subprocess.Popen([program(words[0])] + words[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                try:
                    told = next((line for line in p.stderr if at in line and "WARN" in line), None)
                    self.assertIsNotNone(told, words)
                    self.assertIn("refused", told)
                    self.assertIsNone(p.poll())  # it goes on trying
                finally:
                    p.kill()
                    p.communicate()

    def test_what_is_missing_is_said(self):
        for args, words in ((["--create", "--topic", "x", "--replication-factor", "1"], "partitions"),
                            (["--create", "--topic", "x", "--partitions", "1"], "replication-factor")):
            self.assertIn("Missing required argument \"[%s]\"" % words, self.tool("kafka-topics", *args, status=1))
        self.assertIn("no broker is registered there", self.tool("kafka-topics", "--list", status=1,
                                                                 at=self.zk.connect + "/typo"))
        self.assertIn("a port must be", self.tool("kafka-topics", "--list", status=1, at="h:x"))
        with self.zk.client() as c:
            self.assertIsNone(c.stat("/typo"))


class ClusterScript(unittest.TestCase):
    """scripts/cluster.sh with a build that is there."""

    def script(self, *words, status=0):
        done = subprocess.run([os.path.join(harness.ROOT, "scripts", "cluster.sh")] + list(words), env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=180)
        out = done.stdout.decode()
        self.assertEqual(done.returncode, status, out)
        return out

    def test_a_life(self):
        folder = tempfile.mkdtemp(prefix="kafkad-test-cluster-")
        while True:
            broker, zk = zookeeper.free_ports(2)
            if not broker <= zk < broker + 3:
                break
        self.env = dict(os.environ, KAFKAD_BIN=harness.bin_dir(), KAFKAD_CLUSTER=folder, KAFKAD_PORT=str(broker),
                        KAFKAD_ZOOKEEPER_PORT=str(zk))
        try:
            self.assertIn("broker 2", self.script("up", "2"))
            status = self.script("status")
            self.assertRegex(status, r"zookeeper +127\.0\.0\.1:%d +process \d+" % zk)
            self.assertRegex(status, r"broker 1 +127\.0\.0\.1:%d +process \d+, registered" % broker)
            self.assertEqual(status.count("controller"), 1)
            tool = [program("kafka-topics"), "--bootstrap-server", "127.0.0.1:%d" % broker]
            self.assertEqual(run(tool + ["--create", "--topic", "t", "--partitions", "2"])[0], 0)
            self.assertIn("was killed", self.script("kill", "2"))
            self.assertRegex(self.script("status"), r"broker 2 .*not running")
            self.assertIn("2 runs", self.script("restart", "2"))
            self.assertIn("KafkaServer id=2] started", self.script("logs", "2"))
            self.assertIn("broker 3", self.script("up", "3"))
            self.assertIn("is stopped", self.script("stop", "1"))
            self.assertIn("there is no 9", self.script("kill", "9", status=1))
            self.assertIn("Try:", self.script("up", "3"))
            self.assertIn("the data is in", self.script("down"))
            self.assertEqual(self.script("status").count("not running"), 4)
            self.script("up", "1")
            harness.until("the broker knows its topics again", lambda: "t\n" in run(tool + ["--list"])[1])
        finally:
            self.script("down", "--delete")
        self.assertFalse(os.path.exists(folder))
        for words in ((), ("fly",), ("up", "0"), ("up", "x"), ("kill",), ("down", "now")):
            self.script(*words, status=2)
        self.assertIn("./scripts/cluster.sh up [N]", self.script("--help"))

    def test_a_zookeeper_that_starts_takes_a_connection_and_keeps_silent(self):
        """As ZooKeeper does now and then in its first moments: asked again, it answers."""
        folder = tempfile.mkdtemp(prefix="kafkad-test-cluster-")
        self.addCleanup(shutil.rmtree, folder)
        os.makedirs(os.path.join(folder, "bin"))
        broker, zk = zookeeper.free_ports(2)
        stand_ins = {"zkServer.sh": "#!/bin/sh\nexec %s/bin/java\n" % folder,
                     "kafkad": "#!/bin/sh\necho '[KafkaServer id=1] started'\nwhile :; do sleep 0.1; done\n",
                     "java": "#!%s\nimport socket\nheld = []\ns = socket.create_server(('127.0.0.1', %d))\n"
                             "while True:\n    held.append(s.accept()[0])\n    if len(held) > 1:\n"
                             "        held[-1].sendall(b'Mode: standalone\\n')\n        held.pop().close()\n"
                             % (sys.executable, zk)}
        for name, text in stand_ins.items():
            with open(os.path.join(folder, "bin", name), "w") as f:
                f.write(text)
            os.chmod(f.name, 0o755)
        self.env = dict(os.environ, KAFKAD_BIN=os.path.join(folder, "bin"), ZOOKEEPER_HOME=folder,
                        KAFKAD_CLUSTER=os.path.join(folder, "cluster"), KAFKAD_PORT=str(broker),
                        KAFKAD_ZOOKEEPER_PORT=str(zk))
        try:
            self.assertIn("broker 1", self.script("up", "1"))
        finally:
            self.script("down", "--delete")


if __name__ == "__main__":
    harness.main()
