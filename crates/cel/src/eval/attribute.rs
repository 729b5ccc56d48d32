//! Paths: variables, fields, keys and indices, and tests for presence.

use std::sync::Arc;

use super::Evaluator;
use crate::function::{EvalError, EvalResult};
use crate::ir::{Attribute, AttributeRoot, Qualifier, QualifierKey};
use crate::value::{Map, Value};

impl<'a> Evaluator<'_, 'a> {
    /// The value at the end of a path; one unit for the path and one for each step.
    #[inline]
    pub(super) fn attribute(&mut self, attr: &'a Attribute) -> EvalResult<'a> {
        let outcome = self.resolve(attr);
        if outcome.as_ref().is_err_and(EvalError::ends_evaluation) {
            return outcome;
        }
        // A conditional costs nothing itself.
        if !matches!(attr.root, AttributeRoot::Conditional(_)) {
            self.charge(1)?;
        }
        outcome
    }

    /// The value at the end of a path without the unit for the path itself.
    fn resolve(&mut self, attr: &'a Attribute) -> EvalResult<'a> {
        if let AttributeRoot::Conditional(conditional) = &attr.root {
            return if self.bool(&conditional.condition)? {
                self.resolve(&conditional.then)
            } else {
                self.resolve(&conditional.otherwise)
            };
        }
        let root = self.root(attr)?;
        if attr.qualifiers.is_empty() { Ok(root) } else { self.walk(root, &attr.qualifiers) }
    }

    #[inline]
    fn root(&mut self, attr: &'a Attribute) -> EvalResult<'a> {
        match &attr.root {
            AttributeRoot::Variable(index) => match self.variables.get(*index) {
                Some(value) => Ok(value.clone()),
                None => Err(EvalError::new("no such attribute(s)")),
            },
            AttributeRoot::Slot(slot) => self.local(*slot),
            AttributeRoot::Value(expr) => self.value(expr),
            AttributeRoot::Conditional(conditional) => {
                let branch = if self.bool(&conditional.condition)? {
                    &conditional.then
                } else {
                    &conditional.otherwise
                };
                self.resolve(branch)
            }
        }
    }

    fn walk(&mut self, root: Value<'a>, path: &'a [Qualifier]) -> EvalResult<'a> {
        Ok(match self.steps(root, path)? {
            None => Value::Optional(None),
            Some((value, true)) => Value::some(value),
            Some((value, false)) => value,
        })
    }

    /// The value at the end of a path, and whether the path is an optional one: from an optional
    /// value at its root, or from its first optional step on. Optional values that a path meets
    /// further on are not looked into. `None` when an optional path ends early.
    fn steps(
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
            optional |= step.optional;
            let found = self.step(&value, &step.key)?;
            if optional {
                match found? {
                    KeyLookup::Value(next) => {
                        self.charge(1)?;
                        value = next;
                    }
                    KeyLookup::Nothing(_) => return Ok(None),
                }
            } else {
                self.charge(1)?;
                value = match found? {
                    KeyLookup::Value(next) => next,
                    KeyLookup::Nothing(computed) => {
                        return Err(missing(&value, &step.key, computed));
                    }
                };
            }
        }
        Ok(Some((value, optional)))
    }

    /// `has(path)`: only the steps cost.
    pub(super) fn evaluate_has(&mut self, attr: &'a Attribute) -> Result<bool, EvalError> {
        let present = self.is_present(attr);
        // A path costs one unit that the test gives back; a conditional gives back what it never
        // cost, as it does in cel-go.
        if matches!(attr.root, AttributeRoot::Conditional(_)) {
            self.cost = self.cost.saturating_sub(1);
        }
        present
    }

    fn is_present(&mut self, attr: &'a Attribute) -> Result<bool, EvalError> {
        if let AttributeRoot::Conditional(conditional) = &attr.root {
            return if self.bool(&conditional.condition)? {
                self.is_present(&conditional.then)
            } else {
                self.is_present(&conditional.otherwise)
            };
        }
        let Some((last, before)) = attr.qualifiers.split_last() else { return Ok(true) };
        let root = self.root(attr)?;
        match self.steps(root, before)? {
            None => Ok(false),
            Some((value, true)) => {
                let present = self.find(&value, &last.key)?.is_value();
                if present {
                    self.charge(1)?;
                }
                Ok(present)
            }
            Some((value, false)) => {
                let found = self.step(&value, &last.key)?;
                self.charge(1)?;
                Ok(found?.is_value())
            }
        }
    }

    /// One step, whose error must not keep it from being counted; only the end of the evaluation
    /// does.
    #[inline]
    fn step(
        &mut self,
        value: &Value<'a>,
        key: &'a QualifierKey,
    ) -> Result<Result<KeyLookup<'a>, EvalError>, EvalError> {
        match self.find(value, key) {
            Err(end) if end.ends_evaluation() => Err(end),
            found => Ok(found),
        }
    }

    /// The value there, or nothing.
    #[inline]
    fn find(
        &mut self,
        value: &Value<'a>,
        key: &'a QualifierKey,
    ) -> Result<KeyLookup<'a>, EvalError> {
        let found = match (key, value) {
            (QualifierKey::Field { index, .. }, Value::Map(Map::Record(record))) => {
                record.field(*index)
            }
            (QualifierKey::Field { name, .. } | QualifierKey::Name(name), Value::Map(map)) => {
                map.get_str(name)
            }
            (QualifierKey::Field { name, .. } | QualifierKey::Name(name), value) => {
                find_value(value, &Value::string(name))?
            }
            (QualifierKey::Const(constant), value) => find_value(value, constant)?,
            (QualifierKey::Computed(attr), value) => {
                let key = self.resolve(attr)?;
                if !is_key(&key) {
                    let kind = key.go_type_name();
                    return Err(EvalError::new(format!("invalid qualifier type: {kind}")));
                }
                self.step_budget.spend_for_value(&key)?;
                return Ok(match find_value(value, &key)? {
                    Some(value) => KeyLookup::Value(value),
                    None => KeyLookup::Nothing(Some(key)),
                });
            }
        };
        Ok(found.map_or(KeyLookup::Nothing(None), KeyLookup::Value))
    }
}

/// What a step finds.
enum KeyLookup<'a> {
    Value(Value<'a>),
    /// Nothing, and the key that was looked for if it had to be computed.
    Nothing(Option<Value<'a>>),
}

impl KeyLookup<'_> {
    fn is_value(&self) -> bool {
        matches!(self, Self::Value(_))
    }
}

/// The error about a step that found nothing.
fn missing(value: &Value<'_>, key: &QualifierKey, computed: Option<Value<'_>>) -> EvalError {
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

fn find_value<'a>(value: &Value<'a>, key: &Value<'a>) -> Result<Option<Value<'a>>, EvalError> {
    match value {
        Value::Map(map) => Ok(map.get(key)),
        Value::List(list) => Ok(list_index(key)?.and_then(|index| list.get(index))),
        _ => Ok(None),
    }
}

/// Whether a value can be an index or a key at all.
fn is_key(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_)
    )
}

/// The position that an index names; `None` when it is out of every list's range.
fn list_index(key: &Value<'_>) -> Result<Option<usize>, EvalError> {
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
