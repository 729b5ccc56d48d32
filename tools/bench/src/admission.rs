//! `cargo xtask bench admission`: what dynamic admission adds to the time of a create.
//!
//! Four servers take turns: two on the embedded store and two on an etcd member. Of each pair one uses the
//! freshness barrier; the other polls the configuration once a second, which adds nothing to a request. On
//! one server the benchmark registers, calls and removes hooks. It measures matching separately, and
//! compares it with the matcher of Kubernetes.

mod hooks;
mod matching;
mod report;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use etcd_testing::Member;

use self::hooks::{FakeHooks, Phase};
use self::report::{HookedCreates, Overhead, Report};
use crate::BenchResult;
use crate::arguments::Arguments;
use crate::server::case::Case;
use crate::server::client_runtime;
use crate::server::load::{self, Effort, LoadResult};
use crate::server::measured_server::MeasuredServer;
use crate::server::program::{self, PORTCULLIS, Profile};

/// The settings of one run: full, or quick for a test.
struct Plan {
    profile: Profile,
    effort: Effort,
    n_rounds: usize,
}

/// The delay of hooks that do not answer at once. A tenth of the delay that people do not notice.
const HOOK_DELAY: Duration = Duration::from_millis(10);
/// The number of hooks that are registered for other resources.
const N_OTHERS: usize = 1_000;

impl Plan {
    const FULL: Self = Self {
        profile: Profile::Release,
        effort: Effort {
            n_connections: 8,
            warm_up: Duration::from_millis(200),
            window: Duration::from_millis(1_000),
        },
        n_rounds: 9,
    };

    const QUICK: Self = Self {
        profile: Profile::Own,
        effort: Effort {
            n_connections: 2,
            warm_up: Duration::from_millis(20),
            window: Duration::from_millis(200),
        },
        n_rounds: 1,
    };

    async fn overhead(
        &self,
        name: &'static str,
        servers: &mut [MeasuredServer],
    ) -> anyhow::Result<Overhead> {
        let mut overhead = Overhead { store: name, barrier: Vec::new(), none: Vec::new() };
        for round in 0..self.n_rounds {
            // The order of the two servers alternates, so that neither has an advantage.
            let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
            for idx in order {
                let Some(measured_server) = servers.get_mut(idx) else { continue };
                let result = load::run(measured_server, Case::Create, self.effort).await?;
                match idx {
                    0 => overhead.barrier.push(result),
                    _ => overhead.none.push(result),
                }
            }
            eprintln!("round {} of {}: {name}", round + 1, self.n_rounds);
        }
        Ok(overhead)
    }

    async fn measure_creates(
        &self,
        measured_server: &mut MeasuredServer,
        name: &str,
        effort: Effort,
    ) -> anyhow::Result<HookedCreates> {
        let mut results: Vec<LoadResult> = Vec::new();
        for _ in 0..self.n_rounds.div_ceil(2) {
            results.push(load::run(measured_server, Case::Create, effort).await?);
        }
        eprintln!("measured: {name}");
        Ok(HookedCreates { name: name.to_owned(), n_connections: effort.n_connections, results })
    }

    /// Measures creates that pass hooks, on one server.
    async fn measure_hooked_creates(
        &self,
        measured_server: &mut MeasuredServer,
    ) -> anyhow::Result<Vec<HookedCreates>> {
        let alone = Effort { n_connections: 1, ..self.effort };
        let hooks = FakeHooks::start()?;
        let mut passed = vec![self.measure_creates(measured_server, "no hook", self.effort).await?];
        passed.push(self.measure_creates(measured_server, "no hook", alone).await?);
        hooks.register_others(&measured_server.client, N_OTHERS).await?;
        let name = format!("no hook that matches, {N_OTHERS} others");
        passed.push(self.measure_creates(measured_server, &name, self.effort).await?);
        hooks.remove_others(&measured_server.client).await?;
        for (phase, n_hooks) in [
            (Phase::Validating, 1),
            (Phase::Validating, 10),
            (Phase::Mutating, 1),
            (Phase::Mutating, 10),
        ] {
            hooks.register(&measured_server.client, phase, n_hooks, None).await?;
            let name = format!("{n_hooks} {}", phase.name());
            passed.push(self.measure_creates(measured_server, &name, self.effort).await?);
            passed.push(self.measure_creates(measured_server, &name, alone).await?);
            hooks.remove(&measured_server.client, phase).await?;
        }
        for n_hooks in [1, 10] {
            hooks
                .register(&measured_server.client, Phase::Validating, n_hooks, Some(HOOK_DELAY))
                .await?;
            let millis = HOOK_DELAY.as_millis();
            let name = format!("{n_hooks} validating, each thinks for {millis} ms");
            passed.push(self.measure_creates(measured_server, &name, alone).await?);
            hooks.remove(&measured_server.client, Phase::Validating).await?;
        }
        Ok(passed)
    }
}

async fn start_pair(program: &Path, flags: &[String]) -> anyhow::Result<Vec<MeasuredServer>> {
    let mut servers = Vec::new();
    for mode in ["barrier", "poll"] {
        let prefix = format!("--etcd-prefix=/{mode}");
        let own = [format!("--admission-sync-mode={mode}"), prefix];
        let flags: Vec<String> = flags.iter().cloned().chain(own).collect();
        servers
            .push(MeasuredServer::start(program, &flags).await.with_context(|| flags.join(" "))?);
    }
    Ok(servers)
}

/// Runs the benchmark.
///
/// # Errors
/// A server does not start, or an answer is wrong.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<BenchResult> {
    let text = client_runtime()?.block_on(measure(arguments))?;
    Ok(BenchResult { text, n_wrong: 0 })
}

async fn measure(arguments: &Arguments) -> anyhow::Result<String> {
    let plan = if arguments.is_quick { Plan::QUICK } else { Plan::FULL };
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => program::find(PORTCULLIS, plan.profile)?,
    };
    let matching = matching::run(arguments.is_quick)?;
    let mut embedded = start_pair(&program, &[]).await?;
    // This runs first, because both stores must hold the same objects.
    let mut overheads = vec![plan.overhead("embedded", &mut embedded).await?];
    let passed = match embedded.first_mut() {
        Some(measured_server) => plan.measure_hooked_creates(measured_server).await?,
        None => Vec::new(),
    };
    for measured_server in embedded {
        measured_server.stop();
    }
    let member = Member::alone();
    member.wait_until_healthy();
    let flags = ["--store=etcd".to_owned(), format!("--etcd-servers={}", member.url)];
    let mut etcd = start_pair(&program, &flags).await?;
    overheads.push(plan.overhead("etcd", &mut etcd).await?);
    for measured_server in etcd {
        measured_server.stop();
    }
    Ok(Report { matching, passed, overheads }.render())
}
