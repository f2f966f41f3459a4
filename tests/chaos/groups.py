"""groups.py - a consumer group's members on raw frames, and the history of what the coordinators promised them:

- of one generation, a partition belongs to one member, by one leader's assignment. (A coordinator that has just taken over
  may give out an assignment that is not committed yet, as Apache Kafka's do; if it is lost, the generation's number comes
  again. Only assignments that a commit was taken for count.);
- a commit that succeeded is not undone: later generations find it, or more, and commit no less;
- each record below the committed offset was processed by somebody."""
import json
import threading
import time

import groupwire
import kwire
import records
from nodes import KAFKA_PORT
from view import GONE
from workload import OUT_OF_RANGE, RETRIABLE, Worker

FIND_AGAIN = {14, 15, 16}
UNKNOWN_MEMBER, REBALANCE, ILLEGAL_GENERATION, MEMBER_ID_REQUIRED = 25, 27, 22, 79
LATER = {7, -1, 3}  # (a commit that was not replicated in time may be there; 3: the broker has no metadata yet)


class GroupHistory:
    def __init__(self, group, topic, partitions, wrong):
        self.group, self.topic, self.partitions, self.wrong = group, topic, partitions, wrong
        self.lock = threading.Lock()
        self.tokens = {}     # generation -> the token of the assignment by which something was committed
        self.owners = {}     # (generation, token, partition) -> member
        self.commits = {p: {} for p in range(partitions)}    # generation -> (least, most) that succeeded
        self.done = {p: [] for p in range(partitions)}       # [first, end) processed, merged now and then
        self.generations = set()
        self.taken = 0       # commits that succeeded

    def own(self, generation, member, token, partitions):
        with self.lock:
            self.generations.add(generation)
            for p in partitions:
                if self.owners.setdefault((generation, token, p), member) != member:
                    self.wrong("group %s: partition %d belongs to %s and %s in generation %d"
                               % (self.group, p, self.owners[generation, token, p], member, generation))

    def committed_most(self, partition, below=1 << 60):
        with self.lock:
            return max([most for g, (_, most) in self.commits[partition].items() if g < below], default=-1)

    def commit(self, generation, partition, offset, ordered_most, token=""):
        """ordered_most: committed_most of all generations when the commit was sent."""
        with self.lock:
            self.taken += 1
            if self.tokens.setdefault(generation, token) != token:
                self.wrong("group %s: two assignments in generation %d" % (self.group, generation))
            least, most = self.commits[partition].get(generation, (offset, offset))
            self.commits[partition][generation] = (min(least, offset), max(most, offset))
            for g, (least, most) in self.commits[partition].items():
                if g < generation and most > offset or g > generation and least < offset:
                    self.wrong("group %s: partition %d: %d was committed in generation %d, and %d to %d in %d"
                               % (self.group, partition, offset, generation, least, most, g))
            if offset < ordered_most:
                self.wrong("group %s: partition %d: the commit of %d in generation %d succeeded after one of %d"
                           % (self.group, partition, offset, generation, ordered_most))

    def process(self, partition, first, end):
        with self.lock:
            pieces = self.done[partition]
            pieces.append((first, end))
            if len(pieces) > 1000:
                self.done[partition] = merged(pieces)

    def totals(self):
        """What a run says of it at its end."""
        with self.lock:
            return {"generations": len(self.generations), "commits": self.taken,
                    "records": sum(end - first for pieces in self.done.values() for first, end in merged(pieces))}

    def judge(self, committed):
        """committed: {partition: offset} of the coordinator, at the end."""
        for p in range(self.partitions):
            most, pieces = self.committed_most(p), merged(self.done[p])
            if committed[p] < most:
                self.wrong("group %s: partition %d: %d is committed, %d was" % (self.group, p, committed[p], most))
            if committed[p] > 0 and (not pieces or pieces[0][0] > 0 or pieces[0][1] < committed[p]):
                self.wrong("group %s: partition %d: not all below %d was processed: %s"
                           % (self.group, p, committed[p], pieces[:5]))


def merged(pieces):
    out = []
    for first, end in sorted(pieces):
        if out and first <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((first, end))
    return out


