//! The Rust that a build script generates: a type for a file of kernels, with one function for each.
//!
//! Guarantees that a wrong number, order, rank or element type of arguments is an error of the Rust compiler. Arguments
//! whose element types are always the same share one type parameter.

use std::collections::BTreeSet;
use std::fmt::Write;

use tk_bundle::{Kernel, Manifest, Param, ParamKind};
use tk_ops::DType;

/// The text of the module. With `in_out_dir` the bundle is found through Cargo, otherwise next to the text.
pub fn module(manifest: &Manifest, stem: &str, in_out_dir: bool) -> Result<String, String> {
    let name = camel(stem);
    let bundle = if in_out_dir {
        format!("concat!(env!(\"OUT_DIR\"), \"/{stem}.tkb\")")
    } else {
        format!("\"{stem}.tkb\"")
    };
    let mut out = format!(
        "/// The kernels of `{stem}.tk`, as part of this program.\n#[derive(Clone, Debug)]\npub struct {name}(::tk::Kernels);\n\n\
         #[allow(non_snake_case, reason = \"names as the kernels have them\")]\nimpl {name} {{\n    /// On a device. Nothing is loaded before it is launched.\n    \
         pub fn new(device: &::tk::Device) -> ::core::result::Result<Self, ::tk::BundleError> {{\n        \
         Ok(Self(::tk::Kernels::new(device.clone(), Self::bundle()?.into())))\n    }}\n\n    \
         /// The bundle itself, for the CPU.\n    \
         pub fn bundle() -> ::core::result::Result<::tk::Bundle, ::tk::BundleError> {{\n        \
         ::tk::Bundle::from_static(include_bytes!({bundle}))\n    }}\n\n    \
         /// The kernels by name, and what they printed.\n    pub fn kernels(&self) -> &::tk::Kernels {{\n        &self.0\n    }}\n"
    );
    let mut types = String::new();
    let (mut functions, mut taken) = (BTreeSet::new(), BTreeSet::from([name.clone()]));
    for kernel in &manifest.kernels {
        let names = Names::new(kernel, &name, &mut functions, &mut taken);
        let generics = generics(kernel, &name, &mut taken);
        for g in &generics {
            types.push_str(&element_trait(kernel, g)?);
        }
        for (c, own) in kernel.choices.iter().zip(&names.types) {
            let defaults = kernel
                .variants
                .iter()
                .filter_map(|v| v.given.get(kernel.choices.iter().position(|o| o == c)?).map(|g| g.default));
            types.push_str(&choice(kernel, own, &c.name, &c.values, defaults.into_iter().any(|d| d)));
        }
        out.push_str(&function(kernel, &names, &generics)?);
    }
    out.push_str("}\n");
    out.push_str(&types);
    Ok(out)
}

/// The names of a kernel, unique where they are used.
struct Names {
    function: String,
    params: Vec<String>,
    /// Arguments and types of the given compile-time parameters.
    choices: Vec<String>,
    types: Vec<String>,
}

impl Names {
    fn new(
        kernel: &Kernel,
        name: &str,
        functions: &mut BTreeSet<String>,
        taken: &mut BTreeSet<String>,
    ) -> Names {
        let mut own = BTreeSet::new();
        let params = kernel.params.iter().map(|p| unique(identifier(&p.name), &mut own)).collect();
        let lower = |c: &tk_bundle::Choice| identifier(&c.name.to_lowercase());
        let choices = kernel.choices.iter().map(|c| unique(lower(c), &mut own)).collect();
        let ty =
            |c: &tk_bundle::Choice| format!("{name}{}{}", camel(&kernel.name), camel(&c.name.to_lowercase()));
        let types = kernel.choices.iter().map(|c| unique(ty(c), taken)).collect();
        Names { function: unique(identifier(&kernel.name), functions), params, choices, types }
    }
}

/// An unused name, by a number after it if need be.
fn unique(name: String, taken: &mut BTreeSet<String>) -> String {
    let (mut own, mut number) = (name.clone(), 2);
    while !taken.insert(own.clone()) {
        own = format!("{name}_{number}");
        number += 1;
    }
    own
}

/// Arguments whose element types vary together.
struct Generic {
    name: String,
    /// The trait of the element types that were built.
    bound: String,
    args: Vec<usize>,
    dtypes: BTreeSet<String>,
}

/// The element types of an argument, variant by variant.
fn column(kernel: &Kernel, arg: usize) -> Vec<Option<String>> {
    kernel.variants.iter().map(|v| v.dtypes.get(arg).cloned().flatten()).collect()
}

/// Returns true if two arguments have the same type wherever both are present.
fn together(a: &[Option<String>], b: &[Option<String>]) -> bool {
    a.iter().zip(b).all(|(x, y)| x.is_none() || y.is_none() || x == y)
}

