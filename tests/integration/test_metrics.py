"""The metrics endpoint of one broker: numbers against what was done, and names against docs/metrics.md."""
import os
import re
import socket
import unittest

import groupwire
import harness
import kwire
import metricspage
from harness import until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRAFFIC = "kafka_server_brokertopicmetrics_"
REQUESTS = "kafka_network_requestmetrics_"


class Metrics(harness.BrokerTest):
    OVERRIDES = {"metrics.http.listener": "127.0.0.1:0", "auto.create.topics.enable": "false",
                 "offsets.topic.num.partitions": "1", **groupwire.OVERRIDES}

    def setUp(self):
        self.conn = kwire.Conn(self.broker.port)
        self.topic = self.id().rsplit(".", 1)[1]

    def tearDown(self):
        self.conn.close()

    def ask(self, **args):
        return metricspage.ask(metricspage.port(self.broker), **args)

    def page(self):
        return metricspage.read(self.broker)

    def produce(self, records=1, size=100, topic=None, version=9):
        batch = kwire.simple_batch(*[b"x" * size] * records)
        answer = self.conn.call("Produce", version, **kwire.produce_request([(topic or self.topic, 0, batch)], acks=1))
        return len(batch), answer

    def test_traffic(self):
        kwire.create_topic(self.conn, self.topic, 2)
        before = self.page()
        sent = sum(self.produce(records=3)[0] for _ in range(5))
        self.produce(topic="not-there")
        got = self.conn.call("Fetch", 11, **kwire.fetch_request(11, [(self.topic, 0, 0)]))
        now = self.page()

        def grown(name, **labels):
            return now.get(name, 0, **labels) - before.get(name, 0, **labels)
        for labels in {}, {"topic": self.topic}:
            self.assertEqual(grown(TRAFFIC + "messagesin_total", **labels), 15)
            self.assertEqual(grown(TRAFFIC + "bytesin_total", **labels), sent)
            self.assertEqual(grown(TRAFFIC + "bytesout_total", **labels), sent)
            self.assertEqual(grown(TRAFFIC + "totalproducerequests_total", **labels), 5)
            self.assertEqual(grown(TRAFFIC + "totalfetchrequests_total", **labels), 1)
            self.assertEqual(grown(TRAFFIC + "failedproducerequests_total", **labels), 0)
        self.assertIsNotNone(got)
        self.assertEqual(grown(REQUESTS + "requests_total", request="Produce", version=9), 6)
        self.assertEqual(grown(REQUESTS + "requests_total", request="Fetch", version=11), 1)
        self.assertEqual(grown(REQUESTS + "errors_total", request="Produce", error="NONE"), 5)
        self.assertEqual(grown(REQUESTS + "errors_total", request="Produce", error="UNKNOWN_TOPIC_OR_PARTITION"), 1)
        for kind, n in ("Produce", 6), ("Fetch", 1), ("FetchConsumer", 1), ("FetchFollower", 0):
            for what in "totaltimems", "localtimems", "remotetimems", "requestbytes", "throttletimems":
                self.assertEqual(grown(REQUESTS + what + "_count", request=kind), n, (kind, what))
        self.assertGreater(grown(REQUESTS + "requestbytes_sum", request="Produce"), sent)
        self.assertGreater(now.get(REQUESTS + "totaltimems_sum", request="Produce"), 0)
        self.assertGreaterEqual(now.get(REQUESTS + "totaltimems", request="Produce", quantile="0.99"), 0)
        for what, n in ("size", sent), ("logendoffset", 15), ("logstartoffset", 0), ("numlogsegments", 1):
            self.assertEqual(now.get("kafka_log_log_" + what, topic=self.topic, partition=0), n)
        self.assertEqual(now.get("kafka_cluster_partition_insyncreplicascount", topic=self.topic, partition=1), 1)

    def test_too_large_is_rejected_bytes(self):
        kwire.create_topic(self.conn, self.topic, 1, configs={"max.message.bytes": "1000"})
        n, _ = self.produce(size=2000)
        page = self.page()
        self.assertEqual(page.get(TRAFFIC + "bytesrejected_total", topic=self.topic), n)
        self.assertIsNone(page.get(TRAFFIC + "messagesin_total", topic=self.topic))

    def test_a_wait_is_remote_time(self):
        kwire.create_topic(self.conn, self.topic, 1)
        before = self.page()
        self.conn.call("Fetch", 11, **kwire.fetch_request(11, [(self.topic, 0, 0)], max_wait_ms=200, min_bytes=1))
        after = self.page()

        def grown(what):
            name = REQUESTS + what + "_sum"
            return after.get(name, request="FetchConsumer") - before.get(name, 0, request="FetchConsumer")
        self.assertGreaterEqual(grown("totaltimems"), 200)
        self.assertGreater(grown("remotetimems"), 0)
        self.assertAlmostEqual(grown("totaltimems"), grown("localtimems") + grown("remotetimems"), delta=1)

    def test_a_deleted_topic_leaves(self):
        kwire.create_topic(self.conn, self.topic, 3)
        self.produce()
        before = self.page()
        self.assertEqual(before.get(TRAFFIC + "messagesin_total", topic=self.topic), 1)
        self.conn.call("DeleteTopics", 3, topic_names=[self.topic], timeout_ms=30000)
        until("the topic's metrics to go", lambda: self.topic not in self.ask()[2])
        self.assertGreaterEqual(self.page().get(TRAFFIC + "messagesin_total"), 1)

    def test_the_broker(self):
        kwire.create_topic(self.conn, self.topic, 4)
        p = self.page()
        replica, controller = "kafka_server_replicamanager_", "kafka_controller_kafkacontroller_"
        self.assertGreaterEqual(p.get(replica + "leadercount"), 4)
        self.assertEqual(p.get(replica + "leadercount"), p.get(replica + "partitioncount"))
        for healthy in "underreplicatedpartitions", "underminisrpartitioncount", "offlinereplicacount":
            self.assertEqual(p.get(replica + healthy), 0)
        self.assertEqual(p.get(controller + "activecontrollercount"), 1)
        self.assertEqual(p.get(controller + "offlinepartitionscount"), 0)
        until("the partitions here to be the cluster's",  # another test's topic may still be leaving
              lambda: (lambda q: q.get(controller + "globalpartitioncount") == q.get(replica + "partitioncount"))(self.page()))
        self.assertEqual(p.get(controller + "activebrokercount"), 1)
        self.assertEqual(p.get("kafka_log_logmanager_offlinelogdirectorycount"), 0)
        self.assertGreaterEqual(sum(v for k, v in p.samples.items() if k[0] == "kafka_server_socket_server_metrics_connection_count"), 1)
        self.assertGreater(p.get("process_resident_memory_bytes"), 1 << 20)
        self.assertGreater(p.get("process_open_fds"), 3)
        self.assertGreater(p.get("process_start_time_seconds"), 1e9)
        self.assertGreater(p.get("process_cpu_seconds_total"), 0)

    def test_groups(self):
        kwire.create_topic(self.conn, self.topic, 3)
        state = "kafka_coordinator_group_groupmetadatamanager_numgroups"
        conns = groupwire.connect(self.broker, 2)
        try:
            groupwire.coordinator(self.conn, "at-work")
            groupwire.stable(conns, "at-work")
            groupwire.commit(self.conn, "keeps-offsets", self.topic, {0: 5, 2: 7})
            p = self.page()
        finally:
            for c in conns:
                c.close()
        self.assertEqual(p.get(state), 2)
        self.assertEqual(p.get(state + "stable"), 1)
        self.assertEqual(p.get(state + "empty"), 1)
        self.assertEqual(p.get(state + "preparingrebalance"), 0)
        self.assertEqual(p.get("kafka_coordinator_group_groupmetadatamanager_numoffsets"), 2)

    def test_every_metric_is_documented_and_none_is_missing(self):
        with open(os.path.join(ROOT, "docs/metrics.md"), encoding="utf-8") as f:
            rows = re.findall(r"^\| `([a-z0-9_]+)` \| (counter|gauge|summary) \|", f.read(), re.M)
        self.assertEqual(len(rows), len(dict(rows)))
        self.assertEqual(dict(rows), self.page().types)

    def test_statuses(self):
        self.assertEqual(self.ask(path="/health")[::2], (200, "ok\n"))
        self.assertEqual(self.ask(path="/nothing")[0], 404)
        self.assertEqual(self.ask(method="PUT")[0], 405)
        self.assertEqual(self.ask(method="HEAD")[::2], (200, ""))
        with socket.create_connection(("127.0.0.1", metricspage.port(self.broker)), harness.DEADLINE) as s:
            s.sendall(b"\x00" * 100)
            self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 400 "))


    def test_bad_clients_hurt_nobody(self):
        """Three times as many as may be connected, each with half a request or with what is none."""
        kwire.create_topic(self.conn, self.topic, 1)
        port = metricspage.port(self.broker)
        held = []
        try:
            for i in range(48):
                s = socket.create_connection(("127.0.0.1", port), harness.DEADLINE)
                s.sendall((b"GET /metr", b"GET /metrics HTTP/1.1\r\nHost: a\r\n", b"")[i % 3])
                held.append(s)
            for garbage in b"\x16\x03\x01\x02\x00" * 400, b"A" * 100000, b"\r\n" * 5000:
                with socket.create_connection(("127.0.0.1", port), harness.DEADLINE) as s:
                    try:
                        s.sendall(garbage)
                        while s.recv(4096):
                            pass
                    except ConnectionError:
                        pass
            self.produce()
            self.assertEqual(self.page().get(TRAFFIC + "messagesin_total", topic=self.topic), 1)
        finally:
            for s in held:
                s.close()
        self.assertEqual(self.ask(path="/health")[0], 200)


class Off(harness.BrokerTest):
    def test_without_the_setting_nothing_listens(self):
        self.assertFalse(self.broker.has_line("serving http"))


if __name__ == "__main__":
    unittest.main()
