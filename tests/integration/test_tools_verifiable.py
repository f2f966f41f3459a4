"""kafka-verifiable-producer and kafka-cluster."""
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
