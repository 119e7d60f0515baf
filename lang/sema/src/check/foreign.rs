//! Names of Triton and Python: the counterpart of each here, and the messages about them.

use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::Cx;
use crate::hir::HExpr;
use crate::types::Ty;

/// The counterpart of a name of another language.
#[derive(Clone, Copy)]
enum Here {
    /// This name, for the same thing.
    Name(&'static str),
    /// Something that has another form: one sentence.
    Form(&'static str),
}

use Here::{Form, Name};

/// Names of parameters in Triton's language, NumPy and PyTorch, and here.
const PARAMETERS: &[(&str, &str)] = &[
    ("keep_dims", "keep"),
    ("keepdims", "keep"),
    ("keepdim", "keep"),
    ("dim", "axis"),
    ("input_precision", "precision"),
    ("eviction_policy", "evict"),
    ("cache_modifier", "cache"),
    ("sem", "order"),
];

/// Names of Triton's language after `tl.`, and of Python. A name that is the same here is not in it.
const NAMES: &[(&str, Here)] = &[
    ("float16", Name("f16")),
    ("bfloat16", Name("bf16")),
    ("float32", Name("f32")),
    ("float64", Name("f64")),
    ("float8e4nv", Name("f8e4m3")),
    ("float8e5", Name("f8e5m2")),
    ("float8e4b8", Name("f8e4m3fnuz")),
    ("float8e5b16", Name("f8e5m2fnuz")),
    ("int1", Name("bool")),
    ("int8", Name("i8")),
    ("int16", Name("i16")),
    ("int32", Name("i32")),
    ("int64", Name("i64")),
    ("uint8", Name("u8")),
    ("uint16", Name("u16")),
    ("uint32", Name("u32")),
    ("uint64", Name("u64")),
    ("next_power_of_2", Name("next_pow2")),
    ("associative_scan", Name("scan")),
    ("inline_asm_elementwise", Name("inline_asm")),
    ("device_assert", Name("assert")),
    ("sqrt_rn", Name("sqrt")),
    ("True", Name("true")),
    ("False", Name("false")),
    ("newaxis", Name("None")),
    ("device_print", Name("print")),
    ("constexpr", Form("compile-time parameters go in brackets: `kernel k[BLOCK: i32](..)`")),
    ("trans", Form("`x.T` transposes a tile, and `permute(x, [..])` reorders its dimensions")),
    ("expand_dims", Form("`x[:, None]` adds a dimension, and so does `expand(x, axis)`")),
    ("cast", Form("a cast is written `x as f32`")),
    ("fdiv", Form("a division is written `a / b`")),
    ("div_rn", Form("a division is written `a / b`")),
    ("make_block_ptr", Form("a kernel takes views: `x: view[f32, 2]` and `x.load([row, column], [BM, BN])`")),
    ("advance", Form("a view is loaded at any position: `x.load([row, column], [BM, BN])`")),
    ("squeeze", Form("`x[:, 0]` removes a dimension of one element, and so does `reshape(x, [..])`")),
    ("unsqueeze", Form("`x[:, None]` adds a dimension, and so does `expand(x, axis)`")),
    (
        "make_tensor_descriptor",
        Form("a kernel takes views: `x: view[f32, 2]` and `x.load([row, column], [BM, BN])`"),
    ),
    ("swizzle2d", Form("`use std::grid;` orders programs in groups")),
    ("debug_barrier", Form("the compiler inserts barriers")),
    (
        "tensor",
        Form("a tile is written `tile[f32, BM, BN]`, and memory is a `view[f32, 2]` or a pointer `*f32`"),
    ),
    ("len", Form("extents are `x.shape[0]`")),
    ("float", Form("a cast is written `x as f32`; infinity is `inf`")),
    ("int", Form("a cast is written `x as i32`")),
    ("lambda", Form("a lambda is written `|a, b| a + b`")),
];

/// Names under which Triton's modules are imported.
const MODULES: [&str; 6] = ["tl", "triton", "language", "libdevice", "np", "torch"];

fn here(name: &str) -> Option<Here> {
    NAMES.iter().find(|(n, _)| *n == name).map(|(_, h)| *h)
}

impl Cx<'_> {
    /// Says what is written here for a name that does not exist.
    pub fn foreign_hint(&self, d: Diagnostic, name: &str, span: Span) -> Option<Diagnostic> {
        if MODULES.contains(&name) {
            return Some(d.note("there are no Python modules; builtins are called by name"));
        }
        Some(match here(name)? {
            Name(ours) => d.fix(format!("use `{ours}`"), span, ours),
            Form(sentence) => d.note(sentence),
        })
    }

    /// `tl.load` and the like: reports it, and what is written instead.
    pub fn foreign_member(&mut self, base: &ast::Expr, name: &ast::Name) -> Option<HExpr> {
        let root = self.module(base)?.text.clone();
        let d = self.foreign(&root, base.span, name);
        Some(self.fail(d))
    }

    /// What the name of a parameter of another language is here, if one of these parameters is meant.
    pub fn foreign_parameter<'n>(name: &str, ours: &[&'n str]) -> Option<&'n str> {
        let known = PARAMETERS.iter().find(|p| p.0 == name)?;
        ours.iter().copied().find(|p| *p == known.1)
    }

    /// The same where a type is wanted.
    pub fn foreign_type(&mut self, root: &ast::Name, name: &ast::Name) -> bool {
        let found = self.is_module(root);
        if found {
            let d = self.foreign(&root.text, root.span, name);
            self.report(d);
        }
        found
    }

    fn foreign(&self, root: &str, module: Span, name: &ast::Name) -> Diagnostic {
        let whole = module.to(name.span);
        let word = name.text.as_str();
        let known = self.find_row(word).is_some() || tk_ops::DType::parse(word).is_some();
        let library = ["gelu", "silu", "relu", "sigmoid"].contains(&word);
        let d =
            Diagnostic::error(codes::UNKNOWN_NAME, module, format!("cannot find `{root}`"), "unknown name");
        match here(word) {
            Some(Name(ours)) => d.fix(format!("use `{ours}`"), whole, ours),
            Some(Form(sentence)) => d.note(sentence),
            None if known => {
                let title = format!("remove `{}.`", self.text(module));
                d.note(format!("builtins are not in a module: `{word}` is one")).fix(title, whole, word)
            }
            None if library => d.note(format!("it is `math::{word}`, after `use std::math;`")),
            None => d.note(format!("builtins are not in a module, and `{word}` is not a builtin")),
        }
    }

    /// NumPy's name for `None` among indices.
    pub fn is_newaxis(&self, e: &ast::Expr) -> bool {
        let name = match &e.kind {
            ExprKind::Path(p) => p.segments.as_slice(),
            ExprKind::Member(base, name) if self.module(base).is_some() => std::slice::from_ref(name),
            _other => &[],
        };
        matches!(name, [n] if n.text == "newaxis" && self.lookup(n).is_none())
    }

    /// The first name of `tl` or `tl.math`, if nothing here has that name.
    fn module<'e>(&self, base: &'e ast::Expr) -> Option<&'e ast::Name> {
        match &base.kind {
            ExprKind::Member(inner, _) => self.module(inner),
            ExprKind::Path(p) => p.segments.first().filter(|n| p.segments.len() == 1 && self.is_module(n)),
            _other => None,
        }
    }

    fn is_module(&self, n: &ast::Name) -> bool {
        MODULES.contains(&n.text.as_str())
            && self.lookup(n).is_none()
            && self.lookup_item(n).is_none()
            && !self.is_missing(&n.text)
    }

    /// `x.to(f32)` is a cast.
    pub fn foreign_cast(
        &mut self,
        base: &HExpr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<HExpr> {
        let [arg] = args else { return None };
        if name.text != "to" || !matches!(base.ty, Ty::Tile { .. }) {
            return None;
        }
        let to = self.text(arg.value.span);
        let word = to.rsplit('.').next().unwrap_or("");
        let to = match here(word) {
            Some(Name(ours)) => ours,
            Some(Form(_)) | None => word,
        };
        let message = format!("there is no `to`; a cast is written `as {to}`");
        let mut d = Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, message, "unknown method");
        if tk_ops::DType::parse(to).is_some() {
            let text = self.text(base.span);
            let text = if self.is_postfix(&text) { text } else { format!("({text})") };
            d = d.fix(format!("cast to `{to}`"), span, format!("({text} as {to})"));
        }
        Some(self.fail(d))
    }
}
