#!/bin/sh
# finetune_lora and train_on_device write the same adapter, and it changes what the model writes:
#
#   test.sh TAPER FINETUNE_LORA TRAIN_ON_DEVICE MODEL.gguf TEXT_FILE FOLDER
set -e
taper=$1 finetune=$2 on_device=$3 model=$4 text=$5 folder=$6
rm -rf "$folder" && mkdir -p "$folder"
"$finetune" "$model" "$text" "$folder/host.gguf" --steps 30 --rate 0.002 --context 64 --program "$folder/train.taper" > "$folder/host.txt"
"$on_device" "$folder/train.taper" "$text" "$folder/device.gguf" 30 "$(dirname "$model")" > "$folder/device.txt"
grep "^step" "$folder/host.txt" > "$folder/host_steps.txt"
cmp "$folder/host_steps.txt" "$folder/device.txt"
cmp "$folder/host.gguf" "$folder/device.gguf"
say() {
  TAPER_CACHE=off "$taper" generate "$model" --prompt "Little Tim" --greedy --max-tokens 24 "$@"
}
say > "$folder/before.txt"
say --lora "rhymes=$folder/host.gguf" --adapter rhymes > "$folder/after.txt"
if cmp -s "$folder/before.txt" "$folder/after.txt"; then echo "the adapter changes nothing"; exit 1; fi
cat "$folder/host.txt" "$folder/before.txt" "$folder/after.txt"
