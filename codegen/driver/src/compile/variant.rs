//! Determines the variants of a kernel for `tk build`: [`Variant::Aligned`] for each set of arguments that is worth a
//! binary, [`Variant::General`] for all others.
//!
//! Without a `prefer` clause there are up to two sets: what all accesses profit from, and what those profit from that move
//! most of the bytes. A number for each row, say, is stored to another array, whose strides need not be aligned if those of
//! the rows are.
//!
//! Guarantees that a variant's facts are in the order of the kernel's machine parameters, and that the compiler itself
//! requires no fact that does not affect an access to memory: a launch that lacks only such a fact takes the faster
//! code.

use std::collections::BTreeSet;

use tk_gpu::ArgFacts;
use tk_gpu::analysis::axis::AxisInfo;
use tk_gpu::ir::params::{element_bytes, flattened};
use tk_ops::{ControlOp, MemoryOp, Op};
use tk_sema::contract::{Part, Preferred};
use tk_tile::{BlockId, ElemType, Func, FuncId, InstId, TileModule, Type, ValueId, walk};

/// The most optional arguments of a shipped kernel: each doubles the number of its binaries.
pub const MAX_OPTIONAL: usize = 4;
/// The divisor of addresses, numbers and extents in an aligned variant: the bytes of the widest access of one lane, so
/// that such an access is aligned and contained in a row of elements. A target with a wider one would need more.
const ALIGNED: ArgFacts = ArgFacts { divisible: 16, one: false, positive: false };
/// The same for an extent or a stride, which must be positive in a tensor map.
const ALIGNED_NUMBER: ArgFacts = ArgFacts { positive: true, ..ALIGNED };
/// A number without other facts.
const NUMBER: ArgFacts = ArgFacts { divisible: 1, one: false, positive: true };

/// The arguments for which a binary is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Those of the `prefer` clause of this number. Without such a clause: addresses and integers are divisible by 16, and
    /// strides by 16 bytes; so is the last extent of a view, along which its elements are adjacent; each only if it helps an
    /// access (the first), or one that moves many bytes (the second).
    Aligned(usize),
    /// All.
    General,
}

impl Variant {
    /// The variants of a kernel, in the order in which a launcher tries them: one for each `prefer` clause, which
    /// requires the properties in the clause, aligned addresses, and nothing else, except that a view of which a clause
    /// says only which axis is contiguous has all facts of aligned views in that order; then the general one.
    pub fn of(
        module: &TileModule,
        entry: FuncId,
        prefer: &[Vec<Preferred>],
    ) -> Vec<(Variant, Vec<ArgFacts>)> {
        let sets = if prefer.is_empty() {
            let facts = with_unit_strides(module, entry, facts(module, entry, None));
            let all = useful(module, entry, facts, |_| true);
            let large = large_accesses(module, entry);
            vec![all.clone(), useful(module, entry, all, |i| large.contains(&i))]
        } else {
            prefer.iter().map(|set| preferred(module, entry, set)).collect()
        };
        let mut all: Vec<(Variant, Vec<ArgFacts>)> = vec![];
        for (number, facts) in sets.into_iter().enumerate() {
            let says = facts.iter().any(|f| f.divisible > 1 || f.one);
            if says && all.iter().all(|(_, known)| *known != facts) {
                all.push((Variant::Aligned(number), facts));
            }
        }
        all.push((Variant::General, vec![]));
        all
    }

    /// The name in reports and files: `aligned`, `aligned2`, .. or `general`.
    pub fn name(self) -> String {
        match self {
            Variant::Aligned(0) => "aligned".to_string(),
            Variant::Aligned(number) => format!("aligned{}", number + 1),
            Variant::General => "general".to_string(),
        }
    }
}

/// The facts of the variant for a `prefer` clause.
fn preferred(module: &TileModule, entry: FuncId, set: &[Preferred]) -> Vec<ArgFacts> {
    let found = facts(module, entry, Some(set));
    if set.iter().any(|p| only_order(set, p.arg).is_some()) {
        useful(module, entry, found, |_| true)
    } else {
        found
    }
}

