//! `cargo xtask bench webhook`: the webhook authorizer, beside Kubernetes' own.
//!
//! Both ask the same questions of the same service, which is this program in a process of its own.

mod contest;
mod measure;
mod ours;
mod question;
mod report;
mod service;
mod site;
mod targets;
mod upstream;

pub(crate) use service::{NAME as SERVICE, run as serve};

use contest::{Contest, Effort};
use ours::Ours;
use report::{Report, Row};
use site::Site;
use upstream::Upstream;

use crate::arguments::Arguments;
use crate::{Measured, targets as promises};

/// Runs the benchmark.
///
/// # Errors
/// The service does not start, or one side does not answer.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Measured> {
    let report = measure(arguments.is_quick)?;
    let text = format!("{}\n{}", report.render(), promises::render(&targets::check(&report)));
    Ok(Measured { text, n_wrong: report.n_wrong() })
}

/// Runs every contest some rounds. Within a round one side follows the other, so that what else goes
/// on on the machine concerns both; of the rounds the best counts.
fn measure(is_quick: bool) -> anyhow::Result<Report> {
    let effort = if is_quick { Effort::QUICK } else { Effort::FULL };
    let mut site = Site::start()?;
    let ours = Ours::new()?;
    let (upstream, absence) = match Upstream::build(site.folder(), is_quick) {
        Ok(upstream) => (Some(upstream), None),
        Err(reason) => (None, Some(format!("{reason:#}"))),
    };
    let mut rows = Vec::new();
    for contest in Contest::ALL {
        let mut row = Row { contest, ours: None, upstream: None };
        for round in 0..effort.n_rounds {
            let asked = effort.asked(contest, round);
            let mine = site.counted(|site| ours.run(site, &asked))?;
            Row::keep(&mut row.ours, mine);
            if let Some(upstream) = &upstream {
                let theirs = site.counted(|site| upstream.run(site, &asked))?;
                Row::keep(&mut row.upstream, theirs);
            }
        }
        eprintln!("{}", contest.name());
        rows.push(row);
    }
    Ok(Report { rows, upstream_absence: absence })
}
