"""kafka-topics, kafka-get-offsets and kafka-broker-api-versions against a broker: flags, output, exit status."""
import os
import unittest

import harness
from tool_test import ToolTest, run_tool


class TopicsTest(ToolTest):
    OVERRIDES = {"num.partitions": "4"}

    def test_life_of_a_topic(self):
        t = self.topic()
        r = self.tool("kafka-topics", "--create", "--topic", t, "--partitions", 2, "--replication-factor", 1,
                      "--config", "retention.ms=1000", "--config", "cleanup.policy=compact")
        self.assertEqual(r.lines, ["Created topic %s." % t])
        r = self.tool("kafka-topics", "--create", "--topic", t, status=1)
        self.assertEqual(r.lines, ["Error while executing topic command : Topic '%s' already exists." % t])
        self.assertIn("ERROR", r.err)
        self.assertEqual(self.tool("kafka-topics", "--create", "--topic", t, "--if-not-exists").out, b"")

        r = self.tool("kafka-topics", "--describe", "--topic", t)
        self.assertRegex(r.lines[0], r"^Topic: %s\tTopicId: [A-Za-z0-9_-]{22}\tPartitionCount: 2\tReplicationFactor: 1\t"
                                     r"Configs: cleanup.policy=compact,retention.ms=1000$" % t)
        for i in range(2):
            self.assertEqual(r.lines[1 + i], "\tTopic: %s\tPartition: %d\tLeader: 0\tReplicas: 0\tIsr: 0\tElr: N/A\t"
                                             "LastKnownElr: N/A" % (t, i))
        topic_id = r.lines[0].split("\t")[1].split()[1]
        self.assertEqual(self.tool("kafka-topics", "--describe", "--topic-id", topic_id).out, r.out)

        self.assertEqual(self.tool("kafka-topics", "--alter", "--topic", t, "--partitions", 5).out, b"")
        r = self.tool("kafka-topics", "--describe", "--topic", t)
        self.assertEqual(len(r.lines), 6)
        r = self.tool("kafka-topics", "--alter", "--topic", t, "--partitions", 3, status=1)
        self.assertRegex(r.lines[0], "^Error while executing topic command : ")

        self.assertEqual(self.tool("kafka-topics", "--delete", "--topic", t).out, b"")
        self.assertNotIn(t, self.tool("kafka-topics", "--list").lines)
        r = self.tool("kafka-topics", "--delete", "--topic", t, status=1)
        self.assertEqual(r.lines, ["Error while executing topic command : Topic '%s' does not exist as expected" % t])
        self.assertEqual(self.tool("kafka-topics", "--delete", "--topic", t, "--if-exists").out, b"")

    def test_list_is_sorted_and_filtered(self):
        with harness.Broker() as b:
            at = ("--bootstrap-server", b.address)
            self.assertEqual(run_tool("kafka-topics", *at, "--list").out, b"\n")
            for name in ["b1", "a2", "a1", "c"]:
                run_tool("kafka-topics", *at, "--create", "--topic", name)
            self.assertEqual(run_tool("kafka-topics", *at, "--list").lines, ["a1", "a2", "b1", "c"])
            self.assertEqual(run_tool("kafka-topics", *at, "--list", "--topic", r"a\d,c").lines, ["a1", "a2", "c"])
            self.assertEqual(run_tool("kafka-topics", *at, "--list", "--topic", "a").out, b"\n")
            r = run_tool("kafka-topics", *at, "--delete", "--topic", "a.*")
            self.assertEqual((r.status, r.text), (0, ""))
            self.assertEqual(run_tool("kafka-topics", *at, "--list").lines, ["b1", "c"])

    def test_defaults_and_assignment(self):
        t = self.topic()
        self.tool("kafka-topics", "--create", "--topic", t)
        self.assertEqual(len(self.tool("kafka-topics", "--describe", "--topic", t).lines), 5)
        u = t + "-assigned"
        self.tool("kafka-topics", "--create", "--topic", u, "--replica-assignment", "0,0,0")
        self.assertEqual(len(self.tool("kafka-topics", "--describe", "--topic", u).lines), 4)
        self.tool("kafka-topics", "--alter", "--topic", u, "--partitions", 5, "--replica-assignment", "0,0,0,0,0")
        self.assertEqual(len(self.tool("kafka-topics", "--describe", "--topic", u).lines), 6)

    def test_warning_of_metric_names(self):
        r = self.tool("kafka-topics", "--create", "--topic", "has_underscore")
        self.assertTrue(r.lines[0].startswith("WARNING: Due to limitations in metric names"))
        self.assertEqual(r.lines[1], "Created topic has_underscore.")

    def test_describe_filters(self):
        t = self.topic()
        self.create(t)
        self.create(t + "-own", 1, "--config", "retention.ms=5")
        for flag in ["--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"]:
            self.assertEqual(self.tool("kafka-topics", "--describe", flag).out, b"")
        r = self.tool("kafka-topics", "--describe", "--at-min-isr-partitions", "--topic", t)
        self.assertEqual([line[:7] for line in r.lines], ["\tTopic:"])
        r = self.tool("kafka-topics", "--describe", "--topics-with-overrides", "--topic", t + ".*")
        self.assertEqual(len(r.lines), 1)
        self.assertIn(t + "-own", r.lines[0])

    def test_broker_refusals_are_told(self):
        for args in [("--topic", "bad/name"), ("--topic", "t2", "--config", "no.such=1"),
                     ("--topic", "t3", "--config", "retention.ms=x"), ("--topic", "t4", "--replication-factor", 3)]:
            r = self.tool("kafka-topics", "--create", *args, status=1)
            self.assertRegex(r.lines[-1], "^Error while executing topic command : .")
            self.assertIn("ERROR", r.err)

    def test_flags_that_do_not_go_together(self):
        for args, message in [
                (["--list", "--describe"], "exactly one action"),
                ([], "exactly one action"),
                (["--create"], r"Missing required argument \"\[topic\]\""),
                (["--list", "--partitions", "3"], "partitions"),
                (["--list", "--list-all"], "--list-all is not a recognized option"),
                (["--lis"], "--lis is not a recognized option"),
                (["--list", "word"], "word is not a recognized option"),
                (["--create", "--topic", "a", "--topic", "b"], "multiple arguments for option topic"),
                (["--create", "--topic"], "Option topic requires an argument"),
                (["--create", "--topic", "a", "--partitions", "x"], "Cannot parse argument 'x' of option partitions"),
                (["--create", "--topic", "a", "--partitions", "0"], "at least 1"),
                (["--create", "--topic", "a", "--replica-assignment", "0:0"], "duplicate"),
                (["--create", "--topic", "a", "--replica-assignment", "0,1:2"], "different replication factor"),
                (["--create", "--topic", "a", "--replica-assignment", "0", "--partitions", "1"],
                 r"replica-assignment.*can't be used with.*partitions"),
                (["--alter", "--topic", "a"], r"Missing required argument \"\[partitions\]\""),
                (["--alter", "--topic", "a", "--delete-config", "x", "--partitions", "2"], "delete-config"),
                (["--describe", "--if-exists"], "if-exists"),
                (["--describe", "--topics-with-overrides", "--unavailable-partitions"], "topics-with-overrides")]:
            self.assert_usage(run_tool("kafka-topics", "--bootstrap-server", self.broker.address, *args), message)
        self.assert_usage(run_tool("kafka-topics", "--zookeeper", "h:1", "--bootstrap-server", "h:2", "--list"),
                          "Only one of")
        self.assert_usage(run_tool("kafka-topics"), "create, delete, describe, or change a topic")
        r = run_tool("kafka-topics", "--list")
        self.assertEqual((r.status, r.err), (1, "--bootstrap-server must be specified\n"))

    def test_help_and_version(self):
        for name in ["kafka-topics", "kafka-topics.sh", "kafka-console-producer", "kafka-console-consumer",
                     "kafka-get-offsets", "kafka-broker-api-versions", "kafka-producer-perf-test",
                     "kafka-consumer-perf-test", "kafka-e2e-latency"]:
            r = run_tool(name, "--help")
            self.assertEqual((r.status, r.err), (0, ""))
            self.assertRegex(r.text, r"(?m)^Option +Description$")
            table = r.lines[next(i for i, line in enumerate(r.lines) if line.startswith("Option")):]
            self.assertTrue(all(len(line) <= 80 for line in table), name)
            r = run_tool(name, "--version")
            self.assertEqual(r.status, 0)
            self.assertRegex(r.text, r"^\d+\.\d+\.\d+( |$)")

    def test_command_config(self):
        path = os.path.join(self.broker.folder, "client.properties")
        with open(path, "w") as f:
            f.write("bootstrap.servers=127.0.0.1:1\nclient.id = from-file\n")
        self.tool("kafka-topics", "--command-config", path, "--list")  # the flag wins over the file
        r = self.tool("kafka-topics", "--command-config", path + "-missing", "--list", status=1)
        self.assertIn("client.properties-missing", r.err)
        with open(path, "w") as f:
            f.write("request.timeout.ms=soon\n")
        r = self.tool("kafka-topics", "--command-config", path, "--list", status=1)
        self.assertIn("request.timeout.ms=soon", r.err)

    def test_no_broker(self):
        path = os.path.join(self.broker.folder, "hasty.properties")
        with open(path, "w") as f:
            f.write("default.api.timeout.ms=300\n")
        r = run_tool("kafka-topics", "--bootstrap-server", "127.0.0.1:1", "--command-config", path, "--list")
        self.assertEqual(r.status, 1)
        self.assertIn("Connection refused", r.err)
        r = run_tool("kafka-topics", "--bootstrap-server", "127.0.0.1", "--list")
        self.assert_usage(r, "valid host:port")


