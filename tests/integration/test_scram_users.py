"""SCRAM credentials of users: AlterUserScramCredentials, DescribeUserScramCredentials, kafka-configs; how they are kept,
and that every broker hears of a change."""
import json

import cluster
import harness
import kwire
import saslwire
import zookeeper

UNSUPPORTED_MECHANISM, NOT_CONTROLLER, UNACCEPTABLE = 33, 41, 93
NOT_FOUND, DUPLICATE = 91, 92
SECRET = "salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=%d"


def described(broker, *users):
    with kwire.Conn(broker.port) as k:
        a = k.call("DescribeUserScramCredentials", 0, users=[{"name": u} for u in users])
    assert a["error_code"] == 0, a
    return {r["user"]: r["error_code"] or [(i["mechanism"], i["iterations"]) for i in r["credential_infos"]]
            for r in a["results"]}


class ScramUsers(harness.unittest.TestCase):
    def test_without_users(self):
        with harness.Broker() as b:
            self.assertEqual(described(b), {})
            self.assertEqual(described(b, "nobody", "twice", "twice"), {"nobody": NOT_FOUND, "twice": DUPLICATE})

    def test_users_of_other_brokers(self):
        with zookeeper.ZooKeeper() as zk:
            b = zk.broker(1)
            with zk.client() as z:
                def put(user, **config):
                    pairs = ",".join('"%s":"%s"' % (k.replace("_", "-"), v) for k, v in config.items())
                    z.create("/config/users/" + user, ('{"version":1,"config":{%s}}' % pairs).encode())
                put("both", SCRAM_SHA_256=SECRET % 4096, SCRAM_SHA_512="iterations=8192," + SECRET % 1)
                put("a%2Cb", SCRAM_SHA_512=SECRET % 16384)
                put("quota", producer_byte_rate="1000")
                put("broken", SCRAM_SHA_256="salt=c2FsdA==,noiterations=5")
                put("%3Cdefault%3E")
            self.assertEqual(described(b), {"both": [(1, 4096), (2, 8192)], "a,b": [(2, 16384)]})
            self.assertEqual(described(b, "a,b", "quota", "broken", "both", "both"),
                             {"a,b": [(2, 16384)], "quota": NOT_FOUND, "broken": NOT_FOUND, "both": DUPLICATE})


def tool(*args, status=0):
    got, out, err = harness.run([harness.program("kafka-configs")] + list(args), deadline=60)
    assert got == status, out + err
    return out if status == 0 else err


