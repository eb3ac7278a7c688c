"""Records views_of_dtypes.pt2: bits of floats, and the same bytes as smaller and larger elements, read and written.

    python views_of_dtypes.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record


class ViewsOfDtypes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(24, dtype=torch.uint8).reshape(3, 8))

    def forward(self, x, codes):
        """x (rows, 8) f32, codes (rows, 8) u8."""
        bits = x.view(torch.int32)
        exponent = ((bits >> 23) & 255) - 127
        mantissa = ((bits & 0x7FFFFF) | 0x3F800000).view(torch.float32)
        truncated = (bits >> 16).to(torch.int16).view(torch.bfloat16)
        halves = x.view(torch.int16)
        bytes_ = x[:, 2:6].contiguous().view(torch.uint8)
        joined = codes.view(torch.int64) + self.table[:1].view(torch.int64)
        float8 = codes.view(torch.float8_e5m2).to(torch.float32)
        back = bytes_.view(torch.float32) * 2
        written = x.clone()
        written.view(torch.int32)[0] = 0x40000000  # 2
        written.view(torch.int16)[:, 1::2].bitwise_and_(0x7FFF)  # the signs of all
        return exponent, mantissa, truncated, halves, bytes_, joined, float8, back, written, x[:, 1::2].view(torch.int32)


if __name__ == "__main__":
    torch.manual_seed(0)
    rows = torch.export.Dim("rows", min=2, max=64)
    for name in ("views_of_dtypes", "views_of_dtypes_decomposed"):
        calls = [(torch.randn(n, 8), torch.randint(0, 120, (n, 8)).to(torch.uint8)) for n in (2, 3)]
        program = torch.export.export(ViewsOfDtypes(), calls[0], dynamic_shapes=({0: rows}, {0: rows}))
        if name.endswith("decomposed"):
            program = program.run_decompositions()
        record(name, program, calls, ViewsOfDtypes())
