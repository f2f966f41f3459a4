"""workload.py - who writes and reads while faults happen, and what they are told.

Producer: idempotent, acks=all, a few batches on the way at once; sent again until acknowledged. Reader: stays with the
leader it knows for as long as that answers (a zombie leader's readers do). Hopper: asks any replica. All fill a Ledger,
which verdict.py judges."""
import random
import threading
import time

import kwire
import records
from view import GONE

RETRIABLE = {3, 5, 6, 7, 9, 13, 14, 19, 20, 56, 74, 75, 78}
DUPLICATE, OUT_OF_ORDER, OUT_OF_RANGE = 46, 45, 1
IN_FLIGHT = 3
OUTAGE = 1.0  # seconds without an acknowledgement that count as unavailable


class Ledger:
    """What clients were told of one partition."""

    def __init__(self, topic, index):
        self.topic, self.index = topic, index
        self.acked = 0                 # records 0 to acked - 1 were acknowledged
        self.sent = 0                  # and those behind them may be there
        self.seen = bytearray()        # by offset: the attempt that a reader was given, + 1; 0: not seen
        self.lock = threading.Lock()
        self.outages = []              # seconds
        self.last_ack = time.monotonic()
        self.replies = {}              # error code -> how often a producer was told

    @property
    def name(self):
        return "%s-%d" % (self.topic, self.index)

    def acknowledge(self, n):
        now = time.monotonic()
        if now - self.last_ack > OUTAGE:
            self.outages.append(now - self.last_ack)
        self.last_ack = now
        self.acked += n

    def see(self, offset, body, who, wrong):
        number, attempt = records.parse(body)
        if number != offset:
            wrong("%s: %s was given record %d at offset %d" % (self.name, who, number, offset))
        with self.lock:
            if offset >= len(self.seen):
                self.seen.extend(bytes(offset + 1 - len(self.seen)))
            if self.seen[offset] not in (0, attempt + 1):
                wrong("%s: record %d was seen, vanished, and was written again (%s: attempt %d after %d)"
                      % (self.name, offset, who, attempt, self.seen[offset] - 1))
            self.seen[offset] = attempt + 1


class Worker(threading.Thread):
    """A thread whose failure is a finding."""

    def __init__(self, name, view, wrong, seed):
        threading.Thread.__init__(self, name=name, daemon=True)
        self.view, self.wrong = view, wrong
        self.random = random.Random("%s %s" % (seed, name))
        self.stopping = threading.Event()

    def run(self):
        try:
            self.work()
        except BaseException as e:
            self.wrong("%s ended: %r" % (self.name, e))

    def rest(self, seconds):
        self.stopping.wait(seconds)


