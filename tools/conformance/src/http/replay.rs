//! Replays the requests of one scenario and compares the answers.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Value, json};

use super::client::{Client, ClientError, Response};
use super::normalize::{normalize, normalize_text};
use super::scenario::{ExpectedAnswer, Scenario, Step};
use crate::compare::Difference;

/// The interval at which a step with `until` is repeated.
const UNTIL_INTERVAL: Duration = Duration::from_millis(100);
/// The longest time between the delete of an object and its absence.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(5);
const CLEANUP_INTERVAL: Duration = Duration::from_millis(20);
/// The text for an absent member in a difference.
const ABSENT: &str = "(absent)";
/// The prefix of warnings about objects that the server stores and does not enforce.
const UNENFORCED: &str = "not enforced by this server: ";
const PROTOBUF_MAGIC: &[u8] = b"k8s\0";

/// The result of one scenario.
#[derive(Debug)]
pub struct ScenarioOutcome {
    /// The id of the scenario.
    pub id: String,
    /// A word that groups scenarios about the same subject.
    pub feature: String,
    /// The number of requests of the scenario.
    pub n_requests: usize,
    /// The number of requests whose answer is the recorded one.
    pub n_requests_passed: usize,
    /// The first answer that differs.
    pub first_difference: Option<StepDifference>,
}

/// A step whose answer differs.
#[derive(Debug)]
pub struct StepDifference {
    /// The number of the step, from 1; 0 is the creation of the namespace.
    pub step: usize,
    /// The method and the path.
    pub request: String,
    /// The places where the answer differs from the recorded one.
    pub differences: Vec<Difference>,
}

impl ScenarioOutcome {
    /// Reports whether every answer is the recorded one.
    pub fn is_passed(&self) -> bool {
        self.first_difference.is_none()
    }
}

/// One scenario at one server.
pub(super) struct Replay<'a> {
    scenario: &'a Scenario,
    client: &'a mut Client,
    /// The longest time for which a step with `until` is repeated.
    until_timeout: Duration,
    /// Paths of objects that the scenario created.
    created: BTreeSet<String>,
}

