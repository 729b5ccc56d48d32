//! Each story is run as its reader would run it, and prints what its folder says.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

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
    check_built(programs);
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

/// The programs of other packages that the scripts start, with their packages.
const OTHERS: [(&str, &str); 2] =
    [("portcullis", "cli"), ("admission-webhook", "admission-webhook")];

/// Cargo builds the programs of other packages for the tests of the whole workspace, and for nobody
/// else. A story that runs without them, or with old ones, says nothing about the sources.
fn check_built(programs: &Path) {
    for (program, package) in OTHERS {
        if let Some(fault) = program_fault(programs, program) {
            let release = if programs.ends_with("release") { " --release" } else { "" };
            panic!("{fault}; run `cargo build --package {package}{release}`");
        }
    }
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

#[test]
fn programs_that_are_missing_or_old_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let found = || program_fault(folder.path(), "server");
    assert!(found().unwrap().ends_with("server` is not built"));
    write("main.rs", "");
    write("server", "");
    assert_eq!(found(), None);
    let source = folder.path().join("main.rs");
    write(
        "server.d",
        &format!("{}: {}\n", folder.path().join("server").display(), source.display()),
    );
    assert_eq!(found(), None);
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    std::fs::File::options().write(true).open(&source).unwrap().set_modified(later).unwrap();
    assert!(found().unwrap().contains("is older than"));
}

/// Scripts waited for twenty seconds for a program that nobody had built.
#[test]
fn a_script_without_its_programs_ends_at_once() {
    let empty = tempfile::tempdir().unwrap();
    let run = |path: &str| {
        let output = Command::new("/bin/sh")
            .arg(home().join("1-protect-crds/run.sh"))
            .env("BIN", empty.path())
            .env("PATH", path)
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    // The script finds its own tools, and nothing else.
    let tools = "/usr/bin:/bin";
    let printed = run(tools);
    assert_eq!(printed, "portcullis is missing; build it with: cargo build --package cli\n");
    for name in ["portcullis", "kubectl"] {
        std::os::unix::fs::symlink("/bin/true", empty.path().join(name)).unwrap();
    }
    let printed = run(tools);
    assert_eq!(printed, "protect-crds is missing; build it with: cargo build --package stories\n");
}
