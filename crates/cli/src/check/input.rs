//! Where the bytes to check come from.

use std::io::Read;
use std::path::{Path, PathBuf};

use api::DOCUMENT_BYTES_MAX;
use api::authorization::read;

/// What findings call standard input unless told otherwise.
const STDIN_NAME: &str = "<stdin>";

/// Something to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    File(PathBuf),
    Stdin { name: String },
}

impl Input {
    pub(super) fn from_argument(path: &Path, stdin_name: Option<&Path>) -> Self {
        if path != Path::new("-") {
            return Self::File(path.to_owned());
        }
        let name = stdin_name.map_or(STDIN_NAME.into(), |name| name.to_string_lossy());
        Self::Stdin { name: name.into_owned() }
    }

    pub(super) fn is_stdin(&self) -> bool {
        matches!(self, Self::Stdin { .. })
    }

    /// What findings call it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(path) => path.to_string_lossy().into_owned(),
            Self::Stdin { name } => name.clone(),
        }
    }

    /// The content, or why there is none. One byte more than the loader accepts is read, and the
    /// loader says that this is too much.
    pub(super) fn read(&self, stdin: &mut dyn Read) -> Result<Vec<u8>, String> {
        match self {
            Self::File(path) => read(path).map_err(|error| error.to_string()),
            Self::Stdin { name } => {
                let limit = u64::try_from(DOCUMENT_BYTES_MAX).unwrap_or(u64::MAX);
                let mut bytes = Vec::new();
                match stdin.take(limit.saturating_add(1)).read_to_end(&mut bytes) {
                    Ok(_) => Ok(bytes),
                    Err(error) => Err(format!("read {name}: {error}")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_dash_is_standard_input() {
        let input = |path: &str, name: Option<&str>| {
            Input::from_argument(Path::new(path), name.map(Path::new))
        };
        assert_eq!(input("-", None), Input::Stdin { name: "<stdin>".to_owned() });
        assert_eq!(input("-", Some("a.yaml")).name(), "a.yaml");
        assert_eq!(input("./-", Some("a.yaml")), Input::File("./-".into()));
    }

    #[test]
    fn endless_input_is_read_up_to_the_limit() {
        let input = Input::from_argument(Path::new("-"), None);
        let bytes = input.read(&mut io::repeat(b'#')).unwrap();
        assert_eq!(bytes.len(), DOCUMENT_BYTES_MAX + 1);
    }

    #[test]
    fn a_failing_reader_is_named() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("it broke"))
            }
        }
        let input = Input::from_argument(Path::new("-"), None);
        assert_eq!(input.read(&mut Broken), Err("read <stdin>: it broke".to_owned()));
    }
}
