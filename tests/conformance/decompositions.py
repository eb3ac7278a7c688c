#!/usr/bin/env python3
"""Finds out which operators that Taper lacks run_decompositions() takes apart into operators that it has.

    python3 -m venv venv && venv/bin/pip install torch numpy expecttest
    venv/bin/python tests/conformance/decompositions.py > exporter/importers/pt2/decomposable.def

Each operator of torch.testing's database is exported twice: plain, and after run_decompositions(). Where `taper export` refuses the
plain file for an operator and takes the other one, it may advise run_decompositions(). Where both are refused, it must not. An operator
is listed if the advice helps for every sample. What is done is told on stderr. Takes some 10 minutes.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Call(torch.nn.Module):
    """A call of an operator whose tensors are the model's inputs."""

    def __init__(self, function, arguments):
        super().__init__()
        self.function = function
        self.leaves, self.spec = tree_flatten(arguments)

    def tensors(self):
        return tuple(x for x in self.leaves if isinstance(x, torch.Tensor))

    def forward(self, *tensors):
        given = iter(tensors)
        leaves = [next(given) if isinstance(x, torch.Tensor) else x for x in self.leaves]
        positional, named = tree_unflatten(leaves, self.spec)
        return self.function(*positional, **named)


def refusal(taper, program, folder):
    """The operators for which the export of a program is refused; None where something else is wrong with it."""
    path = folder / "call.pt2"
    torch.export.save(program, path)
    done = subprocess.run([taper, "export", path, "-o", folder / "call.taper"], capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        return set()
    if "cannot be imported" not in done.stderr:
        return None
    lines = done.stderr.split("cannot be imported", 1)[1].splitlines()[1:]
    return {line.strip().split("  ")[0] for line in lines}


def samples_of(op, count):
    for dtype in (torch.float32, torch.int64, torch.bool):
        if dtype in op.supported_dtypes("cpu"):
            samples = op.sample_inputs("cpu", dtype, requires_grad=False)
            return [s for s, _ in zip(samples, range(count))]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taper", type=pathlib.Path, default=ROOT / "build/release/bin/taper")
    parser.add_argument("--only", help="operators whose names begin so")
    parser.add_argument("--samples", type=int, default=2, help="of each operator")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)

    helps, fails = set(), set()
    with tempfile.TemporaryDirectory() as name:
        for op in op_db:
            if options.only and not op.name.startswith(options.only):
                continue
            try:
                samples = samples_of(op, options.samples)
            except Exception:  # needs another device or library
                continue
            for sample in samples:
                call = Call(op.op, ((sample.input, *sample.args), sample.kwargs))
                try:
                    program = torch.export.export(call, call.tensors())
                    plain = refusal(options.taper, program, pathlib.Path(name))
                    if not plain:
                        continue
                    left = refusal(options.taper, program.run_decompositions(), pathlib.Path(name))
                except Exception as error:  # PyTorch cannot export it
                    print(f"{op.name}: {str(error).splitlines()[:1]}", file=sys.stderr)
                    continue
                operators = {o for o in plain if o.startswith("torch.ops.aten.")}
                if left == set() and operators == plain:
                    helps |= operators
                elif left is None or len(operators) == 1 or operators <= left:
                    fails |= operators
                print(f"{op.name}: {sorted(plain)} -> {sorted(left) if left is not None else 'refused otherwise'}", file=sys.stderr)

    print("// Operators that Taper does not have, and that run_decompositions() takes apart into some that it has.")
    print("// Written by tests/conformance/decompositions.py with torch " + torch.__version__.split("+")[0] + ".")
    for target in sorted(helps - fails):
        print(f'"{re.sub("^torch.ops.aten.", "", target).removesuffix(".default")}",')


if __name__ == "__main__":
    main()
