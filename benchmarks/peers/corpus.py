#!/usr/bin/env python3
"""Writes benchmarks/corpus.json: the convolutions and matrix products of public models, which benchmarks/corpus.cpp times.

    python3 -m venv venv && venv/bin/pip install torch torchvision transformers
    venv/bin/python benchmarks/peers/corpus.py

Each model runs once on PyTorch's device `meta`, which computes shapes and nothing else. So models of any size take a second.
"""
import json
import pathlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import model_zoo

OUTPUT = pathlib.Path(__file__).resolve().parents[1] / "corpus.json"
ABOUT = (
    "The convolutions and matrix products of public models, with batch 1. benchmarks/peers/corpus.py wrote them, and "
    "benchmarks/corpus.cpp times them. [\"convolution\", models, input, weight, stride, padding, dilation, groups]; "
    "[\"linear\", models, [rows, inputs, outputs]]; [\"matmul\", models, [batch, rows, inputs, outputs]]. "
    "`models`: how many of the models below contain the call. Weights of more than 128 MB are left out.")
LARGEST = 128e6 / 4  # elements of a weight

VISION = """alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 mnasnet1_0 mobilenet_v2
mobilenet_v3_large mobilenet_v3_small regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x1_0 squeezenet1_1 swin_t vgg16
vit_b_16""".split()


def transformers_models():
    """Name, a function that makes the model, and its inputs. The sizes are those of the published models."""
    import transformers as t

    ids = lambda length: torch.zeros(1, length, dtype=torch.int64)
    eager = {"attn_implementation": "eager"}
    yield "bert_base", lambda: t.BertModel(t.BertConfig(**eager)), [ids(128)]
    yield "distilbert", lambda: t.DistilBertModel(t.DistilBertConfig(**eager)), [ids(128)]
    yield "minilm", lambda: t.BertModel(t.BertConfig(hidden_size=384, num_hidden_layers=6, intermediate_size=1536, **eager)), [ids(128)]
    yield "gpt2", lambda: t.GPT2LMHeadModel(t.GPT2Config(**eager)), [ids(64)]
    yield "t5_small_encoder", lambda: t.T5EncoderModel(t.T5Config()), [ids(128)]
    yield "qwen2_0.5b", lambda: t.Qwen2ForCausalLM(t.Qwen2Config(
        hidden_size=896, intermediate_size=4864, num_hidden_layers=2, num_attention_heads=14, num_key_value_heads=2, **eager)), [ids(1)]
    yield "qwen2_0.5b_prompt", lambda: t.Qwen2Model(t.Qwen2Config(
        hidden_size=896, intermediate_size=4864, num_hidden_layers=2, num_attention_heads=14, num_key_value_heads=2, **eager)), [ids(64)]
    yield "whisper_tiny_encoder", lambda: t.models.whisper.modeling_whisper.WhisperEncoder(t.WhisperConfig(**eager)), [
        torch.zeros(1, 80, 3000)]
    yield "wav2vec2_base", lambda: t.Wav2Vec2Model(t.Wav2Vec2Config(**eager)), [torch.zeros(1, 16000)]
    yield "segformer_b0", lambda: t.SegformerModel(t.SegformerConfig(**eager)), [torch.zeros(1, 3, 224, 224)]
    yield "clip_vision_b32", lambda: t.CLIPVisionModel(t.CLIPVisionConfig(**eager)), [torch.zeros(1, 3, 224, 224)]


def vision_models():
    import torchvision

    options = {name: {"aux_logits": False, "init_weights": False} for name in ("googlenet", "inception_v3")}
    for name in VISION:
        size = 299 if name == "inception_v3" else 224
        yield name, lambda name=name: torchvision.models.get_model(name, weights=None, **options.get(name, {})), [
            torch.zeros(1, 3, size, size)]
    for name in ("ds_cnn", "lenet", "resnet20"):
        make, example = model_zoo.MODELS[name]
        yield name, make, [example(1)]


class Recorder(TorchDispatchMode):
    """Collects the calls that the corpus is made of."""

    def __init__(self):
        super().__init__()
        self.calls = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name, sizes = function.overloadpacket.__name__, [tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args]
        if name == "convolution":
            x, w, _, stride, padding, dilation, transposed, _, groups = sizes
            if not transposed:
                self.calls.add(("convolution", x, w, tuple(stride), tuple(padding), tuple(dilation), groups))
        elif name in ("mm", "addmm"):
            (rows, inputs), (_, outputs) = sizes[-2:]
            if inputs * outputs <= LARGEST:
                self.calls.add(("linear", (rows, inputs, outputs)))
        elif name == "bmm":
            (batch, rows, inputs), (_, _, outputs) = sizes
            self.calls.add(("matmul", (batch, rows, inputs, outputs)))
        return function(*args, **(kwargs or {}))


def on_meta(make):
    try:
        with torch.device("meta"):
            return make().eval()
    except (NotImplementedError, RuntimeError):  # it computes with numbers while it is made
        return make().eval().to("meta")


def calls_of(make, inputs):
    model, given = on_meta(make), [x.to("meta") for x in inputs]
    recorder = Recorder()
    with torch.no_grad(), recorder:
        model(*given)
    return recorder.calls


def main():
    counts, names = {}, []
    for name, make, inputs in [*vision_models(), *transformers_models()]:
        calls = calls_of(make, inputs)
        names.append(name)
        for call in calls:
            counts[call] = counts.get(call, 0) + 1
        print(f"{name}: {len(calls)} calls")
    lines = [json.dumps([call[0], n, *call[1:]]) for call, n in sorted(counts.items(), key=str)]
    OUTPUT.write_text("{\n" + f'"about": {json.dumps(ABOUT)},\n"models": {json.dumps(names)},\n"cases": [\n' + ",\n".join(lines) + "\n]\n}\n")
    print(f"{len(lines)} shapes in {OUTPUT}")


if __name__ == "__main__":
    main()