class OffsetsTest(ToolTest):
    def offsets(self, *args, **kw):
        return self.tool("kafka-get-offsets", *args, **kw).lines

    def test_offsets(self):
        t = self.topic()
        self.create(t, 12)
        self.create(t + "-b", 1)
        self.tool("kafka-console-producer", "--topic", t + "-b", input="1\n2\n3\n")
        self.assertEqual(self.offsets("--topic", t + "-b"), [t + "-b:0:3"])
        self.assertEqual(self.offsets("--topic", t + "-b", "--time", "earliest"), [t + "-b:0:0"])
        self.assertEqual(self.offsets("--topic", t + "-b", "--time", "-2"), [t + "-b:0:0"])
        self.assertEqual(self.offsets("--topic", t + "-b", "--time", "0"), [t + "-b:0:0"])
        self.assertEqual(self.offsets("--topic", t + "-b", "--time", "99999999999999"), [])
        self.assertEqual(len(self.offsets("--topic", t + "-b", "--time", "max-timestamp")), 1)
        # partitions as text: 10 and 11 stand before 2
        self.assertEqual([line.split(":")[1] for line in self.offsets("--topic", t)],
                         ["0", "1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9"])
        self.assertEqual(self.offsets("--topic", t, "--partitions", "3,1"), [t + ":1:0", t + ":3:0"])
        self.assertEqual(self.offsets("--topic-partitions", "%s:1-3,%s-b" % (t, t)),
                         [t + ":1:0", t + ":2:0", t + "-b:0:3"])
        self.assertEqual(self.offsets("--topic-partitions", "%s:10-" % t), [t + ":10:0", t + ":11:0"])
        self.assertEqual(self.offsets("--topic-partitions", "%s:-2" % t), [t + ":0:0", t + ":1:0"])
        r = run_tool("kafka-get-offsets", "--broker-list", self.broker.address, "--topic", t + "-b")
        self.assertEqual((r.status, r.lines), (0, [t + "-b:0:3"]))

    def test_errors(self):
        r = self.tool("kafka-get-offsets", "--topic", "nothing.*", status=1)
        self.assertIn("Error occurred: Could not match any topic-partitions with the specified filters", r.err)
        r = self.tool("kafka-get-offsets", "--time", "yesterday", status=1)
        self.assertIn("Error occurred: Malformed time argument yesterday", r.err)
        r = self.tool("kafka-get-offsets", "--topic", "a", "--topic-partitions", "b", status=1)
        self.assert_usage(r, "topic-partitions")
        self.assert_usage(run_tool("kafka-get-offsets", "--topic", "a"), "bootstrap-server")
        # asking does not create
        self.assertNotIn("nothing", self.tool("kafka-topics", "--list").lines)


class ApiVersionsTest(ToolTest):
    def test_lists_every_api(self):
        r = self.tool("kafka-broker-api-versions")
        self.assertEqual(r.lines[0], "%s (id: 0 rack: null) -> (" % self.broker.address)
        self.assertEqual(r.lines[-1], ")")
        self.assertIn("\tProduce(0): 0 to 11 [usable: 11],", r.lines)
        self.assertIn("\tApiVersions(18): 0 to 4 [usable: 4],", r.lines)
        self.assertTrue(all(line.endswith(",") for line in r.lines[1:-2]))
        self.assertFalse(r.lines[-2].endswith(","))
        keys = [int(line.split("(")[1].split(")")[0]) for line in r.lines[1:-1]]
        self.assertEqual(keys, sorted(keys))
        self.assert_usage(run_tool("kafka-broker-api-versions", "--command-config", "x"), "bootstrap-server")


if __name__ == "__main__":
    harness.main()
