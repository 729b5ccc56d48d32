//! Builds programs of Kubernetes from its published Go modules, so that tests can run beside them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use crate::process;

/// The Go module whose file `go.mod` names the version.
const MODULE: &str = "peers/kubernetes";

/// The folder of built programs.
const FOLDER: &str = "target/peers";

/// The programs that can be built. Without arguments the chore builds the first one, which the tests use.
const PROGRAMS: [&str; 2] = ["kube-apiserver", "kube-controller-manager"];

/// The Go packages that keep the version. Release builds set it with the linker, and so does this chore.
const VERSION_PACKAGES: [&str; 2] =
    ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];

/// Builds the programs that are named, or kube-apiserver.
pub(crate) fn run(names: &[&str]) -> anyhow::Result<()> {
    if let Some(unknown) = names.iter().find(|name| !PROGRAMS.contains(name)) {
        bail!("there is no program `{unknown}`; the programs are {}", PROGRAMS.join(" and "));
    }
    let names = if names.is_empty() { &PROGRAMS[..1] } else { names };
    for name in names {
        let path = build(name)?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Builds kube-apiserver, unless a binary of the right version exists, and returns its path.
pub(crate) fn kube_apiserver() -> anyhow::Result<PathBuf> {
    let [name, ..] = PROGRAMS;
    build(name)
}

/// Reports whether a Go compiler is in the PATH.
pub(crate) fn has_go() -> bool {
    process::succeeds(&mut process::command("go", &["version"]))
}

fn build(name: &str) -> anyhow::Result<PathBuf> {
    let root = process::workspace_root();
    let path = root.join(FOLDER).join(name);
    let go_mod = root.join(MODULE).join("go.mod");
    let text = std::fs::read_to_string(&go_mod)
        .with_context(|| format!("cannot read {}", go_mod.display()))?;
    let version = kubernetes_version(&text)
        .with_context(|| format!("{} names no k8s.io/kubernetes", go_mod.display()))?;
    if built_version(&path).as_deref() == Some(version) {
        eprintln!("{name} {version} is built");
        return Ok(path);
    }
    ensure!(
        has_go(),
        "{name} {version} is not built and there is no `go` in PATH: install Go 1.26 or later (https://go.dev/dl)"
    );
    eprintln!("building {name} {version}; this takes more than 10 minutes and 4 GB of disk");
    let mut command = Command::new("go");
    command.current_dir(root.join(MODULE)).env("CGO_ENABLED", "0");
    command.args(["build", "-p=2", "-trimpath"]);
    command.arg(format!("-ldflags={}", linker_flags(version)));
    command.arg("-o").arg(&path).arg(format!("k8s.io/kubernetes/cmd/{name}"));
    process::run(&mut command)?;
    let built = built_version(&path);
    ensure!(
        built.as_deref() == Some(version),
        "{name} was built and reports {built:?}, not {version}"
    );
    Ok(path)
}

/// Returns the version of k8s.io/kubernetes that a `go.mod` requires.
fn kubernetes_version(go_mod: &str) -> Option<&str> {
    let mut words = go_mod.lines().map(|line| line.trim().trim_start_matches("require "));
    words.find_map(|line| line.strip_prefix("k8s.io/kubernetes "))?.split_whitespace().next()
}

/// Asks a binary for its version; `None` if it does not exist or does not run.
fn built_version(path: &std::path::Path) -> Option<String> {
    let mut command = Command::new(path);
    let output =
        command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().strip_prefix("Kubernetes ")?.to_owned())
}

/// Returns flags that leave out symbols and set the version.
fn linker_flags(version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let major = numbers.next().unwrap_or_default();
    let minor = numbers.next().unwrap_or_default();
    let mut flags = "-s -w".to_owned();
    for package in VERSION_PACKAGES {
        for (variable, value) in [
            ("gitVersion", version),
            ("gitMajor", major),
            ("gitMinor", minor),
            ("gitTreeState", "archive"),
        ] {
            flags.push_str(&format!(" -X {package}.{variable}={value}"));
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_module() {
        let path = process::workspace_root().join(MODULE).join("go.mod");
        let text = std::fs::read_to_string(path).unwrap();
        let version = kubernetes_version(&text).unwrap();
        let authz = process::workspace_root().join("peers/authz/go.mod");
        let authz = std::fs::read_to_string(authz).unwrap();
        assert_eq!(kubernetes_version(&authz), Some(version));
        assert!(linker_flags("v1.2.3").contains(" -X k8s.io/component-base/version.gitMinor=2 "));
        let one = "module x\n\nrequire k8s.io/kubernetes v1.2.3 // indirect\n";
        assert_eq!(kubernetes_version(one), Some("v1.2.3"));
        assert_eq!(kubernetes_version("module k8s.io/kubernetes\n"), None);
    }

    #[test]
    fn unknown_programs_are_errors_and_missing_ones_have_no_version() {
        let error = run(&["kubelet"]).unwrap_err().to_string();
        assert!(error.starts_with("there is no program `kubelet`"), "{error}");
        assert_eq!(built_version(&process::workspace_root().join("Cargo.toml")), None);
        assert_eq!(built_version(std::path::Path::new("cargo")), None);
    }
}
