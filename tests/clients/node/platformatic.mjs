// @platformatic/kafka as driver.py wants it.
import zlib from 'node:zlib';
import { Admin, Consumer, Producer } from '@platformatic/kafka';

import { Skip, assigned, commands, errorText, fails, main, same, say, text, until } from './common.mjs';

const LATEST = -1n, EARLIEST = -2n, LARGEST = -3n, TOPIC = 2, BROKER = 4;
const base = broker => ({ clientId: 'checks', bootstrapBrokers: [broker], retries: 30, retryDelay: 100, timeout: 20000,
  metadataMaxAge: 500 });
const unless = b => (b === undefined || b === null ? null : b);

async function open(broker) {
  const admin = new Admin(base(broker));
  let groups = 0;
  const reader = () => new Consumer({ ...base(broker), groupId: 'reader-' + groups++, sessionTimeout: 10000, heartbeatInterval: 500 });
  const offsetAt = async (topic, partitionIndex, timestamp) => {
    const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions: [{ partitionIndex, timestamp }] }] });
    return Number(found.partitions[0].offset);
  };
  return {
    async create(topic, partitions = 1, configs = {}) {
      await admin.createTopics({ topics: [topic], partitions, replicas: 1,
        configs: Object.entries(configs).map(([name, value]) => ({ name, value })) });
    },
    async send(topic, records, { codec = 'none', acks = -1, idempotent = false }) {
      if (codec === 'zstd' && !zlib.zstdCompressSync) throw new Skip('this node has no Zstandard');
      const producer = new Producer(base(broker));
      try {
        const one = messages => producer.send({ acks, compression: codec, idempotent, messages: messages.map(r => ({ topic,
          key: r.key ?? undefined, value: r.value ?? undefined, partition: r.partition,
          headers: new Map((r.headers ?? []).map(([k, v]) => [Buffer.from(k), v])),
          timestamp: r.timestamp === undefined ? undefined : BigInt(r.timestamp) })) });
        const sent = [];
        if (records.every(r => r.partition !== undefined)) {
          const { offsets } = await one(records);
          for (let i = 0; i < records.length; i++) sent.push({ partition: 0, offset: Number(offsets?.[0].offset) + i });
        } else {
          for (const r of records) {
            const { offsets } = await one([r]);
            sent.push({ partition: offsets[0].partition, offset: Number(offsets[0].offset) });
          }
        }
        return sent;
      } finally {
        await producer.close();
      }
    },
    async read(topic, partition, n, { start = 0, fetch = 4194304 } = {}) {
      const consumer = reader(), got = [];
      const stream = await consumer.consume({ topics: [topic], mode: 'manual', maxWaitTime: 100, maxBytesPerPartition: fetch,
        autocommit: false, offsets: await this.starts(topic, partition, start) });
      stream.on('data', m => {
        if (m.partition === partition)
          got.push({ offset: Number(m.offset), key: unless(m.key), value: unless(m.value), timestamp: Number(m.timestamp),
            headers: [...m.headers].map(([k, v]) => [text(k), v]) });
      });
      try {
        await until(`${n} records`, () => got.length >= n);
      } finally {
        await consumer.close(true);
      }
      return start ? got.slice(0, n) : got;
    },
    async starts(topic, partition, start) {
      const { topics } = await admin.metadata({ topics: [topic], forceUpdate: true });
      return topics.get(topic).partitions.map((_, p) => ({ topic, partition: p, offset: BigInt(p === partition ? start : 0) }));
    },
    async bounds(topic, partition) {
      return [await offsetAt(topic, partition, EARLIEST), await offsetAt(topic, partition, LATEST)];
    },
    async byTime(topic, partition, ms) {
      const offset = await offsetAt(topic, partition, BigInt(ms));
      return offset < 0 ? null : offset;
    },
    checks(topic) {
      return adminChecks(this, admin, broker, topic, offsetAt);
    },
  };
}

