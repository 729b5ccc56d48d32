//! Events in words.
//!
//! Kinds that the built-in authorizers note have sentences of their own. Kinds are open, so all
//! others are shown with their particulars, as they are.

use access_reviews::TraceNode;
use access_reviews::review::{AccessQuestion, AccessTarget};
use authz::{Event, Value};

use super::paint::Mark;
use super::particular::{flag, list, number, text};
use super::webhook;

/// The first authorizer of every chain, and what people call it.
const SUPERUSER: (&str, &str) = ("kubernetes.io/system-privileged-group", "superuser");

/// The most entries of a list that are shown.
const LIST_MAX: usize = 10;

/// A line of the tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Phrase {
    pub(super) mark: Mark,
    pub(super) text: String,
}

impl Phrase {
    pub(super) fn new(mark: Mark, text: impl Into<String>) -> Self {
        Self { mark, text: text.into() }
    }

    /// A line about something that allows or does not.
    fn of(allows: bool, text: String) -> Self {
        Self::new(if allows { Mark::Allow } else { Mark::NoOpinion }, text)
    }
}

/// The line of an authorizer, which tells its verdict too, and what else lies below it. `open` is
/// the one whose answer is not known.
pub(super) fn authorizer<'n, 't>(
    node: &'n TraceNode<'t>,
    open: Option<&str>,
) -> Option<(Phrase, Vec<&'n TraceNode<'t>>)> {
    let name = text(node.event, "name").filter(|_| node.event.kind == "authorizer")?;
    let (verdicts, others): (Vec<_>, Vec<_>) =
        node.children.iter().partition(|child| child.event.kind == "verdict");
    let verdict = verdicts.first().map(|child| child.event);
    let told = |what: &str| verdict.and_then(|verdict| text(verdict, what)).unwrap_or_default();
    let (mark, words) = match (told("decision"), name == SUPERUSER.0) {
        ("allow", true) => (Mark::Allow, "in group system:masters"),
        ("noOpinion", true) => (Mark::NoOpinion, "not in group system:masters"),
        ("allow", false) => (Mark::Allow, "allows"),
        ("deny", false) if open == Some(name) => (Mark::Open, "would be asked"),
        ("deny", _) => (Mark::Deny, "denies"),
        ("noOpinion", false) => (Mark::NoOpinion, "no opinion"),
        (other, _) => (Mark::None, other),
    };
    let name = if name == SUPERUSER.0 { SUPERUSER.1 } else { name };
    let mut shown = format!("{name}: {words}");
    // What the deciding one says is told below the tree.
    for more in [told("reason"), told("error")].into_iter().filter(|_| mark == Mark::NoOpinion) {
        if !more.is_empty() {
            shown.push_str(&format!(", {more}"));
        }
    }
    Some((Phrase::new(mark, shown), others))
}

/// The line of any other event.
pub(super) fn phrase(event: &Event, question: &AccessQuestion<'_>) -> Phrase {
    let known = match event.kind.as_ref() {
        "binding" => Some(binding(event)),
        "nearMiss" => near_miss(event, question),
        "rule" if number(event, "line").is_some() => Some(policy_line(event)),
        "rule" => Some(node_rule(event)),
        "node" => Some(node(event)),
        "path" => Some(Phrase::new(Mark::Allow, list(event, "vertices").join(" → "))),
        "noPath" => Some(no_path(event)),
        "selector" => text(event, "spec.nodeName")
            .map(|node| Phrase::new(Mark::Allow, format!("selects what is bound to node {node}"))),
        "condition" => condition(event),
        "value" => value(event),
        "webhook" => webhook::call(event).map(|text| Phrase::new(Mark::None, text)),
        "assumed" => webhook::assumed(event).map(|text| Phrase::new(Mark::None, text)),
        "failurePolicy" => text(event, "is").map(|policy| {
            let text = format!("its match conditions fail, and its failurePolicy is {policy}");
            Phrase::new(Mark::None, text)
        }),
        _ => None,
    };
    known.unwrap_or_else(|| Phrase::new(Mark::None, particulars(event)))
}

