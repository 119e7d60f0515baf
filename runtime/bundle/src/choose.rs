//! Chooses the variant of a launch, or explains why none fits.

use std::collections::BTreeSet;

use crate::error::{Error, ErrorKind};
use crate::expr::{DeviceFact, ExprError, Number, Reader};
use crate::manifest::{Kernel, Param, ParamKind, Variant};

/// An argument of a launch.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument<'a> {
    /// A tensor in the memory of the device.
    Tensor {
        /// The address of its first element.
        address: u64,
        /// Its element type, such as `f16`.
        dtype: &'a str,
        /// Its extents.
        shape: &'a [i64],
        /// Its strides in elements; none for row-major without gaps.
        strides: Option<&'a [i64]>,
    },
    /// A number or bool of a type, such as `i32`.
    Number {
        /// Its type.
        dtype: &'a str,
        /// Its value.
        value: Number,
    },
    /// An optional that is not there.
    Absent,
}

/// A device and the arguments of a launch on it.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The arguments.
    pub args: &'a [Argument<'a>],
    /// The values given by name: which of the shipped values, for each choice.
    pub given: &'a [Option<u32>],
    /// The targets whose code the device runs, the best first.
    pub targets: &'a [&'a str],
    /// Its multiprocessors.
    pub sms: i64,
    /// Bytes of shared memory that a block can have.
    pub shared_bytes: i64,
}

/// The variant and the grid of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'k> {
    /// The variant.
    pub variant: &'k Variant,
    /// The programs on each axis.
    pub grid: [u32; 3],
}

impl Reader for Facts<'_> {
    fn number(&self, arg: usize) -> Option<Number> {
        match self.args.get(arg)? {
            Argument::Number { value, .. } => Some(*value),
            Argument::Tensor { .. } | Argument::Absent => None,
        }
    }

    fn address(&self, arg: usize) -> Option<u64> {
        match self.args.get(arg)? {
            Argument::Tensor { address, .. } => Some(*address),
            Argument::Number { .. } | Argument::Absent => None,
        }
    }

    fn extent(&self, arg: usize, axis: usize) -> Option<i64> {
        match self.args.get(arg)? {
            Argument::Tensor { shape, .. } => shape.get(axis).copied(),
            Argument::Number { .. } | Argument::Absent => None,
        }
    }

    fn stride(&self, arg: usize, axis: usize) -> Option<i64> {
        match self.args.get(arg)? {
            Argument::Tensor { strides: Some(strides), .. } => strides.get(axis).copied(),
            Argument::Tensor { shape, strides: None, .. } => {
                let inner = shape.get(axis + 1..)?;
                Some(inner.iter().fold(1i64, |step, extent| step.saturating_mul((*extent).max(1))))
            }
            Argument::Number { .. } | Argument::Absent => None,
        }
    }

    fn device(&self, fact: DeviceFact) -> Option<i64> {
        Some(match fact {
            DeviceFact::Sms => self.sms,
            DeviceFact::SharedBytes => self.shared_bytes,
        })
    }
}

