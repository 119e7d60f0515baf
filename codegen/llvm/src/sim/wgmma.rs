//! The matrix instructions of warpgroups, which are asynchronous.
//!
//! A GPU does a product at any time between its start and the end of the wait for it. Here its accumulator is replaced
//! by *marks* at the start, which are NaN as floats, and is computed in the wait: a read before it finds no number. Its
//! operands are read twice, at the start and in the wait, as reads of one lane of each warp: an operand that changes in
//! between, or that is not ordered with both, is a fault, as is one that a lane wrote without a proxy fence.
//!
//! The placement of an operand is read from its descriptor as in the PTX manual ("Matrix Descriptor Format",
//! "Strides"), not taken from [`tk_gpu::analysis::wgmma_shared`], so that a bug there is found.

use tk_gpu::target::mma::{MmaInstruction, all};
use tk_ops::DType;

use super::access::{Reach, Who};
use super::block::Block;
use super::calls::GroupCall;
use super::element::{accumulator, accumulator_bits, element, multiply};
use super::env::Env;
use super::fault::{FaultKind, Wrong};
use super::launch::Global;
use super::sync::Wait;

/// Warps of a warpgroup, and lanes of each.
const WARPS: u32 = 4;
const LANES: u32 = 32;
/// Bytes that stay together in every order.
const CHUNK: usize = 16;
/// The mark of an accumulator element: a NaN with the number of the product and the register.
const MARK: u32 = 0x7FA0_0000;
const REGISTER_BITS: u32 = 7;
const NUMBERS: u32 = 1 << 14;

fn mark(product: u32, register: usize) -> u32 {
    MARK | (product % NUMBERS) << REGISTER_BITS | register as u32
}

/// The register of a mark of this product, if the word is one.
fn register_of(word: u32, product: u32) -> Option<usize> {
    let register = word & ((1 << REGISTER_BITS) - 1);
    (word - register == mark(product, 0)).then_some(register as usize)
}

/// The types and extents of an instruction.
#[derive(Clone, Copy)]
struct Kind {
    matrix: MmaInstruction,
    operands: [DType; 2],
    columns: usize,
}

impl Kind {
    fn of(call: &GroupCall) -> Result<Kind, Wrong> {
        let wrong = || Wrong::new(FaultKind::Call, "an unknown matrix instruction of groups is called");
        let matrix = usize::try_from(call.kind).ok().and_then(|k| all().nth(k)).ok_or_else(wrong)?;
        let dtype = |code: i32| {
            let d = usize::try_from(code).ok().and_then(|c| DType::ALL.get(c)).copied();
            d.filter(|d| matrix.operands.contains(d)).ok_or_else(wrong)
        };
        let operands = [dtype(call.operands[0])?, dtype(call.operands[1])?];
        let columns = usize::try_from(call.columns).unwrap_or(0);
        let fits = matrix.is_wgmma() && (8..=1 << matrix.n).contains(&columns) && columns.is_multiple_of(8);
        if fits { Ok(Kind { matrix, operands, columns }) } else { Err(wrong()) }
    }

    fn rows(&self) -> usize {
        1 << self.matrix.m
    }

    fn k(&self) -> usize {
        1 << self.matrix.k
    }

    /// Accumulator elements of a lane.
    fn accumulators(&self) -> usize {
        self.columns / 2
    }

    /// Words of the left operand of a lane, and elements of each.
    fn words(&self) -> (usize, usize) {
        let each = 4 / self.operands[0].bytes();
        (self.rows() * self.k() / (WARPS * LANES) as usize / each, each)
    }
}

/// A product that has started.
struct Begun {
    number: u32,
    kind: Kind,
    call: GroupCall,
    loc: i32,
    /// The left operand, if it is in registers.
    left_operand: Vec<f64>,
    /// The contents of shared memory.
    found: Vec<u8>,
    /// The accumulators of each lane, one after the other: before, and with the product once it is done.
    accumulators: Vec<u32>,
    done: bool,
    /// The lanes that have not waited for it.
    left: u32,
}

/// The products of a warpgroup.
#[derive(Default)]
pub(super) struct Products {
    begun: Vec<Begun>,
    next: u32,
}

/// The products that a lane has issued: the number of each, with its group.
#[derive(Default)]
pub(super) struct Steps {
    list: Vec<(u32, u32)>,
    complete: u32,
}

impl Steps {
    /// Makes the products since the last commit a group.
    pub fn commit(&mut self) {
        self.complete += 1;
    }
}

