"""Apache's brokers and kafkad's in one cluster, at the levels of inter.broker.protocol.version that a roll passes, and
beside an old Apache broker: either kind is controller, and then leads, follows, dies and is relieved.

KAFKAD_MIXED_LEVELS=all takes more levels."""
import os
import signal
import unittest

import apache
import cluster
import kwire
from harness import until

MORE = os.environ.get("KAFKAD_MIXED_LEVELS") == "all"


class Roles(unittest.TestCase):
    """Brokers 1 and 2 are of Apache's kind, 3 and 4 of kafkad's."""

    def at_level(self, level, version=apache.VERSION, **more):
        overrides = {"inter.broker.protocol.version": level, "min.insync.replicas": 1}
        overrides.update(more)
        kinds = {1: "apache", 2: "apache", 3: "kafkad", 4: "kafkad"}
        with apache.Mixed(kinds, overrides=overrides, version=version) as c:
            for kind, controller in (("kafkad", 3), ("apache", 1)):
                with self.subTest(level=level, controller=kind):
                    c.make_controller(controller)
                    name = "of-" + kind
                    self.live_and_die(c, name)
                    self.administrate(c, name, controller)
                    self.cut(c, name)

    def folders(self, c, i, topic):
        return sorted(n for n in os.listdir(c.brokers[i].data) if n.startswith(topic + "-"))

    def live_and_die(self, c, name):
        """Each partition has a copy on either kind; clean stops of leaders and followers."""
        topic = name + "-lives"
        c.create_topic(topic, assignment=[[2, 4], [4, 2]])
        with cluster.History(c, topic, 2, pause=0.01) as h:
            h.grow(50)
            for i in (2, 4):
                c.brokers[i].stop()
                kind = c.brokers[i].kind
                self.assertTrue(c.brokers[i].has_line("relieved of all partitions" if kind == "kafkad" else
                                                      "Controlled shutdown (request returned successfully|succeeded)"), kind)
                h.grow(20)
                c.brokers[i].start()
                c.wait_isr(topic, 2, 2, deadline=60)
                h.grow(20)
            h.stop()
        h.check()
        h.check_copies([2, 4])

    def administrate(self, c, name, controller):
        """Growth, moves between the kinds, preferred leaders, settings, deletion."""
        topic = name + "-admin"
        topic_id = c.create_topic(topic, assignment=[[1, 3], [3, 1]])
        a = c.on_controller("CreatePartitions", 2, timeout_ms=30000, topics=[
            {"name": topic, "count": 3, "assignments": [{"broker_ids": [3, 1]}]}])
        self.assertEqual(a["results"][0]["error_code"], 0, a)
        with cluster.History(c, topic, 3, pause=0.01) as h:
            h.grow(50)
            moves = {0: [4, 2], 1: [2, 4], 2: [1, 4]}
            a = c.on_controller("AlterPartitionReassignments", 0, timeout_ms=30000, topics=[
                {"name": topic, "partitions": [{"partition_index": p, "replicas": ids} for p, ids in moves.items()]}])
            self.assertEqual([p["error_code"] for p in a["responses"][0]["partitions"]], [0, 0, 0], a)
            for p, ids in moves.items():
                c.wait_state(topic, p, lambda s, ids=ids: sorted(s["isr"]) == sorted(ids), 60)
            until("moves are over", lambda: not c.on_controller(
                "ListPartitionReassignments", 0, timeout_ms=30000, topics=None)["topics"], 60)
            want = {1: [2], 2: [0, 1], 3: [], 4: [0, 1, 2]}
            for i, parts in want.items():
                # a folder that is to be deleted has another name at once
                until("%d has %s of %s" % (i, parts, topic), lambda i=i, parts=parts: [
                    n for n in self.folders(c, i, topic) if not n.endswith("-delete")] == ["%s-%d" % (topic, p) for p in parts])
            a = c.on_controller("ElectLeaders", 2, election_type=0, timeout_ms=30000, topic_partitions=[
                {"topic": topic, "partitions": [0, 1, 2]}])
            for r in a["replica_election_results"]:
                self.assertTrue(all(p["error_code"] in (0, 84) for p in r["partition_result"]), a)
            for p, ids in moves.items():
                c.wait_state(topic, p, lambda s, ids=ids: s["leader"] == ids[0])
            h.grow(50)
            h.stop()
        h.check()
        h.check_copies([4])
        for i in (1, 4):  # each kind's broker takes a change and both see it
            self.change_setting(c, topic, i)
        a = c.on_controller("DeleteTopics", 5, topic_names=[topic], timeout_ms=30000)
        self.assertEqual(a["responses"][0]["error_code"], 0, a)
        until("topic is gone", lambda: all(
            c.metadata(i, [topic])["topics"][0]["error_code"] == 3 for i in c.running()), 60)
        for i in c.brokers:
            until("%d has deleted" % i, lambda i=i: all(
                n.endswith("-delete") for n in os.listdir(c.brokers[i].data) if n.startswith(topic)))
        with c.zk.client() as z:
            until("nodes are gone", lambda: not z.stat("/brokers/topics/" + topic) and not z.children("/admin/delete_topics"))
        if topic_id != bytes(16):
            self.assertNotEqual(c.create_topic(topic, assignment=[[1, 3]]), topic_id)

    def change_setting(self, c, topic, at):
        value = str(100000 + at)
        with c.conn(at) as k:
            a = k.call("IncrementalAlterConfigs", 1, resources=[
                {"resource_type": 2, "resource_name": topic,
                 "configs": [{"name": "max.message.bytes", "config_operation": 0, "value": value}]}])
        self.assertEqual(a["responses"][0]["error_code"], 0, a)

        def seen(i):
            with c.conn(i) as k:
                a = k.call("DescribeConfigs", 2, include_synonyms=False, resources=[
                    {"resource_type": 2, "resource_name": topic, "configuration_keys": ["max.message.bytes"]}])
            return a["results"][0]["configs"][0]["value"] == value
        for i in c.running():
            until("%d sees the setting" % i, lambda i=i: seen(i))

    def cut(self, c, name):
        """A leader that dies with records that its follower of the other kind has not: the follower leads, and what the
        old one has too much is cut when it comes back."""
        topic = name + "-cut"
        c.create_topic(topic, assignment=[[2, 4], [4, 2]])
        for p, leader, follower in ((0, 2, 4), (1, 4, 2)):
            until("%d leads" % leader, lambda: self.try_produce(c, leader, topic, p, b"shared"))
            with c.conn(leader) as k:
                c.brokers[follower].process.send_signal(signal.SIGSTOP)
                try:
                    for n in range(5):
                        kwire.produce_one(k, topic, p, kwire.simple_batch(b"lost %d" % n), acks=1)
                    c.brokers[leader].kill()
                finally:
                    c.brokers[follower].process.send_signal(signal.SIGCONT)
            c.wait_state(topic, p, lambda s: s["leader"] == follower, 60)
            until("%d leads" % follower, lambda: self.try_produce(c, follower, topic, p, b"new"))
            c.brokers[leader].start()
            c.wait_state(topic, p, lambda s: len(s["isr"]) == 2, 60)
            log = c.log_of(topic, p)
            self.assertEqual((log[0][1], log[-1][1]), (b"shared", b"new"))
            self.assertLess(len(log), 7)
            until("copies are the same", lambda: c.log_of(topic, p, leader=leader) == log)
            self.assertEqual(self.epochs(c, leader, topic, p), self.epochs(c, follower, topic, p))

    def epochs(self, c, i, topic, p):
        with open(os.path.join(c.brokers[i].data, "%s-%d" % (topic, p), "leader-epoch-checkpoint")) as f:
            return f.read()

    def try_produce(self, c, i, topic, p, value):
        with c.conn(i) as k:
            return kwire.produce(k, 9, [(topic, p, kwire.simple_batch(value))])[0]["error_code"] == 0

    def test_level_3_9(self):
        self.at_level("3.9")

    def test_level_2_3_beside_apache_brokers_of_2_8(self):
        self.at_level("2.3", version=apache.OLD_VERSION)

    @unittest.skipUnless(MORE, "KAFKAD_MIXED_LEVELS=all")
    def test_other_levels(self):
        for level in ("3.8", "3.5", "3.2", "3.0", "2.8", "2.7", "2.6", "2.4", "2.3", "2.2", "2.0", "1.1", "1.0", "0.11.0"):
            self.at_level(level)

    @unittest.skipUnless(MORE, "KAFKAD_MIXED_LEVELS=all")
    def test_other_levels_beside_apache_brokers_of_2_8(self):
        for level in ("2.8", "2.7", "2.4", "2.0", "1.0"):
            self.at_level(level, version=apache.OLD_VERSION)


if __name__ == "__main__":
    apache.main()
