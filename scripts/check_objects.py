#!/usr/bin/env python3
"""Checks what the compiler made of device code: check_objects.py BUILD_FOLDER

In the device tier's archives there are no static initialisers (.init_array), no mutable globals (.data, .bss, thread-local
ones) and no calls to the heap, to the C++ runtime or to compiled parts of the standard library.
"""
import re
import subprocess
import sys
from pathlib import Path

ARCHIVES = "libtaper_runtime_core.a libtaper_runtime.a libtaper_packing.a libtaper_kernels_*.a libtaper_delegates_*_runtime.a".split()
FORBIDDEN_SECTIONS = re.compile(r"\.(init_array|ctors|data|bss|tdata|tbss)(\.|$)")
ALLOWED_SECTIONS = re.compile(r"\.data\.rel\.ro")  # constants that hold addresses
FORBIDDEN_CALLS = re.compile(
    r"_Zn[wa]|_Zd[la]|(malloc|calloc|realloc|free|aligned_alloc|posix_memalign|abort|exit|printf|puts)$|"
    r"__cxa_(?!pure_virtual)|__gxx_personality|_Unwind_|_ZT[IS]|_ZNK?S[tas]|_ZS[tas]|__tls_")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def sections(archive):
    """Yields (object, section, bytes) for what is not empty."""
    current = archive.name
    for line in run("readelf", "--sections", "--wide", str(archive)).splitlines():
        if line.startswith("File: "):
            current = line[line.find("(") + 1:line.rfind(")")]
        match = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)", line)
        if match and int(match[2], 16) > 0:
            yield current, match[1], int(match[2], 16)


def undefined(archive):
    current = archive.name
    for line in run("nm", "--undefined-only", str(archive)).splitlines():
        if line.endswith(":"):
            current = line[:-1]
        elif line.strip():
            yield current, line.split()[-1]


def main():
    lib = Path(sys.argv[1]) / "lib"
    archives = sorted(a for pattern in ARCHIVES for a in lib.glob(pattern))
    if not archives:
        print(f"no device archives in {lib}")
        return 1
    errors = []
    for archive in archives:
        for obj, section, size in sections(archive):
            if section.startswith(".rela"):
                continue
            if FORBIDDEN_SECTIONS.match(section) and not ALLOWED_SECTIONS.match(section):
                errors.append(f"{archive.name}({obj}): {size} bytes in {section}")
        for obj, symbol in undefined(archive):
            if FORBIDDEN_CALLS.match(symbol):
                errors.append(f"{archive.name}({obj}): calls {run('c++filt', symbol).strip()}")
    print("\n".join(errors + [f"objects: {len(archives)} device archives in {lib}, {len(errors)} errors"]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
