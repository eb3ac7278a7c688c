#!/usr/bin/env python3
"""PyTorch eager beside benchmarks/operators.cpp: the calls of operators.json, in turns, in one run.

    python3 benchmarks/peers/operators.py build/release/bin/operators [--only REGEX] [--rounds 2] [--by-ratio] [--below 1]

Prints a Markdown table and a summary. Times are the least of the samples of all rounds, of both sides: what each can do on a
machine that others use as well. `share`: of the roof, see operators.cpp. `ratio`: PyTorch's time over ours, above 1 where ours
is faster. Beside an operator that PyTorch does not have stands what it replaces there, see TWINS.
"""
import argparse
import importlib
import json
import math
import pathlib
import re
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32,
          "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}
TENSOR = re.compile(r"([a-z]+[0-9]*)\[([0-9,]*)\](?: ([-0-9.e]+?)\.\.([-0-9.e]+))?(?: permuted ([0-9,]+))?")


def integers(text):
    return [int(v) for v in text.split(",") if v]


def argument(value):
    if isinstance(value, list):
        return [argument(v) for v in value]
    if isinstance(value, dict):  # a result of another call
        name, args, *kwargs = value["of"]
        results = operator(name)(*argument(args), **{k: argument(v) for k, v in kwargs[0].items()} if kwargs else {})
        return (results if isinstance(results, (tuple, list)) else [results])[value.get("result", 0)]
    if not isinstance(value, str):
        return value
    if value.startswith("dtype:"):
        return getattr(torch, value[6:])
    match = TENSOR.fullmatch(value)
    if not match:
        return value
    dtype = DTYPES[match[1]]
    floating = dtype.is_floating_point
    low = float(match[3]) if match[3] else -1 if floating else 0
    high = float(match[4]) if match[4] else 1 if floating else 2 if match[1] == "bool" else 8
    t = torch.rand(integers(match[2]), dtype=torch.float64) * (high - low) + low
    t = (t if floating else t.floor()).to(dtype)
    return t.permute(integers(match[5])) if match[5] else t


# ---- what PyTorch does where it lacks the operator -----------------------------------------------------------------------------


def pointwise(inputs, program, constants):
    """The separate operators of a fused chain; kernels/pointwise_program.h has the numbers."""
    functions = [torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum, torch.neg, torch.abs, torch.relu, torch.sqrt, torch.rsqrt,
                 torch.reciprocal, torch.exp, torch.log, torch.sin, torch.cos, torch.tanh, torch.sigmoid, torch.erf, F.gelu,
                 lambda x: F.gelu(x, approximate="tanh"), F.silu]
    functions = dict(enumerate(functions)) | {28: F.hardtanh, 29: F.leaky_relu, 30: F.hardswish, 31: F.hardsigmoid}
    registers = {}
    for i in range(0, len(program), 5):
        op, destination, *operands = program[i:i + 5]
        count = 3 if op == 28 else 2 if op <= 5 or op == 29 else 1
        values = [constants[-v - 1] if v < 0 else inputs[v] if v < len(inputs) else registers[v - len(inputs)] for v in operands[:count]]
        registers[destination] = functions[op](*values)
    return registers[destination]


def recurrence(a, b, dim):
    y = [b.select(dim, 0)]
    for t in range(1, b.size(dim)):
        y.append(torch.addcmul(b.select(dim, t), a.select(dim, t), y[-1]))
    return torch.stack(y, dim)


def rnn_scan(gates, h, w, relu, reverse):
    steps = []
    for g in gates:
        steps.append(h := torch.tanh(torch.addmm(g, h, w.t())))
    return torch.stack(steps)


def rnn_scan_backward(dy, y, w, relu, reverse):
    dh, grads = torch.zeros_like(y[0]), []
    for t in range(len(y) - 1, -1, -1):
        grads.append(torch.ops.aten.tanh_backward(dy[t] + dh, y[t]))
        dh = grads[-1] @ w
    return torch.stack(grads[::-1]), dh


def lstm_scan(gates, h, c, w, reverse):
    steps = []
    for g in gates:
        i, f, g, o = torch.addmm(g, h, w.t()).chunk(4, 1)
        c = f.sigmoid_() * c + i.sigmoid_() * g.tanh_()
        steps.append(h := o.sigmoid_() * c.tanh())
    return torch.stack(steps)


