//! Reads the objects of manifests from files and directories.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use document::{Diagnostic, ReadError, Source, Warning};
use manifests::{
    DuplicateObjects, KindHandler, KindHandling, MANIFEST_BYTES_MAX, ManifestObject,
    ManifestReadOptions, UnstructuredObject,
};

use super::load_failure::FileProblem;
use crate::file_arguments::{self, InputPath, ReadInputError, STDIN_NAME, is_stdin};

/// Maximum size of all manifests together. They stay in memory until all are read, so that errors can
/// show source lines. A dump of the largest clusters has a tenth of this size.
const MANIFESTS_BYTES_MAX: usize = 1 << 30;

/// The objects of all manifests, by their use in a command.
#[derive(Debug, Default)]
pub(crate) struct LoadedManifests {
    /// Objects that the RBAC and node authorizers use.
    pub(crate) authorization_objects: Vec<ManifestObject>,
    /// Objects that the selection of the command keeps.
    pub(crate) selected_objects: Vec<UnstructuredObject>,
    /// Definitions of resources and of aggregated groups, which tell the names of resources.
    pub(crate) resource_definitions: Vec<UnstructuredObject>,
    /// Notes and warnings for standard error: skipped files and repeated objects.
    pub(crate) input_remarks: Vec<String>,
}

/// The objects that a command keeps besides those of authorizers, and how it validates them.
#[derive(Clone, Copy)]
pub(crate) struct ObjectSelection<'w> {
    pub(crate) kind_handler: KindHandler<'w>,
    pub(crate) validate_object: &'w dyn Fn(&UnstructuredObject) -> Vec<Diagnostic>,
}

impl ObjectSelection<'_> {
    /// Keeps no further objects.
    pub(crate) const NONE: Self = Self {
        kind_handler: &|_, _| manifests::KindHandling::Standard,
        validate_object: &|_| Vec::new(),
    };
    /// Keeps all objects without validation.
    pub(crate) const ALL: Self = Self {
        kind_handler: &|_, _| manifests::KindHandling::KeepUnstructured,
        validate_object: &|_| Vec::new(),
    };
}

/// Reports whether objects of a kind tell the names of resources.
fn defines_resource_names(api_version: &str, kind: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    matches!(
        (group, kind),
        ("apiextensions.k8s.io", "CustomResourceDefinition")
            | ("apiregistration.k8s.io", "APIService")
    )
}

/// Reads all objects below the paths. `namespace` is that of objects that have none.
///
/// # Errors
/// Every file that cannot be read and every error, in the order of the paths.
pub(crate) fn read_manifests(
    paths: &[InputPath<'_>],
    stdin: &mut dyn Read,
    namespace: Option<&str>,
    selection: ObjectSelection<'_>,
) -> Result<LoadedManifests, Vec<FileProblem>> {
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
    let mut objects = LoadedManifests::default();
    let kind_handler =
        |api_version: &str, kind: &str| match (selection.kind_handler)(api_version, kind) {
            KindHandling::Standard if defines_resource_names(api_version, kind) => {
                KindHandling::KeepUnstructured
            }
            handling => handling,
        };
    let is_kept = |object: &UnstructuredObject| {
        let handling = (selection.kind_handler)(object.api_version(), object.kind_name());
        handling == KindHandling::KeepUnstructured
    };
    let options = ManifestReadOptions { kind_handler: &kind_handler, default_namespace: namespace };
    for (name, bytes) in &sources {
        let read =
            manifests::read_manifests_with_options(&Source { name, file_bytes: bytes }, options);
        if read.has_no_objects {
            match name == STDIN_NAME && bytes.is_empty() {
                // The program that should write to the pipe has failed.
                true => problems.push(FileProblem::Unreadable(format!("{STDIN_NAME} is empty"))),
                false => objects
                    .input_remarks
                    .push(format!("note: {name}: no Kubernetes object, skipped")),
            }
        }
        let mut errors = read.errors;
        let defines_resource_names = |object: &&UnstructuredObject| {
            defines_resource_names(object.api_version(), object.kind_name())
        };
        objects
            .resource_definitions
            .extend(read.unstructured_objects.iter().filter(defines_resource_names).cloned());
        let kept: Vec<UnstructuredObject> =
            read.unstructured_objects.into_iter().filter(is_kept).collect();
        let more: Vec<Diagnostic> = kept.iter().flat_map(selection.validate_object).collect();
        if !more.is_empty() {
            errors.extend(more);
            errors.sort_by_key(|error| error.position);
        }
        problems.extend(invalid_file_problem(name, bytes, errors));
        objects.authorization_objects.extend(read.authorizer_objects);
        objects.selected_objects.extend(kept);
    }
    if problems.is_empty() {
        let DuplicateObjects { errors: mut repeated, warnings } =
            manifests::find_duplicate_objects(&objects.authorization_objects);
        let kept: Vec<&UnstructuredObject> = objects.selected_objects.iter().collect();
        let of_kept = manifests::find_duplicate_unstructured_objects(&kept);
        repeated.extend(of_kept.errors);
        objects
            .input_remarks
            .extend(warnings.iter().chain(&of_kept.warnings).map(describe_warning));
        for (name, bytes) in &sources {
            let (here, elsewhere) =
                repeated.into_iter().partition(|fault| fault.file_name == *name);
            repeated = elsewhere;
            problems.extend(invalid_file_problem(name, bytes, here));
        }
    }
    if problems.is_empty() { Ok(objects) } else { Err(problems) }
}

/// Lists the manifest files of all paths, without duplicates: one path may name a file and another path
/// its directory.
fn list_manifest_files(paths: &[InputPath<'_>], problems: &mut Vec<FileProblem>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in paths {
        match file_arguments::manifest_files(*path) {
            Ok(files) => all.extend(files),
            Err(error) => problems.push(FileProblem::Unreadable(error.to_string())),
        }
    }
    let mut seen = HashSet::new();
    all.retain(|file| seen.insert(file.clone()));
    all
}

fn describe_warning(warning: &Warning) -> String {
    let Warning { file_name: file, position, message, .. } = warning;
    format!("warning: {file}:{}:{}: {message}", position.line, position.column)
}

fn invalid_file_problem(name: &str, bytes: &[u8], errors: Vec<Diagnostic>) -> Option<FileProblem> {
    (!errors.is_empty())
        .then(|| FileProblem::from_errors(&Source { name, file_bytes: bytes }, errors))
}

fn read_manifest(path: &Path, stdin: &mut dyn Read) -> Result<(String, Vec<u8>), ReadInputError> {
    if is_stdin(path) {
        let bytes = file_arguments::read_stream_up_to(stdin, MANIFEST_BYTES_MAX);
        let bytes = bytes.map_err(|error| {
            let ReadError { message, .. } = ReadError::new(path, &error);
            ReadInputError::Stdin { name: STDIN_NAME.to_owned(), message }
        })?;
        return Ok((STDIN_NAME.to_owned(), bytes));
    }
    let bytes = file_arguments::read_file_up_to(path, MANIFEST_BYTES_MAX)
        .map_err(|error| ReadError::new(path, &error))?;
    Ok((path.to_string_lossy().into_owned(), bytes))
}
