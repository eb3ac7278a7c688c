"""Records operator_names.pt2 and its results: calls of PyTorch whose names stay in an export that was
not decomposed, though another operator, or a few, compute the same.

    python operator_names.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record

T, S, L, F = torch, torch.special, torch.linalg, torch.nn.functional


def results(x, y, v, c, i, b):
    """x, y (4, 4) in (0, 1.2); v (4); c (4, 3); i (4, 4) of 1 … 8; b = x > 0.5."""
    half = x * 0.5
    nan = T.where(b, x, float("nan"))
    w = v.cumsum(0)
    return [
        # the same under another name
        x.adjoint(), T.arccos(half), T.arccosh(x + 1), T.arcsin(half), T.arcsinh(x), T.arctan(x), T.arctan2(x, y),
        T.arctanh(half), T.concat([x, y], 1), T.concatenate([x, y]), T.conj_physical(x), T.divide(x, y, rounding_mode="floor"),
        T.fix(x * 9), T.ger(v, v), T.greater(x, y), T.greater_equal(x, 0.5), T.less(x, y), T.less_equal(x, y), T.not_equal(x, y),
        L.matmul(x, y), T.moveaxis(c, 0, 1), T.multiply(x, 2), T.negative(x), T.pdist(c), T.row_stack([x, y]), T.swapdims(c, 0, 1),
        T.subtract(x, 2), T.true_divide(x, 3), T.trapz(x), half.clone().arccos_(), x.clone().negative_(),
        S.digamma(x), S.erf(x), S.erfc(x), S.erfinv(half), S.exp2(x), S.expit(x), S.expm1(x), S.gammaln(x), S.log1p(x),
        S.log_softmax(x, 1), S.logit(half), S.logsumexp(x, 1), S.multigammaln(x + 3, 3), S.polygamma(1, x), S.psi(x),
        S.round(x, decimals=1), S.sinc(x), S.softmax(x, 1),
        # views and pieces
        T.atleast_1d(x), T.atleast_2d(v), T.atleast_3d(v), *T.atleast_2d(v, x), T.movedim(c[None], (0, 1), (1, 0)),
        L.diagonal(x, offset=1), *T.hsplit(x, 2), *T.vsplit(x, 2), *T.dsplit(x[None], 2), *T.hsplit(x, [1, 3]),
        # rearranged
        T.fliplr(c), T.flipud(c), T.column_stack([v, x]), T.diag(v), T.diag(x, 1), T.diagflat(v), T.combinations(v),
        T.combinations(v, 3, with_replacement=True), T.nn.utils.rnn.pad_sequence([v, x[0, :2]], True, -1.0, "left"),
        x.sum_to_size(1, 4), *T.meshgrid(v, v), T.vander(v), T.vander(v, 3, increasing=True), L.vander(v),
        # by index
        T.put(x, i[0], y[0]), T.isin(i, 3), T.isin(3, i), T.searchsorted(w, 0.5), T.bucketize(0.5, w),
        x.index_fill(0, T.tensor([0, 2]), T.tensor(3.0)), x.scatter(0, i % 4, y, reduce="add"),
        x.scatter(0, i % 4, 2.0, reduce="multiply"), T.argsort(x, dim=1, stable=True), T.msort(x),
        # element by element
        T.isclose(x, y, rtol=0.5), T.isclose(nan, nan, equal_nan=True), T.isclose(i, i + 1), T.isreal(x), T.isposinf(x / 0),
        T.isneginf(-x / 0), T.heaviside(x - 0.5, y), T.ldexp(x, i), T.mvlgamma(x + 3, 3), S.entr(x - 0.5), S.ndtr(x), S.xlog1py(x, y),
        S.xlog1py(x, 2.0), S.xlog1py(2.0, y), T.xlogy(2.0, x), S.xlogy(x, 2.0), S.xlogy(2.0, x), T.bitwise_and(5, i), T.bitwise_or(5, i),
        T.bitwise_xor(5, i), T.bitwise_left_shift(5, i), T.bitwise_right_shift(640, i), T.remainder(17, i),
        T.gcd(i, i + 2), T.lcm(i, i + 2), T.i0(x * 9), S.i0(x), S.i0e(x * 40), S.i1(x - 0.5), S.i1e(x * 40), S.log_ndtr(x * 60 - 40),
        # reduced
        x.std(), x.var(), x.std(unbiased=False), *T.std_mean(x), *T.var_mean(x), *T.std_mean(x, 1, unbiased=True),
        T.count_nonzero(i % 3, dim=(0, 1)), T.norm(x, dtype=T.float64), L.norm(x, "fro"), T.dist(x, y), T.dist(x, y, 3.0),
        T.renorm(x, 2, 0, 1.0), T.mode(i)[0], T.mode(i, 0, keepdim=True)[0], T.nanmedian(nan), T.nanmedian(nan, 1)[0], T.nanmedian(nan, 0, keepdim=True)[0],
        T.quantile(x, 0.5), T.quantile(x, 0.3, dim=1, keepdim=True), T.quantile(x, v.clamp(0, 1), dim=1), T.quantile(nan, 0.3, dim=1),
        T.nanquantile(nan, 0.5), T.nanquantile(nan, v.clamp(0, 1), dim=0, keepdim=True), T.quantile(x, 0.3, interpolation="lower"),
        T.quantile(x, 0.3, interpolation="higher"), T.quantile(x, 0.35, dim=0, interpolation="nearest"),
        T.quantile(x, 0.35, dim=0, interpolation="midpoint"), T.trapezoid(x), T.trapezoid(x, w), T.cumulative_trapezoid(x, dim=0),
        T.cumulative_trapezoid(x, w, dim=0), *T.gradient(x), *T.gradient(x, edge_order=2), *T.gradient(x, spacing=2.0, dim=(0,)),
        # made of numbers
        x @ T.eye(4, 6), x + T.logspace(0, 1, 4), x + T.fft.fftfreq(4), x[:, :3] + T.fft.rfftfreq(4), v * T.hann_window(4, periodic=False),
        v * T.hamming_window(4), v * T.hamming_window(4, False, 0.6, 0.4), v * T.bartlett_window(4), v * T.blackman_window(4),
        v * T.kaiser_window(4), v * T.kaiser_window(4, periodic=False, beta=5.0),
        # products and pictures
        T.cross(c, c + 1), T.cross(c, c.flip(0), dim=1), T.addbmm(x, x[None], y[None], beta=0.5, alpha=2), T.chain_matmul(x, y, x),
        L.multi_dot([x, y, v]), L.vecdot(x, y), L.matrix_power(x, 3), L.matrix_norm(x), T.matrix_exp(x),
        L.inv(x + 2 * T.eye(4)), T.inverse(x + 2 * T.eye(4)), T.det(x), L.det(y), *T.slogdet(x + 2 * T.eye(4)),
        T.logdet(x + 4 * T.eye(4)), L.solve(x + 2 * T.eye(4), y), L.cholesky(x @ x.mT + T.eye(4)),
        L.solve_triangular(x.tril() + T.eye(4), y, upper=False), T.cholesky_solve(y, x.tril() + T.eye(4)),
        F.interpolate(T.cat([x] * 5)[None, None], size=(7, 9), mode="bicubic", antialias=True),
        # what is drawn, where it is not
        F.alpha_dropout(x, 0.3, False), F.feature_alpha_dropout(x, 0.3, False), F.rrelu(x - 0.5),
        # of a size that data decides
        *T.where(b), *T.nonzero(b, as_tuple=True), *T.unique_consecutive(i // 3, return_inverse=True, return_counts=True),
    ]


class Names(torch.nn.Module):
    def forward(self, *arguments):
        return results(*arguments)


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = torch.rand(4, 4) + 0.1, torch.rand(4, 4) + 0.2
    arguments = (x, y, torch.rand(4), torch.rand(4, 3), torch.randint(1, 9, (4, 4)), x > 0.5)
    program = torch.export.export(Names(), arguments)
    program.example_inputs = None
    record("operator_names", program, [arguments])
