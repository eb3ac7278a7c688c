"""The models on docs/pytorch.md. Writes data/ when run, with torch 2.15:

    models.py tests/docs/data       model.pt2, and recorded.safetensors: a call with what PyTorch gave
                                    sizes.pt2, with a symbolic size and two that data decides
                                    assistant.pt2, with a weight `adapter`, and another one in adapter.safetensors
"""
import sys

import torch


class Classifier(torch.nn.Module):
    """1000 classes, and few weights."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.head = torch.nn.Linear(3, 1000)

    def forward(self, x):
        return self.head(x.mean((2, 3)))


class Grid(torch.nn.Module):
    def forward(self, x, rows, columns):
        n, m = rows.item(), columns.item()
        for size in (n, m):
            torch._check(size >= 1)
            torch._check(size <= 16)
        return x * 2, torch.ones(n, m)


class Assistant(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.adapter = torch.nn.Parameter(torch.zeros(8, 4))

    def forward(self, x):
        return x @ self.adapter


model, example = Classifier(), torch.zeros(2, 3, 224, 224)

if __name__ == "__main__":
    import safetensors.torch

    folder = sys.argv[1]
    batch = torch.export.Dim("batch", min=1, max=16)
    torch.export.save(torch.export.export(model.eval(), (example,), dynamic_shapes={"x": {0: batch}}), f"{folder}/model.pt2")
    image = (torch.arange(224) % 16 / 16).expand(1, 3, 224, 224).contiguous()
    recorded = {"set0.input.0": image, "set0.output.0": model(image).detach()}
    safetensors.torch.save_file(recorded, f"{folder}/recorded.safetensors")

    sizes = torch.export.export(Grid(), (torch.zeros(3, 4), torch.tensor(2), torch.tensor(5)),
                                dynamic_shapes={"x": {0: torch.export.Dim.AUTO(max=64)}, "rows": None, "columns": None})
    torch.export.save(sizes, f"{folder}/sizes.pt2")

    torch.export.save(torch.export.export(Assistant(), (torch.zeros(1, 8),)), f"{folder}/assistant.pt2")
    safetensors.torch.save_file({"adapter": torch.arange(32.0).reshape(8, 4)}, f"{folder}/adapter.safetensors")
