"""Partitions that move between four real brokers while they are written and read: more and fewer copies, moves that are given
up, targets that die, controllers that die. A move is held in the middle by a throttle that lets next to nothing pass."""
import os
import unittest

import harness
from cluster import Cluster, History
from harness import until

RATE = "follower.replication.throttled.rate"
LIST = "follower.replication.throttled.replicas"
NO_REASSIGNMENT_IN_PROGRESS = 85
# What is counted is counted for 1000 s, and a fetch brings at most 1000 bytes: so 1 byte a second stops after a few fetches.
HOLDABLE = {"replication.quota.window.size.seconds": "1000", "replica.fetch.max.bytes": "1000",
            "log.segment.delete.delay.ms": "0", "auto.leader.rebalance.enable": "false"}


class Moves(unittest.TestCase):
    # -- helpers

    def alter(self, c, moves, topic="t", errors=None):
        """{partition: brokers, or None: back}"""
        a = c.on_controller("AlterPartitionReassignments", 0, timeout_ms=30000, topics=[
            {"name": topic, "partitions": [{"partition_index": p, "replicas": ids} for p, ids in moves.items()]}])
        self.assertEqual([p["error_code"] for p in a["responses"][0]["partitions"]], errors or [0] * len(moves))

    def moving(self, c):
        """{partition: (adding, removing)}, by the controller; None while it does not answer."""
        a = c.on_controller("ListPartitionReassignments", 0, timeout_ms=30000, topics=None)
        if a["error_code"]:
            return None
        return {p["partition_index"]: (p["adding_replicas"], p["removing_replicas"])
                for t in a["topics"] for p in t["partitions"]}

    def wait_moved(self, c, want, topic="t"):
        """The moves are over: the nodes, the ISRs and the leaders are as wanted."""
        until("the moves are over", lambda: self.moving(c) == {})
        with c.zk.client() as z:
            node = z.json("/brokers/topics/" + topic)
        self.assertEqual({int(p): ids for p, ids in node["partitions"].items()}, want)
        self.assertEqual((node["adding_replicas"], node["removing_replicas"]), ({}, {}))
        for p, ids in want.items():
            s = c.wait_state(topic, p, lambda s: sorted(s["isr"]) == sorted(ids))
            self.assertIn(s["leader"], ids)

    def configure(self, c, kind, name, configs):
        def done():
            with c.conn(int(name) if kind == 4 and name else None) as k:
                a = k.call("IncrementalAlterConfigs", 1, validate_only=False, resources=[
                    {"resource_type": kind, "resource_name": name, "configs": [
                        {"name": n, "config_operation": 1 if v is None else 0, "value": v} for n, v in configs.items()]}])
            return a["responses"][0]["error_code"] == 0
        until("settings are changed", done)

    def hold(self, c, replicas, topic="t"):
        """From now on these get next to nothing: {partition: broker}. (The others could not come back after a kill.)"""
        self.configure(c, 4, "", {RATE: "1"})
        self.configure(c, 2, topic, {LIST: ",".join("%d:%d" % r for r in replicas.items())})

    def release(self, c, topic="t"):
        self.configure(c, 2, topic, {LIST: None})
        self.configure(c, 4, "", {RATE: None})

    def folders(self, c, i, topic="t"):
        return sorted(d for d in os.listdir(c.broker(i).data) if d.startswith(topic + "-") and not d.endswith("-delete"))

    def wait_folders(self, c, i, want, topic="t"):
        until("broker %d has %s" % (i, want), lambda: self.folders(c, i, topic) == want)

    # -- tests

    def test_more_and_fewer_copies(self):
        """One added, one removed, down to one, up to four, the order alone: in steps and all at once."""
        with Cluster(4, overrides={"min.insync.replicas": "1"}) as c:
            c.create_topic("t", assignment=[[1, 2, 3], [2, 3, 4]])
            with History(c, "t", 2, pause=0.002) as h:
                h.grow(100)
                for want in ({0: [1, 2, 3, 4], 1: [2, 3, 4, 1]}, {0: [2, 3, 4], 1: [3, 4, 1]}, {0: [4], 1: [1]},
                             {0: [2, 1], 1: [1, 2]}, {0: [1, 2], 1: [2, 1]}, {0: [4, 3, 2, 1], 1: [4, 3, 2, 1]},
                             {0: [4, 1, 2], 1: [3]}):
                    self.alter(c, want)
                    self.wait_moved(c, want)
                    h.grow(30)
            h.check()
            h.check_copies({0: [4, 1, 2], 1: [3]})
            for i, want in ((1, ["t-0"]), (2, ["t-0"]), (3, ["t-1"]), (4, ["t-0"])):
                self.wait_folders(c, i, want)

    def test_given_up_in_the_middle(self):
        with Cluster(4, overrides=HOLDABLE) as c:
            c.create_topic("t", assignment=[[1, 2, 3], [2, 3, 1]])
            with History(c, "t", 2, pause=0.002) as h:
                h.grow(500)
                self.hold(c, {0: 4, 1: 4})
                self.alter(c, {0: [4, 2, 3], 1: [2, 3, 4]})
                self.assertEqual(self.moving(c), {0: ([4], [1]), 1: ([4], [1])})
                self.wait_folders(c, 4, ["t-0", "t-1"])
                h.grow(50)
                self.alter(c, {0: [4, 2, 3]})  # asked again: nothing new
                self.alter(c, {1: [4, 3, 1]})  # another target
                self.assertEqual(self.moving(c), {0: ([4], [1]), 1: ([4], [2])})
                self.alter(c, {0: None})
                self.assertEqual(self.moving(c), {1: ([4], [2])})
                self.alter(c, {0: None}, errors=[NO_REASSIGNMENT_IN_PROGRESS])
                self.wait_folders(c, 4, ["t-1"])
                h.grow(50)
                self.release(c)
                self.wait_moved(c, {0: [2, 3, 1], 1: [4, 3, 1]})  # the same brokers; as in Kafka, the order is not kept
                h.grow(50)
            h.check()
            self.wait_folders(c, 2, ["t-0"])

    def test_the_target_dies(self):
        """It is waited for; or the move is given up while it is away, or gets another target."""
        with Cluster(4, overrides=HOLDABLE) as c:
            c.create_topic("t", assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
            with History(c, "t", 3, pause=0.002) as h:
                h.grow(600)
                self.hold(c, {0: 4, 1: 4, 2: 4})
                self.alter(c, {0: [4, 2, 3], 1: [4, 3, 1], 2: [3, 4, 2]})
                self.wait_folders(c, 4, ["t-0", "t-1", "t-2"])
                if c.controller == 4:
                    self.skipTest("the target is the controller")
                c.broker(4).kill()
                until("it is gone", lambda: 4 not in [b["node_id"] for b in c.metadata(1, [])["brokers"]])
                h.grow(50)
                self.assertEqual(set(self.moving(c)), {0, 1, 2})
                self.alter(c, {0: None, 1: [2, 3]})
                self.release(c)
                until("two are over", lambda: set(self.moving(c)) == {2})
                h.grow(50)
                c.broker(4).start()
                self.wait_moved(c, {0: [2, 3, 1], 1: [2, 3], 2: [3, 4, 2]})
                h.grow(50)
                # As with Kafka, what it had begun to copy is still there: that does no harm to another move.
                self.assertEqual(self.folders(c, 4), ["t-0", "t-1", "t-2"])
                self.alter(c, {0: [4, 3, 1]})
                self.wait_moved(c, {0: [4, 3, 1], 1: [2, 3], 2: [3, 4, 2]})
                h.grow(50)
            h.check()
            h.check_copies({0: [1, 3, 4], 1: [2, 3], 2: [2, 3, 4]})

    def test_the_controller_dies(self):
        """Its successors know from the topic's node what is to be done."""
        with Cluster(4, overrides=HOLDABLE) as c:
            c.create_topic("t", assignment=[[1, 2, 3], [2, 3, 1]])
            with History(c, "t", 2, pause=0.002) as h:
                h.grow(500)
                for added, want in (({0: 4, 1: 4}, {0: [4, 2, 3], 1: [4, 3, 1]}), ({0: 1, 1: 2}, {0: [1, 2, 3], 1: [2, 3, 1]})):
                    self.hold(c, added)
                    self.alter(c, want)
                    for _ in range(2):
                        boss = c.controller
                        c.broker(boss).kill()
                        until("there is another", lambda: c.controller != boss)
                        until("the moves go on", lambda: set(self.moving(c) or ()) == {0, 1})
                        h.grow(20)
                        c.broker(boss).start()
                        c.wait_brokers()
                    self.release(c)
                    self.wait_moved(c, want)
                    h.grow(50)
            h.check()
            h.check_copies([2, 3])

    def test_controllers_die_as_moves_end(self):
        """At any step of them: each move is there as asked, or has never been asked for."""
        with Cluster(4, overrides={"log.segment.delete.delay.ms": "0"}) as c:
            c.create_topic("t", assignment=[[1, 2, 3], [2, 3, 4]])
            now = {0: [1, 2, 3], 1: [2, 3, 4]}
            with History(c, "t", 2, pause=0.002) as h:
                h.grow(100)
                for want in ({0: [2, 3, 4], 1: [3, 4, 1]}, {0: [3, 4, 1], 1: [4, 1, 2]}, {0: [4, 1, 2], 1: [1, 2, 3]}):
                    self.alter(c, want)
                    boss = c.controller
                    c.broker(boss).kill()
                    until("there is another", lambda: c.controller != boss)
                    h.grow(30)
                    c.broker(boss).start()
                    c.wait_brokers()
                    self.wait_moved(c, want)
                    now = want
                    h.grow(30)
            h.check()
            h.check_copies(now)
            for i in c.running():  # (a folder too many is left where the order to delete it went with the controller)
                self.assertLessEqual({"t-%d" % p for p in (0, 1) if i in now[p]}, set(self.folders(c, i)))


if __name__ == "__main__":
    harness.main()