def lstm_scan_backward(dy, dcells, cx, cells, activations, w, reverse):
    dh, dc, grads = torch.zeros_like(cx), torch.zeros_like(cx), []
    for t in range(len(dy) - 1, -1, -1):
        i, f, g, o = activations[t].chunk(4, 1)
        tanh_c, do = cells[t].tanh(), dy[t] + dh
        dc = dc + dcells[t] + torch.ops.aten.tanh_backward(do * o, tanh_c)
        grads.append(torch.cat([torch.ops.aten.sigmoid_backward(dc * g, i), torch.ops.aten.sigmoid_backward(dc * (cells[t - 1] if t else cx), f),
                                torch.ops.aten.tanh_backward(dc * i, g), torch.ops.aten.sigmoid_backward(do * tanh_c, o)], 1))
        dh, dc = grads[-1] @ w, dc * f
    return torch.stack(grads[::-1]), dh, dc


def gru_scan(gates, h, w, bias_hn, reverse):
    steps, bias = [], torch.cat([torch.zeros(2 * h.size(1)), bias_hn])
    for g in gates:
        xr, xz, xn = g.chunk(3, 1)
        hr, hz, hn = torch.addmm(bias, h, w.t()).chunk(3, 1)
        z = (xz + hz).sigmoid_()
        steps.append(h := torch.lerp((xn + (xr + hr).sigmoid_() * hn).tanh_(), h, z))
    return torch.stack(steps)


def gru_scan_backward(dy, hx, y, activations, w, reverse):
    dh, grads, hidden = torch.zeros_like(hx), [], []
    for t in range(len(dy) - 1, -1, -1):
        r, z, n, hn = activations[t].chunk(4, 1)
        d = dy[t] + dh
        dn = torch.ops.aten.tanh_backward(d * (1 - z), n)
        dr, dz = torch.ops.aten.sigmoid_backward(dn * hn, r), torch.ops.aten.sigmoid_backward(d * ((y[t - 1] if t else hx) - n), z)
        grads.append(torch.cat([dr, dz, dn], 1))
        hidden.append(torch.cat([dr, dz, dn * r], 1))
        dh = d * z + hidden[-1] @ w
    return torch.stack(grads[::-1]), torch.stack(hidden[::-1]), dh


def grouped_mm(rows, weights, offsets):
    ends = offsets.tolist()
    return torch.cat([rows[begin:end] @ w for begin, end, w in zip([0] + ends, ends, weights)])


TWINS = {
    "taper::rand": lambda state, size: torch.rand(size),
    "taper::randn": lambda state, size: torch.randn(size),
    "taper::native_dropout": lambda state, x, p: torch.native_dropout(x, p, True),
    "taper::nonzero": lambda mask, count: torch.nonzero(mask),
    "taper::pointwise": pointwise,  # the operators one by one
    "taper::linear_recurrence": recurrence,  # a loop over the steps, as the scans below
    "taper::rnn_scan": rnn_scan,
    "taper::rnn_scan_backward": rnn_scan_backward,
    "taper::lstm_scan": lstm_scan,
    "taper::lstm_scan_backward": lstm_scan_backward,
    "taper::gru_scan": gru_scan,
    "taper::gru_scan_backward": gru_scan_backward,
    "transformers::grouped_mm_fallback": grouped_mm,  # a product for each expert
}


def with_channels_last(pool):
    """A pooling of (N, H, W, C). PyTorch sees a view (N, C, H, W), in its memory format channels_last."""
    return lambda x, *parameters: pool(x.permute(0, 3, 1, 2), *parameters).permute(0, 2, 3, 1)


def convolution_with_channels_last(x, weight, bias, stride, padding, dilation, groups, others, program, constants):
    y = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), weight, bias, stride, padding, dilation, groups).permute(0, 2, 3, 1)
    return pointwise([y, *others], program, constants) if program else y


def winograd_convolution(x, weight, bias, padding, *program):
    return convolution_with_channels_last(x, weight, bias, 1, padding, 1, 1, *program)


def attention_with_heads_last(query, key, value, mask, is_causal, scale, enable_gqa):
    y = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa
    )
    return y.transpose(-3, -2).contiguous()


