#!/usr/bin/env python3
"""Records what transformers gives for small models that other tools have quantized, on their de-quantized weights.

    record_quantized.py [NAME...]     (writes quantized/NAME beside this file)

weights.json is as record.py writes it, with a dtype at the end of each line. A number is rounded to the dtype; of an integer, the fraction
is cut off. i32 with a scale: the 32 bits of x >> 32; without one, the center may be a list of numbers. The functions that de-quantize are those
of transformers, compressed-tensors and bitsandbytes where these have some; GPTQ and AWQ are formulas of GPTQModel and AutoAWQ. transformers 5.24,
compressed-tensors 0.20, bitsandbytes 0.50.
"""
import json
import os
import sys
import tempfile

import numpy as np
import torch
from bitsandbytes.functional import QuantState, dequantize_4bit, get_4bit_type, int8_vectorwise_dequant
from compressed_tensors.compressors.mx_utils import decompress_mx_scale
from compressed_tensors.compressors.mxfp6.helpers import unpack_fp6_from_uint8
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, GptOssConfig, LlamaConfig
from transformers.integrations.finegrained_fp8 import _dequantize_fp8_weight
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from families import common, rule_of
from record import EXPERTS, TOKENS, fnv1a64, mixed, names_of_file, values

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f8": torch.float8_e4m3fn, "u8": torch.uint8,
          "i8": torch.int8}
SEED = 1

LLAMA = LlamaConfig(**common(hidden_size=64, intermediate_size=96, num_hidden_layers=2, head_dim=16))
LLAMA_OF_64 = LlamaConfig(**common(hidden_size=64, intermediate_size=128, num_hidden_layers=2, head_dim=16))  # blocks of 64
GPT_OSS = GptOssConfig(**common(head_dim=8, hidden_size=64, intermediate_size=32, num_hidden_layers=2, sliding_window=9,
                                num_local_experts=6, num_experts_per_tok=2))


