"""Starting, stopping and refusing to start: what INTERFACE promises of the daemon itself."""
import os
import re
import resource
import signal
import socket
import tempfile
import unittest

import harness
import kwire
from harness import Broker, program, run


class Flags(unittest.TestCase):
    def test_version(self):
        status, out, err = run([program("kafkad"), "--version"])
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"^kafkad \d+\.\d+")

    def test_help_exits_0(self):
        status, out, err = run([program("kafkad"), "--help"])
        self.assertEqual((status, err), (0, ""))
        self.assertIn("--override key=value", out)
        self.assertIn("--check-config", out)

    def test_unknown_flags_and_a_second_file_exit_1(self):
        for args in (["--frobnicate"], ["a.properties", "b.properties"], ["--override"], ["--override", "=v"]):
            status, _, err = run([program("kafkad")] + args)
            self.assertEqual(status, 1, args)
            self.assertIn("Usage:", err)

    def test_the_settings_page_is_printed(self):
        status, out, _ = run([program("kafkad"), "--print-config-docs"])
        self.assertEqual(status, 0)
        with open(os.path.join(harness.ROOT, "docs", "configuration.md")) as f:
            self.assertEqual(out, f.read())


class CheckConfig(unittest.TestCase):
    def check(self, text, *args):
        with tempfile.NamedTemporaryFile("w", suffix=".properties") as f:
            f.write(text)
            f.flush()
            status, out, err = run([program("kafkad"), "--check-config", f.name] + list(args))
            self.assertEqual(out, "")
            return status, err

    def test_good_settings_exit_0(self):
        self.assertEqual(self.check("broker.id=3\nlisteners=PLAINTEXT://:0\n")[0], 0)

    def test_an_override_behind_the_file_wins(self):
        self.assertEqual(self.check("num.partitions=0\n", "--override", "num.partitions=2")[0], 0)
        status, err = self.check("num.partitions=2\n", "--override", "num.partitions=0")
        self.assertEqual(status, 1)
        self.assertRegex(err, r"FATAL .* with --override: Invalid value 0 for configuration num\.partitions: "
                              r"must be .* at least 1")

    def test_java_escapes(self):
        self.assertEqual(self.check("num.partitions \\\n   : 3\n")[0], 0)
        status, err = self.check("a=1\nb=\\u12\n")
        self.assertEqual(status, 1)
        self.assertRegex(err, r"line 2")

    def test_an_unknown_key_warns(self):
        status, err = self.check("num.partiton=3\nmetadata.log.dir=/x\n")
        self.assertEqual(status, 0)
        self.assertRegex(err, r"WARN .*num\.partiton: ignored; did you mean num\.partitions\?")
        self.assertRegex(err, r"WARN .*metadata\.log\.dir")

    def test_every_bad_value_is_told(self):
        status, err = self.check("num.partitions=0\nlog.dirs=\nlog.retention.hours=x\n", "--override", "log.roll.ms=never")
        self.assertEqual(status, 1)
        lines = [line for line in err.splitlines() if "FATAL" in line]
        self.assertEqual(len(lines), 3, err)
        for key in ("num.partitions", "log.retention.hours", "log.roll.ms"):
            self.assertTrue(any("with --override: Invalid value" in x and key in x for x in lines), err)
        status, err = self.check("listeners=SSL://:9093,SASL_PLAINTEXT://h:9094\nzookeeper.connect=h:0\n"
                                 "inter.broker.listener.name=SSL\n")
        self.assertEqual(status, 1)
        self.assertRegex(err, r"FATAL .*listener SSL: .*ssl\.keystore\.location: must be set")
        self.assertRegex(err, r"FATAL .*listener SASL_PLAINTEXT: sasl\.enabled\.mechanisms: it is not set, or GSSAPI")
        self.assertRegex(err, r"FATAL .*zookeeper\.connect=h:0")

    def test_a_kraft_file_is_told_what_it_is(self):
        status, err = self.check("process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@h:9093\n"
                                 "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n")
        self.assertEqual(status, 1)
        self.assertRegex(err, r"FATAL .*process\.roles=broker,controller: .*KRaft.*zookeeper\.connect")
        self.assertEqual(err.count("FATAL"), 1)

    def test_what_this_version_cannot_do_is_said(self):
        for text, word in (("zookeeper.connect=h:2181\nzookeeper.ssl.client.enable=true\n", "zookeeper.ssl"),
                           ("zookeeper.connect=h:0\n", "zookeeper.connect=h:0"),
                           ("listeners=SSL://:0\nsecurity.inter.broker.protocol=SSL\n", "SSL"),
                           # the listener that is missing for brokers is not what is wrong
                           # the default of sasl.enabled.mechanisms
                           ("listeners=PLAINTEXT://:0,SASL_PLAINTEXT://127.0.0.1:1\n",
                            "listener SASL_PLAINTEXT: sasl.enabled.mechanisms: it is not set, or GSSAPI")):
            status, err = self.check(text)
            self.assertEqual(status, 1)
            self.assertRegex(err, "FATAL .*" + word)

    ACLS = "super.users=User:admin;User:b1 ; User:CN=x:y;\nallow.everyone.if.no.acl.found=false\n"

    def test_who_asks_for_an_authorizer_gets_that_one_or_no_broker(self):
        for name in ("kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer", ""):
            status, err = self.check("authorizer.class.name=%s\n" % name + self.ACLS)
            self.assertEqual(status, 0, err)
            self.assertNotIn("super.users", err)
        ours = "authorizer.class.name=kafka.security.authorizer.AclAuthorizer\n"
        for text, wrong in (("authorizer.class.name=a.b.Authorizer\n" + self.ACLS, r"authorizer\.class\.name=a\.b\.Authorizer: "),
                            (ours + "super.users=admin\n", r'super\.users: "admin" is no principal'),
                            (ours + "super.users=User:a,b;c\n", r'super\.users: "c" is no principal'),
                            (ours + "authorizer.zookeeper.url=:::\n", "")):
            status, err = self.check(text)
            self.assertEqual(status, 1, err)
            self.assertRegex(err, "FATAL .*" + wrong)
            self.assertEqual(err.count("FATAL"), 1, err)
        with Broker({"authorizer.class.name": "a.b.Authorizer"}, start=False) as b:
            b.start(wait=False)
            self.assertEqual(b.wait_exit(), 1)
            self.assertTrue(b.has_line(r"FATAL.*start refused: authorizer\.class\.name=a\.b\.Authorizer: "))

    def test_log_dirs_that_cannot_be_are_refused(self):
        status, err = self.check("log.dirs=/proc/x\n")
        self.assertEqual(status, 1)
        self.assertRegex(err, r"FATAL .*log\.dirs: the folder /proc/x cannot be made in /proc: ")
        with tempfile.TemporaryDirectory() as folder:
            there = os.path.join(folder, "a", "b")
            self.assertEqual(self.check("log.dirs=%s\n" % there)[0], 0)
            self.assertEqual(os.listdir(folder), [])
            status, err = self.check("log.dirs=%s,/proc/x\n" % there)
            self.assertEqual(status, 0)
            self.assertRegex(err, r"WARN .*/proc/x.*would start without it")

    def test_no_file_and_no_override(self):
        status, _, err = run([program("kafkad"), "--check-config"])
        self.assertEqual(status, 0, err)
        self.assertIn("no settings file was given: the defaults hold; log dir ", err)

    def test_a_missing_file_is_named(self):
        status, _, err = run([program("kafkad"), "/no/such.properties"])
        self.assertEqual(status, 1)
        self.assertRegex(err, r"FATAL .*/no/such\.properties: No such file")


