#!/usr/bin/env python3
"""Says how many tests a run of CTest skipped, and why.

    skipped_tests.py REPORT    (what `ctest --output-junit REPORT` wrote)

    12 tests are skipped:
      11 need golden data that are not there; TAPER_DATA may name their folder: op_goldens, optimizers.agree_with_pytorch, ...
       1 built without libpng: png.is_read
"""
import re
import sys
import xml.etree.ElementTree as xml

NAMED = 4  # tests of one reason


def reason(output):
    """Why a test says that it is skipped."""
    if "golden data" in output:
        return "need golden data that are not there; TAPER_DATA may name their folder"
    said = re.search(r": Skipped\n(.+)", output)  # GoogleTest: place, message
    return said[1].strip() if said else "they do not say why"


def main(path):
    reasons = {}
    for test in xml.parse(path).getroot().iter("testcase"):
        if test.find("skipped") is not None:
            reasons.setdefault(reason(test.findtext("system-out") or ""), []).append(test.get("name"))
    count = sum(map(len, reasons.values()))
    print("No test is skipped." if count == 0 else "1 test is skipped:" if count == 1 else f"{count} tests are skipped:")
    for why, names in sorted(reasons.items(), key=lambda r: -len(r[1])):
        more = ", ..." if len(names) > NAMED else ""
        print(f"{len(names):4} {why}: {', '.join(names[:NAMED])}{more}")


if __name__ == "__main__":
    main(sys.argv[1])
