#!/usr/bin/env python3
"""Runs public model definitions through Taper: exported, imported, compared with PyTorch, and counted.

    python3 -m venv venv && venv/bin/pip install torch torchvision timm transformers safetensors numpy
    venv/bin/python tests/conformance/zoo.py [--only NAME] [--limit N] [--mode static] [--docs docs/models.md]

Each model gets random weights of a sane scale, is exported by torch.export, and two or three calls of it are recorded. Then
`taper export` makes a program of it and `taper check` compares the calls. A model runs up to three times: with fixed sizes, with
a symbolic batch, and (text) with a symbolic length. Each run is a process of its own with a time limit. Prints a line a run;
results are kept in --results, and --docs writes the page from all that are there.
"""

import argparse
import collections
import contextlib
import importlib.metadata
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import time
import traceback
import warnings

import torch
from safetensors.torch import save_file
from torch import nn

import zoo_models
import zoo_parts

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODES = ("static", "batch", "sequence")
LARGEST = {"batch": 8, "sequence": 32}  # maxima of the symbols
CALLED = {"batch": [1, 5], "sequence": [7, 32]}  # sizes of the further calls
TOLERANCE = 1e-3
LOOSE_ARENA = 0.03  # above the lower bound


# ---- in the process of a model


def settle(module, inputs):
    """Random weights as a trained model could have them: no constant vectors, and normalizations that know their data."""
    with torch.no_grad():
        for p in module.parameters():
            # gains of 1e-6 and layers that start at zero would hide what they multiply
            if p.is_floating_point() and p.numel() > 1 and p.min() == p.max():
                if p.abs().max() < 0.1 and p.dim() > 1:
                    p.normal_(std=0.05)
                else:
                    p.add_(0.1 * torch.randn_like(p))
        module.eval()
        norms = [m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        for norm in norms:
            norm.train()
        if norms:
            for _ in range(3):
                with contextlib.suppress(ValueError):  # one value a channel
                    module(*[torch.randn_like(x) if x.is_floating_point() else x for x in inputs])
        module.eval()


def resized(example, mode, size):
    """The example's inputs with another batch or length; rows are repeated, and floats disturbed."""
    inputs = []
    for i, x in enumerate(example.inputs):
        dim = 0 if mode == "batch" else example.sequence[i]
        if dim is not None:
            x = x.index_select(dim, torch.arange(size) % x.shape[dim])
        inputs.append(x + 0.1 * torch.randn_like(x) if x.is_floating_point() else x)
    return inputs


def dynamic_shapes(example, mode):
    if mode == "static":
        return None
    dim = torch.export.Dim(mode, min=1, max=LARGEST[mode])
    at = [0 if mode == "batch" else example.sequence[i] for i in range(len(example.inputs))]
    shapes = tuple({} if d is None else {d: dim} for d in at)
    return (shapes,) if isinstance(example.module, zoo_parts.Named) else shapes


def varied_example(model):
    """The model with the first weights whose floating results are not constant: those say nothing (a last ReLU of negatives).

    Some definitions return a constant beside their results. So one that varies is enough if no weights vary all.
    """
    for seed in range(8):
        torch.manual_seed(seed)
        example = model.make()
        settle(example.module, example.inputs)
        with torch.no_grad():
            results = zoo_parts.tensors_of(example.module(*example.inputs))
        varied = [bool(y.max() > y.min()) for y in results if y.is_floating_point() and y.numel() > 1]
        if all(varied) and example.is_clear(results):
            return example
    if any(varied):
        return example
    raise ValueError("a result is constant, whatever the weights")


def export(example, shapes):
    """An exported program, made in the first way that works, as a user would try them.

    PyTorch cannot solve some conditions on symbolic sizes, and can leave them to the run. Where Python decides by a number, such
    as `len` of a symbolic size, PyTorch can follow the bytecode.
    """
    call = dict(args=tuple(example.inputs), dynamic_shapes=shapes)
    try:
        return torch.export.export(example.module, strict=False, **call)
    except Exception as first:
        for way in (dict(strict=False, prefer_deferred_runtime_asserts_over_guards=True), dict(strict=True)):
            with contextlib.suppress(Exception):
                return torch.export.export(example.module, **call, **way)
        raise first


def accepts(program, inputs):
    """Whether the program that PyTorch exported runs. It may hold conditions that the model does not, such as whole chunks."""
    try:
        program.module()(*inputs)
    except (AssertionError, RuntimeError):
        return False
    return True


def disturbed(example):
    """A call of the same sizes, with clear results if there is one among a few."""
    for _ in range(8):
        inputs = resized(example, "batch", example.inputs[0].shape[0])
        if example.is_clear(zoo_parts.tensors_of(example.module(*inputs))):
            break
    return inputs


def record(model, mode, folder):
    """Exports and writes the files; gives what is known of the graph."""
    example = varied_example(model)
    shapes = dynamic_shapes(example, mode)
    with torch.no_grad():
        program = export(example, shapes)
        torch.export.save(program, folder / "model.pt2")
        calls = [example.inputs]
        if shapes:
            calls += [c for c in (resized(example, mode, n) for n in CALLED[mode]) if accepts(program, c)]
        else:
            calls.append(disturbed(example))
        tensors = {}
        for k, inputs in enumerate(calls):
            for i, x in enumerate(inputs):
                tensors[f"set{k}.input.{i}"] = x.clone().contiguous()
            for i, y in enumerate(zoo_parts.tensors_of(example.module(*inputs))):
                tensors[f"set{k}.output.{i}"] = y.clone().contiguous()
    save_file(tensors, folder / "calls.safetensors")
    names = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    return {"nodes": len(names), "operators": len(set(names)), "parameters": sum(p.numel() for p in example.module.parameters())}


def record_in_child(model, mode, folder):
    with open(folder / "log.txt", "w") as log:
        os.dup2(log.fileno(), 1), os.dup2(log.fileno(), 2)
        try:
            result = record(model, mode, folder)
        except BaseException as e:
            lines = [line.strip() for line in str(e).splitlines() if line.strip()] or [""]
            result = {"failure": f"{type(e).__name__}: {' '.join(lines)[:300]}"}
            traceback.print_exc()
    (folder / "result.json").write_text(json.dumps(result))


# ---- in the parent


def taper(arguments, *command):
    try:
        return subprocess.run([arguments.taper, *command], capture_output=True, text=True, timeout=arguments.timeout)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"longer than {arguments.timeout} s")


