// kafkajs as driver.py wants it; snappy, LZ4 and Zstandard by the usual packages, written in JavaScript and WebAssembly.
import * as zstd from '@bokuweb/zstd-wasm';
import kafkajs from 'kafkajs';
import SnappyCodec from 'kafkajs-snappy';
import lz4 from 'lz4js';

import { assigned, commands, fails, main, same, say, text, until } from './common.mjs';

const { AssignerProtocol, CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, Partitioners, logLevel } = kafkajs;
const codec = (compress, decompress) => () => ({
  compress: async encoder => Buffer.from(compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(decompress(buffer)),
});
CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec;
CompressionCodecs[CompressionTypes.LZ4] = codec(lz4.compress, lz4.decompress);
CompressionCodecs[CompressionTypes.ZSTD] = codec(zstd.compress, zstd.decompress);
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD };

const client = broker => new Kafka({ clientId: 'checks', brokers: [broker], logLevel: logLevel.ERROR,
  retry: { initialRetryTime: 100, maxRetryTime: 500, retries: 30 } });

async function open(broker) {
  await zstd.init();
  const kafka = client(broker), admin = kafka.admin();
  await admin.connect();
  let groups = 0;
  return {
    async create(topic, numPartitions = 1, configs = {}) {
      await admin.createTopics({ topics: [{ topic, numPartitions, replicationFactor: 1,
        configEntries: Object.entries(configs).map(([name, value]) => ({ name, value })) }] });
    },
    async send(topic, records, { codec = 'none', acks = -1, idempotent = false }) {
      const producer = kafka.producer({ idempotent, createPartitioner: Partitioners.DefaultPartitioner });
      await producer.connect();
      try {
        const one = (messages) => producer.send({ topic, acks, compression: CODECS[codec], messages: messages.map(r => ({
          key: r.key, value: r.value, partition: r.partition, headers: Object.fromEntries(r.headers ?? []),
          timestamp: r.timestamp === undefined ? undefined : String(r.timestamp) })) });
        const sent = [];
        // it answers one offset for a partition and request; where its partitioner chooses, ask for each record
        if (records.every(r => r.partition !== undefined)) {
          const [done] = await one(records);
          for (let i = 0; i < records.length; i++) sent.push({ partition: 0, offset: Number(done?.baseOffset) + i });
        } else {
          for (const r of records) {
            const [done] = await one([r]);
            sent.push({ partition: done.partition, offset: Number(done.baseOffset) });
          }
        }
        return sent;
      } finally {
        await producer.disconnect();
      }
    },
    async read(topic, partition, n, { start = 0, fetch = 1048576, committed = false } = {}) {
      const consumer = kafka.consumer({ groupId: `${topic}-reader-${groups++}`, maxBytesPerPartition: fetch, maxWaitTimeInMs: 100,
        readUncommitted: !committed });
      await consumer.connect();
      await consumer.subscribe({ topics: [topic], fromBeginning: true });
      const got = [];
      await consumer.run({ autoCommit: false, eachMessage: async ({ partition: p, message: m }) => {
        if (p === partition && Number(m.offset) >= start)
          got.push({ offset: Number(m.offset), key: m.key, value: m.value, timestamp: Number(m.timestamp),
            headers: Object.entries(m.headers ?? {}) });
      } });
      if (start) consumer.seek({ topic, partition, offset: String(start) });
      try {
        await until(`${n} records`, () => got.length >= n);
      } finally {
        await consumer.disconnect();
      }
      return start ? got.slice(0, n) : got;
    },
    async bounds(topic, partition) {
      const found = (await admin.fetchTopicOffsets(topic)).find(p => p.partition === partition);
      return [Number(found.low), Number(found.high)];
    },
    async byTime(topic, partition, ms) {
      const found = (await admin.fetchTopicOffsetsByTimestamp(topic, ms)).find(p => p.partition === partition);
      const [, end] = await this.bounds(topic, partition);
      return Number(found.offset) === end ? null : Number(found.offset); // it says the end if nothing is as late
    },
    async transactional(transactionalId) {
      const producer = kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1,
        createPartitioner: Partitioners.DefaultPartitioner });
      let t;
      await producer.connect(); // takes the id
      return {
        producer,
        begin: async () => { t = await producer.transaction(); },
        send: (topic, partition, values) => t.send({ topic, acks: -1, messages: values.map(value => ({ value, partition })) }),
        sendOffsets: offsets => t.sendOffsets(offsets),
        end: commit => (commit ? t.commit() : t.abort()),
        close: () => producer.disconnect(),
      };
    },
    checks(topic) {
      return { ...adminChecks(this, kafka, admin, broker, topic), 'transactions-copy': () => copy(this, kafka, topic) };
    },
  };
}

