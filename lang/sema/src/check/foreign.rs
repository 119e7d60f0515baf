//! Names of Triton and Python: the counterpart of each here, and the messages about them.

use tk_ops::Op;
use tk_ops::table::{Effects, ParamKind, Receiver};
use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::Def;
use super::cx::{Cx, Sym};
use crate::hir::{CKind, HExpr};
use crate::types::{Elem, Ty};

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
    ("num_warps", "warps"),
    ("num_stages", "stages"),
    ("num_ctas", "ctas"),
    ("maxnreg", "max_regs"),
    ("loop_unroll_factor", "unroll"),
    ("warp_specialize", "specialize"),
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
    ("not", Name("!")),
    ("absolute", Name("abs")),
    ("fabs", Name("abs")),
    ("power", Name("pow")),
    ("clip", Name("clamp")),
    ("matmul", Name("dot")),
    ("amax", Name("max")),
    ("amin", Name("min")),
    ("flatten", Name("ravel")),
    ("empty_like", Name("zeros_like")),
    ("transpose", Form("`x.T` transposes a matrix, and `permute(x, [..])` reorders dimensions")),
    ("swapaxes", Form("`permute(x, [..])` reorders dimensions")),
    ("moveaxis", Form("`permute(x, [..])` reorders dimensions")),
    ("concatenate", Form("`cat(a, b, axis = 0)` joins two tiles")),
    ("stack", Form("`join(a, b)` puts two tiles side by side in a new last dimension")),
    ("mean", Form("a mean is a sum by the number of elements, `sum(x) / (N as f32)`")),
    ("average", Form("a mean is a sum by the number of elements, `sum(x) / (N as f32)`")),
    ("var", Form("with the mean `m`, the variance is `sum((x - m) * (x - m)) / (N as f32)`")),
    ("std", Form("with the mean `m`, the deviation is `sqrt(sum((x - m) * (x - m)) / (N as f32))`")),
    ("norm", Form("a norm is `sqrt(sum(x * x))`")),
    ("ones", Form("`full([N], 1.0, f32)` makes a tile of ones")),
    ("ones_like", Form("`full(x.shape, 1.0, f32)` makes a tile of ones")),
    ("full_like", Form("`full(x.shape, value, f32)` makes a tile of the shape of `x`")),
    ("allclose", Form("`assert_close(a, b)` compares in tests, and `all(a == b)` compares exactly")),
    ("isclose", Form("`assert_close(a, b)` compares in tests; elsewhere compare `abs(a - b)`")),
    ("array_equal", Form("`all(a == b)` compares all elements")),
    ("linspace", Form("`(arange(0, N) as f32) * step` makes steps")),
    ("argsort", Form("`sort(x, values = arange(0, N))` gives the positions too")),
    ("tan", Form("a tangent is `sin(x) / cos(x)`")),
    ("sinh", Form("it is `(exp(x) - exp(-x)) / 2.0`")),
    ("log1p", Form("it is `log(1.0 + x)`")),
    ("expm1", Form("it is `exp(x) - 1.0`")),
    ("arctan", Form("there are no inverse trigonometric functions")),
    ("arcsin", Form("there are no inverse trigonometric functions")),
    ("arccos", Form("there are no inverse trigonometric functions")),
    ("arctan2", Form("there are no inverse trigonometric functions")),
    ("pass", Form("an empty block is `{ }`")),
    ("array", Form(TABLE)),
    ("asarray", Form(TABLE)),
    ("blockIdx", Form("`program_id(0)` is the number of the program")),
    ("gridDim", Form("`num_programs(0)` is the number of programs")),
    ("blockDim", Form("the size of a block is a compile-time parameter, `kernel k[BLOCK: i32 = 256](..)`")),
    (
        "threadIdx",
        Form("a program has no threads to number; `arange(0, BLOCK)` is a tile with a lane for each"),
    ),
    ("__syncthreads", Form("the compiler inserts barriers")),
    ("__syncwarp", Form("the compiler inserts barriers")),
    ("__threadfence", Form("atomics have an order, as in `atomic_store(flag, 1, order = release)`")),
    ("__shfl_sync", Form(LANES)),
    ("__shfl_up_sync", Form(LANES)),
    ("__shfl_down_sync", Form(LANES)),
    ("__shfl_xor_sync", Form(LANES)),
    ("__ballot_sync", Form("`sum(c)` counts the lanes in which `c` is true")),
    ("__any_sync", Form("`any(c)` of a tile of bools")),
    ("__all_sync", Form("`all(c)` of a tile of bools")),
    ("warpSize", Form("warps are the compiler's; `target.warp_size` is the number of their lanes")),
    ("__ldg", Name("load")),
    ("__popc", Name("popcount")),
    ("__clz", Name("clz")),
    ("__umulhi", Name("umulhi")),
    ("fmaxf", Name("maxnum")),
    ("fminf", Name("minnum")),
    ("fmaf", Name("fma")),
    ("expf", Name("exp")),
    ("logf", Name("log")),
    ("sqrtf", Name("sqrt")),
    ("rsqrtf", Name("rsqrt")),
    ("fabsf", Name("abs")),
    ("powf", Name("pow")),
    ("tanhf", Name("tanh")),
    ("__expf", Form("the approximation is `exp(x, fast = true)`")),
    ("__fdividef", Form("`/` under `@fast` is the approximation")),
    ("__float2half", Form("a cast is written `x as f16`")),
    ("__half2float", Form("a cast is written `x as f32`")),
    ("clock64", Form("`tk profile --stamps` measures parts of a kernel; `globaltimer()` is a clock")),
    ("atomicAdd", Name("atomic_add")),
    ("atomicMax", Name("atomic_max")),
    ("atomicMin", Name("atomic_min")),
    ("atomicCAS", Name("atomic_cas")),
    ("atomicExch", Name("atomic_xchg")),
    ("float", Form("a cast is written `x as f32`; infinity is `inf`")),
    ("int", Form("a cast is written `x as i32`")),
    ("lambda", Form("a lambda is written `|a, b| a + b`")),
];

