"""Records real_remainder.pt2: Python's % of a real number, whose sign is that of the divisor.

    python real_remainder.py        # needs torch 2.15 and safetensors
"""
import torch
from safetensors.torch import save_file


class Remainder(torch.nn.Module):
    def forward(self, x, n):
        k = n.item()
        return x + k % 2.5, x + (-k) % 2.5, x + k % -2.5


if __name__ == "__main__":
    calls = [(torch.zeros(2), torch.tensor(k)) for k in (-7.25, 7.25, -5.0, 0.5, -1e6)]
    program = torch.export.export(Remainder(), calls[0])
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # paths of the machine
    torch.export.save(program, "real_remainder.pt2")
    recorded = {}
    for k, call in enumerate(calls):
        recorded |= {f"set{k}.input.{i}": t for i, t in enumerate(call)}
        recorded |= {f"set{k}.output.{i}": t for i, t in enumerate(Remainder()(*call))}
    save_file(recorded, "real_remainder.io.safetensors")
