//! The other side: Kubernetes' own webhook authorizer, in a Go program beside this workspace.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::go_program;
use crate::webhook::contest::Asked;
use crate::webhook::measure::Outcome;
use crate::webhook::question::CONDITION;
use crate::webhook::site::Site;

/// What the table says upstream is.
pub(crate) const VERSION: &str = "the webhook authorizer of k8s.io/apiserver 0.37.2";

/// The Go program, built.
pub(crate) struct Upstream {
    program: PathBuf,
}

impl Upstream {
    /// Builds the program.
    ///
    /// # Errors
    /// The reason for which that is not possible here.
    pub(crate) fn build(folder: &Path, is_quick: bool) -> anyhow::Result<Self> {
        ensure!(!is_quick, go_program::LEFT_OUT);
        let program = folder.join("webhookbench");
        go_program::build(&go_program::folder(""), "./cmd/webhookbench", &program)?;
        Ok(Self { program })
    }

    /// Runs a contest with a webhook that knows nothing yet.
    ///
    /// # Errors
    /// The program does not answer.
    pub(crate) fn run(&self, site: &Site, asked: &Asked) -> anyhow::Result<Outcome> {
        let questions = site.folder().join("questions.jsonl");
        let lines: String =
            asked.questions.iter().map(|question| format!("{}\n", question.json())).collect();
        fs::write(&questions, lines)?;
        let plan = json!({
            "kind": asked.contest.kind(),
            "kubeconfig": site.kubeconfig(asked.contest.hook()),
            "condition": CONDITION,
            "questions": questions,
            "warmUp": asked.n_warm_up,
            "askers": asked.n_askers,
            // Where nothing waits, garbage collection has to be paid for within the times instead
            // of beside them; where the network is waited for, all processors are of use.
            "processors": if asked.contest.is_cached() { 1 } else { 0 },
        });
        let path = site.folder().join("plan.json");
        fs::write(&path, plan.to_string())?;
        let line = go_program::run(&self.program, &path)?;
        parse(&line).with_context(|| format!("the Go program says `{line}`"))
    }
}

fn parse(line: &str) -> Option<Outcome> {
    let answer: Value = serde_json::from_str(line).ok()?;
    let count = |name: &str| usize::try_from(answer.get(name)?.as_u64()?).ok();
    let number = |name: &str| answer.get(name)?.as_f64();
    Some(Outcome {
        p50_ns: number("p50_ns")?,
        p99_ns: number("p99_ns")?,
        total_ns: number("total_ns")?,
        allocated: answer.get("allocations")?.as_u64()?,
        n_calls: 0,
        n_decisions: count("decisions")?,
        n_wrong: count("disagreements")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_program_is_read_and_other_lines_are_not() {
        let line = r#"{"decisions":3,"disagreements":1,"p50_ns":10,"p99_ns":20,"total_ns":40,
            "allocations":7}"#;
        let want = Outcome {
            p50_ns: 10.0,
            p99_ns: 20.0,
            total_ns: 40.0,
            allocated: 7,
            n_calls: 0,
            n_decisions: 3,
            n_wrong: 1,
        };
        assert_eq!(parse(line), Some(want));
        assert_eq!(parse("loading"), None);
        assert_eq!(parse(r#"{"decisions":3}"#), None);
    }
}
