//! Evaluates attributes (variables, fields, keys and indices) and `has()`.

use std::sync::Arc;

use super::Evaluator;
use crate::function::{EvalError, EvalResult};
use crate::ir::{Attribute, AttributeRoot, Qualifier, QualifierKey};
use crate::value::{Map, Value};

impl<'a> Evaluator<'_, 'a> {
    /// The value of an attribute. It costs one unit, and one for each qualifier.
    #[inline]
    pub(super) fn evaluate_attribute(&mut self, attr: &'a Attribute) -> EvalResult<'a> {
        let outcome = self.resolve_attribute(attr);
        if outcome.as_ref().is_err_and(EvalError::ends_evaluation) {
            return outcome;
        }
        // Choosing a branch of a conditional costs nothing.
        if !matches!(attr.attribute_root, AttributeRoot::Conditional(_)) {
            self.charge_cost(1)?;
        }
        outcome
    }

    /// The value of an attribute, without the unit for the attribute itself.
    fn resolve_attribute(&mut self, attr: &'a Attribute) -> EvalResult<'a> {
        if let AttributeRoot::Conditional(conditional) = &attr.attribute_root {
            return if self.evaluate_bool(&conditional.condition)? {
                self.resolve_attribute(&conditional.then_branch)
            } else {
                self.resolve_attribute(&conditional.else_branch)
            };
        }
        let root = self.resolve_attribute_root(attr)?;
        if attr.qualifiers.is_empty() {
            Ok(root)
        } else {
            self.resolve_qualifiers(root, &attr.qualifiers)
        }
    }

    #[inline]
    fn resolve_attribute_root(&mut self, attr: &'a Attribute) -> EvalResult<'a> {
        match &attr.attribute_root {
            AttributeRoot::Variable(index) => match self.variables.get(*index) {
                Some(value) => Ok(value.clone()),
                None => Err(EvalError::new("no such attribute(s)")),
            },
            AttributeRoot::Slot(slot) => self.read_local_variable(*slot),
            AttributeRoot::Value(expr) => self.evaluate_expression(expr),
            AttributeRoot::Conditional(conditional) => {
                let branch = if self.evaluate_bool(&conditional.condition)? {
                    &conditional.then_branch
                } else {
                    &conditional.else_branch
                };
                self.resolve_attribute(branch)
            }
        }
    }

    fn resolve_qualifiers(&mut self, root: Value<'a>, path: &'a [Qualifier]) -> EvalResult<'a> {
        Ok(match self.apply_qualifiers(root, path)? {
            None => Value::Optional(None),
            Some((value, true)) => Value::optional_some(value),
            Some((value, false)) => value,
        })
    }

    /// Applies qualifiers. Returns the value and whether the result is optional: it is if the root
    /// is an optional value or if a qualifier is optional. Optional values after the root are not
    /// unwrapped. Returns `None` if an optional selection finds nothing.
    fn apply_qualifiers(
        &mut self,
        root: Value<'a>,
        path: &'a [Qualifier],
    ) -> Result<Option<(Value<'a>, bool)>, EvalError> {
        let (mut value, mut optional) = match root {
            Value::Optional(None) => return Ok(None),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        for step in path {
            optional |= step.is_optional_qualifier;
            let found = self.apply_qualifier(&value, &step.key)?;
            if optional {
                match found? {
                    KeyLookupResult::Value(next) => {
                        self.charge_cost(1)?;
                        value = next;
                    }
                    KeyLookupResult::Missing(_) => return Ok(None),
                }
            } else {
                self.charge_cost(1)?;
                value = match found? {
                    KeyLookupResult::Value(next) => next,
                    KeyLookupResult::Missing(computed) => {
                        return Err(missing_key_error(&value, &step.key, computed));
                    }
                };
            }
        }
        Ok(Some((value, optional)))
    }

    /// Evaluates `has(attribute)`. Only the qualifiers have a cost.
    pub(super) fn evaluate_has(&mut self, attr: &'a Attribute) -> Result<bool, EvalError> {
        let present = self.is_attribute_present(attr);
        // cel-go refunds the unit of the attribute, even for a conditional, which is free.
        if matches!(attr.attribute_root, AttributeRoot::Conditional(_)) {
            self.charged_cost = self.charged_cost.saturating_sub(1);
        }
        present
    }

    fn is_attribute_present(&mut self, attr: &'a Attribute) -> Result<bool, EvalError> {
        if let AttributeRoot::Conditional(conditional) = &attr.attribute_root {
            return if self.evaluate_bool(&conditional.condition)? {
                self.is_attribute_present(&conditional.then_branch)
            } else {
                self.is_attribute_present(&conditional.else_branch)
            };
        }
        let Some((last, before)) = attr.qualifiers.split_last() else { return Ok(true) };
        let root = self.resolve_attribute_root(attr)?;
        match self.apply_qualifiers(root, before)? {
            None => Ok(false),
            Some((value, true)) => {
                let present = self.look_up_key(&value, &last.key)?.is_key_found();
                if present {
                    self.charge_cost(1)?;
                }
                Ok(present)
            }
            Some((value, false)) => {
                let found = self.apply_qualifier(&value, &last.key)?;
                self.charge_cost(1)?;
                Ok(found?.is_key_found())
            }
        }
    }

    /// Applies one qualifier. The caller charges it even if it fails, unless the error ends the
    /// evaluation.
    #[inline]
    fn apply_qualifier(
        &mut self,
        value: &Value<'a>,
        key: &'a QualifierKey,
    ) -> Result<Result<KeyLookupResult<'a>, EvalError>, EvalError> {
        match self.look_up_key(value, key) {
            Err(end) if end.ends_evaluation() => Err(end),
            found => Ok(found),
        }
    }

    /// Looks up the key of a qualifier in a value.
    #[inline]
    fn look_up_key(
        &mut self,
        value: &Value<'a>,
        key: &'a QualifierKey,
    ) -> Result<KeyLookupResult<'a>, EvalError> {
        let found = match (key, value) {
            (QualifierKey::Field { index, .. }, Value::Map(Map::Record(record))) => {
                record.field(*index)
            }
            (QualifierKey::Field { name, .. } | QualifierKey::Name(name), Value::Map(map)) => {
                map.get_by_str_key(name)
            }
            (QualifierKey::Field { name, .. } | QualifierKey::Name(name), value) => {
                look_up_in_container(value, &Value::borrowed_string(name))?
            }
            (QualifierKey::Const(constant), value) => look_up_in_container(value, constant)?,
            (QualifierKey::Computed(attr), value) => {
                let key = self.resolve_attribute(attr)?;
                if !is_valid_key(&key) {
                    let kind = key.go_type_name();
                    return Err(EvalError::new(format!("invalid qualifier type: {kind}")));
                }
                self.step_budget.spend_for_value(&key)?;
                return Ok(match look_up_in_container(value, &key)? {
                    Some(value) => KeyLookupResult::Value(value),
                    None => KeyLookupResult::Missing(Some(key)),
                });
            }
        };
        Ok(found.map_or(KeyLookupResult::Missing(None), KeyLookupResult::Value))
    }
}

