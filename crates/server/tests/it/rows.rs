//! Test cases that consist of plain requests, as data.
//!
//! Each file under `rows/` is one server on an empty store and the rows that share it, in order. A
//! row is an id and steps; a step is a request and the expected response:
//!
//! | Member | Meaning |
//! |---|---|
//! | `as` | who asks: `admin` (the default), `alice`, `anonymous`, `stranger` with a wrong token, or `token <token>` |
//! | `do` | method and path; a path that begins with a word of [`PLACES`] begins there |
//! | `headers` | of the request |
//! | `body`, `raw`, `hex` | the body as JSON, as text, as bytes |
//! | `code` | of the answer |
//! | `expect`, `text`, `events`, `header` | patterns of the answer: its JSON, its text, the events of a watch, its headers |
//! | `save` | names for parts of the answer, `/metadata/uid` or `header etag`; `{name}` in later steps stands for the part |
//! | `soon` | the step is repeated until it passes, for a while |
//!
//! See `pattern.rs` for how patterns match. Most ids are numbers; those of `bad_input.json` and
//! `life_of_objects.json` say what the row is about.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::client::{Answer, Client};
use crate::cluster::Cluster;
use crate::pattern;

/// Words that paths may begin with.
const PLACES: [(&str, &str); 13] = [
    ("CM", "/api/v1/namespaces/default/configmaps"),
    ("SA", "/api/v1/namespaces/default/serviceaccounts"),
    ("SECRETS", "/api/v1/namespaces/default/secrets"),
    ("NS", "/api/v1/namespaces"),
    ("ROLES", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"),
    ("BINDINGS", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"),
    ("LEASES", "/apis/coordination.k8s.io/v1/namespaces/default/leases"),
    ("HOOKS", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"),
    ("CRD", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
    ("W", "/apis/example.com/v1/namespaces/default/widgets"),
    ("DEPLOY", "/apis/apps/v1/namespaces/default/deployments"),
    ("RC", "/api/v1/namespaces/default/replicationcontrollers"),
    ("REVIEWS", "/apis/authorization.k8s.io/v1"),
];

/// How long something that happens soon may take.
const SOON: Duration = Duration::from_secs(10);

/// One row: an id and its steps.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    steps: Vec<Step>,
}

/// A request and what must come back.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct Step {
    #[serde(rename = "as", default = "admin")]
    who: String,
    #[serde(rename = "do")]
    request: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<Value>,
    raw: Option<String>,
    hex: Option<String>,
    code: u16,
    expect: Option<Value>,
    text: Option<String>,
    events: Option<Value>,
    #[serde(default)]
    header: BTreeMap<String, String>,
    #[serde(default)]
    save: BTreeMap<String, String>,
    #[serde(default)]
    soon: bool,
}

fn admin() -> String {
    "admin".to_owned()
}

/// Parts of answers, by name.
type Saved = BTreeMap<String, String>;

/// The text about a step that failed.
struct StepFailure(String);

/// Runs all rows of a file and fails with every row that did not pass.
async fn check(file: &str) {
    let cluster = Cluster::start().await;
    let mut saved = Saved::new();
    let mut failures = Vec::new();
    for row in read(file) {
        for step in &row.steps {
            if let Err(failure) = take(&cluster, step, &mut saved).await {
                failures.push(format!("{}: {}", row.id, failure.0));
                if row.id.starts_with("H-") {
                    break;
                }
            }
        }
    }
    assert!(failures.is_empty(), "{file}:\n\n{}\n", failures.join("\n\n"));
}

fn read(file: &str) -> Vec<Row> {
    let path = folder().join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/rows")
}

/// The ids of all rows in all files, and the files.
pub(crate) fn ids() -> Vec<(String, String)> {
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        ids.extend(read(&file).into_iter().map(|row| (row.id, file.clone())));
    }
    ids
}

async fn take(cluster: &Cluster, step: &Step, saved: &mut Saved) -> Result<(), StepFailure> {
    let step = filled(step, saved);
    let began = Instant::now();
    loop {
        let answer = send(cluster, &step).await;
        let faults = faults(&step, &answer);
        if faults.is_empty() {
            save(&step, &answer, saved);
            return Ok(());
        }
        if !step.soon || began.elapsed() > SOON {
            return Err(StepFailure(told(&step, &answer, &faults)));
        }
        crate::polling::pause().await;
    }
}

/// The step with names replaced by what they stand for.
fn filled(step: &Step, saved: &Saved) -> Step {
    let fill = |text: &str| {
        let mut text = text.to_owned();
        for (name, value) in saved {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    };
    let fill_tree = |tree: &Value| filled_tree(tree, &fill);
    let fill_map = |map: &BTreeMap<String, String>| {
        map.iter().map(|(name, value)| (name.clone(), fill(value))).collect()
    };
    Step {
        who: fill(&step.who),
        request: fill(&step.request),
        headers: fill_map(&step.headers),
        header: fill_map(&step.header),
        body: step.body.as_ref().map(fill_tree),
        expect: step.expect.as_ref().map(fill_tree),
        text: step.text.as_deref().map(fill),
        events: step.events.as_ref().map(fill_tree),
        ..step.clone()
    }
}

fn filled_tree(tree: &Value, fill: &dyn Fn(&str) -> String) -> Value {
    match tree {
        Value::String(text) => fill(text).into(),
        Value::Array(items) => items.iter().map(|item| filled_tree(item, fill)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), filled_tree(value, fill)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

async fn send(cluster: &Cluster, step: &Step) -> Answer {
    let (method, path) = step.request.split_once(' ').expect("a method and a path");
    let method: Method = method.parse().expect("a method");
    let path = whole_path(path);
    let mut headers: Vec<(&str, &str)> =
        step.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let body = match (&step.body, &step.raw, &step.hex) {
        (Some(json), None, None) => {
            if !step.headers.contains_key("content-type") {
                headers.push(("content-type", "application/json"));
            }
            Bytes::from(json.to_string())
        }
        (None, Some(text), None) => Bytes::from(text.clone()),
        (None, None, Some(hex)) => Bytes::from(bytes(hex)),
        (None, None, None) => Bytes::new(),
        _ => panic!("{}: more than one body", step.request),
    };
    client(cluster, &step.who).send(method, &path, &headers, body).await
}

fn client(cluster: &Cluster, who: &str) -> Client {
    match who {
        "admin" => cluster.admin(),
        "alice" => cluster.alice(),
        "anonymous" => cluster.anonymous(),
        "stranger" => cluster.anonymous().with_token("nobody-has-this"),
        other => match other.strip_prefix("token ") {
            Some(token) => cluster.anonymous().with_token(token),
            None => panic!("nobody is called {other}"),
        },
    }
}

fn whole_path(path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let end = path.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(path.len());
    let (word, rest) = path.split_at(end);
    let place = PLACES.iter().find(|(own, _)| *own == word);
    let (_, place) = place.unwrap_or_else(|| panic!("no place is called {word}"));
    format!("{place}{rest}")
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("two digits")).collect()
}

fn faults(step: &Step, answer: &Answer) -> Vec<String> {
    let mut faults = Vec::new();
    if answer.code != step.code {
        faults.push(format!("want code {}, got {}", step.code, answer.code));
    }
    let json = serde_json::from_slice(&answer.bytes).ok();
    if let Some(want) = &step.expect {
        pattern::check(want, json.as_ref(), "", &mut faults);
    }
    if let Some(want) = &step.text {
        pattern::check_text(want, Some(&answer.text()), "text", &mut faults);
    }
    if let Some(want) = &step.events {
        let text = answer.text();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap_or(Value::Null));
        let events: Value = events.collect();
        pattern::check(want, Some(&events), "events", &mut faults);
    }
    for (name, want) in &step.header {
        let found = answer.headers.get(name).and_then(|value| value.to_str().ok());
        pattern::check_text(want, found, name, &mut faults);
    }
    faults
}

fn save(step: &Step, answer: &Answer, saved: &mut Saved) {
    for (name, place) in &step.save {
        let value = match place.strip_prefix("header ") {
            Some(header) => {
                answer.headers.get(header).and_then(|own| own.to_str().ok()).map(str::to_owned)
            }
            None => answer.json().pointer(place).map(|own| match own {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }),
        };
        let value = value.unwrap_or_else(|| panic!("{}: no {place} to save", step.request));
        saved.insert(name.clone(), value);
    }
}

/// Everything about a step that failed.
fn told(step: &Step, answer: &Answer, faults: &[String]) -> String {
    let body = step.body.as_ref().map(Value::to_string).or_else(|| step.raw.clone());
    let body = body.or_else(|| step.hex.clone());
    let headers: Vec<String> =
        answer.headers.iter().map(|(name, value)| format!("    {name}: {value:?}")).collect();
    format!(
        "{} by {} {:?} {}\n  {}\n  answer {}\n{}\n    {}",
        step.request,
        step.who,
        step.headers,
        body.unwrap_or_default(),
        faults.join("\n  "),
        answer.code,
        headers.join("\n"),
        answer.text(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery() {
    check("discovery.json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn access() {
    check("access.json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn create() {
    check("create.json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forms() {
    check("forms.json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn update() {
    check("update.json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn patch() {
    check("patch.json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delete() {
    check("delete.json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions() {
    check("definitions.json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists() {
    check("lists.json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input() {
    check("bad_input.json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn life_of_objects() {
    check("life_of_objects.json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scale() {
    check("scale.json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews() {
    check("reviews.json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_kubernetes() {
    check("beside_kubernetes.json").await;
}
