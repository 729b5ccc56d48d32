//! kubectl against both stores.
//!
//! The transcripts hold what kubectl prints with kube-apiserver; where this server differs by design
//! a remark beside the command says so.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tempfile::TempDir;

use crate::server::{Place, Server, directory};
use crate::transcript::differences;

/// The message if kubectl is missing. The test fails then, because it could check nothing.
const MISSING: &str = "no `kubectl` of 1.28 or later in PATH: run `cargo xtask setup`, or install it \
                       (Debian 13: `apt-get install kubernetes-client`)";
/// `auth whoami` and `create token` came with it, and `explain` reads OpenAPI v3.
const MINOR_MIN: u32 = 28;
/// How long kubectl may take to tell of a change.
const PATIENCE: Duration = Duration::from_secs(30);

/// One test for each transcript and store.
macro_rules! transcripts {
    ($($name:ident),+ $(,)?) => {
        mod embedded {
            use super::*;
            $(#[test]
            fn $name() {
                check(stringify!($name), &Place::Embedded);
            })+
        }

        mod etcd {
            use super::*;
            $(#[test]
            fn $name() {
                check(stringify!($name), &Place::etcd());
            })+
        }

        #[test]
        fn every_transcript_is_run() {
            let files = std::fs::read_dir(TRANSCRIPTS).unwrap();
            let files: BTreeSet<String> =
                files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            let names: BTreeSet<String> =
                [$(stringify!($name)),+].iter().map(|name| format!("{name}.txt")).collect();
            assert_eq!(files, names);
        }
    };
}

const TRANSCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/transcripts");

transcripts![
    access,
    apply,
    configurations,
    definitions,
    namespaces,
    objects,
    patch,
    reconcile,
    schema,
    workloads
];

fn check(name: &str, place: &Place) {
    let text = std::fs::read_to_string(Path::new(TRANSCRIPTS).join(name).with_extension("txt"));
    Desk::new(place).check(&text.unwrap());
}

/// A server and someone who works with it.
struct Desk {
    server: Server,
    directory: TempDir,
}

impl Desk {
    fn new(place: &Place) -> Self {
        demand_kubectl();
        let directory = directory();
        let server = Server::start(directory.path(), place);
        Self { server, directory }
    }

    /// Nothing of the person who runs the tests is used: no configuration, no cache, no editor.
    fn variables(&self) -> [(&'static str, PathBuf); 6] {
        let home = self.directory.path();
        [
            ("HOME", home.to_owned()),
            ("TMPDIR", home.to_owned()),
            ("KUBECACHEDIR", home.join("cache")),
            ("KUBECONFIG", self.server.kubeconfig()),
            ("KUBE_EDITOR", "false".into()),
            ("LC_ALL", "C".into()),
        ]
    }

    /// Goes through a transcript.
    #[track_caller]
    fn check(&self, transcript: &str) {
        let report = differences(transcript, self.directory.path(), &self.variables());
        assert!(report.is_empty(), "{report}\nlog of the server:\n{}", self.server.log());
    }

    /// One command that must print this.
    #[track_caller]
    fn kubectl(&self, line: &str, want: &str) {
        self.check(&format!("$ kubectl {line}\n{want}\n"));
    }
}

fn demand_kubectl() {
    static MINOR: OnceLock<Option<u32>> = OnceLock::new();
    let minor = MINOR.get_or_init(|| {
        let args = ["version", "--client", "--output=json"];
        let output = Command::new("kubectl").args(args).output().ok()?;
        let version: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        let minor = version["clientVersion"]["minor"].as_str()?;
        minor.trim_end_matches('+').parse().ok()
    });
    assert!(minor.is_some_and(|minor| minor >= MINOR_MIN), "{MISSING}");
}

/// kubectl as it waits for something, with the lines it prints.
struct Waiting {
    process: Child,
    printed: Receiver<String>,
    logged: Receiver<String>,
}

impl Waiting {
    /// Starts it and returns when the server has accepted its watch.
    fn start(desk: &Desk, args: &[&str]) -> Self {
        let mut process = Command::new("kubectl")
            .args(args)
            // With this it logs the requests that were answered.
            .arg("--v=6")
            .envs(desk.variables())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = lines(process.stdout.take().unwrap());
        let logged = lines(process.stderr.take().unwrap());
        let waiting = Self { process, printed, logged };
        while !waiting.logged.recv_timeout(PATIENCE).expect("a watch").contains("watch=true") {}
        waiting
    }

    /// The words of the next line.
    fn next(&self) -> Vec<String> {
        let line = self.printed.recv_timeout(PATIENCE).expect("kubectl tells nothing");
        line.split_whitespace().map(str::to_owned).collect()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // It may be dead already.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            // Nobody listens any more when the test has ended.
            sender.send(line).ok();
        }
    });
    lines
}

/// `get --watch` prints every change, with the columns of a list.
#[test]
fn a_watch_tells_every_change() {
    for place in [Place::Embedded, Place::etcd()] {
        let desk = Desk::new(&place);
        desk.kubectl("create configmap first", "configmap/first created");
        let all = Waiting::start(&desk, &["get", "cm", "--watch", "--output-watch-events"]);
        assert_eq!(all.next(), ["EVENT", "NAME", "DATA", "AGE"]);
        assert_eq!(all.next()[..3], ["ADDED", "first", "0"]);
        let one = Waiting::start(&desk, &["get", "cm", "first", "--watch", "--output=name"]);
        assert_eq!(one.next(), ["configmap/first"]);
        desk.kubectl("create configmap second --from-literal=k=v", "configmap/second created");
        assert_eq!(all.next()[..3], ["ADDED", "second", "1"]);
        desk.kubectl(
            r#"patch cm first -p '{"data":{"a":"1","b":"2"}}'"#,
            "configmap/first patched",
        );
        assert_eq!(all.next()[..3], ["MODIFIED", "first", "2"]);
        assert_eq!(one.next(), ["configmap/first"]);
        desk.kubectl("delete cm second", r#"configmap "second" deleted<?>"#);
        assert_eq!(all.next()[..3], ["DELETED", "second", "1"]);
    }
}

/// `wait` does not end before the awaited happens, and ends when it does.
#[test]
fn wait_ends_when_it_happens() {
    for place in [Place::Embedded, Place::etcd()] {
        let desk = Desk::new(&place);
        desk.kubectl("create configmap a --from-literal=phase=begun", "configmap/a created");
        for (awaited, command, printed) in [
            (
                "--for=jsonpath={.data.phase}=done",
                r#"patch cm a -p '{"data":{"phase":"done"}}'"#,
                "configmap/a patched",
            ),
            ("--for=delete", "delete cm a", r#"configmap "a" deleted<?>"#),
        ] {
            let args = ["wait", awaited, "configmap/a", "--timeout=60s"];
            let mut waiting = Waiting::start(&desk, &args);
            assert!(waiting.process.try_wait().unwrap().is_none(), "{awaited} did not wait");
            desk.kubectl(command, printed);
            assert_eq!(waiting.next(), ["configmap/a", "condition", "met"]);
            assert!(waiting.process.wait().unwrap().success());
        }
    }
}
