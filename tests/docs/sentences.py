#!/usr/bin/env python3
"""Lists the sentences of the pages that have more than 25 words. Code, tables and headings do not count."""
import re
import sys

import blocks

LIMIT = 25


def sentences_of(page):
    text = re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL)
    text = re.sub(r"^ *```.*?^ *```", "\n", text, flags=re.DOTALL | re.MULTILINE)
    lines = ("" if re.match(r"\s*[|#!]", line) else line for line in text.split("\n"))
    text = re.sub(r"\n\s*([-*]|\d+\.) ", "\n\n", "\n".join(lines))
    for paragraph in re.split(r"\n\s*\n", text):
        words = re.sub(r"`[^`]*`", "X", re.sub(r"\]\([^)]*\)", "]", " ".join(paragraph.split())))
        yield from re.split(r"(?<=[.:;!?])\s+", words)


def main():
    too_long = [(page.relative_to(blocks.ROOT), sentence) for page in blocks.pages()
                for sentence in sentences_of(page.read_text()) if len(sentence.split()) > LIMIT]
    for page, sentence in too_long:
        print(f"{page}: {len(sentence.split())} words: {sentence}", file=sys.stderr)
    return 1 if too_long else 0


if __name__ == "__main__":
    raise SystemExit(main())
