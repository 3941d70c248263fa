#!/usr/bin/python3
"""Decode a trace: an independent reader, written from formats/trace-format.md.

usage: tracedecode.py [--scan] DIRECTORY

Prints the events in global order, one JSON object a line.  Exit status: 0 the
trace is whole, 1 damaged or incomplete (one line on stderr), 2 trouble.
--scan leaves the index aside.
"""

import collections
import heapq
import json
import os
import re
import stat
import struct
import sys
import zlib

import xxhash

U64 = (1 << 64) - 1
MAX_MANIFEST = 64 << 20
MAX_RAW = 4 << 20
MAX_RECORD = 2 << 20
DEFLATE, LAST = 1, 2

HEADER = struct.Struct("<4sBBHIIQQIIQQQ")
ENTRY = struct.Struct("<IIQIIIIQQ")

TYPES = {
    1: "image", 2: "start", 3: "syscall", 4: "enter", 5: "clone",
    6: "signal", 7: "insn", 8: "exit", 9: "more", 10: "file", 11: "note",
    12: "end", 13: "state", 14: "stop", 15: "poke", 16: "async",
    17: "block", 128: "digest",
}

SCALARS = {
    1: "nr", 2: "result", 3: "duration", 4: "output", 5: "entered",
    6: "origin", 7: "pid", 8: "tid", 9: "parent", 10: "child",
    11: "child_stream", 12: "clone_flags", 13: "signo", 14: "action",
    15: "status", 16: "brk_start", 17: "brk", 18: "stack_limit", 19: "insn",
    20: "length", 21: "file", 22: "method", 23: "dev", 24: "ino", 25: "mode",
    26: "size", 27: "mtime", 28: "parts", 29: "code", 30: "events",
    31: "tasks", 32: "streams", 33: "cpu", 34: "domain",
    35: "memory", 36: "registers", 37: "offset", 38: "place",
    39: "debug_register", 40: "value", 41: "root",
    42: "pages", 43: "exposed", 44: "vector", 45: "changed",
    46: "unlisted", 47: "reason", 59: "via",
    61: "translated",
}
SIGNED = {2, 27}
IN_HEX = {12, 16, 17, 18, 23, 35, 36, 40, 41, 44, 59}
BELOW_2_32 = {9, 10, 11, 21}

STRUCTS = {
    48: "regs", 49: "regs_after", 50: "xstate", 51: "siginfo", 52: "text",
    53: "sha256", 54: "mem", 55: "map", 56: "arg",
    57: "digests", 58: "page_hashes", 60: "blocks",
    62: "known",
}
BLOCK, BLOCK_STREAM = 17, (1 << 24) - 1
MAX_MEM = 256 << 10
REPEATED = {54, 55, 56}

REGISTERS = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi "
             "orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs gs"
             ).split()
ZERO = (0,) * len(REGISTERS)


class Damage(Exception):
    """The trace breaks a rule of the format."""


def xxh3(data):
    return xxhash.xxh3_64_intdigest(data)


def text(data):
    """Bytes as JSON shows them."""
    try:
        if b"\0" not in data:
            return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    return {"hex": data.hex()}


def digest_of(data):
    return {"len": len(data), "xxh3": "%016x" % xxh3(data)}


