//! The objects of manifests, from files and folders.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use document::{Diagnostic, ReadError, Source};
use manifests::{KindHandler, MANIFEST_BYTES_MAX, ManifestObject, WholeObject};

use super::show::Trouble;
use crate::files;

/// What messages call standard input.
const STDIN_NAME: &str = "<stdin>";

/// The most bytes of all manifests together: they are kept until all are read, to
/// show what is wrong. A dump of the largest clusters has a tenth of it.
const ALL_BYTES_MAX: usize = 1 << 30;

/// What manifests hold.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// What authorizers learn from.
    pub(crate) found: Vec<ManifestObject>,
    /// What the command wants besides.
    pub(crate) kept: Vec<WholeObject>,
}

/// Which further objects a command wants, and what is wrong with one of them.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'w> {
    pub(crate) keeps: KindHandler<'w>,
    pub(crate) faults: &'w dyn Fn(&WholeObject) -> Vec<Diagnostic>,
}

impl Wanted<'_> {
    /// None.
    pub(crate) const NOTHING: Self =
        Self { keeps: &|_, _| manifests::KindHandling::Standard, faults: &|_| Vec::new() };
    /// All, as they are.
    pub(crate) const EVERYTHING: Self =
        Self { keeps: &|_, _| manifests::KindHandling::KeepWhole, faults: &|_| Vec::new() };
}

/// Reads all objects below the paths.
///
/// # Errors
/// Everything that can not be read or is wrong, in the order of the paths. Nothing is loaded then.
pub(crate) fn read(
    paths: &[PathBuf],
    stdin: &mut dyn Read,
    wanted: Wanted<'_>,
) -> Result<Objects, Vec<Trouble>> {
    let mut troubles = Vec::new();
    let mut sources: Vec<(String, Vec<u8>)> = Vec::new();
    let mut n_bytes = 0;
    for file in files(paths, &mut troubles) {
        match read_file(&file, stdin) {
            Ok(source) => {
                n_bytes += source.1.len();
                sources.push(source);
            }
            Err(message) => troubles.push(Trouble::Unreadable(message)),
        }
        if n_bytes > ALL_BYTES_MAX {
            let message = format!("all manifests together are larger than {ALL_BYTES_MAX} bytes");
            return Err(vec![Trouble::Unreadable(message)]);
        }
    }
    let mut objects = Objects::default();
    for (name, bytes) in &sources {
        let read = manifests::read_and_keep_kinds(&Source { name, bytes }, wanted.keeps);
        let mut errors = read.errors;
        let more: Vec<Diagnostic> = read.whole_objects.iter().flat_map(wanted.faults).collect();
        if !more.is_empty() {
            errors.extend(more);
            errors.sort_by_key(|error| error.position);
        }
        troubles.extend(trouble(name, bytes, errors));
        objects.found.extend(read.objects);
        objects.kept.extend(read.whole_objects);
    }
    if troubles.is_empty() {
        let mut repeated = manifests::duplicate_objects(&objects.found);
        repeated
            .extend(manifests::duplicate_whole_objects(&objects.kept.iter().collect::<Vec<_>>()));
        for (name, bytes) in &sources {
            let (here, elsewhere) = repeated.into_iter().partition(|fault| fault.file == *name);
            repeated = elsewhere;
            troubles.extend(trouble(name, bytes, here));
        }
    }
    if troubles.is_empty() { Ok(objects) } else { Err(troubles) }
}

/// The files that the paths mean. One that is named, and also in a folder that is named, is one.
fn files(paths: &[PathBuf], troubles: &mut Vec<Trouble>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in paths {
        match files::expand(path) {
            Ok(files) => all.extend(files),
            Err(message) => troubles.push(Trouble::Unreadable(message)),
        }
    }
    let mut seen = HashSet::new();
    all.retain(|file| seen.insert(file.clone()));
    all
}

fn trouble(name: &str, bytes: &[u8], errors: Vec<Diagnostic>) -> Option<Trouble> {
    (!errors.is_empty()).then(|| Trouble::faulty(&Source { name, bytes }, errors))
}

fn read_file(path: &Path, stdin: &mut dyn Read) -> Result<(String, Vec<u8>), String> {
    if path == Path::new("-") {
        let bytes = files::read_limited(stdin, MANIFEST_BYTES_MAX);
        let bytes = bytes.map_err(|error| {
            let ReadError { message, .. } = ReadError::new(path, &error);
            format!("read {STDIN_NAME}: {message}")
        })?;
        return Ok((STDIN_NAME.to_owned(), bytes));
    }
    let bytes = files::read_up_to(path, MANIFEST_BYTES_MAX)
        .map_err(|error| ReadError::new(path, &error).to_string())?;
    Ok((path.to_string_lossy().into_owned(), bytes))
}
