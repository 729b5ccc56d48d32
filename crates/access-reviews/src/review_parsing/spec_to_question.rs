//! Converts the spec of a review to a question, and validates it while converting.

use authz::{
    FieldOperator, FieldRequirement, LabelOperator, LabelRequirement, Selector, SelectorError,
    User, parse_field_selector, parse_label_selector,
};
use field_errors::{BadValue, FieldErrors, FieldPath, label_key_faults, label_value_faults};

use super::access_question::{AccessQuestion, AccessTarget, ResourceTarget};
use super::review_serde_types::{
    NonResourceAttributes, ResourceAttributes, SelectorAttributes, SelectorRequirement, Spec,
};

const IN: &str = "In";
const NOT_IN: &str = "NotIn";
const EXISTS: &str = "Exists";
const DOES_NOT_EXIST: &str = "DoesNotExist";

impl<'a> Spec<'a> {
    /// Converts the spec to a question about the user that it names.
    ///
    /// Unknown operators and selectors that do not parse are accepted, because newer clients send them, and a
    /// question without a requirement is only wider. The response reports them.
    ///
    /// # Errors
    /// All faults, in Kubernetes' order and words.
    pub fn to_question(&self) -> Result<AccessQuestion<'a>, FieldErrors> {
        let mut errors = self.target_faults();
        if self.user.is_empty() && self.groups().is_empty() {
            let detail = "at least one of user or group must be specified";
            errors.push(spec_field_path().child("user").invalid("", detail));
        }
        self.build_question(errors, build_user)
    }

    /// Converts the spec to a question about a known user; the user fields of the spec are ignored.
    ///
    /// # Errors
    /// As for [`to_question`](Self::to_question).
    pub fn to_question_for_user(&self, user: &User) -> Result<AccessQuestion<'a>, FieldErrors> {
        self.build_question(self.target_faults(), |_| user.clone())
    }

    /// The groups. The list has a different name in v1beta1.
    pub fn groups(&self) -> &[&'a str] {
        self.groups.as_ref().or(self.group.as_ref()).map_or(&[], Vec::as_slice)
    }

    fn target_faults(&self) -> FieldErrors {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        match (&self.resource_attributes, &self.non_resource_attributes) {
            (Some(_), Some(path)) => spec_field_path().invalid(path.to_bad_value(), detail).into(),
            (None, None) => {
                spec_field_path().invalid(BadValue::Json("null".to_owned()), detail).into()
            }
            (Some(_), None) | (None, Some(_)) => FieldErrors::new(),
        }
    }

    /// Adds the faults of the selectors, and builds the question if there are no faults.
    fn build_question(
        &self,
        mut errors: FieldErrors,
        make_user: impl FnOnce(&Self) -> User,
    ) -> Result<AccessQuestion<'a>, FieldErrors> {
        if let Some(resource) = &self.resource_attributes {
            validate_selectors(
                resource,
                &spec_field_path().child("resourceAttributes"),
                &mut errors,
            );
        }
        let target = match (&self.resource_attributes, &self.non_resource_attributes) {
            (Some(resource), _) if errors.is_empty() => {
                Some((resource.verb, AccessTarget::Resource(to_resource_target(resource))))
            }
            (_, Some(path)) => Some((path.verb, AccessTarget::Path(path.path.into()))),
            (_, None) => None,
        };
        match target {
            Some((verb, target)) if errors.is_empty() => {
                Ok(AccessQuestion { user: make_user(self), verb: verb.into(), target })
            }
            Some(_) | None => Err(errors),
        }
    }
}

impl NonResourceAttributes<'_> {
    /// The value as Kubernetes' messages show it, which differs from its JSON.
    pub fn to_bad_value(&self) -> BadValue {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        BadValue::Json(format!("{{\"Path\":{},\"Verb\":{}}}", quoted(self.path), quoted(self.verb)))
    }
}

fn spec_field_path() -> FieldPath<'static> {
    FieldPath::root("spec")
}

fn build_user(spec: &Spec<'_>) -> User {
    let extra =
        spec.extra.iter().map(|(key, values)| ((*key).to_owned(), to_owned_strings(values)));
    User {
        name: spec.user.to_owned(),
        uid: spec.uid.to_owned(),
        groups: to_owned_strings(spec.groups()),
        extra: extra.collect(),
    }
}

fn to_owned_strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn to_resource_target<'a>(resource: &ResourceAttributes<'a>) -> ResourceTarget<'a> {
    let version = if resource.version.is_empty() { "*" } else { resource.version };
    ResourceTarget {
        api_group: resource.group.into(),
        api_version: version.into(),
        namespace: resource.namespace.into(),
        resource: resource.resource.into(),
        subresource: resource.subresource.into(),
        name: resource.name.into(),
        field_selector: resource.field_selector.as_ref().and_then(|selector| {
            convert_selector(selector, parse_field_selector, convert_field_requirement)
        }),
        label_selector: resource.label_selector.as_ref().and_then(|selector| {
            convert_selector(selector, parse_label_selector, convert_label_requirement)
        }),
    }
}

