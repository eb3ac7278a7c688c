#!/usr/bin/env python3
"""Records small models of RWKV 6 and 7 as GGUF files, and what llama.cpp gives with their de-quantized weights.

    record_rwkv.py     (writes gguf/rwkv6.gguf, gguf/rwkv7.gguf and their .golden.safetensors beside this file)

It needs the packages gguf and llama-cpp-python. Names, forms and keys are those of llama.cpp's converter. Matrices are Q4_0, all else F32.
The vocabulary is that of RWKV's "World" models, but small: bytes, and a few words that share beginnings. texts.json has texts with
llama.cpp's tokens.
"""
import json
import os
import tempfile

import gguf
import llama_cpp
import numpy as np
import torch
from gguf.quants import dequantize, quantize
from safetensors.torch import save_file

from record import values

HERE = os.path.dirname(os.path.abspath(__file__))
Q4_0 = gguf.GGMLQuantizationType.Q4_0
LAYERS, MLP, RANK, CONTINUED = 3, 64, 4, 16
HIDDEN, HEAD = None, None  # by version: llama.cpp reads past heads of version 7 that are no multiple of 64
WORDS = [b"  ", b"th", b"the", b" the", b" then", b"\n\n", b"\xc3\xa4", b"\xe2\x82\xac", b"\xe2\x82", b"User", b"User:", b"\\n", b"it's"]
TOKENS = [b"<s>"] + [bytes([i]) for i in range(256)] + WORDS
TEXTS = ["the then  the", " then the\n\nUser: it's 5€ for käse", "äää€† 日本 🙂", "\\n is not\na line's end\t'", "User:\n\n\n", "\x01 it'", "th", ""]
VOCABULARY = 288  # a few are unused, as in the real models


def norm(name, sizes):
    return [(f"{name}.weight", sizes, 1.0, 0.25), (f"{name}.bias", sizes, 0.0, 0.25)]


def common(base):
    h = [HIDDEN]
    yield from norm(f"{base}.attn_norm", h)
    yield from norm(f"{base}.attn_norm_2", h)
    yield from norm(f"{base}.time_mix_ln", h)
    for part in ("receptance", "key", "value", "output"):
        yield f"{base}.time_mix_{part}.weight", [HIDDEN, HIDDEN], 0.0, 0.25
    yield f"{base}.channel_mix_lerp_k.weight", h, 0.5, 0.5
    yield f"{base}.channel_mix_key.weight", [MLP, HIDDEN], 0.0, 0.25
    yield f"{base}.channel_mix_value.weight", [HIDDEN, MLP], 0.0, 0.25


def small(base, first, second, rank):
    return [(f"{base}.{first}.weight", [rank, HIDDEN], 0.0, 0.25), (f"{base}.{second}.weight", [HIDDEN, rank], 0.0, 0.25)]


