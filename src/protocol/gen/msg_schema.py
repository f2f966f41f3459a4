"""msg_schema.py - reads the schema files messages/*.msg and checks them.

The notation is described in messages/README.md. parse_file() returns the messages of one file; a mistake in
the file raises SchemaError, which says file and line.
"""
import re

FOREVER = 32767  # upper end of an open version range
PRIMITIVES = ("bool", "int8", "int16", "uint16", "int32", "int64", "float64", "uuid", "string", "bytes", "records")
FIXED_SIZE = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "float64": 8, "uuid": 16}
INT_RANGE = {"int8": (-2**7, 2**7), "int16": (-2**15, 2**15), "uint16": (0, 2**16), "int32": (-2**31, 2**31),
             "int64": (-2**63, 2**63)}
C_KEYWORDS = frozenset(
    "auto bool break case char const continue default do double else enum extern float for goto if inline int long "
    "register return short signed sizeof static struct switch typedef union unsigned void volatile while".split())
INDENT = 4


class SchemaError(Exception):
    def __init__(self, where, text):
        super().__init__("%s:%d: %s" % (where[0], where[1], text))


class Versions:
    """An inclusive range of versions; empty when lo > hi."""

    def __init__(self, lo, hi):
        self.lo, self.hi = lo, hi

    def __contains__(self, version):
        return self.lo <= version <= self.hi

    def __str__(self):
        if self.hi == FOREVER:
            return "%d+" % self.lo
        return "%d" % self.lo if self.lo == self.hi else "%d-%d" % (self.lo, self.hi)


NEVER = Versions(1, 0)


class Field:
    def __init__(self, where, name):
        self.where, self.name = where, name
        self.base, self.is_array = None, False
        self.struct = None  # when the base type is not a primitive
        self.versions, self.nullable = NEVER, NEVER
        self.tag, self.default = None, None  # default as it was written
        self.key = self.ignorable = self.plain = False

    def least(self, version, flexible):
        """Bytes that the field takes at least on the wire; none when absent or tagged."""
        if version not in self.versions or self.tag is not None:
            return 0
        compact = flexible and not self.plain
        if self.is_array or self.base in ("bytes", "records"):
            return 1 if compact else 4
        if self.base == "string":
            return 1 if compact else 2
        if self.struct:
            return 1 if version in self.nullable else self.struct.least(version, flexible)
        return FIXED_SIZE[self.base]


class Struct:
    def __init__(self, where, name):
        self.where, self.name, self.fields = where, name, []

    def least(self, version, flexible):
        return sum(f.least(version, flexible) for f in self.fields) + (1 if flexible else 0)


class Message:
    """A request, a response or a data record. In `structs` each struct stands behind those it uses, so the
    body is the last."""

    def __init__(self, where, api_key, name, versions, flexible_from):
        self.where, self.api_key, self.name, self.versions = where, api_key, name, versions
        self.flexible_from = flexible_from
        self.body = Struct(where, "")
        self.structs = []


class Node:
    """A line of the file with the lines that are indented below it."""

    def __init__(self, where, words):
        self.where, self.words, self.children = where, words, []


def parse_file(path):
    nodes = read_tree(path)
    if nodes and nodes[0].words[0] == "api":
        return api_messages(nodes)
    messages = []
    for node in nodes:
        if node.words[0] != "data":
            raise SchemaError(node.where, "expected 'data' (or 'api' as the first line of the file)")
        messages.append(message(node, -1, *head(node.where, node.words[1:])))
    return messages


def read_tree(path):
    top = Node((path, 0), [])
    open_nodes = [top]  # one per depth of indentation
    with open(path, encoding="ascii") as file:
        for number, text in enumerate(file, 1):
            text = text.split("#")[0].rstrip()
            if not text:
                continue
            depth, rest = divmod(len(text) - len(text.lstrip()), INDENT)
            if rest or "\t" in text or depth >= len(open_nodes):
                raise SchemaError((path, number), "indentation: %d blanks a level, one level at a time" % INDENT)
            node = Node((path, number), text.split())
            open_nodes[depth].children.append(node)
            open_nodes[depth + 1:] = [node]
    return top.children


def api_messages(nodes):
    where, words = nodes[0].where, nodes[0].words
    if len(words) < 2 or not words[1].isdigit():
        raise SchemaError(where, "expected: api KEY NAME VERSIONS [flexible VERSIONS]")
    name, versions, flexible_from = head(where, words[2:])
    if [n.words for n in nodes[1:]] != [["request"], ["response"]]:
        raise SchemaError(where, "an api has one request and then one response")
    return [message(n, int(words[1]), name + n.words[0].capitalize(), versions, flexible_from) for n in nodes[1:]]


def head(where, words):
    """NAME VERSIONS [flexible VERSIONS] -> name, versions, first flexible version"""
    if len(words) not in (2, 4) or (len(words) == 4 and words[2] != "flexible"):
        raise SchemaError(where, "expected: NAME VERSIONS [flexible VERSIONS]")
    if not re.match(r"[A-Z][A-Za-z0-9]*$", words[0]):
        raise SchemaError(where, "bad message name '%s'" % words[0])
    versions = parse_versions(where, words[1])
    flexible = parse_versions(where, words[3]) if len(words) == 4 else Versions(FOREVER, FOREVER)
    if versions.hi == FOREVER or flexible.hi != FOREVER:
        raise SchemaError(where, "a message has a highest version; its flexible versions have none")
    return words[0], versions, flexible.lo


