"""kafka-delegation-tokens: a token's life, and what is wrong with flags. The token logs the library in."""
import re
import unittest

import saslwire
from tool_test import ToolTest, run_tool

DATE = r"\d{4}-\d\d-\d\dT\d\d:\d\d"
HEAD = ("TOKENID         HMAC                           OWNER           REQUESTER       RENEWERS                  "
        "ISSUEDATE       EXPIRYDATE      MAXDATE        ")


class Usage(unittest.TestCase):
    """All of it is told before anybody is asked."""

    def test_flags_that_make_no_sense(self):
        at = ("--bootstrap-server", "127.0.0.1:1", "--command-config", "/dev/null")
        for args, said in (
                ((), "This tool helps to create, renew, expire, or describe delegation tokens"),
                (("--bootstrap-server", "127.0.0.1:1", "--describe"), r"\[command-config\]"),
                (at, "exactly one action: --create, --renew, --expire or --describe"),
                ((*at, "--create", "--describe"), "exactly one action"),
                ((*at, "--create"), r"\[max-life-time-period\]"),
                ((*at, "--renew", "--renew-time-period", "5"), r"\[hmac\]"),
                ((*at, "--renew", "--hmac", "x"), r"\[renew-time-period\]"),
                ((*at, "--expire", "--hmac", "x"), r"\[expiry-time-period\]"),
                ((*at, "--create", "--max-life-time-period", "-1", "--hmac", "x"), r"\[create\].*\[hmac\]"),
                ((*at, "--renew", "--hmac", "x", "--renew-time-period", "5", "--owner-principal", "User:a"),
                 r"\[renew\].*\[owner-principal\]"),
                ((*at, "--expire", "--hmac", "x", "--expiry-time-period", "5", "--max-life-time-period", "5"),
                 r"\[expire\].*\[max-life-time-period\]"),
                ((*at, "--describe", "--hmac", "x"), r"\[describe\].*\[hmac\]"),
                ((*at, "--create", "--max-life-time-period", "soon"), "soon"),
                ((*at, "--create", "--max-life-time-period", "-1", "--owner-principal", "User:a", "--owner-principal", "User:b"),
                 "a token has one owner")):
            with self.subTest(args):
                r = run_tool("kafka-delegation-tokens", *args)
                self.assertEqual((r.status, r.text), (1, ""))
                self.assertRegex(r.err.splitlines()[0], said)
                self.assertRegex(r.err, "(?m)^Option +Description$")


class Tokens(ToolTest):
    OVERRIDES = dict(saslwire.listener("PLAIN,SCRAM-SHA-256", plain_sasl_jaas_config=saslwire.users(
        admin="adminpw", alice="alicepw", bob="bobpw")), **{
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0", "inter.broker.listener.name": "SASL_PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "PLAIN", "delegation.token.secret.key": "s3cret",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:admin"})

    def tool(self, name, *args, **more):
        at = "127.0.0.1:%d" % self.broker.ports["SASL_PLAINTEXT"]
        return super().tool(name, "--bootstrap-server", at, *args, server=False, **more)

    def config(self, mechanism, module, user, password, more=""):
        path = "%s/%s.properties" % (self.broker.folder, re.sub(r"\W", "", user))
        with open(path, "w") as f:
            f.write("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=%s\nsasl.jaas.config=%s\n" % (
                mechanism, saslwire.login_of(module, user, password).replace(";", more + ";")))
        return path

    def tokens(self, user, *args, **more):
        return self.tool("kafka-delegation-tokens", "--command-config",
                         self.config("PLAIN", saslwire.PLAIN_MODULE, user, user + "pw"), *args, **more)

    def test_one_life(self):
        r = self.tokens("alice", "--create", "--max-life-time-period", 7200000, "--renewer-principal", "User:bob",
                        "--renewer-principal", "User:carol")
        head = ["Calling create token operation with renewers :[User:bob, User:carol] , max-life-time-period :7200000"]
        token = re.match("Created delegation token with tokenId : (\\S{22})$", r.lines[1]).group(1)
        self.assertEqual([r.lines[0], *r.lines[2:5]], head + ["", HEAD, ""])
        row = re.fullmatch(r"%s (\S{88}) User:alice      User:alice      \[User:bob, User:carol]    (%s) (%s) (%s)" % (
            token, DATE, DATE, DATE), r.lines[5])
        secret, _, expiry, end = row.groups()
        self.assertEqual((expiry, len(r.lines)), (end, 6))
        # who owns it, and who may renew it, is told the same
        for user, owners in (("alice", ()), ("bob", ()), ("alice", ("--owner-principal", "User:alice")), ("admin", ("--owner-principal", "User:alice"))):
            told = self.tokens(user, "--describe", *owners)
            self.assertEqual(told.lines, ["Calling describe token operation for " + (
                "owners: [User:alice]" if owners else "current user."), "Total number of tokens : 1", HEAD, "", r.lines[5]])
        self.assertEqual(self.tokens("alice", "--describe", "--owner-principal", "User:x", "--owner-principal", "User:y").lines,
                         ["Calling describe token operation for owners: [User:x, User:y]", "Total number of tokens : 0", HEAD])
        # a login with it: it is alice, who may not ask for tokens so
        login = self.config("SCRAM-SHA-256", saslwire.SCRAM_MODULE, token, secret, ' tokenauth="true"')
        self.tool("kafka-broker-api-versions", "--command-config", login)
        refused = self.tool("kafka-delegation-tokens", "--command-config", login, "--describe", status=1)
        self.assertRegex(refused.err, "^Error while executing delegation token command : ")
        # renewed by bob, not by others; ended by its owner
        r = self.tokens("bob", "--renew", "--hmac", secret, "--renew-time-period", 60000)
        self.assertEqual(r.lines[0], "Calling renew token operation with hmac :%s , renew-time-period :60000" % secret)
        self.assertRegex(r.lines[1], "^Completed renew operation. New expiry date : %s$" % DATE)
        self.tokens("admin", "--renew", "--hmac", secret, "--renew-time-period", 60000, status=1)
        r = self.tokens("alice", "--expire", "--hmac", secret, "--expiry-time-period", -1)
        self.assertEqual(r.lines[0], "Calling expire token operation with hmac :%s , expire-time-period :-1" % secret)
        self.assertRegex(r.lines[1], "^Completed expire operation. New expiry date : %s$" % DATE)
        self.assertRegex(self.tokens("alice", "--expire", "--hmac", secret, "--expiry-time-period", -1, status=1).err,
                         r"DELEGATION_TOKEN_NOT_FOUND|not found")
        self.tool("kafka-broker-api-versions", "--command-config", login, status=1)

    def test_for_another_user(self):
        carol = ("--create", "--max-life-time-period", -1, "--owner-principal", "User:carol")
        self.assertRegex(self.tokens("alice", *carol, status=1).err, "(?i)authoriz")
        row = self.tokens("admin", *carol).lines[-1]
        self.assertRegex(row, r" User:carol      User:admin      \[] {24}%s" % DATE)
        self.tokens("admin", "--expire", "--hmac", row.split()[1], "--expiry-time-period", -1, status=1)  # only hers

    def test_what_is_wrong_in_the_values(self):
        for args, said in ((("--create", "--max-life-time-period", -1, "--renewer-principal", "bob"),
                            "expected a string in format principalType:principalName but got bob"),
                           (("--expire", "--hmac", "%%%", "--expiry-time-period", -1), "base64")):
            self.assertIn(said, self.tokens("alice", *args, status=1).err)


if __name__ == "__main__":
    unittest.main()
