"""cluster.py - several brokers on a real ZooKeeper, and a history checker for what they promise.

    with cluster.Cluster(3) as c:
        c.create_topic("t", partitions=4, replication=3)
        with cluster.History(c, "t", 4) as h:     # producers with acks=all, consumers that read along
            h.grow(200); c.broker(c.leader("t", 0)).kill(); h.grow(200)
        h.check()

The history: each partition has a producer with an id and sequences, one batch at a time, sent until it is
acknowledged; and a consumer. In the end every acknowledged record is there exactly once and in order, and nothing
that the consumer has seen is gone.
"""
import os
import signal
import threading
import time

import kwire
import zookeeper
from harness import DEADLINE, until

RETRIABLE = {3, 5, 6, 7, 9, 13, 14, 19, 20, 56, 74, 75, 78}
DUPLICATE = 46


class Cluster:
    """Brokers 1..n. Their sessions end after 2 s, followers lag after 3 s, so that tests see failures soon."""

    def __init__(self, n=3, overrides=None, each=None, zookeepers=1, tick_ms=250, start=True):
        self.zk = zookeeper.ZooKeeper(zookeepers, tick_ms=tick_ms)
        self.brokers = {}
        settings = {"zookeeper.session.timeout.ms": "2000", "replica.lag.time.max.ms": "3000",
                    "default.replication.factor": str(min(n, 3)),
                    "min.insync.replicas": "2" if n > 2 else "1",
                    "offsets.topic.replication.factor": str(min(n, 3)),
                    "group.initial.rebalance.delay.ms": "0",
                    "controlled.shutdown.retry.backoff.ms": "200"}
        settings.update(overrides or {})
        try:
            for i in range(1, n + 1):
                own = dict(settings, **(each(i) if each else {}))
                self.brokers[i] = self.zk.broker(i, own, start=start)
            if start:
                self.wait_brokers()
        except BaseException:
            self.zk.close(False)
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        for i in self.running(): # those that a test has paused
            self.brokers[i].process.send_signal(signal.SIGCONT)
        self.zk.close(kind is None)

    def broker(self, i):
        return self.brokers[i]

    def running(self):
        return [i for i, b in self.brokers.items() if b.process and b.process.poll() is None]

    def conn(self, i=None, timeout=DEADLINE):
        return kwire.Conn(self.brokers[i or self.running()[0]].port, timeout=timeout)

    # -- what the cluster says of itself

    def metadata(self, i, topics=None):
        with self.conn(i) as k:
            return k.call("Metadata", 9, topics=None if topics is None else [{"name": t} for t in topics],
                          allow_auto_topic_creation=False)

    def wait_brokers(self):
        """All running brokers know all running brokers, and the same controller."""
        def same():
            alive = sorted(self.running())
            answers = [self.metadata(i, []) for i in alive]
            return all(sorted(b["node_id"] for b in a["brokers"]) == alive and
                       a["controller_id"] == answers[0]["controller_id"] >= 0 for a in answers)
        until("brokers know each other", same)

    @property
    def controller(self):
        with self.zk.client() as z:
            def found():
                try:
                    return z.json("/controller")
                except zookeeper.ZkError as e:
                    if e.code != zookeeper.NO_NODE:
                        raise
            return until("there is a controller", found)["brokerid"]

    def state(self, topic, partition):
        with self.zk.client() as z:
            return z.json("/brokers/topics/%s/partitions/%d/state" % (topic, partition))

    def leader(self, topic, partition):
        return self.state(topic, partition)["leader"]

    def wait_state(self, topic, partition, condition, deadline=DEADLINE):
        found = {}

        def reached():
            found["s"] = self.state(topic, partition)
            return condition(found["s"])
        try:
            until("state of %s-%d" % (topic, partition), reached, deadline)
        except AssertionError as e:
            raise AssertionError("%s: %s" % (e, found.get("s")))
        return found["s"]

    def wait_known(self, topic, partitions, brokers=None):
        """The brokers (all that run) know leaders of all partitions: what is in ZooKeeper they hear a moment later."""
        def known(i):
            found = self.metadata(i, [topic])["topics"][0]["partitions"]
            return len(found) == partitions and all(p["leader_id"] >= 0 for p in found)
        for i in brokers or self.running():
            until("broker %d knows %s" % (i, topic), lambda i=i: known(i))

    def wait_isr(self, topic, partitions, size, deadline=DEADLINE):
        for p in range(partitions):
            self.wait_state(topic, p, lambda s: len(s["isr"]) == size and s["leader"] in self.running(), deadline)

    # -- administration

    def on_controller(self, api, version, **values):
        with self.conn(self.controller) as k:
            return k.call(api, version, **values)

    def create_topic(self, name, partitions=1, replication=3, configs=None, assignment=None):
        topic = {"name": name, "num_partitions": -1 if assignment else partitions,
                 "replication_factor": -1 if assignment else replication,
                 "assignments": [{"partition_index": p, "broker_ids": ids}
                                 for p, ids in enumerate(assignment or [])],
                 "configs": [{"name": k, "value": str(v)} for k, v in (configs or {}).items()]}
        answer = self.on_controller("CreateTopics", 7, timeout_ms=30000, topics=[topic])["topics"][0]
        assert answer["error_code"] == 0, answer
        return answer["topic_id"]

    # -- records

    def log_of(self, topic, partition, leader=None):
        """All records of the partition, by its leader: [(offset, value)]."""
        out, at = [], 0
        with self.conn(leader or self.leader(topic, partition)) as k:
            while True:
                p = kwire.fetch(k, 11, [(topic, partition, at)], max_bytes=1 << 26)[0][2]
                assert p["error_code"] == 0, p
                got = list(kwire.records(p["records"] or b""))
                got = [r for r in got if r[0] >= at]
                if not got:
                    assert at == p["high_watermark"], (at, p["high_watermark"])
                    return out
                out += [(r[0], r[3]) for r in got]
                at = got[-1][0] + 1


