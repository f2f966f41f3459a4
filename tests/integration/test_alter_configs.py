"""AlterConfigs and IncrementalAlterConfigs: topics, this broker, all brokers; what is stored, what is in force, and
what is refused, in every version."""
import unittest

import harness
import kwire
from kwire import create_topic, produce, produce_one, simple_batch

TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
FROM_TOPIC, OWN, ALL, STATIC, DEFAULT = 1, 2, 3, 4, 5
UNKNOWN_TOPIC, TOO_LARGE, INVALID_CONFIG, INVALID_REQUEST = 3, 10, 40, 42


class AlterConfigs(harness.BrokerTest):
    OVERRIDES = {"broker.id": "5", "message.max.bytes": "100000"}

    def setUp(self):
        self.conn = kwire.Conn(self.broker.port)
        self.topic = self.id().rsplit(".", 1)[1]
        create_topic(self.conn, self.topic, configs={"retention.ms": "1000"})

    def tearDown(self):
        for name in ("", "5"):
            self.whole(BROKER, name, {})
        self.conn.close()

    # -- requests

    def results(self, api, version, resources, validate_only=False):
        answer = self.conn.call(api, version, resources=resources, validate_only=validate_only)
        self.assertEqual(answer["throttle_time_ms"], 0)
        self.assertEqual([(r["resource_type"], r["resource_name"]) for r in answer["responses"]],
                         [(r["resource_type"], r["resource_name"]) for r in resources])
        return [(r["error_code"], r["error_message"]) for r in answer["responses"]]

    def whole(self, kind, name, configs, version=2, **more):
        return self.results("AlterConfigs", version, [{
            "resource_type": kind, "resource_name": name,
            "configs": [{"name": k, "value": v} for k, v in configs.items()]}], **more)[0]

    def some(self, kind, name, *ops, version=1, **more):
        return self.results("IncrementalAlterConfigs", version, [{
            "resource_type": kind, "resource_name": name,
            "configs": [{"name": k, "config_operation": op, "value": v} for op, k, v in ops]}], **more)[0]

    def describe(self, kind, name, keys=None, version=4):
        result, = self.conn.call("DescribeConfigs", version, include_synonyms=True, resources=[{
            "resource_type": kind, "resource_name": name, "configuration_keys": keys}])["results"]
        self.assertEqual(result["error_code"], 0, result)
        return {c["name"]: c for c in result["configs"]}

    def overrides(self, topic=None):
        return {n: c["value"] for n, c in self.describe(TOPIC, topic or self.topic).items()
                if c["config_source"] == FROM_TOPIC}

    def value(self, kind, name, key):
        c = self.describe(kind, name, [key])[key]
        return c["value"], c["config_source"]

    # -- topics

    def test_all_are_replaced(self):
        for version in range(3):
            self.assertEqual(self.whole(TOPIC, self.topic, {"retention.ms": "5"}, version), (0, None))
            self.assertEqual(self.overrides(), {"retention.ms": "5"})
            self.assertEqual(self.whole(TOPIC, self.topic, {"segment.bytes": "20000"}, version), (0, None))
            self.assertEqual(self.overrides(), {"segment.bytes": "20000"})
        self.assertEqual(self.whole(TOPIC, self.topic, {}), (0, None))
        self.assertEqual(self.overrides(), {})

    def test_those_named_are_changed(self):
        for version in range(2):
            self.assertEqual(self.some(TOPIC, self.topic, (SET, "segment.bytes", "20000"), version=version), (0, None))
            self.assertEqual(self.overrides(), {"retention.ms": "1000", "segment.bytes": "20000"})
            self.assertEqual(self.some(TOPIC, self.topic, (DELETE, "segment.bytes", None), version=version), (0, None))
            self.assertEqual(self.overrides(), {"retention.ms": "1000"})
            self.assertEqual(self.some(TOPIC, self.topic, (APPEND, "cleanup.policy", "compact"), version=version),
                             (0, None))
            self.assertEqual(self.overrides()["cleanup.policy"], "delete,compact")
            self.assertEqual(self.some(TOPIC, self.topic, (SUBTRACT, "cleanup.policy", "delete"), version=version),
                             (0, None))
            self.assertEqual(self.overrides()["cleanup.policy"], "compact")
            self.assertEqual(self.some(TOPIC, self.topic, (DELETE, "cleanup.policy", ""), version=version), (0, None))

    def test_only_looking_changes_nothing(self):
        self.assertEqual(self.whole(TOPIC, self.topic, {"retention.ms": "7"}, validate_only=True), (0, None))
        self.assertEqual(self.some(TOPIC, self.topic, (SET, "retention.ms", "7"), validate_only=True), (0, None))
        self.assertEqual(self.some(BROKER, "", (SET, "log.retention.bytes", "7"), validate_only=True), (0, None))
        self.assertEqual(self.some(TOPIC, self.topic, (SET, "retention.ms", "x"), validate_only=True)[0],
                         INVALID_REQUEST)
        self.assertEqual(self.overrides(), {"retention.ms": "1000"})
        self.assertEqual(self.describe(BROKER, ""), {})

    def test_errors_in_every_version(self):
        def refused(result, code, words):
            self.assertEqual(result[0], code, result)
            self.assertIn(words, result[1])
        for v in range(3):
            refused(self.whole(TOPIC, "no-such", {}, v), UNKNOWN_TOPIC, "does not exist")
            refused(self.whole(TOPIC, "", {}, v), INVALID_REQUEST, "Default topic")
            refused(self.whole(TOPIC, self.topic, {"no.such": "1"}, v), INVALID_CONFIG, "no.such")
            refused(self.whole(TOPIC, self.topic, {"retention.ms": "-2"}, v), INVALID_REQUEST, "retention.ms")
            refused(self.whole(TOPIC, self.topic, {"retention.ms": None}, v), INVALID_REQUEST, "Null value")
            refused(self.whole(BROKER, "6", {}, v), INVALID_REQUEST, "expected 5")
            refused(self.whole(BROKER, "five", {}, v), INVALID_REQUEST, "integer")
            refused(self.whole(BROKER, "5", {"num.partitions": "1"}, v), INVALID_REQUEST, "num.partitions")
            refused(self.whole(BROKER, "", {"message.max.bytes": "many"}, v), INVALID_REQUEST, "many")
            refused(self.whole(LOGGER, "5", {"root": "DEBUG"}, v), INVALID_REQUEST, "resource type 8")
            refused(self.whole(GROUP, "g", {}, v), INVALID_REQUEST, "resource type 32")
        for v in range(2):
            refused(self.some(TOPIC, "no-such", version=v), UNKNOWN_TOPIC, "does not exist")
            refused(self.some(TOPIC, self.topic, (SET, "retention.ms", None), version=v), INVALID_REQUEST, "Null")
            refused(self.some(TOPIC, self.topic, (9, "retention.ms", "1"), version=v), INVALID_REQUEST, "9")
            refused(self.some(TOPIC, self.topic, (SET, "no.such", "1"), version=v), INVALID_CONFIG, "no.such")
            refused(self.some(TOPIC, self.topic, (APPEND, "retention.ms", "1"), version=v), INVALID_REQUEST, "append")
            refused(self.some(TOPIC, self.topic, (SET, "retention.ms", "1"), (DELETE, "retention.ms", None),
                              version=v), INVALID_REQUEST, "duplicate")
            refused(self.some(BROKER, "6", version=v), INVALID_REQUEST, "expected 5")
            refused(self.some(BROKER, "", (SET, "listeners", "PLAINTEXT://:0"), version=v), INVALID_REQUEST,
                    "listeners")
            refused(self.some(LOGGER, "5", (SET, "root", "DEBUG"), version=v), INVALID_REQUEST, "root")
        self.assertEqual(self.overrides(), {"retention.ms": "1000"})

    def test_resources_stand_alone(self):
        good = {"resource_type": TOPIC, "resource_name": self.topic,
                "configs": [{"name": "retention.ms", "config_operation": SET, "value": "9"}]}
        bad = dict(good, resource_name="no-such")
        twin = {"resource_type": BROKER, "resource_name": "5", "configs": []}
        codes = [code for code, _ in self.results("IncrementalAlterConfigs", 1, [bad, good, twin, twin])]
        self.assertEqual(codes, [UNKNOWN_TOPIC, 0, INVALID_REQUEST, INVALID_REQUEST])
        self.assertEqual(self.overrides(), {"retention.ms": "9"})
        self.assertEqual(self.results("IncrementalAlterConfigs", 1, []), [])

    def test_a_topics_setting_takes_effect_on_its_log(self):
        small, large = simple_batch(b"x"), simple_batch(b"x" * 5000)
        produce_one(self.conn, self.topic, 0, large)
        self.assertEqual(self.some(TOPIC, self.topic, (SET, "max.message.bytes", "2000")), (0, None))
        self.assertEqual(produce(self.conn, 9, [(self.topic, 0, large)])[0]["error_code"], TOO_LARGE)
        produce_one(self.conn, self.topic, 0, small)
        self.assertEqual(self.some(TOPIC, self.topic, (DELETE, "max.message.bytes", None)), (0, None))
        produce_one(self.conn, self.topic, 0, large)

    # -- brokers

    def test_brokers_defaults_take_effect_on_logs(self):
        large = simple_batch(b"x" * 5000)
        self.assertEqual(self.some(BROKER, "", (SET, "message.max.bytes", "2000")), (0, None))
        self.assertEqual(produce(self.conn, 9, [(self.topic, 0, large)])[0]["error_code"], TOO_LARGE)
        self.assertEqual(self.value(TOPIC, self.topic, "max.message.bytes"), ("2000", ALL))
        self.assertEqual(self.some(BROKER, "5", (SET, "message.max.bytes", "20000")), (0, None))
        produce_one(self.conn, self.topic, 0, large)
        self.assertEqual(self.value(TOPIC, self.topic, "max.message.bytes"), ("20000", OWN))
        create_topic(self.conn, self.topic + ".new", configs={})
        self.assertEqual(self.value(TOPIC, self.topic + ".new", "max.message.bytes"), ("20000", OWN))
        self.assertEqual(self.some(TOPIC, self.topic, (SET, "max.message.bytes", "3000")), (0, None))
        self.assertEqual(produce(self.conn, 9, [(self.topic, 0, large)])[0]["error_code"], TOO_LARGE)
        self.assertEqual(self.some(TOPIC, self.topic, (DELETE, "max.message.bytes", None)), (0, None))
        produce_one(self.conn, self.topic, 0, large)

    def test_sources_and_synonyms(self):
        self.assertEqual(self.whole(BROKER, "", {"message.max.bytes": "2000", "log.retention.ms": "60000"}), (0, None))
        self.assertEqual(self.whole(BROKER, "5", {"message.max.bytes": "3000"}), (0, None))
        for version in range(1, 5):
            c = self.describe(BROKER, "5", ["message.max.bytes"], version)["message.max.bytes"]
            self.assertEqual((c["value"], c["config_source"], c["read_only"]), ("3000", OWN, False))
            self.assertEqual([(s["name"], s["value"], s["source"]) for s in c["synonyms"]],
                             [("message.max.bytes", "3000", OWN), ("message.max.bytes", "2000", ALL),
                              ("message.max.bytes", "100000", STATIC), ("message.max.bytes", "1048588", DEFAULT)])
            c = self.describe(BROKER, "", version=version)
            self.assertEqual({n: (e["value"], e["config_source"]) for n, e in c.items()},
                             {"message.max.bytes": ("2000", ALL), "log.retention.ms": ("60000", ALL)})
            self.assertEqual([s["source"] for s in c["message.max.bytes"]["synonyms"]], [ALL])
            c = self.describe(TOPIC, self.topic, ["retention.ms"], version)["retention.ms"]
            self.assertEqual([(s["name"], s["value"], s["source"]) for s in c["synonyms"]],
                             [("retention.ms", "1000", FROM_TOPIC), ("log.retention.ms", "60000", ALL),
                              ("log.retention.hours", "168", DEFAULT)])

    def test_listeners_and_unknown_keys(self):
        key = "listener.name.plaintext.max.connections"
        self.assertEqual(self.some(BROKER, "5", (SET, key, "1000"), (SET, "someones.plugin", "x")), (0, None))
        c = self.describe(BROKER, "5")
        self.assertEqual((c[key]["value"], c[key]["config_source"], c[key]["config_type"]), ("1000", OWN, 3))
        self.assertEqual((c["someones.plugin"]["value"], c["someones.plugin"]["is_sensitive"],
                          c["someones.plugin"]["config_type"]), (None, True, 0))

    def test_connections_are_limited_while_running(self):
        self.assertEqual(self.some(BROKER, "", (SET, "max.connections.per.ip", "2")), (0, None))
        with kwire.Conn(self.broker.port) as second:
            second.call("ApiVersions", 0)
            with kwire.Conn(self.broker.port) as third:
                self.assertTrue(third.is_closed())
            self.assertEqual(self.some(BROKER, "", (SET, "max.connections.per.ip.overrides", "127.0.0.1:3")),
                             (0, None))
            with kwire.Conn(self.broker.port) as third:
                third.call("ApiVersions", 0)

    def test_threads_change_while_running(self):
        def threads():
            names = []
            for task in harness.os.listdir("/proc/%d/task" % self.broker.pid):
                try:
                    with open("/proc/%d/task/%s/comm" % (self.broker.pid, task)) as f:
                        names.append(f.read().strip())
                except (FileNotFoundError, ProcessLookupError):  # it has ended since it was listed
                    pass
            return sum(name.startswith("worker-") for name in names)
        self.assertEqual(threads(), 8)
        self.assertEqual(self.some(BROKER, "", (SET, "num.io.threads", "17"))[0], INVALID_REQUEST)
        self.assertEqual(self.some(BROKER, "", (SET, "num.io.threads", "12")), (0, None))
        self.assertEqual(threads(), 12)
        self.assertEqual(self.some(BROKER, "", (DELETE, "num.io.threads", None)), (0, None))
        harness.until("8 workers", lambda: threads() == 8)

    def test_settings_survive_a_restart(self):
        self.assertEqual(self.some(BROKER, "", (SET, "log.retention.bytes", "77")), (0, None))
        self.assertEqual(self.some(BROKER, "5", (SET, "num.io.threads", "4"), (SET, "log.segment.bytes", "30000")),
                         (0, None))
        self.assertEqual(self.some(TOPIC, self.topic, (SET, "retention.ms", "6")), (0, None))
        self.conn.close()
        self.broker.restart()
        self.conn = kwire.Conn(self.broker.port)
        self.assertEqual(self.value(BROKER, "5", "num.io.threads"), ("4", OWN))
        self.assertEqual(self.value(TOPIC, self.topic, "retention.bytes"), ("77", ALL))
        self.assertEqual(self.value(TOPIC, self.topic, "segment.bytes"), ("30000", OWN))
        self.assertEqual(self.overrides(), {"retention.ms": "6"})


if __name__ == "__main__":
    unittest.main()
