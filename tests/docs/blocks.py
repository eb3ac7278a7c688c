#!/usr/bin/env python3
"""Tests the code blocks of README.md, CONTRIBUTING.md, docs/*.md, and the READMEs of examples and test data.

    blocks.py extract FOLDER            writes the C++ blocks to FOLDER: code.cpp, and the files that blocks name
    blocks.py check                     every block has a language and keeps its rule; runs nothing
    blocks.py run PAGE --files FOLDER --bin FOLDER [--data FOLDER]
                                        runs the console and Python blocks of a page, in order, in a copy of --files
    blocks.py torch                     returns 77 and says so, if there is no torch, so that `run` leaves the Python blocks out

CONTRIBUTING.md, "Code in the pages", tells which rules there are. A rule is an HTML comment above its block:

    <!-- test: numbers vary
    cp digit.png picture.png
    -->

Its further lines are code that readers do not see. They come before the block: C++ before C++, shell before console.
"""
import argparse
import ast
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pages():
    folders = ("*.md", "docs/*.md", "examples/*/README.md", "examples/*/*/README.md",
               "tests/data/*/README.md")
    return [page for folder in folders for page in sorted(ROOT.glob(folder))]


@dataclasses.dataclass
class Block:
    page: str  # "docs/cli.md"
    line: int  # of the first line of code
    language: str
    rules: list  # "numbers vary", "needs pt2/lenet.pt2"
    hidden: list
    code: list

    def operand(self, word):
        """"pt2/lenet.pt2" of the rule "needs pt2/lenet.pt2", or None."""
        return next((rule.split(" ", 1)[1] for rule in self.rules if rule.split(" ")[0] == word), None)

    def __str__(self):
        return f"{self.page}:{self.line}"


class Failure(Exception):
    """What is wrong with a block, for a person."""


# ---- reading ----

def blocks_of(path):
    page = path.relative_to(ROOT).as_posix()
    blocks, comment, in_list, lines = [], None, False, path.read_text().split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if found := re.match(r"\s*<!-- test: ?(.*)", line):
            start, text = at, found[1]
            while "-->" not in lines[at]:
                at += 1
                if at == len(lines):
                    raise Failure(f"{page}:{start + 1}: the comment has no end")
                text += "\n" + lines[at]
            rule, *hidden = text.split("-->")[0].rstrip().split("\n")
            comment = ([r.strip() for r in rule.split(",") if r.strip()], hidden)
        elif fence := re.match(r"( *)```(.*)", line):
            indent, start = len(fence[1]), at + 1
            at += 1
            while lines[at].strip() != "```":
                at += 1
                if at == len(lines):
                    raise Failure(f"{page}:{start}: the block has no end")
            rules, hidden = comment or ([], [])
            blocks.append(Block(page, start + 1, fence[2].strip(), rules, [l[indent:] for l in hidden], [l[indent:] for l in lines[start:at]]))
            comment = None
        elif line.strip() and comment is not None:
            raise Failure(f"{page}:{at + 1}: a '<!-- test' comment stands directly above a block")
        elif line.startswith("    ") and lines[at - 1] == "" and not in_list:
            raise Failure(f"{page}:{at + 1}: code stands between ``` and ```, not behind four spaces")
        elif line and not line.startswith(" "):
            in_list = re.match(r"([-*]|\d+\.) ", line) is not None
        at += 1
    return blocks


# ---- C++ ----

def declarations_and_statements(lines, first_line):
    """(includes, declarations, statements), each a list of (line number, text).

    Includes, types, templates, functions and namespaces cannot stand in a function; all else is put into one."""
    includes, declarations, statements = [], [], []
    begins_declaration = re.compile(
        r"(struct|class|template|namespace|inline|alignas|extern)\b|#define|TAPER_OP\(|"
        r"(?!if|for|while|switch|else|return|do)[\w:<>&*, ]+ [&*]?\w+\([^;=]*\)( const)?( override)? \{")
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("#include"):
            includes.append((first_line + at, line))
        elif begins_declaration.match(line):
            depth = 0
            while True:
                declarations.append((first_line + at, lines[at]))
                depth += lines[at].count("{") - lines[at].count("}")
                if depth <= 0 and (lines[at].rstrip().endswith((";", "}")) or "};" in lines[at]) or at + 1 == len(lines):
                    break
                at += 1
        else:
            statements.append((first_line + at, line))
        at += 1
    return includes, declarations, statements


