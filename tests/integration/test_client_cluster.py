"""The client library on a cluster of several brokers: racks, and leaders that are killed while records come and go."""
import json
import os
import signal
import subprocess
import tempfile
import threading
import unittest

import harness
from cluster import Cluster
from harness import until
from test_client_groups import Member, parts


class Everywhere:
    """What Member wants of a broker: all of them."""

    def __init__(self, cluster):
        self.address = ",".join(b.address for b in cluster.brokers.values())


class Producer:
    """kafka-verifiable-producer: numbers from 0 on, acks=all, idempotent. `acked`: partition -> [(offset, value)]."""

    def __init__(self, cluster, topic, throughput, folder):
        conf = os.path.join(folder, "producer.properties")
        with open(conf, "w") as f: # the tool itself would try nothing again
            f.write("retries=2147483647\nenable.idempotence=true\nlinger.ms=2\n")
        self.process = subprocess.Popen(
            [harness.program("kafka-verifiable-producer"), "--bootstrap-server", Everywhere(cluster).address, "--topic", topic,
             "--acks", "-1", "--throughput", str(throughput), "--producer.config", conf], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.acked, self.failed, self.count, self.sent = {}, [], 0, None
        self.errors = []
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self._read, self._read_errors)]
        for t in self.threads:
            t.start()

    def _read(self):
        for line in self.process.stdout:
            e = json.loads(line)
            if e["name"] == "producer_send_success":
                self.acked.setdefault(e["partition"], []).append((e["offset"], e["value"]))
                self.count += 1
            elif e["name"] == "producer_send_error":
                self.failed.append(e)
            elif e["name"] == "tool_data":
                self.sent = e["sent"]

    def _read_errors(self):
        self.errors += list(self.process.stderr)

    def more(self, n):
        at = self.count
        until("%d more are acknowledged" % n, lambda: self.count >= at + n, 90)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        for t in self.threads:
            t.join(10)
        self.process.stdout.close()
        self.process.stderr.close()
        bad = [line for line in self.errors if harness.SANITIZER.search(line)]
        assert not bad, "".join(self.errors)
        return status


class RacksTest(unittest.TestCase):
    """KIP-881: partitions go to members that sit beside a replica."""

    def share(self, c, topic, strategy):
        at = Everywhere(c)
        members = [Member(at, "g-" + strategy, client_rack=rack, partition_assignment_strategy=strategy) for rack in ("r2", "r1")]
        for m in members:
            m.ask("subscribe " + topic, "subscribe NONE")
        wanted = [parts(topic, 1, 3), parts(topic, 0, 2)]
        for m, share in zip(members, wanted):
            until("%s has %s" % (strategy, share), lambda: has(m) == share)
        return members

    def test_members_read_beside_them(self):
        with Cluster(2, each=lambda i: {"broker.rack": "r%d" % i, "min.insync.replicas": "1"}) as c:
            c.create_topic("t", assignment=[[1], [2], [1], [2]])
            for strategy in ("range", "sticky", "cooperative-sticky"):
                for m in self.share(c, "t", strategy):
                    self.assertEqual(m.close(), 0)
            # a broker that comes back in another rack: where all are in one, racks decide nothing
            members = self.share(c, "t", "range")
            c.broker(2).stop()
            c.broker(2).overrides["broker.rack"] = "r1"
            c.broker(2).start()
            c.wait_brokers()
            until("racks decide no more", lambda: sorted(map(sorted, map(has, members))) == [["t-0", "t-1"], ["t-2", "t-3"]])
            for m in members:
                self.assertEqual(m.close(), 0)


def has(m):
    """The partitions that a Member has, by what it has said."""
    mine = set()
    with m.cond:
        for line in m.lines:
            word, *rest = line.split(" ")
            if word == "assigned":
                mine |= set(rest)
            elif word in ("revoked", "lost"):
                mine -= set(rest)
    return mine


class KilledLeadersTest(unittest.TestCase):
    PARTITIONS, ROUNDS = 3, 3

    def check_log(self, c, p):
        """Every acknowledged record is in its place, once; what was never acknowledged is there at most once."""
        values = []
        for i in range(self.PARTITIONS):
            log = c.log_of("t", i)
            there = dict(log)
            for offset, value in p.acked.get(i, []):
                self.assertEqual(there.get(offset), value.encode(), "t-%d at %d" % (i, offset))
            numbers = [int(v) for _, v in log]
            self.assertEqual(numbers, sorted(numbers), "t-%d is out of order" % i)
            values += numbers
        self.assertEqual(len(values), len(set(values)), "some are there twice")
        self.assertEqual(sorted(values), list(range(p.sent)))
        return values

    def check_reader(self, c, m):
        """All that is in the log was read, in order: from its commit again at most behind a rebalance."""
        read, at = {}, {}
        for line in m.lines:
            word, *rest = line.split(" ")
            if word in ("assigned", "lost", "revoked"):
                at.clear()
            if word != "record":
                continue
            part, offset, value = rest
            self.assertGreater(int(offset), at.get(part, -1))
            at[part] = int(offset)
            self.assertEqual(read.setdefault((part, int(offset)), value), value)
        for i in range(self.PARTITIONS):
            for offset, value in c.log_of("t", i):
                self.assertEqual(read.pop(("t-%d" % i, offset), None), value.decode())
        self.assertEqual(read, {})

    def test_each_record_once_and_in_order(self):
        with tempfile.TemporaryDirectory(prefix="kafkad-test-") as folder, Cluster(3) as c:
            c.create_topic("t", partitions=self.PARTITIONS, replication=3)
            c.wait_isr("t", self.PARTITIONS, 3)
            m = Member(Everywhere(c), "g", auto_commit_interval_ms="100")
            m.ask("subscribe t", "subscribe NONE")
            p = Producer(c, "t", 1000, folder)
            try:
                p.more(300)
                for i in range(self.ROUNDS):
                    victim = c.leader("t", i % self.PARTITIONS)
                    c.broker(victim).kill()
                    p.more(500)
                    c.broker(victim).start()
                    c.wait_brokers()
                    c.wait_isr("t", self.PARTITIONS, 3)
                    p.more(200)
            finally:
                status = p.stop()
            self.assertEqual((status, p.failed[:3]), (0, []))
            values = self.check_log(c, p)
            until("all are read", lambda: len({line.split(" ")[3] for line in m.said("record .*")}) == len(values), 60)
            self.assertEqual(m.close(), 0)
            self.check_reader(c, m)


if __name__ == "__main__":
    unittest.main(verbosity=2)
