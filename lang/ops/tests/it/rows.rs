//! The op table as a whole: what must hold for every row.

use std::collections::HashSet;

use tk_ops::eval::{Operand, elementwise};
use tk_ops::rows::{find, functions, is_operator, methods, rows};
use tk_ops::table::{BuiltinParam, Effects, ParamKind, Receiver, Row, Scheme};
use tk_ops::{DType, DTypeSet, ElementwiseOp, Group, Op, ReduceOp, Scalar};

fn place(row: &Row) -> String {
    format!("{:?} {}", row.receiver, row.name)
}

#[test]
fn names_are_unique_and_found() {
    let mut seen = HashSet::new();
    for row in rows() {
        assert!(seen.insert(place(row)), "{} stands twice", place(row));
        assert_eq!(find(row.name, row.receiver).map(place), Some(place(row)));
    }
    assert!(find("nothing", Receiver::None).is_none());
    assert!(functions().all(|r| !is_operator(r)));
    assert!(functions().any(|r| r.name == "where"));
    assert_eq!(methods(Receiver::Tile).map(|r| r.name).collect::<Vec<_>>(), ["permute"]);
}

#[test]
fn rows_are_documented() {
    for row in rows() {
        assert!(row.doc.ends_with('.'), "{}: the doc ends with a full stop", place(row));
        assert!(!row.doc.contains("  "), "{}: the doc has a gap", place(row));
        assert!(row.example.contains("assert"), "{}: the example checks nothing", place(row));
        let braces = |c| row.example.matches(c).count();
        assert_eq!(braces('{'), braces('}'), "{}", place(row));
        assert_eq!(braces('('), braces(')'), "{}", place(row));
        let file = row.example.starts_with("kernel");
        assert_eq!(file, row.example.contains("test \""), "{}: statements or a whole file", place(row));
        let called = match row.receiver {
            _ if is_operator(row) => row.name.trim_start_matches("unary ").to_string(),
            Receiver::None | Receiver::Test => format!("{}(", row.name),
            Receiver::View | Receiver::Tile | Receiver::Buffer => format!(".{}(", row.name),
        };
        assert!(row.example.contains(&called), "{}: the example does not use it", place(row));
    }
}

#[test]
fn parameters_make_sense() {
    for row in rows() {
        let mut seen = HashSet::new();
        for p in row.params {
            assert!(seen.insert(p.name), "{}: `{}` stands twice", place(row), p.name);
            let Some(text) = p.default else { continue };
            let good = match p.kind {
                ParamKind::ConstBool | ParamKind::Mask => matches!(text, "true" | "false"),
                ParamKind::ConstInt | ParamKind::Int => text == "none" || text.parse::<i64>().is_ok(),
                ParamKind::ConstFloat => text.parse::<f64>().is_ok(),
                ParamKind::Axis => text == "all" || text.parse::<i64>().is_ok(),
                ParamKind::Word(words) => words.contains(&text),
                ParamKind::Value => matches!(text, "0" | "none"),
                ParamKind::Shape => text == "one element",
                ParamKind::Str => text == "\"\"",
                ParamKind::Pointer
                | ParamKind::View
                | ParamKind::ConstInts
                | ParamKind::DType
                | ParamKind::Fn
                | ParamKind::Position
                | ParamKind::Positions
                | ParamKind::Rest => false,
            };
            assert!(good, "{}: `{}` cannot default to `{text}`", place(row), p.name);
        }
        match row.receiver {
            Receiver::None | Receiver::Test => {}
            Receiver::View | Receiver::Buffer => assert_eq!(row.params[0].kind, ParamKind::View),
            Receiver::Tile => assert_eq!(row.params[0].kind, ParamKind::Value),
        }
    }
}

#[test]
fn schemes_agree_with_the_operations() {
    for row in rows() {
        match (row.op, row.scheme) {
            (Op::Elementwise(op), Scheme::Elementwise(set, result)) => {
                let values = row.params.iter().filter(|p| p.kind == ParamKind::Value).count();
                assert_eq!(values, op.arity(), "{}", place(row));
                assert!(set.within(op.accepts()), "{}", place(row));
                assert_eq!(Some(result), op.result(), "{}", place(row));
            }
            (Op::Reduce(op), Scheme::Reduce(set, result)) => {
                assert_eq!(set, op.accepts(), "{}", place(row));
                assert_eq!(result, op.result(), "{}", place(row));
            }
            (_, scheme) => assert_eq!(scheme, Scheme::Special, "{}", place(row)),
        }
    }
}

#[test]
fn elementwise_rows_have_a_parameter_for_each_operand() {
    for row in rows() {
        let Op::Elementwise(op) = row.op else { continue };
        let operand =
            |p: &&BuiltinParam| matches!(p.kind, ParamKind::Value | ParamKind::Mask) && p.default.is_none();
        assert_eq!(row.params.iter().filter(operand).count(), op.arity(), "{}", place(row));
        let constant =
            |p: &BuiltinParam| matches!(p.kind, ParamKind::ConstBool | ParamKind::DType | ParamKind::Word(_));
        let known = |p: &BuiltinParam| operand(&p) || constant(p) || p.default == Some("none");
        assert!(row.params.iter().all(known), "{}", place(row));
        assert_eq!(row.effects, Effects::Pure, "{}", place(row));
    }
}

#[test]
fn every_elementwise_operation_evaluates_on_what_it_accepts() {
    let one = |d: DType| Operand::Splat(Scalar::zero(d));
    for op in ElementwiseOp::ALL {
        for d in op.accepts().iter() {
            let mut args = vec![one(d); op.arity()];
            if matches!(op.group(), Group::Select(_)) {
                args[0] = one(DType::Bool);
            }
            let out = op.result().map_or(d, |r| r.of(d));
            if let Err(e) = elementwise(*op, &args, out, 1, false) {
                panic!("{} of {d}: {e}", op.name());
            }
        }
    }
}

#[test]
fn every_operation_of_users_has_a_row() {
    let has = |op: Op| rows().any(|r| r.op == op);
    for op in ElementwiseOp::ALL {
        assert!(has(Op::Elementwise(*op)), "{}", op.name());
    }
    for op in ReduceOp::ALL {
        assert!(has(Op::Reduce(*op)), "{}", op.name());
    }
    let internal = |op: &Op| match op {
        Op::Elementwise(_) | Op::Reduce(_) | Op::Create(_) | Op::Control(_) | Op::Host(_) | Op::Target => {
            true
        }
        Op::Shape(_) | Op::Memory(_) => !op.name().contains("load"),
        Op::Atomic(_) | Op::Scan(_) | Op::Dot(_) | Op::Random(_) => false,
    };
    for op in Op::all().filter(|op| !internal(op)) {
        assert!(has(op), "{}", op.name());
    }
}

#[test]
fn sets_are_what_their_names_say() {
    assert_eq!(DTypeSet::FLOAT.or(DTypeSet::INT), DTypeSet::NUMBER);
    assert_eq!(ReduceOp::Sum.accepts().without(DTypeSet::NUMBER), DTypeSet::BOOL);
}
