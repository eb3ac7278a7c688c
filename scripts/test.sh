#!/usr/bin/env bash
# Sets up a fresh machine, builds everything in release, and runs all tests.
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS

echo "== set-up"
scripts/setup.sh
echo "== build everything: libraries, the command taper, examples, tests"
scripts/build.sh release
echo "== test"
report=$PWD/build/release/tests.xml
ctest --preset release --progress --output-junit "$report"

passed=$(grep -c '<testcase .*status="run"' "$report")
echo "Taper is built, and all $passed tests pass ($((SECONDS - start)) s)."
scripts/skipped_tests.py "$report"
