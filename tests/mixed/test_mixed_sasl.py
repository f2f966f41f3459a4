"""SASL between Apache Kafka's brokers and kafkad's in one cluster, and Apache's clients and tools against both: users that
either kind makes, SCRAM and PLAIN between brokers, sessions of two seconds. ACLs that either kind stores hold at both;
brokers, and the test itself, are super users. Delegation tokens made at either kind are the same at the other."""
import base64
import os
import re
import tempfile
import unittest

import apache
import harness
import kwire
import saslwire
import zookeeper
from cluster import History

SCRAM = {m: saslwire.login_of(saslwire.SCRAM_MODULE, "admin", "adminpw") for m in ("scram-sha-256", "scram-sha-512")}
PLAIN = saslwire.users(admin="adminpw", alice="alicepw")


def each(mechanism, reauth_ms):
    """Settings of a slot: a SASL listener for brokers and clients, one without for the test itself."""
    prefix = "listener.name.sasl_plaintext."

    def of(i):
        ports = zookeeper.free_ports(2)
        own = {"listeners": "SASL_PLAINTEXT://127.0.0.1:%d,PLAINTEXT://127.0.0.1:%d" % tuple(ports),
               "inter.broker.listener.name": "SASL_PLAINTEXT", "sasl.mechanism.inter.broker.protocol": mechanism,
               "connections.max.reauth.ms": reauth_ms,
               prefix + "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
               prefix + "plain.sasl.jaas.config": PLAIN,
               "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:admin; User:ANONYMOUS",
               "delegation.token.secret.key": "s3cret"}
        own.update({prefix + m + ".sasl.jaas.config": line for m, line in SCRAM.items()})
        return own
    return of


