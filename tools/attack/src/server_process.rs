//! The attacked server: a process on a core of its own, with its data directory and its users.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The core of the server. Attackers and innocents share the other one.
const SERVER_CORE: &str = "0";
/// The core of attackers and innocents.
const CLIENT_CORE: &str = "1";

/// How a server is started.
#[derive(Debug, Clone, Default)]
pub(crate) struct StartOptions {
    pub(crate) flags: Vec<String>,
    /// The limit of descriptors of the process; `None` keeps that of this process.
    pub(crate) descriptors_max: Option<u64>,
    /// Whether nobody reads the standard error of the server.
    pub(crate) stalls_stderr: bool,
}

/// A running server, which is killed when this value is dropped.
pub(crate) struct ServerProcess {
    pub(crate) address: SocketAddr,
    child: Child,
    /// Kept open, because a server that cannot write to its output fails.
    _stdout: BufReader<ChildStdout>,
    /// Kept open and never read, if standard error stalls.
    _stderr: Option<ChildStderr>,
    pub(crate) directory: TempDir,
}

impl ServerProcess {
    /// Starts a server on a free port and an empty store.
    ///
    /// # Errors
    /// The server does not start; its standard error has the reason.
    pub(crate) fn start(
        program: &Path,
        directory: TempDir,
        tokens: &str,
        options: &StartOptions,
    ) -> anyhow::Result<Self> {
        let token_file = directory.path().join("tokens.csv");
        std::fs::write(&token_file, tokens)?;
        let mut command = match options.descriptors_max {
            None => Command::new("taskset"),
            Some(limit) => {
                let mut command = Command::new("prlimit");
                command.args([&format!("--nofile={limit}:{limit}"), "taskset"]);
                command
            }
        };
        command
            .args(["-c", SERVER_CORE])
            .arg(program)
            .args(["serve", "--secure-port=0", "--data-dir"])
            .arg(directory.path().join("data"))
            .arg("--token-auth-file")
            .arg(&token_file)
            .args(&options.flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if options.stalls_stderr {
            command.stderr(Stdio::piped());
        } else {
            command.args(["-v", "0"]);
            command.stderr(std::fs::File::create(directory.path().join("stderr"))?);
        }
        let mut child = command.spawn().context("cannot start `taskset` and `prlimit`")?;
        let stderr = child.stderr.take();
        let stdout = child.stdout.take().context("the server has no standard output")?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let address = line.strip_prefix("serving https://");
        let Some(address) = address.and_then(|rest| rest.split(' ').next()?.parse().ok()) else {
            let _ = child.kill();
            let _ = child.wait();
            let log = std::fs::read_to_string(directory.path().join("stderr")).unwrap_or_default();
            anyhow::bail!("the server does not start: {line}{log}");
        };
        Ok(Self { address, child, _stdout: stdout, _stderr: stderr, directory })
    }

    /// The file with the CA of the server.
    pub(crate) fn authority(&self) -> PathBuf {
        self.directory.path().join("data/ca.crt")
    }

    /// Whether the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().map_or(true, |status| status.is_some())
    }

    /// The resident memory in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        resident_bytes(self.child.id()).unwrap_or(0)
    }

    /// Begins to record the most memory that the process has.
    pub(crate) fn record_memory(&self) -> MemoryRecorder {
        MemoryRecorder::start(self.child.id())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // The process may have ended already.
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Samples the resident memory of a process.
pub(crate) struct MemoryRecorder {
    most: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryRecorder {
    fn start(pid: u32) -> Self {
        let (most, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (own_most, own_over) = (Arc::clone(&most), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !own_over.load(Ordering::Relaxed) {
                own_most.fetch_max(resident_bytes(pid).unwrap_or(0), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Self { most, is_over, thread: Some(thread) }
    }

    /// Ends the recording and returns the most memory that was seen.
    pub(crate) fn stop(mut self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.most.load(Ordering::Relaxed)
    }
}

fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

/// Moves this process to the core of attackers and innocents, before it starts threads.
///
/// # Errors
/// The machine has one core, or no `taskset`.
pub(crate) fn pin_this_process() -> anyhow::Result<()> {
    let pid = std::process::id().to_string();
    let status = Command::new("taskset")
        .args(["-cp", CLIENT_CORE, &pid])
        .stdout(Stdio::null())
        .status()
        .context("cannot start `taskset`, which is part of util-linux")?;
    ensure!(status.success(), "this process cannot run on core {CLIENT_CORE}");
    Ok(())
}
