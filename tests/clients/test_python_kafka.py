"""python3-kafka against a real broker: as of the newest version it knows and as of 0.9, 0.10 and 0.11; every codec, keys,
nulls, headers, large records and batches, timestamps, offsets by time, admin calls."""
import unittest

import kafka
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
from kafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError
from kafka.structs import TopicPartition

import harness
import real_input

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
VERSIONS = ((0, 9), (0, 10), (0, 11), (2, 5, 0), None)  # None: asks the broker


class PythonKafka(harness.BrokerTest):
    OVERRIDES = {"message.max.bytes": "4194304"}

    def setUp(self):
        super().setUp()
        self.at = "127.0.0.1:%d" % self.broker.port
        self.topic = self.id().rsplit(".", 1)[1]
        self.opened = []

    def tearDown(self):
        for c in self.opened:
            c.close()
        super().tearDown()

    def keep(self, client):
        self.opened.append(client)
        return client

    def producer(self, **settings):
        return self.keep(kafka.KafkaProducer(bootstrap_servers=self.at, max_block_ms=30000, **settings))

    def consumer(self, topic, partition=0, **settings):
        c = self.keep(kafka.KafkaConsumer(bootstrap_servers=self.at, enable_auto_commit=False,
                                          auto_offset_reset="earliest", **settings))
        c.assign([TopicPartition(topic, partition)])
        return c

    def read(self, topic, n, partition=0, **settings):
        c = self.consumer(topic, partition, **settings)
        got = []
        harness.until("%d records" % n, lambda: got.extend(r for rs in c.poll(200).values() for r in rs) or len(got) >= n)
        self.assertEqual(len(got), n)
        return got

    def send_all(self, producer, topic, values, **fields):
        futures = [producer.send(topic, value=v, partition=0, **fields) for v in values]
        producer.flush(60)
        return [f.get(timeout=30) for f in futures]

    def test_every_version_and_codec(self):
        lines = real_input.text_log().splitlines()[:300]
        for version in VERSIONS:
            for codec in CODECS:
                if codec == "zstd" and version is not None and version < (2, 1):
                    continue
                topic = "%s-%s-%s" % (self.topic, "x".join(map(str, version or ("new",))), codec)
                with self.subTest(version=version, codec=codec):
                    p = self.producer(api_version=version, compression_type=codec, linger_ms=20)
                    sent = self.send_all(p, topic, lines, key=b"k")
                    self.assertEqual([m.offset for m in sent], list(range(len(lines))))
                    for reader in {version, None}:
                        got = self.read(topic, len(lines), api_version=reader)
                        self.assertEqual([r.value for r in got], lines)
                        self.assertEqual([r.offset for r in got], list(range(len(lines))))
                        self.assertEqual({r.key for r in got}, {b"k"})

    def test_binary_file_as_1_mb_records(self):
        parts = real_input.pieces(real_input.binary_file(), 1000000)
        for codec in CODECS:
            topic = "%s-%s" % (self.topic, codec)
            self.send_all(self.producer(compression_type=codec, max_request_size=4000000), topic, parts)
            got = self.read(topic, len(parts), max_partition_fetch_bytes=4000000)
            self.assertEqual(b"".join(r.value for r in got), b"".join(parts))

    def test_keys_nulls_headers_timestamps(self):
        p = self.producer()
        cases = [(b"k", b"v", [("h", b"1"), ("h", b"2")], 1600000000000), (None, b"v", [], 1600000000001),
                 (b"k", None, [("empty", b"")], 1600000000002), (b"", b"", [], 1600000000003)]
        for key, value, headers, ts in cases:
            p.send(self.topic, key=key, value=value, headers=headers, timestamp_ms=ts, partition=0).get(30)
        got = [(r.key, r.value, r.headers, r.timestamp) for r in self.read(self.topic, len(cases))]
        self.assertEqual(got, cases)

    def test_batch_of_10000(self):
        p = self.producer(batch_size=1 << 20, linger_ms=500)
        values = [b"%d" % i for i in range(10000)]
        self.send_all(p, self.topic, values)
        self.assertEqual([r.value for r in self.read(self.topic, 10000)], values)

    def test_offsets_by_time_beginning_and_end(self):
        p = self.producer()
        for i in range(10):
            p.send(self.topic, value=b"x", timestamp_ms=1600000000000 + 1000 * i, partition=0).get(30)
        c = self.consumer(self.topic)
        tp = TopicPartition(self.topic, 0)
        self.assertEqual(c.beginning_offsets([tp]), {tp: 0})
        self.assertEqual(c.end_offsets([tp]), {tp: 10})
        found = c.offsets_for_times({tp: 1600000003500})[tp]
        self.assertEqual((found.offset, found.timestamp), (4, 1600000004000))
        self.assertIsNone(c.offsets_for_times({tp: 1700000000000})[tp])
        c.seek(tp, 7)
        self.assertEqual(next(c).offset, 7)

    def test_too_large_a_record_fails_alone(self):
        p = self.producer(max_request_size=20000000)
        with self.assertRaises(kafka.errors.MessageSizeTooLargeError):
            p.send(self.topic, value=b"x" * 5000000, partition=0).get(30)
        self.assertEqual(p.send(self.topic, value=b"small", partition=0).get(30).offset, 0)

    def test_log_append_time(self):
        admin = self.keep(KafkaAdminClient(bootstrap_servers=self.at))
        admin.create_topics([NewTopic(self.topic, 1, 1, topic_configs={"message.timestamp.type": "LogAppendTime"})])
        meta = self.producer().send(self.topic, value=b"x", timestamp_ms=1000, partition=0).get(30)
        record = self.read(self.topic, 1)[0]
        self.assertGreater(record.timestamp, 1600000000000)
        self.assertEqual(record.timestamp_type, 1)
        self.assertEqual(meta.timestamp, record.timestamp)

    def test_admin(self):
        admin = self.keep(KafkaAdminClient(bootstrap_servers=self.at))
        admin.create_topics([NewTopic(self.topic, 3, 1, topic_configs={"retention.ms": "123456"})])
        with self.assertRaises(TopicAlreadyExistsError):
            admin.create_topics([NewTopic(self.topic, 3, 1)])
        self.assertIn(self.topic, admin.list_topics())
        described = admin.describe_topics([self.topic])[0]
        self.assertEqual(sorted(p["partition"] for p in described["partitions"]), [0, 1, 2])
        answer = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, self.topic)])[0]
        values = {entry[0]: entry[1] for entry in answer.resources[0][4]}
        self.assertEqual(values["retention.ms"], "123456")
        self.assertEqual(values["cleanup.policy"], "delete")
        admin.create_partitions({self.topic: NewPartitions(5)})
        harness.until("five partitions", lambda: len(admin.describe_topics([self.topic])[0]["partitions"]) == 5)
        cluster = admin.describe_cluster()
        self.assertEqual([b["node_id"] for b in cluster["brokers"]], [0])
        admin.delete_topics([self.topic])
        harness.until("topic is gone", lambda: self.topic not in admin.list_topics())
        with self.assertRaises(UnknownTopicOrPartitionError):
            admin.delete_topics([self.topic])

    def test_records_survive_clean_and_unclean_restarts(self):
        p = self.producer(acks="all", retries=20, reconnect_backoff_ms=50)
        values = [b"%d" % i for i in range(1000)]
        self.send_all(p, self.topic, values)
        self.broker.restart()
        self.at = "127.0.0.1:%d" % self.broker.port
        self.assertEqual([r.value for r in self.read(self.topic, 1000)], values)
        self.send_all(self.producer(acks="all"), self.topic, values)
        self.broker.kill()
        self.broker.start()
        self.at = "127.0.0.1:%d" % self.broker.port
        self.assertEqual([r.value for r in self.read(self.topic, 2000)], values + values)


if __name__ == "__main__":
    unittest.main()
