//! The data structure of the tile IR: a [`Module`] of [`Func`]s in typed-id arenas.
//!
//! The IR is in SSA form with structured control flow: an instruction may own blocks (`for`, `while`, `if`, `map`),
//! each a straight list of instructions that ends in a terminator. A value is defined by one instruction or is an
//! argument of one block and is visible to everything after it, blocks inside included. Aggregates do not exist:
//! tuples and structs have been flattened. What else holds is numbered in [`crate::verify`].

use std::collections::BTreeMap;
use std::fmt;

use tk_ops::{DType, Op};

use crate::attr::Attrs;
use crate::target_op::TargetOp;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, concat!($prefix, "{}"), self.0) }
        }
        impl Id for $name {
            fn new(i: usize) -> Self { $name(i as u32) }
            fn index(self) -> usize { self.0 as usize }
        }
    )*};
}

/// A typed index.
pub trait Id: Copy {
    /// From a position.
    fn new(i: usize) -> Self;
    /// To a position.
    fn index(self) -> usize;
}

ids! {
    /// A value.
    ValueId = "v";
    /// An instruction.
    InstId = "inst";
    /// A block.
    BlockId = "block";
    /// An interned type.
    TypeId = "type";
    /// A function of a module.
    FuncId = "func";
}

/// A vector indexed by a typed id. Ids come only from [`Arena::push`] of the same arena.
#[derive(Clone, Debug)]
pub struct Arena<I, T> {
    items: Vec<T>,
    id: std::marker::PhantomData<I>,
}

impl<I, T> Default for Arena<I, T> {
    fn default() -> Self {
        Arena { items: vec![], id: std::marker::PhantomData }
    }
}

impl<I: Id, T> Arena<I, T> {
    /// Adds an item.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::new(self.items.len() - 1)
    }
    /// Their number.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// The item, if the id is in range (text that was parsed may hold any id).
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }
    /// Ids and items in order.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(i, t)| (I::new(i), t))
    }
}

impl<I: Id, T> std::ops::Index<I> for Arena<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> std::ops::IndexMut<I> for Arena<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

/// The type of an element of a tile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElemType {
    /// A scalar.
    Scalar(DType),
    /// A pointer into device memory.
    Ptr {
        /// The type of the pointee.
        pointee: Box<ElemType>,
        /// Whether it may be stored through.
        mutable: bool,
    },
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// Rank 0 (a scalar) to 5; extents are at least 1.
    Tile {
        /// The elements.
        elem: ElemType,
        /// The extents.
        shape: Vec<u32>,
    },
    /// Base pointer, extents and strides.
    View {
        /// The elements.
        elem: ElemType,
        /// 1 to 5.
        rank: u32,
        /// Whether it may be stored through.
        mutable: bool,
        /// Extents and positions are i64 instead of i32.
        wide: bool,
    },
}

impl Type {
    /// The scalar type.
    pub fn scalar(d: DType) -> Type {
        Type::Tile { elem: ElemType::Scalar(d), shape: vec![] }
    }
    /// The tile type of scalars.
    pub fn tile(d: DType, shape: &[u32]) -> Type {
        Type::Tile { elem: ElemType::Scalar(d), shape: shape.to_vec() }
    }
    /// The extents of a tile; `None` for a view.
    pub fn shape(&self) -> Option<&[u32]> {
        match self {
            Type::Tile { shape, .. } => Some(shape),
            Type::View { .. } => None,
        }
    }
    /// The element type.
    pub fn elem(&self) -> &ElemType {
        match self {
            Type::Tile { elem, .. } | Type::View { elem, .. } => elem,
        }
    }
    /// The scalar element type of a tile of scalars.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Type::Tile { elem: ElemType::Scalar(d), .. } => Some(*d),
            Type::Tile { .. } | Type::View { .. } => None,
        }
    }
    /// The number of elements of a tile (1 for a scalar); 0 for a view.
    pub fn count(&self) -> usize {
        self.shape().map_or(0, |s| s.iter().map(|&d| d as usize).product())
    }
}

impl fmt::Display for ElemType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElemType::Scalar(d) => write!(f, "{d}"),
            ElemType::Ptr { pointee, mutable } => {
                write!(f, "*{}{pointee}", if *mutable { "mut " } else { "" })
            }
        }
    }
}

impl fmt::Display for Type {
    /// `f32`, `*mut f32`, `tile[f32, 4, 8]`, `mut view[f32, 2]`, `view[f32, 2, i64]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Tile { elem, shape } if shape.is_empty() => write!(f, "{elem}"),
            Type::Tile { elem, shape } => {
                write!(f, "tile[{elem}")?;
                shape.iter().try_for_each(|d| write!(f, ", {d}"))?;
                f.write_str("]")
            }
            Type::View { elem, rank, mutable, wide } => {
                let (m, w) = (if *mutable { "mut " } else { "" }, if *wide { ", i64" } else { "" });
                write!(f, "{m}view[{elem}, {rank}{w}]")
            }
        }
    }
}

/// Interned types.
#[derive(Clone, Debug, Default)]
pub struct Types {
    arena: Arena<TypeId, Type>,
    ids: BTreeMap<Type, TypeId>,
}

