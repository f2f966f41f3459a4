"""common.py - what the Python clients share: the frame of the program that driver.py runs, and the checks of records,
over an Adapter that each client fills in."""
import os
import random
import sys
import threading
import time
import traceback
from collections import namedtuple

Sent = namedtuple("Sent", "partition offset timestamp")
Got = namedtuple("Got", "offset key value headers timestamp append_time")


def same(got, want, what):
    if got != want:
        raise AssertionError("%s: got %s, want %s" % (what, repr(got)[:300], repr(want)[:300]))


def require(condition, why):
    if not condition:
        raise AssertionError(why)


def until(what, question):
    end = time.monotonic() + 30
    while not question():
        require(time.monotonic() < end, "not within 30 s: " + what)
        time.sleep(0.02)


def fails(call, *wanted):
    """The call raises one of these."""
    try:
        call()
    except wanted:
        return
    raise AssertionError("want %s, but it was done" % " or ".join(w.__name__ for w in wanted))


class Adapter:
    """What the checks of records want of a client. Values, keys: bytes or None; headers: list of (str, bytes)."""

    takes_two_nulls = True  # a record without key and value

    def __init__(self, broker, prefix):
        self.broker, self.prefix = broker, prefix

    def topic(self, stem):
        return "%s-%s" % (self.prefix, stem)

    def create(self, topic, partitions=1, configs=None):
        """Makes a topic and waits until it has leaders."""
        raise NotImplementedError

    def send(self, topic, records, **settings):
        """records: (key, value, headers, timestamp or None, partition or None), sent one behind the other by one
        producer; list of Sent. settings: codec, acks (0, 1, "all"), idempotent, max_request."""
        raise NotImplementedError

    def read(self, topic, partition, n, start=0, **settings):
        """n records from offset start on, as Got. settings: fetch (bytes of a partition), committed (as read_committed has
        them)."""
        raise NotImplementedError

    def bounds(self, topic, partition):
        """(first offset, end offset)"""
        raise NotImplementedError

    def by_time(self, topic, partition, timestamp):
        """The first offset at or behind a time, or None."""
        raise NotImplementedError

    def too_large(self, error):
        """Is the error the one of a record that is too large for the broker?"""
        raise NotImplementedError

    # With transactions only:

    def transactional(self, id):
        """A producer that has taken the id: begin(), send(topic, partition, values), which returns when they are written,
        send_offsets(reader, {partition: next}), end(commit), close()."""
        raise NotImplementedError

    def fenced(self, error):
        """Is the error the one of a producer whose id was taken?"""
        raise NotImplementedError

    def group_reader(self, group, topic):
        """A member of a group that reads the topic from the beginning: poll() -> [(partition, offset, value)], rewind() to
        what is committed, close()."""
        raise NotImplementedError


