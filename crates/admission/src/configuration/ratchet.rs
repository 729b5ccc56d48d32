//! Which rules hold for an update, by what the stored object kept (admission §2.6).

use std::collections::HashSet;

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};

use super::selectors;
use super::webhooks::NO_SIDE_EFFECTS;
use crate::hook::ReviewVersion;
use crate::members::{object, objects, text, texts};

/// How much is asked of the webhooks of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Strictness<'a> {
    /// Match conditions are looked at.
    pub(super) checks_conditions: bool,
    /// Expressions of conditions that may go on using whatever is known.
    pub(super) stored_expressions: HashSet<&'a str>,
    /// Side effects must be none, or none in a dry run.
    pub(super) forbids_side_effects: bool,
    /// One of the review versions must be known.
    pub(super) requires_known_version: bool,
    /// Names must be unique.
    pub(super) requires_unique_names: bool,
    /// Values in selectors must be those of labels.
    pub(super) checks_label_values: bool,
}

impl<'a> Strictness<'a> {
    /// Everything is asked of a new object; an update need not be better than what is stored.
    pub(super) fn towards(new: &[&Tree], stored: Option<&[&'a Tree]>) -> Self {
        let Some(stored) = stored else {
            return Self {
                checks_conditions: true,
                stored_expressions: HashSet::new(),
                forbids_side_effects: true,
                requires_known_version: true,
                requires_unique_names: true,
                checks_label_values: true,
            };
        };
        Self {
            checks_conditions: !has_same_conditions(new, stored),
            stored_expressions: stored.iter().flat_map(|webhook| expressions(webhook)).collect(),
            forbids_side_effects: stored.iter().all(|webhook| has_no_side_effects(webhook)),
            requires_known_version: stored.iter().all(|webhook| has_known_version(webhook)),
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

/// The expressions of a webhook's conditions.
fn expressions(webhook: &Tree) -> impl Iterator<Item = &str> {
    let conditions = objects(webhook, "matchConditions").into_iter();
    conditions.filter_map(|condition| text(condition, "expression")).map(str::trim)
}

fn has_no_side_effects(webhook: &Tree) -> bool {
    text(webhook, "sideEffects").is_some_and(|effects| NO_SIDE_EFFECTS.contains(&effects))
}

/// An empty list counts as satisfied: it is refused for another reason.
fn has_known_version(webhook: &Tree) -> bool {
    let versions = texts(webhook, "admissionReviewVersions");
    versions.is_empty() || versions.into_iter().any(|it| ReviewVersion::of_webhook(it).is_some())
}

fn has_unique_names(webhooks: &[&Tree]) -> bool {
    let mut names: Vec<&str> =
        webhooks.iter().map(|webhook| text(webhook, "name").unwrap_or_default()).collect();
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1])
}

fn has_valid_selectors(webhook: &Tree) -> bool {
    let mut errors = FieldErrors::new();
    for selector in selectors::MEMBERS.iter().filter_map(|member| object(webhook, member)) {
        selectors::check(selector, true, &FieldPath::NOWHERE, &mut errors);
    }
    errors.is_empty()
}
