//! Replays the scenarios of several suites with several workers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::client::{Client, Endpoint};
use super::replay::{Replay, ScenarioOutcome};
use super::report::HttpReport;
use super::scenario::Scenario;
use super::server::Server;
use super::{ALL_SUITES, FOLDER, HttpError, SUITE_PREFIX};
use crate::vectors::{Vectors, suites_in};

/// The server that scenarios are replayed against.
#[derive(Debug, Clone)]
pub enum ServerUnderTest {
    /// A program that each worker starts for itself, on an empty store.
    Program(PathBuf),
    /// A running server that all workers share.
    Running(Endpoint),
}

/// The selection of scenarios to replay, and the way to replay them.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The folder with the suites, or the folder above it.
    pub vectors: PathBuf,
    /// The name of one suite, or [`ALL_SUITES`].
    pub suite: String,
    /// The ids of the scenarios to replay; `None` replays all.
    pub only: Option<BTreeSet<String>>,
    /// The server that receives the requests.
    pub server: ServerUnderTest,
    /// The number of scenarios that are replayed at the same time.
    pub n_workers: usize,
    /// The longest time for which a step with `until` is repeated.
    pub until_timeout: Duration,
}

/// Replays the chosen scenarios and reports them by suite, in the order of their files.
///
/// # Errors
/// The vectors cannot be used, or the server cannot be started or reached.
pub fn run_http(options: &HttpOptions) -> Result<Vec<HttpReport>, HttpError> {
    let suites = read_suites(options)?;
    let scenarios: Vec<(usize, &Scenario)> = suites
        .iter()
        .enumerate()
        .flat_map(|(idx, (_, scenarios))| scenarios.iter().map(move |scenario| (idx, scenario)))
        .collect();
    let queue = ScenarioQueue {
        scenarios: &scenarios,
        next: AtomicUsize::new(0),
        is_cancelled: AtomicBool::new(false),
        shared: RwLock::new(()),
    };
    let outcomes = thread::scope(|scope| {
        let n_workers = options.n_workers.clamp(1, scenarios.len().max(1));
        let workers: Vec<_> =
            (0..n_workers).map(|_| scope.spawn(|| queue.run_worker(options))).collect();
        let joined = workers.into_iter().map(|worker| {
            worker.join().unwrap_or_else(|_| Err(HttpError::Start("a worker panicked".into())))
        });
        joined.collect::<Result<Vec<_>, HttpError>>()
    })?;
    let mut by_place: BTreeMap<usize, ScenarioOutcome> = outcomes.into_iter().flatten().collect();
    let mut reports: Vec<(String, Vec<ScenarioOutcome>)> =
        suites.iter().map(|(name, _)| (name.clone(), Vec::new())).collect();
    for (place, (suite, _)) in scenarios.iter().enumerate() {
        if let (Some(outcome), Some(report)) = (by_place.remove(&place), reports.get_mut(*suite)) {
            report.1.push(outcome);
        }
    }
    Ok(reports.into_iter().map(|(name, outcomes)| HttpReport::new(name, outcomes)).collect())
}

/// The scenarios that the workers take one after the other.
struct ScenarioQueue<'a> {
    scenarios: &'a [(usize, &'a Scenario)],
    next: AtomicUsize,
    /// Set when a worker fails, so that the others stop too.
    is_cancelled: AtomicBool,
    /// On a shared server, scenarios that stay in their namespace run at the same time, and every other scenario runs
    /// alone.
    shared: RwLock<()>,
}

