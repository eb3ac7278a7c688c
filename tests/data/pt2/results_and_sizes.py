"""Records models whose results have names, whose sizes are bounded together, and a training graph with a frozen bias.

    python results_and_sizes.py        # needs torch 2.15 and safetensors
"""
import torch
from torch.export import Dim, export
from torch.export.experimental import _export_forward_backward

from recording import record


class NamedResults(torch.nn.Module):
    """Its arguments nest, its results have keys, and it does not know its first size."""

    def forward(self, x, *, past):
        total = x + past["keys"][0]
        return {"sum": total, "past": (total * 2, [x - 1]), "a key/=": x.sum(0), "rows": x.shape[0]}


class ProductOfSizes(torch.nn.Module):
    """Two sizes are in the input. Each may be 16, and so may be their product."""

    def forward(self, sizes, x):
        rows, columns = sizes[0].item(), sizes[1].item()
        for size in (rows, columns):
            torch._check(size >= 1)
            torch._check(size <= 16)
        torch._check(rows * columns <= 16)
        return torch.cat([torch.ones(rows, columns).reshape(-1), torch.zeros(16 - rows * columns)]) * x


class Frozen(torch.nn.Module):
    """The bias of the convolution does not learn: its backward pass gives no gradient for it, nor for x."""

    def __init__(self):
        super().__init__()
        self.conv, self.out = torch.nn.Conv2d(1, 2, 3), torch.nn.Linear(2, 1, bias=False)
        self.conv.bias.requires_grad_(False)

    def forward(self, x, y):
        return (((self.out(self.conv(x).relu().mean((2, 3))) - y) ** 2).mean(),)


if __name__ == "__main__":
    torch.manual_seed(0)
    calls = [(torch.randn(n, 4), {"past": {"keys": [torch.randn(n, 4)]}}) for n in (3, 2, 9)]
    shapes = {"x": {0: Dim.DYNAMIC(max=64)}, "past": {"keys": [{0: Dim.DYNAMIC(max=64)}]}}
    record("named_results", export(NamedResults(), calls[0][:1], calls[0][1], dynamic_shapes=shapes), calls)

    calls = [(torch.tensor(sizes), torch.randn(16)) for sizes in ((3, 4), (16, 1), (1, 16), (4, 4))]
    record("product_of_sizes", export(ProductOfSizes(), calls[0]), calls)

    model, call = Frozen(), (torch.randn(2, 1, 5, 5), torch.randn(2, 1))
    program = _export_forward_backward(export(model, call))

    def loss_and_gradients(*arguments):
        loss = model(*arguments)[0]
        return (loss, *torch.autograd.grad(loss, [model.conv.weight, model.out.weight]))

    record("frozen_in_training", program, [call], loss_and_gradients)
