//! Findings of strict decoding: unknown and duplicate fields.

use std::fmt;

/// Upper bound on the findings of one body, as in Kubernetes.
pub(crate) const FINDINGS_MAX: usize = 100;

/// A field that is dropped from an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrictFinding {
    /// The kind has no such field; it is dropped.
    UnknownField(String),
    /// The field occurs more than once; the last one counts.
    DuplicateField(String),
}

impl fmt::Display for StrictFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField(path) => write!(f, "unknown field {}", go_compat::quote(path)),
            Self::DuplicateField(path) => write!(f, "duplicate field {}", go_compat::quote(path)),
        }
    }
}

/// Upper bound on the bytes of all paths that are formatted for the findings of one body, including
/// duplicate findings. Otherwise a member that occurs 200,000 times below a long name would be formatted
/// as often.
const PATH_BYTES_MAX: usize = 4 << 20;

/// Distinct findings, at most [`FINDINGS_MAX`].
#[derive(Debug, Default)]
pub(crate) struct StrictFindings {
    findings: Vec<StrictFinding>,
    n_path_bytes: usize,
}

impl StrictFindings {
    pub(crate) fn push(&mut self, finding: StrictFinding) {
        let (StrictFinding::UnknownField(path) | StrictFinding::DuplicateField(path)) = &finding;
        self.n_path_bytes += path.len();
        if self.findings.len() < FINDINGS_MAX && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Reports whether the limit of findings is reached.
    pub(crate) fn has_reached_findings_max(&self) -> bool {
        self.findings.len() >= FINDINGS_MAX || self.n_path_bytes >= PATH_BYTES_MAX
    }

    pub(crate) fn into_vec(self) -> Vec<StrictFinding> {
        self.findings
    }
}

/// An object has findings, and the client requested strict field validation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{kind} in version {} cannot be handled as a {kind}: strict decoding error: {findings_text}",
    go_compat::quote(version)
)]
pub struct StrictDecodingError {
    kind: String,
    version: String,
    /// All findings, joined by `, `.
    findings_text: String,
}

/// Checks that a decoded object has no findings, as strict field validation requires.
///
/// # Errors
/// There are findings; the error lists all of them.
pub fn check_no_strict_findings(
    kind: &str,
    version: &str,
    findings: &[StrictFinding],
) -> Result<(), StrictDecodingError> {
    if findings.is_empty() {
        return Ok(());
    }
    let findings: Vec<_> = findings.iter().map(StrictFinding::to_string).collect();
    Err(StrictDecodingError {
        kind: kind.to_owned(),
        version: version.to_owned(),
        findings_text: findings.join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_findings_are_bounded() {
        let mut findings = StrictFindings::default();
        let path = "x".repeat(PATH_BYTES_MAX / 4);
        let n_written = (0..200_000).take_while(|_| {
            let is_written = !findings.has_reached_findings_max();
            if is_written {
                findings.push(StrictFinding::DuplicateField(path.clone()));
            }
            is_written
        });
        assert_eq!(n_written.count(), 4);
        assert_eq!(findings.into_vec().len(), 1);
    }

    #[test]
    fn strict_errors_list_all_findings() {
        let findings = [
            StrictFinding::UnknownField("foo".into()),
            StrictFinding::DuplicateField("data.a".into()),
        ];
        assert_eq!(
            check_no_strict_findings("ConfigMap", "v1", &findings).unwrap_err().to_string(),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: \
             unknown field \"foo\", duplicate field \"data.a\""
        );
        assert_eq!(check_no_strict_findings("ConfigMap", "v1", &[]), Ok(()));
    }

    #[test]
    fn findings_are_distinct_and_limited() {
        let mut findings = StrictFindings::default();
        for idx in 0..=FINDINGS_MAX {
            findings.push(StrictFinding::UnknownField(idx.to_string()));
            findings.push(StrictFinding::UnknownField(idx.to_string()));
        }
        assert_eq!(findings.into_vec().len(), FINDINGS_MAX);
    }
}
