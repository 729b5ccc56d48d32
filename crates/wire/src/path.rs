//! Where in a tree something is, as Kubernetes writes it: `rules[0].verbs`.

use std::fmt;

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
