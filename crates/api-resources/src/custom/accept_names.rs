//! Which definition may use which names.
//!
//! Definitions of one group share two sets of names: those of resources (plurals, singulars, short
//! names) and those of kinds (kinds and list kinds). A definition keeps the names that it has; a
//! later one waits until they are free. A definition has the names that its status accepts.

use std::collections::BTreeSet;

use api_object::{Tree, object_mut};
use field_errors::aggregate;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::definition::{Condition, ConditionStatus, Definition, Names, Version};
use super::lifecycle::set_condition;
use crate::built_in::{BuiltIn, TABLE};

/// Decides which of its names a definition gets, and records that in its status. Reports whether
/// the status changed; then the other definitions of its group should be checked again, because a
/// name may be free.
///
/// `others` are the other definitions, of any group. A resource whose names are accepted is served;
/// once it is, [`mark_established`] records that.
pub fn accept_names(tree: &mut Tree, others: &[Definition], now: Timestamp) -> bool {
    let Some(definition) = Definition::read(tree) else { return false };
    let built_in = built_in_names(&definition.group);
    let group = others.iter().filter(|it| it.group == definition.group);
    let group = group.map(|it| &it.accepted_names).chain(&built_in);
    let group: Vec<&Names> = group.collect();
    let (mut accepted, mut conflict) = accept(&definition, &group);
    let shadowed = built_in_conflict(&definition, &built_in);
    if conflict.is_none() && shadowed.is_some() {
        (accepted, conflict) = (Names::default(), shadowed.clone());
    }
    let names_accepted = match conflict {
        None => condition("NamesAccepted", true, "NoConflicts", "no conflicts found"),
        Some((reason, message)) => condition("NamesAccepted", false, reason, &message),
    };
    let is_accepted = names_accepted.status == ConditionStatus::True;
    let mut is_news = set_condition(tree, &names_accepted, now);
    // A resource that has been served goes on being served by the names that it has, but one of the program
    // is never served by a definition, whatever its status said before.
    if !definition.is_established() || shadowed.is_some() {
        let established = match is_accepted {
            true => {
                let message = "the initial names have been accepted";
                condition("Established", false, "Installing", message)
            }
            false => condition("Established", false, "NotAccepted", "not all names are accepted"),
        };
        is_news |= set_condition(tree, &established, now);
    }
    is_news |= definition.accepted_names != accepted;
    if definition.accepted_names != accepted {
        object_mut(tree, "status").insert("acceptedNames".to_owned(), names_json(&accepted));
    }
    is_news
}

/// Records that the resource of a definition is served. Reports whether the status changed.
///
/// The caller does this once the snapshot that serves it answers requests: clients rely on that
/// order.
pub fn mark_established(tree: &mut Tree, now: Timestamp) -> bool {
    let Some(definition) = Definition::read(tree) else { return false };
    if definition.is_established() || !definition.is("NamesAccepted") || definition.is_deleted {
        return false;
    }
    let message = "the initial names have been accepted";
    let established = condition("Established", true, "InitialNamesAccepted", message);
    set_condition(tree, &established, now)
}

/// The names that resources of the program have in a group.
fn built_in_names(group: &str) -> Vec<Names> {
    let resources = TABLE.iter().map(BuiltIn::resource).filter(|own| own.group == group);
    let names = resources.map(|own| Names {
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
    definition: &Definition,
    built_in: &[Names],
) -> Option<(&'static str, String)> {
    let wanted = &definition.names;
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
        return Some((reason, in_use(name)));
    }
    let group = &definition.group;
    let is_built_in = |version: &&Version| {
        version.is_served && TABLE.iter().any(|row| row.matches_version(group, &version.name))
    };
    let version = definition.versions.iter().find(is_built_in)?;
    let group_version = go_compat::quote(&format!("{group}/{}", version.name));
    Some(("VersionConflict", format!("{group_version} is served by the server itself")))
}

/// The names that the definition has from now on, and the last conflict about the others.
fn accept(definition: &Definition, group: &[&Names]) -> (Names, Option<(&'static str, String)>) {
    let (wanted, current) = (&definition.names, &definition.accepted_names);
    let mut resources: BTreeSet<&str> = BTreeSet::new();
    let mut kinds: BTreeSet<&str> = BTreeSet::new();
    for names in group {
        resources.extend([names.plural.as_str(), names.singular.as_str()]);
        resources.extend(names.short_names.iter().map(String::as_str));
        kinds.extend([names.kind.as_str(), names.list_kind.as_str()]);
    }
    let mut accepted = current.clone();
    let mut conflict = None;
    let mut settle =
        |wanted: &str, current: &mut String, taken: &BTreeSet<&str>, reason: &'static str| {
            if wanted != current && taken.contains(wanted) {
                conflict = Some((reason, in_use(wanted)));
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
        wanted.short_names.iter().filter(is_taken).map(|it| in_use(it)).collect();
    if taken.is_empty() {
        accepted.short_names.clone_from(&wanted.short_names);
    } else if !matches!(conflict, Some(("KindConflict" | "ListKindConflict", _))) {
        // Of several conflicts the last is told, and kinds come after short names.
        conflict = Some(("ShortNamesConflict", aggregate(&taken)));
    }
    accepted.categories.clone_from(&wanted.categories);
    (accepted, conflict)
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", go_compat::quote(name))
}

fn condition(r#type: &str, is: bool, reason: &str, message: &str) -> Condition {
    Condition {
        r#type: r#type.to_owned(),
        status: if is { ConditionStatus::True } else { ConditionStatus::False },
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

fn names_json(names: &Names) -> Value {
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
