#!/usr/bin/env python3
"""PyTorch's matrix product (oneMKL on x86) on the work of benchmarks/gemm.cpp.

    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 python3 benchmarks/peers/gemm.py 1
"""
import statistics
import sys
import time

import torch

threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
torch.set_num_threads(threads)


def rates(work, run, least_seconds=2.0):
    for _ in range(3):
        run()
    found, end = [], time.perf_counter() + least_seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        found.append(work / (time.perf_counter() - start) / 1e9)
    return max(found), statistics.median(found)


for m, k, n in [(512, 2048, 2048), (1, 2048, 2048), (64, 400, 120), (1024, 128, 384), (1024, 512, 128), (64, 32, 64)]:
    a, b, bt, c = torch.rand(m, k), torch.rand(k, n), torch.rand(n, k).t(), torch.empty(m, n)
    for name, right in [("", b), ("/b_transposed", bt)]:
        best, median = rates(2 * m * k * n, lambda: torch.mm(a, right, out=c))
        print(f"torch{name} threads:{threads} m:{m} k:{k} n:{n}  best {best:.1f}  median {median:.1f} GFLOP/s")
