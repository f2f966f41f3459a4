#!/usr/bin/env python3
"""golden_from_librdkafka.py - makes golden_librdkafka.txt: whole frames between librdkafka and its mock cluster.

    python3 golden_from_librdkafka.py > golden_librdkafka.txt       needs librdkafka.so.1 (2.0.2 was used)

Producers, transactional producers and group consumers run against librdkafka's own mock brokers, once for each
highest version that the brokers pretend to have; connections are led through a relay that writes down what it
sees. Admin requests, which the mock brokers do not know, go to a tiny broker in here that only answers what a
client needs to get as far as sending them. Lines, without the length in front of a frame:

    > HEX               a request with its header
    < KEY VERSION HEX   a response with its header
"""
import ctypes
import os
import socket
import struct
import sys
import threading
import time

rd = ctypes.CDLL("librdkafka.so.1")
libc = ctypes.CDLL(None)
PRODUCER, CONSUMER = 0, 1
TIMEOUT = 5000  # ms, for what must succeed
CONNECT_CB = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p,
                              ctypes.c_void_p)
for name in """rd_kafka_conf_new rd_kafka_new rd_kafka_handle_mock_cluster rd_kafka_mock_cluster_new
        rd_kafka_mock_cluster_bootstraps rd_kafka_topic_new rd_kafka_topic_partition_list_new rd_kafka_consumer_poll
        rd_kafka_topic_partition_list_add rd_kafka_consumer_group_metadata rd_kafka_init_transactions
        rd_kafka_begin_transaction rd_kafka_send_offsets_to_transaction rd_kafka_commit_transaction
        rd_kafka_abort_transaction rd_kafka_queue_new rd_kafka_NewTopic_new rd_kafka_DeleteTopic_new
        rd_kafka_NewPartitions_new rd_kafka_ConfigResource_new rd_kafka_DeleteRecords_new rd_kafka_DeleteGroup_new
        rd_kafka_ListConsumerGroupOffsets_new rd_kafka_DeleteConsumerGroupOffsets_new rd_kafka_AclBinding_new
        rd_kafka_AclBindingFilter_new rd_kafka_NewTopic_set_config""".split():
    getattr(rd, name).restype = ctypes.c_void_p


class Message(ctypes.Structure):  # the beginning of rd_kafka_message_t
    _fields_ = [("err", ctypes.c_int)]


class PartitionOffset(ctypes.Structure):  # rd_kafka_topic_partition_t
    _fields_ = [("topic", ctypes.c_char_p), ("partition", ctypes.c_int32), ("offset", ctypes.c_int64)]


class Frames:
    """What was seen, two of each kind at most, and small ones only."""

    def __init__(self):
        self.lock, self.lines = threading.Lock(), {}

    def add(self, kind, line):
        with self.lock:
            lines = self.lines.setdefault(kind, [])
            if len(lines) < 2 and len(line) < 2000 and line not in lines:
                lines.append(line)


class Relay:
    """Listens for one broker's port; passes frames on both ways and writes them down."""

    def __init__(self, port, frames):
        self.target, self.frames = port, frames
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client = self.listener.accept()[0]
            broker = socket.create_connection(("127.0.0.1", self.target))
            sent = {}
            threading.Thread(target=self.requests, args=(client, broker, sent), daemon=True).start()
            threading.Thread(target=self.responses, args=(broker, client, sent), daemon=True).start()

    def requests(self, client, broker, sent):
        for frame in pass_on(client, broker, lambda f: sent.__setitem__(f[4:8], struct.unpack(">hh", f[:4]))):
            self.frames.add(("request",) + struct.unpack(">hh", frame[:4]), "> " + frame.hex())

    def responses(self, broker, client, sent):
        for frame in pass_on(broker, client, lambda f: None):
            key, version = sent.pop(frame[:4])
            # The mock broker forgets the log start offset in Produce 5, and miscounts its only row when it
            # says that it does not have a version of ApiVersions.
            if (key, version) == (0, 5) or (key == 18 and frame[4:6] == b"\0\x23"):
                continue
            self.frames.add(("response", key, version), "< %d %d %s" % (key, version, frame.hex()))


