//! Reads recorded vectors, one JSON object per line.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// The longest line that is read. The longest recorded line has about 20 kB. A longer line than this is a mistake, and
/// would be read into memory as a whole.
pub const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// One input together with the answer of Kubernetes.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// Unique within its suite, and stable.
    pub id: String,
    /// A word that groups vectors about the same subject.
    pub feature: String,
    /// All members of the object, those above included.
    pub body: Map<String, Value>,
}

impl Vector {
    /// Returns a member that must exist.
    pub(crate) fn member(&self, key: &str) -> Result<&Value, UnusableVector> {
        self.body.get(key).ok_or_else(|| UnusableVector::new(format!("`{key}` is missing")))
    }

    /// Returns a member that must be a string.
    pub(crate) fn text(&self, key: &str) -> Result<&str, UnusableVector> {
        self.body
            .get(key)
            .and_then(Value::as_str)
            .ok_or_else(|| UnusableVector::new(format!("`{key}` is missing or not a string")))
    }

    /// Returns a member that must be a list.
    pub(crate) fn list(&self, key: &str) -> Result<&[Value], UnusableVector> {
        self.body
            .get(key)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .ok_or_else(|| UnusableVector::new(format!("`{key}` is missing or not a list")))
    }
}

/// The reason why one vector cannot be used: a part of it is missing or malformed, or its environment cannot be
/// set up. The report prints the message, and no caller distinguishes the causes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableVector(String);

impl UnusableVector {
    pub(crate) fn new(cause: impl std::fmt::Display) -> Self {
        Self(cause.to_string())
    }
}

/// The reason why a folder or file of vectors cannot be used. An error says nothing about our answers.
#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    /// A folder or file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The folder holds no suite.
    #[error("no vectors (*.jsonl) in `{}`", folder.display())]
    Empty {
        /// The folder that was read.
        folder: PathBuf,
    },
    /// A line is not a vector of its suite.
    #[error("{}:{line}: {problem}", path.display())]
    Malformed {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The fault of the line.
        problem: UnusableVector,
    },
}

/// Lists the suites of a folder, each `NAME.jsonl`, in alphabetical order.
pub fn suites_in(folder: &Path) -> Result<Vec<(String, PathBuf)>, VectorsError> {
    let failed = |source| VectorsError::Read { path: folder.to_owned(), source };
    let mut suites = Vec::new();
    for entry in folder.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(suite) = name.and_then(|name| name.strip_suffix(".jsonl")) {
            suites.push((suite.to_owned(), path));
        }
    }
    if suites.is_empty() {
        return Err(VectorsError::Empty { folder: folder.to_owned() });
    }
    suites.sort();
    Ok(suites)
}

/// Reads the vectors of one file in order. Reading ends at the first malformed line.
pub struct Vectors {
    suite: String,
    path: PathBuf,
    lines: BufReader<File>,
    line: usize,
    ids: HashSet<String>,
}

impl Vectors {
    /// Opens the file of a suite.
    pub fn open(suite: &str, path: &Path) -> Result<Self, VectorsError> {
        let file = File::open(path)
            .map_err(|source| VectorsError::Read { path: path.to_owned(), source })?;
        Ok(Self {
            suite: suite.to_owned(),
            path: path.to_owned(),
            lines: BufReader::new(file),
            line: 0,
            ids: HashSet::new(),
        })
    }

    /// Makes an error about the last line that was read.
    pub fn malformed(&self, problem: UnusableVector) -> VectorsError {
        self.malformed_at(self.line, problem)
    }

    /// Makes an error about an earlier line.
    pub fn malformed_at(&self, line: usize, problem: UnusableVector) -> VectorsError {
        VectorsError::Malformed { path: self.path.clone(), line, problem }
    }

