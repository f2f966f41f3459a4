"""txns.py - producers with transactional ids on raw frames, as part of the workload: each seat (txn_history.py) takes records
of a partition of the workload, writes to several partitions of two topics and commits its group's offset with them; some
transactions are aborted on purpose, some stand still beyond their time, and some producers are taken for dead: another one
takes the id, and the first goes on beside it as a zombie.

A request without an answer may have its effect late, in a later transaction of the same epoch (KIP-890 tells of it). So
after one the producer asks for another epoch before its next transaction, which shuts out what is late."""
import threading

import groupwire
import kwire
import records
import txn_history
from view import GONE
from workload import DUPLICATE, OUT_OF_ORDER, Worker

TOPICS, PARTITIONS = ("ta", "tb"), 3
OFFSETS_PARTITIONS = 3
TRANSACTIONAL = 16
AGAIN = {3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 51, 56, 74, 75, 78, 88}
FENCED = {47, 90}    # INVALID_PRODUCER_EPOCH, PRODUCER_FENCED
REFUSED = {48, 120}  # INVALID_TXN_STATE (also by a coordinator of yesterday), TRANSACTION_ABORTABLE: this one is to be aborted
GROUP, TRANSACTION = 0, 1
SETTINGS = {"transaction.state.log.num.partitions": "3", "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "2", "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}


class Ended(Exception):
    """This producer's transaction, or the producer itself, goes no further."""


