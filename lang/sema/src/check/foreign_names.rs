//! The tables of names of Triton, NumPy, PyTorch and CUDA, with the counterpart of each here.

/// The counterpart of a name of another language.
#[derive(Clone, Copy)]
pub(super) enum Here {
    /// This name, for the same thing.
    Name(&'static str),
    /// Something that has another form: one sentence.
    Form(&'static str),
}

use Here::{Form, Name};

/// Names of parameters in Triton's language, NumPy and PyTorch, and here.
pub(super) const PARAMETERS: &[(&str, &str)] = &[
    ("keep_dims", "keep"),
    ("keepdims", "keep"),
    ("keepdim", "keep"),
    ("dim", "axis"),
    ("input_precision", "precision"),
    ("eviction_policy", "evict"),
    ("cache_modifier", "cache"),
    ("sem", "order"),
    ("memory_order", "order"),
    ("num_warps", "warps"),
    ("num_stages", "stages"),
    ("num_ctas", "ctas"),
    ("maxnreg", "max_regs"),
    ("loop_unroll_factor", "unroll"),
    ("warp_specialize", "specialize"),
];

/// Texts that are words here.
pub(super) const WORDS: &[(&str, &str)] = &[
    (".ca", "all"),
    (".cg", "global"),
    (".cs", "streaming"),
    (".cv", "volatile"),
    (".wb", "back"),
    (".wt", "through"),
    ("gpu", "device"),
    ("cta", "block"),
    ("sys", "system"),
];

/// Names of Triton's language after `tl.`, and of Python. A name that is the same here is not in it.
pub(super) const NAMES: &[(&str, Here)] = &[
    ("float16", Name("f16")),
    ("bfloat16", Name("bf16")),
    ("float32", Name("f32")),
    ("float64", Name("f64")),
    ("float8e4nv", Name("f8e4m3")),
    ("float8e5", Name("f8e5m2")),
    ("float8e4b8", Name("f8e4m3fnuz")),
    ("float8e5b16", Name("f8e5m2fnuz")),
    ("int1", Name("bool")),
    ("int8", Name("i8")),
    ("int16", Name("i16")),
    ("int32", Name("i32")),
    ("int64", Name("i64")),
    ("uint8", Name("u8")),
    ("uint16", Name("u16")),
    ("uint32", Name("u32")),
    ("uint64", Name("u64")),
    ("next_power_of_2", Name("next_pow2")),
    ("associative_scan", Name("scan")),
    ("inline_asm_elementwise", Name("inline_asm")),
    ("device_assert", Name("assert")),
    ("sqrt_rn", Name("sqrt")),
    ("True", Name("true")),
    ("False", Name("false")),
    ("newaxis", Name("None")),
    ("device_print", Name("print")),
    ("constexpr", Form("compile-time parameters go in brackets: `kernel k[BLOCK: i32](..)`")),
    ("trans", Form("`x.T` transposes a tile, and `permute(x, [..])` reorders its dimensions")),
    ("expand_dims", Form("`x[:, None]` adds a dimension, and so does `expand(x, axis)`")),
    ("cast", Form("a cast is written `x as f32`")),
    ("fdiv", Form("a division is written `a / b`")),
    ("div_rn", Form("a division is written `a / b`")),
    ("make_block_ptr", Form("a kernel takes views: `x: view[f32, 2]` and `x.load([row, column], [BM, BN])`")),
    ("advance", Form("a view is loaded at any position: `x.load([row, column], [BM, BN])`")),
    ("squeeze", Form("`x[:, 0]` removes a dimension of one element, and so does `reshape(x, [..])`")),
    ("unsqueeze", Form("`x[:, None]` adds a dimension, and so does `expand(x, axis)`")),
    (
        "make_tensor_descriptor",
        Form("a kernel takes views: `x: view[f32, 2]` and `x.load([row, column], [BM, BN])`"),
    ),
    ("swizzle2d", Form("`use std::grid;` orders programs in groups")),
    ("debug_barrier", Form("the compiler inserts barriers")),
    (
        "tensor",
        Form("a tile is written `tile[f32, BM, BN]`, and memory is a `view[f32, 2]` or a pointer `*f32`"),
    ),
    ("len", Form("extents are `x.shape[0]`")),
    ("not", Name("!")),
    ("absolute", Name("abs")),
    ("fabs", Name("abs")),
    ("power", Name("pow")),
    ("clip", Name("clamp")),
    ("matmul", Name("dot")),
    ("amax", Name("max")),
    ("amin", Name("min")),
    ("flatten", Name("ravel")),
    ("empty_like", Name("zeros_like")),
    ("transpose", Form("`x.T` transposes a matrix, and `permute(x, [..])` reorders dimensions")),
    ("swapaxes", Form("`permute(x, [..])` reorders dimensions")),
    ("moveaxis", Form("`permute(x, [..])` reorders dimensions")),
    ("concatenate", Form("`cat(a, b, axis = 0)` joins two tiles")),
    ("stack", Form("`join(a, b)` puts two tiles side by side in a new last dimension")),
    ("mean", Form("a mean is a sum by the number of elements, `sum(x) / (N as f32)`")),
    ("average", Form("a mean is a sum by the number of elements, `sum(x) / (N as f32)`")),
    ("var", Form("with the mean `m`, the variance is `sum((x - m) * (x - m)) / (N as f32)`")),
    ("std", Form("with the mean `m`, the deviation is `sqrt(sum((x - m) * (x - m)) / (N as f32))`")),
    ("norm", Form("a norm is `sqrt(sum(x * x))`")),
    ("ones", Form("`full([N], 1.0, f32)` makes a tile of ones")),
    ("ones_like", Form("`full(x.shape, 1.0, f32)` makes a tile of ones")),
    ("full_like", Form("`full(x.shape, value, f32)` makes a tile of the shape of `x`")),
    ("allclose", Form("`assert_close(a, b)` compares in tests, and `all(a == b)` compares exactly")),
    ("isclose", Form("`assert_close(a, b)` compares in tests; elsewhere compare `abs(a - b)`")),
    ("array_equal", Form("`all(a == b)` compares all elements")),
    ("linspace", Form("`(arange(0, N) as f32) * step` makes steps")),
    ("argsort", Form("`sort(x, values = arange(0, N))` gives the positions too")),
    ("tan", Form("a tangent is `sin(x) / cos(x)`")),
    ("sinh", Form("it is `(exp(x) - exp(-x)) / 2.0`")),
    ("log1p", Form("it is `log(1.0 + x)`, less exact where `x` is near 0")),
    ("expm1", Form("it is `exp(x) - 1.0`, less exact where `x` is near 0")),
    ("arctan", Form("there are no inverse trigonometric functions")),
    ("arcsin", Form("there are no inverse trigonometric functions")),
    ("arccos", Form("there are no inverse trigonometric functions")),
    ("arctan2", Form("there are no inverse trigonometric functions")),
    ("atan", Form("there are no inverse trigonometric functions")),
    ("asin", Form("there are no inverse trigonometric functions")),
    ("acos", Form("there are no inverse trigonometric functions")),
    ("atan2", Form("there are no inverse trigonometric functions")),
    ("cbrt", Form("for positive `x` it is `exp2(log2(x) / 3.0)`")),
    ("sign", Form("it is `where(x > 0.0, 1.0, where(x < 0.0, -1.0, 0.0))`")),
    ("square", Form("a square is `x * x`")),
    ("reciprocal", Form("it is `1.0 / x`")),
    ("hypot", Form("it is `sqrt(x * x + y * y)`")),
    ("log10", Form("it is `log2(x) * 0.3010299956639812`")),
    ("nan_to_num", Form("`where(isnan(x), 0.0, x)` replaces NaN")),
    ("pi", Form("a constant is declared outside of functions, `const PI = 3.141592653589793;`")),
    ("add", Form("`|a, b| a + b` adds two values, and `sum(x)` all elements")),
    ("subtract", Form(OPERATORS)),
    ("multiply", Form(OPERATORS)),
    ("divide", Form(OPERATORS)),
    ("negative", Form("a negation is written `-x`")),
    ("floor_divide", Form("integers are divided by `a / b`, rounded toward zero")),
    ("logical_and", Form("conditions are joined by `a && b`, `a || b` and `!a`, on tiles too")),
    ("logical_or", Form("conditions are joined by `a && b`, `a || b` and `!a`, on tiles too")),
    ("logical_not", Form("conditions are joined by `a && b`, `a || b` and `!a`, on tiles too")),
    ("count_nonzero", Form("`sum((x != 0.0) as i32)` counts")),
    ("inner", Form("the product of two vectors is `sum(a * b)`")),
    ("outer", Form("it is `a[:, None] * b[None, :]`")),
    (
        "einsum",
        Form(
            "products of matrices are `dot(a, b)`, others `sum(a * b, axis = k)` with dimensions of extent 1 added",
        ),
    ),
    ("eye", Form("`(arange(0, N)[:, None] == arange(0, N)[None, :]) as f32` is the unit matrix")),
    ("tril", Form("`where(arange(0, M)[:, None] >= arange(0, N)[None, :], x, 0.0)` is the lower triangle")),
    ("triu", Form("`where(arange(0, M)[:, None] <= arange(0, N)[None, :], x, 0.0)` is the upper triangle")),
    ("diff", Form("neighbours are two loads at positions that differ by 1, or `gather(x, index)` of a tile")),
    (
        "roll",
        Form(
            "`gather(x, (arange(0, N) + N - k) % N)` moves the elements `k` places on, for `k` from 0 to `N`",
        ),
    ),
    ("take", Name("gather")),
    ("view", Name("reshape")),
    ("pad", Form("a load reads `other` outside of a view: `x.load([-1], [N], other = 0.0)`")),
    (
        "repeat",
        Form(
            "`broadcast_to(x[:, None], [N, 2])` repeats each element, and `reshape` makes one dimension of it",
        ),
    ),
    ("nonzero", Form(SELECTED)),
    ("unique", Form(SELECTED)),
    ("vstack", Form("`cat(a, b, axis = 0)` joins two tiles")),
    ("hstack", Form("`cat(a, b, axis = 1)` joins two tiles")),
    ("median", Form("`sort(x)` has the middle element at position `N / 2`")),
    ("enumerate", Form("a loop counts: `for i in range(0, n) { .. }`")),
    ("zip", Form("a loop counts: `for i in range(0, n) { .. }`")),
    (
        "meshgrid",
        Form("`arange(0, M)[:, None]` and `arange(0, N)[None, :]` are positions that repeat to one shape"),
    ),
    ("pass", Form("an empty block is `{ }`")),
    ("array", Form(TABLE)),
    ("asarray", Form(TABLE)),
    ("blockIdx", Form("`program_id(0)` is the number of the program along the first axis")),
    ("gridDim", Form("`num_programs(0)` is the number of programs along the first axis")),
    ("blockDim", Form("the size of a block is a compile-time parameter, `kernel k[BLOCK: i32 = 256](..)`")),
    (
        "threadIdx",
        Form("a program has no threads to number; `arange(0, BLOCK)` is a tile with a lane for each"),
    ),
    ("__syncthreads", Form("the compiler inserts barriers")),
    ("syncthreads", Form("the compiler inserts barriers")),
    ("debug_barrier", Form("the compiler inserts barriers")),
    ("barrier", Form("the compiler inserts barriers")),
    ("__shared__", Form(SHARED)),
    ("shared", Form(SHARED)),
    ("__syncwarp", Form("the compiler inserts barriers")),
    ("__threadfence", Form(FENCE)),
    ("__threadfence_block", Form(FENCE)),
    ("__threadfence_system", Form(FENCE)),
    ("INFINITY", Name("inf")),
    ("FLT_MAX", Name("f32.max")),
    ("ceil_div", Name("cdiv")),
    ("__shfl_sync", Form(LANES)),
    ("shfl_down", Form(LANES)),
    ("shfl_up", Form(LANES)),
    ("shfl_xor", Form(LANES)),
    ("__shfl_up_sync", Form(LANES)),
    ("__shfl_down_sync", Form(LANES)),
    ("__shfl_xor_sync", Form(LANES)),
    ("__ballot_sync", Form("there is no mask of the lanes; `sum(c)` counts those in which `c` is true")),
    ("__any_sync", Form("`any(c)` of a tile of bools")),
    ("__all_sync", Form("`all(c)` of a tile of bools")),
    ("warpSize", Form("warps are the compiler's; `target.warp_size` is the number of their lanes")),
    ("__ldg", Name("load")),
    ("__popc", Name("popcount")),
    ("__clz", Name("clz")),
    ("__umulhi", Name("umulhi")),
    ("random", Form(RANDOM)),
    ("rint", Name("round")),
    ("rintf", Name("round")),
    ("nearbyint", Name("round")),
    ("nearbyintf", Name("round")),
    ("fmax", Name("maxnum")),
    ("fmin", Name("minnum")),
    ("fmaxf", Name("maxnum")),
    ("fminf", Name("minnum")),
    ("fmaf", Name("fma")),
    ("expf", Name("exp")),
    ("logf", Name("log")),
    ("sqrtf", Name("sqrt")),
    ("rsqrtf", Name("rsqrt")),
    ("fabsf", Name("abs")),
    ("powf", Name("pow")),
    ("tanhf", Name("tanh")),
    ("__expf", Form("the approximation is `exp(x, fast = true)`")),
    ("__fdividef", Form("`/` under `@fast` is the approximation")),
    ("half", Form("a cast is written `x as f16`")),
    ("double", Form("a cast is written `x as f64`")),
    ("__float2half", Form("a cast is written `x as f16`")),
    ("__half2float", Form("a cast is written `x as f32`")),
    ("clock64", Form("`tk profile --stamps` measures parts of a kernel; `globaltimer()` is a clock")),
    ("atomicAdd", Name("atomic_add")),
    ("atomicMax", Name("atomic_max")),
    ("atomicMin", Name("atomic_min")),
    ("atomicCAS", Name("atomic_cas")),
    ("atomicExch", Name("atomic_xchg")),
    ("atomicAnd", Name("atomic_and")),
    ("atomicOr", Name("atomic_or")),
    ("atomicXor", Name("atomic_xor")),
    ("atomicSub", Form("subtracting is `atomic_add` of the negative value")),
    ("atomicInc", Form(WRAPPED)),
    ("atomicDec", Form(WRAPPED)),
    ("roundf", Form("`round(x)` takes halves to the even integer, CUDA's `roundf` away from zero")),
    ("float", Form("a cast is written `x as f32`; infinity is `inf`")),
    ("int", Form("a cast is written `x as i32`")),
    ("lambda", Form("a lambda is written `|a, b| a + b`")),
];

/// Names that mean something else where a type is wanted.
pub(super) const TYPES: &[(&str, Here)] = &[
    ("int", Name("i32")),
    ("long", Name("i64")),
    ("uint", Name("u32")),
    ("float", Name("f32")),
    ("double", Name("f64")),
    ("half", Name("f16")),
    ("array", Form(ARRAY)),
    ("ndarray", Form(ARRAY)),
    ("Tensor", Form(ARRAY)),
    ("list", Form(ARRAY)),
    ("str", Form(CHOICE)),
    ("string", Form(CHOICE)),
];

/// Members and methods of arrays, where the function of that name is no answer.
pub(super) const MEMBERS: &[(&str, Here)] = &[
    ("transpose", Form("`x.T` transposes a matrix, and `x.permute([..])` reorders dimensions")),
    ("t", Form("`x.T` transposes a matrix")),
    ("mT", Form("`x.permute([..])` reorders dimensions")),
    ("size", Form("the extents are `x.shape[0]` and so on; the number of elements is their product")),
    ("numel", Form("the extents are `x.shape[0]` and so on; the number of elements is their product")),
    ("ndim", Form("the rank is part of the type, as in `x: tile[f32, M, N]` and `x: view[f32, 2]`")),
    (
        "dtype",
        Form("the element type is part of the type; a parameter names it, `fn f[T: float](x: tile[T, N])`"),
    ),
    (
        "element_ty",
        Form("the element type is part of the type; a parameter names it, `kernel k[T: float](x: *T)`"),
    ),
    ("item", Form("`x[0]` is an element of a tile, and `sum(x)` of a tile of one element its value")),
    ("half", Form("a cast is written `x as f16`")),
    ("double", Form("a cast is written `x as f64`")),
    ("astype", Form("a cast is written `x as f32`")),
    ("to", Form("a cast is written `x as f32`")),
    ("copy", Form("values do not change, so nothing needs a copy")),
    ("clone", Form("values do not change, so nothing needs a copy")),
    ("contiguous", Form("values do not change, so nothing needs a copy")),
    ("numpy", Form("kernels work on the memory of the device itself")),
    ("cpu", Form("kernels work on the memory of the device itself")),
    ("cuda", Form("kernels work on the memory of the device itself")),
    ("data_ptr", Form("a view has its pointer in `x.ptr`")),
    ("stride", Form("a view has `x.strides[0]` and so on")),
];

/// Names of Triton's language that are the same here, and what differs.
pub(super) const DIFFERENT: &[(&str, &str)] = &[
    ("softmax", "`softmax(x)` is along the last axis, Triton's along the first: `softmax(x, axis = 0)`"),
    ("rand", "the numbers are others than Triton's, which `random::triton_rand` of the library gives"),
    ("randn", "the numbers are others than Triton's, which `random::triton_randn` of the library gives"),
    ("atomic_add", RELAXED),
    ("atomic_and", RELAXED),
    ("atomic_or", RELAXED),
    ("atomic_xor", RELAXED),
    ("atomic_max", RELAXED),
    ("atomic_min", RELAXED),
    ("atomic_xchg", RELAXED),
    ("atomic_cas", RELAXED),
    ("atomic_load", "its order is `relaxed` here; Triton's is `order = acquire`"),
    ("atomic_store", "its order is `relaxed` here; Triton's is `order = release`"),
];

/// Functions of namespaces of C++: the namespace, the function unless it is any, and what is said.
pub(super) const NAMESPACES: &[(&str, Option<&str>, &str)] = &[
    ("cg", None, "`grid_barrier()` waits for all programs of a kernel with `launch(cooperative = true)`"),
    ("std", Some("min"), "the smaller of two values is `minimum(a, b)`"),
    ("std", Some("max"), "the larger of two values is `maximum(a, b)`"),
];

/// Members of the dimensions of CUDA, and the axes.
pub(super) const AXES: &[(&str, u32)] = &[("x", 0), ("y", 1), ("z", 2)];

/// What is written with such members, and the function of an axis.
pub(super) const DIMENSIONS: &[(&str, &str)] = &[
    ("blockIdx", "program_id"),
    ("gridDim", "num_programs"),
    ("program_id", "program_id"),
    ("num_programs", "num_programs"),
];

/// Parameters that another operation has: the operation, the parameter, and which one has it.
pub(super) const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "`load`",
        "mask",
        "a view reads `other` outside of its bounds; `x.gather([positions], mask = m)` takes a mask",
    ),
    (
        "`store`",
        "mask",
        "a view writes nothing outside of its bounds; `y.scatter([positions], value, mask = m)` takes a mask",
    ),
    ("`dot`", "allow_tf32", "`precision = tf32` allows it; the default, `ieee`, keeps all bits"),
    ("`dot`", "out_dtype", "the result has the type of `acc`, as in `dot(a, b, zeros([BM, BN], f32))`"),
];

