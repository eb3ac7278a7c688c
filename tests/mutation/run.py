#!/usr/bin/env python3
"""Plants bugs, one at a time, and tells which of them the tests notice. README.md describes the entries.

run.py builds a copy of the working tree with all bugs behind a switch, runs each area's tests without a bug, and then with
each bug. A bug is killed if a test program fails, crashes or takes too long. Results stay in the build folder, so a run can
be done in parts: --only, --survivors."""
import argparse
import filecmp
import fnmatch
import json
import os
import pathlib
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path("tests/mutation")
PAGE = ROOT / "docs/testing.md"
BEGIN, END = "<!-- the last mutation run: written by tests/mutation/run.py --write-docs -->", "<!-- end -->"

# Test programs of an area. {tests}: the folder tests; what names {data} needs the golden data.
AREAS = {
    "runtime": ["runtime_test", "module_test", "thread_pool_test", "corpus_test"],
    "kernels": ["kernels_functions_test", "kernels_portable_test", "kernels_layers_test", "kernels_programs_test", "exporter_nn_test",
                "op_goldens --known {tests}/golden/known_special.txt {tests}/golden/special_values.jsonl {tests}/golden/resampling_cases.jsonl "
                "{tests}/golden/function_cases.jsonl",
                "op_goldens {tests}/data/golden/ops.jsonl",
                "op_goldens --known {tests}/golden/known_eager.txt --in-double {tests}/golden/in_double.safetensors {data}/ops"],
    "optimized": ["optimized_kernels_test", "kernels_portable_test", "kernels_layers_test", "kernels_programs_test"],
    "eager": ["eager_test", "exporter_trace_test"],
    "ir": ["exporter_dim_test", "exporter_ir_test", "exporter_trace_test", "exporter_passes_test"],
    "trace": ["exporter_trace_test"],
    "passes": ["exporter_passes_test", "exporter_ir_test"],
    "emit": ["exporter_memory_plan_test", "exporter_emit_test"],
    "importers": ["exporter_pt2_test", "pt2_goldens {tests}/data/pt2",
                  "pt2_goldens --known {tests}/exporter/importers/known.txt {data}/pt2"],
    "io": ["exporter_io_test"],
    "nn": ["exporter_nn_test"],
    "optim": ["exporter_optim_test"],
    "data": ["exporter_data_test"],
    "compare": ["exporter_compare_test"],
    "cli": ["exporter_cli_test", "exporter_roofline_test"],
}
TIERS = {"runtime": "runtime", "kernels": "kernels", "exporter": "exporter"}


class Failure(Exception):
    pass


class Mutation:
    def __init__(self, tier, name, areas, file):
        self.tier, self.name, self.areas, self.file = tier, name, areas, file
        self.old, self.new, self.equivalent = [], [], ""

    @property
    def number(self):
        """Stays when others come or go, so that little is compiled again."""
        return zlib.crc32(self.name.encode()) & 0x7FFFFFFF

    def programs(self):
        return list(dict.fromkeys(p for area in self.areas for p in AREAS[area]))

    def replacement(self):
        return "\n".join(self.new).replace("PLANTED", f"::taper_planted({self.number})")


# ---- entries ----

def read_entries():
    mutations = []
    for tier in TIERS:
        path, current = ROOT / HERE / f"{tier}.txt", None
        for at, line in enumerate(path.read_text().split("\n"), 1):
            where = f"{path.name}:{at}"
            if line.startswith("["):
                name, _, areas = line[1:].partition("]")
                current = Mutation(tier, name, areas.split(), None)
                mutations.append(current)
                if unknown := [a for a in current.areas if a not in AREAS] or (not current.areas and ["(none)"]):
                    raise Failure(f"{where}: unknown area {', '.join(unknown)}")
            elif not line or line.startswith("#"):
                continue
            elif current is None:
                raise Failure(f"{where}: expected [NAME] AREA…")
            elif line.startswith("- ") or line == "-":
                current.old.append(line[2:])
            elif line.startswith("+ ") or line == "+":
                current.new.append(line[2:])
            elif line.startswith("equivalent: "):
                current.equivalent = line.removeprefix("equivalent: ")
            elif current.file is None:
                current.file = line
            else:
                raise Failure(f"{where}: neither -, + nor equivalent")
    names = [m.name for m in mutations]
    if double := {n for n in names if names.count(n) > 1}:
        raise Failure(f"two entries are called {', '.join(sorted(double))}")
    return mutations


def planted(file, text, mutations):
    """The text with all bugs of the file."""
    places = []
    for m in mutations:
        old = "\n".join(m.old)
        if not old or text.count(old) != 1:
            raise Failure(f"{m.name}: in {file} its old text occurs {text.count(old) if old else 0} times, not once")
        if "PLANTED" not in "\n".join(m.new):
            raise Failure(f"{m.name}: its new text has no PLANTED")
        places.append((text.index(old), len(old), m))
    places.sort(key=lambda place: place[0])
    result, at = "", 0
    for start, length, m in places:
        if start < at:
            raise Failure(f"{m.name}: its old text overlaps that of another entry")
        result += text[at:start] + m.replacement()
        at = start + length
    return f'#include "taper/{HERE}/planted.h"\n#line 1\n' + result + text[at:]


