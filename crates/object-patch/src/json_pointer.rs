//! JSON pointers (RFC 6901) as Kubernetes reads them.
//!
//! Unlike in the standard, an index may be negative; it then counts from the end.

use serde_json::Value;

/// The decoded steps of a pointer; empty for the whole document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonPointer(Vec<String>);

impl JsonPointer {
    /// Parses a pointer; `None` if it does not begin with `/` and is not empty.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self(Vec::new()));
        }
        let steps = text.strip_prefix('/')?.split('/');
        Some(Self(steps.map(|step| step.replace("~1", "/").replace("~0", "~")).collect()))
    }

    /// The last step and the ones before it; `None` for the whole document.
    pub(crate) fn split_last_step(&self) -> Option<(&str, &[String])> {
        self.0.split_last().map(|(last, parents)| (last.as_str(), parents))
    }

    pub(crate) fn n_pointer_steps(&self) -> usize {
        self.0.len()
    }
}

/// Finds the value at the end of the steps.
pub(crate) fn resolve_pointer_steps<'d>(
    document: &'d mut Value,
    steps: &[String],
) -> Option<&'d mut Value> {
    steps.iter().try_fold(document, |value, step| match value {
        Value::Object(members) => members.get_mut(step),
        Value::Array(items) => {
            let idx = existing_index(step, items.len())?;
            items.get_mut(idx)
        }
        _ => None,
    })
}

/// The index of an item that exists.
pub(crate) fn existing_index(step: &str, len: usize) -> Option<usize> {
    parse_index(step, len).filter(|&idx| idx < len)
}

/// The index at which an item may be inserted; `-` is the index after the last item.
pub(crate) fn insertion_index(step: &str, len: usize) -> Option<usize> {
    match step {
        "-" => Some(len),
        step => parse_index(step, len + 1).filter(|&idx| idx <= len),
    }
}

fn parse_index(step: &str, len: usize) -> Option<usize> {
    let number: i64 = step.parse().ok()?;
    match usize::try_from(number) {
        Ok(idx) => Some(idx),
        Err(_) => len.checked_sub(usize::try_from(number.unsigned_abs()).ok()?),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_are_decoded() {
        let steps = |text| JsonPointer::parse(text).map(|pointer| pointer.0);
        assert_eq!(steps(""), Some(vec![]));
        assert_eq!(steps("/"), Some(vec![String::new()]));
        assert_eq!(steps("/a~1b/~01"), Some(vec!["a/b".to_owned(), "~1".to_owned()]));
        assert_eq!(steps("a"), None);
    }

    #[test]
    fn indices_count_from_either_end() {
        for (step, existing, insertion) in [
            ("0", Some(0), Some(0)),
            ("2", None, Some(2)),
            ("3", None, None),
            ("-", None, Some(2)),
            ("-1", Some(1), Some(2)),
            ("-2", Some(0), Some(1)),
            ("-3", None, Some(0)),
            ("-4", None, None),
            ("x", None, None),
            ("", None, None),
        ] {
            assert_eq!(existing_index(step, 2), existing, "{step}");
            assert_eq!(insertion_index(step, 2), insertion, "{step}");
        }
        assert_eq!(existing_index("-9223372036854775808", 2), None);
    }

    #[test]
    fn scalars_have_no_members() {
        let mut document = json!({"a": [{"b": 1}]});
        let steps = |text: &str| JsonPointer::parse(text).unwrap().0;
        assert_eq!(resolve_pointer_steps(&mut document, &steps("/a/0/b")), Some(&mut json!(1)));
        assert_eq!(resolve_pointer_steps(&mut document, &steps("/a/0/b/c")), None);
        assert_eq!(resolve_pointer_steps(&mut document, &steps("/a/1")), None);
    }
}