class Wire:
    """One life of a producer. Used by one thread at a time."""

    def __init__(self, seat, timeout_ms):
        self.seat, self.view, self.timeout_ms = seat, seat.view, timeout_ms
        self.id = self.epoch = -1
        self.sequences = {}
        self.unanswered = False
        self.where = {}   # what kind of coordinator -> broker
        self.leaders = {}
        self.tries = None  # of a zombie: so many are left

    def _coordinator(self, kind):
        if self.where.get(kind) is None:
            a = self.view.any("FindCoordinator", 2, key=self.seat.group if kind == GROUP else self.seat.name, key_type=kind)
            good = a and a["error_code"] == 0 and a["node_id"] in self.view.hosts
            self.where[kind] = a["node_id"] if good else None
        return self.where[kind]

    def _leader(self, partition):
        if self.leaders.get(partition) is None:
            self.leaders[partition] = self.view.leader(*partition)
        return self.leaders[partition]

    def _call(self, broker, api, version, values):
        """None: nobody to ask, or no answer."""
        if broker is None:
            return None
        try:
            return self.view.call(broker, api, version, **values)
        except GONE:
            self.unanswered = True
            return None

    def _insist(self, ask, code_of, what):
        """Until there is an answer that stays. ask(): an answer or None."""
        doubt = False
        while True:
            a = ask()
            code = code_of(a) if a else None
            if code == 0:
                return a
            doubt = doubt or code is None or code in AGAIN
            if code is not None and code not in AGAIN:
                if code not in FENCED | REFUSED:
                    self.seat.wrong("%s, producer %d, epoch %d: %s: error %d"
                                    % (self.seat.name, self.id, self.epoch, what, code))
                raise Ended(code, doubt)
            if self.tries is not None:
                self.tries -= 1
            if self.seat.give_up.is_set() or self.tries == 0:
                raise Ended(None, True)
            self.seat.give_up.wait(0.02 + 0.1 * self.seat.dice())

    def at_coordinator(self, kind, api, version, code_of=lambda a: a["error_code"], **values):
        def ask():
            a = self._call(self._coordinator(kind), api, version, values)
            if a is None or code_of(a) not in (0, 51, 88):
                self.where[kind] = None
            return a
        return self._insist(ask, code_of, api)

    def who(self):
        return {"transactional_id": self.seat.name, "producer_id": self.id, "producer_epoch": self.epoch}

    def init(self):
        a = self.at_coordinator(TRANSACTION, "InitProducerId", 4, transactional_id=self.seat.name,
                                transaction_timeout_ms=self.timeout_ms, producer_id=-1, producer_epoch=-1)
        self.id, self.epoch, self.sequences, self.unanswered = a["producer_id"], a["producer_epoch"], {}, False
        self.seat.history.given(self.seat.number, self.id, self.epoch)

    def offset(self):
        """The group's. A coordinator of yesterday may say what was committed yesterday (a member would be refused there when
        it commits; this one is none): so who answers must be in office, before and after."""
        partition = groupwire.partition_of(self.seat.group, OFFSETS_PARTITIONS)
        while True:
            before = self.view.state("__consumer_offsets", partition)
            a = self.at_coordinator(
                GROUP, "OffsetFetch", 7, lambda a: a["error_code"] or a["topics"][0]["partitions"][0]["error_code"],
                group_id=self.seat.group, require_stable=True,
                topics=[{"name": self.seat.source.topic, "partition_indexes": [self.seat.source.index]}])
            after = self.view.state("__consumer_offsets", partition)
            if before and after and before["leader"] == after["leader"] == self.where[GROUP] and \
                    before["leader_epoch"] == after["leader_epoch"]:
                return max(0, a["topics"][0]["partitions"][0]["committed_offset"])
            self.where[GROUP] = None
            if self.seat.give_up.is_set():
                raise Ended(None, True)
            self.seat.give_up.wait(0.1)

    def add(self, partitions):
        topics = {}
        for topic, p in partitions:
            topics.setdefault(topic, []).append(p)
        self.at_coordinator(
            TRANSACTION, "AddPartitionsToTxn", 3,
            lambda a: max(p["partition_error_code"] for x in a["results_by_topic_v3_and_below"]
                          for p in x["results_by_partition"]),
            v3_and_below_transactional_id=self.seat.name, v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[{"name": t, "partitions": p} for t, p in topics.items()])

    def produce(self, t, partition, n):
        sequence = self.sequences.get(partition, 0)
        data = kwire.simple_batch(*self.seat.history.write(t, partition, n), producer_id=self.id,
                                  producer_epoch=self.epoch, sequence=sequence, attributes=TRANSACTIONAL)
        request = dict(kwire.produce_request([partition + (data,)], timeout_ms=3000), transactional_id=self.seat.name)
        fenced = self.seat.history.is_fenced(self.seat.number, self.id, self.epoch)

        def ask():
            leader = self._leader(partition)
            a = self._call(leader, "Produce", 9, request)
            answer = a and a["responses"][0]["partition_responses"][0]
            if not answer or answer["error_code"]:
                self.leaders[partition] = None
            if answer and answer["error_code"] == DUPLICATE:
                answer["error_code"] = 0
            if answer and answer["error_code"] == OUT_OF_ORDER and not self._leads(partition, leader):
                return None  # a leader of yesterday lacks what went before
            return answer
        self._insist(ask, lambda a: a["error_code"], "Produce to %s-%d, sequence %d" % (partition + (sequence,)))
        if fenced:
            self.seat.history.taken_of_fenced(t, "a batch")
        self.sequences[partition] = sequence + n

    def _leads(self, partition, broker):
        self.seat.give_up.wait(0.1)
        state = self.view.state(*partition)
        return state is not None and state["leader"] == broker

    def commit_offset(self, offset):
        self.at_coordinator(TRANSACTION, "AddOffsetsToTxn", 3, group_id=self.seat.group, **self.who())
        self.at_coordinator(
            GROUP, "TxnOffsetCommit", 3, lambda a: a["topics"][0]["partitions"][0]["error_code"],
            group_id=self.seat.group, topics=[{"name": self.seat.source.topic, "partitions": [
                {"partition_index": self.seat.source.index, "committed_offset": offset, "committed_metadata": ""}]}],
            **self.who())

    def end(self, t, commit):
        """The transaction's fate is known, or in doubt."""
        history = self.seat.history
        if commit:
            history.commit_asked(t)
        try:
            self.at_coordinator(TRANSACTION, "EndTxn", 3, committed=commit, **self.who())
        except Ended as e:
            history.refused(t, commit and e.args[1])
            raise
        (history.committed if commit else history.aborted)(t)

    def read(self, at):
        """The next input: (first, end), none when they are equal."""
        source = (self.seat.source.topic, self.seat.source.index)
        a = self._call(self._leader(source), "Fetch", 11, kwire.fetch_request(
            11, [source + (at, {"partition_max_bytes": 4000})], max_wait_ms=100, isolation_level=1))
        p = a and kwire.fetched(a)[0][2]
        if not p or p["error_code"]:
            self.leaders[source] = None
            return at, at
        got = [records.parse(body)[0] for offset, body in records.values(p["records"] or b"") if offset >= at]
        return at, got[-1] + 1 if got else at


