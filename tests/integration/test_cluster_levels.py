"""Clusters of older levels of inter.broker.protocol.version: ISRs that leaders write into ZooKeeper, truncation by questions,
old control requests; and levels mixed, as in a rolling upgrade."""
import unittest

import harness
from cluster import Cluster, History
from harness import until


class Levels(unittest.TestCase):
    def lives(self, levels):
        with Cluster(3, each=lambda i: {"inter.broker.protocol.version": levels[i - 1]}) as c:
            c.create_topic("t", partitions=3)
            with History(c, "t", 3) as h:
                h.grow(100)
                for dead in (c.leader("t", 0), c.controller):
                    c.broker(dead).kill()
                    for p in range(3):
                        c.wait_state("t", p, lambda s: s["leader"] in c.running() and dead not in s["isr"])
                    h.grow(100)
                    c.broker(dead).start()
                    c.wait_isr("t", 3, 3)
                h.grow(100)
            h.check()
            h.check_copies()
            with c.zk.client() as z:
                if len(set(levels)) == 1:  # else a topic gets its id as soon as somebody controls who gives ids
                    self.assertEqual("topic_id" in z.json("/brokers/topics/t"), levels[0] >= "2.8")
                until("notices are gone", lambda: z.children("/isr_change_notification") == [])

    def test_2_3(self):
        self.lives(["2.3", "2.3", "2.3"])

    def test_2_7(self):
        self.lives(["2.7-IV1"] * 3)

    def test_2_8(self):
        self.lives(["2.8"] * 3)

    def test_mixed(self):
        self.lives(["2.3", "2.7", "3.9"])


if __name__ == "__main__":
    harness.main()
