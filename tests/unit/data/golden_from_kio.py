#!/usr/bin/env python3
"""golden_from_kio.py - makes golden_kio.txt: every message in every version, encoded by somebody else.

kio (https://pypi.org/project/kio/) is a Python implementation of the protocol; release 0.5.0 covers exactly
what the 3.9 protocol has. Two instances a version: one with all fields set and one with as little as possible.
Each line is

    MESSAGE VERSION HEX TEXT

where TEXT is written here from the values, not from the bytes, in the form that msg_print uses. Run it again
with (ConsumerGroupHeartbeat and ConsumerGroupDescribe v1, which came later, are from kio 0.6.5):
       python3 -m venv v && v/bin/pip install kio==0.5.0 && v/bin/python golden_from_kio.py > golden_kio.txt
"""
import base64
import dataclasses
import datetime
import importlib
import io
import pkgutil
import random
import re
import types
import typing
import uuid

import kio.schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

# Not ours: KRaft, share groups, raft, client metrics.
FOREIGN = re.compile(
    "share_|_share|raft|snapshot|voters_|quorum|vote$|leader_change|broker_heartbeat|broker_registration|unregister|"
    "controller_registration|assign_replicas|fetch_snapshot|telemetry|client_metrics|_record$")

# kio drops the unit of durations and points in time.
UNITS = {"timedelta_i32": "_ms", "timedelta_i64": "_ms", "datetime_i64": "_ms"}


class Maker:
    def __init__(self, seed, full):
        self.random, self.full = random.Random(seed), full

    def entity(self, cls, depth=0, spare=False):
        """An instance, and its text. `spare` leaves out what may be left out."""
        values, texts = {}, []
        for field in dataclasses.fields(cls):
            values[field.name], text = self.field(field, depth, spare)
            texts.append("%s=%s" % (field_name(field), text))
        return cls(**values), "{%s}" % ", ".join(texts)

    def field(self, field, depth, spare):
        optional, kind = without_none(field.type)
        tagged = "tag" in field.metadata
        if tagged and (spare or not self.full):
            value = default_of(field)
            return value, default_text(value) if kind is not uuid.UUID else uuid_text(uuid.UUID(int=0))
        if optional and (spare or not self.full) and kind is not uuid.UUID:
            # a point in time is -1 when it is none
            return None, "-1" if field.metadata.get("kafka_type") == "datetime_i64" else "null"
        if typing.get_origin(kind) is tuple:
            return self.array(field, typing.get_args(kind)[0], depth)
        return self.single(field.metadata.get("kafka_type"), kind, depth, spare)

    def array(self, field, kind, depth):
        n = 0 if not self.full else 2 if depth < 2 else 1
        _, kind = without_none(kind)
        made = [self.single(field.metadata.get("kafka_type"), kind, depth + 1, i == 1) for i in range(n)]
        return tuple(m[0] for m in made), "[%s]" % ", ".join(m[1] for m in made)

    def single(self, kafka_type, kind, depth, spare):
        if dataclasses.is_dataclass(kind):
            return self.entity(kind, depth, spare)
        return getattr(self, "make_" + re.sub(r"\d+$", "", kafka_type))(kafka_type, kind)

    def make_int(self, kafka_type, kind):
        bits = int(kafka_type[3:])
        value = self.random.choice([0, 1, -1, 2**(bits - 1) - 1, -2**(bits - 1), self.random.getrandbits(bits - 1)])
        return kind(value), str(value)

    def make_uint(self, kafka_type, kind):
        # uint16 is printed as it is; all of them are ports
        value = self.random.getrandbits(16)
        return kind(value), str(value)

    def make_bool(self, kafka_type, kind):
        value = self.random.random() < 0.5
        return value, str(value).lower()

    def make_float(self, kafka_type, kind):
        value = self.random.choice([0.0, -2.5, 1e300, self.random.random()])
        return value, "%.17g" % value

    def make_string(self, kafka_type, kind):
        value = self.random.choice(["", "a", "topic-1", "it's", "gr\u00fcn", "x" * 130])
        data = value.encode()
        text = "".join(chr(c) if 32 <= c < 127 and c not in b"'\\" else "\\x%02x" % c for c in data)
        return kind(value), "'%s'" % text

    def make_bytes(self, kafka_type, kind):
        value = self.random.randbytes(self.random.choice([0, 1, 5, 130]))
        return kind(value), "<%d bytes>" % len(value)

    make_records = make_bytes

    def make_uuid(self, kafka_type, kind):
        value = uuid.UUID(int=self.random.getrandbits(128))
        return value, uuid_text(value)

    def make_error_code(self, kafka_type, kind):
        value = self.random.choice([0, -1, 3, 89])
        return ErrorCode(value), str(value)

    def make_timedelta_i(self, kafka_type, kind):
        value = self.random.choice([0, 1, 30000])
        return datetime.timedelta(milliseconds=value), str(value)

    def make_datetime_i(self, kafka_type, kind):
        value = self.random.choice([0, 1700000000000])
        return datetime.datetime.fromtimestamp(value / 1000, datetime.timezone.utc), str(value)


def without_none(kind):
    if isinstance(kind, types.UnionType):
        args = [a for a in typing.get_args(kind) if a is not type(None)]
        return True, args[0]
    return False, kind


def default_of(field):
    if field.default is not dataclasses.MISSING:
        return field.default
    _, kind = without_none(field.type)
    return () if typing.get_origin(kind) is tuple else kind(0)


def default_text(value):
    if value is None:
        return "null"
    if dataclasses.is_dataclass(value):
        return "{%s}" % ", ".join(
            "%s=%s" % (field_name(f), default_text(getattr(value, f.name))) for f in dataclasses.fields(value))
    if isinstance(value, tuple):
        assert not value
        return "[]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, uuid.UUID):
        return uuid_text(value)
    if isinstance(value, ErrorCode):
        return str(value.value)
    return str(int(value))


def uuid_text(value):
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def field_name(field):
    name = field.name.rstrip("_").replace("k_raft", "kraft")
    return name + UNITS.get(field.metadata.get("kafka_type"), "")


def lines():
    for module in pkgutil.iter_modules(kio.schema.__path__):
        if not module.ispkg or FOREIGN.search(module.name):
            continue
        package = importlib.import_module("kio.schema." + module.name)
        versions = sorted(int(m.name[1:]) for m in pkgutil.iter_modules(package.__path__) if m.name[0] == "v")
        for version in versions:
            path = "kio.schema.%s.v%d" % (module.name, version)
            for part in pkgutil.iter_modules(importlib.import_module(path).__path__):
                if part.name not in ("request", "response", "data", "header"):
                    continue
                code = importlib.import_module("%s.%s" % (path, part.name))
                cls = [c for c in vars(code).values()
                       if dataclasses.is_dataclass(c) and c.__type__.name != "nested" and c.__module__ == code.__name__]
                assert len(cls) == 1, path
                yield from instances(cls[0], version)


def instances(cls, version):
    name = cls.__name__ + ("Data" if cls.__name__.endswith("Header") else "")
    for full in (True, False):
        value, text = Maker("%s %d %s" % (name, version, full), full).entity(cls)
        out = io.BytesIO()
        entity_writer(cls)(out, value)
        yield "%s %d %s %s" % (name, version, out.getvalue().hex() or "-", text)


if __name__ == "__main__":
    print("# Made by golden_from_kio.py with kio 0.5.0.")
    for line in lines():
        print(line)