/// Names that mean something else where a type is wanted.
const TYPES: &[(&str, Here)] = &[
    ("int", Name("i32")),
    ("long", Name("i64")),
    ("uint", Name("u32")),
    ("float", Name("f32")),
    ("double", Name("f64")),
    ("half", Name("f16")),
    ("array", Form(ARRAY)),
    ("ndarray", Form(ARRAY)),
    ("Tensor", Form(ARRAY)),
    ("list", Form(ARRAY)),
];

/// Members and methods of arrays, where the function of that name is no answer.
const MEMBERS: &[(&str, Here)] = &[
    ("transpose", Form("`x.T` transposes a matrix, and `x.permute([..])` reorders dimensions")),
    ("t", Form("`x.T` transposes a matrix")),
    ("mT", Form("`x.permute([..])` reorders dimensions")),
    ("size", Form("the extents are `x.shape[0]` and so on; the number of elements is their product")),
    ("numel", Form("the extents are `x.shape[0]` and so on; the number of elements is their product")),
    ("ndim", Form("the rank is part of the type, as in `x: tile[f32, M, N]` and `x: view[f32, 2]`")),
    (
        "dtype",
        Form("the element type is part of the type; a parameter names it, `fn f[T: float](x: tile[T, N])`"),
    ),
    (
        "element_ty",
        Form("the element type is part of the type; a parameter names it, `kernel k[T: float](x: *T)`"),
    ),
    ("item", Form("`x[0]` is an element of a tile, and `sum(x)` of a tile of one element its value")),
    ("half", Form("a cast is written `x as f16`")),
    ("double", Form("a cast is written `x as f64`")),
    ("astype", Form("a cast is written `x as f32`")),
    ("to", Form("a cast is written `x as f32`")),
    ("copy", Form("values do not change, so nothing needs a copy")),
    ("clone", Form("values do not change, so nothing needs a copy")),
    ("contiguous", Form("values do not change, so nothing needs a copy")),
    ("numpy", Form("kernels work on the memory of the device itself")),
    ("cpu", Form("kernels work on the memory of the device itself")),
    ("cuda", Form("kernels work on the memory of the device itself")),
    ("data_ptr", Form("a view has its pointer in `x.ptr`")),
    ("stride", Form("a view has `x.strides[0]` and so on")),
];

/// Parameters that another operation has: the operation, the parameter, and which one has it.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "`load`",
        "mask",
        "a view reads `other` outside of its bounds; `x.gather([positions], mask = m)` takes a mask",
    ),
    (
        "`store`",
        "mask",
        "a view writes nothing outside of its bounds; `y.scatter([positions], value, mask = m)` takes a mask",
    ),
    ("`dot`", "allow_tf32", "`precision = tf32` allows it; the default, `ieee`, keeps all bits"),
    ("`dot`", "out_dtype", "the result has the type of `acc`, as in `dot(a, b, zeros([BM, BN], f32))`"),
];

pub(super) const TABLE: &str =
    "a list is a constant, `const TABLE = [1.0, 2.0];`, and `gather(TABLE, arange(0, N))` makes a tile of it";
const LANES: &str = "`sum`, `max`, `reduce`, `cumsum` and `scan` of a tile exchange between lanes";
const ARRAY: &str =
    "an array in memory is a `view[f32, 1]` (1 is its rank), or a `mut view[f32, 1]` if it is written";

