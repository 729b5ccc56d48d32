//! Label and field selectors over objects.

use authz::{FieldOperator, FieldRequirement, LabelOperator, LabelRequirement};
use serde_json::Value;

use crate::object_tree::{Tree, metadata};

/// Reports whether the labels of an object satisfy all requirements.
#[must_use]
pub fn matches_labels(requirements: &[LabelRequirement], tree: &Tree) -> bool {
    let labels = metadata(tree).get("labels").and_then(Value::as_object);
    requirements.iter().all(|requirement| {
        let value = labels.and_then(|labels| labels.get(&requirement.key)).and_then(Value::as_str);
        matches_label(requirement, value)
    })
}

fn matches_label(requirement: &LabelRequirement, value: Option<&str>) -> bool {
    let is_listed = || value.is_some_and(|value| requirement.values.iter().any(|own| own == value));
    match requirement.operator {
        LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::In => is_listed(),
        LabelOperator::NotEquals | LabelOperator::NotIn => !is_listed(),
        LabelOperator::Exists => value.is_some(),
        LabelOperator::DoesNotExist => value.is_none(),
        LabelOperator::GreaterThan => {
            compare_label_integers(requirement, value, |own, limit| own > limit)
        }
        LabelOperator::LessThan => {
            compare_label_integers(requirement, value, |own, limit| own < limit)
        }
    }
}

fn compare_label_integers(
    requirement: &LabelRequirement,
    value: Option<&str>,
    holds: impl Fn(i64, i64) -> bool,
) -> bool {
    let own = value.and_then(|value| value.parse().ok());
    let limit = requirement.values.first().and_then(|limit| limit.parse().ok());
    own.zip(limit).is_some_and(|(own, limit)| holds(own, limit))
}

/// Reports whether the fields of an object satisfy all requirements; `read` returns the value of a
/// field.
pub fn matches_fields<'t>(
    requirements: &[FieldRequirement],
    mut read: impl FnMut(&str) -> std::borrow::Cow<'t, str>,
) -> bool {
    requirements.iter().all(|requirement| {
        let is_equal = read(&requirement.field) == requirement.value;
        is_equal == (requirement.operator == FieldOperator::Equals)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matches(selector: &str, labels: Value) -> bool {
        let mut tree = Tree::new();
        tree.insert("metadata".to_owned(), json!({"labels": labels}));
        matches_labels(&authz::parse_label_selector(selector).unwrap(), &tree)
    }

    #[test]
    fn each_operator_selects_its_subset() {
        for (selector, labels, want) in [
            ("a", json!({"a": ""}), true),
            ("a", json!({}), false),
            ("!a", json!({}), true),
            ("a in (x)", json!({"a": "x"}), true),
            ("a in (x)", json!({}), false),
            ("a notin (x)", json!({}), true),
            ("a notin (x)", json!({"a": "x"}), false),
            ("a!=x", json!({}), true),
            ("a>1", json!({"a": "2"}), true),
            ("a>1", json!({"a": "1"}), false),
            ("a<1", json!({"a": "0"}), true),
            ("a<1", json!({"a": "z"}), false),
            ("", json!({}), true),
        ] {
            assert_eq!(matches(selector, labels.clone()), want, "{selector} {labels}");
        }
    }

    #[test]
    fn fields_are_equal_or_not() {
        let requirements = authz::parse_field_selector("metadata.name=a,spec.x!=b").unwrap();
        let read = |name: &'static str, x: &'static str| {
            move |field: &str| if field == "spec.x" { x.into() } else { name.into() }
        };
        assert!(matches_fields(&requirements, read("a", "c")));
        assert!(!matches_fields(&requirements, read("a", "b")));
        assert!(!matches_fields(&requirements, read("z", "c")));
    }
}
