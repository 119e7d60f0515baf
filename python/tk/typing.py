"""Types for annotations."""

from __future__ import annotations

from typing import Any, Protocol, Tuple, runtime_checkable

__all__ = ["Tensor"]


@runtime_checkable
class Tensor(Protocol):
    """What a kernel takes as a tensor: anything with DLPack. NumPy arrays may also have the types of ``ml_dtypes``."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> Tuple[int, int]: ...
