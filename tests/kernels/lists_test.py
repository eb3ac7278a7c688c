#!/usr/bin/env python3
"""Whether the lists of kernel records, which cmake/list_uses.cmake makes from the sources, hold what the libraries hold, and no
fewer records than before.

    lists_test.py NM LIBRARY LIST AT_LEAST…       for example: nm libtaper_kernels_portable.a …/portable/kernels.def 600
"""
import pathlib
import re
import subprocess
import sys


KERNELS = pathlib.Path(__file__).resolve().parents[2] / "kernels"
SOURCES = {path: path.read_text() for path in sorted([*KERNELS.rglob("*.h"), *KERNELS.rglob("*.cpp")])}


def is_another_table(name):
    """Whether the sources declare the name with another type. Sanitizers round sizes up, so that tables may have a record's."""
    return any(re.search(rf"\b(?:const|constexpr) (?!Kernel\b)\w+ [\w, ]*\b{name}\b", text) for text in SOURCES.values())


def records_in(nm, library):
    """The records that a library defines: all constants of its most frequent size, a Kernel's."""
    symbols = subprocess.run([nm, "-C", "-S", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"^\w+ (\w+) [DRdr] taper::(?:portable|optimized|quantized)::(\w+)$", symbols, re.M)
    sizes = [size for size, _ in found]
    return {name for size, name in found if size == max(set(sizes), key=sizes.count)}


def is_narrow(name, names):
    """Whether it runs some calls of a listed record, as narrow_records.h says."""
    ends = ("_panels", "_panels_row", "_plain", "_plain_threes")
    return any(name == f"{other}{end}" for other in names for end in ends)


nm, *pairs = sys.argv[1:]
wrong = []
for library, path, at_least in zip(pairs[::3], pairs[1::3], pairs[2::3]):
    names = re.findall(r"^TAPER_KERNEL_NAME\((\w+)\)$", pathlib.Path(path).read_text(), re.M)
    records = records_in(nm, library)
    wrong += [f"{path} lists {name} twice" for name in {n for n in names if names.count(n) > 1}]
    wrong += [f"{path} has {len(names)} records, fewer than {at_least}"] if len(names) < int(at_least) else []
    wrong += [f"{library} has {name}, which {path} lacks" for name in records - set(names)
              if not is_another_table(name) and not is_narrow(name, names)]
    wrong += [f"{path} has {name}, which {library} lacks" for name in set(names) - records]
    print(f"{path}: {len(names)} records")
# a record that is not made by the macro which the build looks for
for path, text in SOURCES.items():
    if path not in (KERNELS / "kernel.h", KERNELS / "portable/widened.h", KERNELS / "optimized/narrow_records.h") and "make_kernel<" in text:
        wrong.append(f"{path} calls make_kernel: write TAPER_RECORD, so that the build lists the record")
sys.exit("\n".join(wrong) or 0)
