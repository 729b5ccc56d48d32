//! Reads the objects of manifests from files and directories.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use document::{Diagnostic, ReadError, Source};
use manifests::{KindHandler, MANIFEST_BYTES_MAX, ManifestObject, UnstructuredObject};

use super::load_failure::FileProblem;
use crate::file_arguments::{self, InputError, STDIN_NAME, is_stdin};

/// Maximum size of all manifests together. They stay in memory until all are read, so that errors can
/// show source lines. A dump of the largest clusters has a tenth of this size.
const MANIFESTS_BYTES_MAX: usize = 1 << 30;

/// The objects that a command uses.
#[derive(Debug, Default)]
pub(crate) struct SelectedObjects {
    /// Objects that the RBAC and node authorizers use.
    pub(crate) authorization_objects: Vec<ManifestObject>,
    /// Objects that the selection of the command keeps.
    pub(crate) kept_objects: Vec<UnstructuredObject>,
}

/// Which further objects a command keeps, and how it validates them.
#[derive(Clone, Copy)]
pub(crate) struct ObjectSelection<'w> {
    pub(crate) kind_handler: KindHandler<'w>,
    pub(crate) validate: &'w dyn Fn(&UnstructuredObject) -> Vec<Diagnostic>,
}

impl ObjectSelection<'_> {
    /// Keeps no further objects.
    pub(crate) const NONE: Self =
        Self { kind_handler: &|_, _| manifests::KindHandling::Standard, validate: &|_| Vec::new() };
    /// Keeps all objects without validation.
    pub(crate) const ALL: Self = Self {
        kind_handler: &|_, _| manifests::KindHandling::KeepUnstructured,
        validate: &|_| Vec::new(),
    };
}

/// Reads all objects below the paths.
///
/// # Errors
/// Every file that can not be read and every error, in the order of the paths.
pub(crate) fn read_manifests(
    paths: &[PathBuf],
    stdin: &mut dyn Read,
    selection: ObjectSelection<'_>,
) -> Result<SelectedObjects, Vec<FileProblem>> {
    let mut problems = Vec::new();
    let mut sources: Vec<(String, Vec<u8>)> = Vec::new();
    let mut n_bytes = 0;
    for file in list_manifest_files(paths, &mut problems) {
        match read_manifest(&file, stdin) {
            Ok(source) => {
                n_bytes += source.1.len();
                sources.push(source);
            }
            Err(error) => problems.push(FileProblem::Unreadable(error.to_string())),
        }
        if n_bytes > MANIFESTS_BYTES_MAX {
            let message =
                format!("all manifests together are larger than {MANIFESTS_BYTES_MAX} bytes");
            return Err(vec![FileProblem::Unreadable(message)]);
        }
    }
    let mut objects = SelectedObjects::default();
    for (name, bytes) in &sources {
        let read = manifests::read_and_keep_kinds(&Source { name, bytes }, selection.kind_handler);
        let mut errors = read.errors;
        let more: Vec<Diagnostic> =
            read.unstructured_objects.iter().flat_map(selection.validate).collect();
        if !more.is_empty() {
            errors.extend(more);
            errors.sort_by_key(|error| error.position);
        }
        problems.extend(invalid_file_problem(name, bytes, errors));
        objects.authorization_objects.extend(read.objects);
        objects.kept_objects.extend(read.unstructured_objects);
    }
    if problems.is_empty() {
        let mut repeated = manifests::find_duplicate_objects(&objects.authorization_objects);
        repeated.extend(manifests::find_duplicate_unstructured(
            &objects.kept_objects.iter().collect::<Vec<_>>(),
        ));
        for (name, bytes) in &sources {
            let (here, elsewhere) = repeated.into_iter().partition(|fault| fault.file == *name);
            repeated = elsewhere;
            problems.extend(invalid_file_problem(name, bytes, here));
        }
    }
    if problems.is_empty() { Ok(objects) } else { Err(problems) }
}

/// Lists the manifest files of all paths, without duplicates: one path may name a file and another path
/// its directory.
fn list_manifest_files(paths: &[PathBuf], problems: &mut Vec<FileProblem>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in paths {
        match file_arguments::manifest_files(path) {
            Ok(files) => all.extend(files),
            Err(error) => problems.push(FileProblem::Unreadable(error.to_string())),
        }
    }
    let mut seen = HashSet::new();
    all.retain(|file| seen.insert(file.clone()));
    all
}

fn invalid_file_problem(name: &str, bytes: &[u8], errors: Vec<Diagnostic>) -> Option<FileProblem> {
    (!errors.is_empty()).then(|| FileProblem::invalid(&Source { name, bytes }, errors))
}

fn read_manifest(path: &Path, stdin: &mut dyn Read) -> Result<(String, Vec<u8>), InputError> {
    if is_stdin(path) {
        let bytes = file_arguments::read_stream_up_to(stdin, MANIFEST_BYTES_MAX);
        let bytes = bytes.map_err(|error| {
            let ReadError { message, .. } = ReadError::new(path, &error);
            InputError::Stdin { name: STDIN_NAME.to_owned(), message }
        })?;
        return Ok((STDIN_NAME.to_owned(), bytes));
    }
    let bytes = file_arguments::read_file_up_to(path, MANIFEST_BYTES_MAX)
        .map_err(|error| ReadError::new(path, &error))?;
    Ok((path.to_string_lossy().into_owned(), bytes))
}
