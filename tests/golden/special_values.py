#!/usr/bin/env python3
"""Writes special_values.jsonl: what PyTorch gives, and its gradients, where the arguments hold special values.

    special_values.py FOLDER [NAME]…  > special_values.jsonl    (wants torch; FOLDER: the golden cases, see cases.h)

The calls are those of the golden cases and of seeds.jsonl that have gradients, made small. Each is called with

    zeros     zeros of both signs among the elements        ones      one element wherever there were several
    infinite  infinities, and some zeros                    none      no element along a dimension
    nan       a NaN                                         null      nothing but zeros
    mixed     all of these, and 1 and -1                    extreme   numbers near the largest and the smallest

Rows with a derivative of their own are called with mixed numbers in f64, and the elementwise ones in f16 or bf16, too.
Where PyTorch has no such operator, or no derivative of it, formulas.py has it in PyTorch's operators. Random operators are
called with arguments that leave nothing to chance: p = 0, p = 1, equal bounds.

A line is a case: its call as in seeds.jsonl, results, gradients for the GRADIENT below; or that PyTorch refuses it.
The numbers depend on PyTorch's version and processor; seeds are fixed, so that a second run gives the same file.
"""
import collections
import functools
import glob
import inspect
import json
import math
import os
import random
import re
import signal
import sys
import warnings

import torch

import in_double
from extra_calls import EXTRA_CALLS
from formulas import FORMULAS, RESULTS_OF_FORWARD

GRADIENT = [1.0, -2.0, 0.5, 3.0, -1.5]  # of element i of a result: GRADIENT[i % 5]
VARIANTS = ["zeros", "infinite", "nan", "mixed", "ones", "none", "null", "extreme"]
NAMES = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
         torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool"}
DTYPES = {name: dtype for dtype, name in NAMES.items()}
CALLS = 2             # of an operator, as different as their numbers are
MOST_ELEMENTS = 20    # of all floating arguments together
# Those whose golden calls do not bear other sizes or dtypes: only EXTRA_CALLS.
ONLY_EXTRA = {"_fused_rms_norm", "_grouped_mm", "_log_softmax_backward_data", "_softmax_backward_data", "narrow", "repeat_interleave.self_Tensor",
              "ctc_loss.Tensor", "embedding_bag.padding_idx", "fractional_max_pool2d", "fractional_max_pool3d", "native_group_norm_backward", "native_layer_norm_backward"}
# Whether a sum of extremes overflows depends on its order, which is another one at each CPU level.
SUMS_WITHOUT_ORDER = re.compile("conv")
# PyTorch gives what was in memory, or wants strides of 16 bytes.
NOT_ASKED = {("multilabel_margin_loss", "none"), ("lstm.input", "ones"), ("gru.input", "ones"), ("_grouped_mm", "ones"), ("_grouped_mm", "none")}
# Arguments that stay as they are.
ORDINARY = {"random_samples", "scale", "scales", "running_min", "running_max"}
# Draws random numbers, changes sizes behind PyTorch's back, adds lines whose infinities meet in an order of its own, or has no
# numbers of interest: only EXTRA_CALLS.
LEFT_OUT = re.compile(r"rand|dropout|bernoulli|rrelu|multinomial|normal|exponential|uniform|as_strided|resize|set_|empty|fft|complex|real$|"
                      r"::|^to\.|_to_copy|fake_quant|fused_moving|lstm|gru|rnn|attention|^_ctc_loss|^item$|assert|quant")


# Arguments that no gradient is asked for.
CONSTANTS = frozenset({"running_mean", "running_var", "save_mean", "save_invstd", "mean", "rstd", "out", "logsumexp", "scales"})
# Those of one row that PyTorch has no derivative of, where its message does not name them.
CONSTANTS_OF = dict.fromkeys(["igamma", "igammac", "special_gammainc", "special_gammaincc", "special_zeta", "special_zeta.other_scalar"],
                             frozenset({"self"})) | {"fractional_max_pool3d": frozenset({"random_samples"})}


