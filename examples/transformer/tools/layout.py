"""Files of models: safetensors, and folders in the layout of GPT-2.

Owns reading and writing both, with NumPy alone. May assume that a file fits in memory. Guarantees that what it writes
is read back bit by bit, by this module and by any other reader of safetensors, and that the same arrays give the same
bytes.

NumPy has no bfloat16: such a tensor is written from a `Bf16`, and read as the float32 of the same value.
"""

import dataclasses
import json
import pathlib

import numpy as np

TYPES = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
}

# What the tensors of a checkpoint may be stored as, and what `config.json` calls it.
STORED = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}


@dataclasses.dataclass
class Bf16:
    """A bfloat16 array, as the bits of its elements."""

    bits: np.ndarray

    @classmethod
    def round(cls, values):
        """The nearest bfloat16, ties to even. The values are finite."""
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        return cls(((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2"))

    def wide(self):
        return (self.bits.astype(np.uint32) << 16).view(np.float32)


def stored(array, kind):
    """An array as `kind`, one of `STORED`, has it."""
    return Bf16.round(array) if kind == "bf16" else np.asarray(array).astype(np.dtype(STORED[kind]))


def type_name(array):
    for name, dtype in TYPES.items():
        if array.dtype == dtype:
            return name
    raise TypeError(f"{array.dtype} has no name in safetensors here; cast the array to one of {', '.join(TYPES)}")


def write(path, tensors, metadata=None):
    """Writes arrays (or `Bf16`) by name, in the order of the dictionary."""
    header, parts, at = {}, [], 0
    if metadata:
        header["__metadata__"] = dict(metadata)
    for name, tensor in tensors.items():
        array = tensor.bits if isinstance(tensor, Bf16) else np.asarray(tensor)
        kind = "BF16" if isinstance(tensor, Bf16) else type_name(array)
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        parts.append(array)
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    # The data must begin at a multiple of eight, and readers skip spaces at the end of JSON.
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in parts:
            file.write(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())


def read(path):
    """The arrays of a file by name, and its metadata."""
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        half = entry["dtype"] == "BF16"
        if not half and entry["dtype"] not in TYPES:
            raise TypeError(f"{path}: `{name}` is {entry['dtype']}, which is not read here")
        dtype = np.dtype("<u2") if half else TYPES[entry["dtype"]]
        array = np.frombuffer(data[begin:end], dtype=dtype).reshape(entry["shape"])
        tensors[name] = Bf16(array).wide() if half else array
    return tensors, metadata


@dataclasses.dataclass(frozen=True)
class Shape:
    """The sizes that make a GPT-2. The hidden width of the MLP is four times `n_embd`."""

    vocab_size: int
    n_positions: int
    n_embd: int
    n_layer: int
    n_head: int

    def tensors(self):
        """The shape of each tensor by its name, in the order of the layers. Linear weights are [in, out]."""
        e = self.n_embd
        shapes = {"wte.weight": (self.vocab_size, e), "wpe.weight": (self.n_positions, e)}
        for i in range(self.n_layer):
            block = {
                "ln_1.weight": (e,),
                "ln_1.bias": (e,),
                "attn.c_attn.weight": (e, 3 * e),
                "attn.c_attn.bias": (3 * e,),
                "attn.c_proj.weight": (e, e),
                "attn.c_proj.bias": (e,),
                "ln_2.weight": (e,),
                "ln_2.bias": (e,),
                "mlp.c_fc.weight": (e, 4 * e),
                "mlp.c_fc.bias": (4 * e,),
                "mlp.c_proj.weight": (4 * e, e),
                "mlp.c_proj.bias": (e,),
            }
            shapes.update({f"h.{i}.{name}": shape for name, shape in block.items()})
        shapes.update({"ln_f.weight": (e,), "ln_f.bias": (e,)})
        return shapes


def config(shape, kind, end_of_text):
    """What `config.json` says of a model."""
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        **dataclasses.asdict(shape),
        "n_inner": None,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "bos_token_id": end_of_text,
        "eos_token_id": end_of_text,
        "tie_word_embeddings": True,
        "torch_dtype": STORED[kind],
    }


def write_model(folder, shape, tensors, kind, end_of_text, shards=1):
    """Writes `config.json` and the tensors, stored as `kind`, in one file or in shards with their index."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # Files of an earlier model would be found beside the new ones.
    for old in [*folder.glob("model*.safetensors"), *folder.glob("model.safetensors.index.json")]:
        old.unlink()
    write_json(folder / "config.json", config(shape, kind, end_of_text))
    tensors = {name: stored(tensors[name], kind) for name in shape.tensors()}
    if shards == 1:
        write(folder / "model.safetensors", tensors, {"format": "pt"})
        return
    sizes = {name: (t.bits if isinstance(t, Bf16) else t).nbytes for name, t in tensors.items()}
    total, before, files = sum(sizes.values()), 0, {}
    for name, size in sizes.items():
        # A tensor goes where its middle falls, were the bytes of all of them divided evenly.
        number = min(shards - 1, (before + size // 2) * shards // total)
        files.setdefault(f"model-{number + 1:05}-of-{shards:05}.safetensors", []).append(name)
        before += size
    if len(files) != shards:
        raise ValueError(f"{len(tensors)} tensors of such sizes do not fill {shards} shards; ask for fewer")
    for file, names in files.items():
        write(folder / file, {name: tensors[name] for name in names}, {"format": "pt"})
    places = {name: file for file, names in files.items() for name in names}
    write_json(
        folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": places}
    )


def read_model(folder):
    """The shape of the model in a folder, its tensors by the names of `Shape.tensors`, and its configuration."""
    folder = pathlib.Path(folder)
    found = json.loads((folder / "config.json").read_text())
    shape = Shape(**{field.name: found[field.name] for field in dataclasses.fields(Shape)})
    index = folder / "model.safetensors.index.json"
    files = ["model.safetensors"]
    if index.exists():
        files = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    tensors = {}
    for file in files:
        for name, array in read(folder / file)[0].items():
            # Some writers put the name of the inner model first.
            tensors[name.removeprefix("transformer.")] = array
    for name, expected in shape.tensors().items():
        if name not in tensors:
            raise KeyError(f"{folder}: the model has no tensor `{name}`")
        if tensors[name].shape != expected:
            raise ValueError(f"{folder}: `{name}` is {tensors[name].shape}, and config.json makes it {expected}")
    return shape, {name: tensors[name] for name in shape.tensors()}, found


def write_json(path, value):
    pathlib.Path(path).write_text(json.dumps(value, indent=2) + "\n")
