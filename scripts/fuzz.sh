#!/usr/bin/env bash
# fuzz.sh [SECONDS]: builds the fuzzers with clang and sanitizers and runs each for that long (default 60), from its corpus in fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}

cmake --preset asan >/dev/null
cmake --build --preset asan --target fuzz/all
count=0
for fuzzer in build/asan/bin/*_fuzzer; do
  name=$(basename "$fuzzer" _fuzzer)
  found=build/asan/corpus/$name  # new inputs; what fails is kept beside it
  mkdir -p "$found"
  arguments=("$found")
  [ ! -d "fuzz/corpus/$name" ] || arguments+=("fuzz/corpus/$name")
  [ ! -f "fuzz/$name.dict" ] || arguments+=("-dict=fuzz/$name.dict")
  echo "== $name"
  "$fuzzer" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="build/asan/corpus/$name." "${arguments[@]}"
  count=$((count + 1))
done
echo "$count fuzzers ran $seconds s each without a finding."
