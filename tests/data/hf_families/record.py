#!/usr/bin/env python3
"""Records what transformers gives for small models of families that hf_tiny lacks.

    record.py [NAME...]     (writes a folder for each name beside this file)

A folder has config.json, golden.safetensors (names as in hf_tiny) and weights.json, which tells how to compute the weights:

    {"seed": 1, "weights": [["model.norm.weight", [32], 1.0, 0.25], ...]}      name, sizes, center, scale

Element i of a weight is center + scale * u(i), in double precision, then rounded to float32. u(i) is in [-1, 1):

    x = mix(fnv1a64("1/model.norm.weight") + (i + 1) * 0x9E3779B97F4A7C15)      modulo 2^64, with the seed in front
    u = (x >> 40) / 2^23 - 1

mix is the finalizer of SplitMix64 (G. Steele and others, "Fast splittable pseudorandom number generators", 2014).
"""
import json
import os
import shutil
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

from families import ENCODERS, FAMILIES, IMAGES, rule_of

HERE = os.path.dirname(os.path.abspath(__file__))
EXPERTS = {"experts_implementation": "eager"}
TOKENS, FIRST, PROMPT, CONTINUED = 40, 32, 12, 16


def fnv1a64(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


def mixed(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def values(seed, name, sizes, center, scale):
    count = int(np.prod(sizes))
    places = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = mixed(places + np.uint64(fnv1a64(f"{seed}/{name}")))
    u = (x >> np.uint64(40)).astype(np.float64) / 2**23 - 1
    return torch.from_numpy((center + scale * u).astype(np.float32).reshape(sizes))


def names_of_file(make, config):
    """The names and sizes that save_pretrained writes."""
    with tempfile.TemporaryDirectory() as folder:
        make(config).save_pretrained(folder)
        return {name: list(t.shape) for name, t in load_file(f"{folder}/model.safetensors").items()}


def logits(model, ids, **more):
    with torch.no_grad():
        return model(input_ids=ids, **more)


def continuation(model, prompt):
    tokens, margin, ids = [], 1e9, prompt
    for _ in range(CONTINUED):
        best = logits(model, ids, use_cache=False).logits[0, -1].topk(2)
        tokens.append(int(best.indices[0]))
        margin = min(margin, float(best.values[0] - best.values[1]))
        ids = torch.cat([ids, torch.tensor([[tokens[-1]]])], 1)
    return torch.tensor([tokens]), margin


def first_layer(model):
    return next(m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == model.config.get_text_config().num_hidden_layers)[0]


def decoder_golden(model, ids):
    seen = {}
    hook = first_layer(model).register_forward_pre_hook(lambda layer, inputs: seen.setdefault("hidden.embed", inputs[0].clone()))
    whole = logits(model, ids, output_hidden_states=True, use_cache=False)
    hook.remove()
    golden = {"input_ids": ids, "logits": whole.logits, "hidden.final": whole.hidden_states[-1]} | seen
    golden["greedy.prompt"] = ids[:, :PROMPT].clone()
    golden["greedy.tokens"], margin = continuation(model, golden["greedy.prompt"])
    golden["decode.logits"] = decoded(model, ids)
    return golden, margin


def decoded(model, ids):
    """Of the last token, with a cache: FIRST tokens at once, then one by one."""
    state = {}
    for at in [slice(0, FIRST)] + [slice(i, i + 1) for i in range(FIRST, TOKENS)]:
        out = logits(model, ids[:, at], use_cache=True, **state)
        state = {"state": out["state"]} if "state" in out else {"cache": out["cache"]}  # the first is RWKV's
    return out.logits[:, -1:]


def encoder_golden(model, ids):
    whole = logits(model, ids, output_hidden_states=True)
    golden = {"input_ids": ids, "last_hidden_state": whole.last_hidden_state, "hidden.layer_0": whole.hidden_states[1]}
    batch = ids.repeat(2, 1)[:, :20].clone()
    mask = torch.ones_like(batch)
    mask[1, 13:] = 0
    last = logits(model, batch, attention_mask=mask).last_hidden_state
    mean = (last * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    golden |= {"batch.input_ids": batch, "batch.attention_mask": mask}
    golden["batch.last_hidden_state"] = last * mask[..., None]
    golden["batch.mean_pooled_normalized"] = mean / mean.norm(dim=1, keepdim=True)
    return golden, 1.0


def image_golden(model, ids):
    size, channels = model.config.vision_config.image_size, model.config.vision_config.num_channels
    pixels = torch.randn(2, channels, size, size, generator=torch.Generator().manual_seed(0))
    end = model.config.text_config.eos_token_id
    texts = ids[0, :15].reshape(3, 5) % end
    texts[0, 4] = texts[1, 3] = texts[2, 2] = texts[2, 4] = end  # padding has the same number
    with torch.no_grad():
        out = model(input_ids=texts, pixel_values=pixels)
    golden = {n: out[n] for n in ("image_embeds", "text_embeds", "logits_per_image")}
    golden["text_last_hidden_state"] = out.text_model_output.last_hidden_state
    golden["vision_last_hidden_state"] = out.vision_model_output.last_hidden_state
    return golden | {"pixel_values": pixels, "input_ids": texts}, 1.0


def record(name):
    config, make, load = (FAMILIES | ENCODERS | IMAGES)[name]
    sizes = names_of_file(make, config)
    for seed in range(100):
        weights = [[n, s, *rule_of(n, s, config)] for n, s in sorted(sizes.items())]
        with tempfile.TemporaryDirectory() as folder:
            save_file({n: values(seed, n, s, c, r) for n, s, c, r in weights}, f"{folder}/model.safetensors", {"format": "pt"})
            config.save_pretrained(folder)
            model = load(folder, dtype=torch.float32, attn_implementation="eager", **EXPERTS).eval()
            double = load(folder, dtype=torch.float64, attn_implementation="eager", **EXPERTS).eval()
            ids = torch.randint(1, 48, (1, TOKENS), generator=torch.Generator().manual_seed(seed))
            golden_of = image_golden if name in IMAGES else encoder_golden if name in ENCODERS else decoder_golden
            key = "logits_per_image" if name in IMAGES else "last_hidden_state" if name in ENCODERS else "logits"
            golden, margin = golden_of(model, ids)
            rounding = 0 if name in IMAGES else (logits(double, ids)[key] - golden[key]).abs().max().item()
            cached = (golden["decode.logits"] - golden["logits"][:, -1:]).abs().max().item() if "decode.logits" in golden else 0
            print(name, "seed", seed, "std", golden[key].std().item(), "margin", margin, "rounding", rounding, "cache", cached)
            if margin < 0.02 or rounding > 5e-5 or cached > 1e-4:
                continue
            out = f"{HERE}/{name}"
            os.makedirs(out, exist_ok=True)
            shutil.copy(f"{folder}/config.json", out)
            save_file({k: v.contiguous() for k, v in golden.items()}, f"{out}/golden.safetensors")
            lines = ",\n".join(json.dumps(w) for w in weights)
            with open(f"{out}/weights.json", "w") as file:
                file.write(f'{{"seed": {seed}, "weights": [\n{lines}]}}\n')
            return
    raise SystemExit(f"{name}: no seed fits")


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("transformers", transformers.__version__, "torch", torch.__version__)
    for name in sys.argv[1:] or FAMILIES | ENCODERS | IMAGES:
        record(name)
