//! Decides which default objects the server updates.
//!
//! The server keeps the spec of a suggested object up to date while its annotation says so. An administrator
//! who wants another spec sets the annotation to `false`. Mandatory objects always get their spec back.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use flow_control::bootstrap_objects::EXEMPT;

use super::{AUTO_UPDATE_ANNOTATION, Kind, set_flow_control_defaults, wire};

/// Whether administrators may change a default object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MandatoryOrSuggested {
    /// The server restores the spec, so administrators cannot change it.
    Mandatory,
    /// Administrators may change the spec after they set the auto-update annotation to `false`.
    Suggested,
}

/// Returns the stored object with the changes that it needs; `None` if it needs none.
///
/// 1. The spec is updated if the object is mandatory, if the annotation is true, or if the annotation is
///    absent and the spec was never changed.
/// 2. The annotation is set to `true` if the server updates the spec, else to `false`.
#[must_use]
pub fn update_default_flow_control_object(
    kind: Kind,
    class: MandatoryOrSuggested,
    default: &Map<String, Value>,
    stored: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let annotation = auto_update_annotation(stored);
    let updates_spec = match class {
        MandatoryOrSuggested::Mandatory => true,
        MandatoryOrSuggested::Suggested => annotation.unwrap_or_else(|| generation(stored) == 1),
    };
    let is_annotation_stale = annotation != Some(updates_spec);
    let is_spec_stale = updates_spec && !is_spec_equal_to_default(kind, default, stored);
    if !is_annotation_stale && !is_spec_stale {
        return None;
    }
    let mut updated = stored.clone();
    if is_spec_stale && let Some(spec) = default.get("spec") {
        updated.insert("spec".to_owned(), spec.clone());
    }
    if is_annotation_stale {
        set_auto_update_annotation(&mut updated, updates_spec);
    }
    Some(updated)
}

/// Reports whether the annotation of an object says that the server keeps its spec up to date.
#[must_use]
pub fn is_auto_updated(stored: &Map<String, Value>) -> bool {
    auto_update_annotation(stored) == Some(true)
}

/// Writes the annotation of a default object.
pub fn set_auto_update_annotation(tree: &mut Map<String, Value>, updates_spec: bool) {
    let annotations = ensure_object_member(ensure_object_member(tree, "metadata"), "annotations");
    annotations.insert(AUTO_UPDATE_ANNOTATION.to_owned(), updates_spec.to_string().into());
}

/// The value of the annotation, if it is one of Go's texts for a boolean.
fn auto_update_annotation(tree: &Map<String, Value>) -> Option<bool> {
    let annotations = tree.get("metadata")?.get("annotations")?;
    match annotations.get(AUTO_UPDATE_ANNOTATION)?.as_str()? {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

fn generation(tree: &Map<String, Value>) -> i64 {
    let generation = tree.get("metadata").and_then(|metadata| metadata.get("generation"));
    generation.and_then(Value::as_i64).unwrap_or(0)
}

/// Reports whether the specs are equal. The field `exempt` of the level `exempt` is not compared,
/// because administrators may change it.
fn is_spec_equal_to_default(
    kind: Kind,
    default: &Map<String, Value>,
    stored: &Map<String, Value>,
) -> bool {
    match kind {
        Kind::FlowSchema => {
            let (want, have) = (spec::<wire::FlowSchemaSpec>(kind, default), spec(kind, stored));
            want.is_some() && want == have
        }
        Kind::PriorityLevelConfiguration => {
            let want: Option<wire::FlowControlObject<wire::PriorityLevelSpec>> =
                decode_flow_control_object(kind, default);
            let have: Option<wire::FlowControlObject<wire::PriorityLevelSpec>> =
                decode_flow_control_object(kind, stored);
            let (Some(mut want), Some(have)) = (want, have) else { return false };
            if want.metadata.name == EXEMPT && have.spec.exempt.is_some() {
                want.spec.exempt.clone_from(&have.spec.exempt);
            }
            want.spec == have.spec
        }
    }
}

fn spec<Spec: Default + DeserializeOwned>(kind: Kind, tree: &Map<String, Value>) -> Option<Spec> {
    Some(decode_flow_control_object(kind, tree)?.spec)
}

fn decode_flow_control_object<Spec: Default + DeserializeOwned>(
    kind: Kind,
    tree: &Map<String, Value>,
) -> Option<wire::FlowControlObject<Spec>> {
    let mut tree = tree.clone();
    set_flow_control_defaults(kind, &mut tree);
    wire::FlowControlObject::deserialize(&tree).ok()
}

/// The object at a member; anything else there is replaced by an empty object.
fn ensure_object_member<'t>(
    tree: &'t mut Map<String, Value>,
    member: &str,
) -> &'t mut Map<String, Value> {
    let value = tree.entry(member).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(members) => members,
        #[expect(clippy::unreachable, reason = "INVARIANT: the statement above made it an object")]
        _ => unreachable!(),
    }
}
