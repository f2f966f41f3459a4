"""kafka-console-producer and kafka-console-consumer against a broker, alone and chained as people do."""
import os
import pty
import random
import select
import socket
import signal
import subprocess
import time
import unittest

import harness
import kwire
from tool_test import ToolTest, run_tool


class ConsoleTest(ToolTest):
    def produce(self, topic, text, *args, **kw):
        return self.tool("kafka-console-producer", "--topic", topic, *args, input=text, **kw)

    def consume(self, topic, count, *args, **kw):
        return self.tool("kafka-console-consumer", "--topic", topic, "--from-beginning", "--max-messages", count,
                         "--timeout-ms", 20000, *args, **kw)

    # -- bytes

    def test_bytes_come_back_as_they_were(self):
        t = self.topic()
        rng = random.Random(7)
        lines = [b"", b"plain", b"ends with cr\r", "Grüße ☃".encode(), bytes(range(10)) + bytes(range(11, 256)),
                 b"\0\0", b"x" * 300000, b" \t "]
        lines += [bytes(rng.choice(b"abc \xff\0\r") for _ in range(rng.randrange(2000))) for _ in range(200)]
        text = b"\n".join(lines) + b"\n"
        self.produce(t, text)
        r = self.consume(t, len(lines))
        self.assertEqual(r.out, text)
        self.assertEqual(r.err, "Processed a total of %d messages\n" % len(lines))

    def test_a_topic_that_is_made_on_the_way_is_told(self):
        t = self.topic()
        r = self.tool("kafka-console-producer", "--topic", t, input="a\n")
        self.assertRegex(r.err, r"^\[.*\] WARN topic %s does not exist: it is made now.*\n$" % t)
        self.assertEqual(self.broker.count_lines(r"\[AutoTopicCreation\] created %s with 1 partitions" % t), 1)
        self.assertEqual(self.tool("kafka-console-producer", "--topic", t, input="a\n").err, "")

    def test_a_topic_of_an_illegal_name_is_told_once(self):
        r = self.tool("kafka-console-producer", "--topic", "bad/topic", input="x\n")
        self.assertEqual(r.err.count("bad/topic"), 2, r.err)  # the record's topic, the reason's
        self.assertEqual(len(r.err.splitlines()), 1, r.err)
        self.assertIn("INVALID_TOPIC_EXCEPTION", r.err)
        self.assertNotIn("60000", r.err)

    def test_a_last_line_needs_no_end(self):
        t = self.topic()
        self.produce(t, b"one\ntwo")
        self.assertEqual(self.consume(t, 2).out, b"one\ntwo\n")

    def test_nothing_in_nothing_out(self):
        t = self.topic()
        self.create(t)
        self.assertEqual(self.produce(t, b"").out, b"")
        r = self.tool("kafka-console-consumer", "--topic", t, "--from-beginning", "--timeout-ms", 200)
        self.assertEqual(r.out, b"")
        self.assertIn("ERROR", r.err)
        self.assertIn("Processed a total of 0 messages", r.err)

    def test_a_real_file_through_a_pipe(self):
        t = self.topic()
        path = os.path.join(harness.ROOT, "LICENSE")
        self.shell("cat '%s' | kafka-console-producer --bootstrap-server $S --topic %s" % (path, t))
        r = self.shell("kafka-console-consumer --bootstrap-server $S --topic %s --from-beginning --max-messages "
                       "$(wc -l <'%s') | cmp - '%s'" % (t, path, path))
        self.assertEqual(r.out, b"")

    def test_every_codec(self):
        for codec in ["none", "gzip", "snappy", "lz4", "zstd"]:
            t = self.topic(codec)
            self.produce(t, "a\nb\n", "--compression-codec", codec)
            self.assertEqual(self.consume(t, 2).out, b"a\nb\n")
        t = self.topic("bare")
        self.produce(t, "a\n", "--compression-codec")  # gzip
        self.assertEqual(self.consume(t, 1).out, b"a\n")

    # -- keys, headers, nulls

    def test_keys_and_headers(self):
        t = self.topic()
        self.produce(t, "h1:v1,h2:v2\tk1\thello\nNULL\tNULL\tNULL\nh:NULL\tk\t\n", "--property", "parse.key=true",
                     "--property", "parse.headers=true", "--property", "null.marker=NULL")
        r = self.consume(t, 3, "--property", "print.key=true", "--property", "print.headers=true",
                         "--property", "print.offset=true", "--property", "print.partition=true")
        self.assertEqual(r.lines, ["Partition:0\tOffset:0\th1:v1,h2:v2\tk1\thello",
                                   "Partition:0\tOffset:1\tNO_HEADERS\tnull\tnull",
                                   "Partition:0\tOffset:2\th:null\tk\t"])
        r = self.consume(t, 1, "--property", "print.timestamp=true", "--property", "print.value=false")
        self.assertRegex(r.text, r"^CreateTime:\d{13}\n$")
        r = self.consume(t, 2, "--property", "print.key=true", "--property", "key.separator=<>", "--property",
                         "line.separator=|", "--property", "null.literal=~")
        self.assertEqual(r.out, b"k1<>hello|~<>~|")

    def test_own_separators(self):
        t = self.topic()
        self.produce(t, "a=1;b=2|key->value->more\n", "--property", "parse.key=true", "--property", "parse.headers=true",
                     "--property", "key.separator=->", "--property", "headers.delimiter=|", "--property",
                     "headers.separator=;", "--property", "headers.key.separator==")
        r = self.consume(t, 1, "--property", "print.key=true", "--property", "print.headers=true")
        self.assertEqual(r.out, b"a:1,b:2\tkey\tvalue->more\n")

    def test_same_keys_same_partition(self):
        t = self.topic()
        self.create(t, 5)
        self.produce(t, "".join("k%d:%d\n" % (i % 3, i) for i in range(30)), "--property", "parse.key=true",
                     "--property", "key.separator=:")
        r = self.consume(t, 30, "--property", "print.key=true", "--property", "print.partition=true")
        where = {}
        for line in r.lines:
            partition, key, _ = line.split("\t")
            where.setdefault(key, set()).add(partition)
        self.assertEqual(sorted(where), ["k0", "k1", "k2"])
        self.assertTrue(all(len(p) == 1 for p in where.values()))

    def test_a_line_without_its_separator(self):
        t = self.topic()
        r = self.produce(t, "k\tv\nno key\n", "--property", "parse.key=true", status=1)
        self.assertIn("No key separator found on line number 2: 'no key'", r.err)
        self.produce(t, "no key\n", "--property", "parse.key=true", "--property", "ignore.error=true")
        r = self.consume(t, 2, "--property", "print.key=true")
        self.assertEqual(r.lines, ["k\tv", "null\tno key"])
        for bad in ["key.separator=", "null.marker=\t"]:
            r = self.produce(t, "", "--property", "parse.key=true", "--property", bad, status=1)
            self.assertIn(bad.split("=")[0], r.err)

    def test_reader_and_formatter_files(self):
        t = self.topic()
        path = os.path.join(self.broker.folder, "console.properties")
        with open(path, "w") as f:
            f.write("parse.key=true\nkey.separator=:\nprint.key=true\n")
        self.produce(t, "a:1\n", "--reader-config", path)
        self.assertEqual(self.consume(t, 1, "--formatter-config", path).out, b"a:1\n")
        self.assertEqual(self.consume(t, 1, "--formatter-config", path, "--property", "key.separator=/").out, b"a/1\n")

    def test_numbers_by_deserializer(self):
        t = self.topic()
        self.produce(t, (5 << 40 | 1 << 16 | 0xff).to_bytes(8, "big") + b"\n" + b"short\n")
        r = self.consume(t, 1, "--value-deserializer", "org.apache.kafka.common.serialization.LongDeserializer")
        self.assertEqual(r.out, b"%d\n" % (5 << 40 | 1 << 16 | 0xff))
        r = self.consume(t, 2, "--property", "value.deserializer=LongDeserializer", status=1)
        self.assertIn("terminating consumer process", r.err)
        r = self.consume(t, 2, "--property", "value.deserializer=LongDeserializer", "--skip-message-on-error")
        self.assertIn("skipping this message", r.err)

    def test_formatters(self):
        t = self.topic()
        self.produce(t, "x\n")
        self.assertEqual(self.consume(t, 1, "--formatter", "org.apache.kafka.tools.consumer.NoOpMessageFormatter").out, b"")
        self.assertEqual(self.consume(t, 1, "--formatter", "kafka.tools.DefaultMessageFormatter").out, b"x\n")
        self.assertIn("no such formatter", self.consume(t, 1, "--formatter", "my.Own", status=1).err)

    # -- where to begin

    def test_partitions_and_offsets(self):
        t = self.topic()
        self.create(t, 2)
        self.produce(t, "".join("%d\n" % i for i in range(10)), "--property", "parse.key=false")
        both = self.consume(t, 10).lines
        self.assertEqual(sorted(both), sorted(str(i) for i in range(10)))
        ends = [int(line.split(":")[2]) for line in self.tool("kafka-get-offsets", "--topic", t).lines]
        self.assertEqual(sum(ends), 10)
        full = 0 if ends[0] else 1
        one = self.tool("kafka-console-consumer", "--topic", t, "--partition", full, "--offset", "earliest",
                        "--max-messages", ends[full], "--timeout-ms", 20000).lines
        self.assertEqual(len(one), ends[full])
        from_last = self.tool("kafka-console-consumer", "--topic", t, "--partition", full, "--offset", ends[full] - 1,
                              "--max-messages", 1, "--timeout-ms", 20000).lines
        self.assertEqual(from_last, one[-1:])
        latest = self.tool("kafka-console-consumer", "--topic", t, "--partition", full, "--timeout-ms", 200)
        self.assertEqual(latest.out, b"")
        r = self.tool("kafka-console-consumer", "--topic", t, "--partition", 7, "--timeout-ms", 200, status=1)
        self.assertIn("partitions 0 to 1", r.err)

    def test_by_pattern(self):
        t = self.topic()
        for name in ["a1", "a2", "b"]:
            self.produce(t + name, name + "\n")
        r = self.tool("kafka-console-consumer", "--include", t + "a[0-9]", "--from-beginning", "--max-messages", 2,
                      "--timeout-ms", 20000)
        self.assertEqual(sorted(r.lines), ["a1", "a2"])
        r = self.tool("kafka-console-consumer", "--whitelist", t + "b", "--from-beginning", "--max-messages", 1,
                      "--timeout-ms", 20000)
        self.assertEqual(r.lines, ["b"])

    # -- groups

    def test_a_group_goes_on_where_it_was(self):
        t = self.topic()
        self.create(t, 2)
        self.produce(t, "".join("%d\n" % i for i in range(40)), "--batch-size", 1)
        got = []
        for n in (3, 17, 20):
            r = self.tool("kafka-console-consumer", "--topic", t, "--group", "g-" + t, "--from-beginning", "--max-messages", n,
                          "--timeout-ms", 20000)
            self.assertEqual(len(r.lines), n)
            got += r.lines
        self.assertEqual(sorted(got, key=int), [str(i) for i in range(40)])  # none twice, none left out
        # the group may be named in several places, alike
        r = self.tool("kafka-console-consumer", "--topic", t, "--consumer-property", "group.id=g-" + t, "--group", "g-" + t,
                      "--from-beginning", "--timeout-ms", 1000)
        self.assertEqual(r.out, b"")
        r = self.tool("kafka-console-consumer", "--topic", t, "--group", "other", "--consumer-property", "group.id=g-" + t,
                      status=1)
        self.assertIn("do not match", r.err)
        r = self.tool("kafka-console-consumer", "--topic", t, "--partition", 0, "--consumer-property", "group.id=g", status=1)
        self.assertIn("group and partition", r.err)

    def test_a_group_of_its_own_by_default(self):
        t = self.topic()
        self.produce(t, "1\n")
        p = subprocess.Popen([harness.program("kafka-console-consumer"), "--bootstrap-server", self.broker.address, "--topic", t,
                              "--from-beginning"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            self.assertEqual(p.stdout.readline(), b"1\n")
            with kwire.Conn(self.broker.port) as c:
                groups = [g["group_id"] for g in c.call("ListGroups", 4, states_filter=["Stable"])["groups"]]
            self.assertEqual(len(groups), 1)
            self.assertRegex(groups[0], r"^console-consumer-\d{1,5}$")
            p.send_signal(signal.SIGINT)
            p.communicate(timeout=60)
        finally:
            p.kill()
        with kwire.Conn(self.broker.port) as c:  # it has left, and committed nothing
            self.assertEqual(c.call("ListGroups", 4, states_filter=["Stable"])["groups"], [])

    def test_internal_topics_by_pattern(self):
        r = self.tool("kafka-console-consumer", "--include", "__consumer_.*", "--from-beginning", "--timeout-ms", 500)
        self.assertEqual(r.out, b"")
        t = self.topic()
        self.produce(t, "1\n")
        self.tool("kafka-console-consumer", "--topic", t, "--group", "g-" + t, "--from-beginning", "--max-messages", 1)
        r = self.tool("kafka-console-consumer", "--include", "__consumer_.*", "--consumer-property",
                      "exclude.internal.topics=false", "--formatter",
                      "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter", "--from-beginning",
                      "--timeout-ms", 5000)
        self.assertIn("[g-%s,%s,0]::OffsetAndMetadata(offset=1," % (t, t), r.text)

    def test_lists_of_patterns(self):
        t = self.topic()
        for name in ["a", "b", "cc"]:
            self.produce(t + name, name + "\n")
        r = self.tool("kafka-console-consumer", "--include", "%sa,%sc{1,2}" % (t, t), "--from-beginning", "--max-messages", 2,
                      "--timeout-ms", 20000)
        self.assertEqual(sorted(r.lines), ["a", "cc"])
        r = self.tool("kafka-console-consumer", "--include", "(", status=1)
        self.assertIn("(", r.err)

    def test_waits_for_a_topic_and_reads_it(self):
        t = self.topic()
        reader = subprocess.Popen([harness.program("kafka-console-consumer"), "--bootstrap-server", self.broker.address,
                                   "--topic", t, "--from-beginning", "--max-messages", "2"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            self.produce(t, "one\ntwo\n")
            out, _ = reader.communicate(timeout=60)
        finally:
            reader.kill()
        self.assertEqual((reader.returncode, out), (0, b"one\ntwo\n"))

    # -- ends

    def test_a_reader_that_goes_away(self):
        t = self.topic()
        self.produce(t, b"".join(b"%d\n" % i for i in range(20000)))
        r = self.shell("kafka-console-consumer --bootstrap-server $S --topic %s --from-beginning | head -3" % t)
        self.assertEqual(r.lines, ["0", "1", "2"])
        self.assertIn("Unable to write to standard out, closing consumer.", r.err)
        r = self.shell("set -o pipefail; kafka-topics --bootstrap-server $S --describe | head -1 | wc -l")
        self.assertEqual(r.lines, ["1"])
        r = self.shell("kafka-console-consumer --bootstrap-server $S --topic %s --from-beginning --max-messages 20000 "
                       ">/dev/full" % t, status=1)
        self.assertIn("No space left", r.err)

    def test_a_reader_that_goes_away_while_nothing_comes(self):
        t = self.topic()
        self.produce(t, "1\n2\n3\n")
        r = self.shell("kafka-console-consumer --bootstrap-server $S --topic %s --from-beginning | head -1" % t)
        self.assertEqual(r.lines, ["1"])
        self.assertIn("Unable to write to standard out, closing consumer.", r.err)
        r = self.shell("kafka-console-consumer --bootstrap-server $S --topic %s | true" % t)
        self.assertIn("Unable to write to standard out, closing consumer.", r.err)

    def test_closed_descriptors(self):
        t = self.topic()
        self.produce(t, "1\n")
        r = self.shell("kafka-console-consumer --bootstrap-server $S --topic %s --from-beginning --max-messages 1 >&-" % t,
                       status=1)
        self.assertIn("writing to standard output: Bad file descriptor", r.err)
        self.shell("kafka-topics --bootstrap-server $S --list 2>&- <&-")

    def test_interrupts(self):
        t = self.topic()
        self.produce(t, "one\n")
        for sig in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
            p = subprocess.Popen([harness.program("kafka-console-consumer"), "--bootstrap-server", self.broker.address,
                                  "--topic", t, "--from-beginning"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                self.assertEqual(p.stdout.readline(), b"one\n")
                p.send_signal(sig)
                out, err = p.communicate(timeout=60)
            finally:
                p.kill()
            self.assertEqual((p.returncode, out), (0, b""))
            self.assertIn(b"Processed a total of 1 messages", err)

    def test_interrupted_producers_do_not_wait_for_a_silent_broker(self):
        """One that takes connections and never answers: what is left to send has no end to wait for."""
        more = ["--max-block-ms", "100000000"]
        for name, args in (("kafka-console-producer", more), ("kafka-console-producer", more + ["--sync"]),
                           ("kafka-verifiable-producer", []), ("kafka-producer-perf-test", None)):
            with socket.socket() as hole:
                hole.bind(("127.0.0.1", 0))
                hole.listen(20)
                address = "127.0.0.1:%d" % hole.getsockname()[1]
                if args is None:
                    args = ["--num-records", "10", "--record-size", "10", "--throughput", "-1", "--producer-props",
                            "bootstrap.servers=" + address, "max.block.ms=100000000"]
                else:
                    args = args + ["--bootstrap-server", address]
                p = subprocess.Popen([harness.program(name), "--topic", "t"] + args, stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                try:
                    p.stdin.write(b"one\n")
                    p.stdin.flush()
                    connected = hole.accept()[0]
                    p.send_signal(signal.SIGINT)
                    _, err = p.communicate(timeout=60)
                finally:
                    p.kill()
                    p.wait()
                connected.close()
                self.assertEqual(p.returncode, 130, name)
                self.assertIn(b"interrupted, and nothing has been heard", err)

    def test_help_and_version_that_nobody_can_read(self):
        for name in sorted(os.listdir(harness.bin_dir())):
            path = os.path.join(harness.bin_dir(), name)
            if not os.path.isfile(path) or not os.access(path, os.X_OK) or name.startswith("lib"):
                continue
            for flag in ("--help", "--version") if name != "kafka-server-stop" else ("--help",):
                with open("/dev/full", "wb") as full:
                    p = subprocess.run([path, flag], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(p.returncode, 1, (name, flag, p.stderr))

    def test_an_interrupted_producer_leaves_half_a_line_out(self):
        t = self.topic()
        self.create(t)
        p = subprocess.Popen([harness.program("kafka-console-producer"), "--bootstrap-server", self.broker.address,
                              "--topic", t, "--timeout", "0"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            p.stdin.write(b"one\ntwo\nhalf a li")
            p.stdin.flush()
            harness.until("the lines are there",
                          lambda: self.tool("kafka-get-offsets", "--topic", t).lines == [t + ":0:2"])
            p.send_signal(signal.SIGINT)
            self.assertEqual(p.wait(60), 130)
        finally:
            p.kill()
            p.communicate()
        self.assertEqual(self.consume(t, 2).out, b"one\ntwo\n")
        self.assertEqual(self.tool("kafka-get-offsets", "--topic", t).lines, [t + ":0:2"])

    def test_on_a_terminal(self):
        t = self.topic()
        self.create(t)
        master, slave = pty.openpty()
        p = subprocess.Popen([harness.program("kafka-console-producer"), "--bootstrap-server", self.broker.address,
                              "--topic", t], stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        try:
            self.read_until(master, b">")
            os.write(master, b"typed\n")
            self.read_until(master, b">")
            os.write(master, b"\x04")  # end of input
            self.assertEqual(p.wait(60), 0)
        finally:
            p.kill()
            os.close(master)
        self.assertEqual(self.consume(t, 1).out, b"typed\n")

    def test_long_work_shows_how_far_it_is(self):
        """On a terminal only, and only after some seconds."""
        t = self.topic()
        self.create(t)
        master, slave = pty.openpty()
        p = subprocess.Popen([harness.program("kafka-console-producer"), "--bootstrap-server", self.broker.address,
                              "--topic", t], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=slave)
        os.close(slave)
        got, end, n = b"", time.monotonic() + harness.DEADLINE, 0
        try:
            while b"records/s" not in got:
                self.assertGreater(end, time.monotonic(), got)
                p.stdin.write(b"line\n")
                p.stdin.flush()
                n += 1
                if select.select([master], [], [], 0.02)[0]:
                    got += os.read(master, 4096)
            self.assertRegex(got, rb"^\r[0-9]+ records, [0-9]+ records/s")
            p.stdin.close()
            self.assertEqual(p.wait(60), 0)
        finally:
            p.kill()
            os.close(master)
        self.assertEqual(self.tool("kafka-get-offsets", "--topic", t).lines, ["%s:0:%d" % (t, n)])

    def read_until(self, fd, mark):
        got, end = b"", time.monotonic() + harness.DEADLINE
        while not got.endswith(mark):
            self.assertGreater(end, time.monotonic(), got)
            if select.select([fd], [], [], 0.1)[0]:
                got += os.read(fd, 4096)
        return got

    # -- failures

    def test_failed_sends(self):
        t = self.topic()
        self.create(t, 1, "--config", "max.message.bytes=200")
        r = self.produce(t, b"small\n" + b"x" * 1000 + b"\nlast\n", "--timeout", 0)
        self.assertIn("ERROR Error when sending message to topic %s" % t, r.err)
        self.assertEqual(self.consume(t, 2).lines, ["small", "last"])
        r = self.produce(t, b"y" * 1000 + b"\nnever\n", "--sync", status=1)
        self.assertIn("ERROR", r.err)
        self.assertEqual(self.tool("kafka-get-offsets", "--topic", t).lines, [t + ":0:2"])
        r = self.produce(t, b"in time\n", "--sync", "--request-required-acks", "all")
        self.assertEqual(self.consume(t, 3).lines[2], "in time")

    def test_acks(self):
        for acks in ["0", "1", "-1", "all"]:
            t = self.topic("acks" + acks)
            self.create(t)
            self.produce(t, "a\n", "--request-required-acks", acks)
            self.assertEqual(self.consume(t, 1).out, b"a\n")

    def test_bad_flags(self):
        at = ["--bootstrap-server", self.broker.address]
        for args, message in [(["--topic", "a", "--include", "b"], "Exactly one of --include/--topic"),
                              (at[:0], r"Exactly one"),
                              (["--include", "a", "--partition", "0"], "topic is required"),
                              (["--topic", "a", "--offset", "3"], "partition is required"),
                              (["--topic", "a", "--partition", "0", "--offset", "first"], "offset value 'first'"),
                              (["--topic", "a", "--partition", "0", "--offset", "-3"], "offset value '-3'"),
                              (["--topic", "a", "--partition", "0", "--group", "g"], "group and partition"),
                              (["--topic", "a", "--from-beginning", "--consumer-property", "auto.offset.reset=latest"],
                               "from-beginning")]:
            self.assert_usage(run_tool("kafka-console-consumer", *at, *args), message)
        self.assert_usage(run_tool("kafka-console-producer", *at), r"Missing required argument \"\[topic\]\"")
        self.assert_usage(run_tool("kafka-console-producer", "--topic", "t"), "bootstrap-server")
        r = run_tool("kafka-console-producer", *at, "--topic", "t", "--producer-property", "acks=7")
        self.assertEqual(r.status, 1)
        self.assertIn("acks=7", r.err)

    def test_old_flags(self):
        t = self.topic()
        r = run_tool("kafka-console-producer.sh", "--broker-list", self.broker.address, "--topic", t, input="a\n")
        self.assertEqual((r.status, r.out), (0, b""))
        self.assertEqual(self.consume(t, 1).out, b"a\n")

    def test_partial_isolation(self):
        t = self.topic()
        self.produce(t, "a\n")
        self.assertEqual(self.consume(t, 1, "--isolation-level", "read_committed").out, b"a\n")
        self.assertIn("isolation.level", self.consume(t, 1, "--isolation-level", "none", status=1).err)


if __name__ == "__main__":
    harness.main()
