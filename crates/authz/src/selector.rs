//! Selectors: how a request narrows itself to some of the objects of a resource.
//!
//! All requirements of a selector must hold, so a request without one of them is wider. An authorizer may
//! therefore ignore any requirement, and a selector that does not parse does not narrow the request.

mod field_selector;
mod label_selector;

pub use field_selector::{FieldOperator, FieldRequirement, parse_field_selector};
pub use label_selector::{LabelOperator, LabelRequirement, parse_label_selector};

/// The maximum number of terms in a selector, counting requirements and the values of sets. A longer selector does not
/// parse, because a list compares every term with every object. The longest URL has room for few more terms of a usual
/// length.
pub const SELECTOR_TERMS_MAX: usize = 1_000;

/// A selector does not parse. Displays as Kubernetes' message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SelectorError {
    message: String,
}

impl SelectorError {
    /// An error with this text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    fn too_many_terms_error() -> Self {
        Self::new(format!("selector has more than {SELECTOR_TERMS_MAX} terms"))
    }
}

/// The requirements of a selector that could be parsed, and the error about the others.
///
/// A selector in text form that does not parse has no requirements. A selector in list form keeps its valid
/// requirements, and reports the others in the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector<R> {
    /// The requirements that were parsed.
    pub requirements: Vec<R>,
    /// The error about the other requirements.
    pub error: Option<SelectorError>,
}

impl<R> Selector<R> {
    /// Makes a selector from the result of parsing. Returns `None` if there are neither requirements nor an error.
    pub fn from_selector_parse_result(parsed: Result<Vec<R>, SelectorError>) -> Option<Self> {
        match parsed {
            Ok(requirements) if requirements.is_empty() => None,
            Ok(requirements) => Some(Self { requirements, error: None }),
            Err(error) => Some(Self { requirements: Vec::new(), error: Some(error) }),
        }
    }
}

/// The operators of requirements in access reviews, to which those of the query language map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReviewSelectorOperator {
    /// The value is one of a set.
    In,
    /// The value is absent or none of a set.
    NotIn,
    /// The key is present.
    Exists,
    /// The key is absent.
    DoesNotExist,
}

impl ReviewSelectorOperator {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
        }
    }
}

#[cfg(test)]
mod tests;
