//! Writes explanations of decisions as text.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::LazyLock;

use access_reviews::review_parsing::{AccessQuestion, AccessTarget};
use access_reviews::{TraceNode, build_trace_tree};
use authz::{TraceEvent, User};

use super::ExplainedDecision;
use super::terminal_style::{TerminalStyle, VerdictMark};
use super::trace_event_fields::{trace_event_bool_field, trace_event_text_field};
use super::trace_event_lines::{ExplanationLine, describe_authorizer, describe_trace_event};
use crate::offline::replace_control_characters;

/// How much of a trace is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TraceDetail {
    /// Without default bindings that do not allow the request. Every user has some of them.
    WithoutIdleDefaults,
    /// The whole trace, as it was recorded.
    All,
}

/// The default bindings, by namespace and name.
static DEFAULT_BINDINGS: LazyLock<HashSet<(String, String)>> = LazyLock::new(|| {
    let bindings = manifests::rbac::bootstrap_policy().map(|policy| policy.bindings);
    let bindings = bindings.unwrap_or_default().into_iter();
    bindings.map(|own| (own.metadata.namespace, own.metadata.name)).collect()
});

/// Reports whether an event is about a default binding that does not allow the request and has no error.
fn is_unused_default_binding(event: &TraceEvent) -> bool {
    let text = |name| trace_event_text_field(event, name).unwrap_or_default().to_owned();
    event.kind == "binding"
        && trace_event_bool_field(event, "allows") != Some(true)
        && trace_event_text_field(event, "error").is_none()
        && DEFAULT_BINDINGS.contains(&(text("namespace"), text("name")))
}

/// Writes the decision, the tree of events, the reason and the hints.
///
/// # Errors
/// Fails if it cannot be written.
pub(super) fn write_human_explanation(
    out: &mut dyn Write,
    explanation: &ExplainedDecision<'_>,
    detail: TraceDetail,
    colour: bool,
) -> io::Result<()> {
    let style = TerminalStyle { is_coloured: colour };
    let ExplainedDecision {
        access_question: question,
        access_answer: answer,
        decision_trace: trace,
        uncalled_authorizers,
        hints,
    } = explanation;
    let heading = match (answer.is_allowed(), answer.is_undecided) {
        (true, _) => style.wrap_in_terminal_code("1;32", "ALLOWED"),
        (false, true) => style.wrap_in_terminal_code("1;33", "UNKNOWN"),
        (false, false) => style.wrap_in_terminal_code("1;31", "DENIED"),
    };
    writeln!(out, "{heading}  {}", replace_control_characters(&describe_question(question)))?;
    let nodes = build_trace_tree(trace);
    let undecided_authorizer =
        answer.chain_decision.deciding_authorizer_name.filter(|_| answer.is_undecided);
    let mut writer = ExplanationWriter {
        explanation_output: out,
        terminal_style: style,
        access_question: question,
        trace_detail: detail,
        undecided_authorizer,
    };
    let n_last = nodes.len() + uncalled_authorizers.len();
    for (idx, node) in nodes.iter().enumerate() {
        writer.write_trace_node(node, "", idx + 1 == n_last)?;
    }
    for (idx, name) in uncalled_authorizers.iter().enumerate() {
        let shown = ExplanationLine::new(VerdictMark::NotAsked, format!("{name}: not asked"));
        writer.write_explanation_line(&shown, "", nodes.len() + idx + 1 == n_last)?;
    }
    let out = writer.explanation_output;
    if trace.n_dropped_trace_entries() > 0 {
        writeln!(out, "{} more events are not shown", trace.n_dropped_trace_entries())?;
    }
    let reason = answer.chain_decision.decision.reason.to_string();
    if answer.chain_decision.deciding_authorizer_name.is_none() {
        writeln!(out, "no authorizer has an opinion, so the request is not allowed")?;
    } else if !reason.is_empty() {
        writeln!(
            out,
            "{} {}",
            style.wrap_in_terminal_code("1", "reason:"),
            replace_control_characters(&reason)
        )?;
    }
    if let Some(error) = &answer.evaluation_error {
        writeln!(
            out,
            "{} {}",
            style.wrap_in_terminal_code("1;33", "evaluation error:"),
            replace_control_characters(error)
        )?;
    }
    for hint in hints {
        writeln!(
            out,
            "{} {}",
            style.wrap_in_terminal_code("1;36", "hint:"),
            replace_control_characters(hint)
        )?;
    }
    Ok(())
}

