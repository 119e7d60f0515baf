//! Computes what is known, and leaves out what changes nothing.
//!
//! ```text
//! v1 = const {value = 2 : i32} : i32           v1 = const {value = 2 : i32} : i32
//! v2 = mul v1, v1 : i32                        v2 = const {value = 4 : i32} : i32
//! v3 = const {value = 0 : i32} : i32      =>   v3 = const {value = 0 : i32} : i32
//! v4 = add v0, v3 : i32                        v4 = const {value = true : bool} : bool
//! v5 = const {value = true : bool} : bool      return v0, v2
//! v6 = if v5 : i32 {
//! block1:
//!   yield v2
//! block2:
//!   yield v4
//! }
//! return v4, v6
//! ```
//! The rules: operations on constants (tiles filled with one value included); `x + 0`, `x * 1`, `x * 0`, shifts by 0
//! and the like on integers and bools, `x * 1.0` and `x / 1.0` on floats, but not `x + 0.0`, which changes -0; `select`
//! on a constant or of the same twice; `if` on a constant; loops without an iteration; rearrangements of constants and
//! splats, and those that rearrange nothing; casts to the same type; `ptr_add` by 0; extents, strides and pointer of a
//! view that is made in sight; promises that are constant and true.
//!
//! Requires a verified module. Guarantees the same bits as without it. Integer division by a constant zero stays, so
//! that checked mode reports it.

use tk_ops::eval::{self, Operand};
use tk_ops::scalar::Scalar;
use tk_ops::{Buf, ControlOp, CreateOp, DType, ElementwiseOp, MemoryOp, Op, ReduceOp, ShapeOp};

use crate::attr::{Attr, Attrs};
use crate::flow::{Flow, flow};
use crate::infer;
use crate::ir::{BlockId, Func, Inst, InstId, Module, Type, Types, ValueId};
use crate::passes::ModulePass;
use crate::rewrite::{Renames, constant, definition, operand_of};

/// The pass.
pub const PASS: ModulePass = ModulePass { name: "fold", run };

/// The longest dimension that a reduction of constants is computed over: enough for any list that a program spells
/// out, and quick enough not to be seen in compile time.
const MAX_REDUCED: u32 = 4096;

fn run(module: &mut Module) {
    let ids: Vec<_> = module.funcs.iter().map(|(id, _)| id).collect();
    for id in ids {
        let func = &mut module.funcs[id];
        let body = func.body;
        Fold { types: &module.types, func, renames: Renames::default() }.block(body);
    }
}

/// The outcome of folding an instruction with one result.
enum Outcome {
    /// It is this constant, or filled with it.
    Const(Scalar),
    /// It is another value.
    Value(ValueId),
    /// It is another operation, of the same type.
    Inst(Op, Vec<ValueId>, Attrs),
}

struct Fold<'a> {
    types: &'a Types,
    func: &'a mut Func,
    renames: Renames,
}

