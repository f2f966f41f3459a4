"""kafka-leader-election against one broker: what there is to say when every leader is the right one."""
import json
import os
import unittest

import harness
from tool_test import ToolTest, run_tool


class ElectionTest(ToolTest):
    def elect(self, *args, kind="preferred", **kw):
        return self.tool("kafka-leader-election", "--election-type", kind, *args, **kw)

    def put(self, document):
        path = os.path.join(self.broker.folder, "partitions.json")
        with open(path, "w") as f:
            f.write(document if isinstance(document, str) else json.dumps(document))
        return path

    def test_nothing_to_do(self):
        t = self.topic()
        self.create(t, 3)
        for kind in ("preferred", "UNCLEAN"):
            r = self.elect("--topic", t, "--partition", 1, kind=kind)
            self.assertEqual(r.text, "Valid replica already elected for partitions %s-1\n" % t)
        path = self.put({"partitions": [{"topic": t, "partition": p} for p in (2, 0)]})
        r = self.elect("--path-to-json-file", path)
        self.assertEqual(r.text, "Valid replica already elected for partitions %s-0, %s-2\n" % (t, t))
        self.assertEqual(self.elect("--all-topic-partitions").text, "")
        config = self.put("")
        with open(config, "w") as f:
            f.write("request.timeout.ms=5000\n")
        self.assertEqual(self.elect("--all-topic-partitions", "--admin.config", config).text, "")

    def test_failures(self):
        t = self.topic()
        self.create(t)
        path = self.put({"partitions": [{"topic": t, "partition": 0}, {"topic": t, "partition": 9},
                                        {"topic": "missing", "partition": 0}]})
        r = self.elect("--path-to-json-file", path, status=1)
        self.assertEqual(r.lines[0], "Valid replica already elected for partitions %s-0" % t)
        for line, part in zip(r.lines[1:], ["missing-0", t + "-9"]):
            self.assertRegex(line, r"^Error completing leader election \(PREFERRED\) for partition: %s: org\.apache\.kafka\.common"
                                   r"\.errors\.UnknownTopicOrPartitionException: \S" % part)
        self.assertEqual(r.err, "2 replica(s) could not be elected\n")

    def test_bad_files_and_flags(self):
        t = self.topic()
        for document, why in [("{", "line 1"), ("[]", "not a JSON object"), ({}, "missing partitions"),
                              ({"partitions": [{"topic": t}]}, "partition"), ({"partitions": [{"partition": 1}]}, "no topic"),
                              ({"partitions": [{"topic": t, "partition": 0}] * 2}, "duplicate")]:
            r = self.elect("--path-to-json-file", self.put(document), status=1)
            self.assertIn(why, r.err)
        for args, why in [([], "One and only one of"), (["--topic", t], r"Missing required option\(s\): partition"),
                          (["--all-topic-partitions", "--partition", "0"], r"Missing required option\(s\): topic"),
                          (["--all-topic-partitions", "--topic", t, "--partition", "0"], "One and only one of")]:
            self.assertRegex(self.elect(*args, status=1).err, why)
        self.assertIn("election-type", self.elect("--all-topic-partitions", kind="other", status=1).err)
        r = run_tool("kafka-leader-election", "--bootstrap-server", self.broker.address, "--all-topic-partitions")
        self.assertEqual((r.status, "election-type" in r.err), (1, True))


if __name__ == "__main__":
    harness.main()