class RecordChecks:
    def __init__(self, adapter, text):
        self.a, self.text = adapter, text

    def send_values(self, topic, values, **settings):
        return self.a.send(topic, [(b"k", v, [], None, 0) for v in values], **settings)

    def read_all(self, topic, n, partition=0, **settings):
        same(self.a.bounds(topic, partition), (0, n), "first and end offset")
        got = self.a.read(topic, partition, n, **settings)
        same([r.offset for r in got], list(range(n)), "offsets")
        return got

    def values(self, topic, n, **settings):
        return [r.value for r in self.read_all(topic, n, **settings)]

    def roundtrip(self):
        topic, t = self.a.topic("roundtrip"), 1600000000000
        cases = [(b"k", b"v", [("h", b"1"), ("h", b"2")], t), (None, b"v", [], t + 1), (b"k", None, [("empty", b"")], t + 2),
                 (b"", b"", [], t + 3), (None, b"late", [("u", "\u00fc".encode())], t - 5)]
        if self.a.takes_two_nulls:
            cases.append((None, None, [], t))
        self.a.create(topic)
        for c in cases:
            self.a.send(topic, [c + (0,)])
        got = self.read_all(topic, len(cases))
        same([(r.key, r.value, list(r.headers), r.timestamp) for r in got], cases, "records")
        require(not any(r.append_time for r in got), "timestamps are the producer's")

    def codec(self, codec):
        topic = self.a.topic("codec-" + codec)
        sent = self.send_values(topic, self.text, codec=codec)
        same([s.offset for s in sent], list(range(len(self.text))), "offsets answered")
        same(self.values(topic, len(self.text)), self.text, "values")

    def acks(self):
        topic = self.a.topic("acks")
        self.a.create(topic)
        for n, acks in enumerate((0, 1, "all")):
            self.send_values(topic, [b"%d" % n], acks=acks)
            until("the record is there", lambda: self.a.bounds(topic, 0)[1] == n + 1)
        same(self.values(topic, 3), [b"0", b"1", b"2"], "values")

    def idempotence(self):
        topic = self.a.topic("idempotence")
        self.a.create(topic)
        want = []
        for life in range(2):
            part = [b"%d-%d" % (life, i) for i in range(2000)]
            sent = self.send_values(topic, part, idempotent=True)
            same([s.offset for s in sent], [len(want) + i for i in range(2000)], "offsets answered")
            want += part
        same(self.values(topic, 4000), want, "values")

    def keyed_partitions(self):
        topic = self.a.topic("keyed")
        self.a.create(topic, 5)
        sent = self.a.send(topic, [(b"key%d" % (i % 50), b"%d" % i, [], None, None) for i in range(1000)])
        homes = {}
        for p in range(5):
            last = {}
            for r in self.read_all(topic, sum(1 for s in sent if s.partition == p), p):
                require(int(r.value) > last.get(r.key, -1), "order of a key's records")
                last[r.key] = int(r.value)
            for key in last:
                require(key not in homes, "%s is in two partitions" % key)
                homes[key] = p
        same((len(homes), set(homes.values())), (50, set(range(5))), "keys and partitions")

    def large_records(self):
        topic = self.a.topic("large")
        self.a.create(topic)
        values = [random.Random(1).randbytes(n) for n in (1000000, 3500000, 1, 4000000)]
        for v in values:
            self.send_values(topic, [v], max_request=8 << 20)
        require(self.values(topic, len(values)) == values, "the values are others")

    def too_large_record(self):
        topic = self.a.topic("too-large")
        self.a.create(topic)
        try:
            self.send_values(topic, [bytes(5000000)], max_request=16 << 20)
        except Exception as e:
            require(self.a.too_large(e), "5 MB: %r" % e)
        else:
            raise AssertionError("5 MB were taken")
        same(self.send_values(topic, [b"small"])[0].offset, 0, "offset behind it")

    def offsets_by_time(self):
        topic, t = self.a.topic("times"), 1600000000000
        self.a.create(topic)
        self.a.send(topic, [(None, b"%d" % i, [], t + 1000 * i, 0) for i in range(10)])
        same(self.a.bounds(topic, 0), (0, 10), "bounds")
        same(self.a.by_time(topic, 0, t + 3500), 4, "offset by time")
        same(self.a.by_time(topic, 0, t), 0, "offset by time")
        same(self.a.by_time(topic, 0, t + 10 ** 10), None, "nothing is as late")
        same(self.a.read(topic, 0, 1, 7)[0].offset, 7, "offset after a seek")

    def log_append_time(self):
        topic = self.a.topic("append-time")
        self.a.create(topic, configs={"message.timestamp.type": "LogAppendTime"})
        sent = self.a.send(topic, [(None, b"x", [], 1000, 0)])[0]
        r = self.read_all(topic, 1)[0]
        require(r.timestamp > 1600000000000 and r.append_time, "the broker's time, not %d" % r.timestamp)
        if sent.timestamp is not None:
            same(sent.timestamp, r.timestamp, "timestamp answered")

    def many_batches(self):
        topic = self.a.topic("many")
        self.a.create(topic)
        values = [b"value number %d" % i for i in range(20000)]
        self.send_values(topic, values, codec="gzip")
        same(self.values(topic, len(values), fetch=65536), values, "values")

    def table(self):
        found = {"codec-" + c: (lambda c=c: self.codec(c)) for c in ("none", "gzip", "snappy", "lz4", "zstd")}
        for name in ("roundtrip", "acks", "idempotence", "keyed-partitions", "large-records", "too-large-record",
                     "offsets-by-time", "log-append-time", "many-batches"):
            found[name] = getattr(self, name.replace("-", "_"))
        return found