class History:
    def __init__(self, cluster, topic, partitions, acks=-1, pause=0.0):
        self.cluster, self.topic, self.partitions = cluster, topic, partitions
        self.acks, self.pause = acks, pause
        self.acked = {p: [] for p in range(partitions)}    # values, in order
        self.seen = {p: {} for p in range(partitions)}     # offset -> value, by the consumer
        self.errors = []
        self.stopping = False
        self.threads = [threading.Thread(target=self._guard, args=(work, p), daemon=True)
                        for p in range(partitions) for work in (self._produce, self._consume)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, kind, value, trace):
        self.stop()

    def stop(self):
        self.stopping = True
        for t in self.threads:
            t.join(60)
        stuck = [t for t in self.threads if t.is_alive()]
        assert not stuck, "%d threads do not end" % len(stuck)

    def count(self):
        return sum(len(v) for v in self.acked.values())

    def grow(self, n, deadline=60):
        """Waits for n more acknowledged records, some in each partition."""
        before = {p: len(v) for p, v in self.acked.items()}

        def grown():
            if self.errors:
                raise AssertionError(self.errors[0])
            return self.count() - sum(before.values()) >= n and all(len(v) > before[p]
                                                                    for p, v in self.acked.items())
        until("%d more records are acknowledged" % n, grown, deadline)

    # -- threads

    def _guard(self, work, p):
        conns = {}
        try:
            work(p, conns)
        except BaseException as e:
            self.errors.append("%s of partition %d: %r" % (work.__name__, p, e))
        for i in list(conns):
            self._drop(conns, i)

    def _leader(self, p, conns):
        """A connection to the partition's leader by what any broker says; None: not now."""
        for i in self.cluster.running():
            try:
                k = conns.get(i) or conns.setdefault(i, kwire.Conn(self.cluster.brokers[i].port, timeout=5))
                m = k.call("Metadata", 9, topics=[{"name": self.topic}], allow_auto_topic_creation=False)
                part = [x for x in m["topics"][0]["partitions"] if x["partition_index"] == p]
                if part and part[0]["leader_id"] >= 0 and part[0]["leader_id"] in self.cluster.running():
                    leader = part[0]["leader_id"]
                    if leader not in conns:
                        conns[leader] = kwire.Conn(self.cluster.brokers[leader].port, timeout=5)
                    return leader, conns[leader]
            except (OSError, kwire.Closed, KeyError, IndexError):
                self._drop(conns, i)
        return None, None

    @staticmethod
    def _drop(conns, i):
        k = conns.pop(i, None)
        if k:
            k.close()

    def _producer_id(self, conns):
        while not self.stopping:
            for i in self.cluster.running():
                try:
                    k = conns.get(i) or conns.setdefault(i, kwire.Conn(self.cluster.brokers[i].port, timeout=5))
                    a = k.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=60000,
                               producer_id=-1, producer_epoch=-1)
                    if a["error_code"] == 0:
                        return a["producer_id"]
                except (OSError, kwire.Closed):
                    self._drop(conns, i)
            time.sleep(0.05)

    def _produce(self, p, conns):
        pid = self._producer_id(conns)
        sequence, leader, k = 0, None, None
        while not self.stopping:
            values = [b"%d-%d" % (p, sequence + i) for i in range(1 + sequence % 3)]
            data = kwire.simple_batch(*values, producer_id=pid, producer_epoch=0, sequence=sequence)
            while True:  # the same batch until it is taken, even when the test is over
                if k is None:
                    leader, k = self._leader(p, conns)
                    if k is None:
                        time.sleep(0.02)
                        if self.stopping and not self.cluster.running():
                            return
                        continue
                try:
                    a = kwire.produce(k, 9, [(self.topic, p, data)], acks=self.acks, timeout_ms=3000)[0]
                except (OSError, kwire.Closed):
                    self._drop(conns, leader)
                    k = None
                    continue
                if a["error_code"] in (0, DUPLICATE):
                    self.acked[p] += values
                    break
                if a["error_code"] not in RETRIABLE:
                    raise AssertionError("produce is answered %s" % a)
                k = None
                time.sleep(0.01)
                if self.stopping:
                    return  # not acknowledged: may be there or not
            sequence += len(values)
            if self.pause:
                time.sleep(self.pause)

    def _consume(self, p, conns):
        at, leader, k = 0, None, None
        while not self.stopping:
            if k is None:
                leader, k = self._leader(p, conns)
                if k is None:
                    time.sleep(0.02)
                    continue
            try:
                a = kwire.fetch(k, 11, [(self.topic, p, at)], max_wait_ms=200, max_bytes=1 << 22)[0][2]
            except (OSError, kwire.Closed):
                self._drop(conns, leader)
                k = None
                continue
            if a["error_code"] in RETRIABLE:
                k = None
                time.sleep(0.01)
                continue
            if a["error_code"]:
                raise AssertionError("fetch at %d is answered %s" % (at, a["error_code"]))
            for offset, _, _, value, _ in kwire.records(a["records"] or b""):
                if offset >= at:
                    self.seen[p][offset] = value
                    at = offset + 1

    # -- the verdict

    def check(self):
        assert not self.errors, self.errors[0]
        for p in range(self.partitions):
            log = self.cluster.log_of(self.topic, p)
            values = [v for _, v in log]
            there = set(values)
            assert len(there) == len(values), "partition %d has a record twice" % p
            assert [o for o, _ in log] == list(range(len(log))), "partition %d has a gap" % p
            n = len(self.acked[p])
            lost = [v for v in self.acked[p] if v not in there]
            assert not lost, "partition %d lost %d acknowledged records: %s" % (p, len(lost), lost[:5])
            assert values[:n] == self.acked[p], "partition %d is out of order" % p
            at = dict(log)
            gone = {o: v for o, v in self.seen[p].items() if at.get(o) != v}
            assert not gone, "partition %d: seen and gone: %s" % (p, sorted(gone.items())[:5])

    def check_copies(self, ids=None):
        """All replicas hold the same records up to the end: each in turn becomes readable as a follower. ids: of all
        partitions, or {partition: ids}."""
        for p in range(self.partitions):
            want = self.cluster.log_of(self.topic, p)
            for i in (ids[p] if isinstance(ids, dict) else ids) or self.cluster.running():
                until("replica %d of partition %d has all" % (i, p),
                      lambda i=i, p=p: self.cluster.log_of(self.topic, p, leader=i) == want)

    def check_bytes(self):
        """Stops the brokers; all replicas' logs are the same bytes. (All is committed by now.) Returns how many."""
        for i in self.cluster.running():
            self.cluster.broker(i).stop()
        total = 0
        for p in range(self.partitions):
            copies = {i: log_bytes(os.path.join(b.data, "%s-%d" % (self.topic, p)))
                      for i, b in self.cluster.brokers.items()
                      if os.path.isdir(os.path.join(b.data, "%s-%d" % (self.topic, p)))}
            first = min(copies)
            for i, data in copies.items():
                assert data == copies[first], "partition %d: replicas %d and %d differ from byte %d on (%d and %d)" % (
                    p, first, i, len(os.path.commonprefix([data, copies[first]])), len(copies[first]), len(data))
                total += len(data)
        return total

    def totals(self):
        return "%d records acknowledged, %d seen: lost 0, twice 0, out of order 0, seen and gone 0" % (
            self.count(), sum(len(v) for v in self.seen.values()))


def log_bytes(folder):
    """What all its segments hold, in order."""
    data = b""
    for name in sorted(n for n in os.listdir(folder) if n.endswith(".log")):
        with open(os.path.join(folder, name), "rb") as f:
            data += f.read()
    return data