/// An event as it is: its kind, then each particular.
fn particulars(event: &Event) -> String {
    let mut shown = event.kind.to_string();
    for (name, value) in &event.fields {
        let value = match value {
            Value::Bool(truth) => truth.to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Text(text) => text.clone(),
            Value::List(texts) => format!("[{}]", texts.join(", ")),
        };
        shown.push_str(&format!(" {name}={value}"));
    }
    shown
}

/// `RoleBinding prod/readers of ClusterRole view to Group "dev"`
fn describe_binding(event: &Event) -> String {
    let name = text(event, "name").unwrap_or_default();
    let mut shown = match text(event, "namespace") {
        Some(namespace) => format!("RoleBinding {namespace}/{name}"),
        None => format!("ClusterRoleBinding {name}"),
    };
    if let Some(role) = text(event, "role") {
        shown.push_str(&format!(" of {role}"));
    }
    if let Some(subject) = text(event, "subject") {
        shown.push_str(&format!(" to {subject}"));
    }
    shown
}

fn binding(event: &Event) -> Phrase {
    let binding = describe_binding(event);
    let allows = flag(event, "allows").unwrap_or_default();
    let shown = match (allows, text(event, "error"), text(event, "rule")) {
        (true, _, Some(rule)) => format!("{binding}: {}{rule}", rule_number(event)),
        (true, _, None) => format!("{binding}: a rule allows it"),
        (false, Some(error), _) => format!("{binding}: {error}"),
        (false, None, _) => format!("{binding}: no rule allows it"),
    };
    Phrase::of(allows, shown)
}

/// Rules are counted from 1 for people.
fn rule_number(event: &Event) -> String {
    match number(event, "ruleIndex") {
        Some(idx) => format!("rule {}: ", idx.saturating_add(1)),
        None => String::new(),
    }
}

fn near_miss(event: &Event, question: &AccessQuestion<'_>) -> Option<Phrase> {
    let shown = match text(event, "lacks")? {
        "subject" => {
            let (what, own) =
                ["user", "group"].into_iter().find_map(|what| Some((what, text(event, what)?)))?;
            let allowed = text(event, "allowed")?;
            format!("near miss: {what} \"{allowed}\" is allowed, and \"{own}\" is not")
        }
        "namespace" => {
            let namespace = text(event, "namespace").unwrap_or_default();
            let asked = match &question.target {
                AccessTarget::Resource(resource) if !resource.namespace.is_empty() => {
                    format!("and not in namespace \"{}\"", resource.namespace)
                }
                AccessTarget::Resource(_) | AccessTarget::Path(_) => {
                    "and not at the cluster scope".to_owned()
                }
            };
            let binding = describe_binding(event);
            format!("near miss: {binding} allows it in namespace \"{namespace}\", {asked}")
        }
        lacks => {
            let part = match lacks {
                "verbs" => "the verb",
                "apiGroups" => "the API group",
                "resources" => "the resource",
                "resourceNames" => "the name",
                "nonResourceURLs" => "the path",
                other => other,
            };
            let has = shown_list(list(event, "has"));
            let rule = rule_number(event);
            let binding = describe_binding(event);
            format!("near miss: {binding}: {rule}lacks only {part}, has {has}")
        }
    };
    Some(Phrase::new(Mark::NearMiss, shown))
}

