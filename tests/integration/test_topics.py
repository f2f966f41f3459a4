"""CreateTopics, DeleteTopics and CreatePartitions in all versions, with every refusal."""
import os
import time
import unittest

import harness
from harness import (CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS, Broker, Writer, create_topic, delete_topic,
                     metadata, until)

NONE, UNKNOWN_TOPIC, TIMED_OUT, INVALID_TOPIC, EXISTS, PARTITIONS, REPLICATION, ASSIGNMENT, CONFIG = \
    0, 3, 7, 17, 36, 37, 38, 39, 40
INVALID_REQUEST, DELETION_DISABLED, UNKNOWN_ID = 42, 73, 100
ZERO_ID = b"\0" * 16


class T:
    """One topic of a CreateTopics request."""

    def __init__(self, name, partitions=1, replication=1, assignments=(), configs=()):
        self.name, self.partitions, self.replication = name, partitions, replication
        self.assignments, self.configs = assignments, configs


def create(c, version, topics, timeout=20000, validate=False):
    """[{name, error, message, id, partitions, replication, configs}] in the order of the answer"""
    f = version >= 5

    def put(w, t):
        w.string(t.name, f).i32(t.partitions).i16(t.replication)
        w.array(list(t.assignments), lambda x, a: x.i32(a[0]).array(a[1], lambda y, b: y.i32(b), f).tags(f), f)
        w.array(list(t.configs), lambda x, kv: x.string(kv[0], f).string(kv[1], f).tags(f), f)
        w.tags(f)
    w = Writer().array(topics, put, f).i32(timeout)
    if version >= 1:
        w.boolean(validate)
    r = c.request(CREATE_TOPICS, version, w.tags(f))

    def config(x):
        out = x.string(f), {"value": x.string(f), "read_only": x.boolean(), "source": x.i8(), "sensitive": x.boolean()}
        x.tags(f)
        return out

    def result(x):
        t = {"name": x.string(f)}
        t["id"] = x.uuid() if version >= 7 else None
        t["error"] = x.i16()
        t["message"] = x.string(f) if version >= 1 else None
        if version >= 5:
            t["partitions"], t["replication"] = x.i32(), x.i16()
            t["configs"] = dict(x.array(config, f) or [])
        x.tags(f)
        return t
    if version >= 2:
        r.i32()
    out = r.array(result, f)
    r.tags(f)
    r.end()
    return out


def delete(c, version, topics, timeout=20000):
    """topics: names, ids (v6), or pairs of both. [(name, id, error)]"""
    f = version >= 4
    w = Writer()
    if version >= 6:
        def state(x, t):
            name, topic_id = t if isinstance(t, tuple) else (None, t) if isinstance(t, bytes) else (t, ZERO_ID)
            x.string(name, f).uuid(topic_id).tags(f)
        w.array(topics, state, f)
    else:
        w.array(topics, lambda x, t: x.string(t, f), f)
    r = c.request(DELETE_TOPICS, version, w.i32(timeout).tags(f))

    def result(x):
        name = x.string(f)
        topic_id = x.uuid() if version >= 6 else None
        error = x.i16()
        if version >= 5:
            x.string(f)
        x.tags(f)
        return name, topic_id, error
    if version >= 1:
        r.i32()
    out = r.array(result, f)
    r.tags(f)
    r.end()
    return out


def grow(c, version, topics, timeout=20000, validate=False):
    """topics: (name, count, assignments or None). [(name, error, message)]"""
    f = version >= 2

    def put(w, t):
        w.string(t[0], f).i32(t[1])
        w.array(t[2], lambda x, a: x.array(a, lambda y, b: y.i32(b), f).tags(f), f)
        w.tags(f)
    r = c.request(CREATE_PARTITIONS, version, Writer().array(topics, put, f).i32(timeout).boolean(validate).tags(f))

    def result(x):
        out = x.string(f), x.i16(), x.string(f)
        x.tags(f)
        return out
    r.i32()
    out = r.array(result, f)
    r.tags(f)
    r.end()
    return out


class TopicTest(harness.BrokerTest):
    def setUp(self):
        self.c = self.client()

    def tearDown(self):
        self.c.close()
        super().tearDown()

    def partitions(self, name):
        """Count in the metadata, -1 when the topic is not there; every partition has a leader."""
        error, _, partitions = metadata(self.c, [name])["topics"][name]
        if error == UNKNOWN_TOPIC:
            return -1
        self.assertEqual(error, NONE)
        for p in partitions.values():
            self.assertEqual((p[0], p[1]), (NONE, 0))
        return len(partitions)

    def errors(self, version, topics, **args):
        return [t["error"] for t in create(self.c, version, topics, **args)]


