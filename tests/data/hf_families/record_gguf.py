#!/usr/bin/env python3
"""Records small models as GGUF files, and what transformers gives with their de-quantized weights.

    record_gguf.py [NAME...]     (writes gguf/NAME.gguf and gguf/NAME.golden.safetensors beside this file)

Names of tensors come from the tables of the gguf package. Matrices are Q4_0, vectors and routers F32. The keys and the moves of rows are
those of llama.cpp's converter: it puts rotated pairs of Llama's kin side by side, and gives each projection of gpt-oss's experts a tensor.
"""
import os
import sys

import gguf
import numpy as np
import torch
from gguf.quants import dequantize, quantize
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, CohereConfig, MixtralConfig, Qwen3MoeConfig
from transformers import Cohere2Config, Ernie4_5Config, Glm4Config, GptOssConfig, Qwen2MoeConfig, SmolLM3Config, Starcoder2Config

from families import rule_of
from record import EXPERTS, continuation, logits, values

HERE = os.path.dirname(os.path.abspath(__file__))
Q4_0 = gguf.GGMLQuantizationType.Q4_0
SIZES = dict(vocab_size=48, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=32,
             max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
SPARSE = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)
YARN = dict(rope_type="yarn", rope_theta=150000.0, factor=4.0, beta_fast=32.0, beta_slow=1.0, truncate=False,
            original_max_position_embeddings=16)

MODELS = {
    "cohere": (gguf.MODEL_ARCH.COMMAND_R, CohereConfig(**SIZES, logit_scale=0.5)),
    "cohere2": (gguf.MODEL_ARCH.COHERE2, Cohere2Config(**SIZES | dict(num_hidden_layers=4), sliding_window=9, logit_scale=0.5)),
    "ernie4_5": (gguf.MODEL_ARCH.ERNIE4_5, Ernie4_5Config(**SIZES, head_dim=8)),
    "glm4": (gguf.MODEL_ARCH.GLM4, Glm4Config(**SIZES, head_dim=8, attention_bias=True)),
    "gpt_oss": (gguf.MODEL_ARCH.GPT_OSS, GptOssConfig(**SIZES, head_dim=8, sliding_window=9, num_local_experts=4,
                                                      num_experts_per_tok=2, rope_parameters=YARN)),
    "mixtral": (gguf.MODEL_ARCH.LLAMA, MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2)),
    "qwen2_moe": (gguf.MODEL_ARCH.QWEN2MOE, Qwen2MoeConfig(**SIZES, **SPARSE, shared_expert_intermediate_size=64)),
    "qwen3_moe": (gguf.MODEL_ARCH.QWEN3MOE, Qwen3MoeConfig(**SIZES, **SPARSE, head_dim=8, norm_topk_prob=True)),
    "smollm3": (gguf.MODEL_ARCH.SMOLLM3, SmolLM3Config(**SIZES | dict(num_hidden_layers=4))),
    "starcoder2": (gguf.MODEL_ARCH.STARCODER2, Starcoder2Config(**SIZES, sliding_window=None)),
}
PERMUTED = ("mixtral", "smollm3")


def side_by_side(w, heads):
    """Rows of a head: the two halves become pairs."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def halves(w, heads):
    return w.reshape(heads, w.shape[0] // heads // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


class Tensor:
    """A tensor of the GGUF file: `put` gives it the model's values, `take` gives them back."""

    def __init__(self, name, put, take):
        self.name, self.put, self.take = name, put, take


def expert_tensors(source, base, joined):
    """Of a fused parameter (experts, rows, columns) or, for gpt-oss, (experts, columns, rows) with pairs of gate and up."""
    def parts(which, transposed):
        def select(p):
            p = p.swapaxes(1, 2) if transposed else p
            half = p.shape[1] // 2
            return p if which is None else p[:, which::2] if transposed else p[:, which * half:(which + 1) * half]
        return (lambda state: np.ascontiguousarray(select(state[source]))), (lambda state, w: select(state[source]).__setitem__(..., w))
    names = {"gate_up_proj": (("gate_exps", 0), ("up_exps", 1)), "down_proj": (("down_exps", None),)}
    return [Tensor(f"{base}.ffn_{n}.weight", *parts(which, joined)) for n, which in names[source.split(".")[-1]]]


def bias_tensors(source, base):
    names = {"gate_up_proj_bias": (("gate_exps", slice(0, None, 2)), ("up_exps", slice(1, None, 2))),
             "down_proj_bias": (("down_exps", slice(None)),)}
    return [Tensor(f"{base}.ffn_{n}.bias", lambda s, at=at: np.ascontiguousarray(s[source][:, at]),
                   lambda s, w, at=at: s[source].__setitem__((slice(None), at), w)) for n, at in names[source.split(".")[-1]]]


