//! What the tests need besides a Rust toolchain, and how to get it.

use anyhow::{Context, ensure};

use crate::process;

/// Something a chore calls, a probe that succeeds when it is there, and the command that brings it.
struct Need {
    name: &'static str,
    probe: &'static [&'static str],
    install: &'static [&'static str],
}

/// Everything that `cargo xtask test` uses today. A test that needs a system package adds its row
/// here, with `apt-get install --yes PACKAGE` as the command; nothing is listed in advance.
const NEEDS: &[Need] = &[
    Need {
        name: "rustfmt",
        probe: &["cargo", "fmt", "--version"],
        install: &["rustup", "component", "add", "rustfmt"],
    },
    Need {
        name: "clippy",
        probe: &["cargo", "clippy", "--version"],
        install: &["rustup", "component", "add", "clippy"],
    },
    Need { name: "etcd", probe: &["etcd", "--version"], install: &["sh", "-c", INSTALL_ETCD] },
    Need {
        name: "kubectl",
        probe: &["sh", "-c", "kubectl auth --help | grep --quiet whoami"],
        install: &["sh", "-c", INSTALL_KUBECTL],
    },
    Need {
        name: "openssl",
        probe: &["openssl", "version"],
        install: &["sh", "-c", INSTALL_OPENSSL],
    },
    Need {
        name: "the client of Python",
        probe: &["sh", "-c", PROBE_PYTHON],
        install: &["sh", "-c", INSTALL_PYTHON],
    },
];

/// The tests start members of their own, so the service that comes with the package is not wanted.
const INSTALL_ETCD: &str = "apt-get update; apt-get install --yes --no-install-recommends etcd-server \
    && { ! command -v systemctl || systemctl disable --now etcd || true; }";

/// The vendors' package and Debian's have different names. Old ones do not know `auth whoami`.
const INSTALL_KUBECTL: &str = "apt-get update; \
    apt-get install --yes --no-install-recommends kubectl \
    || apt-get install --yes --no-install-recommends kubernetes-client";

/// Stories about admission make certificates as their reader would.
const INSTALL_OPENSSL: &str =
    "apt-get update; apt-get install --yes --no-install-recommends openssl";

/// The first Python in PATH may be one without packages of the system.
const PROBE_PYTHON: &str =
    "python3 -c 'import kubernetes' || /usr/bin/python3 -c 'import kubernetes'";
const INSTALL_PYTHON: &str =
    "apt-get update; apt-get install --yes --no-install-recommends python3-kubernetes";

/// Installs what is missing, saying so; does nothing when all is there.
pub(crate) fn run() -> anyhow::Result<()> {
    NEEDS.iter().try_for_each(satisfy)
}

fn satisfy(need: &Need) -> anyhow::Result<()> {
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

fn is_present(need: &Need) -> bool {
    process::succeeds(&mut command(need.probe))
}

fn command(line: &[&str]) -> std::process::Command {
    match line {
        [program, args @ ..] => process::command(program, args),
        // An empty line has no program; starting one without a name fails, which is the answer.
        [] => process::command("", &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_present_is_not_installed_again() {
        let need = Need {
            name: "cargo",
            probe: &["cargo", "--version"],
            install: &["no-such-program-anywhere"],
        };
        satisfy(&need).unwrap();
    }

    #[test]
    fn a_failing_installation_and_one_that_changes_nothing_are_errors() {
        let probe: &[&str] = &["no-such-program-anywhere"];
        let failing = Need { name: "thing", probe, install: &["cargo", "--no-such-flag"] };
        assert_eq!(
            satisfy(&failing).unwrap_err().to_string(),
            "thing is missing and could not be installed"
        );
        let useless = Need { name: "thing", probe, install: &["cargo", "--version"] };
        assert_eq!(
            satisfy(&useless).unwrap_err().to_string(),
            "thing was installed but still does not run"
        );
    }
}
