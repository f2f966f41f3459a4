"""The checker of histories finds each kind of breach: a checker that finds nothing proves nothing."""
import contextlib
import io
import json
import os
import sys
import tempfile
import threading
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import churn  # noqa: E402
import groups  # noqa: E402
import kwire  # noqa: E402
import records  # noqa: E402
import run  # noqa: E402
import tools  # noqa: E402
import txn_history  # noqa: E402
import txn_library  # noqa: E402
import txns  # noqa: E402
import verdict  # noqa: E402
import workload  # noqa: E402


class CheckerTest(unittest.TestCase):
    def setUp(self):
        self.found = []

    def assert_found(self, pattern):
        self.assertTrue(self.found, "nothing was found")
        self.assertRegex(" / ".join(self.found), pattern)


class Records(CheckerTest):
    def ledger(self, acked, sent=None):
        out = workload.Ledger("t", 0)
        out.acked, out.sent = acked, sent or acked
        return out

    def judge(self, ledger, numbers, attempts=None):
        log = [(o, records.value(n, (attempts or {}).get(n, 1))) for o, n in enumerate(numbers)]
        return verdict.judge(ledger, log, self.found.append)

    def test_a_true_history(self):
        ledger = self.ledger(5, 7)
        for o in range(5):
            ledger.see(o, records.value(o, 1), "reader", self.found.append)
        count = self.judge(ledger, range(7))
        self.assertEqual((self.found, count.lost, count.duplicated, count.reordered), ([], 0, 0, 0))

    def test_lost(self):
        self.assertEqual(self.judge(self.ledger(5), range(4)).lost, 1)
        self.assert_found("1 records lost")
        self.assertEqual(self.judge(self.ledger(5), [0, 2, 3, 4]).lost, 1)

    def test_duplicated(self):
        self.assertEqual(self.judge(self.ledger(3), [0, 1, 1, 2]).duplicated, 1)
        self.assert_found("1 records duplicated")

    def test_reordered(self):
        self.assertEqual(self.judge(self.ledger(3), [0, 2, 1]).reordered, 1)
        self.assert_found("1 records reordered")

    def test_vanished(self):
        ledger = self.ledger(2)
        ledger.see(2, records.value(2, 1), "reader", self.found.append)
        self.assertEqual(self.judge(ledger, [0, 1]).vanished, 1)
        self.assert_found(r"seen and vanished: offsets \[2\]")

    def test_vanished_and_written_again(self):
        ledger = self.ledger(3)
        ledger.see(2, records.value(2, 1), "reader", self.found.append)
        self.assertEqual(self.judge(ledger, [0, 1, 2], {2: 2}).vanished, 1)
        self.found.clear()
        ledger.see(2, records.value(2, 2), "reader", self.found.append)
        self.assert_found("seen, vanished, and was written again")

    def test_read_at_a_wrong_place(self):
        self.ledger(5).see(3, records.value(4, 1), "reader", self.found.append)
        self.assert_found("given record 4 at offset 3")

    def test_bytes_that_nobody_sent(self):
        with self.assertRaises(AssertionError):
            records.parse(records.value(7, 1)[:-1] + b"?")

    def test_records_are_read_as_they_were_written(self):
        data = records.batch(9, 3, 4, 2)
        self.assertEqual([(o, records.parse(v)) for o, v in records.values(data, check=True)],
                         [(o, (o + 3, 2)) for o in range(4)])
        self.assertEqual([(b, last) for b, last, _ in records.heads(data + data[:-1])], [(0, 3)])
        self.assertEqual([r[3] for r in kwire.records(data)], [v for _, v in records.values(data)])


    def test_a_gap(self):
        log = [(o, records.value(n, 1)) for n, o in enumerate((0, 1, 3))]
        verdict.judge(self.ledger(3), log, self.found.append)
        self.assert_found("offsets have a gap")

    def test_answers_to_a_producer(self):
        ledger = self.ledger(0, 9)
        view = types.SimpleNamespace(state=lambda topic, index: {"leader": 1})
        p = workload.Producer(ledger, view, self.found.append, 1, 0)
        p.give_up.wait = lambda seconds: None
        p.unacked = [[0, 2, 1], [2, 2, 1], [4, 2, 1]]
        self.assertTrue(p._take(1, 0, 0))
        self.assertTrue(p._take(1, workload.DUPLICATE, -1))
        self.assertFalse(p._take(1, 6, -1))                       # a leader no longer
        self.assertFalse(p._take(2, workload.OUT_OF_ORDER, -1))   # who leads no longer lacks what went before
        self.assertEqual((ledger.acked, self.found), (4, []))
        p._take(1, workload.OUT_OF_ORDER, -1)
        self.assert_found("4 to 5, was refused with error 45 by broker 1")
        self.found.clear()
        p._take(1, 0, 7)
        self.assert_found("records 4 to 5 were acknowledged at offset 7")

    def reader(self, error, *numbers):
        data = b"".join(kwire.simple_batch(records.value(n, 1), base_offset=n) for n in numbers)
        answer = {"responses": [{"topic": "t", "partitions": [{"partition_index": 0, "error_code": error, "records": data}]}]}
        view = types.SimpleNamespace(call=lambda *a, **v: answer)
        return workload.Reader(self.ledger(9), view, self.found.append, 1)._fetch(1)

    def test_answers_to_a_reader(self):
        self.assertTrue(self.reader(0, 0, 1, 2))
        self.assertFalse(self.reader(6))
        self.assertEqual(self.found, [])
        self.reader(0, 0, 2)
        self.assert_found("a reader at 1 was given 2 by broker 1")
        self.found.clear()
        self.reader(2)
        self.assert_found("a reader at 0 was told error 2")

    def test_a_worker_that_fails(self):
        class Fails(workload.Worker):
            def work(self):
                raise ValueError("why")
        Fails("a worker", None, self.found.append, 1).run()
        self.assert_found("a worker ended: ValueError..why")


