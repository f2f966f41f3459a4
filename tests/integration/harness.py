"""harness.py - what the integration tests share: a broker as a process, and a client that speaks raw frames.

    class MyTest(harness.BrokerTest):
        OVERRIDES = {"num.partitions": "3"}        # of the broker that all tests of the class use
        def test_something(self):
            with self.client() as c:
                answer = c.request(API_VERSIONS, 0, b"")

Or a broker of one's own:

    with harness.Broker(overrides={"broker.id": "7"}) as b:
        b.kill(); b.start(); ...                   # the same folder again

Everything that waits waits for an event with a deadline, never for a time. Ports are free ones (listeners with
port 0); folders are temporary. A sanitizer's report in the broker's output fails the test. A test file run by
itself runs all its tests; `test_x.py Class.test_name` runs one, -v shows names. The programs are those of
$KAFKAD_BIN_DIR (ctest sets it), else of build/bin or build/debug/bin. KAFKAD_TEST_KEEP=1 keeps the folders.
"""
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEADLINE = float(os.environ.get("KAFKAD_TEST_DEADLINE", "30"))  # of one wait, seconds
SANITIZER = re.compile(r"(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|runtime error: ")

# API keys
PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP = 8, 9, 10, 11
SASL_HANDSHAKE, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 17, 18, 19, 20
INIT_PRODUCER_ID, OFFSET_FOR_LEADER_EPOCH, DESCRIBE_CONFIGS, CREATE_PARTITIONS = 22, 23, 32, 37
DESCRIBE_CLUSTER = 60

# first flexible version of requests and responses
FLEXIBLE = {PRODUCE: 9, FETCH: 12, LIST_OFFSETS: 6, METADATA: 9, OFFSET_COMMIT: 8, OFFSET_FETCH: 6,
            FIND_COORDINATOR: 3, JOIN_GROUP: 6, SASL_HANDSHAKE: 99, API_VERSIONS: 3, CREATE_TOPICS: 5,
            DELETE_TOPICS: 4, INIT_PRODUCER_ID: 2, OFFSET_FOR_LEADER_EPOCH: 4, DESCRIBE_CONFIGS: 4,
            CREATE_PARTITIONS: 2, DESCRIBE_CLUSTER: 0}


def bin_dir():
    given = os.environ.get("KAFKAD_BIN_DIR")
    for path in [given] if given else [os.path.join(ROOT, "build/bin"), os.path.join(ROOT, "build/debug/bin")]:
        if os.path.exists(os.path.join(path, "kafkad")):
            return path
    raise RuntimeError("no kafkad is built (looked at %s)" % (given or "build/bin and build/debug/bin"))


def program(name):
    return os.path.join(bin_dir(), name)


def sanitized():
    """Is the broker built with a sanitizer? Its memory then says little: freed memory is kept for a while."""
    with open(program("kafkad"), "rb") as f:
        text = f.read()
    return b"__asan_init" in text or b"__tsan_init" in text


def run(args, deadline=DEADLINE, input=None):
    """Runs a program to its end. Returns (exit status, stdout, stderr) as text."""
    p = subprocess.run(args, input=input, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=deadline,
                       stdin=None if input is not None else subprocess.DEVNULL)
    return p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")


