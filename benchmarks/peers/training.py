#!/usr/bin/env python3
"""PyTorch eager beside benchmarks/training.cpp: the same models, batches and optimizers, in turns, in one run.

    python3 benchmarks/peers/training.py build/release/bin/training [--only lenet] [--threads 1,2] [--rounds 3]

Prints items per second of both (median of the rounds) and the ratio.
"""
import argparse
import json
import statistics
import subprocess
import time

import torch
from torch import nn
from torch.nn import functional as F

from model_zoo import LeNet, ResNet20

MODELS = ["lenet", "resnet20", "small_gpt"]


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in self.qkv(self.ln1(x)).split(w, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, w))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary=65, context=64, width=128, layers=4):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[GptBlock(width, 4) for _ in range(layers)])
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        return self.head(self.ln(self.blocks(x))).flatten(0, 1)


def steps_per_second(model, optimizer, inputs, targets, least_seconds=2.0):
    def step():
        loss = F.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for _ in range(3):
        step()
    count, start = 0, time.perf_counter()
    while time.perf_counter() < start + least_seconds:
        step()
        count += 1
    return count / (time.perf_counter() - start)


def torch_rate(name):
    if name == "lenet":
        model = LeNet()
        optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9)
        return 64 * steps_per_second(model, optimizer, torch.randn(64, 1, 28, 28), torch.arange(64) % 10)
    if name == "resnet20":
        model = ResNet20()
        optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, weight_decay=1e-4)
        return 64 * steps_per_second(model, optimizer, torch.randn(64, 3, 32, 32), torch.arange(64) % 10)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.1)
    ids = torch.arange(16 * 64) * 7 % 65
    return 16 * 64 * steps_per_second(model, optimizer, ids.view(16, 64), ids)


def taper_rate(binary, name, threads):
    out = subprocess.run([binary, f"--benchmark_filter=^{name}/{threads}/", "--benchmark_format=json", "--benchmark_min_time=2"],
                         capture_output=True, text=True, check=True).stdout
    return json.loads(out)["benchmarks"][0]["items_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", help="build/release/bin/training")
    parser.add_argument("--only", choices=MODELS, help="one model; default: all")
    parser.add_argument("--threads", default="1,2", help="the numbers of threads")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for name in [options.only] if options.only else MODELS:
        for threads in map(int, options.threads.split(",")):
            torch.set_num_threads(threads)
            ours, theirs = [], []
            for _ in range(options.rounds):
                ours.append(taper_rate(options.binary, name, threads))
                theirs.append(torch_rate(name))
            a, b = statistics.median(ours), statistics.median(theirs)
            print(f"{name:10} {threads} thread{'s' if threads > 1 else ' '}  taper {a:9.0f}  torch {b:9.0f} items/s  ratio {a / b:.2f}", flush=True)


if __name__ == "__main__":
    main()
