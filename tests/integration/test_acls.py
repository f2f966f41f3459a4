"""ACLs in the metadata store: the three APIs, what two brokers on one ZooKeeper see of each other's changes and of what
others write there, what stays over restarts and lost sessions. What the ACLs mean for other requests is test_authorizer."""
import unittest

import harness
import kwire
import saslwire
import zookeeper
from harness import until

TOPIC, GROUP, CLUSTER = 2, 3, 4
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
ALL, READ, WRITE, ALTER, DESCRIBE = 2, 3, 4, 7, 8
DENY, ALLOW = 2, 3
INVALID_REQUEST, CLUSTER_AUTHORIZATION_FAILED, UNKNOWN, SECURITY_DISABLED = 42, 31, -1, 54

# Brokers and administrators come over PLAINTEXT, where they are ANONYMOUS; alice logs in.
SETTINGS = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:ANONYMOUS",
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
            "inter.broker.listener.name": "PLAINTEXT"}
SETTINGS.update(saslwire.listener("PLAIN", plain_sasl_jaas_config=saslwire.users(admin="adminpw", alice="alicepw")))


def acl(principal, operation, permission=ALLOW, host="*"):
    return {"principal": principal, "host": host, "operation": operation, "permission_type": permission}


def creation(kind, name, entry, pattern=LITERAL):
    return dict(entry, resource_type=kind, resource_name=name, resource_pattern_type=pattern)


def create(k, *creations, version=3):
    results = k.call("CreateAcls", version, creations=list(creations))["results"]
    return [r["error_code"] for r in results]


def wanted(kind=1, name=None, pattern=ANY, principal=None, host=None, operation=1, permission=1):
    return {"resource_type_filter": kind, "resource_name_filter": name, "pattern_type_filter": pattern,
            "principal_filter": principal, "host_filter": host, "operation": operation, "permission_type": permission}


def describe(k, version=3, **f):
    answer = k.call("DescribeAcls", version, **wanted(**f))
    assert answer["error_code"] == 0, answer
    return sorted((r["resource_type"], r["resource_name"], r.get("pattern_type", LITERAL), a["principal"], a["operation"],
                   a["permission_type"], a["host"]) for r in answer["resources"] for a in r["acls"])


def alice(b):
    k = kwire.Conn(b.ports["SASL_PLAINTEXT"])
    saslwire.login(k, "PLAIN", "alice", "alicepw")
    return k


def may_describe(k):
    return k.call("DescribeAcls", 3, **wanted())["error_code"] == 0


