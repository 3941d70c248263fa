"""Measure record and replay against native runs.  README.md explains it.

Prints a table; writes one JSON object a row to $BUILD/bench.json, after one
that describes the machine.  Exit status 0 when every row that could run here
was measured, 1 when one failed, 2 when there is trouble.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["BUILD"]
TOOLS = os.path.join(BUILD, "bin")
SOURCE = os.path.dirname(os.path.abspath(__file__))
RUNS = int(os.environ.get("BENCH_RUNS", "5"))
ONLY = [n for n in os.environ.get("BENCH_ONLY", "").split(",") if n]
LIMIT = 600  # seconds after which a run is given up
CALLS = 1000000
STOPPED_CALLS = 100000
PRIMITIVES = ["native_syscall", "sysemu_stop", "syscall_pair", "single_step",
              "getregs", "setregs", "read_memory", "fork_exec_exit"]


class Skip(Exception):
    """The row cannot be measured here."""


class Failed(Exception):
    """The row should have worked and did not."""


def tool(name):
    return os.path.join(TOOLS, "trace-" + name)


# --- one run -----------------------------------------------------------------

class Run:
    def __init__(self, status, wall, cpu, rss):
        self.status, self.wall, self.cpu = status, wall, cpu
        self.rss = rss  # peak, bytes


def expire(_signal, _frame):
    raise TimeoutError


def run(argv, errors=os.devnull, limit=LIMIT):
    """Run to the end in the current directory; wall and CPU seconds."""
    nothing = os.open(os.devnull, os.O_RDWR)
    err = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    actions = [(os.POSIX_SPAWN_DUP2, nothing, 0),
               (os.POSIX_SPAWN_DUP2, nothing, 1),
               (os.POSIX_SPAWN_DUP2, err, 2)]
    signal.alarm(limit)
    begun = time.monotonic()
    pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions,
                          setpgroup=0)
    try:
        _, status, used = os.wait4(pid, 0)
        wall = time.monotonic() - begun
    except BaseException:
        # The group was made for this run; what it traces dies with it.
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    finally:
        signal.alarm(0)
        os.close(nothing)
        os.close(err)
    return Run(os.waitstatus_to_exitcode(status), wall,
               used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def text_of(path):
    with open(path, errors="replace") as f:
        return f.read().strip()


# --- traces ------------------------------------------------------------------

def size_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(where, name))
               for where, _, names in os.walk(path) for name in names)


def sizes(trace):
    events = sum(size_of(os.path.join(trace, part))
                 for part in ("chunks", "index", "manifest.json")
                 if os.path.exists(os.path.join(trace, part)))
    return events, size_of(os.path.join(trace, "files"))


def manifest(trace):
    with open(os.path.join(trace, "manifest.json")) as f:
        return json.load(f)


def check_recording(result, trace, errors):
    if not os.path.exists(os.path.join(trace, "manifest.json")):
        raise Failed("record: " + text_of(errors))
    if result.status != 0:
        raise Failed(f"record: exit status {result.status}: "
                     + text_of(errors)[-200:])
    m = manifest(trace)
    if not m["complete"]:
        raise Failed("record: the trace is incomplete")
    return m


# --- one row -----------------------------------------------------------------

def median(runs, what):
    return statistics.median(getattr(r, what) for r in runs)


def figures(runs):
    return {"wall": round(median(runs, "wall"), 6),
            "wall_min": round(min(r.wall for r in runs), 6),
            "cpu": round(median(runs, "cpu"), 6),
            "peak_bytes": max(r.rss for r in runs)}


class Bench:
    def __init__(self, place, out):
        self.place, self.out = place, out
        self.kept = {}     # "bytes", "events": (amount, row, trace)
        self.costs = None
        self.failed = False

    def emit(self, row):
        self.out.write(json.dumps(row) + "\n")
        self.out.flush()

    def keep(self, name, trace, m):
        """Keep the largest traces for the rows about the other tools."""
        amounts = {"bytes": size_of(os.path.join(trace, "chunks")),
                   "events": m["events"]}
        for what, amount in amounts.items():
            if what in self.kept and self.kept[what][0] >= amount:
                continue
            to = os.path.join(self.place, "kept-" + what)
            shutil.rmtree(to, ignore_errors=True)
            shutil.copytree(trace, to)
            self.kept[what] = (amount, name, to)

    def measure(self, name, argv, where, before=None,
                options=()):
        """Interleave native, record and replay, so that a change of the
        machine's speed meets all three."""
        trace = os.path.join(where, "trace")
        errors = os.path.join(self.place, "errors")
        native, record, replay = [], [], []
        replayed, m = "", {}
        os.chdir(where)
        for _ in range(RUNS):
            if before:
                before()
            native.append(run(argv, errors))
            if native[-1].status != 0:
                raise Failed(f"native: exit status {native[-1].status}: "
                             + text_of(errors)[-200:])
            if before:
                before()
            shutil.rmtree(trace, ignore_errors=True)
            record.append(run([tool("record"), *options, "-o", trace,
                               *argv], errors))
            m = check_recording(record[-1], trace, errors)
            if not replayed:
                replay.append(run([tool("replay"), trace], errors))
                if replay[-1].status != 0:
                    replayed = (text_of(errors).splitlines() or ["failed"])[0]
        self.keep(name, trace, m)
        self.report(name, native, record, replay, replayed, sizes(trace), m)
        shutil.rmtree(trace, ignore_errors=True)

    def report(self, name, native, record, replay, replayed, size, m):
        row = {"type": "bench", "name": name, "runs": RUNS,
               "native": figures(native), "record": figures(record)}
        base = row["native"]["wall"]
        row["record_ratio"] = round(row["record"]["wall"] / base, 2)
        if replayed:
            row["replay_failed"] = replayed
            self.failed = True
        else:
            row["replay"] = figures(replay)
            row["replay_ratio"] = round(row["replay"]["wall"] / base, 2)
        row["trace_bytes"], row["files_bytes"] = size
        row["events"], row["tasks"] = m["events"], m["tasks"]
        row["bytes_per_event"] = round(size[0] / m["events"], 1)
        self.emit(row)
        print(f"{name:<10}{base:>9.3f}{row['record']['wall']:>9.3f}"
              + (f"{row['replay']['wall']:>9.3f}" if not replayed
                 else f"{'-':>9}")
              + f"{row['record_ratio']:>8.1f}"
              + (f"{row['replay_ratio']:>8.1f}" if not replayed
                 else f"{'-':>8}")
              + f"{m['events']:>9}{size[0]:>11}"
              + f"{row['bytes_per_event']:>8.1f}{size[1] / 1e6:>9.1f}",
              flush=True)
        if replayed:
            print(f"{'':<10}not replayed: {replayed}")
        self.explain(name, row)

    def explain(self, name, row):
        """How much of a system call's price are the stops themselves?"""
        if name not in ("stops", "stops-read") or not self.costs:
            return
        c = self.costs
        shares = {}
        for side, parts in (
                ("record", c["syscall_pair"] + 2 * c["getregs"]
                 + (c["read_memory"] if name == "stops-read" else 0)),
                ("replay", c["sysemu_stop"] + c["getregs"] + c["setregs"])):
            if side not in row:
                continue
            extra = (row[side]["wall"] - row["native"]["wall"])
            extra *= 1e9 / STOPPED_CALLS
            shares[side] = {"extra_ns_per_call": round(extra),
                            "primitives_ns": round(parts),
                            "share": round(parts / extra, 2)}
        self.emit({"type": "bench", "name": name + "-explained", **shares})
        print(" " * 10 + "; ".join(
            f"{side}: {s['extra_ns_per_call'] / 1000:.1f} us a call more than "
            f"native, stops and registers {s['primitives_ns'] / 1000:.1f} us "
            f"= {100 * s['share']:.0f}%" for side, s in shares.items()))


