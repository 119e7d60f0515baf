//! What a debugger needs of a program: where its statements begin, and what its variables hold there.
//!
//! Made by lowering on request. It is about the functions as they were lowered: a pass that moves, adds or removes
//! instructions makes it wrong.

use std::collections::BTreeMap;

use crate::ir::{BlockId, Loc, ValueId};

/// What is known of the functions of a module, by name.
pub type DebugInfo = BTreeMap<String, DebugFunc>;

/// What is known of a function.
#[derive(Clone, Debug, Default)]
pub struct DebugFunc {
    /// Its name in the source, and the place of that name.
    pub name: String,
    /// Where it is declared.
    pub loc: Loc,
    /// Its compile-time parameters, and those of its struct, with their values.
    pub constants: Vec<(String, String)>,
    /// Where its statements begin, in the order of lowering.
    pub statements: Vec<Statement>,
}

/// The beginning of a statement, or of the value of a block; or the place where a statement goes on after a lambda.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Whether it begins here.
    pub begins: bool,
    /// Its block.
    pub block: BlockId,
    /// The number of instructions before it in that block.
    pub index: usize,
    /// The whole statement.
    pub loc: Loc,
    /// The variables that exist there, in the order of their declaration.
    pub variables: Vec<(String, DebugValue)>,
    /// Of a statement in a lambda, the one that calls the lambda.
    pub caller: Option<Box<Statement>>,
}

impl Statement {
    /// This statement and those that call the lambdas around it, the innermost first.
    pub fn and_callers(&self) -> impl Iterator<Item = &Statement> {
        std::iter::successors(Some(self), |s| s.caller.as_deref())
    }
}

/// What a variable holds.
#[derive(Clone, Debug, PartialEq)]
pub enum DebugValue {
    /// A tile, a pointer or a view.
    Value(ValueId),
    /// What only the compiler knows, as text.
    Known(String),
    /// Nothing yet, or an optional that is absent.
    Nothing,
    /// A tuple or struct: the names of its parts.
    Parts(Vec<(String, DebugValue)>),
}
