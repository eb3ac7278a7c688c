"""The peers of models.py: how each one gets a model, and how a worker process runs it.

    runtimes.py write KIND NAME FOLDER         writes a model of model_zoo.py to FOLDER, as KIND: "torch", or a peer below
    runtimes.py work PEER THREADS OUTPUT FOLDER
                                               runs the model once, and writes its output. Then reads lines "seconds" and answers
                                               each with a line of JSON, as benchmarks/model_time.cpp does

A peer is imported only in its own process, where the number of threads is set before. Its threads may spin after a call. So models.py
waits a moment before it asks the next one.
"""
import importlib
import importlib.metadata
import json
import os
import pathlib
import statistics
import sys
import time

import numpy


def saved_model(folder):
    import torch
    return torch.load(folder / "model.pt", weights_only=False)


def inputs_of(folder):
    about = json.loads((folder / "about.json").read_text())
    return [numpy.fromfile(folder / f"input{i}.bin", x["dtype"]).reshape(x["shape"]) for i, x in enumerate(about["inputs"])]


def tensors_of(folder):
    import torch
    return tuple(torch.from_numpy(x) for x in inputs_of(folder))


def is_int8(folder):
    return folder.name.endswith("_int8")


def quantize_onnx(file, folder):
    """Writes model.onnx in integers: ONNX Runtime's own way, with a scale for each channel of a weight. OpenVINO reads it, too."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class OneCall(CalibrationDataReader):
        def __init__(self):
            import onnxruntime
            names = [i.name for i in onnxruntime.InferenceSession(file).get_inputs()]
            self.calls = [dict(zip(names, inputs_of(folder)))]

        def get_next(self):
            return self.calls.pop() if self.calls else None

    quantize_static(file, folder / "model.onnx", OneCall(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


# ---- the peers -----------------------------------------------------------------------------------------------------------------
# `needs`: packages. `file`: what `write` leaves in the folder, if the peer does not take the PyTorch model itself.
# `imports`: what a program imports before it loads a model. `load` gives a function that makes one call and returns the first output as an array.


class OnnxRuntime:
    title, package, needs, file = "ONNX Runtime", "onnxruntime", ["onnxruntime", "onnx", "onnxscript"], "model.onnx"
    imports = ["onnxruntime"]

    @staticmethod
    def write(folder):
        import torch
        file = folder / ("float.onnx" if is_int8(folder) else "model.onnx")
        torch.onnx.export(saved_model(folder), tensors_of(folder), file, dynamo=True, external_data=False)
        if is_int8(folder):
            quantize_onnx(file, folder)

    @staticmethod
    def load(folder, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
        feeds = {i.name: x for i, x in zip(session.get_inputs(), inputs_of(folder))}
        return lambda: session.run(None, feeds)[0]


class OpenVino:
    title, package, needs, file = "OpenVINO", "openvino", ["openvino"], "model.xml"
    imports = ["openvino"]

    @staticmethod
    def write(folder):
        import openvino
        import torch
        program = folder / "model.onnx" if is_int8(folder) else torch.export.load(folder / "model.pt2")
        openvino.save_model(openvino.convert_model(program), folder / "model.xml", compress_to_fp16=False)

    @staticmethod
    def load(folder, threads):
        import openvino
        compiled = openvino.Core().compile_model(folder / "model.xml", "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
        request = compiled.create_infer_request()
        for i, x in enumerate(inputs_of(folder)):
            tensor = openvino.Tensor(openvino.Type(x.dtype), x.shape)  # a tensor around `x` would not keep it alive
            tensor.data[:] = x
            request.set_input_tensor(i, tensor)

        def call():
            request.infer(share_outputs=True)
            return request.get_output_tensor(0).data

        return call


class ExecuTorch:
    title, package, needs, file = "ExecuTorch", "executorch", ["executorch"], "model.pte"
    imports = ["executorch.extension.pybindings.portable_lib"]

    @staticmethod
    def write(folder):
        import torch
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
        from executorch.exir import to_edge_transform_and_lower
        lowered = to_edge_transform_and_lower(torch.export.load(folder / "model.pt2"), partitioner=[XnnpackPartitioner()])
        (folder / "model.pte").write_bytes(lowered.to_executorch().buffer)

    @staticmethod
    def load(folder, threads):
        import executorch.extension.pybindings.portable_lib as lib
        lib._unsafe_reset_threadpool(threads)
        module = lib._load_for_executorch(str(folder / "model.pte"))
        inputs = tensors_of(folder)
        return lambda: module.forward(inputs)[0].numpy()


class TorchEager:
    title, package, needs, file = "torch eager", "torch", ["torch"], None
    imports = ["torch"]

    @staticmethod
    def load(folder, threads):
        import torch
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        model, inputs = saved_model(folder), tensors_of(folder)
        return lambda: model(*inputs).numpy()


class TorchCompile:
    title, package, needs, file = "torch.compile", "torch", ["torch"], None
    imports = ["torch", "torch._inductor.config"]

    @staticmethod
    def load(folder, threads):
        import torch
        import torch._inductor.config
        torch._inductor.config.freezing = True  # weights are constants, packed once
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        model, inputs = torch.compile(saved_model(folder)), tensors_of(folder)
        return lambda: model(*inputs).numpy()


class LiteRt:
    title, package, needs, file = "LiteRT", "ai-edge-litert", ["ai_edge_litert", "litert_torch"], "model.tflite"
    imports = ["ai_edge_litert.interpreter"]

    @staticmethod
    def write(folder):
        import litert_torch
        litert_torch.convert(saved_model(folder), tensors_of(folder)).export(str(folder / "model.tflite"))

    @staticmethod
    def load(folder, threads):
        from ai_edge_litert.interpreter import Interpreter
        interpreter = Interpreter(str(folder / "model.tflite"), num_threads=threads)
        interpreter.allocate_tensors()
        for where, x in zip(interpreter.get_input_details(), inputs_of(folder)):
            interpreter.set_tensor(where["index"], x)
        output = interpreter.get_output_details()[0]["index"]

        def call():
            interpreter.invoke()
            return interpreter.get_tensor(output)

        return call


PEERS = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "executorch": ExecuTorch, "eager": TorchEager, "compile": TorchCompile,
         "litert": LiteRt}


# ---- writing -------------------------------------------------------------------------------------------------------------------


def quantized(program, inputs):
    """The program in integers, as PyTorch (PT2E) writes it for XNNPACK, with a scale for each channel of a weight."""
    import torch
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    observed = prepare_pt2e(program.module(), XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True)))
    observed(*inputs)
    return torch.export.export(convert_pt2e(observed), inputs)


def write_torch(name, folder):
    """The model for PyTorch and for `taper export`, its inputs and its result."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    import model_zoo
    folder.mkdir(parents=True, exist_ok=True)
    model, inputs = model_zoo.build(name.removesuffix("_int8"))
    with torch.no_grad():
        expected = model(*inputs)
    program = torch.export.export(model, inputs)
    if is_int8(folder):
        program = quantized(program, inputs)
        expected = program.module()(*inputs).detach()
    # the exported operators, since the counter does not know the fused ones that eager may use
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as flops:
        program.module()(*inputs)
    if not expected.isfinite().all() or not expected.any():
        raise ValueError("results are not finite, or all zero")
    torch.save(model, folder / "model.pt")
    expected.numpy().tofile(folder / "expected.bin")
    for i, x in enumerate(inputs):
        x.numpy().tofile(folder / f"input{i}.bin")
    about = {"flops": flops.get_total_flops(), "inputs": [{"dtype": str(x.numpy().dtype), "shape": list(x.shape)} for x in inputs]}
    (folder / "about.json").write_text(json.dumps(about))
    torch.export.save(program, folder / "model.pt2")  # last: models.py looks for this file


