"""confluent.py - confluent-kafka (librdkafka) as driver.py wants it."""
import time

import confluent_kafka as ck
from confluent_kafka import admin as ca

import common
from common import Got, Sent, same, require, until


class Adapter(common.Adapter):
    def __init__(self, broker, prefix):
        super().__init__(broker, prefix)
        self.admin = ca.AdminClient({"bootstrap.servers": broker})

    def create(self, topic, partitions=1, configs=None):
        for f in self.admin.create_topics([ca.NewTopic(topic, partitions, 1, config=configs or {})]).values():
            f.result(30)

    def send(self, topic, records, codec="none", acks="all", idempotent=False, max_request=1000000):
        p = ck.Producer({"bootstrap.servers": self.broker, "compression.type": codec, "acks": acks, "linger.ms": 20,
                         "enable.idempotence": idempotent, "message.max.bytes": max_request,
                         "queue.buffering.max.messages": 200000, "topic.metadata.refresh.fast.interval.ms": 50})
        sent, errors = [], []

        def told(error, m):
            if error:
                errors.append(ck.KafkaException(error))
            sent.append(Sent(m.partition(), m.offset(), m.timestamp()[1]))
        for key, value, headers, timestamp, partition in records:
            more = {} if partition is None else {"partition": partition}
            if timestamp is not None:
                more["timestamp"] = timestamp
            p.produce(topic, key=key, value=value, headers=headers, on_delivery=told, **more)
        p.flush(30)
        same(len(sent), len(records), "deliveries told")
        if errors:
            raise errors[0]
        return sent

    def consumer(self, **settings):
        conf = {"bootstrap.servers": self.broker, "group.id": "none", "enable.auto.commit": False,
                "auto.offset.reset": "earliest", "enable.partition.eof": False}
        conf.update(settings)
        return ck.Consumer(conf)

    def read(self, topic, partition, n, start=0, fetch=4000000, committed=False):
        c = self.consumer(**{"max.partition.fetch.bytes": fetch, "fetch.wait.max.ms": 100,
                             "isolation.level": "read_committed" if committed else "read_uncommitted"})
        c.assign([ck.TopicPartition(topic, partition, start)])
        got = []

        def more():
            for m in c.consume(10000, 0.2):
                if m.error():
                    raise ck.KafkaException(m.error())
                kind, timestamp = m.timestamp()
                got.append(Got(m.offset(), m.key(), m.value(), m.headers() or [], timestamp,
                               kind == ck.TIMESTAMP_LOG_APPEND_TIME))
            return len(got) >= n
        if n:
            until("%d records" % n, more)
        c.close()
        return got[:n] if start else got

    def bounds(self, topic, partition):
        c = self.consumer()
        try:
            return c.get_watermark_offsets(ck.TopicPartition(topic, partition), 30)
        finally:
            c.close()

    def by_time(self, topic, partition, timestamp):
        c = self.consumer()
        try:
            found = c.offsets_for_times([ck.TopicPartition(topic, partition, timestamp)], 30)[0]
            require(not found.error, "by time: %s" % found.error)
            return found.offset if found.offset >= 0 else None
        finally:
            c.close()

    def too_large(self, error):
        return error.args[0].code() == ck.KafkaError.MSG_SIZE_TOO_LARGE


    def transactional(self, id):
        return Transactional(self.broker, id)

    def fenced(self, error):
        return isinstance(error, ck.KafkaException) and (error.args[0].fatal() or error.args[0].code() == ck.KafkaError._FENCED)

    def group_reader(self, group, topic):
        return GroupReader(self.consumer(**{"group.id": group, "fetch.wait.max.ms": 100}), topic)


class Transactional:
    def __init__(self, broker, id):
        self.p = ck.Producer({"bootstrap.servers": broker, "transactional.id": id, "transaction.timeout.ms": 60000})
        self.p.init_transactions(30)

    def begin(self):
        self.p.begin_transaction()

    def send(self, topic, partition, values):
        for v in values:
            self.p.produce(topic, v, partition=partition)
        self.p.flush(30)

    def send_offsets(self, reader, after):
        self.p.send_offsets_to_transaction([ck.TopicPartition(reader.topic, p, o) for p, o in after.items()],
                                           reader.c.consumer_group_metadata(), 30)

    def end(self, commit):
        if commit:
            self.p.commit_transaction(30)
        else:
            self.p.abort_transaction(30)

    def close(self):
        pass


