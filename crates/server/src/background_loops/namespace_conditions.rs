//! The conditions of a terminating namespace, which say why it still exists. Types, reasons and messages are those
//! of the namespace controller of Kubernetes.

use std::collections::BTreeMap;

use api_object::Tree;
use api_resources::Resource;
use serde_json::{Value, json};

/// How many resources, finalizers or failures a message names. Tenants choose the names of finalizers.
const NAMED_MAX: usize = 50;

/// How many characters of a failure a message has. Webhooks choose the texts of their refusals.
const FAILURE_CHARS_MAX: usize = 1024;

/// The contents of a namespace that are left after an attempt to delete them.
#[derive(Debug, Default)]
pub(super) struct RemainingNamespaceContents {
    /// The number of objects by resource and group.
    object_counts_by_resource: BTreeMap<String, usize>,
    /// The number of objects by finalizer.
    finalizers: BTreeMap<String, usize>,
    /// Why objects could not be deleted, by resource.
    deletion_failures: BTreeMap<String, String>,
}

impl RemainingNamespaceContents {
    /// Records an object that is left, with the finalizers that it has.
    pub(super) fn record_remaining_object(&mut self, resource: &Resource, finalizers: &[&str]) {
        let key = format!("{}.{}", resource.plural, resource.group);
        *self.object_counts_by_resource.entry(key).or_default() += 1;
        for finalizer in finalizers {
            match self.finalizers.get_mut(*finalizer) {
                Some(n_objects) => *n_objects += 1,
                None => drop(self.finalizers.insert((*finalizer).to_owned(), 1)),
            }
        }
    }

    /// Records why an object of a resource could not be deleted. The first reason of a resource stays.
    pub(super) fn record_deletion_failure(&mut self, resource: &Resource, why: &str) {
        let key = format!("{}.{}", resource.plural, resource.group);
        self.deletion_failures
            .entry(key)
            .or_insert_with(|| why.chars().take(FAILURE_CHARS_MAX).collect());
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.object_counts_by_resource.is_empty() && self.deletion_failures.is_empty()
    }

    /// Writes the conditions into a namespace, and returns whether that changed it. A namespace without remaining
    /// contents gets no new conditions.
    pub(super) fn write_namespace_conditions(&self, namespace: &mut Tree, now: &str) -> bool {
        let status = api_object::object_member_mut(namespace, "status");
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        let Value::Array(conditions) = conditions else { return false };
        if self.is_empty() && conditions.is_empty() {
            return false;
        }
        let mut is_changed = false;
        for condition in self.conditions() {
            is_changed |= condition.write(conditions, now);
        }
        is_changed
    }

    fn conditions(&self) -> [NamespaceCondition; 5] {
        let failed = (!self.deletion_failures.is_empty()).then(|| {
            let texts = join_first_texts(self.deletion_failures.values().cloned().collect());
            let n_failures = self.deletion_failures.len();
            (
                "ContentDeletionFailed",
                format!("Failed to delete all resource types, {n_failures} remaining: {texts}"),
            )
        });
        let remaining = (!self.object_counts_by_resource.is_empty()).then(|| {
            let line = |(key, n): (&String, &usize)| format!("{key} has {n} resource instances");
            let texts = join_first_texts(self.object_counts_by_resource.iter().map(line).collect());
            ("SomeResourcesRemain", format!("Some resources are remaining: {texts}"))
        });
        let finalizers = (!self.finalizers.is_empty()).then(|| {
            let line = |(name, n): (&String, &usize)| format!("{name} in {n} resource instances");
            let texts = join_first_texts(self.finalizers.iter().map(line).collect());
            (
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {texts}"),
            )
        });
        let removed = ("ContentRemoved", "All content successfully removed");
        [
            // The registry of this server is always complete.
            NamespaceCondition::new(
                "NamespaceDeletionDiscoveryFailure",
                None,
                ("ResourcesDiscovered", "All resources successfully discovered"),
            ),
            NamespaceCondition::new(
                "NamespaceDeletionGroupVersionParsingFailure",
                None,
                ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
            ),
            NamespaceCondition::new(
                "NamespaceDeletionContentFailure",
                failed,
                (
                    "ContentDeleted",
                    "All content successfully deleted, may be waiting on finalization",
                ),
            ),
            NamespaceCondition::new("NamespaceContentRemaining", remaining, removed),
            NamespaceCondition::new("NamespaceFinalizersRemaining", finalizers, removed),
        ]
    }
}

struct NamespaceCondition {
    condition_type: &'static str,
    is_condition_true: bool,
    reason: &'static str,
    message: String,
}

