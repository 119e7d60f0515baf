//! Computes addresses in shared memory for the registers of a thread: [`Places`].

use inkwell::values::IntValue;
use tk_gpu::ir::kernel::LayoutId;
use tk_gpu::ir::op::{BufferRef, Placement, Strides};
use tk_gpu::ir::shared_access::{atom_place, image};
use tk_gpu::layout::Layout;
use tk_gpu::layout::linear::InDim;
use tk_tile::{Inst, ValueId};

use super::{Emit, Res, Stop};

/// The placement of a tile in shared memory: the fields of the operation that accesses it.
#[derive(Clone, Copy)]
pub(super) struct Slot<'i> {
    pub inst: &'i Inst,
    pub buffer: BufferRef,
    pub placement: &'i Placement,
    /// Neighbours in consecutive registers that one access moves.
    pub vector: u32,
}

/// The addresses of the registers of a thread in a buffer.
pub(super) struct Places<'c> {
    /// Bytes from the start of shared memory, for register 0.
    pub base: IntValue<'c>,
    /// The offset of each register.
    pub registers: Vec<At<'c>>,
    /// Neighbours in consecutive registers that one access moves.
    pub vector: u32,
}

/// The address of a register relative to that of register 0.
#[derive(Clone, Copy)]
pub(super) enum At<'c> {
    /// An offset in bytes.
    Bytes(i64),
    /// Another address, and an offset in bytes.
    Place(IntValue<'c>, i64),
}

