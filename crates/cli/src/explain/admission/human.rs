//! Explanations of admission for people.

use std::io;

use admission::{Endpoint, Exemption, ExplainedCondition, Hook, Operation, ReinvocationPolicy};
use admission_hooks::Phase;
use cel::{ExplainedPart, PartResult};

use super::super::paint::{Mark, Paint};
use super::consider::{Considered, Fate, Reason};
use super::verdict::Verdict;
use super::waiting::{Awaited, Waiting};
use super::words::{failure_policy, review_version, side_effects};
use crate::exit::Exit;
use crate::offline::printable;

/// A line and what lies below it.
struct Branch {
    mark: Mark,
    text: String,
    below: Vec<Branch>,
}

impl Branch {
    fn new(mark: Mark, text: impl Into<String>) -> Self {
        Self { mark, text: text.into(), below: Vec::new() }
    }

    fn with(self, below: Vec<Self>) -> Self {
        Self { below, ..self }
    }
}

/// Writes a heading, a tree of whom the write meets in their order, and what follows from it.
///
/// # Errors
/// Fails if it can not be written.
pub(super) fn write(
    out: &mut dyn io::Write,
    verdict: &Verdict<'_>,
    all: bool,
    colour: bool,
) -> io::Result<()> {
    let paint = Paint { colour };
    let heading = match verdict.exit() {
        Exit::Clean => paint.with("1;32", "ADMITTED"),
        Exit::Findings => paint.with("1;31", "REFUSED"),
        Exit::Open | Exit::Usage | Exit::Unreadable => paint.with("1;33", "UNKNOWN"),
    };
    writeln!(out, "{heading}  {}", printable(&describe(verdict)))?;
    let branches = branches(verdict, all);
    for (idx, branch) in branches.iter().enumerate() {
        write_branch(out, paint, branch, "", idx + 1 == branches.len())?;
    }
    conclude(out, paint, verdict)
}

fn write_branch(
    out: &mut dyn io::Write,
    paint: Paint,
    branch: &Branch,
    above: &str,
    is_last: bool,
) -> io::Result<()> {
    let bend = if is_last { "└─ " } else { "├─ " };
    let mark = paint.mark(branch.mark);
    writeln!(out, "{above}{bend}{mark}{}", printable(&branch.text))?;
    let above = format!("{above}{}", if is_last { "   " } else { "│  " });
    for (idx, below) in branch.below.iter().enumerate() {
        write_branch(out, paint, below, &above, idx + 1 == branch.below.len())?;
    }
    Ok(())
}

/// Who writes what: `ana (dev) creates pods "web" in namespace "prod"`.
fn describe(verdict: &Verdict<'_>) -> String {
    let attributes = verdict.write.attributes();
    let user = &verdict.how.user;
    let who = match (user.name.as_str(), user.groups.as_slice()) {
        ("", groups) => format!("a member of {}", groups.join(", ")),
        (name, []) => name.to_owned(),
        (name, groups) => format!("{name} ({})", groups.join(", ")),
    };
    let verb = match attributes.operation {
        Operation::Create => "creates",
        Operation::Update => "updates",
        Operation::Delete => "deletes",
        Operation::Connect => "connects to",
    };
    let mut text = format!("{who} {verb} {}", attributes.resource.resource);
    if !attributes.resource.group.is_empty() {
        text.push_str(&format!(".{}", attributes.resource.group));
    }
    if !attributes.subresource.is_empty() {
        text.push_str(&format!("/{}", attributes.subresource));
    }
    if !attributes.name.is_empty() {
        text.push_str(&format!(" \"{}\"", attributes.name));
    }
    if verdict.write.resource.is_namespaced() {
        text.push_str(&format!(" in namespace \"{}\"", attributes.namespace));
    }
    if attributes.is_dry_run {
        text.push_str(", dry run");
    }
    text
}

