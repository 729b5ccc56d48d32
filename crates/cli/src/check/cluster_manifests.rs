//! The roles and bindings of a cluster as manifests, so that they are checked like files.

use std::collections::HashSet;

use document::Source;
use manifests::ManifestObject;
use serde_json::Value;

use super::check_inputs::{CheckOptions, CrossFileObjects, check_manifest};
use super::finding::{CheckOutcome, CheckedFile, ContentSummary, FileFindings};
use crate::offline::{StoredRbac, write_yaml};

/// The name of the cluster in findings; that of an object follows it.
const CLUSTER_NAME: &str = "<cluster>";

/// The manifests of the stored objects.
#[derive(Debug)]
pub(super) struct ClusterManifests {
    manifests: Vec<ClusterManifest>,
    /// Whether some roles or bindings could not be read.
    pub(super) is_rbac_partial: bool,
}

#[derive(Debug)]
struct ClusterManifest {
    /// The name in findings, such as `<cluster>/RoleBinding/prod/deployers`.
    name: String,
    text: Vec<u8>,
}

impl ClusterManifests {
    /// Writes each object as YAML, without the owners of its fields.
    pub(super) fn from_stored_rbac(stored: StoredRbac) -> Self {
        let manifests = stored.objects.into_iter().map(|mut object| {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
            let metadata = object.get("metadata");
            let namespace = text(metadata.and_then(|own| own.get("namespace")));
            let name = text(metadata.and_then(|own| own.get("name")));
            let parts = [Some(CLUSTER_NAME.to_owned()), text(object.get("kind")), namespace, name];
            let name = parts.into_iter().flatten().collect::<Vec<_>>().join("/");
            let mut text = Vec::new();
            // Writing to memory does not fail.
            let _ = write_yaml(&mut text, &object);
            ClusterManifest { name, text }
        });
        Self { manifests: manifests.collect(), is_rbac_partial: stored.is_rbac_partial }
    }

    /// Checks the objects that no file replaces and adds them to `gathered`. Returns the findings of each object.
    pub(super) fn check(
        &self,
        options: &CheckOptions<'_>,
        gathered: &mut CrossFileObjects,
    ) -> Vec<CheckedFile> {
        let key = |found: &ManifestObject| {
            let own = &found.authorizer_object;
            (own.kind_name(), own.namespace().to_owned(), own.name().to_owned())
        };
        let replaced: HashSet<_> = gathered.authorization_objects.iter().map(key).collect();
        let mut checked = Vec::new();
        for ClusterManifest { name, text } in &self.manifests {
            let mut own = CrossFileObjects::default();
            let findings = check_manifest(&Source { name, file_bytes: text }, options, &mut own);
            if own.authorization_objects.iter().any(|found| replaced.contains(&key(found))) {
                continue;
            }
            gathered.authorization_objects.append(&mut own.authorization_objects);
            let file_text = String::from_utf8_lossy(text).into_owned();
            let findings = FileFindings { file_text, ..findings };
            let check_outcome = CheckOutcome::Read(Box::new(findings));
            checked.push(CheckedFile { name: name.clone(), check_outcome });
        }
        checked
    }
}

/// Replaces the objects without findings by one summary of all objects.
pub(super) fn summarize_objects_without_findings(checked: Vec<CheckedFile>) -> Vec<CheckedFile> {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    let mut with_findings = Vec::new();
    for file in checked {
        let CheckOutcome::Read(findings) = &file.check_outcome else {
            continue;
        };
        if let Some(ContentSummary::Manifest { kinds, .. }) = &findings.content_summary {
            for (kind, n) in kinds {
                *counts.entry(kind.clone()).or_default() += n;
            }
        }
        if findings.n_findings() > 0 {
            with_findings.push(file);
        }
    }
    let kinds = counts.into_iter().collect();
    let summary = ContentSummary::Manifest { kinds, n_unused_objects: 0 };
    let findings = FileFindings { content_summary: Some(summary), ..FileFindings::default() };
    let check_outcome = CheckOutcome::Read(Box::new(findings));
    with_findings.push(CheckedFile { name: CLUSTER_NAME.to_owned(), check_outcome });
    with_findings
}
