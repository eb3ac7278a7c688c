"""Records models that are refused: tensors lie otherwise here, operators and values are not there, or a size
has no bound. ../pt2/joint_training.py records joint_attention.pt2.

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


class StridedTwice(torch.nn.Module):  # two calls that fail for their own reasons, and one that follows
    def forward(self, x):
        first = (x.t() * 2).as_strided((3,), (1,))
        second = (x.t() + 1).as_strided((2,), (1,))
        return first.sum() + second.sum()


class Missing(torch.nn.Module):  # one operator that PyTorch takes apart, one that it does not, and complex numbers
    def forward(self, x):
        return torch.special.bessel_j0(x), torch.expand_copy(x, (2, 4)), x.to(torch.complex64).real


class ComplexF16(torch.nn.Module):  # complex numbers of two f16
    def forward(self, x):
        return (x.to(torch.complex32) * 2).real


class MissingAndStrided(torch.nn.Module):  # an operator that is missing, what follows from it, and a call of the kind above
    def forward(self, x):
        first = torch.special.bessel_j0(x).sum()
        return first, (x.t() * 2).as_strided((3,), (1,))


class HighRank(torch.nn.Module):  # a product of nine dimensions
    def forward(self, x):
        y = x.reshape(2, 1, 1, 1, 1, 1, 1, 2, 2)
        return (y @ y.mT).reshape(2, 4)


class WrittenInVmap(torch.nn.Module):  # writes in place under torch.vmap, by an operator that is not pointwise
    def forward(self, x):
        return torch.vmap(lambda row: row.clone().cumsum_(0))(x)


class Unbounded(torch.nn.Module):  # x of any length; pairs of 2*h rows; n that can only be 3
    def forward(self, x, pairs, n):
        count = n.item()
        torch._check(count >= 1)
        torch._check(count <= 9)
        return x * 2, pairs + 1, torch.arange(count) + torch.ones(3)


class OtherDtype(torch.nn.Module):  # takes a tensor of a dtype that is not here
    def forward(self, x):
        return x.float() + 1


if __name__ == "__main__":
    x = torch.arange(8.0).reshape(2, 4)
    models = {"strided": Strided(), "written_view": WrittenView(), "strided_twice": StridedTwice(), "missing": Missing(),
              "missing_and_strided": MissingAndStrided(), "complex_f16": ComplexF16(), "high_rank": HighRank(),
              "written_in_vmap": WrittenInVmap()}
    for name, model in models.items():
        program = export(model, (x,))
        for node in program.graph.nodes:
            node.meta.pop("stack_trace", None)  # paths of the machine
        save(program, f"{name}.pt2")

    program = export(OtherDtype(), (x.to(torch.float8_e4m3fnuz),))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    save(program, "other_dtype.pt2")

    any_length, even = {0: torch.export.Dim.AUTO}, {0: 2 * torch.export.Dim("half", max=8)}
    program = export(Unbounded(), (torch.ones(5), torch.ones(6, 4), torch.tensor(3)), dynamic_shapes=(any_length, even, None))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    save(program, "unbounded.pt2")