/// What the write meets, in order.
fn branches(verdict: &Verdict<'_>, all: bool) -> Vec<Branch> {
    if let Some(status) = &verdict.write.refusal {
        return vec![Branch::new(Mark::Deny, format!("not taken: {}", status.message))];
    }
    match verdict.write.attributes().exemption() {
        Some(Exemption::Configuration) => {
            let text = "exempt: hooks and initializers never see what configures admission, so \
                        that it can always be repaired";
            return vec![Branch::new(Mark::Allow, text)];
        }
        Some(Exemption::Review) => {
            let text = "exempt: hooks and initializers never see reviews, which are questions";
            return vec![Branch::new(Mark::Allow, text)];
        }
        None => {}
    }
    let mut branches = Vec::new();
    branches.extend(waiting(&verdict.waiting));
    for (phase, heading) in [
        (Phase::Mutating, "mutating webhooks, one after the other"),
        (Phase::Validating, "validating hooks, all at once"),
    ] {
        let hooks = verdict.shown(phase, all);
        if !hooks.is_empty() {
            let below = hooks.into_iter().map(hook).collect();
            branches.push(Branch::new(Mark::None, heading).with(below));
        }
    }
    if branches.is_empty() {
        branches.push(Branch::new(Mark::Allow, "no hook and no initializer has a rule for it"));
    }
    branches
}

fn waiting(waiting: &Waiting<'_>) -> Option<Branch> {
    Some(match waiting {
        Waiting::Nobody => return None,
        Waiting::Refused(status) => {
            Branch::new(Mark::Deny, format!("initializers: {}", status.message))
        }
        Waiting::Open(why) => Branch::new(Mark::Open, format!("initializers: {why}")),
        Waiting::For(all, _) => {
            let heading = "initializers, which act after the object is stored and before others \
                           see it";
            Branch::new(Mark::None, heading).with(all.iter().map(awaited).collect())
        }
    })
}

fn awaited(awaited: &Awaited<'_>) -> Branch {
    let name = &awaited.entry.name;
    let known = match awaited.initializer {
        Some(own) => {
            format!("{}, failurePolicy {}", own.configuration, failure_policy(own.failure_policy))
        }
        None => "no configuration has it".to_owned(),
    };
    let when = match (awaited.may_act, &awaited.entry.after) {
        (true, _) => "may act at once".to_owned(),
        (false, None) => "after those before it".to_owned(),
        (false, Some(after)) => format!("after {}", after.join(", ")),
    };
    let mark = if awaited.may_act { Mark::Open } else { Mark::NotAsked };
    Branch::new(mark, format!("{name} ({known}): {when}"))
}

fn hook(considered: &Considered<'_>) -> Branch {
    let Considered { hook, fate, .. } = considered;
    let (mark, words) = match fate {
        Fate::Unmatched => (Mark::NotAsked, "no rule matches".to_owned()),
        Fate::Skipped(reason) => (Mark::NoOpinion, format!("skipped, {}", skip_reason(reason))),
        Fate::Called => (Mark::Open, "would be called".to_owned()),
        Fate::FailsOpen(why) => {
            (Mark::NoOpinion, format!("can not be called, which is ignored: {why}"))
        }
        Fate::Refuses(status, _) => (Mark::Deny, format!("refuses: {}", status.message)),
        Fate::NotReached => (Mark::NotAsked, "not asked, for the request is refused".to_owned()),
        Fate::Open(why) => (Mark::Open, format!("unknown: {why}")),
    };
    let text = format!("{} ({}): {words}", hook.name, hook.configuration);
    let mut below = Vec::new();
    match fate {
        Fate::Called => {
            below.extend(call(considered).into_iter().map(|text| Branch::new(Mark::None, text)))
        }
        Fate::FailsOpen(_) | Fate::Refuses(_, _) | Fate::Open(_) => {
            below.push(Branch::new(Mark::None, settings(hook)));
        }
        Fate::Unmatched | Fate::Skipped(_) | Fate::NotReached => {}
    }
    below.extend(considered.conditions.iter().map(condition));
    Branch::new(mark, text).with(below)
}

/// How a hook is called.
fn call(considered: &Considered<'_>) -> Vec<String> {
    let hook = considered.hook;
    let mut lines = vec![format!("at {}", endpoint_text(hook)), settings(hook)];
    if let Some(kind) =
        considered.identity.and_then(|told| told.kind).filter(|_| considered.is_converted)
    {
        let version = match kind.group {
            "" => kind.version.to_owned(),
            group => format!("{group}/{}", kind.version),
        };
        lines
            .push(format!("told as {} of {version}, for its matchPolicy is Equivalent", kind.kind));
    }
    if hook.reinvocation_policy == ReinvocationPolicy::IfNeeded {
        lines.push(
            "again if a later one changes the object (reinvocationPolicy IfNeeded)".to_owned(),
        );
    }
    lines
}

