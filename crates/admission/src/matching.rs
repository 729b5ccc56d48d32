//! Whether a hook is called for a request (admission §3).

mod consider;
mod index;
mod rule;
mod selector;

pub use consider::{Consideration, Identity, Skip};
pub(crate) use index::Index;
pub(crate) use rule::{ANY, operations_member};
pub use rule::{Dialect, Rule, RuleTarget};
pub use selector::LabelSelector;
pub(crate) use selector::operator as selector_operator;
