"""aio.py - aiokafka as driver.py wants it. Each call of the adapter is one run of the event loop."""
import asyncio

import aiokafka
from aiokafka import TopicPartition, errors
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

import common
from common import Got, Sent, fails, require, same, until


class Adapter(common.Adapter):
    takes_two_nulls = False

    def with_admin(self, call):
        async def run():
            admin = AIOKafkaAdminClient(bootstrap_servers=self.broker)
            await admin.start()
            try:
                return await call(admin)
            finally:
                await admin.close()
        return asyncio.run(run())

    def with_consumer(self, call, **settings):
        async def run():
            c = aiokafka.AIOKafkaConsumer(bootstrap_servers=self.broker, enable_auto_commit=False,
                                          auto_offset_reset="earliest", **settings)
            await c.start()
            try:
                return await call(c)
            finally:
                await c.stop()
        return asyncio.run(run())

    def create(self, topic, partitions=1, configs=None):
        async def call(admin):
            answer = await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs or {})])
            if answer.topic_errors[0][1]:
                raise errors.for_code(answer.topic_errors[0][1])
        self.with_admin(call)

    def send(self, topic, records, codec="none", acks="all", idempotent=False, max_request=1048576):
        async def run():
            p = aiokafka.AIOKafkaProducer(bootstrap_servers=self.broker, compression_type=None if codec == "none" else codec,
                                          acks=acks, enable_idempotence=idempotent, max_request_size=max_request,
                                          linger_ms=20)
            await p.start()
            try:
                futures = [await p.send(topic, key=k, value=v, headers=h, timestamp_ms=t, partition=n)
                           for k, v, h, t, n in records]
                done = await asyncio.gather(*futures)
                return [Sent(m.partition, m.offset, m.timestamp) if m else Sent(None, None, None) for m in done]
            finally:
                await p.stop()
        return asyncio.run(run())

    def read(self, topic, partition, n, start=0, fetch=1048576, committed=False):
        tp, got = TopicPartition(topic, partition), []

        async def call(c):
            c.assign([tp])
            c.seek(tp, start)
            while len(got) < n:
                found = await asyncio.wait_for(c.getmany(timeout_ms=200), 30)
                for r in [r for rs in found.values() for r in rs]:
                    got.append(Got(r.offset, r.key, r.value, r.headers, r.timestamp, r.timestamp_type == 1))
        self.with_consumer(call, max_partition_fetch_bytes=fetch,
                           isolation_level="read_committed" if committed else "read_uncommitted")
        return got[:n] if start else got

    def bounds(self, topic, partition):
        tp = TopicPartition(topic, partition)

        async def call(c):
            return (await c.beginning_offsets([tp]))[tp], (await c.end_offsets([tp]))[tp]
        return self.with_consumer(call)

    def by_time(self, topic, partition, timestamp):
        tp = TopicPartition(topic, partition)

        async def call(c):
            found = (await c.offsets_for_times({tp: timestamp}))[tp]
            return found.offset if found else None
        return self.with_consumer(call)

    def too_large(self, error):
        return isinstance(error, errors.MessageSizeTooLargeError)

    # Producers and readers of transactions live longer than one call: in a loop of their own.
    loop = asyncio.new_event_loop()

    def transactional(self, id):
        async def start():
            p = aiokafka.AIOKafkaProducer(bootstrap_servers=self.broker, transactional_id=id, retry_backoff_ms=20)
            await p.start()
            return p
        return Transactional(self.loop.run_until_complete, self.loop.run_until_complete(start()))

    def fenced(self, error):
        return isinstance(error, (errors.ProducerFenced, errors.InvalidProducerEpoch))

    def group_reader(self, group, topic):
        async def start():
            c = aiokafka.AIOKafkaConsumer(topic, bootstrap_servers=self.broker, group_id=group, enable_auto_commit=False,
                                          auto_offset_reset="earliest", isolation_level="read_committed")
            await c.start()
            return c
        return GroupReader(self.loop.run_until_complete, self.loop.run_until_complete(start()), group, topic)


