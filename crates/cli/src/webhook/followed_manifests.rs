//! Manifests that are read again when their contents change.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use authz_reload::sha256_hash;
use component_base::Log;
use manifests::AuthorizerObject;
use manifests::rbac::RbacObject;
use tokio::task::JoinError;

use super::webhook_flags::PolicyFlags;
use crate::file_arguments;
use crate::offline::{FileProblem, LoadFailure, ObjectSelection, read_manifests};

/// Interval at which the contents are compared. Contents count and not times: a mounted volume changes the target of a link.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The roles and bindings of the files, and the digests of these files.
pub(super) struct FollowedManifests {
    pub(super) objects: Vec<RbacObject>,
    file_digests: Vec<FileDigest>,
}

/// The contents of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileDigest {
    path: PathBuf,
    contents: ContentsDigest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ContentsDigest {
    Unreadable,
    /// The file has no characters but white space.
    Empty,
    Sha256(String),
}

/// The error that keeps the earlier objects in effect.
enum ReadAgainError {
    /// The same contents would fail again.
    Contents(String),
    /// The next attempt may succeed with the same contents.
    Read(String),
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
        let file_digests = read_file_digests(flags);
        let read = read_manifests(&paths, &mut std::io::empty(), None, ObjectSelection::NONE);
        let manifests = read.map_err(LoadFailure::Files)?;
        let objects = manifests.authorization_objects.into_iter().filter_map(|object| match object
            .authorizer_object
        {
            AuthorizerObject::Rbac(object) => Some(object),
            AuthorizerObject::Node(_) => None,
        });
        Ok(Self { objects: objects.collect(), file_digests })
    }
}

/// The digests that earlier polls have seen.
struct ManifestPoller {
    /// The contents whose objects are in effect.
    in_effect: Vec<FileDigest>,
    last_polled: Vec<FileDigest>,
    /// Contents that cannot be used, so that they are not parsed at each poll.
    refused: Option<Vec<FileDigest>>,
}

impl ManifestPoller {
    fn new(in_effect: Vec<FileDigest>) -> Self {
        Self { last_polled: in_effect.clone(), in_effect, refused: None }
    }

    /// Whether the files must be read: two polls in a row saw the same new contents.
    fn is_due(&mut self, polled: Vec<FileDigest>) -> bool {
        let is_settled = polled == self.last_polled;
        self.last_polled = polled;
        is_settled
            && self.last_polled != self.in_effect
            && self.refused.as_ref() != Some(&self.last_polled)
    }

    /// Records that the objects of the last polled contents are in effect.
    fn record_in_effect(&mut self) {
        self.in_effect.clone_from(&self.last_polled);
        self.refused = None;
    }

    /// Records that the last polled contents cannot be used.
    fn record_refused(&mut self) {
        self.refused = Some(self.last_polled.clone());
    }
}

/// Reads the files again when their contents change, until the task is dropped:
///
/// 1. At each interval, read the digests of the files.
/// 2. If they are other ones than those in effect, and the same as at the last poll, read the files. A program that writes a
///    file without a rename shows parts of it, which can be valid manifests.
/// 3. If the files changed while they were read, wait for the next poll.
/// 4. If the files cannot be used, the earlier objects stay in effect, and the error is logged.
pub(super) async fn follow_manifests(
    flags: PolicyFlags,
    first: FollowedManifests,
    replace_objects: impl Fn(Vec<RbacObject>) + Send,
    log: Log,
) {
    let mut poller = ManifestPoller::new(first.file_digests);
    let mut last_error = String::new();
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let polled_flags = flags.clone();
        let polling = tokio::task::spawn_blocking(move || Ok(read_file_digests(&polled_flags)));
        let read = match join_reading(polling.await) {
            ControlFlow::Break(()) => return,
            // These contents were not seen, so none are refused.
            ControlFlow::Continue(Err(
                ReadAgainError::Contents(why) | ReadAgainError::Read(why),
            )) => Err(ReadAgainError::Read(why)),
            ControlFlow::Continue(Ok(digests)) => {
                if !poller.is_due(digests) {
                    continue;
                }
                let read_flags = flags.clone();
                let (settled, earlier) = (poller.last_polled.clone(), poller.in_effect.clone());
                let read = move || read_settled_files(&read_flags, &settled, &earlier);
                match join_reading(tokio::task::spawn_blocking(read).await) {
                    ControlFlow::Break(()) => return,
                    ControlFlow::Continue(read) => read,
                }
            }
        };
        match read {
            Ok(None) => {}
            Ok(Some(objects)) => {
                let n_objects = objects.len();
                replace_objects(objects);
                log.notice("the manifests were read again", &[("objects", &n_objects)]);
                poller.record_in_effect();
                last_error.clear();
            }
            Err(error) => {
                let why = match error {
                    ReadAgainError::Read(why) => why,
                    ReadAgainError::Contents(why) => {
                        poller.record_refused();
                        why
                    }
                };
                if why != last_error {
                    let message =
                        "the manifests cannot be read again; the earlier objects stay in effect";
                    log.error(message, &[("why", &why)]);
                    last_error = why;
                }
            }
        }
    }
}

/// Converts the end of a reading task. A panic is an error like others, so that one bug does not end the following of files.
/// Only the end of the runtime cancels the task.
fn join_reading<T>(
    joined: Result<Result<T, ReadAgainError>, JoinError>,
) -> ControlFlow<(), Result<T, ReadAgainError>> {
    match joined {
        Ok(read) => ControlFlow::Continue(read),
        Err(error) if error.is_panic() => {
            let why = "the task that reads the files panicked, which is a bug; change the files";
            ControlFlow::Continue(Err(ReadAgainError::Contents(why.to_owned())))
        }
        Err(_) => ControlFlow::Break(()),
    }
}

