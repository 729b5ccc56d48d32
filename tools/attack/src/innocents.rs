//! Users who read, write and ask reviews, while others attack. They compare each decision with that of the idle
//! server and measure how long it takes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client, Session};
use crate::users::{N_INNOCENTS, config_map, innocent_namespace, innocent_token};

/// The pause between two requests of a user.
const PAUSE: Duration = Duration::from_millis(4);
/// How long a user waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
const SELF_REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// The requests of one cycle, in order.
const STEPS: [Step; 9] = [
    Step::Create,
    Step::Get,
    Step::Update,
    Step::ReviewAllowed,
    Step::ReviewDenied,
    Step::GetDenied,
    Step::GetForbidden,
    Step::List,
    Step::Delete,
];

/// One request of an innocent user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Create,
    Get,
    Update,
    ReviewAllowed,
    ReviewDenied,
    /// A read that RBAC allows and that an authorization webhook denies, if there is one.
    GetDenied,
    GetForbidden,
    List,
    Delete,
}

/// The decisions of the idle server.
pub(crate) type Expected = BTreeMap<Step, String>;

/// What innocent users saw during a time.
#[derive(Debug, Default)]
pub(crate) struct Observation {
    pub(crate) latencies: Vec<Duration>,
    /// The decisions that differed from those of the idle server.
    pub(crate) differences: Vec<String>,
}

impl Observation {
    /// A quantile of the latencies; zero if there are none.
    pub(crate) fn quantile(&mut self, share: f64) -> Duration {
        self.latencies.sort_unstable();
        let idx = (self.latencies.len() as f64 * share) as usize;
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get(idx.min(last)).copied().unwrap_or_default()
    }
}

/// Runs one cycle on the idle server and returns its decisions.
///
/// # Errors
/// A connection breaks.
pub(crate) async fn learn(client: &Client) -> anyhow::Result<Expected> {
    let mut session = client.session(Some(&innocent_token(0))).await?;
    let mut expected = Expected::new();
    for step in STEPS {
        let answer = step.send(&mut session, 0, "learned").await?;
        expected.insert(step, decision(step, &answer));
    }
    Ok(expected)
}

/// Lets all innocent users work until a time. It takes the calling thread, which has nothing else to do.
///
/// # Errors
/// The runtime does not start.
pub(crate) fn observe(
    client: &Client,
    expected: &Expected,
    until: Instant,
) -> anyhow::Result<Observation> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let observation = Arc::new(Mutex::new(Observation::default()));
    runtime.block_on(async {
        let mut users = tokio::task::JoinSet::new();
        for idx in 0..N_INNOCENTS {
            let innocent = Innocent {
                idx,
                client: client.clone(),
                expected: expected.clone(),
                observation: Arc::clone(&observation),
            };
            users.spawn(innocent.work(until));
        }
        while users.join_next().await.is_some() {}
    });
    let mut observed = observation.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *observed))
}

struct Innocent {
    idx: usize,
    client: Client,
    expected: Expected,
    observation: Arc<Mutex<Observation>>,
}

impl Innocent {
    async fn work(self, until: Instant) {
        let mut session: Option<Session> = None;
        // Names are new in each run, because a run may end in the middle of a cycle.
        let begin = std::time::SystemTime::now();
        let begin = begin.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis();
        let mut n_cycles: u64 = 0;
        while Instant::now() < until {
            n_cycles += 1;
            let name = format!("own-{begin}-{n_cycles}");
            // The last user opens a new connection for each cycle, as short-lived clients do.
            if self.idx + 1 == N_INNOCENTS {
                session = None;
            }
            for step in STEPS {
                if Instant::now() >= until {
                    return;
                }
                let sent = Instant::now();
                let done =
                    tokio::time::timeout(PATIENCE, self.send(step, &mut session, &name)).await;
                let seen = match done {
                    Ok(Ok(answer)) => decision(step, &answer),
                    Ok(Err(error)) => {
                        session = None;
                        format!("no answer: {error:#}")
                    }
                    Err(_) => {
                        session = None;
                        format!("no answer after {} s", PATIENCE.as_secs())
                    }
                };
                self.record(step, &seen, sent.elapsed());
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn send(
        &self,
        step: Step,
        session: &mut Option<Session>,
        name: &str,
    ) -> anyhow::Result<Answer> {
        let own = match session {
            Some(own) => own,
            None => session.insert(self.client.session(Some(&innocent_token(self.idx))).await?),
        };
        step.send(own, self.idx, name).await
    }

    fn record(&self, step: Step, seen: &str, latency: Duration) {
        let mut observation = self.observation.lock().unwrap_or_else(PoisonError::into_inner);
        observation.latencies.push(latency);
        let expected = self.expected.get(&step).map_or("", String::as_str);
        if seen != expected {
            let text = format!("{step:?} by innocent-{}: {seen} instead of {expected}", self.idx);
            observation.differences.push(text);
        }
    }
}

impl Step {
    async fn send(self, session: &mut Session, idx: usize, name: &str) -> anyhow::Result<Answer> {
        let namespace = innocent_namespace(idx);
        let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
        let own = format!("{maps}/{name}");
        let review = |namespace: &str, resource: &str| {
            json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": { "resourceAttributes": {
                    "namespace": namespace, "verb": "create", "resource": resource,
                } },
            })
        };
        match self {
            Self::Create => session.json(Method::POST, &maps, &config_map(name, 100)).await,
            Self::Get => session.get(&own).await,
            Self::Update => session.json(Method::PUT, &own, &config_map(name, 200)).await,
            Self::ReviewAllowed => {
                session.json(Method::POST, SELF_REVIEWS, &review(&namespace, "configmaps")).await
            }
            Self::ReviewDenied => {
                session.json(Method::POST, SELF_REVIEWS, &review("kube-system", "secrets")).await
            }
            Self::GetDenied => session.get(&format!("{maps}/denied")).await,
            Self::GetForbidden => session.get("/api/v1/namespaces/kube-system/secrets").await,
            Self::List => session.get(&format!("{maps}?limit=10")).await,
            Self::Delete => {
                session.send(Method::DELETE, &own, "application/json", bytes::Bytes::new()).await
            }
        }
    }
}

/// The part of an answer that is a decision: the code, and the verdict of a review.
fn decision(step: Step, answer: &Answer) -> String {
    let verdict = match step {
        Step::ReviewAllowed | Step::ReviewDenied => {
            let allowed = answer.json().pointer("/status/allowed").and_then(Value::as_bool);
            format!(" allowed={allowed:?}")
        }
        _ => String::new(),
    };
    format!("{}{verdict}", answer.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_a_code_or_a_verdict() {
        let answer = |code, body: &'static str| Answer { code, body: body.into() };
        assert_eq!(decision(Step::Get, &answer(429, "{}")), "429");
        let review = answer(201, r#"{"status": {"allowed": true}}"#);
        assert_eq!(decision(Step::ReviewAllowed, &review), "201 allowed=Some(true)");
        assert_eq!(decision(Step::ReviewDenied, &answer(500, "")), "500 allowed=None");
    }

    #[test]
    fn quantiles_are_of_the_sorted_latencies() {
        let latencies = (0..100).rev().map(Duration::from_millis).collect();
        let mut observation = Observation { latencies, differences: Vec::new() };
        assert_eq!(observation.quantile(0.5), Duration::from_millis(50));
        assert_eq!(observation.quantile(0.99), Duration::from_millis(99));
        assert_eq!(Observation::default().quantile(0.99), Duration::ZERO);
    }
}
