"""Exactly once in a cluster: docs/examples/exactly_once reads, changes and writes while the brokers that coordinate its
transactions and its group, and lead its partitions, are killed and come back; and it itself is."""
import os
import shutil
import subprocess
import tempfile
import unittest

import harness
import tool_test
from cluster import Cluster
from test_library import cache_has
from txn_checks import compile_example

SETTINGS = {"transaction.state.log.replication.factor": "3", "transaction.state.log.min.isr": "2",
            "transaction.state.log.num.partitions": "3", "offsets.topic.num.partitions": "3",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}


@unittest.skipIf(cache_has("ASAN:BOOL=ON") or cache_has("TSAN:BOOL=ON"), "sanitizers cannot be linked to from outside")
class KilledCoordinatorsTest(unittest.TestCase):
    ROUNDS, EACH, KEYS = 4, 400, 7

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kafkad-test-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.program = compile_example(self.folder)
        self.sent, self.worker = 0, None

    def keep_ports(self, c):
        """Brokers come back where they were: a client that had no reason to ask meanwhile would not find them."""
        for i in c.running():
            c.broker(i).overrides["listeners"] = "PLAINTEXT://127.0.0.1:%d" % c.broker(i).port

    def bootstrap(self, c):
        return ",".join(c.broker(i).address for i in c.running())

    def feed(self, c, n):
        lines = "".join("k%d\tk%d-%d\n" % (i % self.KEYS, i % self.KEYS, i // self.KEYS)
                        for i in range(self.sent, self.sent + n))
        r = tool_test.run_tool("kafka-console-producer", "--bootstrap-server", self.bootstrap(c), "--topic", "source",
                               "--property", "parse.key=true", "--request-required-acks", "all", "--message-send-max-retries",
                               1000000, "--producer-property", "enable.idempotence=true", input=lines, deadline=120)
        self.assertEqual((r.status, "ERROR" in r.err), (0, False), r.err)
        self.sent += n

    def start_worker(self, c):
        with open(os.path.join(self.folder, "err"), "a") as err:
            self.worker = subprocess.Popen([self.program, self.bootstrap(c), "job", "source", "target", "1000000"],
                                           stdout=subprocess.DEVNULL, stderr=err)

    def read(self, c, n, deadline):
        r = tool_test.run_tool("kafka-console-consumer", "--bootstrap-server", self.bootstrap(c), "--topic", "target",
                               "--from-beginning", "--isolation-level", "read_committed", "--max-messages", n, "--timeout-ms",
                               deadline * 1000, "--property", "print.partition=true", deadline=deadline + 30)
        with open(os.path.join(self.folder, "err")) as f:
            self.assertEqual(len(r.lines), n, "%s\n%s\nworker %s: %s" % (r.lines[-3:], r.err, self.worker.poll(), f.read()[-3000:]))
        return r.lines

    def check(self, lines):
        """Each once; those of a key in their order."""
        seen = {}
        for line in lines:
            part, value = line.split("\t")
            key, number = value.split("-")
            seen.setdefault(key, []).append(int(number))
        expected = {}
        for i in range(self.sent):
            expected.setdefault("K%d" % (i % self.KEYS), []).append(i // self.KEYS)
        self.assertEqual(seen, expected)

    def test_each_record_once(self):
        with Cluster(3, overrides=SETTINGS) as c:
            self.keep_ports(c)
            for t in ("source", "target"):
                c.create_topic(t, partitions=3, replication=3)
                c.wait_isr(t, 3, 3)
            self.start_worker(c)
            try:
                self.feed(c, self.EACH)
                for i in range(self.ROUNDS):
                    victim = c.leader("__transaction_state", i % 3) if i % 2 else c.leader("target", i % 3)
                    c.broker(victim).kill()
                    self.feed(c, self.EACH)
                    if i == 1: # in the midst of it
                        self.worker.kill()
                        self.worker.wait()
                        self.start_worker(c)
                    c.broker(victim).start()
                    c.wait_brokers()
                    c.wait_isr("target", 3, 3)
                    self.feed(c, self.EACH)
                lines = self.read(c, self.sent, 120)
                self.assertIsNone(self.worker.poll())
            finally:
                self.worker.kill()
                self.worker.wait()
            self.check(lines)
            self.assertEqual(sorted(self.read(c, self.sent, 60)), sorted(lines))


if __name__ == "__main__":
    unittest.main(verbosity=2)
