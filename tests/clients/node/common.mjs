// common.mjs - what the clients of node share: the frame of the program that driver.py runs, and the checks of records,
// over an adapter that each client fills in:
//
//   create(topic, partitions, configs)          send(topic, records, {codec, acks, idempotent}) -> [{partition, offset}]
//   read(topic, partition, n, {start, fetch, committed})   bounds(topic, partition) -> [first, end]
//   byTime(topic, partition, ms) -> offset or null          tooLarge(error)
//
// and, with transactions, transactional(id) -> {begin(), send(topic, partition, values), end(commit), close()}, a producer that
// has taken the id.
//
// Records: {key, value, headers: [[name, Buffer]], timestamp, partition}; Buffers or null; offsets are numbers.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import readline from 'node:readline';
import { isDeepStrictEqual } from 'node:util';

export class Skip extends Error {}

export const text = b => (b === null || b === undefined ? null : Buffer.from(b).toString());
export const sleep = ms => new Promise(done => setTimeout(done, ms));

export function same(got, want, what) {
  if (!isDeepStrictEqual(got, want))
    throw new Error(`${what}: got ${String(JSON.stringify(got)).slice(0, 300)}, want ${String(JSON.stringify(want)).slice(0, 300)}`);
}

export async function until(what, question) {
  for (const end = Date.now() + 30000; Date.now() < end; await sleep(20))
    if (await question()) return;
  throw new Error('not within 30 s: ' + what);
}

// The call fails with an error that says one of the words.
export async function fails(call, ...words) {
  try {
    await call();
  } catch (e) {
    const says = errorText(e);
    assert(words.some(w => says.includes(w)), `want ${words.join(' or ')}, got ${says}`);
    return;
  }
  throw new Error(`want ${words.join(' or ')}, but it was done`);
}

export function errorText(e) {
  const inner = [e.cause, ...(e.errors ?? []), ...(e.partitions ?? []).map(p => p.error)].filter(Boolean).map(errorText);
  return [e.name, e.type, e.apiId, e.message, ...inner].filter(Boolean).join(' ').replaceAll('\n', ' ');
}

function recordChecks(a, topic, lines) {
  const sendValues = (t, values, options = {}) =>
    a.send(t, values.map(value => ({ key: Buffer.from('k'), value, partition: 0 })), options);

  async function readAll(t, n, partition = 0, options = {}) {
    same(await a.bounds(t, partition), [0, n], 'first and end offset');
    const got = n ? await a.read(t, partition, n, options) : [];
    same(got.map(r => r.offset), [...Array(n).keys()], 'offsets');
    return got;
  }

  async function wantValues(t, values, options = {}) {
    const got = await readAll(t, values.length, 0, options);
    got.forEach((r, i) => assert(r.value.equals(values[i]), `value ${i} is another`));
  }

  async function sendAndRead(t, values, options = {}, reading = {}) {
    const sent = await sendValues(t, values, options);
    same(sent.map(s => s.offset), [...values.keys()], 'offsets answered');
    await wantValues(t, values, reading);
  }

  const checks = {
    async roundtrip() {
      const t = topic('roundtrip'), ms = 1600000000000, b = s => Buffer.from(s);
      await a.create(t);
      const cases = [
        { key: b('k'), value: b('v'), headers: [['h', b('1')], ['i', b('2')]], timestamp: ms },
        { key: null, value: b('v'), headers: [], timestamp: ms + 1 },
        { key: b('k'), value: null, headers: [], timestamp: ms + 2 },
        { key: b('x'), value: b(''), headers: [], timestamp: ms + 3 },
        { key: null, value: b('late'), headers: [['\u00fc', b('')]], timestamp: ms - 5 }];
      for (const r of cases) await a.send(t, [{ ...r, partition: 0 }], {});
      const plain = r => [text(r.key), text(r.value), r.headers.map(([k, v]) => [k, text(v)]), r.timestamp];
      same((await readAll(t, cases.length)).map(plain), cases.map(plain), 'records');
    },
    async acks() {
      const t = topic('acks'), values = [];
      await a.create(t);
      for (const acks of [0, 1, -1]) {
        values.push(Buffer.from('acks ' + acks));
        await sendValues(t, values.slice(-1), { acks });
        await until('the record is there', async () => (await a.bounds(t, 0))[1] === values.length);
      }
      await wantValues(t, values);
    },
    async idempotence() {
      const t = topic('idempotence'), all = [];
      await a.create(t);
      for (let life = 0; life < 2; life++) {
        const part = [...Array(2000).keys()].map(i => Buffer.from(`${life}-${i}`));
        const sent = await sendValues(t, part, { idempotent: true });
        same(sent.map(s => s.offset), part.map((_, i) => all.length + i), 'offsets answered');
        all.push(...part);
      }
      await wantValues(t, all);
    },
    async 'keyed-partitions'() {
      const t = topic('keyed'), homes = new Map();
      await a.create(t, 5);
      const sent = await a.send(t, [...Array(1000).keys()].map(i =>
        ({ key: Buffer.from('key' + (i % 50)), value: Buffer.from(String(i)) })), {});
      for (let p = 0; p < 5; p++) {
        const last = new Map();
        for (const r of await readAll(t, sent.filter(s => s.partition === p).length, p)) {
          assert(Number(text(r.value)) > (last.get(text(r.key)) ?? -1), "order of a key's records");
          last.set(text(r.key), Number(text(r.value)));
        }
        for (const key of last.keys()) {
          assert(!homes.has(key), key + ' is in two partitions');
          homes.set(key, p);
        }
      }
      same([homes.size, new Set(homes.values()).size], [50, 5], 'keys and partitions');
    },
    async 'large-records'() {
      const t = topic('large'), values = [1000000, 3500000, 1, 4000000].map((n, i) =>
        Buffer.from(Uint8Array.from({ length: n }, (_, j) => (j * (i + 7) * 2654435761) >>> 13)));
      await a.create(t);
      for (const v of values) await sendValues(t, [v]);
      await wantValues(t, values);
    },
    async 'too-large-record'() {
      const t = topic('too-large');
      await a.create(t);
      await fails(() => sendValues(t, [Buffer.alloc(5000000)]), 'MESSAGE_TOO_LARGE');
      same((await sendValues(t, [Buffer.from('small')]))[0].offset, 0, 'offset behind it');
    },
    async 'offsets-by-time'() {
      const t = topic('times'), ms = 1600000000000;
      await a.create(t);
      for (let i = 0; i < 10; i++) await a.send(t, [{ value: Buffer.from('x'), timestamp: ms + 1000 * i, partition: 0 }], {});
      same(await a.bounds(t, 0), [0, 10], 'bounds');
      same(await a.byTime(t, 0, ms + 3500), 4, 'offset by time');
      same(await a.byTime(t, 0, ms), 0, 'offset by time');
      same(await a.byTime(t, 0, ms + 1e10), null, 'nothing is as late');
      same((await a.read(t, 0, 1, { start: 7 }))[0].offset, 7, 'offset after a seek');
    },
    async 'log-append-time'() {
      const t = topic('append-time');
      await a.create(t, 1, { 'message.timestamp.type': 'LogAppendTime' });
      await a.send(t, [{ value: Buffer.from('x'), timestamp: 1000, partition: 0 }], {});
      const [r] = await readAll(t, 1);
      assert(r.timestamp > 1600000000000, "the broker's time, not " + r.timestamp);
    },
    async 'many-batches'() {
      const t = topic('many'), values = [...Array(20000).keys()].map(i => Buffer.from('value number ' + i));
      await a.create(t);
      for (let i = 0; i < values.length; i += 1000) await sendValues(t, values.slice(i, i + 1000), { codec: 'gzip' });
      await wantValues(t, values, { fetch: 65536 });
    },
  };
  for (const codec of ['none', 'gzip', 'snappy', 'lz4', 'zstd'])
    checks['codec-' + codec] = async () => {
      const t = topic('codec-' + codec);
      await a.create(t);
      await sendAndRead(t, lines, { codec });
    };
  return checks;
}

