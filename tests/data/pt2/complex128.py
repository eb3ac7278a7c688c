"""Records complex128.pt2: complex numbers of two f64, as rotary embeddings of video models and signal processing use them.

    python complex128.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record


class Complex128(torch.nn.Module):
    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(6, dtype=torch.float64), 100.0 ** -torch.arange(0, 1, 0.25, dtype=torch.float64))
        self.rotations = torch.polar(torch.ones_like(angles), angles)  # not registered: a constant of the program

    def forward(self, x, y):
        """x (batch, 6, heads, 8), y (batch, 16), f64."""
        pairs = torch.view_as_complex(x.to(torch.float64).reshape(*x.shape[:-1], -1, 2))
        rotated = torch.view_as_real(pairs * self.rotations[:, None]).flatten(3).type_as(x)
        spectrum = torch.fft.rfft(y)
        filtered = torch.fft.irfft(spectrum * torch.exp(-0.1j * torch.arange(9, dtype=torch.float64)), 16)
        power = spectrum.abs() ** 2
        return rotated, filtered + y, power.log1p(), spectrum.angle().to(torch.float32)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Complex128()
    calls = [(torch.randn(n, 6, 2, 8), torch.randn(n, 16, dtype=torch.float64)) for n in (2, 1)]
    batch = torch.export.Dim("batch", min=1, max=8)
    record("complex128", torch.export.export(model, calls[0], dynamic_shapes=({0: batch}, {0: batch})), calls, model)
