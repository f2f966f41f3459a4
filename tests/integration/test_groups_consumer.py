"""Groups of the protocol of KIP-848 over raw frames: what a member sees of joins, leaves, topics that grow and go,
restarts; offsets with member epochs; what tools see; groups that change their protocol."""
import threading
import unittest

import groupwire as g
import harness
import kwire
from groupwire import commit, describe, fetch
from harness import Broker, until

STALE_EPOCH, FENCED_EPOCH, UNRELEASED_INSTANCE, UNSUPPORTED_ASSIGNOR, INVALID_REGEX = 113, 110, 111, 112, 128
# Sessions as short as they may be; the members here beat when they are told to.
OVERRIDES = dict(g.OVERRIDES, **{"group.consumer.min.session.timeout.ms": "1000",
                                 "group.consumer.min.heartbeat.interval.ms": "100",
                                 "group.consumer.session.timeout.ms": "20000",
                                 "group.consumer.heartbeat.interval.ms": "1000",
                                 "group.consumer.migration.policy": "bidirectional"})


class Beater:
    """A member: what it was told it has, it owns."""

    def __init__(self, conn, group, topics=None, member="", instance=None, version=1, regex=None, **more):
        self.c, self.group, self.topics, self.instance, self.version = conn, group, topics, instance, version
        self.regex, self.more = regex, more
        self.id = member or ("" if version == 0 else "m%d" % id(self))
        self.epoch, self.owned, self.error = 0, {}, None

    def beat(self, epoch=None, full=False):
        epoch = self.epoch if epoch is None else epoch
        v = {"group_id": self.group, "member_id": self.id, "member_epoch": epoch, "instance_id": self.instance}
        if epoch == 0 or full:
            v.update(rebalance_timeout_ms=30000, subscribed_topic_names=self.topics, **self.more)
            if self.version >= 1:
                v["subscribed_topic_regex"] = self.regex
        if epoch >= 0:
            v["topic_partitions"] = [{"topic_id": t, "partitions": p} for t, p in self.owned.items()] if epoch else []
        a = self.c.call("ConsumerGroupHeartbeat", self.version, **v)
        self.error, self.answer = a["error_code"], a
        if self.error == 0 and epoch >= 0:
            self.id, self.epoch = a["member_id"], a["member_epoch"]
            if a["assignment"] is not None:
                self.owned = {t["topic_id"]: t["partitions"] for t in a["assignment"]["topic_partitions"]}
        return self

    def n(self):
        return sum(len(p) for p in self.owned.values())

    def leave(self, epoch=-1):
        return self.beat(epoch).error


def settle(*members):
    """They beat until nothing changes any more."""
    for _ in range(20):
        before = [(m.epoch, m.owned) for m in members]
        for m in members:
            m.beat()
            assert m.error == 0, (m.id, m.answer)
        if before == [(m.epoch, m.owned) for m in members]:
            return
    raise AssertionError("it does not settle: %s" % before)


def describe_consumers(c, group, version=1):
    return c.call("ConsumerGroupDescribe", version, group_ids=[group], include_authorized_operations=True)["groups"][0]


