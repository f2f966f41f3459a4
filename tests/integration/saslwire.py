"""saslwire.py - the client's side of SASL for the tests, in raw frames.

    with kwire.Conn(port) as k:
        saslwire.login(k, "SCRAM-SHA-256", "alice", "secret")
        k.call("Metadata", ...)

A login that fails raises Refused with the broker's error code and text. handshake and token are the single steps.
"""
import base64
import hashlib
import hmac
import os
import struct


PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
CODES = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}


class Refused(Exception):
    def __init__(self, code, text):
        Exception.__init__(self, code, text)
        self.code, self.text = code, text


def users(**passwords):
    """The login module line of a broker's PLAIN users; its own login is the first."""
    first = next(iter(passwords))
    return '%s required username="%s" password="%s" %s;' % (
        PLAIN_MODULE, first, passwords[first], " ".join('user_%s="%s"' % u for u in passwords.items()))


def login_of(module, user, password):
    return '%s required username="%s" password="%s";' % (module, user, password)


def listener(mechanisms="PLAIN", name="sasl_plaintext", **more):
    """Settings of a SASL listener; keys of `more` have _ for dots."""
    prefix = "listener.name.%s." % name
    settings = {prefix + "sasl.enabled.mechanisms": mechanisms}
    settings.update({prefix + key.replace("__", "-").replace("_", "."): value for key, value in more.items()})
    return settings


def handshake(conn, mechanism, version=1):
    answer = conn.call("SaslHandshake", version, mechanism=mechanism)
    if answer["error_code"]:
        raise Refused(answer["error_code"], ",".join(answer["mechanisms"]))
    return answer["mechanisms"]


def token(conn, data, version=2):
    """One SaslAuthenticate. Returns its answer's bytes; the session's lifetime is left in conn.lifetime_ms."""
    answer = conn.call("SaslAuthenticate", version, auth_bytes=data)
    if answer["error_code"]:
        raise Refused(answer["error_code"], answer["error_message"])
    conn.lifetime_ms = answer.get("session_lifetime_ms", 0)
    return answer["auth_bytes"]


def bare(conn, data):
    conn.send_frame(data)
    return conn.read_frame()


def plain(user, password, authzid=""):
    return b"\0".join(x.encode() for x in (authzid, user, password))


def escaped(user):
    return user.replace("=", "=3D").replace(",", "=2C")


class Scram:
    def __init__(self, mechanism, user, password, extensions="", nonce=None, authzid=None):
        self.hash, self.password = HASHES[mechanism], password.encode()
        self.nonce = nonce or base64.b64encode(os.urandom(18)).decode()
        self.first_bare = "n=%s,r=%s%s" % (escaped(user), self.nonce, extensions)
        self.gs2 = "n,%s," % ("a=" + escaped(authzid) if authzid else "")

    def first(self):
        return (self.gs2 + self.first_bare).encode()

    def hmac(self, key, data):
        return hmac.new(key, data, self.hash).digest()

    def final(self, server_first, bend=None):
        parts = dict(p.split("=", 1) for p in server_first.decode().split(","))
        assert parts["r"].startswith(self.nonce) and len(parts["r"]) > len(self.nonce)
        salted = hashlib.pbkdf2_hmac(self.hash, self.password, base64.b64decode(parts["s"]), int(parts["i"]))
        without = "c=%s,r=%s" % (base64.b64encode(self.gs2.encode()).decode(), parts["r"])
        if bend:
            without = bend(without)
        auth = (self.first_bare + "," + server_first.decode() + "," + without).encode()
        key = self.hmac(salted, b"Client Key")
        signature = self.hmac(hashlib.new(self.hash, key).digest(), auth)
        proof = bytes(a ^ b for a, b in zip(key, signature))
        self.server_signature = self.hmac(self.hmac(salted, b"Server Key"), auth)
        return ("%s,p=%s" % (without, base64.b64encode(proof).decode())).encode()

    def check(self, server_final):
        assert server_final == b"v=" + base64.b64encode(self.server_signature), server_final


def exchange(conn, mechanism, user, password, send=token, **options):
    """The tokens of a login, after the handshake."""
    if mechanism == "PLAIN":
        return send(conn, plain(user, password), **options)
    s = Scram(mechanism, user, password)
    server_first = send(conn, s.first(), **options)
    last = send(conn, s.final(server_first), **options)
    s.check(last)
    return last


def login(conn, mechanism, user, password, versions=True):
    if versions:
        conn.call("ApiVersions", 0)
    handshake(conn, mechanism)
    return exchange(conn, mechanism, user, password)


def upsertion(user, mechanism, password, iterations=4096, salt=None):
    salt = salt or os.urandom(16)
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations) if iterations > 0 else b"x"
    return {"name": user, "mechanism": CODES[mechanism], "iterations": iterations, "salt": salt,
            "salted_password": salted}


def alter(conn, upsertions=(), deletions=()):
    """Changes SCRAM credentials. Returns {user: error code}; deletions are (user, mechanism)."""
    answer = conn.call("AlterUserScramCredentials", 0, upsertions=list(upsertions),
                       deletions=[{"name": u, "mechanism": CODES.get(m, m)} for u, m in deletions])
    return {r["user"]: r["error_code"] for r in answer["results"]}


def unsecured_jwt(claims, header=b'{"alg":"none"}'):
    def part(b):
        return base64.urlsafe_b64encode(b).rstrip(b"=")
    return part(header) + b"." + part(claims) + b"."


def oauth(jwt, authzid=""):
    return b"n,%s,\x01auth=Bearer %s\x01\x01" % (b"a=" + authzid.encode() if authzid else b"", jwt)


def frame(api, version, correlation_id, body=b"", client_id=b"x"):
    return struct.pack(">hhih", api, version, correlation_id, len(client_id)) + client_id + body


