"""DescribeUserScramCredentials: kafka-configs asks it of every user that it describes; what others keep there is told."""
import harness
import kwire
import zookeeper

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


if __name__ == "__main__":
    harness.main()