/// The contiguous axis of a view, if it is all that a clause says about it.
fn only_order(set: &[Preferred], arg: usize) -> Option<usize> {
    let mut own = set.iter().filter(|p| p.arg == arg);
    let first = own.next().filter(|_| own.next().is_none())?;
    match first.part {
        Part::Stride(axis) if first.one => Some(axis),
        Part::Number | Part::Extent(_) | Part::Stride(_) => None,
    }
}

/// The facts of aligned arguments, for a clause or for none.
fn facts(module: &TileModule, entry: FuncId, set: Option<&[Preferred]>) -> Vec<ArgFacts> {
    let Some(func) = module.funcs.get(entry) else { return vec![] };
    let params = func.blocks.get(func.body).map(|b| b.args.as_slice()).unwrap_or_default();
    let positive = makes_views(module);
    let mut facts = vec![];
    for (arg, v) in params.iter().enumerate() {
        let of = |part: Part| {
            let own = set.unwrap_or_default().iter().filter(|p| p.arg == arg && p.part == part);
            own.fold(NUMBER, |f, p| ArgFacts {
                divisible: f.divisible.max(p.divisible.min(ALIGNED.divisible)),
                one: f.one || p.one,
                ..f
            })
        };
        match module.types.get(func.ty(*v)) {
            Type::Tile { elem: ElemType::Ptr { .. }, .. } => facts.push(ALIGNED),
            Type::Tile { elem: ElemType::Scalar(d), .. } if d.is_int() => {
                let fact = if set.is_some() { of(Part::Number) } else { ALIGNED };
                facts.push(ArgFacts { positive, ..fact });
            }
            Type::Tile { elem: ElemType::Scalar(_), .. } => facts.push(ArgFacts::default()),
            Type::View { rank, .. } => {
                let rank = *rank as usize;
                let contiguous = match set {
                    Some(set) => only_order(set, arg).filter(|axis| *axis < rank),
                    None => rank.checked_sub(1),
                };
                facts.push(ALIGNED);
                match contiguous {
                    // Accesses are wide along this axis; along the others, strides are far apart.
                    Some(axis) => {
                        let extent = |d: usize| if d == axis { ALIGNED_NUMBER } else { NUMBER };
                        let stride = |d: usize| {
                            if d == axis { ArgFacts { one: true, ..NUMBER } } else { ALIGNED_NUMBER }
                        };
                        facts.extend((0..rank).map(extent));
                        facts.extend((0..rank).map(stride));
                    }
                    None => {
                        facts.extend((0..rank).map(|axis| of(Part::Extent(axis))));
                        facts.extend((0..rank).map(|axis| of(Part::Stride(axis))));
                    }
                }
            }
        }
    }
    facts
}

/// The facts with numbers that are 1 where tiles of pointers then have neighbours along their last dimension: the strides
/// of matrices in row-major order, as of views.
fn with_unit_strides(module: &TileModule, entry: FuncId, mut facts: Vec<ArgFacts>) -> Vec<ArgFacts> {
    let Some(func) = module.funcs.get(entry) else { return facts };
    let params = func.blocks.get(func.body).map(|b| b.args.as_slice()).unwrap_or_default();
    let mut along = contiguities(module, entry, &facts);
    let mut at = 0;
    for v in params {
        let ty = module.types.get(func.ty(*v));
        let is_int = matches!(ty, Type::Tile { elem: ElemType::Scalar(d), .. } if d.is_int());
        if is_int && along.contains(&1) {
            let mut unit = facts.clone();
            unit.get_mut(at).into_iter().for_each(|f| *f = ArgFacts { one: true, ..NUMBER });
            let found = contiguities(module, entry, &unit);
            if found.iter().zip(&along).any(|(new, old)| *old == 1 && *new > 1) {
                (facts, along) = (unit, found);
            }
        }
        at += flattened(ty);
    }
    facts
}

/// For each access through a tile of pointers the number of neighbours along its last dimension.
fn contiguities(module: &TileModule, entry: FuncId, facts: &[ArgFacts]) -> Vec<u64> {
    let Some(func) = module.funcs.get(entry) else { return vec![] };
    let axis = AxisInfo::new(module, func, facts);
    let accesses = walk::insts(func).into_iter().map(|i| &func.insts[i]);
    let pointers = accesses.filter_map(|i| {
        let at =
            *i.operands.first().filter(|_| matches!(i.op, Op::Memory(MemoryOp::Load | MemoryOp::Store)))?;
        let last = module.types.get(func.ty(at)).shape()?.len().checked_sub(1)?;
        Some(axis.tile(at).dim(last).contiguity)
    });
    pointers.collect()
}

