"""Three brokers on a real ZooKeeper, at random: killed, stopped, paused, their sessions ended, alone or together, while
records are produced and read. In the end every acknowledged record is there once and in order, and nothing that was
seen is gone, and the replicas' logs are the same bytes. KAFKAD_TEST_SEED replays a run's choices, KAFKAD_TEST_ROUNDS
makes it longer, or KAFKAD_TEST_SECONDS (of faults)."""
import os
import random
import signal
import threading
import time
import unittest

import harness
from cluster import Cluster, History


class Chaos(unittest.TestCase):
    PARTITIONS = 4

    def wait(self, seconds):
        """A pause that is part of the fault, not a wait for something."""
        threading.Event().wait(seconds)

    def kill(self, c, i):
        c.broker(i).kill()
        self.wait(self.random.random() * 4)
        c.broker(i).start()

    def kill_controller(self, c, i):
        self.kill(c, c.controller)

    def kill_two(self, c, i):
        other = self.random.choice([j for j in c.running() if j != i])
        c.broker(i).kill()
        self.wait(self.random.random() * 2)
        c.broker(other).kill()
        self.wait(self.random.random() * 3)
        c.broker(i).start()
        c.broker(other).start()

    def stop(self, c, i):
        c.broker(i).stop()
        self.wait(self.random.random() * 2)
        c.broker(i).start()

    def pause(self, c, i):
        c.broker(i).process.send_signal(signal.SIGSTOP)
        self.wait(self.random.random() * 6)  # the session lasts 2 s
        c.broker(i).process.send_signal(signal.SIGCONT)

    def expire(self, c, i):
        with c.zk.client() as z:
            node = z.stat("/brokers/ids/%d" % i)
        if node:
            c.zk.expire(node["owner"])

    def run_chaos(self, rounds, **args):
        seed = int(os.environ.get("KAFKAD_TEST_SEED", random.randrange(1 << 30)))
        self.random = random.Random(seed)
        faults = [self.kill, self.kill, self.kill_controller, self.kill_two, self.stop, self.pause, self.expire]
        done = ["seed %d" % seed]
        seconds = float(os.environ.get("KAFKAD_TEST_SECONDS", "0"))
        end = time.monotonic() + seconds
        try:
            with Cluster(3, **args) as c:
                c.create_topic("t", partitions=self.PARTITIONS)
                # (The pause: to check very many records would take longer than all the faults.)
                with History(c, "t", self.PARTITIONS, pause=0.005) as h:
                    h.grow(50)
                    while time.monotonic() < end if seconds else len(done) <= rounds:
                        fault, broker = self.random.choice(faults), self.random.choice(c.running())
                        done.append("%s %d" % (fault.__name__, broker))
                        fault(c, broker)
                        c.wait_isr("t", self.PARTITIONS, 3, deadline=60)
                        h.grow(20)
                h.check()
                h.check_copies()
                same = h.check_bytes()
                print("%s: %d faults, %s; copies equal, %d bytes of all replicas" % (done[0], len(done) - 1, h.totals(),
                                                                                     same))
        except BaseException:
            print("\n".join(done))
            raise

    def test_faults_at_random(self):
        self.run_chaos(int(os.environ.get("KAFKAD_TEST_ROUNDS", "6")))

    def test_faults_in_a_mixed_cluster(self):
        levels = ["2.3", "2.7", "3.9"]
        self.run_chaos(int(os.environ.get("KAFKAD_TEST_ROUNDS", "4")),
                       each=lambda i: {"inter.broker.protocol.version": levels[i - 1]})


if __name__ == "__main__":
    harness.main()
