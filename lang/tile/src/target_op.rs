//! Operations that a code generator defines: tile IR stores and prints them without knowing what they do.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use tk_ops::table::Effects;

use crate::attr::Attrs;

/// The typed attributes of an instruction with the operation [`tk_ops::Op::Target`].
pub trait TargetOp: Any + fmt::Debug + Send + Sync {
    /// The name in IR text, different from that of every operation of tile IR.
    fn name(&self) -> &'static str;
    /// What it does besides giving its results.
    fn effects(&self) -> Effects;
    /// The fields as text has them.
    fn fields(&self) -> Attrs;
    /// For downcasts.
    fn as_any(&self) -> &dyn Any;
}

/// How the operations of a code generator are read from text.
pub trait Dialect {
    /// Whether an operation has this name.
    fn has(&self, op: &str) -> bool;
    /// What messages about fields begin with: the rule that they break.
    fn rule(&self) -> &'static str;
    /// The name of a field that some operation has.
    fn field(&self, name: &str) -> Option<&'static str>;
    /// An operation with these fields.
    ///
    /// # Errors
    /// The field that is missing, unknown or of another type.
    fn read(&self, op: &str, fields: Attrs) -> Result<Arc<dyn TargetOp>, String>;
}
