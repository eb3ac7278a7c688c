#!/usr/bin/env python3
"""Writes function_cases.jsonl: PyTorch's results of operators that its golden cases lack, at ordinary and special arguments.

    function_cases.py > function_cases.jsonl    (wants torch)

They are special functions, histograms, reductions of segments, frexp, nonzero_static, unique slices, fractional_max_pool3d, factors of
matrices, and operators that read lengths or ends from tensors. special_values.py tells what a line means.
"""
import collections
import json
import random
import re

import torch

import special_values

EDGES = [float("-inf"), -2.5, -2.0, -0.0, 0.0, 0.5, 1.0, 2.0, float("inf"), float("nan")]
# Rows without derivatives in PyTorch.
NO_DERIVATIVE = re.compile("hist|unique|nonzero|geqrf|embedding_renorm|repeat_interleave|_ctc_loss_backward|linspace|logspace")
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


def factors(draw):
    def matrix(*sizes, dtype=torch.float64):
        return numbers(draw, torch.Size(sizes).numel(), -2, 2, dtype).reshape(sizes)

    for dtype in [torch.float32, torch.float64]:
        for sizes in [(4, 3), (3, 4), (3, 3), (1, 1), (5, 1), (2, 0), (0, 2), (2, 4, 3), (0, 3, 2)]:
            yield "geqrf", [matrix(*sizes, dtype=dtype)], {}
    yield "geqrf", [torch.tensor([[1.0, 2], [0, 3], [0, 4]])], {}
    yield "geqrf", [torch.zeros(3)], {}
    for sizes, k in [((4, 3), 3), ((4, 3), 2), ((3, 3), 3), ((2, 4, 2), 2), ((4, 1), 1), ((3, 2), 0)]:
        a, tau = torch.geqrf(matrix(*sizes))
        for name in ["linalg_householder_product", "orgqr"]:
            yield name, [a, tau[..., :k].contiguous()], {}
        yield "linalg_householder_product", [a.float(), tau[..., :k].float().contiguous()], {}
        yield "linalg_householder_product", [matrix(*sizes), matrix(*sizes[:-2], k)], {}
        m = sizes[-2]
        for transpose in [False, True]:
            yield "ormqr", [a[..., :k], tau[..., :k].contiguous(), matrix(*sizes[:-2], m, 2), True, transpose], {}
            yield "ormqr", [a[..., :k], tau[..., :k].contiguous(), matrix(*sizes[:-2], 2, m), False, transpose], {}
    yield "linalg_householder_product", [matrix(2, 3), matrix(2)], {}
    yield "linalg_householder_product", [matrix(3, 2), matrix(3)], {}
    yield "linalg_householder_product", [matrix(3, 2), matrix(2).float()], {}
    yield "ormqr", [matrix(3, 2), matrix(2), matrix(4, 2)], {}
    for upper in [True, False]:
        for transpose in [True, False]:
            a = matrix(3, 3) + 3 * torch.eye(3)
            yield "triangular_solve", [matrix(3, 2), a, upper, transpose], {}
            yield "triangular_solve", [matrix(3, 2), a, upper, transpose, True], {}
    yield "triangular_solve", [matrix(2, 3, 2), a], {}
    yield "triangular_solve", [matrix(3, 2).float(), torch.stack([a, a.mT]).float()], {}
    yield "triangular_solve", [matrix(2, 2), a], {}
    yield "linalg_tensorinv", [matrix(4, 2, 2), 1], {}
    yield "linalg_tensorinv", [matrix(2, 3, 6)], {}
    for ind in [0, 1]:
        yield "linalg_tensorinv", [matrix(2, 3, 6), ind], {}
    yield "linalg_tensorsolve", [matrix(2, 3, 6), matrix(2, 3)], {}
    yield "linalg_tensorsolve", [matrix(2, 2, 4).float(), matrix(2, 2).float()], {}
    yield "linalg_tensorsolve", [matrix(3, 6, 2), matrix(3, 2), [1]], {}
    yield "linalg_tensorsolve", [matrix(2, 3), matrix(2)], {}