class Producer(Worker):
    def __init__(self, ledger, view, wrong, seed, pause):
        Worker.__init__(self, "producer of " + ledger.name, view, wrong, seed)
        self.ledger, self.pause = ledger, pause
        self.unacked = []  # [first, count, attempts], in order
        self.give_up = threading.Event()

    def work(self):
        self.id = self._producer_id()
        while not self.give_up.is_set() and not (self.stopping.is_set() and not self.unacked):
            try:
                leader = self.view.leader(self.ledger.topic, self.ledger.index)
                if leader is not None:
                    self._with(leader)
            except GONE:
                pass
            if leader is not None:
                self.view.drop(leader)  # what was on the way is not waited for
            time.sleep(0.03)

    def _producer_id(self):
        while not self.give_up.is_set():
            a = self.view.any("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=60000, producer_id=-1,
                              producer_epoch=-1)
            if a and a["error_code"] == 0:
                return a["producer_id"]
            time.sleep(0.05)

    def _with(self, leader):
        """Until something fails, or all is done."""
        conn, on_way = self.view.conn(leader), []
        for b in self.unacked[:IN_FLIGHT]:
            on_way.append(self._send(conn, b))
        while not self.give_up.is_set():
            while len(on_way) < IN_FLIGHT and (len(on_way) < len(self.unacked) or not self.stopping.is_set()):
                if len(on_way) == len(self.unacked):
                    self.unacked.append([self.ledger.sent, self.random.randint(1, 8), 0])
                    self.ledger.sent += self.unacked[-1][1]
                on_way.append(self._send(conn, self.unacked[len(on_way)]))
                if self.random.random() < 0.5:
                    break
            if not on_way:
                return
            a = conn.receive("Produce", 9, on_way.pop(0))
            a = a["responses"][0]["partition_responses"][0]
            if not self._take(leader, a["error_code"], a["base_offset"]):
                return
            self.rest(self.pause * self.random.random() * 2)

    def _send(self, conn, b):
        b[2] += 1
        data = records.batch(self.id, b[0], b[1], b[2])
        return conn.send("Produce", 9, **kwire.produce_request([(self.ledger.topic, self.ledger.index, data)],
                                                               timeout_ms=3000))

    def _take(self, leader, code, offset):
        """Of the oldest batch. False: not acknowledged."""
        first, count, _ = self.unacked[0]
        self.ledger.replies[code] = self.ledger.replies.get(code, 0) + 1
        if code in (0, DUPLICATE):
            if code == 0 and offset != first:
                self.wrong("%s: records %d to %d were acknowledged at offset %d"
                           % (self.ledger.name, first, first + count - 1, offset))
            self.unacked.pop(0)
            self.ledger.acknowledge(count)
            return True
        if code not in RETRIABLE and not self._is_zombie(leader, code):
            self.wrong("%s: the oldest batch, %d to %d, was refused with error %d by broker %d (%d acknowledged)"
                       % (self.ledger.name, first, first + count - 1, code, leader, self.ledger.acked))
            self.give_up.wait(1)
        return False

    def _is_zombie(self, broker, code):
        """A leader of yesterday may find a sequence out of order, since it does not have the records before: until it
        hears of the new leader, which takes the batch. Who leads by ZooKeeper, too, is no zombie."""
        if code != OUT_OF_ORDER:
            return False
        self.give_up.wait(0.1)
        state = self.view.state(self.ledger.topic, self.ledger.index)
        return state is None or state["leader"] != broker


class Reader(Worker):
    def __init__(self, ledger, view, wrong, seed):
        Worker.__init__(self, "reader of " + ledger.name, view, wrong, seed)
        self.ledger, self.at = ledger, 0

    def work(self):
        leader = None
        while not self.stopping.is_set():
            try:
                if leader is None:
                    leader = self.view.leader(self.ledger.topic, self.ledger.index)
                if leader is None or not self._fetch(leader):
                    leader = None
                    time.sleep(0.02)
            except GONE:
                leader = None

    def _fetch(self, leader):
        a = self.view.call(leader, "Fetch", 11, **kwire.fetch_request(
            11, [(self.ledger.topic, self.ledger.index, self.at)], max_wait_ms=300, max_bytes=1 << 20))
        p = kwire.fetched(a)[0][2]
        if p["error_code"] in RETRIABLE or p["error_code"] == OUT_OF_RANGE:
            return False  # (out of range: a leader of yesterday)
        if p["error_code"]:
            self.wrong("%s: a reader at %d was told error %d" % (self.ledger.name, self.at, p["error_code"]))
        for offset, body in records.values(p["records"] or b""):
            if offset >= self.at:
                if offset != self.at:
                    self.wrong("%s: a reader at %d was given %d by broker %d"
                               % (self.ledger.name, self.at, offset, leader))
                self.ledger.see(offset, body, "reader at broker %d" % leader, self.wrong)
                self.at = offset + 1
        return True


class Hopper(Worker):
    """Reads pieces here and there from any replica, as readers with a rack do."""

    def __init__(self, ledgers, view, wrong, seed):
        Worker.__init__(self, "hopper", view, wrong, seed)
        self.ledgers = ledgers

    def work(self):
        while not self.stopping.is_set():
            ledger = self.random.choice(self.ledgers)
            at = max(0, len(ledger.seen) - self.random.choice((1, 5, 50, 1000)))
            broker = self.random.choice(sorted(self.view.hosts))
            try:
                self._fetch(ledger, broker, at)
            except GONE:
                pass
            self.rest(0.03)

    def _fetch(self, ledger, broker, at):
        a = self.view.call(broker, "Fetch", 11, **kwire.fetch_request(
            11, [(ledger.topic, ledger.index, at, {"partition_max_bytes": 50000})], max_wait_ms=50, max_bytes=50000))
        p = kwire.fetched(a)[0][2]
        if p["error_code"] == 0:
            for offset, body in records.values(p["records"] or b""):
                ledger.see(offset, body, "hopper at broker %d" % broker, self.wrong)
