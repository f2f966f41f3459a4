"""Delegation tokens (KIP-48): one made at one broker logs in at the other, is renewed, expires and is gone; who may ask;
what others wrote in ZooKeeper."""
import base64
import hashlib
import hmac
import json
import time
import unittest

import harness
import kwire
import saslwire
import zookeeper
from harness import until

DISABLED, NOT_FOUND, MISMATCH, NOT_ALLOWED, DENIED, EXPIRED, PRINCIPAL_TYPE = 61, 62, 63, 64, 65, 66, 67
AUTHENTICATION_FAILED = 58
DESCRIBE, CREATE_TOKENS, DESCRIBE_TOKENS = 8, 13, 14
TOKEN, USER, LITERAL, ALLOW = 6, 7, 3, 3
SECRET = "the secret of all brokers"
DAY = 24 * 3600 * 1000

SETTINGS = {"listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0", "inter.broker.listener.name": "PLAINTEXT",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:ANONYMOUS;User:admin"}
SETTINGS.update(saslwire.listener("PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", plain_sasl_jaas_config=saslwire.users(
    admin="adminpw", alice="alicepw", bob="bobpw")))
WITH_TOKENS = dict(SETTINGS, **{"delegation.token.secret.key": SECRET})


def secret_of(token_id):
    return hmac.new(SECRET.encode(), token_id.encode(), hashlib.sha512).digest()


def login(b, user):
    k = kwire.Conn(b.ports["SASL_PLAINTEXT"])
    saslwire.login(k, "PLAIN", user, user + "pw")
    return k


def token_login(b, token, mechanism="SCRAM-SHA-256", password=None):
    """Whoever has the token. Raises saslwire.Refused."""
    k = kwire.Conn(b.ports["SASL_PLAINTEXT"])
    try:
        saslwire.handshake(k, mechanism)
        s = saslwire.Scram(mechanism, token["token_id"], password or base64.b64encode(token["hmac"]).decode(),
                           extensions=",tokenauth=true")
        s.check(saslwire.token(k, s.final(saslwire.token(k, s.first()))))
    except Exception:
        k.close()
        raise
    return k


def works(b, token, mechanism="SCRAM-SHA-256"):
    try:
        token_login(b, token, mechanism).close()
        return True
    except saslwire.Refused as e:
        assert e.code == AUTHENTICATION_FAILED, e
        return False


def create(k, version=3, life=-1, renewers=(), **owner):
    body = {"renewers": [{"principal_type": t, "principal_name": n} for t, n in renewers], "max_lifetime_ms": life}
    if version >= 3:
        body.update({"owner_principal_type": None, "owner_principal_name": None}, **owner)
    return k.call("CreateDelegationToken", version, **body)


def renew(k, token, period=-1, version=2):
    return k.call("RenewDelegationToken", version, hmac=token["hmac"], renew_period_ms=period)


def expire(k, token, period=-1, version=2):
    return k.call("ExpireDelegationToken", version, hmac=token["hmac"], expiry_time_period_ms=period)


def describe(k, owners=None, version=3):
    if owners is not None:
        owners = [{"principal_type": "User", "principal_name": o} for o in owners]
    answer = k.call("DescribeDelegationToken", version, owners=owners)
    assert answer["error_code"] == 0, answer
    return {t["token_id"]: t for t in answer["tokens"]}


class ByItself(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.b = harness.Broker(overrides=WITH_TOKENS)

    @classmethod
    def tearDownClass(cls):
        cls.b.close()

    def conn(self, user):
        k = login(self.b, user)
        self.addCleanup(k.close)
        return k

    def test_all_versions_and_times(self):
        k = self.conn("alice")
        for version in range(4):
            t = create(k, version, renewers=[("User", "bob")])
            self.assertEqual((t["error_code"], t["principal_type"], t["principal_name"]), (0, "User", "alice"))
            self.assertEqual(t["hmac"], secret_of(t["token_id"]))
            self.assertEqual(t["expiry_timestamp_ms"], t["issue_timestamp_ms"] + DAY)
            self.assertEqual(t["max_timestamp_ms"], t["issue_timestamp_ms"] + 7 * DAY)
            told = describe(k, version=version)[t["token_id"]]
            self.assertEqual([told[x] for x in ("issue_timestamp", "expiry_timestamp", "max_timestamp", "hmac", "renewers")],
                             [t["issue_timestamp_ms"], t["expiry_timestamp_ms"], t["max_timestamp_ms"], t["hmac"],
                              [{"principal_type": "User", "principal_name": "bob"}]])
            low = min(version, 2)
            renewed = renew(k, t, 100 * DAY, low)
            self.assertEqual((renewed["error_code"], renewed["expiry_timestamp_ms"]), (0, t["max_timestamp_ms"]))
            self.assertEqual(renew(k, t, 2**63 - 1, low)["expiry_timestamp_ms"], t["max_timestamp_ms"])
            self.assertGreaterEqual(expire(k, t, 5000, low)["expiry_timestamp_ms"], t["issue_timestamp_ms"] + 5000)
            self.assertEqual(expire(k, t, -1, low)["error_code"], 0)
            self.assertNotIn(t["token_id"], describe(k, version=version))
        t = create(k, life=1000)
        self.assertEqual(t["max_timestamp_ms"], t["issue_timestamp_ms"] + 1000)
        self.assertEqual(t["expiry_timestamp_ms"], t["max_timestamp_ms"])
        self.assertEqual(create(k, life=2**63 - 1)["error_code"], 0)

    def test_who_may(self):
        alice, bob, admin = self.conn("alice"), self.conn("bob"), self.conn("admin")
        t = create(alice, renewers=[("User", "bob")])
        own = create(alice)
        # the right one, in order: unknown, not one's own, and then the rest
        self.assertEqual(renew(alice, {"hmac": b"x" * 64})["error_code"], NOT_FOUND)
        self.assertEqual(renew(alice, {"hmac": b""})["error_code"], NOT_FOUND)
        for f in (renew, expire):
            answer = f(bob, own)
            self.assertEqual((answer["error_code"], answer["expiry_timestamp_ms"]), (MISMATCH, -1))
        self.assertEqual(renew(bob, t)["error_code"], 0)
        # what is seen
        self.assertEqual(set(describe(bob)) & {t["token_id"], own["token_id"]}, {t["token_id"]})
        self.assertLessEqual({t["token_id"], own["token_id"]}, set(describe(admin)))
        self.assertEqual(describe(alice, owners=[]), {})
        self.assertIn(t["token_id"], describe(alice, owners=["bob"]))  # he may renew it
        self.assertNotIn(own["token_id"], describe(alice, owners=["bob"]))
        # for others
        other = {"owner_principal_type": "User", "owner_principal_name": "carol"}
        refused = create(bob, **other)
        self.assertEqual((refused["error_code"], refused["token_id"], refused["hmac"], refused["issue_timestamp_ms"],
                          refused["principal_name"]), (DENIED, "", b"", -1, "carol"))
        made = create(admin, **other)
        self.assertEqual((made["error_code"], made["principal_name"], made["token_requester_principal_name"]),
                         (0, "carol", "admin"))
        self.assertEqual(create(admin, owner_principal_type="Group", owner_principal_name="x")["error_code"], PRINCIPAL_TYPE)
        self.assertEqual(create(admin, owner_principal_type="User", owner_principal_name="a\0b")["error_code"], PRINCIPAL_TYPE)
        self.assertEqual(create(alice, renewers=[("Group", "x")])["error_code"], PRINCIPAL_TYPE)
        # who came by a token, or in plain text, may not ask
        with token_login(self.b, made) as by_token, kwire.Conn(self.b.ports["PLAINTEXT"]) as plain:
            for k in (by_token, plain):
                self.assertEqual(create(k)["error_code"], NOT_ALLOWED)
                self.assertEqual(renew(k, made)["error_code"], NOT_ALLOWED)
                self.assertEqual(expire(k, made)["error_code"], NOT_ALLOWED)
                self.assertEqual(k.call("DescribeDelegationToken", 3, owners=None)["error_code"], NOT_ALLOWED)

    def test_rights_by_acls(self):
        """On a user: to make tokens for him, and to see his; on a token: to see it. Each by itself, and taken back."""
        alice, bob, admin = self.conn("alice"), self.conn("bob"), self.conn("admin")
        one, two = create(alice)["token_id"], create(alice)["token_id"]

        def binding(operation, kind, name):
            return {"resource_type": kind, "resource_name": name, "resource_pattern_type": LITERAL, "principal": "User:bob",
                    "host": "*", "operation": operation, "permission_type": ALLOW}

        def grant(*right):
            answer = admin.call("CreateAcls", 3, creations=[binding(*right)])
            self.assertEqual(answer["results"][0]["error_code"], 0, answer)

        def take(operation, kind, name):
            answer = admin.call("DeleteAcls", 3, filters=[{
                "resource_type_filter": kind, "resource_name_filter": name, "pattern_type_filter": LITERAL,
                "principal_filter": "User:bob", "host_filter": None, "operation": operation, "permission_type": ALLOW}])
            self.assertEqual(len(answer["filter_results"][0]["matching_acls"]), 1, answer)

        def seen():
            return set(describe(bob)) & {one, two}

        for right, sees in (((DESCRIBE, TOKEN, one), {one}), ((DESCRIBE_TOKENS, USER, "User:alice"), {one, two})):
            self.assertEqual(seen(), set())
            grant(*right)
            self.assertEqual(seen(), sees)
            # who may see a token may not change it
            self.assertEqual(renew(bob, describe(bob)[one])["error_code"], MISMATCH)
            take(*right)
        grant(DESCRIBE_TOKENS, USER, "alice")  # a user's name is no principal
        self.assertEqual(seen(), set())
        for_carol = {"owner_principal_type": "User", "owner_principal_name": "carol"}
        grant(CREATE_TOKENS, USER, "User:dave")
        self.assertEqual(create(bob, **for_carol)["error_code"], DENIED)
        grant(CREATE_TOKENS, USER, "User:carol")
        made = create(bob, **for_carol)
        self.assertEqual((made["error_code"], made["principal_name"], made["token_requester_principal_name"]),
                         (0, "carol", "bob"))
        # who asked for it sees it, and may neither renew nor end it
        self.assertIn(made["token_id"], describe(bob))
        self.assertEqual([renew(bob, made)["error_code"], expire(bob, made)["error_code"]], [MISMATCH, MISMATCH])
        take(CREATE_TOKENS, USER, "User:carol")
        self.assertEqual(create(bob, **for_carol)["error_code"], DENIED)

    def test_logins(self):
        alice = self.conn("alice")
        t = create(alice)
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            with token_login(self.b, t, mechanism) as k:
                self.assertLessEqual(k.lifetime_ms, DAY)
                self.assertGreater(k.lifetime_ms, DAY - 3600 * 1000)
        for wrong in (dict(t, token_id="nobody"), dict(t, hmac=b"x" * 64), dict(t, token_id="alice")):
            self.assertFalse(works(self.b, wrong))
        with kwire.Conn(self.b.ports["SASL_PLAINTEXT"]) as k:  # a token is no user
            saslwire.handshake(k, "SCRAM-SHA-256")
            with self.assertRaises(saslwire.Refused):
                saslwire.exchange(k, "SCRAM-SHA-256", t["token_id"], base64.b64encode(t["hmac"]).decode())
        # an expired one is refused though it is still there, and can be removed, not renewed
        self.assertEqual(expire(alice, t, 0)["error_code"], 0)
        until("it has expired", lambda: not works(self.b, t))
        self.assertEqual(renew(alice, t)["error_code"], EXPIRED)
        self.assertEqual(expire(alice, t, 5)["error_code"], EXPIRED)
        self.assertEqual(expire(alice, t, -1)["error_code"], 0)
        self.assertEqual(renew(alice, t)["error_code"], NOT_FOUND)
        # what is made stays over a restart; secrets are nowhere in the log
        t = create(alice)
        self.b.stop()
        self.b.start()
        self.assertTrue(works(self.b, t))
        text = "\n".join(self.b.lines)
        for secret in (SECRET, base64.b64encode(t["hmac"]).decode(), t["hmac"].hex()):
            self.assertNotIn(secret, text)


class TwoBrokers(unittest.TestCase):
    def test_one_life(self):
        with zookeeper.ZooKeeper(tick_ms=250) as zk:
            settings = dict(WITH_TOKENS, **{"delegation.token.expiry.check.interval.ms": "500"})
            one = zk.broker(1, dict(settings, **{"delegation.token.master.key": "the new name wins"}))
            old_name = {"delegation.token.master.key": settings.pop("delegation.token.secret.key")}
            two = zk.broker(2, dict(settings, **old_name))
            with login(one, "alice") as k, login(two, "alice") as other, zk.client() as z:
                t = create(k, renewers=[("User", "bob")])
                until("the other one knows", lambda: works(two, t))
                node = "/delegation_token/tokens/" + t["token_id"]
                self.assertEqual(json.loads(z.get(node)), {
                    "version": 3, "owner": "User%3Aalice", "tokenRequester": "User%3Aalice", "renewers": ["User%3Abob"],
                    "issueTimestamp": t["issue_timestamp_ms"], "maxTimestamp": t["max_timestamp_ms"],
                    "expiryTimestamp": t["expiry_timestamp_ms"], "tokenId": t["token_id"]})
                changes = "/delegation_token/token_changes"
                self.assertEqual(z.get(changes + "/" + max(z.children(changes))), t["token_id"].encode())
                later = renew(other, t, 2 * DAY)["expiry_timestamp_ms"]
                until("renewed", lambda: describe(k)[t["token_id"]]["expiry_timestamp"] == later)
                # as an older Kafka writes one, and what nobody can read
                now = int(time.time() * 1000)
                old = {"token_id": "oldOne-_1", "hmac": secret_of("oldOne-_1")}
                z.create("/delegation_token/tokens/oldOne-_1", json.dumps({
                    "version": 1, "owner": "User%3Aalice", "renewers": [], "issueTimestamp": now, "maxTimestamp": now + DAY,
                    "expiryTimestamp": now + DAY, "tokenId": "oldOne-_1"}).encode())
                z.create("/delegation_token/tokens/broken", b"{}")
                for name in (b"oldOne-_1", b"broken", b"../x"):
                    z.create(changes + "/token_change_", name, flags=2)
                for b in (one, two):
                    until("the old one is known", lambda: works(b, old))
                    b.wait_line("/delegation_token/tokens/broken is no token")
                # gone without a notice, while a session was lost
                z.delete("/delegation_token/tokens/oldOne-_1")
                zk.expire(zk.sessions_of("/brokers/ids/2"))
                until("the new session has read all", lambda: not works(two, old))
                # the controller removes what has expired
                self.assertEqual(expire(k, t, 0)["error_code"], 0)
                until("it is removed", lambda: z.stat(node) is None)
                for b in (one, two):
                    until("and forgotten", lambda: not works(b, t))
                until("by both", lambda: t["token_id"] not in describe(k) and t["token_id"] not in describe(other))


class WithoutSecret(unittest.TestCase):
    def test_there_are_none(self):
        with harness.Broker(overrides=SETTINGS) as b, login(b, "alice") as k:
            self.assertEqual(create(k)["error_code"], DISABLED)
            self.assertEqual(renew(k, {"hmac": b"x"})["error_code"], DISABLED)
            self.assertEqual(expire(k, {"hmac": b"x"})["error_code"], DISABLED)
            self.assertEqual(k.call("DescribeDelegationToken", 3, owners=None)["error_code"], DISABLED)
            self.assertFalse(works(b, {"token_id": "x", "hmac": b"x"}))


if __name__ == "__main__":
    unittest.main()
