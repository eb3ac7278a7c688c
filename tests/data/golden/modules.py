#!/usr/bin/env python3
"""Records modules with PyTorch that the golden data lack, in the form of its files modules_*.safetensors.

    modules.py           (writes nn/modules_more.safetensors beside this file)

`class` is the module's class. Behind a dot stands the method or the form that is called: "LSTM.packed" gets a padded input
and lengths, "WeightNorm.Linear" is a parametrized layer.
"""
import json
import os

import torch
from safetensors.torch import save_file
from torch.nn.utils import parametrizations, rnn

HERE = os.path.dirname(os.path.abspath(__file__))
tensors, cases = {}, []


def record(name, args, module, calls, train=True, rtol=1e-5, atol=1e-6):
    """calls: of (run, inputs, keywords); `run(module, *inputs)` gives a tensor or a tuple."""
    key = f"more{len(cases)}"
    module.train(train)
    for path, value in module.state_dict().items():
        if path != "_random_samples":  # the numbers of a pool are given in its calls
            tensors[f"{key}.state.{path}"] = value.clone()
    told = []
    for k, (run, inputs, keywords) in enumerate(calls):
        names = []
        for i, x in enumerate(inputs):
            names.append(f"{key}.{k}.in{i}")
            tensors[names[-1]] = x.detach().clone()
        told_keywords = {}
        for word, value in keywords.items():
            told_keywords[word] = value
            if torch.is_tensor(value):
                told_keywords[word] = f"{key}.{k}.kw.{word}"
                tensors[told_keywords[word]] = value.clone()
        for parameter in module.parameters():
            parameter.grad = None
        outputs = run(module, *inputs)
        outputs = [outputs] if torch.is_tensor(outputs) else list(outputs)
        total = 0
        for i, y in enumerate(outputs):
            tensors[f"{key}.{k}.out{i}"] = y.detach().clone().contiguous()
            if y.is_floating_point() and y.requires_grad:
                fed = torch.randn_like(y)
                tensors[f"{key}.{k}.out{i}.grad"] = fed
                total = total + (y * fed).sum()
        if torch.is_tensor(total):
            total.backward()
        for i, x in enumerate(inputs):
            if x.is_leaf and x.grad is not None:
                tensors[f"{names[i]}.grad"] = x.grad.clone().contiguous()
        for path, parameter in module.named_parameters():
            if parameter.grad is not None:
                tensors[f"{key}.{k}.grad.{path}"] = parameter.grad.clone().contiguous()
        for path, buffer in module.named_buffers():
            if path != "_random_samples":
                tensors[f"{key}.{k}.after.{path}"] = buffer.clone()
        told.append({"inputs": names, "kwargs": told_keywords, "outputs": len(outputs)})
    cases.append({"id": key, "class": name, "args": args, "train": train, "calls": told, "rtol": rtol, "atol": atol})


def leaf(*sizes):
    return torch.randn(*sizes).requires_grad_()


def plain(module, *inputs):
    return module(*inputs)


def activations_and_norms():
    for args in ({}, {"lower": 0.2, "upper": 0.5}):
        record("RReLU", args, torch.nn.RReLU(**args), [(plain, [leaf(3, 5)], {})], train=False)
    record("FeatureAlphaDropout", {"p": 0.3}, torch.nn.FeatureAlphaDropout(0.3), [(plain, [leaf(2, 3, 4)], {})], train=False)
    for size, channels in ((1, 3), (3, 6), (4, 6), (5, 7), (9, 3)):
        args = {"size": size, "alpha": 0.5, "beta": 0.6, "k": 1.5}
        x = torch.randn(2, channels, 3, 2)  # PyTorch's own derivative is not that of its sums
        record("CrossMapLRN2d", args, torch.nn.CrossMapLRN2d(**args), [(plain, [x], {})])
    for sizes in ((4, 3), (2, 3, 5), (2, 3, 2, 4)):
        norm = torch.nn.SyncBatchNorm(3, eps=1e-3)
        norm.running_mean.normal_(), norm.running_var.uniform_(0.5, 2)
        record("SyncBatchNorm", {"num_features": 3, "eps": 1e-3}, norm, [(plain, [leaf(*sizes)], {})], train=False)


def pool(n, args, sizes):
    batch = sizes[0] if len(sizes) == n + 2 else 1
    samples = torch.rand(batch, sizes[-n - 1], n)
    name = f"FractionalMaxPool{n}d"
    made = {k: tuple(v) if isinstance(v, list) else v for k, v in args.items()}
    module = getattr(torch.nn, name)(**made, return_indices=True, _random_samples=samples)
    record(name, args, module, [(plain, [leaf(*sizes)], {"random_samples": samples})])


def pools():
    pool(2, {"kernel_size": 2, "output_size": [3, 4]}, (2, 3, 7, 9))
    pool(2, {"kernel_size": [3, 2], "output_ratio": [0.5, 0.6]}, (2, 2, 8, 9))
    pool(2, {"kernel_size": 3, "output_size": 2}, (3, 6, 5))


