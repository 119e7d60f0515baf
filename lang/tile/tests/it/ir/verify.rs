//! Checks that each invariant rejects the files of `tests/ir/verify` that are named after it.

use super::common::{cases, compare};
use tk_ops::DType;
use tk_tile::text::parse;
use tk_tile::verify::{Invariant, MAX_NESTING, verify};
use tk_tile::{BlockId, Builder, Def, Func, FuncKind, Module, TileModule, Type, TypeId, ValueId};

#[test]
fn rejected() {
    let mut results = vec![];
    for case in cases("verify") {
        let place = case.path.display().to_string();
        let module = parse(&case.input).unwrap_or_else(|e| panic!("{place}:{e}"));
        let error = verify(&module).map(|()| panic!("{place} is accepted")).unwrap_err();
        assert!(case.name.starts_with(error.invariant.name()), "{place}: {error}");
        // Printing what is wrong does not fail.
        let _ = module.to_string();
        results.push((case, format!("// {error}\n")));
    }
    compare(results);
}

/// Every invariant has a file, except those that text cannot break.
#[test]
fn every_invariant_has_an_example() {
    let names: Vec<String> = cases("verify").into_iter().map(|c| c.name).collect();
    for i in Invariant::ALL {
        let in_text = !matches!(i, Invariant::V02 | Invariant::V05);
        assert_eq!(in_text, names.iter().any(|n| n.starts_with(i.name())), "{}", i.name());
    }
}

/// A function `f(x: i32)` that returns, after a change.
fn changed(change: impl FnOnce(&mut Module, &mut Func)) -> Option<Invariant> {
    let (mut m, mut f) = (Module::default(), Func::new("f", FuncKind::Fn));
    let mut b = Builder::new(&mut m.types, &mut f);
    let int = b.ty(Type::scalar(DType::I32));
    b.param("x", int);
    b.ret(&[]);
    change(&mut m, &mut f);
    m.funcs.push(f);
    let _ = m.to_string();
    TileModule::new(m).err().map(|e| e.invariant)
}

#[test]
fn inconsistent_ids() {
    assert_eq!(changed(|_, _| {}), None);
    assert_eq!(changed(|_, f| f.param_names.clear()), Some(Invariant::V02));
    let v05: [fn(&mut Module, &mut Func); 6] = [
        |_, f| f.body = BlockId(7),
        |_, f| f.blocks[BlockId(0)].args.push(ValueId(9)),
        |_, f| f.values[ValueId(0)].def = Def::Arg(BlockId(0), 1),
        |_, f| f.values[ValueId(0)].ty = TypeId(5),
        |_, f| f.insts[tk_tile::InstId(0)].operands.push(ValueId(8)),
        |_, f| f.insts[tk_tile::InstId(0)].blocks.push(BlockId(0)),
    ];
    for (i, change) in v05.into_iter().enumerate() {
        // A parameter too many is V02 already.
        let wanted = if i == 1 { Invariant::V02 } else { Invariant::V05 };
        assert_eq!(changed(change), Some(wanted), "change {i}");
    }
    let twice = |_: &mut Module, f: &mut Func| {
        let last = f.blocks[BlockId(0)].insts[0];
        f.blocks[BlockId(0)].insts.push(last);
    };
    assert_eq!(changed(twice), Some(Invariant::V05));
}

#[test]
fn nesting_is_limited() {
    let nested = |n: usize| {
        changed(|m, f| {
            f.blocks[BlockId(0)].insts.clear();
            let mut b = Builder::new(&mut m.types, f);
            let c = b.constant(tk_ops::Scalar::bool(true), &[]);
            (0..n).for_each(|_| drop(b.begin(&[])));
            for _ in 0..n {
                b.yield_(&[]);
                let then = b.end();
                b.begin(&[]);
                b.yield_(&[]);
                let otherwise = b.end();
                let op = tk_ops::Op::Control(tk_ops::ControlOp::If);
                b.inst_with(op, &[c], Default::default(), vec![then, otherwise], &[]);
            }
            b.ret(&[]);
        })
    };
    assert_eq!(nested(MAX_NESTING), None);
    assert_eq!(nested(MAX_NESTING + 1), Some(Invariant::V05));
    assert_eq!(nested(100 * MAX_NESTING), Some(Invariant::V05));
}
