"""The programs of docs/examples, compiled against the client library of the build, on a real broker."""
import os
import subprocess
import tempfile
import shutil
import unittest

import harness

BUILD = os.path.dirname(harness.bin_dir())


def cache_has(text):
    with open(os.path.join(BUILD, "CMakeCache.txt")) as f:
        return text in f.read()


EXAMPLES = sorted(f[:-2] for f in os.listdir(os.path.join(harness.ROOT, "docs", "examples")) if f.endswith(".c"))


@unittest.skipIf(cache_has("ASAN:BOOL=ON") or cache_has("TSAN:BOOL=ON"), "sanitizers cannot be linked to from outside")
class ExamplesTest(harness.BrokerTest):
    OVERRIDES = {"group.initial.rebalance.delay.ms": "0"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.mkdtemp(prefix="kafkad-test-")
        for name in EXAMPLES:
            subprocess.run(["cc", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-I" + os.path.join(harness.ROOT, "include"),
                            "-o", os.path.join(cls.folder, name),
                            os.path.join(harness.ROOT, "docs", "examples", name + ".c"),
                            "-L" + os.path.join(BUILD, "lib"), "-Wl,-rpath," + os.path.join(BUILD, "lib"),
                            "-lkafkad-client"], check=True, timeout=60)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)
        super().tearDownClass()

    def run_example(self, name, *args):
        return harness.run([os.path.join(self.folder, name), *args])

    def test_round_trip(self):
        t = self.topic()
        status, out, err = self.run_example("produce", self.broker.address, t, "one", "two", "three")
        self.assertEqual(status, 0)
        self.assertRegex(err, r"^\[W\] kafka client: topic %s does not exist: it is made now.*\n$" % t)
        self.assertEqual(out, "".join("%s-0 at offset %d\n" % (t, i) for i in range(3)))
        status, out, err = self.run_example("consume", self.broker.address, t, "3")
        self.assertEqual((status, out, err), (0, "0 one\n1 two\n2 three\n", ""))

    def keyed(self, topic, keys, each):
        """Lines "k<i> <n>" for each key, through keyed_producer."""
        lines = "".join("k%d\t%d\n" % (k, n) for n in range(each) for k in range(keys))
        status, out, err = harness.run([os.path.join(self.folder, "keyed_producer"), self.broker.address, topic],
                                       input=lines.encode())
        self.assertEqual((status, out, err), (0, "%d sent, 0 failed\n" % (keys * each), ""))

    def test_keys_keep_their_order(self):
        t = self.topic()
        self.run_example("admin", self.broker.address, "create", t, "3")
        self.keyed(t, 10, 20)
        status, out, err = self.run_example("read_all", self.broker.address, t)
        self.assertEqual((status, err), (0, ""))
        seen = {}
        for line in out.splitlines():
            partition, offset, key, value = line.split()
            seen.setdefault(key, []).append((partition, int(value)))
        self.assertEqual(len(seen), 10)
        for values in seen.values():
            self.assertEqual(len({p for p, _ in values}), 1)
            self.assertEqual([v for _, v in values], list(range(20)))

    def test_an_empty_topic_is_read_at_once(self):
        t = self.topic()
        self.run_example("admin", self.broker.address, "create", t, "2")
        self.assertEqual(self.run_example("read_all", self.broker.address, t), (0, "", ""))

    def test_threads_keep_the_order_of_partitions(self):
        t = self.topic()
        self.run_example("admin", self.broker.address, "create", t, "4")
        self.keyed(t, 10, 50)
        status, out, err = self.run_example("worker_threads", self.broker.address, "g-threads", t, "3", "500")
        self.assertEqual((status, err), (0, ""))
        offsets = {}
        for line in out.splitlines():
            partition, offset, _ = line.split()
            offsets.setdefault(partition, []).append(int(offset))
        self.assertEqual(sum(map(len, offsets.values())), 500)
        for seen in offsets.values():
            self.assertEqual(seen, list(range(len(seen))))
        status, out, err = self.run_example("admin", self.broker.address, "lag", "g-threads")
        self.assertEqual(out.count(" lag 0"), len(offsets), out)

    def test_errors_are_told(self):
        status, out, err = self.run_example("group_consumer", "nowhere", "g", "t", "1")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("bootstrap.servers=nowhere: each entry must be host:port", err)

    def test_admin_and_group(self):
        t, g = self.topic(), "g"
        status, out, err = self.run_example("admin", self.broker.address, "create", t, "2")
        self.assertEqual((status, out, err), (0, "created %s with 2 partitions\n" % t, ""))
        status, _, err = self.run_example("admin", self.broker.address, "create", t, "2")
        self.assertEqual(status, 1)
        self.assertEqual(err, "%s: Topic '%s' already exists. (TOPIC_ALREADY_EXISTS)\n" % (t, t))  # said once
        self.run_example("produce", self.broker.address, t, "one", "two", "three")
        status, out, err = self.run_example("group_consumer", self.broker.address, g, t, "3")
        self.assertEqual((status, sorted(line.split()[1] for line in out.splitlines())), (0, ["one", "three", "two"]))
        self.assertIn("assigned %s-0\nassigned %s-1\n" % (t, t), err)
        status, out, err = self.run_example("admin", self.broker.address, "lag", g)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("group g: Empty, 0 members, coordinator 0\n", out)
        self.assertRegex(out, "%s-[01]: committed 3, end 3, lag 0\n" % t)
        status, out, err = self.run_example("admin", self.broker.address, "rewind", g, t, "2")
        self.assertEqual((status, err), (0, ""))
        status, out, _ = self.run_example("group_consumer", self.broker.address, g, t, "3")
        self.assertEqual((status, len(out.splitlines())), (0, 3))
        status, out, err = self.run_example("admin", self.broker.address, "delete", t, g)
        self.assertEqual((status, out, err), (0, "deleted group g and topic %s\n" % t, ""))
        status, out, err = self.run_example("admin", self.broker.address, "lag", g)
        self.assertEqual(status, 1)
        self.assertIn("GROUP_ID_NOT_FOUND", err)

    def test_a_producer_outlives_its_broker(self):
        """Stopped and killed while records come: each is there once, in order of its key."""
        overrides = {"num.partitions": "2"}
        with harness.Broker(overrides=overrides) as b:
            b.overrides["listeners"] = "PLAINTEXT://127.0.0.1:%d" % b.port
            self.run_example("admin", b.address, "create", "t", "2")
            p = subprocess.Popen([os.path.join(self.folder, "keyed_producer"), b.address, "t"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            n = 0
            for stop in (b.restart, lambda: (b.kill(), b.start()), b.restart):
                for _ in range(2000):
                    p.stdin.write(b"k%d\t%d\n" % (n % 7, n))
                    n += 1
                p.stdin.flush()
                stop()
            out, _ = p.communicate(timeout=90)
            self.assertEqual((p.returncode, out), (0, b"%d sent, 0 failed\n" % n))
            status, out, _ = self.run_example("read_all", b.address, "t")
            self.assertEqual(status, 0)
            seen = {}
            for line in out.splitlines():
                _, _, key, value = line.split()
                seen.setdefault(key, []).append(int(value))
            self.assertEqual(seen, {"k%d" % k: list(range(k, n, 7)) for k in range(7)})


if __name__ == "__main__":
    harness.main()