def until(what, condition, deadline=DEADLINE):
    """Polls for something that has no event to wait for. Returns the condition's value."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("not within %g s: %s" % (deadline, what))
        time.sleep(0.01)


class Broker:
    """One kafkad process. Its folder lives as long as this object; start, stop and kill may alternate."""

    def __init__(self, overrides=None, folder=None, listeners="PLAINTEXT://127.0.0.1:0", start=True):
        self.folder = folder or tempfile.mkdtemp(prefix="kafkad-test-")
        self.owns_folder = folder is None
        self.data = os.path.join(self.folder, "data")
        self.overrides = {"listeners": listeners, "log.dirs": self.data}
        self.overrides.update(overrides or {})
        self.process = None
        self.before_exec = None  # called in the new process before it becomes kafkad: limits
        self.lines = []      # of standard error, since the object was made
        self.life = 0        # index of the present life's first line
        self.ended = False   # its standard error has ended
        self.cond = threading.Condition()
        self.ports = {}
        if start:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.close()
        else:
            self.kill()
            sys.stderr.write("---- broker output\n%s\n----\n" % "\n".join(self.lines[-60:]))
            self._remove()

    # -- life

    def command(self):
        args = [program("kafkad")]
        for key, value in self.overrides.items():
            args += ["--override", "%s=%s" % (key, value)]
        return args

    def start(self, wait=True):
        assert self.process is None
        self.life = len(self.lines)
        self.ended = False
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, preexec_fn=self.before_exec)
        self.reader = threading.Thread(target=self._read, args=(self.process.stderr,), daemon=True)
        self.reader.start()
        if wait:
            self.wait_line(r"\[KafkaServer id=\d+\] started")
            self.ports = {m.group(1): int(m.group(2)) for m in
                          (re.search(r"listening on (\S+?)://.*:(\d+)$", line) for line in self.lines[self.life:])
                          if m}
        return self

    def _read(self, pipe):
        for raw in pipe:
            with self.cond:
                self.lines.append(raw.decode("utf-8", "replace").rstrip("\n"))
                self.cond.notify_all()
        with self.cond:
            self.ended = True
            self.cond.notify_all()

    def _collect(self, deadline):
        status = self.process.wait(timeout=deadline)
        self.reader.join(deadline)
        self.process.stderr.close()
        self.process = None
        self.check_sanitizers()
        return status

    def stop(self, deadline=DEADLINE, sig=signal.SIGTERM):
        """A clean stop: exit status 0 and the last line."""
        self.process.send_signal(sig)
        status = self._collect(deadline)
        assert status == 0, "exit status %d: %s" % (status, "\n".join(self.lines[-20:]))
        assert self.has_line(r"\[KafkaServer id=\d+\] shut down completed"), "no 'shut down completed'"

    def kill(self):
        """SIGKILL; nothing is checked but sanitizers."""
        if self.process:
            self.process.kill()
            self._collect(DEADLINE)

    def wait_exit(self, deadline=DEADLINE):
        """Waits for a process that ends by itself; returns its status."""
        return self._collect(deadline)

    def restart(self):
        self.stop()
        return self.start()

    def close(self):
        try:
            if self.process:
                self.stop()
        finally:
            self.kill()
            self._remove()

    def _remove(self):
        if self.owns_folder and not os.environ.get("KAFKAD_TEST_KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)

    # -- what it says

    def has_line(self, pattern):
        """Has this life logged such a line?"""
        with self.cond:
            return any(re.search(pattern, line) for line in self.lines[self.life:])

    def count_lines(self, pattern):
        with self.cond:
            return sum(1 for line in self.lines[self.life:] if re.search(pattern, line))

    def mark(self):
        """For wait_line(after=...): from here on."""
        with self.cond:
            return len(self.lines)

    def wait_line(self, pattern, after=None, deadline=DEADLINE):
        """The first line of this life (or behind a mark) that matches; waits for it."""
        at = self.life if after is None else after
        end = time.monotonic() + deadline
        with self.cond:
            while True:
                for line in self.lines[at:]:
                    at += 1
                    if re.search(pattern, line):
                        return line
                if self.ended:
                    raise AssertionError("the broker ended without a line like %r:\n%s"
                                         % (pattern, "\n".join(self.lines[self.life:][-30:])))
                if not self.cond.wait(end - time.monotonic()):
                    raise AssertionError("no line like %r within %g s:\n%s"
                                         % (pattern, deadline, "\n".join(self.lines[self.life:][-30:])))

    def check_sanitizers(self):
        with self.cond:
            bad = [i for i, line in enumerate(self.lines) if SANITIZER.search(line)]
            assert not bad, "sanitizer report:\n" + "\n".join(self.lines[bad[0]:bad[0] + 60])

    # -- what it is

    @property
    def port(self):
        return self.ports["PLAINTEXT"]

    @property
    def address(self):
        return "127.0.0.1:%d" % self.port

    @property
    def pid(self):
        return self.process.pid

    def status_kb(self, field):
        """A field of /proc/<pid>/status in KiB: VmRSS, VmHWM."""
        with open("/proc/%d/status" % self.pid) as f:
            return int(re.search(r"^%s:\s+(\d+) kB" % field, f.read(), re.M).group(1))

    def rss_kb(self):
        return self.status_kb("VmRSS")

    def assert_grown_less(self, before_kb, limit_kb):
        """Has its memory grown by less than limit_kb since it was before_kb?"""
        grown = self.rss_kb() - before_kb
        assert grown < limit_kb or sanitized(), "memory has grown by %d KiB" % grown

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def client(self, listener="PLAINTEXT", **args):
        return Client(self.ports[listener], **args)


class Closed(Exception):
    """The broker closed the connection."""


class Client:
    """A connection that sends and receives frames."""

    def __init__(self, port, client_id="test", deadline=DEADLINE, receive_buffer=None):
        self.deadline = deadline
        self.client_id = client_id
        self.correlation = 0
        self.received = b""
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(deadline)
        self.sock.connect(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()

    def close(self):
        self.sock.close()

    def send_bytes(self, data):
        self.sock.sendall(data)

    def send_frame(self, payload):
        self.send_bytes(struct.pack(">i", len(payload)) + payload)

    def _fill(self, n):
        end = time.monotonic() + self.deadline
        while len(self.received) < n:
            left = end - time.monotonic()
            if left <= 0:
                raise AssertionError("no answer within %g s" % self.deadline)
            self.sock.settimeout(left)
            try:
                data = self.sock.recv(1 << 16)
            except (ConnectionResetError, BrokenPipeError):
                raise Closed()
            if not data:
                raise Closed()
            self.received += data

    def recv_frame(self):
        """The next frame's bytes, or Closed."""
        self._fill(4)
        n = struct.unpack(">i", self.received[:4])[0]
        self._fill(4 + n)
        frame, self.received = self.received[4:4 + n], self.received[4 + n:]
        return frame

    def header(self, key, version, correlation):
        h = Writer().i16(key).i16(version).i32(correlation)
        if not (key == 7 and version == 0):
            h.string(self.client_id)
        if version >= FLEXIBLE.get(key, 99):
            h.uvarint(0)
        return h.bytes()

    def send(self, key, version, body):
        """Sends a request, returns its correlation id."""
        self.correlation += 1
        body = body.bytes() if isinstance(body, Writer) else body
        self.send_frame(self.header(key, version, self.correlation) + body)
        return self.correlation

    def receive(self, key, version, correlation):
        """The answer's body as a Reader; the header is checked."""
        r = Reader(self.recv_frame())
        got = r.i32()
        assert got == correlation, "answer %d to request %d" % (got, correlation)
        if version >= FLEXIBLE.get(key, 99) and key != API_VERSIONS:
            r.tags()
        return r

    def request(self, key, version, body=b""):
        return self.receive(key, version, self.send(key, version, body))

    def wait_closed(self):
        """Waits until the broker closes; whatever still comes before that is dropped."""
        end = time.monotonic() + self.deadline
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise AssertionError("still open after %g s" % self.deadline)
            self.sock.settimeout(left)
            try:
                if not self.sock.recv(1 << 16):
                    return
            except (ConnectionResetError, BrokenPipeError):
                return
            except socket.timeout:
                pass

    def is_open(self):
        """Does it still answer?"""
        try:
            self.request(API_VERSIONS, 0)
            return True
        except Closed:
            return False

    def writable_now(self):
        return bool(select.select([], [self.sock], [], 0)[1])


