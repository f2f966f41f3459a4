"""clients.py - which clients are tried, in which version, and what they lack by themselves."""
import prepare

# Every client's program knows these; a client that lacks one says so in the table below.
SINGLE_CHECKS = (
    "roundtrip", "codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd", "acks", "idempotence",
    "keyed-partitions", "large-records", "too-large-record", "offsets-by-time", "log-append-time", "many-batches",
    "admin-topics", "admin-partitions", "admin-configs", "admin-configs-legacy", "admin-delete-records",
    "admin-log-dirs", "admin-cluster", "admin-features", "admin-reassignments", "admin-acls", "admin-tokens", "admin-producers",
    "admin-list-offsets",
    "admin-quotas", "admin-groups", "transactions", "transactions-copy", "transactions-admin")
_KIP_848 = (
    "consumer-protocol-share", "consumer-protocol-leave", "consumer-protocol-crash", "consumer-protocol-resume",
    "consumer-protocol-pattern", "consumer-protocol-growth", "consumer-protocol-restart",
    "consumer-protocol-upgrade", "consumer-protocol-static")
GROUP_CHECKS = (
    "group-share", "group-leave", "group-crash", "group-resume", "group-static", "group-pattern", "group-growth",
    "group-cooperative", "group-restart", *_KIP_848)
MIXED_CHECKS = ("mixed-group", "mixed-takeover")

# API keys that a check cannot do without: it is left out while the broker does not say that it serves them.
NEEDS = {**{name: (68, 69) for name in _KIP_848}, "admin-reassignments": (46,)}


class Client:
    def __init__(self, name, title, prepare, lacks, heartbeat=0):
        self.name, self.title, self.prepare, self.lacks = name, title, prepare, set(lacks)
        self.heartbeat = heartbeat  # the version of ConsumerGroupHeartbeat that it needs

    def checks(self):
        return [n for n in SINGLE_CHECKS + GROUP_CHECKS if n not in self.lacks]


class Mixed:
    """Members of several clients in one group. What a client would be, but with a command for each."""
    name, title, lacks, heartbeat = "mixed-group", "one group of several languages", (), 0
    MEMBERS = ("kafka-clients-4.4", "confluent-kafka", "kafkajs", "franz-go")

    def checks(self):
        return list(MIXED_CHECKS)

    def prepare(self):
        commands, missing = {}, []
        for name in self.MEMBERS:
            try:
                commands[name] = NAMES[name].prepare()[0]
            except prepare.Skip as e:
                missing.append(str(e))
        if len(commands) < 2:
            raise prepare.Skip("; ".join(missing))
        return commands, " + ".join(commands)


_CLIENTS = (
    Client("kafka-clients-3.9", "Apache kafka-clients", lambda: prepare.java("3.9.2"), _KIP_848),
    Client("kafka-clients-4.4", "Apache kafka-clients", lambda: prepare.java("4.4.0"), ["admin-configs-legacy"]),
    Client("confluent-kafka", "confluent-kafka (librdkafka)", lambda: prepare.python("confluent-kafka", "2.16.1", "confluent.py"),
           ["admin-log-dirs", "admin-features", "admin-reassignments", "admin-tokens", "admin-producers", "admin-quotas",
            "transactions-admin"]),
    Client("kafka-python", "kafka-python", lambda: prepare.python("kafka-python[snappy,lz4,zstd]", "3.0.12", "kafkapython.py"),
           ["admin-tokens", "admin-quotas", *_KIP_848, "transactions-admin"]),
    Client("aiokafka", "aiokafka", lambda: prepare.python("aiokafka[snappy,lz4,zstd]", "0.14.0", "aio.py"),
           ["admin-log-dirs", "admin-features", "admin-reassignments", "admin-acls", "admin-tokens", "admin-producers",
            "admin-list-offsets", "admin-quotas", "group-cooperative", *_KIP_848, "transactions-admin"]),
    Client("franz-go", "franz-go", lambda: prepare.go("github.com/twmb/franz-go", "franz"), ["admin-features", "transactions-admin"], heartbeat=1),
    Client("sarama", "sarama", lambda: prepare.go("github.com/IBM/sarama", "sarama"),
           ["admin-features", "admin-tokens", "admin-producers", "group-pattern", *_KIP_848, "transactions-admin"]),
    Client("kafkajs", "kafkajs", lambda: prepare.node("kafkajs", "2.2.4", "kafkajs.mjs", 18, "kafkajs-snappy@1.1.0",
                                                      "lz4js@0.2.0", "@bokuweb/zstd-wasm@0.0.27"),
           ["admin-log-dirs", "admin-features", "admin-tokens", "admin-producers", "admin-list-offsets", "admin-quotas", "group-static",
            "group-pattern", "group-cooperative", *_KIP_848, "transactions-admin"]),
    # It writes transactions, but its reader shows records of aborted ones.
    Client("platformatic-kafka", "@platformatic/kafka",
           lambda: prepare.node("@platformatic/kafka", "1.35.0", "platformatic.mjs", 20),
           ["log-append-time", "admin-features", "admin-reassignments", "admin-tokens", "admin-producers", "group-pattern", "group-growth",
            "group-cooperative", *_KIP_848[4:], "transactions", "transactions-copy", "transactions-admin"]),
)
NAMES = {c.name: c for c in _CLIENTS + (Mixed(),)}