impl<'a> Replay<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        client: &'a mut Client,
        until_timeout: Duration,
    ) -> Self {
        Self { scenario, client, until_timeout, created: BTreeSet::new() }
    }

    /// Replays all steps. After the first difference no step is repeated: most later steps differ as a consequence, and
    /// waiting for each would take hours.
    pub(super) async fn run(&mut self) -> ScenarioOutcome {
        let scenario = self.scenario;
        let mut outcome = ScenarioOutcome {
            id: scenario.id.clone(),
            feature: scenario.feature.clone(),
            n_requests: scenario.steps.len(),
            n_requests_passed: 0,
            first_difference: self.create_namespace().await,
        };
        for (idx, step) in scenario.steps.iter().enumerate() {
            let may_repeat = step.is_eventual && outcome.first_difference.is_none();
            let differences = self.replay_step(step, may_repeat).await;
            if differences.is_empty() {
                outcome.n_requests_passed += 1;
            } else if outcome.first_difference.is_none() {
                let request = format!("{} {}", step.method, step.path);
                outcome.first_difference =
                    Some(StepDifference { step: idx + 1, request, differences });
            }
        }
        outcome
    }

    async fn create_namespace(&mut self) -> Option<StepDifference> {
        let name = self.scenario.namespace.as_deref()?;
        let mut metadata = json!({"name": name});
        if self.scenario.namespace_labels.is_object() {
            metadata["labels"] = self.scenario.namespace_labels.clone();
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"},
        });
        let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
        for (path, object, may_exist) in
            [("/api/v1/namespaces", namespace, false), (accounts.as_str(), account, true)]
        {
            let deadline = Instant::now() + CLEANUP_TIMEOUT;
            let answer = loop {
                let answer = self.send(&Method::POST, path, object.to_string()).await;
                match answer {
                    // The namespace of an earlier run may still be going away.
                    Ok(Response { code: 409, .. }) if !may_exist && Instant::now() < deadline => {
                        tokio::time::sleep(UNTIL_INTERVAL).await;
                    }
                    answer => break answer,
                }
            };
            let got = match answer {
                Ok(Response { code: 201, .. }) => continue,
                Ok(Response { code: 409, .. }) if may_exist => continue,
                Ok(answer) => json!([answer.code, String::from_utf8_lossy(&answer.body)]),
                Err(error) => error.to_string().into(),
            };
            let difference = Difference { path: "code".to_owned(), want: 201.into(), got };
            let request = format!("POST {path}");
            return Some(StepDifference { step: 0, request, differences: vec![difference] });
        }
        None
    }

    /// Sends the request of a step and returns the differences of its answer.
    async fn replay_step(&mut self, step: &Step, may_repeat: bool) -> Vec<Difference> {
        let want = normalize_answer(step, step.expect.clone());
        let begun = Instant::now();
        loop {
            let answer =
                self.client.send(&step.method, &step.path, &step.headers, step.body.clone()).await;
            let differences = match &answer {
                Ok(answer) => {
                    self.record_created(step, answer);
                    differences(&want, &normalize_answer(step, to_comparable(step, answer)))
                }
                Err(error) => vec![Difference {
                    path: "answer".to_owned(),
                    want: step.expect.code.into(),
                    got: error.to_string().into(),
                }],
            };
            let is_over = begun.elapsed() >= self.until_timeout;
            if differences.is_empty() || !may_repeat || is_over {
                return differences;
            }
            tokio::time::sleep(UNTIL_INTERVAL).await;
        }
    }

    /// Records an object that a request created. The scenario does not list it for cleanup if kube-apiserver created
    /// none.
    fn record_created(&mut self, step: &Step, answer: &Response) {
        if answer.code != 201 {
            return;
        }
        let path = step.path.split('?').next().unwrap_or_default();
        if step.method != Method::POST {
            self.created.insert(path.to_owned());
            return;
        }
        let object: Option<Value> = serde_json::from_slice(&answer.body).ok();
        let name = object.as_ref().and_then(|object| object.pointer("/metadata/name")?.as_str());
        if let Some(name) = name {
            self.created.insert(format!("{path}/{name}"));
        }
    }

    /// Deletes all objects that the scenario created, and returns whether they are gone.
    pub(super) async fn clean_up(&mut self) -> Result<bool, ClientError> {
        let own = self.scenario.namespace.as_ref().map(|name| format!("/api/v1/namespaces/{name}"));
        let is_inside = |path: &String| {
            let segments: Vec<&str> = path.split('/').collect();
            let namespaced = segments.windows(2).find(|pair| pair[0] == "namespaces");
            own.is_some() && namespaced.map(|pair| pair[1]) == self.scenario.namespace.as_deref()
        };
        let others: Vec<String> = self.created.iter().filter(|p| !is_inside(p)).cloned().collect();
        let mut paths: Vec<&String> = Vec::new();
        for path in self.scenario.cleanup.iter().chain(others.iter().rev()).chain(&own) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        let mut going = Vec::new();
        for path in paths {
            let answer = self.send(&Method::DELETE, path, "").await?;
            if !matches!(answer.code, 404 | 405) {
                going.push(path);
            }
        }
        let deadline = Instant::now() + CLEANUP_TIMEOUT;
        for path in going {
            while self.send(&Method::GET, path, "").await?.code != 404 {
                if Instant::now() > deadline {
                    return Ok(false);
                }
                tokio::time::sleep(CLEANUP_INTERVAL).await;
            }
        }
        Ok(true)
    }

    async fn send(
        &mut self,
        method: &Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Response, ClientError> {
        let json = HeaderValue::from_static("application/json");
        let headers: [(HeaderName, HeaderValue); 2] =
            [(ACCEPT, json.clone()), (CONTENT_TYPE, json)];
        let body = body.into();
        // A request without a body has no content type.
        let n_headers = if body.is_empty() { 1 } else { 2 };
        self.client.send(method, path, &headers[..n_headers], body).await
    }
}

/// Converts an answer to the form of a recorded one.
fn to_comparable(step: &Step, answer: &Response) -> ExpectedAnswer {
    let warnings = compared_warnings(&answer.warnings);
    let body = if step.accepts_protobuf {
        json!({"protobuf": answer.body.starts_with(PROTOBUF_MAGIC)})
    } else if answer.body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&answer.body)
            .unwrap_or_else(|_| String::from_utf8_lossy(&answer.body).into())
    };
    ExpectedAnswer { code: answer.code.into(), warnings, body }
}

