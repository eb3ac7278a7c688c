"""Records written_views.pt2: writes in place into views of arguments and of a buffer.

    python written_views.py        # needs torch 2.15 and safetensors
"""
import torch
from safetensors.torch import save_file


class WrittenViews(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(12.0).reshape(3, 4))

    def forward(self, halves, pieces, cube, rows):
        first, second = halves.split(2, dim=1)
        second.mul_(-2)  # halves changes, and nothing else does
        for i, piece in enumerate(torch.chunk(pieces.clone(), 3)):
            piece.add_(i)  # of a copy
        a, b = torch.split(pieces, [1, 2])
        b[:, 1:].copy_(b[:, :2] + a[:, 1:])
        cube.permute(1, 2, 0)[1].fill_(7)
        top, bottom = torch.unbind(self.table[:2])
        bottom.copy_(top * 10)
        rows.select(0, 1).copy_(rows.select(0, 0))
        rows.t()[2].add_(second.sum())
        return first + second, pieces * 2, self.table.sum(0), cube.sum()


if __name__ == "__main__":
    torch.manual_seed(0)
    calls = [(torch.randn(2, 4), torch.randn(3, 3), torch.randn(2, 3, 2), torch.randn(3, 4)) for _ in range(2)]
    copies = lambda call: tuple(t.clone() for t in call)
    program = torch.export.export(WrittenViews(), copies(calls[0]))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # paths of the machine
    torch.export.save(program, "written_views.pt2")
    recorded = {}
    module = WrittenViews()
    for k, call in enumerate(calls):
        recorded |= {f"set{k}.input.{i}": t.clone() for i, t in enumerate(call)}
        recorded |= {f"set{k}.output.{i}": t.contiguous() for i, t in enumerate(module(*call))}
        recorded |= {f"set{k}.mutated.{i}": t for i, t in enumerate(call)}
        recorded[f"set{k}.buffer.table"] = module.table.clone()
    save_file(recorded, "written_views.io.safetensors")