def rotary_embedding(x, cos, sin, interleaved):
    if interleaved:
        turned = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
    else:
        a, b = x.chunk(2, -1)
        turned = torch.cat([-b, a], -1)
    return x * cos + turned * sin


def rounded_linear(x, weight, bias):
    units = x.unflatten(-1, (-1, 32))
    scale = units.abs().amax(-1, keepdim=True).clamp_min(1e-30) / 127
    return torch.nn.functional.linear((torch.round(units / scale) * scale).flatten(-2), weight, bias)


# weights that are not in blocks
TWINS["taper::block_linear"] = torch.nn.functional.linear
TWINS["taper::block_linear_q8"] = rounded_linear
TWINS["taper::grouped_block_linear"] = lambda rows, weights, ends: grouped_mm(rows, weights.transpose(1, 2), ends)
TWINS["taper::block_embedding"] = lambda weight, indices: torch.nn.functional.embedding(indices, weight)
def cache_write(cache, rows, start):
    places = start[0] + torch.arange(rows.shape[2])
    return cache.index_copy(2, places, rows)


def attention_cached(query, key, value, start, scale, window, softcap, sinks, slopes):
    """Attention over the part of the cache that is filled, for a batch of one, without the rarer options."""
    begin, n = int(start[0]), query.shape[2]
    mask = torch.ones(n, begin + n, dtype=torch.bool).tril(begin)
    return attention_with_heads_last(
        query, key[:, :, : begin + n], value[:, :, : begin + n], mask, False, scale, True
    )


def row(batch):
    return slice(int(batch[0]), int(batch[0]) + 1)


def cache_write_batch(cache, rows, start, batch):
    """For a batch of one."""
    places = start[0] + torch.arange(rows.shape[2])
    return torch.index_put(cache, (batch[:, None], torch.arange(cache.shape[1])[:, None], places), rows[0])


def attention_cached_batch(query, key, value, start, batch, *options):
    return attention_cached(query, key[row(batch)], value[row(batch)], start, *options)


TWINS["taper::cache_write"] = cache_write
TWINS["taper::cache_write.batch"] = cache_write_batch
TWINS["taper::attention_cached.batch"] = attention_cached_batch
TWINS["taper::attention_cached"] = attention_cached
TWINS["taper::attention"] = attention_with_heads_last
TWINS["taper::rotary_embedding"] = rotary_embedding
TWINS["taper::convolution"] = convolution_with_channels_last
TWINS["taper::winograd_convolution"] = winograd_convolution
TWINS["taper::max_pool2d"] = with_channels_last(torch.nn.functional.max_pool2d)
TWINS["taper::avg_pool2d"] = with_channels_last(torch.nn.functional.avg_pool2d)


def operator(name):
    if name in TWINS:
        return TWINS[name]
    space, _, rest = name.rpartition("::")
    if space == "quantized_decomposed":
        importlib.import_module("torch.ao.quantization.fx._decomposed")  # registers them
    packet, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space or "aten"), packet), overload or "default")


# ---- times ---------------------------------------------------------------------------------------------------------------------


def torch_ns(op, args, kwargs, least_seconds):
    def sample(calls):
        start = time.perf_counter_ns()
        for _ in range(calls):
            op(*args, **kwargs)
        return (time.perf_counter_ns() - start) / calls

    best = sample(1)
    calls = max(1, int(20000 / min(sample(1), sample(1))))
    best, end = float("inf"), time.perf_counter() + least_seconds
    while time.perf_counter() < end or best == math.inf:
        best = min(best, sample(calls))
    return best


