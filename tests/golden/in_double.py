#!/usr/bin/env python3
"""Writes in_double.safetensors: what PyTorch gives for some golden cases in half precision when it computes in f64.

    in_double.py FOLDER OUTPUT     (wants torch and numpy; FOLDER: the golden cases, see cases.h)

PyTorch rounds to half precision after each operator of a formula, and keeps statistics in half precision for its
gradients; Taper computes in f32 and rounds once. Where such errors add up to more than a case's tolerance, the exact
result decides who is right: the same call, with the same arguments in f64, rounded once. op_goldens compares with it
where PyTorch's own result is not met. That is a comparison with PyTorch still, within the same tolerance.
"""
import json
import struct
import sys

import torch

CASES = {
    "_native_batch_norm_legit": ["v01", "v12", "v13", "v20"], "native_batch_norm": ["v01", "v15"], "instance_norm": ["v03"],
    "_scaled_dot_product_flash_attention_for_cpu": ["v01", "v03", "v14"], "_softmax_backward_data": ["v01", "v02"],
    "binary_cross_entropy": ["v07"], "binary_cross_entropy_with_logits": ["v03", "v09"], "soft_margin_loss": ["v02", "v09"],
    "cumprod": ["v02"], "cumsum": ["v20"], "gelu": ["v14"],
}
DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
          "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
          "BOOL": torch.bool}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def read(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    cases = json.loads(header.pop("__metadata__")["cases"])["cases"]
    tensors = {}
    for key, entry in header.items():
        begin, end = entry["data_offsets"]
        raw = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.uint8) if end > begin else torch.empty(0, dtype=torch.uint8)
        tensors[key] = raw.view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return {case["id"]: case for case in cases}, tensors


def write(path, cases, tensors):
    header, data = {"__metadata__": {"cases": json.dumps(cases)}}, b""
    for key, tensor in tensors.items():
        raw = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[key] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def wide(tensor):
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor.clone()


def argument(value, tensors):
    if "tensor" in value:
        tensor = wide(tensors[value["tensor"]])
        if value.get("complex"):
            tensor = torch.view_as_complex(tensor)
        return tensor.as_strided(value["sizes"], value["strides"], value["offset"]) if "sizes" in value else tensor
    if "list" in value:
        return [argument(v, tensors) for v in value["list"]]
    if "dtype" in value:
        dtype = getattr(torch, value["dtype"])
        return torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else dtype
    if "scalar" in value:
        return argument(value["scalar"], tensors)
    kind, content = next(iter(value.items()))
    return None if kind == "none" else float(content) if kind == "float" else content


def run(name, case, tensors):
    """The case's entry, and its tensors."""
    args = [argument(v, tensors) for v in case["args"]]
    kwargs = {k: argument(v, tensors) for k, v in case["kwargs"].items()}
    leaves = {}
    for path in case.get("grads", {}):
        where, at, *element = path.split(".")
        holder, key = (args, int(at)) if where == "args" else (kwargs, at)
        if element:
            holder, key = holder[key], int(element[0])
        leaves[path] = holder[key] = holder[key].detach().clone().requires_grad_()
    overload, _, variant = name.partition(".")
    results = getattr(getattr(torch.ops.aten, overload), variant or "default")(*args, **kwargs)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    entry, made = {"outputs": []}, {}

    def keep(place, tensor, like):
        key = case["id"] + " " + place
        tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
        made[key] = tensor.detach().to(tensors[like["tensor"]].dtype)
        return {"tensor": key, **({"complex": True} if like.get("complex") else {})}

    for k, want in enumerate(case["outputs"]):
        entry["outputs"].append(keep(f"outputs.{k}", results[k], want) if "tensor" in want else want)
    if leaves:
        seeded = [(r, argument(g, tensors)) for r, g in zip(results, case["grad_outputs"]) if "tensor" in g]
        twice = case.get("grad_grad")
        gradients = torch.autograd.grad([r for r, _ in seeded], list(leaves.values()), [g for _, g in seeded],
                                        create_graph=twice is not None)
        entry["grads"] = {p: keep("grads." + p, g, case["grads"][p]) for p, g in zip(leaves, gradients)}
        if twice:
            loss = sum((g * wide(tensors[twice["v"][p]["tensor"]])).sum()
                       for p, g in zip(leaves, gradients) if p in twice["v"])
            seconds = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
            entry["grad_grad"] = {p: keep("grad_grad." + p, g, twice["grads"][p])
                                  for p, g in zip(leaves, seconds) if p in twice["grads"]}
    return entry, made


def main(folder, output):
    torch.set_num_threads(1)
    cases, tensors = {}, {}
    for name, versions in CASES.items():
        golden, stored = read(f"{folder}/aten.{name}{'' if '.' in name else '.default'}.safetensors")
        for version in versions:
            entry, made = run(name, golden[f"{name}/{version}"], stored)
            cases[f"{name}/{version}"] = entry
            tensors.update(made)
    write(output, cases, tensors)


if __name__ == "__main__":
    main(*sys.argv[1:])
