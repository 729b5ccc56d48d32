//! Our side: the webhook authorizer as the server assembles it from its configuration, with its metrics.

use std::hint::black_box;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Waker};
use std::time::Instant;

use anyhow::Context;
use authz::TraceRecorder;
use authz_reload::{AuthorizationPlan, AuthorizerBuilder, ConfigFilePlan, Generation};
use authz_webhook::Webhook;
use metrics::AuthorizationMetrics;
use prometheus::Registry;
use tokio::runtime::Runtime;
use tokio::sync::Barrier;

use crate::MEMORY;
use crate::timing::{clock_ns, nanoseconds};
use crate::webhook::environment::{TargetWebhook, WebhookEnvironment};
use crate::webhook::measure::Measurement;
use crate::webhook::review_request::ReviewRequest;
use crate::webhook::scenario::{Scenario, ScenarioRun};

/// The number of passes over requests with cached answers; the shortest time of each counts.
const PASSES: usize = 3;

/// Runs scenarios on our webhook authorizer.
pub(crate) struct OurSide {
    runtime: Runtime,
}

/// A webhook authorizer, and the values that keep its metrics alive.
struct LoadedWebhook {
    webhook: Arc<Webhook>,
    _generation: Generation,
    _metrics: Arc<AuthorizationMetrics>,
}

impl OurSide {
    /// Tasks run on as many threads as there are processors, as in the server.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        Ok(Self { runtime })
    }

    /// Runs a scenario with a webhook whose cache is empty.
    pub(crate) fn run(
        &self,
        environment: &WebhookEnvironment,
        scenario_run: &ScenarioRun,
    ) -> anyhow::Result<Measurement> {
        let _within = self.runtime.enter();
        let loaded = load(environment, scenario_run.scenario.hook())?;
        let webhook = &loaded.webhook;
        let n_requests = scenario_run.requests.len();
        let (warm_up, rest) = (0..scenario_run.n_warm_up, scenario_run.n_warm_up..n_requests);
        match scenario_run.scenario {
            Scenario::CachedFew | Scenario::CachedMany => self.runtime.block_on(async {
                let filled = call_all(webhook, scenario_run, 0..n_requests).await?;
                Ok(time_cached_answers(webhook, &scenario_run.requests)
                    .with_wrong_answers_of(filled))
            }),
            Scenario::Calls | Scenario::CallsAtOnce | Scenario::Dead => {
                self.runtime.block_on(async {
                    let warm = call_all(webhook, scenario_run, warm_up).await?;
                    Ok(call_all(webhook, scenario_run, rest).await?.with_wrong_answers_of(warm))
                })
            }
            Scenario::Storm => self.runtime.block_on(call_at_once(webhook, scenario_run)),
        }
    }
}

/// Builds the webhook as a starting server does.
fn load(environment: &WebhookEnvironment, hook: TargetWebhook) -> anyhow::Result<LoadedWebhook> {
    let metrics = AuthorizationMetrics::new(&Registry::new(), "bench", true)?;
    let observers = Arc::<AuthorizationMetrics>::clone(&metrics);
    let builder = AuthorizerBuilder { observer_factory: observers, ..AuthorizerBuilder::new()? };
    let plan = ConfigFilePlan { path: environment.configuration(hook), abac_policy_file: None };
    let generation = builder.build_first_generation(&AuthorizationPlan::File(plan))?;
    let webhook = generation.webhooks().next().context("the configuration has no webhook")?;
    Ok(LoadedWebhook { webhook: Arc::clone(webhook), _generation: generation, _metrics: metrics })
}

/// Makes each request once, with as many concurrent tasks as the scenario has.
async fn call_all(
    webhook: &Arc<Webhook>,
    scenario_run: &ScenarioRun,
    range: Range<usize>,
) -> anyhow::Result<Measurement> {
    let next = Arc::new(AtomicUsize::new(range.start));
    let start = Instant::now();
    let askers: Vec<_> = (0..scenario_run.n_concurrent)
        .map(|_| {
            let (webhook, requests) = (Arc::clone(webhook), Arc::clone(&scenario_run.requests));
            let (next, end) = (Arc::clone(&next), range.end);
            tokio::spawn(async move {
                let mut answers = Vec::new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    match requests.get(at).filter(|_| at < end) {
                        Some(review_request) => answers.push(ask(&webhook, review_request).await),
                        None => return answers,
                    }
                }
            })
        })
        .collect();
    collect(askers, start).await
}

