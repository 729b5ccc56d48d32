//! The test cases of `cel-spec.jsonl` and their results.

use cel::{Bytes, COST_LIMIT, Environment, Map, OwnedMap, Type, TypeName, Value};
use serde_json::{Value as Json, json};

/// A test of the CEL project, with the result of Kubernetes.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) expr: String,
    pub(crate) container: String,
    pub(crate) disable_check: bool,
    pub(crate) check_only: bool,
    pub(crate) variables: Vec<Variable>,
    pub(crate) functions: Vec<String>,
    pub(crate) expect: Expect,
    pub(crate) kubernetes: Answer,
}

/// A variable of one test.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) value: Value<'static>,
}

/// The result that the CEL project expects: a value or an error, and optionally a type.
#[derive(Debug)]
pub(crate) struct Expect {
    pub(crate) value: Option<Json>,
    /// `Some` if an error is expected. The CEL project does not compare messages; these are hints.
    pub(crate) errors: Option<Vec<String>>,
    pub(crate) ty: Option<String>,
}

/// The result of an expression in one implementation. Values are in the form of the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// The expression does not parse or does not pass the checks.
    Compile { error: String },
    /// Folding a constant of the expression fails.
    Program { ty: String, error: String },
    /// The evaluation of the expression fails.
    Eval { ty: String, error: String },
    /// The test only checks the type of the expression.
    Type { ty: String },
    /// The value of the expression. The cost is absent if it varies between evaluations.
    Value { ty: String, value: Json, cost: Option<u64> },
}

impl Case {
    /// Reads a line; `None` when it does not describe a test.
    pub(crate) fn decode(line: &Json) -> Option<Self> {
        let text =
            |name: &str| line.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
        let flag = |name: &str| line.get(name).and_then(Json::as_bool).unwrap_or_default();
        let variables = line.get("variables").and_then(Json::as_array).into_iter().flatten();
        Some(Self {
            file: text("file"),
            section: text("section"),
            name: text("name"),
            expr: line.get("expr")?.as_str()?.to_owned(),
            container: text("container"),
            disable_check: flag("disable_check"),
            check_only: flag("check_only"),
            variables: variables.map(decode_variable).collect::<Option<_>>()?,
            functions: line.get("functions").map_or(Some(Vec::new()), decode_texts)?,
            expect: Expect::decode(line.get("expect")?),
            kubernetes: Answer::decode(line.get("kubernetes")?)?,
        })
    }

    /// The result of this crate. As in Kubernetes, the container and the functions of the test are
    /// not available, and the expression is always type-checked.
    pub(crate) fn answer(&self) -> Answer {
        let declared = self.variables.iter().map(|v| (v.name.as_str(), v.ty.clone())).collect();
        let environment = Environment::for_stored_expressions(declared);
        let checked = match environment.check(&self.expr) {
            Ok(checked) => checked,
            Err(issues) => {
                return Answer::Compile { error: issues.to_string() };
            }
        };
        let ty = checked.output_type().to_string();
        if self.check_only {
            return Answer::Type { ty };
        }
        let program = match checked.into_program() {
            Ok(program) => program,
            Err(error) => return Answer::Program { ty, error: error.to_string() },
        };
        let values: Vec<Value<'_>> = self.variables.iter().map(|v| v.value.clone()).collect();
        let evaluation = program.evaluate(&values, COST_LIMIT);
        match &evaluation.result {
            Ok(value) => {
                Answer::Value { ty, value: encode_value(value), cost: Some(evaluation.cost) }
            }
            Err(failure) => Answer::Eval { ty, error: failure.to_string() },
        }
    }
}

impl Expect {
    fn decode(expect: &Json) -> Self {
        Self {
            value: expect.get("value").map(normal_value),
            errors: expect.get("error").and_then(decode_texts),
            ty: expect.get("type").and_then(Json::as_str).map(str::to_owned),
        }
    }

    /// Reports whether a result is the one that the CEL project expects. An error of constant folding counts as an
    /// error of the evaluation.
    pub(crate) fn is_met_by(&self, answer: &Answer) -> bool {
        let (ty, value) = match answer {
            Answer::Compile { .. } => return false,
            Answer::Program { ty, .. } | Answer::Eval { ty, .. } => (ty, None),
            Answer::Type { ty } => return self.ty.as_ref() == Some(ty),
            Answer::Value { ty, value, .. } => (ty, Some(value)),
        };
        self.ty.as_ref().is_none_or(|expected| expected == ty)
            && self.value.as_ref() == value
            && self.errors.is_some() == value.is_none()
    }
}

impl Answer {
    fn decode(answer: &Json) -> Option<Self> {
        let text = |name: &str| answer.get(name)?.as_str().map(str::to_owned);
        match (text("stage").as_deref(), answer.get("value")) {
            (Some("compile"), None) => Some(Self::Compile { error: text("error")? }),
            (Some("program"), None) => {
                Some(Self::Program { ty: text("type")?, error: text("error")? })
            }
            (Some("eval"), None) => Some(Self::Eval { ty: text("type")?, error: text("error")? }),
            (None, None) => Some(Self::Type { ty: text("type")? }),
            (None, Some(value)) => Some(Self::Value {
                ty: text("type")?,
                value: normal_value(value),
                cost: answer.get("cost").and_then(Json::as_u64),
            }),
            _ => None,
        }
    }

