"""What each API needs: every one that the broker advertises, in every version, as somebody without rights, with each
right missing, and with exactly those that it needs. One broker by itself; users log in with PLAIN."""
import unittest

import groupwire
import harness
import kwire
import saslwire
import txnwire
from harness import until

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = \
    range(3, 13)
TOPIC, GROUP, CLUSTER, TXN = 2, 3, 4, 5
UNKNOWN_TOPIC, UNKNOWN_MEMBER, MEMBER_ID_REQUIRED, NO_LOG_DIR, UNKNOWN_TOPIC_ID = 3, 25, 79, 57, 100
# What is told to who may not, by the resource that he lacks a right on.
REFUSED = {TOPIC: 29, GROUP: 30, CLUSTER: 31, TXN: 53}
REFUSALS = set(REFUSED.values())
LITERAL, DENY, ALLOW, ANY = 3, 2, 3, 1

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:admin;User:root",
    "inter.broker.listener.name": "SASL_PLAINTEXT", "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2", "group.coordinator.rebalance.protocols": "classic,consumer",
}
USERS = saslwire.users(admin="pw", alice="pw", bob="pw")


def broker(**more):
    overrides = dict(SETTINGS, **saslwire.listener("PLAIN", plain_sasl_jaas_config=USERS))
    overrides.update({key.replace("_", "."): value for key, value in more.items()})
    return harness.Broker(overrides=overrides, listeners="PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0")


def conn_of(b, user):
    k = kwire.Conn(b.ports["SASL_PLAINTEXT"])
    saslwire.login(k, "PLAIN", user, "pw", versions=False)
    return k


def binding(user, right, permission=ALLOW, pattern=LITERAL):
    operation, kind, name = right
    return {"resource_type": kind, "resource_name": "kafka-cluster" if kind == CLUSTER else name,
            "resource_pattern_type": pattern, "principal": "User:" + user, "host": "*", "operation": operation,
            "permission_type": permission}


def grant(admin, user, *rights, **more):
    answer = admin.call("CreateAcls", 3, creations=[binding(user, r, **more) for r in rights])
    assert {r["error_code"] for r in answer["results"]} <= {0}, answer


def take_all(admin, user):
    answer = admin.call("DeleteAcls", 3, filters=[{
        "resource_type_filter": ANY, "resource_name_filter": None, "pattern_type_filter": ANY,
        "principal_filter": "User:" + user, "host_filter": None, "operation": ANY, "permission_type": ANY}])
    assert answer["filter_results"][0]["error_code"] == 0, answer


def codes(answer):
    """All error codes of an answer. (That of a new topic's settings is not one of the request.)"""
    if isinstance(answer, dict):
        own = [{v} for k, v in answer.items() if k.endswith("error_code") and k != "topic_config_error_code"]
        return set().union(*own, *[codes(v) for v in answer.values()])
    if isinstance(answer, list):
        return set().union(*[codes(v) for v in answer])
    return set()


def fit(struct, values):
    """Those of the fields that the request has: what is asked may be written down for several APIs at once."""
    fields = {f.name: f for f in struct.fields}

    def of(field, value):
        if not field.struct or value is None:
            return value
        return [fit(field.struct, v) for v in value] if field.is_array else fit(field.struct, value)
    return {k: of(fields[k], v) for k, v in values.items() if k in fields}


class Case:
    """rights: all that are needed. ok: the codes of an answer that was not refused; None: any but a refusal.
    request: the fields, of all versions, or what makes them of a test and a version. blank: versions whose answers
    have no place for the error."""

    def __init__(self, api, request, rights, ok=(0,), versions=None, blank=(), refused=None):
        self.api, self.request, self.rights = api, request, rights
        self.ok, self.versions, self.blank, self.refused = ok, versions, blank, refused

    def fields(self, test, version):
        return self.request(test, version) if callable(self.request) else self.request

    def error(self, right):
        return self.refused or REFUSED[right[1]]


def per_partition(**fields):
    return [dict({"partition_index": 0}, **fields)]


def produce_fields(test, version):
    return kwire.produce_request([("t", 0, test.old_batch if version < 3 else kwire.simple_batch(b"v"))])


def produce_in_txn(test, version):
    p = test.transaction("produced").add(("t", 0))
    return dict(kwire.produce_request([("t", 0, p.batch(("t", 0), [b"v"]))]), transactional_id=p.id)


def fetch_fields(test, version, **more):
    return kwire.fetch_request(version, [(test.t_id if version >= 13 else "t", 0, 0)], **more)


def fetch_as_follower(test, version):
    if version >= 15:
        return fetch_fields(test, version, replica_state={"replica_id": 7, "replica_epoch": -1})
    return fetch_fields(test, version, replica_id=7)


def delete_by_id(test, version):
    return {"timeout_ms": 30000, "topics": [{"name": None, "topic_id": test.doomed_id}]}


def add_partitions(test, version):
    p = test.transaction("added")
    return {"v3_and_below_transactional_id": p.id, "v3_and_below_producer_id": p.pid,
            "v3_and_below_producer_epoch": p.epoch, "v3_and_below_topics": [{"name": "t", "partitions": [0]}]}


