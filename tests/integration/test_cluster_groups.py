"""Groups on a cluster: their coordinator dies, moves, or is believed dead and comes back. Members go on where they were,
in the same generation; what was committed stays; an old coordinator can commit nothing."""
import signal
import threading
import unittest

import groupwire as g
import harness
import kwire
from cluster import Cluster
from groupwire import partition_of
from harness import until
from test_groups_consumer import Beater

LATER = {7, g.LOADING, g.NOT_AVAILABLE, g.NOT_COORDINATOR, -1}
OFFSETS = "__consumer_offsets"
OVERRIDES = {"offsets.topic.num.partitions": "5", "group.consumer.heartbeat.interval.ms": "5000"}


class ClusterGroups(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(3, overrides=OVERRIDES)
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.conns = {}
        self.cluster.create_topic("t", partitions=4)
        until("a coordinator", lambda: self.coordinator("g") is not None)
        self.cluster.wait_isr(OFFSETS, 5, 3)

    def tearDown(self):
        for i in list(self.conns):
            self.drop(i)

    # -- who coordinates

    def conn(self, i):
        if i not in self.conns:
            self.conns[i] = kwire.Conn(self.cluster.broker(i).port)
        return self.conns[i]

    def drop(self, i):
        k = self.conns.pop(i, None)
        if k:
            k.close()

    def coordinator(self, group, asked=None):
        """What a broker says; None: not now."""
        try:
            error, node, _, _ = g.find(self.conn(asked or self.cluster.running()[0]), group)
        except (OSError, kwire.Closed):
            self.drop(asked or self.cluster.running()[0])
            return None
        return node if error == 0 and node in self.cluster.running() else None

    def ask(self, group, call):
        """call(connection) at the group's coordinator until its error is no reason to look for another. Whatever the
        coordinators said meanwhile must be one of those reasons."""
        said = []

        def answered():
            node = self.coordinator(group)
            if node is None:
                return False
            try:
                said.append(call(self.conn(node)))
            except (OSError, kwire.Closed):
                self.drop(node)
                return False
            return said[-1] not in LATER
        until("the coordinator of %s answers" % group, answered)
        return said[-1]

    def beat(self, m):
        def call(c):
            m.c = c
            return m.heartbeat()
        return self.ask(m.group, call)

    def commit(self, m, offset):
        def call(c):
            m.c = c
            return m.commit("t", {0: offset})[0]
        return self.ask(m.group, call)

    def committed(self, group):
        found = {}

        def call(c):
            error, offsets = g.fetch(c, group, {"t": [0]})
            found.update(offsets)
            return error
        self.assertEqual(self.ask(group, call), 0)
        return found["t", 0][0]

    def stable(self, n=3):
        """n members of the classic protocol, with sessions that outlast the slowest machine."""
        node = until("a coordinator", lambda: self.coordinator("g"))
        until("groups are loaded", lambda: g.describe(self.conn(node), "g")["error_code"] == 0)
        conns = [kwire.Conn(self.cluster.broker(node).port) for _ in range(n)]
        try:
            members = g.stable(conns, "g", session_ms=300000, protocols=(("range", g.subscription("t")),))
        finally:
            for c in conns:
                c.close()
        return node, members

    def restart(self, i):
        self.cluster.broker(i).start()
        self.cluster.wait_isr(OFFSETS, 5, 3)

    # -- tests

    def test_members_outlive_their_coordinator(self):
        """It is killed, it is stopped, its partition moves: never a rebalance, as long as sessions last."""
        dead, members = self.stable()
        generation = members[0].generation
        for round, end in enumerate((lambda i: self.cluster.broker(i).kill(), lambda i: self.cluster.broker(i).stop())):
            self.assertEqual(self.commit(members[0], 10 + round), 0)
            self.drop(dead)
            end(dead)
            # while it loads, a coordinator answers heartbeats with no error, and SyncGroup with a rebalance
            self.assertEqual(self.ask("g", lambda c: g.describe(c, "g")["error_code"]), 0)
            for m in members:
                self.assertEqual(self.beat(m), 0)
                self.assertEqual(m.sync()["error_code"], 0) # its share is known too
            self.assertEqual(self.committed("g"), 10 + round)
            now = self.coordinator("g")
            self.assertNotEqual(now, dead)
            self.assertEqual(g.describe(self.conn(now), "g")["group_state"], "Stable")
            self.restart(dead)
            dead = now
        self.assertEqual(self.commit(members[1], 20), 0)
        p = partition_of("g", 5)
        preferred = self.cluster.metadata(1, [OFFSETS])["topics"][0]["partitions"]
        preferred = [x for x in preferred if x["partition_index"] == p][0]["replica_nodes"][0]
        self.cluster.on_controller("ElectLeaders", 2, election_type=0, timeout_ms=30000,
                                   topic_partitions=[{"topic": OFFSETS, "partitions": [p]}])
        until("it moves", lambda: self.coordinator("g", preferred) == preferred)
        for i in self.cluster.running(): # who is not the coordinator any more says so, and lets nobody commit
            if i != preferred:
                error = g.commit(self.conn(i), "g", "t", {0: 1}, member=members[0].id, generation=generation)[0]
                self.assertEqual(error, g.NOT_COORDINATOR)
        for m in members:
            self.assertEqual(self.beat(m), 0)
        self.assertEqual(self.committed("g"), 20)
        self.assertEqual({m.generation for m in members}, {generation})
        self.assertEqual(self.beat(members[2]), 0)

    def test_members_of_the_new_protocol_outlive_it_too(self):
        dead = until("a coordinator", lambda: self.coordinator("g"))
        members = [Beater(self.conn(dead), "g", ["t"], member="m%d" % i) for i in range(2)]

        def beat(m):
            def call(c):
                m.c = c
                return m.beat().error
            return self.ask("g", call)

        def settled():
            self.assertEqual([beat(m) for m in members], [0, 0])
            return [m.n() for m in members] == [2, 2]
        until("they share", settled)
        before = [(m.epoch, m.owned) for m in members]
        self.drop(dead)
        self.cluster.broker(dead).kill()
        for m in members:
            self.assertEqual(beat(m), 0)
        self.assertEqual([(m.epoch, m.owned) for m in members], before)
        self.restart(dead)

    def test_a_join_that_is_parked_is_sent_on(self):
        """Who waits for a rebalance at a coordinator that resigns is told to look for the new one, at once."""
        node, members = self.stable(2)
        p = partition_of("g", 5)
        with kwire.Conn(self.cluster.broker(node).port, timeout=60) as c:
            members[0].c = c
            sent = members[0].send_join() # waits for the other
            with kwire.Conn(self.cluster.broker(node).port) as other:
                until("it rebalances", lambda: g.state(other, "g") == "PreparingRebalance")
            others = [i for i in (1, 2, 3) if i != node]
            answer = {}
            t = threading.Thread(target=lambda: answer.update(members[0].take_join(sent)))
            t.start()
            self.cluster.on_controller("AlterPartitionReassignments", 0, timeout_ms=30000, topics=[
                {"name": OFFSETS, "partitions": [{"partition_index": p, "replicas": others}]}])
            t.join(60)
            self.assertIn(answer.get("error_code"), (g.NOT_COORDINATOR, g.NOT_AVAILABLE))
        until("it has moved", lambda: self.coordinator("g") in others)
        # The rebalance was not in the log; the old generation is.
        self.assertEqual([self.beat(m) for m in members], [0, 0])

    def test_a_coordinator_that_wakes_up_commits_nothing(self):
        """It was paused while another took over; commits wait in its socket, and more come."""
        old, members = self.stable()
        self.assertEqual(self.commit(members[0], 1), 0)
        sleeping = kwire.Conn(self.cluster.broker(old).port, timeout=60)
        self.addCleanup(sleeping.close)
        sleeping.call("ApiVersions", 0)
        self.cluster.broker(old).process.send_signal(signal.SIGSTOP)
        self.drop(old)
        try:
            fields = {"group_id": "g", "member_id": members[0].id, "generation_id_or_member_epoch": members[0].generation,
                      "group_instance_id": None}
            p = partition_of("g", 5)

            def epoch_of():
                return self.cluster.state(OFFSETS, p)["leader_epoch"]
            sent = [sleeping.send("OffsetCommit", 8, topics=[{"name": "t", "partitions": [
                {"partition_index": 0, "committed_offset": 100 + i, "committed_leader_epoch": -1,
                 "committed_metadata": ""}]}], **fields) for i in range(3)]
            awake = [i for i in (1, 2, 3) if i != old]
            until("another coordinator", lambda: self.coordinator("g", awake[0]) in awake)
            for i in awake:
                self.conn(i)
            self.assertEqual(self.at(awake, lambda c: g.commit(c, "g", "t", {0: 2}, member=members[0].id,
                                                               generation=members[0].generation)[0]), 0)
            epoch = epoch_of()
        finally:
            self.cluster.broker(old).process.send_signal(signal.SIGCONT)
        errors = []
        try:
            errors = [sleeping.receive("OffsetCommit", 8, s)["topics"][0]["partitions"][0]["error_code"] for s in sent]
        except (OSError, kwire.Closed):
            pass # it may also leave them unanswered
        if 0 in errors:  # right only when a slow machine had let the other's session end: it was elected again before it answered
            self.assertGreater(epoch_of(), epoch)
            self.assertEqual(self.committed("g"), 100 + max(i for i, e in enumerate(errors) if e == 0))
            return
        for e in errors:
            self.assertIn(e, LATER)
        self.cluster.wait_isr(OFFSETS, 5, 3)
        self.assertEqual(self.committed("g"), 2)
        self.assertEqual(g.commit(sleeping_or(self, old, sleeping), "g", "t", {0: 200}, member=members[0].id,
                                  generation=members[0].generation)[0], g.NOT_COORDINATOR)
        # Nor does what it may have appended come back when it leads again.
        for i in awake:
            self.drop(i)
            self.cluster.broker(i).stop()
            if i == awake[0]:
                self.restart(i)
        self.restart(awake[1])
        self.assertEqual(self.committed("g"), 2)

    def at(self, brokers, call):
        """The same as ask, of these brokers only."""
        said = []

        def answered():
            for i in brokers:
                said.append(call(self.conn(i)))
                if said[-1] not in LATER:
                    return True
            return False
        until("one of them answers", answered)
        return said[-1]

    def test_without_enough_replicas_nothing_is_committed(self):
        """Fewer than min.insync.replicas: the commit is refused, or not known to be done, and is not read."""
        node, members = self.stable()
        self.assertEqual(self.commit(members[0], 1), 0)
        others = [i for i in (1, 2, 3) if i != node]
        for i in others:
            self.drop(i)
            self.cluster.broker(i).kill()
        self.cluster.wait_state(OFFSETS, partition_of("g", 5), lambda s: s["isr"] == [node])
        members[0].c = self.conn(node)
        until("the leader knows", lambda: members[0].commit("t", {0: 50})[0] == g.NOT_AVAILABLE)
        error, found = g.fetch(self.conn(node), "g", {"t": [0]})
        self.assertEqual((error, found["t", 0][0]), (0, 1))
        for i in others:
            self.cluster.broker(i).start()
        self.cluster.wait_isr(OFFSETS, 5, 3)
        until("commits go on", lambda: self.commit(members[0], 3) == 0)
        self.assertEqual(self.committed("g"), 3)


def sleeping_or(test, i, conn):
    """The connection, if it lives; else a new one to the broker."""
    try:
        conn.call("ApiVersions", 0)
        return conn
    except (OSError, kwire.Closed):
        return test.conn(i)


if __name__ == "__main__":
    harness.main()
