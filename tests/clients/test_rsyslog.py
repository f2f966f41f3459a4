"""Debian's rsyslog with its Kafka output (omkafka, librdkafka) writes a system log to a broker, and a group reads it
back: a log file as it stands, and what programs log meanwhile, across a restart of the broker."""
import collections
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest

import groupwire as g
import harness
import kwire
import real_input
from group_checks import OVERRIDES, fixed_listener
from harness import until

RSYSLOGD = shutil.which("rsyslogd") or shutil.which("rsyslogd", path="/usr/sbin")
KCAT = shutil.which("kcat") or shutil.which("kafkacat")
CONF = """
global(workDirectory="%(folder)s" maxMessageSize="64k")
module(load="imfile")
module(load="imuxsock" SysSock.Use="off")
module(load="omkafka")
input(type="imuxsock" Socket="%(folder)s/log" CreatePath="off" RateLimit.Interval="0")
input(type="imfile" File="%(folder)s/system.log" Tag="file:" ruleset="to-kafka" reopenOnTruncate="on")
template(name="line" type="string" string="%%msg%%")
template(name="key" type="string" string="%%programname%%")
ruleset(name="to-kafka") {
  action(type="omkafka" broker=["%(broker)s"] topic="syslog" template="line" key="key" partitions.auto="on"
         resubmitOnFailure="on" keepFailedMessages="on" failedMsgFile="%(folder)s/failed" action.resumeRetryCount="-1"
         confParam=["enable.idempotence=true", "compression.codec=zstd", "queue.buffering.max.ms=20",
                    "reconnect.backoff.max.ms=200", "retries=1000"]
         topicConfParam=["acks=-1", "message.timeout.ms=120000"])
}
call to-kafka
"""


def has_output():
    for folder in ("/usr/lib/%s-linux-gnu/rsyslog" % os.uname().machine, "/usr/lib/rsyslog", "/usr/lib64/rsyslog"):
        if os.path.exists(os.path.join(folder, "omkafka.so")):
            return True
    return False


def system_log():
    """Lines of this machine's own log; else a text. No empty ones: rsyslog leaves them out."""
    for path in ("/var/log/dpkg.log", "/var/log/syslog", "/var/log/messages"):
        try:
            with open(path, "rb") as f:
                data = f.read(400000)
        except OSError:
            continue
        if data.count(b"\n") > 100:
            break
    else:
        data = real_input.text_log()
    lines = [re.sub(rb"[^\x20-\x7e]", b"?", line) for line in data.splitlines()]
    return [line for line in lines if line.strip()]


class Reader:
    """A member of the group that collects lines."""

    def __init__(self, broker):
        args = [KCAT, "-b", broker.address, "-u", "-q", "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=4000",
                "-X", "heartbeat.interval.ms=200", "-X", "topic.metadata.refresh.interval.ms=500",
                "-X", "reconnect.backoff.max.ms=200", "-G", "readers", "syslog"]
        self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.lines = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for raw in self.process.stdout:
            self.lines.append(raw.rstrip(b"\n"))

    def end(self):
        self.process.terminate()
        self.process.wait(30)
        self.thread.join(30)
        self.process.stdout.close()


@unittest.skipUnless(RSYSLOGD and has_output() and KCAT, "rsyslog with omkafka, and kcat, are needed")
class Rsyslog(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kafkad-syslog-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.broker = harness.Broker(overrides=OVERRIDES, listeners=fixed_listener())
        self.addCleanup(self.broker.close)
        with kwire.Conn(self.broker.port) as c:
            g.coordinator(c, "readers")
            kwire.create_topic(c, "syslog", partitions=3)
        self.readers = []

    def start_rsyslog(self):
        conf = os.path.join(self.folder, "rsyslog.conf")
        with open(conf, "w") as f:
            f.write(CONF % {"folder": self.folder, "broker": self.broker.address})
        p = subprocess.Popen([RSYSLOGD, "-n", "-f", conf, "-i", os.path.join(self.folder, "pid")],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(self.end_rsyslog, p)
        until("rsyslog has its socket", lambda: os.path.exists(os.path.join(self.folder, "log")) or p.poll() is not None)
        self.assertIsNone(p.poll(), "rsyslogd ended")
        return p

    def end_rsyslog(self, p):
        p.terminate()
        try:
            p.wait(30)
        finally:
            if p.poll() is None:
                p.kill()
                p.wait(30)
            p.stderr.close()

    def log(self, texts):
        """As syslog(3) does it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.connect(os.path.join(self.folder, "log"))
            for text in texts:
                s.send(b"<14>Jan  1 00:00:00 program: " + text)

    def reader(self):
        r = Reader(self.broker)
        self.readers.append(r)
        self.addCleanup(r.end)
        return r

    def seen(self):
        return collections.Counter(line.strip() for r in self.readers for line in list(r.lines))

    def test_a_system_log_is_read_back_by_a_group(self):
        lines = system_log()
        wanted = collections.Counter(line.strip() for line in lines)
        with open(os.path.join(self.folder, "system.log"), "wb") as f:
            f.write(b"\n".join(lines[:-1]) + b"\n")
        self.reader()
        self.reader()
        self.start_rsyslog()
        until("all of the file but its last line", lambda: sum(self.seen().values()) >= len(lines) - 1)
        with open(os.path.join(self.folder, "system.log"), "ab") as f:
            f.write(lines[-1] + b"\n")
        until("its last line", lambda: sum(self.seen().values()) >= len(lines))
        self.assertEqual(self.seen(), wanted)

        texts = [b"message %d of a program" % i for i in range(500)]
        self.log(texts)
        until("what was logged", lambda: sum(self.seen().values()) >= len(lines) + 500)
        wanted.update(texts)
        self.assertEqual(self.seen(), wanted)
        with kwire.Conn(self.broker.port) as c:
            until("all is committed", lambda: sum(o[0] for o in g.fetch(c, "readers", None)[1].values()) == len(lines) + 500)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "failed")))

    def test_a_restart_of_the_broker_loses_no_line(self):
        self.start_rsyslog()
        texts = [b"line %d" % i for i in range(900)]
        self.log(texts[:300])
        self.reader()
        until("the first lines", lambda: sum(self.seen().values()) >= 300)
        self.broker.stop()
        self.log(texts[300:600])  # while there is no broker
        for r in self.readers:  # kcat ends when no broker is there
            r.end()
        self.broker.start()
        self.reader()
        self.log(texts[600:])
        until("all lines", lambda: set(self.seen()) >= set(texts))
        self.assertEqual(set(self.seen()), set(texts))


if __name__ == "__main__":
    unittest.main()
