//! The `attributes` of one authorization question in a vector.

use authz::{
    Attributes, FieldRequirement, LabelRequirement, Resource, Selector, Target, User,
    parse_field_selector, parse_label_selector,
};
use serde_json::Value;

/// A question that owns what [`Attributes`] borrow.
pub(super) struct Question<'v> {
    attributes: &'v Value,
    user: Option<User>,
    field_selector: Option<Selector<FieldRequirement>>,
    label_selector: Option<Selector<LabelRequirement>>,
}

impl<'v> Question<'v> {
    /// Reads the `attributes`; the error says what in it is not understood.
    pub(super) fn read(attributes: &'v Value) -> Result<Self, String> {
        if !attributes.is_object() {
            return Err("`attributes` is missing or not an object".to_owned());
        }
        Ok(Self {
            attributes,
            user: user(&attributes["user"])?,
            field_selector: Selector::from_parse_result(parse_field_selector(text(
                attributes,
                "fieldSelector",
            ))),
            label_selector: Selector::from_parse_result(parse_label_selector(text(
                attributes,
                "labelSelector",
            ))),
        })
    }

    /// The question in the form that authorizers take.
    pub(super) fn attributes(&self) -> Attributes<'_> {
        let path = text(self.attributes, "path");
        let target = match self.attributes.get("resource") {
            Some(resource) => Target::Resource(Resource {
                path,
                api_group: text(resource, "group"),
                api_version: text(resource, "version"),
                namespace: text(resource, "namespace"),
                resource: text(resource, "resource"),
                subresource: text(resource, "subresource"),
                name: text(resource, "name"),
                field_selector: self.field_selector.as_ref(),
                label_selector: self.label_selector.as_ref(),
            }),
            None => Target::Path(path),
        };
        Attributes { user: self.user.as_ref(), verb: text(self.attributes, "verb"), target }
    }
}

/// A user; `null` and nothing mean that none is known.
pub(super) fn user(value: &Value) -> Result<Option<User>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let mut user = User {
        name: text(value, "name").to_owned(),
        uid: text(value, "uid").to_owned(),
        groups: texts(&value["groups"], "groups")?,
        ..User::default()
    };
    if let Some(extra) = value["extra"].as_object() {
        for (key, values) in extra {
            user.extra.insert(key.clone(), texts(values, "extra")?);
        }
    }
    Ok(Some(user))
}

/// A string member; absent means empty.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A list of strings; absent means empty.
fn texts(value: &Value, what: &str) -> Result<Vec<String>, String> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let items = value.as_array().into_iter().flatten();
    let texts: Option<Vec<String>> = items.map(|item| item.as_str().map(str::to_owned)).collect();
    texts
        .filter(|_| value.is_array())
        .ok_or_else(|| format!("`{what}` of a user is not a list of strings"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn resource_questions_carry_the_path_along() {
        let value = json!({
            "user": {"name": "ana", "uid": "u", "groups": ["g"], "extra": {"k": ["v"]}},
            "verb": "list", "path": "/p", "fieldSelector": "a=b", "labelSelector": "((",
            "resource": {"namespace": "n", "group": "g", "resource": "pods", "name": "x"},
        });
        let question = Question::read(&value).unwrap();
        let attributes = question.attributes();
        let resource = attributes.resource().unwrap();
        assert_eq!((attributes.verb, attributes.path(), resource.name), ("list", "/p", "x"));
        assert_eq!(resource.field_requirements()[0].to_string(), "a=b");
        assert!(resource.label_selector.unwrap().error.is_some());
        assert_eq!(attributes.user.unwrap().extra["k"], ["v"]);
    }

    #[test]
    fn other_questions_are_for_a_path() {
        let value = json!({"user": null, "verb": "get", "path": "/healthz"});
        let question = Question::read(&value).unwrap();
        assert!(matches!(question.attributes().target, Target::Path("/healthz")));
        assert!(question.attributes().user.is_none());
    }

    #[test]
    fn what_is_not_a_question_is_refused() {
        assert!(Question::read(&Value::Null).is_err());
        for groups in [json!("g"), json!([1]), json!({})] {
            assert!(Question::read(&json!({"user": {"groups": groups}})).is_err());
        }
    }
}
