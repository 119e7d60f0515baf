"""Operators of PyTorch, on the CPU; `on_gpu.py` has launches on GPUs."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tk
import tk.torch

ADD = """
kernel add(x: view[f32, 1], y: mut view[f32, 1], s: f32) grid(1) {
    y.store([0], y.load([0], [64]) + s * x.load([0], [64]));
}
"""


def softmax_of(examples, name):
    return tk.torch.op(
        name,
        tk.load(examples / "softmax.tk").softmax,
        out={"y": "x"},
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output),
        backward=lambda ctx, g: (lambda y: y * (g - (g * y).sum(-1, keepdim=True)))(*ctx.saved_tensors),
    )


def test_an_operator_is_checked_by_pytorch(examples):
    softmax = softmax_of(examples, "tk_tests::softmax")
    x = torch.randn(8, 100, requires_grad=True)
    torch.testing.assert_close(softmax(x), torch.softmax(x, -1))
    assert set(torch.library.opcheck(softmax, (x,)).values()) == {"SUCCESS"}
    assert torch.autograd.gradcheck(softmax, (torch.randn(2, 5, dtype=torch.float64, requires_grad=True),))
    compiled = torch.compile(lambda x: softmax(x * 2) + 1, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), torch.softmax(2 * x, -1) + 1)
    # A cell of a notebook that runs twice.
    again = softmax_of(examples, "tk_tests::softmax")
    torch.testing.assert_close(again(x), torch.softmax(x, -1))


def test_what_is_written_is_told_to_autograd():
    add = tk.torch.op("tk_tests::add", tk.loads(ADD).add)
    x, y, w = torch.ones(64), torch.ones(64), torch.ones(64, requires_grad=True)
    loss = (w * y).sum()
    add(x, y, 2.0)
    assert y[0] == 3
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_tensors_that_have_no_values_are_refused(examples):
    k = tk.load(examples / "softmax.tk").softmax
    x, y = torch.randn(3, 5), torch.zeros(3, 5)
    freed = torch.zeros(3, 5)
    freed.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="no memory"):
        k(freed, y)
    with pytest.raises(ValueError, match="meta"):
        k(x.to("meta"), y)
    with pytest.raises(ValueError, match="argument `x`"):
        k(x.to_sparse(), y)
    with pytest.raises(ValueError, match="resolve_neg"):
        k(torch.randn(3, 5, dtype=torch.complex64).conj().imag, y)
    with pytest.raises(ValueError, match="requires a gradient"):
        k(x.requires_grad_(), y)
    with torch.no_grad():
        k(x, y)
    k(x.detach().T.contiguous().T, y)
    torch.testing.assert_close(y, torch.softmax(x.detach(), -1))


def test_wrong_registrations_are_refused(examples):
    m = tk.load(examples / "softmax.tk")
    op = tk.torch.op
    for call, error, text in [
        (lambda: op("no_colons", m.softmax), ValueError, "library::operator"),
        (lambda: op("aten::softmax", m.softmax, out={"y": "x"}), ValueError, "PyTorch's own"),
        (lambda: op("tk_tests::a", m, out={"y": "x"}), TypeError, "takes a kernel"),
        (lambda: op("tk_tests::b", m.softmax, out=["y"]), TypeError, "is a dict"),
        (lambda: op("tk_tests::c", m.softmax, out={"x": "y"}), ValueError, "does not write `x`"),
        (lambda: op("tk_tests::d", m.softmax, out={"q": "x"}), ValueError, "no parameter `q`"),
        (lambda: op("tk_tests::e", m.softmax, out={"y": "q"}), ValueError, "no argument"),
        (lambda: op("tk_tests::f", m.softmax, out={"y": lambda q: q}), ValueError, "names `q`"),
        (lambda: op("tk_tests::g", m.softmax, backward=3), TypeError, "is a function"),
        (lambda: op("tk_tests::h", m.softmax, backward=print), ValueError, "in place"),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_results_by_a_function(examples):
    kernel = tk.load(examples / "softmax.tk").softmax
    softmax = tk.torch.op("tk_tests::made", kernel, out={"y": lambda x: x.new_empty(x.shape)})
    x = torch.randn(4, 7)
    np.testing.assert_allclose(softmax(x).numpy(), torch.softmax(x, -1).numpy(), atol=1e-6)


def test_attention_has_gradients():
    forward, gradients = tk.load("std::nn::attention"), tk.load("std::nn::attention_backward")

    def backward(ctx, grad_out, _):
        q, k, v, out, lse = ctx.saved_tensors
        dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
        rows = lse.new_empty(*lse.shape[:2], 2, lse.shape[2])
        sums = torch.empty_like(q, dtype=torch.float32)
        gradients.attention_backward_rows(out, grad_out, lse, rows, ctx.scale, sums)
        gradients.attention_backward(grad_out, q, k, v, rows, dk, dv, ctx.scale, sums)
        gradients.attention_backward_sums(sums, dq, ctx.scale)
        return dq, dk, dv, None, None

    def setup_context(ctx, inputs, output):
        q, k, v, ctx.scale = inputs[:4]
        ctx.save_for_backward(q, k, v, *output)

    attention = tk.torch.op(
        "tk_tests::attention",
        forward.scaled_dot_product_attention,
        out={
            "out": lambda query, value: value.new_empty(*query.shape[:3], value.shape[3]),
            "lse": lambda query: query.new_empty(query.shape[:3], dtype=torch.float32),
        },
        setup_context=setup_context,
        backward=backward,
    )
    x = [torch.randn(2, heads, 30, 16, requires_grad=True) for heads in (4, 2, 2)]
    out, _ = attention(*x, 0.25, None)
    g = torch.randn_like(out)
    out.backward(g)
    y = [t.detach().double().requires_grad_() for t in x]
    k, v = (t.repeat_interleave(2, 1) for t in y[1:])
    exact = torch.nn.functional.scaled_dot_product_attention(y[0], k, v, is_causal=True, scale=0.25)
    exact.backward(g.double())
    torch.testing.assert_close(out.double(), exact, rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(x, y):
        torch.testing.assert_close(ours.grad.double(), theirs.grad, rtol=1e-4, atol=1e-5)
