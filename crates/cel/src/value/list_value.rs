//! List values, which borrow lists of the host or own their elements.

use std::fmt;
use std::sync::Arc;

use super::Value;

/// A list of the host. The evaluation borrows it and converts only the elements that it reads.
pub trait ListSource: fmt::Debug + Sync {
    /// The number of elements.
    fn len(&self) -> usize;
    /// The element at `index`, if there is one.
    fn get(&self, index: usize) -> Option<Value<'_>>;
    /// Reports whether there are no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A list value of CEL, in one of several representations.
#[derive(Debug, Clone)]
pub enum List<'a> {
    /// Strings of the host. This is the most common list.
    Strings(&'a [String]),
    /// Any other list of the host.
    Source(&'a dyn ListSource),
    /// A constant of the program.
    Constant(&'a OwnedList<'a>),
    /// A list that the evaluation created.
    Owned(Arc<OwnedList<'a>>),
}

/// A list that owns its elements, with their nesting depth.
#[derive(Debug, Clone, Default)]
pub struct OwnedList<'a> {
    items: Vec<Value<'a>>,
    /// The greatest depth among the elements.
    nesting_depth: u32,
}

impl<'a> OwnedList<'a> {
    /// A list of these elements.
    pub fn new(items: Vec<Value<'a>>) -> Self {
        let depth = items.iter().map(Value::nesting_depth).max().unwrap_or(0);
        Self { items, nesting_depth: depth }
    }

    /// Adds an element at the end.
    pub fn push(&mut self, item: Value<'a>) {
        self.nesting_depth = self.nesting_depth.max(item.nesting_depth());
        self.items.push(item);
    }

    /// The elements in order.
    pub fn as_slice(&self) -> &[Value<'a>] {
        &self.items
    }

    /// The greatest depth among the elements.
    pub(super) fn nesting_depth(&self) -> u32 {
        self.nesting_depth
    }
}

impl<'a> List<'a> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::Strings(items) => items.len(),
            Self::Source(items) => items.len(),
            Self::Constant(list) => list.items.len(),
            Self::Owned(list) => list.items.len(),
        }
    }

    /// Reports whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`.
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Strings(items) => {
                let items: &'a [String] = items;
                items.get(index).map(|item| Value::borrowed_string(item))
            }
            Self::Source(items) => {
                let items: &'a dyn ListSource = *items;
                items.get(index)
            }
            Self::Constant(list) => list.items.get(index).cloned(),
            Self::Owned(list) => list.items.get(index).cloned(),
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}
