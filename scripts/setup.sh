#!/usr/bin/env bash
# setup.sh [PACKAGE…]: installs what a bare Debian 12 lacks to build and test Taper, and these packages. Quick when nothing is missing.
set -euo pipefail

packages=(
  build-essential cmake ninja-build ccache pkgconf git python3
  libflatbuffers-dev flatbuffers-compiler     # the file format
  libhwy-dev                                  # SIMD kernels
  nlohmann-json3-dev libcli11-dev libpng-dev libturbojpeg0-dev zlib1g-dev libminizip-dev
  libpcre2-dev libutf8proc-dev                # text for language models
  libcpp-httplib-dev                          # the server for them
  libgtest-dev libgmock-dev libbenchmark-dev
  dpkg-dev xz-utils                           # the sources of XNNPACK
  clang-14 lld-14 libclang-rt-14-dev clang-format-14  # fuzzers, formatting
)

# those of another architecture, as test_arm64.sh installs them, do not count
native=$(dpkg --print-architecture)
missing=()
for package in "${packages[@]}" "$@"; do
  status=$(dpkg-query --show --showformat='${Architecture} ${db:Status-Status}\n' "$package" 2>/dev/null || true)
  grep -qxE "(all|$native) installed" <<<"$status" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: nothing is missing"
else
  as_root=(env DEBIAN_FRONTEND=noninteractive)
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup: run as root, or install sudo; missing: ${missing[*]}" >&2; exit 1; }
    as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
  fi
  echo "setup: installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  echo "setup: installed ${#missing[@]} packages"
fi

# Taper builds and passes its tests without it. TAPER_SETUP_XNNPACK=off leaves it out.
[ "${TAPER_SETUP_XNNPACK:-on}" = off ] || "$(dirname "$0")/setup_xnnpack.sh" || echo "setup: without XNNPACK; the delegate is left out"