def read_from_tensors(draw):
    ends = [torch.tensor(x) for x in (-1.0, 2.5, 3, 7)]
    for name, base in [("linspace", []), ("logspace", [2.0])]:
        for steps in [0, 1, 2, 5, 6]:
            yield f"{name}.Tensor_Tensor", [ends[0], ends[1], steps, *base], {}
            yield f"{name}.Tensor_Scalar", [ends[1], 0.25, steps, *base], {}
            yield f"{name}.Scalar_Tensor", [1, ends[2], steps, *base], {}
        for dtype in ["float64", "int64"]:
            yield f"{name}.Tensor_Tensor", [ends[2], ends[3], 6, *base], {"dtype": getattr(torch, dtype)}
        yield f"{name}.Tensor_Tensor", [ends[0], ends[1], -1, *base], {}
        yield f"{name}.Tensor_Tensor", [ends[0].reshape(1), ends[1], 3, *base], {}
    for repeats in [[2, 0, 3], [1], [], [0, 0], [-1, 2]]:
        yield "repeat_interleave.Tensor", [torch.tensor(repeats, dtype=torch.int64)], {}
        yield "repeat_interleave.Tensor", [torch.tensor(repeats, dtype=torch.int32)], {}
    yield "repeat_interleave.Tensor", [torch.tensor([2, 1])], {"output_size": 3}
    yield "repeat_interleave.Tensor", [torch.tensor([[2, 1]])], {}
    yield "repeat_interleave.Tensor", [torch.tensor([2.0])], {}
    rows = numbers(draw, 12, -2, 2).reshape(4, 3)
    for order in [1.0, 2.0, float("inf")]:
        yield "embedding_renorm", [rows, torch.tensor([[0, 2], [2, 3]]), 0.5, order], {}
    yield "embedding_renorm", [rows, torch.tensor([1]), 9.0, 2.0], {}
    yield "embedding_renorm", [rows, torch.tensor([4]), 0.5, 2.0], {}


def layers(draw):
    for pad in [0, 1, 2]:
        yield "conv_tbc", [numbers(draw, 30, -2, 2).reshape(5, 2, 3), numbers(draw, 24, -1, 1).reshape(2, 3, 4), numbers(draw, 4, -1, 1), pad], {}
    yield "conv_tbc", [torch.ones(5, 3), torch.ones(2, 3, 4), torch.ones(4), 0], {}
    x = numbers(draw, 12, -2, 2).reshape(2, 3, 2)
    weight, bias = numbers(draw, 3, 0.5, 2), numbers(draw, 3, -1, 1)
    yield "_batch_norm_with_update", [x, weight, bias, torch.zeros(3), torch.ones(3), 0.1, 1e-5], {}
    # the room that PyTorch has behind shorter targets holds anything, so all of them are of one length
    log_probs = numbers(draw, 40, -2, 2, torch.float64).reshape(5, 2, 4).log_softmax(2)
    for targets in [torch.tensor([[1, 2, 2], [3, 1, 3]]), torch.tensor([1, 2, 2, 3, 1, 3])]:
        lengths = torch.tensor([5, 5]), torch.tensor([3, 3])
        for blank, zero_infinity in [(0, False), (0, True)]:
            if targets.dim() == 2:
                yield "_ctc_loss.Tensor", [log_probs, targets, *lengths, blank, zero_infinity], {}
                loss, alpha = torch.ops.aten._ctc_loss.Tensor(log_probs, targets, *lengths, blank, zero_infinity)
                yield "_ctc_loss_backward.Tensor", [torch.tensor([1.0, -2], dtype=torch.float64), log_probs, targets, *lengths, loss, alpha, blank], {}
            for reduction in [0, 1, 2]:
                yield "ctc_loss.Tensor", [log_probs, targets, *lengths, blank, reduction, zero_infinity], {}
    yield "ctc_loss.Tensor", [log_probs, torch.tensor([[1, 1, 1], [3, 1, 0]]), torch.tensor([3, 5]), torch.tensor([3, 2]), 0, 1, True], {}
    # PyTorch's log_alpha has the states of the longest target of the batch, here of two classes of three
    short = [log_probs, torch.tensor([[1, 2, 0], [3, 3, 0]]), torch.tensor([5, 5]), torch.tensor([2, 2])]
    yield "_ctc_loss_backward.Tensor", [torch.tensor([1.0, -2], dtype=torch.float64), *short, *torch.ops.aten._ctc_loss.Tensor(*short), 0], {}
    yield "ctc_loss.Tensor", [log_probs.float(), torch.tensor([1, 2, 3]), torch.tensor([4, 5]), torch.tensor([2, 1]), 0, 2], {}
    for input_length, target_length in [(6, 3), (5, 4), (-1, 1), (5, -1)]:
        yield "ctc_loss.Tensor", [log_probs, torch.ones(2, 3, dtype=torch.int64), torch.tensor([5, input_length]), torch.tensor([3, target_length])], {}


def outcome(name, args, kwargs):
    """Results and gradients, or that PyTorch refuses the call."""
    try:
        if NO_DERIVATIVE.match(name):
            results, gradients = special_values.function_of(name)[0](*args, **kwargs), {}
        else:
            results, gradients = special_values.call(name, args, kwargs)
    except (RuntimeError, NotImplementedError, IndexError) as e:
        return {"refused": str(e).splitlines()[0][:60]}
    results = results if isinstance(results, (tuple, list)) else [results]
    return {"results": [special_values.text(r) for r in results], "gradients": {p: special_values.text(g) for p, g in gradients.items()}}


def main():
    torch.set_num_threads(1)
    draw = random.Random(2)
    calls = [(name, args, {}) for name, args in special_functions(draw)]
    calls += [*histograms(draw), *segments(draw), *others(draw), *factors(draw), *read_from_tensors(draw), *layers(draw)]
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