impl Block {
    /// All lanes of a warpgroup have arrived.
    pub fn begin_product(&mut self, group: u32, call: GroupCall, env: &mut Env<'_>) -> Result<(), Wrong> {
        if self.sync_points.warp_size != LANES {
            return Err(Wrong::new(FaultKind::Call, format!("groups are of {WARPS} warps of {LANES} lanes")));
        }
        let kind = Kind::of(&call)?;
        let first = group * WARPS * LANES;
        let waits: Vec<Wait> = (first..first + WARPS * LANES)
            .filter_map(|n| self.lanes.get(n as usize).and_then(|l| l.wait))
            .collect();
        let Some(products) = self.products.get_mut(group as usize) else { return Ok(()) };
        let number = products.next % NUMBERS;
        products.next += 1;
        let mut begun = Begun {
            number,
            kind,
            call,
            loc: waits.first().map_or(-1, |w| w.loc),
            left_operand: if call.flags & 1 == 1 { left_operands(kind, &waits) } else { vec![] },
            found: vec![],
            accumulators: vec![],
            done: false,
            left: WARPS * LANES,
        };
        begun.found = operands(&begun, first, &mut self.reach, env.memory)?;
        for wait in &waits {
            let registers = wait.registers as *mut u32;
            for register in 0..kind.accumulators() {
                // SAFETY: the lane waits, and guarantees that this many words may be read and written there.
                unsafe {
                    begun.accumulators.push(registers.add(register).read_unaligned());
                    registers.add(register).write_unaligned(mark(number, register));
                }
            }
        }
        products.begun.push(begun);
        for lane in self.lanes.iter_mut().skip(first as usize).take((WARPS * LANES) as usize) {
            lane.steps.list.push((lane.steps.complete, number));
        }
        Ok(())
    }

    /// A lane waits for its groups except the last `pending`; marks among its words are replaced by accumulator
    /// elements.
    pub fn await_products(
        &mut self,
        lane: u32,
        pending: i32,
        (start, words): (*mut u8, i32),
        env: &mut Env<'_>,
    ) -> Result<(), Wrong> {
        let group = lane / (WARPS * LANES);
        let (Some(own), Some(products)) =
            (self.lanes.get_mut(lane as usize), self.products.get_mut(group as usize))
        else {
            return Ok(());
        };
        let done = own.steps.complete.saturating_sub(u32::try_from(pending).unwrap_or(0));
        let (due, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut own.steps.list).into_iter().partition(|(step, _)| *step < done);
        own.steps.list = rest;
        let first = group * WARPS * LANES;
        let mine = (lane - first) as usize;
        for (_, number) in due {
            products.finish(number, first, &mut self.reach, env.memory)?;
            let Some(begun) = products.begun.iter_mut().find(|b| b.number == number) else { continue };
            let registers = begun.kind.accumulators();
            let own = begun.accumulators.chunks(registers).nth(mine).unwrap_or(&[]);
            for word in 0..usize::try_from(words).unwrap_or(0) {
                // SAFETY: the lane guarantees that this many words may be read and written there.
                let word = unsafe { start.cast::<u32>().add(word) };
                // SAFETY: as above.
                let register = register_of(unsafe { word.read_unaligned() }, number);
                if let Some(acc) = register.and_then(|r| own.get(r)) {
                    // SAFETY: as above.
                    unsafe { word.write_unaligned(*acc) };
                }
            }
            begun.left -= 1;
        }
        products.begun.retain(|b| b.left > 0);
        Ok(())
    }
}

impl Products {
    /// Computes a product for which a lane waits, unless it is done.
    fn finish(
        &mut self,
        number: u32,
        first: u32,
        reach: &mut Reach,
        memory: &dyn Global,
    ) -> Result<(), Wrong> {
        let Some(at) = self.begun.iter().position(|b| b.number == number) else { return Ok(()) };
        let (before, rest) = self.begun.split_at_mut(at);
        let Some((begun, later)) = rest.split_first_mut() else { return Ok(()) };
        debug_assert!(before.iter().all(|b| b.done), "steps are done in order");
        if begun.done {
            return Ok(());
        }
        if operands(begun, first, reach, memory)? != begun.found {
            let message = "what a matrix instruction of a group multiplies changes before it is waited for";
            return Err(Wrong::with(FaultKind::Race, message, begun.loc));
        }
        begun.multiply();
        begun.done = true;
        let registers = begun.kind.accumulators();
        // The next product on these accumulators reads them.
        for other in later.iter_mut().filter(|o| o.kind.accumulators() == registers) {
            for (n, acc) in other.accumulators.iter_mut().enumerate() {
                if *acc == mark(number, n % registers) {
                    *acc = begun.accumulators.get(n).copied().unwrap_or(0);
                }
            }
        }
        Ok(())
    }
}

/// The left operand from the words of the lanes (PTX manual, "Register Fragments" of `wgmma`).
fn left_operands(kind: Kind, waits: &[Wait]) -> Vec<f64> {
    let (words, each) = kind.words();
    let mut all = vec![0.0; kind.rows() * kind.k()];
    for (wait, number) in waits.iter().zip(0usize..) {
        let (warp, lane) = (number / LANES as usize, number % LANES as usize);
        let (group, within) = (lane / 4, lane % 4);
        for word in 0..words {
            let registers = wait.more as *const u32;
            // SAFETY: the lane waits, and guarantees that this many words may be read there.
            let bits = unsafe { registers.add(word).read_unaligned() };
            for j in 0..each {
                let row = 16 * warp + group + 8 * (word % 2);
                let column = within * each + j + 4 * each * (word / 2);
                let part = u64::from(bits) >> (j * 8 * kind.operands[0].bytes());
                let slot = all.get_mut(row * kind.k() + column);
                slot.into_iter().for_each(|e| *e = element(kind.operands[0], part));
            }
        }
    }
    all
}

