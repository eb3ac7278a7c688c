#!/usr/bin/env bash
# Writes docs/sizes.md: what the runtime, kernel libraries and the selective builds of some models cost in bytes. Writes
# build/sizes.md too, with a line for every kernel.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset release -DTAPER_BUILD_BENCHMARKS=ON >/dev/null
cmake --build --preset release --target taper selective_models
cmake --preset device >/dev/null
cmake --build --preset device
also=()
for build in "gcc 12, with texts of errors:g++:ON" "clang 14:clang++-14:OFF" "clang 14, with texts of errors:clang++-14:ON"; do
  IFS=: read -r what compiler messages <<<"$build"
  cmake --preset device -B "build/device-$compiler-$messages" -DCMAKE_CXX_COMPILER="$compiler" -DTAPER_MESSAGES="$messages" >/dev/null
  cmake --build "build/device-$compiler-$messages" --target taper_runtime taper_runtime_core
  also+=(--also "$what=build/device-$compiler-$messages")
done
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
build/release/bin/selective_models "$folder"
selective=()
for model in lenet mobilenet_v2 transformer; do
  build/release/bin/taper export "$folder/$model.taper" --target portable --kernels "$folder/$model.cpp"
  selective+=(--selective "$model=$folder/$model.cpp")
done
build/release/bin/taper export "$folder/mobilenet_v2_levels.taper" --kernels "$folder/levels.cpp"
selective+=(--selective "mobilenet_v2, all CPU levels=$folder/levels.cpp")
scripts/size_report.py build/device --limit 41000 --model-limit 250000 --page docs/sizes.md --kernels build/sizes.md "${also[@]}" "${selective[@]}"
