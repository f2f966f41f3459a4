"""What no well-behaved client sends to a group coordinator, and what many well-behaved ones send at once: Kafka's
error code, nothing else disturbed, memory bounded."""
import time

import groupwire as g
import harness
import kwire
from groupwire import Member, commit
from harness import until

MIB = 1024  # in KiB


class BadInput(harness.BrokerTest):
    OVERRIDES = dict(g.OVERRIDES, **{"message.max.bytes": "20000000"})

    def setUp(self):
        self.c = kwire.Conn(self.broker.port)
        self.group = self.topic("g")
        g.coordinator(self.c, self.group)
        self.bystander = Member(self.c, self.group + "-bystander")
        g.coordinator(self.c, self.bystander.group)
        self.bystander.join()
        self.bystander.sync()
        self.before = self.broker.rss_kb()

    def tearDown(self):
        self.assertEqual(self.bystander.heartbeat(), 0)  # nothing else is disturbed
        self.c.close()
        super().tearDown()

    def test_ten_thousand_members_at_once(self):
        conns = g.connect(self.broker, 200)
        try:
            begin = time.monotonic()
            fields = dict(group_id=self.group, member_id="", session_timeout_ms=300000, rebalance_timeout_ms=300000,
                          protocol_type="consumer", protocols=[{"name": "range", "metadata": b"meta"}])
            first = Member(self.c, self.group, versions={"JoinGroup": 3}, session_ms=300000, rebalance_ms=300000)
            first.join()
            sent = [(c, c.send("JoinGroup", 3, **fields)) for c in conns for _ in range(50)]
            until("all are parked", lambda: len(g.describe(self.c, self.group)["members"]) == 10001, 60)
            self.broker.assert_grown_less(self.before, 400 * MIB)
            joined = first.join()
            self.assertEqual(len(joined["members"]), 10001)
            ids = [c.receive("JoinGroup", 3, s)["member_id"] for c, s in sent]
            self.assertEqual(set(ids) | {first.id}, {m["member_id"] for m in joined["members"]})
            syncs = [(c, i, c.send("SyncGroup", 3, group_id=self.group, member_id=i, generation_id=joined["generation_id"],
                                   assignments=[])) for (c, _), i in zip(sent, ids)]
            self.assertEqual(first.sync()["assignment"], first.id.encode())
            for c, i, s in syncs:
                self.assertEqual(c.receive("SyncGroup", 3, s), {"throttle_time_ms": 0, "error_code": 0,
                                                                "assignment": i.encode()})
            self.assertEqual(g.state(self.c, self.group), "Stable")
            if not harness.sanitized():
                self.assertLess(time.monotonic() - begin, 60)
        finally:
            for c in conns:
                c.close()

    def test_a_group_that_does_not_fit_into_a_record(self):
        self.c.call("IncrementalAlterConfigs", 1, validate_only=False, resources=[
            {"resource_type": 2, "resource_name": "__consumer_offsets", "configs": [
                {"name": "max.message.bytes", "config_operation": 0, "value": "1000"}]}])
        m = Member(self.c, self.group, protocols=(("range", b"m" * 2000),))
        try:
            def refused():
                m.join()
                return m.sync()["error_code"] == -1
            until("the setting is in force", refused)
            self.assertEqual(g.state(self.c, self.group), "PreparingRebalance")
            self.assertEqual(m.heartbeat(), g.REBALANCE)
        finally:
            self.c.call("IncrementalAlterConfigs", 1, validate_only=False, resources=[
                {"resource_type": 2, "resource_name": "__consumer_offsets", "configs": [
                    {"name": "max.message.bytes", "config_operation": 1, "value": None}]}])

        def accepted():
            m.join()
            return m.sync()["error_code"] == 0
        until("it fits again", accepted)

    def test_a_thousand_protocols(self):
        names = ["protocol-%d" % i for i in range(1000)]
        a = Member(self.c, self.group, protocols=[(n, b"x" * 100) for n in names])
        a.join()
        with kwire.Conn(self.broker.port) as c:
            b = Member(c, self.group, protocols=[(n, b"y") for n in reversed(names)])
            b.get_id()
            sent = b.send_join()
            until("a join phase", lambda: g.state(self.c, self.group) == "PreparingRebalance")
            self.assertEqual(a.join()["protocol_name"], "protocol-0")  # one vote each: the leader's first
            self.assertEqual(b.take_join(sent)["protocol_name"], "protocol-0")
        self.broker.assert_grown_less(self.before, 100 * MIB)

    def test_large_metadata_and_long_names(self):
        m = Member(self.c, self.group, protocols=(("r" * 32767, b"m" * (1 << 20)),))
        m.join()
        self.assertEqual(m.sync({m.id: b"a" * (1 << 20)})["assignment"], b"a" * (1 << 20))
        d = g.describe(self.c, self.group)
        self.assertEqual(len(d["members"][0]["member_metadata"]), 1 << 20)
        with kwire.Conn(self.broker.port, client_id="c" * 32767) as c:
            long = "g" * 32767
            g.coordinator(c, long)
            m = Member(c, long)
            self.assertEqual(m.join()["error_code"], 0)
            self.assertEqual(len(m.id), 32767)  # it must fit into a record, too
            self.assertEqual(m.sync()["error_code"], 0)
            self.assertEqual(m.leave(), 0)
        for group in ("\0", " ", "a/b", "..", "\u00e9", "\U0001F600", "x\ny"):  # any name is a name
            m = Member(self.c, group)
            g.coordinator(self.c, group)
            self.assertEqual(m.join()["error_code"], 0)
            self.assertEqual(m.sync()["error_code"], 0)
            self.assertIn(group, g.groups(self.c))

    def test_protocols_that_are_none(self):
        for protocols, kind in (((), "consumer"), ((("range", b""),), "")):
            m = Member(self.c, self.group, protocols=protocols, protocol_type=kind)
            self.assertEqual(m.join_once()["error_code"], g.INCONSISTENT_PROTOCOL)
        m = Member(self.c, self.group, protocols=(("", b""),))
        self.assertEqual(m.join()["error_code"], 0)
        self.assertEqual(m.sync()["error_code"], 0)

    def test_timeouts_at_the_edges(self):
        for rebalance_ms in (2147483647, 0, -1, -2147483648):
            m = Member(self.c, "%s%d" % (self.group, rebalance_ms), rebalance_ms=rebalance_ms)
            g.coordinator(self.c, m.group)
            m.get_id()
            fields = dict(m.join_fields(), reason="r" * 30000)
            a = self.c.call("JoinGroup", 9, **fields)
            self.assertEqual((a["error_code"], a["generation_id"]), (0, 1))
        for session_ms in (-2147483648, -1, 0, 1, 5999, 1800001, 2147483647):
            m = Member(self.c, self.group, session_ms=session_ms)
            self.assertEqual(m.join_once()["error_code"], g.INVALID_SESSION_TIMEOUT)

    def test_ids_that_are_never_used(self):
        fields = dict(group_id=self.group, member_id="", session_timeout_ms=1800000, rebalance_timeout_ms=1000,
                      protocol_type="consumer", protocols=[{"name": "range", "metadata": b"m" * 10000}])
        for _ in range(20):
            sent = [self.c.send("JoinGroup", 9, **fields) for _ in range(50)]
            for s in sent:
                self.assertEqual(self.c.receive("JoinGroup", 9, s)["error_code"], g.MEMBER_ID_REQUIRED)
        self.broker.assert_grown_less(self.before, 20 * MIB)
        self.assertEqual(g.state(self.c, self.group), "Empty")

    def test_connections_that_close_while_their_join_is_parked(self):
        a = Member(self.c, self.group, rebalance_ms=2147483647)
        a.join()
        a.sync()
        for _ in range(20):
            conns = g.connect(self.broker, 20)
            for c in conns:
                m = Member(c, self.group, rebalance_ms=2147483647, versions={"JoinGroup": 3})
                for _ in range(20):
                    m.send_join()
            until("they are parked", lambda: len(g.describe(self.c, self.group)["members"]) == 401)
            for c in conns:
                c.close()
            until("they are gone", lambda: len(g.describe(self.c, self.group)["members"]) == 1)
        self.broker.assert_grown_less(self.before, 100 * MIB)
        self.assertEqual(a.join()["error_code"], 0)

    def test_commits_of_many_partitions(self):
        n = 20000
        t = self.topic("t")
        kwire.create_topic(self.c, t)
        a = self.c.call("OffsetCommit", 8, group_id=self.group, member_id="", generation_id_or_member_epoch=-1, topics=[
            {"name": t, "partitions": [{"partition_index": i, "committed_offset": i, "committed_leader_epoch": -1,
                                        "committed_metadata": None} for i in range(n)]}])
        errors = [p["error_code"] for p in a["topics"][0]["partitions"]]
        self.assertEqual(errors, [0] + [g.UNKNOWN_TOPIC_OR_PARTITION] * (n - 1))
        a = self.c.call("OffsetCommit", 8, group_id=self.group, member_id="", generation_id_or_member_epoch=-1, topics=[
            {"name": t, "partitions": [{"partition_index": 0, "committed_offset": i, "committed_leader_epoch": -1,
                                        "committed_metadata": None} for i in range(n)]}])
        self.assertEqual({p["error_code"] for p in a["topics"][0]["partitions"]}, {0})
        error, found = g.fetch(self.c, self.group, {t: list(range(n))})
        self.assertEqual(found[(t, 0)][0], n - 1)  # of one partition named twice, the last
        self.assertEqual(len(found), n)
        self.broker.assert_grown_less(self.before, 200 * MIB)

    def test_commits_at_the_edges(self):
        t = self.topic("t")
        kwire.create_topic(self.c, t)
        for offset in (0, -1, -2147483648, 9223372036854775807, -9223372036854775808):
            self.assertEqual(commit(self.c, self.group, t, {0: offset}), {0: 0})
            self.assertEqual(g.fetch(self.c, self.group, {t: [0]})[1][(t, 0)][0], offset)
        for version, field in ((2, 9223372036854775807), (4, -9223372036854775808), (3, 0)):
            group = "%s-%d" % (self.group, version)
            self.assertEqual(commit(self.c, group, t, {0: 1}, version=version, retention_time_ms=field), {0: 0})
        self.assertEqual(commit(self.c, self.group, t, {0: 1}, member="nobody", generation=5), {0: g.UNKNOWN_MEMBER_ID})
        self.assertEqual(commit(self.c, self.group + "-none", t, {0: 1}, generation=5, version=8),
                         {0: g.ILLEGAL_GENERATION})
        self.assertEqual(commit(self.c, self.group + "-none", t, {0: 1}, generation=5, version=9),
                         {0: g.GROUP_ID_NOT_FOUND})
        self.assertEqual(self.c.call("OffsetCommit", 8, group_id=self.group, member_id="",
                                     generation_id_or_member_epoch=-1, topics=[])["topics"], [])


if __name__ == "__main__":
    harness.main()
