//! The construction of functions: [`Builder`] appends instructions to the block that is open.
//!
//! Requires that the values passed to it belong to its function. Guarantees only that ids are consistent;
//! [`crate::verify`] decides whether the result is meaningful.
//!
//! ```
//! use tk_ops::{ControlOp, DType, ElementwiseOp, Op};
//! use tk_tile::{Attrs, Builder, Func, FuncKind, Module, Type};
//!
//! let mut m = Module::default();
//! let mut f = Func::new("sum_below", FuncKind::Fn);
//! let mut b = Builder::new(&mut m.types, &mut f);
//! let int = b.ty(Type::scalar(DType::I32));
//! let n = b.param("n", int);
//! let (zero, one) = (b.const_int(DType::I32, 0), b.const_int(DType::I32, 1));
//!
//! // for i in 0..n by 1, carrying acc = 0
//! let args = b.begin(&[int, int]);
//! let next = b.elementwise(ElementwiseOp::Add, &[args[1], args[0]]);
//! b.yield_(&[next]);
//! let body = b.end();
//! let sum = b.inst_with(Op::Control(ControlOp::For), &[zero, n, one, zero], Attrs::new(), vec![body], &[int]);
//! b.ret(&sum);
//! b.func.results.push(int);
//! m.funcs.push(f);
//! assert!(tk_tile::TileModule::new(m).is_ok());
//! ```

use tk_ops::scalar::Scalar;
use tk_ops::{ControlOp, CreateOp, DType, ElementwiseOp, Op, ShapeOp};

use crate::attr::{Attr, Attrs};
use crate::infer;
use crate::ir::{BlockId, ElemType, Func, Inst, Loc, Type, TypeId, Types, ValueId};

/// Appends instructions to the open block of one function.
#[derive(Debug)]
pub struct Builder<'a> {
    /// The types of the module that the function will belong to.
    pub types: &'a mut Types,
    /// The function that is being built.
    pub func: &'a mut Func,
    /// The source place of every instruction added from now on.
    pub loc: Option<Loc>,
    block: BlockId,
    outer: Vec<BlockId>,
}

impl<'a> Builder<'a> {
    /// Appends to the body of `func`.
    pub fn new(types: &'a mut Types, func: &'a mut Func) -> Self {
        let block = func.body;
        Builder::at(types, func, block)
    }

    /// Appends to a block that there is already.
    pub fn at(types: &'a mut Types, func: &'a mut Func, block: BlockId) -> Self {
        Builder { types, func, loc: None, block, outer: vec![] }
    }

    /// The block that is open.
    pub fn block(&self) -> BlockId {
        self.block
    }

    /// The id of a type.
    pub fn ty(&mut self, ty: Type) -> TypeId {
        self.types.intern(ty)
    }

    /// The type of a value.
    pub fn type_of(&self, v: ValueId) -> &Type {
        self.types.get(self.func.ty(v))
    }

    /// Adds a parameter to the function.
    pub fn param(&mut self, name: impl Into<String>, ty: TypeId) -> ValueId {
        self.func.param_names.push(name.into());
        self.func.add_arg(self.func.body, ty)
    }

    /// The number of parameters so far.
    pub fn params(&self) -> u32 {
        self.func.param_names.len() as u32
    }

    /// Says that two parameters, by position, may reach the same memory.
    pub fn alias(&mut self, x: u32, y: u32) {
        let pair = (x.min(y), x.max(y));
        if x != y && !self.func.alias.contains(&pair) {
            self.func.alias.push(pair);
        }
    }

    /// Opens a new block with arguments of these types, inside the one that is open; gives the arguments.
    pub fn begin(&mut self, args: &[TypeId]) -> Vec<ValueId> {
        let block = self.func.add_block();
        self.outer.push(std::mem::replace(&mut self.block, block));
        args.iter().map(|ty| self.func.add_arg(block, *ty)).collect()
    }

    /// Closes the block that [`Builder::begin`] opened and gives it, for the instruction that will own it.
    /// Without an open inner block it gives the body and stays there.
    pub fn end(&mut self) -> BlockId {
        let outer = self.outer.pop().unwrap_or(self.block);
        std::mem::replace(&mut self.block, outer)
    }

    /// Adds an instruction; gives its results.
    pub fn inst(&mut self, op: Op, operands: &[ValueId], attrs: Attrs, results: &[TypeId]) -> Vec<ValueId> {
        self.inst_with(op, operands, attrs, vec![], results)
    }

    /// Adds an instruction that owns blocks; gives its results.
    pub fn inst_with(
        &mut self,
        op: Op,
        operands: &[ValueId],
        attrs: Attrs,
        blocks: Vec<BlockId>,
        results: &[TypeId],
    ) -> Vec<ValueId> {
        let inst = Inst { op, operands: operands.to_vec(), attrs, blocks, results: vec![], loc: self.loc };
        let id = self.func.add_inst(self.block, inst, results);
        self.func.insts[id].results.clone()
    }

    /// Adds an instruction with one result.
    pub fn one(&mut self, op: Op, operands: &[ValueId], attrs: Attrs, ty: Type) -> ValueId {
        let ty = self.ty(ty);
        let inst =
            Inst { op, operands: operands.to_vec(), attrs, blocks: vec![], results: vec![], loc: self.loc };
        let id = self.func.add_inst(self.block, inst, &[]);
        let def = crate::ir::Def::Inst(id, 0);
        let v = self.func.values.push(crate::ir::Value { ty, def });
        self.func.insts[id].results.push(v);
        v
    }

