"""FindCoordinator, JoinGroup, SyncGroup, Heartbeat and LeaveGroup in all versions, over raw frames."""
import time

import groupwire as g
import harness
import kwire
from groupwire import Member
from harness import until


class FindCoordinator(harness.BrokerTest):
    OVERRIDES = g.OVERRIDES

    def test_the_topic_is_made_on_demand_and_the_answer_is_the_leader(self):
        with kwire.Conn(self.broker.port) as c:
            topics = [t["name"] for t in c.call("Metadata", 12, topics=None)["topics"]]
            if "__consumer_offsets" not in topics:
                self.assertEqual(g.find(c, "g", 3), (g.NOT_AVAILABLE, -1, "", -1))
            g.coordinator(c, "g")
            m = c.call("Metadata", 12, topics=None)
            topic = [t for t in m["topics"] if t["name"] == "__consumer_offsets"][0]
            self.assertTrue(topic["is_internal"])
            self.assertEqual(len(topic["partitions"]), 50)
            node = m["brokers"][0]
            for version in range(7):
                for group in ("g", "group", "", "polygenelubricants", "\u00e9t\u00e9", "\U0001F600"):
                    self.assertEqual(g.find(c, group, version), (g.NONE, node["node_id"], node["host"], node["port"]))

    def test_its_settings_are_kafkas(self):
        with kwire.Conn(self.broker.port) as c:
            g.coordinator(c, "g")
            a = c.call("DescribeConfigs", 4, resources=[{"resource_type": 2, "resource_name": "__consumer_offsets",
                                                         "configuration_keys": None}])["results"][0]
            values = {x["name"]: x["value"] for x in a["configs"]}
            self.assertEqual(values["cleanup.policy"], "compact")
            self.assertEqual(values["compression.type"], "producer")
            self.assertEqual(values["segment.bytes"], "104857600")

    def test_lists_of_keys(self):
        with kwire.Conn(self.broker.port) as c:
            g.coordinator(c, "g")
            for version in (4, 5, 6):
                a = c.call("FindCoordinator", version, key_type=0, coordinator_keys=["a", "b", "a"])["coordinators"]
                self.assertEqual([x["key"] for x in a], ["a", "b", "a"])
                self.assertEqual([x["error_code"] for x in a], [0, 0, 0])
                self.assertEqual([x["error_message"] or "" for x in a], [""] * 3)
                self.assertEqual(c.call("FindCoordinator", version, key_type=0, coordinator_keys=[])["coordinators"], [])

    def test_other_types_of_keys(self):
        with kwire.Conn(self.broker.port) as c:
            for version in range(1, 7):
                for key_type, error in ((3, g.INVALID_REQUEST), (-1, g.INVALID_REQUEST),
                                        (2, g.NOT_AVAILABLE if version >= 6 else g.INVALID_REQUEST)):
                    if version >= 4:
                        a = c.call("FindCoordinator", version, key_type=key_type, coordinator_keys=["x"])["coordinators"][0]
                    else:
                        a = c.call("FindCoordinator", version, key_type=key_type, key="x")
                        self.assertTrue(a["error_message"])
                    self.assertEqual((a["error_code"], a["node_id"], a["host"], a["port"]), (error, -1, "", -1))


class Replication(harness.BrokerTest):
    OVERRIDES = {"offsets.topic.replication.factor": "3"}

    def test_too_few_brokers_for_the_topic(self):
        with kwire.Conn(self.broker.port) as c:
            for _ in range(3):
                self.assertEqual(g.find(c, "g")[0], g.NOT_AVAILABLE)
            self.broker.wait_line("cannot create __consumer_offsets: INVALID_REPLICATION_FACTOR")

    def test_the_log_says_so_at_the_start(self):
        told = [line for line in self.broker.lines if "offsets.topic.replication.factor is 3" in line]
        self.assertEqual(len(told), 1, self.broker.lines)
        self.assertIn("at most 1 is allowed", told[0])


class Alone(harness.BrokerTest):
    """A broker by itself needs no settings for its internal topics."""

    def test_groups_work_with_the_defaults(self):
        with kwire.Conn(self.broker.port) as c:
            g.coordinator(c, "g")
            topics = c.call("Metadata", 9, topics=[{"name": "__consumer_offsets"}])["topics"]
            self.assertEqual({len(p["replica_nodes"]) for p in topics[0]["partitions"]}, {1})

    def test_the_settings_are_told_as_they_are(self):
        keys = ["offsets.topic.replication.factor", "transaction.state.log.replication.factor",
                "transaction.state.log.min.isr"]
        with kwire.Conn(self.broker.port) as c:
            a = c.call("DescribeConfigs", 4, resources=[
                {"resource_type": 4, "resource_name": "0", "configuration_keys": keys}],
                include_synonyms=True)
            told = {x["name"]: x for x in a["results"][0]["configs"]}
            self.assertEqual(sorted(told), sorted(keys))
            for x in told.values():
                self.assertEqual((x["value"], x["config_source"]), ("1", 5))
                self.assertEqual([(s["value"], s["source"]) for s in x["synonyms"]], [("1", 5)])


