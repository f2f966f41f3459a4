"""ApiVersions in all versions, and the fallback for versions that are not served."""
import harness
from harness import API_VERSIONS, Reader, Writer

UNSUPPORTED_VERSION, INVALID_REQUEST = 35, 42
# what this broker serves; a key that is added here must work at every version
SERVED = {
    0: (0, 11),
    1: (0, 17),
    2: (0, 9),
    3: (0, 12),
    4: (0, 7),
    5: (0, 4),
    6: (0, 8),
    7: (0, 3),
    8: (0, 9),
    9: (0, 9),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 5),
    16: (0, 5),
    17: (0, 1),
    18: (0, 4),
    19: (0, 7),
    20: (0, 6),
    21: (0, 2),
    22: (0, 5),
    23: (0, 4),
    24: (0, 5),
    25: (0, 4),
    26: (0, 4),
    27: (0, 1),
    28: (0, 4),
    29: (0, 3),
    30: (0, 3),
    31: (0, 3),
    32: (0, 4),
    33: (0, 2),
    34: (0, 2),
    35: (0, 4),
    36: (0, 2),
    37: (0, 3),
    38: (0, 3),
    39: (0, 2),
    40: (0, 2),
    41: (0, 3),
    42: (0, 2),
    43: (0, 2),
    44: (0, 1),
    45: (0, 0),
    46: (0, 0),
    47: (0, 0),
    48: (0, 1),
    49: (0, 1),
    50: (0, 0),
    51: (0, 0),
    56: (0, 3),
    60: (0, 1),
    61: (0, 0),
    65: (0, 0),
    66: (0, 1),
    67: (0, 0),
    68: (0, 1),
    69: (0, 1),
    75: (0, 0),
}


def software(name="test-client", version="1.0"):
    return Writer().string(name, f=True).string(version, f=True).tags()


def read(r, version):
    flexible = version >= 3

    def row(x):
        key, low, high = x.i16(), x.i16(), x.i16()
        x.tags(flexible)
        return key, (low, high)
    error = r.i16()
    keys = dict(r.array(row, flexible))
    throttle = r.i32() if version >= 1 else 0
    tags = r.tags(flexible)
    r.end()
    return error, keys, throttle, tags


class ApiVersions(harness.BrokerTest):
    def test_every_version_lists_exactly_what_is_served(self):
        with self.client() as c:
            for version in range(5):
                r = c.request(API_VERSIONS, version, software() if version >= 3 else b"")
                error, keys, throttle, tags = read(r, version)
                self.assertEqual((error, throttle), (0, 0))
                self.assertEqual(keys, SERVED)
                self.assertNotIn(0, tags)  # no supported features in this mode

    def test_the_answers_header_never_has_tags(self):
        """The byte behind the correlation id belongs to the error code in flexible versions, too."""
        with self.client() as c:
            for version in (3, 4):
                n = c.send(API_VERSIONS, version, software())
                frame = c.recv_frame()
                self.assertEqual(frame[:6], n.to_bytes(4, "big") + b"\0\0")
                self.assertEqual(frame[6], len(SERVED) + 1)  # the compact array's length follows at once

    def test_a_version_that_is_not_served_is_answered_in_version_0(self):
        with self.client() as c:
            for version in (5, 999, 32767, -1, -32768):
                c.correlation += 1
                c.send_frame(Writer().i16(API_VERSIONS).i16(version).i32(c.correlation).string("x")
                             .raw(b"\xff" * 9).bytes())
                r = Reader(c.recv_frame())
                self.assertEqual(r.i32(), c.correlation)
                self.assertEqual(read(r, 0)[:2], (UNSUPPORTED_VERSION, {18: (0, 4)}))
            self.assertTrue(c.is_open())

    def test_software_names(self):
        good = ["a", "A1", "kafka-python", "a.b-c.d", "1"]
        bad = ["", "-a", "a-", ".a", "a b", "a_b", "a/b", "\u00e4", "a\n"]
        with self.client() as c:
            for name in good:
                self.assertEqual(read(c.request(API_VERSIONS, 3, software(name, name)), 3)[0], 0, name)
            for name in bad:
                for body in (software(name, "1"), software("x", name)):
                    self.assertEqual(read(c.request(API_VERSIONS, 3, body), 3)[0], INVALID_REQUEST, name)
            self.assertTrue(c.is_open())

    def test_unknown_tags_and_bytes_behind_the_body_do_not_matter(self):
        body = Writer().string("x", f=True).string("1", f=True).uvarint(2).uvarint(9).uvarint(3).raw(b"abc")
        body.uvarint(900).uvarint(0).raw(b"behind")
        with self.client() as c:
            self.assertEqual(read(c.request(API_VERSIONS, 3, body), 3)[0], 0)

    def test_no_client_id(self):
        with self.client(client_id=None) as c:
            self.assertTrue(c.is_open())
        with self.client(client_id="") as c:
            self.assertTrue(c.is_open())


if __name__ == "__main__":
    harness.main()
