#!/usr/bin/env bash
# Builds benchmarks/start.cpp as an app for one program: with its kernels alone, stripped, against a shared C++ library. Prints the
# bytes of the app, then the time and the memory of its start.
#
#   scripts/app_size.sh PROGRAM.taper [OPTIONS OF taper export, such as --target portable]
#
# The preset release is built before: cmake --preset release && cmake --build --preset release --target taper taper_module taper_threads
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: scripts/app_size.sh PROGRAM.taper [OPTIONS OF taper export]" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release
program=$(realpath "$1")
shift
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
ln -s "$program" "$folder/start.taper"
"$build/bin/taper" export "$folder/start.taper" "$@" --kernels "$folder/kernels.cpp" --header "$folder/start.h" >/dev/null
libraries=()
for name in module threads packing runtime kernels_quantized kernels_optimized kernels_portable runtime_core; do
  libraries+=("$build/lib/libtaper_$name.a")
done
c++ -std=c++17 -O2 -s -Wl,--gc-sections -pthread -DTAPER_START_KERNELS -I"$folder" -I"$build/include" -I"$build/generated" \
  "$root/benchmarks/start.cpp" "$folder/kernels.cpp" "${libraries[@]}" -o "$folder/start"
printf '%s: %d kernels, an app of %d bytes\n' "$(basename "$program")" "$(grep -c '&taper::' "$folder/kernels.cpp")" "$(stat -c %s "$folder/start")"
"$folder/start" "$program"
