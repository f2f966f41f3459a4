"""docs/operations.md, its section SASL, done as it is written there: settings and commands are taken from the page."""
import os
import re
import subprocess
import tempfile
import unittest

import harness
import kwire
import saslwire
import zookeeper

with open(os.path.join(harness.ROOT, "docs", "operations.md")) as page:
    SECTION = page.read().split("\n## SASL\n")[1].split("\n## ")[0]


def blocks(kind):
    return re.findall(r"^```%s\n(.*?)^```$" % kind, SECTION, re.M | re.S)


def settings(name):
    """The properties blocks of the file of that name, as dictionaries."""
    found = [b for b in blocks("properties") if b.startswith("# %s\n" % name)]
    return [dict(line.split("=", 1) for line in b.splitlines()[1:]) for b in found]


class Page(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_lines(self, text, names):
        out = ""
        for line in text.splitlines():
            for name, value in names.items():
                line = line.replace(name, value)
            env = dict(os.environ, PATH=harness.bin_dir() + ":" + os.environ["PATH"])
            p = subprocess.run(["bash", "-c", line], cwd=self.folder.name, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
            self.assertEqual(p.returncode, 0, line + "\n" + p.stdout.decode())
            out += p.stdout.decode()
        return out

    def test_scram(self):
        scram, _ = settings("server.properties")
        first, protected, later = blocks("sh")
        with open(harness.ROOT + "/docs/operations.md") as page:
            keys = re.search(r"^## Protecting what lies in ZooKeeper\n\n```\n(.*?)^```", page.read(), re.M | re.S).group(1)
        with open(os.path.join(self.folder.name, "zookeeper.properties"), "w") as f:
            f.write(keys)
        with open(os.path.join(self.folder.name, "admin.properties"), "w") as f:
            f.write("\n".join("%s=%s" % pair for pair in settings("admin.properties")[0].items()) + "\n")
        with zookeeper.ZooKeeper() as zk:
            names = {"zk1:2181": zk.connect}
            self.run_lines(protected, {"zk1:2181": zk.connect + "/apart"})  # a folder of its own, which the command makes
            with zk.client() as c, self.assertRaises(zookeeper.ZkError) as refused:
                c.get("/apart/config/users/admin")
            self.assertEqual(refused.exception.code, zookeeper.NO_AUTH)
            self.run_lines(first, names)
            own = dict(scram, listeners="SASL_PLAINTEXT://127.0.0.1:0")
            own.update({"offsets.topic.replication.factor": "1", "group.initial.rebalance.delay.ms": "0"})
            a, b = zk.broker(1, own), zk.broker(2, own)
            names["b1:9092"] = "127.0.0.1:%d" % a.ports["SASL_PLAINTEXT"]
            out = self.run_lines(later, names)
            self.assertIn("SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-512=iterations=8192\n", out)
            self.assertIn("\nhello\n", out)
            with kwire.Conn(b.ports["SASL_PLAINTEXT"]) as k:
                saslwire.login(k, "SCRAM-SHA-512", "admin", "admin-secret")
            with kwire.Conn(a.ports["SASL_PLAINTEXT"]) as k, self.assertRaises(saslwire.Refused):
                saslwire.login(k, "SCRAM-SHA-512", "alice", "alice-secret")
            said, = re.findall(r"^WARN .*: (authentication failed: .*)$", SECTION, re.M)
            a.wait_line(re.escape(said.replace("wrong password", "no credential")))

    def test_plain(self):
        scram, plain = settings("server.properties")
        own = dict(scram, **plain)
        own["listeners"] = "SASL_PLAINTEXT://127.0.0.1:0"
        with harness.Broker(overrides=own) as b, kwire.Conn(b.ports["SASL_PLAINTEXT"]) as k:
            saslwire.login(k, "PLAIN", "alice", "alice-secret")
            k.call("Metadata", 9, topics=[])


if __name__ == "__main__":
    harness.main()