/// The sorted warnings without those about kinds that this server does not enforce, which Kubernetes does not have.
fn compared_warnings(warnings: &[String]) -> Vec<String> {
    let compared = warnings.iter().filter(|warning| !warning.starts_with(UNENFORCED));
    let mut compared: Vec<String> = compared.cloned().collect();
    compared.sort();
    compared
}

/// Reduces an answer to the parts that are compared. For protobuf these are the code and the first bytes.
fn normalize_answer(step: &Step, mut answer: ExpectedAnswer) -> ExpectedAnswer {
    normalize(&mut answer.body, &step.ignore);
    if step.accepts_protobuf {
        answer.warnings.clear();
    }
    for warning in &mut answer.warnings {
        *warning = normalize_text(warning);
    }
    answer.warnings.sort();
    answer
}

/// Lists every place where two answers differ.
fn differences(want: &ExpectedAnswer, got: &ExpectedAnswer) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut compare = |path: &str, want: &Value, got: &Value| {
        compare_values(&mut differences, path.to_owned(), Some(want), Some(got));
    };
    compare("code", &want.code.into(), &got.code.into());
    compare("warnings", &want.warnings.clone().into(), &got.warnings.clone().into());
    compare("body", &want.body, &got.body);
    differences
}

/// Compares two values: members in any order, items in the order of the list, numbers by value. A null member
/// differs from an absent one, because clients distinguish them.
fn compare_values(
    into: &mut Vec<Difference>,
    path: String,
    want: Option<&Value>,
    got: Option<&Value>,
) {
    match (want, got) {
        (Some(Value::Object(wanted)), Some(Value::Object(gotten))) => {
            let only_gotten = gotten.keys().filter(|key| !wanted.contains_key(*key));
            for key in wanted.keys().chain(only_gotten) {
                compare_values(into, format!("{path}.{key}"), wanted.get(key), gotten.get(key));
            }
        }
        (Some(Value::Array(wanted)), Some(Value::Array(gotten))) => {
            for idx in 0..wanted.len().max(gotten.len()) {
                compare_values(into, format!("{path}[{idx}]"), wanted.get(idx), gotten.get(idx));
            }
        }
        (Some(Value::Number(want)), Some(Value::Number(got))) if want.as_f64() == got.as_f64() => {}
        (want, got) if want == got => {}
        (want, got) => {
            let shown = |value: Option<&Value>| value.cloned().unwrap_or_else(|| ABSENT.into());
            into.push(Difference { path, want: shown(want), got: shown(got) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(want: Value, got: Value) -> Vec<String> {
        let mut differences = Vec::new();
        compare_values(&mut differences, "body".to_owned(), Some(&want), Some(&got));
        differences.into_iter().map(|difference| difference.path).collect()
    }

    #[test]
    fn warnings_about_unenforced_objects_are_dropped() {
        let warnings =
            ["unknown field", "not enforced by this server: X: why", "it is not enforced", "a"];
        let compared = compared_warnings(&warnings.map(str::to_owned));
        assert_eq!(compared, ["a", "it is not enforced", "unknown field"]);
    }

    #[test]
    fn differences_of_bodies_are_reported_with_their_path() {
        for (want, got, differing) in [
            (json!({"a": 1, "b": [2]}), json!({"b": [2], "a": 1.0}), vec![]),
            (json!({"a": null}), json!({}), vec!["body.a"]),
            (json!({}), json!({"a": ""}), vec!["body.a"]),
            (json!([1, 2]), json!([2, 1]), vec!["body[0]", "body[1]"]),
            (json!([1]), json!([1, 2]), vec!["body[1]"]),
            (json!({"a": {"b": "x"}}), json!({"a": {"b": "y"}}), vec!["body.a.b"]),
            (json!(1), json!("1"), vec!["body"]),
            (json!(1), json!(2), vec!["body"]),
        ] {
            assert_eq!(paths(want, got), differing);
        }
    }
}