fn endpoint_text(hook: &Hook) -> String {
    let path = match hook.client.path.as_str() {
        "" => "/",
        path => path,
    };
    match &hook.client.endpoint {
        Endpoint::Url { host, port } => {
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            format!("https://{host}{port}{path}")
        }
        Endpoint::Service { namespace, name, port } => {
            let port = port.map_or("its port".to_owned(), |port| format!("port {port}"));
            format!("service {namespace}/{name}, {port}, path {path}")
        }
        Endpoint::Nowhere => "nowhere".to_owned(),
    }
}

fn settings(hook: &Hook) -> String {
    let version = hook.review_versions.first().copied();
    format!(
        "failurePolicy {}, timeout {}s, review {}, sideEffects {}",
        failure_policy(hook.failure_policy),
        hook.timeout.as_secs(),
        version.map_or("of no known version", review_version),
        hook.side_effects.map_or("not said", side_effects),
    )
}

fn skip_reason(reason: &Reason) -> String {
    match reason {
        Reason::NamespaceSelector => {
            "its namespaceSelector does not match the labels of the namespace".to_owned()
        }
        Reason::ObjectSelector => {
            "its objectSelector does not match the labels of the object".to_owned()
        }
        Reason::Condition(name) => format!("its match condition {name:?} is false"),
        Reason::ConditionError(why) => {
            format!("its match conditions fail, which is ignored: {why}")
        }
    }
}

fn condition(condition: &ExplainedCondition<'_>) -> Branch {
    let ExplainedCondition { name, expression, explanation } = condition;
    match explanation {
        Err(error) => Branch::new(Mark::None, format!("{name}: {expression} fails: {error}")),
        Ok(explanation) => {
            let (whole, parts) = match explanation.parts.split_first() {
                Some((whole, parts)) => (gave(whole), parts),
                None => (String::new(), &[][..]),
            };
            let mut below = nested(parts);
            if explanation.n_omitted_parts > 0 {
                let text = format!("{} more parts", explanation.n_omitted_parts);
                below.push(Branch::new(Mark::None, text));
            }
            Branch::new(Mark::None, format!("{name}: {expression} {whole}")).with(below)
        }
    }
}

/// How values are shown that stand for a question to the authorizer.
const OPAQUE: &str = "kubernetes.authorization.";

/// Parts of an expression, each with those inside of it below.
fn nested(mut parts: &[ExplainedPart]) -> Vec<Branch> {
    let mut branches = Vec::new();
    while let Some((part, rest)) = parts.split_first() {
        let n_inside = rest.iter().take_while(|inner| inner.depth > part.depth).count();
        let (inside, after) = rest.split_at(n_inside);
        match &part.result {
            // Whoever asks the authorizer passes through values that have nothing to show.
            PartResult::Value(value) if value.starts_with(OPAQUE) => {
                branches.extend(nested(inside));
            }
            PartResult::Value(_) | PartResult::Error(_) | PartResult::Skipped => {
                let text = format!("{} {}", part.text, gave(part));
                branches.push(Branch::new(Mark::None, text).with(nested(inside)));
            }
        }
        parts = after;
    }
    branches
}

fn gave(part: &ExplainedPart) -> String {
    match &part.result {
        PartResult::Value(value) => format!("is {value}"),
        PartResult::Error(error) => format!("fails: {error}"),
        PartResult::Skipped => "is not looked at".to_owned(),
    }
}

/// Says what follows from the tree.
fn conclude(out: &mut dyn io::Write, paint: Paint, verdict: &Verdict<'_>) -> io::Result<()> {
    if let Some(status) = verdict.refusal() {
        let (code, message) = (status.code, printable(&status.message));
        return writeln!(out, "{} {code} {message}", paint.with("1", "answer:"));
    }
    let is_called = |own: &&Considered<'_>| own.fate == Fate::Called;
    let n_called = verdict.hooks.iter().filter(is_called).count();
    let n_awaited = match &verdict.waiting {
        Waiting::For(all, _) => all.len(),
        Waiting::Nobody | Waiting::Refused(_) | Waiting::Open(_) => 0,
    };
    let mut depends = Vec::new();
    if n_called > 0 {
        depends.push(count(n_called, "hook"));
    }
    if n_awaited > 0 {
        depends.push(count(n_awaited, "initializer"));
    }
    if !depends.is_empty() {
        writeln!(out, "it depends on {}", depends.join(" and "))?;
    }
    let is_mutating =
        |own: &Considered<'_>| own.phase == Phase::Mutating && own.fate == Fate::Called;
    if verdict.hooks.iter().any(is_mutating) {
        writeln!(out, "hooks after a mutating one are told what it makes of the object")?;
    }
    Ok(())
}

fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
