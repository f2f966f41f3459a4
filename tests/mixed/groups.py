"""groups.py - groups beside the records of a test: offsets that are committed and read back, and a real member."""
import subprocess
import threading
import time

import cluster
import harness
import kwire


class Offsets:
    """A group without members whose offset of t-0 is committed again and again, each one higher, and asked for: what
    the coordinator acknowledged must not go back, whoever coordinates and whoever wrote it."""

    def __init__(self, c, group, topic="t"):
        self.cluster, self.group, self.topic = c, group, topic
        self.committed, self.count, self.stopping, self.error = -1, 0, False, None
        self.thread = threading.Thread(target=self._guard, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join(60)

    def _guard(self):
        try:
            while not self.stopping:
                try:
                    self._work()
                except (OSError, kwire.Closed, IndexError):
                    pass
                time.sleep(0.05)
        except BaseException as e:
            self.error = e

    def _coordinator(self):
        with self.cluster.conn(timeout=5) as k:
            a = k.call("FindCoordinator", 3, key=self.group, key_type=0)
        return a["node_id"] if a["error_code"] == 0 else None

    def read(self, k):
        a = k.call("OffsetFetch", 7, group_id=self.group, require_stable=True,
                   topics=[{"name": self.topic, "partition_indexes": [0]}])
        p = a["topics"][0]["partitions"][0]
        return a["error_code"] or p["error_code"], p["committed_offset"]

    def _work(self):
        i = self._coordinator()
        if i not in self.cluster.running():
            return
        with kwire.Conn(self.cluster.brokers[i].port, timeout=5) as k:
            while not self.stopping:
                error, found = self.read(k)
                if error:
                    return
                # one that was sent but not answered may be there
                assert found in (self.committed, self.committed + 1), (found, self.committed)
                self.committed = found
                a = k.call("OffsetCommit", 8, group_id=self.group, generation_id_or_member_epoch=-1, member_id="",
                           topics=[{"name": self.topic, "partitions": [
                               {"partition_index": 0, "committed_offset": found + 1, "committed_metadata": "m%d" % found}]}])
                error = a["topics"][0]["partitions"][0]["error_code"]
                if error:
                    assert error in cluster.RETRIABLE | {14, 15, 16}, error
                    return
                self.committed += 1
                self.count += 1
                time.sleep(0.01)

    def grow(self, n, deadline=150):
        before = self.count

        def grown():
            if self.error:
                raise AssertionError(self.error)
            return self.count >= before + n
        harness.until("%d more offsets are committed" % n, grown, deadline)

    def check(self):
        assert not self.error, self.error


class Member:
    """kcat as the member of a group that reads a topic: all it has printed. An Apache broker that has just started says of
    every topic that it does not exist, until its controller has told it better, and kcat ends when it hears so: it is
    started again then, and goes on where the group stands."""

    def __init__(self, c, group, topic="t"):
        self.lines, self.lock, self.ending = set(), threading.Lock(), False
        servers = ",".join(b.address for b in c.brokers.values())
        self.command = ["kcat", "-b", servers, "-G", group, "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=10000",
                        "-X", "reconnect.backoff.max.ms=500", "-X", "topic.metadata.refresh.interval.ms=2000", "-u", "-q", topic]
        self._start()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.lock:
            self.ending = True
            self.process.terminate()
        self.thread.join(30)
        if self.thread.is_alive():
            self.process.kill()
            self.thread.join(10)

    def _read(self):
        while True:
            for raw in self.process.stdout:
                with self.lock:
                    self.lines.add(raw.rstrip(b"\n"))
            self.process.stdout.close()
            self.process.wait()
            with self.lock:
                if self.ending:
                    return
                self._start()

    def wait_all(self, values, deadline=200):
        def missing():
            with self.lock:
                return [v for v in values if v not in self.lines]
        try:
            harness.until("the group has read all", lambda: not missing(), deadline)
        except AssertionError as e:
            raise AssertionError("%s: %d of %d are missing, the first are %s" % (e, len(missing()), len(values), missing()[:5]))
