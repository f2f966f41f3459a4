"""kafka-reassign-partitions: every action and what it prints, on three brokers with two log dirs each. Moves are held in the
middle by a throttle whose window is so long that what has passed is counted, not timed."""
import json
import os
import shutil
import signal
import tempfile
import unittest

import harness
import kwire
from cluster import Cluster, History
from harness import until
from tool_test import run_tool

WINDOW_S = 1000          # of throttles
FETCH = 20000            # bytes of a replica's fetch
SAVE = "Save this to use as the --reassignment-json-file option during rollback"
MUST_VERIFY = ("Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is "
               "removed.")
RATES = ["leader.replication.throttled.rate", "follower.replication.throttled.rate"]
DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LISTS = ["leader.replication.throttled.replicas", "follower.replication.throttled.replicas"]


def document(parts, dirs=None):
    """{("t", 0): [1, 2]} as the tool writes it."""
    return {"version": 1, "partitions": [{"topic": t, "partition": p, "replicas": ids,
                                          "log_dirs": (dirs or {}).get((t, p), ["any"] * len(ids))}
                                         for (t, p), ids in sorted(parts.items())]}


def text_of(parts):
    return json.dumps(document(parts), separators=(",", ":"))


class Reassign(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="kafkad-test-")
        cls.dirs = {i: [os.path.join(cls.folder, "%d%s" % (i, d)) for d in "ab"] for i in (1, 2, 3)}
        cls.cluster = Cluster(3, overrides={
            "replication.quota.window.size.seconds": str(WINDOW_S), "replica.fetch.max.bytes": str(FETCH),
            "alter.log.dirs.replication.quota.window.size.seconds": str(WINDOW_S), "auto.leader.rebalance.enable": "false",
            "log.segment.delete.delay.ms": "0", "min.insync.replicas": "1", "zookeeper.session.timeout.ms": "5000"},
            each=lambda i: {"log.dirs": ",".join(cls.dirs[i]), "broker.rack": "r%d" % i if i < 3 else "r1"})
        cls.topics = 0

    @classmethod
    def tearDownClass(cls):
        cls.cluster.zk.close()
        shutil.rmtree(cls.folder, ignore_errors=True)

    # -- helpers

    def topic(self, assignment, kb=0):
        type(self).topics += 1
        t = "t%d" % self.topics
        self.cluster.create_topic(t, assignment=assignment)
        self.cluster.wait_isr(t, len(assignment), len(assignment[0]))
        self.cluster.wait_known(t, len(assignment))
        for p in range(len(assignment) if kb else 0):
            with self.cluster.conn(self.cluster.leader(t, p)) as k:
                for i in range(kb):
                    kwire.produce_one(k, t, p, kwire.simple_batch(b"%06d" % i + b"x" * 1000))
        return t

    def file(self, content):
        fd, path = tempfile.mkstemp(dir=self.folder, suffix=".json")
        with os.fdopen(fd, "w") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def kafka_topics(self, *args):
        r = run_tool("kafka-topics", "--bootstrap-server", self.cluster.broker(1).address, *args)
        self.assertEqual(r.status, 0, r.text + r.err)
        return r

    def tool(self, *args, status=0):
        at = ",".join(self.cluster.broker(i).address for i in (1, 2, 3))
        r = run_tool("kafka-reassign-partitions", "--bootstrap-server", at, *args)
        self.assertEqual(r.status, status, r.text + r.err)
        return r

    def execute(self, parts, *args, dirs=None, status=0):
        return self.tool("--execute", "--reassignment-json-file", self.file(document(parts, dirs)), *args, status=status)

    def act(self, action, parts, *args, dirs=None):
        return self.tool(action, "--reassignment-json-file", self.file(document(parts, dirs)), *args)

    def wait_moved(self):
        until("no move is under way", lambda: self.tool("--list").text == "No partition reassignments found.\n")

    def replicas(self, topic):
        with self.cluster.zk.client() as z:
            return {int(p): ids for p, ids in z.json("/brokers/topics/" + topic)["partitions"].items()}

    def wait_seen(self, topic, partition, ids):
        """All brokers know of the new replicas."""
        def same():
            for i in (1, 2, 3):
                for p in self.cluster.metadata(i, [topic])["topics"][0]["partitions"]:
                    if p["partition_index"] == partition and p["replica_nodes"] != ids:
                        return False
            return True
        until("brokers know of %s-%d" % (topic, partition), same)

    def config(self, kind, name):
        with self.cluster.zk.client() as z:
            path = "/config/%s/%s" % (kind, name)
            return z.json(path)["config"] if z.stat(path) else {}

    def throttles(self):
        """What is left of throttles anywhere."""
        found = {}
        for i in (1, 2, 3):
            found.update({(i, k): v for k, v in self.config("brokers", i).items()})
        for n in range(1, self.topics + 1):
            found.update({("t%d" % n, k): v for k, v in self.config("topics", "t%d" % n).items() if k in LISTS})
        return found

    def size(self, broker, topic, partition):
        """Bytes of the replica, as its broker tells."""
        with self.cluster.conn(broker) as k:
            return sum(p["partition_size"] for d in k.call("DescribeLogDirs", 4, topics=None)["results"]
                       for t in d["topics"] if t["name"] == topic
                       for p in t["partitions"] if p["partition_index"] == partition)

    def where(self, broker, topic, partition):
        """(dir of the log, dir of its copy)"""
        found = [None, None]
        with self.cluster.conn(broker) as k:
            for d in k.call("DescribeLogDirs", 4, topics=None)["results"]:
                for t in d["topics"]:
                    for p in t["partitions"]:
                        if (t["name"], p["partition_index"]) == (topic, partition):
                            found[p["is_future_key"]] = d["log_dir"]
        return tuple(found)

    def values(self, topic, partition):
        return [v[:6] for _, v in self.cluster.log_of(topic, partition)]

    CLEARED = "Clearing broker-level throttles on brokers 1,2,3\nClearing topic-level throttles on topic %s\n"


