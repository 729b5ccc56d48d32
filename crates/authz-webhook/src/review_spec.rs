//! The request as a `SubjectAccessReview` describes it, which match conditions evaluate.

use std::collections::BTreeMap;

use authz::{Attributes, FieldRequirement, LabelRequirement, Target};
use cel::{List, ListSource, Map, MapSource, ObjectType, RecordSource, Type, Value};

/// The `spec` of a `SubjectAccessReview` v1. It borrows everything but the lists of requirements.
#[derive(Debug, Clone)]
pub struct ReviewSpec<'a> {
    /// Present for a resource request.
    pub resource: Option<ResourceAttributes<'a>>,
    /// Present for a request for a path.
    pub non_resource_attributes: Option<NonResourceAttributes<'a>>,
    /// The name of the user; empty without a user.
    pub user: &'a str,
    /// The groups in order.
    pub groups: &'a [String],
    /// The extra attributes of the user.
    pub extra: UserExtra<'a>,
    /// The uid of the user.
    pub uid: &'a str,
}

/// The attributes of a resource request. Missing parts are empty.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the fields are those of the review, by their own names")]
pub struct ResourceAttributes<'a> {
    pub namespace: &'a str,
    pub verb: &'a str,
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub name: &'a str,
    pub field_selector: Option<SelectorAttributes<'a>>,
    pub label_selector: Option<SelectorAttributes<'a>>,
}

/// A selector in one of its two forms.
#[derive(Debug, Clone)]
pub enum SelectorAttributes<'a> {
    /// The text of the query; requests that the server builds never carry it.
    Raw(&'a str),
    /// The requirements that a review can express.
    Requirements(SelectorRequirements<'a>),
}

/// Requirements that all must hold.
#[derive(Debug, Clone)]
pub struct SelectorRequirements<'a>(pub Vec<SelectorRequirement<'a>>);

/// One requirement of a selector.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are those of the review, by their own names")]
pub struct SelectorRequirement<'a> {
    pub key: &'a str,
    pub operator: &'a str,
    pub values: &'a [String],
}

/// The attributes of a request for a path.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the fields are those of the review, by their own names")]
pub struct NonResourceAttributes<'a> {
    pub path: &'a str,
    pub verb: &'a str,
}

/// The extra attributes of a user; `None` stands for an empty map.
#[derive(Debug, Clone, Copy, Default)]
pub struct UserExtra<'a>(pub Option<&'a BTreeMap<String, Vec<String>>>);

/// The selectors that a review contains. Only building them allocates, so they are omitted if no condition uses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IncludedSelectors {
    /// Whether the review contains the field selector.
    pub has_field_selector: bool,
    /// Whether the review contains the label selector.
    pub has_label_selector: bool,
}

impl<'a> ReviewSpec<'a> {
    /// The review of a request.
    pub fn new(attributes: &Attributes<'a>, selectors: IncludedSelectors) -> Self {
        let (resource, non_resource_attributes) = match &attributes.target {
            Target::Resource(target) => {
                let field =
                    if selectors.has_field_selector { target.field_requirements() } else { &[] };
                let label =
                    if selectors.has_label_selector { target.label_requirements() } else { &[] };
                let resource = ResourceAttributes {
                    namespace: target.namespace.as_str(),
                    verb: attributes.verb.as_str(),
                    group: target.api_group,
                    version: target.api_version,
                    resource: target.resource,
                    subresource: target.subresource,
                    name: target.name,
                    field_selector: expressible_requirements(field, convert_field_requirement),
                    label_selector: expressible_requirements(label, convert_label_requirement),
                };
                (Some(resource), None)
            }
            Target::Path(path) => {
                (None, Some(NonResourceAttributes { path, verb: attributes.verb.as_str() }))
            }
        };
        let user = attributes.user;
        Self {
            resource,
            non_resource_attributes,
            user: user.map_or("", |user| &user.name),
            groups: user.map_or(&[], |user| &user.groups),
            extra: UserExtra(user.map(|user| &user.extra)),
            uid: user.map_or("", |user| &user.uid),
        }
    }
}

/// The requirements that a review can express; `None` without any. Omitting one makes the request wider, never narrower.
fn expressible_requirements<'a, R>(
    all: &'a [R],
    convert: fn(&'a R) -> Option<SelectorRequirement<'a>>,
) -> Option<SelectorAttributes<'a>> {
    if all.is_empty() {
        return None;
    }
    let usable: Vec<SelectorRequirement<'a>> = all.iter().filter_map(convert).collect();
    (!usable.is_empty()).then_some(SelectorAttributes::Requirements(SelectorRequirements(usable)))
}

fn convert_field_requirement(requirement: &FieldRequirement) -> Option<SelectorRequirement<'_>> {
    Some(SelectorRequirement {
        key: &requirement.field,
        operator: requirement.operator.review_selector_operator().name(),
        values: std::slice::from_ref(&requirement.value),
    })
}

