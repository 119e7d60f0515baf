"""Kernels in programs of JAX: :func:`call`.

A call is an operation of XLA, so it works under ``jax.jit`` and runs in the order and on the device that XLA chooses.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple, Union

import jax
import numpy as np

from tk import _native
from tk._kernel import Kernel, require_kernel, without_results

__all__ = ["call"]

_TARGET = "tk_kernel"

#: How a result is made: like the argument of this name, of this shape and type, or by a function of the arguments that it
#: names.
Made = Union[str, "jax.ShapeDtypeStruct", Callable[..., "jax.ShapeDtypeStruct"]]

_ffi = getattr(jax, "ffi", None)
if _ffi is None:  # before JAX 0.5
    from jax.extend import ffi as _ffi

_registered = False


def _register() -> None:
    global _registered
    if not _registered:
        for platform, handler in _native.jax_handlers().items():
            _ffi.register_ffi_target(_TARGET, handler, platform=platform)
        _registered = True


def call(kernel: Kernel, out: Mapping[str, Made]) -> Callable[..., Any]:
    """The kernel as a function of arrays that returns what it writes.

    :param out: the parameters that are results, in this order: ``{"y": "x"}`` makes ``y`` like ``x``,
        ``{"y": jax.ShapeDtypeStruct((n,), x.dtype)}`` says its shape, and a function gets the arguments that it names.
        Other parameters that the kernel writes are returned after them: XLA gives the kernel a copy, or the array itself
        where nothing else needs it.
    :return: a function of the remaining parameters, in their order or by name; numbers are of Python, not traced. It has
        no derivative: ``jax.custom_vjp`` gives it one.
    :raises ValueError: ``out`` names no such parameter, or one that the kernel does not write.

    A compiled program refers to the kernel by an index of this process: it cannot be exported.
    """
    require_kernel(kernel, "`tk.jax.call`")
    parameters, inputs = without_results(kernel, out)
    names = [p["name"] for p in inputs]
    in_place = [p["name"] for p in inputs if p["mutable"]]
    if not out and not in_place:
        raise ValueError(f"kernel `{kernel.name}` writes nothing, so a call of it has no result")
    known: Dict[Any, int] = {}

    def function(*args: Any, **kwargs: Any) -> Any:
        _register()
        given = _bind(kernel, names, args, kwargs)
        operands: List[Any] = []
        slots: Dict[str, Any] = {}
        for p in inputs:
            value = given.get(p["name"])
            if value is None:
                slots[p["name"]] = None
            elif p["kind"] == "tensor":
                slots[p["name"]] = ("operand", len(operands))
                operands.append(jax.numpy.asarray(value))
                given[p["name"]] = operands[-1]
            elif isinstance(value, jax.core.Tracer):
                raise TypeError(
                    f"argument `{p['name']}` of kernel `{kernel.name}` is a number, which is known when the call is traced: "
                    "pass it by `static_argnames` of `jax.jit`"
                )
            else:
                slots[p["name"]] = ("number", value.item() if hasattr(value, "item") else value)
        results: List[jax.ShapeDtypeStruct] = []
        for name, how in out.items():
            slots[name] = ("result", len(results))
            results.append(_made(name, how, given, names))
        aliases: Dict[int, int] = {}
        for name in in_place:
            if slots.get(name) is None:
                continue
            operand = slots[name][1]
            aliases[operand] = len(results)
            slots[name] = ("result", len(results))
            results.append(jax.ShapeDtypeStruct(operands[operand].shape, operands[operand].dtype))
        listed = [slots.get(p["name"]) for p in parameters]
        key = tuple((s[0], type(s[1]), s[1]) if s else None for s in listed)
        if key not in known:
            known[key] = _native.jax_call(kernel, listed)
        made = _ffi.ffi_call(_TARGET, results, input_output_aliases=aliases)(*operands, call=np.int64(known[key]))
        return made[0] if len(results) == 1 else tuple(made)

    function.__name__ = kernel.name
    function.__doc__ = kernel.doc
    return function


def _bind(kernel: Kernel, names: Sequence[str], args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Dict[str, Any]:
    if len(args) > len(names):
        raise TypeError(f"kernel `{kernel.name}` takes {len(names)} arguments here, and {len(args)} were given")
    given = dict(zip(names, args))
    for name, value in kwargs.items():
        if name not in names:
            hint = "; compile-time parameters are given before, by `kernel[{..}]`"
            raise TypeError(f"kernel `{kernel.name}` takes no `{name}` here; it takes {', '.join(names)}{hint}")
        if name in given:
            raise TypeError(f"kernel `{kernel.name}` got its argument `{name}` twice")
        given[name] = value
    return given


def _made(result: str, how: Made, given: Mapping[str, Any], names: Sequence[str]) -> "jax.ShapeDtypeStruct":
    if isinstance(how, jax.ShapeDtypeStruct):
        return how
    if isinstance(how, str):
        if given.get(how) is None:
            raise ValueError(f"`{result}` is made like `{how}`, which is not given")
        return jax.ShapeDtypeStruct(given[how].shape, given[how].dtype)
    made = how(**{name: given.get(name) for name in inspect.signature(how).parameters if name in names})
    if not isinstance(made, jax.ShapeDtypeStruct):
        raise TypeError(f"the function for `{result}` returns a `jax.ShapeDtypeStruct`, and not `{type(made).__name__}`")
    return made
