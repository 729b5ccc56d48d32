//! Decides whether a hook is called for a request.

mod hook_matching;
mod label_selector;
mod matched_hooks;
mod rule;
mod rule_index;

pub(crate) use hook_matching::MatchedResourceName;
pub use hook_matching::{CallDecision, HookSelectionError, MatchedResource, SkipCause};
pub(crate) use label_selector::parse_label_operator as parse_selector_operator;
pub use label_selector::{LabelSelector, LabelSelectorError};
pub use matched_hooks::{HookMatch, MatchedHooks};
pub(crate) use rule::{ANY, operations_member_name};
pub use rule::{Rule, RuleDialect, RuleTarget};
pub(crate) use rule_index::RuleIndex;
