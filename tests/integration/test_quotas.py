"""Client quotas: what is set and told, and clients being held back: they are answered at once, told for how long, and
not read meanwhile."""
import time
import unittest

import harness
import kwire
from kwire import create_topic, fetch_request, fetched, produce_one, produce_request, simple_batch

INVALID_REQUEST, UNSUPPORTED_VERSION = 42, 35


def entity(**parts):
    names = {"user": "user", "client": "client-id", "ip": "ip"}
    return [{"entity_type": names[k], "entity_name": v} for k, v in parts.items()]


class Quotas(harness.BrokerTest):
    def setUp(self):
        self.conn = kwire.Conn(self.broker.port, client_id="admin")
        self.topic = self.id().rsplit(".", 1)[1]
        create_topic(self.conn, self.topic)

    def tearDown(self):
        for e in self.describe()["entries"] or []:
            self.alter(e["entity"], {v["key"]: None for v in e["values"]})
        self.assertEqual(self.describe()["entries"], [])
        self.conn.close()

    def alter_all(self, entries, version=1, validate_only=False):
        answer = self.conn.call("AlterClientQuotas", version, validate_only=validate_only, entries=[
            {"entity": e, "ops": [{"key": k, "value": 0 if v is None else v, "remove": v is None}
                                  for k, v in ops.items()]} for e, ops in entries])
        self.assertEqual([e["entity"] for e in answer["entries"]], [e for e, _ in entries])
        return [(e["error_code"], e["error_message"]) for e in answer["entries"]]

    def alter(self, e, ops, **more):
        return self.alter_all([(e, ops)], **more)[0]

    def describe(self, components=(), strict=False, version=1):
        return self.conn.call("DescribeClientQuotas", version, strict=strict, components=[
            {"entity_type": t, "match_type": m, "match": name} for t, m, name in components])

    def quotas(self, *components, **more):
        answer = self.describe(components, **more)
        self.assertEqual((answer["error_code"], answer["error_message"]), (0, None))
        return sorted((tuple(sorted((x["entity_type"], x["entity_name"] or "") for x in e["entity"])),
                       tuple(sorted((v["key"], v["value"]) for v in e["values"]))) for e in answer["entries"])

    # -- set and told

    def test_what_is_set_is_told_in_every_version(self):
        for version in range(2):
            self.assertEqual(self.alter_all([
                (entity(user="alice"), {"producer_byte_rate": 1000.0, "request_percentage": 12.5}),
                (entity(user="alice", client="app 1"), {"consumer_byte_rate": 500.0}),
                (entity(client=None), {"producer_byte_rate": 1e9}),
                (entity(ip="127.0.0.9"), {"connection_creation_rate": 100.0})], version=version), [(0, None)] * 4)
            everything = [((("client-id", ""),), (("producer_byte_rate", 1e9),)),
                          ((("client-id", "app 1"), ("user", "alice")), (("consumer_byte_rate", 500.0),)),
                          ((("ip", "127.0.0.9"),), (("connection_creation_rate", 100.0),)),
                          ((("user", "alice"),), (("producer_byte_rate", 1000.0), ("request_percentage", 12.5)))]
            self.assertEqual(self.quotas(version=version), everything)
            self.assertEqual(self.quotas(("user", 0, "alice"), version=version), [everything[1], everything[3]])
            self.assertEqual(self.quotas(("user", 0, "alice"), strict=True, version=version), [everything[3]])
            self.assertEqual(self.quotas(("user", 2, None), ("client-id", 2, None), version=version), [everything[1]])
            self.assertEqual(self.quotas(("client-id", 1, None), version=version), [everything[0]])
            self.assertEqual(self.quotas(("ip", 2, None), version=version), [everything[2]])
            self.assertEqual(self.quotas(("user", 0, "nobody"), version=version), [])
            self.assertEqual(self.alter(entity(user="alice"), {"request_percentage": None}, version=version), (0, None))
            self.assertEqual(self.quotas(("user", 0, "alice"), strict=True),
                             [((("user", "alice"),), (("producer_byte_rate", 1000.0),))])

    def test_only_looking_changes_nothing(self):
        self.assertEqual(self.alter(entity(user="u"), {"producer_byte_rate": 5.0}, validate_only=True), (0, None))
        self.assertEqual(self.alter(entity(user="u"), {"no.such": 5.0}, validate_only=True)[0], INVALID_REQUEST)
        self.assertEqual(self.quotas(), [])

    def test_errors_in_every_version(self):
        for version in range(2):
            for e, ops in ((entity(user=""), {}), ([], {"producer_byte_rate": 1.0}),
                           (entity(user="u", ip="127.0.0.1"), {}), (entity(ip="no such host."), {}),
                           ([{"entity_type": "group", "entity_name": "g"}], {}),
                           (entity(user="u"), {"connection_creation_rate": 1.0}),
                           (entity(user="u"), {"producer_byte_rate": -1.0}),
                           (entity(user="u"), {"producer_byte_rate": float("nan")}),
                           (entity(user="u"), {"producer_byte_rate": 1.5})):
                code, message = self.alter(e, ops, version=version)
                self.assertEqual(code, INVALID_REQUEST, (e, ops))
                self.assertTrue(message)
            for components, code in (((("user", 2, None), ("user", 2, None)), INVALID_REQUEST),
                                     ((("user", 2, None), ("ip", 2, None)), INVALID_REQUEST),
                                     ((("group", 2, None),), UNSUPPORTED_VERSION),
                                     ((("user", 7, None),), INVALID_REQUEST)):
                answer = self.describe(components, version=version)
                self.assertEqual(answer["error_code"], code)
                self.assertTrue(answer["error_message"])
                self.assertIsNone(answer["entries"])

    def test_quotas_survive_a_restart(self):
        self.alter(entity(user=None, client="slow"), {"producer_byte_rate": 10.0})
        self.conn.close()
        self.broker.restart()
        self.conn = kwire.Conn(self.broker.port, client_id="admin")
        self.assertEqual(len(self.quotas()), 1)
        with kwire.Conn(self.broker.port, client_id="slow") as c:
            answer = c.call("Produce", 9, **produce_request([(self.topic, 0, simple_batch(b"x" * 10000))]))
            self.assertGreater(answer["throttle_time_ms"], 1000)

    # -- held back

    def call_late(self, conn, api, version, throttle_ms, **values):
        """The call's answer, which comes no sooner than the throttle is over."""
        began = time.monotonic()
        answer = conn.call(api, version, **values)
        self.assertGreaterEqual((time.monotonic() - began) * 1000, throttle_ms - 100)
        return answer

    def test_producers_are_held_back_after_the_answer(self):
        self.alter(entity(client="slow"), {"producer_byte_rate": 1000.0})
        for version in (3, 8, 9, 11):
            with kwire.Conn(self.broker.port, client_id="slow") as c, \
                    kwire.Conn(self.broker.port, client_id="other") as other:
                began = time.monotonic()
                answer = c.call("Produce", version, **produce_request([(self.topic, 0, simple_batch(b"x" * 11000))]))
                self.assertLess(time.monotonic() - began, 5)
                self.assertEqual(answer["responses"][0]["partition_responses"][0]["error_code"], 0)
                throttle = answer["throttle_time_ms"]
                self.assertGreater(throttle, 0)
                self.assertLess(throttle, 5000)
                other.call("ApiVersions", 0)
                self.call_late(c, "ApiVersions", 0, throttle)
            self.alter(entity(client="slow"), {"producer_byte_rate": None})  # forgets what was counted
            self.alter(entity(client="slow"), {"producer_byte_rate": 1000.0})

    def test_producers_without_acks_are_held_back(self):
        self.alter(entity(client="slow"), {"producer_byte_rate": 1000.0})
        with kwire.Conn(self.broker.port, client_id="slow") as c:
            c.send("Produce", 9, **produce_request([(self.topic, 0, simple_batch(b"x" * 11000))], acks=0))
            c.next_id += 1
            began = time.monotonic()
            self.assertEqual(c.receive("ApiVersions", 0, c.send("ApiVersions", 0))["error_code"], 0)
            self.assertGreater(time.monotonic() - began, 0.5)

    # -- topic changes (KIP-599)

    def change(self, c, api, version, names, partitions):
        """(errors, throttle_time_ms) of one request about these topics."""
        if api == "CreateTopics":
            answer = c.call(api, version, timeout_ms=20000, validate_only=False, topics=[
                {"name": n, "num_partitions": partitions, "replication_factor": 1, "assignments": [], "configs": []}
                for n in names])
            found = answer["topics"]
        elif api == "CreatePartitions":
            answer = c.call(api, version, timeout_ms=20000, validate_only=False,
                            topics=[{"name": n, "count": partitions, "assignments": None} for n in names])
            found = answer["results"]
        else:
            answer = c.call(api, version, timeout_ms=20000, topic_names=names, topics=[{"name": n} for n in names])
            found = answer["responses"]
        return [f["error_code"] for f in found], answer["throttle_time_ms"]

    def test_topic_changes_that_are_refused_and_that_are_late(self):
        """20 at once, then 2 a second. Versions that know the error get it; older ones are served and held back."""
        user = entity(client="slow")
        for strict, versions in ((True, {"CreateTopics": (6, 7), "CreatePartitions": (3,), "DeleteTopics": (5, 6)}),
                                 (False, {"CreateTopics": (4, 5), "CreatePartitions": (2,), "DeleteTopics": (4,)})):
            for api, numbers in versions.items():
                for version in numbers:
                    with self.subTest(api, version=version):
                        self.alter(user, {"controller_mutation_rate": None})  # forgets what was counted
                        names = ["%s-%s-%d-%d" % (self.topic[:20], api, version, i) for i in range(3)]
                        if api != "CreateTopics":
                            self.assertEqual(self.change(self.conn, "CreateTopics", 7, names, 15)[0], [0] * 3)
                        self.alter(user, {"controller_mutation_rate": 20 / 11.0})
                        with kwire.Conn(self.broker.port, client_id="slow") as c:
                            began = time.monotonic()
                            errors, throttle = self.change(c, api, version, names, 30 if api == "CreatePartitions" else 15)
                            # 15, 30 of 20: the second is taken, too, for nothing was owed before it
                            self.assertEqual(errors, [0, 0, 89] if strict else [0, 0, 0])
                            owed = 10 if strict else 25
                            self.assertLessEqual(throttle, owed / (20 / 11.0) * 1000 + 1)
                            self.assertGreater(throttle, owed / (20 / 11.0) * 1000 - 1000 * (time.monotonic() - began) - 100)
        self.alter(user, {"controller_mutation_rate": None})

    def test_looks_at_topics_are_not_topic_changes(self):
        self.alter(entity(client="slow"), {"controller_mutation_rate": 0.01})
        with kwire.Conn(self.broker.port, client_id="slow") as c:
            for i in range(3):
                answer = c.call("Metadata", 9, topics=[{"name": "auto-%d" % i}], allow_auto_topic_creation=True)
                self.assertEqual(answer["throttle_time_ms"], 0)
            # they were made, and count
            errors, throttle = self.change(c, "CreateTopics", 7, ["no"], 1)
            self.assertEqual(errors, [89])
            self.assertGreater(throttle, 1000)

    def fetch(self, conn, offset, version=11, **more):
        answer = conn.call("Fetch", version, **fetch_request(version, [(self.topic, 0, offset)], **more))
        return answer, [p for _, _, p in fetched(answer)]

    def test_consumers_beyond_their_quota_get_empty_answers(self):
        for _ in range(3):
            produce_one(self.conn, self.topic, 0, simple_batch(b"x" * 7000))
        self.alter(entity(user=None), {"consumer_byte_rate": 1000.0})
        with kwire.Conn(self.broker.port, client_id="c") as c:
            answer, (p,) = self.fetch(c, 0)
            self.assertEqual(answer["throttle_time_ms"], 0)
            self.assertLess(7000, len(p["records"]))
            answer, parts = self.fetch(c, 1)
            self.assertEqual((answer["error_code"], parts), (0, []))
            self.assertGreater(answer["throttle_time_ms"], 0)
        self.alter(entity(user=None), {"consumer_byte_rate": 1e9})
        with kwire.Conn(self.broker.port, client_id="c") as c:  # the other is not read for a while
            answer, (p,) = self.fetch(c, 1)
            self.assertLess(7000, len(p["records"]))

    def test_a_session_lives_through_being_held_back(self):
        produce_one(self.conn, self.topic, 0, simple_batch(b"x" * 7000))
        with kwire.Conn(self.broker.port, client_id="c") as c:
            answer, (p,) = self.fetch(c, 0, session_id=0, session_epoch=0)
            session = answer["session_id"]
            self.assertNotEqual(session, 0)
            self.alter(entity(client="c"), {"consumer_byte_rate": 500.0})
            for epoch in (1, 2):
                produce_one(self.conn, self.topic, 0, simple_batch(b"x" * 4000))
            answer = c.call("Fetch", 11, session_id=session, session_epoch=1, max_wait_ms=0, min_bytes=1, topics=[])
            self.assertEqual(answer["error_code"], 0)
            answer = c.call("Fetch", 11, session_id=session, session_epoch=2, max_wait_ms=0, min_bytes=1, topics=[])
            self.assertEqual((answer["error_code"], answer["session_id"], answer["responses"]), (0, session, []))
            self.assertGreater(answer["throttle_time_ms"], 0)
        self.alter(entity(client="c"), {"consumer_byte_rate": None})
        with kwire.Conn(self.broker.port, client_id="c") as c:
            answer = c.call("Fetch", 11, session_id=session, session_epoch=3, max_wait_ms=0, min_bytes=1, topics=[])
            self.assertEqual(answer["error_code"], 0)
            self.assertEqual(len(fetched(answer)), 1)

    def test_a_batch_beyond_the_window_gets_through(self):
        """A quota of 1000 bytes a second and a batch of 20 KB: it comes, and the time is told and served."""
        produce_one(self.conn, self.topic, 0, simple_batch(b"x" * 20000))
        self.alter(entity(client="c"), {"consumer_byte_rate": 1000.0})
        for version in (1, 4, 11, 12):
            with kwire.Conn(self.broker.port, client_id="c") as c:
                answer, (p,) = self.fetch(c, 0, version, **({"max_bytes": 1 << 20} if version >= 3 else {}))
                if version >= 3:
                    self.assertGreater(len(p["records"]), 20000)
                    self.assertGreater(answer["throttle_time_ms"], 5000)
            self.alter(entity(client="c"), {"consumer_byte_rate": None})
            self.alter(entity(client="c"), {"consumer_byte_rate": 1000.0})

    def test_time_is_limited(self):
        self.alter(entity(client="busy"), {"request_percentage": 0.0001})
        with kwire.Conn(self.broker.port, client_id="busy") as c:
            answer = c.call("Metadata", 9, topics=None)
            for _ in range(3):
                if answer["throttle_time_ms"]:
                    break
                answer = c.call("Metadata", 9, topics=None)
            self.assertGreater(answer["throttle_time_ms"], 0)
            self.assertLessEqual(answer["throttle_time_ms"], 1000)
            self.call_late(c, "Metadata", 9, answer["throttle_time_ms"], topics=None)
        with kwire.Conn(self.broker.port, client_id="other") as c:
            for _ in range(20):
                self.assertEqual(c.call("Metadata", 9, topics=None)["throttle_time_ms"], 0)

    def test_addresses_are_held_back(self):
        self.alter(entity(ip="127.0.0.1"), {"connection_creation_rate": 0.0})
        with kwire.Conn(self.broker.port) as c:
            self.assertTrue(c.is_closed())
        self.alter(entity(ip="127.0.0.1"), {"connection_creation_rate": None})
        with kwire.Conn(self.broker.port) as c:
            c.call("ApiVersions", 0)


if __name__ == "__main__":
    unittest.main()
