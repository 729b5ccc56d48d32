//! The defaults of entries.

use api_object::Tree;
use serde_json::{Value, json};

use super::configuration_kind::ConfigurationKind;

/// Sets the defaults of all entries of an object whose types are checked.
pub(super) fn set_defaults(kind: ConfigurationKind, tree: &mut Tree) {
    for entry in member_objects_mut(tree, kind.entries_member_name()) {
        match kind {
            ConfigurationKind::Initializer | ConfigurationKind::ExternalHook => {
                set_default(entry, "failurePolicy", || json!("Ignore"));
            }
            ConfigurationKind::Mutating => {
                set_webhook_defaults(entry);
                set_default(entry, "reinvocationPolicy", || json!("Never"));
            }
            ConfigurationKind::Validating => set_webhook_defaults(entry),
        }
    }
}

fn set_webhook_defaults(webhook: &mut Tree) {
    set_default(webhook, "failurePolicy", || json!("Fail"));
    set_default(webhook, "matchPolicy", || json!("Equivalent"));
    set_default(webhook, "namespaceSelector", || json!({}));
    set_default(webhook, "objectSelector", || json!({}));
    set_default(webhook, "timeoutSeconds", || json!(10));
    for rule in member_objects_mut(webhook, "rules") {
        set_default(rule, "scope", || json!("*"));
    }
    let service = webhook.get_mut("clientConfig").and_then(|config| config.get_mut("service"));
    if let Some(service) = service.and_then(Value::as_object_mut) {
        set_default(service, "port", || json!(443));
    }
}

fn set_default(tree: &mut Tree, member: &str, default: impl FnOnce() -> Value) {
    if !tree.contains_key(member) {
        tree.insert(member.to_owned(), default());
    }
}

fn member_objects_mut<'t>(tree: &'t mut Tree, member: &str) -> impl Iterator<Item = &'t mut Tree> {
    let items = tree.get_mut(member).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut)
}
