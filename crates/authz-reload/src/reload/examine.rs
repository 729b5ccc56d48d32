//! Looking at the files: what a check finds before anything is changed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use authz_chain::{AuthorizerType, Configuration};
use config::authorization_config::{LoadError, LoadOptions};
use document::{DOCUMENT_BYTES_MAX, Diagnostic, ReadError, Source, Warning};

use crate::assemble::Assembler;
use crate::build_error::BuildError;
use crate::files::read_up_to;
use crate::flags::FilePlan;
use crate::generation::Generation;
use crate::hash::hash_of;

/// What a check compares with.
pub(super) struct Known<'a> {
    /// What is in effect.
    pub(super) generation: &'a Generation,
    /// The hash of the bytes that were last found to mean it. Differs from the hash of the
    /// generation when only a comment changed since.
    pub(super) settled: &'a str,
    /// The built-in types at the start of the server.
    pub(super) built_in_types: &'a BTreeSet<AuthorizerType>,
}

/// What a check finds.
pub(super) enum Finding {
    /// The configuration file can not be read.
    Unreadable(ReadError),
    /// The files mean what is in effect.
    Same {
        /// The hash of the configuration file.
        hash: String,
    },
    /// The files can not be used.
    Rejected(Rejected),
    /// The files mean something new, and here it is.
    Built(Box<Generation>),
}

/// Files that can not be used.
#[derive(Debug)]
pub(super) struct Rejected {
    /// The hash of the configuration file.
    pub(super) hash: String,
    /// Why.
    pub(super) message: String,
    /// The same with places.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Files whose change may help, besides the configuration file.
    pub(super) files: Vec<PathBuf>,
}

/// Reads the configuration and, if anything changed, everything that it leads to.
///
/// 1. The file is read. That it can not be is a failure of its own.
/// 2. If its bytes are known to mean the configuration in effect and no file that this refers to
///    has changed, there is nothing to do.
/// 3. The bytes are decoded and validated, with the built-in types of the start required.
/// 4. If they mean the configuration in effect and no file has changed, there is nothing to do.
/// 5. The authorizers are assembled.
pub(super) fn examine(assembler: &Assembler, plan: &FilePlan, known: &Known<'_>) -> Finding {
    let path = assembler.directory.join(&plan.path);
    let bytes = match read_up_to(&path, DOCUMENT_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) => return Finding::Unreadable(ReadError::new(&path, &error)),
    };
    let hash = hash_of(&bytes);
    let are_unchanged = known.generation.files.are_unchanged();
    if hash == known.settled && are_unchanged {
        return Finding::Same { hash };
    }
    let (configuration, warnings) = match load(&path, &bytes, known.built_in_types) {
        Ok(loaded) => loaded,
        Err(refused) => return Finding::Rejected(refused.with_hash(hash)),
    };
    if configuration == known.generation.configuration && are_unchanged {
        return Finding::Same { hash };
    }
    let origin = assembler.origin(plan, &bytes);
    match assembler.build(&configuration, origin, Some(known.generation)) {
        Ok(mut generation) => {
            generation.warnings.splice(0..0, warnings);
            Finding::Built(Box::new(generation))
        }
        Err(error) => Finding::Rejected(Refused::from(error).with_hash(hash)),
    }
}

/// Why files can not be used.
struct Refused {
    message: String,
    diagnostics: Vec<Diagnostic>,
    files: Vec<PathBuf>,
}

impl Refused {
    fn with_hash(self, hash: String) -> Rejected {
        let Self { message, diagnostics, files } = self;
        Rejected { hash, message, diagnostics, files }
    }
}

impl From<BuildError> for Refused {
    fn from(error: BuildError) -> Self {
        Self {
            message: error.to_string(),
            diagnostics: error.diagnostics().to_vec(),
            files: error.files.paths().map(Path::to_owned).collect(),
        }
    }
}

/// Decodes and validates a file under the rules of a reload: built-in types are those of the start.
fn load(
    path: &Path,
    bytes: &[u8],
    built_in_types: &BTreeSet<AuthorizerType>,
) -> Result<(Configuration, Vec<Warning>), Refused> {
    // A kubeconfig that is missing makes a file invalid, so its appearance has to be awaited.
    let looked_at = RefCell::new(Vec::new());
    let probe = |path: &Path| {
        looked_at.borrow_mut().push(path.to_owned());
        config::authorization_config::stat_file(path)
    };
    let required: Vec<AuthorizerType> = built_in_types.iter().copied().collect();
    let options =
        LoadOptions { required_types: &required, stat_file: &probe, ..LoadOptions::default() };
    let name = path.display().to_string();
    let source = Source { name: &name, bytes };
    let loaded = config::authorization_config::load(&source, &options);
    let refused = |message, diagnostics: &[Diagnostic]| Refused {
        message,
        diagnostics: diagnostics.to_vec(),
        files: looked_at.take(),
    };
    let configuration =
        loaded.outcome.map_err(|error| refused(format!("{error}"), error.diagnostics()))?;
    let types = configuration.built_in_types();
    let added: Vec<AuthorizerType> = types.difference(built_in_types).copied().collect();
    if added.is_empty() {
        return Ok((configuration, loaded.warnings));
    }
    let messages: Vec<String> = added
        .iter()
        .map(|kind| {
            format!(
                "authorizer type {} is not allowed if it was not enabled at initial server startup",
                kind.name()
            )
        })
        .collect();
    let places = places_of_added(&source, built_in_types);
    Err(refused(field_errors::aggregate(&messages), &places))
}

/// Where the types stand that were not there at the start: where a server that does not know them
/// would find a fault.
fn places_of_added(
    source: &Source<'_>,
    built_in_types: &BTreeSet<AuthorizerType>,
) -> Vec<Diagnostic> {
    let webhook = AuthorizerType::Webhook;
    let known_types: Vec<&str> =
        built_in_types.iter().chain([&webhook]).map(|kind| kind.name()).collect();
    let options = LoadOptions { known_types: &known_types, ..LoadOptions::default() };
    match config::authorization_config::load(source, &options).outcome {
        Err(LoadError::Invalid(diagnostics)) => diagnostics,
        Ok(_) | Err(LoadError::Decode(_) | LoadError::Server(_)) => Vec::new(),
    }
}