/// Returns true if numbers may be extents or strides of tensor maps, which are positive: those of views that the kernel
/// makes, or of the tiles of pointers that become such views. Positions in other views may be 0.
fn makes_views(module: &TileModule) -> bool {
    let made = |op| matches!(op, Op::Memory(MemoryOp::View | MemoryOp::Load));
    module.funcs.iter().any(|(_, func)| walk::insts(func).into_iter().any(|i| made(func.insts[i].op)))
}

/// An access is small if it moves fewer bytes than all accesses, divided by this.
const SMALL: u64 = 32;
/// Iterations of a loop, where bytes are compared.
const ITERATIONS: u64 = 8;

/// The accesses to tiles in memory without the small ones.
fn large_accesses(module: &TileModule, entry: FuncId) -> BTreeSet<InstId> {
    let Some(func) = module.funcs.get(entry) else { return BTreeSet::new() };
    let mut bytes = vec![];
    add_bytes(module, func, func.body, 1, &mut bytes);
    let all = bytes.iter().fold(0, |sum: u64, (_, b)| sum.saturating_add(*b));
    bytes.into_iter().filter(|(_, b)| *b >= all / SMALL).map(|(i, _)| i).collect()
}

/// Adds what each access to memory in a block moves, if the block runs so often.
fn add_bytes(module: &TileModule, func: &Func, block: BlockId, times: u64, out: &mut Vec<(InstId, u64)>) {
    let bytes = |v: &ValueId| match module.types.get(func.ty(*v)) {
        Type::Tile { shape, elem: elem @ ElemType::Scalar(_) } => {
            shape.iter().map(|n| u64::from(*n)).product::<u64>() * element_bytes(elem)
        }
        Type::Tile { .. } | Type::View { .. } => 0,
    };
    for id in &func.blocks[block].insts {
        let inst = &func.insts[*id];
        if matches!(inst.op, Op::Memory(_) | Op::Atomic(_)) {
            let most = inst.results.iter().chain(&inst.operands).map(bytes).max();
            out.push((*id, most.unwrap_or(0).saturating_mul(times)));
        }
        let loops = matches!(inst.op, Op::Control(ControlOp::For | ControlOp::While));
        let times = if loops { times.saturating_mul(ITERATIONS) } else { times };
        inst.blocks.iter().for_each(|b| add_bytes(module, func, *b, times, out));
    }
}

