#!/usr/bin/env python3
"""PyTorch eager beside benchmarks/training.cpp: the same models, batches and optimizers, in turns, in one run.

    python3 benchmarks/peers/training.py build/release/bin/training

Prints items per second of both (median of the rounds) and the ratio.
"""
import json
import statistics
import subprocess
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

ROUNDS = 3


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.stride, self.pad = stride, (outputs - inputs) // 2

    def forward(self, x):
        shortcut = x
        if self.pad:
            shortcut = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.pad, self.pad))
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + shortcut)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        widths = [16] * 4 + [32] * 3 + [64] * 3
        self.blocks = nn.Sequential(*[Block(a, b, 1 + (a != b)) for a, b in zip(widths, widths[1:])])
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        return self.linear(self.blocks(F.relu(self.bn1(self.conv1(x)))).mean((2, 3)))


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
    binary = sys.argv[1]
    for name in ("lenet", "resnet20", "small_gpt"):
        for threads in (1, 2):
            torch.set_num_threads(threads)
            ours, theirs = [], []
            for _ in range(ROUNDS):
                ours.append(taper_rate(binary, name, threads))
                theirs.append(torch_rate(name))
            a, b = statistics.median(ours), statistics.median(theirs)
            print(f"{name:10} {threads} thread{'s' if threads > 1 else ' '}  taper {a:9.0f}  torch {b:9.0f} items/s  ratio {a / b:.2f}", flush=True)


main()
