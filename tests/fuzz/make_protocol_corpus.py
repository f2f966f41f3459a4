#!/usr/bin/env python3
"""make_protocol_corpus.py - makes corpus/message and corpus/frame from the golden files of the unit tests: the
newest version of each request and response, and of each recorded request."""
import os
import re
import struct

here = os.path.dirname(os.path.abspath(__file__))
data = os.path.join(here, "..", "unit", "data")


def write(folder, name, content):
    os.makedirs(os.path.join(here, "corpus", folder), exist_ok=True)
    with open(os.path.join(here, "corpus", folder, name), "wb") as file:
        file.write(content)


def keys():
    with open(os.path.join(here, "..", "..", "src", "protocol", "api.h"), encoding="ascii") as file:
        return {name.replace("_", "").lower(): int(key)
                for name, key in re.findall(r"API_(\w+) = (\d+),", file.read())}


def messages():
    newest, by_name = {}, keys()
    with open(os.path.join(data, "golden_kio.txt"), encoding="ascii") as file:
        for line in file:
            match = re.match(r"(\w+)(Request|Response) (\d+) (\S+)", line)
            if match:  # of two lines of a version the first has all fields
                newest.setdefault((match[1], match[2]), {}).setdefault(int(match[3]), match[4])
    for (api, kind), versions in newest.items():
        version = max(versions)
        content = bytes.fromhex(versions[version].replace("-", ""))
        start = bytes([by_name[api.lower()], version | (0x80 if kind == "Response" else 0)])
        write("message", "%s%s-%d" % (api, kind, version), start + content)


def frames():
    newest = {}
    with open(os.path.join(data, "golden_librdkafka.txt"), encoding="ascii") as file:
        for line in file:
            if line[0] == ">":
                frame = bytes.fromhex(line[2:])
                key, version = struct.unpack(">hh", frame[:4])
                newest[key] = max(newest.get(key, (-1, b"")), (version, frame))
    for key, (version, frame) in newest.items():
        write("frame", "request-%d-%d" % (key, version), frame)


if __name__ == "__main__":
    messages()
    frames()
