#!/usr/bin/env python3
"""Language models: `taper bench` beside llama.cpp's `llama-bench`, in turns, in one run.

    cmake --build --preset release --target taper
    pip install gguf numpy                                       # for models of random weights
    python3 benchmarks/peers/llm.py --llama-bench llama.cpp/build/bin/llama-bench SmolLM2-135M-Instruct.Q4_1.gguf
    python3 benchmarks/peers/llm.py --llama-bench … --random llama-1b-q4_0 --threads 2 --depths 0,8192

A model is a .gguf file, or one of `--random`: weights of the shapes of Llama-3.2-1B as llama-quantize stores them, with random blocks,
written beside the other temporary files. Each program runs in a process of its own. In a round each runs once, after a run that warms up.
A first start of Taper has an empty cache. The next start finds there what the first one kept (`taper cache`).

Prints Markdown. A speed is the median over the rounds, in tokens a second. `ratio`: Taper's over llama.cpp's. `bytes read`: a token
reads each weight once, so decoding cannot be faster than the memory; the share is of the bandwidth that the same run measured.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import numpy
except ImportError:
    sys.exit("llm.py: numpy is missing: pip install numpy")

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

LLAMA_1B = {"layers": 16, "hidden": 2048, "ff": 8192, "heads": 32, "kv_heads": 8, "vocabulary": 128256, "context": 131072}


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- models of random weights ----------------------------------------------------------------------------------------------------


def halves(values):
    return numpy.asarray(values, dtype=numpy.float16).view(numpy.uint8).reshape(len(values), 2)


def random_blocks(random, type_name, elements, scale):
    """Blocks of a ggml type whose values have about the standard deviation `scale`. Returns (blocks, bytes of a block)."""
    per_block = 32 if type_name == "Q4_0" else 256
    count = elements // per_block

    def some(columns):
        return random.integers(0, 256, (count, columns), dtype=numpy.uint8)

    if type_name == "Q4_0":  # d, 32 nibbles around 8
        return numpy.hstack([halves(numpy.full(count, scale / 4.6)), some(16)])
    if type_name == "Q4_K":  # d, dmin, 8 scales and minima of 6 bits, 256 nibbles
        return numpy.hstack([halves(numpy.full(count, scale / 160)), halves(numpy.full(count, scale / 24)), some(12), some(128)])
    if type_name == "Q6_K":  # low and high bits, 16 scales of 8 bits, d
        return numpy.hstack([some(128), some(64), random.integers(32, 64, (count, 16), dtype=numpy.uint8),
                             halves(numpy.full(count, scale / 900))])
    raise ValueError(type_name)


def uses_more_bits(layer, layers):
    """Which layers llama-quantize stores with more bits in the mixes named M."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def write_random_llama(path, mix, shape, tokenizer_of):
    """Writes a .gguf of Llama's architecture with random weights. The tokenizer is that of another file, with more tokens."""
    import gguf
    names = {"q4_0": "Q4_0", "q4_k_m": "Q4_K"}
    base = names[mix]
    random = numpy.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "llama")
    head = shape["hidden"] // shape["heads"]
    writer.add_context_length(shape["context"])
    writer.add_embedding_length(shape["hidden"])
    writer.add_block_count(shape["layers"])
    writer.add_feed_forward_length(shape["ff"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv_heads"])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(500000.0)
    writer.add_rope_dimension_count(head)
    writer.add_vocab_size(shape["vocabulary"])
    add_tokenizer(writer, gguf.GGUFReader(tokenizer_of), shape["vocabulary"])

    def matrix(name, rows, columns, type_name):
        blocks = random_blocks(random, type_name, rows * columns, columns ** -0.5)
        data = numpy.ascontiguousarray(blocks).reshape(rows, -1)
        writer.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType[type_name])

    def norm(name):
        writer.add_tensor(name, numpy.ones(shape["hidden"], dtype=numpy.float32))

    matrix("token_embd.weight", shape["vocabulary"], shape["hidden"], "Q6_K")
    keys = shape["kv_heads"] * head
    for layer in range(shape["layers"]):
        more = "Q6_K" if base == "Q4_K" and uses_more_bits(layer, shape["layers"]) else base
        block = f"blk.{layer}."
        norm(block + "attn_norm.weight")
        matrix(block + "attn_q.weight", shape["hidden"], shape["hidden"], base)
        matrix(block + "attn_k.weight", keys, shape["hidden"], base)
        matrix(block + "attn_v.weight", keys, shape["hidden"], more)
        matrix(block + "attn_output.weight", shape["hidden"], shape["hidden"], base)
        norm(block + "ffn_norm.weight")
        matrix(block + "ffn_gate.weight", shape["ff"], shape["hidden"], base)
        matrix(block + "ffn_up.weight", shape["ff"], shape["hidden"], base)
        matrix(block + "ffn_down.weight", shape["hidden"], shape["ff"], more)
    norm("output_norm.weight")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer, reader, vocabulary):
    def strings(key):
        field = reader.fields[key]
        return [bytes(field.parts[i]) for i in field.data]

    tokens = strings("tokenizer.ggml.tokens")
    tokens += [f"<extra_{i}>".encode() for i in range(len(tokens), vocabulary)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(tokens))
    writer.add_token_merges(strings("tokenizer.ggml.merges"))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


