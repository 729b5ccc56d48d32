//! What a user may do, as far as it can be listed.

use crate::decision::Failure;

/// The rules that apply to a user in a namespace.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// What the user may do with resources.
    pub resource_rules: Vec<ResourceRule>,
    /// What the user may do with paths.
    pub non_resource_rules: Vec<NonResourceRule>,
    /// The user may be allowed more than the lists say.
    pub is_incomplete: bool,
    /// What failed while the rules were collected.
    pub error: Option<Failure>,
}

impl Rules {
    /// The answer of an authorizer that can not list rules.
    pub fn unknown(message: &str) -> Self {
        Self { is_incomplete: true, error: Some(Failure::message(message)), ..Self::default() }
    }
}

/// Verbs on resources. `*` in a list stands for everything; no names stand for all names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceRule {
    /// The verbs.
    pub verbs: Vec<String>,
    /// The API groups.
    pub api_groups: Vec<String>,
    /// The resources, with `resource/subresource` for subresources.
    pub resources: Vec<String>,
    /// The names of objects.
    pub resource_names: Vec<String>,
}

/// Verbs on paths. `*` stands for everything, and at the end of a path for any rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NonResourceRule {
    /// The verbs.
    pub verbs: Vec<String>,
    /// The paths.
    pub non_resource_urls: Vec<String>,
}
