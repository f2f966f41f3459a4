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
    def start(self):
        c = apache.Mixed({1: "apache"}, each=lambda i: {}, start=False, overrides={
            "file.delete.delay.ms": 1000, "log.segment.delete.delay.ms": 1000, "log.cleaner.min.cleanable.ratio": "0.01",
            "log.initial.task.delay.ms": 500})
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


if __name__ == "__main__":
    apache.main()
