//! Label selectors of hooks.

use api_object::{Tree, matches_labels};
use authz::{LabelOperator, LabelRequirement};
use field_errors::{BadValue, FieldPath, label_key_faults, label_value_faults};
use serde_json::Value;

use crate::json_members::{read_object, read_objects, read_owned_strings, read_string};

/// The label selector of a stored hook. It was valid by the rules of the version that stored it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelSelector {
    /// Selects objects that satisfy all requirements; without requirements, all objects.
    Requirements(Vec<LabelRequirement>),
    /// The stored selector is invalid.
    Invalid(LabelSelectorError),
}

/// The reason why a stored label selector is invalid, in the words of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LabelSelectorError(String);

impl LabelSelector {
    /// Reads the selector in a member of a hook; an absent selector selects everything.
    #[must_use]
    pub fn read(hook: &Tree, member: &str) -> Self {
        let Some(tree) = read_object(hook, member) else { return Self::Requirements(Vec::new()) };
        match read_label_requirements(tree) {
            Ok(requirements) => Self::Requirements(requirements),
            Err(error) => Self::Invalid(error),
        }
    }

    /// Reports whether the selector has no requirements, so that it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Requirements(requirements) if requirements.is_empty())
    }

    /// Reports whether an object is selected. An invalid selector selects nothing.
    #[must_use]
    pub fn selects(&self, object: &Tree) -> bool {
        self.selects_any(&[Some(object)]).unwrap_or(false)
    }

    /// Reports whether at least one of the objects is selected. Objects that are absent or have no metadata never
    /// are.
    ///
    /// # Errors
    /// [`LabelSelectorError`] if the stored selector is invalid.
    pub(crate) fn selects_any(
        &self,
        objects: &[Option<&Tree>],
    ) -> Result<bool, &LabelSelectorError> {
        let requirements = match self {
            Self::Requirements(requirements) => requirements,
            Self::Invalid(error) => return Err(error),
        };
        let has_metadata = |tree: &&Tree| tree.get("metadata").is_some_and(Value::is_object);
        let mut objects = objects.iter().flatten().copied().filter(has_metadata);
        Ok(requirements.is_empty() || objects.any(|tree| matches_labels(requirements, tree)))
    }
}

/// Reads `matchLabels` in the order of their keys, then `matchExpressions`.
fn read_label_requirements(tree: &Tree) -> Result<Vec<LabelRequirement>, LabelSelectorError> {
    let labels = read_object(tree, "matchLabels").into_iter().flatten();
    let mut labels: Vec<(&str, &str)> =
        labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect();
    labels.sort_unstable();
    let equals = labels.into_iter().map(|(key, value)| {
        build_label_requirement(key, LabelOperator::In, vec![value.to_owned()])
    });
    let expressions = read_objects(tree, "matchExpressions").into_iter().map(|expression| {
        let name = read_string(expression, "operator").unwrap_or_default();
        let operator = parse_label_operator(name).ok_or_else(|| {
            let name = go_compat::quote(name);
            LabelSelectorError(format!("{name} is not a valid label selector operator"))
        })?;
        let key = read_string(expression, "key").unwrap_or_default();
        build_label_requirement(key, operator, read_owned_strings(expression, "values"))
    });
    equals.chain(expressions).collect()
}

/// Parses the operator of a match expression.
pub(crate) fn parse_label_operator(name: &str) -> Option<LabelOperator> {
    match name {
        "In" => Some(LabelOperator::In),
        "NotIn" => Some(LabelOperator::NotIn),
        "Exists" => Some(LabelOperator::Exists),
        "DoesNotExist" => Some(LabelOperator::DoesNotExist),
        _ => None,
    }
}

/// Validates a requirement as Kubernetes does when it evaluates a stored selector.
fn build_label_requirement(
    key: &str,
    operator: LabelOperator,
    mut values: Vec<String>,
) -> Result<LabelRequirement, LabelSelectorError> {
    let invalid = |member: &'static str, value: BadValue, detail: &str| {
        Err(LabelSelectorError(FieldPath::root(member).invalid(value, detail).to_string()))
    };
    if let Some(fault) = label_key_faults(key).first() {
        return invalid("key", key.into(), fault);
    }
    let wants_values = matches!(operator, LabelOperator::In | LabelOperator::NotIn);
    if wants_values == values.is_empty() {
        let detail = if wants_values {
            "for 'in', 'notin' operators, values set can't be empty"
        } else {
            "values set must be empty for exists and does not exist"
        };
        return invalid("values", BadValue::Json(Value::from(values).to_string()), detail);
    }
    let faulty = values.iter().find_map(|value| Some((value, label_value_faults(value).pop()?)));
    if let Some((value, fault)) = faulty {
        return invalid("values", value.as_str().into(), &fault);
    }
    values.sort_unstable();
    values.dedup();
    Ok(LabelRequirement { key: key.to_owned(), operator, values })
}