/// The first entries. The core group is the empty text, which nobody would see.
fn shown_list(texts: &[String]) -> String {
    let quoted = |text: &String| if text.is_empty() { "\"\"".to_owned() } else { text.clone() };
    let mut shown: Vec<String> = texts.iter().take(LIST_MAX).map(quoted).collect();
    if texts.len() > LIST_MAX {
        shown.push(format!("and {} more", texts.len() - LIST_MAX));
    }
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

/// The value of a part of a condition.
fn value(event: &Event) -> Option<Phrase> {
    if let Some(n) = number(event, "leftOut") {
        return Some(Phrase::new(Mark::None, format!("{n} more parts")));
    }
    let part = text(event, "text")?;
    let shown = match (text(event, "value"), text(event, "error")) {
        (Some(value), _) => format!("{part} is {value}"),
        (None, Some(error)) => format!("{part} fails: {error}"),
        (None, None) => format!("{part} is not looked at"),
    };
    Some(Phrase::new(Mark::None, shown))
}

/// A match condition. What its parts are worth lies below it.
fn condition(event: &Event) -> Option<Phrase> {
    let expression = text(event, "expression")?;
    Some(match (flag(event, "outcome"), text(event, "error")) {
        (Some(holds), _) => Phrase::new(Mark::None, format!("{expression} is {holds}")),
        (None, Some(error)) => Phrase::new(Mark::None, error),
        (None, None) => return None,
    })
}

fn policy_line(event: &Event) -> Phrase {
    let line = number(event, "line").unwrap_or_default();
    let mut parts = Vec::new();
    for name in ["user", "group", "namespace", "resource", "apiGroup", "nonResourcePath"] {
        if let Some(part) = text(event, name) {
            parts.push(format!("{name} {part}"));
        }
    }
    if flag(event, "readonly") == Some(true) {
        parts.push("readonly".to_owned());
    }
    let policy = format!("line {line} ({})", parts.join(", "));
    match (flag(event, "matches"), text(event, "lacks")) {
        (Some(true), _) => Phrase::new(Mark::Allow, policy),
        (_, Some(lacks)) => {
            Phrase::new(Mark::NearMiss, format!("near miss: {policy} differs only in its {lacks}"))
        }
        (_, None) => Phrase::new(Mark::NoOpinion, policy),
    }
}

fn node_rule(event: &Event) -> Phrase {
    let verbs = list(event, "verbs").join(",");
    let what = match list(event, "resources") {
        [] => list(event, "nonResourceURLs").join(","),
        resources => resources.join(","),
    };
    let rule = format!("rule of all nodes: {verbs} {what}");
    match (flag(event, "matches"), text(event, "missing")) {
        (Some(true), _) => Phrase::new(Mark::Allow, rule),
        (_, Some(missing)) => {
            Phrase::new(Mark::NearMiss, format!("near miss: {rule} lacks only the {missing}"))
        }
        (_, None) => Phrase::new(Mark::NoOpinion, rule),
    }
}

fn node(event: &Event) -> Phrase {
    let shown = match (text(event, "name"), text(event, "missing")) {
        (Some(name), _) => format!("is node {name}"),
        (None, Some(missing)) => {
            let shown = format!("near miss: not a node, for want of the {missing}");
            return Phrase::new(Mark::NearMiss, shown);
        }
        (None, None) => "not a node".to_owned(),
    };
    Phrase::new(Mark::None, shown)
}

fn no_path(event: &Event) -> Phrase {
    let object = text(event, "object").unwrap_or_default();
    let mut shown = if flag(event, "isObjectKnown") == Some(true) {
        format!("nothing leads from {object} to this node")
    } else {
        format!("no object refers to {object}")
    };
    if flag(event, "isNodeKnown") == Some(false) {
        shown.push_str("; nothing is known of this node");
    }
    let nodes = list(event, "nodes");
    let Some(n_nodes) = number(event, "nNodes").filter(|_| !nodes.is_empty()) else {
        return Phrase::new(Mark::NoOpinion, shown);
    };
    let n_more = usize::try_from(n_nodes).unwrap_or_default().saturating_sub(nodes.len());
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    let shown = format!("near miss: {shown}; it leads to {}{more}", nodes.join(", "));
    Phrase::new(Mark::NearMiss, shown)
}