def read_exactly(sock, n):
    data = b""
    while len(data) < n:
        more = sock.recv(n - len(data))
        if not more:
            return None
        data += more
    return data


def read_frame(sock):
    try:
        size = read_exactly(sock, 4)
        return read_exactly(sock, struct.unpack(">i", size)[0]) if size else None
    except OSError:
        return None


def pass_on(source, sink, before):
    while True:
        frame = read_frame(source)
        if frame is None:
            break
        before(frame)
        try:
            sink.sendall(struct.pack(">i", len(frame)) + frame)
        except OSError:
            break
        yield frame
    for sock in (source, sink):
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Relays:
    def __init__(self, frames):
        self.frames, self.by_port, self.lock = frames, {}, threading.Lock()
        self.callback = CONNECT_CB(self.connect)  # must outlive every client

    def connect(self, fd, address, length, _id, _opaque):
        family, port = struct.unpack("=H", ctypes.string_at(address, 2))[0], ctypes.string_at(address + 2, 2)
        if family != socket.AF_INET:
            return 101  # ENETUNREACH: try the next address
        with self.lock:
            target = struct.unpack(">H", port)[0]
            if target not in self.by_port:
                self.by_port[target] = Relay(target, self.frames)
        to = struct.pack("=H", family) + struct.pack(">H", self.by_port[target].port) + b"\x7f\0\0\1" + b"\0" * 8
        libc.connect(fd, to, len(to))  # still in progress when it returns
        return 0


def client(kind, relays, **settings):
    text = ctypes.create_string_buffer(512)
    conf = rd.rd_kafka_conf_new()
    rd.rd_kafka_conf_set(ctypes.c_void_p(conf), b"log_level", b"0", None, ctypes.c_size_t(0))
    for name, value in settings.items():
        name = name.replace("_", ".")
        if rd.rd_kafka_conf_set(ctypes.c_void_p(conf), name.encode(), str(value).encode(), text, 512):
            raise RuntimeError(text.value)
    if relays:
        rd.rd_kafka_conf_set_connect_cb(ctypes.c_void_p(conf), relays.callback)
    handle = rd.rd_kafka_new(kind, ctypes.c_void_p(conf), text, ctypes.c_size_t(512))
    if not handle:
        raise RuntimeError(text.value)
    return ctypes.c_void_p(handle)


def partitions(*triples):
    made = ctypes.c_void_p(rd.rd_kafka_topic_partition_list_new(4))
    for topic, partition, offset in triples:
        one = rd.rd_kafka_topic_partition_list_add(made, topic, partition)
        ctypes.cast(one, ctypes.POINTER(PartitionOffset)).contents.offset = offset
    return made


def produce(producer, n=3):
    topic = ctypes.c_void_p(rd.rd_kafka_topic_new(producer, b"topic", None))
    for i in range(n):
        value = b"value %d" % i
        rd.rd_kafka_produce(topic, -1, 2, value, ctypes.c_size_t(len(value)), b"key", ctypes.c_size_t(3), None)
    rd.rd_kafka_flush(producer, TIMEOUT)
    rd.rd_kafka_topic_destroy(topic)


def consume(consumer):
    """Joins the group and reads one message."""
    rd.rd_kafka_poll_set_consumer(consumer)
    rd.rd_kafka_subscribe(consumer, partitions((b"topic", -1, 0)))
    end = time.time() + TIMEOUT / 1000
    while time.time() < end:
        message = rd.rd_kafka_consumer_poll(consumer, 500)
        if not message:
            continue
        error = ctypes.cast(message, ctypes.POINTER(Message)).contents.err
        rd.rd_kafka_message_destroy(ctypes.c_void_p(message))
        if error == 0:
            return True
    return False


def workload(bootstrap, relays):
    common = {"bootstrap_servers": bootstrap, "socket_timeout_ms": 3000}
    plain = client(PRODUCER, relays, **common)
    produce(plain)
    low, high = ctypes.c_int64(), ctypes.c_int64()
    rd.rd_kafka_query_watermark_offsets(plain, b"topic", 0, ctypes.byref(low), ctypes.byref(high), 3000)
    consumer = client(CONSUMER, relays, group_id="group", auto_offset_reset="earliest", enable_auto_commit="false",
                      heartbeat_interval_ms=200, session_timeout_ms=6000, client_rack="rack", **common)
    if consume(consumer):
        time.sleep(0.5)  # a heartbeat
        rd.rd_kafka_commit(consumer, None, 0)
        rd.rd_kafka_committed(consumer, partitions((b"topic", 0, 0)), 3000)
        transaction(relays, common, consumer)
    rd.rd_kafka_consumer_close(consumer)
    rd.rd_kafka_destroy(consumer)
    rd.rd_kafka_destroy(plain)


