#!/usr/bin/env python3
"""Whole models: Taper beside ONNX Runtime, OpenVINO, ExecuTorch, PyTorch eager, torch.compile and LiteRT, in turns, in one run.

    cmake --build --preset release --target taper model_time
    pip install torch torchvision onnx onnxscript onnxruntime openvino executorch      # leave out what you do not want
    python3 benchmarks/peers/models.py [--only REGEX] [--threads 1,2] [--rounds 5] [--time 0.5] [--output models.md]

model_zoo.py has the models: f32, batch 1, random weights. runtimes.py has the peers. Each runtime is a process of its own, which sleeps
while another one is measured. In a round each has a slice of `--time` seconds. A peer that is not installed is left out.

Prints Markdown. A time is the least of all calls, then in parentheses the median over the rounds, of each round's median: `12.3 (13.1)`
milliseconds. `ratio`: the best peer's time over Taper's, above 1 where Taper is faster. `share`: of the peak of multiply-adds that was
measured in the same run.

A second table has the start, from before the load to behind the first call, and the most memory that was resident meanwhile beyond that
before: `120 ms, 45 MB`. Interpreters and libraries are there before.

Models of integers end in `_int8`. PyTorch quantizes them for Taper and ExecuTorch (PT2E), and ONNX Runtime for itself and OpenVINO.
"""
import argparse
import contextlib
import datetime
import importlib.util
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy

import runtimes

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MODELS = ["mobilenet_v2", "mobilenet_v3_small", "squeezenet1_1", "efficientnet_b0", "resnet18", "resnet50", "convnext_tiny", "swin_t",
          "vit_b_16", "bert_base", "minilm", "lenet", "ds_cnn", "resnet20"]
