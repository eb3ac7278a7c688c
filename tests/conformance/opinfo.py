#!/usr/bin/env python3
"""Runs PyTorch's own operator samples (OpInfo) through Taper, live, and counts.

    python3 -m venv venv && venv/bin/pip install torch safetensors numpy expecttest
    venv/bin/python tests/conformance/opinfo.py [--only NAME] [--samples 4] [--counts FILE]

Each sample of torch.testing's operator database is traced to the ATen overloads that it calls, once with composites kept
and once, with its gradient, taken apart. Every call of an overload that Taper has a row for becomes a case: its arguments,
PyTorch's results, and PyTorch's gradients for random gradients of the results. The cases are written in the form of the golden
files (docs: tests/golden/cases.h) and run by op_goldens. Where PyTorch's result in a narrow dtype is not met, its result in f64
for the same arguments counts, too (tests/golden/in_double.py). Prints a line an overload and the totals; --counts writes those of
each operator. Samples with complex numbers of f16 or f64, sparse or nested tensors are left out and counted.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import torch
from safetensors.torch import save
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/golden"))
import in_double
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
          torch.uint8, torch.bool, torch.complex64]
SAMPLES, LIMIT = 8, 120  # with which known_opinfo.txt was written
# The tolerances of torch.testing.assert_close.
TOLERANCE = {torch.float32: (1.3e-6, 1e-5), torch.float64: (1e-7, 1e-7), torch.float16: (1e-3, 1e-5),
             torch.bfloat16: (1.6e-2, 1e-5), torch.complex64: (1.3e-6, 1e-5)}
# Results that PyTorch leaves open: which of equal elements an index names, and what is kept for a backward pass.
OPEN_RESULTS = {"sort": [1], "topk": [1], "kthvalue": [1], "median.dim": [1], "nanmedian.dim": [1], "mode": [1], "_embedding_bag": [1, 2, 3], "embedding_bag.padding_idx": [1, 2, 3],
                "_ctc_loss": [1], "_ctc_loss.Tensor": [1],
                # vectors have no sign, and eigenvalues no order: tests/kernels/matrices_test.cpp compares them
                "svd": [0, 2], "linalg_svd": [0, 2], "_linalg_svd": [0, 2], "linalg_eigh": [1], "_linalg_eigh": [1],
                "linalg_eig": [0, 1], "linalg_eigvals": [0], "_linalg_eigvals": [0]}
# Operators that refuse complex numbers here: they factor matrices, draw numbers, or have no form for them.
WITHOUT_COMPLEX = set("""_linalg_det _linalg_slogdet _linalg_solve_ex cholesky_inverse cholesky_solve feature_dropout ldexp
    linalg_cholesky linalg_cholesky_ex linalg_cond linalg_det linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve
    linalg_matrix_exp linalg_matrix_rank linalg_qr linalg_slogdet log_softmax logaddexp logcumsumexp logdet lu_solve lu_unpack
    rand rand_like randn randn_like rms_norm scatter_reduce softmax uniform_""".split()) | {"scatter.reduce"}
ORDERS = {"sort", "msort", "argsort", "argsort.stable", "topk", "kthvalue", "median.dim", "nanmedian.dim", "mode"}


class Unsupported(Exception):
    """A case that holds what Taper does not have."""


def table_rows():
    """The names in the operator table, but for Taper's own operators."""
    text = (ROOT / "kernels/operators.def").read_text()
    return set(re.findall(r'TAPER_OP\(\w+,\s*\w+,\s*"([\w.]+)\(', text))


def row_of(overload, rows):
    """The golden files' name of an overload ("add.Tensor", "relu_") if Taper has its row, or that of the twin it writes in place."""
    base, _, variant = overload.name().removeprefix("aten::").partition(".")
    suffix = "." + variant if variant else ""
    if base + suffix in rows:
        return base + suffix
    if base.endswith("_") and not base.endswith("__") and base[:-1] + suffix in rows:
        return base + suffix
    return None


