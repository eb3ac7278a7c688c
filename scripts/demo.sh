#!/usr/bin/env bash
# Trains LeNet on MNIST in C++, exports it, runs the file on the runtime, and classifies an image with the `taper` command.
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS

echo "== set-up"
scripts/setup.sh
echo "== build"
cmake --preset release >/dev/null
cmake --build --preset release --target train_lenet taper
out=build/release/demo
mkdir -p "$out"
echo "== train, export, run on the runtime"
build/release/bin/train_lenet tests/data/mnist "$out"
echo "== classify an image"
build/release/bin/taper run "$out/lenet.taper" --method forward --input tests/data/mnist/digit_7.png

size=$(stat -c %s "$out/lenet.taper")
echo "LeNet was trained, exported to $out/lenet.taper ($size bytes) and run without allocating ($((SECONDS - start)) s)."