def plain_tensor(model, source, config, names):
    name = names.get_name(source, try_suffixes=(".weight", ".bias")) or names.get_name(source + ".weight", try_suffixes=(".weight",))
    if source.endswith("sinks"):
        name = f"blk.{source.split('.')[2]}.attn_sinks.weight"
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(source.split(".")[-2])
    if heads and model in PERMUTED:
        return Tensor(name, lambda s: side_by_side(s[source], heads), lambda s, w: s[source].__setitem__(..., halves(w, heads)))
    if source.endswith("shared_expert_gate.weight"):
        return Tensor(name, lambda s: s[source][0], lambda s, w: s[source].__setitem__(0, w))
    return Tensor(name, lambda s: s[source], lambda s, w: s[source].__setitem__(..., w))


def tensors_of(model, state, config, arch):
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    for source in state:
        base = f"blk.{source.split('.')[2]}" if ".layers." in source else ""
        if ".experts." in source and source.endswith("_bias"):
            yield from bias_tensors(source, base)
        elif ".experts." in source:
            yield from expert_tensors(source, base, model == "gpt_oss")
        else:
            yield plain_tensor(model, source, config, names)


def write_metadata(w, model, config):
    w.add_context_length(config.max_position_embeddings), w.add_embedding_length(config.hidden_size)
    w.add_block_count(config.num_hidden_layers), w.add_feed_forward_length(config.intermediate_size)
    w.add_head_count(config.num_attention_heads), w.add_head_count_kv(config.num_key_value_heads)
    eps = getattr(config, "rms_norm_eps", None)
    w.add_layer_norm_rms_eps(eps) if eps else w.add_layer_norm_eps(getattr(config, "layer_norm_eps", None) or config.norm_epsilon)
    rope, head_dim = config.rope_parameters, getattr(config, "head_dim", None) or 8
    w.add_rope_freq_base(rope["rope_theta"]), w.add_key_length(head_dim), w.add_value_length(head_dim)
    w.add_rope_dimension_count(int(head_dim * rope.get("partial_rotary_factor", 1)))
    w.add_vocab_size(config.vocab_size), w.add_tokenizer_model("none")
    if rope["rope_type"] == "yarn":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN), w.add_rope_scaling_factor(rope["factor"])
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if getattr(config, "sliding_window", None):
        w.add_sliding_window(config.sliding_window)
    if model.startswith("cohere"):
        w.add_logit_scale(config.logit_scale)
    if count := getattr(config, "num_local_experts", None) or getattr(config, "num_experts", None):
        w.add_expert_count(count), w.add_expert_used_count(config.num_experts_per_tok)
        w.add_expert_feed_forward_length(getattr(config, "moe_intermediate_size", config.intermediate_size))
    if model == "qwen2_moe":
        w.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)


def record(name):
    arch, config = MODELS[name]
    config.update(EXPERTS)
    os.makedirs(f"{HERE}/gguf", exist_ok=True)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", **EXPERTS).eval()
    tied = config.tie_word_embeddings
    for seed in range(100):
        state = {n: values(seed, n, list(t.shape), *rule_of(n, list(t.shape), config)).numpy()
                 for n, t in model.state_dict().items() if not (tied and n == "lm_head.weight")}
        writer = gguf.GGUFWriter(f"{HERE}/gguf/{name}.gguf", gguf.MODEL_ARCH_NAMES[arch])
        write_metadata(writer, name, config)
        for t in tensors_of(name, state, config, arch):
            x = np.ascontiguousarray(t.put(state))
            if x.ndim > 1 and not t.name.endswith(".bias") and "ffn_gate_inp" not in t.name:
                blocks = quantize(x, Q4_0)
                writer.add_tensor(t.name, blocks, raw_dtype=Q4_0)
                t.take(state, dequantize(blocks, Q4_0))
            else:
                writer.add_tensor(t.name, x)
        writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
        missing, unknown = model.load_state_dict({n: torch.from_numpy(x.copy()) for n, x in state.items()}, strict=False)
        assert not unknown and set(missing) <= ({"lm_head.weight"} if tied else set()), (missing, unknown)
        ids = torch.randint(1, config.vocab_size, (1, 24), generator=torch.Generator().manual_seed(seed))
        whole = logits(model, ids, use_cache=False).logits
        tokens, margin = continuation(model, ids[:, :16])
        print(name, "seed", seed, "std", whole.std().item(), "margin", margin)
        if margin > 0.02:
            save_file({"input_ids": ids, "Q4_0.logits": whole.contiguous(), "Q4_0.greedy": tokens}, f"{HERE}/gguf/{name}.golden.safetensors")
            return
    raise SystemExit(f"{name}: no seed fits")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[1:] or MODELS:
        record(name)
