//! Each benchmark still runs, and gets the answers that it expects.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Benchmarks run one after the other: each measures for a short time only, in which another one may take
/// all processors.
static TURN: Mutex<()> = Mutex::new(());

/// Runs the quick mode, which exits with an error if an answer is wrong, and looks for parts of its tables.
#[cfg(test)]
fn check(bench: &str, parts: &[&str]) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output =
        Command::new(env!("CARGO_BIN_EXE_bench")).args([bench, "--quick"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for part in parts {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
}

#[test]
fn the_benchmark_of_authorizers_runs() {
    check(
        "authz",
        &[
            "| ABAC | 10 lines | 1 |",
            "| ABAC | 1,000 lines | 50 |",
            "| Node | 1,200 pods | mixed |",
            "| RBAC | 100 bindings | 50 |",
            "| RBAC | 1,000 bindings | 1 |",
            "| chain | 1,000 bindings | mixed |",
            " and disagreed on 0.",
            "Upstream is not measured: the quick mode leaves it out.",
            "update of one binding",
        ],
    );
}

#[test]
fn the_benchmark_of_the_server_runs() {
    check(
        "server",
        &[
            "| SubjectAccessReview, allowed | 0 |",
            "| SubjectAccessReview, denied | 20 |",
            "| GET a ConfigMap | 20 |",
            "| LIST 500 ConfigMaps | 0 |",
            "| CREATE a ConfigMap | 20 |",
            "resident memory with 20 more bindings",
            "ready in under 1.00 s",
        ],
    );
}

#[test]
fn the_benchmark_of_webhooks_runs() {
    check(
        "webhook",
        &[
            "Upstream is not measured: the quick mode leaves it out.",
            "| cached, few questions |",
            "| cached, many questions |",
            "| call, HTTP/1.1 |",
            "| call, HTTP/1.1, 16 at a time |",
            "| dead service |",
            "| ours | 1 |",
            "met: cached, many questions: no allocation",
            "met: one call for the same question at once",
        ],
    );
}

#[test]
fn the_comparison_with_the_floor_runs() {
    check(
        "floor",
        &[
            "| request | floor, CPU | a second | ours, CPU | a second | share |",
            "| SubjectAccessReview |",
            "| GET a Namespace |",
            "| GET a Namespace, service account |",
            "| LIST 500 ConfigMaps |",
            "| LIST 600 ConfigMaps |",
            "| WATCH, one delivery |",
            "resident memory with 20 more bindings at most 55.0 MB",
        ],
    );
}