def verify_partitions(test, version):
    p = test.transaction("verified").add(("t", 0))
    return {"transactions": [dict(p.who(), transactional_id=p.id, verify_only=True,
                                  topics=[{"name": "t", "partitions": [0]}])]}


def of_txn(name, **more):
    def fields(test, version):
        p = test.transaction(name).add(("t", 0)).add_offsets("g")
        return dict(p.who(), transactional_id=p.id, **more)
    return fields


def topic_configs(**config):
    return {"resources": [{"resource_type": 2, "resource_name": "t", "configuration_keys": None,
                           "configs": [dict({"name": "retention.ms", "value": "1000"}, **config)]}]}


def broker_configs(kind=4, name="0", **config):
    return {"validate_only": True, "resources": [{
        "resource_type": kind, "resource_name": name, "configuration_keys": None,
        "configs": [dict({"name": "log.cleaner.threads", "value": "2"}, **config)]}]}


COMMITTED = [{"name": "t", "partitions": per_partition(committed_offset=1, committed_metadata="")}]
MEMBER = {"group_id": "g2", "member_id": "nobody", "generation_id": 1, "members": [{"member_id": "nobody"}],
          "protocol_type": "consumer", "protocol_name": "range"}
MARKER = {"markers": [{"producer_id": 4711, "producer_epoch": 0, "transaction_result": False,
                       "topics": [{"name": "t", "partition_indexes": [0]}], "coordinator_epoch": 0}]}
ACL_FILTER = {"resource_type_filter": TOPIC, "resource_name_filter": "nosuch", "pattern_type_filter": LITERAL,
              "principal_filter": None, "host_filter": None, "operation": ANY, "permission_type": ANY}
NEW_ACL = {"creations": [binding("carol", (READ, TOPIC, "made-by-alice"))]}
QUOTA = {"entries": [{"entity": [{"entity_type": "user", "entity_name": "q"}],
                      "ops": [{"key": "producer_byte_rate", "value": 1e6, "remove": False}]}]}
