//! The rules that apply to a user.

use crate::decision::EvaluationErrors;

/// The rules that apply to a user in a namespace.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// The rules that allow verbs on resources.
    pub resource_rules: Vec<ResourceRule>,
    /// The rules that allow verbs on URL paths.
    pub non_resource_rules: Vec<NonResourceRule>,
    /// Whether the user may be allowed more than the lists contain.
    pub is_incomplete: bool,
    /// The errors that occurred while the rules were collected.
    pub error: Option<EvaluationErrors>,
}

impl Rules {
    /// The result of an authorizer that cannot list rules.
    pub fn unlistable_rules(message: &str) -> Self {
        Self {
            is_incomplete: true,
            error: Some(EvaluationErrors::message(message)),
            ..Self::default()
        }
    }
}

/// Verbs on resources. `*` in a list stands for everything; an empty list of names stands for all names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceRule {
    /// The verbs that the rule allows; `*` stands for all.
    pub verbs: Vec<String>,
    /// The API groups of the resources; `*` stands for all.
    pub api_groups: Vec<String>,
    /// The resources, with `resource/subresource` for subresources.
    pub resources: Vec<String>,
    /// Names of the objects that the rule is limited to; empty for all objects.
    pub resource_names: Vec<String>,
}

/// Verbs on paths. `*` stands for everything, and at the end of a path for any suffix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NonResourceRule {
    /// The verbs that the rule allows; `*` stands for all.
    pub verbs: Vec<String>,
    /// The paths that the rule allows; `*` at the end stands for any suffix.
    pub non_resource_urls: Vec<String>,
}
