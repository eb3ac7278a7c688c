#!/usr/bin/env python3
"""Writes complex_cases.jsonl: PyTorch's results and gradients for complex numbers, in the notation of seeds.h.

    complex_cases.py > complex_cases.jsonl    (wants torch)
"""
import json

import torch

NAMES = {torch.complex64: "c64", torch.float32: "f32", torch.int64: "i64", torch.int32: "i32", torch.bool: "bool", torch.float64: "f64", torch.float16: "f16"}
FACTORS = torch.tensor([1, -2, 0.5, 3, -1.5])


def parts(t):
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def text(t):
    t = t.detach()
    elements = [str(int(x)) if t.dtype in (torch.int64, torch.int32, torch.bool) else f"{x:.7g}" for x in parts(t).reshape(-1).tolist()]
    return f"{NAMES[t.dtype]}[{','.join(map(str, t.shape))}] = {' '.join(elements)}".rstrip()


def written(value):
    if isinstance(value, torch.Tensor):
        return text(value)
    if isinstance(value, (list, tuple)):
        return [written(v) for v in value]
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else value


def tensors_of(args, kwargs):
    for i, a in enumerate(args):
        for k, t in enumerate(a if isinstance(a, list) else [a]):
            if isinstance(t, torch.Tensor):
                yield (f"args.{i}.{k}" if isinstance(a, list) else f"args.{i}"), t
    for name, a in kwargs.items():
        if isinstance(a, torch.Tensor):
            yield f"kwargs.{name}", a


