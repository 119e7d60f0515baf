//! Messages about names of Triton and Python. The names are in `foreign_names`.

use tk_ops::Op;
use tk_ops::table::{Effects, ParamKind, Receiver};
use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::Def;
use super::cx::{Cx, Sym};
use super::foreign_names::{
    ACCUMULATED, ARRAYS, AXES, DIFFERENT, DIMENSIONS, ELSEWHERE, FOLDS, HALVES, Here, MEMBERS, NAMES,
    PARAMETERS, TYPES, WORDS,
};
use crate::hir::{CKind, FnId, FnKind, HExpr};
use crate::types::{Elem, Ty};

use Here::{Form, Name};

/// Names under which modules of Triton and of arrays are imported.
const MODULES: [&str; 11] =
    ["tl", "triton", "language", "libdevice", "np", "numpy", "jnp", "cupy", "scipy", "torch", "math"];

fn find(table: &[(&str, Here)], name: &str) -> Option<Here> {
    table.iter().find(|(n, _)| *n == name).map(|(_, h)| *h)
}

fn here(name: &str) -> Option<Here> {
    find(NAMES, name).or_else(|| super::foreign_calls::stems(name).find_map(of_stem))
}

/// The counterpart of `sin` of `__sinf`.
fn of_stem(stem: &str) -> Option<Here> {
    let row = || tk_ops::rows::find(stem, Receiver::None).filter(|r| matches!(r.op, Op::Elementwise(_)));
    find(NAMES, stem).or_else(|| row().map(|r| Name(r.name)))
}

