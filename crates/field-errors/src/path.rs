//! The path from the root of a document to one of its fields.

use std::fmt;

use crate::error::{BadValue, FieldError, FieldErrorKind};
use crate::truncate_text::{format_truncated, truncate_with_ellipsis};

/// The path of a field in a document: `authorizers[0].webhook.timeout`.
///
/// A path borrows its parent, so that descending allocates nothing. The text is built only for a fault.
///
/// ```
/// use field_errors::FieldPath;
/// let authorizers = FieldPath::root("authorizers");
/// let authorizer = authorizers.index(0);
/// assert_eq!(authorizer.child("name").to_string(), "authorizers[0].name");
/// assert_eq!(
///     authorizer.child("timeout").required("").to_string(),
///     "authorizers[0].timeout: Required value",
/// );
/// ```
#[derive(Debug, Clone, Copy)]
pub struct FieldPath<'a> {
    parent_path: Option<&'a FieldPath<'a>>,
    last_step: PathStep<'a>,
}

#[derive(Debug, Clone, Copy)]
enum PathStep<'a> {
    Nowhere,
    Child(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> FieldPath<'a> {
    /// The path of a fault in a value that belongs to no document, such as a label selector in a query. Displays
    /// as `<nil>`, as in Kubernetes.
    pub const NOWHERE: FieldPath<'static> =
        FieldPath { parent_path: None, last_step: PathStep::Nowhere };

    /// A path of one field.
    pub const fn root(name: &'a str) -> Self {
        Self { parent_path: None, last_step: PathStep::Child(name) }
    }

    /// The field `name` of the object at this path.
    pub const fn child(&'a self, name: &'a str) -> Self {
        Self { parent_path: self.as_parent(), last_step: PathStep::Child(name) }
    }

    /// The entry `idx` of the list at this path.
    pub const fn index(&'a self, idx: usize) -> Self {
        Self { parent_path: self.as_parent(), last_step: PathStep::Index(idx) }
    }

    /// The entry `key` of the map at this path.
    pub const fn key(&'a self, key: &'a str) -> Self {
        Self { parent_path: self.as_parent(), last_step: PathStep::Key(key) }
    }

    const fn as_parent(&'a self) -> Option<&'a Self> {
        match self.last_step {
            PathStep::Nowhere => None,
            PathStep::Child(_) | PathStep::Index(_) | PathStep::Key(_) => Some(self),
        }
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = vec![self.last_step];
        let mut next = self.parent_path;
        while let Some(path) = next {
            steps.push(path.last_step);
            next = path.parent_path;
        }
        for (idx, step) in steps.iter().rev().enumerate() {
            match step {
                PathStep::Nowhere => f.write_str("<nil>")?,
                // A field without a name shows as an empty subscript, as in Kubernetes.
                PathStep::Child("") => f.write_str("[]")?,
                PathStep::Child(name) if idx == 0 => f.write_str(name)?,
                PathStep::Child(name) => write!(f, ".{name}")?,
                PathStep::Index(index) => write!(f, "[{index}]")?,
                PathStep::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

/// The maximum length in bytes of a path in a message. Paths contain map keys, which the client chooses.
const PATH_BYTES_MAX: usize = 1024;
/// The maximum length in bytes of a value, and of a detail, in a message.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// Constructors of faults at a path.
impl FieldPath<'_> {
    /// The value is missing or empty. `detail` may be empty.
    pub fn required(&self, detail: &str) -> FieldError {
        self.new_error(FieldErrorKind::Required, BadValue::Omitted, detail)
    }

    /// The value is malformed or out of bounds.
    pub fn invalid(&self, value: impl Into<BadValue>, detail: &str) -> FieldError {
        self.new_error(FieldErrorKind::Invalid, value.into(), detail)
    }

    /// The value has the wrong type.
    pub fn type_invalid(&self, value: impl Into<BadValue>, detail: &str) -> FieldError {
        self.new_error(FieldErrorKind::TypeInvalid, value.into(), detail)
    }

    /// The value is not one of a closed set, which the detail lists in the order given.
    pub fn not_supported(&self, value: impl Into<BadValue>, supported: &[&str]) -> FieldError {
        let quoted: Vec<String> = supported.iter().map(|value| go_compat::quote(value)).collect();
        let detail = match supported {
            [] => String::new(),
            [..] => format!("supported values: {}", quoted.join(", ")),
        };
        self.new_error(FieldErrorKind::NotSupported, value.into(), &detail)
    }

    /// The value occurs twice where it must be unique.
    pub fn duplicate(&self, value: impl Into<BadValue>) -> FieldError {
        self.new_error(FieldErrorKind::Duplicate, value.into(), "")
    }

    /// The value names something that does not exist.
    pub fn not_found(&self, value: impl Into<BadValue>) -> FieldError {
        self.new_error(FieldErrorKind::NotFound, value.into(), "")
    }

    /// The value is well-formed but not allowed here.
    pub fn forbidden(&self, detail: &str) -> FieldError {
        self.new_error(FieldErrorKind::Forbidden, BadValue::Omitted, detail)
    }

    /// The text has more than `bytes_max` bytes. The text itself is not shown.
    pub fn too_long(&self, bytes_max: usize) -> FieldError {
        let unit = if bytes_max == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {bytes_max} {unit}");
        self.new_error(FieldErrorKind::TooLong, BadValue::Omitted, &detail)
    }

    /// The list has `n_items` items, which is more than `n_items_max`.
    pub fn too_many(&self, n_items: usize, n_items_max: usize) -> FieldError {
        let unit = if n_items_max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {n_items_max} {unit}");
        self.new_error(FieldErrorKind::TooMany, BadValue::Json(n_items.to_string()), &detail)
    }

    /// The server failed while it examined the value.
    pub fn internal(&self, cause: &str) -> FieldError {
        self.new_error(FieldErrorKind::Internal, BadValue::Omitted, cause)
    }

    /// Makes an error.
    ///
    /// INVARIANT: no part of an error is longer than its limit. So the number of errors bounds their memory,
    /// whatever the object holds.
    fn new_error(&self, kind: FieldErrorKind, value: BadValue, detail: &str) -> FieldError {
        let path = format_truncated(self, PATH_BYTES_MAX);
        let detail = truncate_with_ellipsis(detail, TEXT_BYTES_MAX).into_owned();
        FieldError { path, kind, value: value.truncate_value(TEXT_BYTES_MAX), detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A16: a fault below a long map key takes bounded memory.
    #[test]
    fn a16_faults_are_small() {
        let long = "k".repeat(1 << 20);
        let root = FieldPath::root("spec");
        let at = root.key(&long);
        let fault = at.child("x").invalid(long.as_str(), &long);
        let shown = fault.to_string();
        assert!(shown.starts_with("spec[kkk"), "{}", shown.len());
        assert!(shown.contains("kkk...: Invalid value: \"kkk"), "{}", shown.len());
        assert!(shown.len() < PATH_BYTES_MAX + 2 * TEXT_BYTES_MAX + 64, "{}", shown.len());
        let json = BadValue::Json(format!("[{}]", "1,".repeat(1 << 20)));
        assert!(root.invalid(json, "").to_string().len() < TEXT_BYTES_MAX + 64);
        let whole = "é".repeat(TEXT_BYTES_MAX / 2);
        assert_eq!(root.invalid(whole.as_str(), "").value, BadValue::Text(whole));
    }

    #[test]
    fn paths_render_as_in_kubernetes() {
        let root = FieldPath::root("spec");
        let rules = root.child("rules");
        let rule = rules.index(3);
        let labels = rule.child("labels");
        for (path, want) in [
            (root, "spec"),
            (rules, "spec.rules"),
            (rule, "spec.rules[3]"),
            (rule.index(0), "spec.rules[3][0]"),
            (labels.key("a/b c"), "spec.rules[3].labels[a/b c]"),
            (labels.key("x").child("y"), "spec.rules[3].labels[x].y"),
            (FieldPath::root(""), "[]"),
            (root.child(""), "spec[]"),
            (FieldPath::NOWHERE, "<nil>"),
            (FieldPath::NOWHERE.child("values").index(0).key("app"), "values[0][app]"),
        ] {
            assert_eq!(path.to_string(), want);
        }
    }
}
