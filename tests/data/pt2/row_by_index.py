"""Records row_by_index.pt2: a row of a table by a number in a tensor, and a view of what PyTorch keeps in
another order of dimensions.

    python row_by_index.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record


class Rows(torch.nn.Module):
    def forward(self, x, n):
        scaled = x.t() * 0.5  # its columns stay dense in PyTorch
        return x[n] * 2, scaled.t().view(2, -1)


if __name__ == "__main__":
    torch.manual_seed(0)
    calls = [(torch.randn(4, 3), torch.tensor(k)) for k in (0, 3)]
    record("row_by_index", torch.export.export(Rows(), calls[0]), calls)
