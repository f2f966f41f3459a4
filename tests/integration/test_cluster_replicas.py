"""What replicas must not do on a cluster: leave the ISR for want of records, lose their high watermarks while the leader is
away, or stand still because one of many partitions cannot be copied."""
import datetime
import glob
import os
import re
import shutil
import time
import unittest

import kwire
import metricspage
from cluster import Cluster, History
from harness import until


def flip_a_byte(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes([byte[0] ^ 0xff]))


def checkpoint(broker):
    """{(topic, partition): offset} of replication-offset-checkpoint."""
    try:
        with open(os.path.join(broker.data, "replication-offset-checkpoint")) as f:
            return {(t, int(p)): int(o) for t, p, o in (line.split() for line in f.read().splitlines()[2:])}
    except FileNotFoundError:
        return {}


class Replicas(unittest.TestCase):
    def test_idle_partitions_stay_in_sync(self):
        with Cluster(3, overrides={"replica.lag.time.max.ms": "1000"}) as c:
            c.create_topic("idle", partitions=20)
            c.create_topic("busy", partitions=1)
            c.wait_isr("idle", 20, 3)

            def versions():
                with c.zk.client() as z:
                    return [z.stat("/brokers/topics/idle/partitions/%d/state" % p)["version"] for p in range(20)]
            before = versions()
            with History(c, "busy", 1) as h:
                end = time.monotonic() + 4  # four times the lag, in which nothing is to happen
                while time.monotonic() < end:
                    h.grow(10)
            h.check()
            self.assertEqual(versions(), before)

    def test_high_watermarks_outlive_a_life_without_a_leader(self):
        """Only one of three starts, is killed, and all start again: nothing that was committed is cut."""
        with Cluster(3, overrides={"replica.high.watermark.checkpoint.interval.ms": "100",
                                   "metrics.http.listener": "127.0.0.1:0"}) as c:
            c.create_topic("t", partitions=3)
            c.wait_isr("t", 3, 3)
            with History(c, "t", 3) as h:
                h.grow(100)
            h.check()
            ends = {p: len(c.log_of("t", p)) for p in range(3)}
            alone = next(i for i in c.running() if i != c.controller)

            def marks():
                return {k[1]: v for k, v in checkpoint(c.broker(alone)).items() if k[0] == "t"}
            until("all is committed there, too", lambda: marks() == ends)
            replica, controller = "kafka_server_replicamanager_", "kafka_controller_kafkacontroller_"

            def over_all(name):
                return sum(metricspage.read(c.broker(i)).get(name) for i in c.running())
            until("their metrics tell three leaders", lambda: over_all(replica + "leadercount") == 3)
            until("and one whole ISR each", lambda: over_all(replica + "underreplicatedpartitions") == 0)
            self.assertEqual(over_all(controller + "activecontrollercount"), 1)
            self.assertEqual(over_all(controller + "globaltopiccount"), 1)
            traffic = "kafka_server_brokertopicmetrics_"
            self.assertGreater(over_all(traffic + "bytesin_total"), 0)
            until("both followers have all", lambda: over_all(traffic + "replicationbytesin_total") ==
                  2 * over_all(traffic + "bytesin_total"))
            self.assertGreaterEqual(over_all(traffic + "replicationbytesout_total"),  # some may be fetched twice
                                    over_all(traffic + "replicationbytesin_total"))
            c.broker(alone).stop()  # out of the ISRs: nobody can lead while it is alone
            until("its metrics tell who is missing", lambda: over_all(replica + "underreplicatedpartitions") == 3)
            self.assertEqual(over_all(controller + "offlinepartitionscount"), 0)
            for i in c.running():
                c.broker(i).stop()
            self.assertEqual(marks(), ends)
            c.broker(alone).start()
            path = os.path.join(c.broker(alone).data, "replication-offset-checkpoint")
            written = os.stat(path).st_mtime_ns
            until("the watermarks are written again", lambda: os.stat(path).st_mtime_ns != written)
            c.broker(alone).kill()
            self.assertEqual(marks(), ends)
            for i in (1, 2, 3):
                c.broker(i).start()
            c.wait_isr("t", 3, 3)
            h.check()
            h.check_copies()

    def test_one_corrupt_partition_does_not_hold_up_the_others(self):
        """The follower gets nothing of it, the others are copied, and it does not try in a busy loop."""
        with Cluster(2, overrides={"min.insync.replicas": "1"}) as c:
            c.create_topic("t", assignment=[[1, 2]] * 10)
            for p in range(10):
                c.wait_state("t", p, lambda s: sorted(s["isr"]) == [1, 2])
            with c.conn(1) as k:
                for p in range(10):
                    for _ in range(3):
                        a = kwire.produce(k, 9, [("t", p, kwire.simple_batch(b"x" * 1000))], acks=-1)[0]
                        self.assertEqual(a["error_code"], 0)
            follower = c.broker(2)
            follower.stop()
            for p in range(10):
                c.wait_state("t", p, lambda s: s["isr"] == [1] and s["leader"] == 1)
            shutil.rmtree(os.path.join(follower.data, "t-4"))
            flip_a_byte(glob.glob(os.path.join(c.broker(1).data, "t-4", "*.log"))[0], 500)
            mark = len(follower.lines)
            follower.start()
            for p in set(range(10)) - {4}:
                c.wait_state("t", p, lambda s: sorted(s["isr"]) == [1, 2])

            def tries():
                said = [line.split()[0] for line in follower.lines[mark:] if re.search(r"t-4: .*CORRUPT_MESSAGE", line)]
                return [datetime.datetime.strptime(t, "%Y-%m-%dT%H:%M:%S.%fZ") for t in said]
            until("it has tried six times", lambda: len(tries()) >= 6)
            self.assertEqual(c.state("t", 4)["isr"], [1])
            # Each try waits twice as long as the one before: 20 ms at first, a second at last. (Its clock's, and a slow
            # machine makes it longer.)
            for n in range(1, 6):
                waited = (tries()[n] - tries()[n - 1]).total_seconds()
                self.assertGreater(waited, 0.018 * 2 ** (n - 1))
            with c.conn(1) as k:  # meanwhile the others are as ever
                a = kwire.produce(k, 9, [("t", 3, kwire.simple_batch(b"y"))], acks=-1)[0]
            self.assertEqual(a["error_code"], 0)


if __name__ == "__main__":
    unittest.main()
