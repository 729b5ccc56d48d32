//! Reads the crates of the workspace from cargo.

use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::process;

/// One crate of the workspace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: String,
    /// The folder of the manifest, relative to the root.
    pub(super) folder: String,
    pub(super) version: String,
    /// Whether the crate can be uploaded to a registry.
    pub(super) is_publishable: bool,
    /// The crates of this workspace that it depends on, including those of its build script.
    pub(super) uses: Vec<String>,
    /// Crates of this workspace that only its tests, examples and benches depend on.
    pub(super) dev_uses: Vec<String>,
    /// The packages of others that it depends on, except for its tests.
    pub(super) outside_uses: Vec<String>,
}

/// Runs `cargo metadata`, without the network.
pub(super) fn read_workspace(root: &Path) -> anyhow::Result<Vec<Package>> {
    let args = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let output = process::command("cargo", &args).output().context("cannot start cargo")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let metadata = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    parse(&metadata, root).context("cargo metadata has an unexpected shape")
}

fn parse(metadata: &Value, root: &Path) -> Option<Vec<Package>> {
    metadata["packages"].as_array()?.iter().map(|package| parse_package(package, root)).collect()
}

fn parse_package(package: &Value, root: &Path) -> Option<Package> {
    let folder = Path::new(package["manifest_path"].as_str()?).parent()?;
    let (mut uses, mut dev_uses, mut outside_uses) = (Vec::new(), Vec::new(), Vec::new());
    for dependency in package["dependencies"].as_array()? {
        let name = dependency["name"].as_str()?.to_owned();
        let is_dev = dependency["kind"].as_str() == Some("dev");
        // Only crates of this workspace have a path.
        match (dependency["path"].is_string(), is_dev) {
            (true, false) => uses.push(name),
            (true, true) => dev_uses.push(name),
            (false, false) => outside_uses.push(name),
            (false, true) => {}
        }
    }
    Some(Package {
        name: package["name"].as_str()?.to_owned(),
        folder: folder.strip_prefix(root).ok()?.to_str()?.to_owned(),
        version: package["version"].as_str()?.to_owned(),
        // Cargo writes `publish = false` as an empty list of registries, and no limit as null.
        is_publishable: package["publish"].as_array().is_none_or(|to| !to.is_empty()),
        uses,
        dev_uses,
        outside_uses,
    })
}

#[cfg(test)]
impl Package {
    /// A well-kept crate under `crates/` for tests of the rules.
    pub(super) fn new(name: &str, uses: &[&str], dev_uses: &[&str]) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            name: name.to_owned(),
            folder: format!("crates/{name}"),
            version: "0.0.0".to_owned(),
            is_publishable: false,
            uses: owned(uses),
            dev_uses: owned(dev_uses),
            outside_uses: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dependencies_are_split_by_kind_and_origin() {
        let metadata = json!({"packages": [{
            "name": "b", "version": "0.0.0", "publish": [],
            "manifest_path": "/r/crates/b/Cargo.toml",
            "dependencies": [
                {"name": "a", "kind": null, "path": "/r/crates/a"},
                {"name": "c", "kind": "build", "path": "/r/crates/c"},
                {"name": "d", "kind": "dev", "path": "/r/crates/d"},
                {"name": "serde", "kind": null, "source": "registry"},
                {"name": "proptest", "kind": "dev", "source": "registry"},
            ],
        }]});
        let packages = parse(&metadata, Path::new("/r")).unwrap();
        let outside_uses = vec!["serde".to_owned()];
        let want = Package { outside_uses, ..Package::new("b", &["a", "c"], &["d"]) };
        assert_eq!(packages, [want]);
    }

    #[test]
    fn publish_is_off_only_when_no_registry_is_allowed() {
        let package = |publish: Value| {
            let json = json!({
                "name": "a", "version": "0.0.0", "publish": publish,
                "manifest_path": "/r/crates/a/Cargo.toml", "dependencies": [],
            });
            parse_package(&json, Path::new("/r")).unwrap().is_publishable
        };
        assert!(!package(json!([])));
        assert!(package(json!(null)));
        assert!(package(json!(["somewhere"])));
    }

    #[test]
    fn unexpected_metadata_is_an_error() {
        assert_eq!(parse(&json!({}), Path::new("/r")), None);
        assert_eq!(parse(&json!({"packages": [{"name": "a"}]}), Path::new("/r")), None);
    }
}
