//! Describes trace events as text lines.
//!
//! Events of the built-in authorizers have their own sentences. TraceEvent kinds are open, so all other events
//! are printed with their kind and fields.

use access_reviews::TraceNode;
use access_reviews::review_parsing::{AccessQuestion, AccessTarget};
use authz::{TraceEvent, Value};

use super::terminal_style::VerdictMark;
use super::trace_event_fields::{
    trace_event_bool_field, trace_event_integer_field, trace_event_list_field,
    trace_event_text_field,
};
use super::webhook_trace_events;

/// The first authorizer of every chain: its name, and the name that explanations show.
const SUPERUSER: (&str, &str) = ("kubernetes.io/system-privileged-group", "superuser");

/// Maximum number of list entries in one line.
const LIST_MAX: usize = 10;

/// A line of the tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExplanationLine {
    pub(super) verdict_mark: VerdictMark,
    pub(super) line_text: String,
}

impl ExplanationLine {
    pub(super) fn new(mark: VerdictMark, text: impl Into<String>) -> Self {
        Self { verdict_mark: mark, line_text: text.into() }
    }

    /// Creates a line with the mark for `Allow` or `NoOpinion`.
    fn allow_or_no_opinion_line(allows: bool, text: String) -> Self {
        Self::new(if allows { VerdictMark::Allow } else { VerdictMark::NoOpinion }, text)
    }
}

/// Describes an authorizer with its verdict, and returns the remaining children. `undecided_authorizer` is
/// the authorizer whose decision is unknown.
pub(super) fn describe_authorizer<'n, 't>(
    node: &'n TraceNode<'t>,
    undecided_authorizer: Option<&str>,
) -> Option<(ExplanationLine, Vec<&'n TraceNode<'t>>)> {
    let name = trace_event_text_field(node.trace_event, "name")
        .filter(|_| node.trace_event.kind == "authorizer")?;
    let (verdicts, others): (Vec<_>, Vec<_>) =
        node.child_nodes.iter().partition(|child| child.trace_event.kind == "verdict");
    let verdict = verdicts.first().map(|child| child.trace_event);
    let verdict_text = |what: &str| {
        verdict.and_then(|verdict| trace_event_text_field(verdict, what)).unwrap_or_default()
    };
    let (mark, words) = match (verdict_text("decision"), name == SUPERUSER.0) {
        ("allow", true) => (VerdictMark::Allow, "in group system:masters"),
        ("noOpinion", true) => (VerdictMark::NoOpinion, "not in group system:masters"),
        ("allow", false) => (VerdictMark::Allow, "allows"),
        ("deny", false) if undecided_authorizer == Some(name) => {
            (VerdictMark::Undecided, "would be asked")
        }
        ("deny", _) => (VerdictMark::Deny, "denies"),
        ("noOpinion", false) => (VerdictMark::NoOpinion, "no opinion"),
        (other, _) => (VerdictMark::None, other),
    };
    let name = if name == SUPERUSER.0 { SUPERUSER.1 } else { name };
    let mut shown = format!("{name}: {words}");
    // The reason of the deciding authorizer is printed below the tree.
    for more in [verdict_text("reason"), verdict_text("error")]
        .into_iter()
        .filter(|_| mark == VerdictMark::NoOpinion)
    {
        if !more.is_empty() {
            shown.push_str(&format!(", {more}"));
        }
    }
    Some((ExplanationLine::new(mark, shown), others))
}

/// Describes any other event.
pub(super) fn describe_trace_event(
    event: &TraceEvent,
    question: &AccessQuestion<'_>,
) -> ExplanationLine {
    let known = match event.kind.as_ref() {
        "binding" => Some(describe_binding_event(event)),
        "nearMiss" => describe_near_miss_rule(event, question),
        "rule" if trace_event_integer_field(event, "line").is_some() => {
            Some(describe_abac_policy_line(event))
        }
        "rule" => Some(describe_node_authorizer_rule(event)),
        "node" => Some(describe_node_authorizer_event(event)),
        "path" => Some(ExplanationLine::new(
            VerdictMark::Allow,
            trace_event_list_field(event, "vertices").join(" → "),
        )),
        "noPath" => Some(describe_missing_graph_path(event)),
        "selector" => trace_event_text_field(event, "spec.nodeName").map(|node| {
            ExplanationLine::new(
                VerdictMark::Allow,
                format!("selects what is bound to node {node}"),
            )
        }),
        "condition" => describe_match_condition(event),
        "value" => describe_match_condition_part(event),
        "webhook" => webhook_trace_events::describe_webhook_call(event)
            .map(|text| ExplanationLine::new(VerdictMark::None, text)),
        "assumed" => webhook_trace_events::describe_assumed_answer(event)
            .map(|text| ExplanationLine::new(VerdictMark::None, text)),
        "failurePolicy" => trace_event_text_field(event, "is").map(|policy| {
            let text = format!("its match conditions fail, and its failurePolicy is {policy}");
            ExplanationLine::new(VerdictMark::None, text)
        }),
        _ => None,
    };
    known.unwrap_or_else(|| {
        ExplanationLine::new(VerdictMark::None, describe_unknown_trace_event(event))
    })
}

