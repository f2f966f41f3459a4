"""Every metric of docs/metrics.md is moved by what it tells of. A table says by which action; what nothing moves here is
in STAY, with where it is tested instead, or why not. One cluster of two brokers goes through all."""
import os
import re
import signal
import struct
import unittest

import groupwire
import kwire
import metricspage
import saslwire
import txnwire
from cluster import Cluster
from harness import until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOPIC, BROKER = 2, 4  # resource types

STAY = {
    "process_max_fds": "a limit", "process_threads": "none are begun here", "process_start_time_seconds": "fixed",
    "process_virtual_memory_bytes": "may be enough as it is", "process_resident_memory_bytes": "the same",
    "kafkad_build_info": "fixed", "kafka_server_app_info": "fixed", "kafka_server_kafkaserver_clusterid": "fixed",
    "kafka_server_kafkaserver_brokerstate": "the endpoint is open while it runs",
    "kafka_server_kafkaserver_linux_disk_read_bytes": "what is read is in memory",
    "kafka_server_kafkaserver_linux_disk_write_bytes": "the folder may be in memory",
    "kafka_server_replicamanager_offlinereplicacount": "a failed disk",
    "kafka_server_replicamanager_failedisrupdates_total": "replica/test_partition_isr",
    "kafka_server_replicamanager_partitionswithlatetransactionscount": "takes five minutes",
    "kafka_server_replicafetchermanager_failedpartitionscount": "replica/test_fetcher",
    "kafka_log_logmanager_offlinelogdirectorycount": "a failed disk",
    "kafka_log_logmanager_logdirectoryoffline": "a failed disk",
    "kafka_log_logcleanermanager_uncleanable_partitions_count": "a damaged log: log/test_cleaner_threads",
    "kafka_log_logcleanermanager_uncleanable_bytes": "the same",
    "kafka_log_logcleaner_max_buffer_utilization_percent": "log/test_cleaner_threads, like the rest of the cleaner's",
    "kafka_log_logcleaner_cleaner_recopy_percent": "the same", "kafka_log_logcleaner_max_clean_time_secs": "the same",
    "kafka_log_logcleaner_max_compaction_delay_secs": "the same",
    "kafka_log_logcleanermanager_max_dirty_percent": "the same",
    "kafka_controller_kafkacontroller_controllerstate": "controller/test_controller_counts: for moments only",
    "kafka_controller_controllereventmanager_eventqueuesize": "the same",
    "kafka_controller_controllerchannelmanager_totalqueuesize": "controller/test_peer_channel: for moments only",
    "kafka_controller_controllerstats_uncleanleaderelections_total": "controller/test_controller_counts",
    "kafka_controller_controllerstats_logdirchangerateandtimems": "a failed disk",
    "kafka_controller_controllerstats_leaderandisrresponsereceivedrateandtimems": "a failed disk",
    "kafka_coordinator_group_groupmetadatamanager_numgroupsdead": "for moments only",
    "kafka_server_group_coordinator_metrics_offset_expiration_count": "coordinator/test_group_shard",
    "kafka_server_group_coordinator_metrics_partition_load_time_max": "may be less than a ms",
    "kafka_server_group_coordinator_metrics_partition_load_time_avg": "the same",
    "kafka_server_transaction_coordinator_metrics_partition_load_time_max": "the same",
    "kafka_server_transaction_coordinator_metrics_partition_load_time_avg": "the same",
    "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize":
        "coordinator/test_txn_markers",
    "kafka_coordinator_transaction_transactionmarkerchannelmanager_logappendretryqueuesize": "for moments only",
    "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total": "server/test_fetch_session",
    "kafka_server_sessionexpirelistener_sessionstate": "for moments only, in which nobody answers",
    "kafka_server_sessionexpirelistener_zookeeperauthfailures_total": "no credentials here",
}


def entity(**parts):
    return [{"entity_type": k, "entity_name": v} for k, v in parts.items()]


