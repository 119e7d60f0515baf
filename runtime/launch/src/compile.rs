//! The interface to the code generator: [`Compile`] turns a specialization into a binary for a device.
//!
//! The code generator implements it, so that this crate links no LLVM. Both sides take the order of a kernel's
//! machine parameters from [`params`]: what the one reads is what the other passes.

use std::sync::Arc;

use tk_bundle::TensorMap;
use tk_ops::{DType, Scalar};
use tk_sema::target::Target;
use tk_syntax::Diagnostic;
use tk_tile::frequency::LaunchArg;
use tk_tile::message::Message;
use tk_tile::{ElemType, FuncId, Loc, TileModule, Type};

use crate::session::Compiled;

/// Turns a specialization into a binary.
pub trait Compile: Send + Sync {
    /// The facts that programs may ask about the target of this name.
    fn target(&self, name: &str) -> Target;

    /// The binary of a kernel. What is wrong is at least one diagnostic that is an error.
    fn compile(
        &self,
        module: &TileModule,
        entry: FuncId,
        options: &CompileOptions,
    ) -> Result<Binary, Vec<Diagnostic>>;

    /// Predicts the time of a launch without making a binary; `None` if nothing is known of the target.
    fn estimate(
        &self,
        _kernel: &Compiled,
        _options: &CompileOptions,
        _launch: &Launch<'_>,
    ) -> Option<Estimate> {
        None
    }

    /// The predicted time of a launch in microseconds, that of [`Compile::estimate`], unless it is above `limit`: then any
    /// number above `limit` that is at most the time, which can cost less to know.
    fn time(
        &self,
        kernel: &Compiled,
        options: &CompileOptions,
        launch: &Launch<'_>,
        _limit: f64,
    ) -> Option<f64> {
        self.estimate(kernel, options, launch).map(|e| e.us)
    }
}

/// A launch whose time is predicted.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// One argument for each parameter of the function, workspaces included.
    pub args: &'a [LaunchArg],
    /// The grid.
    pub grid: [u32; 3],
    /// Bytes that the launch moves at least ([`tk_tile::traffic`]).
    pub bytes: f64,
    /// The name of the GPU.
    pub gpu: &'a str,
    /// Its multiprocessors.
    pub sms: u32,
    /// Whether the cost of each place of the source is wanted too.
    pub by_place: bool,
}

/// The cost of what a place in the source became.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceCost {
    /// The place.
    pub loc: Loc,
    /// The time that each unit works on it, in microseconds, the largest first; units without work are left out.
    pub parts: Vec<(&'static str, f64)>,
    /// Instructions of warps, of all programs.
    pub instructions: f64,
    /// Bytes from and to the shared cache, of all programs.
    pub bytes: f64,
    /// Those of them that the program asked for: the rest is of sectors and lines that are read for a part.
    pub needed: f64,
    /// Bytes that the narrowest access of a lane to device memory moves; 0 without one.
    pub lane_bytes: u32,
    /// Why that is not wider, as a sentence without a full stop.
    pub limit: &'static str,
    /// Whether TMA moves some of the bytes.
    pub tensor_copies: bool,
    /// Cycles of shared memory that bank conflicts add, of all programs.
    pub conflicts: f64,
    /// Bytes of a lane for the largest tile that is made there, in registers.
    pub tile_bytes: u32,
    /// The most registers of a lane for tiles that are live at once.
    pub registers: u32,
}

/// The predicted time of a launch, and its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Microseconds; infinite for a kernel that does not fit.
    pub us: f64,
    /// What bounds it, and what each limit alone would allow in microseconds, the largest first.
    pub parts: Vec<(&'static str, f64)>,
    /// Registers of a lane, and those that do not fit and are spilled.
    pub registers: [u32; 2],
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// Blocks that a multiprocessor runs at once.
    pub blocks_per_sm: u32,
    /// How often each multiprocessor is filled with programs.
    pub waves: f64,
    /// Whether something depends on data.
    pub is_guess: bool,
    /// The cost of each place of the source, if it was asked for.
    pub places: Vec<PlaceCost>,
}

/// The target and assumptions of a binary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// The name of the target: `sm_90a`.
    pub target: String,
    /// Warps of one program, from `launch(warps = n)`.
    pub warps: u32,
    /// Blocks that a program is divided among, from `launch(ctas = n)`.
    pub ctas: u32,
    /// Programs of a cluster, from `launch(cluster = n)`.
    pub cluster: u32,
    /// The most registers of one lane, from `launch(max_regs = n)`.
    pub max_regs: Option<u32>,
    /// Programs that a multiprocessor should hold at once, from `launch(occupancy = n)`.
    pub occupancy: Option<u32>,
    /// Trips of a loop that are on their way at once, from `launch(stages = n)`.
    pub stages: Option<u32>,
    /// Facts about each of the [`params`], in their order.
    pub facts: Vec<ArgFacts>,
}

/// Facts about a machine parameter that hold in every launch of a binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArgFacts {
    /// A power of two from 1 to [`ArgFacts::MOST`] that divides it: an integer, or an address in bytes.
    pub divisible: u32,
    /// It is the integer 1.
    pub one: bool,
    /// It is an integer above 0 and below [`ArgFacts::BOUND`]: an extent or a stride, in elements, that a tensor map may have.
    pub positive: bool,
}

impl ArgFacts {
    /// Nothing is known.
    pub const NONE: ArgFacts = ArgFacts { divisible: 1, one: false, positive: false };
    /// The largest power of two that is told apart: the bytes of the widest access to memory of one lane.
    pub const MOST: u32 = 16;
    /// The exclusive upper bound of integers that count as positive.
    pub const BOUND: i64 = 1 << 30;

