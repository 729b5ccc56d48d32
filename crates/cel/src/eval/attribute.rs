//! Paths: variables, fields, keys and indices, and tests for presence.

use super::Evaluator;
use crate::function::{Failure, Outcome};
use crate::ir::{Attr, Key, Qualifier, Root};
use crate::value::{Map, Value};

impl<'a> Evaluator<'_, 'a> {
    /// The value at the end of a path; one unit for the path and one for each step.
    #[inline]
    pub(super) fn attribute(&mut self, attr: &'a Attr) -> Outcome<'a> {
        let outcome = self.resolve(attr);
        if matches!(outcome, Err(Failure::CostLimit)) {
            return outcome;
        }
        // A conditional costs nothing itself.
        if !matches!(attr.root, Root::Conditional(_)) {
            self.charge(1)?;
        }
        outcome
    }

    /// The value at the end of a path without the unit for the path itself.
    fn resolve(&mut self, attr: &'a Attr) -> Outcome<'a> {
        if let Root::Conditional(conditional) = &attr.root {
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
    fn root(&mut self, attr: &'a Attr) -> Outcome<'a> {
        match &attr.root {
            Root::Variable(index) => match self.variables.get(*index) {
                Some(value) => Ok(value.clone()),
                None => Err(Failure::new("no such attribute(s)")),
            },
            Root::Slot(slot) => self.local(*slot),
            Root::Value(expr) => self.value(expr),
            Root::Conditional(conditional) => {
                let branch = if self.bool(&conditional.condition)? {
                    &conditional.then
                } else {
                    &conditional.otherwise
                };
                self.resolve(branch)
            }
        }
    }

    fn walk(&mut self, root: Value<'a>, path: &'a [Qualifier]) -> Outcome<'a> {
        let (mut value, mut optional) = match root {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        for step in path {
            optional |= step.optional;
            let found = self.find(&value, &step.key);
            if matches!(found, Err(Failure::CostLimit)) {
                return Err(Failure::CostLimit);
            }
            if optional {
                match found? {
                    Some(next) => {
                        self.charge(1)?;
                        value = next;
                    }
                    None => return Ok(Value::Optional(None)),
                }
            } else {
                self.charge(1)?;
                value = match found? {
                    Some(next) => next,
                    None => return Err(self.missing(&value, &step.key)),
                };
            }
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    /// `has(path)`: only the steps cost.
    pub(super) fn has(&mut self, attr: &'a Attr) -> Result<bool, Failure> {
        if let Root::Conditional(conditional) = &attr.root {
            return if self.bool(&conditional.condition)? {
                self.has(&conditional.then)
            } else {
                self.has(&conditional.otherwise)
            };
        }
        let Some((last, before)) = attr.qualifiers.split_last() else { return Ok(true) };
        let root = self.root(attr)?;
        let value = if before.is_empty() { root } else { self.walk(root, before)? };
        match value {
            Value::Optional(None) => Ok(false),
            Value::Optional(Some(inner)) => {
                let present = self.find(&inner, &last.key)?.is_some();
                if present {
                    self.charge(1)?;
                }
                Ok(present)
            }
            value => {
                let found = self.find(&value, &last.key);
                self.charge(1)?;
                Ok(found?.is_some())
            }
        }
    }

    /// One step: the value there, or nothing.
    #[inline]
    fn find(&mut self, value: &Value<'a>, key: &'a Key) -> Result<Option<Value<'a>>, Failure> {
        match (key, value) {
            (Key::Field { index, .. }, Value::Map(Map::Record(record))) => Ok(record.field(*index)),
            (Key::Field { name, .. } | Key::Name(name), Value::Map(map)) => Ok(map.get_str(name)),
            (Key::Field { name, .. } | Key::Name(name), value) => {
                find_value(value, &Value::string(name))
            }
            (Key::Const(constant), value) => find_value(value, constant),
            (Key::Computed(attr), value) => {
                let key = self.resolve(attr)?;
                let found = find_value(value, &key)?;
                if found.is_none() {
                    self.computed_key = Some(key);
                }
                Ok(found)
            }
        }
    }

    fn missing(&mut self, value: &Value<'a>, key: &'a Key) -> Failure {
        let key = match key {
            Key::Field { name, .. } | Key::Name(name) => {
                return Failure::NoSuchKey(std::sync::Arc::clone(name));
            }
            Key::Const(constant) => constant.clone(),
            Key::Computed(_) => self.computed_key.take().unwrap_or(Value::Null),
        };
        match value {
            Value::List(_) => Failure::new(format!("index out of bounds: {key}")),
            _ => Failure::new(format!("no such key: {key}")),
        }
    }
}

fn find_value<'a>(value: &Value<'a>, key: &Value<'a>) -> Result<Option<Value<'a>>, Failure> {
    match value {
        Value::Map(map) => Ok(map.get(key)),
        Value::List(list) => Ok(list_index(key)?.and_then(|index| list.get(index))),
        Value::Optional(Some(inner)) => find_value(inner, key),
        _ => Ok(None),
    }
}

/// The position that an index names; `None` when it is out of every list's range.
fn list_index(key: &Value<'_>) -> Result<Option<usize>, Failure> {
    let unsupported = || Failure::new(format!("unsupported index value {key} in list"));
    match key {
        Value::Int(i) => Ok(usize::try_from(*i).ok()),
        Value::Uint(u) => i64::try_from(*u).map(|i| usize::try_from(i).ok()).map_err(|_| unsupported()),
        Value::Double(d) if d.fract() == 0.0 && d.abs() < 9_007_199_254_740_992.0 => {
            Ok(usize::try_from(*d as i64).ok())
        }
        Value::Double(_) => Err(unsupported()),
        other => Err(Failure::new(format!("unsupported index type '{}' in list", other.type_name()))),
    }
}
