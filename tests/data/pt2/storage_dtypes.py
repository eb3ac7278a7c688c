"""Records storage_dtypes.pt2 and scaled_products.pt2: models that hold, read and give float8 and wide unsigned integers.

    python storage_dtypes.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


class StorageDtypes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.tensor([[1, 2**63 + 3], [2**64 - 1, 7]], dtype=torch.uint64))
        self.register_buffer("weight", torch.linspace(-3, 3, 12).reshape(4, 3).to(E4M3))

    def forward(self, small, wide, x, codes):
        """small (2, 4) u16, wide (2, 2) u64, x (2, 3) f32, codes (2, 3) f8_e5m2."""
        bits = (small & 0xFF0) | torch.full((4,), 3, dtype=torch.uint16)
        table = torch.where(wide == self.table, wide, self.table ^ wide)
        rows = torch.cat([table, wide]).index_select(0, torch.tensor([3, 0, 1]))
        rounded = x.to(E4M3)
        product = codes * codes
        return (
            bits, rows, small.to(torch.float32) * 0.5, wide.to(torch.float32), small.to(torch.uint32) * small.to(torch.uint32),
            rounded, rounded.to(torch.float32) @ self.weight.to(torch.float32).t(), product, codes.to(torch.bfloat16),
            torch.stack([codes[0], codes[1]]), rounded == rounded, torch.maximum(small, bits), small.sum(), torch.zeros(2, dtype=E4M3),
        )


class ScaledProducts(torch.nn.Module):
    """Products of float8 matrices with scales of the whole and of lines."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randn(16, 32).to(E4M3))
        self.register_buffer("scale", torch.rand(1, 16) + 0.5)
        self.register_buffer("bias", torch.randn(16))

    def forward(self, x):
        largest = x.abs().amax(1, keepdim=True).clamp(min=1e-12) / 448
        lines = torch._scaled_mm((x / largest).to(E4M3), self.weight.t(), largest, self.scale, self.bias, out_dtype=torch.float32)
        one = x.abs().amax().reshape(1, 1) / 448
        whole = torch._scaled_mm((x / one).to(E4M3), self.weight.t(), one, self.scale[:, :1], out_dtype=torch.bfloat16)
        short = torch._scaled_mm(x.to(E5M2), self.weight.t(), torch.tensor(0.5), torch.tensor(0.25))
        again = torch._scaled_mm(
            x.to(E4M3), self.weight.t(), torch.tensor(0.5), torch.tensor(1.0), scale_result=torch.tensor(4.0), out_dtype=E4M3)
        return lines, whole, short, again


if __name__ == "__main__":
    torch.manual_seed(0)
    calls = [
        (torch.tensor([[0, 1, 40000, 65535], [3, 4095, 32768, 77]]).to(torch.uint16),
         torch.tensor([[1, 2**63 + 1], [2**64 - 1, 2**40]], dtype=torch.uint64), torch.randn(2, 3) * 200,
         torch.randn(2, 3).to(E5M2)) for _ in range(2)]
    record("storage_dtypes", torch.export.export(StorageDtypes(), calls[0]), calls)
    calls = [(torch.randn(n, 32),) for n in (3, 5)]
    shapes = ({0: torch.export.Dim("rows", min=2, max=64)},)
    record("scaled_products", torch.export.export(ScaledProducts(), calls[0], dynamic_shapes=shapes), calls)