class CreateTopics(TopicTest):
    OVERRIDES = {"num.partitions": "4"}

    def test_every_version(self):
        for version in range(8):
            name = "%s-%d" % (self.topic(), version)
            t, = create(self.c, version, [T(name, 3)])
            self.assertEqual((t["name"], t["error"], t["message"]), (name, NONE, None))
            self.assertEqual(self.partitions(name), 3)  # at once: the answer waited for the leaders
            if version >= 5:
                self.assertEqual((t["partitions"], t["replication"]), (3, 1))
            if version >= 7:
                self.assertNotEqual(t["id"], ZERO_ID)

    def test_the_brokers_defaults(self):
        for version in range(4, 8):
            name = "%s-%d" % (self.topic(), version)
            t, = create(self.c, version, [T(name, -1, -1)])
            self.assertEqual(t["error"], NONE)
            self.assertEqual(self.partitions(name), 4)

    def test_counts_that_cannot_be(self):
        for version in range(8):
            name = self.topic()
            self.assertEqual(self.errors(version, [T(name, 0)]), [PARTITIONS])
            self.assertEqual(self.errors(version, [T(name, -2)]), [PARTITIONS])
            self.assertEqual(self.errors(version, [T(name, 1, 0)]), [REPLICATION])
            self.assertEqual(self.errors(version, [T(name, 1, 99)]), [REPLICATION])
            self.assertEqual(self.partitions(name), -1)

    def test_validate_only_makes_nothing(self):
        for version in range(1, 8):
            t, = create(self.c, version, [T(self.topic(), 3)], validate=True)
            self.assertEqual(t["error"], NONE)
            if version >= 5:
                self.assertEqual((t["partitions"], t["replication"]), (3, 1))
            if version >= 7:
                self.assertEqual(t["id"], ZERO_ID)
            self.assertEqual(self.errors(version, [T(self.topic(), 3, 9)], validate=True), [REPLICATION])
            self.assertEqual(self.partitions(self.topic()), -1)

    def test_assignments(self):
        name = self.topic()
        self.assertEqual(self.errors(4, [T(name, -1, -1, [(0, [0]), (1, [0])])]), [NONE])
        self.assertEqual(self.partitions(name), 2)
        name += "x"
        for assignments, error in (
                ([(0, [0]), (2, [0])], ASSIGNMENT),         # a gap
                ([(1, [0])], ASSIGNMENT),                   # does not begin at 0
                ([(0, [0, 0])], ASSIGNMENT),                # the same broker twice
                ([(0, [0]), (1, [0, 1])], ASSIGNMENT),      # not the same number
                ([(0, [])], ASSIGNMENT)):
            self.assertEqual(self.errors(4, [T(name, -1, -1, assignments)]), [error], assignments)
        for t in (T(name, 1, -1, [(0, [0])]), T(name, -1, 1, [(0, [0])]), T(name, 1, 1, [(0, [0])])):
            self.assertEqual(self.errors(4, [t]), [INVALID_REQUEST])
        self.assertEqual(self.partitions(name), -1)

    def test_the_same_name_twice(self):
        for version in range(8):
            name = self.topic()
            found = create(self.c, version, [T(name), T(name + "-ok-%d" % version), T(name)])
            self.assertEqual({(t["name"], t["error"]) for t in found},
                             {(name, INVALID_REQUEST), (name + "-ok-%d" % version, NONE)})
            self.assertEqual(self.partitions(name), -1)

    def test_names(self):
        for name in ("", ".", "..", "a b", "a/b", "a" * 250, "\u00fc", "a\0b"):
            self.assertEqual(self.errors(2, [T(name)]), [INVALID_TOPIC], name)
        self.assertEqual(self.errors(2, [T("__cluster_metadata")]), [INVALID_REQUEST])
        self.assertEqual(self.errors(2, [T("create.col_lide")]), [NONE])
        self.assertEqual(self.errors(2, [T("create_col.lide")]), [INVALID_TOPIC])
        self.assertEqual(self.errors(2, [T("create.col_lide")]), [EXISTS])

    def test_every_topic_has_its_own_result(self):
        name = self.topic()
        create_topic(self.c, name)
        found = {t["name"]: t for t in create(self.c, 2, [T(name), T(name + "2"), T("a b"), T(name + "3", 0)])}
        self.assertEqual({n: t["error"] for n, t in found.items()},
                         {name: EXISTS, name + "2": NONE, "a b": INVALID_TOPIC, name + "3": PARTITIONS})
        self.assertTrue(all(t["message"] for t in found.values() if t["error"]))
        self.assertEqual(create(self.c, 2, []), [])

    def test_configs(self):
        name = self.topic()
        for config in (("retention.ms", "-2"), ("retention.ms", "x"), ("no.such.key", "1"), ("cleanup.policy", "z"),
                       ("retention.ms", None), ("log.retention.ms", "1"), ("segment.bytes", "")):
            for version in range(8):
                t, = create(self.c, version, [T(name, configs=[config])])
                self.assertEqual(t["error"], CONFIG, config)
                if version >= 1:
                    self.assertIn(config[0], t["message"])
        self.assertEqual(self.partitions(name), -1)
        t, = create(self.c, 5, [T(name, configs=[("retention.ms", "1234"), ("cleanup.policy", "compact,delete")])])
        self.assertEqual(t["error"], NONE)

    def test_the_answer_tells_the_settings(self):
        for version in (5, 6, 7):
            for validate in (True, False):
                name = "%s-%d" % (self.topic(), version)
                t, = create(self.c, version, [T(name, configs=[("retention.ms", "1234")])], validate=validate)
                configs = t["configs"]
                self.assertGreater(len(configs), 25)
                self.assertEqual(configs["retention.ms"],
                                 {"value": "1234", "read_only": False, "source": 1, "sensitive": False})
                self.assertEqual(configs["segment.bytes"],
                                 {"value": "1073741824", "read_only": False, "source": 5, "sensitive": False})
            t, = create(self.c, version, [T(name)])
            self.assertEqual((t["error"], t["configs"], t["partitions"], t["replication"]), (EXISTS, {}, -1, -1))

    def test_a_timeout_of_nothing(self):
        name = self.topic()
        self.assertEqual(self.errors(4, [T(name, 2)], timeout=0), [TIMED_OUT])
        until("it is made all the same", lambda: self.partitions(name) == 2)
        self.assertEqual(self.errors(4, [T(name)], timeout=-5), [EXISTS])

    def test_many_topics_in_one_request(self):
        names = ["%s-%d" % (self.topic(), i) for i in range(200)]
        self.assertEqual(self.errors(4, [T(n) for n in names]), [NONE] * 200)
        everything = metadata(self.c, None)["topics"]
        self.assertTrue(all(n in everything for n in names))
        self.assertEqual([e for _, _, e in delete(self.c, 3, names)], [NONE] * 200)

    def test_a_client_that_leaves_while_it_waits(self):
        for i in range(20):
            with self.client() as c:
                c.send(CREATE_TOPICS, 0, Writer().array(["%s-%d" % (self.topic(), i)], lambda w, n: w.string(n)
                                                        .i32(5).i16(1).i32(0).i32(0)).i32(30000))
        until("all are there", lambda: sum(n.startswith(self.topic()) for n in metadata(self.c, None)["topics"]) == 20)


