"""verdict.py - was what clients were told true? To be asked when the cluster is whole again and nobody writes."""
import glob
import json
import os

import kwire
import records
from view import GONE


def read_partition(view, topic, index, leader, start=0):
    """[(offset, value)] up to the high watermark, by the leader."""
    out, at = [], start
    while True:
        a = view.call(leader, "Fetch", 11, **kwire.fetch_request(11, [(topic, index, at)], max_bytes=1 << 26))
        p = kwire.fetched(a)[0][2]
        assert p["error_code"] == 0, "%s-%d at %d: error %d" % (topic, index, at, p["error_code"])
        got = [r for r in records.values(p["records"] or b"") if r[0] >= at]
        if not got:
            assert at == p["high_watermark"], "%s-%d: nothing at %d of %d" % (topic, index, at, p["high_watermark"])
            return out
        out += got
        at = got[-1][0] + 1


class Count:
    def __init__(self):
        self.acknowledged = self.lost = self.duplicated = self.reordered = self.vanished = 0

    def add(self, other):
        for name in vars(other):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def judge(ledger, log, wrong):
    """A Ledger against [(offset, value)] of the whole partition."""
    count = Count()
    count.acknowledged = ledger.acked
    there = [(offset,) + records.parse(body) for offset, body in log]
    numbers = [number for _, number, _ in there]
    count.lost = len(set(range(ledger.acked)).difference(numbers))
    count.duplicated = len(numbers) - len(set(numbers))
    count.reordered = sum(1 for a, b in zip(numbers, numbers[1:]) if b < a)
    attempts = {offset: attempt for offset, _, attempt in there}
    gone = [o for o, seen in enumerate(ledger.seen) if seen and attempts.get(o) != seen - 1]
    count.vanished = len(gone)
    for what in ("lost", "duplicated", "reordered", "vanished"):
        if getattr(count, what):
            wrong("%s: %d records %s (%d acknowledged, %d there)"
                  % (ledger.name, getattr(count, what), what, ledger.acked, len(there)))
    if gone:
        wrong("%s: seen and vanished: offsets %s" % (ledger.name, gone[:8]))
    if [o for o, _, _ in there] != list(range(len(there))):
        wrong("%s: offsets have a gap" % ledger.name)
    return count


# -- copies

def log_bytes(folder):
    """The partition's batches, whatever its segments are."""
    out = b""
    for path in sorted(glob.glob(os.path.join(folder, "*.log"))):
        with open(path, "rb") as f:
            out += f.read()
    return out


def compare_copies(brokers, topic, index, replicas, wrong):
    """All replicas' bytes are the same; all is committed by now."""
    copies = {}
    for b in brokers:
        if b.number in replicas:
            found = [p for d in b.dirs for p in [os.path.join(d, "%s-%d" % (topic, index))] if os.path.isdir(p)]
            if len(found) != 1:
                wrong("%s-%d: broker %d has %d folders of it" % (topic, index, b.number, len(found)))
                continue
            copies[b.number] = log_bytes(found[0])
    first = min(copies, default=None)
    for number, data in copies.items():
        if data != copies[first]:
            at = next((i for i, (x, y) in enumerate(zip(data, copies[first])) if x != y), min(len(data), len(copies[first])))
            offset = next((base for base, _, raw in with_places(copies[first]) if raw > at), -1)
            wrong("%s-%d: brokers %d and %d differ from byte %d on, near offset %d (%d and %d bytes)"
                  % (topic, index, first, number, at, offset, len(copies[first]), len(data)))


def with_places(data):
    at = 0
    for base, last, raw in records.heads(data):
        at += len(raw)
        yield base, last, at


# -- the cluster's own state

def assignments(view):
    """{(topic, partition): replicas} by ZooKeeper."""
    out = {}
    with view.zookeeper() as z:
        for topic in z.children("/brokers/topics"):
            for p, replicas in z.json("/brokers/topics/" + topic)["partitions"].items():
                out[topic, int(p)] = replicas
    return out


def trouble(view, brokers):
    """What is not yet whole, in one line; None: all is."""
    alive = sorted(b.number for b in brokers)
    try:
        with view.zookeeper() as z:
            registered = sorted(int(i) for i in z.children("/brokers/ids"))
            if registered != alive:
                return "registered are %s of %s" % (registered, alive)
            if not z.stat("/controller"):
                return "there is no controller"
            for path in ("/admin/reassign_partitions", "/admin/preferred_replica_election"):
                if z.stat(path):
                    return "%s is there: %s" % (path, z.get(path)[:200])
            if z.children("/admin/delete_topics"):
                return "topics to delete: %s" % z.children("/admin/delete_topics")
            for topic in z.children("/brokers/topics"):
                node = z.json("/brokers/topics/" + topic)
                if node.get("adding_replicas") or node.get("removing_replicas"):
                    return "%s is being reassigned: %s" % (topic, json.dumps(node))
                for p, replicas in node["partitions"].items():
                    path = "/brokers/topics/%s/partitions/%s/state" % (topic, p)
                    if not z.stat(path):
                        return "%s-%s has no state" % (topic, p)
                    state = z.json(path)
                    if state["leader"] not in alive or sorted(state["isr"]) != sorted(replicas):
                        return "%s-%s, replicas %s: %s" % (topic, p, replicas, json.dumps(state))
        for b in brokers:
            m = view.metadata(None, b.number)
            if sorted(x["node_id"] for x in m["brokers"]) != alive:
                return "broker %d knows %s" % (b.number, sorted(x["node_id"] for x in m["brokers"]))
            bad = [(t["name"], p["partition_index"], p["leader_id"], p["error_code"]) for t in m["topics"]
                   for p in t["partitions"] if p["leader_id"] not in alive or p["error_code"]]
            if bad:
                return "broker %d knows no leader of %s" % (b.number, bad[:3])
    except GONE as e:
        return "nobody answers: %r" % e
    except Exception as e:  # a znode that went away between two looks
        return "%r" % e
    return None
