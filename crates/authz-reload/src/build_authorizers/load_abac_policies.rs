//! Loads the ABAC policy file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use document::ReadError;
use manifests::abac;

use super::{AuthorizerBuilder, PartialGeneration};
use crate::build_error::BuildErrorCause;
use crate::config_generation::{AbacPolicyFile, Generation};
use crate::file_set::FileRecorder;

/// Loads the policies of a file, or reuses those of `previous` if the file has not changed. It adds the file to
/// `parts` in any case.
pub(super) fn load_or_reuse_abac_policies(
    builder: &AuthorizerBuilder,
    policy_file: Option<&Path>,
    previous: Option<&Generation>,
    parts: &mut PartialGeneration,
) -> Result<AbacPolicyFile, BuildErrorCause> {
    // The loader of the configuration has refused the type without a file. If the flag is absent all the same, the path
    // is empty, and the error message is that of the operating system.
    let path = policy_file.map_or_else(PathBuf::new, |path| builder.base_directory.join(path));
    let given = policy_file.unwrap_or(&path);
    let recorder = FileRecorder::default();
    let bytes = recorder.read(&path, abac::POLICY_FILE_BYTES_MAX);
    let files = recorder.into_file_set();
    parts.files_read.add_all_files(&files);
    let bytes =
        bytes.map_err(|error| BuildErrorCause::PolicyRead(ReadError::new(given, &error)))?;
    let reusable = previous.and_then(|previous| previous.abac_policy_file.as_ref());
    if let Some(reusable) = reusable.filter(|reusable| reusable.file_set == files) {
        return Ok(reusable.clone());
    }
    let name = given.display().to_string();
    let source = document::Source { name: &name, file_bytes: &bytes };
    let loaded = abac::load_abac_policies(&source, &builder.abac_options)
        .map_err(BuildErrorCause::Policy)?;
    parts.warnings.extend(loaded.warnings);
    Ok(AbacPolicyFile { abac_policies: Arc::new(loaded.abac_policy_snapshot), file_set: files })
}