def message_of(run):
    """What Taper says, without the names of files."""
    text = " ".join(line.strip() for line in run.stderr.strip().splitlines())
    text = re.sub(r"\S*/(model\.(pt2|taper)|calls\.safetensors)", r"\1", text)
    if run.returncode < 0:
        text = f"signal {-run.returncode} " + text
    return text[:600] or f"exit code {run.returncode}"


def export_in_child(model, mode, timeout, folder):
    """Writes the files of a run, and gives what is known of the graph, or `failure`."""
    for old in folder.iterdir():
        old.unlink()
    child = multiprocessing.get_context("fork").Process(target=record_in_child, args=(model, mode, folder))
    child.start()
    child.join(timeout)
    if child.is_alive():
        child.kill()
        child.join()
        return {"failure": f"torch.export takes longer than {timeout} s"}
    report = folder / "result.json"
    return json.loads(report.read_text()) if report.exists() else {"failure": f"the process ended with {child.exitcode}"}


def row_of(model, mode, exported, arguments, folder):
    """One row of the results, from the files of a run."""
    row = {"model": model.name, "source": model.source, "family": model.family, "mode": mode, "result": "", "reason": ""}
    if "failure" in exported:
        return row | {"result": "not exported", "reason": exported["failure"]}
    row |= exported
    written = taper(arguments, "export", folder / "model.pt2", "-o", folder / "model.taper")
    if written.returncode != 0:
        return row | {"result": "refused", "reason": message_of(written)}
    method = json.loads(taper(arguments, "inspect", folder / "model.taper", "--json").stdout)["methods"][0]
    memory = method["memory"]
    row |= {"instructions": method["instructions"], "kernels": len(method["operators"])}
    row |= {"arena": memory["activations"], "arena_bound": memory["activations_lower_bound"]}
    checked = taper(arguments, "check", folder / "model.pt2", folder / "calls.safetensors", "--tolerance", str(TOLERANCE))
    errors = [float(e) for e in re.findall(r"(\S+) of the largest magnitude", checked.stdout)]
    row |= {"error": max(errors, default=0.0)}
    if checked.returncode != 0:
        wrong = [line for line in checked.stdout.splitlines() if line.startswith("WRONG")]
        return row | {"result": "wrong" if wrong else "failed", "reason": (wrong[0] if wrong else message_of(checked))[:300]}
    return row | {"result": "passed"}


