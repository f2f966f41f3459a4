"""ZooKeeper that goes away and comes back: what a broker leads is served on, administration waits or times out with
a clear answer, and nothing is lost."""
import threading
import unittest

import harness
import kwire
from harness import create_topic, delete_topic, metadata, until
from zookeeper import ZooKeeper


def values(port, topic):
    """All records of partition 0."""
    with kwire.Conn(port) as c:
        answer = kwire.fetch(c, 11, [(topic, 0, 0)])[0][2]
        assert answer["error_code"] == 0, answer
        return [r[3] for r in kwire.records(answer["records"])]


class Away(unittest.TestCase):
    def setUp(self):
        self.zk = ZooKeeper()

    def tearDown(self):
        failed = any(e for _, e in self._outcome.errors) if hasattr(self._outcome, "errors") else False
        self.zk.close(not failed)

    def produce(self, c, value, topic="t"):
        kwire.produce_one(c, topic, 0, kwire.simple_batch(value))

    def leave_and_return(self, leave, come_back, long, connect=None):
        """`long`: the session ends meanwhile; None: perhaps."""
        b = self.zk.broker(1, {"zookeeper.session.timeout.ms": "1500" if long else "20000",
                               "request.timeout.ms": "500"}, connect=connect)
        with b.client() as k, kwire.Conn(b.port) as c:
            self.assertEqual(create_topic(k, "t"), 0)
            self.produce(c, b"before")
            before = self.zk.sessions_of("/brokers/ids/1")
            mark = b.mark()
            leave()
            b.wait_line("connection to ZooKeeper lost", after=mark)
            self.produce(c, b"without")
            self.assertEqual(values(b.port, "t"), [b"before", b"without"])
            self.assertEqual(create_topic(k, "late"), 7)  # REQUEST_TIMED_OUT
            self.assertEqual(delete_topic(k, "t2", timeout_ms=300), 3)
            done = []
            waiting = threading.Thread(target=lambda: done.append(self.create_late(b)))
            waiting.start()
            come_back()
            b.wait_line("connected to .*session", after=mark)
            if long:
                b.wait_line("session 0x%x has expired" % before, after=mark)
                b.wait_line("registered with epoch", after=mark)
            waiting.join()
            self.assertEqual(done, [0])
            self.produce(c, b"after")
            self.assertEqual(values(b.port, "t"), [b"before", b"without", b"after"])
            self.assertEqual(sorted(metadata(k, None)["topics"]), ["late", "t"])
            with self.zk.client() as z:
                if long is not None:
                    self.assertEqual(z.stat("/brokers/ids/1")["owner"] == before, not long)
            b.restart()
            self.assertEqual(values(b.port, "t"), [b"before", b"without", b"after"])

    def create_late(self, b):
        with b.client(deadline=60) as k:
            error = 7
            while error in (7, 41):  # REQUEST_TIMED_OUT, and as the session ends NOT_CONTROLLER
                error = create_topic(k, "late")
            return error

    def test_a_server_that_is_killed_and_started_again(self):
        self.leave_and_return(self.zk.kill, self.zk.start, long=False)

    def test_a_server_that_hangs(self):
        server = self.zk.servers[0]
        self.leave_and_return(server.pause, server.resume, long=None)

    def test_a_cut_that_the_session_does_not_outlive(self):
        proxy = self.zk.proxy()

        def come_back():
            with self.zk.client() as z:
                until("the session is over", lambda: not z.stat("/brokers/ids/1"))
            proxy.mend()
        self.leave_and_return(proxy.cut, come_back, long=True, connect=proxy.address)

    def test_a_broker_stops_without_its_server(self):
        b = self.zk.broker(1)
        mark = b.mark()
        self.zk.kill()
        b.wait_line("connection to ZooKeeper lost", after=mark)
        b.stop()

    def test_a_start_waits_for_a_server(self):
        self.zk.kill()
        b = self.zk.broker(1, start=False)
        b.start(wait=False)
        b.wait_line("ZooKeeperClient")
        self.zk.start()
        b.wait_line(r"KafkaServer id=1\] started", deadline=60)


class Ensemble(unittest.TestCase):
    def setUp(self):
        self.zk = ZooKeeper(3)

    def tearDown(self):
        failed = any(e for _, e in self._outcome.errors) if hasattr(self._outcome, "errors") else False
        self.zk.close(not failed)

    def test_any_server_may_go(self):
        b = self.zk.broker(1, {"zookeeper.session.timeout.ms": "20000"})
        epoch = None
        with b.client(deadline=60) as k:
            for i, how in enumerate(("leader killed", "others killed in turn", "leader hangs")):
                leader = self.zk.leader
                others = [s for s in self.zk.servers if s is not leader]
                for victim in [leader] if "leader" in how else others:
                    (victim.pause if "hangs" in how else victim.kill)()
                    self.assertEqual(create_topic(k, "t%d-%d" % (i, victim.number), timeout_ms=50000), 0, how)
                    if "hangs" in how:
                        victim.resume()
                    else:
                        victim.start()
                    victim.wait_up()
                with self.zk.client() as z:
                    epoch = epoch or z.stat("/brokers/ids/1")["czxid"]
                    self.assertEqual(z.stat("/brokers/ids/1")["czxid"], epoch)  # still the same session


if __name__ == "__main__":
    harness.main()