MODELS += [f"{name}_int8" for name in ("mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "resnet18", "resnet50")]
PARTS = [f"products_{rows}" for rows in (1, 2, 4, 8, 16, 64)]  # eight layers of 2048 x 2048
PARTS += [f"attention_{positions}" for positions in (128, 512, 2048, 8192)]  # measured, as those, only if --only names them
TOLERANCE = 1e-2  # of the largest element: more is a mistake, not rounding
TOLERANCE_16_BITS = 0.1  # weights of 16 bits are rounded
TOLERANCE_INT8 = 0.5  # runtimes quantize in their own ways


class LeftOut(Exception):
    """Why a runtime does not take part."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def last_line(path):
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "no message"


def run_logged(command, log):
    with log.open("w") as file:
        if subprocess.run(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL).returncode != 0:
            raise LeftOut(f"{last_line(log)} (more in {log})")


# ---- the runtimes --------------------------------------------------------------------------------------------------------------


class Taper:
    def __init__(self, key, title, binary, flags, tolerance=TOLERANCE):
        self.key, self.title, self.binary, self.flags, self.tolerance = key, title, binary, flags, tolerance

    def prepare(self, folder):
        """Exports each time, because the command may have changed since."""
        run_logged([self.binary, "export", folder / "model.pt2", "-o", folder / f"{self.key}.taper", "--no-tests", *self.flags],
                   folder / f"{self.key}.export.log")

    def command(self, folder, threads, output):
        inputs = sorted(folder.glob("input*.bin"))
        return [self.binary.parent / "model_time", folder / f"{self.key}.taper", str(threads), output, *inputs]


class Peer:
    def __init__(self, key):
        self.key, self.peer, self.tolerance = key, runtimes.PEERS[key], TOLERANCE
        self.title = self.peer.title

    def prepare(self, folder):
        if self.peer.file is None or (folder / self.peer.file).exists():
            return
        say(f"  writing the model for {self.title}")
        run_logged([sys.executable, HERE / "runtimes.py", "write", self.key, folder], folder / f"{self.key}.write.log")

    def command(self, folder, threads, output):
        return [sys.executable, HERE / "runtimes.py", "work", self.key, str(threads), output, folder]


class Worker:
    """A process with one runtime and one model. It sleeps until it is asked for a slice."""

    def __init__(self, runtime, folder, threads):
        self.runtime, self.threads, self.slices = runtime, threads, []
        self.log = folder / f"{runtime.key}.log"
        output = folder / f"{runtime.key}.bin"
        output.unlink(missing_ok=True)
        # some libraries read these before they can be told otherwise
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), OMP_WAIT_POLICY="PASSIVE",
                           KMP_BLOCKTIME="0")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(runtime.command(folder, threads, output), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=log, text=True, env=environment)
        first = self.answer()
        self.version, self.start_ms, self.peak_mb = first.get("version"), first.get("start_ms"), first.get("peak_mb")
        self.difference = difference(folder / "expected.bin", output)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise LeftOut(f"{last_line(self.log)} (more in {self.log})")
        return json.loads(line)

    def slice(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return self.answer()

    def measure(self, seconds):
        self.slices.append(self.slice(seconds))

    def best(self):
        return min(s["best_ms"] for s in self.slices)

    def median(self):
        return statistics.median(s["median_ms"] for s in self.slices)

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def difference(expected_file, file):
    """The largest difference from PyTorch eager, and that as a share of the largest element."""
    expected, found = (numpy.fromfile(f, numpy.float32).astype(float) for f in (expected_file, file))
    if expected.size != found.size:
        raise LeftOut(f"the output has {found.size} elements, {expected.size} were expected")
    largest = numpy.abs(expected - found).max()
    return largest, largest / numpy.abs(expected).max()


def installed(keys):
    for key in keys:
        missing = [name for name in runtimes.PEERS[key].needs if importlib.util.find_spec(name) is None]
        if missing:
            say(f"{runtimes.PEERS[key].title} left out: {', '.join(missing)} not installed")
        else:
            yield Peer(key)


# ---- measuring -----------------------------------------------------------------------------------------------------------------


class Progress:
    """The stage of long work, and how much time it takes at most."""

    def __init__(self, steps):
        self.steps, self.done, self.start = steps, 0, time.monotonic()

    def begin(self, text):
        left = ""
        if self.done:
            minutes = (time.monotonic() - self.start) / self.done * (self.steps - self.done) / 60
            left = f", about {minutes:.0f} min left"
        say(f"[{self.done + 1}/{self.steps}] {text}{left}")
        self.done += 1


def machine_peak(taper, threads):
    return json.loads(subprocess.run([taper.parent / "model_time", "--peak", str(threads)], check=True, capture_output=True).stdout)


def prepare(name, candidates, folder):
    """The runtimes that have the model."""
    if not (folder / "model.pt2").exists():
        say("  building the model")
        folder.mkdir(parents=True, exist_ok=True)
        run_logged([sys.executable, HERE / "runtimes.py", "write", "torch", name, folder], folder / "torch.write.log")
    ready = []
    for runtime in candidates:
        try:
            runtime.prepare(folder)
            ready.append(runtime)
        except LeftOut as why:
            say(f"  {runtime.title} left out: {why}")
    return ready


def measure(ready, folder, threads, options):
    """Workers with their times: all the runtimes in turns."""
    workers = []
    try:
        for runtime in ready:
            try:
                workers.append(Worker(runtime, folder, threads))
            except LeftOut as why:
                say(f"  {runtime.title} left out: {why}")
        for _ in range(options.starts - 1):
            for worker in workers:
                again = Worker(worker.runtime, folder, threads)
                again.close()
                if worker.start_ms is not None:
                    worker.start_ms, worker.peak_mb = min(worker.start_ms, again.start_ms), min(worker.peak_mb, again.peak_mb)
        for number in range(-1, options.rounds):  # round -1 warms up
            first = number % len(workers)  # so that nobody always runs behind the same other
            for worker in workers[first:] + workers[:first]:
                time.sleep(options.pause)
                if number < 0:
                    worker.slice(options.time / 4)
                else:
                    worker.measure(options.time)
    finally:
        for worker in workers:
            worker.close()
    return workers


# ---- the tables ----------------------------------------------------------------------------------------------------------------


def number(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def cell(worker):
    return f"{number(worker.best())} ({number(worker.median())})" if worker else "–"


def start_cell(worker):
    return f"{number(worker.start_ms)} ms, {number(worker.peak_mb)} MB" if worker and worker.start_ms is not None else "–"


def processor():
    found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return found[1] if found else "unknown processor"


class Report:
    def __init__(self, ours, peers):
        self.ours, self.peers, self.rows, self.peaks, self.versions = ours, peers, [], {}, {}

    def add_peak(self, threads, peak):
        old = self.peaks.get(threads, peak)
        self.peaks[threads] = {key: max(value, old[key]) for key, value in peak.items()}

    def add(self, name, flops, threads, workers):
        self.rows.append((name, flops, threads, {w.runtime.key: w for w in workers}))
        self.versions |= {w.runtime.title: w.version for w in workers if w.version}

    def row(self, name, flops, threads, workers):
        taper, theirs = workers.get("taper"), [workers[p.key] for p in self.peers if p.key in workers]
        best = min(theirs, key=Worker.best, default=None)
        cells = [name, str(threads)] + [cell(workers.get(r.key)) for r in self.ours]
        cells.append(f"{number(best.best())} {best.runtime.title}" if best else "–")
        cells.append(f"{best.best() / taper.best():.2f}" if best and taper else "–")
        cells.append(f"{100e-6 * flops / taper.best() / self.peaks[threads]['gflops']:.0f} %" if taper else "–")
        return cells + [cell(workers.get(p.key)) for p in self.peers]

    def starts(self):
        for name, _, threads, workers in self.rows:
            yield [name, str(threads)] + [start_cell(workers.get(r.key)) for r in self.ours + self.peers]

    def differences(self):
        for name, _, threads, workers in self.rows:
            yield [name, str(threads)] + [f"{w.difference[0]:.1e} ({w.difference[1]:.1e})" if (w := workers.get(r.key)) else "–"
                                          for r in self.ours + self.peers]

    def wrong(self):
        return [f"{name}, {w.runtime.title}: results differ by {w.difference[1]:.1e} of the largest" for name, _, _, workers in self.rows
                for w in workers.values() if not w.difference[1] < (TOLERANCE_INT8 if name.endswith("_int8") else w.runtime.tolerance)]

    def text(self):
        lines = [f"{datetime.date.today()}, {processor()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}. "
                 + ", ".join(f"{title} {version}" for title, version in self.versions.items()) + ".", ""]
        lines += [f"- Peak of {threads} thread{'s' if threads > 1 else ''}: {peak['gflops']:.0f} GFLOP/s, reads of {peak['gbps']:.1f} GB/s."
                  for threads, peak in self.peaks.items()]
        times = [["model", "threads"] + [r.title for r in self.ours] + ["best peer", "ratio", "share"] + [p.title for p in self.peers]]
        times += [self.row(*row) for row in self.rows]
        starts = [["model", "threads"] + [r.title for r in self.ours + self.peers], *self.starts()]
        differ = [["model", "threads"] + [r.title for r in self.ours + self.peers], *self.differences()]
        lines += ["", "Milliseconds, least (median):", "", *markdown(times)]
        lines += ["", "Start and memory:", "", *markdown(starts)]
        lines += ["", "Largest difference from PyTorch eager (as a share of the largest element):", "", *markdown(differ)]
        return "\n".join(lines) + "\n"


def markdown(rows):
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return [head, "| --- |" + " ---: |" * (len(rows[0]) - 1), *body]


# ---- the command ---------------------------------------------------------------------------------------------------------------


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX", help=f"of models: {', '.join(MODELS)}")
    parser.add_argument("--peers", default=",".join(runtimes.PEERS), help="default: %(default)s")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--time", type=float, default=0.5, help="seconds of each runtime in a round")
    parser.add_argument("--starts", type=int, default=1, help="starts of each runtime, of which the table has the least")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds between two slices: threads that spin fall asleep")
    parser.add_argument("--taper", type=pathlib.Path, default=ROOT / "build/release/bin/taper", help="the command; model_time lies beside it")
    parser.add_argument("--before", type=pathlib.Path, metavar="TAPER", help="an older command: a further column")
    parser.add_argument("--xnnpack", action="store_true", help="a further column: programs with XNNPACK as backend")
    parser.add_argument("--dtypes", default="", metavar="f16,bf16", help="further columns: programs with weights of 16 bits")
    parser.add_argument("--without-exact", action="store_true", help="no column of `--exact`")
    parser.add_argument("--target", default="host", help="of `taper export`; `any`: no target")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/peers", metavar="DIR", help="keeps the models for the next run")
    parser.add_argument("--output", type=pathlib.Path, metavar="FILE.md", help="writes the tables here, too, after each model")
    options = parser.parse_args()
    counts = options.threads.split(",")
    if not all(t.isdecimal() and 1 <= int(t) <= 256 for t in counts):
        parser.error(f"--threads: {options.threads} is no list of numbers from 1 to 256, as in 1,2")
    options.threads = [int(t) for t in counts]
    if options.rounds < 1 or not options.time > 0 or not options.pause >= 0:
        parser.error("--rounds must be at least 1, --time above 0, and --pause not below 0")
    options.peers = [p for p in options.peers.split(",") if p]
    for peer in options.peers:
        if peer not in runtimes.PEERS:
            parser.error(f"there is no peer {peer}: {', '.join(runtimes.PEERS)}")
    try:
        options.names = [name for name in MODELS + PARTS * bool(options.only) if re.search(options.only, name)]
        options.models.mkdir(parents=True, exist_ok=True)
    except re.error as error:
        parser.error(f"--only: {options.only} is no regular expression: {error}")
    except OSError as error:
        parser.error(f"--models: {error}")
    if not options.names:
        parser.error(f"--only: no model is called so: {', '.join(MODELS)}")
    for binary in [options.taper] + ([options.before] if options.before else []):
        for path in (binary, binary.parent / "model_time"):
            if not path.exists():
                parser.error(f"{path} does not exist: build the targets taper and model_time")
    return options


def main():
    options = parse()
    target = [] if options.target == "any" else ["--target", options.target]
    ours = [Taper("taper", "Taper", options.taper.resolve(), target),
            Taper("taper_exact", "Taper `--exact`", options.taper.resolve(), [*target, "--exact"])]
    if options.without_exact:
        ours.pop()
    if options.xnnpack:
        ours.append(Taper("taper_xnnpack", "Taper, XNNPACK", options.taper.resolve(), [*target, "--backend", "xnnpack"]))
    ours += [Taper(f"taper_{dtype}", f"Taper, {dtype}", options.taper.resolve(), [*target, "--dtype", dtype], TOLERANCE_16_BITS)
             for dtype in options.dtypes.split(",") if dtype]
    if options.before:
        ours.append(Taper("taper_before", "Taper before", options.before.resolve(), target))
    peers = list(installed(options.peers))
    report = Report(ours, peers)
    progress = Progress(len(options.names) * len(options.threads))
    for name in options.names:
        folder = options.models.resolve() / name
        ready = None
        for threads in options.threads:
            progress.begin(f"{name}, {threads} thread{'s' if threads > 1 else ''}")
            try:
                ready = prepare(name, ours + peers, folder) if ready is None else ready
            except LeftOut as why:
                say(f"  {name} left out: {why}")
                break
            report.add_peak(threads, machine_peak(options.taper, threads))
            flops = json.loads((folder / "about.json").read_text())["flops"]
            report.add(name, flops, threads, measure(ready, folder, threads, options))
            if options.output:
                options.output.write_text(report.text())
    print(report.text())
    for mistake in report.wrong():
        say(mistake)
    return 1 if report.wrong() else 0


if __name__ == "__main__":
    raise SystemExit(main())
