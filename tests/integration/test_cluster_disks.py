"""A disk of one broker of three breaks under load: the controller hears of it and moves what the broker led there, the
other dir goes on, nothing that was acknowledged is lost; with the last dir the broker ends.

Needs to mount file systems: where that is not permitted the tests are skipped."""
import os
import shutil
import tempfile
import unittest

from cluster import Cluster, History
from harness import until
from test_disk_faults import Mount

PARTITIONS = 6
BROKEN = 2  # the broker with two dirs


class Disks(unittest.TestCase):
    def setUp(self):
        self.disk = Mount(32 * 1024)
        self.addCleanup(self.disk.close)
        self.other = tempfile.mkdtemp(prefix="kafkad-disk-")
        self.addCleanup(shutil.rmtree, self.other, True)

    def open(self, dirs):
        return Cluster(3, each=lambda i: {
            "log.dirs": ",".join(dirs), "log.index.size.max.bytes": "65536"} if i == BROKEN else {})

    def in_dir(self, path):
        return sorted(int(name[2:]) for name in os.listdir(path) if name.startswith("t-") and name[2:].isdigit())

    def offline(self, c, i):
        """Partitions whose replica on the broken one is offline, as broker i tells."""
        part = c.metadata(i, ["t"])["topics"][0]["partitions"]
        return sorted(p["partition_index"] for p in part if BROKEN in p["offline_replicas"])

    def wait_out(self, c, partitions):
        for p in partitions:
            c.wait_state("t", p, lambda s: s["leader"] not in (BROKEN, -1) and BROKEN not in s["isr"])

    def notices(self, c):
        with c.zk.client() as z:
            return z.children("/log_dir_event_notification")

    def test_one_of_two_dirs_breaks(self):
        with self.open([self.disk.path, self.other]) as c:
            c.create_topic("t", partitions=PARTITIONS)
            lost, kept = self.in_dir(self.disk.path), self.in_dir(self.other)
            self.assertTrue(lost and kept, (lost, kept))
            with History(c, "t", PARTITIONS) as h:
                h.grow(200)
                epochs = {p: c.state("t", p)["leader_epoch"] for p in kept}
                self.disk.fill(0)
                self.wait_out(c, lost)
                h.grow(300)
                until("the notice is taken", lambda: not self.notices(c))
                for i in c.running():  # the broken one knows it as well
                    until("broker %d tells which are offline" % i, lambda i=i: self.offline(c, i) == lost)
                for p in kept:  # nobody has touched them
                    s = c.state("t", p)
                    self.assertEqual((len(s["isr"]), s["leader_epoch"]), (3, epochs[p]))
                self.assertIn(BROKEN, c.running())
                # It is mended: at its next start all come back.
                self.disk.free_up()
                c.broker(BROKEN).restart()
                c.wait_isr("t", PARTITIONS, 3)
                h.grow(100)
            h.check()
            h.check_copies()

    def test_a_broker_without_dirs_ends(self):
        with self.open([self.disk.path]) as c:
            c.create_topic("t", partitions=PARTITIONS)
            with History(c, "t", PARTITIONS) as h:
                h.grow(200)
                self.disk.fill(0)
                self.assertNotEqual(c.broker(BROKEN).wait_exit(), 0)
                self.wait_out(c, range(PARTITIONS))
                h.grow(200)
                self.disk.free_up()
                c.broker(BROKEN).start()
                c.wait_isr("t", PARTITIONS, 3)
                h.grow(100)
            h.check()
            h.check_copies()


if __name__ == "__main__":
    unittest.main()