fn convert_label_requirement(requirement: &LabelRequirement) -> Option<SelectorRequirement<'_>> {
    Some(SelectorRequirement {
        key: &requirement.key,
        operator: requirement.operator.review_selector_operator()?.name(),
        values: &requirement.values,
    })
}

/// The type of the variable `request`. The order of fields is that of the `RecordSource`s below.
pub(crate) fn cel_request_type() -> Type {
    let strings = || Type::list_type_of(Type::String);
    let requirement = ObjectType::new(
        "kubernetes.SelectorRequirement",
        vec![("key", Type::String), ("operator", Type::String), ("values", strings())],
    );
    let selector = |name| {
        let requirements = Type::list_type_of(Type::Object(requirement.clone()));
        let fields = vec![("rawSelector", Type::String), ("requirements", requirements)];
        Type::Object(ObjectType::new(name, fields))
    };
    let resource = ObjectType::new(
        "kubernetes.ResourceAttributes",
        vec![
            ("namespace", Type::String),
            ("verb", Type::String),
            ("group", Type::String),
            ("version", Type::String),
            ("resource", Type::String),
            ("subresource", Type::String),
            ("name", Type::String),
            ("fieldSelector", selector("kubernetes.FieldSelectorAttributes")),
            ("labelSelector", selector("kubernetes.LabelSelectorAttributes")),
        ],
    );
    let non_resource_attributes = ObjectType::new(
        "kubernetes.NonResourceAttributes",
        vec![("path", Type::String), ("verb", Type::String)],
    );
    Type::Object(ObjectType::new(
        "kubernetes.SubjectAccessReviewSpec",
        vec![
            ("resourceAttributes", Type::Object(resource)),
            ("nonResourceAttributes", Type::Object(non_resource_attributes)),
            ("user", Type::String),
            ("groups", strings()),
            ("extra", Type::map_type_of(Type::String, strings())),
            ("uid", Type::String),
        ],
    ))
}

impl RecordSource for ReviewSpec<'_> {
    fn field_names(&self) -> &'static [&'static str] {
        &["resourceAttributes", "nonResourceAttributes", "user", "groups", "extra", "uid"]
    }

    #[inline]
    fn field(&self, index: usize) -> Option<Value<'_>> {
        match index {
            0 => self.resource.as_ref().map(to_cel_record_value),
            1 => self.non_resource_attributes.as_ref().map(to_cel_record_value),
            3 => Some(Value::List(List::Strings(self.groups))),
            4 => Some(Value::Map(Map::Source(&self.extra))),
            _ => self.string_field(index).map(Value::borrowed_string),
        }
    }

    // Conditions test these fields most often, so this makes no value.
    #[inline]
    fn has_field(&self, index: usize) -> bool {
        match index {
            0 => self.resource.is_some(),
            1 => self.non_resource_attributes.is_some(),
            _ => index < self.field_names().len(),
        }
    }

    #[inline]
    fn string_field(&self, index: usize) -> Option<&str> {
        match index {
            2 => Some(self.user),
            5 => Some(self.uid),
            _ => None,
        }
    }

    #[inline]
    fn string_list_field(&self, index: usize) -> Option<&[String]> {
        (index == 3).then_some(self.groups)
    }

    #[inline]
    fn nested_record_field(&self, index: usize) -> Option<&dyn RecordSource> {
        match index {
            0 => self.resource.as_ref().map(|resource| resource as &dyn RecordSource),
            1 => self.non_resource_attributes.as_ref().map(|path| path as &dyn RecordSource),
            _ => None,
        }
    }
}

impl RecordSource for ResourceAttributes<'_> {
    fn field_names(&self) -> &'static [&'static str] {
        &[
            "namespace",
            "verb",
            "group",
            "version",
            "resource",
            "subresource",
            "name",
            "fieldSelector",
            "labelSelector",
        ]
    }

    #[inline]
    fn field(&self, index: usize) -> Option<Value<'_>> {
        match index {
            7 => self.field_selector.as_ref().map(to_cel_record_value),
            8 => self.label_selector.as_ref().map(to_cel_record_value),
            _ => self.string_field(index).map(Value::borrowed_string),
        }
    }

    #[inline]
    fn has_field(&self, index: usize) -> bool {
        match index {
            7 => self.field_selector.is_some(),
            8 => self.label_selector.is_some(),
            _ => index < self.field_names().len(),
        }
    }

    #[inline]
    fn string_field(&self, index: usize) -> Option<&str> {
        Some(match index {
            0 => self.namespace,
            1 => self.verb,
            2 => self.group,
            3 => self.version,
            4 => self.resource,
            5 => self.subresource,
            6 => self.name,
            _ => return None,
        })
    }
}

impl RecordSource for SelectorAttributes<'_> {
    fn field_names(&self) -> &'static [&'static str] {
        &["rawSelector", "requirements"]
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        match (self, index) {
            (Self::Raw(text), 0) => Some(Value::borrowed_string(text)),
            (Self::Requirements(list), 1) => Some(Value::List(List::Source(list))),
            _ => None,
        }
    }
}

