"""txn_checks.py - what must hold of transactions made with the client library and the tools, on whatever broker:
test_transactions.py has kafkad's, ../mixed/test_mixed_transactions.py Apache Kafka's.

A test class has `bootstrap` (host:port), restart() (the broker is killed and comes back), and SETTINGS on its broker.
"""
import os
import re
import subprocess
import tempfile
import shutil
import time
import uuid

import harness
import tool_test

SETTINGS = {"transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 4, "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 4, "group.initial.rebalance.delay.ms": 0,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500}
BUILD = os.path.dirname(harness.bin_dir())
PROGRAM = os.path.join(harness.bin_dir(), "tests", "transactions")


class Producer:
    """A `transactions` process: do("commit") is its answer, as (error, status)."""

    def __init__(self, bootstrap, name, *settings):
        self.p = subprocess.Popen([PROGRAM, "bootstrap.servers=" + bootstrap, "transactional.id=" + name, *settings],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.delivered = {}

    def do(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        while True:
            got = self.p.stdout.readline().split()
            if not got:
                raise AssertionError("%s: %s" % (line, self.p.stderr.read()))
            if got[0] == "delivered":
                self.delivered[got[1]] = got[2]
            elif got[0] == line.split()[0]:
                return tuple(got[1:])

    def all(self, *lines):
        for line in lines:
            answer = self.do(line)
            if answer != ("NONE", "fine"):
                raise AssertionError("%s: %s" % (line, answer))
        return self

    def end(self, how="close"):
        if self.p.poll() is None:
            try:
                out, err = self.p.communicate(how + "\n", timeout=90)
                if harness.SANITIZER.search(err):
                    raise AssertionError(err)
            except subprocess.TimeoutExpired:
                self.p.kill()
                raise
        return self


def compile_example(folder):
    """docs/examples/exactly_once.c against the library of the build; the program's path."""
    path = os.path.join(folder, "exactly_once")
    subprocess.run(["cc", "-I" + os.path.join(harness.ROOT, "include"), "-o", path,
                    os.path.join(harness.ROOT, "docs", "examples", "exactly_once.c"), "-L" + os.path.join(BUILD, "lib"),
                    "-Wl,-rpath," + os.path.join(BUILD, "lib"), "-lkafkad-client"], check=True, timeout=60)
    return path


class TransactionChecks:
    def name(self):
        return "t" + uuid.uuid4().hex[:10]

    def tool(self, name, *args, status=0, **kw):
        r = tool_test.run_tool(name, "--bootstrap-server", self.bootstrap, *args, **kw)
        self.assertEqual(r.status, status, "%s %s: %s%s" % (name, " ".join(map(str, args)), r.text, r.err))
        return r

    def create(self, partitions=1):
        topic = self.name()
        self.tool("kafka-topics", "--create", "--topic", topic, "--partitions", partitions, "--replication-factor", 1)
        return topic

    def producer(self, name=None, *settings):
        p = Producer(self.bootstrap, name or self.name(), *settings)
        self.addCleanup(p.end, "quit")
        return p

    def read(self, topic, n, level="read_committed", *args):
        """What the console consumer shows: n records, and no more of them for two seconds."""
        r = tool_test.run_tool("kafka-console-consumer", "--bootstrap-server", self.bootstrap, "--topic", topic,
                               "--from-beginning", "--isolation-level", level, "--max-messages", n, *args, deadline=120)
        more = tool_test.run_tool("kafka-console-consumer", "--bootstrap-server", self.bootstrap, "--topic", topic,
                                  "--from-beginning", "--isolation-level", level, "--max-messages", n + 1, "--timeout-ms",
                                  2000, *args, deadline=120)
        self.assertEqual(sorted(more.lines), sorted(r.lines), more.err)
        return r.lines

    def committed(self, group):
        """{(topic, partition): offset}"""
        out = self.tool("kafka-consumer-groups", "--describe", "--offsets", "--group", group).text
        return {(m[1], int(m[2])): int(m[3]) for m in re.finditer(r"^%s +(\S+) +(\d+) +(\d+) " % group, out, re.M)}

    # ---- visibility ----

    def test_all_or_nothing(self):
        a, b = self.create(2), self.create()
        p = self.producer().all("init")
        for i in range(6):
            p.all("begin", "send %s 0 %da" % (a, i), "send %s 1 %db" % (a, i), "send %s 0 %dc" % (b, i), "flush",
                  "abort" if i % 2 else "commit")
        p.end()
        self.assertEqual(set(p.delivered.values()), {"NONE"})
        even = ["%d%s" % (i, part) for i in (0, 2, 4) for part in "ab"]
        self.assertEqual(sorted(self.read(a, 6)), even)
        self.assertEqual(self.read(b, 3), ["0c", "2c", "4c"])
        self.assertEqual(len(self.read(a, 12, "read_uncommitted")), 12)
        self.assertEqual(self.read(b, 6, "read_uncommitted"), ["%dc" % i for i in range(6)])

    def test_an_open_transaction_holds_readers_up(self):
        t = self.create()
        first, second = self.producer().all("init"), self.producer().all("init")
        first.all("begin", "send %s 0 first" % t, "flush")
        second.all("begin", "send %s 0 second" % t, "commit")
        self.assertEqual(self.read(t, 2, "read_uncommitted"), ["first", "second"])
        r = self.tool("kafka-console-consumer", "--topic", t, "--from-beginning", "--isolation-level", "read_committed",
                      "--timeout-ms", 2000)
        self.assertEqual(r.text, "")
        first.all("commit")
        self.assertEqual(self.read(t, 2), ["first", "second"])

    def test_unsent_records_of_an_abort(self):
        t = self.create()
        p = self.producer(None, "linger.ms=60000").all("init", "begin", "send %s 0 one" % t, "abort", "begin", "send %s 0 two" % t,
                                                       "commit").end()
        self.assertEqual(p.delivered, {"one": "TXN_ABORTED", "two": "NONE"})
        self.assertEqual(self.read(t, 1), ["two"])

    # ---- offsets ----

    def test_offsets_come_with_the_commit(self):
        g, t = self.name(), self.create()
        p = self.producer().all("init", "begin", "offset %s %s 0 5" % (g, t), "send %s 0 x" % t, "abort", "begin",
                                "offset %s %s 0 7" % (g, t))
        self.assertEqual(self.committed(g).get((t, 0)), None)
        p.all("commit")
        harness.until("the offset is there", lambda: self.committed(g).get((t, 0)) == 7, 30)
        p.all("begin", "offset %s %s 0 9" % (g, t), "abort")
        self.assertEqual(self.committed(g).get((t, 0)), 7)

    # ---- fencing ----

    def test_the_second_of_a_name_shuts_the_first_out(self):
        t, name = self.create(), self.name()
        first = self.producer(name).all("init", "begin", "send %s 0 first" % t, "flush")
        second = self.producer(name).all("init", "begin", "send %s 0 second" % t, "commit")
        self.assertEqual(first.do("commit"), ("PRODUCER_FENCED", "fatal"))
        for line in ("begin", "send %s 0 x" % t, "abort", "commit"):
            self.assertEqual(first.do(line), ("PRODUCER_FENCED", "fatal"))
        second.all("begin", "send %s 0 third" % t, "commit")
        self.assertEqual(self.read(t, 2), ["second", "third"])

    def test_a_batch_of_the_first_is_refused(self):
        t, name = self.create(), self.name()
        first = self.producer(name).all("init", "begin", "send %s 0 a" % t, "commit", "begin", "send %s 0 b" % t, "flush")
        self.producer(name).all("init", "begin", "send %s 0 second" % t, "commit")
        first.do("send %s 0 late" % t)
        first.do("flush")
        self.assertEqual(first.do("commit"), ("PRODUCER_FENCED", "fatal"))
        self.assertEqual(first.delivered["late"] in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"), True, first.delivered)
        self.assertEqual(self.read(t, 2), ["a", "second"])

    def test_a_transaction_over_its_time_is_aborted(self):
        t = self.create()
        p = self.producer(None, "transaction.timeout.ms=1000").all("init", "begin", "send %s 0 lost" % t, "flush")
        q = self.producer().all("init", "begin", "send %s 0 kept" % t, "commit")
        self.assertEqual(self.read(t, 1), ["kept"])       # waits until the first one is out of the way
        self.assertEqual(p.do("commit"), ("PRODUCER_FENCED", "fatal"))
        said = p.p.communicate("quit\n", timeout=90)[1]   # nobody else has taken the name
        self.assertRegex(said, r"a newer producer .* took over, or .* longer than transaction\.timeout\.ms=1000 and the "
                               r"coordinator ended it \(")
        q.end()

    def test_a_crash_leaves_nothing_behind(self):
        t, name = self.create(), self.name()
        for i in range(3):
            self.producer(name).all("init", "begin", "send %s 0 crash%d" % (t, i), "flush").end("quit")
        self.producer(name).all("init", "begin", "send %s 0 fine" % t, "commit").end()
        self.assertEqual(self.read(t, 1), ["fine"])

    def test_close_aborts(self):
        t = self.create()
        self.producer().all("init", "begin", "send %s 0 open" % t).end("close")
        self.producer().all("init", "begin", "send %s 0 fine" % t, "commit").end()
        self.assertEqual(self.read(t, 1), ["fine"])

    # ---- brokers that go ----

    def test_a_restart_in_the_middle(self):
        t = self.create()
        p = self.producer().all("init", "begin", "send %s 0 a" % t, "flush")
        q = self.producer().all("init", "begin", "send %s 0 b" % t, "flush")
        self.restart()
        p.all("send %s 0 c" % t, "commit", "begin", "send %s 0 d" % t, "commit")
        q.all("abort")
        self.assertEqual(self.read(t, 3), ["a", "c", "d"])

    # ---- the example and the tools ----

    def test_exactly_once_over_crashes(self):
        """Killed again and again, and started again: each record of the one topic is in the other once, in order."""
        with open(os.path.join(BUILD, "CMakeCache.txt")) as f:
            if re.search("(ASAN|TSAN):BOOL=ON", f.read()):
                self.skipTest("sanitizers cannot be linked to from outside")
        folder = tempfile.mkdtemp(prefix="kafkad-test-")
        self.addCleanup(shutil.rmtree, folder, True)
        program, source, target, n = compile_example(folder), self.create(3), self.create(3), 6000
        self.tool("kafka-console-producer", "--topic", source, "--property", "parse.key=true",
                  input="".join("k%d\tk%d-%d\n" % (i % 7, i % 7, i // 7) for i in range(n)))
        command = [program, self.bootstrap, self.name(), source, target]
        for i in range(4):
            p = subprocess.Popen(command + ["1000000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.15 + 0.1 * i)  # anywhere in its work: nothing depends on where
            p.kill()
            p.wait()
        # the dead member's partitions are the group's again when its session is over: the last one waits for them
        p = subprocess.Popen(command + ["1000000"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            lines = self.read(target, n)
        finally:
            p.terminate()
            p.communicate()
        self.assertEqual(len(lines), n)
        expected = sorted("K%d-%d" % (i % 7, i // 7) for i in range(n))
        self.assertEqual(sorted(lines), expected)

    def test_perf_test(self):
        t = self.create()
        r = self.tool_of_producer("kafka-producer-perf-test", "--topic", t, "--num-records", 500, "--record-size", 10,
                                  "--throughput", 1000, "--transaction-duration-ms", 100, "--transactional-id", self.name())
        self.assertRegex(r.text, r"^500 records sent")
        self.assertEqual(len(self.read(t, 500)), 500)
        end = int(self.tool("kafka-get-offsets", "--topic", t).text.split(":")[2])
        self.assertGreater(end, 501)  # markers of more than one transaction
        self.assertLess(end, 700)     # and not one for each record

    def tool_of_producer(self, name, *args):
        r = tool_test.run_tool(name, *args, "--producer-props", "bootstrap.servers=" + self.bootstrap)
        self.assertEqual(r.status, 0, r.err)
        return r
