#!/usr/bin/env bash
# Exports a model that PyTorch trained, and says what is on a photograph.
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS

echo "== set-up"
scripts/setup.sh
echo "== build the command taper: importer, exporter, runtime and all kernels"
scripts/build.sh release taper
out=build/release/demo model=examples/classify
mkdir -p "$out"
echo "== export squeezenet1_1.pt2"
build/release/bin/taper export "$model/squeezenet1_1.pt2" -o "$out/squeezenet.taper"
for picture in dog.jpg cat_285.png; do
  echo "== what is on $picture"
  build/release/bin/taper run "$out/squeezenet.taper" --input "$model/$picture" --resize 227 --crop 227 --bgr \
    --mean 0.40784,0.45882,0.48235 --std 0.00392157 --labels "$model/imagenet_labels.txt"
done

size=$(stat -c %s "$out/squeezenet.taper")
echo "SqueezeNet was exported to $out/squeezenet.taper ($size bytes) and run ($((SECONDS - start)) s)."