class Copies(CheckerTest):
    """Files of brokers 1 and 2, which have two log dirs each."""

    def setUp(self):
        CheckerTest.setUp(self)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.brokers = [types.SimpleNamespace(number=n, dirs=[os.path.join(self.folder.name, "%d%s" % (n, d)) for d in "ab"])
                        for n in (1, 2)]
        self.data = records.batch(9, 0, 3, 1)

    def put(self, broker, which, *segments):
        path = os.path.join(self.brokers[broker - 1].dirs[which], "t-0")
        os.makedirs(path)
        for i, data in enumerate(segments):
            with open(os.path.join(path, "%020d.log" % i), "wb") as f:
                f.write(data)

    def compare(self):
        verdict.compare_copies(self.brokers, "t", 0, [1, 2], self.found.append)

    def test_the_same_in_other_segments(self):
        self.put(1, 0, self.data + self.data)
        self.put(2, 1, self.data, self.data)
        self.compare()
        self.assertEqual(self.found, [])

    def test_other_bytes(self):
        self.put(1, 0, self.data + self.data)
        self.put(2, 0, self.data + self.data[:-1] + b"?")
        self.compare()
        self.assert_found("brokers 1 and 2 differ from byte %d on" % (2 * len(self.data) - 1))

    def test_fewer_bytes(self):
        self.put(1, 0, self.data + self.data)
        self.put(2, 0, self.data)
        self.compare()
        self.assert_found("brokers 1 and 2 differ from byte %d on" % len(self.data))

    def test_no_copy_or_two(self):
        self.put(1, 0, self.data)
        self.put(1, 1, self.data)
        self.compare()
        self.assert_found("broker 1 has 2 folders of it / .*broker 2 has 0 folders of it")


