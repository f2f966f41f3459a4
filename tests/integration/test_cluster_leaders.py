"""Preferred leaders that come back by themselves: auto.leader.rebalance.enable, leader.imbalance.check.interval.seconds,
leader.imbalance.per.broker.percentage."""
import unittest

import harness
from cluster import Cluster, History
from harness import until


class Rebalance(unittest.TestCase):
    def reorder(self, c, topic, partition, ids):
        """Another preferred leader, the leader stays."""
        a = c.on_controller("AlterPartitionReassignments", 0, timeout_ms=30000, topics=[
            {"name": topic, "partitions": [{"partition_index": partition, "replicas": ids}]}])
        self.assertEqual(a["responses"][0]["partitions"][0]["error_code"], 0, a)

    def test_leaders_come_back_after_a_restart(self):
        with Cluster(3, overrides={"leader.imbalance.check.interval.seconds": "1"}) as c:
            c.create_topic("t", assignment=[[1, 2, 3], [1, 3, 2], [2, 1, 3]])
            with History(c, "t", 3) as h:
                h.grow(100)
                c.broker(1).kill()
                for p in (0, 1):
                    c.wait_state("t", p, lambda s: s["leader"] in (2, 3))
                h.grow(50)
                c.broker(1).start()
                for p, want in ((0, 1), (1, 1), (2, 2)):
                    c.wait_state("t", p, lambda s, want=want: s["leader"] == want and len(s["isr"]) == 3)
                h.grow(50)
            h.check()

    def test_little_imbalance_is_left(self):
        """Broker 1: one of its four partitions is led by another, 25 %; broker 3: its only one, 100 %."""
        with Cluster(3, overrides={"leader.imbalance.check.interval.seconds": "1",
                                   "leader.imbalance.per.broker.percentage": "40"}) as c:
            c.create_topic("t", assignment=[[1, 2], [1, 2], [1, 2], [2, 1]])
            c.wait_isr("t", 4, 2)
            self.reorder(c, "t", 3, [1, 2])
            c.create_topic("u", assignment=[[2, 3]])
            c.wait_isr("u", 1, 2)
            self.reorder(c, "u", 0, [3, 2])
            c.wait_state("u", 0, lambda s: s["leader"] == 3)  # so there was a check
            self.assertEqual(c.leader("t", 3), 2)
            # two of four: above 40 %
            self.reorder(c, "t", 0, [2, 1])
            c.wait_state("t", 0, lambda s: s["leader"] == 2)  # 100 % of broker 2's
            self.reorder(c, "t", 0, [1, 2])
            for p in (0, 3):
                c.wait_state("t", p, lambda s: s["leader"] == 1)

    def test_only_to_replicas_in_sync(self):
        """One that is away is passed over until it is back, whatever the others need."""
        with Cluster(3, overrides={"leader.imbalance.check.interval.seconds": "1"}) as c:
            c.create_topic("t", assignment=[[1, 2]])
            c.create_topic("u", assignment=[[2, 3]])
            c.wait_isr("t", 1, 2)
            c.wait_isr("u", 1, 2)
            c.broker(1).stop()
            c.wait_state("t", 0, lambda s: s["leader"] == 2)
            self.reorder(c, "u", 0, [3, 2])
            c.wait_state("u", 0, lambda s: s["leader"] == 3)
            self.assertEqual(c.leader("t", 0), 2)
            c.broker(1).start()
            until("it leads again", lambda: c.leader("t", 0) == 1)


if __name__ == "__main__":
    harness.main()
