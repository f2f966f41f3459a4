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


@unittest.skipIf(cache_has("ASAN:BOOL=ON") or cache_has("TSAN:BOOL=ON"), "sanitizers cannot be linked to from outside")
class ExamplesTest(harness.BrokerTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.mkdtemp(prefix="kafkad-test-")
        for name in ["produce", "consume", "group_consumer", "admin"]:
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
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out, "".join("%s-0 at offset %d\n" % (t, i) for i in range(3)))
        status, out, err = self.run_example("consume", self.broker.address, t, "3")
        self.assertEqual((status, out, err), (0, "0 one\n1 two\n2 three\n", ""))

    def test_admin_and_group(self):
        t, g = self.topic(), "g"
        status, out, err = self.run_example("admin", self.broker.address, "create", t, "2")
        self.assertEqual((status, out, err), (0, "created %s with 2 partitions\n" % t, ""))
        status, _, err = self.run_example("admin", self.broker.address, "create", t, "2")
        self.assertEqual(status, 1)
        self.assertIn("TOPIC_ALREADY_EXISTS", err)
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


if __name__ == "__main__":
    harness.main()
