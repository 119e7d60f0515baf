"""Kernels in programs of JAX, on the CPU."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp

import tk
import tk.jax

INCREASE = """
kernel increase(x: mut view[f32, 1], by: f32) grid(cdiv(x.shape[0], 256)) {
    let at = program_id(0) * 256;
    x.store([at], x.load([at], [256]) + by);
}
kernel both(x: view[f32, 1], y: mut view[f32, 1], z: mut view[f32, 1]) grid(cdiv(x.shape[0], 256)) {
    let at = program_id(0) * 256;
    let v = x.load([at], [256]);
    y.store([at], v * 2.0);
    z.store([at], v * 3.0);
}
"""


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_a_call_is_a_function_of_arrays(examples, dtype):
    softmax = tk.jax.call(tk.load(examples / "softmax.tk").softmax, {"y": "x"})
    x = jax.random.normal(jax.random.key(0), (8, 100), dtype=dtype)
    for f in (softmax, jax.jit(softmax), jax.jit(lambda x: softmax(x=x))):
        np.testing.assert_allclose(
            np.asarray(f(x), np.float64), np.asarray(jax.nn.softmax(x.astype(jnp.float32)), np.float64), atol=4e-3
        )


def test_what_is_changed_in_place_is_a_result():
    m = tk.loads(INCREASE)
    increase = tk.jax.call(m.increase, {})
    z = jnp.zeros(1000)
    assert increase(z, 2.5)[999] == 2.5 and z[0] == 0
    assert jax.jit(lambda z: increase(increase(z, 1.0), by=2.0))(z)[0] == 3
    y, w = tk.jax.call(m.both, {"y": "x", "z": lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype)})(jnp.ones(300))
    assert y[299] == 2 and w[299] == 3


def test_wrong_calls_are_refused(examples):
    m = tk.loads(INCREASE)
    increase = tk.jax.call(m.increase, {})
    z = jnp.zeros(10)
    with pytest.raises(TypeError, match="static_argnames"):
        jax.jit(increase)(z, 1.0)
    with pytest.raises(ValueError, match="never changes"):
        m.increase(z, 1.0)
    with pytest.raises(ValueError, match="does not write `x`"):
        tk.jax.call(m.both, {"x": "y"})
    with pytest.raises(ValueError, match="no parameter `q`"):
        tk.jax.call(m.both, {"q": "x"})
    with pytest.raises(TypeError, match="takes no `q`"):
        increase(z, q=1)
    softmax = tk.load(examples / "softmax.tk").softmax
    with pytest.raises(Exception, match="requires `x.shape == y.shape`"):
        tk.jax.call(softmax, {"y": jax.ShapeDtypeStruct((3, 3), jnp.float32)})(jnp.zeros((4, 4)))