class Seat(Worker):
    def __init__(self, number, source, history, view, wrong, seed):
        Worker.__init__(self, "transactions of tx-%d" % number, view, wrong, seed)
        self.number, self.source, self.history = number, source, history
        self.name, self.group = "tx-%d" % number, "group-of-tx-%d" % number
        self.give_up = threading.Event()
        self.zombies, self.all_zombies = [], 0
        self.fenced = 0

    def dice(self):
        return self.random.random()

    def work(self):
        while not self.stopping.is_set():
            try:
                self._life(Wire(self, int(4000 + 12000 * self.dice())))
            except Ended as e:
                self.fenced += e.args[0] in FENCED
            self.rest(2 * self.dice() if self.dice() < 0.3 else 0)
        self._tidy()

    def _tidy(self):
        """Zombies come to their end, and what is still open is aborted."""
        for z in self.zombies:
            z.join()
        try:
            w = Wire(self, 60000)
            w.init()
            self.final_offset = w.offset()
        except Ended:
            self.final_offset = None

    def _life(self, w):
        """Until it is fenced, or taken for dead."""
        w.init()
        at = self._where_it_stands(w)
        while not self.stopping.is_set():
            first, end = w.read(at)
            if first == end:
                self.rest(0.1)
                continue
            t = self.history.begin(self.number, first, end)
            steps = self._steps(w, t, commit=self.dice() < 0.8)
            dies_at = int(self.dice() * len(steps)) if self.dice() < 0.06 else None
            for i, step in enumerate(steps):
                if i == dies_at:
                    self._leave(Zombie(self, w, t, steps[i:]))
                    return
                if self.dice() < 0.002:
                    self.rest(w.timeout_ms / 1000 + 2)  # too long: its coordinator aborts it
                try:
                    step()
                except Ended as e:
                    if e.args[0] not in REFUSED:
                        raise
                    w.unanswered = True  # the next epoch aborts it
                    break
            if w.unanswered:
                w.init()
            at = self._where_it_stands(w) if t.fate != txn_history.COMMITTED else end
            self.rest(0.1 * self.dice())

    def _steps(self, w, t, commit):
        """What the transaction does, one after the other."""
        chosen = [(topic, p) for topic in TOPICS for p in self.random.sample(range(PARTITIONS), self.random.randint(1, 2))]
        self.random.shuffle(chosen)
        at_once = self.dice() < 0.5  # else each partition is added before its first record
        steps = [lambda: w.add(chosen)] if at_once else []
        for partition in chosen + [self.random.choice(chosen)]:
            if not at_once:
                steps.append(lambda p=partition: w.add([p]))
            steps.append(lambda p=partition: w.produce(t, p, 1 + int(self.dice() * 3)))
        steps.append(lambda: w.commit_offset(t.end))
        steps.append(lambda: w.end(t, commit))
        return steps

    def _where_it_stands(self, w):
        at, told = w.offset(), self.history.last_committed(self.number)
        if at < told:
            self.wrong("%s: its group's offset is %d, %d was committed" % (self.name, at, told))
        return at

    def _leave(self, zombie):
        self.zombies = [z for z in self.zombies if z.is_alive()] + [zombie]
        self.all_zombies += 1
        zombie.start()


