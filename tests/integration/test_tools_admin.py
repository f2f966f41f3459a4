"""kafka-configs, kafka-delete-records and kafka-log-dirs against a broker: flags, output, exit status."""
import json
import os
import re
import tempfile
import unittest

import kwire
from tool_test import ToolTest


class ConfigsTest(ToolTest):
    OVERRIDES = {"log.retention.hours": "24"}

    def configs(self, *args, **more):
        return self.tool("kafka-configs", *args, **more)

    def test_topics(self):
        t = self.topic()
        self.create(t)
        at = ("--entity-type", "topics", "--entity-name", t)
        self.assertEqual(self.configs("--describe", *at).lines, ["Dynamic configs for topic %s are:" % t])
        r = self.configs("--alter", *at, "--add-config", "retention.ms=86400000,cleanup.policy=[compact,delete]")
        self.assertEqual(r.lines, ["Completed updating config for topic %s." % t])
        self.assertEqual(self.configs("--describe", "--topic", t).lines, [
            "Dynamic configs for topic %s are:" % t,
            "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy="
            "compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}",
            "  retention.ms=86400000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=86400000, "
            "STATIC_BROKER_CONFIG:log.retention.hours=24, DEFAULT_CONFIG:log.retention.hours=168}"])
        lines = self.configs("--describe", *at, "--all").lines
        self.assertEqual(lines[0], "All configs for topic %s are:" % t)
        self.assertGreater(len(lines), 30)
        self.assertEqual(lines[1:], sorted(lines[1:]))
        self.configs("--alter", "--topic", t, "--delete-config", "retention.ms , cleanup.policy")
        self.assertEqual(self.configs("--describe", *at).lines, ["Dynamic configs for topic %s are:" % t])
        self.assertIn("Dynamic configs for topic %s are:" % t, self.configs("--describe", "--entity-type", "topics").lines)

    def test_what_is_not_there(self):
        for entity in (["--topic", "no.such"], ["--entity-type", "topics", "--entity-name", "no.such"]):
            for what in (["--describe"], ["--describe", "--all"], ["--alter", "--add-config", "retention.ms=1"],
                         ["--alter", "--delete-config", "retention.ms"]):
                r = self.configs(*what, *entity, status=1)
                self.assertIn("UnknownTopicOrPartitionException: The topic 'no.such' does not exist.", r.err)
        for entity in (["--broker", "7"], ["--broker-logger", "7"]):
            for what in (["--describe"], ["--alter", "--add-config", "num.io.threads=3"]):
                r = self.configs(*what, *entity, status=1)  # before the minute is over that a request may take
                self.assertEqual(r.err, "The broker '7' doesn't exist or is away: a broker's dynamic config can "
                                        "only be asked of itself.\n")

    def test_a_file_of_settings(self):
        t = self.topic()
        self.create(t)
        with tempfile.NamedTemporaryFile("w", suffix=".properties") as f:
            f.write("# some\nretention.ms = 5\nsegment.bytes: 2000\n")
            f.flush()
            self.configs("--alter", "--topic", t, "--add-config-file", f.name)
        self.assertEqual([line.split()[0] for line in self.configs("--describe", "--topic", t).lines[1:]],
                         ["retention.ms=5", "segment.bytes=2000"])

    def test_brokers(self):
        r = self.configs("--alter", "--entity-type", "brokers", "--entity-default",
                         "--add-config", "log.retention.bytes=1000,num.io.threads=9")
        self.assertEqual(r.lines, ["Completed updating default config for brokers in the cluster."])
        r = self.configs("--alter", "--broker", "0", "--add-config", "log.retention.bytes=2000")
        self.assertEqual(r.lines, ["Completed updating config for broker 0."])
        self.assertEqual(self.configs("--describe", "--broker-defaults").lines, [
            "Default configs for brokers in the cluster are:",
            "  log.retention.bytes=1000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.bytes=1000}",
            "  num.io.threads=9 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:num.io.threads=9}"])
        self.assertEqual(self.configs("--describe", "--entity-type", "brokers").lines, [
            "Dynamic configs for broker 0 are:",
            "  log.retention.bytes=2000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.bytes=2000, "
            "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.bytes=1000, DEFAULT_CONFIG:log.retention.bytes=-1}",
            *self.configs("--describe", "--broker-defaults").lines])
        self.configs("--alter", "--broker-defaults", "--delete-config", "num.io.threads")
        self.assertEqual(len(self.configs("--describe", "--broker-defaults").lines), 2)
        self.configs("--alter", "--broker-defaults", "--delete-config", "log.retention.bytes")
        self.configs("--alter", "--broker", "0", "--delete-config", "log.retention.bytes")

    def test_quotas(self):
        r = self.configs("--alter", "--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients",
                         "--entity-name", "app", "--add-config", "producer_byte_rate=1048576,consumer_byte_rate=2e7")
        self.assertEqual(r.lines, ["Completed updating config for user alice."])
        self.assertEqual(self.configs("--alter", "--user-defaults", "--add-config", "request_percentage=12.5").lines,
                         ["Completed updating default config for users in the cluster."])
        self.assertEqual(self.configs("--alter", "--ip", "127.0.0.7", "--add-config", "connection_creation_rate=5").lines,
                         ["Completed updating config for ip 127.0.0.7."])
        self.assertEqual(self.configs("--alter", "--entity-type", "clients", "--entity-default", "--entity-type",
                                      "users", "--entity-name", "bob", "--add-config", "producer_byte_rate=1").lines,
                         ["Completed updating default config for clients in the cluster."])
        describe = ("--describe", "--entity-type", "users", "--entity-type", "clients")
        self.assertEqual(sorted(self.configs(*describe).lines), [
            "Quota configs for user-principal 'alice', client-id 'app' are producer_byte_rate=1048576.0, "
            "consumer_byte_rate=2.0E7",
            "Quota configs for user-principal 'bob', the default client-id are producer_byte_rate=1.0"])
        self.assertEqual(self.configs("--describe", "--user", "alice", "--client", "app").lines,
                         [line for line in self.configs(*describe).lines if "alice" in line])
        self.assertEqual(self.configs("--describe", "--entity-type", "users").lines,
                         ["Quota configs for the default user-principal are request_percentage=12.5"])
        self.assertEqual(self.configs("--describe", "--entity-type", "ips").lines,
                         ["Quota configs for ip '127.0.0.7' are connection_creation_rate=5.0"])
        self.assertEqual(self.configs("--describe", "--user", "nobody").out, b"")
        self.configs("--alter", "--user", "alice", "--client", "app", "--delete-config",
                     "producer_byte_rate,consumer_byte_rate")
        self.assertNotIn("alice", self.configs(*describe).text)

    def test_mistakes_are_told(self):
        t = self.topic()
        self.create(t)
        for args, words in ((["--alter", "--topic", t, "--delete-config", "retention.ms,segment.ms"],
                             r"^Invalid config\(s\): retention.ms,segment.ms$"),
                            (["--alter", "--topic", t, "--add-config", "retention.ms"], "key=val"),
                            (["--alter", "--topic", t, "--add-config", "a b=1"], "Invalid character"),
                            (["--alter", "--topic", t, "--add-config", "retention.ms=soon"],
                             r"^Error while executing config command with args '.*'$"),
                            (["--alter", "--topic", t, "--add-config", "no.such=1"], "InvalidConfigurationException"),
                            (["--alter", "--topic", "no-such", "--add-config", "retention.ms=1"],
                             "UnknownTopicOrPartitionException"),
                            (["--alter", "--broker", "0", "--add-config", "log.dirs=/x"], "log.dirs"),
                            (["--alter", "--user", "u", "--add-config", "retention.ms=1"],
                             "Only quota and SCRAM credential configs can be added for 'users'"),
                            (["--alter", "--user", "u", "--add-config", "producer_byte_rate=x"], "Cannot parse"),
                            (["--alter", "--topic", t, "--add-config-file", "/no/such"], "/no/such")):
            r = self.configs(*args, status=1)
            self.assertEqual(r.out, b"")
            self.assertRegex(r.err, re.compile(words, re.M))

    def test_flags_that_do_not_go_together(self):
        for args in (["--describe"], ["--topic", "t"], ["--alter", "--describe", "--topic", "t"],
                     ["--alter", "--topic", "t"], ["--describe", "--topic", "t", "--add-config", "a=1"],
                     ["--alter", "--entity-type", "topics", "--add-config", "a=1"],
                     ["--describe", "--entity-type", "groups"], ["--describe", "--entity-type", "topics", "--topic", "t"],
                     ["--describe", "--entity-type", "topics", "--entity-type", "users"],
                     ["--alter", "--broker", "one", "--add-config", "a=1"],
                     ["--alter", "--entity-type", "topics", "--entity-default", "--add-config", "a=1"],
                     ["--alter", "--topic", "t", "--add-config", "a=1", "--add-config-file", "f"]):
            self.assert_usage(self.configs(*args, status=1), ".")
        self.assert_usage(self.configs("--zookeeper", "h:1", "--describe", "--topic", "t", status=1), "Only one of")