def numbered(lines, page):
    """The lines, with #line wherever they do not follow each other."""
    text, expected = "", None
    for number, line in lines:
        if number != expected:
            text += f'#line {number} "{page}"\n'
        text += line + "\n"
        expected = number + 1
    return text


def cpp_source(blocks):
    """One translation unit. A block is a test that runs it, or a function (rule `compile`)."""
    includes, body, at = {}, "", 0
    blocks = [b for b in blocks if b.language == "cpp" and not b.operand("file") and not b.operand("quotes")]
    while at < len(blocks):
        first = blocks[at]
        declarations, statements = [], []
        while True:
            block = blocks[at]
            for lines, number in ((block.hidden, block.line - 2 - len(block.hidden)), (block.code, block.line)):
                used, declared, stated = declarations_and_statements(lines, number)
                includes.update((line, None) for _, line in used)
                declarations += declared
                statements += stated
            at += 1
            if at == len(blocks) or blocks[at].page != first.page or blocks[at].rules != ["continues"]:
                break
        name = re.sub(r"\W", "_", first.page.removesuffix(".md").removeprefix("docs/"))
        head = f"void line_{first.line}()" if "compile" in first.rules else f"TEST(documentation, runs_{name}_line_{first.line})"
        body += f"""
namespace {name}_line_{first.line} {{
using namespace taper;
{numbered(declarations, first.page)}
{head} {{
{numbered(statements, first.page)}
}}
}}
"""
    return f"""// Written by tests/docs/blocks.py from the pages.
#include <gtest/gtest.h>
#include "taper/exporter/exporter.h"
#include "taper/runtime/extension/module/module.h"
{chr(10).join(includes)}
#pragma GCC diagnostic ignored "-Wunused-variable"  // pages name things to show them
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
{body}"""


