//! Starts the server of this repository as a process, for one worker.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use super::HttpError;
use super::client::Endpoint;

const TOKEN: &str = "conformance-administrator";
const TOKEN_FILE: &str = "conformance-administrator,admin,admin,system:masters\n";
/// The flags of the recorded server, and one that avoids waiting for the disk.
const FLAGS: &[&str] = &[
    "serve",
    "--secure-port=0",
    "-v",
    "0",
    "--service-cluster-ip-range=10.0.0.0/16",
    "--store-sync=interval:60000",
];

/// A server on an empty store.
pub(super) struct Server {
    /// The process. It ends before its folder is removed, because fields are dropped in order.
    running: ServerProcess,
    folder: TempDir,
}

/// A running server process, which ends when this value is dropped.
struct ServerProcess {
    endpoint: Endpoint,
    process: ChildGuard,
    /// Kept open, because a server that cannot write to its output fails.
    _stdout: BufReader<ChildStdout>,
}

struct ChildGuard(Child);

impl Server {
    /// Starts a server with keys and certificates of its own.
    pub(super) fn start(program: &Path) -> Result<Self, HttpError> {
        let folder = tempfile::tempdir().map_err(|error| HttpError::Start(error.to_string()))?;
        Ok(Self { running: ServerProcess::start(program, folder.path())?, folder })
    }

    /// Returns the endpoint on which the server listens.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.running.endpoint
    }

    /// Ends this server and starts another one on an empty store with the same keys.
    pub(super) fn replace(&mut self, program: &Path) -> Result<(), HttpError> {
        self.running.process.end();
        let store = self.folder.path().join("data/store");
        std::fs::remove_dir_all(store).map_err(|error| HttpError::Start(error.to_string()))?;
        self.running = ServerProcess::start(program, self.folder.path())?;
        Ok(())
    }
}

impl ServerProcess {
    fn start(program: &Path, folder: &Path) -> Result<Self, HttpError> {
        let failed = |why: String| HttpError::Start(format!("`{}`: {why}", program.display()));
        let refused = |error: std::io::Error| failed(error.to_string());
        let (tokens, log) = (folder.join("tokens.csv"), folder.join("log"));
        std::fs::write(&tokens, TOKEN_FILE).map_err(refused)?;
        let process = Command::new(program)
            .args(FLAGS)
            .arg("--data-dir")
            .arg(folder.join("data"))
            .arg("--token-auth-file")
            .arg(&tokens)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).map_err(refused)?)
            .spawn();
        let mut process = ChildGuard(process.map_err(refused)?);
        let stdout = process.0.stdout.take().ok_or_else(|| failed("no output".to_owned()))?;
        let mut stdout = BufReader::new(stdout);
        let mut banner = String::new();
        stdout.read_line(&mut banner).map_err(refused)?;
        let url = banner.strip_prefix("serving ").and_then(|rest| rest.split(' ').next());
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        let url = url.ok_or_else(|| failed(format!("{banner}{}", said())))?;
        let endpoint = Endpoint::new(url, TOKEN, Some(&folder.join("data/ca.crt")))?;
        Ok(Self { endpoint, process, _stdout: stdout })
    }
}

impl ChildGuard {
    /// Kills the process if it still runs.
    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.end();
    }
}
