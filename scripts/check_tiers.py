#!/usr/bin/env python3
"""Checks who includes whom, and that device code uses nothing that a microcontroller lacks.

Three tiers: device, app, host. A file includes only its own tier and those before it. Folders depend one way: no circle
of includes leads from a folder back to it. Device code (C++17) uses no heap, no exceptions, no RTTI, no containers and no
streams; of the standard library only the headers in DEVICE_STD.
What the compiler makes of it is checked in check_objects.py.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIERS = ["device", "app", "host"]

# The first pattern that matches a path gives its tier.
TIER_OF = [
    (r"runtime/extension/|delegates/[^/]+/app/|runtime/platform/(thread_pool|posix|android)/", "app"),
    (r"schema/|runtime/|kernels/|delegates/[^/]+/runtime/", "device"),
    (r"exporter/|delegates/[^/]+/compile/", "host"),
]

# Narrower than the tiers: files that match the first pattern may not include what matches the second.
FORBIDDEN_EDGES = [
    (r"runtime/core/", r"(?!runtime/core/)", "runtime/core is the bottom"),
    (r"runtime/platform/", r"(kernels|runtime/(?!core/|platform/))", "the platform knows runtime/core only"),
    (r"kernels/", r"runtime/(?!core/|platform/(threads|cpu)\.h)", "kernels know runtime/core, threads and CPU features only"),
    (r"kernels/(?!portable/|optimized/|quantized/)", r"kernels/portable/", "only optimized and quantized kernels build on portable ones"),
    (r"kernels/optimized/", r"kernels/quantized/", "quantized kernels build on optimized ones"),
    (r"kernels/portable/", r"kernels/(optimized|quantized)/", "kernel libraries do not know each other"),
    (r"runtime/(?!extension/)", r"kernels/(portable|optimized|quantized)/", "the runtime takes kernels as a table"),
    (r"(runtime|kernels|exporter)/(?!cli/main\.cpp)", r"delegates/", "delegates are handed in"),
]

DEVICE_STD = set(
    """algorithm array atomic cassert cfloat climits cmath cstddef cstdint cstring initializer_list iterator limits new
    numeric string_view tuple type_traits utility assert.h float.h math.h stddef.h stdint.h string.h""".split())
DEVICE_OTHER = [(r"flatbuffers/", r"runtime/program/"), (r"xnnpack\.h|pthreadpool\.h", r"delegates/xnnpack/runtime/"),
                (r"hwy/|immintrin\.h|arm_neon\.h", r"kernels/(optimized|quantized)/"),
                (r"cpuid\.h|cstdlib|time\.h|ctime|unistd\.h|sys/(auxv|syscall|sysctl)\.h", r"runtime/platform/")]

DEVICE_CONSTRUCTS = [
    (r"\bthrow\b", "throw"),
    (r"\btry\b", "try"),
    (r"\bcatch\b", "catch"),
    (r"\bdynamic_cast\b", "dynamic_cast"),
    (r"\btypeid\b", "typeid"),
    (r"\bnew\s+[A-Za-z_:]", "new (heap); construct in memory that the caller gave"),
    (r"(?<!=)\s\bdelete\b\s*(\[\s*\])?\s*[A-Za-z_]", "delete"),
    (r"\b(malloc|calloc|realloc|free|aligned_alloc|posix_memalign)\s*\(", "the C heap"),
    (r"\b(printf|fprintf|puts|fputs)\s*\(", "printing"),
    (r"\bstd::(vector|string|map|set|unordered_\w+|deque|list|any|variant|optional|unique_ptr|shared_ptr|"
     r"make_unique|make_shared|mutex|thread|ostream|istream|cout|cerr|ifstream|ofstream|stringstream)\b|std::function\s*<",
     "a part of the standard library that device code does without"),
    (r"\bthread_local\b", "thread_local"),
]


def tier_of(path):
    return next((tier for pattern, tier in TIER_OF if re.match(pattern, path)), None)


def without_comments_and_strings(text):
    """Keeps the line structure, so that line numbers stay true."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def check(path, text):
    """Yields (line, message)."""
    tier = tier_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        include = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not include:
            continue
        style, target = include.groups()
        if target.startswith("taper/"):
            target = target[len("taper/"):]
            other = tier_of(target)
            if other is None:
                yield number, f"includes taper/{target}, which belongs to no tier"
            elif TIERS.index(other) > TIERS.index(tier):
                yield number, f"{tier} code includes {other} code: taper/{target}"
            for source, forbidden, why in FORBIDDEN_EDGES:
                if re.match(source, path) and re.match(forbidden, target):
                    yield number, f"includes taper/{target}: {why}"
        elif style == '"' and not re.match(r"flatbuffers/|hwy/|gtest/|gmock/", target):
            yield number, f'write "taper/<folder>/…" instead of "{target}"'
        elif tier == "device" and target not in DEVICE_STD:
            if not any(re.match(what, target) and re.match(where, path) for what, where in DEVICE_OTHER):
                yield number, f"device code includes <{target}>"
    if tier == "device":
        for number, line in enumerate(without_comments_and_strings(text).splitlines(), 1):
            if re.match(r"\s*#\s*include", line):
                continue
            for pattern, what in DEVICE_CONSTRUCTS:
                if re.search(pattern, line):
                    yield number, f"device code uses {what}"


def folder_of(path):
    """The first two levels: exporter/eager with all below it, runtime/core, and kernels for what lies in kernels/ itself."""
    return "/".join(path.split("/")[:-1][:2])


def circles(files):
    """Yields the shortest circle through each folder that stands in one: a list of (folder, includes that lead to the next)."""
    includes = {}  # folder → folder → ["path:line includes target"]
    for path, text in files.items():
        for number, line in enumerate(text.splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*"taper/([^"]+)"', line)
            if found and folder_of(found[1]) != folder_of(path):
                edges = includes.setdefault(folder_of(path), {})
                edges.setdefault(folder_of(found[1]), []).append(f"{path}:{number} includes {found[1]}")
    told = set()
    for start in sorted(includes):
        ways = [[start]]  # breadth first
        seen = set()
        while ways and start not in seen:
            way = ways.pop(0)
            for following in sorted(includes.get(way[-1], {})):
                if following == start and frozenset(way) not in told:
                    told.add(frozenset(way))
                    yield [(a, includes[a][b]) for a, b in zip(way, way[1:] + [start])]
                if following not in seen:
                    seen.add(following)
                    ways.append(way + [following])


def main():
    files = sorted(p for folder in ["schema", "runtime", "kernels", "delegates", "exporter"]
                   for suffix in ["*.h", "*.cpp", "*.def"] for p in (ROOT / folder).rglob(suffix))
    counts = dict.fromkeys(TIERS, 0)
    errors = 0
    for file in files:
        path = file.relative_to(ROOT).as_posix()
        tier = tier_of(path)
        if tier is None:
            print(f"{path}: belongs to no tier")
            errors += 1
            continue
        counts[tier] += 1
        for line, message in check(path, file.read_text(encoding="utf-8")):
            print(f"{path}:{line}: {message}")
            errors += 1
    for circle in circles({f.relative_to(ROOT).as_posix(): f.read_text(encoding="utf-8") for f in files}):
        print(f"folders depend on each other: {' → '.join(folder for folder, _ in circle + circle[:1])}")
        for _, includes in circle:
            print(*(f"  {include}" for include in includes[:5]), sep="\n")
        errors += 1
    told = ", ".join(f"{count} {tier}" for tier, count in counts.items())
    print(f"tiers: {told} files, {errors} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