class Span:
    """Bytes taken from the front; taking more than there are is damage."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def left(self):
        return len(self.data) - self.at

    def take(self, n):
        if n > self.left():
            raise Damage("cut off: %d bytes wanted, %d left"
                         % (n, self.left()))
        self.at += n
        return self.data[self.at - n:self.at]

    def rest(self):
        return self.take(self.left())

    def varint(self, limit=U64):
        value = 0
        for group in range(10):
            byte = self.take(1)[0]
            if group == 9 and byte > 1:
                break
            value |= (byte & 0x7f) << (7 * group)
            if byte < 0x80:
                if value > limit:
                    raise Damage("%d is too large" % value)
                return value
        raise Damage("an integer of more than 64 bits")

    def zigzag(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)


# ---- Manifest ----

def is_text(value):
    if isinstance(value, str):
        return "\0" not in value
    if not isinstance(value, dict) or not isinstance(value.get("hex"), str):
        return False
    digits = value["hex"]
    if len(digits) % 2 or not re.fullmatch("[0-9a-fA-F]*", digits):
        return False
    return 0 not in bytes.fromhex(digits)


def is_list(value):
    return isinstance(value, list) and all(is_text(v) for v in value)


def is_integer(value):
    return (isinstance(value, int) and not isinstance(value, bool)
            and -(1 << 63) <= value < 1 << 63)


def is_count(value):
    return is_integer(value) and value >= 0


def is_uuid(value):
    return isinstance(value, str) and (value == "" or re.fullmatch(
        "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value) is not None)


def is_hex(value):
    return isinstance(value, str) and re.fullmatch(
        "0x[0-9a-fA-F]{1,16}", value) is not None


def is_status(value):
    return is_integer(value) and -(1 << 31) <= value < 1 << 31


MEMBERS = {
    "compat": is_list, "uuid": is_uuid, "tool": is_text, "host": is_text,
    "kernel": is_text, "machine": is_text, "cpu_model": is_text,
    "cpu_flags": is_text, "xcr0": is_hex, "argv": is_list, "cwd": is_text,
    "envp": is_list, "labels": is_list, "start_ns": is_integer,
    "duration_ns": is_count,
}
TOTALS = {
    "status": is_status, "events": is_count, "tasks": is_count,
    "streams": is_count, "files": is_count,
}


def unique(pairs):
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("a member occurs twice")
    return names


def check_members(manifest, members):
    for name, valid in members.items():
        if name not in manifest or not valid(manifest[name]):
            raise Damage("manifest.json: member %r is missing or malformed"
                         % name)


def read_manifest(directory):
    with open(os.path.join(directory, "manifest.json"), "rb") as f:
        data = f.read(MAX_MANIFEST + 1)
    if len(data) > MAX_MANIFEST:
        raise Damage("manifest.json: too large")
    body = data[:-35]
    last = b'  "checksum": "%016x"\n}\n' % xxh3(body)
    if data[-35:] != last or not body.endswith(b"\n"):
        raise Damage("manifest.json: the checksum does not match")
    try:
        manifest = json.loads(data.decode("utf-8"), object_pairs_hook=unique)
    except ValueError as e:
        raise Damage("manifest.json: not JSON: %s" % e) from None
    if not isinstance(manifest, dict) or manifest.get("format") != "trace":
        raise Damage("manifest.json: not a trace's")
    check_members(manifest, {"version": lambda v: is_integer(v) and v >= 1})
    if manifest["version"] > 1:
        raise Damage("unknown version %d" % manifest["version"])
    check_members(manifest, {"incompat": is_list})
    for feature in manifest["incompat"]:
        if feature not in ("xsavec", "via", "blocks",
                           "translated", "known"):
            raise Damage("unknown feature %r" % feature)
    check_members(manifest, MEMBERS)
    check_members(manifest, {"complete": lambda v: isinstance(v, bool)})
    if manifest["complete"]:
        check_members(manifest, TOTALS)
    if "stopped" in manifest:
        check_members(manifest, {"stopped": is_text, "stopped_at": is_count})
    return manifest


# ---- Chunks ----

# Where a chunk is and what it holds, as an index entry has it.
Ref = collections.namedtuple("Ref", "file stream offset records flags "
                             "raw_size stored_size first last")


class Chunk:
    """A chunk header."""

    def __init__(self, data):
        """Check 64 bytes and take them apart."""
        if len(data) < HEADER.size or data[:4] != b"TRCK":
            raise Damage("not a chunk header")
        (_, version, self.flags, incompat, self.stream, self.records,
         self.first, self.last, self.raw_size, self.stored_size, self.payload,
         self.previous, self.check) = HEADER.unpack(data)
        if self.check != xxh3(data[:56]):
            raise Damage("chunk header checksum does not match")
        if version != 1 or incompat or self.flags & ~3:
            raise UnknownFeature("unknown feature: chunk header version %d, "
                                 "flags %#x, incompat %#x"
                                 % (version, self.flags, incompat))
        self.check_values()

    def check_values(self):
        if self.stream >= 1 << 24 or self.raw_size > MAX_RAW:
            raise Damage("chunk header: a value is too large")
        if self.flags & DEFLATE:
            sizes = self.stored_size < self.raw_size
        else:
            sizes = self.stored_size == self.raw_size
        if self.records == 0:
            counts = self.raw_size == 0 and self.flags & LAST
        else:
            counts = self.records <= self.raw_size
        if not sizes or not counts or not 1 <= self.first <= self.last:
            raise Damage("chunk header contradicts itself")

    def ref(self, number, offset):
        return Ref(number, self.stream, offset, self.records, self.flags,
                   self.raw_size, self.stored_size, self.first, self.last)


class UnknownFeature(Damage):
    """Not damage but the future; a scan does not pass over it."""


class ChunkFiles:
    """The chunk files of a trace."""

    def __init__(self, directory):
        self.directory = os.path.join(directory, "chunks")
        names = []
        if os.path.isdir(self.directory):
            names = [n for n in os.listdir(self.directory)
                     if re.fullmatch("[0-9]{6}", n)]
        self.count = max(map(int, names)) + 1 if names else 0
        self.missing = self.count != len(names) or self.count == 0
        self.open = {}

    def handle(self, number):
        if number not in self.open:
            path = os.path.join(self.directory, "%06d" % number)
            if not os.path.lexists(path):
                return None
            if not stat.S_ISREG(os.lstat(path).st_mode):
                raise Damage("chunks/%06d: not a regular file" % number)
            self.open[number] = open(path, "rb")
        return self.open[number]

    def size(self, number):
        f = self.handle(number)
        return os.fstat(f.fileno()).st_size if f else None

    def read(self, number, offset, n):
        f = self.handle(number)
        f.seek(offset)
        return f.read(n)

    def chunk_at(self, number, offset):
        """A reference to the whole chunk there, or None."""
        try:
            chunk = Chunk(self.read(number, offset, HEADER.size))
        except UnknownFeature:
            raise
        except Damage:
            return None
        if chunk.stored_size > self.size(number) - offset - HEADER.size:
            return None
        return chunk.ref(number, offset)

    def resync(self, number, offset):
        """Offset of the next whole chunk, or the file's size."""
        data = self.read(number, offset, self.size(number) - offset)
        at = data.find(b"TRCK")
        while at >= 0:
            if self.chunk_at(number, offset + at):
                return offset + at
            at = data.find(b"TRCK", at + 1)
        return self.size(number)

    def scan(self):
        """All chunks, and how many bytes belong to none."""
        chunks, lost = [], 0
        for number in range(self.count):
            if self.handle(number) is None:
                continue
            offset = 0
            while offset < self.size(number):
                chunk = self.chunk_at(number, offset)
                if chunk:
                    chunks.append(chunk)
                    offset += HEADER.size + chunk.stored_size
                    continue
                following = self.resync(number, offset + 1)
                lost += following - offset
                offset = following
        return chunks, lost

    def load(self, ref):
        """Header, checked, and payload bytes of a chunk."""
        chunk = Chunk(self.read(ref.file, ref.offset, HEADER.size))
        if chunk.ref(ref.file, ref.offset) != ref:
            raise Damage("differs from the index")
        data = self.read(ref.file, ref.offset + HEADER.size, ref.stored_size)
        return chunk, data