class ToolsTest(CheckerTest):
    """What the verifiable programs said, against the log."""

    def judge(self, acks, log, read=((0, 1),), committed=2, first=None):
        said = {"producer1": [{"name": "producer_send_success", "partition": 0, "offset": o, "value": v} for o, v in acks],
                "classic1": [{"name": "records_consumed", "partitions": [
                    {"partition": 0, "count": b - a + 1, "minOffset": a, "maxOffset": b} for a, b in read]},
                    {"name": "offsets_committed", "success": True, "offsets": [{"partition": 0, "offset": committed}]}]}
        said["classic1"] += first or []
        t = tools.Tools.__new__(tools.Tools)
        t.topic, t.wrong, t.events = "v", self.found.append, lambda name: said.get(name, [])
        count = verdict.Count()
        t.judge({0: [(o, v.encode()) for o, v in log]}, count)
        return count

    LOG = ((0, "1.0"), (1, "1.1"))

    def test_a_true_history(self):
        count = self.judge(self.LOG, self.LOG)
        self.assertEqual((self.found, count.acknowledged, count.lost), ([], 2, 0))

    def test_lost_twice_out_of_order_elsewhere(self):
        self.assertEqual(self.judge(self.LOG, self.LOG[:1], ((0, 0),), 1).lost, 1)
        self.assert_found("1 records of the verifiable producers are lost")
        self.assertEqual(self.judge(self.LOG, self.LOG + ((2, "1.1"),)).duplicated, 1)
        self.assert_found("are twice")
        self.assertEqual(self.judge((), ((0, "1.1"), (1, "1.0"))).reordered, 1)
        self.assert_found("are out of order")
        self.judge(self.LOG, ((1, "1.0"), (2, "1.1")))
        self.assert_found("are not where told")

    def test_groups(self):
        self.judge(self.LOG, self.LOG, read=((1, 1),))
        self.assert_found("read without a gap to 0, committed 2, end 2")
        self.found.clear()
        self.judge(self.LOG, self.LOG, committed=3)
        self.assert_found("committed 3, end 2")
        self.found.clear()
        self.judge(self.LOG, self.LOG, first=[{"name": "records_consumed", "partitions": [
            {"partition": 0, "count": 1, "minOffset": 0, "maxOffset": 1}]}])
        self.assert_found("group classic, partition 0: .*count")


class Cluster(CheckerTest):
    """Znodes and answers that are not whole."""

    class View:
        def __init__(self, nodes, topics):
            self.nodes, self.topics = nodes, topics

        def zookeeper(self):
            return self

        def __enter__(self):
            return self

        def __exit__(self, *ignored):
            pass

        def children(self, path):
            return sorted({n[len(path) + 1:].split("/")[0] for n in self.nodes if n.startswith(path + "/")})

        def stat(self, path):
            return path in self.nodes

        def get(self, path):
            return json.dumps(self.nodes[path]).encode()

        def json(self, path):
            return self.nodes[path]

        def metadata(self, topics, number):
            return {"brokers": [{"node_id": 1}, {"node_id": 2}], "topics": self.topics}

    def whole(self):
        nodes = {"/brokers/ids/1": 1, "/brokers/ids/2": 1, "/controller": 1, "/brokers/topics/t": {"partitions": {"0": [1, 2]}},
                 "/brokers/topics/t/partitions/0/state": {"leader": 1, "isr": [1, 2]}}
        return self.View(nodes, [{"name": "t", "partitions": [{"partition_index": 0, "leader_id": 1, "error_code": 0}]}])

    BROKERS = [types.SimpleNamespace(number=1), types.SimpleNamespace(number=2)]

    def trouble(self, **changes):
        view = self.whole()
        for path, value in changes.pop("nodes", {}).items():
            view.nodes.pop(path, None)
            if value is not None:
                view.nodes[path] = value
        view.topics[0]["partitions"][0].update(changes)
        return verdict.trouble(view, self.BROKERS)

    def test_whole(self):
        self.assertIsNone(self.trouble())

    def test_what_is_not_whole(self):
        state = "/brokers/topics/t/partitions/0/state"
        for nodes, said in (({"/brokers/ids/2": None}, "registered are .1."), ({"/controller": None}, "no controller"),
                            ({"/admin/delete_topics/x": 1}, "topics to delete"),
                            ({"/admin/reassign_partitions": 1}, "reassign_partitions is there"),
                            ({"/brokers/topics/t": {"partitions": {"0": [1, 2]}, "adding_replicas": {"0": [3]}}}, "reassigned"),
                            ({state: None}, "has no state"), ({state: {"leader": -1, "isr": [1, 2]}}, "t-0, replicas"),
                            ({state: {"leader": 1, "isr": [1]}}, "t-0, replicas")):
            self.assertRegex(self.trouble(nodes=nodes) or "whole", said)
        self.assertRegex(self.trouble(leader_id=-1) or "whole", "knows no leader")
        self.assertRegex(self.trouble(error_code=5) or "whole", "knows no leader")

    def churn(self, **told):
        c = churn.Churn(self.whole(), "t", 1, self.found.append, 1)
        c.topics = told
        c.judge(self.BROKERS)

    def test_topics(self):
        self.churn(t=churn.PRESENT, gone=churn.ABSENT, who_knows=churn.OPEN)
        self.assertEqual(self.found, [])
        self.churn(made=churn.PRESENT)
        self.assert_found("topic made was created and is not there")
        self.churn(t=churn.ABSENT)
        self.assert_found("topic t was deleted and is there")
        self.found.clear()
        c = churn.Churn(self.whole(), "t", 1, self.found.append, 1)
        c.view.topics = [{"name": "u"}]
        c.judge(self.BROKERS)
        self.assert_found("knows topics .'u'. that are not there, and does not know .'t'.")


