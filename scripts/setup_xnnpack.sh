#!/usr/bin/env bash
# Builds XNNPACK (git 4ea82e5, November 2024) from Debian's source, with headers, as static libraries.
#
#   scripts/setup_xnnpack.sh [PREFIX] [arm64]
#
# PREFIX: where to install; default: a folder of the version and the processor in $TAPER_CACHE, or in ~/.cache/taper, where CMake looks.
# Takes minutes once, and does nothing if the version is there. Needs dpkg-dev, xz-utils, cmake, ninja and gcc 12 or newer
# (arm64: g++-aarch64-linux-gnu). Sources come from the mirror that apt uses, and are compared with their SHA-256.
set -euo pipefail

version=4ea82e5
[ "${1:-}" != arm64 ] || set -- "" arm64
target=${2:-native}
machine=$(uname -m)
[ "$target" != arm64 ] || machine=aarch64
cache=${TAPER_CACHE:-off}
[ "$cache" != off ] || cache=${XDG_CACHE_HOME:-$HOME/.cache}/taper
prefix=$(realpath -m "${1:-$cache/xnnpack-$version-$machine}")

# suite, source package, its tarball's SHA-256, the folder to unpack to, path components to drop
sources=(
  "trixie xnnpack 90bde2caef0f880f627bab0dc805a86c4b8070cd98e3243db3046ab3f3be1a99 XNNPACK 0"
  "trixie pthreadpool 4cc3cbd933b28131d2a34edc54f76af9fb41bc490af5eae1a5bd3cd07ea90708 pthreadpool 1"
  "trixie fxdiv 7953482badaf4cb34026c3487c257b8e4ab2df061c019bd6fabbbc12ad52c44b fxdiv 1"
)
stamp=$(printf '%s\n' "${sources[@]}" "$target 3" | sha256sum | cut -d' ' -f1)
exit_if_up_to_date() {
  if [ -f "$prefix/stamp" ] && [ "$(cat "$prefix/stamp")" = "$stamp" ]; then
    echo "setup_xnnpack: $prefix is up to date"
    exit 0
  fi
}
exit_if_up_to_date
for tool in cmake ninja dpkg-source xz flock; do
  command -v "$tool" >/dev/null || { echo "setup_xnnpack: $tool is missing" >&2; exit 1; }
done

work=$cache/build-xnnpack-$machine  # always the same, so that ccache knows the files again
mkdir -p "$cache"
exec 9>"$work.lock"
flock --nonblock 9 || { echo "setup_xnnpack: waits for another one that builds in $work"; flock 9; }
exit_if_up_to_date
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
# the first mirror of apt's lists, in their old form or the new one
lists=(/etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources)
mirror=$({ cat "${lists[@]}" 2>/dev/null || true; } |
  sed -nE 's/^URIs:[[:space:]]*//p; s/^deb[[:space:]]+(\[[^]]*\][[:space:]]+)?(http[^[:space:]]+).*/\2/p' | sed -n 1p)
[ -n "$mirror" ] || { echo "setup_xnnpack: apt has no mirror" >&2; exit 1; }

# apt with lists of its own for one suite; the system's lists stay as they are
apt_of() {
  local suite=$1 folder=$work/apt-$1
  shift
  mkdir -p "$folder"/lists/partial "$folder"/cache/archives/partial
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$folder/sources"
  apt-get -qq -o Dir::Etc::SourceList="$folder/sources" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists="$folder/lists" -o Dir::Cache="$folder/cache" -o APT::Sandbox::User=root "$@"
}

# download SUITE PACKAGE FOLDER COMPONENTS SHA: unpacks the upstream tarball; any SHA if it is "-"
download() {
  local suite=$1 package=$2 folder=$3 components=$4 sha=$5
  [ -d "$work/apt-$suite" ] || apt_of "$suite" update
  mkdir -p "$work/$folder.tar" "$work/$folder"
  (cd "$work/$folder.tar" && apt_of "$suite" source --tar-only --download-only "$package")
  local tarball
  tarball=$(find "$work/$folder.tar" -name '*.orig.tar.*' | head -1)
  [ "$sha" = - ] || echo "$sha  $tarball" | sha256sum -c --quiet
  tar -C "$work/$folder" --strip-components="$components" -xf "$tarball"
}

for line in "${sources[@]}"; do
  read -r suite package sha folder components <<<"$line"
  download "$suite" "$package" "$folder" "$components" "$sha"
done
# the mirror may have only sid's cpuinfo; any since 2023 fits
download trixie cpuinfo cpuinfo 1 - 2>/dev/null || download sid cpuinfo cpuinfo 1 -

# Kernels compute up to 16 rows at a time. They read the scales of rows that do not exist, which must be copies of the last one.
sed -i 's/\(#define XNN_EXTRA_QUANTIZATION_PARAMS\) 10$/\1 16/' "$work/XNNPACK/include/xnnpack.h"
grep -q 'XNN_EXTRA_QUANTIZATION_PARAMS 16' "$work/XNNPACK/include/xnnpack.h"

# AVX512-FP16: this version's products store columns 32 to 63 of 64 beside column 0 (src/f16-gemm, src/f16-igemm: `c0 + 1` for `c0 + 32`).
# Without these kernels such processors compute f16 as all others with AVX2 do.
cross=()
if [ "$target" = arm64 ]; then
  cross=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_ASM_COMPILER=aarch64-linux-gnu-gcc)
fi
if command -v ccache >/dev/null; then
  cross+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cmake -S "$work/XNNPACK" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
  -DCMAKE_INSTALL_PREFIX="$work/installed" -DCMAKE_INSTALL_LIBDIR=lib -DXNNPACK_LIBRARY_TYPE=static \
  -DXNNPACK_BUILD_ALL_MICROKERNELS=OFF -DXNNPACK_BUILD_TESTS=OFF -DXNNPACK_BUILD_BENCHMARKS=OFF \
  -DXNNPACK_ENABLE_KLEIDIAI=OFF -DXNNPACK_ENABLE_AVX512FP16=OFF -DCPUINFO_LIBRARY_TYPE=static -DPTHREADPOOL_LIBRARY_TYPE=static \
  -DCPUINFO_SOURCE_DIR="$work/cpuinfo" -DPTHREADPOOL_SOURCE_DIR="$work/pthreadpool" \
  -DFXDIV_SOURCE_DIR="$work/fxdiv" "${cross[@]}" >"$work/cmake.log" || { cat "$work/cmake.log" >&2; exit 1; }
cmake --build "$work/build"

mkdir -p "$work/installed/lib" "$work/installed/include" "$work/installed/licenses"
cp "$work/build/libXNNPACK.a" "$work/installed/lib/"
cp "$work/build/libmicrokernels-prod.a" "$work/installed/lib/libxnnpack-microkernels-prod.a"
cp "$work/build/cpuinfo/libcpuinfo.a" "$work/installed/lib/"
cp "$work/XNNPACK/include/xnnpack.h" "$work/pthreadpool/include/pthreadpool.h" "$work/installed/include/"
for part in XNNPACK pthreadpool cpuinfo fxdiv; do cp "$work/$part/LICENSE" "$work/installed/licenses/$part"; done
echo "$stamp" >"$work/installed/stamp"
rm -rf "$prefix"
mkdir -p "$(dirname "$prefix")"
mv "$work/installed" "$prefix"
echo "setup_xnnpack: installed in $prefix"
