//! Where in a tree something is, as Kubernetes writes it: `rules[0].verbs`.

use std::fmt::{self, Write};

/// Where a value is. A path is only written out where something is found, so it is a chain on the
/// stack.
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

/// How much of a path is told. Names are a part of it, and a client chooses these.
const PATH_BYTES_MAX: usize = 1024;

/// A path as text, or its beginning if it is long. No more of it is written than is told: a body may have
/// as many findings as it has members, all of them below one long name.
pub(crate) fn shown(path: &impl fmt::Display) -> String {
    let mut begin = Begin(String::new());
    match write!(begin, "{path}") {
        Ok(()) => begin.0,
        Err(fmt::Error) => begin.0 + "...",
    }
}

struct Begin(String);

impl Write for Begin {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fits = text.floor_char_boundary(PATH_BYTES_MAX.saturating_sub(self.0.len()));
        self.0.push_str(text.get(..fits).unwrap_or_default());
        if fits < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A16: a long name does not make each finding below it long.
    #[test]
    fn a16_paths_are_short() {
        let long = "n".repeat(PATH_BYTES_MAX);
        let parent = Path::Field(&Path::Root, &long);
        assert_eq!(shown(&parent), long);
        assert_eq!(shown(&Path::Field(&parent, "x")), format!("{long}..."));
        let short = Path::Field(&Path::Root, "a");
        assert_eq!(shown(&Path::Index(&Path::Field(&short, "b"), 1)), "a.b[1]");
    }
}
