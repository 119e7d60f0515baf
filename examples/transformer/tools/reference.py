#!/usr/bin/env python3
"""Logits of a GPT-2 for a given text, to compare others with; and checkpoints of random weights.

    python3 reference.py MODEL (--ids FILE.npy | --prompt-ids 5,17,3 | --random-ids N) [--tokens N]
            [--numpy | --dtype f32 --device cuda] -o OUT.safetensors
    python3 reference.py MODEL --random SHAPE [--store f16] [--shards N] [--seed S] ..

The forward pass is written from the architecture, once in NumPy float64 (gpt2.py, which needs no PyTorch) and once in
PyTorch for the other types and for the GPU. Text begins at position 0 and every token is given, none generated.

Owns the file OUT: `ids` (I32 [N]) and `logits` (F32 [N, vocabulary]), where logits[i] are those of the token after
ids[i]. Assumes a folder in the layout of GPT-2, which --random makes first. Guarantees that float32 is not computed
in TF32, and that softmax and layer norms of the 16-bit types are computed in float32.
"""

import argparse
import pathlib
import sys

import numpy as np

import gpt2
import layout

DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}


def parse():
    parser = argparse.ArgumentParser(description="Writes the logits of a GPT-2 for a given text.")
    parser.add_argument("model", type=pathlib.Path, help="the folder with config.json and model.safetensors")
    text = parser.add_mutually_exclusive_group()
    text.add_argument("--ids", type=pathlib.Path, help="a .npy of token ids, one-dimensional")
    text.add_argument("--prompt-ids", help="token ids, separated by commas")
    text.add_argument("--random-ids", type=int, metavar="N", help="as many random token ids, by --seed")
    parser.add_argument("--tokens", type=int, help="use only the first so many ids")
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--numpy", action="store_true", help="compute in NumPy float64, without PyTorch")
    parser.add_argument("-o", "--out", type=pathlib.Path)
    parser.add_argument("--random", metavar="SHAPE", help=f"make the model first: {', '.join(gpt2.SHAPES)}, or "
                        "VOCABULARY,POSITIONS,WIDTH,LAYERS,HEADS")
    parser.add_argument("--store", choices=layout.STORED, default="f16", help="the type of the random weights' file")
    parser.add_argument("--shards", type=int, default=1, help="files the random weights are spread over")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    wanted = args.ids is not None or args.prompt_ids is not None or args.random_ids is not None
    if wanted != (args.out is not None):
        parser.error("token ids (--ids, --prompt-ids or --random-ids) and --out go together")
    if not wanted and args.random is None:
        parser.error("nothing to do: give token ids and --out, or --random to make a model")
    return args


def make_random(args):
    sizes = gpt2.SHAPES.get(args.random) or tuple(int(size) for size in args.random.split(","))
    shape = layout.Shape(*sizes)
    # GPT-2's end of text is the last token of its vocabulary.
    weights = gpt2.random_weights(shape, args.seed)
    layout.write_model(args.model, shape, weights, args.store, shape.vocab_size - 1, args.shards)


def ids_of(args, shape):
    if args.ids is not None:
        ids = np.load(args.ids).astype(np.int64)
    elif args.prompt_ids is not None:
        ids = np.array([int(part) for part in args.prompt_ids.split(",")], dtype=np.int64)
    else:
        ids = np.random.default_rng(args.seed).integers(0, shape.vocab_size, args.random_ids)
    ids = ids[: args.tokens]
    if ids.ndim != 1 or not 1 <= len(ids) <= shape.n_positions:
        takes = f"the model takes 1 to {shape.n_positions} ids in one dimension"
        sys.exit(f"reference.py: {takes}, not {ids.shape}; see --tokens")
    if ids.min() < 0 or ids.max() >= shape.vocab_size:
        sys.exit(f"reference.py: ids go from {ids.min()} to {ids.max()}, and the vocabulary has {shape.vocab_size}")
    return ids


def forward_torch(shape, arrays, ids, eps, dtype, device):
    """`gpt2.forward` in PyTorch, in the given type."""
    import torch
    import torch.nn.functional as F

    torch.set_float32_matmul_precision("highest")
    # Sums of the 16-bit types stay in float32, however the library would split them.
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    dtype = getattr(torch, DTYPES[dtype])
    # A copy, since the arrays of a file are read-only, which PyTorch warns of.
    weights = {name: torch.from_numpy(np.array(a)).to(device=device, dtype=dtype) for name, a in arrays.items()}
    ids = torch.from_numpy(np.array(ids)).to(device)
    length, width = len(ids), shape.n_embd
    seen = torch.ones(length, length, dtype=torch.bool, device=device).tril()

    def linear(x, name):
        return x @ weights[name + ".weight"] + weights[name + ".bias"]

    def norm(x, name):
        return F.layer_norm(x, (width,), weights[name + ".weight"], weights[name + ".bias"], eps)

    def attention(x, name):
        parts = linear(x, name + ".c_attn").split(width, dim=-1)
        q, k, v = (part.view(length, shape.n_head, -1).transpose(0, 1) for part in parts)
        scores = q @ k.transpose(-1, -2) * (width // shape.n_head) ** -0.5
        # PyTorch computes a softmax of 16 bits in float32 and rounds its result.
        y = torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1) @ v
        return linear(y.transpose(0, 1).reshape(length, width), name + ".c_proj")

    with torch.no_grad():
        x = weights["wte.weight"][ids] + weights["wpe.weight"][:length]
        for i in range(shape.n_layer):
            at = f"h.{i}."
            x = x + attention(norm(x, at + "ln_1"), at + "attn")
            hidden = F.gelu(linear(norm(x, at + "ln_2"), at + "mlp.c_fc"), approximate="tanh")
            x = x + linear(hidden, at + "mlp.c_proj")
        logits = norm(x, "ln_f") @ weights["wte.weight"].T
    return logits.float().cpu().numpy()


def main():
    args = parse()
    if args.random is not None:
        make_random(args)
    if args.out is None:
        return
    shape, weights, config = layout.read_model(args.model)
    ids = ids_of(args, shape)
    eps = config["layer_norm_epsilon"]
    if args.numpy:
        logits = gpt2.forward(shape, weights, ids, eps)
    else:
        logits = forward_torch(shape, weights, ids, eps, args.dtype, args.device)
    by = "numpy f64" if args.numpy else f"torch {args.dtype} {args.device}"
    layout.write(args.out, {"ids": ids.astype(np.int32), "logits": logits.astype(np.float32)}, {"by": by})
    # Of the text as given: how likely each token was after those before it. A trained model shows here that it is read
    # rightly, a random one has the logarithm of its vocabulary.
    if len(ids) > 1:
        wide = logits[:-1].astype(np.float64)
        top = wide.max(axis=-1)
        chosen = wide[np.arange(len(ids) - 1), ids[1:]]
        loss = (top + np.log(np.exp(wide - top[:, None]).sum(axis=-1)) - chosen).mean()
        print(f"{len(ids)} tokens by {by}: mean loss {loss:.4f}")


if __name__ == "__main__":
    main()
