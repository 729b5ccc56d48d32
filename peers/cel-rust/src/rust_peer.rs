//! Measures the published `cel` crate, with values that are made beforehand.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use peer::objects::{Key, Map};
use peer::{Context, Program, Value};

use crate::cases::{self, Case};
use crate::measure::{Effort, Measured, measure};

/// Measures one evaluation of all conditions.
pub fn run(case: &Case, effort: Effort) -> Result<Measured, Box<dyn Error>> {
    let programs = case
        .expressions
        .iter()
        .map(|expression| Program::compile(expression))
        .collect::<Result<Vec<_>, _>>()?;
    let mut context = Context::default();
    context.add_variable_from_value("request", convert(&cases::request()));
    let evaluate = || {
        programs.iter().all(|program| matches!(program.execute(&context), Ok(Value::Bool(true))))
    };
    if !evaluate() {
        return Err("the cel crate does not find it true".into());
    }
    Ok(measure(effort, evaluate))
}

fn convert(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(b) => Value::Bool(*b),
        serde_json::Value::Number(n) => Value::Float(n.as_f64().unwrap_or(0.0)),
        serde_json::Value::String(text) => Value::String(Arc::new(text.clone())),
        serde_json::Value::Array(items) => {
            Value::List(Arc::new(items.iter().map(convert).collect()))
        }
        serde_json::Value::Object(fields) => {
            let map: HashMap<Key, Value> = fields
                .iter()
                .map(|(key, value)| (Key::String(Arc::new(key.clone())), convert(value)))
                .collect();
            Value::Map(Map { map: Arc::new(map) })
        }
    }
}
