//! Suggestions for the author of a match condition that does not compile.

use cel::{Issue, Type};

/// The fields of the variable `request` in a match condition.
const REQUEST_FIELDS: &[&str] =
    &["extra", "groups", "nonResourceAttributes", "resourceAttributes", "uid", "user"];

/// The fields of `request.resourceAttributes`.
const RESOURCE_FIELDS: &[&str] = &[
    "fieldSelector",
    "group",
    "labelSelector",
    "name",
    "namespace",
    "resource",
    "subresource",
    "verb",
    "version",
];

/// Other fields, with their full paths.
const OTHER_FIELDS: &[(&str, &str)] = &[
    ("path", "request.nonResourceAttributes.path"),
    ("rawSelector", "request.resourceAttributes.labelSelector.rawSelector"),
    ("requirements", "request.resourceAttributes.labelSelector.requirements"),
];

/// Variables that other expressions of Kubernetes have.
const FOREIGN_VARIABLES: &[&str] =
    &["authorizer", "namespaceObject", "object", "oldObject", "params", "variables"];

/// A hint for one issue, if there is a likely cause.
pub(crate) fn hint_for_issue(expression: &str, issue: &Issue) -> Option<String> {
    let message = issue.message.as_str();
    if let Some(field) = text_between(message, "undefined field '", "'") {
        return hint_for_undefined_field(field);
    }
    if let Some(name) = text_between(message, "undeclared reference to '", "'") {
        return hint_for_undeclared_name(name);
    }
    if let Some(ty) = text_between(message, "type '", "' does not support field selection") {
        return hint_for_field_of_scalar(expression, issue, ty);
    }
    if message.starts_with("Syntax error: ") {
        return hint_for_syntax_error(message);
    }
    if let Some(types) = text_between(message, "'_==_' applied to '(string, ", ")'") {
        return Some(format!("a string is compared with {types}: quote the value"));
    }
    if message.ends_with("take too much memory together") {
        let hint = "all patterns of a configuration count: simplify them or lower repeat counts";
        return Some(hint.to_owned());
    }
    if message.ends_with("take too much work together") {
        return Some("all expressions of a configuration count: simplify them".to_owned());
    }
    if message.contains("'@in' applied to '(list(string), string)'") {
        return Some("the list stands on the right: `'name' in request.groups`".to_owned());
    }
    None
}

/// A hint for an expression that is not of type bool.
pub(crate) fn hint_for_output_type(expression: &str, ty: &Type) -> Option<String> {
    let expression = expression.trim();
    match ty {
        Type::String => Some(format!("compare it: `{expression} == '...'`")),
        Type::List(_) => Some(format!("test for an element: `'...' in {expression}`")),
        Type::Dyn => Some(format!("make it a bool: `{expression} == true`")),
        _ => None,
    }
}

fn hint_for_undefined_field(field: &str) -> Option<String> {
    if RESOURCE_FIELDS.contains(&field) {
        return Some(format!("did you mean `request.resourceAttributes.{field}`?"));
    }
    if let Some((_, full)) = OTHER_FIELDS.iter().find(|(name, _)| *name == field) {
        return Some(format!("did you mean `{full}`?"));
    }
    if REQUEST_FIELDS.contains(&field) {
        return Some(format!("did you mean `request.{field}`?"));
    }
    if matches!(field, "spec" | "status" | "metadata") {
        return Some("`request` is the spec of the review: write `request.user`".to_owned());
    }
    let known = REQUEST_FIELDS.iter().chain(RESOURCE_FIELDS).copied();
    let near =
        field_errors::nearest_word(field, known.chain(["key", "operator", "values", "path"]))?;
    Some(format!("did you mean `{near}`?"))
}

fn hint_for_undeclared_name(name: &str) -> Option<String> {
    if FOREIGN_VARIABLES.contains(&name) {
        return Some("match conditions know one variable, `request`".to_owned());
    }
    if REQUEST_FIELDS.contains(&name) {
        return Some(format!("did you mean `request.{name}`?"));
    }
    if RESOURCE_FIELDS.contains(&name) {
        return Some(format!("did you mean `request.resourceAttributes.{name}`?"));
    }
    let functions =
        ["contains", "endsWith", "exists", "has", "matches", "request", "size", "startsWith"];
    let near = field_errors::nearest_word(name, functions)?;
    Some(format!("did you mean `{near}`?"))
}

/// A hint for `request.user.groups`, where the value before the dot has no fields.
fn hint_for_field_of_scalar(expression: &str, issue: &Issue, ty: &str) -> Option<String> {
    let line = expression.split('\n').nth(issue.line?.checked_sub(1)? as usize)?;
    let dot = line.char_indices().nth(issue.column.checked_sub(1)? as usize)?.0;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let selected: String =
        line[dot..].trim_start_matches(['.', '?']).chars().take_while(|c| is_name(*c)).collect();
    let owner = line[..dot].rsplit(|c: char| !is_name(c)).next()?;
    if owner.is_empty() || selected.is_empty() {
        return None;
    }
    let article = format!("`{owner}` is a {ty}");
    if REQUEST_FIELDS.contains(&selected.as_str()) {
        return Some(format!("{article}, did you mean `request.{selected}`?"));
    }
    if owner == "user" && selected == "name" {
        return Some(format!("{article}: `request.user` is the name itself"));
    }
    Some(format!("{article} and has no fields"))
}

fn hint_for_syntax_error(message: &str) -> Option<String> {
    if message.contains("token recognition error at: '= '")
        || message.contains("token recognition error at: '='")
    {
        return Some("`==` compares".to_owned());
    }
    for (word, operator) in [("and", "&&"), ("or", "||"), ("not", "!")] {
        if message.contains(&format!(" input '{word}' ")) {
            return Some(format!("write `{operator}` for `{word}`"));
        }
    }
    if message.contains("token recognition error at: '&'") {
        return Some("`&&` joins conditions".to_owned());
    }
    if message.contains("token recognition error at: '|'") {
        return Some("`||` joins alternatives".to_owned());
    }
    None
}

fn text_between<'m>(message: &'m str, start: &str, end: &str) -> Option<&'m str> {
    let rest = message.split_once(start)?.1;
    rest.split_once(end).map(|(inside, _)| inside)
}
