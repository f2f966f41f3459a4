"""Transactions at one broker, over raw frames in every version: what becomes visible and when, offsets in
transactions, who is refused and how, and all of it after a stop or a kill."""
import threading
import unittest

import groupwire as g
import harness
import kwire
import txnwire as t
from harness import until


class Transactions(harness.BrokerTest):
    OVERRIDES = t.OVERRIDES

    def setUp(self):
        self.c = kwire.Conn(self.broker.port)
        self.addCleanup(self.c.close)
        self.topic = "t-%s" % self.id().rsplit(".", 1)[1]

    def make(self, partitions=2, **configs):
        kwire.create_topic(self.c, self.topic, partitions, configs)
        return self.topic

    def test_a_coordinator_for_every_version(self):
        until("a coordinator", lambda: t.find(self.c, "id")[0] == t.NONE)
        for version in range(1, 7):
            self.assertEqual(t.find(self.c, "id", version), (t.NONE, 0))
        configs = self.c.call("DescribeConfigs", 4, resources=[
            {"resource_type": 2, "resource_name": "__transaction_state", "configuration_keys": None}])
        values = {c["name"]: c["value"] for c in configs["results"][0]["configs"]}
        for name, value in (("cleanup.policy", "compact"), ("compression.type", "uncompressed"),
                            ("unclean.leader.election.enable", "false"), ("min.insync.replicas", "1"),
                            ("segment.bytes", "104857600")):
            self.assertEqual(values[name], value)

    def test_what_is_committed_is_seen_and_what_is_aborted_is_not(self):
        topic, p = self.make(), t.Producer(self.c, self.topic).init()
        seen = []
        for i in range(10):
            p.add((topic, 0), (topic, 1))
            p.produce(topic, 0, b"a%d" % i, b"b%d" % i)
            p.produce(topic, 1, b"c%d" % i)
            self.assertEqual(t.committed(self.c, topic, 0), seen)
            p.end(i % 3 != 2)
            p.complete()
            seen += [b"a%d" % i, b"b%d" % i] if i % 3 != 2 else []
            self.assertEqual(t.committed(self.c, topic, 0), seen)
        everything = [r[3] for r in kwire.records(kwire.fetch(self.c, 11, [(topic, 0, 0)])[0][2]["records"])]
        self.assertEqual(len([v for v in everything if v[:1] in b"ab"]), 20)
        for how in (self.broker.stop, self.broker.kill):
            how()
            self.broker.start()
            with kwire.Conn(self.broker.port) as c:
                until("the topic is back", lambda: kwire.list_offset(c, 5, topic, 0, -1)["error_code"] == 0)
                self.assertEqual(t.committed(c, topic, 0), seen)

    def test_old_versions(self):
        topic = self.make()
        for n in range(3):
            versions = {api: min(last, n) for api, last in t.LAST.items()}
            versions["Produce"] = 3 + n
            p = t.Producer(self.c, "old-%d" % n, versions).init()
            p.add((topic, 0)).produce(topic, 0, b"%d" % n)
            p.add_offsets("g-%d" % n)
            g.coordinator(self.c, "g-%d" % n)
            self.assertEqual(p.try_commit_offset("g-%d" % n, topic, 0, 5), t.NONE)
            p.end(True)
            p.complete()
        self.assertEqual(t.committed(self.c, topic, 0), [b"0", b"1", b"2"])

    def test_the_last_stable_offset(self):
        topic, p = self.make(1), t.Producer(self.c, self.topic).init()
        plain = lambda v: kwire.produce_one(self.c, topic, 0, kwire.simple_batch(v))
        plain(b"1")
        p.add((topic, 0)).produce(topic, 0, b"2")
        plain(b"3")

        def ends():
            return [kwire.list_offset(self.c, 5, topic, 0, -1, current_leader_epoch=-1)["offset"]] + [
                self.c.call("ListOffsets", 5, replica_id=-1, isolation_level=1, topics=[
                    {"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1,
                                                    "current_leader_epoch": -1}]}])["topics"][0]["partitions"][0]["offset"]]
        self.assertEqual(ends(), [3, 1])
        a = kwire.fetch(self.c, 11, [(topic, 0, 0)], isolation_level=1)[0][2]
        self.assertEqual((a["high_watermark"], a["last_stable_offset"]), (3, 1))
        p.end(False)
        p.complete()
        self.assertEqual(ends(), [4, 4])
        self.assertEqual(t.committed(self.c, topic, 0), [b"1", b"3"])

    def test_a_waiting_reader_is_woken_by_the_marker(self):
        topic, p = self.make(1), t.Producer(self.c, self.topic).init()
        p.add((topic, 0)).produce(topic, 0, b"v")
        got = []

        def read():
            with kwire.Conn(self.broker.port) as c:
                got.append(kwire.fetch(c, 11, [(topic, 0, 0)], max_wait_ms=25000, isolation_level=1)[0][2])
        reader = threading.Thread(target=read)
        reader.start()
        p.end(True)
        reader.join(20)
        self.assertFalse(reader.is_alive(), "the fetch waits on")
        self.assertTrue(got[0]["records"])

    def test_offsets_in_a_transaction(self):
        topic, p = self.make(1), t.Producer(self.c, self.topic).init()
        g.coordinator(self.c, "group")

        def offset(stable=False):
            a = self.c.call("OffsetFetch", 7, group_id="group", require_stable=stable, topics=[
                {"name": topic, "partition_indexes": [0]}])["topics"][0]["partitions"][0]
            return a["error_code"] or a["committed_offset"]
        want = -1
        for i, commit in enumerate((True, False, True)):
            p.add_offsets("group")
            self.assertEqual(p.try_commit_offset("group", topic, 0, 100 + i), t.NONE)
            self.assertEqual((offset(), offset(True)), (want, t.UNSTABLE))
            p.end(commit)
            p.complete()
            want = 100 + i if commit else want
            until("offset %d" % want, lambda: offset(True) == want)
        p.add_offsets("group")
        self.assertEqual(p.try_commit_offset("group", topic, 0, 200), t.NONE)
        self.broker.kill()
        self.broker.start()
        with kwire.Conn(self.broker.port) as c:
            self.c = p.conn = c
            g.coordinator(c, "group")
            self.assertEqual((offset(), offset(True)), (102, t.UNSTABLE))
            until("the coordinator is back", lambda: t.describe(c, p.id)["error_code"] == t.NONE)
            p.end(True)
            until("offset 200", lambda: offset(True) == 200)

    def test_who_is_fenced_and_how_he_is_told(self):
        topic = self.make()
        for api, last in (("AddPartitionsToTxn", 3), ("AddOffsetsToTxn", 4), ("EndTxn", 4)):
            for version in range(last + 1):
                old = t.Producer(self.c, "fenced", {api: version}).init()
                t.Producer(self.c, "fenced").init()
                want = t.INVALID_EPOCH if version < 2 else t.PRODUCER_FENCED
                got = {"AddPartitionsToTxn": lambda: old.try_add((topic, 0))[(topic, 0)],
                       "AddOffsetsToTxn": lambda: old.call("AddOffsetsToTxn", group_id="g", **old.who())["error_code"],
                       "EndTxn": lambda: old.try_end(True)}[api]()
                self.assertEqual(got, want, "%s v%d" % (api, version))
        for version in (3, 4, 5):
            p = t.Producer(self.c, "fenced", {"InitProducerId": version}).init()
            first = p.who()
            self.assertEqual(p.try_init(p.pid, p.epoch), t.NONE)
            self.assertEqual(p.epoch, first["producer_epoch"] + 1)
            self.assertEqual(p.try_init(first["producer_id"], first["producer_epoch"]), t.NONE)  # asked twice
            self.assertEqual(p.epoch, first["producer_epoch"] + 1)
            self.assertEqual(p.try_init(p.pid, p.epoch), t.NONE)
            self.assertEqual(p.try_init(first["producer_id"], first["producer_epoch"]),
                             t.INVALID_EPOCH if version < 4 else t.PRODUCER_FENCED)

    def test_who_comes_late_writes_nothing(self):
        topic = self.make()
        old = t.Producer(self.c, self.topic).init()
        old.add((topic, 0)).produce(topic, 0, b"1")
        new = t.Producer(self.c, self.topic).init()  # aborts that
        self.assertEqual((new.pid, new.epoch), (old.pid, old.epoch + 2))
        self.assertEqual(old.try_produce(topic, 0, b"2")["error_code"], t.INVALID_EPOCH)
        self.assertEqual(old.try_end(True), t.PRODUCER_FENCED)
        new.add((topic, 0)).produce(topic, 0, b"3")
        new.end(True)
        new.complete()
        self.assertEqual(t.committed(self.c, topic, 0), [b"3"])

    def test_partitions_that_are_refused(self):
        topic, p = self.make(), t.Producer(self.c, self.topic).init()
        self.assertEqual(p.try_add((topic, 0), (topic, 9), ("none", 0), ("__consumer_offsets", 0)),
                         {(topic, 0): t.NOT_ATTEMPTED, (topic, 9): t.UNKNOWN_TOPIC_OR_PARTITION,
                          ("none", 0): t.UNKNOWN_TOPIC_OR_PARTITION,
                          ("__consumer_offsets", 0): t.TOPIC_AUTHORIZATION})
        self.assertEqual(p.state(), "Empty")
        self.assertEqual(p.try_end(True), t.INVALID_STATE)
        other = t.Producer(self.c, "nobody-knows-it")
        other.pid, other.epoch = p.who().values()
        self.assertEqual(other.try_add((topic, 0)), {(topic, 0): t.INVALID_MAPPING})
        p.pid += 1
        self.assertEqual(p.try_add((topic, 0)), {(topic, 0): t.INVALID_MAPPING})
        self.assertEqual(p.try_end(True), t.INVALID_MAPPING)

    def test_brokers_ask_for_several_at_once(self):
        topic = self.make()
        a, b = (t.Producer(self.c, self.topic + x).init() for x in "ab")
        a.add((topic, 0))

        def ask(verify, version):
            answer = self.c.call("AddPartitionsToTxn", version, transactions=[
                {"transactional_id": p.id, "verify_only": verify, "topics": [{"name": topic, "partitions": [0, 1]}],
                 **p.who()} for p in (a, b)])
            self.assertEqual(answer["error_code"], t.NONE)
            return [[p["partition_error_code"] for p in x["topic_results"][0]["results_by_partition"]]
                    for x in answer["results_by_transaction"]]
        for version in (4, 5):
            self.assertEqual(ask(True, version), [[t.NONE, t.ABORTABLE], [t.ABORTABLE, t.ABORTABLE]])
        self.assertEqual(ask(False, 4), [[t.NONE, t.NONE], [t.NONE, t.NONE]])
        self.assertEqual(ask(True, 4), [[t.NONE, t.NONE], [t.NONE, t.NONE]])

    def test_an_end_that_is_told_twice(self):
        topic, p = self.make(), t.Producer(self.c, self.topic).init()
        for commit in (True, False):
            p.add((topic, 0)).produce(topic, 0, b"v")
            p.end(commit)
            p.complete()
            self.assertEqual(p.try_end(commit), t.NONE)
            self.assertEqual(p.try_end(not commit), t.INVALID_STATE)

    def test_transactions_without_records(self):
        topic, p = self.make(1), t.Producer(self.c, self.topic).init()
        for i in range(50):
            p.add((topic, 0))
            p.end(i % 2 == 0)
        p.complete()
        a = kwire.fetch(self.c, 11, [(topic, 0, 0)], isolation_level=1)[0][2]
        self.assertEqual((a["high_watermark"], a["last_stable_offset"]), (50, 50))
        self.assertEqual(a["aborted_transactions"], [])

    def test_lists_and_descriptions(self):
        topic, p = self.make(), t.Producer(self.c, self.topic, timeout_ms=54321).init()
        p.add((topic, 1), (topic, 0))
        d = t.describe(self.c, p.id)
        self.assertEqual((d["error_code"], d["transaction_state"], d["transaction_timeout_ms"]), (0, "Ongoing", 54321))
        self.assertEqual(d["topics"], [{"topic": topic, "partitions": [0, 1]}])
        self.assertEqual((d["producer_id"], d["producer_epoch"]), (p.pid, p.epoch))
        self.assertGreater(d["transaction_start_time_ms"], 0)
        self.assertEqual(t.describe(self.c, "no such id")["error_code"], t.ID_NOT_FOUND)
        for version in (0, 1):
            a = self.c.call("ListTransactions", version, state_filters=["Ongoing", "Sleeping"],
                            producer_id_filters=[p.pid])
            self.assertEqual(a["unknown_state_filters"], ["Sleeping"])
            self.assertEqual(a["transaction_states"], [
                {"transactional_id": p.id, "producer_id": p.pid, "transaction_state": "Ongoing"}])
        self.assertEqual(self.c.call("ListTransactions", 1, duration_filter=3600000,
                                     producer_id_filters=[p.pid])["transaction_states"], [])
        self.assertEqual(self.c.call("ListTransactions", 0, state_filters=["Sleeping"])["transaction_states"], [])
        p.end(True)

    def test_timeouts_that_nobody_gets(self):
        t.Producer(self.c, self.topic).init()
        for version in range(6):
            for timeout in (0, -1, 900001):
                p = t.Producer(self.c, self.topic, {"InitProducerId": version}, timeout)
                self.assertEqual(p.try_init(), t.INVALID_TIMEOUT)
            self.assertEqual(t.Producer(self.c, "", {"InitProducerId": version}).try_init(), t.INVALID_REQUEST)


