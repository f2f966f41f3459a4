"""The performance tools and the start and stop scripts against real brokers: what they print, not how fast they are."""
import os
import re
import signal
import subprocess
import unittest

import harness
from tool_test import ToolTest, run_tool

TOTAL = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\), ([\d.]+) ms avg latency, "
                   r"([\d.]+) ms max latency, (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th, (\d+) ms 99.9th.$")
SUMMARY = (r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}, \d+\.\d{4}, \d+\.\d{4}, (\d+), "
           r"\d+\.\d{4}, \d+, -?\d+, \d+\.\d{4}, \d+\.\d{4}$")


class PerfTest(ToolTest):
    def perf(self, topic, n, *args, status=0):
        return self.tool("kafka-producer-perf-test", "--topic", topic, "--num-records", n, *args, "--producer-props",
                         "bootstrap.servers=" + self.broker.address, "linger.ms=1", server=False, status=status)

    def test_producer(self):
        t = self.topic()
        r = self.perf(t, 5000, "--record-size", 100, "--throughput", -1)
        m = TOTAL.match(r.lines[-1])
        self.assertTrue(m, r.text)
        self.assertEqual(m.group(1), "5000")
        self.assertEqual(self.tool("kafka-get-offsets", "--topic", t).lines, [t + ":0:5000"])
        r = self.tool("kafka-console-consumer", "--topic", t, "--from-beginning", "--max-messages", 5000)
        self.assertTrue(all(re.match(r"^[A-Z]{100}$", line) for line in r.lines))

    def test_throughput_is_kept(self):
        r = self.perf(self.topic(), 100, "--record-size", 10, "--throughput", 200)
        self.assertLess(float(TOTAL.match(r.lines[-1]).group(2)), 210)

    def test_payloads(self):
        t = self.topic()
        path = os.path.join(self.broker.folder, "payloads")
        with open(path, "w") as f:
            f.write("one|two|three")
        r = self.perf(t, 50, "--payload-file", path, "--payload-delimiter", "|", "--throughput", -1)
        self.assertEqual(r.lines[:2], ["Reading payloads from: " + path, "Number of messages read: 3"])
        got = self.tool("kafka-console-consumer", "--topic", t, "--from-beginning", "--max-messages", 50).lines
        self.assertEqual(set(got), {"one", "two", "three"})
        t += "-numbers"
        self.perf(t, 20, "--payload-monotonic", "--throughput", -1, "--print-metrics")
        got = self.tool("kafka-console-consumer", "--topic", t, "--from-beginning", "--max-messages", 20).lines
        self.assertEqual(got, [str(i) for i in range(20)])

    def test_metrics(self):
        r = self.perf(self.topic(), 10, "--record-size", 10, "--throughput", -1, "--print-metrics")
        self.assertRegex(r.text, r"(?m)^Metric Name +Value$")
        self.assertRegex(r.text, r"(?m)^producer-metrics:record-send-total:\{client-id=perf-producer-client\} +: 10\.000$")

    def test_producer_flags(self):
        r = run_tool("kafka-producer-perf-test")
        self.assertEqual(r.status, 0)
        self.assertIn("--num-records", r.text)
        for args in [["--topic", "t"], ["--topic", "t", "--num-records", "1", "--throughput", "1", "--producer-props", "a=b"],
                     ["--topic", "t", "--num-records", "1", "--throughput", "1", "--record-size", "1"],
                     ["--topic", "t", "--num-records", "x", "--throughput", "1", "--record-size", "1"]]:
            r = run_tool("kafka-producer-perf-test", *args)
            self.assertEqual((r.status, r.out), (1, b""))
            self.assertRegex(r.err, r"^usage: kafka-producer-perf-test .*\nkafka-producer-perf-test: error: ")

    def test_consumer(self):
        t = self.topic()
        self.create(t, 3)
        self.perf(t, 3000, "--record-size", 100, "--throughput", -1)
        r = self.tool("kafka-consumer-perf-test", "--topic", t, "--messages", 3000)
        self.assertEqual(r.lines[0], "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
                                     "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec")
        self.assertEqual(re.match(SUMMARY, r.lines[1]).group(1), "3000")
        r = run_tool("kafka-consumer-perf-test", "--broker-list", self.broker.address, "--topic", t, "--messages", 3000,
                     "--hide-header", "--threads", 1, "--date-format", "HH:mm")
        self.assertEqual(r.status, 0)
        self.assertTrue(r.lines[0].startswith("WARNING: option [threads]"))
        self.assertRegex(r.lines[1], r"^\d\d:\d\d, \d\d:\d\d, 0\.2861, ")
        r = self.tool("kafka-consumer-perf-test", "--topic", t, "--messages", 4000, "--timeout", 100)
        self.assertRegex(r.text, r"(?m)^WARNING: Exiting before consuming the expected number of messages: timeout \(100 ms\) ")
        r = self.tool("kafka-consumer-perf-test", "--topic", t, "--messages", 3000, "--show-detailed-stats",
                      "--print-metrics")
        self.assertTrue(r.lines[0].startswith("time, threadId, data.consumed.in.MB"))
        self.assertRegex(r.lines[1], r"^\S+ \S+, 0, 0\.2861, ")
        self.assertIn("records-consumed-total", r.text)

    def test_e2e(self):
        t = self.topic()
        r = self.tool("kafka-e2e-latency", self.broker.address, t, 1001, "all", 50, server=False)
        self.assertEqual(r.lines[0], 'Topic "%s" does not exist. Will create topic with 1 partition(s) and replication '
                                     'factor = 1' % t)
        self.assertRegex(r.lines[1], r"^0\t\d+\.\d+$")
        self.assertRegex(r.lines[2], r"^1000\t\d+\.\d+$")
        self.assertRegex(r.lines[3], r"^Avg latency: \d+\.\d{4} ms$")
        self.assertRegex(r.lines[4], r"^Percentiles: 50th = \d+, 99th = \d+, 99.9th = \d+$")
        r = run_tool("kafka-e2e-latency", "a", "b")
        self.assertEqual(r.status, 1)
        self.assertRegex(r.err, r"^USAGE: .*\n$")
        r = run_tool("kafka-e2e-latency", self.broker.address, t, 1, 0, 1)
        self.assertIn("1 or all", r.err)