class RecordsTest(ToolTest):
    def delete(self, document, **more):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            f.write(document if isinstance(document, str) else json.dumps(document))
            f.flush()
            return self.tool("kafka-delete-records", "--offset-json-file", f.name, **more)

    def test_a_missing_file_is_named_once(self):
        r = self.tool("kafka-delete-records", "--offset-json-file", "/no/such.json", status=1)
        self.assertIn("No such file", r.err)
        self.assertEqual(r.err.count("/no/such.json"), 1, r.err)
        self.assertNotIn("line", r.err)

    def test_records_go(self):
        t = self.topic()
        self.create(t, 3)
        with kwire.Conn(self.broker.port) as c:
            for p in range(3):
                for _ in range(5):
                    kwire.produce_one(c, t, p, kwire.simple_batch(b"x"))
        r = self.delete({"version": 1, "partitions": [
            {"topic": t, "partition": 0, "offset": 3}, {"topic": t, "partition": 1, "offset": -1},
            {"topic": t, "partition": 2, "offset": 9}, {"topic": "no-such", "partition": 0, "offset": 1}]})
        self.assertEqual(r.lines[:4], ["Executing records delete operation", "Records delete operation completed:",
                                       "partition: %s-0\tlow_watermark: 3" % t, "partition: %s-1\tlow_watermark: 5" % t])
        self.assertRegex(r.lines[4], r"^partition: %s-2\terror: org\.apache\.kafka\.common\.errors\."
                                     r"OffsetOutOfRangeException: ." % t)
        self.assertRegex(r.lines[5], r"^partition: no-such-0\terror: \S+\.UnknownTopicOrPartitionException: .")
        self.assertEqual(self.tool("kafka-get-offsets", "--topic", t, "--time", "earliest").lines,
                         ["%s:0:3" % t, "%s:1:5" % t, "%s:2:0" % t])

    def test_files_that_say_nothing(self):
        for text in ("", "{", "[]", "{}", '{"version":2,"partitions":[]}', '{"partitions":[{"topic":"t"}]}',
                     '{"partitions":[{"topic":"t","partition":0,"offset":"1"}]}',
                     '{"partitions":[{"topic":"t","partition":-1,"offset":1}]}',
                     '{"partitions":[{"topic":"t","partition":0,"offset":1},{"topic":"t","partition":0,"offset":2}]}'):
            r = self.delete(text, status=1)
            self.assertEqual(r.out, b"", text)
            self.assertTrue(r.err)
        self.assertEqual(self.delete({"partitions": []}).lines,
                         ["Executing records delete operation", "Records delete operation completed:"])


