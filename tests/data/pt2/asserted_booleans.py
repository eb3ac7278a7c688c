"""Records asserted_booleans.pt2: assertions about one boolean reduction, as models of transformers hold them.

    python asserted_booleans.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record


class AssertedBooleans(torch.nn.Module):
    def forward(self, x):
        torch._assert_async(torch._is_all_true(x > -100), "every element is above -100")
        torch._assert_async(torch._is_any_true(torch.isfinite(x)))
        torch._check(torch._is_all_true(torch.isfinite(x)).item())
        return x * 2


if __name__ == "__main__":
    torch.manual_seed(0)
    call = (torch.randn(3, 4),)
    record("asserted_booleans", torch.export.export(AssertedBooleans(), call), [call])
