#!/usr/bin/env python3
"""Runs the models of zoo.py through XNNPACK: which part of the multiplications it takes, and how far results are from PyTorch's.

    venv/bin/python tests/conformance/zoo_xnnpack.py [--only NAME] [--limit N] [--new] [--docs docs/models.md]

Each model is exported with fixed sizes, as zoo.py does it. Then `taper export --backend xnnpack` makes a program, and `taper check`
compares its calls with PyTorch's. Prints a line a model. Results are kept in --results with all that was left to the kernels, and
--docs writes a section of the page from them.
"""

import argparse
import collections
import json
import pathlib
import re
import shutil
import sys
import time
import warnings

import torch

import zoo
import zoo_models

HEADING = "## With XNNPACK"
WANTED = {"CNN": 99.0}  # percent of the multiplications; of other families:
WANTED_ELSE = 95.0


def placement_of(text):
    """What the report of an export says of the backend: share in percent, nodes, and what is left."""
    counts = re.search(r"xnnpack runs (\d+) nodes? in (\d+) delegates?, (\d+) left(?:; ([\d.]+) % of the multiplications)?", text)
    nodes, delegates, left = (int(n) for n in counts.groups()[:3])
    lines = re.findall(r"^ {4}(\d+) (\S+): (.*?) \(\2 at .*\)$", text, re.MULTILINE)
    return {
        "share": float(counts[4]) if counts[4] else None, "delegated": nodes, "delegates": delegates, "left_count": left,
        "left": [{"count": int(n), "operator": op, "reason": reason} for n, op, reason in lines],
    }


def row_of(model, exported, arguments):
    """One row of the results, from the files that zoo.py wrote."""
    row = {"model": model.name, "source": model.source, "family": model.family, "result": "", "reason": ""}
    if "failure" in exported:
        return row | {"result": "not exported", "reason": exported["failure"]}
    folder = arguments.folder
    program = folder / "xnnpack.taper"
    written = zoo.taper(arguments, "export", folder / "model.pt2", "-o", program, "--backend", "xnnpack", "--no-tests")
    if written.returncode != 0:
        return row | {"result": "refused", "reason": zoo.message_of(written)}
    row |= placement_of(written.stdout)
    checked = zoo.taper(arguments, "check", program, folder / "calls.safetensors", "--tolerance", str(zoo.TOLERANCE))
    row["error"] = max((float(e) for e in re.findall(r"(\S+) of the largest magnitude", checked.stdout)), default=0.0)
    if checked.returncode != 0:
        wrong = [line for line in checked.stdout.splitlines() if line.startswith("WRONG")]
        return row | {"result": "wrong" if wrong else "failed", "reason": (wrong[0] if wrong else zoo.message_of(checked))[:300]}
    return row | {"result": "passed"}


def wanted(row):
    return WANTED.get(row["family"], WANTED_ELSE)


def line_of(row):
    share = f"{row['share']:.1f} %" if row.get("share") is not None else "–"
    left = ", ".join(f"{n} {op}: {why}" for (op, why), n in left_of(row)[:3])
    return f"{row['model']:44} {row['result']:13} {row.get('error', 0):.1e} {share:8} {row['reason'][:110]} {left[:160]}"


def left_of(row):
    """Operators and reasons with their counts, the most frequent first."""
    counts = collections.Counter()
    for left in row.get("left", []):
        counts[left["operator"], left["reason"]] += left["count"]
    return counts.most_common()


# ---- the section of the page


