//! Comparing what was recorded with what we answer.

use serde_json::Value;

/// One place where two answers differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Where, such as `errors[0].field`.
    pub path: String,
    /// What Kubernetes answered there.
    pub want: Value,
    /// What we answered there.
    pub got: Value,
}

/// How many texts whose wording is only informative were nevertheless the same, byte for byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Texts {
    /// Equal in every byte.
    pub identical: u64,
    /// All that have an informative part.
    pub total: u64,
}

/// The result of one comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// Empty when the answers agree.
    pub differences: Vec<Difference>,
    /// About the informative texts in it.
    pub texts: Texts,
}

/// Tells how many bytes of the text at a path must agree; the rest is informative.
///
/// What a parser, a checker or the operating system says is recorded to help the reader; only the
/// words before it are Kubernetes' own.
pub(crate) type ExactLength<'a> = &'a dyn Fn(&str, &str) -> usize;

/// Compares two values member by member.
///
/// Members of objects compare in any order and items of lists in theirs. A member that is absent
/// equals one that is null, false or empty.
pub(crate) fn compare(want: &Value, got: &Value, exact_length: ExactLength<'_>) -> Comparison {
    let mut comparison = Comparison::default();
    descend(&mut comparison, String::new(), want, got, exact_length);
    comparison
}

fn descend(
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
                descend(into, path, member(want, key), member(got, key), exact_length);
            }
        }
        (Value::Array(wanted), Value::Array(gotten)) if wanted.len() == gotten.len() => {
            for (idx, (want, got)) in wanted.iter().zip(gotten).enumerate() {
                descend(into, format!("{path}[{idx}]"), want, got, exact_length);
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
                into.differ(path, want, got);
            }
        }
        _ if want == got || (is_blank(want) && is_blank(got)) => {}
        _ => into.differ(path, want, got),
    }
}

impl Comparison {
    fn differ(&mut self, path: String, want: &Value, got: &Value) {
        self.differences.push(Difference { path, want: want.clone(), got: got.clone() });
    }
}

/// A member of an object; null when it is absent, and when the value is no object.
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
    fn every_kind_of_difference_is_found_at_its_place() {
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
    fn informative_tails_are_counted_and_do_not_differ() {
        let exact = |_: &str, text: &str| length_through(text, &["failed: "]);
        let compare = |want: &str, got: &str| compare(&json!([want]), &json!([got]), &exact);

        let same = compare("compilation failed: x", "compilation failed: x");
        assert_eq!(same.texts, Texts { identical: 1, total: 1 });
        assert!(same.differences.is_empty());

        let other = compare("compilation failed: x", "compilation failed: y");
        assert_eq!(other.texts, Texts { identical: 0, total: 1 });
        assert!(other.differences.is_empty());

        // The words before the tail are exact, and so is the fact that there is one.
        assert_eq!(compare("compilation failed: x", "loading failed: x").differences.len(), 1);
        assert_eq!(compare("compilation failed: x", "compilation fails").differences.len(), 1);
        assert_eq!(compare("plain", "other").texts, Texts::default());
    }

    #[test]
    fn the_first_marker_counts() {
        assert_eq!(length_through("a: b: c", &["b: ", "a: "]), 3);
        assert_eq!(length_through("a: b: c", &["x"]), 7);
    }
}
