"""Text of clients that is not UTF-8: taken as Java takes it, so that it comes back as text, is kept as text, and is refused
where only some characters are allowed."""
import unittest

import harness
import kwire

BAD, AS_JAVA = b"caf\xe9\xff!", "caf\ufffd\ufffd!"
INVALID_TOPIC, INVALID_CONFIG, INVALID_REQUEST = 17, 40, 42


class Text(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = harness.Broker()

    @classmethod
    def tearDownClass(cls):
        cls.broker.close()

    def setUp(self):
        self.conn = kwire.Conn(self.broker.port)

    def tearDown(self):
        self.conn.close()

    def create(self, name, version, **fields):
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        topic.update(fields)
        answer, = self.conn.call("CreateTopics", version, timeout_ms=5000, validate_only=False, topics=[topic])["topics"]
        return answer

    def test_topic_names_are_refused_and_told(self):
        for version in (2, 4, 7):
            answer = self.create(BAD, version)
            self.assertEqual((answer["error_code"], answer["name"]), (INVALID_TOPIC, AS_JAVA))
        for version in (1, 8, 12):
            answer = self.conn.call("Metadata", version, topics=[{"name": BAD}], allow_auto_topic_creation=True)
            self.assertEqual([(t["error_code"], t["name"]) for t in answer["topics"]], [(INVALID_TOPIC, AS_JAVA)])
        answer = self.conn.call("DeleteTopics", 5, timeout_ms=1000, topic_names=[BAD])
        self.assertEqual(answer["responses"][0]["name"], AS_JAVA)
        for name in (b"\xff", b"a\x00b", b"\xc0\x80", b"\xed\xa0\x80", "\u00e4", "a b", ".", "..", "", "x" * 250):
            self.assertEqual(self.create(name, 4)["error_code"], INVALID_TOPIC, name)

    def test_settings_are_kept_as_text(self):
        self.assertEqual(self.create("settings", 4)["error_code"], 0)
        values = {"name": "follower.replication.throttled.replicas", "config_operation": 0, "value": BAD}
        answer, = self.conn.call("IncrementalAlterConfigs", 1, validate_only=False, resources=[
            {"resource_type": 4, "resource_name": "", "configs": [dict(values, name=b"plug\xff.in")]}])["responses"]
        self.assertEqual(answer["error_code"], 0, answer)
        answer, = self.conn.call("DescribeConfigs", 4, resources=[
            {"resource_type": 4, "resource_name": "", "configuration_keys": None}])["results"]
        self.assertIn("plug\ufffd.in", [c["name"] for c in answer["configs"]])
        answer, = self.conn.call("DescribeConfigs", 4, resources=[
            {"resource_type": 2, "resource_name": b"set\xfftings", "configuration_keys": None}])["results"]
        self.assertEqual(answer["resource_name"], "set\ufffdtings")

    def test_quotas_of_such_users(self):
        entry = {"entity": [{"entity_type": "user", "entity_name": BAD}],
                 "ops": [{"key": "producer_byte_rate", "value": 5.0, "remove": False}]}
        answer, = self.conn.call("AlterClientQuotas", 1, validate_only=False, entries=[entry])["entries"]
        self.assertEqual((answer["error_code"], answer["entity"][0]["entity_name"]), (0, AS_JAVA))
        found = self.conn.call("DescribeClientQuotas", 1, strict=True, components=[
            {"entity_type": "user", "match_type": 0, "match": BAD}])["entries"]
        self.assertEqual([e["entity"][0]["entity_name"] for e in found], [AS_JAVA])

    def test_groups_and_client_ids(self):
        harness.until("there is a coordinator", lambda: self.conn.call(
            "FindCoordinator", 2, key="x", key_type=0)["error_code"] == 0)
        raw = kwire.request_frame("JoinGroup", 3, 7, dict(
            group_id=BAD, session_timeout_ms=10000, rebalance_timeout_ms=10000, member_id="", protocol_type=b"c\xff",
            protocols=[{"name": b"p\xff", "metadata": b"\xff"}]), client_id="ID")

        def join():
            self.conn.send_frame(raw.replace(b"\0\x02ID", b"\0\x02i\xff", 1))
            return kwire.response_of("JoinGroup", 3, self.conn.read_frame())[1]
        answer = join()
        while answer["error_code"] in (14, 15, 16):  # its partition is being loaded
            answer = join()
        self.assertEqual(answer["error_code"], 0)
        self.assertTrue(answer["member_id"].startswith("i\ufffd-"), answer["member_id"])
        self.assertEqual(answer["protocol_name"], "p\ufffd")
        groups = self.conn.call("ListGroups", 4, states_filter=[])["groups"]
        self.assertIn((AS_JAVA, "c\ufffd"), [(g["group_id"], g["protocol_type"]) for g in groups])
        described, = self.conn.call("DescribeGroups", 5, groups=[BAD])["groups"]
        self.assertEqual([m["client_id"] for m in described["members"]], ["i\ufffd"])

    def test_text_that_becomes_too_long(self):
        with kwire.Conn(self.broker.port) as c:
            c.send("FindCoordinator", 2, key=b"\xff" * 32000, key_type=0)
            self.assertTrue(c.is_closed())
        answer = self.conn.call("FindCoordinator", 4, key_type=0, coordinator_keys=[b"\xff" * 10000])
        self.assertEqual(answer["coordinators"][0]["key"], "\ufffd" * 10000)

    def test_the_epoch_of_features_is_that_of_their_node(self):
        for version in (3, 4):
            def epoch():
                return self.conn.call("ApiVersions", version, client_software_name="x", client_software_version="1")[
                    "finalized_features_epoch"]
            harness.until("it is known", lambda: epoch() == 0)


if __name__ == "__main__":
    unittest.main()
