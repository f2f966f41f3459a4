"""Three brokers on a real ZooKeeper: replication, and what is left when any of them dies."""
import os
import signal
import unittest

import harness
import kwire
from cluster import Cluster, History
from harness import until


class Replication(unittest.TestCase):
    def test_records_are_on_all_replicas(self):
        with Cluster(3) as c:
            c.create_topic("t", partitions=3)
            with History(c, "t", 3) as h:
                h.grow(300)
            h.check()
            h.check_copies()
            for p in range(3):
                self.assertEqual(len(c.state("t", p)["isr"]), 3)

    def test_the_leader_dies(self):
        with Cluster(3) as c:
            c.create_topic("t", partitions=2)
            with History(c, "t", 2) as h:
                h.grow(200)
                dead = c.leader("t", 0)
                c.broker(dead).kill()
                c.wait_state("t", 0, lambda s: s["leader"] not in (dead, -1))
                h.grow(200)
                c.broker(dead).start()
                c.wait_isr("t", 2, 3)
                h.grow(100)
            h.check()
            h.check_copies()

    def test_a_follower_dies(self):
        with Cluster(3) as c:
            c.create_topic("t", partitions=1)
            with History(c, "t", 1) as h:
                h.grow(100)
                leader = c.leader("t", 0)
                dead = next(i for i in c.running() if i not in (leader, c.controller))
                c.broker(dead).kill()
                c.wait_state("t", 0, lambda s: dead not in s["isr"])
                h.grow(100)
                self.assertEqual(c.leader("t", 0), leader)
                c.broker(dead).start()
                c.wait_isr("t", 1, 3)
            h.check()
            h.check_copies()

    def test_the_controller_dies(self):
        with Cluster(3) as c:
            c.create_topic("t", partitions=3)
            with History(c, "t", 3) as h:
                h.grow(100)
                dead = c.controller
                c.broker(dead).kill()
                until("another controller", lambda: c.controller != dead)
                for p in range(3):
                    c.wait_state("t", p, lambda s: s["leader"] in c.running() and dead not in s["isr"])
                h.grow(200)
                c.broker(dead).start()
                c.wait_isr("t", 3, 3)
            h.check()
            h.check_copies()

    def test_a_paused_follower_leaves_the_isr_and_comes_back(self):
        with Cluster(3, overrides={"zookeeper.session.timeout.ms": "20000"}) as c:
            c.create_topic("t", partitions=1)
            leader = c.leader("t", 0)
            paused = next(i for i in c.running() if i not in (leader, c.controller))
            with History(c, "t", 1) as h:
                h.grow(50)
                c.broker(paused).process.send_signal(signal.SIGSTOP)
                c.wait_state("t", 0, lambda s: paused not in s["isr"])
                h.grow(100)
                c.broker(paused).process.send_signal(signal.SIGCONT)
                c.wait_isr("t", 1, 3)
            h.check()
            h.check_copies()

    def test_below_min_insync_nothing_is_acknowledged(self):
        with Cluster(3) as c:
            c.create_topic("t", partitions=1)
            leader = c.leader("t", 0)
            others = [i for i in c.running() if i != leader]
            for i in others:
                c.broker(i).kill()
            c.wait_state("t", 0, lambda s: s["isr"] == [leader])
            with c.conn(leader) as k:
                until("19", lambda: kwire.produce(k, 9, [("t", 0, kwire.simple_batch(b"x"))], acks=-1,
                                                  timeout_ms=1000)[0]["error_code"] == 19)
                self.assertEqual(kwire.produce(k, 9, [("t", 0, kwire.simple_batch(b"y"))], acks=1)[0]["error_code"],
                                 0)
            for i in others:
                c.broker(i).start()
            c.wait_isr("t", 1, 3)
            with c.conn(leader) as k:
                self.assertEqual(kwire.produce(k, 9, [("t", 0, kwire.simple_batch(b"z"))], acks=-1)[0]["error_code"],
                                 0)
            self.assertIn(b"y", [v for _, v in c.log_of("t", 0)])


