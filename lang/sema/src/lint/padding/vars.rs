//! The variables of W0504's walk: [`Vars`], whose changes can be taken back.
//!
//! Guarantees that leaving a branch costs as much as was assigned in it, however many variables the function has.

use std::collections::BTreeMap;

use super::Value;

/// The values of variables by number, and what they were before each change.
#[derive(Default)]
pub(super) struct Vars<'a> {
    now: Vec<Value<'a>>,
    before: Vec<(usize, Value<'a>)>,
}

impl<'a> Vars<'a> {
    /// So many variables of which nothing is known.
    pub fn new(count: usize) -> Self {
        Vars { now: vec![Value::Opaque; count], before: vec![] }
    }

    /// The value of a variable.
    pub fn get(&self, id: usize) -> Option<&Value<'a>> {
        self.now.get(id)
    }

    /// Gives a variable another value.
    pub fn set(&mut self, id: usize, value: Value<'a>) {
        if let Some(slot) = self.now.get_mut(id) {
            self.before.push((id, std::mem::replace(slot, value)));
        }
    }

    /// A point to come back to.
    pub fn mark(&self) -> usize {
        self.before.len()
    }

    /// The variables that were set after a mark, with what they were there.
    pub fn changed(&self, mark: usize) -> BTreeMap<usize, Value<'a>> {
        let changes = self.before.get(mark..).unwrap_or_default();
        // The first change of a variable comes last here and stays.
        changes.iter().rev().map(|(id, old)| (*id, old.clone())).collect()
    }

    /// Takes back what came after a mark; gives the values that the changed variables had before that.
    pub fn undo(&mut self, mark: usize) -> BTreeMap<usize, Value<'a>> {
        let mut after = BTreeMap::new();
        while self.before.len() > mark {
            if let Some((id, old)) = self.before.pop()
                && let Some(slot) = self.now.get_mut(id)
            {
                let value = std::mem::replace(slot, old);
                after.entry(id).or_insert(value);
            }
        }
        after
    }
}
