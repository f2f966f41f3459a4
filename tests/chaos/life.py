"""life.py - one cluster from its first start to the verdict: 3 to 5 brokers and 3 ZooKeeper servers in namespaces, a
workload, faults for so long, then peace, in which everything must become whole, and what clients were told is held
against what is there."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time

import churn
import faults
import groups
import groupwire
import harness
import tools
import topology
import txn_history
import txn_library
import txns
import verdict
import view
import workload
from nodes import Broker, ZooKeeperServer
from view import GONE

LEVELS = ["2.3", "2.5", "2.7", "2.8", "3.2", "3.9"]
PEACE = float(os.environ.get("KAFKAD_CHAOS_PEACE", "90"))  # seconds until all is whole
SETTINGS = {
    "zookeeper.session.timeout.ms": "3000", "zookeeper.connection.timeout.ms": "60000",
    "replica.lag.time.max.ms": "4000", "replica.socket.timeout.ms": "6000", "controller.socket.timeout.ms": "6000",
    "default.replication.factor": "3", "min.insync.replicas": "2", "unclean.leader.election.enable": "false",
    "offsets.topic.replication.factor": "3", "offsets.topic.num.partitions": str(txns.OFFSETS_PARTITIONS), "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000", "group.consumer.session.timeout.ms": "5000",
    "group.consumer.min.heartbeat.interval.ms": "300", "group.consumer.heartbeat.interval.ms": "1000",
    "controlled.shutdown.retry.backoff.ms": "500", "leader.imbalance.check.interval.seconds": "7",
    "log.retention.ms": "-1", "replica.high.watermark.checkpoint.interval.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "2000", "log.segment.bytes": "1000000", **txns.SETTINGS}


EFFECTS = {"controllers elected": r"Controller id=\d+\] elected, epoch", "sessions expired": r"session 0x\w+ has expired",
           "log dirs failed": r"\[log dir\] \S+ goes offline", "logs cut back": r": cut from \d+ to \d+",
           "coordinators loaded": r"_(?:offsets|state)-\d+: loaded", "transactions timed out": r": its transaction is aborted after",
           "elections without a leader": r"no replica of partition \S+ can lead it", "moves": r"partition \S+ has moved"}


class Life:
    def __init__(self, seed, folder, out, only=None, partitions=6, settings=()):
        self.seed, self.folder, self.out = seed, folder, out
        self.random = random.Random(seed)
        self.began = time.monotonic()
        self.violations = []
        self.count = verdict.Count()
        self.level_at = self.random.randrange(len(LEVELS))
        self.n = self.random.choice((3, 4, 5))
        self.partitions = partitions
        self.more_settings = dict(settings)
        self.expected_to_end = set()
        self.ended = []
        self.ledgers, self.producers, self.readers, self.members, self.seats = [], [], [], [], []
        self.lock = threading.Lock()
        self.effects = {}
        self.over = threading.Event()
        self.only = only
        os.makedirs(folder)
        self.events = open(os.path.join(folder, "events.log"), "w")

    # -- what is told

    def tell(self, text):
        with self.lock:
            self.events.write("%s %8.2f %s\n" % (time.strftime("%H:%M:%S"), time.monotonic() - self.began, text))
            self.events.flush()

    def wrong(self, text):
        self.tell("VIOLATION " + text)
        with self.lock:
            self.violations.append(text)
            if len(self.violations) <= 20:
                self.out("VIOLATION (seed %d, after %.1f s) %s" % (self.seed, time.monotonic() - self.began, text))

    def saw(self, what, n=1):
        with self.lock:
            self.effects[what] = self.effects.get(what, 0) + n

    def _read_effects(self):
        """From what brokers say: a fault that does nothing shows here."""
        for b in getattr(self, "brokers", []):
            with open(b.log, errors="replace") as f:
                text = f.read()
            for what, pattern in EFFECTS.items():
                self.saw(what, len(re.findall(pattern, text)))

    # -- life

    @property
    def level(self):
        return LEVELS[self.level_at]

    def next_level(self):
        """False: it is the last one already."""
        if self.level_at + 1 >= len(LEVELS):
            return False
        self.level_at += 1
        for b in self.brokers:
            b.settings["inter.broker.protocol.version"] = self.level
        return True

    def stopped(self, broker):
        """A clean stop; it may take as long as a controlled shutdown's tries, not forever."""
        if broker.running:
            status = broker.stop(90)
            if status is None:
                self.wrong("%s did not stop within 90 s of SIGTERM" % broker.name)
            elif status < 0 and not (status == -signal.SIGTERM and not broker.this_life()):  # (hardly a process yet)
                self.wrong("%s ended with signal %d when it was to stop" % (broker.name, -status))

    def start(self):
        zk = ["zk%d" % i for i in (1, 2, 3)]
        names = ["b%d" % i for i in range(1, self.n + 1)]
        self.net = topology.Network(self.seed, names + zk + ["client"])
        topology.move_in("client")
        self.servers = [ZooKeeperServer(self.net, i, zk, self.folder, 500) for i in (1, 2, 3)]
        for s in self.servers:
            s.start()
        settings = dict(SETTINGS, **{"zookeeper.connect": ",".join("%s:2181" % s.address for s in self.servers),
                                     "inter.broker.protocol.version": self.level,
                                     "num.replica.fetchers": str(self.random.choice((1, 2)))}, **self.more_settings)
        self.brokers = [Broker(self.net, i, self.folder, settings) for i in range(1, self.n + 1)]
        harness.until("ZooKeeper serves", lambda: all(s.mode() for s in self.servers), 90)
        for b in self.brokers:
            b.start()
        for b in self.brokers:
            assert b.wait_started(90), "broker %d does not start:\n%s" % (b.number, b.tail())
        self.view = view.View(self.brokers, self.servers)
        threading.Thread(target=self._supervise, daemon=True).start()
        self.topics = [("t", self.partitions), ("v", 3)] + [(topic, txns.PARTITIONS) for topic in txns.TOPICS]
        self.targets = self.topics + [("__consumer_offsets", 3), ("__transaction_state", 3)]
        for topic, n in self.topics:
            harness.until("topic %s is made" % topic, lambda: self._create(topic, n), 60)
        self._start_workload()
        self.faults = faults.Faults(self, self.random, self.only)
        self.tell("seed %d: %d brokers, level %s" % (self.seed, self.n, self.level))

    def _create(self, topic, n):
        controller = self.view.controller()
        if controller is None:
            return False
        a = self.view.call(controller, "CreateTopics", 5, timeout_ms=20000, topics=[
            {"name": topic, "num_partitions": n, "replication_factor": 3}])
        return a["topics"][0]["error_code"] in (0, churn.EXISTS)

    def _start_workload(self):
        self.ledgers = [workload.Ledger("t", p) for p in range(self.partitions)]
        self.producers = [workload.Producer(x, self.view, self.wrong, self.seed, 0.04) for x in self.ledgers]
        self.readers = [workload.Reader(x, self.view, self.wrong, self.seed) for x in self.ledgers]
        self.hopper = workload.Hopper(self.ledgers, self.view, self.wrong, self.seed)
        self.group = groups.GroupHistory("wire", "t", self.partitions, self.wrong)
        self.members = [groups.Member(i, self.group, self.view, self.wrong, self.seed) for i in (1, 2, 3)]
        self.churn = churn.Churn(self.view, "t", self.partitions, self.wrong, self.seed)
        self.tools = tools.Tools(self.net, "client", "v", 3, self.brokers, self.folder, self.wrong)
        self.tools.start()
        self.transactions = txn_history.TxnHistory(self.wrong)
        self.seats = [txns.Seat(i, self.ledgers[i], self.transactions, self.view, self.wrong, self.seed) for i in range(3)]
        self.seats.append(txn_library.LibrarySeat(3, self.ledgers[3], self.transactions, self.view, self.wrong, self.seed,
                                                  self.tools))
        self.readers_too = [self.hopper, txns.Reader(self.transactions, self.view, self.wrong, self.seed)]
        for t in self.producers + self.readers + self.readers_too + self.members + self.seats + [self.churn]:
            t.start()

    def _supervise(self):
        """Processes that end by themselves are told of, and started again."""
        while not self.over.wait(0.2):
            for n in self.brokers + self.servers:
                process = n.process
                status = process.poll() if process else None
                if status is None or process in self.ended:
                    continue
                if n.process is not process or status == -signal.SIGKILL:
                    continue  # (killed by a fault a moment ago)
                self.ended.append(process)
                if status < 0:
                    self.wrong("%s ended with signal %d:\n%s" % (n.name, -status, n.tail()))
                elif n not in self.expected_to_end and not n.busy.locked():
                    self.tell("%s ended with status %d by itself" % (n.name, status))
                if n not in self.expected_to_end and n.busy.acquire(blocking=False):
                    if n.process is process:
                        n.start()
                    n.busy.release()

    def start_all(self):
        for n in self.servers + self.brokers:
            with n.busy:
                if not n.running:
                    n.start()

    # -- peace

    def _wait(self, what, condition, seconds):
        """Until condition() is None; else what it says is wrong."""
        end = time.monotonic() + seconds
        while True:
            said = condition()
            if said is None:
                return True
            if time.monotonic() > end:
                self.wrong("%s: not within %.0f s: %s" % (what, seconds, said))
                return False
            time.sleep(0.2)

    def become_whole(self):
        """Liveness: leaders, full in-sync sets, coordinators, and acknowledgements again."""
        since = time.monotonic()
        good = self._wait("the cluster is whole", lambda: verdict.trouble(self.view, self.brokers), PEACE)
        good = self._wait("groups have coordinators", self._groups_trouble, PEACE) and good
        before = [x.acked for x in self.ledgers]
        good = self._wait("all partitions take records", lambda: next(
            ("%s stays at %d" % (x.name, x.acked) for x, n in zip(self.ledgers, before) if x.acked == n), None),
            PEACE) and good
        good = self._wait("transactions come to their end", self._transactions_trouble(), PEACE) and good
        for name in self.tools.died():
            self.wrong("%s has ended" % name)
        self.tell("whole after %.1f s" % (time.monotonic() - since))
        return good

    def is_whole(self, seconds):
        end = time.monotonic() + seconds
        while verdict.trouble(self.view, self.brokers) is not None:
            if time.monotonic() > end:
                return False
            time.sleep(0.2)
        return True

    def _groups_trouble(self):
        for group in ("wire", "classic", "next"):
            try:
                coordinator = self.view.coordinator(group)
                if coordinator is None:
                    return "group %s has no coordinator" % group
                api, field = ("ConsumerGroupDescribe", "group_ids") if group == "next" else ("DescribeGroups", "groups")
                a = self.view.call(coordinator, api, 0, **{field: [group]})["groups"][0]
                state = a["group_state"]
                if a["error_code"] or state != "Stable":
                    return "group %s at broker %d: error %d, %s" % (group, coordinator, a["error_code"], state)
            except GONE as e:
                return "group %s: %r" % (group, e)
        return None

    def _transactions_trouble(self):
        """A condition: each seat commits anew, and what is open now ends: last stable offsets pass today's ends."""
        committed = {s: self.transactions.many(s.number) for s in self.seats}
        wanted = {}

        def condition():
            for s, before in committed.items():
                if self.transactions.many(s.number) == before:
                    return "%s has committed nothing since" % s.name
            try:
                for topic, n in self._with_transactions():
                    for p in range(n):
                        stable, end = txns.ends(self.view, self.view.leader(topic, p), (topic, p))
                        if stable < wanted.setdefault((topic, p), end):
                            return "%s-%d: a transaction is open at %d of %d" % (topic, p, stable, wanted[topic, p])
            except (GONE, KeyError, AssertionError) as e:
                return "%r" % e
            return None
        return condition

    def _with_transactions(self):
        return [(topic, n) for topic, n in self.targets if topic in txns.TOPICS or topic == "__consumer_offsets"]

    def finish(self):
        """Everybody stops, then the verdict."""
        self._end(self.seats, 60)
        self._end(self.producers, 60)
        self.tools.stop("producer")
        self._wait("readers reach the end", lambda: next(
            ("%s at %d of %d" % (r.ledger.name, r.at, r.ledger.acked) for r in self.readers if r.at < r.ledger.acked),
            None), 60)
        self._wait("the group reaches the end", lambda: next(
            ("partition %d: %d of %d" % (p, self.group.committed_most(p), x.acked)
             for p, x in enumerate(self.ledgers) if self.group.committed_most(p) < x.acked), None), 60)
        self._end(self.readers + self.readers_too + self.members, 60)
        self.tools.stop("classic")
        self.tools.stop("next")
        self.judge()

    def _end(self, workers, seconds):
        for w in workers:
            w.stopping.set()
        end = time.monotonic() + seconds
        for w in workers:
            w.join(max(0, end - time.monotonic()))
            if w.is_alive():
                self.wrong("%s does not end" % w.name)
                if hasattr(w, "give_up"):
                    w.give_up.set()

    def judge(self):
        for x in self.ledgers:
            log = verdict.read_partition(self.view, x.topic, x.index, self._leader(x.topic, x.index))
            self.count.add(verdict.judge(x, log, self.wrong))
        logs = {p: verdict.read_partition(self.view, "v", p, self._leader("v", p)) for p in range(3)}
        self.given_up = self.tools.judge(logs, self.count)
        self._judge_copies()
        self._judge_group()
        self._judge_transactions()
        self.churn.judge(self.brokers)

    def _leader(self, topic, index):
        return harness.until("leader of %s-%d" % (topic, index), lambda: self.view.leader(topic, index), 30)

    def _judge_copies(self):
        replicas = verdict.assignments(self.view)
        for topic, n in self.topics:
            for p in range(n):
                found = []

                def same():
                    found.clear()
                    verdict.compare_copies(self.brokers, topic, p, replicas[topic, p], found.append)
                    return found[0] if found else None
                self._wait("copies of %s-%d are equal" % (topic, p), same, 20)

    def _judge_group(self):
        def ask():
            coordinator = self.view.coordinator("wire")
            if coordinator is None:
                return None
            a = self.view.call(coordinator, "OffsetFetch", 5, group_id="wire", topics=[
                {"name": "t", "partition_indexes": list(range(self.partitions))}])
            if a["error_code"] or any(p["error_code"] for t in a["topics"] for p in t["partitions"]):
                return None
            return {p["partition_index"]: p["committed_offset"] for t in a["topics"] for p in t["partitions"]}
        self.group.judge(harness.until("committed offsets", ask, 30))

    def _judge_transactions(self):
        self._wait("no transaction is open", lambda: (txns.open_transactions(self.view) or [None])[0], PEACE)
        ends, logs = {}, {}
        for topic, n in self._with_transactions():
            for p in range(n):
                leader = self._leader(topic, p)
                ends[topic, p] = txns.ends(self.view, leader, (topic, p))
                if topic in txns.TOPICS:
                    logs[topic, p] = txns.read_all(self.view, leader, (topic, p), ends[topic, p][0])
        self.transactions.judge_ends(ends)
        for s in self.seats:
            if s.final_offset is None:
                self.wrong("%s did not come to its end" % s.name)
        self.transactions.judge(logs, {s.number: s.final_offset for s in self.seats if s.final_offset is not None})

    def transaction_totals(self):
        count = dict(self.transactions.count) if self.seats else {}
        count["library"] = self.transactions.many(3) if self.seats else 0
        count["zombies"] = sum(s.all_zombies for s in self.seats)
        count["fenced"] = sum(s.fenced for s in self.seats)
        return count

    # -- the end

    def close(self):
        self.over.set()
        try:
            if self.violations:
                self.keep()
                self.hold()
            for w in self.producers + self.readers + self.members + self.seats:
                w.stopping.set()
                if hasattr(w, "give_up"):
                    w.give_up.set()
            if self.ledgers:
                self.tools.kill()
        finally:
            for n in getattr(self, "brokers", []) + getattr(self, "servers", []):
                n.kill()
            self._read_effects()
            for b in getattr(self, "brokers", []):
                for d in b.dirs:
                    subprocess.run(["umount", "-l", d])
            self.net.close()
            self.events.close()
            if not self.violations:
                shutil.rmtree(self.folder, ignore_errors=True)

    def keep(self):
        """Beside logs: the znodes, and the brokers' files."""
        open(os.path.join(os.path.dirname(self.folder), "KEPT"), "w").close()  # the next run leaves it alone
        try:
            with self.view.zookeeper() as z, open(os.path.join(self.folder, "znodes.json"), "w") as f:
                json.dump(dump(z, "/"), f, indent=1)
        except Exception as e:
            self.tell("znodes are not to be had: %r" % e)
        for b in getattr(self, "brokers", []):
            os.makedirs(os.path.join(self.folder, "files", b.name))
            for d in b.dirs:  # (brokers run: files come and go)
                subprocess.run(["cp", "-r", d, os.path.join(self.folder, "files", b.name)], stderr=subprocess.DEVNULL)

    def hold(self):
        """For a look at the living: KAFKAD_CHAOS_HOLD=1 waits until somebody writes to the pipe HOLD."""
        if os.environ.get("KAFKAD_CHAOS_HOLD"):
            path = os.path.join(self.folder, "HOLD")
            os.mkfifo(path)
            self.out("chaos: holds until something is written to %s" % path)
            with open(path) as pipe:
                pipe.read()

    def outages(self):
        """(how many, seconds of all, the longest)"""
        all_ = [s for x in self.ledgers for s in x.outages]
        return len(all_), sum(all_), max(all_, default=0)


def dump(z, path):
    out = {}
    for name in z.children(path):
        child = path.rstrip("/") + "/" + name
        if child != "/zookeeper":
            out[child] = (z.get(child) or b"").decode("utf-8", "replace")
            out.update(dump(z, child))
    return out
