#!/usr/bin/env python3
"""Copies small cases of the golden results, so that a clone without them compares one formula of each.

    extract.py FOLDER    (FOLDER: the golden data; writes ops.jsonl and nn/ beside this file)

    ops.jsonl                  per differentiable operator, the shortest call, and those with other values of its flags
    nn/optimizers.safetensors  every optimizer: parameters after the first and the last of 12 steps, losses before each; clipping, LoRA
    nn/losses.safetensors      every loss with every option: means, and for one case of a class all elements or the sum
    nn/schedulers.json         all cases

The files have the forms of the golden data, and the same tests read them.
"""
import glob
import json
import math
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FORMATS = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B", "BOOL": "?"}
NAMES = {"F64": "f64", "F32": "f32", "F16": "f16", "I64": "i64", "I32": "i32", "I16": "i16", "I8": "i8", "U8": "u8", "BOOL": "bool"}
LONGEST, LONGEST_FURTHER = 1400, 450  # characters of an operator's first call with results, of others
BRANCHES = {"ceil_mode", "label_smoothing"}  # flags whose cases may be long, too
STEPS = 12


class Tensors:
    """A safetensors file: `header`, the JSON of `cases`, and elements."""

    def __init__(self, path):
        content = open(path, "rb").read()
        size = struct.unpack("<Q", content[:8])[0]
        self.header = json.loads(content[8:8 + size])
        self.data = content[8 + size:]
        self.cases = json.loads(self.header.pop("__metadata__")["cases"])

    def raw(self, key):
        begin, end = self.header[key]["data_offsets"]
        return self.data[begin:end]

    def elements(self, key):
        form = FORMATS[self.header[key]["dtype"]]
        return [x for x, in struct.iter_unpack("<" + form, self.raw(key))]


