//! Text that is cheap to clone.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A constant, or text on the heap with a reference count. A clone allocates nothing.
#[derive(Debug, Clone)]
pub enum SharedText {
    /// A constant text of the program, which is never freed.
    Static(&'static str),
    /// Text that is made at run time.
    RefCounted(Arc<str>),
}

impl Default for SharedText {
    fn default() -> Self {
        Self::Static("")
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Static(text) => text,
            Self::RefCounted(text) => text,
        }
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl From<&'static str> for SharedText {
    fn from(text: &'static str) -> Self {
        Self::Static(text)
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        if text.is_empty() { Self::default() } else { Self::RefCounted(text.into()) }
    }
}

impl From<Arc<str>> for SharedText {
    fn from(text: Arc<str>) -> Self {
        Self::RefCounted(text)
    }
}

impl From<Cow<'static, str>> for SharedText {
    fn from(text: Cow<'static, str>) -> Self {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}
