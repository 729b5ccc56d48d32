//! Measures cel-go as kube-apiserver runs it, by a program of the Go module beside this package.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::cases::{self, Case};

/// The measurements of the Go program for one case.
#[derive(Clone, Copy, Debug)]
pub struct GoMeasured {
    pub matcher_min_ns: f64,
    pub matcher_median_ns: f64,
    pub matcher_allocations: f64,
    pub program_median_ns: f64,
}

/// Measures all cases.
///
/// # Errors
/// The Go program cannot be run here; the report prints the reason.
pub fn run(cases: &[Case], quick: bool) -> Result<Vec<GoMeasured>, Box<dyn Error>> {
    if quick {
        return Err("the quick mode leaves it out".into());
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
        stdin.write_all(input.to_string().as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err("the Go program failed (is the module proxy within reach?)".into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let measured: Vec<GoMeasured> = text.lines().filter_map(parse).collect();
    if measured.len() != cases.len() {
        return Err(
            format!("the Go program answered {} of {} cases", measured.len(), cases.len()).into()
        );
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
