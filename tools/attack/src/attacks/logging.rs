//! Attacks on what records requests: standard error, the audit log and the audit webhook.

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::{Load, load, write_file};
use crate::scene::{RawRequest, Scene};
use crate::server_process::StartOptions;

/// A24: nobody reads standard error, the audit log is on a full disk, and the audit webhook hangs.
pub(super) fn a24() -> Load {
    Load {
        start: |program, directory, hooks| {
            let policy = json!({
                "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
                "rules": [{ "level": "RequestResponse" }],
            });
            let policy = write_file(directory, "audit-policy.yaml", &policy.to_string())?;
            let mut flags = vec!["--v=4".to_owned(), format!("--audit-policy-file={policy}")];
            let help = Command::new(program).args(["serve", "--help"]).output()?;
            let help = String::from_utf8_lossy(&help.stdout);
            if help.contains("--audit-log-mode") {
                flags.extend(
                    ["--audit-log-mode=batch", "--audit-log-path=/dev/full"].map(str::to_owned),
                );
            } else {
                eprintln!(
                    "A24: the server has no --audit-log-mode, so its audit log is not on a full disk"
                );
                flags.push(format!("--audit-log-path={}", directory.join("audit.log").display()));
            }
            if help.contains("--audit-webhook-config-file") {
                let hook = write_file(directory, "audit.kubeconfig", &hooks.kubeconfig("/hang"))?;
                flags.push(format!("--audit-webhook-config-file={hook}"));
            } else {
                eprintln!("A24: the server has no --audit-webhook-config-file");
            }
            Ok(StartOptions { flags, stalls_stderr: true, ..StartOptions::default() })
        },
        ..load(|scene, until| Box::pin(make_lines(scene, until)))
    }
}

async fn make_lines(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let long = "x".repeat(4_000);
    let requests = vec![
        RawRequest::get(format!("/api/v1/namespaces/{long}")),
        RawRequest::get("/apis/none"),
        RawRequest::get(format!("/api/v1/namespaces/default/secrets?labelSelector={long}")),
    ];
    scene.flood(None, 16, requests, until).await;
    Ok(())
}
