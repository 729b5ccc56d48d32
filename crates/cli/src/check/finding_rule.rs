//! The classes of findings: stable identifiers and descriptions.

use admission::WarningKind;
use document::{Fault, WarningCode};
use field_errors::FieldErrorKind;

/// A class of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FindingRule {
    /// The stable name, `type` in JSON and `ruleId` in SARIF.
    pub(super) id: &'static str,
    /// The meaning of a finding, in one sentence.
    pub(super) rule_summary: &'static str,
    /// The next step for the author of the file.
    pub(super) fix_advice: &'static str,
    pub(super) severity: Severity,
}

/// The severity of a finding without `--strict`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    Error,
    Warning,
}

impl Severity {
    /// Returns the name of the severity in SARIF.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// The rule id of a finding about a file that cannot be read. No rule applies, because nothing in the file
/// was checked.
pub(super) const UNREADABLE_RULE_ID: &str = "Unreadable";

impl FindingRule {
    pub(super) fn rule_for_fault(fault: &Fault) -> Self {
        let (summary, help) = match fault {
            Fault::Decode { .. } => (
                "The file cannot be decoded.",
                "Correct the syntax, the name of the field or the type of the value. The decoder is \
                 strict: unknown and duplicate fields are refused.",
            ),
            Fault::Server { .. } => (
                "The configuration is valid, but not for this server.",
                "Change the configuration as the message says. The server refuses to start with it.",
            ),
            Fault::Field(error) => field_error_summary_and_advice(error.kind),
        };
        Self {
            id: fault.fault_class_name(),
            rule_summary: summary,
            fix_advice: help,
            severity: Severity::Error,
        }
    }

    /// Returns the class of a warning about an admission configuration.
    pub(super) fn rule_for_admission_warning(cause: WarningKind) -> Self {
        let (summary, help) = admission_warning_summary_and_advice(cause);
        Self {
            id: cause.name(),
            rule_summary: summary,
            fix_advice: help,
            severity: Severity::Warning,
        }
    }

