//! Appends instructions to a block of tile IR: [`TileEdit`], for passes that rebuild blocks instruction by instruction.

use tk_ops::scalar::Scalar;
use tk_ops::{CreateOp, DType, ElementwiseOp, MemoryOp, Op, ShapeOp};
use tk_tile::{
    Attr, Attrs, BlockId, ElemType, Func, Id, Inst, InstId, Loc, Module, Type, TypeId, Types, ValueId,
};

/// A block that is rebuilt, and the position in the source of the instruction that is replaced.
pub(super) struct TileEdit<'a> {
    pub func: &'a mut Func,
    pub types: &'a mut Types,
    pub block: BlockId,
    pub loc: Option<Loc>,
}

impl TileEdit<'_> {
    /// Rebuilds all blocks of a function: `change` appends what replaces an instruction and returns true, or returns
    /// false for one that stays.
    pub fn rebuild(
        module: &mut Module,
        func: tk_tile::FuncId,
        mut change: impl FnMut(&mut TileEdit<'_>, InstId) -> bool,
    ) {
        let (func, types) = (&mut module.funcs[func], &mut module.types);
        let blocks: Vec<BlockId> = func.blocks.iter().map(|(b, _)| b).collect();
        for block in blocks {
            for id in std::mem::take(&mut func.blocks[block].insts) {
                let loc = func.insts[id].loc;
                if !change(&mut TileEdit { func, types, block, loc }, id) {
                    func.blocks[block].insts.push(id);
                }
            }
        }
    }

    /// Appends an instruction that exists.
    pub fn push(&mut self, id: InstId) {
        self.func.blocks[self.block].insts.push(id);
    }

    /// Appends an instruction with one result.
    pub fn add(&mut self, op: Op, operands: &[ValueId], attrs: Attrs, ty: TypeId) -> ValueId {
        let operands = operands.to_vec();
        let inst = Inst { op, operands, attrs, blocks: vec![], results: vec![], loc: self.loc };
        let id = self.func.add_inst(self.block, inst, &[ty]);
        self.func.insts[id].results.first().copied().unwrap_or(ValueId::new(0))
    }

    /// The shape of a tile.
    pub fn shape(&self, v: ValueId) -> Vec<u32> {
        self.types.get(self.func.ty(v)).shape().unwrap_or(&[]).to_vec()
    }

    /// The type of the elements of a tile, if they are numbers.
    pub fn dtype(&self, v: ValueId) -> Option<DType> {
        self.types.get(self.func.ty(v)).dtype()
    }

    /// A tile type of numbers.
    pub fn tile(&mut self, d: DType, shape: &[u32]) -> TypeId {
        self.types.intern(Type::Tile { elem: ElemType::Scalar(d), shape: shape.to_vec() })
    }

    /// A tile or scalar filled with an integer.
    pub fn int(&mut self, d: DType, value: i64, shape: &[u32]) -> ValueId {
        let ty = self.tile(d, shape);
        let attrs = Attrs::new().with("value", Attr::Scalar(Scalar::int(d, value.into())));
        self.add(Op::Create(CreateOp::Const), &[], attrs, ty)
    }

    /// The same numbers of another type.
    pub fn cast(&mut self, v: ValueId, to: DType) -> ValueId {
        if self.dtype(v) == Some(to) {
            return v;
        }
        let shape = self.shape(v);
        let ty = self.tile(to, &shape);
        self.add(Op::Elementwise(ElementwiseOp::Cast), &[v], Attrs::new(), ty)
    }

    /// An elementwise operation whose result has the type of its first operand.
    pub fn elementwise(&mut self, op: ElementwiseOp, operands: &[ValueId]) -> ValueId {
        let ty = operands.first().map_or(TypeId::new(0), |v| self.func.ty(*v));
        self.add(Op::Elementwise(op), operands, Attrs::new(), ty)
    }

    /// A comparison of two tiles.
    pub fn compare(&mut self, op: ElementwiseOp, operands: [ValueId; 2]) -> ValueId {
        let shape = self.shape(operands[0]);
        let ty = self.tile(DType::Bool, &shape);
        self.add(Op::Elementwise(op), &operands, Attrs::new(), ty)
    }

    /// A tile filled with a scalar.
    pub fn splat(&mut self, v: ValueId, shape: &[u32]) -> ValueId {
        let Type::Tile { elem, .. } = self.types.get(self.func.ty(v)).clone() else { return v };
        let ty = self.types.intern(Type::Tile { elem, shape: shape.to_vec() });
        self.add(Op::Create(CreateOp::Splat), &[v], Attrs::new(), ty)
    }

    /// A tile of as many elements in another shape, by `reshape` or `broadcast`.
    pub fn shaped(&mut self, op: ShapeOp, v: ValueId, shape: &[u32]) -> ValueId {
        let Type::Tile { elem, .. } = self.types.get(self.func.ty(v)).clone() else { return v };
        let ty = self.types.intern(Type::Tile { elem, shape: shape.to_vec() });
        self.add(Op::Shape(op), &[v], Attrs::new(), ty)
    }

    /// A tile type with its dimensions in this order.
    pub fn permuted_type(&mut self, ty: TypeId, perm: &[i64]) -> TypeId {
        let Type::Tile { elem, shape } = self.types.get(ty).clone() else { return ty };
        let shape = perm.iter().filter_map(|d| shape.get(usize::try_from(*d).ok()?).copied()).collect();
        self.types.intern(Type::Tile { elem, shape })
    }

    /// A tile, or a view, with its dimensions in this order.
    pub fn permuted(&mut self, v: ValueId, perm: &[i64]) -> ValueId {
        let attrs = Attrs::new().with("perm", Attr::Ints(perm.to_vec()));
        let ty = self.func.ty(v);
        match self.types.get(ty) {
            Type::View { .. } => self.add(Op::Memory(MemoryOp::ViewPermute), &[v], attrs, ty),
            Type::Tile { .. } => {
                let ty = self.permuted_type(ty, perm);
                self.add(Op::Shape(ShapeOp::Permute), &[v], attrs, ty)
            }
        }
    }
}
