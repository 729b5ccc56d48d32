//! Runs Kubernetes' authorizers on the same data, in a Go program under `peers/`.
//!
//! Policies and requests are written to files of JSON lines, which the program reads. It reports the times
//! of its decisions, and whether they agree with ours.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use serde_json::{Value, json};

use crate::authz::request_pool::RequestPool;
use crate::go_program;

/// The version of upstream in the table.
pub(crate) const VERSION: &str = "k8s.io/kubernetes 1.37.1 on the 0.37.2 libraries";

/// The largest number of requests of a pool for upstream. It is so much slower than ours that more would
/// only fill the disk.
const REQUESTS_MAX: usize = 32_768;

/// The measurements of upstream, and how often it agrees with ours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Upstream {
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
    pub(crate) n_decisions: usize,
    pub(crate) n_disagreements: usize,
    /// Some of the disagreements, one line each.
    pub(crate) shown: Vec<String>,
}

/// The files that upstream reads, and the plan of its comparisons.
pub(crate) struct Files {
    /// The folder of the files; `None` if upstream is not run.
    root: Option<PathBuf>,
    plan: Vec<Value>,
}

impl Files {
    /// No files, because upstream is not run.
    pub(crate) fn none() -> Self {
        Self { root: None, plan: Vec::new() }
    }

    /// Files below a folder, which is emptied first.
    pub(crate) fn below(root: PathBuf) -> anyhow::Result<Self> {
        if root.exists() {
            fs::remove_dir_all(&root)
                .with_context(|| format!("cannot empty {}", root.display()))?;
        }
        Ok(Self { root: Some(root), plan: Vec::new() })
    }

    /// Writes the file `folder/name.jsonl`.
    pub(crate) fn write(
        &self,
        folder: &str,
        name: &str,
        lines: impl IntoIterator<Item = Value>,
    ) -> anyhow::Result<()> {
        let Some(root) = &self.root else { return Ok(()) };
        let folder = root.join(folder);
        fs::create_dir_all(&folder)?;
        let mut file = BufWriter::new(File::create(folder.join(format!("{name}.jsonl")))?);
        for line in lines {
            writeln!(file, "{line}")?;
        }
        Ok(file.flush()?)
    }

    /// Adds a comparison to the plan: an authorizer with the policies in these folders decides the requests
    /// of a pool.
    pub(crate) fn ask(
        &mut self,
        authorizer: &str,
        name: &str,
        policies: &[&str],
        pool: &RequestPool,
    ) -> anyhow::Result<()> {
        let folder = format!("questions-{name}");
        self.write(&folder, "askers", pool.users_json())?;
        self.write(&folder, "questions", pool.requests_json().take(REQUESTS_MAX))?;
        self.plan.push(json!({
            "name": name, "authorizer": authorizer, "policies": policies, "questions": folder,
        }));
        Ok(())
    }

    /// Runs upstream on the whole plan. Returns the results by name, or the reason why upstream cannot run
    /// here.
    ///
    /// # Errors
    /// Upstream starts and fails.
    pub(crate) fn run(self) -> anyhow::Result<anyhow::Result<HashMap<String, Upstream>>> {
        let Some(root) = self.root else {
            return Ok(Err(anyhow!(go_program::LEFT_OUT)));
        };
        let plan = root.join("plan.json");
        fs::write(&plan, json!({ "contests": self.plan }).to_string())?;
        let program = root.join("authzbench");
        if let Err(reason) = go_program::build(&go_program::folder("authz"), ".", &program) {
            return Ok(Err(reason));
        }
        let text = go_program::run(&program, &plan)?;
        let answers: HashMap<String, Upstream> = text.lines().filter_map(parse).collect();
        anyhow::ensure!(
            answers.len() == self.plan.len(),
            "the Go program answered {} of {} questions",
            answers.len(),
            self.plan.len()
        );
        Ok(Ok(answers))
    }
}

fn parse(line: &str) -> Option<(String, Upstream)> {
    let answer: Value = serde_json::from_str(line).ok()?;
    let count = |name: &str| usize::try_from(answer.get(name)?.as_u64()?).ok();
    let shown = answer.get("shown").and_then(Value::as_array).into_iter().flatten();
    let upstream = Upstream {
        p50_ns: answer.get("p50_ns")?.as_f64()?,
        p99_ns: answer.get("p99_ns")?.as_f64()?,
        n_decisions: count("decisions")?,
        n_disagreements: count("disagreements")?,
        shown: shown.filter_map(Value::as_str).map(str::to_owned).collect(),
    };
    Some((answer.get("name")?.as_str()?.to_owned(), upstream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_program_is_read_and_other_lines_are_not() {
        let line = r#"{"name":"rbac-100-1","decisions":3,"disagreements":1,"p50_ns":10.5,
            "p99_ns":20,"shown":["ana"]}"#;
        let want = Upstream {
            p50_ns: 10.5,
            p99_ns: 20.0,
            n_decisions: 3,
            n_disagreements: 1,
            shown: vec!["ana".to_owned()],
        };
        assert_eq!(parse(&line.replace('\n', " ")), Some(("rbac-100-1".to_owned(), want)));
        assert_eq!(parse("loading"), None);
        assert_eq!(parse(r#"{"name":"x"}"#), None);
    }

    #[test]
    fn without_a_folder_nothing_is_written_or_asked() {
        let files = Files::none();
        files.write("a", "b", [json!({})]).unwrap();
        assert!(files.run().unwrap().is_err());
    }
}
