"""DescribeCluster, FindCoordinator and InitProducerId in all versions."""
import harness
from harness import DESCRIBE_CLUSTER, FIND_COORDINATOR, INIT_PRODUCER_ID, Writer, until

LOADING, NO_COORDINATOR, INVALID_REQUEST = 14, 15, 42
NOT_ASKED = -2147483648


def describe_cluster(c, version, operations=False, kind=1):
    w = Writer().boolean(operations)
    if version >= 1:
        w.i8(kind)
    r = c.request(DESCRIBE_CLUSTER, version, w.tags())

    def broker(x):
        b = (x.i32(), x.string(True), x.i32(), x.string(True))
        x.tags()
        return b
    r.i32()
    out = {"error": r.i16(), "message": r.string(True), "kind": r.i8() if version >= 1 else 1,
           "cluster": r.string(True), "controller": r.i32(), "brokers": r.array(broker, True), "operations": r.i32()}
    r.tags()
    r.end()
    return out


def find_coordinator(c, version, keys, kind=0):
    """[(key, error, node, host, port, message)]"""
    f = version >= 3
    w = Writer()
    if version < 4:
        w.string(keys[0], f)
    if version >= 1:
        w.i8(kind)
    if version >= 4:
        w.array(keys, lambda x, k: x.string(k, f), f)
    r = c.request(FIND_COORDINATOR, version, w.tags(f))
    if version >= 1:
        r.i32()
    if version >= 4:
        def entry(x):
            key, node, host, port, error = x.string(f), x.i32(), x.string(f), x.i32(), x.i16()
            message = x.string(f)
            x.tags(f)
            return key, error, node, host, port, message
        out = r.array(entry, f)
    else:
        error = r.i16()
        message = r.string(f) if version >= 1 else ""
        out = [(keys[0], error, r.i32(), r.string(f), r.i32(), message)]
    r.tags(f)
    r.end()
    return out


def init_producer_id(c, version, transactional_id=None, timeout=60000, pair=(-1, -1)):
    f = version >= 2
    w = Writer().string(transactional_id, f).i32(timeout)
    if version >= 3:
        w.i64(pair[0]).i16(pair[1])
    r = c.request(INIT_PRODUCER_ID, version, w.tags(f))
    r.i32()
    out = r.i16(), r.i64(), r.i16()
    r.tags(f)
    r.end()
    return out


class ClusterApis(harness.BrokerTest):
    def setUp(self):
        self.c = self.client()

    def tearDown(self):
        self.c.close()
        super().tearDown()

    def test_describe_cluster(self):
        for version in (0, 1):
            d = describe_cluster(self.c, version)
            self.assertEqual((d["error"], d["controller"], d["operations"]), (0, 0, NOT_ASKED))
            self.assertEqual(d["brokers"], [(0, "127.0.0.1", self.broker.port, None)])
            self.assertEqual(d["cluster"], harness.metadata(self.c, [])["cluster"])
            self.assertGreater(describe_cluster(self.c, version, operations=True)["operations"], 0)

    def test_endpoints_of_controllers_are_not_known(self):
        d = describe_cluster(self.c, 1, kind=2)
        self.assertEqual((d["error"], d["brokers"]), (114, []))
        self.assertEqual(describe_cluster(self.c, 1, kind=9)["error"], 115)

    def test_there_is_no_coordinator_yet(self):
        for version in range(7):
            for kind in (0, 1) if version else (0,):
                (key, error, node, host, port, _), = find_coordinator(self.c, version, ["k"], kind)
                self.assertEqual((key, error, node, host, port), ("k", NO_COORDINATOR, -1, "", -1))

    def test_several_keys_have_an_entry_each(self):
        for version in (4, 5, 6):
            found = find_coordinator(self.c, version, ["a", "b"])
            self.assertEqual([(x[0], x[1]) for x in found], [("a", NO_COORDINATOR), ("b", NO_COORDINATOR)])
            self.assertEqual(find_coordinator(self.c, version, []), [])

    def test_kinds_of_coordinators(self):
        self.assertEqual(find_coordinator(self.c, 1, ["k"], 7)[0][1], INVALID_REQUEST)
        self.assertEqual(find_coordinator(self.c, 5, ["k"], 2)[0][1], INVALID_REQUEST)
        self.assertEqual(find_coordinator(self.c, 6, ["k"], 2)[0][1], NO_COORDINATOR)

    def next_id(self, version):
        """A producer id; loading is answered as long as no block of ids is there."""
        def given():
            error, pid, epoch = init_producer_id(self.c, version)
            if error == LOADING:
                self.assertEqual((pid, epoch), (-1, -1))
                return None
            self.assertEqual((error, epoch), (0, 0))
            return [pid]
        return until("a producer id", given)[0]

    def test_producer_ids_are_never_given_twice(self):
        given = [self.next_id(i % 6) for i in range(2500)]
        self.assertEqual(len(set(given)), len(given))
        self.assertEqual(given, sorted(given))
        for how in (self.broker.stop, self.broker.kill):
            self.c.close()
            how()
            self.broker.start()
            self.c = self.client()
            pid = self.next_id(4)
            self.assertGreater(pid, given[-1])
            given.append(pid)

    def test_pairs_of_id_and_epoch_that_cannot_be(self):
        for version in (3, 4, 5):
            for pair in ((5, -1), (-1, 0)):
                self.assertEqual(init_producer_id(self.c, version, None, pair=pair), (INVALID_REQUEST, -1, -1))
                self.assertEqual(init_producer_id(self.c, version, "tx", pair=pair), (INVALID_REQUEST, -1, -1))


if __name__ == "__main__":
    harness.main()
