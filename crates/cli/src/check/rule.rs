//! The classes of findings: stable names for programs, descriptions for people.

use api::{Fault, WarningCode};
use field::Kind;

/// A class of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    /// The stable name, `type` in JSON and `ruleId` in SARIF.
    pub(super) id: &'static str,
    /// What a finding of the class means, in one sentence.
    pub(super) summary: &'static str,
    /// What to do about it.
    pub(super) help: &'static str,
    pub(super) level: Level,
}

/// What a finding is unless `--strict` says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Error,
    Warning,
}

impl Level {
    /// SARIF's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// The name of a file that can not be read, which has no rule: nothing in it was checked.
pub(super) const UNREADABLE: &str = "Unreadable";

impl Rule {
    pub(super) fn of_fault(fault: &Fault) -> Self {
        let (summary, help) = match fault {
            Fault::Decode { .. } => (
                "The file can not be decoded.",
                "Correct the syntax, the name of the field or the type of the value. The decoder is \
                 strict: unknown and duplicate fields are refused.",
            ),
            Fault::Server { .. } => (
                "The configuration is valid, but not for this server.",
                "Change the configuration as the message says. The server refuses to start with it.",
            ),
            Fault::Field(error) => describe(error.kind),
        };
        Self { id: fault.type_name(), summary, help, level: Level::Error }
    }

    pub(super) fn of_warning(code: WarningCode) -> Self {
        let (summary, help) = match code {
            WarningCode::KubeConfigAlias => (
                "The connection type has the name that the proposal gave it.",
                "Write KubeConfigFile. kube-apiserver refuses KubeConfig.",
            ),
            WarningCode::MissingBuiltInName => (
                "A built-in authorizer has no name.",
                "Set name to the type in lower case. kube-apiserver refuses an authorizer without a \
                 name.",
            ),
            WarningCode::SeveralDocuments => (
                "Only the first YAML document of the file is read.",
                "Remove what follows the first document. kube-apiserver ignores it silently.",
            ),
            WarningCode::UnknownPolicyField => (
                "A field of an ABAC policy does not exist and is ignored.",
                "Correct the name. A line whose restriction is ignored grants more than was meant.",
            ),
            WarningCode::UnversionedPolicy => (
                "Policies do not say their version.",
                "Write them as abac.authorization.kubernetes.io/v1beta1.",
            ),
        };
        Self { id: code.name(), summary, help, level: Level::Warning }
    }
}

fn describe(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Required => ("A value is missing.", "Set the field."),
        Kind::Invalid => ("A value is malformed.", "Change the value as the message says."),
        Kind::NotSupported => {
            ("A value is not one of those that are supported.", "Use one of the supported values.")
        }
        Kind::Duplicate => ("A value that must be unique occurs twice.", "Change one of the two."),
        Kind::TooMany => ("A list has too many items.", "Remove items."),
        Kind::TooLong => ("A text is too long.", "Shorten it."),
        Kind::Forbidden => ("A value is not allowed here.", "Remove it."),
        Kind::NotFound => ("A value names something that does not exist.", "Correct the name."),
        Kind::TypeInvalid => ("A value has the wrong type.", "Use a value of the right type."),
        Kind::Internal => ("The check itself failed.", "Please report this as a bug."),
    }
}
