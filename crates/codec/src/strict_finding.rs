//! Findings of strict decoding: unknown and duplicate fields.

use std::fmt;

/// The most findings of one body; Kubernetes keeps as many.
pub(crate) const FINDINGS_MAX: usize = 100;

/// A field that is dropped from an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The kind has no such field; it is dropped.
    UnknownField(String),
    /// The field stands twice; the last one counts.
    DuplicateField(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField(path) => write!(f, "unknown field {}", go_compat::quote(path)),
            Self::DuplicateField(path) => write!(f, "duplicate field {}", go_compat::quote(path)),
        }
    }
}

/// How many bytes of paths are written for the findings of one body, repeated ones included. A member that
/// stands 200,000 times below a long name would otherwise be named as often.
const PATH_BYTES_MAX: usize = 4 << 20;

/// Findings without repetition, and at most [`FINDINGS_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    n_path_bytes: usize,
}

impl Findings {
    pub(crate) fn push(&mut self, finding: Finding) {
        let (Finding::UnknownField(path) | Finding::DuplicateField(path)) = &finding;
        self.n_path_bytes += path.len();
        if self.list.len() < FINDINGS_MAX && !self.list.contains(&finding) {
            self.list.push(finding);
        }
    }

    /// Reports whether the limit of findings is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= FINDINGS_MAX || self.n_path_bytes >= PATH_BYTES_MAX
    }

    pub(crate) fn into_vec(self) -> Vec<Finding> {
        self.list
    }
}

/// An object has findings, and the client requested strict field validation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{kind} in version {} cannot be handled as a {kind}: strict decoding error: {findings}",
    go_compat::quote(version)
)]
pub struct StrictDecodingError {
    kind: String,
    version: String,
    /// All findings, joined by `, `.
    findings: String,
}

/// Checks that a decoded object has no findings, as strict field validation requires.
///
/// # Errors
/// There are findings; the error lists all of them.
pub fn check_strict(
    kind: &str,
    version: &str,
    findings: &[Finding],
) -> Result<(), StrictDecodingError> {
    if findings.is_empty() {
        return Ok(());
    }
    let findings: Vec<_> = findings.iter().map(Finding::to_string).collect();
    Err(StrictDecodingError {
        kind: kind.to_owned(),
        version: version.to_owned(),
        findings: findings.join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_findings_are_bounded() {
        let mut findings = Findings::default();
        let path = "x".repeat(PATH_BYTES_MAX / 4);
        let n_written = (0..200_000).take_while(|_| {
            let is_written = !findings.is_full();
            if is_written {
                findings.push(Finding::DuplicateField(path.clone()));
            }
            is_written
        });
        assert_eq!(n_written.count(), 4);
        assert_eq!(findings.into_vec().len(), 1);
    }

    #[test]
    fn a_strict_client_is_told_everything_at_once() {
        let findings =
            [Finding::UnknownField("foo".into()), Finding::DuplicateField("data.a".into())];
        assert_eq!(
            check_strict("ConfigMap", "v1", &findings).unwrap_err().to_string(),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: \
             unknown field \"foo\", duplicate field \"data.a\""
        );
        assert_eq!(check_strict("ConfigMap", "v1", &[]), Ok(()));
    }

    #[test]
    fn findings_are_few_and_different() {
        let mut findings = Findings::default();
        for idx in 0..=FINDINGS_MAX {
            findings.push(Finding::UnknownField(idx.to_string()));
            findings.push(Finding::UnknownField(idx.to_string()));
        }
        assert_eq!(findings.into_vec().len(), FINDINGS_MAX);
    }
}