/// Describes an event of an unknown kind: its kind and all its fields.
fn describe_unknown_trace_event(event: &TraceEvent) -> String {
    let mut shown = event.kind.to_string();
    for (name, value) in &event.trace_event_values {
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

/// Describes a binding, such as `RoleBinding prod/readers of ClusterRole view to Group "dev"`.
fn describe_binding(event: &TraceEvent) -> String {
    let name = trace_event_text_field(event, "name").unwrap_or_default();
    let mut shown = match trace_event_text_field(event, "namespace") {
        Some(namespace) => format!("RoleBinding {namespace}/{name}"),
        None => format!("ClusterRoleBinding {name}"),
    };
    if let Some(role) = trace_event_text_field(event, "role") {
        shown.push_str(&format!(" of {role}"));
    }
    if let Some(subject) = trace_event_text_field(event, "subject") {
        shown.push_str(&format!(" to {subject}"));
    }
    shown
}

fn describe_binding_event(event: &TraceEvent) -> ExplanationLine {
    let binding = describe_binding(event);
    let allows = trace_event_bool_field(event, "allows").unwrap_or_default();
    let shown = match (
        allows,
        trace_event_text_field(event, "error"),
        trace_event_text_field(event, "rule"),
    ) {
        (true, _, Some(rule)) => format!("{binding}: {}{rule}", rule_number_prefix(event)),
        (true, _, None) => format!("{binding}: a rule allows it"),
        (false, Some(error), _) => format!("{binding}: {error}"),
        (false, None, _) => format!("{binding}: no rule allows it"),
    };
    ExplanationLine::allow_or_no_opinion_line(allows, shown)
}

/// Returns the number of a rule, counted from 1, as the start of a line.
fn rule_number_prefix(event: &TraceEvent) -> String {
    match trace_event_integer_field(event, "ruleIndex") {
        Some(idx) => format!("rule {}: ", idx.saturating_add(1)),
        None => String::new(),
    }
}

fn describe_near_miss_rule(
    event: &TraceEvent,
    question: &AccessQuestion<'_>,
) -> Option<ExplanationLine> {
    let shown = match trace_event_text_field(event, "lacks")? {
        "subject" => {
            let (what, own) = ["user", "group"]
                .into_iter()
                .find_map(|what| Some((what, trace_event_text_field(event, what)?)))?;
            let allowed = trace_event_text_field(event, "allowed")?;
            format!("near miss: {what} \"{allowed}\" is allowed, and \"{own}\" is not")
        }
        "namespace" => {
            let namespace = trace_event_text_field(event, "namespace").unwrap_or_default();
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
            let has = join_first_entries(trace_event_list_field(event, "has"));
            let rule = rule_number_prefix(event);
            let binding = describe_binding(event);
            format!("near miss: {binding}: {rule}lacks only {part}, has {has}")
        }
    };
    Some(ExplanationLine::new(VerdictMark::NearMiss, shown))
}

/// Joins the first entries of a list. The core group is the empty string, which is shown as `""`.
fn join_first_entries(texts: &[String]) -> String {
    let quoted = |text: &String| if text.is_empty() { "\"\"".to_owned() } else { text.clone() };
    let mut shown: Vec<String> = texts.iter().take(LIST_MAX).map(quoted).collect();
    if texts.len() > LIST_MAX {
        shown.push(format!("and {} more", texts.len() - LIST_MAX));
    }
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

/// Describes the value of a part of a match condition.
fn describe_match_condition_part(event: &TraceEvent) -> Option<ExplanationLine> {
    if let Some(n) = trace_event_integer_field(event, "leftOut") {
        return Some(ExplanationLine::new(VerdictMark::None, format!("{n} more parts")));
    }
    let part = trace_event_text_field(event, "text")?;
    let shown =
        match (trace_event_text_field(event, "value"), trace_event_text_field(event, "error")) {
            (Some(value), _) => format!("{part} is {value}"),
            (None, Some(error)) => format!("{part} fails: {error}"),
            (None, None) => format!("{part} is not evaluated"),
        };
    Some(ExplanationLine::new(VerdictMark::None, shown))
}

/// Describes a match condition. The lines below it show the values of its parts.
fn describe_match_condition(event: &TraceEvent) -> Option<ExplanationLine> {
    let expression = trace_event_text_field(event, "expression")?;
    Some(match (trace_event_bool_field(event, "outcome"), trace_event_text_field(event, "error")) {
        (Some(holds), _) => {
            ExplanationLine::new(VerdictMark::None, format!("{expression} is {holds}"))
        }
        (None, Some(error)) => ExplanationLine::new(VerdictMark::None, error),
        (None, None) => return None,
    })
}

fn describe_abac_policy_line(event: &TraceEvent) -> ExplanationLine {
    let line = trace_event_integer_field(event, "line").unwrap_or_default();
    let mut parts = Vec::new();
    for name in ["user", "group", "namespace", "resource", "apiGroup", "nonResourcePath"] {
        if let Some(part) = trace_event_text_field(event, name) {
            parts.push(format!("{name} {part}"));
        }
    }
    if trace_event_bool_field(event, "readonly") == Some(true) {
        parts.push("readonly".to_owned());
    }
    let policy = format!("line {line} ({})", parts.join(", "));
    match (trace_event_bool_field(event, "matches"), trace_event_text_field(event, "lacks")) {
        (Some(true), _) => ExplanationLine::new(VerdictMark::Allow, policy),
        (_, Some(lacks)) => ExplanationLine::new(
            VerdictMark::NearMiss,
            format!("near miss: {policy} differs only in its {lacks}"),
        ),
        (_, None) => ExplanationLine::new(VerdictMark::NoOpinion, policy),
    }
}

fn describe_node_authorizer_rule(event: &TraceEvent) -> ExplanationLine {
    let verbs = trace_event_list_field(event, "verbs").join(",");
    let what = match trace_event_list_field(event, "resources") {
        [] => trace_event_list_field(event, "nonResourceURLs").join(","),
        resources => resources.join(","),
    };
    let rule = format!("rule of all nodes: {verbs} {what}");
    match (trace_event_bool_field(event, "matches"), trace_event_text_field(event, "missing")) {
        (Some(true), _) => ExplanationLine::new(VerdictMark::Allow, rule),
        (_, Some(missing)) => ExplanationLine::new(
            VerdictMark::NearMiss,
            format!("near miss: {rule} lacks only the {missing}"),
        ),
        (_, None) => ExplanationLine::new(VerdictMark::NoOpinion, rule),
    }
}

fn describe_node_authorizer_event(event: &TraceEvent) -> ExplanationLine {
    let shown =
        match (trace_event_text_field(event, "name"), trace_event_text_field(event, "missing")) {
            (Some(name), _) => format!("is node {name}"),
            (None, Some(missing)) => {
                let shown = format!("near miss: not a node, because the {missing} is missing");
                return ExplanationLine::new(VerdictMark::NearMiss, shown);
            }
            (None, None) => "not a node".to_owned(),
        };
    ExplanationLine::new(VerdictMark::None, shown)
}

fn describe_missing_graph_path(event: &TraceEvent) -> ExplanationLine {
    let object = trace_event_text_field(event, "object").unwrap_or_default();
    let mut shown = if trace_event_bool_field(event, "isObjectKnown") == Some(true) {
        format!("nothing leads from {object} to this node")
    } else {
        format!("no object refers to {object}")
    };
    if trace_event_bool_field(event, "isNodeKnown") == Some(false) {
        shown.push_str("; nothing is known of this node");
    }
    let nodes = trace_event_list_field(event, "nodes");
    let Some(n_nodes) = trace_event_integer_field(event, "nNodes").filter(|_| !nodes.is_empty())
    else {
        return ExplanationLine::new(VerdictMark::NoOpinion, shown);
    };
    let n_more = usize::try_from(n_nodes).unwrap_or_default().saturating_sub(nodes.len());
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    let shown = format!("near miss: {shown}; it leads to {}{more}", nodes.join(", "));
    ExplanationLine::new(VerdictMark::NearMiss, shown)
}
