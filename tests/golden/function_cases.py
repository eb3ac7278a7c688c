#!/usr/bin/env python3
"""Writes function_cases.jsonl: PyTorch's results of operators that its golden cases lack, at ordinary and special arguments.

    function_cases.py > function_cases.jsonl    (wants torch)

They are special functions, histograms, reductions of segments, frexp, nonzero_static, unique slices and
fractional_max_pool3d. special_values.py tells what a line means.
"""
import collections
import json
import random
import re

import torch

import special_values

EDGES = [float("-inf"), -2.5, -2.0, -0.0, 0.0, 0.5, 1.0, 2.0, float("inf"), float("nan")]
# Rows without derivatives in PyTorch.
NO_DERIVATIVE = re.compile("hist|unique|nonzero")
SEGMENTS = {"lengths": torch.tensor([3, 0, 1])}


def numbers(draw, count, low, high, dtype=torch.float32):
    return torch.tensor([draw.uniform(low, high) for _ in range(count)], dtype=dtype)


def special_functions(draw):
    grid = torch.tensor(EDGES, dtype=torch.float64)
    rows, columns = grid.repeat_interleave(len(EDGES)), grid.repeat(len(EDGES))
    for name in ["igamma", "igammac", "special_gammainc", "special_gammaincc", "special_zeta"]:
        yield name, [rows, columns]
        yield name, [rows.float(), columns.float()]
        for size in [1.0, 10.0, 300.0]:
            low = 1.1 if name == "special_zeta" else 0.0
            a = numbers(draw, 12, low, min(size, 20) if name == "special_zeta" else size)
            x = a * numbers(draw, 12, 0.5, 1.5) + 0.01
            yield name, [a, x]
            yield name, [a.double(), x.double()]
        yield name, [torch.tensor([[2.0], [3.0]]), torch.tensor([1.0, 2.5, 0.3])]
        yield name, [torch.tensor([2.0, 3.0]), torch.tensor([1.5, 2.5], dtype=torch.float64)]
        yield name, [torch.zeros(0), torch.zeros(0)]
    for name in ["igamma", "igammac"]:
        yield name, [torch.tensor([0.5, 2, 7]).half(), torch.tensor([0.25, 3, 6.5]).half()]
        yield name, [torch.tensor([1, 2]), torch.tensor([1, 2])]  # refused
    yield "special_zeta", [torch.tensor([2, 3]), torch.tensor([1, 4])]
    yield "special_zeta.self_scalar", [2, torch.tensor([1, 2])]
    yield "special_zeta.self_scalar", [2.5, torch.tensor([1.0, 0.25], dtype=torch.float64)]
    yield "special_zeta.other_scalar", [torch.tensor([2.0, 3.5]), 1.5]
    for name in ["special_ndtri", "special_erfcx", "special_i0"]:
        yield name, [grid]
        yield name, [grid.float()]
        yield name, [torch.tensor([0, 1, 2])]
        yield name, [torch.tensor([True, False])]
        yield name, [numbers(draw, 16, 0, 1)]
        yield name, [numbers(draw, 16, -6, 30, torch.float64)]
    yield "special_ndtri", [torch.tensor([1e-300, 1e-30, 1e-5, 0.075, 0.925, 0.99999], dtype=torch.float64)]
    for n in [0, 1, 2, 5]:
        yield "special_polygamma", [n, numbers(draw, 6, 0.2, 9)]


