//! What the audit log is told about hooks (admission §4.12).

use field_errors::label_key_faults;
use serde::Serialize;
use serde_json::Value;

use crate::failure::FailOpenCause;
use crate::observe::Phase;

/// What the audit log is told: in all events but those of a lower level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// Of the form `prefix/name`.
    pub key: String,
    /// The value.
    pub value: String,
    /// From which level on events show it.
    pub level: AnnotationLevel,
}

/// From which level on an audit event shows an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnnotationLevel {
    /// All events.
    Metadata,
    /// Events that also show the request's body: what a hook has patched is part of it.
    Request,
}

/// The annotations of one request in the order in which they came. A key has one value: the first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Annotations {
    pub(crate) all: Vec<Annotation>,
}

/// Where in a request a hook stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) round: u8,
    pub(crate) index: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "round_{}_index_{}", self.round, self.index)
    }
}

impl Annotations {
    /// A mutating hook was called.
    pub(crate) fn mutation(
        &mut self,
        at: Position,
        configuration: &str,
        webhook: &str,
        mutated: bool,
    ) {
        let value = Mutation { configuration, webhook, mutated };
        let value = serde_json::to_string(&value).unwrap_or_default();
        let key = format!("mutation.webhook.admission.k8s.io/{at}");
        self.add(key, value, AnnotationLevel::Metadata);
    }

    /// The patch of a mutating hook was applied.
    pub(crate) fn patch(
        &mut self,
        at: Position,
        configuration: &str,
        webhook: &str,
        patch: &Value,
    ) {
        let value = Patch { configuration, webhook, patch: sorted(patch), patch_type: "JSONPatch" };
        let value = serde_json::to_string(&value).unwrap_or_default();
        let key = format!("patch.webhook.admission.k8s.io/{at}");
        self.add(key, value, AnnotationLevel::Request);
    }

    /// A hook failed for this cause and was ignored. Kubernetes' annotation names hooks that were called.
    pub(crate) fn failed_open(
        &mut self,
        phase: Phase,
        at: Position,
        webhook: &str,
        cause: FailOpenCause,
    ) {
        let phase = match phase {
            Phase::Mutating => "mutation",
            Phase::Validating => "validating",
        };
        let by = format!("failed-open-by.{phase}.webhook.portcullis.io");
        let value = format!("{webhook}: {}", cause.name());
        let key = match cause {
            // Such a hook has no place among those that are called, but one in the list of all.
            FailOpenCause::MatchCondition => format!("{by}/round_{}_list_{}", at.round, at.index),
            _ => {
                let key = format!("failed-open.{phase}.webhook.admission.k8s.io/{at}");
                self.add(key, webhook.to_owned(), AnnotationLevel::Metadata);
                format!("{by}/{at}")
            }
        };
        self.add(key, value, AnnotationLevel::Metadata);
    }

    /// A hook has something to say itself. A key that does not make a name is left out.
    pub(crate) fn told(&mut self, webhook: &str, key: &str, value: String) {
        let key = format!("{webhook}/{key}");
        if key.matches('/').count() == 1 && label_key_faults(&key).is_empty() {
            self.add(key, value, AnnotationLevel::Metadata);
        }
    }

    fn add(&mut self, key: String, value: String, level: AnnotationLevel) {
        if !self.all.iter().any(|known| known.key == key) {
            self.all.push(Annotation { key, value, level });
        }
    }
}

/// The operations with their members in the order of their names, as Go writes them.
fn sorted(patch: &Value) -> Value {
    match patch {
        Value::Array(items) => items.iter().map(sorted_operation).collect(),
        other => other.clone(),
    }
}

fn sorted_operation(operation: &Value) -> Value {
    let Value::Object(members) = operation else { return operation.clone() };
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    members.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[derive(Serialize)]
struct Mutation<'a> {
    configuration: &'a str,
    webhook: &'a str,
    mutated: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Patch<'a> {
    configuration: &'a str,
    webhook: &'a str,
    patch: Value,
    patch_type: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_hooks_are_qualified_names_and_have_one_value() {
        // T-132
        let mut annotations = Annotations::default();
        for (key, value) in [("key1", "a"), ("invalid*key", "b"), ("key1", "c"), ("a/b", "d")] {
            annotations.told("h.x.y", key, value.to_owned());
        }
        let shown: Vec<_> = annotations.all.iter().map(|it| (&*it.key, &*it.value)).collect();
        assert_eq!(shown, [("h.x.y/key1", "a")]);
    }

    #[test]
    fn patches_are_shown_to_those_who_see_the_body() {
        let mut annotations = Annotations::default();
        let patch = serde_json::json!([{"path": "/a", "op": "add", "value": {"z": 1, "b": 2}}]);
        annotations.patch(Position { round: 1, index: 7 }, "c", "w", &patch);
        let annotation = &annotations.all[0];
        assert_eq!(annotation.level, AnnotationLevel::Request);
        assert_eq!(annotation.key, "patch.webhook.admission.k8s.io/round_1_index_7");
        assert_eq!(
            annotation.value,
            "{\"configuration\":\"c\",\"webhook\":\"w\",\"patch\":[{\"op\":\"add\",\"path\":\"/a\",\
             \"value\":{\"z\":1,\"b\":2}}],\"patchType\":\"JSONPatch\"}"
        );
    }
}
