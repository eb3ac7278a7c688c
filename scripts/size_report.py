#!/usr/bin/env python3
"""Prints what the runtime, each kernel and whole kernel libraries cost in a firmware:

    size_report.py BUILD_FOLDER [--limit BYTES] [--page FILE.md] [--kernels FILE.md] [--selective NAME=KERNELS.cpp]…
        [--model-limit BYTES] [--also COMPILER=FOLDER]…

Links what a root reaches (`ld --gc-sections`) from the archives of BUILD_FOLDER (preset `device`), with nothing of libc and
libm, and adds up code and data. The runtime is every function of its library (Program, Session, Method, the verifier) without
any kernel; a kernel is what its record reaches, so that what kernels share is counted with each; a selective build is the
runtime with the kernels of a table that `taper export --kernels` wrote. Fails if the runtime exceeds its limit, or a selective
build that of models.
"""
import argparse
import re
import subprocess
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"size_report: {command[0]} failed:\n{done.stderr}")
    return done.stdout


def symbols(archive):
    """(bytes, kind, name) of the global functions and constants that an archive defines."""
    lines = run("nm", "--defined-only", "--extern-only", "--print-size", str(archive)).splitlines()
    return [(int(fields[1], 16), fields[2], fields[3]) for fields in map(str.split, lines) if len(fields) == 4]


def linked_size(archives, roots):
    """Bytes of text and data that `roots` reach."""
    with tempfile.TemporaryDirectory() as folder:
        out, roots_file = folder + "/linked", Path(folder) / "roots"
        roots_file.write_text("".join(f"--undefined={root}\n" for root in roots))
        run("ld", "--gc-sections", "--strip-all", "--unresolved-symbols=ignore-all", "--entry=0", "-z", "norelro",
            f"@{roots_file}", "-o", out, "--start-group", *map(str, archives), "--end-group")
        text, data = run("size", out).splitlines()[1].split()[:2]
        return int(text) + int(data)


def runtime_of(build):
    """Archives and roots: every function that the runtime's library has for others."""
    archives = [build / "lib/libtaper_runtime.a", build / "lib/libtaper_runtime_core.a"]
    return archives, [name for _, kind, name in symbols(archives[0]) if kind == "T"]


def symbol_of(library, record):
    """The mangled name of a record."""
    return f"_ZN5taper{len(library)}{library}{len(record)}{record}E"


def kernel_records(build):
    """{archive: {record: mangled name}}, of the kernel libraries that were built. The build lists the records in kernels.def."""
    libraries = {}
    for archive in sorted((build / "lib").glob("libtaper_kernels_*.a")):
        library = archive.stem.removeprefix("libtaper_kernels_")
        listed = (build / f"generated/taper/kernels/{library}/kernels.def").read_text()
        records = re.findall(r"TAPER_KERNEL_NAME\((\w+)\)", listed)
        mangled = {record: symbol_of(library, record) for record in records}
        if missing := set(mangled.values()) - {symbol for _, _, symbol in symbols(archive)}:
            raise SystemExit(f"size_report: {archive} lacks {min(missing)}: build it again")
        libraries[archive] = mangled
    return libraries


def operator_of(record, operators):
    """The longest row identifier that the record's name begins with, and the rest: dtypes and CPU level."""
    parts = record.split("_")
    for n in range(len(parts), 0, -1):
        if "_".join(parts[:n]) in operators:
            return "_".join(parts[:n]), "_".join(parts[n:])
    return record, ""


def kernel_table(by_operator):
    """A line for each dtype of an operator, with a column for each CPU level. `by_operator` is {operator: [(variant, bytes)]}."""
    levels = ["", "avx2", "avx512"]
    lines = ["", "| operator | dtypes | bytes | with AVX2 | with AVX-512 |", "| --- | --- | ---: | ---: | ---: |"]
    for operator, records in sorted(by_operator.items()):
        by_dtypes = defaultdict(dict)
        for variant, size in sorted(records):
            dtypes, _, level = variant.rpartition("_")
            dtypes, level = (dtypes, level) if level in levels else (variant, "")
            by_dtypes[dtypes][level] = size
        for dtypes, sizes in sorted(by_dtypes.items()):
            cells = [f"{sizes[level]:,}" if level in sizes else "" for level in levels]
            lines.append(f"| `{operator}` | {dtypes} | " + " | ".join(cells) + " |")
    return lines


def write_kernel_table(path, sizes):
    """Every kernel, in Markdown. `sizes` is {record: bytes}."""
    operators = set(re.findall(r"TAPER_OP\((\w+),", (ROOT / "kernels/operators.def").read_text()))
    by_operator = defaultdict(list)
    for record, size in sizes.items():
        operator, variant = operator_of(record, operators)
        by_operator[operator].append((variant, size))
    path.write_text("\n".join(["# Sizes of all kernels", *kernel_table(by_operator)]) + "\n")


@dataclass
class Measured:
    """What the page shows."""
    runtimes: list  # (compiler, bytes)
    models: list  # (name, number of kernels, bytes with the runtime)
    libraries: list  # (name, {record: bytes}, bytes of all together)


def too_large(measured, limit, model_limit):
    """A line for each build of the first compiler that reaches its limit; None: there is no limit."""
    builds = [("the runtime", measured.runtimes[0][1], limit)]
    builds += [(f"the runtime with the kernels of {name}", size, model_limit) for name, _, size in measured.models]
    return [f"{name} exceeds {limit:,} bytes" for name, size, limit in builds if limit is not None and size >= limit]


