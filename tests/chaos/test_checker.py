"""The checker of histories finds each kind of breach: a checker that finds nothing proves nothing."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import groups  # noqa: E402
import kwire  # noqa: E402
import records  # noqa: E402
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


if __name__ == "__main__":
    unittest.main()