// Reads one topic in a group, writes another, and its offsets: each record once, whatever is aborted.
async function copy(a, kafka, topic) {
  const from = topic('transactions-from'), to = topic('transactions-to'), want = [...Array(300).keys()].map(i => 'v' + i);
  await a.create(from, 3);
  await a.create(to, 3);
  for (const partition of [0, 1, 2])
    await a.send(from, want.filter((_, i) => i % 3 === partition).map(value => ({ value, partition })), {});
  const p = await a.transactional(to), c = kafka.consumer({ groupId: to, maxWaitTimeInMs: 100, maxBytesPerPartition: 500 });
  let done = 0, round = 0, failed;
  await c.connect();
  await c.subscribe({ topics: [from], fromBeginning: true });
  await c.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: async ({ batch, resolveOffset }) => {
    try {
      const { partition, messages } = batch;
      await p.begin();
      await p.send(to, partition, messages.map(m => m.value));
      const offset = String(Number(batch.lastOffset()) + 1);
      await p.sendOffsets({ consumerGroupId: to, topics: [{ topic: from, partitions: [{ partition, offset }] }] });
      const commit = ++round % 3 !== 0;
      await p.end(commit);
      if (commit) {
        done += messages.length;
        resolveOffset(batch.lastOffset());
      } else {
        c.seek({ topic: from, partition, offset: messages[0].offset });
      }
    } catch (e) {
      failed ??= e;
      throw e;
    }
  } });
  try {
    await until('all are copied', () => { if (failed) throw failed; return done >= want.length; });
  } finally {
    await c.disconnect();
    await p.close();
  }
  const got = [];
  for (const partition of [0, 1, 2])
    got.push(...(await a.read(to, partition, want.length / 3, { committed: true })).map(r => text(r.value)));
  same(got.sort(), want.sort(), 'copied');
}

function adminChecks(a, kafka, admin, broker, topic) {
  const fill = (t, n) => a.send(t, [...Array(n).keys()].map(i => ({ value: Buffer.from('v' + i), partition: 0 })), {});
  const config = async (type, name, ...configNames) => {
    const found = await admin.describeConfigs({ includeSynonyms: true,
      resources: [{ type, name, configNames: configNames.length ? configNames : undefined }] });
    return Object.fromEntries(found.resources[0].configEntries.map(e => [e.configName, e.configValue]));
  };
  return {
    async 'admin-topics'() {
      const t = topic('admin-topic');
      await a.create(t, 3, { 'retention.ms': '123456' });
      same(await admin.createTopics({ topics: [{ topic: t }] }), false, 'created again');
      await fails(() => a.create('bad name'), 'INVALID_TOPIC');
      await fails(() => a.create(t + '-x', 1, { 'retention.ms': 'soon' }), 'INVALID_CONFIG');
      await admin.createTopics({ validateOnly: true, waitForLeaders: false, topics: [{ topic: t + '-dry', numPartitions: 1 }] });
      const names = await admin.listTopics();
      same([names.includes(t), names.includes(t + '-dry')], [true, false], 'topics listed');
      const { topics } = await admin.fetchTopicMetadata({ topics: [t] });
      same(topics[0].partitions.map(p => [p.partitionId, p.leader]).sort(), [[0, 0], [1, 0], [2, 0]], 'partitions');
      await admin.deleteTopics({ topics: [t] });
      await until('the topic is gone', async () => !(await admin.listTopics()).includes(t));
    },
    async 'admin-partitions'() {
      const t = topic('admin-partitions');
      await a.create(t, 2);
      await admin.createPartitions({ topicPartitions: [{ topic: t, count: 5 }] });
      await until('five partitions', async () =>
        (await admin.fetchTopicMetadata({ topics: [t] })).topics[0].partitions.length === 5);
      await fails(() => admin.createPartitions({ topicPartitions: [{ topic: t, count: 3 }] }), 'INVALID_PARTITIONS');
    },
    async 'admin-configs'() {
      const t = topic('admin-configs');
      await a.create(t);
      same(await config(ConfigResourceTypes.TOPIC, t, 'retention.ms'), { 'retention.ms': '604800000' }, 'setting');
      const all = await config(ConfigResourceTypes.BROKER, '0');
      same(Object.keys(all).length > 200, true, 'broker settings');
    },
    async 'admin-configs-legacy'() {
      const t = topic('admin-configs-legacy');
      await a.create(t);
      const alter = (...configEntries) => admin.alterConfigs({ validateOnly: false,
        resources: [{ type: ConfigResourceTypes.TOPIC, name: t, configEntries }] });
      await alter({ name: 'retention.ms', value: '5000' }, { name: 'segment.bytes', value: '1048576' });
      await alter({ name: 'retention.ms', value: '6000' });
      same(await config(ConfigResourceTypes.TOPIC, t, 'retention.ms', 'segment.bytes'),
        { 'retention.ms': '6000', 'segment.bytes': '1073741824' }, 'settings');
    },
    async 'admin-delete-records'() {
      const t = topic('admin-delete-records');
      await a.create(t);
      await fill(t, 10);
      same(await a.bounds(t, 0), [0, 10], 'bounds'); // now it knows the topic's leader, too
      await admin.deleteTopicRecords({ topic: t, partitions: [{ partition: 0, offset: '4' }] });
      same(await a.bounds(t, 0), [4, 10], 'bounds');
      await fails(() => admin.deleteTopicRecords({ topic: t, partitions: [{ partition: 0, offset: '11' }] }), 'OFFSET_OUT_OF_RANGE');
    },
    async 'admin-cluster'() {
      const d = await admin.describeCluster();
      same([d.controller, d.clusterId.length, d.brokers.map(b => `${b.host}:${b.port}`)], [0, 22, [broker]], 'cluster');
    },
    async 'admin-reassignments'() {
      same((await admin.listPartitionReassignments({})).topics, [], 'reassignments');
    },
    async 'admin-acls'() {
      // a topic that everybody may use but for writing; then it may be written again
      const t = topic('admin-acls'), one = { resourceType: 2, resourceName: t, resourcePatternType: 3, principal: 'User:ANONYMOUS', host: '*' };
      const filter = { resourceType: 2, resourceName: t, resourcePatternType: 1, operation: 1, permissionType: 1 };
      const count = async () => (await admin.describeAcls(filter)).resources.flatMap(r => r.acls).length;
      await a.create(t);
      await admin.createAcls({ acl: [{ ...one, operation: 2, permissionType: 3 }, { ...one, operation: 4, permissionType: 2 }] });
      same(await count(), 2, 'ACLs');
      await fails(() => fill(t, 1), 'TOPIC_AUTHORIZATION_FAILED');
      const { filterResponses } = await admin.deleteAcls({ filters: [filter] });
      same(filterResponses.map(r => r.matchingAcls.length), [2], 'deleted');
      same(await count(), 0, 'left');
      await fill(t, 1);
    },
    async 'admin-groups'() {
      const t = topic('admin-groups'), groupId = topic('group');
      await a.create(t, 2);
      await fill(t, 10);
      const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 100 });
      await consumer.connect();
      await consumer.subscribe({ topics: [t], fromBeginning: true });
      let read = 0;
      await consumer.run({ autoCommit: false, eachMessage: async () => { read++; } });
      await until('ten records', () => read === 10);
      const { groups } = await admin.describeGroups([groupId]);
      same([groups[0].state, groups[0].protocolType, groups[0].members.length], ['Stable', 'consumer', 1], 'description');
      await fails(() => admin.deleteGroups([groupId]), 'KafkaJSDeleteGroupsError', 'NON_EMPTY_GROUP');
      await consumer.disconnect();
      same((await admin.listGroups()).groups.some(g => g.groupId === groupId), true, 'listed');
      await admin.setOffsets({ groupId, topic: t, partitions: [{ partition: 0, offset: '7' }] });
      const [found] = await admin.fetchOffsets({ groupId, topics: [t] });
      same(found.partitions.find(p => p.partition === 0).offset, '7', 'committed');
      await admin.deleteGroups([groupId]);
      same((await admin.listGroups()).groups.some(g => g.groupId === groupId), false, 'listed after the delete');
    },
  };
}

