//! Each story is run as its reader would run it, and prints what its folder says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;
use std::time::SystemTime;

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
    protect_crds: "1-protect-crds",
    filter_before_opa: "2-filter-before-opa",
    deny_everyone: "3-deny-everyone",
    confine_a_role: "4-confine-a-role",
    versioned_defaults: "5-versioned-defaults",
    skip_by_group: "6-skip-by-group",
}

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn check(folder: &str) {
    let programs = Path::new(env!("CARGO_BIN_EXE_protect-crds")).parent().unwrap();
    build_server(programs);
    let folder = home().join(folder);
    let output = Command::new(folder.join("run.sh"))
        .env("BIN", programs)
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

/// The server is a program of another package. Cargo builds it for the tests of the whole workspace,
/// and for nobody else; then it is built here, unless it is newer than all its sources.
fn build_server(programs: &Path) {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        let built = programs.join("portcullis").metadata().and_then(|own| own.modified());
        let crates = home().join("../../crates");
        if built.is_ok_and(|built| built > newest(&crates)) {
            return;
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "cli", "--target-dir"]);
        build.arg(programs.parent().unwrap());
        if programs.ends_with("release") {
            build.arg("--release");
        }
        let status = build.current_dir(home()).status().unwrap();
        assert!(status.success(), "the server does not build");
    });
    assert!(programs.join("portcullis").exists(), "no server in {}", programs.display());
}

/// When anything in a folder changed last.
fn newest(folder: &Path) -> SystemTime {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let changed = entries.map(|entry| {
        let about = entry.metadata().unwrap();
        if about.is_dir() { newest(&entry.path()) } else { about.modified().unwrap() }
    });
    changed.max().unwrap_or(SystemTime::UNIX_EPOCH)
}
