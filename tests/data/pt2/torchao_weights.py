"""Records models whose weights torchao quantized and left as tensor subclasses.

    python torchao_weights.py        # needs torch 2.15, torchao 0.18 and safetensors
"""
import torch
from torchao.quantization import (Float8WeightOnlyConfig, Int8DynamicActivationInt8WeightConfig, Int8DynamicActivationIntxWeightConfig,
                                  Int8WeightOnlyConfig, quantize_)
from torchao.quantization.granularity import PerGroup

from recording import record


def record_quantized(name, config, layers=None, sizes=(2, 32)):
    model = torch.nn.Sequential(*(layers or [torch.nn.Linear(32, 4)])).eval()
    torch.manual_seed(0)
    for layer in model:
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    quantize_(model, config)
    calls = [(torch.randn(sizes),), (torch.randn(sizes),)]
    record(name, torch.export.export(model, calls[0]), calls)


if __name__ == "__main__":
    record_quantized("torchao_float8", Float8WeightOnlyConfig())
    record_quantized("torchao_int8", Int8WeightOnlyConfig())
    record_quantized("torchao_int4", Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(16)))
    record_quantized("torchao_int8_dynamic", Int8DynamicActivationInt8WeightConfig(),
                     [torch.nn.Linear(32, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8, bias=False)], (2, 3, 32))
