//! `cargo xtask bench webhook`: measures the webhook authorizer, and compares it with that of Kubernetes.
//!
//! Both send the same requests to the same service, which is this program in a separate process.

mod environment;
mod measure;
mod our_side;
mod report;
mod review_request;
mod scenario;
mod service;
mod targets;
mod upstream;

pub(crate) use service::{NAME as SERVICE, run as serve};

use environment::WebhookEnvironment;
use our_side::OurSide;
use report::{Report, Row};
use scenario::{Effort, Scenario};
use upstream::Upstream;

use crate::arguments::Arguments;
use crate::{BenchResult, targets as promises};

/// Runs the benchmark.
///
/// # Errors
/// The service does not start, or one side fails.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<BenchResult> {
    let report = measure(arguments.is_quick)?;
    let text = format!("{}\n{}", report.render(), promises::render(&targets::check(&report)));
    Ok(BenchResult { text, n_wrong: report.n_wrong() })
}

/// Runs every scenario for some rounds, and keeps the best values. Within a round the two sides follow each
/// other, so other programs on the machine affect both.
fn measure(is_quick: bool) -> anyhow::Result<Report> {
    let effort = if is_quick { Effort::QUICK } else { Effort::FULL };
    let mut environment = WebhookEnvironment::start()?;
    let our_side = OurSide::new()?;
    let (upstream, absence) = match Upstream::build(environment.folder(), is_quick) {
        Ok(upstream) => (Some(upstream), None),
        Err(reason) => (None, Some(format!("{reason:#}"))),
    };
    let mut rows = Vec::new();
    for scenario in Scenario::ALL {
        let mut row = Row { scenario, our_side: None, upstream: None };
        for round in 0..effort.n_rounds {
            let scenario_run = effort.scenario_run(scenario, round);
            let mine =
                environment.counted(|environment| our_side.run(environment, &scenario_run))?;
            Row::keep(&mut row.our_side, mine);
            if let Some(upstream) = &upstream {
                let theirs =
                    environment.counted(|environment| upstream.run(environment, &scenario_run))?;
                Row::keep(&mut row.upstream, theirs);
            }
        }
        eprintln!("{}", scenario.name());
        rows.push(row);
    }
    Ok(Report { rows, upstream_absence: absence })
}
