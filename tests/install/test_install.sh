#!/usr/bin/env bash
# test_install.sh BUILD_FOLDER COMPILER: installs the build, and builds programs of consumer/ from the installation, by
# find_package with each component and by pkg-config. Each runs.
set -euo pipefail
build=$1 compiler=$2
here=$(cd "$(dirname "$0")" && pwd)
program=$(cd "$here/../.." && pwd)/fuzz/corpus/program/convolution.taper
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "$1" >&2
  exit 1
}

# has TEXT PART: fails, and shows the text, unless the part is in it.
has() {
  case $1 in
    *"$2"*) ;;
    *) fail "'$2' is not in: $1" ;;
  esac
}

# configure NAME COMPONENTS ARGUMENT…: the consumer, with those components.
configure() {
  cmake -S "$here/consumer" -B "$work/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$work/prefix" "-DCOMPONENTS=$2" "${@:3}" 2>&1
}

# refuses COMPONENTS MESSAGE ARGUMENT…: find_package fails, and says why.
refuses() {
  if output=$(configure refused "$1" "${@:3}"); then
    fail "find_package(Taper COMPONENTS $1) succeeds with ${*:3}"
  fi
  has "$(tr -s ' \n' ' ' <<<"$output")" "$2"  # CMake breaks lines
  rm -rf "$work/refused"
}

# has_component NAME: whether the build had what it takes.
has_component() { [ -n "$(find "$work/prefix" -name "Taper-$1.cmake")" ]; }

# check PROGRAM: it runs a Taper program, and says which file is missing.
check() {
  "$1" "$program"
  if message=$("$1" "$work/missing.taper" 2>&1); then
    fail "$1 ran a file that is missing"
  fi
  has "$message" "missing.taper: No such file"
}

cmake --install "$build" --prefix "$work/prefix" >/dev/null

# What the device and app tiers do not link is not asked for.
without=()
for package in PNG ZLIB minizip turbojpeg CLI11 nlohmann_json hwy flatbuffers; do
  without+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON")
done

configure runtime runtime "${without[@]}" -DCMAKE_DISABLE_FIND_PACKAGE_Threads=ON >/dev/null
cmake --build "$work/runtime" >/dev/null
has "$("$work/runtime/runtime" "$program")" forward

configure module module "${without[@]}" -DCMAKE_DISABLE_FIND_PACKAGE_Threads=ON >/dev/null
cmake --build "$work/module" >/dev/null
check "$work/module/module"

refuses "module;gpu" "Taper has no component gpu; it has runtime, threads, module, llm, exporter, xnnpack, xnnpack_exporter"

if has_component threads; then
  configure threads "module;threads" "${without[@]}" >/dev/null
  cmake --build "$work/threads" >/dev/null
  check "$work/threads/module"
  refuses "threads" "Taper's component threads needs packages that were not found: Threads" \
    -DCMAKE_DISABLE_FIND_PACKAGE_Threads=ON
else
  refuses "threads" "but not threads: that was not built"
fi

if has_component llm; then
  configure llm llm "${without[@]}" >/dev/null
  cmake --build "$work/llm" >/dev/null
  has "$("$work/llm/llm")" "0 2 "
  refuses "llm" "Taper's component llm needs packages that were not found: pcre2" -DCMAKE_DISABLE_FIND_PACKAGE_pcre2=ON
else
  refuses "llm" "but not llm: that was not built"
fi

if has_component exporter; then
  configure exporter exporter -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON >/dev/null
  cmake --build "$work/exporter" >/dev/null
  "$work/exporter/exporter" "$work/doubled.taper" >/dev/null
  has "$("$work/runtime/runtime" "$work/doubled.taper")" forward
  refuses "exporter" "Taper's component exporter needs packages that were not found: PNG" -DCMAKE_DISABLE_FIND_PACKAGE_PNG=ON
  # without COMPONENTS, what cannot be used is left out
  has "$(configure all "" "-DCMAKE_DISABLE_FIND_PACKAGE_PNG=ON")" "Taper without its component exporter: "
else
  refuses "exporter" "but not exporter: that was not built"
fi

if has_component xnnpack; then
  configure xnnpack "module;xnnpack" "${without[@]}" >/dev/null
  cmake --build "$work/xnnpack" >/dev/null
  refuses "xnnpack" "Taper's component xnnpack needs packages that were not found: xnnpack" "-DTAPER_XNNPACK=$work/nowhere"
else
  refuses "xnnpack" "but not xnnpack: that was not built"
fi
if has_component xnnpack_exporter; then
  configure xnnpack_exporter "exporter;xnnpack_exporter" >/dev/null
  cmake --build "$work/xnnpack_exporter" --target xnnpack_exporter >/dev/null
  "$work/xnnpack_exporter/xnnpack_exporter" "$work/product.taper" >/dev/null
  has "$("$work/xnnpack/xnnpack" "$work/product.taper")" "3 7 11 3 7 11"
fi

# An app with a table of its kernels links those and no others; without one it links all.
if [ -x "$work/prefix/bin/taper" ]; then
  (cd "$work" && prefix/bin/taper export "$program" --target portable --kernels kernels.cpp --header program.h --name program >/dev/null)
  configure small module "${without[@]}" "-DKERNELS=$work/kernels.cpp" "-DCMAKE_CXX_FLAGS=-I$work" >/dev/null
  cmake --build "$work/small" >/dev/null
  check "$work/small/small"
  for name in small module; do
    strip -o "$work/$name.stripped" "$work/small/$name"
    echo "$name: $(stat -c %s "$work/$name.stripped") bytes"
  done
  [ "$(stat -c %s "$work/small.stripped")" -lt 300000 ] || fail "an app with a table of 5 kernels has 300 kB or more"
  nm -C "$work/small/small" >"$work/symbols"
  if grep -E "default_kernels|portable::all$|optimized::" "$work/symbols"; then
    fail "an app with a table of its own links the table of all kernels, or kernels that are not in it"
  fi
  nm -C "$work/small/module" >"$work/symbols"
  grep -q "default_kernels" "$work/symbols" || fail "default_kernels is not found where it is linked"
fi

PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name taper.pc)")
export PKG_CONFIG_PATH
# Word splitting is meant: pkg-config prints several flags.
# shellcheck disable=SC2046
"$compiler" -std=c++17 "$here/consumer/module.cpp" -o "$work/by_pkg_config" $(pkg-config --cflags --libs taper)
check "$work/by_pkg_config"