class DeleteTopics(TopicTest):
    def test_every_version(self):
        for version in range(7):
            name = "%s-%d" % (self.topic(), version)
            create_topic(self.c, name, 3)
            (got, _, error), = delete(self.c, version, [name])
            self.assertEqual((got, error), (name, NONE))
            self.assertEqual(self.partitions(name), -1)  # at once: the answer waited
            self.assertEqual([e for _, _, e in delete(self.c, version, [name])], [UNKNOWN_TOPIC])

    def test_by_id(self):
        t, = create(self.c, 7, [T(self.topic())])
        self.assertEqual(delete(self.c, 6, [t["id"]]), [(self.topic(), t["id"], NONE)])
        self.assertEqual(delete(self.c, 6, [t["id"]]), [(None, t["id"], UNKNOWN_ID)])
        again, = create(self.c, 7, [T(self.topic())])
        self.assertNotEqual(again["id"], t["id"])
        self.assertEqual(delete(self.c, 6, [t["id"]]), [(None, t["id"], UNKNOWN_ID)])
        self.assertEqual(self.partitions(self.topic()), 1)

    def test_name_and_id_together(self):
        t, = create(self.c, 7, [T(self.topic())])
        errors = [e for _, _, e in delete(self.c, 6, [(self.topic(), t["id"]), self.topic()])]
        self.assertEqual(errors, [INVALID_REQUEST, INVALID_REQUEST])
        self.assertEqual(self.partitions(self.topic()), 1)

    def test_the_same_name_twice(self):
        create_topic(self.c, self.topic())
        self.assertEqual([e for _, _, e in delete(self.c, 3, [self.topic(), self.topic()])], [NONE, NONE])

    def test_a_timeout_of_nothing(self):
        create_topic(self.c, self.topic())
        self.assertEqual([e for _, _, e in delete(self.c, 3, [self.topic()], timeout=0)], [TIMED_OUT])
        until("it goes all the same", lambda: self.partitions(self.topic()) == -1)

    def test_each_topic_has_its_own_result(self):
        create_topic(self.c, self.topic())
        self.assertEqual([e for _, _, e in delete(self.c, 3, ["no.such", self.topic(), "a b"])],
                         [UNKNOWN_TOPIC, NONE, UNKNOWN_TOPIC])
        self.assertEqual(delete(self.c, 3, []), [])

    def test_create_and_delete_over_and_over(self):
        for i in range(30):
            self.assertEqual(create_topic(self.c, self.topic(), 2), NONE)
            self.assertEqual(self.partitions(self.topic()), 2)
            self.assertEqual(delete_topic(self.c, self.topic()), NONE)

    def test_the_longest_name(self):
        name = "n" * 249
        self.assertEqual(create_topic(self.c, name, 3), NONE)
        self.assertEqual(delete_topic(self.c, name), NONE)
        self.broker.restart()
        self.c.close()
        self.c = self.client()
        self.assertEqual(create_topic(self.c, name, 3), NONE)
        self.assertEqual(self.partitions(name), 3)
        self.assertEqual(delete_topic(self.c, name), NONE)


