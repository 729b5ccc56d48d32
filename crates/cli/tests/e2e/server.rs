//! The server as a process that goes away with the test.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use etcd_testing::Member;
use tempfile::TempDir;

use crate::client::Client;

/// A server that does not say within this time that it serves never will. A busy machine takes seconds.
const START_MAX: Duration = Duration::from_secs(30);
/// How often a process that is to end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Where the server keeps its objects. It outlives the processes that use it.
pub(crate) enum Place {
    /// In the data directory.
    Embedded,
    /// In a cluster of one member.
    Etcd(Member),
    /// In a cluster of three members.
    EtcdCluster(Box<[Member; 3]>),
}

impl Place {
    /// A member of its own, without data.
    pub(crate) fn etcd() -> Self {
        let member = Member::alone();
        member.wait_until_healthy();
        Self::Etcd(member)
    }

    /// Three members without data.
    pub(crate) fn etcd_cluster() -> Self {
        let members = Member::three();
        members.iter().for_each(Member::wait_until_healthy);
        Self::EtcdCluster(Box::new(members))
    }

    fn args(&self) -> Vec<String> {
        let urls = match self {
            Self::Embedded => return Vec::new(),
            Self::Etcd(member) => member.url.clone(),
            Self::EtcdCluster(members) => {
                members.iter().map(|member| member.url.as_str()).collect::<Vec<_>>().join(",")
            }
        };
        vec!["--store=etcd".to_owned(), format!("--etcd-servers={urls}")]
    }
}

/// The resource limits of the process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Allowance {
    /// The longest that a file can become, in units of 512 bytes: writes beyond it fail, as on a disk
    /// that is full.
    pub(crate) file_blocks_max: Option<u64>,
    /// Memory that the process may write to, in KiB: what it allocates and the stacks of its threads.
    pub(crate) memory_kib_max: Option<u64>,
    /// How many files the process may have open at first, and how many it may allow itself.
    pub(crate) descriptors: Option<(u64, u64)>,
}

impl Allowance {
    /// The lines of a shell that take everything else away. A process that ignores SIGXFSZ gets an
    /// error from `write` where others are killed.
    fn script(self) -> String {
        let mut script = String::new();
        if let Some(blocks) = self.file_blocks_max {
            script.push_str(&format!("trap '' XFSZ; ulimit -f {blocks}; "));
        }
        if let Some(kib) = self.memory_kib_max {
            // Address space that is only reserved would count as well.
            script.push_str("export MIMALLOC_ARENA_RESERVE=0 TOKIO_WORKER_THREADS=2; ");
            script.push_str(&format!("ulimit -d {kib}; "));
        }
        if let Some((soft, hard)) = self.descriptors {
            script.push_str(&format!("ulimit -Sn {soft}; ulimit -Hn {hard}; "));
        }
        script + "exec \"$0\" \"$@\""
    }
}

/// A process that ended before it served.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// `None` if a signal ended it, or it did not end by itself.
    pub(crate) code: Option<i32>,
    /// Everything in its log.
    pub(crate) said: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server does not start (exit code {:?}): {}", self.code, self.said)
    }
}

/// A server that is ready. Dropping it kills the process; the data directory stays.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    data: PathBuf,
    process: Child,
}

impl Server {
    /// Starts it on a free port and waits until it says that it serves.
    pub(crate) fn start(data: &Path, place: &Place) -> Self {
        Self::start_with(data, place, &[])
    }

    /// The same, with more flags.
    #[track_caller]
    pub(crate) fn start_with(data: &Path, place: &Place, flags: &[&str]) -> Self {
        match Self::try_start(data, place, flags, Allowance::default()) {
            Ok(server) => server,
            Err(refusal) => panic!("{refusal}"),
        }
    }

