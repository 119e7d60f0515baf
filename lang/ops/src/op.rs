//! The operations of the tile IR: [`Op`], one enum per class, so that every match stays short.
//!
//! What a user can write is a row of the table ([`crate::table`]); each row names the `Op` that carries its
//! meaning. Several rows may share an `Op` (`zeros` and `full`), and internal operations have no row.

pub use crate::elementwise::ElementwiseOp;

macro_rules! ops {
    ($(#[$doc:meta])* $enum:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $enum { $($(#[$vdoc])* $variant,)* }
        impl $enum {
            /// Every operation of the class.
            pub const ALL: &'static [$enum] = &[$($enum::$variant),*];
            /// The name in IR text.
            pub fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)* }
            }
        }
    };
}

ops! {
    /// Values from nothing or from scalars.
    CreateOp {
        /// A literal; attribute `value`; the result is rank 0 or a tile filled with it.
        Const = "const",
        /// A tile with a literal for each element; attribute `values`, the bits of the elements in row-major order.
        Table = "table",
        /// `iota`: i32 tile of rank 1 with `start, start + 1, ..`; attribute `start`.
        Arange = "arange",
        /// A tile filled with a scalar operand (numbers, bool, pointers).
        Splat = "splat",
        /// Any value of the type; reading it is a compiler bug. Any type.
        Undef = "undef",
    }
}

ops! {
    /// Rearrangements; the elements stay as they are. Pointers too.
    ShapeOp {
        /// To the shape of the result, row-major order kept, element count equal. Rank 0 is allowed.
        Reshape = "reshape",
        /// Attribute `perm`: result dimension i is operand dimension perm[i].
        Permute = "permute",
        /// Dimensions of extent 1 are repeated; ranks are equal.
        Broadcast = "broadcast",
        /// Attribute `axis`.
        Flip = "flip",
        /// Static slice; attributes `starts`; extents are the result's.
        Slice = "slice",
        /// Two tiles to one with a new last dimension of 2.
        Join = "join",
        /// The inverse of `join`: two results.
        Split = "split",
        /// Concatenation; attribute `axis`.
        Cat = "cat",
        /// Alternating elements along the last dimension.
        Interleave = "interleave",
    }
}

ops! {
    /// Device memory.
    MemoryOp {
        /// `ptr_add(p, offset)`: offset in elements, any integer type; p and offset of one shape.
        PtrAdd = "ptr_add",
        /// `load(p [, mask [, other]])`, all of one shape.
        Load = "load",
        /// `store(p, value [, mask])`, all of one shape, no result.
        Store = "store",
        /// `view(ptr, extents.., strides..)`: scalars; strides in elements.
        View = "view",
        /// Extent of a view; attribute `axis`; result i32 or i64 as the view is.
        ViewShape = "view_shape",
        /// Stride of a view in elements; attribute `axis`; result i64.
        ViewStride = "view_stride",
        /// Base pointer of a view.
        ViewPtr = "view_ptr",
        /// Sub-view; attribute `axes`: per axis 0 = index (one operand; the axis goes away), 1 = whole, 2 = `a:b`
        /// (two operands), clamped to the extent. Operands: the view, then these integers in order.
        ViewSlice = "view_slice",
        /// Attribute `perm` as in `permute`.
        ViewPermute = "view_permute",
        /// `view_load(v, at.. [, other])`: one position per axis; the result's shape is the box; rank 0 is one element.
        /// `other` has the result's type. Positions outside read `other`, zero without it.
        ViewLoad = "view_load",
        /// `view_store(v, at.., value)`; positions outside are not written.
        ViewStore = "view_store",
        /// `view_inside(v, at..)`: the bool tile of the positions inside.
        ViewInside = "view_inside",
        /// `view_gather(v, at.., mask, other)`: integer tiles of one shape, one per axis.
        ViewGather = "view_gather",
        /// `view_scatter(v, at.., value, mask)`.
        ViewScatter = "view_scatter",
        /// A hint.
        Prefetch = "prefetch",
    }
}

ops! {
    /// Atomic read-modify-write; attributes `order`, `scope`. Operands: pointer (or view and positions), value, [compare], [mask].
    #[allow(missing_docs, reason = "documented by their rows in the table")]
    AtomicOp {
        Add = "atomic_add", Max = "atomic_max", Min = "atomic_min", And = "atomic_and", Or = "atomic_or", Xor = "atomic_xor",
        Xchg = "atomic_xchg", Cas = "atomic_cas", Load = "atomic_load", Store = "atomic_store",
    }
}