def parse_versions(where, text):
    match = re.match(r"(\d+)(?:(\+)|-(\d+))?$", text)
    lo = int(match.group(1)) if match else 0
    hi = FOREVER if match and match.group(2) else int(match.group(3) or lo) if match else -1
    if not lo <= hi <= FOREVER:
        raise SchemaError(where, "bad version range '%s'" % text)
    return Versions(lo, hi)


def message(node, api_key, name, versions, flexible_from):
    result = Message(node.where, api_key, name, versions, flexible_from)
    named = {}
    add_fields(result.body, node.children, named)
    order(result, result.body, named, [])
    for struct in named.values():
        if struct not in result.structs:
            raise SchemaError(struct.where, "struct '%s' is not used" % struct.name)
    return result


def add_fields(struct, nodes, named):
    for node in nodes:
        if node.words[0] == "struct" and len(node.words) == 2:
            if struct.name:
                raise SchemaError(node.where, "a shared struct stands at the top of its message")
            add_fields(new_struct(node.where, node.words[1], named), node.children, named)
            continue
        field = parse_field(node)
        if any(f.name == field.name for f in struct.fields):
            raise SchemaError(node.where, "field '%s' is there already" % field.name)
        struct.fields.append(field)
        if node.children:
            if field.base in PRIMITIVES:
                raise SchemaError(node.where, "fields below a field that is not a struct")
            field.struct = new_struct(node.where, field.base, named)
            add_fields(field.struct, node.children, named)


def new_struct(where, name, named):
    if not re.match(r"[a-z][a-z0-9_]*$", name) or name in PRIMITIVES:
        raise SchemaError(where, "bad struct name '%s'" % name)
    if name in named:
        raise SchemaError(where, "struct '%s' is there already" % name)
    named[name] = Struct(where, name)
    return named[name]


def parse_field(node):
    where, words = node.where, list(node.words)
    match = re.match(r"(\[\])?([a-z][a-z0-9_]*)(?:(\?)(.*))?$", words[1]) if len(words) >= 3 else None
    if not match:
        raise SchemaError(where, "expected: NAME TYPE VERSIONS [...]")
    field = Field(where, words[0])
    if not re.match(r"[a-z][a-z0-9_]*$", field.name) or field.name in C_KEYWORDS:
        raise SchemaError(where, "bad field name '%s'" % field.name)
    field.is_array, field.base = bool(match.group(1)), match.group(2)
    field.versions = parse_versions(where, words[2])
    if match.group(3):
        field.nullable = parse_versions(where, match.group(4)) if match.group(4) else field.versions
    del words[:3]
    while words:
        word = words.pop(0)
        if word in ("key", "ignorable", "plain"):
            setattr(field, word, True)
        elif word == "tag" and words and words[0].isdigit():
            field.tag = int(words.pop(0))
        elif word == "=" and words:
            field.default = words.pop(0)
        else:
            raise SchemaError(where, "do not understand '%s'" % word)
    return field


def order(msg, struct, named, path):
    """Resolves shared structs, checks each field, and appends the structs to msg.structs, users last."""
    if struct in path:
        raise SchemaError(struct.where, "struct '%s' contains itself" % struct.name)
    if struct in msg.structs:
        return
    tags = [f.tag for f in struct.fields if f.tag is not None]
    if len(set(tags)) != len(tags):
        raise SchemaError(struct.where, "a tag is used twice")
    for field in struct.fields:
        if field.base not in PRIMITIVES and field.struct is None:
            if field.base not in named:
                raise SchemaError(field.where, "unknown type '%s'" % field.base)
            field.struct = named[field.base]
        check_field(msg, field)
        if field.struct:
            order(msg, field.struct, named, path + [struct])
    msg.structs.append(struct)


def check_field(msg, field):
    versions, nullable = field.versions, field.nullable
    if versions.lo > msg.versions.hi or versions.hi < msg.versions.lo:
        raise SchemaError(field.where, "the message has none of these versions")
    if nullable is not NEVER:
        if not (field.is_array or field.struct or field.base in ("string", "bytes", "records")):
            raise SchemaError(field.where, "%s cannot be null" % field.base)
        if not versions.lo <= nullable.lo <= nullable.hi <= versions.hi:
            raise SchemaError(field.where, "null in versions that lack the field")
        if field.struct and not field.is_array and field.default != "null":
            raise SchemaError(field.where, "a struct that can be null has '= null' as its default")
    if field.tag is not None and versions.lo < msg.flexible_from:
        raise SchemaError(field.where, "tagged in versions that are not flexible")
    if field.plain and (field.base != "string" or field.is_array):
        raise SchemaError(field.where, "only a string can be plain")
    if field.default is not None and not default_fits(field):
        raise SchemaError(field.where, "'%s' is no default for this field" % field.default)


def default_fits(field):
    if field.default == "null":
        return field.nullable is not NEVER
    if field.is_array:
        return False
    if field.base in INT_RANGE and re.match(r"-?\d+$", field.default):
        lo, end = INT_RANGE[field.base]
        return lo <= int(field.default) < end
    return field.base == "bool" and field.default in ("true", "false")
