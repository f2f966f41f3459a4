"""groupwire.py - groups over raw frames, in any version: what the group tests share.

    with harness.Broker(overrides=groupwire.OVERRIDES) as b, kwire.Conn(b.port) as c:
        groupwire.coordinator(c, "g")                      # the topic is made, its partitions are loaded
        m = groupwire.Member(c, "g"); m.join(); m.sync()
"""
import kwire
from harness import until

NONE, UNKNOWN_TOPIC_OR_PARTITION, METADATA_TOO_LARGE = 0, 3, 12
LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
ILLEGAL_GENERATION, INCONSISTENT_PROTOCOL, INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, INVALID_SESSION_TIMEOUT, REBALANCE = \
    22, 23, 24, 25, 26, 27
UNSUPPORTED_VERSION, INVALID_REQUEST = 35, 42
NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, MEMBER_ID_REQUIRED, GROUP_MAX_SIZE, FENCED_INSTANCE, SUBSCRIBED = \
    68, 69, 79, 81, 82, 86

OVERRIDES = {"group.initial.rebalance.delay.ms": "0"}
LAST = {"JoinGroup": 9, "SyncGroup": 5, "Heartbeat": 4, "LeaveGroup": 5, "OffsetCommit": 9, "OffsetFetch": 9,
        "ListGroups": 5, "DescribeGroups": 5, "DeleteGroups": 2, "OffsetDelete": 0, "FindCoordinator": 6}


def find(c, group, version=2):
    """(error, node, host, port)"""
    if version >= 4:
        a = c.call("FindCoordinator", version, key_type=0, coordinator_keys=[group])["coordinators"][0]
    else:
        a = c.call("FindCoordinator", version, key=group, key_type=0)
    return a["error_code"], a["node_id"], a["host"], a["port"]


def coordinator(c, group):
    """Waits until the group's coordinator answers for it."""
    until("a coordinator of %s" % group, lambda: find(c, group)[0] == NONE)
    until("groups are loaded", lambda: describe(c, group)["error_code"] == NONE)


def java_hash(text):
    h = 0
    units = text.encode("utf-16-be")
    for i in range(0, len(units), 2):
        h = (h * 31 + units[i] * 256 + units[i + 1]) & 0xFFFFFFFF
    return h - (1 << 32) if h >= 1 << 31 else h


def partition_of(group, n=50):
    h = java_hash(group)
    return 0 if h == -(1 << 31) else abs(h) % n


def subscription(*topics):
    return b"\0\0" + len(topics).to_bytes(4, "big") + \
        b"".join(len(t).to_bytes(2, "big") + t.encode() for t in topics) + b"\xff\xff\xff\xff"


class Member:
    """One member on a connection of its own or shared. Versions: {api: version}, else the last."""

    def __init__(self, conn, group, instance=None, protocols=(("range", b"meta"),), session_ms=30000,
                 rebalance_ms=30000, protocol_type="consumer", versions=None):
        self.c, self.group, self.instance, self.protocols = conn, group, instance, protocols
        self.session_ms, self.rebalance_ms, self.protocol_type = session_ms, rebalance_ms, protocol_type
        self.versions = versions or {}
        self.id, self.generation = "", -1
        self.last_join = None

    def version(self, api):
        return self.versions.get(api, LAST[api])

    def with_instance(self, api, first, values):
        if self.version(api) >= first:
            values["group_instance_id"] = self.instance
        return values

    def join_fields(self):
        v = {"group_id": self.group, "member_id": self.id, "session_timeout_ms": self.session_ms,
             "protocol_type": self.protocol_type,
             "protocols": [{"name": n, "metadata": m} for n, m in self.protocols]}
        if self.version("JoinGroup") >= 1:
            v["rebalance_timeout_ms"] = self.rebalance_ms
        return self.with_instance("JoinGroup", 5, v)

    def send_join(self):
        return self.c.send("JoinGroup", self.version("JoinGroup"), **self.join_fields())

    def take_join(self, correlation):
        a = self.c.receive("JoinGroup", self.version("JoinGroup"), correlation)
        if a["member_id"]:
            self.id = a["member_id"]
        if a["error_code"] == NONE:
            self.generation = a["generation_id"]
        self.last_join = a
        return a

    def join_once(self):
        return self.take_join(self.send_join())

    def join(self):
        """With the second round that JoinGroup v4+ wants."""
        a = self.join_once()
        if a["error_code"] == MEMBER_ID_REQUIRED:
            a = self.join_once()
        return a

    def get_id(self):
        a = self.join_once()
        assert a["error_code"] == MEMBER_ID_REQUIRED, a
        return self.id

    def leads(self):
        return self.last_join["leader"] == self.id

    def sync_fields(self, assignments):
        v = {"group_id": self.group, "generation_id": self.generation, "member_id": self.id,
             "assignments": [{"member_id": m, "assignment": a} for m, a in assignments.items()]}
        if self.version("SyncGroup") >= 5:
            v["protocol_type"], v["protocol_name"] = self.protocol_type, self.last_join["protocol_name"]
        return self.with_instance("SyncGroup", 3, v)

    def send_sync(self, assignments=None):
        return self.c.send("SyncGroup", self.version("SyncGroup"), **self.sync_fields(assignments or {}))

    def sync(self, assignments=None):
        """A leader without assignments gives every member its own id."""
        if assignments is None and self.last_join["members"]:
            assignments = {m["member_id"]: m["member_id"].encode() for m in self.last_join["members"]}
        v = self.version("SyncGroup")
        return self.c.receive("SyncGroup", v, self.send_sync(assignments))

    def heartbeat(self):
        v = {"group_id": self.group, "generation_id": self.generation, "member_id": self.id}
        return self.c.call("Heartbeat", self.version("Heartbeat"),
                           **self.with_instance("Heartbeat", 3, v))["error_code"]

    def leave(self):
        version = self.version("LeaveGroup")
        if version < 3:
            return self.c.call("LeaveGroup", version, group_id=self.group, member_id=self.id)["error_code"]
        a = self.c.call("LeaveGroup", version, group_id=self.group,
                        members=[{"member_id": self.id, "group_instance_id": self.instance}])
        return a["error_code"] or a["members"][0]["error_code"]

    def commit(self, topic, offsets, metadata=None):
        return commit(self.c, self.group, topic, offsets, version=self.version("OffsetCommit"), member=self.id,
                      generation=self.generation, instance=self.instance, metadata=metadata)