impl Types {
    /// The id of a type.
    pub fn intern(&mut self, ty: Type) -> TypeId {
        if let Some(id) = self.ids.get(&ty) {
            return *id;
        }
        let id = self.arena.push(ty.clone());
        self.ids.insert(ty, id);
        id
    }
    /// The type of an id, if this table issued it.
    pub fn find(&self, id: TypeId) -> Option<&Type> {
        self.arena.get(id)
    }
    /// The type of an id issued by this table.
    pub fn get(&self, id: TypeId) -> &Type {
        &self.arena[id]
    }
}

/// A place in a source file, in bytes; `file` counts in the source map of the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Loc {
    pub file: u32,
    pub start: u32,
    pub end: u32,
}

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Def {
    /// Result number `.1` of an instruction.
    Inst(InstId, u32),
    /// Argument number `.1` of a block.
    Arg(BlockId, u32),
}

/// A value.
#[derive(Clone, Debug)]
pub struct Value {
    /// Its type.
    pub ty: TypeId,
    /// Its definition.
    pub def: Def,
}

/// An instruction; uniform for all operations.
#[derive(Clone, Debug)]
pub struct Inst {
    /// The operation.
    pub op: Op,
    /// The values it reads.
    pub operands: Vec<ValueId>,
    /// Compile-time facts.
    pub attrs: Attrs,
    /// The blocks it owns.
    pub blocks: Vec<BlockId>,
    /// The values it defines.
    pub results: Vec<ValueId>,
    /// Its place in the source.
    pub loc: Option<Loc>,
}

impl Inst {
    /// The name of its operation in IR text.
    pub fn name(&self) -> &'static str {
        self.attrs.target().map_or_else(|| self.op.name(), TargetOp::name)
    }
}

/// A straight list of instructions; the last one is a terminator.
#[derive(Clone, Debug, Default)]
pub struct BlockData {
    /// Values that it receives.
    pub args: Vec<ValueId>,
    /// The instructions.
    pub insts: Vec<InstId>,
}

/// The kinds of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuncKind {
    /// Launched over a grid; no results.
    Kernel,
    /// Called.
    Fn,
    /// Called, and kept out of its callers.
    NoInline,
    /// The body of a `test`: runs once, on the host, may use host operations.
    Test,
}

/// A function: its parameters are the arguments of `body`.
#[derive(Clone, Debug)]
pub struct Func {
    /// Unique in the module; any text.
    pub name: String,
    /// The kind of function.
    pub kind: FuncKind,
    /// Names of the parameters, as in the source (`x`, `st.m` for a flattened struct).
    pub param_names: Vec<String>,
    /// Pairs of parameters, by position, that may reach the same memory; no others do.
    pub alias: Vec<(u32, u32)>,
    /// Types of the results.
    pub results: Vec<TypeId>,
    /// The body.
    pub body: BlockId,
    /// Instructions, also those that are in no block any more.
    pub insts: Arena<InstId, Inst>,
    /// Values.
    pub values: Arena<ValueId, Value>,
    /// Blocks.
    pub blocks: Arena<BlockId, BlockData>,
}

/// Functions and their types.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The types of all functions.
    pub types: Types,
    /// The functions in order.
    pub funcs: Arena<FuncId, Func>,
}

impl Module {
    /// The function with this name.
    pub fn find(&self, name: &str) -> Option<FuncId> {
        self.funcs.iter().find(|(_, f)| f.name == name).map(|(id, _)| id)
    }
}

impl Func {
    /// An empty function; parameters are added with [`Func::add_arg`] on `body`.
    pub fn new(name: impl Into<String>, kind: FuncKind) -> Func {
        let mut blocks = Arena::default();
        let body = blocks.push(BlockData::default());
        Func {
            name: name.into(),
            kind,
            param_names: vec![],
            alias: vec![],
            results: vec![],
            body,
            insts: Arena::default(),
            values: Arena::default(),
            blocks,
        }
    }

    /// Adds an empty block that no instruction owns yet.
    pub fn add_block(&mut self) -> BlockId {
        self.blocks.push(BlockData::default())
    }

    /// Adds an argument to a block.
    pub fn add_arg(&mut self, block: BlockId, ty: TypeId) -> ValueId {
        let n = self.blocks[block].args.len() as u32;
        let v = self.values.push(Value { ty, def: Def::Arg(block, n) });
        self.blocks[block].args.push(v);
        v
    }

    /// Adds an instruction at the end of a block and defines its results.
    pub fn add_inst(&mut self, block: BlockId, mut inst: Inst, results: &[TypeId]) -> InstId {
        inst.results.clear();
        let id = self.insts.push(inst);
        for (i, ty) in results.iter().enumerate() {
            let v = self.values.push(Value { ty: *ty, def: Def::Inst(id, i as u32) });
            self.insts[id].results.push(v);
        }
        self.blocks[block].insts.push(id);
        id
    }

    /// The type of a value.
    pub fn ty(&self, v: ValueId) -> TypeId {
        self.values[v].ty
    }
}