def histograms(draw):
    x = numbers(draw, 15, -1, 4)
    odd = torch.tensor([1.0, 2, 1, 5, -1, 0, 3, 1.5, float("nan"), float("inf")])
    weight = numbers(draw, 15, 0, 2)
    for density in [False, True]:
        for options in [{}, {"weight": weight}, {"range": [0.0, 3.0]}, {"range": [-0.5, 3.5], "weight": weight}, {"range": [1.0, 1.0]},
                        {"range": [3.0, 1.0]}, {"range": [0.0, float("inf")]}, {"range": [0.0, 1.0, 2.0]}]:
            yield "histogram.bin_ct", [x, 4], options | {"density": density}
        yield "histogram.bin_ct", [torch.tensor([2.0, 2.0]), 3], {"density": density}
        yield "histogram.bin_ct", [torch.zeros(0), 4], {"density": density}
        yield "histogram.bins_tensor", [x, torch.tensor([0.0, 1, 1, 3])], {"density": density}
        yield "histogram.bins_tensor", [x.reshape(3, 5), torch.tensor([-1.0, 0.5, 4])], {"density": density, "weight": weight.reshape(3, 5)}
    yield "histogram.bin_ct", [odd, 4], {}
    yield "histogram.bin_ct", [odd, 4], {"range": [0.0, 3.0]}
    yield "histogram.bin_ct", [odd.double(), 7], {"range": [0.0, 3.0]}
    yield "histogram.bin_ct", [x, 0], {}
    yield "histogram.bin_ct", [torch.tensor([1, 2]), 3], {"range": [0.0, 3.0]}
    yield "histogram.bins_tensor", [odd, torch.tensor([0.0, 1, 2, 3])], {}
    yield "histogram.bins_tensor", [odd, torch.tensor([3.0, 1, 0])], {}
    yield "histogram.bins_tensor", [odd, torch.tensor([1.0])], {}
    yield "histogram.bins_tensor", [odd, torch.tensor([1.0, 2], dtype=torch.float64)], {}
    yield "histogram.bins_tensor", [x, torch.tensor([1.0, 2])], {"weight": torch.ones(3)}
    for limits in [[], [0, 3], [-1, 1], [2, 2], [3, 2], [0, float("inf")], [float("nan"), 1]]:
        yield "histc", [x, 5, *limits], {}
        yield "histc", [torch.tensor([2.0, 2, 2, 1.75]), 3, *limits], {}
    yield "histc", [odd, 4, 0, 3], {}
    yield "histc", [odd, 4], {}
    yield "histc", [torch.zeros(0), 4], {}
    yield "histc", [torch.tensor([2.0, 2.0]), 3], {}
    yield "histc", [torch.tensor([1, 2, 3]), 3], {}
    yield "histc", [x, 0], {}


def segments(draw):
    data = torch.tensor([[1.0, 2], [3, 4], [3, 0], [7, 8]])
    odd = torch.tensor([[1.0, float("nan")], [float("inf"), 4], [float("-inf"), 0], [7, 8]])
    for reduce in ["sum", "mean", "max", "min", "prod"]:
        for initial in [None, 2.0, 5]:
            for x in [data, odd]:
                yield "segment_reduce", [x, reduce], SEGMENTS | {"initial": initial}
        yield "segment_reduce", [data.double(), reduce], {"lengths": torch.tensor([2, 2], dtype=torch.int32)}
        yield "segment_reduce", [data, reduce], {"offsets": torch.tensor([0, 1, 1, 4])}
        yield "segment_reduce", [data, reduce], {"lengths": torch.tensor([[1, 1], [2, 0], [0, 2], [1, 1]]), "axis": 1}
        yield "segment_reduce", [data, reduce], {"offsets": torch.tensor([[0, 1, 2], [0, 2, 2], [0, 0, 2], [0, 1, 2]]), "axis": 1}
        yield "segment_reduce", [numbers(draw, 12, -1, 1).reshape(2, 3, 2), reduce], {"lengths": torch.tensor([[2, 1], [3, 0]]), "axis": 1}
        yield "segment_reduce", [data, reduce], {"lengths": torch.tensor([2, 1]), "unsafe": True}
        yield "segment_reduce", [torch.zeros(0, 2), reduce], {"lengths": torch.tensor([0, 0])}
    for options in [{}, {"lengths": torch.tensor([2, 1])}, {"lengths": torch.tensor([2, 3])}, {"lengths": torch.tensor([-1, 5])},
                    {"lengths": torch.tensor([2.0, 2])}, {"indices": torch.tensor([2, 2])}]:
        yield "segment_reduce", [data, "sum"], options
    yield "segment_reduce", [data, "middle"], SEGMENTS
    yield "segment_reduce", [torch.tensor([1, 2, 3, 4]), "sum"], SEGMENTS