class Throttles(Reassign):
    """On brokers of its own: what moves counts for as long as the window lasts."""

    def test_throttled_changed_and_cancelled(self):
        t = self.topic([[1]], kb=300)
        before = self.values(t, 0)
        rate = 50
        r = self.execute({(t, 0): [2]}, "--throttle", rate)
        self.assertEqual(r.lines[5:], [MUST_VERIFY, "The inter-broker throttle limit was set to 50 B/s",
                                       "Successfully started partition reassignment for %s-0" % t])
        self.assertEqual(self.throttles(), {(1, RATES[0]): "50", (1, RATES[1]): "50", (2, RATES[0]): "50",
                                            (2, RATES[1]): "50", (t, LISTS[0]): "0:1", (t, LISTS[1]): "0:2"})
        self.assertEqual(self.tool("--list").text, "Current partition reassignments:\n%s-0: replicas: 2,1. adding: 2. "
                                                   "removing: 1.\n" % t)
        # who comes is named, and does not count as lacking
        self.wait_seen(t, 0, [2, 1])
        r = self.kafka_topics("--describe", "--topic", t)
        self.assertIn("\tReplicationFactor: 1\t", r.lines[0])
        self.assertEqual(r.lines[1], "\tTopic: %s\tPartition: 0\tLeader: 1\tReplicas: 2,1\tIsr: 1\tAdding Replicas: 2\t"
                                     "Removing Replicas: 1\tElr: N/A\tLastKnownElr: N/A" % t)
        self.assertEqual(self.kafka_topics("--describe", "--under-replicated-partitions").text, "")
        # as much passes as the window allows, and the answer that is under way then
        until("the throttle is used up", lambda: self.size(2, t, 0) > rate * WINDOW_S)
        r = self.act("--verify", {(t, 0): [2]})
        self.assertEqual(r.text, "Status of partition reassignment:\nReassignment of partition %s-0 is still in progress.\n\n" % t)
        self.assertLessEqual(self.size(2, t, 0), rate * WINDOW_S + 2 * FETCH)
        self.assertIn((t, LISTS[0]), self.throttles())
        r = self.execute({(t, 0): [2]}, status=1)
        self.assertTrue(r.text.startswith("Cannot execute because there is an existing partition assignment.  Use --additional "
                                          "to override this"), r.text)
        # a higher limit lets more of it pass, and no more than that
        rate = 100
        r = self.execute({(t, 0): [2]}, "--throttle", rate, "--additional")
        self.assertIn("The inter-broker throttle limit was set to 100 B/s", r.lines)
        self.assertEqual(self.config("topics", t)[LISTS[0]], "0:1")
        self.assertEqual(self.config("topics", t)[LISTS[1]], "0:2")
        until("the throttle is used up", lambda: self.size(2, t, 0) > rate * WINDOW_S)
        self.assertLessEqual(self.size(2, t, 0), rate * WINDOW_S + 2 * FETCH)
        # given up in the middle
        r = self.act("--cancel", {(t, 0): [2]}, "--preserve-throttles")
        self.assertEqual(r.text, "Successfully cancelled partition reassignment for: %s-0\nNone of the specified partition "
                                 "moves are active." % t)
        self.assertEqual(self.replicas(t), {0: [1]})
        self.assertNotEqual(self.throttles(), {})
        until("the copy is gone", lambda: self.where(2, t, 0) == (None, None))
        self.assertEqual(self.act("--cancel", {(t, 0): [2]}).text.partition("\n")[0],
                         "None of the specified partition reassignments are active.")
        self.assertEqual(self.throttles(), {})
        # without a limit it ends
        self.execute({(t, 0): [2]}, "--throttle", 100000000)
        self.wait_moved()
        self.wait_seen(t, 0, [2])
        self.assertNotEqual(self.throttles(), {})
        self.act("--verify", {(t, 0): [2]})
        self.assertEqual(self.throttles(), {})
        self.assertEqual(self.values(t, 0), before)


