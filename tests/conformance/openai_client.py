#!/usr/bin/env python3
"""`taper serve` and OpenAI's Python client: every kind of request, and then many clients for a long time.

    python3 -m venv venv && venv/bin/pip install openai
    venv/bin/python tests/conformance/openai_client.py SmolLM2-135M-Instruct.Q4_1.gguf [--soak 600]

Starts a server of the model and asks it through the client. With `--soak`, four clients then hold conversations for so many seconds, while
four others vanish in the middle of an answer, stall, or send rubbish. Fails if an answer is wrong or late, if the memory grows, or if the
server does not end at SIGTERM. Prints a line for each check.
"""
import argparse
import json
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

import openai
import pydantic

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUESTION = [{"role": "user", "content": "What is the capital of Germany?"}]
SLOWEST = 60  # seconds for an answer of 32 tokens beside seven other clients


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=20)
    age: int = pydantic.Field(ge=0, le=150)

    model_config = {"extra": "forbid"}


TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather in a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"], "additionalProperties": False}}}]


class Server:
    """A server in a process of its own, while the `with` block runs. It must end at SIGTERM."""

    def __init__(self, program, model):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.command = [program, "serve", model, "--port", str(self.port), "--name", "model", "--parallel", "4", "--context", "1024"]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(f"{' '.join(self.command)}\nfailed")
                time.sleep(0.1)
        sys.exit(f"{' '.join(self.command)}\ndoes not answer")

    def megabytes(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1000
        return 0

    def __exit__(self, kind, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            sys.exit("the server did not end at SIGTERM")
        if kind is None and code != 0:
            sys.exit(f"the server ended with {code}")


def check(name, condition, told=""):
    if not condition:
        raise AssertionError(f"{name}: {told}")
    print(f"ok  {name}", flush=True)


def refused(kind, call):
    try:
        call()
    except kind as error:
        return error.body.get("message", "") if isinstance(error.body, dict) else str(error)
    return None


def check_requests(client):
    def ask(**more):
        return client.chat.completions.create(**{"model": "model", "messages": QUESTION, "max_tokens": 24, "seed": 1} | more)

    check("models", [model.id for model in client.models.list()] == ["model"])
    text = ask(temperature=0).choices[0].message.content
    check("chat", "Berlin" in text, text)
    answer = ask()
    text = answer.choices[0].message.content
    check("usage", answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens)
    pieces = [event.choices[0].delta.content or "" for event in ask(stream=True)]
    check("stream: the text of the same seed", "".join(pieces) == text and len(pieces) > 3, pieces)
    last = list(ask(stream=True, stream_options={"include_usage": True}))[-1]
    check("stream: usage", last.usage.completion_tokens == answer.usage.completion_tokens and last.choices == [])
    check("n", len(ask(n=2, temperature=1.5).choices) == 2)
    check("stop", "Berlin" not in ask(temperature=0, stop="Berlin").choices[0].message.content)
    first = ask(logprobs=True, top_logprobs=3).choices[0].logprobs.content[0]
    check("logprobs", first.logprob <= 0 and len(first.top_logprobs) == 3, first)
    person = client.chat.completions.parse(model="model", response_format=Person, max_tokens=80, seed=1, messages=[
        {"role": "user", "content": "Anna is 31. Write JSON with name and age."}]).choices[0].message.parsed
    check("JSON by schema", isinstance(person, Person), person)
    call = ask(tools=TOOLS, tool_choice="required", max_tokens=80).choices[0].message.tool_calls[0].function
    check("tools", call.name == "get_weather" and list(json.loads(call.arguments)) == ["city"], call)
    completion = client.completions.create(model="model", prompt="Once upon a time", max_tokens=8, temperature=0)
    check("completions", completion.usage.completion_tokens == 8)
    vectors = [v.embedding for v in client.embeddings.create(model="model", input=["A cat.", "A dog."]).data]
    check("embeddings", all(abs(sum(x * x for x in v) - 1) < 1e-4 for v in vectors) and len(vectors) == 2)
    told = refused(openai.NotFoundError, lambda: ask(model="another"))
    check("an unknown model", told is not None and "another" in told, told)
    told = refused(openai.BadRequestError, lambda: ask(temperature=-1))
    check("a bad temperature", told is not None and "temperature" in told, told)
    told = refused(openai.BadRequestError, lambda: ask(messages=[{"role": "user", "content": "word " * 4000}]))
    check("a prompt that is too long", told is not None, told)


def check_choices(client):
    def ask(**more):
        return client.chat.completions.create(**{"model": "model", "messages": QUESTION, "max_tokens": 24, "temperature": 1.2} | more)

    texts = [[c.message.content for c in ask(n=3, seed=7).choices] for _ in range(2)]
    check("n with a seed: the same texts again", texts[0] == texts[1] and len(set(texts[0])) > 1, texts)
    pieces = {0: "", 1: "", 2: ""}
    for event in ask(n=3, seed=7, stream=True):
        for choice in event.choices:
            pieces[choice.index] += choice.delta.content or ""
    check("n in a stream", [pieces[i] for i in range(3)] == texts[0], pieces)
    whole = ask(seed=7, logprobs=True, top_logprobs=2).choices[0]
    chances = [t for e in ask(seed=7, logprobs=True, top_logprobs=2, stream=True) for t in ((e.choices[0].logprobs or e).content if e.choices[0].logprobs else [])]
    check("logprobs in a stream", [t.logprob for t in chances] == [t.logprob for t in whole.logprobs.content], chances[:3])
    check("logprobs: the bytes of the text", b"".join(bytes(t.bytes) for t in whole.logprobs.content).decode() == whole.message.content)
    check("logprobs in order", all(t.top_logprobs[0].logprob >= t.top_logprobs[1].logprob for t in whole.logprobs.content))
    check("max_completion_tokens", ask(max_completion_tokens=3, max_tokens=None).usage.completion_tokens == 3)
    check("finish_reason", ask(max_tokens=2).choices[0].finish_reason == "length" and ask(temperature=0).choices[0].finish_reason == "stop")
    biased = ask(temperature=0, max_tokens=4, logit_bias={"216": 100}).choices[0].message.content
    check("logit_bias", biased.strip() == "", biased)
    check("a list of contents", "Berlin" in ask(temperature=0, messages=[{"role": "user", "content": [
        {"type": "text", "text": QUESTION[0]["content"]}]}]).choices[0].message.content)
    several = client.completions.create(model="model", prompt=["One", "Two"], max_tokens=3, n=2, logprobs=2, seed=1)
    check("completions: prompts, n, logprobs", [c.index for c in several.choices] == [0, 1, 2, 3] and len(several.choices[3].logprobs.tokens) == 3)


def check_forms(client):
    def ask(**more):
        return client.chat.completions.create(**{"model": "model", "messages": QUESTION, "max_tokens": 400, "temperature": 0} | more)

    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}, "tags": {
        "type": "array", "items": {"enum": ["old", "large"]}, "minItems": 1, "maxItems": 2}, "mayor": {"anyOf": [{"$ref": "#/$defs/name"}, {"type": "null"}]}},
        "required": ["city", "tags", "mayor"], "additionalProperties": False, "$defs": {"name": {"type": "string", "maxLength": 8}}}
    form = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema, "strict": True}}
    city = json.loads(ask(response_format=form).choices[0].message.content)
    check("json_schema: nested", set(city) == {"city", "tags", "mayor"} and set(city["tags"]) <= {"old", "large"}, city)
    streamed = "".join(e.choices[0].delta.content or "" for e in ask(response_format=form, stream=True))
    check("json_schema in a stream", json.loads(streamed) == city, streamed)
    tools = TOOLS + [{"type": "function", "function": {"name": "now", "description": "The time"}}]
    named = ask(tools=tools, tool_choice={"type": "function", "function": {"name": "now"}}).choices[0]
    check("a tool by name", named.message.tool_calls[0].function.name == "now" and named.finish_reason == "tool_calls", named)
    events = [e.choices[0].delta for e in ask(tools=tools, tool_choice="required", stream=True) if e.choices]
    calls = [c for d in events for c in d.tool_calls or []]
    arguments = json.loads("".join(c.function.arguments or "" for c in calls))
    check("tools in a stream", isinstance(arguments, dict) and not any(d.content for d in events), calls)
    call = ask(tools=tools, tool_choice="required").choices[0].message
    answer = ask(tools=tools, messages=QUESTION + [call, {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "sunny"}], tool_choice="none")
    check("the result of a tool", answer.choices[0].message.content, answer)
    check("a tool that is free to be called", ask(tools=tools).choices[0].finish_reason in ("stop", "tool_calls", "length"))