    /// Reports whether this is the recorded result.
    pub(crate) fn agrees_with(&self, recorded: &Self) -> bool {
        match (self, recorded) {
            (
                Self::Value { ty, value, .. },
                Self::Value { ty: recorded_ty, value: recorded_value, cost: None },
            ) => ty == recorded_ty && value == recorded_value,
            _ => self == recorded,
        }
    }
}

fn decode_variable(variable: &Json) -> Option<Variable> {
    Some(Variable {
        name: variable.get("name")?.as_str()?.to_owned(),
        ty: decode_type(variable.get("type")?.as_str()?)?,
        value: decode_value(variable.get("value")?)?,
    })
}

fn decode_texts(texts: &Json) -> Option<Vec<String>> {
    texts.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Reads a type as cel-go writes it. Keys of maps are scalars, so the first comma follows the key.
fn decode_type(text: &str) -> Option<Type> {
    match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some(("list", element)) => Some(Type::list_type_of(decode_type(element)?)),
        Some(("map", entry)) => {
            let (key, value) = entry.split_once(", ")?;
            Some(Type::map_type_of(decode_type(key)?, decode_type(value)?))
        }
        Some(("wrapper", inner)) => Some(Type::Wrapper(decode_type(inner)?.into())),
        Some(_) => None,
        None => match text {
            "bool" => Some(Type::Bool),
            "bytes" => Some(Type::Bytes),
            "double" => Some(Type::Double),
            "duration" => Some(Type::Duration),
            "dyn" => Some(Type::Dyn),
            "int" => Some(Type::Int),
            "null" => Some(Type::Null),
            "string" => Some(Type::String),
            "uint" => Some(Type::Uint),
            _ => None,
        },
    }
}

/// Reads a value: an object of one member that is named for the kind.
fn decode_value(tagged: &Json) -> Option<Value<'static>> {
    let (kind, content) = tagged.as_object()?.iter().next()?;
    Some(match (kind.as_str(), content) {
        ("null", _) => Value::Null,
        ("bool", Json::Bool(value)) => Value::Bool(*value),
        ("int", Json::String(text)) => Value::Int(text.parse().ok()?),
        ("uint", Json::String(text)) => Value::Uint(text.parse().ok()?),
        ("double", Json::String(text)) => Value::Double(text.parse().ok()?),
        ("string", Json::String(text)) => Value::owned_string(text.as_str()),
        ("bytes", Json::String(text)) => Value::Bytes(Bytes::Owned(decode_hex(text)?.into())),
        ("duration", Json::String(nanos)) => Value::Duration(nanos.parse().ok()?),
        ("list", Json::Array(elements)) => {
            Value::owned_list_value(elements.iter().map(decode_value).collect::<Option<_>>()?)
        }
        ("map", Json::Array(entries)) => {
            let mut map = OwnedMap::new();
            for entry in entries {
                map.set(decode_value(entry.get(0)?)?, decode_value(entry.get(1)?)?);
            }
            Value::Map(Map::from_owned_map(map))
        }
        _ => return None,
    })
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits = (0..text.len()).step_by(2);
    digits.map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

/// Writes a value in the form of the file, except that numbers are as Rust writes them.
fn encode_value(value: &Value<'_>) -> Json {
    match value {
        Value::Null => json!({"null": true}),
        Value::Bool(value) => json!({"bool": value}),
        Value::Int(value) => json!({"int": value.to_string()}),
        Value::Uint(value) => json!({"uint": value.to_string()}),
        Value::Double(value) => json!({"double": value.to_string()}),
        Value::String(text) => json!({"string": text.as_str()}),
        Value::Bytes(bytes) => {
            let digits: String = bytes.as_slice().iter().map(|b| format!("{b:02x}")).collect();
            json!({"bytes": digits})
        }
        Value::Duration(nanos) => json!({"duration": nanos.to_string()}),
        Value::Type(TypeName(name)) => json!({"type": name}),
        Value::List(list) => {
            json!({"list": list.iter().map(|element| encode_value(&element)).collect::<Vec<_>>()})
        }
        Value::Map(map) => {
            let entry = |(key, value)| json!([encode_value(&key), encode_value(&value)]);
            let mut entries: Vec<Json> = map.iter().map(entry).collect();
            entries.sort_by_key(|entry| entry[0].to_string());
            json!({"map": entries})
        }
        Value::Timestamp(_) | Value::Optional(_) | Value::Opaque(_) => {
            json!({"unlike any recorded value": value.type_name()})
        }
    }
}

/// A value of the file as [`encode_value`] writes it, so that the two can be compared.
fn normal_value(tagged: &Json) -> Json {
    if let Some(number) = tagged.get("double").and_then(Json::as_str) {
        return json!({"double": number.parse::<f64>().map_or(number.to_owned(), |d| d.to_string())});
    }
    if let Some(elements) = tagged.get("list").and_then(Json::as_array) {
        return json!({"list": elements.iter().map(normal_value).collect::<Vec<_>>()});
    }
    if let Some(entries) = tagged.get("map").and_then(Json::as_array) {
        let entry = |entry: &Json| json!([normal_value(&entry[0]), normal_value(&entry[1])]);
        let mut entries: Vec<Json> = entries.iter().map(entry).collect();
        entries.sort_by_key(|entry| entry[0].to_string());
        return json!({"map": entries});
    }
    tagged.clone()
}
