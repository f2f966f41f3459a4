"""OffsetCommit, OffsetFetch, OffsetDelete and the administration of groups in all versions, over raw frames; and the
records that they leave in __consumer_offsets, byte for byte."""
import struct
import time

import groupwire as g
import harness
import kwire
from groupwire import Member, commit, fetch
from harness import Broker, until


def offset_records(c, group):
    """[(key, value)] of the partition that the group's records are in."""
    p = g.partition_of(group)
    out, offset = [], 0
    while True:
        data = kwire.fetch(c, 11, [("__consumer_offsets", p, offset)])[0][2]["records"]
        if not data:
            return out
        found = list(kwire.records(data))
        out += [(key, value) for at, _, key, value, _ in found if at >= offset]
        offset = found[-1][0] + 1


def key_of_offset(group, topic, partition):
    return b"\0\1" + struct.pack(">h", len(group)) + group.encode() + struct.pack(">h", len(topic)) + \
        topic.encode() + struct.pack(">i", partition)


class Offsets(harness.BrokerTest):
    OVERRIDES = dict(g.OVERRIDES, **{"delete.topic.enable": "true"})

    def setUp(self):
        self.c = kwire.Conn(self.broker.port)
        self.group = self.topic("g")
        self.t = self.topic("t")
        g.coordinator(self.c, self.group)
        kwire.create_topic(self.c, self.t, partitions=3)

    def tearDown(self):
        self.c.close()
        super().tearDown()

    def test_commit_and_fetch_in_every_version(self):
        for version in range(1, 10):
            group = "%s-%d" % (self.group, version)
            self.assertEqual(commit(self.c, group, self.t, {0: 10, 2: 30}, version=version, metadata="m", epoch=4),
                             {0: 0, 2: 0})
            epoch = 4 if version >= 6 else -1
            for v in range(1, 10):
                e = epoch if v >= 5 else -1
                self.assertEqual(fetch(self.c, group, {self.t: [0, 1, 2]}, version=v),
                                 (0, {(self.t, 0): (10, e, "m", 0), (self.t, 1): (-1, -1, "", 0),
                                      (self.t, 2): (30, e, "m", 0)}))
                if v >= 2:
                    self.assertEqual(fetch(self.c, group, None, version=v),
                                     (0, {(self.t, 0): (10, e, "m", 0), (self.t, 2): (30, e, "m", 0)}))
                    self.assertEqual(fetch(self.c, group, {}, version=v), (0, {}))

    def test_version_0_keeps_offsets_in_the_store(self):
        self.assertEqual(commit(self.c, self.group, self.t, {0: 10, 7: 1}, version=0),
                         {0: 0, 7: g.UNKNOWN_TOPIC_OR_PARTITION})
        self.assertEqual(commit(self.c, self.group, self.t, {0: 12}, version=0), {0: 0})
        self.assertEqual(commit(self.c, self.group, self.t, {1: 1}, version=0, metadata="m" * 4097),
                         {1: g.METADATA_TOO_LARGE})
        self.assertEqual(fetch(self.c, self.group, {self.t: [0, 1, 9]}, version=0),
                         (0, {(self.t, 0): (12, -1, "", 0), (self.t, 1): (-1, -1, "", g.UNKNOWN_TOPIC_OR_PARTITION),
                              (self.t, 9): (-1, -1, "", g.UNKNOWN_TOPIC_OR_PARTITION)}))
        self.assertEqual(fetch(self.c, self.group, {self.t: [0]}, version=1)[1][(self.t, 0)][0], -1)
        for bad in ("a/b", "..", "."):
            self.assertEqual(commit(self.c, bad, self.t, {0: 1}, version=0), {0: g.INVALID_GROUP_ID})

    def test_unknown_topics_and_partitions(self):
        self.assertEqual(commit(self.c, self.group, "no-such", {0: 1}), {0: g.UNKNOWN_TOPIC_OR_PARTITION})
        self.assertEqual(commit(self.c, self.group, self.t, {0: 1, 3: 1, -1: 1}),
                         {0: 0, 3: g.UNKNOWN_TOPIC_OR_PARTITION, -1: g.UNKNOWN_TOPIC_OR_PARTITION})
        self.assertEqual(fetch(self.c, self.group, {"no-such": [0]}), (0, {("no-such", 0): (-1, -1, "", 0)}))

    def test_metadata_of_any_size(self):
        self.assertEqual(commit(self.c, self.group, self.t, {0: 1}, metadata="m" * 4096), {0: 0})
        self.assertEqual(commit(self.c, self.group, self.t, {1: 1}, metadata="m" * 4097), {1: g.METADATA_TOO_LARGE})
        self.assertEqual(commit(self.c, self.group, self.t, {1: 1}, metadata="\u20ac" * 4096), {1: 0})
        self.assertEqual(commit(self.c, self.group, self.t, {2: 1}, metadata="m" * 32767), {2: g.METADATA_TOO_LARGE})
        self.assertEqual(set(fetch(self.c, self.group, None)[1]), {(self.t, 0), (self.t, 1)})

    def test_the_records_are_kafkas(self):
        before = int(time.time() * 1000)
        commit(self.c, self.group, self.t, {0: 42})
        commit(self.c, self.group, self.t, {1: 12345}, metadata="meta", epoch=6)
        commit(self.c, self.group, self.t, {2: 7}, version=2, retention_time_ms=3600000)
        records = [r for r in offset_records(self.c, self.group) if self.t.encode() in r[0]]
        self.assertEqual([k for k, _ in records], [key_of_offset(self.group, self.t, p) for p in range(3)])
        values = [v for _, v in records]
        self.assertEqual(values[0][:16], bytes.fromhex("0003 000000000000002a ffffffff 0000"))
        self.assertEqual(values[1][:20], bytes.fromhex("0003 0000000000003039 00000006 0004 6d657461"))
        self.assertEqual(values[2][:12], bytes.fromhex("0001 0000000000000007 0000"))
        committed = [struct.unpack(">q", v[-8:])[0] for v in values[:2]]
        self.assertTrue(all(before <= t <= time.time() * 1000 for t in committed))
        at, expires = struct.unpack(">qq", values[2][-16:])
        self.assertEqual(expires - at, 3600000)

    def test_the_group_record_is_kafkas(self):
        m = Member(self.c, self.group, protocols=(("range", b"MM"),), session_ms=10000, rebalance_ms=60000)
        m.join()
        m.sync({m.id: b"AAA"})

        def s(text):
            return struct.pack(">h", len(text)) + text.encode()
        key = b"\0\2" + s(self.group)
        value = [v for k, v in offset_records(self.c, self.group) if k == key][-1]
        head = b"\0\3" + s("consumer") + struct.pack(">i", 1) + s("range") + s(m.id)
        self.assertEqual(value[:len(head)], head)
        self.assertLess(abs(struct.unpack(">q", value[len(head):len(head) + 8])[0] - time.time() * 1000), 60000)
        self.assertEqual(value[len(head) + 8:], struct.pack(">i", 1) + s(m.id) + b"\xff\xff" + s("kwire") +
                         s("/127.0.0.1") + struct.pack(">ii", 60000, 10000) + struct.pack(">i", 2) + b"MM" +
                         struct.pack(">i", 3) + b"AAA")
        m.leave()
        value = [v for k, v in offset_records(self.c, self.group) if k == key][-1]
        self.assertEqual(value[:2 + 10 + 4 + 4], b"\0\3" + s("consumer") + struct.pack(">i", 2) + b"\xff\xff\xff\xff")
        self.assertEqual(value[-4:], b"\0\0\0\0")
        g.commit(self.c, self.group, self.t, {0: 1})
        self.assertEqual(self.c.call("DeleteGroups", 2, groups_names=[self.group])["results"][0]["error_code"], 0)
        self.assertEqual([r for r in offset_records(self.c, self.group) if r[1] is None],
                         [(key_of_offset(self.group, self.t, 0), None), (key, None)])

    def test_several_groups_in_one_fetch(self):
        other = self.group + "-other"
        commit(self.c, self.group, self.t, {0: 1})
        commit(self.c, other, self.t, {1: 2})
        for version in (8, 9):
            a = self.c.call("OffsetFetch", version, require_stable=True, groups=[
                {"group_id": self.group, "topics": None},
                {"group_id": other, "topics": [{"name": self.t, "partition_indexes": [0, 1]}]},
                {"group_id": "", "topics": []}])["groups"]
            self.assertEqual([x["group_id"] for x in a], [self.group, other, ""])
            self.assertEqual([x["error_code"] for x in a], [0, 0, 0])
            self.assertEqual([p["committed_offset"] for p in a[1]["topics"][0]["partitions"]], [-1, 2])
            self.assertEqual(a[2]["topics"], [])
            self.assertEqual(self.c.call("OffsetFetch", version, groups=[])["groups"], [])

    def test_a_deleted_topics_offsets_go(self):
        doomed = self.t + "-doomed"
        kwire.create_topic(self.c, doomed)
        commit(self.c, self.group, doomed, {0: 5})
        commit(self.c, self.group, self.t, {0: 6})
        self.c.call("DeleteTopics", 4, topic_names=[doomed], timeout_ms=30000)
        until("its offset is gone", lambda: set(fetch(self.c, self.group, None)[1]) == {(self.t, 0)})
        self.assertEqual(commit(self.c, self.group, doomed, {0: 1}), {0: g.UNKNOWN_TOPIC_OR_PARTITION})

    # -- administration

    def test_lists(self):
        m = Member(self.c, self.group)
        m.join()
        m.sync()
        simple = self.group + "-simple"
        commit(self.c, simple, self.t, {0: 1})
        for version in range(6):
            found = g.groups(self.c, version)
            self.assertEqual(found[self.group]["protocol_type"], "consumer")
            self.assertEqual(found[simple]["protocol_type"], "")
            if version >= 4:
                self.assertEqual((found[self.group]["group_state"], found[simple]["group_state"]), ("Stable", "Empty"))
            if version >= 5:
                self.assertEqual(found[simple]["group_type"], "classic")
        self.assertNotIn(simple, g.groups(self.c, 4, states_filter=["stable"]))
        self.assertIn(self.group, g.groups(self.c, 4, states_filter=["STABLE", "dead"]))
        self.assertEqual(g.groups(self.c, 5, types_filter=["consumer"]), {})
        self.assertIn(simple, g.groups(self.c, 5, types_filter=["Classic"], states_filter=["Empty"]))

    def test_describing_what_is_there_and_what_is_not(self):
        commit(self.c, self.group, self.t, {0: 1})
        for version in range(6):
            a = self.c.call("DescribeGroups", version, groups=[self.group, "no-such", ""])["groups"]
            self.assertEqual([(x["error_code"], x["group_state"], x["protocol_type"], x["members"]) for x in a],
                             [(0, "Empty", "", []), (0, "Dead", "", []), (0, "Dead", "", [])])
            if version >= 3:
                self.assertEqual(a[0]["authorized_operations"], -(1 << 31))
                a = g.describe(self.c, self.group, version, include_authorized_operations=True)
                self.assertEqual(a["authorized_operations"], 328)

    def test_deleting_groups(self):
        m = Member(self.c, self.group)
        m.join()
        simple = self.group + "-simple"
        commit(self.c, simple, self.t, {0: 1})
        for version in range(3):
            a = self.c.call("DeleteGroups", version, groups_names=[self.group, simple, "no-such", simple])["results"]
            self.assertEqual({x["group_id"]: x["error_code"] for x in a},
                             {self.group: g.NON_EMPTY_GROUP, simple: g.NONE if version == 0 else g.GROUP_ID_NOT_FOUND,
                              "no-such": g.GROUP_ID_NOT_FOUND})
            self.assertEqual(len(a), 3)
        m.leave()
        self.assertEqual(self.c.call("DeleteGroups", 2, groups_names=[self.group])["results"][0]["error_code"], 0)
        self.assertNotIn(self.group, g.groups(self.c))

    def delete(self, group, topic, partitions):
        a = self.c.call("OffsetDelete", 0, group_id=group, topics=[
            {"name": topic, "partitions": [{"partition_index": p} for p in partitions]}])
        return a["error_code"], {p["partition_index"]: p["error_code"] for t in a["topics"] for p in t["partitions"]}

    def test_deleting_offsets(self):
        self.assertEqual(self.delete(self.group, self.t, [0]), (g.GROUP_ID_NOT_FOUND, {}))
        commit(self.c, self.group, self.t, {0: 1, 1: 2})
        self.assertEqual(self.delete(self.group, self.t, [0, 2, 9]), (0, {0: 0, 2: 0, 9: g.UNKNOWN_TOPIC_OR_PARTITION}))
        self.assertEqual(set(fetch(self.c, self.group, None)[1]), {(self.t, 1)})
        m = Member(self.c, self.group, protocols=(("range", g.subscription(self.t)),))
        m.join()
        m.sync()
        self.assertEqual(self.delete(self.group, self.t, [1]), (0, {1: g.SUBSCRIBED}))
        m.leave()
        self.assertEqual(self.delete(self.group, self.t, [1]), (0, {1: 0}))
        self.assertEqual(self.delete("", self.t, [1])[0], g.INVALID_GROUP_ID)


