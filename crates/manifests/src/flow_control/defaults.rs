//! The defaults of the two kinds. They apply to every object that is read, also to stored ones.

use serde_json::{Map, Value};

use super::Kind;

/// Sets the fields that the author left out. A value of a wrong type stays unchanged.
pub fn set_flow_control_defaults(kind: Kind, tree: &mut Map<String, Value>) {
    match kind {
        Kind::FlowSchema => {
            let spec = tree.entry("spec").or_insert(Value::Null);
            if spec.is_null() {
                *spec = Value::Object(Map::new());
            }
            set_if_absent_or_zero(spec.as_object_mut(), "matchingPrecedence", 1000);
        }
        Kind::PriorityLevelConfiguration => set_priority_level_defaults(tree),
    }
}

fn set_priority_level_defaults(tree: &mut Map<String, Value>) {
    let Some(spec) = object_member_mut(Some(tree), "spec") else { return };
    let mut limited = object_member_mut(Some(&mut *spec), "limited");
    set_if_absent(limited.as_deref_mut(), "nominalConcurrencyShares", 30);
    set_if_absent(limited.as_deref_mut(), "lendablePercent", 0);
    let mut queuing = object_member_mut(object_member_mut(limited, "limitResponse"), "queuing");
    set_if_absent_or_zero(queuing.as_deref_mut(), "handSize", 8);
    set_if_absent_or_zero(queuing.as_deref_mut(), "queues", 64);
    set_if_absent_or_zero(queuing, "queueLengthLimit", 50);
    let mut exempt = object_member_mut(Some(spec), "exempt");
    set_if_absent(exempt.as_deref_mut(), "nominalConcurrencyShares", 0);
    set_if_absent(exempt, "lendablePercent", 0);
}

fn object_member_mut<'t>(
    tree: Option<&'t mut Map<String, Value>>,
    member: &str,
) -> Option<&'t mut Map<String, Value>> {
    tree?.get_mut(member)?.as_object_mut()
}

fn set_if_absent(tree: Option<&mut Map<String, Value>>, member: &str, default: i32) {
    let Some(tree) = tree else { return };
    if tree.get(member).is_none_or(Value::is_null) {
        tree.insert(member.to_owned(), default.into());
    }
}

/// Sets a number for which zero means the same as absent.
fn set_if_absent_or_zero(tree: Option<&mut Map<String, Value>>, member: &str, default: i32) {
    let Some(tree) = tree else { return };
    if tree.get(member).is_none_or(|value| value.is_null() || value.as_i64() == Some(0)) {
        tree.insert(member.to_owned(), default.into());
    }
}