class Taper:
    """The other program, which keeps the tensors of the call that it answered last."""

    def __init__(self, binary):
        self.binary = binary
        self.start()

    def start(self):
        self.process = subprocess.Popen([self.binary, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(self, number, threads, least_seconds):
        self.process.stdin.write(f"{number} {threads} {least_seconds}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            self.start()
            raise RuntimeError(f"the program ended with {code}")
        result = json.loads(line)
        if "error" in result:
            raise RuntimeError(result["error"])
        return result


def compare(options, taper, op, args, kwargs, number, threads):
    """Our result, and the ratio."""
    torch.set_num_threads(threads)
    ours, theirs = None, float("inf")
    with torch.no_grad():
        for _ in range(options.rounds):
            theirs = min(theirs, torch_ns(op, args, kwargs, options.seconds))
            result = taper.measure(number, threads, options.seconds)
            ours = result if ours is None or result["best_ns"] < ours["best_ns"] else ours
    return ours, theirs / ours["best_ns"]


# ---- the table -----------------------------------------------------------------------------------------------------------------


def short(value):
    if isinstance(value, list):
        if len(value) > 6 and not any(isinstance(v, (list, dict)) for v in value):
            return f"[{short(value[0])}, … {len(value)}]"
        return "[" + ", ".join(short(v) for v in value) + "]"
    if isinstance(value, dict):
        return value["of"][0] + "(" + ", ".join(short(v) for v in value["of"][1]) + ")"
    if isinstance(value, str):
        return re.sub(r" [-0-9.e]+\.\.[-0-9.e]+", "", value.replace("dtype:", ""))
    return "–" if value is None else str(value).lower()


def print_row(name, models, text, found):
    cells = []
    for ours, ratio in found.values():
        rate = f"{ours['GFLOPS']:.1f} GFLOP/s" if "GFLOPS" in ours else f"{ours['GBps']:.1f} GB/s"
        cells += [f"{ours['ns_per_element']:.3g}", rate, f"{100 * ours['share']:.0f} %", f"{ratio:.2f}"]
    print(f"| `{name}` | {models} | {text} | " + " | ".join(cells) + " |", flush=True)


def print_summary(rows, counts):
    print("\n| calls of | threads | calls | as fast as PyTorch or faster | ratio of 0.9 or more | ratio below 0.33 |\n| --- | --- | --- | --- | --- | --- |")
    for t in counts:
        ratios = [found[t][1] for *_, found in rows]
        frequent = [found[t][1] for _, models, _, found in rows if models > 16]  # more than 5 % of the 328 models
        of = lambda list, least: sum(r >= least for r in list)
        for what, list in (("all", ratios), ("operators in more than 5 % of models", frequent)):
            print(f"| {what} | {t} | {len(list)} | {of(list, 1)} | {of(list, 0.9)} | {len(list) - of(list, 0.33)} |")
    print("\nThe slowest:")
    for name, _, text, found in sorted(rows, key=slowest)[:10]:
        print(f"- `{name}` {text}: " + ", ".join(f"{found[t][1]:.2f} ({t}T)" for t in counts))


def slowest(row):
    return min(ratio for _, ratio in row[3].values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--only", default="", metavar="REGEX", help="of the operator and its arguments as the table has them, '^mm f32'")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.02, help="of each side in a round")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--by-ratio", action="store_true", help="the slowest first")
    parser.add_argument("--below", type=float, default=math.inf, help="only rows with a smaller ratio; the summary counts all")
    options = parser.parse_args()
    cases = json.loads((pathlib.Path(__file__).parents[1] / "operators.json").read_text())["cases"]
    counts = integers(options.threads)
    taper = Taper(options.binary)
    print("| operator | models | arguments | " + " | ".join(f"{t}T: ns/element | GB/s or GFLOP/s | share | ratio" for t in counts) + " |")
    print("| --- |" + " --- |" * (2 + 4 * len(counts)), flush=True)
    rows = []
    for number, (name, models, args, *kwargs) in enumerate(cases):
        text = ", ".join([short(a) for a in args] + [f"{k}={short(v)}" for k, v in (kwargs[0] if kwargs else {}).items()])
        if not re.search(options.only, f"{name} {text}"):
            continue
        try:
            values, named = [argument(a) for a in args], {k: argument(v) for k, v in kwargs[0].items()} if kwargs else {}
            if name == "clone":  # ours is always dense; without this PyTorch's keeps the strides and moves nothing
                named["memory_format"] = torch.contiguous_format
            found = {t: compare(options, taper, operator(name), values, named, number, t) for t in counts}
        except Exception as error:  # PyTorch's and ours differ in what they take: told, and the run goes on
            print(f"{name} {text} left out: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
            continue
        rows.append((name, models, text, found))
        if not options.by_ratio and slowest(rows[-1]) < options.below:
            print_row(*rows[-1])
    if options.by_ratio:
        for row in sorted(rows, key=slowest):
            if slowest(row) < options.below:
                print_row(*row)
    print_summary(rows, counts)


main()
