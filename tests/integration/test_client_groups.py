"""Consumers of the client library in groups, on a real broker: programs/group_member is told what to do and tells
what happens."""
import os
import re
import subprocess
import threading
import time
import unittest

import harness
import tool_test

PROGRAM = os.path.join(harness.bin_dir(), "tests", "group_member")


class Member:
    """A group_member process. `lines` is all it has said."""

    def __init__(self, broker, group, **settings):
        conf = {"bootstrap.servers": broker.address, "group.id": group, "auto.offset.reset": "earliest",
                "heartbeat.interval.ms": "100", "session.timeout.ms": "10000", "metadata.max.age.ms": "300",
                "retry.backoff.ms": "10", "reconnect.backoff.max.ms": "50"}
        conf.update({k.replace("_", "."): v for k, v in settings.items()})
        self.process = subprocess.Popen([PROGRAM] + ["%s=%s" % kv for kv in conf.items() if kv[1] is not None],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        universal_newlines=True, bufsize=1)
        self.cond = threading.Condition()
        self.lines, self.errors, self.at = [], [], 0
        self.readers = [threading.Thread(target=self._read, args=a, daemon=True) for a in
                        ((self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for r in self.readers:
            r.start()

    def _read(self, pipe, to):
        for line in pipe:
            with self.cond:
                to.append(line.rstrip("\n"))
                self.cond.notify_all()

    def tell(self, line):
        self.process.stdin.write(line + "\n")

    def wait(self, pattern, deadline=harness.DEADLINE):
        """The next line, from the last one waited for on, that matches wholly."""
        end = time.monotonic() + deadline
        with self.cond:
            while True:
                while self.at < len(self.lines):
                    self.at += 1
                    m = re.fullmatch(pattern, self.lines[self.at - 1])
                    if m:
                        return m
                if not self.cond.wait(max(0, end - time.monotonic())) and time.monotonic() > end:
                    raise AssertionError("no line %r within %g s; said %s; errors %s"
                                         % (pattern, deadline, self.lines[-12:], self.errors[-12:]))

    def ask(self, line, pattern):
        self.tell(line)
        return self.wait(pattern)

    def wait_set(self, what):
        """The partitions of the next line `what`."""
        return set(self.wait(what + "((?: [^ ]+)*)").group(1).split())

    def said(self, pattern):
        with self.cond:
            return [line for line in self.lines if re.fullmatch(pattern, line)]

    def close(self):
        self.ask("close", "closed")
        return self.end()

    def quit(self):
        """Ends as by a crash, if it has not ended."""
        if not self.process.stdin.closed:
            self.process.kill()
            self.end()

    def end(self):
        status = self.process.wait(harness.DEADLINE)
        for r in self.readers:
            r.join(harness.DEADLINE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        bad = [line for line in self.errors if harness.SANITIZER.search(line)]
        assert not bad, "\n".join(self.errors)
        return status


def parts(topic, *numbers):
    return {"%s-%d" % (topic, n) for n in numbers}


class GroupsBase(tool_test.ToolTest):
    OVERRIDES = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "100",
                 "offsets.topic.num.partitions": "3"}

    def setUp(self):
        super().setUp()
        self.members = []

    def tearDown(self):
        for m in self.members:
            m.quit()
        super().tearDown()

    def member(self, group, **settings):
        m = Member(self.broker, group, **settings)
        self.members.append(m)
        return m

    def new_topic(self, partitions, name=None):
        t = name or self.topic()
        self.create(t, partitions)
        return t

    def produce(self, topic, *values):
        self.tool("kafka-console-producer", "--topic", topic, input="".join(v + "\n" for v in values))

    def group(self):
        return "g-" + self.id().rsplit(".", 1)[1]


class GroupsTest(GroupsBase):
    """The classic protocol."""

    def shares(self, strategy, topic_size=4):
        """Two members with this assignor: what each has at last, then what the first has alone."""
        t, g = self.new_topic(topic_size), self.group()
        one = self.member(g, partition_assignment_strategy=strategy)
        one.ask("subscribe " + t, "subscribe NONE")
        self.assertEqual(one.wait_set("assigned"), parts(t, *range(topic_size)))
        two = self.member(g, partition_assignment_strategy=strategy)
        two.ask("subscribe " + t, "subscribe NONE")
        return t, one, two

    def expect_eager_share(self, strategy, first, second):
        t, one, two = self.shares(strategy)
        self.assertEqual(one.wait_set("revoked"), parts(t, 0, 1, 2, 3))
        got = [one.wait_set("assigned"), two.wait_set("assigned")]
        self.assertEqual(got[0] | got[1], parts(t, 0, 1, 2, 3))
        self.assertEqual(sorted(map(sorted, got)), sorted(map(sorted, [parts(t, *first), parts(t, *second)])))
        self.assertEqual(two.close(), 0)
        one.wait_set("revoked")
        self.assertEqual(one.wait_set("assigned"), parts(t, 0, 1, 2, 3))
        self.assertEqual(one.close(), 0)
        self.assertEqual(one.said("lost.*"), [])

    def test_range_shares_and_takes_back(self):
        self.expect_eager_share("range", (0, 1), (2, 3))

    def test_roundrobin_shares_by_java_name(self):
        self.expect_eager_share("org.apache.kafka.clients.consumer.RoundRobinAssignor", (0, 2), (1, 3))

    def test_sticky_keeps_the_first(self):
        self.expect_eager_share("sticky", (0, 1), (2, 3))

    def test_cooperative_moves_only_what_moves(self):
        t, one, two = self.shares("cooperative-sticky")
        self.assertEqual(one.wait_set("revoked"), parts(t, 2, 3))
        two.wait("assigned %s-2 %s-3" % (t, t))  # behind an empty one, if it was quick
        self.assertEqual(two.close(), 0)
        one.wait("assigned %s-2 %s-3" % (t, t))
        self.assertEqual(one.close(), 0)
        self.assertEqual(len(one.said("revoked.*")), 2, one.lines)
        self.assertEqual(one.said("lost.*"), [])

    def test_custom_assignor_decides(self):
        t, g = self.new_topic(3), self.group()
        pair = [self.member(g, partition_assignment_strategy="custom", group_instance_id=i) for i in "ab"]
        for m in pair:
            m.ask("subscribe " + t, "subscribe NONE")
        pair[1].wait("assigned %s-0 %s-1 %s-2" % (t, t, t))
        pair[0].wait("assigned")

    def test_unknown_assignor_is_refused(self):
        m = self.member(self.group(), partition_assignment_strategy="range,fair")
        m.wait("refused partition.assignment.strategy=range,fair: fair is not one of .*")
        self.assertEqual(m.end(), 1)

    def test_two_topics_and_their_records(self):
        t, u, g = self.new_topic(2), self.new_topic(1, "second"), self.group()
        m = self.member(g)
        m.ask("subscribe %s %s" % (t, u), "subscribe NONE")
        self.assertEqual(m.wait_set("assigned"), parts(t, 0, 1) | parts(u, 0))
        self.produce(u, "hello")
        m.wait("record second-0 0 hello")
        self.assertEqual(m.close(), 0)

    def test_pattern_finds_new_topics(self):
        g, name = self.group(), self.topic()
        self.new_topic(1, name + "-a1")
        self.new_topic(1, name + "-x")
        m = self.member(g)
        m.ask(r"pattern %s-a\d" % name, "pattern NONE")
        self.assertEqual(m.wait_set("assigned"), {name + "-a1-0"})
        self.new_topic(1, name + "-a2")
        m.wait("assigned %s-a1-0 %s-a2-0" % (name, name))
        m.ask("pattern (", "pattern INVALID_ARG")
        m.ask("subscribe t", "subscribe STATE")
        self.assertEqual(m.close(), 0)

    def test_a_topic_that_comes_later(self):
        name, g = self.topic() + "-later", self.group()
        m = self.member(g, allow_auto_create_topics="false")
        m.ask("subscribe " + name, "subscribe NONE")
        m.wait("assigned")
        self.new_topic(2, name)
        m.wait("assigned %s-0 %s-1" % (name, name))

    def test_commits_are_where_the_next_begins(self):
        t, g = self.new_topic(1), self.group()
        self.produce(t, "a", "b", "c")
        m = self.member(g, enable_auto_commit="false")
        m.ask("subscribe " + t, "subscribe NONE")
        m.wait("record %s-0 2 c" % t)
        m.ask("committed %s 0" % t, "committed -1")
        m.ask("commit", "commit NONE")
        m.ask("committed %s 0" % t, "committed 3")
        m.ask("commit_async", "commit_async NONE")
        m.wait("committed_async NONE 1")
        self.assertEqual(m.close(), 0)
        self.produce(t, "d")
        m = self.member(g, enable_auto_commit="false")
        m.ask("subscribe " + t, "subscribe NONE")
        m.wait("record %s-0 3 d" % t)
        m.ask("lag %s 0" % t, "lag NONE 0")
        self.assertEqual(m.close(), 0)
        self.assertEqual(len(m.said("record.*")), 1)

    def test_auto_commit_by_time_and_at_close(self):
        t, g = self.new_topic(1), self.group()
        self.produce(t, "a", "b")
        m = self.member(g, auto_commit_interval_ms="50")
        m.ask("subscribe " + t, "subscribe NONE")
        m.wait("record %s-0 1 b" % t)
        harness.until("committed", lambda: m.ask("committed %s 0" % t, "committed (.*)").group(1) == "2")
        self.assertEqual(m.close(), 0)
        self.produce(t, "c")
        m = self.member(g, auto_commit_interval_ms="3600000")
        m.ask("subscribe " + t, "subscribe NONE")
        m.wait("record %s-0 2 c" % t)
        self.assertEqual(m.close(), 0)
        self.produce(t, "d")
        m = self.member(g)
        m.ask("subscribe " + t, "subscribe NONE")
        m.wait("record %s-0 3 d" % t)
        self.assertEqual(len(m.said("record.*")), 1)

    def test_before_a_rebalance_what_was_read_is_committed(self):
        t, g = self.new_topic(2), self.group()
        self.produce(t, "a")
        one = self.member(g, auto_commit_interval_ms="3600000")
        one.ask("subscribe " + t, "subscribe NONE")
        one.wait("record .* a")
        two = self.member(g, auto_commit_interval_ms="3600000")
        two.ask("subscribe " + t, "subscribe NONE")
        one.wait_set("revoked")
        one.wait_set("assigned")
        two.wait_set("assigned")
        self.produce(t, "b")
        harness.until("b is read", lambda: one.said("record .* b") + two.said("record .* b"))
        self.assertEqual(len(one.said("record .* a") + two.said("record .* a")), 1)

    def test_a_member_that_does_not_poll_loses_its_partitions(self):
        t, g = self.new_topic(2), self.group()
        one = self.member(g, max_poll_interval_ms="500")
        one.ask("subscribe " + t, "subscribe NONE")
        one.wait_set("assigned")
        two = self.member(g)
        two.ask("subscribe " + t, "subscribe NONE")
        two.wait("assigned %s-1|assigned %s-0" % (t, t))
        one.tell("hang 3000")
        two.wait("assigned %s-0 %s-1" % (t, t))
        one.wait("lost .*")
        one.wait("assigned %s-[01]" % t)
        self.assertTrue(any("max.poll.interval.ms=500" in e for e in one.errors), one.errors)

    def test_a_dead_member_is_out_after_its_session(self):
        t, g = self.new_topic(2), self.group()
        one = self.member(g, session_timeout_ms="1000")
        one.ask("subscribe " + t, "subscribe NONE")
        one.wait_set("assigned")
        two = self.member(g)
        two.ask("subscribe " + t, "subscribe NONE")
        two.wait("assigned %s-[01]" % t)
        one.quit()
        two.wait("assigned %s-0 %s-1" % (t, t))

    def test_static_members_come_back_without_a_rebalance(self):
        t, g = self.new_topic(2), self.group()
        one = self.member(g, group_instance_id="one")
        one.ask("subscribe " + t, "subscribe NONE")
        one.wait("assigned %s-0 %s-1" % (t, t))
        two = self.member(g, group_instance_id="two")
        two.ask("subscribe " + t, "subscribe NONE")
        self.assertEqual(two.wait_set("assigned"), parts(t, 1))
        self.assertEqual(one.wait_set("assigned"), parts(t, 0))
        self.assertEqual(two.close(), 0)
        two = self.member(g, group_instance_id="two")
        two.ask("subscribe " + t, "subscribe NONE")
        self.assertEqual(two.wait_set("assigned"), parts(t, 1))
        self.assertEqual(len(one.said("revoked.*")), 1, one.lines)
        three = self.member(g, group_instance_id="two")
        three.ask("subscribe " + t, "subscribe NONE")
        self.assertEqual(three.wait_set("assigned"), parts(t, 1))
        two.wait("poll FENCED_INSTANCE_ID .*")

    def test_unsubscribing_leaves(self):
        t, g = self.new_topic(1), self.group()
        one = self.member(g)
        one.ask("subscribe " + t, "subscribe NONE")
        one.wait("assigned %s-0" % t)
        one.ask("unsubscribe", "unsubscribe NONE")
        two = self.member(g)
        two.ask("subscribe " + t, "subscribe NONE")
        two.wait("assigned %s-0" % t)
        one.ask("assign %s 0" % t, "assign NONE")
        one.ask("subscribe " + t, "subscribe STATE")
        one.ask("unsubscribe", "unsubscribe NONE")
        two.close()
        one.ask("subscribe " + t, "subscribe NONE")
        one.wait("assigned %s-0" % t)
        self.assertEqual(one.close(), 0)

    def test_assigned_partitions_with_a_group_begin_at_its_commit(self):
        t, g = self.new_topic(1), self.group()
        self.produce(t, "a", "b")
        m = self.member(g, enable_auto_commit="false")
        m.ask("assign %s 0" % t, "assign NONE")
        m.wait("record %s-0 1 b" % t)
        m.ask("seek %s 0 1" % t, "seek NONE")
        m.ask("pause %s 0" % t, "pause NONE")
        m.ask("position %s 0" % t, "position NONE 1")
        m.ask("commit", "commit NONE")
        self.assertEqual(m.close(), 0)
        m = self.member(g)
        m.ask("assign %s 0" % t, "assign NONE")
        m.wait("record %s-0 1 b" % t)
        self.assertEqual(len(m.said("record.*")), 1)

    def test_without_a_commit_and_reset_none_the_application_is_told(self):
        t, g = self.new_topic(1), self.group()
        self.produce(t, "a")
        m = self.member(g, auto_offset_reset="none")
        m.ask("subscribe " + t, "subscribe NONE")
        m.wait("poll NO_OFFSET %s-0 has no position.*auto.offset.reset=none" % t)
        m.ask("seek %s 0 0" % t, "seek NONE")
        m.wait("record %s-0 0 a" % t)

    def test_without_a_group_there_is_none(self):
        m = self.member(None)
        m.ask("subscribe t", "subscribe INVALID_ARG")
        m.ask("commit", "commit INVALID_ARG")
        self.assertEqual(m.close(), 0)
        m = self.member(None, enable_auto_commit="true")
        m.wait("refused enable.auto.commit=true: .*group.id")

    def test_a_forced_rebalance(self):
        t, g = self.new_topic(1), self.group()
        m = self.member(g)
        m.ask("subscribe " + t, "subscribe NONE")
        m.wait("assigned %s-0" % t)
        m.ask("rebalance", "rebalance NONE")
        m.wait("revoked %s-0" % t)
        m.wait("assigned %s-0" % t)


class ConsumerProtocolTest(GroupsBase):
    """group.protocol=consumer."""
    OVERRIDES = dict(GroupsBase.OVERRIDES, **{
        "group.coordinator.rebalance.protocols": "classic,consumer", "group.consumer.min.heartbeat.interval.ms": "50",
        "group.consumer.heartbeat.interval.ms": "50", "group.consumer.min.session.timeout.ms": "500",
        "group.consumer.session.timeout.ms": "2000"})

    def modern(self, group, **settings):
        return self.member(group, group_protocol="consumer", heartbeat_interval_ms=None, session_timeout_ms=None,
                           **settings)

    def test_the_assignor_of_the_broker_is_named(self):
        for assignor in ("range", "uniform"):
            t, g = self.new_topic(2, self.topic() + "-" + assignor), self.group() + assignor
            m = self.modern(g, group_remote_assignor=assignor)
            m.ask("subscribe " + t, "subscribe NONE")
            m.wait("assigned .*%s-1" % t)
            r = self.tool("kafka-consumer-groups", "--describe", "--group", g, "--state")
            self.assertIn(" %s " % assignor, r.text)
            self.assertEqual(m.close(), 0)
        m = self.modern(self.group(), group_remote_assignor="fair")
        m.ask("subscribe t", "subscribe NONE")
        m.wait("poll UNSUPPORTED_ASSIGNOR .*")

    def test_two_share_and_one_takes_back(self):
        t, g = self.new_topic(4), self.group()
        one = self.modern(g)
        one.ask("subscribe " + t, "subscribe NONE")
        one.wait("assigned .*%s-3" % t)
        two = self.modern(g)
        two.ask("subscribe " + t, "subscribe NONE")
        moved = one.wait_set("revoked")
        self.assertEqual(len(moved), 2)
        two.wait("assigned " + " ".join(sorted(moved)))
        self.assertEqual(two.close(), 0)
        one.wait("assigned " + " ".join(sorted(moved)))
        self.assertEqual(one.close(), 0)
        self.assertEqual(one.said("lost.*"), [])

    def test_commits_and_goes_on(self):
        t, g = self.new_topic(1), self.group()
        self.produce(t, "a", "b")
        m = self.modern(g, enable_auto_commit="false")
        m.ask("subscribe " + t, "subscribe NONE")
        m.wait("record %s-0 1 b" % t)
        m.ask("commit", "commit NONE")
        m.ask("committed %s 0" % t, "committed 2")
        self.assertEqual(m.close(), 0)
        self.produce(t, "c")
        m = self.modern(g)
        m.ask("subscribe " + t, "subscribe NONE")
        m.wait("record %s-0 2 c" % t)
        self.assertEqual(len(m.said("record.*")), 1)
        self.assertEqual(m.close(), 0)

    def test_what_was_read_is_committed_when_partitions_move(self):
        t, g = self.new_topic(2), self.group()
        self.produce(t, "a", "b", "c")
        one = self.modern(g, auto_commit_interval_ms="3600000")
        one.ask("subscribe " + t, "subscribe NONE")
        one.wait("record .* c")
        two = self.modern(g, auto_commit_interval_ms="3600000")
        two.ask("subscribe " + t, "subscribe NONE")
        two.wait("assigned %s-[01]" % t)
        self.produce(t, "d")
        harness.until("d is read", lambda: one.said("record .* d") + two.said("record .* d"))
        self.assertEqual(len(one.said("record .* [abc]")) + len(two.said("record .* [abc]")), 3)

    def test_a_member_that_does_not_poll_is_out(self):
        t, g = self.new_topic(2), self.group()
        one = self.modern(g, max_poll_interval_ms="500")
        one.ask("subscribe " + t, "subscribe NONE")
        one.wait("assigned .*%s-1" % t)
        two = self.modern(g)
        two.ask("subscribe " + t, "subscribe NONE")
        two.wait("assigned %s-[01]" % t)
        one.tell("hang 3000")
        two.wait("assigned %s-[01]" % t)
        one.wait("lost .*")
        one.wait("assigned %s-[01]" % t)

    def test_a_dead_member_is_out_after_its_session(self):
        t, g = self.new_topic(2), self.group()
        one = self.modern(g)
        one.ask("subscribe " + t, "subscribe NONE")
        one.wait("assigned .*%s-1" % t)
        two = self.modern(g)
        two.ask("subscribe " + t, "subscribe NONE")
        two.wait("assigned %s-[01]" % t)
        one.quit()
        two.wait("assigned %s-[01]" % t)

    def test_subscriptions_and_patterns_change(self):
        g, name = self.group(), self.topic()
        self.new_topic(1, name + "-a1")
        m = self.modern(g)
        m.ask(r"pattern %s-a\d" % name, "pattern NONE")
        m.wait("assigned %s-a1-0" % name)
        self.new_topic(1, name + "-a2")
        m.wait("assigned %s-a2-0" % name)
        m.ask("unsubscribe", "unsubscribe NONE")
        m.wait_set("revoked") if not m.said("revoked.*") else None
        m.ask("subscribe %s-a2" % name, "subscribe NONE")
        m.wait("assigned %s-a2-0" % name)
        self.assertEqual(m.close(), 0)

    def test_a_static_member_comes_back(self):
        t, g = self.new_topic(1), self.group()
        m = self.modern(g, group_instance_id="i")
        m.ask("subscribe " + t, "subscribe NONE")
        m.wait("assigned %s-0" % t)
        self.assertEqual(m.close(), 0)
        m = self.modern(g, group_instance_id="i")
        m.ask("subscribe " + t, "subscribe NONE")
        m.wait("assigned %s-0" % t)
        other = self.modern(g, group_instance_id="i")
        other.ask("subscribe " + t, "subscribe NONE")
        other.wait("poll UNRELEASED_INSTANCE_ID .*")

    def test_what_the_broker_decides_must_not_be_set(self):
        m = self.member(self.group(), group_protocol="consumer")
        m.wait("refused heartbeat.interval.ms cannot be set with group.protocol=consumer.*")
        self.assertEqual(m.end(), 1)


class ClassicBrokerTest(GroupsBase):
    OVERRIDES = dict(GroupsBase.OVERRIDES, **{"group.coordinator.rebalance.protocols": "classic"})

    def test_without_the_protocol_that_is_told(self):
        t = self.new_topic(1)
        m = self.member(self.group(), group_protocol="consumer", heartbeat_interval_ms=None, session_timeout_ms=None)
        m.ask("subscribe " + t, "subscribe NONE")
        m.wait("poll UNSUPPORTED .*the broker does not have group.protocol=consumer, use classic.*")


class RestartTest(unittest.TestCase):
    def test_members_outlive_their_broker(self):
        overrides = dict(GroupsTest.OVERRIDES)
        with harness.Broker(overrides=overrides) as b:
            overrides["listeners"] = "PLAINTEXT://127.0.0.1:%d" % b.port
            b.overrides.update(overrides)
            tool_test.run_tool("kafka-topics", "--bootstrap-server", b.address, "--create", "--topic", "t",
                          "--partitions", "2")
            pair = [Member(b, "g"), Member(b, "g")]
            for m in pair:
                m.ask("subscribe t", "subscribe NONE")
            for m in pair:
                m.wait("assigned t-[01]")
            for hard in (False, True):
                if hard:
                    b.kill()
                    b.start()
                else:
                    b.restart()
                tool_test.run_tool("kafka-console-producer", "--bootstrap-server", b.address, "--topic", "t",
                              input=b"again %d\n" % hard)
                harness.until("it is read", lambda: [m for m in pair if m.said("record .* again %d" % hard)])
            for m in pair:
                self.assertEqual(m.close(), 0)


if __name__ == "__main__":
    harness.main()
