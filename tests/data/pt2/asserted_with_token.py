"""Records asserted_with_token.pt2: assertions in their functional form, which pass a token on. Each may follow from the data.

    python asserted_with_token.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record


class AssertedWithToken(torch.nn.Module):
    def forward(self, x):
        token = torch.ops.aten._make_dep_token()
        token = torch.ops.aten._functional_assert_async.msg((x > -100).all(), "every element is above -100", token)
        torch.ops.aten._functional_assert_async.msg(x.sum() < 100, "the sum is below 100", token)
        return x * 2


if __name__ == "__main__":
    torch.manual_seed(0)
    call = (torch.randn(3, 4),)
    record("asserted_with_token", torch.export.export(AssertedWithToken(), call), [call])