def read_index(directory, files):
    """The entries of a usable index; ValueError tells why it is not."""
    path = os.path.join(directory, "index")
    if not os.path.exists(path):
        raise ValueError("index: missing")
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < 32 or data[:8] != b"TRACEIDX":
        raise ValueError("index: not an index")
    if struct.unpack("<Q", data[-8:])[0] != xxh3(data[:-8]):
        raise ValueError("index: the checksum does not match")
    version, size, count = struct.unpack_from("<IIQ", data, 8)
    if version != 1 or size != ENTRY.size or len(data) != 32 + count * size:
        raise ValueError("index: version or size not known")
    entries = [Ref(*ENTRY.unpack_from(data, 24 + i * size))
               for i in range(count)]
    check_entries(entries, files)
    return entries


def check_entries(entries, files):
    number, end = 0, 0
    for entry in entries:
        if entry.file == number + 1 and end > 0:
            if files.size(number) != end:
                raise ValueError("index: does not cover a chunk file")
            number, end = number + 1, 0
        if entry.file != number or entry.offset != end:
            raise ValueError("index: entries leave a gap")
        end += HEADER.size + entry.stored_size
    if files.count != number + 1 or files.size(number) != end:
        raise ValueError("index: does not cover the chunk files")


def payload_of(chunk, data):
    """The checked, inflated payload."""
    if len(data) != chunk.stored_size or xxh3(data) != chunk.payload:
        raise Damage("payload checksum does not match")
    if not chunk.flags & DEFLATE:
        return data
    inflater = zlib.decompressobj(-15)
    try:
        raw = inflater.decompress(data, chunk.raw_size + 1)
    except zlib.error as e:
        raise Damage("cannot be inflated: %s" % e) from None
    if (len(raw) != chunk.raw_size or not inflater.eof
            or inflater.unused_data):
        raise Damage("does not inflate to its size")
    return raw


