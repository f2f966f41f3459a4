"""group_checks.py - the checks of groups, for members in any language (member.py)."""
import re
import socket
import sys

import groupwire as g
import harness
import kwire
from harness import until
from member import Member

OVERRIDES = dict(g.OVERRIDES, **{
    "group.min.session.timeout.ms": "500", "group.initial.rebalance.delay.ms": "300",
    "group.consumer.min.session.timeout.ms": "500", "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100", "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.migration.policy": "bidirectional"})
PARTITIONS = 4
WAIT = 2 * harness.DEADLINE  # members are programs that must start first
CONSUMER = {"protocol": "consumer", "assignor": None, "session": None, "heartbeat": None}  # KIP-848: the broker says
FAST = {"session": "3000", "heartbeat": "200", "autocommit": "true", "assignor": "range", "protocol": "classic"}


def fixed_listener():
    """A port that a broker has again after its restart."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return "PLAINTEXT://127.0.0.1:%d" % s.getsockname()[1]


class Bench:
    """A broker, and members of groups on it. Each check has a topic and a group of its own."""

    def __init__(self, client, command):
        self.client, self.command = client, command  # of the mixed group: {client: command}
        self.topic = self.group = "first"
        self.members = []
        self.number = 0

    def __enter__(self):
        self.broker = harness.Broker(overrides=OVERRIDES, listeners=fixed_listener())
        self.c = kwire.Conn(self.broker.port)
        g.coordinator(self.c, "first")
        return self

    def __exit__(self, kind, *_):
        self.c.close()
        self.broker.close()

    # -- what the checks are made of

    def fresh(self, partitions=PARTITIONS):
        self.number += 1
        self.topic, self.group, self.sent = "t%d" % self.number, "g%d" % self.number, 0
        kwire.create_topic(self.c, self.topic, partitions=partitions)
        self.partitions = partitions

    def member(self, name, command=None, **settings):
        wanted = dict(FAST, group=self.group, topics=self.topic)
        wanted.update(settings)
        if wanted.get("pattern"):
            wanted["topics"] = None
        m = Member(command or self.command, self.broker.address, name, **wanted)
        self.members.append(m)
        return m

    def end_members(self):
        for m in self.members:
            m.let_go()
        self.members = []

    def tell(self):
        for m in self.members:
            sys.stderr.write("---- %s\n" % m.tell())
        sys.stderr.write("---- broker\n%s\n----\n" % "\n".join(
            line for line in self.broker.lines[-60:] if self.group in line or "ERROR" in line or "WARN" in line))

    def until(self, what, condition):
        def holds():
            for m in self.members:
                m.check_alive()
            return condition()
        until(what, holds, WAIT)

    def produce(self, per_partition, topic=None, partitions=None):
        for p in range(partitions or self.partitions):
            values = [b"m%d" % (self.sent + i) for i in range(per_partition)]
            kwire.produce_one(self.c, topic or self.topic, p, kwire.simple_batch(*values))
            self.sent += per_partition

    def all(self, topic=None, partitions=None):
        return {(topic or self.topic, p) for p in range(partitions or self.partitions)}

    def wait_alone(self, m, want=None):
        want = want or self.all()
        self.until("%s has all partitions" % m.name, lambda: m.assigned == want)

    def shared(self, members):
        parts = [m.assigned or set() for m in members]
        union = set().union(*parts)
        return union == self.all() and sum(map(len, parts)) == len(union) and all(parts)

    def wait_shared(self, *members):
        """Every partition has one owner, and everyone has some."""
        self.until("they share the partitions", lambda: self.shared(members))

    def wait_read(self, *members):
        """All that was sent is read; nothing twice."""
        self.until("all is read", lambda: sum(len(m.records) for m in members) >= self.sent)
        values = sorted(v for m in members for v in m.values())
        want = sorted("m%d" % i for i in range(self.sent))
        assert values == want, "read %d records, %d different, of %d" % (len(values), len(set(values)), len(want))

    def committed(self, topic=None):
        error, found = g.fetch(self.c, self.group, None)
        assert error == 0, "OffsetFetch answers %d" % error
        return {p: o[0] for (t, p), o in found.items() if t == (topic or self.topic)}

    def wait_committed(self, offset):
        self.until("all offsets are committed", lambda: self.committed() == {p: offset for p in range(self.partitions)})

    # -- the checks

    def check_group_share(self, **settings):
        self.fresh()
        self.produce(5)
        a = self.member("a", **settings)
        self.wait_alone(a)
        self.wait_read(a)
        self.wait_committed(5)
        b = self.member("b", **settings)
        self.wait_shared(a, b)
        for _ in range(5):
            self.produce(5)
        self.wait_read(a, b)
        assert b.records, "b has read nothing"
        self.wait_committed(30)

    def check_group_leave(self, **settings):
        """A member that leaves gives its partitions back at once, not by its session timeout."""
        self.fresh()
        if settings.get("protocol") != "consumer":  # there the session is the broker's to say
            settings = dict(settings, session="30000")
        a, b = (self.member(n, **settings) for n in "ab")
        self.wait_shared(a, b)
        self.produce(5)
        self.wait_read(a, b)
        b.close()
        self.wait_alone(a)
        self.produce(5)
        self.wait_read(a, b)
        a.close()
        self.wait_committed(10)

    def check_group_crash(self, **settings):
        self.fresh()
        a, b = (self.member(n, **settings) for n in "ab")
        self.wait_shared(a, b)
        self.produce(5)
        self.wait_read(a, b)
        self.wait_committed(5)
        b.kill()
        self.wait_alone(a)
        self.produce(5)
        self.wait_read(a, b)

    def check_group_resume(self, **settings):
        """Only what was committed by hand counts: the next member reads the rest again."""
        self.fresh()
        settings = dict(settings, autocommit="false")
        self.produce(5)
        a = self.member("a", **settings)
        self.wait_read(a)
        a.commit()
        self.wait_committed(5)
        self.produce(3)
        self.wait_read(a)
        a.kill()
        b = self.member("b", **settings)
        self.until("b reads what was not committed", lambda: len(b.records) >= 3 * PARTITIONS)
        assert sorted(b.values()) == sorted("m%d" % i for i in range(5 * PARTITIONS, self.sent)), \
            "b has read %s" % b.values()
        b.commit()
        b.close()
        self.wait_committed(8)

    def check_group_static(self):
        """A static member that is killed and comes back within its session has its share again, without a rebalance."""
        self.fresh()
        a, b = (self.member(n, instance="i" + n, session="25000") for n in "ab")
        self.wait_shared(a, b)
        self.produce(5)
        self.wait_read(a, b)
        self.wait_committed(5)
        share, rebalances = b.assigned, len(a.history)
        generation = r"group %s: generation" % self.group
        generations = self.broker.count_lines(generation)
        b.kill()
        b2 = self.member("b2", instance="ib", session="25000")
        self.until("it has its share again", lambda: b2.assigned == share)
        self.produce(5)
        self.wait_read(a, b, b2)
        assert self.broker.count_lines(generation) == generations, "there was a rebalance"
        assert len(a.history) == rebalances, "a was given %s" % a.history

    def check_group_pattern(self, **settings):
        self.fresh()
        a = self.member("a", pattern="%s(-more)?" % re.escape(self.topic), **settings)
        self.wait_alone(a)
        more = self.topic + "-more"
        kwire.create_topic(self.c, self.topic + "-not", partitions=1)
        kwire.create_topic(self.c, more, partitions=2)
        self.wait_alone(a, self.all() | self.all(more, 2))
        self.produce(5, more, 2)
        self.wait_read(a)

    def check_group_growth(self, **settings):
        self.fresh()
        a, b = (self.member(n, **settings) for n in "ab")
        self.wait_shared(a, b)
        self.c.call("CreatePartitions", 3, timeout_ms=30000, validate_only=False,
                    topics=[{"name": self.topic, "count": 6, "assignments": None}])
        self.partitions = 6
        self.wait_shared(a, b)
        self.produce(5)
        self.wait_read(a, b)

    def check_group_cooperative(self):
        """Who keeps a partition reads on while others move."""
        self.fresh()
        a = self.member("a", assignor="cooperative")
        self.wait_alone(a)
        b = self.member("b", assignor="cooperative")
        self.wait_shared(a, b)
        kept = set.intersection(*a.history[a.history.index(self.all()):])
        assert len(kept) == PARTITIONS // 2, "a was given %s" % a.history
        self.produce(5)
        self.wait_read(a, b)
        b.close()
        self.wait_alone(a)
        self.produce(5)
        self.wait_read(a, b)

    # The protocol of KIP-848: the same as the classic one, seen from outside.

    def check_consumer_protocol_share(self):
        self.check_group_share(**CONSUMER)

    def check_consumer_protocol_leave(self):
        self.check_group_leave(**CONSUMER)

    def check_consumer_protocol_crash(self):
        self.check_group_crash(**CONSUMER)

    def check_consumer_protocol_resume(self):
        self.check_group_resume(**CONSUMER)

    def check_consumer_protocol_pattern(self):
        self.check_group_pattern(**CONSUMER)

    def check_consumer_protocol_growth(self):
        self.check_group_growth(**CONSUMER)

    def check_consumer_protocol_static(self):
        """A static member that ends well keeps its share for a while; whoever has its name then has it again."""
        self.fresh()
        a, b = (self.member(n, instance="i" + n, **CONSUMER) for n in "ab")
        self.wait_shared(a, b)
        self.produce(5)
        self.wait_read(a, b)
        b.close()
        b2 = self.member("b2", instance="ib", **CONSUMER)
        self.until("it has a share again", lambda: b2.assigned and self.shared([a, b2]))
        self.produce(5)
        self.wait_read(a, b, b2)
        b2.close()
        a.close()
        self.wait_committed(10)

    def check_consumer_protocol_restart(self):
        self.check_group_restart(**CONSUMER)

    def check_consumer_protocol_upgrade(self):
        """A running group goes over to the new protocol member by member, and back again."""
        self.fresh()
        members = [self.member(n, assignor="range", session="6000") for n in "ab"]
        self.wait_shared(*members)
        sent = 0
        for settings in (CONSUMER, CONSUMER, {"session": "6000"}, {"session": "6000"}):
            self.produce(5)
            self.wait_read(*self.members)
            sent += 5
            self.wait_committed(sent)
            members.pop(0).close()
            members.append(self.member("m%d" % sent, **settings))
            self.wait_shared(*members)
        self.produce(5)
        self.wait_read(*self.members)

    def check_group_restart(self, **settings):
        """Clean and unclean: the broker comes back, members go on from where they were, nothing lost."""
        self.fresh()
        settings = settings or {"session": "25000"}
        a, b = (self.member(n, **settings) for n in "ab")
        self.wait_shared(a, b)
        for end in (self.broker.stop, self.broker.kill):
            self.produce(5)
            self.wait_read(a, b)
            self.until("committed", lambda: sum(self.committed().values()) == self.sent)
            self.c.close()
            end()
            self.broker.start()
            self.c = kwire.Conn(self.broker.port)
            g.coordinator(self.c, self.group)
            self.produce(5)
            self.wait_read(a, b)

    def check_mixed_group(self):
        """Members of every language share one topic; each of them is the first once, and so the one who assigns."""
        names = sorted(self.command)
        for first in names:
            self.fresh(2 * len(names))
            members = []
            for name in [first] + [n for n in names if n != first]:
                members.append(self.member(name, self.command[name], session="6000"))
                if len(members) == 1:
                    self.wait_alone(members[0])
            self.wait_shared(*members)
            for _ in range(5):
                self.produce(5)
            self.wait_read(*members)
            for m in members:
                assert m.records, "%s has read nothing; %s was the first" % (m.name, first)
            self.wait_committed(25)
            self.end_members()

    def check_mixed_takeover(self):
        """One after the other is gone: killed, or it leaves. The others go on behind what it has committed."""
        self.fresh(2 * len(self.command))
        members = [self.member(n, c, session="6000") for n, c in sorted(self.command.items())]
        left = list(members)
        self.wait_shared(*left)
        for number, gone in enumerate(members[:-1]):
            self.produce(5)
            self.wait_read(*members)
            self.wait_committed(5 * (number + 1))
            left.remove(gone)
            gone.kill() if number % 2 == 0 else gone.close()
            self.wait_shared(*left)
        self.produce(5)
        self.wait_read(*members)
