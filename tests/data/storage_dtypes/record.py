"""Records PyTorch's casts from and to the storage dtypes, and files that hold these dtypes.

    python record.py        # needs torch 2.15, numpy and safetensors

casts.safetensors has inputs "f32", "f8_e5m2", …, and results "f32 to f8_e4m3fn", …
"""
import math

import numpy
import torch
from safetensors.torch import save_file

FLOATS = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
INTEGERS = {"u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}
FLOAT8 = {"f8_e4m3fn": torch.float8_e4m3fn, "f8_e5m2": torch.float8_e5m2}
UNSIGNED = {"u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64}
BOOL = {"bool": torch.bool}


def codes(dtype):
    return torch.arange(256, dtype=torch.uint8).view(dtype)


def numbers_around_codes():
    """Every number of 8 bits, the middle between neighbours, and what lies right beside the middle."""
    all_numbers = [0.0, -0.0, math.inf, -math.inf, math.nan, 449.0, 463.9, 464.0, 465.0, 480.0, 61439.0, 61440.0, 65536.0, 1e9, 2.0**-149]
    for dtype in FLOAT8.values():
        finite = codes(dtype)[:127].to(torch.float64)
        finite = finite[finite.isfinite()]
        middle = (finite[1:] + finite[:-1]) / 2
        all_numbers += [*finite.tolist(), *middle.tolist(), *(middle * (1 + 2.0**-20)).tolist(), *(middle * (1 - 2.0**-20)).tolist()]
    x = torch.tensor(all_numbers, dtype=torch.float64)
    return torch.cat([x, -x])


def record():
    file = {}

    def casts(name, x, targets):
        file[name] = x
        for target, dtype in targets.items():
            file[f"{name} to {target}"] = x.to(dtype)

    around = numbers_around_codes()
    for name, dtype in FLOATS.items():
        casts(name, around.to(dtype), FLOAT8)
    for name, dtype in FLOAT8.items():
        casts(name, codes(dtype), FLOATS | FLOAT8 | BOOL)
        # PyTorch leaves open how numbers that an integer does not hold convert
        finite = codes(dtype)[[i for i in range(256) if abs(codes(dtype)[i].to(torch.float32)) < 100]]
        casts(f"small {name}", finite, INTEGERS | UNSIGNED)
    casts("small f32", torch.tensor([0, 0.9, 1.5, 2.5, 65535, 65534.9, 1000, 0.1, -0.0]), UNSIGNED)
    casts("negative f32", torch.tensor([-0.5, -1, -1.5, -3, -255, -256, -65535, -70000]), UNSIGNED)
    casts("large f64", torch.tensor([2.0**32 - 1, 2.0**31, 2.0**53 + 2, 2.0**63, 2.0**63 + 2048, 2.0**64 - 2048, 1e19]), {"u64": torch.uint64})
    casts("large f32", torch.tensor([2.0**31, 2.0**40, 2.0**63, 2.0**64 - 2**40, 1e19]), {"u64": torch.uint64})
    wide = torch.tensor([0, 1, -1, 127, 128, 255, 256, 32768, 65535, 65536, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, -(2**63), -70000, 17, 19])
    casts("i64", wide, FLOAT8 | UNSIGNED)
    for name, dtype in (BOOL | INTEGERS).items():
        if name != "i64":
            casts(name, wide.to(dtype), FLOAT8 | UNSIGNED)
    halfway = [2**24 + 1, 2**24 + 3, 2**63 + 2**39, 2**63 + 2**39 + 1, 2**63 + 3 * 2**39, 2**53 + 1, 2**63 + 1024, 2**63 + 1025, 2**64 - 1]
    for name, dtype in UNSIGNED.items():
        limit = 2 ** (8 * dtype.itemsize)
        values = [v for v in [0, 1, 2, 100, 255, 256, 449, 60000, 65535, 2**31, 2**32 - 1, *halfway] if v < limit]
        casts(name, torch.tensor(values, dtype=dtype), BOOL | INTEGERS | FLOATS | FLOAT8 | UNSIGNED)
    save_file({name: t.contiguous().clone() for name, t in file.items()}, "casts.safetensors")


def record_files():
    tensors = {name: torch.tensor([1, 2, 200]).to(dtype).reshape(3, 1) for name, dtype in (FLOAT8 | UNSIGNED).items()}
    tensors["u64"] = torch.tensor([[1], [2], [2**64 - 1]], dtype=torch.uint64)
    torch.save(tensors, "checkpoint.pt")
    for name in UNSIGNED:
        numpy.save(f"{name}.npy", tensors[name].numpy())


if __name__ == "__main__":
    record()
    record_files()