impl RecordSource for SelectorRequirement<'_> {
    fn field_names(&self) -> &'static [&'static str] {
        &["key", "operator", "values"]
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        match index {
            0 => Some(Value::borrowed_string(self.key)),
            1 => Some(Value::borrowed_string(self.operator)),
            2 => Some(Value::List(List::Strings(self.values))),
            _ => None,
        }
    }
}

impl RecordSource for NonResourceAttributes<'_> {
    fn field_names(&self) -> &'static [&'static str] {
        &["path", "verb"]
    }

    #[inline]
    fn field(&self, index: usize) -> Option<Value<'_>> {
        self.string_field(index).map(Value::borrowed_string)
    }

    #[inline]
    fn string_field(&self, index: usize) -> Option<&str> {
        match index {
            0 => Some(self.path),
            1 => Some(self.verb),
            _ => None,
        }
    }
}

impl ListSource for SelectorRequirements<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<Value<'_>> {
        self.0.get(index).map(to_cel_record_value)
    }
}

impl MapSource for UserExtra<'_> {
    fn len(&self) -> usize {
        self.0.map_or(0, BTreeMap::len)
    }

    fn get(&self, key: &str) -> Option<Value<'_>> {
        self.0?.get(key).map(|values| Value::List(List::Strings(values)))
    }

    fn map_entries(&self) -> Box<dyn Iterator<Item = (&str, Value<'_>)> + '_> {
        let entries = self.0.into_iter().flatten();
        Box::new(entries.map(|(key, values)| (key.as_str(), Value::List(List::Strings(values)))))
    }
}

fn to_cel_record_value<'a>(record: &'a (impl RecordSource + 'a)) -> Value<'a> {
    Value::Map(Map::Record(record))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that programs use and the numbers that records answer to must be the same.
    #[test]
    fn records_number_their_fields_as_the_types_do() {
        fn names(ty: &Type, path: &[&str]) -> Vec<String> {
            match (ty, path.split_first()) {
                (Type::Object(object), None) => {
                    object.object_fields().iter().map(|(name, _)| name.clone()).collect()
                }
                (Type::Object(object), Some((first, rest))) => match object.field(first) {
                    Some((_, ty)) => names(ty, rest),
                    None => Vec::new(),
                },
                (Type::List(element), _) => names(element, path),
                _ => Vec::new(),
            }
        }
        let request = cel_request_type();
        let selector = SelectorAttributes::Raw("");
        let requirement = SelectorRequirement { key: "", operator: "", values: &[] };
        let spec = ReviewSpec {
            resource: None,
            non_resource_attributes: None,
            user: "",
            groups: &[],
            extra: UserExtra(None),
            uid: "",
        };
        let resource = ResourceAttributes::default();
        let non_resource_attributes = NonResourceAttributes::default();
        let cases: [(&[&str], &dyn RecordSource); 6] = [
            (&[], &spec),
            (&["resourceAttributes"], &resource),
            (&["nonResourceAttributes"], &non_resource_attributes),
            (&["resourceAttributes", "fieldSelector"], &selector),
            (&["resourceAttributes", "labelSelector"], &selector),
            (&["resourceAttributes", "labelSelector", "requirements"], &requirement),
        ];
        for (path, record) in cases {
            assert_eq!(names(&request, path), record.field_names(), "{path:?}");
        }
    }

    #[test]
    fn shortcuts_agree_with_fields() {
        let groups = ["g".to_owned()];
        let spec = ReviewSpec {
            resource: Some(ResourceAttributes {
                namespace: "ns",
                verb: "get",
                group: "apps",
                version: "v1",
                resource: "pods",
                subresource: "log",
                name: "p",
                ..ResourceAttributes::default()
            }),
            non_resource_attributes: Some(NonResourceAttributes { path: "/x", verb: "post" }),
            user: "u",
            groups: &groups,
            extra: UserExtra(None),
            uid: "1",
        };
        let (Some(resource), Some(path)) = (&spec.resource, &spec.non_resource_attributes) else {
            panic!("both are given above");
        };
        let records: [&dyn RecordSource; 3] = [&spec, resource, path];
        for record in records {
            for (index, name) in record.field_names().iter().enumerate() {
                let field = record.field(index);
                assert_eq!(record.has_field(index), field.is_some(), "{name}");
                match field {
                    Some(Value::String(text)) => {
                        assert_eq!(record.string_field(index), Some(text.as_str()), "{name}");
                    }
                    Some(Value::List(List::Strings(texts))) => {
                        assert_eq!(record.string_list_field(index), Some(texts), "{name}");
                    }
                    Some(Value::Map(Map::Record(_))) => {
                        assert!(record.nested_record_field(index).is_some(), "{name}");
                    }
                    _ => {
                        assert_eq!(record.string_field(index), None, "{name}");
                        assert_eq!(record.string_list_field(index), None, "{name}");
                        assert!(record.nested_record_field(index).is_none(), "{name}");
                    }
                }
            }
        }
    }
}
