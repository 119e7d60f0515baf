//! Matching of arguments to parameters by position and by name.

use tk_syntax::ast;
use tk_syntax::{Code, Diagnostic, Span, codes};

use super::cx::Cx;
use super::names::closest;
use crate::poly::Poly;
use crate::types::Ty;

/// The callee and its parameters, for messages.
pub(crate) struct Params<'s> {
    /// "`exp`", "kernel `add`".
    pub what: String,
    /// Names in order.
    pub names: Vec<&'s str>,
    /// Whether each may be left out.
    pub optional: Vec<bool>,
    /// Whether the last one takes all remaining arguments.
    pub rest: bool,
    /// The number of arguments that may be given without a name.
    pub positional: usize,
    /// The place of its declaration.
    pub declared: Option<Span>,
    /// Whether this is the launch of a kernel, whose mistakes have codes of their own.
    pub launch: bool,
}

impl Params<'_> {
    fn name_code(&self) -> Code {
        if self.launch { codes::LAUNCH_ARGS } else { codes::ARGUMENT_NAME }
    }
}

impl Cx<'_> {
    /// Arguments by parameter; with `rest`, those after the last parameter are returned apart. Reports wrong counts,
    /// unknown and repeated names, and gives `None` then.
    pub fn match_args<'e>(
        &mut self,
        ps: &Params,
        args: &'e [ast::Arg],
        call: Span,
    ) -> Option<(Vec<Option<&'e ast::Expr>>, Vec<&'e ast::Expr>)> {
        let mut slots: Vec<Option<&ast::Expr>> = vec![None; ps.names.len()];
        let fixed = ps.names.len() - usize::from(ps.rest);
        let (mut rest, mut next, mut ok, mut extra) = (vec![], 0usize, true, 0usize);
        let mut named: Option<Span> = None;
        let mut unnamed: Vec<&ast::Expr> = vec![];
        for a in args {
            if let (None, Some(before)) = (&a.name, named) {
                // Which parameter it would be for is not clear: `f(a = 1, 2)` has no second argument.
                ok = false;
                self.unnamed_behind(ps, before, &a.value);
                continue;
            }
            named = a.name.as_ref().map(|n| n.span).or(named);
            match &a.name {
                None if ps.rest && next >= ps.positional => rest.push(&a.value),
                None if next >= ps.positional && ps.names.get(next).is_some() => {
                    ok = false;
                    unnamed.push(&a.value);
                    next += 1;
                }
                None if next < fixed => {
                    if let Some(s) = slots.get_mut(next) {
                        *s = Some(&a.value);
                    }
                    next += 1;
                }
                None if ps.rest => rest.push(&a.value),
                None => extra += 1,
                Some(n) => ok &= self.named_arg(ps, n, &a.value, &mut slots),
            }
        }
        self.need_names(ps, &unnamed, (args, call));
        let missing: Vec<&str> = (0..fixed)
            .filter(|i| {
                slots.get(*i).is_some_and(Option::is_none) && !ps.optional.get(*i).copied().unwrap_or(false)
            })
            .filter_map(|i| ps.names.get(i).copied())
            .collect();
        if extra > 0 || (ok && !missing.is_empty()) {
            self.wrong_count(ps, args, &missing, extra, call);
            ok = false;
        }
        ok.then_some((slots, rest))
    }

    /// Reports an argument without a name after one with a name.
    fn unnamed_behind(&mut self, ps: &Params, named: Span, value: &ast::Expr) {
        let message = "positional arguments come before named ones";
        let mut d = Diagnostic::error(ps.name_code(), value.span, message, "positional argument");
        d.declared = ps.declared;
        self.report(d.label(named, "named argument"));
    }

    /// Arguments with names before them.
    pub(super) fn with_names(&self, values: &[&ast::Expr], names: &[&str]) -> String {
        let mut text = String::new();
        let mut done = values.first().map(|e| e.span.start);
        for (value, name) in values.iter().zip(names) {
            let start = done.unwrap_or(value.span.start);
            let between = self.text(Span { start, end: value.span.start, ..value.span });
            text += &format!("{between}{name} = {}", self.text(value.span));
            done = Some(value.span.end);
        }
        text
    }

    /// Returns true for a lambda and for the name of a function.
    fn is_function(&self, e: &ast::Expr) -> bool {
        match &e.kind {
            ast::ExprKind::Lambda(..) => true,
            ast::ExprKind::Path(p) => match p.segments.as_slice() {
                [n] => self.can_be_called(&n.text),
                _path => false,
            },
            _other => false,
        }
    }

    /// Reports arguments that are only given by name, with all their names. One that means nothing has its own message.
    fn need_names(&mut self, ps: &Params, values: &[&ast::Expr], (args, call): (&[ast::Arg], Span)) {
        let values: Vec<&ast::Expr> = values.iter().copied().filter(|e| !self.is_unknown(e)).collect();
        let (Some(first), Some(last)) = (values.first(), values.last()) else { return };
        let names = names_of(ps, &values, |e| self.is_function(e));
        let list: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
        let message = format!("{} takes {} by name", ps.what, list.join(" and "));
        let label = if values.len() == 1 { "positional argument" } else { "positional arguments" };
        let d = Diagnostic::error(ps.name_code(), first.span.to(last.span), message, label);
        // In Triton a number there is an axis.
        let is_fold = matches!(ps.what.as_str(), "`max`" | "`min`");
        let axis = if is_fold { self.has_axis(args) } else { None };
        // `max(a, 0)` may be meant either way.
        let of_two = |d: Diagnostic| match ps.what.as_str() {
            "`max`" => self.of_two(d, "maximum", (args, call)),
            "`min`" => self.of_two(d, "minimum", (args, call)),
            _ => d,
        };
        let is_axis = axis == Some(true);
        let fixes = d.fixes.len();
        let d = if is_axis { d } else { of_two(d) };
        if (axis == Some(false) || args.len() > 2) && d.fixes.len() > fixes {
            return self.report(d);
        }
        let is_plain = |e: &&ast::Expr| {
            matches!(e.kind, ast::ExprKind::Int(_) | ast::ExprKind::Unary(..) | ast::ExprKind::Lambda(..))
        };
        let plain = names.contains(&"combine") || values.iter().any(is_plain);
        if values.len() != names.len() || !plain {
            return self.report(d);
        }
        let title = format!("name {} {}", if values.len() == 1 { "it" } else { "them" }, list.join(" and "));
        let d = d.fix(title, first.span.to(last.span), self.with_names(&values, &names));
        let d = if is_axis { of_two(d) } else { d };
        self.report(d);
    }

    /// Returns true for a name that nothing has.
    pub(super) fn is_unknown(&self, e: &ast::Expr) -> bool {
        let ast::ExprKind::Path(p) = &e.kind else { return false };
        let [name] = p.segments.as_slice() else { return false };
        self.lookup(name).is_none()
            && self.lookup_item(name).is_none()
            && self.find_row(&name.text).is_none()
            && !self.is_dtype(e)
            && !self.is_word(e)
    }

    /// Says which function takes two values, where a reduction is called with them.
    fn of_two(&self, d: Diagnostic, name: &str, (args, call): (&[ast::Arg], Span)) -> Diagnostic {
        let d = d.note(format!("the elementwise function is `{name}(a, b)`"));
        let text = self.text(call);
        if let [a, b, c] = args
            && args.iter().all(|a| a.name.is_none() && !matches!(a.value.kind, ast::ExprKind::Bool(_)))
        {
            let [a, b, c] = [a, b, c].map(|a| self.text(a.value.span));
            let text = format!("{name}({name}({a}, {b}), {c})");
            return d.fix(format!("write `{text}`"), call, text);
        }
        match text.find('(').filter(|_| args.len() == 2) {
            Some(end) => {
                let word = Span { end: call.start + end as u32, ..call };
                d.use_instead(word, name)
            }
            None => d,
        }
    }

    fn rank_of(&self, x: crate::hir::LocalId) -> usize {
        match &self.local(x).ty {
            Ty::Tile { shape, .. } => shape.dims().map_or(0, <[Poly]>::len),
            _ => 0,
        }
    }

    fn named_arg<'e>(
        &mut self,
        ps: &Params,
        n: &ast::Name,
        value: &'e ast::Expr,
        slots: &mut [Option<&'e ast::Expr>],
    ) -> bool {
        let Some(i) = ps.names.iter().position(|p| *p == n.text) else {
            let mut d = Diagnostic::error(
                ps.name_code(),
                n.span,
                format!("{} has no parameter `{}`", ps.what, n.text),
                "unknown parameter",
            );
            d.declared = ps.declared;
            // What is given already is not meant once more.
            let is_free = |i: &usize| slots.get(*i).is_some_and(Option::is_none);
            let names: Vec<&str> =
                ps.names.iter().enumerate().filter(|(i, _)| is_free(i)).map(|(_, name)| *name).collect();
            let close = || closest(&n.text, names.iter().copied());
            let option = if ps.launch { Cx::launch_option(&n.text) } else { None };
            if let Some(sentence) = Cx::parameter_elsewhere(&ps.what, &n.text) {
                d = d.note(sentence);
            } else if let Some(sentence) = option {
                d = d.note(sentence);
            } else if let Some((s, word)) =
                Cx::foreign_parameter(&n.text, &names).zip(Cx::foreign_word(value))
            {
                let whole = n.span.to(value.span);
                d = d.fix(format!("use `{s} = {word}`"), whole, format!("{s} = {word}"));
            } else if let Some(s) = Cx::foreign_parameter(&n.text, &names).or_else(close) {
                d = d.use_instead(n.span, s);
            } else if !ps.names.is_empty() {
                d = d.note(format!("its parameters are {}", list(&ps.names)));
            }
            self.report(d);
            return false;
        };
        match slots.get_mut(i) {
            Some(s @ None) => {
                *s = Some(value);
                true
            }
            Some(Some(before)) => {
                let d = Diagnostic::error(
                    ps.name_code(),
                    n.span,
                    format!("`{}` is given twice", n.text),
                    "second value",
                )
                .label(before.span, "first given here");
                self.report(d);
                false
            }
            None => false,
        }
    }

    fn wrong_count(&mut self, ps: &Params, args: &[ast::Arg], missing: &[&str], extra: usize, call: Span) {
        let needed = ps.optional.iter().filter(|o| !**o).count()
            - usize::from(ps.rest && ps.optional.last() == Some(&false));
        let most = ps.names.len();
        let count =
            if needed == most || ps.rest { format!("{needed}") } else { format!("{needed} to {most}") };
        let noun = if count == "1" { "argument" } else { "arguments" };
        let label =
            if extra > 0 { format!("{extra} too many") } else { format!("{} missing", list(missing)) };
        let given = args.len();
        let given = if given == 1 { "1 is given".to_string() } else { format!("{given} are given") };
        let mut d = Diagnostic::error(
            if ps.launch { codes::LAUNCH_ARGS } else { codes::ARGUMENT_COUNT },
            call,
            format!("{} takes {count} {noun}, but {given}", ps.what),
            label,
        );
        if let Some(s) = ps.declared {
            d = d.label(s, "declared here");
        } else {
            d = d.note(format!("its parameters are {}", list(&ps.names)));
        }
        if ps.what == "`randint`" {
            d = d.note("random integers from `low` up to `high` are `uniform([4], low, high, i32, seed = 1)` in a test");
        }
        let text = self.text(call);
        // Behind the last argument and a comma that is there already.
        let inside = text.strip_suffix(')').map(str::trim_end);
        let at = call.start + inside.map_or(0, str::len) as u32;
        let end = Span { start: at, end: at, ..call };
        let comma = if inside.is_some_and(|t| t.ends_with(',')) { " " } else { ", " };
        d = match (missing, inside, ps.what.as_str()) {
            (["dtype"], Some(_), "`full`")
                if let [value, shape] = args
                    && matches!(shape.value.kind, ast::ExprKind::Array(_)) =>
            {
                let [value, shape] = [value, shape].map(|a| self.text(a.value.span));
                let text = format!("full({shape}, {value}, f32)");
                d.fix(format!("write `{text}`"), call, text)
            }
            (["dtype"], Some(inside), _) if extra == 0 => {
                let argument = if inside.contains(" = ") { "dtype = f32" } else { "f32" };
                d.fix("give the element type", end, format!("{comma}{argument}"))
            }
            (["axis"], Some(inside), _) if inside.ends_with('(') && self.unpacked_names(call).len() > 1 => {
                let axes = (0..self.unpacked_names(call).len()).map(|n| format!("{inside}{n})"));
                let each = format!("({})", axes.collect::<Vec<_>>().join(", "));
                d.fix("ask for each axis", call, each)
            }
            (["axis"], Some(inside), _) if extra == 0 => {
                let rank = args.first().and_then(|x| self.variable(&x.value)).map(|x| self.rank_of(x));
                if let Some(rank @ 2..) = rank {
                    let d = d.note(format!("its axes are numbered from 0, and the last is {}", rank - 1));
                    return self.report(d);
                }
                let argument =
                    if inside.ends_with('(') { "0".to_string() } else { format!("{comma}axis = 0") };
                d.fix("give the axis", end, argument)
            }
            (_, _, "`maximum`" | "`minimum`") if extra > 0 => {
                let name = ps.what.trim_matches('`');
                d.note(format!("of three it is `{name}({name}(a, b), c)`"))
            }
            (_, _, _) => d,
        };
        self.report(d);
    }
}

