"""zookeeper.py - real ZooKeeper servers for the integration tests, a small client of their protocol, and a proxy that
cuts a broker off from them.

    with zookeeper.ZooKeeper() as zk:              # one server; ZooKeeper(3) is an ensemble
        b = zk.broker(1)                           # a kafkad on it (harness.Broker), its folder goes with it
        zk.client().get("/controller")
        zk.kill(); zk.start()                      # one server of several: zk.servers[1].kill()
        zk.expire(session_id, password)

Debian's package zookeeper is used (/usr/share/zookeeper/bin/zkServer.sh); $ZOOKEEPER_HOME names another place.
"""
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import harness
from harness import DEADLINE, Broker, until

HOME = os.environ.get("ZOOKEEPER_HOME", "/usr/share/zookeeper")


def free_ports(n):
    """Ports that were free a moment ago: ZooKeeper cannot take port 0. Below the range that clients are given."""
    found = []
    while len(found) < n:
        port = random.randrange(10000, 30000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


class Server:
    """One ZooKeeper process; its data stays over kill and start."""

    def __init__(self, number, port, peers, tick_ms):
        self.number, self.port = number, port
        self.folder = tempfile.mkdtemp(prefix="kafkad-test-zk-")
        self.config = os.path.join(self.folder, "zoo.cfg")
        self.log = os.path.join(self.folder, "log")
        self.process = None
        lines = ["tickTime=%d" % tick_ms, "initLimit=40", "syncLimit=10", "dataDir=%s/data" % self.folder,
                 "clientPort=%d" % port, "clientPortAddress=127.0.0.1", "admin.enableServer=false",
                 "4lw.commands.whitelist=*", "maxClientCnxns=0", "minSessionTimeout=500", "forceSync=no"]
        if len(peers) > 1:
            lines += ["server.%d=127.0.0.1:%d:%d" % (i + 1, quorum, election)
                      for i, (quorum, election) in enumerate(peers)]
        os.mkdir(os.path.join(self.folder, "data"))
        with open(os.path.join(self.folder, "data", "myid"), "w") as f:
            f.write("%d\n" % number)
        with open(self.config, "w") as f:
            f.write("\n".join(lines) + "\n")

    def start(self):
        env = dict(os.environ, ZOO_LOG_DIR=self.folder, JMXDISABLE="true",
                   SERVER_JVMFLAGS="-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 " +
                                   "-Dzookeeper.extendedTypesEnabled=true")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([os.path.join(HOME, "bin", "zkServer.sh"), "start-foreground", self.config],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
                                            start_new_session=True)

    def ask(self, word):
        """Answer to a four-letter word, or "" when there is none."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 2) as s:
                s.sendall(word.encode())
                s.settimeout(2)
                answer = b""
                while True:
                    data = s.recv(1 << 16)
                    if not data:
                        return answer.decode()
                    answer += data
        except OSError:
            return ""

    def mode(self):
        """leader, follower, standalone, or None while it does not serve."""
        found = re.search(r"^Mode: (\w+)", self.ask("srvr"), re.M)
        return found.group(1) if found else None

    def wait_up(self):
        def up():
            if self.process.poll() is not None:
                with open(self.log, errors="replace") as f:
                    raise AssertionError("ZooKeeper ended:\n" + "".join(f.readlines()[-30:]))
            return self.mode()
        return until("ZooKeeper at port %d serves" % self.port, up, 60)

    def signal(self, number):
        os.killpg(self.process.pid, number)

    def kill(self):
        if self.process:
            self.signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def pause(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def remove(self):
        self.kill()
        if not os.environ.get("KAFKAD_TEST_KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)


class ZooKeeper:
    """One server or an ensemble, and the brokers on it."""

    def __init__(self, n=1, tick_ms=500, start=True):
        ports = free_ports(3 * n)
        peers = [(ports[n + 2 * i], ports[n + 2 * i + 1]) for i in range(n)]
        self.servers = [Server(i + 1, ports[i], peers, tick_ms) for i in range(n)]
        self.brokers = []
        self.proxies = []
        if start:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close(kind is None)

    def start(self):
        for s in self.servers:
            if not s.process:
                s.start()
        for s in self.servers:
            s.wait_up()
        return self

    def kill(self):
        for s in self.servers:
            s.kill()

    def close(self, clean=True):
        """Stops what is left: brokers first, cleanly unless a test has failed."""
        try:
            for b in self.brokers:
                if clean:
                    b.close()
                else:
                    b.__exit__(AssertionError, None, None)
        finally:
            for p in self.proxies:
                p.close()
            for s in self.servers:
                s.remove()

    @property
    def connect(self):
        return ",".join("127.0.0.1:%d" % s.port for s in self.servers)

    @property
    def leader(self):
        return next(s for s in self.servers if s.process and s.mode() in ("leader", "standalone"))

    def broker(self, number=None, overrides=None, connect=None, start=True, **args):
        """A broker on it. Its session times out after 6 s unless told otherwise."""
        o = {"zookeeper.connect": connect or self.connect, "zookeeper.session.timeout.ms": "6000",
             "zookeeper.connection.timeout.ms": "30000",
             "offsets.topic.num.partitions": "3", "offsets.topic.replication.factor": "1"}
        if number is not None:
            o["broker.id"] = str(number)
        o.update(overrides or {})
        b = Broker(overrides=o, start=False, **args)
        self.brokers.append(b)
        return b.start() if start else b

    def proxy(self):
        """A way to the first server that can be cut."""
        p = Proxy(self.servers[0].port)
        self.proxies.append(p)
        return p

    def client(self, **args):
        return Client([s.port for s in self.servers if s.process], **args)

    def sessions_of(self, path):
        """The session that owns an ephemeral node."""
        with self.client() as c:
            return c.stat(path)["owner"]

    def expire(self, session):
        """Ends a session as its timeout would: takes it over, with the password that the server would give for the id
        (it is a function of the id), and closes it in the same breath, before its owner can take it back."""
        leader = self.leader

        def over():
            if "0x%x\n" % session not in leader.ask("dump"):
                return True
            frames = (struct.pack(">iqiq", 0, 0, 10000, session) + Client._data(password_of(session)) + b"\0",
                      struct.pack(">ii", 1, -11))
            with socket.create_connection(("127.0.0.1", leader.port), DEADLINE) as s:
                s.sendall(b"".join(struct.pack(">i", len(f)) + f for f in frames))
                try:
                    while s.recv(1 << 16):
                        pass
                except OSError:
                    pass
            return False
        until("session 0x%x is over" % session, over)


def password_of(session):
    """ZooKeeper's servers make a session's password from its id: java.util.Random(id ^ superSecret).nextBytes(16)."""
    seed = ((session & (1 << 64) - 1) ^ 0xB3415C00) ^ 0x5DEECE66D
    seed &= (1 << 48) - 1
    out = b""
    while len(out) < 16:
        seed = (seed * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        out += struct.pack("<I", seed >> 16 & 0xFFFFFFFF)
    return out


class ZkError(Exception):
    def __init__(self, code):
        Exception.__init__(self, "ZooKeeper error %d" % code)
        self.code = code


NO_NODE, BAD_VERSION, NODE_EXISTS, NOT_EMPTY, NO_AUTH = -101, -103, -110, -111, -102
WORLD = [(31, "world", "anyone")]


class Client:
    """A session that speaks the protocol itself, one request at a time. Used also to look at what brokers wrote. A thread
    keeps it alive: a test may wait longer than its timeout between two requests."""

    def __init__(self, ports, timeout_ms=10000, session=0, password=b"\0" * 16, auth=None, chroot="", deadline=DEADLINE):
        """ports: numbers, or (host, port)"""
        self.xid = 0
        self.chroot = chroot
        self.sending, self.ended = threading.Lock(), threading.Event()
        last = None
        for port in ports:
            try:
                address = port if isinstance(port, tuple) else ("127.0.0.1", port)
                self.sock = socket.create_connection(address, deadline)
                break
            except OSError as e:
                last = e
        else:
            raise last
        body = struct.pack(">iqiq", 0, 0, timeout_ms, session) + self._data(password) + b"\0"
        self._send(body)
        answer = self._recv()
        _, self.timeout, self.session = struct.unpack(">iiq", answer[:16])
        if self.timeout <= 0:
            raise ZkError(-112)
        if auth:
            self._send(struct.pack(">iii", -4, 100, 0) + self._text("digest") + self._data(auth.encode()))
            self._answer(-4)
        threading.Thread(target=self._keep_alive, daemon=True).start()

    def _keep_alive(self):
        while not self.ended.wait(self.timeout / 3000):
            try:
                self._send(struct.pack(">ii", -2, 11))  # a ping; _answer() passes over what comes back
            except OSError:
                return

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()

    def _send(self, body):
        with self.sending:
            self.sock.sendall(struct.pack(">i", len(body)) + body)

    def _exactly(self, n):
        out = b""
        while len(out) < n:
            data = self.sock.recv(n - len(out))
            if not data:
                raise ConnectionError("ZooKeeper closed the connection")
            out += data
        return out

    def _recv(self):
        return self._exactly(struct.unpack(">i", self._exactly(4))[0])

    @staticmethod
    def _data(data):
        return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data

    @classmethod
    def _text(cls, text):
        return cls._data(text.encode())

    def _answer(self, xid):
        while True:
            answer = self._recv()
            got, _, code = struct.unpack(">iqi", answer[:16])
            if got == xid:
                if code:
                    raise ZkError(code)
                return harness.Reader(answer[16:])

    def _request(self, kind, body):
        self.xid += 1
        self._send(struct.pack(">ii", self.xid, kind) + body)
        return self._answer(self.xid)

    def _path(self, path):
        return self._text((self.chroot + path).rstrip("/") or "/")

    @staticmethod
    def _stat(r):
        names = ("czxid", "mzxid", "ctime", "mtime", "version", "cversion", "aversion", "owner", "length", "children",
                 "pzxid")
        kinds = "qqqqiiiqiiq"
        return {n: r.i64() if k == "q" else r.i32() for n, k in zip(names, kinds)}

    @classmethod
    def _acl(cls, acl):
        return struct.pack(">i", len(acl)) + b"".join(
            struct.pack(">i", perms) + cls._text(scheme) + cls._text(who) for perms, scheme, who in acl)

    def create(self, path, data=b"", flags=0, acl=None):
        """The path made. flags: 1 ephemeral, 2 sequential."""
        body = self._path(path) + self._data(data) + self._acl(acl or WORLD) + struct.pack(">i", flags)
        return self._request(1, body).data().decode()

    def delete(self, path, version=-1):
        self._request(2, self._path(path) + struct.pack(">i", version))

    def stat(self, path):
        """None when there is no such node."""
        try:
            return self._stat(self._request(3, self._path(path) + b"\0"))
        except ZkError as e:
            if e.code == NO_NODE:
                return None
            raise

    def get(self, path):
        return self._request(4, self._path(path) + b"\0").data()

    def json(self, path):
        return json.loads(self.get(path))

    def set(self, path, data, version=-1):
        return self._stat(self._request(5, self._path(path) + self._data(data) + struct.pack(">i", version)))

    def acl(self, path):
        """[(perms, scheme, id)]"""
        r = self._request(6, self._path(path))
        return r.array(lambda x: (x.i32(), x.data().decode(), x.data().decode()))

    def children(self, path):
        r = self._request(8, self._path(path) + b"\0")
        return sorted(r.array(lambda x: x.data().decode()))

    def delete_tree(self, path):
        for name in self.children(path):
            self.delete_tree(path.rstrip("/") + "/" + name)
        self.delete(path)

    def close(self):
        self.ended.set()
        try:
            self._request(-11, b"")
        except OSError:
            pass
        self.sock.close()


class Proxy:
    """Listens on a port of its own and passes bytes on to another one, until it is cut."""

    def __init__(self, to):
        self.to = to
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.socks = set()
        self.is_cut = False
        self.closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self):
        return "127.0.0.1:%d" % self.port

    def _accept(self):
        while True:
            try:
                here, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                cut = self.is_cut or self.closed
            if cut:
                here.close()
                continue
            try:
                there = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                here.close()
                continue
            with self.lock:
                self.socks |= {here, there}
            for a, b in ((here, there), (there, here)):
                threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, a, b):
        try:
            while True:
                data = a.recv(1 << 16)
                if not data:
                    break
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def drop(self):
        """Breaks the connections that there are; new ones are passed on."""
        with self.lock:
            socks, self.socks = self.socks, set()
        for s in socks:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def cut(self):
        with self.lock:
            self.is_cut = True
        self.drop()

    def mend(self):
        with self.lock:
            self.is_cut = False

    def close(self):
        with self.lock:
            self.closed = True
        self.listener.close()
        self.drop()