class CaseFile:
    """The cases of one overload, in the form of the golden files."""

    def __init__(self, schema):
        self.schema, self.cases, self.tensors, self.seen = schema, [], {}, set()
        self.counts = {False: 0, True: 0}  # by whether there are complex numbers

    def key(self, tensor):
        if tensor.is_complex():
            tensor = torch.view_as_real(tensor)
        flat = tensor.detach().reshape(-1).clone(memory_format=torch.contiguous_format)
        content = flat.view(torch.uint8).numpy().tobytes()
        digest = hashlib.sha1(f"{tensor.dtype}{tuple(tensor.shape)}".encode() + content).hexdigest()[:16]
        self.tensors.setdefault(digest, flat.reshape(tensor.shape))
        return digest

    def argument(self, value, kind):
        if value is None:
            return {"none": True}
        if isinstance(value, torch.Tensor):
            return self.tensor_argument(value)
        if isinstance(value, (list, tuple)):
            return {"list": [self.argument(v, kind) for v in value]}
        if isinstance(value, torch.dtype):
            if value.is_complex and value != torch.complex64:
                raise Unsupported("complex numbers of f16 or f64")
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": "cpu"}
        if isinstance(value, torch.layout):
            return {"layout": str(value).removeprefix("torch.")}
        if isinstance(value, torch.memory_format):
            return {"memory_format": str(value).removeprefix("torch.")}
        if isinstance(value, str):
            return {"str": value}
        if isinstance(value, (bool, int, float)):
            if "Tensor" in kind:
                raise Unsupported("a number for a tensor")
            return {"scalar": number(value)} if "Scalar" in kind and "List" not in kind else number(value, kind)
        raise Unsupported(type(value).__name__)

    def tensor_argument(self, t):
        if t.dtype not in DTYPES or t.layout != torch.strided or t.is_quantized:
            raise Unsupported("complex numbers of f16 or f64, sparse or quantized")
        t = resolved(t)
        if t.numel() > 100_000:
            raise Unsupported("large")
        form = {"complex": True} if t.is_complex() else {}
        if t.is_contiguous():
            return {"tensor": self.key(t), **form}
        count = t.untyped_storage().nbytes() // t.element_size()
        if count > 100_000:
            raise Unsupported("large")
        flat = torch.as_strided(t.detach(), (count,), (1,), 0)
        return {"tensor": self.key(flat), "sizes": list(t.shape), "strides": list(t.stride()), "offset": t.storage_offset(), **form}

    def output(self, value, random):
        if value is None:
            return {"none": True}
        if isinstance(value, torch.Tensor):
            if value.dtype not in DTYPES or value.layout != torch.strided:
                raise Unsupported("complex numbers of f16 or f64, or sparse")
            if random:
                return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
            return {"tensor": self.key(resolved(value)), **({"complex": True} if value.is_complex() else {})}
        if isinstance(value, (list, tuple)):
            return {"list": [self.output(v, random) for v in value]}
        if isinstance(value, (bool, int, float)):
            return number(value)
        raise Unsupported(type(value).__name__)

    def write(self, path):
        blob = save(self.tensors,
                    {"cases": json.dumps({"schema": self.schema, "cases": self.cases}, allow_nan=False)})
        path.write_bytes(blob)


def resolved(t):
    """Without lazy conjugates and signs."""
    return t.resolve_conj().resolve_neg()


def has_parts(t):
    """Whether a tensor has gradients."""
    return t.is_floating_point() or t.is_complex()


def number(value, kind=""):
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int) and "float" not in kind:
        return {"int": value}
    value = float(value)
    return {"float": value if value - value == 0 else str(value).replace("infinity", "inf")}


def copied(value):
    """A deep copy with equal strides; stride-0 dimensions stay."""
    if isinstance(value, torch.Tensor):
        if value.is_contiguous():
            return value.detach().clone()
        count = value.untyped_storage().nbytes() // value.element_size()
        flat = torch.as_strided(value.detach(), (count,), (1,), 0).clone()
        return torch.as_strided(flat, value.shape, value.stride(), value.storage_offset())
    if isinstance(value, (list, tuple)):
        return type(value)(copied(v) for v in value)
    return value


def tensors_of(args, kwargs):
    """(path, tensor) of all tensor arguments."""
    for i, a in enumerate(args):
        if isinstance(a, torch.Tensor):
            yield f"args.{i}", a
        elif isinstance(a, (list, tuple)):
            for k, t in enumerate(a):
                if isinstance(t, torch.Tensor):
                    yield f"args.{i}.{k}", t
    for name, a in kwargs.items():
        if isinstance(a, torch.Tensor):
            yield f"kwargs.{name}", a


def written_through_a_view(self, src, size, stride, storage_offset=None):
    """as_strided_scatter, whose own gradient of self is wrong in PyTorch: it fails PyTorch's gradcheck."""
    result = self.clone(memory_format=torch.contiguous_format)
    result.as_strided(size, stride, storage_offset).copy_(src)
    return result