def commit(c, group, topic, offsets, version=9, member="", generation=-1, instance=None, metadata=None, epoch=-1,
           **more):
    """{partition: error}"""
    def entry(p, o):
        e = {"partition_index": p, "committed_offset": o, "committed_metadata": metadata}
        if version >= 6:
            e["committed_leader_epoch"] = epoch
        return e
    v = {"group_id": group, "topics": [{"name": topic, "partitions": [entry(p, o) for p, o in offsets.items()]}]}
    if version >= 1:
        v.update(member_id=member, generation_id_or_member_epoch=generation)
    if version >= 7:
        v["group_instance_id"] = instance
    v.update(more)
    a = c.call("OffsetCommit", version, **v)
    return {p["partition_index"]: p["error_code"] for t in a["topics"] for p in t["partitions"]}


def fetch(c, group, topics, version=9, stable=False):
    """(error, {(topic, partition): (offset, epoch, metadata, error)}); topics {name: [partitions]} or None."""
    asked = None if topics is None else [{"name": t, "partition_indexes": list(p)} for t, p in topics.items()]
    v = {"require_stable": stable} if version >= 7 else {}
    if version >= 8:
        a = c.call("OffsetFetch", version, groups=[{"group_id": group, "topics": asked}], **v)["groups"][0]
    else:
        a = c.call("OffsetFetch", version, group_id=group, topics=asked, **v)
    return a.get("error_code", 0), {
        (t["name"], p["partition_index"]): (p["committed_offset"], p.get("committed_leader_epoch", -1), p["metadata"],
                                            p["error_code"]) for t in a["topics"] for p in t["partitions"]}


def describe(c, group, version=5, **more):
    return c.call("DescribeGroups", version, groups=[group], **more)["groups"][0]


def state(c, group):
    return describe(c, group)["group_state"]


def groups(c, version=5, **filters):
    """{id: entry}"""
    return {g["group_id"]: g for g in c.call("ListGroups", version, **filters)["groups"]}


def stable(conns, group, **args):
    """Members of a stable group, one a connection."""
    members = [Member(c, group, **args) for c in conns]
    for n in range(1, len(members) + 1):
        new = members[n - 1]
        if new.version("JoinGroup") >= 4 and new.instance is None:
            new.get_id()
        sent = [(new, new.send_join())]
        if n > 1:
            until("a join phase", lambda: state(members[0].c, group) == "PreparingRebalance")
        sent += [(m, m.send_join()) for m in members[:n - 1]]
        answers = [m.take_join(s) for m, s in sent]
        assert all(a["error_code"] == NONE and a["generation_id"] == n for a in answers), answers
    sent = [(m, m.send_sync({x["member_id"]: x["member_id"].encode() for x in m.last_join["members"]}))
            for m in members]
    for m, s in sent:
        a = m.c.receive("SyncGroup", m.version("SyncGroup"), s)
        assert a["error_code"] == NONE and a["assignment"] == m.id.encode(), a
    return members


def connect(broker, n):
    return [kwire.Conn(broker.port) for _ in range(n)]
