//! Computes the assumptions of a variant about its arguments, as guards that a launcher checks.

use tk_bundle::{Expr, Guard, Kind, Machine, TensorMap, Word};
use tk_gpu::ArgFacts;
use tk_ops::DType;

use crate::ship::expr::apply;

/// The value of something that is passed to a function, if an argument has it.
fn value(what: Machine) -> Option<Expr> {
    Some(match what {
        Machine::Address(arg) => Expr::Address(arg),
        Machine::Number(arg) => Expr::Number(arg),
        Machine::Extent(arg, axis, _) => Expr::Extent(arg, axis),
        Machine::Stride(arg, axis) => Expr::Stride(arg, axis),
        Machine::Scratch(_) => return None,
    })
}

/// The assumption of a variant about something that is passed to it. Workspaces need no guard: the driver aligns them
/// to 256 bytes.
pub(crate) fn known(what: Machine, facts: ArgFacts) -> Option<Guard> {
    let value = value(what)?;
    let condition = if facts.one {
        apply(Kind::Eq, 64, vec![value, Expr::Int(1)])
    } else if facts.divisible > 1 {
        let rest = apply(Kind::Rem, 64, vec![value, Expr::Int(facts.divisible.into())]);
        apply(Kind::Eq, 64, vec![rest, Expr::Int(0)])
    } else {
        return None;
    };
    Some(Guard { condition, decides: None })
}

/// The guard that a number is above 0, where pointers may have become views that end there.
pub(crate) fn positive(what: Machine, facts: ArgFacts) -> Option<Guard> {
    let Machine::Number(arg) = what else { return None };
    let condition = apply(Kind::Gt, 64, vec![Expr::Number(arg), Expr::Int(0)]);
    facts.positive.then_some(Guard { condition, decides: None })
}

/// The guards of tensor maps beside the known facts: extents and strides of their tensors are above 0 and below the
/// limit of a map, or all numbers where a tensor is made of a pointer and these.
pub(crate) fn mapped(passed: &[Machine], facts: &[ArgFacts], maps: &[TensorMap]) -> Vec<Guard> {
    let is_view = |arg: u32| passed.iter().any(|m| matches!(m, Machine::Extent(of, ..) if *of == arg));
    let view = |map: &TensorMap| match passed.get(map.address as usize) {
        Some(Machine::Address(arg)) => Some(*arg).filter(|arg| is_view(*arg)),
        _ => None,
    };
    let tensors: Vec<u32> = maps.iter().filter_map(view).collect();
    let made = tensors.len() < maps.len();
    let is_described = |what: &Machine| match what {
        Machine::Extent(arg, ..) | Machine::Stride(arg, _) => tensors.contains(arg),
        Machine::Number(_) => made,
        Machine::Address(_) | Machine::Scratch(_) => false,
    };
    let taken = passed.iter().zip(facts).filter(|(m, f)| f.positive && !f.one && is_described(m));
    let guard = |op, e, than| Guard { condition: apply(op, 64, vec![e, Expr::Int(than)]), decides: None };
    let limits = |e: Expr| [guard(Kind::Gt, e.clone(), 0), guard(Kind::Lt, e, ArgFacts::BOUND)];
    let begins = maps.iter().flat_map(|m| begins(passed, m));
    taken.filter_map(|(m, _)| value(*m)).flat_map(limits).chain(begins).collect()
}

/// The guard that addresses exist where a map begins before its tensor.
fn begins(passed: &[Machine], map: &TensorMap) -> Vec<Guard> {
    let word = |w: Word| match w {
        Word::Passed(i) => value(*passed.get(i as usize)?),
        Word::Value(v) => Some(Expr::Int(v)),
    };
    let bytes = DType::parse(&map.dtype).map_or(1, DType::bytes) as i64;
    let address = passed.get(map.address as usize).copied().and_then(value);
    let before = map.dimensions.iter().filter(|d| d.before).filter_map(|d| {
        let step = apply(Kind::Mul, 64, vec![word(d.stride)?, Expr::Int(bytes)]);
        let before = apply(Kind::Mul, 64, vec![word(d.extent)?, step]);
        let condition = apply(Kind::Gt, 64, vec![address.clone()?, before]);
        Some(Guard { condition, decides: None })
    });
    before.collect()
}
