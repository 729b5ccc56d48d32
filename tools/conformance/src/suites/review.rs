//! The `spec` of a SubjectAccessReview v1 in a vector.

use std::collections::BTreeMap;

use authz_webhook::{
    Extra, IncludedSelectors, NonResourceAttributes, ResourceAttributes, ReviewSpec,
    SelectorAttributes, SelectorRequirement, SelectorRequirements,
};
use serde_json::Value;

/// What a view of the request borrows that the JSON does not hold in the right form.
pub(super) struct Review<'v> {
    spec: &'v Value,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
    field_requirements: Vec<Borrowed<'v>>,
    label_requirements: Vec<Borrowed<'v>>,
}

struct Borrowed<'v> {
    requirement: &'v Value,
    values: Vec<String>,
}

impl<'v> Review<'v> {
    /// Reads a `spec`; the error says what in it is not understood.
    pub(super) fn read(spec: &'v Value) -> Result<Self, String> {
        let mut extra = BTreeMap::new();
        if let Some(members) = optional(&spec["extra"], Value::as_object, "extra")? {
            for (key, values) in members {
                extra.insert(key.clone(), strings(values, "extra")?);
            }
        }
        let resource = &spec["resourceAttributes"];
        Ok(Self {
            spec,
            groups: strings(&spec["groups"], "groups")?,
            extra,
            field_requirements: requirements(&resource["fieldSelector"])?,
            label_requirements: requirements(&resource["labelSelector"])?,
        })
    }

    /// The view that conditions get which look at these selectors.
    pub(super) fn view(&self, selectors: IncludedSelectors) -> ReviewSpec<'_> {
        let resource = self.spec.get("resourceAttributes").map(|resource| ResourceAttributes {
            namespace: text(resource, "namespace"),
            verb: text(resource, "verb"),
            group: text(resource, "group"),
            version: text(resource, "version"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            name: text(resource, "name"),
            field_selector: selectors
                .field
                .then(|| selector(&resource["fieldSelector"], &self.field_requirements))
                .flatten(),
            label_selector: selectors
                .label
                .then(|| selector(&resource["labelSelector"], &self.label_requirements))
                .flatten(),
        });
        let non_resource = self.spec.get("nonResourceAttributes").map(|attributes| {
            NonResourceAttributes { path: text(attributes, "path"), verb: text(attributes, "verb") }
        });
        ReviewSpec {
            resource,
            non_resource,
            user: text(self.spec, "user"),
            groups: &self.groups,
            extra: Extra(Some(&self.extra)),
            uid: text(self.spec, "uid"),
        }
    }
}

/// A selector in its raw form if it has one, else as requirements; an empty one is none.
fn selector<'a>(
    selector: &'a Value,
    requirements: &'a [Borrowed<'_>],
) -> Option<SelectorAttributes<'a>> {
    let raw = text(selector, "rawSelector");
    if !raw.is_empty() {
        return Some(SelectorAttributes::Raw(raw));
    }
    let requirements: Vec<SelectorRequirement<'a>> = requirements
        .iter()
        .map(|Borrowed { requirement, values }| SelectorRequirement {
            key: text(requirement, "key"),
            operator: text(requirement, "operator"),
            values,
        })
        .collect();
    (!requirements.is_empty())
        .then_some(SelectorAttributes::Requirements(SelectorRequirements(requirements)))
}

fn requirements(selector: &Value) -> Result<Vec<Borrowed<'_>>, String> {
    let list = optional(&selector["requirements"], Value::as_array, "requirements")?;
    list.into_iter()
        .flatten()
        .map(|requirement| {
            Ok(Borrowed { requirement, values: strings(&requirement["values"], "values")? })
        })
        .collect()
}

/// A string member; absent means empty.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A list of strings; absent means empty.
fn strings(value: &Value, what: &str) -> Result<Vec<String>, String> {
    let items = optional(value, Value::as_array, what)?.into_iter().flatten();
    items
        .map(|item| item.as_str().map(str::to_owned))
        .collect::<Option<_>>()
        .ok_or_else(|| format!("`{what}` of a request holds something other than strings"))
}

/// A value that is absent or of the right type.
fn optional<'a, T: ?Sized>(
    value: &'a Value,
    read: fn(&'a Value) -> Option<&'a T>,
    what: &str,
) -> Result<Option<&'a T>, String> {
    match value {
        Value::Null => Ok(None),
        value => read(value).map(Some).ok_or_else(|| format!("`{what}` of a request is malformed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ALL: IncludedSelectors = IncludedSelectors { field: true, label: true };

    #[test]
    fn every_part_is_read() {
        let spec = json!({
            "user": "ana", "uid": "u", "groups": ["g", "h"], "extra": {"k": ["v"]},
            "resourceAttributes": {
                "namespace": "n", "verb": "get", "group": "apps", "version": "v1",
                "resource": "pods", "subresource": "log", "name": "p",
                "fieldSelector": {"rawSelector": "a=b"},
                "labelSelector": {"requirements": [
                    {"key": "k", "operator": "In", "values": ["x", "y"]},
                ]},
            },
        });
        let review = Review::read(&spec).unwrap();
        let view = review.view(ALL);
        assert_eq!((view.user, view.uid, view.groups.len()), ("ana", "u", 2));
        assert_eq!(view.extra.0.unwrap()["k"], ["v"]);
        let resource = view.resource.unwrap();
        assert_eq!((resource.namespace, resource.verb, resource.group), ("n", "get", "apps"));
        assert_eq!((resource.version, resource.resource), ("v1", "pods"));
        assert_eq!((resource.subresource, resource.name), ("log", "p"));
        assert!(matches!(resource.field_selector, Some(SelectorAttributes::Raw("a=b"))));
        let Some(SelectorAttributes::Requirements(list)) = resource.label_selector else {
            panic!("no requirements");
        };
        assert_eq!((list.0[0].key, list.0[0].operator, list.0[0].values.len()), ("k", "In", 2));
        assert!(view.non_resource.is_none());
    }

    #[test]
    fn selectors_that_nobody_looks_at_and_empty_ones_are_absent() {
        let spec = json!({"resourceAttributes": {
            "fieldSelector": {"rawSelector": "a=b"}, "labelSelector": {},
        }});
        let review = Review::read(&spec).unwrap();
        assert!(review.view(ALL).resource.unwrap().field_selector.is_some());
        assert!(review.view(ALL).resource.unwrap().label_selector.is_none());
        assert!(
            review.view(IncludedSelectors::default()).resource.unwrap().field_selector.is_none()
        );
    }

    #[test]
    fn what_is_not_a_review_is_refused() {
        for spec in [
            json!({"groups": "g"}),
            json!({"groups": [1]}),
            json!({"extra": []}),
            json!({"extra": {"k": "v"}}),
            json!({"resourceAttributes": {"labelSelector": {"requirements": {}}}}),
        ] {
            assert!(Review::read(&spec).is_err(), "{spec}");
        }
    }
}