/// Converts the valid part of a selector; its error describes the rest.
fn convert_selector<R>(
    selector: &SelectorAttributes<'_>,
    parse: fn(&str) -> Result<Vec<R>, SelectorError>,
    convert: fn(&SelectorRequirement<'_>) -> Result<R, SelectorError>,
) -> Option<Selector<R>> {
    if selector.requirements.is_empty() {
        return Selector::from_selector_parse_result(parse(selector.raw_selector));
    }
    let mut messages = Vec::new();
    let mut requirements = Vec::with_capacity(selector.requirements.len());
    for requirement in &selector.requirements {
        match convert(requirement) {
            Ok(requirement) => requirements.push(requirement),
            Err(error) => messages.push(error.to_string()),
        }
    }
    let error = (!messages.is_empty())
        .then(|| SelectorError::new(field_errors::aggregate_messages(&messages)));
    Some(Selector { requirements, error })
}

fn convert_field_requirement(
    requirement: &SelectorRequirement<'_>,
) -> Result<FieldRequirement, SelectorError> {
    let value = match requirement.values.as_slice() {
        [_, _, ..] => {
            return Err(SelectorError::new("fieldSelectors do not yet support multiple values"));
        }
        [value] => Some(*value),
        [] => None,
    };
    let (operator, value) = match (requirement.operator, value) {
        (IN, Some(value)) => (FieldOperator::Equals, value),
        (NOT_IN, Some(value)) => (FieldOperator::NotEquals, value),
        (IN, None) => return Err(SelectorError::new("fieldSelectors in must have one value")),
        (NOT_IN, None) => {
            return Err(SelectorError::new("fieldSelectors not in must have one value"));
        }
        (operator @ (EXISTS | DOES_NOT_EXIST), _) => {
            let message = format!("fieldSelectors do not yet support {operator}");
            return Err(SelectorError::new(message));
        }
        (operator, _) => {
            let operator = go_compat::quote(operator);
            let message = format!("{operator} is not a valid field selector operator");
            return Err(SelectorError::new(message));
        }
    };
    Ok(FieldRequirement { field: requirement.key.to_owned(), operator, value: value.to_owned() })
}

fn convert_label_requirement(
    requirement: &SelectorRequirement<'_>,
) -> Result<LabelRequirement, SelectorError> {
    let operator = match requirement.operator {
        IN => LabelOperator::In,
        NOT_IN => LabelOperator::NotIn,
        EXISTS => LabelOperator::Exists,
        DOES_NOT_EXIST => LabelOperator::DoesNotExist,
        operator => {
            let operator = go_compat::quote(operator);
            let message = format!("{operator} is not a valid label selector operator");
            return Err(SelectorError::new(message));
        }
    };
    Ok(LabelRequirement {
        key: requirement.key.to_owned(),
        operator,
        values: to_owned_strings(&requirement.values),
    })
}

fn validate_selectors(
    resource: &ResourceAttributes<'_>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if let Some(selector) = &resource.field_selector {
        validate_selector(
            selector,
            &at.child("fieldSelector"),
            errors,
            |requirement, at, errors| {
                if requirement.key.is_empty() {
                    errors.push(at.child("key").required("must be specified"));
                }
                validate_requirement_values(requirement, at, errors);
            },
        );
    }
    if let Some(selector) = &resource.label_selector {
        validate_selector(
            selector,
            &at.child("labelSelector"),
            errors,
            |requirement, at, errors| {
                validate_requirement_values(requirement, at, errors);
                for fault in label_key_faults(requirement.key) {
                    errors.push(at.child("key").invalid(requirement.key, &fault));
                }
                for (idx, value) in requirement.values.iter().enumerate() {
                    for fault in label_value_faults(value) {
                        errors.push(at.child("values").index(idx).invalid(*value, &fault));
                    }
                }
            },
        );
    }
}

fn validate_selector(
    selector: &SelectorAttributes<'_>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
    validate: fn(&SelectorRequirement<'_>, &FieldPath<'_>, &mut FieldErrors),
) {
    match (selector.raw_selector.is_empty(), selector.requirements.is_empty()) {
        (false, false) => {
            let detail = "may not specified at the same time as requirements";
            errors.push(at.child("rawSelector").invalid(selector.raw_selector, detail));
        }
        (true, true) => {
            let detail = format!("when {at} is specified, requirements or rawSelector is required");
            errors.push(at.child("requirements").required(&detail));
        }
        (true, false) | (false, true) => {}
    }
    let list = at.child("requirements");
    for (idx, requirement) in selector.requirements.iter().enumerate() {
        validate(requirement, &list.index(idx), errors);
    }
}

fn validate_requirement_values(
    requirement: &SelectorRequirement<'_>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    match (requirement.operator, requirement.values.is_empty()) {
        (IN | NOT_IN, true) => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(at.child("values").required(detail));
        }
        (EXISTS | DOES_NOT_EXIST, false) => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(at.child("values").forbidden(detail));
        }
        _ => {}
    }
}
