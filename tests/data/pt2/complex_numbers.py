"""Records complex_numbers.pt2: complex weights, inputs, results and numbers in all their places; and complex_factors.pt2: the
rotary embedding of Llama 4, with a symbolic batch and length.

    python complex_numbers.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record


class ComplexNumbers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, dtype=torch.complex64))
        self.register_buffer("offset", torch.tensor([1 + 2j, 3 - 1j, 0.5j, 2], dtype=torch.complex64))

    def forward(self, x, z):
        y = x * 1j + z * (2 - 1j) + self.weight * self.offset
        y = torch.where(y.abs() > 2, y, torch.full_like(y, 1j)).masked_fill(x > 1, 1 + 1j)
        power = (y ** (0.5 + 0.5j)) - torch.pow(1 + 1j, x)
        return 1j - y / (1 + 1j), power, y == 1j, torch.full((3,), 2j), x.to(torch.complex64).conj(), torch.linalg.norm(y)


class ComplexFactors(torch.nn.Module):
    def forward(self, queries, positions):
        frequencies = 1.0 / (10000 ** (torch.arange(0, 8, 2) / 8))
        angles = torch.outer(positions, frequencies)
        factors = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_complex(queries.float().reshape(*queries.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * factors[None, :, None]).flatten(3).type_as(queries)


if __name__ == "__main__":
    torch.manual_seed(0)
    model, call = ComplexNumbers(), (torch.randn(4), torch.randn(4, dtype=torch.complex64))
    record("complex_numbers", torch.export.export(model, call), [call])
    batch, time = torch.export.Dim("batch", max=8), torch.export.Dim("time", max=32)
    calls = [(torch.randn(2, 5, 3, 8), torch.arange(5.0)), (torch.randn(1, 9, 3, 8), torch.arange(9.0) + 3)]
    program = torch.export.export(ComplexFactors(), calls[0], dynamic_shapes=({0: batch, 1: time}, {0: time}))
    record("complex_factors", program, calls)
