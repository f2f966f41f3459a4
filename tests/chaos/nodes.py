"""nodes.py - what runs on the machines of topology.py: ZooKeeper servers and brokers, each in its namespace, with files
below one folder. Standard error of all lives goes to <folder>/<name>.log.

A broker's log dirs are file systems in memory of their own, so that one can be full; its wall clock is wrong by what
`shift_clock` says (chaos_clock.c)."""
import mmap
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

import harness
import records
import zookeeper

KAFKA_PORT, ZOOKEEPER_PORT = 9092, 2181
PAGE = 4096


class Node:
    """A process that is started, killed, paused and resumed by several threads."""

    def __init__(self, net, name, folder):
        self.net, self.name = net, name
        self.address = net.address(name)
        self.folder = os.path.join(folder, name)
        self.log = os.path.join(folder, name + ".log")
        self.process = None
        self.paused = False
        self.busy = threading.Lock()  # held while a fault has the node
        os.makedirs(self.folder)

    def spawn(self, command, **args):
        with open(self.log, "ab") as log:
            self.process = self.net.popen(self.name, command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          start_new_session=True, **args)

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def kill(self):
        if self.process:
            self.signal(signal.SIGKILL)
            self.process.wait()
        self.process, self.paused = None, False

    def pause(self):
        self.paused = True
        self.signal(signal.SIGSTOP)

    def resume(self):
        if self.paused:
            self.signal(signal.SIGCONT)
            self.paused = False

    def tail(self, n=30):
        with open(self.log, errors="replace") as f:
            return "".join(f.readlines()[-n:])


class ZooKeeperServer(Node):
    def __init__(self, net, number, names, folder, tick_ms):
        Node.__init__(self, net, names[number - 1], folder)
        os.mkdir(os.path.join(self.folder, "data"))
        with open(os.path.join(self.folder, "data", "myid"), "w") as f:
            f.write("%d\n" % number)
        self.config = os.path.join(self.folder, "zoo.cfg")
        lines = ["tickTime=%d" % tick_ms, "initLimit=20", "syncLimit=6", "dataDir=%s/data" % self.folder,
                 "clientPort=%d" % ZOOKEEPER_PORT, "clientPortAddress=" + self.address, "admin.enableServer=false",
                 "4lw.commands.whitelist=*", "maxClientCnxns=0", "forceSync=no", "snapCount=10000"]
        lines += ["server.%d=%s:2888:3888" % (i + 1, net.address(name)) for i, name in enumerate(names)]
        with open(self.config, "w") as f:
            f.write("\n".join(lines) + "\n")

    def start(self):
        env = dict(os.environ, ZOO_LOG_DIR=self.folder, JMXDISABLE="true",
                   SERVER_JVMFLAGS="-Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:CICompilerCount=1 " +
                                   "-Dzookeeper.extendedTypesEnabled=true")
        self.spawn([os.path.join(zookeeper.HOME, "bin", "zkServer.sh"), "start-foreground", self.config], env=env)

    def mode(self):
        """leader, follower, or None while it does not serve."""
        try:
            with socket.create_connection((self.address, ZOOKEEPER_PORT), 1) as s:
                s.settimeout(1)
                s.sendall(b"srvr")
                found = re.search(rb"^Mode: (\w+)", s.makefile("rb").read(), re.M)
                return found and found.group(1).decode()
        except OSError:
            return None