def tensor_of(name, sizes, center, scale, dtype):
    if dtype == "i32":
        if scale == 0:
            return torch.tensor(center, dtype=torch.int64).expand(sizes).to(torch.int32)
        places = np.arange(1, int(np.prod(sizes)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        words = mixed(places + np.uint64(fnv1a64(f"{SEED}/{name}"))) >> np.uint64(32)
        return torch.from_numpy(words.astype(np.uint32).view(np.int32).reshape(sizes))
    x = torch.tensor(center) if isinstance(center, list) else values(SEED, name, sizes, center, scale)
    return x.to(DTYPES[dtype])


# ---- for each method: the tensors of a weight (name, sizes, center, scale, dtype), and its numbers

STEP = 0.035  # of integers in [-8, 7]


def mxfp4(name, sizes):
    experts, inputs, outputs = sizes
    return [(f"{name}_blocks", [experts, outputs, inputs // 32, 16], 128.0, 128.0, "u8"),
            (f"{name}_scales", [experts, outputs, inputs // 32], 123.5, 1.5, "u8")]


def numbers_of_mxfp4(t, name):
    return convert_moe_packed_tensors(t[f"{name}_blocks"], t[f"{name}_scales"], dtype=torch.float32)


def fp8(name, sizes):
    return [(name, sizes, 0.0, 200.0, "f8"), (f"{name}_scale_inv", [-(-n // 32) for n in sizes], 0.002, 0.001, "f32")]


def numbers_of_fp8(t, name):
    return _dequantize_fp8_weight(t[name], t[f"{name}_scale_inv"], (32, 32), torch.float32).to(torch.bfloat16).float()


def fp8_rows(name, sizes):
    return [(name, sizes, 0.0, 200.0, "f8"), (f"{name}_scale", [sizes[0], 1], 0.002, 0.001, "bf16")]


def numbers_of_fp8_rows(t, name):
    return (t[name].float() * t[f"{name}_scale"].float()).to(torch.bfloat16).float()


def gptq(bits, zeros):
    """`zeros`: of each word; None: any."""
    def tensors(name, sizes):
        stem, (outputs, inputs), groups = name.removesuffix(".weight"), sizes, sizes[1] // 32
        step = STEP if bits == 4 else STEP / 16
        return [(f"{stem}.qweight", [inputs * bits // 32, outputs], 0.0, 1.0, "i32"),
                (f"{stem}.qzeros", [groups, outputs * bits // 32], *((0.0, 1.0) if zeros is None else (zeros, 0.0)), "i32"),
                (f"{stem}.scales", [groups, outputs], step, step / 2, "f16")]

    def numbers(t, name):
        stem, shifts, mask = name.removesuffix(".weight"), torch.arange(0, 32, bits), 2**bits - 1
        ones = sum(1 << shift for shift in range(0, 32, bits))  # a word of zero points was stored minus this one
        q = (t[f"{stem}.qweight"].long()[:, None, :] >> shifts[None, :, None] & mask).flatten(0, 1)
        z = (t[f"{stem}.qzeros"].long()[:, :, None] + ones >> shifts & mask).flatten(1, 2)
        return (t[f"{stem}.scales"].float().repeat_interleave(32, 0) * (q - z.repeat_interleave(32, 0))).T
    return tensors, numbers


def awq(name, sizes):
    stem, (outputs, inputs), groups = name.removesuffix(".weight"), sizes, sizes[1] // 32
    return [(f"{stem}.qweight", [inputs, outputs // 8], 0.0, 1.0, "i32"),
            (f"{stem}.qzeros", [groups, outputs // 8], 0.0, 1.0, "i32"),
            (f"{stem}.scales", [groups, outputs], STEP, STEP / 2, "f16")]


def numbers_of_awq(t, name):
    stem, order = name.removesuffix(".weight"), torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])
    q, z = ((t[f"{stem}.{part}"].long()[:, :, None] >> 4 * order & 15).flatten(1, 2) for part in ("qweight", "qzeros"))
    return (t[f"{stem}.scales"].float().repeat_interleave(32, 0) * (q - z.repeat_interleave(32, 0))).T


def packed(name, sizes):
    outputs, inputs = sizes
    return [(f"{name}_packed", [outputs, inputs // 8], 0.0, 1.0, "i32"), (f"{name}_shape", [2], sizes, 0.0, "i32"),
            (f"{name}_scale", [outputs, inputs // 32], STEP, STEP / 2, "f16")]


def numbers_of_packed(t, name):
    w = t[f"{name}_packed"]
    q = unpack_from_int32(w, 4, torch.Size([w.shape[0], 8 * w.shape[1]]))
    return q.float() * t[f"{name}_scale"].float().repeat_interleave(32, 1)


def mx(bits, unpack, exponent):
    """Weights of `bits` bits in blocks of 32, whose exponents lie around this one."""
    def tensors(name, sizes):
        outputs, inputs = sizes
        floats = ((f"{name}_packed", [outputs, inputs * bits // 8], 128.0, 128.0, "u8") if bits < 8 else (name, sizes, 0.0, 200.0, "f8"))
        return [floats, (f"{name}_scale", [outputs, inputs // 32], exponent + 0.5, 1.5, "u8")]

    def numbers(t, name):
        scales = decompress_mx_scale(t[f"{name}_scale"]).float()
        w = t[name] if bits == 8 else unpack(t[f"{name}_packed"], scales.shape[0], 32 * scales.shape[1])
        return w.float() * scales.repeat_interleave(32, 1)
    return tensors, numbers


def nf4(name, sizes):
    blocks = sizes[0] * sizes[1] // 64
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": sizes, "nested_blocksize": 256, "nested_dtype": "float32",
             "nested_offset": 0.25}
    text = list(json.dumps(state).encode())
    return [(name, [sizes[0] * sizes[1] // 2, 1], 128.0, 128.0, "u8"), (f"{name}.absmax", [blocks], 128.0, 128.0, "u8"),
            (f"{name}.quant_map", [16], get_4bit_type("nf4", "cpu").tolist(), 0.0, "f32"),
            (f"{name}.nested_absmax", [-(-blocks // 256)], 0.1, 0.02, "f32"), (f"{name}.nested_quant_map", [256], 0.0, 1.0, "f32"),
            (f"{name}.quant_state.bitsandbytes__nf4", [len(text)], text, 0.0, "u8")]


def numbers_of_nf4(t, name):
    parts = {key: tensor for key, tensor in t.items() if key.startswith(f"{name}.")}
    return dequantize_4bit(t[name], QuantState.from_dict(parts, torch.device("cpu")))


def int8(name, sizes):
    return [(name, sizes, 0.0, 127.0, "i8"), (f"{name.removesuffix('.weight')}.SCB", [sizes[0]], 0.3, 0.1, "f32")]


def numbers_of_int8(t, name):
    return int8_vectorwise_dequant(t[name], t[f"{name.removesuffix('.weight')}.SCB"])


GROUPS = {"group_0": {"weights": {"num_bits": 4, "group_size": 32, "symmetric": True, "type": "int"}}}
METHODS = {  # the tensors of a weight, its numbers, and what config.json says
    "mxfp4": (mxfp4, numbers_of_mxfp4, {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}),
    "fp8": (fp8, numbers_of_fp8, {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [32, 32]}),
    "fp8_rows": (fp8_rows, numbers_of_fp8_rows, {"quant_method": "compressed-tensors", "format": "float-quantized"}),
    "gptq": (*gptq(4, 0x77777777), {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True, "desc_act": False}),
    "gptq_zeros": (*gptq(4, None), {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": False, "desc_act": False}),
    "gptq_8_bits": (*gptq(8, 0x7F7F7F7F), {"quant_method": "gptq", "bits": 8, "group_size": 32, "sym": True, "desc_act": False}),
    "awq": (awq, numbers_of_awq, {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True}),
    "nf4": (nf4, numbers_of_nf4, {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4",
                                  "bnb_4bit_use_double_quant": True}),
    "bitsandbytes_8_bits": (int8, numbers_of_int8, {"quant_method": "bitsandbytes", "load_in_8bit": True}),
    "mxfp8_e4m3": (*mx(8, None, 118), {"quant_method": "compressed-tensors", "format": "mxfp8-quantized"}),
    "mxfp6_e2m3": (*mx(6, unpack_fp6_from_uint8, 123), {"quant_method": "compressed-tensors", "format": "mxfp6-pack-quantized"}),
    "mxfp4_packed": (*mx(4, unpack_fp4_from_uint8, 123), {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"}),
    "packed": (packed, numbers_of_packed, {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": GROUPS}),
}


def is_quantized(name, method):
    return name.endswith(("experts.gate_up_proj", "experts.down_proj")) if method == "mxfp4" else "proj.weight" in name


def record(method):
    tensors_of, numbers_of, said = METHODS[method]
    config = {"mxfp4": GPT_OSS, "nf4": LLAMA_OF_64}.get(method, LLAMA)
    lines, numbers, tensors = [], {}, {}
    for name, sizes in sorted(names_of_file(AutoModelForCausalLM.from_config, config).items()):
        quantized = is_quantized(name, method)
        parts = tensors_of(name, sizes) if quantized else [(name, sizes, *rule_of(name, sizes, config), "f32")]
        lines += parts
        tensors |= {part[0]: tensor_of(*part) for part in parts}
        numbers[name] = (numbers_of(tensors, name) if quantized else tensors[name]).contiguous()
        assert list(numbers[name].shape) == sizes, name
    with tempfile.TemporaryDirectory() as folder:
        save_file(numbers, f"{folder}/model.safetensors", {"format": "pt"})
        config.save_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", **EXPERTS).eval()
        ids = torch.randint(1, 48, (1, TOKENS), generator=torch.Generator().manual_seed(SEED))
        with torch.no_grad():
            logits = model(input_ids=ids, use_cache=False).logits
        written = json.load(open(f"{folder}/config.json"))
    print(method, "std", logits.std().item())
    out = f"{HERE}/quantized/{method}"
    os.makedirs(out, exist_ok=True)
    json.dump(written | {"quantization_config": said}, open(f"{out}/config.json", "w"), indent=2)
    save_file({"input_ids": ids, "logits": logits.contiguous()}, f"{out}/golden.safetensors")
    text = ",\n".join(json.dumps(line) for line in lines)
    with open(f"{out}/weights.json", "w") as file:
        file.write(f'{{"seed": {SEED}, "weights": [\n{text}]}}\n')


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[1:] or METHODS:
        record(name)