def seed_of(result):
    """1, -2, 0.5, 3, -1.5, 1, … for the parts of the result."""
    p = parts(result.detach())
    seed = FACTORS.repeat(p.numel() // 5 + 1)[:p.numel()].reshape(p.shape)
    return torch.view_as_complex(seed) if result.is_complex() else seed.to(result.dtype)


def case(identity, name, *args, rtol=None, only_results=False, **kwargs):
    base, _, overload = name.partition(".")
    function = getattr(getattr(torch.ops.aten, base), overload or "default")
    args = list(args)
    call = [name, *map(written, args), *([{k: written(v) for k, v in kwargs.items()}] if kwargs else [])]
    leaves = {path: t.requires_grad_() for path, t in tensors_of(args, kwargs) if not only_results and (t.is_floating_point() or t.is_complex())}
    entry = {"id": identity, "call": call}
    try:
        results = function(*args, **kwargs)
    except NotImplementedError:  # PyTorch has no gradient of it
        with torch.no_grad():
            results = function(*args, **kwargs)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    entry["results"] = [text(r) for r in results]
    wanted = [r for r in results if r.requires_grad]
    entry["gradients"] = {}
    if wanted and not only_results:
        try:
            gradients = torch.autograd.grad(wanted, list(leaves.values()), [seed_of(r) for r in wanted], allow_unused=True)
        except RuntimeError:  # `where` of a real and a complex tensor has none in PyTorch
            gradients = []
        entry["gradients"] = {path: text(g) for path, g in zip(leaves, gradients) if g is not None}
    if rtol:
        entry["rtol"] = rtol
    print(json.dumps(entry, separators=(",", ":")))


def z(*sizes):
    return torch.view_as_complex((torch.randn(*sizes, 2) * 100).round() / 100 + 0.003)


def x(*sizes):
    return (torch.randn(*sizes) * 100).round() / 100 + 0.003


def c(*numbers):
    return torch.tensor(numbers, dtype=torch.complex64)


def whole(name, *more, **named):
    """A function of one tensor: random numbers in both dimensions, one number, none."""
    for k, sizes in enumerate([(2, 3), (), (0, 2)]):
        case(f"{name}/{k}", name, z(*sizes), *more, **named)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    for name in ("abs angle sgn exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh sigmoid silu neg reciprocal square "
                 "conj conj_physical _conj _conj_physical resolve_conj resolve_neg real imag view_as_real isnan isinf isfinite isreal "
                 "logical_not sum mean prod clone").split():
        whole(name)
    for name in "abs angle sgn".split():
        case(f"{name}/zero", name, c(0, 1, -1, 1j, -1j, 0))
    case("abs/large", "abs", c(3e30 + 4e30j, 3e-30 + 4e-30j))
    case("angle/real", "angle", torch.tensor([-2.0, 0.0, 3.0, float("nan")]))
    case("angle/integer", "angle", torch.tensor([-2, 0, 3]))
    case("sqrt/axes", "sqrt", c(-4, 4, 9j, -9j, -4 + 1e-3j, -4 - 1e-3j))
    case("log/axes", "log", c(-1, 1, 1j, -1j, 2))
    case("tanh/large", "tanh", c(50 + 1j, -50 + 1j, 0.1 + 1.5707j, 100 - 2j))
    case("sigmoid/large", "sigmoid", c(60 + 1j, -60 + 1j, 0.1 + 3j, 100 - 2j))
    for name in "asin acos atan asinh acosh atanh".split():
        case(f"{name}/quadrants", name, c(2 + 0.5j, -2 + 0.5j, -2 - 0.5j, 2 - 0.5j, 0.1 + 3j, 0.1 - 3j))
    case("tanh/pole", "tanh", c(0.3 + 1.5j, 4 + 1.57j, -7 - 1.6j, 12 + 1.5707j))
    case("nan_to_num/0", "nan_to_num", c(complex(float("nan"), 1), complex(2, float("inf"))), only_results=True)
    case("linspace/0", "linspace", 1, 3, 4, dtype=torch.complex64)
    case("sigmoid_backward/0", "sigmoid_backward", z(3), z(3))
    case("tanh_backward/0", "tanh_backward", z(3), z(3))
    case("exp/large", "exp", c(-100 + 1j, 80 + 3j, 1j))
    case("reciprocal/large", "reciprocal", c(3e15 + 4e15j, 3e-15 + 4e-15j))
    case("div/large", "div.Tensor", c(3e25 + 4e25j, 3e-25 + 4e-25j), c(1e25 - 2e25j, -1e-25 + 1e-25j))

    for name in "add sub mul div".split():
        case(f"{name}/same", f"{name}.Tensor", z(2, 3), z(2, 3))
        case(f"{name}/broadcast", f"{name}.Tensor", z(2, 1), z(3))
        case(f"{name}/real", f"{name}.Tensor", z(2, 3), x(3))
        case(f"{name}/real_first", f"{name}.Tensor", x(2, 3), z(2, 3))
        case(f"{name}/integer", f"{name}.Tensor", z(2), torch.tensor([2, -3]))
        case(f"{name}/one", f"{name}.Tensor", x(3), z())
        case(f"{name}/number", f"{name}.Scalar", z(2, 3), 2.5)
        case(f"{name}/whole_number", f"{name}.Scalar", z(2), 3)
    case("add/alpha", "add.Tensor", z(3), z(3), alpha=2)
    case("sub/alpha", "sub.Tensor", z(3), x(3), alpha=0.5)
    case("rsub/tensor", "rsub.Tensor", z(3), z(3), alpha=2)
    case("rsub/number", "rsub.Scalar", z(3), 2.5, 2)
    case("div/mode", "div.Tensor_mode", z(3), z(3), rounding_mode=None)
    for exponent in (0, 1, 2, 3, -1, -2, 5, 0.5, 1.7, -0.5):
        case(f"pow/{exponent}", "pow.Tensor_Scalar", z(4), exponent)
    case("pow/tensor", "pow.Tensor_Tensor", z(2, 3), z(3))
    case("pow/real_exponent", "pow.Tensor_Tensor", z(3), x(3))
    case("pow/real_base", "pow.Tensor_Tensor", x(4), z(4))
    case("pow/number", "pow.Scalar", 2.5, z(3))
    case("lerp/number", "lerp.Scalar", z(3), z(3), 0.3)
    case("lerp/tensor", "lerp.Tensor", z(3), z(3), z(3))
    case("addcmul/0", "addcmul", z(2, 3), z(3), z(2, 1), value=0.5)
    case("addcdiv/0", "addcdiv", z(3), z(3), z(3), value=2)
    case("eq/0", "eq.Tensor", c(1 + 1j, 1 - 1j, 2), c(1 + 1j, 1 + 1j, 3))
    case("eq/number", "eq.Scalar", c(1 + 1j, 2), 2)
    case("ne/0", "ne.Tensor", c(1 + 1j, 1 - 1j), torch.tensor([1.0, 1.0]))
    case("ne/number", "ne.Scalar", c(1 + 1j, 2), 2.0)
    case("isclose/0", "isclose", c(1 + 1j, 1 - 1j, 2), c(1 + 1.000001j, 1 + 1j, 2))
    case("isnan/special", "isnan", c(complex(float("nan"), 0), complex(1, float("nan")), 1j))
    case("isinf/special", "isinf", c(complex(float("inf"), 0), complex(1, -float("inf")), 1j))
    case("isreal/special", "isreal", c(1, 1j, 0))

    mask = torch.tensor([True, False, True])
    case("where/0", "where.self", mask, z(3), z(3))
    case("where/real", "where.self", mask, x(3), z(2, 3))
    case("where/number", "where.ScalarOther", mask, z(3), 1.5)
    case("masked_fill/number", "masked_fill.Scalar", z(2, 3), mask, 2.5)
    case("masked_fill/tensor", "masked_fill.Tensor", z(3), mask, z())
    case("fill/number", "fill.Scalar", z(2), 3)
    case("fill/tensor", "fill.Tensor", z(2), z())
    case("full/0", "full", [2, 3], 1.5, dtype=torch.complex64)
    case("zeros_like/0", "zeros_like", z(2))
    case("ones_like/0", "ones_like", x(2), dtype=torch.complex64)
    case("to/complex", "_to_copy", x(3), dtype=torch.complex64)
    case("to/from_integer", "_to_copy", torch.tensor([1, -2]), dtype=torch.complex64)
    case("to/bool", "_to_copy", c(0, 1j, 2), dtype=torch.bool)
    case("complex/0", "complex", x(2, 3), x(3))
    case("polar/0", "polar", x(3).abs(), x(2, 3))
    case("view_as_complex/0", "view_as_complex", x(3, 2))

    case("sum/dim", "sum.dim_IntList", z(2, 3), [1], True)
    case("sum/dtype", "sum.dim_IntList", x(2, 3), [0], dtype=torch.complex64)
    case("mean/dim", "mean.dim", z(2, 3), [0])
    case("prod/dim", "prod.dim_int", z(3, 5), 1)
    case("prod/keepdim", "prod.dim_int", z(3, 5), 0, True)
    case("cumsum/0", "cumsum", z(2, 3), 1)
    case("cumprod/0", "cumprod", z(2, 5), 1)
    case("var/0", "var.correction", z(2, 4), [1], correction=1)
    case("std/0", "std.correction", z(2, 4), [1], correction=0)
    case("var_mean/0", "var_mean.correction", z(2, 4), [0], correction=1, keepdim=True)
    case("norm/0", "linalg_vector_norm", z(2, 3), 2, [1])
    case("norm/1", "linalg_vector_norm", z(2, 3), 1)
    case("norm/3", "norm.Scalar", z(4), 3)
    case("any/0", "any", c(0, 1j))
    case("all/0", "all.dim", torch.stack([c(0, 1j), c(1, 1j)]), 1)
    case("logical_and/0", "logical_and", c(0, 1j), c(1, 1))

    case("mm/0", "mm", z(2, 3), z(3, 4))
    case("bmm/0", "bmm", z(2, 2, 3), z(2, 3, 2))
    case("matmul/0", "matmul", z(2, 2, 3), z(3, 2))
    case("matmul/vector", "matmul", z(2, 3), z(3))
    case("addmm/0", "addmm", z(2, 2), z(2, 3), z(3, 2), beta=0.5, alpha=2)
    case("baddbmm/0", "baddbmm", z(2, 2, 2), z(2, 2, 3), z(2, 3, 2))
    case("mv/0", "mv", z(2, 3), z(3))
    case("dot/0", "dot", z(4), z(4))
    case("vdot/0", "vdot", z(4), z(4))
    case("linalg_vecdot/0", "linalg_vecdot", z(2, 4), z(2, 4))
    case("outer/0", "outer", z(2), z(3))
    case("kron/0", "kron", z(2, 2), z(1, 2))
    case("inner/0", "inner", z(2, 3), z(4, 3))
    case("einsum/0", "einsum", "ij,kj->ik", [z(2, 3), z(2, 3)])
    case("linear/0", "linear", z(2, 3), z(4, 3), z(4))
    case("conv1d/0", "conv1d", z(1, 2, 6), z(2, 2, 3), z(2), [1], [1])
    case("conv2d/groups", "conv2d", z(1, 2, 4, 4), z(4, 1, 3, 3), None, [1, 1], [0, 0], [1, 1], 2)
    case("conv_transpose1d/0", "conv_transpose1d", z(1, 2, 4), z(2, 2, 3), z(2), [2])
    case("mH/0", "mH", z(2, 3, 2))
    case("matrix_H/0", "matrix_H", z(2, 3))
    case("adjoint/0", "adjoint", z(2, 3))

    index = torch.tensor([2, 0, 2])
    case("cat/mixed", "cat", [z(2), x(3)], 0)
    case("stack/0", "stack", [z(2), z(2)], 1)
    case("gather/0", "gather", z(3), 0, index)
    case("index_select/0", "index_select", z(3, 2), 0, index)
    case("index/0", "index.Tensor", z(3, 2), [index])
    case("index_put/0", "index_put", z(3), [torch.tensor([1, 2])], z(2))
    case("index_put/accumulate", "index_put", z(3), [index], z(3), True)
    case("index_add/0", "index_add", z(3, 2), 0, index, z(3, 2), alpha=2)
    case("scatter_add/0", "scatter_add", z(3), 0, index, z(3))
    case("scatter/0", "scatter.src", z(3), 0, torch.tensor([1, 2]), z(2))
    case("scatter/number", "scatter.value", z(3), 0, torch.tensor([1, 2]), 1.5)
    case("index_fill/0", "index_fill.int_Scalar", z(3), 0, torch.tensor([1]), 1.5)
    case("masked_scatter/0", "masked_scatter", z(3), mask, z(3))
    case("pad/0", "constant_pad_nd", z(2, 2), [1, 0, 0, 1], 1.5)
    case("pad/reflect", "reflection_pad1d", z(1, 4), [2, 1])
    case("flip/0", "flip", z(2, 3), [1])
    case("roll/0", "roll", z(3), [1], [0])
    case("repeat/0", "repeat", z(2), [2, 2])
    case("tril/0", "tril", z(3, 3))
    case("triu/0", "triu", z(3, 3), 1)
    case("diag/0", "diag", z(3))
    case("diagonal/0", "diagonal", z(3, 3))
    case("embedding/0", "embedding", z(4, 2), index)
    case("permute/0", "permute", z(2, 3, 1), [2, 0, 1])
    case("as_strided/0", "as_strided", z(6), [2, 2], [2, 1], 1)
    case("unfold/0", "unfold", z(5), 0, 3, 1)
    case("expand/0", "expand", z(2, 1), [2, 3])
    case("slice_scatter/0", "slice_scatter", z(4), z(2), 0, 1, 3)
    case("trace/0", "trace", z(3, 3))
    case("diff/0", "diff", z(4))

    square, batch = z(3, 3), z(2, 2, 2)
    for name in "linalg_solve_ex linalg_solve".split():
        case(f"{name}/vector", name, square, z(3), only_results="_ex" in name, rtol=2e-5)
    case("linalg_solve/batch", "linalg_solve", batch, z(2, 2, 3), rtol=2e-5)
    case("linalg_solve/right", "linalg_solve", square, z(2, 3), left=False, rtol=2e-5)
    case("linalg_inv_ex/0", "linalg_inv_ex", batch, rtol=2e-5)
    case("linalg_inv/0", "linalg_inv", square, rtol=2e-5)
    case("linalg_pinv/0", "linalg_pinv.atol_rtol_float", z(4, 2), rtol=2e-5)
    case("linalg_pinv/tolerance", "linalg_pinv.atol_rtol_float", z(2, 3), rtol=0.01)
    for triangle in "LU":
        case(f"linalg_eigvalsh/{triangle}", "linalg_eigvalsh", z(2, 3, 3), triangle, rtol=2e-5)
    case("linalg_svdvals/0", "linalg_svdvals", z(2, 3, 2), rtol=2e-5)
    for k, (upper, left, has_ones) in enumerate([(True, True, False), (False, True, False), (True, False, False), (False, False, True)]):
        case(f"linalg_solve_triangular/{k}", "linalg_solve_triangular", z(2, 3, 3), z(2, 3, 2) if left else z(2, 2, 3), upper=upper,
             left=left, unitriangular=has_ones, rtol=2e-5)
    case("linalg_solve_triangular/none", "linalg_solve_triangular", z(0, 0), z(0, 2), upper=True)
    for transpose in (False, True):
        case(f"triangular_solve/{transpose}", "triangular_solve", z(3, 2), z(3, 3), True, transpose, rtol=2e-5)
    reflections, tau = torch.geqrf(z(2, 4, 3))
    case("linalg_householder_product/0", "linalg_householder_product", reflections, tau, rtol=2e-5)
    for left in (True, False):
        for transpose in (False, True):
            case(f"ormqr/{left}_{transpose}", "ormqr", reflections, tau, z(2, 4, 2) if left else z(2, 2, 4), left, transpose, rtol=2e-5)
    for k, (sizes, driver) in enumerate([((4, 2), "gels"), ((2, 4, 2), "gelsd"), ((2, 4), "gelsy"), ((2, 4), "gelss"), ((4, 2), None)]):
        # PyTorch gives singular values no gradient
        case(f"linalg_lstsq/{k}", "linalg_lstsq", z(*sizes), z(*sizes[:-1], 3), driver=driver, only_results=driver in ("gelsd", "gelss"),
             rtol=1e-4)
    case("linalg_pinv/tensors", "linalg_pinv.rcond_tensor", z(2, 3, 2), torch.tensor([0.1, 0.9]), only_results=True, rtol=1e-4)
    case("linalg_pinv/hermitian", "linalg_pinv.atol_rtol_float", z(3, 3), hermitian=True, only_results=True, rtol=1e-4)
    case("linalg_inv_ex/none", "linalg_inv_ex", z(0, 0, 0))
    for order in ("nuc", "fro"):
        case(f"linalg_matrix_norm/{order}", "linalg_matrix_norm.str_ord", z(2, 3, 2), order, rtol=2e-5)
    case("linalg_matrix_norm/2", "linalg_matrix_norm", z(3, 2), 2, rtol=2e-5)
    case("logsumexp/0", "logsumexp", z(2, 3), [1])
    case("logsumexp/large", "logsumexp", c(100 + 1j, 99 - 2j, -100j), [0], True)
    case("logsumexp/all", "logsumexp", z(2, 3), [0, 1], True)
    case("pow/zero_base", "pow.Tensor_Tensor", c(0, 0), c(2, 0.5 + 1j), only_results=True)


if __name__ == "__main__":
    main()
