//! Where everything takes place: a folder with certificates and configurations, and the service.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context;
use fake_http::{Authority, Leaf};
use tempfile::TempDir;

use crate::webhook::measure::Outcome;
use crate::webhook::question::CONDITION;

/// Files of the folder.
pub(crate) const AUTHORITY: &str = "authority.crt";
pub(crate) const SERVER_CERTIFICATE: &str = "server.crt";
pub(crate) const SERVER_KEY: &str = "server.key";
/// The path whose answers take their time.
pub(crate) const SLOW_PATH: &str = "/slow";

/// A webhook that can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hook {
    /// The service.
    Fast,
    /// The service, taking its time.
    Slow,
    /// Nobody.
    Dead,
}

impl Hook {
    const ALL: [Self; 3] = [Self::Fast, Self::Slow, Self::Dead];

    fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Slow => "slow",
            Self::Dead => "dead",
        }
    }
}

/// The folder and the service. Dropping it ends the service.
pub(crate) struct Site {
    folder: TempDir,
    service: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Site {
    /// Makes the certificates, starts the service, writes the configurations.
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
        let mut site = Self { folder, service, input, output: BufReader::new(output) };
        let port: u16 = site.line()?.parse().context("the service does not start")?;
        for hook in Hook::ALL {
            let server = match hook {
                Hook::Fast => format!("https://127.0.0.1:{port}/fast"),
                Hook::Slow => format!("https://127.0.0.1:{port}{SLOW_PATH}"),
                // A port that nobody may listen at without privileges, and nobody does.
                Hook::Dead => "https://127.0.0.1:1/".to_owned(),
            };
            fs::write(site.kubeconfig(hook), kubeconfig(site.folder(), &server))?;
            fs::write(site.configuration(hook), configuration(&site.kubeconfig(hook)))?;
        }
        Ok(site)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How a webhook is reached; both sides read it.
    pub(crate) fn kubeconfig(&self, hook: Hook) -> PathBuf {
        self.folder().join(format!("{}.kubeconfig", hook.name()))
    }

    /// The configuration with that webhook, for our side.
    pub(crate) fn configuration(&self, hook: Hook) -> PathBuf {
        self.folder().join(format!("{}.yaml", hook.name()))
    }

    /// Runs something and notes how often the service was asked meanwhile.
    pub(crate) fn counted(
        &mut self,
        run: impl FnOnce(&Self) -> anyhow::Result<Outcome>,
    ) -> anyhow::Result<Outcome> {
        let before = self.n_calls()?;
        let outcome = run(self)?;
        Ok(Outcome { n_calls: self.n_calls()? - before, ..outcome })
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

impl Drop for Site {
    fn drop(&mut self) {
        // It may be gone already.
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
