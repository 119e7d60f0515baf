#!/usr/bin/env python3
"""What PyTorch reaches on the two works of this example, on one GPU.

    python3 peers.py [--only NAME ..] [--skip NAME ..] [-o OUT.json]

article   one forward pass of the article's model over [8, 128] tokens in f16, milliseconds
decode    tokens per second of a model of GPT-2's small shape in bf16, one sequence, one token at a time
copy      what the device's memory gives, and what it makes the fastest decode that reads each weight once

Owns these measurements. Assumes PyTorch with CUDA. Guarantees that each leg is printed as one line of JSON as soon as
it is done, and that a leg that fails says why and stops no other. `-o` gets all of them once more, in one object.
--only and --skip take the beginning of a leg's name.
"""

import argparse
import contextlib
import json
import math
import statistics
import sys
import time
import traceback

import torch
import torch._inductor.config
import torch.nn.functional as F
from torch import nn

RESULTS = {}


def parse():
    parser = argparse.ArgumentParser(description="Measures PyTorch on the article's model and on decoding GPT-2.")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="run legs whose name begins so")
    parser.add_argument("--skip", action="append", default=[], metavar="NAME", help="run no legs whose name begins so")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("-o", "--out")
    return parser.parse_args()


ARGS = parse()


def leg(name, measure):
    """Runs one measurement, which gives a dictionary, and prints what came of it."""
    if ARGS.only and not any(name.startswith(only) for only in ARGS.only):
        return
    if any(name.startswith(skip) for skip in ARGS.skip):
        return
    began = time.monotonic()
    try:
        RESULTS[name] = measure()
    except Exception as error:  # A leg may fail in any way that PyTorch can, and the others still run.
        traceback.print_exc()
        RESULTS[name] = {"error": f"{type(error).__name__}: {error}"[:400]}
    print(json.dumps({"leg": name, **RESULTS[name], "leg_seconds": round(time.monotonic() - began, 1)}), flush=True)
    # What one leg compiled is neither kept nor found by the next.
    torch._dynamo.reset()
    torch.cuda.empty_cache()


def times(run, count, before=None):
    """Milliseconds of `count` runs, each between two events; `before` is done ahead of each, outside of them."""
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
    for _ in range(10):
        run()
    torch.cuda.synchronize()
    for start, end in events:
        if before is not None:
            before()
        start.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in events]