class DeletionDisabled(TopicTest):
    OVERRIDES = {"delete.topic.enable": "false"}

    def test_nothing_is_deleted(self):
        create_topic(self.c, "t")
        for version in range(7):
            self.assertEqual([e for _, _, e in delete(self.c, version, ["t"])],
                             [DELETION_DISABLED if version >= 3 else INVALID_REQUEST])
        self.assertEqual(self.partitions("t"), 1)


class CreatePartitions(TopicTest):
    def test_every_version(self):
        for version in range(4):
            name = "%s-%d" % (self.topic(), version)
            create_topic(self.c, name, 1)
            self.assertEqual(grow(self.c, version, [(name, 3, None)]), [(name, NONE, None)])
            self.assertEqual(self.partitions(name), 3)
            (_, error, message), = grow(self.c, version, [(name, 3, None)])
            self.assertEqual(error, PARTITIONS)
            self.assertTrue(message)
            self.assertEqual(grow(self.c, version, [(name, 2, None)])[0][1], PARTITIONS)
            self.assertEqual(grow(self.c, version, [(name, 0, None)])[0][1], PARTITIONS)
            self.assertEqual(grow(self.c, version, [("no.such", 2, None)])[0][1], UNKNOWN_TOPIC)

    def test_validate_only(self):
        create_topic(self.c, self.topic(), 1)
        self.assertEqual(grow(self.c, 1, [(self.topic(), 3, None)], validate=True)[0][1], NONE)
        self.assertEqual(self.partitions(self.topic()), 1)

    def test_assignments(self):
        name = self.topic()
        create_topic(self.c, name, 1)
        for assignments in ([], [[0]], [[0], [0], [0]], [[0], [0, 1]], [[0], [0, 0]], [[0], [7]], [[0], []]):
            self.assertEqual(grow(self.c, 1, [(name, 3, assignments)])[0][1], ASSIGNMENT, assignments)
        self.assertEqual(grow(self.c, 1, [(name, 3, [[0], [0]])])[0][1], NONE)
        self.assertEqual(self.partitions(name), 3)

    def test_the_same_name_twice(self):
        create_topic(self.c, self.topic(), 1)
        found = grow(self.c, 1, [(self.topic(), 3, None), (self.topic(), 4, None)])
        self.assertEqual([e for _, e, _ in found], [INVALID_REQUEST, INVALID_REQUEST])
        self.assertEqual(self.partitions(self.topic()), 1)

    def test_they_survive_a_restart(self):
        create_topic(self.c, self.topic(), 1)
        grow(self.c, 1, [(self.topic(), 5, None)])
        self.broker.kill()
        self.broker.start()
        self.c.close()
        self.c = self.client()
        self.assertEqual(self.partitions(self.topic()), 5)


class DeleteDelay(unittest.TestCase):
    def test_no_delay_and_a_quick_stop(self):
        with Broker(overrides={"log.segment.delete.delay.ms": "0"}) as b:
            with b.client() as c:
                create_topic(c, "t", 3)
                self.assertTrue(os.path.isdir(os.path.join(b.data, "t-0")))
                self.assertEqual(delete_topic(c, "t"), 0)
                until("the folders are gone", lambda: not [n for n in os.listdir(b.data) if n.startswith("t")], 10)
                create_topic(c, "t", 3)
                delete_topic(c, "t")
            began = time.monotonic()
            b.stop()
            self.assertLess(time.monotonic() - began, 10)
            b.start()
            with b.client() as c:
                self.assertEqual(metadata(c, None)["topics"], {})

    def test_folders_to_be_deleted_go_after_a_restart(self):
        with Broker(overrides={"log.segment.delete.delay.ms": "3600000"}) as b:
            with b.client() as c:
                create_topic(c, "t", 2)
                delete_topic(c, "t")
            self.assertEqual(len([n for n in os.listdir(b.data) if n.endswith("-delete")]), 2)
            b.stop()
            b.overrides["log.segment.delete.delay.ms"] = "0"
            b.start()
            until("the folders are gone", lambda: not [n for n in os.listdir(b.data) if n.endswith("-delete")], 10)


if __name__ == "__main__":
    harness.main()
