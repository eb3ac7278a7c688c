#!/usr/bin/env bash
# test_install.sh BUILD_FOLDER COMPILER: installs the build and builds consumer/ from the installation, twice.
set -euo pipefail
build=$1 compiler=$2
consumer=$(cd "$(dirname "$0")" && pwd)/consumer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$consumer" -B "$work/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build"
"$work/build/consumer"

export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
# Word splitting is meant: pkg-config prints several flags.
# shellcheck disable=SC2046
"$compiler" -std=c++17 "$consumer/main.cpp" -o "$work/by_pkg_config" $(pkg-config --cflags --libs taper)
"$work/by_pkg_config"