    pub(super) fn rule_for_warning(code: WarningCode) -> Self {
        let (summary, help) = warning_summary_and_advice(code);
        Self {
            id: code.name(),
            rule_summary: summary,
            fix_advice: help,
            severity: Severity::Warning,
        }
    }
}

fn admission_warning_summary_and_advice(cause: WarningKind) -> (&'static str, &'static str) {
    match cause {
        WarningKind::ExcludedResource => (
            "A rule names a review, which hooks never receive.",
            "Remove the resource from the rule. The server never calls hooks for reviews.",
        ),
        WarningKind::OverlappingResources => (
            "A resource of a rule is covered by another one.",
            "Remove the narrower resource. kube-apiserver refuses the rule if the wider resource comes first.",
        ),
        WarningKind::UnusableCaBundle => (
            "A CA bundle cannot be read.",
            "Set caBundle to the base64 of PEM certificates. The server accepts the current value, but \
             every call of the webhook fails.",
        ),
        WarningKind::RefusedAddress => (
            "A webhook is at an address that the server does not connect to.",
            "Give the webhook another address. The server never connects to link-local addresses and \
             metadata services, so every call of the webhook fails.",
        ),
        WarningKind::RaisedWithChanges => (
            "An update sets failurePolicy to Fail together with other changes.",
            "Change rules and clientConfig first. Change failurePolicy when the hook works.",
        ),
        WarningKind::UnknownInitializer => (
            "An initializer waits for one that no configuration registers.",
            "Correct the name, or also check the file that contains the initializer. The constraint \
             has no effect until an initializer of that name is registered.",
        ),
        WarningKind::ReservedName => (
            "The name of the object is reserved.",
            "Rename the object. These names are for manifests on the disk of the server.",
        ),
    }
}

fn warning_summary_and_advice(code: WarningCode) -> (&'static str, &'static str) {
    match code {
        WarningCode::KubeConfigAlias => (
            "The connection type has the name of an early proposal.",
            "Write KubeConfigFile. kube-apiserver refuses KubeConfig.",
        ),
        WarningCode::MissingBuiltInName => (
            "A built-in authorizer has no name.",
            "Set name to the type in lower case. kube-apiserver refuses an authorizer without a \
             name.",
        ),
        WarningCode::ZeroTtl => (
            "A time to live of zero means the default, as in kube-apiserver.",
            "Set cacheAuthorizedRequests or cacheUnauthorizedRequests to false to turn a cache off.",
        ),
        WarningCode::AnonymousAllowed => (
            "AlwaysAllow in a file allows everything to requests without credentials, too.",
            "Start the server with --anonymous-auth=false, or use another authorizer. \
             --authorization-mode AlwaysAllow turns anonymous authentication off; a file does not.",
        ),
        WarningCode::SeveralDocuments => (
            "Only the first YAML document of the file is read.",
            "Remove all other documents. kube-apiserver ignores them silently.",
        ),
        WarningCode::IgnoredHookUrl => (
            "A hook has a service and a URL, and the URL is ignored.",
            "Remove one of the two. The server uses the service.",
        ),
        WarningCode::PlainHttp => (
            "A service is called without TLS.",
            "Write the URL with https. Others on the network can read requests and forge \
             responses.",
        ),
        WarningCode::UnusedCredentials => (
            "Credentials or CA certificates are not used, because the service is called without TLS.",
            "Write the URL with https, or remove the credentials and certificates.",
        ),
        WarningCode::UnverifiedServer => (
            "The certificate of a service is not verified.",
            "Set the CA that signs the certificate. Others on the network can impersonate the service.",
        ),
        WarningCode::UnknownPolicyField => (
            "A field of an ABAC policy does not exist and is ignored.",
            "Correct the name. A line whose restriction is ignored grants more than its author intended.",
        ),
        WarningCode::UnversionedPolicy => (
            "Policies do not say their version.",
            "Write them as abac.authorization.kubernetes.io/v1beta1.",
        ),
        WarningCode::NoDiscovery => (
            "A user or group is granted resources and not the paths of discovery.",
            "Add a line with nonResourcePath, unless another authorizer grants these paths. kubectl \
             reads /api and /apis before it asks for a resource.",
        ),
        WarningCode::IncompleteList => (
            "A list of objects is only the first part of a longer one.",
            "Request all objects from the server. The check assumes that missing objects do not exist.",
        ),
        WarningCode::DuplicateObject => (
            "An object occurs twice with the same content.",
            "Remove one of the two. The second one has no effect, and the two may differ later.",
        ),
        WarningCode::MissingRole => (
            "A binding refers to a role that does not exist.",
            "Correct the name, or also check the file that contains the role. The binding grants \
             nothing until a role of that name exists.",
        ),
        WarningCode::OddSubjectName => (
            "No user or group can have the name of a subject.",
            "Remove white space and invisible characters; use a name that a namespace can have.",
        ),
        WarningCode::WildcardSubject => (
            "The name of a subject is an asterisk, which matches no subject.",
            "Name the group system:authenticated or system:unauthenticated.",
        ),
        WarningCode::ServiceAccountAsUser => (
            "A service account is named as a user.",
            "Use the kind ServiceAccount. The binding works, but tools that search for service accounts \
             do not find it.",
        ),
        WarningCode::MalformedServiceAccount => (
            "A subject looks like a service account but is not one.",
            "Use the kind ServiceAccount with a namespace and a name.",
        ),
        WarningCode::GroupAsUser => (
            "A group is named as a user.",
            "Use the kind Group. No user has this name, so the binding grants nothing.",
        ),
        WarningCode::MisspelledGroup => (
            "The name of a group is similar to a group of Kubernetes.",
            "Correct the name. The misspelled group has no members.",
        ),
        WarningCode::IgnoredSubjectNamespace => (
            "A user or a group has a namespace, which is ignored.",
            "Remove it. Users and groups belong to no namespace.",
        ),
        WarningCode::UnmatchedVerb => (
            "No request has a verb of a rule.",
            "Verbs are lower case. Resources have the verbs get, list, watch, create, update, patch, \
             delete and deletecollection; paths have the methods of HTTP as verbs.",
        ),
        WarningCode::UnmatchedApiGroup => (
            "No request has an API group of a rule.",
            "Write the group without its version. The group of pods and services is the empty text.",
        ),
        WarningCode::UnmatchedResource => (
            "No request has a resource of a rule.",
            "Resources are lower-case plurals in the API group that serves them. A subresource follows a \
             slash and must be named.",
        ),
        WarningCode::UnmatchedUrl => (
            "No request has a path of a rule.",
            "Paths begin with a slash and may end with an asterisk.",
        ),
        WarningCode::CreateByName => (
            "A rule allows the creation of objects by name.",
            "Move create to a rule without resourceNames. The name is not known when the request is authorized.",
        ),
        WarningCode::OversizedRole => (
            "A rule or a role has more combinations than the server accepts.",
            "Split the rule or the role into several, or use fewer entries.",
        ),
    }
}

fn field_error_summary_and_advice(kind: FieldErrorKind) -> (&'static str, &'static str) {
    match kind {
        FieldErrorKind::Required => ("A value is missing.", "Set the field."),
        FieldErrorKind::Invalid => {
            ("A value is malformed.", "Change the value as the message says.")
        }
        FieldErrorKind::NotSupported => {
            ("A value is not one of those that are supported.", "Use one of the supported values.")
        }
        FieldErrorKind::Duplicate => {
            ("A value that must be unique occurs twice.", "Change one of the two.")
        }
        FieldErrorKind::TooMany => ("A list has too many items.", "Remove items."),
        FieldErrorKind::TooLong => ("A text is too long.", "Shorten it."),
        FieldErrorKind::Forbidden => ("A value is not allowed here.", "Remove it."),
        FieldErrorKind::NotFound => {
            ("A value names something that does not exist.", "Correct the name.")
        }
        FieldErrorKind::TypeInvalid => {
            ("A value has the wrong type.", "Use a value of the right type.")
        }
        FieldErrorKind::Internal => ("The check itself failed.", "Please report this as a bug."),
    }
}
