//! Ratcheting validation: an update must satisfy a rule only if the stored object satisfies it.

use std::collections::HashSet;

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};

use super::check_selectors;
use super::check_webhooks::NO_SIDE_EFFECTS;
use crate::hook::ReviewVersion;
use crate::json_members::{read_object, read_objects, read_string, read_strings};

/// The validation rules that apply to the webhooks of an object; an update omits the rules that the stored
/// object breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UpdateRatchet<'a> {
    /// Whether match conditions are validated.
    pub(super) checks_match_conditions: bool,
    /// The expressions of stored conditions, which may use all functions.
    pub(super) stored_expressions: HashSet<&'a str>,
    /// Whether `sideEffects` must be `None` or `NoneOnDryRun`.
    pub(super) forbids_side_effects: bool,
    /// Whether at least one review version must be known to this server.
    pub(super) requires_known_review_version: bool,
    /// Whether the names of webhooks must be unique.
    pub(super) requires_unique_names: bool,
    /// Whether the values in selectors must be valid label values.
    pub(super) checks_label_values: bool,
}

impl<'a> UpdateRatchet<'a> {
    /// Returns the rules for an update, or all rules if `stored` is `None`, as for a new object.
    pub(super) fn for_update(new: &[&Tree], stored: Option<&[&'a Tree]>) -> Self {
        let Some(stored) = stored else {
            return Self {
                checks_match_conditions: true,
                stored_expressions: HashSet::new(),
                forbids_side_effects: true,
                requires_known_review_version: true,
                requires_unique_names: true,
                checks_label_values: true,
            };
        };
        Self {
            checks_match_conditions: !has_same_conditions(new, stored),
            stored_expressions: stored
                .iter()
                .flat_map(|webhook| condition_expressions(webhook))
                .collect(),
            forbids_side_effects: stored.iter().all(|webhook| has_no_side_effects(webhook)),
            requires_known_review_version: stored
                .iter()
                .all(|webhook| has_known_review_version(webhook)),
            requires_unique_names: has_unique_names(stored),
            checks_label_values: stored.iter().all(|webhook| has_valid_selectors(webhook)),
        }
    }
}

fn has_same_conditions(new: &[&Tree], stored: &[&Tree]) -> bool {
    let conditions = |webhook: &Tree| {
        let list = webhook.get("matchConditions").and_then(serde_json::Value::as_array);
        list.filter(|list| !list.is_empty()).cloned()
    };
    new.len() == stored.len()
        && new.iter().zip(stored).all(|(new, old)| conditions(new) == conditions(old))
}

/// Returns the expressions of the match conditions of a webhook.
fn condition_expressions(webhook: &Tree) -> impl Iterator<Item = &str> {
    let conditions = read_objects(webhook, "matchConditions").into_iter();
    conditions.filter_map(|condition| read_string(condition, "expression")).map(str::trim)
}

fn has_no_side_effects(webhook: &Tree) -> bool {
    read_string(webhook, "sideEffects").is_some_and(|effects| NO_SIDE_EFFECTS.contains(&effects))
}

/// Reports whether a webhook lists a review version that this server knows. An empty list satisfies this rule,
/// because another rule refuses it.
fn has_known_review_version(webhook: &Tree) -> bool {
    let versions = read_strings(webhook, "admissionReviewVersions");
    versions.is_empty()
        || versions.into_iter().any(|it| ReviewVersion::parse_v1_review_version(it).is_some())
}

fn has_unique_names(webhooks: &[&Tree]) -> bool {
    let mut names: Vec<&str> =
        webhooks.iter().map(|webhook| read_string(webhook, "name").unwrap_or_default()).collect();
    names.sort_unstable();
    names.iter().zip(names.iter().skip(1)).all(|(name, next)| name != next)
}

fn has_valid_selectors(webhook: &Tree) -> bool {
    let mut errors = FieldErrors::new();
    for selector in
        check_selectors::SELECTOR_MEMBERS.iter().filter_map(|member| read_object(webhook, member))
    {
        check_selectors::check_selector(selector, true, &FieldPath::NOWHERE, &mut errors);
    }
    errors.is_empty()
}
