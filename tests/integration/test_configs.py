"""DescribeConfigs in all versions: topics, brokers, sources, synonyms, types, secrets."""
import harness
from harness import DESCRIBE_CONFIGS, Writer, create_topic

TOPIC, BROKER, LOGGER = 2, 4, 8
FROM_TOPIC, STATIC, DEFAULT = 1, 4, 5
BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = range(1, 10)
UNKNOWN_TOPIC, INVALID_TOPIC, INVALID_REQUEST = 3, 17, 42


def describe(c, version, resources, synonyms=False, docs=False):
    """resources: (type, name, keys or None). [{error, message, type, name, configs: {name: ...}}]"""
    f = version >= 4
    w = Writer().array(resources, lambda x, r: x.i8(r[0]).string(r[1], f)
                       .array(r[2], lambda y, k: y.string(k, f), f).tags(f), f)
    if version >= 1:
        w.boolean(synonyms)
    if version >= 3:
        w.boolean(docs)
    r = c.request(DESCRIBE_CONFIGS, version, w.tags(f))

    def synonym(x):
        out = x.string(f), x.string(f), x.i8()
        x.tags(f)
        return out

    def config(x):
        name = x.string(f)
        e = {"value": x.string(f), "read_only": x.boolean()}
        if version == 0:
            e["default"] = x.boolean()
        else:
            e["source"] = x.i8()
        e["sensitive"] = x.boolean()
        e["synonyms"] = x.array(synonym, f) if version >= 1 else None
        e["type"] = x.i8() if version >= 3 else None
        e["doc"] = x.string(f) if version >= 3 else None
        x.tags(f)
        return name, e

    def result(x):
        out = {"error": x.i16(), "message": x.string(f), "type": x.i8(), "name": x.string(f),
               "configs": dict(x.array(config, f))}
        x.tags(f)
        return out
    r.i32()
    out = r.array(result, f)
    r.tags(f)
    r.end()
    return out


