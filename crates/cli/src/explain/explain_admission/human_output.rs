//! Writes explanations of admission as text.

use std::io;

use admission::{Exemption, ExplainedCondition, Hook, HookEndpoint, Operation, ReinvocationPolicy};
use admission_hooks::Phase;
use cel::{ExplainedSubexpression, SubexpressionResult};

use super::super::human_output::describe_user;
use super::super::terminal_style::{TerminalStyle, VerdictMark};
use super::admission_enum_names::{failure_policy_name, review_version_name, side_effects_name};
use super::expected_initializers::{ExpectedInitializer, ExpectedInitializers};
use super::explained_write::ExplainedWrite;
use super::hook_outcomes::{ExplainedHook, HookOutcome, HookSkipReason};
use crate::exit::Exit;
use crate::offline::replace_control_characters;
use crate::output_helpers::pluralize_count;

/// A line of the tree and the lines below it.
struct ExplanationBranch {
    verdict_mark: VerdictMark,
    line_text: String,
    child_branches: Vec<ExplanationBranch>,
}

impl ExplanationBranch {
    fn new(mark: VerdictMark, text: impl Into<String>) -> Self {
        Self { verdict_mark: mark, line_text: text.into(), child_branches: Vec::new() }
    }

    fn with_children(self, children: Vec<Self>) -> Self {
        Self { child_branches: children, ..self }
    }
}

/// Writes a heading, the tree of initializers and hooks in call order, and the conclusion.
///
/// # Errors
/// Fails if it cannot be written.
pub(super) fn write_human_explanation(
    out: &mut dyn io::Write,
    explained: &ExplainedWrite<'_>,
    all: bool,
    colour: bool,
) -> io::Result<()> {
    let style = TerminalStyle { is_coloured: colour };
    let heading = match explained.exit_code() {
        Exit::Clean => style.wrap_in_terminal_code("1;32", "ADMITTED"),
        Exit::Findings => style.wrap_in_terminal_code("1;31", "REFUSED"),
        Exit::Undecided | Exit::Usage | Exit::Unreadable => {
            style.wrap_in_terminal_code("1;33", "UNKNOWN")
        }
    };
    writeln!(
        out,
        "{heading}  {}",
        replace_control_characters(&describe_admission_write(explained))
    )?;
    let branches = build_explanation_branches(explained, all);
    for (idx, branch) in branches.iter().enumerate() {
        write_explanation_branch(out, style, branch, "", idx + 1 == branches.len())?;
    }
    write_conclusion(out, style, explained)
}

fn write_explanation_branch(
    out: &mut dyn io::Write,
    style: TerminalStyle,
    branch: &ExplanationBranch,
    above: &str,
    is_last: bool,
) -> io::Result<()> {
    let bend = if is_last { "└─ " } else { "├─ " };
    let mark = style.styled_verdict_mark(branch.verdict_mark);
    writeln!(out, "{above}{bend}{mark}{}", replace_control_characters(&branch.line_text))?;
    let above = format!("{above}{}", if is_last { "   " } else { "│  " });
    for (idx, children) in branch.child_branches.iter().enumerate() {
        write_explanation_branch(
            out,
            style,
            children,
            &above,
            idx + 1 == branch.child_branches.len(),
        )?;
    }
    Ok(())
}

