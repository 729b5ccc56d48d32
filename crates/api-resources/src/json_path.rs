//! The JSON paths of printer columns.
//!
//! Only the part of JSONPath that tables use is supported: `.spec.x`, `['a.b']`, `.list[0]`, `.list[-1]`, `.list[*]`,
//! `.map.*`, and `.conditions[?(@.type=="Ready")].status`. Only the first value is returned.

use api_object::Tree;
use serde_json::Value;

/// Upper bound on the steps of a path.
const STEPS_MAX: usize = 100;

/// A path that was parsed and is supported.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    path_steps: Vec<PathStep>,
}

#[derive(Debug, Clone, PartialEq)]
enum PathStep {
    Field(String),
    /// An index into a list; a negative one counts from the end.
    Index(i64),
    /// Every item of a list, or every value of an object.
    Every,
    /// Every item that matches a filter.
    ItemFilter(ItemFilter),
}

/// A filter on the items of a list.
#[derive(Debug, Clone, PartialEq)]
struct ItemFilter {
    path: Vec<PathStep>,
    test: Option<(ComparisonOperator, Value)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ComparisonOperator {
    Equal,
    NotEqual,
    AtMost,
    AtLeast,
    Below,
    Above,
}

/// The operators. A longer operator precedes the shorter one that it begins with.
const COMPARISONS: [(&str, ComparisonOperator); 6] = [
    ("==", ComparisonOperator::Equal),
    ("!=", ComparisonOperator::NotEqual),
    ("<=", ComparisonOperator::AtMost),
    (">=", ComparisonOperator::AtLeast),
    ("<", ComparisonOperator::Below),
    (">", ComparisonOperator::Above),
];

impl JsonPath {
    /// Parses a path; `None` if it is malformed or not supported.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let steps = parse_steps(text)?;
        Some(Self { path_steps: steps })
    }

    /// Finds the first value at the path. An empty path has no value.
    pub(crate) fn find_first_value<'t>(&self, tree: &'t Tree) -> Option<&'t Value> {
        match self.path_steps.split_first()? {
            (PathStep::Field(name), rest) => find_first_value(rest, tree.get(name)?),
            (PathStep::Every, rest) => tree.values().find_map(|it| find_first_value(rest, it)),
            (PathStep::Index(_) | PathStep::ItemFilter(_), _) => None,
        }
    }
}

fn find_first_value<'t>(steps: &[PathStep], tree: &'t Value) -> Option<&'t Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(tree) };
    match step {
        PathStep::Field(name) => find_first_value(rest, tree.get(name)?),
        PathStep::Index(index) => find_first_value(rest, item_at_index(tree.as_array()?, *index)?),
        PathStep::Every => match tree {
            Value::Array(items) => items.iter().find_map(|it| find_first_value(rest, it)),
            Value::Object(entries) => entries.values().find_map(|it| find_first_value(rest, it)),
            _ => None,
        },
        PathStep::ItemFilter(filter) => {
            let items = tree.as_array()?.iter();
            items.filter(|it| filter.matches(it)).find_map(|it| find_first_value(rest, it))
        }
    }
}

fn item_at_index(items: &[Value], index: i64) -> Option<&Value> {
    let n_items = i64::try_from(items.len()).ok()?;
    let index = if index < 0 { index.checked_add(n_items)? } else { index };
    items.get(usize::try_from(index).ok()?)
}

impl ItemFilter {
    fn matches(&self, item: &Value) -> bool {
        let Some(value) = find_first_value(&self.path, item) else { return false };
        match &self.test {
            None => true,
            Some((comparison, literal)) => comparison.matches(value, literal),
        }
    }
}

impl ComparisonOperator {
    fn matches(self, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => Some(left.cmp(&right)),
                (_, _) => left.as_f64().partial_cmp(&right.as_f64()),
            },
            (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            (_, _) => None,
        };
        match (self, order) {
            (Self::NotEqual, order) => order.is_none_or(std::cmp::Ordering::is_ne),
            (_, None) => false,
            (Self::Equal, Some(order)) => order.is_eq(),
            (Self::AtMost, Some(order)) => order.is_le(),
            (Self::AtLeast, Some(order)) => order.is_ge(),
            (Self::Below, Some(order)) => order.is_lt(),
            (Self::Above, Some(order)) => order.is_gt(),
        }
    }
}

fn parse_steps(text: &str) -> Option<Vec<PathStep>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if steps.len() == STEPS_MAX {
            return None;
        }
        rest = if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = split_bracket(after)?;
            steps.push(parse_bracket(inside)?);
            after
        } else {
            // A dot may precede a bracket, and a lone dot is the whole object.
            let after = rest.strip_prefix('.')?;
            match after.chars().next() {
                None | Some('[') => after,
                Some('.') => return None,
                Some(_) => {
                    let (name, after) = parse_field_name(after)?;
                    steps.push(if name == "*" { PathStep::Every } else { PathStep::Field(name) });
                    after
                }
            }
        };
    }
    Some(steps)
}

/// Parses a name up to the next dot or bracket. A backslash escapes either.
fn parse_field_name(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '.' | '[' => return Some((name, text.get(at..)?)),
            '\\' => name.push(characters.next()?.1),
            c if c.is_whitespace() || matches!(c, ']' | '(' | ')' | '"' | '\'') => return None,
            c => name.push(c),
        }
    }
    Some((name, ""))
}

