#!/usr/bin/env python3
"""Servers of language models: `taper serve` beside llama.cpp's `llama-server`, with several clients at once, in turns, in one run.

    cmake --build --preset release --target taper
    build/release/bin/taper export SmolLM2-135M-Instruct.Q4_1.gguf -o rows.taper --context 2048 --parallel 8
    python3 benchmarks/peers/serve.py --taper rows.taper --llama-server llama.cpp/build/bin/llama-server SmolLM2-135M-Instruct.Q4_1.gguf

Each client holds a conversation of its own: it asks for answers of a fixed length, one after the other, and all clients do so at once. The
speed is the tokens of all answers divided by the time from the first request to the last answer, so it holds the reading of the prompts.
A second table divides by the processor time of the server. With `--threads 1` that says how fast it is on a machine of its own.
`--taper` may be given several times. Prints Markdown: medians over the rounds.
"""
import argparse
import http.client
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

TOPICS = ["the sea", "old trees", "a lost key", "winter in the mountains", "a train at night", "bread", "the first snow", "an old radio"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def post(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    if response.status != 200:
        raise RuntimeError(text.decode(errors="replace"))
    return json.loads(text)


class Server:
    """A server in a process of its own, while the `with` block runs."""

    def __init__(self, command):
        self.port = free_port()
        self.command = [str(part).replace("PORT", str(self.port)) for part in command]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return self
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(f"{' '.join(self.command)}\nfailed")
            time.sleep(0.1)
        sys.exit(f"{' '.join(self.command)}\ndoes not answer")

    def processor_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def speeds(server, clients, answers, tokens, words):
    """Tokens of all answers in a second, and in a second of the processor."""
    counts = [0] * clients
    failures = []

    def client(which):
        try:
            for i in range(answers):
                filler = " ".join(f"{TOPICS[(which + k) % len(TOPICS)]}," for k in range(words // 2))
                body = {"messages": [{"role": "user", "content": f"{which}{i}: {filler} tell a long story about {TOPICS[which % len(TOPICS)]}."}],
                        "max_tokens": tokens, "temperature": 0.8, "seed": which}
                counts[which] += post(server.port, "/v1/chat/completions", body)["usage"]["completion_tokens"]
        except Exception as error:  # noqa: BLE001: told below
            failures.append(error)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
    start, processor_start = time.perf_counter(), server.processor_seconds()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, processor_seconds = time.perf_counter() - start, server.processor_seconds() - processor_start
    if failures:
        sys.exit(f"a request failed: {failures[0]}")
    return sum(counts) / seconds, sum(counts) / max(processor_seconds, 1e-3)


def print_table(title, results, counts, which):
    print(f"| {title} | " + " | ".join(f"{n} client{'s' if n > 1 else ''}" for n in counts) + " |")
    print("| --- |" + " ---: |" * len(counts))
    for name, runs in results.items():
        print(f"| {name} | " + " | ".join(f"{statistics.median(run[which] for run in runs[n]):.0f}" for n in counts) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a .gguf file, for llama-server")
    parser.add_argument("--taper", action="append", default=[], help="what `taper serve` gets: a program, or the model")
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/taper"), help="the command `taper`")
    parser.add_argument("--llama-server", help="llama.cpp's server")
    parser.add_argument("--threads", default=2, type=int)
    parser.add_argument("--clients", default="1,2,4,8")
    parser.add_argument("--answers", default=1, type=int, help="of each client, one after the other")
    parser.add_argument("--tokens", default=64, type=int, help="of an answer")
    parser.add_argument("--words", default=8, type=int, help="about so many more words in a prompt")
    parser.add_argument("--context", default=1024, type=int, help="of a text, for llama-server")
    parser.add_argument("--rounds", default=3, type=int)
    options = parser.parse_args()
    counts = [int(n) for n in options.clients.split(",")]
    most = max(counts)

    servers = {}
    for model in options.taper:
        servers[f"taper serve {pathlib.Path(model).name}"] = [options.program, "serve", model, "--port", "PORT", "--parallel", most,
                                                              "--threads", options.threads]
    if options.llama_server:
        servers["llama-server"] = [options.llama_server, "-m", options.model, "--port", "PORT", "-np", most, "-c", most * options.context,
                                   "-t", options.threads, "-tb", options.threads, "--no-webui"]
    results = {name: {n: [] for n in counts} for name in servers}
    for _ in range(options.rounds):
        for name, command in servers.items():
            with Server(command) as server:
                speeds(server, 1, 1, 8, 0)  # warms up
                for n in counts:
                    results[name][n].append(speeds(server, n, options.answers, options.tokens, options.words))
    print_table("tokens a second", results, counts, 0)
    print_table("tokens a second of the processor", results, counts, 1)


if __name__ == "__main__":
    main()
