//! Reads recorded scenarios from vectors.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Map, Value};

use crate::vectors::{UnusableVector, Vector};

/// A sequence of requests with the answers of kube-apiserver.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) id: String,
    pub(super) feature: String,
    /// The namespace that only this scenario uses.
    pub(super) namespace: Option<String>,
    pub(super) namespace_labels: Value,
    pub(super) steps: Vec<Step>,
    /// Objects to delete at the end.
    pub(super) cleanup: Vec<String>,
}

/// One request and its recorded answer.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) method: Method,
    pub(super) path: String,
    /// The headers of the step, without those of the connection and the credentials.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Bytes,
    /// Whether the step is repeated until the server gives the recorded answer.
    pub(super) is_eventual: bool,
    /// JSON pointers to values that are not compared; `*` is any member or item.
    pub(super) ignore: Vec<String>,
    pub(super) accepts_protobuf: bool,
    pub(super) expect: ExpectedAnswer,
}

/// The compared parts of the answer of kube-apiserver.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExpectedAnswer {
    pub(super) code: u64,
    /// The warnings of the answer, sorted.
    pub(super) warnings: Vec<String>,
    pub(super) body: Value,
}

impl Scenario {
    /// Reads a vector.
    ///
    /// # Errors
    /// The vector is not a scenario.
    pub(super) fn read(vector: &Vector) -> Result<Self, UnusableVector> {
        let member = |key: &str| vector.body.get(key).unwrap_or(&Value::Null);
        let steps = vector.list("steps")?.iter().enumerate();
        let steps: Result<Vec<Step>, UnusableVector> = steps
            .map(|(idx, step)| {
                Step::read(step)
                    .map_err(|error| UnusableVector::new(format!("steps[{idx}]: {error}")))
            })
            .collect();
        Ok(Self {
            id: vector.id.clone(),
            feature: vector.feature.clone(),
            namespace: member("namespace").as_str().map(str::to_owned),
            namespace_labels: member("namespaceLabels").clone(),
            steps: steps?,
            cleanup: parse_strings(member("cleanup"), "cleanup")?,
        })
    }

    /// Reports whether the scenario creates objects outside of its own namespace, which other scenarios at the
    /// same server could see.
    pub(super) fn needs_whole_server(&self) -> bool {
        self.namespace.is_none() || !self.cleanup.is_empty()
    }
}

impl Step {
    fn read(step: &Value) -> Result<Self, UnusableVector> {
        let text = |key: &str| {
            let text = step.get(key).and_then(Value::as_str);
            text.ok_or_else(|| UnusableVector::new(format!("`{key}` is missing or not a string")))
        };
        let accepts_protobuf = step.get("acceptProtobuf").and_then(Value::as_bool) == Some(true);
        let (body, content_type) = parse_body(step)?;
        let accept = match accepts_protobuf {
            true => "application/vnd.kubernetes.protobuf",
            false => "application/json",
        };
        let mut headers = vec![parse_header("Accept", accept)?];
        if let Some(content_type) = content_type {
            headers.push(parse_header("Content-Type", content_type)?);
        }
        for (name, value) in parse_members(step, "headers")? {
            let value = value
                .as_str()
                .ok_or_else(|| UnusableVector::new(format!("header `{name}` is not a string")))?;
            let (name, value) = parse_header(name, value)?;
            headers.retain(|(other, _)| *other != name);
            headers.push((name, value));
        }
        headers.extend(impersonation_headers(step.get("as").unwrap_or(&Value::Null))?);
        let expect =
            step.get("expect").ok_or_else(|| UnusableVector::new("`expect` is missing"))?;
        let mut warnings =
            parse_strings(expect.get("warnings").unwrap_or(&Value::Null), "expect.warnings")?;
        warnings.sort();
        let code = expect
            .get("code")
            .and_then(Value::as_u64)
            .ok_or_else(|| UnusableVector::new("`expect.code` is missing"))?;
        Ok(Self {
            method: text("method")?
                .parse()
                .map_err(|_| UnusableVector::new("`method` is not one of HTTP"))?,
            path: text("path")?.to_owned(),
            headers,
            body,
            is_eventual: step.get("until").is_some_and(|until| !until.is_null()),
            ignore: parse_strings(step.get("ignore").unwrap_or(&Value::Null), "ignore")?,
            accepts_protobuf,
            expect: ExpectedAnswer {
                code,
                warnings,
                body: expect.get("body").cloned().unwrap_or(Value::Null),
            },
        })
    }
}

/// The bytes to send, and their content type if the step does not name one.
fn parse_body(step: &Value) -> Result<(Bytes, Option<&'static str>), UnusableVector> {
    if let Some(text) = step.get("bodyBase64").and_then(Value::as_str) {
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| UnusableVector::new(format!("`bodyBase64`: {error}")))?;
        return Ok((bytes.into(), None));
    }
    Ok(match step.get("body") {
        None | Some(Value::Null) => (Bytes::new(), None),
        Some(Value::String(text)) => (text.clone().into(), Some("application/json")),
        Some(json) => (json.to_string().into(), Some("application/json")),
    })
}

