"""Records models whose weights torchao quantized and left as tensor subclasses.

    python torchao_weights.py        # needs torch 2.15, torchao 0.18 and safetensors
"""
import torch
from safetensors.torch import save_file
from torchao.quantization import (Float8WeightOnlyConfig, Int8DynamicActivationInt8WeightConfig, Int8DynamicActivationIntxWeightConfig,
                                  Int8WeightOnlyConfig, quantize_)
from torchao.quantization.granularity import PerGroup


def record(name, config, layers=(torch.nn.Linear(32, 4),), sizes=(2, 32)):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*layers).eval()
    for layer in model:
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    quantize_(model, config)
    calls = [torch.randn(sizes), torch.randn(sizes)]
    program = torch.export.export(model, (calls[0],))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # paths of the machine
    torch.export.save(program, f"{name}.pt2")
    recorded = {f"set{k}.input.0": x for k, x in enumerate(calls)}
    recorded |= {f"set{k}.output.0": program.module()(x).detach() for k, x in enumerate(calls)}
    save_file(recorded, f"{name}.io.safetensors")


if __name__ == "__main__":
    record("torchao_float8", Float8WeightOnlyConfig())
    record("torchao_int8", Int8WeightOnlyConfig())
    record("torchao_int4", Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(16)))
    record("torchao_int8_dynamic", Int8DynamicActivationInt8WeightConfig(),
           [torch.nn.Linear(32, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8, bias=False)], (2, 3, 32))