# ---- Records ----

def registers(data, base):
    span = Span(data)
    changed = span.varint()
    if changed >> len(REGISTERS):
        raise Damage("a register that does not exist")
    values = list(base)
    for i in range(len(REGISTERS)):
        if changed >> i & 1:
            values[i] = (values[i] + span.zigzag()) & U64
    if span.left():
        raise Damage("bytes after the registers")
    return tuple(values)


def show_registers(values):
    return {n: "0x%x" % v for n, v in zip(REGISTERS, values)}


def mem_field(data, state):
    span = Span(data)
    address = (state["mem"] + span.zigzag()) & U64
    contents = span.rest()
    if len(contents) > MAX_MEM:
        raise Damage("memory piece too large")
    if address + len(contents) > U64:
        raise Damage("memory wraps around")
    state["mem"] = address + len(contents)
    return {"addr": "0x%x" % address, **digest_of(contents)}


def map_field(data, state):
    span = Span(data)
    page = (state["map"] + span.zigzag()) & U64
    pages = span.varint()
    prot, flags, number = (span.varint(0xffffffff) for _ in range(3))
    offset = span.varint()
    name = span.rest()
    if pages < 1 or page + pages >= 1 << 52:
        raise Damage("a mapping that cannot be")
    if len(name) > 65536:
        raise Damage("name of a mapping too long")
    state["map"] = page + pages
    return {"start": "0x%x" % (page << 12),
            "end": "0x%x" % (page + pages << 12), "prot": prot,
            "flags": flags, "file": number, "offset": "0x%x" % offset,
            "name": text(name)}


def arg_field(data, _):
    span = Span(data)
    head = span.varint(11)
    address, length = span.varint(), span.varint()
    digest = struct.unpack("<Q", span.take(8))[0]
    contents = span.rest()
    if len(contents) > min(length, 4096 if head & 1 else 64):
        raise Damage("argument bytes too many")
    return {"index": head >> 1, "string": bool(head & 1),
            "addr": "0x%x" % address, "len": "0x%x" % length,
            "xxh3": "%016x" % digest, "bytes": text(contents)}