class Verification(harness.BrokerTest):
    """Records and offsets for partitions that are not in the transaction."""
    OVERRIDES = t.OVERRIDES

    def setUp(self):
        self.c = kwire.Conn(self.broker.port)
        self.addCleanup(self.c.close)
        self.topic = "v-%s" % self.id().rsplit(".", 1)[1]
        kwire.create_topic(self.c, self.topic, 2)

    def end_offset(self, partition=0):
        return kwire.list_offset(self.c, 5, self.topic, partition, -1, current_leader_epoch=-1)["offset"]

    def test_records_for_a_partition_that_is_not_in(self):
        for version in range(3, 12):
            p = t.Producer(self.c, self.topic, {"Produce": version}).init()
            p.add((self.topic, 1))
            a = p.try_produce(self.topic, 0, b"v")
            self.assertEqual(a["error_code"], t.ABORTABLE if version >= 11 else t.INVALID_STATE)
            self.assertEqual(a["base_offset"], -1)
            if version >= 8 and version < 11:
                self.assertIn("not in the transaction", a["error_message"])
            p.end(False)
        self.assertEqual(self.end_offset(), 0)
        p.init().add((self.topic, 0)).produce(self.topic, 0, b"1")
        p.produce(self.topic, 0, b"2")
        p.end(True)
        p.complete()
        self.assertEqual(t.committed(self.c, self.topic, 0), [b"1", b"2"])

    def test_records_of_nobody_who_is_known(self):
        p = t.Producer(self.c, self.topic).init()
        p.add((self.topic, 0))
        p.epoch -= 1
        self.assertEqual(p.try_produce(self.topic, 0, b"v")["error_code"], t.INVALID_EPOCH)
        p.epoch, p.pid = p.epoch + 1, p.pid + 1
        self.assertEqual(p.try_produce(self.topic, 0, b"v")["error_code"], t.INVALID_MAPPING)
        p.pid, p.id = p.pid - 1, "nobody-has-this"
        self.assertEqual(p.try_produce(self.topic, 0, b"v")["error_code"], t.INVALID_MAPPING)
        p.id = None
        self.assertEqual(p.try_produce(self.topic, 0, b"v")["error_code"], t.ID_AUTHORIZATION)
        self.assertEqual(self.end_offset(), 0)

    def test_two_producers_in_a_request(self):
        a, b = (t.Producer(self.c, self.topic + x).init() for x in "ab")
        parts = [(self.topic, i, p.batch(0, [b"v"])) for i, p in enumerate((a, b))]
        answer = self.c.call("Produce", 9, transactional_id=a.id, **kwire.produce_request(parts))
        errors = [p["error_code"] for x in answer["responses"] for p in x["partition_responses"]]
        self.assertEqual(errors, [t.INVALID_MAPPING] * 2)

    def test_other_partitions_of_the_request_go_on(self):
        p = t.Producer(self.c, self.topic).init()
        p.add((self.topic, 1))
        parts = [(self.topic, i, p.batch(i, [b"v"])) for i in (0, 1)] + [("none", 0, p.batch(2, [b"v"]))]
        answer = self.c.call("Produce", 9, transactional_id=p.id, **kwire.produce_request(parts))
        errors = [p["error_code"] for x in answer["responses"] for p in x["partition_responses"]]
        self.assertEqual(errors, [t.INVALID_STATE, t.NONE, t.UNKNOWN_TOPIC_OR_PARTITION])
        self.assertEqual((self.end_offset(0), self.end_offset(1)), (0, 1))

    def test_requests_stay_in_order_while_one_is_asked_about(self):
        p = t.Producer(self.c, self.topic).init()
        for round in range(5):
            p.add((self.topic, 0))
            ids = []
            for i in range(20):
                data = p.batch(0, [b"%d-%d" % (round, i)])
                p.sequences[0] = p.sequences.get(0, 0) + 1
                ids.append(self.c.send("Produce", 9, transactional_id=p.id,
                                       **kwire.produce_request([(self.topic, 0, data)])))
            for i in ids:
                a = self.c.receive("Produce", 9, i)["responses"][0]["partition_responses"][0]
                self.assertEqual(a["error_code"], t.NONE)
            p.end(True)
        p.complete()
        want = [b"%d-%d" % (round, i) for round in range(5) for i in range(20)]
        self.assertEqual(t.committed(self.c, self.topic, 0), want)

    def test_offsets_for_a_group_that_is_not_in(self):
        g.coordinator(self.c, "group")
        for version in range(5):
            p = t.Producer(self.c, self.topic, {"TxnOffsetCommit": version}).init()
            p.add((self.topic, 0))
            self.assertEqual(p.try_commit_offset("group", self.topic, 0, 1),
                             t.ABORTABLE if version >= 4 else t.INVALID_STATE)
            p.epoch -= 1
            self.assertEqual(p.try_commit_offset("group", self.topic, 0, 1), t.INVALID_EPOCH)
            p.epoch += 1
            p.add_offsets("group")
            self.assertEqual(p.try_commit_offset("group", self.topic, 0, 1), t.NONE)
            self.assertEqual(p.try_commit_offset("group", self.topic, 0, 2), t.NONE)
            self.assertEqual(p.try_commit_offset("group", "none", 0, 2), t.UNKNOWN_TOPIC_OR_PARTITION)
            p.end(True)
            p.complete()
        p.pid = -1
        self.assertEqual(p.try_commit_offset("group", self.topic, 0, 3), t.INVALID_MAPPING)

    def test_it_is_switched_while_running(self):
        def switch(value):
            a = self.c.call("IncrementalAlterConfigs", 1, resources=[
                {"resource_type": 4, "resource_name": "", "configs": [
                    {"name": "transaction.partition.verification.enable", "config_operation": 0, "value": value}]}])
            self.assertEqual(a["responses"][0]["error_code"], 0)
        p = t.Producer(self.c, self.topic).init()
        p.add((self.topic, 1))
        switch("false")
        until("no question", lambda: p.try_produce(self.topic, 0, b"v")["error_code"] == t.NONE)
        switch("true")
        until("a question", lambda: t.Producer(self.c, self.topic + "x").init().try_produce(
            self.topic, 0, b"v")["error_code"] == t.ABORTABLE)


