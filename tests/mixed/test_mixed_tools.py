"""Apache's own tools against kafkad: what operators have in their fingers and scripts, on a cluster of kafkad's brokers
and on its files."""
import glob
import json
import os
import re
import subprocess
import tempfile
import time
import unittest

import apache
import harness


class Tools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = apache.Mixed({1: "kafkad", 2: "kafkad", 3: "kafkad"})
        cls.c.create_topic("t", assignment=[[1, 2], [2, 3], [3, 1]], configs={"segment.bytes": 20000})
        out = cls.c.tool("verifiable-producer", "--topic", "t", "--max-messages", 600, "--throughput", -1, "--repeating-keys", 20)
        assert '"acked":600' in out.splitlines()[-1], out

    @classmethod
    def tearDownClass(cls):
        cls.c.zk.close()

    def run_tool(self, name, *args, **more):
        return self.c.tool(name, *args, **more)

    def test_topics(self):
        self.run_tool("topics", "--create", "--topic", "made", "--partitions", 2, "--replication-factor", 3, "--config",
                      "retention.ms=1000000")
        out = self.run_tool("topics", "--describe", "--topic", "made")
        self.assertRegex(out, r"Topic: made\tTopicId: \S{22}\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: .*retention.ms=1000000")
        self.run_tool("topics", "--alter", "--topic", "made", "--partitions", 4)
        self.assertEqual(len(re.findall("Partition: ", self.run_tool("topics", "--describe", "--topic", "made"))), 4)
        self.run_tool("topics", "--delete", "--topic", "made")
        self.assertEqual([n for n in self.run_tool("topics", "--list").split() if n == "made"], [])
        for sick in ("--under-replicated-partitions", "--under-min-isr-partitions", "--unavailable-partitions"):
            self.assertEqual(self.run_tool("topics", "--describe", sick, "--topic", "t"), "")  # others have one replica

    def test_settings(self):
        def described(kind, name):
            return self.run_tool("configs", "--describe", "--entity-type", kind, "--entity-name", name)
        for kind, name, pair in (("topics", "t", "retention.bytes=12345678"), ("brokers", "1", "log.cleaner.threads=2"),
                                 ("clients", "someone", "producer_byte_rate=1048576"),
                                 ("users", "one", "consumer_byte_rate=1048576")):
            self.run_tool("configs", "--alter", "--entity-type", kind, "--entity-name", name, "--add-config", pair)
            key, value = pair.split("=")
            self.assertRegex(described(kind, name), r"%s=%s(\.0)?\b" % (re.escape(key), value))
            self.run_tool("configs", "--alter", "--entity-type", kind, "--entity-name", name, "--delete-config", key)
            self.assertNotIn(pair, described(kind, name))
        self.assertIn("Default config", self.run_tool("configs", "--describe", "--entity-type", "brokers", "--entity-default"))

    def test_groups(self):
        out = self.run_tool("console-consumer", "--topic", "t", "--group", "g", "--from-beginning", "--max-messages", 600)
        self.assertEqual(sorted(int(v) for v in out.split()), list(range(600)))
        about = ("--timeout", 60000, "--group", "g")
        self.assertIn("g", self.run_tool("consumer-groups", "--list", "--timeout", 60000).split())
        out = self.run_tool("consumer-groups", "--describe", *about)
        self.assertEqual(sum(int(m) for m in re.findall(r"^g +t +\d +(\d+) +\d+ +0 ", out, re.M)), 600)
        self.assertRegex(self.run_tool("consumer-groups", "--describe", "--state", *about), r"(?m)^g .* Empty +0$")
        out = self.run_tool("consumer-groups", "--reset-offsets", "--to-earliest", "--topic", "t", "--execute", *about)
        self.assertEqual(len(re.findall(r"\bg +t +\d +0\b", out)), 3, out)
        self.run_tool("consumer-groups", "--delete-offsets", "--topic", "t:0", *about)
        self.assertNotRegex(self.run_tool("consumer-groups", "--describe", *about), r"(?m)^g +t +0 ")
        self.run_tool("consumer-groups", "--delete", *about)
        self.assertNotIn("g", self.run_tool("consumer-groups", "--list", "--timeout", 60000).split())

    def test_reassignment(self):
        self.c.create_topic("moved", assignment=[[1, 2], [1, 2]])
        with tempfile.TemporaryDirectory() as folder:
            wanted, topics = os.path.join(folder, "wanted"), os.path.join(folder, "topics")
            with open(topics, "w") as f:
                json.dump({"version": 1, "topics": [{"topic": "moved"}]}, f)
            out = self.run_tool("reassign-partitions", "--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,2,3")
            self.assertIn('"replicas":[1,2]', out)
            with open(wanted, "w") as f:
                json.dump({"version": 1, "partitions": [{"topic": "moved", "partition": p, "replicas": [3, 2]} for p in (0, 1)]}, f)
            out = self.run_tool("reassign-partitions", "--execute", "--reassignment-json-file", wanted, "--throttle", 10000000)
            self.assertIn("Successfully started partition reassignments", out)
            harness.until("it is moved", lambda: "Reassignment of partition moved-0 is completed" in self.run_tool(
                "reassign-partitions", "--verify", "--reassignment-json-file", wanted), 60)
            self.assertIn("No partition reassignments found", self.run_tool("reassign-partitions", "--list"))
            throttled = self.run_tool("configs", "--describe", "--entity-type", "topics", "--entity-name", "moved")
            self.assertNotIn("throttled", throttled)
            for p in (0, 1):
                self.assertEqual(sorted(self.c.state("moved", p)["isr"]), [2, 3])
            self.run_tool("leader-election", "--election-type", "preferred", "--all-topic-partitions")
            for p in (0, 1):
                self.c.wait_state("moved", p, lambda s: s["leader"] == 3)

    def test_offsets_and_records(self):
        out = self.run_tool("get-offsets", "--topic", "t", "--time", -1)
        self.assertEqual(sum(int(line.split(":")[2]) for line in out.split()), 600)
        self.c.create_topic("cut", replication=3)
        self.run_tool("console-producer", "--topic", "cut", "--property", "parse.key=true", input="a\t1\nb\t2\nc\t3\n")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump({"version": 1, "partitions": [{"topic": "cut", "partition": 0, "offset": 2}]}, f)
            f.flush()
            self.assertIn("low_watermark: 2", self.run_tool("delete-records", "--offset-json-file", f.name))
        self.assertEqual(self.run_tool("get-offsets", "--topic", "cut", "--time", -2).strip(), "cut:0:2")
        out = self.run_tool("console-consumer", "--topic", "cut", "--from-beginning", "--max-messages", 1, "--property", "print.key=true")
        self.assertEqual(out.split(), ["c", "3"])

    def test_log_dirs(self):
        out = self.run_tool("log-dirs", "--describe", "--topic-list", "t")
        told = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
        found = sorted((b["broker"], p["partition"]) for b in told["brokers"] for d in b["logDirs"] for p in d["partitions"])
        self.assertEqual(found, [(b, "t-%d" % p) for b, p in ((1, 0), (1, 2), (2, 0), (2, 1), (3, 1), (3, 2))])
        for b in told["brokers"]:
            for d in b["logDirs"]:
                self.assertIsNone(d["error"])

    def test_replica_verification(self):
        """It runs until it is stopped: two reports are waited for."""
        command = apache.java(apache.VERSION, "org.apache.kafka.tools.ReplicaVerificationTool", apache.SMALL_JVM, "ERROR")
        p = subprocess.Popen(command + ["--broker-list", self.c.bootstrap, "--topics-include", "t", "--report-interval-ms", "500"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            reports = []
            end = time.monotonic() + 60
            for raw in p.stdout:
                if b"max lag is" in raw:
                    reports.append(raw.decode())
                if len(reports) == 3 or time.monotonic() > end:
                    break
        finally:
            p.kill()
            p.wait()
            p.stdout.close()
        self.assertEqual(len(reports), 3)
        self.assertRegex(reports[-1], r"max lag is 0 for partition \S+ at offset \d+ among 3 partitions")

    def test_versions(self):
        """Apache's client can speak to every broker of the cluster, and sees nothing that it does not know."""
        out = self.run_tool("broker-api-versions")
        self.assertEqual(len(re.findall(r"^127.0.0.1:\d+ \(id: \d rack: null\) -> \(", out, re.M)), 3)
        self.assertNotRegex(out, r"UNKNOWN\(")
        for name in ("Produce", "Fetch", "LeaderAndIsr", "AlterPartition", "ControlledShutdown", "OffsetForLeaderEpoch"):
            self.assertRegex(out, r"\t%s\(\d+\): \d+( to \d+)? \[usable: \d+\]" % name)

    def test_files(self):
        """What kafkad has written is read by Apache's kafka-dump-log without a complaint."""
        self.run_tool("console-consumer", "--topic", "t", "--group", "dumped", "--from-beginning", "--max-messages", 600)
        self.c.create_topic("files", assignment=[[1], [1]], configs={"segment.bytes": 20000, "min.insync.replicas": 1,
                                                                    "index.interval.bytes": 1000})
        apache.run_tool("producer-perf-test", "--topic", "files", "--num-records", 2000, "--record-size", 100, "--throughput", -1,
                        "--producer-props", "bootstrap.servers=" + self.c.bootstrap, "batch.size=1000")
        data = self.c.brokers[1].data
        harness.until("the group's offsets are there", lambda: any(
            os.path.getsize(f) for i in (1, 2, 3) for f in glob.glob(self.c.brokers[i].data + "/__consumer_offsets-*/*.log")))

        def dump(files, *options):
            return apache.run_tool("dump-log", "--files", ",".join(sorted(files)), *options)
        logs = glob.glob(data + "/files-0/*.log")
        out = dump(logs, "--deep-iteration", "--print-data-log")
        self.assertEqual([int(n) for n in re.findall(r"^\| offset: (\d+) ", out, re.M)],
                         list(range(len(re.findall(r"^\| offset: ", out, re.M)))))
        self.assertNotRegex(out, r"isvalid: false|Found|corrupt")
        rolled = glob.glob(data + "/files-*/*.index") + glob.glob(data + "/files-*/*.timeindex")
        self.assertGreater(len(rolled), 6)
        active = {max(glob.glob(d + "/*.index")) for d in glob.glob(data + "/files-*")}
        out = dump([f for f in rolled if f not in active and os.path.getsize(f) and f.endswith(".index")], "--index-sanity-check")
        self.assertNotRegex(out, r"(?i)mismatch|corrupt|fail|exception")
        out = dump(rolled, "--verify-index-only")
        self.assertNotRegex(out, r"(?i)found mismatch|found timestamp mismatch|out of order|exception")
        snapshots = glob.glob(data + "/files-*/*.snapshot")
        self.assertRegex(dump(snapshots), r"producerId: \d+ producerEpoch: 0 .*lastSequence|producerId: \d+")
        found = ""
        for i in (1, 2, 3):
            files = [f for f in glob.glob(self.c.brokers[i].data + "/__consumer_offsets-*/*.log") if os.path.getsize(f)]
            if files:
                found += dump(files, "--offsets-decoder")
        self.assertIn('"group":"dumped"', found)
        self.assertRegex(found, r'"group":"dumped".*"topic":"t".*"partition":0|offset_commit')


if __name__ == "__main__":
    apache.main()