def digests_field(data):
    if len(data) % 8:
        raise Damage("digests not whole")
    return ["%016x" % d for d in struct.unpack("<%dQ" % (len(data) // 8), data)]


def pages_field(data):
    span = Span(data)
    page, found = 0, []
    while span.left():
        page += span.varint()
        if page >= (1 << 52) - 1:
            raise Damage("a page that cannot be")
        digest = struct.unpack("<Q", span.take(8))[0]
        found.append({"addr": "0x%x" % (page << 12), "xxh3": "%016x" % digest})
        page += 1
    return found


def blocks_field(data, memory):
    """Which memory is which block: (index, number, length)."""
    span = Span(data)
    index, total, found = 0, 0, []
    while span.left():
        index += span.varint(MAX_RECORD)
        number, length = span.varint(), span.varint(MAX_MEM)
        total += length
        if not number or not length or total > MAX_RECORD:
            raise Damage("a block that cannot be")
        if index >= len(memory) or memory[index]["len"]:
            raise Damage("a block without its memory")
        if int(memory[index]["addr"], 16) + length > U64:
            raise Damage("memory wraps around")
        found.append((index, number, length))
        index += 1
    return found


def known_field(data):
    """Sites in a file's code that were patched before."""
    span = Span(data)
    at, found = 0, []
    while span.left():
        at += span.varint()
        insn, length = span.varint(), span.varint()
        via, hole = span.zigzag(), span.zigzag()
        via = at + via if via else 0
        hole += at
        if (at >= 1 << 62 or insn > 7 or not 1 <= length <= 15 or
                not 0 <= via < 1 << 62 or not 0 <= hole < 1 << 62):
            raise Damage("a site that cannot be")
        found.append({"at": at, "insn": insn, "length": length, "via": via,
                      "hole": hole})
        at += 1
    return found


LISTS = {54: mem_field, 55: map_field, 56: arg_field}


def at_most(data, limit, what):
    if len(data) > limit:
        raise Damage("%s too long" % what)
    return data


def exactly(data, n, what):
    if len(data) != n:
        raise Damage("%s is not of %d bytes" % (what, n))
    return data


class Decoder:
    """Records of one chunk, as dictionaries ready for JSON."""

    def __init__(self, chunk, raw):
        self.chunk = chunk
        self.span = Span(raw)
        self.number = chunk.first
        self.time = 0
        self.regs = {}

    def events(self):
        met = 0
        while self.span.left():
            met += 1
            try:
                event = self.record(met == 1)
            except Damage as e:
                raise Damage("record %d: %s" % (met, e)) from None
            if event:
                yield event
        if met != self.chunk.records:
            raise Damage("%d records, not %d" % (met, self.chunk.records))
        if met and self.number != self.chunk.last:
            raise Damage("the last event is not the header's")

    def record(self, is_first):
        start = self.span.at
        kind = self.span.take(1)[0]
        body = Span(self.span.take(self.span.varint()))
        if self.span.at - start > MAX_RECORD:
            raise Damage("record too large")
        if kind not in TYPES and kind < 128:
            raise Damage("unknown event type %d" % kind)
        delta = body.varint()
        task = body.varint(0xffffffff)
        self.number += delta
        self.time = (self.time + body.zigzag()) & U64
        if self.number > self.chunk.last or (is_first and delta):
            raise Damage("event number outside the chunk's")
        if kind not in TYPES:
            return None
        event = {"type": TYPES[kind], "event": self.number,
                 "stream": self.chunk.stream, "task": task,
                 "time": self.time}
        self.fields(body, kind, task, event)
        if (kind == BLOCK) != (self.chunk.stream == BLOCK_STREAM):
            raise Damage("a block outside of its stream, or no block in it")
        if kind == BLOCK and len(event.get("mem", ())) != 1:
            raise Damage("a block that is not one piece of memory")
        return event

    def fields(self, body, kind, task, event):
        before = -1
        state = {"mem": 0, "map": 0, "task": task, "type": kind,
                 "base": self.regs.get(task, ZERO)}
        while body.left():
            key = body.varint()
            value = body.varint()
            tag = key >> 1
            data = body.take(value) if key & 1 else None
            if tag < before or (tag == before and tag < 64
                                and tag not in REPEATED):
                raise Damage("field %d out of order or repeated" % tag)
            before = tag
            if tag >= 64:
                continue
            if tag not in (STRUCTS if key & 1 else SCALARS):
                raise Damage("unknown field %d" % tag)
            if key & 1:
                self.structured(tag, data, state, event)
            else:
                self.scalar(tag, value, event)

    @staticmethod
    def scalar(tag, value, event):
        if tag in SIGNED:
            value = (value >> 1) ^ -(value & 1)
        if tag in BELOW_2_32 and value >> 32:
            raise Damage("%s of more than 32 bits" % SCALARS[tag])
        if SCALARS[tag] == "parts" and value > 1 << 24:
            raise Damage("too many parts")
        event[SCALARS[tag]] = "0x%x" % value if tag in IN_HEX else value

    def structured(self, tag, data, state, event):
        name = STRUCTS[tag]
        if tag in REPEATED:
            event.setdefault(name, []).append(LISTS[tag](data, state))
        elif name in ("regs", "regs_after"):
            if state["type"] >= 128:
                raise Damage("registers in a compatible type")
            values = registers(data, state["base"])
            event[name] = show_registers(values)
            if name == "regs":
                state["base"] = self.regs[state["task"]] = values
                if len(self.regs) > 4096:
                    raise Damage("too many tasks in a chunk")
        elif name == "xstate":
            event[name] = digest_of(at_most(data, 65536, name))
        elif name == "siginfo":
            event[name] = exactly(data, 128, name).hex()
        elif name == "text":
            event[name] = text(at_most(data, 65536, name))
        elif name == "digests":
            event[name] = digests_field(at_most(data, 65536, name))
        elif name == "page_hashes":
            event[name] = pages_field(at_most(data, 65536, name))
        elif name == "known":
            event[name] = known_field(at_most(data, 65536, name))
        elif name == "blocks":
            event[name] = blocks_field(at_most(data, 65536, name),
                                       event.get("mem", ()))
        else:
            event[name] = exactly(data, 32, name).hex()


# ---- Streams and their merge ----

class Blocks:
    """Memory that is stored once."""

    def __init__(self, files, refs):
        self.files = files
        self.refs = refs

    def find(self, number, length):
        """What an event shows of the block's bytes."""
        for ref in self.refs:
            if ref.last >= number:
                break
        else:
            raise Damage("block %d is missing" % number)
        chunk, data = self.files.load(ref)
        for block in Decoder(chunk, payload_of(chunk, data)).events():
            if block["event"] == number:
                shown = dict(block["mem"][0])
                del shown["addr"]
                if shown["len"] == length:
                    return shown
                break
        raise Damage("block %d is not what it should be" % number)

    def resolve(self, event):
        for index, number, length in event.pop("blocks", ()):
            event["mem"][index].update(self.find(number, length))


def stream_events(files, refs, blocks):
    """The events of one stream.  Damage ends it."""
    previous = None
    for ref in refs:
        # The merge opens a chunk when its first event is due.
        yield ref.first, None
        try:
            chunk, data = files.load(ref)
            check_link(chunk, previous)
            for event in Decoder(chunk, payload_of(chunk, data)).events():
                blocks.resolve(event)
                yield event["event"], event
        except Damage as e:
            raise Damage("chunks/%06d at byte %d: %s"
                         % (ref.file, ref.offset, e)) from None
        previous = chunk


def check_link(chunk, previous):
    if chunk.previous != (previous.check if previous else 0):
        raise Damage("does not follow the stream's chunk before")
    if previous and (previous.flags & LAST or chunk.first < previous.last):
        raise Damage("follows the stream's end or goes back")


def by_stream(chunks):
    streams = {}
    for chunk in chunks:
        streams.setdefault(chunk.stream, []).append(chunk)
    return streams


def merged(files, chunks):
    """All events in global order: those of one number stay together."""
    heap = []
    streams = by_stream(chunks)
    blocks = Blocks(files, streams.pop(BLOCK_STREAM, []))
    for stream, own in sorted(streams.items()):
        heap.append((own[0].first, stream, None,
                     stream_events(files, own, blocks)))
    heapq.heapify(heap)
    while heap:
        number, stream, event, rest = heapq.heappop(heap)
        while True:
            if event:
                yield event
            step = next(rest, None)
            if step is None:
                break
            event = step[1]
            # A tie is this stream's: `more` records follow their event.
            if step[0] > number and heap and heap[0][0] < step[0]:
                heapq.heappush(heap, (step[0], stream, event, rest))
                break
            number = step[0]


def incomplete(manifest, files, chunks, lost, scanned):
    """Why the trace is not complete, or None."""
    if lost:
        return "%d bytes belong to no whole chunk" % lost
    if files.missing:
        return "a chunk file is missing"
    for stream, own in sorted(by_stream(chunks).items()):
        if not own[-1].flags & LAST:
            return "stream %d has no end" % stream
    if not chunks or (scanned and chunks[-1].stream != 0):
        return "the end of the catalogue is missing"
    if not manifest["complete"]:
        return "the recording did not end cleanly"
    return None


def decode(directory, out, use_index):
    manifest = read_manifest(directory)
    files = ChunkFiles(directory)
    lost, scanned = 0, False
    try:
        if not use_index:
            raise ValueError("index: left aside")
        chunks = read_index(directory, files)
    except ValueError as e:
        print("tracedecode: %s; scanning" % e, file=sys.stderr)
        chunks, lost = files.scan()
        scanned = True
    for event in merged(files, chunks):
        out.write(json.dumps(event, ensure_ascii=False,
                             separators=(",", ":")) + "\n")
    why = incomplete(manifest, files, chunks, lost, scanned)
    if why:
        raise Damage("incomplete: %s" % why)


def main(argv):
    arguments = [a for a in argv[1:] if a != "--scan"]
    if len(arguments) != 1:
        print("usage: tracedecode.py [--scan] DIRECTORY", file=sys.stderr)
        return 2
    directory = arguments[0]
    out = open(sys.stdout.fileno(), "w", encoding="utf-8", closefd=False)
    if not os.path.isdir(directory) or not os.path.exists(
            os.path.join(directory, "manifest.json")):
        print("tracedecode: %s: not a trace" % directory, file=sys.stderr)
        return 1
    try:
        decode(directory, out, len(arguments) == len(argv) - 1)
    except Damage as e:
        out.flush()
        print("tracedecode: %s: %s" % (directory, e), file=sys.stderr)
        return 1
    except OSError as e:
        out.flush()
        print("tracedecode: %s" % e, file=sys.stderr)
        return 2
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
