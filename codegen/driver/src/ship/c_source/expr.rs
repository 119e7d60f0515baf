//! Prints closed expressions as C, with the helpers that they need.

use tk_bundle::{DeviceFact, Expr, Kernel, Kind, Operation, Variant};
use tk_ops::DType;

use super::{File, dot};

const HELPERS: &str = include_str!("../c/helpers.c");

impl File<'_> {
    /// An expression of type `int64_t`, or `double` for a number of a float type.
    pub(super) fn expr(&mut self, e: &Expr, kernel: &Kernel, v: &Variant) -> String {
        let name = |arg: &u32| format!("tki_a{arg}");
        match e {
            Expr::Int(i64::MIN) => "INT64_MIN".to_string(),
            Expr::Int(i) => format!("INT64_C({i})"),
            Expr::Float(f) => format!("{f:?}"),
            Expr::Number(arg) => {
                self.numbers.insert(*arg);
                format!("tki_n{arg}")
            }
            Expr::Address(arg) => format!("(int64_t)(uintptr_t){}{}data", name(arg), dot(kernel, *arg)),
            Expr::Extent(arg, axis) => format!("{}->shape[{axis}]", name(arg)),
            Expr::Stride(arg, axis) => format!("{}->strides[{axis}]", name(arg)),
            Expr::Device(DeviceFact::Sms) => "tki_here->sms".to_string(),
            Expr::Device(DeviceFact::SharedBytes) => "tki_here->shared_bytes".to_string(),
            Expr::Apply(Operation { op, bits, args }) => {
                let float = args.first().is_some_and(|a| is_float(a, v));
                let args: Vec<String> = args.iter().map(|a| self.expr(a, kernel, v)).collect();
                self.applied(*op, *bits, &args, float)
            }
        }
    }

    fn applied(&mut self, op: Kind, bits: u32, args: &[String], float: bool) -> String {
        let list = args.join(", ");
        let mut call = |name: &'static str| {
            self.helpers.insert(name);
            format!("tki_{name}({list}, {bits}, &tki_wrong)")
        };
        match (op, args) {
            (Kind::Add, _) => call("add"),
            (Kind::Sub, _) => call("sub"),
            (Kind::Mul, _) => call("mul"),
            (Kind::Div, _) => call("div"),
            (Kind::Rem, _) => call("rem"),
            (Kind::CeilDiv, _) => call("cdiv"),
            (Kind::Min, _) => call("min"),
            (Kind::Max, _) => call("max"),
            (Kind::Neg, [a]) if float => format!("(-({a}))"),
            (Kind::Neg, _) => call("neg"),
            (Kind::Abs, _) => call("abs"),
            (Kind::NextPow2, _) => call("next_pow2"),
            (Kind::Wrap, _) => call("wrap"),
            (Kind::WrapUnsigned, _) => call("wrap_unsigned"),
            (Kind::Not, [a]) => format!("(!({a}))"),
            (Kind::Select, [c, a, b]) => format!("(({c}) ? ({a}) : ({b}))"),
            (op, [a, b]) => match op.sign() {
                Ok(sign) | Err(sign) => format!("(({a}) {sign} ({b}))"),
            },
            (_, _) => "0".to_string(),
        }
    }

    /// The helpers in use, each after those that it uses.
    pub(super) fn helpers(&self) -> Vec<String> {
        let uses_fit = self.helpers.iter().any(|h| FITTING.contains(h));
        helpers()
            .filter(|(name, _)| self.helpers.contains(name) || *name == "fit" && uses_fit)
            .map(|(_, text)| format!("\n{text}"))
            .collect()
    }
}

/// Returns true if an expression has a value of type `double`.
fn is_float(e: &Expr, v: &Variant) -> bool {
    match e {
        Expr::Float(_) => true,
        Expr::Number(arg) => {
            let dtype = v.dtypes.get(*arg as usize).and_then(|d| DType::parse(d.as_deref()?));
            dtype.is_some_and(DType::is_float)
        }
        Expr::Apply(Operation { op: Kind::Neg, args, .. }) => args.first().is_some_and(|a| is_float(a, v)),
        Expr::Apply(Operation { op: Kind::Select, args, .. }) => args.get(1).is_some_and(|a| is_float(a, v)),
        Expr::Int(_)
        | Expr::Address(_)
        | Expr::Extent(..)
        | Expr::Stride(..)
        | Expr::Device(_)
        | Expr::Apply(_) => false,
    }
}

/// Operations whose results may overflow.
const FITTING: [&str; 8] = ["add", "sub", "mul", "neg", "abs", "next_pow2", "div", "cdiv"];

/// The helpers of `c/helpers.c`: name and text.
fn helpers() -> impl Iterator<Item = (&'static str, &'static str)> {
    HELPERS.split("/* helper: ").skip(1).filter_map(|part| part.split_once(" */\n"))
}
