//! Paths into an object, as the columns of definitions give them.
//!
//! The part of JSONPath that tables use: `.spec.x`, `['a.b']`, `.list[0]`, `.list[-1]`, `.list[*]`,
//! `.map.*`, and `.conditions[?(@.type=="Ready")].status`. Only the first value is wanted.

use api_object::Tree;
use serde_json::Value;

/// The most steps in a path. No object is deeper than that without being refused.
const STEPS_MAX: usize = 100;

/// A path that can be followed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// Counts from the end if negative.
    Index(i64),
    /// Every item of a list, or every value of an object.
    Every,
    /// Every item that fulfils a condition.
    Filter(Filter),
}

/// A condition on an item.
#[derive(Debug, Clone, PartialEq)]
struct Filter {
    path: Vec<Step>,
    test: Option<(Comparison, Value)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    AtMost,
    AtLeast,
    Below,
    Above,
}

/// The longer sign first, since it begins with the shorter one.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Below),
    (">", Comparison::Above),
];

impl JsonPath {
    /// Reads a path; `None` if it says something that is not understood here.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let steps = parse_steps(text)?;
        Some(Self { steps })
    }

    /// The first value at the path. The object itself is no value of its own.
    pub(crate) fn first<'t>(&self, tree: &'t Tree) -> Option<&'t Value> {
        match self.steps.split_first()? {
            (Step::Field(name), rest) => first(rest, tree.get(name)?),
            (Step::Every, rest) => tree.values().find_map(|it| first(rest, it)),
            (Step::Index(_) | Step::Filter(_), _) => None,
        }
    }
}

fn first<'t>(steps: &[Step], tree: &'t Value) -> Option<&'t Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(tree) };
    match step {
        Step::Field(name) => first(rest, tree.get(name)?),
        Step::Index(index) => first(rest, item_at(tree.as_array()?, *index)?),
        Step::Every => match tree {
            Value::Array(items) => items.iter().find_map(|it| first(rest, it)),
            Value::Object(entries) => entries.values().find_map(|it| first(rest, it)),
            _ => None,
        },
        Step::Filter(filter) => {
            let items = tree.as_array()?.iter();
            items.filter(|it| filter.matches(it)).find_map(|it| first(rest, it))
        }
    }
}

fn item_at(items: &[Value], index: i64) -> Option<&Value> {
    let n_items = i64::try_from(items.len()).ok()?;
    let index = if index < 0 { index.checked_add(n_items)? } else { index };
    items.get(usize::try_from(index).ok()?)
}

impl Filter {
    fn matches(&self, item: &Value) -> bool {
        let Some(value) = first(&self.path, item) else { return false };
        match &self.test {
            None => true,
            Some((comparison, literal)) => comparison.matches(value, literal),
        }
    }
}

impl Comparison {
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

fn parse_steps(text: &str) -> Option<Vec<Step>> {
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
            // A dot may stand before a bracket, and alone for the whole object.
            let after = rest.strip_prefix('.')?;
            match after.chars().next() {
                None | Some('[') => after,
                Some('.') => return None,
                Some(_) => {
                    let (name, after) = parse_field_name(after)?;
                    steps.push(if name == "*" { Step::Every } else { Step::Field(name) });
                    after
                }
            }
        };
    }
    Some(steps)
}

/// A name up to the next dot or bracket; a backslash makes either a part of it.
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

fn parse_bracket(inside: &str) -> Option<Step> {
    let inside = inside.trim();
    if inside == "*" {
        return Some(Step::Every);
    }
    if let Some(condition) = inside.strip_prefix("?(").and_then(|it| it.strip_suffix(')')) {
        return parse_filter(condition.trim()).map(Step::Filter);
    }
    match parse_literal(inside)? {
        Value::String(name) => Some(Step::Field(name)),
        Value::Number(index) => index.as_i64().map(Step::Index),
        _ => None,
    }
}

fn parse_filter(condition: &str) -> Option<Filter> {
    let condition = condition.strip_prefix('@')?;
    let sign = |(at, _): (usize, char)| {
        let rest = condition.get(at..)?;
        let found = COMPARISONS.iter().find(|(sign, _)| rest.starts_with(sign))?;
        Some((at, found.0.len(), found.1))
    };
    let Some((at, n_bytes, comparison)) = condition.char_indices().find_map(sign) else {
        return Some(Filter { path: parse_path_without_filters(condition)?, test: None });
    };
    let path = parse_path_without_filters(condition.get(..at)?)?;
    let literal = parse_literal(condition.get(at + n_bytes..)?.trim())?;
    Some(Filter { path, test: Some((comparison, literal)) })
}

/// A path without conditions of its own, so that conditions do not nest.
fn parse_path_without_filters(text: &str) -> Option<Vec<Step>> {
    let text = text.trim();
    if text.contains('?') { None } else { parse_steps(text) }
}

/// A text in either kind of quotes, a number or a truth.
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
        path.first(tree.as_object().expect("an object")).cloned().unwrap_or(json!("nothing"))
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
                let _ = path.first(tree.as_object().expect("an object"));
            }
        }
    }
}