class Writer:
    """Builds a message; every call returns the writer. f=True: the flexible forms."""

    def __init__(self):
        self.parts = []

    def bytes(self):
        return b"".join(self.parts)

    def raw(self, data):
        self.parts.append(data)
        return self

    def _pack(self, form, value):
        return self.raw(struct.pack(form, value))

    def i8(self, v):
        return self._pack(">b", v)

    def i16(self, v):
        return self._pack(">h", v)

    def i32(self, v):
        return self._pack(">i", v)

    def i64(self, v):
        return self._pack(">q", v)

    def boolean(self, v):
        return self.i8(1 if v else 0)

    def uvarint(self, v):
        while v >= 0x80:
            self.raw(bytes([v & 0x7f | 0x80]))
            v >>= 7
        return self.raw(bytes([v]))

    def string(self, text, f=False):
        data = None if text is None else text.encode() if isinstance(text, str) else text
        if f:
            self.uvarint(0 if data is None else len(data) + 1)
        else:
            self.i16(-1 if data is None else len(data))
        return self.raw(data or b"")

    def data(self, data, f=False):
        """bytes and records"""
        if f:
            self.uvarint(0 if data is None else len(data) + 1)
        else:
            self.i32(-1 if data is None else len(data))
        return self.raw(data or b"")

    def uuid(self, b):
        return self.raw(b)

    def array(self, items, put, f=False):
        """put(writer, item) for each; items None = null"""
        n = -1 if items is None else len(items)
        if f:
            self.uvarint(n + 1)
        else:
            self.i32(n)
        for item in items or []:
            put(self, item)
        return self

    def tags(self, f=True):
        return self.uvarint(0) if f else self


