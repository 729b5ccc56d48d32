//! Repetition operators: `*`, `+`, `?` and counts in braces.

use std::fmt;

/// The maximum number of copies of an atom that nested counted repetitions may produce.
pub(super) const COPIES_MAX: u64 = 1000;

/// A repetition operator of a pattern.
#[derive(Debug, Clone, Copy)]
pub(super) enum RepeatOperator {
    /// One of the operators `*`, `+` and `?`.
    Symbol(char),
    /// A counted repetition `{min,max}`. Without `max` it has no upper bound.
    Count { min: u32, max: Option<u32> },
}

impl RepeatOperator {
    /// Returns a counted repetition if Go allows it. A bound that is `None` is too large.
    pub(super) fn from_repeat_bounds(min: Option<u32>, max: Option<Option<u32>>) -> Option<Self> {
        let limit = COPIES_MAX as u32;
        let min = min.filter(|min| *min <= limit)?;
        let max = match max {
            None => None,
            Some(max) => Some(max.filter(|max| *max <= limit && min <= *max)?),
        };
        Some(Self::Count { min, max })
    }

    /// The number of instructions that the repetition of `inner` instructions takes.
    pub(super) fn size(self, inner: u64) -> u64 {
        match self {
            Self::Symbol('*') | Self::Count { min: 0, max: None } => inner.saturating_add(2),
            Self::Symbol(_) => inner.saturating_add(1),
            Self::Count { min, max: None } => inner.saturating_mul(min.into()).saturating_add(1),
            Self::Count { min, max: Some(max) } => {
                let optional = u64::from(max.saturating_sub(min));
                inner.saturating_mul(max.into()).saturating_add(optional).max(1)
            }
        }
    }

    /// The number of copies of the innermost atom.
    pub(super) fn multiply_atom_copies(self, inner: u64) -> u64 {
        match self {
            Self::Symbol(_) => inner,
            Self::Count { max: Some(0), .. } => 1,
            Self::Count { min, max } => inner.saturating_mul(u64::from(max.unwrap_or(min).max(1))),
        }
    }
}

impl fmt::Display for RepeatOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symbol(symbol) => write!(f, "{symbol}"),
            Self::Count { min, max: None } => write!(f, "{{{min},}}"),
            Self::Count { min, max: Some(max) } => write!(f, "{{{min},{max}}}"),
        }
    }
}

/// The minimum and the maximum of a counted repetition, and the remaining pattern. A bound is
/// `None` if it is far too large; the maximum is `None` if the repetition has none.
pub(super) type CountedRepetition<'p> = (Option<u32>, Option<Option<u32>>, &'p str);

/// Reads `{min}`, `{min,}` or `{min,max}`; `None` if the braces are plain text.
pub(super) fn read_counted_repetition(rest: &str) -> Option<CountedRepetition<'_>> {
    let (min, left) = read_repeat_bound(rest.strip_prefix('{')?)?;
    if let Some(left) = left.strip_prefix('}') {
        return Some((min, Some(min), left));
    }
    let left = left.strip_prefix(',')?;
    if let Some(left) = left.strip_prefix('}') {
        return Some((min, None, left));
    }
    let (max, left) = read_repeat_bound(left)?;
    Some((min, Some(max), left.strip_prefix('}')?))
}

/// Reads a decimal number without leading zeros; a number that is far too large is `None`.
fn read_repeat_bound(rest: &str) -> Option<(Option<u32>, &str)> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, left) = rest.split_at_checked(end)?;
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().ok(), left))
}
