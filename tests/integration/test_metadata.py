"""Metadata in all versions: what is told of brokers, topics and partitions, ids, auto creation."""
import unittest

import harness
from harness import METADATA, Broker, Writer, create_topic, delete_topic, until

NONE, UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE, INVALID_TOPIC, INVALID_REPLICATION, INVALID_REQUEST, UNKNOWN_ID = \
    0, 3, 5, 17, 38, 42, 100
ZERO_ID = b"\0" * 16
ALL_TOPIC_OPERATIONS = sum(1 << n for n in (3, 4, 5, 6, 7, 8, 10, 11))
ALL_CLUSTER_OPERATIONS = sum(1 << n for n in (5, 7, 8, 9, 10, 11, 12))
NOT_ASKED = -2147483648
VERSIONS = range(13)


def encode(version, topics, allow=False, operations=False):
    """topics: None = null, else names or 16-byte ids"""
    f = version >= 9

    def put(w, t):
        by_id = isinstance(t, bytes)
        if version >= 10:
            w.uuid(t if by_id else ZERO_ID)
        w.string(None if by_id else t, f)
        w.tags(f)
    w = Writer().array(topics, put, f)
    if version >= 4:
        w.boolean(allow)
    if 8 <= version <= 10:
        w.boolean(operations)
    if version >= 8:
        w.boolean(operations)
    return w.tags(f)


def decode(r, version):
    f = version >= 9

    def ints(x):
        return x.array(lambda y: y.i32(), f)

    def broker(x):
        b = {"id": x.i32(), "host": x.string(f), "port": x.i32()}
        b["rack"] = x.string(f) if version >= 1 else None
        x.tags(f)
        return b

    def partition(x):
        p = {"error": x.i16(), "number": x.i32(), "leader": x.i32()}
        p["epoch"] = x.i32() if version >= 7 else None
        p["replicas"], p["isr"] = ints(x), ints(x)
        p["offline"] = ints(x) if version >= 5 else []
        x.tags(f)
        return p

    def topic(x):
        t = {"error": x.i16(), "name": x.string(f)}
        t["id"] = x.uuid() if version >= 10 else None
        t["internal"] = x.boolean() if version >= 1 else False
        t["partitions"] = x.array(partition, f)
        t["operations"] = x.i32() if version >= 8 else NOT_ASKED
        x.tags(f)
        return t
    out = {"throttle": r.i32() if version >= 3 else 0}
    out["brokers"] = r.array(broker, f)
    out["cluster"] = r.string(f) if version >= 2 else None
    out["controller"] = r.i32() if version >= 1 else None
    out["topics"] = r.array(topic, f)
    out["operations"] = r.i32() if 8 <= version <= 10 else NOT_ASKED
    r.tags(f)
    r.end()
    return out


def ask(client, version, topics, **args):
    return decode(client.request(METADATA, version, encode(version, topics, **args)), version)