function adminChecks(a, admin, broker, topic, offsetAt) {
  const fill = (t, n) => a.send(t, [...Array(n).keys()].map(i => ({ value: Buffer.from('v' + i), partition: 0 })), {});
  const config = async (resourceType, resourceName, ...keys) => {
    const [found] = await admin.describeConfigs({ includeSynonyms: true, includeDocumentation: true,
      resources: [{ resourceType, resourceName, configurationKeys: keys.length ? keys : null }] });
    return Object.fromEntries(found.configs.map(c => [c.name, c.value]));
  };
  return {
    async 'admin-topics'() {
      const t = topic('admin-topic');
      const [made] = await admin.createTopics({ topics: [t], partitions: 3, replicas: 1,
        configs: [{ name: 'retention.ms', value: '123456' }] });
      same([made.partitions, made.configuration['retention.ms']], [3, '123456'], 'topic answered');
      await fails(() => a.create(t), 'TOPIC_ALREADY_EXISTS');
      await fails(() => a.create('bad name'), 'INVALID_TOPIC');
      await fails(() => a.create(t + '-x', 1, { 'retention.ms': 'soon' }), 'INVALID_CONFIG');
      same((await admin.listTopics()).includes(t), true, 'listed');
      await admin.deleteTopics({ topics: [t] });
      await until('the topic is gone', async () => !(await admin.listTopics()).includes(t));
      await fails(() => admin.deleteTopics({ topics: [t] }), 'UNKNOWN_TOPIC_OR_PARTITION');
    },
    async 'admin-partitions'() {
      const t = topic('admin-partitions');
      await a.create(t, 2);
      await admin.createPartitions({ topics: [{ name: t, count: 5, assignments: null }] });
      await until('five partitions', async () =>
        (await admin.metadata({ topics: [t], forceUpdate: true })).topics.get(t).partitionsCount === 5);
      await fails(() => admin.createPartitions({ topics: [{ name: t, count: 3, assignments: null }] }), 'INVALID_PARTITIONS');
    },
    async 'admin-configs'() {
      const t = topic('admin-configs'), SET = 0, DELETE = 1, APPEND = 2;
      await a.create(t);
      const alter = (configOperation, name, value) => admin.incrementalAlterConfigs({
        resources: [{ resourceType: TOPIC, resourceName: t, configs: [{ name, configOperation, value }] }] });
      await alter(SET, 'retention.ms', '5000');
      await alter(APPEND, 'cleanup.policy', 'compact');
      same(await config(TOPIC, t, 'retention.ms', 'cleanup.policy'),
        { 'retention.ms': '5000', 'cleanup.policy': 'delete,compact' }, 'settings');
      await alter(DELETE, 'retention.ms', null);
      same(await config(TOPIC, t, 'retention.ms'), { 'retention.ms': '604800000' }, 'setting');
      await fails(() => alter(SET, 'retention.ms', 'soon'), 'INVALID_REQUEST');
      same(Object.keys(await config(BROKER, '0')).length > 200, true, 'broker settings');
    },
    async 'admin-configs-legacy'() {
      const t = topic('admin-configs-legacy');
      await a.create(t);
      const alter = (...configs) => admin.alterConfigs({ resources: [{ resourceType: TOPIC, resourceName: t, configs }] });
      await alter({ name: 'retention.ms', value: '5000' }, { name: 'segment.bytes', value: '1048576' });
      await alter({ name: 'retention.ms', value: '6000' });
      same(await config(TOPIC, t, 'retention.ms', 'segment.bytes'),
        { 'retention.ms': '6000', 'segment.bytes': '1073741824' }, 'settings');
    },
    async 'admin-delete-records'() {
      const t = topic('admin-delete-records');
      await a.create(t);
      await fill(t, 10);
      const remove = offset => admin.deleteRecords({ topics: [{ name: t, partitions: [{ partition: 0, offset }] }] });
      same((await remove(4n))[0].partitions[0].lowWatermark === 4n, true, 'low watermark');
      same(await a.bounds(t, 0), [4, 10], 'bounds');
      await fails(() => remove(11n), 'OFFSET_OUT_OF_RANGE');
    },
    async 'admin-log-dirs'() {
      const t = topic('admin-log-dirs');
      await a.create(t, 2);
      await fill(t, 100);
      const [found] = await admin.describeLogDirs({ topics: [{ name: t, partitions: [0, 1] }] });
      const sizes = found.results.flatMap(d => d.topics.flatMap(x => x.partitions.map(p => [p.partitionIndex, p.partitionSize > 0n])));
      same(sizes.sort(), [[0, true], [1, false]], 'partitions with data');
    },
    async 'admin-cluster'() {
      const m = await admin.metadata({ topics: [], forceUpdate: true });
      same([m.controllerId, m.id.length, [...m.brokers.values()].map(b => `${b.host}:${b.port}`)], [0, 22, [broker]], 'cluster');
    },
    async 'admin-acls'() {
      // a topic that everybody may use but for writing; then it may be written again
      const t = topic('admin-acls'), one = { resourceType: 2, resourceName: t, resourcePatternType: 3, principal: 'User:ANONYMOUS', host: '*' };
      const filter = { resourceType: 2, resourceName: t, resourcePatternType: 1, principal: null, host: null, operation: 1, permissionType: 1 };
      const count = async () => (await admin.describeAcls({ filter })).flatMap(r => r.acls).length;
      await a.create(t);
      await admin.createAcls({ creations: [{ ...one, operation: 2, permissionType: 3 }, { ...one, operation: 4, permissionType: 2 }] });
      same(await count(), 2, 'ACLs');
      await fails(() => fill(t, 1), 'TOPIC_AUTHORIZATION_FAILED');
      same((await admin.deleteAcls({ filters: [filter] })).length, 2, 'deleted');
      same(await count(), 0, 'left');
      await fill(t, 1);
    },
    async 'admin-list-offsets'() {
      const t = topic('admin-list-offsets');
      await a.create(t);
      for (const ms of [1000, 5000, 3000]) await a.send(t, [{ value: Buffer.from('x'), timestamp: 1600000000000 + ms, partition: 0 }], {});
      const got = [];
      for (const at of [EARLIEST, LATEST, LARGEST, 1600000002000n]) got.push(await offsetAt(t, 0, at));
      same(got, [0, 3, 1, 1], 'offsets: earliest, latest, of the largest timestamp, by time');
    },
    async 'admin-quotas'() {
      const entityName = topic('client'), entities = [{ entityType: 'client-id', entityName }];
      const alter = remove => admin.alterClientQuotas({ entries: [{ entities, ops: [{ key: 'producer_byte_rate', value: 1e6, remove }] }] });
      const count = async () => (await admin.describeClientQuotas({ strict: true,
        components: [{ entityType: 'client-id', matchType: 0, match: entityName }] })).length;
      await alter(false);
      await until('a quota', async () => await count() === 1);
      await alter(true);
      await until('no quota', async () => await count() === 0);
    },
    async 'admin-groups'() {
      const t = topic('admin-groups'), groupId = topic('group');
      await a.create(t, 2);
      await fill(t, 10);
      const consumer = new Consumer({ ...base(broker), groupId, sessionTimeout: 10000, heartbeatInterval: 500 });
      let read = 0;
      const stream = await consumer.consume({ topics: [t], mode: 'earliest', autocommit: false, maxWaitTime: 100 });
      stream.on('data', () => read++);
      await until('ten records', () => read === 10);
      await consumer.commit({ offsets: [0, 1].map(partition => ({ topic: t, partition, offset: partition ? 0n : 7n, leaderEpoch: 0 })) });
      const group = (await admin.describeGroups({ groups: [groupId] })).get(groupId);
      same([String(group.state).toUpperCase(), group.members.size], ['STABLE', 1], 'description');
      await fails(() => admin.deleteGroups({ groups: [groupId] }), 'NON_EMPTY_GROUP');
      await consumer.close(true);
      same((await admin.listGroups()).has(groupId), true, 'listed');
      const committed = async () => Object.fromEntries((await admin.listConsumerGroupOffsets({ groups: [groupId] }))
        .flatMap(g => g.topics.flatMap(x => x.partitions.map(p => [p.partitionIndex, Number(p.committedOffset)]))));
      same(await committed(), { 0: 7, 1: 0 }, 'committed');
      await admin.alterConsumerGroupOffsets({ groupId, topics: [{ name: t, partitionOffsets: [{ partition: 0, offset: 3n }] }] });
      await admin.deleteConsumerGroupOffsets({ groupId, topics: [{ name: t, partitionIndexes: [1] }] });
      same(await committed(), { 0: 3 }, 'committed');
      await admin.deleteGroups({ groups: [groupId] });
      await fails(() => admin.deleteGroups({ groups: [groupId] }), 'GROUP_ID_NOT_FOUND');
    },
  };
}

