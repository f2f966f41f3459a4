"""kafkapython.py - kafka-python as driver.py wants it."""
import kafka
from kafka import TopicPartition, errors
from kafka.admin import (ACL, ACLFilter, ACLOperation, ACLPermissionType, ACLResourcePatternType, AlterConfigOp, ConfigResource,
                         OffsetSpec, OffsetTimestamp, ResourcePattern, ResourcePatternFilter, ResourceType)
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.structs import OffsetAndMetadata

import common
from common import Got, Sent, fails, require, same, until


class Adapter(common.Adapter):
    takes_two_nulls = False

    def __init__(self, broker, prefix):
        super().__init__(broker, prefix)
        self.admin = kafka.KafkaAdminClient(bootstrap_servers=broker)

    def create(self, topic, partitions=1, configs=None):
        self.admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": 1,
                                          "configs": configs or {}}}, wait_for_metadata=True)

    def send(self, topic, records, codec="none", acks="all", idempotent=False, max_request=1048576):
        p = kafka.KafkaProducer(bootstrap_servers=self.broker, compression_type=None if codec == "none" else codec,
                                acks=acks, enable_idempotence=idempotent, max_request_size=max_request, linger_ms=20,
                                max_block_ms=30000)
        try:
            futures = [p.send(topic, key=k, value=v, headers=h, timestamp_ms=t, partition=n) for k, v, h, t, n in records]
            p.flush(30)
            done = [f.get(30) for f in futures]
            return [Sent(m.partition, m.offset, m.timestamp) for m in done]
        finally:
            p.close()

    def consumer(self, **settings):
        return kafka.KafkaConsumer(bootstrap_servers=self.broker, enable_auto_commit=False, auto_offset_reset="earliest",
                                   **settings)

    def read(self, topic, partition, n, start=0, fetch=1048576, committed=False):
        c = self.consumer(max_partition_fetch_bytes=fetch, max_poll_records=10000,
                          isolation_level="read_committed" if committed else "read_uncommitted")
        tp = TopicPartition(topic, partition)
        c.assign([tp])
        c.seek(tp, start)
        got = []

        def more():
            for r in [r for rs in c.poll(200).values() for r in rs]:
                got.append(Got(r.offset, r.key, r.value, r.headers, r.timestamp, r.timestamp_type == 1))
            return len(got) >= n
        if n:
            until("%d records" % n, more)
        c.close()
        return got[:n] if start else got

    def bounds(self, topic, partition):
        c, tp = self.consumer(), TopicPartition(topic, partition)
        try:
            return c.beginning_offsets([tp])[tp], c.end_offsets([tp])[tp]
        finally:
            c.close()

    def by_time(self, topic, partition, timestamp):
        c, tp = self.consumer(), TopicPartition(topic, partition)
        try:
            found = c.offsets_for_times({tp: timestamp})[tp]
            return found.offset if found else None
        finally:
            c.close()

    def too_large(self, error):
        return isinstance(error, errors.MessageSizeTooLargeError)

    def transactional(self, id):
        return Transactional(self.broker, id)

    def fenced(self, error):
        return isinstance(error, (errors.ProducerFencedError, errors.InvalidProducerEpochError))

    def group_reader(self, group, topic):
        return GroupReader(self.consumer(group_id=group, max_poll_records=50), topic)


class Transactional:
    def __init__(self, broker, id):
        self.p = kafka.KafkaProducer(bootstrap_servers=broker, transactional_id=id, max_block_ms=30000, retry_backoff_ms=20)
        self.p.init_transactions()

    def begin(self):
        self.p.begin_transaction()

    def send(self, topic, partition, values):
        futures = [self.p.send(topic, value=v, partition=partition) for v in values]
        self.p.flush(30)
        for f in futures:
            f.get(30)

    def send_offsets(self, reader, after):
        self.p.send_offsets_to_transaction(
            {TopicPartition(reader.topic, p): OffsetAndMetadata(o, "", -1) for p, o in after.items()}, reader.c.group_metadata())

    def end(self, commit):
        if commit:
            self.p.commit_transaction()
        else:
            self.p.abort_transaction()

    def close(self):
        self.p.close()


