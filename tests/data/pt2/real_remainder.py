"""Records real_remainder.pt2: Python's % of a real number, whose sign is that of the divisor.

    python real_remainder.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record


class Remainder(torch.nn.Module):
    def forward(self, x, n):
        k = n.item()
        return x + k % 2.5, x + (-k) % 2.5, x + k % -2.5


if __name__ == "__main__":
    calls = [(torch.zeros(2), torch.tensor(k)) for k in (-7.25, 7.25, -5.0, 0.5, -1e6)]
    record("real_remainder", torch.export.export(Remainder(), calls[0]), calls, Remainder())
