//! Field errors and their messages.

use std::fmt;

use crate::aggregate_messages::aggregate_messages;
use crate::truncate_text::truncate_with_ellipsis;

/// One fault of one field of a document.
///
/// Displays as `<path>: <words>[: <value>][: <detail>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field, as the rendered [`FieldPath`](crate::FieldPath).
    pub path: String,
    /// The class of the fault.
    pub kind: FieldErrorKind,
    /// The value at fault.
    pub value: BadValue,
    /// The explanation for people; may be empty.
    pub detail: String,
}

/// The classes of faults, with Kubernetes' names and words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// A value is missing.
    Required,
    /// A value is malformed.
    Invalid,
    /// A value is not one of a closed set.
    NotSupported,
    /// A value occurs twice.
    Duplicate,
    /// A list has too many items.
    TooMany,
    /// A text is too long.
    TooLong,
    /// A value is well-formed but not allowed.
    Forbidden,
    /// A value names something that does not exist.
    NotFound,
    /// A value has the wrong type.
    TypeInvalid,
    /// The server failed while it checked the value. The value may be valid.
    Internal,
}

impl FieldErrorKind {
    /// The short name: `Required`, `NotSupported`, `InternalError`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Required => "Required",
            Self::Invalid => "Invalid",
            Self::NotSupported => "NotSupported",
            Self::Duplicate => "Duplicate",
            Self::TooMany => "TooMany",
            Self::TooLong => "TooLong",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::TypeInvalid => "TypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    /// The machine-readable reason in the causes of a Status: `FieldValueRequired`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooMany => "FieldValueTooMany",
            Self::TooLong => "FieldValueTooLong",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotFound => "FieldValueNotFound",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    /// The text in messages: `Required value`.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::TooMany => "Too many",
            Self::TooLong => "Too long",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

/// The value of the faulty field as the message shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadValue {
    /// The message does not show the value.
    Omitted,
    /// A string, shown in quotes.
    Text(String),
    /// A number, a boolean or a structure, as compact JSON.
    Json(String),
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Omitted => Ok(()),
            Self::Text(text) => f.write_str(&go_compat::quote(text)),
            Self::Json(json) => f.write_str(json),
        }
    }
}

impl BadValue {
    /// Cuts the value off after `bytes_max` bytes.
    pub(crate) fn truncate_value(self, bytes_max: usize) -> Self {
        match self {
            Self::Text(text) if text.len() > bytes_max => {
                Self::Text(truncate_with_ellipsis(&text, bytes_max).into_owned())
            }
            Self::Json(json) if json.len() > bytes_max => {
                Self::Json(truncate_with_ellipsis(&json, bytes_max).into_owned())
            }
            short => short,
        }
    }
}

impl From<&str> for BadValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for BadValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for BadValue {
    fn from(number: i64) -> Self {
        Self::Json(number.to_string())
    }
}

impl From<bool> for BadValue {
    fn from(truth: bool) -> Self {
        Self::Json(truth.to_string())
    }
}

impl FieldError {
    /// Returns the approximate memory size of the error.
    fn approx_memory_bytes(&self) -> usize {
        let value = match &self.value {
            BadValue::Text(text) | BadValue::Json(text) => text.len(),
            BadValue::Omitted => 0,
        };
        self.path.len() + self.detail.len() + value
    }

    /// The message without the path, as the causes of a Status show it.
    pub fn message_without_path(&self) -> String {
        let mut text = self.kind.description().to_owned();
        if self.value != BadValue::Omitted {
            text.push_str(": ");
            text.push_str(&self.value.to_string());
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message_without_path())
    }
}

impl std::error::Error for FieldError {}

/// The maximum number of faults of a document that are kept. One request body can have 150,000.
pub const FAULTS_MAX: usize = 100;

/// The maximum total size of all kept faults in bytes; further ones are only counted. A fault repeats the value at
/// fault, and several may repeat the same one.
const FAULT_BYTES_MAX: usize = 1 << 20;

/// The faults of a document, in the order in which they were found. The first [`FAULTS_MAX`] are kept, the
/// others are counted.
///
/// Displays as the aggregate of the messages; see [`aggregate_messages`]. If faults were only counted, the last message
/// gives their number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldErrors {
    errors: Vec<FieldError>,
    errors_memory_bytes: usize,
    n_omitted_errors: usize,
}

impl FieldErrors {
    /// Returns a list without errors.
    pub const fn new() -> Self {
        Self { errors: Vec::new(), errors_memory_bytes: 0, n_omitted_errors: 0 }
    }

    /// Adds a fault at the end.
    pub fn push(&mut self, error: FieldError) {
        if self.errors.len() >= FAULTS_MAX || self.errors_memory_bytes >= FAULT_BYTES_MAX {
            self.n_omitted_errors += 1;
            return;
        }
        self.errors_memory_bytes += error.approx_memory_bytes();
        self.errors.push(error);
    }

    /// Adds all faults of another list at the end, including those that are only counted.
    pub fn append(&mut self, others: Self) {
        let n_left_out = others.n_omitted_errors;
        self.extend(others);
        self.n_omitted_errors += n_left_out;
    }

    /// A sentence with the number of faults that are not kept; `None` if all are kept.
    pub fn omitted_errors_summary(&self) -> Option<String> {
        (self.n_omitted_errors > 0).then(|| format!("and {} more errors", self.n_omitted_errors))
    }

