//! Writes explanations of admission as text.

use std::io;

use admission::{Exemption, ExplainedCondition, Hook, HookEndpoint, Operation, ReinvocationPolicy};
use admission_hooks::Phase;
use cel::{ExplainedSubexpression, SubexpressionResult};

use super::super::human_output::describe_user;
use super::super::terminal_style::{LineMark, TerminalStyle};
use super::admission_enum_names::{failure_policy_name, review_version_name, side_effects_name};
use super::explained_write::ExplainedWrite;
use super::hook_outcomes::{ExplainedHook, HookOutcome, SkipReason};
use super::initializer_wait::{AwaitedInitializer, InitializerWait};
use crate::exit::Exit;
use crate::offline::printable;
use crate::output::count_noun;

/// A line of the tree and the lines below it.
struct TreeBranch {
    mark: LineMark,
    text: String,
    children: Vec<TreeBranch>,
}

impl TreeBranch {
    fn new(mark: LineMark, text: impl Into<String>) -> Self {
        Self { mark, text: text.into(), children: Vec::new() }
    }

    fn with_children(self, children: Vec<Self>) -> Self {
        Self { children, ..self }
    }
}

/// Writes a heading, the tree of initializers and hooks in call order, and the conclusion.
///
/// # Errors
/// Fails if it can not be written.
pub(super) fn write_human(
    out: &mut dyn io::Write,
    explained: &ExplainedWrite<'_>,
    all: bool,
    colour: bool,
) -> io::Result<()> {
    let style = TerminalStyle { is_coloured: colour };
    let heading = match explained.exit_code() {
        Exit::Clean => style.styled("1;32", "ADMITTED"),
        Exit::Findings => style.styled("1;31", "REFUSED"),
        Exit::Undecided | Exit::Usage | Exit::Unreadable => style.styled("1;33", "UNKNOWN"),
    };
    writeln!(out, "{heading}  {}", printable(&describe_write(explained)))?;
    let branches = build_branches(explained, all);
    for (idx, branch) in branches.iter().enumerate() {
        write_branch(out, style, branch, "", idx + 1 == branches.len())?;
    }
    write_conclusion(out, style, explained)
}

fn write_branch(
    out: &mut dyn io::Write,
    style: TerminalStyle,
    branch: &TreeBranch,
    above: &str,
    is_last: bool,
) -> io::Result<()> {
    let bend = if is_last { "└─ " } else { "├─ " };
    let mark = style.styled_mark(branch.mark);
    writeln!(out, "{above}{bend}{mark}{}", printable(&branch.text))?;
    let above = format!("{above}{}", if is_last { "   " } else { "│  " });
    for (idx, children) in branch.children.iter().enumerate() {
        write_branch(out, style, children, &above, idx + 1 == branch.children.len())?;
    }
    Ok(())
}

/// Describes the write: `ana (dev) creates pods "web" in namespace "prod"`.
fn describe_write(explained: &ExplainedWrite<'_>) -> String {
    let attributes = explained.write.attributes();
    let user = describe_user(&explained.options.user);
    let verb = match attributes.operation {
        Operation::Create => "creates",
        Operation::Update => "updates",
        Operation::Delete => "deletes",
        Operation::Connect => "connects to",
    };
    let mut text = format!("{user} {verb} {}", attributes.resource.resource);
    if !attributes.resource.group.is_empty() {
        text.push_str(&format!(".{}", attributes.resource.group));
    }
    if !attributes.subresource.is_empty() {
        text.push_str(&format!("/{}", attributes.subresource));
    }
    if !attributes.name.is_empty() {
        text.push_str(&format!(" \"{}\"", attributes.name));
    }
    if explained.write.resource.is_namespaced() {
        text.push_str(&format!(" in namespace \"{}\"", attributes.namespace));
    }
    if attributes.is_dry_run {
        text.push_str(", dry run");
    }
    text
}

/// Builds the branches of the initializers and hooks, in call order.
fn build_branches(explained: &ExplainedWrite<'_>, all: bool) -> Vec<TreeBranch> {
    if let Some(status) = &explained.write.rejection {
        return vec![TreeBranch::new(LineMark::Deny, format!("rejected: {}", status.message))];
    }
    match explained.write.attributes().exemption() {
        Some(Exemption::Configuration) => {
            let text = "exempt: hooks and initializers never receive admission configurations, so that they can \
                        always be repaired";
            return vec![TreeBranch::new(LineMark::Allow, text)];
        }
        Some(Exemption::Review) => {
            let text = "exempt: hooks and initializers never receive reviews";
            return vec![TreeBranch::new(LineMark::Allow, text)];
        }
        None => {}
    }
    let mut branches = Vec::new();
    branches.extend(build_initializers_branch(&explained.initializer_wait));
    for (phase, heading) in [
        (Phase::Mutating, "mutating webhooks, one after the other"),
        (Phase::Validating, "validating hooks, all at once"),
    ] {
        let hooks = explained.shown_hooks(phase, all);
        if !hooks.is_empty() {
            let children = hooks.into_iter().map(explain_hook).collect();
            branches.push(TreeBranch::new(LineMark::None, heading).with_children(children));
        }
    }
    if branches.is_empty() {
        branches.push(TreeBranch::new(
            LineMark::Allow,
            "no hook and no initializer has a matching rule",
        ));
    }
    branches
}

