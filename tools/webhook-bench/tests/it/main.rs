//! The benchmark still runs, and every answer is right.

use std::process::Command;

/// The quick mode: few questions, no Go. It exits with an error if an answer is wrong.
#[test]
fn the_benchmark_runs() {
    let output = Command::new(env!("CARGO_BIN_EXE_webhook-bench")).arg("--quick").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "Upstream is not measured: the quick mode leaves it out.",
        "| cached, few questions |",
        "| cached, many questions |",
        "| call, HTTP/1.1 |",
        "| call, HTTP/1.1, 16 at a time |",
        "| dead service |",
        "| ours | 1 |",
        "met: cached, many questions: no allocation",
        "met: one call for the same question at once",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
}
