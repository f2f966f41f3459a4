"""Real disks that fill up, vanish or turn read-only under a running broker: only the log dir concerned goes offline, the
others go on, nothing that was acknowledged is lost, and the broker ends only when no dir is left.

Needs to mount file systems: where that is not permitted the tests are skipped."""
import os
import shutil
import subprocess
import tempfile
import unittest

import harness
import kwire
from kwire import create_topic, fetch, list_offset, produce, records, simple_batch

STORAGE_ERROR = 56
PARTITIONS = 6


def run(*args):
    return subprocess.run(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Mount:
    """A small file system in memory."""

    def __init__(self, kilobytes):
        self.path = tempfile.mkdtemp(prefix="kafkad-disk-")
        if not run("mount", "-t", "tmpfs", "-o", "size=%dk" % kilobytes, "none", self.path):
            os.rmdir(self.path)
            raise unittest.SkipTest("cannot mount a file system here")

    def fill(self, leave):
        """Takes all space but `leave` bytes."""
        self.free_up()
        room = os.statvfs(self.path)
        left = max(0, room.f_bavail * room.f_frsize - leave)
        try:
            with open(self.path + "/filler", "wb", buffering=0) as f:
                while left > 0:
                    left -= f.write(b"\0" * min(left, 65536))
        except OSError:  # full already, maybe by others while it was filled
            pass

    def free_up(self):
        if os.path.exists(self.path + "/filler"):
            os.unlink(self.path + "/filler")

    def close(self):
        run("umount", "-l", self.path)
        os.rmdir(self.path)


class Device:
    """An ext4 on a loop device whose file lies in a smaller file system: once that is full, writes to blocks that were
    never written fail, as those of a disk that breaks."""

    def __init__(self, kilobytes):
        self.below = Mount(kilobytes)
        self.path = tempfile.mkdtemp(prefix="kafkad-disk-")
        self.device = None
        try:
            image = self.below.path + "/image"
            with open(image, "wb") as f:
                f.truncate(2 * kilobytes * 1024)
            made = shutil.which("mkfs.ext4") and run("mkfs.ext4", "-q", "-O", "^has_journal", image)
            found = made and subprocess.run(["losetup", "--show", "-f", image], stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
            self.device = found.stdout.strip() if found else None
            run("blockdev", "--setrw", self.device or "")
            if not self.device or not run("mount", self.device, self.path) or not os.access(self.path, os.W_OK):
                raise unittest.SkipTest("cannot mount a loop device here")
        except BaseException:
            self.close()
            raise

    def break_down(self):
        self.below.fill(0)

    def turn_read_only(self):
        trigger = "/sys/fs/ext4/%s/trigger_fs_error" % os.path.basename(self.device)
        if not run("mount", "-o", "remount,errors=remount-ro", self.path) or not os.access(trigger, os.W_OK):
            raise unittest.SkipTest("cannot make a file system fail here")
        with open(trigger, "w") as f:
            f.write("a test")

    def close(self):
        run("umount", "-l", self.path)
        if self.device:
            run("losetup", "-d", self.device)
        os.rmdir(self.path)
        self.below.close()


class Base(unittest.TestCase):
    """A broker with a good dir and one on a small file system; topic t has partitions in both."""
    OVERRIDES = {}

    def begin(self, mount=Mount, kilobytes=4096, **configs):
        self.mount = mount(kilobytes)
        self.addCleanup(self.mount.close)
        self.bad = self.mount.path + "/logs"
        good = tempfile.mkdtemp(prefix="kafkad-test-")
        self.addCleanup(shutil.rmtree, good, True)
        overrides = {"log.dirs": good + "/logs," + self.bad, "log.flush.offset.checkpoint.interval.ms": "3600000",
                     "replica.high.watermark.checkpoint.interval.ms": "3600000", "log.index.size.max.bytes": "65536",
                     "log.index.interval.bytes": "64"}
        self.broker = harness.Broker(overrides=overrides)
        self.addCleanup(self.end)
        self.conn = kwire.Conn(self.broker.port)
        self.addCleanup(lambda: self.conn.close())
        create_topic(self.conn, "t", PARTITIONS, configs)
        self.there = [p for p in range(PARTITIONS) if os.path.isdir("%s/t-%d" % (self.bad, p))]
        self.here = [p for p in range(PARTITIONS) if p not in self.there]
        self.assertEqual(len(self.there), PARTITIONS // 2)
        self.acked = {p: [] for p in range(PARTITIONS)}
        self.sent = 0

    def end(self):
        if self.broker.process:
            self.broker.kill()
        self.broker._remove()

    def put(self, partition, size):
        """One record; its error code."""
        self.sent += 1
        value = b"%d " % self.sent + b"v" * size
        answer, = produce(self.conn, 9, [("t", partition, simple_batch(value))])
        if answer["error_code"] == 0:
            self.acked[partition].append(value)
        return answer["error_code"]

    def put_until_it_fails(self, size, most=20000):
        for i in range(most):
            code = self.put(self.there[i % len(self.there)], size)
            if code:
                return code
        self.fail("the disk never failed")

    def assert_bad_is_offline(self):
        self.broker.wait_line(r"%s goes offline" % self.bad)
        for p in self.there:
            self.assertEqual(fetch(self.conn, 11, [("t", p, 0)])[0][2]["error_code"], STORAGE_ERROR)
            self.assertEqual(self.put(p, 10), STORAGE_ERROR)
        for p in self.here:
            self.assertEqual(self.put(p, 10), 0)
        self.assertIsNone(self.broker.process.poll())

    def read_all(self, partition):
        values, at = [], 0
        end = list_offset(self.conn, 5, "t", partition, -1)["offset"]
        while at < end:
            answer = fetch(self.conn, 11, [("t", partition, at)])[0][2]
            self.assertEqual(answer["error_code"], 0)
            for record in records(answer["records"]):
                if record[0] >= at:
                    values.append(record[3])
                    at = record[0] + 1
        return values

    def assert_all_is_there_after(self, again):
        """What was acknowledged comes back, in order; what was not may be there too."""
        self.conn.close()
        again()
        self.conn = kwire.Conn(self.broker.port)
        for p in range(PARTITIONS):
            harness.until("a leader of t-%d" % p,
                          lambda: list_offset(self.conn, 5, "t", p, -1)["error_code"] == 0)
            left = iter(self.read_all(p))
            for value in self.acked[p]:
                self.assertTrue(any(v == value for v in left), "t-%d lost %r" % (p, value[:20]))
        for p in range(PARTITIONS):
            self.assertEqual(self.put(p, 10), 0)

    def kill_and_start(self):
        self.broker.kill()
        self.broker.start()


class FullDisk(Base):
    def test_by_large_records(self):
        self.begin()
        self.assertEqual(self.put_until_it_fails(100000), STORAGE_ERROR)
        self.assert_bad_is_offline()
        # what the failed append has left behind makes room again
        run("mount", "-o", "remount,size=16384k", self.mount.path)
        self.assert_all_is_there_after(self.kill_and_start)

    def test_wherever_the_last_page_goes(self):
        """Data, index entries (whose pages are mapped: no SIGBUS), new segments, checkpoints of epochs and producers."""
        self.begin(**{"segment.bytes": "16384"})
        for pages in (0, 1, 2, 3, 5, 8, 13):
            self.mount.fill(pages * 4096)
            self.assertEqual(self.put_until_it_fails(300), STORAGE_ERROR)
            self.assert_bad_is_offline()
            self.mount.free_up()
            self.assert_all_is_there_after(self.kill_and_start)

    def test_at_a_clean_stop(self):
        """No room for checkpoints and snapshots: no mark of a clean stop, so the next start looks at everything."""
        self.begin()
        for p in self.there:
            for _ in range(5):
                self.assertEqual(self.put(p, 100), 0)
        self.mount.fill(0)
        self.conn.close()
        self.broker.stop()
        self.assertFalse(os.path.exists(self.bad + "/.kafka_cleanshutdown"))
        self.mount.free_up()
        self.assert_all_is_there_after(self.broker.start)


class VanishedDisk(Base):
    def test_dir_removed(self):
        self.begin(**{"segment.bytes": "16384"})
        self.assertEqual(self.put(self.there[0], 1000), 0)
        shutil.rmtree(self.bad)
        self.assertEqual(self.put_until_it_fails(1000), STORAGE_ERROR)  # at the next roll
        self.assert_bad_is_offline()

    def test_read_only_at_a_start(self):
        """It cannot even be locked: the others serve; when it can be written to again, all is there."""
        self.begin()
        for p in range(PARTITIONS):
            self.assertEqual(self.put(p, 100), 0)
        self.conn.close()
        self.broker.stop()
        self.assertTrue(run("mount", "-o", "remount,ro", self.mount.path))
        self.broker.start()
        self.conn = kwire.Conn(self.broker.port)
        for p in self.here:
            harness.until("a leader of t-%d" % p, lambda: self.put(p, 10) == 0)
        self.assert_bad_is_offline()
        self.conn.close()
        self.broker.stop()
        self.assertTrue(run("mount", "-o", "remount,rw", self.mount.path))
        self.assert_all_is_there_after(self.broker.start)

    def test_read_only_while_running(self):
        """What ext4 does to itself when it finds that its disk is broken."""
        self.begin(Device, 16384, **{"segment.bytes": "16384"})
        self.assertEqual(self.put(self.there[0], 1000), 0)
        self.mount.turn_read_only()
        self.assertEqual(self.put_until_it_fails(1000, 500), STORAGE_ERROR)
        self.assert_bad_is_offline()

    def test_writes_fail_at_the_device(self):
        """Appends go to memory, and it is the fsync that fails: what it was to save is not acknowledged."""
        self.begin(Device, 16384, **{"flush.messages": "1"})
        self.assertEqual(self.put(self.there[0], 1000), 0)
        self.mount.break_down()
        self.assertEqual(self.put_until_it_fails(20000, 500), STORAGE_ERROR)
        self.assert_bad_is_offline()


class LastDisk(unittest.TestCase):
    def test_broker_ends_with_its_last_dir(self):
        mount = Mount(4096)
        self.addCleanup(mount.close)
        broker = harness.Broker(overrides={"log.dirs": mount.path + "/logs"})
        try:
            with kwire.Conn(broker.port) as conn:
                create_topic(conn, "t")
                try:
                    for _ in range(1000):
                        if produce(conn, 9, [("t", 0, simple_batch(b"v" * 100000))])[0]["error_code"]:
                            break
                except (kwire.Closed, OSError):  # it may end before it has answered
                    pass
            self.assertEqual(broker.wait_exit(), 1)
        finally:
            broker.kill()
            broker._remove()


if __name__ == "__main__":
    unittest.main()
