//! The annotations that hooks add to the audit event of a request.

use field_errors::label_key_faults;
use serde::Serialize;
use serde_json::Value;

use crate::call_failure::HookFailureCause;
use crate::hook_observer::Phase;

/// The limit on the annotations of one response that are read. Hooks add a few.
pub(crate) const RESPONSE_ANNOTATIONS_MAX: usize = 64;

/// The limit on the annotations that all hooks of a request choose together. An audit event has room for twice as
/// many, so that hooks do not displace the annotations of the server.
const HOOK_ANNOTATIONS_MAX: usize = 128;

/// An annotation of an audit event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditAnnotation {
    /// The key, of the form `prefix/name`.
    pub key: String,
    /// The text of the annotation.
    pub value: String,
    /// The lowest audit level that shows the annotation.
    pub annotation_level: AnnotationLevel,
}

/// The lowest audit level that shows an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnnotationLevel {
    /// Every level that records events.
    Metadata,
    /// Levels that record request bodies, because a patch contains parts of the body.
    Request,
}

/// The annotations of one request, in the order of their addition. The first value of a key wins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct AuditAnnotations {
    pub(crate) items: Vec<AuditAnnotation>,
    /// The number of items that responses of hooks added.
    n_annotations_from_hooks: usize,
}

/// The round and the index of a hook, as annotation keys name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HookPosition {
    pub(crate) round: u8,
    pub(crate) index: usize,
}

impl std::fmt::Display for HookPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "round_{}_index_{}", self.round, self.index)
    }
}

impl AuditAnnotations {
    /// Adds that a mutating hook was called.
    pub(crate) fn add_mutation_annotation(
        &mut self,
        at: HookPosition,
        configuration: &str,
        webhook: &str,
        mutated: bool,
    ) {
        let value = MutationAnnotation { configuration, webhook, mutated };
        let value = serde_json::to_string(&value).unwrap_or_default();
        let key = format!("mutation.webhook.admission.k8s.io/{at}");
        self.add_annotation(key, value, AnnotationLevel::Metadata);
    }

    /// Adds the applied patch of a mutating hook.
    pub(crate) fn add_patch_annotation(
        &mut self,
        at: HookPosition,
        configuration: &str,
        webhook: &str,
        patch: &Value,
    ) {
        let value = PatchAnnotation {
            configuration,
            webhook,
            patch: sort_patch_members(patch),
            patch_type: "JSONPatch",
        };
        let value = serde_json::to_string(&value).unwrap_or_default();
        let key = format!("patch.webhook.admission.k8s.io/{at}");
        self.add_annotation(key, value, AnnotationLevel::Request);
    }

    /// Adds that the failure of a hook was ignored. The annotation of Kubernetes exists only for hooks that
    /// were called.
    pub(crate) fn add_fail_open_annotation(
        &mut self,
        phase: Phase,
        at: HookPosition,
        webhook: &str,
        cause: HookFailureCause,
    ) {
        let phase = match phase {
            Phase::Mutating => "mutation",
            Phase::Validating => "validating",
        };
        let by = format!("failed-open-by.{phase}.webhook.portcullis.io");
        let value = format!("{webhook}: {}", cause.name());
        let key = match cause {
            // The hook was not called, so it has no index among the called hooks; the key has its index in
            // the list of all hooks.
            HookFailureCause::MatchCondition => {
                format!("{by}/round_{}_list_{}", at.round, at.index)
            }
            HookFailureCause::Connect
            | HookFailureCause::Tls
            | HookFailureCause::ConnectionLost
            | HookFailureCause::Timeout
            | HookFailureCause::HttpStatus
            | HookFailureCause::BadAnswer
            | HookFailureCause::Configuration => {
                let key = format!("failed-open.{phase}.webhook.admission.k8s.io/{at}");
                self.add_annotation(key, webhook.to_owned(), AnnotationLevel::Metadata);
                format!("{by}/{at}")
            }
        };
        self.add_annotation(key, value, AnnotationLevel::Metadata);
    }

    /// Adds an annotation of a response. Keys that are not valid names, and annotations beyond the limit, are
    /// dropped.
    pub(crate) fn add_hook_annotation(&mut self, webhook: &str, key: &str, value: String) {
        if self.n_annotations_from_hooks >= HOOK_ANNOTATIONS_MAX {
            return;
        }
        let key = format!("{webhook}/{key}");
        if key.matches('/').count() == 1
            && label_key_faults(&key).is_empty()
            && self.add_annotation(key, value, AnnotationLevel::Metadata)
        {
            self.n_annotations_from_hooks += 1;
        }
    }

    /// Adds an annotation, and reports whether it did. INVARIANT: hooks choose few of the items, so a scan is
    /// short.
    fn add_annotation(&mut self, key: String, value: String, level: AnnotationLevel) -> bool {
        let is_new = !self.items.iter().any(|known| known.key == key);
        if is_new {
            self.items.push(AuditAnnotation { key, value, annotation_level: level });
        }
        is_new
    }
}

/// The operations with their members sorted by name, as Go encodes them.
fn sort_patch_members(patch: &Value) -> Value {
    match patch {
        Value::Array(items) => items.iter().map(sort_operation_members).collect(),
        other => other.clone(),
    }
}

fn sort_operation_members(operation: &Value) -> Value {
    let Value::Object(members) = operation else { return operation.clone() };
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    members.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[derive(Serialize)]
struct MutationAnnotation<'a> {
    configuration: &'a str,
    webhook: &'a str,
    mutated: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchAnnotation<'a> {
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
        let mut annotations = AuditAnnotations::default();
        for (key, value) in [("key1", "a"), ("invalid*key", "b"), ("key1", "c"), ("a/b", "d")] {
            annotations.add_hook_annotation("h.x.y", key, value.to_owned());
        }
        let shown: Vec<_> = annotations.items.iter().map(|it| (&*it.key, &*it.value)).collect();
        assert_eq!(shown, [("h.x.y/key1", "a")]);
    }

    /// A20: hooks together choose at most 128 annotations, and those of the server itself are not among them.
    #[test]
    fn a20_hooks_choose_a_limited_number_of_annotations() {
        let mut annotations = AuditAnnotations::default();
        for idx in 0..HOOK_ANNOTATIONS_MAX + 10 {
            annotations.add_hook_annotation("h.x.y", &format!("key{idx}"), String::new());
        }
        assert_eq!(annotations.items.len(), HOOK_ANNOTATIONS_MAX);
        annotations.add_mutation_annotation(HookPosition { round: 0, index: 0 }, "c", "w", true);
        assert_eq!(annotations.items.len(), HOOK_ANNOTATIONS_MAX + 1);
    }

    #[test]
    fn patches_are_shown_to_those_who_see_the_body() {
        let mut annotations = AuditAnnotations::default();
        let patch = serde_json::json!([{"path": "/a", "op": "add", "value": {"z": 1, "b": 2}}]);
        annotations.add_patch_annotation(HookPosition { round: 1, index: 7 }, "c", "w", &patch);
        let annotation = &annotations.items[0];
        assert_eq!(annotation.annotation_level, AnnotationLevel::Request);
        assert_eq!(annotation.key, "patch.webhook.admission.k8s.io/round_1_index_7");
        assert_eq!(
            annotation.value,
            "{\"configuration\":\"c\",\"webhook\":\"w\",\"patch\":[{\"op\":\"add\",\"path\":\"/a\",\
             \"value\":{\"z\":1,\"b\":2}}],\"patchType\":\"JSONPatch\"}"
        );
    }
}