def check_embeddings(client):
    def embed(texts, **more):
        return client.embeddings.create(model="model", input=texts, **more)

    cat, feline, tax = (v.embedding for v in embed(["A cat sleeps.", "A kitten is asleep.", "Taxes rise in May."]).data)
    check("embeddings: close texts are close", sum(map(float.__mul__, cat, feline)) > sum(map(float.__mul__, cat, tax)))
    plain = embed("A cat sleeps.", encoding_format="float").data[0].embedding
    check("embeddings: floats and base64", max(abs(a - b) for a, b in zip(plain, cat)) < 1e-6)


def check_errors(client):
    def ask(**more):
        return client.chat.completions.create(**{"model": "model", "messages": QUESTION, "max_tokens": 4} | more)

    bad = openai.BadRequestError
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "text"}}}
    for name, call, word in (
            ("no messages", lambda: ask(messages=[]), "messages"),
            ("a role that is none", lambda: ask(messages=[{"role": "king", "content": "x"}]), "role"),
            ("a schema that is none", lambda: ask(response_format=schema), "schema"),
            ("a tool without a name", lambda: ask(tools=[{"type": "function", "function": {}}]), "tools"),
            ("an unknown choice of tools", lambda: ask(tools=TOOLS, tool_choice={"type": "function", "function": {"name": "x"}}), "x"),
            ("too many choices", lambda: ask(n=1000), "n"),
            ("top_p out of range", lambda: ask(top_p=7), "top_p"),
            ("a bias for no token", lambda: ask(logit_bias={"99999999": 1}), "logit_bias"),
            ("an unknown key", lambda: ask(extra_body={"colour": "red"}), "colour"),
            ("a text as max_tokens", lambda: ask(max_tokens="x"), "max_tokens"),
            ("no text to embed", lambda: client.embeddings.create(model="model", input=[]), "input")):
        told = refused(bad, call)
        check(f"an error: {name}", told is not None and word in told, told)


