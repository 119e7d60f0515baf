"""Kernels as operators of PyTorch: :func:`op`.

An operator works under ``torch.compile``, in CUDA graphs and with autograd: PyTorch knows its schema, what it writes, and
the shapes of its results without running it.
"""

from __future__ import annotations

import keyword
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

import torch

from tk._kernel import Kernel, require_kernel, without_results

__all__ = ["op"]

#: How a result is made: like the argument of this name, or by a function of all arguments, by name.
Made = Union[str, Callable[..., "torch.Tensor"]]

#: The library objects of the operators, which end with them, by name.
_libraries: Dict[str, torch.library.Library] = {}


def op(
    name: str,
    kernel: Kernel,
    *,
    out: Optional[Mapping[str, Made]] = None,
    backward: Optional[Callable[..., Any]] = None,
    setup_context: Optional[Callable[..., None]] = None,
) -> Callable[..., Any]:
    """Registers a kernel as the operator ``name``, ``"library::operator"``, and returns it.

    :param out: the parameters that the operator makes and returns, in this order: ``{"y": "x"}`` makes ``y`` like ``x``,
        row-major; ``{"y": lambda x, w: x.new_empty(x.shape[0], w.shape[1])}`` calls a function with the arguments that it
        names. It also gives the shapes while PyTorch traces. Other parameters that the kernel may write are changed in
        place.
    :param backward: ``backward(ctx, *grads)`` as in ``torch.library.register_autograd``: returns a gradient, or ``None``,
        for each argument of the operator.
    :param setup_context: ``setup_context(ctx, inputs, output)``, which saves what ``backward`` needs.
    :raises ValueError: ``out`` names no such parameter, or one that the kernel does not write; the name is taken.

    The arguments of the operator are the remaining parameters of the kernel, in their order. Compile-time parameters are
    given before: ``op("my::softmax", m.softmax[{"BLOCK": 1024}], out={"y": "x"})``.
    """
    require_kernel(kernel, "`tk.torch.op`")
    out = {} if out is None else out
    parameters, inputs = without_results(kernel, out)
    if backward is not None and not callable(backward):
        raise TypeError("`backward` is a function")
    library, _, short = name.partition("::")
    if not short or not short.isidentifier() or not library.isidentifier():
        raise ValueError(f"the name of an operator is `library::operator`, and not {name!r}")
    names = [_spelled(p["name"]) for p in inputs]
    if setup_context is not None and backward is None:
        raise ValueError("`setup_context` without `backward` has no use")

    made = {result: _maker(result, how, names) for result, how in out.items()}
    order = [p["name"] for p in parameters]
    positions = {p["name"]: i for i, p in enumerate(inputs)}
    mutated = [p["name"] for p in inputs if p["mutable"]]
    if mutated and backward is not None:
        raise ValueError(f"an operator that changes `{mutated[0]}` in place has no gradient; name it in `out`")

    def results(arguments: Tuple[Any, ...]) -> Dict[str, torch.Tensor]:
        return {result: make(arguments) for result, make in made.items()}

    def returned(values: Dict[str, torch.Tensor]) -> Any:
        if not values:
            return None
        listed = tuple(values.values())
        return listed if len(listed) > 1 else listed[0]

    def run(*given: Any, **more: Any) -> Any:
        arguments = _all(given, more, names, inputs)
        values = results(arguments)
        kernel(*(values[n] if n in values else arguments[positions[n]] for n in order))
        # Autograd learns that what it may have saved is another.
        for n in mutated:
            if arguments[positions[n]] is not None:
                torch.autograd.graph.increment_version(arguments[positions[n]])
        return returned(values)

    def fake(*given: Any, **more: Any) -> Any:
        return returned(results(_all(given, more, names, inputs)))

    if library in ("aten", "prim", "prims"):
        raise ValueError(f"the library `{library}` is PyTorch's own")
    before = _libraries.pop(name, None)
    if before is not None:
        # The same operator again, as a cell of a notebook that runs twice makes it.
        before._destroy()
    elif hasattr(getattr(torch.ops, library), short):
        raise ValueError(f"there is an operator `{name}` already")
    fragment = torch.library.Library(library, "FRAGMENT")
    fragment.define(short + _schema(inputs, names, len(out)))
    for key in ("CPU", "CUDA"):
        # Kernels have no gradients: tensors come here below autograd.
        fragment.impl(short, run, key)
    torch.library.register_fake(name, fake, lib=fragment)
    if backward is not None:
        torch.library.register_autograd(name, backward, setup_context=setup_context, lib=fragment)
    _libraries[name] = fragment
    return getattr(getattr(torch.ops, library), short)


def _spelled(name: str) -> str:
    """The name of a parameter in a schema: ``st.m`` has a dot in the language."""
    plain = name.replace(".", "_")
    return plain + "_" if keyword.iskeyword(plain) else plain


def _schema(inputs: List[Dict[str, Any]], names: List[str], results: int) -> str:
    words = []
    for i, (p, name) in enumerate(zip(inputs, names)):
        optional = "?" if p["optional"] else ""
        if p["kind"] == "tensor":
            written = f"({chr(ord('a') + i % 26)}{i // 26 or ''}!)" if p["mutable"] else ""
            ty = f"Tensor{written}{optional}"
        else:
            word = p["type"]
            number = "bool" if word == "bool" else "SymInt" if word[:1] in "iu" and word[1:].isdigit() else "float"
            ty = number + optional
        words.append(f"{ty} {name}" + ("=None" if p["optional"] and _rest_optional(inputs, i) else ""))
    result = "()" if not results else "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"
    return f"({', '.join(words)}) -> {result}"


def _rest_optional(inputs: List[Dict[str, Any]], at: int) -> bool:
    return all(p["optional"] for p in inputs[at:])


def _all(given: Tuple[Any, ...], more: Dict[str, Any], names: List[str], inputs: List[Dict[str, Any]]) -> Tuple[Any, ...]:
    """The arguments in order; what is left out is ``None``."""
    if not more and len(given) == len(names):
        return given
    return (*given, *(more.get(n) for n in names[len(given) :]))


def _maker(result: str, how: Made, names: List[str]) -> Callable[[Tuple[Any, ...]], torch.Tensor]:
    if isinstance(how, str):
        if how not in names:
            raise ValueError(f"`{result}` is made like `{how}`, which is no argument of the operator")
        at = names.index(how)
        return lambda arguments: torch.empty_like(arguments[at], memory_format=torch.contiguous_format)
    import inspect

    parameters = inspect.signature(how).parameters
    unknown = [a for a, p in parameters.items() if a not in names and p.default is inspect.Parameter.empty]
    asked = [a for a in parameters if a in names]
    if unknown:
        raise ValueError(f"the function for `{result}` names `{unknown[0]}`, which is no argument of the operator")
    places = [names.index(a) for a in asked]
    return lambda arguments: how(*(arguments[i] for i in places))
