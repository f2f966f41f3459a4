"""Each kind of broker opens the log folders of the other: what one wrote, the other serves to the byte, after a clean
stop and after a kill; it goes on where the other stopped, and the first takes it back."""
import os
import unittest

import apache
import facts
import kwire
from harness import until

GROUPS = ("plain", "of-a", "of-b")
# what an Apache broker says of files that it does not like, or does not trust
DISTRUST = r"(?i)corrupt|recovering unflushed|rebuilding index|inconsistent|sanity|unexpected|invalid|mismatch|stray|truncat(ed|ing) .* due"


def dirs_of(broker):
    return broker.overrides["log.dirs"].split(",")


class Folders(unittest.TestCase):
    def start(self, version=apache.VERSION, **more):
        overrides = {"log.initial.task.delay.ms": 500, "log.cleaner.min.cleanable.ratio": "0.01"}
        overrides.update(more)
        c = apache.Mixed({1: "apache"}, start=False, overrides=overrides, version=version)
        b = c.brokers[1]
        b.overrides["log.dirs"] = ",".join(os.path.join(b.folder, n) for n in ("one", "two"))
        c.start_all()
        return c

    def topics(self, c):
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            c.create_topic("codec-" + codec, replication=1, configs={"segment.bytes": 20000, "index.interval.bytes": 1000})
        c.create_topic("compacted", replication=1, configs={
            "cleanup.policy": "compact", "segment.bytes": 30000, "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": 0, "min.compaction.lag.ms": 0})
        c.create_topic("txn", replication=1, configs={"segment.bytes": 8000, "index.interval.bytes": 500})
        c.create_topic("raw", replication=1)

    def facts(self, c):
        b = c.brokers[1]
        until("groups are there", lambda: self.coordinated(b), 30)
        return facts.of(b.port, GROUPS)

    def coordinated(self, b):
        with kwire.Conn(b.port) as k:
            for g in GROUPS:
                if k.call("FindCoordinator", 3, key=g, key_type=0)["error_code"]:
                    return False
                if k.call("OffsetFetch", 7, group_id=g, topics=None, require_stable=False)["error_code"]:
                    return False
        return True

    def same(self, c, before, what):
        after = self.facts(c)
        found = facts.differences(before, after)
        self.assertEqual(found, [], "%s:\n%s" % (what, "\n".join(line[:400] for line in found[:20])))

    def trusted(self, b):
        found = [line for line in b.lines[b.life:] if apache.re.search(DISTRUST, line)]
        self.assertEqual(found, [])

    def send(self, c, pid, sequence, n=5):
        """A batch of a producer: its base offset. Sent twice it is there once."""
        with c.conn() as k:
            data = kwire.simple_batch(*[b"%d" % (sequence + i) for i in range(n)], producer_id=pid, producer_epoch=0,
                                      sequence=sequence)
            at = kwire.produce_one(k, "raw", 0, data)
            return at

    def test_a_clean_stop(self):
        with self.start() as c:
            b = c.brokers[1]
            self.topics(c)
            apache.run_tool("Fill", b.address, "fill")
            with c.conn() as k:
                pid = k.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=60000, producer_id=-1,
                             producer_epoch=-1)["producer_id"]
            self.assertEqual(self.send(c, pid, 0), 0)
            until("it is compacted", lambda: b.has_line("cleaned log compacted-0"), 60)
            sequence = 0
            for kind in ("kafkad", "apache", "kafkad"):
                before = self.facts(c)
                c.switch(1, kind)
                self.same(c, before, "as %s sees it" % kind)
                self.trusted(b)
                self.assertEqual(self.send(c, pid, sequence), sequence)  # again: it knows it
                sequence += 5
                self.assertEqual(self.send(c, pid, sequence), sequence)
                if kind == "apache":
                    apache.run_tool("Fill", b.address, "finish")


    def test_after_a_kill_with_a_torn_end(self):
        with self.start() as c:
            b = c.brokers[1]
            self.topics(c)
            apache.run_tool("Fill", b.address, "fill")
            for kind in ("kafkad", "apache"):
                before = self.facts(c)
                b.kill()
                self.tear(b)
                c.switch(1, kind)
                self.same(c, before, "as %s sees it after a kill" % kind)
            apache.run_tool("Fill", b.address, "finish")

    def tear(self, b):
        """Half a batch at the end of each partition that has records."""
        for path in self.folders(b, ""):
            last = max(n for n in os.listdir(path) if n.endswith(".log"))
            with open(os.path.join(path, last), "r+b") as f:
                data = f.read()
                if data:
                    first = next(kwire.entries(data))[2]
                    f.write(first[:-1])

    def folders(self, b, start, end=""):
        return sorted(os.path.join(d, n) for d in dirs_of(b) for n in os.listdir(d)
                      if n.startswith(start) and n.endswith(end) and os.path.isdir(os.path.join(d, n)))

    def test_what_is_under_way_goes_on(self):
        """Deletions and moves between log dirs; and a folder that one kind has open is refused to the other."""
        with self.start() as c:
            b = c.brokers[1]
            for kind, other in (("apache", "kafkad"), ("kafkad", "apache")):
                c.switch(1, kind)
                gone, moved = "goes-" + kind, "moves-" + kind
                self.begin_delete(c, gone)
                there = self.begin_move(c, moved)
                before = self.facts(c)
                self.refused(c, other)
                b.stop()
                self.assertTrue(self.folders(b, moved, "-future"))
                self.assertTrue(self.folders(b, gone, "-delete"))
                self.throttle(c, None)
                b.overrides["log.segment.delete.delay.ms"] = 1000
                c.switch(1, other)
                until("it is moved", lambda: self.folders(b, moved) == [os.path.join(there, moved + "-0")], 60)
                until("it has gone", lambda: not self.folders(b, gone), 60)
                self.same(c, before, "as %s moved it" % other)
                del b.overrides["log.segment.delete.delay.ms"]

    def begin_delete(self, c, name):
        c.create_topic(name, replication=1)
        with c.conn() as k:
            kwire.produce_one(k, name, 0, kwire.simple_batch(b"x"))
            k.call("DeleteTopics", 5, topic_names=[name], timeout_ms=30000)
        until("it is to go", lambda: self.folders(c.brokers[1], name, "-delete"))
        with c.zk.client() as z:
            until("no node is left", lambda: not z.stat("/brokers/topics/" + name))

    def begin_move(self, c, name):
        """A topic that moves so slowly that it is not done; the dir that it goes to."""
        b = c.brokers[1]
        c.create_topic(name, replication=1)
        with c.conn() as k:
            for n in range(12):
                kwire.produce_one(k, name, 0, kwire.simple_batch(b"%d" % n + b"x" * 500000))
        self.throttle(c, b"1")
        here = os.path.dirname(self.folders(b, name)[0])
        there = next(d for d in dirs_of(b) if d != here)
        with c.conn() as k:
            a = k.call("AlterReplicaLogDirs", 1, dirs=[{"path": there, "topics": [{"name": name, "partitions": [0]}]}])
        self.assertEqual(a["results"][0]["partitions"][0]["error_code"], 0)
        until("it is under way", lambda: self.folders(b, name, "-future"))
        return there

    def refused(self, c, kind):
        """A second broker of this kind on the folders that are in use."""
        port = apache.zookeeper.free_ports(1)[0]
        second = apache.Slot(kind, c.zk, dict(c.brokers[1].overrides, listeners="PLAINTEXT://127.0.0.1:%d" % port))
        second.start(wait=False)
        self.assertNotEqual(second.wait_exit(apache.START_DEADLINE), 0)
        self.assertTrue(second.has_line(r"(?i)FATAL.*lock|ERROR.*lock|Failed to acquire lock"), second.lines[-10:])
        second.close()

    def throttle(self, c, rate):
        name = "replica.alter.log.dirs.io.max.bytes.per.second"
        with c.zk.client() as z:
            config = b'{"version":1,"config":{"%s":"%s"}}' % (name.encode(), rate) if rate else b'{"version":1,"config":{}}'
            if z.stat("/config/brokers/1"):
                z.set("/config/brokers/1", config)
            else:
                z.create("/config/brokers/1", config)
            z.create("/config/changes/config_change_", b'{"version":2,"entity_path":"brokers/1"}', flags=2)
        b = c.brokers[1]
        if not b.process:
            return

        def seen():
            with c.conn() as k:
                a = k.call("DescribeConfigs", 2, include_synonyms=False, resources=[
                    {"resource_type": 4, "resource_name": "1", "configuration_keys": [name]}])["results"][0]
            return any(x["value"] == rate.decode() for x in a["configs"])
        until("the rate is set", seen)

    def test_message_formats_of_old(self):
        with self.start(version=apache.OLD_VERSION, **{"inter.broker.protocol.version": "2.3"}) as c:
            b = c.brokers[1]
            for form in ("0.9.0", "0.10.2"):
                for codec in ("none", "gzip", "snappy", "lz4"):
                    name = "format-%s-%s" % (form, codec)
                    c.create_topic(name, replication=1, configs={"message.format.version": form, "segment.bytes": 20000})
            apache.run_tool("Fill", b.address, "old", version=apache.OLD_VERSION)
            for kind in ("kafkad", "apache", "kafkad"):
                before = facts.of(b.port, old=True)
                self.assertLessEqual({0, 1}, {raw[16] for name in before for raw in facts.entries_of(before[name])})
                c.switch(1, kind)
                found = facts.differences(before, facts.of(b.port, old=True))
                self.assertEqual(found, [])
                self.trusted(b)
                with c.conn() as k:
                    for form in ("0.9.0", "0.10.2"):
                        kwire.produce_one(k, "format-%s-none" % form, 0, kwire.message(0, b"k", b"v", magic=0 if "9" in form else 1,
                                                                                       timestamp=1000), version=2)


if __name__ == "__main__":
    apache.main()
