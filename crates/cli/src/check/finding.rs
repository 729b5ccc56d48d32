//! What is found, in the form that all outputs share.

use std::io::Read;

use api::authorization::{LoadError, LoadOptions, load};
use api::{Diagnostic, Fault, Note, Place, Source, Warning};
use authz_chain::{Authorizer, Configuration};

use super::input::Input;
use super::rule::Rule;
use crate::kind::{Kind, known_kinds};

/// One input after its check.
#[derive(Debug)]
pub(super) struct Checked {
    /// What findings call it.
    pub(super) name: String,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// There was nothing to check.
    Unreadable {
        message: String,
    },
    Read(Box<ReadFile>),
}

/// A file that could be read.
#[derive(Debug)]
pub(super) struct ReadFile {
    /// The text that places refer to.
    pub(super) text: String,
    /// What the file configures, if it is accepted.
    pub(super) summary: Option<Summary>,
    /// What kube-apiserver says in one text, if the file is refused by its rules.
    pub(super) refusal: Option<String>,
    pub(super) errors: Vec<Finding>,
    pub(super) warnings: Vec<Finding>,
}

/// What a valid file configures.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) kind: Kind,
    /// Names of the authorizers in order.
    pub(super) authorizers: Vec<String>,
}

/// One error or warning.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) rule: Rule,
    /// The field, as Kubernetes writes its path; empty for the file as a whole.
    pub(super) field: String,
    /// The message in Kubernetes' words.
    pub(super) message: String,
    pub(super) place: Place,
    pub(super) hint: Option<String>,
    /// For an expression that does not compile: each issue with its own place.
    pub(super) issues: Vec<Note>,
}

/// Reads and checks one input. With `strict`, warnings are errors.
pub(super) fn check(
    input: &Input,
    stdin: &mut dyn Read,
    options: &LoadOptions<'_>,
    strict: bool,
) -> Checked {
    let name = input.name();
    let outcome = match input.read(stdin) {
        Err(message) => Outcome::Unreadable { message },
        Ok(bytes) => Outcome::Read(Box::new(check_bytes(&name, &bytes, options, strict))),
    };
    Checked { name, outcome }
}

fn check_bytes(name: &str, bytes: &[u8], options: &LoadOptions<'_>, strict: bool) -> ReadFile {
    let source = Source { name, bytes };
    let loaded = load(&source, options);
    let (summary, refusal, mut errors) = match loaded.outcome {
        Ok(configuration) => (Some(Summary::new(&configuration)), None, Vec::new()),
        Err(error) => (None, Some(error.to_string()), errors(error, bytes.is_empty())),
    };
    let mut warnings: Vec<_> = loaded.warnings.into_iter().map(Finding::from).collect();
    warnings.sort_by_key(|warning| warning.place);
    if strict {
        errors.append(&mut warnings);
    }
    ReadFile { text: source.text().into_owned(), summary, refusal, errors, warnings }
}

fn errors(error: LoadError, is_empty: bool) -> Vec<Finding> {
    let names_no_kind = is_about_the_kind(&error);
    let diagnostics = match error {
        LoadError::Decode(error) => error.diagnostics,
        LoadError::Invalid(diagnostics) | LoadError::Server(diagnostics) => diagnostics,
    };
    let mut findings: Vec<_> = diagnostics.into_iter().map(Finding::from).collect();
    if let [only] = findings.as_mut_slice() {
        if names_no_kind {
            only.add_hint(&format!("known kinds: {}", known_kinds()));
        } else if is_empty {
            only.add_hint("the input is empty");
        }
    }
    findings
}

/// Whether the one thing wrong is what the file says it is.
fn is_about_the_kind(error: &LoadError) -> bool {
    match error {
        LoadError::Decode(error) => match error.diagnostics.as_slice() {
            [only] => matches!(only.fault.field(), "kind" | "apiVersion"),
            _ => false,
        },
        LoadError::Invalid(_) | LoadError::Server(_) => false,
    }
}

impl ReadFile {
    /// Errors and warnings together.
    pub(super) fn n_findings(&self) -> usize {
        self.errors.len() + self.warnings.len()
    }
}

impl Summary {
    fn new(configuration: &Configuration) -> Self {
        let names = configuration.authorizers().iter().map(Authorizer::name);
        Self {
            kind: Kind::AuthorizationConfiguration,
            authorizers: names.map(str::to_owned).collect(),
        }
    }
}

/// What a flag of the program can do about a fault. Files that a configuration names are on the
/// server, so this is the first fault that people meet in CI.
fn hint_about_flags(fault: &Fault) -> Option<String> {
    match fault {
        Fault::Field(error) if error.detail.starts_with("error loading file: ") => {
            Some("away from the server, `--assume-files-exist` leaves this to its start".to_owned())
        }
        Fault::Field(_) | Fault::Decode { .. } | Fault::Server { .. } => None,
    }
}

impl Finding {
    fn add_hint(&mut self, hint: &str) {
        self.hint = Some(match self.hint.take() {
            Some(first) => format!("{first}; {hint}"),
            None => hint.to_owned(),
        });
    }
}

impl From<Diagnostic> for Finding {
    fn from(diagnostic: Diagnostic) -> Self {
        Self {
            rule: Rule::of_fault(&diagnostic.fault),
            field: diagnostic.fault.field().to_owned(),
            message: diagnostic.fault.to_string(),
            place: diagnostic.place,
            hint: diagnostic.hint.or_else(|| hint_about_flags(&diagnostic.fault)),
            issues: diagnostic.notes,
        }
    }
}

impl From<Warning> for Finding {
    fn from(warning: Warning) -> Self {
        Self {
            rule: Rule::of_warning(warning.code),
            field: warning.field,
            message: warning.message,
            place: warning.place,
            hint: warning.hint,
            issues: Vec::new(),
        }
    }
}
