//! Emits matrix products by instructions of a warp: fragments are read from shared memory step by step along K, or are
//! in registers already; accumulators stay in registers.
//!
//! Requires `mma` as verified in scheduled kernels. Guarantees that every address is the start of a buffer plus an
//! offset that depends on the thread and the step ([`SharedFragments::access`]).

use std::cell::RefCell;
use std::collections::BTreeMap;

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::analysis;
use tk_gpu::analysis::ldmatrix::{self, Read};
use tk_gpu::ir::op::{self, BufferRef, FragmentLoad, Fragments, Mma, MmaOperand};
use tk_gpu::ir::shared_access;
use tk_gpu::layout::cut;
use tk_gpu::target::mma::{Fragment, InstructionName, MmaInstruction, Tiles};
use tk_gpu::target::precision::Precision;
use tk_ops::DType;
use tk_tile::{Inst, ValueId};

use super::interleave;
use super::shared::decided;
use super::value::vector_of;
use super::{Emit, Res, Stop, bug};
use crate::target::request::MmaRequest;
use crate::target::{Access, Space};

/// The bits of an f32 that a tf32 lacks.
const TF32_LEAVES_OUT: u32 = 0x1FFF;
/// The quiet bit of a NaN of f32.
const QUIET: u32 = 0x0040_0000;

/// An operand.
struct Side<'c> {
    fragment: Fragment,
    dtype: DType,
    /// Log2 of the elements of a word.
    packed: usize,
    from: From<'c>,
}

/// The words of the instructions of a step.
type Words<'c> = Vec<Vec<BasicValueEnum<'c>>>;

/// An operand for one step.
struct Step<'c> {
    /// The words that are multiplied with the other operand.
    all: Words<'c>,
    /// The remainder of each element that `all` leaves out, and `all` once more without non-finite elements.
    rest: Option<(Words<'c>, Words<'c>)>,
}

/// How an instruction reads the bits of its operands.
#[derive(Clone, Copy)]
struct Bits {
    /// Of an f32, those of a tf32; with `split` the remainder is multiplied as well.
    rounds: bool,
    split: bool,
    /// Of an 8-bit float, as half of it.
    is_fnuz: bool,
}

/// The source of an operand.
enum From<'c> {
    /// A value for each register of the layout.
    Registers(Vec<BasicValueEnum<'c>>),
    Buffer(SharedFragments<'c>),
}

/// An operand in shared memory. All sizes are bytes.
struct SharedFragments<'c> {
    load: FragmentLoad,
    /// Log2 of the words that a lane receives of one access to the elements of several lanes.
    words: usize,
    /// The register bits of the neighbours that one access loads if each lane reads its own elements.
    vector: Vec<usize>,
    /// The offset of the buffer.
    start: i64,
    /// The offset of the stage that is read, if `near` does not contain it.
    stage: Option<IntValue<'c>>,
    /// The size of an atom.
    atom: i64,
    /// The offset at which the thread reads, from the start of an atom, for the registers that are all zero.
    near: IntValue<'c>,
    /// The bits that may be set in `near`.
    threads: i64,
    /// The offsets of register bits, added by exclusive or: those that number accesses of a matrix load, or all of
    /// them.
    rest: Vec<i64>,
    /// `near` with some bits changed, computed on demand.
    moved: RefCell<BTreeMap<i64, IntValue<'c>>>,
}

impl<'c> SharedFragments<'c> {
    /// The location of access `number` of an atom: an address and an offset.
    fn access(&self, e: &Emit<'_, 'c>, atom: usize, number: usize) -> Res<(IntValue<'c>, i64)> {
        let bits = self.rest.iter().enumerate().filter(|(i, _)| number >> i & 1 == 1);
        let inside = bits.fold(0, |all, (_, image)| all ^ image);
        // Exclusive or is addition in bits that are zero in the thread's offset.
        let shared = inside & self.threads;
        let known = self.moved.borrow().get(&shared).copied();
        let address = match known {
            Some(address) => address,
            None => {
                let by = e.i32().const_int(shared.cast_unsigned(), false);
                let mut address = e.builder.build_xor(self.near, by, "")?;
                if let Some(stage) = self.stage {
                    address = e.builder.build_int_add(address, stage, "")?;
                }
                self.moved.borrow_mut().insert(shared, address);
                address
            }
        };
        Ok((address, self.start + atom as i64 * self.atom + (inside & !self.threads)))
    }
}

