//! The authorization configuration changes again and again while clients ask: no request is dropped,
//! and every decision comes from one configuration that was in force at that time.
//!
//! Each configuration bears its number in the match conditions of its two webhooks, which cannot
//! be evaluated for what is asked, so that every answer names the configuration it comes from, twice.
//!
//! `cargo xtask reload --changes N` runs this for longer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::Client;
use crate::server::{Place, Server, directory};

/// How many changes there are, if the test is to take long.
const CHANGES_VARIABLE: &str = "PORTCULLIS_RELOAD_CHANGES";
const N_CHANGES: usize = 200;
const N_CLIENTS: usize = 32;
/// Time between two changes, and after every third, so that both storms and single changes of every
/// kind occur.
const PAUSES: [Duration; 2] = [Duration::from_millis(15), Duration::from_millis(150)];
/// Between the two halves of a torn write.
const TEAR: Duration = Duration::from_millis(5);
/// A change is in force after a second; a busy machine is given some more.
const LAG: Duration = Duration::from_secs(5);

/// One answer of the server.
struct Seen {
    asked: Instant,
    answered: Instant,
    number: usize,
}

/// A configuration that could be loaded, and when its file was complete.
struct Written {
    number: usize,
    begun: Instant,
    done: Instant,
}

/// A25: a storm of changes, half of them torn while the server reads, and other users ask meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_under_load_drop_nothing_and_mix_nothing() {
    let n_changes = match std::env::var(CHANGES_VARIABLE) {
        Ok(n) => n.parse().expect("a number of changes"),
        Err(_) => N_CHANGES,
    };
    let folder = directory();
    let file = folder.path().join("authorization.json");
    let kubeconfig = folder.path().join("nobody.kubeconfig");
    std::fs::write(&kubeconfig, "clusters:\n- cluster: {server: 'https://127.0.0.1:1'}\n").unwrap();
    let begun = Instant::now();
    std::fs::write(&file, configuration(0, &kubeconfig)).unwrap();
    let mut written = vec![Written { number: 0, begun, done: Instant::now() }];
    let flag = format!("--authorization-config={}", file.display());
    // Nobody listens where the webhooks should be.
    let unchecked = "--authorization-config-reload-health-check=false";
    let server = Server::start_with(folder.path(), &Place::Embedded, &[&flag, unchecked]);
    let client = server.client();

    // This waits for a real process: the server answers for two seconds without changes, for comparison.
    let calm = load(&client, tokio::time::sleep(Duration::from_secs(2))).await;
    let changing = change(&file, &kubeconfig, n_changes, &mut written);
    let stormy = load(&client, changing).await;

    let last = written.last().expect("a configuration").number;
    settle(&client, last).await;
    let seen: Vec<&Seen> = calm.iter().chain(&stormy).collect();
    for seen in &seen {
        explain(seen, &written);
    }
    let mut numbers: Vec<usize> = stormy.iter().map(|seen| seen.number).collect();
    numbers.dedup();
    numbers.sort_unstable();
    numbers.dedup();
    println!(
        "{n_changes} changes, {} requests, {} configurations seen, p99 {:?} undisturbed and {:?} \
         with changes",
        seen.len(),
        numbers.len(),
        p99(&calm),
        p99(&stormy)
    );
    assert!(numbers.len() > 1, "no change was ever seen");
    let metrics = client.text("/metrics").await;
    for status in ["success", "failure"] {
        let name = "apiserver_authorization_config_controller_automatic_reloads_total";
        let is_counted = metrics
            .lines()
            .any(|line| line.starts_with(name) && line.contains(&format!("status=\"{status}\"")));
        assert!(is_counted, "no reload of status {status} is counted");
    }
}

/// A configuration whose answers contain its number.
fn configuration(number: usize, kubeconfig: &Path) -> String {
    let webhook = |name: &str| {
        json!({
            "type": "Webhook",
            "name": name,
            "webhook": {
                "timeout": "1s",
                "failurePolicy": "NoOpinion",
                "subjectAccessReviewVersion": "v1",
                "matchConditionSubjectAccessReviewVersion": "v1",
                "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": kubeconfig},
                "matchConditions": [
                    {"expression": format!("request.resourceAttributes.name == '{name}-{number}'")}
                ],
            },
        })
    };
    let rbac = json!({"type": "RBAC", "name": "rbac"});
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
        "authorizers": [webhook("first"), rbac, webhook("second")],
    })
    .to_string()
}