    /// Starts a process that may fail, or may be allowed too little.
    pub(crate) fn try_start(
        data: &Path,
        place: &Place,
        flags: &[&str],
        allowance: Allowance,
    ) -> Result<Self, Refusal> {
        let mut process = spawn(data, place, flags, allowance);
        let banner = banner(process.stdout.take().unwrap());
        let banner = banner.recv_timeout(START_MAX).unwrap_or_default();
        let address = banner.strip_prefix("serving https://").and_then(|rest| {
            let (address, _) = rest.split_once(' ')?;
            address.parse().ok()
        });
        let Some(address) = address else {
            // One that has no banner and lives is stuck.
            let status = wait(&mut process, Duration::from_millis(500));
            process.kill().ok();
            process.wait().ok();
            let said = format!("{banner}{}", said(data));
            return Err(Refusal { code: status.and_then(|status| status.code()), said });
        };
        Ok(Self { address, data: data.to_owned(), process })
    }

    /// Starts a process and kills it after this time, wherever it is then.
    pub(crate) fn start_and_kill(data: &Path, place: &Place, flags: &[&str], after: Duration) {
        let mut process = spawn(data, place, flags, Allowance::default());
        // This waits for a real process: the server starts for this long before it is killed.
        std::thread::sleep(after);
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// The file by which the administrator gets in.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.data.join("data/admin.kubeconfig")
    }

    /// The administrator as a client.
    pub(crate) fn client(&self) -> Client {
        let read = |name: &str| std::fs::read_to_string(self.data.join("data").join(name)).unwrap();
        Client::new(self.address, &read("ca.crt"), &read("admin.crt"), &read("admin.key"))
    }

    /// Ends the process at once, as a crash does.
    pub(crate) fn kill(mut self) {
        // `Child::kill` sends SIGKILL, which no process can hear.
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Asks the process to end, and gives its exit code.
    ///
    /// # Panics
    /// It has not ended within this time, or a signal ended it.
    #[track_caller]
    pub(crate) fn stop(mut self, within: Duration) -> i32 {
        self.signal("-TERM");
        let Some(status) = wait(&mut self.process, within) else {
            panic!("the server does not stop within {within:?}: {}", self.log());
        };
        status.code().unwrap_or_else(|| panic!("the server died: {status} {}", self.log()))
    }

    /// Stops the process where it is: it does nothing and keeps what it has.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on from there.
    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// The maximum memory that it ever had, in KiB.
    pub(crate) fn peak_memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
    }

    /// The log of the server without the lines about requests.
    pub(crate) fn log(&self) -> String {
        said(&self.data)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be dead already.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A process in the data directory, which may become a server.
fn spawn(data: &Path, place: &Place, flags: &[&str], allowance: Allowance) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(data.join("log"));
    let mut command = Command::new("sh");
    command.arg("-c").arg(allowance.script()).arg(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["serve", "--data-dir"]).arg(data.join("data"));
    if !flags.iter().any(|flag| flag.starts_with("--secure-port")) {
        command.arg("--secure-port=0");
    }
    command.args(place.args()).args(flags);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.unwrap());
    command.spawn().unwrap()
}

/// The line of a stream that says where the server serves; nothing if it never does. The rest is read as
/// well: a server that cannot write there would fail for a reason of ours.
fn banner(stdout: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut sender = Some(sender);
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Events of the audit may be there as well, and earlier.
            if line.starts_with("serving ")
                && let Some(sender) = sender.take()
            {
                sender.send(line).ok();
            }
        }
    });
    receiver
}

/// Waits until a process ends; `None` if it does not.
fn wait(process: &mut Child, within: Duration) -> Option<std::process::ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            return Some(status);
        }
        if begun.elapsed() > within {
            return None;
        }
        // This waits for a real process: the server ends.
        std::thread::sleep(LOOK_EVERY);
    }
}

fn said(data: &Path) -> String {
    let log = std::fs::read(data.join("log")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let others = log.lines().filter(|line| !line.contains(" request method="));
    others.collect::<Vec<_>>().join("\n")
}

/// A directory for one test, short enough for everything that is put there.
pub(crate) fn directory() -> TempDir {
    tempfile::Builder::new().prefix("e2e-").tempdir().unwrap()
}