impl ScenarioQueue<'_> {
    /// Replays scenarios until none is left, and returns their outcomes by position in the queue.
    fn run_worker(
        &self,
        options: &HttpOptions,
    ) -> Result<Vec<(usize, ScenarioOutcome)>, HttpError> {
        let result = self.replay_queue(options);
        if result.is_err() {
            self.is_cancelled.store(true, Ordering::Relaxed);
        }
        result
    }

    fn replay_queue(
        &self,
        options: &HttpOptions,
    ) -> Result<Vec<(usize, ScenarioOutcome)>, HttpError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| HttpError::Start(error.to_string()))?;
        let mut server = match &options.server {
            ServerUnderTest::Program(program) => {
                WorkerServer::Own { program, process: Server::start(program)? }
            }
            ServerUnderTest::Running(endpoint) => WorkerServer::Shared(endpoint),
        };
        let mut client = Client::new(server.endpoint().clone());
        let mut outcomes = Vec::new();
        while !self.is_cancelled.load(Ordering::Relaxed) {
            let idx = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((_, scenario)) = self.scenarios.get(idx) else { break };
            let (outcome, is_clean) = match &server {
                WorkerServer::Own { .. } => replay(&runtime, scenario, &mut client, options),
                WorkerServer::Shared(_) if scenario.needs_whole_server() => {
                    let _alone = self.shared.write().unwrap_or_else(PoisonError::into_inner);
                    replay(&runtime, scenario, &mut client, options)
                }
                WorkerServer::Shared(_) => {
                    let _beside = self.shared.read().unwrap_or_else(PoisonError::into_inner);
                    replay(&runtime, scenario, &mut client, options)
                }
            };
            // A failed scenario may have changed objects that it did not create.
            let is_reusable = is_clean && (outcome.is_passed() || !scenario.needs_whole_server());
            if let (WorkerServer::Own { program, process }, false) = (&mut server, is_reusable) {
                process.replace(program)?;
                client = Client::new(process.endpoint().clone());
            }
            outcomes.push((idx, outcome));
        }
        Ok(outcomes)
    }
}

/// The server of a worker.
enum WorkerServer<'a> {
    Own { program: &'a Path, process: Server },
    Shared(&'a Endpoint),
}

impl WorkerServer<'_> {
    fn endpoint(&self) -> &Endpoint {
        match self {
            Self::Own { process, .. } => process.endpoint(),
            Self::Shared(endpoint) => endpoint,
        }
    }
}

/// Replays a scenario, and returns whether all its objects are gone from the server.
fn replay(
    runtime: &Runtime,
    scenario: &Scenario,
    client: &mut Client,
    options: &HttpOptions,
) -> (ScenarioOutcome, bool) {
    runtime.block_on(async {
        let mut replay = Replay::new(scenario, client, options.until_timeout);
        let outcome = replay.run().await;
        // A server that no longer answers counts as not clean.
        (outcome, replay.clean_up().await.unwrap_or(false))
    })
}

/// The scenarios of each chosen suite, by the name of the suite.
fn read_suites(options: &HttpOptions) -> Result<Vec<(String, Vec<Scenario>)>, HttpError> {
    let folder = http_folder(&options.vectors);
    let mut suites = Vec::new();
    for (name, path) in suites_in(&folder)? {
        let is_chosen = options.suite == name || options.suite == ALL_SUITES;
        if !is_chosen || !name.starts_with(SUITE_PREFIX) {
            continue;
        }
        let mut vectors = Vectors::open(&name, &path)?;
        let mut scenarios = Vec::new();
        while let Some(vector) = vectors.read_next()? {
            let scenario = Scenario::read(&vector).map_err(|error| vectors.malformed(error))?;
            if options.only.as_ref().is_none_or(|only| only.contains(&scenario.id)) {
                scenarios.push(scenario);
            }
        }
        suites.push((name, scenarios));
    }
    match suites.is_empty() {
        true => Err(HttpError::NoVectors { name: options.suite.clone(), folder }),
        false => Ok(suites),
    }
}

/// The folder with the HTTP suites: below the folder of vectors, or that folder itself.
pub fn http_folder(vectors: &Path) -> PathBuf {
    let below = vectors.join(FOLDER);
    if below.is_dir() { below } else { vectors.to_owned() }
}
