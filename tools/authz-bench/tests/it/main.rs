//! The benchmark still runs, and finds no difference.

use std::process::Command;

/// The quick mode: small policies, few questions, no Go. It exits with an error if index and naive
/// implementation differ.
#[test]
fn the_benchmark_runs() {
    let output = Command::new(env!("CARGO_BIN_EXE_authz-bench")).arg("--quick").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "| ABAC | 10 lines | 1 |",
        "| ABAC | 1,000 lines | 50 |",
        "| Node | 1,200 pods | mixed |",
        "| RBAC | 100 bindings | 50 |",
        "| RBAC | 1,000 bindings | 1 |",
        "| chain | 1,000 bindings | mixed |",
        " and disagreed on 0.",
        "Upstream is not measured: the quick mode leaves it out.",
        "update of one binding",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
}
