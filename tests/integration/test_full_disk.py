"""A log dir on a disk that is full: it goes offline with one line, the others serve on, nothing acknowledged is lost, and
with room again all is there after a start. Needs a file system of its own (mount, so root); else skipped."""
import os
import subprocess
import tempfile
import unittest

import harness
import kwire
from kwire import create_topic, fetch, list_offset, produce, produce_one, records, simple_batch

STORAGE_ERROR = 56


def can_mount():
    folder = tempfile.mkdtemp(prefix="kafkad-test-")
    ok = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], capture_output=True).returncode == 0
    if ok:
        subprocess.run(["umount", folder], check=True)
    os.rmdir(folder)
    return ok


@unittest.skipUnless(can_mount(), "no file system can be mounted here")
class FullDisk(unittest.TestCase):
    def setUp(self):
        self.small = tempfile.mkdtemp(prefix="kafkad-test-")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=5m", "none", self.small], check=True)
        self.broker = harness.Broker(start=False)
        self.broker.overrides.update({"log.segment.bytes": "400000", "log.index.size.max.bytes": "4096",
                                      "log.retention.check.interval.ms": "300", "log.cleaner.enable": "false"})
        self.acked = {}
        self.conn = None

    def tearDown(self):
        if self.conn:
            self.conn.close()
        self.broker.kill()
        self.broker.close()
        subprocess.run(["umount", "-l", self.small], check=True)
        os.rmdir(self.small)

    def dirs(self, *dirs):
        self.broker.overrides["log.dirs"] = ",".join(dirs)

    def resize(self, options):
        subprocess.run(["mount", "-o", "remount," + options, self.small], check=True)

    def start(self):
        self.broker.start()
        self.conn = kwire.Conn(self.broker.port)

    def fill(self, topic, partitions, n=4000):
        """Until a partition is offline, or the broker is gone. Codes other than none."""
        codes, number = set(), 0
        for number in range(n):
            p = number % partitions
            try:
                answer, = produce(self.conn, 9, [(topic, p, simple_batch(b"%06d" % number + b"x" * 3000))])
            except (kwire.Closed, OSError):
                return codes
            if answer["error_code"]:
                codes.add(answer["error_code"])
                if number > 500 and answer["error_code"] == STORAGE_ERROR:
                    return codes
            else:
                self.acked.setdefault((topic, p), []).append((answer["base_offset"], number))
        return codes

    def check(self):
        for (topic, p), acked in self.acked.items():
            there, offset = {}, list_offset(self.conn, 5, topic, p, -2)["offset"]
            end = list_offset(self.conn, 5, topic, p, -1)["offset"]
            while offset < end:
                answer = fetch(self.conn, 11, [(topic, p, offset, {"partition_max_bytes": 4 << 20})])[0][2]
                self.assertEqual(answer["error_code"], 0)
                for r in records(answer["records"]):
                    if r[0] >= offset:
                        there[r[0]], offset = r[3], r[0] + 1
            for base, number in acked:
                self.assertEqual(int(there[base][:6]), number)

    def after(self, kill, dies=False):
        """The broker ends, the disk gets room, and it starts again."""
        self.conn.close()
        if dies and not kill:
            self.assertEqual(self.broker.wait_exit(), 1)
        elif kill:
            self.broker.kill()
        else:
            self.broker.stop()
        self.resize("size=50m")
        self.start()
        self.check()

    def the_only_dir_is_full(self, kill):
        self.dirs(os.path.join(self.small, "a"))
        self.start()
        create_topic(self.conn, "t", partitions=2)
        self.fill("t", 2)
        self.broker.wait_line("goes offline.*No space left on device")
        self.broker.wait_line("no log dir is left that works")
        self.after(kill, dies=True)
        produce_one(self.conn, "t", 0, simple_batch(b"goes on"))

    def test_the_only_dir_is_full(self):
        self.the_only_dir_is_full(False)

    def test_the_only_dir_is_full_and_a_kill(self):
        self.the_only_dir_is_full(True)

    def one_of_two_is_full(self, kill):
        self.dirs(os.path.join(self.broker.folder, "good"), os.path.join(self.small, "b"))
        self.start()
        create_topic(self.conn, "t", partitions=2)
        self.assertEqual(self.fill("t", 2), {STORAGE_ERROR})
        self.broker.wait_line("goes offline.*No space left on device")
        create_topic(self.conn, "other")  # in the dir that works
        produce_one(self.conn, "other", 0, simple_batch(b"x"))
        lived = [p for p in (0, 1) if list_offset(self.conn, 5, "t", p, -1)["error_code"] == 0]
        self.assertEqual(len(lived), 1)
        for i in range(10):
            produce_one(self.conn, "t", lived[0], simple_batch(b"%06d" % i))
        self.assertEqual(self.broker.count_lines("goes offline"), 1)
        self.after(kill)
        for p in (0, 1):
            produce_one(self.conn, "t", p, simple_batch(b"goes on"))

    def test_one_of_two_is_full(self):
        self.one_of_two_is_full(False)

    def test_one_of_two_is_full_and_a_kill(self):
        self.one_of_two_is_full(True)

    def test_started_on_a_full_disk(self):
        """Dirs that were good, and have no room now: what there is is served if it can be, or one line says why not."""
        self.dirs(os.path.join(self.small, "a"))
        self.start()
        create_topic(self.conn, "t")
        self.fill("t", 1, n=100)
        self.conn.close()
        self.broker.stop()
        ballast = os.open(os.path.join(self.small, "ballast"), os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(ballast, b"x" * 4096)
        except OSError:
            os.close(ballast)
        self.broker.start(wait=False)
        harness.until("it serves or ends", lambda: self.broker.ended or self.broker.has_line("started"))
        if self.broker.ended:
            self.assertEqual(self.broker.wait_exit(), 1)
            self.assertEqual(self.broker.count_lines("FATAL"), 1)
        else:
            self.broker.kill()
        os.unlink(os.path.join(self.small, "ballast"))
        self.start()
        self.check()
        produce_one(self.conn, "t", 0, simple_batch(b"goes on"))


if __name__ == "__main__":
    unittest.main()
