//! Reads the configuration files and compares them with the configuration in effect.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use authz_chain::{AuthorizerType, Configuration, PluginType};
use config::authorization_config::{LoadError, LoadOptions};
use document::{DOCUMENT_BYTES_MAX, Diagnostic, ReadError, Source, Warning};

use crate::build_authorizers::AuthorizerBuilder;
use crate::build_error::BuildError;
use crate::config_generation::Generation;
use crate::file_set::{FileSet, read_file_up_to};
use crate::plan_from_flags::ConfigFilePlan;
use crate::sha256_hash::sha256_hash;

/// The configuration in effect, with which the files are compared.
pub(super) struct CurrentConfig<'a> {
    /// The generation that decides requests now.
    pub(super) generation: &'a Generation,
    /// The hash of the configuration file when a check last found that it defines this generation. It differs from
    /// the hash of the generation if only a comment has changed since.
    pub(super) config_file_hash: &'a str,
    /// The built-in authorizer types that the server started with.
    pub(super) initial_built_in_types: &'a BTreeSet<AuthorizerType>,
}

/// The result of an inspection.
pub(super) enum FileInspectionResult {
    /// The configuration file cannot be read.
    Unreadable(ReadError),
    /// The files define the configuration in effect.
    Unchanged {
        /// The hash of the configuration file.
        hash: String,
    },
    /// The files cannot be used.
    Rejected(RejectedFiles),
    /// The files define another configuration, which is built.
    Built(Box<Generation>),
}

/// Files that do not define a valid configuration.
#[derive(Debug)]
pub(super) struct RejectedFiles {
    /// The hash of the configuration file.
    pub(super) hash: String,
    /// The error as one line of text.
    pub(super) message: String,
    /// The faults that have a position in a file.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The other files that were read: a change of one of them may repair the configuration.
    pub(super) other_file_paths: Vec<PathBuf>,
    /// The content of those files; `None` if the configuration file itself is invalid.
    pub(super) file_states: Option<FileSet>,
}

impl RejectedFiles {
    /// Reports whether both were rejected for the same edit. Messages do not count if the contents are known, because a
    /// webhook that does not answer fails with another message each time.
    pub(super) fn is_same_rejected_edit(&self, other: &Self) -> bool {
        self.hash == other.hash
            && match (&self.file_states, &other.file_states) {
                (Some(ours), Some(theirs)) => ours == theirs,
                (None, None) => self.message == other.message,
                (Some(_), None) | (None, Some(_)) => false,
            }
    }
}

/// Reads the configuration file and, if anything has changed, every file that it refers to.
///
/// 1. Read the configuration file. If that fails, the result is `Unreadable`.
/// 2. If its hash is the known hash of the configuration in effect and no file that it refers to has changed, the
///    result is `Unchanged`.
/// 3. Decode and validate the file. It must contain the built-in types that the server started with.
/// 4. If it defines the configuration in effect and no other file has changed, the result is `Unchanged`.
/// 5. Build the authorizers.
pub(super) fn inspect_files(
    builder: &AuthorizerBuilder,
    plan: &ConfigFilePlan,
    current: &CurrentConfig<'_>,
) -> FileInspectionResult {
    let path = builder.base_directory.join(&plan.path);
    let bytes = match read_file_up_to(&path, DOCUMENT_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) => return FileInspectionResult::Unreadable(ReadError::new(&path, &error)),
    };
    let hash = sha256_hash(&bytes);
    let are_unchanged = current.generation.file_set.are_files_unchanged();
    if hash == current.config_file_hash && are_unchanged {
        return FileInspectionResult::Unchanged { hash };
    }
    let (configuration, warnings) = match load_configuration(
        &path,
        &bytes,
        current.initial_built_in_types,
        &builder.plugin_authorizers.plugin_types(),
    ) {
        Ok(loaded) => loaded,
        Err(rejected) => return FileInspectionResult::Rejected(rejected.with_config_hash(hash)),
    };
    if configuration == current.generation.configuration && are_unchanged {
        return FileInspectionResult::Unchanged { hash };
    }
    let origin = builder.config_origin_of_file(plan, &bytes);
    match builder.build_next_generation(&configuration, origin, Some(current.generation)) {
        Ok(mut generation) => {
            generation.warnings.splice(0..0, warnings);
            FileInspectionResult::Built(Box::new(generation))
        }
        Err(error) => FileInspectionResult::Rejected(
            RejectedFilesWithoutHash::from(error).with_config_hash(hash),
        ),
    }
}