impl<'c> Emit<'_, 'c> {
    /// Advances addresses to the stage of a multi-stage buffer that an instruction accesses.
    fn in_stage(&self, at: Slot<'_>, places: Places<'c>) -> Res<Places<'c>> {
        let Some(by) = self.stage(at.inst, at.buffer)? else { return Ok(places) };
        let moved = |at: IntValue<'c>| self.builder.build_int_add(at, by, "");
        let registers = places.registers.into_iter().map(|r| {
            Ok(match r {
                At::Place(p, by) => At::Place(moved(p)?, by),
                At::Bytes(b) => At::Bytes(b),
            })
        });
        Ok(Places {
            base: moved(places.base)?,
            registers: registers.collect::<Res<_>>()?,
            vector: places.vector,
        })
    }

    /// The addresses of the registers of a tile.
    pub(super) fn places_of(&self, at: Slot<'_>, tile: ValueId) -> Res<Places<'c>> {
        let bytes = self.bytes_of(tile);
        let start = i64::from(self.buffer(at.buffer.buffer)?);
        if self.shape(tile).is_empty() {
            let at = if let Placement::Strided(strides) = at.placement { strides.start } else { 0 };
            let base = self.i32().const_int((start + at * i64::from(bytes)).cast_unsigned(), false);
            return Ok(Places { base, registers: vec![At::Bytes(0)], vector: 1 });
        }
        let layout = self.layout_id(tile)?;
        let places = match at.placement {
            Placement::Strided(strides) => {
                self.in_stage(at, self.strided(layout, start, strides, bytes, None)?)?
            }
            Placement::Swizzled { bases } => self.swizzled(layout, start, (bases, bytes), at)?,
        };
        Ok(Places { vector: at.vector, ..places })
    }

    /// The same for strides, in a buffer that begins at `start`. Elements along `free` are left out: their coordinate
    /// counts as 0.
    pub(super) fn strided(
        &self,
        layout: LayoutId,
        start: i64,
        Strides { start: at, strides }: &Strides,
        bytes: u32,
        free: Option<usize>,
    ) -> Res<Places<'c>> {
        let start = start + at * i64::from(bytes);
        let tile_layout = self.kernel.layouts.get(layout);
        let step = |d: usize| {
            if free == Some(d) { 0 } else { strides.get(d).copied().unwrap_or(0) * i64::from(bytes) }
        };
        let rank = tile_layout.repeats().len();
        let mut base = self.i32().const_int(start.cast_unsigned(), true);
        for d in 0..rank {
            let at = self
                .thread_coords(layout)?
                .get(d)
                .copied()
                .ok_or_else(|| Stop::Bug("no such axis".into()))?;
            let by = self.i32().const_int(step(d).cast_unsigned(), true);
            base = self.builder.build_int_add(base, self.builder.build_int_mul(at, by, "")?, "")?;
        }
        let mut registers = vec![];
        for n in 0..tile_layout.registers() {
            if tile_layout.is_disjoint() {
                let at = tile_layout.register(n);
                registers.push(At::Bytes(
                    (0..rank).map(|d| i64::from(at.get(d).copied().unwrap_or(0)) * step(d)).sum(),
                ));
                continue;
            }
            let mut place = self.i32().const_int(start.cast_unsigned(), true);
            for d in 0..rank {
                let by = self.i32().const_int(step(d).cast_unsigned(), true);
                let part = self.builder.build_int_mul(self.coord(layout, n, d)?, by, "")?;
                place = self.builder.build_int_add(place, part, "")?;
            }
            registers.push(At::Place(place, 0));
        }
        Ok(Places { base, registers, vector: 1 })
    }

    fn swizzled(
        &self,
        layout: LayoutId,
        start: i64,
        (bases, bytes): (&[i64], u32),
        at: Slot<'_>,
    ) -> Res<Places<'c>> {
        let tile_layout = self.kernel.layouts.get(layout);
        let atom = tile_layout.atom();
        let size = i64::from(bytes);
        let of = |dim: InDim| {
            (0..atom.bits(dim))
                .filter_map(|i| atom.basis(dim, i))
                .map(|b| image(bases, atom.out_bits(), &b) * size)
                .collect::<Vec<_>>()
        };
        let (register, mut thread) = (of(InDim::Register), of(InDim::Lane));
        thread.extend(of(InDim::Warp));
        let images: Vec<u64> = thread.iter().map(|p| p.cast_unsigned()).collect();
        let toggled = self.toggled(&images, at.inst, at.buffer)?;
        let near = toggled.map_or_else(|| self.linear(self.tid, &images), Ok)?;
        let (base, registers) = self.spread(tile_layout, (start, bases, size), (near, &thread), &register)?;
        let places = Places { base, registers, vector: 1 };
        if toggled.is_some() { Ok(places) } else { self.in_stage(at, places) }
    }

    /// The addresses of registers of a tile in a buffer that begins at `start` and has these `bases`, for elements of `size`
    /// bytes, from the offset of the thread, those of its bits and those of the bits of a register, in bytes: for register 0,
    /// and relative to that.
    pub(super) fn spread(
        &self,
        layout: &Layout,
        (start, bases, size): (i64, &[i64], i64),
        (near, thread): (IntValue<'c>, &[i64]),
        register: &[i64],
    ) -> Res<(IntValue<'c>, Vec<At<'c>>)> {
        let threads = thread.iter().fold(0, |a, b| a | b);
        let per_atom = 1usize << register.len();
        let along = layout.repeats().last().map_or(1, |n| *n as usize);
        let atom = |n: usize| atom_place(bases, layout.atom().out_bits(), along, n / per_atom);
        let base =
            self.builder.build_int_add(near, self.i32().const_int(start.cast_unsigned(), false), "")?;
        let mut registers = vec![];
        for n in 0..layout.registers() {
            let [group, of_atom] = atom(n).map(|at| at * size);
            let bits = register.iter().enumerate().filter(|(i, _)| n >> i & 1 == 1);
            let inside = bits.fold(of_atom, |a, (_, b)| a ^ b);
            // Exclusive or is addition in bits that are zero in the thread's offset.
            let (met, clear) = (inside & threads, inside & !threads);
            registers.push(if met == 0 {
                At::Bytes(group + clear)
            } else {
                let met = self.i32().const_int(met.cast_unsigned(), false);
                At::Place(self.builder.build_xor(near, met, "")?, start + group + clear)
            });
        }
        Ok((base, registers))
    }

    /// Returns true if register `n` of a tile has an address in shared memory: padding has none in row-major order.
    pub(super) fn lies(&self, placement: &Placement, tile: ValueId, n: usize) -> Res<Option<IntValue<'c>>> {
        match placement {
            Placement::Strided(_) => self.is_no_padding(tile, n),
            Placement::Swizzled { .. } => Ok(None),
        }
    }

    /// Returns true if register `n` of a tile is an element; `None` if it always is.
    pub(super) fn is_no_padding(&self, tile: ValueId, n: usize) -> Res<Option<IntValue<'c>>> {
        if self.shape(tile).is_empty() {
            return Ok(None);
        }
        self.is_real(self.layout_id(tile)?, self.shape(tile), n)
    }
}