# ---- the two programs ------------------------------------------------------------------------------------------------------------


def run(command):
    """What the command printed."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        sys.exit(f"{' '.join(command)}\nfailed: {last[0]}")
    return done.stdout


# Its peak counts what its parent had in memory when it was started. So the parent is a small one.
SMALL_PARENT = """
import os, sys, time
start = time.perf_counter()
null = os.open(os.devnull, os.O_WRONLY)
actions = [(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=actions)
_, status, usage = os.wait4(process, 0)
print(status, time.perf_counter() - start, usage.ru_maxrss * 1024)
"""


def time_and_memory(command):
    """The seconds that a process took, and its largest resident memory in bytes."""
    status, seconds, peak = run([sys.executable, "-I", "-S", "-c", SMALL_PARENT, *command]).split()
    if status != "0":
        sys.exit(f"{' '.join(command)}\nfailed: status {status}")
    return float(seconds), int(peak)


class Taper:
    name = "Taper"

    def __init__(self, program, options):
        self.program, self.options = program, options

    def speed(self, model, threads, kind, count, depth):
        sizes = ["-p", count, "-n", 0] if kind == "pp" else ["-p", 0, "-n", count]
        context = depth + count + 64
        command = [self.program, "bench", model, "-d", depth, "-r", 1, "--context", context, "--threads", threads, *sizes,
                   *self.options]
        output = run([str(part) for part in command])
        rows = [line for line in output.splitlines() if f"{kind}{count}" in line]
        return float(rows[0].split("|")[-2].split("±")[0])

    def first_start(self, model, threads):
        shutil.rmtree(os.environ["TAPER_CACHE"], ignore_errors=True)
        return self.next_start(model, threads)

    def next_start(self, model, threads):
        command = [self.program, "generate", model, "--prompt", "The capital of France is", "--max-tokens", 1, "--greedy",
                   "--threads", threads, *self.options]
        return time_and_memory([str(part) for part in command])


class LlamaCpp:
    name = "llama.cpp"

    def __init__(self, program):
        self.program = program

    def speed(self, model, threads, kind, count, depth):
        sizes = ["-p", count, "-n", 0] if kind == "pp" else ["-p", 0, "-n", count]
        command = [self.program, "-m", model, "-t", threads, "-d", depth, "-r", 1, "-o", "json", *sizes]
        return json.loads(run([str(part) for part in command]))[0]["avg_ts"]

    def start(self, model, threads):
        command = [self.program, "-m", model, "-t", threads, "-r", 1, "--no-warmup", "-p", 5, "-n", 0]
        return time_and_memory([str(part) for part in command])


def read_bandwidth(threads, megabytes=256):
    """Bytes a second that `threads` threads read from memory: the best of five sums."""
    import concurrent.futures
    parts = [numpy.ones(megabytes * 2**20 // 8 // threads) for _ in range(threads)]
    best = float("inf")
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for _ in range(5):
            start = time.perf_counter()
            list(pool.map(numpy.max, parts))
            best = min(best, time.perf_counter() - start)
    return megabytes * 2**20 / best


# ---- the table -------------------------------------------------------------------------------------------------------------------


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "unknown processor"


def compare(programs, model, threads, tests, rounds):
    """Rows of the table: (test, median of each program)."""
    speeds = {(test, program.name): [] for test in tests for program in programs}
    for number in range(rounds):
        for test in tests:
            say(f"round {number + 1} of {rounds}: {model.name}, {threads} threads, {test[0]}{test[1]} @ d{test[2]}")
            for program in programs:
                speeds[test, program.name].append(program.speed(model, threads, *test))
    return [(test, *(statistics.median(speeds[test, program.name]) for program in programs)) for test in tests]


def first_tokens(taper, llama, model, threads, rounds):
    """For each kind of start the median of the seconds to the first token, and the largest memory in bytes."""
    starts = [taper.first_start, taper.next_start, llama.start]
    runs = [[start(model, threads) for start in starts] for _ in range(rounds)]
    return [(statistics.median(seconds for seconds, _ in kind), max(peak for _, peak in kind)) for kind in zip(*runs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    parser.add_argument("--taper", default=ROOT / "build/release/bin/taper", type=pathlib.Path)
    parser.add_argument("--llama-bench", required=True, type=pathlib.Path)
    parser.add_argument("--random", action="append", default=[], choices=["llama-1b-q4_0", "llama-1b-q4_k_m"])
    parser.add_argument("--tokenizer", type=pathlib.Path, help="the .gguf whose tokenizer the models of --random take")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--prompt", default=512, type=int)
    parser.add_argument("--generate", default=64, type=int)
    parser.add_argument("--depths", default="0")
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--options", default="", help="more options for taper, such as '--quantize int4'")
    arguments = parser.parse_args()
    if arguments.random and not (arguments.tokenizer or arguments.models):
        parser.error("--random needs --tokenizer, or a model whose tokenizer it can take")

    models = list(arguments.models)
    for name in arguments.random:
        path = pathlib.Path(tempfile.gettempdir()) / f"{name}.gguf"
        if not path.exists():
            say(f"writing {path}")
            write_random_llama(path, name.removeprefix("llama-1b-"), LLAMA_1B, arguments.tokenizer or models[0])
        models.append(path)
    os.environ["TAPER_CACHE"] = str(pathlib.Path(tempfile.gettempdir()) / "taper-cache-of-llm-benchmark")
    programs = [Taper(arguments.taper, arguments.options.split()), LlamaCpp(arguments.llama_bench)]
    tests = []
    for depth in map(int, arguments.depths.split(",")):
        tests += [("pp", arguments.prompt, depth), ("tg", arguments.generate, depth)]

    print(f"{processor()}, medians of {arguments.rounds} rounds\n")
    print("| model | threads | test | Taper, t/s | llama.cpp, t/s | ratio | Taper reads, of the bandwidth |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    starts = []
    for model in models:
        for threads in map(int, arguments.threads.split(",")):
            bandwidth = read_bandwidth(threads)
            for (kind, count, depth), ours, theirs in compare(programs, model, threads, tests, arguments.rounds):
                name = f"{kind}{count}" + (f" @ d{depth}" if depth else "")
                bytes_read = ours * model.stat().st_size
                share = f"{bytes_read / 1e9:.1f} of {bandwidth / 1e9:.1f} GB/s" if kind == "tg" else ""
                print(f"| {model.stem} | {threads} | {name} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} | {share} |", flush=True)
            starts.append((model, threads, first_tokens(*programs, model, threads, arguments.rounds)))
    print("\n| model | threads | first token, ms: Taper's first start | next start | llama.cpp | ratio of the next start "
          "| peak memory, MB: Taper's first start | next start | llama.cpp |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for model, threads, results in starts:
        times = [f"{seconds * 1e3:.0f}" for seconds, _ in results]
        peaks = [f"{peak / 1e6:.0f}" for _, peak in results]
        ratio = f"{results[1][0] / results[2][0]:.2f}"
        print(f"| {model.stem} | {threads} | {' | '.join(times)} | {ratio} | {' | '.join(peaks)} |")
    shutil.rmtree(os.environ["TAPER_CACHE"], ignore_errors=True)


if __name__ == "__main__":
    main()
