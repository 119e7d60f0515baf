"""Launches on arrays of NumPy: values against NumPy, and every kind of argument that is refused."""

import copy
import gc
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
import weakref

import ml_dtypes
import numpy as np
import pytest

import tk

ADD = """
/// z = x + a * y.
kernel axpy[T: float, BLOCK: i32 = 256](x: view[T, 1], y: view[T, 1], z: mut view[T, 1], a: f32 = 1.0)
    grid(cdiv(z.shape[0], BLOCK))
    require(x.shape == z.shape, y.shape == z.shape)
{
    let at = program_id(0) * BLOCK;
    let sum = x.load([at], [BLOCK]) as f32 + a * y.load([at], [BLOCK]) as f32;
    z.store([at], sum as T);
}
"""

COUNT = """
kernel fill(x: mut view[i32, 1], n: i32) grid(1) { x.store([0], full([64], n, i32)); }
kernel scale(x: view[f32, 2], y: mut view[f32, 2], b: view[f32, 1]?) grid(1) {
    let s = x.load([0, 0], [8, 8]);
    y.store([0, 0], s * 2.0);
}
"""


@pytest.fixture(scope="module")
def add():
    return tk.loads(ADD)


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True).astype(np.float64))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 100), (7, 257)])
def test_softmax_is_that_of_numpy(examples, dtype, shape):
    dtype = np.dtype(getattr(ml_dtypes, dtype) if dtype == "bfloat16" else dtype)
    m = tk.load(examples / "softmax.tk")
    x = np.random.default_rng(1).normal(size=shape).astype(dtype)
    y = np.zeros_like(x)
    assert m.softmax(x, y) is None
    tolerance = {1: 1e-2, 2: 1e-3}.get(2 if dtype == np.float16 else 1 if dtype.itemsize == 2 else 0, 1e-6)
    np.testing.assert_allclose(y.astype(np.float64), softmax(x), atol=tolerance)


def test_strides_are_followed(examples):
    m = tk.load(examples / "softmax.tk")
    x = np.random.default_rng(2).normal(size=(20, 12)).astype(np.float32)
    for view in [x[::2, 1::3], x.T, x[::-1], np.asfortranarray(x), np.broadcast_to(x[0], (5, 12))]:
        y = np.zeros((view.shape[1], view.shape[0]), np.float32).T
        m.softmax(view, y)
        np.testing.assert_allclose(y, softmax(view), atol=1e-6)


def test_arrays_that_share_memory_share_it_in_the_kernel(add):
    x = np.arange(100, dtype=np.float32)
    add.axpy(x, x, x)
    np.testing.assert_array_equal(x, 2 * np.arange(100))
    both = np.arange(200, dtype=np.float32)
    add.axpy(both[:150], both[:150], both[:150], 0.0)
    np.testing.assert_array_equal(both, np.arange(200))


def test_numbers_defaults_and_names(add):
    x, y, z = (np.full(300, v, np.float32) for v in (1, 2, 0))
    add.axpy(x, y, z)
    assert z[299] == 3
    add.axpy(x, y, z, 2)
    assert z[0] == 5
    add.axpy(x, y, z=z, a=np.float64(0.5))
    assert z[0] == 2
    add.axpy(x, y, z, a=3.0, BLOCK=64)
    assert z[299] == 7
    small = add.axpy[{"BLOCK": 32}]
    small(x, y, z, 4.0)
    assert z[299] == 9 and "BLOCK=32" in repr(small)
    add.axpy[dict(T=np.float32)](x, y, z)
    assert z[5] == 3


