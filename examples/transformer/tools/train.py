#!/usr/bin/env python3
"""Trains the tiny model on the ids that corpus.py wrote, on one GPU, with PyTorch and NumPy alone.

    python3 train.py [--data FOLDER] [--out FOLDER] [--steps N] [--seconds S] [--compile]

Owns the recipe. May assume one CUDA device and the two .npy files of corpus.py. Guarantees to stop and save within
about `--seconds`, at the end of the learning rate's schedule: a schedule that will not fit is shortened. The same
device and versions follow the same path as long as the steps fit in the time, but for sums whose order CUDA leaves
open.

Writes two models in the layout of GPT-2, in f16: OUT/best, which had the lowest loss on the text held out, and
OUT/last. The text is so small that the model learns it by heart before the last step: `best` is the better model of
unseen text, `last` the one that writes more legibly. Writes samples of both, as ids, to OUT/samples.json, which
`corpus.py --decode` turns into text.
"""

import argparse
import json
import math
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import layout

HERE = pathlib.Path(__file__).resolve().parent.parent
SHAPE = layout.Shape(vocab_size=2048, n_positions=256, n_embd=192, n_layer=6, n_head=6)
END_OF_TEXT = 0
SEED = 1

# Steps between two looks at the losses, and between two looks at the clock. The device runs ahead of the host between
# looks, so that the first number bounds what a look costs and the second how late the end may be noticed.
EVALUATE_EVERY = 100
CLOCK_EVERY = 20


class Linear(nn.Module):
    """A linear layer whose weight is [in, out], as GPT-2 stores it."""

    def __init__(self, inputs, outputs, std):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * std)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return F.linear(x, self.weight.t(), self.bias)


class Attention(nn.Module):
    def __init__(self, shape, dropout):
        super().__init__()
        self.heads, self.dropout = shape.n_head, dropout
        self.c_attn = Linear(shape.n_embd, 3 * shape.n_embd, 0.02)
        self.c_proj = Linear(shape.n_embd, shape.n_embd, 0.02 / math.sqrt(2 * shape.n_layer))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, width))


class Mlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.c_fc = Linear(shape.n_embd, 4 * shape.n_embd, 0.02)
        self.c_proj = Linear(4 * shape.n_embd, shape.n_embd, 0.02 / math.sqrt(2 * shape.n_layer))

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, shape, dropout):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(shape.n_embd), Attention(shape, dropout)
        self.ln_2, self.mlp = nn.LayerNorm(shape.n_embd), Mlp(shape)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.drop(self.attn(self.ln_1(x)))
        return x + self.drop(self.mlp(self.ln_2(x)))


class Gpt2(nn.Module):
    """The names of the parameters are those of `layout.Shape.tensors`."""

    def __init__(self, shape, dropout):
        super().__init__()
        self.wte = nn.Embedding(shape.vocab_size, shape.n_embd)
        self.wpe = nn.Embedding(shape.n_positions, shape.n_embd)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList(Block(shape, dropout) for _ in range(shape.n_layer))
        self.ln_f = nn.LayerNorm(shape.n_embd)

    def forward(self, ids, targets=None):
        """The logits, or with targets the mean loss."""
        positions = torch.arange(ids.shape[1], device=ids.device)
        x = self.drop(self.wte(ids) + self.wpe(positions))
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        if targets is None:
            return logits
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def parse():
    parser = argparse.ArgumentParser(description="Trains the tiny model.")
    parser.add_argument("--data", type=pathlib.Path, default=HERE / "build", help="where train.npy, validation.npy lie")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "build" / "model")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=160, help="the time the training may take")
    parser.add_argument("--batch", type=int, default=64, help="sequences of a step")
    parser.add_argument("--rate", type=float, default=1e-3, help="the learning rate after the warm-up")
    parser.add_argument("--warm-up", type=int, default=100, help="steps over which the learning rate rises")
    parser.add_argument("--decay", type=float, default=0.1, help="weight decay of the matrices")
    parser.add_argument("--dropout", type=float, default=0.15)
    parser.add_argument("--compile", action="store_true", help="train through torch.compile")
    return parser.parse_args()


def cast():
    return torch.autocast("cuda", dtype=torch.bfloat16)


def load(path):
    ids = torch.from_numpy(np.load(path).astype(np.int64)).cuda()
    assert int(ids.max()) < SHAPE.vocab_size, f"{path} has ids outside the vocabulary"
    return ids


def batch_of(data, size, generator):
    """Sequences from random places, each with its successor tokens."""
    starts = torch.randint(0, len(data) - SHAPE.n_positions, (size, 1), device="cuda", generator=generator)
    tokens = data[starts + torch.arange(SHAPE.n_positions + 1, device="cuda")]
    return tokens[:, :-1], tokens[:, 1:]