class Transactional:
    def __init__(self, run, producer):
        self.run, self.p = run, producer

    def begin(self):
        self.run(self.p.begin_transaction())

    def send(self, topic, partition, values):
        async def call():
            await asyncio.gather(*[await self.p.send(topic, value=v, partition=partition) for v in values])
        self.run(call())

    def send_offsets(self, reader, after):
        self.run(self.p.send_offsets_to_transaction({TopicPartition(reader.topic, p): o for p, o in after.items()}, reader.group))

    def end(self, commit):
        self.run(self.p.commit_transaction() if commit else self.p.abort_transaction())

    def close(self):
        self.run(self.p.stop())


class GroupReader:
    def __init__(self, run, consumer, group, topic):
        self.run, self.c, self.group, self.topic = run, consumer, group, topic

    def poll(self):
        found = self.run(self.c.getmany(timeout_ms=500, max_records=50))
        return [(r.partition, r.offset, r.value) for rs in found.values() for r in rs]

    def rewind(self):
        async def call():
            for tp in self.c.assignment():
                self.c.seek(tp, await self.c.committed(tp) or 0)
        self.run(call())

    def close(self):
        self.run(self.c.stop())


class AdminChecks:
    def __init__(self, adapter):
        self.a, self.with_admin = adapter, adapter.with_admin

    def topics(self):
        return self.with_admin(lambda a: a.list_topics())

    def partitions_of(self, topic):
        return len(self.with_admin(lambda a: a.describe_topics([topic]))[0]["partitions"])

    def admin_topics(self):
        topic = self.a.topic("admin-topic")
        self.a.create(topic, 3, {"retention.ms": "123456"})
        fails(lambda: self.a.create(topic), errors.TopicAlreadyExistsError)
        fails(lambda: self.a.create("bad name"), errors.InvalidTopicError)
        fails(lambda: self.a.create(topic + "-x", 1, {"retention.ms": "soon"}), errors.InvalidConfigurationError)
        require(topic in self.topics() and topic + "-x" not in self.topics(), "topics")
        d = self.with_admin(lambda a: a.describe_topics([topic]))[0]
        same(sorted((p["partition"], p["leader"]) for p in d["partitions"]), [(0, 0), (1, 0), (2, 0)], "partitions")
        same(self.config(ConfigResourceType.TOPIC, topic)["retention.ms"], "123456", "setting")

        def delete():
            return self.with_admin(lambda a: a.delete_topics([topic])).topic_error_codes[0][1]
        same(delete(), 0, "delete")
        until("the topic is gone", lambda: topic not in self.topics())
        same(delete(), errors.UnknownTopicOrPartitionError.errno, "delete again")

    def admin_partitions(self):
        topic = self.a.topic("admin-partitions")
        self.a.create(topic, 2)
        self.with_admin(lambda a: a.create_partitions({topic: NewPartitions(5)}))
        until("five partitions", lambda: self.partitions_of(topic) == 5)
        fails(lambda: self.with_admin(lambda a: a.create_partitions({topic: NewPartitions(3)})), errors.InvalidPartitionsError)

    def config(self, kind, name):
        answer = self.with_admin(lambda a: a.describe_configs([ConfigResource(kind, name)]))[0]
        same(answer.resources[0][0], 0, "error of DescribeConfigs")
        return {entry[0]: entry[1] for entry in answer.resources[0][4]}

    def admin_configs(self):
        topic = self.a.topic("admin-configs")
        self.a.create(topic)
        now = self.config(ConfigResourceType.TOPIC, topic)
        same((now["cleanup.policy"], now["retention.ms"]), ("delete", "604800000"), "settings")
        require(len(self.config(ConfigResourceType.BROKER, "0")) > 200, "broker settings")

    def admin_configs_legacy(self):
        topic = self.a.topic("admin-configs-legacy")
        self.a.create(topic)
        for conf, wanted in (({"retention.ms": "5000", "segment.bytes": "1048576"}, 0), ({"retention.ms": "6000"}, 0),
                             ({"retention.ms": "soon"}, 42)):
            answer = self.with_admin(lambda a: a.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, conf)]))
            same(answer[0].resources[0][0], wanted, "answer to %s" % conf)
        now = self.config(ConfigResourceType.TOPIC, topic)
        same((now["retention.ms"], now["segment.bytes"]), ("6000", "1073741824"), "settings")

    def admin_delete_records(self):
        topic = self.a.topic("admin-delete-records")
        tp = TopicPartition(topic, 0)
        self.a.create(topic)
        self.a.send(topic, [(None, b"%d" % i, [], None, 0) for i in range(10)])
        same(self.with_admin(lambda a: a.delete_records({tp: RecordsToDelete(4)})), {tp: 4}, "low watermark")
        same(self.a.bounds(topic, 0), (4, 10), "bounds")
        fails(lambda: self.with_admin(lambda a: a.delete_records({tp: RecordsToDelete(11)})), errors.OffsetOutOfRangeError)

    def admin_cluster(self):
        d = self.with_admin(lambda a: a.describe_cluster())
        same(["%s:%d" % (n["host"], n["port"]) for n in d["brokers"]], [self.a.broker], "nodes")
        same((d["controller_id"], len(d["cluster_id"])), (0, 22), "controller and cluster id")

    def admin_groups(self):
        topic, group = self.a.topic("admin-groups"), self.a.topic("group")
        tp = TopicPartition(topic, 0)
        self.a.create(topic, 2)
        self.a.send(topic, [(None, b"%d" % i, [], None, 0) for i in range(10)])

        async def use(c):
            c.subscribe([topic])
            while len(c.assignment()) < 2:
                await c.getmany(timeout_ms=100)
            await c.commit({tp: (7, "note")})
            return await admin_call(lambda a: a.describe_consumer_groups([group]))

        async def admin_call(call):
            admin = AIOKafkaAdminClient(bootstrap_servers=self.a.broker)
            await admin.start()
            try:
                return await call(admin)
            finally:
                await admin.close()
        found = self.a.with_consumer(use, group_id=group, partition_assignment_strategy=[RangePartitionAssignor])
        error, name, state, kind, protocol, members = found[0].groups[0][:6]
        same((error, name, state, kind, protocol, len(members)), (0, group, "Stable", "consumer", "range", 1), "description")
        listed = self.with_admin(lambda a: a.list_consumer_groups())
        require(group in [g[0] for g in listed], "groups %s" % listed)
        offsets = self.with_admin(lambda a: a.list_consumer_group_offsets(group))
        same((offsets[tp].offset, offsets[tp].metadata), (7, "note"), "committed")


