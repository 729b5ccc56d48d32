//! The table of kinds in the documents.

use api_resources::{EnforcingComponent, Registry, enforcement_table_rows, enforcing_component};

const DOCUMENT: &str = include_str!("../../../../docs/kinds.md");

/// Each built-in kind is classified, and the document says what the code does.
#[test]
fn the_document_lists_every_kind() {
    let registry = Registry::with_built_in_resources();
    for resource in registry.resources() {
        assert!(enforcing_component(resource).is_some(), "{} is not classified", resource.kind);
    }
    let rows: Vec<&str> = DOCUMENT.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    let want = enforcement_table_rows();
    for (row, want) in rows.iter().zip(&want) {
        assert_eq!(row, want, "docs/kinds.md");
    }
    assert_eq!(rows.len(), want.len(), "docs/kinds.md:\n{}", want.join("\n"));
}

#[test]
fn what_nobody_enforces() {
    let registry = Registry::with_built_in_resources();
    let kinds: Vec<&str> = registry
        .resources()
        .filter(|resource| enforcing_component(resource) == Some(EnforcingComponent::NotEnforced))
        .map(|resource| resource.kind.as_str())
        .collect();
    let want = [
        "LimitRange",
        "ResourceQuota",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ];
    assert_eq!(kinds.len(), want.len(), "{kinds:?}");
    assert!(want.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}
