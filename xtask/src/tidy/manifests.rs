//! Checks that each crate is internal, has the name of its folder, and inherits the lints of the workspace.

use super::Finding;
use super::packages::Package;
use super::tree::File;

/// Checks the metadata of cargo, and the inherited lints, which the metadata does not contain.
pub(super) fn check(files: &[File], packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(|package| check_crate(files, package)).collect()
}

fn check_crate(files: &[File], package: &Package) -> Vec<Finding> {
    let path = format!("{}/Cargo.toml", package.folder);
    let mut findings = Vec::new();
    let mut require = |holds: bool, message: &str| {
        if !holds {
            findings.push(Finding::error(&path, message));
        }
    };
    let folder = package.folder.rsplit('/').next();
    require(folder == Some(&*package.name), "the crate is not named like its folder");
    require(package.version == "0.0.0", "an internal crate has version 0.0.0");
    require(!package.is_publishable, "an internal crate has `publish = false`");
    let manifest = files.iter().find(|file| file.path == path);
    require(
        manifest.is_some_and(|manifest| inherits_lints(&manifest.text)),
        "lints are not inherited: `[lints]` with `workspace = true`",
    );
    findings
}

fn inherits_lints(manifest: &str) -> bool {
    let mut section = "";
    manifest.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            section = line;
        }
        section == "[lints]" && line.replace(' ', "") == "workspace=true"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_well_kept_manifest_passes() {
        let manifest = File::new("crates/a/Cargo.toml", "[package]\n[lints]\nworkspace = true\n");
        assert!(check(&[manifest], &[Package::new("a", &[], &[])]).is_empty());
    }

    #[test]
    fn each_fault_is_found() {
        let package = Package {
            folder: "crates/other".to_owned(),
            version: "1.0.0".to_owned(),
            is_publishable: true,
            ..Package::new("a", &[], &[])
        };
        let findings = check(&[], &[package]);
        assert_eq!(
            findings.iter().map(Finding::to_string).collect::<Vec<_>>(),
            [
                "error: crates/other/Cargo.toml: the crate is not named like its folder",
                "error: crates/other/Cargo.toml: an internal crate has version 0.0.0",
                "error: crates/other/Cargo.toml: an internal crate has `publish = false`",
                "error: crates/other/Cargo.toml: lints are not inherited: \
                 `[lints]` with `workspace = true`",
            ]
        );
    }

    #[test]
    fn lints_count_in_their_own_section_only() {
        assert!(inherits_lints("[lints]\nworkspace=true"));
        assert!(!inherits_lints("[lints]\n[dependencies]\nworkspace = true"));
        assert!(!inherits_lints("[lints]\nworkspace = false"));
        assert!(!inherits_lints("[lints]\n# workspace = true"));
    }
}
