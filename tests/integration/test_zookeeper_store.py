"""The store on ZooKeeper keeps the promises that the embedded one keeps: the same rules (tests/unit/metadata/
store_rules.c), run against a real server."""
import os
import subprocess
import unittest

import harness
from zookeeper import ZooKeeper


class Rules(unittest.TestCase):
    def test_the_rules_of_every_store(self):
        with ZooKeeper() as zk:
            done = subprocess.run([os.path.join(harness.bin_dir(), "tests", "zookeeper_store"),
                                   str(zk.servers[0].port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=240)
            out = done.stdout.decode("utf-8", "replace")
            self.assertEqual(done.returncode, 0, out)
            self.assertIsNone(harness.SANITIZER.search(out), out)


if __name__ == "__main__":
    harness.main()