impl Kernel {
    /// The variant of a launch and its grid. Fails if the arguments do not fit the kernel, a requirement does not hold, or
    /// nothing that is shipped serves them.
    pub fn choose(&self, facts: &Facts<'_>) -> Result<Chosen<'_>, Error> {
        self.fitting(facts.args)?;
        for target in facts.targets {
            let mut variants = self.variants.iter().filter(|v| v.target == *target);
            if let Some(variant) = variants.find(|v| self.serves(v, facts)) {
                return self.launch(variant, facts);
            }
        }
        let why: BTreeSet<String> = self.variants.iter().filter_map(|v| self.refused(v, facts)).collect();
        if !self.variants.iter().any(|v| facts.targets.contains(&v.target.as_str())) {
            let targets: BTreeSet<&str> = self.variants.iter().map(|v| v.target.as_str()).collect();
            let shipped = listed(targets.into_iter());
            let what =
                format!("kernel `{}` is shipped for {shipped}, and this device runs none of it", self.name);
            let hint = match facts.targets.first() {
                Some(target) => format!("build it with --target {target}"),
                None => "there is no target for it".to_string(),
            };
            return Err(Error::new(ErrorKind::Target, what, hint));
        }
        let shipped: BTreeSet<String> = self.variants.iter().map(Variant::label).collect();
        let why: Vec<String> = why.into_iter().collect();
        let what = format!("no variant of kernel `{}` serves this launch: {}", self.name, why.join(", or "));
        Err(Error::new(
            ErrorKind::Variant,
            what,
            format!("shipped are {}", listed(shipped.iter().map(String::as_str))),
        ))
    }

    /// Why a launch does not take the first variant with the values of the one that it takes: what that one assumes about
    /// arguments and does not hold. `None` if it takes the first.
    pub fn passed_over(&self, taken: &Variant, facts: &Facts<'_>) -> Option<String> {
        let alike = |v: &&Variant| {
            v.target == taken.target
                && v.values == taken.values
                && v.dtypes == taken.dtypes
                && v.given == taken.given
        };
        let first = self.variants.iter().take_while(|v| !std::ptr::eq(*v, taken)).find(alike)?;
        let names: Vec<&str> = self.params.iter().map(|p| p.name.as_str()).collect();
        let failing = first.guard.iter().find(|g| g.condition.holds(facts) != Ok(true))?;
        let condition = failing.condition.text(&names);
        let number = self.variants.iter().filter(alike).take_while(|v| !std::ptr::eq(*v, taken)).count();
        let last = self.variants.iter().filter(alike).count() == number + 1;
        let which =
            if last { "the one for all arguments".to_string() } else { format!("number {}", number + 1) };
        Some(format!(
            "kernel `{}` [{}] does not take its first variant but {which}: `{condition}` does not hold",
            self.name,
            taken.label()
        ))
    }

    /// Number, kind and rank of the arguments.
    fn fitting(&self, args: &[Argument<'_>]) -> Result<(), Error> {
        if args.len() != self.params.len() {
            let names = listed(self.params.iter().map(|p| p.name.as_str()));
            let (wanted, given) = (self.params.len(), args.len());
            let (noun, were) =
                (if wanted == 1 { "argument" } else { "arguments" }, if given == 1 { "was" } else { "were" });
            let what = format!("kernel `{}` takes {wanted} {noun}, but {given} {were} given", self.name);
            return Err(Error::new(ErrorKind::Argument, what, format!("they are {names}")));
        }
        for (param, arg) in self.params.iter().zip(args) {
            if let Some(wrong) = misfit(param, arg) {
                let what = format!("`{}` of kernel `{}` {wrong}", param.name, self.name);
                return Err(Error::new(ErrorKind::Argument, what, ""));
            }
        }
        Ok(())
    }

    /// Returns true if a variant is right for a launch.
    fn serves(&self, variant: &Variant, facts: &Facts<'_>) -> bool {
        let typed = variant.dtypes.iter().zip(facts.args).all(|(own, arg)| own.as_deref() == dtype(arg));
        let mut given = variant.given.iter().enumerate();
        typed
            && given
                .all(|(i, own)| facts.given.get(i).copied().flatten().map_or(own.default, |v| v == own.value))
            && variant.guard.iter().all(|g| g.condition.holds(facts) == Ok(true))
    }

    /// Why a variant does not serve a launch.
    fn refused(&self, variant: &Variant, facts: &Facts<'_>) -> Option<String> {
        for ((param, own), arg) in self.params.iter().zip(&variant.dtypes).zip(facts.args) {
            let found = dtype(arg);
            if own.as_deref() != found {
                let shown = |d: Option<&str>| d.map_or("absent".to_string(), |d| format!("of {d}"));
                return Some(format!("`{}` is {}", param.name, shown(found)));
            }
        }
        for (i, (choice, own)) in self.choices.iter().zip(&variant.given).enumerate() {
            match facts.given.get(i).copied().flatten() {
                Some(value) if value != own.value => {
                    let value = choice.values.get(value as usize).map_or("?", String::as_str);
                    return Some(format!("`{}` is {value}", choice.name));
                }
                None if !own.default => return Some(format!("`{}` is not given", choice.name)),
                Some(_) | None => {}
            }
        }
        let names: Vec<&str> = self.params.iter().map(|p| p.name.as_str()).collect();
        let failing = variant.guard.iter().find(|g| g.condition.holds(facts) != Ok(true))?;
        Some(match &failing.decides {
            Some(name) => format!("`{name}` is another value"),
            None => format!("`{}` does not hold", failing.condition.text(&names)),
        })
    }

    fn launch<'k>(&'k self, variant: &'k Variant, facts: &Facts<'_>) -> Result<Chosen<'k>, Error> {
        let name = &self.name;
        for r in &variant.require {
            let wrong = match r.condition.holds(facts) {
                Ok(true) => continue,
                Ok(false) => "which does not hold".to_string(),
                Err(e) => format!("which has no value: {e}"),
            };
            return Err(Error::new(
                ErrorKind::Requirement,
                format!("kernel `{name}` requires `{}`, {wrong}", r.text),
                "",
            ));
        }
        let mut grid = [0; 3];
        for (axis, (e, n)) in variant.grid.iter().zip(&mut grid).enumerate() {
            let found = e.int(facts).map_err(|e: ExprError| {
                Error::new(
                    ErrorKind::Grid,
                    format!("the grid of kernel `{name}` has no value on axis {axis}: {e}"),
                    "",
                )
            })?;
            *n = i32::try_from(found).ok().and_then(|v| u32::try_from(v).ok()).ok_or_else(|| {
                let what = format!("the grid of kernel `{name}` has {found} programs on axis {axis}");
                Error::new(ErrorKind::Grid, what, "a grid has 0 to 2147483647 on each")
            })?;
        }
        Ok(Chosen { variant, grid })
    }
}

/// Why an argument does not fit its parameter.
fn misfit(param: &Param, arg: &Argument<'_>) -> Option<String> {
    match (param.kind, arg) {
        (_, Argument::Absent) => (!param.optional).then(|| "must be given".to_string()),
        (ParamKind::Number, Argument::Number { .. })
        | (ParamKind::Pointer { .. }, Argument::Tensor { .. }) => None,
        (ParamKind::View { rank, wide, .. }, Argument::Tensor { shape, strides, .. }) => {
            let most = if wide { i64::MAX } else { i32::MAX.into() };
            if shape.len() != rank as usize || strides.is_some_and(|s| s.len() != shape.len()) {
                return Some(format!(
                    "is a view of rank {rank}, and a tensor of rank {} was given",
                    shape.len()
                ));
            }
            let outside = shape.iter().find(|d| !(0..=most).contains(*d));
            outside.map(|d| format!("has the extent {d}, which is not from 0 to {most}"))
        }
        (ParamKind::Number, Argument::Tensor { .. }) => {
            Some("is a number, and a tensor was given".to_string())
        }
        (ParamKind::View { .. } | ParamKind::Pointer { .. }, Argument::Number { .. }) => {
            Some("is a tensor, and a number was given".to_string())
        }
    }
}

/// The element type of an argument.
fn dtype<'a>(arg: &Argument<'a>) -> Option<&'a str> {
    match arg {
        Argument::Tensor { dtype, .. } | Argument::Number { dtype, .. } => Some(*dtype),
        Argument::Absent => None,
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}