class GroupReader:
    def __init__(self, consumer, topic):
        self.c, self.topic = consumer, topic
        self.c.subscribe([topic])

    def poll(self):
        return [(r.partition, r.offset, r.value) for rs in self.c.poll(1000).values() for r in rs]

    def rewind(self):
        for tp in self.c.assignment():
            self.c.seek(tp, self.c.committed(tp) or 0)

    def close(self):
        self.c.close()


class AdminChecks:
    def __init__(self, adapter):
        self.a, self.admin = adapter, adapter.admin

    def admin_topics(self):
        topic, a = self.a.topic("admin-topic"), self.admin
        made = a.create_topics({topic: {"num_partitions": 3, "configs": {"retention.ms": "123456"}}})["topics"][0]
        same((made["num_partitions"], made["configs"]["retention.ms"]["value"]), (3, "123456"), "topic answered")
        fails(lambda: a.create_topics([topic]), errors.TopicAlreadyExistsError)
        fails(lambda: a.create_topics(["bad name"]), errors.InvalidTopicError)
        fails(lambda: a.create_topics({topic + "-x": {"replication_factor": 2}}), errors.InvalidReplicationFactorError)
        fails(lambda: a.create_topics({topic + "-x": {"configs": {"retention.ms": "soon"}}}), errors.InvalidConfigurationError)
        a.create_topics([topic + "-dry"], validate_only=True)
        listed = a.list_topics()
        require(topic in listed and topic + "-dry" not in listed, "topics %s" % listed)
        d = a.describe_topics([topic])[0]
        same([(p["partition_index"], p["leader_id"]) for p in d["partitions"]], [(0, 0), (1, 0), (2, 0)], "partitions")
        pieces = a.describe_topic_partitions([topic], response_partition_limit=2)
        same(sum(len(t["partitions"]) for t in pieces["topics"]), 2, "partitions of the first piece")
        a.delete_topics([topic])
        until("the topic is gone", lambda: topic not in a.list_topics())
        fails(lambda: a.delete_topics([topic]), errors.UnknownTopicOrPartitionError)

    def admin_partitions(self):
        topic = self.a.topic("admin-partitions")
        self.a.create(topic, 2)
        self.admin.create_partitions({topic: 5})
        until("five partitions", lambda: len(self.admin.describe_topics([topic])[0]["partitions"]) == 5)
        fails(lambda: self.admin.create_partitions({topic: 3}), errors.InvalidPartitionsError)

    def config(self, kind, name, **more):
        found = self.admin.describe_configs([ConfigResource(kind, name)], config_filter="all", **more)
        return found[kind.lower()][name]

    def admin_configs(self):
        topic = self.a.topic("admin-configs")
        self.a.create(topic)
        before = self.config("TOPIC", topic)["retention.ms"]

        def alter(key, value):
            return self.admin.alter_configs([ConfigResource("TOPIC", topic, {key: value})])["topic"][topic]
        same(alter("retention.ms", "5000"), "OK", "alter")
        after = self.config("TOPIC", topic, include_synonyms=True)["retention.ms"]
        same((after["value"], after["config_source"]), ("5000", "DYNAMIC_TOPIC_CONFIG"), "retention.ms")
        require(len(after["synonyms"]) >= 2, "synonyms")
        same(alter("cleanup.policy", (AlterConfigOp.APPEND, "compact")), "OK", "append")
        same(self.config("TOPIC", topic)["cleanup.policy"]["value"], "delete,compact", "appended")
        same(alter("cleanup.policy", (AlterConfigOp.SUBTRACT, "delete")), "OK", "subtract")
        same(self.config("TOPIC", topic)["cleanup.policy"]["value"], "compact", "subtracted")
        same(alter("retention.ms", (AlterConfigOp.DELETE, None)), "OK", "delete")
        same(self.config("TOPIC", topic)["retention.ms"]["value"], before["value"], "deleted")
        require("InvalidRequestError" in alter("retention.ms", "soon"), "a bad value is refused")
        require(len(self.config("BROKER", "0")) > 200, "broker settings")

    def admin_configs_legacy(self):
        topic = self.a.topic("admin-configs-legacy")
        self.a.create(topic)
        for conf in ({"retention.ms": "5000", "segment.bytes": "1048576"}, {"retention.ms": "6000"}):
            done = self.admin.alter_configs([ConfigResource("TOPIC", topic, conf)], incremental=False)
            same(done["topic"][topic], "OK", "alter")
        now = self.config("TOPIC", topic)  # the client adds what was set before
        same((now["retention.ms"]["value"], now["segment.bytes"]["value"]), ("6000", "1048576"), "settings")

    def admin_delete_records(self):
        topic = self.a.topic("admin-delete-records")
        tp = TopicPartition(topic, 0)
        self.a.create(topic)
        self.a.send(topic, [(None, b"%d" % i, [], None, 0) for i in range(10)])
        same(self.admin.delete_records({tp: 4})[tp]["low_watermark"], 4, "low watermark")
        same(self.a.bounds(topic, 0), (4, 10), "bounds")
        fails(lambda: self.admin.delete_records({tp: 11}), errors.OffsetOutOfRangeError)

    def admin_log_dirs(self):
        topic = self.a.topic("admin-log-dirs")
        self.a.create(topic, 2)
        self.a.send(topic, [(None, b"x" * 1000, [], None, 0)])
        dirs = self.admin.describe_log_dirs()[0]["log_dirs"]
        sizes = {p["partition_index"]: p["partition_size"] for d in dirs for t in d["topics"] if t["name"] == topic
                 for p in t["partitions"]}
        require(set(sizes) == {0, 1} and sizes[0] > 1000 and sizes[1] == 0, "sizes %s" % sizes)

    def admin_cluster(self):
        d = self.admin.describe_cluster()
        same(["%s:%d" % (n["host"], n["port"]) for n in d["brokers"]], [self.a.broker], "nodes")
        same((d["controller_id"], len(d["cluster_id"])), (0, 22), "controller and cluster id")

    def admin_features(self):
        require(isinstance(self.admin.describe_features(), dict), "features")

    def admin_reassignments(self):
        same(self.admin.list_partition_reassignments(), {}, "reassignments")

    def admin_acls(self):
        """A topic that everybody may use but for writing; then it may be written again."""
        topic, literal = self.a.topic("admin-acls"), ACLResourcePatternType.LITERAL
        self.a.create(topic)
        acls = [ACL("User:ANONYMOUS", "*", operation, permission, ResourcePattern(ResourceType.TOPIC, topic, literal))
                for operation, permission in ((ACLOperation.ALL, ACLPermissionType.ALLOW),
                                              (ACLOperation.WRITE, ACLPermissionType.DENY))]
        same(self.admin.create_acls(acls)["failed"], [], "creations that failed")
        some = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY,
                         ResourcePatternFilter(ResourceType.TOPIC, topic, ACLResourcePatternType.ANY))
        same(set(self.described(some)), set(acls), "ACLs")
        fails(lambda: self.a.send(topic, [(None, b"v", [], None, 0)]), errors.TopicAuthorizationFailedError)
        ((_, gone, error),) = self.admin.delete_acls([some])
        same((set(gone), error), (set(acls), errors.NoError), "deleted")
        same(self.described(some), [], "left")
        self.a.send(topic, [(None, b"v", [], None, 0)])

    def described(self, some):
        found = self.admin.describe_acls(some)
        return found[0] if isinstance(found, tuple) else found

    def admin_producers(self):
        topic = self.a.topic("admin-producers")
        self.a.create(topic)
        self.a.send(topic, [(None, b"%d" % i, [], None, 0) for i in range(5)], idempotent=True)
        tp = TopicPartition(topic, 0)
        active = self.admin.describe_producers([tp])[tp].active_producers
        same([(p.producer_epoch, p.last_sequence) for p in active], [(0, 4)], "producers")

    def admin_list_offsets(self):
        topic = self.a.topic("admin-list-offsets")
        self.a.create(topic)
        for t in (1000, 5000, 3000):
            self.a.send(topic, [(None, b"x", [], 1600000000000 + t, 0)])
        tp = TopicPartition(topic, 0)
        for spec, want in ((OffsetSpec.EARLIEST, 0), (OffsetSpec.LATEST, 3), (OffsetSpec.MAX_TIMESTAMP, 1),
                           (OffsetTimestamp(1600000002000), 1)):
            same(self.admin.list_partition_offsets({tp: spec})[tp].offset, want, "offset of %s" % spec)

    def admin_groups(self):
        topic, group, a = self.a.topic("admin-groups"), self.a.topic("group"), self.admin
        self.a.create(topic, 2)
        self.a.send(topic, [(None, b"%d" % i, [], None, 0) for i in range(10)])
        tp = TopicPartition(topic, 0)
        c = self.a.consumer(group_id=group, partition_assignment_strategy=[RangePartitionAssignor])
        c.subscribe([topic])
        until("an assignment", lambda: (c.poll(100) or True) and len(c.assignment()) == 2)
        c.commit({tp: OffsetAndMetadata(7, "note", -1)})
        d = a.describe_groups([group])[group]
        same((str(d["group_state"]).rpartition(".")[2].lower(), len(d["members"])), ("stable", 1), "description")
        require("NonEmptyGroup" in str(a.delete_groups([group])), "delete of a group with members")
        c.close()
        require(group in [g["group_id"] for g in a.list_groups()], "groups")
        found = a.list_group_offsets(group)[group]
        same((found[tp].offset, found[tp].metadata), (7, "note"), "committed")
        a.alter_group_offsets(group, {tp: OffsetAndMetadata(3, "", -1)})
        same(a.list_group_offsets(group)[group][tp].offset, 3, "altered")
        a.delete_group_offsets(group, [tp])
        require(tp not in a.list_group_offsets(group).get(group, {}), "deleted offset")
        a.delete_groups([group])
        require(group not in [g["group_id"] for g in a.list_groups()], "deleted")


