"""Records sizes that a model computes in tensors of one element, as DeBERTa does: known_elements.pt2

    python known_elements.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record


class Span(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(16, 3))

    def forward(self, x):
        span = torch.tensor(min(x.shape[1], 8))
        near = self.table[8 - span : (span + 8) * 1]  # one row for each distance, at most 16
        index = torch.clamp(torch.arange(x.shape[1]) + span, 0, (torch.minimum(span, span + 1) * 2 - 1).item())
        return x + near[index].sum(-1), near


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Span()
    calls = [(torch.randn(2, n),) for n in (5, 12, 1)]
    shapes = ({1: torch.export.Dim("n", min=1, max=12)},)
    record("known_elements", torch.export.export(model, calls[0], dynamic_shapes=shapes), calls, model)
