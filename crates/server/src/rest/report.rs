//! What a request reports beside its result.

use admission_hooks::SessionReport;
use store::Revision;

/// What a request reports to the client and to the audit log beside its result, also if it fails.
#[derive(Debug, Default)]
pub(crate) struct RequestReport {
    /// The texts of `Warning` headers.
    pub(crate) warnings: Vec<String>,
    /// The reports of hooks, one for each attempt to write.
    pub(crate) hook_reports: Vec<SessionReport>,
    /// The revision of the admission configuration that the last write was admitted by.
    pub(crate) admission_revision: Option<Revision>,
}
