//! The syntax tree: what the user wrote, with holes where it could not be read.
//!
//! The parser always returns a tree. A hole is [`ExprKind::Err`], [`StmtKind::Err`], [`ItemKind::Err`] or an
//! empty name; every hole stands for a syntax error that has been reported. The depth of a tree is limited
//! ([`crate::MAX_DEPTH`]), so walking and dropping it recursively is safe.

use std::sync::Arc;

use crate::span::Span;

/// A name with its place. Empty where it is missing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// The text.
    pub text: String,
    /// Its span.
    pub span: Span,
}

/// `a::b::c`, at least one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The segments.
    pub segments: Vec<Name>,
    /// The whole path.
    pub span: Span,
}

/// A parsed file.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// The items in order.
    pub items: Vec<Item>,
    /// Comments in order of their offset; doc comments are also attached to items and parameters.
    pub comments: Vec<Comment>,
    /// Whether every brace of the text has its partner.
    pub paired: bool,
}

/// A comment, kept beside the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Where, without the line break.
    pub span: Span,
    /// Whether it is a `///` comment.
    pub doc: bool,
    /// The text after the slashes.
    pub text: String,
}

/// `@fast`, `@noinline`, ...
#[derive(Clone, Debug)]
pub struct AstAttr {
    /// The name after `@`.
    pub name: Name,
    /// The arguments, if any.
    pub args: Vec<Arg>,
    /// The whole attribute.
    pub span: Span,
}

/// An item of a file.
#[derive(Clone, Debug)]
pub struct Item {
    /// Attributes before it.
    pub attrs: Vec<AstAttr>,
    /// The doc comment before it: lines joined by line breaks, empty if there is none.
    pub doc: String,
    /// The kind of item.
    pub kind: ItemKind,
    /// The whole item.
    pub span: Span,
}

/// The kinds of item. The large ones are shared, as a checker keeps them beside the tree.
#[derive(Clone, Debug)]
pub enum ItemKind {
    /// `use a::b;`, `use a::b as c;`, `use a::{b, c};`
    Use(Use),
    /// `const N: i32 = 4;`
    Const(Const),
    /// `struct S[N: i32] { x: f32, fn m(self) -> f32 { .. } }`
    Struct(Arc<Struct>),
    /// `fn` or `kernel`.
    Fn(Arc<Fn>),
    /// `export softmax[T = [f16, bf16]];`
    Export(Export),
    /// `test "name" { .. }`
    Test(Arc<Test>),
    /// A hole.
    Err,
}

/// An import. Without a group, `names` is empty and the last segment of `path` is what is imported.
#[derive(Clone, Debug)]
pub struct Use {
    /// The path (of the group, if there is one).
    pub path: Path,
    /// `as name`.
    pub alias: Option<Name>,
    /// `::{a, b}`.
    pub names: Option<Vec<Name>>,
}

/// A compile-time constant; also a statement.
#[derive(Clone, Debug)]
pub struct Const {
    /// Its name.
    pub name: Name,
    /// Its type, if written.
    pub ty: Option<TypeExpr>,
    /// Its value.
    pub value: Expr,
}

/// A struct.
#[derive(Clone, Debug)]
pub struct Struct {
    /// Its name.
    pub name: Name,
    /// Compile-time parameters.
    pub cparams: Vec<CParam>,
    /// Fields.
    pub fields: Vec<Param>,
    /// Methods.
    pub methods: Vec<Item>,
}

/// A function or kernel.
#[derive(Clone, Debug)]
pub struct Fn {
    /// Whether it is a `kernel`.
    pub kernel: bool,
    /// Its name.
    pub name: Name,
    /// Compile-time parameters, `[..]`.
    pub cparams: Vec<CParam>,
    /// Run-time parameters, `(..)`.
    pub params: Vec<Param>,
    /// `-> T`.
    pub ret: Option<TypeExpr>,
    /// Clauses between the signature and the body.
    pub clauses: Vec<Clause>,
    /// The body.
    pub body: Block,
    /// From `fn`/`kernel` to the end of the signature, clauses excluded.
    pub sig_span: Span,
}

impl Fn {
    /// Where another condition is required of its callers, and the text to insert there.
    pub fn with_require(&self, condition: &str) -> (Span, String) {
        let known = self.clauses.iter().find(|c| c.name.text == "require").and_then(|c| c.args.last());
        let last = self.clauses.last().map_or(self.sig_span, |c| c.span);
        match known {
            Some(arg) => (arg.value.span.after(), format!(", {condition}")),
            None => (last.after(), format!(" require({condition})")),
        }
    }
}

