#!/usr/bin/env bash
# Runs LeNet on a Cortex-M3 (qemu's mps2-an385) and compares every bit of its scores with those of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS

host=build/release
arm=build/cortex-m3
example=examples/minimal_firmware

echo "== set-up"
scripts/setup.sh
packages=(gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib qemu-system-arm)
if ! dpkg-query --show "${packages[@]}" >/dev/null 2>&1; then
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi

echo "== on this machine"
cmake --preset release >/dev/null
cmake --build --preset release --target minimal_firmware
$host/bin/minimal_firmware >$host/digit_here.txt

echo "== device tier for the Cortex-M3"
cmake --preset device -B $arm --toolchain cmake/toolchains/cortex-m3.cmake >/dev/null
cmake --build $arm --target taper_runtime taper_kernels_portable

echo "== firmware"
made=$host/$example
arm-none-eabi-g++ -std=c++17 -mcpu=cortex-m3 -mthumb -Os -DNDEBUG -fno-exceptions -fno-rtti -ffp-contract=off \
  -ffunction-sections -fdata-sections -Wall -Wextra -Werror -I$arm/include -I$made \
  $example/main.cpp $example/mps2_an385/startup.cpp $made/lenet_kernels.cpp $made/lenet_taper.cpp \
  -L$arm/lib -ltaper_runtime -ltaper_kernels_portable -ltaper_runtime_core \
  -nostartfiles --specs=nano.specs --specs=nosys.specs -Wl,--gc-sections -T $example/mps2_an385/mps2_an385.ld \
  -o $arm/minimal_firmware.elf
arm-none-eabi-size $arm/minimal_firmware.elf
if arm-none-eabi-nm $arm/minimal_firmware.elf | grep -wE '_?malloc|_malloc_r|_sbrk|_Znwj|__cxa_throw'; then
  echo "the firmware contains a heap or exceptions" >&2
  exit 1
fi

echo "== on the Cortex-M3, in qemu"
timeout 120 qemu-system-arm -M mps2-an385 -nographic -monitor none -serial none \
  -semihosting-config enable=on,target=native -kernel $arm/minimal_firmware.elf >$arm/digit_there.txt 2>&1 || {
  cat $arm/digit_there.txt
  echo "the firmware failed" >&2
  exit 1
}
diff $host/digit_here.txt $arm/digit_there.txt
echo "LeNet on a Cortex-M3 gives the same bits as here: $(tail -1 $arm/digit_there.txt) ($((SECONDS - start)) s)."
