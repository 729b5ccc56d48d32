//! Each story is run as its reader would run it, and prints what its folder says.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    let own = Path::new(env!("CARGO_BIN_EXE_pod-initializer")).parent().unwrap();
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let server = target.unwrap_or_else(|| home().join("../../target")).join("debug");
    if let Some(fault) = program_fault(&server, "portcullis") {
        panic!("{fault}; run `cargo build --package cli`");
    }
    std::env::join_paths([own, &server]).unwrap()
}

/// Returns the reason why a program cannot be used: it does not exist, or is older than one of its sources. Cargo
/// lists the sources in a file beside the program, in the syntax of make.
fn program_fault(programs: &Path, program: &str) -> Option<String> {
    let path = programs.join(program);
    let Ok(built) = path.metadata().and_then(|own| own.modified()) else {
        return Some(format!("`{}` is not built", path.display()));
    };
    let sources = std::fs::read_to_string(path.with_extension("d")).unwrap_or_default();
    let sources = sources.split_once(": ").map_or("", |(_, sources)| sources);
    let changed = sources.split_whitespace().find(|source| {
        Path::new(source).metadata().and_then(|own| own.modified()).is_ok_and(|own| own > built)
    });
    changed.map(|source| format!("`{}` is older than `{source}`", path.display()))
}