class Consumers(harness.BrokerTest):
    OVERRIDES = OVERRIDES

    def setUp(self):
        self.conns = g.connect(self.broker, 3)
        self.c = self.conns[0]
        self.group = self.topic("g")
        self.t = self.topic("t")
        g.coordinator(self.c, self.group)
        kwire.create_topic(self.c, self.t, partitions=4)

    def tearDown(self):
        for c in self.conns:
            c.close()
        super().tearDown()

    def member(self, i=0, **more):
        return Beater(self.conns[i], self.group, topics=more.pop("topics", [self.t]), **more)

    def test_members_share_and_hand_over(self):
        for version in (0, 1):
            group = self.group + str(version)
            a, b = (Beater(self.conns[i], group, [self.t], version=version) for i in range(2))
            a.beat()
            self.assertEqual((a.error, a.epoch, a.n()), (0, 1, 4))
            self.assertEqual(a.answer["heartbeat_interval_ms"], 1000)
            b.beat()
            self.assertEqual((b.error, b.epoch, b.n()), (0, 2, 0))
            settle(a, b)
            self.assertEqual((a.n(), b.n()), (2, 2))
            self.assertEqual(a.leave(), 0)
            settle(b)
            self.assertEqual(b.n(), 4)
            self.assertEqual(a.beat(a.epoch).error, g.UNKNOWN_MEMBER_ID)
            self.assertEqual(b.leave(), 0)
            self.assertEqual(describe_consumers(self.c, group)["group_state"], "Empty")

    def test_a_silent_member_goes(self):
        with Broker(overrides=dict(OVERRIDES, **{"group.consumer.session.timeout.ms": "4000",
                                                 "group.consumer.heartbeat.interval.ms": "100"})) as broker:
            with kwire.Conn(broker.port) as c:
                g.coordinator(c, "g")
                kwire.create_topic(c, "t", partitions=2)
                a, b = Beater(c, "g", ["t"]).beat(), Beater(c, "g", ["t"]).beat()
                until("all is b's", lambda: b.beat().n() == 2)
                self.assertEqual(a.beat().error, g.UNKNOWN_MEMBER_ID)

    def test_topics_that_grow_come_and_go(self):
        late = self.topic("late")
        a = self.member(topics=[self.t, late]).beat()
        self.assertEqual(a.n(), 4)
        self.c.call("CreatePartitions", 3, topics=[{"name": self.t, "count": 6, "assignments": None}], timeout_ms=10000)
        until("it grows", lambda: a.beat().n() == 6)
        kwire.create_topic(self.c, late, partitions=3)
        until("it comes", lambda: a.beat().n() == 9)
        self.c.call("DeleteTopics", 5, topic_names=[self.t], timeout_ms=10000)
        until("it goes", lambda: a.beat().n() == 3)
        settle(a)
        self.assertEqual(describe_consumers(self.c, self.group)["group_state"], "Stable")

    def test_patterns(self):
        a = self.member(topics=[], regex=self.t + "-x[0-9]+").beat()
        self.assertEqual((a.error, a.n()), (0, 0))
        kwire.create_topic(self.c, self.t + "-x1", partitions=2)
        kwire.create_topic(self.c, self.t + "-y1", partitions=2)
        until("the topic is found", lambda: a.beat().n() == 2)
        self.assertEqual(describe_consumers(self.c, self.group)["members"][0]["subscribed_topic_regex"], a.regex)
        bad = self.member(1, topics=None, regex="a(").beat()
        self.assertEqual(bad.error, INVALID_REGEX)
        self.assertIn("not a valid regular expression", bad.answer["error_message"])

    def test_requests_that_are_none(self):
        for fields, error in (({"group_id": ""}, g.INVALID_REQUEST), ({"member_id": ""}, g.INVALID_REQUEST),
                              ({"instance_id": ""}, g.INVALID_REQUEST), ({"rack_id": ""}, g.INVALID_REQUEST),
                              ({"member_epoch": -3}, g.INVALID_REQUEST),
                              ({"rebalance_timeout_ms": -1}, g.INVALID_REQUEST),
                              ({"subscribed_topic_names": None}, g.INVALID_REQUEST),
                              ({"topic_partitions": None}, g.INVALID_REQUEST),
                              ({"member_epoch": 7}, g.GROUP_ID_NOT_FOUND),
                              ({"server_assignor": "mine"}, UNSUPPORTED_ASSIGNOR)):
            v = {"group_id": self.group + "-none", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 1000,
                 "subscribed_topic_names": [self.t], "topic_partitions": []}
            v.update(fields)
            a = self.c.call("ConsumerGroupHeartbeat", 1, **v)
            self.assertEqual((a["error_code"], bool(a["error_message"])), (error, True), fields)
        self.assertNotIn(self.group + "-none", g.groups(self.c))

    def test_large_requests(self):
        names = ["%s-%d" % (self.t, i) for i in range(10000)]
        a = self.member(topics=names).beat()
        self.assertEqual((a.error, a.n()), (0, 0))
        # more than one record may hold: refused, and the group is as it was
        b = self.member(1, topics=["%0240d" % i for i in range(8000)]).beat()
        self.assertEqual(b.error, -1)
        until("the group is loaded anew", lambda: a.beat().error == 0)
        self.assertEqual(len(describe_consumers(self.c, self.group)["members"]), 1)

    def test_offsets(self):
        a = self.member().beat()
        self.assertEqual(commit(self.c, self.group, self.t, {0: 5}, member=a.id, generation=a.epoch), {0: 0})
        self.assertEqual(commit(self.c, self.group, self.t, {0: 6}, member=a.id, generation=0), {0: STALE_EPOCH})
        self.assertEqual(commit(self.c, self.group, self.t, {0: 6}, member="x", generation=1), {0: g.UNKNOWN_MEMBER_ID})
        self.assertEqual(commit(self.c, self.group, self.t, {0: 6}, version=8, member=a.id, generation=a.epoch),
                         {0: g.UNSUPPORTED_VERSION})
        for member, epoch, error in ((a.id, a.epoch, 0), (a.id, 9, STALE_EPOCH), ("x", 1, g.UNKNOWN_MEMBER_ID), (None, -1, 0)):
            r = self.c.call("OffsetFetch", 9, groups=[{"group_id": self.group, "member_id": member, "member_epoch": epoch,
                                                       "topics": None}])["groups"][0]
            self.assertEqual(r["error_code"], error)
            self.assertEqual(len(r["topics"]), error == 0)

    def test_what_tools_see(self):
        a = self.member(instance="i", member="A", rack_id="r1", server_assignor="range").beat()
        d = describe_consumers(self.c, self.group)
        self.assertEqual((d["error_code"], d["group_state"], d["group_epoch"], d["assignment_epoch"], d["assignor_name"]),
                         (0, "Stable", 1, 1, "range"))
        m, = d["members"]
        self.assertEqual((m["member_id"], m["instance_id"], m["rack_id"], m["client_id"], m["client_host"], m["member_type"]),
                         ("A", "i", "r1", "kwire", "/127.0.0.1", 1))
        self.assertEqual(m["assignment"], m["target_assignment"])
        self.assertEqual((m["assignment"]["topic_partitions"][0]["topic_name"], a.n()), (self.t, 4))
        self.assertNotEqual(d["authorized_operations"], -2 ** 31)
        self.assertEqual(describe(self.c, self.group)["group_state"], "Dead")  # to the API of the classic protocol
        listed = {x["group_id"]: x for x in self.c.call("ListGroups", 5, types_filter=["consumer"])["groups"]}
        self.assertEqual((listed[self.group]["group_type"], listed[self.group]["group_state"]), ("consumer", "Stable"))
        self.assertEqual(self.c.call("DeleteGroups", 2, groups_names=[self.group])["results"][0]["error_code"], g.NON_EMPTY_GROUP)
        self.assertEqual(a.leave(), 0)
        self.assertEqual(self.c.call("DeleteGroups", 2, groups_names=[self.group])["results"][0]["error_code"], 0)
        for version in (0, 1):
            none = describe_consumers(self.c, self.group, version)
            self.assertEqual(none["error_code"], g.GROUP_ID_NOT_FOUND)
            self.assertTrue(none["error_message"])

    def test_groups_change_their_protocol(self):
        sub = g.subscription(self.t)
        m = g.Member(self.conns[1], self.group, protocols=(("range", sub),))
        m.join()
        m.sync({m.id: b"\0\0" + len([1]).to_bytes(4, "big") + len(self.t).to_bytes(2, "big") + self.t.encode()
                + b"\0\0\0\1\0\0\0\0" + b"\xff\xff\xff\xff"})
        n = self.member(2).beat()
        self.assertEqual((n.error, n.epoch), (0, m.generation + 1))
        self.assertEqual({x["member_type"] for x in describe_consumers(self.c, self.group)["members"]}, {0, 1})
        self.assertEqual(m.heartbeat(), g.REBALANCE)
        self.assertEqual(m.join()["error_code"], 0)
        self.assertEqual(m.sync()["error_code"], 0)
        settle(n)
        self.assertEqual(n.leave(), 0)
        self.assertEqual(m.heartbeat(), g.REBALANCE)
        self.assertEqual(m.join()["error_code"], 0)
        self.assertTrue(m.leads())
        self.assertEqual(m.sync()["error_code"], 0)
        self.assertEqual(describe(self.c, self.group)["group_state"], "Stable")


