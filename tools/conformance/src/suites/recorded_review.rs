//! The `spec` of a SubjectAccessReview v1 in a vector.

use std::collections::BTreeMap;

use crate::vectors::UnusableVector;
use authz_webhook::{
    IncludedSelectors, NonResourceAttributes, ResourceAttributes, ReviewSpec, SelectorAttributes,
    SelectorRequirement, SelectorRequirements, UserExtra,
};
use serde_json::Value;

/// A recorded `spec`, with the parts that [`ReviewSpec`] borrows in another form than JSON has them.
pub(super) struct RecordedReview<'v> {
    spec: &'v Value,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
    field_requirements: Vec<RecordedRequirement<'v>>,
    label_requirements: Vec<RecordedRequirement<'v>>,
}

struct RecordedRequirement<'v> {
    requirement: &'v Value,
    values: Vec<String>,
}

impl<'v> RecordedReview<'v> {
    /// Reads the `spec` of a vector.
    pub(super) fn read(spec: &'v Value) -> Result<Self, UnusableVector> {
        let mut extra = BTreeMap::new();
        if let Some(members) = optional(&spec["extra"], Value::as_object, "extra")? {
            for (key, values) in members {
                extra.insert(key.clone(), parse_strings(values, "extra")?);
            }
        }
        let resource = &spec["resourceAttributes"];
        Ok(Self {
            spec,
            groups: parse_strings(&spec["groups"], "groups")?,
            extra,
            field_requirements: parse_requirements(&resource["fieldSelector"])?,
            label_requirements: parse_requirements(&resource["labelSelector"])?,
        })
    }

    /// The specification for match conditions that use these selectors.
    pub(super) fn to_spec(&self, selectors: IncludedSelectors) -> ReviewSpec<'_> {
        let resource = self.spec.get("resourceAttributes").map(|resource| ResourceAttributes {
            namespace: text(resource, "namespace"),
            verb: text(resource, "verb"),
            group: text(resource, "group"),
            version: text(resource, "version"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            name: text(resource, "name"),
            field_selector: selectors
                .has_field_selector
                .then(|| selector(&resource["fieldSelector"], &self.field_requirements))
                .flatten(),
            label_selector: selectors
                .has_label_selector
                .then(|| selector(&resource["labelSelector"], &self.label_requirements))
                .flatten(),
        });
        let non_resource = self.spec.get("nonResourceAttributes").map(|attributes| {
            NonResourceAttributes { path: text(attributes, "path"), verb: text(attributes, "verb") }
        });
        ReviewSpec {
            resource,
            non_resource_attributes: non_resource,
            user: text(self.spec, "user"),
            groups: &self.groups,
            extra: UserExtra(Some(&self.extra)),
            uid: text(self.spec, "uid"),
        }
    }
}

/// A selector in its raw form if it has one, else as requirements; an empty one is none.
fn selector<'a>(
    selector: &'a Value,
    requirements: &'a [RecordedRequirement<'_>],
) -> Option<SelectorAttributes<'a>> {
    let raw = text(selector, "rawSelector");
    if !raw.is_empty() {
        return Some(SelectorAttributes::Raw(raw));
    }
    let requirements: Vec<SelectorRequirement<'a>> = requirements
        .iter()
        .map(|RecordedRequirement { requirement, values }| SelectorRequirement {
            key: text(requirement, "key"),
            operator: text(requirement, "operator"),
            values,
        })
        .collect();
    (!requirements.is_empty())
        .then_some(SelectorAttributes::Requirements(SelectorRequirements(requirements)))
}

fn parse_requirements(selector: &Value) -> Result<Vec<RecordedRequirement<'_>>, UnusableVector> {
    let list = optional(&selector["requirements"], Value::as_array, "requirements")?;
    list.into_iter()
        .flatten()
        .map(|requirement| {
            Ok(RecordedRequirement {
                requirement,
                values: parse_strings(&requirement["values"], "values")?,
            })
        })
        .collect()
}

/// A string member; absent means empty.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A list of strings; absent means empty.
fn parse_strings(value: &Value, what: &str) -> Result<Vec<String>, UnusableVector> {
    let items = optional(value, Value::as_array, what)?.into_iter().flatten();
    items.map(|item| item.as_str().map(str::to_owned)).collect::<Option<_>>().ok_or_else(|| {
        UnusableVector::new(format!("`{what}` of a request holds something other than strings"))
    })
}

/// A value that is absent or of the right type.
fn optional<'a, T: ?Sized>(
    value: &'a Value,
    read: fn(&'a Value) -> Option<&'a T>,
    what: &str,
) -> Result<Option<&'a T>, UnusableVector> {
    match value {
        Value::Null => Ok(None),
        value => read(value)
            .map(Some)
            .ok_or_else(|| UnusableVector::new(format!("`{what}` of a request is malformed"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ALL: IncludedSelectors =
        IncludedSelectors { has_field_selector: true, has_label_selector: true };

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
        let review = RecordedReview::read(&spec).unwrap();
        let spec = review.to_spec(ALL);
        assert_eq!((spec.user, spec.uid, spec.groups.len()), ("ana", "u", 2));
        assert_eq!(spec.extra.0.unwrap()["k"], ["v"]);
        let resource = spec.resource.unwrap();
        assert_eq!((resource.namespace, resource.verb, resource.group), ("n", "get", "apps"));
        assert_eq!((resource.version, resource.resource), ("v1", "pods"));
        assert_eq!((resource.subresource, resource.name), ("log", "p"));
        assert!(matches!(resource.field_selector, Some(SelectorAttributes::Raw("a=b"))));
        let Some(SelectorAttributes::Requirements(list)) = resource.label_selector else {
            panic!("no requirements");
        };
        assert_eq!((list.0[0].key, list.0[0].operator, list.0[0].values.len()), ("k", "In", 2));
        assert!(spec.non_resource_attributes.is_none());
    }

    #[test]
    fn unused_and_empty_selectors_are_absent() {
        let spec = json!({"resourceAttributes": {
            "fieldSelector": {"rawSelector": "a=b"}, "labelSelector": {},
        }});
        let review = RecordedReview::read(&spec).unwrap();
        assert!(review.to_spec(ALL).resource.unwrap().field_selector.is_some());
        assert!(review.to_spec(ALL).resource.unwrap().label_selector.is_none());
        assert!(
            review.to_spec(IncludedSelectors::default()).resource.unwrap().field_selector.is_none()
        );
    }

    #[test]
    fn malformed_reviews_are_refused() {
        for spec in [
            json!({"groups": "g"}),
            json!({"groups": [1]}),
            json!({"extra": []}),
            json!({"extra": {"k": "v"}}),
            json!({"resourceAttributes": {"labelSelector": {"requirements": {}}}}),
        ] {
            assert!(RecordedReview::read(&spec).is_err(), "{spec}");
        }
    }
}