def test_empty_arrays_and_extremes(add):
    empty = np.zeros(0, np.float32)
    add.axpy(empty, empty, empty)
    x = np.array([np.nan, np.inf, -np.inf, np.finfo(np.float32).max], np.float32)
    z = np.zeros_like(x)
    add.axpy(x, x, z)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(z, x + x)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda k, x: k(x, x), tk.LaunchError, "`z`"),
        (lambda k, x: k(x, x, x, 1.0, 2), TypeError, "takes 4 arguments, and 5"),
        (lambda k, x: k(x, x, np.zeros(9, np.float32)), tk.LaunchError, "requires"),
        (lambda k, x: k(x, x, np.zeros((2, 50), np.float32)), tk.LaunchError, "z"),
        (lambda k, x: k(x, x, x.astype(np.float16)), tk.LaunchError, "T"),
        (lambda k, x: k(x, x, x.astype(np.complex64)), TypeError, "complex64"),
        (lambda k, x: k(x, x, x.astype(">f4")), TypeError, "byte order"),
        (lambda k, x: k(x, x, [1.0, 2.0]), TypeError, "__dlpack__"),
        (lambda k, x: k(x, x, x, "1"), TypeError, "number"),
        (lambda k, x: k(x, x, x, b=1), TypeError, "no parameter `b`"),
        (lambda k, x: k(x, x, x, z=x), TypeError, "twice"),
        (lambda k, x: k(x, x, x, BLOCK=0.5), tk.LaunchError, "BLOCK"),
        (lambda k, x: k(x, x, x, BLOCK=object()), TypeError, "BLOCK"),
        (lambda k, x: k(x, x, x, T=str), TypeError, "T"),
        (lambda k, x: k[{"C": 1}], TypeError, "no parameter `C`"),
        (lambda k, x: k[3], TypeError, "dict"),
    ],
)
def test_wrong_arguments_are_refused_by_name(add, call, error, text):
    with pytest.raises(error, match=text):
        call(add.axpy, np.zeros(100, np.float32))


def test_read_only_memory_is_not_written(add):
    x = np.zeros(10, np.float32)
    x.flags.writeable = False
    with pytest.raises(tk.LaunchError, match="`z` is read-only"):
        add.axpy(x, x, x)
    z = np.zeros(10, np.float32)
    add.axpy(x, x, z)


def test_integers_have_to_fit():
    with pytest.warns(tk.CompileWarning, match="never used"):
        m = tk.loads(COUNT)
    x = np.zeros(64, np.int32)
    m.fill(x, 7)
    assert (x == 7).all()
    m.fill(x, np.int64(-3))
    assert (x == -3).all()
    for wrong, error in [(1 << 31, tk.LaunchError), (1 << 70, OverflowError), (1.5, tk.LaunchError)]:
        with pytest.raises(error):
            m.fill(x, wrong)
    y = np.ones((8, 8), np.float32)
    m.scale(y, y)
    m.scale(y, y, None)
    assert y[0, 0] == 4


def test_a_wrong_source_shows_its_place():
    with pytest.raises(tk.CompileError) as caught:
        tk.loads("kernel f(x: view[f32, 1]) grid(1) {\n    let a = b;\n}")
    (diagnostic,) = caught.value.diagnostics
    assert caught.value.code == "E0201" and (diagnostic.line, diagnostic.column) == (2, 13)
    assert "let a = b" in str(caught.value) and diagnostic.severity == "error"
    assert [d.code for d in tk.check(source="kernel f(")] and tk.check(source=ADD) == []
    with pytest.raises(tk.CompileError, match="cannot read"):
        tk.load("/no/such/file.tk")
    with pytest.raises(tk.Error, match="cannot read"):
        tk.load("/no/such/file.tkb")


def test_what_a_kernel_prints_goes_to_the_output_of_python(capsys):
    m = tk.loads('kernel say(x: view[f32, 1]) grid(1) { print("n =", x.shape[0]); }')
    m.say(np.zeros(3, np.float32))
    assert "n = 3" in capsys.readouterr().out


def test_an_assertion_that_fails_is_an_exception():
    m = tk.loads('kernel sure(x: view[f32, 1]) grid(1) { assert(x.shape[0] > 5, "too few"); }')
    m.sure(np.zeros(6, np.float32))
    with pytest.raises(tk.LaunchError, match="too few"):
        m.sure(np.zeros(3, np.float32))