ops! {
    /// One dimension folded away; attribute `axis`; the result drops that dimension.
    ReduceOp {
        /// Sums; f16 and bf16 accumulate in f32; bool and small integers give i32 or u32.
        Sum = "sum",
        /// Products, typed as sums.
        Prod = "prod",
        /// NaN wins; -0 < +0.
        Max = "max",
        /// NaN wins; -0 < +0.
        Min = "min",
        /// Any bool.
        Any = "any",
        /// Every bool.
        All = "all",
        /// Exclusive or of integers.
        XorSum = "xor_sum",
        /// Bits set in any integer.
        Or = "reduce_or",
        /// i32 position of the first of the largest; the first NaN if there is one.
        ArgMax = "argmax",
        /// i32 position of the first of the smallest; the first NaN if there is one.
        ArgMin = "argmin",
        /// User function: block `combine(a.., b..)`, n operands and n results.
        Custom = "reduce",
    }
}

ops! {
    /// Running folds, sorting and counting along one dimension; attribute `axis`.
    ScanOp {
        /// Running sum.
        CumSum = "cumsum",
        /// Running product.
        CumProd = "cumprod",
        /// User function: block `combine(a.., b..)`; attribute `reverse`.
        Custom = "scan",
        /// Keys, then optional values; stable; NaN last; attribute `descending`.
        Sort = "sort",
        /// Values and i32 indices of the k largest; attribute `k`.
        TopK = "topk",
        /// Counts per bin; attribute `bins`; operands values [, mask].
        Histogram = "histogram",
        /// `gather(x, idx)`: elements of x along `axis`.
        Gather = "gather",
    }
}

ops! {
    /// Matrix products.
    DotOp {
        /// `dot(a [M, K], b [K, N], acc [M, N])`; accumulates in the type of `acc`; attribute `precision` for f32.
        Dot = "dot",
        /// Block-scaled.
        DotScaled = "dot_scaled",
    }
}

ops! {
    /// Philox-4x32-10; operands seed (u64), offset.
    #[allow(missing_docs, reason = "documented by their rows in the table")]
    RandomOp { Rand = "rand", Rand4 = "rand4", Randn = "randn", RandInt = "randint", }
}

ops! {
    /// The program, control flow, hints and debugging.
    ControlOp {
        /// i32; attribute `axis`. Operands: none, or two numbers whose product is the extent of the grid along that axis.
        ProgramId = "program_id",
        /// i32; attribute `axis`.
        NumPrograms = "num_programs",
        /// Operands lo, hi, step, carried..; block (iv, carried..) ends in `yield carried..`; results carried. Step may
        /// be negative; a step of 0 is a fault. Attributes `stages`, `unroll`, `flatten`, `specialize`,
        /// `turns`.
        For = "for",
        /// Operands carried..; first block (carried..) ends in `condition c, forwarded..`; second block (forwarded..)
        /// ends in `yield carried..`; results forwarded.
        While = "while",
        /// Operand cond; two blocks without arguments that end in `yield`; results.
        If = "if",
        /// Ends a block of `for`, the second of `while`, `if`, `map`, `reduce`, `scan`.
        Yield = "yield",
        /// Ends the first block of `while`: bool, then the forwarded values.
        Condition = "condition",
        /// Ends the body of a function: its results.
        Return = "return",
        /// Attribute `callee`.
        Call = "call",
        /// Scalar function per element: operands of one shape; block of scalars that ends in `yield`; results of that shape.
        Map = "map",
        /// Promise that the bool operand is true.
        Assume = "assume",
        /// Promise; attribute `value`; result is the operand.
        MultipleOf = "multiple_of",
        /// Promise; attribute `value`; result is the operand.
        MaxContiguous = "max_contiguous",
        /// Device assert: bool [tile]; attribute `message`.
        Assert = "assert",
        /// Prints operands; attribute `message`.
        Print = "print",
        /// All programs of a cooperative launch meet.
        GridBarrier = "grid_barrier",
        /// Nanoseconds of a clock that all programs share, u64; all threads of a program get one answer.
        GlobalTimer = "globaltimer",
        /// The number of the multiprocessor that runs this program, i32.
        SmId = "smid",
        /// Text for one target.
        InlineAsm = "inline_asm",
    }
}