class Zombie(Worker):
    """Goes on with what was under way, in spite of whoever has its id now, and tries more until it is shut out."""

    def __init__(self, seat, wire, transaction, steps):
        Worker.__init__(self, "zombie %d of %s" % (seat.all_zombies, seat.name), seat.view, seat.wrong, seat.name)
        self.seat, self.wire, self.t, self.steps = seat, wire, transaction, steps
        wire.tries = 60

    def work(self):
        seat, w = self.seat, self.wire
        try:
            for _ in range(3):
                for step in self.steps:
                    seat.stopping.wait(0.5 * seat.dice())
                    step()
                if w.unanswered or self.t.fate != txn_history.COMMITTED:
                    return  # what is late would come into the next one
                self.t = seat.history.begin(seat.number, self.t.end, self.t.end + 1)
                self.steps = seat._steps(w, self.t, commit=True)
        except Ended as e:
            seat.fenced += e.args[0] in FENCED


class Reader(Worker):
    """Reads what is committed: of leaders, and of other replicas."""

    def __init__(self, history, view, wrong, seed):
        Worker.__init__(self, "reader of committed records", view, wrong, seed)
        self.history = history
        self.at = {(topic, p): 0 for topic in TOPICS for p in range(PARTITIONS)}
        self.leaders = {}

    def work(self):
        while not self.stopping.is_set():
            partition = self.random.choice(sorted(self.at))
            try:
                self._fetch(partition)
            except GONE:
                self.leaders[partition] = None
            self.rest(0.03)

    def _fetch(self, partition):
        if self.leaders.get(partition) is None:
            self.leaders[partition] = self.view.leader(*partition)
        broker, at = self.leaders[partition], self.at[partition]
        if self.random.random() < 0.3:
            broker, at = self.random.choice(sorted(self.view.hosts)), max(0, at - self.random.choice((0, 5, 50)))
        if broker is None:
            return
        p = fetch_committed(self.view, broker, partition, at, 50000)
        if p["error_code"]:
            self.leaders[partition] = None
            return
        got, end = txn_history.committed(p["records"] or b"", aborted_of(p), at)
        for offset, body in got:
            self.history.see(partition, offset, body, "a reader at broker %d" % broker)
        self.at[partition] = max(self.at[partition], end)


def fetch_committed(view, broker, partition, at, size):
    a = view.call(broker, "Fetch", 11, **kwire.fetch_request(
        11, [partition + (at, {"partition_max_bytes": size})], max_wait_ms=50, max_bytes=size, isolation_level=1))
    return kwire.fetched(a)[0][2]


def aborted_of(p):
    return [(x["producer_id"], x["first_offset"]) for x in p["aborted_transactions"] or []]


def ends(view, leader, partition):
    """(last stable offset, high watermark) by the leader."""
    def ask(level):
        a = view.call(leader, "ListOffsets", 5, replica_id=-1, isolation_level=level, topics=[
            {"name": partition[0], "partitions": [{"partition_index": partition[1], "timestamp": -1,
                                                   "current_leader_epoch": -1}]}])["topics"][0]["partitions"][0]
        assert a["error_code"] == 0, "ends of %s-%d: error %d" % (partition + (a["error_code"],))
        return a["offset"]
    stable = ask(1)
    return stable, ask(0)


def read_all(view, leader, partition, stable):
    """[(offset, value)] of all that is committed, up to the last stable offset."""
    out, at = [], 0
    while True:
        p = fetch_committed(view, leader, partition, at, 1 << 22)
        assert p["error_code"] == 0, "%s-%d at %d: error %d" % (partition + (at, p["error_code"]))
        got, end = txn_history.committed(p["records"] or b"", aborted_of(p), at)
        if end == at:
            assert at == stable, "%s-%d: nothing at %d, %d is stable" % (partition + (at, stable))
            return out
        out, at = out + got, end


def open_transactions(view):
    """What the coordinators have under way: [(id, state)]."""
    out = []
    for broker in view.hosts:
        a = view.call(broker, "ListTransactions", 0, producer_id_filters=[],
                      state_filters=["Ongoing", "PrepareCommit", "PrepareAbort"])
        if a["error_code"] == 0:
            out += [(x["transactional_id"], x["transaction_state"]) for x in a["transaction_states"]]
    return out