class Broker(Node):
    """Broker `number`. Its settings may be changed between lives."""

    SHIM = "tests/libchaos_clock.so"

    def __init__(self, net, number, folder, settings):
        Node.__init__(self, net, "b%d" % number, folder)
        self.number = number
        self.settings = dict(settings)
        self.dirs = [os.path.join(self.folder, d) for d in "ab"]
        self.started_at = 0  # bytes of the log that belong to earlier lives
        self.full = set()
        for d in self.dirs:
            os.mkdir(d)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3g", "tmpfs", d], check=True)
        self.settings.update({"broker.id": str(number), "log.dirs": ",".join(self.dirs),
                              "listeners": "PLAINTEXT://%s:%d" % (self.address, KAFKA_PORT)})
        path = os.path.join(self.folder, "clock")
        with open(path, "wb") as f:
            f.write(bytes(8))
        with open(path, "r+b") as f:
            self.clock = mmap.mmap(f.fileno(), 8)
        self.env = dict(os.environ, CHAOS_CLOCK=path, LD_PRELOAD=harness.program(self.SHIM))
        self.env["ASAN_OPTIONS"] = "verify_asan_link_order=0:abort_on_error=1"

    def start(self):
        self.started_at = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        command = [harness.program("kafkad")]
        for key, value in sorted(self.settings.items()):
            command += ["--override", "%s=%s" % (key, value)]
        self.spawn(command, env=self.env)

    def this_life(self):
        with open(self.log, "rb") as f:
            f.seek(self.started_at)
            return f.read().decode("utf-8", "replace")

    def wait_started(self, deadline=60):
        """False when it has ended instead, or not started in time."""
        end = time.monotonic() + deadline
        while time.monotonic() < end:
            if not self.running:
                return False
            if re.search(r"\[KafkaServer id=\d+\] started", self.this_life()):
                return True
            time.sleep(0.02)
        return False

    def stop(self, deadline=60):
        """A clean stop; its status, None when it takes too long and is killed."""
        self.resume()
        self.signal(signal.SIGTERM)
        try:
            status = self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        self.process = None
        return status

    def fill(self, which):
        """No block is left in the log dir until `empty`."""
        self.full.add(which)
        self._resize(which, max(1, self._used(which)))

    def empty(self):
        for which in list(self.full):
            self._resize(which, 3 << 30)
        self.full.clear()

    def _used(self, which):
        s = os.statvfs(self.dirs[which])
        return (s.f_blocks - s.f_bfree) * s.f_frsize

    def _resize(self, which, size):
        for _ in range(20):  # what is written meanwhile makes the smaller size impossible
            size = max(size, self._used(which)) if size < 3 << 30 else size
            if subprocess.run(["mount", "-o", "remount,size=%d" % size, self.dirs[which]], stderr=subprocess.DEVNULL
                              ).returncode == 0:
                return
        raise OSError("%s cannot be resized" % self.dirs[which])

    def lose_unflushed(self, share):
        """Cuts each log somewhere behind its recovery point, at any byte; share() is 0 to 1. Returns the bytes cut."""
        lost = 0
        for d in self.dirs:
            flushed = read_checkpoint(os.path.join(d, "recovery-point-offset-checkpoint"))
            for name in os.listdir(d):
                topic, _, partition = name.rpartition("-")
                if partition.isdigit():
                    lost += cut_log(os.path.join(d, name), flushed.get((topic, int(partition)), 0), share())
        return lost

    def shift_clock(self, seconds):
        self.clock[:8] = struct.pack("=q", int(seconds * 1e9))


def read_checkpoint(path):
    """{(topic, partition): offset}"""
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        rows = [line.rsplit(" ", 2) for line in f.read().splitlines()[2:]]
    return {(topic, int(partition)): int(offset) for topic, partition, offset in rows}


def cut_log(folder, flushed, share):
    """Takes the last part away of what lies behind the offset: so much of it is left. Returns the bytes taken."""
    segments, unflushed = sorted(f for f in os.listdir(folder) if f.endswith(".log")), []
    for name in segments:
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        at = 0
        for _, last, raw in records.heads(data):
            if last >= flushed:
                break
            at += len(raw)
        unflushed.append((name, at, len(data)))
    keep = int(sum(size - at for _, at, size in unflushed) * share)
    lost = 0
    for name, at, size in unflushed:
        left = min(keep, size - at)
        keep -= left
        lost += size - at - left
        if at + left < size:
            os.truncate(os.path.join(folder, name), at + left)
    return lost