class GroupReader:
    def __init__(self, consumer, topic):
        self.c, self.topic = consumer, topic
        self.c.subscribe([topic])

    def poll(self):
        messages = self.c.consume(50, 0.5)
        for m in messages:
            if m.error():
                raise ck.KafkaException(m.error())
        return [(m.partition(), m.offset(), m.value()) for m in messages]

    def rewind(self):
        for at in self.c.committed(self.c.assignment(), 30):
            self.c.seek(ck.TopicPartition(at.topic, at.partition, max(at.offset, 0)))

    def close(self):
        self.c.close()


class AdminChecks:
    def __init__(self, adapter):
        self.a, self.admin = adapter, adapter.admin

    def one(self, futures):
        """The result of the only future."""
        (future,) = futures.values()
        return future.result(30)

    def code(self, futures):
        try:
            self.one(futures)
        except ck.KafkaException as e:
            return e.args[0].name()
        return None

    def admin_topics(self):
        topic, a = self.a.topic("admin-topic"), self.admin
        self.one(a.create_topics([ca.NewTopic(topic, 3, 1, config={"retention.ms": "123456"})]))
        same(self.code(a.create_topics([ca.NewTopic(topic, 3, 1)])), "TOPIC_ALREADY_EXISTS", "again")
        same(self.code(a.create_topics([ca.NewTopic("bad name", 1, 1)])), "TOPIC_EXCEPTION", "bad name")
        same(self.code(a.create_topics([ca.NewTopic(topic + "-x", 1, 2)])), "INVALID_REPLICATION_FACTOR", "two replicas")
        same(self.code(a.create_topics([ca.NewTopic(topic + "-x", 1, 1, config={"retention.ms": "soon"})])),
             "INVALID_CONFIG", "bad setting")
        self.one(a.create_topics([ca.NewTopic(topic + "-dry", 1, 1)], validate_only=True))
        listed = a.list_topics(timeout=30).topics
        require(topic in listed and topic + "-dry" not in listed, "topics %s" % sorted(listed))
        same(sorted(listed[topic].partitions), [0, 1, 2], "partitions")
        d = self.one(a.describe_topics(ck.TopicCollection([topic])))
        same((d.name, len(d.partitions), d.is_internal, [p.leader.id for p in d.partitions]), (topic, 3, False, [0, 0, 0]),
             "description")
        self.one(a.delete_topics([topic]))
        until("the topic is gone", lambda: topic not in a.list_topics(timeout=30).topics)
        same(self.code(a.delete_topics([topic])), "UNKNOWN_TOPIC_OR_PART", "deleted again")

    def admin_partitions(self):
        topic = self.a.topic("admin-partitions")
        self.a.create(topic, 2)
        self.one(self.admin.create_partitions([ca.NewPartitions(topic, 5)]))
        until("five partitions", lambda: len(self.admin.list_topics(topic, 30).topics[topic].partitions) == 5)
        same(self.code(self.admin.create_partitions([ca.NewPartitions(topic, 3)])), "INVALID_PARTITIONS", "fewer")

    def config(self, resource):
        return self.one(self.admin.describe_configs([resource]))

    def admin_configs(self):
        topic = self.a.topic("admin-configs")
        self.a.create(topic)
        r = ca.ConfigResource(ca.ResourceType.TOPIC, topic)
        before = self.config(r)["retention.ms"]
        same(before.source, ca.ConfigSource.DEFAULT_CONFIG.value, "source")

        def alter(key, value, operation, wanted=None):
            r2 = ca.ConfigResource(ca.ResourceType.TOPIC, topic, incremental_configs=[
                ca.ConfigEntry(key, value, incremental_operation=operation)])
            same(self.code(self.admin.incremental_alter_configs([r2])), wanted, "%s of %s" % (operation, key))
        alter("retention.ms", "5000", ca.AlterConfigOpType.SET)
        after = self.config(r)["retention.ms"]
        same((after.value, after.source), ("5000", ca.ConfigSource.DYNAMIC_TOPIC_CONFIG.value), "retention.ms")
        require(after.synonyms, "synonyms")
        alter("cleanup.policy", "compact", ca.AlterConfigOpType.APPEND)
        same(self.config(r)["cleanup.policy"].value, "delete,compact", "appended")
        alter("cleanup.policy", "delete", ca.AlterConfigOpType.SUBTRACT)
        same(self.config(r)["cleanup.policy"].value, "compact", "subtracted")
        alter("retention.ms", None, ca.AlterConfigOpType.DELETE)
        same(self.config(r)["retention.ms"].value, before.value, "deleted")
        alter("retention.ms", "soon", ca.AlterConfigOpType.SET, "INVALID_REQUEST")
        broker = self.config(ca.ConfigResource(ca.ResourceType.BROKER, "0"))
        require(len(broker) > 200 and broker["log.dirs"].is_read_only, "broker settings")

    def admin_configs_legacy(self):
        topic = self.a.topic("admin-configs-legacy")
        self.a.create(topic)
        for conf in ({"retention.ms": "5000", "segment.bytes": "1048576"}, {"retention.ms": "6000"}):
            self.one(self.admin.alter_configs([ca.ConfigResource(ca.ResourceType.TOPIC, topic, set_config=conf)]))
        now = self.config(ca.ConfigResource(ca.ResourceType.TOPIC, topic))
        same((now["retention.ms"].value, now["segment.bytes"].value), ("6000", "1073741824"), "settings")

    def admin_delete_records(self):
        topic = self.a.topic("admin-delete-records")
        self.a.send(topic, [(None, b"%d" % i, [], None, 0) for i in range(10)])
        done = self.one(self.admin.delete_records([ck.TopicPartition(topic, 0, 4)]))
        same(done.low_watermark, 4, "low watermark")
        same(self.a.bounds(topic, 0), (4, 10), "bounds")
        same(self.code(self.admin.delete_records([ck.TopicPartition(topic, 0, 11)])), "OFFSET_OUT_OF_RANGE", "behind the end")

    def admin_cluster(self):
        d = self.admin.describe_cluster().result(30)
        same(["%s:%d" % (n.host, n.port) for n in d.nodes], [self.a.broker], "nodes")
        same((d.controller.id, len(d.cluster_id)), (0, 22), "controller and cluster id")

    def admin_acls(self):
        """A topic that everybody may use but for writing; then it may be written again."""
        topic = self.a.topic("admin-acls")
        self.a.create(topic)
        literal, someone = ca.ResourcePatternType.LITERAL, "User:ANONYMOUS"
        acls = [ca.AclBinding(ca.ResourceType.TOPIC, topic, literal, someone, "*", ca.AclOperation.ALL, ca.AclPermissionType.ALLOW),
                ca.AclBinding(ca.ResourceType.TOPIC, topic, literal, someone, "*", ca.AclOperation.WRITE, ca.AclPermissionType.DENY)]
        for f in self.admin.create_acls(acls).values():
            f.result(30)
        some = ca.AclBindingFilter(ca.ResourceType.TOPIC, topic, ca.ResourcePatternType.ANY, None, None,
                                   ca.AclOperation.ANY, ca.AclPermissionType.ANY)
        same(sorted(self.admin.describe_acls(some).result(30)), sorted(acls), "ACLs")
        try:
            self.a.send(topic, [(None, b"v", [], None, 0)])
        except ck.KafkaException as e:
            same(e.args[0].name(), "TOPIC_AUTHORIZATION_FAILED", "error")
        else:
            raise AssertionError("written in spite of the ACL")
        same(sorted(self.one(self.admin.delete_acls([some]))), sorted(acls), "deleted")
        same(self.admin.describe_acls(some).result(30), [], "left")
        self.a.send(topic, [(None, b"v", [], None, 0)])

    def admin_list_offsets(self):
        topic = self.a.topic("admin-list-offsets")
        self.a.create(topic)
        for t in (1000, 5000, 3000):
            self.a.send(topic, [(None, b"x", [], 1600000000000 + t, 0)])
        tp = ck.TopicPartition(topic, 0)
        for spec, want in ((ca.OffsetSpec.earliest(), 0), (ca.OffsetSpec.latest(), 3), (ca.OffsetSpec.max_timestamp(), 1),
                           (ca.OffsetSpec.for_timestamp(1600000002000), 1)):
            same(self.one(self.admin.list_offsets({tp: spec})).offset, want, "offset of %s" % spec)

    def admin_groups(self):
        topic, group, a = self.a.topic("admin-groups"), self.a.topic("group"), self.admin
        self.a.create(topic, 2)
        self.a.send(topic, [(None, b"%d" % i, [], None, 0) for i in range(10)])
        c = self.a.consumer(**{"group.id": group, "partition.assignment.strategy": "range"})
        c.subscribe([topic])
        until("an assignment", lambda: (c.consume(10, 0.1) or True) and len(c.assignment()) == 2)
        c.commit(offsets=[ck.TopicPartition(topic, 0, 7, "note")], asynchronous=False)
        d = self.one(a.describe_consumer_groups([group]))
        same((d.state.name, len(d.members), d.partition_assignor), ("STABLE", 1, "range"), "description")
        same(len(d.members[0].assignment.topic_partitions), 2, "partitions of the member")
        same(self.code(a.delete_consumer_groups([group])), "NON_EMPTY_GROUP", "delete of a group with members")
        c.close()
        until("the group is empty", lambda: self.one(a.describe_consumer_groups([group])).state.name == "EMPTY")
        listed = a.list_consumer_groups().result(30).valid
        require(group in [g.group_id for g in listed], "groups %s" % listed)

        def committed():
            found = self.one(a.list_consumer_group_offsets([ck.ConsumerGroupTopicPartitions(group)]))
            return {(p.partition, p.offset, p.metadata) for p in found.topic_partitions}
        same(committed(), {(0, 7, "note")}, "committed")
        self.one(a.alter_consumer_group_offsets([ck.ConsumerGroupTopicPartitions(group, [ck.TopicPartition(topic, 0, 3)])]))
        same({x[:2] for x in committed()}, {(0, 3)}, "altered")
        self.one(a.delete_consumer_groups([group]))
        same(self.code(a.delete_consumer_groups([group])), "GROUP_ID_NOT_FOUND", "deleted again")