fn build_initializers_branch(waiting: &InitializerWait<'_>) -> Option<TreeBranch> {
    Some(match waiting {
        InitializerWait::None => return None,
        InitializerWait::Refused(status) => {
            TreeBranch::new(LineMark::Deny, format!("initializers: {}", status.message))
        }
        InitializerWait::Unknown(why) => {
            TreeBranch::new(LineMark::Undecided, format!("initializers: {why}"))
        }
        InitializerWait::For(all, _) => {
            let heading = "initializers, which act after the object is stored and before other \
                           clients see it";
            TreeBranch::new(LineMark::None, heading)
                .with_children(all.iter().map(explain_initializer).collect())
        }
    })
}

fn explain_initializer(awaited: &AwaitedInitializer<'_>) -> TreeBranch {
    let name = &awaited.entry.name;
    let known = match awaited.initializer {
        Some(own) => {
            format!(
                "{}, failurePolicy {}",
                own.configuration_name,
                failure_policy_name(own.failure_policy)
            )
        }
        None => "no configuration has it".to_owned(),
    };
    let when = match (awaited.is_runnable, &awaited.entry.after_initializers) {
        (true, _) => "may act at once".to_owned(),
        (false, None) => "after those before it".to_owned(),
        (false, Some(after)) => format!("after {}", after.join(", ")),
    };
    let mark = if awaited.is_runnable { LineMark::Undecided } else { LineMark::NotAsked };
    TreeBranch::new(mark, format!("{name} ({known}): {when}"))
}

fn explain_hook(explained_hook: &ExplainedHook<'_>) -> TreeBranch {
    let ExplainedHook { hook, outcome, .. } = explained_hook;
    let (mark, words) = match outcome {
        HookOutcome::Unmatched => (LineMark::NotAsked, "no rule matches".to_owned()),
        HookOutcome::Skipped(reason) => {
            (LineMark::NoOpinion, format!("skipped, {}", describe_skip_reason(reason)))
        }
        HookOutcome::Called => (LineMark::Undecided, "would be called".to_owned()),
        HookOutcome::FailsOpen(why) => {
            (LineMark::NoOpinion, format!("can not be called, which is ignored: {why}"))
        }
        HookOutcome::Refuses(status, _) => (LineMark::Deny, format!("refuses: {}", status.message)),
        HookOutcome::NotReached => {
            (LineMark::NotAsked, "not called, because the request is refused".to_owned())
        }
        HookOutcome::Unknown(why) => (LineMark::Undecided, format!("unknown: {why}")),
    };
    let text = format!("{} ({}): {words}", hook.name, hook.configuration_name);
    let mut children = Vec::new();
    match outcome {
        HookOutcome::Called => children.extend(
            describe_call(explained_hook)
                .into_iter()
                .map(|text| TreeBranch::new(LineMark::None, text)),
        ),
        HookOutcome::FailsOpen(_) | HookOutcome::Refuses(_, _) | HookOutcome::Unknown(_) => {
            children.push(TreeBranch::new(LineMark::None, describe_settings(hook)));
        }
        HookOutcome::Unmatched | HookOutcome::Skipped(_) | HookOutcome::NotReached => {}
    }
    children.extend(explained_hook.conditions.iter().map(explain_condition));
    TreeBranch::new(mark, text).with_children(children)
}

/// Describes the call of a hook: its target and its settings.
fn describe_call(explained_hook: &ExplainedHook<'_>) -> Vec<String> {
    let hook = explained_hook.hook;
    let mut lines = vec![format!("at {}", endpoint_text(hook)), describe_settings(hook)];
    if let Some(kind) = explained_hook
        .matched_resource
        .and_then(|told| told.kind)
        .filter(|_| explained_hook.receives_other_version)
    {
        let version = match kind.group {
            "" => kind.version.to_owned(),
            group => format!("{group}/{}", kind.version),
        };
        lines.push(format!(
            "receives {} of {version}, because its matchPolicy is Equivalent",
            kind.kind
        ));
    }
    if hook.reinvocation_policy == ReinvocationPolicy::IfNeeded {
        lines.push(
            "called again if a later hook changes the object (reinvocationPolicy IfNeeded)"
                .to_owned(),
        );
    }
    lines
}

fn endpoint_text(hook: &Hook) -> String {
    let path = match hook.client_config.path.as_str() {
        "" => "/",
        path => path,
    };
    match &hook.client_config.endpoint {
        HookEndpoint::Url { host, port } => {
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            format!("https://{host}{port}{path}")
        }
        HookEndpoint::Service { namespace, name, port } => {
            let port = port.map_or("its port".to_owned(), |port| format!("port {port}"));
            format!("service {namespace}/{name}, {port}, path {path}")
        }
        HookEndpoint::Invalid => "nowhere".to_owned(),
    }
}