class Changes(harness.unittest.TestCase):
    def test_what_may_be_asked(self):
        up, down = saslwire.upsertion, lambda u, m: (u, m)
        s256, s512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
        with harness.Broker() as b, kwire.Conn(b.port) as k:
            def alter(*args, **kw):
                return saslwire.alter(k, *args, **kw)
            self.assertEqual(alter([up("a", s256, "x"), up("a", s512, "x", 16384), up("b,=/%", s512, "y")]), {"a": 0, "b,=/%": 0})
            self.assertEqual(described(b), {"a": [(1, 4096), (2, 16384)], "b,=/%": [(2, 4096)]})
            self.assertEqual(alter([up("a", s256, "x", 8192)], [down("a", s512)]), {"a": 0})
            self.assertEqual(described(b, "a"), {"a": [(1, 8192)]})
            for bad, code in ((dict(up("c", s256, "x"), iterations=4095), UNACCEPTABLE),
                              (dict(up("c", s256, "x"), iterations=16385), UNACCEPTABLE),
                              (dict(up("c", s256, "x"), mechanism=0), UNSUPPORTED_MECHANISM),
                              (dict(up("c", s256, "x"), mechanism=3), UNSUPPORTED_MECHANISM),
                              (dict(up("c", s256, "x"), mechanism=2), UNACCEPTABLE),  # 32 bytes are no SHA-512
                              (dict(up("c", s256, "x"), salt=b""), UNACCEPTABLE),
                              (dict(up("c", s256, "x"), salt=b"x" * 257), UNACCEPTABLE),
                              (dict(up("", s256, "x")), UNACCEPTABLE)):
                # all changes of the user are refused with it, those of others are not
                self.assertEqual(alter([up("d", s256, "x"), bad, up("c", s512 if bad["mechanism"] != 2 else s256, "x")]),
                                 {"d": 0, "c": code} if bad["name"] else {"d": 0, "": code, "c": 0})
            self.assertEqual(alter([up("e", s256, "x"), up("e", s256, "y")]), {"e": DUPLICATE})
            self.assertEqual(alter([up("e", s256, "x")], [down("e", s256)]), {"e": DUPLICATE})
            self.assertEqual(alter([], [down("e", s256), down("a", s256)]), {"e": NOT_FOUND, "a": 0})
            self.assertEqual(alter([], [down("a", s256), down("", s256), down("f", 9)]),
                             {"a": NOT_FOUND, "": UNACCEPTABLE, "f": UNSUPPORTED_MECHANISM})
            self.assertEqual(set(described(b)), {"b,=/%", "c", "d"})
            b.kill()
            b.start()
            self.assertEqual(set(described(b)), {"b,=/%", "c", "d"})

    def test_quotas_and_credentials_of_a_user_live_together(self):
        with harness.Broker() as b, kwire.Conn(b.port) as k:
            def quota(**op):
                return k.call("AlterClientQuotas", 1, validate_only=False, entries=[
                    {"entity": [{"entity_type": "user", "entity_name": "a"}],
                     "ops": [dict({"key": "producer_byte_rate", "value": 9.0, "remove": False}, **op)]}])["entries"][0]["error_code"]
            self.assertEqual(quota(), 0)
            self.assertEqual(saslwire.alter(k, [saslwire.upsertion("a", "SCRAM-SHA-256", "x")]), {"a": 0})
            self.assertEqual(quota(value=11.0), 0)
            self.assertEqual(described(b), {"a": [(1, 4096)]})
            entry, = k.call("DescribeClientQuotas", 1, strict=False, components=[
                {"entity_type": "user", "match_type": 0, "match": "a"}])["entries"]
            self.assertEqual(entry["values"], [{"key": "producer_byte_rate", "value": 11.0}])
            self.assertEqual(quota(remove=True), 0)
            self.assertEqual(described(b), {"a": [(1, 4096)]})
            self.assertEqual(saslwire.alter(k, [], [("a", "SCRAM-SHA-256")]), {"a": 0})
            self.assertEqual(described(b), {})


