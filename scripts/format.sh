#!/usr/bin/env bash
# Formats the C++ files that git knows; with --check, lists those that differ and fails.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -z --cached --others --exclude-standard '*.h' '*.cpp' |
  if [ "${1:-}" = --check ]; then
    xargs -0 -r -n 16 -P "$(nproc)" clang-format-14 --dry-run -Werror
  else
    xargs -0 -r -n 16 -P "$(nproc)" clang-format-14 -i
  fi
