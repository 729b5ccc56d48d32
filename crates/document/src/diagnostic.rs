//! Faults and warnings of a file, with their positions.

use std::fmt;

use field_errors::FieldError;

use crate::schema_check::DecodeProblem;
use crate::source::{LineIndex, SourcePosition, Span};

/// One fault of a file, with its position and a hint for the author.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// The fault in Kubernetes' words.
    pub fault: Fault,
    /// The name of the file, as in [`Source::name`](crate::Source::name).
    pub file_name: String,
    /// Position of the value at fault. A missing value has the position of the object that lacks
    /// it.
    pub position: SourcePosition,
    /// The likely intention of the author.
    pub hint: Option<String>,
    /// The issues of an expression that does not compile, each with its own position.
    pub expression_issues: Vec<ExpressionIssue>,
}

/// The kinds of faults, with the texts that Kubernetes prints.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The decoder refuses the file.
    Decode {
        /// The field path, such as `authorizers[0].webhook.timeuot`; empty for the file as a whole.
        field: String,
        /// The message of Kubernetes' decoder.
        message: String,
    },
    /// A value breaks a rule of its field.
    Field(FieldError),
    /// The configuration is valid, but not for this server.
    Server {
        /// The field path, as Kubernetes writes it.
        field: String,
        /// The message that the server prints.
        message: String,
    },
}

impl Fault {
    /// Name of the fault's class: `Decode`, `Server`, or a field error type such as `Required`.
    pub fn fault_class_name(&self) -> &'static str {
        match self {
            Self::Decode { .. } => "Decode",
            Self::Field(error) => error.kind.name(),
            Self::Server { .. } => "Server",
        }
    }

    /// The field, as Kubernetes writes its path; empty for the file as a whole.
    pub fn field(&self) -> &str {
        match self {
            Self::Decode { field, .. } | Self::Server { field, .. } => field,
            Self::Field(error) => &error.path,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode { message, .. } | Self::Server { message, .. } => f.write_str(message),
            Self::Field(error) => error.fmt(f),
        }
    }
}

/// One issue inside an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpressionIssue {
    /// The message of the CEL compiler.
    pub message: String,
    /// Line of the expression, from 1.
    pub line_in_expression: usize,
    /// Column in that line in characters, from 1.
    pub column_in_expression: usize,
    /// Position of the issue in the file.
    pub position: SourcePosition,
    /// The likely intention of the author.
    pub hint: Option<String>,
}

/// A setting that is accepted, but that the author of the file should change.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// The stable code of the warning.
    pub code: WarningCode,
    /// The field, as Kubernetes writes its path; empty for the file as a whole.
    pub field: String,
    /// The text of the warning.
    pub message: String,
    /// The name of the file, as in [`Source::name`](crate::Source::name).
    pub file_name: String,
    /// Position of the value in question.
    pub position: SourcePosition,
    /// The change that removes the warning.
    pub hint: Option<String>,
}

/// The warnings that exist. Their names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WarningCode {
    /// The connection type is `KubeConfig`, which is the proposal's name of `KubeConfigFile`.
    KubeConfigAlias,
    /// A built-in authorizer has no name. It gets its type in lower case, while Kubernetes refuses it.
    MissingBuiltInName,
    /// A TTL of zero selects the default TTL. It does not turn the cache off.
    ZeroTtl,
    /// `AlwaysAllow` in a configuration file also allows requests without credentials.
    AnonymousAllowed,
    /// Content follows the first YAML document. It is ignored.
    SeveralDocuments,
    /// An ABAC policy has a field that does not exist. It is ignored.
    UnknownPolicyField,
    /// A hook has both a service and a URL. The URL is ignored.
    IgnoredHookUrl,
    /// The server of a kubeconfig is called without TLS, so anybody on the network path can answer in its place.
    PlainHttp,
    /// A kubeconfig has credentials or CA certificates that are not used, because the server is called without
    /// TLS.
    UnusedCredentials,
    /// A kubeconfig disables the verification of the server's certificate.
    UnverifiedServer,
    /// An ABAC policy file has lines that declare no version.
    UnversionedPolicy,
    /// An ABAC policy file grants resources to a subject and not the paths of discovery.
    NoDiscovery,
    /// A list of objects is incomplete: it has a `continue` token.
    IncompleteList,
    /// An object occurs twice with the same content.
    DuplicateObject,
    /// A binding refers to a role that does not exist.
    MissingRole,
    /// A subject has a name that no user can have, such as one that ends with a space.
    OddSubjectName,
    /// A subject has the name `*`, which is not a wildcard for subjects.
    WildcardSubject,
    /// A subject of kind `User` has the name of a service account.
    ServiceAccountAsUser,
    /// A user or group looks like a service account, but no service account has this name.
    MalformedServiceAccount,
    /// A subject of kind `User` has the name of a group.
    GroupAsUser,
    /// The name of a group differs by one letter from a group of Kubernetes.
    MisspelledGroup,
    /// A subject of kind `User` or `Group` has a namespace, which is ignored.
    IgnoredSubjectNamespace,
    /// A rule lists a verb that no request has.
    UnmatchedVerb,
    /// A rule lists an API group that no request has.
    UnmatchedApiGroup,
    /// A rule lists a resource that no request has.
    UnmatchedResource,
    /// A rule lists a path that no request has.
    UnmatchedUrl,
    /// A rule for `create` lists names of objects. A request that creates an object has no name.
    CreateByName,
    /// A rule or a role has more combinations than the server accepts.
    OversizedRole,
}

