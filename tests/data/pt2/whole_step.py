"""Records whole_step.pt2: a range between sizes whose step is a whole real number, as XLNet has it.

    python whole_step.py        # needs torch 2.15 and safetensors
"""
import torch
from safetensors.torch import save_file


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
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # paths of the machine
    torch.export.save(program, "whole_step.pt2")
    recorded = {}
    for k, call in enumerate(calls):
        recorded |= {f"set{k}.input.{i}": t for i, t in enumerate(call)}
        recorded |= {f"set{k}.output.{i}": t.detach().contiguous().clone() for i, t in enumerate(model(*call))}
    save_file(recorded, "whole_step.io.safetensors")