class Restarts(harness.unittest.TestCase):
    def test_offsets_and_members_survive(self):
        with Broker(overrides=g.OVERRIDES) as b:
            for kill in (False, True):
                with kwire.Conn(b.port) as c, kwire.Conn(b.port) as c2:
                    g.coordinator(c, "g")
                    if not kill:
                        kwire.create_topic(c, "t", partitions=2)
                        a, m2 = g.stable([c, c2], "g")
                    a.c, m2.c = c, c2
                    offset = 100 + kill
                    self.assertEqual(a.commit("t", {0: offset}, metadata="kept"), {0: 0})
                    self.assertEqual(commit(c, "simple", "t", {1: offset}, epoch=3), {1: 0})
                b.kill() if kill else b.stop()
                b.start()
                with kwire.Conn(b.port) as c, kwire.Conn(b.port) as c2:
                    g.coordinator(c, "g")
                    g.coordinator(c, "simple")
                    a.c, m2.c = c, c2
                    self.assertEqual([a.heartbeat(), m2.heartbeat()], [0, 0])  # no rebalance
                    self.assertEqual(a.sync({})["assignment"], a.id.encode())
                    self.assertEqual(fetch(c, "g", {"t": [0]}), (0, {("t", 0): (offset, -1, "kept", 0)}))
                    self.assertEqual(fetch(c, "simple", {"t": [1]}, version=5), (0, {("t", 1): (offset, 3, "", 0)}))
                    self.assertEqual(fetch(c, "simple", None, version=5), (0, {("t", 1): (offset, 3, "", 0)}))
                    self.assertEqual(set(g.groups(c)), {"g", "simple"})

    def test_the_number_of_partitions_is_the_topics(self):
        with Broker(overrides=dict(g.OVERRIDES, **{"offsets.topic.num.partitions": "7"})) as b:
            with kwire.Conn(b.port) as c:
                g.coordinator(c, "g")
                kwire.create_topic(c, "t")
                self.assertEqual(commit(c, "g", "t", {0: 5}), {0: 0})
            b.overrides["offsets.topic.num.partitions"] = "50"
            b.restart()
            with kwire.Conn(b.port) as c:
                g.coordinator(c, "g")
                self.assertEqual(fetch(c, "g", {"t": [0]})[1][("t", 0)][0], 5)

    def test_several_coordinator_threads(self):
        with Broker(overrides=dict(g.OVERRIDES, **{"group.coordinator.threads": "4"})) as b:
            names = ["group-%d" % i for i in range(40)]
            with kwire.Conn(b.port) as c:
                g.coordinator(c, "g")
                kwire.create_topic(c, "t")
                for i, name in enumerate(names):
                    g.coordinator(c, name)
                    self.assertEqual(commit(c, name, "t", {0: i}), {0: 0})
            b.restart()
            with kwire.Conn(b.port) as c:
                for name in names:
                    g.coordinator(c, name)
                self.assertEqual(set(g.groups(c)), set(names))
                a = c.call("OffsetFetch", 8, groups=[{"group_id": n, "topics": None} for n in names])["groups"]
                self.assertEqual([x["topics"][0]["partitions"][0]["committed_offset"] for x in a], list(range(40)))
                a = c.call("DescribeGroups", 5, groups=names)["groups"]
                self.assertEqual([x["group_state"] for x in a], ["Empty"] * 40)

    def test_a_compressed_offsets_topic(self):
        for codec in "1234":
            with Broker(overrides=dict(g.OVERRIDES, **{"offsets.topic.compression.codec": codec})) as b:
                with kwire.Conn(b.port) as c:
                    g.coordinator(c, "g")
                    kwire.create_topic(c, "t")
                    self.assertEqual(commit(c, "g", "t", {0: 5}, metadata="m" * 1000), {0: 0})
                b.restart()
                with kwire.Conn(b.port) as c:
                    g.coordinator(c, "g")
                    self.assertEqual(fetch(c, "g", {"t": [0]})[1][("t", 0)][:3], (5, -1, "m" * 1000))

    def test_settings_that_cannot_be(self):
        for key, value in (("offsets.topic.compression.codec", "5"), ("offsets.commit.required.acks", "-2"),
                           ("group.coordinator.rebalance.protocols", "consumer"),
                           ("group.coordinator.rebalance.protocols", "classic,share"),
                           ("group.consumer.assignors", "org.example.Mine"),
                           ("group.consumer.session.timeout.ms", "44999"),
                           ("group.consumer.heartbeat.interval.ms", "15001")):
            b = Broker(overrides={key: value}, start=False)
            b.start(wait=False)
            self.assertNotEqual(b.wait_exit(), 0)
            self.assertTrue(any(key in line for line in b.lines), b.lines)
            b._remove()

    def test_a_stop_with_members_waiting_is_quick(self):
        with Broker(overrides=g.OVERRIDES) as b, kwire.Conn(b.port) as c, kwire.Conn(b.port) as c2:
            g.coordinator(c, "g")
            a, m2 = g.stable([c, c2], "g", rebalance_ms=300000)
            a.send_join()
            until("the join phase", lambda: m2.heartbeat() == g.REBALANCE)
            begin = time.monotonic()
            b.stop()
            self.assertLess(time.monotonic() - begin, 10)


class Retention(harness.unittest.TestCase):
    def test_offsets_of_an_empty_group_expire(self):
        with Broker(overrides=dict(g.OVERRIDES, **{"offsets.retention.minutes": "1",
                                                   "offsets.retention.check.interval.ms": "200"})) as b:
            with kwire.Conn(b.port) as c:
                g.coordinator(c, "g")
                kwire.create_topic(c, "t")
                hour_ago = int(time.time() * 1000) - 3600000
                commit(c, "old", "t", {0: 1}, version=1, topics=[{"name": "t", "partitions": [
                    {"partition_index": 0, "committed_offset": 1, "commit_timestamp": hour_ago,
                     "committed_metadata": ""}]}])
                commit(c, "new", "t", {0: 1})
                until("it expires", lambda: set(g.groups(c)) == {"new"})
                self.assertEqual(fetch(c, "old", {"t": [0]})[1][("t", 0)][0], -1)


if __name__ == "__main__":
    harness.main()
