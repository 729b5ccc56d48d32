//! Starts, measures and stops the server as a process.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};

/// A running server, which is killed when this value is dropped.
pub(crate) struct Process {
    pub(crate) address: SocketAddr,
    child: Child,
    /// Kept open, because a server that cannot write to its output fails.
    _stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a server on a free port and waits for its line on standard output.
    ///
    /// # Errors
    /// The server does not start; its standard error has the reason.
    pub(crate) fn start(
        program: &Path,
        data: &Path,
        tokens: &Path,
        flags: &[String],
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--secure-port=0", "-v", "0", "--data-dir"]).arg(data);
        Self::spawn(command.arg("--token-auth-file").arg(tokens).args(flags))
    }

    /// Starts a program that prints its address as `portcullis serve` does.
    ///
    /// # Errors
    /// The program does not start; its standard error has the reason.
    pub(crate) fn spawn(command: &mut Command) -> anyhow::Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let stdout = child.stdout.take().context("the server has no standard output")?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let Some(address) = address(&line) else {
            // The process has ended, or it does not serve.
            let _ = child.kill();
            let _ = child.wait();
            anyhow::bail!("the server does not start: {line}");
        };
        Ok(Self { address, child, _stdout: stdout })
    }

    /// The resident memory in bytes.
    pub(crate) fn resident_bytes(&self) -> anyhow::Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        resident_bytes(&text).context("the system does not tell how much memory is resident")
    }

    /// The identifier of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops the server with a signal and waits for its end.
    pub(crate) fn stop(mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if pid.is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok()) {
            // The drop kills the process if it still runs.
            let _ = self.child.wait();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The CPU time that a process has used: nanoseconds of all its threads, or clock ticks where the system does
/// not count nanoseconds. Threads that have ended do not count, so it is for differences over short times.
///
/// # Errors
/// There is no such process.
pub(crate) fn processor_time(pid: u32) -> anyhow::Result<Duration> {
    let mut nanos = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end between the listing and the read.
        let text = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanos += text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0_u64);
    }
    if nanos > 0 {
        return Ok(Duration::from_nanos(nanos));
    }
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let ticks = ticks(&text).context("the system does not tell how long the server ran")?;
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    Ok(Duration::from_secs_f64(ticks as f64 / ticks_per_second as f64))
}

/// The address in the first line of output.
fn address(line: &str) -> Option<SocketAddr> {
    line.strip_prefix("serving https://")?.split(' ').next()?.parse().ok()
}

/// The resident memory in the text of `/proc/PID/status`.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

/// The user and system time in the text of `/proc/PID/stat`. The program name in it is in parentheses and
/// can contain any character.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let program: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(program + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_the_address() {
        let line = "serving https://127.0.0.1:6443 from /x, authorization RBAC, ready in 9 ms\n";
        assert_eq!(address(line), Some(([127, 0, 0, 1], 6443).into()));
        assert_eq!(address("error: no"), None);
    }

    #[test]
    fn the_system_tells_memory_and_time() {
        assert_eq!(resident_bytes("VmHWM:\t 9 kB\nVmRSS:\t   2 kB\n"), Some(2048));
        assert_eq!(resident_bytes("VmRSS:\t2 MB\n"), None);
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 100 23 0 0";
        assert_eq!(ticks(stat), Some(123));
        assert_eq!(ticks("7 (a) S 1"), None);
    }
}
