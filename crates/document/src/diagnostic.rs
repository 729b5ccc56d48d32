//! What is wrong with a file, and where.

use std::fmt;

use field_errors::FieldError;

use crate::decode::Problem;
use crate::source::{Lines, Place, Span};

/// One fault of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// What is wrong.
    pub fault: Fault,
    /// The file, by the name that its source has.
    pub file: String,
    /// Where it is. A value that is missing has the place of what it is missing in.
    pub place: Place,
    /// What the author probably meant.
    pub hint: Option<String>,
    /// For an expression that does not compile: each issue with its own place.
    pub notes: Vec<Note>,
}

/// What is wrong, in Kubernetes' words.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The file can not be read as what it says it is.
    Decode {
        /// The field, such as `authorizers[0].webhook.timeuot`; empty for the file as a whole.
        field: String,
        /// The decoder's message.
        message: String,
    },
    /// A value breaks a rule of its field.
    Field(FieldError),
    /// The configuration is valid, but not for this server.
    Server {
        /// The field.
        field: String,
        /// The server's message.
        message: String,
    },
}

impl Fault {
    /// The class: `Decode`, `Server`, or one of Kubernetes' such as `Required`.
    pub fn type_name(&self) -> &'static str {
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
pub struct Note {
    /// The compiler's message.
    pub message: String,
    /// Line of the expression, from 1.
    pub line: usize,
    /// Column in that line in characters, from 1.
    pub column: usize,
    /// The same place in the file.
    pub place: Place,
    /// What the author probably meant.
    pub hint: Option<String>,
}

/// Something that is accepted but should be changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// Which one it is.
    pub code: WarningCode,
    /// The field, as Kubernetes writes its path; empty for the file as a whole.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// The file, by the name that its source has.
    pub file: String,
    /// Where it is.
    pub place: Place,
    /// What to do about it.
    pub hint: Option<String>,
}

/// The warnings that exist. Their names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WarningCode {
    /// `connectionInfo.type: KubeConfig`, the proposal's name of `KubeConfigFile`.
    KubeConfigAlias,
    /// A built-in authorizer without a name; it gets its type in lower case. Kubernetes refuses it.
    MissingBuiltInName,
    /// Something follows the first YAML document and is ignored.
    SeveralDocuments,
    /// A field of an ABAC policy that does not exist and is ignored.
    UnknownPolicyField,
    /// A hook with both a service and a URL, which then is ignored.
    IgnoredHookUrl,
    /// A kubeconfig whose server is not called over TLS, so that anybody on the way can answer.
    PlainHttp,
    /// Credentials or authorities of a kubeconfig that are not used, since the server is not called
    /// over TLS.
    UnusedCredentials,
    /// A kubeconfig that says not to look at the certificate of its server.
    UnverifiedServer,
    /// A file with ABAC policies that do not say their version.
    UnversionedPolicy,
    /// A list of objects that goes on elsewhere.
    IncompleteList,
    /// A binding to a role that does not exist.
    MissingRole,
    /// A subject whose name nobody can have, such as one that ends with a space.
    OddSubjectName,
    /// A subject named `*`, which does not stand for everybody.
    WildcardSubject,
    /// A user with the name of a service account.
    ServiceAccountAsUser,
    /// A user or group that looks like a service account and is none.
    MalformedServiceAccount,
    /// A user with the name of a group.
    GroupAsUser,
    /// A group whose name is a letter off one that Kubernetes knows.
    MisspelledGroup,
    /// A user or group with a namespace, which is ignored.
    IgnoredSubjectNamespace,
    /// A verb that no request has.
    UnmatchedVerb,
    /// An API group that no request has.
    UnmatchedApiGroup,
    /// A resource that no request has.
    UnmatchedResource,
    /// A path that no request has.
    UnmatchedUrl,
    /// Names of objects for `create`, which has none yet.
    CreateByName,
    /// A rule, or a role, with more combinations than the server takes.
    OversizedRole,
}

impl WarningCode {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::KubeConfigAlias => "kube-config-alias",
            Self::MissingBuiltInName => "missing-built-in-name",
            Self::SeveralDocuments => "several-documents",
            Self::UnknownPolicyField => "unknown-policy-field",
            Self::IgnoredHookUrl => "ignored-hook-url",
            Self::PlainHttp => "plain-http",
            Self::UnusedCredentials => "unused-credentials",
            Self::UnverifiedServer => "unverified-server",
            Self::UnversionedPolicy => "unversioned-policy",
            Self::IncompleteList => "incomplete-list",
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

/// A fault whose place is still a range of bytes.
#[derive(Debug)]
pub struct Finding {
    pub fault: Fault,
    pub span: Span,
    pub hint: Option<String>,
    pub notes: Vec<FindingNote>,
}

#[derive(Debug)]
pub struct FindingNote {
    pub message: String,
    pub line: usize,
    pub column: usize,
    pub span: Span,
    pub hint: Option<String>,
}

/// A warning whose place is still a range of bytes.
#[derive(Debug)]
pub struct Caution {
    pub code: WarningCode,
    pub field: String,
    pub message: String,
    pub span: Span,
    pub hint: Option<String>,
}

impl Finding {
    pub fn locate(self, file: &str, lines: &Lines<'_>) -> Diagnostic {
        let notes = self.notes.into_iter().map(|note| Note {
            message: note.message,
            line: note.line,
            column: note.column,
            place: lines.place(note.span),
            hint: note.hint,
        });
        Diagnostic {
            fault: self.fault,
            file: file.to_owned(),
            place: lines.place(self.span),
            hint: self.hint,
            notes: notes.collect(),
        }
    }
}

impl From<Problem> for Finding {
    fn from(problem: Problem) -> Self {
        let Problem { path, message, span, hint } = problem;
        Self { fault: Fault::Decode { field: path, message }, span, hint, notes: Vec::new() }
    }
}

impl Caution {
    pub fn locate(self, file: &str, lines: &Lines<'_>) -> Warning {
        Warning {
            code: self.code,
            field: self.field,
            message: self.message,
            file: file.to_owned(),
            place: lines.place(self.span),
            hint: self.hint,
        }
    }
}