class TransactionChecks:
    def __init__(self, adapter):
        self.a = adapter

    def want(self, topic, partition, values, what, **settings):
        same([r.value for r in self.a.read(topic, partition, len(values), **settings)], values, what)

    def transactions(self):
        """What is committed is seen, what is aborted or open is not; the second producer of an id is the one."""
        topic = self.a.topic("transactions")
        self.a.create(topic, 2)
        p, committed, every = self.a.transactional(topic), [], []
        for i in range(12):
            part = [b"%d-%d" % (i, k) for k in range(3)]
            p.begin()
            for partition in (0, 1):
                p.send(topic, partition, part)
            p.end(i % 4 != 3)
            committed += part if i % 4 != 3 else []
            every += part
        p.begin()
        p.send(topic, 0, [b"open"])
        self.want(topic, 0, committed, "while one is open", committed=True)
        second = self.a.transactional(topic)  # aborts that
        try:
            p.send(topic, 1, [b"late"])
            p.end(True)
        except Exception as e:
            require(self.a.fenced(e), "the fenced producer: %r" % e)
        else:
            raise AssertionError("the fenced producer has committed")
        # The last record tells that there is none in front of it that should not be.
        second.begin()
        for partition in (0, 1):
            second.send(topic, partition, [b"end"])
        second.end(True)
        for partition in (0, 1):
            self.want(topic, partition, committed + [b"end"], "committed", committed=True)
            self.want(topic, partition, every + [b"open"] * (partition == 0) + [b"end"], "all")
        p.close()
        second.close()

    def transactions_copy(self):
        """Reads one topic in a group, writes another, and its offsets: each record once, whatever is aborted."""
        source, to = self.a.topic("transactions-from"), self.a.topic("transactions-to")
        self.a.create(source, 3)
        self.a.create(to, 3)
        want = [b"v%d" % i for i in range(300)]
        for partition in range(3):
            self.a.send(source, [(None, v, [], None, partition) for v in want[partition::3]])
        p, c, n, turn = self.a.transactional(to), self.a.group_reader(to, source), 0, 0
        end = time.monotonic() + 60
        while n < len(want):
            require(time.monotonic() < end, "copied %d records in 60 s" % n)
            records = c.poll()
            if not records:
                continue
            p.begin()
            for partition in sorted({r[0] for r in records}):
                p.send(to, partition, [r[2] for r in records if r[0] == partition])
            p.send_offsets(c, {partition: offset + 1 for partition, offset, _ in records})
            turn += 1
            p.end(turn % 3 != 0)
            if turn % 3:
                n += len(records)
            else:
                c.rewind()
        c.close()
        p.close()
        got = [r.value for partition in range(3) for r in self.a.read(to, partition, len(want) // 3, committed=True)]
        same(sorted(got), sorted(want), "copied")


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def record(topic, partition, offset, value):
    say("RECORD %s %d %d %s" % (topic, partition, offset, value.decode("utf-8", "replace")))


class Commands:
    """Lines of standard input, as they come."""

    def __init__(self):
        self.lines = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in sys.stdin:
            self.lines.append(line.strip())
        self.lines.append("close")

    def next(self):
        return self.lines.pop(0) if self.lines else None


class Assigned:
    """Says the assignment whenever it has changed."""

    def __init__(self):
        self.last = None

    def tell(self, parts):
        now = sorted(parts)
        if now != self.last:
            say("ASSIGNED " + ",".join("%s:%d" % p for p in now))
        self.last = now


def run_checks(table, names):
    failed = 0
    for name in names:
        try:
            require(name in table, "this program has no such check")
            table[name]()
            say("ok " + name)
        except Exception as e:
            traceback.print_exc()
            say("not ok %s: %s" % (name, ("%s: %s" % (type(e).__name__, e)).replace("\n", " ")))
            failed += 1
    return 1 if failed else 0


def main(adapter_type, admin_checks_type, member):
    mode, broker, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    status = 0
    if mode == "member":
        member(broker, dict(word.split("=", 1) for word in rest))
    else:
        with open(rest[1], "rb") as f:
            text = f.read().splitlines()
        adapter = adapter_type(broker, rest[0])
        table = RecordChecks(adapter, text).table()
        admin = admin_checks_type(adapter)
        for name in dir(admin):
            if name.startswith("admin_"):
                table[name.replace("_", "-")] = getattr(admin, name)
        transactions = TransactionChecks(adapter)
        table["transactions"] = transactions.transactions
        table["transactions-copy"] = transactions.transactions_copy
        status = run_checks(table, rest[2:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # whatever threads a client has left
