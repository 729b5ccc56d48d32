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
    label_and_check_pods: "7-label-and-check-pods",
    fail_open_then_closed: "8-fail-open-then-closed",
    hook_behind_a_service: "9-hook-behind-a-service",
    authorizer_in_the_cluster: "10-authorizer-in-the-cluster",
}

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn check(folder: &str) {
    let programs = Path::new(env!("CARGO_BIN_EXE_protect-crds")).parent().unwrap();
    build_others(programs);
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

/// Programs of other packages: the package, the program, and where its sources are.
const OTHERS: [(&str, &str, &str); 2] = [
    ("cli", "portcullis", "../../crates"),
    ("admission-webhook", "admission-webhook", "../admission-webhook"),
];

/// Cargo builds the programs of other packages for the tests of the whole workspace, and for nobody
/// else; then they are built here, unless they are newer than all their sources.
fn build_others(programs: &Path) {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| OTHERS.iter().for_each(|other| build(programs, other)));
    for (_, program, _) in OTHERS {
        assert!(programs.join(program).exists(), "no {program} in {}", programs.display());
    }
}

fn build(programs: &Path, (package, program, sources): &(&str, &str, &str)) {
    let built = programs.join(program).metadata().and_then(|own| own.modified());
    if built.is_ok_and(|built| built > newest(&home().join(sources))) {
        return;
    }
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", package, "--target-dir"]);
    build.arg(programs.parent().unwrap());
    if programs.ends_with("release") {
        build.arg("--release");
    }
    let status = build.current_dir(home()).status().unwrap();
    assert!(status.success(), "{package} does not build");
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