def test_modules_say_what_they_have(add, examples):
    assert list(add) == ["axpy"] and len(add) == 1 and add["axpy"] is add.axpy and "axpy" in dir(add)
    with pytest.raises(AttributeError, match="its kernels: `axpy`"):
        add.axpi
    assert add.axpy.doc == "z = x + a * y." and add.axpy.name == "axpy"
    kinds = {p["name"]: (p["kind"], p["mutable"], p["optional"]) for p in add.axpy.parameters}
    assert kinds["z"] == ("tensor", True, False) and kinds["a"] == ("number", False, True)
    assert kinds["BLOCK"][0] == "compile-time"


def test_the_standard_library_is_loaded_by_its_names():
    m = tk.load("std::nn::softmax")
    x = np.random.default_rng(4).normal(size=(5, 77)).astype(np.float32)
    y, z = np.zeros_like(x), np.zeros_like(x)
    m.softmax(x, y)
    m.log_softmax(x, z)
    np.testing.assert_allclose(y, softmax(x), atol=1e-6)
    np.testing.assert_allclose(np.exp(z), softmax(x), atol=1e-6)
    with pytest.raises(tk.CompileError, match="cannot read std::nn::nothing"):
        tk.load("std::nn::nothing")


def test_stubs_are_python(examples, stdlib):
    for path in [*sorted(examples.glob("*.tk")), *sorted(stdlib.glob("nn/*.tk"))]:
        compile(tk.stubs(path), str(path), "exec")
    text = tk.stubs(examples / "softmax.tk")
    assert "class Kernels(Module):" in text and "x: Tensor, y: Tensor" in text


