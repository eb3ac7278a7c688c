"""Records models for `taper check`: two models in one archive, one buffer with three names, a model in
f16, and a result that is None.

    python checked_calls.py       # needs torch 2.15 and safetensors
"""
import torch
from safetensors.torch import save_file
from torch.export.pt2_archive._package import package_pt2


class Scale(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


class Sum(torch.nn.Module):
    """Adds its inputs up in a buffer, which has a second name, and a third one for its first element."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("alias", self.total)
        self.register_buffer("first", self.total[0:1])

    def forward(self, x):
        self.total.add_(x)
        return self.total * 2


class Halves(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 4).half()

    def forward(self, x):
        return self.linear(x.half()).float()


class Absent(torch.nn.Module):
    def forward(self, x):
        return x + 1, None, x * 2


def export(module, *inputs):
    program = torch.export.export(module, inputs)
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # paths of the machine
    return program


def record(run, calls, prefix="", buffers=None):
    recorded = {}
    for k, x in enumerate(calls):
        recorded[f"{prefix}set{k}.input.0"] = x.clone()
        recorded[f"{prefix}set{k}.output.0"] = run(x).detach().clone()
        for name, buffer in buffers(k).items() if buffers else ():
            recorded[f"{prefix}set{k}.buffer.{name}"] = buffer.clone()
    return recorded


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(3)
    models = {"encoder": Scale(2), "decoder": Scale(3)}
    package_pt2("several_models.pt2", exported_programs={name: export(m, x) for name, m in models.items()})
    recorded = {}
    for name, module in models.items():
        recorded |= record(module, [x], f"{name}.")
    save_file(recorded, "several_models.io.safetensors")

    module = Sum()
    torch.export.save(export(module, x), "buffer_with_three_names.pt2")
    module = Sum()
    recorded = record(module, [x, torch.randn(3)], buffers=lambda _: dict(module.named_buffers(remove_duplicate=False)))
    save_file(recorded, "buffer_with_three_names.io.safetensors")

    module = Halves()
    call = torch.randn(2, 64)
    torch.export.save(export(module, call), "in_halves.pt2")
    save_file(record(module, [call]), "in_halves.io.safetensors")

    module = Absent()
    torch.export.save(export(module, x), "absent_result.pt2")
    first, _, last = module(x)
    save_file({"set0.input.0": x, "set0.output.0": first, "set0.output.2": last}, "absent_result.io.safetensors")
