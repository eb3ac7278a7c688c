#!/usr/bin/env bash
# test_install.sh BUILD_FOLDER COMPILER: installs the build and builds consumer/ from the installation, twice; each runs a program.
set -euo pipefail
build=$1 compiler=$2
consumer=$(cd "$(dirname "$0")" && pwd)/consumer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

program=$(cd "$(dirname "$0")/../.." && pwd)/fuzz/corpus/program/convolution.taper

# check PROGRAM: it runs a Taper program, and says which file is missing.
check() {
  "$1" "$program"
  if message=$("$1" "$work/missing.taper" 2>&1); then
    echo "$1 ran a file that is missing" >&2
    exit 1
  fi
  case $message in
    *"missing.taper: No such file"*) ;;
    *) echo "$1 does not say that the file is missing: $message" >&2; exit 1 ;;
  esac
}

cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$consumer" -B "$work/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build"
check "$work/build/consumer"

PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name taper.pc)")
export PKG_CONFIG_PATH
# Word splitting is meant: pkg-config prints several flags.
# shellcheck disable=SC2046
"$compiler" -std=c++17 "$consumer/main.cpp" -o "$work/by_pkg_config" $(pkg-config --cflags --libs taper)
check "$work/by_pkg_config"