def transaction(relays, common, consumer):
    producer = client(PRODUCER, relays, transactional_id="transaction", **common)
    if not rd.rd_kafka_init_transactions(producer, 3000):
        rd.rd_kafka_begin_transaction(producer)
        produce(producer)
        metadata = ctypes.c_void_p(rd.rd_kafka_consumer_group_metadata(consumer))
        rd.rd_kafka_send_offsets_to_transaction(producer, partitions((b"topic", 0, 1)), metadata, 3000)
        rd.rd_kafka_commit_transaction(producer, 3000)
        rd.rd_kafka_begin_transaction(producer)
        produce(producer)
        rd.rd_kafka_abort_transaction(producer, 3000)
    rd.rd_kafka_destroy(producer)


# Highest versions of the mock brokers of 2.0.2.
MOCK = {0: 7, 1: 11, 2: 5, 3: 2, 8: 7, 9: 5, 10: 2, 11: 5, 12: 3, 13: 1, 14: 3, 22: 4, 24: 0, 25: 0, 26: 1, 28: 3}


def against_mock_brokers(frames):
    for highest in range(max(MOCK.values()) + 1):
        host = client(PRODUCER, None)
        cluster = ctypes.c_void_p(rd.rd_kafka_mock_cluster_new(host, 1))
        rd.rd_kafka_mock_topic_create(cluster, b"topic", 2, 1)
        bootstrap = ctypes.string_at(rd.rd_kafka_mock_cluster_bootstraps(cluster)).decode()
        for key, limit in MOCK.items():
            rd.rd_kafka_mock_set_apiversion(cluster, ctypes.c_int16(key), ctypes.c_int16(0),
                                            ctypes.c_int16(min(limit, highest)))
        workload(bootstrap, Relays(frames))
        rd.rd_kafka_mock_cluster_destroy(cluster)
        rd.rd_kafka_destroy(host)


class TinyBroker:
    """Offers every API, and answers what leads up to an admin request."""

    OFFER = {3: (0, 1), 10: (0, 0), 17: (0, 1), 36: (0, 1)}

    def __init__(self, frames):
        self.frames = frames
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, sock):
        while True:
            frame = read_frame(sock)
            if frame is None:
                return
            key, version, correlation = struct.unpack(">hhi", frame[:8])
            self.frames.add(("request", key, version), "> " + frame.hex())
            body = self.answer(key, version)
            if body is not None:
                sock.sendall(struct.pack(">ii", len(body) + 4, correlation) + body)

    def answer(self, key, version):
        host = b"\0\x09127.0.0.1" + struct.pack(">i", self.port)
        broker = struct.pack(">i", 1) + host
        if key == 18:
            rows = [struct.pack(">hhh", k, *self.OFFER.get(k, (0, 9))) for k in range(52)]
            if version >= 3:
                return b"\0\0" + bytes([len(rows) + 1]) + b"".join(r + b"\0" for r in rows) + b"\0\0\0\0\0"
            return b"\0\0" + struct.pack(">i", len(rows)) + b"".join(rows) + (b"\0\0\0\0" if version else b"")
        if key == 3:
            part = struct.pack(">hiii", 0, 0, 1, 1) + struct.pack(">iii", 1, 1, 1)
            topic = b"\0\0" + b"\0\x05topic" + b"\0" + struct.pack(">i", 1) + part
            return (struct.pack(">i", 1) + broker + (b"\xff\xff" if version else b"") +
                    (struct.pack(">i", 1) if version else b"") + struct.pack(">i", 1) + topic)
        if key == 10:
            return b"\0\0" + broker
        if key == 17:
            return b"\0\0\0\0\0\1\0\5PLAIN"
        return None


