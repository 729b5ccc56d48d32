//! Installs the programs that the tests need besides a Rust toolchain.

use anyhow::{Context, ensure};

use crate::process;

/// A program that a chore needs: a probe that succeeds if it is installed, and the command that installs it.
struct RequiredProgram {
    name: &'static str,
    probe: &'static [&'static str],
    install: &'static [&'static str],
}

/// The programs that `cargo xtask test` uses. A test that needs another system package adds its row here,
/// with `apt-get install --yes PACKAGE` as the command.
const REQUIRED_PROGRAMS: &[RequiredProgram] = &[
    RequiredProgram {
        name: "rustfmt",
        probe: &["cargo", "fmt", "--version"],
        install: &["rustup", "component", "add", "rustfmt"],
    },
    RequiredProgram {
        name: "clippy",
        probe: &["cargo", "clippy", "--version"],
        install: &["rustup", "component", "add", "clippy"],
    },
    RequiredProgram {
        name: "etcd",
        probe: &["etcd", "--version"],
        install: &["sh", "-c", INSTALL_ETCD],
    },
    RequiredProgram {
        name: "etcdctl",
        probe: &["etcdctl", "version"],
        install: &["sh", "-c", INSTALL_ETCDCTL],
    },
    RequiredProgram {
        name: "kubectl",
        probe: &["sh", "-c", "kubectl auth --help | grep --quiet whoami"],
        install: &["sh", "-c", INSTALL_KUBECTL],
    },
    RequiredProgram {
        name: "openssl",
        probe: &["openssl", "version"],
        install: &["sh", "-c", INSTALL_OPENSSL],
    },
    RequiredProgram {
        name: "the client of Python",
        probe: &["sh", "-c", PROBE_PYTHON],
        install: &["sh", "-c", INSTALL_PYTHON],
    },
];

/// The tests start their own members, so the service of the package is not started.
const INSTALL_ETCD: &str = "apt-get update; apt-get install --yes --no-install-recommends etcd-server \
    && { ! command -v systemctl || systemctl disable --now etcd || true; }";

/// The package of etcd only recommends its client. A test frees the space of a full etcd with it.
const INSTALL_ETCDCTL: &str =
    "apt-get update; apt-get install --yes --no-install-recommends etcd-client";

/// The packages of the vendor and of Debian have different names. Old versions do not have `auth whoami`.
const INSTALL_KUBECTL: &str = "apt-get update; \
    apt-get install --yes --no-install-recommends kubectl \
    || apt-get install --yes --no-install-recommends kubernetes-client";

/// The stories about admission make certificates with openssl.
const INSTALL_OPENSSL: &str =
    "apt-get update; apt-get install --yes --no-install-recommends openssl";

/// The first Python in PATH may lack the system packages.
const PROBE_PYTHON: &str =
    "python3 -c 'import kubernetes' || /usr/bin/python3 -c 'import kubernetes'";
const INSTALL_PYTHON: &str =
    "apt-get update; apt-get install --yes --no-install-recommends python3-kubernetes";

/// Installs the missing programs and prints their names.
pub(crate) fn run() -> anyhow::Result<()> {
    REQUIRED_PROGRAMS.iter().try_for_each(satisfy)
}

fn satisfy(need: &RequiredProgram) -> anyhow::Result<()> {
    let name = need.name;
    if is_present(need) {
        return Ok(());
    }
    eprintln!("{name} is missing: installing it");
    process::run(&mut command(need.install))
        .with_context(|| format!("{name} is missing and could not be installed"))?;
    ensure!(is_present(need), "{name} was installed but still does not run");
    Ok(())
}

fn is_present(need: &RequiredProgram) -> bool {
    process::succeeds(&mut command(need.probe))
}

fn command(line: &[&str]) -> std::process::Command {
    match line {
        [program, args @ ..] => process::command(program, args),
        // An empty line names no program. Starting it fails, which reports the error.
        [] => process::command("", &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_present_is_not_installed_again() {
        let need = RequiredProgram {
            name: "cargo",
            probe: &["cargo", "--version"],
            install: &["no-such-program-anywhere"],
        };
        satisfy(&need).unwrap();
    }

    #[test]
    fn a_failing_installation_and_one_that_changes_nothing_are_errors() {
        let probe: &[&str] = &["no-such-program-anywhere"];
        let failing =
            RequiredProgram { name: "thing", probe, install: &["cargo", "--no-such-flag"] };
        assert_eq!(
            satisfy(&failing).unwrap_err().to_string(),
            "thing is missing and could not be installed"
        );
        let useless = RequiredProgram { name: "thing", probe, install: &["cargo", "--version"] };
        assert_eq!(
            satisfy(&useless).unwrap_err().to_string(),
            "thing was installed but still does not run"
        );
    }
}
