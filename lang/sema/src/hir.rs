//! The HIR: what a checked program says, generic and typed.
//!
//! Names are resolved, arguments are in the order of their parameters, operators and builtins are rows of the op
//! table, implicit lossless conversions are explicit casts. Broadcasting stays implicit: the result type of a builtin
//! says to which shape its operands go. Types may mention compile-time variables; a specialization gives them values
//! ([`crate::eval::Bindings`]).

use tk_ops::table::Row;
use tk_ops::{DType, DTypeSet};
use tk_syntax::{FileId, Span};

use crate::target::{DeviceFact, TargetFact};
use crate::types::{CTerm, DTerm, Ty};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
    )*};
}

ids! {
    /// A compile-time variable of the program: a compile-time parameter, a `static_range` or test-loop variable.
    CVarId;
    /// A function, kernel, method or test: index into [`Hir::fns`].
    FnId;
    /// A struct: index into [`Hir::structs`].
    StructId;
    /// A global or local `const`: index into [`Hir::consts`].
    ConstId;
    /// A run-time variable of one function: index into [`HFn::locals`].
    LocalId;
}

/// A checked program: all files that were reached.
#[derive(Clone, Debug, Default)]
pub struct Hir {
    /// Functions, kernels, methods, tests.
    pub fns: Vec<HFn>,
    /// Structs.
    pub structs: Vec<HStruct>,
    /// Constants.
    pub consts: Vec<HConst>,
    /// Compile-time variables.
    pub cvars: Vec<CVar>,
    /// Compile-time integer expressions without polynomial form ([`crate::poly::Atom::Opaque`]).
    pub opaque: Vec<HExpr>,
    /// `export`s of kernels.
    pub exports: Vec<HExport>,
    /// Functions that options of the command give to kernels.
    pub given: Vec<Given>,
}

/// A function that an option of the command writes for a compile-time parameter: `--set 'ACT=|v| v + v'`.
#[derive(Clone, Debug)]
pub struct Given {
    /// The parameter.
    pub param: CVarId,
    /// The text of the option.
    pub text: String,
    /// Its value, of a source of its own.
    pub value: HExpr,
}

/// A compile-time variable.
#[derive(Clone, Debug)]
pub struct CVar {
    /// Its name.
    pub name: String,
    /// The range of its values.
    pub kind: CKind,
    /// Its default: may use earlier variables and, in kernels, run-time parameters (evaluated at launch).
    pub default: Option<HExpr>,
    /// The place of its declaration.
    pub span: Span,
}

/// The range of a compile-time variable.
#[derive(Clone, Debug, PartialEq)]
pub enum CKind {
    /// Integers of a type (i32 unless written otherwise).
    Int(DType),
    /// Floats of a type.
    Float(DType),
    /// `bool`
    Bool,
    /// Element types out of a set.
    DType(DTypeSet),
    /// Lists of extents.
    Shape,
    /// Functions of this type.
    Fn(Vec<Ty>, Box<Ty>),
    /// Not known because of an error.
    Err,
}

/// A constant.
#[derive(Clone, Debug)]
pub struct HConst {
    /// Its name.
    pub name: String,
    /// Its value, a compile-time expression; local ones may use the compile-time variables of their function.
    pub value: HExpr,
    /// The same where a use makes a float of the literals in it, if that may be another number: `1 / 2` is .5 then.
    pub real: Option<HExpr>,
    /// The place of its declaration.
    pub span: Span,
}

/// A struct.
#[derive(Clone, Debug)]
pub struct HStruct {
    /// Its name.
    pub name: String,
    /// Its compile-time parameters.
    pub cparams: Vec<CVarId>,
    /// Names, types and places of its fields.
    pub fields: Vec<(String, Ty, Span)>,
    /// Its methods by name; their first parameter is `self`.
    pub methods: Vec<(String, FnId)>,
    /// The place of its declaration.
    pub span: Span,
    /// Its file.
    pub file: FileId,
}

/// The kinds of an [`HFn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FnKind {
    /// Callable from kernels and functions.
    Fn,
    /// Launched.
    Kernel,
    /// A `test` block: host code without parameters.
    Test,
}

/// A function, kernel, method or test.
#[derive(Clone, Debug)]
pub struct HFn {
    /// Its name (the text of a test).
    pub name: String,
    /// The kind of function.
    pub kind: FnKind,
    /// Its file.
    pub file: FileId,
    /// The name.
    pub span: Span,
    /// The doc comment.
    pub doc: String,
    /// Compile-time parameters: those of the struct for a method, those in `[..]`, then the `const` ones of `(..)`.
    pub cparams: Vec<CVarId>,
    /// Run-time parameters in order.
    pub params: Vec<HParam>,
    /// Result type.
    pub ret: Ty,
    /// Launch contract of a kernel; `require`s of a function.
    pub contract: Contract,
    /// All variables, parameters first.
    pub locals: Vec<Local>,
    /// The body.
    pub body: HBlock,
    /// `@fast`
    pub fast: bool,
    /// `@noinline`
    pub noinline: bool,
    /// Whether checking found an error in it: it cannot be specialized.
    pub broken: bool,
}