/// Files that do not define a valid configuration, without the hash of the configuration file.
struct RejectedFilesWithoutHash {
    message: String,
    diagnostics: Vec<Diagnostic>,
    other_file_paths: Vec<PathBuf>,
    file_states: Option<FileSet>,
}

impl RejectedFilesWithoutHash {
    fn with_config_hash(self, hash: String) -> RejectedFiles {
        let Self { message, diagnostics, other_file_paths: files, file_states: contents } = self;
        RejectedFiles { hash, message, diagnostics, other_file_paths: files, file_states: contents }
    }
}

impl From<BuildError> for RejectedFilesWithoutHash {
    fn from(error: BuildError) -> Self {
        Self {
            message: error.to_string(),
            diagnostics: error.diagnostics().to_vec(),
            other_file_paths: error.file_set.file_paths().map(Path::to_owned).collect(),
            file_states: Some(error.file_set),
        }
    }
}

/// Decodes and validates a configuration file. A reload can neither add nor remove a built-in type.
fn load_configuration(
    path: &Path,
    bytes: &[u8],
    built_in_types: &BTreeSet<AuthorizerType>,
    plugin_authorizer_types: &[PluginType],
) -> Result<(Configuration, Vec<Warning>), RejectedFilesWithoutHash> {
    // A missing kubeconfig makes the file invalid, so the reloader must watch for its creation.
    let probed_files = RefCell::new(Vec::new());
    let stat_and_record = |path: &Path| {
        probed_files.borrow_mut().push(path.to_owned());
        config::authorization_config::stat_file(path)
    };
    let required: Vec<AuthorizerType> = built_in_types.iter().copied().collect();
    let options = LoadOptions {
        plugin_authorizer_types,
        required_authorizer_types: &required,
        stat_file: &stat_and_record,
        ..LoadOptions::default()
    };
    let name = path.display().to_string();
    let source = Source { name: &name, file_bytes: bytes };
    let loaded = config::authorization_config::load_authorization_configuration(&source, &options);
    let rejected = |message, diagnostics: &[Diagnostic]| RejectedFilesWithoutHash {
        message,
        diagnostics: diagnostics.to_vec(),
        other_file_paths: probed_files.take(),
        file_states: None,
    };
    let configuration =
        loaded.configuration.map_err(|error| rejected(format!("{error}"), error.diagnostics()))?;
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
    let diagnostics = diagnose_added_types(&source, built_in_types, plugin_authorizer_types);
    Err(rejected(field_errors::aggregate_messages(&messages), &diagnostics))
}

/// Finds the positions of the types that the server did not start with: a load that does not know these types
/// reports a fault at each of them.
fn diagnose_added_types(
    source: &Source<'_>,
    built_in_types: &BTreeSet<AuthorizerType>,
    plugin_authorizer_types: &[PluginType],
) -> Vec<Diagnostic> {
    let webhook = AuthorizerType::Webhook;
    let known_authorizer_types: Vec<&str> =
        built_in_types.iter().chain([&webhook]).map(|kind| kind.name()).collect();
    let options = LoadOptions {
        known_authorizer_types: &known_authorizer_types,
        plugin_authorizer_types,
        ..LoadOptions::default()
    };
    match config::authorization_config::load_authorization_configuration(source, &options)
        .configuration
    {
        Err(LoadError::Invalid(diagnostics)) => diagnostics,
        Ok(_) | Err(LoadError::Decode(_) | LoadError::Server(_)) => Vec::new(),
    }
}
