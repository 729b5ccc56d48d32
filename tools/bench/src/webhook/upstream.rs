//! Runs Kubernetes' webhook authorizer in a Go program under `peers/`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::go_program;
use crate::webhook::environment::WebhookEnvironment;
use crate::webhook::measure::Measurement;
use crate::webhook::review_request::CONDITION;
use crate::webhook::scenario::ScenarioRun;

/// The version of upstream in the table.
pub(crate) const VERSION: &str = "the webhook authorizer of k8s.io/apiserver 0.37.2";

/// The Go program after its build.
pub(crate) struct Upstream {
    program: PathBuf,
}

impl Upstream {
    /// Builds the Go program.
    ///
    /// # Errors
    /// The program cannot be built here.
    pub(crate) fn build(folder: &Path, is_quick: bool) -> anyhow::Result<Self> {
        ensure!(!is_quick, go_program::LEFT_OUT);
        let program = folder.join("webhookbench");
        go_program::build(&go_program::folder(""), "./cmd/webhookbench", &program)?;
        Ok(Self { program })
    }

    /// Runs a scenario with a webhook whose cache is empty.
    ///
    /// # Errors
    /// The program fails.
    pub(crate) fn run(
        &self,
        environment: &WebhookEnvironment,
        scenario_run: &ScenarioRun,
    ) -> anyhow::Result<Measurement> {
        let requests = environment.folder().join("questions.jsonl");
        let lines: String = scenario_run
            .requests
            .iter()
            .map(|review_request| format!("{}\n", review_request.json()))
            .collect();
        fs::write(&requests, lines)?;
        let plan = json!({
            "kind": scenario_run.scenario.kind(),
            "kubeconfig": environment.kubeconfig(scenario_run.scenario.hook()),
            "condition": CONDITION,
            "questions": requests,
            "warmUp": scenario_run.n_warm_up,
            "askers": scenario_run.n_concurrent,
            // With cached answers Go has one processor, so that garbage collection counts in the times. With
            // calls, which wait for the network, it has all processors.
            "processors": if scenario_run.scenario.is_cached() { 1 } else { 0 },
        });
        let path = environment.folder().join("plan.json");
        fs::write(&path, plan.to_string())?;
        let line = go_program::run(&self.program, &path)?;
        parse(&line).with_context(|| format!("the Go program says `{line}`"))
    }
}

fn parse(line: &str) -> Option<Measurement> {
    let answer: Value = serde_json::from_str(line).ok()?;
    let count = |name: &str| usize::try_from(answer.get(name)?.as_u64()?).ok();
    let number = |name: &str| answer.get(name)?.as_f64();
    Some(Measurement {
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
        let want = Measurement {
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
