//! The warnings and hook reports of a request.

use admission_hooks::SessionReport;
use store::Revision;

/// The warnings and hook reports of a request for the client and the audit log. A failed request has them
/// too.
#[derive(Debug, Default)]
pub(crate) struct WarningsAndHookReports {
    /// The texts of `Warning` headers.
    pub(crate) warnings: Vec<String>,
    /// The reports of hooks, one for each attempt to write.
    pub(crate) hook_reports: Vec<SessionReport>,
    /// The revision of the admission configuration that the last write was admitted by.
    pub(crate) admission_config_revision: Option<Revision>,
}
