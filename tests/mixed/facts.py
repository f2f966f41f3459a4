"""facts.py - all that a broker tells of the partitions it hosts and the groups it coordinates, to be compared between one
kind of broker and the other on the same files."""
import kwire


def partition_facts(k, topic, p, topic_id, old):
    out = {"topic id": topic_id}
    for name, isolation in (("read uncommitted", 0), ("read committed", 1)):
        out[name] = read_all(k, topic, p, isolation)
    for isolation in (0, 1):
        for t in (-2, -1) if old else (-2, -1, -3):
            out["offset of %d, isolation %d" % (t, isolation)] = listed(k, topic, p, t, isolation)
    # An Apache broker that has compacted a segment to nothing finds none of the later records by their time.
    stamps = [] if topic == "compacted" else sorted({batch_stamp(raw) for raw in entries_of(out) if raw[16] == 2} - {-1})
    for t in stamps[::max(1, len(stamps) // 10)]:
        out["offset of time %d" % t] = listed(k, topic, p, t, 0)
    # Apache's brokers keep no epochs of old formats, but cut logs at their watermark; kafkad knows those it led in.
    for epoch in () if old else range(4):
        a = k.call("OffsetForLeaderEpoch", 4, replica_id=-1, topics=[
            {"topic": topic, "partitions": [{"partition": p, "current_leader_epoch": -1, "leader_epoch": epoch}]}])
        a = a["topics"][0]["partitions"][0]
        out["end of epoch %d" % epoch] = (a["error_code"], a["leader_epoch"], a["end_offset"])
    a = k.call("DescribeProducers", 0, topics=[{"name": topic, "partition_indexes": [p]}])["topics"][0]["partitions"][0]
    assert a["error_code"] == 0, a
    out["producers"] = sorted(tuple(sorted(x.items())) for x in a["active_producers"])
    return out


def batch_stamp(raw):
    return int.from_bytes(raw[35:43], "big", signed=True)


def listed(k, topic, p, timestamp, isolation):
    a = k.call("ListOffsets", 6 if timestamp != -3 else 7, replica_id=-1, isolation_level=isolation, topics=[
        {"name": topic, "partitions": [{"partition_index": p, "current_leader_epoch": -1, "timestamp": timestamp}]}])
    a = a["topics"][0]["partitions"][0]
    return a["error_code"], a["timestamp"], a["offset"]


def read_all(k, topic, p, isolation):
    """The bytes of all batches up to what this isolation lets be seen, and the transactions that were aborted."""
    start = listed(k, topic, p, -2, 0)[2]
    at, data, aborted, told = start, b"", set(), {}
    while True:
        a = kwire.fetch(k, 11, [(topic, p, at)], isolation_level=isolation, max_bytes=1 << 22)[0][2]
        assert a["error_code"] == 0, a
        aborted |= {(x["producer_id"], x["first_offset"]) for x in a["aborted_transactions"] or []}
        told = {n: a[n] for n in ("high_watermark", "last_stable_offset", "log_start_offset")}
        whole = list(kwire.entries(a["records"] or b""))
        if not whole:
            return {"records": data, "aborted": sorted(aborted), **told}
        for offset, _, raw in whole:
            if not data or offset > at or not data.endswith(raw):
                data += raw
        last = whole[-1]
        at = last[0] + (int.from_bytes(last[2][23:27], "big") if last[1] == 2 else 0) + 1


def entries_of(partition):
    return [raw for _, _, raw in kwire.entries(partition["read uncommitted"]["records"])]


def group_facts(k, group):
    a = k.call("OffsetFetch", 7, group_id=group, topics=None, require_stable=False)
    out = {"offsets": sorted((t["name"], p["partition_index"], p["committed_offset"], p["metadata"])
                             for t in a["topics"] for p in t["partitions"])}
    a = k.call("OffsetFetch", 7, group_id=group, topics=None, require_stable=True)
    out["stable"] = sorted((t["name"], p["partition_index"], p["error_code"]) for t in a["topics"] for p in t["partitions"])
    a = k.call("DescribeGroups", 5, groups=[group])["groups"][0]
    out["group"] = {n: a[n] for n in ("error_code", "group_state", "protocol_type", "protocol_data", "members")}
    return out


def of(port, groups=(), old=False):
    """{"topic-partition": facts, "group x": facts} of a broker that leads all. old: what one of 2.8 can tell, of messages of
    old formats"""
    with kwire.Conn(port) as k:
        out = {}
        for t in k.call("Metadata", 10, topics=None)["topics"]:
            for p in t["partitions"]:
                name = "%s-%d" % (t["name"], p["partition_index"])
                out[name] = partition_facts(k, t["name"], p["partition_index"], t["topic_id"], old)
        for g in groups:
            out["group " + g] = group_facts(k, g)
        return out


def differences(a, b):
    """Lines, the records as their first difference."""
    out = []
    for name in sorted(set(a) | set(b)):
        x, y = a.get(name), b.get(name)
        if isinstance(x, dict) and isinstance(y, dict):
            out += ["%s: %s" % (name, line) for line in differences(x, y)]
        elif x != y and isinstance(x, bytes) and isinstance(y, bytes):
            at = next((i for i, (m, n) in enumerate(zip(x, y)) if m != n), min(len(x), len(y)))
            out.append("%s: %d and %d bytes, not the same from %d" % (name, len(x), len(y), at))
        elif x != y:
            out.append("%s: %s | %s" % (name, x, y))
    return out