def planted_files(mutations):
    """{file: text}; tells all that does not fit."""
    files, failures = {}, []
    for file in sorted({m.file for m in mutations}):
        try:
            if not (ROOT / file).is_file():
                raise Failure(f"there is no {file}")
            files[file] = planted(file, (ROOT / file).read_text(), [m for m in mutations if m.file == file])
        except Failure as failure:
            failures.append(str(failure))
    if failures:
        raise Failure("\n".join(failures))
    return files


# ---- build ----

def copy_tree(tree, mutations):
    """The working tree, with the bugs. Files that did not change keep their time."""
    files = planted_files(mutations)
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    names = {n for n in listed.stdout.split("\0") if n and (ROOT / n).is_file()}
    for name in sorted(names):
        to = tree / name
        to.parent.mkdir(parents=True, exist_ok=True)
        if name in files:
            if not to.exists() or to.read_text() != files[name]:
                to.write_text(files[name])
        elif not to.exists() or not filecmp.cmp(ROOT / name, to, shallow=False):
            shutil.copy(ROOT / name, to)
    for path in sorted(tree.rglob("*"), reverse=True):
        if path.is_file() and str(path.relative_to(tree)) not in names:
            path.unlink()


def build(folder, mutations, chosen, jobs):
    """All bugs of `mutations`, and the test programs of the chosen ones."""
    tree, out = folder / "tree", folder / "build"
    copy_tree(tree, mutations)
    subprocess.run(["cmake", "--preset", "release", "-B", out, "-DTAPER_GOLDEN_DATA="], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    programs = {p.split()[0] for m in chosen for p in m.programs()}
    known = subprocess.run(["ninja", "-C", out, "-t", "targets", "all"], check=True, capture_output=True, text=True).stdout
    if missing := sorted(p for p in programs if f"\n{p}: " not in known):
        raise Failure(f"nothing builds {', '.join(missing)}")
    subprocess.run(["ninja", "-k0", "-C", out, f"-j{jobs}", *sorted(programs)], check=True)


# ---- run ----

def golden_data():
    folder = pathlib.Path(os.environ.get("TAPER_DATA", ROOT / "../shared/data"))
    return folder.resolve() if folder.is_dir() else None


class Runner:
    def __init__(self, folder):
        self.bin, self.tests = folder / "build/bin", folder / "tree/tests"
        self.clean = {}  # seconds without a bug, of (program, with data)

    def run(self, program, number, data, limit):
        """(whether it passes, what is wrong, seconds). Seconds of processors: others may use the machine, too."""
        words = shlex.split(program.format(tests=self.tests, data=data))
        command = [str(self.bin / words[0]), *words[1:]]
        if words[0].endswith("_test"):
            command += ["--gtest_fail_fast", "--gtest_brief=1"]
        environment = os.environ | {"TAPER_PLANTED": str(number), "TAPER_DATA": str(data or "/nowhere")}
        begin = seconds_of_children()
        with tempfile.TemporaryDirectory() as scratch:
            try:
                done = subprocess.run(command, cwd=scratch, env=environment | {"TMPDIR": scratch}, timeout=60 + 10 * limit, text=True,
                                      errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=lambda: bounded(limit))
                code = done.returncode
            except subprocess.TimeoutExpired:  # waits for what does not come
                code = -signal.SIGXCPU
        seconds = seconds_of_children() - begin
        if code == 0:
            return True, "", seconds
        if code == -signal.SIGXCPU:
            return False, f"{words[0]} takes more than {limit:.0f} s", seconds
        failed = [line.split("]")[1].split(",")[0].split("(")[0].strip() for line in done.stdout.split("\n") if line.startswith("[  FAILED  ]")]
        how = failed[0] if failed else f"signal {-code}" if code < 0 else f"exit {code}"
        return False, f"{words[0]}: {how}", seconds

    def programs(self, mutation, data):
        return [p for p in mutation.programs() if data or "{data}" not in p]

    def run_clean(self, mutations, data):
        for program in dict.fromkeys(p for m in mutations for p in self.programs(m, data)):
            if (program, bool(data)) in self.clean:
                continue
            passes, why, seconds = self.run(program, 0, data, 1800)
            if not passes:
                raise Failure(f"without a bug {why} fails")
            self.clean[program, bool(data)] = seconds
            print(f"  {seconds:6.1f} s  {program}{' with data' if data else ''}", flush=True)

    def killer(self, mutation, data):
        """What notices the bug; "": nothing."""
        seconds = {p: self.clean[p, bool(data)] for p in self.programs(mutation, data)}
        for program in sorted(seconds, key=seconds.get):
            passes, why, _ = self.run(program, mutation.number, data, 10 + 5 * seconds[program])
            if not passes:
                return why
        return ""


def seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def bounded(seconds):
    """Ends the process after these seconds of processors. If a bug takes all memory, it is this process that the system ends."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    try:
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        pass


def merge(stored, results):
    """Into the file, in which another run may have written."""
    before = json.loads(stored.read_text()) if stored.exists() else {}
    stored.write_text(json.dumps(before | results, indent=1, sort_keys=True))


def run(folder, mutations, data, results, save):
    runner = Runner(folder)
    todo = [m for m in mutations if not m.equivalent]
    print("without a bug:", flush=True)
    runner.run_clean(todo, None)
    for k, m in enumerate(todo, 1):
        killer = runner.killer(m, None)
        if not killer and data:
            runner.run_clean([m], data)
            with_data = runner.killer(m, data)
        else:
            with_data = ""
        results[m.name] = {"killed": killer, "with data": with_data, "data": bool(data)}
        save(m.name)
        verdict = f"killed    {m.name}  {killer}" if killer else f"with data {m.name}  {with_data}" if with_data else f"SURVIVED  {m.name}"
        print(f"[{k}/{len(todo)}] {verdict}", flush=True)


# ---- report ----

def table(mutations, results):
    """Lines of a table in Markdown, and the survivors."""
    lines = ["| part | planted | harmless | killed by a clone alone | killed with PyTorch's data | not noticed |", "| --- | --- | --- | --- | --- | --- |"]
    survivors, sums = [], [0] * 5
    for tier in TIERS:
        all_ = [m for m in mutations if m.tier == tier]
        known = [(m, results[m.name]) for m in all_ if m.name in results and not m.equivalent]
        harmless = sum(bool(m.equivalent) for m in all_)
        alone = sum(bool(r["killed"]) for _, r in known)
        either = sum(bool(r["killed"] or r["with data"]) for _, r in known)
        survivors += [m for m, r in known if not r["killed"] and not r["with data"]]
        row = [len(known) + harmless, harmless, alone, either, len(known) - either]
        sums = [a + b for a, b in zip(sums, row)]
        lines.append(f"| {tier} | " + " | ".join(map(str, row)) + " |")
    harmful = max(sums[0] - sums[1], 1)
    share = lambda n: f"{n} ({100 * n / harmful:.0f} %)"
    lines.append(f"| all | {sums[0]} | {sums[1]} | {share(sums[2])} | {share(sums[3])} | {sums[4]} |")
    return lines, survivors


def write_docs(mutations, results):
    lines, survivors = table(mutations, results)
    not_run = [m for m in mutations if m.name not in results and not m.equivalent]
    if survivors:
        lines += ["", "Not noticed: " + ", ".join(f"`{m.name}`" for m in survivors) + "."]
    if not_run:
        lines += ["", f"Not run: {len(not_run)} bugs."]
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + rest[rest.index(END):])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/mutation", help="the folder to build in")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at once")
    parser.add_argument("--only", action="append", help="bugs to run: names, areas or tiers, * and ? allowed")
    parser.add_argument("--survivors", action="store_true", help="run what no test of a clone noticed the last time, and what is new")
    parser.add_argument("--without-data", action="store_true", help="do not use PyTorch's data")
    parser.add_argument("--no-build", action="store_true", help="use what was built")
    parser.add_argument("--build-only", action="store_true", help="build, and run nothing")
    parser.add_argument("--list", action="store_true", help="print the bugs")
    parser.add_argument("--check", action="store_true", help="only test that every bug fits its source")
    parser.add_argument("--write-docs", action="store_true", help="put the results into docs/testing.md")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)

    mutations = read_entries()
    planted_files(mutations)
    if arguments.check:
        print(f"{len(mutations)} bugs fit their sources")
        return 0
    stored = arguments.build / "results.json"
    results = json.loads(stored.read_text()) if stored.exists() else {}
    chosen = mutations
    if arguments.only:
        chosen = [m for m in mutations
                  if any(fnmatch.fnmatch(name, p) for p in arguments.only for name in (m.name, m.tier, m.file, *m.areas))]
        if not chosen:
            parser.error(f"no bug fits {' '.join(arguments.only)}; --list shows names, files and areas")
    if arguments.survivors:
        chosen = [m for m in chosen if not results.get(m.name, {}).get("killed")]
    if arguments.list:
        for m in chosen:
            print(f"{m.name:45} {m.file}  {' '.join(m.areas)}  {m.number}{'  equivalent' if m.equivalent else ''}")
        return 0
    if not arguments.write_docs:
        arguments.build.mkdir(parents=True, exist_ok=True)
        if not arguments.no_build:
            build(arguments.build, mutations, chosen, arguments.jobs)
        if arguments.build_only:
            return 0
        run(arguments.build, chosen, None if arguments.without_data else golden_data(), results,
            lambda name: merge(stored, {name: results[name]}))
    lines, survivors = table(mutations, results)
    print("\n".join(lines))
    for m in survivors:
        print(f"survived: {m.name} ({m.file})")
    if arguments.write_docs:
        write_docs(mutations, results)
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except Failure as failure:
        print(failure, file=sys.stderr)
        raise SystemExit(1)
