"""docs/operations.md, done as it is written there, on real brokers under load: brokers that are removed and replaced, disks that
are replaced, throttles that are set by hand, a rolling upgrade."""
import contextlib
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

NOTHING_LACKS = ""


class Operations(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kafkad-test-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    # -- what an operator types

    def tool(self, c, name, *args, status=0):
        at = ",".join(c.broker(i).address for i in c.running())
        r = run_tool(name, "--bootstrap-server", at, *args)
        self.assertEqual(r.status, status, r.text + r.err)
        return r

    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def lacking(self, c):
        """Partitions that lack copies."""
        return self.tool(c, "kafka-topics", "--describe", "--under-replicated-partitions").text

    def wait_complete(self, c):
        until("nothing lacks copies", lambda: self.lacking(c) == NOTHING_LACKS)

    def topics(self, c):
        return self.tool(c, "kafka-topics", "--list").lines

    def move_to(self, c, brokers):
        """All topics to these brokers: --generate, --execute, --verify."""
        topics = self.file("topics.json", {"version": 1, "topics": [{"topic": t} for t in self.topics(c)]})
        r = self.tool(c, "kafka-reassign-partitions", "--generate", "--topics-to-move-json-file", topics, "--broker-list",
                      ",".join(map(str, brokers)))
        plan = self.file("move.json", r.lines[r.lines.index("Proposed partition reassignment configuration") + 1])
        self.tool(c, "kafka-reassign-partitions", "--execute", "--reassignment-json-file", plan, "--throttle", "50000000")
        until("it is completed", lambda: "in progress" not in self.tool(
            c, "kafka-reassign-partitions", "--verify", "--reassignment-json-file", plan).text)

    def copies(self, c):
        """The brokers that have a copy of anything, by kafka-topics."""
        found = set()
        for line in self.tool(c, "kafka-topics", "--describe").lines:
            if "Replicas: " in line:
                found |= set(map(int, line.split("Replicas: ")[1].split("\t")[0].split(",")))
        return found

    def log_dirs(self, c, broker, topic="t"):
        """{dir: (error, {partition: (offsetLag, isFuture)})} of one broker, by kafka-log-dirs."""
        # who has just come is not known to all at once, and the tool asks one of them which brokers there are
        until("all know of broker %d" % broker, lambda: all(
            any(n["node_id"] == broker for n in c.metadata(i, [])["brokers"]) for i in c.running()))
        r = self.tool(c, "kafka-log-dirs", "--describe", "--broker-list", broker, "--topic-list", topic)
        dirs = json.loads(r.lines[-1])["brokers"][0]["logDirs"]
        return {d["logDir"]: (d["error"], {p["partition"]: (p["offsetLag"], p["isFuture"]) for p in d["partitions"]})
                for d in dirs}

    def configure(self, c, kind, name, *args):
        self.tool(c, "kafka-configs", "--alter", "--entity-type", kind, *(["--entity-name", name] if name else ["--entity-default"]),
                  *args)

    def lose_disk(self, c, i):
        c.broker(i).kill()
        shutil.rmtree(c.broker(i).data)

    @contextlib.contextmanager
    def three_of_four(self):
        """(cluster, history of topic t): broker 4 is not there yet."""
        with Cluster(4, start=False) as c:
            for i in (1, 2, 3):
                c.broker(i).start()
            c.wait_brokers()
            c.create_topic("t", partitions=4)
            with History(c, "t", 4, pause=0.002) as h:
                h.grow(100)
                yield c, h
            h.check()
            h.check_copies({p: c.state("t", p)["isr"] for p in range(4)})

    def add_the_fourth(self, c):
        c.broker(4).start()
        c.wait_brokers()

    # -- brokers

    def test_a_broker_is_added_and_one_is_removed(self):
        with self.three_of_four() as (c, h):
            self.add_the_fourth(c)
            self.move_to(c, [1, 2, 3, 4])
            h.grow(100)
            self.move_to(c, [2, 3, 4])
            self.assertEqual(self.copies(c), {2, 3, 4})
            self.assertEqual([d for d in os.listdir(c.broker(1).data) if d.startswith("t-") and not d.endswith("-delete")], [])
            r = run_tool("kafka-cluster", "unregister", "--bootstrap-server", c.broker(2).address, "--id", 1)
            self.assertEqual((r.status, r.text), (0, "The target cluster does not support the broker unregistration API.\n"))
            c.broker(1).stop()
            h.grow(100)
            self.assertEqual(self.lacking(c), NOTHING_LACKS)
            with c.zk.client() as z:
                self.assertEqual(sorted(z.children("/brokers/ids")), ["2", "3", "4"])

    def test_a_broker_with_an_empty_disk_takes_the_place_of_one_that_is_lost(self):
        """The same id: nothing has to be told to anybody."""
        with Cluster(3) as c:
            c.create_topic("t", partitions=4)
            with History(c, "t", 4, pause=0.002) as h:
                for i in (3, c.controller):
                    h.grow(100)
                    self.lose_disk(c, i)
                    h.grow(50)
                    c.broker(i).start()
                    self.wait_complete(c)
                h.grow(50)
            h.check()
            h.check_copies()

    def test_a_broker_with_a_new_id_takes_the_place_of_one_that_is_lost(self):
        with self.three_of_four() as (c, h):
            self.lose_disk(c, 3)
            h.grow(50)
            self.add_the_fourth(c)
            self.assertNotEqual(self.lacking(c), NOTHING_LACKS)
            self.move_to(c, [1, 2, 4])
            self.wait_complete(c)
            self.assertEqual(self.copies(c), {1, 2, 4})
            h.grow(50)

    def test_what_a_broker_knows_of_the_cluster(self):
        """kill -QUIT: partitions without a leader, and those that lack copies."""
        with Cluster(3, overrides={"auto.leader.rebalance.enable": "false"}) as c:
            c.create_topic("t", assignment=[[1, 2], [2, 1]])
            c.create_topic("u", assignment=[[2], [1]])
            c.wait_isr("t", 2, 2)
            c.wait_isr("u", 2, 1)

            def told(line):
                """An answer that says so: brokers hear of changes a moment later."""
                def asked():
                    mark = c.broker(1).mark()
                    os.kill(c.broker(1).pid, signal.SIGQUIT)
                    return line in c.broker(1).wait_line(r"\[dump\] .*partitions in the cluster", after=mark)
                until("the broker says: " + line, asked)
            told("4 partitions in the cluster: 0 without a leader, 0 under-replicated; 2 are led here: 0 under-replicated")
            c.broker(2).kill()
            told("4 partitions in the cluster: 1 without a leader, 2 under-replicated; 3 are led here: 2 under-replicated")
            c.broker(2).start()
            told("4 partitions in the cluster: 0 without a leader, 0 under-replicated; 3 are led here: 0 under-replicated")

    # -- disks

    def test_a_disk_is_lost_and_replaced(self):
        """By an empty one at the same place; and by the other disks of that broker."""
        with Cluster(3, each=lambda i: {"log.dirs": ",".join(os.path.join(self.folder, "%d%s" % (i, d)) for d in "ab")},
                     overrides={"log.segment.bytes": "16384"}) as c:
            c.create_topic("t", partitions=6)
            with History(c, "t", 6, pause=0.002) as h:
                for way in ("an empty disk", "the other disk"):
                    h.grow(200)
                    dead = next(d for d, (_, found) in self.log_dirs(c, 2).items() if found)
                    other = next(d for d in self.log_dirs(c, 2) if d != dead)
                    shutil.rmtree(dead)
                    c.broker(2).wait_line("offline")
                    until("it is seen", lambda: self.log_dirs(c, 2)[dead][0] is not None)
                    for p in range(6):
                        c.wait_state("t", p, lambda s: s["leader"] >= 0)
                    self.assertIn("KafkaStorageException", self.log_dirs(c, 2)[dead][0])
                    self.assertNotEqual(self.lacking(c), NOTHING_LACKS)
                    h.grow(100)
                    c.broker(2).stop()
                    if way == "an empty disk":
                        open(dead, "w").close()  # still broken at the next start: what was there is not made elsewhere
                        c.broker(2).start()
                        kept = [int(name[2:]) for name in self.log_dirs(c, 2)[other][1]]
                        for p in kept:
                            c.wait_state("t", p, lambda s: 2 in s["isr"])
                        self.assertEqual([p for p in range(6) if 2 in c.state("t", p)["isr"]], sorted(kept))
                        self.assertLess(len(kept), 6)
                        c.broker(2).stop()
                        os.unlink(dead)
                        os.makedirs(dead)
                    else:
                        c.broker(2).overrides["log.dirs"] = other
                    c.broker(2).start()
                    self.wait_complete(c)
                    self.assertEqual({e for e, _ in self.log_dirs(c, 2).values()}, {None})
                    self.assertEqual(sum(len(found) for _, found in self.log_dirs(c, 2).values()), 6)
                h.grow(50)
            h.check()
            h.check_copies()

    def test_lag_of_replicas(self):
        """Of a follower: none, what it has is what it knows of; of a copy on its way to another dir: what it lacks."""
        with Cluster(2, each=lambda i: {"log.dirs": ",".join(os.path.join(self.folder, "%d%s" % (i, d)) for d in "ab")},
                     overrides={"alter.log.dirs.replication.quota.window.size.seconds": "1000"}) as c:
            c.create_topic("t", replication=2, assignment=[[1, 2]])
            with c.conn(c.leader("t", 0)) as k:
                for i in range(2500):
                    kwire.produce_one(k, "t", 0, kwire.simple_batch(b"%06d" % i + b"x" * 1000))
            c.wait_isr("t", 1, 2)
            for i in (1, 2):
                found = {d: parts for d, (_, parts) in self.log_dirs(c, i).items() if parts}
                self.assertEqual(list(found.values()), [{"t-0": (0, False)}])
            here, = found
            there = next(d for d in self.log_dirs(c, 2) if d != here)
            self.configure(c, "brokers", "2", "--add-config", "replica.alter.log.dirs.io.max.bytes.per.second=10")
            plan = self.file("move.json", {"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2],
                                                           "log_dirs": ["any", there]}]})
            self.tool(c, "kafka-reassign-partitions", "--execute", "--reassignment-json-file", plan)
            until("a part of it is copied", lambda: 0 < self.log_dirs(c, 2)[there][1]["t-0"][0] < 2500)
            self.assertEqual(self.log_dirs(c, 2)[there][1]["t-0"][1], True)
            self.assertEqual(self.log_dirs(c, 2)[here][1]["t-0"], (0, False))
            self.configure(c, "brokers", "2", "--delete-config", "replica.alter.log.dirs.io.max.bytes.per.second")
            until("it is over", lambda: self.log_dirs(c, 2)[there][1].get("t-0") == (0, False))

    # -- throttles by hand

    def test_throttles_by_hand(self):
        """A broker that comes back after long catches up no faster than told; `*` names all replicas."""
        with Cluster(3, overrides={"replication.quota.window.size.seconds": "1000", "replica.fetch.max.bytes": "20000",
                                   "min.insync.replicas": "1"}) as c:
            c.create_topic("t", assignment=[[1, 2, 3], [2, 1, 3]])
            c.wait_isr("t", 2, 3)
            c.wait_known("t", 2)  # whichever broker is asked to configure it
            self.configure(c, "topics", "t", "--add-config", "leader.replication.throttled.replicas=*,"
                                                             "follower.replication.throttled.replicas=[0:3,1:3]")
            self.configure(c, "brokers", None, "--add-config", "leader.replication.throttled.rate=1000000,"
                                                               "follower.replication.throttled.rate=60")
            r = self.tool(c, "kafka-topics", "--describe", "--topic", "t")
            self.assertIn("leader.replication.throttled.replicas=*", r.lines[0])
            self.assertIn("follower.replication.throttled.replicas=0:3,1:3", r.lines[0])
            c.broker(3).kill()
            for p in (0, 1):
                c.wait_state("t", p, lambda s: 3 not in s["isr"])
                with c.conn(c.leader("t", p)) as k:
                    for i in range(100):
                        kwire.produce_one(k, "t", p, kwire.simple_batch(b"%06d" % i + b"x" * 1000))
            c.broker(3).start()

            def size():
                with c.conn(3) as k:
                    return sum(p["partition_size"] for d in k.call("DescribeLogDirs", 4, topics=None)["results"]
                               for t in d["topics"] if t["name"] == "t" for p in t["partitions"])
            until("60 bytes a second for the window of 1000 s have passed", lambda: size() > 60000)
            r = self.tool(c, "kafka-configs", "--describe", "--entity-type", "brokers", "--entity-default")
            self.assertIn("follower.replication.throttled.rate=60", r.text)
            self.assertLessEqual(size(), 60000 + 2 * 40000)  # both partitions of an answer, and of the one under way
            self.assertEqual([3 in c.state("t", p)["isr"] for p in (0, 1)], [False, False])
            for bad in ("0", "0:x", "0:1;1:1", "all"):
                r = self.tool(c, "kafka-configs", "--alter", "--entity-type", "topics", "--entity-name", "t", "--add-config",
                              "leader.replication.throttled.replicas=" + bad, status=1)
                self.assertIn("InvalidRequestException: Invalid config value for resource", r.err)
            self.configure(c, "topics", "t", "--delete-config", "leader.replication.throttled.replicas,"
                                                                "follower.replication.throttled.replicas")
            self.wait_complete(c)
            self.configure(c, "brokers", None, "--delete-config", "leader.replication.throttled.rate,"
                                                                  "follower.replication.throttled.rate")
            r = self.tool(c, "kafka-configs", "--describe", "--entity-type", "brokers", "--entity-default")
            self.assertNotIn("throttled", r.text)

    # -- upgrades

    def test_rolling_upgrade(self):
        """From the level of 2.3 to 3.9, one broker after the other, under load: first the program, then the level."""
        with Cluster(3, overrides={"inter.broker.protocol.version": "2.3"}) as c:
            c.create_topic("t", partitions=4)
            with History(c, "t", 4, pause=0.01) as h:
                h.grow(100)
                for level in ("2.3", "3.9"):
                    for i in (1, 2, 3):
                        c.broker(i).overrides["inter.broker.protocol.version"] = level
                        c.broker(i).restart()
                        self.wait_complete(c)
                        h.grow(50)
                with c.zk.client() as z:
                    self.assertIn("topic_id", z.json("/brokers/topics/t"))
            h.check()
            h.check_copies()


if __name__ == "__main__":
    harness.main()