class Groups(CheckerTest):
    def history(self):
        return groups.GroupHistory("g", "t", 1, self.found.append)

    def test_a_true_history(self):
        h = self.history()
        h.own(1, "a", "x", [0])
        h.process(0, 0, 10)
        h.commit(1, 0, 10, -1)
        h.own(2, "b", "y", [0])
        h.process(0, 10, 20)
        h.commit(2, 0, 20, 10)
        h.judge({0: 20})
        self.assertEqual(self.found, [])

    def test_two_owners(self):
        h = self.history()
        h.own(1, "a", "x", [0])
        h.own(1, "b", "x", [0])
        self.assert_found("belongs to a and b in generation 1")

    def test_two_assignments(self):
        h = self.history()
        h.own(1, "a", "x", [0])
        h.own(1, "b", "y", [0])
        self.assertEqual(self.found, [])
        h.commit(1, 0, 10, -1, "x")
        h.commit(1, 0, 10, -1, "y")
        self.assert_found("two assignments in generation 1")

    def test_a_commit_that_goes_back(self):
        h = self.history()
        h.commit(2, 0, 20, -1)
        h.commit(3, 0, 10, -1)
        self.assert_found("10 was committed in generation 3, and 20 to 20 in 2")
        self.found.clear()
        h.commit(4, 0, 15, 20)
        self.assert_found("succeeded after one of 20")

    def test_a_commit_that_is_gone(self):
        h = self.history()
        h.process(0, 0, 20)
        h.commit(1, 0, 20, -1)
        h.judge({0: 10})
        self.assert_found("10 is committed, 20 was")

    def test_records_that_nobody_processed(self):
        h = self.history()
        h.process(0, 0, 5)
        h.process(0, 6, 20)
        h.commit(1, 0, 20, -1)
        h.judge({0: 20})
        self.assert_found("not all below 20 was processed")

    def test_a_generation_that_finds_less(self):
        h = self.history()
        h.commit(1, 0, 20, -1)
        m = groups.Member(1, h, None, self.found.append, 1)
        m.partitions = [0]
        answer = {"error_code": 0, "topics": [{"name": "t", "partitions": [
            {"partition_index": 0, "committed_offset": 10, "committed_leader_epoch": -1, "metadata": "", "error_code": 0}]}]}
        answer = {"groups": [dict(answer, group_id="g")]}
        conn = types.SimpleNamespace(call=lambda *a, **v: answer)
        m._positions(types.SimpleNamespace(c=conn, generation=2))
        self.assert_found("generation 2 finds 10, 20 was committed before")