def has_wide_complex(args, kwargs):
    """Whether PyTorch computes with complex numbers of f64, though no tensor has them."""
    tensors = [t for _, t in tensors_of(args, kwargs)]
    return any(torch.result_type(s, t) == torch.complex128 for s in tensors for t in tensors)


def refuses_complex(name, args, kwargs):
    """Whether Taper has no form of the operator for complex numbers, or drops no imaginary parts where PyTorch does."""
    is_complex = any(t.is_complex() for _, t in tensors_of(args, kwargs))
    asked = [a for a in (*args, *kwargs.values()) if isinstance(a, torch.dtype)]
    if name.startswith(("_to_copy", "to.")) and is_complex:
        return any(d.is_floating_point or not (d.is_complex or d == torch.bool) for d in asked)
    return (is_complex or torch.complex64 in asked) and bool({name, name.split(".")[0]} & WITHOUT_COMPLEX)


def flat_results(results):
    if isinstance(results, (list, tuple)):
        return [r for part in results for r in flat_results(part)]
    return [results]


def widened(value):
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value.to(torch.complex128) if value.is_complex() else value
    if isinstance(value, (list, tuple)):
        return type(value)(widened(v) for v in value)
    if isinstance(value, torch.dtype) and (value.is_floating_point or value.is_complex):
        return torch.float64 if value.is_floating_point else torch.complex128
    return value


def tolerances(overload, args, kwargs, results):
    """rtol and atol of the case: the dtype's, and as much as PyTorch itself is off against float64."""
    dtypes = {t.dtype for _, t in tensors_of(args, kwargs)} | {
        r.dtype for r in flat_results(results) if isinstance(r, torch.Tensor)}
    floating = [d for d in (torch.bfloat16, torch.float16, torch.float32, torch.complex64, torch.float64) if d in dtypes]
    if not floating:
        return 0.0, 0.0
    rtol, atol = TOLERANCE[floating[0]]
    if floating[0] == torch.float64:
        return rtol, atol
    try:
        exact = flat_results(overload(*widened(args), **{k: widened(v) for k, v in kwargs.items()}))
        for got, want in zip(flat_results(results), exact):
            if isinstance(got, torch.Tensor) and has_parts(got):
                off = (widened(got) - want).abs()
                off = off[torch.isfinite(off)]
                if off.numel():
                    atol = max(atol, (8 if floating[0] in (torch.float32, torch.complex64) else 2) * off.max().item())
    except Exception:  # no float64 variant
        pass
    if atol > 1e30:
        raise Unsupported("overflow")
    return rtol, atol