class Metadata(harness.BrokerTest):
    OVERRIDES = {"broker.id": "3", "broker.rack": "r1", "num.partitions": "2"}

    def setUp(self):
        self.c = self.client()

    def tearDown(self):
        self.c.close()
        super().tearDown()

    def test_every_version_tells_of_a_topic(self):
        name = self.topic()
        self.assertEqual(create_topic(self.c, name, 3), NONE)
        for version in VERSIONS:
            m = ask(self.c, version, [name])
            self.assertEqual(m["brokers"], [{"id": 3, "host": "127.0.0.1", "port": self.broker.port,
                                             "rack": "r1" if version >= 1 else None}])
            self.assertEqual(len(m["topics"]), 1)
            t = m["topics"][0]
            self.assertEqual((t["error"], t["name"], t["internal"]), (NONE, name, False))
            self.assertEqual(sorted(p["number"] for p in t["partitions"]), [0, 1, 2])
            for p in t["partitions"]:
                self.assertEqual((p["error"], p["leader"], p["replicas"], p["isr"], p["offline"]),
                                 (NONE, 3, [3], [3], []))
                if version >= 7:
                    self.assertEqual(p["epoch"], 0)
            if version >= 1:
                self.assertEqual(m["controller"], 3)
            if version >= 2:
                self.assertEqual(len(m["cluster"]), 22)
            if version >= 10:
                self.assertNotEqual(t["id"], ZERO_ID)

    def test_null_is_all_and_empty_is_none(self):
        names = {self.topic("a"), self.topic("b")}
        for name in names:
            create_topic(self.c, name)
        for version in VERSIONS:
            everything = ask(self.c, version, [] if version == 0 else None)
            found = [t["name"] for t in everything["topics"]]
            self.assertLessEqual(names, set(found))
            self.assertEqual(len(found), len(set(found)))
            if version > 0:
                nothing = ask(self.c, version, [])
                self.assertEqual(nothing["topics"], [])
                self.assertEqual(len(nothing["brokers"]), 1)

    def test_unknown_names_are_not_created_when_that_is_not_wished(self):
        name = self.topic()
        for version in range(4, 13):
            t = ask(self.c, version, [name])["topics"]
            self.assertEqual([(x["error"], x["name"], x["partitions"]) for x in t], [(UNKNOWN_TOPIC, name, [])])
        self.assertNotIn(name, [t["name"] for t in ask(self.c, 1, None)["topics"]])

    def wait_ready(self, name, version):
        """The topic gets a leader within 5 s; every answer until then is one a client can bear."""
        def ready():
            t = ask(self.c, version, [name])["topics"][0]
            if t["error"] == NONE and all(p["error"] == NONE for p in t["partitions"]):
                return t
            self.assertIn(t["error"], (NONE, LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC))
            for p in t["partitions"]:
                self.assertIn(p["error"], (NONE, LEADER_NOT_AVAILABLE))
                if p["error"]:
                    self.assertEqual(p["leader"], -1)
            return None
        return until("%s has leaders" % name, ready, 5)

    def test_unknown_names_are_created_when_wished(self):
        for version in VERSIONS:
            name = "%s-%d" % (self.topic(), version)
            first = ask(self.c, version, [name], allow=True)["topics"][0]
            self.assertIn(first["error"], (NONE, LEADER_NOT_AVAILABLE))
            t = self.wait_ready(name, version)
            self.assertEqual(len(t["partitions"]), 2)  # num.partitions

    def test_two_clients_ask_for_the_same_new_name(self):
        name = self.topic()
        with self.client() as other:
            a = self.c.send(METADATA, 4, encode(4, [name, name + "2"], allow=True))
            b = other.send(METADATA, 4, encode(4, [name], allow=True))
            for client, n in ((self.c, a), (other, b)):
                for t in decode(client.receive(METADATA, 4, n), 4)["topics"]:
                    self.assertIn(t["error"], (NONE, LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC))
        self.wait_ready(name, 4)

    def test_illegal_names(self):
        for name in ("", ".", "..", "a b", "a/b", "a" * 250, "\u00e4", "a:b"):
            for version in VERSIONS:
                for allow in (False, True):
                    t = ask(self.c, version, [name], allow=allow)["topics"]
                    self.assertEqual([(x["error"], x["name"], x["partitions"]) for x in t], [(INVALID_TOPIC, name, [])])
        name = ("x" * 249)
        self.assertEqual(create_topic(self.c, name), NONE)
        self.assertEqual(ask(self.c, 1, [name])["topics"][0]["error"], NONE)

    def test_a_name_that_collides_is_not_created(self):
        self.assertEqual(create_topic(self.c, "col.li.de"), NONE)
        t = ask(self.c, 4, ["col_li.de"], allow=True)["topics"][0]
        self.assertEqual((t["error"], t["name"]), (INVALID_TOPIC, "col_li.de"))

    def test_names_asked_twice_are_told_once(self):
        name = self.topic()
        create_topic(self.c, name)
        m = ask(self.c, 1, [name, "no.such", name, "no.such"])
        self.assertEqual(sorted(t["name"] for t in m["topics"]), sorted([name, "no.such"]))

    def test_ids(self):
        name = self.topic()
        create_topic(self.c, name)
        topic_id = ask(self.c, 12, [name])["topics"][0]["id"]
        t = ask(self.c, 12, [topic_id])["topics"][0]
        self.assertEqual((t["error"], t["name"], t["id"], len(t["partitions"])), (NONE, name, topic_id, 1))
        unknown = bytes(range(16))
        t = ask(self.c, 12, [unknown], allow=True)["topics"][0]
        self.assertEqual((t["error"], t["name"], t["id"], t["partitions"]), (UNKNOWN_ID, None, unknown, []))
        # versions 10 and 11 carry ids but do not know what they mean
        for version in (10, 11):
            for wanted in (topic_id, ZERO_ID):
                t = ask(self.c, version, [wanted])["topics"][0]
                self.assertEqual((t["error"], t["name"]), (INVALID_REQUEST, ""))
        self.assertEqual(delete_topic(self.c, name), NONE)
        self.assertEqual(ask(self.c, 12, [topic_id])["topics"][0]["error"], UNKNOWN_ID)
        create_topic(self.c, name)
        self.assertNotEqual(ask(self.c, 12, [name])["topics"][0]["id"], topic_id)

    def test_operations_when_asked(self):
        name = self.topic()
        create_topic(self.c, name)
        for version in range(8, 13):
            m = ask(self.c, version, [name], operations=True)
            self.assertEqual(m["topics"][0]["operations"], ALL_TOPIC_OPERATIONS)
            self.assertEqual(m["operations"], ALL_CLUSTER_OPERATIONS if version <= 10 else NOT_ASKED)
            m = ask(self.c, version, [name])
            self.assertEqual((m["topics"][0]["operations"], m["operations"]), (NOT_ASKED, NOT_ASKED))

    def test_internal_names_are_marked(self):
        t = ask(self.c, 1 + 3, ["__consumer_offsets"])["topics"][0]
        self.assertEqual((t["error"], t["internal"]), (UNKNOWN_TOPIC, True))
        with Broker(overrides={"offsets.topic.replication.factor": "3"}) as alone:  # more than there are
            t = ask(alone.client(), 4, ["__consumer_offsets"], allow=True)["topics"][0]
            self.assertEqual((t["error"], t["internal"]), (INVALID_REPLICATION, True))
        t = ask(self.c, 4, ["__consumer_offsets"], allow=True)["topics"][0]
        self.assertTrue(t["internal"])
        until("it is made", lambda: ask(self.c, 4, ["__consumer_offsets"])["topics"][0]["error"] == 0)