def write_tensors(path, source, cases, keys):
    header, data = {"__metadata__": {"cases": json.dumps(cases, separators=(",", ":"))}}, b""
    for key in sorted(keys):
        raw = source.raw(key)
        header[key] = source.header[key] | {"data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


# ---- optimizers, losses, schedulers

def optimizers(folder):
    file = Tensors(f"{folder}/nn/optimizers.safetensors")
    keys = {key for key in file.header if "/" not in key and not key.startswith("lora.") and not key.startswith("clip_")}
    keys |= {key for key in file.header if re.match(r"clip_|lora\.([qxyAB]|scales|gradA0|gradB0|merged)$", key)}
    for case in file.cases:
        if "op" in case:
            continue
        losses = case["loss_before_step"] = [float(f"{x:.8g}") for x in case["loss_before_step"][:STEPS]]
        keys |= {f"{case['id']}.step{n:02}" for n in (1, len(losses))}
    write_tensors(f"{HERE}/nn/optimizers.safetensors", file, file.cases, keys)


def losses(folder):
    file = Tensors(f"{folder}/nn/losses.safetensors")
    chosen, others = [], {}
    for case in file.cases:
        reduction = case["args"]["reduction"]
        wanted = ("none", "sum")[sum(map(ord, case["class"])) % 2]
        if reduction == "mean" or (reduction == wanted and others.setdefault(case["class"], case) is case):
            chosen.append(case)
    keys = [key for key in file.header if any(key.startswith(case["id"] + ".") for case in chosen)]
    write_tensors(f"{HERE}/nn/losses.safetensors", file, chosen, keys)


def schedulers(folder):
    cases = json.load(open(f"{folder}/nn/schedulers.json"))
    with open(f"{HERE}/nn/schedulers.json", "w") as out:
        out.write("[" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "]\n")


# ---- operators

class NotShort(Exception):
    """A case that the text form does not hold, or holds only in many words."""


def number(x, digits):
    if isinstance(x, (bool, int)):
        return str(int(x))
    if not math.isfinite(x):
        raise NotShort
    return f"{x:.{digits}g}"


def shortest(x):
    """The fewest digits that give the same f32."""
    for digits in range(1, 9):
        if struct.pack("<f", float(f"{x:.{digits}g}")) == struct.pack("<f", x):
            return f"{x:.{digits}g}"
    return f"{x:.9g}"


def text(file, value, exact):
    """A tensor of a case: `exact` ones are arguments."""
    if "complex" in value or "tensor" not in value:
        raise NotShort
    key = value["tensor"]
    dtype = file.header[key]["dtype"]
    if dtype not in NAMES or dtype in ("F64", "F16"):
        raise NotShort
    elements, sizes = file.elements(key), file.header[key]["shape"]
    if len(elements) > 100:
        raise NotShort
    if "sizes" in value:
        sizes, places = value["sizes"], [value["offset"]]
        for n, stride in zip(sizes, value["strides"]):
            places = [at + i * stride for at in places for i in range(n)]
        elements = [elements[at] for at in places]
    words = [shortest(x) if exact and isinstance(x, float) and math.isfinite(x) else number(x, 5) for x in elements]
    return f"{NAMES[dtype]}[{','.join(map(str, sizes))}] = {' '.join(words)}".rstrip()


def argument(file, value):
    for kind in ("int", "float", "bool", "str", "dtype"):
        if kind in value:
            return value[kind]
    if "none" in value:
        return None
    if "scalar" in value:
        return argument(file, value["scalar"])
    if "list" in value:
        return [argument(file, v) for v in value["list"]]
    return text(file, value, exact=True)


def written(file, case, name):
    """The line of a case in the form of tests/golden/seeds.h."""
    if any(case.get(word) for word in ("error", "random", "mutated", "informative_outputs")) or not case.get("grads"):
        raise NotShort
    outputs = [o for out in case["outputs"] for o in out.get("list", [out])]
    given = [o for out in case["grad_outputs"] for o in out.get("list", [out])]
    kwargs = {key: argument(file, value) for key, value in case["kwargs"].items() if not {"layout", "device", "memory_format"} & set(value)}
    call = [name, *(argument(file, value) for value in case["args"]), *([kwargs] if kwargs else [])]
    results = [None if "none" in o else text(file, o, False) for o in outputs]
    entry = {
        "id": case["id"],
        "call": call,
        "results": results,
        "result_gradients": [None if "none" in o else text(file, o, True) for o in given],
        "gradients": {path: text(file, value, False) for path, value in case["grads"].items() if "none" not in value},
    }
    line = json.dumps(entry, separators=(",", ":"))
    numbers = " ".join(entry["gradients"].values()).split()
    if len(line) > LONGEST or len({x for x in numbers if "[" not in x and x != "="} - {"0", "1"}) < 2:
        raise NotShort
    return line


def pooled_sizes_differ(case, names, file):
    """Whether ceil_mode changes the sizes of a pooling."""
    values = dict(zip(names, case["args"]))
    ints = lambda name: [v["int"] for v in values.get(name, {}).get("list", [])]
    kernel = ints("kernel_size")
    stride, padding, dilation = ints("stride") or kernel, ints("padding") or [0] * 3, ints("dilation") or [1] * 3
    out, x = file.header[case["outputs"][0]["tensor"]]["shape"], values["self"].get("sizes") or file.header[values["self"]["tensor"]]["shape"]
    rank = len(kernel)
    last = lambda sizes: sizes[len(sizes) - rank:]
    return any(o != (n + 2 * padding[d % len(padding)] - dilation[d % len(dilation)] * (kernel[d] - 1) - 1) // stride[d % len(stride)] + 1
               for d, (n, o) in enumerate(zip(last(x), last(out))))


def flags(case, schema, file):
    """What a call chooses: flags, names and reductions, and whether other numbers are 0."""
    parameters = re.findall(r"([A-Za-z]+[\]\[\d?]*)(?:\(\w!?\))? (\w+)(?:=[^,)]*)?[,)]", schema.replace("*, ", ""))
    names = [name for _, name in parameters]
    found = set()
    for name, value in [*zip(names, case["args"]), *case["kwargs"].items()]:
        if name == "ceil_mode":
            found.add((name, value["bool"] and pooled_sizes_differ(case, names, file)))
        elif "bool" in value or "str" in value or (name == "reduction" and "int" in value):
            found.add((name, str(value)))
        elif name in ("label_smoothing", "margin", "weight_decay", "p", "ord"):
            found.add((name, str(value)))
    return found


def operators(folder):
    root = os.path.join(HERE, "../../..")
    rows = set(re.findall(r'^TAPER_OP\(\w+,\s*(?!refused)\w+,\s*"([^("]*)\(', open(f"{root}/kernels/operators.def").read(), re.M))
    known = {line.split()[0] for path in glob.glob(f"{root}/tests/golden/known_*.txt") for line in open(path) if line.strip()}
    lines = []
    for path in sorted(glob.glob(f"{folder}/ops/aten.*.safetensors")):
        base, overload = os.path.basename(path).split(".")[1:3]
        name = base if overload == "default" else f"{base}.{overload}"
        if name not in rows:
            continue
        file = Tensors(path)
        schema, cases, short = file.cases["schema"], file.cases["cases"], []
        for case in cases:
            try:
                if case["id"] not in known:
                    short.append((written(file, case, name), flags(case, schema, file)))
            except NotShort:
                pass
        covered = set()
        for index, (line, chosen) in enumerate(sorted(short, key=lambda s: len(s[0]))):
            new = chosen - covered
            if index == 0 or (new and (len(line) <= LONGEST_FURTHER or any(name in BRANCHES for name, _ in new))):
                lines.append(line)
                covered |= chosen
    with open(f"{HERE}/ops.jsonl", "w") as out:
        out.write("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    os.makedirs(f"{HERE}/nn", exist_ok=True)
    for write in (optimizers, losses, schedulers, operators):
        write(sys.argv[1])
