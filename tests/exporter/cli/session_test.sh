#!/bin/sh
# What one process keeps in a session, another one goes on with.
#   session_test.sh TAPER STORIES.gguf FOLDER
set -eu
taper=$1 model=$2
cd "$(mktemp -d -p "$3")"
export TAPER_CACHE=off
generate() { "$taper" generate "$model" --prompt "Once upon a time" --greedy --json --statistics "$@"; }
ids() { sed 's/.*"ids":\(\[[^]]*\]\).*/\1/'; }
cached() { sed 's/.*"cached_tokens":\([0-9]*\).*/\1/'; }

generate --max-tokens 80 > whole.json
generate --max-tokens 10 --session s > first.json
generate --max-tokens 80 --session s > second.json
[ "$(ids < whole.json)" = "$(ids < second.json)" ]
[ "$(cached < first.json)" = 0 ]
[ "$(cached < second.json)" = 4 ]  # all but the last of 5 tokens

echo no session > s
if generate --session s 2> error; then exit 1; fi
grep "s: it is no session" error