class Restart(unittest.TestCase):
    def test_topics_survive_and_epochs_never_go_back(self):
        with Broker() as b:
            with b.client() as c:
                for i in range(5):
                    self.assertEqual(create_topic(c, "t%d" % i, i + 1), NONE)
                before = {t["name"]: t for t in ask(c, 12, None)["topics"]}
            for how in (b.stop, b.kill):
                how()
                b.start()
                with b.client() as c:
                    after = {t["name"]: t for t in ask(c, 12, None)["topics"]}
                    self.assertEqual({n: t["id"] for n, t in after.items()}, {n: t["id"] for n, t in before.items()})
                    for name, t in after.items():
                        self.assertEqual(len(t["partitions"]), len(before[name]["partitions"]))
                        epochs = {p["number"]: p["epoch"] for p in before[name]["partitions"]}
                        for p in t["partitions"]:
                            self.assertEqual((p["error"], p["leader"]), (NONE, 0))
                            self.assertGreaterEqual(p["epoch"], epochs[p["number"]])
                    before = after


class NoAutoCreation(harness.BrokerTest):
    OVERRIDES = {"auto.create.topics.enable": "false"}

    def test_nothing_is_created(self):
        with self.client() as c:
            for version in VERSIONS:
                t = ask(c, version, ["new"], allow=True)["topics"][0]
                self.assertEqual(t["error"], UNKNOWN_TOPIC)
                self.assertEqual(ask(c, version, [] if version == 0 else None)["topics"], [])


class Listeners(harness.BrokerTest):
    """Each listener's clients are told of that listener's endpoint."""
    LISTENERS = "IN://127.0.0.1:0,OUT://127.0.0.1:0,HIDDEN://127.0.0.1:0"
    OVERRIDES = {"listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT,HIDDEN:PLAINTEXT",
                 "inter.broker.listener.name": "IN",
                 "advertised.listeners": "IN://127.0.0.1:0,OUT://lb.example:9999"}

    def setUp(self):
        with self.client(listener="IN") as c:
            create_topic(c, "t")

    def test_endpoints(self):
        with self.client(listener="IN") as c:
            self.assertEqual([(b["host"], b["port"]) for b in ask(c, 1, [])["brokers"]],
                             [("127.0.0.1", self.broker.ports["IN"])])
        with self.client(listener="OUT") as c:
            self.assertEqual([(b["host"], b["port"]) for b in ask(c, 1, [])["brokers"]], [("lb.example", 9999)])

    def test_a_listener_that_is_not_advertised_shows_no_brokers(self):
        with self.client(listener="HIDDEN") as c:
            for version in VERSIONS:
                m = ask(c, version, ["t"])
                self.assertEqual(m["brokers"], [])
                p = m["topics"][0]["partitions"][0]
                self.assertEqual((p["error"], p["leader"]), (72 if version >= 6 else LEADER_NOT_AVAILABLE, -1))
                if version == 0:
                    self.assertEqual((p["replicas"], p["isr"]), ([], []))


if __name__ == "__main__":
    harness.main()