impl Cx<'_> {
    /// Says what is written here for a name that does not exist.
    pub fn foreign_hint(&self, d: Diagnostic, name: &str, span: Span) -> Option<Diagnostic> {
        if MODULES.contains(&name) {
            return Some(d.note("there are no Python modules; builtins are called by name"));
        }
        Some(self.instead(d, here(name)?, span))
    }

    /// The same for a name where a type is wanted.
    pub fn foreign_type_hint(&self, d: Diagnostic, name: &str, span: Span) -> Option<Diagnostic> {
        match find(TYPES, name) {
            Some(ours) => Some(self.instead(d, ours, span)),
            None => self.foreign_hint(d, name, span),
        }
    }

    /// The same for a member of a value.
    pub fn foreign_member_hint(&self, d: Diagnostic, name: &str, span: Span) -> Option<Diagnostic> {
        let form = here(name).filter(|h| matches!(h, Form(_)));
        Some(self.instead(d, find(MEMBERS, name).or(form)?, span))
    }

    fn instead(&self, d: Diagnostic, ours: Here, span: Span) -> Diagnostic {
        match ours {
            Name(ours) => {
                // An operator is written without a space behind it.
                let text = self.p.sources.get(span.file).map_or("", |s| &s.text);
                let rest = text.get(span.end as usize..).unwrap_or("");
                let after = rest.trim_start();
                let space = if ours == "!" { rest.len() - after.len() } else { 0 };
                let end = span.end + space as u32;
                // `not` binds less tightly than what follows its brackets.
                let operand = if ours == "!" { super::foreign_calls::operand_of_not(after) } else { "" };
                if matches!(operand.split_once(')'), Some((_, more)) if !more.is_empty() && operand.starts_with('('))
                {
                    let end = end + operand.len() as u32;
                    return d.fix("write `!(..)`", Span { end, ..span }, format!("!({operand})"));
                }
                d.fix(format!("use `{ours}`"), Span { end, ..span }, ours)
            }
            Form(sentence) => d.note(sentence),
        }
    }

    /// `tl.load` and the like: reports it, and what is written instead.
    pub fn foreign_member(&mut self, base: &ast::Expr, name: &ast::Name) -> Option<HExpr> {
        if let Some(d) = self.along_axis(base, name) {
            return Some(self.fail(d));
        }
        let root = self.module(base)?.text.clone();
        let of_arrays = matches!(root.as_str(), "np" | "numpy" | "jnp" | "cupy" | "torch" | "math");
        let of_c = name.text == "round" && self.text(base.span).ends_with("libdevice");
        let ours = if of_c { Some(Form(HALVES)) } else { find(ARRAYS, &name.text).filter(|_| of_arrays) };
        let ours = ours.or(here(&name.text));
        // `np.minimum.reduce(a)`
        let folded = match (&base.kind, name.text.as_str()) {
            (ExprKind::Member(_, of), "reduce") => find(FOLDS, &of.text),
            (ExprKind::Member(_, of), "accumulate") => find(ACCUMULATED, &of.text),
            (_, _) => None,
        };
        let d = self.foreign(&root, base.span, name, folded.or(ours));
        Some(self.fail(d))
    }

    /// `blockIdx.y`: the function of this axis.
    fn along_axis(&self, base: &ast::Expr, name: &ast::Name) -> Option<Diagnostic> {
        let ExprKind::Path(p) = &base.kind else { return None };
        let [n] = p.segments.as_slice() else { return None };
        let axis = AXES.iter().find(|a| a.0 == name.text)?.1;
        let ours = DIMENSIONS.iter().find(|d| d.0 == n.text)?.1;
        let free = self.lookup(n).is_none() && self.lookup_item(n).is_none() && !self.is_missing(&n.text);
        let d = match n.text == ours {
            true => {
                let message = format!("`{ours}` is a function of an axis");
                Diagnostic::error(codes::NOT_A_VALUE, base.span, message, "call it")
            }
            false => {
                let message = format!("cannot find `{}`", n.text);
                Diagnostic::error(codes::UNKNOWN_NAME, base.span, message, "unknown name")
            }
        };
        let text = format!("{ours}({axis})");
        free.then(|| d.fix(format!("use `{text}`"), base.span.to(name.span), text))
    }

    /// `tl.inline_asm_elementwise(..)`, `np.zeros((4, 60))`, and `torch.randn(4, 60)` in a test, where random tiles have a shape, an element type and a
    /// seed. Without the module that would be a random number of a kernel.
    pub fn foreign_made(
        &self,
        base: &ast::Expr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<Diagnostic> {
        let module = self.module(base)?;
        if self.name_here(&name.text) == "inline_asm" {
            return self.assembly_instead(module, base.span, args, span);
        }
        let random = matches!(name.text.as_str(), "randn" | "rand") && self.in_test;
        let made = match name.text.as_str() {
            "zeros" | "ones" => true,
            "empty" => self.in_test,
            _ => random,
        };
        let first = args.first().filter(|a| a.name.is_none() && made)?;
        // Random numbers take each extent as an argument of its own, other functions the element type after the shape.
        let second = args.get(1).filter(|a| a.name.is_none());
        let several = second.is_some_and(|a| random || !self.is_dtype(&a.value));
        let extents = if several { args } else { std::slice::from_ref(first) };
        let extents: Vec<ast::Arg> = extents.iter().filter(|a| a.name.is_none()).cloned().collect();
        let shape = self.as_list(&extents).unwrap_or_else(|| match &first.value.kind {
            ExprKind::Array(_) => self.text(first.value.span),
            _ => format!("[{}]", self.text(first.value.span)),
        });
        let typed = args.iter().find(|a| a.name.as_ref().is_some_and(|n| n.text == "dtype"));
        let dtype = typed.or(second.filter(|_| !several)).and_then(|a| self.dtype_text(&a.value, &Ty::Err));
        let dtype = dtype.unwrap_or("f32".to_string());
        let (ours, takes, fixed) = match name.text.as_str() {
            "randn" => {
                ("randn", "a shape, an element type and a seed", format!("randn({shape}, {dtype}, seed = 1)"))
            }
            "rand" => (
                "uniform",
                "a shape, a range, an element type and a seed",
                format!("uniform({shape}, 0.0, 1.0, {dtype}, seed = 1)"),
            ),
            "ones" => {
                ("full", "a shape, a value and an element type", format!("full({shape}, 1.0, {dtype})"))
            }
            other => (other, "a shape and an element type", format!("{other}({shape}, {dtype})")),
        };
        let message = format!("cannot find `{}`", module.text);
        let d = Diagnostic::error(codes::UNKNOWN_NAME, base.span, message, "unknown name");
        let d = d.note(format!("`{ours}` takes {takes}"));
        Some(d.fix(format!("use `{ours}`"), span, fixed))
    }

    /// `float("-inf")`, `len(x)`, `ones([4], f32)`: what takes the place of the call.
    pub fn foreign_call(&self, d: Diagnostic, name: &str, args: &[ast::Arg], span: Span) -> Diagnostic {
        if args.iter().any(|a| a.name.is_some()) {
            return d;
        }
        let texts: Vec<String> = args.iter().map(|a| self.text(a.value.span)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let fixed = match (name, texts.as_slice()) {
            ("float", [one]) => {
                let number = one.trim_matches(['"', '\'']);
                ["inf", "-inf", "nan"].contains(&number).then(|| number.to_string())
            }
            ("len", [one]) => return self.length(d, one, span),
            ("ones", [shape, dtype]) => Some(format!("full({shape}, 1.0, {dtype})")),
            _ => None,
        };
        // `int(x)`
        let cast = match (find(TYPES, name), texts.as_slice()) {
            (Some(Name(to)), [one]) if !one.starts_with(['"', '\'']) => Some(if self.is_postfix(one) {
                format!("({one} as {to})")
            } else {
                format!("(({one}) as {to})")
            }),
            _ => None,
        };
        match fixed.or(cast) {
            Some(text) => d.write_instead(span, text),
            None => d,
        }
    }

    /// What the name of a parameter of another language is here, if one of these parameters is meant.
    pub fn foreign_parameter<'n>(name: &str, ours: &[&'n str]) -> Option<&'n str> {
        let known = PARAMETERS.iter().find(|p| p.0 == name)?;
        ours.iter().copied().find(|p| *p == known.1)
    }

    /// The word that a text of another language stands for as an argument: `"relaxed"`, `"evict_last"`, `".cg"`.
    pub fn foreign_word(e: &ast::Expr) -> Option<&str> {
        let ExprKind::Str(text) = &e.kind else { return None };
        let text = text.strip_prefix("evict_").unwrap_or(text);
        let found = WORDS.iter().find(|w| w.0 == text).map_or(text, |w| w.1);
        let words = tk_ops::rows::rows().flat_map(|r| r.params).filter_map(|p| match p.kind {
            ParamKind::Word(words) => Some(words),
            _other => None,
        });
        words.flatten().copied().find(|w| *w == found)
    }

    /// The sentence about a decorator of Python that was written as an attribute.
    pub(super) fn decorator_hint(name: &str) -> Option<&'static str> {
        match here(name) {
            Some(Form(sentence)) => Some(sentence),
            Some(Name(_)) | None => None,
        }
    }

    /// Says which operation has a parameter that this one has not, and what takes the place of one that none has.
    pub fn parameter_elsewhere(what: &str, name: &str) -> Option<&'static str> {
        ELSEWHERE.iter().find(|e| e.1 == name && (e.0 == what || e.0.is_empty())).map(|e| e.2)
    }

    /// The same where a type is wanted.
    pub fn foreign_type(&mut self, root: &ast::Name, name: &ast::Name) -> bool {
        let found = self.is_module(root);
        if found {
            let in_brackets = name.text == "constexpr" && self.is_in_brackets(root.span);
            let ours = if in_brackets { Some(Name("i32")) } else { find(TYPES, &name.text) };
            let ours = ours.or(here(&name.text));
            let d = self.foreign(&root.text, root.span, name, ours);
            self.report(d);
        }
        found
    }

    /// Returns true for a place in `[..]`, where parameters are compile-time ones as they are.
    pub(super) fn is_in_brackets(&self, at: Span) -> bool {
        let text = self.p.sources.get(at.file).map_or("", |s| &s.text);
        let mut depth = 0;
        let open = text.get(..at.start as usize).unwrap_or("").chars().rev().find(|c| {
            depth += i32::from(matches!(c, ')' | ']')) - i32::from(matches!(c, '(' | '['));
            depth < 0
        });
        open == Some('[')
    }

    fn foreign(&self, root: &str, module: Span, name: &ast::Name, ours: Option<Here>) -> Diagnostic {
        let whole = module.to(name.span);
        let word = name.text.as_str();
        let known = self.find_row(word).is_some()
            || tk_ops::DType::parse(word).is_some()
            || matches!(word, "inf" | "nan")
            || matches!(self.lookup_item(name), Some(Def::Fn(_)));
        let d =
            Diagnostic::error(codes::UNKNOWN_NAME, module, format!("cannot find `{root}`"), "unknown name");
        match ours {
            Some(ours) => self.instead(d, ours, whole),
            None if known => {
                let title = format!("remove `{}.`", self.text(module));
                let d = d.note(format!("builtins are not in a module: `{word}` is one"));
                let differs = DIFFERENT.iter().find(|x| x.0 == word && matches!(root, "tl" | "triton"));
                let d = differs.iter().fold(d, |d, (_, sentence)| d.note(*sentence));
                d.fix(title, whole, word)
            }
            None => match super::files::of_std(word) {
                Some(file) => {
                    let short = file.rsplit('/').next().unwrap_or(file);
                    let path = super::files::std_path(file);
                    d.note(format!("it is `{short}::{word}`, after `use {path};`"))
                }
                None => d.note(format!("builtins are not in a module, and `{word}` is not a builtin")),
            },
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
    pub(super) fn module<'e>(&self, base: &'e ast::Expr) -> Option<&'e ast::Name> {
        match &base.kind {
            ExprKind::Member(inner, _) => self.module(inner),
            ExprKind::Path(p) => p.segments.first().filter(|n| p.segments.len() == 1 && self.is_module(n)),
            _other => None,
        }
    }

    /// The name here for one of another language, where it has another name alone.
    pub(super) fn name_here<'n>(&self, name: &'n str) -> &'n str {
        match here(name) {
            Some(Name(ours)) => ours,
            Some(Form(_)) | None => name,
        }
    }

    fn is_module(&self, n: &ast::Name) -> bool {
        MODULES.contains(&n.text.as_str())
            && self.lookup(n).is_none()
            && self.lookup_item(n).is_none()
            && !self.is_missing(&n.text)
    }

    /// `x.to(f32)`, `x.sum()`: a cast or a function, which is no method here.
    pub fn foreign_method(
        &mut self,
        base: &HExpr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<HExpr> {
        let receiver = match base.ty {
            Ty::Tile { .. } => Receiver::Tile,
            Ty::View { .. } => Receiver::View,
            Ty::Buffer { .. } => Receiver::Buffer,
            _ => return None,
        };
        if tk_ops::rows::find(&name.text, receiver).is_some() {
            return None;
        }
        if matches!(name.text.as_str(), "to" | "astype") {
            let d = self.cast_instead(base, name, args, span)?;
            return Some(self.fail(d));
        }
        if let ("view", Some(d)) = (name.text.as_str(), self.bits_instead(base, name, args, span)) {
            return Some(self.fail(d));
        }
        let of_view = tk_ops::rows::find(&name.text, Receiver::View);
        let d = match of_view.filter(|row| receiver == Receiver::Buffer && row.effects != Effects::Pure) {
            Some(row) => self.buffer_instead(row, base, name),
            None => self.function_instead(base, name, args, span)?,
        };
        self.check_rest(args);
        Some(self.fail(d))
    }

    /// What is meant by `x.view(np.uint32)`.
    fn bits_instead(
        &self,
        base: &HExpr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<Diagnostic> {
        let ([to], Ty::Tile { elem: Elem::D(_), .. }) = (args, &base.ty) else { return None };
        let to = self.dtype_text(&to.value, &base.ty)?;
        let message = "there is no `view`; the same bits as another type are `bitcast(x, u32)`";
        let d = Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, message, "unknown method");
        let text = format!("bitcast({}, {to})", unwrapped(&self.text(base.span)));
        Some(d.fix("use `bitcast`", span, text))
    }

    /// The cast that is meant by `x.to(f32)`, or the change of type alone that is meant with `bitcast = True`.
    fn cast_instead(
        &self,
        base: &HExpr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<Diagnostic> {
        let is_bitcast = |a: &ast::Arg| a.name.as_ref().is_some_and(|n| n.text == "bitcast");
        let (to, bits) = match args {
            [to] => (to, false),
            [to, other] => (to, is_bitcast(other) && self.text(other.value.span).to_lowercase() == "true"),
            _ => return None,
        };
        let text = self.text(base.span);
        let to = self.dtype_text(&to.value, &base.ty);
        let written = match (&to, bits) {
            (Some(to), true) => format!("bitcast({}, {to})", unwrapped(&text)),
            (None, true) => "bitcast(x, f16)".to_string(),
            (Some(to), false) => format!("as {to}"),
            (None, false) => "x as f32".to_string(),
        };
        let what = if bits { "the same bits as another type are" } else { "a cast is written" };
        let message = format!("there is no `{}`; {what} `{written}`", name.text);
        let d = Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, message, "unknown method");
        let Some(to) = to.filter(|_| matches!(base.ty, Ty::Tile { .. })) else {
            let pointee = args.first().and_then(|a| self.pointer_text(&a.value));
            return Some(match pointee {
                Some(of) => self.as_addresses(d, base, &of),
                None => self.read_first(d, base),
            });
        };
        let text = if self.is_postfix(&text) { text } else { format!("({text})") };
        let fixed = if bits { written } else { format!("({text} as {to})") };
        let title = if bits { "use `bitcast`".to_string() } else { format!("cast to `{to}`") };
        Some(d.fix(title, span, fixed))
    }

    /// Returns true if an argument names an element type.
    pub fn is_dtype(&self, e: &ast::Expr) -> bool {
        self.dtype_text(e, &Ty::Err).is_some()
    }

    /// The element type that an argument names: `tl.float32`, `"float32"`, `tl.pointer_type(tl.float32)`.
    pub(super) fn dtype_text(&self, e: &ast::Expr, of: &Ty) -> Option<String> {
        if let Some(named) = self.dtype_of_value(e) {
            return Some(named);
        }
        let word = match &e.kind {
            ExprKind::Path(p) => p.segments.last()?.text.as_str(),
            ExprKind::Member(_, name) => name.text.as_str(),
            ExprKind::Str(s) => s,
            ExprKind::Call(f, args) => match (&f.kind, args.as_slice()) {
                (ExprKind::Member(_, name), [inner]) if name.text == "pointer_type" => {
                    let Ty::Tile { elem: Elem::Ptr { mutable, .. }, .. } = of else { return None };
                    let inner = self.dtype_text(&inner.value, of)?;
                    return Some(format!("*{}{inner}", if *mutable { "mut " } else { "" }));
                }
                _ => return None,
            },
            _ => return None,
        };
        let word = match find(TYPES, word).or(here(word)) {
            Some(Name(ours)) => ours,
            Some(Form(_)) | None => word,
        };
        let param = |id| matches!(self.hir().cvar(id).kind, CKind::DType(_));
        let known = tk_ops::DType::parse(word).is_some()
            || matches!(self.meaning(word), Some(Sym::CVar(id)) if param(id));
        known.then(|| word.to_string())
    }

    /// The type that `tl.pointer_type(tl.float16)` names.
    fn pointer_text(&self, e: &ast::Expr) -> Option<String> {
        let ExprKind::Call(f, args) = &e.kind else { return None };
        match (&f.kind, args.as_slice()) {
            (ExprKind::Member(_, name), [inner]) if name.text == "pointer_type" => {
                Some(format!("*{}", self.dtype_text(&inner.value, &Ty::Err)?))
            }
            (_, _) => None,
        }
    }

    /// The element type that a text names, for `dtype = "float32"`.
    pub fn foreign_dtype(&self, d: Diagnostic, e: &ast::Expr) -> Diagnostic {
        match self.dtype_text(e, &Ty::Err) {
            Some(to) if matches!(e.kind, ExprKind::Str(_)) => d.use_instead(e.span, to),
            _ => d,
        }
    }

    /// The arguments of `x.reshape(4, 8)` and `x.reshape((4, 8))` as a list.
    fn as_list(&self, args: &[ast::Arg]) -> Option<String> {
        let items: Vec<String> = list_items(args)?.iter().map(|e| self.text(e.span)).collect();
        Some(format!("[{}]", items.join(", ")))
    }

    /// The arguments of a method after those of a function with these parameters, the first by this name.
    fn arguments(&self, args: &[ast::Arg], names: &[&str], first: Option<&str>) -> Vec<String> {
        let text = |(i, a): (usize, &ast::Arg)| {
            let value = self.text(a.value.span);
            match (&a.name, first) {
                (Some(n), _) => {
                    let word = Self::foreign_parameter(&n.text, names).unwrap_or(&n.text);
                    format!(", {word} = {value}")
                }
                (None, Some(word)) if i == 0 => format!(", {word} = {value}"),
                (None, _) => format!(", {value}"),
            }
        };
        args.iter().enumerate().map(text).collect()
    }

    /// The texts of arguments without names.
    fn plain_texts(&self, args: &[ast::Arg]) -> Vec<String> {
        let plain = args.iter().filter(|a| a.name.is_none());
        plain.map(|a| self.text(a.value.span)).collect()
    }

    fn is_kernel(&self, id: FnId) -> bool {
        self.hir().func(id).kind == FnKind::Kernel
    }

    /// The function that is meant by `x.sum(0)`, with its arguments as they are written here.
    fn function_instead(
        &mut self,
        base: &HExpr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<Diagnostic> {
        if find(MEMBERS, &name.text).is_some() {
            return None;
        }
        // What views memory at a pointer is no name for another shape of a tile.
        let is_pointer = matches!(base.ty, Ty::Tile { elem: Elem::Ptr { .. }, .. });
        let of_tile = matches!(base.ty, Ty::Tile { .. }) && !is_pointer;
        if of_tile && let Some(d) = self.loaded_already(base, name, args, span) {
            return Some(d);
        }
        let ours = match here(&name.text) {
            Some(Name(ours)) if !(is_pointer && self.find_row(&name.text).is_some()) => ours,
            Some(Name(_) | Form(_)) | None => &name.text,
        };
        let first = |p: &ParamKind| matches!(p, ParamKind::Value | ParamKind::Int | ParamKind::Pointer);
        if let Some(d) = self.with_other_arguments(base, name, args, span).filter(|_| of_tile) {
            return Some(d);
        }
        let row = self.find_row(ours).filter(|r| r.params.first().is_some_and(|p| first(&p.kind)));
        let own = matches!(self.lookup_item(name), Some(Def::Fn(id)) if !self.is_kernel(id));
        if row.is_none() && !own {
            return None;
        }
        let names: Vec<&str> = row.iter().flat_map(|r| r.params.iter().map(|p| p.name)).collect();
        let by_name = row.filter(|r| matches!(r.op, Op::Reduce(_))).and(names.get(1));
        let takes_shape = row.is_some_and(|r| r.params.get(1).is_some_and(|p| p.kind == ParamKind::Shape));
        let inferred = list_items(args).filter(|_| takes_shape);
        let inferred = inferred.and_then(|items| self.with_inferred(base, &items));
        let unknown = inferred.as_ref().is_some_and(Option::is_none);
        let list = inferred.flatten().or_else(|| self.as_list(args).filter(|_| takes_shape));
        let texts = match list {
            Some(list) => vec![format!(", {list}")],
            None => self.arguments(args, &names, by_name.copied()),
        };
        // What a view's method takes as a position, a pointer has as an offset.
        let (text, texts, same) = match self.offset_of_method(row, base, args) {
            Some((sum, taken, same)) => (sum, texts.into_iter().skip(taken).collect(), same),
            None => (self.text(base.span), texts, true),
        };
        let read = if matches!(base.ty, Ty::Buffer { .. }) { ".tile()" } else { "" };
        let of = format!("{}{read}", unwrapped(&text));
        let limits = if ours == "clamp" { self.plain_texts(args) } else { vec![] };
        let written = match super::foreign_calls::clipped(&of, &limits) {
            Some(limited) => limited,
            None => format!("{ours}({of}{})", texts.concat()),
        };
        let message = format!("`{}` is a function, not a method", name.text);
        let d = Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, message, "unknown method");
        if matches!(base.ty, Ty::View { .. }) {
            if let Some(row) = row.filter(|r| r.params.first().is_some_and(|p| p.kind == ParamKind::Pointer))
            {
                return Some(self.no_method_of_view(d, row, base, args, span));
            }
            let d = d.note(format!("it is called as `{ours}(x)`, with a tile"));
            let d = if matches!(ours, "ravel" | "reshape") { self.in_a_row(d, base) } else { d };
            return Some(self.read_first(d, base));
        }
        let short = if written.contains('\n') { format!("{ours}(..)") } else { written.clone() };
        let open = match (same, unknown) {
            (true, false) => None,
            (true, true) => Some("an extent is not inferred, it is written"),
            (false, _) => Some("a pointer has no extent, so a mask says which elements there are"),
        };
        if let Some(open) = open {
            return Some(d.note(format!("it is called as `{short}`; {open}")));
        }
        Some(d.fix(format!("call `{short}`"), span, written))
    }
}

/// The entries of `x.reshape(4, 8)`, `x.reshape((4, 8))` and `x.reshape([4, 8])`.
fn list_items(args: &[ast::Arg]) -> Option<Vec<&ast::Expr>> {
    let items: Vec<&ast::Expr> = match args {
        [one] => match &one.value.kind {
            ExprKind::Tuple(items) | ExprKind::Array(items) => items.iter().collect(),
            ExprKind::Int(_) | ExprKind::Unary(..) => vec![&one.value],
            _ => return None,
        },
        many => many.iter().map(|a| &a.value).collect(),
    };
    let plain = !items.is_empty() && args.iter().all(|a| a.name.is_none());
    plain.then_some(items)
}

/// A text without the parentheses around all of it.
pub(super) fn unwrapped(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) else { return text };
    let mut depth = 0i32;
    let balanced = inner.chars().all(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth >= 0
    });
    if balanced && !inner.contains('"') { inner } else { text }
}
