//! Parameters of a shipped kernel: kinds and element types of its arguments, and machine parameters in order.

use tk_bundle::{Machine, ParamKind, Table};
use tk_ops::DType;
use tk_sema::contract::{ClosedArg, ClosedContract};
use tk_tile::{ElemType, Type};

/// The parameters of the function.
pub(super) fn passed(contract: &ClosedContract) -> Vec<Machine> {
    let mut out = vec![];
    for (i, arg) in contract.args.iter().enumerate().filter(|(_, a)| a.present) {
        let i = i as u32;
        match &arg.ty {
            Type::Tile { elem: ElemType::Ptr { .. }, .. } => out.push(Machine::Address(i)),
            Type::Tile { elem: ElemType::Scalar(_), .. } => out.push(Machine::Number(i)),
            Type::View { rank, wide, .. } => {
                let bits = if *wide { DType::I64.bits() } else { DType::I32.bits() };
                out.push(Machine::Address(i));
                out.extend((0..*rank).map(|axis| Machine::Extent(i, axis, bits)));
                out.extend((0..*rank).map(|axis| Machine::Stride(i, axis)));
            }
        }
    }
    out.extend((0..contract.scratch.len() as u32).map(Machine::Scratch));
    out
}

pub(super) fn kind(ty: &Type) -> ParamKind {
    match ty {
        Type::Tile { elem: ElemType::Ptr { mutable, .. }, .. } => ParamKind::Pointer { mutable: *mutable },
        Type::Tile { elem: ElemType::Scalar(_), .. } => ParamKind::Number,
        Type::View { rank, mutable, wide, .. } => {
            ParamKind::View { rank: *rank, mutable: *mutable, wide: *wide }
        }
    }
}

/// The table of the addresses in an argument, if its elements are addresses.
fn table_of(ty: &Type) -> Option<(Table, DType)> {
    let mut elem = match ty {
        Type::Tile { elem: ElemType::Ptr { pointee, .. }, .. } => pointee,
        Type::Tile { elem, .. } | Type::View { elem, .. } => elem,
    };
    let mut table = Table { depth: 0, mutable: false };
    loop {
        match elem {
            ElemType::Scalar(d) => return (table.depth > 0).then_some((table, *d)),
            ElemType::Ptr { pointee, mutable } => {
                table = Table { depth: table.depth + 1, mutable: *mutable };
                elem = pointee;
            }
        }
    }
}

/// The element types of tables, for each argument; `None` without a table.
pub(super) fn entries(contract: &ClosedContract) -> Vec<Option<String>> {
    let of = |a: &ClosedArg| a.present.then(|| table_of(&a.ty)).flatten().map(|(_, d)| d.name().to_string());
    let all: Vec<Option<String>> = contract.args.iter().map(of).collect();
    if all.iter().all(Option::is_none) { vec![] } else { all }
}

/// The element type of an argument. The host stores pointers as 64-bit integers.
fn element(ty: &Type) -> String {
    let elem = match ty {
        Type::Tile { elem: ElemType::Ptr { pointee, .. }, .. } => pointee,
        Type::Tile { elem, .. } | Type::View { elem, .. } => elem,
    };
    match elem {
        ElemType::Scalar(d) => d.name().to_string(),
        ElemType::Ptr { .. } => DType::U64.name().to_string(),
    }
}

pub(super) fn bytes_of(elem: &ElemType) -> u32 {
    match elem {
        ElemType::Scalar(d) => d.bytes() as u32,
        ElemType::Ptr { .. } => 8,
    }
}

/// The table of the addresses in an argument; `None` if its elements are not addresses.
pub(super) fn table(ty: &Type) -> Option<Table> {
    table_of(ty).map(|(table, _)| table)
}

/// The element type of each argument; `None` for an optional one that is absent.
pub(super) fn dtypes(contract: &ClosedContract) -> Vec<Option<String>> {
    contract.args.iter().map(|a| a.present.then(|| element(&a.ty))).collect()
}