async def member_loop(broker, args):
    c = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=broker, group_id=args["group"], group_instance_id=args.get("instance"),
        session_timeout_ms=int(args["session"]), heartbeat_interval_ms=int(args["heartbeat"]),
        rebalance_timeout_ms=int(args["session"]), enable_auto_commit=args["autocommit"] == "true",
        auto_commit_interval_ms=100, auto_offset_reset="earliest", metadata_max_age_ms=500, fetch_max_wait_ms=100,
        partition_assignment_strategy=[RangePartitionAssignor])
    if "pattern" in args:
        c.subscribe(pattern="^%s$" % args["pattern"])
    else:
        c.subscribe(args["topics"].split(","))
    await c.start()
    commands, assigned = common.Commands(), common.Assigned()
    command = None
    while command != "close":
        for records in (await c.getmany(timeout_ms=100)).values():
            for r in records:
                common.record(r.topic, r.partition, r.offset, r.value)
        assigned.tell([(p.topic, p.partition) for p in c.assignment()])
        command = commands.next()
        if command == "commit":
            await c.commit()
            common.say("COMMITTED")
    await c.stop()
    common.say("CLOSED")


def member(broker, args):
    asyncio.run(member_loop(broker, args))


if __name__ == "__main__":
    common.main(Adapter, AdminChecks, member)