/// Splits a text after an open bracket into the content up to the matching bracket and the rest. Quotes
/// and nested brackets are respected.
fn split_bracket(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth > 0 => depth -= 1,
            (None, ']') => return Some((text.get(..at)?, text.get(at + 1..)?)),
            (None, _) => {}
        }
    }
    None
}

fn parse_bracket(inside: &str) -> Option<PathStep> {
    let inside = inside.trim();
    if inside == "*" {
        return Some(PathStep::Every);
    }
    if let Some(condition) = inside.strip_prefix("?(").and_then(|it| it.strip_suffix(')')) {
        return parse_filter(condition.trim()).map(PathStep::ItemFilter);
    }
    match parse_literal(inside)? {
        Value::String(name) => Some(PathStep::Field(name)),
        Value::Number(index) => index.as_i64().map(PathStep::Index),
        _ => None,
    }
}

fn parse_filter(condition: &str) -> Option<ItemFilter> {
    let condition = condition.strip_prefix('@')?;
    let sign = |(at, _): (usize, char)| {
        let rest = condition.get(at..)?;
        let found = COMPARISONS.iter().find(|(sign, _)| rest.starts_with(sign))?;
        Some((at, found.0.len(), found.1))
    };
    let Some((at, n_bytes, comparison)) = condition.char_indices().find_map(sign) else {
        return Some(ItemFilter { path: parse_path_without_filters(condition)?, test: None });
    };
    let path = parse_path_without_filters(condition.get(..at)?)?;
    let literal = parse_literal(condition.get(at + n_bytes..)?.trim())?;
    Some(ItemFilter { path, test: Some((comparison, literal)) })
}

/// Parses a path without filters, so that filters do not nest.
fn parse_path_without_filters(text: &str) -> Option<Vec<PathStep>> {
    let text = text.trim();
    if text.contains('?') { None } else { parse_steps(text) }
}

/// Parses a string in single or double quotes, a number or a boolean.
fn parse_literal(text: &str) -> Option<Value> {
    for quote in ['"', '\''] {
        if let Some(inside) = text.strip_prefix(quote) {
            let inside = inside.strip_suffix(quote)?;
            return (!inside.contains(quote)).then(|| Value::from(inside));
        }
    }
    let value: Value = serde_json::from_str(text).ok()?;
    (value.is_number() || value.is_boolean()).then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn find(path: &str) -> Value {
        let tree = json!({
            "spec": { "size": 3, "a.b": "dotted", "list": [1, 2, { "x": "y" }], "empty": [] },
            "status": { "conditions": [
                { "type": "Synced", "status": "False", "code": 1 },
                { "type": "Ready", "status": "True", "code": 20, "on": true },
            ] },
        });
        let path = JsonPath::parse(path).expect("a path");
        path.find_first_value(tree.as_object().expect("an object"))
            .cloned()
            .unwrap_or(json!("nothing"))
    }

    #[test]
    fn paths_lead_to_their_first_value() {
        for (path, want) in [
            (".spec.size", json!(3)),
            (".spec['size']", json!(3)),
            (".spec[\"a.b\"]", json!("dotted")),
            (".spec.a\\.b", json!("dotted")),
            (".spec.list[0]", json!(1)),
            (".spec.list[-1].x", json!("y")),
            (".spec.list[*]", json!(1)),
            (".spec.list[*].x", json!("y")),
            (".status.*[1].type", json!("Ready")),
            (".status.conditions[?(@.type==\"Ready\")].status", json!("True")),
            (".status.conditions[?(@.type == 'Ready')].status", json!("True")),
            (".status.conditions[?(@.type!='Ready')].status", json!("False")),
            (".status.conditions[?(@.code>1)].type", json!("Ready")),
            (".status.conditions[?(@.code<=1)].type", json!("Synced")),
            (".status.conditions[?(@.on)].type", json!("Ready")),
            (".status.conditions[?(@.on==true)].type", json!("Ready")),
            (".spec.missing", json!("nothing")),
            (".spec.size.deeper", json!("nothing")),
            (".spec.list[9]", json!("nothing")),
            (".spec.list[-9]", json!("nothing")),
            (".spec.empty[*]", json!("nothing")),
            (".status.conditions[?(@.type==\"Gone\")].status", json!("nothing")),
        ] {
            assert_eq!(find(path), want, "{path}");
        }
    }

    #[test]
    fn what_is_not_understood_is_no_path() {
        for path in ["spec", "..x", ".a[", ".a[x]", ".a[?(x)]", ".a[0:2]", ".a b", ".a[?(@.b==)]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }

    #[test]
    fn a_path_has_a_limited_number_of_steps() {
        assert!(JsonPath::parse(&".a".repeat(STEPS_MAX)).is_some());
        assert!(JsonPath::parse(&".a".repeat(STEPS_MAX + 1)).is_none());
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in r#"[.\[\]?(@)='"*\\a0-9<>! é-]{0,24}"#) {
            if let Some(path) = JsonPath::parse(&text) {
                let tree = json!({ "a": [{ "a": "0" }, 1], "0": { "a": null } });
                let _ = path.find_first_value(tree.as_object().expect("an object"));
            }
        }
    }
}
