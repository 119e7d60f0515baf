//! Checks the invariants of a manifest that its types do not express: [`Manifest::check`].

use std::collections::BTreeSet;

use crate::expr::{Expr, Kind};
use crate::manifest::{
    Kernel, Machine, Manifest, MessageForm, MessageKind, ParamKind, TensorMap, Variant, Word,
};

/// The highest rank of a view, from the specification of the language.
const RANK: u32 = 5;

impl Manifest {
    /// Fails with what does not fit together.
    pub fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for k in &self.kernels {
            if !names.insert(k.name.as_str()) {
                return Err(format!("there are two kernels `{}`", k.name));
            }
            k.variants
                .iter()
                .try_for_each(|v| variant(k, v).map_err(|what| format!("kernel `{}`: {what}", k.name)))?;
        }
        Ok(())
    }
}

fn variant(k: &Kernel, v: &Variant) -> Result<(), String> {
    let fails = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_string()) };
    fails(v.dtypes.len() == k.params.len(), "a variant has element types for other arguments")?;
    let entries = v.entries.is_empty() || v.entries.len() == k.params.len();
    fails(entries, "a variant has tables for other arguments")?;
    fails(v.given.len() == k.choices.len(), "a variant has values for other choices")?;
    let chosen = k.choices.iter().zip(&v.given).all(|(c, g)| (g.value as usize) < c.values.len());
    fails(chosen, "a variant has a value that is none of its choice")?;
    fails(v.threads > 0 && v.blocks_per_program > 0, "a variant has no threads or no blocks")?;
    fails(!v.symbol.is_empty() && !v.symbol.contains('\0'), "a variant has no function")?;
    fails(v.messages.iter().all(|m| message(&m.kind)), "a message has a shape that no tile has")?;
    let guards = v.guard.iter().map(|g| &g.condition);
    let required = v.require.iter().map(|r| &r.condition);
    let all = guards.chain(required).chain(&v.grid).chain(v.scratch.iter().map(|s| &s.count));
    for e in all {
        expr(k, v, e)?;
    }
    for m in &v.passed {
        let fits = match m {
            Machine::Address(arg) => tensor(k, v, *arg).is_some(),
            Machine::Number(arg) => number(k, *arg),
            Machine::Extent(arg, axis, bits) => {
                matches!(bits, 32 | 64) && tensor(k, v, *arg).is_some_and(|r| *axis < r)
            }
            Machine::Stride(arg, axis) => tensor(k, v, *arg).is_some_and(|r| *axis < r),
            Machine::Scratch(i) => (*i as usize) < v.scratch.len(),
        };
        fails(fits, "a function is passed what no argument has")?;
    }
    fails(v.maps.iter().all(|m| map(v, m)), "a tensor map describes no tensor that is passed")
}

/// The most elements of a tile, from the specification of the language.
const ELEMENTS: u64 = 1 << 20;

/// Returns true if a tensor map describes a tensor that is passed, as `cuTensorMapEncodeTiled` takes it.
fn map(v: &Variant, map: &TensorMap) -> bool {
    let passed = |i: u32| v.passed.get(i as usize);
    let word = |w: Word| match w {
        Word::Passed(i) => {
            matches!(passed(i), Some(Machine::Extent(..) | Machine::Stride(..) | Machine::Number(_)))
        }
        // The limit of an extent; a stride of that many elements is below that of strides.
        Word::Value(v) => (1..=1 << 32).contains(&v),
    };
    let whole = matches!(passed(map.address), Some(Machine::Address(_)))
        && (2..=5).contains(&map.dimensions.len())
        && map.dimensions.first().is_some_and(|d| !d.before)
        && map.dimensions.iter().all(|d| word(d.extent) && word(d.stride));
    whole && (1..=256).contains(&map.lines) && matches!(map.span, 32 | 64 | 128)
}

/// Returns true if the shapes of a message are those of tiles.
fn message(kind: &MessageKind) -> bool {
    let tile = |shape: &[u32]| {
        let count = shape.iter().try_fold(1u64, |n, d| n.checked_mul((*d).into()));
        shape.len() <= RANK as usize && count.is_some_and(|n| n <= ELEMENTS)
    };
    match kind {
        MessageKind::Assert(shape) => tile(shape),
        MessageKind::Print(forms) => forms.iter().all(|f| match f {
            MessageForm::Numbers { shape, .. } | MessageForm::Pointers { shape, .. } => tile(shape),
            MessageForm::View { rank, .. } => *rank <= RANK,
        }),
    }
}

/// The rank of a tensor that is there; 0 of a pointer.
fn tensor(k: &Kernel, v: &Variant, arg: u32) -> Option<u32> {
    let there = v.dtypes.get(arg as usize)?.is_some();
    match k.params.get(arg as usize)?.kind {
        ParamKind::View { rank, .. } => Some(rank).filter(|r| there && *r <= RANK),
        ParamKind::Pointer { .. } => Some(0).filter(|_| there),
        ParamKind::Number => None,
    }
}

fn number(k: &Kernel, arg: u32) -> bool {
    k.params.get(arg as usize).is_some_and(|p| p.kind == ParamKind::Number)
}

fn expr(k: &Kernel, v: &Variant, e: &Expr) -> Result<(), String> {
    let fits = match e {
        Expr::Int(_) | Expr::Float(_) | Expr::Device(_) => true,
        Expr::Number(arg) => number(k, *arg),
        Expr::Address(arg) => tensor(k, v, *arg).is_some(),
        Expr::Extent(arg, axis) | Expr::Stride(arg, axis) => tensor(k, v, *arg).is_some_and(|r| *axis < r),
        Expr::Apply(o) => {
            let bits = matches!(o.bits, 8 | 16 | 32 | 64)
                && !(o.bits == 64 && matches!(o.op, Kind::Wrap | Kind::WrapUnsigned));
            o.args.iter().try_for_each(|a| expr(k, v, a))?;
            bits && o.args.len() == o.op.arity()
        }
    };
    if fits {
        Ok(())
    } else {
        Err("an expression asks for what no argument has, or has other operands".to_string())
    }
}