/// The result of looking up a qualifier key.
enum KeyLookupResult<'a> {
    Value(Value<'a>),
    /// The container has no such value. The key is given if it was computed, for the error message.
    Missing(Option<Value<'a>>),
}

impl KeyLookupResult<'_> {
    fn is_key_found(&self) -> bool {
        matches!(self, Self::Value(_))
    }
}

/// The error for a qualifier that selects nothing.
fn missing_key_error(
    value: &Value<'_>,
    key: &QualifierKey,
    computed: Option<Value<'_>>,
) -> EvalError {
    let key = match key {
        QualifierKey::Field { name, .. } | QualifierKey::Name(name) => {
            return EvalError::NoSuchKey(Arc::clone(name));
        }
        QualifierKey::Const(constant) => constant.to_string(),
        QualifierKey::Computed(_) => computed.map(|key| key.to_string()).unwrap_or_default(),
    };
    match value {
        Value::List(_) => EvalError::new(format!("index out of bounds: {key}")),
        _ => EvalError::new(format!("no such key: {key}")),
    }
}

fn look_up_in_container<'a>(
    value: &Value<'a>,
    key: &Value<'a>,
) -> Result<Option<Value<'a>>, EvalError> {
    match value {
        Value::Map(map) => Ok(map.get(key)),
        Value::List(list) => Ok(to_list_index(key)?.and_then(|index| list.get(index))),
        _ => Ok(None),
    }
}

/// Reports whether a value has a type that can be an index or a key.
fn is_valid_key(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_)
    )
}

/// The list position of an index value; `None` if it is out of range for every list.
fn to_list_index(key: &Value<'_>) -> Result<Option<usize>, EvalError> {
    let unsupported = || EvalError::new(format!("unsupported index value {key} in list"));
    match key {
        Value::Int(i) => Ok(usize::try_from(*i).ok()),
        Value::Uint(u) => {
            i64::try_from(*u).map(|i| usize::try_from(i).ok()).map_err(|_| unsupported())
        }
        Value::Double(d) if d.fract() == 0.0 && d.abs() < 9_007_199_254_740_992.0 => {
            Ok(usize::try_from(*d as i64).ok())
        }
        Value::Double(_) => Err(unsupported()),
        other => {
            Err(EvalError::new(format!("unsupported index type '{}' in list", other.type_name())))
        }
    }
}