    /// Reports whether there is no fault.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.n_omitted_errors == 0
    }

    /// Removes the kept faults for which the predicate is false.
    ///
    /// INVARIANT: faults that are only counted stay, whatever they are. So no document is accepted because its
    /// fault was beyond the limit.
    pub fn retain(&mut self, is_wanted: impl FnMut(&FieldError) -> bool) {
        self.errors.retain(is_wanted);
    }

    /// The number of faults, including repeated ones and those that are only counted.
    pub fn len(&self) -> usize {
        self.errors.len() + self.n_omitted_errors
    }

    /// The faults that are kept, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.errors.iter()
    }

    /// Returns `value` if there is no fault.
    ///
    /// # Errors
    /// The faults, if there are any.
    pub fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: Vec<String> =
            self.iter().map(FieldError::to_string).chain(self.omitted_errors_summary()).collect();
        f.write_str(&aggregate_messages(&messages))
    }
}

impl std::error::Error for FieldErrors {}

impl From<FieldError> for FieldErrors {
    fn from(error: FieldError) -> Self {
        Self::from_iter([error])
    }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

impl FromIterator<FieldError> for FieldErrors {
    fn from_iter<I: IntoIterator<Item = FieldError>>(errors: I) -> Self {
        let mut all = Self::new();
        all.extend(errors);
        all
    }
}

impl IntoIterator for FieldErrors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.errors.into_iter()
    }
}

impl<'a> IntoIterator for &'a FieldErrors {
    type Item = &'a FieldError;
    type IntoIter = std::slice::Iter<'a, FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::FieldPath;

    #[test]
    fn messages_match_kubernetes() {
        let at = FieldPath::root("f");
        for (error, name, want) in [
            (at.required(""), "Required", "f: Required value"),
            (at.required("set it"), "Required", "f: Required value: set it"),
            (at.invalid("a\"b", "no"), "Invalid", r#"f: Invalid value: "a\"b": no"#),
            (at.invalid("", "no"), "Invalid", r#"f: Invalid value: "": no"#),
            (at.invalid(-1, "no"), "Invalid", "f: Invalid value: -1: no"),
            (at.invalid(true, ""), "Invalid", "f: Invalid value: true"),
            (
                at.type_invalid(BadValue::Json("[1]".to_owned()), "must be a string"),
                "TypeInvalid",
                "f: Invalid value: [1]: must be a string",
            ),
            (
                at.not_supported("x", &["v1", "v\"2"]),
                "NotSupported",
                r#"f: Unsupported value: "x": supported values: "v1", "v\"2""#,
            ),
            (at.not_supported("x", &[]), "NotSupported", r#"f: Unsupported value: "x""#),
            (at.duplicate("x"), "Duplicate", r#"f: Duplicate value: "x""#),
            (at.not_found("x"), "NotFound", r#"f: Not found: "x""#),
            (at.forbidden("no"), "Forbidden", "f: Forbidden: no"),
            (at.too_long(63), "TooLong", "f: Too long: may not be more than 63 bytes"),
            (at.too_long(1), "TooLong", "f: Too long: may not be more than 1 byte"),
            (at.too_many(65, 64), "TooMany", "f: Too many: 65: must have at most 64 items"),
            (at.too_many(2, 1), "TooMany", "f: Too many: 2: must have at most 1 item"),
            (at.internal("it broke"), "InternalError", "f: Internal error: it broke"),
        ] {
            assert_eq!(error.to_string(), want);
            assert_eq!(error.kind.name(), name);
            assert_eq!(format!("f: {}", error.message_without_path()), want);
        }
    }

    #[test]
    fn several_faults_aggregate() {
        let at = FieldPath::root("f");
        let mut errors = FieldErrors::new();
        assert_eq!(errors.clone().into_result(1), Ok(1));
        errors.push(at.required(""));
        assert_eq!(errors.to_string(), "f: Required value");
        errors.extend([at.required(""), at.duplicate("x")]);
        assert_eq!(errors.to_string(), r#"[f: Required value, f: Duplicate value: "x"]"#);
        assert_eq!(errors.len(), 3);
        assert_eq!(errors.clone().into_result(1), Err(errors));
    }

    #[test]
    fn faults_past_the_limit_are_counted() {
        let at = FieldPath::root("f");
        let all = |n: usize| (0..n).map(|idx| at.index(idx).required("")).collect::<FieldErrors>();
        let (few, many) = (all(FAULTS_MAX), all(150_000));
        assert_eq!(
            (few.len(), few.iter().len(), few.omitted_errors_summary()),
            (FAULTS_MAX, FAULTS_MAX, None)
        );
        assert_eq!((many.len(), many.iter().len()), (150_000, FAULTS_MAX));
        let text = many.to_string();
        assert!(text.ends_with("f[99]: Required value, and 149900 more errors]"), "{text}");
        let mut both = few;
        both.append(many);
        assert_eq!((both.len(), both.iter().len()), (150_100, FAULTS_MAX));
        // Long values reach the byte limit first.
        let long = "x".repeat(8 * 1024);
        let long: FieldErrors = (0..200).map(|_| at.invalid(long.as_str(), &long)).collect();
        assert_eq!((long.len(), long.iter().len()), (200, 64));
        // A fault that is only counted still makes the document invalid.
        let mut left_out = all(FAULTS_MAX + 1);
        left_out.retain(|_| false);
        assert_eq!((left_out.is_empty(), left_out.len()), (false, 1));
    }
}