class Member(Worker):
    def __init__(self, number, history, view, wrong, seed):
        Worker.__init__(self, "member %d of %s" % (number, history.group), view, wrong, seed)
        self.history, self.member_id, self.coordinator = history, "", None

    def work(self):
        while not self.stopping.is_set():
            try:
                coordinator = self.view.coordinator(self.history.group)
                if coordinator is not None:
                    with kwire.Conn(KAFKA_PORT, host=self.view.hosts[coordinator], timeout=12) as conn:
                        self._with(conn)
            except GONE:
                pass
            self.rest(0.1)
        self._leave()

    def _leave(self):
        try:
            coordinator = self.view.coordinator(self.history.group)
            with kwire.Conn(KAFKA_PORT, host=self.view.hosts[coordinator], timeout=5) as conn:
                m = groupwire.Member(conn, self.history.group)
                m.id = self.member_id
                m.leave()
        except (GONE, KeyError):
            pass

    def _with(self, conn):
        """Generation after generation with this coordinator."""
        m = groupwire.Member(conn, self.history.group, protocols=(("range", groupwire.subscription(self.history.topic)),),
                             session_ms=4000, rebalance_ms=4000)
        while not self.stopping.is_set():
            m.id = self.member_id
            code = m.join()["error_code"]
            self.member_id = m.id
            if code == 0:
                code = self._sync(m)
            if code == 0:
                code = self._consume(m)
            if code == UNKNOWN_MEMBER:
                self.member_id = ""
            elif code in FIND_AGAIN:
                return
            elif code not in LATER | {REBALANCE, ILLEGAL_GENERATION, MEMBER_ID_REQUIRED, 0}:
                self.wrong("%s was told error %d" % (self.name, code))
                self.rest(1)

    def _sync(self, m):
        members = sorted(x["member_id"] for x in m.last_join["members"])
        plan = {}
        if members:
            token = "%s %d" % (m.id, self.random.randrange(1 << 40))
            plan = {x: json.dumps({"token": token, "partitions": [
                p for p in range(self.history.partitions) if p % len(members) == i]}).encode()
                for i, x in enumerate(members)}
        a = m.sync(plan)
        if a["error_code"] == 0:
            mine = json.loads(a["assignment"] or b'{"token": "", "partitions": []}')
            self.partitions, self.token = mine["partitions"], mine["token"]
            self.history.own(m.generation, m.id, mine["token"], self.partitions)
        return a["error_code"]

    def _positions(self, m):
        """Where the group stands; None: ask again."""
        want = {p: self.history.committed_most(p, below=m.generation) for p in self.partitions}
        error, found = groupwire.fetch(m.c, self.history.group, {self.history.topic: self.partitions})
        if error or any(v[3] for v in found.values()):
            return error or max(v[3] for v in found.values()), None
        at = {p: found[self.history.topic, p][0] for p in self.partitions}
        for p in self.partitions:
            if at[p] < want[p]:
                self.wrong("group %s: partition %d: generation %d finds %d, %d was committed before"
                           % (self.history.group, p, m.generation, at[p], want[p]))
        return 0, {p: max(o, 0) for p, o in at.items()}

    def _consume(self, m):
        """Until the coordinator says something else than 'go on'."""
        if not self.partitions:
            self.rest(0.5)
            return m.heartbeat()
        code, at = self._positions(m)
        if at is None:
            self.rest(0.1)
            return code
        leaders, beat = {}, time.monotonic()
        while not self.stopping.is_set():
            for p in self.partitions:
                at[p] = self._fetch(p, at[p], leaders)
            before = {p: self.history.committed_most(p) for p in at}
            for p, code in m.commit(self.history.topic, at).items():
                if code == 0:
                    self.history.commit(m.generation, p, at[p], before[p], self.token)
                elif code not in LATER:
                    return code
            if time.monotonic() - beat > 0.5:
                beat, code = time.monotonic(), m.heartbeat()
                if code:
                    return code
            self.rest(0.3 * self.random.random())
        return 0

    def _fetch(self, p, at, leaders):
        try:
            if leaders.get(p) is None:
                leaders[p] = self.view.leader(self.history.topic, p)
            if leaders[p] is None:
                return at
            a = self.view.call(leaders[p], "Fetch", 11, **kwire.fetch_request(
                11, [(self.history.topic, p, at)], max_wait_ms=50, max_bytes=1 << 20))
            got = kwire.fetched(a)[0][2]
        except GONE:
            leaders[p] = None
            return at
        if got["error_code"] in RETRIABLE or got["error_code"] == OUT_OF_RANGE:
            leaders[p] = None
            return at
        end = max([last + 1 for _, last, _ in records.heads(got["records"] or b"")], default=at)
        if end > at:
            self.history.process(p, at, end)
        return max(end, at)