def test_numbers_of_a_bundle_have_the_type_of_its_tensors(tmp_path):
    source = tmp_path / "two.tk"
    source.write_text(
        "kernel two[T: int | float](x: *T, s: T, y: mut view[T, 1]) grid(1) { y.store([0], load(x) + s); }\n"
        "export two[T = [f64, i32, f32, i64]];\n"
    )
    ran = tk_command("build", str(source), "--target", "cpu", "-o", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    two = tk.load(tmp_path / "two.tkb").two
    for dtype, number in [("f4", 0.25), ("f4", 2), ("f8", 0.25), ("i4", 2), ("i8", 2)]:
        y = np.zeros(1, dtype)
        two(np.full(1, 40, dtype), number, y)
        assert y[0] == 40 + number
    with pytest.raises(tk.LaunchError, match="0.5, which is no value of"):
        two(np.zeros(1, np.int32), 0.5, np.zeros(1, np.int32))


def test_a_bundle_is_launched_like_source(examples, tmp_path):
    built = tk_command("build", str(examples / "softmax.tk"), "--target", "cpu", "-o", str(tmp_path))
    assert built.returncode == 0, built.stderr
    m = tk.load(tmp_path / "softmax.tkb")
    x = np.random.default_rng(3).normal(size=(4, 1000)).astype(np.float32)
    y = np.zeros_like(x)
    m.softmax(x, y)
    np.testing.assert_allclose(y, softmax(x), atol=1e-6)
    with pytest.raises(tk.LaunchError):
        m.softmax(x, y[:, :10])
    # What is remembered of a launch is of that launch alone.
    for n in (1000, 3000, 1000, 8192, 3000, 9000, 9000, 1000):
        x = np.random.default_rng(n).normal(size=(2, n)).astype(np.float32)
        y = np.zeros_like(x)
        if n > 8192:
            with pytest.raises(tk.LaunchError, match="shipped"):
                m.softmax(x, y)
        else:
            m.softmax(x, y)
            np.testing.assert_allclose(y, softmax(x), atol=1e-6)


def tk_command(*words):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-m", "tk", *words], capture_output=True, text=True, env=environment)


def test_the_command_is_in_the_package(examples, tmp_path):
    assert tk_command("--version").stdout.strip() == f"tk {tk.__version__}"
    assert tk_command("test", str(examples / "add.tk")).returncode == 0
    wrong = tmp_path / "wrong.tk"
    wrong.write_text("kernel f(")
    assert tk_command("check", str(wrong)).returncode == 1
    assert tk_command("no-such-command").returncode == 2


def test_times_are_measured(add):
    x = np.zeros(1000, np.float32)
    times = tk.bench(add.axpy, x, x, x, seconds=0.02)
    assert times.median > 0 and list(times.ms) == sorted(times.ms)
    # Two arrays are read and one is written.
    assert times.bytes == 12000 and times.gb_per_s > 0 and "median" in times._repr_html_()
    with pytest.raises(tk.LaunchError):
        tk.bench(add.axpy, x, x, x, seconds=-1.0)


def test_a_profile_has_the_lines_of_the_source(examples):
    m = tk.load(examples / "softmax.tk")
    x = np.zeros((64, 512), np.float16)
    lines = tk.profile(m.softmax, x, x)
    assert lines[0]["kind"] == "profiled" and any(line["kind"] == "profiled_line" for line in lines)
    with pytest.raises(tk.LaunchError, match="row-major"):
        tk.profile(m.softmax, x.T, x.T)


def test_threads_launch_at_the_same_time(add):
    def work():
        for _ in range(50):
            x, z = np.random.default_rng().normal(size=(2, 1000)).astype(np.float32)
            add.axpy(x, x, z)
            if not np.array_equal(z, x + x):
                wrong.append(1)

    wrong = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


CHILDREN = """
import multiprocessing, sys
import numpy as np
import tk

def work(results):
    m = tk.loads(SOURCE)
    # More than one program, on threads that a fork does not have.
    x = np.ones(3000, np.float32)
    m.axpy(x, x, x)
    results.put(float(x[-1]))

SOURCE = '''%s'''
if __name__ == "__main__":
    x = np.ones(3000, np.float32)
    tk.loads(SOURCE).axpy(x, x, x)
    context = multiprocessing.get_context(sys.argv[1])
    results = context.Queue()
    child = context.Process(target=work, args=(results,))
    child.start()
    print(results.get(timeout=60))
    child.join()
"""


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_children_launch(tmp_path, how):
    # In a process without JAX, whose threads a fork would not have.
    script = tmp_path / "children.py"
    script.write_text(CHILDREN % ADD)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, str(script), how], capture_output=True, text=True, env=environment, timeout=120)
    assert ran.stdout.strip() == "2.0", ran.stderr


def test_launches_leave_no_memory(add):
    x, z = np.zeros(64, np.float32), np.zeros(64, np.float32)
    for _ in range(2000):
        add.axpy(x, x, z)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(10000):
        add.axpy(x, x, z)
    gc.collect()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2048


def test_pointers_into_arrays_count_elements():
    m = tk.loads("kernel put(y: *mut f32, n: i32) grid(1) { store(y + n, 7.0); }")
    y = np.zeros(20, np.float32)
    m.put(y[5:], 2)
    assert y[7] == 7
    m.put(y[::-1], 0)
    assert y[19] == 7
    m.put(y[::-1], -19)
    assert y[0] == 7 and y.sum() == 21
    with pytest.raises(tk.LaunchError, match="past"):
        m.put(y[5:], 15)


def test_bools_and_large_numbers():
    m = tk.loads(
        """
        kernel flag(y: mut view[i32, 1], on: bool) grid(1) { y.store([0], if on { 1 } else { 0 }); }
        kernel number(y: mut view[f64, 1], v: f64) grid(1) { y.store([0], v); }
        """
    )
    y, z = np.zeros(1, np.int32), np.zeros(1)
    for on in (True, np.True_, np.array(True)):
        y[0] = 0
        m.flag(y, on)
        assert y[0] == 1
    for wrong in (1, 1.0, np.int32(1)):
        with pytest.raises(tk.LaunchError, match="bool"):
            m.flag(y, wrong)
    m.number(z, 2**64)
    assert z[0] == 2.0**64
    m.number(z, float("nan"))
    assert np.isnan(z[0])
    for wrong in (10**400, 10**5000):
        with pytest.raises(OverflowError):
            m.number(z, wrong)