ops! {
    /// What `test` blocks do on the host. Effects in program order.
    HostOp {
        /// A tile becomes a contiguous tensor in device memory: result is a mut view.
        Buffer = "host_buffer",
        /// An uninitialized contiguous tensor: result is a mut view. Attribute `shape`.
        Empty = "host_empty",
        /// A table of the addresses of its operands, views of one element type: result is a mut view of pointers.
        Pointers = "host_pointers",
        /// Reads a view back: the result's shape must be the view's.
        Tile = "host_tile",
        /// Launches kernel `callee` with compile-time arguments `cargs` (text `A = 1, T = f16`); operands are its
        /// arguments in order: views, scalars; a view operand serves for a pointer parameter; `undef` of type i32
        /// with attribute `absent` (list of positions) is an absent optional.
        Launch = "host_launch",
        /// Reproducible normal numbers; attribute `seed`; the result's type says what.
        Randn = "host_randn",
        /// Reproducible uniform numbers in [low, high): operands low, high; attribute `seed`.
        Uniform = "host_uniform",
        /// Contents of an `.npy` file; attribute `path`; the result's type must agree with it.
        Npy = "host_npy",
        /// Operands a, b; attributes `rtol`, `atol`: fails with the worst element.
        AssertClose = "host_assert_close",
        /// One block; passes when running it fails with the diagnostic `code`.
        ExpectError = "host_expect_error",
    }
}

/// An operation of the tile IR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the classes document themselves")]
pub enum Op {
    Elementwise(ElementwiseOp),
    Create(CreateOp),
    Shape(ShapeOp),
    Memory(MemoryOp),
    Atomic(AtomicOp),
    Reduce(ReduceOp),
    Scan(ScanOp),
    Dot(DotOp),
    Random(RandomOp),
    Control(ControlOp),
    Host(HostOp),
    /// Of a code generator, whose own type has its name and its fields; no tile module has one.
    Target,
}

impl Op {
    /// The name in IR text, unique over all classes.
    pub fn name(self) -> &'static str {
        match self {
            Op::Elementwise(o) => o.name(),
            Op::Create(o) => o.name(),
            Op::Shape(o) => o.name(),
            Op::Memory(o) => o.name(),
            Op::Atomic(o) => o.name(),
            Op::Reduce(o) => o.name(),
            Op::Scan(o) => o.name(),
            Op::Dot(o) => o.name(),
            Op::Random(o) => o.name(),
            Op::Control(o) => o.name(),
            Op::Host(o) => o.name(),
            Op::Target => "target",
        }
    }

    /// Every operation of tile IR.
    pub fn all() -> impl Iterator<Item = Op> {
        let e = ElementwiseOp::ALL.iter().map(|o| Op::Elementwise(*o));
        let c = CreateOp::ALL.iter().map(|o| Op::Create(*o));
        let s = ShapeOp::ALL.iter().map(|o| Op::Shape(*o));
        let m = MemoryOp::ALL.iter().map(|o| Op::Memory(*o));
        let a = AtomicOp::ALL.iter().map(|o| Op::Atomic(*o));
        let r = ReduceOp::ALL.iter().map(|o| Op::Reduce(*o));
        let n = ScanOp::ALL.iter().map(|o| Op::Scan(*o));
        let d = DotOp::ALL.iter().map(|o| Op::Dot(*o));
        let x = RandomOp::ALL.iter().map(|o| Op::Random(*o));
        let k = ControlOp::ALL.iter().map(|o| Op::Control(*o));
        let h = HostOp::ALL.iter().map(|o| Op::Host(*o));
        e.chain(c).chain(s).chain(m).chain(a).chain(r).chain(n).chain(d).chain(x).chain(k).chain(h)
    }

    /// The operation with this name.
    pub fn parse(name: &str) -> Option<Op> {
        Op::all().find(|o| o.name() == name)
    }
}

impl HostOp {
    /// Whether functions that tests call may have it: it makes values or compares them, and touches no buffer.
    pub fn makes_inputs(self) -> bool {
        match self {
            HostOp::Randn | HostOp::Uniform | HostOp::Npy | HostOp::AssertClose => true,
            HostOp::Buffer
            | HostOp::Empty
            | HostOp::Pointers
            | HostOp::Tile
            | HostOp::Launch
            | HostOp::ExpectError => false,
        }
    }
}
