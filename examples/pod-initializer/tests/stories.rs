//! Each story is run as its reader would run it, and prints what its folder says.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");

/// One test for each folder.
macro_rules! stories {
    ($($name:ident: $folder:literal),+ $(,)?) => {
        $(#[test]
        fn $name() {
            check($folder);
        })+

        #[test]
        fn every_story_is_run() {
            let is_story = |folder: &PathBuf| folder.join("run.sh").exists();
            let folders = std::fs::read_dir(home()).unwrap().map(|entry| entry.unwrap().path());
            let folders = folders.filter(is_story).count();
            assert_eq!(folders, [$($folder),+].len());
        }
    };
}

stories! {
    creators_wait: "1-creators-wait",
    dead_initializers: "2-dead-initializers",
    after_a_crash: "3-after-a-crash",
    two_at_once: "4-two-at-once",
}

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn check(folder: &str) {
    let folder = home().join(folder);
    let output = Command::new(folder.join("run.sh"))
        .env("BIN", programs())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{complaints}");
    let expected = folder.join("expected.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&expected, &printed).unwrap();
    }
    let expected = std::fs::read_to_string(&expected).unwrap_or_default();
    assert!(printed == expected, "want:\n{expected}\ngot:\n{printed}\n{complaints}");
}

/// Where the scripts find the server and the initializer.
fn programs() -> OsString {
    let own = Path::new(env!("CARGO_BIN_EXE_pod-initializer"));
    let folders = [own, server()].map(|program| program.parent().unwrap());
    std::env::join_paths(folders).unwrap()
}

/// The server, built as it is now. Cargo says where it is.
fn server() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let mut build = Command::new(env!("CARGO"));
        build
            .args(["build", "--package=cli", "--message-format=json", "--manifest-path", WORKSPACE])
            .stderr(Stdio::inherit());
        // What cargo says about this package would make build scripts of others run again.
        for (name, _) in std::env::vars_os() {
            let is_of_package = ["CARGO_PKG_", "CARGO_MANIFEST_"]
                .iter()
                .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()));
            if is_of_package {
                build.env_remove(name);
            }
        }
        let output = build.output().unwrap();
        assert!(output.status.success(), "the server does not compile");
        let messages = output.stdout.split(|byte| *byte == b'\n');
        let mut executables = messages.filter_map(|line| {
            let message: Value = serde_json::from_slice(line).ok()?;
            message["executable"].as_str().map(PathBuf::from)
        });
        executables.next_back().expect("a program")
    })
}
