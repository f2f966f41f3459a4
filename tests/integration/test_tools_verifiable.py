"""kafka-verifiable-producer, kafka-verifiable-consumer and kafka-cluster."""
import json
import os
import signal
import subprocess

import harness
from tool_test import ToolTest, run_tool


def events(text):
    return [json.loads(line) for line in text.splitlines()]


class VerifiableTest(ToolTest):
    def test_producer(self):
        t = self.topic()
        self.create(t)
        r = self.tool("kafka-verifiable-producer", "--topic", t, "--max-messages", 5)
        self.assertTrue(r.lines[0].startswith('{"timestamp":'))
        got = events(r.text)
        self.assertEqual([e["name"] for e in got],
                         ["startup_complete"] + ["producer_send_success"] * 5 + ["shutdown_complete", "tool_data"])
        for i, e in enumerate(got[1:6]):
            self.assertEqual({k: v for k, v in e.items() if k != "timestamp"},
                             {"name": "producer_send_success", "key": None, "value": str(i), "partition": 0, "offset": i,
                              "topic": t})
        last = got[-1]
        self.assertEqual((last["sent"], last["acked"], last["target_throughput"]), (5, 5, -1))
        self.assertGreater(last["avg_throughput"], 0)

    def test_producer_keys_prefixes_times(self):
        t = self.topic()
        self.create(t)
        r = self.tool("kafka-verifiable-producer", "--topic", t, "--max-messages", 5, "--repeating-keys", 2, "--value-prefix",
                      7, "--message-create-time", 1000000, "--acks", 1, "--throughput", 1000)
        self.assertEqual(events(r.text)[-1]["target_throughput"], 1000)
        r = self.tool("kafka-console-consumer", "--topic", t, "--partition", 0, "--from-beginning", "--max-messages", 5,
                      "--property", "print.key=true", "--property", "print.timestamp=true")
        rows = [line.split("\t") for line in r.lines]
        self.assertEqual([(k, v) for _, k, v in rows], [(str(i % 2), "7.%d" % i) for i in range(5)])
        times = [int(time.split(":")[1]) for time, _, _ in rows]
        self.assertTrue(all(1000000 <= at < 1100000 for at in times), times)
        self.assertEqual(times, sorted(times))

    def test_producer_failures(self):
        t = self.topic()
        self.create(t, 1, "--config", "max.message.bytes=60")
        path = os.path.join(self.broker.folder, "p.properties")
        with open(path, "w") as f:
            f.write("acks=all\nbatch.size=0\n")
        r = self.tool("kafka-verifiable-producer", "--topic", t, "--max-messages", 2, "--producer.config", path)
        got = events(r.text)
        self.assertEqual([e["name"] for e in got[1:3]], ["producer_send_error"] * 2)
        self.assertEqual(got[1]["exception"], "class org.apache.kafka.common.errors.RecordTooLargeException")
        self.assertEqual((got[1]["value"], got[1]["topic"], got[-1]["acked"]), ("0", t, 0))

    def test_producer_without_an_end(self):
        for sig in (signal.SIGINT, signal.SIGTERM):
            t = self.topic("s%d" % sig)
            self.create(t)
            p = subprocess.Popen([harness.program("kafka-verifiable-producer"), "--topic", t, "--bootstrap-server",
                                  self.broker.address, "--throughput", "200"], stdout=subprocess.PIPE)
            try:
                for _ in range(4):
                    line = p.stdout.readline()  # each line comes at once
                self.assertEqual(json.loads(line)["name"], "producer_send_success")
                p.send_signal(sig)
                rest = events(p.communicate(timeout=60)[0].decode())
            finally:
                p.kill()
            self.assertEqual(p.returncode, 0)
            self.assertEqual([e["name"] for e in rest[-2:]], ["shutdown_complete", "tool_data"])
            self.assertEqual(rest[-1]["sent"], rest[-1]["acked"])

    def test_a_signal_finds_few_records_waiting(self):
        """Without a throughput it does not take records by the hundred thousand, whose lines would come after the
        signal."""
        t = self.topic()
        self.create(t)
        p = subprocess.Popen([harness.program("kafka-verifiable-producer"), "--topic", t, "--bootstrap-server",
                              self.broker.address], stdout=subprocess.PIPE)
        try:
            for _ in range(30000):
                p.stdout.readline()
            p.send_signal(signal.SIGINT)
            rest = events(p.stdout.read().decode())
            p.wait(60)
        finally:
            p.kill()
            p.stdout.close()
        self.assertEqual((p.returncode, rest[-1]["sent"]), (0, rest[-1]["acked"]))
        self.assertLess(len(rest), 40000)  # 20000 waiting, what the pipe holds, and what came until the signal

    def test_producer_flags(self):
        r = run_tool("kafka-verifiable-producer")
        self.assertEqual((r.status, r.err), (0, ""))
        self.assertIn("--repeating-keys", r.text)
        for args, message in [(["--topic", "t"], "one of the arguments"),
                              (["--topic", "t", "--bootstrap-server", "h:1", "--broker-list", "h:1"], "not allowed with"),
                              (["--bootstrap-server", "h:1"], "topic"), (["--topic", "t", "--acks", "2"], "acks")]:
            r = run_tool("kafka-verifiable-producer", *args)
            self.assertEqual((r.status, r.out), (1, b""))
            self.assertRegex(r.err, r"^usage: kafka-verifiable-producer.*\nkafka-verifiable-producer: error: .*" + message)

    def reader(self, topic, group, *args):
        return subprocess.Popen([harness.program("kafka-verifiable-consumer"), "--topic", topic, "--group-id", group,
                                 "--bootstrap-server", self.broker.address, *map(str, args)], stdout=subprocess.PIPE)

    @staticmethod
    def bare(event):
        return {k: v for k, v in event.items() if k != "timestamp"}

    def test_consumer(self):
        t = self.topic()
        self.create(t)
        self.tool("kafka-verifiable-producer", "--topic", t, "--max-messages", 5, "--repeating-keys", 1)
        part = {"topic": t, "partition": 0}
        r = self.tool("kafka-verifiable-consumer", "--topic", t, "--group-id", "g-" + t, "--max-messages", 3, "--verbose")
        got = [self.bare(e) for e in events(r.text)]
        self.assertEqual(got, [
            {"name": "startup_complete"}, {"name": "partitions_assigned", "partitions": [part]},
            *[dict(part, name="record_data", key="0", value=str(i), offset=i) for i in range(3)],
            {"name": "records_consumed", "count": 3, "partitions": [dict(part, count=3, minOffset=0, maxOffset=2)]},
            {"name": "offsets_committed", "offsets": [dict(part, offset=3)], "success": True},
            {"name": "partitions_revoked", "partitions": [part]}, {"name": "shutdown_complete"}])
        # the next one goes on where this one ended
        r = self.tool("kafka-verifiable-consumer", "--topic", t, "--group-id", "g-" + t, "--max-messages", 2,
                      "--enable-autocommit", "--assignment-strategy",
                      "org.apache.kafka.clients.consumer.CooperativeStickyAssignor", "--group-instance-id", "i")
        got = [self.bare(e) for e in events(r.text)]
        self.assertEqual(got[2], {"name": "records_consumed", "count": 2,
                                  "partitions": [dict(part, count=2, minOffset=3, maxOffset=4)]})
        self.assertNotIn("offsets_committed", [e["name"] for e in got])

    def test_consumers_share_and_end(self):
        t = self.topic()
        self.create(t, 2)
        first = self.reader(t, "g-" + t)
        second = None
        try:
            self.assertEqual(json.loads(first.stdout.readline())["name"], "startup_complete")
            self.assertEqual(len(json.loads(first.stdout.readline())["partitions"]), 2)
            second = self.reader(t, "g-" + t)
            names = [json.loads(first.stdout.readline()) for _ in range(2)]
            self.assertEqual([(e["name"], len(e["partitions"])) for e in names],
                             [("partitions_revoked", 2), ("partitions_assigned", 1)])
            first.send_signal(signal.SIGTERM)
            got = events(first.communicate(timeout=60)[0].decode())
            self.assertEqual((first.returncode, [e["name"] for e in got]), (0, ["partitions_revoked", "shutdown_complete"]))
            assigned = []
            while assigned != [0, 1]:  # it gets the other's, too
                e = json.loads(second.stdout.readline())
                if e["name"] == "partitions_assigned":
                    assigned = sorted(p["partition"] for p in e["partitions"])
            second.send_signal(signal.SIGINT)
            second.communicate(timeout=60)
            self.assertEqual(second.returncode, 0)
        finally:
            for p in (first, second):
                if p:
                    p.kill()
                    p.communicate()

    def test_consumer_flags(self):
        r = run_tool("kafka-verifiable-consumer")
        self.assertEqual((r.status, r.err), (0, ""))
        for args, message in [(["--topic", "t"], "group-id"), (["--topic", "t", "--group-id", "g"], "one of the arguments")]:
            r = run_tool("kafka-verifiable-consumer", *args)
            self.assertEqual((r.status, r.out), (1, b""))
            self.assertRegex(r.err, message)
        r = self.tool("kafka-verifiable-consumer", "--topic", "t", "--group-id", "g", "--reset-policy", "never", status=1)
        self.assertIn("auto.offset.reset", r.err)

    def test_cluster(self):
        r = self.tool("kafka-cluster", "cluster-id")
        self.assertRegex(r.text, r"^Cluster ID: [\w-]{22}\n$")
        self.assertEqual(run_tool("kafka-cluster.sh", "cluster-id", "-b", self.broker.address).out, r.out)
        r = self.tool("kafka-cluster", "unregister", "--id", 3)
        self.assertEqual(r.text, "The target cluster does not support the broker unregistration API.\n")
        for args, message in [([], "too few arguments"), (["cluster-id"], "one of the arguments"),
                              (["cluster-id", "-C", "h:1"], "KRaft"), (["other", "-b", "h:1"], "invalid choice: 'other'"),
                              (["unregister", "-b", "h:1"], "--id/-i is required"), (["cluster-id", "-b"], "requires an argument"),
                              (["cluster-id", "-x"], "not a recognized option"),
                              (["cluster-id", "more", "-b", "h:1"], "unrecognized arguments: 'more'")]:
            r = run_tool("kafka-cluster", *args)
            self.assertEqual((r.status, r.out), (1, b""), args)
            self.assertRegex(r.err, message)
        self.assertIn("-b", run_tool("kafka-cluster", "--help").text)


if __name__ == "__main__":
    harness.main()