# ---- calls

def function_of(name):
    """What is called, and the names of its arguments."""
    if name in FORMULAS:
        return FORMULAS[name], list(inspect.signature(FORMULAS[name]).parameters)
    overload, _, variant = name.partition(".")
    function = getattr(getattr(torch.ops.aten, overload), variant or "default")
    return function, [a.name for a in function._schema.arguments]


@functools.cache
def differentiable():
    """The rows with a derivative of their own, and those of them that are elementwise. A build has made the list."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    lists = glob.glob(f"{folder}/build/*/generated/taper/exporter/eager/derivatives/derivatives.def")
    if not lists:
        sys.exit("there is no derivatives.def below build/: build Taper first")
    names = dict(re.findall(r'^TAPER_OP\((\w+),[^"]*"([^("]*)\(', open(f"{folder}/kernels/operators.def").read(), re.M))
    table = open(max(lists, key=os.path.getmtime)).read()
    elementwise = open(f"{folder}/exporter/eager/derivatives/pointwise.cpp").read()
    return ([names[x] for x in re.findall(r"_NAME\((\w+)\)", table)],
            [names[x] for x in re.findall(r"^TAPER_DERIVATIVE\((\w+)", elementwise, re.M)])


def rows():
    """The names in Taper's operator table."""
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../kernels/operators.def")
    return set(re.findall(r'^TAPER_OP\([^"]*"([^("]*)\(', open(table).read(), re.M))


def from_goldens(folder):
    for path in sorted(glob.glob(f"{folder}/aten.*.safetensors")):
        base, overload = os.path.basename(path).split(".")[1:3]
        name = base if overload == "default" else f"{base}.{overload}"
        if base.endswith("_") and not base.endswith("__"):
            continue  # in place: the same kernel and the same derivative
        cases, tensors = in_double.read(path)
        for case in cases.values():
            if "error" in case or case.get("random") or not case.get("grads") or '"complex"' in json.dumps(case):
                continue
            args = [golden_argument(v, tensors) for v in case["args"]]
            kwargs = {k: golden_argument(v, tensors) for k, v in case["kwargs"].items()}
            yield name, args, kwargs


def golden_argument(value, tensors):
    if "tensor" in value:
        tensor = tensors[value["tensor"]]
        if "sizes" in value:
            tensor = tensor.as_strided(value["sizes"], value["strides"], value["offset"])
        tensor = tensor.clone(memory_format=torch.contiguous_format)
        return tensor.to(torch.float32) if tensor.is_floating_point() else tensor
    if "list" in value:
        return [golden_argument(v, tensors) for v in value["list"]]
    if "scalar" in value:
        return golden_argument(value["scalar"], tensors)
    kind, content = next(iter(value.items()))
    if kind == "dtype":
        return getattr(torch, content)
    if kind == "memory_format":
        return None
    return None if kind == "none" else float(content) if kind == "float" else content


EXTRA_COUNTS = collections.Counter(json.loads(line)[0] for line in EXTRA_CALLS.split("\n") if line)


def from_seeds(lines):
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        name, *args = json.loads(line)
        kwargs = args.pop() if args and isinstance(args[-1], dict) else {}
        if kwargs.pop("random", False):
            continue
        draw = random.Random(line)
        yield name, [seed_argument(a, draw) for a in args], {k: seed_argument(v, draw) for k, v in kwargs.items()}


