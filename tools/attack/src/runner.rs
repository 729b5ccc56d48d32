//! Runs one row: starts a server, lets innocents work on it undisturbed and under attack, and measures its memory.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::runtime::Runtime;

use crate::attacks::{Load, Row, RowKind};
use crate::client::Client;
use crate::documented_tests;
use crate::hook_service::HookService;
use crate::innocents::{self, Expected, Observation};
use crate::scene::{Scene, Step};
use crate::server_process::{ServerProcess, StartOptions};
use crate::users;

/// How long the innocents work before each attack.
const UNDISTURBED: Duration = Duration::from_secs(3);
/// How long the innocents work after the attack, when everything must be as before.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// How long an attack may take to end after its time.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a preparation or a cleaning may take.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(300);
/// How long the server may take to give memory back.
const MEMORY_PATIENCE: Duration = Duration::from_secs(20);
/// The memory that may stay allocated: half of what an attack may take. Allocators keep some pages for later.
pub(crate) const MEMORY_KEPT_MAX: u64 = 100_000_000;
/// The lower priority of attackers.
const ATTACKER_NICE: i32 = 10;

/// The result of a row.
pub(crate) enum RowResult {
    /// The documented tests passed, so many of them.
    Tests(usize),
    Runs(Vec<Run>),
}

/// The measurements of one run.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) bytes_before: u64,
    pub(crate) bytes_most: u64,
    pub(crate) bytes_after: u64,
    pub(crate) idle_p50: Duration,
    pub(crate) idle_p99: Duration,
    pub(crate) attack_p50: Duration,
    pub(crate) attack_p99: Duration,
    /// The decisions that differed from those of the idle server.
    pub(crate) differences: Vec<String>,
    /// Whether the server ended, or did not serve after the attack.
    pub(crate) needs_restart: bool,
}

/// Runs a row.
///
/// # Errors
/// The server does not start, or the attack cannot be prepared.
pub(crate) fn run(
    row: &Row,
    program: &Path,
    n_runs: usize,
    server_descriptors: u64,
) -> anyhow::Result<RowResult> {
    match &row.kind {
        RowKind::Tests => documented_tests::run(row.name).map(RowResult::Tests),
        RowKind::Load(load) => {
            let mut arena = Arena::start(load, program, server_descriptors)?;
            let mut runs = Vec::new();
            for number in 0..n_runs {
                let run = arena.run(load, number)?;
                eprintln!(
                    "  run {} of {n_runs}: p99 {:?} idle, {:?} under attack, {} differ",
                    number + 1,
                    run.idle_p99,
                    run.attack_p99,
                    run.differences.len()
                );
                let is_over = run.needs_restart;
                runs.push(run);
                if is_over {
                    break;
                }
            }
            Ok(RowResult::Runs(runs))
        }
    }
}

/// A server with its users, before and during attacks.
struct Arena {
    server: ServerProcess,
    client: Client,
    hooks: Arc<HookService>,
    expected: Expected,
}

impl Arena {
    fn start(load: &Load, program: &Path, server_descriptors: u64) -> anyhow::Result<Self> {
        let hooks = Arc::new(HookService::start()?);
        let directory = directory()?;
        let options = (load.start)(program, directory.path(), &hooks)?;
        let descriptors_max = Some(options.descriptors_max.unwrap_or(server_descriptors));
        let options = StartOptions { descriptors_max, ..options };
        let server = ServerProcess::start(program, directory, &users::token_file(), &options)?;
        let client = Client::new(server.address, &server.authority())?;
        let expected = runtime()?.block_on(async {
            users::create_users(&client).await?;
            innocents::learn(&client).await
        })?;
        let arena = Self { server, client, hooks, expected };
        arena.perform(load.prepare, &arena.scene(0), PREPARE_TIMEOUT).context("preparation")?;
        Ok(arena)
    }

    fn scene(&self, run: usize) -> Arc<Scene> {
        let directory = self.server.directory.path().to_owned();
        Arc::new(Scene::new(self.client.clone(), Arc::clone(&self.hooks), directory, run))
    }

    /// Runs a step to its end, on this thread.
    fn perform(&self, step: Step, scene: &Arc<Scene>, limit: Duration) -> anyhow::Result<()> {
        let until = Instant::now() + limit;
        runtime()?.block_on(async {
            tokio::time::timeout_at(until.into(), step(Arc::clone(scene), until))
                .await
                .context("it takes too long")?
        })
    }

    fn run(&mut self, load: &Load, number: usize) -> anyhow::Result<Run> {
        let mut idle = self.observe(UNDISTURBED)?;
        let scene = self.scene(number);
        let bytes_before = self.server.resident_bytes();
        let recorder = self.server.record_memory();
        let until = Instant::now() + load.duration;
        let (attack, attacked) = (load.attack, Arc::clone(&scene));
        let attacker = std::thread::spawn(move || perform_attack(attack, attacked, until));
        let mut observed = innocents::observe(&self.client, &self.expected, until)?;
        let attacked = attacker.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a panic")));
        let mut differences = std::mem::take(&mut observed.differences);
        differences.extend(scene.take_differences());
        if let Err(error) = attacked {
            eprintln!("  the attack ended early: {error:#}");
        }
        if let Err(error) = self.perform(load.clean, &scene, PREPARE_TIMEOUT) {
            eprintln!("  the cleaning failed: {error:#}");
        }
        let bytes_most = recorder.stop();
        let bytes_after = self.wait_for_memory(bytes_before);
        let mut after = self.observe(AFTERWARDS)?;
        let is_broken = after.differences.len() * 2 > after.latencies.len();
        differences.extend(std::mem::take(&mut after.differences));
        Ok(Run {
            bytes_before,
            bytes_most,
            bytes_after,
            idle_p50: idle.quantile(0.5),
            idle_p99: idle.quantile(0.99),
            attack_p50: observed.quantile(0.5),
            attack_p99: observed.quantile(0.99),
            differences,
            needs_restart: is_broken || self.server.has_ended(),
        })
    }

    fn observe(&self, duration: Duration) -> anyhow::Result<Observation> {
        innocents::observe(&self.client, &self.expected, Instant::now() + duration)
    }

    /// Waits until the server has given its memory back, and returns what it still has.
    fn wait_for_memory(&self, bytes_before: u64) -> u64 {
        let start = Instant::now();
        loop {
            let bytes = self.server.resident_bytes();
            if bytes <= bytes_before + MEMORY_KEPT_MAX || start.elapsed() > MEMORY_PATIENCE {
                return bytes;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// Runs an attack with a low priority, and ends all its tasks and connections.
fn perform_attack(attack: Step, scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    lower_priority();
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let limit = until + END_TIMEOUT;
        tokio::time::timeout_at(limit.into(), attack(scene, until))
            .await
            .context("it does not end")?
    });
    runtime.shutdown_background();
    result
}

/// Lowers the priority of the calling thread. Without it, attackers would delay the innocents on their own core.
pub(crate) fn lower_priority() {
    // A system that refuses this only makes the latencies of the innocents worse.
    let _ = rustix::process::nice(ATTACKER_NICE);
}

fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// A directory on the disk that holds the builds. The directory for temporary files may be in memory.
fn directory() -> anyhow::Result<tempfile::TempDir> {
    let program = std::env::current_exe()?;
    let folder = program.parent().context("the program is in no folder")?;
    Ok(tempfile::Builder::new().prefix("attack-").tempdir_in(folder)?)
}
