//! `portcullis pki`: files for several servers.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::program::run;

#[test]
fn a_set_is_created_once() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("pki");
    let path = directory.to_str().unwrap();
    let init = ["pki", "init", path, "--server", "gate.example.com", "--name", "192.0.2.7,gate-1"];
    let made = run(&init);
    assert_eq!((made.code, made.stderr.as_str()), (0, ""));
    assert!(made.stdout.starts_with(&format!("13 files in {path}")), "{}", made.stdout);
    let kubeconfig = fs::read_to_string(directory.join("admin.kubeconfig")).unwrap();
    assert!(kubeconfig.contains("server: \"https://gate.example.com:6443\""), "{kubeconfig}");
    let modes = fs::read_dir(&directory).unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.file_name(), entry.metadata().unwrap().permissions().mode() & 0o777)
    });
    let modes: Vec<_> = modes.collect();
    assert!(modes.len() == 13 && modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");

    let key = fs::read(directory.join("ca.key")).unwrap();
    let again = run(&init);
    assert_eq!((again.code, again.stdout.as_str()), (3, ""));
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
    assert_eq!(fs::read(directory.join("ca.key")).unwrap(), key);

    let renewed = run(&["pki", "renew", path]);
    assert_eq!((renewed.code, renewed.stderr.as_str()), (0, ""));
    assert_eq!(renewed.stdout, "no certificate expires within 30 days\n");
    fs::remove_file(directory.join("sa.pub")).unwrap();
    let incomplete = run(&["pki", "renew", path]);
    assert_eq!(incomplete.code, 3);
    assert!(incomplete.stderr.contains("sa.pub` is missing"), "{}", incomplete.stderr);
}

#[test]
fn an_address_is_needed_and_has_to_be_one() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("pki");
    let path = path.to_str().unwrap();
    for (server, want) in [
        (&[][..], "--server <ADDRESS>"),
        (&["--server", "http://gate"], "https only"),
        (&["--server", "0.0.0.0"], "no client can connect"),
        (&["--server", "gate", "--name", "a b"], "neither an IP address nor a DNS name"),
    ] {
        let found = run(&[&["pki", "init", path], server].concat());
        assert_eq!(found.code, 2, "{server:?}");
        assert!(found.stderr.contains(want), "{}", found.stderr);
    }
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}
