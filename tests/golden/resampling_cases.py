#!/usr/bin/env python3
"""Writes resampling_cases.jsonl: PyTorch's pixels for many sizes and scale factors, such as 2.3.

    resampling_cases.py > resampling_cases.jsonl    (wants torch)

The element that a nearest method takes is decided by rounding wherever a position is near a whole number. Most of the cases
are those where positions in f32 and in f64, or with and without the given factor, lead to different elements.
"""
import json
import random

import torch

import special_values

NEAREST = {1: "upsample_nearest1d", 2: "upsample_nearest2d", 3: "upsample_nearest3d"}
EXACT = {n: "_upsample_nearest_exact%dd" % n for n in NEAREST}
SMOOTH = {1: ["upsample_linear1d"], 2: ["upsample_bilinear2d", "upsample_bicubic2d"], 3: ["upsample_trilinear3d"]}


def is_close_call(size, factor):
    """Whether another rounding would give another pixel."""
    def pixels(scale, dtype):
        at = torch.arange(int(size * factor), dtype=dtype)
        return [((at + half) * torch.tensor(scale, dtype=dtype)).floor().long() for half in (0, 0.5)]
    given, between = 1 / factor, size / int(size * factor)
    return any(not torch.equal(a, b) for a, b in zip(sum((pixels(given, d) for d in (torch.float32, torch.float64)), []),
                                                     sum((pixels(s, torch.float32) for s in (given, between)), [])))


def cases(draw):
    for _ in range(160):
        factor = draw.choice([round(draw.uniform(0.2, 5), draw.choice([1, 1, 2, 6])), draw.randint(1, 9) / draw.randint(1, 9)])
        size = draw.randint(1, 60)
        if 1 <= int(size * factor) <= 140 and (is_close_call(size, factor) or draw.random() < 0.05):
            yield size, factor
    yield from [(2, 1.3), (9, 2.1), (7, 2.3), (23, 2.3), (33, 2.3), (10, 0.35), (5, 2.0), (3, 1.0), (64, 2.0), (1, 3.7), (60, 2.3)]


def main():
    torch.set_num_threads(1)
    draw = random.Random(1)
    count = 0
    for size, factor in cases(draw):
        for n in draw.sample([1, 2, 3], 2):
            dtype = draw.choice([torch.float32, torch.float64])
            name = draw.choice([NEAREST[n], NEAREST[n], EXACT[n]] + SMOOTH[n][:1])
            if draw.random() < 0.2:
                name = SMOOTH[n][-1]
            smooth = name in SMOOTH[n]
            spatial = [draw.choice([1, 2])] * (n - 1) + [size]
            x = torch.arange(size, dtype=dtype).expand([1, 1, *spatial]).contiguous()
            if smooth:
                x = x % 7
            others = [1.0] * (n - 1)
            if draw.random() < 0.5:
                args = [x, None, *([False] if smooth else []), [*others, factor]]
                call = name + ".vec"
            else:
                out = spatial[:-1] + [int(size * factor)]
                scales = [draw.choice([None, 1.0]) for _ in others] + [draw.choice([factor, factor, None])]
                args, call = [x, out, *([False] if smooth else []), *scales], name
            # gradients of nearest methods are those of the pixels: PyTorch's own are of other pixels here and there
            found = special_values.outcome(call, args, {})
            if not smooth:
                found["gradients"] = {}
            entry = {"id": f"{call}/{count}", "call": [call, *map(special_values.written, args)]}
            print(json.dumps(entry | found, separators=(",", ":")))
            count += 1


if __name__ == "__main__":
    main()
