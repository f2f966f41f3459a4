"""real_input.py - data as people have it: the text of a long log, and a binary file."""
import os
import sys


def text_log():
    """A real text file with long and short lines, empty ones included: the licences of this machine, else ours."""
    for path in ("/usr/share/common-licenses/GPL-3", "/var/log/dpkg.log"):
        if os.path.exists(path):
            with open(path, "rb") as f:
                data = f.read()
            if data:
                return data if data.endswith(b"\n") else data + b"\n"
    with open(__file__, "rb") as f:
        return f.read() * 50


def binary_file(limit=4 << 20):
    """The Python interpreter's own program file: every byte value, long runs, no line structure."""
    with open(os.path.realpath(sys.executable), "rb") as f:
        return f.read(limit)


def pieces(data, size):
    return [data[i:i + size] for i in range(0, len(data), size)]