class Markers(harness.BrokerTest):
    OVERRIDES = t.OVERRIDES

    def test_what_a_leader_says_to_markers(self):
        with kwire.Conn(self.broker.port) as c:
            kwire.create_topic(c, "m", 1)

            def mark(pid, epoch, coordinator_epoch, topic="m", version=1):
                a = c.call("WriteTxnMarkers", version, markers=[
                    {"producer_id": pid, "producer_epoch": epoch, "transaction_result": True,
                     "coordinator_epoch": coordinator_epoch, "topics": [{"name": topic, "partition_indexes": [0]}]}])
                return a["markers"][0]["topics"][0]["partitions"][0]["error_code"]
            self.assertEqual(mark(77, 3, 5, version=0), t.NONE)
            self.assertEqual(mark(77, 2, 5), t.INVALID_EPOCH)
            self.assertEqual(mark(77, 3, 4), t.FENCED)
            self.assertEqual(mark(77, 4, 6), t.NONE)
            self.assertEqual(mark(77, 4, 6, "none"), t.UNKNOWN_TOPIC_OR_PARTITION)
            self.assertEqual(c.call("WriteTxnMarkers", 1, markers=[])["markers"], [])
            topics = [{"name": "m", "partition_indexes": [0] * 5000}, {"name": "m", "partition_indexes": [0, 9]}]
            before = kwire.list_offset(c, 5, "m", 0, -1)["offset"]  # named 5,001 times, written once
            a = c.call("WriteTxnMarkers", 1, markers=[
                {"producer_id": 77, "producer_epoch": 4, "transaction_result": True, "coordinator_epoch": 6,
                 "topics": topics}])
            self.assertEqual([[(p["partition_index"], p["error_code"]) for p in x["partitions"]]
                              for x in a["markers"][0]["topics"]],
                             [[(0, t.NONE)], [(9, t.UNKNOWN_TOPIC_OR_PARTITION)]])
            self.assertEqual(kwire.list_offset(c, 5, "m", 0, -1)["offset"], before + 1)
            for topic, error in (("none", t.UNKNOWN_TOPIC_OR_PARTITION), ("bad name", 17)):
                a = c.call("DescribeProducers", 0, topics=[{"name": topic, "partition_indexes": [0, 1]}])
                self.assertEqual([p["error_code"] for p in a["topics"][0]["partitions"]], [error] * 2)
                self.assertTrue(all(p["error_message"] for p in a["topics"][0]["partitions"]))
            producers = c.call("DescribeProducers", 0, topics=[{"name": "m", "partition_indexes": [0]}])
            state = producers["topics"][0]["partitions"][0]["active_producers"][0]
            self.assertEqual((state["producer_id"], state["producer_epoch"], state["last_sequence"],
                              state["coordinator_epoch"], state["current_txn_start_offset"]), (77, 4, -1, 6, -1))