class Members(harness.BrokerTest):
    OVERRIDES = g.OVERRIDES

    def setUp(self):
        self.conns = g.connect(self.broker, 3)
        self.group = self.topic("g")
        g.coordinator(self.conns[0], self.group)

    def tearDown(self):
        for c in self.conns:
            c.close()
        super().tearDown()

    def test_a_life_in_every_version(self):
        for version in range(10):
            group = "%s-%d" % (self.group, version)
            versions = {api: min(version, last) for api, last in g.LAST.items()}
            versions["OffsetCommit"] = max(versions["OffsetCommit"], 1)
            a, b = g.stable(self.conns[:2], group, versions=versions)
            kwire.create_topic(self.conns[0], group)
            self.assertEqual([a.heartbeat(), b.heartbeat()], [0, 0])
            self.assertEqual(a.commit(group, {0: 7}), {0: 0})
            d = g.describe(self.conns[2], group, version=versions["DescribeGroups"])
            self.assertEqual(d["group_state"], "Stable")
            self.assertEqual(d["protocol_type"], "consumer")
            self.assertEqual(d["protocol_data"], "range")
            self.assertEqual({m["member_id"] for m in d["members"]}, {a.id, b.id})
            for m in d["members"]:
                self.assertEqual((m["client_id"], m["client_host"]), ("kwire", "/127.0.0.1"))
                self.assertEqual((m["member_metadata"], m["member_assignment"]), (b"meta", m["member_id"].encode()))
            self.assertEqual(a.leave(), 0)
            self.assertEqual(b.heartbeat(), g.REBALANCE)
            self.assertEqual(b.join()["generation_id"], a.generation + 1)
            self.assertEqual(b.sync()["assignment"], b.id.encode())
            self.assertEqual(b.leave(), 0)
            self.assertEqual(g.state(self.conns[2], group), "Empty")
            self.assertEqual(a.heartbeat(), g.UNKNOWN_MEMBER_ID)

    def test_the_first_join_gets_an_id_only(self):
        m = Member(self.conns[0], self.group)
        a = m.join_once()
        self.assertEqual(a["error_code"], g.MEMBER_ID_REQUIRED)
        self.assertRegex(m.id, r"^kwire-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
        self.assertEqual((a["generation_id"], a["leader"], a["members"], a["protocol_name"]), (-1, "", [], None))

    def test_errors_in_every_version(self):
        c = self.conns[0]
        for version in range(10):
            a = c.call("JoinGroup", version, group_id=self.group, member_id="nobody", session_timeout_ms=30000,
                       protocol_type="consumer", protocols=[{"name": "range", "metadata": b""}])
            self.assertEqual((a["error_code"], a["member_id"]), (g.UNKNOWN_MEMBER_ID, "nobody"))
            a = c.call("JoinGroup", version, group_id="", member_id="", session_timeout_ms=30000,
                       protocol_type="consumer", protocols=[{"name": "range", "metadata": b""}])
            self.assertEqual(a["error_code"], g.INVALID_GROUP_ID)
            a = c.call("JoinGroup", version, group_id=self.group, member_id="", session_timeout_ms=1,
                       protocol_type="consumer", protocols=[{"name": "range", "metadata": b""}])
            self.assertEqual(a["error_code"], g.INVALID_SESSION_TIMEOUT)
        for version in range(6):
            fields = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
            a = c.call("SyncGroup", version, group_id=self.group, member_id="x", generation_id=1, assignments=[], **fields)
            self.assertEqual((a["error_code"], a["assignment"]), (g.UNKNOWN_MEMBER_ID, b""))
        a = c.call("SyncGroup", 5, group_id=self.group, member_id="x", generation_id=1, assignments=[])
        self.assertEqual(a["error_code"], g.INCONSISTENT_PROTOCOL)
        for version in range(5):
            a = c.call("Heartbeat", version, group_id=self.group, member_id="x", generation_id=1)
            self.assertEqual(a["error_code"], g.UNKNOWN_MEMBER_ID)
        for version in range(6):
            if version < 3:
                a = c.call("LeaveGroup", version, group_id="no-such", member_id="x")
                self.assertEqual(a["error_code"], g.UNKNOWN_MEMBER_ID)
            else:
                a = c.call("LeaveGroup", version, group_id="no-such", members=[{"member_id": "x"}])
                self.assertEqual((a["error_code"], a["members"][0]["error_code"]), (0, g.UNKNOWN_MEMBER_ID))
            a = c.call("LeaveGroup", version, group_id="")
            self.assertEqual(a["error_code"], g.INVALID_GROUP_ID)

    def test_stale_generations_and_unknown_members(self):
        a, b = g.stable(self.conns[:2], self.group)
        kwire.create_topic(self.conns[0], self.group)
        a.generation += 1
        self.assertEqual(a.heartbeat(), g.ILLEGAL_GENERATION)
        self.assertEqual(a.commit(self.group, {0: 1}), {0: g.ILLEGAL_GENERATION})
        self.assertEqual(a.sync({})["error_code"], g.ILLEGAL_GENERATION)
        a.generation -= 1
        b.id = "somebody"
        self.assertEqual(b.heartbeat(), g.UNKNOWN_MEMBER_ID)
        self.assertEqual(b.commit(self.group, {0: 1}), {0: g.UNKNOWN_MEMBER_ID})
        self.assertEqual(a.heartbeat(), 0)

    def test_static_members(self):
        first = Member(self.conns[0], self.group, instance="i1")
        self.assertEqual(first.join_once()["error_code"], 0)
        self.assertTrue(first.id.startswith("i1-"))
        self.assertEqual(first.sync()["assignment"], first.id.encode())
        second = Member(self.conns[1], self.group, instance="i1")
        a = second.join_once()
        self.assertEqual((a["error_code"], a["generation_id"], a["skip_assignment"]), (0, first.generation, True))
        self.assertEqual([m["group_instance_id"] for m in a["members"]], ["i1"])
        self.assertEqual(second.sync({})["assignment"], first.id.encode())  # the share of the old one
        kwire.create_topic(self.conns[0], self.group)
        self.assertEqual(first.heartbeat(), g.FENCED_INSTANCE)
        self.assertEqual(first.commit(self.group, {0: 1}), {0: g.FENCED_INSTANCE})
        self.assertEqual(first.sync({})["error_code"], g.FENCED_INSTANCE)
        self.assertEqual(first.join_once()["error_code"], g.FENCED_INSTANCE)
        self.assertEqual(first.leave(), g.FENCED_INSTANCE)
        self.assertEqual(second.heartbeat(), 0)
        self.assertEqual(second.commit(self.group, {0: 1}), {0: 0})
        a = self.conns[2].call("LeaveGroup", 3, group_id=self.group,
                               members=[{"member_id": "", "group_instance_id": "i1"}])
        self.assertEqual((a["error_code"], a["members"][0]["error_code"]), (0, 0))
        self.assertEqual(g.state(self.conns[2], self.group), "Empty")

    def test_a_killed_connection_of_an_old_client_leaves_no_ghost(self):
        m = g.stable(self.conns[:1], self.group)[0]
        for _ in range(50):
            with kwire.Conn(self.broker.port) as c:
                c.send("JoinGroup", 3, group_id=self.group, member_id="", session_timeout_ms=30000,
                       rebalance_timeout_ms=300000, protocol_type="consumer",
                       protocols=[{"name": "range", "metadata": b""}])
                until("the join is parked", lambda: len(g.describe(self.conns[1], self.group)["members"]) == 2)
            until("it is gone", lambda: len(g.describe(self.conns[1], self.group)["members"]) == 1)
        self.assertEqual(m.heartbeat(), g.REBALANCE)
        self.assertEqual(m.join()["members"][0]["member_id"], m.id)

    def test_requests_behind_a_parked_join_are_served(self):
        a, b = g.stable(self.conns[:2], self.group)
        join = a.send_join()  # parked: b does not come
        after = self.conns[0].send("ListGroups", 4)
        until("rebalance", lambda: b.heartbeat() == g.REBALANCE)
        b.join()
        self.assertEqual(a.take_join(join)["error_code"], 0)  # answers keep their order
        self.assertIn(self.group, [x["group_id"] for x in self.conns[0].receive("ListGroups", 4, after)["groups"]])


class Timing(harness.BrokerTest):
    OVERRIDES = {"group.initial.rebalance.delay.ms": "600",
                 "group.min.session.timeout.ms": "500", "group.max.size": "3"}

    def setUp(self):
        self.conns = g.connect(self.broker, 4)
        self.group = self.topic("g")
        g.coordinator(self.conns[0], self.group)

    def tearDown(self):
        for c in self.conns:
            c.close()
        super().tearDown()

    def test_the_first_join_waits_the_delay(self):
        m = Member(self.conns[0], self.group)
        m.get_id()
        begin = time.monotonic()
        self.assertEqual(m.join_once()["error_code"], 0)
        self.assertGreaterEqual(time.monotonic() - begin, 0.6)

    def test_a_silent_member_is_dropped(self):
        a, b = g.stable(self.conns[:2], self.group, session_ms=2000)
        until("the others are told", lambda: a.heartbeat() == g.REBALANCE)
        self.assertEqual([m["member_id"] for m in a.join()["members"]], [a.id])
        self.assertEqual(b.heartbeat(), g.UNKNOWN_MEMBER_ID)

    def test_a_member_that_never_syncs_is_dropped(self):
        a = Member(self.conns[0], self.group, rebalance_ms=1000)
        a.join()
        until("it is removed", lambda: a.heartbeat() == g.UNKNOWN_MEMBER_ID)
        self.assertEqual(g.state(self.conns[1], self.group), "Empty")

    def test_a_full_group(self):
        members = g.stable(self.conns[:3], self.group)
        late = Member(self.conns[3], self.group)
        a = late.join()
        self.assertEqual((a["error_code"], a["member_id"]), (g.GROUP_MAX_SIZE, ""))
        self.assertEqual([m.heartbeat() for m in members], [0, 0, 0])


if __name__ == "__main__":
    harness.main()
