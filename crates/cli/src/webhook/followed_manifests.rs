//! Manifests that are read again when their contents change.

use std::time::Duration;

use authz_reload::sha256_hash;
use component_base::Log;
use manifests::AuthorizerObject;
use manifests::rbac::RbacObject;

use super::webhook_flags::PolicyFlags;
use crate::file_arguments;
use crate::offline::{FileProblem, LoadFailure, ObjectSelection, read_manifests};

/// Interval at which the contents are compared. Contents count and not times: a mounted volume changes the target of a link.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The roles and bindings of the files, and the digest of these files.
pub(super) struct FollowedManifests {
    pub(super) objects: Vec<RbacObject>,
    contents_digest: String,
}

impl FollowedManifests {
    /// Reads the files that the flags name.
    ///
    /// # Errors
    /// A file cannot be read or is invalid, or standard input is named, which cannot change.
    pub(super) fn read(flags: &PolicyFlags) -> Result<Self, LoadFailure> {
        let paths = flags.object_input_paths();
        if paths.iter().any(|path| path.is_stdin()) {
            let message = "-f: standard input cannot be read again; name files".to_owned();
            return Err(LoadFailure::Usage(vec![message]));
        }
        let contents_digest = digest_of_contents(flags);
        let read = read_manifests(&paths, &mut std::io::empty(), None, ObjectSelection::NONE);
        let manifests = read.map_err(LoadFailure::Files)?;
        let objects = manifests.authorization_objects.into_iter().filter_map(|object| match object
            .authorizer_object
        {
            AuthorizerObject::Rbac(object) => Some(object),
            AuthorizerObject::Node(_) => None,
        });
        Ok(Self { objects: objects.collect(), contents_digest })
    }
}

/// Reads the files again when their contents change, until the task is dropped. If they cannot be used, the old objects stay
/// in effect, and the error is logged.
pub(super) async fn follow_manifests(
    flags: PolicyFlags,
    first: FollowedManifests,
    replace_objects: impl Fn(Vec<RbacObject>) + Send,
    log: Log,
) {
    let mut contents_digest = first.contents_digest;
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let (reading_flags, known) = (flags.clone(), contents_digest.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let digest = digest_of_contents(&reading_flags);
            (digest != known).then(|| (FollowedManifests::read(&reading_flags), digest))
        });
        // The join fails only when the runtime shuts down.
        let Ok(read) = reading.await else { return };
        match read {
            None => {}
            Some((Ok(manifests), _)) => {
                let n_objects = manifests.objects.len();
                replace_objects(manifests.objects);
                log.notice("the manifests were read again", &[("objects", &n_objects)]);
                contents_digest = manifests.contents_digest;
            }
            Some((Err(failure), digest)) => {
                let message = "the manifests cannot be read again; the old objects stay in effect";
                log.error(message, &[("why", &describe_failure(&failure))]);
                contents_digest = digest;
            }
        }
    }
}

/// The digest of the names and contents of all files. A file that cannot be read counts as empty.
fn digest_of_contents(flags: &PolicyFlags) -> String {
    let mut digests = String::new();
    for path in flags.object_input_paths() {
        for file in file_arguments::manifest_files(path).unwrap_or_default() {
            let contents = std::fs::read(&file).unwrap_or_default();
            digests.push_str(&format!("{} {}\n", file.display(), sha256_hash(&contents)));
        }
    }
    sha256_hash(digests.as_bytes())
}

fn describe_failure(failure: &LoadFailure) -> String {
    match failure {
        LoadFailure::Usage(messages) => messages.join("; "),
        LoadFailure::Files(problems) => {
            let describe = |problem: &FileProblem| match problem {
                FileProblem::Unreadable(message) => message.clone(),
                FileProblem::Invalid { name, errors, .. } => match errors.first() {
                    Some(first) => format!("{name}:{}: {}", first.position.line, first.fault),
                    None => name.clone(),
                },
            };
            problems.iter().map(describe).collect::<Vec<_>>().join("; ")
        }
    }
}
