//! What entries say when they say nothing.

use api_object::Tree;
use serde_json::{Value, json};

use super::kind::ConfigurationKind;

/// Sets the defaults of all entries of an object that has its shape.
pub(super) fn set(kind: ConfigurationKind, tree: &mut Tree) {
    for entry in items_mut(tree, kind.list()) {
        match kind {
            ConfigurationKind::Initializer | ConfigurationKind::ExternalHook => {
                set_member(entry, "failurePolicy", || json!("Ignore"));
            }
            ConfigurationKind::Mutating => {
                set_webhook(entry);
                set_member(entry, "reinvocationPolicy", || json!("Never"));
            }
            ConfigurationKind::Validating => set_webhook(entry),
        }
    }
}

fn set_webhook(webhook: &mut Tree) {
    set_member(webhook, "failurePolicy", || json!("Fail"));
    set_member(webhook, "matchPolicy", || json!("Equivalent"));
    set_member(webhook, "namespaceSelector", || json!({}));
    set_member(webhook, "objectSelector", || json!({}));
    set_member(webhook, "timeoutSeconds", || json!(10));
    for rule in items_mut(webhook, "rules") {
        set_member(rule, "scope", || json!("*"));
    }
    let service = webhook.get_mut("clientConfig").and_then(|config| config.get_mut("service"));
    if let Some(service) = service.and_then(Value::as_object_mut) {
        set_member(service, "port", || json!(443));
    }
}

fn set_member(tree: &mut Tree, member: &str, default: impl FnOnce() -> Value) {
    if !tree.contains_key(member) {
        tree.insert(member.to_owned(), default());
    }
}

fn items_mut<'t>(tree: &'t mut Tree, member: &str) -> impl Iterator<Item = &'t mut Tree> {
    let items = tree.get_mut(member).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut)
}