class Timeouts(harness.BrokerTest):
    OVERRIDES = dict(t.OVERRIDES, **{"transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
                                     "transaction.remove.expired.transaction.cleanup.interval.ms": "50",
                                     "transactional.id.expiration.ms": "1000"})

    def test_a_transaction_that_is_left_alone(self):
        with kwire.Conn(self.broker.port) as c:
            kwire.create_topic(c, "left", 1)
            p = t.Producer(c, "left", timeout_ms=100).init()
            p.add(("left", 0)).produce("left", 0, b"1")
            until("the abort", lambda: p.state() == "CompleteAbort")
            self.assertEqual(p.try_end(True), t.PRODUCER_FENCED)
            self.assertEqual(p.try_produce("left", 0, b"2")["error_code"], t.INVALID_EPOCH)
            self.assertEqual(t.committed(c, "left", 0), [])
            until("the id is forgotten", lambda: t.describe(c, "left")["error_code"] == t.ID_NOT_FOUND)
            self.assertEqual(p.try_end(True), t.INVALID_MAPPING)
            self.broker.stop()
            self.broker.start()
        with kwire.Conn(self.broker.port) as c:
            until("the coordinator is back", lambda: t.describe(c, "left")["error_code"] == t.ID_NOT_FOUND)
            p.conn = c
            self.assertEqual(p.init().epoch, 0)


if __name__ == "__main__":
    unittest.main()