JOIN = {"group_id": "g2", "session_timeout_ms": 30000, "rebalance_timeout_ms": 30000, "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}]}
CONSUMER = {"group_id": "cg", "member_id": "m1", "member_epoch": 0, "rebalance_timeout_ms": 30000,
            "subscribed_topic_names": ["t"], "server_assignor": None, "topic_partitions": []}


def new_topic(name, **more):
    return dict({"timeout_ms": 30000, "topics": [{"name": name, "num_partitions": 1, "replication_factor": 1}]}, **more)


CASES = [
    Case("Produce", produce_fields, [(WRITE, TOPIC, "t")]),
    Case("Produce", produce_in_txn, [(WRITE, TXN, "produced"), (WRITE, TOPIC, "t")], versions=range(9, 12)),
    Case("Fetch", fetch_fields, [(READ, TOPIC, "t")]),
    Case("Fetch", fetch_as_follower, [(CLUSTER_ACTION, CLUSTER, "")], ok=None, refused=29),
    Case("ListOffsets", {"replica_id": -1, "topics": [{"name": "t", "partitions": per_partition(
        timestamp=-1, max_num_offsets=1, current_leader_epoch=-1)}]}, [(DESCRIBE, TOPIC, "t")]),
    Case("Metadata", {"topics": [{"name": "t"}]}, [(DESCRIBE, TOPIC, "t")]),
    Case("Metadata", lambda test, _: {"topics": [{"name": None, "topic_id": test.t_id}]}, [(DESCRIBE, TOPIC, "t")],
         versions=(12,)),
    Case("OffsetCommit", {"group_id": "g", "member_id": "", "generation_id_or_member_epoch": -1,
                          "retention_time_ms": -1, "topics": COMMITTED}, [(READ, GROUP, "g"), (READ, TOPIC, "t")]),
    Case("OffsetFetch", {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}], "groups": [
        {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}]},
         [(DESCRIBE, GROUP, "g"), (DESCRIBE, TOPIC, "t")]),
    Case("FindCoordinator", {"key": "g", "key_type": 0, "coordinator_keys": ["g"]}, [(DESCRIBE, GROUP, "g")]),
    Case("FindCoordinator", {"key": "x", "key_type": 1, "coordinator_keys": ["x"]}, [(DESCRIBE, TXN, "x")],
         versions=range(1, 7)),
    Case("FindCoordinator", {"key_type": 2, "coordinator_keys": ["s"]}, [(CLUSTER_ACTION, CLUSTER, "")], ok=(15,),
         versions=(6,)),
    Case("JoinGroup", JOIN, [(READ, GROUP, "g2")], ok=(MEMBER_ID_REQUIRED,)),
    Case("SyncGroup", MEMBER, [(READ, GROUP, "g2")], ok=(UNKNOWN_MEMBER,)),
    Case("Heartbeat", MEMBER, [(READ, GROUP, "g2")], ok=(UNKNOWN_MEMBER,)),
    Case("LeaveGroup", MEMBER, [(READ, GROUP, "g2")], ok=(0, UNKNOWN_MEMBER)),
    Case("DescribeGroups", {"groups": ["g"]}, [(DESCRIBE, GROUP, "g")]),
    Case("CreateTopics", new_topic("new", validate_only=True), [(CREATE, TOPIC, "new")]),
    Case("CreateTopics", new_topic("new"), [(CREATE, CLUSTER, "")], refused=29),
    Case("DeleteTopics", {"timeout_ms": 30000, "topics": [{"name": "doomed"}], "topic_names": ["doomed"]},
         [(DELETE, TOPIC, "doomed")]),
    Case("DeleteTopics", delete_by_id, [(DELETE, TOPIC, "doomed2")], versions=(6,)),
    Case("DeleteRecords", {"timeout_ms": 30000, "topics": [{"name": "t", "partitions": per_partition(offset=0)}]},
         [(DELETE, TOPIC, "t")]),
    Case("InitProducerId", {"transactional_id": None, "producer_id": -1, "producer_epoch": -1},
         [(IDEMPOTENT_WRITE, CLUSTER, "")]),
    Case("InitProducerId", {"transactional_id": None, "producer_id": -1, "producer_epoch": -1},
         [(WRITE, TOPIC, "whatever")], refused=31),
    Case("InitProducerId", {"transactional_id": "x", "transaction_timeout_ms": 60000, "producer_id": -1,
                            "producer_epoch": -1}, [(WRITE, TXN, "x")]),
    Case("OffsetForLeaderEpoch", {"replica_id": -1, "topics": [{"topic": "t", "partitions": [
        {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]}]}, [(DESCRIBE, TOPIC, "t")]),
    Case("OffsetForLeaderEpoch", {"replica_id": -1, "topics": [{"topic": "t", "partitions": [
        {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]}]}, [(CLUSTER_ACTION, CLUSTER, "")],
         refused=29),
    Case("AddPartitionsToTxn", add_partitions, [(WRITE, TXN, "added"), (WRITE, TOPIC, "t")], versions=range(0, 4)),
    Case("AddPartitionsToTxn", verify_partitions, [(CLUSTER_ACTION, CLUSTER, "")], versions=(4, 5)),
    Case("AddOffsetsToTxn", of_txn("with-offsets", group_id="g"), [(WRITE, TXN, "with-offsets"), (READ, GROUP, "g")]),
    Case("EndTxn", of_txn("ended", committed=False), [(WRITE, TXN, "ended")]),
    Case("WriteTxnMarkers", MARKER, [(CLUSTER_ACTION, CLUSTER, "")]),
    Case("WriteTxnMarkers", MARKER, [(ALTER, CLUSTER, "")]),
    Case("TxnOffsetCommit", of_txn("commits", group_id="g", topics=COMMITTED),
         [(WRITE, TXN, "commits"), (READ, GROUP, "g"), (READ, TOPIC, "t")]),
    Case("DescribeConfigs", topic_configs(), [(DESCRIBE_CONFIGS, TOPIC, "t")]),
    Case("DescribeConfigs", broker_configs(), [(DESCRIBE_CONFIGS, CLUSTER, "")]),
    Case("DescribeConfigs", broker_configs(kind=8), [(DESCRIBE_CONFIGS, CLUSTER, "")]),
    Case("AlterConfigs", topic_configs(), [(ALTER_CONFIGS, TOPIC, "t")]),
    Case("AlterConfigs", broker_configs(name=""), [(ALTER_CONFIGS, CLUSTER, "")]),
    Case("IncrementalAlterConfigs", topic_configs(config_operation=0), [(ALTER_CONFIGS, TOPIC, "t")]),
    Case("IncrementalAlterConfigs", broker_configs(config_operation=0), [(ALTER_CONFIGS, CLUSTER, "")]),
    Case("IncrementalAlterConfigs", broker_configs(kind=8, config_operation=0), [(ALTER_CONFIGS, CLUSTER, "")],
         ok=(42,)),
    Case("AlterReplicaLogDirs", {"dirs": [{"path": "/nowhere", "topics": [{"name": "t", "partitions": [0]}]}]},
         [(ALTER, CLUSTER, "")], ok=(NO_LOG_DIR,)),
    Case("DescribeLogDirs", {"topics": None}, [(DESCRIBE, CLUSTER, "")], blank=(0, 1, 2)),
    Case("CreatePartitions", {"timeout_ms": 30000, "topics": [{"name": "t", "count": 2, "assignments": None}]},
         [(ALTER, TOPIC, "t")]),
    Case("DeleteGroups", {"groups_names": ["doomed"]}, [(DELETE, GROUP, "doomed")]),
    Case("ElectLeaders", {"topic_partitions": [{"topic": "t", "partitions": [0]}], "timeout_ms": 30000},
         [(ALTER, CLUSTER, "")], ok=(0, 84)),
    Case("AlterPartitionReassignments", {"topics": []}, [(ALTER, CLUSTER, "")]),
    Case("ListPartitionReassignments", {"topics": None}, [(DESCRIBE, CLUSTER, "")]),
    Case("OffsetDelete", {"group_id": "g", "topics": [{"name": "t", "partitions": per_partition()}]},
         [(DELETE, GROUP, "g"), (READ, TOPIC, "t")]),
    Case("DescribeClientQuotas", {"components": [], "strict": False}, [(DESCRIBE_CONFIGS, CLUSTER, "")]),
    Case("AlterClientQuotas", QUOTA, [(ALTER_CONFIGS, CLUSTER, "")]),
    Case("DescribeUserScramCredentials", {"users": None}, [(DESCRIBE, CLUSTER, "")]),
    Case("AlterUserScramCredentials", {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []},
         [(ALTER, CLUSTER, "")], ok=(0, 91)),
    Case("DescribeProducers", {"topics": [{"name": "t", "partition_indexes": [0]}]}, [(READ, TOPIC, "t")]),
    Case("DescribeTransactions", {"transactional_ids": ["x"]}, [(DESCRIBE, TXN, "x")], ok=(0, 105)),
    Case("AllocateProducerIds", {"broker_id": 0, "broker_epoch": -1}, [(CLUSTER_ACTION, CLUSTER, "")], ok=None),
    Case("ConsumerGroupHeartbeat", CONSUMER, [(READ, GROUP, "cg"), (DESCRIBE, TOPIC, "t")]),
    Case("ConsumerGroupDescribe", {"group_ids": ["cg"]}, [(DESCRIBE, GROUP, "cg"), (DESCRIBE, TOPIC, "t")]),
    Case("DescribeTopicPartitions", {"topics": [{"name": "t"}], "response_partition_limit": 10},
         [(DESCRIBE, TOPIC, "t")]),
    Case("DescribeAcls", ACL_FILTER, [(DESCRIBE, CLUSTER, "")]),
    Case("CreateAcls", NEW_ACL, [(ALTER, CLUSTER, "")]),
    Case("DeleteAcls", {"filters": [ACL_FILTER]}, [(ALTER, CLUSTER, "")]),
]

# Of a cluster: a broker by itself hears them from nobody. test_authorization_cluster.py has them.
MEMBERS_ONLY = {
    "LeaderAndIsr": {}, "StopReplica": {}, "UpdateMetadata": {}, "ControlledShutdown": {}, "AlterPartition": {}}
# They need no right: what they list is looked at below, or they are of who is asking. Tokens: test_delegation_tokens.py.
FREE = {"ApiVersions", "SaslHandshake", "SaslAuthenticate", "DescribeCluster", "ListGroups", "ListTransactions",
        "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken", "DescribeDelegationToken"}

NAME_OF = {key: name for name, key in kwire.API_KEYS.items()}


class Rights(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.b = broker()
        cls.admin = conn_of(cls.b, "admin")
        cls.alice = conn_of(cls.b, "alice")
        cls.old_batch = kwire.message(0, None, b"v", magic=0)
        cls.t_id = kwire.create_topic(cls.admin, "t")
        kwire.produce_one(cls.admin, "t", 0, kwire.simple_batch(b"0", b"1", b"2"))
        for group in ("g", "doomed"):
            groupwire.coordinator(cls.admin, group)
            groupwire.commit(cls.admin, group, "t", {0: 1})
        cls.advertised = {NAME_OF[a["api_key"]]: range(a["min_version"], a["max_version"] + 1)
                          for a in cls.admin.call("ApiVersions", 3, client_software_name="x",
                                                  client_software_version="1")["api_keys"]}

    @classmethod
    def tearDownClass(cls):
        cls.admin.close()
        cls.alice.close()
        cls.b.close()

    def setUp(self):
        take_all(self.admin, "alice")

    def transaction(self, name):
        """A producer of the super user's that has just begun anew."""
        return txnwire.Producer(self.admin, name).init()

    def grant(self, *rights, **more):
        grant(self.admin, "alice", *rights, **more)

    def fields(self, case, version):
        return fit(kwire.SCHEMAS[case.api + "Request"].body, case.fields(self, version))

    def call(self, case, version):
        return self.alice.call(case.api, version, **self.fields(case, version))

    # ---- the table

    def test_every_advertised_api_has_its_case(self):
        self.assertEqual(set(self.advertised), (FREE & set(self.advertised)) | set(MEMBERS_ONLY) |
                         {c.api for c in CASES})

    def state(self):
        """What requests could have changed."""
        a = self.admin
        topics = a.call("Metadata", 9, topics=None)["topics"]
        ends = kwire.list_offset(a, 7, "t", 0, -1)["offset"], kwire.list_offset(a, 7, "t", 0, -2)["offset"]
        return {
            "topics": sorted((t["name"], len(t["partitions"])) for t in topics), "ends": ends,
            "groups": sorted((g["group_id"], g["group_state"]) for g in a.call("ListGroups", 4)["groups"]),
            "offsets": groupwire.fetch(a, "g", {"t": [0]}),
            "configs": a.call("DescribeConfigs", 1, resources=[
                {"resource_type": 2, "resource_name": "t", "configuration_keys": ["retention.ms"]},
                {"resource_type": 4, "resource_name": "", "configuration_keys": None}])["results"],
            "quotas": a.call("DescribeClientQuotas", 1, components=[], strict=False)["entries"],
            "acls": a.call("DescribeAcls", 3, **dict(ACL_FILTER, resource_type_filter=ANY, resource_name_filter=None,
                                                     pattern_type_filter=ANY))["resources"]}

    def versions(self, case):
        return [v for v in self.advertised.get(case.api, ()) if case.versions is None or v in case.versions]

    def test_1_without_rights_every_version_is_refused_and_nothing_happens(self):
        self.make_doomed()
        asked = [(c, v, self.fields(c, v)) for c in CASES for v in self.versions(c)]
        before = self.state()
        for case, version, fields in asked:
            with self.subTest(api=case.api, version=version, rights=case.rights):
                answer = self.alice.call(case.api, version, **fields)
                expected = set() if version in case.blank else {case.error(case.rights[0])}
                self.assertEqual(codes(answer) - {0}, expected, answer)
        for api, fields in MEMBERS_ONLY.items():
            for version in self.advertised[api]:
                with self.subTest(api=api, version=version):
                    self.assertEqual(codes(self.alice.call(api, version, **fields)), {31})
        self.assertEqual(self.state(), before)

    def test_2_with_one_right_missing_it_is_refused_and_with_all_it_works(self):
        self.make_doomed()
        for case in CASES:
            for missing in case.rights if len(case.rights) > 1 else ():
                with self.subTest(api=case.api, missing=missing):
                    take_all(self.admin, "alice")
                    self.grant(*[r for r in case.rights if r != missing])
                    for version in self.versions(case)[-1:]:
                        self.assertIn(case.error(missing), codes(self.call(case, version)))
            with self.subTest(api=case.api, rights=case.rights):
                take_all(self.admin, "alice")
                self.grant(*case.rights)
                for version in self.versions(case)[-1:]:
                    answer = self.call(case, version)
                    if case.ok is None:
                        self.assertFalse(codes(answer) & REFUSALS, answer)
                    else:
                        self.assertLessEqual(codes(answer), set(case.ok), answer)

    def make_doomed(self):
        names = {t["name"] for t in self.admin.call("Metadata", 9, topics=None)["topics"]}
        if "doomed" not in names:
            kwire.create_topic(self.admin, "doomed")
        if "doomed2" not in names:
            type(self).doomed_id = kwire.create_topic(self.admin, "doomed2")

    def test_a_denial_wins_and_super_users_pass(self):
        self.grant((READ, TOPIC, "t"), (WRITE, TOPIC, "t"))
        self.grant((WRITE, TOPIC, "t"), permission=DENY)
        self.assertEqual(kwire.fetch(self.alice, 12, [("t", 0, 0)])[0][2]["error_code"], 0)
        self.assertEqual(kwire.produce(self.alice, 9, [("t", 0, kwire.simple_batch(b"v"))])[0]["error_code"], 29)
        self.assertEqual(kwire.produce(self.admin, 9, [("t", 0, kwire.simple_batch(b"v"))])[0]["error_code"], 0)
        with kwire.Conn(self.b.ports["PLAINTEXT"]) as anonymous:
            self.assertEqual(kwire.fetch(anonymous, 12, [("t", 0, 0)])[0][2]["error_code"], 29)

    # ---- what may not be seen

    def test_an_unknown_topic_looks_like_one_that_may_not_be_seen(self):
        self.grant((DESCRIBE, GROUP, "g"), (READ, GROUP, "g"))

        def looks(name):
            partition = {"partition_index": 0, "partition": 0, "timestamp": -1, "leader_epoch": 0,
                         "committed_offset": 0, "offset": 0, "current_leader_epoch": -1, "committed_metadata": ""}

            def fields(*wanted):
                return [{k: partition[k] for k in wanted}]
            k = self.alice
            answers = [
                k.call("Metadata", 11, topics=[{"name": name}], include_topic_authorized_operations=True,
                       allow_auto_topic_creation=True)["topics"],
                k.call("ListOffsets", 7, replica_id=-1, topics=[
                    {"name": name, "partitions": fields("partition_index", "timestamp", "current_leader_epoch")}]),
                k.call("OffsetForLeaderEpoch", 4, replica_id=-1, topics=[
                    {"topic": name, "partitions": fields("partition", "leader_epoch", "current_leader_epoch")}]),
                k.call("Fetch", 12, **kwire.fetch_request(12, [(name, 0, 0)])),
                k.call("Produce", 9, **kwire.produce_request([(name, 0, kwire.simple_batch(b"v"))])),
                k.call("OffsetFetch", 7, group_id="g", topics=[{"name": name, "partition_indexes": [0]}]),
                k.call("OffsetCommit", 8, group_id="g", generation_id_or_member_epoch=-1, topics=[
                    {"name": name, "partitions": fields("partition_index", "committed_offset", "committed_metadata")}]),
                k.call("DeleteTopics", 5, topic_names=[name], timeout_ms=1000),
                k.call("DeleteRecords", 2, timeout_ms=1000, topics=[
                    {"name": name, "partitions": fields("partition_index", "offset")}]),
                k.call("CreatePartitions", 3, timeout_ms=1000, topics=[
                    {"name": name, "count": 9, "assignments": None}]),
                k.call("CreateTopics", 7, **new_topic(name)),
                k.call("DescribeConfigs", 4, resources=[
                    {"resource_type": 2, "resource_name": name, "configuration_keys": None}]),
                k.call("DescribeProducers", 0, topics=[{"name": name, "partition_indexes": [0]}]),
                k.call("DescribeTopicPartitions", 0, topics=[{"name": name}], response_partition_limit=10),
            ]
            for a in answers:
                self.assertEqual(codes(a) - {0}, {29}, a)
            return [repr(a).replace(repr(name), "NAME") for a in answers]
        self.assertEqual(looks("t"), looks("nosuch"))

    def test_names_behind_ids_are_told_to_who_may_see_them(self):
        by_id = {"topics": [{"name": None, "topic_id": self.t_id}]}
        answer = self.alice.call("Metadata", 12, **by_id)["topics"][0]
        self.assertEqual((answer["error_code"], answer["name"], answer["topic_id"]), (29, None, self.t_id))
        answer = self.alice.call("DeleteTopics", 6, timeout_ms=1000, **by_id)["responses"][0]
        self.assertEqual((answer["error_code"], answer["name"], answer["topic_id"]), (29, None, self.t_id))
        self.grant((DESCRIBE, TOPIC, "t"))
        answer = self.alice.call("DeleteTopics", 6, timeout_ms=1000, **by_id)["responses"][0]
        self.assertEqual((answer["error_code"], answer["name"]), (29, "t"))
        self.assertEqual(self.alice.call("Metadata", 12, **by_id)["topics"][0]["name"], "t")
        unknown = {"topics": [{"name": None, "topic_id": b"\7" * 16}]}
        self.assertEqual(self.alice.call("Metadata", 12, **unknown)["topics"][0]["error_code"], UNKNOWN_TOPIC_ID)
        self.assertEqual(self.alice.call("DeleteTopics", 6, timeout_ms=1000, **unknown)["responses"][0]["error_code"],
                         UNKNOWN_TOPIC_ID)
        self.assertEqual(kwire.fetch(self.alice, 13, [(b"\7" * 16, 0, 0)])[0][2]["error_code"], UNKNOWN_TOPIC_ID)

    def test_lists_leave_out_what_may_not_be_seen(self):
        kwire.create_topic(self.admin, "listed")
        groupwire.coordinator(self.admin, "g-listed")
        groupwire.commit(self.admin, "g-listed", "t", {0: 1})
        groupwire.commit(self.admin, "g-listed", "listed", {0: 1})
        for id in ("listed", "x"):
            self.transaction(id).add(("t", 0)).add(("listed", 0))
        a = self.alice

        def seen():
            of_all = a.call("DescribeTopicPartitions", 0, topics=[], response_partition_limit=1000)
            return ([t["name"] for t in a.call("Metadata", 9, topics=None)["topics"]],
                    [t["name"] for t in a.call("Metadata", 0, topics=[])["topics"]],
                    [t["name"] for t in of_all["topics"]],
                    [g["group_id"] for g in a.call("ListGroups", 5)["groups"]],
                    [t["transactional_id"] for t in a.call("ListTransactions", 1)["transaction_states"]])
        self.assertEqual(seen(), ([], [], [], [], []))
        self.grant((DESCRIBE, TOPIC, "listed"), (DESCRIBE, GROUP, "g-listed"), (DESCRIBE, TXN, "listed"))
        self.assertEqual(seen(), (["listed"], ["listed"], ["listed"], ["g-listed"], ["listed"]))
        # Inside of one, too.
        got = a.call("OffsetFetch", 8, groups=[{"group_id": "g-listed", "topics": None}])["groups"][0]
        self.assertEqual([t["name"] for t in got["topics"]], ["listed"])
        got = a.call("OffsetFetch", 5, group_id="g-listed", topics=None)
        self.assertEqual([t["name"] for t in got["topics"]], ["listed"])
        got = a.call("DescribeTransactions", 0, transactional_ids=["listed"])["transaction_states"][0]
        self.assertEqual([t["topic"] for t in got["topics"]], ["listed"])
        # Who may DESCRIBE the cluster sees all groups.
        self.grant((DESCRIBE, CLUSTER, ""))
        groups = {g["group_id"] for g in a.call("ListGroups", 5)["groups"]}
        self.assertLessEqual({"g", "g-listed"}, groups)

    def test_a_pattern_does_not_tell_of_topics_that_may_not_be_seen(self):
        kwire.create_topic(self.admin, "pattern-seen")
        kwire.create_topic(self.admin, "pattern-hidden")
        ids = {t["name"]: t["topic_id"] for t in self.admin.call("Metadata", 12, topics=None)["topics"]}
        self.grant((DESCRIBE, TOPIC, "pattern-seen"))
        groups = ("g-pattern%d" % i for i in range(1000))

        def told(k, pattern):
            member = {"group_id": next(groups), "member_id": "m"}
            groupwire.coordinator(self.admin, member["group_id"])
            self.grant((READ, GROUP, member["group_id"]))
            answer = k.call("ConsumerGroupHeartbeat", 1, **member, member_epoch=0, rebalance_timeout_ms=30000,
                            topic_partitions=[], subscribed_topic_names=None, subscribed_topic_regex=pattern)
            self.assertEqual(answer["error_code"], 0, answer)
            self.admin.call("ConsumerGroupHeartbeat", 1, **member, member_epoch=-1)
            return answer
        until("the topics", lambda: len(told(self.admin, "pattern-.*")["assignment"]["topic_partitions"]) == 2)
        for pattern in ("pattern-.*", "pattern-hidden|pattern-seen"):
            got = told(self.alice, pattern)["assignment"]["topic_partitions"]
            self.assertEqual(got, [{"topic_id": ids["pattern-seen"], "partitions": [0]}], pattern)
        self.assertEqual(told(self.alice, "pattern-h.*"), told(self.alice, "pattern-x.*"))

    def test_a_member_hears_of_topics_that_it_may_see_from_now_on(self):
        kwire.create_topic(self.admin, "later")
        member = {"group_id": "g-later", "member_id": "m"}
        groupwire.coordinator(self.admin, "g-later")
        self.grant((READ, GROUP, "g-later"))

        def beat(epoch, **more):
            fields = dict({"rebalance_timeout_ms": -1, "topic_partitions": None, "subscribed_topic_names": None,
                           "subscribed_topic_regex": None}, **more)
            answer = self.alice.call("ConsumerGroupHeartbeat", 1, **member, member_epoch=epoch, **fields)
            self.assertEqual(answer["error_code"], 0, answer)
            return answer["member_epoch"], answer["assignment"]

        def topics(told):
            return len(told["topic_partitions"])
        epoch, told = beat(0, rebalance_timeout_ms=30000, topic_partitions=[], subscribed_topic_regex="later")
        self.assertEqual(topics(told), 0)
        self.assertEqual(beat(epoch), (epoch, None))
        self.grant((DESCRIBE, TOPIC, "later"))
        epoch, told = beat(epoch)
        self.assertEqual(topics(told), 1)
        self.assertEqual(beat(epoch), (epoch, None))
        take_all(self.admin, "alice")
        self.grant((READ, GROUP, "g-later"))
        self.assertEqual(topics(beat(epoch)[1]), 0)
        beat(-1)

    def test_what_is_refused_does_not_stop_the_rest(self):
        kwire.create_topic(self.admin, "mine")
        self.grant((READ, TOPIC, "mine"), (WRITE, TOPIC, "mine"), (READ, GROUP, "g3"))
        groupwire.coordinator(self.admin, "g3")
        both = [("t", 0), ("mine", 0)]
        answer = kwire.produce(self.alice, 9, [p + (kwire.simple_batch(b"v"),) for p in both])
        self.assertEqual([p["error_code"] for p in answer], [29, 0])
        self.assertEqual([p["error_code"] for _, _, p in kwire.fetch(self.alice, 12, [p + (0,) for p in both])],
                         [29, 0])
        answer = self.alice.call("OffsetCommit", 8, group_id="g3", generation_id_or_member_epoch=-1, topics=[
            {"name": t, "partitions": per_partition(committed_offset=3, committed_metadata="")} for t, _ in both])
        self.assertEqual([t["partitions"][0]["error_code"] for t in answer["topics"]], [29, 0])
        got = self.alice.call("OffsetFetch", 7, group_id="g3", topics=[
            {"name": t, "partition_indexes": [0]} for t, _ in both])
        self.assertEqual([(t["partitions"][0]["error_code"], t["partitions"][0]["committed_offset"])
                          for t in got["topics"]], [(29, -1), (0, 3)])
        # A transaction is all or nothing.
        p = self.transaction("partly")
        self.grant((WRITE, TXN, "partly"))
        p.conn = self.alice
        self.assertEqual(p.try_add(*both), {("t", 0): 29, ("mine", 0): 55})
        # Of records in a transaction nothing is written without the right on its id.
        self.assertEqual(p.try_add(("mine", 0)), {("mine", 0): 0})
        take_all(self.admin, "alice")
        self.grant((WRITE, TOPIC, "mine"))
        self.assertEqual(p.try_produce("mine", 0, b"v")["error_code"], 53)

    def test_without_acknowledgements_a_refusal_ends_the_connection(self):
        with conn_of(self.b, "alice") as k:
            k.send("Produce", 9, **kwire.produce_request([("t", 0, kwire.simple_batch(b"v"))], acks=0))
            self.assertTrue(k.is_closed())

    # ---- making topics

    def test_a_topic_is_made_for_who_may_create_it(self):
        def ask(name):
            return self.alice.call("Metadata", 9, topics=[{"name": name}], allow_auto_topic_creation=True)["topics"][0]

        def there(name):
            return name in [t["name"] for t in self.admin.call("Metadata", 9, topics=None)["topics"]]
        self.grant((DESCRIBE, TOPIC, "auto1"), (DESCRIBE, TOPIC, "auto2"), (DESCRIBE, TOPIC, "auto3"))
        self.assertEqual(ask("auto1")["error_code"], 29)
        self.assertFalse(there("auto1"))
        self.grant((CREATE, TOPIC, "auto2"))
        self.assertIn(ask("auto2")["error_code"], (0, 5))
        self.grant((CREATE, CLUSTER, ""))
        self.assertIn(ask("auto3")["error_code"], (0, 5))
        until("the topics", lambda: there("auto2") and there("auto3"))

    def test_settings_of_a_new_topic_are_told_to_who_may_describe_them(self):
        self.grant((CREATE, CLUSTER, ""))
        made = self.alice.call("CreateTopics", 7, **new_topic("new-1"))["topics"][0]
        self.assertEqual((made["error_code"], made["topic_config_error_code"], made["num_partitions"],
                          made["replication_factor"], made["configs"]), (0, 29, -1, -1, []))
        self.assertNotEqual(made["topic_id"], bytes(16))
        self.grant((DESCRIBE_CONFIGS, TOPIC, "new-2"))
        made = self.alice.call("CreateTopics", 7, **new_topic("new-2"))["topics"][0]
        self.assertEqual((made["error_code"], made["topic_config_error_code"], made["num_partitions"]), (0, 0, 1))
        self.assertTrue(made["configs"])

    # ---- which operations are allowed

    def test_allowed_operations_are_told_to_who_asks(self):
        def bits(*operations):
            return sum(1 << o for o in operations)

        def told(k, asked=True):
            topic = k.call("Metadata", 10, topics=[{"name": "t"}], include_topic_authorized_operations=asked,
                           include_cluster_authorized_operations=asked)
            cluster = k.call("DescribeCluster", 1, include_cluster_authorized_operations=asked, endpoint_type=1)
            group = k.call("DescribeGroups", 5, groups=["g"], include_authorized_operations=asked)
            self.assertEqual(cluster["cluster_authorized_operations"], topic["cluster_authorized_operations"])
            return (topic["topics"][0]["topic_authorized_operations"], topic["cluster_authorized_operations"],
                    group["groups"][0]["authorized_operations"])
        none = -(1 << 31)
        self.assertEqual(told(self.admin, False), (none, none, none))
        self.assertEqual(told(self.admin), (
            bits(*range(READ, DESCRIBE + 1), DESCRIBE_CONFIGS, ALTER_CONFIGS),
            bits(CREATE, *range(ALTER, IDEMPOTENT_WRITE + 1)), bits(READ, DELETE, DESCRIBE)))
        self.assertEqual(told(self.alice), (none, 0, none))
        self.grant((WRITE, TOPIC, "t"), (READ, GROUP, "g"), (ALTER, CLUSTER, ""))
        self.assertEqual(told(self.alice), (bits(WRITE, DESCRIBE), bits(ALTER, DESCRIBE), bits(READ, DESCRIBE)))

    # ---- rights that change

    def test_a_fetch_session_is_asked_again_each_time(self):
        self.grant((READ, TOPIC, "t"))
        k = self.alice

        def more(session, epoch, topics=()):
            answer = k.call("Fetch", 12, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_id=session,
                            session_epoch=epoch, topics=list(topics))
            return answer["session_id"], [(p["error_code"], bool(p["records"])) for _, _, p in kwire.fetched(answer)]
        session, got = more(0, 0, [{"topic": "t", "partitions": [
            {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]}])
        self.assertEqual(got, [(0, True)])
        take_all(self.admin, "alice")
        self.assertEqual(more(session, 1), (session, [(29, False)]))
        self.grant((READ, TOPIC, "t"))
        self.assertEqual(more(session, 2), (session, [(0, True)]))

    def test_a_fetch_that_waits_goes_by_the_rights_at_its_start(self):
        kwire.create_topic(self.admin, "awaited")
        self.grant((READ, TOPIC, "awaited"))
        asked = self.alice.send("Fetch", 12, **kwire.fetch_request(12, [("awaited", 0, 0)], max_wait_ms=30000))
        with conn_of(self.b, "alice") as other:
            kwire.fetch(other, 12, [("awaited", 0, 0)])
        take_all(self.admin, "alice")
        kwire.produce_one(self.admin, "awaited", 0, kwire.simple_batch(b"v"))
        # Whichever came first, the request or the loss of the right: an answer, and no later one with records.
        answer = kwire.fetched(self.alice.receive("Fetch", 12, asked))[0][2]
        self.assertIn((answer["error_code"], bool(answer["records"])), ((0, True), (29, False)))
        self.assertEqual(kwire.fetch(self.alice, 12, [("awaited", 0, 0)])[0][2]["error_code"], 29)


class Everyone(unittest.TestCase):
    def test_with_allow_everyone_what_no_acl_speaks_of_is_everybodys(self):
        with broker(**{"allow_everyone_if_no_acl_found": "true"}) as b, conn_of(b, "admin") as admin, \
                conn_of(b, "alice") as alice:
            for name in ("open", "taken"):
                kwire.create_topic(admin, name)
            grant(admin, "bob", (WRITE, TOPIC, "taken"))
            answers = kwire.produce(alice, 9, [(t, 0, kwire.simple_batch(b"v")) for t in ("open", "taken")])
            self.assertEqual([a["error_code"] for a in answers], [0, 29])
            self.assertEqual([t["name"] for t in alice.call("Metadata", 9, topics=None)["topics"]], ["open"])
            with conn_of(b, "bob") as bob:
                self.assertEqual(kwire.produce(bob, 9, [("taken", 0, kwire.simple_batch(b"v"))])[0]["error_code"], 0)


if __name__ == "__main__":
    unittest.main()
