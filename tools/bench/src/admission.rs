//! `cargo xtask bench admission`: what dynamic admission costs a create.
//!
//! Four servers take turns: on the embedded store and on a member of etcd, each with the barrier and,
//! to compare with, reading the configuration once a second, which costs a request nothing. On one of
//! them hooks are registered, asked and removed. Matching is measured by itself, beside Kubernetes' own.

mod hooks;
mod matching;
mod report;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use etcd_testing::Member;

use self::hooks::{HookSite, Phase};
use self::report::{Overhead, Passed, Report};
use crate::Measured;
use crate::arguments::Arguments;
use crate::server::case::Case;
use crate::server::client_runtime;
use crate::server::load::{self, Effort, Outcome};
use crate::server::program::{self, Profile};
use crate::server::site::Site;

/// What is measured.
struct Plan {
    profile: Profile,
    effort: Effort,
    n_rounds: usize,
}

/// How long a hook thinks, where it thinks. A tenth of what clients wait for without noticing.
const THINKING: Duration = Duration::from_millis(10);
/// How many hooks are registered for other resources.
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
        profile: Profile::Dev,
        effort: Effort {
            n_connections: 2,
            warm_up: Duration::from_millis(20),
            window: Duration::from_millis(200),
        },
        n_rounds: 1,
    };

    async fn overhead(&self, name: &'static str, sites: &mut [Site]) -> anyhow::Result<Overhead> {
        let mut overhead = Overhead { store: name, barrier: Vec::new(), none: Vec::new() };
        for round in 0..self.n_rounds {
            // Which one is first changes, so that neither gains by it.
            let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
            for idx in order {
                let Some(site) = sites.get_mut(idx) else { continue };
                let outcome = load::run(site, Case::Create, self.effort).await?;
                match idx {
                    0 => overhead.barrier.push(outcome),
                    _ => overhead.none.push(outcome),
                }
            }
            eprintln!("round {} of {}: {name}", round + 1, self.n_rounds);
        }
        Ok(overhead)
    }

    async fn pass(&self, site: &mut Site, name: &str, effort: Effort) -> anyhow::Result<Passed> {
        let mut outcomes: Vec<Outcome> = Vec::new();
        for _ in 0..self.n_rounds.div_ceil(2) {
            outcomes.push(load::run(site, Case::Create, effort).await?);
        }
        eprintln!("measured: {name}");
        Ok(Passed { name: name.to_owned(), n_connections: effort.n_connections, outcomes })
    }

    /// Creates through hooks on one server.
    async fn passes(&self, site: &mut Site) -> anyhow::Result<Vec<Passed>> {
        let alone = Effort { n_connections: 1, ..self.effort };
        let hooks = HookSite::start()?;
        let mut passed = vec![self.pass(site, "no hook", self.effort).await?];
        passed.push(self.pass(site, "no hook", alone).await?);
        hooks.register_others(&site.client, N_OTHERS).await?;
        let name = format!("no hook that matches, {N_OTHERS} others");
        passed.push(self.pass(site, &name, self.effort).await?);
        hooks.remove_others(&site.client).await?;
        for (phase, n_hooks) in [
            (Phase::Validating, 1),
            (Phase::Validating, 10),
            (Phase::Mutating, 1),
            (Phase::Mutating, 10),
        ] {
            hooks.register(&site.client, phase, n_hooks, None).await?;
            let name = format!("{n_hooks} {}", phase.name());
            passed.push(self.pass(site, &name, self.effort).await?);
            passed.push(self.pass(site, &name, alone).await?);
            hooks.remove(&site.client, phase).await?;
        }
        for n_hooks in [1, 10] {
            hooks.register(&site.client, Phase::Validating, n_hooks, Some(THINKING)).await?;
            let millis = THINKING.as_millis();
            let name = format!("{n_hooks} validating, each thinks for {millis} ms");
            passed.push(self.pass(site, &name, alone).await?);
            hooks.remove(&site.client, Phase::Validating).await?;
        }
        Ok(passed)
    }
}

async fn pair(program: &Path, flags: &[String]) -> anyhow::Result<Vec<Site>> {
    let mut sites = Vec::new();
    for mode in ["barrier", "poll"] {
        let prefix = format!("--etcd-prefix=/{mode}");
        let own = [format!("--admission-sync-mode={mode}"), prefix];
        let flags: Vec<String> = flags.iter().cloned().chain(own).collect();
        sites.push(Site::start(program, &flags).await.with_context(|| flags.join(" "))?);
    }
    Ok(sites)
}

/// Runs the benchmark.
///
/// # Errors
/// A server does not start, or an answer is wrong.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Measured> {
    let text = client_runtime()?.block_on(measure(arguments))?;
    Ok(Measured { text, n_wrong: 0 })
}

async fn measure(arguments: &Arguments) -> anyhow::Result<String> {
    let plan = if arguments.is_quick { Plan::QUICK } else { Plan::FULL };
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => program::find(plan.profile)?,
    };
    let matching = matching::run(arguments.is_quick)?;
    let mut embedded = pair(&program, &[]).await?;
    // Before anything else, for both stores are to hold the same.
    let mut overheads = vec![plan.overhead("embedded", &mut embedded).await?];
    let passed = match embedded.first_mut() {
        Some(site) => plan.passes(site).await?,
        None => Vec::new(),
    };
    for site in embedded {
        site.stop();
    }
    let member = Member::alone();
    member.wait_until_healthy();
    let flags = ["--store=etcd".to_owned(), format!("--etcd-servers={}", member.url)];
    let mut etcd = pair(&program, &flags).await?;
    overheads.push(plan.overhead("etcd", &mut etcd).await?);
    for site in etcd {
        site.stop();
    }
    Ok(Report { matching, passed, overheads }.render())
}
