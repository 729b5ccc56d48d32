use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use jiff::SignedDuration;
use tempfile::TempDir;

use super::*;

fn at(seconds: i64) -> Timestamp {
    "2026-11-16T03:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn files(directory: &TempDir) -> BTreeMap<String, String> {
    fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

fn rotation(bytes_max: u64) -> LogRotationOptions {
    LogRotationOptions { file_bytes_max: Some(bytes_max), ..LogRotationOptions::default() }
}

#[test]
fn lines_are_appended_and_private() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("logs").join("audit.log");
    for n in 1..=2 {
        let log = AuditLog::open_log_file(&path, LogRotationOptions::default()).unwrap();
        log.write(b"line\n", at(0)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "line\n".repeat(n));
    }
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_full_file_is_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let log = AuditLog::open_log_file(&directory.path().join("audit.log"), rotation(10)).unwrap();
    for (n, line) in ["1234\n", "5678\n", "9\n", "a longer line\n", "b\n"].into_iter().enumerate() {
        log.write(line.as_bytes(), at(n as i64)).unwrap();
    }
    assert_eq!(
        files(&directory),
        BTreeMap::from([
            ("audit-2026-11-16T03-00-02.000.log".into(), "1234\n5678\n".into()),
            ("audit-2026-11-16T03-00-03.000.log".into(), "9\n".into()),
            ("audit-2026-11-16T03-00-04.000.log".into(), "a longer line\n".into()),
            ("audit.log".into(), "b\n".into()),
        ])
    );
}

#[test]
fn files_of_one_moment_have_different_names() {
    let directory = tempfile::tempdir().unwrap();
    let log = AuditLog::open_log_file(&directory.path().join("audit"), rotation(1)).unwrap();
    for _ in 0..4 {
        log.write(b"line\n", at(0)).unwrap();
    }
    let names: Vec<String> = files(&directory).into_keys().collect();
    assert_eq!(
        names,
        [
            "audit",
            "audit-2026-11-16T03-00-00.000",
            "audit-2026-11-16T03-00-00.001",
            "audit-2026-11-16T03-00-00.002"
        ]
    );
}

#[test]
fn old_files_are_removed_by_number_and_by_age() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    for name in ["audit-notes.log", "audit-2026-11-16T03-00-00.000.txt", "other.log"] {
        fs::write(directory.path().join(name), "").unwrap();
    }
    let by_number = LogRotationOptions { backups_max: Some(2), ..rotation(1) };
    let log = AuditLog::open_log_file(&path, by_number).unwrap();
    for n in 0..5 {
        log.write(b"line\n", at(n)).unwrap();
    }
    let logs = |directory: &TempDir| -> Vec<String> {
        files(directory)
            .into_keys()
            .filter(|name| name.contains("T03") && name.ends_with("log"))
            .collect()
    };
    assert_eq!(
        logs(&directory),
        ["audit-2026-11-16T03-00-03.000.log", "audit-2026-11-16T03-00-04.000.log"]
    );
    let by_age =
        LogRotationOptions { backup_age_max: Some(Duration::from_secs(60)), ..rotation(1) };
    let log = AuditLog::open_log_file(&path, by_age).unwrap();
    log.write(b"line\n", at(64)).unwrap();
    assert_eq!(
        logs(&directory),
        ["audit-2026-11-16T03-00-04.000.log", "audit-2026-11-16T03-01-04.000.log"]
    );
    // Files that only look alike stay.
    assert_eq!(files(&directory).len(), 6);
}

#[test]
fn a_torn_line_is_closed_before_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    fs::write(&path, "whole\nhal").unwrap();
    let log = AuditLog::open_log_file(&path, LogRotationOptions::default()).unwrap();
    log.write(b"next\n", at(0)).unwrap();
    log.write(b"last\n", at(0)).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "whole\nhal\nnext\nlast\n");
}

#[test]
fn a_line_that_is_not_written_is_an_error() {
    // The device takes no bytes, like a disk that is full.
    let log =
        AuditLog::open_log_file(Path::new("/dev/full"), LogRotationOptions::default()).unwrap();
    let error = log.write(b"line\n", at(0)).unwrap_err();
    assert_eq!(error.to_string(), "cannot write to the audit log");
}

#[test]
fn a_log_that_can_not_be_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let error =
        AuditLog::open_log_file(directory.path(), LogRotationOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot open audit log `{}`", directory.path().display())
    );
}

#[test]
fn if_there_can_be_no_new_file_the_old_one_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let log = AuditLog::open_log_file(&path, rotation(1)).unwrap();
    log.write(b"one\n", at(0)).unwrap();
    // The file is gone, so it cannot be set aside; the open one still takes lines.
    fs::remove_file(&path).unwrap();
    log.write(b"two\n", at(1)).unwrap();
}

#[test]
fn lines_of_many_writers_do_not_mix() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let log = AuditLog::open_log_file(&path, rotation(10_000)).unwrap();
    std::thread::scope(|scope| {
        for letter in b'a'..=b'h' {
            let log = &log;
            scope.spawn(move || {
                let mut line = vec![letter; 99];
                line.push(b'\n');
                for _ in 0..100 {
                    log.write(&line, at(0)).unwrap();
                }
            });
        }
    });
    let all: Vec<String> = files(&directory).into_values().collect();
    let lines: Vec<&str> = all.iter().flat_map(|text| text.lines()).collect();
    assert_eq!(lines.len(), 800);
    for line in lines {
        assert!(line.len() == 99 && line.bytes().all(|byte| byte == line.as_bytes()[0]), "{line}");
    }
}