class Transactions(CheckerTest):
    """Invented histories of two partitions and one seat, whose inputs are 0 to 10, 10 to 20, ..."""
    A, B = ("ta", 0), ("tb", 1)

    def setUp(self):
        CheckerTest.setUp(self)
        self.h = txn_history.TxnHistory(self.found.append)
        self.logs = {self.A: [], self.B: []}

    def transaction(self, there=True, seat=0, first=None, end=None):
        """Two records to either partition, which are there or not."""
        n = len(self.h.all)
        t = self.h.begin(seat, 10 * n if first is None else first, 10 * n + 10 if end is None else end)
        for p in (self.A, self.B):
            values = self.h.write(t, p, 2)
            if there:
                self.append(p, *values)
        return t

    def append(self, partition, *values):
        for v in values:
            self.logs[partition].append((len(self.logs[partition]) * 2, v))  # (markers take offsets, too)

    def commit(self, **how):
        t = self.transaction(**how)
        self.h.commit_asked(t)
        self.h.committed(t)
        return t

    def judge(self, offset=None, **more):
        self.h.judge(self.logs, {0: 10 * len(self.h.all) if offset is None else offset, **more})
        return self.h.count

    def assert_only(self, kind, pattern):
        self.assert_found(pattern)
        self.assertEqual([k for k in txn_history.KINDS if self.h.count[k]], [kind])

    def test_a_true_history(self):
        self.commit()
        self.h.aborted(self.transaction(there=False))
        self.h.refused(self.transaction(there=False), in_doubt=False)
        self.transaction(there=False)                          # its producer died
        self.commit(first=10, end=20)
        for first, there in ((20, True), (30, False)):         # asked for, no answer: all of it or nothing
            t = self.transaction(there=there, first=first, end=first + 10)
            self.h.commit_asked(t)
            self.h.refused(t, in_doubt=True)
        for p, log in self.logs.items():
            for offset, body in log:
                self.h.see(p, offset, body, "reader")
        self.h.judge_ends({self.A: (12, 12), self.B: (0, 0)})
        count = self.judge(offset=30)
        self.assertEqual(self.found, [])
        self.assertEqual((count["committed"], count["aborted"], count["open"], count["doubtful"], count["records"]),
                         (2, 2, 1, 2, 12))

    def test_a_committed_one_is_lost(self):
        self.commit()
        self.commit(there=False)
        self.judge(offset=10)
        self.assert_only("lost", "lost: transaction 1, seat 0, was committed; nothing of it is there")

    def test_half_of_a_committed_one(self):
        self.commit()
        self.logs[self.B].pop()
        self.judge()
        self.assert_only("half", "half: transaction 0, seat 0, is committed; of its 4 records 3 are there")

    def test_one_partition_of_one_that_is_in_doubt(self):
        self.h.commit_asked(self.transaction())
        self.logs[self.B].clear()
        self.judge()
        self.assert_only("half", "is committing; of its 4 records 2 are there")

    def test_records_of_an_aborted_one(self):
        self.h.aborted(self.transaction())
        self.logs[self.B].clear()
        self.judge()
        self.assert_only("leaked", "leaked: transaction 0, seat 0, is aborted; of its 4 records 2 are there")

    def test_records_of_one_whose_commit_nobody_asked_for(self):
        self.transaction()
        self.judge()
        self.assert_only("leaked", "leaked: transaction 0, seat 0, is open; of its 4 records 4 are there")

    def test_one_that_was_refused_without_doubt(self):
        t = self.transaction()
        self.h.commit_asked(t)
        self.h.refused(t, in_doubt=False)
        self.judge()
        self.assert_only("leaked", "is aborted")

    def test_records_that_are_there_twice(self):
        self.commit()
        self.append(self.A, self.logs[self.A][-1][1])
        self.judge()
        self.assert_only("duplicated", "duplicated: of transaction 0, seat 0")

    def test_a_whole_transaction_that_is_there_twice(self):
        self.commit()
        for p in (self.A, self.B):
            self.append(p, *[v for _, v in self.logs[p]])
        self.judge()
        self.assertEqual((self.h.count["duplicated"], self.h.count["reordered"]), (1, 2))

    def test_records_out_of_order(self):
        self.commit()
        values = [v for _, v in self.logs[self.A]]
        self.logs[self.A] = [(0, values[1]), (1, values[0])]
        self.judge()
        self.assert_only("reordered", "reordered: .'ta', 0., 1: b.seat-0-transaction-0-record-0")

    def test_transactions_out_of_order(self):
        self.commit()
        self.commit()
        values = [v for _, v in self.logs[self.A]]
        self.logs[self.A] = list(enumerate(values[2:] + values[:2]))
        self.judge()
        self.assert_only("reordered", "transaction-0-record-0")

    def test_what_nobody_has_sent(self):
        t = self.commit()
        self.append(self.A, txn_history.value(t, 2))
        self.judge()
        self.assert_only("foreign", "foreign: .'ta', 0. has b.seat-0-transaction-0-record-2")
        with self.assertRaises(AssertionError):
            txn_history.parse(b"something else")
        self.found.clear()
        self.h.see(self.A, 9, txn_history.value(txn_history.Transaction(7, 0, 0, 1), 0), "reader")
        self.assert_found("reader was given b.seat-0-transaction-7-.*, which nobody has sent")

    def test_an_input_that_two_took(self):
        self.commit()
        self.commit(first=0, end=10)
        self.judge(offset=10)
        self.assert_only("broken_chain", "transaction 1 took 0 to 10, the one before ended at 10")

    def test_an_input_that_none_took(self):
        self.commit()
        self.commit(first=20, end=30)
        self.judge(offset=30)
        self.assert_only("broken_chain", "took 20 to 30, the one before ended at 10")

    def test_an_offset_without_its_records_and_records_without_their_offset(self):
        self.commit()
        self.judge(offset=20)
        self.assert_only("broken_chain", "its group's offset is 20, its transactions ended at 10")
        self.found.clear()
        self.h.judge(self.logs, {0: 0})
        self.assert_found("its group's offset is 0, its transactions ended at 10")

    def test_a_reader_is_given_what_is_open_or_aborted(self):
        t = self.transaction(there=False)
        self.h.see(self.A, 0, txn_history.value(t, 0), "reader")
        self.assert_only("leaked", "reader was given b.seat-0-transaction-0-record-0-.*, which is open")
        self.found.clear()
        self.h.aborted(t)
        self.h.see(self.B, 0, txn_history.value(t, 1), "reader")
        self.assert_found("which is aborted")

    def test_a_reader_is_given_what_vanishes(self):
        t = self.commit()
        self.h.see(self.A, 8, txn_history.value(t, 0), "reader")
        self.judge()
        self.assert_only("vanished", "was seen at ..'ta', 0., 8.; there is None")
        self.found.clear()
        self.h.see(self.A, 8, txn_history.value(t, 1), "another")
        self.assert_found("another was given .* where .* was")

    def test_a_transaction_that_hangs(self):
        self.h.judge_ends({self.A: (5, 9), self.B: (4, 4)})
        self.assert_only("hanging", "'ta', 0.: a transaction is open at 5 of 9")

    def test_epochs_that_do_not_rise(self):
        self.h.given(0, 1000, 3)
        self.h.given(0, 1000, 4)
        self.h.given(0, 2000, 0)
        self.assertEqual(self.found, [])
        self.assertTrue(self.h.is_fenced(0, 1000, 4))
        self.assertFalse(self.h.is_fenced(0, 2000, 0))
        self.h.given(0, 2000, 0)
        self.assert_only("leaked", "is given epoch 0 of producer 2000 after 0")

    def test_a_write_of_a_producer_that_was_shut_out(self):
        self.h.taken_of_fenced(self.transaction(), "a batch")
        self.assert_only("leaked", "a batch of transaction 0, seat 0, was taken, though")

    def test_the_reader_leaves_out_what_was_aborted(self):
        def data(base, producer, *values, attributes=16):
            return kwire.simple_batch(*values, producer_id=producer, producer_epoch=0, sequence=0, attributes=attributes,
                                      base_offset=base)
        marker = lambda base, producer: data(base, producer, b"", attributes=48)  # noqa: E731
        log = (data(0, 1, b"gone", b"gone") + data(2, 2, b"kept") + data(3, -1, b"plain", attributes=0) + marker(4, 1) +
               data(5, 1, b"next") + marker(6, 2) + marker(7, 1))
        kept = [(2, b"kept"), (3, b"plain"), (5, b"next")]
        self.assertEqual(txn_history.committed(log, [(1, 0)], 0), (kept, 8))
        self.assertEqual(txn_history.committed(log, [(1, 0)], 3), (kept[1:], 8))
        self.assertEqual(len(txn_history.committed(log, [], 0)[0]), 5)


