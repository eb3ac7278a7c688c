"""Records counts_of_parts.pt2: rows that a mask chooses, split by the counts of each part, as Idefics does with images.

    python counts_of_parts.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record


class Parts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        rows = x.flatten(0, 1)
        kept = rows.sum(-1) > 0
        counts = kept.view(2, -1).sum(1)
        parts = self.fc(rows[kept]).split(counts.tolist())
        kept |= rows[:, 0] > 0
        return torch.stack([p.sum(0) for p in parts]), torch.cat([p * (k + 1) for k, p in enumerate(parts)]), kept


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Parts()
    calls = [(torch.randn(2, 5, 4),) for _ in range(3)]
    record("counts_of_parts", torch.export.export(model, calls[0], strict=False), calls, model)