/// The addresses of the chunks of an operand, in the order of their lines.
fn chunks(descriptor: u64, across: bool, extent: usize, kind: Kind, side: usize) -> Result<Vec<u64>, Wrong> {
    let field = |from: u32| (descriptor >> from & 0x3FFF) << 4;
    let (start, leading, stride) = (field(0), field(16), field(32));
    let span = match descriptor >> 62 {
        1 => 128,
        2 => 64,
        3 => 32,
        _ => return Err(Wrong::new(FaultKind::Call, "an operand of wgmma has an unknown order")),
    };
    let bytes = kind.operands[side.min(1)].bytes() as u64;
    if across && bytes != 2 {
        return Err(Wrong::new(FaultKind::Call, "only elements of two bytes are neighbours across K"));
    }
    let (lines, along) = if across {
        (kind.k() as u64, extent as u64 * bytes)
    } else {
        (extent as u64, kind.k() as u64 * bytes)
    };
    let mut all = vec![];
    for line in 0..lines {
        for at in (0..along).step_by(CHUNK) {
            let near = if across { at / span * leading + at % span } else { at };
            let address = start + line / 8 * stride + line % 8 * span + near;
            all.push(address ^ (address >> 3 & (span - CHUNK as u64)));
        }
    }
    Ok(all)
}

/// The bytes of the operands in shared memory.
fn operands(begun: &Begun, first: u32, reach: &mut Reach, memory: &dyn Global) -> Result<Vec<u8>, Wrong> {
    let (kind, call) = (begun.kind, begun.call);
    let mut places = vec![];
    if call.flags & 1 == 0 {
        places.extend(chunks(call.left, call.flags & 2 != 0, kind.rows(), kind, 0)?);
    }
    places.extend(chunks(call.right, call.flags & 4 != 0, kind.columns, kind, 1)?);
    let mut all = vec![0; places.len() * CHUNK];
    for ((n, at), chunk) in places.iter().enumerate().zip(all.chunks_mut(CHUNK)) {
        let lane = first + n as u32 % WARPS * LANES;
        reach.read_by_async_proxy(memory, Who { lane, loc: begun.loc }, *at, chunk)?;
    }
    Ok(all)
}

impl Begun {
    /// Adds the product to the accumulators.
    fn multiply(&mut self) {
        let (kind, call) = (self.kind, self.call);
        let (rows, columns, k) = (kind.rows(), kind.columns, kind.k());
        // Puts the elements of an operand into a matrix whose strides across K and along it these are.
        let decode =
            |bytes: &[u8], side: usize, across: bool, [from, along]: [usize; 2], into: &mut [f64]| {
                let d = kind.operands[side];
                let extent = into.len() / k;
                let each = if across { extent } else { k };
                for (n, x) in bytes.chunks(d.bytes()).enumerate() {
                    let (line, at) = (n / each, n % each);
                    let mut bits = [0; 8];
                    bits.iter_mut().zip(x).for_each(|(to, from)| *to = *from);
                    let (x_at, k_at) = if across { (at, line) } else { (line, at) };
                    let slot = into.get_mut(x_at * from + k_at * along);
                    slot.into_iter().for_each(|e| *e = element(d, u64::from_le_bytes(bits)));
                }
            };
        let in_registers = call.flags & 1 == 1;
        let left_bytes = if in_registers { 0 } else { rows * k * kind.operands[0].bytes() };
        let (left_part, right_part) = self.found.split_at(left_bytes.min(self.found.len()));
        let mut left = self.left_operand.clone();
        left.resize(rows * k, 0.0);
        decode(left_part, 0, call.flags & 2 != 0, [k, 1], &mut left);
        let mut right = vec![0.0; k * columns];
        decode(right_part, 1, call.flags & 4 != 0, [1, columns], &mut right);
        let registers = kind.accumulators();
        // The place in the matrix of an accumulator (PTX manual, "Register Fragments" of `wgmma`).
        let place = |n: usize| {
            let (lane, register) = (n / registers, n % registers);
            let (warp, lane) = (lane / LANES as usize, lane % LANES as usize);
            let row = 16 * warp + lane / 4 + 8 * (register / 2 % 2);
            row * columns + 8 * (register / 4) + 2 * (lane % 4) + register % 2
        };
        let mut sums = vec![0.0; rows * columns];
        for (n, acc) in self.accumulators.iter().enumerate() {
            sums.get_mut(place(n))
                .into_iter()
                .for_each(|s| *s = accumulator(kind.matrix.acc, u64::from(*acc)));
        }
        multiply(kind.matrix.acc, (columns, k), &left, &right, &mut sums);
        for (n, acc) in self.accumulators.iter_mut().enumerate() {
            *acc = accumulator_bits(kind.matrix.acc, sums.get(place(n)).copied().unwrap_or(f64::NAN)) as u32;
        }
    }
}
