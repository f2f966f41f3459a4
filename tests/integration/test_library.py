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
        for name in ["produce", "consume"]:
            subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-I" + os.path.join(harness.ROOT, "include"),
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


if __name__ == "__main__":
    harness.main()
