//! Decides which definition may use which names.
//!
//! The definitions of one group share two sets of names: those of resources (plural, singular and short
//! names) and those of kinds (kinds and list kinds). A definition owns the names that its status
//! accepts. It keeps them, and a later definition that claims one of them waits until it is free.

use std::collections::BTreeSet;

use api_object::{Tree, object_member_mut};
use field_errors::aggregate_messages;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::custom_resource_definition::{
    ConditionStatus, CustomResourceDefinition, DefinitionCondition, DefinitionVersion,
    ResourceNames,
};
use super::definition_conditions::set_definition_condition;
use crate::built_in_resources::{BuiltInResource, TABLE};

/// Decides which of its names a definition gets, and records them in its status. Returns whether the status
/// changed. If so, the caller should check the other definitions of the same group again, because a name may have
/// become free.
///
/// `others` are the other definitions; those of other groups are ignored. A resource whose names are accepted is
/// served. After the server begins to serve it, [`mark_established`] records that.
pub fn accept_definition_names<'d>(
    tree: &mut Tree,
    others: impl IntoIterator<Item = &'d CustomResourceDefinition>,
    now: Timestamp,
) -> bool {
    let Some(definition) = CustomResourceDefinition::read(tree) else { return false };
    let built_in = built_in_names(&definition.group);
    let group = others.into_iter().filter(|it| it.group == definition.group);
    let group = group.map(|it| &it.accepted_names).chain(&built_in);
    let (mut accepted, mut conflict) = resolve_definition_names(&definition, group);
    let shadowed = built_in_conflict(&definition, &built_in);
    if conflict.is_none() && shadowed.is_some() {
        (accepted, conflict) = (ResourceNames::default(), shadowed.clone());
    }
    let names_accepted = match conflict {
        None => new_condition("NamesAccepted", true, "NoConflicts", "no conflicts found"),
        Some((reason, message)) => new_condition("NamesAccepted", false, reason, &message),
    };
    let is_accepted = names_accepted.status == ConditionStatus::True;
    let mut is_changed = set_definition_condition(tree, &names_accepted, now);
    // A resource that is already served stays served under its accepted names. A built-in resource is
    // never served by a definition, whatever the status of the definition says.
    if !definition.is_established() || shadowed.is_some() {
        let established = match is_accepted {
            true => {
                let message = "the initial names have been accepted";
                new_condition("Established", false, "Installing", message)
            }
            false => {
                new_condition("Established", false, "NotAccepted", "not all names are accepted")
            }
        };
        is_changed |= set_definition_condition(tree, &established, now);
    }
    is_changed |= definition.accepted_names != accepted;
    if definition.accepted_names != accepted {
        object_member_mut(tree, "status")
            .insert("acceptedNames".to_owned(), resource_names_json(&accepted));
    }
    is_changed
}

/// Records that the resource of a definition is served. Reports whether the status changed.
///
/// The caller does this after the snapshot that serves the resource answers requests, because clients
/// rely on that order.
pub fn mark_established(tree: &mut Tree, now: Timestamp) -> bool {
    let Some(definition) = CustomResourceDefinition::read(tree) else { return false };
    if definition.is_established()
        || !definition.has_true_condition("NamesAccepted")
        || definition.is_being_deleted
    {
        return false;
    }
    let message = "the initial names have been accepted";
    let established = new_condition("Established", true, "InitialNamesAccepted", message);
    set_definition_condition(tree, &established, now)
}

/// The names of the built-in resources of a group.
fn built_in_names(group: &str) -> Vec<ResourceNames> {
    let resources = TABLE.iter().map(BuiltInResource::resource).filter(|own| own.group == group);
    let names = resources.map(|own| ResourceNames {
        plural: own.plural,
        singular: own.singular,
        short_names: own.short_names,
        kind: own.kind,
        list_kind: own.list_kind,
        categories: Vec::new(),
    });
    names.collect()
}