class Actions(Reassign):
    def test_generate(self):
        t = self.topic([[1, 2], [1, 2], [2, 1]])
        u = self.topic([[3]])
        topics = self.file({"version": 1, "topics": [{"topic": u}, {"topic": t}]})
        r = self.tool("--generate", "--topics-to-move-json-file", topics, "--broker-list", "2,3")
        self.assertEqual(r.lines[:2] + r.lines[2:4], [
            "Current partition replica assignment",
            text_of({(t, 0): [1, 2], (t, 1): [1, 2], (t, 2): [2, 1], (u, 0): [3]}), "",
            "Proposed partition reassignment configuration"])
        self.assertEqual(len(r.lines), 5)
        proposed = json.loads(r.lines[4])
        self.assertEqual([(p["topic"], p["partition"]) for p in proposed["partitions"]], [(t, 0), (t, 1), (t, 2), (u, 0)])
        self.assertEqual([sorted(p["replicas"]) for p in proposed["partitions"][:3]], [[2, 3]] * 3)
        self.assertEqual(len({p["replicas"][0] for p in proposed["partitions"][:3]}), 2)
        self.assertIn(proposed["partitions"][3]["replicas"], ([2], [3]))
        # brokers 1 and 3 are in one rack: never both
        for _ in range(5):
            r = self.tool("--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,2,3")
            for p in json.loads(r.lines[4])["partitions"][:3]:
                self.assertIn(2, p["replicas"])
        r = self.tool("--generate", "--topics-to-move-json-file", topics, "--broker-list", "3", status=1)
        self.assertEqual(r.lines[0], "Error: Replication factor: 2 larger than available brokers: 1.")

    def test_execute_and_verify(self):
        t = self.topic([[1, 2], [2, 3]], kb=20)
        before = [self.values(t, p) for p in (0, 1)]
        target = {(t, 0): [3, 2], (t, 1): [1, 3]}
        r = self.execute({(t, 0): [3, 2]})
        self.assertEqual(r.text, "Current partition replica assignment\n\n%s\n\n%s\nSuccessfully started partition "
                                 "reassignment for %s-0\n" % (text_of({(t, 0): [1, 2]}), SAVE, t))
        self.wait_moved()
        r = self.execute(target)
        self.assertEqual(r.lines[-1], "Successfully started partition reassignments for %s-0,%s-1" % (t, t))
        self.wait_moved()
        for p in (0, 1):
            self.wait_seen(t, p, target[t, p])
        r = self.act("--verify", target)
        self.assertEqual(r.text, "Status of partition reassignment:\nReassignment of partition %s-0 is completed.\n"
                                 "Reassignment of partition %s-1 is completed.\n\n%s" % (t, t, self.CLEARED % t))
        r = self.act("--verify", {(t, 0): [1, 2], ("missing", 0): [1]}, "--preserve-throttles")
        self.assertEqual(r.text, "Status of partition reassignment:\nThere is no active reassignment of partition missing-0, "
                                 "but replica set is  rather than 1.\nThere is no active reassignment of partition %s-0, but "
                                 "replica set is 3,2 rather than 1,2.\n\n" % t)
        r = self.act("--cancel", target)
        self.assertEqual(r.text, "None of the specified partition reassignments are active.\nNone of the specified partition "
                                 "moves are active." + self.CLEARED % t)
        r = self.act("--cancel", {(t, 0): [9, 2]})  # 9 is away: its own are not cleared, and that is said
        self.assertTrue(r.text.endswith("moves are active." + self.CLEARED % t), r.text)
        self.assertRegex(r.err, r"WARN .*broker 9 is not there: throttles that were set for it stay; --verify with the same "
                                r"file clears them once it is back")
        self.assertEqual(self.replicas(t), {0: [3, 2], 1: [1, 3]})
        self.assertEqual([self.values(t, p) for p in (0, 1)], before)

    def test_log_dirs(self):
        t = self.topic([[1, 2]], kb=3000)
        before = self.values(t, 0)
        here = self.where(1, t, 0)[0]
        there = [d for d in self.dirs[1] if d != here][0]
        r = self.execute({(t, 0): [1, 2]}, "--replica-alter-log-dirs-throttle", 10, dirs={(t, 0): [there, "any"]})
        self.assertEqual(r.lines[5:], [MUST_VERIFY, "The replica-alter-dir throttle limit was set to 10 B/s",
                                       "Successfully started partition reassignment for %s-0" % t,
                                       "Successfully started moving log directory to %s for replica %s-0 with broker 1 "
                                       % (there, t)])
        self.assertEqual(self.throttles(), {(1, DIR_RATE): "10"})
        self.assertEqual(self.where(1, t, 0), (here, there))
        r = self.act("--verify", {(t, 0): [1, 2]}, dirs={(t, 0): [there, "any"]})
        self.assertEqual(r.lines, ["Status of partition reassignment:", "Reassignment of partition %s-0 is completed." % t,
                                   "Reassignment of replica %s-0-1 is still in progress." % t])
        r = self.act("--verify", {(t, 0): [1, 2]}, dirs={(t, 0): [here, "any"]})
        self.assertEqual(r.lines[2], "Partition %s-0 on broker 1 is being moved to log dir %s instead of %s." % (t, there, here))
        r = self.act("--cancel", {(t, 0): [1, 2]}, dirs={(t, 0): [there, "any"]})
        self.assertEqual(r.lines, ["None of the specified partition reassignments are active.",
                                   "Successfully started moving log directory to %s for replica %s-0 with broker 1 "
                                   % (here, t)] + (self.CLEARED % t).splitlines())
        self.assertEqual(self.where(1, t, 0), (here, None))
        self.assertEqual(self.throttles(), {})
        r = self.act("--verify", {(t, 0): [1, 2]}, "--preserve-throttles", dirs={(t, 0): [there, "any"]})
        self.assertEqual(r.lines[2], "Partition %s-0 on broker 1 is not being moved from log dir %s to %s." % (t, here, there))
        # to a broker that has no copy yet: it is made in that dir
        for target in self.dirs[3]:
            self.execute({(t, 0): [1, 2]}, dirs={(t, 0): ["any", "any"]})
            self.wait_moved()
            until("the copy is gone", lambda: self.where(3, t, 0) == (None, None))
            r = self.execute({(t, 0): [1, 3]}, dirs={(t, 0): [there, target]})
            self.assertEqual(sorted(r.lines[-2:]), sorted(
                "Successfully started moving log directory to %s for replica %s-0 with broker %d " % (d, t, b)
                for b, d in ((1, there), (3, target))))
            self.wait_moved()
            self.wait_seen(t, 0, [1, 3])
            until("it is there", lambda: self.where(1, t, 0) == (there, None))
            self.assertEqual(self.where(3, t, 0), (target, None))
        r = self.act("--verify", {(t, 0): [1, 3]}, dirs={(t, 0): [there, target]})
        self.assertEqual(r.lines[2:4], ["Reassignment of replica %s-0-1 completed successfully." % t,
                                        "Reassignment of replica %s-0-3 completed successfully." % t])
        self.assertEqual(self.values(t, 0), before)
        r = self.execute({(t, 0): [1, 3]}, dirs={(t, 0): ["/no/such/dir", "any"]}, status=1)
        self.assertIn("Error: Failed to alter dir for %s-0-1" % t, r.lines)
        self.assertIn("LogDirNotFoundException", r.lines[-1])
        r = self.act("--verify", {(t, 0): [1, 9]}, dirs={(t, 0): ["any", "/x"]})
        self.assertIn("Partition %s-0 cannot be found in any live log directory on broker 9." % t, r.lines)
        r = self.act("--verify", {(t, 0): [1, 2]}, dirs={(t, 0): ["any", "/x"]})
        self.assertIn("Partition %s-0 is not found in any live log dir on broker 2. There is likely an offline log directory on "
                      "the broker." % t, r.lines)

    def test_log_dirs_that_cannot_begin_time_out(self):
        """While the controller sleeps, nobody makes the replica that is to lie in the dir."""
        boss = self.cluster.controller
        origin, target = [i for i in (1, 2, 3) if i != boss]
        t = self.topic([[origin]])
        plan = self.file(document({(t, 0): [target]}, {(t, 0): [self.dirs[target][1]]}))
        os.kill(self.cluster.broker(boss).pid, signal.SIGSTOP)
        try:
            r = run_tool("kafka-reassign-partitions", "--zookeeper", self.cluster.zk.connect, "--bootstrap-server",
                         self.cluster.broker(target).address, "--execute", "--reassignment-json-file", plan, "--timeout", "100")
        finally:
            os.kill(self.cluster.broker(boss).pid, signal.SIGCONT)
        self.assertEqual((r.status, r.lines[-1]), (1, "Timed out before log directory move could be started for: %s-0-%d"
                                                   % (t, target)))
        self.wait_moved()
        until("it has been made there all the same", lambda: self.where(target, t, 0) == (self.dirs[target][1], None))

    def test_what_is_refused(self):
        t = self.topic([[1, 2]])
        nothing = "Current partition replica assignment"
        for parts, why in [
                ({}, "Error: Partition reassignment list cannot be empty"),
                ({(t, 0): []}, "Error: Partition replica list cannot be empty"),
                ({(t, 0): [1, 2, 1]}, "Error: Partition replica lists may not contain duplicate entries: %s-0 contains multiple "
                                      "entries for 1" % t),
                ({(t, 0): [1, 9]}, "Error: Unknown broker id 9"),
                ({(t, 7): [1, 2]}, "Error: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Unable to find "
                                   "partition: %s-7" % t),
                ({("missing", 0): [1]}, "Error: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server "
                                        "does not host this topic and partition.")]:
            r = self.execute(parts, status=1)
            self.assertEqual(r.lines[0], why)
            self.assertNotIn(nothing, r.text)
        part = {"topic": t, "partition": 0, "replicas": [1, 2]}
        for content, why in [
                ("{", "Error: "), ("[]", "Error: the file does not hold a JSON object"),
                ({"version": 2, "partitions": []}, "Error: Not supported version field value 2"),
                ({"partitions": [part, part]}, "Error: Partition reassignment contains duplicate topic partitions: %s-0" % t),
                ({"partitions": [{"topic": t, "replicas": [1]}]}, "Error: No such field exists: `partition`"),
                ({"partitions": [{"partition": 0, "replicas": [1]}]}, "Error: No such field exists: `topic`"),
                ({"partitions": [{"topic": t, "partition": 0}]}, "Error: No such field exists: `replicas`"),
                ({"partitions": [dict(part, log_dirs=["any"])]},
                 "Error: Size of replicas list [1, 2] is different from size of log dirs list [any] for partition %s-0" % t)]:
            r = self.tool("--execute", "--reassignment-json-file", self.file(content), status=1)
            self.assertTrue(r.lines[0].startswith(why), r.text)
        r = self.tool("--execute", "--reassignment-json-file", "/no/such/file", status=1)
        self.assertIn("/no/such/file", r.lines[0])
        topics = self.file({"topics": [{"topic": t}, {"topic": t}]})
        for brokers, path, why in [("1,1", topics, "Error: Broker list contains duplicate entries: [1]"),
                                   ("1,x", topics, 'Error: For input string: "x"'),
                                   ("1", topics, "Error: List of topics to reassign contains duplicate entries: [%s]" % t),
                                   ("1", self.file({"topics": [{"topic": "missing"}]}),
                                    "Error: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not "
                                    "host this topic and partition.")]:
            r = self.tool("--generate", "--broker-list", brokers, "--topics-to-move-json-file", path, status=1)
            self.assertEqual(r.lines[0], why)
        self.assertEqual(self.throttles(), {})

    def test_flags(self):
        f = self.file(document({}))
        for args, why in [
                ([], "Command must include exactly one action: --cancel, --execute, --generate, --list, --verify"),
                (["--list", "--verify"], "Command must include exactly one action"),
                (["--verify"], r'Missing required argument "\[reassignment-json-file\]"'),
                (["--generate", "--broker-list", "1"], r'Missing required argument "\[topics-to-move-json-file\]"'),
                (["--verify", "--reassignment-json-file", f, "--throttle", "1"],
                 r'Option "\[throttle\]" can\'t be used with action "\[verify\]"'),
                (["--list", "--reassignment-json-file", f],
                 r'Option "\[reassignment-json-file\]" can\'t be used with action "\[list\]"'),
                (["--cancel", "--reassignment-json-file", f, "--zookeeper", "z:1"], "can't be used with option"),
                (["--execute", "--reassignment-json-file", f, "--throttle", "fast"], "Cannot parse argument 'fast'")]:
            r = self.tool(*args, status=1)
            self.assertEqual(r.out, b"")
            self.assertRegex(r.err.splitlines()[0], why)
        r = run_tool("kafka-reassign-partitions", "--list")
        self.assertRegex(r.err, r'^Missing required argument "\[bootstrap-server\]"')
        r = run_tool("kafka-reassign-partitions", "--help")
        self.assertEqual((r.status, r.lines[0]), (0, "This tool helps to move topic partitions between replicas."))

    # -- the form of 2.x

    def zk_tool(self, *args, status=0):
        r = run_tool("kafka-reassign-partitions", "--zookeeper", self.cluster.zk.connect, *args)
        self.assertEqual(r.status, status, r.text + r.err)
        return r

    def test_by_zookeeper(self):
        t = self.topic([[1], [2]], kb=100)
        before = [self.values(t, p) for p in (0, 1)]
        r = self.zk_tool("--generate", "--topics-to-move-json-file", self.file({"topics": [{"topic": t}]}), "--broker-list", "3")
        self.assertEqual(r.lines, ["Current partition replica assignment", text_of({(t, 0): [1], (t, 1): [2]}), "",
                                   "Proposed partition reassignment configuration", text_of({(t, 0): [3], (t, 1): [3]})])
        plan = self.file(json.loads(r.lines[4]))
        r = self.zk_tool("--execute", "--reassignment-json-file", plan, "--throttle", "10")
        self.assertEqual(r.lines[:5], ["Current partition replica assignment", "", text_of({(t, 0): [1], (t, 1): [2]}), "", SAVE])
        self.assertEqual(r.lines[6:], ["The inter-broker throttle limit was set to 10 B/s",
                                       "Successfully started reassignment of partitions."])
        self.assertEqual(self.throttles(), dict(
            [((i, k), "10") for i in (1, 2, 3) for k in RATES] + [((t, LISTS[0]), "0:1,1:2"), ((t, LISTS[1]), "0:3,1:3")]))
        r = self.zk_tool("--verify", "--reassignment-json-file", plan)
        self.assertEqual(r.text, "Status of partition reassignment: \nReassignment of partition %s-0 is still in progress\n"
                                 "Reassignment of partition %s-1 is still in progress\n" % (t, t))
        self.assertNotEqual(self.throttles(), {})
        r = self.zk_tool("--execute", "--reassignment-json-file", plan, "--throttle", "100000000")
        self.assertEqual(r.lines[0], "There is an existing assignment running.")
        done = "Status of partition reassignment: \nReassignment of partition %s-0 completed successfully\n" \
               "Reassignment of partition %s-1 completed successfully\n" % (t, t)
        r = until("all is moved", lambda: (lambda r: "progress" not in r.text and r)(
            self.zk_tool("--verify", "--reassignment-json-file", plan)))
        self.assertEqual(r.text, done + "Throttle was removed.\n")
        self.assertEqual(self.throttles(), {})
        self.assertEqual(self.zk_tool("--verify", "--reassignment-json-file", plan).text, done)
        self.assertEqual([self.values(t, p) for p in (0, 1)], before)
        r = self.zk_tool("--verify", "--reassignment-json-file", self.file(document({(t, 0): [1, 2]})))
        self.assertEqual(r.text, "Status of partition reassignment: \nERROR: Assigned replicas (3) don't match the list of "
                                 "replicas for reassignment (1,2) for partition %s-0\nReassignment of partition %s-0 failed\n"
                         % (t, t))
        # log dirs need a broker to be asked
        target = self.dirs[1][1]
        plan = self.file(document({(t, 0): [1]}, {(t, 0): [target]}))
        r = self.zk_tool("--execute", "--reassignment-json-file", plan, status=1)
        self.assertIn("Partitions reassignment failed due to bootstrap-server needs to be provided", r.text)
        with self.cluster.zk.client() as z:
            self.assertFalse(z.stat("/admin/reassign_partitions"))
        self.tool("--execute", "--reassignment-json-file", plan, "--zookeeper", self.cluster.zk.connect)
        r = until("it is there", lambda: (lambda r: "progress" not in r.text and r)(self.tool(
            "--verify", "--reassignment-json-file", plan, "--zookeeper", self.cluster.zk.connect)))
        self.assertEqual(r.lines[1:], ["Reassignment of partition %s-0 completed successfully" % t,
                                       "Reassignment of replica %s-0-1 completed successfully" % t])
        self.assertEqual(self.where(1, t, 0), (target, None))
        for parts, why in [({(t, 9): [1]}, "non-existent partitions: %s-9" % t),
                           ({(t, 0): [1, 8, 9]}, "non-existent brokerIDs: 8,9"), ({}, "list cannot be empty")]:
            r = self.zk_tool("--execute", "--reassignment-json-file", self.file(document(parts)), status=1)
            self.assertTrue(r.lines[0].startswith("Partitions reassignment failed due to "), r.text)
            self.assertIn(why, r.lines[0])

    # -- under load

    def test_moves_under_load(self):
        """A throttled move is changed, given up and done after all, while it is written and read."""
        t = self.topic([[1, 2], [2, 1]])
        with History(self.cluster, t, 2) as h:
            h.grow(300)
            plan = {(t, 0): [3, 2], (t, 1): [2, 3]}
            self.execute(plan, "--throttle", 1)
            h.grow(100)
            self.act("--cancel", plan)
            self.assertEqual(self.throttles(), {})
            h.grow(100)
            self.execute(plan, "--throttle", 100000000)
            self.wait_moved()
            self.act("--verify", plan)
            h.grow(100)
            self.execute({(t, 0): [1, 2, 3], (t, 1): [3]})  # more copies, and less
            self.wait_moved()
            h.grow(100)
        h.check()
        self.assertEqual(self.throttles(), {})
        self.assertEqual(self.replicas(t), {0: [1, 2, 3], 1: [3]})


if __name__ == "__main__":
    harness.main()
