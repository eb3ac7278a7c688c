#!/usr/bin/env python3
"""Prints what each recipe costs the sentence embeddings of MiniLM, beside those of transformers (golden data).

    minilm_table.py TAPER MODEL_FOLDER GOLDEN_DATA

TAPER is the program `taper`.
"""

import json
import math
import os
import struct
import subprocess
import sys
import tempfile

RECIPES = ["", "int8-weights", "int8-dynamic", "fp8", "mixed", "8da4w", "int4-g32", "int3-g32", "int2-g32"]


def read_floats(path):
    """The tensors of a .safetensors file, which are f32."""
    with open(path, "rb") as file:
        content = file.read()
    size = struct.unpack("<Q", content[:8])[0]
    tensors = {}
    for name, entry in json.loads(content[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", content[begin:end])
    return tensors


def write_npy(path, ids):
    """A tensor i64 (1, count)."""
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': (1, {len(ids)}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(ids)}q", *ids))


def read_npy(path):
    with open(path, "rb") as file:
        content = file.read()
    begin = 10 + struct.unpack("<H", content[8:10])[0]
    return struct.unpack(f"<{(len(content) - begin) // 4}f", content[begin:])


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def main():
    taper, model, data = sys.argv[1:]
    golden = os.path.join(data, "real_models", "all_minilm_l6_v2")
    want = read_floats(golden + ".safetensors")
    with open(golden + ".json") as file:
        sentences = json.load(file)["sentences"]
    print("| recipe | program | least cosine |\n| --- | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        for recipe in RECIPES:
            convert = ["quantize", model, "--recipe", recipe] if recipe else ["export", model]
            subprocess.run([taper, *convert, "-o", path("m.taper")], check=True, stdout=subprocess.DEVNULL)
            least = 1
            for i, sentence in enumerate(sentences):
                ids = sentence["ids"]
                write_npy(path("ids.npy"), ids)
                write_npy(path("mask.npy"), [1] * len(ids))
                inputs = [word for name in ("ids", "mask") for word in ("--input", f"{name}={path(name + '.npy')}")]
                run = [taper, "run", path("m.taper"), "--method", "embed", *inputs, "--output", path("v.npy")]
                subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
                least = min(least, cosine(read_npy(path("v.npy")), want[f"embedding{i}"]))
            size = os.path.getsize(path("m.taper")) / 1e6
            print(f"| {'`' + recipe + '`' if recipe else 'none'} | {size:.1f} MB | {least:.4f} |", flush=True)


main()
