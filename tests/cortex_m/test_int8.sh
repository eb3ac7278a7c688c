#!/usr/bin/env bash
# Runs networks in int8 and f32 on a Cortex-M4 and a Cortex-M55 in qemu. Compares every bit of the results with those of this
# machine, and prints flash, memory and instructions.
#
#   TAPER_DATA=FOLDER tests/cortex_m/test_int8.sh [BUILD_FOLDER]
#
# scripts/test_cortex_m.sh installs what it needs.
set -euo pipefail
cd "$(dirname "$0")/../.."
host=$(realpath "${1:-build/release}")
data=${TAPER_DATA:?names the folder of golden data}
made=$host/cortex_m
startup=examples/minimal_firmware/mps2_an385
mkdir -p "$made"

# network, file, recorded inputs, and options of the command: inputs have fixed sizes
networks=(
  "lenet pt2/lenet set2.input.0 --dim x.0=1"
  "yunet pt2/yunet_n set0.input.0"
)
declare -A flags=([cortex-m4]="-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16" [cortex-m55]="-mcpu=cortex-m55 -mfloat-abi=hard")
declare -A board=([cortex-m4]=mps2-an386 [cortex-m55]=mps3-an547)
declare -A nanoseconds=([cortex-m4]=40 [cortex-m55]=31.25) # of a tick; with -icount shift=0, an instruction takes one

for cpu in cortex-m4 cortex-m55; do
  cmake --preset device -B "$host/../$cpu" --toolchain cmake/toolchains/$cpu.cmake >/dev/null
  cmake --build "$host/../$cpu" --target taper_runtime taper_runtime_core taper_kernels_portable taper_kernels_quantized | tail -1
done

printf '%-14s %-11s %9s %9s %14s  %s\n' network processor flash memory instructions bits
for line in "${networks[@]}"; do
  read -r name file inputs options <<<"$line"
  for form in f32 int8; do
    folder=$made/$name-$form
    mkdir -p "$folder"
    if [ $form = int8 ]; then
      $host/bin/taper quantize "$data/$file.pt2" --recipe int8 --calibrate "$data/$file.io.safetensors:$inputs" $options \
        --target portable -o "$folder/network.taper" >/dev/null
    else
      $host/bin/taper export "$data/$file.pt2" $options --target portable -o "$folder/network.taper" >/dev/null
    fi
    $host/bin/taper export "$folder/network.taper" --target portable --kernels "$folder/network_kernels.cpp" \
      --array "$folder/network_taper.cpp" --header "$folder/network.h" >/dev/null
    g++ -std=c++17 -O2 -fno-exceptions -ffp-contract=off -I"$host/include" -I"$folder" tests/cortex_m/network.cpp \
      examples/minimal_firmware/board_host.cpp "$folder/network_kernels.cpp" "$folder/network_taper.cpp" -L"$host/lib" \
      -Wl,--start-group -ltaper_runtime -ltaper_kernels_quantized -ltaper_kernels_optimized -ltaper_kernels_portable -ltaper_packing \
      -ltaper_runtime_core -Wl,--end-group -lpthread -o "$folder/here"
    "$folder/here" >"$folder/here.txt"
    for cpu in cortex-m4 cortex-m55; do
      device=$host/../$cpu
      arm-none-eabi-g++ -std=c++17 ${flags[$cpu]} -mthumb -Os -DNDEBUG -DTAPER_PRINT_TICKS -fno-exceptions -fno-rtti -ffp-contract=off \
        -ffunction-sections -fdata-sections -Wno-psabi -I"$device/include" -I"$folder" tests/cortex_m/network.cpp \
        $startup/startup.cpp "$folder/network_kernels.cpp" "$folder/network_taper.cpp" -L"$device/lib" -Wl,--start-group \
        -ltaper_runtime -ltaper_kernels_quantized -ltaper_kernels_portable -ltaper_runtime_core -Wl,--end-group -nostartfiles \
        --specs=nano.specs --specs=nosys.specs -Wl,--gc-sections -T tests/cortex_m/$cpu.ld -o "$folder/$cpu.elf"
      timeout 300 qemu-system-arm -M ${board[$cpu]} -icount shift=0 -nographic -monitor none -serial none \
        -semihosting-config enable=on,target=native -kernel "$folder/$cpu.elf" >"$folder/$cpu.txt" 2>&1 || true
      bits=different
      if diff <(grep -v ticks "$folder/$cpu.txt") "$folder/here.txt" >/dev/null; then bits="as here"; fi
      ticks=$(sed -n 's/ *\([0-9]*\) *ticks/\1/p' "$folder/$cpu.txt")
      read -r flash memory < <(arm-none-eabi-size "$folder/$cpu.elf" | awk 'NR == 2 {print $1 + $2, $2 + $3}')
      printf '%-14s %-11s %9d %9d %14.0f  %s\n' "$name $form" $cpu "$flash" "$memory" \
        "$(awk "BEGIN {print ${ticks:-0} * ${nanoseconds[$cpu]}}")" "$bits"
      [ "$bits" = "as here" ] || failed=1
    done
  done
done
[ -z "${failed:-}" ] || {
  echo "some results differ from those of this machine" >&2
  exit 1
}
