#!/usr/bin/env python3
"""Writes detection_cases.jsonl: results and gradients of torchvision's operators for detectors.

    detection_cases.py > detection_cases.jsonl    (wants torch and torchvision)

Boxes lie inside and outside of the images, are turned over, or have no area; scores have ties and NaN; batches are empty, too.
"""
import json
import random

import torch
import torchvision  # noqa: F401  (defines the operators)

import special_values

INF, NAN = float("inf"), float("nan")


def function_of(name):
    function = getattr(torch.ops.torchvision, name.removeprefix("torchvision::")).default
    return function, [a.name for a in function._schema.arguments]


def numbers(draw, *sizes, low=-2.0, high=2.0, dtype=torch.float32):
    count = torch.Size(sizes).numel()
    return torch.tensor([round(draw.uniform(low, high), 2) for _ in range(count)], dtype=dtype).reshape(sizes)


def boxes(draw, count, height, width, dtype):
    """Corners anywhere around the image; x2 and y2 are mostly behind x1 and y1."""
    rows = []
    for _ in range(count):
        x, y = draw.uniform(-0.3, 0.9) * width, draw.uniform(-0.3, 0.9) * height
        w, h = draw.uniform(0, 0.8) * width, draw.uniform(0, 0.8) * height
        rows.append([round(v, draw.choice([0, 1, 2])) for v in (x, y, x + w, y + h)])
    return torch.tensor(rows, dtype=dtype).reshape(count, 4)


def special_boxes(height, width):
    return [[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, width, height], [-5, -5, -3, -3], [width, height, width + 2, height + 1], [2, 2, 1, 0],
            [-1, -1, width + 1, height + 1], [0.5, 0.5, 1.5, 2.5], [-100, -100, 100, 100], [90, 90, 120, 99]]


def rois(draw, count, batch, height, width, dtype, special):
    corners = torch.cat([boxes(draw, count, height, width, dtype), torch.tensor(special_boxes(height, width) if special else [], dtype=dtype).reshape(-1, 4)])
    images = torch.tensor([draw.randrange(batch) for _ in range(len(corners))], dtype=dtype).reshape(-1, 1)
    return torch.cat([images, corners], 1)


def suppressions(draw):
    for k in range(24):
        dtype = draw.choice([torch.float32, torch.float64])
        count = draw.choice([0, 1, 2, 5, 9, 17, 30])
        dets = boxes(draw, count, 10, 10, dtype)
        scores = numbers(draw, count, low=0, high=1, dtype=dtype)
        if k % 3 == 0:  # ties
            scores = (scores * 3).round() / 3
        if k % 4 == 0 and count:  # equal boxes, and boxes without an area
            dets[draw.randrange(count)] = dets[draw.randrange(count)].clone()
            dets[draw.randrange(count), 2:] = dets[draw.randrange(count), :2].clone()
        if k % 5 == 0 and count:
            scores[draw.randrange(count)] = NAN
            dets[draw.randrange(count), draw.randrange(4)] = draw.choice([NAN, INF, -INF])
        yield "nms", [dets, scores, draw.choice([0.5, 0.3, 0.7, 0.0, 1.0, -1.0])]
    pair = torch.tensor([[0.0, 0, 2, 1], [0, 0, 1, 1]])  # an overlap of exactly a half
    yield "nms", [pair, torch.tensor([0.5, 0.9]), 0.5]
    yield "nms", [pair.double(), torch.tensor([0.5, 0.9], dtype=torch.float64), 0.49999999]


def poolings(draw):
    for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"):
        for k in range(14):
            dtype = draw.choice([torch.float32, torch.float64])
            batch, height, width = draw.choice([1, 2, 3]), draw.choice([1, 3, 5, 8]), draw.choice([1, 4, 6])
            down, right = draw.choice([(1, 1), (2, 2), (3, 2), (1, 4)])
            channels = draw.choice([1, 2]) * (down * right if name.startswith("ps_") else 1)
            count = draw.choice([0, 1, 3, 4])
            image = numbers(draw, batch, channels, height, width, dtype=dtype)
            regions = rois(draw, count, batch, height, width, dtype, special=k % 3 == 0)
            args = [image, regions, draw.choice([1.0, 0.5, 0.25, 2.0]), down, right]
            if name.endswith("align"):
                args.append(draw.choice([-1, 0, 1, 2, 3]))
            if name == "roi_align":
                args.append(draw.random() < 0.5)
            yield name, args
    image = torch.tensor([NAN, 1.0, INF, 2.0, -INF, 3.0, 0.0, NAN, 5.0, 6.0, 7.0, 8.0]).reshape(1, 1, 3, 4)
    region = torch.tensor([[0.0, 0, 0, 3, 2], [0, 2, 1, 3, 2]])
    yield "roi_pool", [image, region, 1.0, 2, 2]
    yield "roi_pool", [torch.full((1, 1, 2, 2), -INF), region, 1.0, 1, 2]
    yield "roi_align", [image, region, 1.0, 2, 2, 2, True]


def convolutions(draw):
    for k in range(18):
        dtype = draw.choice([torch.float32, torch.float64])
        batch, height, width = draw.choice([0, 1, 2, 2]), draw.choice([3, 4, 6]), draw.choice([2, 5])
        kernel, stride, pad, dilation = ([draw.choice(choices) for _ in range(2)] for choices in ((1, 2, 3), (1, 2), (0, 1, 2), (1, 2)))
        groups, offset_groups = draw.choice([(1, 1), (2, 1), (1, 2), (2, 2), (4, 2)])
        out = [(x + 2 * p - d * (n - 1) - 1) // s + 1 for x, n, s, p, d in zip((height, width), kernel, stride, pad, dilation)]
        if min(out) < 1:
            continue
        channels, taps = 4, kernel[0] * kernel[1]
        offset = numbers(draw, batch, 2 * offset_groups * taps, *out, low=-3, high=3, dtype=dtype)
        if k % 4 == 0:
            offset = offset.round()
        mask = numbers(draw, batch, offset_groups * taps, *out, low=0, high=1, dtype=dtype)
        use_mask = draw.random() < 0.6
        yield "deform_conv2d", [
            numbers(draw, batch, channels, height, width, dtype=dtype), numbers(draw, 4, channels // groups, *kernel, dtype=dtype), offset,
            mask if use_mask else torch.zeros(batch, 1, dtype=dtype), numbers(draw, 4, dtype=dtype), *stride, *pad, *dilation, groups,
            offset_groups, use_mask,
        ]


def main():
    torch.set_num_threads(1)
    special_values.function_of = function_of
    draw = random.Random(3)
    for k, (name, args) in enumerate([*suppressions(draw), *poolings(draw), *convolutions(draw)]):
        name = "torchvision::" + name
        args, _ = special_values.as_read(args, {})
        found = special_values.outcome(name, args, {})
        if found is None or "refused" in found:
            raise ValueError(f"{name} {k}: {found}")
        if name.endswith("deform_conv2d") and not args[-1]:
            found["gradients"].pop("args.3", None)  # what is not read has no gradient; PyTorch gives zeros
        if name.endswith("ps_roi_pool"):
            found["gradients"] = {}  # torchvision's gradient is not that of its result: it also counts the last row and column
        print(json.dumps({"id": f"{name}/{k}", "call": [name, *map(special_values.written, args)]} | found, separators=(",", ":")))


if __name__ == "__main__":
    main()