def layer6(base):
    yield from common(base)
    yield f"{base}.time_mix_lerp_x.weight", [HIDDEN], 0.5, 0.5
    yield f"{base}.time_mix_lerp_fused.weight", [5, 1, 1, HIDDEN], 0.5, 0.5
    yield f"{base}.time_mix_w1.weight", [5 * RANK, HIDDEN], 0.0, 0.25
    yield f"{base}.time_mix_w2.weight", [5, HIDDEN, RANK], 0.0, 0.25
    yield f"{base}.time_mix_first.weight", [HIDDEN // HEAD, HEAD], 0.0, 1.0
    yield f"{base}.time_mix_decay.weight", [HIDDEN], -1.0, 2.0
    yield from small(base, "time_mix_decay_w1", "time_mix_decay_w2", RANK + 2)
    yield f"{base}.time_mix_gate.weight", [HIDDEN, HIDDEN], 0.0, 0.25
    yield f"{base}.channel_mix_lerp_r.weight", [HIDDEN], 0.5, 0.5
    yield f"{base}.channel_mix_receptance.weight", [HIDDEN, HIDDEN], 0.0, 0.25


def layer7(base):
    yield from common(base)
    yield f"{base}.time_mix_lerp_fused.weight", [6, 1, 1, HIDDEN], 0.5, 0.5
    for letter, rank in (("w", RANK), ("a", RANK + 2), ("v", RANK + 2 if base == "blk.0" else RANK + 4)):
        yield f"{base}.time_mix_{letter}0.weight", [HIDDEN], 0.0, 1.0
        yield from small(base, f"time_mix_{letter}1", f"time_mix_{letter}2", rank)
    yield from small(base, "time_mix_g1", "time_mix_g2", RANK + 6)
    for part in ("k_k", "k_a", "r_k"):
        yield f"{base}.time_mix_{part}.weight", [HIDDEN], 0.5, 0.5


def weights_of(version):
    yield "token_embd.weight", [VOCABULARY, HIDDEN], 0.0, 1.0
    yield from norm("token_embd_norm", [HIDDEN])
    yield from norm("output_norm", [HIDDEN])
    yield "output.weight", [VOCABULARY, HIDDEN], 0.0, 0.5
    for i in range(LAYERS):
        yield from (layer6 if version == 6 else layer7)(f"blk.{i}")


def write_metadata(w, version):
    w.add_context_length(1048576), w.add_embedding_length(HIDDEN), w.add_block_count(LAYERS)
    w.add_layer_norm_eps(1e-5), w.add_wkv_head_size(HEAD), w.add_feed_forward_length(MLP), w.add_head_count(0)
    if version == 6:
        w.add_rescale_every_n_layers(2), w.add_time_mix_extra_dim(RANK), w.add_time_decay_extra_dim(RANK + 2)
    else:
        w.add_decay_lora_rank(RANK), w.add_iclr_lora_rank(RANK + 2)
        w.add_value_residual_mix_lora_rank(RANK + 4), w.add_gate_lora_rank(RANK + 6)
    texts = [repr(t)[2:-1].encode() for t in TOKENS] + [f"[PAD{i}]".encode() for i in range(len(TOKENS), VOCABULARY)]
    types = [gguf.TokenType.CONTROL] + [gguf.TokenType.NORMAL] * (len(TOKENS) - 1) + [gguf.TokenType.UNUSED] * (VOCABULARY - len(TOKENS))
    w.add_tokenizer_model("rwkv"), w.add_token_list(texts), w.add_token_types(types)
    w.add_bos_token_id(0), w.add_eos_token_id(0), w.add_eot_token_id(TOKENS.index(b"\n\n"))
    w.add_chat_template("{{ bos_token }}{% for m in messages %}{{ m.role|capitalize + ': ' + m.content|trim + '\\n\\n' }}{% endfor %}"
                        "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}")


def is_in_blocks(name, sizes):
    """The small products and vectors stay in F32, as llama.cpp's quantizer leaves them."""
    return len(sizes) == 2 and not any(part in name for part in ("_w1", "_w2", "_a1", "_a2", "_v1", "_v2", "_g1", "_g2", "_first"))


def set_sizes(version):
    global HIDDEN, HEAD
    HIDDEN, HEAD = (64, 16) if version == 6 else (128, 64)


def write(path, version, seed, in_blocks):
    writer = gguf.GGUFWriter(path, f"rwkv{version}")
    write_metadata(writer, version)
    for name, sizes, center, scale in weights_of(version):
        x = values(seed, name, sizes, center, scale).numpy()
        if is_in_blocks(name, sizes):
            blocks = quantize(x, Q4_0)
            if in_blocks:
                writer.add_tensor(name, blocks, raw_dtype=Q4_0)
                continue
            x = dequantize(blocks, Q4_0)
        writer.add_tensor(name, np.ascontiguousarray(x))
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()


def logits_of(model, ids):
    model.reset()
    model.eval(ids)
    return np.array(model.scores[:len(ids)])


def record(version):
    set_sizes(version)
    stem = f"{HERE}/gguf/rwkv{version}"
    for seed in range(100):
        with tempfile.TemporaryDirectory() as folder:
            write(f"{folder}/model.gguf", version, seed, in_blocks=False)
            model = llama_cpp.Llama(f"{folder}/model.gguf", n_ctx=128, n_batch=64, n_ubatch=64, logits_all=True, n_threads=1, verbose=False)
            ids = torch.randint(1, len(TOKENS), (24,), generator=torch.Generator().manual_seed(seed)).tolist()
            whole = logits_of(model, ids)
            text, margin = ids[:16], 1e9
            for _ in range(CONTINUED):
                last = logits_of(model, text)[-1]
                best = np.sort(last)[-2:]
                text, margin = text + [int(last.argmax())], min(margin, float(best[1] - best[0]))
            print("rwkv", version, "seed", seed, "std", whole.std(), "margin", margin)
            if margin < 0.02:
                continue
            golden = {"input_ids": torch.tensor([ids]), "Q4_0.logits": torch.from_numpy(whole[None].copy()),
                      "Q4_0.greedy": torch.tensor([text[16:]])}
            cases = [{"text": t, "ids": model.tokenize(t.encode(), add_bos=False, special=False)} for t in TEXTS]
        with open(f"{HERE}/gguf/texts.json", "w", encoding="utf-8") as file:
            file.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "]\n")
        write(f"{stem}.gguf", version, seed, in_blocks=True)
        save_file(golden, f"{stem}.golden.safetensors")
        return
    raise SystemExit(f"rwkv {version}: no seed fits")


if __name__ == "__main__":
    for v in (6, 7):
        record(v)
