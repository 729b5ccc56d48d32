//! The inputs of `portcullis check`.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use config::FileKind;
use document::{DOCUMENT_BYTES_MAX, ReadError, Source};

use crate::file_arguments::{self, InputPath, ReadInputError, STDIN_NAME};

/// An input of `portcullis check`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum CheckInput {
    File(PathBuf),
    Stdin {
        name: String,
    },
    /// A directory whose files cannot be listed, or that contains no manifest.
    UnreadableDirectory {
        name: String,
        message: String,
    },
}

/// The content of an input.
#[derive(Debug)]
pub(super) struct InputContent {
    pub(super) content_bytes: Vec<u8>,
    /// The given or detected kind.
    pub(super) kind: Option<FileKind>,
}

impl CheckInput {
    /// Returns the inputs that an argument names.
    pub(super) fn inputs_from_argument(
        input: InputPath<'_>,
        stdin_name: Option<&Path>,
    ) -> Vec<Self> {
        if input.is_stdin() {
            let name = stdin_name.map_or(STDIN_NAME.into(), |name| name.to_string_lossy());
            return vec![Self::Stdin { name: name.into_owned() }];
        }
        match file_arguments::manifest_files(input) {
            Ok(files) => files.into_iter().map(Self::File).collect(),
            Err(error) => {
                vec![Self::UnreadableDirectory {
                    name: input.path.to_string_lossy().into_owned(),
                    message: error.to_string(),
                }]
            }
        }
    }

    pub(super) fn is_stdin(&self) -> bool {
        matches!(self, Self::Stdin { .. })
    }

    /// Returns the path if the input is a file.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stdin { .. } | Self::UnreadableDirectory { .. } => None,
        }
    }

    /// Reports whether the input is the file at `path`. It compares canonical paths.
    pub(super) fn is_same_file(&self, path: &Path) -> bool {
        self.path().is_some_and(|own| {
            own == path
                || own.canonicalize().is_ok_and(|own| path.canonicalize().is_ok_and(|it| it == own))
        })
    }

    /// Returns the name of the input in findings.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(path) => path.to_string_lossy().into_owned(),
            Self::Stdin { name } | Self::UnreadableDirectory { name, .. } => name.clone(),
        }
    }

    /// Reads the content and detects its kind if none is given. It reads at most one byte beyond the
    /// limit of the kind, and the loader of the kind reports the excess.
    pub(super) fn read(
        &self,
        stdin: &mut dyn Read,
        kind: Option<FileKind>,
    ) -> Result<InputContent, ReadInputError> {
        match self {
            Self::File(path) => File::open(path)
                .and_then(|mut file| read_and_detect_file_kind(&mut file, kind))
                .map_err(|error| ReadError::new(path, &error).into()),
            Self::Stdin { name } => read_and_detect_file_kind(stdin, kind).map_err(|error| {
                ReadInputError::Stdin { name: name.clone(), message: error.to_string() }
            }),
            Self::UnreadableDirectory { message, .. } => {
                Err(ReadInputError::Directory(message.clone()))
            }
        }
    }
}

fn read_and_detect_file_kind(
    reader: &mut dyn Read,
    kind: Option<FileKind>,
) -> io::Result<InputContent> {
    let mut bytes = Vec::new();
    read_until_n_bytes(reader, &mut bytes, DOCUMENT_BYTES_MAX + 1)?;
    let kind =
        kind.or_else(|| FileKind::detect_file_kind(&Source { name: "", file_bytes: &bytes }));
    let bytes_max = kind.map_or(DOCUMENT_BYTES_MAX, FileKind::file_bytes_max);
    read_until_n_bytes(reader, &mut bytes, bytes_max + 1)?;
    Ok(InputContent { content_bytes: bytes, kind })
}

/// Reads until `bytes` has `n_bytes` bytes, or until the end.
fn read_until_n_bytes(
    reader: &mut dyn Read,
    bytes: &mut Vec<u8>,
    n_bytes: usize,
) -> io::Result<()> {
    let rest = n_bytes.saturating_sub(bytes.len());
    reader.take(u64::try_from(rest).unwrap_or(u64::MAX)).read_to_end(bytes)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stdin() -> CheckInput {
        CheckInput::Stdin { name: STDIN_NAME.to_owned() }
    }

    #[test]
    fn a_dash_is_standard_input() {
        let input = |path: &str, name: Option<&str>| {
            let path =
                InputPath { path: Path::new(path), is_recursive: true, exclude_patterns: &[] };
            CheckInput::inputs_from_argument(path, name.map(Path::new))
        };
        assert_eq!(input("-", None), [stdin()]);
        assert_eq!(input("-", Some("a.yaml"))[0].name(), "a.yaml");
        assert_eq!(input("./-", Some("a.yaml")), [CheckInput::File("./-".into())]);
    }

    #[test]
    fn endless_input_is_read_up_to_the_limit_of_its_kind() {
        let n_read = |text: &'static str, kind| {
            let mut endless = text.as_bytes().chain(io::repeat(b'#'));
            let content = stdin().read(&mut endless, kind).unwrap();
            (content.kind, content.content_bytes.len())
        };
        assert_eq!(n_read("", None), (None, DOCUMENT_BYTES_MAX + 1));
        let policy = FileKind::AbacPolicy;
        let limit = policy.file_bytes_max() + 1;
        assert_eq!(n_read("", Some(policy)), (Some(policy), limit));
        assert_eq!(n_read("{\"user\":\"a\"}\n", None), (Some(policy), limit));
        let configuration = FileKind::AuthorizationConfiguration;
        assert_eq!(
            n_read("apiVersion: apiserver.config.k8s.io/v1\n", None),
            (Some(configuration), DOCUMENT_BYTES_MAX + 1)
        );
    }

    #[test]
    fn a_failing_reader_is_named() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("it broke"))
            }
        }
        let error = stdin().read(&mut Broken, None).unwrap_err();
        assert_eq!(error.to_string(), "read <stdin>: it broke");
    }
}