/// A run-time parameter.
#[derive(Clone, Debug)]
pub struct HParam {
    /// Its name.
    pub name: String,
    /// Its variable.
    pub local: LocalId,
    /// Its type.
    pub ty: Ty,
    /// Its default: a compile-time expression.
    pub default: Option<HExpr>,
    /// The place of its declaration.
    pub span: Span,
}

/// A run-time variable.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its name.
    pub name: String,
    /// Its type; fixed by its first assignment when it is declared without value.
    pub ty: Ty,
    /// Whether it may be assigned again.
    pub mutable: bool,
    /// Whether its value is known at compile time.
    pub known: bool,
    /// The place of its declaration.
    pub span: Span,
}

/// The clauses of a kernel. All expressions are closed over parameters and compile-time variables.
#[derive(Clone, Debug, Default)]
pub struct Contract {
    /// 1 to 3 extents; empty without the clause (the grid is 1).
    pub grid: Vec<HExpr>,
    /// Conditions.
    pub require: Vec<Requirement>,
    /// The conditions of each `prefer`: a binary is made for each of these lists.
    pub prefer: Vec<Vec<Requirement>>,
    /// `launch(name = value)`.
    pub launch: Vec<(String, HExpr)>,
    /// Pairs of parameters declared to alias.
    pub alias: Vec<(LocalId, LocalId)>,
    /// `tune`: key and rows; values may be lists.
    pub tune: Option<Tune>,
    /// Workspaces: parameter-like locals, element counts, what they hold.
    pub scratch: Vec<Scratch>,
}

/// A workspace asked for by `scratch(name: *mut T, count, zeroed = true, restored = true)`.
#[derive(Clone, Debug)]
pub struct Scratch {
    /// The pointer's variable.
    pub local: LocalId,
    /// How many elements.
    pub count: HExpr,
    /// Whether it is zero before every launch.
    pub zeroed: bool,
    /// Whether the kernel leaves it zero.
    pub restored: bool,
}

/// A tuning space.
#[derive(Clone, Debug, Default)]
pub struct Tune {
    /// The values that a tuning result depends on.
    pub key: Vec<HExpr>,
    /// Rows of (name, values) with an optional condition.
    pub rows: Vec<HTuneRow>,
}

/// A row of a tuning space: values by name, and when the row applies.
pub type HTuneRow = (Vec<(String, Vec<HExpr>)>, Option<HExpr>);

/// A condition with its text as written.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// The condition.
    pub cond: HExpr,
    /// Its text.
    pub text: String,
    /// Whether it only uses compile-time values and so is checked at specialization.
    pub compile_time: bool,
    /// Optional parameters whose extents it asks for; without one of them it says nothing.
    pub optionals: Vec<LocalId>,
}

/// `export k[T = [f16, bf16]]`
#[derive(Clone, Debug)]
pub struct HExport {
    /// The kernel.
    pub kernel: FnId,
    /// Values per variable.
    pub values: Vec<(CVarId, Vec<HExpr>)>,
    /// The name of the kernel in it.
    pub span: Span,
}

/// A typed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct HExpr {
    /// The kind of expression.
    pub kind: HKind,
    /// Its type.
    pub ty: Ty,
    /// Its span.
    pub span: Span,
    /// Whether its value is known at specialization.
    pub konst: bool,
}