class StartStopTest(unittest.TestCase):
    NODE = 90000 + os.getpid() % 10000  # no other broker of this machine has it

    def daemon(self, b, settings, env):
        return subprocess.run([harness.program("kafka-server-start.sh"), "-daemon", os.path.basename(settings), "--override",
                               "log.dirs=" + b.data, "--override", "reserved.broker.max.id=200000"], env=env, timeout=90,
                              cwd=b.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def test_daemon(self):
        with harness.Broker(start=False) as b:
            logs = os.path.join(b.folder, "logs")
            out = os.path.join(logs, "kafkaServer.out")
            settings = os.path.join(b.folder, "override.properties")
            with open(settings, "w") as f:
                f.write("broker.id=%d\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs=/nowhere\n" % self.NODE)
            env = dict(os.environ, LOG_DIR=logs)
            p = self.daemon(b, settings, env)
            self.assertEqual((p.returncode, p.stderr), (0, ""))

            def said(text):
                def look():
                    try:
                        with open(out) as f:
                            return text in f.read()
                    except FileNotFoundError:
                        return False
                return look
            self.assertTrue(said("[KafkaServer id=%d] started" % self.NODE)())  # it was waited for
            r = self.daemon(b, settings, env)  # by mistake: what the first one says stays
            self.assertEqual(r.returncode, 1)
            self.assertRegex(r.stderr, r"FATAL .*start refused: ")
            self.assertIn(out, r.stderr)
            self.assertTrue(said("[KafkaServer id=%d] started" % self.NODE)())
            self.assertTrue(said("start refused")())
            r = run_tool("kafka-server-stop.sh", "--node-id=%d" % (self.NODE + 100000))
            self.assertEqual((r.status, r.text), (1, "No kafka server to stop\n"))
            self.assertEqual(run_tool("kafka-server-stop.sh", "--node-id=%d" % self.NODE).status, 0)
            harness.until("stopped", said("[KafkaServer id=%d] shut down completed" % self.NODE))

    def test_mistakes_are_told_at_once(self):
        r = run_tool("kafka-server-start")
        self.assertEqual(r.status, 1)
        self.assertIn("USAGE", r.err)
        r = run_tool("kafka-server-start", "/nowhere/server.properties")
        self.assertEqual(r.status, 1)
        self.assertIn("/nowhere/server.properties", r.err)
        r = run_tool("kafka-server-start", "-daemon", "/nowhere/server.properties")
        self.assertEqual(r.status, 1)
        self.assertIn("/nowhere/server.properties", r.err)
        self.assertEqual(run_tool("kafka-server-start", "--help").status, 0)
        self.assertEqual(run_tool("kafka-server-stop", "--help").status, 0)
        self.assertEqual(run_tool("kafka-server-stop", "--nonsense").status, 1)

    def test_in_the_foreground(self):
        with harness.Broker(start=False) as b:
            p = subprocess.Popen([harness.program("kafka-server-start"), os.devnull, "--override",
                                  "listeners=PLAINTEXT://127.0.0.1:0", "--override", "log.dirs=" + b.data],
                                 stderr=subprocess.PIPE, text=True)
            try:
                for line in p.stderr:
                    if "] started" in line:
                        break
                p.send_signal(signal.SIGTERM)
                p.communicate(timeout=60)
            finally:
                p.kill()
            self.assertEqual(p.returncode, 0)


if __name__ == "__main__":
    harness.main()