impl<'c> Emit<'_, 'c> {
    pub(super) fn mma(&mut self, inst: &Inst, op: &Mma) -> Res<()> {
        let (acc, r) = (self.operand(inst, 0)?, self.result(inst)?);
        let (product, tiles) = self.product_of(op.product, op.instruction, acc)?;
        let k = op.product.k;
        let to = self.dtype(r).ok_or_else(|| Stop::Bug("a product of pointers".into()))?;
        let acc_type = if to.is_int() { to } else { product.matrix.acc };
        let fragment = tiles.accumulator();
        let atoms = fragment.repeats().map(|n| n as usize);
        let registers = self.registers(acc)?;
        let mut accumulators = vec![];
        for atom in 0..atoms[0] * atoms[1] {
            for n in 0..fragment.registers() {
                let x = registers.get(fragment.register_index(atom, n)).copied();
                let x = x.ok_or_else(|| Stop::Bug("an accumulator lacks a register".into()))?;
                accumulators.push(self.converted(x, to, acc_type)?);
            }
        }
        let before = product.matrix.is_fnuz.then(|| accumulators.clone());
        if before.is_some() {
            accumulators.iter_mut().for_each(|x| *x = self.zero(Some(acc_type)));
        }
        if product.matrix.is_wgmma() {
            let accumulators = self.multiply_wgmma((inst, op), (&product, &tiles, k), accumulators)?;
            let back = |x| self.converted(x, acc_type, to);
            let accumulators = accumulators.into_iter().map(back).collect::<Res<Vec<_>>>()?;
            return self.define_regs(r, accumulators);
        }
        let sides = self.sides((inst, op), &product, &tiles, k)?;
        let [a, b] = &sides;
        let along = cut(k).repeats as usize;
        self.order_products(&sides, along, atoms)?;
        let MmaInstruction { rounds, is_fnuz, .. } = product.matrix;
        let split = rounds && op.product.precision == Precision::Tf32x3;
        let bits = Bits { rounds, split, is_fnuz };
        for atom in 0..along {
            for step in 0..1 << a.fragment.steps {
                let left = (0..atoms[0])
                    .map(|m| self.operand_step(a, bits, m * along + atom, step))
                    .collect::<Res<Vec<_>>>()?;
                let right = (0..atoms[1])
                    .map(|n| self.operand_step(b, bits, atom * atoms[1] + n, step))
                    .collect::<Res<Vec<_>>>()?;
                for (m, left) in left.iter().enumerate() {
                    for (n, right) in right.iter().enumerate() {
                        let first = (m * atoms[1] + n) * fragment.registers();
                        let part = accumulators.get_mut(first..first + fragment.registers());
                        let Some(part) = part else { return bug("an accumulator lacks an atom") };
                        if let (Some((rest, finite)), Some((other, fine))) = (&left.rest, &right.rest) {
                            self.multiply_step(&product, rest, fine, part, fragment.own)?;
                            self.multiply_step(&product, finite, other, part, fragment.own)?;
                        }
                        self.multiply_step(&product, &left.all, &right.all, part, fragment.own)?;
                    }
                }
            }
        }
        // Beside so many accumulators, what comes next has no room before the operands are read.
        if 2 * accumulators.len() >= self.kernel.options.spec.registers as usize {
            self.target.schedules_after(self)?;
        }
        if let Some(before) = before {
            // Both operands were half of their values.
            let four = self.context.f32_type().const_float(4.0);
            for (x, before) in accumulators.iter_mut().zip(before) {
                let whole = self.builder.build_float_mul(x.into_float_value(), four, "")?;
                *x = self.builder.build_float_add(before.into_float_value(), whole, "")?.into();
            }
        }
        let mut regs = vec![];
        for (n, x) in accumulators.into_iter().enumerate() {
            let register = n % fragment.registers();
            let again = fragment.register().iter().enumerate();
            let repeats = |(i, b): (usize, &[u32; 2])| *b == [0, 0] && register >> i & 1 == 1;
            if !again.into_iter().any(repeats) {
                regs.push(self.converted(x, acc_type, to)?);
            }
        }
        self.define_regs(r, regs)
    }

    /// Notes the matrix instructions and reads of a product for the order of an iteration.
    fn order_products(&self, sides: &[Side<'c>; 2], along: usize, atoms: [usize; 2]) -> Res<()> {
        let Some(ahead) = self.ahead.as_ref().filter(|_| self.orders_iterations()) else {
            return Ok(());
        };
        let [a, b] = sides;
        let together = 1 << a.fragment.together;
        let reads = |(side, atoms): (&Side<'c>, usize)| match &side.from {
            From::Registers(_) => 0,
            From::Buffer(shared) => {
                let (f, of_element) = (&side.fragment, side.dtype.bytes());
                interleave::reads(shared.load, atoms * (of_element << f.read_together()), of_element)
            }
        };
        let of_step = (atoms[0] << a.fragment.tiles()) * (atoms[1] << b.fragment.tiles());
        let parts = along * (1 << a.fragment.steps) / together;
        let reads = [(a, atoms[0]), (b, atoms[1])].map(reads).iter().sum();
        ahead.order.borrow_mut().multiply(self.here()?, parts, reads, together * of_step);
        Ok(())
    }

    /// One step along K: every instruction of it. Accumulators are numbered with columns faster than rows.
    fn multiply_step(
        &self,
        product: &MmaRequest,
        left: &[Vec<BasicValueEnum<'c>>],
        right: &[Vec<BasicValueEnum<'c>>],
        accumulators: &mut [BasicValueEnum<'c>],
        own: usize,
    ) -> Res<()> {
        let exchanged = product.matrix.form.exchanges();
        let [x, y] = product.operands;
        let product = &if exchanged { MmaRequest { operands: [y, x], ..*product } } else { *product };
        for (n, c) in accumulators.chunks_mut(1 << own).enumerate() {
            let (Some(a), Some(b)) = (left.get(n / right.len().max(1)), right.get(n % right.len().max(1)))
            else {
                return bug("a step lacks a fragment");
            };
            let (a, b) = if exchanged { (b, a) } else { (a, b) };
            let next = self.target.multiply(self, product, a, b, c)?;
            for (c, x) in c.iter_mut().zip(next) {
                *c = x;
            }
        }
        Ok(())
    }

    /// The part of an operand in a buffer that one instruction multiplies, or all of it.
    pub(super) fn fragments(&mut self, inst: &Inst, op: &Fragments) -> Res<()> {
        let (acc, r) = (self.operand(inst, 0)?, self.result(inst)?);
        let (product, tiles) = self.product_of(op.product, op.instruction, acc)?;
        let n = op.axis;
        let Some(dtype) = product.operands.get(n).copied() else { return bug("an operand is missing") };
        let whole = op.product.k;
        let (own, along) = (1 << product.matrix.k, self.shape(r).get(1 - n.min(1)).copied().unwrap_or(whole));
        let (fragment, part) = (tiles.operand(n, whole), tiles.operand(n, along));
        let load = decided(op.load)?;
        let shared = self.shared_fragments(inst, &fragment, op.buffer, (&op.bases, dtype, load))?;
        let packed = product.matrix.packed() as usize;
        let words = 1 << (fragment.own + fragment.tiles() - packed);
        let atoms: u32 = fragment.repeats().iter().product();
        let side = Side { fragment, dtype, packed, from: From::Registers(vec![]) };
        let mut regs = vec![self.zero(Some(dtype)); self.count(r)?];
        let of_step = side.fragment.own + side.fragment.tiles();
        let (first, steps) =
            ((op.start / own) as usize, if along == whole { 1 << side.fragment.steps } else { 1 });
        for (atom, step) in (0..atoms as usize).flat_map(|atom| (0..steps).map(move |step| (atom, step))) {
            let found = self.read_words(&side, &shared, atom, first + step, words)?;
            for (i, x) in self.unpacked(&side, &found)?.into_iter().enumerate() {
                let register = part.register_index(atom, step << of_step | i);
                regs.get_mut(register).into_iter().for_each(|slot| *slot = x);
            }
        }
        self.define_regs(r, regs)
    }

    fn unpacked(&self, side: &Side<'c>, words: &[BasicValueEnum<'c>]) -> Res<Vec<BasicValueEnum<'c>>> {
        self.unpacked_words(self.zero(Some(side.dtype)).get_type(), 1 << side.packed, words)
    }

    /// The elements of words with this many each.
    pub(super) fn unpacked_words(
        &self,
        element: BasicTypeEnum<'c>,
        each: u32,
        words: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let mut out = vec![];
        for word in words {
            if each == 1 {
                let same = word.get_type() == element;
                out.push(if same { *word } else { self.builder.build_bit_cast(*word, element, "")? });
                continue;
            }
            let vector = vector_of(element, each)?;
            let vector = self.builder.build_bit_cast(*word, vector, "")?.into_vector_value();
            for i in 0..each {
                out.push(self.builder.build_extract_element(vector, self.int(i), "")?);
            }
        }
        Ok(out)
    }

    fn product_of(
        &self,
        product: op::Product,
        instruction: InstructionName,
        acc: ValueId,
    ) -> Res<(MmaRequest, Tiles)> {
        match analysis::mma::tiles(self.kernel, product, instruction, acc) {
            Some(tiles) => Ok((MmaRequest { matrix: tiles.matrix, operands: product.elems }, tiles)),
            None => bug("there is no such matrix instruction"),
        }
    }

    fn sides(
        &self,
        (inst, op): (&Inst, &Mma),
        product: &MmaRequest,
        tiles: &Tiles,
        k: u32,
    ) -> Res<[Side<'c>; 2]> {
        let mut in_registers = tk_gpu::ir::shared_access::plain_operands(inst).iter().skip(1);
        let mut side = |n: usize, operand: &MmaOperand| -> Res<Side<'c>> {
            let fragment = tiles.operand(n, k);
            let dtype = product.operands[n.min(1)];
            let from = match operand {
                MmaOperand::Shared { buffer, bases, load } => From::Buffer(self.shared_fragments(
                    inst,
                    &fragment,
                    *buffer,
                    (bases, dtype, decided(*load)?),
                )?),
                MmaOperand::Registers => {
                    let v = in_registers.next().ok_or_else(|| Stop::Bug("an operand is missing".into()))?;
                    From::Registers(self.registers(*v)?)
                }
            };
            Ok(Side { fragment, dtype, packed: product.matrix.packed() as usize, from })
        };
        Ok([side(0, &op.a)?, side(1, &op.b)?])
    }

    fn shared_fragments(
        &self,
        inst: &Inst,
        f: &Fragment,
        buffer: BufferRef,
        (bases, dtype, load): (&[i64], DType, FragmentLoad),
    ) -> Res<SharedFragments<'c>> {
        let bytes = dtype.bytes() as u32;
        let Some(found) = self.kernel.buffers.get(buffer.buffer) else {
            return bug("an operand has no buffer");
        };
        let read = match load {
            FragmentLoad::Matrices => Read::Rows,
            FragmentLoad::TransposedMatrices => Read::Columns,
            FragmentLoad::Transposed => Read::Transposed,
            FragmentLoad::Vector(_) => Read::Own,
            FragmentLoad::Instruction => return bug("an operand of a warp is read by a group"),
        };
        let Some(reader) = ldmatrix::reader(f, read, bytes) else { return bug("an operand cannot be read") };
        let size = i64::from(bytes);
        let image = |b: &[u32; 2]| shared_access::image(bases, &f.out_bits(), b) * size;
        let thread: Vec<i64> = reader.lane.iter().chain(f.warp()).map(image).collect();
        let rest: Vec<i64> = reader.rest.iter().map(image).collect();
        let elements = |list: &[i64]| list.iter().map(|p| p / size).collect::<Vec<i64>>();
        let vector = match load {
            FragmentLoad::Vector(n) => {
                ldmatrix::neighbours(f, &elements(&rest), &elements(&thread), n.trailing_zeros() as usize)
            }
            FragmentLoad::Matrices
            | FragmentLoad::TransposedMatrices
            | FragmentLoad::Transposed
            | FragmentLoad::Instruction => vec![],
        };
        let images: Vec<u64> = thread.iter().map(|p| p.cast_unsigned()).collect();
        let (near, stage) = match self.toggled(&images, inst, buffer)? {
            Some(near) => (near, None),
            None => (self.linear(self.tid, &images)?, self.stage(inst, buffer)?),
        };
        Ok(SharedFragments {
            load,
            words: reader.words,
            vector,
            start: i64::from(found.offset),
            atom: size << f.out_bits().iter().sum::<u32>(),
            stage,
            near,
            threads: thread.iter().fold(0, |all, p| all | p),
            rest,
            moved: RefCell::default(),
        })
    }

    /// An operand for one step of an atom.
    fn operand_step(&self, side: &Side<'c>, bits: Bits, atom: usize, step: usize) -> Res<Step<'c>> {
        let words = self.operand_words(side, atom, step)?;
        let each = 1 << (side.fragment.own - side.packed);
        let grouped = |words: &[BasicValueEnum<'c>]| words.chunks(each).map(<[_]>::to_vec).collect();
        if bits.is_fnuz {
            let halves = words.iter().map(|x| Ok(self.halves(x.into_int_value())?.into()));
            return Ok(Step { all: grouped(&halves.collect::<Res<Vec<_>>>()?), rest: None });
        }
        if !bits.rounds {
            return Ok(Step { all: grouped(&words), rest: None });
        }
        if !bits.split {
            let rounded = words.iter().map(|x| self.target.tf32(self, x.into_int_value()));
            return Ok(Step { all: grouped(&rounded.collect::<Res<Vec<_>>>()?), rest: None });
        }
        let (mut all, mut rest, mut finite) = (vec![], vec![], vec![]);
        for x in words {
            let [a, b, c] = self.tf32_parts(x.into_int_value())?;
            all.push(a);
            rest.push(b);
            finite.push(c);
        }
        Ok(Step { all: grouped(&all), rest: Some((grouped(&rest), grouped(&finite))) })
    }

    /// Four 8-bit floats as the instruction reads half of each: without the sign of zeros, and with its own code of
    /// NaN. A sum of two numbers of 7 bits stays in its byte.
    fn halves(&self, x: IntValue<'c>) -> Res<IntValue<'c>> {
        let b = self.builder;
        let of_each = |byte: u32| self.int(byte * 0x0101_0101);
        let size = b.build_and(x, of_each(0x7F), "")?;
        // The highest bit of a byte is set if it is not zero, and if all others are ones, which is NaN.
        let some = b.build_and(b.build_int_add(size, of_each(0x7F), "")?, of_each(0x80), "")?;
        let nan = b.build_and(b.build_int_add(size, of_each(0x01), "")?, of_each(0x80), "")?;
        let number = b.build_or(size, b.build_and(x, some, "")?, "")?;
        // 0x80 minus 0x01 is 0x7F.
        let low = b.build_int_sub(nan, b.build_right_shift(nan, self.int(7), false, "")?, "")?;
        let ones = b.build_or(nan, low, "")?;
        Ok(b.build_or(b.build_and(number, b.build_not(ones, "")?, "")?, nan, "")?)
    }

    /// The tf32 part of an f32, and its remainder as another tf32. Infinity has no remainder; the value that multiplies
    /// the remainder of the other operand, which may be 0, is 0 for it.
    fn tf32_parts(&self, x: IntValue<'c>) -> Res<[BasicValueEnum<'c>; 3]> {
        let (b, float) = (self.builder, self.context.f32_type());
        let zero = self.int(0);
        let high = b.build_and(x, self.int(!TF32_LEAVES_OUT), "")?;
        // A NaN remains one, whichever of its bits are set.
        let own = b.build_bit_cast(x, float, "")?.into_float_value();
        let nan = b.build_float_compare(inkwell::FloatPredicate::UNO, own, own, "")?;
        let quiet = b.build_or(x, self.int(QUIET), "")?;
        let high = b.build_select(nan, quiet, high, "")?.into_int_value();
        let value = |x: IntValue<'c>| Ok::<_, Stop>(b.build_bit_cast(x, float, "")?.into_float_value());
        let rest = b.build_float_sub(value(x)?, value(high)?, "")?;
        let odd = b.build_float_compare(inkwell::FloatPredicate::UNO, rest, rest, "")?;
        let rest = b.build_bit_cast(rest, self.i32(), "")?.into_int_value();
        let rest = b.build_select(odd, zero, rest, "")?.into_int_value();
        let finite = b.build_select(odd, zero, high, "")?;
        Ok([high.into(), self.target.tf32(self, rest)?, finite])
    }

    /// The words of one step of an atom.
    fn operand_words(&self, side: &Side<'c>, atom: usize, step: usize) -> Res<Vec<BasicValueEnum<'c>>> {
        let f = &side.fragment;
        let words = 1 << (f.own + f.tiles() - side.packed);
        match &side.from {
            From::Registers(regs) => {
                let first = step << (f.own + f.tiles());
                let elements = (first..first + (words << side.packed))
                    .map(|n| regs.get(f.register_index(atom, n)).copied())
                    .collect::<Option<Vec<_>>>();
                let elements = elements.ok_or_else(|| Stop::Bug("an operand lacks a register".into()))?;
                self.packed(side, &elements)
            }
            From::Buffer(shared) => self.read_words(side, shared, atom, step, words),
        }
    }

    fn read_words(
        &self,
        side: &Side<'c>,
        shared: &SharedFragments<'c>,
        atom: usize,
        step: usize,
        words: usize,
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        if let FragmentLoad::Vector(_) = shared.load {
            return self.read_own(side, shared, atom, step);
        }
        let mut out: Vec<BasicValueEnum<'c>> = vec![];
        let count = words >> shared.words;
        for n in 0..count {
            let (address, offset) = shared.access(self, atom, step * count + n)?;
            let transposed = shared.load == FragmentLoad::TransposedMatrices;
            let loaded = match shared.load {
                FragmentLoad::Transposed => {
                    self.target.load_transposed(self, (address, offset), side.dtype.bytes())?
                }
                _matrices => {
                    self.target.load_matrices(self, address, offset, 1 << shared.words, transposed)?
                }
            };
            out.extend(loaded.into_iter().map(BasicValueEnum::from));
        }
        Ok(out)
    }

    /// Every lane reads its own elements, word by word if the elements of a word are neighbours. What an access has of another
    /// step is read there again, by an equal access that LLVM finds.
    fn read_own(
        &self,
        side: &Side<'c>,
        shared: &SharedFragments<'c>,
        atom: usize,
        step: usize,
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let f = &side.fragment;
        let whole = (0..side.packed).all(|i| shared.vector.get(i) == Some(&i));
        let skipped = if whole { side.packed } else { 0 };
        let vector = shared.vector.get(skipped..).unwrap_or(&[]);
        let bytes = (side.dtype.bytes() as u32) << skipped;
        let ty: BasicTypeEnum<'c> =
            if whole { self.word_type(side.dtype) } else { self.memory_type(Some(side.dtype)) };
        let of_step = f.own + f.tiles();
        let registers = 1usize << of_step;
        let mut found = vec![ty.const_zero(); registers >> skipped];
        let moving: usize = shared.vector.iter().map(|i| 1 << i).sum();
        for n in (0..registers).filter(|n| n & (moving | ((1 << skipped) - 1)) == 0) {
            let (address, offset) = shared.access(self, atom, ((step << of_step) | n) & !moving)?;
            let count = 1u32 << vector.len();
            let access = Access::of(address, offset, ty, bytes, count);
            let zeros = vec![ty.const_zero(); count as usize];
            let loaded = self.target.load(self, Space::Shared, &access, &zeros)?;
            for (i, x) in loaded.into_iter().enumerate() {
                let bits = vector.iter().enumerate().filter(|(b, _)| i >> b & 1 == 1);
                let register = bits.fold(n, |n, (_, bit)| n | 1 << bit);
                if register >> of_step == step & (moving >> of_step) {
                    let slot = found.get_mut((register & (registers - 1)) >> skipped);
                    slot.into_iter().for_each(|slot| *slot = x);
                }
            }
        }
        if whole { Ok(found) } else { self.packed(side, &found) }
    }

    /// A register of an instruction.
    fn word_type(&self, d: DType) -> BasicTypeEnum<'c> {
        if d == DType::F64 { self.context.f64_type().into() } else { self.i32().into() }
    }

    fn packed(&self, side: &Side<'c>, elements: &[BasicValueEnum<'c>]) -> Res<Vec<BasicValueEnum<'c>>> {
        self.packed_words(side.dtype, side.packed, elements)
    }

    /// Packs elements into words of `2^packed`.
    pub(super) fn packed_words(
        &self,
        dtype: DType,
        packed: usize,
        elements: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let word = self.word_type(dtype);
        let mut out = vec![];
        for part in elements.chunks(1 << packed) {
            let [first, ..] = part else { return bug("a word of nothing") };
            if part.len() == 1 {
                let same = first.get_type() == word;
                out.push(if same { *first } else { self.builder.build_bit_cast(*first, word, "")? });
                continue;
            }
            let mut vector = vector_of(first.get_type(), part.len() as u32)?.get_undef();
            for (i, x) in part.iter().enumerate() {
                vector = self.builder.build_insert_element(vector, *x, self.int(i as u32), "")?;
            }
            out.push(self.builder.build_bit_cast(vector, word, "")?);
        }
        Ok(out)
    }
}