def above_bound(row):
    """How far the arena is above the lower bound, as a share of the bound."""
    return row["arena"] / max(row["arena_bound"], 1) - 1


def modes_of(model, chosen):
    """Which runs a model has; an entry knows only when made, so text families stand here."""
    text = model.family in ("text encoder", "decoder", "encoder-decoder")
    one_size = model.family in ("optical flow", "detector")
    return [m for m in MODES if (not chosen or m in chosen) and (m != "sequence" or text) and (m != "batch" or not one_size)]


def line_of(row):
    error = f"{row['error']:.1e}" if row.get("error") is not None else ""
    return f"{row['model']:44} {row['mode']:9} {row['result']:13} {error:8} {row['reason'][:110]}"


# ---- the page


def size_text(count):
    for unit in ("B", "kB", "MB"):
        if count < 1000 or unit == "MB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000


TITLES = {"static": "fixed sizes", "batch": "symbolic batch", "sequence": "symbolic length"}
KINDS = {  # heading of the failures, and how the table of counts calls them
    ("refused",): "Taper refuses",
    ("wrong", "failed"): "Wrong, or failed while running",
    ("not exported",): "Not exported",
}


def page_head(ran, listed):
    libraries = [f"{p} {importlib.metadata.version(p).split('+')[0]}" for p in ("torchvision", "timm", "transformers")]
    return f"""# Models

These are public model definitions of torchvision, timm and transformers. A script runs them through `torch.export`, `taper export` and
`taper check`:

<!-- test: commands exist -->
```console
$ python tests/conformance/zoo.py --docs docs/models.md
```

It used PyTorch {torch.__version__.split('+')[0]}, {', '.join(libraries)}. The definition is tested, not a trained model: weights
are random, images are small where the definition allows it, and transformers have few and narrow layers.

| column | shows |
| --- | --- |
| nodes, operators | of the exported graph; *operators* counts different ones |
| instructions, arena | of the program that `taper export` made, with fixed sizes if that run succeeded; the arena is the memory of activations |
| fixed, batch, length | the largest difference from PyTorch, relative to the largest magnitude of that result |

Each run makes two calls, or three with different sizes. It passes within {TOLERANCE}. Fixed sizes are a batch of {zoo_parts.BATCH}
and texts of {zoo_parts.SEQUENCE}. A symbolic batch goes up to {LARGEST['batch']}, a symbolic length up to {LARGEST['sequence']}.
A call is left out if the program that PyTorch exported refuses its size.
An empty cell was not run. {ran} of the {listed} definitions of the list have run.

*Not exported* means that there is no `.pt2`. The reason may be that the definition fails with random weights or with these libraries,
that `torch.export` refuses it, or that it takes too long.
"""


def write_page(path, rows, order):
    rows = sorted((r for r in rows if r["model"] in order), key=lambda r: (order[r["model"]], MODES.index(r["mode"])))
    by_model = collections.defaultdict(dict)
    for row in rows:
        by_model[row["model"]][row["mode"]] = row
    lines = [
        page_head(len(by_model), len(order)),
        table_row("run", "models", "passed", *KINDS.values()),
        "| --- |" + " ---: |" * (2 + len(KINDS)),
    ]
    for mode in MODES:
        results = [r["result"] for r in rows if r["mode"] == mode]
        failures = [sum(r in kind for r in results) for kind in KINDS]
        lines.append(table_row(TITLES[mode], len(results), results.count("passed"), *failures))
    lines += [
        "",
        table_row("model", "source", "family", "nodes", "operators", "instructions", "arena", "fixed", "batch", "length"),
    ]
    lines += ["| --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- | --- |"]
    lines += [model_row(name, runs) for name, runs in by_model.items()]
    for kind, title in KINDS.items():
        failed = [r for r in rows if r["result"] in kind]
        if failed:
            lines += ["", f"## {title}", "", table_row("model", "run", "reason"), "| --- | --- | --- |"]
            lines += [table_row(short_name(r["model"]), TITLES[r["mode"]], cell(r["reason"])) for r in failed]
    # zoo_xnnpack.py writes the last section
    _, heading, section = path.read_text().partition("## With XNNPACK") if path.exists() else ("", "", "")
    path.write_text("\n".join(lines) + "\n" + (f"\n{heading}{section}" if heading else ""))


