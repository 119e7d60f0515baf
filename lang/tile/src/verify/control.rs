//! Verifies control flow, calls and host operations: their operands, their blocks (V12), signatures (V13).
//!
//! Requires V05; [`blocks`] also requires V06 and V08 for the blocks of the instruction. Guarantees that values enter
//! and leave blocks and cross calls with the expected types.

use std::collections::BTreeMap;

use tk_ops::{ControlOp, DType, DTypeSet, HostOp, Op};

use crate::flow::{Flow, flow};
use crate::infer;
use crate::ir::{BlockId, ElemType, Func, FuncKind, Inst, Module, Type, ValueId};
use crate::verify::Invariant::{V08, V09, V10, V11, V12, V13};
use crate::verify::ops::{Cx, Tile, is_dtype, same_shape, serves, tile, within};
use crate::verify::{Check, ensure, fault};

/// The functions of a module by name.
pub(super) struct Signatures<'a> {
    funcs: BTreeMap<&'a str, &'a Func>,
}

impl<'a> Signatures<'a> {
    pub fn new(module: &'a Module) -> Self {
        Signatures { funcs: module.funcs.iter().map(|(_, f)| (f.name.as_str(), f)).collect() }
    }
}

fn is_scalar(t: Tile<'_>, set: DTypeSet) -> Check {
    ensure(t.shape.is_empty(), V10, || format!("expected a scalar, found a tile of shape {:?}", t.shape))?;
    within(t, set)
}

fn axis_of_grid(cx: Cx<'_>, op: ControlOp) -> Check {
    if op == ControlOp::ProgramId && !cx.inst.operands.is_empty() {
        cx.counts(2, 1)?;
        (0..2).try_for_each(|i| is_scalar(cx.operand_tile(i)?, DTypeSet::INT))?;
    } else {
        cx.counts(0, 1)?;
    }
    // A grid has at most three axes.
    cx.axis(3)?;
    is_scalar(cx.result_tile(0)?, DTypeSet::of(&[DType::I32]))
}

/// V08 to V11, V13 of control flow, apart from the blocks.
pub(super) fn control(cx: Cx<'_>, op: ControlOp, signatures: &Signatures<'_>) -> Check {
    let (inst, bool) = (cx.inst, DTypeSet::BOOL);
    match op {
        ControlOp::ProgramId | ControlOp::NumPrograms => axis_of_grid(cx, op),
        ControlOp::For => {
            cx.counts_in(3, usize::MAX, inst.operands.len().saturating_sub(3))?;
            let lo = cx.operand_tile(0)?;
            (0..3).try_for_each(|i| {
                is_scalar(cx.operand_tile(i)?, DTypeSet::INT)?;
                is_dtype(cx.operand_tile(i)?, lo.dtype()?)
            })
        }
        ControlOp::While => Ok(()),
        ControlOp::If => {
            cx.counts(1, inst.results.len())?;
            is_scalar(cx.operand_tile(0)?, bool)
        }
        // What they carry is checked with their owner.
        ControlOp::Yield | ControlOp::Return => cx.counts(inst.operands.len(), 0),
        ControlOp::Condition => {
            cx.counts_in(1, usize::MAX, 0)?;
            is_scalar(cx.operand_tile(0)?, bool)
        }
        ControlOp::Call => call(cx, signatures),
        ControlOp::Map => {
            cx.counts_in(1, usize::MAX, inst.results.len())?;
            let shape = cx.operand_tile(0)?.shape;
            let results = inst.results.iter().map(|v| tile(cx.ty(*v)));
            let mut tiles = cx.operand_tiles()?.into_iter().map(Ok).chain(results);
            tiles.try_for_each(|t| same_shape(shape, t?.shape))
        }
        ControlOp::Assume => {
            cx.counts(1, 0)?;
            within(cx.operand_tile(0)?, bool)
        }
        // The operands of a comparison follow its result where a message is to show them.
        ControlOp::Assert => {
            let compares = inst.attrs.str("compares").is_some();
            cx.counts(if compares { 3 } else { 1 }, 0)?;
            let shape = cx.operand_tile(0)?.shape;
            (1..inst.operands.len()).try_for_each(|i| same_shape(shape, cx.operand_tile(i)?.shape))?;
            within(cx.operand_tile(0)?, bool)
        }
        ControlOp::MultipleOf | ControlOp::MaxContiguous => {
            cx.counts(1, 1)?;
            let x = cx.operand_tile(0)?;
            if x.dtype().is_ok() {
                within(x, DTypeSet::INT)?;
            }
            let value = inst.attrs.int("value").unwrap_or(0);
            ensure(value > 0, V09, || format!("`value` must be positive, but is {value}"))?;
            serves(x, cx.result_tile(0)?)
        }
        ControlOp::Print => cx.counts(inst.operands.len(), 0),
        ControlOp::GridBarrier => cx.counts(0, 0),
        ControlOp::GlobalTimer => {
            cx.counts(0, 1)?;
            is_scalar(cx.result_tile(0)?, DTypeSet::of(&[DType::U64]))
        }
        ControlOp::SmId => {
            cx.counts(0, 1)?;
            is_scalar(cx.result_tile(0)?, DTypeSet::of(&[DType::I32]))
        }
        ControlOp::InlineAsm => {
            // Every value and every result has one element for each run of the instructions.
            let first = cx.result_tile(0)?;
            let results = (1..inst.results.len()).map(|n| cx.result_tile(n));
            (0..inst.operands.len())
                .map(|n| cx.operand_tile(n))
                .chain(results)
                .try_for_each(|tile| same_shape(tile?.shape, first.shape))
        }
    }
}