class Answers(CheckerTest):
    """What a producer makes of answers; the cluster is made up."""

    class Seat:
        number, name, group = 0, "tx-0", "g"

        def __init__(self, found, answers):
            self.view, self.answers = self, answers
            self.hosts = {1: "one"}
            self.history = txn_history.TxnHistory(found.append)
            self.wrong = found.append
            self.give_up = threading.Event()
            self.give_up.wait = lambda seconds: None

        def dice(self):
            return 0

        def any(self, api, version, **values):
            return {"error_code": 0, "node_id": 1}

        def call(self, broker, api, version, **values):
            answer = self.answers.pop(0)
            if answer is None:
                raise ConnectionResetError()
            return {"error_code": answer}

    def end(self, *answers, commit=True):
        """The fate of a transaction whose EndTxn gets these answers (None: none)."""
        seat = self.Seat(self.found, list(answers))
        self.wire = txns.Wire(seat, 1000)
        t = seat.history.begin(0, 0, 1)
        try:
            self.wire.end(t, commit)
        except txns.Ended:
            pass
        self.assertEqual(seat.answers, [])
        return t.fate

    def test_fates(self):
        self.assertEqual(self.end(0), txn_history.COMMITTED)
        self.assertEqual(self.end(None, 16, 51, 0), txn_history.COMMITTED)
        self.assertEqual(self.end(0, commit=False), txn_history.ABORTED)
        self.assertEqual(self.end(90), txn_history.ABORTED)
        self.assertEqual(self.end(None, 90), txn_history.COMMITTING)   # the first may have been taken
        self.assertEqual(self.end(15, 47), txn_history.COMMITTING)
        self.assertEqual(self.end(None, 90, commit=False), txn_history.ABORTED)
        self.assertEqual(self.found, [])

    def test_no_answer_asks_for_another_epoch(self):
        self.end(0)
        self.assertFalse(self.wire.unanswered)
        self.end(None, 0)
        self.assertTrue(self.wire.unanswered)

    def test_an_error_that_none_should_get(self):
        self.end(49)
        self.assert_found("EndTxn: error 49")