impl WarningCode {
    /// The stable name, as output formats print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::KubeConfigAlias => "kube-config-alias",
            Self::MissingBuiltInName => "missing-built-in-name",
            Self::ZeroTtl => "zero-ttl",
            Self::AnonymousAllowed => "anonymous-allowed",
            Self::SeveralDocuments => "several-documents",
            Self::UnknownPolicyField => "unknown-policy-field",
            Self::IgnoredHookUrl => "ignored-hook-url",
            Self::PlainHttp => "plain-http",
            Self::UnusedCredentials => "unused-credentials",
            Self::UnverifiedServer => "unverified-server",
            Self::UnversionedPolicy => "unversioned-policy",
            Self::NoDiscovery => "no-discovery",
            Self::IncompleteList => "incomplete-list",
            Self::DuplicateObject => "duplicate-object",
            Self::MissingRole => "missing-role",
            Self::OddSubjectName => "odd-subject-name",
            Self::WildcardSubject => "wildcard-subject",
            Self::ServiceAccountAsUser => "service-account-as-user",
            Self::MalformedServiceAccount => "malformed-service-account",
            Self::GroupAsUser => "group-as-user",
            Self::MisspelledGroup => "misspelled-group",
            Self::IgnoredSubjectNamespace => "ignored-subject-namespace",
            Self::UnmatchedVerb => "unmatched-verb",
            Self::UnmatchedApiGroup => "unmatched-api-group",
            Self::UnmatchedResource => "unmatched-resource",
            Self::UnmatchedUrl => "unmatched-url",
            Self::CreateByName => "create-by-name",
            Self::OversizedRole => "oversized-role",
        }
    }
}

/// A fault with a range of bytes; [`into_diagnostic`](Self::into_diagnostic) adds line and column.
#[derive(Debug)]
pub struct SpannedFault {
    /// The fault in Kubernetes' words.
    pub fault: Fault,
    /// The bytes that the fault is about.
    pub span: Span,
    /// The likely intention of the author.
    pub hint: Option<String>,
    /// The issues of an expression that does not compile.
    pub expression_issues: Vec<SpannedExpressionIssue>,
}

/// One issue inside an expression, with its range of bytes.
#[derive(Debug)]
pub struct SpannedExpressionIssue {
    /// The message of the CEL compiler.
    pub message: String,
    /// Line of the expression, from 1.
    pub line_in_expression: usize,
    /// Column in that line in characters, from 1.
    pub column_in_expression: usize,
    /// The bytes of the issue in the file.
    pub span: Span,
    /// The likely intention of the author.
    pub hint: Option<String>,
}

/// A warning with a range of bytes; [`into_positioned_warning`](Self::into_positioned_warning) adds line and column.
#[derive(Debug)]
pub struct SpannedWarning {
    /// The stable code of the warning.
    pub code: WarningCode,
    /// The field path, empty for the file as a whole.
    pub field: String,
    /// The text of the warning.
    pub message: String,
    /// The bytes that the warning is about.
    pub span: Span,
    /// The change that removes the warning.
    pub hint: Option<String>,
}

impl SpannedFault {
    /// Replaces byte ranges by lines and columns and adds the file name.
    pub fn into_positioned_diagnostic(self, file: &str, lines: &LineIndex<'_>) -> Diagnostic {
        let notes = self.expression_issues.into_iter().map(|note| ExpressionIssue {
            message: note.message,
            line_in_expression: note.line_in_expression,
            column_in_expression: note.column_in_expression,
            position: lines.position_of_span(note.span),
            hint: note.hint,
        });
        Diagnostic {
            fault: self.fault,
            file_name: file.to_owned(),
            position: lines.position_of_span(self.span),
            hint: self.hint,
            expression_issues: notes.collect(),
        }
    }
}

impl From<DecodeProblem> for SpannedFault {
    fn from(problem: DecodeProblem) -> Self {
        let DecodeProblem { path, message, span, hint } = problem;
        Self {
            fault: Fault::Decode { field: path, message },
            span,
            hint,
            expression_issues: Vec::new(),
        }
    }
}

impl SpannedWarning {
    /// Replaces the byte range by line and column and adds the file name.
    pub fn into_positioned_warning(self, file: &str, lines: &LineIndex<'_>) -> Warning {
        Warning {
            code: self.code,
            field: self.field,
            message: self.message,
            file_name: file.to_owned(),
            position: lines.position_of_span(self.span),
            hint: self.hint,
        }
    }
}
