#!/bin/sh
# test.sh TAPER CHAT FOLDER QUESTION: gives the golden model smollm a word for each token, exports it and asks the question.
# Run in the folder of golden data.
set -e
taper=$1 chat=$2 folder=$3
mkdir -p "$folder"
cp hf_tiny/smollm/config.json hf_tiny/smollm/model.safetensors "$folder"
words=$(for i in $(seq 0 255); do printf '"t%d": %d, ' "$i" "$i"; done)
printf '{"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {"type": "WordLevel", "vocab": {%s}, "unk_token": "t0"}}' \
  "${words%, }" > "$folder/tokenizer.json"
printf '{%% for m in messages %%}{{ m.content }} {%% endfor %%}' > "$folder/chat_template.jinja"
"$taper" export "$folder" -o "$folder/talking.taper" --context 64
echo "$4" | "$chat" "$folder/talking.taper"