def admin_requests(frames):
    text = ctypes.create_string_buffer(512)
    size = ctypes.c_size_t(512)

    def pointer(value):
        return (ctypes.c_void_p * 1)(value)

    broker = TinyBroker(frames)
    rk = client(PRODUCER, None, bootstrap_servers="127.0.0.1:%d" % broker.port)
    queue = ctypes.c_void_p(rd.rd_kafka_queue_new(rk))
    new_topic = ctypes.c_void_p(rd.rd_kafka_NewTopic_new(b"topic", 3, 1, text, size))
    rd.rd_kafka_NewTopic_set_config(new_topic, b"retention.ms", b"1000")
    resource = ctypes.c_void_p(rd.rd_kafka_ConfigResource_new(2, b"topic"))
    rd.rd_kafka_ConfigResource_set_config(resource, b"retention.ms", b"1000")
    acl = rd.rd_kafka_AclBinding_new(2, b"topic", 3, b"User:u", b"*", 3, 3, text, size)
    acls = rd.rd_kafka_AclBindingFilter_new(2, None, 1, None, None, 1, 1, text, size)
    tps = partitions((b"topic", 0, 5))
    groups = (ctypes.c_char_p * 1)(b"group")

    rd.rd_kafka_CreateTopics(rk, pointer(new_topic.value), ctypes.c_size_t(1), None, queue)
    rd.rd_kafka_DeleteTopics(rk, pointer(rd.rd_kafka_DeleteTopic_new(b"topic")), ctypes.c_size_t(1), None, queue)
    grow = rd.rd_kafka_NewPartitions_new(b"topic", ctypes.c_size_t(5), text, size)
    rd.rd_kafka_CreatePartitions(rk, pointer(grow), ctypes.c_size_t(1), None, queue)
    rd.rd_kafka_AlterConfigs(rk, pointer(resource.value), ctypes.c_size_t(1), None, queue)
    rd.rd_kafka_DescribeConfigs(rk, pointer(resource.value), ctypes.c_size_t(1), None, queue)
    rd.rd_kafka_DeleteRecords(rk, pointer(rd.rd_kafka_DeleteRecords_new(tps)), ctypes.c_size_t(1), None, queue)
    rd.rd_kafka_ListConsumerGroups(rk, None, queue)
    rd.rd_kafka_DescribeConsumerGroups(rk, groups, ctypes.c_size_t(1), None, queue)
    rd.rd_kafka_DeleteGroups(rk, pointer(rd.rd_kafka_DeleteGroup_new(b"group")), ctypes.c_size_t(1), None, queue)
    offsets = rd.rd_kafka_ListConsumerGroupOffsets_new(b"group", tps)
    rd.rd_kafka_ListConsumerGroupOffsets(rk, pointer(offsets), ctypes.c_size_t(1), None, queue)
    gone = rd.rd_kafka_DeleteConsumerGroupOffsets_new(b"group", tps)
    rd.rd_kafka_DeleteConsumerGroupOffsets(rk, pointer(gone), ctypes.c_size_t(1), None, queue)
    rd.rd_kafka_CreateAcls(rk, pointer(acl), ctypes.c_size_t(1), None, queue)
    rd.rd_kafka_DescribeAcls(rk, ctypes.c_void_p(acls), None, queue)
    rd.rd_kafka_DeleteAcls(rk, pointer(acls), ctypes.c_size_t(1), None, queue)
    client(PRODUCER, None, bootstrap_servers="127.0.0.1:%d" % broker.port,
           security_protocol="sasl_plaintext", sasl_mechanisms="PLAIN", sasl_username="u", sasl_password="p")
    time.sleep(5)  # the requests go out; there is no event for that


def main():
    frames = Frames()
    against_mock_brokers(frames)
    admin_requests(frames)
    rd.rd_kafka_version_str.restype = ctypes.c_char_p
    print("# Made by golden_from_librdkafka.py with librdkafka %s." % rd.rd_kafka_version_str().decode())
    for kind in sorted(frames.lines):
        for line in frames.lines[kind]:
            print(line)
    sys.stdout.flush()
    os._exit(0)  # clients that wait for answers that never come


if __name__ == "__main__":
    main()