class InACluster(harness.unittest.TestCase):
    def test_all_brokers_hear_of_changes(self):
        listeners = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
        with cluster.Cluster(2, dict(saslwire.listener("SCRAM-SHA-256,SCRAM-SHA-512",
                                                       connection_failed_authentication_delay_ms="0"),
                                     listeners=listeners)) as c:
            at = c.metadata(1, [])["controller_id"]
            other = 3 - at
            with c.conn(other) as k:
                self.assertEqual(saslwire.alter(k, [saslwire.upsertion("a", "SCRAM-SHA-512", "x")]), {"a": NOT_CONTROLLER})

            def may(user, mechanism, password):
                def at_broker(i):
                    with kwire.Conn(c.broker(i).ports["SASL_PLAINTEXT"]) as k:
                        try:
                            saslwire.login(k, mechanism, user, password)
                            return True
                        except saslwire.Refused:
                            return False
                return [at_broker(1), at_broker(2)]
            with c.conn(at) as k:
                self.assertEqual(saslwire.alter(k, [saslwire.upsertion("a,b", "SCRAM-SHA-512", "x", 8192)]), {"a,b": 0})
                harness.until("both know the user", lambda: all(may("a,b", "SCRAM-SHA-512", "x")))
                self.assertEqual(may("a,b", "SCRAM-SHA-256", "x"), [False, False])
                saslwire.alter(k, [saslwire.upsertion("a,b", "SCRAM-SHA-512", "new")])
                harness.until("both know the new password", lambda: all(may("a,b", "SCRAM-SHA-512", "new")))
                self.assertEqual(may("a,b", "SCRAM-SHA-512", "x"), [False, False])
                with c.zk.client() as z:
                    node = json.loads(z.get("/config/users/a%2Cb"))
                    self.assertEqual((node["version"], list(node["config"])), (1, ["SCRAM-SHA-512"]))
                    self.assertRegex(node["config"]["SCRAM-SHA-512"],
                                     r"^salt=[^,]+,stored_key=[^,]+,server_key=[^,]+,iterations=4096$")
                saslwire.alter(k, [], [("a,b", "SCRAM-SHA-512")])
                harness.until("nobody knows the user", lambda: not any(may("a,b", "SCRAM-SHA-512", "new")))

            # the tool, through a broker, and straight into ZooKeeper
            at = ["--bootstrap-server", "127.0.0.1:%d" % c.broker(other).port]
            user = ["--entity-type", "users", "--entity-name", "carol"]
            add = "SCRAM-SHA-256=[iterations=8192,password=p,w=1],SCRAM-SHA-512=[password=q]"
            self.assertEqual(tool(*at, "--alter", *user, "--add-config", add), "Completed updating config for user carol.\n")
            self.assertEqual(tool(*at, "--describe", *user), "SCRAM credential configs for user-principal 'carol' are "
                             "SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096\n")
            harness.until("both know carol", lambda: all(may("carol", "SCRAM-SHA-256", "p,w=1") + may("carol", "SCRAM-SHA-512", "q")))
            tool(*at, "--alter", *user, "--delete-config", "SCRAM-SHA-512")
            self.assertEqual(tool(*at, "--describe", "--entity-type", "users"),
                             "SCRAM credential configs for user-principal 'carol' are SCRAM-SHA-256=iterations=8192\n")
            zk = ["--zookeeper", c.zk.connect]
            user[-1] = "d=d"
            out = tool(*zk, "--alter", *user, "--add-config", "SCRAM-SHA-256=[password=r]")
            self.assertIn("Completed updating config for entity: user-principal 'd=d'.\n", out)
            harness.until("both know d=d", lambda: all(may("d=d", "SCRAM-SHA-256", "r")))
            out = tool(*zk, "--describe", *user)
            self.assertRegex(out, r"Configs for user-principal 'd=d' are SCRAM-SHA-256=salt=\S+,stored_key=\S+,iterations=4096\n")
            self.assertEqual(tool(*zk, "--describe", "--entity-type", "users").count("Configs for user-principal"), 2)
            tool(*zk, "--alter", *user, "--delete-config", "SCRAM-SHA-256")
            harness.until("nobody knows d=d", lambda: not any(may("d=d", "SCRAM-SHA-256", "r")))

    def test_users_are_made_before_the_first_broker(self):
        with zookeeper.ZooKeeper() as zk:
            at = zk.connect + "/a/b"  # made by the tool, as a broker makes it
            out = tool("--zookeeper", at, "--alter", "--entity-type", "users", "--entity-name", "admin",
                       "--add-config", "SCRAM-SHA-512=[password=adminpw]")
            self.assertIn("Completed updating", out)
            login = saslwire.login_of(saslwire.SCRAM_MODULE, "admin", "adminpw")
            b = zk.broker(1, dict(saslwire.listener("SCRAM-SHA-512", **{"scram__sha__512_sasl_jaas_config": login}), **{
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
                "security.inter.broker.protocol": "SASL_PLAINTEXT",
                "listeners": "SASL_PLAINTEXT://127.0.0.1:0"}), connect=at)
            with kwire.Conn(b.ports["SASL_PLAINTEXT"]) as k:
                saslwire.login(k, "SCRAM-SHA-512", "admin", "adminpw")


class ToolMistakes(harness.unittest.TestCase):
    def test_they_are_told(self):
        with harness.Broker() as b:
            at = ["--bootstrap-server", "127.0.0.1:%d" % b.port, "--alter"]
            user = ["--entity-type", "users", "--entity-name", "u"]
            for args, words in ((user + ["--add-config", "SCRAM-SHA-256=[password=]"], "Invalid credential property"),
                                (user + ["--add-config", "SCRAM-SHA-256=x"], "Invalid credential property"),
                                (user + ["--add-config", "SCRAM-SHA-256=[iterations=5,password=x]"], "minimum value of 4096"),
                                (user + ["--add-config", "SCRAM-SHA-256=[iterations=99999,password=x]"], "maximum value"),
                                (user + ["--add-config", "SCRAM-SHA-256=[iterations=,password=x]"], "minimum value"),
                                (user + ["--add-config", "SCRAM-SHA-256=[password=x],producer_byte_rate=1"], "simultaneously"),
                                (user + ["--add-config", "SCRAM-SHA-1=[password=x]"], "Only quota and SCRAM credential configs"),
                                (user + ["--delete-config", "SCRAM-SHA-256"], "does not exist"),
                                (["--entity-type", "users", "--entity-default", "--add-config", "SCRAM-SHA-256=[password=x]"],
                                 "not allowed with User SCRAM"),
                                (["--entity-type", "clients", "--entity-name", "u", "--add-config",
                                  "SCRAM-SHA-256=[password=x]"], "Only quota configs can be added for 'clients'")):
                err = tool(*at, *args, status=1)
                self.assertIn(words, err)


if __name__ == "__main__":
    harness.main()
