#!/usr/bin/env python3
"""Prints what the runtime and each kernel cost in a firmware: size_report.py BUILD_FOLDER [--limit BYTES] [--kernels FILE]

Links what a root reaches (`ld --gc-sections`) from the archives of BUILD_FOLDER (preset `device`), with nothing of libc and
libm, and adds up code and data. The runtime is every function of its library (Program, Session, Method, the verifier) without
any kernel; a kernel is what its record reaches, so that what kernels share is counted with each. Fails if the runtime exceeds
the limit.
"""
import argparse
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(archive):
    """(bytes, kind, name) of the global functions and constants that an archive defines."""
    lines = run("nm", "--defined-only", "--extern-only", "--print-size", str(archive)).splitlines()
    return [(int(fields[1], 16), fields[2], fields[3]) for fields in map(str.split, lines) if len(fields) == 4]


def linked_size(archives, roots):
    """Bytes of text and data that `roots` reach."""
    with tempfile.TemporaryDirectory() as folder:
        out = folder + "/linked"
        undefined = [argument for root in roots for argument in ("--undefined", root)]
        run("ld", "--gc-sections", "--strip-all", "--unresolved-symbols=ignore-all", "--entry=0", "-z", "norelro", *undefined,
            "-o", out, "--start-group", *map(str, archives), "--end-group")
        text, data = run("size", out).splitlines()[1].split()[:2]
        return int(text) + int(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--limit", type=int, default=40000)
    parser.add_argument("--kernels", type=Path, help="write the size of every kernel there")
    arguments = parser.parse_args()
    lib = arguments.build / "lib"
    runtime = [lib / "libtaper_runtime.a", lib / "libtaper_runtime_core.a"]

    record_bytes = 64  # sizeof(Kernel), which tells records from other constants
    records = []  # (archive, mangled name, name)
    for archive in sorted(lib.glob("libtaper_kernels_*.a")):
        for size, kind, symbol in symbols(archive):
            record = re.fullmatch(r"_ZN5taper(?:8portable|9optimized)\d+(\w+)E", symbol)
            if kind in "DR" and record and size == record_bytes:
                records.append((archive, symbol, record[1]))
    with ThreadPoolExecutor() as pool:
        costs = pool.map(lambda r: linked_size([r[0], *runtime], [r[1]]), records)
        sizes = sorted(((size, record[2]) for size, record in zip(costs, records)), reverse=True)
    if arguments.kernels:
        arguments.kernels.write_text("".join(f"{size:9,}  {name}\n" for size, name in sizes))

    print(f"{'bytes':>9}  the largest of {len(sizes)} kernels")
    for size, name in sizes[:12]:
        print(f"{size:9,}  {name}")
    print(f"{sizes[len(sizes) // 2][0]:9,}  the median")

    runtime_bytes = linked_size(runtime, [name for _, kind, name in symbols(runtime[0]) if kind == "T"])
    print(f"{runtime_bytes:9,}  the runtime without kernels; the limit is {arguments.limit:,}")
    return 0 if runtime_bytes < arguments.limit else 1


if __name__ == "__main__":
    raise SystemExit(main())
