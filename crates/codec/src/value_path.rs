//! Paths of values in a tree, in the notation of Kubernetes: `rules[0].verbs`.

use std::fmt::{self, Write};

/// The path of a value. It is a linked list on the stack, because it is formatted only for
/// findings.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Path<'p> {
    Root,
    Field(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Root => Ok(()),
            Self::Field(Path::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Index(parent, idx) => write!(f, "{parent}[{idx}]"),
        }
    }
}

/// Upper bound on the bytes of a formatted path. Clients choose the names in it.
const PATH_BYTES_MAX: usize = 1024;

/// Formats a path, cut to the limit. Formatting stops at the limit: a body may have as many
/// findings as members, all below one long name.
pub(crate) fn path_excerpt(path: &impl fmt::Display) -> String {
    let mut begin = ExcerptWriter(String::new());
    match write!(begin, "{path}") {
        Ok(()) => begin.0,
        Err(fmt::Error) => begin.0 + "...",
    }
}

struct ExcerptWriter(String);

impl Write for ExcerptWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fits = text.floor_char_boundary(PATH_BYTES_MAX.saturating_sub(self.0.len()));
        self.0.push_str(text.get(..fits).unwrap_or_default());
        if fits < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A16: the message about a finding stays short even below a long name.
    #[test]
    fn a16_paths_are_short() {
        let long = "n".repeat(PATH_BYTES_MAX);
        let parent = Path::Field(&Path::Root, &long);
        assert_eq!(path_excerpt(&parent), long);
        assert_eq!(path_excerpt(&Path::Field(&parent, "x")), format!("{long}..."));
        let short = Path::Field(&Path::Root, "a");
        assert_eq!(path_excerpt(&Path::Index(&Path::Field(&short, "b"), 1)), "a.b[1]");
    }
}
