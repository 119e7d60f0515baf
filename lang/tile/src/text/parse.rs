//! Reading IR text.
//!
//! Accepts any text. Guarantees an answer in time linear in its length, without a panic: a module whose ids are
//! consistent (not yet verified), or the first mistake with its place.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use tk_ops::scalar::Scalar;
use tk_ops::{DType, Op};

use crate::attr::{Attr, Attrs, NAMES};
use crate::ir::{BlockId, ElemType, Func, FuncId, FuncKind, Id, Inst, Loc, Module, Type, TypeId, ValueId};
use crate::target_op::Dialect;
use crate::text::lex::{IrToken, IrTokenKind, Lexer};
use crate::verify::MAX_NESTING;

/// Why a text is not IR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// A description of the mistake.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

type Parsed<T> = Result<T, ParseError>;

/// Reads a module.
pub fn parse(text: &str) -> Parsed<Module> {
    let mut parser = Parser::new(text, None);
    parser.funcs()?;
    Ok(parser.module)
}

/// Names after the types of values, as in `v1 = load v0 : tile[f32, 64] @l0`.
pub type Marks = BTreeMap<(FuncId, ValueId), String>;

/// Reads a module of a later stage, in which a name may follow the type of each value, and which has operations of a code
/// generator.
///
/// # Errors
/// The first mistake with its place.
pub fn parse_marked(text: &str, dialect: &dyn Dialect) -> Parsed<(Module, Marks)> {
    let mut parser = Parser::new(text, Some(dialect));
    parser.funcs()?;
    Ok((parser.module, parser.marks))
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The current token.
    token: IrToken<'a>,
    /// The line of the token before it.
    line: u32,
    ops: BTreeMap<&'static str, Op>,
    module: Module,
    /// The operations of a later stage, in which names may follow types.
    dialect: Option<&'a dyn Dialect>,
    marks: Marks,
}

/// The function that is being read, with its values by number.
struct Scope {
    func: Func,
    /// Values by the number in their name.
    values: HashMap<u32, ValueId>,
}

/// A type with the name after it.
type Typed = (TypeId, Option<String>);

impl<'a> Parser<'a> {
    fn new(text: &'a str, dialect: Option<&'a dyn Dialect>) -> Self {
        let mut lexer = Lexer::new(text);
        let token = lexer.token();
        let ops = Op::all().map(|o| (o.name(), o)).collect();
        let (module, marks) = (Module::default(), Marks::new());
        Parser { lexer, token, line: 0, ops, module, dialect, marks }
    }

