//! A start that fails leaves everything as it was: the files of a running server, and a directory that
//! did not exist.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::program::{Run, run};
use crate::serve::Server;

/// All files below a directory with their contents. A running server changes the files of its store, so
/// these have no content here.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
            found.insert(path, Vec::new());
        } else if directory.ends_with("store") {
            found.insert(path, Vec::new());
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap_or_default());
        }
    }
    found
}

fn serve(data: &Path, flags: &[&str]) -> Run {
    let has_port = flags.contains(&"--secure-port");
    let port: &[&str] = if has_port { &[] } else { &["--secure-port=0"] };
    run(&[&["serve", "--data-dir", data.to_str().unwrap()], port, flags].concat())
}

/// A second process wrote another certificate and another address into the kubeconfig, and then failed.
#[test]
fn a_second_process_changes_nothing_of_the_first() {
    let server = Server::start(&[]);
    let before = contents(server.data());
    assert!(before.keys().any(|path| path.ends_with("admin.kubeconfig")), "it is ready");
    // Another address would be another name in the certificate.
    let found = serve(server.data(), &["--advertise-address=192.0.2.7"]);
    assert_eq!((found.code, found.stdout.as_str()), (3, ""), "{}", found.stderr);
    let path = server.data().display();
    let want = format!("error: data directory `{path}` is in use by another process\n");
    assert_eq!(found.stderr, want);
    assert_eq!(contents(server.data()), before);
}

/// Each fault, first in a directory that does not exist and then in one that was served before.
#[test]
fn a_start_that_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let bad = file("bad", "nonsense");
    let audit_log = folder.path().join("audit.log");
    let policy =
        file("policy", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n");
    let cases: [(&str, Vec<&str>, &str); 8] = [
        ("port", vec!["--secure-port", &port], "the address is in use"),
        ("tokens", vec!["--token-auth-file=/nowhere"], "cannot read `/nowhere`"),
        ("authorities", vec!["--client-ca-file", &bad], "holds no certificate"),
        ("signing key", vec!["--service-account-signing-key-file", &bad], "can sign tokens"),
        ("certificate", vec!["--tls-cert-file", &bad, "--tls-private-key-file", &bad], "bad"),
        ("audit policy", vec!["--audit-policy-file", &bad, "--audit-log-path=-"], "audit policy"),
        (
            "audit log",
            vec![
                "--audit-policy-file",
                &policy,
                "--audit-log-path",
                audit_log.to_str().unwrap(),
                "--token-auth-file=/nowhere",
            ],
            "cannot read `/nowhere`",
        ),
        ("flags", vec!["--store=etcd"], "--store etcd needs --etcd-servers"),
    ];
    let served = Server::start(&[]);
    let old = served.stop();
    for (name, flags, want) in &cases {
        let new = folder.path().join("a/b");
        for (data, extra) in
            [(new.as_path(), &[][..]), (old.path(), &["--advertise-address=192.0.2.7"])]
        {
            let before = contents(data);
            let found = serve(data, &[flags.as_slice(), extra].concat());
            assert_eq!((found.code, found.stdout.as_str()), (3, ""), "{name}: {}", found.stderr);
            assert!(found.stderr.contains(want), "{name}: {}", found.stderr);
            assert_eq!(contents(data), before, "{name}");
        }
        assert!(!folder.path().join("a").exists(), "{name}");
        assert!(!audit_log.exists(), "{name}");
    }
}

/// The server refuses files that other users can replace, and the message says what to do.
#[test]
fn a_directory_of_others_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
    let found = serve(&data, &[]);
    let path = data.display();
    let want = format!(
        "error: data directory `{path}` has mode 0777: users other than its owner can replace its files; \
         run `chmod go-w {path}`\n"
    );
    assert_eq!((found.code, found.stderr), (3, want));
    assert_eq!(contents(&data).len(), 0);

    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    let target = folder.path().join("precious");
    fs::write(&target, "precious").unwrap();
    for name in ["lock", "ca.key", "ca.crt", "sa.key", "admin.kubeconfig", "store"] {
        symlink(&target, data.join(name)).unwrap();
        let found = serve(&data, &[]);
        assert_eq!((found.code, found.stdout.as_str()), (3, ""), "{name}: {}", found.stderr);
        assert!(found.stderr.contains("is a symbolic link"), "{name}: {}", found.stderr);
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious", "{name}");
        fs::remove_file(data.join(name)).unwrap();
        assert_eq!(contents(&data).len(), 0, "{name}");
    }
}