def page_of(measured):
    """docs/sizes.md"""
    lines = [
        "# Sizes", "",
        "`scripts/sizes.sh` measured these bytes of code and constants, and wrote this page. They are for x86-64, without libc and",
        "libm. The preset `device` builds with plain `-Os`, without the profiler (`TAPER_PROFILE=OFF`) and without tables for",
        "unwinding the stack. `TAPER_MESSAGES` decides about the texts of errors.", "",
        "The runtime with its loader and verifier, without kernels:", "",
        "| compiler | bytes |", "| --- | ---: |"]
    lines += [f"| {compiler} | {size:,} |" for compiler, size in measured.runtimes]
    lines += [
        "", "`.ci/run` refuses more than 41,000 bytes with gcc and 48,000 with clang, without texts.", "",
        "The runtime with the kernels that one model needs (gcc 12, without texts, `taper export --target portable --kernels`). *All CPU",
        "levels* has no target: it has optimized kernels for each `TAPER_CPU` level.", "",
        "| model | kernels | bytes |", "| --- | ---: | ---: |"]
    lines += [f"| {name} | {count} | {size:,} |" for name, count, size in measured.models]
    lines += [
        "", "All kernels. Code that kernels share counts once in *together*, and with each kernel in *median* and *largest*:", "",
        "| library | kernels | together | median | largest |", "| --- | ---: | ---: | ---: | --- |"]
    for name, sizes, together in measured.libraries:
        largest = max(sizes, key=sizes.get)
        lines.append(f"| `{name}` | {len(sizes)} | {together:,} | {sorted(sizes.values())[len(sizes) // 2]:,} | "
                     f"`{largest}`, {sizes[largest]:,} |")
    lines += [
        "", "This command measures again. It writes this page, and `build/sizes.md` with a line for every kernel:", "",
        "<!-- test: commands exist -->", "```console", "$ scripts/sizes.sh", "```", "",
        "[running.md](running.md#size-of-an-app) has the sizes of apps for a laptop or a phone."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--limit", type=int, default=40000)
    parser.add_argument("--model-limit", type=int, metavar="BYTES", help="for the runtime with the kernels of a model")
    parser.add_argument("--page", type=Path, help="write the page docs/sizes.md there")
    parser.add_argument("--kernels", type=Path, help="write a table of every kernel's size there, in Markdown")
    parser.add_argument("--also", action="append", default=[], metavar="COMPILER=FOLDER",
                        help="another build, whose runtime is listed too: --also 'clang 14, with texts=build/device-clang'")
    parser.add_argument("--selective", action="append", default=[], metavar="NAME=FILE",
                        help="a model and the kernel table that `taper export --kernels` wrote for it")
    arguments = parser.parse_args()
    runtime, runtime_roots = runtime_of(arguments.build)

    libraries = kernel_records(arguments.build)
    jobs = [(archive, record, symbol) for archive, records in libraries.items() for record, symbol in records.items()]
    with ThreadPoolExecutor() as pool:
        costs = pool.map(lambda job: linked_size([job[0], *runtime], [job[2]]), jobs)
        by_library = defaultdict(dict)  # two libraries may have a record of one name
        for (archive, record, _), size in zip(jobs, costs):
            by_library[archive][record] = size
    sizes = {record: size for records in by_library.values() for record, size in records.items()}

    runtime_bytes = linked_size(runtime, runtime_roots)
    measured = Measured([("gcc 12", runtime_bytes)], [], [])
    for text in arguments.also:
        compiler, _, folder = text.rpartition("=")
        measured.runtimes.append((compiler, linked_size(*runtime_of(Path(folder)))))
    for archive, records in libraries.items():
        name = archive.stem.removeprefix("libtaper_kernels_")
        together = linked_size([archive, *runtime], records.values())
        measured.libraries.append((name, by_library[archive], together))
    every = {symbol for archive in libraries for _, _, symbol in symbols(archive)}  # narrow records, too, which no list has
    for text in arguments.selective:
        name, _, file = text.partition("=")
        named = re.findall(r"&taper::(portable|optimized|quantized)::(\w+)", Path(file).read_text())
        chosen = [symbol_of(library, record) for library, record in named]
        unknown = [symbol for symbol in chosen if symbol not in every]
        if not chosen or unknown:
            parser.error(f"{file}: " + (f"no kernels {unknown} in {arguments.build}" if unknown else "it names no kernels"))
        size = linked_size([*libraries, *runtime], runtime_roots + chosen)
        measured.models.append((name, len(chosen), size))

    ordered = sorted(sizes.items(), key=lambda item: -item[1])
    if ordered:
        print(f"{'bytes':>9}  the largest of {len(ordered)} kernels")
        for record, size in ordered[:12]:
            print(f"{size:9,}  {record}")
        print(f"{ordered[len(ordered) // 2][1]:9,}  the median")
    print(f"{runtime_bytes:9,}  the runtime without kernels")
    for compiler, size in measured.runtimes[1:]:
        print(f"{size:9,}  the same, {compiler}")
    for name, records, together in measured.libraries:
        print(f"{together:9,}  all {len(records)} kernels of {name}")
    for name, count, size in measured.models:
        print(f"{size:9,}  the runtime with the {count} kernels of {name}")
    if arguments.page:
        arguments.page.write_text(page_of(measured))
    if arguments.kernels:
        write_kernel_table(arguments.kernels, sizes)
    problems = too_large(measured, arguments.limit, arguments.model_limit)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
