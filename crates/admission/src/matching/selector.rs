//! Label selectors of hooks (admission §3.8).

use api_object::{Tree, matches_labels};
use authz::{LabelOperator, LabelRequirement};
use field_errors::{label_key_faults, label_value_faults};
use serde_json::Value;

use crate::members::{object, objects, owned_texts, text};

/// A label selector as a stored hook has it. It was valid when it was stored, by the rules of that
/// day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelSelector {
    /// Selects what satisfies all requirements, which is everything if there are none.
    Requirements(Vec<LabelRequirement>),
    /// Can not be understood; the text says why.
    Unusable(String),
}

impl LabelSelector {
    /// Reads the selector in a member of a hook; an absent one selects everything.
    pub(crate) fn read(hook: &Tree, member: &str) -> Self {
        let Some(tree) = object(hook, member) else { return Self::Requirements(Vec::new()) };
        match requirements(tree) {
            Ok(requirements) => Self::Requirements(requirements),
            Err(cause) => Self::Unusable(cause),
        }
    }

    /// Whether there is nothing to look at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Requirements(requirements) if requirements.is_empty())
    }

    /// Whether one of the objects is selected; objects that are absent or have no metadata never
    /// are.
    ///
    /// # Errors
    /// Says why the selector can not be understood.
    pub(crate) fn selects(&self, objects: &[Option<&Tree>]) -> Result<bool, &str> {
        let requirements = match self {
            Self::Requirements(requirements) => requirements,
            Self::Unusable(cause) => return Err(cause),
        };
        let has_metadata = |tree: &&Tree| tree.get("metadata").is_some_and(Value::is_object);
        let mut objects = objects.iter().flatten().copied().filter(has_metadata);
        Ok(requirements.is_empty() || objects.any(|tree| matches_labels(requirements, tree)))
    }
}

/// Reads `matchLabels` in the order of their keys, then `matchExpressions`.
fn requirements(tree: &Tree) -> Result<Vec<LabelRequirement>, String> {
    let labels = object(tree, "matchLabels").into_iter().flatten();
    let mut labels: Vec<(&str, &str)> =
        labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect();
    labels.sort_unstable();
    let equals = labels
        .into_iter()
        .map(|(key, value)| requirement(key, LabelOperator::In, vec![value.to_owned()]));
    let expressions = objects(tree, "matchExpressions").into_iter().map(|expression| {
        let name = text(expression, "operator").unwrap_or_default();
        let operator = operator(name).ok_or_else(|| {
            format!("{} is not a valid label selector operator", go_compat::quote(name))
        })?;
        let key = text(expression, "key").unwrap_or_default();
        requirement(key, operator, owned_texts(expression, "values"))
    });
    equals.chain(expressions).collect()
}

/// The operator of an expression.
pub(crate) fn operator(name: &str) -> Option<LabelOperator> {
    match name {
        "In" => Some(LabelOperator::In),
        "NotIn" => Some(LabelOperator::NotIn),
        "Exists" => Some(LabelOperator::Exists),
        "DoesNotExist" => Some(LabelOperator::DoesNotExist),
        _ => None,
    }
}

/// Checks what the requirements of a selector must be like to mean something.
fn requirement(
    key: &str,
    operator: LabelOperator,
    mut values: Vec<String>,
) -> Result<LabelRequirement, String> {
    let at = field_errors::FieldPath::root("key");
    if let Some(fault) = label_key_faults(key).first() {
        return Err(at.invalid(key, fault).to_string());
    }
    let wants_values = matches!(operator, LabelOperator::In | LabelOperator::NotIn);
    if wants_values == values.is_empty() {
        let detail = if wants_values {
            "for 'in', 'notin' operators, values set can't be empty"
        } else {
            "values set must be empty for exists and does not exist"
        };
        let shown = field_errors::BadValue::Json(Value::from(values).to_string());
        return Err(field_errors::FieldPath::root("values").invalid(shown, detail).to_string());
    }
    let faulty = values.iter().find_map(|value| Some((value, label_value_faults(value).pop()?)));
    if let Some((value, fault)) = faulty {
        return Err(field_errors::FieldPath::root("values")
            .invalid(value.as_str(), &fault)
            .to_string());
    }
    values.sort_unstable();
    values.dedup();
    Ok(LabelRequirement { key: key.to_owned(), operator, values })
}
