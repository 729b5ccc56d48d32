//! The policies of type ABAC.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use document::ReadError;
use manifests::abac;

use super::Parts;
use crate::build_error::BuildCause;
use crate::files::Recording;
use crate::generation::{Abac, Generation};

/// The policies of a file, or those of `previous` if the file is still the same. Whatever comes of
/// it, the file is in `parts`.
pub(super) fn load(
    directory: &Path,
    policy_file: Option<&Path>,
    previous: Option<&Generation>,
    parts: &mut Parts,
) -> Result<Abac, BuildCause> {
    // Without the flag there is no path, and what the system says of that is the message.
    let path = policy_file.map_or_else(PathBuf::new, |path| directory.join(path));
    let given = policy_file.unwrap_or(&path);
    let recording = Recording::default();
    let bytes = recording.read(&path, abac::POLICY_FILE_BYTES_MAX);
    let files = recording.into_files();
    parts.files.note_all(&files);
    let bytes = bytes.map_err(|error| BuildCause::PolicyRead(ReadError::new(given, &error)))?;
    let kept = previous.and_then(|previous| previous.abac.as_ref());
    if let Some(kept) = kept.filter(|kept| kept.files == files) {
        return Ok(kept.clone());
    }
    let name = given.display().to_string();
    let source = document::Source { name: &name, bytes: &bytes };
    let loaded = abac::load(&source, &abac::LoadOptions::default()).map_err(BuildCause::Policy)?;
    parts.warnings.extend(loaded.warnings);
    Ok(Abac { policies: Arc::new(loaded.snapshot), files })
}
