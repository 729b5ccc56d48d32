//! The client of Python.

use std::process::Command;

use crate::server::{Place, Server, directory};

/// The message if the package is missing. The test fails then, because it could check nothing.
const MISSING: &str = "no Python with the package `kubernetes`: run `cargo xtask setup`, or install \
                       it (Debian: `apt-get install python3-kubernetes`)";
/// The one of the person who runs the tests may be without packages of the system.
const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/client.py");

#[test]
fn python_lists_watches_and_writes() {
    let has_package = |python: &&&str| {
        let output = Command::new(python).args(["-c", "import kubernetes"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let python = PYTHONS.iter().find(has_package).expect(MISSING);
    for place in [Place::Embedded, Place::etcd()] {
        let directory = directory();
        let server = Server::start(directory.path(), &place);
        let output = Command::new(python)
            .args(["-B", SCRIPT])
            .arg(server.kubeconfig())
            .env("HOME", directory.path())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let failed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}{failed}\n{}", server.log());
        assert_eq!(printed, "all is as expected\n");
    }
}
