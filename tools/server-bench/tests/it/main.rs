//! The benchmark still runs, and gets the answers it expects.

use std::process::Command;

/// The quick mode: few bindings, a few requests. It exits with an error if an answer is wrong.
#[test]
fn the_benchmark_runs() {
    let output = Command::new(env!("CARGO_BIN_EXE_server-bench")).arg("--quick").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "| SubjectAccessReview, allowed | 0 |",
        "| SubjectAccessReview, denied | 20 |",
        "| GET a ConfigMap | 20 |",
        "| LIST 500 ConfigMaps | 0 |",
        "| CREATE a ConfigMap | 20 |",
        "resident memory with 20 more bindings",
        "ready in under 1.00 s",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
}