class Restarts(unittest.TestCase):
    def test_a_group_survives(self):
        with Broker(overrides=OVERRIDES) as b:
            with kwire.Conn(b.port) as c:
                g.coordinator(c, "g")
                kwire.create_topic(c, "t", partitions=4)
                a, s = Beater(c, "g", ["t"]).beat(), Beater(c, "g", ["t"], instance="i").beat()
                settle(a, s)
                commit(c, "g", "t", {0: 7}, member=a.id, generation=a.epoch)
            for end in (b.stop, b.kill):
                end()
                b.start()
                with kwire.Conn(b.port) as c:
                    g.coordinator(c, "g")
                    a.c = s.c = c
                    before = (a.epoch, a.owned, s.epoch, s.owned)
                    self.assertEqual([a.beat().error, s.beat().error], [0, 0])
                    self.assertEqual((a.epoch, a.owned, s.epoch, s.owned), before)
                    self.assertEqual(fetch(c, "g", {"t": [0]})[1][("t", 0)][0], 7)
            with kwire.Conn(b.port) as c:
                a.c = s.c = c
                self.assertEqual(s.leave(-2), 0)
                again = Beater(c, "g", ["t"], instance="i").beat()
                self.assertEqual((again.error, again.owned), (0, s.owned))

    def test_off_means_as_apache_kafka_without_it(self):
        with Broker(overrides=dict(g.OVERRIDES, **{"group.coordinator.rebalance.protocols": "classic"})) as b:
            with kwire.Conn(b.port) as c:
                newest = {k["api_key"]: k["max_version"] for k in c.call("ApiVersions", 3, client_software_name="t",
                                                                         client_software_version="1")["api_keys"]}
                self.assertEqual((newest[68], newest[69]), (0, 0))
                a = c.call("ConsumerGroupHeartbeat", 0, group_id="g", member_id="", member_epoch=0)
                self.assertEqual(a["error_code"], g.UNSUPPORTED_VERSION)
                a = c.call("ConsumerGroupDescribe", 0, group_ids=["a", "b"])
                self.assertEqual([(x["group_id"], x["error_code"]) for x in a["groups"]],
                                 [("a", g.UNSUPPORTED_VERSION), ("b", g.UNSUPPORTED_VERSION)])