class ByItself(unittest.TestCase):
    """One broker, without ZooKeeper."""

    @classmethod
    def setUpClass(cls):
        cls.b = harness.Broker(overrides=SETTINGS)

    @classmethod
    def tearDownClass(cls):
        cls.b.close()

    def setUp(self):
        self.k = kwire.Conn(self.b.ports["PLAINTEXT"])
        self.addCleanup(self.k.close)
        self.k.call("DeleteAcls", 3, filters=[wanted()])

    def test_all_versions(self):
        for version in range(4):
            name = "v%d" % version
            entry = creation(TOPIC, name, acl("User:a", READ))
            self.assertEqual(create(self.k, entry, version=version), [0])
            self.assertEqual(describe(self.k, version, name=name, kind=TOPIC, pattern=LITERAL),
                             [(TOPIC, name, LITERAL, "User:a", READ, ALLOW, "*")])
            gone = self.k.call("DeleteAcls", version, filters=[wanted(TOPIC, name, LITERAL)])["filter_results"][0]
            self.assertEqual((gone["error_code"], len(gone["matching_acls"])), (0, 1))
            self.assertEqual(gone["matching_acls"][0]["resource_name"], name)
            self.assertEqual(describe(self.k, version, name=name, kind=TOPIC, pattern=LITERAL), [])

    def test_each_for_itself(self):
        good, twice = creation(TOPIC, "good", acl("User:a", READ)), creation(GROUP, "g", acl("User:b", ALL, DENY, "::1"))
        bad = [creation(TOPIC, "a/b", acl("User:a", READ)), creation(TOPIC, "", acl("User:a", READ)),
               creation(CLUSTER, "other", acl("User:a", READ)), creation(TOPIC, "t", acl("nobody", READ)),
               creation(99, "t", acl("User:a", READ)), creation(1, "t", acl("User:a", READ)),
               creation(TOPIC, "t", acl("User:a", 99)), creation(TOPIC, "t", acl("User:a", 1)),
               creation(TOPIC, "t", acl("User:a", READ, 1)), creation(TOPIC, "t", acl("User:a", READ), MATCH)]
        self.assertEqual(create(self.k, good, *bad, twice, good, twice), [0] + [INVALID_REQUEST] * len(bad) + [0, 0, 0])
        both = [(TOPIC, "good", LITERAL, "User:a", READ, ALLOW, "*"), (GROUP, "g", LITERAL, "User:b", ALL, DENY, "::1")]
        self.assertEqual(describe(self.k), both)
        self.assertEqual(create(self.k, good, twice), [0, 0])  # they are there
        self.assertEqual(describe(self.k), both)
        self.assertEqual(create(self.k), [])

    def test_filters(self):
        create(self.k, creation(TOPIC, "t", acl("User:a", READ)), creation(TOPIC, "t", acl("User:b", WRITE, DENY)),
               creation(TOPIC, "*", acl("User:a", READ)), creation(TOPIC, "t", acl("User:a", READ), PREFIXED),
               creation(GROUP, "t", acl("User:a", READ, ALLOW, "1.2.3.4")))

        def found(**f):
            return {(r[0], r[1], r[2]) for r in describe(self.k, **f)}
        literal, star, prefixed, group = (TOPIC, "t", LITERAL), (TOPIC, "*", LITERAL), (TOPIC, "t", PREFIXED), (GROUP, "t", LITERAL)
        self.assertEqual(found(name="t"), {literal, prefixed, group})
        self.assertEqual(found(kind=TOPIC, name="t", pattern=LITERAL), {literal})
        self.assertEqual(found(kind=TOPIC, name="t", pattern=MATCH), {literal, star, prefixed})
        self.assertEqual(found(kind=TOPIC, name="tt", pattern=MATCH), {star, prefixed})
        self.assertEqual(found(pattern=PREFIXED), {prefixed})
        self.assertEqual(found(principal="User:b"), {literal})
        self.assertEqual(found(host="1.2.3.4"), {group})
        self.assertEqual(found(operation=WRITE, permission=DENY), {literal})
        self.assertEqual(found(operation=ALL), set())
        for field in ("kind", "pattern", "operation", "permission"):
            for code in (0, 99):
                answer = self.k.call("DescribeAcls", 3, **wanted(**{field: code}))
                self.assertEqual((answer["error_code"], answer["resources"]), (INVALID_REQUEST, []))
        results = self.k.call("DeleteAcls", 3, filters=[
            wanted(operation=99), wanted(TOPIC, "t", MATCH, principal="User:a"), wanted(TOPIC, "t"), wanted(TOPIC, "none", LITERAL)])
        self.assertEqual([(r["error_code"], len(r["matching_acls"])) for r in results["filter_results"]],
                         [(INVALID_REQUEST, 0), (0, 3), (0, 1), (0, 0)])
        self.assertEqual(found(), {group})

    def test_who_may(self):
        with alice(self.b) as k:
            entry = creation(TOPIC, "t", acl("User:alice", ALL))
            self.assertFalse(may_describe(k))
            self.assertEqual(create(k, entry, entry), [CLUSTER_AUTHORIZATION_FAILED] * 2)
            results = k.call("DeleteAcls", 2, filters=[wanted(), wanted()])["filter_results"]
            self.assertEqual([r["error_code"] for r in results], [CLUSTER_AUTHORIZATION_FAILED] * 2)
            self.b.wait_line(r"INFO \[Authorizer\] Principal = User:alice is Denied operation = Describe from host = 127\.0\.0\.1 "
                             r"on resource = Cluster:LITERAL:kafka-cluster for request = DescribeAcls")
            # each of these is in force when it is answered
            self.assertEqual(create(self.k, creation(CLUSTER, "kafka-cluster", acl("User:alice", DESCRIBE))), [0])
            self.assertTrue(may_describe(k))
            self.assertEqual(create(k, entry), [CLUSTER_AUTHORIZATION_FAILED])
            self.assertEqual(create(self.k, creation(CLUSTER, "kafka-cluster", acl("User:*", ALTER, ALLOW, "127.0.0.1"))), [0])
            self.assertEqual(create(k, entry), [0])
            self.assertEqual(create(k, creation(CLUSTER, "kafka-cluster", acl("User:alice", ALL, DENY))), [0])
            self.assertFalse(may_describe(k))
            self.assertEqual(create(k, entry), [CLUSTER_AUTHORIZATION_FAILED])
            self.assertTrue(may_describe(self.k))  # a super user

    def test_a_restart_keeps_them(self):
        create(self.k, creation(TOPIC, "kept", acl("User:a", READ), PREFIXED))
        self.k.close()
        self.b.stop()
        self.b.start()
        with kwire.Conn(self.b.ports["PLAINTEXT"]) as k:
            self.assertEqual(describe(k), [(TOPIC, "kept", PREFIXED, "User:a", READ, ALLOW, "*")])

    def test_without_an_authorizer(self):
        with harness.Broker() as b, kwire.Conn(b.ports["PLAINTEXT"]) as k:
            answer = k.call("DescribeAcls", 3, **wanted())
            self.assertEqual((answer["error_code"], answer["resources"]), (SECURITY_DISABLED, []))
            self.assertIn("No Authorizer is configured", answer["error_message"])
            entry = creation(TOPIC, "a/b", acl("User:a", READ))
            self.assertEqual(create(k, entry, entry), [SECURITY_DISABLED] * 2)
            results = k.call("DeleteAcls", 3, filters=[wanted(0)])["filter_results"]
            self.assertEqual([r["error_code"] for r in results], [SECURITY_DISABLED])


