//! Our engine and the published `cel` crate answer the same, and the benchmark still runs.

mod agreement;
mod expressions;

use std::process::Command;

/// The benchmark's quick mode: every case compiles, is true in both engines, and is measured.
#[test]
fn the_benchmark_runs() {
    let output = Command::new(env!("CARGO_BIN_EXE_bench")).arg("--quick").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for case in ["| a |", "| f |", "| webhook |", "64 match conditions"] {
        assert!(text.contains(case), "no {case} in\n{text}");
    }
}
