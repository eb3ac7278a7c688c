"""Records models of which a call is refused, because tensors lie otherwise here.

    python record.py        # needs torch 2.15
"""
import torch
from torch.export import export, save


class Strided(torch.nn.Module):  # takes elements by strides that results do not have here
    def forward(self, x):
        return (x.t() * 2).as_strided((3,), (1,))


class WrittenView(torch.nn.Module):  # writes into a view that has to be a copy here
    def forward(self, x):
        y = x.t() * 2
        y.t().view(-1).add_(1)
        return y


if __name__ == "__main__":
    x = torch.arange(8.0).reshape(2, 4)
    for name, model in (("strided", Strided()), ("written_view", WrittenView())):
        program = export(model, (x,))
        for node in program.graph.nodes:
            node.meta.pop("stack_trace", None)  # paths of the machine
        save(program, f"{name}.pt2")