/// The facts without those that affect no access to memory that `counts`. If one of two suffices, it is not the one about a
/// number: shapes and strides vary less between launches.
fn useful(
    module: &TileModule,
    entry: FuncId,
    facts: Vec<ArgFacts>,
    counts: impl Fn(InstId) -> bool,
) -> Vec<ArgFacts> {
    let Some(func) = module.funcs.get(entry) else { return facts };
    let accesses = |facts: &[ArgFacts]| {
        AxisInfo::new(module, func, facts).of_accesses(module, func, ALIGNED.divisible, &counts)
    };
    let (all, mut kept) = (accesses(&facts), facts);
    let params = func.blocks.get(func.body).map(|b| b.args.as_slice()).unwrap_or_default();
    let is_number =
        |v: &ValueId| matches!(module.types.get(func.ty(*v)), Type::Tile { elem: ElemType::Scalar(_), .. });
    let numbers = params
        .iter()
        .flat_map(|v| std::iter::repeat_n(is_number(v), flattened(module.types.get(func.ty(*v)))));
    let (first, then): (Vec<_>, Vec<_>) = numbers.enumerate().partition(|(_, is_number)| *is_number);
    for (i, _) in first.into_iter().chain(then) {
        let Some(fact) = kept.get(i).copied().filter(|f| f.divisible > 1 || f.one) else { continue };
        // The weakest one that has the same effect.
        let weaker =
            (0..fact.divisible.ilog2().max(1)).map(|n| ArgFacts { divisible: 1 << n, one: false, ..fact });
        for to in weaker.chain([fact]) {
            kept.get_mut(i).into_iter().for_each(|f| *f = to);
            if accesses(&kept) == all {
                break;
            }
        }
    }
    kept
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use tk_tile::{Id, Module};

    use super::*;

    fn variants(text: &str) -> Vec<(Variant, Vec<ArgFacts>)> {
        preferring(text, &[])
    }

    fn preferring(text: &str, sets: &[Vec<Preferred>]) -> Vec<(Variant, Vec<ArgFacts>)> {
        let module: Module = tk_tile::text::parse(text).unwrap();
        Variant::of(&TileModule::new(module).unwrap(), FuncId::new(0), sets)
    }

    #[test]
    fn each_machine_parameter_has_its_fact() {
        let one = ArgFacts { one: true, ..NUMBER };
        let four = ArgFacts { divisible: 4, ..NUMBER };
        let view = vec![ALIGNED, NUMBER, four, four, one];
        let rest = vec![ALIGNED, ArgFacts::default(), ArgFacts { divisible: 8, ..ALIGNED_NUMBER }];
        let found = variants(
            "kernel @k(v0: mut view[f32, 2], v1: *mut f16, v2: f32, v3: i32) {
               v4 = const {value = 0 : i32} : i32
               v5 = view_load v0, v3, v4 : tile[f32, 8, 8]
               view_store v0, v3, v3, v5
               v6 = ptr_add v1, v3 : *mut f16
               v7 = splat v6 : tile[*mut f16, 16]
               v8 = arange {start = 0} : tile[i32, 16]
               v9 = ptr_add v7, v8 : tile[*mut f16, 16]
               v10 = load v9 : tile[f16, 16]
               store v9, v10
               return
             }
            ",
        );
        assert_eq!(found, [(Variant::Aligned(0), [view, rest].concat()), (Variant::General, vec![])]);
    }

    #[test]
    fn what_changes_no_access_is_not_asked_for() {
        let one = ArgFacts { one: true, ..NUMBER };
        // A range of rows of one of several matrices. The view of scalars is arbitrary, and so is the number.
        let found = variants(
            "kernel @k(v0: mut view[f32, 3], v1: view[i32, 1], v2: i32) {
               v3 = view_load v1, v2 : i32
               v4 = view_slice v0, v3, v2, v2 {axes = [2, 0, 1]} : mut view[f32, 2]
               v5 = const {value = 0 : i32} : i32
               v6 = view_load v4, v3, v5 : tile[f32, 8, 8]
               view_store v4, v3, v5, v6
               return
             }
            ",
        );
        let four = ArgFacts { divisible: 4, ..NUMBER };
        let tensor = vec![ALIGNED, NUMBER, NUMBER, four, four, four, one];
        let scalars = vec![ArgFacts::default(), NUMBER, NUMBER, ArgFacts::default()];
        assert_eq!(found, [(Variant::Aligned(0), [tensor, scalars].concat()), (Variant::General, vec![])]);
    }

    #[test]
    fn a_small_access_has_no_say_in_the_second_variant() {
        // Rows of a matrix, and a number for each row of a block, to a matrix of its own.
        let found = variants(
            "kernel @k(v0: view[f16, 2], v1: mut view[f32, 2], v2: i32) {
               v3 = const {value = 0 : i32} : i32
               v4 = view_load v0, v2, v3 : tile[f16, 64, 256]
               v5 = max v4 {axis = 1} : tile[f16, 64]
               v6 = cast v5 : tile[f32, 64]
               v7 = reshape v6 : tile[f32, 1, 64]
               view_store v1, v2, v3, v7
               return
             }
            ",
        );
        let names: Vec<String> = found.iter().map(|(v, _)| v.name()).collect();
        assert_eq!(names, ["aligned", "aligned2", "general"]);
        let (rows, numbers) = (0..5, 5..10);
        assert_eq!(found[0].1[rows.clone()], found[1].1[rows]);
        let four = ArgFacts { divisible: 4, ..NUMBER };
        let one = ArgFacts { one: true, ..NUMBER };
        assert_eq!(found[0].1[numbers.clone()], [ALIGNED, NUMBER, four, four, one]);
        assert_eq!(found[1].1[numbers], [ArgFacts::default(), NUMBER, NUMBER, NUMBER, NUMBER]);
    }

    #[test]
    fn pointers_have_neighbours_along_the_last_dimension() {
        // A matrix with two strides, of which the one of the columns is 1, and one of a list. Of a column of other rows
        // nothing is asked.
        let found = variants(
            "kernel @k(v0: *mut f32, v1: i32, v2: i32, v3: i32) {
               v4 = arange {start = 0} : tile[i32, 8]
               v5 = reshape v4 : tile[i32, 8, 1]
               v6 = broadcast v5 : tile[i32, 8, 8]
               v7 = reshape v4 : tile[i32, 1, 8]
               v8 = broadcast v7 : tile[i32, 8, 8]
               v9 = splat v1 : tile[i32, 8, 8]
               v10 = splat v2 : tile[i32, 8, 8]
               v11 = mul v6, v9 : tile[i32, 8, 8]
               v12 = mul v8, v10 : tile[i32, 8, 8]
               v13 = add v11, v12 : tile[i32, 8, 8]
               v14 = splat v0 : tile[*mut f32, 8, 8]
               v15 = ptr_add v14, v13 : tile[*mut f32, 8, 8]
               v16 = load v15 : tile[f32, 8, 8]
               store v15, v16
               v17 = splat v3 : tile[i32, 8]
               v18 = mul v4, v17 : tile[i32, 8]
               v19 = splat v0 : tile[*mut f32, 8]
               v20 = ptr_add v19, v18 : tile[*mut f32, 8]
               v21 = load v20 : tile[f32, 8]
               store v20, v21
               return
             }
            ",
        );
        let ones: Vec<bool> = found[0].1.iter().map(|f| f.one).collect();
        assert_eq!(ones, [false, false, true, true]);
        assert_eq!(found[0].1[1].divisible, 16);
    }

    #[test]
    fn a_map_wants_strides_that_no_lane_needs() {
        let found = variants(
            "kernel @k(v0: mut view[f32, 3], v1: i32) {
               v2 = const {value = 0 : i32} : i32
               v3 = view_slice v0, v2 {axes = [0, 1, 1]} : mut view[f32, 2]
               v4 = view_load v3, v1, v2 : tile[f32, 8, 8]
               view_store v3, v1, v2, v4
               return
             }
            ",
        );
        let strides: Vec<u32> = found[0].1[4..6].iter().map(|f| f.divisible).collect();
        assert_eq!(strides, [4, 4]);
    }

    #[test]
    fn each_clause_about_an_order_has_a_variant() {
        let along = |axis| vec![Preferred { arg: 0, part: Part::Stride(axis), divisible: 1, one: true }];
        // One that says the same as another is no variant of its own.
        let found = preferring(
            "kernel @k(v0: mut view[f16, 2], v1: i32) {
               v2 = view_load v0, v1, v1 : tile[f16, 16, 16]
               view_store v0, v1, v1, v2
               return
             }
            ",
            &[along(1), along(0), along(1)],
        );
        let names: Vec<String> = found.iter().map(|(v, _)| v.name()).collect();
        assert_eq!(names, ["aligned", "aligned2", "general"]);
        let (one, eight) = (ArgFacts { one: true, ..NUMBER }, ArgFacts { divisible: 8, ..NUMBER });
        assert_eq!(found[0].1[..5], [ALIGNED, NUMBER, eight, eight, one]);
        assert_eq!(found[1].1[..5], [ALIGNED, eight, NUMBER, one, eight]);
    }

    #[test]
    fn positions_in_views_may_be_0() {
        let found = variants(
            "kernel @k(v0: mut view[f32, 2], v1: i32) {
               v2 = const {value = 0 : i32} : i32
               v3 = view_load v0, v2, v1 : tile[f32, 8, 8]
               view_store v0, v2, v1, v3
               return
             }
            ",
        );
        assert_eq!(found[0].1[5], ArgFacts { divisible: 4, one: false, positive: false });
    }

    #[test]
    fn a_kernel_of_which_nothing_can_be_known_has_one_variant() {
        let unused = |params: &str| variants(&format!("kernel @k({params}) {{\n  return\n}}\n"));
        assert_eq!(unused("v0: f32, v1: bool"), [(Variant::General, vec![])]);
        assert_eq!(unused("v0: mut view[f32, 2], v1: i32"), [(Variant::General, vec![])]);
        assert_eq!(unused(""), [(Variant::General, vec![])]);
    }
}
