"""txnwire.py - transactions over raw frames, in any version: what the transaction tests share.

    p = txnwire.Producer(conn, "an-id"); p.init(); p.add("t", 0); p.produce("t", 0, b"v"); p.end(True)
"""
import struct

import kwire
from harness import until

NONE, UNKNOWN_TOPIC_OR_PARTITION = 0, 3
LOADING, NOT_AVAILABLE, NOT_COORDINATOR, TOPIC_AUTHORIZATION, NOT_ENOUGH_REPLICAS = 14, 15, 16, 29, 19
INVALID_REQUEST, OUT_OF_ORDER, INVALID_EPOCH, INVALID_STATE, INVALID_MAPPING, INVALID_TIMEOUT, CONCURRENT, FENCED = \
    42, 45, 47, 48, 49, 50, 51, 52
ID_AUTHORIZATION, NOT_ATTEMPTED, UNSTABLE, PRODUCER_FENCED, ID_NOT_FOUND, ABORTABLE = 53, 55, 88, 90, 105, 120

OVERRIDES = {"transaction.state.log.num.partitions": "5", "group.initial.rebalance.delay.ms": "0"}
LAST = {"InitProducerId": 5, "AddPartitionsToTxn": 3, "AddOffsetsToTxn": 4, "EndTxn": 4, "TxnOffsetCommit": 4,
        "Produce": 11}
TRANSACTIONAL, CONTROL = 16, 32


def find(c, id, version=4):
    """(error, node)"""
    if version >= 4:
        a = c.call("FindCoordinator", version, key_type=1, coordinator_keys=[id])["coordinators"][0]
    else:
        a = c.call("FindCoordinator", version, key=id, key_type=1)
    return a["error_code"], a["node_id"]


class Producer:
    """versions: {api: version}, else the last."""

    def __init__(self, conn, id, versions=None, timeout_ms=60000):
        self.conn, self.id, self.timeout_ms = conn, id, timeout_ms
        self.versions = dict(LAST, **(versions or {}))
        self.pid, self.epoch = -1, -1
        self.sequences = {}

    def call(self, api, conn=None, **values):
        return (conn or self.conn).call(api, self.versions[api], transactional_id=self.id, **values)

    def who(self):
        return {"producer_id": self.pid, "producer_epoch": self.epoch}

    def try_init(self, pid=-1, epoch=-1):
        """The answer's error; on NONE the producer has what it was given."""
        more = {"producer_id": pid, "producer_epoch": epoch} if self.versions["InitProducerId"] >= 3 else {}
        a = self.call("InitProducerId", transaction_timeout_ms=self.timeout_ms, **more)
        if a["error_code"] == NONE:
            self.pid, self.epoch, self.sequences = a["producer_id"], a["producer_epoch"], {}
        return a["error_code"]

    def init(self, pid=-1, epoch=-1):
        """Until it is given; the topic is made, its partitions are loaded, the transaction before ends."""
        until("a coordinator of %s" % self.id, lambda: find(self.conn, self.id)[0] == NONE)

        def given():
            error = self.try_init(pid, epoch)
            assert error in (NONE, LOADING, NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT), error
            return error == NONE
        until("an epoch of %s" % self.id, given)
        return self

    def try_add(self, *partitions):
        """Errors by (topic, partition)."""
        topics = {}
        for topic, partition in partitions:
            topics.setdefault(topic, []).append(partition)
        a = self.conn.call(
            "AddPartitionsToTxn", self.versions["AddPartitionsToTxn"], v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.pid, v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[{"name": t, "partitions": p} for t, p in topics.items()])
        return {(t["name"], p["partition_index"]): p["partition_error_code"]
                for t in a["results_by_topic_v3_and_below"] for p in t["results_by_partition"]}

    def add(self, *partitions):
        """Until they are in: what went before may still be completed."""
        def added():
            errors = set(self.try_add(*partitions).values())
            assert errors <= {NONE, CONCURRENT}, errors
            return errors == {NONE}
        until("partitions in the transaction of %s" % self.id, added)
        return self

    def batch(self, partition, values, attributes=TRANSACTIONAL):
        sequence = self.sequences.get(partition, 0)
        return kwire.simple_batch(*values, producer_id=self.pid, producer_epoch=self.epoch, sequence=sequence,
                                  attributes=attributes)

    def try_produce(self, topic, partition, *values, conn=None, attributes=TRANSACTIONAL):
        """The partition's answer."""
        data = self.batch((topic, partition), values, attributes)
        a = self.call("Produce", conn=conn, **kwire.produce_request([(topic, partition, data)]))
        out = a["responses"][0]["partition_responses"][0]
        if out["error_code"] == NONE:
            self.sequences[(topic, partition)] = self.sequences.get((topic, partition), 0) + len(values)
        return out

    def produce(self, topic, partition, *values, conn=None):
        a = self.try_produce(topic, partition, *values, conn=conn)
        assert a["error_code"] == NONE, a
        return a["base_offset"]

    def add_offsets(self, group):
        def added():
            error = self.call("AddOffsetsToTxn", group_id=group, **self.who())["error_code"]
            assert error in (NONE, CONCURRENT), error
            return error == NONE
        until("offsets in the transaction of %s" % self.id, added)
        return self

    def try_commit_offset(self, group, topic, partition, offset, conn=None, **member):
        a = self.call("TxnOffsetCommit", conn=conn, group_id=group, topics=[
            {"name": topic, "partitions": [{"partition_index": partition, "committed_offset": offset,
                                            "committed_metadata": ""}]}], **dict(self.who(), **member))
        return a["topics"][0]["partitions"][0]["error_code"]

    def try_end(self, commit):
        return self.call("EndTxn", committed=commit, **self.who())["error_code"]

    def end(self, commit):
        error = self.try_end(commit)
        assert error == NONE, error

    def state(self):
        return describe(self.conn, self.id)["transaction_state"]

    def complete(self):
        until("the end of %s's transaction" % self.id, lambda: self.state().startswith("Complete"))


def describe(c, id):
    return c.call("DescribeTransactions", 0, transactional_ids=[id])["transaction_states"][0]


def committed_from(c, topic, partition, offset, version=11):
    """Values that a reader of committed records sees from the offset on, as it would: what was aborted is left out;
    and where it goes on."""
    a = kwire.fetch(c, version, [(topic, partition, offset)], isolation_level=1)[0][2]
    assert a["error_code"] == NONE, a
    aborted = sorted((x["first_offset"], x["producer_id"]) for x in a["aborted_transactions"] or [])
    out, gone, next_offset = [], set(), offset
    for base, _, raw in kwire.entries(a["records"] or b""):
        attributes, last_delta = struct.unpack_from(">hi", raw, 21)
        producer = struct.unpack_from(">q", raw, 43)[0]
        next_offset = base + last_delta + 1
        while aborted and aborted[0][0] <= base + last_delta:
            gone.add(aborted.pop(0)[1])
        if attributes & CONTROL:
            gone.discard(producer)
        elif not (attributes & TRANSACTIONAL and producer in gone):
            out += [r[3] for r in kwire.records_v2(raw) if r[0] >= offset]
    return out, next_offset


def committed(c, topic, partition, version=11):
    return committed_from(c, topic, partition, 0, version)[0]
