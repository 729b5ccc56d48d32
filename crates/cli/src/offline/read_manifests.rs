//! The objects of manifests, from files and folders.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use document::{Diagnostic, ReadError, Source};
use manifests::{KindHandler, MANIFEST_BYTES_MAX, ManifestObject, WholeObject};

use super::load_failure::FileProblem;
use crate::file_arguments;

/// What messages call standard input.
const STDIN_NAME: &str = "<stdin>";

/// The most bytes of all manifests together: they are other_objects until all are read, to
/// show what is wrong. A dump of the largest clusters has a tenth of it.
const MANIFESTS_BYTES_MAX: usize = 1 << 30;

/// What manifests hold.
#[derive(Debug, Default)]
pub(crate) struct SelectedObjects {
    /// What authorizers learn from.
    pub(crate) authorization_objects: Vec<ManifestObject>,
    /// What the command wants besides.
    pub(crate) other_objects: Vec<WholeObject>,
}

/// Which further objects a command wants, and what is wrong with one of them.
#[derive(Clone, Copy)]
pub(crate) struct ObjectSelection<'w> {
    pub(crate) kind_handler: KindHandler<'w>,
    pub(crate) validate: &'w dyn Fn(&WholeObject) -> Vec<Diagnostic>,
}

impl ObjectSelection<'_> {
    /// None.
    pub(crate) const NONE: Self =
        Self { kind_handler: &|_, _| manifests::KindHandling::Standard, validate: &|_| Vec::new() };
    /// All, as they are.
    pub(crate) const ALL: Self = Self {
        kind_handler: &|_, _| manifests::KindHandling::KeepWhole,
        validate: &|_| Vec::new(),
    };
}

/// Reads all objects below the paths.
///
/// # Errors
/// Everything that can not be read or is wrong, in the order of the paths. Nothing is loaded then.
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
            Err(message) => problems.push(FileProblem::Unreadable(message)),
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
            read.whole_objects.iter().flat_map(selection.validate).collect();
        if !more.is_empty() {
            errors.extend(more);
            errors.sort_by_key(|error| error.position);
        }
        problems.extend(invalid_file(name, bytes, errors));
        objects.authorization_objects.extend(read.objects);
        objects.other_objects.extend(read.whole_objects);
    }
    if problems.is_empty() {
        let mut repeated = manifests::duplicate_objects(&objects.authorization_objects);
        repeated.extend(manifests::duplicate_whole_objects(
            &objects.other_objects.iter().collect::<Vec<_>>(),
        ));
        for (name, bytes) in &sources {
            let (here, elsewhere) = repeated.into_iter().partition(|fault| fault.file == *name);
            repeated = elsewhere;
            problems.extend(invalid_file(name, bytes, here));
        }
    }
    if problems.is_empty() { Ok(objects) } else { Err(problems) }
}

/// The files that the paths mean. One that is named, and also in a folder that is named, is one.
fn list_manifest_files(paths: &[PathBuf], problems: &mut Vec<FileProblem>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in paths {
        match file_arguments::manifest_files(path) {
            Ok(files) => all.extend(files),
            Err(message) => problems.push(FileProblem::Unreadable(message)),
        }
    }
    let mut seen = HashSet::new();
    all.retain(|file| seen.insert(file.clone()));
    all
}

fn invalid_file(name: &str, bytes: &[u8], errors: Vec<Diagnostic>) -> Option<FileProblem> {
    (!errors.is_empty()).then(|| FileProblem::invalid(&Source { name, bytes }, errors))
}

fn read_manifest(path: &Path, stdin: &mut dyn Read) -> Result<(String, Vec<u8>), String> {
    if path == Path::new("-") {
        let bytes = file_arguments::read_stream_up_to(stdin, MANIFEST_BYTES_MAX);
        let bytes = bytes.map_err(|error| {
            let ReadError { message, .. } = ReadError::new(path, &error);
            format!("read {STDIN_NAME}: {message}")
        })?;
        return Ok((STDIN_NAME.to_owned(), bytes));
    }
    let bytes = file_arguments::read_file_up_to(path, MANIFEST_BYTES_MAX)
        .map_err(|error| ReadError::new(path, &error).to_string())?;
    Ok((path.to_string_lossy().into_owned(), bytes))
}
