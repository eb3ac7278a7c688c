#!/bin/sh
# finetune_lora and train_on_device write the same adapter, and it changes what the model writes. Both
# refuse what would train in vain:
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

# refuses MESSAGE COMMAND...: the command fails with this message, and leaves the files in $folder/kept
mkdir "$folder/kept"
cp "$model" "$folder/kept/model.gguf"
cp "$text" "$folder/kept/text.txt"
refuses() {
  message=$1
  shift
  if "$@" > "$folder/out.txt" 2>&1; then echo "not refused: $*"; exit 1; fi
  if ! grep -qF -- "$message" "$folder/out.txt"; then cat "$folder/out.txt"; echo "no such message: $message"; exit 1; fi
  cmp "$model" "$folder/kept/model.gguf"
  cmp "$text" "$folder/kept/text.txt"
  if [ "$(ls "$folder/kept" | wc -l)" -ne 2 ]; then echo "written: $*"; ls "$folder/kept"; exit 1; fi
}
cd "$folder/kept"
new=$folder/kept/new.gguf input="this is an input file; write to another file"
refuses "$input" "$finetune" model.gguf text.txt model.gguf --steps 2
refuses "$input" "$finetune" model.gguf text.txt "$folder/kept/../kept/text.txt" --steps 2
refuses "$input" "$finetune" model.gguf text.txt "$new" --program ./text.txt
refuses "must end with .taper" "$finetune" model.gguf text.txt "$new" --program new.gguf
refuses "a .gguf model needs an adapter in a .gguf file" "$finetune" model.gguf text.txt peft --steps 2
refuses "No such file or directory" "$finetune" model.gguf text.txt nowhere/new.gguf --steps 2
refuses "the training diverged at step 2; lower --rate" "$finetune" model.gguf text.txt "$new" --steps 3 --rate 1e30
refuses "the training diverged at step 1; lower --rate" "$finetune" model.gguf text.txt "$new" --steps 1 --rate 1e30
refuses "--rate takes a number, not inf" "$finetune" model.gguf text.txt "$new" --rate inf
cat text.txt text.txt text.txt text.txt text.txt > ../longer.txt
refuses "--context 600: the model has 512 positions" "$finetune" model.gguf ../longer.txt "$new" --context 600
for steps in abc -5 0 5x; do
  refuses "steps: a whole number from 1 on, not $steps" "$on_device" ../train.taper text.txt "$new" $steps
done
refuses "nowhere.txt: it cannot be read, or is empty" "$on_device" ../train.taper nowhere.txt "$new"
weights=$(dirname "$model")
refuses "a .gguf model needs an adapter in a .gguf file" "$on_device" ../train.taper text.txt peft 2 "$weights"