class Nearest(unittest.TestCase):
    def test_consumers_are_sent_to_the_replica_in_their_rack(self):
        racks = {1: "a", 2: "b", 3: "c"}
        with Cluster(3, each=lambda i: {
                "broker.rack": racks[i],
                "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}) as c:
            c.create_topic("t", assignment=[[1, 2, 3]])
            c.wait_isr("t", 1, 3)
            with c.conn(1) as k:
                kwire.produce_one(k, "t", 0, kwire.simple_batch(*[b"%d" % i for i in range(10)]), acks=-1)

                def ask(rack, offset=0):
                    return kwire.fetch(k, 11, [("t", 0, offset)], rack_id=rack)[0][2]
                until("b is caught up", lambda: ask("b")["preferred_read_replica"] == 2)
                a = ask("b")
                self.assertEqual((a["error_code"], len(a["records"] or b""), a["high_watermark"]), (0, 0, 10))
                for rack in ("a", "", "elsewhere"):
                    a = ask(rack)
                    self.assertEqual(a["preferred_read_replica"], -1)
                    self.assertGreater(len(a["records"]), 0)
            with c.conn(2) as k:  # the follower serves, up to its own watermark, and sends nobody on
                def got():
                    a = kwire.fetch(k, 11, [("t", 0, 0)], rack_id="c")[0][2]
                    self.assertEqual((a["error_code"], a["preferred_read_replica"]), (0, -1))
                    return len(list(kwire.records(a["records"] or b"")))
                until("the follower's watermark", lambda: got() == 10)
                self.assertEqual(kwire.fetch(k, 11, [("t", 0, 99)])[0][2]["error_code"], 1)
                self.assertEqual(kwire.fetch(k, 10, [("t", 0, 0)])[0][2]["error_code"], 6)
            c.broker(2).kill()
            c.wait_state("t", 0, lambda s: 2 not in s["isr"])
            with c.conn(1) as k:  # which hears of it a moment later
                until("nobody is sent there", lambda: kwire.fetch(k, 11, [("t", 0, 0)], rack_id="b")[0][2][
                    "preferred_read_replica"] == -1)


class Losses(unittest.TestCase):
    def test_an_unclean_leader_leads_when_that_is_allowed(self):
        with Cluster(3, overrides={"min.insync.replicas": "1"}) as c:
            c.create_topic("t", assignment=[[1, 2]], configs={"min.insync.replicas": 1})
            with c.conn(1) as k:
                kwire.produce_one(k, "t", 0, kwire.simple_batch(b"both"), acks=-1)
            c.broker(2).kill()
            c.wait_state("t", 0, lambda s: s["isr"] == [1])
            with c.conn(1) as k:
                kwire.produce_one(k, "t", 0, kwire.simple_batch(b"alone"), acks=-1)
            c.broker(1).kill()
            c.wait_state("t", 0, lambda s: s["leader"] == -1)
            c.broker(2).start()
            c.wait_brokers()
            self.assertEqual(c.state("t", 0)["leader"], -1)
            a = c.on_controller("IncrementalAlterConfigs", 1, validate_only=False, resources=[
                {"resource_type": 2, "resource_name": "t", "configs": [
                    {"name": "unclean.leader.election.enable", "config_operation": 0, "value": "true"}]}])
            self.assertEqual(a["responses"][0]["error_code"], 0)
            s = c.wait_state("t", 0, lambda s: s["leader"] == 2)
            self.assertEqual((s["isr"], s.get("leader_recovery_state")), ([2], 1))
            with c.conn(2) as k:
                until("2 has heard that it leads", lambda: kwire.produce(
                    k, 9, [("t", 0, kwire.simple_batch(b"after"))], acks=-1)[0]["error_code"] == 0)
            c.broker(1).start()
            s = c.wait_state("t", 0, lambda s: len(s["isr"]) == 2)
            self.assertEqual(s.get("leader_recovery_state", 0), 0)
            want = [(0, b"both"), (1, b"after")]
            self.assertEqual(c.log_of("t", 0), want)
            until("the old leader has cut what nobody else had", lambda: c.log_of("t", 0, leader=1) == want)

    def test_deleted_records_are_deleted_on_all_replicas(self):
        with Cluster(3) as c:
            c.create_topic("t", assignment=[[1, 2, 3]])
            with c.conn(1) as k:
                for i in range(10):
                    kwire.produce_one(k, "t", 0, kwire.simple_batch(b"%d" % i), acks=-1)
                a = k.call("DeleteRecords", 2, timeout_ms=20000,
                           topics=[{"name": "t", "partitions": [{"partition_index": 0, "offset": 6}]}])
                p = a["topics"][0]["partitions"][0]
                self.assertEqual((p["error_code"], p["low_watermark"]), (0, 6))
            for i in (2, 3):
                with c.conn(i) as k:
                    p = kwire.fetch(k, 11, [("t", 0, 6)])[0][2]
                    self.assertEqual((p["error_code"], p["log_start_offset"]), (0, 6))


class Moves(unittest.TestCase):
    def alter(self, c, topic, moves):
        a = c.on_controller("AlterPartitionReassignments", 0, timeout_ms=30000, topics=[
            {"name": topic, "partitions": [{"partition_index": p, "replicas": ids} for p, ids in moves.items()]}])
        self.assertEqual([p["error_code"] for p in a["responses"][0]["partitions"]], [0] * len(moves))

    def moving(self, c):
        a = c.on_controller("ListPartitionReassignments", 0, timeout_ms=30000, topics=None)
        return sum(len(t["partitions"]) for t in a["topics"])

    def test_partitions_move_under_load(self):
        with Cluster(4) as c:
            c.create_topic("t", assignment=[[1, 2, 3], [2, 3, 1]])
            with History(c, "t", 2) as h:
                h.grow(200)
                for target in ([4, 2, 3], [3, 1, 4]):
                    self.alter(c, "t", {0: target, 1: target})
                    until("the moves are over", lambda: self.moving(c) == 0)
                    with c.zk.client() as z:
                        self.assertEqual(z.json("/brokers/topics/t")["partitions"], {"0": target, "1": target})
                    for p in range(2):
                        s = c.state("t", p)
                        self.assertIn(s["leader"], target)
                        self.assertEqual(sorted(s["isr"]), sorted(target))
                    h.grow(100)
            h.check()
            h.check_copies([1, 3, 4])
            until("the folders are gone", lambda: not [
                d for d in os.listdir(c.broker(2).data) if d.startswith("t-") and not d.endswith("-delete")])

    def test_leaders_go_back_when_asked(self):
        with Cluster(3, overrides={"auto.leader.rebalance.enable": "false"}) as c:
            c.create_topic("t", assignment=[[1, 2, 3], [1, 3, 2]])
            c.broker(1).restart()
            c.wait_isr("t", 2, 3)
            self.assertNotEqual(c.leader("t", 0), 1)
            a = c.on_controller("ElectLeaders", 2, election_type=0, timeout_ms=20000,
                                topic_partitions=[{"topic": "t", "partitions": [0, 1]}])
            self.assertEqual([p["error_code"] for p in a["replica_election_results"][0]["partition_result"]], [0, 0])
            self.assertEqual([c.leader("t", p) for p in (0, 1)], [1, 1])


class Groups(unittest.TestCase):
    def coordinator(self, c, group):
        def found():
            with c.conn() as k:
                a = k.call("FindCoordinator", 4, key_type=0, coordinator_keys=[group])["coordinators"][0]
            return a["error_code"] == 0 and a["node_id"] in c.running() and a["node_id"]
        return until("coordinator of %s" % group, found)

    def commit(self, c, group, offset):
        def taken():
            with c.conn(self.coordinator(c, group)) as k:
                a = k.call("OffsetCommit", 7, group_id=group, generation_id_or_member_epoch=-1, member_id="",
                           topics=[{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": offset,
                                                                 "committed_metadata": ""}]}])
            return a["topics"][0]["partitions"][0]["error_code"] == 0
        until("commit of %d" % offset, taken)

    def committed(self, c, group):
        def read():
            with c.conn(self.coordinator(c, group)) as k:
                a = k.call("OffsetFetch", 6, group_id=group,
                           topics=[{"name": "t", "partition_indexes": [0]}], require_stable=False)
            return a["error_code"] == 0 and a["topics"][0]["partitions"][0]["committed_offset"] + 1
        return until("offset of %s" % group, read) - 1

    def test_committed_offsets_outlive_their_coordinator(self):
        with Cluster(3) as c:
            c.create_topic("t")
            groups = ["g%d" % i for i in range(6)]
            for g in groups:
                self.commit(c, g, 10)
            for round in range(2):
                dead = self.coordinator(c, groups[round])
                c.broker(dead).kill()
                for i, g in enumerate(groups):
                    self.assertEqual(self.committed(c, g), 10 + round * 10)
                    self.commit(c, g, 20 + round * 10)
                c.broker(dead).start()
                with c.zk.client() as z:
                    n = len(z.json("/brokers/topics/__consumer_offsets")["partitions"])
                c.wait_isr("__consumer_offsets", n, 3)
            for g in groups:
                self.assertEqual(self.committed(c, g), 30)


if __name__ == "__main__":
    harness.main()
