//! The invariants of tile IR, numbered, and [`TileModule`], which exists only if they hold.
//!
//! May assume nothing about a module, not even that its ids are in range. Guarantees an answer without a panic; the
//! first violation in the order of the text is reported.
//!
//! | | |
//! |---|---|
//! | V01 | Function names are unique and not empty. |
//! | V02 | Every parameter of a function has an entry in `param_names`; a pair of `alias` is of two of them. |
//! | V03 | A kernel has no results, and its parameters are scalars, pointers and views. A test has neither parameters nor results. |
//! | V04 | A tile has rank 0 to 5, extents of at least 1 and at most 2^20 elements; a view has rank 1 to 5. |
//! | V05 | Every block has one owner, every instruction is in one place, every value knows where it is defined; all ids are in range; blocks nest at most [`MAX_NESTING`] deep. |
//! | V06 | Every block ends in the terminator that its owner asks for, and holds no other. |
//! | V07 | A value is used after its definition, in the same block or in blocks inside. |
//! | V08 | An operation has its number of operands, blocks and results. |
//! | V09 | An operation has the attributes that it needs, none that it does not know, of the right kind and range. |
//! | V10 | The shapes of operands and results fit together. |
//! | V11 | The element types of operands and results fit together; a view is where a view is expected. |
//! | V12 | Block arguments, yielded, forwarded and returned values have the types that their owner asks for. |
//! | V13 | A call names a `fn` or `noinline` of the module and agrees with its signature. |
//! | V14 | No function reaches itself by calls. |
//! | V15 | Host operations stand only in tests, those that make and compare inputs in functions too. |
//! | V16 | What is written through is `mut`: pointers of stores and atomics, views of stores, `mut` results. |
//!
//! Where a type is asked for, the same type with `mut` serves too ([`crate::infer::serves`]).

mod attrs;
mod control;
mod memory;
mod ops;
mod structure;

use std::fmt;
use std::ops::Deref;

use tk_ops::Op;

use crate::callgraph::CallGraph;
use crate::ir::{Func, FuncKind, Id, Inst, InstId, Loc, Module, Type, TypeId};

/// How deep blocks may nest. Source nests a few dozen deep at most and every `else if` is one level; what walks
/// blocks by recursion stays far below the smallest stack (2 MiB) with this.
pub const MAX_NESTING: usize = 256;

/// The most dimensions of a tile or view.
pub const MAX_RANK: usize = 5;

/// The most elements of a tile: the limit of the language.
pub const MAX_COUNT: u64 = 1 << 20;

macro_rules! invariants {
    ($($name:ident)*) => {
        /// The number of an invariant; the list is at the top of [`crate::verify`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "listed at the top of the file")]
        pub enum Invariant { $($name,)* }
        impl Invariant {
            /// Every invariant.
            pub const ALL: &'static [Invariant] = &[$(Invariant::$name,)*];
            /// `V01`
            pub fn name(self) -> &'static str {
                match self { $(Invariant::$name => stringify!($name),)* }
            }
        }
    };
}

invariants! { V01 V02 V03 V04 V05 V06 V07 V08 V09 V10 V11 V12 V13 V14 V15 V16 }

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// Which.
    pub invariant: Invariant,
    /// The name of the function.
    pub func: String,
    /// The instruction, if it is about one.
    pub inst: Option<InstId>,
    /// Where that comes from.
    pub loc: Option<Loc>,
    /// What is wrong, with the name of the operation.
    pub message: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in @{}: {}", self.invariant.name(), self.func, self.message)
    }
}

impl std::error::Error for VerifyError {}

/// A violation without its place.
pub(crate) type Fault = (Invariant, String);
/// What a check gives.
pub(crate) type Check = Result<(), Fault>;

/// A violation.
pub(crate) fn fault<T>(invariant: Invariant, message: impl Into<String>) -> Result<T, Fault> {
    Err((invariant, message.into()))
}

/// A violation unless `ok`.
pub(crate) fn ensure(ok: bool, invariant: Invariant, message: impl FnOnce() -> String) -> Check {
    if ok { Ok(()) } else { Err((invariant, message())) }
}

/// A module for which every invariant holds. It cannot be changed; passes take the module out and build a new one.
#[derive(Clone, Debug)]
pub struct TileModule(Module);

impl TileModule {
    /// Verifies a module.
    pub fn new(module: Module) -> Result<TileModule, VerifyError> {
        verify(&module)?;
        Ok(TileModule(module))
    }

    /// The module, to be changed and verified again.
    pub fn into_inner(self) -> Module {
        self.0
    }
}

impl Deref for TileModule {
    type Target = Module;
    fn deref(&self) -> &Module {
        &self.0
    }
}