    /// The number of the last line that was read.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Reads the next vector, or `None` at the end. Blank lines are skipped.
    pub fn read_next(&mut self) -> Result<Option<Vector>, VectorsError> {
        loop {
            let mut line = Vec::new();
            self.line += 1;
            // Reading one byte more than the limit distinguishes a line at the limit from a longer one.
            let n_bytes =
                (&mut self.lines)
                    .take(LINE_BYTES_MAX + 1)
                    .read_until(b'\n', &mut line)
                    .map_err(|source| VectorsError::Read { path: self.path.clone(), source })?;
            if n_bytes == 0 {
                return Ok(None);
            }
            if line.len() as u64 > LINE_BYTES_MAX {
                return Err(self.malformed(UnusableVector::new(format!(
                    "longer than {LINE_BYTES_MAX} bytes"
                ))));
            }
            if !line.trim_ascii().is_empty() {
                return self.parse(&line).map(Some).map_err(|problem| self.malformed(problem));
            }
        }
    }

    fn parse(&mut self, line: &[u8]) -> Result<Vector, UnusableVector> {
        let body: Map<String, Value> = serde_json::from_slice(line)
            .map_err(|error| UnusableVector::new(format!("not a JSON object: {error}")))?;
        let text = |key: &str| match body.get(key) {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(UnusableVector::new(format!("`{key}` is missing or not a string"))),
        };
        let (id, feature, suite) = (text("id")?, text("feature")?, text("suite")?);
        if suite != self.suite {
            return Err(UnusableVector::new(format!("belongs to suite `{suite}`")));
        }
        if !self.ids.insert(id.clone()) {
            return Err(UnusableVector::new(format!("id `{id}` occurs twice")));
        }
        Ok(Vector { id, feature, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file of this content, which errors name `F`.
    fn read(content: &str) -> Result<Vec<Vector>, VectorsError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        std::fs::write(&path, content).unwrap();
        let mut vectors = Vectors::open("s", &path).unwrap();
        let mut all = Vec::new();
        loop {
            match vectors.read_next() {
                Ok(Some(vector)) => all.push(vector),
                Ok(None) => return Ok(all),
                Err(VectorsError::Malformed { line, problem, .. }) => {
                    return Err(VectorsError::Malformed { path: "F".into(), line, problem });
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn line(id: &str) -> String {
        format!("{{\"id\":\"{id}\",\"suite\":\"s\",\"feature\":\"f\",\"x\":1}}\n")
    }

    #[test]
    fn vectors_keep_their_order_and_blank_lines_are_skipped() {
        let all = read(&format!("{}\n  \n{}", line("b"), line("a").trim())).unwrap();
        assert_eq!(all.iter().map(|v| &*v.id).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(all[0].body["x"], 1);
        assert_eq!(all[0].feature, "f");
    }

    #[test]
    fn malformed_vectors_are_reported_with_their_line() {
        let twice = format!("{0}\n{0}", line("a"));
        for (content, want) in [
            ("[]\n", "F:1: not a JSON object: invalid type: sequence, expected a map"),
            ("{\"id\":\"a\"}\n", "F:1: `feature` is missing or not a string"),
            ("{\"id\":1}\n", "F:1: `id` is missing or not a string"),
            ("{\"id\":\"a\",\"feature\":\"f\",\"suite\":\"t\"}", "F:1: belongs to suite `t`"),
            (&twice, "F:3: id `a` occurs twice"),
        ] {
            let error = read(content).unwrap_err();
            assert!(error.to_string().starts_with(want), "{error}");
        }
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let fill = |n_bytes: usize| {
            let short = line("a");
            let padding = " ".repeat(n_bytes - short.len());
            format!("{}{padding}\n", short.trim_end())
        };
        let limit = usize::try_from(LINE_BYTES_MAX).unwrap();
        assert_eq!(read(&fill(limit)).unwrap().len(), 1);
        assert_eq!(
            read(&fill(limit + 1)).unwrap_err().to_string(),
            format!("F:1: longer than {LINE_BYTES_MAX} bytes")
        );
    }

    #[test]
    fn a_folder_is_listed_by_suite_and_must_hold_one() {
        let folder = tempfile::tempdir().unwrap();
        let error = suites_in(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("no vectors (*.jsonl) in `"), "{error}");
        for name in ["b.jsonl", "a.jsonl", "README.md", "data.json"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let names: Vec<String> =
            suites_in(folder.path()).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(suites_in(&folder.path().join("missing")).is_err());
    }
}