/// Describes the request: user, verb and target.
fn describe_question(question: &AccessQuestion<'_>) -> String {
    let user = describe_user(&question.user);
    let verb = &question.verb;
    let resource = match &question.target {
        AccessTarget::Path(path) => return format!("{user} {verb} {path}"),
        AccessTarget::Resource(resource) => resource,
    };
    let mut text = format!("{user} {verb} {}", resource.resource);
    if !resource.api_group.is_empty() {
        text.push_str(&format!(".{}", resource.api_group));
    }
    if !resource.subresource.is_empty() {
        text.push_str(&format!("/{}", resource.subresource));
    }
    if !resource.name.is_empty() {
        text.push_str(&format!(" \"{}\"", resource.name));
    }
    match resource.namespace.as_ref() {
        "" => text.push_str(" at the cluster scope"),
        namespace => text.push_str(&format!(" in namespace \"{namespace}\"")),
    }
    text
}

/// Describes a user: its name and groups, or only its groups.
pub(super) fn describe_user(user: &User) -> String {
    match (user.name.as_str(), user.groups.as_slice()) {
        ("", groups) => format!("a member of {}", groups.join(", ")),
        (name, []) => name.to_owned(),
        (name, groups) => format!("{name} ({})", groups.join(", ")),
    }
}

/// Maximum number of shown children with no opinion.
const NO_OPINION_LINES_MAX: usize = 10;

/// Returns the children to show and the number of hidden ones. A user with a thousand bindings needs to
/// see the binding that decides.
fn select_shown_children<'n, 't>(
    children: &[&'n TraceNode<'t>],
    question: &AccessQuestion<'_>,
    detail: TraceDetail,
) -> (Vec<&'n TraceNode<'t>>, usize) {
    let is_asked = |child: &&&TraceNode<'_>| {
        detail == TraceDetail::All || !is_unused_default_binding(child.trace_event)
    };
    let children: Vec<&TraceNode<'_>> = children.iter().filter(is_asked).copied().collect();
    let mut n_no_opinion = 0;
    let is_shown = |child: &&&TraceNode<'_>| {
        let is_no_opinion = describe_trace_event(child.trace_event, question).verdict_mark
            == VerdictMark::NoOpinion;
        n_no_opinion += usize::from(is_no_opinion);
        !is_no_opinion || n_no_opinion <= NO_OPINION_LINES_MAX
    };
    let shown: Vec<_> = children.iter().filter(is_shown).copied().collect();
    let n_hidden = children.len() - shown.len();
    (shown, n_hidden)
}

struct ExplanationWriter<'w> {
    explanation_output: &'w mut dyn Write,
    terminal_style: TerminalStyle,
    access_question: &'w AccessQuestion<'w>,
    trace_detail: TraceDetail,
    /// The authorizer whose answer is unknown.
    undecided_authorizer: Option<&'w str>,
}

impl ExplanationWriter<'_> {
    /// Writes a node and its descendants. `above` is the text that connects a line to the nodes above it.
    fn write_trace_node(
        &mut self,
        node: &TraceNode<'_>,
        above: &str,
        is_last: bool,
    ) -> io::Result<()> {
        let (shown, children) = match describe_authorizer(node, self.undecided_authorizer) {
            Some((shown, children)) => (shown, children),
            None => (
                describe_trace_event(node.trace_event, self.access_question),
                node.child_nodes.iter().collect(),
            ),
        };
        self.write_explanation_line(&shown, above, is_last)?;
        let above = format!("{above}{}", if is_last { "   " } else { "│  " });
        let (shown, n_hidden) =
            select_shown_children(&children, self.access_question, self.trace_detail);
        for (idx, child) in shown.iter().enumerate() {
            self.write_trace_node(child, &above, idx + 1 == shown.len() && n_hidden == 0)?;
        }
        if n_hidden > 0 {
            let text = format!("{n_hidden} more that do not allow it");
            self.write_explanation_line(
                &ExplanationLine::new(VerdictMark::NoOpinion, text),
                &above,
                true,
            )?;
        }
        Ok(())
    }

    fn write_explanation_line(
        &mut self,
        shown: &ExplanationLine,
        above: &str,
        is_last: bool,
    ) -> io::Result<()> {
        let branch = if is_last { "└─ " } else { "├─ " };
        let mark = self.terminal_style.styled_verdict_mark(shown.verdict_mark);
        writeln!(
            self.explanation_output,
            "{above}{branch}{mark}{}",
            replace_control_characters(&shown.line_text)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_read_like_sentences() {
        for (line, want) in [
            (
                r#"{"user":"ana","groups":["dev","ops"],"resourceAttributes":{"verb":"get","group":"apps","resource":"deployments","subresource":"scale","name":"web","namespace":"prod"}}"#,
                r#"ana (dev, ops) get deployments.apps/scale "web" in namespace "prod""#,
            ),
            (
                r#"{"groups":["dev"],"resourceAttributes":{"verb":"list","resource":"nodes"}}"#,
                "a member of dev list nodes at the cluster scope",
            ),
            (
                r#"{"user":"ana","nonResourceAttributes":{"verb":"get","path":"/healthz"}}"#,
                "ana get /healthz",
            ),
        ] {
            assert_eq!(
                describe_question(
                    &access_reviews::review_parsing::read_review_line("", 1, line).unwrap()
                ),
                want
            );
        }
    }
}