/// The built-in name, kind or version that a definition claims.
fn built_in_conflict(
    definition: &CustomResourceDefinition,
    built_in: &[ResourceNames],
) -> Option<(&'static str, String)> {
    let wanted = &definition.requested_names;
    let is_name =
        |name: &str| built_in.iter().any(|own| own.plural == name || own.singular == name);
    let is_kind = |kind: &str| built_in.iter().any(|own| own.kind == kind || own.list_kind == kind);
    let claims = [
        (is_name(&wanted.plural), "PluralConflict", &wanted.plural),
        (is_name(&wanted.singular), "SingularConflict", &wanted.singular),
        (is_kind(&wanted.kind), "KindConflict", &wanted.kind),
        (is_kind(&wanted.list_kind), "ListKindConflict", &wanted.list_kind),
    ];
    if let Some((_, reason, name)) = claims.into_iter().find(|(is_claimed, ..)| *is_claimed) {
        return Some((reason, name_in_use_message(name)));
    }
    let group = &definition.group;
    let is_built_in = |version: &&DefinitionVersion| {
        version.is_served && TABLE.iter().any(|row| row.matches_version(group, &version.name))
    };
    let version = definition.versions.iter().find(is_built_in)?;
    let group_version = go_compat::quote(&format!("{group}/{}", version.name));
    Some(("VersionConflict", format!("{group_version} is served by the server itself")))
}

/// Returns the names that the definition owns from now on, and the last conflict about the others.
fn resolve_definition_names<'d>(
    definition: &CustomResourceDefinition,
    group: impl Iterator<Item = &'d ResourceNames>,
) -> (ResourceNames, Option<(&'static str, String)>) {
    let (wanted, current) = (&definition.requested_names, &definition.accepted_names);
    // Of the names of a group, which may have thousands of definitions, only the wanted ones matter.
    let is_wanted = |name: &str| {
        name == wanted.plural
            || name == wanted.singular
            || wanted.short_names.iter().any(|own| own == name)
    };
    let is_wanted_kind = |kind: &str| kind == wanted.kind || kind == wanted.list_kind;
    let mut resources: BTreeSet<&str> = BTreeSet::new();
    let mut kinds: BTreeSet<&str> = BTreeSet::new();
    for names in group {
        let own = [&names.plural, &names.singular].into_iter().chain(&names.short_names);
        resources.extend(own.map(String::as_str).filter(|name| is_wanted(name)));
        let own = [names.kind.as_str(), names.list_kind.as_str()];
        kinds.extend(own.into_iter().filter(|kind| is_wanted_kind(kind)));
    }
    let mut accepted = current.clone();
    let mut conflict = None;
    let mut settle =
        |wanted: &str, current: &mut String, taken: &BTreeSet<&str>, reason: &'static str| {
            if wanted != current && taken.contains(wanted) {
                conflict = Some((reason, name_in_use_message(wanted)));
            } else {
                wanted.clone_into(current);
            }
        };
    settle(&wanted.plural, &mut accepted.plural, &resources, "PluralConflict");
    settle(&wanted.singular, &mut accepted.singular, &resources, "SingularConflict");
    settle(&wanted.kind, &mut accepted.kind, &kinds, "KindConflict");
    settle(&wanted.list_kind, &mut accepted.list_kind, &kinds, "ListKindConflict");
    let is_taken =
        |it: &&String| !current.short_names.contains(it) && resources.contains(it.as_str());
    let taken: Vec<String> =
        wanted.short_names.iter().filter(is_taken).map(|it| name_in_use_message(it)).collect();
    if taken.is_empty() {
        accepted.short_names.clone_from(&wanted.short_names);
    } else if !matches!(conflict, Some(("KindConflict" | "ListKindConflict", _))) {
        // Only the last conflict is reported, and kinds come after short names.
        conflict = Some(("ShortNamesConflict", aggregate_messages(&taken)));
    }
    accepted.categories.clone_from(&wanted.categories);
    (accepted, conflict)
}

fn name_in_use_message(name: &str) -> String {
    format!("{} is already in use", go_compat::quote(name))
}

fn new_condition(r#type: &str, is: bool, reason: &str, message: &str) -> DefinitionCondition {
    DefinitionCondition {
        r#type: r#type.to_owned(),
        status: if is { ConditionStatus::True } else { ConditionStatus::False },
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

fn resource_names_json(names: &ResourceNames) -> Value {
    let mut value = json!({ "plural": names.plural, "kind": names.kind });
    let Value::Object(members) = &mut value else { return value };
    for (key, text) in [("singular", &names.singular), ("listKind", &names.list_kind)] {
        if !text.is_empty() {
            members.insert(key.to_owned(), text.as_str().into());
        }
    }
    for (key, texts) in [("shortNames", &names.short_names), ("categories", &names.categories)] {
        if !texts.is_empty() {
            members.insert(key.to_owned(), texts.as_slice().into());
        }
    }
    value
}