/// V13.
fn call(cx: Cx<'_>, signatures: &Signatures<'_>) -> Check {
    let name = cx.inst.attrs.str("callee").unwrap_or("");
    let Some(callee) = signatures.funcs.get(name) else {
        return fault(V13, format!("no function @{name}"));
    };
    ensure(matches!(callee.kind, FuncKind::Fn | FuncKind::NoInline), V13, || {
        format!("@{name} is a {} and cannot be called", callee.kind.name())
    })?;
    let types = |f: &Func, list: &[ValueId]| -> Vec<Type> {
        list.iter().map(|v| cx.module.types.get(f.ty(*v)).clone()).collect()
    };
    let params = types(callee, &callee.blocks[callee.body].args);
    let args = types(cx.func, &cx.inst.operands);
    let results: Vec<Type> = callee.results.iter().map(|t| cx.module.types.get(*t).clone()).collect();
    let wanted = types(cx.func, &cx.inst.results);
    let check = |what, found: &[Type], wanted: &[Type]| {
        let ok = found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| infer::serves(a, b));
        ensure(ok, V13, || format!("{what} of @{name}: expected {}, found {}", names(wanted), names(found)))
    };
    check("arguments", &args, &params)?;
    check("results", &results, &wanted)
}

fn names(types: &[Type]) -> String {
    let names: Vec<String> = types.iter().map(Type::to_string).collect();
    format!("({})", names.join(", "))
}

/// V12 for the blocks of an instruction: what they receive and what they give.
pub(super) fn blocks(module: &Module, func: &Func, inst: &Inst) -> Check {
    let cx = Cx { module, func, inst };
    let types = |list: &[ValueId]| list.iter().map(|v| cx.ty(*v).clone()).collect::<Vec<_>>();
    let operands = types(&inst.operands);
    let results = types(&inst.results);
    let rank0 = |list: &[Type]| list.iter().map(|t| infer::with_shape(t, &[])).collect::<Vec<_>>();
    match (flow(inst.op), inst.blocks.as_slice()) {
        (Flow::For, [body]) => {
            let carried = operands.get(3..).unwrap_or(&[]);
            let mut args = operands.get(..1).unwrap_or(&[]).to_vec();
            args.extend_from_slice(&results);
            fit("carried values", carried, &results)?;
            receives(cx, *body, &args)?;
            gives(cx, *body, &results)
        }
        (Flow::While, [head, body]) => {
            // The block arguments say what is carried.
            let carried = types(&func.blocks[*head].args);
            fit("carried values", &operands, &carried)?;
            gives_behind(cx, *head, 1, &results)?;
            receives(cx, *body, &results)?;
            gives(cx, *body, &carried)
        }
        (Flow::If, [then, otherwise]) => {
            for block in [then, otherwise] {
                receives(cx, *block, &[])?;
                gives(cx, *block, &results)?;
            }
            Ok(())
        }
        (Flow::Elements, [body]) => {
            let one = rank0(&operands);
            // A combining function gets two of each.
            let args = if inst.op == Op::Control(ControlOp::Map) { one } else { [one.clone(), one].concat() };
            receives(cx, *body, &args)?;
            gives(cx, *body, &rank0(&results))
        }
        (Flow::Expect, [body]) => {
            receives(cx, *body, &[])?;
            gives(cx, *body, &[])
        }
        // V08 says how many blocks there are.
        (Flow::Plain | Flow::For | Flow::While | Flow::If | Flow::Elements | Flow::Expect, _) => Ok(()),
    }
}

/// Each of `found` serves as its `wanted`.
fn fit(what: &str, found: &[Type], wanted: &[Type]) -> Check {
    let ok = found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| infer::serves(a, b));
    ensure(ok, V12, || format!("{what}: expected {}, found {}", names(wanted), names(found)))
}