def seed_argument(value, draw):
    if isinstance(value, list):
        return [seed_argument(v, draw) for v in value]
    match = re.fullmatch(r"(\w+)\[([\d,]*)\](.*)", value) if isinstance(value, str) else None
    if not match:
        return getattr(torch, value) if value in ("float32", "float64") else value
    dtype, sizes, words = DTYPES[match[1]], [int(n) for n in match[2].split(",") if n], match[3]
    count = math.prod(sizes)
    floating = dtype.is_floating_point
    if "=" in words:
        elements = [float(w) for w in words.split("=")[1].split()]
    else:
        between = re.search(r"(-?[\d.]+?)\.\.(-?[\d.]+)", words)
        low, high = (float(between[1]), float(between[2])) if between else (-2, 2) if floating else (0, 9)
        elements = [draw.uniform(low, high) if floating else draw.randint(int(low), int(high)) for _ in range(count)]
        if dtype == torch.bool:
            elements = [e > (low + high) / 2 for e in elements]
    tensor = torch.tensor(elements, dtype=torch.float64).reshape(sizes)
    if "ascending" in words:
        tensor = tensor.sort(-1)[0]
    if "diagonal" in words:
        tensor = tensor + sizes[-1] * torch.eye(sizes[-2], sizes[-1], dtype=torch.float64)
    return tensor.to(torch.float32 if floating else dtype)


def tensors_of(arguments):
    for key, value in arguments:
        if isinstance(value, torch.Tensor):
            yield key, value
        elif isinstance(value, list):
            for k, element in enumerate(value):
                if isinstance(element, torch.Tensor):
                    yield f"{key}.{k}", element


def paths_of(args, kwargs):
    return [(f"args.{i}", v) for i, v in enumerate(args)] + [(f"kwargs.{k}", v) for k, v in kwargs.items()]


def mapped(args, kwargs, change):
    """The same arguments with change(path, tensor) for each tensor."""
    def one(path, value):
        if isinstance(value, torch.Tensor):
            return change(path, value)
        if isinstance(value, list):
            return [one(f"{path}.{k}", v) for k, v in enumerate(value)]
        return value
    return ([one(f"args.{i}", v) for i, v in enumerate(args)], {k: one(f"kwargs.{k}", v) for k, v in kwargs.items()})


def floating_elements(args, kwargs):
    return sum(t.numel() for _, t in tensors_of(paths_of(args, kwargs)) if t.is_floating_point())


