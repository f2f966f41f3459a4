#!/usr/bin/env python3
"""msgc.py - makes C from the message schemas.

    msgc.py OUTDIR FILE.msg...     writes OUTDIR/protocol/msg/<file>.h and .c, and table.c

A header has the structs of its file and typed wrappers; a source has the field tables that the codec walks;
table.c has the API rows and the list of all messages. A file is only written when its text changes, so that
one edited schema rebuilds what includes it and no more.
"""
import os
import re
import sys

from msg_schema import FOREVER, NEVER, SchemaError, parse_file

C_TYPE = {"bool": "bool", "int8": "int8_t", "int16": "int16_t", "uint16": "uint16_t", "int32": "int32_t",
          "int64": "int64_t", "float64": "double", "uuid": "struct uuid", "string": "struct str",
          "bytes": "struct bytes", "records": "struct records"}


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def struct_name(msg, struct):
    return snake(msg.name) + ("_" + struct.name if struct.name else "")


def stem(path):
    return os.path.splitext(os.path.basename(path))[0]


# --- header

def member(msg, field):
    base = "struct " + struct_name(msg, field.struct) if field.struct else C_TYPE[field.base]
    if field.is_array:
        text = "ARRAY(%s) %s;" % (base, field.name)
    elif field.struct and field.nullable is not NEVER:
        text = "%s *%s;" % (base, field.name)
    else:
        text = "%s %s;" % (base, field.name)
    notes = [str(field.versions)]
    if field.nullable is not NEVER:
        notes.append("null" if str(field.nullable) == str(field.versions) else "null in %s" % field.nullable)
    if field.tag is not None:
        notes.append("tagged")
    if field.key:
        notes.append("key")
    if field.default not in (None, "null"):
        notes.append("default " + field.default)
    return "    %-50s /* %s */" % (text, ", ".join(notes))


STRUCT_WRAPPERS = """\
extern const struct struct_desc {s}_struct;
static inline void {s}_init(struct {s} *m)
{{
    msg_struct_init(&{s}_struct, m);
}}
static inline struct {s} *{s}_new(struct arena *a, int32_t n)
{{
    return (struct {s} *)msg_struct_new(&{s}_struct, a, n);
}}
"""

MESSAGE_WRAPPERS = """\
extern const struct msg_desc {s}_desc;
static inline void {s}_init(struct {s} *m)
{{
    msg_init(&{s}_desc, m);
}}
static inline int {s}_decode(struct {s} *m, int version, struct reader *r, struct arena *a)
{{
    return msg_decode(&{s}_desc, version, r, a, m);
}}
static inline void {s}_encode(const struct {s} *m, int version, struct writer *w)
{{
    msg_encode(&{s}_desc, version, w, m);
}}
static inline size_t {s}_size(const struct {s} *m, int version)
{{
    return msg_size(&{s}_desc, version, m);
}}
"""


def header(path, messages):
    guard = "PROTOCOL_MSG_%s_H" % stem(path).upper()
    out = ["/* %s.h - made by msgc.py from messages/%s.msg: do not edit. */" % (stem(path), stem(path)),
           "#ifndef " + guard, "#define " + guard, "", '#include "protocol/codec.h"', ""]
    for msg in messages:
        versions = "versions %s" % msg.versions
        if msg.flexible_from != FOREVER:
            versions += ", flexible %d+" % msg.flexible_from
        out.append("/* %s: %s */" % (msg.name, versions))
        for struct in msg.structs:
            name = struct_name(msg, struct)
            out.append("struct %s {" % name)
            out += [member(msg, f) for f in struct.fields] or ["    char no_fields;"]
            out.append("};")
            out.append((MESSAGE_WRAPPERS if struct is msg.body else STRUCT_WRAPPERS).format(s=name))
    out.append("#endif")
    return "\n".join(out) + "\n"


# --- field tables

def field_row(msg, struct, field):
    kind = "STRUCT" if field.struct else field.base.upper()
    row = ['"%s"' % field.name, "offsetof(struct %s, %s)" % (struct_name(msg, struct), field.name)]
    row.append("FIELD_ARRAY, FIELD_" + kind if field.is_array else "FIELD_%s, 0" % kind)
    tagged = field.versions if field.tag is not None else NEVER
    for versions in (field.versions, field.nullable, tagged):
        row.append("%d, %d" % (versions.lo, versions.hi))
    row.append("%d" % (-1 if field.tag is None else field.tag))
    row.append("%d" % (-1 if field.plain else FOREVER))
    null_default = field.default == "null" or (field.base == "records" and field.nullable is not NEVER)
    row.append("%s, %s" % (str(field.ignorable).lower(), str(null_default).lower()))
    row.append(c_int(field.default) if field.default not in (None, "null") else "0")
    row.append("&%s_struct" % struct_name(msg, field.struct) if field.struct else "NULL")
    return "    {%s}," % ", ".join(row)