def pools_of_volumes():
    pool(3, {"kernel_size": 2, "output_size": [3, 4, 2]}, (2, 3, 6, 7, 5))
    pool(3, {"kernel_size": [1, 3, 2], "output_ratio": [0.5, 0.6, 0.7]}, (2, 2, 6, 8, 5))
    pool(3, {"kernel_size": 2, "output_size": 2}, (3, 4, 5, 6))


def triplets():
    distances = {
        "default": None,
        "cosine": lambda a, b: 1 - torch.nn.functional.cosine_similarity(a, b),
        "l1": lambda a, b: (a - b).abs().sum(-1),
    }
    for name, distance in distances.items():
        for swap in (False, True):
            for reduction in ("none", "mean", "sum"):
                args = {"distance": name, "margin": 0.7, "swap": swap, "reduction": reduction}
                loss = torch.nn.TripletMarginWithDistanceLoss(distance_function=distance, margin=0.7, swap=swap, reduction=reduction)
                record("TripletMarginWithDistanceLoss", args, loss, [(plain, [leaf(5, 4), leaf(5, 4), leaf(5, 4)], {})])


def adaptive():
    log_prob, predict = (lambda m, x: m.log_prob(x)), (lambda m, x: m.predict(x))
    for cutoffs, bias, div in (([4, 9], False, 4.0), ([3], True, 2.0), ([2, 5, 11], True, 1.5)):
        args = {"in_features": 16, "n_classes": 14, "cutoffs": cutoffs, "div_value": div, "head_bias": bias}
        module = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 14, cutoffs, div_value=div, head_bias=bias)
        record("AdaptiveLogSoftmaxWithLoss", args, module, [
            (plain, [leaf(12, 16), torch.randint(14, (12,))], {}),
            (plain, [leaf(3, 16), torch.tensor([0, 1, 0])], {}),
            (plain, [leaf(2, 16), torch.tensor([13, 12])], {}),
            (plain, [leaf(16), torch.tensor(11)], {}),
            (log_prob, [leaf(5, 16)], {"method": "log_prob"}),
            (predict, [torch.randn(40, 16) * 3], {"method": "predict"}),
        ])


def packed_sequences():
    def packed(lengths, batch_first, total):
        def run(module, x, *states):
            sequence = rnn.pack_padded_sequence(x, lengths, batch_first=batch_first, enforce_sorted=False)
            state = None if not states else states[0] if len(states) == 1 else tuple(states)
            output, last = module(sequence, state)
            padded, again = rnn.pad_packed_sequence(output, batch_first=batch_first, padding_value=-2.0, total_length=total)
            assert torch.equal(again, lengths)
            return (padded, *last) if isinstance(last, tuple) else (padded, last)
        return run

    lengths = torch.tensor([3, 6, 1, 5])
    for kind, options in (("LSTM", {}), ("LSTM", {"num_layers": 2, "bidirectional": True}), ("LSTM", {"proj_size": 2, "bidirectional": True}),
                          ("LSTM", {"bias": False}), ("GRU", {}), ("GRU", {"num_layers": 2, "bidirectional": True, "bias": False}),
                          ("RNN", {}), ("RNN", {"num_layers": 2, "bidirectional": True, "nonlinearity": "relu"})):
        args = {"input_size": 3, "hidden_size": 5, **options}
        module = getattr(torch.nn, kind)(**args)
        passes = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
        states = [leaf(passes, 4, options.get("proj_size", 5))] + ([leaf(passes, 4, 5)] if kind == "LSTM" else [])
        x = torch.randn(6, 4, 3)
        for b, n in enumerate(lengths):
            x[n:, b] = float("nan")  # nobody may look behind the ends
        wide = torch.randn(4, 8, 3)
        record(f"{kind}.packed", args, module, [
            (packed(lengths, False, None), [x.requires_grad_()], {"lengths": lengths, "batch_first": False}),
            (packed(lengths, True, 9), [wide.requires_grad_(), *states], {"lengths": lengths, "batch_first": True, "total_length": 9}),
        ])


def parametrized():
    record("WeightNorm.Linear", {"dim": 0}, parametrizations.weight_norm(torch.nn.Linear(4, 3)), [(plain, [leaf(5, 4)], {})])
    record("WeightNorm.Conv2d", {"dim": 1}, parametrizations.weight_norm(torch.nn.Conv2d(2, 3, 3), dim=1), [(plain, [leaf(2, 2, 5, 5)], {})])
    for train in (True, False):
        record("SpectralNorm.Linear", {"dim": 0}, parametrizations.spectral_norm(torch.nn.Linear(4, 3)),
               [(plain, [leaf(5, 4)], {}), (plain, [leaf(5, 4)], {})], train=train)
        record("SpectralNorm.Conv2d", {"dim": 0, "n_power_iterations": 3}, parametrizations.spectral_norm(torch.nn.Conv2d(2, 3, 3), n_power_iterations=3),
               [(plain, [leaf(2, 2, 5, 5)], {})], train=train)


torch.manual_seed(21)
torch.set_num_threads(1)
for part in (activations_and_norms, pools, triplets, adaptive, packed_sequences, parametrized, pools_of_volumes):
    part()
path = os.path.join(HERE, "nn", "modules_more.safetensors")
save_file(tensors, path, metadata={"cases": json.dumps(cases, separators=(",", ":"))})
print(f"{len(cases)} cases, {os.path.getsize(path)} bytes")
