"""kafka-transactions: what it lists and describes, and transactions that nobody ends."""
import unittest

import harness
import kwire
import tool_test
import txnwire as t
from harness import until


class Transactions(tool_test.ToolTest):
    OVERRIDES = t.OVERRIDES

    def setUp(self):
        self.c = kwire.Conn(self.broker.port)
        self.addCleanup(self.c.close)
        self.topic = "k-%s" % self.id().rsplit(".", 1)[1]
        kwire.create_topic(self.c, self.topic, 2)
        self.p = t.Producer(self.c, self.topic).init()

    def run_tool(self, *args, **more):
        return self.tool("kafka-transactions", *args, **more)

    def table(self, *args):
        """Rows as dicts by their header; all lines are as wide."""
        lines = self.run_tool(*args).text.split("\n")
        self.assertEqual(lines.pop(), "")
        cells = [line.split("\t") for line in lines]
        for row in cells:
            self.assertEqual(row.pop(), "")  # a TAB behind the last column, too
        for column in zip(*cells):
            self.assertEqual(len(set(map(len, column))), 1, column)
        header = [c.strip() for c in cells[0]]
        return [dict(zip(header, (c.strip() for c in row))) for row in cells[1:]]

    def mine(self, *args):
        return [r for r in self.table(*args) if r.get("TransactionalId") == self.p.id]

    def test_list(self):
        want = {"TransactionalId": self.p.id, "Coordinator": "0", "ProducerId": str(self.p.pid),
                "TransactionState": "Empty"}
        self.assertEqual(self.mine("list"), [want])
        self.p.add((self.topic, 0))
        self.assertEqual(self.mine("list"), [dict(want, TransactionState="Ongoing")])
        self.assertEqual(self.mine("list", "--duration-filter", "3600000"), [])
        self.assertEqual(self.mine("list", "--duration-filter", "-1"), [dict(want, TransactionState="Ongoing")])
        self.p.end(True)

    def test_describe(self):
        rows = self.table("describe", "--transactional-id", self.p.id)
        self.assertEqual(rows, [{
            "CoordinatorId": "0", "TransactionalId": self.p.id, "ProducerId": str(self.p.pid), "ProducerEpoch": "0",
            "TransactionState": "Empty", "TransactionTimeoutMs": "60000", "CurrentTransactionStartTimeMs": "None",
            "TransactionDurationMs": "None", "TopicPartitions": ""}])
        self.p.add((self.topic, 1), (self.topic, 0))
        row, = self.table("describe", "--transactional-id", self.p.id)
        self.assertEqual(row["TopicPartitions"], "%s-0,%s-1" % (self.topic, self.topic))
        self.assertGreater(int(row["CurrentTransactionStartTimeMs"]), 1 << 40)
        self.assertLess(int(row["TransactionDurationMs"]), 60000)
        self.p.end(False)
        r = self.run_tool("describe", "--transactional-id", "no such id", status=1)
        self.assertIn("Failed to describe transaction state of transactional-id `no such id`", r.err)

    def test_describe_producers(self):
        self.p.add((self.topic, 0)).produce(self.topic, 0, b"1", b"2")
        args = ("describe-producers", "--topic", self.topic, "--partition", 0)
        row, = self.table(*args)
        self.assertGreater(int(row.pop("LastTimestamp")), 1 << 40)
        want = {"ProducerId": str(self.p.pid), "ProducerEpoch": "0", "LatestCoordinatorEpoch": "-1",
                "LastSequence": "1", "CurrentTransactionStartOffset": "0"}
        self.assertEqual(row, want)
        self.p.end(True)
        self.p.complete()
        row, = self.table(*args, "--broker-id", 0)
        self.assertEqual((row["LatestCoordinatorEpoch"], row["CurrentTransactionStartOffset"]), ("0", "None"))
        self.assertEqual(self.table("describe-producers", "--topic", self.topic, "--partition", 1), [])
        r = self.run_tool("describe-producers", "--topic", self.topic, "--partition", 9, status=1)
        self.assertIn("Failed to describe producers for partition %s-9 on leader" % self.topic, r.err)

    def hang(self, partition=0):
        """Records of a transaction that no coordinator knows of, from a producer that was verified nowhere."""
        switch = lambda on: self.c.call("IncrementalAlterConfigs", 1, resources=[
            {"resource_type": 4, "resource_name": "", "configs": [
                {"name": "transaction.partition.verification.enable", "config_operation": 0, "value": on}]}])
        switch("false")
        until("nobody is asked", lambda: self.p.try_produce(self.topic, partition, b"v")["error_code"] == t.NONE)
        switch("true")

    def end_offsets(self):
        a = kwire.fetch(self.c, 11, [(self.topic, 0, 0)], isolation_level=1)[0][2]
        return a["high_watermark"], a["last_stable_offset"]

    def test_what_hangs_is_found_and_aborted_by_its_offset(self):
        self.hang()
        self.assertEqual(self.end_offsets(), (1, 0))
        find = ("find-hanging", "--topic", self.topic, "--max-transaction-timeout", 0)
        until("it is older than nothing", lambda: self.table(*find))
        row, = self.table(*find)
        self.assertEqual((row["Topic"], row["Partition"], row["ProducerId"], row["StartOffset"], row["Duration(min)"]),
                         (self.topic, "0", str(self.p.pid), "0", "0"))
        self.assertEqual(self.table(*find, "--partition", 1), [])
        self.assertEqual(len([r for r in self.table("find-hanging", "--broker-id", 0, "--max-transaction-timeout", 0)
                              if r["Topic"] == self.topic]), 1)
        self.assertEqual(self.table("find-hanging", "--topic", self.topic), [])  # not for a quarter of an hour
        r = self.run_tool("abort", "--topic", self.topic, "--partition", 0, "--start-offset", 5, status=1)
        self.assertIn("Could not find any open transactions starting at offset 5 on partition %s-0" % self.topic, r.err)
        self.assertEqual(self.run_tool("abort", "--topic", self.topic, "--partition", 0, "--start-offset", 0).text, "")
        self.assertEqual(self.end_offsets(), (2, 2))
        self.assertEqual(self.table(*find), [])
        self.assertEqual(t.committed(self.c, self.topic, 0), [])

    def test_what_its_coordinator_knows_does_not_hang(self):
        self.p.add((self.topic, 0)).produce(self.topic, 0, b"v")
        self.hang(1)
        find = ("find-hanging", "--topic", self.topic, "--max-transaction-timeout", 0)
        until("the other one", lambda: self.table(*find))
        self.assertEqual([r["Partition"] for r in self.table(*find)], ["1"])
        self.run_tool("abort", "--topic", self.topic, "--partition", 1, "--producer-id", self.p.pid,
                      "--producer-epoch", self.p.epoch, "--coordinator-epoch", -1)
        self.assertEqual(self.table(*find), [])
        self.p.end(True)

    def admin(self, *args):
        status, out, err = harness.run([harness.program("tests/admin_transactions"), self.broker.address, *args])
        self.assertEqual((status, err), (0, ""))
        return [line.split(" ") for line in out.splitlines()]

    def test_producers_are_fenced_by_the_admin_client(self):
        self.p.add((self.topic, 0)).produce(self.topic, 0, b"v")
        a, b = self.admin("fence", self.p.id, "nobody-had-this")
        self.assertEqual(a, [self.p.id, "NONE", str(self.p.pid), "2"])  # one is for the abort
        self.assertEqual((b[0], b[1], b[3]), ("nobody-had-this", "NONE", "0"))
        self.assertEqual(self.p.try_end(True), t.PRODUCER_FENCED)
        self.assertEqual(t.committed(self.c, self.topic, 0), [])
        # the coordinator's record of it must reach its replicas in that time
        told = self.c.call("DescribeTransactions", 0, transactional_ids=[self.p.id, "nobody-had-this"])
        self.assertEqual([x["transaction_timeout_ms"] >= 10000 for x in told["transaction_states"]], [True, True])
        self.assertEqual(self.admin("states", self.p.id, "no-such-id"), [
            [self.p.id, "NONE", "Empty", "0"], ["no-such-id", "TRANSACTIONAL_ID_NOT_FOUND", "", "0"]])

    def test_command_lines_that_are_refused(self):
        for args, says in (((), "too few arguments"), (("open",), "invalid choice: 'open'"),
                           (("list", "more"), "unrecognized arguments: 'more'"),
                           (("describe",), "--transactional-id is required"),
                           (("describe-producers", "--topic", "t"), "--partition is required"),
                           (("abort", "--topic", "t", "--partition", 0), "must be identified"),
                           (("abort", "--topic", "t", "--partition", 0, "--producer-id", 1), "--producer-epoch"),
                           (("abort", "--topic", "t", "--partition", 0, "--producer-id", 1, "--producer-epoch", 1),
                            "--coordinator-epoch"),
                           (("find-hanging",), "either --topic or --broker-id"),
                           (("find-hanging", "--partition", 1), "requires --topic")):
            r = self.run_tool(*args, status=1)
            self.assertIn(says, r.err)
            self.assertEqual(r.out, b"")


if __name__ == "__main__":
    unittest.main()