def others(draw):
    grid = torch.tensor([*EDGES, 3e38, 1e-38, 1e-45, -0.3, 1023.5])
    for dtype in [torch.float32, torch.float64, torch.float16, torch.bfloat16]:
        yield "frexp.Tensor", [grid.to(dtype)], {}
    yield "frexp.Tensor", [torch.tensor([2.3e-308, 1.7e308], dtype=torch.float64)], {}
    yield "frexp.Tensor", [torch.tensor([1, 2])], {}
    yield "frexp.Tensor", [torch.zeros(2, 0)], {}
    yield "frexp.Tensor", [torch.tensor(-6.5)], {}
    for x in [torch.tensor([[1, 0, 3], [0, 5, 0]]), torch.tensor([[1.0, -0.0], [float("nan"), 2]]), torch.tensor([True, False, True]),
              torch.tensor(3), torch.tensor(0), torch.zeros(0, 3), torch.tensor([[[0, 1], [1, 0]]], dtype=torch.uint8)]:
        for size in [0, 1, 2, 4]:
            yield "nonzero_static", [x], {"size": size}
        yield "nonzero_static", [x], {"size": 5, "fill_value": 7}
    yield "nonzero_static", [torch.tensor([1])], {"size": -1}
    table = torch.tensor([[2, 1, 2], [0, 5, 0], [2, 1, 2], [2, 0, 9], [0, 5, 0]])
    nan = float("nan")
    for name in ["unique_dim", "unique_dim_consecutive"]:
        flags = [True, True] if name.endswith("consecutive") else [True, True, True]
        for x, dim in [(table, 0), (table, 1), (table, -1), (table.double(), 0), (table.bool(), 0), (table.bool(), 1), (table.reshape(5, 3, 1), 1),
                       (torch.tensor([[1, nan], [1, nan], [0, 2], [0, 2]]), 0), (torch.tensor([3, 1, 3, nan, nan]), 0),
                       (torch.tensor([[0.0, 1], [-0.0, 1]]), 0), (torch.zeros(0, 2), 0), (torch.zeros(2, 0), 1), (torch.zeros(3, 0), 0),
                       (torch.randint(0, 2, (24, 5), generator=torch.Generator().manual_seed(1)), 0)]:
            yield name, [x, dim, *flags], {}
    x = numbers(draw, 96, -2, 2)
    for shape, kernel, size in [((1, 4, 6, 4), [2, 3, 2], [2, 3, 2]), ((2, 1, 3, 4, 4), [1, 2, 2], [2, 2, 2]), ((1, 1, 4, 6, 4), [2, 2, 2], [1, 1, 1]),
                                ((1, 4, 6, 4), [2, 2, 1], [2, 4, 3]), ((1, 4, 6, 4), [2, 3, 2], [4, 3, 2])]:
        samples = numbers(draw, 6, 0, 1)[: 3 * shape[0] if len(shape) == 5 else 3].reshape(-1, 1, 3)
        yield "fractional_max_pool3d", [x.reshape(shape), kernel, size, samples], {}
        yield "fractional_max_pool3d", [x.reshape(shape).double(), kernel, size, samples.double()], {}
    y = x.clone()
    y[::7], y[3] = nan, float("inf")
    yield "fractional_max_pool3d", [y.reshape(1, 4, 6, 4), [2, 3, 2], [2, 3, 2], torch.tensor([[[0.1, 0.6, 0.9]]])], {}


def outcome(name, args, kwargs):
    """Results and gradients, or that PyTorch refuses the call."""
    try:
        if NO_DERIVATIVE.match(name):
            results, gradients = special_values.function_of(name)[0](*args, **kwargs), {}
        else:
            results, gradients = special_values.call(name, args, kwargs)
    except (RuntimeError, NotImplementedError) as e:
        return {"refused": str(e).splitlines()[0][:60]}
    results = results if isinstance(results, (tuple, list)) else [results]
    return {"results": [special_values.text(r) for r in results], "gradients": {p: special_values.text(g) for p, g in gradients.items()}}


def main():
    torch.set_num_threads(1)
    draw = random.Random(2)
    calls = [(name, args, {}) for name, args in special_functions(draw)]
    calls += [*histograms(draw), *segments(draw), *others(draw)]
    counts = collections.Counter()
    for name, args, kwargs in calls:
        args, kwargs = special_values.as_read(args, kwargs)
        kwargs = {k: v for k, v in kwargs.items() if v is not None}
        found = outcome(name, args, kwargs)
        call = [name, *map(special_values.written, args), *([{k: special_values.written(v) for k, v in kwargs.items()}] if kwargs else [])]
        half = re.search(r'"(f16|bf16)\[', json.dumps(call)) is not None
        entry = {"id": f"{name}/f{counts[name]}", "call": call, **({"rtol": 0.02} if half else {})}
        counts[name] += 1
        print(json.dumps(entry | found, separators=(",", ":")))


if __name__ == "__main__":
    main()
