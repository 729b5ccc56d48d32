//! Our side: the webhook authorizer as the server assembles it from its configuration, counting as in
//! the server.

use std::hint::black_box;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Waker};
use std::time::Instant;

use anyhow::Context;
use authz::Recorder;
use authz_reload::{Assembler, AuthorizationPlan, ConfigFilePlan, Generation};
use authz_webhook::Webhook;
use metrics::AuthorizationMetrics;
use prometheus::Registry;
use tokio::runtime::Runtime;
use tokio::sync::Barrier;

use crate::MEMORY;
use crate::timing::{clock_ns, nanoseconds};
use crate::webhook::contest::{Asked, Contest};
use crate::webhook::measure::Outcome;
use crate::webhook::question::Question;
use crate::webhook::site::{Hook, Site};

/// How often answers are asked for that take no call; the least time of each counts.
const PASSES: usize = 3;

/// Our side.
pub(crate) struct Ours {
    runtime: Runtime,
}

/// Somebody to ask, and what keeps its numbers alive.
struct Loaded {
    webhook: Arc<Webhook>,
    _generation: Generation,
    _metrics: Arc<AuthorizationMetrics>,
}

impl Ours {
    /// Tasks run on as many threads as there are processors, as in the server.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        Ok(Self { runtime })
    }

    /// Runs a contest with a webhook that knows nothing yet.
    pub(crate) fn run(&self, site: &Site, asked: &Asked) -> anyhow::Result<Outcome> {
        let _within = self.runtime.enter();
        let loaded = load(site, asked.contest.hook())?;
        let webhook = &loaded.webhook;
        let n_questions = asked.questions.len();
        let (warm_up, rest) = (0..asked.n_warm_up, asked.n_warm_up..n_questions);
        match asked.contest {
            Contest::CachedFew | Contest::CachedMany => self.runtime.block_on(async {
                let filled = call_all(webhook, asked, 0..n_questions).await?;
                Ok(ask_known(webhook, &asked.questions).plus_wrong(filled))
            }),
            Contest::Calls | Contest::CallsAtOnce | Contest::Dead => self.runtime.block_on(async {
                let warm = call_all(webhook, asked, warm_up).await?;
                Ok(call_all(webhook, asked, rest).await?.plus_wrong(warm))
            }),
            Contest::Storm => self.runtime.block_on(storm(webhook, asked)),
        }
    }
}

/// The webhook, as a server that starts makes it.
fn load(site: &Site, hook: Hook) -> anyhow::Result<Loaded> {
    let metrics = AuthorizationMetrics::new(&Registry::new(), "bench", true)?;
    let observers = Arc::<AuthorizationMetrics>::clone(&metrics);
    let assembler = Assembler { observers, ..Assembler::new()? };
    let plan = ConfigFilePlan { path: site.configuration(hook), policy_file: None };
    let generation = assembler.start(&AuthorizationPlan::File(plan))?;
    let webhook = generation.webhooks().next().context("the configuration has no webhook")?;
    Ok(Loaded { webhook: Arc::clone(webhook), _generation: generation, _metrics: metrics })
}

/// Asks each question once, by as many tasks at a time as there are askers.
async fn call_all(
    webhook: &Arc<Webhook>,
    asked: &Asked,
    range: Range<usize>,
) -> anyhow::Result<Outcome> {
    let next = Arc::new(AtomicUsize::new(range.start));
    let start = Instant::now();
    let askers: Vec<_> = (0..asked.n_askers)
        .map(|_| {
            let (webhook, questions) = (Arc::clone(webhook), Arc::clone(&asked.questions));
            let (next, end) = (Arc::clone(&next), range.end);
            tokio::spawn(async move {
                let mut answers = Vec::new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    match questions.get(at).filter(|_| at < end) {
                        Some(question) => answers.push(ask(&webhook, question).await),
                        None => return answers,
                    }
                }
            })
        })
        .collect();
    collect(askers, start).await
}

/// Asks one question by all askers at the same moment.
async fn storm(webhook: &Arc<Webhook>, asked: &Asked) -> anyhow::Result<Outcome> {
    // One more than there are askers: who starts the clock.
    let barrier = Arc::new(Barrier::new(asked.n_askers + 1));
    let askers: Vec<_> = (0..asked.n_askers)
        .map(|_| {
            let (webhook, questions) = (Arc::clone(webhook), Arc::clone(&asked.questions));
            let barrier = Arc::clone(&barrier);
            tokio::spawn(async move {
                barrier.wait().await;
                match questions.first() {
                    Some(question) => vec![ask(&webhook, question).await],
                    None => Vec::new(),
                }
            })
        })
        .collect();
    barrier.wait().await;
    collect(askers, Instant::now()).await
}

/// How long an answer took, and whether it was the expected one.
type Answer = (u64, bool);

async fn ask(webhook: &Webhook, question: &Question) -> Answer {
    let start = Instant::now();
    let answered = webhook.authorize(&question.attributes(), Recorder::off()).await;
    (nanoseconds(start.elapsed()), answered.decision.verdict == question.want)
}

async fn collect(
    askers: Vec<tokio::task::JoinHandle<Vec<Answer>>>,
    start: Instant,
) -> anyhow::Result<Outcome> {
    let mut answers = Vec::new();
    for asker in askers {
        answers.extend(asker.await?);
    }
    let total = start.elapsed();
    let n_wrong = answers.iter().filter(|(_, is_right)| !is_right).count();
    let times = answers.into_iter().map(|(ns, _)| ns).collect();
    Ok(Outcome { n_wrong, ..Outcome::of(times, total) })
}

/// Times answers that take no call, each by itself. What the clock costs is subtracted.
fn ask_known(webhook: &Webhook, questions: &[Question]) -> Outcome {
    let clock_ns = clock_ns();
    let mut least = vec![u64::MAX; questions.len()];
    let mut n_wrong = 0;
    let start = Instant::now();
    for _ in 0..PASSES {
        for (question, least) in questions.iter().zip(&mut least) {
            question.touch();
            let attributes = question.attributes();
            let start = Instant::now();
            let verdict = at_once(webhook.authorize(black_box(&attributes), Recorder::off()))
                .map(|answered| answered.decision.verdict);
            let ns = nanoseconds(start.elapsed());
            *least = ns.saturating_sub(clock_ns).min(*least);
            n_wrong += usize::from(black_box(verdict) != Some(question.want));
        }
    }
    let total = start.elapsed();
    let allocated = questions.iter().map(|question| {
        let attributes = question.attributes();
        let ask = || drop(at_once(webhook.authorize(&attributes, Recorder::off())));
        allocated_bytes(ask)
    });
    let allocated = allocated.max().unwrap_or_default();
    Outcome { n_wrong, allocated, ..Outcome::of(least, total) }
}

/// The bytes that `ask` allocates. Other threads allocate too, now and then: the least of a few counts.
fn allocated_bytes(ask: impl Fn()) -> u64 {
    let counts = (0..3).map(|_| {
        let before = MEMORY.total_allocated();
        ask();
        MEMORY.total_allocated() - before
    });
    counts.min().unwrap_or_default() as u64
}

/// What comes without waiting.
fn at_once<F: Future>(future: F) -> Option<F::Output> {
    let mut context = TaskContext::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}