def poll(c):
    """Not shorter: a poll of kafka-python 3.0.12 that ends between JoinGroup and SyncGroup loses the assignment, and the
    client does no heartbeat ever after. And it throws when the broker is not there just as it looks for the coordinator."""
    try:
        return c.poll(1000)
    except errors.KafkaConnectionError:
        return {}


def member(broker, args):
    c = kafka.KafkaConsumer(
        bootstrap_servers=broker, group_id=args["group"], group_instance_id=args.get("instance"),
        session_timeout_ms=int(args["session"]), heartbeat_interval_ms=int(args["heartbeat"]),
        enable_auto_commit=args["autocommit"] == "true", auto_commit_interval_ms=100, auto_offset_reset="earliest",
        metadata_max_age_ms=500, reconnect_backoff_max_ms=200, fetch_max_wait_ms=100,
        partition_assignment_strategy=[CooperativeStickyAssignor if args["assignor"] == "cooperative"
                                       else RangePartitionAssignor])
    if "pattern" in args:
        c.subscribe(pattern="^%s$" % args["pattern"])
    else:
        c.subscribe(args["topics"].split(","))
    commands, assigned = common.Commands(), common.Assigned()
    command = None
    while command != "close":
        for records in poll(c).values():
            for r in records:
                common.record(r.topic, r.partition, r.offset, r.value)
        assigned.tell([(p.topic, p.partition) for p in c.assignment()])
        command = commands.next()
        if command == "commit":
            c.commit()
            common.say("COMMITTED")
    c.close()
    common.say("CLOSED")


if __name__ == "__main__":
    common.main(Adapter, AdminChecks, member)