def member(broker, args):
    conf = {"bootstrap.servers": broker, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 100,
            "topic.metadata.refresh.interval.ms": 500, "reconnect.backoff.max.ms": 200, "fetch.wait.max.ms": 100}
    keys = {"group": "group.id", "session": "session.timeout.ms", "heartbeat": "heartbeat.interval.ms",
            "autocommit": "enable.auto.commit", "instance": "group.instance.id", "protocol": "group.protocol"}
    conf.update({keys[k]: v for k, v in args.items() if k in keys})
    if "assignor" in args:
        conf["partition.assignment.strategy"] = {"range": "range", "cooperative": "cooperative-sticky"}[args["assignor"]]
    c = ck.Consumer(conf)
    c.subscribe(["^%s$" % args["pattern"]] if "pattern" in args else args["topics"].split(","))
    commands, assigned = common.Commands(), common.Assigned()
    command = None
    while command != "close":
        m = c.poll(0.1)
        if m and not m.error():
            common.record(m.topic(), m.partition(), m.offset(), m.value())
        assigned.tell([(p.topic, p.partition) for p in c.assignment()])
        command = commands.next()
        if command == "commit":
            c.commit(asynchronous=False)
            common.say("COMMITTED")
    c.close()
    common.say("CLOSED")


if __name__ == "__main__":
    common.main(Adapter, AdminChecks, member)