/// Checks every invariant.
pub fn verify(module: &Module) -> Result<(), VerifyError> {
    verify_stage(module, false)
}

/// Checks a kernel of a later stage: every invariant, but nothing is asked of the operands, attributes and results of
/// what [`is_machine`] says. The stage checks these itself.
pub fn verify_machine(module: &Module) -> Result<(), VerifyError> {
    verify_stage(module, true)
}

/// Whether only later stages hold an instruction like this: operations of a machine, and parts of reductions.
pub fn is_machine(inst: &Inst) -> bool {
    let in_parts = inst.attrs.flag("part") || inst.attrs.flag("merge");
    matches!(inst.op, Op::Target) || matches!(inst.op, Op::Reduce(_)) && in_parts
}

fn verify_stage(module: &Module, machine: bool) -> Result<(), VerifyError> {
    names(module)?;
    for (_, func) in module.funcs.iter() {
        signature(module, func).map_err(|(invariant, message)| VerifyError {
            invariant,
            func: func.name.clone(),
            inst: None,
            loc: None,
            message,
        })?;
    }
    let signatures = control::Signatures::new(module);
    for (_, func) in module.funcs.iter() {
        structure::func(module, func, &signatures, machine)?;
    }
    CallGraph::new(module).bottom_up().map(|_| ()).map_err(|f| VerifyError {
        invariant: Invariant::V14,
        func: module.funcs[f].name.clone(),
        inst: None,
        loc: None,
        message: "the function reaches itself by calls".into(),
    })
}

/// V01.
fn names(module: &Module) -> Result<(), VerifyError> {
    let mut seen = std::collections::BTreeSet::new();
    for (id, f) in module.funcs.iter() {
        // A test may have any title.
        let message = if f.name.is_empty() && f.kind != FuncKind::Test {
            format!("function number {} has no name", id.index())
        } else if !seen.insert(f.name.as_str()) {
            "two functions have this name".into()
        } else {
            continue;
        };
        let func = f.name.clone();
        return Err(VerifyError { invariant: Invariant::V01, func, inst: None, loc: None, message });
    }
    Ok(())
}

/// V02, V03, and V04 and V05 of what can be seen from outside, so that callers may look at it.
fn signature(module: &Module, func: &Func) -> Check {
    let Some(body) = func.blocks.get(func.body) else {
        return fault(Invariant::V05, "the body does not exist");
    };
    ensure(body.args.len() == func.param_names.len(), Invariant::V02, || {
        format!("{} parameters have {} names", body.args.len(), func.param_names.len())
    })?;
    let wrong =
        func.alias.iter().find(|(x, y)| x == y || [x, y].iter().any(|n| **n as usize >= body.args.len()));
    if let Some((x, y)) = wrong {
        return fault(Invariant::V02, format!("parameters {x} and {y} cannot alias"));
    }
    let mut params = vec![];
    for v in &body.args {
        let Some(value) = func.values.get(*v) else {
            return fault(Invariant::V05, format!("the parameter {v} does not exist"));
        };
        params.push(checked_type(module, value.ty)?);
    }
    for ty in &func.results {
        checked_type(module, *ty)?;
    }
    let plain = |t: &&Type| t.shape().is_none_or(<[u32]>::is_empty);
    match func.kind {
        FuncKind::Fn | FuncKind::NoInline => Ok(()),
        FuncKind::Kernel => {
            ensure(func.results.is_empty(), Invariant::V03, || "a kernel has no results".into())?;
            ensure(params.iter().all(plain), Invariant::V03, || "a tile cannot be passed to a kernel".into())
        }
        FuncKind::Test => ensure(func.results.is_empty() && params.is_empty(), Invariant::V03, || {
            "a test has neither parameters nor results".into()
        }),
    }
}

/// The type with this id, if it exists and is one (V04, V05).
pub(crate) fn checked_type(module: &Module, id: TypeId) -> Result<&Type, Fault> {
    let Some(ty) = module.types.find(id) else {
        return fault(Invariant::V05, format!("{id} does not exist"));
    };
    let ok = match ty {
        Type::Tile { shape, .. } => {
            let count = shape.iter().try_fold(1u64, |n, d| n.checked_mul(u64::from(*d)));
            shape.len() <= MAX_RANK && count.is_some_and(|n| (1..=MAX_COUNT).contains(&n))
        }
        Type::View { rank, .. } => (1..=MAX_RANK as u32).contains(rank),
    };
    if ok {
        Ok(ty)
    } else {
        fault(
            Invariant::V04,
            format!("`{ty}` has an extent of 0, a rank that is out of range, or too many elements"),
        )
    }
}
