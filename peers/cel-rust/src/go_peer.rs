//! cel-go as kube-apiserver runs it, measured by a program of the Go module beside this package.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::cases::{self, Case};

/// What the Go program says about one case.
#[derive(Clone, Copy, Debug)]
pub struct GoMeasured {
    pub matcher_min_ns: f64,
    pub matcher_median_ns: f64,
    pub matcher_allocations: f64,
    pub program_median_ns: f64,
}

/// Measures all cases, or says why that is not possible here.
pub fn run(cases: &[Case], quick: bool) -> Result<Vec<GoMeasured>, String> {
    if quick {
        return Err("the quick mode leaves it out".to_owned());
    }
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let input = json!({
        "request": cases::request(),
        "cases": cases
            .iter()
            .map(|case| json!({"name": case.name, "expressions": case.expressions}))
            .collect::<Vec<_>>(),
    });
    let mut child = Command::new("go")
        .args(["run", "./cmd/celbench"])
        .current_dir(module)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("no Go toolchain: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.to_string().as_bytes()).map_err(|error| error.to_string())?;
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err("the Go program failed (is the module proxy within reach?)".to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let measured: Vec<GoMeasured> = text.lines().filter_map(parse).collect();
    if measured.len() != cases.len() {
        return Err(format!("the Go program answered {} of {} cases", measured.len(), cases.len()));
    }
    Ok(measured)
}

fn parse(line: &str) -> Option<GoMeasured> {
    let answer: Value = serde_json::from_str(line).ok()?;
    let number = |name: &str| answer.get(name)?.as_f64();
    Some(GoMeasured {
        matcher_min_ns: number("matcher_ns_min")?,
        matcher_median_ns: number("matcher_ns_median")?,
        matcher_allocations: number("matcher_allocs")?,
        program_median_ns: number("program_ns_median")?,
    })
}
