//! The script is run as its reader would run it, with kubectl, and prints what `expected.txt` says.

use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_server_with_the_plugin_is_frozen_and_thawed() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let programs = Path::new(env!("CARGO_BIN_EXE_freeze-authorizer")).parent().unwrap();
    let output = Command::new(home.join("run.sh"))
        .env("BIN", programs)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{complaints}");
    let expected = home.join("expected.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&expected, &printed).unwrap();
    }
    let expected = std::fs::read_to_string(&expected).unwrap_or_default();
    assert!(printed == expected, "want:\n{expected}\ngot:\n{printed}\n{complaints}");
}