/// `export k[T = [f16, bf16], BLOCK = 1024];`
#[derive(Clone, Debug)]
pub struct Export {
    /// The kernel.
    pub path: Path,
    /// Named values, each an expression or a list.
    pub args: Vec<Arg>,
}

/// `test "name" { .. }`
#[derive(Clone, Debug)]
pub struct Test {
    /// The text between the quotes, escapes resolved.
    pub name: String,
    /// The position of the name.
    pub name_span: Span,
    /// The body.
    pub body: Block,
}

/// A compile-time parameter: `BM: i32 = 128`, `T: f16 | bf16`, `S: shape`, `ACT: fn(f32) -> f32 = identity`.
#[derive(Clone, Debug)]
pub struct CParam {
    /// Its name.
    pub name: Name,
    /// Its bound: one type, or the members of a set.
    pub bound: Vec<TypeExpr>,
    /// Its default.
    pub default: Option<Expr>,
    /// The whole parameter.
    pub span: Span,
}

/// A run-time parameter or struct field.
#[derive(Clone, Debug)]
pub struct Param {
    /// Attributes before it.
    pub attrs: Vec<AstAttr>,
    /// Its name; `self` is a name too.
    pub name: Name,
    /// Its type; absent for `self`.
    pub ty: Option<TypeExpr>,
    /// `axis: const i32`: a compile-time parameter in `(..)`.
    pub konst: bool,
    /// Its default.
    pub default: Option<Expr>,
    /// The doc comment before it.
    pub doc: String,
    /// The whole parameter.
    pub span: Span,
}

/// A clause of a kernel. Which names exist is the checker's business.
#[derive(Clone, Debug)]
pub struct Clause {
    /// `grid`, `launch`, `tune`, `require`, `prefer`, `alias`, `scratch`, ...
    pub name: Name,
    /// The arguments.
    pub args: Vec<Arg>,
    /// The rows of `tune`.
    pub rows: Vec<TuneRow>,
    /// The whole clause.
    pub span: Span,
}

/// `{ BM = [64, 128], warps = 8 } if target.has_tma`
#[derive(Clone, Debug)]
pub struct TuneRow {
    /// The entries.
    pub entries: Vec<Arg>,
    /// The condition.
    pub cond: Option<Expr>,
    /// The whole row.
    pub span: Span,
}

/// A type.
#[derive(Clone, Debug)]
pub struct TypeExpr {
    /// The kind of type.
    pub kind: TypeKind,
    /// Its span.
    pub span: Span,
}

/// The kinds of type.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `f32`, `tile[f32, BM, BN]`, `view[T, 2]`, `S[N]`, `T.acc`; `args` is `None` without brackets.
    Path {
        /// The name.
        path: Path,
        /// `.acc`, if written.
        member: Option<Name>,
        /// The contents of the brackets.
        args: Option<Vec<Subscript>>,
    },
    /// `*T`, `*mut T`
    Ptr {
        /// `mut`
        mutable: bool,
        /// The type of the pointee.
        pointee: Box<TypeExpr>,
    },
    /// `mut view[T, 2]`
    Mut(Box<TypeExpr>),
    /// `view[T, 1]?`
    Option(Box<TypeExpr>),
    /// `(A, B)`
    Tuple(Vec<TypeExpr>),
    /// `fn(A) -> B`
    Fn(Vec<TypeExpr>, Box<TypeExpr>),
    /// A hole.
    Err,
}

/// A pattern of `let`, `for` or a lambda.
#[derive(Clone, Debug)]
pub struct Pat {
    /// The kind of pattern.
    pub kind: PatKind,
    /// Its span.
    pub span: Span,
}

/// The kinds of pattern.
#[derive(Clone, Debug)]
pub enum PatKind {
    /// `x`, `mut x`; `_` is the name `_`.
    Name {
        /// `mut`
        mutable: bool,
        /// The name.
        name: Name,
    },
    /// `(a, b)`
    Tuple(Vec<Pat>),
    /// A hole.
    Err,
}

/// `{ .. }`
#[derive(Clone, Debug)]
pub struct Block {
    /// The statements.
    pub stmts: Vec<Stmt>,
    /// The value: the last expression without semicolon.
    pub tail: Option<Box<Expr>>,
    /// With its braces.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Attributes of a loop.
    pub attrs: Vec<AstAttr>,
    /// The kind of statement.
    pub kind: StmtKind,
    /// With its semicolon.
    pub span: Span,
}