/// The headers by which the administrator impersonates another user.
fn impersonation_headers(
    identity: &Value,
) -> Result<Vec<(HeaderName, HeaderValue)>, UnusableVector> {
    let mut headers = Vec::new();
    if let Some(user) = identity.get("user").and_then(Value::as_str) {
        headers.push(parse_header("Impersonate-User", user)?);
    }
    for group in parse_strings(identity.get("groups").unwrap_or(&Value::Null), "as.groups")? {
        headers.push(parse_header("Impersonate-Group", &group)?);
    }
    for (key, values) in parse_members(identity, "extra")? {
        let key = format!("Impersonate-Extra-{}", percent_encode(key));
        for value in parse_strings(values, "as.extra")? {
            headers.push(parse_header(&key, &value)?);
        }
    }
    Ok(headers)
}

/// Escapes a key of extra for the name of a header: every byte that is not part of an HTTP token.
fn percent_encode(key: &str) -> String {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
    let escape = |byte: u8| match is_token(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    key.bytes().map(escape).collect()
}

fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), UnusableVector> {
    let bad = || UnusableVector::new(format!("`{name}: {value}` is not a header"));
    let value = HeaderValue::from_str(value).map_err(|_| bad())?;
    Ok((name.parse().map_err(|_| bad())?, value))
}

fn parse_members<'a>(
    value: &'a Value,
    key: &str,
) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, UnusableVector> {
    let members = match value.get(key) {
        None | Some(Value::Null) => None,
        Some(Value::Object(members)) => Some(members),
        Some(_) => return Err(UnusableVector::new(format!("`{key}` is not an object"))),
    };
    Ok(members.into_iter().flat_map(Map::iter))
}

fn parse_strings(value: &Value, key: &str) -> Result<Vec<String>, UnusableVector> {
    let not_strings = || UnusableVector::new(format!("`{key}` is not a list of strings"));
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => {
            let text = |item: &Value| item.as_str().map(str::to_owned).ok_or_else(not_strings);
            items.iter().map(text).collect()
        }
        _ => Err(not_strings()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn step(members: Value) -> Result<Step, UnusableVector> {
        let mut step =
            json!({"method": "POST", "path": "/p", "expect": {"code": 201, "body": null}});
        for (key, value) in members.as_object().unwrap() {
            step[key] = value.clone();
        }
        Step::read(&step)
    }

    fn sent(step: &Step) -> Vec<String> {
        let shown = |(name, value): &(HeaderName, HeaderValue)| {
            format!("{name}: {}", value.to_str().unwrap())
        };
        step.headers.iter().map(shown).collect()
    }

    #[test]
    fn headers_and_bodies_are_those_of_the_step() {
        for (members, headers, body) in [
            (json!({}), vec!["accept: application/json"], &b""[..]),
            (
                json!({"body": {"a": 1}}),
                vec!["accept: application/json", "content-type: application/json"],
                b"{\"a\":1}",
            ),
            (
                json!({"body": "a: 1", "headers": {"Content-Type": "application/yaml"}}),
                vec!["accept: application/json", "content-type: application/yaml"],
                b"a: 1",
            ),
            (
                json!({"bodyBase64": "azhzAA==", "acceptProtobuf": true}),
                vec!["accept: application/vnd.kubernetes.protobuf"],
                b"k8s\0",
            ),
            (
                json!({"as": {"user": "u", "groups": ["g", "h"], "extra": {"a/b": ["1", "2"]}}}),
                vec![
                    "accept: application/json",
                    "impersonate-user: u",
                    "impersonate-group: g",
                    "impersonate-group: h",
                    "impersonate-extra-a%2fb: 1",
                    "impersonate-extra-a%2fb: 2",
                ],
                b"",
            ),
        ] {
            let step = step(members).unwrap();
            assert_eq!(sent(&step), headers);
            assert_eq!(step.body, body);
        }
    }

    #[test]
    fn a_step_that_can_not_be_sent_is_refused_with_its_reason() {
        for (members, want) in [
            (json!({"method": "NO SUCH"}), "`method` is not one of HTTP"),
            (json!({"path": 1}), "`path` is missing or not a string"),
            (json!({"bodyBase64": "*"}), "`bodyBase64`: "),
            (json!({"headers": {"a b": "c"}}), "`a b: c` is not a header"),
            (json!({"ignore": "/a"}), "`ignore` is not a list of strings"),
            (json!({"expect": {}}), "`expect.code` is missing"),
        ] {
            let error = step(members).unwrap_err();
            assert!(error.to_string().starts_with(want), "{error}");
        }
    }
}