# --- workloads ---------------------------------------------------------------

def compile_programs():
    to = os.path.join(BUILD, "bench")
    os.makedirs(to, exist_ok=True)
    for name in ("costs", "compute", "calls", "mutex", "resident",
                 "points"):
        subprocess.run([os.environ["CC"], "-std=gnu11", "-D_GNU_SOURCE", "-O2",
                        "-pthread", "-o", os.path.join(to, name),
                        os.path.join(SOURCE, name + ".c")], check=True)


def program(name):
    return os.path.join(BUILD, "bench", name)


def fresh(bench, name):
    where = os.path.join(bench.place, name)
    os.mkdir(where)
    return where


def row_costs(bench):
    all_runs = []
    for _ in range(RUNS):
        out = subprocess.run([program("costs")], check=True, timeout=LIMIT,
                             stdout=subprocess.PIPE).stdout
        all_runs.append(json.loads(out))
    bench.costs = {p: statistics.median(r[p] for r in all_runs)
                   for p in PRIMITIVES}
    bench.emit({"type": "bench", "name": "costs", "unit": "ns", **bench.costs})
    print("costs     (us) " + ", ".join(
        f"{p} {bench.costs[p] / 1000:.2f}" for p in PRIMITIVES))


def simple(name, argv, options=()):
    def row(bench):
        bench.measure(name, argv, fresh(bench, name), options=options)
    return row


