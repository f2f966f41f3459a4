"""Transactions on three brokers while brokers are killed: a producer that writes each of its transactions into three
partitions and a group's offset, and never gives one up. In the end readers of committed records see every transaction that
was committed exactly once, in order and whole, and nothing of the others; the group's offset is that of the last one."""
import threading
import time
import unittest

import cluster
import groupwire as g
import kwire
import txnwire as t
from harness import until

PARTITIONS = 3
# Another try helps, perhaps with another broker.
AGAIN = {3, 5, 6, 7, 13, t.LOADING, t.NOT_AVAILABLE, t.NOT_COORDINATOR, t.NOT_ENOUGH_REPLICAS, 20, t.CONCURRENT, 56}
OVERRIDES = {"transaction.state.log.num.partitions": "5", "transaction.state.log.replication.factor": "3",
             "transaction.state.log.min.isr": "2", "offsets.topic.num.partitions": "5", "request.timeout.ms": "5000",
             "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}


class Client:
    """A transactional producer that finds its way. Not for several threads."""

    def __init__(self, c, id, topic, timeout_ms=60000, patience=120):
        self.cluster, self.id, self.topic, self.timeout_ms, self.patience = c, id, topic, timeout_ms, patience
        self.conns = {}
        self.sequences = [0] * PARTITIONS
        self.pid = self.epoch = -1

    def close(self):
        for conn in self.conns.values():
            conn.close()
        self.conns = {}

    def conn(self, node):
        if node not in self.conns:
            self.conns[node] = kwire.Conn(self.cluster.broker(node).port, timeout=10)
        return self.conns[node]

    def call(self, node, api, version, **values):
        """None when there is no answer, or nobody to ask."""
        if node is None:
            return None
        try:
            return self.conn(node).call(api, version, **values)
        except (kwire.Closed, OSError, AssertionError):
            dead = self.conns.pop(node, None)
            if dead:
                dead.close()
            return None

    def any_node(self):
        running = self.cluster.running()
        return running[int(time.monotonic() * 1000) % len(running)] if running else None

    def leader(self, partition):
        a = self.call(self.any_node(), "Metadata", 9, topics=[{"name": self.topic}], allow_auto_topic_creation=False)
        for p in a["topics"][0]["partitions"] if a else []:
            if p["partition_index"] == partition and p["leader_id"] >= 0:
                return p["leader_id"]
        return None

    def coordinator(self, key_type, key):
        a = self.call(self.any_node(), "FindCoordinator", 2, key=key, key_type=key_type)
        return a["node_id"] if a and a["error_code"] == 0 else None

    def persist(self, what, where, api, version, error_of, **values):
        """Asks until the answer is one that stays."""
        end, said = time.monotonic() + self.patience, None
        while time.monotonic() < end:
            node = where()
            a = self.call(node, api, version, **values) if node else None
            said = error_of(a) if a else None
            if a and said not in AGAIN:
                return a
            time.sleep(0.02)
        raise AssertionError("%s: nothing for %d s but %s" % (what, self.patience, said))

    def at_coordinator(self, api, version, error_of=lambda a: a["error_code"], **values):
        return self.persist(api, lambda: self.coordinator(1, self.id), api, version, error_of, **values)

    def who(self):
        return {"transactional_id": self.id, "producer_id": self.pid, "producer_epoch": self.epoch}

    def init(self):
        a = self.at_coordinator("InitProducerId", 4, transactional_id=self.id, transaction_timeout_ms=self.timeout_ms)
        assert a["error_code"] == 0, a
        self.pid, self.epoch, self.sequences = a["producer_id"], a["producer_epoch"], [0] * PARTITIONS

    def add(self):
        def error_of(a):
            return max(p["partition_error_code"] for x in a["results_by_topic_v3_and_below"]
                       for p in x["results_by_partition"])
        return error_of(self.at_coordinator(
            "AddPartitionsToTxn", 3, error_of, v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.pid, v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[{"name": self.topic, "partitions": list(range(PARTITIONS))}]))

    def produce(self, partition, value):
        def error_of(a):
            return a["responses"][0]["partition_responses"][0]["error_code"]
        data = kwire.simple_batch(value, producer_id=self.pid, producer_epoch=self.epoch,
                                  sequence=self.sequences[partition], attributes=t.TRANSACTIONAL)
        error = error_of(self.persist("Produce", lambda: self.leader(partition), "Produce", 9, error_of,
                                      transactional_id=self.id,
                                      **kwire.produce_request([(self.topic, partition, data)], timeout_ms=5000)))
        self.sequences[partition] += error == 0
        return error

    def commit_offset(self, group, offset):
        error = self.at_coordinator("AddOffsetsToTxn", 3, group_id=group, **self.who())["error_code"]
        if error:
            return error

        def error_of(a):
            return a["topics"][0]["partitions"][0]["error_code"]
        return error_of(self.persist(
            "TxnOffsetCommit", lambda: self.coordinator(0, group), "TxnOffsetCommit", 3, error_of, group_id=group,
            topics=[{"name": self.topic, "partitions": [
                {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}]}], **self.who()))

    def end(self, commit):
        return self.at_coordinator("EndTxn", 3, committed=commit, **self.who())["error_code"]


class Worker(threading.Thread):
    """One transaction after the other: every third one is aborted."""

    def __init__(self, c, id, topic):
        super().__init__(daemon=True)
        self.client = Client(c, id, topic)
        self.group = "group-" + id
        self.committed, self.aborted, self.error = [], 0, None
        self.stopping = False
        self.cond = threading.Condition()

    def transaction(self, i):
        """Was it committed?"""
        c, value = self.client, b"%s:%d" % (self.client.id.encode(), i)
        steps = [c.add] + [lambda p=p: c.produce(p, value) for p in range(PARTITIONS)]
        steps += [lambda: c.commit_offset(self.group, i)]
        errors = []
        for step in steps:
            errors.append(step())
            if errors[-1]:
                break
        commit = not any(errors) and i % 3 != 2
        error = c.end(commit)
        if error or any(errors):
            raise AssertionError("transaction %d: %s, then its end: %s" % (i, errors, error))
        return commit

    def run(self):
        try:
            self.client.init()
            i = 0
            while not self.stopping:
                committed = self.transaction(i)
                with self.cond:
                    if committed:
                        self.committed.append(i)
                    else:
                        self.aborted += 1
                    self.cond.notify_all()
                i += 1
        except BaseException as e:
            with self.cond:
                self.error = e
                self.cond.notify_all()
        finally:
            self.client.close()

    def grow(self, n):
        with self.cond:
            goal = len(self.committed) + n
            if not self.cond.wait_for(lambda: self.error or len(self.committed) >= goal, 120):
                raise AssertionError("%s came no further than %d transactions" % (self.client.id, len(self.committed)))
        if self.error:
            raise self.error

    def finish(self):
        self.stopping = True
        self.join(150)
        if self.error:
            raise self.error


def committed_records(c, topic, partition):
    out, at = [], 0
    client = Client(c, "", topic)
    while True:
        node = until("a leader", lambda: client.leader(partition))
        with c.conn(node) as k:
            end = kwire.list_offset(k, 5, topic, partition, -1, current_leader_epoch=-1)["offset"]
            stable = k.call("ListOffsets", 5, replica_id=-1, isolation_level=1, topics=[
                {"name": topic, "partitions": [{"partition_index": partition, "timestamp": -1,
                                                "current_leader_epoch": -1}]}])["topics"][0]["partitions"][0]["offset"]
            if end == stable:
                break
        time.sleep(0.05)
    with c.conn(node) as k:
        while at < end:
            values, at = t.committed_from(k, topic, partition, at)
            out += values
    client.close()
    return out


def check(case, c, topic, workers):
    for partition in range(PARTITIONS):
        seen = committed_records(c, topic, partition)
        for w in workers:
            prefix = w.client.id.encode() + b":"
            mine = [int(v.split(b":")[1]) for v in seen if v.startswith(prefix)]
            case.assertEqual(mine, w.committed, "partition %d, %s" % (partition, w.client.id))
    for w in workers:
        client = Client(c, w.client.id, topic)

        def offset():
            node = client.coordinator(0, w.group)
            a = node and client.call(node, "OffsetFetch", 7, group_id=w.group, require_stable=True, topics=[
                {"name": topic, "partition_indexes": [0]}])
            p = a["topics"][0]["partitions"][0] if a and a["topics"] else None
            return p and p["error_code"] == 0 and [p["committed_offset"]]
        case.assertEqual(until("the offset of %s" % w.group, offset), [w.committed[-1]])
        client.close()


class UnderKills(unittest.TestCase):
    def play(self, events, workers=2, **overrides):
        with cluster.Cluster(3, dict(OVERRIDES, **overrides)) as c:
            c.create_topic("t", partitions=PARTITIONS, replication=3)
            workers = [Worker(c, "tx-%d" % i, "t") for i in range(workers)]
            for w in workers:
                w.start()
            for w in workers:
                w.grow(5)
            for event in events:
                event(c, workers)
                for w in workers:
                    w.grow(5)
            for w in workers:
                w.finish()
            check(self, c, "t", workers)

    @staticmethod
    def kill(which):
        """The broker comes back when the others have gone on without it."""
        def event(c, workers):
            node = until("whom to kill", lambda: which(c, workers))
            c.broker(node).kill()
            for w in workers:
                w.grow(10)
            c.broker(node).start()
            c.wait_isr("t", PARTITIONS, 3)
        return event

    def coordinator(self, c, workers):
        client = Client(c, workers[0].client.id, "t")
        try:
            return client.coordinator(1, client.id)
        finally:
            client.close()

    def test_the_coordinator_is_killed(self):
        self.play([self.kill(self.coordinator)] * 3)

    def test_a_leader_is_killed(self):
        self.play([self.kill(lambda c, w: c.leader("t", 0)), self.kill(lambda c, w: c.leader("t", 1))])

    def test_brokers_are_restarted_one_after_the_other(self):
        def restart(i):
            def event(c, workers):
                c.broker(i).stop()
                for w in workers:
                    w.grow(5)
                c.broker(i).start()
                c.wait_isr("t", PARTITIONS, 3)
            return event
        self.play([restart(i) for i in (1, 2, 3)])

    def test_all_are_killed_at_once(self):
        def event(c, workers):
            for i in (1, 2, 3):
                c.broker(i).kill()
            for i in (1, 2, 3):
                c.broker(i).start()
            c.wait_brokers()
        self.play([event])

    def test_who_dies_with_his_transaction_open(self):
        """The coordinator that comes aborts what is too old, though it began under another."""
        with cluster.Cluster(3, OVERRIDES) as c:
            c.create_topic("t", partitions=PARTITIONS, replication=3)
            left = Client(c, "left", "t", timeout_ms=3000)
            left.init()
            self.assertEqual(left.add(), 0)
            self.assertEqual([left.produce(p, b"left:1") for p in range(PARTITIONS)], [0] * PARTITIONS)
            node = until("its coordinator", lambda: left.coordinator(1, "left"))
            c.broker(node).kill()

            def state():
                a = left.call(left.coordinator(1, "left") or left.any_node(), "DescribeTransactions", 0,
                              transactional_ids=["left"])
                return a and a["transaction_states"][0]["transaction_state"]
            until("it is aborted", lambda: state() == "CompleteAbort", 60)
            c.broker(node).start()
            self.assertEqual(left.end(True), t.PRODUCER_FENCED)
            for p in range(PARTITIONS):
                self.assertEqual(committed_records(c, "t", p), [])
            left.close()


if __name__ == "__main__":
    unittest.main()
