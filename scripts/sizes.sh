#!/usr/bin/env bash
# Writes docs/sizes.md: what kernels, kernel libraries and the selective builds of three models cost in bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset release -DTAPER_BUILD_BENCHMARKS=ON >/dev/null
cmake --build --preset release --target taper selective_models
cmake --preset device >/dev/null
cmake --build --preset device
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
build/release/bin/selective_models "$folder"
selective=()
for model in lenet mobilenet_v2 transformer; do
  build/release/bin/taper export "$folder/$model.taper" --portable --kernels "$folder/$model.cpp"
  selective+=(--selective "$model=$folder/$model.cpp")
done
scripts/size_report.py build/device --kernels docs/sizes.md "${selective[@]}"
