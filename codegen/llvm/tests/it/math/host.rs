//! Owns an implementation of the arithmetic that computes.
//!
//! Guarantees what the emitted instructions do, without approximations.

use tk_llvm::math::{Approx, Math, Width};

/// A number or a truth value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    F32(f32),
    F64(f64),
    I32(i32),
    I64(i64),
    Bool(bool),
}

use Value::{Bool, F32, F64, I32, I64};

impl From<f32> for Value {
    fn from(x: f32) -> Self {
        F32(x)
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Self {
        F64(x)
    }
}

impl Value {
    /// The float in 64 bits.
    pub fn number(self) -> f64 {
        match self {
            F32(x) => f64::from(x),
            F64(x) => x,
            I32(_) | I64(_) | Bool(_) => panic!("{self:?} is no float"),
        }
    }
}

/// Computes with values.
pub struct Host;

macro_rules! floats {
    ($($name:ident($($arg:ident),*) = $value:expr;)*) => {
        $(#[inline(always)]
        fn $name(&mut self, $($arg: Value),*) -> Value {
            match ($($arg,)*) {
                ($(F32($arg),)*) => Value::from($value),
                ($(F64($arg),)*) => Value::from($value),
                other => panic!("{} of {other:?}", stringify!($name)),
            }
        })*
    };
}

macro_rules! ints {
    ($($name:ident = |$a:ident, $b:ident| $narrow:expr, $wide:expr;)*) => {
        $(#[inline(always)]
        fn $name(&mut self, a: Value, b: Value) -> Value {
            match (a, b) {
                (I32($a), I32($b)) => Value::from($narrow),
                (I64($a), I64($b)) => Value::from($wide),
                other => panic!("{} of {other:?}", stringify!($name)),
            }
        })*
    };
}

impl From<i32> for Value {
    fn from(x: i32) -> Self {
        I32(x)
    }
}

impl From<i64> for Value {
    fn from(x: i64) -> Self {
        I64(x)
    }
}

impl From<bool> for Value {
    fn from(x: bool) -> Self {
        Bool(x)
    }
}

macro_rules! bits {
    ($($name:ident = $op:tt;)*) => {
        $(#[inline(always)]
        fn $name(&mut self, a: Value, b: Value) -> Value {
            match (a, b) {
                (I32(a), I32(b)) => I32(a $op b),
                (I64(a), I64(b)) => I64(a $op b),
                (Bool(a), Bool(b)) => Bool(a $op b),
                other => panic!("{} of {other:?}", stringify!($name)),
            }
        })*
    };
}

impl Math for Host {
    type V = Value;

    #[inline(always)]
    fn float(&mut self, width: Width, value: f64) -> Value {
        match width {
            Width::F32 => F32(value as f32),
            Width::F64 => F64(value),
        }
    }
    #[inline(always)]
    fn int(&mut self, width: Width, value: i64) -> Value {
        match width {
            Width::F32 => I32(value as i32),
            Width::F64 => I64(value),
        }
    }

    floats! {
        add(a, b) = a + b;
        sub(a, b) = a - b;
        mul(a, b) = a * b;
        div(a, b) = a / b;
        fma(a, b, c) = a.mul_add(b, c);
        neg(a) = -a;
        abs(a) = a.abs();
        sqrt(a) = a.sqrt();
        lt(a, b) = a < b;
        eq(a, b) = a == b;
        to_bits(a) = a.to_bits().cast_signed();
    }

    ints! {
        iadd = |a, b| a.wrapping_add(b), a.wrapping_add(b);
        isub = |a, b| a.wrapping_sub(b), a.wrapping_sub(b);
        imul = |a, b| a.wrapping_mul(b), a.wrapping_mul(b);
        umulhi = |a, b| ((u64::from(a as u32) * u64::from(b as u32)) >> 32) as i32,
            ((u128::from(a as u64) * u128::from(b as u64)) >> 64) as i64;
        shl = |a, b| a << b, a << b;
        lshr = |a, b| (a.cast_unsigned() >> b).cast_signed(), (a.cast_unsigned() >> b).cast_signed();
        ashr = |a, b| a >> b, a >> b;
        ult = |a, b| a.cast_unsigned() < b.cast_unsigned(), a.cast_unsigned() < b.cast_unsigned();
        ieq = |a, b| a == b, a == b;
    }

    bits! {
        and = &;
        or = |;
        xor = ^;
    }

    #[inline(always)]
    fn as_float(&mut self, a: Value) -> Value {
        match a {
            I32(a) => F32(f32::from_bits(a.cast_unsigned())),
            I64(a) => F64(f64::from_bits(a.cast_unsigned())),
            other => panic!("as_float of {other:?}"),
        }
    }
    #[inline(always)]
    fn to_float(&mut self, a: Value) -> Value {
        match a {
            I32(a) => F32(a as f32),
            I64(a) => F64(a as f64),
            other => panic!("to_float of {other:?}"),
        }
    }
    #[inline(always)]
    fn widen(&mut self, a: Value) -> Value {
        let F32(a) = a else { panic!("widen of {a:?}") };
        F64(f64::from(a))
    }
    #[inline(always)]
    fn narrow(&mut self, a: Value) -> Value {
        let F64(a) = a else { panic!("narrow of {a:?}") };
        F32(a as f32)
    }
    #[inline(always)]
    fn low_half(&mut self, a: Value) -> Value {
        let I64(a) = a else { panic!("low_half of {a:?}") };
        I32(a as i32)
    }

    #[inline(always)]
    fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        let Bool(cond) = cond else { panic!("select by {cond:?}") };
        assert_eq!(std::mem::discriminant(&a), std::mem::discriminant(&b), "both have one type");
        if cond { a } else { b }
    }
    #[inline(always)]
    fn rarely<const N: usize>(
        &mut self,
        cond: Value,
        usual: [Value; N],
        slow: impl FnOnce(&mut Self) -> [Value; N],
    ) -> [Value; N] {
        let Bool(cond) = cond else { panic!("rarely by {cond:?}") };
        if cond { slow(self) } else { usual }
    }

    fn approx(&mut self, _: Approx, _: Value) -> Option<Value> {
        None
    }
    fn saturated_fma(&mut self, _: Value, _: Value, _: Value) -> Option<Value> {
        None
    }
}