@torch.no_grad()
def loss_of(model, data):
    """The loss over all of `data`, in windows that do not overlap; what is left after the last of them is not seen."""
    model.eval()
    count = (len(data) - 1) // SHAPE.n_positions
    inputs = data[: count * SHAPE.n_positions].view(count, -1)
    targets = data[1 : count * SHAPE.n_positions + 1].view(count, -1)
    with cast():
        loss = model(inputs, targets).item()
    model.train()
    return loss


@torch.no_grad()
def continue_text(model, prompt, count, generator, temperature=0.7, top=40):
    """`count` tokens after a prompt, drawn from the `top` likeliest."""
    model.eval()
    ids = prompt.view(1, -1)
    for _ in range(count):
        with cast():
            logits = model(ids[:, -SHAPE.n_positions :])[0, -1].float()
        values, places = torch.topk(logits / temperature, top)
        drawn = torch.multinomial(torch.softmax(values, 0), 1, generator=generator)
        ids = torch.cat([ids, places[drawn].view(1, 1)], dim=1)
    return ids[0].tolist()


def rate_at(step, steps, args):
    """A linear rise, then a cosine down to a tenth."""
    if step < args.warm_up:
        return args.rate * (step + 1) / args.warm_up
    done = min(1.0, (step - args.warm_up) / max(1, steps - args.warm_up))
    return args.rate * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))


def copy_of(model):
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def optimizer_of(model, args):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": args.decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=args.rate, betas=(0.9, 0.95), fused=True)


def steps_that_fit(step, marks, args, began):
    """How many steps the time allows, as the last ones went; never more than asked for.

    `marks` has the step and time of each look at the clock. What came before the first look is no measure, since it
    has what is done once: compiling, and loading kernels.
    """
    torch.cuda.synchronize()
    now = time.monotonic()
    marks.append((step, now))
    left = args.seconds - (now - began)
    if left <= 0:
        return step
    if len(marks) < 2:
        return args.steps
    first, then = marks[0]
    each = (now - then) / (step - first)
    return min(args.steps, step + max(1, int(left / each)))


def fit(model, args, data, held_out):
    """Trains, and gives the parameters that did best on the text held out."""
    began = time.monotonic()
    generator = torch.Generator("cuda").manual_seed(SEED)
    optimizer = optimizer_of(model, args)
    run = torch.compile(model) if args.compile else model
    best, lowest, recent, marks, step, steps = copy_of(model), math.inf, [], [], 0, args.steps
    model.train()
    while step < steps:
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, steps, args)
        inputs, targets = batch_of(data, args.batch, generator)
        with cast():
            loss = run(inputs, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        recent.append(loss.detach())
        step += 1
        if step % CLOCK_EVERY == 0:
            steps = steps_that_fit(step, marks, args, began)
        if step % EVALUATE_EVERY == 0 or step >= steps:
            # The model itself and not its compiled form, which would be compiled once more for this shape.
            validation = loss_of(model, held_out)
            training, recent = torch.stack(recent).mean().item(), []
            seconds = time.monotonic() - began
            losses = f"train {training:.3f}  validation {validation:.3f}"
            print(f"step {step}/{steps}  {losses}  {seconds:.0f} s", flush=True)
            if validation < lowest:
                lowest, best = validation, copy_of(model)
    print(f"lowest validation loss {lowest:.3f}")
    return best


def main():
    args = parse()
    torch.manual_seed(SEED)
    data, held_out = load(args.data / "train.npy"), load(args.data / "validation.npy")
    model = Gpt2(SHAPE, args.dropout).cuda()
    names = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    assert names == SHAPE.tensors(), "the parameters are not those of the layout"
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(data)} tokens, {len(held_out)} held out")
    best = fit(model, args, data, held_out)
    samples = []
    for kind, parameters in {"best": best, "last": copy_of(model)}.items():
        arrays = {name: value.float().cpu().numpy() for name, value in parameters.items()}
        layout.write_model(args.out / kind, SHAPE, arrays, "f16", END_OF_TEXT)
        model.load_state_dict(parameters)
        generator = torch.Generator("cuda").manual_seed(SEED)
        for prompt in (data[:1], held_out[:17]):
            ids = continue_text(model, prompt, 200, generator)
            samples.append({"model": kind, "prompt": len(prompt), "ids": ids})
    args.out.joinpath("samples.json").write_text(json.dumps(samples) + "\n")
    for sample in samples:
        print(json.dumps(sample))


if __name__ == "__main__":
    main()
