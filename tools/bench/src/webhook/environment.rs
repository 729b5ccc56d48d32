//! The environment of the benchmark: a folder with certificates and configurations, and the service.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context;
use fake_http::{Authority, Leaf};
use tempfile::TempDir;

use crate::webhook::measure::Measurement;
use crate::webhook::review_request::CONDITION;

/// The names of the files in the folder.
pub(crate) const AUTHORITY: &str = "authority.crt";
pub(crate) const SERVER_CERTIFICATE: &str = "server.crt";
pub(crate) const SERVER_KEY: &str = "server.key";
/// The path with delayed answers.
pub(crate) const SLOW_PATH: &str = "/slow";

/// A webhook that a scenario can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetWebhook {
    /// The service, which answers at once.
    Fast,
    /// The service, which answers after a delay.
    Slow,
    /// An address where nothing listens.
    Dead,
}

impl TargetWebhook {
    const ALL: [Self; 3] = [Self::Fast, Self::Slow, Self::Dead];

    fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Slow => "slow",
            Self::Dead => "dead",
        }
    }
}

/// The folder and the service, which ends when this value is dropped.
pub(crate) struct WebhookEnvironment {
    folder: TempDir,
    service: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl WebhookEnvironment {
    /// Makes the certificates, starts the service and writes the configurations.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let folder = TempDir::new()?;
        let authority = Authority::new("bench")?;
        fs::write(folder.path().join(AUTHORITY), authority.pem())?;
        authority.issue(&Leaf::loopback())?.write(folder.path(), "server")?;
        authority.issue(&Leaf::client("bench"))?.write(folder.path(), "client")?;
        let mut service = Command::new(std::env::current_exe()?)
            .arg(super::SERVICE)
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the service")?;
        let input = service.stdin.take().context("the service has no standard input")?;
        let output = service.stdout.take().context("the service has no standard output")?;
        let mut environment = Self { folder, service, input, output: BufReader::new(output) };
        let port: u16 = environment.line()?.parse().context("the service does not start")?;
        for hook in TargetWebhook::ALL {
            let server = match hook {
                TargetWebhook::Fast => format!("https://127.0.0.1:{port}/fast"),
                TargetWebhook::Slow => format!("https://127.0.0.1:{port}{SLOW_PATH}"),
                // A port that needs privileges, so that nothing listens on it.
                TargetWebhook::Dead => "https://127.0.0.1:1/".to_owned(),
            };
            fs::write(environment.kubeconfig(hook), kubeconfig(environment.folder(), &server))?;
            fs::write(
                environment.configuration(hook),
                configuration(&environment.kubeconfig(hook)),
            )?;
        }
        Ok(environment)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The kubeconfig of a webhook, which both sides read.
    pub(crate) fn kubeconfig(&self, hook: TargetWebhook) -> PathBuf {
        self.folder().join(format!("{}.kubeconfig", hook.name()))
    }

    /// The configuration with this webhook, for our side.
    pub(crate) fn configuration(&self, hook: TargetWebhook) -> PathBuf {
        self.folder().join(format!("{}.yaml", hook.name()))
    }

    /// Runs a function and records how many calls the service received meanwhile.
    pub(crate) fn counted(
        &mut self,
        run: impl FnOnce(&Self) -> anyhow::Result<Measurement>,
    ) -> anyhow::Result<Measurement> {
        let before = self.n_calls()?;
        let measurement = run(self)?;
        Ok(Measurement { n_calls: self.n_calls()? - before, ..measurement })
    }

    fn n_calls(&mut self) -> anyhow::Result<u64> {
        writeln!(self.input)?;
        self.input.flush()?;
        self.line()?.parse().context("the service does not count")
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for WebhookEnvironment {
    fn drop(&mut self) {
        // The service may have ended already.
        let _ = self.service.kill();
        let _ = self.service.wait();
    }
}

fn kubeconfig(folder: &Path, server: &str) -> String {
    let folder = folder.display();
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - {{name: service, cluster: {{server: '{server}', certificate-authority: {folder}/{AUTHORITY}}}}}\n\
         users:\n\
         - {{name: us, user: {{client-certificate: {folder}/client.crt, client-key: {folder}/client.key}}}}\n\
         contexts:\n\
         - {{name: only, context: {{cluster: service, user: us}}}}\n\
         current-context: only\n"
    )
}

fn configuration(kubeconfig: &Path) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\n\
         kind: AuthorizationConfiguration\n\
         authorizers:\n\
         - type: Webhook\n  \
           name: bench\n  \
           webhook:\n    \
             timeout: 5s\n    \
             authorizedTTL: 5m\n    \
             unauthorizedTTL: 5m\n    \
             subjectAccessReviewVersion: v1\n    \
             matchConditionSubjectAccessReviewVersion: v1\n    \
             failurePolicy: NoOpinion\n    \
             connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {}}}\n    \
             matchConditions: [{{expression: \"{CONDITION}\"}}]\n",
        kubeconfig.display()
    )
}