def write_if_changed(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def extract(folder):
    blocks = [block for page in pages() for block in blocks_of(page)]
    for block in blocks:
        if name := block.operand("file"):
            write_if_changed(folder / name, "\n".join(block.code) + "\n")
    write_if_changed(folder / "code.cpp", cpp_source(blocks))


# ---- rules that run nothing ----

def check_quotes(block, files):
    """Each line of code stands in one of the files; spaces, line breaks and comments do not count."""
    def bare(text):
        return re.sub(r"\s", "", re.sub(r"(//|#).*", "", text))
    source = "".join(bare(line) for file in files for line in (ROOT / file).read_text().split("\n"))
    for line in block.code:
        for part in line.split("…"):
            if bare(part) not in source:
                raise Failure(f"{block}: '{part.strip()}' does not stand in {', '.join(files)}")


def check_commands_exist(block):
    """Programs, presets, scripts and their options are there; for commands that take too long or want a network."""
    for line in commands_of(block):
        for command in re.split(r"&&|\|\||;", line.split(" # ")[0]):
            words = [w for w in command.split() if not re.fullmatch(r"\w+=\S*", w)]
            if not words:
                continue
            program, *arguments = words
            if program in ("cmake", "ctest"):
                presets = json.loads((ROOT / "CMakePresets.json").read_text())
                names = {p["name"] for kind in ("configurePresets", "buildPresets", "testPresets") for p in presets[kind]}
                for option, value in zip(arguments, arguments[1:]):
                    if option == "--preset" and value not in names:
                        raise Failure(f"{block}: there is no preset '{value}'")
                    if option == "--toolchain" and not (ROOT / value).is_file():
                        raise Failure(f"{block}: there is no '{value}'")
                continue
            if program in ("python", "python3", "bash", "sh"):
                program, *arguments = arguments
            if program.startswith("build/"):
                target = pathlib.Path(program).name
                if not any(re.search(rf"\b{target}\b", c.read_text()) for c in ROOT.glob("*/**/CMakeLists.txt") if "build" not in c.parts):
                    raise Failure(f"{block}: nothing builds '{program}'")
            elif not (ROOT / program).is_file():
                raise Failure(f"{block}: there is no '{program}'")
            else:
                text = (ROOT / program).read_text()
                for option in arguments:
                    if option.startswith("--") and option.split("=")[0] not in text:
                        raise Failure(f"{block}: {program} has no option '{option}'")


def check_python(block):
    try:
        ast.parse("\n".join(block.code))
    except SyntaxError as error:
        raise Failure(f"{block}: {error}") from error


def check_cmake(block):
    with tempfile.NamedTemporaryFile("w", suffix=".cmake") as file:
        file.write("if(FALSE)\n" + "\n".join(block.code) + "\nendif()\n")
        file.flush()
        parsed = subprocess.run(["cmake", "-P", file.name], capture_output=True, text=True)
    if parsed.returncode:
        raise Failure(f"{block}: {parsed.stderr}")


RULES = {
    "cpp": {"compile", "continues", "file", "quotes"},
    "python": {"parse"},
    "cmake": {"quotes"},
    "console": {"commands exist", "numbers vary", "needs"},
    "text": {"file", "quotes"},
}


def check(block):
    if block.language not in RULES:
        raise Failure(f"{block}: the language '{block.language}' is none of {', '.join(RULES)}, so nothing tests the block")
    for rule in block.rules:
        if rule not in RULES[block.language] and rule.split(" ")[0] not in RULES[block.language]:
            raise Failure(f"{block}: the rules of a block in '{block.language}' are {', '.join(RULES[block.language])}, not '{rule}'")
    if files := block.operand("quotes"):
        check_quotes(block, files.split())
    elif name := block.operand("file"):
        if f"${{blocks}}/{name}" not in (ROOT / "tests/docs/CMakeLists.txt").read_text():
            raise Failure(f"{block}: nothing in tests/docs/CMakeLists.txt uses {name}")
    elif "commands exist" in block.rules:
        check_commands_exist(block)
    elif block.language == "console":
        if not block.code or not block.code[0].startswith("$ "):
            raise Failure(f"{block}: a console block begins with '$ COMMAND'")
    elif block.language == "python":
        check_python(block)
    elif block.language == "cmake":
        check_cmake(block)
    elif block.language == "text":
        if any(line.startswith(("$ ", "taper ")) for line in block.code):
            raise Failure(f"{block}: commands stand in a block of the language 'console', which is run")


# ---- running ----

def commands_of(block):
    """The commands of a console block as one line each."""
    return [command for command, _ in commands_with_output(block)]


def commands_with_output(block):
    commands, continued = [], False
    for line in block.code:
        if continued:
            commands[-1][0] += " " + line.strip().removesuffix("\\").rstrip()
            continued = line.endswith("\\")
        elif line.startswith("$ ") or not commands or "commands exist" in block.rules:
            commands.append([line.removeprefix("$ ").removesuffix("\\").rstrip(), []])
            continued = line.endswith("\\")
        elif line.strip():
            commands[-1][1].append(line)
    return commands


NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def same(shown, got, numbers_vary):
    """Spaces count as one; a number with a fraction may be 2 % off, and any number anything if numbers vary; "…" is any text."""
    shown, got = " ".join(shown.split()), " ".join(got.split())
    pattern, last = "", 0
    for number in NUMBER.finditer(shown):
        pattern += re.escape(shown[last:number.start()]) + "(" + NUMBER.pattern + ")"
        last = number.end()
    pattern += re.escape(shown[last:])
    found = re.fullmatch(pattern.replace("…", ".*"), got)
    if not found:
        return False
    for want, have in zip(NUMBER.findall(shown), found.groups()):
        is_fraction = "." in want or "e" in want
        if not numbers_vary and have != want and not (is_fraction and abs(float(have) - float(want)) <= 0.02 * float(want)):
            return False
    return True


def check_output(block, command, shown, got):
    """The lines that are shown come first and in this order; a line "…" stands for any lines."""
    lines, skips = [line for line in got.split("\n") if line.strip()], False
    for line in shown:
        if line.strip() == "…":
            skips = True
            continue
        while lines and not same(line, lines[0], "numbers vary" in block.rules):
            if not skips:
                raise Failure(f"{block}: '{command}' should print\n    {line}\nbut prints\n    {lines[0]}\nof\n{got}")
            lines.pop(0)
        if not lines:
            raise Failure(f"{block}: '{command}' does not print '{line}', but\n{got}")
        lines.pop(0)
        skips = False


def run_shell(block, script, folder, environment):
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, env=environment, text=True, timeout=240,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise Failure(f"{block}: '{script}' returns {done.returncode}\n{done.stdout}")
    return done.stdout


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


def pages_with_python():
    return [str(page.relative_to(ROOT)) for page in pages() if any(b.language == "python" and "parse" not in b.rules for b in blocks_of(page))]


def run_page(page, arguments):
    """Prints what was left out, and why."""
    blocks = [b for b in blocks_of(ROOT / page) if b.language in ("console", "python") and not {"parse", "commands exist"} & set(b.rules)]
    runs_python = any(b.language == "python" for b in blocks) and has_torch(arguments.python)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "page"
        shutil.copytree(arguments.files, folder, copy_function=shutil.copyfile)
        (folder / "build/release").mkdir(parents=True)
        (folder / "build/release/bin").symlink_to(arguments.bin.resolve())
        for name in ("tests", "examples"):
            (folder / name).symlink_to(ROOT / name)
        environment = os.environ | {
            "PATH": f"{arguments.bin.resolve()}:{os.environ['PATH']}", "DATA": str(arguments.data or ""), "LC_ALL": "C.UTF-8"}
        for block in blocks:
            if block.language == "python":
                if not runs_python:
                    print(f"{block}: parsed only, {arguments.python} has no torch")
                    continue
                code = "\n".join(block.hidden + block.code)
                run_shell(block, f"{arguments.python} - <<'END'\n{code}\nEND", folder, environment)
            else:
                if (needed := block.operand("needs")) and not os.path.exists(os.path.join(arguments.data or "/nowhere", needed)):
                    print(f"{block}: left out, there is no {needed}")
                    continue
                if block.hidden:
                    run_shell(block, "\n".join(block.hidden), folder, environment)
                for command, shown in commands_with_output(block):
                    check_output(block, command, shown, run_shell(block, command, folder, environment))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("extract").add_argument("folder", type=pathlib.Path)
    commands.add_parser("check")
    commands.add_parser("torch").add_argument("--python", default=os.environ.get("TAPER_PYTHON", sys.executable))
    run = commands.add_parser("run")
    run.add_argument("page")
    run.add_argument("--files", type=pathlib.Path, required=True, help="the folder that a page finds")
    run.add_argument("--bin", type=pathlib.Path, required=True, help="the folder of the command taper")
    run.add_argument("--data", help="the folder TAPER_GOLDEN_DATA, if there is one")
    run.add_argument("--python", default=os.environ.get("TAPER_PYTHON", sys.executable), help="runs the Python blocks if it has torch")
    arguments = parser.parse_args()

    failures = []
    try:
        if arguments.command == "extract":
            extract(arguments.folder)
        elif arguments.command == "torch":
            if not has_torch(arguments.python):
                print(f"blocks.py:1: Skipped\n{arguments.python} has no torch, so the Python blocks of "
                      f"{', '.join(pages_with_python())} did not run; TAPER_PYTHON may name a Python that has it")
                return 77
        elif arguments.command == "run":
            run_page(arguments.page, arguments)
        else:
            for page in pages():
                for block in blocks_of(page):
                    try:
                        check(block)
                    except Failure as failure:
                        failures.append(str(failure))
    except Failure as failure:
        failures.append(str(failure))
    print(*failures, sep="\n", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