def resized(args, kwargs, extent):
    """The same with other extents, and elements taken in turn; numbers that are meant as sizes do not follow."""
    def change(_, tensor):
        sizes = [extent(n) for n in tensor.shape]
        count = math.prod(sizes)
        if count == 0 or tensor.numel() == 0:
            return torch.zeros(sizes, dtype=tensor.dtype)
        flat = tensor.reshape(-1)
        flat = flat.repeat(count // flat.numel() + 1)[:count]
        if not tensor.is_floating_point() and tensor.dtype != torch.bool and min(sizes, default=9) < 9:
            flat = flat % max(1, min(n for n in sizes)) if int(flat.max()) > 1 else flat
        return flat.reshape(sizes).clone()
    return mapped(args, kwargs, change)


# ---- what PyTorch gives

def call(name, args, kwargs, constants=CONSTANTS):
    """Results, and gradients by path, but not of the arguments named in `constants`. Throws what PyTorch throws."""
    leaves = {}
    constants = constants | CONSTANTS_OF.get(name, frozenset())
    function, parameters = function_of(name)
    names = {f"args.{i}": parameter for i, parameter in enumerate(parameters)}

    def leaf(path, tensor):
        tensor = tensor.detach().clone()
        if tensor.is_floating_point() and names.get(path) not in constants:
            leaves[path] = tensor.requires_grad_()
        return tensor
    try:
        results = function(*(leafed := mapped(args, kwargs, leaf))[0], **leafed[1])
    except (RuntimeError, NotImplementedError) as e:
        without = re.search(r"derivative for '(?:\w+ )?(\w+)' is not implemented|respect to argument '(\w+)'", str(e))
        constant = without and (without[1] or without[2])
        if not constant or constant in constants:
            raise
        return call(name, args, kwargs, constants | {constant})
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    if not all(r is None or isinstance(r, torch.Tensor) for r in results):
        raise TypeError("not tensors")
    if any(r is not None and r.is_complex() for r in results):
        raise TypeError("complex")
    seeded = [r for r in results if r is not None and r.requires_grad]
    gradients = {}
    if seeded and leaves:
        seeds = [torch.tensor([GRADIENT[i % 5] for i in range(r.numel())], dtype=r.dtype).reshape(r.shape) for r in seeded]
        found = torch.autograd.grad(seeded, list(leaves.values()), seeds, allow_unused=True)
        gradients = {p: g for p, g in zip(leaves, found) if g is not None}
    return [None if r is None else r.detach() for r in results], gradients


def outcome(name, args, kwargs):
    """Of a case: results and gradients, or that PyTorch refuses; None if it is of no use."""
    try:
        results, gradients = call(name, args, kwargs)
        if not results:
            return None
        return {"results": [None if r is None else text(r) for r in results], "gradients": {p: text(g) for p, g in gradients.items()}}
    except TypeError:
        return None
    except Exception as e:
        return {"refused": str(e).splitlines()[0][:60] if str(e) else type(e).__name__}


def works(name, args, kwargs):
    return bool((outcome(name, args, kwargs) or {}).get("gradients"))


def small(name, args, kwargs):
    """The call with few elements, or None."""
    rounded = mapped(args, kwargs, lambda _, t: torch.tensor([float(f"{x:.2g}") for x in t.reshape(-1).tolist()], dtype=t.dtype).reshape(t.shape)
                     if t.is_floating_point() and t.numel() <= 4000 else t)
    for most in (99, 6, 4, 3, 2):
        smaller = resized(*rounded, lambda n: min(n, most)) if most < 99 else rounded
        if 1 < floating_elements(*smaller) <= MOST_ELEMENTS and works(name, *smaller):
            return smaller
    for most in (3, 4, 99):
        smaller = resized(*rounded, lambda n: min(n, most)) if most < 99 else rounded
        if 1 < floating_elements(*smaller) <= 6 * MOST_ELEMENTS and works(name, *smaller):
            return smaller
    return None


def numbers_of(args, kwargs):
    """What makes two calls different besides their elements."""
    return json.dumps([[("tensor", NAMES[v.dtype], v.dim()) if isinstance(v, torch.Tensor) else str(v) for v in values]
                       for values in (args, [kwargs[k] for k in sorted(kwargs)])] + [sorted(kwargs)])


def chosen(calls, count):
    """The smallest call of each kind, spread over the kinds."""
    kinds = {}
    for args, kwargs in sorted(calls, key=lambda c: floating_elements(*c)):
        if floating_elements(args, kwargs) < 2:
            continue
        kinds.setdefault(numbers_of(args, kwargs), (args, kwargs))
    kinds = list(kinds.values())
    step = max(1, len(kinds) / count)
    return [kinds[int(k * step)] for k in range(min(count, len(kinds)))]


# ---- special values

def special(name, variant, args, kwargs, draw):
    """The arguments of a variant; None where it changes nothing."""
    if variant == "ones":
        changed = resized(args, kwargs, lambda n: min(n, 1))
    elif variant == "none":
        first = next((t for _, t in tensors_of(paths_of(args, kwargs)) if t.is_floating_point() and t.dim()), None)
        if first is None:
            return None
        gone = draw.choice([n for n in first.shape if n > 1] or list(first.shape))
        changed = resized(args, kwargs, lambda n: 0 if n == gone else n)
    else:
        ordinary = [f"args.{i}" for i, parameter in enumerate(function_of(name)[1]) if parameter in ORDINARY]
        paths = [p for p, t in tensors_of(paths_of(args, kwargs)) if t.is_floating_point() and p not in ordinary]
        touched = [p for p in paths if draw.random() < 0.6] or [draw.choice(paths)]
        changed = mapped(args, kwargs, lambda p, t: replaced(variant, t, draw) if p in touched else t)
    same = all(torch.equal(a, b) for (_, a), (_, b) in zip(tensors_of(paths_of(args, kwargs)), tensors_of(paths_of(*changed))))
    return None if same else changed


def replaced(variant, tensor, draw):
    inf, nan = math.inf, math.nan
    choices = {"zeros": ([0.0, 0.0, -0.0], 0.5), "infinite": ([inf, -inf, inf, -inf, 0.0], 0.35), "nan": ([nan], 0.15),
               "mixed": ([0.0, -0.0, inf, -inf, nan, 1.0, -1.0], 0.7), "null": ([0.0], 1.0),
               "extreme": ([3e38, -3e38, 1e-38, 1e-45, -1e-42, 1e20, -1e20], 0.5)}
    values, share = choices[variant]
    elements = [draw.choice(values) if draw.random() < share else x for x in tensor.reshape(-1).tolist()]
    if variant == "nan" and elements and not any(x != x for x in elements):
        elements[draw.randrange(len(elements))] = nan
    return torch.tensor(elements, dtype=tensor.dtype).reshape(tensor.shape)


# ---- the file

def number(x):
    if x != x:
        return "nan"
    if x in (math.inf, -math.inf):
        return "inf" if x > 0 else "-inf"
    if x == int(x) and abs(x) < 1e6:
        return "-0" if x == 0 and math.copysign(1, x) < 0 else str(int(x))
    short = f"{x:.4g}"
    return short if abs(float(short)) < 3.4e38 else f"{x:.8g}"  # no number becomes infinity by rounding


def text(tensor):
    elements = tensor.reshape(-1).tolist()
    return f"{NAMES[tensor.dtype]}[{','.join(map(str, tensor.shape))}] = {' '.join(number(float(x)) for x in elements)}".rstrip()


def written(value):
    if isinstance(value, torch.Tensor):
        return text(value)
    if isinstance(value, list):
        return [written(v) for v in value]
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, float) and not math.isfinite(value):
        return number(value)
    return value