# ---- the worker ----------------------------------------------------------------------------------------------------------------


def times_of(call, seconds):
    """Milliseconds of each call, for about so long."""
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1e6)
    return times


def resident_mb(line):
    """A line of /proc/self/status: "VmRSS:" now, "VmHWM:" the most since the peak was forgotten."""
    words = pathlib.Path("/proc/self/status").read_text().split()
    return float(words[words.index(line) + 1]) * 1024e-6


def work(peer, threads, output, folder):
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libraries may print; only answers go to models.py
    for name in PEERS[peer].imports:
        importlib.import_module(name)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    before, start = resident_mb("VmRSS:"), time.perf_counter()
    call = PEERS[peer].load(folder, threads)
    first = call()
    start_ms, peak_mb = 1e3 * (time.perf_counter() - start), resident_mb("VmHWM:") - before
    numpy.ascontiguousarray(first).tofile(output)
    version = importlib.metadata.version(PEERS[peer].package)
    print(json.dumps({"version": version, "start_ms": start_ms, "peak_mb": peak_mb}), file=answers)
    for line in sys.stdin:
        times = times_of(call, float(line))
        print(json.dumps({"best_ms": min(times), "median_ms": statistics.median(times), "calls": len(times)}), file=answers)


def main():
    mode, what, *args = sys.argv[1:]
    folder = pathlib.Path(args[-1])
    if mode == "work":
        work(what, int(args[0]), args[1], folder)
    elif what == "torch":
        write_torch(args[0], folder)
    else:
        PEERS[what].write(folder)


if __name__ == "__main__":
    main()