impl NamespaceCondition {
    /// A condition that is true with this reason and message, or else false with the others.
    fn new(
        condition_type: &'static str,
        problem: Option<(&'static str, String)>,
        otherwise: (&'static str, &str),
    ) -> Self {
        let is_condition_true = problem.is_some();
        let (reason, message) = problem.unwrap_or((otherwise.0, otherwise.1.to_owned()));
        Self { condition_type, is_condition_true, reason, message }
    }

    /// Adds the condition, or changes the condition of the same type. Returns whether anything changed. The time of the
    /// transition is that of the last change between true and false.
    fn write(self, conditions: &mut Vec<Value>, now: &str) -> bool {
        let status = if self.is_condition_true { "True" } else { "False" };
        let is_own = |known: &&mut Value| known["type"] == self.condition_type;
        let Some(known) = conditions.iter_mut().find(is_own) else {
            conditions.push(json!({
                "type": self.condition_type,
                "status": status,
                "lastTransitionTime": now,
                "reason": self.reason,
                "message": self.message,
            }));
            return true;
        };
        if known["status"] == status
            && known["reason"] == self.reason
            && known["message"] == self.message.as_str()
        {
            return false;
        }
        let changed_at = match known["status"] == status {
            true => known["lastTransitionTime"].clone(),
            false => now.into(),
        };
        *known = json!({
            "type": self.condition_type,
            "status": status,
            "lastTransitionTime": changed_at,
            "reason": self.reason,
            "message": self.message,
        });
        true
    }
}

/// Joins the first texts in sorted order, and appends the number of the others.
fn join_first_texts(mut texts: Vec<String>) -> String {
    texts.sort_unstable();
    let n_more = texts.len().saturating_sub(NAMED_MAX);
    texts.truncate(NAMED_MAX);
    let more = if n_more > 0 { format!(", and {n_more} more") } else { String::new() };
    texts.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use api_resources::Registry;

    use super::*;

    fn condition<'t>(tree: &'t Tree, condition_type: &str) -> &'t Value {
        let conditions = tree["status"]["conditions"].as_array().unwrap();
        conditions.iter().find(|own| own["type"] == condition_type).unwrap()
    }

    #[test]
    fn a_namespace_says_what_keeps_it() {
        let registry = Registry::with_built_in_resources();
        let config_maps = registry.resource("", "v1", "configmaps").unwrap();
        let leases = registry.resource("coordination.k8s.io", "v1", "leases").unwrap();
        let mut left = RemainingNamespaceContents::default();
        let mut tree = Tree::new();
        assert!(!left.write_namespace_conditions(&mut tree, "then"));
        left.record_remaining_object(config_maps, &["a/b", "c/d"]);
        left.record_remaining_object(config_maps, &["a/b"]);
        left.record_remaining_object(leases, &[]);
        left.record_deletion_failure(leases, "a hook denied it");
        assert!(left.write_namespace_conditions(&mut tree, "then"));
        assert!(!left.write_namespace_conditions(&mut tree, "later"));
        for (condition_type, status, reason, message) in [
            (
                "NamespaceDeletionDiscoveryFailure",
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            (
                "NamespaceDeletionContentFailure",
                "True",
                "ContentDeletionFailed",
                "Failed to delete all resource types, 1 remaining: a hook denied it",
            ),
            (
                "NamespaceContentRemaining",
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 2 resource instances, \
                 leases.coordination.k8s.io has 1 resource instances",
            ),
            (
                "NamespaceFinalizersRemaining",
                "True",
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: a/b in 2 resource instances, \
                 c/d in 1 resource instances",
            ),
        ] {
            let want = json!({"type": condition_type, "status": status, "reason": reason,
                "message": message, "lastTransitionTime": "then"});
            assert_eq!(*condition(&tree, condition_type), want);
        }
        // A condition that is no longer true becomes false, with the time of the change.
        assert!(
            RemainingNamespaceContents::default().write_namespace_conditions(&mut tree, "later")
        );
        let failure = condition(&tree, "NamespaceDeletionContentFailure");
        assert_eq!(
            (&failure["status"], &failure["lastTransitionTime"]),
            (&json!("False"), &json!("later"))
        );
        let discovery = condition(&tree, "NamespaceDeletionDiscoveryFailure");
        assert_eq!(discovery["lastTransitionTime"], "then");
    }

    #[test]
    fn a_message_names_a_limited_number_of_finalizers() {
        let registry = Registry::with_built_in_resources();
        let config_maps = registry.resource("", "v1", "configmaps").unwrap();
        let mut left = RemainingNamespaceContents::default();
        let names: Vec<String> = (0..NAMED_MAX + 7).map(|n| format!("example.com/{n}")).collect();
        left.record_remaining_object(
            config_maps,
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        let mut tree = Tree::new();
        left.write_namespace_conditions(&mut tree, "now");
        let message = condition(&tree, "NamespaceFinalizersRemaining")["message"].to_string();
        assert!(message.contains(", and 7 more"), "{message}");
    }
}