class Life(unittest.TestCase):
    def test_start_and_stop(self):
        with Broker() as b:
            self.assertGreater(b.port, 0)
            at = [i for i, line in enumerate(b.lines) if "listening on PLAINTEXT://127.0.0.1:" in line]
            started = [i for i, line in enumerate(b.lines) if "[KafkaServer id=0] started" in line]
            self.assertEqual(len(at), 1)
            self.assertLess(at[0], started[0])
            self.assertRegex(b.lines[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ \[[^]]+\] ")
            with b.client() as c:
                self.assertTrue(c.is_open())
            b.stop()

    def test_sigint_stops_as_well(self):
        with Broker() as b:
            b.stop(sig=signal.SIGINT)

    def test_sigquit_asks_how_it_is(self):
        """As of a JVM: lines in the log, and nothing else happens."""
        with Broker() as b:
            for _ in range(2):
                mark = b.mark()
                b.process.send_signal(signal.SIGQUIT)
                b.wait_line(r"\[dump\] .*1 connections|\[dump\] 0 connections", after=mark)
                b.wait_line(r"\[dump\] .*data: online, \d+ logs", after=mark)
                b.wait_line(r"\[dump\] .*controller is 0", after=mark)
            with b.client() as c:
                self.assertTrue(c.is_open())

    def test_a_client_hears_of_the_stop(self):
        with Broker() as b, b.client() as c:
            self.assertTrue(c.is_open())
            b.stop()
            c.wait_closed()

    def test_clients_that_left_do_not_delay_the_stop(self):
        """Their requests were with the controller when they went, and would wait for years."""
        forever = 2 ** 31 - 1
        with Broker() as b:
            port = b.ports["PLAINTEXT"]
            for i in range(60):
                with kwire.Conn(port) as c:
                    c.send("CreateTopics", 5, timeout_ms=forever, topics=[
                        {"name": "t%d" % i, "num_partitions": 1, "replication_factor": 1}])
                    c.send("CreatePartitions", 2, timeout_ms=forever, topics=[{"name": "t%d" % (i - 1), "count": 2}])
                    c.send("DeleteTopics", 3, timeout_ms=forever, topic_names=["t%d" % (i - 2)])
            b.stop()

    def test_signals_soon_after_the_first_leave_the_stop_clean(self):
        """`kill $P; kill $P`, or `timeout`, which signals the whole group."""
        with Broker() as b:
            for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                b.process.send_signal(sig)
            self.assertEqual(b.wait_exit(), 0)
            self.assertTrue(b.has_line("shut down completed"))

    def test_identity_survives(self):
        def identity(b):
            with open(os.path.join(b.data, "meta.properties")) as f:
                return dict(line.strip().split("=", 1) for line in f if "=" in line)
        with Broker(overrides={"broker.id": "5"}) as b:
            self.assertTrue(b.has_line(r"\[KafkaServer id=5\] started"))
            first = identity(b)
            self.assertEqual(first["broker.id"], "5")
            self.assertEqual(len(first["cluster.id"]), 22)
            self.assertEqual(first["version"], "0")
            b.restart()
            self.assertEqual(identity(b), first)
            b.kill()
            del b.overrides["broker.id"]
            b.start()
            self.assertTrue(b.has_line(r"\[KafkaServer id=5\] started"))
            self.assertEqual(identity(b), first)

    def test_what_runs_without_a_file_is_said(self):
        with Broker() as b:
            self.assertTrue(b.has_line(r"no settings file was given: the defaults hold but for 2 --override; log dir %s, "
                                       r"listeners PLAINTEXT://127\.0\.0\.1:0" % re.escape(b.data)))
            self.assertTrue(b.has_line(r"metadata store: embedded, in %s " % re.escape(b.data)))

    def test_a_properties_file_is_read(self):
        with Broker(start=False) as b:
            path = os.path.join(b.folder, "server.properties")
            with open(path, "w") as f:
                f.write("# a comment\nbroker.id : 12\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dir=%s\n" % b.data)
            b.command = lambda: [program("kafkad"), path]
            b.start()
            self.assertTrue(b.has_line(r"\[KafkaServer id=12\] started"))

    def test_several_listeners(self):
        listeners = "A://127.0.0.1:0,B://127.0.0.1:0"
        with Broker(listeners=listeners, overrides={
                "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
                "inter.broker.listener.name": "A"}) as b:
            self.assertEqual(set(b.ports), {"A", "B"})
            for name in b.ports:
                with b.client(name) as c:
                    self.assertTrue(c.is_open())

    def test_an_embedded_broker_without_an_id_is_0(self):
        with Broker() as b:
            self.assertTrue(b.has_line(r"\[KafkaServer id=0\] started"))

    def test_start_stop_leaves_nothing_open(self):
        """Ten lives on one folder: each starts."""
        with Broker() as b:
            for i in range(10):
                b.kill() if i % 2 else b.stop()
                b.start()


class Refused(unittest.TestCase):
    """One FATAL line that names what is wrong; exit status 1."""

    def refused(self, broker, *words):
        mark = broker.mark()
        broker.start(wait=False)
        self.assertEqual(broker.wait_exit(), 1)
        fatal = [line for line in broker.lines[mark:] if " FATAL " in line]
        self.assertEqual(len(fatal), 1, broker.lines[mark:])
        for word in words:
            self.assertIn(word, fatal[0])
        self.assertFalse(any("started" in line for line in broker.lines[mark:]))

    def test_a_bad_value(self):
        with Broker(start=False, overrides={"num.io.threads": "none"}) as b:
            self.refused(b, "num.io.threads", "none", "whole number")

    def test_a_port_that_is_taken(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            port = s.getsockname()[1]
            with Broker(start=False, listeners="PLAINTEXT://127.0.0.1:%d" % port) as b:
                self.refused(b, "listeners", "PLAINTEXT://127.0.0.1:%d" % port, "in use")

    def test_an_address_of_another_machine(self):
        with Broker(start=False, listeners="PLAINTEXT://192.0.2.1:0") as b:
            self.refused(b, "listeners", "192.0.2.1")

    def test_a_folder_in_use(self):
        with Broker() as first:
            with Broker(start=False, folder=first.folder) as second:
                self.refused(second, first.data, "lock")
            with first.client() as c:
                self.assertTrue(c.is_open())

    def test_started_without_standard_descriptors(self):
        with Broker(start=False) as b:
            b.before_exec = lambda: os.closerange(0, 2)  # standard error stays: the harness reads it
            b.start()
            for fd in (0, 1):
                self.assertEqual(os.readlink("/proc/%d/fd/%d" % (b.process.pid, fd)), "/dev/null")

    def test_a_folder_that_cannot_be_made(self):
        with Broker(start=False) as b:
            b.overrides["log.dirs"] = "/dev/null/data"
            self.refused(b, "log.dirs: cannot make the folder /dev/null/data: Not a directory")

    def test_a_folder_in_use_by_another_as_second_dir(self):
        with Broker() as first:
            with Broker(start=False) as second:
                second.overrides["log.dirs"] = "%s,%s" % (second.data, first.data)
                self.refused(second, first.data)

    def test_another_broker_id(self):
        with Broker(overrides={"broker.id": "1"}) as b:
            b.stop()
            b.overrides["broker.id"] = "2"
            self.refused(b, "meta.properties", "1", "2")
            b.overrides["broker.id"] = "1"
            b.start()

    def test_another_cluster(self):
        with Broker() as b:
            b.stop()
            path = os.path.join(b.data, "meta.properties")
            with open(path) as f:
                text = f.read()
            with open(path, "w") as f:
                f.write(re.sub(r"cluster\.id=.*", "cluster.id=AAAAAAAAAAAAAAAAAAAAAA", text))
            self.refused(b, "cluster", "AAAAAAAAAAAAAAAAAAAAAA")

    def test_a_log_dir_that_is_a_file(self):
        with Broker(start=False) as b:
            with open(b.data, "w"):
                pass
            self.refused(b, b.data)

    def test_zookeeper(self):
        with socket.socket() as s:  # bound, but nobody listens
            s.bind(("127.0.0.1", 0))
            connect = "127.0.0.1:%d" % s.getsockname()[1]
            with Broker(start=False, overrides={"zookeeper.connect": connect,
                                                "zookeeper.connection.timeout.ms": "300"}) as b:
                self.refused(b, "zookeeper.connect", connect)


class Disk(unittest.TestCase):
    """What the broker cannot go on without: it says so and exits with 1, and does not hang."""

    def with_file_limit(self, size):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # write(2) then fails with EFBIG
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        b = Broker(start=False)
        b.before_exec = limit
        return b

    def create_topics_until_it_dies(self, b):
        with b.client() as c:
            try:
                for i in range(1000):
                    harness.create_topic(c, "topic-%d" % i, timeout_ms=1000)
            except (harness.Closed, ConnectionError):
                return
        self.fail("it lives on")

    def test_no_log_dir_is_left(self):
        with self.with_file_limit(1 << 20) as b:  # no index fits
            b.start()
            self.create_topics_until_it_dies(b)
            self.assertEqual(b.wait_exit(), 1)
            self.assertTrue(b.has_line(r"FATAL .*no log dir is left"))

    def test_the_metadata_journal_cannot_grow(self):
        with self.with_file_limit(20000) as b:
            # indexes that fit, so that it is the journal that fills up
            b.overrides["log.index.size.max.bytes"] = "4096"
            b.start()
            self.create_topics_until_it_dies(b)
            self.assertEqual(b.wait_exit(), 1)
            self.assertTrue(b.has_line(r"FATAL .*(\[MetadataStore\] .*no change is accepted|no log dir is left)"))
            # with room again, all that was answered is there
            b.before_exec = None
            b.start()
            with b.client() as c:
                self.assertGreater(len(harness.metadata(c, None)["topics"]), 0)


class Signals(unittest.TestCase):
    def test_a_second_signal_while_stopping_is_slow(self):
        """A request that waits holds the stop up for its grace: it stays a clean stop."""
        with Broker() as b, b.client() as c:
            c.send(harness.FETCH, 4, harness.Writer().i32(-1).i32(60000).i32(1).i32(1 << 20).i8(0).i32(0))
            with b.client() as other:
                self.assertTrue(other.is_open())  # by now the fetch has been read, too
            mark = b.mark()
            b.process.send_signal(signal.SIGTERM)
            b.wait_line("shutting down", after=mark)
            b.process.send_signal(signal.SIGTERM)
            b.process.send_signal(signal.SIGINT)
            self.assertEqual(b.wait_exit(), 0)
            self.assertTrue(b.has_line("shut down completed"))
            self.assertLessEqual(sum("already stopping" in line for line in b.lines), 1)


if __name__ == "__main__":
    harness.main()