def captured(run, reset=lambda: None):
    """A CUDA graph of one run. Runs it first as it is, for all that is done once; `reset` undoes what a run moves."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    reset()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run()
    return graph, result


def error_of(got, want):
    return ((got.double() - want.double()).norm() / want.double().norm()).item()


# ---- the article's model


class Article:
    """Post-norm blocks without a mask, without biases in the linears, with GELU by tanh; weights [in, out]."""

    VOCABULARY, WIDTH, HEADS, LAYERS, HIDDEN, LENGTH, BATCH = 1000, 256, 8, 4, 1024, 128, 8

    def __init__(self, dtype=torch.float16):
        torch.manual_seed(0)
        d, ff = self.WIDTH, self.HIDDEN

        def weight(*shape):
            return (torch.randn(*shape, device="cuda") * 0.02).half().to(dtype)

        self.tokens, self.positions = weight(self.VOCABULARY, d), weight(self.LENGTH, d)
        self.output = weight(d, self.VOCABULARY)
        sizes = {"q": (d, d), "k": (d, d), "v": (d, d), "o": (d, d), "w1": (d, ff), "w2": (ff, d)}
        self.blocks = [{name: weight(*size) for name, size in sizes.items()} for _ in range(self.LAYERS)]
        self.ones, self.zeros = torch.ones(d, device="cuda", dtype=dtype), torch.zeros(d, device="cuda", dtype=dtype)

    def norm(self, x):
        return F.layer_norm(x, (self.WIDTH,), self.ones, self.zeros, 1e-5)

    def forward(self, ids):
        batch, length = ids.shape
        heads = (batch, length, self.HEADS, self.WIDTH // self.HEADS)
        x = (self.tokens[ids] + self.positions[:length]).view(-1, self.WIDTH)
        for block in self.blocks:
            q, k, v = ((x @ block[name]).view(heads).transpose(1, 2) for name in "qkv")
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(-1, self.WIDTH)
            x = self.norm(x + y @ block["o"])
            x = self.norm(x + F.gelu(x @ block["w1"], approximate="tanh") @ block["w2"])
        return x @ self.output


def article(compile_mode):
    model = Article()
    ids = torch.randint(0, model.VOCABULARY, (model.BATCH, model.LENGTH), device="cuda")
    # The same seed gives the same weights, rounded to f16 before they are widened.
    want = Article(torch.float64).forward(ids)
    run = model.forward if compile_mode is None else torch.compile(model.forward, mode=compile_mode)
    eager_ms = statistics.median(times(lambda: run(ids), 200))
    graph, result = captured(lambda: run(ids))
    graph.replay()
    error = error_of(result, want)
    # A buffer larger than the L2 cache, to be written before each run.
    flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")

    def in_a_row():
        for _ in range(10):
            graph.replay()

    return {
        "graph_ms": statistics.median(times(graph.replay, 500)),
        "graph_in_a_row_ms": statistics.median(times(in_a_row, 200)) / 10,
        "graph_cold_l2_ms": statistics.median(times(graph.replay, 200, before=flush.zero_)),
        "without_graph_ms": eager_ms,
        "relative_error_to_f64": error,
    }


# ---- decoding GPT-2 small


class Layer(nn.Module):
    """Weights are [out, in], which a product with one row reads along their rows."""

    def __init__(self, width, heads, slots):
        super().__init__()

        def add(name, *shape, around=0.0):
            self.register_buffer(name, torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02 + around)

        self.heads = heads
        for name, outputs, inputs in (("qkv", 3 * width, width), ("proj", width, width), ("up", 4 * width, width),
                                      ("down", width, 4 * width)):
            add(name, outputs, inputs)
            add(name + "_bias", outputs)
        for name in ("ln_1", "ln_2"):
            add(name, width, around=1.0)
            add(name + "_bias", width)
        for name in ("keys", "values"):
            cache = torch.zeros(1, heads, slots, width // heads, device="cuda", dtype=torch.bfloat16)
            self.register_buffer(name, cache)


class Decoder(nn.Module):
    """GPT-2 with its keys and values in buffers of a fixed size, and the token and position on the device.

    `step` takes no arguments and leaves the next token and position where it found them, so that a graph of it can be
    replayed without the host.
    """

    VOCABULARY, POSITIONS, WIDTH, LAYERS, HEADS = 50257, 1024, 768, 12, 12

    def __init__(self, slots):
        super().__init__()
        torch.manual_seed(0)
        self.plain_attention = False
        self.bias_apart = False
        self.layers = nn.ModuleList(Layer(self.WIDTH, self.HEADS, slots) for _ in range(self.LAYERS))
        for name, shape in (("wte", (self.VOCABULARY, self.WIDTH)), ("wpe", (self.POSITIONS, self.WIDTH)),
                            ("ln_f", (self.WIDTH,)), ("ln_f_bias", (self.WIDTH,))):
            self.register_buffer(name, torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02)
        self.ln_f += 1
        self.register_buffer("slots", torch.arange(slots, device="cuda"))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64, device="cuda"))
        self.register_buffer("token", torch.zeros(1, 1, dtype=torch.int64, device="cuda"))
        self.register_buffer("written", torch.zeros(slots + 1, dtype=torch.int64, device="cuda"))

    def weight_bytes(self):
        """What one token reads of the weights: all but the table of positions, of which it reads a row."""
        caches = (".keys", ".values")
        weights = [b for name, b in self.named_buffers() if b.is_floating_point() and not name.endswith(caches)]
        return sum(b.numel() * b.element_size() for b in weights) - (self.POSITIONS - 1) * self.WIDTH * 2

    def cache_bytes(self, positions):
        return 2 * self.LAYERS * positions * self.WIDTH * 2

    def linear(self, x, weight, bias):
        # Inductor makes a product with one row a kernel of its own only where no bias is added by the same operation.
        return F.linear(x, weight) + bias if self.bias_apart else F.linear(x, weight, bias)

    def norm(self, x, weight, bias):
        return F.layer_norm(x, (self.WIDTH,), weight, bias, 1e-5)

    def attend(self, q, k, v, mask):
        if not self.plain_attention:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        scores = (q @ k.transpose(-1, -2)) * (1 / math.sqrt(self.WIDTH // self.HEADS))
        return torch.softmax(scores.float().masked_fill(~mask, -math.inf), dim=-1).to(v.dtype) @ v

    def run(self, ids, at, attend):
        """The hidden states [1, length, width] of ids at the positions `at`; fills the cache there."""
        length = ids.shape[1]
        x = F.embedding(ids, self.wte) + F.embedding(at, self.wpe)
        for layer in self.layers:
            h = self.linear(self.norm(x, layer.ln_1, layer.ln_1_bias), layer.qkv, layer.qkv_bias)
            q, k, v = (part.view(1, length, self.HEADS, -1).transpose(1, 2) for part in h.split(self.WIDTH, dim=-1))
            layer.keys.index_copy_(2, at, k)
            layer.values.index_copy_(2, at, v)
            y = attend(q, k, v, layer).transpose(1, 2).reshape(1, length, self.WIDTH)
            x = x + self.linear(y, layer.proj, layer.proj_bias)
            h = self.linear(self.norm(x, layer.ln_2, layer.ln_2_bias), layer.up, layer.up_bias)
            x = x + self.linear(F.gelu(h, approximate="tanh"), layer.down, layer.down_bias)
        return x

    def pick(self, x):
        """The likeliest next token [1, 1] after the last of the hidden states."""
        x = self.norm(x[:, -1:], self.ln_f, self.ln_f_bias)
        return F.linear(x, self.wte).argmax(dim=-1)

    def prefill(self, prompt):
        at = torch.arange(prompt.shape[1], device="cuda")
        x = self.run(prompt, at, lambda q, k, v, layer: F.scaled_dot_product_attention(q, k, v, is_causal=True))
        self.begin(self.pick(x), prompt.shape[1])

    def begin(self, token, position):
        self.token.copy_(token)
        self.position.fill_(position)
        self.written.zero_()

    def step(self):
        mask = (self.slots <= self.position).view(1, 1, 1, -1)
        x = self.run(self.token, self.position, lambda q, k, v, layer: self.attend(q, layer.keys, layer.values, mask))
        token = self.pick(x)
        self.written.index_copy_(0, self.position, token.view(1))
        self.token.copy_(token)
        self.position.add_(1)


def tokens_per_second(step, reset, count):
    """The median over runs of `count` steps, by the clock of the host, which a user of the model waits by."""
    seconds = []
    for _ in range(7):
        reset()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    # The first runs have what is done once.
    return count / statistics.median(seconds[2:])


def decode(mode, graph, plain):
    """One way to decode: `mode` of torch.compile or none, in a CUDA graph of our own or not, attention as named."""
    prompt_length, count = ARGS.prompt, ARGS.generate
    model = Decoder(prompt_length + count)
    prompt = torch.randint(0, model.VOCABULARY, (1, prompt_length), device="cuda")
    model.prefill(prompt)
    first = model.token.clone()

    def reset():
        model.begin(first, prompt_length)

    for _ in range(count):
        model.step()
    want = model.written.clone()
    reset()
    began = time.perf_counter()
    model.plain_attention = plain
    step, settings = model.step, contextlib.nullcontext()
    if mode is not None:
        model.bias_apart = True
        step = torch.compile(model.step, mode=mode, fullgraph=True)
        # Makes products with one row reductions, and searches the shapes of reductions.
        settings = torch._inductor.config.patch(coordinate_descent_tuning=True)
    with settings:
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        ready = time.perf_counter() - began
        run = step
        if graph:
            recorded, _ = captured(step, reset)
            run = recorded.replay
        rate = tokens_per_second(run, reset, count)
    same = (model.written == want)[prompt_length : prompt_length + count].int()
    return {
        "tokens_per_second": rate,
        "step_ms": statistics.median(step_times(run, reset, count)),
        # Rounding may turn one choice, after which the texts differ: this tells a broken step from a working one.
        "tokens_as_eager": int(same.cumprod(0).sum()),
        "tokens": count,
        "prepared_seconds": ready,
    }


def step_times(run, reset, count):
    """Milliseconds of each step, between events on the device."""
    reset()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    events[0].record()
    for event in events[1:]:
        run()
        event.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in zip(events, events[1:])]


def prefill():
    model = Decoder(ARGS.prompt + ARGS.generate)
    prompt = torch.randint(0, model.VOCABULARY, (1, ARGS.prompt), device="cuda")
    graph, _ = captured(lambda: model.prefill(prompt))
    return {
        "tokens": ARGS.prompt,
        "eager_ms": statistics.median(times(lambda: model.prefill(prompt), 50)),
        "graph_ms": statistics.median(times(graph.replay, 200)),
    }


def bandwidth():
    """Bytes per second that a copy of 4 GiB reads and writes."""
    source = torch.empty(1 << 32, dtype=torch.uint8, device="cuda").zero_()
    target = torch.empty_like(source)
    ms = statistics.median(times(lambda: target.copy_(source), 50))
    return 2 * source.numel() / (ms / 1e3)


def copy():
    rate = bandwidth()
    model = Decoder(8)
    # The mean over the steps: each reads what is before it and itself.
    positions = ARGS.prompt + (ARGS.generate + 1) / 2
    read = model.weight_bytes() + model.cache_bytes(positions)
    return {
        "copy_bytes_per_second": rate,
        "weight_bytes_per_token": model.weight_bytes(),
        "cache_bytes_per_token": model.cache_bytes(positions),
        "roofline_tokens_per_second": rate / read,
        "roofline_step_ms": read / rate * 1e3,
    }


def main():
    if not torch.cuda.is_available():
        sys.exit("peers.py: PyTorch sees no CUDA device here")
    torch.set_grad_enabled(False)
    RESULTS["device"] = {"name": torch.cuda.get_device_name(), "torch": torch.__version__}
    print(json.dumps(RESULTS["device"]), flush=True)
    leg("copy", copy)
    leg("article_torch", lambda: article(None))
    leg("article_compile", lambda: article("max-autotune-no-cudagraphs"))
    leg("prefill", prefill)
    leg("decode_eager", lambda: decode(None, graph=False, plain=False))
    leg("decode_eager_graph_sdpa", lambda: decode(None, graph=True, plain=False))
    leg("decode_eager_graph_plain", lambda: decode(None, graph=True, plain=True))
    leg("decode_compile_graph_plain", lambda: decode("max-autotune-no-cudagraphs", graph=True, plain=True))
    leg("decode_compile_graph_sdpa", lambda: decode("max-autotune-no-cudagraphs", graph=True, plain=False))
    # The last, for its pool of graphs stays with PyTorch.
    leg("decode_compile_reduce_overhead", lambda: decode("reduce-overhead", graph=False, plain=True))
    if ARGS.out:
        with open(ARGS.out, "w") as file:
            file.write(json.dumps(RESULTS, indent=1) + "\n")


if __name__ == "__main__":
    main()