impl Cx<'_> {
    /// The names of `let (i, j) =` before a value.
    pub(super) fn unpacked_names(&self, value: Span) -> Vec<&str> {
        let text = self.p.sources.get(value.file).and_then(|s| s.text.get(..value.start as usize));
        let names = text.and_then(|t| t.trim_end().strip_suffix('=')?.trim_end().strip_suffix(')'));
        let names = names.and_then(|t| t.rsplit_once("let (")).map(|p| p.1);
        let names = names.filter(|n| !n.contains([';', '(', '\n'])).map(|n| n.split(',').map(str::trim));
        names.map_or(vec![], Iterator::collect)
    }
}

/// The names of arguments that have none: a function is what combines, the others follow each other.
fn names_of<'s>(
    ps: &Params<'s>,
    values: &[&ast::Expr],
    is_function: impl Fn(&ast::Expr) -> bool,
) -> Vec<&'s str> {
    let combine = ps.names.iter().find(|n| **n == "combine" && values.iter().any(|e| is_function(e)));
    let mut others = ps.names.iter().skip(ps.positional).filter(|n| Some(*n) != combine);
    values
        .iter()
        .filter_map(|e| combine.filter(|_| is_function(e)).or_else(|| others.next()))
        .copied()
        .collect()
}

fn list(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}
