//! Parses field selectors such as `metadata.name=web,status.phase!=Running`.

use std::borrow::Cow;
use std::fmt;

use super::{ReviewSelectorOperator, SELECTOR_TERMS_MAX, SelectorError};

/// One requirement of a field selector.
///
/// Displays as the term it was parsed from, with `=` for `==`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The path of the field. It may be any text, because each resource has its own fields.
    pub field: String,
    /// The relation that the field must have to the value.
    pub operator: FieldOperator,
    /// The value, without escapes.
    pub value: String,
}

/// The relation of a field to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldOperator {
    /// The operator `=` or `==`.
    Equals,
    /// The operator `!=` of a requirement.
    NotEquals,
}

impl FieldOperator {
    /// The operator as it is written: `=` or `!=`.
    pub const fn operator_symbol(self) -> &'static str {
        match self {
            Self::Equals => "=",
            Self::NotEquals => "!=",
        }
    }

    /// The operator in an access review, where the value is a set of one.
    pub const fn review_selector_operator(self) -> ReviewSelectorOperator {
        match self {
            Self::Equals => ReviewSelectorOperator::In,
            Self::NotEquals => ReviewSelectorOperator::NotIn,
        }
    }
}

impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.field, self.operator.operator_symbol())?;
        for c in self.value.chars() {
            if needs_field_value_escape(c) {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        Ok(())
    }
}

/// Parses a field selector.
///
/// 1. Cut at every comma that is not escaped with a backslash, and drop empty terms.
/// 2. Sort the terms as byte strings. The requirements are returned in this order.
/// 3. Split each term at its first operator. The field is taken literally. In the value, every backslash,
///    comma and equals sign must be escaped with a backslash.
/// 4. Drop requirements whose field and value are both empty.
///
/// # Errors
/// A term without operator, a malformed value, or more than [`SELECTOR_TERMS_MAX`] terms.
///
/// ```
/// let requirements = authz::parse_field_selector("b!=2,a==1").unwrap();
/// let texts: Vec<String> = requirements.iter().map(ToString::to_string).collect();
/// assert_eq!(texts, ["a=1", "b!=2"]);
/// ```
pub fn parse_field_selector(selector: &str) -> Result<Vec<FieldRequirement>, SelectorError> {
    let mut terms = FieldSelectorTerms { remaining_selector_text: Some(selector) }
        .filter(|term| !term.is_empty());
    let mut sorted: Vec<&str> = terms.by_ref().take(SELECTOR_TERMS_MAX).collect();
    if terms.next().is_some() {
        return Err(SelectorError::too_many_terms_error());
    }
    sorted.sort_unstable();
    let mut requirements = Vec::with_capacity(sorted.len());
    for term in sorted {
        let (field, operator, value) = split_field_term(term).ok_or_else(|| {
            SelectorError::new(format!("invalid selector: '{selector}'; can't understand '{term}'"))
        })?;
        let value = unescape_field_value(value)?;
        if !(field.is_empty() && value.is_empty()) {
            let (field, value) = (field.to_owned(), value.into_owned());
            requirements.push(FieldRequirement { field, operator, value });
        }
    }
    Ok(requirements)
}

/// The terms of a selector, cut at commas that are not escaped.
struct FieldSelectorTerms<'a> {
    remaining_selector_text: Option<&'a str>,
}

impl<'a> Iterator for FieldSelectorTerms<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.remaining_selector_text?;
        let mut is_escaped = false;
        for (idx, byte) in rest.bytes().enumerate() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b',' => {
                    self.remaining_selector_text = Some(&rest[idx + 1..]);
                    return Some(&rest[..idx]);
                }
                _ => {}
            }
        }
        self.remaining_selector_text = None;
        Some(rest)
    }
}

/// Splits a term at its first operator. The longer ones are tried first, or `==` would leave an
/// equals sign at the head of the value.
fn split_field_term(term: &str) -> Option<(&str, FieldOperator, &str)> {
    const OPERATORS: [(&str, FieldOperator); 3] = [
        ("!=", FieldOperator::NotEquals),
        ("==", FieldOperator::Equals),
        ("=", FieldOperator::Equals),
    ];
    // The first equals sign ends the first operator, or begins it when another one follows.
    let equals = term.find('=')?;
    let start = if term[..equals].ends_with('!') { equals - 1 } else { equals };
    OPERATORS.into_iter().find_map(|(symbol, operator)| {
        let value = term[start..].strip_prefix(symbol)?;
        Some((&term[..start], operator, value))
    })
}

fn needs_field_value_escape(c: char) -> bool {
    matches!(c, '\\' | ',' | '=')
}

fn unescape_field_value(value: &str) -> Result<Cow<'_, str>, SelectorError> {
    if !value.contains(needs_field_value_escape) {
        return Ok(Cow::Borrowed(value));
    }
    let refused = |what: String| SelectorError::new(format!("invalid field selector: {what}"));
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped) if needs_field_value_escape(escaped) => out.push(escaped),
                Some(other) => return Err(refused(format!("invalid escape sequence: \\{other}"))),
                None => return Err(refused("invalid escape sequence: \\".to_owned())),
            },
            ',' | '=' => {
                let code = u32::from(c);
                return Err(refused(format!("unescaped character in value: {code}")));
            }
            _ => out.push(c),
        }
    }
    Ok(Cow::Owned(out))
}
