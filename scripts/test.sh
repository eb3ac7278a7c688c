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
ctest --preset release --progress

tests=$(ctest --preset release -N | sed -n 's/^Total Tests: //p')
echo "Taper is built, and all $tests tests pass ($((SECONDS - start)) s)."