/// The kinds of statement.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `let p: T = e;`, `let x;`
    Let {
        /// The pattern.
        pat: Pat,
        /// The type, if written.
        ty: Option<TypeExpr>,
        /// The value, if written.
        init: Option<Expr>,
    },
    /// `const N = 4;`
    Const(Const),
    /// `a = e;` (`op` is `None`), `a += e;`
    Assign {
        /// The place that is assigned.
        place: Expr,
        /// The operator of a compound assignment.
        op: Option<BinOp>,
        /// The value.
        value: Expr,
    },
    /// `e;`
    Expr(Expr),
    /// `for p in e { .. }`
    For {
        /// The pattern.
        pat: Pat,
        /// The range or list to loop over.
        iter: Expr,
        /// The body.
        body: Block,
    },
    /// `while e { .. }`
    While {
        /// The condition.
        cond: Expr,
        /// The body.
        body: Block,
    },
    /// `return e;`
    Return(Option<Expr>),
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `assert_error "E0304" { .. }`
    AssertError {
        /// The code.
        code: String,
        /// The position of the code.
        code_span: Span,
        /// The body.
        body: Block,
    },
    /// A hole.
    Err,
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The kind of expression.
    pub kind: ExprKind,
    /// Its span, including parentheses around it.
    pub span: Span,
}

/// The kinds of expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// `a`, `a::b`
    Path(Path),
    /// An integer; `None` when it does not fit 128 bits (reported).
    Int(Option<u128>),
    /// A float literal as written, without underscores.
    Float(String),
    /// A string, escapes resolved.
    Str(String),
    /// `true`, `false`
    Bool(bool),
    /// `None`
    None,
    /// `(a, b)`, `()`
    Tuple(Vec<Expr>),
    /// `[a, b]`
    Array(Vec<Expr>),
    /// `-a`, `!a`
    Unary(UnOp, Box<Expr>),
    /// `a + b`
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// `a as T`
    Cast(Box<Expr>, Box<TypeExpr>),
    /// `a[i, j]`
    Index(Box<Expr>, Vec<Subscript>),
    /// `f(a, b = c)`
    Call(Box<Expr>, Vec<Arg>),
    /// `a.b`; the name is empty where it is missing.
    Member(Box<Expr>, Name),
    /// `if c { .. } else { .. }`; the third is a block or another `if`.
    If(Box<Expr>, Box<Block>, Option<Box<Expr>>),
    /// `if let v = e { .. } else { .. }`
    IfLet(Name, Box<Expr>, Box<Block>, Option<Box<Expr>>),
    /// `{ .. }`
    Block(Box<Block>),
    /// `|a, b| e`
    Lambda(Vec<(Pat, Option<TypeExpr>)>, Box<Expr>),
    /// A type as a compile-time value that is no path: `*mut f32`, `fn(f32) -> f32`.
    Type(Box<TypeExpr>),
    /// `return e` as the last thing of a block.
    Return(Option<Box<Expr>>),
    /// A hole.
    Err,
}

/// The contents of brackets after a value or a type.
#[derive(Clone, Debug)]
pub enum Subscript {
    /// `e`
    Expr(Expr),
    /// `a:b`, both optional.
    Slice(Option<Expr>, Option<Expr>, Span),
    /// `name = e`
    Named(Name, Expr),
}

/// An argument: `e` or `name = e`.
#[derive(Clone, Debug)]
pub struct Arg {
    /// The name, if written.
    pub name: Option<Name>,
    /// The value.
    pub value: Expr,
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnOp {
    /// `-`
    Neg,
    /// `!`
    Not,
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the operators")]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    And,
    Or,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl BinOp {
    /// The operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::Div => "/",
            BinOp::Rem => "%",
            BinOp::BitAnd => "&",
            BinOp::BitOr => "|",
            BinOp::BitXor => "^",
            BinOp::Shl => "<<",
            BinOp::Shr => ">>",
            BinOp::And => "&&",
            BinOp::Or => "||",
            BinOp::Eq => "==",
            BinOp::Ne => "!=",
            BinOp::Lt => "<",
            BinOp::Le => "<=",
            BinOp::Gt => ">",
            BinOp::Ge => ">=",
        }
    }
}
