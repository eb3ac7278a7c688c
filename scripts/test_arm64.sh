#!/usr/bin/env bash
# Builds Taper for 64-bit Arm, and runs the tests of XNNPACK, the runtime and the kernels in qemu, as three processors. Then programs of
# integers give the same bytes there as on this machine. Needs Debian's arm64 packages. The first run takes about an hour on two cores.
#
#   scripts/test_arm64.sh [PROCESSOR…]     default: max cortex-a76 cortex-a72
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS

host=build/release
arm=build/arm64
processors=("$@")
[ $# -gt 0 ] || processors=(max cortex-a76 cortex-a72)  # all features; dot products, but no i8mm; neither
programs=(delegates_xnnpack_test delegates_xnnpack_command_test kernels_quantized_test quantized_kernels_test integer_operators_test)
# their kernels are the same on every processor
once=(runtime_test module_test thread_pool_test kernels_functions_test kernels_portable_test kernels_layers_test)

echo "== set-up"
scripts/setup.sh
packages=(g++-aarch64-linux-gnu qemu-user libgtest-dev:arm64 libgmock-dev:arm64 libhwy-dev:arm64 libminizip-dev:arm64 zlib1g-dev:arm64)
if ! dpkg-query --show "${packages[@]}" >/dev/null 2>&1; then
  as_root=(env DEBIAN_FRONTEND=noninteractive)
  [ "$(id -u)" -eq 0 ] || as_root=(sudo "${as_root[@]}")
  "${as_root[@]}" dpkg --add-architecture arm64
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends --no-remove "${packages[@]}" >/dev/null
fi
scripts/setup_xnnpack.sh arm64

echo "== build"
cmake --preset release >/dev/null
cmake --build --preset release --target taper
cmake --preset arm64 >/dev/null
cmake --build --preset arm64 --target taper "${programs[@]}" "${once[@]}"

# Prints what a program said when it has ended, so that programs may run side by side.
run_program() {
  local status=0 output
  output=$(cd build/arm64 && qemu-aarch64 "bin/$1" --gtest_brief=1 2>&1) || status=$?
  printf -- '-- %s\n%s\n' "$1" "$output"
  return $status
}
export -f run_program
# reserves terabytes of addresses, for whose pages qemu takes all memory of the machine
export GTEST_FILTER=-module.pays_for_the_batch_it_runs_and_not_for_the_largest
run_programs() { printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} bash -c 'run_program {}'; }
for processor in "${processors[@]}"; do
  echo "== tests on $processor"
  export QEMU_CPU=$processor
  run_programs "${programs[@]}"
done
echo "== tests of what does not depend on the processor"
run_programs "${once[@]}"

data=${TAPER_DATA:-../shared/data}
if [ ! -d "$data/pt2" ]; then
  echo "Tests pass on ${processors[*]} ($((SECONDS - start)) s). Without $data/pt2 no integers are compared."
  exit
fi
echo "== programs of integers"
work=$arm/integers
mkdir -p "$work"
export_integers() { $host/bin/taper export "$data/pt2/$1.pt2" -o "$work/$2.taper" "${@:3}" >>"$work/log"; }
calibrated=(--recipe int8 --calibrate "$data/pt2/resnet20.io.safetensors")
export_integers resnet20 kernels "${calibrated[@]}"
export_integers resnet20 xnnpack "${calibrated[@]}" --require xnnpack
export_integers q_resnet20_pt2e_int8 pt2e_kernels
export_integers q_resnet20_pt2e_int8 pt2e_xnnpack --backend xnnpack
arguments=(--input "x=$data/pt2/resnet20.io.safetensors:set2.input.0" --output)
for program in kernels xnnpack pt2e_kernels pt2e_xnnpack; do
  run=(run "$work/$program.taper" "${arguments[@]}")
  TAPER_CPU=portable $host/bin/taper "${run[@]}" "$work/portable.npy" >/dev/null
  for level in avx2 ''; do
    TAPER_CPU=$level $host/bin/taper "${run[@]}" "$work/here.npy" >/dev/null
    cmp "$work/portable.npy" "$work/here.npy"
  done
  for processor in "${processors[@]}"; do
    QEMU_CPU=$processor qemu-aarch64 $arm/bin/taper "${run[@]}" "$work/there.npy" >/dev/null
    cmp "$work/portable.npy" "$work/there.npy"
  done
  echo "ResNet-20 in int8, $program: the same bytes here and there"
done
echo "Tests pass on ${processors[*]}, and integers are the same as here ($((SECONDS - start)) s)."