impl Fold<'_> {
    fn block(&mut self, id: BlockId) {
        let insts = std::mem::take(&mut self.func.blocks[id].insts);
        self.insts(insts, id);
    }

    /// Folds instructions and puts what is left of them at the end of a block.
    fn insts(&mut self, insts: Vec<InstId>, to: BlockId) {
        for i in insts {
            self.renames.apply(self.func, i);
            if self.control(i, to) {
                continue;
            }
            for b in self.func.insts[i].blocks.clone() {
                self.block(b);
            }
            let facts = Facts { func: self.func, types: self.types };
            let inst = &facts.func.insts[i];
            let (outcome, result) = match inst.results.as_slice() {
                [r] => (facts.simplify(inst), *r),
                _ => (None, ValueId(0)),
            };
            match outcome {
                Some(Outcome::Value(v)) if facts.serves(v, result) => self.renames.set(result, v),
                Some(Outcome::Const(s)) if facts.is_filled_by(result, s) => {
                    let value = Attrs::new().with("value", Attr::Scalar(s));
                    self.become_(i, Op::Create(CreateOp::Const), vec![], value, to);
                }
                Some(Outcome::Inst(op, operands, attrs)) => self.become_(i, op, operands, attrs, to),
                Some(Outcome::Value(_) | Outcome::Const(_)) | None => self.func.blocks[to].insts.push(i),
            }
        }
    }

    fn become_(&mut self, i: InstId, op: Op, operands: Vec<ValueId>, attrs: Attrs, to: BlockId) {
        let inst = &mut self.func.insts[i];
        (inst.op, inst.operands, inst.attrs) = (op, operands, attrs);
        inst.blocks.clear();
        self.func.blocks[to].insts.push(i);
    }

    /// Takes apart `if`, `for` and promises that are decided; whether the instruction is done with.
    fn control(&mut self, i: InstId, to: BlockId) -> bool {
        let inst = &self.func.insts[i];
        let known = |n: usize| inst.operands.get(n).and_then(|v| constant(self.func, *v));
        match flow(inst.op) {
            Flow::If => {
                let Some(cond) = known(0).and_then(Scalar::as_bool) else { return false };
                let Some(taken) = inst.blocks.get(usize::from(!cond)).copied() else { return false };
                self.splice(i, taken, to);
                true
            }
            Flow::For => {
                let int = |n| known(n).and_then(Scalar::as_int);
                let (Some(lo), Some(hi), Some(step)) = (int(0), int(1), int(2)) else { return false };
                // A step of 0 is a fault, which must be kept.
                let never = step > 0 && lo >= hi || step < 0 && lo <= hi;
                if never {
                    let carried = inst.operands.get(3..).unwrap_or(&[]).to_vec();
                    self.replace(i, &carried);
                }
                never
            }
            Flow::Plain => {
                let promise = matches!(inst.op, Op::Control(ControlOp::Assume | ControlOp::Assert));
                promise && known(0).and_then(Scalar::as_bool) == Some(true)
            }
            Flow::While | Flow::Elements | Flow::Expect => false,
        }
    }

    /// The instructions of a block in the place of the instruction that owns it.
    fn splice(&mut self, owner: InstId, block: BlockId, to: BlockId) {
        let mut insts = std::mem::take(&mut self.func.blocks[block].insts);
        let Some(end) = insts.pop() else { return };
        self.insts(insts, to);
        self.renames.apply(self.func, end);
        let values = self.func.insts[end].operands.clone();
        self.replace(owner, &values);
    }

    fn replace(&mut self, i: InstId, values: &[ValueId]) {
        for (r, v) in self.func.insts[i].results.iter().zip(values) {
            self.renames.set(*r, *v);
        }
    }
}

/// A function to visit.
#[derive(Clone, Copy)]
struct Facts<'a> {
    func: &'a Func,
    types: &'a Types,
}