/// Describes the write: `ana (dev) creates pods "web" in namespace "prod"`.
fn describe_admission_write(explained: &ExplainedWrite<'_>) -> String {
    let attributes = explained.write.to_attributes();
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
fn build_explanation_branches(explained: &ExplainedWrite<'_>, all: bool) -> Vec<ExplanationBranch> {
    if let Some(status) = &explained.write.pre_admission_rejection {
        return vec![ExplanationBranch::new(
            VerdictMark::Deny,
            format!("rejected: {}", status.message),
        )];
    }
    match explained.write.to_attributes().exemption() {
        Some(Exemption::Configuration) => {
            let text = "exempt: hooks and initializers never receive admission configurations, so that they can \
                        always be repaired";
            return vec![ExplanationBranch::new(VerdictMark::Allow, text)];
        }
        Some(Exemption::Review) => {
            let text = "exempt: hooks and initializers never receive reviews";
            return vec![ExplanationBranch::new(VerdictMark::Allow, text)];
        }
        None => {}
    }
    let mut branches = Vec::new();
    branches.extend(build_initializers_branch(&explained.expected_initializers));
    for (phase, heading) in [
        (Phase::Mutating, "mutating webhooks, one after the other"),
        (Phase::Validating, "validating hooks, all at once"),
    ] {
        let hooks = explained.shown_hooks(phase, all);
        if !hooks.is_empty() {
            let children = hooks.into_iter().map(build_hook_branch).collect();
            branches
                .push(ExplanationBranch::new(VerdictMark::None, heading).with_children(children));
        }
    }
    if branches.is_empty() {
        branches.push(ExplanationBranch::new(
            VerdictMark::Allow,
            "no hook and no initializer has a matching rule",
        ));
    }
    branches
}

fn build_initializers_branch(waiting: &ExpectedInitializers<'_>) -> Option<ExplanationBranch> {
    Some(match waiting {
        ExpectedInitializers::None => return None,
        ExpectedInitializers::Refused(status) => {
            ExplanationBranch::new(VerdictMark::Deny, format!("initializers: {}", status.message))
        }
        ExpectedInitializers::Unknown(why) => {
            ExplanationBranch::new(VerdictMark::Undecided, format!("initializers: {why}"))
        }
        ExpectedInitializers::For(all, _) => {
            let heading = "initializers, which act after the object is stored and before other \
                           clients see it";
            ExplanationBranch::new(VerdictMark::None, heading)
                .with_children(all.iter().map(build_initializer_branch).collect())
        }
    })
}

fn build_initializer_branch(awaited: &ExpectedInitializer<'_>) -> ExplanationBranch {
    let name = &awaited.entry.name;
    let known = match awaited.configured_initializer {
        Some(own) => {
            format!(
                "{}, failurePolicy {}",
                own.configuration_name,
                failure_policy_name(own.failure_policy)
            )
        }
        None => "no configuration has it".to_owned(),
    };
    let when = match (awaited.may_initializer_act_now, &awaited.entry.after_initializers) {
        (true, _) => "may act at once".to_owned(),
        (false, None) => "after those before it".to_owned(),
        (false, Some(after)) => format!("after {}", after.join(", ")),
    };
    let mark = if awaited.may_initializer_act_now {
        VerdictMark::Undecided
    } else {
        VerdictMark::NotAsked
    };
    ExplanationBranch::new(mark, format!("{name} ({known}): {when}"))
}

fn build_hook_branch(explained_hook: &ExplainedHook<'_>) -> ExplanationBranch {
    let ExplainedHook { hook, hook_outcome: outcome, .. } = explained_hook;
    let (mark, words) = match outcome {
        HookOutcome::Unmatched => (VerdictMark::NotAsked, "no rule matches".to_owned()),
        HookOutcome::Skipped(reason) => {
            (VerdictMark::NoOpinion, format!("skipped, {}", describe_skip_reason(reason)))
        }
        HookOutcome::Called => (VerdictMark::Undecided, "would be called".to_owned()),
        HookOutcome::FailsOpen(why) => {
            (VerdictMark::NoOpinion, format!("cannot be called, which is ignored: {why}"))
        }
        HookOutcome::Refuses(status, _) => {
            (VerdictMark::Deny, format!("refuses: {}", status.message))
        }
        HookOutcome::NotReached => {
            (VerdictMark::NotAsked, "not called, because the request is refused".to_owned())
        }
        HookOutcome::Unknown(why) => (VerdictMark::Undecided, format!("unknown: {why}")),
    };
    let text = format!("{} ({}): {words}", hook.name, hook.configuration_name);
    let mut children = Vec::new();
    match outcome {
        HookOutcome::Called => children.extend(
            describe_hook_call(explained_hook)
                .into_iter()
                .map(|text| ExplanationBranch::new(VerdictMark::None, text)),
        ),
        HookOutcome::FailsOpen(_) | HookOutcome::Refuses(_, _) | HookOutcome::Unknown(_) => {
            children.push(ExplanationBranch::new(VerdictMark::None, describe_hook_settings(hook)));
        }
        HookOutcome::Unmatched | HookOutcome::Skipped(_) | HookOutcome::NotReached => {}
    }
    children.extend(explained_hook.conditions.iter().map(build_match_condition_branch));
    ExplanationBranch::new(mark, text).with_children(children)
}

/// Describes the call of a hook: its target and its settings.
fn describe_hook_call(explained_hook: &ExplainedHook<'_>) -> Vec<String> {
    let hook = explained_hook.hook;
    let mut lines = vec![format!("at {}", hook_endpoint_text(hook)), describe_hook_settings(hook)];
    if let Some(kind) = explained_hook
        .matched_resource
        .and_then(|told| told.kind)
        .filter(|_| explained_hook.hook_receives_other_version)
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

fn hook_endpoint_text(hook: &Hook) -> String {
    let path = match hook.client_config.path.as_str() {
        "" => "/",
        path => path,
    };
    match &hook.client_config.hook_endpoint {
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

fn describe_hook_settings(hook: &Hook) -> String {
    let version = hook.review_versions.first().copied();
    format!(
        "failurePolicy {}, timeout {}s, review {}, sideEffects {}",
        failure_policy_name(hook.failure_policy),
        hook.call_timeout.as_secs(),
        version.map_or("of no known version", review_version_name),
        hook.side_effects.map_or("not set", side_effects_name),
    )
}

fn describe_skip_reason(reason: &HookSkipReason) -> String {
    match reason {
        HookSkipReason::NamespaceSelector => {
            "its namespaceSelector does not match the labels of the namespace".to_owned()
        }
        HookSkipReason::ObjectSelector => {
            "its objectSelector does not match the labels of the object".to_owned()
        }
        HookSkipReason::Condition(name) => format!("its match condition {name:?} is false"),
        HookSkipReason::ConditionError(why) => {
            format!("its match conditions fail, which is ignored: {why}")
        }
    }
}

fn build_match_condition_branch(condition: &ExplainedCondition<'_>) -> ExplanationBranch {
    let ExplainedCondition { name, cel_expression: expression, condition_explanation: explanation } =
        condition;
    match explanation {
        Err(error) => ExplanationBranch::new(
            VerdictMark::None,
            format!("{name}: {expression} fails: {error}"),
        ),
        Ok(explanation) => {
            let (whole, parts) = match explanation.subexpressions.split_first() {
                Some((whole, parts)) => (describe_subexpression_result(whole), parts),
                None => (String::new(), &[][..]),
            };
            let mut children = build_subexpression_branches(parts);
            if explanation.n_omitted_subexpressions > 0 {
                let text = format!("{} more parts", explanation.n_omitted_subexpressions);
                children.push(ExplanationBranch::new(VerdictMark::None, text));
            }
            ExplanationBranch::new(VerdictMark::None, format!("{name}: {expression} {whole}"))
                .with_children(children)
        }
    }
}

/// The prefix of the type names that CEL prints for intermediate values of an authorizer check.
const AUTHORIZER_VALUE_PREFIX: &str = "kubernetes.authorization.";

/// Builds the branches of the parts of an expression. Each part has its inner parts as children.
fn build_subexpression_branches(mut parts: &[ExplainedSubexpression]) -> Vec<ExplanationBranch> {
    let mut branches = Vec::new();
    while let Some((part, rest)) = parts.split_first() {
        let n_inside =
            rest.iter().take_while(|inner| inner.nesting_depth > part.nesting_depth).count();
        let (inside, after) = rest.split_at(n_inside);
        match &part.result {
            // Intermediate values of an authorizer check have no readable form.
            SubexpressionResult::Value(value) if value.starts_with(AUTHORIZER_VALUE_PREFIX) => {
                branches.extend(build_subexpression_branches(inside));
            }
            SubexpressionResult::Value(_)
            | SubexpressionResult::Error(_)
            | SubexpressionResult::Skipped => {
                let text =
                    format!("{} {}", part.source_excerpt, describe_subexpression_result(part));
                branches.push(
                    ExplanationBranch::new(VerdictMark::None, text)
                        .with_children(build_subexpression_branches(inside)),
                );
            }
        }
        parts = after;
    }
    branches
}

fn describe_subexpression_result(part: &ExplainedSubexpression) -> String {
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
        let (code, message) = (status.code, replace_control_characters(&status.message));
        return writeln!(out, "{} {code} {message}", style.wrap_in_terminal_code("1", "answer:"));
    }
    let is_called = |own: &&ExplainedHook<'_>| own.hook_outcome == HookOutcome::Called;
    let n_called = explained.explained_hooks.iter().filter(is_called).count();
    let n_awaited = match &explained.expected_initializers {
        ExpectedInitializers::For(all, _) => all.len(),
        ExpectedInitializers::None
        | ExpectedInitializers::Refused(_)
        | ExpectedInitializers::Unknown(_) => 0,
    };
    let mut depends = Vec::new();
    if n_called > 0 {
        depends.push(pluralize_count(n_called, "hook"));
    }
    if n_awaited > 0 {
        depends.push(pluralize_count(n_awaited, "initializer"));
    }
    if !depends.is_empty() {
        writeln!(out, "the result depends on {}", depends.join(" and "))?;
    }
    let is_mutating = |own: &ExplainedHook<'_>| {
        own.admission_phase == Phase::Mutating && own.hook_outcome == HookOutcome::Called
    };
    if explained.explained_hooks.iter().any(is_mutating) {
        writeln!(out, "later hooks receive the object as the mutating hooks change it")?;
    }
    Ok(())
}
