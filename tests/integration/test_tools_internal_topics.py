"""kafka-console-consumer's formatters for __consumer_offsets and __transaction_state: JSON, and the old names' text."""
import json
import struct

import groupwire
import harness
import kwire
from kwire import batch, produce_one
from tool_test import ToolTest

T = 1700000000000
NEW = "org.apache.kafka.tools.consumer."
OLD_GROUPS = "kafka.coordinator.group.GroupMetadataManager$"
OLD_TXN = "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter"


def versioned(name, version, **values):
    return struct.pack(">h", version) + kwire.encode(name, version, values)


KEY = versioned("OffsetCommitKey", 1, group="g1", topic="orders", partition=0)
GROUP_KEY = versioned("GroupMetadataKey", 2, group="g1")
TXN_KEY = versioned("TransactionLogKey", 0, transactional_id="tx1")
OFFSET = dict(offset=42, leader_epoch=-1, metadata="", commit_timestamp=T)


class InternalTopicsTest(ToolTest):
    OVERRIDES = groupwire.OVERRIDES

    def rows(self, topic, formatter, expected, *args, **kw):
        r = self.tool("kafka-console-consumer", "--topic", topic, "--partition", 0, "--from-beginning", "--formatter",
                      formatter, "--max-messages", expected, "--timeout-ms", 20000, *args, **kw)
        return r.lines

    def write(self, *records, stem="t"):
        """A topic of these records: the formatters look at records only."""
        t = self.topic(stem)
        self.create(t)
        with kwire.Conn(self.broker.port) as c:
            produce_one(c, t, 0, batch([(T, k, v) for k, v in records]))
        return t

    def test_offsets(self):
        records = [(KEY, versioned("OffsetCommitValue", 3, **OFFSET)),
                   (KEY, versioned("OffsetCommitValue", 1, expire_timestamp=T + 5, **dict(OFFSET, metadata="m"))),
                   (KEY, versioned("OffsetCommitValue", 3, **dict(OFFSET, leader_epoch=7))), (GROUP_KEY, None), (KEY, None),
                   (b"\0\x1e", b"x"), (None, b"x")]
        t = self.write(*records)
        key = '{"key":{"version":1,"data":{"group":"g1","topic":"orders","partition":0}},"value":'
        rows = self.rows(t, NEW + "OffsetsMessageFormatter", len(records))
        self.assertEqual(rows, [
            key + '{"version":3,"data":{"offset":42,"leaderEpoch":-1,"metadata":"","commitTimestamp":%d}}}' % T,
            key + '{"version":1,"data":{"offset":42,"metadata":"m","commitTimestamp":%d,"expireTimestamp":%d}}}' % (T, T + 5),
            key + '{"version":3,"data":{"offset":42,"leaderEpoch":7,"metadata":"","commitTimestamp":%d}}}' % T,
            key + "null}"])
        self.assertEqual(self.rows(t, "OffsetsMessageFormatter", len(records)), rows)
        self.assertEqual(self.rows(t, OLD_GROUPS + "OffsetsMessageFormatter", len(records)), [
            "[g1,orders,0]::OffsetAndMetadata(offset=42, leaderEpoch=Optional.empty, metadata=, commitTimestamp=%d, "
            "expireTimestamp=None)" % T,
            "[g1,orders,0]::OffsetAndMetadata(offset=42, leaderEpoch=Optional.empty, metadata=m, commitTimestamp=%d, "
            "expireTimestamp=Some(%d))" % (T, T + 5),
            "[g1,orders,0]::OffsetAndMetadata(offset=42, leaderEpoch=Optional[7], metadata=, commitTimestamp=%d, "
            "expireTimestamp=None)" % T,
            "[g1,orders,0]::NULL"])

    def test_groups(self):
        member = dict(member_id="m-1", group_instance_id="i", client_id="c", client_host="/127.0.0.1", rebalance_timeout=1,
                      session_timeout=2, subscription=b"\1\2\3", assignment=b"")
        group = dict(protocol_type="consumer", generation=3, protocol="range", leader="m-1", current_state_timestamp=T)
        t = self.write((GROUP_KEY, versioned("GroupMetadataValue", 3, members=[member, dict(member, member_id="m-2",
                                                                                            group_instance_id=None)], **group)),
                       (GROUP_KEY, versioned("GroupMetadataValue", 0, members=[member], **group)),
                       (GROUP_KEY, versioned("GroupMetadataValue", 2, members=[], **dict(group, protocol_type=""))),
                       (KEY, None), (GROUP_KEY, None))
        rows = [json.loads(row) for row in self.rows(t, NEW + "GroupMetadataMessageFormatter", 5)]
        self.assertEqual([r["key"] for r in rows], [{"version": 2, "data": {"group": "g1"}}] * 4)
        self.assertEqual(rows[3]["value"], None)
        first = rows[0]["value"]["data"]
        self.assertEqual((first["generation"], first["members"][0]["groupInstanceId"], first["members"][0]["subscription"]),
                         (3, "i", "AQID"))
        text = ("sessionTimeoutMs=2, rebalanceTimeoutMs=%d, supportedProtocols=List(range))")
        one = "m-1 -> MemberMetadata(memberId=m-1, groupInstanceId=%s, clientId=c, clientHost=/127.0.0.1, "
        two = "m-2 -> MemberMetadata(memberId=m-2, groupInstanceId=None, clientId=c, clientHost=/127.0.0.1, "
        head = "g1::GroupMetadata(groupId=g1, generation=3, protocolType=%s, currentState=%s, members=HashMap("
        self.assertEqual(self.rows(t, OLD_GROUPS + "GroupMetadataMessageFormatter", 5), [
            head % ("Some(consumer)", "Stable") + one % "Some(i)" + text % 1 + ", " + two + text % 1 + "))",
            head % ("Some(consumer)", "Stable") + one % "None" + text % 2 + "))",
            head % ("None", "Empty") + "))", "g1::NULL"])

    def test_transactions(self):
        value = dict(producer_id=1000, producer_epoch=5, transaction_timeout_ms=60000, transaction_status=1,
                     transaction_partitions=[dict(topic="orders", partition_ids=[0, 1])],
                     transaction_last_update_timestamp_ms=T, transaction_start_timestamp_ms=T - 1)
        t = self.write((TXN_KEY, versioned("TransactionLogValue", 0, **value)), (TXN_KEY, None))
        key = '{"key":{"version":0,"data":{"transactionalId":"tx1"}},"value":'
        self.assertEqual(self.rows(t, NEW + "TransactionLogMessageFormatter", 2), [
            key + '{"version":0,"data":{"producerId":1000,"producerEpoch":5,"transactionTimeoutMs":60000,'
                  '"transactionStatus":1,"transactionPartitions":[{"topic":"orders","partitionIds":[0,1]}],'
                  '"transactionLastUpdateTimestampMs":%d,"transactionStartTimestampMs":%d}}}' % (T, T - 1),
            key + "null}"])
        self.assertEqual(self.rows(t, OLD_TXN, 2), [
            "tx1::TransactionMetadata(transactionalId=tx1, producerId=1000, lastProducerId=-1, producerEpoch=5, "
            "lastProducerEpoch=-1, txnTimeoutMs=60000, state=Ongoing, pendingState=None, topicPartitions=HashSet(orders-0, "
            "orders-1), txnStartTimestamp=%d, txnLastUpdateTimestamp=%d)" % (T - 1, T), "tx1::NULL"])

    def test_records_that_are_none(self):
        bad = [(KEY[:-1], b""), (KEY, b"\0"), (KEY, b"\0\3\0"), (b"", b"")]
        good = (KEY, versioned("OffsetCommitValue", 3, **OFFSET))
        for i, (key, value) in enumerate(bad):
            t = self.write((key, value), good, stem="t%d" % i)
            for formatter in [NEW, OLD_GROUPS]:
                r = self.tool("kafka-console-consumer", "--topic", t, "--partition", 0, "--from-beginning", "--formatter",
                              formatter + "OffsetsMessageFormatter", "--max-messages", 2, "--timeout-ms", 20000, status=1)
                self.assertIn("terminating consumer process: the ", r.err)
                self.assertEqual(len(self.rows(t, formatter + "OffsetsMessageFormatter", 2, "--skip-message-on-error")), 1)
        t = self.write((KEY, b"\0\x63"))
        self.assertIn('"value":{"version":99,"data":"unknown"}', self.rows(t, NEW + "OffsetsMessageFormatter", 1)[0])

    def test_a_real_group(self):
        with kwire.Conn(self.broker.port) as c:
            t = self.topic()
            self.create(t, 2)
            groupwire.coordinator(c, "real")
            groupwire.commit(c, "real", t, {0: 5, 1: 7})
        r = self.tool("kafka-console-consumer", "--topic", "__consumer_offsets", "--partition",
                      groupwire.partition_of("real"), "--from-beginning", "--formatter", NEW + "OffsetsMessageFormatter",
                      "--max-messages", 2, "--timeout-ms", 20000)
        rows = [json.loads(line) for line in r.lines]
        self.assertEqual({row["key"]["data"]["partition"]: row["value"]["data"]["offset"] for row in rows}, {0: 5, 1: 7})


if __name__ == "__main__":
    harness.main()