    /// Of an address in bytes.
    pub fn of_address(address: u64) -> ArgFacts {
        let divisible = 1 << address.trailing_zeros().min(Self::MOST.trailing_zeros());
        ArgFacts { divisible, ..Self::NONE }
    }

    /// Of a machine parameter with these bits, the lowest first.
    pub fn of(kind: ParamKind, bits: u64) -> ArgFacts {
        match kind {
            ParamKind::Pointer => Self::of_address(bits),
            ParamKind::Scalar(d) if d.is_int() => {
                // The divisibility of a number does not change with its sign, and 1 is 1 in every integer type.
                let value = Scalar::from_bits(d, bits).as_int().unwrap_or(0);
                Self::of_int(value as i64)
            }
            ParamKind::Scalar(_) => Self::NONE,
        }
    }

    /// Of an integer.
    pub fn of_int(v: i64) -> ArgFacts {
        ArgFacts { one: v == 1, positive: (1..Self::BOUND).contains(&v), ..Self::of_address(v as u64) }
    }
}

/// A binary of a kernel, and how it is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// The name of the function in the image.
    pub name: String,
    /// The image that the driver loads.
    pub image: Arc<[u8]>,
    /// Lanes of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// Blocks of a program: the device's grid is `grid.x * blocks_per_program` wide. At least 1.
    pub blocks_per_program: u32,
    /// The parameters. Three more follow them, each an `i32`: the grid as the program sees it; and then the address of
    /// control memory ([`tk_tile::message::control`]) if the kernel says something or its programs meet.
    pub params: Vec<ParamKind>,
    /// The tensor maps, which are the very last parameters.
    pub maps: Vec<TensorMap>,
    /// Its messages.
    pub messages: Arc<[Message]>,
    /// Whether all programs of a launch meet.
    pub has_grid_barrier: bool,
}

/// A machine parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// An address, 64 bits.
    Pointer,
    /// A value of this type.
    Scalar(DType),
}

/// The machine parameters of a kernel: for each parameter of the function, workspaces included, one; for a view of
/// rank `r` its pointer, `r` extents (`i32`, or `i64` if the view is wide) and `r` strides (`i64`). `None` if there is
/// no such function, or it takes a tile.
pub fn params(module: &TileModule, entry: FuncId) -> Option<Vec<ParamKind>> {
    let func = module.funcs.get(entry)?;
    let mut out = vec![];
    for v in &func.blocks.get(func.body)?.args {
        flatten(module.types.get(func.ty(*v)), &mut out)?;
    }
    Some(out)
}

/// Appends the machine parameters of one parameter; `None` for a tile that is no scalar.
pub(crate) fn flatten(ty: &Type, out: &mut Vec<ParamKind>) -> Option<()> {
    match ty {
        Type::Tile { shape, .. } if !shape.is_empty() => return None,
        Type::Tile { elem: ElemType::Scalar(d), .. } => out.push(ParamKind::Scalar(*d)),
        Type::Tile { elem: ElemType::Ptr { .. }, .. } => out.push(ParamKind::Pointer),
        Type::View { rank, wide, .. } => {
            let (extent, rank) = (if *wide { DType::I64 } else { DType::I32 }, *rank as usize);
            out.push(ParamKind::Pointer);
            out.extend(std::iter::repeat_n(ParamKind::Scalar(extent), rank));
            out.extend(std::iter::repeat_n(ParamKind::Scalar(DType::I64), rank));
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use tk_tile::{Id, Module};

    use super::*;

    #[test]
    fn a_view_is_its_address_its_extents_and_its_strides() {
        let text =
            "kernel @k(v0: mut view[f32, 2], v1: view[f16, 1, i64], v2: *mut f32, v3: u8) {\n  return\n}\n";
        let module: Module = tk_tile::text::parse(text).unwrap();
        let module = TileModule::new(module).unwrap();
        let scalar = ParamKind::Scalar;
        let view = |extent, rank| {
            let (extents, strides) = (vec![scalar(extent); rank], vec![scalar(DType::I64); rank]);
            [vec![ParamKind::Pointer], extents, strides].concat()
        };
        let rest = vec![ParamKind::Pointer, scalar(DType::U8)];
        let expected = [view(DType::I32, 2), view(DType::I64, 1), rest].concat();
        assert_eq!(params(&module, FuncId::new(0)), Some(expected));
        assert_eq!(params(&module, FuncId::new(1)), None);
    }

    #[test]
    fn what_is_known_of_a_parameter() {
        let int = |v: i32| ArgFacts::of(ParamKind::Scalar(DType::I32), u64::from(v as u32));
        let known = [0, 1, 2, -4, 24, 48, 64].map(|v| (int(v).divisible, int(v).one));
        let expected = [(16, false), (1, true), (2, false), (4, false), (8, false), (16, false), (16, false)];
        assert_eq!(known, expected);
        let long = |v: i64| ArgFacts::of(ParamKind::Scalar(DType::I64), v as u64).positive;
        assert_eq!([-16i64, 0, 1, 24, 1 << 30].map(long), [false, false, true, true, false]);
        assert_eq!(ArgFacts::of(ParamKind::Pointer, 0x1008), ArgFacts { divisible: 8, ..ArgFacts::NONE });
        assert_eq!(ArgFacts::of(ParamKind::Scalar(DType::F32), 0x3f80_0000), ArgFacts::NONE);
        assert_eq!(ArgFacts::of(ParamKind::Scalar(DType::Bool), 1), ArgFacts::NONE);
    }
}