class LogDirsTest(ToolTest):
    def test_log_dirs_are_printed(self):
        t = self.topic()
        self.create(t, 2)
        self.create(t + ".other")
        with kwire.Conn(self.broker.port) as c:
            kwire.produce_one(c, t, 1, kwire.simple_batch(b"x" * 1000))
        r = self.tool("kafka-log-dirs", "--describe", "--topic-list", t)
        self.assertEqual(r.lines[:2], ["Querying brokers for log directories information",
                                       "Received log directory information from brokers 0"])
        document = json.loads(r.lines[2])
        self.assertEqual(len(r.lines), 3)
        self.assertEqual((document["version"], [b["broker"] for b in document["brokers"]]), (1, [0]))
        directory, = document["brokers"][0]["logDirs"]
        self.assertEqual((directory["logDir"], directory["error"]), (self.broker.data, None))
        found = {p["partition"]: p for p in directory["partitions"]}
        self.assertEqual(set(found), {t + "-0", t + "-1"})
        self.assertGreater(found[t + "-1"]["size"], 1000)
        self.assertEqual((found[t + "-0"]["size"], found[t + "-0"]["offsetLag"], found[t + "-0"]["isFuture"]),
                         (0, 0, False))
        everything = json.loads(self.tool("kafka-log-dirs", "--describe", "--broker-list", "0").lines[2])
        self.assertIn(t + ".other-0", [p["partition"] for p in everything["brokers"][0]["logDirs"][0]["partitions"]])

    def test_mistakes(self):
        r = self.tool("kafka-log-dirs", "--describe", "--broker-list", "0,7,9", status=1)
        self.assertEqual(r.err.splitlines()[-1], "ERROR: The given brokers do not exist from --broker-list: 7,9. "
                                                 "Current existent brokers: 0")
        self.tool("kafka-log-dirs", "--describe", "--broker-list", "x", status=1)
        self.assert_usage(self.tool("kafka-log-dirs", status=1), "describe")


if __name__ == "__main__":
    unittest.main()
