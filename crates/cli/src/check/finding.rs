//! The findings of a check, in the form that all outputs share.

use document::{Diagnostic, ExpressionIssue, Fault, SourcePosition, Warning};

use super::finding_rule::FindingRule;

/// One input after its check.
#[derive(Debug)]
pub(super) struct CheckedFile {
    /// The name of the input in findings.
    pub(super) name: String,
    pub(super) check_outcome: CheckOutcome,
}

#[derive(Debug)]
pub(super) enum CheckOutcome {
    /// The input cannot be read.
    Unreadable {
        message: String,
    },
    Read(Box<FileFindings>),
}

/// The findings of a file that was read.
#[derive(Debug, Default)]
pub(super) struct FileFindings {
    /// The text of the file, which positions refer to.
    pub(super) file_text: String,
    /// A summary of the content; `None` if the file has errors.
    pub(super) content_summary: Option<ContentSummary>,
    /// The error text of kube-apiserver for the whole file.
    pub(super) kubernetes_error_message: Option<String>,
    pub(super) errors: Vec<Finding>,
    pub(super) warnings: Vec<Finding>,
    /// The number of warnings beyond the limit.
    pub(super) n_omitted_warnings: usize,
}

/// A summary of the content of a valid file.
#[derive(Debug)]
pub(super) enum ContentSummary {
    Configuration {
        api_version: Option<&'static str>,
        /// Names of the authorizers in order.
        authorizers: Vec<String>,
    },
    Manifest {
        /// The number of objects by kind.
        kinds: Vec<(String, usize)>,
        /// The number of objects of other kinds, which are not checked.
        n_unused_objects: usize,
    },
    AbacPolicy {
        n_policies: usize,
    },
    Hooks {
        /// Names of the hooks in order.
        names: Vec<String>,
    },
    Kubeconfig,
    /// No document of the file is a Kubernetes object, so there is nothing to check.
    NoObjects,
}

/// One error or warning.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) rule: FindingRule,
    /// The field, as Kubernetes writes its path; empty for the file as a whole.
    pub(super) field: String,
    /// The message in Kubernetes' words.
    pub(super) message: String,
    pub(super) source_position: SourcePosition,
    pub(super) hint: Option<String>,
    /// For an expression that does not compile: each issue with its own position.
    pub(super) expression_issues: Vec<ExpressionIssue>,
}

impl FileFindings {
    /// Counts errors and warnings.
    pub(super) fn n_findings(&self) -> usize {
        self.errors.len() + self.warnings.len()
    }
}

impl ContentSummary {
    /// Returns the kind in JSON output, which is a value of `--kind`; `None` for a file without objects.
    pub(super) fn file_kind_name(&self) -> Option<&'static str> {
        match self {
            Self::Configuration { .. } => Some("AuthorizationConfiguration"),
            Self::Manifest { .. } => Some("manifest"),
            Self::AbacPolicy { .. } => Some("abac-policy"),
            Self::Hooks { .. } => Some("ExternalAuthorizationHookConfiguration"),
            Self::Kubeconfig => Some("kubeconfig"),
            Self::NoObjects => None,
        }
    }
}

/// Reports whether the error is that a file which the configuration names does not exist.
pub(crate) fn is_missing_file_fault(fault: &Fault) -> bool {
    match fault {
        Fault::Field(error) => error.detail.starts_with("error loading file: "),
        Fault::Decode { .. } | Fault::Server { .. } => false,
    }
}

impl Finding {
    pub(super) fn add_hint(&mut self, hint: &str) {
        self.hint = Some(match self.hint.take() {
            Some(first) => format!("{first}; {hint}"),
            None => hint.to_owned(),
        });
    }
}

impl From<Diagnostic> for Finding {
    fn from(diagnostic: Diagnostic) -> Self {
        Self {
            rule: FindingRule::rule_for_fault(&diagnostic.fault),
            field: diagnostic.fault.field().to_owned(),
            message: diagnostic.fault.to_string(),
            source_position: diagnostic.position,
            hint: diagnostic.hint,
            expression_issues: diagnostic.expression_issues,
        }
    }
}

impl From<Warning> for Finding {
    fn from(warning: Warning) -> Self {
        Self {
            rule: FindingRule::rule_for_warning(warning.code),
            field: warning.field,
            message: warning.message,
            source_position: warning.position,
            hint: warning.hint,
            expression_issues: Vec::new(),
        }
    }
}
