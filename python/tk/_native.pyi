"""What the extension module has."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from tk.errors import Diagnostic

__version__: str

class Program:
    def __init__(self, path: str, text: Optional[str], prefix: str) -> None: ...
    @property
    def names(self) -> List[str]: ...
    @property
    def warnings(self) -> List[Diagnostic]: ...

class Kernel:
    """A kernel, callable with tensors and numbers: ``kernel(x, y, eps=1e-5, BLOCK=1024)``."""

    @staticmethod
    def of(program: Program, name: str) -> Optional[Kernel]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Launches the kernel on the device of the tensors, in the stream that their library uses now, or in ``stream``.
        On the CPU it has finished when the call returns.
        """
    def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Compiles what a launch with these arguments needs, without launching."""
    def describe(self, *args: Any, **kwargs: Any) -> Dict[str, Any]:
        """A call as arguments of the command ``tk``."""
    def __getitem__(self, given: Dict[str, Any]) -> Kernel:
        """The kernel with compile-time parameters given: ``softmax[{"BLOCK": 1024}]``."""
    @property
    def name(self) -> str: ...
    @property
    def doc(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def file(self) -> Optional[str]:
        """The absolute path of the file; ``None`` if the source is a text."""
    @property
    def given(self) -> List[Tuple[str, str]]: ...
    @property
    def parameters(self) -> List[Dict[str, Any]]:
        """For each parameter its ``name``, ``type``, ``kind`` (``tensor``, ``number``, ``compile-time``), and whether it is
        ``optional`` and ``mutable``.
        """

def check(path: str, text: Optional[str] = None) -> List[Diagnostic]: ...
def command(arguments: Sequence[str]) -> int: ...
def is_tensor(object: Any) -> bool: ...
def jax_call(kernel: Kernel, slots: List[Optional[Tuple[str, Any]]]) -> int: ...
def jax_handlers() -> Dict[str, Any]: ...