def c_int(text):
    if text in ("true", "false"):
        return "1" if text == "true" else "0"
    # the lowest int64 has no literal of its own
    return "INT64_MIN" if int(text) == -2**63 else "INT64_C(%s)" % text


def struct_table(msg, struct):
    name = struct_name(msg, struct)
    versions = range(msg.versions.lo, msg.versions.hi + 1)
    least = [struct.least(v, v >= msg.flexible_from) for v in versions]
    tagged = sorted((f.tag, i) for i, f in enumerate(struct.fields) if f.tag is not None)
    out = []
    if struct.fields:
        out.append("static const struct field_desc %s_fields[] = {" % name)
        out += [field_row(msg, struct, f) for f in struct.fields]
        out.append("};")
    out.append("static const uint16_t %s_least[] = {%s};" % (name, ", ".join(map(str, least))))
    if tagged:
        out.append("static const uint8_t %s_tagged[] = {%s};" % (name, ", ".join(str(i) for _, i in tagged)))
    out.append("const struct struct_desc %s_struct = {" % name)
    out.append('    "%s", sizeof(struct %s), %d, %d, %s, %s, %s_least, %d};' % (
        name, name, len(struct.fields), len(tagged), name + "_fields" if struct.fields else "NULL",
        name + "_tagged" if tagged else "NULL", name, msg.versions.lo))
    return out


def source(path, messages):
    out = ["/* %s.c - made by msgc.py from messages/%s.msg: do not edit. */" % (stem(path), stem(path)),
           '#include "protocol/msg/%s.h"' % stem(path), ""]
    for msg in messages:
        name = snake(msg.name)
        out.append("extern const struct struct_desc %s_struct;" % name)
        for struct in msg.structs:
            out += struct_table(msg, struct)
        out.append('const struct msg_desc %s_desc = {"%s", %d, %d, %d, %d, &%s_struct};' % (
            name, msg.name, msg.api_key, msg.versions.lo, msg.versions.hi, msg.flexible_from, name))
        out.append("")
    return "\n".join(out)


# --- the list of all

def table(files):
    out = ["/* table.c - made by msgc.py: do not edit. */", '#include "protocol/api_table.h"']
    out += ['#include "protocol/msg/%s.h"' % stem(path) for path, _ in files]
    apis = sorted((m for _, messages in files for m in messages if m.name.endswith("Request") and m.api_key >= 0),
                  key=lambda m: m.api_key)
    out += ["", "const struct api_desc api_rows[] = {"]
    for msg in apis:
        api = msg.name[:-len("Request")]
        out.append('    {%d, "%s", &%s_request_desc, &%s_response_desc},' % (
            msg.api_key, api, snake(api), snake(api)))
    out += ["};", "const int api_rows_n = %d;" % len(apis), ""]
    names = [snake(m.name) for _, messages in files for m in messages]
    out.append("const struct msg_desc *const msg_rows[] = {")
    out += ["    &%s_desc," % name for name in names]
    out += ["};", "const int msg_rows_n = %d;" % len(names)]
    return "\n".join(out) + "\n"


def check_apis(files):
    seen = {}
    for _, messages in files:
        for msg in messages:
            for ident in {snake(msg.name), msg.api_key if msg.name.endswith("Request") else -1} - {-1}:
                if ident in seen:
                    raise SchemaError(msg.where, "%s is also in %s:%d" % ((ident,) + seen[ident]))
                seen[ident] = msg.where


def write(path, text):
    try:
        with open(path, encoding="ascii") as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def main(argv):
    if len(argv) < 3:
        sys.exit(__doc__)
    try:
        files = [(path, parse_file(path)) for path in sorted(argv[2:])]
        check_apis(files)
    except SchemaError as error:
        sys.exit(str(error))
    outdir = os.path.join(argv[1], "protocol", "msg")
    os.makedirs(outdir, exist_ok=True)
    for path, messages in files:
        write(os.path.join(outdir, stem(path) + ".h"), header(path, messages))
        write(os.path.join(outdir, stem(path) + ".c"), source(path, messages))
    write(os.path.join(outdir, "table.c"), table(files))


if __name__ == "__main__":
    main(sys.argv)
