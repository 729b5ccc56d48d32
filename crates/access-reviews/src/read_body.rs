//! Reads the tree of a body as Kubernetes decodes typed objects: `null` is absent, unknown fields are ignored, and errors
//! about types have Go's words.

use crate::review_parsing::{
    NonResourceAttributes, ResourceAttributes, SelectorAttributes, SelectorRequirement, Spec,
};
use serde_json::{Map, Value};

use crate::review_error::ReviewError;
use crate::review_kind::ReviewKind;

/// A value in the body has the wrong type.
#[derive(Debug)]
pub(crate) struct MalformedBodyError(String);

impl MalformedBodyError {
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }

    /// Adds the kind of the review and the version in the path.
    pub(crate) fn into_review_error(self, kind: ReviewKind, version: &str) -> ReviewError {
        let Self(why) = self;
        ReviewError::Malformed { kind: kind.name(), version: version.to_owned(), why }
    }
}

/// The members of an object, with its name in messages.
#[derive(Clone, Copy)]
pub(crate) struct ObjectFields<'t> {
    json_members: Option<&'t Map<String, Value>>,
    /// The Go type name of this object, for error messages.
    go_type_name: &'static str,
    /// The path of the object; empty for the body.
    path: &'static str,
}

impl<'t> ObjectFields<'t> {
    /// The members of a body; none if it is not an object.
    pub(crate) fn from_body(tree: &'t Value, kind: ReviewKind) -> Self {
        Self { json_members: tree.as_object(), go_type_name: kind.name(), path: "" }
    }

    /// A member that is present and not null.
    pub(crate) fn get(&self, name: &str) -> Option<&'t Value> {
        self.json_members?.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn read_string(&self, name: &str) -> Result<&'t str, MalformedBodyError> {
        match self.get(name) {
            None => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(self.wrong_type_error(name, other, "string")),
        }
    }

    pub(crate) fn read_strings(
        &self,
        name: &str,
    ) -> Result<Option<Vec<&'t str>>, MalformedBodyError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        self.read_string_list(name, value, "[]string").map(Some)
    }

    /// The members of a member, if it is present.
    pub(crate) fn read_object(
        &self,
        name: &str,
        selector_type_name: &'static str,
        selector_go_type: &str,
        path: &'static str,
    ) -> Result<Option<Self>, MalformedBodyError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(members)) => Ok(Some(Self {
                json_members: Some(members),
                go_type_name: selector_type_name,
                path,
            })),
            Some(other) => Err(self.wrong_type_error(name, other, selector_go_type)),
        }
    }

    pub(crate) fn wrong_type_error(
        &self,
        name: &str,
        value: &Value,
        go_type: &str,
    ) -> MalformedBodyError {
        let dot = if self.path.is_empty() { "" } else { "." };
        MalformedBodyError(format!(
            "json: cannot unmarshal {} into Go struct field {}.{}{dot}{name} of type {go_type}",
            json_type_name(value),
            self.go_type_name,
            self.path,
        ))
    }

    fn read_string_list(
        &self,
        name: &str,
        value: &'t Value,
        go_type: &str,
    ) -> Result<Vec<&'t str>, MalformedBodyError> {
        let Value::Array(items) = value else {
            return Err(self.wrong_type_error(name, value, go_type));
        };
        let text = |item: &'t Value| match item {
            Value::Null => Ok(""),
            Value::String(text) => Ok(text.as_str()),
            other => Err(self.wrong_type_error(name, other, "string")),
        };
        items.iter().map(text).collect()
    }
}

fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Reads the spec of a review that names a user. The list of groups has another name in v1beta1.
pub(crate) fn read_spec_with_user<'t>(
    body: &ObjectFields<'t>,
    version: &str,
    type_name: &'static str,
) -> Result<Spec<'t>, MalformedBodyError> {
    let Some(fields) = read_spec_fields(body, version, type_name)? else {
        return Ok(Spec::default());
    };
    let mut spec = read_spec_attributes(&fields)?;
    spec.user = fields.read_string("user")?;
    spec.uid = fields.read_string("uid")?;
    match version {
        "v1beta1" => spec.group = fields.read_strings("group")?,
        _ => spec.groups = fields.read_strings("groups")?,
    }
    let value_type = format!("{version}.ExtraValue");
    match fields.get("extra") {
        None => {}
        Some(Value::Object(members)) => {
            for (key, value) in members {
                let values = match value {
                    Value::Null => Vec::new(),
                    value => fields.read_string_list("extra", value, &value_type)?,
                };
                spec.extra.insert(key, values);
            }
        }
        Some(other) => {
            return Err(fields.wrong_type_error(
                "extra",
                other,
                &format!("map[string]{value_type}"),
            ));
        }
    }
    Ok(spec)
}

/// Reads the spec of a review that names no user.
pub(crate) fn read_spec_without_user<'t>(
    body: &ObjectFields<'t>,
    version: &str,
    type_name: &'static str,
) -> Result<Spec<'t>, MalformedBodyError> {
    match read_spec_fields(body, version, type_name)? {
        Some(fields) => read_spec_attributes(&fields),
        None => Ok(Spec::default()),
    }
}