def test_kernels_are_copied_and_pickled(add, examples):
    k = add.axpy[{"BLOCK": 64}]
    assert copy.deepcopy(k) is k and copy.copy(k) is k and weakref.ref(k)() is k
    x = np.ones(100, np.float32)
    for kernel in (k, tk.load(examples / "softmax.tk").softmax):
        again = pickle.loads(pickle.dumps(kernel))
        assert repr(again).split(" of ")[0] == repr(kernel).split(" of ")[0]
    z = np.zeros_like(x)
    pickle.loads(pickle.dumps(k))(x, x, z)
    assert z[99] == 2


def test_misuse_is_told_by_name(add, tmp_path, monkeypatch):
    x = np.zeros(10, np.float32)
    with pytest.raises(TypeError, match="an argument of a launch"):
        add.axpy[{"x": x}]
    with pytest.raises(TypeError, match="given as a dict"):
        add.axpy[64]
    with pytest.raises(TypeError, match="a source is a text"):
        tk.loads(None)
    for measured in (tk.bench, tk.profile, tk.tune):
        with pytest.raises(TypeError, match="takes a kernel"):
            measured(add, x, x, x)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source.tk").write_text("kernel axpy(x: view[f32, 1]) grid(1) {}")
    with pytest.raises(tk.Error, match="no source file"):
        tk.profile(add.axpy, x, x, x)
    with pytest.raises(ValueError, match="budget"):
        tk.tune(add.axpy, x, x, x, budget=-1)
    with pytest.raises(tk.Error, match="UTF-8"):
        tk.load(os.fsdecode(b"/tmp/\xff.tk"))
    with pytest.raises(tk.LaunchError) as caught:
        tk.loads('kernel k(y: mut view[f32, 1]) grid(1) { assert(1 > 2, "boo"); }').k(x)
    assert caught.value.code == "E0708"


def test_stubs_are_python_whatever_the_source_says(tmp_path):
    source = tmp_path / "odd.tk"
    source.write_text(
        '/// says "end"\nkernel a(y: mut view[f32, 1]) grid(1) { y.store([0], 1.0); }\n'
        '/// \\ and """\nkernel b(y: mut view[f32, 1], stream: f32) grid(1) { y.store([0], stream); }\n'
        "kernel c(y: mut view[f32, 1], lambda: f32) grid(1) { y.store([0], lambda); }\n"
    )
    compile(tk.stubs(source), "odd", "exec")


def test_ctrl_c_ends_a_launch_on_the_cpu(tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(
        "import numpy, tk\n"
        "m = tk.loads('''\n"
        "kernel endless(x: mut view[i32, 1]) grid(1) { let mut i = 0; while i >= 0 { i = i & 1; } x.store([0], 1); }\n"
        "kernel many(x: mut view[i32, 1]) grid(2000000000) { x.store([0], 1); }\n"
        "kernel one(x: mut view[i32, 1]) grid(1) { x.store([0], 7); }\n"
        "''')\n"
        "x = numpy.zeros(1, dtype=numpy.int32)\n"
        "m.one(x)\n"
        "for kernel in (m.endless, m.many):\n"
        "    print('running', flush=True)\n"
        "    try:\n"
        "        kernel(x)\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted', flush=True)\n"
        "x[0] = 0\n"
        "m.one(x)\n"
        "print(x[0], flush=True)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        for _ in range(2):
            assert process.stdout.readline() == "running\n"
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
        assert process.stdout.readline() == "7\n"
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