class OnZooKeeper(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.zk = zookeeper.ZooKeeper(tick_ms=250)
        cls.one, cls.two = cls.zk.broker(1, SETTINGS), cls.zk.broker(2, SETTINGS)

    @classmethod
    def tearDownClass(cls):
        cls.zk.close()

    def seen(self, b, **f):
        with kwire.Conn(b.ports["PLAINTEXT"]) as k:
            return describe(k, **f)

    def test_two_brokers_and_what_others_write(self):
        """One life: changes by either broker, by hand in Apache's bytes, broken nodes, a lost session, a restart."""
        one, two = self.one, self.two
        with kwire.Conn(one.ports["PLAINTEXT"]) as k, alice(two) as at_two, self.zk.client() as z:
            self.assertFalse(may_describe(at_two))
            self.assertEqual(create(k, creation(CLUSTER, "kafka-cluster", acl("User:alice", DESCRIBE))), [0])
            until("the other broker knows", lambda: may_describe(at_two))
            # as Apache 3.9 writes it, to the byte
            self.assertEqual(z.get("/kafka-acl/Cluster/kafka-cluster"),
                             b'{"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*",'
                             b'"operation":"Describe"}],"version":1}')
            self.assertEqual(z.get("/kafka-acl-changes/" + max(z.children("/kafka-acl-changes"))), b"CLUSTER:kafka-cluster")
            self.assertEqual(create(k, creation(GROUP, "p.", acl('User:CN="x"', ALL, DENY), PREFIXED)), [0])
            self.assertEqual(z.get("/kafka-acl-extended/prefixed/Group/p."),
                             b'{"acls":[{"principal":"User:CN=\\"x\\"","permissionType":"Deny","host":"*","operation":"All"}],'
                             b'"version":1}')
            self.assertEqual(z.get("/kafka-acl-extended-changes/" + max(z.children("/kafka-acl-extended-changes"))),
                             b'{"version":1,"resourceType":"GROUP","name":"p.","patternType":"PREFIXED"}')
            # somebody else's work, and what nobody can read
            z.create("/kafka-acl/Topic/t", b'{"version":1,"acls":[{"host":"1.1.1.1","operation":"Read","x":1,'
                                           b'"permissionType":"Allow","principal":"User:z"},{"principal":"?"}]}')
            z.create("/kafka-acl/Topic/broken", b'{"version":7}')
            z.create("/kafka-acl/Planet", b"")
            for text in (b"TOPIC:t", b"TOPIC:broken", b"rubbish", b"PLANET:x"):
                z.create("/kafka-acl-changes/acl_changes_", text, flags=2)
            for b in (one, two):
                until("it is read", lambda: self.seen(b, kind=TOPIC) == [(TOPIC, "t", LITERAL, "User:z", READ, ALLOW, "1.1.1.1")])
                b.wait_line(r"/kafka-acl/Topic/broken is not a list of ACLs")
                b.wait_line(r"/kafka-acl/Topic/t: 1 entries that are not known")
            self.assertEqual(create(k, creation(TOPIC, "broken", acl("User:a", READ))), [UNKNOWN])
            # nodes change, and no notice tells of it, as if it had come and gone while a session was lost
            z.set("/kafka-acl/Cluster/kafka-cluster", b'{"version":1,"acls":[]}')
            z.delete("/kafka-acl/Topic/t")
            self.assertTrue(may_describe(at_two))
            self.zk.expire(self.zk.sessions_of("/brokers/ids/2"))
            until("the new session has read all", lambda: not may_describe(at_two))
            until("what is gone is seen", lambda: self.seen(two, kind=TOPIC) == [])
            # both write at the same time, to one resource
            with kwire.Conn(two.ports["PLAINTEXT"]) as other:
                sent = [(c, c.send("CreateAcls", 3, creations=[creation(TOPIC, "both", acl("User:%d" % i, READ))]))
                        for i, c in enumerate((k, other) * 5)]
                for c, at in sent:
                    self.assertEqual(c.receive("CreateAcls", 3, at)["results"][0]["error_code"], 0)
            for b in (one, two):
                until("all of them", lambda: len(self.seen(b, name="both")) == 10)
        one.stop()
        one.start()
        self.assertEqual(len(self.seen(one, name="both")), 10)
        one.wait_line(r"\[Authorizer\] ACLs of \d+ resource patterns are in force")
        for b in (one, two):
            self.assertFalse([line for line in b.lines if "Denied" in line and "ANONYMOUS" in line])

    def test_brokers_that_may_not(self):
        """A third one asks for ACLs that let no broker in: it says so at its start."""
        with zookeeper.ZooKeeper(tick_ms=250) as zk:
            b = zk.broker(1, dict(SETTINGS, **{"super.users": "User:admin"}), start=False)
            b.start(wait=False)
            b.wait_line(r"WARN \[Authorizer\] brokers come over the listener PLAINTEXT, where they are User:ANONYMOUS")
            b.kill()
            # a broker by itself with its ACLs at a ZooKeeper
            own = dict(SETTINGS, **{"authorizer.zookeeper.url": zk.connect + "/acls"})
            with harness.Broker(overrides=own) as b, kwire.Conn(b.ports["PLAINTEXT"]) as k, zk.client() as z:
                self.assertEqual(create(k, creation(TOPIC, "t", acl("User:a", READ))), [0])
                self.assertEqual(describe(k), [(TOPIC, "t", LITERAL, "User:a", READ, ALLOW, "*")])
                self.assertEqual(z.children("/acls/kafka-acl/Topic"), ["t"])


if __name__ == "__main__":
    unittest.main()