pub(super) const TABLE: &str =
    "a list is a constant, `const TABLE = [1.0, 2.0];`, and `gather(TABLE, arange(0, N))` makes a tile of it";
const RANDOM: &str = "random numbers are `uniform([N], 0.0, 1.0, f32, seed = 1)` in a test and `rand(seed, offsets)` in a kernel";
const SHARED: &str = "a tile is a value, and the compiler uses shared memory where lanes exchange";
const OPERATORS: &str = "arithmetic is written `a + b`, `a - b`, `a * b`, `a / b`, on tiles too";
pub(super) const SELECTED: &str = "a shape is known before the values are, so no tile has only some elements; `where(c, x, 0.0)` puts a number in place of the others";
const FENCE: &str = "atomics have an order, as in `atomic_store(flag, 1, order = release)`";
const RELAXED: &str = "its order is `relaxed` here; Triton's is `order = acq_rel`";
const WRAPPED: &str = "a counter that wraps is a loop with `atomic_cas`";
const LANES: &str = "`sum`, `max`, `reduce`, `cumsum` and `scan` of a tile exchange between lanes";
const ARRAY: &str =
    "an array in memory is a `view[f32, 1]` (1 is its rank), or a `mut view[f32, 1]` if it is written";
const CHOICE: &str =
    "there are no texts as parameters; a choice is a `bool` or a function, as in `ACT: fn(f32) -> f32`";
