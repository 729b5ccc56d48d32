//! Compares recorded answers with ours.

use serde_json::Value;

/// One place where two answers differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The path of the value, such as `errors[0].field`.
    pub path: String,
    /// The value of the recorded answer.
    pub want: Value,
    /// The value of our answer.
    pub got: Value,
}

/// Counts of texts with a part whose wording is free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextCounts {
    /// The number of texts that are equal in every byte.
    pub identical: u64,
    /// The number of texts with a free part.
    pub total: u64,
}

/// The result of one comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// The differences; empty if the answers agree.
    pub differences: Vec<Difference>,
    /// The counts of texts with a free part.
    pub texts: TextCounts,
}

/// A function that returns the number of bytes of the text at a path that must agree. The wording of the rest is
/// free, because a parser, a type checker or the operating system writes it after the words of Kubernetes.
pub(crate) type ExactLength<'a> = &'a dyn Fn(&str, &str) -> usize;

/// Compares two values member by member.
///
/// Members of objects compare in any order, and items of lists in order. An absent member equals one that is null,
/// false or empty.
pub(crate) fn compare(want: &Value, got: &Value, exact_length: ExactLength<'_>) -> Comparison {
    let mut comparison = Comparison::default();
    compare_values(&mut comparison, String::new(), want, got, exact_length);
    comparison
}

fn compare_values(
    into: &mut Comparison,
    path: String,
    want: &Value,
    got: &Value,
    exact_length: ExactLength<'_>,
) {
    match (want, got) {
        (Value::Object(wanted), Value::Object(gotten)) => {
            let only_gotten = gotten.keys().filter(|key| !wanted.contains_key(*key));
            for key in wanted.keys().chain(only_gotten) {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare_values(into, path, member(want, key), member(got, key), exact_length);
            }
        }
        (Value::Array(wanted), Value::Array(gotten)) if wanted.len() == gotten.len() => {
            for (idx, (want, got)) in wanted.iter().zip(gotten).enumerate() {
                compare_values(into, format!("{path}[{idx}]"), want, got, exact_length);
            }
        }
        (Value::String(wanted), Value::String(gotten)) => {
            let n_exact = exact_length(&path, wanted);
            if n_exact < wanted.len() {
                into.texts.total += 1;
                into.texts.identical += u64::from(wanted == gotten);
            }
            let n_gotten = exact_length(&path, gotten);
            if wanted.get(..n_exact) != gotten.get(..n_gotten) {
                into.add_difference(path, want, got);
            }
        }
        _ if want == got || (is_blank(want) && is_blank(got)) => {}
        _ => into.add_difference(path, want, got),
    }
}

impl Comparison {
    fn add_difference(&mut self, path: String, want: &Value, got: &Value) {
        self.differences.push(Difference { path, want: want.clone(), got: got.clone() });
    }
}

/// A member of an object; null if it is absent or the value is no object.
fn member<'a>(value: &'a Value, key: &str) -> &'a Value {
    value.get(key).unwrap_or(&Value::Null)
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(bool) => !bool,
        Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// The length of `text` up to and including the first of `markers` that occurs in it; all of it
/// when none does.
pub(crate) fn length_through(text: &str, markers: &[&str]) -> usize {
    markers
        .iter()
        .filter_map(|marker| text.find(marker).map(|at| at + marker.len()))
        .min()
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The paths at which two values differ when every text is exact.
    fn paths(want: Value, got: Value) -> Vec<String> {
        compare(&want, &got, &|_, text| text.len())
            .differences
            .into_iter()
            .map(|difference| difference.path)
            .collect()
    }

    #[test]
    fn equal_values_agree_whatever_the_order_of_members() {
        let want: Value = serde_json::from_str(r#"{"a":1,"b":[{"c":"x"},2.5]}"#).unwrap();
        let got: Value = serde_json::from_str(r#"{"b":[{"c":"x"},2.5],"a":1}"#).unwrap();
        assert!(paths(want, got).is_empty());
    }

    #[test]
    fn differences_are_reported_with_their_path() {
        let want = json!({"a": {"b": ["x", "y"]}, "c": 1, "d": [1], "e": true, "f": "1"});
        let got = json!({"a": {"b": ["x", "z"]}, "c": 2, "d": [1, 2], "f": 1, "g": "new"});
        assert_eq!(paths(want, got), ["a.b[1]", "c", "d", "e", "f", "g"]);
        assert_eq!(paths(json!(["a", "b"]), json!(["b", "a"])), ["[0]", "[1]"]);
    }

    #[test]
    fn absent_equals_empty_but_not_zero() {
        let blank = json!({"a": null, "b": "", "c": [], "d": {}, "e": false});
        assert!(paths(blank.clone(), json!({})).is_empty());
        assert!(paths(json!({}), blank).is_empty());
        assert_eq!(paths(json!({"cost": 0}), json!({})), ["cost"]);
        assert_eq!(paths(json!({}), json!({"cost": 0})), ["cost"]);
    }

    #[test]
    fn free_wording_is_counted_and_does_not_differ() {
        let exact = |_: &str, text: &str| length_through(text, &["failed: "]);
        let compare = |want: &str, got: &str| compare(&json!([want]), &json!([got]), &exact);

        let same = compare("compilation failed: x", "compilation failed: x");
        assert_eq!(same.texts, TextCounts { identical: 1, total: 1 });
        assert!(same.differences.is_empty());

        let other = compare("compilation failed: x", "compilation failed: y");
        assert_eq!(other.texts, TextCounts { identical: 0, total: 1 });
        assert!(other.differences.is_empty());

        // The text before the free part must agree, and both answers must have a free part or neither.
        assert_eq!(compare("compilation failed: x", "loading failed: x").differences.len(), 1);
        assert_eq!(compare("compilation failed: x", "compilation fails").differences.len(), 1);
        assert_eq!(compare("plain", "other").texts, TextCounts::default());
    }

    #[test]
    fn the_first_marker_counts() {
        assert_eq!(length_through("a: b: c", &["b: ", "a: "]), 3);
        assert_eq!(length_through("a: b: c", &["x"]), 7);
    }
}