/// Changes the file: half of the changes cannot be loaded, and half of each are torn.
async fn change(file: &PathBuf, kubeconfig: &Path, n_changes: usize, written: &mut Vec<Written>) {
    for number in 1..=n_changes {
        let text = configuration(number, kubeconfig);
        let is_good = number % 2 == 0;
        let text = if is_good { text } else { text.replace("\"RBAC\"", "\"Unknown\"") };
        let begun = Instant::now();
        if number % 4 < 2 {
            let new = file.with_extension("new");
            std::fs::write(&new, &text).unwrap();
            std::fs::rename(&new, file).unwrap();
        } else {
            // Part of a JSON object is never a JSON object, so nothing of it can be loaded.
            std::fs::write(file, &text[..text.len() / 2]).unwrap();
            // This waits for a real process: the server may read the file while it is torn.
            tokio::time::sleep(TEAR).await;
            std::fs::write(file, &text).unwrap();
        }
        if is_good {
            written.push(Written { number, begun, done: Instant::now() });
        }
        // This waits for a real process: the server may read the file before the next change.
        tokio::time::sleep(PAUSES[usize::from(number % 3 == 0)]).await;
    }
}

/// Asks from many clients until something else is done.
async fn load(client: &Client, until: impl Future<Output = ()>) -> Vec<Seen> {
    let is_done = Arc::new(AtomicBool::new(false));
    let mut asking = JoinSet::new();
    for _ in 0..N_CLIENTS {
        asking.spawn(ask_until(client.clone(), Arc::clone(&is_done)));
    }
    until.await;
    is_done.store(true, Ordering::SeqCst);
    let mut seen = Vec::new();
    while let Some(more) = asking.join_next().await {
        seen.extend(more.unwrap());
    }
    seen
}

async fn ask_until(client: Client, is_done: Arc<AtomicBool>) -> Vec<Seen> {
    let mut connection = client.connect().await.unwrap();
    let mut seen = Vec::new();
    while !is_done.load(Ordering::SeqCst) {
        let asked = Instant::now();
        let (code, answer) =
            connection.send(Method::POST, REVIEWS, &question()).await.expect("an answer");
        assert_eq!(code, 201, "{answer}");
        seen.push(Seen { asked, answered: Instant::now(), number: number_of(&answer) });
    }
    seen
}

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

fn question() -> Value {
    json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": "jane", "nonResourceAttributes": {"path": "/x", "verb": "get"}},
    })
}

/// The number of the configuration that an answer comes from; both webhooks must tell the same.
fn number_of(answer: &Value) -> usize {
    let text = answer["status"]["evaluationError"].as_str().expect("an error");
    let number = |name: &str| -> usize {
        let (_, rest) = text.split_once(&format!("'{name}-")).expect("the number");
        let (number, _) = rest.split_once('\'').expect("its end");
        number.parse().unwrap()
    };
    let (first, second) = (number("first"), number("second"));
    assert_eq!(first, second, "a mixture: {text}");
    first
}

/// An answer must come from a configuration that was written before it, and not replaced long before
/// the question.
fn explain(seen: &Seen, written: &[Written]) {
    let position = written.iter().position(|own| own.number == seen.number);
    let position = position.unwrap_or_else(|| panic!("nobody wrote number {}", seen.number));
    assert!(written[position].begun <= seen.answered, "number {} too early", seen.number);
    if let Some(next) = written.get(position + 1) {
        assert!(seen.asked <= next.done + LAG, "number {} too late", seen.number);
    }
}

/// Waits until the last configuration is in force.
async fn settle(client: &Client, last: usize) {
    let begun = Instant::now();
    loop {
        let (_, answer) = client.ask(Method::POST, REVIEWS, &question()).await;
        if number_of(&answer) == last {
            println!("the last configuration was in force after {:?}", begun.elapsed());
            return;
        }
        assert!(begun.elapsed() < LAG, "number {last} is not in force");
        // This waits for a real process: the server reloads its configuration.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn p99(seen: &[Seen]) -> Duration {
    let mut took: Vec<Duration> = seen.iter().map(|seen| seen.answered - seen.asked).collect();
    took.sort_unstable();
    took.get(took.len() * 99 / 100).copied().unwrap_or_default()
}