/// Names under which Triton's modules are imported.
const MODULES: [&str; 6] = ["tl", "triton", "language", "libdevice", "np", "torch"];

fn find(table: &[(&str, Here)], name: &str) -> Option<Here> {
    table.iter().find(|(n, _)| *n == name).map(|(_, h)| *h)
}

fn here(name: &str) -> Option<Here> {
    find(NAMES, name)
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
                let space = if ours == "!" { rest.len() - rest.trim_start().len() } else { 0 };
                d.fix(format!("use `{ours}`"), Span { end: span.end + space as u32, ..span }, ours)
            }
            Form(sentence) => d.note(sentence),
        }
    }

    /// `tl.load` and the like: reports it, and what is written instead.
    pub fn foreign_member(&mut self, base: &ast::Expr, name: &ast::Name) -> Option<HExpr> {
        let root = self.module(base)?.text.clone();
        let d = self.foreign(&root, base.span, name, here(&name.text));
        Some(self.fail(d))
    }

    /// `torch.randn(4, 60)` in a test, where random tiles have a shape, an element type and a seed. Without the module it
    /// would be a random number of a kernel.
    pub fn foreign_random(
        &self,
        base: &ast::Expr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<Diagnostic> {
        let module = self.module(base).filter(|_| self.in_test)?;
        let positional: Vec<&ast::Expr> =
            args.iter().filter(|a| a.name.is_none()).map(|a| &a.value).collect();
        let extents: Vec<&ast::Expr> = match positional.as_slice() {
            [one] => match &one.kind {
                ExprKind::Tuple(items) | ExprKind::Array(items) => items.iter().collect(),
                _ => positional,
            },
            _ => positional,
        };
        let extents: Vec<String> = extents.iter().map(|e| self.text(e.span)).collect();
        let shape = format!("[{}]", extents.join(", "));
        let typed = args.iter().find(|a| a.name.as_ref().is_some_and(|n| n.text == "dtype"));
        let dtype = typed.and_then(|a| self.dtype_text(&a.value, &Ty::Err)).unwrap_or("f32".to_string());
        let (ours, fixed) = match name.text.as_str() {
            "randn" => ("randn", format!("randn({shape}, {dtype}, seed = 1)")),
            "rand" => ("uniform", format!("uniform({shape}, 0.0, 1.0, {dtype}, seed = 1)")),
            _ => return None,
        };
        let message = format!("cannot find `{}`", module.text);
        let d = Diagnostic::error(codes::UNKNOWN_NAME, base.span, message, "unknown name");
        let d = d.note(format!("`{ours}` of a test takes a shape, an element type and a seed"));
        Some(d.fix(format!("use `{ours}`"), span, fixed))
    }

    /// `float("-inf")`: the number itself.
    pub fn foreign_number(&self, d: Diagnostic, n: &ast::Name, args: &[ast::Arg], span: Span) -> Diagnostic {
        let [one] = args else { return d };
        let text = self.text(one.value.span);
        let number = text.trim_matches(['"', '\'']);
        if n.text != "float" || !["inf", "-inf", "nan"].contains(&number) {
            return d;
        }
        d.fix(format!("write `{number}`"), span, number)
    }

    /// What the name of a parameter of another language is here, if one of these parameters is meant.
    pub fn foreign_parameter<'n>(name: &str, ours: &[&'n str]) -> Option<&'n str> {
        let known = PARAMETERS.iter().find(|p| p.0 == name)?;
        ours.iter().copied().find(|p| *p == known.1)
    }

    /// Says which operation has a parameter that this one has not.
    pub fn parameter_elsewhere(what: &str, name: &str) -> Option<&'static str> {
        ELSEWHERE.iter().find(|e| e.0 == what && e.1 == name).map(|e| e.2)
    }

    /// The same where a type is wanted.
    pub fn foreign_type(&mut self, root: &ast::Name, name: &ast::Name) -> bool {
        let found = self.is_module(root);
        if found {
            let ours = find(TYPES, &name.text).or(here(&name.text));
            let d = self.foreign(&root.text, root.span, name, ours);
            self.report(d);
        }
        found
    }

    fn foreign(&self, root: &str, module: Span, name: &ast::Name, ours: Option<Here>) -> Diagnostic {
        let whole = module.to(name.span);
        let word = name.text.as_str();
        let known = self.find_row(word).is_some()
            || tk_ops::DType::parse(word).is_some()
            || matches!(self.lookup_item(name), Some(Def::Fn(_)));
        let library = ["gelu", "silu", "relu", "sigmoid"].contains(&word);
        let d =
            Diagnostic::error(codes::UNKNOWN_NAME, module, format!("cannot find `{root}`"), "unknown name");
        match ours {
            Some(ours) => self.instead(d, ours, whole),
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
        let of_view = tk_ops::rows::find(&name.text, Receiver::View);
        let d = match of_view.filter(|row| receiver == Receiver::Buffer && row.effects != Effects::Pure) {
            Some(row) => self.buffer_instead(row, base, name),
            None => self.function_instead(base, name, args, span)?,
        };
        self.check_rest(args);
        Some(self.fail(d))
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
            return Some(self.read_first(d, base));
        };
        let text = if self.is_postfix(&text) { text } else { format!("({text})") };
        let fixed = if bits { written } else { format!("({text} as {to})") };
        let title = if bits { "use `bitcast`".to_string() } else { format!("cast to `{to}`") };
        Some(d.fix(title, span, fixed))
    }

    /// The element type that an argument names: `tl.float32`, `"float32"`, `tl.pointer_type(tl.float32)`.
    fn dtype_text(&self, e: &ast::Expr, of: &Ty) -> Option<String> {
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
        let word = match here(word) {
            Some(Name(ours)) => ours,
            Some(Form(_)) | None => word,
        };
        let param = |id| matches!(self.hir().cvar(id).kind, CKind::DType(_));
        let known = tk_ops::DType::parse(word).is_some()
            || matches!(self.meaning(word), Some(Sym::CVar(id)) if param(id));
        known.then(|| word.to_string())
    }

    /// The element type that a text names, for `dtype = "float32"`.
    pub fn foreign_dtype(&self, d: Diagnostic, e: &ast::Expr) -> Diagnostic {
        match self.dtype_text(e, &Ty::Err) {
            Some(to) if matches!(e.kind, ExprKind::Str(_)) => d.fix(format!("use `{to}`"), e.span, to),
            _ => d,
        }
    }

    /// The arguments of `x.reshape(4, 8)` and `x.reshape((4, 8))` as a list.
    fn as_list(&self, args: &[ast::Arg]) -> Option<String> {
        let items: Vec<&ast::Expr> = match args {
            [one] => match &one.value.kind {
                ExprKind::Tuple(items) => items.iter().collect(),
                ExprKind::Int(_) | ExprKind::Unary(..) => vec![&one.value],
                _ => return None,
            },
            many => many.iter().map(|a| &a.value).collect(),
        };
        if items.is_empty() || args.iter().any(|a| a.name.is_some()) {
            return None;
        }
        let items: Vec<String> = items.iter().map(|e| self.text(e.span)).collect();
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

    /// The function that is meant by `x.sum(0)`, with its arguments as they are written here.
    fn function_instead(
        &self,
        base: &HExpr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<Diagnostic> {
        if find(MEMBERS, &name.text).is_some() {
            return None;
        }
        let ours = match here(&name.text) {
            Some(Name(ours)) => ours,
            Some(Form(_)) | None => &name.text,
        };
        let first = |p: &ParamKind| matches!(p, ParamKind::Value | ParamKind::Int | ParamKind::Pointer);
        let row = self.find_row(ours).filter(|r| r.params.first().is_some_and(|p| first(&p.kind)));
        let own = matches!(self.lookup_item(name), Some(Def::Fn(_)));
        if row.is_none() && !own {
            return None;
        }
        let names: Vec<&str> = row.iter().flat_map(|r| r.params.iter().map(|p| p.name)).collect();
        let by_name = row.filter(|r| matches!(r.op, Op::Reduce(_))).and(names.get(1));
        let takes_shape = row.is_some_and(|r| r.params.get(1).is_some_and(|p| p.kind == ParamKind::Shape));
        let texts = match self.as_list(args).filter(|_| takes_shape) {
            Some(list) => vec![format!(", {list}")],
            None => self.arguments(args, &names, by_name.copied()),
        };
        let text = self.text(base.span);
        let read = if matches!(base.ty, Ty::Buffer { .. }) { ".tile()" } else { "" };
        let written = format!("{ours}({}{read}{})", unwrapped(&text), texts.concat());
        let message = format!("`{}` is a function, not a method", name.text);
        let d = Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, message, "unknown method");
        if matches!(base.ty, Ty::View { .. }) {
            return Some(self.read_first(d.note(format!("it is called as `{ours}(x)`, with a tile")), base));
        }
        let short = if written.contains('\n') { format!("{ours}(..)") } else { written.clone() };
        Some(d.fix(format!("call `{short}`"), span, written))
    }
}

/// A text without the parentheses around all of it.
fn unwrapped(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) else { return text };
    let mut depth = 0i32;
    let balanced = inner.chars().all(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth >= 0
    });
    if balanced && !inner.contains('"') { inner } else { text }
}