fn generics(kernel: &Kernel, module: &str, taken: &mut BTreeSet<String>) -> Vec<Generic> {
    let mut out: Vec<(Vec<Option<String>>, Generic)> = vec![];
    for arg in 0..kernel.params.len() {
        let own = column(kernel, arg);
        let dtypes: BTreeSet<String> = own.iter().flatten().cloned().collect();
        if dtypes.len() < 2 {
            continue;
        }
        match out.iter_mut().find(|(first, _)| together(first, &own)) {
            Some((_, g)) => g.args.push(arg),
            None => {
                let name = format!("T{}", out.len());
                let bound = unique(format!("{module}{}{name}", camel(&kernel.name)), taken);
                out.push((own, Generic { name, bound, args: vec![arg], dtypes }));
            }
        }
    }
    out.into_iter().map(|(_, g)| g).collect()
}

/// The Rust type of an element type.
fn rust_type(dtype: &str) -> Result<&'static str, String> {
    Ok(match DType::parse(dtype).ok_or_else(|| format!("no element type `{dtype}`"))? {
        DType::Bool => "::tk::Bool",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::U8 => "u8",
        DType::U16 => "u16",
        DType::U32 => "u32",
        DType::U64 => "u64",
        DType::F8E4M3 => "::tk::F8E4M3",
        DType::F8E5M2 => "::tk::F8E5M2",
        DType::F8E4M3FNUZ => "::tk::F8E4M3FNUZ",
        DType::F8E5M2FNUZ => "::tk::F8E5M2FNUZ",
        DType::F16 => "::tk::half::f16",
        DType::BF16 => "::tk::half::bf16",
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::E2M1 => "::tk::E2M1",
        DType::E8M0 => "::tk::E8M0",
    })
}

fn element_trait(kernel: &Kernel, g: &Generic) -> Result<String, String> {
    let own = &g.bound;
    let mut out = format!(
        "\n/// Element types that `{}` was built for.\n#[allow(non_camel_case_types, reason = \"a number tells equal names apart\")]\npub trait {own}: ::tk::Element {{}}\n",
        kernel.name
    );
    for dtype in &g.dtypes {
        let _ = writeln!(out, "impl {own} for {} {{}}", rust_type(dtype)?);
    }
    Ok(out)
}

fn choice(kernel: &Kernel, own: &str, choice: &str, values: &[String], default: bool) -> String {
    let mut out = format!(
        "\n/// `{choice}` of `{}`, as it was built.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\n#[allow(non_camel_case_types, reason = \"a number tells equal names apart\")]\npub enum {own} {{\n",
        kernel.name
    );
    if default {
        out.push_str("    /// The kernel's own default.\n    Default,\n");
    }
    let variants: Vec<String> = values.iter().enumerate().map(|(i, v)| value_name(values, i, v)).collect();
    for (v, text) in variants.iter().zip(values) {
        let _ = writeln!(out, "    /// {text}\n    {v},");
    }
    let _ = write!(
        out,
        "}}\n\nimpl {own} {{\n    fn value(self) -> Option<&'static str> {{\n        match self {{\n"
    );
    if default {
        let _ = writeln!(out, "            {own}::Default => None,");
    }
    for (v, text) in variants.iter().zip(values) {
        let _ = writeln!(out, "            {own}::{v} => Some({text:?}),");
    }
    out.push_str("        }\n    }\n}\n");
    out
}

fn value_name(values: &[String], index: usize, value: &str) -> String {
    let of = |v: &str| camel(&v.replace('-', "_minus_"));
    let own = of(value);
    if values.iter().filter(|v| of(v) == own).count() > 1 || own == "Default" {
        format!("{own}{}", index + 1)
    } else {
        own
    }
}