/// The arguments of a block are exactly these.
fn receives(cx: Cx<'_>, block: BlockId, wanted: &[Type]) -> Check {
    let args: Vec<Type> = cx.func.blocks[block].args.iter().map(|v| cx.ty(*v).clone()).collect();
    fit("values passed to the block", wanted, &args)
}

fn gives(cx: Cx<'_>, block: BlockId, wanted: &[Type]) -> Check {
    gives_behind(cx, block, 0, wanted)
}

/// The operands of the terminator of a block, from number `skip` on.
fn gives_behind(cx: Cx<'_>, block: BlockId, skip: usize, wanted: &[Type]) -> Check {
    let last = cx.func.blocks[block].insts.last().map(|i| &cx.func.insts[*i]);
    let operands = last.and_then(|i| i.operands.get(skip..)).unwrap_or(&[]);
    let found: Vec<Type> = operands.iter().map(|v| cx.ty(*v).clone()).collect();
    fit("terminator operands", &found, wanted)
}

/// V12 for the body of a function.
pub(super) fn returned(module: &Module, func: &Func, inst: &Inst) -> Check {
    let found: Vec<Type> = inst.operands.iter().map(|v| module.types.get(func.ty(*v)).clone()).collect();
    let wanted: Vec<Type> = func.results.iter().map(|t| module.types.get(*t).clone()).collect();
    fit("returned values", &found, &wanted)
}

/// V08 to V11 of host operations.
pub(super) fn host(cx: Cx<'_>, op: HostOp) -> Check {
    match op {
        HostOp::Buffer | HostOp::Tile => {
            cx.counts(1, 1)?;
            let (x, result) = (cx.operand(0)?, cx.result(0)?);
            let (t, v) = if op == HostOp::Buffer { (x, result) } else { (result, x) };
            let t = tile(t)?;
            let Type::View { elem, rank, .. } = v else {
                return fault(V11, format!("expected a view, found `{v}`"));
            };
            ensure(t.elem == elem, V11, || {
                format!("element types differ: tile of `{}`, view of `{elem}`", t.elem)
            })?;
            let found = t.shape.len();
            ensure(found == *rank as usize, V10, || {
                format!("ranks differ: tile of rank {found}, view of rank {rank}")
            })
        }
        HostOp::Pointers => {
            cx.counts(cx.inst.operands.len(), 1)?;
            let result = cx.result(0)?;
            let Type::View { elem: ElemType::Ptr { pointee, .. }, rank: 1, .. } = result else {
                return fault(V11, format!("expected a view of pointers with rank 1, found `{result}`"));
            };
            (0..cx.inst.operands.len()).try_for_each(|i| {
                let v = cx.operand(i)?;
                let fits = matches!(v, Type::View { elem, mutable: true, .. } if elem == &**pointee);
                ensure(fits, V11, || {
                    format!("a table of `{}` cannot hold the address of `{v}`", result.elem())
                })
            })
        }
        HostOp::Empty => {
            cx.counts(0, 1)?;
            let v = cx.result(0)?;
            let Type::View { rank, .. } = v else {
                return fault(V11, format!("expected a view, found `{v}`"));
            };
            let shape = cx.inst.attrs.ints("shape").unwrap_or(&[]);
            ensure(shape.len() == *rank as usize && shape.iter().all(|d| *d > 0), V10, || {
                format!("expected a `shape` of {rank} positive extents, found {shape:?}")
            })
        }
        HostOp::Launch => {
            cx.counts(cx.inst.operands.len(), 0)?;
            let absent = cx.inst.attrs.ints("absent").unwrap_or(&[]);
            let n = cx.inst.operands.len() as i64;
            ensure(absent.iter().all(|i| (0..n).contains(i)), V09, || {
                format!("`absent` {absent:?} is out of range for {n} operands")
            })
        }
        HostOp::Randn => {
            cx.counts(0, 1)?;
            within(cx.result_tile(0)?, DTypeSet::VALUE)
        }
        HostOp::Uniform => {
            cx.counts(2, 1)?;
            within(cx.result_tile(0)?, DTypeSet::VALUE)?;
            (0..2).try_for_each(|i| is_scalar(cx.operand_tile(i)?, DTypeSet::NUMBER))
        }
        HostOp::Npy => {
            cx.counts(0, 1)?;
            cx.result_tile(0).map(|_| ())
        }
        HostOp::AssertClose => {
            cx.counts(2, 0)?;
            let (a, b) = (cx.operand_tile(0)?, cx.operand_tile(1)?);
            within(a, DTypeSet::ORDERED)?;
            is_dtype(b, a.dtype()?)?;
            same_shape(a.shape, b.shape)
        }
        HostOp::ExpectError => ensure(cx.inst.operands.is_empty() && cx.inst.results.is_empty(), V08, || {
            "expected neither operands nor results".into()
        }),
    }
}