/// Makes one request with all tasks at the same moment.
async fn call_at_once(
    webhook: &Arc<Webhook>,
    scenario_run: &ScenarioRun,
) -> anyhow::Result<Measurement> {
    // One more than the number of tasks, for the task that starts the clock.
    let barrier = Arc::new(Barrier::new(scenario_run.n_concurrent + 1));
    let askers: Vec<_> = (0..scenario_run.n_concurrent)
        .map(|_| {
            let (webhook, requests) = (Arc::clone(webhook), Arc::clone(&scenario_run.requests));
            let barrier = Arc::clone(&barrier);
            tokio::spawn(async move {
                barrier.wait().await;
                match requests.first() {
                    Some(review_request) => vec![ask(&webhook, review_request).await],
                    None => Vec::new(),
                }
            })
        })
        .collect();
    barrier.wait().await;
    collect(askers, Instant::now()).await
}

/// The time of an answer, and whether it was the expected one.
type Answer = (u64, bool);

async fn ask(webhook: &Webhook, review_request: &ReviewRequest) -> Answer {
    let start = Instant::now();
    let answered =
        webhook.authorize(&review_request.attributes(), TraceRecorder::disabled_recorder()).await;
    (nanoseconds(start.elapsed()), answered.decision.verdict == review_request.want)
}

async fn collect(
    askers: Vec<tokio::task::JoinHandle<Vec<Answer>>>,
    start: Instant,
) -> anyhow::Result<Measurement> {
    let mut answers = Vec::new();
    for asker in askers {
        answers.extend(asker.await?);
    }
    let total = start.elapsed();
    let n_wrong = answers.iter().filter(|(_, is_right)| !is_right).count();
    let times = answers.into_iter().map(|(ns, _)| ns).collect();
    Ok(Measurement { n_wrong, ..Measurement::of(times, total) })
}

/// Times answers from the cache separately, without the cost of the clock.
fn time_cached_answers(webhook: &Webhook, requests: &[ReviewRequest]) -> Measurement {
    let clock_ns = clock_ns();
    let mut least = vec![u64::MAX; requests.len()];
    let mut n_wrong = 0;
    let start = Instant::now();
    for _ in 0..PASSES {
        for (review_request, least) in requests.iter().zip(&mut least) {
            review_request.preload();
            let attributes = review_request.attributes();
            let start = Instant::now();
            let verdict = poll_once(
                webhook.authorize(black_box(&attributes), TraceRecorder::disabled_recorder()),
            )
            .map(|answered| answered.decision.verdict);
            let ns = nanoseconds(start.elapsed());
            *least = ns.saturating_sub(clock_ns).min(*least);
            n_wrong += usize::from(black_box(verdict) != Some(review_request.want));
        }
    }
    let total = start.elapsed();
    let allocated = requests.iter().map(|review_request| {
        let attributes = review_request.attributes();
        let ask =
            || drop(poll_once(webhook.authorize(&attributes, TraceRecorder::disabled_recorder())));
        allocated_bytes(ask)
    });
    let allocated = allocated.max().unwrap_or_default();
    Measurement { n_wrong, allocated, ..Measurement::of(least, total) }
}

/// The bytes that `ask` allocates. Other threads allocate sometimes, so the smallest of a few measurements
/// counts.
fn allocated_bytes(ask: impl Fn()) -> u64 {
    let counts = (0..3).map(|_| {
        let before = MEMORY.total_allocated();
        ask();
        MEMORY.total_allocated() - before
    });
    counts.min().unwrap_or_default() as u64
}

/// The output of a future that is ready at its first poll.
fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut context = TaskContext::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}