class Crowds(unittest.TestCase):
    def test_many_members_at_once(self):
        """No more memory than they need, and others are served meanwhile."""
        n = 3000
        # However slow the machine, who joined first is a member still when the last has joined.
        patient = dict(OVERRIDES, **{"group.consumer.session.timeout.ms": 900000,
                                     "group.consumer.max.session.timeout.ms": 900000})
        with Broker(overrides=patient) as b, kwire.Conn(b.port) as c, kwire.Conn(b.port) as other:
            g.coordinator(c, "crowd")
            g.coordinator(other, "other")
            kwire.create_topic(c, "t", partitions=16)
            kwire.create_topic(other, "o", partitions=1)
            before = b.rss_kb()
            sent = [c.send("ConsumerGroupHeartbeat", 1, group_id="crowd", member_id="m%d" % i, member_epoch=0,
                           rebalance_timeout_ms=30000, subscribed_topic_names=["t"], topic_partitions=[]) for i in range(100)]
            results = []

            def rest():
                for i in range(n):
                    if i + 100 < n:
                        sent.append(c.send("ConsumerGroupHeartbeat", 1, group_id="crowd", member_id="m%d" % (i + 100),
                                           member_epoch=0, rebalance_timeout_ms=30000, subscribed_topic_names=["t"],
                                           topic_partitions=[]))
                    results.append(c.receive("ConsumerGroupHeartbeat", 1, sent[i])["error_code"])
            t = threading.Thread(target=rest)
            t.start()
            self.assertEqual(Beater(other, "other", ["o"]).beat().n(), 1)
            t.join(600)
            self.assertEqual(results, [0] * n)
            self.assertEqual(len(describe_consumers(other, "crowd")["members"]), n)
            if not harness.sanitized():
                b.assert_grown_less(before, 64 * 1024)


if __name__ == "__main__":
    harness.main()
