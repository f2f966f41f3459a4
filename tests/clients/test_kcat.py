"""kcat (librdkafka) against a real broker: every codec, keys, nulls, headers, large records, timestamps, offsets by
time. What comes back is compared byte for byte."""
import json
import os
import subprocess
import tempfile
import unittest

import harness
import real_input

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def sent_lines(data):
    """What kcat makes of a text: a record a line, but none of an empty line."""
    return b"".join(line for line in data.splitlines(True) if line != b"\n")


def kcat(broker, *args, input=None, deadline=60):
    p = subprocess.run(["kcat", "-b", broker, *args], input=input, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       stdin=None if input is not None else subprocess.DEVNULL, timeout=deadline)
    if p.returncode != 0:
        raise AssertionError("kcat %s: status %d\n%s" % (" ".join(args), p.returncode, p.stderr.decode("utf-8", "replace")))
    return p.stdout


class Kcat(harness.BrokerTest):
    OVERRIDES = {"message.max.bytes": "4194304"}

    def setUp(self):
        super().setUp()
        self.at = "127.0.0.1:%d" % self.broker.port
        self.topic = self.id().rsplit(".", 1)[1]

    def consume_json(self, *args):
        out = kcat(self.at, "-C", "-t", self.topic, "-e", "-q", "-J", *args)
        return [json.loads(line) for line in out.decode("utf-8", "surrogateescape").splitlines()]

    def test_metadata_lists_the_broker_and_topics(self):
        kcat(self.at, "-P", "-t", self.topic, input=b"x\n")
        m = json.loads(kcat(self.at, "-L", "-J"))
        self.assertEqual([b["name"] for b in m["brokers"]], [self.at])
        self.assertIn(self.topic, [t["topic"] for t in m["topics"]])

    def test_text_log_with_every_codec(self):
        data = real_input.text_log()
        for codec in CODECS:
            topic = "%s-%s" % (self.topic, codec)
            kcat(self.at, "-P", "-t", topic, "-z", codec, "-p", "0", input=data)
            back = kcat(self.at, "-C", "-t", topic, "-p", "0", "-e", "-q", "-o", "beginning")
            self.assertEqual(back, sent_lines(data), codec)

    def test_binary_file_as_records_of_1_mb_with_every_codec(self):
        data = real_input.binary_file()
        with tempfile.TemporaryDirectory() as folder:
            parts = real_input.pieces(data, 1000000)
            names = []
            for i, piece in enumerate(parts):
                names.append(os.path.join(folder, "part%03d" % i))
                with open(names[-1], "wb") as f:
                    f.write(piece)
            for codec in CODECS:
                topic = "%s-%s" % (self.topic, codec)
                kcat(self.at, "-P", "-t", topic, "-p", "0", "-z", codec, "-X", "message.max.bytes=4000000", *names)
                # -f %s without a separator: the values one after the other
                back = kcat(self.at, "-C", "-t", topic, "-p", "0", "-e", "-q", "-f", "%s", "-X", "fetch.message.max.bytes=4000000")
                self.assertEqual(back, data, codec)

    def test_keys_nulls_and_headers(self):
        kcat(self.at, "-P", "-t", self.topic, "-p", "0", "-K", ":", "-H", "a=1", "-H", "b=two", input=b"k1:v1\n:v2\n")
        kcat(self.at, "-P", "-t", self.topic, "-p", "0", "-K", ":", "-Z", input=b"k3:\n:v4\n")
        got = self.consume_json()
        self.assertEqual([(m["key"], m["payload"]) for m in got],
                         [("k1", "v1"), ("", "v2"), ("k3", None), (None, "v4")])
        self.assertEqual(got[0]["headers"], ["a", "1", "b", "two"])
        self.assertEqual([m["offset"] for m in got], [0, 1, 2, 3])

    def test_one_batch_of_10000(self):
        lines = b"".join(b"record %d\n" % i for i in range(10000))
        kcat(self.at, "-P", "-t", self.topic, "-p", "0", "-X", "linger.ms=2000", "-X", "batch.num.messages=10000",
             "-X", "queue.buffering.max.messages=100000", input=lines)
        self.assertEqual(kcat(self.at, "-C", "-t", self.topic, "-e", "-q"), lines)

    def test_idempotent_and_all_acks(self):
        for props in (["acks=0"], ["acks=1"], ["acks=all"], ["enable.idempotence=true"]):
            topic = "%s-%s" % (self.topic, props[0].replace("=", "-"))
            kcat(self.at, "-L", "-t", topic)  # creates it: with acks=0 nothing would tell of a leader that is missing
            harness.until("a leader", lambda: b" leader 0" in kcat(self.at, "-L", "-t", topic))
            kcat(self.at, "-P", "-t", topic, "-p", "0", *[a for p in props for a in ("-X", p)], input=b"a\nb\nc\n")
            harness.until("three records", lambda: kcat(self.at, "-C", "-t", topic, "-e", "-q") == b"a\nb\nc\n")

    def test_offsets_by_time_and_from_the_end(self):
        kcat(self.at, "-P", "-t", self.topic, "-p", "0", input=b"a\nb\nc\n")
        got = self.consume_json("-p", "0")
        self.assertTrue(all(m["ts"] > 1600000000000 and m["tstype"] == "create" for m in got))
        by_time = kcat(self.at, "-Q", "-t", "%s:0:%d" % (self.topic, got[0]["ts"]))
        self.assertIn(b"offset 0", by_time)
        after = kcat(self.at, "-Q", "-t", "%s:0:%d" % (self.topic, got[-1]["ts"] + 86400000))
        self.assertRegex(after, rb"offset (-1|3)\b")
        self.assertEqual(kcat(self.at, "-C", "-t", self.topic, "-p", "0", "-o", "-2", "-e", "-q"), b"b\nc\n")
        self.assertEqual(kcat(self.at, "-C", "-t", self.topic, "-p", "0", "-o", "1", "-c", "1", "-q"), b"b\n")

    def test_old_protocol_versions(self):
        """librdkafka told to speak as of an older broker: message formats 0 and 1 go in, and come out again."""
        for version in ("0.9.0.0", "0.10.0.0", "0.11.0.0", "1.0.0"):
            for codec in ("none", "gzip", "snappy", "lz4"):
                topic = "%s-%s-%s" % (self.topic, version, codec)
                old = ["-X", "broker.version.fallback=" + version, "-X", "api.version.request=false"]
                kcat(self.at, "-P", "-t", topic, "-p", "0", "-z", codec, "-K", ":", *old, input=b"k:one\nk:two\nk:three\n")
                for reader in (old, []):
                    back = kcat(self.at, "-C", "-t", topic, "-p", "0", "-e", "-q", "-K", ":", *reader)
                    self.assertEqual(back, b"k:one\nk:two\nk:three\n", (version, codec, reader))

    def test_records_survive_a_kill(self):
        data = real_input.text_log()
        kcat(self.at, "-P", "-t", self.topic, "-p", "0", "-X", "acks=all", input=data)
        self.broker.kill()
        self.broker.start()
        at = "127.0.0.1:%d" % self.broker.port
        self.assertEqual(kcat(at, "-C", "-t", self.topic, "-p", "0", "-e", "-q"), sent_lines(data))


if __name__ == "__main__":
    unittest.main()