impl<'a> Facts<'a> {
    fn ty(self, v: ValueId) -> &'a Type {
        self.types.get(self.func.ty(v))
    }

    fn serves(self, v: ValueId, wanted: ValueId) -> bool {
        infer::serves(self.ty(v), self.ty(wanted))
    }

    fn is_filled_by(self, v: ValueId, s: Scalar) -> bool {
        self.ty(v).dtype() == Some(s.dtype())
    }

    fn constant(self, v: ValueId) -> Option<Scalar> {
        constant(self.func, v)
    }

    fn simplify(self, inst: &Inst) -> Option<Outcome> {
        let result = self.ty(*inst.results.first()?);
        match inst.op {
            Op::Elementwise(o) => self.evaluate(o, inst, result).or_else(|| self.identity(o, inst, result)),
            Op::Create(CreateOp::Splat) => {
                let x = *inst.operands.first()?;
                if result.shape() == Some(&[]) {
                    return Some(Outcome::Value(x));
                }
                self.constant(x).map(Outcome::Const)
            }
            Op::Create(CreateOp::Arange) => match (result.shape(), inst.attrs.int("start")) {
                (Some([1]), Some(start)) => Some(Outcome::Const(Scalar::int(DType::I32, i128::from(start)))),
                _ => None,
            },
            Op::Create(CreateOp::Const | CreateOp::Table | CreateOp::Undef) => None,
            Op::Shape(o) => self.shape(o, inst, result),
            Op::Memory(o) => self.memory(o, inst),
            Op::Reduce(o) => self.reduce(o, inst),
            Op::Atomic(_)
            | Op::Scan(_)
            | Op::Dot(_)
            | Op::Random(_)
            | Op::Control(_)
            | Op::Host(_)
            | Op::Target => None,
        }
    }

    /// An elementwise operation on constants only.
    fn evaluate(self, op: ElementwiseOp, inst: &Inst, result: &Type) -> Option<Outcome> {
        let args: Vec<Scalar> = inst.operands.iter().map(|v| self.constant(*v)).collect::<Option<_>>()?;
        let divides = matches!(op, ElementwiseOp::Div | ElementwiseOp::Rem | ElementwiseOp::CeilDiv);
        if divides && args.get(1)?.as_int() == Some(0) {
            return None;
        }
        let args: Vec<Operand<'_>> = args.into_iter().map(Operand::Splat).collect();
        let buf = eval::elementwise(op, &args, result.dtype()?, 1, inst.attrs.flag("fast")).ok()?;
        Some(Outcome::Const(buf.get(0)))
    }

    /// An elementwise operation that gives one of its operands, or zero.
    fn identity(self, op: ElementwiseOp, inst: &Inst, result: &Type) -> Option<Outcome> {
        use ElementwiseOp::*;
        match inst.operands.as_slice() {
            [c, a, b] if op == Select => {
                let taken = match self.constant(*c).and_then(Scalar::as_bool) {
                    Some(true) => a,
                    Some(false) => b,
                    None if a == b => a,
                    None => return None,
                };
                Some(Outcome::Value(*taken))
            }
            [x] if matches!(op, Cast | Bitcast) => (self.ty(*x) == result).then_some(Outcome::Value(*x)),
            [a, b] => {
                if let Some(y) = self.constant(*b) {
                    return right(op, *a, y);
                }
                let commutes = matches!(op, Add | Mul | And | Or | Xor);
                let x = self.constant(*a).filter(|_| commutes)?;
                right(op, *b, x)
            }
            _ => None,
        }
    }

    /// Rearrangements that change nothing, of uniform tiles, and two in a row.
    fn shape(self, op: ShapeOp, inst: &Inst, result: &Type) -> Option<Outcome> {
        let x = *inst.operands.first()?;
        match op {
            ShapeOp::Reshape | ShapeOp::Broadcast | ShapeOp::Permute | ShapeOp::Flip | ShapeOp::Slice => {}
            ShapeOp::Join | ShapeOp::Split | ShapeOp::Cat | ShapeOp::Interleave => return None,
        }
        let same = self.ty(x).shape() == result.shape();
        let ordered = |p: &[i64]| p.iter().enumerate().all(|(i, a)| i as i64 == *a);
        let nothing = match op {
            ShapeOp::Reshape | ShapeOp::Broadcast | ShapeOp::Slice => same,
            ShapeOp::Permute => inst.attrs.ints("perm").is_some_and(ordered),
            ShapeOp::Flip | ShapeOp::Join | ShapeOp::Split | ShapeOp::Cat | ShapeOp::Interleave => false,
        };
        if nothing {
            return Some(Outcome::Value(x));
        }
        if let Some(s) = self.constant(x) {
            return Some(Outcome::Const(s));
        }
        let splat = Op::Create(CreateOp::Splat);
        if let Some(scalar) = operand_of(self.func, x, splat) {
            return Some(Outcome::Inst(splat, vec![scalar], Attrs::new()));
        }
        if matches!(op, ShapeOp::Reshape | ShapeOp::Broadcast) && self.ty(x).shape() == Some(&[]) {
            return Some(Outcome::Inst(splat, vec![x], Attrs::new()));
        }
        match op {
            ShapeOp::Permute => self.permuted_twice(inst, result),
            ShapeOp::Reshape => {
                let before = operand_of(self.func, x, inst.op)?;
                Some(Outcome::Inst(inst.op, vec![before], Attrs::new()))
            }
            ShapeOp::Broadcast
            | ShapeOp::Flip
            | ShapeOp::Slice
            | ShapeOp::Join
            | ShapeOp::Split
            | ShapeOp::Cat
            | ShapeOp::Interleave => None,
        }
    }

    /// A permutation of a permutation as one, or as nothing.
    fn permuted_twice(self, inst: &Inst, result: &Type) -> Option<Outcome> {
        let inner = definition(self.func, *inst.operands.first()?).filter(|i| i.op == inst.op)?;
        let (outer, of) = (inst.attrs.ints("perm")?, inner.attrs.ints("perm")?);
        // Dimension i of the result is `outer[i]` of what is permuted first.
        let at = |i: &i64| usize::try_from(*i).ok().and_then(|i| of.get(i).copied());
        let perm: Vec<i64> = outer.iter().map(at).collect::<Option<_>>()?;
        let x = *inner.operands.first()?;
        if perm.iter().enumerate().all(|(i, p)| i as i64 == *p) {
            return (self.ty(x) == result).then_some(Outcome::Value(x));
        }
        let mut attrs = Attrs::new();
        attrs.set("perm", Attr::Ints(perm));
        Some(Outcome::Inst(inst.op, vec![x], attrs))
    }

    fn memory(self, op: MemoryOp, inst: &Inst) -> Option<Outcome> {
        let x = *inst.operands.first()?;
        if op == MemoryOp::PtrAdd {
            let offset = self.constant(*inst.operands.get(1)?)?;
            return (offset.as_int() == Some(0)).then_some(Outcome::Value(x));
        }
        let made = definition(self.func, x).filter(|i| i.op == Op::Memory(MemoryOp::View))?;
        let rank = made.operands.len() / 2;
        let axis = inst.attrs.int("axis").and_then(|a| usize::try_from(a).ok());
        let place = match op {
            MemoryOp::ViewPtr => 0,
            MemoryOp::ViewShape => 1 + axis?,
            MemoryOp::ViewStride => 1 + rank + axis?,
            MemoryOp::PtrAdd
            | MemoryOp::Load
            | MemoryOp::Store
            | MemoryOp::View
            | MemoryOp::ViewSlice
            | MemoryOp::ViewPermute
            | MemoryOp::ViewLoad
            | MemoryOp::ViewStore
            | MemoryOp::ViewInside
            | MemoryOp::ViewGather
            | MemoryOp::ViewScatter
            | MemoryOp::Prefetch => return None,
        };
        made.operands.get(place).copied().map(Outcome::Value)
    }

    /// A reduction of a tile that is filled with one value.
    fn reduce(self, op: ReduceOp, inst: &Inst) -> Option<Outcome> {
        let x = *inst.operands.first()?;
        let value = self.constant(x)?;
        let axis = usize::try_from(inst.attrs.int("axis")?).ok()?;
        let shape = self.ty(x).shape()?;
        let len = shape.get(axis).copied().filter(|n| *n <= MAX_REDUCED)? as usize;
        // Rows and planes are combined in different orders; two columns are planes as well as many.
        let inner = if shape.get(axis + 1..)?.iter().all(|n| *n == 1) { 1 } else { 2 };
        let buf = eval::reduce(op, &Buf::splat(value, len * inner), 1, len, inner).ok()?;
        Some(Outcome::Const(buf.get(0)))
    }
}

/// `x op y`, or `y op x` where that is the same, for a constant `y`.
fn right(op: ElementwiseOp, x: ValueId, y: Scalar) -> Option<Outcome> {
    use ElementwiseOp::*;
    let (gives_x, gives_y) = if let Some(b) = y.as_bool() {
        (matches!((op, b), (And, true) | (Or | Xor, false)), matches!((op, b), (And, false) | (Or, true)))
    } else if let Some(n) = y.as_int() {
        // All bits set: -1, or the largest unsigned value.
        let ones = y == Scalar::int(y.dtype(), -1);
        let neutral = matches!((op, n), (Add | Sub | Or | Xor | Shl | Shr, 0) | (Mul | Div, 1));
        let absorbing = matches!((op, n), (Mul | And, 0));
        (neutral || ones && op == And, absorbing || ones && op == Or)
    } else {
        (matches!(op, Mul | Div) && y.as_f64() == Some(1.0), false)
    };
    if gives_x { Some(Outcome::Value(x)) } else { gives_y.then_some(Outcome::Const(y)) }
}
