//! Explanations for people.

use std::io::{self, Write};

use access_reviews::review::{AccessQuestion, AccessTarget};
use access_reviews::{TraceNode, trace_tree};

use super::Explanation;
use super::paint::{Mark, Paint};
use super::phrase::{Phrase, authorizer, phrase};
use crate::offline::printable;

/// Writes a heading, a tree of what was asked, and what follows from it.
///
/// # Errors
/// Fails if it can not be written.
pub(super) fn write(
    out: &mut dyn Write,
    explanation: &Explanation<'_>,
    colour: bool,
) -> io::Result<()> {
    let paint = Paint { colour };
    let Explanation { question, answer, trace, not_asked, hints } = explanation;
    let heading = match (answer.is_allowed(), answer.is_open) {
        (true, _) => paint.with("1;32", "ALLOWED"),
        (false, true) => paint.with("1;33", "UNKNOWN"),
        (false, false) => paint.with("1;31", "DENIED"),
    };
    writeln!(out, "{heading}  {}", printable(&describe(question)))?;
    let nodes = trace_tree(trace);
    let open = answer.outcome.decided_by.filter(|_| answer.is_open);
    let mut writer = Writer { out, paint, question, open };
    let n_last = nodes.len() + not_asked.len();
    for (idx, node) in nodes.iter().enumerate() {
        writer.node(node, "", idx + 1 == n_last)?;
    }
    for (idx, name) in not_asked.iter().enumerate() {
        let shown = Phrase::new(Mark::NotAsked, format!("{name}: not asked"));
        writer.line(&shown, "", nodes.len() + idx + 1 == n_last)?;
    }
    let out = writer.out;
    if trace.n_dropped() > 0 {
        writeln!(out, "{} more events are not shown", trace.n_dropped())?;
    }
    let reason = answer.outcome.decision.reason.to_string();
    if answer.outcome.decided_by.is_none() {
        writeln!(out, "all authorizers abstain, so it is not allowed")?;
    } else if !reason.is_empty() {
        writeln!(out, "{} {}", paint.with("1", "reason:"), printable(&reason))?;
    }
    if let Some(error) = &answer.evaluation_error {
        writeln!(out, "{} {}", paint.with("1;33", "evaluation error:"), printable(error))?;
    }
    for hint in hints {
        writeln!(out, "{} {}", paint.with("1;36", "hint:"), printable(hint))?;
    }
    Ok(())
}

/// Who wants what.
fn describe(question: &AccessQuestion<'_>) -> String {
    let user = match (question.user.name.as_str(), question.user.groups.as_slice()) {
        ("", groups) => format!("a member of {}", groups.join(", ")),
        (name, []) => name.to_owned(),
        (name, groups) => format!("{name} ({})", groups.join(", ")),
    };
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

/// The most children that only say that they do not allow the request.
const SILENT_MAX: usize = 10;

/// The children that are shown, and how many are not. Somebody with a thousand bindings would look
/// for the one that matters among them.
fn shown_children<'n, 't>(
    children: &[&'n TraceNode<'t>],
    question: &AccessQuestion<'_>,
) -> (Vec<&'n TraceNode<'t>>, usize) {
    let mut n_silent = 0;
    let is_shown = |child: &&&TraceNode<'_>| {
        let is_silent = phrase(child.event, question).mark == Mark::NoOpinion;
        n_silent += usize::from(is_silent);
        !is_silent || n_silent <= SILENT_MAX
    };
    let shown: Vec<_> = children.iter().filter(is_shown).copied().collect();
    let n_hidden = children.len() - shown.len();
    (shown, n_hidden)
}

struct Writer<'w> {
    out: &'w mut dyn Write,
    paint: Paint,
    question: &'w AccessQuestion<'w>,
    /// The authorizer whose answer is not known.
    open: Option<&'w str>,
}

impl Writer<'_> {
    /// Writes a node and what lies below it, each line behind the branches of those above.
    fn node(&mut self, node: &TraceNode<'_>, above: &str, is_last: bool) -> io::Result<()> {
        let (shown, children) = match authorizer(node, self.open) {
            Some((shown, children)) => (shown, children),
            None => (phrase(node.event, self.question), node.children.iter().collect()),
        };
        self.line(&shown, above, is_last)?;
        let above = format!("{above}{}", if is_last { "   " } else { "│  " });
        let (shown, n_hidden) = shown_children(&children, self.question);
        for (idx, child) in shown.iter().enumerate() {
            self.node(child, &above, idx + 1 == shown.len() && n_hidden == 0)?;
        }
        if n_hidden > 0 {
            let text = format!("{n_hidden} more that do not allow it");
            self.line(&Phrase::new(Mark::NoOpinion, text), &above, true)?;
        }
        Ok(())
    }

    fn line(&mut self, shown: &Phrase, above: &str, is_last: bool) -> io::Result<()> {
        let branch = if is_last { "└─ " } else { "├─ " };
        let mark = self.paint.mark(shown.mark);
        writeln!(self.out, "{above}{branch}{mark}{}", printable(&shown.text))
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
            assert_eq!(describe(&access_reviews::review::read_line("", 1, line).unwrap()), want);
        }
    }
}
