"""What the lists of zoo.py share: an example of a model, small configurations, and models of transformers with random weights."""

import dataclasses
from typing import Callable

import torch
from torch import nn

BATCH, SEQUENCE = 2, 12
VOCABULARY = 120


@dataclasses.dataclass
class Example:
    """A module and a call of it.

    `sequence` names the dimension of each input that grows with the text, None for none. `is_clear` tells whether rounding may change
    results only a little: not the order of detections whose scores are nearly equal.
    """

    module: nn.Module
    inputs: list
    sequence: list | None = None
    is_clear: Callable[[list], bool] = lambda results: True


@dataclasses.dataclass
class Model:
    name: str
    source: str
    family: str
    make: Callable[[], Example]


def images(size, channels=3):
    """`size` is the side of a square, or (rows, columns)."""
    return [torch.randn(BATCH, channels, *(size if isinstance(size, tuple) else (size, size)))]


def tokens(length=SEQUENCE):
    return torch.randint(5, VOCABULARY, (BATCH, length))


SMALL = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=VOCABULARY,
    max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)
SMALL_PAIR = dict(
    d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
    decoder_ffn_dim=64, vocab_size=VOCABULARY, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    decoder_start_token_id=1, forced_eos_token_id=None,
)
KEY_VALUE = dict(num_key_value_heads=2, head_dim=8)
VISION = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=64, patch_size=16)


def tensors_of(value):
    """The tensors of what a model of transformers gives, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for part in value for t in tensors_of(part)]
    return []


class Named(nn.Module):
    """Calls a model with named arguments, and gives its tensors."""

    def __init__(self, model, names, options):
        super().__init__()
        self.model, self.names, self.options = model, names, options

    def forward(self, *inputs):
        return tuple(tensors_of(self.model(**dict(zip(self.names, inputs)), **self.options)))


def count_padding(model):
    """Makes codecs compute their padding with integers.

    The definitions keep sizes of convolutions in tensors, and torch.export cannot pad by an element of a tensor.
    """

    def extra_padding(layer):
        stride, kernel, total = (int(getattr(layer, name)) for name in ("stride", "kernel_size", "padding_total"))
        for name, value in (("stride", stride), ("kernel_size", kernel), ("padding_total", total)):
            delattr(layer, name)
            setattr(layer, name, value)
        return lambda hidden_states: -(hidden_states.shape[-1] - kernel + total) % stride

    for layer in model.modules():
        if hasattr(layer, "_get_extra_padding_for_conv1d") and isinstance(layer.stride, torch.Tensor):
            layer._get_extra_padding_for_conv1d = extra_padding(layer)


def build(name, config, names, inputs, sequence=None, options=None):
    """A model of transformers with random weights. `config` may name the implementation of its experts."""
    import transformers

    kind = getattr(transformers, name)
    config = dict(config)
    experts = config.pop("experts", None)
    config = kind.config_class(**config)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    model = kind._from_config(config, **({"experts_implementation": experts} if experts else {}))
    count_padding(model)
    return Example(Named(model, names, options or {}), inputs, sequence)


def text(name, config, masked):
    """A model of token ids, with an attention mask if `masked`."""

    def make():
        names, inputs = ["input_ids"], [tokens()]
        if masked:
            mask = torch.ones_like(inputs[0])
            mask[1, -3:] = 0
            names, inputs = [*names, "attention_mask"], [*inputs, mask]
        settings = {k: v for k, v in {**SMALL, **config}.items() if v is not None}
        return build(name, settings, names, inputs, [1] * len(inputs))

    return make