    fn funcs(&mut self) -> Parsed<()> {
        while self.token.kind != IrTokenKind::End {
            let func = self.func()?;
            self.module.funcs.push(func);
        }
        Ok(())
    }

    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        let IrToken { line, column, .. } = self.token;
        // A bad token explains itself better than the code that met it.
        let message =
            if let IrTokenKind::Bad(why) = self.token.kind { why.to_string() } else { message.into() };
        Err(ParseError { line, column, message })
    }

    /// Takes the current token.
    fn take(&mut self) -> IrTokenKind<'a> {
        let next = self.lexer.token();
        let token = std::mem::replace(&mut self.token, next);
        self.line = token.line;
        token.kind
    }

    fn at(&self, mark: char) -> bool {
        self.token.kind == IrTokenKind::Mark(mark)
    }

    fn eat(&mut self, mark: char) -> bool {
        let found = self.at(mark);
        if found {
            self.take();
        }
        found
    }

    fn expect(&mut self, mark: char) -> Parsed<()> {
        if self.eat(mark) { Ok(()) } else { self.fail(format!("expected `{mark}`")) }
    }

    fn word(&self) -> Option<&'a str> {
        if let IrTokenKind::Word(w) = self.token.kind { Some(w) } else { None }
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.word() == Some(word);
        if found {
            self.take();
        }
        found
    }

    /// A number that fits `T`.
    fn number<T: std::str::FromStr>(&mut self) -> Parsed<T> {
        let value = if let IrTokenKind::Number(n) = self.token.kind { n.parse().ok() } else { None };
        match value {
            Some(v) => {
                self.take();
                Ok(v)
            }
            None => self.fail("expected an integer in range"),
        }
    }

    /// `item, item, ..` up to and with `close`; the list may be empty.
    fn list<T>(&mut self, close: char, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut out = vec![];
        while !self.eat(close) {
            if !out.is_empty() {
                self.expect(',')?;
            }
            out.push(item(self)?);
        }
        Ok(out)
    }

    /// `item, item, ..`, at least one.
    fn some<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut out = vec![item(self)?];
        while self.eat(',') {
            out.push(item(self)?);
        }
        Ok(out)
    }

    fn func(&mut self) -> Parsed<Func> {
        let kinds = [FuncKind::Kernel, FuncKind::Fn, FuncKind::NoInline, FuncKind::Test];
        let Some(kind) = kinds.into_iter().find(|k| self.word() == Some(k.name())) else {
            return self.fail("expected `kernel`, `fn`, `noinline` or `test`");
        };
        self.take();
        self.expect('@')?;
        let name = match &self.token.kind {
            IrTokenKind::Word(w) => w.to_string(),
            IrTokenKind::Str(s) => s.clone(),
            IrTokenKind::Number(_)
            | IrTokenKind::Mark(_)
            | IrTokenKind::Arrow
            | IrTokenKind::Bad(_)
            | IrTokenKind::End => {
                return self.fail("expected the name of a function");
            }
        };
        self.take();
        let mut scope = Scope { func: Func::new(name, kind), values: HashMap::new() };
        let body = scope.func.body;
        self.expect('(')?;
        self.list(')', |p| p.param(&mut scope, body))?;
        if self.token.kind == IrTokenKind::Arrow {
            self.take();
            scope.func.results = self.some(Self::ty)?;
        }
        while self.word() == Some("alias") {
            self.take();
            self.expect('(')?;
            let x = self.parameter(&scope)?;
            self.expect(',')?;
            let y = self.parameter(&scope)?;
            self.expect(')')?;
            scope.func.alias.push((x, y));
        }
        self.expect('{')?;
        while !self.eat('}') {
            self.inst(&mut scope, body, 0)?;
        }
        Ok(scope.func)
    }

    /// The position of a parameter, by its name.
    fn parameter(&mut self, scope: &Scope) -> Parsed<u32> {
        let params = scope.func.blocks.get(scope.func.body).map_or(&[][..], |b| &b.args);
        let known = self.value_number().and_then(|n| scope.values.get(&n).copied());
        match known.and_then(|v| params.iter().position(|p| *p == v)) {
            Some(n) => {
                self.take();
                Ok(n as u32)
            }
            None => self.fail("expected a parameter like `v0`"),
        }
    }

    /// `v0 "name": type`
    fn param(&mut self, scope: &mut Scope, body: BlockId) -> Parsed<()> {
        let number = self.new_name(scope)?;
        let name = if let IrTokenKind::Str(s) = &self.token.kind { Some(s.clone()) } else { None };
        if name.is_some() {
            self.take();
        }
        self.expect(':')?;
        let (ty, mark) = self.marked_ty()?;
        let v = scope.func.add_arg(body, ty);
        self.mark(v, mark);
        scope.func.param_names.push(name.unwrap_or_default());
        scope.values.insert(number, v);
        Ok(())
    }

    /// `v0: type`
    fn arg(&mut self, scope: &mut Scope, block: BlockId) -> Parsed<()> {
        let number = self.new_name(scope)?;
        self.expect(':')?;
        let (ty, mark) = self.marked_ty()?;
        let v = scope.func.add_arg(block, ty);
        self.mark(v, mark);
        scope.values.insert(number, v);
        Ok(())
    }

    /// The number in a name like `v3`.
    fn value_number(&self) -> Option<u32> {
        digits(self.word()?, "v")
    }

    fn new_name(&mut self, scope: &Scope) -> Parsed<u32> {
        match self.value_number() {
            Some(n) if scope.values.contains_key(&n) => self.fail(format!("`v{n}` is defined twice")),
            Some(n) => {
                self.take();
                Ok(n)
            }
            None => self.fail("expected a value like `v0`"),
        }
    }

    fn use_name(&mut self, scope: &Scope) -> Parsed<ValueId> {
        let Some(n) = self.value_number() else { return self.fail("expected a value like `v0`") };
        match scope.values.get(&n) {
            Some(v) => {
                self.take();
                Ok(*v)
            }
            None => self.fail(format!("`v{n}` is not defined above")),
        }
    }

    fn inst(&mut self, scope: &mut Scope, block: BlockId, depth: usize) -> Parsed<()> {
        let mut results = vec![];
        if self.value_number().is_some() {
            results = self.some(|p| p.new_name(scope))?;
            self.expect('=')?;
        }
        let IrToken { line, column, .. } = self.token;
        let word = self.word().unwrap_or("");
        let own = self.ops.get(word).copied();
        let dialect = self.dialect.filter(|d| own.is_none() && d.has(word));
        let Some(op) = own.or_else(|| dialect.map(|_| Op::Target)) else {
            return self.fail("expected an operation");
        };
        self.take();
        let mut inst =
            Inst { op, operands: vec![], attrs: Attrs::new(), blocks: vec![], results: vec![], loc: None };
        if self.token.line == self.line && self.value_number().is_some() {
            inst.operands = self.some(|p| p.use_name(scope))?;
        }
        let mut open = self.eat('{');
        if open && !self.at_label() {
            inst.attrs = self.attrs(dialect)?;
            open = false;
        }
        if let Some(dialect) = dialect {
            let read = dialect.read(word, std::mem::take(&mut inst.attrs));
            inst.attrs = Attrs::of_target(read.map_err(|message| ParseError { line, column, message })?);
        }
        let typed = if !open && self.eat(':') { self.some(Self::marked_ty)? } else { vec![] };
        let (types, marks): (Vec<TypeId>, Vec<Option<String>>) = typed.into_iter().unzip();
        if types.len() != results.len() {
            return self.fail(format!("{} results, but {} types", results.len(), types.len()));
        }
        if !open && self.eat_word("loc") {
            inst.loc = Some(self.loc()?);
        }
        let id = scope.func.add_inst(block, inst, &types);
        for (i, (number, mark)) in results.into_iter().zip(marks).enumerate() {
            let Some(v) = scope.func.insts[id].results.get(i) else { continue };
            self.mark(*v, mark);
            if scope.values.insert(number, *v).is_some() {
                return self.fail(format!("`v{number}` is defined twice"));
            }
        }
        if open || self.eat('{') {
            let blocks = self.blocks(scope, depth + 1)?;
            scope.func.insts[id].blocks = blocks;
        }
        Ok(())
    }

    /// `(file:start:end)`
    fn loc(&mut self) -> Parsed<Loc> {
        self.expect('(')?;
        let file = self.number()?;
        self.expect(':')?;
        let start = self.number()?;
        self.expect(':')?;
        let end = self.number()?;
        self.expect(')')?;
        Ok(Loc { file, start, end })
    }

    fn at_label(&self) -> bool {
        self.word().is_some_and(|w| digits(w, "block").is_some())
    }

    /// `block1(v0: type): ..`, any number, up to and with the brace.
    fn blocks(&mut self, scope: &mut Scope, depth: usize) -> Parsed<Vec<BlockId>> {
        if depth > MAX_NESTING {
            return self.fail(format!("blocks nest more than {MAX_NESTING} deep"));
        }
        let mut out = vec![];
        while !self.eat('}') {
            if !self.at_label() {
                return self.fail("expected a label like `block1:`");
            }
            self.take();
            let block = scope.func.add_block();
            out.push(block);
            if self.eat('(') {
                self.list(')', |p| p.arg(scope, block))?;
            }
            self.expect(':')?;
            while !self.at('}') && !self.at_label() {
                self.inst(scope, block, depth)?;
            }
        }
        Ok(out)
    }

    /// `name = value, ..`, up to and with the brace.
    fn attrs(&mut self, dialect: Option<&dyn Dialect>) -> Parsed<Attrs> {
        let mut attrs = Attrs::new();
        let find = |w| match dialect {
            Some(dialect) => dialect.field(w),
            None => NAMES.iter().find(|n| **n == w).copied(),
        };
        self.list('}', |p| {
            let rule = dialect.map_or("", Dialect::rule);
            let Some(name) = p.word().and_then(find) else {
                return p.fail(format!("{rule}expected the name of an attribute"));
            };
            if attrs.get(name).is_some() {
                return p.fail(format!("{rule}duplicate attribute `{name}`"));
            }
            p.take();
            p.expect('=')?;
            attrs.set(name, p.attr()?);
            Ok(())
        })?;
        Ok(attrs)
    }

    fn attr(&mut self) -> Parsed<Attr> {
        match &self.token.kind {
            IrTokenKind::Str(s) => {
                let s = s.clone();
                self.take();
                Ok(Attr::Str(s))
            }
            IrTokenKind::Mark('[') => {
                self.take();
                Ok(Attr::Ints(self.list(']', Self::number)?))
            }
            IrTokenKind::Word(w) | IrTokenKind::Number(w) => {
                let w = *w;
                self.plain_attr(w)
            }
            IrTokenKind::Mark(_) | IrTokenKind::Arrow | IrTokenKind::Bad(_) | IrTokenKind::End => {
                self.fail("expected a value")
            }
        }
    }

    /// `4`, `true`, or with a type `4 : i32`, `true : bool`, `-inf : f32`.
    fn plain_attr(&mut self, text: &str) -> Parsed<Attr> {
        let IrToken { line, column, .. } = self.token;
        self.take();
        let fail = |message| Err(ParseError { line, column, message });
        if self.eat(':') {
            let dtype = self.dtype()?;
            return match Scalar::parse(text, dtype) {
                Some(s) => Ok(Attr::Scalar(s)),
                None => fail(format!("`{text}` is not a value of `{dtype}`")),
            };
        }
        match (text, text.parse()) {
            ("true", _) => Ok(Attr::Bool(true)),
            ("false", _) => Ok(Attr::Bool(false)),
            (_, Ok(i)) => Ok(Attr::Int(i)),
            (_, Err(_)) => {
                fail(format!("`{text}` is not an integer; a scalar needs its type, as in `1.5 : f32`"))
            }
        }
    }

    fn dtype(&mut self) -> Parsed<DType> {
        match self.word().and_then(DType::parse) {
            Some(d) => {
                self.take();
                Ok(d)
            }
            None => self.fail("expected an element type"),
        }
    }

    /// `f32`, or `f32 @l0` where that is allowed.
    fn marked_ty(&mut self) -> Parsed<Typed> {
        let ty = self.ty()?;
        if !self.at('@') {
            return Ok((ty, None));
        }
        if self.dialect.is_none() {
            return self.fail("layouts are only allowed in later stages");
        }
        self.take();
        let Some(word) = self.word() else { return self.fail("expected a name like `l0`") };
        self.take();
        Ok((ty, Some(word.to_string())))
    }

    /// Notes the name after the type of a value of the function that is being read.
    fn mark(&mut self, v: ValueId, mark: Option<String>) {
        let func = FuncId::new(self.module.funcs.len());
        self.marks.extend(mark.map(|m| ((func, v), m)));
    }

    fn ty(&mut self) -> Parsed<TypeId> {
        let mutable = self.eat_word("mut");
        let ty = if self.eat_word("view") {
            self.view(mutable)?
        } else if mutable {
            return self.fail("expected `view`");
        } else if self.eat_word("tile") {
            self.expect('[')?;
            let elem = self.elem()?;
            let mut shape = vec![];
            while !self.eat(']') {
                self.expect(',')?;
                shape.push(self.number()?);
            }
            Type::Tile { elem, shape }
        } else {
            Type::Tile { elem: self.elem()?, shape: vec![] }
        };
        Ok(self.module.types.intern(ty))
    }

    /// `[f32, 2]` or `[f32, 2, i64]`
    fn view(&mut self, mutable: bool) -> Parsed<Type> {
        self.expect('[')?;
        let elem = self.elem()?;
        self.expect(',')?;
        let rank = self.number()?;
        let wide = self.eat(',');
        if wide && !self.eat_word("i64") {
            return self.fail("expected `i64`");
        }
        self.expect(']')?;
        Ok(Type::View { elem, rank, mutable, wide })
    }

    /// `f32`, `*f32`, `*mut *f32`
    fn elem(&mut self) -> Parsed<ElemType> {
        let mut stars = vec![];
        while self.eat('*') {
            stars.push(self.eat_word("mut"));
            if stars.len() > MAX_NESTING {
                return self.fail("too many pointers to pointers");
            }
        }
        let mut elem = ElemType::Scalar(self.dtype()?);
        while let Some(mutable) = stars.pop() {
            elem = ElemType::Ptr { pointee: Box::new(elem), mutable };
        }
        Ok(elem)
    }
}

/// The number after `prefix` in a word that is nothing else.
fn digits(word: &str, prefix: &str) -> Option<u32> {
    let digits = word.strip_prefix(prefix)?;
    if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}
