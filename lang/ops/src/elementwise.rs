//! Elementwise operations: what the macro of their table generates, and what follows from their groups.
//!
//! The table is `rows/elementwise.rs`, with an entry for each operation: the enum, the groups, operand counts, typing
//! and the rows for users all come from it, so they cannot disagree.

use crate::dtype::DTypeSet;
use crate::op::Op;
pub use crate::rows::elementwise::*;
use crate::table::{Accuracy, BuiltinParam, Effects, ElemResult, ParamKind, Receiver, Row, Scheme};

/// What the operations of a group have in common.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The parameters of a row; those that are values at run time are the operands.
    pub params: &'static [BuiltinParam],
    /// The element types of the operands.
    pub accepts: DTypeSet,
    /// The element type of the result; `None` if it is chosen.
    pub result: Option<ElemResult>,
    /// How exact a row is unless it says otherwise.
    pub accuracy: Accuracy,
}

/// Generates the enum of operations, one enum for each group, [`Group`] over these, and the rows.
///
/// ```text
/// MATH {                               // a class of the reference: its rows in their order
///     /// Functions of one float.
///     group FloatUnary {               // the facts of the group
///         params: X_FAST, accepts: .., result: .., accuracy: ..,
///         Exp = "exp" { doc: .., .. }  // variant = name in IR text { the fields of its row }
///         Late = "late"                // an operation whose rows are elsewhere in the reference
///     }
///     also { Late { doc: .., .. } }    // a further row of an operation, or one that comes later
/// }
/// ```
///
/// The fields are those of [`Row`]; what an entry leaves out follows from the operation (`ElementwiseOp::row`).
macro_rules! elementwise_ops {
    ($($class:ident {$(
        $(#[$group_doc:meta])*
        group $group:ident {
            params: $params:expr,
            accepts: $accepts:expr,
            result: $result:expr,
            accuracy: $accuracy:expr,
            $($(#[$doc:meta])* $op:ident = $name:literal $({ $($field:ident: $value:expr),* $(,)? })?)*
        }
        $(also { $($again:ident { $($again_field:ident: $again_value:expr),* $(,)? })* })?
    )*})*) => {
        /// One result element from the elements at the same place. Operands and result have one shape; the element
        /// types of the operands agree unless the group says otherwise.
        #[allow(missing_docs, reason = "documented by their rows")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ElementwiseOp { $($($($(#[$doc])* $op,)*)*)* }

        /// The groups of elementwise operations: the operations of one have the same operands and types, and most
        /// analyses and passes treat them alike.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Group { $($($(#[$group_doc])* $group($group),)*)* }

        $($(
            $(#[$group_doc])*
            #[allow(missing_docs, reason = "documented by their rows")]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $group { $($op,)* }
        )*)*

        impl ElementwiseOp {
            /// Every operation of the class.
            pub const ALL: &'static [ElementwiseOp] = &[$($($(ElementwiseOp::$op,)*)*)*];

            /// The name in IR text.
            pub const fn name(self) -> &'static str {
                match self { $($($(ElementwiseOp::$op => $name,)*)*)* }
            }

            /// The group, and which one of it.
            pub const fn group(self) -> Group {
                match self { $($($(ElementwiseOp::$op => Group::$group($group::$op),)*)*)* }
            }
        }

        impl Group {
            /// What its operations have in common.
            pub const fn facts(self) -> Facts {
                match self {$($(
                    Group::$group(_) => {
                        Facts { params: $params, accepts: $accepts, result: $result, accuracy: $accuracy }
                    }
                )*)*}
            }
        }

        $(
            /// The rows of a class of the reference, in its order.
            pub(super) const $class: &[Row] = &[$(
                $($(Row { $($field: $value,)* ..ElementwiseOp::$op.row() },)?)*
                $($(Row { $($again_field: $again_value,)* ..ElementwiseOp::$again.row() },)*)?
            )*];
        )*
    };
}
pub(crate) use elementwise_ops;

impl ElementwiseOp {
    /// The number of operands.
    pub const fn arity(self) -> usize {
        let params = self.group().facts().params;
        let (mut n, mut i) = (0, 0);
        while i < params.len() {
            n += matches!(params[i].kind, ParamKind::Value | ParamKind::Mask) as usize;
            i += 1;
        }
        n
    }

    /// The element types it works on: those of all operands, except that the amount of a shift may be another
    /// integer and that the condition of `select` is bool.
    pub const fn accepts(self) -> DTypeSet {
        self.group().facts().accepts
    }

    /// How the result's element type follows from that of the operands; `None` for the conversions, whose result type
    /// is chosen.
    pub const fn result(self) -> Option<ElemResult> {
        self.group().facts().result
    }

    /// A row that says of the operation what follows from its group; a name, a doc and an example are missing.
    pub(crate) const fn row(self) -> Row {
        let Facts { params, accepts, result, accuracy } = self.group().facts();
        let scheme = match result {
            Some(result) => Scheme::Elementwise(accepts, result),
            None => Scheme::Special,
        };
        let (receiver, effects) = (Receiver::None, Effects::Pure);
        let (op, name) = (Op::Elementwise(self), self.name());
        Row { name, receiver, params, scheme, op, doc: "", example: "", effects, accuracy }
    }
}