fn describe_settings(hook: &Hook) -> String {
    let version = hook.review_versions.first().copied();
    format!(
        "failurePolicy {}, timeout {}s, review {}, sideEffects {}",
        failure_policy_name(hook.failure_policy),
        hook.timeout.as_secs(),
        version.map_or("of no known version", review_version_name),
        hook.side_effects.map_or("not set", side_effects_name),
    )
}

fn describe_skip_reason(reason: &SkipReason) -> String {
    match reason {
        SkipReason::NamespaceSelector => {
            "its namespaceSelector does not match the labels of the namespace".to_owned()
        }
        SkipReason::ObjectSelector => {
            "its objectSelector does not match the labels of the object".to_owned()
        }
        SkipReason::Condition(name) => format!("its match condition {name:?} is false"),
        SkipReason::ConditionError(why) => {
            format!("its match conditions fail, which is ignored: {why}")
        }
    }
}

fn explain_condition(condition: &ExplainedCondition<'_>) -> TreeBranch {
    let ExplainedCondition { name, expression, explanation } = condition;
    match explanation {
        Err(error) => {
            TreeBranch::new(LineMark::None, format!("{name}: {expression} fails: {error}"))
        }
        Ok(explanation) => {
            let (whole, parts) = match explanation.subexpressions.split_first() {
                Some((whole, parts)) => (describe_result(whole), parts),
                None => (String::new(), &[][..]),
            };
            let mut children = build_part_branches(parts);
            if explanation.n_omitted_subexpressions > 0 {
                let text = format!("{} more parts", explanation.n_omitted_subexpressions);
                children.push(TreeBranch::new(LineMark::None, text));
            }
            TreeBranch::new(LineMark::None, format!("{name}: {expression} {whole}"))
                .with_children(children)
        }
    }
}

/// The prefix of the type names that CEL prints for intermediate values of an authorizer check.
const AUTHORIZER_VALUE_PREFIX: &str = "kubernetes.authorization.";

/// Builds the branches of the parts of an expression. Each part has its inner parts as children.
fn build_part_branches(mut parts: &[ExplainedSubexpression]) -> Vec<TreeBranch> {
    let mut branches = Vec::new();
    while let Some((part, rest)) = parts.split_first() {
        let n_inside =
            rest.iter().take_while(|inner| inner.nesting_depth > part.nesting_depth).count();
        let (inside, after) = rest.split_at(n_inside);
        match &part.result {
            // Intermediate values of an authorizer check have no readable form.
            SubexpressionResult::Value(value) if value.starts_with(AUTHORIZER_VALUE_PREFIX) => {
                branches.extend(build_part_branches(inside));
            }
            SubexpressionResult::Value(_)
            | SubexpressionResult::Error(_)
            | SubexpressionResult::Skipped => {
                let text = format!("{} {}", part.source_excerpt, describe_result(part));
                branches.push(
                    TreeBranch::new(LineMark::None, text)
                        .with_children(build_part_branches(inside)),
                );
            }
        }
        parts = after;
    }
    branches
}

fn describe_result(part: &ExplainedSubexpression) -> String {
    match &part.result {
        SubexpressionResult::Value(value) => format!("is {value}"),
        SubexpressionResult::Error(error) => format!("fails: {error}"),
        SubexpressionResult::Skipped => "is not evaluated".to_owned(),
    }
}

/// Writes the answer of the server, or the hooks and initializers that it depends on.
fn write_conclusion(
    out: &mut dyn io::Write,
    style: TerminalStyle,
    explained: &ExplainedWrite<'_>,
) -> io::Result<()> {
    if let Some(status) = explained.first_refusal() {
        let (code, message) = (status.code, printable(&status.message));
        return writeln!(out, "{} {code} {message}", style.styled("1", "answer:"));
    }
    let is_called = |own: &&ExplainedHook<'_>| own.outcome == HookOutcome::Called;
    let n_called = explained.hooks.iter().filter(is_called).count();
    let n_awaited = match &explained.initializer_wait {
        InitializerWait::For(all, _) => all.len(),
        InitializerWait::None | InitializerWait::Refused(_) | InitializerWait::Unknown(_) => 0,
    };
    let mut depends = Vec::new();
    if n_called > 0 {
        depends.push(count_noun(n_called, "hook"));
    }
    if n_awaited > 0 {
        depends.push(count_noun(n_awaited, "initializer"));
    }
    if !depends.is_empty() {
        writeln!(out, "the result depends on {}", depends.join(" and "))?;
    }
    let is_mutating = |own: &ExplainedHook<'_>| {
        own.phase == Phase::Mutating && own.outcome == HookOutcome::Called
    };
    if explained.hooks.iter().any(is_mutating) {
        writeln!(out, "later hooks receive the object as the mutating hooks change it")?;
    }
    Ok(())
}
