#!/usr/bin/env python3
"""Writes stories260K.gguf from the files of llama2.c (https://github.com/karpathy/llama2.c). Needs `pip install gguf numpy`.

    python3 make_gguf.py stories260K.bin stories260K_tok512.bin stories260K.gguf

The weights are a legacy checkpoint: seven int32, then f32 arrays with those of all layers together. The tokenizer has an int32, then a
score, a length and the bytes of each piece.
"""
import struct
import sys

import gguf
import numpy

if len(sys.argv) != 4:
    sys.exit(__doc__)
weights_path, tokenizer_path, output = sys.argv[1:]

with open(weights_path, "rb") as file:
    hidden, ff, layers, heads, kv_heads, vocabulary, context = struct.unpack("7i", file.read(28))
    rest = numpy.fromfile(file, dtype="<f4")
place = 0


def take(*sizes):
    global place
    count = int(numpy.prod(sizes))
    place += count
    return rest[place - count:place].reshape(sizes)


kv = hidden // heads * kv_heads
embedding = take(vocabulary, hidden)
of_layers = {  # in the order of the file
    "attn_norm": take(layers, hidden),
    "attn_q": take(layers, hidden, hidden),
    "attn_k": take(layers, kv, hidden),
    "attn_v": take(layers, kv, hidden),
    "attn_output": take(layers, hidden, hidden),
    "ffn_norm": take(layers, hidden),
    "ffn_gate": take(layers, ff, hidden),
    "ffn_down": take(layers, hidden, ff),
    "ffn_up": take(layers, ff, hidden),
}

pieces, scores, kinds = [], [], []
with open(tokenizer_path, "rb") as file:
    file.read(4)  # the longest piece
    for token in range(vocabulary):
        score, length = struct.unpack("<fi", file.read(8))
        piece = file.read(length)
        kind = gguf.TokenType.NORMAL
        if token < 3:  # their texts are llama2.c's own
            piece, kind = [(b"<unk>", gguf.TokenType.UNKNOWN), (b"<s>", gguf.TokenType.CONTROL), (b"</s>", gguf.TokenType.CONTROL)][token]
        elif token < 259:
            piece, kind = b"<0x%02X>" % (token - 3), gguf.TokenType.BYTE
        pieces.append(piece.replace(b" ", "\u2581".encode()))
        scores.append(score)
        kinds.append(kind)

out = gguf.GGUFWriter(output, "llama")
out.add_name("stories260K")
out.add_license("MIT")
out.add_url("https://huggingface.co/karpathy/tinyllamas")
out.add_context_length(context)
out.add_embedding_length(hidden)
out.add_block_count(layers)
out.add_feed_forward_length(ff)
out.add_head_count(heads)
out.add_head_count_kv(kv_heads)
out.add_layer_norm_rms_eps(1e-5)
out.add_rope_dimension_count(hidden // heads)
out.add_rope_freq_base(10000)
out.add_tokenizer_model("llama")
out.add_token_list(pieces)
out.add_token_scores(scores)
out.add_token_types(kinds)
out.add_bos_token_id(1)
out.add_eos_token_id(2)
out.add_add_bos_token(True)
out.add_add_space_prefix(True)
out.add_tensor("token_embd.weight", embedding)
for layer in range(layers):
    for name, values in of_layers.items():
        out.add_tensor(f"blk.{layer}.{name}.weight", values[layer])
out.add_tensor("output_norm.weight", take(hidden))
out.write_header_to_file()
out.write_kv_data_to_file()
out.write_tensors_to_file()
out.close()