class MixedSasl(unittest.TestCase):
    def cluster(self, kinds, mechanism, reauth_ms=0):
        c = apache.Mixed(kinds, each=each(mechanism, reauth_ms), start=False)
        self.addCleanup(c.zk.close, False)
        for m in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            status, out, err = harness.run([harness.program("kafka-configs"), "--zookeeper", c.zk.connect, "--alter",
                                            "--entity-type", "users", "--entity-name", "admin", "--add-config",
                                            m + "=[password=adminpw]"], deadline=60)
            self.assertEqual(status, 0, out + err)
        c.start_all()
        return c

    def properties(self, mechanism, user, password):
        f = tempfile.NamedTemporaryFile("w", suffix=".properties", delete=False)
        self.addCleanup(os.unlink, f.name)
        module = saslwire.PLAIN_MODULE if mechanism == "PLAIN" else saslwire.SCRAM_MODULE
        f.write("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=%s\nsasl.jaas.config=%s\n" %
                (mechanism, saslwire.login_of(module, user, password)))
        f.close()
        return f.name

    def sasl_address(self, c, i):
        return c.broker(i).overrides["listeners"].split(",")[0].split("//")[1]

    def check(self, mechanism, reauth_ms):
        c = self.cluster({1: "apache", 2: "kafkad", 3: "kafkad"}, mechanism, reauth_ms)
        c.create_topic("t", assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        with History(c, "t", 3) as h:
            h.grow(60)
            c.make_controller(2)  # kafkad's gives orders to Apache's
            h.grow(60)
            c.make_controller(1)
            h.grow(60)
        h.check()
        for p in range(3):
            self.assertEqual(len(c.state("t", p)["isr"]), 3)
        for i in (1, 2, 3):
            self.assertFalse([line for line in c.broker(i).lines if "uthentication failed" in line or
                              "Failed authentication" in line])
        return c

    def acls(self, c, principal, *args, at):
        return apache.run_tool("kafka.admin.AclCommand", "--bootstrap-server", c.broker(at).address, "--allow-principal",
                               principal, *args)

    def check_acls(self, c):
        """What Apache stores holds at kafkad's brokers, and the reverse; both tell of the same."""
        def may(i, api, version, key, **body):
            host, port = self.sasl_address(c, i).split(":")
            with kwire.Conn(int(port), host) as k:
                saslwire.login(k, "PLAIN", "alice", "alicepw")
                return k.call(api, version, **body)[key] == 0

        def may_describe(i):
            return may(i, "DescribeAcls", 3, "error_code", resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1,
                       principal_filter=None, host_filter=None, operation=1, permission_type=1)
        for i in (1, 2, 3):
            self.assertFalse(may_describe(i))
        self.acls(c, "User:alice", "--add", "--operation", "Describe", "--cluster", at=1)
        for i in (1, 2, 3):
            harness.until("broker %d lets her" % i, lambda: may_describe(i))
        self.acls(c, "User:alice", "--add", "--operation", "Write", "--topic", "t", "--resource-pattern-type", "prefixed", at=2)
        self.acls(c, "User:alice", "--remove", "--force", "--operation", "Describe", "--cluster", at=3)
        for i in (1, 2, 3):
            harness.until("broker %d lets her no more" % i, lambda: not may_describe(i))
        for i in (1, 2):
            out = apache.run_tool("kafka.admin.AclCommand", "--bootstrap-server", c.broker(i).address, "--list")
            self.assertEqual(out.strip().splitlines()[0].strip(), "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, "
                             "name=t, patternType=PREFIXED)`:")
            self.assertIn("(principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW)", out)
            self.assertEqual(out.count("principal="), 1, out)

    def check_tokens(self, c):
        """Made by Apache's tool at one, used, renewed and removed at another; what either kind says of it is the same."""
        p = self.properties("PLAIN", "alice", "alicepw")

        def tool(i, *args):
            return apache.run_tool("org.apache.kafka.tools.DelegationTokenCommand", "--bootstrap-server",
                                   self.sasl_address(c, i), "--command-config", p, *args)

        def let_in(i, token, secret):
            host, port = self.sasl_address(c, i).split(":")
            with kwire.Conn(int(port), host) as k:
                saslwire.handshake(k, "SCRAM-SHA-256")
                s = saslwire.Scram("SCRAM-SHA-256", token, secret, extensions=",tokenauth=true")
                try:
                    s.check(saslwire.token(k, s.final(saslwire.token(k, s.first()))))
                    return True
                except saslwire.Refused:
                    return False

        for at, other in ((1, 2), (2, 1)):
            out = tool(at, "--create", "--max-life-time-period", -1, "--renewer-principal", "User:bob")
            token, secret = re.search(r"^(\S{22})\s+(\S{88})\s", out, re.M).groups()
            self.assertEqual(len(base64.b64decode(secret)), 64)
            for i in (1, 2, 3):
                harness.until("broker %d lets the token in" % i, lambda: let_in(i, token, secret))
            self.assertEqual(tool(1, "--describe", "--owner-principal", "User:alice").splitlines()[1:],
                             tool(2, "--describe", "--owner-principal", "User:alice").splitlines()[1:])
            for i in (1, 2):  # kafkad's tool says the same of it
                status, out, err = harness.run([
                    harness.program("kafka-delegation-tokens"), "--bootstrap-server", self.sasl_address(c, i), "--command-config", p,
                    "--describe", "--owner-principal", "User:alice"], deadline=60)
                self.assertEqual((status, out), (0, tool(i, "--describe", "--owner-principal", "User:alice")), err)
            tool(other, "--renew", "--hmac", secret, "--renew-time-period", 3600000)
            tool(other, "--expire", "--hmac", secret, "--expiry-time-period", -1)
            for i in (1, 2, 3):
                harness.until("broker %d has forgotten it" % i, lambda: not let_in(i, token, secret))

    def test_scram_and_users_of_either_kind(self):
        c = self.check("SCRAM-SHA-512", 0)
        # a user that Apache's tool makes through a kafkad controller; all brokers let him in
        c.make_controller(3)
        c.tool("configs", "--alter", "--entity-type", "users", "--entity-name", "a,b=c", "--add-config",
               "SCRAM-SHA-256=[iterations=8192,password=pw]", at=2)
        out = c.tool("configs", "--describe", "--entity-type", "users", "--entity-name", "a,b=c", at=1)
        self.assertIn("SCRAM-SHA-256=iterations=8192", out)
        c.make_controller(1)  # and one that ours makes through an Apache controller
        status, out, err = harness.run([harness.program("kafka-configs"), "--bootstrap-server", c.broker(2).address, "--alter",
                                        "--entity-type", "users", "--entity-name", "carol", "--add-config",
                                        "SCRAM-SHA-512=[password=c]"], deadline=60)
        self.assertEqual(status, 0, out + err)
        for user, mechanism, password in (("a,b=c", "SCRAM-SHA-256", "pw"), ("carol", "SCRAM-SHA-512", "c")):
            for i in (1, 2, 3):
                def let_in():
                    host, port = self.sasl_address(c, i).split(":")
                    try:
                        with kwire.Conn(int(port), host) as k:
                            saslwire.login(k, mechanism, user, password)
                        return True
                    except saslwire.Refused:
                        return False
                harness.until("broker %d knows %s" % (i, user), let_in)
        self.acls(c, "User:a,b=c", *("--add --operation All --topic t --group".split() + ["*"]), at=2)
        # Apache's clients
        p = self.properties("SCRAM-SHA-256", "a,b=c", "pw")
        at = ["--bootstrap-server", self.sasl_address(c, 2)]
        apache.run_tool("console-producer", *at, "--producer.config", p, "--topic", "t", input="x\n")
        out = apache.run_tool("console-consumer", *at, "--consumer.config", p, "--topic", "t", "--from-beginning",
                              "--max-messages", 10)
        self.assertEqual(len(out.splitlines()), 10)
        # each says no to the other's clients alike
        wrong = self.properties("SCRAM-SHA-256", "a,b=c", "no")
        said = set()
        for i in (1, 2):
            with self.assertRaises(AssertionError) as e:
                apache.run_tool("topics", "--bootstrap-server", self.sasl_address(c, i), "--command-config", wrong, "--list")
            said.add([line for line in str(e.exception).splitlines() if "SaslAuthenticationException" in line][0].split("Exception: ")[1])
        self.assertEqual(len(said), 1, said)

    def test_plain_with_short_sessions(self):
        c = self.check("PLAIN", 4000)
        self.check_acls(c)
        self.check_tokens(c)
        # A Java producer renews its sessions at kafkad's brokers, and goes on. It begins to when 85 to 95 % of a session are
        # over: on a machine that stands still for longer than the rest the session ends fairly, so it may try again.
        self.assertTrue(any(self.renews(c) for _ in range(3)))

    def renews(self, c):
        before = {i: len(c.broker(i).lines) for i in (2, 3)}
        out = apache.run_tool("producer-perf-test", "--topic", "t", "--num-records", 30000, "--record-size", 100,
                              "--throughput", 4000, "--producer.config", self.properties("PLAIN", "alice", "alicepw"),
                              "--producer-props", "bootstrap.servers=" + self.sasl_address(c, 2), "retries=0", deadline=180)
        ended = [line for i in (2, 3) for line in c.broker(i).lines[before[i]:] if "session has ended" in line]
        print("\n".join(out.splitlines()[-1:] + ended), flush=True)
        return "30000 records sent" in out and not ended


if __name__ == "__main__":
    apache.main()
