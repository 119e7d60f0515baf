"""GPT-2 in NumPy float64: what the model means, written for reading.

Owns the forward pass that others are measured against, and checkpoints of random weights. Assumes the names and shapes
of `layout.Shape`. Guarantees that every operation is in float64, whatever the weights are stored as, and that a seed
always makes the same weights.
"""

import math

import numpy as np

SHAPES = {
    # vocabulary, positions, width, layers, heads
    "gpt2-small": (50257, 1024, 768, 12, 12),
    "tiny": (2048, 256, 192, 6, 6),
    # Sizes that divide by little, for kernels that must mask: a head has 20 elements.
    "odd": (101, 37, 60, 2, 3),
}


def wide(x):
    return np.asarray(x, dtype=np.float64)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def layer_norm(x, weight, bias, eps):
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered**2).mean(axis=-1, keepdims=True)
    return centered / np.sqrt(variance + eps) * wide(weight) + wide(bias)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def split_heads(x, heads):
    """[.., length, width] as [.., heads, length, width / heads]."""
    return x.reshape(*x.shape[:-1], heads, -1).swapaxes(-2, -3)


def join_heads(x):
    x = x.swapaxes(-2, -3)
    return x.reshape(*x.shape[:-2], -1)


def attention(q, k, v, causal):
    """Over the last two dimensions, [length, head width]."""
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        # The token in row i sees those in columns up to i.
        scores = np.where(np.tri(q.shape[-2], dtype=bool), scores, -np.inf)
    return softmax(scores) @ v


def forward(shape, weights, ids, eps):
    """The logits [length, vocabulary] of a text that begins at position 0."""

    def linear(x, name):
        return x @ wide(weights[name + ".weight"]) + wide(weights[name + ".bias"])

    def norm(x, name):
        return layer_norm(x, weights[name + ".weight"], weights[name + ".bias"], eps)

    x = wide(weights["wte.weight"][ids]) + wide(weights["wpe.weight"][: len(ids)])
    for i in range(shape.n_layer):
        at = f"h.{i}."
        qkv = linear(norm(x, at + "ln_1"), at + "attn.c_attn")
        q, k, v = (split_heads(part, shape.n_head) for part in np.split(qkv, 3, axis=-1))
        x = x + linear(join_heads(attention(q, k, v, causal=True)), at + "attn.c_proj")
        x = x + linear(gelu_tanh(linear(norm(x, at + "ln_2"), at + "mlp.c_fc")), at + "mlp.c_proj")
    return norm(x, "ln_f") @ wide(weights["wte.weight"]).T


def random_weights(shape, seed):
    """Normal weights of deviation 0.02 as GPT-2 begins with; biases and the norms' weights are not left at 0 and 1.

    A kernel that forgets a bias would otherwise be right.
    """
    generator = np.random.default_rng(seed)
    weights = {}
    for name, size in shape.tensors().items():
        values = generator.standard_normal(size, dtype=np.float32) * np.float32(0.02)
        norm = name.split(".")[-2].startswith("ln_")
        weights[name] = values + np.float32(1) if norm and name.endswith("weight") else values
    return weights
