"""txn_library.py - a seat whose producer is the C library's: the program `transactions` of the integration tests does what
it is told, a line at a time.

The library repeats a request without an answer by itself, and goes on in the same epoch; so a producer whose call took
as long as a request may is given up after its transaction (txns.py says why)."""
import select
import time

import txn_history
import txns

SLOW = 4.0        # seconds; request.timeout.ms is 5 s
DEADLINE = 200.0  # the library gives up after 60
FENCED = {"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}
# What may be said of a transaction that is over, beside that: nobody could be reached for too long, or the coordinator says
# that it has ended it.
OVER = FENCED | {"TIMED_OUT", "REQUEST_TIMED_OUT", "INVALID_TXN_STATE", "TRANSACTION_ABORTABLE"}


class Gone(Exception):
    """The process has ended, or was told to."""


class Program:
    def __init__(self, process, seat):
        self.p, self.seat = process, seat
        self.said = b""
        self.slow = False

    def do(self, line):
        """(error, status)"""
        began = time.monotonic()
        try:
            self.p.stdin.write(line.encode() + b"\n")
        except OSError:
            raise Gone()
        while True:
            said = self._line(began + DEADLINE, line).split()
            if said[0] == line.split()[0]:
                self.slow = self.slow or time.monotonic() - began > SLOW
                return said[1], said[2]

    def _line(self, end, asked):
        while b"\n" not in self.said:
            if select.select([self.p.stdout], [], [], 0.5)[0]:
                more = self.p.stdout.read(65536)
                if not more:
                    raise Gone()
                self.said += more
            elif self.seat.give_up.is_set():
                raise Gone()
            elif time.monotonic() > end:
                self.seat.wrong("%s: '%s' has no answer after %.0f s" % (self.seat.name, asked, DEADLINE))
                raise Gone()
        line, self.said = self.said.split(b"\n", 1)
        return line.decode()

    def end(self):
        self.p.kill()
        self.p.communicate()


class LibrarySeat(txns.Seat):
    def __init__(self, number, source, history, view, wrong, seed, tools):
        txns.Seat.__init__(self, number, source, history, view, wrong, seed)
        self.tools = tools

    def _life(self, w):
        """w asks where the group stands, and reads the input."""
        p = Program(self.tools.transactions(self.name, w.timeout_ms), self)
        try:
            if p.do("init")[0] != "NONE":
                return
            at = self._where_it_stands(w)
            while not self.stopping.is_set() and not p.slow:
                first, end = w.read(at)
                if first == end:
                    self.rest(0.1)
                    continue
                t = self.history.begin(self.number, first, end)
                lines = self._lines(t, "commit" if self.dice() < 0.8 else "abort")
                dies_at = int(self.dice() * len(lines)) if self.dice() < 0.06 else None
                for i, line in enumerate(lines):
                    if i == dies_at and self.dice() < 0.5:
                        self._leave(LibraryZombie(self, p, t, lines[i:]))
                        p = None
                    if i == dies_at:
                        return
                    if not self.obey(p, t, line):
                        return
                at = self._where_it_stands(w) if t.fate != txn_history.COMMITTED else end
                self.rest(0.1 * self.dice())
        except Gone:
            pass
        finally:
            if p:
                p.end()

    def _lines(self, t, end):
        chosen = [(topic, p) for topic in txns.TOPICS for p in self.random.sample(range(txns.PARTITIONS), 2)]
        lines = ["begin"]
        for partition in self.random.sample(chosen, len(chosen)):
            lines += ["send %s %d %s" % (partition + (v.decode(),))
                      for v in self.history.write(t, partition, 1 + int(self.dice() * 3))]
            if self.dice() < 0.2:
                lines.append("flush")
        return lines + ["offset %s %s %d %d" % (self.group, self.source.topic, self.source.index, t.end), end]

    def obey(self, p, t, line):
        """False: the transaction is over, and this producer goes no further."""
        if line == "commit":
            self.history.commit_asked(t)
        error, status = p.do(line)
        if error == "NONE":
            if line in ("commit", "abort"):
                (self.history.committed if line == "commit" else self.history.aborted)(t)
            return True
        if error not in OVER:
            self.wrong("%s: '%s': %s, %s" % (self.name, line, error, status))
        self.fenced += error in FENCED
        if status == "abort" and p.do("abort")[0] == "NONE":
            self.history.aborted(t)
        return False


class LibraryZombie(txns.Zombie):
    def work(self):
        seat, p = self.seat, self.wire
        try:
            for line in self.steps:
                seat.stopping.wait(0.5 * seat.dice())
                if not seat.obey(p, self.t, line):
                    return
        except Gone:
            pass
        finally:
            p.end()