def as_read(args, kwargs):
    """The arguments as a reader of the file has them: rounded by their text."""
    return mapped(args, kwargs, lambda _, t: torch.tensor([float(number(float(x))) for x in t.reshape(-1).tolist()], dtype=torch.float64)
                  .to(t.dtype).reshape(t.shape))


def gradient(written_gradient, written_argument):
    """Only the elements, where the argument tells the rest."""
    head, equals, elements = written_gradient.partition(" = ")
    return f"= {elements}" if equals and written_argument.partition(" = ")[0] == head else written_gradient


def line(identity, name, args, kwargs, **more):
    entry = {"id": identity, "call": [name, *map(written, args), *([{k: written(v) for k, v in kwargs.items() if v is not None}] if kwargs else [])]}
    found = outcome(name, args, kwargs)
    if found and "gradients" in found:
        tensors = dict(tensors_of(paths_of(args, kwargs)))
        found["gradients"] = {path: gradient(g, text(tensors[path])) for path, g in found["gradients"].items()}
    return json.dumps(entry | more | found, separators=(",", ":")) if found else None


def lines_in_other_dtypes(name, args, kwargs, dtypes):
    """mixed0 again, where PyTorch takes the dtype."""
    for dtype in dtypes:
        made = special(name, "mixed", args, kwargs, random.Random(f"{name} {dtype}"))
        made = made and as_read(*mapped(*made, lambda _, t: t.to(dtype) if t.is_floating_point() else t))
        if made and works(name, *made):
            yield line(f"{name}/mixed_{NAMES[dtype]}", name, *made, **({"rtol": 0.02} if dtype.itemsize == 2 else {}))


