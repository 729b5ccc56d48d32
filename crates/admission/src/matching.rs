//! Whether a hook is called for a request (admission §3).

mod consider;
mod index;
mod matched_hooks;
mod rule;
mod selector;

pub(crate) use consider::MatchedName;
pub use consider::{Consideration, Identity, Skip};
pub(crate) use index::Index;
pub use matched_hooks::{Match, MatchedHooks};
pub(crate) use rule::{ANY, operations_member};
pub use rule::{Dialect, Rule, RuleTarget};
pub use selector::LabelSelector;
pub(crate) use selector::operator as selector_operator;
