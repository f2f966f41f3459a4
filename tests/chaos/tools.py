"""tools.py - the C library's verifiable producer and consumers as part of the workload: on a topic of their own, two
producers that share its partitions, and two groups, one of each protocol. What they print is judged at the end."""
import json
import os
import subprocess

import harness
from nodes import KAFKA_PORT

PRODUCER = """enable.idempotence=true
acks=all
retries=2147483647
request.timeout.ms=5000
delivery.timeout.ms=180000
max.block.ms=180000
metadata.max.age.ms=5000
linger.ms=5
"""
CONSUMER = """metadata.max.age.ms=5000
request.timeout.ms=8000
"""


class Tools:
    def __init__(self, net, node, topic, partitions, brokers, folder, wrong):
        self.net, self.node, self.topic, self.partitions, self.wrong = net, node, topic, partitions, wrong
        self.folder = os.path.join(folder, "tools")
        os.makedirs(self.folder)
        self.servers = ",".join("%s:%d" % (b.address, KAFKA_PORT) for b in brokers)
        self.running = {}
        self.log = open(os.path.join(self.folder, "transactions.err"), "ab")
        for name, text in (("producer", PRODUCER), ("consumer", CONSUMER)):
            with open(os.path.join(self.folder, name + ".properties"), "w") as f:
                f.write(text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        for i in (1, 2):
            self._start("producer%d" % i, "kafka-verifiable-producer", "--value-prefix", str(i), "--throughput", "100",
                        "--producer.config", self.path("producer.properties"))
        for group, protocol in (("classic", "classic"), ("next", "consumer")):
            for i in (1, 2):
                more = ["--session-timeout", "6000"] if protocol == "classic" else []
                self._start("%s%d" % (group, i), "kafka-verifiable-consumer", "--group-id", group, "--group-protocol",
                            protocol, "--consumer.config", self.path("consumer.properties"), *more)

    def _start(self, name, program, *args):
        with open(self.path(name + ".out"), "wb") as out, open(self.path(name + ".err"), "wb") as err:
            self.running[name] = self.net.popen(
                self.node, [harness.program(program), "--topic", self.topic, "--bootstrap-server", self.servers, *args],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def transactions(self, id, timeout_ms):
        """A process of the test program `transactions`: a producer that does what it is told on its input."""
        settings = dict(line.split("=", 1) for line in PRODUCER.split())
        settings.update({"bootstrap.servers": self.servers, "transactional.id": id, "transaction.timeout.ms": timeout_ms,
                         "delivery.timeout.ms": 60000, "max.block.ms": 60000})
        return self.net.popen(self.node, [harness.program("tests/transactions")] + ["%s=%s" % x for x in settings.items()],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, bufsize=0)

    def stop(self, prefix, deadline=90):
        for name in [n for n in self.running if n.startswith(prefix)]:
            self.running[name].terminate()
        for name in [n for n in self.running if n.startswith(prefix)]:
            process = self.running.pop(name)
            try:
                status = process.wait(deadline)
                if status:
                    self.wrong("%s ended with status %d" % (name, status))
            except subprocess.TimeoutExpired:
                self.running[name] = process  # killed with the others
                self.wrong("%s does not end" % name)
                self._stacks(name, process)

    def _stacks(self, name, process):
        """Where its threads are, if gdb is there to say so."""
        with open(self.path(name + ".stacks"), "wb") as out:
            subprocess.run("command -v gdb >/dev/null && gdb -p %d -batch -ex 'thread apply all backtrace full'" % process.pid,
                           shell=True, stdout=out, stderr=subprocess.DEVNULL, timeout=60)

    def kill(self):
        for process in self.running.values():
            process.kill()
            process.wait()

    def died(self):
        return [n for n, p in self.running.items() if p.poll() is not None]

    def events(self, name):
        with open(self.path(name + ".out"), errors="replace") as f:
            for line in f:
                if line.endswith("\n"):
                    yield json.loads(line)

    # -- the verdict

    def acks(self):
        """[(partition, offset, value)], and how many were given up."""
        out, failed = [], 0
        for i in (1, 2):
            for e in self.events("producer%d" % i):
                if e["name"] == "producer_send_success":
                    out.append((e["partition"], e["offset"], e["value"].encode()))
                failed += e["name"] == "producer_send_error"
        return out, failed

    def judge(self, logs, count):
        """logs: {partition: [(offset, value)]}"""
        acked, failed = self.acks()
        at = {(p, o): v for p, log in logs.items() for o, v in log}
        values = [v for log in logs.values() for _, v in log]
        count.acknowledged += len(acked)
        there = set(values)
        lost = [a for a in acked if a[2] not in there]
        moved = [a for a in acked if a[2] in there and at.get(a[:2]) != a[2]]
        count.lost += len(lost)
        count.duplicated += len(values) - len(there)
        back = 0
        for p, log in logs.items():
            newest = {}
            for _, v in log:
                who, number = v.split(b".")
                back += int(number) < newest.get(who, -1)
                newest[who] = int(number)
        count.reordered += back
        for what, n in (("lost: %s" % lost[:3], len(lost)), ("not where told: %s" % moved[:3], len(moved)),
                        ("twice", len(values) - len(there)), ("out of order", back)):
            if n:
                self.wrong("%s: %d records of the verifiable producers are %s" % (self.topic, n, what))
        for group in ("classic", "next"):
            self._judge_group(group, {p: len(log) for p, log in logs.items()})
        return failed

    def _judge_group(self, group, ends):
        """What was committed has been read by one of the members, without a gap."""
        read, committed = {p: [] for p in ends}, {p: 0 for p in ends}
        for i in (1, 2):
            for e in self.events("%s%d" % (group, i)):
                for x in e["partitions"] if e["name"] == "records_consumed" else []:
                    if x["count"] != x["maxOffset"] - x["minOffset"] + 1:
                        self.wrong("group %s, partition %d: %s" % (group, x["partition"], json.dumps(x)))
                    read[x["partition"]].append((x["minOffset"], x["maxOffset"] + 1))
                for x in e["offsets"] if e["name"] == "offsets_committed" and e["success"] else []:
                    committed[x["partition"]] = max(committed[x["partition"]], x["offset"])
        for p, pieces in read.items():
            at = 0
            for first, end in sorted(pieces):
                if first > at:
                    break
                at = max(at, end)
            if at < committed[p] or committed[p] > ends[p]:
                self.wrong("group %s, partition %d: read without a gap to %d, committed %d, end %d"
                           % (group, p, at, committed[p], ends[p]))