def cases_of(name, k, args, kwargs, left_out, begin):
    """Lines of one call. Calls begin(variant) before each part that could end the process; `left_out`: those that did."""
    begin("small")
    reduced = None if "small" in left_out else small(name, args, kwargs)
    lines = []
    variants = []
    if reduced:
        count = floating_elements(*reduced)
        variants = VARIANTS if count <= MOST_ELEMENTS else ["mixed", "nan", "none"] if count <= 3 * MOST_ELEMENTS else ["mixed", "none"]
    if SUMS_WITHOUT_ORDER.match(name):
        variants = [v for v in variants if v != "extreme"]
    for variant in variants:
        draw = random.Random(f"{name} {k} {variant}")
        if (name, variant) in NOT_ASKED:
            continue
        made = special(name, variant, *reduced, draw)
        if k >= EXTRA_COUNTS[name] and k > 0 and variant in ("nan", "infinite") and name not in differentiable()[0]:
            continue  # its parts have such cases
        if made is None or variant in left_out or (k > 0 and variant in ("zeros", "null", "extreme", "none", "ones") and draw.random() < 0.8):
            continue
        begin(variant)
        lines.append(line(f"{name}/{variant}{k}", name, *as_read(*with_results_of_forward(name, *made))))
    has_dtype = any(isinstance(v, torch.dtype) for v in [*args, *kwargs.values()])
    if reduced and count <= 12 and k == 0 and not has_dtype and "dtypes" not in left_out and name not in RESULTS_OF_FORWARD:
        begin("dtypes")
        lines.extend(lines_in_other_dtypes(name, *reduced, dtypes_of(name)))
    return [l for l in lines if l]


def with_results_of_forward(name, args, kwargs):
    try:
        return (RESULTS_OF_FORWARD[name](args) if name in RESULTS_OF_FORWARD else args), kwargs
    except RuntimeError:  # sizes that the forward row refuses
        return args, kwargs


def dtypes_of(name):
    own, elementwise = differentiable()
    dtypes = [torch.float64] if name in own else []
    return dtypes + [(torch.float16, torch.bfloat16)[elementwise.index(name) % 2]] if name in elementwise else dtypes


def in_children(units):
    """cases_of of all units, in processes that PyTorch may end, as it does for some of these calls, or hang in."""
    done, left_out = 0, set()
    while done < len(units):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            with os.fdopen(write, "w") as pipe:
                def say(*what):
                    signal.setitimer(signal.ITIMER_PROF, 5)  # of processor time
                    signal.alarm(60)
                    print(json.dumps(what), file=pipe, flush=True)
                for unit in units[done:]:
                    say("lines", cases_of(*unit, left_out, lambda variant: say("begin", variant)))
                    left_out = set()
            os._exit(0)
        os.close(write)
        begun = None
        with os.fdopen(read) as pipe:
            for kind, content in map(json.loads, pipe):
                if kind == "begin":
                    begun = content
                else:
                    yield units[done], content
                    done, left_out, begun = done + 1, set(), None
        os.waitpid(child, 0)
        if done < len(units):
            print(f"{units[done][0]}: PyTorch does not survive {begun}", file=sys.stderr)
            left_out.add(begun)


def main(folder, *only):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    calls, known = {}, rows()
    seeds = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "seeds.jsonl")).readlines()
    for source in (from_seeds(EXTRA_CALLS.splitlines()), from_goldens(folder), from_seeds(seeds)):
        for name, args, kwargs in source:
            is_full = name in ONLY_EXTRA and len(calls.get(name, [])) >= EXTRA_COUNTS[name]
            is_left_out = LEFT_OUT.search(name) and len(calls.get(name, [])) >= EXTRA_COUNTS[name]
            if name in known and not is_left_out and not is_full and (not only or name in only):
                calls.setdefault(name, []).append((args, kwargs))
    units = [(name, k, *call) for name, of_name in sorted(calls.items())
             for k, call in enumerate(of_name[:EXTRA_COUNTS[name]] + chosen(of_name[EXTRA_COUNTS[name]:], CALLS))]
    counts = dict.fromkeys(calls, 0)
    for (name, *_), lines in in_children(units):
        counts[name] += len(lines)
        for l in lines:
            print(l, flush=True)
    for name, count in counts.items():
        if count == 0:
            print(f"{name}: no call is small enough, or has gradients", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
