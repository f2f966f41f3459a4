"""txn_history.py - what producers with transactional ids did and were told, and whether a reader of committed records finds
just that.

A seat is a transactional id with a pipeline: it takes records of one partition of the workload, in order, writes what it
makes of them to several partitions of two topics, and commits its group's offset in the same transaction. So what was
committed tells which input each transaction took, and the inputs of a seat are a chain without gap or overlap, up to the
group's offset: exactly once.

A transaction's fate: OPEN until its end was asked for (such a one is never seen; the coordinator aborts it), ABORTED,
COMMITTING (asked for, no answer that stays: all of it or nothing), COMMITTED."""
import collections
import struct
import threading

import kwire

OPEN, ABORTED, COMMITTING, COMMITTED = "open", "aborted", "committing", "committed"
KINDS = ("lost", "half", "leaked", "duplicated", "reordered", "vanished", "foreign", "broken_chain", "hanging")


class Transaction:
    __slots__ = ("number", "seat", "first", "end", "writes", "fate")

    def __init__(self, number, seat, first, end):
        self.number, self.seat, self.first, self.end = number, seat, first, end
        self.writes = collections.Counter()  # partition -> records sent
        self.fate = OPEN


def value(t, place):
    return b"seat-%d-transaction-%d-record-%d-input-%d-to-%d" % (t.seat, t.number, place, t.first, t.end)


def parse(data):
    """(seat, transaction, record)"""
    words = data.split(b"-")
    assert words[0] == b"seat" and len(words) == 10, "nobody sent this: %r" % data[:60]
    return int(words[1]), int(words[3]), int(words[5])