/// The kinds of expression.
#[derive(Clone, Debug, PartialEq)]
pub enum HKind {
    /// A hole.
    Err,
    /// An integer; its type may be a float type too (`1` as f32).
    Int(i128),
    /// A float.
    Float(f64),
    /// A bool.
    Bool(bool),
    /// Text.
    Str(String),
    /// `None`: an absent optional.
    None,
    /// `()`
    Unit,
    /// A run-time variable.
    Local(LocalId),
    /// A compile-time variable. Its type is scalar, `DType`, `ShapeTy` or `Fn`.
    CVar(CVarId),
    /// A constant.
    Const(ConstId),
    /// An element type as a value.
    DType(DTerm),
    /// `T.bits`, `T.min`, `T.max`: the name is one of these.
    DTypeFact(DTerm, &'static str),
    /// A list of extents as a value (type `ShapeTy`): compile-time integers.
    Shape(Vec<HExpr>),
    /// `target.x`
    Target(&'static TargetFact),
    /// `device.x` (clauses only).
    Device(DeviceFact),
    /// A tuple; `[a, b]` in value position is one too.
    Tuple(Vec<HExpr>),
    /// A compile-time list of numbers as a tile; the list is a tuple, of tuples where the rank is above 1.
    Table(Box<HExpr>),
    /// A struct value: fields in declaration order. The type names the struct.
    Struct(Vec<HExpr>),
    /// Field of a struct or element of a tuple.
    Field(Box<HExpr>, u32),
    /// A row of the op table. One entry per parameter of the row; `Rest` parameters and lists (`Position`,
    /// `Positions`) are [`HArg::List`].
    Builtin(&'static Row, Vec<HArg>),
    /// `a && b`, `a || b` on single bools: the second is evaluated only if needed.
    ShortCircuit {
        /// `||` instead of `&&`.
        or: bool,
        /// First operand.
        lhs: Box<HExpr>,
        /// Second operand.
        rhs: Box<HExpr>,
    },
    /// Conversion to the element or pointer type of `ty`; also implicit widening, `*mut T` to `*T`, `mut view` to `view`.
    Cast(Box<HExpr>),
    /// A tile indexed: dimensions in order.
    Index(Box<HExpr>, Vec<HIndex>),
    /// `.T` of a tile (rank 2).
    Transpose(Box<HExpr>),
    /// A sub-view: one entry per axis.
    SubView(Box<HExpr>, Vec<HSlice>),
    /// `v.T` (all axes reversed).
    ViewT(Box<HExpr>),
    /// `v.ptr`
    ViewPtr(Box<HExpr>),
    /// `v.shape[axis]`: i32 or i64. `v.shape` alone is a `Tuple` of these. On a buffer too.
    Extent(Box<HExpr>, u32),
    /// `v.strides[axis]`: i64.
    Stride(Box<HExpr>, u32),
    /// `v.shape` or `v.strides` of a view whose rank is a parameter: a list.
    Extents {
        /// The view.
        view: Box<HExpr>,
        /// Strides instead of extents.
        strides: bool,
    },
    /// An entry of a list, at a compile-time position.
    Entry(Box<HExpr>, Box<HExpr>),
    /// A call of a known function.
    Call {
        /// The function.
        callee: FnId,
        /// Its compile-time arguments, in order of `HFn::cparams`.
        cargs: Vec<(CVarId, CTerm)>,
        /// Its arguments in order, defaults filled in.
        args: Vec<HExpr>,
    },
    /// A call of a compile-time function value.
    CallValue {
        /// The function: `CVar`, `Lambda`, `FnRef` or a constant expression of these.
        callee: Box<HExpr>,
        /// Arguments.
        args: Vec<HExpr>,
    },
    /// A function as a value, its compile-time arguments known.
    FnRef(FnId, Vec<(CVarId, CTerm)>),
    /// A builtin as a value (`map(exp, x)`); its type says with which element types.
    BuiltinRef(&'static Row),
    /// A lambda: parameters are locals of the enclosing function; captures compile-time values only.
    Lambda {
        /// Parameters in order (patterns have been taken apart by `let`s in the body).
        params: Vec<LocalId>,
        /// The result.
        body: Box<HExpr>,
    },
    /// Launch of a kernel, in tests.
    Launch {
        /// The kernel.
        kernel: FnId,
        /// Compile-time arguments that were given or follow from the arguments' types.
        cargs: Vec<(CVarId, CTerm)>,
        /// Arguments in order; buffers, scalars, `None`.
        args: Vec<HExpr>,
    },
    /// `if`; decided at specialization when `cond.konst`, and then the arms may differ in type: the taken arm counts.
    If {
        /// The condition.
        cond: Box<HExpr>,
        /// Then.
        then: Box<HBlock>,
        /// Else; absent: no value.
        els: Option<Box<HBlock>>,
    },
    /// `if let bind = opt { .. }`: decided at specialization by the presence of the optional.
    IfLet {
        /// The optional value.
        opt: Box<HExpr>,
        /// The view inside.
        bind: LocalId,
        /// Present.
        then: Box<HBlock>,
        /// Absent.
        els: Option<Box<HBlock>>,
    },
    /// A block.
    Block(Box<HBlock>),
    /// `return` in tail position (type `Never`).
    Return(Option<Box<HExpr>>),
}

/// An argument of a builtin.
#[derive(Clone, Debug, PartialEq)]
pub enum HArg {
    /// Not given: the row's default.
    Default,
    /// A value.
    Expr(HExpr),
    /// A list of values.
    List(Vec<HExpr>),
    /// A shape: compile-time, also as the type's.
    Shape(crate::types::Shape),
    /// A word (`acquire`).
    Word(&'static str),
}

/// One entry between the brackets after a tile.
#[derive(Clone, Debug, PartialEq)]
pub enum HIndex {
    /// `None`: a new dimension of 1.
    New,
    /// `:`
    Whole,
    /// `a:b`, compile-time.
    Slice(Box<HExpr>, Box<HExpr>),
    /// `i`, compile-time: the dimension goes away.
    At(Box<HExpr>),
}

/// One entry between the brackets after a view.
#[derive(Clone, Debug, PartialEq)]
pub enum HSlice {
    /// `:`
    Whole,
    /// `a:b`; a missing end is the extent.
    Range(Option<Box<HExpr>>, Option<Box<HExpr>>),
    /// `i`: the dimension goes away.
    At(Box<HExpr>),
}

/// A block.
#[derive(Clone, Debug, PartialEq)]
pub struct HBlock {
    /// Statements.
    pub stmts: Vec<HStmt>,
    /// Value.
    pub tail: Option<Box<HExpr>>,
    /// With braces.
    pub span: Span,
}

/// A pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum HPat {
    /// A variable.
    Local(LocalId),
    /// `_`, or a hole.
    Ignore,
    /// Parts of a tuple.
    Tuple(Vec<HPat>),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct HStmt {
    /// The kind of statement.
    pub kind: HStmtKind,
    /// Its span.
    pub span: Span,
}

/// The kinds of statement.
#[derive(Clone, Debug, PartialEq)]
pub enum HStmtKind {
    /// A hole.
    Err,
    /// `let p = e;` (without value: assigned later on every path before it is read).
    Let(HPat, Option<HExpr>),
    /// Assignment to a variable or to a field path of it. Compound assignments have been expanded.
    Assign {
        /// The variable.
        local: LocalId,
        /// Field and element numbers, outermost first.
        path: Vec<u32>,
        /// The new value, of the type of the place.
        value: HExpr,
    },
    /// Evaluated for its effect.
    Expr(HExpr),
    /// `for i in range(..)`
    For {
        /// The loop variable.
        var: LocalId,
        /// First value, end, step: of the variable's type.
        lo: HExpr,
        /// End.
        hi: HExpr,
        /// Step, compile-time or run-time.
        step: HExpr,
        /// `stages`, `unroll`, `flatten`, `specialize`, `turns`: compile-time values.
        options: Vec<(&'static str, HExpr)>,
        /// The body.
        body: HBlock,
    },
    /// `for x in static_range(..)` and `for T in [..]`: unrolled at specialization.
    StaticFor {
        /// The variable.
        var: CVarId,
        /// Its values.
        iter: StaticIter,
        /// The body.
        body: HBlock,
    },
    /// `while`
    While {
        /// The condition.
        cond: HExpr,
        /// The body.
        body: HBlock,
    },
    /// `return`
    Return(Option<HExpr>),
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `assert_error "E0704" { .. }`: the body is `None` when checking it already gave the diagnostic.
    AssertError {
        /// The expected code.
        code: String,
        /// The body, if it must run.
        body: Option<HBlock>,
    },
}

/// The values of a compile-time loop.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "there are few loops")]
pub enum StaticIter {
    /// Start, end, step.
    Range(HExpr, HExpr, HExpr),
    /// A list.
    List(Vec<HExpr>),
}

impl HExpr {
    /// A hole at a place.
    pub fn err(span: Span) -> HExpr {
        HExpr { kind: HKind::Err, ty: Ty::Err, span, konst: false }
    }
}

impl Hir {
    /// The function.
    pub fn func(&self, id: FnId) -> &HFn {
        &self.fns[id.0 as usize]
    }
    /// The compile-time variable.
    pub fn cvar(&self, id: CVarId) -> &CVar {
        &self.cvars[id.0 as usize]
    }
    /// The struct.
    pub fn strukt(&self, id: StructId) -> &HStruct {
        &self.structs[id.0 as usize]
    }
    /// The constant.
    pub fn constant(&self, id: ConstId) -> &HConst {
        &self.consts[id.0 as usize]
    }
    /// The kernels, in order.
    pub fn kernels(&self) -> impl Iterator<Item = (FnId, &HFn)> {
        let kernels = self.fns.iter().enumerate().filter(|(_, f)| f.kind == FnKind::Kernel);
        kernels.map(|(i, f)| (FnId(i as u32), f))
    }
    /// The tests, in order.
    pub fn tests(&self) -> impl Iterator<Item = (FnId, &HFn)> {
        self.fns.iter().enumerate().filter(|(_, f)| f.kind == FnKind::Test).map(|(i, f)| (FnId(i as u32), f))
    }
}
