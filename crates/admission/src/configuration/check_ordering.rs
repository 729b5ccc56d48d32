//! Validation of the ordering of initializers.

use std::collections::HashSet;

use api_object::Tree;
use field_errors::{FieldError, FieldErrors, FieldPath};

use super::check_names::{DuplicateNameChecker, check_qualified_name};
use super::check_webhooks::check_supported_value;
use super::configuration_kind::ConfigurationKind;
use super::configuration_warnings::{ConfigurationWarning, WarningKind};
use crate::initializer::{Initializer, sort_and_deduplicate_initializers};
use crate::initializer_order::DependencyGraph;
use crate::json_members::{read_objects, read_string, read_strings};

const ORDERING_MODES: [&str; 2] = ["Graph", "Sequential"];
const CONSTRAINT_MEMBERS: [&str; 2] = ["after", "before"];

/// Checks the ordering constraints of one entry, without other configurations.
pub(super) fn check_ordering_constraints(
    entry: &Tree,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    check_supported_value(entry, "orderingMode", &ORDERING_MODES, at, errors);
    let is_graph = read_string(entry, "orderingMode") == Some("Graph");
    let own = read_string(entry, "name").unwrap_or_default();
    for member in CONSTRAINT_MEMBERS {
        let (names, at) = (read_strings(entry, member), at.child(member));
        if !names.is_empty() && !is_graph {
            errors.push(at.forbidden("may only be set when orderingMode is Graph"));
        }
        let mut seen = DuplicateNameChecker::default();
        for (idx, name) in names.iter().enumerate() {
            let at = at.index(idx);
            check_qualified_name(name, &at, errors);
            if !own.is_empty() && *name == own {
                errors.push(at.invalid(*name, "must not reference itself"));
            }
            seen.check_unique_name(name, &at, errors);
        }
    }
}

/// Returns an error if an InitializerConfiguration and all others together have a cycle. `others` may include the stored
/// state of this object, which the new state replaces.
///
/// The caller must make sure that the other objects do not change before this one is stored.
#[must_use]
pub fn initializer_ordering_errors(new: &Tree, others: &[&Tree]) -> FieldErrors {
    let own = api_object::name(new);
    let initializers = all_initializers(new, others);
    let graph = DependencyGraph::new(&initializers);
    let in_cycles = graph.members_of_cycles();
    // An entry whose name an earlier configuration registers has no effect.
    let is_own =
        |idx: &usize| initializers.get(*idx).is_some_and(|it| it.configuration_name == own);
    let Some(first) = in_cycles.into_iter().find(is_own) else { return FieldErrors::new() };
    let Some(cycle) = graph.find_cycle_through(first) else { return FieldErrors::new() };
    let names: Vec<&str> =
        cycle.iter().filter_map(|idx| Some(initializers.get(*idx)?.name.as_str())).collect();
    cycle_error(new, &names).into()
}

/// Makes the error for the first entry of a cycle.
fn cycle_error(new: &Tree, cycle: &[&str]) -> FieldError {
    let list = FieldPath::root(ConfigurationKind::Initializer.entries_member_name());
    let name = cycle.first().copied().unwrap_or_default();
    let entries = read_objects(new, ConfigurationKind::Initializer.entries_member_name());
    let idx = entries.iter().position(|entry| read_string(entry, "name") == Some(name));
    let at = list.index(idx.unwrap_or_default());
    let detail = format!("ordering cycle: {} -> {name}", cycle.join(" -> "));
    // In the cycle, the last name comes right before the entry and the second right after it.
    for (member, neighbour) in [("after", cycle.last()), ("before", cycle.get(1))] {
        let entry = idx.and_then(|idx| entries.get(idx));
        let is_named =
            |by: &&&str| entry.is_some_and(|entry| read_strings(entry, member).contains(*by));
        if let Some(by) = neighbour.filter(is_named) {
            return at.child(member).invalid(*by, &detail);
        }
    }
    at.child("name").invalid(name, &detail)
}

/// Warns of ordering constraints with names that no configuration registers.
#[must_use]
pub fn initializer_ordering_warnings(new: &Tree, others: &[&Tree]) -> Vec<ConfigurationWarning> {
    let known: HashSet<String> =
        all_initializers(new, others).into_iter().map(|initializer| initializer.name).collect();
    let mut warnings = Vec::new();
    for (idx, entry) in read_objects(new, ConfigurationKind::Initializer.entries_member_name())
        .into_iter()
        .enumerate()
    {
        for member in CONSTRAINT_MEMBERS {
            let names = read_strings(entry, member).into_iter().enumerate();
            for (at, name) in names.filter(|(_, name)| !known.contains(*name)) {
                warnings.push(ConfigurationWarning {
                    warning_kind: WarningKind::UnknownInitializer,
                    path: format!("initializers[{idx}].{member}[{at}]"),
                    message: format!(
                        "no initializer named {} is registered; the constraint has no effect until \
                         one is",
                        go_compat::quote(name)
                    ),
                });
            }
        }
    }
    warnings
}

fn all_initializers(new: &Tree, others: &[&Tree]) -> Vec<Initializer> {
    let own = api_object::name(new);
    let others = others.iter().copied().filter(|other| api_object::name(other) != own);
    sort_and_deduplicate_initializers(
        others.chain([new]).flat_map(Initializer::read_initializers).collect(),
    )
}