class TxnHistory:
    def __init__(self, wrong):
        self.tell = wrong
        self.lock = threading.Lock()
        self.all = []        # by number
        self.newest = {}     # seat -> the newest (producer id, epoch) that was given out
        self.seen = {}       # (partition, offset) -> value
        self.count = collections.Counter()

    def wrong(self, kind, text):
        self.count[kind] += 1
        if self.count[kind] <= 5:
            self.tell("transactions: %s: %s" % (kind.replace("_", " "), text))

    # -- what happens

    def given(self, seat, producer, epoch):
        """Of one id epochs rise."""
        with self.lock:
            id, last = self.newest.get(seat, (None, None))
            if id == producer and epoch <= last:
                self.wrong("leaked", "seat %d is given epoch %d of producer %d after %d" % (seat, epoch, id, last))
            self.newest[seat] = (producer, epoch)

    def is_fenced(self, seat, producer, epoch):
        with self.lock:
            return self.newest.get(seat) != (producer, epoch)

    def begin(self, seat, first, end):
        with self.lock:
            t = Transaction(len(self.all), seat, first, end)
            self.all.append(t)
            return t

    def write(self, t, partition, n):
        """The values of the next n records there."""
        with self.lock:
            at = t.writes[partition]
            t.writes[partition] += n
        return [value(t, at + i) for i in range(n)]

    def taken_of_fenced(self, t, what):
        self.wrong("leaked", "%s of transaction %d, seat %d, was taken, though a newer producer had been given its epoch "
                             "before it was sent" % (what, t.number, t.seat))

    def commit_asked(self, t):
        t.fate = COMMITTING

    def committed(self, t):
        t.fate = COMMITTED

    def aborted(self, t):
        t.fate = ABORTED

    def refused(self, t, in_doubt):
        """It did not come to its end. in_doubt: one of the requests for a commit may have had its effect."""
        if not in_doubt:
            t.fate = ABORTED

    def last_committed(self, seat):
        """Where the seat's input goes on after the last transaction that was told to be committed."""
        with self.lock:
            return max([t.end for t in self.all if t.seat == seat and t.fate == COMMITTED], default=0)

    def many(self, seat, fate=COMMITTED):
        with self.lock:
            return sum(1 for t in self.all if t.seat == seat and t.fate == fate)

    # -- what a reader of committed records is given

    def see(self, partition, offset, body, who):
        _, number, _ = parse(body)
        with self.lock:
            t = self.all[number] if number < len(self.all) else None
            before = self.seen.setdefault((partition, offset), body)
        if t is None:
            self.wrong("foreign", "%s was given %r, which nobody has sent" % (who, body))
        elif t.fate in (OPEN, ABORTED):
            self.wrong("leaked", "%s was given %r at %s, %d, which is %s" % (who, body, partition, offset, t.fate))
        if before != body:
            self.wrong("vanished", "%s was given %r at %s, %d, where %r was" % (who, body, partition, offset, before))

    # -- the verdict

    def judge(self, logs, offsets):
        """logs: {partition: [(offset, value)]} of what is committed, all of it; offsets: {seat: its group's}."""
        there = collections.defaultdict(collections.Counter)  # transaction -> (partition, record) -> how often
        for partition, log in logs.items():
            self._judge_order(partition, log)
            for _, body in log:
                _, number, place = parse(body)
                if number >= len(self.all) or place >= self.all[number].writes[partition]:
                    self.wrong("foreign", "%s has %r, which nobody has sent" % (partition, body))
                else:
                    there[number][partition, place] += 1
        self._judge_seen(logs)
        done = [t for t in self.all if self._judge_one(t, there[t.number])]
        for seat, offset in offsets.items():
            self._judge_chain(seat, [t for t in done if t.seat == seat], offset)
        self.count["records"] += sum(map(len, logs.values()))
        self.count["doubtful"] += sum(t.fate == COMMITTING for t in self.all)
        for fate in (COMMITTED, ABORTED, OPEN):
            self.count[fate] += sum(t.fate == fate for t in self.all)

    def _judge_one(self, t, there):
        """Is it there?"""
        wanted = sum(t.writes.values())
        twice = [x for x, n in there.items() if n > 1]
        if twice:
            self.wrong("duplicated", "of transaction %d, seat %d: %s" % (t.number, t.seat, sorted(twice)[:5]))
        if there and t.fate in (OPEN, ABORTED):
            self.wrong("leaked", "transaction %d, seat %d, is %s; of its %d records %d are there"
                       % (t.number, t.seat, t.fate, wanted, len(there)))
        elif there and len(there) < wanted:
            self.wrong("half", "transaction %d, seat %d, is %s; of its %d records %d are there: %s"
                       % (t.number, t.seat, t.fate, wanted, len(there), sorted(there)[:5]))
        elif not there and wanted and t.fate == COMMITTED:
            self.wrong("lost", "transaction %d, seat %d, was committed; nothing of it is there" % (t.number, t.seat))
        return bool(there)

    def _judge_order(self, partition, log):
        newest = {}
        for offset, body in log:
            seat, number, place = parse(body)
            if (number, place) < newest.get(seat, (-1, -1)):
                self.wrong("reordered", "%s, %d: %r behind %s" % (partition, offset, body, newest[seat]))
            newest[seat] = (number, place)

    def _judge_seen(self, logs):
        at = {(partition, offset): body for partition, log in logs.items() for offset, body in log}
        gone = [(where, body) for where, body in self.seen.items() if at.get(where) != body]
        for where, body in sorted(gone)[:5]:
            self.wrong("vanished", "%r was seen at %s; there is %r" % (body, where, at.get(where)))

    def _judge_chain(self, seat, done, offset):
        """Each input was taken by one transaction, and the group's offset is behind the last one's."""
        at = 0
        for t in done:
            if t.first != at:
                self.wrong("broken_chain", "seat %d: transaction %d took %d to %d, the one before ended at %d"
                           % (seat, t.number, t.first, t.end, at))
            at = t.end
        if offset != at:
            self.wrong("broken_chain", "seat %d: its group's offset is %d, its transactions ended at %d" % (seat, offset, at))

    def judge_ends(self, ends):
        """ends: {partition: (last stable offset, high watermark)}, when no producer is at work."""
        for partition, (stable, end) in ends.items():
            if stable != end:
                self.wrong("hanging", "%s: a transaction is open at %d of %d" % (partition, stable, end))


def committed(data, aborted, start):
    """([(offset, value)], the next offset): what a reader of committed records makes of batches and the answer's list of
    (producer id, first offset)."""
    aborted = sorted((first, producer) for producer, first in aborted)
    out, gone, at = [], set(), start
    for base, _, raw in kwire.entries(data):
        attributes, delta = struct.unpack_from(">hi", raw, 21)
        producer = struct.unpack_from(">q", raw, 43)[0]
        while aborted and aborted[0][0] <= base + delta:
            gone.add(aborted.pop(0)[1])
        if attributes & 32:
            gone.discard(producer)  # the marker ends it
        elif not (attributes & 16 and producer in gone):
            out += [(r[0], r[3]) for r in kwire.records_v2(raw) if r[0] >= start]
        at = max(at, base + delta + 1)
    return out, at