fn function(kernel: &Kernel, names: &Names, generics: &[Generic]) -> Result<String, String> {
    let mut out = String::from("\n");
    for line in kernel.doc.lines() {
        let _ = writeln!(out, "    ///{}{line}", if line.is_empty() { "" } else { " " });
    }
    if kernel.doc.is_empty() {
        let _ = writeln!(out, "    /// Launches `{}`.", kernel.name);
    }
    let bounds: Vec<String> = generics.iter().map(|g| format!("{}: {}", g.name, g.bound)).collect();
    let bounds = if bounds.is_empty() { String::new() } else { format!("<{}>", bounds.join(", ")) };
    let function = &names.function;
    let _ = write!(
        out,
        "    #[allow(clippy::too_many_arguments, reason = \"as many as the kernel has\")]\n    \
         pub fn {function}{bounds}(\n        &self,\n        stream: &::tk::Stream,\n"
    );
    let (mut args, mut named) = (vec![], vec![]);
    for (i, (p, ident)) in kernel.params.iter().zip(&names.params).enumerate() {
        let ty = argument(kernel, generics, i, p)?;
        let _ = writeln!(out, "        {ident}: {ty},");
        args.push(match (p.kind, p.optional || p.default.is_some()) {
            (ParamKind::Number, false) if is_bits(kernel, i) => format!("::tk::Arg::from({ident}.scalar())"),
            (ParamKind::Number, false) => format!("::tk::Arg::from({ident})"),
            (ParamKind::Number, true) if is_bits(kernel, i) => {
                format!("{ident}.map_or(::tk::Arg::Absent, |v| ::tk::Arg::from(v.scalar()))")
            }
            (ParamKind::Number, true) => format!("{ident}.map_or(::tk::Arg::Absent, ::tk::Arg::from)"),
            (_, true) => format!("{ident}.as_ref().map_or(::tk::Arg::Absent, |v| v.arg())"),
            (_, false) => format!("{ident}.arg()"),
        });
    }
    for (c, (ident, ty)) in kernel.choices.iter().zip(names.choices.iter().zip(&names.types)) {
        let _ = writeln!(out, "        {ident}: {ty},");
        named.push(format!("{ident}.value().map(|v| ({:?}, v))", c.name));
    }
    let _ = writeln!(out, "    ) -> ::core::result::Result<(), ::tk::LaunchError> {{");
    let named = if named.is_empty() {
        "&[]".to_string()
    } else {
        let _ = writeln!(
            out,
            "        let named: Vec<(&str, &str)> = [{}].into_iter().flatten().collect();",
            named.join(", ")
        );
        "&named".to_string()
    };
    let _ = writeln!(
        out,
        "        self.0.launch(stream, {:?}, &[{}], {named})\n    }}",
        kernel.name,
        args.join(", ")
    );
    Ok(out)
}

/// Returns true if a number has no Rust type.
fn is_bits(kernel: &Kernel, arg: usize) -> bool {
    let first = column(kernel, arg).into_iter().flatten().next();
    matches!(first.as_deref(), Some("f8e4m3" | "f8e5m2" | "f8e4m3fnuz" | "f8e5m2fnuz" | "e2m1" | "e8m0"))
}

fn argument(kernel: &Kernel, generics: &[Generic], arg: usize, p: &Param) -> Result<String, String> {
    let generic = generics.iter().find(|g| g.args.contains(&arg));
    let element = match (generic, column(kernel, arg).into_iter().flatten().next()) {
        (Some(g), _) => g.name.clone(),
        (None, Some(d)) => rust_type(&d)?.to_string(),
        (None, None) => "f32".to_string(),
    };
    let ty = match p.kind {
        ParamKind::View { rank, mutable: false, .. } => format!("::tk::View<'_, {element}, {rank}>"),
        ParamKind::View { rank, mutable: true, .. } => format!("::tk::ViewMut<'_, {element}, {rank}>"),
        ParamKind::Pointer { mutable: false } => format!("::tk::Pointer<'_, {element}>"),
        ParamKind::Pointer { mutable: true } => format!("::tk::PointerMut<'_, {element}>"),
        ParamKind::Number if generic.is_some() => {
            return Err(format!(
                "the number `{}` of kernel `{}` has more than one type",
                p.name, kernel.name
            ));
        }
        ParamKind::Number if element == "::tk::Bool" => "bool".to_string(),
        ParamKind::Number => element,
    };
    Ok(if p.optional || p.default.is_some() { format!("Option<{ty}>") } else { ty })
}

/// `layer_norm` as `LayerNorm`.
fn camel(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
    let upper = |w: &str| {
        let mut chars = w.chars();
        chars.next().map(|c| c.to_uppercase().to_string() + chars.as_str()).unwrap_or_default()
    };
    let out: String = words.map(upper).collect();
    if out.starts_with(|c: char| c.is_ascii_digit()) || out.is_empty() { format!("V{out}") } else { out }
}

/// Rust keywords that are names in the language, and names of the generated function.
const KEYWORDS: &str = "\
    Self abstract as async await become box break const continue crate do dyn else enum extern false final fn \
    for gen if impl in let loop macro match mod move mut named override priv pub ref return self static \
    stream struct super trait true try type typeof unsafe unsized use virtual where while yield new \
    bundle kernels";

fn identifier(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    // `_` alone is no name.
    let plain = if plain.chars().all(|c| c == '_') { format!("n{plain}") } else { plain };
    if KEYWORDS.split(' ').any(|k| k == plain) { format!("{plain}_") } else { plain }
}