def random_file(path, megabytes):
    with open(path, "wb") as f:
        for _ in range(megabytes):
            f.write(os.urandom(1 << 20))


def copy(bench, name, where):
    random_file(os.path.join(where, "from"), 200)
    bench.measure(name, ["dd", "if=from", "of=to", "bs=64k"], where,
                  lambda: remove(os.path.join(where, "to")))


def remove(path):
    if os.path.exists(path):
        os.unlink(path)


def row_dd(bench):
    where = fresh(bench, "dd")
    copy(bench, "dd", where)
    shutil.rmtree(where)


def has_filesystem(kind):
    with open("/proc/filesystems") as f:
        if kind in f.read().split():
            return True
    return subprocess.run(["modprobe", kind], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def on_loop_device(kind):
    """The same copy on a file system of its own, gone afterwards."""
    def row(bench):
        if os.geteuid() != 0:
            raise Skip("mounting a loop device needs root")
        for need in ("mkfs." + kind, "mount", "umount", "losetup"):
            if not shutil.which(need):
                raise Skip(f"no {need} here")
        if not has_filesystem(kind):
            raise Skip(f"this kernel has no {kind}")
        image = os.path.join(bench.place, kind + ".img")
        where = fresh(bench, "on-" + kind)
        with open(image, "wb") as f:
            f.truncate(3 << 30)
        try:
            quiet = {"check": True, "stdout": subprocess.DEVNULL,
                     "stderr": subprocess.PIPE}
            subprocess.run(["mkfs." + kind, image], **quiet)
            # mount(8) sets up the loop device; umount(8) frees it again.
            subprocess.run(["mount", "-o", "loop", image, where], **quiet)
        except (OSError, subprocess.CalledProcessError) as e:
            reason = getattr(e, "stderr", None) or str(e).encode()
            raise Skip("no loop mount here: "
                       + reason.decode(errors="replace").strip()) from e
        try:
            copy(bench, "dd-" + kind, where)
        finally:
            os.chdir(bench.place)
            unmount(where)
            os.unlink(image)
    return row


def unmount(where):
    for _ in range(20):
        if subprocess.run(["umount", where], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0:
            return
        time.sleep(0.25)
    # Detach from the tree now; the device goes with its last user.
    subprocess.run(["umount", "-l", where], check=False)


def c_file(number, functions):
    lines = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>",
             ""]
    for i in range(functions):
        lines += [f"int f{number}_{i}(const char *s, int n)", "{",
                  f"\tint sum = {i};", "\tfor (int k = 0; k < n; k++)",
                  f"\t\tsum = sum * 31 + s[k % (int)strlen(s)] % {i + 2};",
                  "\treturn sum;", "}", ""]
    return "\n".join(lines)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def row_gcc(bench):
    if not shutil.which("gcc"):
        raise Skip("no gcc here")
    where = fresh(bench, "gcc")
    write(os.path.join(where, "one.c"), c_file(0, 60))
    bench.measure("gcc", ["gcc", "-O2", "-c", "one.c"], where)


def project(where, files):
    names = [f"part{i}" for i in range(files)]
    for i, name in enumerate(names):
        write(os.path.join(where, name + ".c"), c_file(i, 8))
    write(os.path.join(where, "main.c"), "int main(void) { return 0; }\n")
    objects = " ".join(n + ".o" for n in [*names, "main"])
    write(os.path.join(where, "Makefile"),
          f"all: {objects}\n\tcc -o all {objects}\n"
          "%.o: %.c\n\tcc -O1 -c -o $@ $<\n")


def make(jobs):
    def row(bench):
        for need in ("make", "cc"):
            if not shutil.which(need):
                raise Skip(f"no {need} here")
        where = fresh(bench, "make-" + jobs)
        project(where, 20)

        def clean():
            for name in os.listdir(where):
                if name.endswith(".o") or name == "all":
                    os.unlink(os.path.join(where, name))
        bench.measure("make" + jobs, ["make", "-s", jobs], where, clean)
    return row


SCRIPT = """
import json
rows = [{'n': i, 'square': i * i, 'name': 'row %d' % i} for i in range(20000)]
text = json.dumps(rows)
print(len(text), sum(r['square'] for r in json.loads(text)) % 1000003)
"""


# --- the other tools ---------------------------------------------------------

def first_event(trace):
    """Seconds until trace-dump has printed its first event."""
    begun = time.monotonic()
    with subprocess.Popen([tool("dump"), "-f", "json", trace],
                          stdout=subprocess.PIPE) as p:
        for line in p.stdout:
            if b'"event":' in line:
                seconds = time.monotonic() - begun
                p.stdout.close()
                return seconds
    raise Failed("trace-dump showed no event")


def tool_row(bench, what, row, trace):
    chunks = size_of(os.path.join(trace, "chunks"))
    total = sum(sizes(trace))
    events = manifest(trace)["events"]
    packed = os.path.join(bench.place, "packed")
    errors = os.path.join(bench.place, "errors")
    result = {"type": "bench", "name": "tools-" + what, "trace": row,
              "events": events, "chunk_bytes": chunks, "bytes": total}
    shown = []
    # dump and its filter read the chunks; the others the stored files too.
    for name, argv, amount in (
            ("dump", [tool("dump"), "-f", "json", trace], chunks),
            ("verify", [tool("verify"), "-q", trace], total),
            ("pack", [tool("pack"), "-q", "--force", "-o", packed, trace],
             total)):
        runs = [run(argv, errors) for _ in range(RUNS)]
        if any(r.status != 0 for r in runs):
            raise Failed(f"trace-{name}: {text_of(errors)[-200:]}")
        wall = median(runs, "wall")
        result[name] = {"wall": round(wall, 6),
                        "bytes_per_second": round(amount / wall),
                        "events_per_second": round(events / wall)}
        shown.append(f"{name} {wall:.3f} s, {amount / wall / 1e6:.1f} MB/s, "
                     f"{events / wall:.0f} events/s")
    result["packed_bytes"] = size_of(packed)
    os.unlink(packed)
    first = statistics.median(first_event(trace) for _ in range(RUNS))
    result["first_event_seconds"] = round(first, 6)
    last = [run([tool("dump"), "-f", "json", "-e", str(events), trace], errors)
            for _ in range(RUNS)]
    result["last_event_seconds"] = round(median(last, "wall"), 6)
    bench.emit(result)
    print(f"tools     trace with most {what} ({row}): {events} events, "
          f"chunks {chunks / 1e6:.2f} MB, all {total / 1e6:.1f} MB, packed "
          f"{result['packed_bytes'] / 1e6:.1f} MB")
    for line in shown:
        print(" " * 10 + line)
    print(f"{'':<10}dump: first event after {1000 * first:.1f} ms, "
          f"only the last event {1000 * result['last_event_seconds']:.1f} ms")


def row_tools(bench):
    if not bench.kept:  # BENCH_ONLY=tools
        simple("getppid", [program("calls"), "getppid", str(CALLS)])(bench)
    done = set()
    for what in ("bytes", "events"):
        _, row, trace = bench.kept[what]
        if row not in done:
            tool_row(bench, what, row, trace)
        done.add(row)


def long_trace(base, to, *action):
    shutil.rmtree(to, ignore_errors=True)
    subprocess.run([os.path.join(BUILD, "tests", "alter"), base, to, *action],
                   check=True)


def row_diff(bench):
    """trace-diff of two traces of a million events each."""
    where = fresh(bench, "diff")
    base, a, b, c = (os.path.join(where, n) for n in ("base", "a", "b", "c"))
    errors = os.path.join(bench.place, "errors")
    result = run([tool("record"), "-o", base, program("calls"), "read", "10"],
                 errors)
    check_recording(result, base, errors)
    with subprocess.Popen([tool("dump"), "-f", "json", "-s", "read", base],
                          stdout=subprocess.PIPE) as p:
        last = json.loads(p.stdout.read().splitlines()[-1])["event"]
    long_trace(base, a, "copies", str(last), "1000000", "0")
    long_trace(base, b, "copies", str(last), "1000000", "1000")
    # Of b, 300000 events are not there.
    long_trace(base, c, "copies", str(last), "700000", "1000")
    row = {"type": "bench", "name": "diff", "events": manifest(a)["events"]}
    for name, left, right, status in (("same", a, a, 0), ("changed", a, b, 1),
                                      ("missing", b, c, 1)):
        runs = [run([tool("diff"), "-f", "text", "-n", "1", left, right],
                    errors) for _ in range(RUNS)]
        if any(r.status != status for r in runs):
            raise Failed(f"trace-diff {name}: " + text_of(errors)[-200:])
        row[name] = {"wall": round(median(runs, "wall"), 6),
                     "rss": max(r.rss for r in runs)}
        print(f"{'diff':<10}two traces of {row['events']} events, {name}: "
              f"{row[name]['wall']:.2f} s, "
              f"{row[name]['rss'] / 1e6:.1f} MB of memory", flush=True)
    bench.emit(row)
    shutil.rmtree(where)


def states(trace):
    with subprocess.Popen([tool("dump"), "-f", "json", "-T", "state", trace],
                          stdout=subprocess.PIPE) as p:
        return sum(b'"root"' in line for line in p.stdout)


def row_digest(bench):
    """State digests of a process with a gigabyte of memory that writes a
    megabyte of it every 10 ms, pages anywhere or always the same ones: what
    they cost, in time and in the trace, and how fast the gigabyte is read and
    hashed at the end."""
    where = fresh(bench, "digest")
    errors = os.path.join(bench.place, "errors")
    argv = [program("resident"), "1024", "100"]
    runs = {"native": [], "off": [], "exit": [], "10ms": [],
            "native_same": [], "same": []}
    bytes_of, states_of = {}, {}
    for _ in range(RUNS):
        runs["native"].append(run(argv, errors))
        for when in ("off", "exit", "10ms"):
            trace = os.path.join(where, when)
            shutil.rmtree(trace, ignore_errors=True)
            runs[when].append(run([tool("record"), "--digest=" + when, "-o",
                                   trace, *argv], errors))
            check_recording(runs[when][-1], trace, errors)
            bytes_of[when] = size_of(os.path.join(trace, "chunks"))
            states_of[when] = states(trace)
        runs["native_same"].append(run([*argv, "same"], errors))
        trace = os.path.join(where, "same")
        shutil.rmtree(trace, ignore_errors=True)
        runs["same"].append(run([tool("record"), "--digest=10ms", "-o", trace,
                                 *argv, "same"], errors))
        check_recording(runs["same"][-1], trace, errors)
    replay = [run([tool("replay"), os.path.join(where, "10ms")], errors)
              for _ in range(RUNS)]
    if any(r.status != 0 for r in replay):
        raise Failed("replay: " + text_of(errors)[-200:])
    wall = {k: median(r, "wall") for k, r in runs.items()}
    row = {"type": "bench", "name": "digest", "runs": RUNS,
           **{k: figures(r) for k, r in runs.items()},
           "replay": figures(replay),
           "record_ratio": round(wall["10ms"] / wall["native"], 2),
           "same_ratio": round(wall["same"] / wall["native_same"], 2),
           "replay_ratio": round(median(replay, "wall") / wall["native"], 2),
           "states": states_of["10ms"],
           "bytes_per_digest": round((bytes_of["10ms"] - bytes_of["off"]) /
                                     states_of["10ms"], 1),
           "gb_per_s": round(2 ** 30 / 1e9 /
                             max(wall["exit"] - wall["off"], 1e-3), 2)}
    print(f"digest    native {wall['native']:.2f} s, recorded with 10ms "
          f"{row['record_ratio']:.2f}, with the same pages written again "
          f"{row['same_ratio']:.2f}, replayed {row['replay_ratio']:.2f}; "
          f"{row['states']} states of {row['bytes_per_digest']:.0f} bytes; "
          f"1 GB at {row['gb_per_s']:.1f} GB/s", flush=True)
    bench.emit(row)
    shutil.rmtree(where)


def points(trace):
    """Microseconds that recording each point of a trace took."""
    out = subprocess.run([tool("dump"), "-f", "json", "-T", "async", trace],
                         check=True, stdout=subprocess.PIPE).stdout
    events = (json.loads(line) for line in out.splitlines())
    return [e["duration"] / 1000 for e in events if e["type"] == "async"]


def pass_cost(where, errors):
    """Nanoseconds of CPU time that a probe adds to each pass of a loop: in a
    recording of some seconds with one point, which is at its end."""
    trace = os.path.join(where, "once")
    shutil.rmtree(trace, ignore_errors=True)
    subprocess.run([tool("record"), "-q", "-o", trace, program("points"),
                    "once", "2000"], check=True, stdout=subprocess.DEVNULL)
    replayed = run([tool("replay"), trace], errors)
    if replayed.status != 0:
        raise Failed("replay: " + text_of(errors)[-200:])
    passes = subprocess.run([tool("replay"), "-q", trace], check=True,
                            stdout=subprocess.PIPE).stdout.strip()
    native = run([program("points"), "pass", passes.decode()], errors)
    return (replayed.cpu - native.cpu) / int(passes) * 1e9


def row_points(bench):
    """What a point costs when it is recorded, by the size of the process, and
    a pass of the instruction where replay looks for one."""
    where = fresh(bench, "points")
    errors = os.path.join(bench.place, "errors")
    row = {"type": "bench", "name": "points", "runs": RUNS,
           "pass_ns": round(statistics.median(pass_cost(where, errors)
                                              for _ in range(RUNS)), 2)}
    for megabytes in (1, 100, 1024):
        trace = os.path.join(where, str(megabytes))
        check_recording(run([tool("record"), "-o", trace, program("points"),
                             "resident", str(megabytes)], errors),
                        trace, errors)
        took = points(trace)
        row[f"{megabytes}mb"] = {"points": len(took),
                                 "first_us": round(took[0]),
                                 "median_us": round(statistics.median(took))}
    bench.emit(row)
    print(f"points    a pass of a probe {row['pass_ns']:.1f} ns; recording one: "
          + ", ".join(f"{m} MB {row[f'{m}mb']['median_us'] / 1000:.1f} ms "
                      f"(first {row[f'{m}mb']['first_us'] / 1000:.1f})"
                      for m in (1, 100, 1024)), flush=True)
    shutil.rmtree(where)


LOOP = "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i + 1)); done"

# --- trace-pack against tar and cp -------------------------------------------

def synced(path, *argv):
    """As trace-pack does: what was written is on the disk at the end."""
    return ["sh", "-c", '"$@" && sync -f "$0"', path, *argv]


def pack_steps(trace, parent, name):
    """What is compared: (step, command), each with its peer before it."""
    return (
        ("tar", synced("tar", "tar", "-C", parent, "-cf", "tar", name)),
        ("pack", [tool("pack"), "-q", "--force", "-o", "packed", trace]),
        ("tar --zstd", synced("tar.zst", "tar", "-C", parent, "--zstd",
                              "-cf", "tar.zst", name)),
        ("pack --compress=zstd", [tool("pack"), "-q", "--force", "-o",
                                  "packed.zst", trace]),
        ("cp --reflink", synced("copied", "cp", "-r", "--reflink=auto", trace,
                                "copied")),
        ("tar -x", synced("untarred", "tar", "-C", "untarred", "-xf", "tar")),
        ("unpack", [tool("pack"), "-q", "-x", "packed", "-C", "unpacked"]),
    )


def time_steps(trace, total):
    """Median wall seconds and bytes a second of each step."""
    times = {}
    for _ in range(RUNS):
        for place in ("copied", "untarred", "unpacked"):
            shutil.rmtree(place, ignore_errors=True)
        os.mkdir("untarred")
        for step, argv in pack_steps(trace, os.path.dirname(trace),
                                     os.path.basename(trace)):
            r = run(argv, "errors")
            if r.status != 0:
                raise Failed(f"{step}: {text_of('errors')[-200:]}")
            times.setdefault(step, []).append(r.wall)
    return {step: {"wall": round(statistics.median(w), 6),
                   "bytes_per_second": round(total /
                                             statistics.median(w))}
            for step, w in times.items()}


def pack_to(archive, *argv):
    subprocess.run([tool("pack"), "-q", "--force", *argv, "-o", archive],
                   check=True, stderr=subprocess.DEVNULL)
    return size_of(archive)


def row_pack(bench):
    """One trace with large stored files, and ten of one program."""
    place = os.path.join(bench.place, "packs")
    os.mkdir(place)
    os.chdir(place)
    traces = [os.path.join(place, f"t{n}") for n in range(10)]
    for trace in traces:
        if run([tool("record"), "-q", "-o", trace, sys.executable, "-c",
                "import json, ssl, sqlite3"], "errors").status != 0:
            raise Failed(text_of("errors")[-200:])
    total = sum(sizes(traces[0]))
    result = {"type": "bench", "name": "pack", "bytes": total,
              "steps": time_steps(traces[0], total)}
    with open("have", "wb") as f:
        subprocess.run([tool("pack"), "--have", traces[1]], check=True,
                       stdout=f)
    result["packed_bytes"] = pack_to("one", traces[0])
    result["packed_without_have_bytes"] = pack_to(
        "less", "--exclude-have", "have", traces[0])
    result["packed_ten_bytes"] = pack_to("ten", *traces)
    bench.emit(result)
    for step, r in result["steps"].items():
        print(f"{'pack':<10}{step:<22}{r['wall']:8.3f} s "
              f"{r['bytes_per_second'] / 1e6:9.1f} MB/s")
    print(f"{'':<10}one trace {result['packed_bytes'] / 1e6:.2f} MB, without "
          f"what the receiver has "
          f"{result['packed_without_have_bytes'] / 1e6:.2f} MB, ten traces "
          f"{result['packed_ten_bytes'] / 1e6:.2f} MB")
    shutil.rmtree(place)


ROWS = {
    "costs": row_costs,
    "true": simple("true", ["true"]),
    "fork100": simple("fork100", ["sh", "-c", LOOP]),
    "compute": simple("compute", [program("compute")]),
    "getppid": simple("getppid", [program("calls"), "getppid", str(CALLS)]),
    "read": simple("read", [program("calls"), "read", str(CALLS)]),
    "stops": simple("stops", [program("calls"), "getppid",
                              str(STOPPED_CALLS)], ("--no-intercept",)),
    "stops-read": simple("stops-read", [program("calls"), "read",
                                        str(STOPPED_CALLS)],
                         ("--no-intercept",)),
    "clock": simple("clock", [program("calls"), "clock", str(CALLS)]),
    "write-2g": simple("write-2g", [program("calls"), "write", "32768"]),
    "tar": simple("tar", ["sh", "-c",
                          "tar cf - /usr/share/doc | cat >/dev/null"]),
    "dd": row_dd,
    "dd-btrfs": on_loop_device("btrfs"),
    "dd-xfs": on_loop_device("xfs"),
    "gcc": row_gcc,
    "make-j1": make("-j1"),
    "make-j2": make("-j2"),
    "python": simple("python", [sys.executable, "-c", SCRIPT]),
    "mutex": simple("mutex", [program("mutex")]),
    "alarm": simple("alarm", [program("points"), "alarm"]),
    "spin": simple("spin", [program("points"), "spin"]),
    "points": row_points,
    "tools": row_tools,
    "pack": row_pack,
    "diff": row_diff,
    "digest": row_digest,
}


# --- the machine -------------------------------------------------------------

def cpu_model():
    with open("/proc/cpuinfo") as f:
        lines = f.read().splitlines()
    model = [x.split(":", 1)[1].strip() for x in lines
             if x.startswith("model name")]
    flags = next((x for x in lines if x.startswith("flags")), "").split()
    return (model or ["unknown"])[0], "hypervisor" in flags


def hypervisor(flagged):
    if shutil.which("systemd-detect-virt"):
        out = subprocess.run(["systemd-detect-virt", "--vm"], check=False,
                             text=True, stdout=subprocess.PIPE).stdout.strip()
        if out and out != "none":
            return out + " (systemd-detect-virt)"
    return "yes, of unknown kind" if flagged else "none seen"


def filesystem(path):
    """Its type by the mount that `path` is on: statfs(2) cannot tell ext4
    from ext2."""
    device = os.stat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo") as f:
        for line in f:
            if line.split()[2] == number:
                return line.split(" - ", 1)[1].split()[0]
    return "unknown"


def machine(place):
    model, flagged = cpu_model()
    version = subprocess.run([tool("record"), "--version"], check=True,
                             text=True, stdout=subprocess.PIPE).stdout.strip()
    return {"type": "machine", "cpu": model,
            "cores": len(os.sched_getaffinity(0)),
            "kernel": os.uname().release, "hypervisor": hypervisor(flagged),
            "filesystem": filesystem(place), "load": os.getloadavg()[0],
            "nice": os.nice(0), "runs": RUNS, "tool": version,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def print_machine(m):
    print(f"{m['cpu']}, {m['cores']} cores, Linux {m['kernel']}, "
          f"hypervisor: {m['hypervisor']}, {m['filesystem']}, "
          f"medians of {RUNS}, load {m['load']:.1f} at the start"
          + (f", nice {m['nice']}" if m["nice"] else ""))
    if m["load"] > m["cores"] / 2:
        print("bench: other programs are running here: the figures will be "
              "worse than the tools are", file=sys.stderr)
    print(f"\n{'':<10}{'native':>9}{'record':>9}{'replay':>9}{'rec':>8}"
          f"{'rep':>8}{'events':>9}{'trace':>11}{'bytes/':>8}{'files':>9}")
    print(f"{'':<10}{'s':>9}{'s':>9}{'s':>9}{'ratio':>8}{'ratio':>8}"
          f"{'':>9}{'bytes':>11}{'event':>8}{'MB':>9}")


def one_row(bench, name):
    try:
        ROWS[name](bench)
    except Skip as e:
        bench.emit({"type": "bench", "name": name, "skipped": str(e)})
        print(f"{name:<10}skipped: {e}", flush=True)
    except (Failed, OSError, subprocess.SubprocessError) as e:
        bench.failed = True
        why = str(e) or ("not done after %d s" % LIMIT
                         if isinstance(e, TimeoutError) else repr(e))
        bench.emit({"type": "bench", "name": name, "failed": why})
        print(f"{name:<10}failed: {why}", flush=True)
    finally:
        os.chdir(bench.place)


def main():
    unknown = [n for n in ONLY if n not in ROWS]
    if unknown or RUNS < 1:
        print(f"bench: no such row: {', '.join(unknown)} (there are: "
              f"{', '.join(ROWS)})" if unknown
              else "bench: BENCH_RUNS must be at least 1", file=sys.stderr)
        return 2
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        os.environ.pop(name, None)  # ours is no part of the make rows
    os.environ["LC_ALL"] = "C"
    signal.signal(signal.SIGALRM, expire)
    # So that `finally` runs, and nothing stays mounted, when we are ended.
    for s in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, lambda *_: sys.exit(2))
    compile_programs()
    place = tempfile.mkdtemp(prefix="bench-", dir=BUILD)
    os.environ["XDG_CACHE_HOME"] = os.path.join(place, "cache")
    try:
        with open(os.path.join(BUILD, "bench.json"), "w") as out:
            bench = Bench(place, out)
            m = machine(place)
            bench.emit(m)
            print_machine(m)
            for name in ROWS:
                if not ONLY or name in ONLY:
                    one_row(bench, name)
    finally:
        os.chdir(BUILD)
        shutil.rmtree(place, ignore_errors=True)
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
