#!/usr/bin/env python3
"""golden_from_python_kafka.py - makes golden_python_kafka.txt: the old message versions, as python-kafka 2.0.2
(Debian's python3-kafka) encodes them.

    /usr/bin/python3 golden_from_python_kafka.py > golden_python_kafka.txt

Its schemas were written by hand by other people, with names and nesting of their own, so the text of a line has
the values only, without names and braces: see golden_from_kio.py for the rest of the format.
"""
import importlib
import pkgutil
import random

import kafka.protocol
from kafka.protocol.struct import Struct
from kafka.protocol.types import Array, Boolean, Bytes, Int16, Int32, Int64, Int8, Schema, String

RENAMED = {"GroupCoordinator": "FindCoordinator", "Offset": "ListOffsets", "ApiVersion": "ApiVersions",
           "SaslHandShake": "SaslHandshake"}
# Where 2.0.2 is wrong about the protocol.
WRONG = {
    ("DescribeAclsRequest", 2): "is flexible",
    ("DescribeAclsResponse", 2): "is flexible",
    ("DescribeConfigsResponse", 1): "has a config source, not a bool",
    ("DescribeGroupsResponse", 3): "has authorized operations for each group",
    ("FindCoordinatorResponse", 1): "begins with the throttle time",
    ("ListOffsetsRequest", 4): "has epochs of 32 bits",
    ("ListOffsetsRequest", 5): "has epochs of 32 bits",
    ("ProduceResponse", 8): "has record errors",
}
BITS = {Int8: 8, Int16: 16, Int32: 32, Int64: 64}


def make(kind, dice):
    """A value of this type, and its text."""
    if isinstance(kind, Schema):
        made = [make(k, dice) for k in kind.fields]
        return tuple(m[0] for m in made), ", ".join(m[1] for m in made)
    if isinstance(kind, Array):
        # FetchRequest's forgotten topics have the class String as a type: python-kafka cannot encode those
        broken = String in getattr(kind.array_of, "fields", ())
        made = [make(kind.array_of, dice) for _ in range(dice.choice([0, 1, 2]) if not broken else 0)]
        return [m[0] for m in made], "[%s]" % ", ".join(m[1] for m in made)
    if isinstance(kind, String):
        value = dice.choice(["", "a", "topic-1", "x" * 130])
        return value, "'%s'" % value
    if kind is Bytes or isinstance(kind, Bytes):
        value = bytes(dice.getrandbits(8) for _ in range(dice.choice([0, 1, 130])))
        return value, "<%d bytes>" % len(value)
    if kind is Boolean or isinstance(kind, Boolean):
        value = dice.random() < 0.5
        return value, str(value).lower()
    bits = next(n for k, n in BITS.items() if kind is k or isinstance(kind, k))
    value = dice.choice([0, 1, -1, 2**(bits - 1) - 1, -2**(bits - 1), dice.getrandbits(bits - 1)])
    return value, str(value)


def classes():
    for module in pkgutil.iter_modules(kafka.protocol.__path__):
        code = importlib.import_module("kafka.protocol." + module.name)
        for name, cls in sorted(vars(code).items()):
            if (isinstance(cls, type) and issubclass(cls, Struct) and cls.__module__ == code.__name__
                    and isinstance(getattr(cls, "API_VERSION", None), int)):
                base = name.split("_v")[0]
                kind = "Response" if base.endswith("Response") else "Request"
                api = base[:-len(kind)]
                yield RENAMED.get(api, api) + kind, cls


if __name__ == "__main__":
    print("# Made by golden_from_python_kafka.py with python-kafka %s." % kafka.__version__)
    for message, cls in classes():
        if (message, cls.API_VERSION) in WRONG:
            continue
        for seed in range(2):
            dice = random.Random("%s %d %d" % (message, cls.API_VERSION, seed))
            value, text = make(cls.SCHEMA, dice)
            instance = cls(*value)  # encode() only has a weak reference to it
            print("%s %d %s %s" % (message, cls.API_VERSION, instance.encode().hex() or "-", text))
