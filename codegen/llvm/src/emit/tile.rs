//! Emits elementwise operations, creation and reshapes of tiles: operations that need no other thread.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::Layout;
use tk_gpu::ir::kernel::LayoutId;
use tk_ops::elementwise::Order;
use tk_ops::{CreateOp, DType, ElementwiseOp, Group, ShapeOp};
use tk_tile::{Attr, Inst, Type, ValueId};

use super::value::{Tile, Val, word};
use super::{Emit, Res, Stop, bug};

impl<'c> Emit<'_, 'c> {
    /// A tile.
    pub fn tile(&self, v: ValueId) -> Res<Tile<'c>> {
        match self.value(v)? {
            Val::Tile(t) => Ok(t.clone()),
            Val::Scalar(x) => Ok(Tile::Splat(*x)),
            Val::View(_) => bug(format!("{v} is no tile")),
        }
    }

    /// Registers of a tile; 1 for a scalar.
    pub fn count(&self, v: ValueId) -> Res<usize> {
        if self.shape(v).is_empty() { Ok(1) } else { Ok(self.layout(v)?.registers()) }
    }

    /// The value of register `r` of a tile.
    pub fn register(&self, tile: &Tile<'c>, r: usize) -> Res<BasicValueEnum<'c>> {
        match tile {
            Tile::Regs(list) => {
                list.get(r).copied().ok_or_else(|| Stop::Bug(format!("there is no register {r}")))
            }
            Tile::Splat(x) => Ok(*x),
            Tile::Affine { base, offsets } => {
                let at = offsets.get(r).copied().unwrap_or(0);
                if at == 0 {
                    return Ok((*base).into());
                }
                let at = base.get_type().const_int(at.cast_unsigned(), true);
                Ok(self.builder.build_int_add(*base, at, "")?.into())
            }
        }
    }

    /// The value of every register of a tile or scalar.
    pub fn registers(&self, v: ValueId) -> Res<Vec<BasicValueEnum<'c>>> {
        let tile = self.tile(v)?;
        (0..self.count(v)?).map(|r| self.register(&tile, r)).collect()
    }

    /// Defines a result from its registers.
    pub fn define_regs(&mut self, v: ValueId, regs: Vec<BasicValueEnum<'c>>) -> Res<()> {
        let val = match (self.shape(v), regs.as_slice()) {
            ([], [x]) => Val::Scalar(*x),
            ([], _) => return bug("a scalar has one register"),
            _ => Val::Tile(Tile::regs(regs)),
        };
        self.define(v, val);
        Ok(())
    }

    /// The only result of an instruction.
    pub fn result(&self, inst: &Inst) -> Res<ValueId> {
        inst.results.first().copied().ok_or_else(|| Stop::Bug(format!("`{}` has no result", inst.name())))
    }

    /// An operand of an instruction.
    pub fn operand(&self, inst: &Inst, i: usize) -> Res<ValueId> {
        inst.operands
            .get(i)
            .copied()
            .ok_or_else(|| Stop::Bug(format!("`{}` has no operand {i}", inst.name())))
    }

    pub(super) fn create(&mut self, inst: &Inst, op: CreateOp) -> Res<()> {
        let r = self.result(inst)?;
        let shape = self.shape(r);
        let val = match op {
            CreateOp::Const => {
                let Some(Attr::Scalar(s)) = inst.attrs.get("value") else {
                    return bug("a constant has a value");
                };
                let x = self.with_scalars(|e| Ok(e.constant(*s)))?;
                if shape.is_empty() { Val::Scalar(x) } else { Val::Tile(Tile::Splat(x)) }
            }
            CreateOp::Splat => {
                let x = self.scalar(self.operand(inst, 0)?)?;
                if shape.is_empty() { Val::Scalar(x) } else { Val::Tile(Tile::Splat(x)) }
            }
            CreateOp::Undef => match self.ty(r) {
                Type::View { rank, elem, wide, .. } => {
                    let extent = if *wide { self.i64() } else { self.i32() };
                    Val::View(super::value::View {
                        base: self.i64().const_zero(),
                        extents: vec![extent.const_zero(); *rank as usize],
                        strides: vec![self.i64().const_zero(); *rank as usize],
                        bytes: super::value::element_bytes(elem),
                    })
                }
                Type::Tile { .. } => {
                    // A defined value costs nothing and prevents LLVM's conclusions from an undefined one.
                    let zero = self.zero(self.dtype(r));
                    if shape.is_empty() { Val::Scalar(zero) } else { Val::Tile(Tile::Splat(zero)) }
                }
            },
            CreateOp::Arange => {
                let layout = self.layout_id(r)?;
                let start = inst.attrs.int("start").unwrap_or(0);
                let tile_layout = self.kernel.layouts.get(layout);
                if !tile_layout.is_disjoint() {
                    let regs = (0..tile_layout.registers()).map(|n| {
                        let at = self.coord(layout, n, 0)?;
                        let start = self.i32().const_int(start.cast_unsigned(), true);
                        Ok(self.builder.build_int_add(at, start, "")?.into())
                    });
                    return self.define_regs(r, regs.collect::<Res<_>>()?);
                }
                let base =
                    *self.thread_coords(layout)?.first().ok_or_else(|| Stop::Bug("no dimension".into()))?;
                let at = |n| tile_layout.register(n).first().copied().unwrap_or(0);
                let offsets = (0..tile_layout.registers()).map(|n| i64::from(at(n)) + start).collect();
                Val::Tile(Tile::Affine { base, offsets: Rc::new(offsets) })
            }
            CreateOp::Table => return self.table(inst, r),
        };
        self.define(r, val);
        Ok(())
    }

    /// A zero; an address for `None`.
    pub fn zero(&self, d: Option<DType>) -> BasicValueEnum<'c> {
        match d {
            Some(d) => {
                let math = |_, _, _, _: &[BasicValueEnum<'c>]| None;
                self.scalars(&math).element_type(d).const_zero()
            }
            None => self.i64().const_zero().into(),
        }
    }

    /// Elements that are constants one by one, in constant memory.
    fn table(&mut self, inst: &Inst, r: ValueId) -> Res<()> {
        let d = self.dtype(r).ok_or_else(|| Stop::Bug("a table of pointers".into()))?;
        let layout = self.layout_id(r)?;
        let shape = self.shape(r);
        let math = |_, _, _, _: &[BasicValueEnum<'c>]| None;
        let bits = inst.attrs.ints("values").unwrap_or(&[]);
        // As integers of their width: constants of all float types have the same form then.
        let ty = word(self.context, d.bits().max(8));
        let values: Vec<IntValue<'c>> = bits.iter().map(|b| ty.const_int(b.cast_unsigned(), false)).collect();
        let array = ty.const_array(&values);
        let global = self.module.add_global(array.get_type(), Some(self.target.constant_space()), "table");
        global.set_initializer(&array);
        global.set_constant(true);
        global.set_linkage(inkwell::module::Linkage::Private);
        let mut regs = vec![];
        for n in 0..self.kernel.layouts.get(layout).registers() {
            let mut at = self.position(layout, shape, n)?;
            if let Some(real) = self.is_real(layout, shape, n)? {
                at = self.builder.build_select(real, at, self.i32().const_zero(), "")?.into_int_value();
            }
            // SAFETY: the position is below the number of elements.
            let place = unsafe {
                self.builder.build_in_bounds_gep(
                    array.get_type(),
                    global.as_pointer_value(),
                    &[self.i32().const_zero(), at],
                    "",
                )?
            };
            let x = self.builder.build_load(ty, place, "")?;
            let to = self.scalars(&math).element_type(d);
            regs.push(if to.is_int_type() {
                let to = to.into_int_type();
                self.builder.build_int_truncate_or_bit_cast(x.into_int_value(), to, "")?.into()
            } else {
                self.builder.build_bit_cast(x, to, "")?
            });
        }
        self.define_regs(r, regs)
    }

    pub(super) fn elementwise(&mut self, inst: &Inst, op: ElementwiseOp) -> Res<()> {
        let r = self.result(inst)?;
        let fast = inst.attrs.flag("fast");
        let from: Vec<Option<DType>> = inst.operands.iter().map(|v| self.dtype(*v)).collect();
        let to = self.dtype(r);
        let one =
            |args: &[BasicValueEnum<'c>]| self.with_scalars(|e| e.elementwise(op, &from, to, fast, args));
        if self.shape(r).is_empty() {
            let args = inst.operands.iter().map(|v| self.scalar(*v)).collect::<Res<Vec<_>>>()?;
            let x = one(&args)?;
            self.define(r, Val::Scalar(x));
            return Ok(());
        }
        let args = inst.operands.iter().map(|v| self.tile(*v)).collect::<Res<Vec<_>>>()?;
        let val = if let Some(x) = self.affine(op, &args, &from, to)? {
            x
        } else if let Some(x) = self.compared(op, inst, &args)? {
            x
        } else if args.iter().all(|a| matches!(a, Tile::Splat(_))) {
            let args = args.iter().map(|a| self.register(a, 0)).collect::<Res<Vec<_>>>()?;
            Tile::Splat(one(&args)?)
        } else {
            let groups = self.groups(r)?;
            let mut known: BTreeMap<usize, BasicValueEnum<'c>> = BTreeMap::new();
            let mut regs = vec![];
            for (n, group) in groups.into_iter().enumerate() {
                let x = match known.get(&group) {
                    Some(x) => *x,
                    None => {
                        let args = args.iter().map(|a| self.register(a, n)).collect::<Res<Vec<_>>>()?;
                        let x = one(&args)?;
                        known.insert(group, x);
                        x
                    }
                };
                regs.push(x);
            }
            Tile::regs(regs)
        };
        self.define(r, Val::Tile(val));
        Ok(())
    }

    /// For each register the first one that is known to have the same value: constancy in axis analysis.
    fn groups(&self, v: ValueId) -> Res<Vec<usize>> {
        let layout = self.layout(v)?;
        let known = self.axis.tile(v);
        let runs: Vec<u64> = (0..self.shape(v).len()).map(|d| known.dim(d).constancy).collect();
        if runs.iter().all(|c| *c <= 1) {
            return Ok((0..layout.registers()).collect());
        }
        let mut first: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
        let group = |n: usize| {
            let at = layout.register(n);
            let key = at.iter().zip(&runs).map(|(c, run)| u64::from(*c) / run.max(&1)).collect();
            *first.entry(key).or_insert(n)
        };
        Ok((0..layout.registers()).map(group).collect())
    }

    /// Keeps a number that depends on the thread plus constants in this form.
    fn affine(
        &self,
        op: ElementwiseOp,
        args: &[Tile<'c>],
        from: &[Option<DType>],
        to: Option<DType>,
    ) -> Res<Option<Tile<'c>>> {
        let is_index = |d: &Option<DType>| d.is_some_and(|d| matches!(d, DType::I32 | DType::I64));
        if !from.iter().all(is_index) || !is_index(&to) {
            return Ok(None);
        }
        let b = self.builder;
        Ok(match (op, args) {
            (
                ElementwiseOp::Add,
                [Tile::Affine { base, offsets }, Tile::Splat(x)]
                | [Tile::Splat(x), Tile::Affine { base, offsets }],
            ) => {
                let base = b.build_int_add(*base, x.into_int_value(), "")?;
                Some(Tile::Affine { base, offsets: Rc::clone(offsets) })
            }
            (ElementwiseOp::Sub, [Tile::Affine { base, offsets }, Tile::Splat(x)]) => {
                let base = b.build_int_sub(*base, x.into_int_value(), "")?;
                Some(Tile::Affine { base, offsets: Rc::clone(offsets) })
            }
            (
                ElementwiseOp::Mul,
                [Tile::Affine { base, offsets }, Tile::Splat(x)]
                | [Tile::Splat(x), Tile::Affine { base, offsets }],
            ) => {
                let x = x.into_int_value();
                let Some(by) = x.get_sign_extended_constant().filter(|v| v.unsigned_abs() < 1 << 20) else {
                    return Ok(None);
                };
                let base = b.build_int_mul(*base, x, "")?;
                Some(Tile::Affine { base, offsets: Rc::new(offsets.iter().map(|o| o * by).collect()) })
            }
            (ElementwiseOp::Cast, [Tile::Affine { base, offsets }]) if from == [to] => {
                Some(Tile::Affine { base: *base, offsets: Rc::clone(offsets) })
            }
            _ => None,
        })
    }

    /// Compares indices of which registers have constant offsets from a number of the lane: the difference of two such numbers,
    /// computed once, with a constant for each register. It saturates, which no constant does.
    fn compared(&self, op: ElementwiseOp, inst: &Inst, args: &[Tile<'c>]) -> Res<Option<Tile<'c>>> {
        let (Group::Order(order), [left, right], [x, y]) = (op.group(), inst.operands.as_slice(), args)
        else {
            return Ok(None);
        };
        // PTX is as it was: what this does to its assemblers has not been measured.
        if self.kernel.options.spec.has_ptx || self.dtype(*left) != Some(DType::I32) {
            return Ok(None);
        }
        let count = self.count(self.result(inst)?)?;
        let (Some(x), Some(y)) =
            (self.lane_and_offsets(*left, x, count), self.lane_and_offsets(*right, y, count))
        else {
            return Ok(None);
        };
        if x.iter().zip(&y).all(|((_, of_x), (_, of_y))| of_x == of_y) {
            return Ok(None);
        }
        let pairs: Vec<_> = x.iter().zip(&y).map(|((x, _), (y, _))| (*x, *y)).collect();
        let distinct: HashSet<_> = pairs.iter().collect();
        if 2 * distinct.len() > count {
            return Ok(None);
        }
        let predicate = match order {
            Order::Lt => IntPredicate::SLT,
            Order::Le => IntPredicate::SLE,
            Order::Gt => IntPredicate::SGT,
            Order::Ge => IntPredicate::SGE,
        };
        let (mut differences, mut known, mut regs) = (HashMap::new(), HashMap::new(), vec![]);
        for (pair, ((_, of_x), (_, of_y))) in pairs.into_iter().zip(x.iter().zip(&y)) {
            let difference = match differences.get(&pair) {
                Some(d) => *d,
                None => self.with_scalars(|e| e.saturating_difference(pair.1, pair.0))?,
            };
            differences.insert(pair, difference);
            let constant = of_x - of_y;
            let holds = match known.get(&(pair, constant)) {
                Some(x) => *x,
                None => self
                    .builder
                    .build_int_compare(predicate, self.int(constant as u32), difference, "")?
                    .into(),
            };
            known.insert((pair, constant), holds);
            regs.push(holds);
        }
        Ok(Some(Tile::regs(regs)))
    }

    /// The registers of a tile of indices as numbers and small constants to add, which does not overflow.
    fn lane_and_offsets(
        &self,
        v: ValueId,
        tile: &Tile<'c>,
        count: usize,
    ) -> Option<Vec<(IntValue<'c>, i64)>> {
        match tile {
            Tile::Splat(x) => Some(vec![(x.into_int_value(), 0); count]),
            Tile::Regs(regs) => Some(regs.iter().map(|x| (x.into_int_value(), 0)).collect()),
            Tile::Affine { base, offsets } => {
                // The number of the lane is an element too.
                let small = 0..1 << 24;
                let fits = offsets.iter().all(|o| small.contains(o)) && offsets.contains(&0);
                let all = offsets.iter().map(|o| (*base, *o)).collect();
                Some(all).filter(|_| fits && self.counts_up(v))
            }
        }
    }

    /// Returns true if no element of a tile is the sum of another one and a small number that overflows: along each dimension
    /// elements are equal, or count up from a multiple of a power of two that is not less than their number.
    fn counts_up(&self, v: ValueId) -> bool {
        let known = self.axis.tile(v);
        self.shape(v).iter().enumerate().all(|(d, n)| {
            let (dim, all) = (known.dim(d), u64::from(*n));
            dim.constancy >= all || dim.contiguity >= all && dim.divisibility >= all.next_power_of_two()
        })
    }

    pub(super) fn shaped(&mut self, inst: &Inst, op: ShapeOp) -> Res<()> {
        let (x, r) = (self.operand(inst, 0)?, self.result(inst)?);
        let tile = self.tile(x)?;
        if matches!(tile, Tile::Splat(_)) && !matches!(op, ShapeOp::Join | ShapeOp::Split) {
            let val = match (self.shape(r), tile) {
                ([], Tile::Splat(x)) => Val::Scalar(x),
                (_, tile) => Val::Tile(tile),
            };
            self.define(r, val);
            return Ok(());
        }
        match op {
            ShapeOp::Join => {
                let (a, b) = (self.registers(x)?, self.registers(self.operand(inst, 1)?)?);
                if self.shape(x).is_empty() {
                    let at = self.layout_id(r)?;
                    return self.pair_of_scalars(r, at, &a, &b);
                }
                self.define_regs(r, a.into_iter().chain(b).collect())
            }
            ShapeOp::Split => {
                let regs = self.registers(x)?;
                let (a, b) = regs.split_at(regs.len() / 2);
                let second =
                    *inst.results.get(1).ok_or_else(|| Stop::Bug("`split` has two results".into()))?;
                let (a, b) = (a.to_vec(), b.to_vec());
                self.define_regs(r, a)?;
                self.define_regs(second, b)
            }
            ShapeOp::Permute | ShapeOp::Broadcast | ShapeOp::Reshape | ShapeOp::Slice => {
                if self.shape(r).is_empty() {
                    let x = self.register(&tile, 0)?;
                    self.define(r, Val::Scalar(x));
                    return Ok(());
                }
                let from = self.sources(inst, op, x, r)?;
                let moved = match &tile {
                    Tile::Affine { base, offsets } => {
                        let offsets = from.iter().map(|n| offsets.get(*n).copied().unwrap_or(0)).collect();
                        Tile::Affine { base: *base, offsets: Rc::new(offsets) }
                    }
                    Tile::Regs(_) | Tile::Splat(_) => {
                        Tile::regs(from.iter().map(|n| self.register(&tile, *n)).collect::<Res<_>>()?)
                    }
                };
                self.define(r, Val::Tile(moved));
                Ok(())
            }
            ShapeOp::Flip | ShapeOp::Cat | ShapeOp::Interleave => {
                bug(format!("`{}` was not lowered", op.name()))
            }
        }
    }

    /// A tile of two from two scalars.
    fn pair_of_scalars(
        &mut self,
        r: ValueId,
        layout: LayoutId,
        a: &[BasicValueEnum<'c>],
        b: &[BasicValueEnum<'c>],
    ) -> Res<()> {
        let ([a], [b]) = (a, b) else { return bug("a scalar has one register") };
        let mut regs = vec![];
        for n in 0..self.kernel.layouts.get(layout).registers() {
            let at = self.coord(layout, n, 0)?;
            let first = self.builder.build_int_compare(
                inkwell::IntPredicate::EQ,
                at,
                at.get_type().const_zero(),
                "",
            )?;
            regs.push(self.builder.build_select(first, *a, *b, "")?);
        }
        self.define_regs(r, regs)
    }

    /// For each register of the result the register of the operand that owns the same element.
    fn sources(&self, inst: &Inst, op: ShapeOp, x: ValueId, r: ValueId) -> Res<Vec<usize>> {
        let (from, to) = (self.layout(x)?, self.layout(r)?);
        let (a, b) = (self.shape(x), self.shape(r));
        if op == ShapeOp::Reshape && !tk_gpu::ir::attrs::is_unit(a, b) {
            // Renaming bits keeps the order of registers.
            return Ok((0..to.registers()).collect());
        }
        let perm = tk_gpu::ir::attrs::permutation(inst);
        let key = |at: Vec<u32>| -> Vec<u32> {
            match op {
                ShapeOp::Permute => {
                    let mut out = vec![0; at.len()];
                    for (c, p) in at.iter().zip(&perm) {
                        if let Some(slot) = out.get_mut(*p) {
                            *slot = *c;
                        }
                    }
                    out
                }
                ShapeOp::Broadcast => at.iter().zip(a).map(|(c, n)| if *n == 1 { 0 } else { *c }).collect(),
                ShapeOp::Reshape => {
                    let mut real = at.iter().zip(b).filter(|(_, n)| **n != 1).map(|(c, _)| *c);
                    a.iter().map(|n| if *n == 1 { 0 } else { real.next().unwrap_or(0) }).collect()
                }
                ShapeOp::Slice => {
                    let starts = inst.attrs.ints("starts").unwrap_or(&[]);
                    at.iter().zip(starts).map(|(c, s)| c + u32::try_from(*s).unwrap_or(0)).collect()
                }
                ShapeOp::Flip | ShapeOp::Join | ShapeOp::Split | ShapeOp::Cat | ShapeOp::Interleave => at,
            }
        };
        let registers = places(from);
        let find = |n: usize| {
            registers
                .get(&key(to.register(n)))
                .copied()
                .ok_or_else(|| Stop::Bug(format!("`{}` of layouts that do not fit", op.name())))
        };
        (0..to.registers()).map(find).collect()
    }

    /// Defines a result as the same value.
    pub fn alias(&mut self, inst: &Inst) -> Res<()> {
        let val = self.value(self.operand(inst, 0)?)?.clone();
        let r = self.result(inst)?;
        self.define(r, val);
        Ok(())
    }
}

/// The first register with these coordinates.
pub fn places(layout: &Layout) -> BTreeMap<Vec<u32>, usize> {
    let mut registers = BTreeMap::new();
    for n in (0..layout.registers()).rev() {
        registers.insert(layout.register(n), n);
    }
    registers
}