class LibraryAnswers(CheckerTest):
    """The same of what the C library's producer says."""

    def end(self, line, *answers):
        """(fate, goes on) of a transaction; answers: (error, status) to the line, and to what follows it."""
        answers = list(answers)
        seat = types.SimpleNamespace(name="tx-3", wrong=self.found.append, fenced=0, history=txn_history.TxnHistory(self.found.append))
        t = seat.history.begin(3, 0, 1)
        more = txn_library.LibrarySeat.obey(seat, types.SimpleNamespace(do=lambda line: answers.pop(0)), t, line)
        self.assertEqual(answers, [])
        return t.fate, more

    def test_fates(self):
        self.assertEqual(self.end("commit", ("NONE", "fine")), (txn_history.COMMITTED, True))
        self.assertEqual(self.end("abort", ("NONE", "fine")), (txn_history.ABORTED, True))
        self.assertEqual(self.end("begin", ("NONE", "fine")), (txn_history.OPEN, True))
        self.assertEqual(self.end("commit", ("PRODUCER_FENCED", "fatal")), (txn_history.COMMITTING, False))
        self.assertEqual(self.end("commit", ("TIMED_OUT", "fine")), (txn_history.COMMITTING, False))
        self.assertEqual(self.end("commit", ("INVALID_TXN_STATE", "abort"), ("NONE", "fine")), (txn_history.ABORTED, False))
        self.assertEqual(self.end("offset", ("INVALID_PRODUCER_EPOCH", "abort"), ("PRODUCER_FENCED", "fatal")),
                         (txn_history.OPEN, False))
        self.assertEqual(self.found, [])

    def test_an_error_that_none_should_get(self):
        self.end("commit", ("INVALID_PRODUCER_ID_MAPPING", "fatal"))
        self.assert_found("tx-3: 'commit': INVALID_PRODUCER_ID_MAPPING, fatal")


class Arguments(unittest.TestCase):
    """What chaos.sh is asked: a wrong word is refused, before an hour is spent on something else."""

    def refused(self, *argv):
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            run.arguments(list(argv))
        self.assertEqual(end.exception.code, 2)
        return said.getvalue()

    def test_what_is_wrong_is_refused(self):
        self.assertIn("no such kind of fault: 'kil'", self.refused("1", "--only", "cut,kil"))
        self.assertIn("KEY=VALUE", self.refused("--set", "min.insync.replicas"))
        for wrong in (["0"], ["-1"], ["soon"], ["1", "--seed", "x"], ["1", "--life", "0"], ["1", "2"], ["--bogus"]):
            self.refused(*wrong)

    def test_what_is_right_is_taken(self):
        a = run.arguments(["0.5", "--seed", "7", "--only", "kill,cut", "--set", "a=b=c", "--set", "d="])
        self.assertEqual((a.minutes, a.seed, a.only, dict(a.set)), (0.5, 7, ["kill", "cut"], {"a": "b=c", "d": ""}))
        self.assertIsNone(run.arguments([]).only)

    def test_help_names_every_kind(self):
        with contextlib.redirect_stdout(io.StringIO()) as said, self.assertRaises(SystemExit):
            run.arguments(["--help"])
        words = said.getvalue().replace(",", " ").replace(".", " ").split()
        for kind in run.faults.Faults.WEIGHTS:
            self.assertIn(kind, words)


if __name__ == "__main__":
    unittest.main()