class Reader:
    """Reads a message; raises when it ends too early."""

    def __init__(self, data):
        self.d = data
        self.at = 0

    def left(self):
        return len(self.d) - self.at

    def raw(self, n):
        if n < 0 or n > self.left():
            raise AssertionError("the message ends too early")
        self.at += n
        return self.d[self.at - n:self.at]

    def _unpack(self, form, n):
        return struct.unpack(form, self.raw(n))[0]

    def i8(self):
        return self._unpack(">b", 1)

    def i16(self):
        return self._unpack(">h", 2)

    def i32(self):
        return self._unpack(">i", 4)

    def i64(self):
        return self._unpack(">q", 8)

    def boolean(self):
        return self.i8() != 0

    def uvarint(self):
        v = shift = 0
        while True:
            b = self.raw(1)[0]
            v |= (b & 0x7f) << shift
            if b < 0x80:
                return v
            shift += 7

    def _size(self, f, short):
        return self.uvarint() - 1 if f else self.i16() if short else self.i32()

    def string(self, f=False):
        n = self._size(f, True)
        return None if n < 0 else self.raw(n).decode("utf-8", "replace")

    def data(self, f=False):
        n = self._size(f, False)
        return None if n < 0 else self.raw(n)

    def uuid(self):
        return self.raw(16)

    def array(self, get, f=False):
        n = self._size(f, False)
        return None if n < 0 else [get(self) for _ in range(n)]

    def tags(self, f=True):
        """{tag: bytes} of the tag section"""
        found = {}
        if f:
            for _ in range(self.uvarint()):
                tag = self.uvarint()
                found[tag] = self.raw(self.uvarint())
        return found

    def end(self):
        assert self.left() == 0, "%d bytes left over" % self.left()


class BrokerTest(unittest.TestCase):
    """Tests that share one broker, started for the class and stopped cleanly behind it."""

    OVERRIDES = {}
    LISTENERS = "PLAINTEXT://127.0.0.1:0"

    @classmethod
    def setUpClass(cls):
        cls.broker = Broker(overrides=cls.OVERRIDES, listeners=cls.LISTENERS)

    @classmethod
    def tearDownClass(cls):
        cls.broker.close()

    def tearDown(self):
        self.broker.check_sanitizers()

    def client(self, **args):
        return self.broker.client(**args)

    def topic(self, stem="t"):
        """A topic name of this test's own."""
        return "%s-%s" % (stem, self.id().rsplit(".", 1)[-1].replace("_", "-"))


# ---- the usual requests, for tests whose subject they are not

def create_topic(client, name, partitions=1, configs=None, timeout_ms=20000, version=4):
    """CreateTopics of one topic; the error code."""
    def put(w, _):
        w.string(name).i32(partitions).i16(1).i32(0)
        w.array(sorted((configs or {}).items()), lambda w2, kv: w2.string(kv[0]).string(kv[1]))
    r = client.request(CREATE_TOPICS, version,
                       Writer().array([name], put).i32(timeout_ms).boolean(False))
    r.i32()
    return r.array(lambda x: (x.string(), x.i16(), x.string()))[0][1]


def delete_topic(client, name, timeout_ms=20000):
    """DeleteTopics v1 of one topic; the error code."""
    r = client.request(DELETE_TOPICS, 1, Writer().array([name], lambda w, n: w.string(n)).i32(timeout_ms))
    r.i32()
    return r.array(lambda x: (x.string(), x.i16()))[0][1]


def metadata(client, topics, allow_create=False):
    """Metadata v7 as {"brokers": [(id, host, port, rack)], "cluster", "controller",
    "topics": {name: (error, internal, {partition: (error, leader, epoch, replicas, isr, offline)})}}"""
    r = client.request(METADATA, 7, Writer().array(topics, lambda w, n: w.string(n)).boolean(allow_create))
    r.i32()
    brokers = r.array(lambda x: (x.i32(), x.string(), x.i32(), x.string()))
    cluster, controller = r.string(), r.i32()

    def ints(x):
        return x.array(lambda y: y.i32())

    def partition(x):
        error, number = x.i16(), x.i32()
        return number, (error, x.i32(), x.i32(), ints(x), ints(x), ints(x))

    def topic(x):
        error, name, internal = x.i16(), x.string(), x.boolean()
        return name, (error, internal, dict(x.array(partition)))
    topics = dict(r.array(topic))
    r.end()
    return {"brokers": brokers, "cluster": cluster, "controller": controller, "topics": topics}


def main():
    unittest.main(verbosity=int(os.environ.get("KAFKAD_TEST_VERBOSE", "1")))
