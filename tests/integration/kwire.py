"""kwire.py - Kafka's wire for the tests: messages of every version by the project's schemas, record batches, and
a connection that sends raw frames. Standard library only.

    c = Conn(port)
    answer = c.call("Fetch", 11, max_wait_ms=0, topics=[...])    # dicts in, dicts out
    c.send_frame(b"...")                                         # bytes that no client would send
"""
import os
import socket
import struct
import sys
import time
import zlib

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(PROJECT, "src/protocol/gen"))
import msg_schema  # noqa: E402

MESSAGES = os.path.join(PROJECT, "src/protocol/messages")
INTS = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q", "float64": ">d"}


# ---- primitives ----

def uvarint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def varint(n):
    return uvarint((n << 1) ^ (n >> 63) if n < 0 else n << 1)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n < 0 or self.at + n > len(self.data):
            raise EOFError("%d bytes wanted, %d left" % (n, len(self.data) - self.at))
        self.at += n
        return self.data[self.at - n:self.at]

    def unpack(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def uvarint(self):
        n = shift = 0
        while True:
            b = self.take(1)[0]
            n |= (b & 0x7F) << shift
            if b < 0x80:
                return n
            shift += 7

    def varint(self):
        n = self.uvarint()
        return (n >> 1) ^ -(n & 1)


# ---- messages ----

def load():
    found, keys = {}, {}
    for name in sorted(os.listdir(MESSAGES)):
        if name.endswith(".msg"):
            for message in msg_schema.parse_file(os.path.join(MESSAGES, name)):
                found[message.name] = message
                if message.api_key >= 0 and message.name.endswith("Request"):
                    keys[message.name[:-len("Request")]] = message.api_key
    return found, keys


SCHEMAS, API_KEYS = load()


def default_of(field):
    if field.default == "null":
        return None
    if field.is_array:
        return []
    if field.struct:
        return {}
    if field.base in INTS:
        return int(field.default or 0)
    return {"bool": field.default == "true", "string": "", "bytes": b"", "records": None, "uuid": bytes(16)}[field.base]


def put_length(n, compact, short=False):
    if compact:
        return uvarint(n + 1)
    return struct.pack(">h" if short else ">i", n)


def encode_value(field, base, version, flexible, value):
    compact = flexible and not field.plain
    if base in INTS:
        return struct.pack(INTS[base], value)
    if base == "bool":
        return b"\1" if value else b"\0"
    if base == "uuid":
        return value
    if base in ("string", "bytes", "records"):
        if value is None:
            return put_length(-1, compact, base == "string")
        raw = value.encode() if isinstance(value, str) else value
        return put_length(len(raw), compact, base == "string") + raw
    if value is None:
        return b"\xff"
    return (b"\1" if version in field.nullable and not field.is_array else b"") + \
        encode_struct(field.struct, version, flexible, value)


def encode_field(field, version, flexible, value):
    if not field.is_array:
        return encode_value(field, field.base, version, flexible, value)
    if value is None:
        return put_length(-1, flexible)
    return put_length(len(value), flexible) + \
        b"".join(encode_value(field, field.base, version, flexible, v) for v in value)


def encode_struct(struct_, version, flexible, values):
    unknown = set(values) - {f.name for f in struct_.fields}
    if unknown:
        raise KeyError("no field %s" % unknown)
    out, tags = [], []
    for f in struct_.fields:
        if version not in f.versions:
            continue
        value = values.get(f.name, default_of(f))
        if f.tag is None:
            out.append(encode_field(f, version, flexible, value))
        elif value != default_of(f):
            tags.append((f.tag, encode_field(f, version, flexible, value)))
    if flexible:
        out.append(uvarint(len(tags)))
        for tag, raw in sorted(tags):
            out.append(uvarint(tag) + uvarint(len(raw)) + raw)
    return b"".join(out)


def get_length(r, compact, short=False):
    return r.uvarint() - 1 if compact else r.unpack(">h" if short else ">i")


def decode_value(field, base, version, flexible, r):
    compact = flexible and not field.plain
    if base in INTS:
        return r.unpack(INTS[base])
    if base == "bool":
        return r.take(1) != b"\0"
    if base == "uuid":
        return r.take(16)
    if base in ("string", "bytes", "records"):
        n = get_length(r, compact, base == "string")
        if n < 0:
            return None
        raw = r.take(n)
        return raw.decode() if base == "string" else raw
    if version in field.nullable and not field.is_array and r.unpack(">b") < 0:
        return None
    return decode_struct(field.struct, version, flexible, r)


def decode_field(field, version, flexible, r):
    if not field.is_array:
        return decode_value(field, field.base, version, flexible, r)
    n = get_length(r, flexible)
    return None if n < 0 else [decode_value(field, field.base, version, flexible, r) for _ in range(n)]


def defaults(struct_, version):
    out = {}
    for f in struct_.fields:
        if version in f.versions:
            value = default_of(f)
            out[f.name] = defaults(f.struct, version) if f.struct and value == {} else value
    return out


def decode_struct(struct_, version, flexible, r):
    out = defaults(struct_, version)
    tagged = {f.tag: f for f in struct_.fields if f.tag is not None and version in f.versions}
    for f in struct_.fields:
        if version in f.versions and f.tag is None:
            out[f.name] = decode_field(f, version, flexible, r)
    if flexible:
        for _ in range(r.uvarint()):
            tag, size = r.uvarint(), r.uvarint()
            raw = Reader(r.take(size))
            if tag in tagged:
                out[tagged[tag].name] = decode_field(tagged[tag], version, flexible, raw)
    return out


def encode(name, version, values):
    m = SCHEMAS[name]
    return encode_struct(m.body, version, version >= m.flexible_from, values)


def decode(name, version, data):
    m, r = SCHEMAS[name], Reader(data)
    out = decode_struct(m.body, version, version >= m.flexible_from, r)
    if r.at != len(data):
        raise ValueError("%d bytes behind a %s v%d" % (len(data) - r.at, name, version))
    return out


def request_frame(api, version, correlation_id, values, client_id="kwire"):
    m = SCHEMAS[api + "Request"]
    head = struct.pack(">hhi", m.api_key, version, correlation_id)
    if not (api == "ControlledShutdown" and version == 0):
        head += struct.pack(">h", len(client_id)) + client_id.encode()
    if version >= m.flexible_from:
        head += b"\0"
    return head + encode(api + "Request", version, values)


def response_of(api, version, frame):
    r = Reader(frame)
    correlation_id = r.unpack(">i")
    if version >= SCHEMAS[api + "Response"].flexible_from and api != "ApiVersions":
        assert r.uvarint() == 0
    return correlation_id, decode(api + "Response", version, frame[r.at:])


# ---- connection ----

class Closed(Exception):
    pass


class Conn:
    def __init__(self, port, host="127.0.0.1", timeout=30, client_id="kwire"):
        self.sock = socket.create_connection((host, port), timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id, self.next_id = client_id, 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send_frame(self, frame):
        self.sock.sendall(struct.pack(">i", len(frame)) + frame)

    def send(self, api, version, **values):
        correlation_id, self.next_id = self.next_id, self.next_id + 1
        self.send_frame(request_frame(api, version, correlation_id, values, self.client_id))
        return correlation_id

    def read(self, n):
        out = bytearray()
        while len(out) < n:
            try:
                piece = self.sock.recv(min(n - len(out), 1 << 20))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise Closed("closed after %d of %d bytes" % (len(out), n))
            out += piece
        return bytes(out)

    def read_frame(self):
        return self.read(struct.unpack(">i", self.read(4))[0])

    def receive(self, api, version, correlation_id):
        got, values = response_of(api, version, self.read_frame())
        assert got == correlation_id, "answer %d to request %d" % (got, correlation_id)
        return values

    def call(self, api, version, **values):
        return self.receive(api, version, self.send(api, version, **values))

    def is_closed(self):
        """Waits for the peer to close; fails when it says something instead."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True


# ---- usual requests ----

def create_topic(conn, name, partitions=1, configs=None):
    """Makes the topic and returns its id; every partition has its leader then. One of that name that is still
    being deleted is waited for."""
    end = time.monotonic() + 30
    while True:
        answer = conn.call("CreateTopics", 7, timeout_ms=30000, topics=[
            {"name": name, "num_partitions": partitions, "replication_factor": 1,
             "configs": [{"name": k, "value": str(v)} for k, v in (configs or {}).items()]}])["topics"][0]
        if answer["error_code"] != 36 or time.monotonic() > end:
            assert answer["error_code"] == 0, answer
            return answer["topic_id"]
        time.sleep(0.01)


def produce_request(parts, acks=-1, timeout_ms=30000):
    """parts: [(topic, partition, records)]"""
    return {"acks": acks, "timeout_ms": timeout_ms,
            "topic_data": [{"name": t, "partition_data": [{"index": p, "records": r}]} for t, p, r in parts]}


def produce(conn, version, parts, **options):
    """The partitions' answers, in order."""
    answer = conn.call("Produce", version, **produce_request(parts, **options))
    return [p for t in answer["responses"] for p in t["partition_responses"]]


def produce_one(conn, topic, partition, data, version=9, **options):
    """Base offset of records that must be taken."""
    answer = produce(conn, version, [(topic, partition, data)], **options)[0]
    assert answer["error_code"] == 0, answer
    return answer["base_offset"]


def fetch_request(version, parts, max_wait_ms=0, min_bytes=1, **more):
    """parts: [(topic name or id, partition, offset[, {further fields}])]"""
    topics = []
    for topic, partition, offset, *rest in parts:
        fields = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        fields.update(rest[0] if rest else {})
        topics.append({"topic_id" if version >= 13 else "topic": topic, "partitions": [fields]})
    values = {"max_wait_ms": max_wait_ms, "min_bytes": min_bytes, "topics": topics}
    if 7 <= version:
        values["session_epoch"] = -1
    values.update(more)
    return values


def fetched(answer):
    """The partitions of a Fetch answer as [(topic, partition, answer)]."""
    return [(t.get("topic", t.get("topic_id")), p["partition_index"], p)
            for t in answer["responses"] for p in t["partitions"]]


def fetch(conn, version, parts, **options):
    return fetched(conn.call("Fetch", version, **fetch_request(version, parts, **options)))


def list_offset(conn, version, topic, partition, timestamp, **fields):
    """The partition's answer of ListOffsets."""
    asked = {"partition_index": partition, "timestamp": timestamp}
    asked.update(fields)
    answer = conn.call("ListOffsets", version, replica_id=-1,
                       topics=[{"name": topic, "partitions": [asked]}])
    return answer["topics"][0]["partitions"][0]


# ---- records ----

CRC32C = []
for _n in range(256):
    for _ in range(8):
        _n = _n >> 1 ^ (0x82F63B78 if _n & 1 else 0)
    CRC32C.append(_n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc = crc >> 8 ^ CRC32C[(crc ^ b) & 0xFF]
    return crc ^ 0xFFFFFFFF


def gzip_(data):
    z = zlib.compressobj(6, zlib.DEFLATED, 31)
    return z.compress(data) + z.flush()


def record_v2(i, timestamp_delta, key, value, headers=()):
    body = b"\0" + varint(timestamp_delta) + varint(i)
    for part in (key, value):
        body += varint(-1) if part is None else varint(len(part)) + part
    body += varint(len(headers))
    for name, v in headers:
        body += varint(len(name)) + name.encode() + (varint(-1) if v is None else varint(len(v)) + v)
    return varint(len(body)) + body


def batch(records, codec=0, attributes=0, producer_id=-1, producer_epoch=-1, sequence=-1, count=None,
          last_delta=None, base_offset=0, magic=2, good_crc=True):
    """A v2 batch of (timestamp, key, value[, headers]); lies on demand."""
    base = records[0][0] if records else 0
    body = b"".join(record_v2(i, r[0] - base, *r[1:]) for i, r in enumerate(records))
    if codec == 1:
        body = gzip_(body)
    most = max([r[0] for r in records] or [-1])
    after = struct.pack(">hiqqqhii", attributes | codec, len(records) - 1 if last_delta is None else last_delta, base,
                        most, producer_id, producer_epoch, sequence, len(records) if count is None else count) + body
    crc = crc32c(after) ^ (0 if good_crc else 1)
    return struct.pack(">qiibI", base_offset, 9 + len(after), -1, magic, crc) + after


def simple_batch(*values, **options):
    now = int(time.time() * 1000)
    return batch([(now, None, v) for v in values], **options)


def message(offset, key, value, magic=1, timestamp=0, codec=0):
    """One message of format 0 or 1."""
    body = struct.pack(">bb", magic, codec) + (struct.pack(">q", timestamp) if magic == 1 else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def wrapper(messages, magic=1, timestamp=0):
    """A gzip message around others."""
    last = len(messages) - 1
    inner = b"".join(message(i, k, v, magic, t) for i, (t, k, v) in enumerate(messages))
    return message(last, None, gzip_(inner), magic, timestamp, codec=1)


def entries(data):
    """(offset, magic, bytes) of each whole entry of a record set."""
    at = 0
    while at + 17 <= len(data):
        offset, length = struct.unpack_from(">qi", data, at)
        if at + 12 + length > len(data):
            return
        yield offset, data[at + 16], data[at:at + 12 + length]
        at += 12 + length


def records(data):
    """(offset, timestamp, key, value, headers) of every record of every format; checks each CRC."""
    for offset, magic, raw in entries(data):
        yield from (records_v2(raw) if magic == 2 else records_old(offset, magic, raw))


def is_control(raw):
    return raw[16] == 2 and struct.unpack_from(">h", raw, 21)[0] & 0x20


def records_v2(raw):
    base_offset = struct.unpack_from(">q", raw)[0]
    crc, attributes, _, base, most = struct.unpack_from(">Ihiqq", raw, 17)
    count = struct.unpack_from(">i", raw, 57)[0]
    assert crc == crc32c(raw[21:])
    body = raw[61:]
    if attributes & 7 == 1:
        body = zlib.decompress(body, 47)
    r = Reader(body)
    for _ in range(count):
        r.varint(), r.take(1)
        timestamp, offset = base + r.varint(), base_offset + r.varint()
        if attributes & 8:
            timestamp = most
        key, value = (None if n < 0 else r.take(n) for n in iter_lengths(r))
        headers = []
        for _ in range(r.varint()):
            name = r.take(r.varint()).decode()
            n = r.varint()
            headers.append((name, None if n < 0 else r.take(n)))
        yield offset, timestamp, key, value, headers


def iter_lengths(r):
    yield r.varint()
    yield r.varint()


def records_old(offset, magic, raw):
    assert struct.unpack_from(">I", raw, 12)[0] == zlib.crc32(raw[16:])
    r = Reader(raw[17:])
    attributes = r.take(1)[0]
    timestamp = r.unpack(">q") if magic == 1 else -1
    parts = []
    for _ in range(2):
        n = r.unpack(">i")
        parts.append(None if n < 0 else r.take(n))
    if attributes & 7 == 0:
        yield offset, timestamp, parts[0], parts[1], []
        return
    inner = list(entries(zlib.decompress(parts[1], 47)))
    shift = offset - inner[-1][0] if magic == 1 else 0
    for o, m, one in inner:
        yield from records_old(o + shift, m, one)
