"""faults.py - what goes wrong, when and for how long: all chosen by one random generator, before it happens, so that a
seed gives the same plan. What a fault meets (who is the controller by then) is the moment's.

A Fault has: begin, a span, end. Several may hold at once; a broker or server belongs to one fault at a time that
stops it, a network is shared."""
import threading
import time

import churn


class Faults:
    """spec: {kind: weight}"""

    WEIGHTS = {"kill": 3, "kill_controller": 2, "kill_leader": 2, "kill_two": 1, "stop": 1, "pause": 2, "pause_leader": 3,
               "pause_controller": 3, "cut": 3, "cut_one_way": 3, "isolate": 2, "isolate_leader": 2, "cut_zookeeper": 3,
               "cut_zookeeper_one_way": 2, "cut_client": 1, "slow": 2, "lossy": 2, "doubled": 1, "reordered": 1,
               "full_disk": 2, "full_disks": 1, "clock": 3, "roll": 1, "upgrade": 1, "kill_zookeeper": 1,
               "pause_zookeeper": 1, "split_zookeeper": 1, "kill_in_creation": 1, "kill_in_deletion": 1,
               "kill_in_reassignment": 1, "kill_in_election": 1, "power": 2}
    AT_ONCE = 3
    ALONE = {"power"}  # only one machine may lose what it did not flush: the others have it

    def __init__(self, cluster, random, only=None):
        self.c, self.random = cluster, random
        self.count = {}
        self.threads = []
        self.stopping = threading.Event()
        kinds = only or sorted(self.WEIGHTS)
        self.kinds, self.weights = kinds, [self.WEIGHTS[k] for k in kinds]

    # -- the plan

    def next(self):
        """(kind, pause before it, numbers for its choices)"""
        kind = self.random.choices(self.kinds, self.weights)[0]
        return kind, self.random.uniform(0.2, 4), [self.random.random() for _ in range(8)]

    def run(self, seconds):
        """Faults for so long, then all are taken back."""
        end = time.monotonic() + seconds
        self.stopping.clear()
        while time.monotonic() < end:
            kind, pause, numbers = self.next()
            self.stopping.wait(pause)
            self.threads = [t for t in self.threads if t.is_alive()]
            while len(self.threads) >= self.AT_ONCE and time.monotonic() < end:
                time.sleep(0.1)
                self.threads = [t for t in self.threads if t.is_alive()]
            if time.monotonic() >= end:
                break
            if kind in self.ALONE:
                self._alone(kind, Dice(numbers))
                continue
            t = threading.Thread(target=self._one, args=(kind, Dice(numbers)), daemon=True)
            t.start()
            self.threads.append(t)
        self.heal()

    def heal(self):
        """No fault goes on; every process runs."""
        self.stopping.set()
        for t in self.threads:
            t.join(120)
            if t.is_alive():
                self.c.wrong("a fault does not end: %s" % t.name)
        self.c.net.clear()
        for n in self.c.servers + self.c.brokers:
            n.resume()
        for b in self.c.brokers:
            b.empty()
            b.shift_clock(0)
        self.c.start_all()

    def _one(self, kind, dice):
        try:
            if getattr(self, kind)(dice) is not False:
                self.count[kind] = self.count.get(kind, 0) + 1
        except Exception as e:
            self.c.wrong("fault %s: %r" % (kind, e))

    def _alone(self, kind, dice):
        """In a cluster that is whole, and nothing else until it is so again."""
        for t in self.threads:
            t.join(60)
        if self.c.is_whole(30):
            self._one(kind, dice)
            self.c.is_whole(60)

    def hold(self, seconds):
        self.stopping.wait(seconds)

    # -- whom it meets

    def broker(self, dice):
        return dice.choice(self.c.brokers)

    def the_controller(self, dice):
        number = self.c.view.controller()
        return next((b for b in self.c.brokers if b.number == number), None) or self.broker(dice)

    def a_leader(self, dice):
        """Of a partition of the workload, or the coordinator of its group."""
        topic, n = dice.choice(self.c.targets)
        number = self.c.view.leader(topic, int(dice.number() * n))
        return next((b for b in self.c.brokers if b.number == number), None) or self.broker(dice)

    def with_node(self, node, act, patience=0):
        """The node is this fault's own for as long as act takes. False: another one's, for so many seconds."""
        if not node.busy.acquire(timeout=patience):
            return False
        try:
            self.c.tell("%s %s" % (act.__name__.strip("_"), node.name))
            return act()
        finally:
            node.busy.release()

    # -- processes

    def _kill(self, node, dice):
        def kill():
            if not node.running:
                return False
            node.kill()
            self.hold(dice.span(0, 5))
            node.start()
        return self.with_node(node, kill)

    def kill(self, dice):
        return self._kill(self.broker(dice), dice)

    def kill_controller(self, dice):
        return self._kill(self.the_controller(dice), dice)

    def kill_leader(self, dice):
        return self._kill(self.a_leader(dice), dice)

    def kill_two(self, dice):
        first, second = dice.sample(self.c.brokers, 2)

        def two():
            first.kill()
            self.hold(dice.span(0, 1))
            done = self._kill(second, dice)
            first.start()
            return done
        return self.with_node(first, two)

    def stop(self, dice):
        node = self.broker(dice)

        def stop():
            if not node.running:
                return False
            self.c.stopped(node)
            self.hold(dice.span(0, 3))
            node.start()
        return self.with_node(node, stop)

    def _pause(self, node, dice):
        def pause():
            if not node.running:
                return False
            node.pause()
            since, seconds = time.monotonic(), dice.span(0.5, 9)
            self.hold(seconds)
            node.resume()
            if time.monotonic() - since > 4:  # a session lasts 3 s
                self.c.saw("paused beyond the session")
        return self.with_node(node, pause)

    def pause(self, dice):
        return self._pause(self.broker(dice), dice)

    def pause_leader(self, dice):
        return self._pause(self.a_leader(dice), dice)

    def pause_controller(self, dice):
        return self._pause(self.the_controller(dice), dice)

    def roll(self, dice):
        """A rolling restart: each broker cleanly, one after the other, the next when the last one serves."""
        for b in dice.sample(self.c.brokers, len(self.c.brokers)):
            def restart(b=b):
                b.wait_started()
                self.c.stopped(b)
                b.start()
                b.wait_started()
            if self.stopping.is_set():
                return
            self.with_node(b, restart, 30)

    def upgrade(self, dice):
        """A roll that raises inter.broker.protocol.version."""
        if not self.c.next_level():
            return False
        self.c.tell("upgrade to %s" % self.c.level)
        self.roll(dice)

    def power(self, dice):
        """A power cut: what was not flushed is gone, in each log from some byte on."""
        node = self.a_leader(dice)

        def power():
            if not node.running:
                return False
            node.kill()
            self.c.tell("power %s: %d bytes are lost" % (node.name, node.lose_unflushed(dice.number)))
            self.hold(dice.span(0, 4))
            node.start()
            node.wait_started()
        return self.with_node(node, power)

    # -- the network

    def _net(self, what, pairs, seconds, **rule):
        self.c.tell("%s %s for %.1f s" % (what, " ".join("%s>%s" % p for p in pairs), seconds))
        made = [self.c.net.rule(source, target, **rule) for source, target in pairs]
        self.hold(seconds)
        for m in made:
            self.c.net.mend(m)

    @staticmethod
    def between(one, others):
        return [(one, o) for o in others if o != one] + [(o, one) for o in others if o != one]

    def names(self, nodes):
        return [n.name for n in nodes]

    def cut(self, dice):
        """Two nodes, one of them a broker."""
        a, b = dice.sample(self.names(self.c.brokers), 2)
        if dice.number() < 0.3:
            b = dice.choice(self.names(self.c.servers) + ["client"])
        self._net("cut", [(a, b), (b, a)], dice.span(1, 10), loss=1.0)

    def cut_one_way(self, dice):
        a = dice.choice(self.names(self.c.brokers))
        others = [n for n in self.names(self.c.brokers) if n != a and dice.number() < 0.6]
        pairs = [(a, o) for o in others] if dice.number() < 0.5 else [(o, a) for o in others]
        if not pairs:
            return False
        self._net("cut_one_way", pairs, dice.span(1, 10), loss=1.0)

    def isolate(self, dice, broker=None):
        """From all brokers, and half of the time from ZooKeeper; clients still reach it."""
        a = (broker or self.broker(dice)).name
        others = self.names(self.c.brokers) + (self.names(self.c.servers) if dice.number() < 0.5 else [])
        self._net("isolate", self.between(a, others), dice.span(1, 10), loss=1.0)

    def isolate_leader(self, dice):
        self.isolate(dice, self.a_leader(dice))

    def cut_zookeeper(self, dice):
        broker = dice.choice((self.broker, self.the_controller, self.a_leader))(dice)
        self._net("cut_zookeeper", self.between(broker.name, self.names(self.c.servers)), dice.span(1, 10), loss=1.0)

    def cut_zookeeper_one_way(self, dice):
        a = dice.choice((self.broker, self.the_controller))(dice).name
        pairs = [(a, z) for z in self.names(self.c.servers)]
        if dice.number() < 0.5:
            pairs = [(z, a) for a, z in pairs]
        self._net("cut_zookeeper_one_way", pairs, dice.span(1, 10), loss=1.0)

    def cut_client(self, dice):
        a = self.broker(dice).name
        pairs = dice.choice(([(a, "client")], [("client", a)], [(a, "client"), ("client", a)]))
        self._net("cut_client", pairs, dice.span(1, 6), loss=1.0)

    def split_zookeeper(self, dice):
        one = dice.choice(self.names(self.c.servers))
        self._net("split_zookeeper", self.between(one, self.names(self.c.servers)), dice.span(1, 8), loss=1.0)

    def _everywhere(self, dice):
        """All pairs of a broker, or of all brokers."""
        names = self.names(self.c.brokers)
        if dice.number() < 0.5:
            return self.between(dice.choice(names), names + self.names(self.c.servers) + ["client"])
        return [(a, b) for a in names for b in names if a != b]

    def slow(self, dice):
        self._net("slow", self._everywhere(dice), dice.span(2, 10), delay_ms=dice.span(5, 250), jitter_ms=dice.span(1, 100))

    def lossy(self, dice):
        self._net("lossy", self._everywhere(dice), dice.span(2, 10), loss=dice.span(0.01, 0.25))

    def doubled(self, dice):
        self._net("doubled", self._everywhere(dice), dice.span(2, 10), duplicate=dice.span(0.05, 0.6))

    def reordered(self, dice):
        self._net("reordered", self._everywhere(dice), dice.span(2, 10), reorder=dice.span(0.05, 0.5), delay_ms=1)

    # -- disks and clocks

    def _full(self, dice, dirs):
        node = self.broker(dice)

        def full_disk():
            if not node.running:
                return False
            for d in dirs:
                node.fill(d)
            self.c.expected_to_end.add(node)
            self.hold(dice.span(1, 6))
            node.empty()
            if dice.number() < 0.5 and node.running:
                self.c.stopped(node)
            else:
                node.kill()
            self.hold(dice.span(0, 2))
            self.c.expected_to_end.discard(node)
            node.start()
        return self.with_node(node, full_disk)

    def full_disk(self, dice):
        return self._full(dice, [int(dice.number() * 2)])

    def full_disks(self, dice):
        return self._full(dice, [0, 1])

    def clock(self, dice):
        """The wall clock jumps, by seconds or hours, forth or back; later it jumps back."""
        node, seconds = self.broker(dice), dice.choice((2, 30, 600, 7200)) * (dice.number() * 2 - 1)
        self.c.tell("clock %s %+.1f s" % (node.name, seconds))
        node.shift_clock(seconds)
        self.hold(dice.span(1, 10))
        node.shift_clock(0)

    # -- ZooKeeper's servers

    def kill_zookeeper(self, dice):
        return self._kill(dice.choice(self.c.servers), dice)

    def pause_zookeeper(self, dice):
        return self._pause(dice.choice(self.c.servers), dice)

    # -- the controller, in the middle of something

    def _kill_in(self, dice, kind):
        """A moment after it was asked for something; it counts as such when it had not finished it by then."""
        controller = self.the_controller(dice)
        request = churn.Request()
        threading.Thread(target=self.c.churn.one, args=(dice.as_random(), kind, request), daemon=True).start()
        if not request.sent.wait(10):
            return False
        self.hold(dice.number() ** 2 * 0.1)
        unfinished = not request.answered or kind == "reassign" and self.c.view.moves()
        if self._kill(controller, dice) is False:
            return False
        if not unfinished:
            self.count["kill_controller"] = self.count.get("kill_controller", 0) + 1
            return False

    def kill_in_creation(self, dice):
        return self._kill_in(dice, "create")

    def kill_in_deletion(self, dice):
        return self._kill_in(dice, "delete")

    def kill_in_reassignment(self, dice):
        return self._kill_in(dice, "reassign")

    def kill_in_election(self, dice):
        return self._kill_in(dice, "elect")


class Dice:
    """Choices from numbers that were drawn with the plan."""

    def __init__(self, numbers):
        self.numbers, self.at = numbers, 0

    def number(self):
        self.at += 1
        return (self.numbers[self.at % len(self.numbers)] * (1 + self.at // len(self.numbers) * 0.6180339)) % 1.0

    def span(self, least, most):
        return least + (most - least) * self.number()

    def choice(self, values):
        return values[int(self.number() * len(values))]

    def sample(self, values, n):
        left = list(values)
        return [left.pop(int(self.number() * len(left))) for _ in range(n)]

    def as_random(self):
        import random
        return random.Random(self.number())