def section(rows, listed):
    exported = [r for r in rows if r["result"] != "not exported"]
    passed = [r for r in rows if r["result"] == "passed"]
    shares = [r for r in passed if r.get("share") is not None]
    enough = [r for r in shares if r["share"] >= wanted(r)]
    lines = [
        HEADING,
        "",
        "The same definitions with fixed sizes, exported for [XNNPACK](delegates.md#xnnpack):",
        "",
        "<!-- test: commands exist -->",
        "```console",
        "$ python tests/conformance/zoo_xnnpack.py --docs docs/models.md",
        "```",
        "",
        f"{len(rows)} of the {listed} definitions have run, {len(exported)} have a `.pt2`, and {len(passed)} of these pass within"
        f" {zoo.TOLERANCE}. {len(shares)}",
        f"multiply matrices or images. XNNPACK takes at least {WANTED['CNN']:.0f} % of the multiplications of a CNN, or {WANTED_ELSE:.0f} %"
        f" of another one, in {len(enough)} of",
        "them. Transformers here have 12 positions and 32 features, so that attention is a larger share than in real ones.",
        "",
        "*share*: of the multiplications in XNNPACK. *delegates*: the instructions of XNNPACK. *left*: the calls that stay with kernels, and",
        "the most frequent of them.",
        "",
        zoo.table_row("model", "family", "error", "share", "delegates", "left", "most frequent"),
        "| --- | --- | --- | ---: | ---: | ---: | --- |",
    ]
    for r in exported:
        share = f"{r['share']:.1f} %" if r.get("share") is not None else ""
        most = "; ".join(f"{n} `{op}`" for (op, _), n in left_of(r)[:2])
        error = f"{r['error']:.1e}" if r["result"] == "passed" else r["result"]
        lines.append(zoo.table_row(zoo.short_name(r["model"]), r["family"], error, share, r.get("delegates", ""),
                                   r.get("left_count", ""), most))
    reasons = collections.Counter()
    for r in passed:
        if r.get("share") is not None and r["share"] < wanted(r):
            reasons.update({f"`{op}`: {why}": 1 for (op, why), _ in left_of(r) if op in MULTIPLYING})
    if reasons:
        lines += ["", "Why a share is lower:", "", zoo.table_row("call that multiplies, and why it is left", "models"), "| --- | ---: |"]
        lines += [zoo.table_row(what, n) for what, n in reasons.most_common()]
    return "\n".join(lines) + "\n"


MULTIPLYING = {
    "convolution", "linear", "addmm", "mm", "bmm", "matmul", "baddbmm", "scaled_dot_product_attention", "taper::attention", "einsum", "conv3d",
    "lstm.input", "gru.input", "_grouped_mm",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = zoo.ROOT
    parser.add_argument("--taper", default=root / "build/release/bin/taper", type=pathlib.Path)
    parser.add_argument("--only", action="append", default=[], help="a model; may be repeated")
    parser.add_argument("--limit", type=int, help="only the first models of the list")
    parser.add_argument("--timeout", type=int, default=60, help="seconds, for each export and check")
    parser.add_argument("--new", action="store_true", help="leave out what --results has")
    parser.add_argument("--results", default=root / "build/zoo/xnnpack.json", type=pathlib.Path)
    parser.add_argument("--folder", default=root / "build/zoo/xnnpack", type=pathlib.Path, help="files of the last model")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="keep the files of models whose share is too low, to look into")
    parser.add_argument("--docs", type=pathlib.Path, help="write the section of all results into this page")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)

    models = zoo_models.all_models()
    if unknown := set(arguments.only) - {m.name for m in models}:
        sys.exit("no such model: " + ", ".join(sorted(unknown)))
    chosen = [m for m in models if not arguments.only or m.name in arguments.only][: arguments.limit]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    results = {r["model"]: r for r in json.loads(arguments.results.read_text())} if arguments.results.exists() else {}
    for k, model in enumerate(chosen):
        if arguments.new and model.name in results:
            continue
        begin = time.time()
        row = row_of(model, zoo.export_in_child(model, "static", arguments.timeout, arguments.folder), arguments)
        results[model.name] = row
        print(f"{k + 1:4}/{len(chosen)} {line_of(row)} ({time.time() - begin:.1f} s)", flush=True)
        if arguments.keep and row.get("share") is not None and row["share"] < wanted(row):
            shutil.copytree(arguments.folder, arguments.keep / model.name.replace("/", "_"), dirs_exist_ok=True)
        arguments.results.write_text(json.dumps(list(results.values()), indent=1))
    if arguments.docs:
        rows = [results[m.name] for m in models if m.name in results]
        page = arguments.docs.read_text().partition(HEADING)[0].rstrip() + "\n\n"
        arguments.docs.write_text(page + section(rows, len(models)))
    counts = collections.Counter(results[m.name]["result"] for m in chosen if m.name in results)
    print(", ".join(f"{n} {what}" for what, n in counts.most_common()))
    sys.exit(1 if counts["wrong"] + counts["failed"] + counts["refused"] else 0)


if __name__ == "__main__":
    main()