def add_case(file, name, overload, args, kwargs, limit, differentiate=True):
    """Runs the overload in PyTorch and records it; gives whether it was new."""
    if refuses_complex(name, args, kwargs):
        raise Unsupported("no form for complex numbers")
    if has_wide_complex(args, kwargs):
        raise Unsupported("complex numbers of f16 or f64")
    schema = overload._schema
    mutates = [i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
    encoded = [file.argument(a, str(schema.arguments[i].real_type)) for i, a in enumerate(args)]
    kinds = {a.name: str(a.real_type) for a in schema.arguments}
    encoded_kwargs = {k: file.argument(v, kinds[k]) for k, v in kwargs.items()}
    shape_of = lambda v: [list(v.shape), str(v.dtype), list(v.stride())] if isinstance(v, torch.Tensor) else str(v)
    signature = str([[shape_of(v) for v in tree_flatten(a)[0]] for a in (*args, kwargs)])
    is_complex = "complex" in signature
    if signature in file.seen or file.counts[is_complex] >= limit:
        return False
    random = torch.Tag.nondeterministic_seeded in overload.tags or "empty" in name
    digest = hashlib.sha1(signature.encode()).hexdigest()[:6]  # the same whatever other samples are taken
    case = {"id": f"{name}/{digest}", "args": encoded, "kwargs": encoded_kwargs, "outputs": []}
    if random:
        case["random"] = True
    if name in OPEN_RESULTS:
        case["informative_outputs"] = OPEN_RESULTS[name]
    if name in ORDERS and len(args[0].unique()) < args[0].numel():
        if name == "argsort":
            raise Unsupported("ties")
        differentiate = False

    run_args, run_kwargs = copied(list(args)), {k: copied(v) for k, v in kwargs.items()}
    leaves = {}
    if not random:
        for path, t in tensors_of(run_args, run_kwargs):
            if differentiate and has_parts(t) and path not in {f"args.{i}" for i in mutates} and not path.startswith("kwargs.out"):
                leaves[path] = t.requires_grad_()
    with torch.enable_grad():
        results = overload(*run_args, **run_kwargs)
    flat = [r for r in flat_results(results)]
    returned = list(results) if isinstance(results, tuple) else [results] if len(schema.returns) else []
    case["outputs"] = [file.output(r, random) for r in returned]
    case["rtol"], case["atol"] = tolerances(overload, copied(list(args)), {k: copied(v) for k, v in kwargs.items()}, results)
    if mutates and not random:
        case["mutated"] = {f"args.{i}": file.output(run_args[i], False) for i in mutates if i < len(run_args)}
    if name == "as_strided_scatter":
        with torch.enable_grad():
            flat = returned = [written_through_a_view(*run_args, **run_kwargs)]
    is_open = [k in OPEN_RESULTS.get(name, []) for k in range(len(flat))]
    differentiable = [r for r, skip in zip(flat, is_open) if isinstance(r, torch.Tensor) and r.requires_grad and not skip]
    if leaves and differentiable:
        seeds = [torch.randn_like(r) for r in differentiable]
        gradients = torch.autograd.grad(differentiable, list(leaves.values()), seeds, allow_unused=True)
        case["grad_outputs"] = [
            {"list": [seed_of(file, r, differentiable, seeds) for r in part]} if isinstance(part, (list, tuple))
            else seed_of(file, part, differentiable, seeds) for part in returned]
        case["grads"] = {path: file.output(g, False) for path, g in zip(leaves, gradients) if g is not None}
        rtol, atol = case["rtol"], case["atol"]
        scale = max([1.0] + [g.abs().max().item() for g in gradients if g is not None and g.numel() and torch.isfinite(g).all()])
        case["grad_rtol"], case["grad_atol"] = 10 * rtol, 10 * max(atol, rtol * scale)
    file.seen.add(signature)
    file.counts[is_complex] += 1
    file.cases.append(case)
    return True


def seed_of(file, result, differentiable, seeds):
    for r, s in zip(differentiable, seeds):
        if r is result:
            return file.output(s, False)
    return {"none": True}


class Collector(torch.fx.Interpreter):
    """Runs a traced sample and records every call of an overload that Taper knows."""

    def __init__(self, graph, sink):
        super().__init__(graph)
        self.sink = sink

    def call_function(self, target, args, kwargs):
        if isinstance(target, torch._ops.OpOverload) and target.namespace == "aten":
            self.sink(target, args, kwargs)
        return super().call_function(target, args, kwargs)


def as_function(op, sample):
    """The sample as a function of its tensors."""
    flat, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [k for k, x in enumerate(flat) if isinstance(x, torch.Tensor)]

    def function(*tensors):
        values = list(flat)
        for k, t in zip(places, tensors):
            values[k] = t
        first, args, kwargs = tree_unflatten(values, spec)
        return op.op(first, *args, **kwargs)

    return function, [flat[k] for k in places]


def with_gradient(function):
    def both(*tensors):
        leaves = [t.detach().requires_grad_() if has_parts(t) else t for t in tensors]
        with torch.enable_grad():
            results = [r for r in flat_results(function(*leaves)) if isinstance(r, torch.Tensor) and r.requires_grad]
            wanted = [t for t in leaves if t.requires_grad]
            if not results or not wanted:
                return results
            return torch.autograd.grad([torch.view_as_real(resolved(r)).sum() if r.is_complex() else r.sum() for r in results], wanted, allow_unused=True)

    return both


def collect(arguments, rows):
    files, left_out = {}, collections.Counter()

    def sink(overload, args, kwargs):
        name = row_of(overload, rows)
        if name is None or (arguments.only and name not in arguments.only):
            return
        file = files.setdefault(name, CaseFile(str(overload._schema)))
        try:
            try:
                add_case(file, name, overload, args, kwargs, arguments.limit)
            except RuntimeError:  # PyTorch has no gradient here
                add_case(file, name, overload, args, kwargs, arguments.limit, differentiate=False)
        except Unsupported as e:
            left_out[str(e)] += 1
        except RuntimeError as e:
            left_out["PyTorch refuses: " + str(e).splitlines()[0][:40]] += 1

    for index, op in enumerate(op_db):
        print(f"\r{index + 1:4}/{len(op_db)} {op.name[:50]:50}", end="", file=sys.stderr)
        for dtype in DTYPES:
            if dtype not in op.supported_dtypes("cpu"):
                continue
            try:
                samples = list(op.sample_inputs("cpu", dtype, requires_grad=False))
            except Exception:
                left_out["no samples"] += 1
                continue
            # evenly over the list: its kinds of samples follow each other
            count = arguments.samples if dtype in (torch.float32, torch.complex64) else max(1, arguments.samples // 4)
            for sample in samples[:: max(1, len(samples) // count)][:count]:
                function, tensors = as_function(op, sample)
                for traced, pre_dispatch in ((function, True), (with_gradient(function), False)):
                    try:
                        graph = make_fx(traced, pre_dispatch=pre_dispatch)(*tensors)
                        Collector(graph, sink).run(*copied(tensors))
                    except Exception as e:  # what cannot be traced: data-dependent sizes …
                        left_out[f"not traced: {type(e).__name__}"] += 1
    print(file=sys.stderr)
    return files, left_out


def failing(output, words="FAILED|known:|WITHOUT KERNEL|DECIDED BY DATA"):
    """The cases that a verbose run of op_goldens names."""
    return set(re.findall(rf"^    (?:{words}) (\S+?/\w{{6}}):", output, re.M))


def write_in_double(path, folder, files, ids):
    """What PyTorch gives in f64 for those of the cases that it can compute so."""
    cases, tensors = {}, {}
    for name in files:
        if not any(id.startswith(name + "/") for id in ids):
            continue
        golden, stored = in_double.read(file_of(folder, name))
        for id in ids & golden.keys():
            try:
                cases[id], made = in_double.run(name, golden[id], stored)
                tensors.update(made)
            except Exception:  # no f64 variant
                cases.pop(id, None)
    in_double.write(path, cases, tensors)


def file_of(folder, name):
    return folder / f"aten.{name if '.' in name else name + '.default'}.safetensors"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--op-goldens", default=ROOT / "build/release/bin/op_goldens", type=pathlib.Path)
    parser.add_argument("--only", action="append", default=[], help="an overload, as in add.Tensor; may be repeated")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="float32 samples an OpInfo; a quarter for other dtypes")
    parser.add_argument("--limit", type=int, default=LIMIT, help="cases an overload")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the case files; default: a temporary one")
    parser.add_argument("--known", default=pathlib.Path(__file__).parent / "known_opinfo.txt", type=pathlib.Path)
    parser.add_argument("--exported", action="store_true", help="as programs, too")
    parser.add_argument("--counts", type=pathlib.Path, help="write the counts of each operator")
    arguments = parser.parse_args()
    if not arguments.op_goldens.exists():
        sys.exit(f"{arguments.op_goldens} does not exist: build the target op_goldens first, or give --op-goldens")
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(1)

    files, left_out = collect(arguments, table_rows())
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary) / "cases"
        folder.mkdir(parents=True, exist_ok=True)
        for name, file in files.items():
            if file.cases:
                file.write(file_of(folder, name))
        first = subprocess.run([arguments.op_goldens, "--verbose", folder], capture_output=True, text=True)
        doubles = pathlib.Path(temporary) / "in_double.safetensors"
        write_in_double(doubles, folder, files, failing(first.stdout, "FAILED"))
        command = [arguments.op_goldens, "--verbose", "--known", arguments.known, "--in-double", doubles]
        if arguments.only or (arguments.samples, arguments.limit) != (SAMPLES, LIMIT):
            command.append("--some")
        if arguments.exported:
            command.append("--exported")
        if arguments.counts:
            command += ["--counts", arguments.counts]
        run = subprocess.run([*command, folder], capture_output=True, text=True)
    print(run.stdout, end="")
    print(run.stderr, end="", file=sys.stderr)
    print("left out:", ", ".join(f"{n} {why}" for why, n in left_out.most_common()) or "nothing")
    counts = re.findall(r"^(\S+) +(\d+) run +(\d+) passed", run.stdout, re.M)
    total = {name: (int(ran), int(passed)) for name, ran, passed in counts}
    if "total" in total:
        ran, passed = total.pop("total")
        print(f"{passed} of {ran} samples passed ({100 * passed / max(ran, 1):.2f} %), {len(total)} overloads, PyTorch {torch.__version__}")
        complex_cases = {case["id"] for file in files.values() for case in file.cases if '"complex' in json.dumps(case)}
        ran, passed = ran - len(complex_cases), passed - len(complex_cases - failing(run.stdout))
        print(f"without complex numbers: {passed} of {ran} ({100 * passed / max(ran, 1):.2f} %)")
    sys.exit(run.returncode)


if __name__ == "__main__":
    main()
