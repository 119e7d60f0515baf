//! Determines the variants of a kernel for `tk build`: [`Variant::Aligned`] for the arguments of most launches,
//! [`Variant::General`] for all others.
//!
//! Guarantees that a variant's facts are in the order of the kernel's machine parameters, and that the compiler itself
//! requires no fact that does not affect an access to memory: a launch that lacks only such a fact takes the faster
//! code.

use tk_gpu::ArgFacts;
use tk_gpu::analysis::axis::AxisInfo;
use tk_gpu::ir::params::flattened;
use tk_sema::contract::{Part, Preferred};
use tk_tile::{ElemType, FuncId, TileModule, Type, ValueId};

/// The divisor of addresses, numbers and extents in an aligned variant: the bytes of the widest access of one lane, so
/// that such an access is aligned and contained in a row of elements. A target with a wider one would need more.
const ALIGNED: ArgFacts = ArgFacts { divisible: 16, one: false, positive: false };
/// The same for a number. It must be positive if it is used in a tensor map.
const ALIGNED_NUMBER: ArgFacts = ArgFacts { positive: true, ..ALIGNED };
/// A number without other facts.
const NUMBER: ArgFacts = ArgFacts { divisible: 1, one: false, positive: true };

/// The arguments for which a binary is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Addresses and integers are divisible by 16, and strides by 16 bytes; so is the last extent of a view, along
    /// which its elements are adjacent; each only if it helps.
    Aligned,
    /// All.
    General,
}

impl Variant {
    /// The variants of a kernel, in the order in which a launcher tries them. `prefer` is the clause of that name: then
    /// the variant for aligned arguments requires it and aligned addresses, and nothing else.
    pub fn of(
        module: &TileModule,
        entry: FuncId,
        prefer: Option<&[Preferred]>,
    ) -> Vec<(Variant, Vec<ArgFacts>)> {
        let general = (Variant::General, vec![]);
        let aligned = match prefer {
            Some(list) => as_preferred(module, entry, list),
            None => useful(module, entry, aligned(module, entry)),
        };
        if aligned.iter().all(|f| f.divisible == 1 && !f.one) {
            return vec![general];
        }
        vec![(Variant::Aligned, aligned), general]
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Aligned => "aligned",
            Variant::General => "general",
        }
    }
}

/// The facts of [`Variant::Aligned`] for a kernel with a `prefer` clause.
fn as_preferred(module: &TileModule, entry: FuncId, list: &[Preferred]) -> Vec<ArgFacts> {
    let Some(func) = module.funcs.get(entry) else { return vec![] };
    let params = func.blocks.get(func.body).map(|b| b.args.as_slice()).unwrap_or_default();
    let mut facts = vec![];
    for (arg, v) in params.iter().enumerate() {
        let of = |part: Part| {
            let own = list.iter().filter(|p| p.arg == arg && p.part == part);
            own.fold(NUMBER, |f, p| ArgFacts {
                divisible: f.divisible.max(p.divisible.min(ALIGNED.divisible)),
                one: f.one || p.one,
                ..f
            })
        };
        match module.types.get(func.ty(*v)) {
            Type::Tile { elem: ElemType::Ptr { .. }, .. } => facts.push(ALIGNED),
            Type::Tile { elem: ElemType::Scalar(d), .. } => {
                facts.push(if d.is_int() { of(Part::Number) } else { ArgFacts::default() });
            }
            Type::View { rank, .. } => {
                let rank = *rank as usize;
                facts.push(ALIGNED);
                facts.extend((0..rank).map(|axis| of(Part::Extent(axis))));
                facts.extend((0..rank).map(|axis| of(Part::Stride(axis))));
            }
        }
    }
    facts
}

/// The facts of [`Variant::Aligned`].
fn aligned(module: &TileModule, entry: FuncId) -> Vec<ArgFacts> {
    let Some(func) = module.funcs.get(entry) else { return vec![] };
    let params = func.blocks.get(func.body).map(|b| b.args.as_slice()).unwrap_or_default();
    let mut facts = vec![];
    for v in params {
        match module.types.get(func.ty(*v)) {
            Type::Tile { elem: ElemType::Ptr { .. }, .. } => facts.push(ALIGNED),
            Type::Tile { elem: ElemType::Scalar(d), .. } if d.is_int() => facts.push(ALIGNED_NUMBER),
            Type::Tile { elem: ElemType::Scalar(_), .. } => facts.push(ArgFacts::default()),
            Type::View { rank, .. } => {
                let rank = *rank as usize;
                // The address; of the extents the last, along which accesses are wide; all strides but the last.
                facts.push(ALIGNED);
                facts.extend(std::iter::repeat_n(NUMBER, rank.saturating_sub(1)));
                facts.extend(std::iter::repeat_n(ALIGNED_NUMBER, rank));
                facts.extend((rank > 0).then_some(ArgFacts { one: true, ..NUMBER }));
            }
        }
    }
    facts
}

/// The facts without those that affect no access to memory. If one of two suffices, it is not the one about a number:
/// shapes and strides vary less between launches.
fn useful(module: &TileModule, entry: FuncId, facts: Vec<ArgFacts>) -> Vec<ArgFacts> {
    let Some(func) = module.funcs.get(entry) else { return facts };
    let accesses =
        |facts: &[ArgFacts]| AxisInfo::new(module, func, facts).of_accesses(module, func, ALIGNED.divisible);
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
        let module: Module = tk_tile::text::parse(text).unwrap();
        Variant::of(&TileModule::new(module).unwrap(), FuncId::new(0), None)
    }

    #[test]
    fn each_machine_parameter_has_its_fact() {
        let one = ArgFacts { one: true, ..NUMBER };
        let four = ArgFacts { divisible: 4, ..NUMBER };
        let view = vec![ALIGNED, NUMBER, four, four, one];
        let rest = vec![ALIGNED, ArgFacts::default(), ALIGNED_NUMBER];
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
        assert_eq!(found, [(Variant::Aligned, [view, rest].concat()), (Variant::General, vec![])]);
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
        let scalars = vec![ArgFacts::default(), NUMBER, NUMBER, NUMBER];
        assert_eq!(found, [(Variant::Aligned, [tensor, scalars].concat()), (Variant::General, vec![])]);
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
    fn a_kernel_of_which_nothing_can_be_known_has_one_variant() {
        let unused = |params: &str| variants(&format!("kernel @k({params}) {{\n  return\n}}\n"));
        assert_eq!(unused("v0: f32, v1: bool"), [(Variant::General, vec![])]);
        assert_eq!(unused("v0: mut view[f32, 2], v1: i32"), [(Variant::General, vec![])]);
        assert_eq!(unused(""), [(Variant::General, vec![])]);
    }
}
