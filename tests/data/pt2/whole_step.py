"""Records whole_step.pt2: a range between sizes whose step is a whole real number, as XLNet has it.

    python whole_step.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record


class Positions(torch.nn.Module):
    def forward(self, x):
        rows = x.shape[0]
        return x.sum() + torch.arange(rows, -rows, -1.0, dtype=torch.int64), torch.arange(0, rows, 1.0, dtype=torch.float32)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Positions()
    calls = [(torch.randn(n, 2),) for n in (3, 8, 2)]
    program = torch.export.export(
        model, calls[0], dynamic_shapes=({0: torch.export.Dim("n", min=2, max=8)},), strict=False,
        prefer_deferred_runtime_asserts_over_guards=True,
    )
    record("whole_step", program, calls, model)
