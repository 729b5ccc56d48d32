//! The `attributes` of one authorization request in a vector.

use crate::vectors::UnusableVector;
use authz::{
    Attributes, FieldRequirement, LabelRequirement, Namespace, Resource, Selector, Target, User,
    Verb, parse_field_selector, parse_label_selector,
};
use serde_json::Value;

/// The recorded attributes of a request, with the parts that [`Attributes`] borrow.
pub(super) struct RecordedAttributes<'v> {
    attributes: &'v Value,
    user: Option<User>,
    field_selector: Option<Selector<FieldRequirement>>,
    label_selector: Option<Selector<LabelRequirement>>,
}

impl<'v> RecordedAttributes<'v> {
    /// Reads the `attributes` of a vector.
    pub(super) fn read(attributes: &'v Value) -> Result<Self, UnusableVector> {
        if !attributes.is_object() {
            return Err(UnusableVector::new("`attributes` is missing or not an object"));
        }
        Ok(Self {
            attributes,
            user: parse_user(&attributes["user"])?,
            field_selector: Selector::from_selector_parse_result(parse_field_selector(text(
                attributes,
                "fieldSelector",
            ))),
            label_selector: Selector::from_selector_parse_result(parse_label_selector(text(
                attributes,
                "labelSelector",
            ))),
        })
    }

    /// The attributes in the form that authorizers take.
    pub(super) fn attributes(&self) -> Attributes<'_> {
        let path = text(self.attributes, "path");
        let target = match self.attributes.get("resource") {
            Some(resource) => Target::Resource(Resource {
                path,
                api_group: text(resource, "group"),
                api_version: text(resource, "version"),
                namespace: Namespace::new(text(resource, "namespace")),
                resource: text(resource, "resource"),
                subresource: text(resource, "subresource"),
                name: text(resource, "name"),
                field_selector: self.field_selector.as_ref(),
                label_selector: self.label_selector.as_ref(),
            }),
            None => Target::Path(path),
        };
        Attributes {
            user: self.user.as_ref(),
            verb: Verb::new(text(self.attributes, "verb")),
            target,
        }
    }
}

/// Reads a user; `null` or an absent member means that there is no user.
pub(super) fn parse_user(value: &Value) -> Result<Option<User>, UnusableVector> {
    if value.is_null() {
        return Ok(None);
    }
    let mut user = User {
        name: text(value, "name").to_owned(),
        uid: text(value, "uid").to_owned(),
        groups: parse_strings(&value["groups"], "groups")?,
        ..User::default()
    };
    if let Some(extra) = value["extra"].as_object() {
        for (key, values) in extra {
            user.extra.insert(key.clone(), parse_strings(values, "extra")?);
        }
    }
    Ok(Some(user))
}

/// A string member; absent means empty.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A list of strings; absent means empty.
fn parse_strings(value: &Value, what: &str) -> Result<Vec<String>, UnusableVector> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let items = value.as_array().into_iter().flatten();
    let texts: Option<Vec<String>> = items.map(|item| item.as_str().map(str::to_owned)).collect();
    texts
        .filter(|_| value.is_array())
        .ok_or_else(|| UnusableVector::new(format!("`{what}` of a user is not a list of strings")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn attributes_of_resources_have_the_path_too() {
        let value = json!({
            "user": {"name": "ana", "uid": "u", "groups": ["g"], "extra": {"k": ["v"]}},
            "verb": "list", "path": "/p", "fieldSelector": "a=b", "labelSelector": "((",
            "resource": {"namespace": "n", "group": "g", "resource": "pods", "name": "x"},
        });
        let recorded = RecordedAttributes::read(&value).unwrap();
        let attributes = recorded.attributes();
        let resource = attributes.resource().unwrap();
        assert_eq!((attributes.verb, attributes.path(), resource.name), (Verb::LIST, "/p", "x"));
        assert_eq!(resource.field_requirements()[0].to_string(), "a=b");
        assert!(resource.label_selector.unwrap().error.is_some());
        assert_eq!(attributes.user.unwrap().extra["k"], ["v"]);
    }

    #[test]
    fn attributes_without_a_resource_are_for_a_path() {
        let value = json!({"user": null, "verb": "get", "path": "/healthz"});
        let recorded = RecordedAttributes::read(&value).unwrap();
        assert!(matches!(recorded.attributes().target, Target::Path("/healthz")));
        assert!(recorded.attributes().user.is_none());
    }

    #[test]
    fn malformed_attributes_are_refused() {
        assert!(RecordedAttributes::read(&Value::Null).is_err());
        for groups in [json!("g"), json!([1]), json!({})] {
            assert!(RecordedAttributes::read(&json!({"user": {"groups": groups}})).is_err());
        }
    }
}