/// Reads the objects of files whose contents have settled; `None` if they changed meanwhile.
fn read_settled_files(
    flags: &PolicyFlags,
    settled: &[FileDigest],
    earlier: &[FileDigest],
) -> Result<Option<Vec<RbacObject>>, ReadAgainError> {
    let had_contents = |path: &PathBuf| {
        let is_same = |own: &&FileDigest| own.path == *path;
        let found = earlier.iter().find(is_same);
        found.is_some_and(|own| matches!(own.contents, ContentsDigest::Sha256(_)))
    };
    let is_emptied =
        |own: &&FileDigest| own.contents == ContentsDigest::Empty && had_contents(&own.path);
    if let Some(file) = settled.iter().find(is_emptied) {
        return Err(ReadAgainError::Contents(format!(
            "`{}` is empty, as a file is that is being written; a file without objects must contain a comment",
            file.path.display()
        )));
    }
    let read = FollowedManifests::read(flags);
    if read_file_digests(flags) != settled {
        return Ok(None);
    }
    match read {
        Ok(manifests) => Ok(Some(manifests.objects)),
        Err(failure) => {
            let why = describe_failure(&failure);
            Err(match is_unreadable(&failure) {
                true => ReadAgainError::Read(why),
                false => ReadAgainError::Contents(why),
            })
        }
    }
}

fn is_unreadable(failure: &LoadFailure) -> bool {
    match failure {
        LoadFailure::Usage(_) => false,
        LoadFailure::Files(problems) => {
            problems.iter().any(|problem| matches!(problem, FileProblem::Unreadable(_)))
        }
    }
}

/// Reads the digests of all files.
fn read_file_digests(flags: &PolicyFlags) -> Vec<FileDigest> {
    let paths = flags.object_input_paths();
    let files = paths.into_iter().flat_map(|path| {
        // A directory that cannot be listed has no files here, and an error when it is read.
        file_arguments::manifest_files(path).unwrap_or_default()
    });
    let digest = |path: PathBuf| {
        let contents = match std::fs::read(&path) {
            Err(_) => ContentsDigest::Unreadable,
            Ok(bytes) if bytes.trim_ascii().is_empty() => ContentsDigest::Empty,
            Ok(bytes) => ContentsDigest::Sha256(sha256_hash(&bytes)),
        };
        FileDigest { path, contents }
    };
    files.map(digest).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    const ROLE: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n\
                        metadata: {name: a, namespace: b}\nrules: []\n";

    fn flags(path: PathBuf) -> PolicyFlags {
        PolicyFlags {
            authorization_config: None,
            authorization_policy_file: None,
            filename_flags: Default::default(),
            object_manifest_paths: vec![path],
        }
    }

    fn digests(contents: &str) -> Vec<FileDigest> {
        let contents = ContentsDigest::Sha256(contents.to_owned());
        vec![FileDigest { path: PathBuf::from("a.yaml"), contents }]
    }

    /// A file that is being written shows other contents at each poll.
    #[test]
    fn contents_are_read_after_two_equal_polls() {
        let mut poller = ManifestPoller::new(digests("old"));
        assert!(!poller.is_due(digests("old")), "in effect");
        assert!(!poller.is_due(digests("half")));
        assert!(!poller.is_due(digests("new")));
        assert!(poller.is_due(digests("new")));
        assert!(poller.is_due(digests("new")), "the last attempt could not read the file");
        poller.record_refused();
        assert!(!poller.is_due(digests("new")), "the same error again");
        assert!(!poller.is_due(digests("better")));
        assert!(poller.is_due(digests("better")));
        poller.record_in_effect();
        assert!(!poller.is_due(digests("better")));
    }

    #[test]
    fn a_file_that_lost_its_contents_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        let flags = flags(path.clone());
        let read = |text: &str, earlier: &[FileDigest]| {
            std::fs::write(&path, text).unwrap();
            let digests = read_file_digests(&flags);
            (read_settled_files(&flags, &digests, earlier), digests)
        };
        let (objects, with_role) = read(ROLE, &[]);
        assert_eq!(objects.ok().flatten().map(|own| own.len()), Some(1));
        for emptied in ["", " \n"] {
            let (refused, _) = read(emptied, &with_role);
            let Err(ReadAgainError::Contents(why)) = refused else { panic!("not refused") };
            assert!(why.contains("is empty"), "{why}");
        }
        let (objects, _) = read("# nobody has a role\n", &with_role);
        assert_eq!(objects.ok().flatten().map(|own| own.len()), Some(0));
        let (refused, _) = read("kind: Role\nrules: 7\n", &with_role);
        assert!(matches!(refused, Err(ReadAgainError::Contents(_))));
        // The digests are those of an earlier moment.
        assert!(matches!(read_settled_files(&flags, &with_role, &with_role), Ok(None)));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let flags = flags(folder.path().join("gone.yaml"));
        let settled = read_file_digests(&flags);
        let read = read_settled_files(&flags, &settled, &[]);
        assert!(matches!(read, Err(ReadAgainError::Read(_))));
    }

    #[tokio::test]
    async fn a_panic_does_not_end_the_following_of_files() {
        let panicking: Result<(), ReadAgainError> = Ok(());
        let task = tokio::task::spawn_blocking(move || {
            assert!(panicking.is_err(), "a bug");
            panicking
        });
        let joined = join_reading(task.await);
        assert!(matches!(joined, ControlFlow::Continue(Err(ReadAgainError::Contents(_)))));
    }
}