// What is committed is seen, what is aborted or open is not; the second producer of an id is the one.
function transactionChecks(a, topic) {
  const want = async (t, partition, values, what, options = {}) =>
    same((await a.read(t, partition, values.length, options)).map(r => text(r.value)), values, what);
  return {
    async transactions() {
      const t = topic('transactions'), committed = [], all = [];
      await a.create(t, 2);
      const p = await a.transactional(t);
      for (let i = 0; i < 12; i++) {
        const part = ['a' + i, 'b' + i, 'c' + i], commit = i % 4 !== 3;
        await p.begin();
        for (const partition of [0, 1]) await p.send(t, partition, part);
        await p.end(commit);
        if (commit) committed.push(...part);
        all.push(...part);
      }
      await p.begin();
      await p.send(t, 0, ['open']);
      await want(t, 0, committed, 'while one is open', { committed: true });
      const second = await a.transactional(t);
      await second.begin();
      await fails(async () => {
        await p.send(t, 1, ['late']);
        await p.end(true);
      }, 'PRODUCER_FENCED', 'INVALID_PRODUCER_EPOCH');
      // The last record tells that there is none in front of it that should not be.
      for (const partition of [0, 1]) await second.send(t, partition, ['end']);
      await second.end(true);
      for (const partition of [0, 1]) {
        await want(t, partition, [...committed, 'end'], 'committed', { committed: true });
        await want(t, partition, [...all, ...(partition === 0 ? ['open'] : []), 'end'], 'all');
      }
      await p.close();
      await second.close();
    },
  };
}

export const say = line => fs.writeSync(1, line + '\n');

export function commands(handle) {
  const lines = readline.createInterface({ input: process.stdin });
  let closed = false;
  const once = command => {
    if (!closed) handle(command);
    closed ||= command === 'close';
  };
  lines.on('line', line => once(line.trim()));
  lines.on('close', () => once('close'));
}

let lastAssigned;
export function assigned(parts) {
  const now = parts.map(([t, p]) => `${t}:${p}`).sort().join(',');
  if (now !== lastAssigned) say('ASSIGNED ' + now);
  lastAssigned = now;
}

// open(broker) -> adapter, with checks(topic) -> {name: check} of its own; member(broker, args)
export async function main(open, member) {
  const [mode, broker, ...rest] = process.argv.slice(2);
  if (mode === 'member') {
    await member(broker, Object.fromEntries(rest.map(w => [w.slice(0, w.indexOf('=')), w.slice(w.indexOf('=') + 1)])));
    return;
  }
  const [prefix, file, ...names] = rest;
  const lines = fs.readFileSync(file).toString('latin1').replace(/\n$/, '').split('\n').map(l => Buffer.from(l, 'latin1'));
  const topic = stem => `${prefix}-${stem}`;
  const adapter = await open(broker);
  const checks = { ...recordChecks(adapter, topic, lines), ...transactionChecks(adapter, topic), ...adapter.checks(topic) };
  let status = 0;
  for (const name of names) {
    try {
      assert(checks[name], 'this program has no such check');
      await checks[name]();
      say('ok ' + name);
    } catch (e) {
      if (e instanceof Skip) {
        say(`skip ${name}: ${e.message}`);
        continue;
      }
      console.error(e);
      say(`not ok ${name}: ${errorText(e)}`);
      status = 1;
    }
  }
  process.exit(status);
}
