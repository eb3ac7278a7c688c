"""Records functions under torch.vmap, as a plain export keeps them.

    python vmaps.py        # needs torch 2.15 and safetensors
"""
import torch
from torch.export import Dim

from recording import record


class Mask(torch.nn.Module):
    """As transformers makes masks: a function of the numbers of a batch, a query and a key."""

    def forward(self, kept):
        def sees(batch, query, key):
            return (key <= query) & kept[batch, key]

        by_key = torch.vmap(sees, in_dims=(None, None, 0))
        by_query = torch.vmap(by_key, in_dims=(None, 0, None))
        places = torch.arange(kept.shape[1])
        mask = torch.vmap(by_query, in_dims=(0, None, None))(torch.arange(kept.shape[0]), places, places)
        return torch.where(mask, 0.0, -1.0)


class Operators(torch.nn.Module):
    """Operators that broadcast, and others: reductions, products, views, look-ups, two results, dims from the end."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 6))

    def forward(self, x, y, rows):
        weight = self.weight * 2

        def function(a, b, row):
            hidden = torch.tanh(a @ weight.t())  # (3, 4)
            scaled = hidden * b[:, None] + a.mean()
            with torch.no_grad():
                largest = scaled.amax(1, keepdim=True)
            scaled = (scaled - largest).clone().mul_(b[:, None])
            values, order = scaled.sort(dim=-1, descending=True)
            picked = weight[row] + a[row % 3]
            return values.softmax(-1), order, picked.reshape(2, -1), hidden.amax(1) * row, b.sum() * weight

        return torch.vmap(function, in_dims=(0, 1, 0))(x, y, rows)


class Constant(torch.nn.Module):
    """A result that does not depend on the mapped argument, and levels that only some operands have."""

    def forward(self, x, y):
        pairs = torch.vmap(lambda a: torch.vmap(lambda b: (a - b).abs().amax())(y))(x)
        same = torch.vmap(lambda a: y * 2.0)(x)
        return pairs, same


def record_both(name, model, calls, shapes=None):
    record(name, torch.export.export(model, calls[0], dynamic_shapes=shapes, strict=False), calls, model)


if __name__ == "__main__":
    torch.manual_seed(0)
    record_both(
        "vmap_mask",
        Mask(),
        [(torch.rand(b, t) > 0.3,) for b, t in ((2, 5), (1, 7), (3, 2))],
        ({0: Dim("batch", min=1, max=4), 1: Dim("length", min=2, max=8)},),
    )
    record_both(
        "vmap_operators",
        Operators(),
        [(torch.randn(n, 3, 6), torch.randn(3, n), torch.arange(n) % 4) for n in (5, 2)],
        ({0: Dim("n", min=2, max=8)}, {1: Dim("n", min=2, max=8)}, {0: Dim("n", min=2, max=8)}),
    )
    record_both("vmap_constant", Constant(), [(torch.randn(3, 4), torch.randn(2, 4)) for _ in range(2)])