def changed(batch, at, value):
    """The batch with these bytes, and (but for the checksum's own) with the right checksum."""
    b = bytearray(batch)
    b[at:at + len(value)] = value
    if not 17 <= at < 21:
        b[17:21] = struct.pack(">I", kwire.crc32c(bytes(b[21:])))
    return bytes(b)


class Moves(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(ROOT, "docs/metrics.md"), encoding="utf-8") as f:
            cls.rows = {m[0]: (m[1], re.findall(r"\w+", m[2])) for m in
                        re.findall(r"^\| `([a-z0-9_]+)` \| (counter|gauge|summary) \| ([^|]*) \|", f.read(), re.M)}

    def pages(self):
        return {i: metricspage.read(self.c.broker(i)) for i in self.c.running() if i != self.paused}

    def of(self, pages, name):
        """All samples of a family but its quantiles, by broker and labels."""
        return {(i, key): v for i, p in pages.items() for key, v in p.samples.items()
                if key[0] in (name, name + "_count") and "quantile" not in dict(key[1])}

    def moves(self, what, action, names):
        unknown = set(names) - set(self.rows)
        self.assertFalse(unknown, what)
        before = self.pages()
        keep = action()
        left = set(names)

        def moved():
            now = self.pages()
            left.difference_update([n for n in left if self.of(now, n) != self.of(before, n)])
            return not left
        try:
            until("%s moves its metrics" % what, moved)
        except AssertionError as e:
            raise AssertionError("%s: %s" % (e, sorted(left))) from None
        self.moved |= set(names)
        return keep

    def configure(self, kind, name, **configs):
        a = self.c.on_controller("IncrementalAlterConfigs", 1, validate_only=False, resources=[
            {"resource_type": kind, "resource_name": name, "configs": [
                {"name": n.replace("_", "."), "config_operation": 1 if v is None else 0, "value": v}
                for n, v in configs.items()]}])
        self.assertEqual([r["error_code"] for r in a["responses"]], [0])

    def at_leader(self, topic, partition=0, client="test"):
        k = kwire.Conn(self.c.broker(self.c.leader(topic, partition)).port, client_id=client)
        self.addCleanup(k.close)
        return k

    def send(self, topic, batch=None, version=9, k=None, **options):
        options.setdefault("acks", 1)
        batch = batch or kwire.simple_batch(b"x" * 100)
        return kwire.produce(k or self.at_leader(topic), version, [(topic, 0, batch)], **options)[0]["error_code"]

    def read(self, topic, version=11, k=None, **options):
        return kwire.fetch(k or self.at_leader(topic), version, [(topic, 0, 0)], **options)

    # -- what is done

    def traffic(self):
        for _ in range(3):
            self.assertEqual(self.send("t", acks=-1), 0)
        self.read("t")

    def refusals(self):
        batch = kwire.simple_batch(b"x")
        self.assertEqual(self.send("t", kwire.simple_batch(b"x" * 2000)), 10)
        self.assertEqual(self.send("compacted", batch), 87)
        self.assertNotEqual(self.send("t", kwire.message(0, b"k", b"v")), 0)
        self.assertEqual(self.send("t", changed(batch, 17, b"\0\1\2\3")), 2)
        self.assertNotEqual(self.send("t", changed(batch, 0, b"\0\0\0\0\0\0\0\5")), 0)

    def conversions(self):
        self.assertEqual(self.send("gzipped"), 0)
        self.read("gzipped", 2)
        self.assertEqual(self.read("as_it_is", 2)[0][2]["error_code"], 35)

    def waits(self):
        """Requests that wait, on connections that are kept."""
        k = self.at_leader("t")
        k.send("Fetch", 11, **kwire.fetch_request(11, [("t", 0, 0)], max_wait_ms=60000, min_bytes=1 << 20))
        return k

    def short_wait(self):
        self.read("t", max_wait_ms=50, min_bytes=1 << 20)

    def session(self):
        self.read("t", session_epoch=0, max_wait_ms=0)

    def records_deleted(self):
        a = self.at_leader("t").call("DeleteRecords", 2, timeout_ms=30000, topics=[
            {"name": "t", "partitions": [{"partition_index": 0, "offset": 1}]}])
        self.assertEqual(a["topics"][0]["partitions"][0]["error_code"], 0)

    def compaction(self):
        self.configure(TOPIC, "compacted", segment_bytes="300", min_cleanable_dirty_ratio="0.0")
        for i in range(6):
            self.assertEqual(self.send("compacted", kwire.batch([(0, b"k", b"x" * 150)])), 0)

    def at_coordinator(self):
        """Of all groups: there is one partition."""
        found = {}

        def known():
            with self.c.conn() as k:
                found["error"], found["node"] = groupwire.find(k, "g")[:2]
            return found["error"] == 0
        until("there is a coordinator", known)
        k = kwire.Conn(self.c.broker(found["node"]).port)
        self.addCleanup(k.close)
        groupwire.coordinator(k, "g")  # and it has loaded them
        return k

    def groups(self):
        one, two, other = (self.at_coordinator() for _ in range(3))
        member = groupwire.stable([one], "g")[0]
        groupwire.commit(other, "free", "t", {0: 1})
        late = groupwire.Member(two, "g")
        late.get_id()
        late.send_join()  # and the first one does not come: they prepare
        forming = groupwire.Member(other, "forming")
        forming.join()    # and does not sync
        return member

    def offsets_deleted(self):
        self.at_coordinator().call("OffsetDelete", 0, group_id="free", topics=[
            {"name": "t", "partitions": [{"partition_index": 0}]}])

    def transaction(self):
        with self.c.conn() as k:
            until("a coordinator", lambda: txnwire.find(k, "txn")[0] == 0)
            where = txnwire.find(k, "txn")[1]
        k = kwire.Conn(self.c.broker(where).port)
        self.addCleanup(k.close)
        p = txnwire.Producer(k, "txn")
        p.init()
        p.add(("t", 0))
        p.produce("t", 0, b"v", conn=self.at_leader("t"))
        self.assertNotEqual(p.try_produce("gzipped", 0, b"v", conn=self.at_leader("gzipped"))["error_code"], 0)
        return p

    def quotas(self):
        with self.c.conn() as k:
            a = k.call("AlterClientQuotas", 1, validate_only=False, entries=[
                {"entity": entity(**{"client-id": "limited"}),
                 "ops": [{"key": k, "value": v, "remove": False} for k, v in
                         (("producer_byte_rate", 1000.0), ("request_percentage", 100.0))]}])
            self.assertEqual([e["error_code"] for e in a["entries"]], [0])

        def throttled():
            k = kwire.Conn(self.c.broker(self.c.leader("t", 0)).port, client_id="limited")
            self.addCleanup(k.close)
            a = k.call("Produce", 9, **kwire.produce_request([("t", 0, kwire.simple_batch(b"x" * 900))], acks=1))
            return a["throttle_time_ms"] > 0
        until("the client is held back", throttled)

    def logins(self):
        port = self.c.broker(1).ports["SASL_PLAINTEXT"]
        with kwire.Conn(port) as k, self.assertRaises(saslwire.Refused):
            saslwire.login(k, "PLAIN", "alice", "wrong")
        with kwire.Conn(port) as k:
            saslwire.login(k, "PLAIN", "alice", "alicepw")
            self.assertGreater(k.lifetime_ms, 0)
            saslwire.login(k, "PLAIN", "alice", "alicepw")
            until("the session has ended", lambda: not self.served(k))

    @staticmethod
    def served(k):
        try:
            k.call("Metadata", 9, topics=[])
            return True
        except (kwire.Closed, OSError):
            return False

    def settings(self):
        self.configure(TOPIC, "t", unclean_leader_election_enable="true")
        self.configure(BROKER, "", unclean_leader_election_enable="true")

    def settings_back(self):
        for kind, name in (BROKER, ""), (TOPIC, "t"):
            self.configure(kind, name, unclean_leader_election_enable=None)

    def elections(self):
        self.c.on_controller("ElectLeaders", 2, election_type=0, timeout_ms=30000, topic_partitions=None)

    def held_move(self):
        """A reassignment that stands, as its new follower may fetch next to nothing, and fetches batch by batch."""
        self.configure(BROKER, "", follower_replication_throttled_rate="1", leader_replication_throttled_rate="1")
        self.configure(TOPIC, "moves", leader_replication_throttled_replicas="*",
                       follower_replication_throttled_replicas="*")
        for _ in range(5):
            self.assertEqual(self.send("moves", kwire.simple_batch(b"x" * 900)), 0)
        self.reassign("moves", [self.controller, self.other])
        self.c.on_controller("ListPartitionReassignments", 0, timeout_ms=30000, topics=None)

    def reassign(self, topic, replicas):
        a = self.c.on_controller("AlterPartitionReassignments", 0, timeout_ms=30000, topics=[
            {"name": topic, "partitions": [{"partition_index": 0, "replicas": replicas}]}])
        self.assertEqual(a["responses"][0]["partitions"][0]["error_code"], 0)

    def released_move(self):
        self.configure(BROKER, "", follower_replication_throttled_rate=None, leader_replication_throttled_rate=None)

    def pause(self):
        """The other broker stands still, with an append and a deletion that wait for it, until its session ends."""
        k, d = self.at_leader("t"), self.at_leader("t")
        self.c.broker(self.other).process.send_signal(signal.SIGSTOP)
        self.paused = self.other
        kwire.produce(k, 9, [("t", 0, kwire.simple_batch(b"x"))], acks=-1, timeout_ms=50)
        d.call("DeleteRecords", 2, timeout_ms=50, topics=[
            {"name": "t", "partitions": [{"partition_index": 0, "offset": 2}]}])

    def deletion(self):
        self.c.on_controller("DeleteTopics", 3, topic_names=["alone"], timeout_ms=100)

    def resume(self):
        self.c.broker(self.paused).process.send_signal(signal.SIGCONT)
        self.paused = None
        self.c.wait_brokers()
        self.c.wait_isr("t", 1, 2)

    def stop_other(self):
        self.c.broker(self.other).stop()

    def stop_controller(self):
        self.c.broker(self.controller).stop()

    # -- in this order

    def test_all_in_order(self):
        sasl = saslwire.listener("PLAIN", plain_sasl_jaas_config=saslwire.users(admin="adminpw", alice="alicepw"),
                                 plain_connections_max_reauth_ms="1500")
        with Cluster(2, overrides=dict(
                sasl, **{"metrics.http.listener": "127.0.0.1:0", "auto.create.topics.enable": "false",
                         "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
                         "leader.imbalance.check.interval.seconds": "1", "log.cleaner.backoff.ms": "100",
                         "transaction.state.log.num.partitions": "1", "transaction.state.log.replication.factor": "1",
                         "transaction.state.log.min.isr": "1", "offsets.topic.num.partitions": "1",
                         "offsets.topic.replication.factor": "1", "num.network.threads": "2", "replica.fetch.max.bytes": "1"})) as c:
            self.c, self.paused, self.moved = c, None, set()
            self.controller = c.controller
            self.other = 3 - self.controller
            self.everything()
            self.assertEqual(sorted(set(self.rows) - self.moved - set(STAY)), [], "moved by nothing, and not in STAY")
            self.assertEqual(sorted(set(STAY) & self.moved), [])
            self.assertEqual(sorted(set(STAY) - set(self.rows)), [])

    def everything(self):
        traffic, replica = "kafka_server_brokertopicmetrics_", "kafka_server_replicamanager_"
        cluster, partition = "kafka_controller_kafkacontroller_", "kafka_cluster_partition_"
        events, net = "kafka_controller_controllerstats_", "kafka_server_socket_server_metrics_"
        requests, log = "kafka_network_requestmetrics_", "kafka_log_log_"
        groups = "kafka_coordinator_group_groupmetadatamanager_num"
        did, zk = "kafka_server_group_coordinator_metrics_", "kafka_server_sessionexpirelistener_zookeeper"
        channel = "kafka_controller_controllerchannelmanager_"

        def named(prefix, *names):
            return [prefix + n for n in names]

        def topics():
            own, both = [self.controller], [self.controller, self.other]
            for name, where, configs in (
                    ("t", both, {"max.message.bytes": "1500"}), ("compacted", own, {"cleanup.policy": "compact"}),
                    ("gzipped", own, {"compression.type": "gzip"}), ("moves", own, {}),
                    ("as_it_is", own, {"message.downconversion.enable": "false"}), ("flushed", own, {"flush.messages": "1"}),
                    ("strict", both, {"min.insync.replicas": "2"}), ("alone", [self.other], {}),
                    ("theirs", both[::-1], {})):
                self.c.create_topic(name, assignment=[where], configs=configs)
                self.c.wait_known(name, 1)
            self.c.wait_isr("t", 1, 2)
            for name in "as_it_is", "moves":
                self.assertEqual(self.send(name), 0)
        self.moves("making topics", topics, named(cluster, "globaltopiccount", "globalpartitioncount") +
                   named(replica, "leadercount", "partitioncount", "atminisrpartitioncount") +
                   named(partition, "replicascount", "atminisr") + named(events, "topicchangerateandtimems") +
                   named(channel, "requestrateandqueuetimems") + named(log, "numlogsegments") +
                   ["kafka_controller_controllereventmanager_eventqueuetimems",
                    "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"])
        self.moves("traffic", self.traffic, named(
            traffic, "messagesin_total", "bytesin_total", "bytesout_total", "totalproducerequests_total",
            "totalfetchrequests_total", "replicationbytesin_total", "replicationbytesout_total") +
            named(log, "size", "logendoffset") + named("kafka_server_fetcherstats_", "requests_total", "bytes_total") +
            named(requests, "requests_total", "errors_total", "totaltimems", "requestqueuetimems", "localtimems", "remotetimems",
                  "responsesendtimems", "requestbytes", "throttletimems") +
            named(net, "request_total", "incoming_byte_total", "outgoing_byte_total", "connection_creation_total") +
            ["process_cpu_seconds_total", "kafka_network_socketserver_networkprocessoravgidlepercent",
             "kafka_network_processor_idlepercent", "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
             "kafka_server_delayedfetchmetrics_expires_total"])
        self.moves("refusals", self.refusals, named(
            traffic, "bytesrejected_total", "failedproducerequests_total", "nokeycompactedtopicrecords_total",
            "invalidmagicnumberrecords_total", "invalidmessagecrcrecords_total",
            "invalidoffsetorsequencerecords_total"))
        self.moves("conversions", self.conversions, named(
            traffic, "producemessageconversions_total", "fetchmessageconversions_total", "failedfetchrequests_total"))
        k = self.moves("a wait", self.waits, named("kafka_server_delayedoperationpurgatory_", "numdelayedoperations",
                                                   "purgatorysize") + named(net, "connection_count"))
        self.moves("a client that goes", k.close, named(net, "connection_close_total") + ["process_open_fds"])
        self.moves("a session", self.session, named("kafka_server_fetchsessioncache_numincrementalfetch", "sessions",
                                                    "partitionscached"))
        self.moves("deleted records", self.records_deleted, named(log, "logstartoffset"))
        self.moves("a flush", lambda: self.send("flushed"), ["kafka_log_logflushstats_logflushrateandtimems"])
        self.moves("compaction", self.compaction, ["kafka_log_logcleanermanager_time_since_last_run_ms"])
        self.moves("groups", self.groups, named(
            groups, "groups", "offsets", "groupspreparingrebalance", "groupscompletingrebalance", "groupsempty") +
            named(did, "offset_commit_count", "group_completed_rebalance_count"))
        self.moves("deleted offsets", self.offsets_deleted, named(did, "offset_deletion_count"))
        k = self.at_coordinator()
        self.moves("another group", lambda: groupwire.stable([k], "at work"), named(groups, "groupsstable"))
        p = self.moves("a transaction", self.transaction, named(partition, "laststableoffsetlag") +
                       named(replica, "produceridcount") +
                       named("kafka_server_addpartitionstotxnmanager_", "verificationtimems", "verificationfailurerate_count") +
                       ["kafka_server_transaction_coordinator_metrics_transactional_id_count"])
        p.end(True)
        self.moves("quotas", self.quotas, named("kafka_server_quota_", "byte_rate", "throttle_time", "request_time"))
        self.moves("logins", self.logins, named(
            net, "successful_authentication_total", "failed_authentication_total", "successful_reauthentication_total",
            "expired_connections_killed_count") + ["kafka_network_socketserver_expiredconnectionskilledcount"])
        self.moves("settings", self.settings, named(
            events, "topicuncleanleaderelectionenablerateandtimems", "uncleanleaderelectionenablerateandtimems"))
        self.settings_back()
        self.moves("elections", self.elections, named(
            events, "manualleaderbalancerateandtimems", "autoleaderbalancerateandtimems"))
        self.moves("a move that is held", self.held_move, named(replica, "reassigningpartitions") + named(
            events, "partitionreassignmentrateandtimems", "listpartitionreassignmentrateandtimems") + [
                "kafka_server_replicafetchermanager_maxlag", "kafka_server_fetcherlagmetrics_consumerlag",
                "kafka_server_quota_replication_byte_rate"])
        self.moves("a move", self.released_move, named(traffic, "reassignmentbytesin_total",
                                                       "reassignmentbytesout_total"))
        self.moves("a broker that stands still", self.pause, named(
            replica, "underreplicatedpartitions", "underminisrpartitioncount", "isrshrinks_total") +
            named(partition, "underreplicated", "underminisr", "insyncreplicascount") +
            named(cluster, "offlinepartitionscount", "preferredreplicaimbalancecount", "activebrokercount") +
            named(events, "leaderelectionrateandtimems") + named(channel, "queuesize") + [
                "kafka_server_delayedproducemetrics_expires_total", "kafka_server_delayeddeleterecordsmetrics_expires_total"])
        self.moves("a deletion that waits", self.deletion, named(
            cluster, "topicstodeletecount", "replicastodeletecount", "topicsineligibletodeletecount",
            "replicasineligibletodeletecount") + named(events, "topicdeletionrateandtimems"))
        before = self.pages()
        self.resume()
        self.assertGreater(len(before), 0)
        p = metricspage.read(self.c.broker(self.other))
        for name in "expires_total", "disconnects_total", "syncconnects_total":
            self.assertGreater(p.get(zk + name), 0, name)
            self.moved.add(zk + name)
        self.moves_since(before, named(replica, "isrexpands_total") + named(events, "isrchangerateandtimems"))
        self.labels_are_those_of_the_page()
        self.moves("a broker that stops", self.stop_other, named(events, "controlledshutdownrateandtimems"))
        self.c.broker(self.other).start()
        self.c.wait_brokers()
        self.moves("a controller that stops", self.stop_controller, named(cluster, "activecontrollercount") +
                   named(events, "controllerchangerateandtimems"))

    def moves_since(self, before, names):
        until("it is noted", lambda: (lambda now: all(self.of(now, n) != self.of(before, n) for n in names))(self.pages()))
        self.moved |= set(names)

    def labels_are_those_of_the_page(self):
        """By now each family has samples."""
        seen = set()

        def looked():
            for p in self.pages().values():
                self.assertEqual({n: r[0] for n, r in self.rows.items()}, p.types)
                for name, labels in p.samples:
                    family = re.sub("_(count|sum)$", "", name) if name not in self.rows else name
                    self.assertLessEqual({k for k, _ in labels}, set(self.rows[family][1]), name)
                    seen.add(family)
            return seen == set(self.rows)
        try:
            until("each has samples", looked)
        except AssertionError as e:
            raise AssertionError("%s: %s" % (e, sorted(set(self.rows) - seen))) from None


if __name__ == "__main__":
    unittest.main()
