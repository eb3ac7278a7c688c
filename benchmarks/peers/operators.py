#!/usr/bin/env python3
"""PyTorch eager beside benchmarks/operators.cpp: the calls of operators.json, in turns, in one run.

    python3 benchmarks/peers/operators.py build/release/bin/operators [--only REGEX] [--rounds 2] [--by-ratio]

Prints a Markdown table. Times are the least of the samples of all rounds, of both sides: what each can do on a machine that
others use as well. `share`: of the roof, see operators.cpp. `ratio`: PyTorch's time over ours, above 1 where ours is faster.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

import torch

DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32, "bool": torch.bool}
TENSOR = re.compile(r"([a-z]+[0-9]*)\[([0-9,]*)\](?: ([-0-9.e]+?)\.\.([-0-9.e]+))?(?: permuted ([0-9,]+))?")


def integers(text):
    return [int(v) for v in text.split(",") if v]


def argument(value):
    if isinstance(value, list):
        return [argument(v) for v in value]
    if not isinstance(value, str):
        return value
    if value.startswith("dtype:"):
        return getattr(torch, value[6:])
    match = TENSOR.fullmatch(value)
    if not match:
        return value
    dtype, floating = DTYPES[match[1]], match[1][-2:] in ("32", "64", "16") and match[1][0] != "i"
    low = float(match[3]) if match[3] else -1 if floating else 0
    high = float(match[4]) if match[4] else 1 if floating else 2 if match[1] == "bool" else 8
    t = torch.rand(integers(match[2]), dtype=torch.float64) * (high - low) + low
    t = (t if floating else t.floor()).to(dtype)
    return t.permute(integers(match[5])) if match[5] else t


def operator(name):
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def torch_ns(op, args, kwargs, least_seconds):
    def sample(calls):
        start = time.perf_counter_ns()
        for _ in range(calls):
            op(*args, **kwargs)
        return (time.perf_counter_ns() - start) / calls

    for _ in range(3):
        sample(1)
    calls = max(1, int(20000 / sample(1)))
    best, end = float("inf"), time.perf_counter() + least_seconds
    while time.perf_counter() < end:
        best = min(best, sample(calls))
    return best


def taper(binary, number, threads, least_seconds):
    out = subprocess.run([binary, f"--benchmark_filter=^{number:03}/{threads}/", "--benchmark_format=json", f"--benchmark_min_time={least_seconds}"],
                         capture_output=True, text=True, check=True).stdout
    result = json.loads(out)["benchmarks"][0]
    if result.get("error_occurred"):
        raise RuntimeError(result["error_message"])
    return result


def compare(options, op, args, kwargs, number, threads):
    """Our result, and the ratio."""
    torch.set_num_threads(threads)
    ours, theirs = None, float("inf")
    with torch.no_grad():
        for _ in range(options.rounds):
            theirs = min(theirs, torch_ns(op, args, kwargs, options.seconds))
            result = taper(options.binary, number, threads, options.seconds)
            ours = result if ours is None or result["best_ns"] < ours["best_ns"] else ours
    return ours, theirs / ours["best_ns"]


def short(value):
    if isinstance(value, list):
        return "[" + ", ".join(short(v) for v in value) + "]"
    if isinstance(value, str):
        return re.sub(r" [-0-9.e]+\.\.[-0-9.e]+", "", value.replace("dtype:", ""))
    return "–" if value is None else str(value).lower()


def print_row(name, models, text, found):
    cells = []
    for ours, ratio in found.values():
        rate = f"{ours['GFLOPS']:.1f} GFLOP/s" if "GFLOPS" in ours else f"{ours['GBps']:.1f} GB/s"
        cells += [f"{ours['ns_per_element']:.3g}", rate, f"{100 * ours['share']:.0f} %", f"{ratio:.2f}"]
    print(f"| `{name}` | {models} | {text} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--by-ratio", action="store_true", help="the slowest first")
    options = parser.parse_args()
    cases = json.loads((pathlib.Path(__file__).parents[1] / "operators.json").read_text())["cases"]
    counts = integers(options.threads)
    print("| operator | models | arguments | " + " | ".join(f"{t}T: ns/element | GB/s or GFLOP/s | share | ratio" for t in counts) + " |")
    print("| --- |" + " --- |" * (2 + 4 * len(counts)), flush=True)
    rows = []
    for number, (name, models, args, *kwargs) in enumerate(cases):
        text = ", ".join([short(a) for a in args] + [f"{k}={short(v)}" for k, v in (kwargs[0] if kwargs else {}).items()])
        if not re.search(options.only, f"{name} {text}"):
            continue
        values, named = [argument(a) for a in args], {k: argument(v) for k, v in kwargs[0].items()} if kwargs else {}
        if name == "clone":  # ours is always dense; without this PyTorch's keeps the strides and moves nothing
            named["memory_format"] = torch.contiguous_format
        try:
            found = {t: compare(options, operator(name), values, named, number, t) for t in counts}
        except RuntimeError as error:
            print(f"{name} left out: {error}", file=sys.stderr)
            continue
        rows.append((name, models, text, found))
        if not options.by_ratio:
            print_row(*rows[-1])
    if options.by_ratio:
        for row in sorted(rows, key=lambda row: min(ratio for _, ratio in row[3].values())):
            print_row(*row)


main()