/// The members of the spec, if there is one.
pub(crate) fn read_spec_fields<'t>(
    body: &ObjectFields<'t>,
    version: &str,
    type_name: &'static str,
) -> Result<Option<ObjectFields<'t>>, MalformedBodyError> {
    body.read_object("spec", type_name, &format!("{version}.{type_name}"), "spec")
}

fn read_spec_attributes<'t>(spec: &ObjectFields<'t>) -> Result<Spec<'t>, MalformedBodyError> {
    let resource = spec.read_object(
        "resourceAttributes",
        "ResourceAttributes",
        "v1.ResourceAttributes",
        "spec.resourceAttributes",
    )?;
    let path = spec.read_object(
        "nonResourceAttributes",
        "NonResourceAttributes",
        "v1.NonResourceAttributes",
        "spec.nonResourceAttributes",
    )?;
    Ok(Spec {
        resource_attributes: resource
            .map(|fields| read_resource_attributes(&fields))
            .transpose()?,
        non_resource_attributes: path
            .map(|fields| read_non_resource_attributes(&fields))
            .transpose()?,
        ..Spec::default()
    })
}

fn read_resource_attributes<'t>(
    fields: &ObjectFields<'t>,
) -> Result<ResourceAttributes<'t>, MalformedBodyError> {
    Ok(ResourceAttributes {
        namespace: fields.read_string("namespace")?,
        verb: fields.read_string("verb")?,
        group: fields.read_string("group")?,
        version: fields.read_string("version")?,
        resource: fields.read_string("resource")?,
        subresource: fields.read_string("subresource")?,
        name: fields.read_string("name")?,
        field_selector: read_selector(fields, &FIELD_SELECTOR)?,
        label_selector: read_selector(fields, &LABEL_SELECTOR)?,
    })
}

fn read_non_resource_attributes<'t>(
    fields: &ObjectFields<'t>,
) -> Result<NonResourceAttributes<'t>, MalformedBodyError> {
    Ok(NonResourceAttributes {
        path: fields.read_string("path")?,
        verb: fields.read_string("verb")?,
    })
}

/// The names of a selector's parts in messages.
struct SelectorTypeNames {
    name: &'static str,
    selector_type_name: &'static str,
    selector_go_type: &'static str,
    path: &'static str,
    requirement_type_name: &'static str,
    requirement_go_type: &'static str,
    requirement_list_go_type: &'static str,
    requirement_list_path: &'static str,
}

const FIELD_SELECTOR: SelectorTypeNames = SelectorTypeNames {
    name: "fieldSelector",
    selector_type_name: "FieldSelectorAttributes",
    selector_go_type: "v1.FieldSelectorAttributes",
    path: "spec.resourceAttributes.fieldSelector",
    requirement_type_name: "FieldSelectorRequirement",
    requirement_go_type: "v1.FieldSelectorRequirement",
    requirement_list_go_type: "[]v1.FieldSelectorRequirement",
    requirement_list_path: "spec.resourceAttributes.fieldSelector.requirements",
};

const LABEL_SELECTOR: SelectorTypeNames = SelectorTypeNames {
    name: "labelSelector",
    selector_type_name: "LabelSelectorAttributes",
    selector_go_type: "v1.LabelSelectorAttributes",
    path: "spec.resourceAttributes.labelSelector",
    requirement_type_name: "LabelSelectorRequirement",
    requirement_go_type: "v1.LabelSelectorRequirement",
    requirement_list_go_type: "[]v1.LabelSelectorRequirement",
    requirement_list_path: "spec.resourceAttributes.labelSelector.requirements",
};

fn read_selector<'t>(
    resource: &ObjectFields<'t>,
    names: &SelectorTypeNames,
) -> Result<Option<SelectorAttributes<'t>>, MalformedBodyError> {
    let found = resource.read_object(
        names.name,
        names.selector_type_name,
        names.selector_go_type,
        names.path,
    )?;
    let Some(fields) = found else { return Ok(None) };
    let requirements = match fields.get("requirements") {
        None => Vec::new(),
        Some(Value::Array(items)) => {
            let read = |item| read_requirement(&fields, item, names);
            items.iter().map(read).collect::<Result<_, _>>()?
        }
        Some(other) => {
            return Err(fields.wrong_type_error(
                "requirements",
                other,
                names.requirement_list_go_type,
            ));
        }
    };
    Ok(Some(SelectorAttributes { raw_selector: fields.read_string("rawSelector")?, requirements }))
}

fn read_requirement<'t>(
    selector: &ObjectFields<'t>,
    item: &'t Value,
    names: &SelectorTypeNames,
) -> Result<SelectorRequirement<'t>, MalformedBodyError> {
    let members = match item {
        Value::Null => return Ok(SelectorRequirement::default()),
        Value::Object(members) => members,
        other => {
            return Err(selector.wrong_type_error(
                "requirements",
                other,
                names.requirement_go_type,
            ));
        }
    };
    let fields = ObjectFields {
        json_members: Some(members),
        go_type_name: names.requirement_type_name,
        path: names.requirement_list_path,
    };
    Ok(SelectorRequirement {
        key: fields.read_string("key")?,
        operator: fields.read_string("operator")?,
        values: fields.read_strings("values")?.unwrap_or_default(),
    })
}