    /// `yield`, the end of an inner block.
    pub fn yield_(&mut self, values: &[ValueId]) {
        self.inst(Op::Control(ControlOp::Yield), values, Attrs::new(), &[]);
    }

    /// `return`, the end of the body.
    pub fn ret(&mut self, values: &[ValueId]) {
        self.inst(Op::Control(ControlOp::Return), values, Attrs::new(), &[]);
    }

    /// A scalar constant (`shape` empty) or a tile filled with it.
    pub fn constant(&mut self, value: Scalar, shape: &[u32]) -> ValueId {
        let ty = Type::tile(value.dtype(), shape);
        self.one(Op::Create(CreateOp::Const), &[], Attrs::new().with("value", Attr::Scalar(value)), ty)
    }

    /// A tile with these elements in row-major order; they have one type.
    pub fn table(&mut self, values: &[Scalar], dtype: DType, shape: &[u32]) -> ValueId {
        let bits = values.iter().map(|s| s.bits().cast_signed()).collect();
        let attrs = Attrs::new().with("values", Attr::Ints(bits));
        self.one(Op::Create(CreateOp::Table), &[], attrs, Type::tile(dtype, shape))
    }

    /// An integer constant of rank 0; the low bits are kept.
    pub fn const_int(&mut self, dtype: DType, value: i64) -> ValueId {
        self.constant(Scalar::int(dtype, i128::from(value)), &[])
    }

    /// An elementwise operation. The operands have one shape already; for a cast, see [`Builder::cast`].
    pub fn elementwise(&mut self, op: ElementwiseOp, operands: &[ValueId]) -> ValueId {
        let types: Vec<&Type> = operands.iter().map(|v| self.type_of(*v)).collect();
        let first = types.first().map_or(Type::scalar(DType::Bool), |t| (*t).clone());
        let ty = infer::elementwise(op, &types).unwrap_or(first);
        self.one(Op::Elementwise(op), operands, Attrs::new(), ty)
    }

    /// The values as another element type; nothing is added if they have it.
    pub fn cast(&mut self, v: ValueId, to: DType) -> ValueId {
        self.convert(ElementwiseOp::Cast, v, to)
    }

    /// The bits as another element type of the same width; nothing is added if they have it.
    pub fn bitcast(&mut self, v: ValueId, to: DType) -> ValueId {
        self.convert(ElementwiseOp::Bitcast, v, to)
    }

    fn convert(&mut self, op: ElementwiseOp, v: ValueId, to: DType) -> ValueId {
        let ty = self.type_of(v);
        if ty.dtype() == Some(to) {
            return v;
        }
        let ty = Type::tile(to, ty.shape().unwrap_or(&[]));
        self.one(Op::Elementwise(op), &[v], Attrs::new(), ty)
    }

    /// A tile filled with a scalar; nothing is added for the empty shape.
    pub fn splat(&mut self, v: ValueId, shape: &[u32]) -> ValueId {
        self.shaped(Op::Create(CreateOp::Splat), v, Attrs::new(), shape)
    }

    /// The value with this shape: a scalar is splat, dimensions of extent 1 are repeated, the same shape is left.
    pub fn broadcast(&mut self, v: ValueId, shape: &[u32]) -> ValueId {
        match self.type_of(v).shape() {
            Some([]) => self.splat(v, shape),
            _ => self.shaped(Op::Shape(ShapeOp::Broadcast), v, Attrs::new(), shape),
        }
    }

    /// The same elements in row-major order with another shape; nothing is added for the same shape.
    pub fn reshape(&mut self, v: ValueId, shape: &[u32]) -> ValueId {
        self.shaped(Op::Shape(ShapeOp::Reshape), v, Attrs::new(), shape)
    }

    /// Dimensions reordered: dimension i of the result is dimension `perm[i]` of the operand.
    pub fn permute(&mut self, v: ValueId, perm: &[i64]) -> ValueId {
        let shape = self.type_of(v).shape().unwrap_or(&[]);
        let shape = infer::permuted(shape, perm).unwrap_or_else(|| shape.to_vec());
        let ty = infer::with_shape(self.type_of(v), &shape);
        self.one(Op::Shape(ShapeOp::Permute), &[v], Attrs::new().with("perm", Attr::Ints(perm.to_vec())), ty)
    }

    fn shaped(&mut self, op: Op, v: ValueId, attrs: Attrs, shape: &[u32]) -> ValueId {
        let ty = self.type_of(v);
        if ty.shape() == Some(shape) {
            return v;
        }
        let ty = infer::with_shape(ty, shape);
        self.one(op, &[v], attrs, ty)
    }

    /// Any value of a type; reading it is a compiler bug.
    pub fn undef(&mut self, ty: Type) -> ValueId {
        self.one(Op::Create(CreateOp::Undef), &[], Attrs::new(), ty)
    }

    /// Returns true if the elements of a value are pointers.
    pub fn is_pointer(&self, v: ValueId) -> bool {
        matches!(self.type_of(v), Type::Tile { elem: ElemType::Ptr { .. }, .. })
    }
}