// kafkajs has no assigner of a name that other clients know: partitions by turns under the name of the range assignor.
const range = ({ cluster }) => ({
  name: 'range',
  version: 0,
  async assign({ members, topics }) {
    const plan = Object.fromEntries(members.map(m => [m.memberId, {}]));
    const order = members.map(m => m.memberId).sort();
    for (const topic of topics)
      cluster.findTopicPartitionMetadata(topic).map(p => p.partitionId).sort((x, y) => x - y).forEach((p, i) =>
        (plan[order[i % order.length]][topic] ??= []).push(p));
    return order.map(memberId => ({ memberId,
      memberAssignment: AssignerProtocol.MemberAssignment.encode({ version: 0, assignment: plan[memberId], userData: Buffer.alloc(0) }) }));
  },
  protocol({ topics }) {
    return { name: 'range', metadata: AssignerProtocol.MemberMetadata.encode({ version: 0, topics, userData: Buffer.alloc(0) }) };
  },
});

async function member(broker, args) {
  const consumer = client(broker).consumer({ groupId: args.group, sessionTimeout: Number(args.session),
    rebalanceTimeout: Number(args.session), heartbeatInterval: Number(args.heartbeat), metadataMaxAge: 500, maxWaitTimeInMs: 100,
    partitionAssigners: [range], retry: { initialRetryTime: 100, maxRetryTime: 500, retries: 30 } });
  const positions = new Map();
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) =>
    assigned(Object.entries(payload.memberAssignment).flatMap(([t, parts]) => parts.map(p => [t, p]))));
  consumer.on(consumer.events.REBALANCING, () => assigned([]));
  await consumer.connect();
  await consumer.subscribe({ topics: args.topics.split(','), fromBeginning: true });
  await consumer.run({ autoCommit: args.autocommit === 'true', autoCommitInterval: 100,
    eachMessage: async ({ topic, partition, message }) => {
      say(`RECORD ${topic} ${partition} ${message.offset} ${text(message.value)}`);
      positions.set(`${topic}:${partition}`, { topic, partition, offset: String(Number(message.offset) + 1) });
    } });
  commands(async command => {
    if (command === 'commit') {
      await consumer.commitOffsets([...positions.values()]);
      say('COMMITTED');
    } else if (command === 'close') {
      await consumer.disconnect();
      say('CLOSED');
      process.exit(0);
    }
  });
}

await main(open, member);