def model_row(name, runs):
    known = next((r for r in runs.values() if "arena" in r), None) or next((r for r in runs.values() if "nodes" in r), {})
    any_run = next(iter(runs.values()))
    counts = [known.get(k, "") for k in ("nodes", "operators", "instructions")]
    arena = size_text(known["arena"]) if "arena" in known else ""
    return table_row(
        short_name(name), any_run["source"], any_run["family"], *counts, arena, *[outcome(runs.get(m)) for m in MODES]
    )


def outcome(row):
    if row is None:
        return ""
    return f"{row['error']:.1e}" if row["result"] == "passed" else row["result"]


def table_row(*cells):
    return "| " + " | ".join(str(c) for c in cells) + " |"


def short_name(name):
    return name.removeprefix("timm/")


def cell(text):
    return "`" + text.replace("|", "\\|").replace("`", "'")[:260] + "`"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--taper", default=ROOT / "build/release/bin/taper", type=pathlib.Path)
    parser.add_argument("--only", action="append", default=[], help="a model; may be repeated")
    parser.add_argument("--mode", action="append", default=[], choices=MODES, help="a kind of run; may be repeated; default: all")
    parser.add_argument("--limit", type=int, help="only the first models of the list")
    parser.add_argument("--timeout", type=int, default=60, help="seconds, for each export and check")
    parser.add_argument("--new", action="store_true", help="leave out what --results has")
    parser.add_argument("--results", default=ROOT / "build/zoo/results.json", type=pathlib.Path)
    parser.add_argument("--folder", default=ROOT / "build/zoo/model", type=pathlib.Path, help="files of the last model")
    parser.add_argument("--docs", type=pathlib.Path, help="write the page of all results")
    parser.add_argument("--list", action="store_true", help="only print the names")
    arguments = parser.parse_args()
    if not arguments.taper.exists():
        sys.exit(f"{arguments.taper} does not exist: build the target taper first, or give --taper")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)

    models = zoo_models.all_models()
    order = {m.name: k for k, m in enumerate(models)}
    if arguments.list:
        print("\n".join(f"{m.name:44} {m.family}" for m in models))
        return
    if unknown := set(arguments.only) - set(order):
        sys.exit("no such model: " + ", ".join(sorted(unknown)))
    chosen = [m for m in models if not arguments.only or m.name in arguments.only][: arguments.limit]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    results = {}
    if arguments.results.exists():
        results = {(r["model"], r["mode"]): r for r in json.loads(arguments.results.read_text())}
    runs = [(m, mode) for turn in (MODES[:1], MODES[1:]) for m in chosen for mode in modes_of(m, arguments.mode) if mode in turn]
    for k, (model, mode) in enumerate(runs):
        if arguments.new and (model.name, mode) in results:
            continue
        begin = time.time()
        exported = export_in_child(model, mode, arguments.timeout, arguments.folder)
        row = row_of(model, mode, exported, arguments, arguments.folder)
        row["seconds"] = round(time.time() - begin, 1)
        results[(model.name, mode)] = row
        print(f"{k + 1:4}/{len(runs)} {line_of(row)} ({row['seconds']} s)", flush=True)
        arguments.results.write_text(json.dumps(list(results.values()), indent=1))
    if arguments.docs:
        write_page(arguments.docs, list(results.values()), order)
    planned = [results[(m.name, mode)] for m, mode in runs if "arena_bound" in results.get((m.name, mode), {})]
    for row in sorted((r for r in planned if above_bound(r) > LOOSE_ARENA), key=above_bound):
        print(f"{row['model']:44} {row['mode']:9} the arena is {above_bound(row):.1%} above its lower bound")
    counts = collections.Counter(results[(m.name, mode)]["result"] for m, mode in runs if (m.name, mode) in results)
    print(", ".join(f"{n} {what}" for what, n in counts.most_common()))
    sys.exit(1 if counts["wrong"] + counts["failed"] + counts["refused"] else 0)


if __name__ == "__main__":
    main()
