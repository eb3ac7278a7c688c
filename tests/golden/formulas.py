"""Operators that PyTorch does not have, or that have no derivative there, written in PyTorch's operators, for special_values.py."""
import math

import torch


def linear_recurrence(a, b, dim):
    steps = []
    for x, y in zip(a.unbind(dim), b.unbind(dim)):
        steps.append(x * steps[-1] + y if steps else y)
    return torch.stack(steps, dim) if steps else b.clone()


def scan(step, inputs, state, reverse):
    """The results of step(input, state) -> (results, state) for each input, the last one first if `reverse`."""
    results = []
    for x in reversed(inputs.unbind(0)) if reverse else inputs.unbind(0):
        result, state = step(x, state)
        results.append(result)
    return [torch.stack(part[::-1] if reverse else part) for part in zip(*results)]


def rnn_scan(gates, hx, weight_hh, relu, reverse):
    def step(x, h):
        h = (torch.relu if relu else torch.tanh)(x + h @ weight_hh.T)
        return [h], h
    return scan(step, gates, hx, reverse)


def lstm_scan(gates, hx, cx, weight_hh, reverse):
    def step(x, state):
        h, c = state
        i, f, g, o = (x + h @ weight_hh.T).chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        c = f * c + i * g
        h = o * c.tanh()
        return [h, c, torch.cat([i, f, g, o], 1)], (h, c)
    return scan(step, gates, (hx, cx), reverse)


def gru_scan(gates, hx, weight_hh, bias_hn, reverse):
    def step(x, h):
        (r, z, n), (of_r, of_z, q) = x.chunk(3, 1), (h @ weight_hh.T).chunk(3, 1)
        r, z = (r + of_r).sigmoid(), (z + of_z).sigmoid()
        q = q if bias_hn is None else q + bias_hn
        n = (n + r * q).tanh()
        h = (1 - z) * n + z * h
        return [h, torch.cat([r, z, n, q], 1)], h
    return scan(step, gates, hx, reverse)


def scan_back(step, count, reverse, *carried):
    """The results of step(t, the step before or -1, *carried) -> (results, carried), last step first; and what is carried out."""
    if count == 0:
        raise ValueError("no steps")
    results = [None] * count
    for i in range(count):
        t = i if reverse else count - 1 - i
        before = t + 1 if reverse else t - 1
        results[t], carried = step(t, before if before < count else -1, *carried)
    return [*map(torch.stack, zip(*results)), *carried]


def rnn_scan_backward(grad_output, output, weight_hh, relu, reverse):
    def step(t, _, carried):
        dh, y = grad_output[t] + carried, output[t]
        d = torch.ops.aten.threshold_backward(dh, y, 0) if relu else dh * (1 - y * y)
        return [d], [d @ weight_hh]
    return scan_back(step, len(output), reverse, torch.zeros_like(output[0]))


def lstm_scan_backward(grad_output, grad_cells, cx, cells, activations, weight_hh, reverse):
    def step(t, before, carried, of_cell):
        i, f, g, o = activations[t].chunk(4, 1)
        dh, c = grad_output[t] + carried, cells[t].tanh()
        dc = grad_cells[t] + dh * o * (1 - c * c) + of_cell
        old = cx if before < 0 else cells[before]
        d = torch.cat([dc * g * i * (1 - i), dc * old * f * (1 - f), dc * i * (1 - g * g), dh * c * o * (1 - o)], 1)
        return [d], [d @ weight_hh, dc * f]
    return scan_back(step, len(cells), reverse, torch.zeros_like(cx), torch.zeros_like(cx))


def gru_scan_backward(grad_output, hx, output, activations, weight_hh, reverse):
    def step(t, before, carried):
        r, z, n, q = activations[t].chunk(4, 1)
        dh, old = grad_output[t] + carried, hx if before < 0 else output[before]
        dn, dz = dh * (1 - z) * (1 - n * n), dh * (old - n) * z * (1 - z)
        dr = dn * q * r * (1 - r)
        of_hidden = torch.cat([dr, dz, dn * r], 1)
        return [torch.cat([dr, dz, dn], 1), of_hidden], [dh * z + of_hidden @ weight_hh]
    return scan_back(step, len(output), reverse, torch.zeros_like(hx))


def gradients_of(function, inputs, dy):
    """What a *_backward row gives, on the tape of what it is called with."""
    inputs = [x if x.requires_grad else x.detach().requires_grad_() for x in inputs]
    return list(torch.autograd.grad(function(*inputs), inputs, dy, create_graph=True))


def group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    return gradients_of(lambda x, w, b: torch.native_group_norm(x, w, b, N, C, HxW, group, 1e-5)[0],
                        [input, weight, torch.zeros_like(weight)], grad_out)


def attention(query, key, value):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return scores.softmax(-1) @ value, scores.logsumexp(-1)


def attention_backward(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal):
    return gradients_of(lambda *inputs: attention(*inputs)[0], [query, key, value], grad_out)


def silu_backward(grad_output, self):
    s = torch.sigmoid(self)
    return grad_output * s * (1 + self * (1 - s))


# By name. The names of their arguments are those of the row.
FORMULAS = {
    "taper::linear_recurrence": linear_recurrence, "taper::rnn_scan": rnn_scan, "taper::lstm_scan": lstm_scan, "taper::gru_scan": gru_scan,
    "taper::rnn_scan_backward": rnn_scan_backward, "taper::lstm_scan_backward": lstm_scan_backward, "taper::gru_scan_backward": gru_scan_backward,
    "native_group_norm_backward": group_norm_backward, "_scaled_dot_product_flash_attention_for_cpu_backward": attention_backward,
    "silu_backward": silu_backward, "copy": lambda self, src: src.expand_as(self).clone(),
    "quantized_decomposed::fake_quant_per_channel": lambda input, scales, zero_points, axis, quant_min, quant_max:
        torch.fake_quantize_per_channel_affine(input, scales, zero_points, axis, quant_min, quant_max),
}
# Arguments of the backward rows that are results of the forward ones: made of the others.
RESULTS_OF_FORWARD = {
    "native_layer_norm_backward": lambda a: a[:3] + list(torch.native_layer_norm(a[1], a[2], a[5], a[6], 1e-5)[1:]) + a[5:],
    "native_group_norm_backward": lambda a: a[:2] + list(torch.native_group_norm(a[1], None, None, *a[5:9], 1e-5)[1:]) + a[4:],
    "_scaled_dot_product_flash_attention_for_cpu_backward": lambda a: a[:4] + list(attention(*a[1:4])) + a[6:],
}