async function member(broker, args) {
  const group = args.protocol === 'consumer' ? { groupProtocol: 'consumer' } : {
    groupInstanceId: args.instance, sessionTimeout: Number(args.session), rebalanceTimeout: Number(args.session),
    heartbeatInterval: Number(args.heartbeat), protocols: [{ name: 'range', version: 0 }] };
  const consumer = new Consumer({ ...base(broker), groupId: args.group, ...group });
  const positions = new Map();
  consumer.on('consumer:group:rebalance', () => assigned([]));
  const stream = await consumer.consume({ topics: args.topics.split(','), mode: 'committed', fallbackMode: 'earliest', maxWaitTime: 100,
    autocommit: args.autocommit === 'true' ? 100 : false });
  // Not at the join: until the stream has looked where to go on it may read twice, and a fetch that is on its way then
  // still brings what is not its own any more.
  let last = '', fetches = 0;
  stream.on('offsets', () => { fetches = 0; });
  stream.on('fetch', () => {
    const parts = (consumer.assignments ?? []).flatMap(x => x.partitions.map(p => [x.topic, p]));
    if (String(parts) !== last) fetches = 0;
    last = String(parts);
    if (++fetches === 2) assigned(parts);
  });
  stream.on('data', m => {
    say(`RECORD ${m.topic} ${m.partition} ${m.offset} ${text(m.value)}`);
    positions.set(`${m.topic}:${m.partition}`, { topic: m.topic, partition: m.partition, offset: m.offset + 1n, leaderEpoch: 0 });
  });
  stream.on('error', e => {
    console.error(e);
    process.exit(1);
  });
  // With KIP-848 a commit that meets a new epoch is to be sent again once the member has heard of it.
  const commit = () => until('a commit', async () => {
    try {
      await consumer.commit({ offsets: [...positions.values()] });
      return true;
    } catch (e) {
      if (!errorText(e).includes('STALE_MEMBER_EPOCH')) throw e;
      return false;
    }
  });
  commands(async command => {
    if (command === 'commit') {
      await commit();
      say('COMMITTED');
    } else if (command === 'close') {
      await stream.close();
      if (args.autocommit === 'true' && positions.size) await commit();
      await consumer.close();
      say('CLOSED');
      process.exit(0);
    }
  });
}

await main(open, member);