class Configs(harness.BrokerTest):
    OVERRIDES = {"broker.id": "2", "log.retention.hours": "24", "num.partitions": "2", "compression.type": "lz4",
                 "password.encoder.secret": "hush", "listener.name.plaintext.ssl.key.password": "hush"}

    def setUp(self):
        self.c = self.client()
        create_topic(self.c, "t", configs={"retention.bytes": "1000", "cleanup.policy": "compact"})

    def tearDown(self):
        self.c.close()
        super().tearDown()

    def one(self, version, kind, name, keys=None, **args):
        result, = describe(self.c, version, [(kind, name, keys)], **args)
        self.assertEqual((result["error"], result["message"], result["type"], result["name"]), (0, None, kind, name))
        return result["configs"]

    def test_topics_in_every_version(self):
        for version in range(5):
            configs = self.one(version, TOPIC, "t")
            self.assertGreaterEqual(len(configs), 30)
            self.assertEqual({n: configs[n]["value"] for n in
                              ("retention.bytes", "cleanup.policy", "retention.ms", "segment.ms", "segment.bytes",
                               "compression.type", "min.cleanable.dirty.ratio", "preallocate")},
                             {"retention.bytes": "1000", "cleanup.policy": "compact", "retention.ms": "86400000",
                              "segment.ms": "604800000", "segment.bytes": "1073741824", "compression.type": "lz4",
                              "min.cleanable.dirty.ratio": "0.5", "preallocate": "false"})
            for name, e in configs.items():
                self.assertFalse(e["read_only"] or e["sensitive"], name)
                own = name in ("retention.bytes", "cleanup.policy")
                if version == 0:
                    self.assertEqual(e["default"], not own, name)
                else:
                    static = name in ("retention.ms", "compression.type")
                    self.assertEqual(e["source"], FROM_TOPIC if own else STATIC if static else DEFAULT, name)
                    self.assertEqual(e["synonyms"], [], name)
                self.assertIsNone(e["doc"])

    def test_brokers_in_every_version(self):
        for version in range(5):
            configs = self.one(version, BROKER, "2")
            self.assertGreater(len(configs), 200)
            self.assertEqual(configs["num.partitions"]["value"], "2")
            self.assertEqual(configs["listeners"]["value"], "PLAINTEXT://127.0.0.1:0")
            self.assertTrue(configs["num.partitions"]["read_only"])
            self.assertFalse(configs["log.retention.ms"]["read_only"])
            self.assertIsNone(configs["log.retention.ms"]["value"])
            self.assertNotIn("group.coordinator.new.enable", configs)  # internal
            self.assertNotIn("port", configs)  # of Kafka 2.3, not given
            if version == 0:
                self.assertFalse(configs["num.partitions"]["default"])
                self.assertTrue(configs["num.io.threads"]["default"])
            else:
                self.assertEqual(configs["num.partitions"]["source"], STATIC)
                self.assertEqual(configs["num.io.threads"]["source"], DEFAULT)

    def test_secrets_are_never_shown(self):
        for version in range(5):
            for synonyms in (False, True):
                for name, e in self.one(version, BROKER, "2", synonyms=synonyms).items():
                    self.assertNotEqual(e["value"], "hush", name)
                    for _, value, _ in e["synonyms"] or []:
                        self.assertNotEqual(value, "hush", name)
                    self.assertEqual(e["sensitive"], name.endswith((".password", ".secret")) or
                                     e["sensitive"], name)
                    if e["sensitive"]:
                        self.assertIsNone(e["value"])
        self.assertTrue(self.one(1, BROKER, "2")["password.encoder.secret"]["sensitive"])

    def test_which_keys(self):
        everything = set(self.one(1, TOPIC, "t"))
        for version in range(5):
            self.assertEqual(set(self.one(version, TOPIC, "t", [])), everything)
            self.assertEqual(set(self.one(version, TOPIC, "t", ["retention.ms"])), {"retention.ms"})
            self.assertEqual(set(self.one(version, TOPIC, "t", ["retention.ms", "retention.ms", "no.such"])),
                             {"retention.ms"})
            self.assertEqual(self.one(version, TOPIC, "t", ["no.such"]), {})
            self.assertEqual(set(self.one(version, BROKER, "2", ["broker.id"])), {"broker.id"})

    def test_synonyms(self):
        for version in range(1, 5):
            configs = self.one(version, TOPIC, "t", synonyms=True)
            self.assertEqual(configs["retention.bytes"]["synonyms"],
                             [("retention.bytes", "1000", FROM_TOPIC), ("log.retention.bytes", "-1", DEFAULT)])
            self.assertEqual(configs["retention.ms"]["synonyms"],
                             [("log.retention.hours", "24", STATIC), ("log.retention.hours", "168", DEFAULT)])
            configs = self.one(version, BROKER, "2", synonyms=True)
            self.assertEqual(configs["num.partitions"]["synonyms"],
                             [("num.partitions", "2", STATIC), ("num.partitions", "1", DEFAULT)])

    def test_types_and_docs(self):
        for version in (3, 4):
            configs = self.one(version, BROKER, "2", docs=True)
            for name, kind in (("auto.create.topics.enable", BOOLEAN), ("log.dir", STRING), ("broker.id", INT),
                               ("offsets.commit.required.acks", SHORT), ("log.retention.bytes", LONG),
                               ("log.cleaner.min.cleanable.ratio", DOUBLE), ("log.cleanup.policy", LIST),
                               ("principal.builder.class", CLASS), ("ssl.key.password", PASSWORD)):
                self.assertEqual(configs[name]["type"], kind, name)
            self.assertTrue(all(e["doc"] for e in configs.values()))
            self.assertTrue(all(e["doc"] for e in self.one(version, TOPIC, "t", docs=True).values()))

    def test_resources_that_are_not_there(self):
        for version in range(5):
            found = describe(self.c, version, [(TOPIC, "no.such", None), (TOPIC, "a b", None), (BROKER, "7", None),
                                               (BROKER, "x", None), (99, "t", None), (LOGGER, "7", None),
                                               (TOPIC, "t", ["retention.ms"])])
            self.assertEqual([r["error"] for r in found],
                             [UNKNOWN_TOPIC, INVALID_TOPIC] + [INVALID_REQUEST] * 4 + [0])
            for r in found[:-1]:
                self.assertTrue(r["message"])
                self.assertEqual(r["configs"], {})
            self.assertIn("7", found[2]["message"])
        self.assertEqual(describe(self.c, 1, []), [])

    def test_the_defaults_of_all_brokers_are_empty(self):
        for version in range(5):
            self.assertEqual(self.one(version, BROKER, ""), {})
        self.assertEqual(self.one(1, LOGGER, "2"), {})

    def test_overrides_survive_a_restart(self):
        self.broker.kill()
        self.broker.start()
        self.c.close()
        self.c = self.client()
        e = self.one(1, TOPIC, "t", ["retention.bytes"])["retention.bytes"]
        self.assertEqual((e["value"], e["source"]), ("1000", FROM_TOPIC))


if __name__ == "__main__":
    harness.main()