def converse(client, which, end, seconds, failures):
    """Answers of a fixed length, in conversations of four questions."""
    messages = []
    try:
        while time.monotonic() < end:
            messages = messages[-6:] + [{"role": "user", "content": f"Question {len(seconds)} of {which}: tell a story."}]
            start = time.monotonic()
            answer = client.chat.completions.create(model="model", messages=messages, max_tokens=32, seed=which)
            seconds.append(time.monotonic() - start)
            messages.append({"role": "assistant", "content": answer.choices[0].message.content})
    except Exception as error:  # noqa: BLE001: told at the end
        failures.append(error)


def be_rude(port, which, end, failures):
    """Vanishes in the middle of an answer, stalls, or sends rubbish."""
    body = json.dumps({"messages": QUESTION, "stream": True, "max_tokens": 200}).encode()
    request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body), body)
    try:
        turn = which
        while time.monotonic() < end:
            turn += 1
            with socket.create_connection(("127.0.0.1", port), 10) as s:
                if turn % 3 == 0:
                    s.sendall(request)
                    s.recv(200)  # and is gone
                elif turn % 3 == 1:
                    s.sendall(request[:40])
                    time.sleep(1)
                else:
                    s.sendall(bytes((turn * 31 + i * 7) % 256 for i in range(300)) + b"\r\n\r\n")
            time.sleep(0.05)
    except OSError as error:
        if time.monotonic() < end:
            failures.append(error)


def soak(client, server, duration):
    end, failures, seconds = time.monotonic() + duration, [], [[] for _ in range(4)]
    threads = [threading.Thread(target=converse, args=(client, i, end, seconds[i], failures)) for i in range(4)]
    threads += [threading.Thread(target=be_rude, args=(server.port, i, end, failures)) for i in range(4)]
    for thread in threads:
        thread.start()
    memory = []
    while time.monotonic() < end:
        time.sleep(min(5, duration / 20))
        memory.append(server.megabytes())
    for thread in threads:
        thread.join()
    quarter = len(memory) // 4
    early, late = max(memory[quarter:2 * quarter]), max(memory[-quarter:])
    times = [s for of_client in seconds for s in of_client]
    print(f"{len(times)} answers in {duration} s, median {statistics.median(times):.2f} s, longest {max(times):.2f} s; "
          f"memory {early:.0f} MB in the second quarter, {late:.0f} MB in the last one")
    check("soak: no request failed", not failures, failures[:1])
    check("soak: nobody waited for a rude client", max(times) < SLOWEST, max(times))
    check("soak: every client was answered", min(len(s) for s in seconds) > len(times) / 8, [len(s) for s in seconds])
    check("soak: the memory is flat", late < 1.02 * early + 4, memory)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="what `taper serve` gets")
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/taper"), help="the command `taper`")
    parser.add_argument("--soak", default=0, type=float, metavar="SECONDS")
    options = parser.parse_args()
    with Server(options.program, options.model) as server:
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0, timeout=300)
        for checks in (check_requests, check_choices, check_forms, check_embeddings, check_errors):
            checks(client)
        if options.soak:
            soak(client, server, options.soak)
    print("ok  SIGTERM")


if __name__ == "__main__":
    main()
